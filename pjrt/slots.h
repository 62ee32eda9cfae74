// SPDX-License-Identifier: Apache-2.0
// Every function of the table under one rule for its name: slot PJRT_X is
// pestle_PJRT_X(), in the file of its subject. unimplemented.c has those that
// Pestle does not offer, so that no slot is NULL.
#ifndef PESTLE_PJRT_SLOTS_H_
#define PESTLE_PJRT_SLOTS_H_

#include "pjrt/abi.h"
#include "pjrt/error.h"

#define PJRT_SLOT_PROTOTYPE_(NAME, RETURNS) \
  RETURNS pestle_##NAME(NAME##_Args* args);
PJRT_SLOTS(PJRT_SLOT_PROTOTYPE_)
#undef PJRT_SLOT_PROTOTYPE_

// Where |field| of NAME_Args ends.
#define PJRT_END_OF(NAME, field) \
  (offsetof(NAME##_Args, field) + sizeof(((NAME##_Args*)0)->field))

// Whether the caller knows |field|: only then may it be read or written.
#define PJRT_HAS(NAME, field) (args->struct_size >= PJRT_END_OF(NAME, field))

// Returns from the enclosing slot unless |args| reaches to the end of |last| and
// |handle| is given.
#define PJRT_REQUIRE(NAME, handle, last)                                      \
  do {                                                                        \
    PJRT_Error* bad_ =                                                        \
        pestle_pjrt_check(args, PJRT_END_OF(NAME, last), #NAME);              \
    if (!bad_ && !args->handle) bad_ = pestle_pjrt_no_handle(#NAME, #handle); \
    if (bad_) return bad_;                                                    \
  } while (0)

// Returns the error of |expr|, a PJRT_Error*, from the enclosing function.
#define PJRT_TRY(expr)           \
  do {                           \
    PJRT_Error* error_ = (expr); \
    if (error_) return error_;   \
  } while (0)

#endif  // PESTLE_PJRT_SLOTS_H_

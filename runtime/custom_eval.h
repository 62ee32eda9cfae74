// SPDX-License-Identifier: Apache-2.0
// How a plan's call finds the function of an op of the caller's own, without what
// such an op is to the compiler.
#ifndef PESTLE_RUNTIME_CUSTOM_EVAL_H_
#define PESTLE_RUNTIME_CUSTOM_EVAL_H_

#include "base/arena.h"
#include "pestle/custom_call.h"

// What a plan says.
typedef struct pestle_eval_ask_t {
  const char *plan, *name, *version, *id, *attributes;
} pestle_eval_ask_t;

typedef struct pestle_eval_found_t {
  pestle_custom_call_fn_t function;
  void* user;
  bool device_memory;
  const pestle_custom_attrs_t* attrs;  // the arena's
} pestle_eval_found_t;

// NOT_FOUND, or INCOMPATIBLE where the op is of another version, names plan and op.
PESTLE_NODISCARD pestle_status_t
pestle_eval_find(const pestle_context_t* context, pestle_arena_t* arena,
                 const pestle_eval_ask_t* ask, pestle_eval_found_t* out_found);

#endif  // PESTLE_RUNTIME_CUSTOM_EVAL_H_

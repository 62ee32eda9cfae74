// SPDX-License-Identifier: Apache-2.0
// Programs that were compiled before, by the bytes that they came as: bytes that
// come again are not read again. A framework that traces a function anew, or drops
// what it compiled, sends the same bytes.
#ifndef PESTLE_PJRT_KNOWN_H_
#define PESTLE_PJRT_KNOWN_H_

#include "pjrt/program.h"

// What a program is made of. Borrowed.
typedef struct pestle_pjrt_source_t {
  const char* code;
  size_t size;
  const pestle_pjrt_options_t* options;
  bool has_callback;  // of Python: such programs are not kept
} pestle_pjrt_source_t;

typedef struct pestle_pjrt_known_t pestle_pjrt_known_t;

// An empty table; NULL when out of memory.
pestle_pjrt_known_t* pestle_pjrt_known_create(void);
void pestle_pjrt_known_release(pestle_pjrt_known_t* known);
// Notes that |source| is |plan|, which is retained, and |info|, which is copied;
// what was noted longest ago gives way. Not at all when out of memory.
void pestle_pjrt_known_add(pestle_pjrt_known_t* known,
                           const pestle_pjrt_source_t* source,
                           pestle_plan_t* plan,
                           const pestle_pjrt_program_info_t* info);
// A program of |client| from what is known of |source|; |*out_program| is NULL when
// nothing is.
PJRT_Error* pestle_pjrt_known_find(pestle_pjrt_known_t* known,
                                   const pestle_pjrt_source_t* source,
                                   PJRT_Client* client,
                                   const pestle_pjrt_options_t* options,
                                   pestle_pjrt_program_t** out_program);

#endif  // PESTLE_PJRT_KNOWN_H_

// SPDX-License-Identifier: Apache-2.0
// What a compilation made on the way, as files: jit(compiler_options={"pestle_dump":
// FOLDER}).
#ifndef PESTLE_PJRT_DUMP_H_
#define PESTLE_PJRT_DUMP_H_

#include "base/str.h"
#include "pestle/compile.h"
#include "pjrt/error.h"

typedef struct pestle_pjrt_dump_t {
  pestle_str_t folder;
  const char* program;
  size_t count;
  pestle_status_t status;  // the first failure
} pestle_pjrt_dump_t;

// pestle_compile_options_t.dump, with a pestle_pjrt_dump_t.
void pestle_pjrt_dump_receive(void* dump, pestle_stage_t stage,
                              const char* name, const char* text, size_t size);

#endif  // PESTLE_PJRT_DUMP_H_

// SPDX-License-Identifier: Apache-2.0
// What a user may choose when a client is made: create options of the framework
// first, then the environment.
#ifndef PESTLE_PJRT_SETTINGS_H_
#define PESTLE_PJRT_SETTINGS_H_

#include <stdbool.h>
#include <stdint.h>

#include "pestle/compile.h"
#include "pjrt/abi.h"

typedef enum pestle_pjrt_python_what_e {
  PESTLE_PJRT_PYTHON_CALL = 0,
  PESTLE_PJRT_PYTHON_HOLD = 1,    // a program that calls it was made
  PESTLE_PJRT_PYTHON_LET_GO = 2,  // and is gone
} pestle_pjrt_python_what_t;

// The Python side, which gives the address of one of these: it stays until the
// process ends. A call runs callback |index| on |input_count| tensors and fills
// the outputs; on failure it writes a sentence of at most |message_size| bytes,
// terminated, and returns non-zero.
typedef struct pestle_pjrt_python_t {
  int (*call)(int32_t what, int64_t index, const pestle_tensor_t* inputs,
              size_t input_count, const pestle_tensor_t* outputs,
              size_t output_count, char* message, size_t message_size);
  volatile int32_t is_alive;  // 0 as soon as the interpreter is about to end
} pestle_pjrt_python_t;

// When a sequence of executions that repeats is compiled as one program (merge.h).
typedef enum pestle_pjrt_merging_e {
  PESTLE_PJRT_MERGING_EARNED = 0,  // it has run for as long as that takes
  PESTLE_PJRT_MERGING_NEVER = 1,
  PESTLE_PJRT_MERGING_SOON = 2,  // as soon as it is found
} pestle_pjrt_merging_t;

typedef struct pestle_pjrt_settings_t {
  char device[64];  // as pestle_context_device() has it; "": the best there is
  char cache_dir[1024];
  bool has_cache_dir;
  char trace_file[1024];       // "": what PESTLE_TRACE says
  int32_t threads;             // 0: the library's choice
  int32_t cpu_devices;         // so many devices a CPU is; 0: one
  int32_t node_id, num_nodes;  // which process this is, of how many; 0: of one
  pestle_numerics_t numerics;
  bool no_fuse;
  bool strict;
  bool times;
  bool no_inline;  // every execution goes through the queue
  pestle_pjrt_merging_t merging;
  bool program_text;  // keep a program's text for compiled.as_text()
  const pestle_pjrt_python_t* python;  // or NULL: there is no Python side
} pestle_pjrt_settings_t;

// INVALID_ARGUMENT names the option or variable, and what it may be.
PJRT_Error* pestle_pjrt_settings_read(const PJRT_NamedValue* options,
                                      size_t option_count,
                                      pestle_pjrt_settings_t* out_settings);

#endif  // PESTLE_PJRT_SETTINGS_H_

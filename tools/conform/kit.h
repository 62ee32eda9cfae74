// SPDX-License-Identifier: Apache-2.0
// The conformance kit: each op of the table on each dtype that it takes, through
// one backend, against ir/ref.
#ifndef PESTLE_TOOLS_CONFORM_KIT_H_
#define PESTLE_TOOLS_CONFORM_KIT_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "pestle/pestle.h"

// From best to worst: a cell is what its worst instance is.
typedef enum kit_state_e {
  KIT_NONE = 0,     // the op does not take the dtype
  KIT_PASS,         // compiled by the backend, and right
  KIT_COMPILED,     // compiled by a target that has no device here: not run
  KIT_FALLBACK,     // right, but a kernel was built for the fallback backend
  KIT_UNSUPPORTED,  // neither
  KIT_WRONG,        // compiled, and wrong; or it failed in another way
  KIT_STATE_COUNT,
} kit_state_t;

typedef struct kit_cell_t {
  kit_state_t state;
  size_t instances;  // that were run
  char why[400];     // of the first instance in |state|
} kit_cell_t;

// What all workers write to, in memory that they share: a cell is one worker's.
typedef struct kit_results_t {
  atomic_uint next;   // the first cell that no worker has taken
  atomic_uint begun;  // how many were taken, of |total|
  unsigned total;
  atomic_bool compiles_only;  // the backend has no device here
  kit_cell_t cells[PESTLE_OP_COUNT][PESTLE_DTYPE_COUNT];
} kit_results_t;

typedef struct kit_t {
  const char* plugin;   // its file or name, as it was given
  const char* folders;  // where backends are looked for
  const char* cpu;      // compiled for, or NULL: the device's own
  kit_results_t* results;
  // A worker's own.
  const char* backend;  // its name
  pestle_context_t *strict, *lenient;
  kit_cell_t* cell;  // the one at work
} kit_t;

extern kit_t kit;

// Says that an instance of the cell at work came out as |state|.
void kit_note(kit_state_t state, const char* format, ...) PESTLE_PRINTF(2, 3);

// Compiles |module| for the backend, or with its fallback: KIT_PASS or
// KIT_FALLBACK and an executable, else what it is, which is noted, and NULL.
kit_state_t kit_compile(pestle_module_t* module, const char* what,
                        pestle_executable_t** out_executable);

// Fill the cell of |op| and |dtype|.
void kit_run_scalar(pestle_op_t op, pestle_dtype_t dtype);
void kit_run_structured(pestle_op_t op, pestle_dtype_t dtype);

// |size| zeroed bytes that child processes share; NULL with a message.
void* kit_share(size_t size);

// Fills the cells of the ops that |takes| by |jobs| child processes: where a
// backend ends one of them, the cell at work is wrong and says how, and another
// process goes on. Returns 0, or the exit code when no worker can work.
int kit_work(unsigned jobs, bool (*takes)(pestle_op_t op));

#endif  // PESTLE_TOOLS_CONFORM_KIT_H_

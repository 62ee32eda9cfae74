// SPDX-License-Identifier: Apache-2.0
// One execution: execute.c takes its arguments, queue.c runs it, and merge.c may
// keep it for a while in between.
#ifndef PESTLE_PJRT_EXECUTION_H_
#define PESTLE_PJRT_EXECUTION_H_

#include "pjrt/buffer.h"
#include "pjrt/program.h"

// How many arguments and results need no allocation.
enum { PESTLE_PJRT_FEW = 48 };

// Arrays have an entry for each input and output of the executable, without
// tokens.
typedef struct pestle_pjrt_execution_t {
  pestle_pjrt_program_t* program;
  PJRT_Device* device;
  pestle_world_t* world;          // as whom it runs, or NULL
  PJRT_Buffer* const* arguments;  // tokens too; the caller's, during the call
  size_t input_count, output_count;
  pestle_buffer_view_t* inputs;
  bool* is_ours;  // of each input: it is consumed, and its memory may be used
  uint32_t* donated;
  size_t donated_count;
  size_t held;    // so many inputs have been taken hold of
  bool is_ready;  // all inputs are
  pestle_buffer_t** outputs;
  PJRT_Buffer** results;  // of all outputs, tokens too
  PJRT_Event* done;       // NULL: it is over
  bool is_queued;         // |done| is set by whoever runs it
  void* block;            // of the arrays, if they are not few
  size_t block_size;
  pestle_buffer_view_t few_inputs[PESTLE_PJRT_FEW];
  bool few_ours[PESTLE_PJRT_FEW];
  uint32_t few_donated[PESTLE_PJRT_FEW];
  pestle_buffer_t* few_outputs[PESTLE_PJRT_FEW];
  PJRT_Buffer* few_results[PESTLE_PJRT_FEW];
} pestle_pjrt_execution_t;

// --- execute.c ---

// Takes hold of the arguments, makes the event and the results: what a run that
// does not take place now needs. On failure all is given back.
PJRT_Error* pestle_pjrt_execution_prepare(pestle_pjrt_execution_t* e,
                                          const PJRT_ExecuteOptions* options);
// A copy on the heap that outlives the call, with holds of the program and of the
// results; NULL when out of memory.
pestle_pjrt_execution_t* pestle_pjrt_execution_keep(
    const pestle_pjrt_execution_t* e);
// Frees that copy, and what it holds.
void pestle_pjrt_execution_free(pestle_pjrt_execution_t* e);
// Lets go of the inputs, but for those that went with the run if that took place.
void pestle_pjrt_execution_drop_inputs(pestle_pjrt_execution_t* e,
                                       bool has_run);
// Whether |options| let argument |index| be donated.
bool pestle_pjrt_may_donate(const PJRT_ExecuteOptions* options, size_t index);

// --- queue.c ---

// Runs |e| on this thread, and learns from it how long that takes.
PJRT_Error* pestle_pjrt_run_here(pestle_pjrt_execution_t* e);
// Queues |e| on the device's stream; e->done is set when it has run.
PJRT_Error* pestle_pjrt_run_queued(pestle_pjrt_execution_t* e);
// Whether |e| is to be run by its caller.
bool pestle_pjrt_is_inline(const pestle_pjrt_execution_t* e);
// Queues one run of |program|; |events|, of which there are |count|, are set when it
// is over, and released.
typedef struct pestle_pjrt_run_t {
  pestle_pjrt_program_t* program;
  PJRT_Device* device;
  pestle_world_t* world;  // or NULL
  const pestle_buffer_view_t* inputs;
  size_t input_count;
  pestle_buffer_t** outputs;
  size_t output_count;
  const uint32_t* donated;
  size_t donated_count;
} pestle_pjrt_run_t;
PJRT_Error* pestle_pjrt_submit(const pestle_pjrt_run_t* run,
                               PJRT_Event* const* events, size_t count);
// The same on this thread, at once.
PJRT_Error* pestle_pjrt_run_now(const pestle_pjrt_run_t* run, int64_t* out_ns);

#endif  // PESTLE_PJRT_EXECUTION_H_

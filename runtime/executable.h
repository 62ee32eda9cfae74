// SPDX-License-Identifier: Apache-2.0
// A plan loaded on its devices, and what a run of it needs.
//
// A frame is the memory of one run: arena, scratch, the resolved address of
// every binding. Frames are pooled, so that a run allocates nothing once as
// many frames exist as runs overlap. The addresses of arena and constants are
// filled in when a frame is made; a run only adds those of inputs and outputs.
//
// The pool of frames is an array of atomic pointers: a run takes one by
// exchanging it for NULL. There is no lock, so a fork() at any moment leaves a
// child with a sound pool.
#ifndef PESTLE_RUNTIME_EXECUTABLE_H_
#define PESTLE_RUNTIME_EXECUTABLE_H_

#include "base/arena.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/plan.h"
#include "runtime/view.h"

enum { PESTLE_FRAME_SLOTS = 64 };

typedef struct pestle_exec_kernel_t {
  pestle_cpu_entry_t entry;
  const void* entry_self;
  pestle_device_t* device;
  pestle_loaded_t* loaded;  // NULL when another row owns it
  const char* name;
  const char* trace_note;  // graph ops and schedule; NULL: no trace
  int64_t group;           // indices of the group loop
  int32_t threads;  // at most so many are worth waking; 1: the caller alone
  bool used;        // by a step
} pestle_exec_kernel_t;

// A binding that a run resolves: bindings[binding] = io base + offset.
typedef struct pestle_exec_patch_t {
  uint32_t binding;
  uint32_t io;  // inputs, then outputs
  uint64_t offset;
} pestle_exec_patch_t;

typedef struct pestle_frame_t {
  size_t bytes;           // of this block
  pestle_block_t* arena;  // NULL until a run needs it
  pestle_block_t* scratch;
  pestle_block_t* staging;  // copies of views that are not used in place
  void** bindings;          // addresses; a launch passes a part of them
  char** io;                // base addresses of inputs, then outputs
  pestle_view_range_t* ranges;
  size_t* staged;  // offset in |staging|, or SIZE_MAX: in place
  bool* dense;
  bool* donated;    // of inputs
  bool* allocated;  // of outputs: made by this run
} pestle_frame_t;

struct pestle_executable_s {
  pestle_refcount_t refcount;
  pestle_context_t* context;
  pestle_plan_t* plan;
  pestle_arena_t arena;  // tables below
  pestle_device_t** devices;
  size_t device_count;
  size_t input_count, output_count, io_count;
  pestle_exec_io_t* io;  // inputs, then outputs
  pestle_exec_kernel_t* kernels;
  size_t kernel_count;
  const pestle_plan_step_t* steps;  // in the plan
  const pestle_plan_binding_t* bindings;
  size_t binding_count;
  pestle_exec_patch_t* patches;
  size_t patch_count;
  const char** trace_labels;  // of the steps; NULL: no trace
  size_t arena_size, scratch_size;
  bool loops;    // has jumps back
  bool counted;  // its use of the plan's constants
  _Atomic(pestle_frame_t*) frames[PESTLE_FRAME_SLOTS];
};

// What a run was asked for, every field present.
typedef struct pestle_run_t {
  pestle_run_options_t options;
  pestle_control_t control;
} pestle_run_t;

// --- executable_load.c ---

// Fills the kernels of |executable|, whose devices are set.
PESTLE_NODISCARD pestle_status_t
pestle_executable_load_kernels(pestle_executable_t* executable);
void pestle_executable_unload_kernels(pestle_executable_t* executable);
// Sets the devices that the plan names, |device| among them unless NULL, and
// checks that they can run it.
PESTLE_NODISCARD pestle_status_t pestle_executable_find_devices(
    pestle_executable_t* executable, pestle_device_t* device);

// --- frame.c ---

// A frame for the caller alone, with inputs and outputs unset.
PESTLE_NODISCARD pestle_status_t
pestle_frame_take(pestle_executable_t* executable, pestle_frame_t** out_frame);
void pestle_frame_give(pestle_executable_t* executable, pestle_frame_t* frame);
// Makes arena and scratch, once a frame.
PESTLE_NODISCARD pestle_status_t
pestle_frame_prepare(pestle_executable_t* executable, pestle_frame_t* frame);
void pestle_frame_destroy_all(pestle_executable_t* executable);

// --- execute.c ---

// Walks the steps of a prepared frame whose bindings are set.
PESTLE_NODISCARD pestle_status_t pestle_execute(pestle_executable_t* executable,
                                                pestle_frame_t* frame,
                                                const pestle_run_t* run);

// --- run.c ---

// A run whose views and options were checked before: the worker of a stream
// calls it. |donated| has a flag for each input; |allocated| for each output.
PESTLE_NODISCARD pestle_status_t pestle_run_checked(
    pestle_executable_t* executable, const pestle_tensor_t* inputs,
    pestle_tensor_t* outputs, const bool* donated, const bool* allocated,
    const pestle_run_t* run);

// --- output.c ---

// Allocates an output and fills |out_tensor|; shape and strides lie in the same
// block as the data.
PESTLE_NODISCARD pestle_status_t
pestle_output_create(pestle_executable_t* executable,
                     const pestle_exec_io_t* io, pestle_tensor_t* out_tensor);
// Writes what a run left outside of a view to it: copies back, real extents.
PESTLE_NODISCARD pestle_status_t
pestle_output_finish(pestle_executable_t* executable, pestle_frame_t* frame,
                     size_t index, pestle_tensor_t* tensor);

// --- stream.c ---

PESTLE_NODISCARD pestle_status_t pestle_stream_push_run(
    pestle_stream_t* stream, pestle_executable_t* executable,
    const pestle_tensor_t* inputs, const pestle_tensor_t* outputs,
    const bool* donated, const bool* allocated, const pestle_run_t* run);
// OK when runs of |executable| can be queued on it.
PESTLE_NODISCARD pestle_status_t pestle_stream_accepts(
    const pestle_stream_t* stream, const pestle_executable_t* executable);

#endif  // PESTLE_RUNTIME_EXECUTABLE_H_

// SPDX-License-Identifier: Apache-2.0
// A plan loaded on its devices, and what a run of it needs.
//
// A frame is the memory of one run: arena, scratch, the resolved address of
// every binding. Frames are pooled, so that a run allocates nothing once as
// many frames exist as runs overlap. The addresses of arena and constants are
// filled in when a frame is made; a run only adds those of inputs and outputs.
//
// An executable runs at home on its plan's first device. If that is a CPU, so
// are all others, and they share the host's memory. If it is not, arena and
// constants lie in its memory, a run queues its steps on a stream, and kernels
// that the home's backend refused run on a CPU with their bindings copied there
// and back (staged.c).
//
// The pool of frames is an array of atomic pointers: a run takes one by
// exchanging it for NULL. There is no lock, so a fork() at any moment leaves a
// child with a sound pool.
#ifndef PESTLE_RUNTIME_EXECUTABLE_H_
#define PESTLE_RUNTIME_EXECUTABLE_H_

#include "base/arena.h"
#include "pestle/custom_call.h"
#include "pestle/strings.h"
#include "runtime/arena_pool.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/plan.h"
#include "runtime/queue.h"
#include "runtime/view.h"

enum {
  PESTLE_FRAME_SLOTS = 64,
  // Recordings that a frame keeps at most: fewer of plans of many steps.
  PESTLE_RECORDINGS = 64,
};

// What a trace says of a step; the trace's own.
typedef struct pestle_trace_texts_t {
  const char* label;
  const char* note;  // a kernel's, and the numbers of locations; or NULL
} pestle_trace_texts_t;

typedef struct pestle_exec_kernel_t {
  pestle_cpu_entry_t entry;
  const void* entry_self;
  pestle_device_t* device;
  pestle_loaded_t* loaded;      // NULL when another row owns it
  const pestle_loaded_t* code;  // what a launch names
  const char* name;
  int64_t group;    // indices of the group loop
  bool empty;       // it does nothing
  int32_t threads;  // at most so many are worth waking; 1: the caller alone
  bool staged;      // runs on a CPU away from home
} pestle_exec_kernel_t;

// A call of a plan.
typedef struct pestle_exec_call_t {
  pestle_custom_call_fn_t function;  // NULL: an op of |library|
  void* user;
  const pestle_backend_t* library;
  pestle_library_view_t* views;  // of the same tensors
  uint32_t flags;
  const char *name, *config, *dictionary;
  const char* const* computations;
  size_t computation_count;
  const pestle_custom_attrs_t* attrs;  // of an eval; else NULL
  bool device_memory;
  bool staged;               // its tensors are copied to the host
  pestle_tensor_t* tensors;  // operands, then results; without addresses
  uint32_t operand_count, result_count;
} pestle_exec_call_t;

// A binding that a run resolves: bindings[binding] = io base + offset.
typedef struct pestle_exec_patch_t {
  uint32_t binding;
  uint32_t io;  // inputs, then outputs
  uint64_t offset;
} pestle_exec_patch_t;

// The steps of a plan as one launch, for the addresses of one run, and its world where
// they have collectives.
typedef struct pestle_recording_t {
  pestle_device_graph_t* graph;  // NULL: the addresses were seen once
  const struct pestle_world_s* world;
  struct pestle_comm_recording_t*
      collective;  // instead of |graph| where |world| is set
  uint64_t used;   // the later the greater; 0: free
  char** io;
} pestle_recording_t;

typedef struct pestle_exec_part_t pestle_exec_part_t;

// A piece of memory away from home that a staged launch works on a copy of.
typedef struct pestle_stage_t {
  uintptr_t begin, end;
  size_t offset;  // of |begin| in the copy
} pestle_stage_t;

typedef struct pestle_frame_t {
  size_t bytes;           // of this block
  pestle_block_t* arena;  // NULL until a run needs it, or while none has it
  pestle_block_t* scratch;
  char* base;                          // of the arena that bindings point into
  pestle_arena_piece_t* piece;         // of the pool, while a run has it
  const pestle_arena_piece_t* latest;  // that it had; only compared
  pestle_block_t* staging;  // copies of views that are not used in place
  void** bindings;          // addresses; a launch passes a part of them
  int32_t partition;        // whose parts of constants are among them
  uint32_t* trips;          // done of each loop whose trips are known
  uint64_t flow;            // of the launch under way, for the trace
  char** io;                // base addresses of inputs, then outputs
  pestle_view_range_t* ranges;
  pestle_io_range_t* sorted;  // scratch of a run that looks for overlaps
  size_t* staged;             // offset in |staging|, or SIZE_MAX: in place
  bool* dense;
  bool* remote;     // views in the memory of the home, which is not a CPU
  bool* copied;     // not to be used in place, though it could be
  bool* donated;    // of inputs
  bool* allocated;  // of outputs: made by this run
  // Views of buffers, in the executable's order: all but their addresses.
  pestle_tensor_t* given;
  pestle_tensor_t* tensors;       // of the call that runs
  pestle_library_view_t* views;   // or these
  pestle_strings_t* strings;      // of the run
  pestle_strings_t* own_strings;  // of runs that are not given any, or NULL

  // -- collectives --
  uint64_t*
      numbers;  // of the plan's that run beside other steps, in the run under way
  bool overlaps;  // it has such

  // -- away from the host --
  pestle_queue_t own;           // of runs that wait
  uint64_t stream;              // number of the latest stream; 0: |own|
  pestle_device_event_t* done;  // NULL until a run does not wait
  uint64_t done_count;          // its value after the latest of them
  bool queued;                  // that may not have come yet
  pestle_block_t* host;         // copies of views, on the host
  size_t* host_offsets;         // in |host|, or SIZE_MAX
  pestle_block_t* stage;        // of staged launches, on the host
  void** stage_buffers;
  pestle_stage_t* stages;
  uint64_t runs;       // that looked for a recording
  size_t recorded_at;  // which the latest of them found or took
  pestle_recording_t recordings[PESTLE_RECORDINGS];
} pestle_frame_t;

struct pestle_executable_s {
  pestle_refcount_t refcount;
  pestle_context_t* context;
  pestle_plan_t* plan;
  pestle_arena_t arena;  // tables below
  pestle_device_t** devices;
  size_t device_count;
  pestle_device_t* home;  // devices[0]
  pestle_device_t* host;  // whose memory is the host's; |home| if that is one
  pestle_device_constant_t** constants;  // at home; NULL when that is a CPU
  size_t
      part_count;  // of the plan: constants that are not alike in all processes
  _Atomic(pestle_exec_part_t*)* parts;  // of each partition, once it has run
  size_t input_count, output_count, io_count;
  pestle_exec_io_t* io;  // inputs, then outputs
  pestle_exec_kernel_t* kernels;
  size_t kernel_count;
  pestle_exec_call_t* calls;
  size_t call_count;
  size_t call_args;  // most tensors that one has
  // Of the first call that reads or makes strings (own_words.h), the dictionary where no
  // input or output has it; NULL: there is no such call.
  const char* own_dictionary;
  bool needs_strings;                           // of the caller
  uint64_t dictionary_hash;                     // of inputs and outputs
  const pestle_plan_collective_t* collectives;  // in the plan
  const int32_t* groups;                        // likewise
  uint64_t* group_hashes;                       // away from CPUs, of each
  // overlap.c: of each step whether it is a collective that runs beside others, and the
  // one that it waits for, plus 1; 0: none. NULL: nothing runs beside.
  const bool* beside;
  const uint32_t* waits;
  const pestle_plan_step_t* steps;  // in the plan
  const pestle_plan_binding_t* bindings;
  size_t binding_count;
  size_t repeat_count;  // steps of that kind
  pestle_exec_patch_t* patches;
  size_t patch_count;
  pestle_trace_texts_t* trace_texts;  // of the steps; NULL: no trace
  size_t arena_size, scratch_size;
  pestle_arena_pool_t* pool;      // of arenas; NULL: frames have their own
  bool loops;                     // has jumps back
  bool has_aliases;               // an output begins as an input
  bool counted;                   // its use of the plan's constants
  bool owned;                     // by the context: see runtime/owned.h
  bool remote;                    // the home is not a CPU
  size_t recordings;              // of its steps that a frame keeps; 0: none
  bool needs_host;                // it must look into a run, or do a part of it
  bool slow_copies;               // a queued copy waits for the device
  atomic_bool no_recording;       // the backend refused one
  size_t stage_size, stage_args;  // most that a staged launch needs
  _Atomic(pestle_frame_t*) frames[PESTLE_FRAME_SLOTS];
};

// What a run was asked for, every field present.
typedef struct pestle_run_t {
  pestle_run_options_t options;
  pestle_control_t control;
  uint64_t flow;  // from who queued it, for the trace; 0: none
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

// --- executable_part.c ---

PESTLE_NODISCARD pestle_status_t
pestle_executable_find_parts(pestle_executable_t* executable);
void pestle_executable_drop_parts(pestle_executable_t* executable);
// Which partition a rank of |world|, which may be NULL, is; 0 where the plan has no parts.
int32_t pestle_executable_partition(const pestle_executable_t* executable,
                                    const struct pestle_world_s* world);
// Takes the parts of constants that |partition| has; nothing where it was done before.
PESTLE_NODISCARD pestle_status_t pestle_executable_take_parts(
    const pestle_executable_t* executable, int32_t partition);
// Where |binding|, of a part, lies for a partition whose parts were taken: at home, or on
// the host.
char* pestle_executable_part(const pestle_executable_t* executable,
                             int32_t partition,
                             const pestle_plan_binding_t* binding,
                             bool on_host);

// --- strings.c ---

// Whether the plan reads or makes strings, once its calls are found.
PESTLE_NODISCARD pestle_status_t
pestle_executable_find_strings(pestle_executable_t* executable);
// Whether a run may have |strings|, which may be NULL.
PESTLE_NODISCARD pestle_status_t pestle_executable_check_strings(
    const pestle_executable_t* executable, const pestle_strings_t* strings);
// Sets those of |frame|'s run, or makes some where nobody sees them.
PESTLE_NODISCARD pestle_status_t
pestle_frame_set_strings(pestle_executable_t* executable, pestle_frame_t* frame,
                         pestle_strings_t* strings);

// --- call.c ---

// Finds the functions of the plan's calls; the devices are set.
PESTLE_NODISCARD pestle_status_t
pestle_executable_find_calls(pestle_executable_t* executable);
// Calls, with the tensors at |buffers|; |queue| is NULL where the home is a CPU.
PESTLE_NODISCARD pestle_status_t pestle_call(pestle_executable_t* executable,
                                             pestle_frame_t* frame,
                                             const pestle_queue_t* queue,
                                             const pestle_plan_step_t* step,
                                             void* const* buffers);

// --- collective.c ---

// Finds the plan's collectives; the home is set.
PESTLE_NODISCARD pestle_status_t
pestle_executable_find_collectives(pestle_executable_t* executable);
// Does a step of a collective as run->options.world on a CPU (|queue| is NULL), or
// queues it.
PESTLE_NODISCARD pestle_status_t
pestle_collective_step(pestle_executable_t* executable, pestle_frame_t* frame,
                       const pestle_queue_t* queue,
                       const pestle_plan_step_t* step, const pestle_run_t* run);
// Whether |world|, which may be NULL, fits the plan.
PESTLE_NODISCARD pestle_status_t pestle_executable_check_world(
    const pestle_executable_t* executable, struct pestle_world_s* world);
// Ends the world of a run that has failed: others need not wait for it.
void pestle_run_leave_world(const pestle_run_t* run, pestle_status_t failure);

// --- frame.c ---

// A frame for the caller alone, with inputs and outputs unset, for a rank of |world|,
// which was checked (NULL: none). What was queued with it before is done, or was queued
// on |stream| (0: none).
PESTLE_NODISCARD pestle_status_t pestle_frame_take(
    pestle_executable_t* executable, uint64_t stream,
    const struct pestle_world_s* world, pestle_frame_t** out_frame);
void pestle_frame_give(pestle_executable_t* executable, pestle_frame_t* frame);
// Makes arena and scratch, once a frame.
PESTLE_NODISCARD pestle_status_t
pestle_frame_prepare(pestle_executable_t* executable, pestle_frame_t* frame);
void pestle_frame_destroy_all(pestle_executable_t* executable);
// Whether what was queued with |frame| may not be done.
bool pestle_frame_is_busy(const pestle_executable_t* executable,
                          const pestle_frame_t* frame);
// Waits for what was queued with |frame|.
PESTLE_NODISCARD pestle_status_t
pestle_frame_wait(const pestle_executable_t* executable, pestle_frame_t* frame);

// --- execute.c ---

// Walks the steps of a prepared frame whose bindings are set.
PESTLE_NODISCARD pestle_status_t pestle_execute(pestle_executable_t* executable,
                                                pestle_frame_t* frame,
                                                const pestle_run_t* run);

// Runs a kernel's code on a CPU: 0, or the trap.
int32_t pestle_launch_host(pestle_executable_t* executable,
                           pestle_frame_t* frame,
                           const pestle_plan_step_t* step, void* const* buffers,
                           int32_t cap);
pestle_trace_texts_t pestle_step_trace_texts(
    const pestle_executable_t* executable, const pestle_plan_step_t* step);
PESTLE_NODISCARD pestle_status_t
pestle_step_trapped(const pestle_executable_t* executable,
                    const pestle_plan_step_t* step, int32_t trap);
// CANCELLED or DEADLINE_EXCEEDED when it is time.
PESTLE_NODISCARD pestle_status_t
pestle_run_look_at_control(const pestle_control_t* control, uint32_t step);
// Where a jump goes whose scalar is at |data|.
uint32_t pestle_step_jump(const pestle_executable_t* executable, uint32_t step,
                          const void* data);
// Where a step of a loop whose trips are known goes. All are 0 before the first step.
uint32_t pestle_step_repeat(const pestle_executable_t* executable,
                            pestle_frame_t* frame, uint32_t step);
void pestle_step_repeats_begin(const pestle_executable_t* executable,
                               pestle_frame_t* frame);

// --- execute_device.c ---

// Queues the steps of a prepared frame on |queue|.
PESTLE_NODISCARD pestle_status_t
pestle_execute_device(pestle_executable_t* executable, pestle_frame_t* frame,
                      const pestle_queue_t* queue, const pestle_run_t* run);

// --- staged.c ---

// Runs a kernel of a CPU away from it: waits for |queue|, copies what it is
// bound to, runs it and queues copies of what it wrote.
PESTLE_NODISCARD pestle_status_t pestle_launch_staged(
    pestle_executable_t* executable, pestle_frame_t* frame,
    const pestle_queue_t* queue, const pestle_plan_step_t* step, int32_t cap);

// Calls a function that wants the host's memory, in the same way.
PESTLE_NODISCARD pestle_status_t
pestle_call_staged(pestle_executable_t* executable, pestle_frame_t* frame,
                   const pestle_queue_t* queue, const pestle_plan_step_t* step);

// --- recording.c ---

// Queues all steps of |frame| as one recording if there is one for its
// addresses and |world| (NULL: no step is a collective); |*out_done| says so. |walk| queues them one by one, to be recorded.
PESTLE_NODISCARD pestle_status_t pestle_recording_run(
    pestle_executable_t* executable, pestle_frame_t* frame,
    const pestle_queue_t* queue, struct pestle_world_s* world,
    pestle_status_t (*walk)(pestle_executable_t* executable,
                            pestle_frame_t* frame, const pestle_queue_t* queue,
                            struct pestle_world_s* world),
    bool* out_done);
void pestle_recordings_destroy(const pestle_executable_t* executable,
                               pestle_frame_t* frame);

// --- run_device.c ---

// Brings inputs home, executes and takes outputs back. Waits where the host must
// see what comes next, and at the end unless |stream| (not of a CPU) is given and
// nothing is left for the host to do.
PESTLE_NODISCARD pestle_status_t
pestle_run_device(pestle_executable_t* executable, pestle_frame_t* frame,
                  pestle_stream_t* stream, const pestle_tensor_t* inputs,
                  pestle_tensor_t* outputs, const pestle_run_t* run);
// Whether the bytes of input |io| lie where the steps have them: in the storage of
// the output that begins as the input.
static inline bool pestle_frame_is_alias(const pestle_executable_t* executable,
                                         const pestle_frame_t* frame, size_t io,
                                         const char* storage) {
  return frame->dense[io] && frame->remote[io] == executable->remote &&
         (const char*)frame->ranges[io].begin == storage;
}
// Whether a view is used in place.
static inline bool pestle_frame_in_place(const pestle_executable_t* executable,
                                         const pestle_frame_t* frame,
                                         size_t io) {
  return frame->dense[io] && !frame->copied[io] &&
         !(frame->ranges[io].begin & executable->io[io].misaligned);
}

// --- run.c ---

PESTLE_NODISCARD pestle_status_t pestle_run_check_counts(
    const pestle_executable_t* executable, const void* inputs,
    size_t input_count, const void* outputs, size_t output_count);
// Copies what the caller's |control| (may be NULL) has of fields.
PESTLE_NODISCARD pestle_status_t pestle_run_read_control(
    const pestle_control_t* control, pestle_control_t* out_control);
// Of the context's device with that number, or what DLPack calls it.
const char* pestle_run_device_text(pestle_context_t* context,
                                   pestle_dl_device_t dl, char out_text[64]);
// Whether a step may read |input| for the last time before one writes |output|.
static inline bool pestle_exec_is_apart(const pestle_executable_t* executable,
                                        const pestle_exec_io_t* input,
                                        const pestle_exec_io_t* output) {
  return !executable->loops && (input->first_step > input->last_step ||
                                input->last_step < output->first_step);
}
// Checks the views of a run, whose flags in |frame| are set, and binds them to it.
PESTLE_NODISCARD pestle_status_t pestle_run_bind(
    const pestle_executable_t* executable, const pestle_tensor_t* inputs,
    const pestle_tensor_t* outputs, pestle_frame_t* frame);
// Runs with bound views: on |stream|, which is of the home's and which the caller
// acts for, or (NULL) until all is done.
PESTLE_NODISCARD pestle_status_t
pestle_run_frame(pestle_executable_t* executable, pestle_frame_t* frame,
                 pestle_stream_t* stream, const pestle_tensor_t* inputs,
                 pestle_tensor_t* outputs, const pestle_run_t* run);
// Whether the device is waited for between steps, to look at the time or at flags.
static inline bool pestle_run_is_timed(const pestle_executable_t* executable,
                                       const pestle_run_t* run) {
  return run->options.on_step || executable->context->core.trace ||
         run->control.cancel || run->control.deadline_ns;
}

// --- output.c ---

// Allocates an output at home or on the host and fills |out_tensor|; shape and
// strides lie on the host in any case.
PESTLE_NODISCARD pestle_status_t pestle_output_create(
    pestle_executable_t* executable, const pestle_exec_io_t* io, bool remote,
    pestle_tensor_t* out_tensor);
// Checks real extents against their bounds.
PESTLE_NODISCARD pestle_status_t
pestle_output_check_extents(const pestle_exec_io_t* io, const int64_t* dims);
// Packs a bounded output from |source|, laid out by its bounds, to |target|,
// which a view of the host has; the view's shape becomes |dims|.
void pestle_output_pack(const pestle_exec_io_t* io, const int64_t* dims,
                        const void* source, bool allocated, char* target,
                        pestle_tensor_t* tensor);
// Writes what a run left outside of a view to it: copies back, real extents.
PESTLE_NODISCARD pestle_status_t
pestle_output_finish(pestle_executable_t* executable, pestle_frame_t* frame,
                     size_t index, pestle_tensor_t* tensor);

#endif  // PESTLE_RUNTIME_EXECUTABLE_H_

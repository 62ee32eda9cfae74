// SPDX-License-Identifier: Apache-2.0
// The interpreter of plans on CPUs: a flat list of steps whose addresses are
// resolved. (execute_device.c has the one for other devices.)
//
// A kernel's group loop is cut into pieces, each of which computes what it
// would compute alone; how many pieces and threads there are changes nothing in
// the results.
#include <inttypes.h>
#include <string.h>

#include "base/thread.h"
#include "runtime/executable.h"
#include "runtime/fpu_x86.h"
#include "runtime/overlap.h"
#include "runtime/progress.h"

// Pieces a thread: so that one that starts late finds less left to do.
#define PIECES_PER_THREAD 4

// --- Launches ---

typedef struct launch_t {
  const pestle_exec_kernel_t* kernel;
  void* const* buffers;
  char* scratch;
  size_t scratch_size;
  int64_t pieces;
  pestle_trace_t* trace;  // NULL: off
  const char* label;      // of the step, for the trace
  uint64_t flow;          // from the step to its pieces
  atomic_int trap;        // of any piece
} launch_t;

static int64_t piece_begin(const launch_t* launch, int64_t piece) {
  int64_t whole = launch->kernel->group / launch->pieces;
  int64_t rest = launch->kernel->group % launch->pieces;
  return piece * whole + (piece < rest ? piece : rest);
}

// Of an executable that was made while the trace was on, as all are that run
// while it is.
pestle_trace_texts_t pestle_step_trace_texts(const pestle_executable_t* e,
                                             const pestle_plan_step_t* step) {
  return e->trace_texts[step - e->steps];
}

static void trace_piece(const launch_t* launch, int64_t begin_ns, int64_t first,
                        int64_t end) {
  pestle_trace_span_t span = {.category = "piece",
                              .name = launch->label,
                              .begin_ns = begin_ns,
                              .keys = {"first", "count"},
                              .values = {first, end - first},
                              .flow_in = launch->flow};
  pestle_trace_add(launch->trace, &span);
}

static void run_piece(void* arg, int32_t participant, int64_t piece) {
  launch_t* launch = arg;
  const pestle_exec_kernel_t* kernel = launch->kernel;
  if (atomic_load_explicit(&launch->trap, memory_order_relaxed)) return;
  char* scratch = launch->scratch ? launch->scratch + (size_t)participant *
                                                          launch->scratch_size
                                  : NULL;
  int64_t first = piece_begin(launch, piece);
  int64_t end = piece_begin(launch, piece + 1);
  int64_t begin_ns = launch->trace ? pestle_clock_ns() : 0;
  pestle_fpu_t fpu = pestle_fpu_enter();
  int32_t trap = kernel->entry(kernel->entry_self, launch->buffers, NULL, first,
                               end, scratch);
  pestle_fpu_leave(fpu);
  if (launch->trace) trace_piece(launch, begin_ns, first, end);
  if (trap) {
    atomic_store_explicit(&launch->trap, trap, memory_order_relaxed);
  }
}

int32_t pestle_launch_host(pestle_executable_t* e, pestle_frame_t* frame,
                           const pestle_plan_step_t* step, void* const* buffers,
                           int32_t cap) {
  const pestle_exec_kernel_t* kernel = &e->kernels[step->kernel];
  char* scratch = frame->scratch ? frame->scratch->data : NULL;
  int32_t threads = kernel->threads < cap ? kernel->threads : cap;
  if (threads <= 1) {
    if (kernel->group <= 0) return 0;
    return kernel->entry(kernel->entry_self, buffers, NULL, 0, kernel->group,
                         scratch);
  }
  launch_t launch = {.kernel = kernel,
                     .buffers = buffers,
                     .scratch = scratch,
                     .scratch_size = e->scratch_size,
                     .pieces = (int64_t)threads * PIECES_PER_THREAD,
                     .trace = e->context->core.trace,
                     .flow = frame->flow};
  if (launch.trace) launch.label = pestle_step_trace_texts(e, step).label;
  if (launch.pieces > kernel->group) launch.pieces = kernel->group;
  atomic_init(&launch.trap, 0);
  pestle_pool_run(&e->context->pool, launch.pieces, threads, run_piece,
                  &launch);
  return atomic_load_explicit(&launch.trap, memory_order_relaxed);
}

static int32_t launch_kernel(pestle_executable_t* e, pestle_frame_t* frame,
                             const pestle_plan_step_t* step, int32_t cap) {
  pestle_trace_t* trace = e->context->core.trace;
  void* const* buffers = frame->bindings + step->first;
  if (!trace) return pestle_launch_host(e, frame, step, buffers, cap);
  const pestle_exec_kernel_t* kernel = &e->kernels[step->kernel];
  int32_t threads = kernel->threads < cap ? kernel->threads : cap;
  pestle_trace_texts_t texts = pestle_step_trace_texts(e, step);
  pestle_trace_span_t span = {.category = "kernel",
                              .name = texts.label,
                              .detail = texts.note,
                              .begin_ns = pestle_clock_ns(),
                              .keys = {"group", "threads"},
                              .values = {kernel->group, threads},
                              .flow_out = pestle_trace_flow(trace)};
  frame->flow = span.flow_out;
  int32_t trap = pestle_launch_host(e, frame, step, buffers, cap);
  pestle_trace_add(trace, &span);
  return trap;
}

pestle_status_t pestle_step_trapped(const pestle_executable_t* e,
                                    const pestle_plan_step_t* step,
                                    int32_t trap) {
  return PESTLE_ERROR(INTERNAL,
                      "kernel '%s' (%s) stopped at its check %" PRId32,
                      e->kernels[step->kernel].name,
                      pestle_plan_text(e->plan, step->label), trap);
}

// --- Control ---

pestle_status_t pestle_run_look_at_control(const pestle_control_t* control,
                                           uint32_t step) {
  if (control->cancel && __atomic_load_n(control->cancel, __ATOMIC_RELAXED)) {
    return PESTLE_ERROR(CANCELLED, "the run was cancelled before step %" PRIu32,
                        step);
  }
  if (control->deadline_ns && pestle_clock_ns() >= control->deadline_ns) {
    return PESTLE_ERROR(DEADLINE_EXCEEDED,
                        "the run's deadline passed before step %" PRIu32, step);
  }
  return NULL;
}

static bool is_zero(const pestle_plan_binding_t* binding, const void* data) {
  if (binding->size == 1) return *(const unsigned char*)data == 0;
  int32_t value;
  memcpy(&value, data, sizeof(value));
  return value == 0;
}

static uint32_t table_target(const pestle_plan_step_t* step, const void* data) {
  int32_t value;
  memcpy(&value, data, sizeof(value));
  bool inside = value >= 0 && (uint32_t)value < step->count;
  return step->target + (inside ? (uint32_t)value : step->count - 1);
}

uint32_t pestle_step_jump(const pestle_executable_t* e, uint32_t index,
                          const void* data) {
  const pestle_plan_step_t* step = &e->steps[index];
  if (step->kind == PESTLE_PLAN_JUMP_TABLE) return table_target(step, data);
  return is_zero(&e->bindings[step->first], data) ? step->target : index + 1;
}

uint32_t pestle_step_repeat(const pestle_executable_t* e, pestle_frame_t* frame,
                            uint32_t index) {
  const pestle_plan_step_t* step = &e->steps[index];
  uint32_t* done = &frame->trips[step->kernel];
  if (++*done < step->count) return step->target;
  *done = 0;  // it may be met again, inside of another loop
  return index + 1;
}

void pestle_step_repeats_begin(const pestle_executable_t* e,
                               pestle_frame_t* frame) {
  // A run that failed has left some.
  if (e->repeat_count)
    memset(frame->trips, 0, e->repeat_count * sizeof(*frame->trips));
}

// --- Steps ---

static void copy(pestle_executable_t* e, pestle_frame_t* frame,
                 const pestle_plan_step_t* step) {
  size_t size = e->bindings[step->first].size;
  pestle_trace_t* trace = e->context->core.trace;
  int64_t begin_ns = trace ? pestle_clock_ns() : 0;
  // CPUs share the host's memory.
  memmove(frame->bindings[step->first + 1], frame->bindings[step->first], size);
  if (!trace) return;
  pestle_trace_texts_t texts = pestle_step_trace_texts(e, step);
  pestle_trace_span_t span = {.category = "copy",
                              .name = texts.label,
                              .detail = texts.note,
                              .begin_ns = begin_ns,
                              .keys = {"bytes"},
                              .values = {(int64_t)size}};
  pestle_trace_add(trace, &span);
}

// Runs step |index| and says which is next; UINT32_MAX after the last.
static pestle_status_t run_step(pestle_executable_t* e, pestle_frame_t* frame,
                                uint32_t index, int32_t cap,
                                const pestle_run_t* run, uint32_t* out_next) {
  const pestle_plan_step_t* step = &e->steps[index];
  *out_next = index + 1;
  switch ((pestle_plan_step_kind_t)step->kind) {
    case PESTLE_PLAN_LAUNCH: {
      int32_t trap = launch_kernel(e, frame, step, cap);
      return trap ? pestle_step_trapped(e, step, trap) : NULL;
    }
    case PESTLE_PLAN_COPY:
      copy(e, frame, step);
      return NULL;
    case PESTLE_PLAN_CALL:
      return pestle_call(e, frame, NULL, step, frame->bindings + step->first);
    case PESTLE_PLAN_COLLECTIVE:
      return pestle_collective_step(e, frame, NULL, step, run);
    case PESTLE_PLAN_JUMP:
      *out_next = step->target;
      return NULL;
    case PESTLE_PLAN_JUMP_IF_ZERO:
    case PESTLE_PLAN_JUMP_TABLE:
      *out_next = pestle_step_jump(e, index, frame->bindings[step->first]);
      return NULL;
    case PESTLE_PLAN_REPEAT:
      *out_next = pestle_step_repeat(e, frame, index);
      return NULL;
    case PESTLE_PLAN_END:
      *out_next = UINT32_MAX;
      return NULL;
  }
  return PESTLE_ERROR(INTERNAL, "step %" PRIu32 " has an unknown kind", index);
}

static pestle_status_t run_timed_step(pestle_executable_t* e,
                                      pestle_frame_t* frame, uint32_t index,
                                      int32_t cap, const pestle_run_t* run,
                                      uint32_t* out_next) {
  const pestle_run_options_t* options = &run->options;
  int64_t begin = pestle_clock_ns();
  PESTLE_TRY(run_step(e, frame, index, cap, run, out_next));
  options->on_step(options->on_step_user, index, begin, pestle_clock_ns());
  return NULL;
}

static pestle_status_t walk(pestle_executable_t* e, pestle_frame_t* frame,
                            const pestle_run_t* run) {
  const pestle_run_options_t* options = &run->options;
  const pestle_control_t* control = &run->control;
  bool controlled = control->cancel || control->deadline_ns;
  int32_t cap = e->context->core.threads;
  if (options->threads > 0 && options->threads < cap) cap = options->threads;
  int64_t total = (int64_t)pestle_plan_header(e->plan)->steps.count;
  if (e->own_dictionary)
    PESTLE_TRY(pestle_frame_set_strings(e, frame, options->strings));
  pestle_step_repeats_begin(e, frame);
  frame->overlaps = e->beside && !options->on_step && !e->context->core.trace &&
                    pestle_progress_may(options->world);
  for (uint32_t step = 0; step != UINT32_MAX;) {
    uint32_t next;
    if (controlled) PESTLE_TRY(pestle_run_look_at_control(control, step));
    PESTLE_TRY(pestle_overlap_wait(e, frame, NULL, step, options->world));
    if (options->on_step) {
      PESTLE_TRY(run_timed_step(e, frame, step, cap, run, &next));
    } else {
      PESTLE_TRY(run_step(e, frame, step, cap, run, &next));
    }
    if (control->progress) {
      control->progress(control->progress_user, "run",
                        next == UINT32_MAX ? total : (int64_t)step + 1, total);
    }
    step = next;
  }
  return NULL;
}

pestle_status_t pestle_execute(pestle_executable_t* executable,
                               pestle_frame_t* frame, const pestle_run_t* run) {
  pestle_fpu_t fpu = pestle_fpu_enter();
  pestle_status_t status = walk(executable, frame, run);
  pestle_fpu_leave(fpu);
  if (status && frame->overlaps) {
    // Others need not come, and nothing of the frame is used any more.
    pestle_world_abort(run->options.world, status);
    pestle_progress_drain(run->options.world);
  }
  return status;
}

// SPDX-License-Identifier: Apache-2.0
// The interpreter of plans on a device other than a CPU: steps are queued, and
// waited for only where the host must see what they wrote.
#include <inttypes.h>

#include "base/thread.h"
#include "runtime/overlap.h"

// A run that may be cancelled is never further ahead of the device.
#define STEPS_AHEAD 16

static pestle_status_t launch(pestle_executable_t* e, pestle_frame_t* frame,
                              const pestle_queue_t* queue,
                              const pestle_plan_step_t* step, int32_t cap) {
  const pestle_exec_kernel_t* kernel = &e->kernels[step->kernel];
  if (kernel->empty) return NULL;
  if (kernel->staged) {
    return pestle_launch_staged(e, frame, queue, step, cap);
  }
  pestle_launch_t what = {.struct_size = sizeof(what),
                          .loaded = kernel->code,
                          .buffers = frame->bindings + step->first,
                          .buffer_count = step->count};
  return pestle_status_annotate(
      pestle_queue_launch(queue, &what),
      "while launching kernel '%s' (%s) on device %s", kernel->name,
      pestle_plan_text(e->plan, step->label), e->home->name);
}

// A function that wants no stream, or has none, is called when all before it is
// done.
static pestle_status_t call(pestle_executable_t* e, pestle_frame_t* frame,
                            const pestle_queue_t* queue,
                            const pestle_plan_step_t* step) {
  if (e->calls[step->kernel].staged) {
    return pestle_call_staged(e, frame, queue, step);
  }
  if (!queue->stream) PESTLE_TRY(pestle_queue_wait(queue));
  return pestle_call(e, frame, queue, step, frame->bindings + step->first);
}

static pestle_status_t jump(pestle_executable_t* e, pestle_frame_t* frame,
                            const pestle_queue_t* queue, uint32_t index,
                            const pestle_run_t* run, uint32_t* out_next) {
  const pestle_plan_step_t* step = &e->steps[index];
  int32_t word = 0;  // an i1 or an i32
  PESTLE_TRY(pestle_queue_to_host(queue, frame->bindings[step->first], &word,
                                  (size_t)e->bindings[step->first].size));
  PESTLE_TRY(pestle_queue_wait(queue));
  // What a broken collective left may be a loop without an end.
  PESTLE_TRY(pestle_device_comm_check(run->options.world));
  *out_next = pestle_step_jump(e, index, &word);
  return NULL;
}

// Queues step |index| and says which is next; UINT32_MAX after the last.
static pestle_status_t queue_step(pestle_executable_t* e, pestle_frame_t* frame,
                                  const pestle_queue_t* queue, uint32_t index,
                                  int32_t cap, const pestle_run_t* run,
                                  uint32_t* out_next) {
  const pestle_plan_step_t* step = &e->steps[index];
  *out_next = index + 1;
  switch ((pestle_plan_step_kind_t)step->kind) {
    case PESTLE_PLAN_LAUNCH:
      return launch(e, frame, queue, step, cap);
    case PESTLE_PLAN_CALL:
      return call(e, frame, queue, step);
    case PESTLE_PLAN_COLLECTIVE:
      return pestle_collective_step(e, frame, queue, step, run);
    case PESTLE_PLAN_COPY:
      return pestle_queue_copy(queue, frame->bindings[step->first],
                               frame->bindings[step->first + 1],
                               (size_t)e->bindings[step->first].size);
    case PESTLE_PLAN_JUMP:
      *out_next = step->target;
      return NULL;
    case PESTLE_PLAN_JUMP_IF_ZERO:
    case PESTLE_PLAN_JUMP_TABLE:
      return jump(e, frame, queue, index, run, out_next);
    case PESTLE_PLAN_REPEAT:
      *out_next = pestle_step_repeat(e, frame, index);
      return NULL;
    case PESTLE_PLAN_END:
      *out_next = UINT32_MAX;
      return NULL;
  }
  return PESTLE_ERROR(INTERNAL, "step %" PRIu32 " has an unknown kind", index);
}

static void trace_step(const pestle_executable_t* e,
                       const pestle_plan_step_t* step, int64_t begin_ns) {
  pestle_trace_texts_t texts = pestle_step_trace_texts(e, step);
  pestle_trace_span_t span = {
      .name = texts.label, .detail = texts.note, .begin_ns = begin_ns};
  if (step->kind == PESTLE_PLAN_COPY) {
    span.category = "copy";
    span.keys[0] = "bytes";
    span.values[0] = (int64_t)e->bindings[step->first].size;
  } else if (step->kind == PESTLE_PLAN_LAUNCH) {
    const pestle_exec_kernel_t* kernel = &e->kernels[step->kernel];
    span.category = kernel->staged ? "fallback" : "kernel";
    span.keys[0] = "group";
    span.values[0] = kernel->group;
  } else {
    return;
  }
  pestle_trace_add(e->context->core.trace, &span);
}

// A step from when the device is ready for it until it is done.
static pestle_status_t queue_timed_step(
    pestle_executable_t* e, pestle_frame_t* frame, const pestle_queue_t* queue,
    uint32_t index, int32_t cap, const pestle_run_t* run, uint32_t* out_next) {
  const pestle_run_options_t* options = &run->options;
  int64_t begin = pestle_clock_ns();
  PESTLE_TRY(queue_step(e, frame, queue, index, cap, run, out_next));
  PESTLE_TRY(pestle_queue_wait(queue));
  if (e->context->core.trace) trace_step(e, &e->steps[index], begin);
  if (options->on_step) {
    options->on_step(options->on_step_user, index, begin, pestle_clock_ns());
  }
  return NULL;
}

static pestle_status_t walk(pestle_executable_t* e, pestle_frame_t* frame,
                            const pestle_queue_t* queue,
                            const pestle_run_t* run) {
  const pestle_run_options_t* options = &run->options;
  const pestle_control_t* control = &run->control;
  bool controlled = control->cancel || control->deadline_ns;
  bool timed = options->on_step || e->context->core.trace;
  frame->overlaps = e->beside && !timed &&
                    pestle_device_comm_overlaps(options->world, e->home);
  int32_t cap = e->context->core.threads;
  if (options->threads > 0 && options->threads < cap) cap = options->threads;
  int64_t total = (int64_t)pestle_plan_header(e->plan)->steps.count;
  if (e->own_dictionary)
    PESTLE_TRY(pestle_frame_set_strings(e, frame, options->strings));
  // Of another run, or what brings the inputs.
  if (timed) PESTLE_TRY(pestle_queue_wait(queue));
  uint32_t ahead = 0;
  pestle_step_repeats_begin(e, frame);
  for (uint32_t step = 0; step != UINT32_MAX;) {
    uint32_t next;
    if (controlled && ++ahead > STEPS_AHEAD) {
      PESTLE_TRY(pestle_queue_wait(queue));
      ahead = 1;
    }
    if (controlled) PESTLE_TRY(pestle_run_look_at_control(control, step));
    PESTLE_TRY(pestle_overlap_wait(e, frame, queue, step, options->world));
    if (timed) {
      PESTLE_TRY(queue_timed_step(e, frame, queue, step, cap, run, &next));
    } else {
      PESTLE_TRY(queue_step(e, frame, queue, step, cap, run, &next));
    }
    if (control->progress) {
      control->progress(control->progress_user, "run",
                        next == UINT32_MAX ? total : (int64_t)step + 1, total);
    }
    step = next;
  }
  return NULL;
}

static pestle_status_t walk_plain(pestle_executable_t* e, pestle_frame_t* frame,
                                  const pestle_queue_t* queue,
                                  pestle_world_t* world) {
  const pestle_run_t plain = {.options = {.world = world}};
  return walk(e, frame, queue, &plain);
}

pestle_status_t pestle_execute_device(pestle_executable_t* e,
                                      pestle_frame_t* frame,
                                      const pestle_queue_t* queue,
                                      const pestle_run_t* run) {
  const pestle_control_t* control = &run->control;
  bool watched = run->options.on_step || e->context->core.trace ||
                 control->cancel || control->deadline_ns || control->progress;
  bool done = false;
  // NULL: none of the steps is a collective.
  pestle_world_t* world = e->group_hashes ? run->options.world : NULL;
  bool records =
      e->recordings && (!world || pestle_device_comm_records(world, e->home));
  if (!watched && records)
    PESTLE_TRY(pestle_recording_run(e, frame, queue, world, walk_plain, &done));
  return done ? NULL : walk(e, frame, queue, run);
}

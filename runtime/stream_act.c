// SPDX-License-Identifier: Apache-2.0
// What whoever acts for a stream does: runs, signals and waits, and what their
// failures leave behind.
#include "base/hash.h"
#include "base/status_copy.h"
#include "runtime/stream.h"

// --- Failures ---

void pestle_stream_act_fail(pestle_stream_t* stream, pestle_status_t status) {
  if (stream->failure) {
    pestle_status_release(status);  // The first is what is reported.
  } else {
    stream->failure = status;
  }
}

// What was written cannot be told from what was not.
static void lose(pestle_stream_t* stream, pestle_status_t why) {
  if (!stream->lost) stream->lost = pestle_status_retain(why);
}

static const void* place_of(const pestle_executable_t* e,
                            const pestle_frame_t* frame, size_t io) {
  return frame->remote[io] ? e->home : NULL;
}

// 0 where the view has no gaps.
static uint64_t layout_of(const pestle_executable_t* e,
                          const pestle_frame_t* frame, size_t io,
                          const pestle_tensor_t* view) {
  if (frame->dense[io] || !view->strides) return 0;
  size_t size = (size_t)e->io[io].info.rank * sizeof(int64_t);
  return pestle_hash64(view->strides, size) | 1;
}

static pestle_poison_range_t range_of(const pestle_stream_t* stream,
                                      const pestle_executable_t* e,
                                      const pestle_frame_t* frame, size_t io,
                                      const pestle_tensor_t* view) {
  return (pestle_poison_range_t){.place = place_of(e, frame, io),
                                 .begin = frame->ranges[io].begin,
                                 .end = frame->ranges[io].end,
                                 .layout = layout_of(e, frame, io, view),
                                 .stream = stream->number};
}

// The failure of what the run reads, or NULL.
static pestle_status_t find_poison(const pestle_stream_t* stream,
                                   const pestle_executable_t* e,
                                   const pestle_frame_t* frame) {
  pestle_poison_t* poison = &e->context->poison;
  if (stream->lost) return pestle_status_retain(stream->lost);
  if (pestle_poison_is_empty(poison)) return NULL;
  for (size_t i = 0; i < e->input_count; ++i) {
    if (!e->io[i].size) continue;
    pestle_status_t found =
        pestle_poison_find(poison, place_of(e, frame, i),
                           frame->ranges[i].begin, frame->ranges[i].end);
    if (!found) continue;
    return pestle_status_annotate(
        found, "so input '%s' of plan '%s' holds no result", e->io[i].info.name,
        pestle_plan_text(e->plan, pestle_plan_header(e->plan)->name));
  }
  return NULL;
}

// Outputs, and what the run was allowed to overwrite.
static void poison(pestle_stream_t* stream, const pestle_executable_t* e,
                   const pestle_frame_t* frame, const pestle_tensor_t* inputs,
                   const pestle_tensor_t* outputs, pestle_status_t failure) {
  for (size_t i = 0; i < e->io_count; ++i) {
    bool is_input = i < e->input_count;
    if (!e->io[i].size || (is_input && !frame->donated[i])) continue;
    const pestle_tensor_t* view =
        is_input ? &inputs[i] : &outputs[i - e->input_count];
    pestle_poison_range_t range = range_of(stream, e, frame, i, view);
    pestle_status_t status =
        pestle_poison_add(&e->context->poison, &range, failure);
    if (status) lose(stream, failure);
    pestle_status_release(status);
  }
}

static void heal(const pestle_stream_t* stream, const pestle_executable_t* e,
                 const pestle_frame_t* frame, const pestle_tensor_t* outputs) {
  if (pestle_poison_is_empty(&e->context->poison)) return;
  for (size_t i = 0; i < e->output_count; ++i) {
    pestle_poison_range_t range =
        range_of(stream, e, frame, e->input_count + i, &outputs[i]);
    pestle_poison_heal(&e->context->poison, &range);
  }
}

// --- Waits ---

static bool is_of_backend(const pestle_stream_t* stream,
                          const pestle_completion_t* completion) {
  const pestle_device_t* device = completion->timeline->device;
  return stream->native.stream && device &&
         device->backend == stream->device->backend;
}

static pestle_status_t wait_for(const pestle_stream_t* stream,
                                pestle_completion_t* completion) {
  if (!is_of_backend(stream, completion)) {
    return pestle_completion_wait(completion);
  }
  PESTLE_TRY(pestle_completion_wait_queued(completion));
  if (pestle_completion_state(completion) == PESTLE_COMPLETION_DONE) {
    return pestle_completion_wait(completion);
  }
  return pestle_completion_wait_native(completion, stream->device,
                                       stream->native.stream);
}

bool pestle_stream_may_wait(const pestle_stream_t* stream,
                            const pestle_completion_t* completion) {
  pestle_completion_state_t state = pestle_completion_state(completion);
  return completion->timeline == stream->timeline ||
         state == PESTLE_COMPLETION_DONE ||
         (state == PESTLE_COMPLETION_QUEUED &&
          is_of_backend(stream, completion));
}

void pestle_stream_act_wait(pestle_stream_t* stream,
                            pestle_completion_t* completion) {
  if (completion->timeline == stream->timeline) return;
  pestle_status_t status = wait_for(stream, completion);
  if (status) {
    lose(stream, status);
    pestle_stream_act_fail(stream, status);
  }
  if (completion->lost) lose(stream, completion->lost);
  // The caller of that stream was told of the failure, and what it poisoned is
  // forgotten; this stream's was not.
  if (completion->epoch != atomic_load(&completion->timeline->epoch)) {
    status = pestle_completion_known_failure(completion);
    if (status) lose(stream, status);
    pestle_status_release(status);
  }
}

// --- Signals ---

static bool queues_signals(const pestle_stream_t* stream) {
  return stream->native.stream && pestle_device_has_events(stream->device);
}

bool pestle_stream_may_signal(const pestle_stream_t* stream) {
  return queues_signals(stream);
}

static pestle_status_t bring_about(pestle_stream_t* stream,
                                   pestle_completion_t* completion) {
  if (queues_signals(stream)) {
    return pestle_completion_queue(completion, stream->native.stream);
  }
  pestle_status_t status = pestle_queue_wait(&stream->native);
  // What the backend tells it forgets.
  pestle_stream_act_fail(stream, pestle_status_retain(status));
  pestle_completion_finish(completion, status);
  return NULL;
}

pestle_status_t pestle_stream_act_signal(pestle_stream_t* stream,
                                         pestle_completion_t* completion) {
  pestle_completion_settle(completion, pestle_status_retain(stream->failure),
                           pestle_status_retain(stream->lost));
  return bring_about(stream, completion);
}

// --- Runs ---

static pestle_status_t wait_for_all(pestle_stream_t* stream,
                                    const pestle_run_order_t* order) {
  for (size_t i = 0; i < order->wait_count; ++i) {
    pestle_completion_t* c = order->waits[i];
    if (c->timeline != stream->timeline) PESTLE_TRY(wait_for(stream, c));
    PESTLE_TRY(pestle_completion_known_failure(c));
  }
  return NULL;
}

static void tell(pestle_stream_t* stream, const pestle_run_order_t* order,
                 pestle_status_t failure) {
  if (!order || !order->done) return;
  pestle_completion_settle(order->done, pestle_status_retain(failure), NULL);
  pestle_stream_act_fail(stream, bring_about(stream, order->done));
}

void pestle_stream_act_failed(pestle_stream_t* stream,
                              const pestle_run_order_t* order,
                              pestle_status_t failure) {
  tell(stream, order, failure);
  if (!order || !order->done) lose(stream, failure);
  pestle_stream_act_fail(stream, failure);
}

void pestle_stream_act_run(pestle_stream_t* stream, pestle_executable_t* e,
                           pestle_frame_t* frame, const pestle_tensor_t* inputs,
                           pestle_tensor_t* outputs, const pestle_run_t* run,
                           const pestle_run_order_t* order,
                           pestle_status_t* out_failure) {
  pestle_status_t failure = order ? wait_for_all(stream, order) : NULL;
  if (!failure) failure = find_poison(stream, e, frame);
  if (!failure) {
    failure = pestle_run_frame(e, frame, stream->native.stream ? stream : NULL,
                               inputs, outputs, run);
  }
  pestle_run_leave_world(run, failure);
  if (!failure) {
    heal(stream, e, frame, outputs);
  } else if (!order || !order->done) {
    poison(stream, e, frame, inputs, outputs, failure);
  }
  tell(stream, order, failure);
  *out_failure = failure;
  pestle_stream_act_fail(stream, pestle_status_retain(failure));
}

// Views that are used in place, or copied within the device. Copies from and to
// the host go through pinned memory of which backends have a little: who queues
// many waits for it.
static bool stays_home(const pestle_executable_t* e,
                       const pestle_frame_t* frame) {
  for (size_t i = 0; i < e->io_count; ++i) {
    if (!e->io[i].size) continue;
    if (!frame->dense[i] || !frame->remote[i]) return false;
    if (e->slow_copies && !pestle_frame_in_place(e, frame, i)) return false;
  }
  return true;
}

bool pestle_stream_may_run(const pestle_stream_t* stream,
                           const pestle_executable_t* e,
                           const pestle_frame_t* frame, const pestle_run_t* run,
                           const pestle_run_order_t* order) {
  if (!stream->native.stream || e->needs_host || pestle_run_is_timed(e, run) ||
      !stays_home(e, frame)) {
    return false;
  }
  for (size_t i = 0; order && i < order->wait_count; ++i) {
    if (!pestle_stream_may_wait(stream, order->waits[i])) return false;
  }
  return true;
}

// SPDX-License-Identifier: Apache-2.0
// Whole plans as one launch. A recording holds addresses: those of the frame's
// arena and of the executable's constants never change, those of inputs and
// outputs are its key. The rule: addresses that are seen for the first time are
// launched step by step; the second time the steps are recorded; from then on
// there is one launch a run, also of a plan of one kernel: to launch a recording takes
// the host half of what a kernel's launch takes (1.7 and 3.3 us on an H200). Of more
// sets of addresses than it keeps the one that was not used for longest is
// forgotten, unless it may still be running. A backend that
// refuses a recording is not asked again by this executable. Nothing is waited for:
// the frame's own stream, on which nothing else is queued, records for all others.
#include <string.h>

#include "runtime/executable.h"

// Begins with the latest: most runs use it again, or the one that was made after it.
static pestle_recording_t* find(const pestle_executable_t* e,
                                pestle_frame_t* frame) {
  size_t at = frame->recorded_at;
  for (size_t i = 0; i < e->recordings; ++i, ++at) {
    if (at == e->recordings) at = 0;
    pestle_recording_t* r = &frame->recordings[at];
    if (!r->used) continue;
    if (memcmp(r->io, frame->io, e->io_count * sizeof(*frame->io)) != 0)
      continue;
    frame->recorded_at = at;
    return r;
  }
  return NULL;
}

static void destroy(const pestle_executable_t* e, pestle_recording_t* r) {
  if (!r->graph) return;
  pestle_device_api(e->home)->graph_destroy(e->home->backend->self, r->graph);
  r->graph = NULL;
}

void pestle_recordings_destroy(const pestle_executable_t* e,
                               pestle_frame_t* frame) {
  for (size_t i = 0; i < PESTLE_RECORDINGS; ++i)
    destroy(e, &frame->recordings[i]);
}

// Takes the place of the one that was not used for longest.
static void remember(const pestle_executable_t* e, pestle_frame_t* frame) {
  pestle_recording_t* oldest = &frame->recordings[0];
  for (size_t i = 1; i < e->recordings; ++i) {
    pestle_recording_t* r = &frame->recordings[i];
    if (r->used < oldest->used) oldest = r;
  }
  if (oldest->graph && pestle_frame_is_busy(e, frame)) return;
  destroy(e, oldest);
  if (e->io_count) {
    memcpy(oldest->io, frame->io, e->io_count * sizeof(*frame->io));
  }
  oldest->used = frame->runs;
  frame->recorded_at = (size_t)(oldest - frame->recordings);
}

static pestle_status_t record(
    pestle_executable_t* e, pestle_frame_t* frame,
    pestle_status_t (*walk)(pestle_executable_t* executable,
                            pestle_frame_t* frame, const pestle_queue_t* queue),
    pestle_device_graph_t** out_graph) {
  const pestle_device_api_t* api = pestle_device_api(e->home);
  void* self = e->home->backend->self;
  *out_graph = NULL;
  if (!frame->own.device) PESTLE_TRY(pestle_queue_init(e->home, &frame->own));
  pestle_queue_t recorder = frame->own;
  recorder.records = true;
  PESTLE_TRY(api->graph_begin(self, recorder.stream));
  pestle_status_t status = walk(e, frame, &recorder);
  // In any case, or the stream would go on recording.
  pestle_device_graph_t* graph = NULL;
  status =
      pestle_status_join(status, api->graph_end(self, recorder.stream, &graph));
  if (status && graph) {
    api->graph_destroy(self, graph);
    graph = NULL;
  }
  if (!status) status = pestle_device_check_made(e->home, "graph_end()", graph);
  *out_graph = graph;
  return status;
}

pestle_status_t pestle_recording_run(
    pestle_executable_t* e, pestle_frame_t* frame, const pestle_queue_t* queue,
    pestle_status_t (*walk)(pestle_executable_t* executable,
                            pestle_frame_t* frame, const pestle_queue_t* queue),
    bool* out_done) {
  *out_done = false;
  if (!queue->stream ||
      atomic_load_explicit(&e->no_recording, memory_order_relaxed)) {
    return NULL;
  }
  ++frame->runs;
  pestle_recording_t* r = find(e, frame);
  if (!r) {
    remember(e, frame);
    return NULL;
  }
  r->used = frame->runs;
  if (!r->graph) {
    pestle_status_t status = record(e, frame, walk, &r->graph);
    if (status) {
      atomic_store(&e->no_recording, true);
      pestle_context_log_status(
          e->context, PESTLE_LOG_INFO,
          "a plan is launched step by step, since it cannot be recorded",
          status);
      return NULL;
    }
  }
  *out_done = true;
  return pestle_status_annotate(
      pestle_device_said(e->home,
                         pestle_device_api(e->home)->graph_launch(
                             e->home->backend->self, r->graph, queue->stream)),
      "while launching the recording of plan '%s' on device %s",
      pestle_plan_text(e->plan, pestle_plan_header(e->plan)->name),
      e->home->name);
}

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

#include "runtime/device_comm.h"

// Begins with the latest: most runs use it again, or the one that was made after it.
static pestle_recording_t* find(const pestle_executable_t* e,
                                pestle_frame_t* frame,
                                const pestle_world_t* world) {
  size_t at = frame->recorded_at;
  for (size_t i = 0; i < e->recordings; ++i, ++at) {
    if (at == e->recordings) at = 0;
    pestle_recording_t* r = &frame->recordings[at];
    if (!r->used || r->world != world) continue;
    if (memcmp(r->io, frame->io, e->io_count * sizeof(*frame->io)) != 0)
      continue;
    frame->recorded_at = at;
    return r;
  }
  return NULL;
}

static void destroy(const pestle_executable_t* e, pestle_recording_t* r) {
  pestle_comm_recording_destroy(r->collective);
  r->collective = NULL;
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
static void remember(const pestle_executable_t* e, pestle_frame_t* frame,
                     const pestle_world_t* world) {
  pestle_recording_t* oldest = &frame->recordings[0];
  for (size_t i = 1; i < e->recordings; ++i) {
    pestle_recording_t* r = &frame->recordings[i];
    if (r->used < oldest->used) oldest = r;
  }
  bool made = oldest->graph || oldest->collective;
  if (made && pestle_frame_is_busy(e, frame)) return;
  destroy(e, oldest);
  if (e->io_count) {
    memcpy(oldest->io, frame->io, e->io_count * sizeof(*frame->io));
  }
  oldest->world = world;
  oldest->used = frame->runs;
  frame->recorded_at = (size_t)(oldest - frame->recordings);
}

typedef pestle_status_t (*walk_fn_t)(pestle_executable_t* e,
                                     pestle_frame_t* frame,
                                     const pestle_queue_t* queue,
                                     pestle_world_t* world);

static pestle_status_t record(pestle_executable_t* e, pestle_frame_t* frame,
                              pestle_world_t* world, walk_fn_t walk,
                              pestle_recording_t* r) {
  const pestle_device_api_t* api = pestle_device_api(e->home);
  void* self = e->home->backend->self;
  pestle_comm_recording_t* collective = NULL;
  if (!frame->own.device) PESTLE_TRY(pestle_queue_init(e->home, &frame->own));
  pestle_queue_t recorder = frame->own;
  recorder.records = true;
  PESTLE_TRY(api->graph_begin(self, recorder.stream));
  pestle_status_t status = NULL;
  if (world) status = pestle_device_comm_record(world, &recorder, &collective);
  if (!status) status = walk(e, frame, &recorder, world);
  // In any case, or the stream would go on recording.
  pestle_device_graph_t* graph = NULL;
  status =
      pestle_status_join(status, api->graph_end(self, recorder.stream, &graph));
  if (status && graph) {
    api->graph_destroy(self, graph);
    graph = NULL;
  }
  if (!status) status = pestle_device_check_made(e->home, "graph_end()", graph);
  if (collective) {
    pestle_device_comm_recorded(world, collective, graph);
    if (graph) r->collective = collective;
  } else {
    r->graph = graph;
  }
  return status;
}

static pestle_status_t launch(const pestle_executable_t* e,
                              const pestle_queue_t* queue,
                              pestle_world_t* world,
                              const pestle_recording_t* r) {
  if (r->collective)
    return pestle_device_comm_launch(world, queue, r->collective);
  return pestle_device_said(
      e->home, pestle_device_api(e->home)->graph_launch(
                   e->home->backend->self, r->graph, queue->stream));
}

// One of a world that has ended is made anew by the next that has its place.
static bool is_made(pestle_recording_t* r) {
  if (!r->collective) return r->graph != NULL;
  if (pestle_comm_recording_is_there(r->collective)) return true;
  pestle_comm_recording_destroy(r->collective);
  r->collective = NULL;
  return false;
}

pestle_status_t pestle_recording_run(pestle_executable_t* e,
                                     pestle_frame_t* frame,
                                     const pestle_queue_t* queue,
                                     pestle_world_t* world, walk_fn_t walk,
                                     bool* out_done) {
  *out_done = false;
  if (!queue->stream ||
      atomic_load_explicit(&e->no_recording, memory_order_relaxed)) {
    return NULL;
  }
  ++frame->runs;
  pestle_recording_t* r = find(e, frame, world);
  if (!r) {
    remember(e, frame, world);
    return NULL;
  }
  r->used = frame->runs;
  if (!is_made(r)) {
    pestle_status_t status = record(e, frame, world, walk, r);
    if (status) {
      pestle_status_t ended = pestle_device_comm_check(world);
      if (ended) {
        pestle_status_release(status);
        return ended;
      }
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
      launch(e, queue, world, r),
      "while launching the recording of plan '%s' on device %s",
      pestle_plan_text(e->plan, pestle_plan_header(e->plan)->name),
      e->home->name);
}

// SPDX-License-Identifier: Apache-2.0
// A run on a device other than a CPU: what is not used in place is brought to
// the frame's staging memory there and back. What has gaps is packed and spread
// on the host.
#include <string.h>

#include "base/bits.h"
#include "runtime/device_comm.h"
#include "runtime/stream.h"

typedef struct device_run_t {
  pestle_executable_t* e;
  pestle_frame_t* frame;
  const pestle_queue_t* queue;
  bool host_work;  // is left when the device is done
} device_run_t;

// --- Memory ---

static bool is_spread(const device_run_t* r, size_t at) {
  return !r->frame->dense[at];
}

// Host memory that a view needs: all that one on the device spans, and its
// elements without gaps.
static size_t host_bytes(const device_run_t* r, size_t at) {
  const pestle_exec_io_t* io = &r->e->io[at];
  const pestle_view_range_t* range = &r->frame->ranges[at];
  size_t dense = pestle_align_up((size_t)io->size, 64);
  if (!io->size) return 0;
  if (io->info.bounded) return dense;
  if (!is_spread(r, at)) return 0;
  if (!r->frame->remote[at]) return dense;
  return dense + pestle_align_up(range->end - range->begin, 64);
}

static pestle_status_t reserve_host(device_run_t* r) {
  pestle_frame_t* frame = r->frame;
  size_t size = 0;
  for (size_t i = 0; i < r->e->io_count; ++i) {
    size_t bytes = host_bytes(r, i);
    frame->host_offsets[i] = size;
    if (__builtin_add_overflow(size, bytes, &size)) {
      return PESTLE_ERROR(OUT_OF_MEMORY, "the views to copy are too large");
    }
  }
  if (!size) return NULL;
  // An earlier run's copies may still be on their way.
  PESTLE_TRY(pestle_frame_wait(r->e, frame));
  if (frame->host && frame->host->size >= size) return NULL;
  pestle_device_free(r->e->host, frame->host);
  frame->host = NULL;
  return pestle_device_allocate(r->e->host, size, &frame->host);
}

static char* host_of(const device_run_t* r, size_t at) {
  return (char*)r->frame->host->data + r->frame->host_offsets[at];
}

// --- Inputs ---

// The elements of a view with gaps, on the host.
static pestle_status_t pack(device_run_t* r, size_t at,
                            const pestle_tensor_t* view,
                            const char** out_dense) {
  const pestle_exec_io_t* io = &r->e->io[at];
  const pestle_view_range_t* range = &r->frame->ranges[at];
  const char* source = pestle_view_data(view);
  char* dense = host_of(r, at);
  if (r->frame->remote[at]) {
    char* whole = dense + pestle_align_up((size_t)io->size, 64);
    PESTLE_TRY(pestle_queue_to_host(r->queue, (const void*)range->begin, whole,
                                    range->end - range->begin));
    PESTLE_TRY(pestle_queue_wait(r->queue));
    source = whole + ((uintptr_t)source - range->begin);
  }
  pestle_view_copy(io->info.rank, io->info.dims, io->element, source,
                   view->strides, dense, NULL);
  *out_dense = dense;
  return NULL;
}

static pestle_status_t bring(device_run_t* r, size_t at,
                             const pestle_tensor_t* view) {
  const pestle_exec_io_t* io = &r->e->io[at];
  const char* source = pestle_view_data(view);
  char* target = r->frame->io[at];
  if (is_spread(r, at)) {
    PESTLE_TRY(pack(r, at, view, &source));
  } else if (r->frame->remote[at]) {
    return pestle_queue_copy(r->queue, source, target, (size_t)io->size);
  }
  return pestle_queue_from_host(r->queue, source, target, (size_t)io->size);
}

// Brings what outputs begin as to their storage.
static pestle_status_t bind_aliases(device_run_t* r,
                                    const pestle_tensor_t* inputs) {
  const pestle_executable_t* e = r->e;
  pestle_frame_t* frame = r->frame;
  for (size_t i = 0; i < e->input_count; ++i) {
    const pestle_exec_io_t* io = &e->io[i];
    if (io->alias < 0 || !io->size) continue;
    char* storage = frame->io[e->input_count + (size_t)io->alias];
    const char* staged = frame->staged[i] == SIZE_MAX ? NULL : frame->io[i];
    bool there = pestle_frame_is_alias(e, frame, i, storage);
    frame->io[i] = storage;
    if (staged) {
      PESTLE_TRY(
          pestle_queue_copy(r->queue, staged, storage, (size_t)io->size));
    } else if (!there) {
      PESTLE_TRY(bring(r, i, &inputs[i]));
    }
  }
  return NULL;
}

static pestle_status_t bind_views(device_run_t* r,
                                  const pestle_tensor_t* inputs) {
  pestle_executable_t* e = r->e;
  pestle_frame_t* frame = r->frame;
  for (size_t i = 0; i < e->io_count; ++i) {
    if (!e->io[i].size) {
      frame->io[i] = frame->arena->data;  // Some address; nobody reads there.
    } else if (frame->staged[i] == SIZE_MAX) {
      frame->io[i] = (char*)frame->ranges[i].begin;
    } else {
      frame->io[i] = (char*)frame->staging->data + frame->staged[i];
      if (i < e->input_count) PESTLE_TRY(bring(r, i, &inputs[i]));
    }
  }
  if (e->has_aliases) PESTLE_TRY(bind_aliases(r, inputs));
  for (size_t i = 0; i < e->patch_count; ++i) {
    const pestle_exec_patch_t* patch = &e->patches[i];
    frame->bindings[patch->binding] = frame->io[patch->io] + patch->offset;
  }
  return NULL;
}

// --- Outputs ---

// Queues what brings output |at| to its view, if nothing must happen between.
static pestle_status_t take(device_run_t* r, size_t at,
                            const pestle_tensor_t* view) {
  const pestle_exec_io_t* io = &r->e->io[at];
  const char* source = r->frame->io[at];
  if (io->info.bounded) {
    r->host_work = true;
    return NULL;
  }
  if (r->frame->staged[at] == SIZE_MAX) return NULL;
  char* target = pestle_view_data(view);
  if (r->frame->remote[at]) {
    return pestle_queue_copy(r->queue, source, target, (size_t)io->size);
  }
  if (is_spread(r, at)) {
    r->host_work = true;
    target = host_of(r, at);
  }
  return pestle_queue_to_host(r->queue, source, target, (size_t)io->size);
}

// Whether an array of |dims| lies in one of its bounds without gaps.
static bool is_packed(const pestle_exec_io_t* io, const int64_t* dims) {
  for (int32_t i = 1; i < io->info.rank; ++i) {
    if (dims[i] != io->info.dims[i]) return false;
  }
  return true;
}

// A bounded output whose view is on the device. One without strides, and one
// that the run allocated, is packed to the real extents, which the host does.
static pestle_status_t finish_remote(device_run_t* r, size_t at,
                                     const int64_t* dims, bool allocated,
                                     pestle_tensor_t* tensor) {
  const pestle_exec_io_t* io = &r->e->io[at];
  const pestle_queue_t* queue = r->queue;
  bool packs = (allocated || !tensor->strides) && !is_packed(io, dims);
  char* target = pestle_view_data(tensor);
  int32_t rank = io->info.rank;
  size_t size = (size_t)io->size;
  if (packs && size) {
    char* host = host_of(r, at);
    int64_t strides[PESTLE_MAX_RANK];
    PESTLE_TRY(pestle_queue_to_host(queue, r->frame->io[at], host, size));
    PESTLE_TRY(pestle_queue_wait(queue));
    pestle_view_dense_strides(rank, io->info.dims, strides);
    pestle_view_copy(rank, dims, io->element, host, strides, host, NULL);
    PESTLE_TRY(pestle_queue_from_host(queue, host, target, size));
  } else {
    PESTLE_TRY(pestle_queue_copy(queue, r->frame->io[at], target, size));
  }
  PESTLE_TRY(pestle_queue_wait(queue));
  if (rank) memcpy(tensor->shape, dims, (size_t)rank * sizeof(*dims));
  if (allocated) pestle_view_dense_strides(rank, dims, tensor->strides);
  return NULL;
}

static pestle_status_t finish_bounded(device_run_t* r, size_t at,
                                      bool allocated, pestle_tensor_t* tensor) {
  const pestle_exec_io_t* io = &r->e->io[at];
  const pestle_queue_t* queue = r->queue;
  int64_t dims[PESTLE_MAX_RANK] = {0};
  PESTLE_TRY(pestle_queue_to_host(
      queue, (const char*)r->frame->arena->data + io->shape_offset, dims,
      (size_t)io->info.rank * sizeof(*dims)));
  PESTLE_TRY(pestle_queue_wait(queue));
  PESTLE_TRY(pestle_output_check_extents(io, dims));
  if (r->frame->remote[at]) {
    return finish_remote(r, at, dims, allocated, tensor);
  }
  char* host = io->size ? host_of(r, at) : NULL;
  PESTLE_TRY(
      pestle_queue_to_host(queue, r->frame->io[at], host, (size_t)io->size));
  PESTLE_TRY(pestle_queue_wait(queue));
  pestle_output_pack(io, dims, host, allocated, pestle_view_data(tensor),
                     tensor);
  return NULL;
}

// What is left for the host when the device is done.
static pestle_status_t finish(device_run_t* r, pestle_tensor_t* outputs) {
  for (size_t i = 0; i < r->e->output_count; ++i) {
    size_t at = r->e->input_count + i;
    const pestle_exec_io_t* io = &r->e->io[at];
    if (io->info.bounded) {
      PESTLE_TRY(finish_bounded(r, at, r->frame->allocated[i], &outputs[i]));
    } else if (io->size && is_spread(r, at)) {
      pestle_view_copy(io->info.rank, io->info.dims, io->element,
                       host_of(r, at), NULL, pestle_view_data(&outputs[i]),
                       outputs[i].strides);
    }
  }
  return NULL;
}

// --- The run ---

static pestle_status_t queue_all(device_run_t* r, const pestle_tensor_t* inputs,
                                 const pestle_tensor_t* outputs,
                                 const pestle_run_t* run) {
  PESTLE_TRY(reserve_host(r));
  PESTLE_TRY(bind_views(r, inputs));
  PESTLE_TRY(pestle_execute_device(r->e, r->frame, r->queue, run));
  for (size_t i = 0; i < r->e->output_count; ++i) {
    PESTLE_TRY(take(r, r->e->input_count + i, &outputs[i]));
  }
  return NULL;
}

// Lets the frame's event tell when what was queued is done.
static pestle_status_t leave_queued(const device_run_t* r, uint64_t stream) {
  pestle_frame_t* frame = r->frame;
  pestle_device_t* home = r->e->home;
  const pestle_device_api_t* api = pestle_device_api(home);
  if (!frame->done) {
    pestle_device_event_t* event = NULL;
    PESTLE_TRY(
        api->event_create(home->backend->self, home->local_index, &event));
    PESTLE_TRY(pestle_device_check_made(home, "event_create()", event));
    frame->done = event;
  }
  PESTLE_TRY(pestle_device_said(
      home, api->event_signal(home->backend->self, frame->done,
                              r->queue->stream, frame->done_count + 1)));
  ++frame->done_count;  // What will come: a wait for another would not end.
  frame->stream = stream;
  frame->queued = true;
  return NULL;
}

static pestle_status_t named(const device_run_t* r, pestle_status_t status) {
  return pestle_status_annotate(
      status, "while running plan '%s' on device %s",
      pestle_plan_text(r->e->plan, pestle_plan_header(r->e->plan)->name),
      r->e->home->name);
}

// What was queued still touches the frame and the views: on a stream both stay
// as they are until it is past that, else it is waited for.
static pestle_status_t give_up(const device_run_t* r, pestle_stream_t* stream,
                               pestle_status_t status) {
  pestle_status_t left = stream && pestle_device_has_events(r->e->home)
                             ? leave_queued(r, stream->number)
                             : pestle_queue_wait(r->queue);
  if (left && stream) pestle_status_release(pestle_queue_wait(r->queue));
  pestle_status_release(left);
  return named(r, status);
}

// Collectives that nobody looks at any more could wait for ever: all is waited for.
static pestle_status_t run_in_world(device_run_t* r, pestle_world_t* world,
                                    const pestle_tensor_t* inputs,
                                    pestle_tensor_t* outputs,
                                    const pestle_run_t* run) {
  pestle_device_comm_enter(world);
  pestle_status_t status = queue_all(r, inputs, outputs, run);
  if (status) {
    pestle_world_abort(world, status);  // others need not come
    // What runs beside still has the frame's memory.
    status = pestle_status_join(status,
                                pestle_device_comm_wait_all(world, r->queue));
  }
  status = pestle_status_join(status, pestle_queue_wait(r->queue));
  status = pestle_device_comm_leave(world, status);
  if (!status) status = finish(r, outputs);
  return named(r, status);
}

pestle_status_t pestle_run_device(pestle_executable_t* e, pestle_frame_t* frame,
                                  pestle_stream_t* stream,
                                  const pestle_tensor_t* inputs,
                                  pestle_tensor_t* outputs,
                                  const pestle_run_t* run) {
  pestle_queue_t theirs = {.device = e->home};
  if (stream) {
    theirs.stream = pestle_stream_native(stream);
  } else if (!frame->own.device) {
    PESTLE_TRY(pestle_queue_init(e->home, &frame->own));
  }
  device_run_t r = {
      .e = e, .frame = frame, .queue = stream ? &theirs : &frame->own};
  pestle_world_t* world = run->options.world;
  if (world && world->device_comms)
    return run_in_world(&r, world, inputs, outputs, run);
  pestle_status_t status = queue_all(&r, inputs, outputs, run);
  bool waits = !stream || r.host_work || !pestle_device_has_events(e->home);
  if (!status && !waits) {
    status = leave_queued(&r, stream->number);
    return status ? give_up(&r, stream, status) : NULL;
  }
  if (status) return give_up(&r, stream, status);
  status = pestle_queue_wait(r.queue);
  if (!status) status = finish(&r, outputs);
  return status ? give_up(&r, stream, status) : NULL;
}

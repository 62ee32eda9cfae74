// SPDX-License-Identifier: Apache-2.0
#include "runtime/event.h"

#include "base/mem.h"
#include "base/require.h"
#include "runtime/buffer.h"
#include "runtime/context.h"
#include "runtime/queue.h"
#include "runtime/stream.h"

struct pestle_event_s {
  pestle_device_t* device;
  pestle_completion_t* latest;  // NULL: never recorded
  pestle_timeline_t* own;       // of recordings without a stream; made with one
};

pestle_status_t pestle_event_create(pestle_device_t* device,
                                    pestle_event_t** out_event) {
  if (out_event) *out_event = NULL;
  PESTLE_REQUIRE(device && out_event, "a device and a place for the event");
  PESTLE_TRY(pestle_device_check_open(device));
  pestle_event_t* event =
      pestle_alloc_zero(device->context->core.allocator, sizeof(*event));
  if (!event) return PESTLE_OOM();
  pestle_context_retain(device->context);
  event->device = device;
  *out_event = event;
  return NULL;
}

void pestle_event_release(pestle_event_t* event) {
  if (!event) return;
  pestle_context_t* context = event->device->context;
  pestle_context_enter(context);
  pestle_completion_release(event->latest);
  pestle_timeline_release(event->own);
  pestle_dealloc(context->core.allocator, event, sizeof(*event));
  pestle_context_release(context);
}

pestle_completion_t* pestle_event_latest(const pestle_event_t* event) {
  return event->latest;
}

pestle_context_t* pestle_event_context(const pestle_event_t* event) {
  return event->device->context;
}

void pestle_event_set_latest(pestle_event_t* event,
                             pestle_completion_t* completion) {
  pestle_completion_release(event->latest);
  event->latest = completion;
}

pestle_status_t pestle_event_prepare(pestle_event_t* event,
                                     pestle_completion_t** out_completion) {
  PESTLE_TRY(pestle_device_check_open(event->device));
  if (!event->own) {
    PESTLE_TRY(
        pestle_timeline_create(event->device->context, NULL, &event->own));
  }
  return pestle_completion_create(event->own, out_completion);
}

// The caller's own work is done by now.
static pestle_status_t record_now(pestle_event_t* event) {
  pestle_completion_t* completion;
  PESTLE_TRY(pestle_event_prepare(event, &completion));
  pestle_completion_finish(completion, NULL);
  pestle_event_set_latest(event, completion);
  return NULL;
}

pestle_status_t pestle_event_record_buffer(pestle_event_t* event,
                                           pestle_buffer_t* buffer) {
  PESTLE_REQUIRE(event && buffer, "an event and a buffer");
  if (event->device->context != buffer->device->context) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the event and the buffer on device %s belong to two "
                        "contexts",
                        buffer->device->name);
  }
  pestle_completion_t* completion = pestle_buffer_defined(buffer);
  if (!completion) return record_now(event);
  pestle_event_set_latest(event, completion);
  return NULL;
}

pestle_status_t pestle_event_record(pestle_event_t* event,
                                    pestle_stream_t* stream) {
  PESTLE_REQUIRE(event, "an event");
  if (!stream) return record_now(event);
  PESTLE_TRY(pestle_stream_check(stream));
  pestle_completion_t* completion;
  PESTLE_TRY(pestle_completion_create(stream->timeline, &completion));
  pestle_event_set_latest(event, completion);
  return pestle_stream_signal(stream, completion);
}

// The latest recording, or INVALID_ARGUMENT: there is none to |what|.
static pestle_status_t need_latest(const pestle_event_t* event,
                                   const char* what,
                                   pestle_completion_t** out_completion) {
  *out_completion = event->latest;
  pestle_context_enter(event->device->context);
  if (event->latest) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "the event was never recorded: there is nothing to %s; "
                      "call pestle_event_record() first",
                      what);
}

pestle_status_t pestle_event_wait(pestle_event_t* event,
                                  pestle_stream_t* stream) {
  PESTLE_REQUIRE(event, "an event");
  pestle_completion_t* completion;
  PESTLE_TRY(need_latest(event, "wait for", &completion));
  if (!stream) return pestle_completion_wait(completion);
  PESTLE_TRY(pestle_stream_check(stream));
  return pestle_stream_wait(stream, completion);
}

bool pestle_event_is_signalled(const pestle_event_t* event) {
  if (!event || !event->latest) return false;
  pestle_context_enter(event->device->context);
  return pestle_completion_is_done(event->latest);
}

pestle_status_t pestle_event_status(const pestle_event_t* event) {
  PESTLE_REQUIRE(event, "an event");
  pestle_completion_t* completion;
  PESTLE_TRY(need_latest(event, "ask about", &completion));
  return pestle_completion_failure(completion);
}

pestle_status_t pestle_event_on_signalled(pestle_event_t* event,
                                          pestle_event_fn_t fn, void* self) {
  PESTLE_REQUIRE(event && fn, "an event and a function");
  pestle_completion_t* completion;
  PESTLE_TRY(need_latest(event, "be told of", &completion));
  return pestle_completion_on_done(completion, fn, self);
}

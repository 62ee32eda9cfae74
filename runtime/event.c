// SPDX-License-Identifier: Apache-2.0
#include "runtime/event.h"

#include "base/mem.h"
#include "base/require.h"
#include "base/thread.h"
#include "runtime/context.h"
#include "runtime/device.h"

struct pestle_event_s {
  pestle_refcount_t refcount;
  pestle_context_t* context;
  pestle_mutex_t mutex;
  pestle_cond_t signalled_more;
  uint64_t given;      // tickets
  uint64_t signalled;  // the latest one
};

pestle_status_t pestle_event_create(pestle_device_t* device,
                                    pestle_event_t** out_event) {
  if (out_event) *out_event = NULL;
  PESTLE_REQUIRE(device && out_event, "a device and a place for the event");
  pestle_context_t* context = device->context;
  pestle_event_t* event = pestle_alloc_zero(context->allocator, sizeof(*event));
  if (!event) return PESTLE_OOM();
  pestle_refcount_init(&event->refcount);
  pestle_context_retain(context);
  event->context = context;
  pestle_mutex_init(&event->mutex);
  pestle_cond_init(&event->signalled_more);
  *out_event = event;
  return NULL;
}

void pestle_event_retain(pestle_event_t* event) {
  pestle_refcount_retain(&event->refcount);
}

void pestle_event_release(pestle_event_t* event) {
  if (!event || !pestle_refcount_release(&event->refcount)) return;
  pestle_context_t* context = event->context;
  pestle_cond_deinit(&event->signalled_more);
  pestle_mutex_deinit(&event->mutex);
  pestle_dealloc(context->allocator, event, sizeof(*event));
  pestle_context_release(context);
}

uint64_t pestle_event_take_ticket(pestle_event_t* event) {
  pestle_mutex_lock(&event->mutex);
  uint64_t ticket = ++event->given;
  pestle_mutex_unlock(&event->mutex);
  return ticket;
}

uint64_t pestle_event_ticket(pestle_event_t* event) {
  pestle_mutex_lock(&event->mutex);
  uint64_t ticket = event->given;
  pestle_mutex_unlock(&event->mutex);
  return ticket;
}

void pestle_event_signal(pestle_event_t* event, uint64_t ticket) {
  pestle_mutex_lock(&event->mutex);
  if (event->signalled < ticket) event->signalled = ticket;
  pestle_cond_broadcast(&event->signalled_more);
  pestle_mutex_unlock(&event->mutex);
}

void pestle_event_wait_for(pestle_event_t* event, uint64_t ticket) {
  pestle_mutex_lock(&event->mutex);
  while (event->signalled < ticket) {
    pestle_cond_wait(&event->signalled_more, &event->mutex);
  }
  pestle_mutex_unlock(&event->mutex);
}

pestle_status_t pestle_event_record(pestle_event_t* event,
                                    pestle_stream_t* stream) {
  PESTLE_REQUIRE(event, "an event");
  if (stream) return pestle_stream_push_signal(stream, event);
  // The caller's own work is done by now.
  pestle_event_signal(event, pestle_event_take_ticket(event));
  return NULL;
}

pestle_status_t pestle_event_wait(pestle_event_t* event,
                                  pestle_stream_t* stream) {
  PESTLE_REQUIRE(event, "an event");
  uint64_t ticket = pestle_event_ticket(event);
  if (!ticket) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the event was never recorded: a wait for it would "
                        "not end");
  }
  if (stream) return pestle_stream_push_wait(stream, event);
  pestle_event_wait_for(event, ticket);
  return NULL;
}

bool pestle_event_is_signalled(const pestle_event_t* event) {
  if (!event) return false;
  // The lock is no part of what the event is.
  pestle_event_t* inside = (pestle_event_t*)(uintptr_t)event;
  pestle_mutex_lock(&inside->mutex);
  bool signalled = inside->given && inside->signalled >= inside->given;
  pestle_mutex_unlock(&inside->mutex);
  return signalled;
}

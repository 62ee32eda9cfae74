// SPDX-License-Identifier: Apache-2.0
#include "runtime/event.h"

#include "base/mem.h"
#include "base/require.h"
#include "base/thread.h"
#include "runtime/context.h"
#include "runtime/queue.h"

struct pestle_event_s {
  pestle_refcount_t refcount;
  pestle_context_t* context;
  pestle_device_t* device;
  pestle_device_event_t* native;  // NULL: the host's, as below
  pestle_mutex_t mutex;
  pestle_cond_t signalled_more;
  uint64_t given;      // tickets
  uint64_t signalled;  // the latest one
};

static void destroy(pestle_event_t* event) {
  pestle_context_t* context = event->context;
  if (event->native && !pestle_device_is_of_parent(event->device)) {
    pestle_device_api(event->device)
        ->event_destroy(event->device->backend->self, event->native);
  }
  pestle_cond_deinit(&event->signalled_more);
  pestle_mutex_deinit(&event->mutex);
  pestle_dealloc(context->core.allocator, event, sizeof(*event));
  pestle_context_release(context);
}

pestle_status_t pestle_event_create(pestle_device_t* device,
                                    pestle_event_t** out_event) {
  if (out_event) *out_event = NULL;
  PESTLE_REQUIRE(device && out_event, "a device and a place for the event");
  pestle_context_t* context = device->context;
  pestle_event_t* event =
      pestle_alloc_zero(context->core.allocator, sizeof(*event));
  if (!event) return PESTLE_OOM();
  pestle_refcount_init(&event->refcount);
  pestle_context_retain(context);
  event->context = context;
  event->device = device;
  pestle_mutex_init(&event->mutex);
  pestle_cond_init(&event->signalled_more);
  if (!pestle_device_is_cpu(device) && pestle_device_has_events(device)) {
    pestle_status_t status = pestle_device_check_open(device);
    if (!status) {
      status = pestle_device_api(device)->event_create(
          device->backend->self, device->local_index, &event->native);
      if (status) event->native = NULL;
    }
    if (!status) {
      status =
          pestle_device_check_made(device, "event_create()", event->native);
    }
    if (status) {
      destroy(event);
      return pestle_status_annotate(status, "while making an event of %s",
                                    device->name);
    }
  }
  *out_event = event;
  return NULL;
}

pestle_device_event_t* pestle_event_native(const pestle_event_t* event,
                                           pestle_device_t** out_device) {
  *out_device = event->device;
  return event->native;
}

void pestle_event_retain(pestle_event_t* event) {
  pestle_refcount_retain(&event->refcount);
}

void pestle_event_release(pestle_event_t* event) {
  if (event && pestle_refcount_release(&event->refcount)) destroy(event);
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

pestle_status_t pestle_event_signal(pestle_event_t* event, uint64_t ticket) {
  if (event->native) {
    PESTLE_TRY(pestle_device_check_open(event->device));
    return pestle_device_api(event->device)
        ->event_signal(event->device->backend->self, event->native, NULL,
                       ticket);
  }
  pestle_mutex_lock(&event->mutex);
  if (event->signalled < ticket) event->signalled = ticket;
  pestle_cond_broadcast(&event->signalled_more);
  pestle_mutex_unlock(&event->mutex);
  return NULL;
}

pestle_status_t pestle_event_wait_for(pestle_event_t* event, uint64_t ticket) {
  if (event->native) {
    PESTLE_TRY(pestle_device_check_open(event->device));
    return pestle_device_api(event->device)
        ->event_wait(event->device->backend->self, event->native, ticket);
  }
  pestle_mutex_lock(&event->mutex);
  while (event->signalled < ticket) {
    pestle_cond_wait(&event->signalled_more, &event->mutex);
  }
  pestle_mutex_unlock(&event->mutex);
  return NULL;
}

pestle_status_t pestle_event_record(pestle_event_t* event,
                                    pestle_stream_t* stream) {
  PESTLE_REQUIRE(event, "an event");
  if (stream) return pestle_stream_push_signal(stream, event);
  // The caller's own work is done by now.
  return pestle_event_signal(event, pestle_event_take_ticket(event));
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
  return pestle_event_wait_for(event, ticket);
}

bool pestle_event_is_signalled(const pestle_event_t* event) {
  if (!event) return false;
  // The lock is no part of what the event is.
  pestle_event_t* inside = (pestle_event_t*)(uintptr_t)event;
  if (event->native) {
    uint64_t ticket = pestle_event_ticket(inside);
    if (pestle_device_is_of_parent(event->device)) return false;
    return ticket && pestle_device_api(event->device)
                         ->event_is_signalled(event->device->backend->self,
                                              event->native, ticket);
  }
  pestle_mutex_lock(&inside->mutex);
  bool signalled = inside->given && inside->signalled >= inside->given;
  pestle_mutex_unlock(&inside->mutex);
  return signalled;
}

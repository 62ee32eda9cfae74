// SPDX-License-Identifier: Apache-2.0
// Events, and fences made of them.
#include <stdlib.h>

#include "mock/mock_internal.h"

struct pestle_device_fence_s {
  pestle_device_event_t* event;
  uint64_t given;  // under the lock
};

void mock_event_drop(pestle_device_event_t* event) {
  if (!--event->users) free(event);
}

pestle_device_event_t* mock_event_make(void) {
  pestle_device_event_t* event = calloc(1, sizeof(*event));
  if (event) event->users = 1;
  return event;
}

static void drop_owner(pestle_device_event_t* event) {
  pthread_mutex_lock(&mock_lock);
  mock_event_drop(event);
  pthread_mutex_unlock(&mock_lock);
}

// --- Events ---

static pestle_status_t event_create(void* self, int32_t device,
                                    pestle_device_event_t** out_event) {
  (void)device;
  *out_event = NULL;
  PESTLE_TRY(mock_enter(self, MOCK_EVENT_CREATE));
  *out_event = mock_event_make();
  if (!*out_event) {
    return MOCK_ERROR(mock_host(self), OUT_OF_MEMORY, "out of host memory");
  }
  atomic_fetch_add(&mock_state()->live_events, 1);
  return NULL;
}

static void event_destroy(void* self, pestle_device_event_t* event) {
  (void)self;
  atomic_fetch_add(&mock_state()->calls[MOCK_EVENT_DESTROY], 1);
  atomic_fetch_sub(&mock_state()->live_events, 1);
  drop_owner(event);
}

static pestle_status_t event_wait(void* self, pestle_device_event_t* event,
                                  uint64_t value) {
  PESTLE_TRY(mock_enter(self, MOCK_EVENT_WAIT));
  pthread_mutex_lock(&mock_lock);
  while (event->value < value)
    pthread_cond_wait(&mock_changed, &mock_lock);
  pthread_mutex_unlock(&mock_lock);
  return NULL;
}

static pestle_status_t push(void* self, pestle_device_stream_t* stream,
                            mock_op_kind_t kind, pestle_device_event_t* event,
                            uint64_t value) {
  mock_op_t op = {.kind = kind, .event = event, .value = value};
  return mock_push(self, stream, &op);
}

static pestle_status_t event_wait_stream(void* self,
                                         pestle_device_event_t* event,
                                         pestle_device_stream_t* stream,
                                         uint64_t value) {
  PESTLE_TRY(mock_enter(self, MOCK_EVENT_WAIT_STREAM));
  return push(self, stream, MOCK_OP_WAIT, event, value);
}

static pestle_status_t event_signal(void* self, pestle_device_event_t* event,
                                    pestle_device_stream_t* stream,
                                    uint64_t value) {
  PESTLE_TRY(mock_enter(self, MOCK_EVENT_SIGNAL));
  if (stream) return push(self, stream, MOCK_OP_SIGNAL, event, value);
  pthread_mutex_lock(&mock_lock);
  if (event->value < value) event->value = value;
  pthread_cond_broadcast(&mock_changed);
  pthread_mutex_unlock(&mock_lock);
  return NULL;
}

static bool event_is_signalled(void* self, pestle_device_event_t* event,
                               uint64_t value) {
  (void)self;
  atomic_fetch_add(&mock_state()->calls[MOCK_EVENT_IS_SIGNALLED], 1);
  pthread_mutex_lock(&mock_lock);
  bool signalled = event->value >= value;
  pthread_mutex_unlock(&mock_lock);
  return signalled;
}

// --- Fences ---

static pestle_status_t fence_create(void* self, int32_t device,
                                    pestle_device_fence_t** out_fence) {
  (void)device;
  *out_fence = NULL;
  PESTLE_TRY(mock_enter(self, MOCK_FENCE_CREATE));
  pestle_device_event_t* event = mock_event_make();
  *out_fence = event ? calloc(1, sizeof(**out_fence)) : NULL;
  if (!*out_fence) {
    free(event);
    return MOCK_ERROR(mock_host(self), OUT_OF_MEMORY, "out of host memory");
  }
  (*out_fence)->event = event;
  atomic_fetch_add(&mock_state()->live_fences, 1);
  return NULL;
}

static void fence_destroy(void* self, pestle_device_fence_t* fence) {
  (void)self;
  atomic_fetch_add(&mock_state()->calls[MOCK_FENCE_DESTROY], 1);
  atomic_fetch_sub(&mock_state()->live_fences, 1);
  drop_owner(fence->event);
  free(fence);
}

static pestle_status_t fence_update(void* self, pestle_device_fence_t* fence,
                                    pestle_device_stream_t* stream, void* data,
                                    bool cross_device) {
  (void)data, (void)cross_device;
  PESTLE_TRY(mock_enter(self, MOCK_FENCE_UPDATE));
  pthread_mutex_lock(&mock_lock);
  uint64_t value = ++fence->given;
  pthread_mutex_unlock(&mock_lock);
  return push(self, stream, MOCK_OP_SIGNAL, fence->event, value);
}

static pestle_status_t fence_wait(void* self, pestle_device_fence_t* fence,
                                  pestle_device_stream_t* stream, void* data) {
  (void)data;
  PESTLE_TRY(mock_enter(self, MOCK_FENCE_WAIT));
  pthread_mutex_lock(&mock_lock);
  uint64_t value = fence->given;
  pthread_mutex_unlock(&mock_lock);
  return push(self, stream, MOCK_OP_WAIT, fence->event, value);
}

void mock_event_slots(pestle_device_api_t* api) {
  api->event_create = event_create;
  api->event_destroy = event_destroy;
  api->event_wait = event_wait;
  api->event_wait_stream = event_wait_stream;
  api->event_signal = event_signal;
  api->event_is_signalled = event_is_signalled;
  api->fence_create = fence_create;
  api->fence_destroy = fence_destroy;
  api->fence_update = fence_update;
  api->fence_wait = fence_wait;
}

// SPDX-License-Identifier: Apache-2.0
// Timelines, and the thread that waits for their ticks where the backend makes no
// calls of the host. Ticks are dense, so it always waits for the first that has
// not come: nothing that is asked for later can have come before that unnoticed.
#include "base/mem.h"
#include "base/status_copy.h"
#include "runtime/completion.h"
#include "runtime/context.h"
#include "runtime/queue.h"

pestle_status_t pestle_timeline_create(pestle_context_t* context,
                                       pestle_device_t* device,
                                       pestle_timeline_t** out_timeline) {
  *out_timeline = NULL;
  pestle_timeline_t* t = pestle_alloc_zero(context->core.allocator, sizeof(*t));
  if (!t) return PESTLE_OOM();
  pestle_refcount_init(&t->refcount);
  t->context = context;
  t->device = device;
  t->end = &t->head;
  pestle_cond_init(&t->more_watched);
  *out_timeline = t;
  return NULL;
}

void pestle_timeline_retain(pestle_timeline_t* t) {
  pestle_refcount_retain(&t->refcount);
}

void pestle_timeline_release(pestle_timeline_t* t) {
  if (!t || !pestle_refcount_release(&t->refcount)) return;
  if (t->native && !pestle_device_is_of_parent(t->device)) {
    pestle_device_api(t->device)->event_destroy(t->device->backend->self,
                                                t->native);
  }
  pestle_cond_deinit(&t->more_watched);
  pestle_dealloc(t->context->core.allocator, t, sizeof(*t));
}

pestle_status_t pestle_timeline_need_native(pestle_timeline_t* t) {
  pestle_device_t* device = t->device;
  pestle_device_event_t* event = NULL;
  if (t->native) return NULL;
  pestle_status_t status = pestle_device_said(
      device, pestle_device_api(device)->event_create(
                  device->backend->self, device->local_index, &event));
  if (!status) {
    status = pestle_device_check_made(device, "event_create()", event);
    t->native = event;
  }
  return pestle_status_annotate(status, "while making an event of %s",
                                device->name);
}

// --- The watcher; the notifier's mutex is held but for calls of the backend ---

static bool has_ticked(const pestle_timeline_t* t, uint64_t tick) {
  return pestle_device_api(t->device)->event_is_signalled(
      t->device->backend->self, t->native, tick);
}

// The first tick after |seen| that has not come, |most| at the latest.
static uint64_t first_missing(const pestle_timeline_t* t, uint64_t seen,
                              uint64_t most) {
  while (seen + 1 < most) {
    uint64_t middle = seen + (most - seen) / 2;
    if (has_ticked(t, middle)) {
      seen = middle;
    } else {
      most = middle;
    }
  }
  return most;
}

// Of those that are watched, the earliest.
static uint64_t next_tick(const pestle_timeline_t* t) {
  uint64_t tick = t->watched->tick;
  for (const pestle_completion_t* c = t->watched; c; c = c->next_watched) {
    if (c->tick < tick) tick = c->tick;
  }
  return tick;
}

// Finishes those up to |seen|; their holds go to the list of the spent.
static void finish_until(pestle_timeline_t* t, uint64_t seen,
                         pestle_status_t failure) {
  pestle_notifier_t* n = &t->context->notifier;
  for (pestle_completion_t** at = &t->watched; *at;) {
    pestle_completion_t* c = *at;
    if (c->tick > seen) {
      at = &c->next_watched;
      continue;
    }
    *at = c->next_watched;
    pestle_completion_finish_locked(c, pestle_status_retain(failure));
    c->next_watched = n->spent;
    n->spent = c;
  }
}

static void watch(void* argument) {
  pestle_timeline_t* t = argument;
  pestle_notifier_t* n = &t->context->notifier;
  const pestle_device_api_t* api = pestle_device_api(t->device);
  uint64_t seen = 0;
  pestle_mutex_lock(&n->mutex);
  for (;;) {
    while (!t->watched && !t->closed)
      pestle_cond_wait(&t->more_watched, &n->mutex);
    if (!t->watched) break;
    uint64_t wanted = next_tick(t);
    pestle_mutex_unlock(&n->mutex);
    uint64_t tick = wanted > seen ? first_missing(t, seen, wanted) : wanted;
    pestle_status_t status = pestle_device_said(
        t->device, api->event_wait(t->device->backend->self, t->native, tick));
    pestle_mutex_lock(&n->mutex);
    if (tick > seen) seen = tick;
    finish_until(t, status ? wanted : seen, status);
    pestle_status_release(status);
  }
  pestle_mutex_unlock(&n->mutex);
}

pestle_status_t pestle_timeline_watch_locked(pestle_completion_t* c) {
  pestle_timeline_t* t = c->timeline;
  if (t->closed) {
    // Of a lost device alone anything is missing now.
    pestle_completion_finish_locked(c, pestle_device_fault(t->device));
    return NULL;
  }
  if (!t->watching) {
    PESTLE_TRY(pestle_thread_start(watch, t, "pestle watch", &t->watcher));
    t->watching = true;
  }
  for (const pestle_completion_t* w = t->watched; w; w = w->next_watched) {
    if (w == c) return NULL;
  }
  pestle_completion_retain(c);
  c->next_watched = t->watched;
  t->watched = c;
  pestle_cond_signal(&t->more_watched);
  return NULL;
}

void pestle_timeline_close(pestle_timeline_t* t) {
  pestle_notifier_t* n = &t->context->notifier;
  pestle_mutex_lock(&n->mutex);
  t->closed = true;
  pestle_cond_signal(&t->more_watched);
  bool watching = t->watching;
  pestle_mutex_unlock(&n->mutex);
  if (watching) pestle_thread_join(&t->watcher);
  pestle_notifier_reap(n);
}

// SPDX-License-Identifier: Apache-2.0
#include "runtime/completion.h"

#include "base/mem.h"
#include "base/status_copy.h"
#include "runtime/context.h"
#include "runtime/queue.h"

typedef pestle_completion_callback_t callback_t;

static pestle_notifier_t* notifier_of(const pestle_completion_t* c) {
  return &c->timeline->context->notifier;
}

static void lock(const pestle_completion_t* c) {
  pestle_mutex_lock(&notifier_of(c)->mutex);
}

static void unlock(const pestle_completion_t* c) {
  pestle_mutex_unlock(&notifier_of(c)->mutex);
}

// --- Life ---

pestle_status_t pestle_completion_create(pestle_timeline_t* timeline,
                                         pestle_completion_t** out_completion) {
  pestle_context_t* context = timeline->context;
  *out_completion = NULL;
  pestle_notifier_reap(&context->notifier);
  pestle_completion_t* c =
      pestle_alloc_zero(context->core.allocator, sizeof(*c));
  if (!c) return PESTLE_OOM();
  pestle_refcount_init(&c->refcount);
  c->fork_count = atomic_load(&context->fork_count);
  pestle_timeline_retain(timeline);
  c->timeline = timeline;
  pestle_cond_init(&c->changed);
  atomic_init(&c->state, PESTLE_COMPLETION_OPEN);
  c->last = &c->first;
  *out_completion = c;
  return NULL;
}

void pestle_completion_retain(pestle_completion_t* c) {
  pestle_refcount_retain(&c->refcount);
}

void pestle_completion_release(pestle_completion_t* c) {
  if (!c || !pestle_refcount_release(&c->refcount)) return;
  pestle_timeline_t* timeline = c->timeline;
  pestle_allocator_t allocator = timeline->context->core.allocator;
  // Only of one that is never done are there any: of a parent's stream.
  while (c->first) {
    callback_t* next = c->first->next;
    pestle_dealloc(allocator, c->first, sizeof(*c->first));
    c->first = next;
  }
  pestle_status_release(c->failure);
  pestle_status_release(c->lost);
  pestle_cond_deinit(&c->changed);
  pestle_dealloc(allocator, c, sizeof(*c));
  pestle_timeline_release(timeline);
}

// --- State; the mutex is held where the name ends in _locked ---

// The list of its timeline has a hold of its own.
static void tell_locked(pestle_completion_t* c) {
  pestle_timeline_t* timeline = c->timeline;
  if (!c->first || c->telling) return;
  c->telling = true;
  pestle_completion_retain(c);
  c->next = NULL;
  *timeline->end = c;
  timeline->end = &c->next;
  pestle_notifier_wake(notifier_of(c), timeline);
}

void pestle_completion_finish_locked(pestle_completion_t* c,
                                     pestle_status_t failure) {
  if (pestle_completion_state(c) == PESTLE_COMPLETION_DONE || c->failure) {
    pestle_status_release(failure);
  } else {
    c->failure = failure;
  }
  atomic_store(&c->state, PESTLE_COMPLETION_DONE);
  pestle_cond_broadcast(&c->changed);
  tell_locked(c);
}

void pestle_completion_finish(pestle_completion_t* c, pestle_status_t failure) {
  lock(c);
  pestle_completion_finish_locked(c, failure);
  unlock(c);
}

void pestle_completion_settle(pestle_completion_t* c, pestle_status_t failure,
                              pestle_status_t lost) {
  lock(c);
  pestle_status_release(c->failure);
  c->failure = failure;
  c->lost = lost;
  c->epoch = atomic_load(&c->timeline->epoch);
  unlock(c);
}

// --- Streams of a backend's ---

// By a thread of the backend's, which must not end what it holds.
static void has_come(void* user, pestle_status_t failure) {
  pestle_completion_t* c = user;
  pestle_notifier_t* n = notifier_of(c);
  failure = pestle_device_said(c->timeline->device, failure);
  pestle_mutex_lock(&n->mutex);
  pestle_completion_finish_locked(c, failure);
  c->next_watched = n->spent;
  n->spent = c;
  pestle_mutex_unlock(&n->mutex);
}

// Has the backend call when it is done, if that is how it tells.
static pestle_status_t arm(pestle_completion_t* c,
                           pestle_device_stream_t* stream) {
  pestle_device_t* device = c->timeline->device;
  const pestle_device_api_t* api = pestle_device_api(device);
  if (!PESTLE_HAS(api, stream_host_call)) return NULL;
  c->armed = true;
  pestle_completion_retain(c);
  pestle_status_t status = pestle_device_said(
      device,
      api->stream_host_call(device->backend->self, stream, has_come, c));
  if (!status) return NULL;
  c->armed = false;
  pestle_completion_release(c);
  return status;
}

static pestle_status_t tick(pestle_completion_t* c,
                            pestle_device_stream_t* stream) {
  pestle_timeline_t* timeline = c->timeline;
  PESTLE_TRY(pestle_timeline_need_native(timeline));
  PESTLE_TRY(pestle_device_said(
      timeline->device,
      pestle_device_api(timeline->device)
          ->event_signal(timeline->device->backend->self, timeline->native,
                         stream, timeline->ticks + 1)));
  c->tick = ++timeline->ticks;
  return NULL;
}

pestle_status_t pestle_completion_queue(pestle_completion_t* c,
                                        pestle_device_stream_t* stream) {
  pestle_status_t status = tick(c, stream);
  if (!status) status = arm(c, stream);
  if (status) {
    // What it stands for may still be under way: nobody may build on it.
    lock(c);
    pestle_status_release(c->lost);
    c->lost = pestle_status_retain(status);
    pestle_completion_finish_locked(c, pestle_status_retain(status));
    unlock(c);
    return status;
  }
  lock(c);
  if (pestle_completion_state(c) == PESTLE_COMPLETION_OPEN) {
    atomic_store(&c->state, PESTLE_COMPLETION_QUEUED);
    pestle_cond_broadcast(&c->changed);
    if (c->first && !c->armed) status = pestle_timeline_watch_locked(c);
  }
  unlock(c);
  if (!status) return NULL;
  // No thread to wait for it: this one does.
  pestle_status_release(status);
  return pestle_completion_wait(c);
}

pestle_status_t pestle_completion_wait_native(pestle_completion_t* c,
                                              pestle_device_t* device,
                                              pestle_device_stream_t* stream) {
  return pestle_device_said(
      device, pestle_device_api(device)->event_wait_stream(
                  device->backend->self, c->timeline->native, stream, c->tick));
}

// --- Queries and waits ---

// Whether it is a matter of a process that this one was forked from.
static bool is_of_parent(const pestle_completion_t* c) {
  return c->fork_count != atomic_load(&c->timeline->context->fork_count);
}

static pestle_status_t of_parent(void) {
  return PESTLE_ERROR(UNAVAILABLE,
                      "what is waited for was queued before fork(), and comes "
                      "in the parent alone");
}

static bool has_ticked(const pestle_completion_t* c) {
  const pestle_device_t* device = c->timeline->device;
  return pestle_device_api(device)->event_is_signalled(
      device->backend->self, c->timeline->native, c->tick);
}

bool pestle_completion_is_done(pestle_completion_t* c) {
  if (c->timeline->device && is_of_parent(c)) return false;
  switch (pestle_completion_state(c)) {
    case PESTLE_COMPLETION_OPEN:
      return false;
    case PESTLE_COMPLETION_DONE:
      return true;
    case PESTLE_COMPLETION_QUEUED:
      break;
  }
  if (!has_ticked(c)) return false;
  if (!c->armed) pestle_completion_finish(c, NULL);
  return true;
}

pestle_status_t pestle_completion_known_failure(pestle_completion_t* c) {
  if (pestle_completion_state(c) == PESTLE_COMPLETION_OPEN) return NULL;
  lock(c);
  pestle_status_t failure = pestle_status_retain(c->failure);
  unlock(c);
  return failure;
}

pestle_status_t pestle_completion_failure(pestle_completion_t* c) {
  if (c->timeline->device && is_of_parent(c)) return of_parent();
  if (!pestle_completion_is_done(c)) return NULL;
  if (!is_of_parent(c)) {
    // The backend's call is due.
    lock(c);
    while (pestle_completion_state(c) != PESTLE_COMPLETION_DONE)
      pestle_cond_wait(&c->changed, &notifier_of(c)->mutex);
    unlock(c);
  }
  return pestle_completion_known_failure(c);
}

// Whether it is done is looked at first: of a parent's mutex nothing is known.
static bool is_over(const pestle_completion_t* c) {
  return pestle_completion_state(c) == PESTLE_COMPLETION_DONE &&
         !(c->timeline->device && is_of_parent(c));
}

pestle_status_t pestle_completion_wait_queued(pestle_completion_t* c) {
  if (is_over(c)) return NULL;
  if (is_of_parent(c)) return of_parent();
  lock(c);
  while (pestle_completion_state(c) == PESTLE_COMPLETION_OPEN)
    pestle_cond_wait(&c->changed, &notifier_of(c)->mutex);
  unlock(c);
  return NULL;
}

// A device that was lost before it came.
static pestle_status_t fault_of(pestle_completion_t* c) {
  if (!c->timeline->device) return NULL;
  pestle_status_t failure = pestle_completion_known_failure(c);
  if (pestle_status_code(failure) == PESTLE_STATUS_UNAVAILABLE) return failure;
  pestle_status_release(failure);
  return NULL;
}

pestle_status_t pestle_completion_wait(pestle_completion_t* c) {
  PESTLE_TRY(pestle_completion_wait_queued(c));
  if (pestle_completion_state(c) == PESTLE_COMPLETION_DONE) return fault_of(c);
  pestle_device_t* device = c->timeline->device;
  pestle_status_t status = pestle_device_said(
      device, pestle_device_api(device)->event_wait(
                  device->backend->self, c->timeline->native, c->tick));
  // A wait that fails otherwise says nothing of what it was for.
  bool is_lost = pestle_status_code(status) == PESTLE_STATUS_UNAVAILABLE;
  if (is_lost || (!status && !c->armed)) {
    pestle_completion_finish(c, pestle_status_retain(status));
  }
  return status;
}

// --- Callbacks ---

static callback_t* append_locked(pestle_completion_t* c, callback_t* node) {
  *c->last = node;
  c->last = &node->next;
  return node;
}

static void take_back_locked(pestle_completion_t* c, const callback_t* node) {
  callback_t** at = &c->first;
  while (*at != node)
    at = &(*at)->next;
  *at = node->next;
  if (!*at) c->last = at;
}

pestle_status_t pestle_completion_on_done(pestle_completion_t* c,
                                          pestle_completion_fn_t fn,
                                          void* self) {
  pestle_context_t* context = c->timeline->context;
  if (is_of_parent(c)) return of_parent();
  PESTLE_TRY(pestle_notifier_start(&context->notifier));
  callback_t* node = pestle_alloc(context->core.allocator, sizeof(*node));
  if (!node) return PESTLE_OOM();
  *node = (callback_t){NULL, fn, self};
  pestle_status_t status = NULL;
  lock(c);
  append_locked(c, node);
  switch (pestle_completion_state(c)) {
    case PESTLE_COMPLETION_OPEN:
      break;
    case PESTLE_COMPLETION_QUEUED:
      if (!c->armed) status = pestle_timeline_watch_locked(c);
      if (status) take_back_locked(c, node);
      break;
    case PESTLE_COMPLETION_DONE:
      tell_locked(c);
      break;
  }
  unlock(c);
  if (status) pestle_dealloc(context->core.allocator, node, sizeof(*node));
  return status;
}

void pestle_completion_tell(pestle_completion_t* c, const bool* is_gone) {
  pestle_notifier_t* n = notifier_of(c);
  while (c->first) {
    callback_t call = *c->first;
    pestle_dealloc(n->allocator, c->first, sizeof(*c->first));
    c->first = call.next;
    if (!c->first) c->last = &c->first;
    pestle_mutex_unlock(&n->mutex);
    // It was set before it was done, and does not change again.
    call.fn(call.self, c->failure);
    if (is_gone && *is_gone) return;
    pestle_mutex_lock(&n->mutex);
  }
  c->telling = false;
}

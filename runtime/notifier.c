// SPDX-License-Identifier: Apache-2.0
#include "runtime/notifier.h"

#include "base/mem.h"
#include "runtime/completion.h"

struct pestle_notifier_thread_t {
  pestle_notifier_thread_t* next;
  pestle_notifier_t* notifier;
  pestle_thread_t thread;
  int64_t id;
  pestle_timeline_t* timeline;      // that it serves
  pestle_completion_t* completion;  // whose callbacks it calls
  bool* is_gone;                    // to be set when the notifier ends in one
};

// --- Work ---

static void make_ready(pestle_notifier_t* n, pestle_timeline_t* timeline) {
  timeline->next_ready = NULL;
  *n->ready_end = timeline;
  n->ready_end = &timeline->next_ready;
  ++n->ready_count;
}

static pestle_timeline_t* take_ready(pestle_notifier_t* n) {
  pestle_timeline_t* timeline = n->ready;
  if (!timeline) return NULL;
  n->ready = timeline->next_ready;
  if (!n->ready) n->ready_end = &n->ready;
  --n->ready_count;
  return timeline;
}

static pestle_completion_t* take_completion(pestle_timeline_t* timeline) {
  pestle_completion_t* c = timeline->head;
  timeline->head = c->next;
  if (!timeline->head) timeline->end = &timeline->head;
  return c;
}

// One completion of |timeline|, so that others get their turn. False: a callback
// has ended the context. The mutex is held before, and after if true.
static bool serve(pestle_notifier_thread_t* self, pestle_timeline_t* timeline) {
  pestle_notifier_t* n = self->notifier;
  bool is_gone = false;
  pestle_completion_t* c = take_completion(timeline);
  self->timeline = timeline;
  self->completion = c;
  self->is_gone = &is_gone;
  pestle_completion_tell(c, &is_gone);
  if (is_gone) return false;
  self->timeline = NULL;
  self->completion = NULL;
  timeline->served = timeline->head != NULL;
  if (timeline->served) make_ready(n, timeline);
  pestle_mutex_unlock(&n->mutex);
  pestle_completion_release(c);
  pestle_notifier_reap(n);
  pestle_mutex_lock(&n->mutex);
  return true;
}

static void thread_main(void* argument) {
  pestle_notifier_thread_t* self = argument;
  pestle_notifier_t* n = self->notifier;
  pestle_mutex_lock(&n->mutex);
  self->id = pestle_thread_id();
  for (;;) {
    pestle_timeline_t* timeline = take_ready(n);
    if (timeline) {
      if (!serve(self, timeline)) return;
    } else if (n->stop) {
      break;
    } else {
      ++n->idle_count;
      pestle_cond_wait(&n->more, &n->mutex);
      --n->idle_count;
    }
  }
  pestle_mutex_unlock(&n->mutex);
}

// The mutex is held.
static pestle_status_t add_thread(pestle_notifier_t* n) {
  pestle_notifier_thread_t* thread =
      pestle_alloc_zero(n->allocator, sizeof(*thread));
  if (!thread) return PESTLE_OOM();
  thread->notifier = n;
  pestle_status_t status = pestle_thread_start(
      thread_main, thread, "pestle notify", &thread->thread);
  if (status) {
    pestle_dealloc(n->allocator, thread, sizeof(*thread));
    return status;
  }
  thread->next = n->threads;
  n->threads = thread;
  ++n->thread_count;
  return NULL;
}

pestle_status_t pestle_notifier_start(pestle_notifier_t* n) {
  pestle_status_t status = NULL;
  pestle_mutex_lock(&n->mutex);
  if (!n->thread_count) status = add_thread(n);
  pestle_mutex_unlock(&n->mutex);
  return status;
}

void pestle_notifier_wake(pestle_notifier_t* n, pestle_timeline_t* timeline) {
  if (timeline->served) return;
  timeline->served = true;
  make_ready(n, timeline);
  // Who was woken before is idle until it has the mutex.
  if (n->idle_count < n->ready_count && !n->stop) {
    // Without another thread one of those that there are will come to it.
    pestle_status_release(add_thread(n));
  }
  pestle_cond_signal(&n->more);
}

// --- Life ---

static void init_lists(pestle_notifier_t* n) {
  n->ready = NULL;
  n->ready_end = &n->ready;
  n->threads = NULL;
  n->spent = NULL;
  n->ready_count = n->idle_count = n->thread_count = 0;
}

void pestle_notifier_init(pestle_allocator_t allocator, pestle_notifier_t* n) {
  *n = (pestle_notifier_t){.allocator = allocator};
  pestle_mutex_init(&n->mutex);
  pestle_cond_init(&n->more);
  init_lists(n);
}

void pestle_notifier_after_fork(pestle_notifier_t* n) {
  pestle_notifier_thread_t* thread = n->threads;
  init_lists(n);
  pestle_mutex_init(&n->mutex);
  pestle_cond_init(&n->more);
  while (thread) {
    pestle_notifier_thread_t* next = thread->next;
    pestle_dealloc(n->allocator, thread, sizeof(*thread));
    thread = next;
  }
}

void pestle_notifier_reap(pestle_notifier_t* n) {
  pestle_mutex_lock(&n->mutex);
  pestle_completion_t* spent = n->spent;
  n->spent = NULL;
  pestle_mutex_unlock(&n->mutex);
  while (spent) {
    pestle_completion_t* next = spent->next_watched;
    pestle_completion_release(spent);
    spent = next;
  }
}

// Of the calling thread, when the notifier ends in a callback: what is left of
// its timeline is called here, within that callback.
static void end_self(pestle_notifier_thread_t* self) {
  pestle_notifier_t* n = self->notifier;
  pestle_timeline_t* timeline = self->timeline;
  pestle_completion_t* c = self->completion;
  pestle_mutex_lock(&n->mutex);
  while (c) {
    pestle_completion_tell(c, NULL);
    pestle_completion_t* next =
        timeline->head ? take_completion(timeline) : NULL;
    pestle_mutex_unlock(&n->mutex);
    pestle_completion_release(c);
    pestle_mutex_lock(&n->mutex);
    c = next;
  }
  pestle_mutex_unlock(&n->mutex);
  *self->is_gone = true;
  pestle_thread_detach(&self->thread);
}

void pestle_notifier_deinit(pestle_notifier_t* n) {
  int64_t id = pestle_thread_id();
  pestle_notifier_thread_t* self = NULL;
  pestle_mutex_lock(&n->mutex);
  n->stop = true;
  pestle_cond_broadcast(&n->more);
  for (pestle_notifier_thread_t* t = n->threads; t; t = t->next) {
    if (t->id == id) self = t;
  }
  pestle_mutex_unlock(&n->mutex);
  // The list does not grow any more.
  for (pestle_notifier_thread_t* t = n->threads; t; t = t->next) {
    if (t != self) pestle_thread_join(&t->thread);
  }
  if (self) end_self(self);
  pestle_notifier_reap(n);
  while (n->threads) {
    pestle_notifier_thread_t* next = n->threads->next;
    pestle_dealloc(n->allocator, n->threads, sizeof(*n->threads));
    n->threads = next;
  }
  pestle_cond_deinit(&n->more);
  pestle_mutex_deinit(&n->mutex);
}

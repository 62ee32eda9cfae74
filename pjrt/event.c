// SPDX-License-Identifier: Apache-2.0
#include "pjrt/event.h"

#include "base/mem.h"
#include "base/thread.h"
#include "pjrt/slots.h"

typedef struct waiter_t {
  pestle_pjrt_event_fn_t fn;
  void* self;
  struct waiter_t* next;
} waiter_t;

struct PJRT_Event {
  pestle_refcount_t references;
  atomic_bool is_set;  // |error| is written before, and never after
  PJRT_Error* error;
  pestle_mutex_t mutex;  // of what follows
  pestle_cond_t cond;
  waiter_t* first;  // in the order in which they asked
  waiter_t** end;
};

PJRT_Event* pestle_pjrt_event_create(void) {
  PJRT_Event* event =
      pestle_alloc_zero(pestle_allocator_system(), sizeof(*event));
  if (!event) return NULL;
  pestle_refcount_init(&event->references);
  atomic_init(&event->is_set, false);
  pestle_mutex_init(&event->mutex);
  pestle_cond_init(&event->cond);
  event->end = &event->first;
  return event;
}

void pestle_pjrt_event_retain(PJRT_Event* event) {
  pestle_refcount_retain(&event->references);
}

static void free_waiters(waiter_t* waiter) {
  while (waiter) {
    waiter_t* next = waiter->next;
    pestle_dealloc(pestle_allocator_system(), waiter, sizeof(*waiter));
    waiter = next;
  }
}

void pestle_pjrt_event_release(PJRT_Event* event) {
  if (!event || !pestle_refcount_release(&event->references)) return;
  if (event->first) {
    pestle_pjrt_event_set(
        event, pestle_pjrt_error(PJRT_Error_Code_ABORTED,
                                 "whoever was to set the event gave it up"));
  }
  pestle_pjrt_error_free(event->error);
  pestle_cond_deinit(&event->cond);
  pestle_mutex_deinit(&event->mutex);
  pestle_dealloc(pestle_allocator_system(), event, sizeof(*event));
}

bool pestle_pjrt_event_is_ready(const PJRT_Event* event) {
  return atomic_load_explicit(&event->is_set, memory_order_acquire);
}

const PJRT_Error* pestle_pjrt_event_error(const PJRT_Event* event) {
  return pestle_pjrt_event_is_ready(event) ? event->error : NULL;
}

void pestle_pjrt_event_set(PJRT_Event* event, PJRT_Error* error) {
  pestle_mutex_lock(&event->mutex);
  if (pestle_pjrt_event_is_ready(event)) {
    pestle_mutex_unlock(&event->mutex);
    pestle_pjrt_error_free(error);
    return;
  }
  event->error = error;
  waiter_t* waiters = event->first;
  event->first = NULL;
  event->end = &event->first;
  atomic_store_explicit(&event->is_set, true, memory_order_release);
  pestle_cond_broadcast(&event->cond);
  pestle_mutex_unlock(&event->mutex);
  for (waiter_t* w = waiters; w; w = w->next)
    w->fn(w->self, error);
  free_waiters(waiters);
}

PJRT_Error* pestle_pjrt_event_then(PJRT_Event* event, pestle_pjrt_event_fn_t fn,
                                   void* self) {
  if (!pestle_pjrt_event_is_ready(event)) {
    waiter_t* waiter =
        pestle_alloc_zero(pestle_allocator_system(), sizeof(*waiter));
    if (!waiter) return pestle_pjrt_out_of_memory();
    *waiter = (waiter_t){fn, self, NULL};
    pestle_mutex_lock(&event->mutex);
    bool is_set = pestle_pjrt_event_is_ready(event);
    if (!is_set) {
      *event->end = waiter;
      event->end = &waiter->next;
    }
    pestle_mutex_unlock(&event->mutex);
    if (!is_set) return NULL;
    free_waiters(waiter);
  }
  fn(self, event->error);
  return NULL;
}

void pestle_pjrt_event_wait(PJRT_Event* event) {
  pestle_mutex_lock(&event->mutex);
  while (!pestle_pjrt_event_is_ready(event))
    pestle_cond_wait(&event->cond, &event->mutex);
  pestle_mutex_unlock(&event->mutex);
}

// --- Slots ---

PJRT_Error* pestle_PJRT_Event_Destroy(PJRT_Event_Destroy_Args* args) {
  PJRT_REQUIRE(PJRT_Event_Destroy, event, event);
  pestle_pjrt_event_release(args->event);
  return NULL;
}

PJRT_Error* pestle_PJRT_Event_IsReady(PJRT_Event_IsReady_Args* args) {
  PJRT_REQUIRE(PJRT_Event_IsReady, event, is_ready);
  args->is_ready = pestle_pjrt_event_is_ready(args->event);
  return NULL;
}

PJRT_Error* pestle_PJRT_Event_Error(PJRT_Event_Error_Args* args) {
  PJRT_REQUIRE(PJRT_Event_Error, event, event);
  if (!pestle_pjrt_event_is_ready(args->event)) {
    return pestle_pjrt_error(PJRT_Error_Code_FAILED_PRECONDITION,
                             "the event is not ready: ask for its error when "
                             "PJRT_Event_IsReady says that it is");
  }
  return pestle_pjrt_error_copy(pestle_pjrt_event_error(args->event));
}

PJRT_Error* pestle_PJRT_Event_Await(PJRT_Event_Await_Args* args) {
  PJRT_REQUIRE(PJRT_Event_Await, event, event);
  pestle_pjrt_event_wait(args->event);
  return pestle_pjrt_error_copy(pestle_pjrt_event_error(args->event));
}

typedef struct on_ready_t {
  PJRT_Event_OnReadyCallback callback;
  void* user_arg;
} on_ready_t;

static void call_on_ready(void* self, const PJRT_Error* error) {
  on_ready_t on_ready = *(on_ready_t*)self;
  pestle_dealloc(pestle_allocator_system(), self, sizeof(on_ready_t));
  on_ready.callback(pestle_pjrt_error_copy(error), on_ready.user_arg);
}

PJRT_Error* pestle_PJRT_Event_OnReady(PJRT_Event_OnReady_Args* args) {
  PJRT_REQUIRE(PJRT_Event_OnReady, event, user_arg);
  if (!args->callback)
    return pestle_pjrt_no_handle("PJRT_Event_OnReady", "callback");
  if (pestle_pjrt_event_is_ready(args->event)) {
    args->callback(pestle_pjrt_error_copy(args->event->error), args->user_arg);
    return NULL;
  }
  on_ready_t* on_ready =
      pestle_alloc(pestle_allocator_system(), sizeof(*on_ready));
  if (!on_ready) return pestle_pjrt_out_of_memory();
  *on_ready = (on_ready_t){args->callback, args->user_arg};
  PJRT_Error* error =
      pestle_pjrt_event_then(args->event, call_on_ready, on_ready);
  if (error) {
    pestle_dealloc(pestle_allocator_system(), on_ready, sizeof(*on_ready));
  }
  return error;
}

PJRT_Error* pestle_PJRT_Event_Create(PJRT_Event_Create_Args* args) {
  PJRT_Error* error = pestle_pjrt_check(
      args, PJRT_END_OF(PJRT_Event_Create, event), "PJRT_Event_Create");
  if (error) return error;
  args->event = pestle_pjrt_event_create();
  return args->event ? NULL : pestle_pjrt_out_of_memory();
}

PJRT_Error* pestle_PJRT_Event_Set(PJRT_Event_Set_Args* args) {
  PJRT_REQUIRE(PJRT_Event_Set, event, error_message_size);
  if (args->error_message_size && !args->error_message)
    return pestle_pjrt_no_handle("PJRT_Event_Set", "error_message");
  pestle_pjrt_event_set(
      args->event,
      args->error_code == PJRT_Error_Code_OK
          ? NULL
          : pestle_pjrt_error_text(args->error_code, args->error_message,
                                   args->error_message_size));
  return NULL;
}

// SPDX-License-Identifier: Apache-2.0
// What makes a buffer and what still reads it, for who comes after. Runs on the
// caller's thread leave nothing behind: only those on streams are still to come
// when they return.
#include "base/mem.h"
#include "base/status_copy.h"
#include "runtime/buffer.h"
#include "runtime/context.h"
#include "runtime/owned.h"

typedef pestle_completion_t completion_t;

static void lock(pestle_buffer_t* buffer) {
  pestle_mutex_lock(&buffer->device->memory.mutex);
}

static void unlock(pestle_buffer_t* buffer) {
  pestle_mutex_unlock(&buffer->device->memory.mutex);
}

static void free_uses(const pestle_buffer_t* buffer, completion_t** uses,
                      uint32_t count, uint32_t room) {
  for (uint32_t i = 0; i < count; ++i)
    pestle_completion_release(uses[i]);
  if (!uses) return;
  pestle_dealloc(buffer->device->context->core.allocator, uses,
                 room * sizeof(*uses));
}

// --- What makes it ---

static completion_t* hold_defined(pestle_buffer_t* buffer) {
  lock(buffer);
  completion_t* c =
      atomic_load_explicit(&buffer->defined, memory_order_relaxed);
  if (c) pestle_completion_retain(c);
  unlock(buffer);
  return c;
}

// Forgets |c|, which was made without a failure.
static void forget_defined(pestle_buffer_t* buffer, completion_t* c) {
  lock(buffer);
  bool is_it =
      atomic_load_explicit(&buffer->defined, memory_order_relaxed) == c;
  if (is_it) {
    atomic_store_explicit(&buffer->defined, NULL, memory_order_release);
  }
  unlock(buffer);
  if (is_it) pestle_completion_release(c);
}

pestle_completion_t* pestle_buffer_defined(pestle_buffer_t* buffer) {
  if (!atomic_load_explicit(&buffer->defined, memory_order_acquire)) {
    return NULL;
  }
  completion_t* c = hold_defined(buffer);
  if (!c || !pestle_completion_is_done(c)) return c;
  pestle_status_t failure = pestle_completion_failure(c);
  if (failure) {
    pestle_status_release(failure);
    return c;
  }
  forget_defined(buffer, c);
  pestle_completion_release(c);
  return NULL;
}

pestle_status_t pestle_buffer_await(pestle_buffer_t* buffer) {
  completion_t* c = pestle_buffer_defined(buffer);
  if (!c) return NULL;
  pestle_status_t status = pestle_completion_wait(c);
  if (!status) status = pestle_completion_failure(c);
  if (!status) forget_defined(buffer, c);
  pestle_completion_release(c);
  return status;
}

void pestle_buffer_set_defined(pestle_buffer_t* buffer, completion_t* c) {
  if (c) pestle_completion_retain(c);
  lock(buffer);
  completion_t* before =
      atomic_exchange_explicit(&buffer->defined, c, memory_order_acq_rel);
  completion_t** uses = buffer->uses;
  uint32_t count = buffer->use_count, room = buffer->use_room;
  buffer->uses = NULL;
  buffer->use_count = buffer->use_room = 0;
  unlock(buffer);
  free_uses(buffer, uses, count, room);
  pestle_completion_release(before);
}

// --- What reads it ---

// The place for a use by |c|: of an earlier one of its timeline, or of one that is
// done; else a new one, or NULL: out of memory.
static completion_t** find_place(pestle_buffer_t* buffer,
                                 const completion_t* c) {
  for (uint32_t i = 0; i < buffer->use_count; ++i) {
    const completion_t* other = buffer->uses[i];
    if (other->timeline == c->timeline ||
        pestle_completion_state(other) == PESTLE_COMPLETION_DONE) {
      return &buffer->uses[i];
    }
  }
  if (buffer->use_count == buffer->use_room) {
    uint32_t room = buffer->use_room ? 2 * buffer->use_room : 4;
    completion_t** uses =
        pestle_realloc(buffer->device->context->core.allocator, buffer->uses,
                       buffer->use_room * sizeof(*uses), room * sizeof(*uses));
    if (!uses) return NULL;
    buffer->uses = uses;
    buffer->use_room = room;
  }
  completion_t** place = &buffer->uses[buffer->use_count++];
  *place = NULL;
  return place;
}

pestle_status_t pestle_buffer_add_use(pestle_buffer_t* buffer,
                                      completion_t* c) {
  completion_t* before = NULL;
  lock(buffer);
  completion_t** place = find_place(buffer, c);
  if (place) {
    before = *place;
    *place = c;
    pestle_completion_retain(c);
  }
  unlock(buffer);
  pestle_completion_release(before);
  return place ? NULL : PESTLE_OOM();
}

pestle_status_t pestle_buffer_append_uses(pestle_buffer_t* buffer,
                                          pestle_completions_t* completions) {
  bool fits = true;
  lock(buffer);
  for (uint32_t i = 0; i < buffer->use_count && fits; ++i) {
    fits = pestle_vec_push(completions, buffer->uses[i]);
    if (fits) pestle_completion_retain(buffer->uses[i]);
  }
  unlock(buffer);
  return fits ? NULL : PESTLE_OOM();
}

pestle_status_t pestle_buffer_await_uses(pestle_buffer_t* buffer) {
  PESTLE_TRY(pestle_buffer_await(buffer));
  if (!buffer->use_count) return NULL;
  pestle_completions_t uses;
  pestle_vec_init(&uses, buffer->device->context->core.allocator);
  pestle_status_t status = pestle_buffer_append_uses(buffer, &uses);
  for (size_t i = 0; i < uses.size; ++i) {
    if (!status) status = pestle_completion_wait(uses.data[i]);
    pestle_completion_release(uses.data[i]);
  }
  pestle_vec_deinit(&uses);
  return status;
}

void pestle_buffer_forget(pestle_buffer_t* buffer) {
  pestle_completion_release(
      atomic_load_explicit(&buffer->defined, memory_order_relaxed));
  free_uses(buffer, buffer->uses, buffer->use_count, buffer->use_room);
}

// --- Asked by callers ---

bool pestle_buffer_is_ready(const pestle_buffer_t* buffer) {
  if (!buffer) return false;
  completion_t* c = pestle_buffer_defined((pestle_buffer_t*)(uintptr_t)buffer);
  if (!c) return true;
  bool ready = pestle_completion_is_done(c);
  pestle_completion_release(c);
  return ready;
}

bool pestle_buffer_is_made(const pestle_buffer_t* buffer) {
  return !atomic_load_explicit(&buffer->defined, memory_order_acquire);
}

pestle_status_t pestle_buffer_wait(const pestle_buffer_t* buffer) {
  if (!buffer) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_buffer_wait needs a buffer, not NULL");
  }
  pestle_context_enter(buffer->device->context);
  return pestle_buffer_await((pestle_buffer_t*)(uintptr_t)buffer);
}

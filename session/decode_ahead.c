// SPDX-License-Identifier: Apache-2.0
// The next room's executables, made by a second thread while tokens come, so that none of them
// waits for a compilation. A thread makes those for one token, of one sequence and, where runs
// are of all slots, of those, and ends. What it made lies apart until it is needed: where memory
// is short it goes first.
//
// The thread reads what is fixed once the decoder is open, and writes |plans| of
// decode_ahead_t, which the decoder reads when |is_done| or behind a join.
#include "session/decode.h"

#include "base/context.h"
#include "base/thread.h"

// --- The thread ---

static void work(void* argument) {
  pestle_decoder_t* d = argument;
  decode_ahead_t* a = &d->ahead;
  const pestle_control_t control = {.struct_size = sizeof(control),
                                    .cancel = &a->cancel};
  pestle_status_t status = NULL;
  for (size_t i = 0; !status && i < a->count; ++i) {
    int64_t begin = pestle_clock_ns();
    status = pestle_decode_make_plan(d, &control, &a->plans[i]);
    a->compile_ns += pestle_clock_ns() - begin;
    ++a->compiles;
  }
  if (status && pestle_status_code(status) != PESTLE_STATUS_CANCELLED) {
    pestle_context_log(
        d->context, PESTLE_LOG_WARN,
        "the executables for %lld positions are made when they are needed: %s",
        (long long)a->plans[0].room, pestle_status_message(status));
  }
  pestle_status_release(status);
  atomic_store_explicit(&a->is_done, true, memory_order_release);
}

static bool is_done(decode_ahead_t* a) {
  return atomic_load_explicit(&a->is_done, memory_order_acquire);
}

// In a child of fork() there is no thread, and what it was making is nobody's.
static void join(decode_ahead_t* a) {
  if (a->is_started && a->process == pestle_process_id()) {
    pestle_thread_join(&a->thread);
  } else {
    a->count = 0;
  }
  a->is_started = false;
}

// --- What it makes ---

static bool is_made(const pestle_decoder_t* d, int64_t batch, int64_t room) {
  const decode_ahead_t* a = &d->ahead;
  bool is_it = pestle_decode_find(d, 1, batch, room) != NULL;
  for (size_t i = 0; i < a->count; ++i)
    is_it |= a->plans[i].batch == batch && a->plans[i].room == room;
  return is_it;
}

// Whether half of the room is in use.
static bool is_near(const pestle_decoder_t* d) {
  for (size_t s = 0; s < d->slot_count; ++s) {
    if (2 * d->slots[s].length >= d->room) return true;
  }
  return false;
}

static void start(pestle_decoder_t* d) {
  decode_ahead_t* a = &d->ahead;
  atomic_store_explicit(&a->is_done, false, memory_order_relaxed);
  a->process = pestle_process_id();
  pestle_status_t status =
      pestle_thread_start(work, d, "pestle-decode", &a->thread);
  a->is_started = !status;
  if (status) {
    a->count = 0;
    a->failed = a->plans[0].room;
  }
  pestle_status_release(status);
}

void pestle_decode_begin_ahead(pestle_decoder_t* d) {
  decode_ahead_t* a = &d->ahead;
  int64_t all = (int64_t)d->slot_count;
  int64_t next = pestle_decode_room_for(d, d->room + 1);
  if (a->is_off || next <= d->room || next == a->failed || !is_near(d)) return;
  bool runs_all = all > 1 && pestle_decode_find(d, 1, all, d->room);
  bool has_one = is_made(d, 1, next);
  bool has_all = !runs_all || is_made(d, all, next);
  if (has_one && has_all) return;
  if (a->is_started && !is_done(a)) return;
  pestle_decode_take_ahead(d, 0);
  if (!has_one) a->plans[a->count++] = (decode_plan_t){1, 1, next, NULL};
  if (!has_all) a->plans[a->count++] = (decode_plan_t){1, all, next, NULL};
  start(d);
}

// --- What becomes of it ---

void pestle_decode_take_ahead(pestle_decoder_t* d, int64_t room) {
  decode_ahead_t* a = &d->ahead;
  if (!a->is_started) return;
  if (!is_done(a)) {
    if (!a->count || a->plans[0].room != room) return;
    ++a->waits;
  }
  join(a);
  for (size_t i = 0; i < a->count; ++i) {
    pestle_executable_t* executable = a->plans[i].executable;
    if (executable && d->plan_count < DECODE_MOST_PLANS) {
      d->plans[d->plan_count++] = a->plans[i];
    } else {
      pestle_executable_release(executable);
      a->failed = a->plans[i].room;
    }
  }
  a->count = 0;
}

bool pestle_decode_drop_ahead(pestle_decoder_t* d) {
  decode_ahead_t* a = &d->ahead;
  if (!a->is_started) return false;
  __atomic_store_n(&a->cancel, 1, __ATOMIC_RELAXED);
  a->failed = a->plans[0].room;
  join(a);
  for (size_t i = 0; i < a->count; ++i)
    pestle_executable_release(a->plans[i].executable);
  a->count = 0;
  __atomic_store_n(&a->cancel, 0, __ATOMIC_RELAXED);
  return true;
}

bool pestle_decode_relieve(pestle_decoder_t* d, pestle_status_t* status) {
  pestle_status_code_t code = pestle_status_code(*status);
  bool is_short = code == PESTLE_STATUS_RESOURCE_EXHAUSTED ||
                  code == PESTLE_STATUS_OUT_OF_MEMORY;
  if (!*status || !is_short || !pestle_decode_drop_ahead(d)) return false;
  pestle_status_release(*status);
  *status = NULL;
  return true;
}

// SPDX-License-Identifier: Apache-2.0
// The next room's executables, made by a second thread while tokens come, so that none of them
// waits for a compilation. A thread makes those for one token, of one sequence and, where runs
// are of all slots, of those, and ends. What it made lies apart until it is needed: where memory
// is short it goes first.
//
// The thread reads what is fixed once the decoder is open, and writes |plans| of
// decode_ahead_t, which the decoder reads when |is_done| or behind a join.
//
// exit() destroys what LLVM and other libraries keep, under a thread that still compiles: it
// cancels those that run, and waits for them first.
#include "session/decode.h"

#include "base/context.h"
#include "base/thread.h"

// --- Those that run ---

// Of the process, which exit() ends: the one variable of the library's own. The lock is the id
// of the process that holds it. A child of fork() has none of its parent's threads: it takes a
// lock that one of them held, and forgets their list.
static struct {
  _Atomic int64_t holder;
  int64_t process;  // whose list it is
  decode_ahead_t* first;
  bool is_leaving;
  int calls;  // that exit() makes
} pestle_decode_running;

static void lock(void) {
  int64_t process = pestle_process_id(), seen = 0;
  while (seen == process ||
         !atomic_compare_exchange_weak(&pestle_decode_running.holder, &seen,
                                       process)) {
    pestle_thread_yield();
    seen = atomic_load(&pestle_decode_running.holder);
  }
  if (pestle_decode_running.process != process)
    pestle_decode_running.first = NULL;
  pestle_decode_running.process = process;
}

static void unlock(void) {
  atomic_store(&pestle_decode_running.holder, 0);
}

static void leave(void) {
  bool is_any = true;
  while (is_any) {
    lock();
    pestle_decode_running.is_leaving = true;
    for (decode_ahead_t* a = pestle_decode_running.first; a; a = a->next)
      __atomic_store_n(&a->cancel, 1, __ATOMIC_RELAXED);
    is_any = pestle_decode_running.first != NULL;
    unlock();
    if (is_any) pestle_thread_sleep_ns(100000);
  }
}

// Where exit() is not the main thread's its calls go from last to first: what libraries that are
// opened by the first of these threads have it call goes before |leave|, unless that is told
// again for the next.
static void tell_exit(void) {
  enum { MOST_CALLS = 8 };
  lock();
  bool may = pestle_decode_running.calls < MOST_CALLS;
  pestle_decode_running.calls += may;
  unlock();
  if (may) pestle_thread_at_exit(leave);
}

// False: the process ends.
static bool enter(decode_ahead_t* a) {
  tell_exit();
  lock();
  bool may = !pestle_decode_running.is_leaving;
  a->next = pestle_decode_running.first;
  if (may) pestle_decode_running.first = a;
  unlock();
  return may;
}

static void end(const decode_ahead_t* a) {
  lock();
  decode_ahead_t** at = &pestle_decode_running.first;
  while (*at && *at != a)
    at = &(*at)->next;
  if (*at) *at = a->next;
  unlock();
}

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
  end(a);
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
  bool may = enter(a);
  pestle_status_t status =
      may ? pestle_thread_start(work, d, "pestle-decode", &a->thread) : NULL;
  a->is_started = may && !status;
  if (status) end(a);
  if (!a->is_started) {
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

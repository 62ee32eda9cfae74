// SPDX-License-Identifier: Apache-2.0
// Which executions are held, for how long, and what becomes of them.
#include "pjrt/merge.h"

#include <string.h>

#include "base/mem.h"
#include "base/thread.h"
#include "pjrt/merge_sequence.h"
#include "pjrt/slots.h"

typedef pestle_pjrt_sequence_t sequence_t;
typedef pestle_pjrt_execution_t execution_t;

// How long a hold lasts when nobody comes and nobody asks, in nanoseconds: twice
// what the parts took to come when they were compared, within these bounds.
static const int64_t shortest_hold = 200 * 1000, longest_hold = 1000 * 1000;
// Of ten holds so many may be ended by somebody who asks, or by nobody coming.
enum { HOLDS = 10, MOST_ASKED = 2, MOST_EXPIRED = 5 };

// An event to be set when the lock is not held: whoever waits for it is called.
typedef struct told_t {
  PJRT_Event* event;  // held
  PJRT_Error* error;
} told_t;

// One call ends two holds at most.
enum { MOST_TOLD = 2 * PESTLE_PJRT_MERGE_STEPS };

struct pestle_pjrt_merge_t {
  PJRT_Device* device;
  pestle_mutex_t mutex;  // of all that follows
  pestle_pjrt_history_t history;
  sequence_t* sequences[PESTLE_PJRT_MERGE_SEQUENCES];
  size_t sequence_count;
  // What is held: the first parts of |current|.
  sequence_t* current;
  execution_t* held[PESTLE_PJRT_MERGE_STEPS];
  atomic_size_t held_count;
  int64_t first_ns;  // when the first one came
  told_t told[MOST_TOLD];
  size_t told_count;
  // The memory of the arguments from outside that are known so far.
  const void** bound;
  size_t bound_room;
  atomic_bool is_asked;  // for a result, since the last execution
  // Ends holds and compiles sequences; started with the first sequence.
  pestle_cond_t cond;
  pestle_thread_t watcher, compiler;
  bool has_watcher, has_compiler;
  bool is_ending;
  volatile int32_t cancel;
};

// --- Ending a hold ---

// Unlocks, then tells of what has ended.
static void unlock(pestle_pjrt_merge_t* m) {
  told_t told[MOST_TOLD];
  size_t count = m->told_count;
  memcpy(told, m->told, count * sizeof(told[0]));
  m->told_count = 0;
  pestle_mutex_unlock(&m->mutex);
  for (size_t i = 0; i < count; ++i) {
    pestle_pjrt_event_set(told[i].event, told[i].error);
    pestle_pjrt_event_release(told[i].event);
  }
}

// Gives the results of |e| what there is of them, and frees it. |error|: why it
// has not run, if it is not queued.
static void deliver(pestle_pjrt_merge_t* m, execution_t* e,
                    const PJRT_Error* error) {
  if (!e->is_queued) {
    pestle_pjrt_execution_drop_inputs(e, false);
    pestle_pjrt_event_retain(e->done);
    m->told[m->told_count++] = (told_t){e->done, pestle_pjrt_error_copy(error)};
  }
  for (size_t i = 0; i < e->output_count; ++i)
    pestle_pjrt_buffer_deliver(e->results[i], e->outputs[i]);
  pestle_pjrt_execution_free(e);
}

// Lets go of what was held; |error|, which is taken over, is of what is not queued.
static void end_hold(pestle_pjrt_merge_t* m, PJRT_Error* error) {
  size_t count = atomic_load(&m->held_count);
  for (size_t k = 0; k < count; ++k)
    deliver(m, m->held[k], error);
  pestle_pjrt_error_free(error);
  m->current = NULL;
  atomic_store(&m->held_count, 0);
}

// Queues what is held as it came.
static void run_singly(pestle_pjrt_merge_t* m) {
  PJRT_Error* error = NULL;
  size_t count = atomic_load(&m->held_count);
  for (size_t k = 0; k < count && !error; ++k) {
    pestle_pjrt_sequence_wire(m->current, m->held, k);
    error = pestle_pjrt_run_queued(m->held[k]);
    if (error) break;
    pestle_pjrt_execution_drop_inputs(m->held[k], true);
    m->held[k]->held = 0;
  }
  end_hold(m, error);
}

// After the last part, or in place of it, a look at whether holds are worth it.
static void count_hold(sequence_t* s, bool was_asked, bool has_expired) {
  ++s->holds;
  s->asked += was_asked;
  s->expired += has_expired;
  if (s->asked >= MOST_ASKED || s->expired >= MOST_EXPIRED) {
    s->is_given_up = true;
    atomic_store(&s->state, PESTLE_PJRT_SEQUENCE_REFUSED);
  }
  if (s->holds == HOLDS) s->holds = s->asked = s->expired = 0;
}

static void break_hold(pestle_pjrt_merge_t* m, bool was_asked,
                       bool has_expired) {
  if (!atomic_load(&m->held_count)) return;
  count_hold(m->current, was_asked, has_expired);
  run_singly(m);
}

void pestle_pjrt_merge_flush(pestle_pjrt_merge_t* m) {
  pestle_mutex_lock(&m->mutex);
  break_hold(m, false, false);
  unlock(m);
}

// In a child of fork() the lock may be held for ever.
void pestle_pjrt_merge_settle(PJRT_Buffer* buffer) {
  pestle_pjrt_merge_t* m = buffer->device->merge;
  atomic_store_explicit(&m->is_asked, true, memory_order_relaxed);
  if (!atomic_load_explicit(&buffer->is_held, memory_order_acquire)) return;
  if (pestle_pjrt_client_is_torn(buffer->device->client)) return;
  pestle_mutex_lock(&m->mutex);
  if (atomic_load(&buffer->is_held)) break_hold(m, true, false);
  unlock(m);
}

// --- The last part ---

// Waits until the device has nothing to do. Not where a callback is queued: it may
// need the lock of the interpreter, which somebody may hold who waits for ours.
static bool drain(const pestle_pjrt_merge_t* m) {
  if (atomic_load(&m->device->queued_callbacks)) return false;
  pestle_status_t status = pestle_stream_synchronize(m->device->stream);
  bool is_fine = !status;
  pestle_status_release(status);
  return is_fine;
}

static void run_merged(pestle_pjrt_merge_t* m) {
  sequence_t* s = m->current;
  int64_t hold_ns = pestle_clock_ns() - m->first_ns;
  count_hold(s, false, false);
  if (atomic_load(&s->state) == PESTLE_PJRT_SEQUENCE_USED) {
    end_hold(m, pestle_pjrt_sequence_submit(s, m->held));
  } else if (atomic_load(&s->state) == PESTLE_PJRT_SEQUENCE_COMPARED &&
             drain(m)) {
    // On this thread, which waits for both.
    end_hold(m, pestle_pjrt_sequence_compare(s, m->held, hold_ns));
  } else {
    run_singly(m);
  }
}

// --- Holding ---

// The memory of |buffer| if that is there and nobody is to write it.
static const void* memory_of(PJRT_Buffer* buffer) {
  pestle_buffer_t* memory = NULL;
  if (atomic_load(&buffer->is_held)) return NULL;
  PJRT_Error* error = pestle_pjrt_buffer_hold_now(buffer, &memory);
  pestle_pjrt_error_free(error);
  pestle_buffer_release(memory);
  return memory;
}

static bool is_wired(const pestle_pjrt_merge_t* m, const sequence_t* s,
                     size_t at, const execution_t* e, size_t i) {
  const pestle_link_source_t* from = &s->steps[at].sources[i];
  PJRT_Buffer* buffer = e->arguments[i];
  if (!buffer) return false;
  if (from->part != PESTLE_LINK_ARGUMENT)
    return buffer == m->held[from->part]->results[from->index];
  const void* memory = memory_of(buffer);
  if (!memory) return false;
  if (m->bound[from->index]) return m->bound[from->index] == memory;
  m->bound[from->index] = memory;
  return true;
}

// Whether |e| is part |at| of |s|, wired as that is.
static bool matches(const pestle_pjrt_merge_t* m, const sequence_t* s,
                    size_t at, const execution_t* e,
                    const PJRT_ExecuteOptions* options) {
  if (s->steps[at].program != e->program) return false;
  for (size_t i = 0; i < e->input_count; ++i) {
    if (!is_wired(m, s, at, e, i)) return false;
    if (e->program->is_donor[i] && !pestle_pjrt_may_donate(options, i))
      return false;
  }
  return true;
}

static bool make_room(pestle_pjrt_merge_t* m, size_t count) {
  if (m->bound_room < count) {
    pestle_dealloc(pestle_allocator_system(), m->bound,
                   m->bound_room * sizeof(*m->bound));
    m->bound =
        pestle_alloc_array(pestle_allocator_system(), count, sizeof(*m->bound));
    m->bound_room = m->bound ? count : 0;
  }
  if (m->bound) memset(m->bound, 0, m->bound_room * sizeof(*m->bound));
  return m->bound_room >= count;
}

static bool is_open(sequence_t* s) {
  int state = atomic_load_explicit(&s->state, memory_order_acquire);
  return state == PESTLE_PJRT_SEQUENCE_COMPARED ||
         state == PESTLE_PJRT_SEQUENCE_USED;
}

// The sequence that begins with |e|, or NULL.
static sequence_t* begin(pestle_pjrt_merge_t* m, const execution_t* e,
                         const PJRT_ExecuteOptions* options) {
  for (size_t i = 0; i < m->sequence_count; ++i) {
    sequence_t* s = m->sequences[i];
    if (s->steps[0].program == e->program && is_open(s) &&
        make_room(m, s->argument_count + 1) && matches(m, s, 0, e, options)) {
      return s;
    }
  }
  return NULL;
}

static PJRT_Error* hold(pestle_pjrt_merge_t* m, execution_t* e,
                        const PJRT_ExecuteOptions* options) {
  size_t count = atomic_load(&m->held_count);
  PJRT_TRY(pestle_pjrt_execution_prepare(e, options));
  execution_t* kept = pestle_pjrt_execution_keep(e);
  if (!kept) {
    pestle_pjrt_execution_drop_inputs(e, false);
    for (size_t i = 0; i < e->program->output_count; ++i)
      pestle_pjrt_buffer_release(e->results[i]);
    return pestle_pjrt_out_of_memory();
  }
  for (size_t i = 0; i < e->output_count; ++i)
    atomic_store(&e->results[i]->is_held, true);
  if (!count) {
    // What comes later does not follow what was noted.
    pestle_pjrt_history_break(&m->history);
    m->first_ns = pestle_clock_ns();
    pestle_cond_broadcast(&m->cond);
  }
  m->held[count] = kept;
  atomic_store(&m->held_count, count + 1);
  if (count + 1 == m->current->length) run_merged(m);
  return NULL;
}

static PJRT_Error* offer(pestle_pjrt_merge_t* m, execution_t* e,
                         const PJRT_ExecuteOptions* options,
                         bool* out_is_held) {
  size_t count = atomic_load(&m->held_count);
  if (count && !matches(m, m->current, count, e, options)) {
    break_hold(m, false, false);
    count = 0;
  }
  if (!count) m->current = begin(m, e, options);
  if (!m->current) return NULL;
  PJRT_Error* error = hold(m, e, options);
  if (error)
    run_singly(m);
  else
    *out_is_held = true;
  return error;
}

PJRT_Error* pestle_pjrt_merge_offer(pestle_pjrt_merge_t* m, execution_t* e,
                                    const PJRT_ExecuteOptions* options,
                                    bool* out_is_held) {
  *out_is_held = false;
  if (!atomic_load_explicit(&m->held_count, memory_order_acquire) &&
      !atomic_load_explicit(&e->program->begins_sequence,
                            memory_order_acquire)) {
    return NULL;
  }
  pestle_mutex_lock(&m->mutex);
  PJRT_Error* error = offer(m, e, options, out_is_held);
  unlock(m);
  return error;
}

// --- Threads ---

static int64_t limit_of(const sequence_t* s) {
  int64_t limit = 2 * s->hold_ns;
  if (limit < shortest_hold) return shortest_hold;
  return limit < longest_hold ? limit : longest_hold;
}

// Ends holds that nobody ends otherwise. While something is held it looks every so
// often: the lock has no wait with an end.
static void watch(void* self) {
  pestle_pjrt_merge_t* m = self;
  pestle_mutex_lock(&m->mutex);
  while (!m->is_ending) {
    if (!atomic_load(&m->held_count)) {
      pestle_cond_wait(&m->cond, &m->mutex);
      continue;
    }
    int64_t left = m->first_ns + limit_of(m->current) - pestle_clock_ns();
    if (left <= 0) break_hold(m, false, true);
    unlock(m);
    if (left > 0) pestle_thread_sleep_ns(left);
    pestle_mutex_lock(&m->mutex);
  }
  pestle_mutex_unlock(&m->mutex);
}

static sequence_t* next_new(const pestle_pjrt_merge_t* m) {
  for (size_t i = 0; i < m->sequence_count; ++i) {
    if (atomic_load(&m->sequences[i]->state) == PESTLE_PJRT_SEQUENCE_NEW)
      return m->sequences[i];
  }
  return NULL;
}

static void compile(void* self) {
  pestle_pjrt_merge_t* m = self;
  pestle_mutex_lock(&m->mutex);
  while (!m->is_ending) {
    sequence_t* s = next_new(m);
    if (!s) {
      pestle_cond_wait(&m->cond, &m->mutex);
      continue;
    }
    pestle_mutex_unlock(&m->mutex);
    pestle_pjrt_sequence_compile(s, &m->cancel);
    pestle_mutex_lock(&m->mutex);
  }
  pestle_mutex_unlock(&m->mutex);
}

static bool start(pestle_thread_fn_t fn, pestle_pjrt_merge_t* m,
                  const char* name, pestle_thread_t* out_thread) {
  pestle_status_t status = pestle_thread_start(fn, m, name, out_thread);
  bool has_started = !status;
  pestle_status_release(status);
  return has_started;
}

static bool start_threads(pestle_pjrt_merge_t* m) {
  if (!m->has_watcher)
    m->has_watcher = start(watch, m, "pestle-hold", &m->watcher);
  if (m->has_watcher && !m->has_compiler)
    m->has_compiler = start(compile, m, "pestle-merge", &m->compiler);
  return m->has_watcher && m->has_compiler;
}

// --- History ---

// Whether the last |length| executions have been looked at. One that was given up
// because of how the caller asks may begin with another of its parts.
static bool is_known(const pestle_pjrt_merge_t* m, size_t length) {
  uint64_t first, key;
  pestle_pjrt_history_keys(&m->history, length, &first, &key);
  for (size_t i = 0; i < m->sequence_count; ++i) {
    const sequence_t* s = m->sequences[i];
    if (s->key == key && (!s->is_given_up || s->first_key == first))
      return true;
  }
  return false;
}

static void look(pestle_pjrt_merge_t* m) {
  size_t length = pestle_pjrt_history_repeats(&m->history);
  if (!length || m->sequence_count == PESTLE_PJRT_MERGE_SEQUENCES ||
      is_known(m, length) || !start_threads(m)) {
    return;
  }
  sequence_t* s = pestle_pjrt_history_make(&m->history, m->device, length);
  if (!s) return;
  m->sequences[m->sequence_count++] = s;
  atomic_store_explicit(&s->steps[0].program->begins_sequence, true,
                        memory_order_release);
  pestle_pjrt_history_break(&m->history);
  pestle_cond_broadcast(&m->cond);
}

void pestle_pjrt_merge_note(pestle_pjrt_merge_t* m, const execution_t* e) {
  if (pestle_pjrt_history_skips(&m->history, e)) return;
  pestle_mutex_lock(&m->mutex);
  bool was_asked =
      atomic_exchange_explicit(&m->is_asked, false, memory_order_relaxed);
  pestle_pjrt_history_add(&m->history, e, was_asked);
  look(m);
  pestle_mutex_unlock(&m->mutex);
}

// --- Life ---

PJRT_Error* pestle_pjrt_merge_create(PJRT_Device* device,
                                     pestle_pjrt_merge_t** out_merge) {
  *out_merge = NULL;
  if (device->client->settings.merging == PESTLE_PJRT_MERGING_NEVER)
    return NULL;
  pestle_pjrt_merge_t* m =
      pestle_alloc_zero(pestle_allocator_system(), sizeof(*m));
  if (!m) return pestle_pjrt_out_of_memory();
  m->device = device;
  m->history.is_soon =
      device->client->settings.merging == PESTLE_PJRT_MERGING_SOON;
  pestle_mutex_init(&m->mutex);
  pestle_cond_init(&m->cond);
  *out_merge = m;
  return NULL;
}

static void end_threads(pestle_pjrt_merge_t* m) {
  pestle_mutex_lock(&m->mutex);
  break_hold(m, false, false);
  m->is_ending = true;
  __atomic_store_n(&m->cancel, 1, __ATOMIC_RELAXED);
  pestle_cond_broadcast(&m->cond);
  unlock(m);
  if (m->has_watcher) pestle_thread_join(&m->watcher);
  if (m->has_compiler) pestle_thread_join(&m->compiler);
}

void pestle_pjrt_merge_release(pestle_pjrt_merge_t* m) {
  if (!m) return;
  end_threads(m);
  for (size_t i = 0; i < m->sequence_count; ++i)
    pestle_pjrt_sequence_free(m->sequences[i]);
  pestle_pjrt_history_deinit(&m->history);
  pestle_dealloc(pestle_allocator_system(), m->bound,
                 m->bound_room * sizeof(*m->bound));
  pestle_cond_deinit(&m->cond);
  pestle_mutex_deinit(&m->mutex);
  pestle_dealloc(pestle_allocator_system(), m, sizeof(*m));
}

// SPDX-License-Identifier: Apache-2.0
#include "runtime/pool.h"

#include <string.h>

#include "base/mem.h"

// Looks of a thread that waits before it offers its core to others, 5 to 20 us: they
// bridge the gap between two kernels of a run.
enum { SPIN_COUNT = 400 };
// And how long one that had a part in the last job goes on to look between such offers
// until it sleeps: as long as pieces of a long kernel differ, or a caller takes between
// two runs. To wake takes 10 to 50 us (a virtual core is halted).
enum { LINGER_NS = 100000, LINGER_COUNT = 16 };
// A worker steps aside at most so often.
enum { ASIDE_NS = 2000000 };
// Parts of a job that participants begin with.
enum { MOST_PARTS = 16 };

// Pieces that follow each other. Who has none left takes from the next part.
typedef struct part_t {
  _Alignas(64) _Atomic(int64_t) next;
  int64_t end;
} part_t;

struct pestle_pool_job_t {
  pestle_pool_fn_t fn;
  void* arg;
  int32_t cap, part_count;
  atomic_int joined;                         // participants so far
  _Atomic(uint64_t) cpus[PESTLE_CPU_WORDS];  // a bit for where each one runs
  part_t parts[MOST_PARTS];
};

// Each participant has a part of its own first, and the same one in the next
// job of as many pieces: what one kernel wrote is in the cache of whoever reads
// it in the next.
static void work_off(pestle_pool_job_t* job, int32_t participant) {
  for (int32_t i = 0; i < job->part_count; ++i) {
    part_t* part = &job->parts[(participant + i) % job->part_count];
    for (;;) {
      int64_t piece =
          atomic_fetch_add_explicit(&part->next, 1, memory_order_relaxed);
      if (piece >= part->end) break;
      job->fn(job->arg, participant, piece);
    }
  }
}

static void share_out(pestle_pool_job_t* job, int64_t count) {
  job->part_count = job->cap < MOST_PARTS ? job->cap : MOST_PARTS;
  for (int32_t i = 0; i < job->part_count; ++i) {
    atomic_init(&job->parts[i].next, count * i / job->part_count);
    job->parts[i].end = count * (i + 1) / job->part_count;
  }
}

// --- Places ---

// Notes where this participant runs; whether another one was there already.
static bool take_cpu(pestle_pool_job_t* job) {
  int cpu = pestle_thread_cpu();
  if (cpu < 0 || cpu >= PESTLE_CPU_WORDS * 64) return false;
  uint64_t bit = 1ull << (cpu % 64);
  return atomic_fetch_or_explicit(&job->cpus[cpu / 64], bit,
                                  memory_order_relaxed) &
         bit;
}

// Two participants on one processor take turns, each at half its speed, until
// the system's balancer sees it; while other processes keep the processors busy
// that was never, as measured (two cores, load 10: a product of 512^3 took as
// long with two threads as with one, for a second and more). So a worker that
// meets another participant goes to a processor that has none.
static void find_cpu(pestle_pool_job_t* job, int64_t* moved_ns) {
  if (!take_cpu(job)) return;
  int64_t now = pestle_clock_ns();
  if (now - *moved_ns < ASIDE_NS) return;
  *moved_ns = now;
  uint64_t taken[PESTLE_CPU_WORDS];
  for (int i = 0; i < PESTLE_CPU_WORDS; ++i) {
    taken[i] = atomic_load_explicit(&job->cpus[i], memory_order_relaxed);
  }
  pestle_thread_step_aside(taken);
  (void)take_cpu(job);
}

// --- Workers ---

// Takes part in the job of |slot|, if there is one that wants more; whether it did.
static bool visit_slot(pestle_pool_t* pool, pestle_pool_slot_t* slot,
                       int64_t* moved_ns) {
  bool joined = false;
  if (!atomic_load_explicit(&slot->job, memory_order_relaxed)) return false;
  // Sequentially consistent, as is the submitter's withdrawal: either we see
  // that the job is gone, or the submitter sees us.
  atomic_fetch_add(&slot->visitors, 1);
  pestle_pool_job_t* job = atomic_load(&slot->job);
  if (job) {
    int32_t participant =
        atomic_fetch_add_explicit(&job->joined, 1, memory_order_relaxed);
    joined = participant < job->cap;
    if (joined) {
      find_cpu(job, moved_ns);
      work_off(job, participant);
    }
  }
  if (atomic_fetch_sub(&slot->visitors, 1) != 1) return joined;
  if (!atomic_load(&slot->waiting)) return joined;
  pestle_mutex_lock(&pool->mutex);
  pestle_cond_broadcast(&pool->done);
  pestle_mutex_unlock(&pool->mutex);
  return joined;
}

static bool look_for_work(pestle_pool_t* pool, unsigned epoch, int count) {
  for (int i = 0; i < count; ++i) {
    if (atomic_load_explicit(&pool->epoch, memory_order_acquire) != epoch) {
      return true;
    }
    pestle_cpu_relax();
  }
  return false;
}

static bool spin_for_work(pestle_pool_t* pool, unsigned epoch, bool lingers) {
  if (look_for_work(pool, epoch, SPIN_COUNT)) return true;
  if (!lingers) return false;
  int64_t until = pestle_clock_ns() + LINGER_NS;
  do {
    pestle_thread_yield();
    if (look_for_work(pool, epoch, LINGER_COUNT)) return true;
  } while (pestle_clock_ns() < until);
  return false;
}

static void sleep_for_work(pestle_pool_t* pool, unsigned epoch) {
  pestle_mutex_lock(&pool->mutex);
  // Before |epoch| is looked at: a submitter changes it and then looks here.
  atomic_fetch_add(&pool->sleepers, 1);
  while (atomic_load(&pool->epoch) == epoch) {
    pestle_cond_wait(&pool->work, &pool->mutex);
  }
  atomic_fetch_sub(&pool->sleepers, 1);
  pestle_mutex_unlock(&pool->mutex);
}

static void worker_main(void* argument) {
  pestle_pool_t* pool = argument;
  int64_t moved_ns = 0;
  if (pool->trace) pestle_trace_name_thread(pool->trace, "pestle worker");
  while (!atomic_load(&pool->stop)) {
    unsigned epoch = atomic_load(&pool->epoch);
    bool joined = false;
    for (int i = 0; i < PESTLE_POOL_SLOTS; ++i) {
      joined |= visit_slot(pool, &pool->slots[i], &moved_ns);
    }
    if (atomic_load(&pool->stop)) return;
    if (!spin_for_work(pool, epoch, joined)) sleep_for_work(pool, epoch);
  }
}

// Starts threads until |wanted| run. Less threads are no error: the submitter
// does their work.
static void start_threads(pestle_pool_t* pool, int32_t wanted) {
  if (atomic_load_explicit(&pool->started, memory_order_acquire) >= wanted) {
    return;
  }
  pestle_mutex_lock(&pool->mutex);
  if (!pool->threads) {
    pool->threads = pestle_alloc_array(pool->allocator, (size_t)pool->size,
                                       sizeof(*pool->threads));
  }
  int started = atomic_load(&pool->started);
  while (pool->threads && started < wanted) {
    pestle_status_t status = pestle_thread_start(worker_main, pool, "pestle",
                                                 &pool->threads[started]);
    if (status) {
      pestle_status_release(status);
      break;
    }
    atomic_store_explicit(&pool->started, ++started, memory_order_release);
  }
  pestle_mutex_unlock(&pool->mutex);
}

// --- Submitting ---

static pestle_pool_slot_t* take_slot(pestle_pool_t* pool) {
  for (int i = 0; i < PESTLE_POOL_SLOTS; ++i) {
    pestle_pool_slot_t* slot = &pool->slots[i];
    if (!atomic_load_explicit(&slot->taken, memory_order_relaxed) &&
        !atomic_exchange(&slot->taken, true)) {
      return slot;
    }
  }
  return NULL;
}

static void publish(pestle_pool_t* pool, pestle_pool_slot_t* slot,
                    pestle_pool_job_t* job) {
  atomic_store(&slot->job, job);
  atomic_fetch_add(&pool->epoch, 1);
  int asleep = atomic_load(&pool->sleepers);
  if (!asleep) return;
  int wanted = job->cap - 1;
  pestle_mutex_lock(&pool->mutex);
  if (wanted >= asleep) {
    pestle_cond_broadcast(&pool->work);
  } else {
    for (int i = 0; i < wanted; ++i)
      pestle_cond_signal(&pool->work);
  }
  pestle_mutex_unlock(&pool->mutex);
}

// Whether all visitors left soon.
static bool spin_for_visitors(const pestle_pool_slot_t* slot) {
  for (int i = 0; i < SPIN_COUNT; ++i) {
    if (!atomic_load(&slot->visitors)) return true;
    pestle_cpu_relax();
  }
  int64_t until = pestle_clock_ns() + LINGER_NS;
  do {
    pestle_thread_yield();
    if (!atomic_load(&slot->visitors)) return true;
  } while (pestle_clock_ns() < until);
  return false;
}

static void withdraw(pestle_pool_t* pool, pestle_pool_slot_t* slot) {
  atomic_store(&slot->job, NULL);
  if (!spin_for_visitors(slot)) {
    pestle_mutex_lock(&pool->mutex);
    atomic_store(&slot->waiting, true);
    while (atomic_load(&slot->visitors)) {
      pestle_cond_wait(&pool->done, &pool->mutex);
    }
    atomic_store(&slot->waiting, false);
    pestle_mutex_unlock(&pool->mutex);
  }
  atomic_store_explicit(&slot->taken, false, memory_order_release);
}

static void run_hook_task(void* arg, int64_t index) {
  work_off(arg, (int32_t)index);
}

void pestle_pool_run(pestle_pool_t* pool, int64_t count, int32_t cap,
                     pestle_pool_fn_t fn, void* arg) {
  if (count <= 0) return;
  if (cap <= 0 || cap > pool->size) cap = pool->size;
  if (cap > count) cap = (int32_t)count;
  pestle_pool_job_t job;
  job.fn = fn;
  job.arg = arg;
  job.cap = cap;
  share_out(&job, count);
  atomic_init(&job.joined, 1);
  for (int i = 0; i < PESTLE_CPU_WORDS; ++i)
    atomic_init(&job.cpus[i], 0);
  if (cap > 1 && pool->hook.parallel_for) {
    // One task a participant, so that the cap and the numbers hold whatever
    // threads the application uses.
    pool->hook.parallel_for(pool->hook.user, cap, run_hook_task, &job);
    return;
  }
  pestle_pool_slot_t* slot = NULL;
  if (cap > 1) {
    start_threads(pool, cap - 1);
    slot = take_slot(pool);
  }
  if (slot) {
    (void)take_cpu(&job);
    publish(pool, slot, &job);
  }
  work_off(&job, 0);
  if (slot) withdraw(pool, slot);
}

// --- Life ---

static void init_state(pestle_pool_t* pool) {
  pool->threads = NULL;
  pool->trace = NULL;
  pestle_mutex_init(&pool->mutex);
  pestle_cond_init(&pool->work);
  pestle_cond_init(&pool->done);
  atomic_init(&pool->started, 0);
  atomic_init(&pool->sleepers, 0);
  atomic_init(&pool->stop, false);
  atomic_init(&pool->epoch, 0);
  for (int i = 0; i < PESTLE_POOL_SLOTS; ++i) {
    pestle_pool_slot_t* slot = &pool->slots[i];
    atomic_init(&slot->job, NULL);
    atomic_init(&slot->taken, false);
    atomic_init(&slot->waiting, false);
    atomic_init(&slot->visitors, 0);
  }
}

void pestle_pool_init(pestle_allocator_t allocator, int32_t size,
                      pestle_pool_hook_t hook, pestle_pool_t* out_pool) {
  out_pool->allocator = allocator;
  out_pool->size = size;
  out_pool->hook = hook;
  init_state(out_pool);
}

void pestle_pool_deinit(pestle_pool_t* pool) {
  if (!pool->size) return;
  atomic_store(&pool->stop, true);
  pestle_mutex_lock(&pool->mutex);
  atomic_fetch_add(&pool->epoch, 1);
  pestle_cond_broadcast(&pool->work);
  pestle_mutex_unlock(&pool->mutex);
  int started = atomic_load(&pool->started);
  for (int i = 0; i < started; ++i)
    pestle_thread_join(&pool->threads[i]);
  pestle_dealloc(pool->allocator, pool->threads,
                 (size_t)pool->size * sizeof(*pool->threads));
  pestle_cond_deinit(&pool->done);
  pestle_cond_deinit(&pool->work);
  pestle_mutex_deinit(&pool->mutex);
  pool->size = 0;
}

void pestle_pool_after_fork(pestle_pool_t* pool) {
  // The old locks may be held by threads that do not exist here: they are not
  // destroyed but overwritten.
  pestle_dealloc(pool->allocator, pool->threads,
                 (size_t)pool->size * sizeof(*pool->threads));
  init_state(pool);
}

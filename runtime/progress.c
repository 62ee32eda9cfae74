// SPDX-License-Identifier: Apache-2.0
#include "runtime/progress.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/status_copy.h"
#include "runtime/context.h"
#include "runtime/device_comm.h"
#include "runtime/fpu_x86.h"

enum { MOST_JOBS = 64 };

typedef struct job_t {
  pestle_collective_t ops[PESTLE_COLLECTIVES_AT_ONCE];
  char name[96];  // of all of them
  size_t count;
  bool ordered;
} job_t;

struct pestle_progress_t {
  pestle_world_t* world;
  pestle_thread_t thread;
  pestle_mutex_t mutex;  // of what follows
  pestle_cond_t changed;
  bool stop;
  uint64_t given, done;  // jobs
  uint64_t number;       // of the collective that was done last
  pestle_status_t failure;
  job_t jobs[MOST_JOBS];
};

bool pestle_progress_may(const pestle_world_t* world) {
  // MPI may take calls from one thread alone.
  return world && world->overlaps && !world->carrier && !world->device_comms;
}

// --- The thread ---

// Without the lock: the job stays as it is until it is done.
static pestle_status_t do_job(const pestle_progress_t* p, const job_t* job) {
  return pestle_world_enqueue(p->world, job->ops, job->count, job->ordered);
}

static void work(void* user) {
  pestle_progress_t* p = user;
  // Sums are rounded as the run's own are.
  pestle_fpu_t fpu = pestle_fpu_enter();
  pestle_mutex_lock(&p->mutex);
  while (!p->stop || p->done < p->given) {
    if (p->done == p->given) {
      pestle_cond_wait(&p->changed, &p->mutex);
      continue;
    }
    const job_t* job = &p->jobs[p->done % MOST_JOBS];
    pestle_status_t status = NULL;
    if (!p->failure) {
      pestle_mutex_unlock(&p->mutex);
      status = do_job(p, job);
      pestle_mutex_lock(&p->mutex);
    }
    if (status) p->failure = status;
    p->number = job->ops[0].sequence;
    ++p->done;
    pestle_cond_broadcast(&p->changed);
  }
  pestle_mutex_unlock(&p->mutex);
  pestle_fpu_leave(fpu);
}

static pestle_status_t start(pestle_world_t* world) {
  pestle_allocator_t allocator = world->context->core.allocator;
  if (world->progress) return NULL;
  pestle_progress_t* p = pestle_alloc_zero(allocator, sizeof(*p));
  if (!p) return PESTLE_OOM();
  p->world = world;
  pestle_mutex_init(&p->mutex);
  pestle_cond_init(&p->changed);
  pestle_status_t status =
      pestle_thread_start(work, p, "pestle progress", &p->thread);
  if (status) {
    pestle_cond_deinit(&p->changed);
    pestle_mutex_deinit(&p->mutex);
    pestle_dealloc(allocator, p, sizeof(*p));
    return status;
  }
  world->progress = p;
  return NULL;
}

void pestle_progress_destroy(pestle_progress_t* p) {
  if (!p) return;
  pestle_mutex_lock(&p->mutex);
  p->stop = true;
  pestle_cond_broadcast(&p->changed);
  pestle_mutex_unlock(&p->mutex);
  pestle_thread_join(&p->thread);
  pestle_status_release(p->failure);
  pestle_cond_deinit(&p->changed);
  pestle_mutex_deinit(&p->mutex);
  pestle_dealloc(p->world->context->core.allocator, p, sizeof(*p));
}

// --- The run ---

pestle_status_t pestle_progress_give(pestle_world_t* world,
                                     const pestle_collective_t* ops,
                                     size_t count, bool ordered) {
  PESTLE_TRY(start(world));
  pestle_progress_t* p = world->progress;
  pestle_mutex_lock(&p->mutex);
  while (p->given - p->done == MOST_JOBS)
    pestle_cond_wait(&p->changed, &p->mutex);
  job_t* job = &p->jobs[p->given % MOST_JOBS];
  memcpy(job->ops, ops, count * sizeof(*ops));
  (void)snprintf(job->name, sizeof(job->name), "%s", ops->name);
  for (size_t i = 0; i < count; ++i)
    job->ops[i].name = job->name;
  job->count = count;
  job->ordered = ordered;
  ++p->given;
  pestle_cond_broadcast(&p->changed);
  pestle_mutex_unlock(&p->mutex);
  return NULL;
}

pestle_status_t pestle_progress_wait(pestle_world_t* world, uint64_t number) {
  pestle_progress_t* p = world->progress;
  if (!p) return NULL;
  pestle_mutex_lock(&p->mutex);
  while (p->number < number && p->done < p->given)
    pestle_cond_wait(&p->changed, &p->mutex);
  pestle_status_t status = pestle_status_retain(p->failure);
  pestle_mutex_unlock(&p->mutex);
  return status;
}

void pestle_progress_drain(pestle_world_t* world) {
  if (!world || !world->progress) return;
  pestle_status_release(pestle_progress_wait(world, UINT64_MAX));
}

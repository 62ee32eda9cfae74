// SPDX-License-Identifier: Apache-2.0
#include "plugins/llvm/guard.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "plugins/common/error.h"

// As much as a main thread has: LLVM recurses, whatever stacks the application
// gives its own threads.
enum { STACK_BYTES = 8 << 20 };

typedef struct guard_t {
  pestle_status_t (*task)(void* arg);
  void* arg;
  pestle_status_t status;
  bool lost;
  char reason[2048];
  sem_t done;
} guard_t;

// The guard that this thread runs under. NULL: not one of ours.
static _Thread_local guard_t* t_guard;
// Of the process, as the threads that it counts are.
static atomic_int g_lost;

// What LLVM says itself when nobody handles its errors; it ends the process
// next.
static void report_foreign(const char* reason) {
  static const char head[] = "LLVM ERROR: ";
  ssize_t written = write(STDERR_FILENO, head, sizeof head - 1);
  written += write(STDERR_FILENO, reason, strlen(reason));
  written += write(STDERR_FILENO, "\n", 1);
  (void)written;
}

void pestle_llvm_on_fatal(const char* reason) {
  guard_t* guard = t_guard;
  if (!guard) {
    report_foreign(reason);
    return;
  }
  size_t size = strlen(reason);
  if (size >= sizeof guard->reason) size = sizeof guard->reason - 1;
  memcpy(guard->reason, reason, size);
  guard->reason[size] = 0;
  guard->lost = true;
  sem_post(&guard->done);  // from here on |guard| is its owner's
  for (;;)
    pause();
}

static void* run(void* arg) {
  guard_t* guard = arg;
  t_guard = guard;
  guard->status = guard->task(guard->arg);
  t_guard = NULL;
  sem_post(&guard->done);
  return NULL;
}

// Starts the thread with all signals blocked: the application's are not for it.
static int start(guard_t* guard, pthread_t* out_thread) {
  pthread_attr_t attr;
  sigset_t all, before;
  int error = pthread_attr_init(&attr);
  if (error) return error;
  error = pthread_attr_setstacksize(&attr, STACK_BYTES);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (!error) error = pthread_create(out_thread, &attr, run, guard);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attr);
  return error;
}

static pestle_status_t lose(const pestle_host_t* host, const char* kernel,
                            const guard_t* guard) {
  int lost = 1 + atomic_fetch_add(&g_lost, 1);
  return PESTLE_PLUGIN_ERROR(
      host, UNSUPPORTED,
      "LLVM cannot compile kernel '%s' and gave up with a fatal error (%d of "
      "at most %d in a process): %s",
      kernel, lost, PESTLE_LLVM_MAX_LOST, guard->reason);
}

pestle_status_t pestle_llvm_guard(const pestle_host_t* host, const char* kernel,
                                  pestle_status_t (*task)(void* arg), void* arg,
                                  bool* out_lost) {
  guard_t guard = {.task = task, .arg = arg};
  pthread_t thread;
  *out_lost = false;
  if (atomic_load(&g_lost) >= PESTLE_LLVM_MAX_LOST) {
    return PESTLE_PLUGIN_ERROR(
        host, UNAVAILABLE,
        "LLVM met %d fatal errors in this process and is not asked to compile "
        "'%s'; start the process anew, or choose the device 'ref'",
        PESTLE_LLVM_MAX_LOST, kernel);
  }
  sem_init(&guard.done, 0, 0);
  int error = start(&guard, &thread);
  if (error) {
    sem_destroy(&guard.done);
    return PESTLE_PLUGIN_ERROR(host, RESOURCE_EXHAUSTED,
                               "the system gives no thread to compile '%s': %s",
                               kernel, strerror(error));
  }
  while (sem_wait(&guard.done)) {
    // A signal of the application came between.
  }
  if (guard.lost) {
    pthread_detach(thread);
  } else {
    pthread_join(thread, NULL);
  }
  sem_destroy(&guard.done);
  *out_lost = guard.lost;
  return guard.lost ? lose(host, kernel, &guard) : guard.status;
}

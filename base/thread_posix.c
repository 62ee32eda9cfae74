// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"

_Static_assert(sizeof(pthread_mutex_t) <= sizeof(pestle_mutex_t), "fits");
_Static_assert(sizeof(pthread_cond_t) <= sizeof(pestle_cond_t), "fits");

// The calls below fail only for objects that were not initialised, which is a
// bug of the caller: their results carry nothing to report.

static pthread_mutex_t* system_mutex(pestle_mutex_t* mutex) {
  return (pthread_mutex_t*)(void*)mutex->storage;
}

static pthread_cond_t* system_cond(pestle_cond_t* cond) {
  return (pthread_cond_t*)(void*)cond->storage;
}

void pestle_mutex_init(pestle_mutex_t* out_mutex) {
  pthread_mutex_init(system_mutex(out_mutex), NULL);
}
void pestle_mutex_deinit(pestle_mutex_t* mutex) {
  pthread_mutex_destroy(system_mutex(mutex));
}
void pestle_mutex_lock(pestle_mutex_t* mutex) {
  pthread_mutex_lock(system_mutex(mutex));
}
bool pestle_mutex_try_lock(pestle_mutex_t* mutex) {
  return pthread_mutex_trylock(system_mutex(mutex)) == 0;
}
void pestle_mutex_unlock(pestle_mutex_t* mutex) {
  pthread_mutex_unlock(system_mutex(mutex));
}

void pestle_cond_init(pestle_cond_t* out_cond) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(system_cond(out_cond), &attributes);
  pthread_condattr_destroy(&attributes);
}
void pestle_cond_deinit(pestle_cond_t* cond) {
  pthread_cond_destroy(system_cond(cond));
}
void pestle_cond_wait(pestle_cond_t* cond, pestle_mutex_t* mutex) {
  pthread_cond_wait(system_cond(cond), system_mutex(mutex));
}
bool pestle_cond_wait_until(pestle_cond_t* cond, pestle_mutex_t* mutex,
                            int64_t deadline_ns) {
  struct timespec deadline = {.tv_sec = deadline_ns / 1000000000,
                              .tv_nsec = deadline_ns % 1000000000};
  return pthread_cond_timedwait(system_cond(cond), system_mutex(mutex),
                                &deadline) != ETIMEDOUT;
}
void pestle_cond_signal(pestle_cond_t* cond) {
  pthread_cond_signal(system_cond(cond));
}
void pestle_cond_broadcast(pestle_cond_t* cond) {
  pthread_cond_broadcast(system_cond(cond));
}

// What lies in a pestle_thread_t.
typedef struct system_thread_t {
  pthread_t handle;
  pestle_thread_fn_t fn;
  void* argument;
} system_thread_t;
_Static_assert(sizeof(system_thread_t) <= sizeof(pestle_thread_t), "fits");

static system_thread_t* system_thread(pestle_thread_t* thread) {
  return (system_thread_t*)(void*)thread->storage;
}

static void* thread_main(void* argument) {
  const system_thread_t* thread = argument;
  thread->fn(thread->argument);
  return NULL;
}

// A fault must reach the handler of whoever looks for faults (a sanitizer, a
// crash reporter); everything else is for the application's own threads.
static void block_signals(sigset_t* out_old) {
  sigset_t blocked;
  sigfillset(&blocked);
  const int faults[] = {SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
                        SIGTRAP, SIGABRT, SIGSYS};
  for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); ++i) {
    sigdelset(&blocked, faults[i]);
  }
  pthread_sigmask(SIG_SETMASK, &blocked, out_old);
}

pestle_status_t pestle_thread_start(pestle_thread_fn_t fn, void* argument,
                                    const char* name,
                                    pestle_thread_t* out_thread) {
  system_thread_t* thread = system_thread(out_thread);
  thread->fn = fn;
  thread->argument = argument;
  sigset_t old;
  block_signals(&old);
  int error = pthread_create(&thread->handle, NULL, thread_main, thread);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  if (error) {
    char text[128];
    return PESTLE_ERROR(RESOURCE_EXHAUSTED, "a thread could not be started: %s",
                        strerror_r(error, text, sizeof(text)));
  }
  if (name) {
    char short_name[16];
    snprintf(short_name, sizeof(short_name), "%s", name);
    pthread_setname_np(thread->handle, short_name);
  }
  return NULL;
}

void pestle_thread_join(pestle_thread_t* thread) {
  pthread_join(system_thread(thread)->handle, NULL);
}

void pestle_thread_detach(pestle_thread_t* thread) {
  pthread_detach(system_thread(thread)->handle);
}

// exit() runs the calling thread's own destructors first of all. Not every C library has them.
extern int __cxa_thread_atexit_impl(void (*fn)(void*), void* object,
                                    void* library) __attribute__((weak));
extern void* __dso_handle __attribute__((visibility("hidden")));

static void call(void* fn) {
  ((void (*)(void))(uintptr_t)fn)();
}

void pestle_thread_at_exit(void (*fn)(void)) {
  bool is_main = pestle_thread_id() == pestle_process_id();
  (void)atexit(fn);
  if (is_main && __cxa_thread_atexit_impl)
    (void)__cxa_thread_atexit_impl(call, (void*)(uintptr_t)fn, &__dso_handle);
}

void pestle_thread_yield(void) {
  sched_yield();
}

void pestle_thread_sleep_ns(int64_t nanoseconds) {
  if (nanoseconds <= 0) return;
  struct timespec rest = {.tv_sec = nanoseconds / 1000000000,
                          .tv_nsec = nanoseconds % 1000000000};
  while (nanosleep(&rest, &rest) && errno == EINTR) {
  }
}

int pestle_thread_cpu(void) {
  return sched_getcpu();
}

void pestle_thread_step_aside(const uint64_t taken[PESTLE_CPU_WORDS]) {
  cpu_set_t mine, others;
  if (sched_getaffinity(0, sizeof(mine), &mine) != 0) return;
  others = mine;
  for (size_t i = 0; i < (size_t)PESTLE_CPU_WORDS * 64 && i < CPU_SETSIZE;
       ++i) {
    if (taken[i / 64] >> (i % 64) & 1) CPU_CLR(i, &others);
  }
  if (!CPU_COUNT(&others)) return;
  if (sched_setaffinity(0, sizeof(others), &others) == 0) {
    (void)sched_setaffinity(0, sizeof(mine), &mine);
  }
}

void pestle_cpu_relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  atomic_signal_fence(memory_order_seq_cst);
#endif
}

// Reads up to |count| numbers from a file of the kernel's; returns how many.
static int read_numbers(const char* path, int count, long long* out_numbers) {
  FILE* file = fopen(path, "re");
  if (!file) return 0;
  int read = 0;
  while (read < count && fscanf(file, "%lld", &out_numbers[read]) == 1)
    ++read;
  fclose(file);
  return read;
}

// The CPU time that a container may use, as a number of processors rounded up;
// 0 when it is not limited.
static int cpu_quota(void) {
  long long numbers[2];
  if (read_numbers("/sys/fs/cgroup/cpu.max", 2, numbers) < 2) {
    const char* folder = "/sys/fs/cgroup/cpu/";
    char path[64];
    snprintf(path, sizeof(path), "%scpu.cfs_quota_us", folder);
    if (!read_numbers(path, 1, &numbers[0])) return 0;
    snprintf(path, sizeof(path), "%scpu.cfs_period_us", folder);
    if (!read_numbers(path, 1, &numbers[1])) return 0;
  }
  long long quota = numbers[0], period = numbers[1];
  if (quota <= 0 || period <= 0 || quota / period > 4096) return 0;
  return (int)((quota + period - 1) / period);
}

static int at_most_quota(int count) {
  int quota = cpu_quota();
  if (quota > 0 && count > quota) count = quota;
  return count > 0 ? count : 1;
}

int pestle_cpu_count(void) {
  cpu_set_t allowed;
  int count;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
    count = CPU_COUNT(&allowed);
  } else {
    count = (int)sysconf(_SC_NPROCESSORS_ONLN);
  }
  return at_most_quota(count);
}

// Names the core that processor |cpu| belongs to; |cpu| itself if unknown.
static long long core_of(int cpu) {
  char path[96];
  long long package = 0, core = cpu;
  const char* folder = "/sys/devices/system/cpu/cpu";
  snprintf(path, sizeof(path), "%s%d/topology/physical_package_id", folder,
           cpu);
  read_numbers(path, 1, &package);
  snprintf(path, sizeof(path), "%s%d/topology/core_id", folder, cpu);
  read_numbers(path, 1, &core);
  return package << 32 | core;
}

int pestle_core_count(void) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
    return pestle_cpu_count();
  }
  long long cores[CPU_SETSIZE];
  int count = 0;
  for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    long long core = core_of((int)cpu);
    int known = 0;
    while (known < count && cores[known] != core)
      ++known;
    if (known == count) cores[count++] = core;
  }
  return at_most_quota(count);
}

int64_t pestle_process_id(void) {
  return getpid();
}

int64_t pestle_thread_id(void) {
  return syscall(SYS_gettid);
}

static int64_t clock_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t pestle_clock_ns(void) {
  return clock_ns(CLOCK_MONOTONIC);
}

int64_t pestle_wall_clock_ns(void) {
  return clock_ns(CLOCK_REALTIME);
}

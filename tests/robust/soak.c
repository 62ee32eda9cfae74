// SPDX-License-Identifier: Apache-2.0
// pestle-soak MODE SECONDS SEED [DEVICE [MODEL]]: the same again and again, and what it
// leaves behind.
//
//   evict    each cycle compiles another module, runs it, and lets it go; the cache in
//            memory holds 8 plans, so that each is evicted
//   hits     each cycle compiles the same module, which is a hit in memory, and runs it
//   cancel   each cycle sets the cancel flag at another moment of a compilation, and
//            measures the compiling thread's CPU time from there to its return
//   deadline the same by a deadline
//   crowd    16 processes, each of 64 threads that share a context, compile 64 modules
//            through one cache on disk and run them
//
// A mode ends after SECONDS with one line, "soak: MODE: N cycles, ..." and exit code 0,
// or with the reason and 1: a wrong result, memory that is more than 1 MiB above what
// was resident after the first quarter, or more than 50 ms until a compilation that was
// cancelled ends.
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

#include "robust/robust.h"

enum { PLANS = 8, MEBIBYTE = 1 << 20, LIMIT_NS = 50 * 1000 * 1000 };

static int64_t clock_of(clockid_t which) {
  struct timespec t;
  clock_gettime(which, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t resident_bytes(void) {
  long pages = 0, all = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%ld %ld", &all, &pages) != 2) pages = 0;
  if (file) fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

typedef struct soak_t {
  const char* device;
  const char* model;
  int64_t end_ns;
  int64_t begin_ns;
  uint64_t random;
  int64_t cycles;
  pestle_context_t* context;
} soak_t;

static uint64_t next(soak_t* s) {
  s->random = s->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
  return s->random >> 33;
}

// y = x * |factor| + sum(x): two kernels, and another signature for each factor.
static void make_text(char* out, size_t size, unsigned factor) {
  snprintf(out, size,
           "func.func @main(%%x: tensor<16xf32>) -> tensor<16xf32> {\n"
           "  %%k = stablehlo.constant dense<%u.0> : tensor<16xf32>\n"
           "  %%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
           "  %%s = stablehlo.reduce(%%x init: %%z) applies stablehlo.add "
           "across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> "
           "tensor<f32>\n"
           "  %%b = stablehlo.broadcast_in_dim %%s, dims = [] : "
           "(tensor<f32>) -> tensor<16xf32>\n"
           "  %%m = stablehlo.multiply %%x, %%k : tensor<16xf32>\n"
           "  %%y = stablehlo.add %%m, %%b : tensor<16xf32>\n"
           "  return %%y : tensor<16xf32>\n}\n",
           factor);
}

static void run_once(soak_t* s, pestle_module_t* module, unsigned factor) {
  pestle_plan_t* plan;
  pestle_executable_t* executable;
  _Alignas(64) float x[16], y[16];
  int64_t dims[] = {16};
  assert_ok(robust_compile(s->context, module, s->device, false, &plan));
  assert_ok(pestle_executable_create(s->context, plan, NULL, &executable));
  for (int i = 0; i < 16; ++i)
    x[i] = (float)i;
  pestle_tensor_t in = test_view(x, PESTLE_F32, 1, dims, NULL);
  pestle_tensor_t out = test_view(y, PESTLE_F32, 1, dims, NULL);
  assert_ok(pestle_executable_run(executable, NULL, &in, 1, &out, 1, NULL));
  for (int i = 0; i < 16; ++i) {  // small integers: exact
    assert_true(y[i] == (float)(i * (int)factor + 120));
  }
  pestle_executable_release(executable);
  pestle_plan_release(plan);
}

static bool is_over(const soak_t* s) {
  return clock_of(CLOCK_MONOTONIC) >= s->end_ns;
}

static int memory_mode(soak_t* s, const char* mode, bool evicts) {
  pestle_context_options_t options = robust_options();
  options.threads = 1;
  options.memory_cache_entries = PLANS;
  s->context = robust_context(&options);
  int64_t quarter = s->begin_ns + (s->end_ns - s->begin_ns) / 4, warm = 0;
  char text[1024];
  pestle_module_t* module = NULL;
  unsigned factor = 1;
  for (; !is_over(s) || !warm; ++s->cycles) {
    if (evicts || !module) {
      factor = 1 + (unsigned)(next(s) % 60000);
      make_text(text, sizeof(text), factor);
      pestle_module_release(module);
      assert_ok(robust_parse(s->context, text, &module));
    }
    run_once(s, module, factor);
    if (!warm && s->cycles > 100 && clock_of(CLOCK_MONOTONIC) > quarter) {
      warm = resident_bytes();
    }
  }
  int64_t more = resident_bytes() - warm;
  pestle_module_release(module);
  pestle_context_release(s->context);
  printf("soak: %s: %lld cycles, %lld bytes more than the %lld after warm-up\n",
         mode, (long long)s->cycles, (long long)more, (long long)warm);
  // Sanitizers keep what was freed.
  return more > MEBIBYTE && !TEST_SANITIZED;
}

// --- Cancelling ---

// Who ends a compilation: its own call of progress() number |at_call|, or, where that is
// below 0, another thread after a while.
typedef struct watch_t {
  volatile int32_t cancel;
  int64_t after_ns;  // of wall clock, when the thread strikes, and the deadline
  int64_t deadline_ns;
  int64_t at_call, calls;
  clockid_t compiler;  // CPU time of the thread that compiles
  int64_t struck_cpu_ns;
  atomic_bool is_done;  // the compilation has ended
  bool sets_flag;
} watch_t;

static void strike(watch_t* w) {
  w->struck_cpu_ns = clock_of(w->compiler);
  if (w->sets_flag) __atomic_store_n(&w->cancel, 1, __ATOMIC_RELAXED);
}

static void* watch(void* user) {
  watch_t* w = user;
  int64_t at = clock_of(CLOCK_MONOTONIC) + w->after_ns;
  while (clock_of(CLOCK_MONOTONIC) < at && !atomic_load(&w->is_done)) {
    struct timespec pause = {0, 20000};
    nanosleep(&pause, NULL);
  }
  strike(w);
  return NULL;
}

static void on_progress(void* user, const char* stage, int64_t done,
                        int64_t total) {
  (void)stage, (void)done, (void)total;
  watch_t* w = user;
  if (w->calls++ != w->at_call) return;
  while (!w->sets_flag && clock_of(CLOCK_MONOTONIC) <= w->deadline_ns)
    continue;
  strike(w);
}

static pestle_status_t compile_watched(soak_t* s, pestle_module_t* module,
                                       watch_t* w) {
  pestle_device_t* device;
  PESTLE_TRY(pestle_context_device(s->context, s->device, &device));
  pestle_control_t control = {.struct_size = sizeof(control),
                              .progress = on_progress,
                              .progress_user = w};
  if (w->sets_flag) {
    control.cancel = &w->cancel;
  } else {
    w->deadline_ns = clock_of(CLOCK_MONOTONIC) + w->after_ns;
    control.deadline_ns = w->deadline_ns;
  }
  pestle_compile_options_t options = {
      .struct_size = sizeof(options), .no_cache = true, .control = &control};
  pestle_plan_t* plan;
  pestle_status_t status =
      pestle_compile(s->context, module, device, &options, &plan);
  pestle_plan_release(plan);
  return status;
}

typedef struct cancels_t {
  int64_t stopped, worst_ns, late, ignored;
  char where[256];
} cancels_t;

// One compilation that is stopped. |whole_ns| is how long one takes, |calls| how often
// it tells its progress.
static void stop_one(soak_t* s, pestle_module_t* module, bool sets_flag,
                     int64_t whole_ns, int64_t calls, cancels_t* out) {
  bool by_call = next(s) % 2;
  watch_t w = {.after_ns = (int64_t)(next(s) % 10000) * whole_ns / 10000,
               .at_call = by_call ? (int64_t)next(s) % calls : -1,
               .sets_flag = sets_flag};
  pthread_t thread;
  assert_int_equal(pthread_getcpuclockid(pthread_self(), &w.compiler), 0);
  if (!by_call) {
    assert_int_equal(pthread_create(&thread, NULL, watch, &w), 0);
  }
  pestle_status_t status = compile_watched(s, module, &w);
  int64_t ended = clock_of(w.compiler);
  atomic_store(&w.is_done, true);
  if (!by_call) pthread_join(thread, NULL);
  // What a thread strikes may have ended before; what struck itself may not go on.
  if (!status) {
    out->ignored += by_call;
    return;
  }
  assert_int_equal(
      pestle_status_code(status),
      sets_flag ? PESTLE_STATUS_CANCELLED : PESTLE_STATUS_DEADLINE_EXCEEDED);
  ++out->stopped;
  int64_t took = w.struck_cpu_ns ? ended - w.struck_cpu_ns : 0;
  if (took > LIMIT_NS * (TEST_SANITIZED ? 10 : 1)) ++out->late;
  if (took > out->worst_ns) {
    out->worst_ns = took;
    snprintf(out->where, sizeof(out->where), "%s",
             pestle_status_message(status));
  }
  pestle_status_release(status);
}

static int cancel_mode(soak_t* s, const char* mode, bool sets_flag) {
  pestle_context_options_t options = robust_options();
  options.threads = 1;  // kernels are compiled by the calling thread
  s->context = robust_context(&options);
  pestle_module_t* module;
  assert_ok(s->model ? pestle_import_file(s->context, s->model, NULL, &module)
                     : robust_parse(s->context, robust_text, &module));
  int64_t whole = INT64_MAX, calls = 0;
  // Three compilations of a large model would be most of a job.
  int64_t measured = clock_of(CLOCK_MONOTONIC) + (s->end_ns - s->begin_ns) / 32;
  for (int i = 0; i < 3; ++i) {
    if (i && clock_of(CLOCK_MONOTONIC) > measured) break;
    watch_t quiet = {.at_call = -1, .sets_flag = true};
    int64_t begin = clock_of(CLOCK_MONOTONIC);
    assert_ok(compile_watched(s, module, &quiet));
    int64_t took = clock_of(CLOCK_MONOTONIC) - begin;
    if (took < whole) whole = took;
    calls = quiet.calls;
  }
  assert_true(calls > 0);
  cancels_t c = {0};
  for (; !is_over(s); ++s->cycles)
    stop_one(s, module, sets_flag, whole, calls, &c);
  pestle_module_release(module);
  pestle_context_release(s->context);
  printf(
      "soak: %s: %lld cycles, %lld stopped, at most %.1f ms after (%s), "
      "%lld late, %lld not stopped\n",
      mode, (long long)s->cycles, (long long)c.stopped,
      (double)c.worst_ns * 1e-6, c.where, (long long)c.late,
      (long long)c.ignored);
  return c.late || c.ignored;
}

// --- Crowds ---

enum { CROWD_PROCESSES = 16, CROWD_THREADS = 64, CROWD_MODULES = 64 };

static void* crowd_thread(void* user) {
  soak_t* s = user;
  char text[1024];
  for (; !is_over(s) || !s->cycles; ++s->cycles) {
    unsigned factor = 1 + (unsigned)(next(s) % CROWD_MODULES);
    make_text(text, sizeof(text), factor);
    pestle_module_t* module;
    assert_ok(robust_parse(s->context, text, &module));
    run_once(s, module, factor);
    pestle_module_release(module);
  }
  return NULL;
}

// The cycles of a process.
static int64_t crowd_process(soak_t* s, const char* folder) {
  pestle_context_options_t options = robust_options();
  options.cache_dir = folder;
  options.memory_cache_entries = PLANS;
  s->context = robust_context(&options);
  soak_t each[CROWD_THREADS];
  pthread_t threads[CROWD_THREADS];
  for (int i = 0; i < CROWD_THREADS; ++i) {
    each[i] = *s;
    each[i].random += (uint64_t)i * 1000003u;
    assert_int_equal(pthread_create(&threads[i], NULL, crowd_thread, &each[i]),
                     0);
  }
  int64_t cycles = 0;
  for (int i = 0; i < CROWD_THREADS; ++i) {
    pthread_join(threads[i], NULL);
    cycles += each[i].cycles;
  }
  pestle_context_release(s->context);
  return cycles;
}

static int crowd_mode(soak_t* s, const char* mode) {
  char folder[64];
  robust_make_folder(folder);
  int results[2], failed = 0;
  assert_int_equal(pipe(results), 0);
  for (int i = 0; i < CROWD_PROCESSES; ++i) {
    s->random += 7919;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child) continue;
    int64_t cycles = crowd_process(s, folder);
    bool is_told = write(results[1], &cycles, sizeof(cycles)) == sizeof(cycles);
    exit(!is_told);  // ThreadSanitizer's own code comes at the end of exit()
  }
  close(results[1]);
  for (int i = 0; i < CROWD_PROCESSES; ++i) {
    int code;
    assert_true(wait(&code) > 0);
    failed += !WIFEXITED(code) || WEXITSTATUS(code) != 0;
  }
  int64_t cycles;
  while (read(results[0], &cycles, sizeof(cycles)) == sizeof(cycles))
    s->cycles += cycles;
  robust_remove_folder(folder);
  printf("soak: %s: %lld cycles, %d of %d processes failed\n", mode,
         (long long)s->cycles, failed, CROWD_PROCESSES);
  return failed != 0;
}

int main(int argc, char** argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: %s MODE SECONDS SEED [DEVICE [MODEL]]\n", argv[0]);
    return 2;
  }
  const char* mode = argv[1];
  soak_t s = {.device = argc > 4 ? argv[4] : "llvm",
              .model = argc > 5 ? argv[5] : NULL,
              .random = strtoull(argv[3], NULL, 10) + 1};
  s.begin_ns = clock_of(CLOCK_MONOTONIC);
  s.end_ns = s.begin_ns + (int64_t)(strtod(argv[2], NULL) * 1e9);
  if (!strcmp(mode, "evict")) return memory_mode(&s, mode, true);
  if (!strcmp(mode, "hits")) return memory_mode(&s, mode, false);
  if (!strcmp(mode, "cancel")) return cancel_mode(&s, mode, true);
  if (!strcmp(mode, "deadline")) return cancel_mode(&s, mode, false);
  if (!strcmp(mode, "crowd")) return crowd_mode(&s, mode);
  fprintf(stderr, "no such mode: %s\n", mode);
  return 2;
}

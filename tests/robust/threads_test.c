// SPDX-License-Identifier: Apache-2.0
// Many threads, many processes, fork(), cancelling and deadlines, over real
// plans of every backend that this build has.
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "base/thread.h"
#include "robust/robust.h"
#include "unit/frontend/onnx_test.h"

static const char* const backends[] = {"ref", "llvm"};
enum { BACKENDS = 2 };

// --- A bigger module ---

enum { WIDTH = 256, ROWS = 96 };

// |layers| of tanh(x . w) and a softmax at the end; freed by the caller.
static char* layers_text(int layers) {
  char* text = malloc(1000 + (size_t)layers * 400);
  char* at = text;
  at += sprintf(at,
                "func.func @main(%%x: tensor<%dx%dxf32> {pestle.name = \"x\"}, "
                "%%w: tensor<%dx%dxf32> {pestle.name = \"w\"}) -> "
                "(tensor<%dx%dxf32> {pestle.name = \"y\"}) {\n",
                ROWS, WIDTH, WIDTH, WIDTH, ROWS, WIDTH);
  for (int i = 0; i < layers; ++i) {
    char from[16];
    snprintf(from, sizeof(from), i ? "%%t%d" : "%%x", i - 1);
    at += sprintf(at,
                  "  %%d%d = stablehlo.dot_general %s, %%w, contracting_dims = "
                  "[1] x [0] : (tensor<%dx%dxf32>, tensor<%dx%dxf32>) -> "
                  "tensor<%dx%dxf32>\n  %%t%d = stablehlo.%s %%d%d : "
                  "tensor<%dx%dxf32>\n",
                  i, from, ROWS, WIDTH, WIDTH, WIDTH, ROWS, WIDTH, i,
                  i % 2 ? "tanh" : "logistic", i, ROWS, WIDTH);
  }
  sprintf(at,
          "  %%s = \"pestle.softmax\"(%%t%d) <{dimensions = array<i64: 1>}> : "
          "(tensor<%dx%dxf32>) -> tensor<%dx%dxf32>\n"
          "  return %%s : tensor<%dx%dxf32>\n}\n",
          layers - 1, ROWS, WIDTH, ROWS, WIDTH, ROWS, WIDTH);
  return text;
}

static _Alignas(64) float layers_x[ROWS * WIDTH], layers_w[WIDTH * WIDTH];

static void fill_layers(void) {
  for (int i = 0; i < ROWS * WIDTH; ++i)
    layers_x[i] = sinf((float)i);
  for (int i = 0; i < WIDTH * WIDTH; ++i) {
    layers_w[i] = cosf((float)i * 1.3f) * 0.1f;
  }
}

static pestle_status_t run_layers(pestle_executable_t* e, int32_t threads,
                                  const pestle_control_t* control, float* y) {
  int64_t x[] = {ROWS, WIDTH}, w[] = {WIDTH, WIDTH};
  pestle_tensor_t in[] = {test_view(layers_x, PESTLE_F32, 2, x, NULL),
                          test_view(layers_w, PESTLE_F32, 2, w, NULL)};
  pestle_tensor_t out = test_view(y, PESTLE_F32, 2, x, NULL);
  pestle_run_options_t options = {
      .struct_size = sizeof(options), .threads = threads, .control = control};
  return pestle_executable_run(e, NULL, in, 2, &out, 1, &options);
}

// --- Threads ---

enum { THREADS = 64 };

typedef struct runner_t {
  pestle_thread_t thread;
  pestle_executable_t* executable;
  robust_inputs_t inputs;
  robust_outputs_t expected;
  int wrong;
} runner_t;

static void run_rounds(void* argument) {
  runner_t* r = argument;
  for (int round = 0; round < 10; ++round) {
    robust_outputs_t got;
    memset(&got, 0, sizeof(got));
    pestle_run_options_t options = {.struct_size = sizeof(options),
                                    .threads = round % 4};
    pestle_status_t status =
        robust_run(r->executable, &r->inputs, &got, &options);
    r->wrong += status || memcmp(got.y, r->expected.y, sizeof(got.y)) ||
                memcmp(got.z, r->expected.z, sizeof(got.z));
    pestle_status_release(status);
  }
}

static void test_one_executable(void** state) {
  (void)state;
  runner_t* runners = aligned_alloc(64, THREADS * sizeof(runner_t));
  for (int b = 0; b < BACKENDS; ++b) {
    if (!robust_has(backends[b])) continue;
    pestle_context_t* context = robust_context(NULL);
    pestle_executable_t* e =
        robust_executable(context, robust_text, backends[b]);
    memset(runners, 0, THREADS * sizeof(runner_t));
    for (int i = 0; i < THREADS; ++i) {
      runners[i].executable = e;
      robust_fill(&runners[i].inputs, i);
      pestle_run_options_t one = {.struct_size = sizeof(one), .threads = 1};
      assert_ok(robust_run(e, &runners[i].inputs, &runners[i].expected, &one));
      robust_check(&runners[i].inputs, &runners[i].expected);
    }
    for (int i = 0; i < THREADS; ++i) {
      assert_ok(pestle_thread_start(run_rounds, &runners[i], "run",
                                    &runners[i].thread));
    }
    for (int i = 0; i < THREADS; ++i)
      pestle_thread_join(&runners[i].thread);
    for (int i = 0; i < THREADS; ++i)
      assert_int_equal(runners[i].wrong, 0);
    pestle_executable_release(e);
    pestle_context_release(context);
  }
  free(runners);
}

// One plan, in contexts of 1, 2 and 64 threads, and limited to fewer.
static void test_same_bits(void** state) {
  (void)state;
  static _Alignas(64) float y[ROWS * WIDTH], expected[ROWS * WIDTH];
  fill_layers();
  char* text = layers_text(3);
  for (int b = 0; b < BACKENDS; ++b) {
    // The interpreter under a sanitizer takes minutes for this.
    if (!robust_has(backends[b]) || (TEST_SANITIZED && b == 0)) continue;
    pestle_context_t* maker = robust_context(NULL);
    pestle_module_t* module;
    pestle_plan_t* plan;
    assert_ok(robust_parse(maker, text, &module));
    assert_ok(robust_compile(maker, module, backends[b], true, &plan));
    char folder[64], path[96];
    robust_make_folder(folder);
    snprintf(path, sizeof(path), "%s/a.plan", folder);
    assert_ok(pestle_plan_save(plan, path));
    pestle_plan_release(plan);
    pestle_module_release(module);
    pestle_context_release(maker);
    static const int32_t pools[] = {1, 2, 64};
    bool first = true;
    for (int p = 0; p < 3; ++p) {
      pestle_context_options_t options = robust_options();
      options.threads = pools[p];
      pestle_context_t* context = robust_context(&options);
      pestle_executable_t* e;
      assert_ok(pestle_plan_load(context, path, &plan));
      assert_ok(pestle_executable_create(context, plan, NULL, &e));
      for (int limit = 0; limit < 3; ++limit) {
        memset(y, 0, sizeof(y));
        assert_ok(run_layers(e, limit, NULL, y));
        if (first) memcpy(expected, y, sizeof(y));
        assert_memory_equal(y, expected, sizeof(y));
        first = false;
      }
      pestle_executable_release(e);
      pestle_plan_release(plan);
      pestle_context_release(context);
    }
    // Rows of a softmax add up to one: something was computed.
    for (int i = 0; i < ROWS; ++i) {
      double sum = 0;
      for (int j = 0; j < WIDTH; ++j)
        sum += expected[i * WIDTH + j];
      assert_true(fabs(sum - 1) < 1e-4);
    }
    robust_remove_folder(folder);
  }
  free(text);
}

typedef struct compiler_t {
  pestle_thread_t thread;
  pestle_context_t* context;
  pestle_module_t* module;
  const char* backend;
  pestle_plan_t* plan;
  pestle_status_code_t code;
} compiler_t;

static void compile_one(void* argument) {
  compiler_t* c = argument;
  pestle_status_t status =
      robust_compile(c->context, c->module, c->backend, false, &c->plan);
  c->code = pestle_status_code(status);
  pestle_status_release(status);
}

// Threads that compile one module in one context share one compile.
static void test_one_compile(void** state) {
  (void)state;
  enum { COUNT = 16 };
  for (int b = 0; b < BACKENDS; ++b) {
    if (!robust_has(backends[b])) continue;
    pestle_context_t* context = robust_context(NULL);
    pestle_module_t* module;
    assert_ok(robust_parse(context, robust_text, &module));
    compiler_t compilers[COUNT];
    for (int i = 0; i < COUNT; ++i) {
      compilers[i] = (compiler_t){
          .context = context, .module = module, .backend = backends[b]};
      assert_ok(pestle_thread_start(compile_one, &compilers[i], "compile",
                                    &compilers[i].thread));
    }
    for (int i = 0; i < COUNT; ++i)
      pestle_thread_join(&compilers[i].thread);
    for (int i = 0; i < COUNT; ++i) {
      assert_int_equal(compilers[i].code, PESTLE_STATUS_OK);
      assert_ptr_equal(compilers[i].plan, compilers[0].plan);
      pestle_plan_release(compilers[i].plan);
    }
    pestle_cache_stats_t stats = {.struct_size = sizeof(stats)};
    assert_ok(pestle_cache_stats(context, &stats));
    assert_int_equal(stats.misses, 1);
    pestle_module_release(module);
    pestle_context_release(context);
  }
}

// --- Processes ---

// The child of test_processes(): compiles through the cache in |folder|, runs,
// and says by its exit code what was wrong.
static int child_main(const char* folder, const char* backend, int seed) {
  pestle_context_options_t options = robust_options();
  options.cache_dir = folder;
  pestle_context_t* context;
  pestle_module_t* module;
  pestle_plan_t* plan;
  pestle_executable_t* e;
  char go;
  if (read(0, &go, 1) != 0) return 10;  // the parent closes it for all at once
  if (pestle_context_create(&options, &context)) return 11;
  if (robust_parse(context, robust_text, &module)) return 12;
  if (robust_compile(context, module, backend, false, &plan)) return 13;
  if (pestle_executable_create(context, plan, NULL, &e)) return 14;
  static robust_inputs_t inputs;
  robust_outputs_t outputs;
  robust_fill(&inputs, seed);
  if (robust_run(e, &inputs, &outputs, NULL)) return 15;
  double y[ROBUST_Y], z[ROBUST_Y];
  robust_expect(&inputs, y, z);
  for (int i = 0; i < ROBUST_Y; ++i) {
    if (!(fabs(outputs.y[i] - y[i]) <= 1e-5)) return 16;
    if (!(fabs(outputs.z[i] - z[i]) <= 1e-5 * fabs(z[i]) + 1e-6)) return 17;
  }
  pestle_executable_release(e);
  pestle_plan_release(plan);
  pestle_module_release(module);
  pestle_context_release(context);
  return 0;
}

static void run_children(const char* folder, const char* backend, int count) {
  int gate[2];
  assert_int_equal(pipe(gate), 0);
  pid_t children[16];
  for (int i = 0; i < count; ++i) {
    children[i] = fork();
    assert_true(children[i] >= 0);
    if (children[i]) continue;
    char seed[8];
    snprintf(seed, sizeof(seed), "%d", i);
    dup2(gate[0], 0);
    close(gate[0]);
    close(gate[1]);
    execl("/proc/self/exe", "threads_test", "child", folder, backend, seed,
          (char*)NULL);
    _exit(20);
  }
  close(gate[0]);
  close(gate[1]);
  for (int i = 0; i < count; ++i) {
    int code;
    assert_int_equal(waitpid(children[i], &code, 0), children[i]);
    assert_true(WIFEXITED(code));
    assert_int_equal(WEXITSTATUS(code), 0);
  }
}

typedef struct entries_t {
  int sound, damaged;
  uint64_t bytes;
} entries_t;

static void count_entry(void* user, const char* name, const char* model,
                        uint64_t bytes, int64_t used, pestle_status_t status) {
  (void)name, (void)model, (void)used;
  entries_t* entries = user;
  ++*(status ? &entries->damaged : &entries->sound);
  entries->bytes += bytes;
}

static entries_t look_at(const char* folder) {
  entries_t entries = {0};
  pestle_context_options_t options = robust_options();
  options.cache_dir = folder;
  pestle_context_t* context = robust_context(&options);
  assert_ok(pestle_cache_visit(context, true, count_entry, &entries));
  pestle_context_release(context);
  return entries;
}

static void test_processes(void** state) {
  (void)state;
  for (int b = 0; b < BACKENDS; ++b) {
    if (!robust_has(backends[b])) continue;
    char alone[64], shared[64], command[160];
    robust_make_folder(alone);
    robust_make_folder(shared);
    run_children(alone, backends[b], 1);
    entries_t one = look_at(alone);
    assert_true(one.sound > 0);
    assert_int_equal(one.damaged, 0);
    for (int round = 0; round < 2; ++round) {  // cold, warm
      run_children(shared, backends[b], 16);
      entries_t all = look_at(shared);
      assert_int_equal(all.sound, one.sound);
      assert_int_equal(all.damaged, 0);
      assert_int_equal(all.bytes, one.bytes);
    }
    // What was written on the way is gone.
    snprintf(command, sizeof(command), "! find '%s' -name '*.tmp*' | grep -q .",
             shared);
    assert_int_equal(system(command), 0);
    robust_remove_folder(alone);
    robust_remove_folder(shared);
  }
}

// The parent's context, its executable and its compiler in a child.
static int forked_main(pestle_context_t* context, pestle_executable_t* e,
                       const char* backend, robust_inputs_t* inputs,
                       const robust_outputs_t* expected) {
  robust_outputs_t got;
  memset(&got, 0, sizeof(got));
  if (robust_run(e, inputs, &got, NULL)) return 1;
  if (memcmp(got.y, expected->y, sizeof(got.y))) return 2;
  pestle_module_t* module;
  pestle_plan_t* plan;
  pestle_executable_t* other;
  if (robust_parse(context, robust_text, &module)) return 3;
  if (robust_compile(context, module, backend, true, &plan)) return 4;
  if (pestle_executable_create(context, plan, NULL, &other)) return 5;
  if (robust_run(other, inputs, &got, NULL)) return 6;
  if (memcmp(got.z, expected->z, sizeof(got.z))) return 7;
  pestle_executable_release(other);
  pestle_plan_release(plan);
  pestle_module_release(module);
  return 0;
}

static void test_fork(void** state) {
  (void)state;
#if TEST_TSAN
  skip();  // ThreadSanitizer refuses new threads in such a child
#endif
  static robust_inputs_t inputs;
  robust_fill(&inputs, 4);
  for (int b = 0; b < BACKENDS; ++b) {
    if (!robust_has(backends[b])) continue;
    pestle_context_t* context = robust_context(NULL);
    pestle_executable_t* e =
        robust_executable(context, robust_text, backends[b]);
    robust_outputs_t expected;
    memset(&expected, 0, sizeof(expected));
    assert_ok(robust_run(e, &inputs, &expected, NULL));
    for (int i = 0; i < 3; ++i) {
      pid_t child = fork();
      assert_true(child >= 0);
      if (!child) {
        alarm(600);
        _exit(forked_main(context, e, backends[b], &inputs, &expected));
      }
      int code;
      assert_int_equal(waitpid(child, &code, 0), child);
      assert_true(WIFEXITED(code));
      assert_int_equal(WEXITSTATUS(code), 0);
      // And the parent goes on.
      assert_ok(robust_run(e, &inputs, &expected, NULL));
    }
    pestle_executable_release(e);
    pestle_context_release(context);
  }
}

// --- Progress, cancelling, deadlines ---

typedef struct watch_t {
  volatile int32_t cancel;
  int calls;
  int cancel_at;  // the call that sets |cancel|; 0: none
  char stage[32];
  int64_t done;
  bool sound;
} watch_t;

static void on_progress(void* user, const char* stage, int64_t done,
                        int64_t total) {
  watch_t* w = user;
  if (!stage || !*stage || done < 0 || (total && done > total)) {
    w->sound = false;
    return;
  }
  if (!strcmp(stage, w->stage) && done < w->done) w->sound = false;
  snprintf(w->stage, sizeof(w->stage), "%s", stage);
  w->done = done;
  if (++w->calls == w->cancel_at) w->cancel = 1;
}

static pestle_control_t control_of(watch_t* w, int cancel_at) {
  *w = (watch_t){.cancel_at = cancel_at, .sound = true};
  return (pestle_control_t){.struct_size = sizeof(pestle_control_t),
                            .progress = on_progress,
                            .progress_user = w,
                            .cancel = &w->cancel};
}

// A chain of a thousand nodes, so that an import is looked at in its midst.
static pb_t chain_model(void) {
  pb_t graph = {0};
  char in[16], out[16];
  onnx_input(&graph, "v0", ONNX_FLOAT, "4,4");
  for (int i = 0; i < 1000; ++i) {
    snprintf(in, sizeof(in), "v%d", i);
    snprintf(out, sizeof(out), "v%d", i + 1);
    onnx_node(&graph, i % 2 ? "Tanh" : "Sigmoid", out, in, out, NULL);
  }
  onnx_output(&graph, "v1000");
  return onnx_model(13, &graph);
}

typedef pestle_status_t (*controlled_t)(void* user,
                                        const pestle_control_t* control);

// |work| calls the progress function; stops at each of its calls when told to;
// refuses to begin late; and works afterwards.
static void check_control(controlled_t work, void* user) {
  watch_t watch;
  pestle_control_t control = control_of(&watch, 0);
  assert_ok(work(user, &control));
  int calls = watch.calls;
  assert_true(watch.sound);
  assert_true(calls >= 2);
  control = control_of(&watch, 0);
  watch.cancel = 1;
  assert_code(work(user, &control), CANCELLED);
  control = control_of(&watch, 0);
  control.deadline_ns = 1;
  assert_code(work(user, &control), DEADLINE_EXCEEDED);
  int stopped = 0;
  for (int at = 1; at <= calls; at += 1 + calls / 8) {
    control = control_of(&watch, at);
    pestle_status_t status = work(user, &control);
    // The last call may come when all is done.
    if (status) {
      assert_code(status, CANCELLED);
      ++stopped;
    }
    assert_true(status || at > calls / 2);
  }
  assert_true(stopped > 0);
  control = control_of(&watch, 0);
  control.deadline_ns = pestle_clock_ns() + 600000000000;
  assert_ok(work(user, &control));
}

typedef struct controlled_state_t {
  pestle_context_t* context;
  pestle_device_t* device;
  pestle_module_t* module;
  pestle_executable_t* executable;
  pb_t model;
} controlled_state_t;

static pestle_status_t import_chain(void* user,
                                    const pestle_control_t* control) {
  controlled_state_t* s = user;
  pestle_import_options_t options = {.struct_size = sizeof(options),
                                     .control = control};
  pestle_module_t* module = NULL;
  pestle_status_t status = pestle_import_onnx(
      s->context, s->model.data, s->model.size, false, NULL, &options, &module);
  pestle_module_release(module);
  return status;
}

static pestle_status_t compile_layers(void* user,
                                      const pestle_control_t* control) {
  controlled_state_t* s = user;
  pestle_compile_options_t options = {
      .struct_size = sizeof(options), .no_cache = true, .control = control};
  pestle_plan_t* plan = NULL;
  pestle_status_t status =
      pestle_compile(s->context, s->module, s->device, &options, &plan);
  pestle_plan_release(plan);
  return status;
}

static pestle_status_t run_controlled(void* user,
                                      const pestle_control_t* control) {
  static _Alignas(64) float y[ROWS * WIDTH];
  controlled_state_t* s = user;
  return run_layers(s->executable, 2, control, y);
}

static void test_control(void** state) {
  (void)state;
  fill_layers();
  controlled_state_t s = {.context = robust_context(NULL)};
  s.model = chain_model();
  check_control(import_chain, &s);
  pb_free(&s.model);
  // Different layers, so that no two are one kernel.
  char* text = layers_text(8);
  for (int b = 0; b < BACKENDS; ++b) {
    if (!robust_has(backends[b])) continue;
    assert_ok(pestle_context_device(s.context, backends[b], &s.device));
    assert_ok(robust_parse(s.context, text, &s.module));
    check_control(compile_layers, &s);
    pestle_module_release(s.module);
    if (TEST_SANITIZED && b == 0) continue;  // minutes of interpreting
    s.executable = robust_executable(s.context, text, backends[b]);
    check_control(run_controlled, &s);
    pestle_executable_release(s.executable);
  }
  free(text);
  pestle_context_release(s.context);
}

static void cancel_later(void* argument) {
  pestle_thread_sleep_ns(100000000);
  __atomic_store_n((volatile int32_t*)argument, 1, __ATOMIC_RELAXED);
}

// A loop of two thousand million rounds, which takes minutes, ends when it is
// told to.
static void test_endless(void** state) {
  (void)state;
  static robust_inputs_t inputs;
  robust_fill(&inputs, 1);
  inputs.n = INT32_MAX;
  for (int b = 0; b < BACKENDS; ++b) {
    if (!robust_has(backends[b])) continue;
    pestle_context_t* context = robust_context(NULL);
    pestle_executable_t* e =
        robust_executable(context, robust_text, backends[b]);
    robust_outputs_t outputs;
    pestle_control_t control = {.struct_size = sizeof(control)};
    pestle_run_options_t options = {.struct_size = sizeof(options),
                                    .control = &control};
    int64_t begin = pestle_clock_ns();
    control.deadline_ns = begin + 100000000;
    assert_code(robust_run(e, &inputs, &outputs, &options), DEADLINE_EXCEEDED);
    assert_true(pestle_clock_ns() - begin >= 100000000);
    volatile int32_t cancel = 0;
    pestle_thread_t thread;
    assert_ok(
        pestle_thread_start(cancel_later, (void*)&cancel, "cancel", &thread));
    control.deadline_ns = 0;
    control.cancel = &cancel;
    assert_code(robust_run(e, &inputs, &outputs, &options), CANCELLED);
    pestle_thread_join(&thread);
    // The executable is as good as before.
    inputs.n = 3;
    assert_ok(robust_run(e, &inputs, &outputs, NULL));
    robust_check(&inputs, &outputs);
    inputs.n = INT32_MAX;
    pestle_executable_release(e);
    pestle_context_release(context);
  }
}

int main(int argc, char** argv) {
  if (argc == 5 && !strcmp(argv[1], "child")) {
    return child_main(argv[2], argv[3], atoi(argv[4]));
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_executable), cmocka_unit_test(test_same_bits),
      cmocka_unit_test(test_one_compile),    cmocka_unit_test(test_processes),
      cmocka_unit_test(test_fork),           cmocka_unit_test(test_control),
      cmocka_unit_test(test_endless),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

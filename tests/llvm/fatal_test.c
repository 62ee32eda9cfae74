// SPDX-License-Identifier: Apache-2.0
// Fatal errors of LLVM: what it cannot select, put into some kernels behind
// the plugin's back. They become statuses, the next compilation is as good as
// the one before, and a model falls back to `ref`.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pestle/pestle.h"
#include "pestle/plugin.h"
#include "plugins/llvm/compile.h"
#include "plugins/llvm/guard.h"
#include "runtime/registry.h"
#include "test.h"

const pestle_backend_abi_info_t* pestle_backend_abi_info(void);
const pestle_backend_t* pestle_backend_init(const pestle_host_t* host,
                                            pestle_status_t* out_status);
int32_t pestle_backend_score(char* why, size_t capacity);

// --- The poison ---

#define NOTHING "no kernel's note has this"
static const char* g_poisoned = NOTHING;  // kernels with this in their note
static bool g_calls;                      // they call what is not there instead

// A function that asks for an instruction of another machine.
static void poison(pestle_llvm_emit_t* e) {
  const pestle_llvm_api_t* ll = e->ll;
  LLVMTypeRef i32 = ll->IntTypeInContext(e->context, 32), two[] = {i32, i32};
  LLVMTypeRef crc_type = ll->FunctionType(i32, two, 2, 0);
  LLVMValueRef crc = ll->AddFunction(
      e->module, g_calls ? "abs_diff" : "llvm.aarch64.crc32w", crc_type);
  LLVMValueRef f =
      ll->AddFunction(e->module, "poison", ll->FunctionType(i32, NULL, 0, 0));
  LLVMBuilderRef b = ll->CreateBuilderInContext(e->context);
  ll->PositionBuilderAtEnd(b, ll->AppendBasicBlockInContext(e->context, f, ""));
  LLVMValueRef zero = ll->ConstInt(i32, 0, 0), args[] = {zero, zero};
  ll->BuildRet(b, ll->BuildCall2(b, crc_type, crc, args, 2, ""));
  ll->DisposeBuilder(b);
}

// The linker calls these __wrap_ and __real_.
pestle_status_t __real_pestle_llvm_emit(pestle_llvm_emit_t* e);
pestle_status_t __wrap_pestle_llvm_emit(pestle_llvm_emit_t* e);
pestle_status_t __wrap_pestle_llvm_emit(pestle_llvm_emit_t* e) {
  PESTLE_TRY(__real_pestle_llvm_emit(e));
  if (strstr(pestle_kir_string(e->k, e->k->note), g_poisoned)) poison(e);
  return NULL;
}

// --- A model of two kernels ---

static const char k_text[] =
    "module @m {\n"
    "  func.func @main(%x: tensor<64xf32>, %y: tensor<64xf32>) -> "
    "(tensor<64xf32>, tensor<64xf32>) {\n"
    "    %a = stablehlo.add %x, %y : tensor<64xf32>\n"
    "    %b = stablehlo.multiply %x, %y : tensor<64xf32>\n"
    "    return %a, %b : tensor<64xf32>, tensor<64xf32>\n"
    "  }\n"
    "}\n";

static pthread_mutex_t g_log_lock = PTHREAD_MUTEX_INITIALIZER;

typedef struct fixture_t {
  pestle_context_t* context;
  pestle_device_t* device;
  pestle_module_t* module;
  char log[4096];  // the last fallback
} fixture_t;

static void take_log(void* user, pestle_log_level_t level,
                     const char* message) {
  fixture_t* f = user;
  (void)level;
  if (!strstr(message, "falls back")) return;
  pthread_mutex_lock(&g_log_lock);
  snprintf(f->log, sizeof f->log, "%s", message);
  pthread_mutex_unlock(&g_log_lock);
}

static void begin(fixture_t* f, bool strict) {
  memset(f, 0, sizeof *f);
  pestle_context_options_t options = {.struct_size = sizeof options,
                                      .cache_dir = "",
                                      .backend_path = "/nonexistent",
                                      .log = take_log,
                                      .log_user = f,
                                      .log_level = PESTLE_LOG_INFO,
                                      .strict = strict};
  assert_ok(pestle_context_create(&options, &f->context));
  assert_ok(pestle_registry_add_static(f->context, pestle_backend_abi_info,
                                       pestle_backend_init));
  assert_ok(pestle_context_device(f->context, "llvm", &f->device));
  assert_ok(pestle_module_parse(f->context, k_text, strlen(k_text), "m.mlir",
                                &f->module));
}

static void end(fixture_t* f) {
  pestle_module_release(f->module);
  pestle_context_release(f->context);
}

static pestle_status_t compile(fixture_t* f, const char* poisoned,
                               pestle_plan_t** out_plan) {
  pestle_compile_options_t options = {
      .struct_size = sizeof options, .no_fuse = true, .no_cache = true};
  g_poisoned = poisoned;
  f->log[0] = 0;
  pestle_status_t status =
      pestle_compile(f->context, f->module, f->device, &options, out_plan);
  g_poisoned = NOTHING;
  return status;
}

static void run_plan(fixture_t* f, pestle_plan_t* plan) {
  float x[64], y[64], a[64], b[64];
  int64_t shape[1] = {64};
  for (int i = 0; i < 64; ++i) {
    x[i] = (float)i;
    y[i] = 1.0f - (float)(i % 5);
  }
  pestle_tensor_t view = {.device = {PESTLE_DEVICE_CPU, 0},
                          .ndim = 1,
                          .dtype = {2, 32, 1},
                          .shape = shape};
  pestle_tensor_t in[2] = {view, view}, out[2] = {view, view};
  in[0].data = x;
  in[1].data = y;
  out[0].data = a;
  out[1].data = b;
  pestle_executable_t* e;
  assert_ok(pestle_executable_create(f->context, plan, f->device, &e));
  assert_ok(pestle_executable_run(e, NULL, in, 2, out, 2, NULL));
  pestle_executable_release(e);
  for (int i = 0; i < 64; ++i) {
    assert_true(a[i] == x[i] + y[i]);
    assert_true(b[i] == x[i] * y[i]);
  }
}

// --- Tests; each in the order of main(), since what is lost adds up ---

static void test_falls_back(void** state) {
  (void)state;
  fixture_t f;
  pestle_plan_t* plan;
  begin(&f, false);
  assert_ok(compile(&f, "multiply", &plan));
  assert_non_null(strstr(f.log, "falls back to 'ref'"));
  assert_non_null(strstr(f.log, "Cannot select: intrinsic %llvm.aarch64"));
  run_plan(&f, plan);
  pestle_plan_release(plan);
  // The compiler goes on.
  assert_ok(compile(&f, NOTHING, &plan));
  assert_string_equal(f.log, "");
  run_plan(&f, plan);
  pestle_plan_release(plan);
  end(&f);
}

static void test_strict(void** state) {
  (void)state;
  fixture_t f;
  pestle_plan_t* plan;
  begin(&f, true);
  pestle_status_t status = compile(&f, "add", &plan);
  assert_int_equal(pestle_status_code(status), PESTLE_STATUS_UNSUPPORTED);
  const char* message = pestle_status_message(status);
  assert_non_null(strstr(message, "Cannot select"));
  assert_non_null(strstr(message, "'add_0'"));
  pestle_status_release(status);
  end(&f);
}

// Between a kernel's compilation and its disassembly, for which it is compiled
// again.
static void poison_adds(void* user, pestle_stage_t stage, const char* name,
                        const char* text, size_t size) {
  int* listings = user;
  (void)name, (void)text, (void)size;
  if (stage == PESTLE_STAGE_SOURCE) g_poisoned = "add";
  if (stage == PESTLE_STAGE_ASM) ++*listings;
}

static void test_dump(void** state) {
  (void)state;
  fixture_t f;
  pestle_plan_t* plan;
  int listings = 0;
  begin(&f, false);
  pestle_compile_options_t options = {
      .struct_size = sizeof options,
      .no_fuse = true,
      .dump = poison_adds,
      .dump_user = &listings,
      .dump_stages = 1u << PESTLE_STAGE_SOURCE | 1u << PESTLE_STAGE_ASM};
  assert_ok(pestle_compile(f.context, f.module, f.device, &options, &plan));
  g_poisoned = NOTHING;
  assert_int_equal(listings, 1);  // of the multiplication
  run_plan(&f, plan);
  pestle_plan_release(plan);
  end(&f);
}

// Code that calls anything compiles, and is refused when it is loaded.
static void test_call(void** state) {
  (void)state;
  fixture_t f;
  pestle_plan_t* plan;
  pestle_executable_t* e;
  begin(&f, false);
  g_calls = true;
  assert_ok(compile(&f, "multiply", &plan));
  g_calls = false;
  assert_string_equal(f.log, "");
  assert_code(pestle_executable_create(f.context, plan, f.device, &e),
              MALFORMED);
  pestle_plan_release(plan);
  end(&f);
}

// A fatal error on a thread that is not ours ends the process, as without us.
static void test_foreign_thread(void** state) {
  (void)state;
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  if (!child) {
    dup2(ends[1], STDERR_FILENO);
    pestle_llvm_on_fatal("of somebody else");
    _exit(3);  // it came back, for LLVM to end the process
  }
  close(ends[1]);
  char text[256] = "";
  size_t size = 0;
  ssize_t n;
  while ((n = read(ends[0], text + size, sizeof text - 1 - size)) > 0)
    size += (size_t)n;
  close(ends[0]);
  int ended;
  assert_int_equal(waitpid(child, &ended, 0), child);
  assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 3);
  assert_string_equal(text, "LLVM ERROR: of somebody else\n");
}

static void* compile_some(void* arg) {
  pestle_plan_t* plan;
  fixture_t* f = arg;
  pestle_compile_options_t options = {
      .struct_size = sizeof options, .no_fuse = true, .no_cache = true};
  pestle_status_t status =
      pestle_compile(f->context, f->module, f->device, &options, &plan);
  if (!status) pestle_plan_release(plan);
  return status;
}

// Threads that fail beside threads that do not, then the limit.
static void test_many(void** state) {
  (void)state;
  fixture_t f;
  pestle_plan_t* plan;
  pthread_t threads[4];
  begin(&f, false);
  g_poisoned = "multiply";
  for (int i = 0; i < 4; ++i) {
    assert_int_equal(pthread_create(&threads[i], NULL, compile_some, &f), 0);
  }
  for (int i = 0; i < 4; ++i) {
    void* status;
    assert_int_equal(pthread_join(threads[i], &status), 0);
    assert_ok((pestle_status_t)status);
  }
  pestle_status_t status = NULL;
  int more = 0;
  for (; !status && more <= PESTLE_LLVM_MAX_LOST; ++more) {
    status = compile(&f, "multiply", &plan);
    if (!status) pestle_plan_release(plan);
  }
  // Not a refusal: a plan of `ref` alone would go unnoticed, and be cached.
  assert_int_equal(pestle_status_code(status), PESTLE_STATUS_UNAVAILABLE);
  assert_non_null(strstr(pestle_status_message(status), "fatal errors"));
  assert_true(more > 1);
  pestle_status_release(status);
  end(&f);
}

int main(void) {
  char why[256] = "";
  if (!pestle_backend_score(why, sizeof why)) {
    print_message("skipped: %s\n", why);
    return 77;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_falls_back),     cmocka_unit_test(test_strict),
      cmocka_unit_test(test_dump),           cmocka_unit_test(test_call),
      cmocka_unit_test(test_foreign_thread), cmocka_unit_test(test_many),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// Fails the k-th request for memory in each phase of Pestle's life. A phase has
// something prepared, work, and what undoes that work; each failure happens in
// a context of its own:
//
//   prepare; fail the k-th request of work: OUT_OF_MEMORY, or success where the
//   memory was for something optional; undo; work again, which must succeed and
//   give the right result; undo; drop all: nothing is live.
//
// Each k is tried twice: the one request fails, or all from it on do.
#ifndef PESTLE_TESTS_ROBUST_OOM_H_
#define PESTLE_TESTS_ROBUST_OOM_H_

#include <fcntl.h>
#include <signal.h>

#include "robust/robust.h"
#include "unit/frontend/gguf_test.h"
#include "unit/frontend/onnx_test.h"

typedef struct oom_memory_t {
  pestle_test_allocator_t base;
  atomic_bool sticky;
} oom_memory_t;

typedef struct oom_world_t {
  oom_memory_t memory;
  pestle_context_options_t options;
  pestle_context_t* context;
  pestle_module_t *module, *made;
  pestle_plan_t *plan, *got;
  pestle_executable_t* executable;
  pestle_stream_t* stream;
  pestle_tensor_t out[2];
  void* bytes;
  size_t size;
  char folder[64];
  const char* backend;
} oom_world_t;

typedef pestle_status_t (*oom_step_t)(oom_world_t* w);

typedef struct oom_phase_t {
  const char* name;
  const char* backend;  // or NULL
  oom_step_t prepare;   // or NULL
  oom_step_t work;
  void (*undo)(oom_world_t* w);
  size_t limit;  // how many failures the quick test tries
} oom_phase_t;

static void* oom_resize(void* self, void* ptr, size_t old_size, size_t new_size,
                        size_t alignment) {
  oom_memory_t* memory = self;
  if (new_size > old_size && atomic_load(&memory->sticky) &&
      pestle_test_allocator_failed(&memory->base)) {
    return NULL;
  }
  bool before = pestle_test_allocator_failed(&memory->base);
  void* result = pestle_test_allocator_resize_(&memory->base, ptr, old_size,
                                               new_size, alignment);
  // For a debugger: where the request came from.
  if (!before && pestle_test_allocator_failed(&memory->base) &&
      getenv("PESTLE_ROBUST_TRAP")) {
    raise(SIGTRAP);
  }
  return result;
}

// --- What is worked on ---

static pb_t oom_onnx(const char* dims) {
  static const int64_t kernel[] = {4, 3, 3, 3}, flat[] = {1, 256};
  static const int64_t weight[] = {256, 5}, pads[] = {1, 1, 1, 1};
  static float values[1280];
  for (int i = 0; i < 1280; ++i)
    values[i] = (float)(i % 17) * 0.03f - 0.2f;
  pb_t graph = {0}, attrs = {0};
  onnx_input(&graph, "x", ONNX_FLOAT, dims);
  onnx_floats(&graph, "k", 4, kernel, values);
  onnx_floats(&graph, "w", 2, weight, values);
  onnx_int_list(&graph, "flat", 2, flat);
  onnx_attr_ints(&attrs, "pads", 4, pads);
  onnx_node(&graph, "Conv", "conv", "x,k", "c", &attrs);
  onnx_node(&graph, "Relu", "relu", "c", "r", NULL);
  onnx_node(&graph, "Shape", "shape", "r", "s", NULL);
  onnx_node(&graph, "Reshape", "first", "r,s", "again", NULL);
  onnx_node(&graph, "Reshape", "second", "again,flat", "f", NULL);
  onnx_node(&graph, "MatMul", "dot", "f,w", "d", NULL);
  attrs = (pb_t){0};
  onnx_attr_int(&attrs, "axis", 1);
  onnx_node(&graph, "Softmax", "softmax", "d", "y", &attrs);
  onnx_output(&graph, "y");
  return onnx_model(13, &graph);
}

// --- Phases ---

static void undo_made(oom_world_t* w) {
  pestle_module_release(w->made);
  w->made = NULL;
}

static void undo_bytes(oom_world_t* w) {
  if (w->bytes) pestle_context_free(w->context, w->bytes, w->size);
  w->bytes = NULL;
}

static void undo_got(oom_world_t* w) {
  pestle_plan_release(w->got);
  w->got = NULL;
}

static void undo_context(oom_world_t* w) {
  pestle_context_release(w->context);
  w->context = NULL;
}

static pestle_status_t create_context(oom_world_t* w) {
  if (w->context) undo_context(w);  // the harness's own
  PESTLE_TRY(pestle_context_create(&w->options, &w->context));
  pestle_device_t* device;
  PESTLE_TRY(pestle_context_load_backends(w->context));
  return pestle_context_device(w->context, w->backend, &device);
}

static pestle_status_t import_onnx(oom_world_t* w) {
  pb_t model = oom_onnx("1,3,8,8");
  pestle_import_options_t options = {.struct_size = sizeof(options)};
  pestle_status_t status = pestle_import_onnx(
      w->context, model.data, model.size, true, NULL, &options, &w->made);
  pb_free(&model);
  return status;
}

static pestle_status_t import_gguf(oom_world_t* w) {
  static const pestle_dim_binding_t dims[] = {
      {"batch_size", 1}, {"sequence_length", 2}, {"total_sequence_length", 4}};
  pb_t model = gguf_model();
  pestle_import_options_t options = {
      .struct_size = sizeof(options), .dims = dims, .dim_count = 3};
  pestle_status_t status = pestle_import_bytes(
      w->context, model.data, model.size, "x.gguf", &options, &w->made);
  pb_free(&model);
  return status;
}

static pestle_status_t parse(oom_world_t* w) {
  return robust_parse(w->context, robust_text, &w->made);
}

// Ops that are kernels of their own, and two with regions that fuse.
static const char oom_direct_text[] =
    "func.func @main(%x: tensor<4x4xf32>, %i: tensor<2x1xi32>,\n"
    "                %u: tensor<2x4xf32>) -> tensor<4x4xf32> {\n"
    "  %zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %p = stablehlo.iota dim = 0 : tensor<4x4xi32>\n"
    "  %0:2 = \"stablehlo.sort\"(%x, %p) ({\n"
    "  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: "
    "tensor<i32>):\n"
    "    %l = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, "
    "tensor<f32>) -> tensor<i1>\n"
    "    stablehlo.return %l : tensor<i1>\n"
    "  }) : (tensor<4x4xf32>, tensor<4x4xi32>) -> (tensor<4x4xf32>, "
    "tensor<4x4xi32>)\n"
    "  %1 = \"stablehlo.scatter\"(%0#0, %i, %u) <{scatter_dimension_numbers = "
    "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
    "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n"
    "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
    "    %s = stablehlo.add %a, %b : tensor<f32>\n"
    "    stablehlo.return %s : tensor<f32>\n"
    "  }) : (tensor<4x4xf32>, tensor<2x1xi32>, tensor<2x4xf32>) -> "
    "tensor<4x4xf32>\n"
    "  %2 = \"stablehlo.select_and_scatter\"(%1, %u, %zero) "
    "<{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, "
    "1>}> ({\n"
    "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
    "    %l = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> "
    "tensor<i1>\n"
    "    stablehlo.return %l : tensor<i1>\n"
    "  }, {\n"
    "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
    "    %s = stablehlo.add %a, %b : tensor<f32>\n"
    "    stablehlo.return %s : tensor<f32>\n"
    "  }) : (tensor<4x4xf32>, tensor<2x4xf32>, tensor<f32>) -> "
    "tensor<4x4xf32>\n"
    "  %3 = \"stablehlo.map\"(%2, %1) <{dimensions = array<i64: 0, 1>}> ({\n"
    "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
    "    %h = stablehlo.constant dense<0.5> : tensor<f32>\n"
    "    %s = stablehlo.multiply %a, %h : tensor<f32>\n"
    "    %t = stablehlo.add %s, %b : tensor<f32>\n"
    "    stablehlo.return %t : tensor<f32>\n"
    "  }) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>\n"
    "  %4 = stablehlo.reduce_precision %3, format = e5m2 : tensor<4x4xf32>\n"
    "  %5 = stablehlo.cholesky %4, lower = true : tensor<4x4xf32>\n"
    "  %6 = \"stablehlo.triangular_solve\"(%5, %4) <{left_side = true, lower = "
    "true, transpose_a = #stablehlo<transpose TRANSPOSE>}> : "
    "(tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>\n"
    "  %k = stablehlo.constant dense<1> : tensor<i32>\n"
    "  %7 = stablehlo.dynamic_update_slice %6, %u, %k, %k : "
    "(tensor<4x4xf32>, tensor<2x4xf32>, tensor<i32>, tensor<i32>) -> "
    "tensor<4x4xf32>\n"
    "  return %7 : tensor<4x4xf32>\n"
    "}\n";

static pestle_status_t parse_direct(oom_world_t* w) {
  return robust_parse(w->context, oom_direct_text, &w->made);
}

static pestle_status_t prepare_direct(oom_world_t* w) {
  PESTLE_TRY(parse_direct(w));
  w->module = w->made;
  w->made = NULL;
  return NULL;
}

static pestle_status_t prepare_module(oom_world_t* w) {
  PESTLE_TRY(parse(w));
  w->module = w->made;
  w->made = NULL;
  return NULL;
}

static pestle_status_t print(oom_world_t* w) {
  char* text = NULL;
  PESTLE_TRY(pestle_module_verify(w->module));
  PESTLE_TRY(
      pestle_module_print(w->module, PESTLE_PRINT_LOCATIONS, &text, &w->size));
  w->bytes = text;
  ++w->size;  // the 0 at the end
  uint64_t hash[2];
  return pestle_module_signature(w->module, hash);
}

static pestle_status_t serialize(oom_world_t* w) {
  PESTLE_TRY(pestle_module_serialize(w->module, &w->bytes, &w->size));
  return NULL;
}

static pestle_status_t prepare_bytes(oom_world_t* w) {
  PESTLE_TRY(prepare_module(w));
  return serialize(w);
}

static pestle_status_t deserialize(oom_world_t* w) {
  return pestle_module_deserialize(w->context, w->bytes, w->size, &w->made);
}

static pestle_status_t prepare_symbolic(oom_world_t* w) {
  pb_t model = oom_onnx("1,3,h,8");
  pestle_import_options_t options = {.struct_size = sizeof(options)};
  pestle_status_t status = pestle_import_onnx(
      w->context, model.data, model.size, true, NULL, &options, &w->module);
  pb_free(&model);
  return status;
}

static pestle_status_t specialize(oom_world_t* w) {
  pestle_type_t type = {PESTLE_F32, 4, {1, 3, 8, 8}};
  return pestle_module_specialize(w->module, &type, 1, &w->made);
}

static pestle_status_t compile(oom_world_t* w) {
  return robust_compile(w->context, w->module, w->backend, true, &w->got);
}

// Schedules differ by CPU: what follows takes other ways than this machine's own.
static pestle_status_t compile_for(oom_world_t* w, const char* cpu) {
  pestle_device_t* device;
  PESTLE_TRY(pestle_context_device(w->context, w->backend, &device));
  pestle_compile_options_t options = {
      .struct_size = sizeof(options), .no_cache = true, .target_cpu = cpu};
  return pestle_compile(w->context, w->module, device, &options, &w->got);
}

static pestle_status_t compile_haswell(oom_world_t* w) {
  return compile_for(w, "haswell");
}

static pestle_status_t compile_sapphirerapids(oom_world_t* w) {
  return compile_for(w, "sapphirerapids");
}

static pestle_status_t prepare_folder(oom_world_t* w) {
  snprintf(w->folder, sizeof(w->folder), "/tmp/pestle-oom-XXXXXX");
  if (!mkdtemp(w->folder)) return PESTLE_ERROR(IO, "no folder");
  return NULL;
}

// A context of its own, so that the second time is not a hit in memory.
static pestle_status_t compile_cached(oom_world_t* w) {
  pestle_context_options_t options = w->options;
  options.cache_dir = w->folder;
  pestle_context_t* context;
  PESTLE_TRY(pestle_context_create(&options, &context));
  pestle_module_t* module = NULL;
  pestle_status_t status = robust_parse(context, robust_text, &module);
  if (!status) {
    status = robust_compile(context, module, w->backend, false, &w->got);
  }
  pestle_module_release(module);
  pestle_context_release(context);
  return status;
}

static pestle_status_t prepare_cached(oom_world_t* w) {
  PESTLE_TRY(prepare_folder(w));
  PESTLE_TRY(compile_cached(w));
  undo_got(w);
  return NULL;
}

static pestle_status_t prepare_plan(oom_world_t* w) {
  PESTLE_TRY(prepare_module(w));
  PESTLE_TRY(compile(w));
  w->plan = w->got;
  w->got = NULL;
  return prepare_folder(w);
}

static const char* plan_path(oom_world_t* w) {
  static char path[96];
  snprintf(path, sizeof(path), "%s/a.plan", w->folder);
  return path;
}

static pestle_status_t save(oom_world_t* w) {
  return pestle_plan_save(w->plan, plan_path(w));
}

// Plans saved once for all failures: what is loaded costs no compile.
static const char* oom_saved(const char* backend) {
  static char folder[64], path[96];
  if (!folder[0]) robust_make_folder(folder);
  snprintf(path, sizeof(path), "%s/%s.plan", folder, backend);
  if (access(path, R_OK) == 0) return path;
  pestle_context_t* context = robust_context(NULL);
  pestle_module_t* module;
  pestle_plan_t* plan;
  assert_ok(robust_parse(context, robust_text, &module));
  assert_ok(robust_compile(context, module, backend, true, &plan));
  assert_ok(pestle_plan_save(plan, path));
  pestle_plan_release(plan);
  pestle_module_release(module);
  pestle_context_release(context);
  return path;
}

static pestle_status_t load(oom_world_t* w) {
  return pestle_plan_load(w->context, oom_saved(w->backend), &w->got);
}

static void undo_executable(oom_world_t* w) {
  for (int i = 0; i < 2 && w->executable; ++i) {
    pestle_tensor_release(w->executable, &w->out[i]);
    w->out[i] = (pestle_tensor_t){0};
  }
  pestle_stream_release(w->stream);
  w->stream = NULL;
  pestle_executable_release(w->executable);
  w->executable = NULL;
  undo_got(w);
}

// Allocated outputs, and x with its rows backwards and every second element.
static pestle_status_t run_copies(oom_world_t* w) {
  static robust_inputs_t inputs, turned;
  static float x[2 * ROBUST_X];
  robust_fill(&inputs, 3);
  turned = inputs;
  for (int i = 0; i < ROBUST_X; ++i)
    x[2 * i] = inputs.x[i];
  for (int i = 0; i < 8; ++i) {
    memcpy(&turned.x[(7 - i) * 24], &inputs.x[i * 24], 24 * sizeof(float));
  }
  int64_t dims[] = {1, 8, 8, 3}, strides[] = {0, -48, 6, 2}, wd[] = {128, 10};
  pestle_tensor_t in[] = {test_view(x + 7 * 48, PESTLE_F32, 4, dims, strides),
                          test_view(inputs.w, PESTLE_F32, 2, wd, NULL),
                          test_view(&inputs.n, PESTLE_I32, 0, NULL, NULL)};
  PESTLE_TRY(
      pestle_executable_run(w->executable, w->stream, in, 3, w->out, 2, NULL));
  if (w->stream) PESTLE_TRY(pestle_stream_synchronize(w->stream));
  robust_outputs_t outputs;
  memcpy(outputs.y, w->out[0].data, sizeof(outputs.y));
  memcpy(outputs.z, w->out[1].data, sizeof(outputs.z));
  robust_check(&turned, &outputs);
  return NULL;
}

static pestle_status_t load_and_run(oom_world_t* w) {
  PESTLE_TRY(load(w));
  PESTLE_TRY(
      pestle_executable_create(w->context, w->got, NULL, &w->executable));
  return run_copies(w);
}

static pestle_status_t prepare_executable(oom_world_t* w) {
  pestle_plan_t* plan;
  PESTLE_TRY(pestle_plan_load(w->context, oom_saved(w->backend), &plan));
  pestle_status_t status =
      pestle_executable_create(w->context, plan, NULL, &w->executable);
  pestle_plan_release(plan);
  return status;
}

static void undo_run(oom_world_t* w) {
  for (int i = 0; i < 2; ++i) {
    pestle_tensor_release(w->executable, &w->out[i]);
    w->out[i] = (pestle_tensor_t){0};
  }
  pestle_stream_release(w->stream);
  w->stream = NULL;
}

static pestle_status_t run_stream(oom_world_t* w) {
  pestle_device_t* device;
  PESTLE_TRY(pestle_context_device(w->context, w->backend, &device));
  PESTLE_TRY(pestle_stream_create(device, &w->stream));
  return run_copies(w);
}

static void undo_none(oom_world_t* w) {
  (void)w;
}

// clang-format off
static const oom_phase_t oom_phases[] = {
  {"context", NULL, NULL, create_context, undo_context, 1000},
  {"context", "llvm", NULL, create_context, undo_context, 1000},
  {"import ONNX", NULL, NULL, import_onnx, undo_made, 200},
  {"import GGUF", NULL, NULL, import_gguf, undo_made, 300},
  {"parse", NULL, NULL, parse, undo_made, 1000},
  {"print", NULL, prepare_module, print, undo_bytes, 1000},
  {"serialise", NULL, prepare_module, serialize, undo_bytes, 1000},
  {"deserialise", NULL, prepare_bytes, deserialize, undo_made, 1000},
  {"specialise", NULL, prepare_symbolic, specialize, undo_made, 200},
  {"parse direct", NULL, NULL, parse_direct, undo_made, 500},
  {"compile direct", "ref", prepare_direct, compile, undo_got, 1000},
  {"compile", "ref", prepare_module, compile, undo_got, 1000},
  {"compile", "llvm", prepare_module, compile, undo_got, 120},
  {"compile for haswell", "llvm", prepare_module, compile_haswell, undo_got, 60},
  {"compile for sapphirerapids", "llvm", prepare_module, compile_sapphirerapids, undo_got, 60},
  {"compile direct", "llvm", prepare_direct, compile, undo_got, 30},
  {"compile cold", "ref", prepare_folder, compile_cached, undo_got, 200},
  {"compile cold", "llvm", prepare_folder, compile_cached, undo_got, 60},
  {"compile warm", "llvm", prepare_cached, compile_cached, undo_got, 60},
  {"save", "ref", prepare_plan, save, undo_none, 1000},
  {"load and run", "ref", NULL, load_and_run, undo_executable, 1000},
  {"load and run", "llvm", NULL, load_and_run, undo_executable, 1000},
  {"run on a stream", "ref", prepare_executable, run_stream, undo_run, 1000},
  {"run on a stream", "llvm", prepare_executable, run_stream, undo_run, 1000},
};
// clang-format on

// --- The harness ---

static void begin(oom_world_t* w, const oom_phase_t* phase) {
  memset(w, 0, sizeof(*w));
  pestle_test_allocator_init(&w->memory.base, 0);
  w->backend = phase->backend;
  w->options = robust_options();
  w->options.allocator =
      (pestle_allocator_t){.self = &w->memory, .resize = oom_resize};
  assert_ok(pestle_context_create(&w->options, &w->context));
  if (phase->backend) {
    pestle_device_t* device;
    assert_ok(pestle_context_device(w->context, phase->backend, &device));
  }
  if (phase->prepare) assert_ok(phase->prepare(w));
}

static void end(oom_world_t* w) {
  if (w->context) undo_bytes(w);
  undo_executable(w);
  pestle_module_release(w->made);
  pestle_module_release(w->module);
  pestle_plan_release(w->plan);
  pestle_context_release(w->context);
  if (w->folder[0]) robust_remove_folder(w->folder);
  pestle_test_allocator_check(&w->memory.base);
}

// How many requests |phase| makes when none fails.
static size_t count_requests(const oom_phase_t* phase) {
  oom_world_t w;
  begin(&w, phase);
  size_t before = atomic_load(&w.memory.base.request_count);
  assert_ok(phase->work(&w));
  size_t count = atomic_load(&w.memory.base.request_count) - before;
  phase->undo(&w);
  end(&w);
  return count;
}

// Whether the |k|-th request was made at all.
static bool fail_one(const oom_phase_t* phase, size_t k, bool sticky) {
  oom_world_t w;
  begin(&w, phase);
  pestle_test_allocator_t* base = &w.memory.base;
  atomic_store(&w.memory.sticky, sticky);
  atomic_store(&base->fail_at, atomic_load(&base->request_count) + k);
  pestle_status_t status = phase->work(&w);
  bool failed = pestle_test_allocator_failed(base);
  atomic_store(&w.memory.sticky, false);
  atomic_store(&base->fail_at, 0);
  if (status) {
    if (!failed || pestle_status_code(status) != PESTLE_STATUS_OUT_OF_MEMORY) {
      print_error("%s %s, request %zu%s\n", phase->name,
                  phase->backend ? phase->backend : "", k,
                  sticky ? " and all that follow" : "");
    }
    assert_code(status, OUT_OF_MEMORY);
    assert_true(failed);
  }
  phase->undo(&w);
  assert_ok(phase->work(&w));
  phase->undo(&w);
  end(&w);
  return failed;
}

static void oom_run(const oom_phase_t* phase, bool every) {
  if (phase->backend && !robust_has(phase->backend)) return;
  size_t count = count_requests(phase);
  size_t limit = TEST_SANITIZED ? phase->limit / 4 + 1 : phase->limit;
  size_t step = every || count <= limit ? 1 : count / limit + 1;
  size_t tried = 0;
  // A step that shares no small factor with the pattern of the requests.
  if (step > 1) step |= 1;
  const char* only = getenv("PESTLE_ROBUST_REQUEST");
  if (only) {
    fail_one(phase, (size_t)atol(only), false);
    fail_one(phase, (size_t)atol(only), true);
    return;
  }
  // Other requests than the last call's, where not all are tried.
  const char* first = getenv("PESTLE_ROBUST_FIRST");
  size_t from = 1 + (first ? (size_t)atol(first) % step : 0);
  for (size_t k = from; k <= count; k += step, ++tried) {
    fail_one(phase, k, tried % 2);
    if (every || step == 1) fail_one(phase, k, !(tried % 2));
  }
  print_message("%s %s: %zu requests, %zu of them failed\n", phase->name,
                phase->backend ? phase->backend : "", count, tried);
  assert_true(tried > 0 || count == 0);  // saving a plan makes no request
}

static void oom_test(void** state, bool every) {
  // Keeps the plugins and their libraries mapped from one context to the next.
  pestle_context_t* keeper = robust_context(NULL);
  assert_ok(pestle_context_load_backends(keeper));
  oom_run(*state, every);
  pestle_context_release(keeper);
}

static int oom_remove_saved(void** state) {
  (void)state;
  char path[96];
  snprintf(path, sizeof(path), "%s", oom_saved("ref"));
  *strrchr(path, '/') = 0;
  robust_remove_folder(path);
  return 0;
}

// Runs one test a phase; PESTLE_ROBUST_PHASE=N picks one, PESTLE_ROBUST_REQUEST=K one
// request of it, and PESTLE_ROBUST_FIRST=I lets those that are tried begin I further on.
static int oom_main(CMUnitTestFunction function) {
  enum { COUNT = sizeof(oom_phases) / sizeof(oom_phases[0]) };
  struct CMUnitTest tests[COUNT];
  const char* only = getenv("PESTLE_ROBUST_PHASE");
  size_t count = 0;
  for (size_t i = 0; i < COUNT; ++i) {
    if (only && (size_t)atoi(only) != i) continue;
    tests[count++] =
        (struct CMUnitTest){.name = oom_phases[i].name,
                            .test_func = function,
                            .initial_state = (void*)&oom_phases[i]};
  }
  return _cmocka_run_group_tests("oom", tests, count, NULL, oom_remove_saved);
}

#endif  // PESTLE_TESTS_ROBUST_OOM_H_

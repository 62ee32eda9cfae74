// SPDX-License-Identifier: Apache-2.0
// stablehlo.custom_call from its text to runs on every device that is there.
#include "pestle/custom_call.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/thread.h"
#include "ir/graph.h"
#include "ir/ref/ref.h"
#include "pestle/pestle.h"
#include "pestle/plan_format.h"
#include "runtime/plan.h"
#include "test.h"

enum { MAX_ARRAYS = 4, ELEMENTS = 24 };

// --- Functions ---

static int64_t count_of(const pestle_tensor_t* t) {
  int64_t count = 1;
  for (int32_t i = 0; i < t->ndim; ++i)
    count *= t->shape[i];
  return count;
}

// By the number that is its configuration; also what it is told, and where.
static pestle_status_t scale(void* user, const pestle_custom_call_t* call) {
  const pestle_tensor_t* x = &call->inputs[0];
  const float* from = x->data;
  float *to = call->outputs[0].data, by = strtof(call->config, NULL);
  (void)user;
  assert_true(call->struct_size >= sizeof(*call));
  assert_string_equal(call->name, "scale");
  assert_int_equal(call->input_count, 1);
  assert_int_equal(call->output_count, 1);
  assert_int_equal(x->device.device_type, PESTLE_DEVICE_CPU);
  assert_int_equal(x->device.device_id, 0);
  assert_null(call->stream);
  assert_int_equal(x->byte_offset, 0);
  assert_int_equal(pestle_dtype_from_dlpack(x->dtype), PESTLE_F32);
  int64_t step = 1;
  for (int32_t i = x->ndim; i-- > 0; step *= x->shape[i])
    assert_int_equal(x->strides[i], step);
  for (int64_t i = 0; i < count_of(x); ++i)
    to[i] = by * from[i];
  return NULL;
}

// Adds 1 to its first input, which is an alias of its second output, in place; the
// first output becomes what the input was, plus the second input.
static pestle_status_t twist(void* user, const pestle_custom_call_t* call) {
  (void)user;
  assert_int_equal(call->input_count, 2);
  assert_int_equal(call->output_count, 2);
  float *x = call->inputs[0].data, *sum = call->outputs[0].data;
  const float* y = call->inputs[1].data;
  assert_ptr_equal(x, call->outputs[1].data);
  assert_ptr_not_equal(x, y);
  assert_ptr_not_equal(x, sum);
  for (int64_t i = 0; i < count_of(&call->inputs[0]); ++i) {
    sum[i] = x[i] + y[i];
    x[i] += 1;
  }
  return NULL;
}

// What the module's functions that it is given are: each once on its input.
static pestle_status_t map(void* user, const pestle_custom_call_t* call) {
  pestle_context_t* c = *(pestle_context_t**)user;
  const float* x = call->inputs[0].data;
  float* y = call->outputs[0].data;
  memcpy(y, x, 6 * sizeof(float));
  assert_int_equal(call->computation_count, 2);
  for (size_t k = 0; k < call->computation_count; ++k) {
    pestle_module_t* module;
    const char* text = call->computations[k];
    PESTLE_TRY(pestle_module_parse(c, text, strlen(text), NULL, &module));
    pestle_status_t status = NULL;
    for (int i = 0; i < 6 && !status; ++i) {
      float in = y[i];
      status = pestle_ref_evaluate_function(
          pestle_allocator_system(), pestle_module_entry(module),
          (const void*[]){&in}, (void*[]){&y[i]});
    }
    pestle_module_release(module);
    PESTLE_TRY(status);
  }
  return NULL;
}

// Sums of rows, and how many there are.
static pestle_status_t sums(void* user, const pestle_custom_call_t* call) {
  const pestle_tensor_t* x = &call->inputs[0];
  int64_t rows = x->shape[0], columns = x->shape[1];
  (void)user;
  // Where the tensors are not row-major, it says how they lie.
  const char* plain = "{axis = 1 : i64, a = \"} {\"}";
  const char* ordered =
      "{pestle.layouts = [[1, 0], [0], []], axis = 1 : i64, a = \"} {\"}";
  assert_string_equal(call->dictionary, rows == 3 ? ordered : plain);
  assert_string_equal(call->config, "");
  for (int64_t i = 0; i < rows; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < columns; ++j)
      sum += ((const float*)x->data)[i * columns + j];
    ((float*)call->outputs[0].data)[i] = sum;
  }
  *(int32_t*)call->outputs[1].data = (int32_t)rows;
  return NULL;
}

// Appends its configuration to a text.
static pestle_status_t note(void* user, const pestle_custom_call_t* call) {
  strcat(user, call->config);
  for (size_t i = 0; i < call->output_count; ++i)
    *(int32_t*)call->outputs[i].data = 7;
  return NULL;
}

static pestle_status_t fail_on_purpose(void* user,
                                       const pestle_custom_call_t* call) {
  (void)user, (void)call;
  return pestle_status_make(PESTLE_STATUS_RESOURCE_EXHAUSTED, NULL, 0,
                            "the function has had enough");
}

// --- Running ---

static const char* const devices[] = {"llvm", "ref", "opencl", "vulkan"};

static char g_notes[256];
static pestle_context_t* g_context;  // the latest

static pestle_context_t* make_context(const char* cache, const char* version) {
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .threads = 2,
                                      .no_cache = !cache,
                                      .cache_dir = cache};
  options.backend_path = getenv("PESTLE_BACKEND_PATH");
  pestle_custom_call_options_t with = {.struct_size = sizeof(with),
                                       .version = version};
  pestle_context_t* c;
  assert_ok(pestle_context_create(&options, &c));
  assert_ok(
      pestle_context_register_custom_call(c, "scale", scale, NULL, &with));
  assert_ok(pestle_context_register_custom_call(c, "sums", sums, NULL, NULL));
  assert_ok(
      pestle_context_register_custom_call(c, "note", note, g_notes, NULL));
  assert_ok(pestle_context_register_custom_call(c, "fail", fail_on_purpose,
                                                NULL, NULL));
  assert_ok(pestle_context_register_custom_call(c, "twist", twist, NULL, NULL));
  assert_ok(
      pestle_context_register_custom_call(c, "map", map, &g_context, NULL));
  g_notes[0] = 0;
  g_context = c;
  return c;
}

static pestle_module_t* parse(pestle_context_t* c, const char* text) {
  pestle_module_t* module;
  assert_ok(pestle_module_parse(c, text, strlen(text), NULL, &module));
  return module;
}

// A device of that name, or NULL.
static pestle_device_t* find_device(pestle_context_t* c, const char* name) {
  pestle_device_t* device = NULL;
  pestle_status_release(pestle_context_device(c, name, &device));
  return device;
}

typedef union cell_t {
  float f[ELEMENTS];
  int32_t i[ELEMENTS];
} cell_t;

static cell_t g_in[MAX_ARRAYS], g_out[MAX_ARRAYS];

static void fill_inputs(void) {
  for (int a = 0; a < MAX_ARRAYS; ++a) {
    for (int i = 0; i < ELEMENTS; ++i)
      g_in[a].f[i] = (float)(i - 5) / 4;
  }
  memset(g_out, 0x55, sizeof(g_out));
}

static pestle_status_t run_plan(pestle_context_t* c, pestle_plan_t* plan,
                                pestle_device_t* device) {
  pestle_executable_t* e;
  pestle_tensor_t views[2 * MAX_ARRAYS];
  PESTLE_TRY(pestle_executable_create(c, plan, device, &e));
  size_t inputs = pestle_executable_input_count(e);
  size_t outputs = pestle_executable_output_count(e);
  fill_inputs();
  for (size_t i = 0; i < inputs + outputs; ++i) {
    bool in = i < inputs;
    pestle_io_info_t io = in ? pestle_executable_input(e, i)
                             : pestle_executable_output(e, i - inputs);
    views[i] = (pestle_tensor_t){
        .data = in ? g_in[i].f : g_out[i - inputs].f,
        .device = {PESTLE_DEVICE_CPU, 0},
        .ndim = io.rank,
        .dtype = pestle_dtype_to_dlpack((pestle_dtype_t)io.dtype),
        .shape = (int64_t*)(uintptr_t)io.dims};
  }
  // Twice: what is done once may be remembered.
  pestle_status_t status = NULL;
  for (int i = 0; i < 2 && !status; ++i) {
    g_notes[0] = 0;
    status = pestle_executable_run(e, NULL, views, inputs, views + inputs,
                                   outputs, NULL);
  }
  pestle_executable_release(e);
  return status;
}

static pestle_status_t run_on(pestle_context_t* c, pestle_device_t* device,
                              const char* text) {
  pestle_plan_t* plan;
  pestle_module_t* module = parse(c, text);
  pestle_status_t status = pestle_compile(c, module, device, NULL, &plan);
  pestle_module_release(module);
  if (status) return status;
  status = run_plan(c, plan, device);
  pestle_plan_release(plan);
  return status;
}

#define F6 "tensor<2x3xf32>"
#define SCALE(result, x, by)                                              \
  result " = stablehlo.custom_call @scale(" x ") {backend_config = \"" by \
         "\"} : (" F6 ") -> " F6 "\n"

// --- Values ---

static const char chain[] =
    "func.func @main(%x: " F6 ") -> (" F6
    ", tensor<2xf32>, tensor<i32>) {\n"
    "%a = stablehlo.negate %x : " F6 "\n" SCALE("%b", "%a", "-3")  //
    "%c = stablehlo.add %b, %x : " F6 "\n"                         //
    SCALE("%d", "%c", "0.5")                                       //
    "%e:2 = \"stablehlo.custom_call\"(%d) <{call_target_name = \"sums\", "
    "backend_config = {axis = 1 : i64, a = \"} {\"}}> : (" F6
    ") -> (tensor<2xf32>, tensor<i32>)\n"
    "%k = stablehlo.constant dense<2.0> : " F6 "\n"  //
    SCALE("%l", "%k", "4")                           //
    "%m = stablehlo.add %l, %d : " F6
    "\n"
    "return %m, %e#0, %e#1 : " F6 ", tensor<2xf32>, tensor<i32>\n}";

// x -> 2 x + 8, sums of 2 x, the number of rows.
static void check_chain(void) {
  for (int i = 0; i < 6; ++i)
    assert_float_equal(g_out[0].f[i], 2 * g_in[0].f[i] + 8, 1e-6);
  for (int i = 0; i < 2; ++i) {
    const float* row = g_in[0].f + 3 * (ptrdiff_t)i;
    assert_float_equal(g_out[1].f[i], 2 * (row[0] + row[1] + row[2]), 1e-6);
  }
  assert_int_equal(g_out[2].i[0], 2);
}

static void computes(void** state) {
  (void)state;
  pestle_context_t* c = make_context(NULL, NULL);
  size_t ran = 0;
  for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); ++i) {
    pestle_device_t* device = find_device(c, devices[i]);
    if (!device) continue;
    assert_ok(run_on(c, device, chain));
    check_chain();
    ++ran;
  }
  assert_true(ran >= 1);
  pestle_context_release(c);
}

// In a function that is inlined, and in a loop: copies of the op.
static void is_copied(void** state) {
  (void)state;
  static const char text[] =
      "func.func @main(%x: " F6 ") -> (" F6
      ", tensor<2xf32>, tensor<i32>) {\n"
      "%r:3 = call @f(%x) : (" F6 ") -> (" F6
      ", tensor<2xf32>, tensor<i32>)\n"
      "return %r#0, %r#1, %r#2 : " F6
      ", tensor<2xf32>, tensor<i32>\n}\n"
      "func.func private @f(%x: " F6 ") -> (" F6
      ", tensor<2xf32>, tensor<i32>) {\n"
      "%zero = stablehlo.constant dense<0> : tensor<i32>\n"
      "%w:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, " F6
      "\n"
      "cond {\n"
      "%three = stablehlo.constant dense<3> : tensor<i32>\n"
      "%t = stablehlo.compare LT, %i, %three, SIGNED : (tensor<i32>, "
      "tensor<i32>) -> tensor<i1>\n"
      "stablehlo.return %t : tensor<i1>\n"
      "} do {\n" SCALE("%n", "%v", "2")  //
      "%one = stablehlo.constant dense<1> : tensor<i32>\n"
      "%j = stablehlo.add %i, %one : tensor<i32>\n"
      "stablehlo.return %j, %n : tensor<i32>, " F6
      "\n"
      "}\n"
      "%e:2 = \"stablehlo.custom_call\"(%x) <{call_target_name = \"sums\", "
      "backend_config = {axis = 1 : i64, a = \"} {\"}}> : (" F6
      ") -> (tensor<2xf32>, tensor<i32>)\n"
      "return %w#1, %e#0, %e#1 : " F6 ", tensor<2xf32>, tensor<i32>\n}";
  pestle_context_t* c = make_context(NULL, NULL);
  for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); ++i) {
    pestle_device_t* device = find_device(c, devices[i]);
    if (!device) continue;
    assert_ok(run_on(c, device, text));
    for (int k = 0; k < 6; ++k)
      assert_float_equal(g_out[0].f[k], 8 * g_in[0].f[k], 1e-6);
    const float* row = g_in[0].f + 3;
    assert_float_equal(g_out[1].f[1], row[0] + row[1] + row[2], 1e-6);
    assert_int_equal(g_out[2].i[0], 2);
  }
  pestle_context_release(c);
}

static void is_evaluated(void** state) {
  (void)state;
  pestle_context_t* c = make_context(NULL, NULL);
  pestle_module_t* module = parse(c, chain);
  const void* in[] = {g_in[0].f};
  void* out[] = {g_out[0].f, g_out[1].f, g_out[2].f};
  fill_inputs();
  assert_ok(pestle_ref_evaluate_function(pestle_allocator_system(),
                                         pestle_module_entry(module), in, out));
  check_chain();
  pestle_module_release(module);
  pestle_context_release(c);
}

// Columns are passed as rows, and what was written as [3, 2] is read as [2, 3].
static void layouts_are_kept(void** state) {
  (void)state;
  static const char text[] =
      "func.func @main(%x: " F6 ") -> (" F6
      ", tensor<3xf32>, tensor<i32>) {\n"
      "%y = stablehlo.custom_call @scale(%x) {backend_config = \"2\", "
      "result_layouts = [dense<[0, 1]> : tensor<2xindex>]} : (" F6 ") -> " F6
      "\n"
      "%e:2 = stablehlo.custom_call @sums(%x) {backend_config = {axis = 1 : "
      "i64, a = \"} {\"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], "
      "result_layouts = [dense<0> : tensor<1xindex>, dense<> : "
      "tensor<0xindex>]} : (" F6
      ") -> (tensor<3xf32>, tensor<i32>)\n"
      "return %y, %e#0, %e#1 : " F6 ", tensor<3xf32>, tensor<i32>\n}";
  pestle_context_t* c = make_context(NULL, NULL);
  for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); ++i) {
    pestle_device_t* device = find_device(c, devices[i]);
    if (!device) continue;
    assert_ok(run_on(c, device, text));
    const float* x = g_in[0].f;
    for (int k = 0; k < 6; ++k) {
      int written = k % 3 * 2 + k / 3;
      assert_float_equal(g_out[0].f[k], 2 * x[written], 1e-6);
    }
    for (int k = 0; k < 3; ++k)
      assert_float_equal(g_out[1].f[k], x[k] + x[k + 3], 1e-6);
    assert_int_equal(g_out[2].i[0], 3);
  }
  pestle_context_release(c);
}

// --- Aliases ---

#define ALIAS(output, operand)                                      \
  "#stablehlo.output_operand_alias<output_tuple_indices = [" output \
  "], operand_index = " operand ", operand_tuple_indices = []>"
#define TWIST(result, x, y, aliases)                                 \
  result " = stablehlo.custom_call @twist(" x ", " y                 \
         ") {output_operand_aliases = [" aliases "]} : (" F6 ", " F6 \
         ") -> "                                                     \
         "(" F6 ", " F6 ")\n"

static int copies_of(pestle_context_t* c, pestle_device_t* device,
                     const char* text) {
  pestle_plan_t* plan;
  pestle_module_t* module = parse(c, text);
  assert_ok(pestle_compile(c, module, device, NULL, &plan));
  pestle_module_release(module);
  const pestle_plan_header_t* h = pestle_plan_header(plan);
  const pestle_plan_step_t* steps =
      PESTLE_PLAN_RECORDS(plan, pestle_plan_step_t, steps);
  int copies = 0;
  for (size_t i = 0; i < h->steps.count; ++i)
    copies += steps[i].kind == PESTLE_PLAN_COPY;
  pestle_plan_release(plan);
  return copies;
}

// The operand is a sum that nobody else reads, an argument, and a value that is read
// again afterwards.
static void aliases_share_memory(void** state) {
  (void)state;
  static const char dying[] =
      "func.func @main(%x: " F6 ", %y: " F6 ") -> (" F6 ", " F6
      ") {\n"
      "%s = stablehlo.add %x, %y : " F6
      "\n" TWIST("%r:2", "%s", "%y", ALIAS("1", "0"))  //
      "%a = stablehlo.add %r#0, %y : " F6 "\n%b = stablehlo.add %r#1, %y : " F6
      "\nreturn %a, %b : " F6 ", " F6 "\n}";
  static const char staying[] =
      "func.func @main(%x: " F6 ", %y: " F6 ") -> (" F6 ", " F6
      ") {\n" TWIST("%r:2", "%x", "%x", ALIAS("1", "0"))  //
      "%a = stablehlo.add %r#0, %y : " F6
      "\n%b = stablehlo.multiply %r#1, %x : " F6 "\nreturn %a, %b : " F6 ", " F6
      "\n}";
  pestle_context_t* c = make_context(NULL, NULL);
  for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); ++i) {
    pestle_device_t* device = find_device(c, devices[i]);
    if (!device) continue;
    const float *x = g_in[0].f, *y = g_in[1].f;
    assert_ok(run_on(c, device, dying));
    for (int k = 0; k < 6; ++k) {
      assert_float_equal(g_out[0].f[k], x[k] + 3 * y[k], 1e-6);
      assert_float_equal(g_out[1].f[k], x[k] + 2 * y[k] + 1, 1e-6);
    }
    assert_int_equal(copies_of(c, device, dying), 0);
    assert_ok(run_on(c, device, staying));
    for (int k = 0; k < 6; ++k) {
      assert_float_equal(g_out[0].f[k], 2 * x[k] + y[k], 1e-6);
      assert_float_equal(g_out[1].f[k], (x[k] + 1) * x[k], 1e-6);
    }
    assert_int_equal(copies_of(c, device, staying), 1);
  }
  pestle_module_t* module = parse(c, staying);
  fill_inputs();
  assert_ok(pestle_ref_evaluate_function(pestle_allocator_system(),
                                         pestle_module_entry(module),
                                         (const void*[]){g_in[0].f, g_in[1].f},
                                         (void*[]){g_out[0].f, g_out[1].f}));
  for (int k = 0; k < 6; ++k)
    assert_float_equal(g_out[1].f[k], (g_in[0].f[k] + 1) * g_in[0].f[k], 1e-6);
  pestle_module_release(module);
  pestle_context_release(c);
}

static void aliases_are_checked(void** state) {
  (void)state;
#define WITH(aliases)                                                       \
  "func.func @main(%x: " F6 ") -> (" F6                                     \
  ", tensor<6xf32>) {\n"                                                    \
  "%y:2 = stablehlo.custom_call @f(%x) {output_operand_aliases = [" aliases \
  "]} : (" F6 ") -> (" F6                                                   \
  ", tensor<6xf32>)\n"                                                      \
  "return %y#0, %y#1 : " F6 ", tensor<6xf32>\n}"
  static const char* const texts[][2] = {
      {WITH(ALIAS("2", "0")), "names result 2 and operand 0 of 2 and 1"},
      {WITH(ALIAS("0", "1")), "names result 0 and operand 1 of 2 and 1"},
      {WITH(ALIAS("0", "-1")), "names result 0 and operand -1"},
      {WITH(ALIAS("1", "0")),
       "result 1 is tensor<6xf32>, operand 0 is tensor<2x3xf32>"},
      {WITH(ALIAS("0", "0") ", " ALIAS("0", "0")), "names result 0 twice"},
      {WITH("7"), "aliases of at most one output index"},
      {WITH("#stablehlo.output_operand_alias<output_tuple_indices = [0, 1], "
            "operand_index = 0, operand_tuple_indices = []>"),
       "aliases of at most one output index"},
      {WITH("#stablehlo.output_operand_alias<output_tuple_indices = [0], "
            "operand_index = 0, operand_tuple_indices = [0]>"),
       "no operand_tuple_indices"},
  };
  pestle_context_t* c = make_context(NULL, NULL);
  pestle_module_t* module;
  for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); ++i) {
    const char* text = texts[i][0];
    assert_error(pestle_module_parse(c, text, strlen(text), NULL, &module),
                 MALFORMED, texts[i][1]);
  }
  pestle_context_release(c);
}

// --- Computations ---

#define MAP(list)                                                         \
  "func.func @main(%x: " F6 ") -> " F6                                    \
  " {\n"                                                                  \
  "%y = stablehlo.custom_call @map(%x) {called_computations = [" list     \
  "]} : (" F6 ") -> " F6 "\nreturn %y : " F6                              \
  "\n}\n"                                                                 \
  "func.func private @g(%x: tensor<f32>) -> tensor<f32> {\n"              \
  "%h = call @h(%x) : (tensor<f32>) -> tensor<f32>\n"                     \
  "%y = stablehlo.add %h, %x : tensor<f32>\nreturn %y : tensor<f32>\n}\n" \
  "func.func private @h(%x: tensor<f32>) -> tensor<f32> {\n"              \
  "%y = stablehlo.multiply %x, %x : tensor<f32>\n"                        \
  "return %y : tensor<f32>\n}\n"

// y = x + x^2, then its square; also of the text that the module is printed as.
static void functions_are_given(void** state) {
  (void)state;
  pestle_context_t* c = make_context(NULL, NULL);
  char* printed;
  size_t size;
  pestle_module_t* module = parse(c, MAP("@g, @h"));
  assert_ok(pestle_module_print(module, 0, &printed, &size));
  pestle_module_release(module);
  const char* const texts[] = {MAP("@g, @h"), printed};
  for (size_t t = 0; t < 2; ++t) {
    for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); ++i) {
      pestle_device_t* device = find_device(c, devices[i]);
      if (!device) continue;
      assert_ok(run_on(c, device, texts[t]));
      for (int k = 0; k < 6; ++k) {
        float x = g_in[0].f[k], y = x + x * x;
        assert_float_equal(g_out[0].f[k], y * y, 1e-5);
      }
    }
  }
  pestle_dealloc(pestle_context_allocator(c), printed, size + 1);
  static const char missing[] = MAP("@g, @k"), wrong[] = MAP("7");
  assert_error(pestle_module_parse(c, missing, strlen(missing), NULL, &module),
               MALFORMED, "names function 'k', which the module lacks");
  assert_error(pestle_module_parse(c, wrong, strlen(wrong), NULL, &module),
               MALFORMED, "must be a list of functions");
  pestle_context_release(c);
}

static void layouts_are_checked(void** state) {
  (void)state;
#define LIES(layouts)                                                       \
  "func.func @main(%x: " F6 ") -> " F6                                      \
  " {\n"                                                                    \
  "%y = stablehlo.custom_call @f(%x) {operand_layouts = " layouts           \
  ", result_layouts = [dense<[1, 0]> : tensor<2xindex>]} : (" F6 ") -> " F6 \
  "\nreturn %y : " F6 "\n}"
  static const char* const texts[][2] = {
      {LIES("[dense<[0, 0]> : tensor<2xindex>]"), "once, and is [0, 0]"},
      {LIES("[dense<[2, 0, 1]> : tensor<3xindex>]"), "once, and is [2, 0, 1]"},
      {LIES("[]"), "for 1 tensors, and has 0"},
      {LIES("3"), "for 1 tensors, and is no list"},
  };
  pestle_context_t* c = make_context(NULL, NULL);
  pestle_module_t* module;
  for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); ++i) {
    const char* text = texts[i][0];
    assert_error(pestle_module_parse(c, text, strlen(text), NULL, &module),
                 MALFORMED, texts[i][1]);
  }
  pestle_context_release(c);
}

// --- Effects ---

#define NOTE(result, text, effect)                     \
  result                                               \
      "stablehlo.custom_call @note() {backend_config " \
      "= \"" text "\"" effect "} : () -> "
#define EFFECT ", has_side_effect = true"

static void effects_stay_in_order(void** state) {
  (void)state;
  static const char text[] =
      "func.func @main(%x: tensor<i32>) -> (tensor<i32>, tensor<4xi32>) {\n"  //
      NOTE("", "a", EFFECT) "()\n"                                            //
      NOTE("%dead = ", "lost", "") "tensor<i32>\n"                            //
      NOTE("%u = ", "b", EFFECT) "tensor<i32>\n"                              //
      "%zero = stablehlo.constant dense<0> : tensor<i32>\n"
      "%w = stablehlo.while(%i = %zero) : tensor<i32>\n"
      "cond {\n"
      "%three = stablehlo.constant dense<3> : tensor<i32>\n"
      "%t = stablehlo.compare LT, %i, %three, SIGNED : (tensor<i32>, "
      "tensor<i32>) -> tensor<i1>\n"
      "stablehlo.return %t : tensor<i1>\n"
      "} do {\n"                    //
      NOTE("", "c", EFFECT) "()\n"  //
      "%one = stablehlo.constant dense<1> : tensor<i32>\n"
      "%n = stablehlo.add %i, %one : tensor<i32>\n"
      "stablehlo.return %n : tensor<i32>\n"
      "}\n"
      "func.call @more() : () -> ()\n"  //
      NOTE("%v = ", "e", EFFECT)
      "tensor<i32>\n"  //
      NOTE("%p = ", "(pure)", "")
      "tensor<i32>\n"
      "%y = stablehlo.add %p, %v : tensor<i32>\n"
      "%z = stablehlo.broadcast_in_dim %y, dims = [] : (tensor<i32>) -> "
      "tensor<4xi32>\n"
      "return %x, %z : tensor<i32>, tensor<4xi32>\n}\n"
      "func.func private @more() {\n"  //
      NOTE("", "d", EFFECT) "()\nreturn\n}\n";
  pestle_context_t* c = make_context(NULL, NULL);
  for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); ++i) {
    pestle_device_t* device = find_device(c, devices[i]);
    if (!device) continue;
    assert_ok(run_on(c, device, text));
    // The pure one comes where its result is needed, the lost one never.
    char seen[64] = "";
    const char* pure = strstr(g_notes, "(pure)");
    assert_non_null(pure);
    strncat(seen, g_notes, (size_t)(pure - g_notes));
    strcat(seen, pure + strlen("(pure)"));
    assert_string_equal(seen, "abcccde");
    assert_int_equal(g_out[1].i[3], 14);
  }
  pestle_context_release(c);
}

// --- Failures ---

static void failures_are_told(void** state) {
  (void)state;
  static const char failing[] =
      "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
      "%y = stablehlo.custom_call @fail(%x) : (tensor<2xf32>) -> "
      "tensor<2xf32>\nreturn %y : tensor<2xf32>\n}";
  static const char unknown[] =
      "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
      "%y = stablehlo.custom_call @left(%x) : (tensor<2xf32>) -> "
      "tensor<2xf32>\n"
      "%z = stablehlo.custom_call @right(%y) : (tensor<2xf32>) -> "
      "tensor<2xf32>\n"
      "%w = stablehlo.custom_call @left(%z) : (tensor<2xf32>) -> "
      "tensor<2xf32>\nreturn %w : tensor<2xf32>\n}";
  pestle_context_t* c = make_context(NULL, NULL);
  for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); ++i) {
    pestle_device_t* device = find_device(c, devices[i]);
    if (!device) continue;
    assert_error(run_on(c, device, failing), RESOURCE_EXHAUSTED,
                 "the function has had enough");
    assert_error(run_on(c, device, failing), RESOURCE_EXHAUSTED,
                 "in custom call 'fail'");
    assert_error(run_on(c, device, unknown), NOT_FOUND,
                 "calls 'left', 'right', for which the context has no");
  }
  pestle_context_release(c);
}

static void names_are_checked(void** state) {
  (void)state;
  pestle_context_t* c = make_context(NULL, "1");
  char name[300] = "", version[100] = "";
  memset(name, 'n', 256);
  memset(version, 'v', 64);
  pestle_custom_call_options_t options = {.struct_size = sizeof(options),
                                          .version = version};
#define REGISTER(what, with) \
  pestle_context_register_custom_call(c, what, note, NULL, with)
  assert_error(REGISTER("scale", NULL), INVALID_ARGUMENT, "'scale' already");
  assert_error(REGISTER("", NULL), INVALID_ARGUMENT, "1 to 255 bytes");
  assert_error(REGISTER(name, NULL), INVALID_ARGUMENT, "has 256");
  assert_error(REGISTER("v", &options), INVALID_ARGUMENT, "64 bytes");
  assert_error(REGISTER("pestle.f", NULL), INVALID_ARGUMENT, "'pestle.'");
  name[255] = version[63] = 0;
  assert_ok(REGISTER(name, &options));
  pestle_custom_call_info_t info = {.struct_size = sizeof(info)};
  assert_ok(pestle_context_custom_call(c, name, &info));
  assert_true(info.function == note);
  assert_string_equal(info.version, version);
  assert_false(info.device_memory);
  assert_error(pestle_context_custom_call(c, "none", &info), NOT_FOUND,
               "no custom call 'none'");
  assert_null(info.function);
  pestle_context_release(c);
}

// --- Plans ---

static void plans_find_their_functions(void** state) {
  (void)state;
  pestle_context_t* c = make_context(NULL, "1");
  pestle_module_t* module = parse(c, chain);
  pestle_plan_t* plan;
  char path[] = "/tmp/pestle-custom-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  assert_ok(pestle_compile(c, module, NULL, NULL, &plan));
  assert_ok(pestle_plan_save(plan, path));
  pestle_plan_release(plan);
  pestle_module_release(module);
  pestle_context_release(c);

  c = make_context(NULL, "1");
  assert_ok(pestle_plan_load(c, path, &plan));
  assert_ok(run_plan(c, plan, NULL));
  check_chain();
  pestle_plan_release(plan);
  pestle_context_release(c);

  c = make_context(NULL, "2");
  assert_ok(pestle_plan_load(c, path, &plan));
  assert_error(run_plan(c, plan, NULL), INCOMPATIBLE,
               "custom call 'scale' of version '1', the context has '2'");
  pestle_plan_release(plan);
  pestle_context_release(c);

  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .no_cache = true};
  options.backend_path = getenv("PESTLE_BACKEND_PATH");
  assert_ok(pestle_context_create(&options, &c));
  assert_ok(pestle_plan_load(c, path, &plan));
  assert_error(run_plan(c, plan, NULL), NOT_FOUND,
               "calls 'scale', 'sums', for which the context has no");
  pestle_plan_release(plan);
  pestle_context_release(c);
  unlink(path);
}

static bool g_missed;

static void look(void* user, pestle_log_level_t level, const char* message) {
  (void)user, (void)level;
  g_missed = g_missed || strstr(message, "compiled '") != NULL;
}

// Whether |text| had to be compiled.
static bool is_compiled(const char* folder, const char* version,
                        const char* text) {
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .cache_dir = folder,
                                      .log = look,
                                      .log_level = PESTLE_LOG_INFO};
  options.backend_path = getenv("PESTLE_BACKEND_PATH");
  pestle_custom_call_options_t with = {.struct_size = sizeof(with),
                                       .version = version};
  pestle_context_t* c;
  assert_ok(pestle_context_create(&options, &c));
  assert_ok(
      pestle_context_register_custom_call(c, "scale", scale, NULL, &with));
  assert_ok(pestle_context_register_custom_call(c, "sums", sums, NULL, NULL));
  g_missed = false;
  assert_ok(run_on(c, NULL, text));
  pestle_context_release(c);
  return g_missed;
}

static void versions_are_in_the_key(void** state) {
  (void)state;
  char folder[] = "/tmp/pestle-custom-cache-XXXXXX", command[128];
  assert_non_null(mkdtemp(folder));
  assert_true(is_compiled(folder, "1", chain));
  assert_false(is_compiled(folder, "1", chain));
  check_chain();
  assert_true(is_compiled(folder, "2", chain));
  check_chain();
  // So is the configuration.
  char other[sizeof(chain)];
  memcpy(other, chain, sizeof(chain));
  char* at = strstr(other, "\"0.5\"");
  assert_non_null(at);
  memcpy(at, "\"1.5\"", 5);
  assert_true(is_compiled(folder, "1", other));
  snprintf(command, sizeof(command), "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

// --- Text ---

#define ONE(attributes)                                         \
  "func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {\n" \
  "  %0 = stablehlo.custom_call @scale(%x)" attributes          \
  " : (tensor<2x2xf32>) -> tensor<2x2xf32>\n  return %0 : "     \
  "tensor<2x2xf32>\n}\n"

static void reads_back(const char* text, const char* expected) {
  pestle_context_t* c = make_context(NULL, NULL);
  pestle_module_t* module = parse(c, text);
  char* printed;
  size_t size;
  assert_ok(pestle_module_print(module, 0, &printed, &size));
  if (!strstr(printed, expected)) print_error("%s\n", printed);
  assert_non_null(strstr(printed, expected));
  pestle_module_t *again = parse(c, printed), *copy, *loaded;
  uint64_t before[2], after[2];
  assert_ok(pestle_module_signature(module, before));
  assert_ok(pestle_module_signature(again, after));
  assert_memory_equal(before, after, sizeof(before));
  assert_ok(pestle_module_clone(module, &copy));
  assert_ok(pestle_module_verify(copy));
  assert_ok(pestle_module_signature(copy, after));
  assert_memory_equal(before, after, sizeof(before));
  void* bytes;
  size_t byte_count;
  assert_ok(pestle_module_serialize(module, &bytes, &byte_count));
  assert_ok(pestle_module_deserialize(c, bytes, byte_count, &loaded));
  assert_ok(pestle_module_signature(loaded, after));
  assert_memory_equal(before, after, sizeof(before));
  pestle_context_free(c, bytes, byte_count);
  pestle_context_free(c, printed, size + 1);
  pestle_module_release(module);
  pestle_module_release(again);
  pestle_module_release(copy);
  pestle_module_release(loaded);
  pestle_context_release(c);
}

static void text(void** state) {
  (void)state;
  reads_back(chain,
             "stablehlo.custom_call @sums(%d) {backend_config = {axis = "
             "1 : i64, a = \"} {\"}} : (tensor<2x3xf32>) -> "
             "(tensor<2xf32>, tensor<i32>)");
  reads_back(ONE(" {api_version = 2 : i32, has_side_effect = true, "
                 "backend_config = \"a\\22b\", operand_layouts = [dense<[1, "
                 "0]> : tensor<2xindex>], result_layouts = [dense<[1, 0]> : "
                 "tensor<2xindex>], output_operand_aliases = [], "
                 "called_computations = []}"),
             "@scale(%x) {has_side_effect = true, backend_config = "
             "\"a\\\"b\", api_version = 2 : i64}");
  // As JAX writes it.
  reads_back(ONE(" {backend_config = \"\", mhlo.backend_config = {uplo = 76 : "
                 "ui8}, mhlo.frontend_attributes = {a = \"0\"}}"),
             "{backend_config = {uplo = 76 : ui8}}");
  reads_back(ONE(" {output_operand_aliases = [#stablehlo.output_operand_alias<"
                 "output_tuple_indices = [], operand_index = 0, "
                 "operand_tuple_indices = []>]}"),
             "{output_operand_aliases = [#stablehlo.output_operand_alias<"
             "output_tuple_indices = [], operand_index = 0, "
             "operand_tuple_indices = []>]}");
  reads_back(MAP("@g"), "@map(%x) {pestle.called_computations = \"module @g");
  reads_back(ONE(""), "@scale(%x) : (tensor");
}

static void refuses(const char* module_text, pestle_status_code_t code,
                    const char* why) {
  pestle_context_t* c = make_context(NULL, NULL);
  pestle_module_t* module = NULL;
  pestle_status_t status =
      pestle_module_parse(c, module_text, strlen(module_text), NULL, &module);
  if (!strstr(pestle_status_message(status), why)) {
    print_error("%s\n", pestle_status_message(status));
  }
  assert_int_equal(pestle_status_code(status), code);
  assert_non_null(strstr(pestle_status_message(status), why));
  pestle_status_release(status);
  pestle_context_release(c);
}

static void refusals(void** state) {
  (void)state;
  refuses(ONE(" {operand_layouts = [dense<[0, 0]> : tensor<2xindex>]}"),
          PESTLE_STATUS_MALFORMED, "'operand_layouts': layout 0 must name");
  refuses(ONE(" {result_layouts = [dense<0> : tensor<1xindex>]}"),
          PESTLE_STATUS_MALFORMED, "'result_layouts': layout 0 must name");
  refuses(ONE(" {result_layouts = []}"), PESTLE_STATUS_MALFORMED,
          "a layout each for 1 tensors");
  refuses(ONE(" {called_computations = [@main]}"), PESTLE_STATUS_UNSUPPORTED,
          "whose own custom calls are given functions");
  refuses(ONE(" {backend_config = \"a\", mhlo.backend_config = {b}}"),
          PESTLE_STATUS_MALFORMED, "a string and a dictionary");
  refuses(ONE(" {sharding = 1 : i64}"), PESTLE_STATUS_UNSUPPORTED,
          "has no attribute 'sharding'");
  refuses(
      "func.func @main(%x: tensor<2xcomplex<f32>>) -> tensor<2xf32> {\n"
      "%0 = stablehlo.custom_call @scale(%x) : (tensor<2xcomplex<f32>>) -> "
      "tensor<2xf32>\nreturn %0 : tensor<2xf32>\n}",
      PESTLE_STATUS_MALFORMED, "complex numbers cannot be passed");
}

// --- Device memory ---

typedef struct place_t {
  int32_t type;
  bool stream;
} place_t;

// Notes where its tensors lie, which it cannot read.
static pestle_status_t look_where(void* user,
                                  const pestle_custom_call_t* call) {
  *(place_t*)user =
      (place_t){call->inputs[0].device.device_type, call->stream != NULL};
  assert_non_null(call->inputs[0].data);
  assert_non_null(call->outputs[0].data);
  return NULL;
}

static void device_memory_is_passed_on(void** state) {
  (void)state;
  static const char where[] =
      "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
      "%a = stablehlo.negate %x : tensor<2xf32>\n"
      "%y = stablehlo.custom_call @where(%a) : (tensor<2xf32>) -> "
      "tensor<2xf32>\n"
      "%z = stablehlo.negate %y : tensor<2xf32>\n"
      "return %z : tensor<2xf32>\n}";
  pestle_context_t* c = make_context(NULL, NULL);
  place_t place;
  pestle_custom_call_options_t options = {.struct_size = sizeof(options),
                                          .device_memory = true};
  assert_ok(pestle_context_register_custom_call(c, "where", look_where, &place,
                                                &options));
  for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); ++i) {
    pestle_device_t* device = find_device(c, devices[i]);
    if (!device) continue;
    place = (place_t){-1, false};
    assert_ok(run_on(c, device, where));
    assert_int_equal(place.type, pestle_device_dl(device).device_type);
    // Where the device's interface has a name for it.
    const pestle_device_api_t* api = pestle_device_backend(device)->device;
    bool named = pestle_device_dl(device).device_type != PESTLE_DEVICE_CPU &&
                 PESTLE_HAS(api, stream_native);
    assert_int_equal(place.stream, named);
  }
  pestle_context_release(c);
}

// --- Threads ---

enum { THREADS = 6, ROUNDS = 20 };

typedef struct job_t {
  pestle_context_t* context;
  pestle_executable_t* executable;
  int number;
  bool good;
} job_t;

// Runs a call while others add functions.
static void work(void* arg) {
  job_t* job = arg;
  int64_t dims[] = {2, 3}, two[] = {2};
  job->good = true;
  for (int round = 0; round < ROUNDS; ++round) {
    char name[32];
    snprintf(name, sizeof(name), "f%d.%d", job->number, round);
    pestle_status_t status = pestle_context_register_custom_call(
        job->context, name, note, NULL, NULL);
    // One of all threads gets this name.
    pestle_status_release(pestle_context_register_custom_call(
        job->context, "shared", note, NULL, NULL));
    float x[6] = {1, 2, 3, 4, 5, 6}, y[6], sum[2];
    int32_t rows;
    pestle_dl_device_t cpu = {PESTLE_DEVICE_CPU, 0};
    pestle_dl_dtype_t f32 = pestle_dtype_to_dlpack(PESTLE_F32);
    pestle_tensor_t in = {x, cpu, 2, f32, dims, NULL, 0};
    pestle_tensor_t out[] = {
        {y, cpu, 2, f32, dims, NULL, 0},
        {sum, cpu, 1, f32, two, NULL, 0},
        {&rows, cpu, 0, pestle_dtype_to_dlpack(PESTLE_I32), NULL, NULL, 0}};
    if (!status) {
      status =
          pestle_executable_run(job->executable, NULL, &in, 1, out, 3, NULL);
    }
    pestle_custom_call_info_t info = {.struct_size = sizeof(info)};
    if (!status) status = pestle_context_custom_call(job->context, name, &info);
    job->good = job->good && !status && y[5] == 20 && rows == 2;
    pestle_status_release(status);
  }
}

static void threads(void** state) {
  (void)state;
  pestle_context_t* c = make_context(NULL, NULL);
  pestle_module_t* module = parse(c, chain);
  pestle_plan_t* plan;
  pestle_executable_t* e;
  pestle_thread_t handles[THREADS];
  job_t jobs[THREADS];
  assert_ok(pestle_compile(c, module, NULL, NULL, &plan));
  assert_ok(pestle_executable_create(c, plan, NULL, &e));
  for (int i = 0; i < THREADS; ++i) {
    jobs[i] = (job_t){c, e, i, false};
    assert_ok(pestle_thread_start(work, &jobs[i], "custom", &handles[i]));
  }
  for (int i = 0; i < THREADS; ++i)
    pestle_thread_join(&handles[i]);
  for (int i = 0; i < THREADS; ++i)
    assert_true(jobs[i].good);
  pestle_executable_release(e);
  pestle_plan_release(plan);
  pestle_module_release(module);
  pestle_context_release(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(computes),
      cmocka_unit_test(is_evaluated),
      cmocka_unit_test(is_copied),
      cmocka_unit_test(layouts_are_kept),
      cmocka_unit_test(aliases_share_memory),
      cmocka_unit_test(aliases_are_checked),
      cmocka_unit_test(functions_are_given),
      cmocka_unit_test(layouts_are_checked),
      cmocka_unit_test(effects_stay_in_order),
      cmocka_unit_test(failures_are_told),
      cmocka_unit_test(names_are_checked),
      cmocka_unit_test(plans_find_their_functions),
      cmocka_unit_test(versions_are_in_the_key),
      cmocka_unit_test(text),
      cmocka_unit_test(refusals),
      cmocka_unit_test(device_memory_is_passed_on),
      cmocka_unit_test(threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

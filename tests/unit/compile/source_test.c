// SPDX-License-Identifier: Apache-2.0
// Kernels that a person wrote, as text and as Kernel IR, on the devices that are there.
#include <math.h>
#include <stdlib.h>

#include "compile/source_grid.h"
#include "pestle/custom_op.h"
#include "pestle/pestle.h"
#include "test.h"

enum { N = 1000 };

static float g_in[2][N], g_out[N];

static pestle_status_t infer(void* user, const pestle_custom_node_t* n,
                             pestle_type_t* out, size_t* inout_count) {
  (void)user;
  out[0] = n->operand_types[0];
  *inout_count = 1;
  return NULL;
}

static pestle_context_t* make_context(void) {
  pestle_context_options_t options = {
      .struct_size = sizeof(options),
      .threads = 2,
      .no_cache = true,
      .backend_path = getenv("PESTLE_BACKEND_PATH")};
  pestle_context_t* c;
  assert_ok(pestle_context_create(&options, &c));
  return c;
}

static pestle_device_t* find_device(pestle_context_t* c, const char* name) {
  pestle_device_t* device = NULL;
  pestle_status_release(pestle_context_device(c, name, &device));
  return device;
}

static const pestle_custom_attr_t gain_row = {sizeof(gain_row), "gain",
                                              PESTLE_CUSTOM_F64, NULL, false};
static const pestle_custom_attr_t* const rows[] = {&gain_row};
static const char* const inputs[] = {"x", "y"};
static const char* const outputs[] = {"z"};

static pestle_source_t source_of(const char* language, const char* body) {
  return (pestle_source_t){.struct_size = sizeof(pestle_source_t),
                           .language = language,
                           .body = body,
                           .inputs = inputs,
                           .input_count = 2,
                           .outputs = outputs,
                           .output_count = 1,
                           .grid = {"x.size"}};
}

// Registers "user.own" with |sources| as its evals.
static pestle_status_t register_own(pestle_context_t* c,
                                    const pestle_source_t* sources,
                                    size_t count) {
  enum { MOST = 4 };
  pestle_custom_eval_t evals[MOST];
  const pestle_custom_eval_t* list[MOST];
  for (size_t i = 0; i < count; ++i) {
    evals[i] = (pestle_custom_eval_t){.struct_size = sizeof(evals[i]),
                                      .target = "*",
                                      .kind = PESTLE_EVAL_SOURCE,
                                      .source = &sources[i]};
    list[i] = &evals[i];
  }
  pestle_custom_op_t op = {.struct_size = sizeof(op),
                           .name = "user.own",
                           .attrs = rows,
                           .attr_count = 1,
                           .infer = infer,
                           .evals = list,
                           .eval_count = count,
                           .prefer = PESTLE_CUSTOM_EVAL};
  return pestle_context_register_op(c, &op);
}

static pestle_status_t run_on(pestle_context_t* c, pestle_device_t* device) {
  pestle_type_t types[] = {{PESTLE_F32, 1, {N}}, {PESTLE_F32, 1, {N}}};
  pestle_module_t* module;
  pestle_function_t* f;
  pestle_value_t *operands[2], *z;
  assert_ok(pestle_module_create(c, "m", &module));
  assert_ok(pestle_module_add_function(module, "main", types, NULL, 2, &f));
  pestle_builder_t b = pestle_builder_make(f);
  assert_ok(pestle_op_negate(&b, pestle_function_argument(f, 0), &operands[0]));
  operands[1] = pestle_function_argument(f, 1);
  pestle_custom_attr_value_t gain = {
      .name = "gain", .kind = PESTLE_CUSTOM_F64, .as.f64 = 2.5};
  assert_ok(pestle_op_custom(&b, "user.own", operands, 2, &gain, 1, &z, 1));
  assert_ok(pestle_op_add(&b, z, operands[1], &z));
  assert_ok(pestle_op_return(&b, &z, 1, NULL));
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .verify = true};
  pestle_plan_t* plan;
  pestle_executable_t* e;
  pestle_status_t status = pestle_compile(c, module, device, &options, &plan);
  pestle_module_release(module);
  if (status) return status;
  status = pestle_executable_create(c, plan, device, &e);
  pestle_plan_release(plan);
  if (status) return status;
  static int64_t shape[] = {N};
  pestle_tensor_t views[3];
  for (int i = 0; i < 3; ++i) {
    views[i] = (pestle_tensor_t){.data = i < 2 ? g_in[i] : g_out,
                                 .device = {PESTLE_DEVICE_CPU, 0},
                                 .ndim = 1,
                                 .dtype = pestle_dtype_to_dlpack(PESTLE_F32),
                                 .shape = shape};
  }
  for (int i = 0; i < N; ++i) {
    g_in[0][i] = (float)(i % 17) / 8 - 1;
    g_in[1][i] = (float)(i % 5) / 4;
    g_out[i] = NAN;
  }
  status = pestle_executable_run(e, NULL, views, 2, views + 2, 1, NULL);
  pestle_executable_release(e);
  return status;
}

// exp(-x) gain + 2 y
static void check_values(void) {
  for (int i = 0; i < N; ++i) {
    double want = 2.5 * exp(-g_in[0][i]) + 2 * g_in[1][i];
    assert_true(fabs((double)g_out[i] - want) <= 4e-6 * want);
  }
}

// As pestle dump --stage kernels prints it: z = exp(x) 2.5 + y.
#define KIR(count, last)                                   \
  "kernel @own(\n"                                         \
  "    @x : global f32[1000] readonly align 4,\n"          \
  "    @y : global f32[" count                             \
  "] readonly align 4,\n"                                  \
  "    @z : global f32[1000]) {\n"                         \
  "  %0 = const 1 : index\n"                               \
  "  %1 = const 0 : index\n"                               \
  "  %2 = for %1 to %0 step 1 group.x : index name g {\n"  \
  "    %3 = const " last                                   \
  " : index\n"                                             \
  "    %4 = for %1 to %3 step 1 serial : index name i {\n" \
  "      %6 = load @x[%4] : f32 align 4\n"                 \
  "      %7 = exponential %6 : f32\n"                      \
  "      %8 = const 2.5 : f32\n"                           \
  "      %9 = multiply %7, %8 : f32\n"                     \
  "      %10 = load @y[%4] : f32 align 4\n"                \
  "      %11 = add %9, %10 : f32\n"                        \
  "      store @z[%4], %11 align 4\n"                      \
  "    }\n"                                                \
  "  }\n"                                                  \
  "}\n"

static void kernel_ir_runs_on_cpus(void** state) {
  (void)state;
  static const struct {
    const char *text, *reason;
  } cases[] = {{KIR("1000", "1000"), NULL},
               {KIR("2000", "1000"), "buffer 'y' of a kernel"},
               {KIR("1000", "1001"), "a kernel of op 'user.own'"},
               {"kernel @own(", "in a kernel of op 'user.own'"}};
  for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); ++k) {
    pestle_context_t* c = make_context();
    pestle_source_t source = source_of("kir", cases[k].text);
    source.grid[0] = NULL;
    assert_ok(register_own(c, &source, 1));
    static const char* const devices[] = {"ref", "llvm"};
    for (int d = 0; d < 2; ++d) {
      pestle_device_t* device = find_device(c, devices[d]);
      if (!device) continue;
      pestle_status_t status = run_on(c, device);
      if (!cases[k].reason) {
        assert_ok(status);
        check_values();
      } else {
        char text[1024];
        pestle_status_format(status, text, sizeof(text));
        assert_non_null(status);
        assert_int_not_equal(pestle_status_code(status),
                             PESTLE_STATUS_INTERNAL);
        assert_non_null(strstr(text, cases[k].reason));
        pestle_status_release(status);
      }
    }
    pestle_context_release(c);
  }
}

static void runs_on_each_device(void** state) {
  (void)state;
  static const struct {
    const char *device, *language, *body;
  } cases[] = {
      {"opencl", "opencl", "z[i] = exp(x[i]) * gain + y[i];"},
      {"vulkan", "glsl", "z[i] = exp(x[i]) * gain + y[i];"},
  };
  pestle_context_t* c = make_context();
  pestle_source_t sources[2];
  for (int k = 0; k < 2; ++k)
    sources[k] = source_of(cases[k].language, cases[k].body);
  assert_ok(register_own(c, sources, 2));
  for (int k = 0; k < 2; ++k) {
    pestle_device_t* device = find_device(c, cases[k].device);
    if (!device) continue;
    assert_ok(run_on(c, device));
    check_values();
  }
  // No text is for it, and there is no body.
  assert_error(run_on(c, find_device(c, "ref")), UNSUPPORTED,
               "'*' in opencl, '*' in glsl");
  pestle_context_release(c);
}

// What a kernel is told: extents, templates, groups, memory that they share, and
// results that begin as a number.
static void kernels_are_told(void** state) {
  (void)state;
  static const char body[] =
      "int j = (int)get_group_id(0);\n"
      "int l = (int)get_local_id(0);\n"
      "__local float* kept = (__local float*)shared;\n"
      "long at = (long)j * W + l;\n"
      "if (at < x_size) kept[l] = exp(x[at]) * gain;\n"
      "barrier(CLK_LOCAL_MEM_FENCE);\n"
      "if (at < x_shape[0] && x_ndim == 1 && y_strides[0] == 1)\n"
      "  z[at] += (T)(kept[l] + y[at]) + one(z[at]);\n";
  pestle_context_t* c = make_context();
  pestle_device_t* device = find_device(c, "opencl");
  pestle_source_template_t width = {.name = "W", .value = 40};
  pestle_source_t source = source_of("opencl", body);
  source.header = "inline float one(float v) { return v == 3.0f ? -3.0f : 9; }";
  source.templates = &width;
  source.template_count = 1;
  source.grid[0] = "ceil(x.size / W) * W";
  source.group[0] = "W";
  source.shared_bytes = 40 * sizeof(float);
  source.has_init = true;
  source.init_value = 3;
  assert_ok(register_own(c, &source, 1));
  if (device) {
    assert_ok(run_on(c, device));
    check_values();
  }
  pestle_context_release(c);
}

static void errors_have_lines(void** state) {
  (void)state;
  static const struct {
    const char *device, *language, *line;
  } cases[] = {{"opencl", "opencl", ":3:"}, {"vulkan", "glsl", ":3:"}};
  for (int k = 0; k < 2; ++k) {
    pestle_context_t* c = make_context();
    pestle_device_t* device = find_device(c, cases[k].device);
    pestle_source_t source =
        source_of(cases[k].language, "float a = x[i];\n\nz[i] = a + nothing;");
    assert_ok(register_own(c, &source, 1));
    if (device) {
      assert_error(run_on(c, device), INVALID_ARGUMENT, cases[k].line);
    }
    pestle_context_release(c);
  }
}

static void sources_are_whole(void** state) {
  (void)state;
  pestle_context_t* c = make_context();
  pestle_source_t s = source_of("opencl", "z[i] = 1;");
  s.grid[0] = NULL;
  assert_error(register_own(c, &s, 1), INVALID_ARGUMENT, "without a grid");
  s = source_of(NULL, "z[i] = 1;");
  assert_code(register_own(c, &s, 1), INVALID_ARGUMENT);
  static const char* const odd[] = {"x", "y y"};
  s = source_of("opencl", "z[i] = 1;");
  s.inputs = odd;
  assert_error(register_own(c, &s, 1), INVALID_ARGUMENT, "no words");
  s = source_of("opencl", "z[i] = 1;");
  s.input_count = 1;
  assert_ok(register_own(c, &s, 1));
  pestle_device_t* device = find_device(c, "opencl");
  if (device) {
    assert_error(run_on(c, device), INVALID_ARGUMENT,
                 "names 1 inputs and 1 outputs, the op has 2 and 1");
  }
  pestle_context_release(c);
}

// --- Numbers of threads ---

static void threads_are_counted(void** state) {
  (void)state;
  static const struct {
    const char* text;
    int64_t value;  // -1: an error
    const char* reason;
  } cases[] = {{"256", 256, NULL},
               {" x.size", 6, NULL},
               {"ceil(x.size / 4)", 2, NULL},
               {"x.shape[1] * N + x.ndim", 3 * 7 + 2, NULL},
               {"max(x.size, N) - min(x.size,N)", 1, NULL},
               {"2 * (3 + 4)", 14, NULL},
               {"x.size / 4", -1, "is 1.5"},
               {"x.size / 0", -1, "is inf"},
               {"0 - 1", -1, "is -1"},
               {"", -1, "character 1"},
               {"y.size", -1, "an operand or result"},
               {"x.shape[2]", -1, "an axis"},
               {"x", -1, ".size, .ndim or .shape"},
               {"3 4", -1, "the end of the text"},
               {"ceil(3", -1, ") was expected"},
               {"99999999999999999999999999", -1, "an integer from"}};
  const pestle_type_t x = {PESTLE_F32, 2, {2, 3}};
  const pestle_grid_name_t names[] = {{"x", &x, 0}, {"N", NULL, 7}};
  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); ++i) {
    int64_t value;
    pestle_status_t status =
        pestle_grid_evaluate(cases[i].text, names, 2, &value);
    if (cases[i].value < 0) {
      assert_error(status, INVALID_ARGUMENT, cases[i].reason);
    } else {
      assert_ok(status);
      assert_int_equal(value, cases[i].value);
    }
  }
  char deep[400];
  memset(deep, '(', sizeof(deep) - 1);
  deep[sizeof(deep) - 1] = 0;
  int64_t value;
  assert_error(pestle_grid_evaluate(deep, names, 2, &value), INVALID_ARGUMENT,
               "fewer brackets");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(runs_on_each_device),
      cmocka_unit_test(kernel_ir_runs_on_cpus),
      cmocka_unit_test(kernels_are_told),
      cmocka_unit_test(errors_have_lines),
      cmocka_unit_test(sources_are_whole),
      cmocka_unit_test(threads_are_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// Ops of the caller's own: registered, built, placed (inlined, or computed by an
// eval), run on every device that is there, and kept apart in the plan cache.
#include "pestle/custom_op.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "ir/custom_op.h"
#include "ir/graph.h"
#include "ir/ref/ref.h"
#include "pestle/pestle.h"
#include "test.h"

enum { N = 6 };

static const char* const devices[] = {"llvm", "ref", "opencl", "vulkan"};

// --- The op: alpha x + beta y ---

// What the rules of one registration do, and what its eval saw.
typedef struct own_t {
  double factor;  // of x, besides alpha
  int calls, in_place, released;
  bool capture, refuse, shrink;
  bool no_takes;
  pestle_value_t* outside;
} own_t;

static pestle_status_t infer(void* user, const pestle_custom_node_t* n,
                             pestle_type_t* out, size_t* inout_count) {
  const own_t* own = user;
  assert_true(n->struct_size >= sizeof(*n));
  assert_true(*inout_count >= 1);
  assert_null(n->operands);
  if (own->refuse || n->operand_count != 2 ||
      n->operand_types[0].dtype != PESTLE_F32) {
    return pestle_status_make(PESTLE_STATUS_UNSUPPORTED, NULL, 0,
                              "axpby takes two tensors of f32");
  }
  out[0] = n->operand_types[0];
  *inout_count = 1;
  return NULL;
}

static pestle_status_t scaled(pestle_builder_t* b, pestle_value_t* x, double by,
                              pestle_value_t** out) {
  float value = (float)by;
  pestle_constant_attrs_t attrs = {.struct_size = sizeof(attrs),
                                   .value = {.type = pestle_value_type(x),
                                             .data = &value,
                                             .size = sizeof(value),
                                             .splat = true}};
  pestle_value_t* k;
  PESTLE_TRY(pestle_op_constant(b, &attrs, &k));
  return pestle_op_multiply(b, x, k, out);
}

static pestle_status_t body(void* user, pestle_builder_t* b,
                            const pestle_custom_node_t* n,
                            pestle_value_t** out) {
  own_t* own = user;
  pestle_value_t *x, *y;
  pestle_value_t* first = own->capture ? own->outside : n->operands[0];
  assert_int_equal(n->operand_count, 2);
  PESTLE_TRY(
      scaled(b, first, own->factor * pestle_custom_f64(n->attrs, "alpha"), &x));
  PESTLE_TRY(
      scaled(b, n->operands[1], pestle_custom_f64(n->attrs, "beta"), &y));
  return own->shrink ? pestle_op_lt(b, x, y, out) : pestle_op_add(b, x, y, out);
}

static pestle_status_t eval(void* user, const pestle_custom_call_t* call) {
  own_t* own = user;
  double alpha = own->factor * pestle_custom_f64(call->attrs, "alpha");
  double beta = pestle_custom_f64(call->attrs, "beta");
  assert_string_equal(call->name, "user.axpby");
  assert_int_equal(call->input_count, 2);
  assert_int_equal(call->output_count, 1);
  assert_int_equal(call->inputs[0].device.device_type, PESTLE_DEVICE_CPU);
  const float *x = call->inputs[0].data, *y = call->inputs[1].data;
  float* z = call->outputs[0].data;
  ++own->calls;
  own->in_place += z == x || z == y;
  for (int i = 0; i < N; ++i)
    z[i] = (float)alpha * x[i] + (float)beta * y[i];
  return NULL;
}

static bool takes(void* user, const pestle_custom_node_t* n,
                  const pestle_target_caps_t* caps) {
  assert_int_equal(n->result_count, 1);
  assert_int_equal(n->result_types[0].dtype, PESTLE_F32);
  assert_non_null(caps->name);
  return !((own_t*)user)->no_takes;
}

static void count_release(void* user) {
  ++((own_t*)user)->released;
}

static const pestle_custom_attr_value_t two = {.kind = PESTLE_CUSTOM_F64,
                                               .as.f64 = 2};
static const pestle_custom_attr_t alpha_row = {sizeof(alpha_row), "alpha",
                                               PESTLE_CUSTOM_F64, NULL, false};
static const pestle_custom_attr_t beta_row = {sizeof(beta_row), "beta",
                                              PESTLE_CUSTOM_F64, &two, false};
static const pestle_custom_attr_t* const rows[] = {&alpha_row, &beta_row};

typedef struct op_t {
  pestle_custom_op_t op;
  pestle_custom_eval_t eval;
  const pestle_custom_eval_t* evals[1];
} op_t;

static void make_op(op_t* o, own_t* own, int32_t prefer) {
  memset(o, 0, sizeof(*o));
  o->eval = (pestle_custom_eval_t){.struct_size = sizeof(o->eval),
                                   .target = "*",
                                   .kind = PESTLE_EVAL_HOST_FUNCTION,
                                   .id = "plain-1",
                                   .takes = takes,
                                   .function = eval};
  o->evals[0] = &o->eval;
  o->op = (pestle_custom_op_t){.struct_size = sizeof(o->op),
                               .name = "user.axpby",
                               .version = 1,
                               .user = own,
                               .attrs = rows,
                               .attr_count = 2,
                               .infer = infer,
                               .body = body,
                               .evals = o->evals,
                               .eval_count = 1,
                               .prefer = prefer,
                               .release = count_release};
}

static pestle_context_t* make_context(const char* cache) {
  pestle_context_options_t options = {
      .struct_size = sizeof(options),
      .threads = 2,
      .no_cache = !cache,
      .cache_dir = cache,
      .backend_path = getenv("PESTLE_BACKEND_PATH")};
  pestle_context_t* c;
  assert_ok(pestle_context_create(&options, &c));
  return c;
}

// --- Modules ---

typedef struct built_t {
  pestle_module_t* module;
  pestle_builder_t b;
  pestle_value_t *x, *y;
} built_t;

static void begin(pestle_context_t* c, built_t* t) {
  pestle_type_t types[] = {{PESTLE_F32, 2, {2, 3}}, {PESTLE_F32, 2, {2, 3}}};
  pestle_function_t* f;
  assert_ok(pestle_module_create(c, "m", &t->module));
  assert_ok(pestle_module_add_function(t->module, "main", types, NULL, 2, &f));
  t->b = pestle_builder_make(f);
  t->x = pestle_function_argument(f, 0);
  t->y = pestle_function_argument(f, 1);
}

static pestle_status_t axpby(built_t* t, pestle_value_t* x, pestle_value_t* y,
                             double alpha, double beta, pestle_value_t** out) {
  // In another order than the table's.
  pestle_custom_attr_value_t attrs[] = {
      {.name = "beta", .kind = PESTLE_CUSTOM_F64, .as.f64 = beta},
      {.name = "alpha", .kind = PESTLE_CUSTOM_F64, .as.f64 = alpha}};
  pestle_value_t* operands[] = {x, y};
  return pestle_op_custom(&t->b, "user.axpby", operands, 2, attrs, 2, out, 1);
}

// tanh of 4 x + 2 y, times x.
static pestle_module_t* make_module(pestle_context_t* c, double alpha) {
  built_t t;
  pestle_value_t* z;
  begin(c, &t);
  assert_ok(axpby(&t, t.x, t.y, alpha, 2, &z));
  assert_ok(pestle_op_tanh(&t.b, z, &z));
  assert_ok(pestle_op_multiply(&t.b, z, t.x, &z));
  assert_ok(pestle_op_return(&t.b, &z, 1, NULL));
  assert_ok(pestle_module_verify(t.module));
  return t.module;
}

static float g_in[2][N], g_out[N];

static pestle_status_t run_plan(pestle_context_t* c, pestle_plan_t* plan,
                                pestle_device_t* device) {
  pestle_executable_t* e;
  static int64_t shape[] = {2, 3};
  PESTLE_TRY(pestle_executable_create(c, plan, device, &e));
  pestle_tensor_t views[3];
  for (int i = 0; i < 3; ++i) {
    views[i] = (pestle_tensor_t){.data = i < 2 ? g_in[i] : g_out,
                                 .device = {PESTLE_DEVICE_CPU, 0},
                                 .ndim = 2,
                                 .dtype = pestle_dtype_to_dlpack(PESTLE_F32),
                                 .shape = shape};
  }
  for (int i = 0; i < N; ++i) {
    g_in[0][i] = (float)(i - 2) / 4;
    g_in[1][i] = (float)(2 * i - 5) / 8;
    g_out[i] = NAN;
  }
  size_t inputs = pestle_executable_input_count(e);
  pestle_status_t status =
      pestle_executable_run(e, NULL, views, inputs, views + 2, 1, NULL);
  pestle_executable_release(e);
  return status;
}

static pestle_status_t run_module(pestle_context_t* c, pestle_device_t* device,
                                  pestle_module_t* module,
                                  const pestle_compile_options_t* options) {
  pestle_plan_t* plan;
  PESTLE_TRY(pestle_compile(c, module, device, options, &plan));
  pestle_status_t status = run_plan(c, plan, device);
  pestle_plan_release(plan);
  return status;
}

static pestle_device_t* find_device(pestle_context_t* c, const char* name) {
  pestle_device_t* device = NULL;
  pestle_status_release(pestle_context_device(c, name, &device));
  return device;
}

static void check_values(double alpha) {
  for (int i = 0; i < N; ++i) {
    double want = tanh(alpha * g_in[0][i] + 2 * g_in[1][i]) * g_in[0][i];
    assert_float_equal(g_out[i], want, 2e-6);
  }
}

// --- Registering ---

static void wants_whole_ops(void** state) {
  (void)state;
  static const char* const names[] = {
      "",     "axpby", "a.",       ".a",          "a..b",       "a.b c",
      "1a.b", "a.1b",  "pestle.x", "stablehlo.x", "chlo.top_k", "a.b\n"};
  pestle_context_t* c = make_context(NULL);
  own_t own = {.factor = 1};
  op_t o;
  for (size_t i = 0; i < sizeof(names) / sizeof(*names); ++i) {
    make_op(&o, &own, 0);
    o.op.name = names[i];
    assert_error(pestle_context_register_op(c, &o.op), INVALID_ARGUMENT,
                 names[i][0] == 's' || names[i][0] == 'p' ? "dialect" : "");
  }
  make_op(&o, &own, 0);
  o.op.name = NULL;
  assert_code(pestle_context_register_op(c, &o.op), INVALID_ARGUMENT);
  assert_code(pestle_context_register_op(c, NULL), INVALID_ARGUMENT);
  assert_code(pestle_context_register_op(NULL, &o.op), INVALID_ARGUMENT);
  make_op(&o, &own, 0);
  o.op.struct_size = 0;
  assert_code(pestle_context_register_op(c, &o.op), INVALID_ARGUMENT);
  make_op(&o, &own, 0);
  o.eval.id = NULL;
  assert_error(pestle_context_register_op(c, &o.op), INVALID_ARGUMENT,
               "without an id");
  make_op(&o, &own, 0);
  o.eval.function = NULL;
  assert_error(pestle_context_register_op(c, &o.op), INVALID_ARGUMENT,
               "'user.axpby'");
  make_op(&o, &own, 0);
  o.eval.kind = 9;
  assert_code(pestle_context_register_op(c, &o.op), INVALID_ARGUMENT);
  make_op(&o, &own, 3);
  assert_code(pestle_context_register_op(c, &o.op), INVALID_ARGUMENT);
  make_op(&o, &own, 0);
  o.op.body = NULL;
  o.op.eval_count = 0;
  assert_error(pestle_context_register_op(c, &o.op), INVALID_ARGUMENT,
               "neither a body nor an eval");
  make_op(&o, &own, 0);
  const pestle_custom_attr_t* twice[] = {&alpha_row, &alpha_row};
  o.op.attrs = twice;
  assert_error(pestle_context_register_op(c, &o.op), INVALID_ARGUMENT,
               "two attributes of one name");
  const pestle_custom_eval_t* same[] = {&o.eval, &o.eval};
  make_op(&o, &own, 0);
  o.op.evals = same;
  o.op.eval_count = 2;
  assert_error(pestle_context_register_op(c, &o.op), INVALID_ARGUMENT,
               "of one id");
  assert_null(pestle_context_find_op(c, "user.axpby"));
  assert_null(pestle_context_op_name(c, 0));
  // A function that no plan ever calls needs no id.
  make_op(&o, &own, PESTLE_CUSTOM_INLINE);
  o.eval.id = NULL;
  assert_ok(pestle_context_register_op(c, &o.op));
  assert_string_equal(pestle_context_op_name(c, 0), "user.axpby");
  assert_null(pestle_context_op_name(c, 1));
  pestle_context_release(c);
  assert_int_equal(own.released, 1);
}

static void keeps_what_was_used(void** state) {
  (void)state;
  pestle_context_t* c = make_context(NULL);
  own_t own = {.factor = 1}, other = {.factor = 2};
  op_t o, p;
  make_op(&o, &own, 0);
  assert_ok(pestle_context_register_op(c, &o.op));
  assert_ok(pestle_context_register_op(c, &o.op));  // the same
  make_op(&p, &other, 0);
  assert_ok(pestle_context_register_op(c, &p.op));  // nobody has used it yet
  const pestle_custom_op_t* found = pestle_context_find_op(c, "user.axpby");
  assert_ptr_equal(found->user, &other);
  assert_ptr_not_equal(found->name, p.op.name);
  assert_ok(pestle_context_register_op(c, &p.op));
  assert_error(pestle_context_register_op(c, &o.op), INVALID_ARGUMENT,
               "which was used already");
  assert_string_equal(pestle_context_op_name(c, 0), "user.axpby");
  assert_null(pestle_context_op_name(c, 1));
  pestle_context_release(c);
  assert_int_equal(own.released, 1);
  assert_int_equal(other.released, 1);
}

// --- Building ---

static void builds_with_its_body(void** state) {
  (void)state;
  pestle_context_t* c = make_context(NULL);
  own_t own = {.factor = 1};
  op_t o;
  make_op(&o, &own, 0);
  assert_ok(pestle_context_register_op(c, &o.op));
  pestle_module_t* module = make_module(c, 4);
  char* text;
  size_t size;
  assert_ok(pestle_module_print(module, 0, &text, &size));
  assert_non_null(strstr(text,
                         "stablehlo.composite \"user.axpby\" %arg0, %arg1 "
                         "{composite_attributes = {alpha = 4.0 : f64, beta = "
                         "2.0 : f64}, decomposition = @user.axpby.impl, "
                         "version = 1 : i32}"));
  // The text is what it was made from.
  pestle_module_t* again;
  uint64_t one[2], other[2];
  assert_ok(pestle_module_parse(c, text, size, NULL, &again));
  assert_ok(pestle_module_signature(module, one));
  assert_ok(pestle_module_signature(again, other));
  assert_memory_equal(one, other, sizeof(one));
  pestle_module_release(again);
  pestle_context_free(c, text, size + 1);
  pestle_module_release(module);
  pestle_context_release(c);
}

static void says_what_is_wrong(void** state) {
  (void)state;
  pestle_context_t* c = make_context(NULL);
  own_t own = {.factor = 1};
  op_t o;
  built_t t;
  make_op(&o, &own, 0);
  assert_ok(pestle_context_register_op(c, &o.op));
  begin(c, &t);
  pestle_value_t *operands[] = {t.x, t.y}, *z = t.x;
  pestle_custom_attr_value_t a[] = {
      {.name = "alpha", .kind = PESTLE_CUSTOM_I64, .as.i64 = 4},
      {.name = "gamma", .kind = PESTLE_CUSTOM_F64, .as.f64 = 1}};
  assert_error(
      pestle_op_custom(&t.b, "user.other", operands, 2, NULL, 0, &z, 1),
      NOT_FOUND, "'user.other'");
  assert_null(z);
  assert_error(
      pestle_op_custom(&t.b, "user.axpby", operands, 2, NULL, 0, &z, 1),
      INVALID_ARGUMENT, "needs attribute 'alpha', of kind F64");
  assert_error(pestle_op_custom(&t.b, "user.axpby", operands, 2, a, 2, &z, 1),
               INVALID_ARGUMENT, "no attribute 'gamma'");
  a[1].name = "alpha";
  assert_error(pestle_op_custom(&t.b, "user.axpby", operands, 2, a, 2, &z, 1),
               INVALID_ARGUMENT, "given twice");
  a[0].kind = PESTLE_CUSTOM_STR;
  a[0].as.str = "four";
  assert_error(pestle_op_custom(&t.b, "user.axpby", operands, 2, a, 1, &z, 1),
               INVALID_ARGUMENT, "is STR, not F64");
  a[0].kind = PESTLE_CUSTOM_I64;
  a[0].as.i64 = 4;
  assert_error(pestle_op_custom(&t.b, "user.axpby", operands, 1, a, 1, &z, 1),
               UNSUPPORTED, "axpby takes two tensors of f32");
  assert_error(pestle_op_custom(&t.b, "user.axpby", operands, 2, a, 1, NULL, 0),
               INVALID_ARGUMENT, "there is room for 0");
  own.shrink = true;
  assert_error(pestle_op_custom(&t.b, "user.axpby", operands, 2, a, 1, &z, 1),
               INVALID_ARGUMENT, "its type rule says tensor<2x3xf32>");
  own.shrink = false;
  own.capture = true;  // of what is no operand
  own.outside = t.x;
  assert_error(pestle_op_custom(&t.b, "user.axpby", operands, 2, a, 1, &z, 1),
               INVALID_ARGUMENT, "'user.axpby'");
  own.capture = false;
  // Nothing of it is left; an integer is a number, beta has a default.
  assert_ok(pestle_op_custom(&t.b, "user.axpby", operands, 2, a, 1, &z, 1));
  assert_ok(pestle_op_return(&t.b, &z, 1, NULL));
  assert_ok(pestle_module_verify(t.module));
  size_t count = 0;
  const pestle_node_t* n = NULL;
  while ((n = pestle_region_next(pestle_module_entry(t.module)->body, n)))
    ++count;
  assert_int_equal(count, 1 + 6 + 1);  // the op, its body, return
  pestle_module_release(t.module);
  pestle_context_release(c);
}

// --- Placing ---

static void is_equal_inlined_and_opaque(void** state) {
  (void)state;
  static const struct {
    int32_t prefer;
    bool strict, body, calls;
  } cases[] = {{PESTLE_CUSTOM_AUTO, false, true, false},
               {PESTLE_CUSTOM_INLINE, false, true, false},
               {PESTLE_CUSTOM_EVAL, false, true, true},
               {PESTLE_CUSTOM_EVAL, true, true, false},
               {PESTLE_CUSTOM_AUTO, false, false, true},
               {PESTLE_CUSTOM_AUTO, true, false, true}};
  size_t ran = 0;
  for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); ++k) {
    pestle_context_t* c = make_context(NULL);
    own_t own = {.factor = 1};
    op_t o;
    make_op(&o, &own, cases[k].prefer);
    if (!cases[k].body) o.op.body = NULL;
    assert_ok(pestle_context_register_op(c, &o.op));
    pestle_compile_options_t options = {
        .struct_size = sizeof(options),
        .numerics =
            cases[k].strict ? PESTLE_NUMERICS_STRICT : PESTLE_NUMERICS_DEFAULT,
        .verify = true,
        .round_trip = true};
    pestle_module_t* module = make_module(c, 4);
    for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); ++i) {
      pestle_device_t* device = find_device(c, devices[i]);
      if (!device) continue;
      own.calls = 0;
      assert_ok(run_module(c, device, module, &options));
      check_values(4);
      assert_int_equal(own.calls, cases[k].calls);
      ++ran;
    }
    pestle_module_release(module);
    pestle_context_release(c);
  }
  assert_true(ran >= sizeof(cases) / sizeof(*cases));
}

static void says_for_what_evals_are(void** state) {
  (void)state;
  pestle_context_t* c = make_context(NULL);
  own_t own = {.factor = 1, .no_takes = true};
  op_t o;
  make_op(&o, &own, PESTLE_CUSTOM_EVAL);
  pestle_device_t* ref = find_device(c, "ref");
  assert_ok(pestle_context_register_op(c, &o.op));
  // Nothing takes it: the body.
  pestle_module_t* module = make_module(c, 4);
  assert_ok(run_module(c, ref, module, NULL));
  check_values(4);
  assert_int_equal(own.calls, 0);
  pestle_module_release(module);
  pestle_context_release(c);
  // Without one there is no way; a function for other devices serves by copies.
  for (int i = 0; i < 2; ++i) {
    c = make_context(NULL);
    make_op(&o, &own, PESTLE_CUSTOM_EVAL);
    o.op.body = NULL;
    o.eval.target = "meta*";
    own.no_takes = !i;
    assert_ok(pestle_context_register_op(c, &o.op));
    module = make_module(c, 4);
    pestle_status_t status = run_module(c, find_device(c, "ref"), module, NULL);
    if (i) {
      assert_ok(status);
      check_values(4);
      assert_int_equal(own.calls, 1);
    } else {
      assert_error(status, UNSUPPORTED,
                   "none of its evals takes it on 'ref': they are for 'meta*'");
    }
    pestle_module_release(module);
    pestle_context_release(c);
  }
}

// Another's op of that name is what its body says, not ours.
static void is_not_what_another_means(void** state) {
  (void)state;
  static const char form[] =
      "func.func @main(%%x: tensor<2x3xf32>, %%y: tensor<2x3xf32>) -> "
      "tensor<2x3xf32> {\n"
      "%%0 = stablehlo.composite \"user.axpby\" %%x, %%y "
      "{composite_attributes = {%s}, decomposition = @f, version = %d : i32} "
      ": (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>\n"
      "return %%0 : tensor<2x3xf32>\n}\n"
      "func.func private @f(%%x: tensor<2x3xf32>, %%y: tensor<2x3xf32>) -> "
      "tensor<2x3xf32> {\n"
      "return %%y : tensor<2x3xf32>\n}\n";
  // As JAX prints a Python float; a version, attributes that are not ours.
  static const struct {
    const char* attrs;
    int version;
    bool ours;
  } cases[] = {{"alpha = 4.000000e+00 : f32", 1, true},
               {"alpha = 4 : i64, beta = 0x4000000000000000 : f64", 1, true},
               {"alpha = 4.0 : f64", 2, false},
               {"", 1, false},
               {"alpha = \"four\"", 1, false},
               {"alpha = 4.0 : f64, more = #stablehlo<x y>", 1, false}};
  for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); ++k) {
    pestle_context_t* c = make_context(NULL);
    own_t own = {.factor = 1};
    op_t o;
    char text[1024];
    make_op(&o, &own, PESTLE_CUSTOM_EVAL);
    assert_ok(pestle_context_register_op(c, &o.op));
    (void)snprintf(text, sizeof(text), form, cases[k].attrs, cases[k].version);
    pestle_module_t* module;
    assert_ok(pestle_module_parse(c, text, strlen(text), NULL, &module));
    assert_ok(run_module(c, find_device(c, "ref"), module, NULL));
    for (int i = 0; i < N; ++i) {
      float want = cases[k].ours ? 4 * g_in[0][i] + 2 * g_in[1][i] : g_in[1][i];
      assert_float_equal(g_out[i], want, 1e-6);
    }
    assert_int_equal(own.calls, cases[k].ours);
    pestle_module_release(module);
    pestle_context_release(c);
  }
}

// negate -> op -> tanh: what the op reads is needed no more.
static void works_in_place(void** state) {
  (void)state;
  for (int again = 0; again < 3; ++again) {
    pestle_context_t* c = make_context(NULL);
    own_t own = {.factor = 1};
    op_t o;
    built_t t;
    pestle_value_t *n, *z;
    make_op(&o, &own, PESTLE_CUSTOM_EVAL);
    o.eval.in_place = again != 2;
    assert_ok(pestle_context_register_op(c, &o.op));
    begin(c, &t);
    assert_ok(pestle_op_negate(&t.b, t.x, &n));
    assert_ok(axpby(&t, n, t.y, 4, 2, &z));
    assert_ok(pestle_op_tanh(&t.b, z, &z));
    if (again == 1) assert_ok(pestle_op_multiply(&t.b, z, n, &z));
    assert_ok(pestle_op_return(&t.b, &z, 1, NULL));
    assert_ok(run_module(c, find_device(c, "ref"), t.module, NULL));
    for (int i = 0; i < N; ++i) {
      double want = tanh(-4 * g_in[0][i] + 2 * g_in[1][i]);
      if (again == 1) want *= -g_in[0][i];
      assert_float_equal(g_out[i], want, 2e-6);
    }
    assert_int_equal(own.calls, 1);
    assert_int_equal(own.in_place, again == 0);
    pestle_module_release(t.module);
    pestle_context_release(c);
  }
}

// --- The plan cache ---

static uint64_t misses(pestle_context_t* c) {
  pestle_cache_stats_t stats = {.struct_size = sizeof(stats)};
  assert_ok(pestle_cache_stats(c, &stats));
  return stats.misses;
}

static void keep_reason(void* user, pestle_stage_t stage, const char* name,
                        const char* text, size_t size) {
  (void)size;
  if (stage == PESTLE_STAGE_EXPLAIN && !strcmp(name, "cache")) {
    (void)snprintf(user, 1024, "%s", text);
  }
}

static void misses_once_and_says_why(void** state) {
  (void)state;
  // What is edited against the first row, and what the reason names.
  static const struct {
    double factor, alpha;
    const char *id, *reason;
    int64_t version;
    int32_t prefer;
  } cases[] = {
      {1, 4, "a", NULL, 1, PESTLE_CUSTOM_EVAL},
      {1, 4, "a", "", 1, PESTLE_CUSTOM_EVAL},
      {3, 4, "a", "body of op 'user.axpby'", 1, PESTLE_CUSTOM_EVAL},
      {1, 5, "a", "attributes, body of op 'user.axpby'", 1, PESTLE_CUSTOM_EVAL},
      {1, 4, "b", "evals of op 'user.axpby'", 1, PESTLE_CUSTOM_EVAL},
      {1, 4, "a", "version of op 'user.axpby'", 2, PESTLE_CUSTOM_EVAL},
      {1, 4, "a", "evals of op 'user.axpby'", 1, PESTLE_CUSTOM_AUTO}};
  char folder[] = "/tmp/pestle-op-XXXXXX", command[64];
  assert_non_null(mkdtemp(folder));
  for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); ++k) {
    pestle_context_t* c = make_context(folder);
    own_t own = {.factor = cases[k].factor};
    op_t o;
    char reason[1024] = "";
    make_op(&o, &own, cases[k].prefer);
    o.eval.id = cases[k].id;
    o.op.version = cases[k].version;
    assert_ok(pestle_context_register_op(c, &o.op));
    pestle_module_t* module = make_module(c, cases[k].alpha);
    pestle_device_t* ref = find_device(c, "ref");
    pestle_compile_options_t options = {
        .struct_size = sizeof(options),
        .dump = keep_reason,
        .dump_user = reason,
        .dump_stages = 1u << PESTLE_STAGE_EXPLAIN};
    pestle_plan_t* plan;
    assert_ok(pestle_compile(c, module, ref, &options, &plan));
    pestle_plan_release(plan);
    if (k == 1) {
      assert_non_null(strstr(reason, "the plan is in the cache"));
    } else if (k) {
      assert_non_null(strstr(reason, cases[k].reason));
      assert_null(strstr(strstr(reason, "differs") + 1, "differs"));
    }
    uint64_t before = misses(c);
    assert_ok(run_module(c, ref, module, NULL));
    assert_ok(run_module(c, ref, module, NULL));
    assert_int_equal(misses(c) - before, k == 1 ? 0 : 1);
    pestle_module_release(module);
    pestle_context_release(c);
  }
  (void)snprintf(command, sizeof(command), "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

static void plans_name_what_they_call(void** state) {
  (void)state;
  char path[] = "/tmp/pestle-op-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  (void)close(file);
  own_t own = {.factor = 1};
  for (int k = 0; k < 4; ++k) {
    pestle_context_t* c = make_context(NULL);
    pestle_device_t* ref = find_device(c, "ref");
    pestle_plan_t* plan;
    op_t o;
    make_op(&o, &own, PESTLE_CUSTOM_EVAL);
    if (k == 3) o.op.version = 2;
    if (k != 2) assert_ok(pestle_context_register_op(c, &o.op));
    if (k == 0) {
      pestle_module_t* module = make_module(c, 4);
      assert_ok(pestle_compile(c, module, ref, NULL, &plan));
      assert_ok(pestle_plan_save(plan, path));
      pestle_module_release(module);
    } else {
      assert_ok(pestle_plan_load(c, path, &plan));
      own.calls = 0;
      pestle_status_t status = run_plan(c, plan, ref);
      if (k == 1) {
        assert_ok(status);
        check_values(4);
        assert_int_equal(own.calls, 1);
      } else if (k == 2) {
        assert_error(status, NOT_FOUND, "'user.axpby' done by eval 'plain-1'");
      } else {
        assert_error(status, INCOMPATIBLE, "of version 1, the context has 2");
      }
    }
    pestle_plan_release(plan);
    pestle_context_release(c);
  }
  (void)unlink(path);
}

// --- Memory ---

static pestle_status_t use_all(pestle_allocator_t allocator) {
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .allocator = allocator,
                                      .threads = 1,
                                      .no_cache = true,
                                      .manual_backends = true};
  own_t own = {.factor = 1};
  op_t o;
  built_t t;
  pestle_context_t* c;
  make_op(&o, &own, PESTLE_CUSTOM_EVAL);
  PESTLE_TRY(pestle_context_create(&options, &c));
  pestle_status_t status = pestle_context_register_op(c, &o.op);
  bool registered = !status;
  pestle_type_t types[] = {{PESTLE_F32, 1, {N}}, {PESTLE_F32, 1, {N}}};
  pestle_function_t* f;
  t.module = NULL;
  if (!status) status = pestle_module_create(c, "m", &t.module);
  if (!status) {
    status = pestle_module_add_function(t.module, "main", types, NULL, 2, &f);
  }
  if (!status) {
    pestle_value_t* z;
    t.b = pestle_builder_make(f);
    status = axpby(&t, pestle_function_argument(f, 0),
                   pestle_function_argument(f, 1), 4, 2, &z);
    if (!status) status = pestle_op_return(&t.b, &z, 1, NULL);
  }
  pestle_module_release(t.module);
  pestle_context_release(c);
  assert_int_equal(own.released, registered);
  return status;
}

static void survives_without_memory(void** state) {
  (void)state;
  for (size_t k = 1;; ++k) {
    pestle_test_allocator_t memory;
    pestle_test_allocator_init(&memory, k);
    pestle_status_t status = use_all(pestle_test_allocator(&memory));
    bool failed = pestle_test_allocator_failed(&memory);
    if (failed) {
      assert_code(status, OUT_OF_MEMORY);
    } else {
      assert_ok(status);
    }
    pestle_test_allocator_check(&memory);
    if (!failed) break;
  }
}

// --- Dynamic attributes and hidden results ---

static pestle_status_t grow(void* user, pestle_builder_t* b,
                            const pestle_custom_node_t* n,
                            pestle_value_t** out) {
  pestle_value_t* k;
  int64_t none = 0;
  (void)user;
  assert_int_equal(n->operand_count, 2);
  assert_int_equal(n->operand_types[1].rank, 0);
  assert_int_equal(n->operand_types[1].dtype, PESTLE_F32);
  assert_null(pestle_custom_attr_at(n->attrs, 1));
  assert_string_equal(pestle_custom_attr_at(n->attrs, 0)->name, "beta");
  pestle_broadcast_in_dim_attrs_t attrs = {sizeof(attrs), {&none, 0}};
  PESTLE_TRY(pestle_op_broadcast_in_dim(b, n->operands[1], &attrs,
                                        pestle_value_type(n->operands[0]), &k));
  PESTLE_TRY(pestle_op_multiply(b, n->operands[0], k, &out[0]));
  return scaled(b, n->operands[0], pestle_custom_f64(n->attrs, "beta"),
                &out[1]);
}

static const pestle_custom_attr_t dynamic_row = {sizeof(dynamic_row), "alpha",
                                                 PESTLE_CUSTOM_F64, NULL, true};
static const pestle_custom_attr_t* const dynamic_rows[] = {&dynamic_row,
                                                           &beta_row};
static const pestle_custom_attr_t list_row = {sizeof(list_row), "alpha",
                                              PESTLE_CUSTOM_STR, NULL, true};
static const pestle_custom_attr_t* const list_rows[] = {&list_row};

static void dynamic_attributes_are_operands(void** state) {
  (void)state;
  pestle_context_t* c = make_context(NULL);
  pestle_custom_op_t op = {.struct_size = sizeof(op),
                           .name = "user.grow",
                           .version = 1,
                           .attrs = list_rows,
                           .attr_count = 1,
                           .body = grow,
                           .hidden_results = 2};
  assert_code(pestle_context_register_op(c, &op), INVALID_ARGUMENT);
  op.attrs = dynamic_rows;
  op.attr_count = 2;
  assert_ok(pestle_context_register_op(c, &op));
  built_t t;
  pestle_value_t *z[2], *k;
  begin(c, &t);
  pestle_custom_attr_value_t number = {
      .name = "alpha", .kind = PESTLE_CUSTOM_I64, .as.i64 = 3};
  // Both results are hidden.
  assert_code(pestle_op_custom(&t.b, "user.grow", &t.x, 1, &number, 1, z, 2),
              INVALID_ARGUMENT);
  op.name = "user.grows";
  op.hidden_results = 1;
  assert_ok(pestle_context_register_op(c, &op));
  assert_code(pestle_op_custom(&t.b, "user.grows", &t.x, 1, NULL, 0, z, 2),
              INVALID_ARGUMENT);
  assert_ok(pestle_op_custom(&t.b, "user.grows", &t.x, 1, &number, 1, z, 2));
  assert_non_null(z[1]);
  pestle_type_t rank0 = {PESTLE_F32, 0, {0}}, wide = {PESTLE_F64, 0, {0}};
  float three = 3;
  double others = 3;
  pestle_constant_attrs_t value = {sizeof(value),
                                   {rank0, &three, sizeof(three), true}};
  assert_ok(pestle_op_constant(&t.b, &value, &k));
  pestle_custom_attr_value_t given = {
      .name = "alpha", .kind = PESTLE_CUSTOM_VALUE, .as.value = k};
  assert_ok(pestle_op_custom(&t.b, "user.grows", &t.x, 1, &given, 1, z, 2));
  pestle_constant_attrs_t other = {sizeof(other),
                                   {wide, &others, sizeof(others), true}};
  assert_ok(pestle_op_constant(&t.b, &other, &given.as.value));
  assert_code(pestle_op_custom(&t.b, "user.grows", &t.x, 1, &given, 1, z, 2),
              INVALID_ARGUMENT);
  given.as.value = t.x;
  assert_code(pestle_op_custom(&t.b, "user.grows", &t.x, 1, &given, 1, z, 2),
              INVALID_ARGUMENT);
  given = (pestle_custom_attr_value_t){
      .name = "beta", .kind = PESTLE_CUSTOM_VALUE, .as.value = k};
  assert_code(pestle_op_custom(&t.b, "user.grows", &t.x, 1, &given, 1, z, 2),
              INVALID_ARGUMENT);
  pestle_module_release(t.module);
  pestle_context_release(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(wants_whole_ops),
      cmocka_unit_test(keeps_what_was_used),
      cmocka_unit_test(builds_with_its_body),
      cmocka_unit_test(says_what_is_wrong),
      cmocka_unit_test(is_equal_inlined_and_opaque),
      cmocka_unit_test(says_for_what_evals_are),
      cmocka_unit_test(is_not_what_another_means),
      cmocka_unit_test(works_in_place),
      cmocka_unit_test(misses_once_and_says_why),
      cmocka_unit_test(plans_name_what_they_call),
      cmocka_unit_test(survives_without_memory),
      cmocka_unit_test(dynamic_attributes_are_operands),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// Running reductions (windows as long as their axis), compiled whole: what the
// evaluator says of the graph as it was, over ops, dtypes, extents and
// directions, alone and between other ops.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "ir/ref/ref.h"
#include "pestle/pestle.h"
#include "test.h"

static pestle_context_t* context;

typedef struct kind_t {
  pestle_dtype_t dtype;
  const char *name, *op, *init;
  double terms_epsilon;  // of one addition; 0: the reduction is exact
  double epsilon;        // of the result's own rounding
} kind_t;

static const kind_t kinds[] = {
    {PESTLE_F32, "f32", "add", "0.0", 0x1p-24, 0},
    {PESTLE_F64, "f64", "add", "0.0", 0x1p-53, 0},
    {PESTLE_F16, "f16", "add", "0.0", 0x1p-24, 0x1p-11},
    {PESTLE_I32, "i32", "add", "0", 0, 0},
    {PESTLE_I64, "i64", "multiply", "1", 0, 0},
    {PESTLE_F32, "f32", "maximum", "-0.25", 0, 0},
    {PESTLE_I64, "i64", "minimum", "100", 0, 0},
    {PESTLE_U8, "ui8", "xor", "0", 0, 0},
};

static const int64_t extents[] = {1, 31, 32, 63, 64, 65, 1000, 4097};

typedef struct run_t {
  const kind_t* kind;
  int64_t extent, before, after;   // dims around the axis, 0: none
  bool reverse, exclusive, among;  // among other ops
  bool in_order;                   // to the bit what add_in_order() says
  pestle_module_t* module;
  pestle_type_t type;
  void *input, *want;
} run_t;

static void print_shape(const run_t* r, char* out, size_t size) {
  char first[32] = "", last[32] = "";
  if (r->before) snprintf(first, sizeof(first), "%dx", (int)r->before);
  if (r->after) snprintf(last, sizeof(last), "%dx", (int)r->after);
  snprintf(out, size, "tensor<%s%dx%s%s>", first, (int)r->extent, last,
           r->kind->name);
}

static void print_window(const run_t* r, const char* shape, char* out,
                         size_t size) {
  int64_t own = r->extent - !r->exclusive, other = r->exclusive ? -1 : 0;
  const char* op = r->kind->op;
  snprintf(out, size,
           "  %%w = \"stablehlo.reduce_window\"(%%a, %%z) <{window_dimensions "
           "= array<i64: %s%d%s>, padding = dense<[%s[%d, %d]%s]> : "
           "tensor<%dx2xi64>}> ({\n"
           "  ^bb0(%%p: tensor<%s>, %%q: tensor<%s>):\n"
           "    %%s = stablehlo.%s %%p, %%q : tensor<%s>\n"
           "    stablehlo.return %%s : tensor<%s>\n"
           "  }) : (%s, tensor<%s>) -> %s\n",
           r->before ? "1, " : "", (int)r->extent, r->after ? ", 1" : "",
           r->before ? "[0, 0], " : "", (int)(r->reverse ? other : own),
           (int)(r->reverse ? own : other), r->after ? ", [0, 0]" : "",
           1 + !!r->before + !!r->after, r->kind->name, r->kind->name, op,
           r->kind->name, r->kind->name, shape, r->kind->name, shape);
}

// The reduction of %a, or of what is negated, from which that is then taken.
static void parse(run_t* r) {
  char shape[96], window[2048], text[4096], begin[160] = "", end[160] = "";
  print_shape(r, shape, sizeof(shape));
  print_window(r, shape, window, sizeof(window));
  if (r->among) {
    snprintf(begin, sizeof(begin), "  %%a = stablehlo.negate %%x : %s\n",
             shape);
    snprintf(end, sizeof(end), "  %%r = stablehlo.subtract %%w, %%a : %s\n",
             shape);
  }
  int size =
      snprintf(text, sizeof(text),
               "func.func @main(%%%s: %s) -> %s {\n"
               "  %%z = stablehlo.constant dense<%s> : tensor<%s>\n"
               "%s%s%s  return %%%s : %s\n}\n",
               r->among ? "x" : "a", shape, shape, r->kind->init, r->kind->name,
               begin, window, end, r->among ? "r" : "w", shape);
  assert_in_range(size, 1, sizeof(text) - 1);
  assert_ok(
      pestle_module_parse(context, text, (size_t)size, "running", &r->module));
}

// Values between -1 and 1, or small integers, that begin to repeat after 1009.
static void* make_input(const pestle_type_t* type) {
  size_t size = pestle_dtype_size(type->dtype);
  char* data = malloc(pestle_type_bytes(type));
  for (int64_t i = 0; i < pestle_type_count(type); ++i) {
    int64_t v = i * 7919 % 1009 - 504;
    uint64_t bits = (uint64_t)v;
    if (pestle_dtype_is(type->dtype, PESTLE_KIND_FLOAT)) {
      bits = pestle_float_encode(type->dtype, (double)v / 504);
    }
    memcpy(data + (size_t)i * size, &bits, size);
  }
  return data;
}

static double number(const pestle_type_t* type, const void* data, int64_t i) {
  uint64_t bits = 0;
  size_t size = pestle_dtype_size(type->dtype);
  memcpy(&bits, (const char*)data + (size_t)i * size, size);
  return pestle_float_decode(type->dtype, bits);
}

// The inputs nearly cancel, so that no sum of several is larger than 16. In
// blocks a term passes some 8 additions a level and one more where the levels
// meet: for five levels less than 64. The evaluator's own sums of f64 pass as
// many additions as terms; its sums of f32 and f16 are of f64. Measured for f32:
// 2e-6, where this allows 6e-5.
static double tolerance(const run_t* r, double want) {
  assert_true(r->kind->terms_epsilon == 0 || fabs(want) <= 16);
  if (r->in_order) return 0;
  double own = r->kind->dtype == PESTLE_F64 ? (double)r->extent : 0;
  return r->kind->terms_epsilon * 16 * (64 + own) +
         2 * r->kind->epsilon * fabs(want);
}

static void check(const run_t* r, const char* spec, const void* got) {
  size_t size = pestle_dtype_size(r->type.dtype);
  for (int64_t i = 0; i < pestle_type_count(&r->type); ++i) {
    const char* w = (const char*)r->want + (size_t)i * size;
    if (!memcmp(w, (const char*)got + (size_t)i * size, size)) continue;
    double want = 0, is = 0;
    if (pestle_dtype_is(r->type.dtype, PESTLE_KIND_FLOAT)) {
      want = number(&r->type, r->want, i);
      is = number(&r->type, got, i);
      if (fabs(want - is) <= tolerance(r, want)) continue;
    }
    fail_msg(
        "%s: %s of %s, extent %d, between %d and %d%s%s%s: element %d is "
        "%g, should be %g",
        spec, r->kind->op, r->kind->name, (int)r->extent, (int)r->before,
        (int)r->after, r->reverse ? ", reverse" : "",
        r->exclusive ? ", exclusive" : "", r->among ? ", among" : "", (int)i,
        is, want);
  }
}

static void run_on(const run_t* r, const char* spec, const char* cpu,
                   pestle_numerics_t numerics) {
  pestle_device_t* device;
  pestle_plan_t* plan;
  pestle_executable_t* exe;
  pestle_status_t status = pestle_context_device(context, spec, &device);
  if (status) {  // not built or not this machine
    pestle_status_release(status);
    return;
  }
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .no_cache = true,
                                      .verify = true,
                                      .target_cpu = cpu,
                                      .numerics = numerics};
  assert_ok(pestle_compile(context, r->module, device, &options, &plan));
  assert_ok(pestle_executable_create(context, plan, device, &exe));
  pestle_io_info_t io = pestle_executable_input(exe, 0);
  pestle_tensor_t in = {.data = r->input,
                        .device = {PESTLE_DEVICE_CPU, 0},
                        .ndim = io.rank,
                        .dtype = pestle_dtype_to_dlpack(io.dtype),
                        .shape = (int64_t*)(uintptr_t)io.dims};
  pestle_tensor_t out = {0};
  assert_ok(pestle_executable_run(exe, NULL, &in, 1, &out, 1, NULL));
  check(r, cpu ? cpu : spec, out.data);
  pestle_tensor_release(exe, &out);
  pestle_executable_release(exe);
  pestle_plan_release(plan);
}

// Running sums of f32, each term added to the sum of those before it.
static void add_in_order(const run_t* r, float* out) {
  const float* x = r->input;
  float sum = 0;
  for (int64_t i = 0; i < r->extent; ++i) {
    float before = sum;
    sum += x[i];
    out[i] = r->exclusive ? before : sum;
  }
}

static void run_case(run_t r, pestle_numerics_t numerics) {
  parse(&r);
  pestle_function_t* f = pestle_module_entry(r.module);
  r.type = *pestle_node_operand(f->body->block->last, 0)->type;
  r.input = make_input(&r.type);
  r.want = malloc(pestle_type_bytes(&r.type));
  assert_ok(pestle_ref_evaluate_function(
      pestle_allocator_system(), f, (const void* const*)&r.input, &r.want));
  if (r.in_order) add_in_order(&r, r.want);
  run_on(&r, "llvm", NULL, numerics);
  run_on(&r, "ref", NULL, numerics);
  run_on(&r, "ref", "simt90", numerics);  // by lanes, in one kernel
  free(r.input);
  free(r.want);
  pestle_module_release(r.module);
}

// The shape and what is around it go with the direction, so that each extent
// and dtype meets each.
static void test_kind(void** state) {
  const kind_t* kind = *state;
  size_t k = (size_t)(kind - kinds);
  for (size_t e = 0; e < sizeof(extents) / sizeof(extents[0]); ++e) {
    // The evaluator goes through all of each window.
    unsigned modes = extents[e] > 4000 ? 1 : 4;
    for (unsigned m = 0; m < modes; ++m) {
      unsigned mode = modes == 1 ? (unsigned)(k % 4) : m;
      run_t r = {.kind = kind, .extent = extents[e]};
      r.reverse = mode & 1;
      r.exclusive = mode & 2;
      r.before = (m + e) % 3 == 1 ? 2 : 0;
      r.after = (m + e) % 3 == 2 && modes > 1 ? 3 : 0;
      r.among = (m + e + k) % 2 && kind->dtype != PESTLE_U8;
      run_case(r, PESTLE_NUMERICS_DEFAULT);
    }
  }
}

// Sums stay in the order of their terms there; what is exact is cut.
static void test_strict(void** state) {
  (void)state;
  static const int64_t lengths[] = {65, 127, 128, 129, 1000};
  for (unsigned i = 0; i < 5 * 2; ++i) {
    run_t r = {.kind = &kinds[0], .extent = lengths[i / 2], .in_order = true};
    r.exclusive = i & 1;
    run_case(r, PESTLE_NUMERICS_STRICT);
  }
  for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); ++k) {
    for (unsigned m = 0; m < 4; ++m) {
      run_t r = {.kind = &kinds[k], .extent = 150, .before = 2, .after = 3};
      r.reverse = m & 1;
      r.exclusive = m & 2;
      run_case(r, PESTLE_NUMERICS_STRICT);
    }
  }
}

static int setup(void** state) {
  (void)state;
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .use_environment = true,
                                      .no_cache = true,
                                      .threads = 2};
  assert_ok(pestle_context_create(&options, &context));
  return 0;
}

static int teardown(void** state) {
  (void)state;
  pestle_context_release(context);
  return 0;
}

int main(void) {
  enum { COUNT = sizeof(kinds) / sizeof(kinds[0]) };
  struct CMUnitTest tests[COUNT + 1];
  char names[COUNT][64];
  for (size_t i = 0; i < COUNT; ++i) {
    snprintf(names[i], sizeof(names[i]), "%s_%s", kinds[i].op, kinds[i].name);
    tests[i] =
        (struct CMUnitTest){.name = names[i],
                            .test_func = test_kind,
                            .initial_state = (void*)(uintptr_t)&kinds[i]};
  }
  tests[COUNT] = (struct CMUnitTest)cmocka_unit_test(test_strict);
  return _cmocka_run_group_tests("running reductions", tests, COUNT + 1, setup,
                                 teardown);
}

// SPDX-License-Identifier: Apache-2.0
// Every scalar row on every dtype that it takes, over shape classes, through
// the whole compiler on each device, against the reference evaluator. Rows are
// expanded from scalar.def: a new one is tested without an edit here.
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/half.h"
#include "ir/graph.h"
#include "ir/ref/ref.h"
#include "pestle/pestle.h"
#include "test.h"

typedef struct shape_t {
  int32_t rank;
  int64_t dims[4];
} shape_t;

static const shape_t shapes[] = {
    {0, {0}}, {1, {1}}, {1, {0}}, {1, {17}}, {3, {3, 1, 7}}, {2, {31, 67}},
};

static const char* const devices[] = {"ref", "llvm"};

static pestle_context_t* context;

// --- Data ---

// Values where ops have edges, then pseudo-random ones.
static const double edges[] = {
    0.0,        -0.0,      1.0,   -1.0,  0.5,    -0.5,   1.5,    2.5,
    -2.5,       3.0,       -7.0,  10.0,  88.0,   -88.0,  104.0,  -104.0,
    1e-3,       1e10,      -1e10, 1e-40, -1e-40, 1e-45,  3.4e38, -3.4e38,
    INFINITY,   -INFINITY, NAN,   0.25,  0.75,   100.25, -0.99,  3.14159274,
    1.57079637, 6.0,       31.0,  64.0,
};
enum { EDGES = sizeof(edges) / sizeof(edges[0]) };

static uint64_t encode(pestle_dtype_t dtype, int64_t i, uint32_t seed) {
  uint32_t r = (uint32_t)i * 2654435761u + seed * 40503u;
  r ^= r >> 15;
  r *= 2246822519u;
  r ^= r >> 13;
  double v = ((double)r / 4294967296.0 * 2 - 1) * (r & 1 ? 4.0 : 100.0);
  bool edge = (i + (int64_t)seed * 5) % 3 == 0;
  if (edge) v = edges[(uint64_t)(i / 3 * (seed + 1) + seed) % EDGES];
  if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) {
    return pestle_float_encode(dtype, v);
  }
  if (dtype == PESTLE_I1) return r >> 9 & 1;
  const pestle_dtype_info_t* info = pestle_dtype_info(dtype);
  uint64_t bits = edge ? (uint64_t)(r & 1 ? 0 : -1) << (r % info->bits)
                       : (uint64_t)(int64_t)(isfinite(v) ? v : 7);
  if (info->bits == 4) {  // kept sign- or zero-extended in a byte
    bits &= 15;
    if (info->kind == PESTLE_KIND_SIGNED && bits & 8) bits |= 0xf0;
  }
  return bits;
}

static void* make_data(const pestle_type_t* type, uint32_t seed) {
  size_t n = pestle_type_bytes(type), size = pestle_dtype_size(type->dtype);
  char* data = aligned_alloc(64, (n + 127) / 64 * 64);
  for (int64_t i = 0; i < pestle_type_count(type); ++i) {
    uint64_t bits = encode(type->dtype, i, seed);
    memcpy(data + (size_t)i * size, &bits, size);
  }
  return data;
}

// Steps between two values of |dtype|; 0 for two NaNs.
static double ulps(pestle_dtype_t dtype, uint64_t a, uint64_t b) {
  double x = pestle_float_decode(dtype, a), y = pestle_float_decode(dtype, b);
  if (isnan(x) || isnan(y)) return isnan(x) && isnan(y) ? 0 : INFINITY;
  if (x == y) return signbit(x) == signbit(y) ? 0 : x == 0 ? 0.5 : 0;
  if (isinf(x) || isinf(y)) {
    // One step beyond the largest finite value counts as one.
    double big = isinf(x) ? y : x;
    return fabs(big) >= 3.4e38 ? 1 : INFINITY;
  }
  unsigned bits = pestle_dtype_info(dtype)->bits;
  uint64_t sign = 1ull << (bits - 1), mask = sign - 1;
  double p = (double)(a & mask), q = (double)(b & mask);
  if (a & sign) p = -p;
  if (b & sign) q = -q;
  return fabs(p - q);
}

// --- One op ---

typedef struct op_case_t {
  pestle_op_t op;
  pestle_dtype_t dtype;
} op_case_t;

typedef pestle_status_t (*unary_t)(pestle_builder_t*, pestle_value_t*,
                                   pestle_value_t**);

static pestle_type_t operand_type(const op_case_t* c, const shape_t* s,
                                  uint32_t operand) {
  pestle_dtype_t dtype = c->dtype;
  if (c->op == PESTLE_OP_SELECT && operand == 0) dtype = PESTLE_I1;
  return pestle_type_make(dtype, s->rank, s->dims);
}

static pestle_module_t* make_module(const op_case_t* c, const shape_t* s) {
  pestle_module_t* module;
  pestle_function_t* f;
  uint32_t n = pestle_op_info(c->op)->operands;
  pestle_type_t types[3];
  for (uint32_t i = 0; i < n; ++i)
    types[i] = operand_type(c, s, i);
  assert_ok(pestle_module_create(context, "m", &module));
  assert_ok(pestle_module_add_function(module, "main", types, NULL, n, &f));
  pestle_builder_t b = pestle_builder_make(f);
  pestle_value_t* args[3];
  for (uint32_t i = 0; i < n; ++i)
    args[i] = pestle_function_argument(f, i);
  pestle_node_t* node;
  pestle_node_spec_t spec = {.op = c->op, .operands = args, .operand_count = n};
  assert_ok(pestle_node_create(&b, &spec, &node));
  pestle_value_t* y = &node->results[0];
  assert_ok(pestle_op_return(&b, &y, 1, NULL));
  return module;
}

static double allowed(const op_case_t* c) {
  bool trans = pestle_op_info(c->op)->flags & PESTLE_OP_FLAG_TRANS;
  if (!trans || !pestle_dtype_is(c->dtype, PESTLE_KIND_FLOAT)) return 0;
  // f32 and f64 within 2 ulp; narrower types are rounded from f32 and may fall
  // to the neighbour.
  return c->dtype == PESTLE_F32 || c->dtype == PESTLE_F64 ? 2 : 1;
}

static double compare(const op_case_t* c, const pestle_type_t* type,
                      const char* want, const char* got, int64_t* out_at) {
  size_t size = pestle_dtype_size(type->dtype);
  double worst = 0;
  for (int64_t i = 0; i < pestle_type_count(type); ++i) {
    uint64_t w = 0, g = 0;
    memcpy(&w, want + (size_t)i * size, size);
    memcpy(&g, got + (size_t)i * size, size);
    double d = pestle_dtype_is(type->dtype, PESTLE_KIND_FLOAT)
                   ? ulps(type->dtype, w, g)
               : w != g ? INFINITY
                        : 0;
    (void)c;
    if (d > worst) {
      worst = d;
      *out_at = i;
    }
  }
  return worst;
}

static bool run_on(const op_case_t* c, pestle_module_t* module,
                   const char* spec, void* const* inputs, const char* want) {
  pestle_device_t* device;
  pestle_plan_t* plan;
  pestle_executable_t* exe;
  pestle_status_t status = pestle_context_device(context, spec, &device);
  if (status) {  // not built or not this machine
    pestle_status_release(status);
    return true;
  }
  pestle_compile_options_t options = {
      .struct_size = sizeof(options), .no_cache = true, .verify = true};
  status = pestle_compile(context, module, device, &options, &plan);
  const char* name = pestle_op_info(c->op)->name;
  const char* dtype = pestle_dtype_info(c->dtype)->name;
  if (status) {
    print_error("%s %s on %s: %s\n", name, dtype, spec,
                pestle_status_message(status));
    pestle_status_release(status);
    return false;
  }
  assert_ok(pestle_executable_create(context, plan, device, &exe));
  pestle_tensor_t in[3] = {0}, out = {0};
  size_t n = pestle_executable_input_count(exe);
  for (size_t i = 0; i < n; ++i) {
    pestle_io_info_t io = pestle_executable_input(exe, i);
    in[i] = (pestle_tensor_t){.data = inputs[i],
                              .device = {PESTLE_DEVICE_CPU, 0},
                              .ndim = io.rank,
                              .dtype = pestle_dtype_to_dlpack(io.dtype),
                              .shape = (int64_t*)(uintptr_t)io.dims};
  }
  assert_ok(pestle_executable_run(exe, NULL, in, n, &out, 1, NULL));
  pestle_type_t type = pestle_type_make(pestle_dtype_from_dlpack(out.dtype),
                                        out.ndim, out.shape);
  int64_t at = 0;
  double worst = compare(c, &type, want, out.data, &at);
  bool ok = worst <= allowed(c);
  if (!ok) {
    size_t size = pestle_dtype_size(type.dtype);
    uint64_t w = 0, g = 0, a[3] = {0};
    memcpy(&w, want + (size_t)at * size, size);
    memcpy(&g, (char*)out.data + (size_t)at * size, size);
    for (size_t i = 0; i < n; ++i) {
      size_t s = pestle_dtype_size(pestle_executable_input(exe, i).dtype);
      memcpy(&a[i], (char*)inputs[i] + (size_t)at * s, s);
    }
    print_error(
        "%s %s on %s: %g ulp: (%llx, %llx, %llx) gives %llx, should "
        "be %llx\n",
        name, dtype, spec, worst, (unsigned long long)a[0],
        (unsigned long long)a[1], (unsigned long long)a[2],
        (unsigned long long)g, (unsigned long long)w);
  }
  pestle_tensor_release(exe, &out);
  pestle_executable_release(exe);
  pestle_plan_release(plan);
  return ok;
}

static bool run_shape(const op_case_t* c, const shape_t* s) {
  pestle_module_t* module = make_module(c, s);
  pestle_function_t* f = pestle_module_entry(module);
  const pestle_value_t* y = pestle_node_operand(f->body->block->last, 0);
  uint32_t n = pestle_op_info(c->op)->operands;
  void *inputs[3] = {0}, *want = make_data(y->type, 0);
  for (uint32_t i = 0; i < n; ++i) {
    pestle_type_t type = operand_type(c, s, i);
    inputs[i] = make_data(&type, i + 1);
  }
  assert_ok(pestle_ref_evaluate_function(pestle_allocator_system(), f,
                                         (const void* const*)inputs, &want));
  bool ok = true;
  for (size_t d = 0; d < sizeof(devices) / sizeof(devices[0]); ++d) {
    ok = run_on(c, module, devices[d], inputs, want) && ok;
  }
  for (uint32_t i = 0; i < n; ++i)
    free(inputs[i]);
  free(want);
  pestle_module_release(module);
  return ok;
}

static void test_op(void** state) {
  pestle_op_t op = (pestle_op_t)(uintptr_t)*state;
  const pestle_op_info_t* info = pestle_op_info(op);
  bool ok = true;
  for (int d = PESTLE_I1; d <= PESTLE_F64; ++d) {
    op_case_t c = {op, (pestle_dtype_t)d};
    if (!pestle_dtype_is(c.dtype, info->kinds)) continue;
    size_t count = sizeof(shapes) / sizeof(shapes[0]);
    // All shape classes on f32 and i32, the large one on the others.
    bool main_type = d == PESTLE_F32 || d == PESTLE_I32;
    for (size_t s = main_type ? 0 : count - 1; s < count; ++s) {
      ok = run_shape(&c, &shapes[s]) && ok;
    }
  }
  assert_true(ok);
}

static int setup(void** state) {
  (void)state;
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .use_environment = true,
                                      .no_cache = true};
  assert_ok(pestle_context_create(&options, &context));
  return 0;
}

static int teardown(void** state) {
  (void)state;
  pestle_context_release(context);
  return 0;
}

int main(void) {
  struct CMUnitTest tests[PESTLE_SCALAR_COUNT];
  size_t n = 0;
  const char* only = getenv("PESTLE_TEST_ONLY");
  for (unsigned i = 0; i < PESTLE_SCALAR_COUNT; ++i) {
    const char* name = pestle_op_info((pestle_op_t)i)->name;
    if (only && strcmp(only, name)) continue;
    tests[n++] = (struct CMUnitTest){.name = name,
                                     .test_func = test_op,
                                     .initial_state = (void*)(uintptr_t)i};
  }
  return _cmocka_run_group_tests("scalar rows", tests, n, setup, teardown);
}

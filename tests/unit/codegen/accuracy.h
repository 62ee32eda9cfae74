// SPDX-License-Identifier: Apache-2.0
// Each scalar row that takes floats, on each float type, by llvm and by ref,
// against the row's own expression in a wider type: no farther from the exact
// result than ir/accuracy.def says. 65,536 operands a round: all pairs of 8-bit
// floats, all 16-bit ones beside others, samples of the rest.
#ifndef PESTLE_TESTS_UNIT_CODEGEN_ACCURACY_H_
#define PESTLE_TESTS_UNIT_CODEGEN_ACCURACY_H_

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "ir/accuracy.h"
#include "ir/graph.h"
#include "pestle/pestle.h"
#include "test.h"
#include "unit/codegen/erf_inverse.h"

enum { COUNT = 65536, MOST_OPS = 64 };

// --- Exact results ---

#define WIDE(f, g)                             \
  static long double wide_##f(long double a) { \
    return g;                                  \
  }
WIDE(fabs, fabsl(a))
WIDE(floor, floorl(a))
WIDE(ceil, ceill(a))
WIDE(rint, rintl(a))
WIDE(round, roundl(a))
WIDE(trunc, truncl(a))
WIDE(sqrt, sqrtl(a))
WIDE(rsqrt, 1 / sqrtl(a))
WIDE(cbrt, cbrtl(a))
WIDE(exp, expl(a))
WIDE(expm1, expm1l(a))
WIDE(exp2, exp2l(a))
WIDE(log, logl(a))
WIDE(log1p, log1pl(a))
WIDE(logistic, 1 / (1 + expl(-a)))
WIDE(tanh, tanhl(a))
WIDE(sin, sinl(a))
WIDE(cos, cosl(a))
WIDE(tan, tanl(a))
WIDE(erf, erfl(a))
WIDE(erfc, erfcl(a))
WIDE(erf_inv, erf_inverse(a))
#undef WIDE

static long double wide_pow(long double a, long double b) {
  return powl(a, b);
}
static long double wide_fmod(long double a, long double b) {
  return fmodl(a, b);
}
static long double wide_atan2(long double a, long double b) {
  return atan2l(a, b);
}
static long double wide_max(long double a, long double b) {
  if (isnan(a) || isnan(b)) return a + b;
  if (a == b) return signbit(a) ? b : a;
  return a > b ? a : b;
}
static long double wide_min(long double a, long double b) {
  if (isnan(a) || isnan(b)) return a + b;
  if (a == b) return signbit(a) ? a : b;
  return a < b ? a : b;
}
static long double wide_sign(long double a) {
  return a > 0 ? 1 : a < 0 ? -1 : a;
}
static long double wide_fma(long double a, long double b, long double c) {
  return a * b + c;
}

// The rows' F columns, in long double.
static long double exact(pestle_op_t op, long double a, long double b,
                         long double c) {
  (void)c;
#define M(f) wide_##f
#define F_MAX wide_max
#define F_MIN wide_min
#define F_SIGN wide_sign
#define NO 0
  switch ((int)op) {
#define PESTLE_SCALAR(NAME, op, mlir, arity, RULE, KINDS, FLAGS, F, S, U) \
  case PESTLE_OP_##NAME:                                                  \
    return F;
#include "pestle/scalar.def"
  }
#undef M
#undef F_MAX
#undef F_MIN
#undef F_SIGN
#undef NO
  return 0;
}

// What is rounded twice, to 64 and then to 53 bits, is asked of the machine.
static double exact_f64(pestle_op_t op, double a, double b, double c) {
  switch ((int)op) {
    case PESTLE_OP_ADD:
      return a + b;
    case PESTLE_OP_SUBTRACT:
      return a - b;
    case PESTLE_OP_MULTIPLY:
      return a * b;
    case PESTLE_OP_DIVIDE:
      return a / b;
    case PESTLE_OP_SQRT:
      return sqrt(a);
    case PESTLE_OP_FMA:
      return fma(a, b, c);
    default:
      return (double)exact(op, a, b, c);
  }
}

static uint64_t rounded(pestle_op_t op, pestle_dtype_t dtype, double a,
                        double b, double c) {
  if (dtype == PESTLE_F64) {
    double y = exact_f64(op, a, b, c);
    uint64_t bits;
    memcpy(&bits, &y, sizeof(bits));
    return bits;
  }
  // Of f32 operands the C library's own fma is rounded once.
  float y = op == PESTLE_OP_FMA ? fmaf((float)a, (float)b, (float)c)
                                : (float)exact(op, a, b, c);
  return pestle_float_encode(dtype, (double)y);
}

// --- Distances ---

static bool is_nan(pestle_dtype_t dtype, uint64_t bits) {
  return isnan(pestle_float_decode(dtype, bits));
}

static int64_t order(pestle_dtype_t dtype, uint64_t bits) {
  uint64_t sign = UINT64_C(1) << (pestle_dtype_info(dtype)->bits - 1);
  return bits & sign ? -(int64_t)(bits & (sign - 1)) : (int64_t)bits;
}

static int64_t steps(pestle_dtype_t dtype, uint64_t want, uint64_t got) {
  if (want == got) return 0;
  bool no = is_nan(dtype, want), number = !is_nan(dtype, got);
  if (no && !number) return 0;
  // f8E4M3FN and the like have no infinity behind the largest: NaN stands there.
  uint64_t other = no ? got : want;
  bool ends =
      pestle_dtype_size(dtype) == 1 &&
      isnan(pestle_float_decode(dtype, pestle_float_encode(dtype, INFINITY))) &&
      is_nan(dtype, (other & 0x7f) + 1 > 0x7f
                        ? 0x80
                        : (other & 0x80) | ((other & 0x7f) + 1));
  if (no || !number) return ends ? 1 : INT64_MAX;
  int64_t d = order(dtype, want) - order(dtype, got);
  if (d == 0) return 1;  // zeros of two signs
  return d < 0 ? -d : d;
}

// --- Operands ---

static uint64_t scramble(uint64_t z) {
  z += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static uint64_t operand(pestle_dtype_t dtype, uint32_t i, int which,
                        uint64_t round) {
  static const double edges[] = {0,
                                 -0.0,
                                 1,
                                 -1,
                                 INFINITY,
                                 -INFINITY,
                                 NAN,
                                 0.5,
                                 -0.5,
                                 1.5,
                                 2.5,
                                 -3.5,
                                 1e-40,
                                 -1e-40,
                                 1e-45,
                                 3.4e38,
                                 1e-310,
                                 5e-324,
                                 1.7e308,
                                 1e22,
                                 88.7,
                                 -103.9,
                                 709.7,
                                 -745.1,
                                 1e-8,
                                 0.25,
                                 0x1.3c903b435ec4p+0,  // glibc's erfc: 4 ulp
                                 3.14159265358979,
                                 1.5707963267948966,
                                 1e5,
                                 -1e5,
                                 2,
                                 3};
  int size = (int)pestle_dtype_size(dtype);
  uint64_t r = scramble(round * 7919 + (uint64_t)i * 3 + (uint64_t)which);
  if (size == 1 && which < 2) return which ? i >> 8 : i & 255;
  if (size == 2 && which == 0) return i;
  uint64_t mask = size == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * size) - 1;
  double unit = (double)(r >> 11) / 4503599627370496.0 - 1;
  switch (i & 3) {
    case 0:
      return r & mask;
    case 1:
      return pestle_float_encode(dtype, 8 * unit);
    case 2:
      return pestle_float_encode(dtype, edges[r >> 59]);
    default:
      return pestle_float_encode(dtype,
                                 ldexp(unit, (int)(scramble(r) % 41) - 20));
  }
}

// --- Runs ---

typedef struct batch_t {
  pestle_dtype_t dtype;
  uint32_t arity;
  pestle_op_t ops[MOST_OPS];
  size_t count;
  void* in[3];
  void* want[MOST_OPS];
  void* got[MOST_OPS];
  int64_t worst[MOST_OPS];
} batch_t;

static size_t result_size(const batch_t* b, size_t k) {
  pestle_rule_t rule = pestle_op_info(b->ops[k])->rule;
  bool flag = rule == PESTLE_RULE_COMPARE || rule == PESTLE_RULE_TEST;
  return flag ? 1 : pestle_dtype_size(b->dtype);
}

static batch_t batch_make(pestle_dtype_t dtype, uint32_t arity) {
  batch_t b = {.dtype = dtype, .arity = arity};
  for (unsigned op = 0; op < PESTLE_SCALAR_COUNT; ++op) {
    const pestle_op_info_t* info = pestle_op_info((pestle_op_t)op);
    bool takes = (info->kinds & PESTLE_KIND_FLOAT) != 0;
    // What select moves is tested where moves are.
    if (takes && info->operands == arity && op != PESTLE_OP_SELECT)
      b.ops[b.count++] = (pestle_op_t)op;
  }
  for (int i = 0; i < 3; ++i)
    b.in[i] = aligned_alloc(64, COUNT * 8);
  for (size_t k = 0; k < b.count; ++k) {
    b.want[k] = aligned_alloc(64, COUNT * 8);
    b.got[k] = aligned_alloc(64, COUNT * 8);
  }
  return b;
}

static void batch_free(batch_t* b) {
  for (int i = 0; i < 3; ++i)
    free(b->in[i]);
  for (size_t k = 0; k < b->count; ++k) {
    free(b->want[k]);
    free(b->got[k]);
  }
}

static double number_at(const batch_t* b, int which, size_t i) {
  uint64_t bits = 0;
  size_t size = pestle_dtype_size(b->dtype);
  memcpy(&bits, (const char*)b->in[which] + i * size, size);
  return pestle_float_decode(b->dtype, bits);
}

static void batch_fill(batch_t* b, uint64_t round) {
  size_t size = pestle_dtype_size(b->dtype);
  for (uint32_t i = 0; i < COUNT; ++i) {
    for (int k = 0; k < 3; ++k) {
      uint64_t bits = operand(b->dtype, i, k, round);
      memcpy((char*)b->in[k] + i * size, &bits, size);
    }
  }
  for (size_t k = 0; k < b->count; ++k) {
    bool flag = result_size(b, k) == 1 && size > 1;
    pestle_rule_t rule = pestle_op_info(b->ops[k])->rule;
    flag = rule == PESTLE_RULE_COMPARE || rule == PESTLE_RULE_TEST;
    for (size_t i = 0; i < COUNT; ++i) {
      double x = number_at(b, 0, i), y = number_at(b, 1, i);
      double z = number_at(b, 2, i);
      uint64_t bits = flag ? exact(b->ops[k], x, y, z) != 0
                           : rounded(b->ops[k], b->dtype, x, y, z);
      memcpy((char*)b->want[k] + i * result_size(b, k), &bits,
             result_size(b, k));
    }
  }
}

static pestle_executable_t* batch_compile(pestle_context_t* context,
                                          pestle_device_t* device,
                                          const batch_t* b) {
  pestle_module_t* module;
  pestle_function_t* f;
  pestle_plan_t* plan;
  pestle_executable_t* exe;
  pestle_type_t type = pestle_type_make(b->dtype, 1, (int64_t[]){COUNT});
  pestle_type_t types[] = {type, type, type};
  assert_ok(pestle_module_create(context, "m", &module));
  assert_ok(
      pestle_module_add_function(module, "main", types, NULL, b->arity, &f));
  pestle_builder_t builder = pestle_builder_make(f);
  pestle_value_t *x[3], *y[MOST_OPS];
  for (uint32_t i = 0; i < b->arity; ++i)
    x[i] = pestle_function_argument(f, i);
  for (size_t k = 0; k < b->count; ++k) {
    pestle_node_t* node;
    pestle_node_spec_t spec = {
        .op = b->ops[k], .operands = x, .operand_count = b->arity};
    assert_ok(pestle_node_create(&builder, &spec, &node));
    y[k] = &node->results[0];
  }
  assert_ok(pestle_op_return(&builder, y, b->count, NULL));
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .no_cache = true};
  assert_ok(pestle_compile(context, module, device, &options, &plan));
  assert_ok(pestle_executable_create(context, plan, device, &exe));
  pestle_plan_release(plan);
  pestle_module_release(module);
  return exe;
}

static void batch_run(pestle_executable_t* exe, batch_t* b) {
  static int64_t shape[] = {COUNT};
  pestle_tensor_t in[3], out[MOST_OPS];
  pestle_tensor_t like = {.device = {PESTLE_DEVICE_CPU, 0},
                          .ndim = 1,
                          .dtype = pestle_dtype_to_dlpack(b->dtype),
                          .shape = shape};
  for (uint32_t i = 0; i < b->arity; ++i) {
    in[i] = like;
    in[i].data = b->in[i];
  }
  for (size_t k = 0; k < b->count; ++k) {
    out[k] = like;
    pestle_rule_t rule = pestle_op_info(b->ops[k])->rule;
    if (rule == PESTLE_RULE_COMPARE || rule == PESTLE_RULE_TEST)
      out[k].dtype = pestle_dtype_to_dlpack(PESTLE_I1);
    out[k].data = b->got[k];
  }
  assert_ok(
      pestle_executable_run(exe, NULL, in, b->arity, out, b->count, NULL));
}

// The worst of this round, with where it is.
static bool batch_judge(const char* device, batch_t* b) {
  bool right = true;
  for (size_t k = 0; k < b->count; ++k) {
    pestle_rule_t rule = pestle_op_info(b->ops[k])->rule;
    bool flag = rule == PESTLE_RULE_COMPARE || rule == PESTLE_RULE_TEST;
    size_t size = result_size(b, k), at = 0;
    int64_t worst = 0;
    for (size_t i = 0; i < COUNT; ++i) {
      uint64_t want = 0, got = 0;
      memcpy(&want, (char*)b->want[k] + i * size, size);
      memcpy(&got, (char*)b->got[k] + i * size, size);
      int64_t d = flag ? want != got : steps(b->dtype, want, got);
      if (d > worst) {
        worst = d;
        at = i;
      }
    }
    if (worst > b->worst[k]) b->worst[k] = worst;
    if (worst <= pestle_accuracy_steps(b->ops[k], b->dtype)) continue;
    uint64_t want = 0, got = 0;
    memcpy(&want, (char*)b->want[k] + at * size, size);
    memcpy(&got, (char*)b->got[k] + at * size, size);
    print_message(
        "%s: %s on %s: %lld steps at (%a, %a, %a): 0x%llx, not 0x%llx\n",
        device, pestle_op_info(b->ops[k])->name,
        pestle_dtype_info(b->dtype)->name, (long long)worst,
        number_at(b, 0, at), number_at(b, 1, at), number_at(b, 2, at),
        (unsigned long long)got, (unsigned long long)want);
    right = false;
  }
  return right;
}

static bool check_dtype(pestle_context_t* context, const char* name,
                        pestle_dtype_t dtype, uint64_t rounds) {
  pestle_device_t* device;
  bool right = true;
  assert_ok(pestle_context_device(context, name, &device));
  for (uint32_t arity = 1; arity <= 3; ++arity) {
    batch_t b = batch_make(dtype, arity);
    pestle_executable_t* exe = batch_compile(context, device, &b);
    for (uint64_t round = 0; round < rounds; ++round) {
      batch_fill(&b, round);
      batch_run(exe, &b);
      right &= batch_judge(name, &b);
    }
    pestle_executable_release(exe);
    for (size_t k = 0; k < b.count; ++k) {
      if (b.worst[k])
        print_message("%-5s %-10s %-22s %lld\n", name,
                      pestle_dtype_info(dtype)->name,
                      pestle_op_info(b.ops[k])->name, (long long)b.worst[k]);
    }
    batch_free(&b);
  }
  return right;
}

static void check_all(uint64_t rounds) {
  pestle_context_t* context;
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .use_environment = true,
                                      .no_cache = true};
  bool right = true;
  uint64_t item = 0;
  assert_ok(pestle_context_create(&options, &context));
  for (int d = PESTLE_F8E4M3FN; d < PESTLE_DTYPE_COUNT; ++d) {
    if (!pestle_dtype_is((pestle_dtype_t)d, PESTLE_KIND_FLOAT)) continue;
    if (pestle_test_in_part(item++))
      right &= check_dtype(context, "cpu", (pestle_dtype_t)d, rounds);
    if (pestle_test_in_part(item++))
      right &= check_dtype(context, "ref", (pestle_dtype_t)d, rounds);
  }
  pestle_context_release(context);
  assert_true(right);
}

// A row that is correctly rounded has no line; one that is TRANS has one.
static void check_table(void) {
  for (unsigned op = 0; op < PESTLE_SCALAR_COUNT; ++op) {
    bool trans =
        (pestle_op_info((pestle_op_t)op)->flags & PESTLE_OP_FLAG_TRANS) != 0;
    if (trans != (pestle_accuracy_steps((pestle_op_t)op, PESTLE_F32) > 0))
      fail_msg("%s in ir/accuracy.def", pestle_op_info((pestle_op_t)op)->name);
  }
}

#endif  // PESTLE_TESTS_UNIT_CODEGEN_ACCURACY_H_

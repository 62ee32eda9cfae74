// SPDX-License-Identifier: Apache-2.0
// The expansions of transcendental rows in f64, run by the interpreter on bit
// patterns spread over all of f64, on ranges where the functions bend and on
// special values, against the C library's long double functions, which have 11
// bits more. Prints the largest error of each in units of the last place.
#include <math.h>

#include "unit/codegen/erf_inverse.h"
#include "unit/codegen/kir_test.h"

enum { LANES = 64, SAMPLES = 1 << 19 };

// Units in the last place of the f64 nearest to |exact|.
static double ulps(double got, long double exact) {
  double nearest = (double)exact;
  if (isnan(exact)) return isnan(got) ? 0 : INFINITY;
  if (isnan(got)) return INFINITY;
  if (isinf(nearest) || isinf(got)) {
    // Overflow starts half a unit past the largest.
    if (got == nearest) return 0;
    return isinf(got) && fabsl(exact) > 0x1.ffffffffffffep+1023L &&
                   (got > 0) == (exact > 0)
               ? 1
               : INFINITY;
  }
  if (nearest == 0 && got == 0) {
    return signbit(got) == signbit(nearest) ? 0 : INFINITY;
  }
  int exponent;
  frexp(nearest, &exponent);
  if (exponent < -1021) exponent = -1021;
  return (double)(fabsl((long double)got - exact) /
                  ldexpl(1.0L, exponent - 53));
}

// The ref target without |op| on f64.
static void caps_without(pestle_op_t op, pestle_target_caps_t* caps) {
  pestle_allocator_t memory = pestle_allocator_system();
  pestle_host_t host = kir_test_host(&memory);
  pestle_status_t status = NULL;
  const pestle_backend_t* ref = pestle_ref_backend_init(&host, &status);
  assert_ok(status);
  *caps = (pestle_target_caps_t){.struct_size = sizeof *caps};
  assert_ok(ref->target->describe(ref->self, NULL, caps));
  ref->deinit(ref->self);
  caps->op_dtypes[PESTLE_KIR_SCALAR_BASE + op] &= ~(1u << PESTLE_F64);
}

// z[i] = op(x[i], y[i]) for |count| elements, through the expansion.
static void run(pestle_op_t op, bool two, const double* x, const double* y,
                double* z, int64_t count) {
  pestle_target_caps_t caps;
  pestle_kir_builder_t k, legal;
  caps_without(op, &caps);
  pestle_kir_init(pestle_allocator_system(), "math", NULL, &k);
  uint32_t b[3];
  for (int i = 0; i < 3; ++i) {
    b[i] = pestle_kir_add_buffer(&k, "b", PESTLE_KIR_GLOBAL, PESTLE_F64, 1,
                                 count, i < 2 ? PESTLE_KIR_READONLY : 0);
  }
  pestle_kir_id_t lo = pestle_kir_index(&k, 0);
  pestle_kir_id_t hi = pestle_kir_index(&k, count / LANES);
  pestle_kir_id_t g = pestle_kir_for(&k, "g", lo, hi, 1, PESTLE_KIR_GROUP_X);
  pestle_kir_id_t at = pestle_kir_madi(&k, g, LANES, PESTLE_KIR_NONE);
  pestle_kir_id_t a = pestle_kir_load(&k, b[0], LANES, at, PESTLE_KIR_NONE, 64);
  pestle_kir_id_t c = pestle_kir_load(&k, b[1], LANES, at, PESTLE_KIR_NONE, 64);
  pestle_kir_id_t r =
      pestle_kir_scalar(&k, op, a, two ? c : PESTLE_KIR_NONE, PESTLE_KIR_NONE);
  pestle_kir_store(&k, b[2], at, r, PESTLE_KIR_NONE, 64);
  pestle_kir_end(&k);
  assert_ok(pestle_kir_finish(&k));
  assert_ok(
      pestle_kir_legalise(&k.view, &caps, PESTLE_NUMERICS_DEFAULT, &legal));
  assert_ok(pestle_kir_verify(&legal.view));
  int32_t trap;
  void* buffers[3] = {(void*)(uintptr_t)x, (void*)(uintptr_t)y, z};
  assert_ok(kir_test_run(&legal.view, buffers, NULL, 0, count / LANES, &trap));
  assert_int_equal(trap, 0);
  pestle_kir_deinit(&legal);
  pestle_kir_deinit(&k);
}

static double from_bits(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static const double specials[] = {
    0.0, -0.0, 1.0, -1.0, INFINITY, -INFINITY, NAN, 0x1p-1074, -0x1p-1074,
    0x1.ffffffffffffep-1023, 0x1p-1022, -0x1p-1022, 0x1.fffffffffffffp+1023,
    -0x1.fffffffffffffp+1023, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0,
    // exp: the last finite, the last that is not 0.
    0x1.62e42fefa39efp+9, 0x1.62e42fefa39f0p+9, -0x1.74910d52d3051p+9,
    -0x1.74910d52d3052p+9, 0.625, 4.0, 6.0, 10.0, -10.0,
    // Near multiples of pi/2, the second the nearest of all doubles.
    0x1.921fb54442d18p+0, 0x1.6ac5b262ca1ffp+849, 0x1.921fb54442d18p+1, 0x1p+30,
    -0x1p+30, 0x1.fffffffffffffp+29, 0x1.4p+1000, 0x1p+53,
    0x1.0000000000001p+53, 1e10, 0x1p-27, 0x1p-55, 7.0, 8.0, 27.0, 64.0, 0.1,
    100.0, 0x1.fffffffffffffp-1, 0x1.0000000000001p+0, -0x1.fffffffffffffp-1,
    0x1.a827999fcef32p-2, 0x1.6a09e667f3bcdp+0, 0x1.6a09e667f3bcdp-1, 709.0,
    -708.5, 1.0 / 3};
enum { SPECIALS = sizeof specials / sizeof *specials };

static long double rsqrt_exact(long double x) {
  return 1.0L / sqrtl(x);
}
static long double logistic_exact(long double x) {
  return 1.0L / (1.0L + expl(-x));
}

// Every bit pattern has the same chance.
static uint64_t next_random(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

typedef struct case_t {
  const char* name;
  pestle_op_t op;
  long double (*exact)(long double);
  double limit;
  double lo, hi;  // 0, 0: all bit patterns and the special values
} case_t;

static void check_unary(const case_t* c, double* x, double* z) {
  uint64_t state = 88172645463325252u;
  for (int i = 0; i < SAMPLES; ++i) {
    uint64_t bits = next_random(&state);
    x[i] = c->lo == c->hi
               ? from_bits(bits)
               : c->lo + (c->hi - c->lo) * ((double)(bits >> 11) * 0x1p-53);
  }
  if (c->lo == c->hi) memcpy(x, specials, sizeof specials);
  run(c->op, false, x, x, z, SAMPLES);
  double worst = 0, where = 0;
  for (int i = 0; i < SAMPLES; ++i) {
    double error = ulps(z[i], c->exact((long double)x[i]));
    if (error > worst) worst = error, where = x[i];
  }
  print_message("%s on [%g, %g]: %.3f ulp at %a\n", c->name, c->lo, c->hi,
                worst, where);
  if (worst > c->limit) fail_msg("%s is off", c->name);
}

static void test_unary(void** state) {
  (void)state;
  const case_t cases[] = {
      {"exponential", PESTLE_OP_EXP, expl, 2, 0, 0},
      {"exponential", PESTLE_OP_EXP, expl, 2, -746, 710},
      {"exponential", PESTLE_OP_EXP, expl, 2, -1, 1},
      {"exp2", PESTLE_OP_EXP2, exp2l, 1, 0, 0},
      {"exp2", PESTLE_OP_EXP2, exp2l, 1, -1076, 1025},
      {"exp2", PESTLE_OP_EXP2, exp2l, 1, -1, 1},
      {"exponential_minus_one", PESTLE_OP_EXPM1, expm1l, 2, 0, 0},
      {"exponential_minus_one", PESTLE_OP_EXPM1, expm1l, 2, -2, 2},
      {"exponential_minus_one", PESTLE_OP_EXPM1, expm1l, 2, -40, 710},
      {"log", PESTLE_OP_LOG, logl, 2, 0, 0},
      {"log", PESTLE_OP_LOG, logl, 2, 0.4, 2.5},
      {"log", PESTLE_OP_LOG, logl, 2, 0.999, 1.001},
      {"log_plus_one", PESTLE_OP_LOG1P, log1pl, 2, 0, 0},
      {"log_plus_one", PESTLE_OP_LOG1P, log1pl, 2, -1, 3},
      {"log_plus_one", PESTLE_OP_LOG1P, log1pl, 2, -1e-3, 1e-3},
      {"logistic", PESTLE_OP_LOGISTIC, logistic_exact, 2, 0, 0},
      {"logistic", PESTLE_OP_LOGISTIC, logistic_exact, 2, -40, 40},
      {"logistic", PESTLE_OP_LOGISTIC, logistic_exact, 2, -750, -690},
      {"tanh", PESTLE_OP_TANH, tanhl, 2, 0, 0},
      {"tanh", PESTLE_OP_TANH, tanhl, 2, -1, 1},
      {"tanh", PESTLE_OP_TANH, tanhl, 2, -22, 22},
      {"sine", PESTLE_OP_SINE, sinl, 2, 0, 0},
      {"sine", PESTLE_OP_SINE, sinl, 2, -10, 10},
      {"sine", PESTLE_OP_SINE, sinl, 2, -1e9, 1e9},
      {"cosine", PESTLE_OP_COSINE, cosl, 2, 0, 0},
      {"cosine", PESTLE_OP_COSINE, cosl, 2, -10, 10},
      {"cosine", PESTLE_OP_COSINE, cosl, 2, -1e12, 1e12},
      {"tan", PESTLE_OP_TAN, tanl, 2, 0, 0},
      {"tan", PESTLE_OP_TAN, tanl, 2, -10, 10},
      {"cbrt", PESTLE_OP_CBRT, cbrtl, 1, 0, 0},
      {"cbrt", PESTLE_OP_CBRT, cbrtl, 1, -10, 10},
      {"rsqrt", PESTLE_OP_RSQRT, rsqrt_exact, 2, 0, 0},
      {"erf", PESTLE_OP_ERF, erfl, 2, 0, 0},
      {"erf", PESTLE_OP_ERF, erfl, 2, -1.5, 1.5},
      {"erf", PESTLE_OP_ERF, erfl, 2, -6.5, 6.5},
      {"erfc", PESTLE_OP_ERFC, erfcl, 2, 0, 0},
      {"erfc", PESTLE_OP_ERFC, erfcl, 2, -7, 1},
      {"erfc", PESTLE_OP_ERFC, erfcl, 2, 0, 27.3},
      {"erf_inv", PESTLE_OP_ERF_INV, erf_inverse, 2, 0, 0},
      {"erf_inv", PESTLE_OP_ERF_INV, erf_inverse, 2, -1, 1},
      {"erf_inv", PESTLE_OP_ERF_INV, erf_inverse, 2, 0.99, 1},
      {"erf_inv", PESTLE_OP_ERF_INV, erf_inverse, 2, 1 - 1e-7, 1},
      {"erf_inv", PESTLE_OP_ERF_INV, erf_inverse, 2, 1 - 1e-12, 1},
  };
  double* x = malloc(SAMPLES * sizeof *x);
  double* z = malloc(SAMPLES * sizeof *z);
  for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c)
    check_unary(&cases[c], x, z);
  free(x);
  free(z);
}

// Half of the pairs are arbitrary bits, half near 1, where powers are finite;
// then all pairs of special values.
static void fill_pairs(double* x, double* y) {
  uint64_t state = 88172645463325252u;
  for (int i = 0; i < SAMPLES; ++i) {
    uint64_t a = next_random(&state), b = next_random(&state);
    if (i & 1) {
      a = (a & UINT64_C(0x807fffffffffffff)) | UINT64_C(0x3f80000000000000);
      b = (b & UINT64_C(0x807fffffffffffff)) | UINT64_C(0x4000000000000000);
    }
    x[i] = from_bits(a);
    y[i] = from_bits(b);
    if (i % 16 == 3) y[i] = rint(fmod(y[i], 400.0));
    // Close to 1 with large exponents: all of the logarithm's digits count.
    if (i % 8 == 5) {
      x[i] = 1 + ldexp((double)(int64_t)a, -63 - (int)(b & 15));
      y[i] = ldexp((double)(int64_t)b, -63 + 9 + (int)(b & 15));
    }
  }
  for (int i = 0; i < SPECIALS; ++i) {
    for (int j = 0; j < SPECIALS; ++j) {
      x[i * SPECIALS + j] = specials[i];
      y[i * SPECIALS + j] = specials[j];
    }
  }
}

static long double fmod_exact(long double x, long double y) {
  return (long double)fmod((double)x, (double)y);
}

static void test_binary(void** state) {
  (void)state;
  const struct {
    const char* name;
    pestle_op_t op;
    long double (*exact)(long double, long double);
    double limit;
  } cases[] = {
      {"power", PESTLE_OP_POWER, powl, 2},
      {"atan2", PESTLE_OP_ATAN2, atan2l, 2},
      {"remainder", PESTLE_OP_REMAINDER, fmod_exact, 0},
  };
  double* x = malloc(SAMPLES * sizeof *x);
  double* y = malloc(SAMPLES * sizeof *y);
  double* z = malloc(SAMPLES * sizeof *z);
  fill_pairs(x, y);
  for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
    run(cases[c].op, true, x, y, z, SAMPLES);
    double worst = 0;
    int where = 0;
    for (int i = 0; i < SAMPLES; ++i) {
      long double exact = cases[c].exact((long double)x[i], (long double)y[i]);
      double error = ulps(z[i], exact);
      if (error > worst) worst = error, where = i;
    }
    print_message("%s: %.3f ulp at %a, %a: %a\n", cases[c].name, worst,
                  x[where], y[where], z[where]);
    if (worst > cases[c].limit) fail_msg("%s is off", cases[c].name);
  }
  free(x);
  free(y);
  free(z);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_unary),
      cmocka_unit_test(test_binary),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

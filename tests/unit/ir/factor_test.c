// SPDX-License-Identifier: Apache-2.0
// qr, eigh and svd: types, and the reference's own arithmetic against the
// decomposition, op by op. tests/cli/linalg_test.py has them compiled, against
// numpy.
#include <math.h>

#include "ir/ref/ref.h"
#include "ir_test.h"

enum { MOST = 4096, RESULTS = 3 };

typedef struct outcome_t {
  double values[RESULTS][MOST];
} outcome_t;

static double a_data[MOST];
static float a_narrow[MOST];

// --- Types ---

#define GIVES(call, ...)                                           \
  do {                                                             \
    const pestle_type_t want_[] = {__VA_ARGS__};                   \
    assert_ok(call);                                               \
    for (size_t i_ = 0; i_ < sizeof(want_) / sizeof(*want_); ++i_) \
      assert_type(y[i_], want_[i_]);                               \
  } while (0)

#define BAD(call, ...) assert_error(call, INVALID_ARGUMENT, __VA_ARGS__)

#define QR(x, all) pestle_op_qr(&t.b, x, ATTRS(qr, .full = all), y, 2)
#define SVD(x, all) pestle_op_svd(&t.b, x, ATTRS(svd, .full = all), y, 3)
#define EIGH(x) pestle_op_eigh(&t.b, x, NULL, y, 2)

static void types(void** state) {
  (void)state;
  BEGIN(t, T(F32, 2, 5, 3), T(F64, 3, 4), T(F16, 3, 3), T(F64, 6, 6));
  pestle_value_t *y[3], **a = t.a;
  GIVES(QR(a[0], false), T(F32, 2, 5, 3), T(F32, 2, 3, 3));
  GIVES(QR(a[0], true), T(F32, 2, 5, 5), T(F32, 2, 5, 3));
  GIVES(QR(a[1], false), T(F64, 3, 3), T(F64, 3, 4));
  GIVES(SVD(a[0], false), T(F32, 2, 5, 3), T(F32, 2, 3), T(F32, 2, 3, 3));
  GIVES(SVD(a[0], true), T(F32, 2, 5, 5), T(F32, 2, 3), T(F32, 2, 3, 3));
  GIVES(SVD(a[1], true), T(F64, 3, 3), T(F64, 3), T(F64, 4, 4));
  GIVES(EIGH(a[3]), T(F64, 6), T(F64, 6, 6));
  BAD(QR(a[2], false), "of f32 or f64");
  BAD(SVD(a[2], false), "of f32 or f64");
  BAD(EIGH(a[2]), "of f32 or f64");
  BAD(EIGH(a[1]), "extents must be equal");
  ir_test_end(&t);
  BEGIN(u, T(F32, 3), T(F32, DYN, 4), T(F32, DYN, DYN));
  a = u.a;
#undef QR
#undef SVD
#undef EIGH
#define QR(x) pestle_op_qr(&u.b, x, NULL, y, 2)
#define SVD(x) pestle_op_svd(&u.b, x, NULL, y, 3)
#define EIGH(x) pestle_op_eigh(&u.b, x, NULL, y, 2)
  BAD(QR(a[0]), "rank 2 or more");
  GIVES(QR(a[1]), T(F32, DYN, DYN), T(F32, DYN, 4));
  GIVES(SVD(a[1]), T(F32, DYN, DYN), T(F32, DYN), T(F32, DYN, 4));
  GIVES(EIGH(a[2]), T(F32, DYN), T(F32, DYN, DYN));
  ir_test_end(&u);
}

// --- Values ---

static size_t load(const pestle_type_t* type, const void* data, double* out) {
  size_t count = (size_t)pestle_type_count(type);
  for (size_t i = 0; i < count; ++i) {
    out[i] = type->dtype == PESTLE_F64 ? ((const double*)data)[i]
                                       : (double)((const float*)data)[i];
  }
  return count;
}

static void evaluate(const ir_test_t* t, const pestle_type_t* types,
                     size_t count, bool wide, outcome_t* out) {
  static double room[RESULTS][MOST];
  void* results[] = {room[0], room[1], room[2]};
  const void* arguments[] = {wide ? (void*)a_data : (void*)a_narrow};
  memset(room, 0x7f, sizeof(room));
  assert_ok(pestle_ref_evaluate_function(pestle_allocator_system(), t->function,
                                         arguments, results));
  for (size_t i = 0; i < count; ++i)
    load(&types[i], room[i], out->values[i]);
}

static size_t build(ir_test_t* t, pestle_op_t op, bool flag,
                    pestle_value_t** y) {
  if (op == PESTLE_OP_QR) {
    assert_ok(pestle_op_qr(&t->b, t->a[0], ATTRS(qr, .full = flag), y, 2));
  } else if (op == PESTLE_OP_EIGH) {
    assert_ok(pestle_op_eigh(&t->b, t->a[0], ATTRS(eigh, .lower = flag), y, 2));
  } else {
    assert_ok(pestle_op_svd(&t->b, t->a[0], ATTRS(svd, .full = flag), y, 3));
  }
  return op == PESTLE_OP_SVD ? 3 : 2;
}

static double largest(const double* values, size_t count) {
  double out = 0;
  for (size_t i = 0; i < count; ++i)
    out = fmax(out, fabs(values[i]));
  return out;
}

// The composite as it is, and decomposed: values that stand apart have vectors
// that are what they are. |tolerance| is relative to a result's largest element.
static void compare(pestle_op_t op, bool flag, pestle_type_t type,
                    double tolerance) {
  static outcome_t whole, steps;
  BEGIN(t, type);
  pestle_value_t *y[RESULTS], *out[PESTLE_COMPOSITE_MAX_RESULTS];
  pestle_type_t types[RESULTS];
  bool wide = type.dtype == PESTLE_F64;
  size_t count = build(&t, op, flag, y);
  for (size_t i = 0; i < count; ++i)
    types[i] = *y[i]->type;
  assert_ok(pestle_op_return(&t.b, y, count, NULL));
  assert_ok(pestle_module_verify(t.module));
  evaluate(&t, types, count, wide, &whole);
  pestle_node_t* node = y[0]->node;
  assert_ok(pestle_decompose(node, out));
  for (size_t i = 0; i < count; ++i) {
    assert_true(pestle_type_equal(out[i]->type, &types[i]));
    pestle_value_replace_all_uses(pestle_node_result(node, i), out[i]);
  }
  pestle_node_erase(node);
  assert_ok(pestle_module_verify(t.module));
  evaluate(&t, types, count, wide, &steps);
  for (size_t r = 0; r < count; ++r) {
    size_t elements = (size_t)pestle_type_count(&types[r]);
    double size = largest(whole.values[r], elements);
    for (size_t i = 0; i < elements; ++i) {
      double e = whole.values[r][i], a = steps.values[r][i];
      if (isnan(e) && isnan(a)) continue;
      if (fabs(e - a) <= tolerance * size) continue;
      print_error("result %zu of %s, element %zu: %g, not %g\n", r,
                  pestle_op_info(op)->name, i, a, e);
      fail();
    }
  }
  ir_test_end(&t);
}

// Any numbers, so that matrices have all their ranks.
static void fill(double scale) {
  uint32_t state = 1;
  for (size_t i = 0; i < MOST; ++i) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    double at = (double)state / 4294967296.0 - 0.5;
    a_data[i] = at * scale;
    a_narrow[i] = (float)(at * scale);
  }
}

static const pestle_op_t ops[] = {PESTLE_OP_QR, PESTLE_OP_EIGH, PESTLE_OP_SVD};

static void all(pestle_type_t type, double tolerance) {
  for (size_t i = 0; i < 3; ++i) {
    bool square = type.dims[type.rank - 1] == type.dims[type.rank - 2];
    if (ops[i] == PESTLE_OP_EIGH && !square) continue;
    compare(ops[i], false, type, tolerance);
    compare(ops[i], true, type, tolerance);
  }
}

static void agrees(void** state) {
  (void)state;
  fill(1);
  all(T(F64, 6, 6), 1e-13);
  all(T(F64, 2, 7, 3), 1e-13);
  all(T(F64, 3, 7), 1e-13);
  all(T(F64, 1, 1), 1e-15);
  all(T(F64, 5, 1), 1e-15);
  all(T(F64, 1, 5), 1e-15);
  all(T(F32, 3, 5, 5), 4e-5);
  all(T(F32, 4, 9), 4e-5);
}

static void of_nothing(void** state) {
  (void)state;
  fill(1);
  all(T(F64, 0, 0), 0);
  all(T(F32, 0, 3, 3), 0);
  all(T(F64, 4, 0), 0);
  all(T(F64, 0, 3), 0);
}

// Squares of these numbers are none.
static void ranges(void** state) {
  (void)state;
  static const double scales[] = {1e-30, 1e30, 1e-200, 1e200};
  for (size_t i = 0; i < 4; ++i) {
    fill(scales[i]);
    all(T(F64, 5, 5), 1e-12);
    all(T(F64, 3, 5), 1e-12);
    if (i < 2) all(T(F32, 5, 5), 4e-5);
  }
}

static void not_finite(void** state) {
  (void)state;
  fill(1);
  a_data[3] = INFINITY;  // of the first matrix
  a_data[36] = NAN;      // of the third
  all(T(F64, 4, 4, 4), 1e-13);
}

// --- Failures ---

static pestle_status_t work_svd(ir_test_t* t) {
  pestle_value_t *y[3], *result[PESTLE_COMPOSITE_MAX_RESULTS];
  PESTLE_TRY(pestle_op_svd(&t->b, t->a[0], NULL, y, 3));
  size_t before = ir_test_node_count(t);
  uint32_t uses = t->a[0]->use_count;
  pestle_status_t status = pestle_decompose(y[0]->node, result);
  if (status) {
    assert_int_equal(ir_test_node_count(t), before);
    assert_int_equal(t->a[0]->use_count, uses);
  }
  return status;
}

static void survives_failures(void** state) {
  (void)state;
  pestle_type_t type = T(F32, 3, 3);
  ir_test_every_failure(&type, 1, work_svd);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(types),      cmocka_unit_test(agrees),
      cmocka_unit_test(of_nothing), cmocka_unit_test(ranges),
      cmocka_unit_test(not_finite), cmocka_unit_test(survives_failures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// Every scalar row that plugins/llvm says it has, on every dtype it says, over
// one, odd and full vectors with masked tails, against the interpreter.
#include "llvm_kernel.h"

enum { COUNT = 203 };

static pestle_target_caps_t caps, least;  // this CPU's; the least of all CPUs'

static pestle_dtype_t operand_type(pestle_op_t op, int i,
                                   pestle_dtype_t dtype) {
  return op == PESTLE_OP_SELECT && i == 0 ? PESTLE_I1 : dtype;
}

static bool is_test(pestle_op_t op) {
  return op == PESTLE_OP_IS_FINITE || op == PESTLE_OP_IS_NAN ||
         op == PESTLE_OP_EQ || op == PESTLE_OP_NE || op == PESTLE_OP_LT ||
         op == PESTLE_OP_LE || op == PESTLE_OP_GT || op == PESTLE_OP_GE;
}

// out[i] = op(in0[i], ...), |lanes| at a time, the last ones masked.
static pestle_kir_builder_t row_kernel(pestle_op_t op, unsigned arity,
                                       pestle_dtype_t dtype, unsigned lanes) {
  static const char* const names[] = {"in0", "in1", "in2"};
  pestle_kir_builder_t b = kernel("row");
  uint32_t in[3];
  for (unsigned i = 0; i < arity; ++i) {
    in[i] = global(&b, names[i], operand_type(op, (int)i, dtype), COUNT,
                   PESTLE_KIR_READONLY);
  }
  pestle_dtype_t result = is_test(op) ? PESTLE_I1 : dtype;
  uint32_t out = global(&b, "out", result, COUNT, 0);
  pestle_kir_id_t g = group(&b, (COUNT + lanes - 1) / lanes);
  pestle_kir_id_t at = pestle_kir_madi(&b, g, lanes, PESTLE_KIR_NONE);
  pestle_kir_id_t mask =
      lanes == 1 ? PESTLE_KIR_NONE
                 : pestle_kir_mask(&b, at, pestle_kir_index(&b, COUNT), lanes);
  pestle_kir_id_t x[3] = {PESTLE_KIR_NONE, PESTLE_KIR_NONE, PESTLE_KIR_NONE};
  for (unsigned i = 0; i < arity; ++i) {
    x[i] = pestle_kir_load(&b, in[i], lanes, at, mask, 0);
  }
  pestle_kir_id_t r = pestle_kir_scalar(&b, op, x[0], x[1], x[2]);
  pestle_kir_store(&b, out, at, r, mask, 0);
  pestle_kir_end(&b);
  return b;
}

static void check_row(pestle_op_t op, unsigned arity, pestle_dtype_t dtype,
                      unsigned lanes) {
  pestle_kir_builder_t b = row_kernel(op, arity, dtype, lanes);
  check_kernel(&b, fill_any, NULL);
}

static unsigned arity_of(pestle_op_t op) {
  return (unsigned)strlen(
      pestle_kir_op_info((unsigned)op + PESTLE_KIR_SCALAR_BASE).operands);
}

// One lane and long vectors on some dtypes, AVX2 where a vector is whole: each
// kernel is a compile of its own.
static bool is_worth(unsigned dtype, unsigned lanes) {
  bool common = dtype == PESTLE_F32 || dtype == PESTLE_I32 ||
                dtype == PESTLE_U8 || dtype == PESTLE_I64;
  llvm_cpu_count = lanes == 16 ? 2 : 1;
  return common || lanes == 3 || lanes == 16;
}

static void check_all(const pestle_op_t* ops, size_t count) {
  static const unsigned lanes[] = {1, 3, 16, 64};
  for (size_t o = 0; o < count; ++o) {
    uint32_t dtypes = caps.op_dtypes[PESTLE_KIR_SCALAR_BASE + (unsigned)ops[o]];
    for (unsigned d = 0; d < PESTLE_DTYPE_COUNT; ++d) {
      if (!(dtypes & pestle_dtype_bit((pestle_dtype_t)d))) continue;
      for (size_t l = 0; l < sizeof lanes / sizeof *lanes; ++l) {
        if (!is_worth(d, lanes[l])) continue;
        check_row(ops[o], arity_of(ops[o]), (pestle_dtype_t)d, lanes[l]);
      }
    }
  }
}

#define ROWS(name, ...)                             \
  static void name(void** state) {                  \
    static const pestle_op_t ops[] = {__VA_ARGS__}; \
    (void)state;                                    \
    check_all(ops, sizeof ops / sizeof *ops);       \
  }

ROWS(rows_arithmetic, PESTLE_OP_ADD, PESTLE_OP_SUBTRACT, PESTLE_OP_MULTIPLY,
     PESTLE_OP_FMA, PESTLE_OP_NEGATE, PESTLE_OP_ABS, PESTLE_OP_SIGN,
     PESTLE_OP_SQRT)
ROWS(rows_division, PESTLE_OP_DIVIDE, PESTLE_OP_REMAINDER)
ROWS(rows_order, PESTLE_OP_MAXIMUM, PESTLE_OP_MINIMUM, PESTLE_OP_CLAMP,
     PESTLE_OP_SELECT)
ROWS(rows_compare, PESTLE_OP_EQ, PESTLE_OP_NE, PESTLE_OP_LT, PESTLE_OP_LE,
     PESTLE_OP_GT, PESTLE_OP_GE, PESTLE_OP_IS_FINITE, PESTLE_OP_IS_NAN)
ROWS(rows_bits, PESTLE_OP_AND, PESTLE_OP_OR, PESTLE_OP_XOR, PESTLE_OP_NOT,
     PESTLE_OP_SHIFT_LEFT, PESTLE_OP_SHIFT_RIGHT_ARITHMETIC,
     PESTLE_OP_SHIFT_RIGHT_LOGICAL, PESTLE_OP_POPCNT, PESTLE_OP_CLZ)
ROWS(rows_round, PESTLE_OP_FLOOR, PESTLE_OP_CEIL, PESTLE_OP_ROUND_EVEN,
     PESTLE_OP_ROUND_AFZ, PESTLE_OP_TRUNC)

// What legalisation makes of the rows that the target lacks: arithmetic alone,
// which the loader sees to, since code that calls anything is refused. Both
// sides run the same instructions, so that they agree in every bit.
static void check_expanded(pestle_op_t op, pestle_dtype_t dtype,
                           unsigned lanes) {
  pestle_kir_builder_t b = row_kernel(op, arity_of(op), dtype, lanes), legal;
  assert_false(caps.op_dtypes[PESTLE_KIR_SCALAR_BASE + op] &
               pestle_dtype_bit((pestle_dtype_t)dtype));
  assert_ok(pestle_kir_finish(&b));
  assert_ok(
      pestle_kir_legalise(&b.view, &least, PESTLE_NUMERICS_DEFAULT, &legal));
  check_kernel(&legal, fill_any, NULL);
  pestle_kir_deinit(&b);
}

static void rows_expanded(void** state) {
  static const pestle_op_t ops[] = {
      PESTLE_OP_POWER, PESTLE_OP_ATAN2, PESTLE_OP_CBRT,     PESTLE_OP_EXP,
      PESTLE_OP_EXPM1, PESTLE_OP_LOG,   PESTLE_OP_LOG1P,    PESTLE_OP_LOGISTIC,
      PESTLE_OP_TANH,  PESTLE_OP_SINE,  PESTLE_OP_COSINE,   PESTLE_OP_TAN,
      PESTLE_OP_ERF,   PESTLE_OP_RSQRT, PESTLE_OP_REMAINDER};
  (void)state;
  llvm_cpu_count = 2;
  for (size_t i = 0; i < sizeof ops / sizeof *ops; ++i) {
    check_expanded(ops[i], PESTLE_F64, 1);
    check_expanded(ops[i], PESTLE_F64, 8);
    check_expanded(ops[i], PESTLE_F32, 16);
  }
}

// Casts between all pairs.
static void check_cast(pestle_dtype_t from, pestle_dtype_t to, unsigned lanes) {
  pestle_kir_builder_t b = kernel("cast");
  uint32_t in = global(&b, "in", from, COUNT, PESTLE_KIR_READONLY);
  uint32_t out = global(&b, "out", to, COUNT, 0);
  pestle_kir_id_t g = group(&b, (COUNT + lanes - 1) / lanes);
  pestle_kir_id_t at = pestle_kir_madi(&b, g, lanes, PESTLE_KIR_NONE);
  pestle_kir_id_t mask =
      pestle_kir_mask(&b, at, pestle_kir_index(&b, COUNT), lanes);
  pestle_kir_id_t x = pestle_kir_load(&b, in, lanes, at, mask, 0);
  pestle_kir_store(&b, out, at, pestle_kir_cast(&b, x, to), mask, 0);
  pestle_kir_end(&b);
  check_kernel(&b, fill_any, NULL);
}

static void casts(void** state) {
  (void)state;
  uint32_t dtypes = caps.op_dtypes[PESTLE_KIR_CAST];
  for (unsigned from = 0; from < PESTLE_PLUGIN_DTYPES; ++from) {
    for (unsigned to = 0; to < PESTLE_PLUGIN_DTYPES; ++to) {
      if (!(dtypes >> from & 1) || !(dtypes >> to & 1) || from == to) continue;
      llvm_cpu_count = 1;
      if (from % 3 == to % 3) {
        check_cast((pestle_dtype_t)from, (pestle_dtype_t)to, 1);
      }
      llvm_cpu_count = 2;
      check_cast((pestle_dtype_t)from, (pestle_dtype_t)to, 16);
    }
  }
}

// max and min against constants and with facts, where short forms are taken.
static void check_extreme(pestle_op_t op, pestle_dtype_t dtype, double value,
                          bool left) {
  pestle_kir_builder_t b = kernel("extreme");
  uint32_t in = global(&b, "in", dtype, COUNT, PESTLE_KIR_READONLY);
  uint32_t out = global(&b, "out", dtype, COUNT, 0);
  pestle_kir_id_t g = group(&b, COUNT);
  pestle_kir_id_t x = pestle_kir_load(&b, in, 1, g, PESTLE_KIR_NONE, 0);
  pestle_kir_id_t c = pestle_kir_float(&b, dtype, 1, value);
  pestle_kir_id_t r = left ? pestle_kir_scalar(&b, op, c, x, PESTLE_KIR_NONE)
                           : pestle_kir_scalar(&b, op, x, c, PESTLE_KIR_NONE);
  pestle_kir_store(&b, out, g, r, PESTLE_KIR_NONE, 0);
  pestle_kir_end(&b);
  check_kernel(&b, fill_any, NULL);
}

static void extremes_of_constants(void** state) {
  static const double values[] = {0.0, -0.0, 6.0, -1e-50, NAN, INFINITY};
  (void)state;
  for (size_t i = 0; i < sizeof values / sizeof *values; ++i) {
    for (int left = 0; left < 2; ++left) {
      check_extreme(PESTLE_OP_MAXIMUM, PESTLE_F32, values[i], left);
      check_extreme(PESTLE_OP_MINIMUM, PESTLE_F32, values[i], left);
      check_extreme(PESTLE_OP_MAXIMUM, PESTLE_F64, values[i], left);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_arithmetic),
      cmocka_unit_test(rows_division),
      cmocka_unit_test(rows_order),
      cmocka_unit_test(rows_compare),
      cmocka_unit_test(rows_bits),
      cmocka_unit_test(rows_round),
      cmocka_unit_test(rows_expanded),
      cmocka_unit_test(casts),
      cmocka_unit_test(extremes_of_constants),
  };
  int failed = llvm_setup(NULL);
  if (failed) return failed;
  caps.struct_size = sizeof caps;
  pestle_status_release(
      llvm_backend->target->describe(llvm_backend->self, NULL, &caps));
  least.struct_size = sizeof least;
  pestle_status_release(
      llvm_backend->target->describe(llvm_backend->self, "x86-64-v3", &least));
  return cmocka_run_group_tests(tests, NULL, llvm_teardown);
}

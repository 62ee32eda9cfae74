// SPDX-License-Identifier: Apache-2.0
// Every scalar row and cast that a plugin says it has, on every dtype, and what
// legalisation makes of the others, over one, odd and full vectors with masked
// tails, against the interpreter. One kernel holds all rows of a dtype, since
// each is a compile.
#ifndef PESTLE_TESTS_UNIT_PLUGINS_GPU_ROWS_H_
#define PESTLE_TESTS_UNIT_PLUGINS_GPU_ROWS_H_

#include "gpu_kernel.h"

enum { COUNT = 203 };

static inline pestle_kir_op_info_t row_info(unsigned op) {
  return pestle_kir_op_info(op + PESTLE_KIR_SCALAR_BASE);
}

static inline unsigned row_kinds(unsigned op) {
  static const unsigned table[] = {
#define K_ALL (PESTLE_KIND_BOOL | PESTLE_KIND_REAL | PESTLE_KIND_COMPLEX)
#define K_NUM (PESTLE_KIND_BOOL | PESTLE_KIND_REAL)
#define K_BITS (PESTLE_KIND_BOOL | PESTLE_KIND_INT)
#define K_FLOAT PESTLE_KIND_FLOAT
#define K_INT PESTLE_KIND_INT
#define PESTLE_SCALAR(NAME, op, mlir, n, RULE, KINDS, ...) KINDS,
#include "pestle/scalar.def"
  };
  return table[op];
}

static inline bool has_row(unsigned op, unsigned dtype) {
  return (caps.op_dtypes[PESTLE_KIR_SCALAR_BASE + op] &
          pestle_dtype_bit((pestle_dtype_t)dtype)) != 0;
}

// Kernels of all rows of |dtype|: those that the target has, or those that it
// has not. out_<row>[i] = row(in0[i], in1[i], in2[i]).
static inline void check_some_rows(pestle_dtype_t dtype, unsigned lanes,
                                   bool has, unsigned first, unsigned end) {
  static const char* const names[] = {"in0", "in1", "in2"};
  pestle_kir_builder_t b = kernel("rows");
  uint32_t in[3], flag, out[PESTLE_SCALAR_COUNT];
  unsigned count = 0;
  for (unsigned i = 0; i < 3; ++i)
    in[i] = global(&b, names[i], dtype, COUNT, PESTLE_KIR_READONLY);
  flag = global(&b, "flag", PESTLE_I1, COUNT, PESTLE_KIR_READONLY);
  for (unsigned op = 0; op < PESTLE_SCALAR_COUNT; ++op) {
    char name[64];
    out[op] = PESTLE_KIR_NONE;
    if (op < first || op >= end) continue;
    if (!pestle_dtype_is(dtype, row_kinds(op))) continue;
    if (has_row(op, dtype) != has) continue;
    // They are made of f64: a target without f64 lacks them.
    bool wide = op == PESTLE_OP_CBRT || op == PESTLE_OP_SINC;
    if (wide && !has && !has_row(PESTLE_OP_FMA, PESTLE_F64)) {
      continue;
    }
    bool test = op == PESTLE_OP_IS_FINITE || op == PESTLE_OP_IS_NAN ||
                (op >= PESTLE_OP_EQ && op <= PESTLE_OP_GE);
    snprintf(name, sizeof name, "out_%s", row_info(op).mnemonic);
    out[op] = global(&b, name, test ? PESTLE_I1 : dtype, COUNT, 0);
    ++count;
  }
  pestle_kir_id_t g = group(&b, (COUNT + lanes - 1) / lanes);
  pestle_kir_id_t at = pestle_kir_madi(&b, g, lanes, PESTLE_KIR_NONE);
  pestle_kir_id_t mask =
      lanes == 1 ? PESTLE_KIR_NONE
                 : pestle_kir_mask(&b, at, pestle_kir_index(&b, COUNT), lanes);
  pestle_kir_id_t x[3];
  for (unsigned i = 0; i < 3; ++i)
    x[i] = pestle_kir_load(&b, in[i], lanes, at, mask, 0);
  pestle_kir_id_t f = pestle_kir_load(&b, flag, lanes, at, mask, 0);
  for (unsigned op = 0; op < PESTLE_SCALAR_COUNT; ++op) {
    if (out[op] == PESTLE_KIR_NONE) continue;
    size_t arity = strlen(row_info(op).operands);
    bool select = op == PESTLE_OP_SELECT;
    pestle_kir_id_t r =
        pestle_kir_scalar(&b, (pestle_op_t)op, select ? f : x[0],
                          arity > 1 ? (select ? x[0] : x[1]) : PESTLE_KIR_NONE,
                          arity > 2 ? (select ? x[1] : x[2]) : PESTLE_KIR_NONE);
    pestle_kir_store(&b, out[op], at, r, mask, 0);
  }
  pestle_kir_end(&b);
  if (!count) {
    pestle_kir_deinit(&b);
  } else if (has) {
    check_kernel(&b, fill_any, NULL);
  } else {
    check_legalised(&b, fill_any, NULL);
  }
}

static inline void check_rows(pestle_dtype_t dtype, unsigned lanes, bool has) {
  unsigned most = gpu_most_arguments - 5;
  for (unsigned first = 0; first < PESTLE_SCALAR_COUNT; first += most) {
    check_some_rows(dtype, lanes, has, first, first + most);
  }
}

static inline bool is_value(unsigned dtype) {
  return (caps.storage_dtypes & pestle_dtype_bit((pestle_dtype_t)dtype)) != 0;
}

static inline void rows_native(void** state) {
  (void)state;
  for (unsigned d = 1; d < PESTLE_DTYPE_COUNT; ++d) {
    if (!is_value(d)) continue;
    check_rows((pestle_dtype_t)d, 1, true);
    if (d == PESTLE_F32 || d == PESTLE_I32 || d == PESTLE_U8) {
      check_rows((pestle_dtype_t)d, 3, true);
      check_rows((pestle_dtype_t)d, 4, true);
    }
  }
}

// Narrow floats all become f32: two of them stand for the others.
static inline void rows_legalised(void** state) {
  (void)state;
  for (unsigned d = 1; d < PESTLE_DTYPE_COUNT; ++d) {
    if (!is_value(d) || d == PESTLE_F64) continue;
    bool narrow = pestle_dtype_is((pestle_dtype_t)d, PESTLE_KIND_FLOAT) &&
                  d != PESTLE_F32 && d != PESTLE_F16 && d != PESTLE_F8E5M2FNUZ;
    if (!narrow) check_rows((pestle_dtype_t)d, 1, false);
  }
}

static inline void rows_legalised_f64(void** state) {
  (void)state;
  if (is_value(PESTLE_F64)) check_rows(PESTLE_F64, 1, false);
}

static inline void rows_legalised_narrow(void** state) {
  static const pestle_dtype_t dtypes[] = {PESTLE_BF16, PESTLE_F8E4M3FN,
                                          PESTLE_F8E5M2, PESTLE_F8E4M3FNUZ};
  (void)state;
  for (int i = 0; i < 4; ++i) {
    if (is_value(dtypes[i])) check_rows(dtypes[i], 1, false);
  }
}

// Others are cast by bits once they are legalised.
static inline bool is_cast(unsigned dtype) {
  return is_value(dtype) && (caps.op_dtypes[PESTLE_KIR_CAST] &
                             pestle_dtype_bit((pestle_dtype_t)dtype));
}

// Casts, and bitcasts between dtypes of as many bits.
static inline void check_casts(pestle_dtype_t from, bool bits) {
  pestle_kir_builder_t b = kernel("casts");
  uint32_t in = global(&b, "in", from, COUNT, PESTLE_KIR_READONLY);
  uint32_t out[PESTLE_DTYPE_COUNT];
  for (unsigned to = 1; to < PESTLE_DTYPE_COUNT; ++to) {
    char name[32];
    const pestle_dtype_info_t* info = pestle_dtype_info((pestle_dtype_t)to);
    snprintf(name, sizeof name, "to_%s", info->name);
    out[to] = PESTLE_KIR_NONE;
    if (!(bits ? is_value(to) : is_cast(to)) ||
        (bits && info->bits != pestle_dtype_info(from)->bits)) {
      continue;
    }
    out[to] = global(&b, name, (pestle_dtype_t)to, COUNT, 0);
  }
  pestle_kir_id_t g = group(&b, COUNT);
  pestle_kir_id_t x = pestle_kir_load(&b, in, 1, g, PESTLE_KIR_NONE, 0);
  for (unsigned to = 1; to < PESTLE_DTYPE_COUNT; ++to) {
    if (out[to] == PESTLE_KIR_NONE) continue;
    pestle_kir_id_t r = bits ? pestle_kir_bitcast(&b, x, (pestle_dtype_t)to)
                             : pestle_kir_cast(&b, x, (pestle_dtype_t)to);
    pestle_kir_store(&b, out[to], g, r, PESTLE_KIR_NONE, 0);
  }
  pestle_kir_end(&b);
  check_kernel(&b, fill_any, NULL);
}

static inline void casts(void** state) {
  (void)state;
  for (unsigned d = 1; d < PESTLE_DTYPE_COUNT; ++d) {
    if (!is_value(d)) continue;
    if (is_cast(d)) check_casts((pestle_dtype_t)d, false);
    check_casts((pestle_dtype_t)d, true);
  }
}

// Shifts, divisions and products by constants, where short forms are taken.
static inline void rows_by_constants(void** state) {
  static const pestle_op_t ops[] = {
      PESTLE_OP_DIVIDE,     PESTLE_OP_REMAINDER,
      PESTLE_OP_SHIFT_LEFT, PESTLE_OP_SHIFT_RIGHT_ARITHMETIC,
      PESTLE_OP_MULTIPLY,   PESTLE_OP_SHIFT_RIGHT_LOGICAL,
      PESTLE_OP_MAXIMUM,    PESTLE_OP_SUBTRACT};
  static const int64_t by[] = {0, 1, 3, 7, 31, 100, -1};
  (void)state;
  for (unsigned d = 1; d < PESTLE_DTYPE_COUNT; ++d) {
    if (!is_value(d) || !pestle_dtype_is((pestle_dtype_t)d, PESTLE_KIND_INT)) {
      continue;
    }
    pestle_kir_builder_t b = kernel("constants");
    pestle_dtype_t t = (pestle_dtype_t)d;
    enum { OPS = sizeof ops / sizeof *ops, BY = sizeof by / sizeof *by };
    uint32_t in = global(&b, "in", t, COUNT, PESTLE_KIR_READONLY);
    uint32_t out = global(&b, "out", t, COUNT * OPS * BY, 0);
    pestle_kir_id_t g = group(&b, COUNT);
    pestle_kir_id_t x = pestle_kir_load(&b, in, 1, g, PESTLE_KIR_NONE, 0);
    for (unsigned i = 0; i < OPS * BY; ++i) {
      pestle_kir_id_t c = pestle_kir_int(&b, t, 1, by[i % BY]);
      pestle_kir_id_t r =
          pestle_kir_scalar(&b, ops[i / BY], x, c, PESTLE_KIR_NONE);
      pestle_kir_id_t at =
          pestle_kir_madi(&b, g, OPS * BY, pestle_kir_index(&b, (int64_t)i));
      pestle_kir_store(&b, out, at, r, PESTLE_KIR_NONE, 0);
    }
    pestle_kir_end(&b);
    check_kernel(&b, fill_any, NULL);
  }
}

// Sums, products and quotients of floats with constants on either side, with
// themselves and with a false that became 0: no compiler may take x + 0 for x
// where x may be -0, x * 0 or 0 / x for 0 where it may be -0 or NaN, or x / 0 for
// what it likes.
static inline void check_float_constants(pestle_dtype_t t) {
  static const pestle_op_t ops[] = {PESTLE_OP_ADD, PESTLE_OP_SUBTRACT,
                                    PESTLE_OP_MULTIPLY, PESTLE_OP_DIVIDE};
  enum { OPS = sizeof ops / sizeof *ops, WITH = 5, ALL = 2 * WITH * OPS };
  pestle_kir_builder_t b = kernel("float_constants");
  uint32_t in = global(&b, "in", t, COUNT, PESTLE_KIR_READONLY);
  uint32_t out = global(&b, "out", t, COUNT * ALL, 0);
  pestle_kir_id_t none = PESTLE_KIR_NONE;
  pestle_kir_id_t g = group(&b, COUNT);
  pestle_kir_id_t x = pestle_kir_load(&b, in, 1, g, none, 0);
  pestle_kir_id_t never = pestle_kir_scalar(&b, PESTLE_OP_LT, x, x, none);
  const pestle_kir_id_t with[WITH] = {
      pestle_kir_float(&b, t, 1, 0.0), pestle_kir_float(&b, t, 1, -0.0),
      pestle_kir_float(&b, t, 1, 1.0), x, pestle_kir_cast(&b, never, t)};
  for (unsigned i = 0; i < ALL; ++i) {
    pestle_op_t op = ops[i / 2 / WITH];
    pestle_kir_id_t c = with[i / 2 % WITH];
    pestle_kir_id_t r =
        pestle_kir_scalar(&b, op, i % 2 ? c : x, i % 2 ? x : c, none);
    pestle_kir_id_t at =
        pestle_kir_madi(&b, g, ALL, pestle_kir_index(&b, (int64_t)i));
    pestle_kir_store(&b, out, at, r, none, 0);
  }
  pestle_kir_end(&b);
  check_legalised(&b, fill_any, NULL);
}

static inline void floats_by_constants(void** state) {
  (void)state;
  check_float_constants(PESTLE_F32);
  if (is_value(PESTLE_F64)) check_float_constants(PESTLE_F64);
  if (is_value(PESTLE_BF16)) check_float_constants(PESTLE_BF16);
}

#define GPU_ROW_TESTS cmocka_unit_test(rows_native)
#define GPU_CAST_TESTS                                          \
  cmocka_unit_test(casts), cmocka_unit_test(rows_by_constants), \
      cmocka_unit_test(floats_by_constants)
#define GPU_MATH_TESTS cmocka_unit_test(rows_legalised)
#define GPU_MATH_LONG_TESTS \
  cmocka_unit_test(rows_legalised_f64), cmocka_unit_test(rows_legalised_narrow)

#endif  // PESTLE_TESTS_UNIT_PLUGINS_GPU_ROWS_H_

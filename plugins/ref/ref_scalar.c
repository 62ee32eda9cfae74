// SPDX-License-Identifier: Apache-2.0
// Every scalar row as a loop over lanes, one for each class: the expressions
// of scalar.def, expanded. One lane of i1 is a uint64_t, 0 or 1.
#include "plugins/ref/ref_internal.h"
#include "plugins/ref/ref_math.h"

#define LOOP(name, R, A, T, expr)                                       \
  static void name(void* restrict out_, const void* a_, const void* b_, \
                   const void* c_, size_t count, uint64_t W) {          \
    R* restrict out = out_;                                             \
    const A* pa = a_;                                                   \
    const T* pb = b_;                                                   \
    const T* pc = c_;                                                   \
    (void)W;                                                            \
    for (size_t i = 0; i < count; ++i) {                                \
      const A a = pa[i];                                                \
      const T b = pb[i];                                                \
      const T c = pc[i];                                                \
      (void)a, (void)b, (void)c;                                        \
      out[i] = (R)(expr);                                               \
    }                                                                   \
  }
#define LOOP_SAME(name, T, expr) LOOP(name, T, T, T, expr)
#define LOOP_CLAMP(name, T, expr) LOOP(name, T, T, T, expr)
#define LOOP_COMPARE(name, T, expr) LOOP(name, uint64_t, T, T, expr)
#define LOOP_TEST(name, T, expr) LOOP(name, uint64_t, T, T, expr)
#define LOOP_SELECT(name, T, expr) LOOP(name, T, uint64_t, T, expr)

#define M(f) f32_##f
#define F_MAX f32_max
#define F_MIN f32_min
#define F_SIGN f32_sign
#define PESTLE_SCALAR(NAME, op, mlir, n, RULE, KINDS, FLAGS, F, S, U) \
  LOOP_##RULE(loop_f32_##op, float, F)
#include "pestle/scalar.def"
#undef M
#undef F_MAX
#undef F_MIN
#undef F_SIGN

#define M(f) f64_##f
#define F_MAX f64_max
#define F_MIN f64_min
#define F_SIGN f64_sign
#define PESTLE_SCALAR(NAME, op, mlir, n, RULE, KINDS, FLAGS, F, S, U) \
  LOOP_##RULE(loop_f64_##op, double, F)
#include "pestle/scalar.def"
#undef M
#undef F_MAX
#undef F_MIN
#undef F_SIGN

#define PESTLE_SCALAR(NAME, op, mlir, n, RULE, KINDS, FLAGS, F, S, U) \
  LOOP_##RULE(loop_i64_##op, int64_t, S)
#include "pestle/scalar.def"

#define PESTLE_SCALAR(NAME, op, mlir, n, RULE, KINDS, FLAGS, F, S, U) \
  LOOP_##RULE(loop_u64_##op, uint64_t, U)
#include "pestle/scalar.def"

ref_fn_t pestle_ref_plugin_scalar(pestle_op_t op, ref_class_t kind) {
  static const ref_fn_t loops[PESTLE_SCALAR_COUNT][REF_CLASS_COUNT] = {
#define PESTLE_SCALAR(NAME, op, ...) \
  [PESTLE_OP_##                      \
      NAME] = {loop_f32_##op, loop_f64_##op, loop_i64_##op, loop_u64_##op},
#include "pestle/scalar.def"
  };
  return loops[op][kind];
}

// --- Approximations ---

// Clears low bits of finite numbers that are not denormal.
static void cut(float* out, size_t count, uint32_t bits) {
  for (size_t i = 0; i < count; ++i) {
    uint32_t word;
    memcpy(&word, &out[i], sizeof word);
    uint32_t exponent = word & 0x7f800000u;
    if (exponent != 0 && exponent != 0x7f800000u) word &= ~bits;
    memcpy(&out[i], &word, sizeof word);
  }
}

static void flush(float* out, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (fabsf(out[i]) < 0x1p-126f) out[i] = copysignf(0, out[i]);
  }
}

static void cut_one(void* out, const void* a, const void* b, const void* c,
                    size_t count, uint64_t flushes) {
  (void)a, (void)b, (void)c;
  cut(out, count, 1);
  if (flushes) flush(out, count);
}

static void cut_most(void* out, const void* a, const void* b, const void* c,
                     size_t count, uint64_t arg) {
  (void)a, (void)b, (void)c, (void)arg;
  cut(out, count, (1u << 12) - 1);
}

ref_fn_t pestle_ref_plugin_approx(pestle_op_t op) {
  if (op == PESTLE_OP_TANH) return cut_most;
  return op == PESTLE_OP_EXP2 || op == PESTLE_OP_DIVIDE ? cut_one : NULL;
}

// --- Back to the narrower type ---

static void fix_signed(void* out_, const void* a, const void* b, const void* c,
                       size_t count, uint64_t width) {
  int64_t* out = out_;
  (void)a, (void)b, (void)c;
  for (size_t i = 0; i < count; ++i) {
    out[i] = sign_extend((uint64_t)out[i], width);
  }
}

static void fix_unsigned(void* out_, const void* a, const void* b,
                         const void* c, size_t count, uint64_t width) {
  uint64_t* out = out_;
  (void)a, (void)b, (void)c;
  for (size_t i = 0; i < count; ++i)
    out[i] &= low_mask(width);
}

static void fix_float(void* out_, const void* a, const void* b, const void* c,
                      size_t count, uint64_t dtype) {
  float* out = out_;
  (void)a, (void)b, (void)c;
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits = pestle_ref_plugin_encode((unsigned)dtype, (double)out[i]);
    out[i] = pestle_ref_plugin_decode((unsigned)dtype, bits);
  }
}

ref_fn_t pestle_ref_plugin_fix(unsigned dtype) {
  if (dtype == PESTLE_F32) return NULL;
  switch (pestle_ref_plugin_class(dtype)) {
    case REF_F32:
      return fix_float;
    case REF_I64:
      return pestle_dtype_info((pestle_dtype_t)dtype)->bits < 64 ? fix_signed
                                                                 : NULL;
    case REF_U64:
      return pestle_dtype_info((pestle_dtype_t)dtype)->bits < 64 ? fix_unsigned
                                                                 : NULL;
    case REF_F64:
    case REF_CLASS_COUNT:
      return NULL;
  }
  return NULL;
}

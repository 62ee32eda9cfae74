// SPDX-License-Identifier: Apache-2.0
// Scalar rows that the target lacks, out of rows that it has. Transcendental
// ones are in vector_math.c.
#include "codegen/legalise/legalise.h"
#include "codegen/legalise/vector_math.h"
#include "codegen/legalise/vector_math_internal.h"

static bool is_float(pestle_dtype_t dtype) {
  return pestle_dtype_is(dtype, PESTLE_KIND_FLOAT);
}

// The integer as wide as a float of |dtype|.
static pestle_dtype_t int_as_wide(pestle_dtype_t dtype) {
  return dtype == PESTLE_F64 ? PESTLE_I64 : PESTLE_I32;
}

// 1, -1, or x itself: zeros keep their sign and NaN stays.
static vm_id_t sign(vm_t v, vm_id_t x) {
  bool fractions = is_float(v.dtype);
  vm_id_t zero = pestle_kir_const(v.k, v.dtype, v.lanes, 0, 0);
  vm_id_t one = pestle_kir_const(v.k, v.dtype, v.lanes, 1, 1);
  vm_id_t above = vm_op2(v, PESTLE_OP_GT, x, zero);
  vm_id_t r = fractions ? x : zero;
  if (!pestle_dtype_is(v.dtype, PESTLE_KIND_UNSIGNED)) {
    vm_id_t minus = pestle_kir_const(v.k, v.dtype, v.lanes, -1, -1);
    vm_id_t below = vm_op2(v, PESTLE_OP_LT, x, zero);
    r = vm_select(v, below, minus, r);
  }
  return vm_select(v, above, one, r);
}

// Of equals the bits decide, which differ for zeros alone; a sum of a NaN is
// one.
static vm_id_t extremum(vm_t v, vm_id_t a, vm_id_t b, bool most) {
  vm_id_t greater = vm_op2(v, most ? PESTLE_OP_GT : PESTLE_OP_LT, a, b);
  if (!is_float(v.dtype)) return vm_select(v, greater, a, b);
  vm_id_t less = vm_op2(v, most ? PESTLE_OP_LT : PESTLE_OP_GT, a, b);
  vm_id_t equal = vm_op2(v, PESTLE_OP_EQ, a, b);
  pestle_dtype_t as_int = int_as_wide(v.dtype);
  vm_id_t a_bits = vm_bits(v, a, as_int);
  vm_id_t b_bits = vm_bits(v, b, as_int);
  vm_id_t bits = vm_op2(v, most ? PESTLE_OP_AND : PESTLE_OP_OR, a_bits, b_bits);
  vm_id_t same = vm_bits(v, bits, v.dtype);
  vm_id_t sum = vm_add(v, a, b);
  vm_id_t r = vm_select(v, equal, same, sum);
  r = vm_select(v, less, b, r);
  return vm_select(v, greater, a, r);
}

static vm_id_t trunc_row(vm_t v, vm_id_t x) {
  vm_id_t up = vm_op1(v, PESTLE_OP_CEIL, x);
  vm_id_t down = vm_op1(v, PESTLE_OP_FLOOR, x);
  vm_id_t negative = vm_op2f(v, PESTLE_OP_LT, x, 0.0);
  return vm_select(v, negative, up, down);
}

// One more than trunc where at least a half was cut off, which is exact.
static vm_id_t round_away(vm_t v, vm_id_t x) {
  vm_id_t t = vm_op1(v, PESTLE_OP_TRUNC, x);
  vm_id_t rest = vm_sub(v, x, t);
  rest = vm_abs(v, rest);
  vm_id_t half = vm_op2f(v, PESTLE_OP_GE, rest, 0.5);
  vm_id_t step = vm_const(v, 1.0);
  step = vm_copy_sign(v, step, x, int_as_wide(v.dtype));
  vm_id_t further = vm_add(v, t, step);
  return vm_select(v, half, further, t);
}

// Sums of neighbouring bits, pairs, nibbles, bytes.
static vm_id_t popcnt(vm_t v, vm_id_t x) {
  unsigned bits = pestle_dtype_info(v.dtype)->bits;
  const uint64_t masks[] = {
      UINT64_C(0x5555555555555555), UINT64_C(0x3333333333333333),
      UINT64_C(0x0f0f0f0f0f0f0f0f), UINT64_C(0x00ff00ff00ff00ff),
      UINT64_C(0x0000ffff0000ffff), UINT64_C(0x00000000ffffffff)};
  for (unsigned i = 0; (1u << i) < bits; ++i) {
    vm_id_t low = vm_op2i(v, PESTLE_OP_AND, x, (int64_t)masks[i]);
    vm_id_t high = vm_op2i(v, PESTLE_OP_SHIFT_RIGHT_LOGICAL, x, 1 << i);
    high = vm_op2i(v, PESTLE_OP_AND, high, (int64_t)masks[i]);
    x = vm_add(v, low, high);
  }
  return x;
}

// The leading one is smeared to the right; what is left over is counted.
static vm_id_t clz(vm_t v, vm_id_t x) {
  unsigned bits = pestle_dtype_info(v.dtype)->bits;
  for (unsigned shift = 1; shift < bits; shift *= 2) {
    vm_id_t right = vm_op2i(v, PESTLE_OP_SHIFT_RIGHT_LOGICAL, x, shift);
    x = vm_op2(v, PESTLE_OP_OR, x, right);
  }
  x = vm_op1(v, PESTLE_OP_NOT, x);
  return vm_op1(v, PESTLE_OP_POPCNT, x);
}

// By squaring, for every bit of the exponent; a negative one gives what rounds
// towards zero: 0 but for bases 1 and -1.
static vm_id_t int_power(vm_t v, vm_id_t a, vm_id_t b) {
  unsigned bits = pestle_dtype_info(v.dtype)->bits;
  vm_id_t one = vm_int(v, 1), base = a, power = one;
  for (unsigned i = 0; i < bits; ++i) {
    vm_id_t bit = vm_op2i(v, PESTLE_OP_SHIFT_RIGHT_LOGICAL, b, i);
    bit = vm_op2i(v, PESTLE_OP_AND, bit, 1);
    vm_id_t taken = vm_op2i(v, PESTLE_OP_NE, bit, 0);
    vm_id_t product = vm_mul(v, power, base);
    power = vm_select(v, taken, product, power);
    if (i + 1 < bits) base = vm_mul(v, base, base);
  }
  if (!pestle_dtype_is(v.dtype, PESTLE_KIND_SIGNED)) return power;
  vm_id_t zero = vm_int(v, 0), minus_one = vm_int(v, -1);
  vm_id_t odd = vm_op2i(v, PESTLE_OP_AND, b, 1);
  odd = vm_op2i(v, PESTLE_OP_NE, odd, 0);
  vm_id_t alternate = vm_select(v, odd, minus_one, one);
  vm_id_t is_minus = vm_op2(v, PESTLE_OP_EQ, a, minus_one);
  vm_id_t is_one = vm_op2(v, PESTLE_OP_EQ, a, one);
  vm_id_t inverse = vm_select(v, is_minus, alternate, zero);
  inverse = vm_select(v, is_one, one, inverse);
  vm_id_t negative = vm_op2(v, PESTLE_OP_LT, b, zero);
  return vm_select(v, negative, inverse, power);
}

static vm_id_t clamp(vm_t v, const vm_id_t a[3]) {
  vm_id_t r = vm_op2(v, PESTLE_OP_MAXIMUM, a[1], a[0]);
  return vm_op2(v, PESTLE_OP_MINIMUM, r, a[2]);
}

static vm_id_t is_finite(vm_t v, vm_id_t x) {
  vm_id_t size = vm_abs(v, x);
  return vm_op2f(v, PESTLE_OP_LT, size, (double)INFINITY);
}

// The rows that are left take the same facts: contract and reassoc say nothing
// about them, nnan and its kin hold for the parts where they hold for the
// whole.
static bool expand(pestle_rewrite_t* r, pestle_op_t op, const vm_id_t a[3],
                   pestle_kir_id_t* out_id) {
  vm_t v = {r->to, pestle_kir_type_of(r->to, a[0]),
            pestle_kir_lanes_of(r->to, a[0]), false};
  bool fractions = is_float(v.dtype), needs_f64;
  if (pestle_vector_math_has(op, v.dtype, &needs_f64)) {
    if (needs_f64 && !pestle_rewrite_can_row(r, PESTLE_OP_FMA, PESTLE_F64)) {
      return false;
    }
    bool scales = pestle_rewrite_can(r, PESTLE_KIR_SCALE, PESTLE_F32);
    return pestle_vector_math(r->to, op, a, scales, out_id);
  }
  if (op == PESTLE_OP_SIGN) {
    *out_id = sign(v, a[0]);
  } else if (op == PESTLE_OP_MAXIMUM || op == PESTLE_OP_MINIMUM) {
    *out_id = extremum(v, a[0], a[1], op == PESTLE_OP_MAXIMUM);
  } else if (op == PESTLE_OP_CLAMP) {
    *out_id = clamp(v, a);
  } else if (op == PESTLE_OP_IS_NAN) {
    *out_id = vm_op2(v, PESTLE_OP_NE, a[0], a[0]);
  } else if (op == PESTLE_OP_IS_FINITE) {
    *out_id = is_finite(v, a[0]);
  } else if (op == PESTLE_OP_TRUNC) {
    *out_id = trunc_row(v, a[0]);
  } else if (op == PESTLE_OP_ROUND_AFZ) {
    *out_id = round_away(v, a[0]);
  } else if (op == PESTLE_OP_POPCNT) {
    *out_id = popcnt(v, a[0]);
  } else if (op == PESTLE_OP_CLZ) {
    *out_id = clz(v, a[0]);
  } else if (op == PESTLE_OP_POWER && !fractions) {
    *out_id = int_power(v, a[0], a[1]);
  } else {
    return false;
  }
  return true;
}

// --- Sums ---

static bool is_one(const pestle_kir_t* k, pestle_kir_id_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(k, id);
  if (inst->op != PESTLE_KIR_CONST) return false;
  double value = pestle_kir_const_float(inst);
  return value >= 1 && value <= 1;
}

// How often each value of |r->from| is used.
static void count_uses(pestle_rewrite_t* r) {
  if (!pestle_vec_resize(&r->uses, r->from->inst_count)) {
    r->to->failed = true;
    return;
  }
  memset(r->uses.data, 0, r->uses.size * sizeof(r->uses.data[0]));
  for (uint32_t i = 0; i < r->from->inst_count; ++i) {
    const pestle_kir_inst_t* inst = pestle_kir_inst(r->from, i);
    const char* letters = pestle_kir_op_info(inst->op).operands;
    for (int a = 0; letters[a]; ++a) {
      bool value = pestle_kir_is_value(letters[a]);
      if (value && inst->arg[a] < r->uses.size) ++r->uses.data[inst->arg[a]];
    }
  }
}

// The x of an |inst| that is erf(x) + 1 in f32 where the target lacks erf and nothing
// else uses that one: its own expansion is dropped as what nobody uses.
static bool is_erf_plus_one(pestle_rewrite_t* r, const pestle_kir_inst_t* inst,
                            pestle_kir_id_t* out_x) {
  if (inst->op != pestle_kir_code(PESTLE_OP_ADD) || inst->type != PESTLE_F32 ||
      r->numerics == PESTLE_NUMERICS_STRICT) {
    return false;
  }
  for (int side = 0; side < 2; ++side) {
    const pestle_kir_inst_t* erf = pestle_kir_inst(r->from, inst->arg[side]);
    if (erf->op != pestle_kir_code(PESTLE_OP_ERF) ||
        pestle_rewrite_legal(r, erf) || !is_one(r->from, inst->arg[1 - side])) {
      continue;
    }
    if (!r->uses.size) count_uses(r);
    if (r->to->failed || r->uses.data[inst->arg[side]] != 1) return false;
    *out_x = r->map.data[erf->arg[0]];
    return true;
  }
  return false;
}

static vm_id_t erf_plus_one(pestle_rewrite_t* r, vm_id_t x) {
  vm_t v = {r->to, PESTLE_F32, pestle_kir_lanes_of(r->to, x),
            pestle_rewrite_can(r, PESTLE_KIR_SCALE, PESTLE_F32)};
  return pestle_vm_erf_plus_one(v, x);
}

// --- Short dot products ---

static bool is_dot(unsigned op) {
  return op == PESTLE_KIR_DOT2 || op == PESTLE_KIR_DOT4;
}

// Element |i| of each word of |x|: a byte as i32, a bf16 as f32.
static vm_id_t word_element(vm_t v, vm_id_t x, unsigned op, unsigned i,
                            bool is_signed) {
  unsigned bits = op == PESTLE_KIR_DOT2 ? 16 : 8;
  if (32 - bits * (i + 1)) {
    x = vm_op2i(v, PESTLE_OP_SHIFT_LEFT, x, (int64_t)(32 - bits * (i + 1)));
  }
  if (op == PESTLE_KIR_DOT2) {
    x = vm_op2i(v, PESTLE_OP_AND, x, (int64_t)INT32_MIN >> 15);
    return vm_bits(v, x, PESTLE_F32);
  }
  return vm_op2i(v,
                 is_signed ? PESTLE_OP_SHIFT_RIGHT_ARITHMETIC
                           : PESTLE_OP_SHIFT_RIGHT_LOGICAL,
                 x, 24);
}

// A product and a sum for each element.
static vm_id_t expand_dot(pestle_rewrite_t* r, const pestle_kir_inst_t* inst) {
  bool floats = inst->op == PESTLE_KIR_DOT2;
  vm_t words = {r->to, PESTLE_I32, inst->lanes, false};
  vm_t sums = {r->to, floats ? PESTLE_F32 : PESTLE_I32, inst->lanes, false};
  vm_id_t sum = inst->arg[2];
  for (unsigned i = 0; i < (floats ? 2u : 4u); ++i) {
    vm_id_t a = word_element(words, inst->arg[0], inst->op, i,
                             inst->arg[3] & PESTLE_KIR_DOT4_A_SIGNED);
    vm_id_t b = word_element(words, inst->arg[1], inst->op, i,
                             inst->arg[3] & PESTLE_KIR_DOT4_B_SIGNED);
    sum = vm_add(sums, sum, vm_mul(sums, a, b));
  }
  return sum;
}

static bool needed(pestle_rewrite_t* r) {
  pestle_op_t op;
  for (uint32_t i = 0; i < r->from->inst_count; ++i) {
    const pestle_kir_inst_t* inst = pestle_kir_inst(r->from, i);
    bool row = pestle_kir_is_scalar(inst->op, &op) || is_dot(inst->op) ||
               inst->op == PESTLE_KIR_MREG_STREAM;
    if (row && !pestle_rewrite_legal(r, inst)) return true;
  }
  return false;
}

static pestle_status_t rewrite_inst(pestle_rewrite_t* r, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(r->from, id);
  pestle_kir_inst_t mapped = pestle_rewrite_mapped(r, inst);
  pestle_kir_id_t value;
  pestle_op_t op;
  const unsigned exact = PESTLE_KIR_NNAN | PESTLE_KIR_NINF | PESTLE_KIR_NSZ;
  bool plus_one = is_erf_plus_one(r, inst, &value);
  if (plus_one ||
      (pestle_kir_is_scalar(inst->op, &op) && !pestle_rewrite_legal(r, inst))) {
    r->to->facts = inst->facts & (uint8_t)exact;
    bool done = true;
    if (plus_one) {
      value = erf_plus_one(r, value);
    } else {
      done = expand(r, op, mapped.arg, &value);
    }
    r->to->facts = 0;
    if (!done) return pestle_rewrite_unsupported(r, inst);
  } else if (is_dot(inst->op) && !pestle_rewrite_legal(r, inst)) {
    value = expand_dot(r, &mapped);
  } else {
    if (inst->op == PESTLE_KIR_MREG_STREAM && !pestle_rewrite_legal(r, inst)) {
      mapped.op = PESTLE_KIR_MREG_LOAD;
    }
    value = pestle_rewrite_put(r, mapped);
  }
  pestle_rewrite_set(r, id, value);
  return NULL;
}

const pestle_rewrite_pass_t pestle_legalise_row = {needed, NULL, rewrite_inst};

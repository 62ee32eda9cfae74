// SPDX-License-Identifier: Apache-2.0
// Rules about elementwise ops.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "passes/simplify.h"
#include "passes/util.h"

static pestle_value_t* operand(const pestle_node_t* node, size_t index) {
  return pestle_node_operand(node, index);
}
static const pestle_type_t* type_of(const pestle_node_t* node) {
  return node->results[0].type;
}
static bool is_float(const pestle_node_t* node) {
  return pestle_dtype_is(type_of(node)->dtype, PESTLE_KIND_FLOAT);
}
static bool is_int(const pestle_node_t* node) {
  return pestle_dtype_is(type_of(node)->dtype, PESTLE_KIND_INT);
}

// --- Identities ---

pestle_value_t* pestle_rule_constant_right(pestle_formula_t* f,
                                           pestle_node_t* node) {
  if (node->operand_count != 2 ||
      !(pestle_pass_info(node)->flags & PESTLE_OP_FLAG_COMM) ||
      !pestle_value_constant(operand(node, 0)) ||
      pestle_value_constant(operand(node, 1))) {
    return NULL;
  }
  return pestle_f_binary(f, (pestle_op_t)node->op, operand(node, 1),
                         operand(node, 0));
}

// Whether |value| is 0; of floats, whether it is the zero of that sign.
static bool is_zero(const pestle_node_t* node, const pestle_value_t* value,
                    bool negative) {
  double number;
  if (!is_float(node)) return pestle_pass_splat_is(value, 0);
  return pestle_pass_splat_f64(value, &number) && number >= 0 && number <= 0 &&
         (signbit(number) != 0) == negative;
}

// Floats: only -0 is the identity, since -0 + 0 is 0.
pestle_value_t* pestle_rule_add_zero(pestle_formula_t* f, pestle_node_t* node) {
  (void)f;
  return is_zero(node, operand(node, 1), true) ? operand(node, 0) : NULL;
}

pestle_value_t* pestle_rule_subtract_zero(pestle_formula_t* f,
                                          pestle_node_t* node) {
  (void)f;
  return is_zero(node, operand(node, 1), false) ? operand(node, 0) : NULL;
}

pestle_value_t* pestle_rule_subtract_self(pestle_formula_t* f,
                                          pestle_node_t* node) {
  if (!is_int(node) || operand(node, 0) != operand(node, 1)) return NULL;
  return pestle_f_number(f, type_of(node), 0);
}

pestle_value_t* pestle_rule_multiply_one(pestle_formula_t* f,
                                         pestle_node_t* node) {
  (void)f;
  if (type_of(node)->dtype == PESTLE_I1) return NULL;
  if (pestle_pass_splat_is(operand(node, 1), 1)) return operand(node, 0);
  return NULL;
}

// Not for floats: 0 * inf is NaN.
pestle_value_t* pestle_rule_multiply_zero(pestle_formula_t* f,
                                          pestle_node_t* node) {
  if (!is_int(node) || !pestle_pass_splat_is(operand(node, 1), 0)) return NULL;
  return pestle_f_number(f, type_of(node), 0);
}

pestle_value_t* pestle_rule_divide_one(pestle_formula_t* f,
                                       pestle_node_t* node) {
  (void)f;
  if (pestle_pass_splat_is(operand(node, 1), 1)) return operand(node, 0);
  return NULL;
}

// The binary exponents whose powers of two have a normal reciprocal.
static int reciprocal_range(pestle_dtype_t dtype) {
  if (dtype == PESTLE_F64) return 1022;
  if (dtype == PESTLE_F32 || dtype == PESTLE_BF16) return 126;
  return dtype == PESTLE_F16 ? 14 : -1;
}

pestle_value_t* pestle_rule_divide_power_of_two(pestle_formula_t* f,
                                                pestle_node_t* node) {
  double c;
  if (!pestle_pass_splat_f64(operand(node, 1), &c) || !isfinite(c)) return NULL;
  int exponent, range = reciprocal_range(type_of(node)->dtype);
  double mantissa = fabs(frexp(c, &exponent));
  if (mantissa > 0.5 || mantissa < 0.5 || abs(exponent - 1) > range) {
    return NULL;
  }
  return pestle_f_times(f, operand(node, 0), 1.0 / c);
}

static bool regroups_exactly(const pestle_node_t* node) {
  switch (node->op) {
    case PESTLE_OP_MAXIMUM:
    case PESTLE_OP_MINIMUM:
      return true;
    case PESTLE_OP_ADD:
    case PESTLE_OP_MULTIPLY:
    case PESTLE_OP_AND:
    case PESTLE_OP_OR:
    case PESTLE_OP_XOR:
      return !is_float(node);
    default:
      return false;
  }
}

pestle_value_t* pestle_rule_merge_constants(pestle_formula_t* f,
                                            pestle_node_t* node) {
  if (!regroups_exactly(node)) return NULL;
  const pestle_node_t* inner = operand(node, 0)->node;
  if (!inner || inner->op != node->op ||
      !pestle_value_constant(operand(node, 1)) ||
      !pestle_value_constant(operand(inner, 1)) ||
      pestle_value_constant(operand(inner, 0))) {
    return NULL;
  }
  pestle_op_t op = (pestle_op_t)node->op;
  pestle_value_t* both =
      pestle_f_binary(f, op, operand(inner, 1), operand(node, 1));
  return pestle_f_binary(f, op, operand(inner, 0), both);
}

// --- Signs and powers ---

// What |node| is the second inverse of; NULL: nothing.
static pestle_value_t* drop_twice(const pestle_node_t* node) {
  return pestle_pass_through(operand(node, 0), (pestle_op_t)node->op);
}

pestle_value_t* pestle_rule_negate_negate(pestle_formula_t* f,
                                          pestle_node_t* node) {
  (void)f;
  // What has no negative numbers is NaN once negated.
  const pestle_float_format_t* format =
      pestle_float_format(type_of(node)->dtype);
  if (format && format->specials == PESTLE_FLOAT_SCALE) return NULL;
  return drop_twice(node);
}

pestle_value_t* pestle_rule_not_not(pestle_formula_t* f, pestle_node_t* node) {
  (void)f;
  return drop_twice(node);
}

pestle_value_t* pestle_rule_abs_sign(pestle_formula_t* f, pestle_node_t* node) {
  pestle_value_t* x = pestle_pass_through(operand(node, 0), PESTLE_OP_NEGATE);
  // What is negated without a sign is another number.
  if (pestle_dtype_is(type_of(node)->dtype, PESTLE_KIND_UNSIGNED) &&
      !PESTLE_FAULT(sign_of_unsigned)) {
    x = NULL;
  }
  if (x) return pestle_f_abs(f, x);
  if (pestle_pass_is(operand(node, 0), PESTLE_OP_ABS)) return operand(node, 0);
  return NULL;
}

// x * x is exact in double for narrower floats, so both round once. The f64
// pow() is not correctly rounded: see power_small.
pestle_value_t* pestle_rule_power_square(pestle_formula_t* f,
                                         pestle_node_t* node) {
  pestle_value_t* x = operand(node, 0);
  if (pestle_pass_splat_is(operand(node, 1), 1)) {
    return x;
  }
  if (type_of(node)->dtype == PESTLE_F64 ||
      !pestle_pass_splat_is(operand(node, 1), 2)) {
    return NULL;
  }
  return pestle_f_multiply(f, x, x);
}

pestle_value_t* pestle_rule_power_of_two(pestle_formula_t* f,
                                         pestle_node_t* node) {
  if (!pestle_dtype_is(type_of(node)->dtype, PESTLE_KIND_FLOAT) ||
      !pestle_pass_splat_is(operand(node, 0), 2)) {
    return NULL;
  }
  return pestle_f_exp2(f, operand(node, 1));
}

pestle_value_t* pestle_rule_power_small(pestle_formula_t* f,
                                        pestle_node_t* node) {
  pestle_value_t* x = operand(node, 0);
  double exponent;
  if (!pestle_pass_splat_f64(operand(node, 1), &exponent)) return NULL;
  // A NaN is none of these.
  bool whole = exponent >= 2 && exponent <= 4 && floor(exponent) >= exponent;
  if (!whole) return NULL;
  pestle_value_t* square = pestle_f_multiply(f, x, x);
  if (exponent <= 2) return square;
  return pestle_f_multiply(f, square, exponent <= 3 ? x : square);
}

// Whether every element is +0, positive or NaN: then sqrt is pow(, 0.5).
static bool is_nonnegative(const pestle_value_t* value, int depth) {
  double number;
  if (pestle_pass_splat_f64(value, &number))
    return number >= 0 && !signbit(number);
  const pestle_node_t* n = value->node;
  if (!n || depth > 6) return false;
  switch (n->op) {
    case PESTLE_OP_ABS:
    case PESTLE_OP_EXP:
    case PESTLE_OP_EXP2:
    case PESTLE_OP_LOGISTIC:
      return true;
    case PESTLE_OP_MULTIPLY:
      if (operand(n, 0) == operand(n, 1)) return true;
      return is_nonnegative(operand(n, 0), depth + 1) &&
             is_nonnegative(operand(n, 1), depth + 1);
    case PESTLE_OP_ADD:
    case PESTLE_OP_DIVIDE:
    case PESTLE_OP_REDUCE:
      if (n->operand_count != 2 ||
          (n->op == PESTLE_OP_REDUCE &&
           pestle_block_reduce_op(pestle_node_body(n, 0)) != PESTLE_OP_ADD)) {
        return false;
      }
      return is_nonnegative(operand(n, 0), depth + 1) &&
             is_nonnegative(operand(n, 1), depth + 1);
    case PESTLE_OP_SQRT:
    case PESTLE_OP_BROADCAST_IN_DIM:
    case PESTLE_OP_RESHAPE:
    case PESTLE_OP_TRANSPOSE:
      return is_nonnegative(operand(n, 0), depth + 1);
    default:
      return false;
  }
}

pestle_value_t* pestle_rule_power_root(pestle_formula_t* f,
                                       pestle_node_t* node) {
  double exponent;
  if (type_of(node)->dtype == PESTLE_F64 ||
      !pestle_pass_splat_f64(operand(node, 1), &exponent) ||
      !(exponent >= 0.5 && exponent <= 0.5) ||
      !is_nonnegative(operand(node, 0), 0)) {
    return NULL;
  }
  return pestle_f_sqrt(f, operand(node, 0));
}

// --- Bounds ---

pestle_value_t* pestle_rule_idempotent(pestle_formula_t* f,
                                       pestle_node_t* node) {
  (void)f;
  if ((pestle_pass_info(node)->flags & PESTLE_OP_FLAG_IDEM) &&
      operand(node, 0) == operand(node, 1)) {
    return operand(node, 0);
  }
  return NULL;
}

static bool is_infinity(const pestle_value_t* value, bool negative) {
  double number;
  return pestle_pass_splat_f64(value, &number) && isinf(number) &&
         (signbit(number) != 0) == negative;
}

pestle_value_t* pestle_rule_bound_absent(pestle_formula_t* f,
                                         pestle_node_t* node) {
  (void)f;
  bool maximum = node->op == PESTLE_OP_MAXIMUM;
  if ((maximum || node->op == PESTLE_OP_MINIMUM) &&
      is_infinity(operand(node, 1), maximum)) {
    return operand(node, 0);
  }
  return NULL;
}

static pestle_value_t* make_clamp(pestle_formula_t* f,
                                  const pestle_node_t* node, pestle_value_t* x,
                                  double lo, double hi) {
  pestle_dtype_t dtype = type_of(node)->dtype;
  pestle_value_t* low = pestle_f_scalar(f, dtype, lo);
  pestle_value_t* high = pestle_f_scalar(f, dtype, hi);
  return pestle_f_clamp(f, low, x, high);
}

pestle_value_t* pestle_rule_minimum_of_maximum(pestle_formula_t* f,
                                               pestle_node_t* node) {
  const pestle_node_t* inner = operand(node, 0)->node;
  double lo, hi;
  if (!inner || inner->op != PESTLE_OP_MAXIMUM ||
      !pestle_pass_splat_f64(operand(inner, 1), &lo) ||
      !pestle_pass_splat_f64(operand(node, 1), &hi) || !(lo < hi)) {
    return NULL;
  }
  return make_clamp(f, node, operand(inner, 0), lo, hi);
}

pestle_value_t* pestle_rule_maximum_of_minimum(pestle_formula_t* f,
                                               pestle_node_t* node) {
  const pestle_node_t* inner = operand(node, 0)->node;
  double lo, hi;
  if (!inner || inner->op != PESTLE_OP_MINIMUM ||
      !pestle_pass_splat_f64(operand(node, 1), &lo) ||
      !pestle_pass_splat_f64(operand(inner, 1), &hi) || !(lo < hi)) {
    return NULL;
  }
  return make_clamp(f, node, operand(inner, 0), lo, hi);
}

pestle_value_t* pestle_rule_clamp_half(pestle_formula_t* f,
                                       pestle_node_t* node) {
  double bound;
  if (is_infinity(operand(node, 2), false) &&
      pestle_pass_splat_f64(operand(node, 0), &bound)) {
    pestle_value_t* splat = pestle_f_number(f, type_of(node), bound);
    return pestle_f_maximum(f, operand(node, 1), splat);
  }
  if (is_infinity(operand(node, 0), true) &&
      pestle_pass_splat_f64(operand(node, 2), &bound)) {
    pestle_value_t* splat = pestle_f_number(f, type_of(node), bound);
    return pestle_f_minimum(f, operand(node, 1), splat);
  }
  return NULL;
}

// --- Logic ---

pestle_value_t* pestle_rule_logic_constant(pestle_formula_t* f,
                                           pestle_node_t* node) {
  (void)f;
  int64_t c;
  if ((node->op != PESTLE_OP_AND && node->op != PESTLE_OP_OR) ||
      type_of(node)->dtype != PESTLE_I1 ||
      !pestle_pass_splat_i64(operand(node, 1), &c)) {
    return NULL;
  }
  bool keeps = (node->op == PESTLE_OP_AND) == (c != 0);
  pestle_value_t* kept = operand(node, keeps ? 0 : 1);
  if (kept->type == type_of(node)) return kept;
  return NULL;
}

pestle_value_t* pestle_rule_select_constant(pestle_formula_t* f,
                                            pestle_node_t* node) {
  (void)f;
  int64_t c;
  if (pestle_pass_splat_i64(operand(node, 0), &c)) {
    return operand(node, c ? 1 : 2);
  }
  return NULL;
}

pestle_value_t* pestle_rule_select_same(pestle_formula_t* f,
                                        pestle_node_t* node) {
  (void)f;
  if (operand(node, 1) == operand(node, 2)) return operand(node, 1);
  return NULL;
}

// A choice between truths is and, or, or the predicate itself.
pestle_value_t* pestle_rule_select_logic(pestle_formula_t* f,
                                         pestle_node_t* node) {
  int64_t yes = 2, no = 2;
  pestle_value_t* p = operand(node, 0);
  if (type_of(node)->dtype != PESTLE_I1 || p->type != type_of(node)) {
    return NULL;
  }
  (void)pestle_pass_splat_i64(operand(node, 1), &yes);
  (void)pestle_pass_splat_i64(operand(node, 2), &no);
  if (yes == 2 && no == 0) {
    return pestle_f_and(f, p, operand(node, 1));
  }
  if (yes == 1 && no == 2) {
    return pestle_f_or(f, p, operand(node, 2));
  }
  if (yes == 1 && no == 0) return p;
  return yes == 0 && no == 1 ? pestle_f_not(f, p) : NULL;
}

pestle_value_t* pestle_rule_select_not(pestle_formula_t* f,
                                       pestle_node_t* node) {
  pestle_value_t* p = pestle_pass_through(operand(node, 0), PESTLE_OP_NOT);
  if (!p) return NULL;
  return pestle_f_select(f, p, operand(node, 2), operand(node, 1));
}

// --- Conversions ---

pestle_value_t* pestle_rule_convert_same(pestle_formula_t* f,
                                         pestle_node_t* node) {
  (void)f;
  if (operand(node, 0)->type == type_of(node)) return operand(node, 0);
  return NULL;
}

// Two constants are converted before one is chosen, which costs nothing then.
pestle_value_t* pestle_rule_convert_select(pestle_formula_t* f,
                                           pestle_node_t* node) {
  pestle_value_t* x = operand(node, 0);
  if (!pestle_pass_is(x, PESTLE_OP_SELECT) || x->use_count != 1) return NULL;
  pestle_value_t* operands[] = {operand(x->node, 0), NULL, NULL};
  for (size_t i = 1; i < 3; ++i) {
    const pestle_elements_t* e = pestle_value_constant(operand(x->node, i));
    if (!e || !e->splat) return NULL;
  }
  for (size_t i = 1; i < 3; ++i) {
    operands[i] =
        pestle_f_convert(f, operand(x->node, i), type_of(node)->dtype);
  }
  return pestle_f_select(f, operands[0], operands[1], operands[2]);
}

pestle_value_t* pestle_rule_bitcast_same(pestle_formula_t* f,
                                         pestle_node_t* node) {
  return pestle_rule_convert_same(f, node);
}

// Bits of precision of a float, for integers that must fit.
static unsigned significant_bits(pestle_dtype_t dtype) {
  if (dtype == PESTLE_F64) return 53;
  if (dtype == PESTLE_F32) return 24;
  if (dtype == PESTLE_F16) return 11;
  return dtype == PESTLE_BF16 ? 8 : 0;
}

static bool has_zero(pestle_dtype_t dtype) {
  const pestle_float_format_t* format = pestle_float_format(dtype);
  return !format || format->specials != PESTLE_FLOAT_SCALE;
}

// Whether every value of |from| is one of |to|.
static bool is_lossless(pestle_dtype_t from, pestle_dtype_t to) {
  const pestle_dtype_info_t* f = pestle_dtype_info(from);
  const pestle_dtype_info_t* t = pestle_dtype_info(to);
  if ((f->kind | t->kind) & (PESTLE_KIND_COMPLEX | PESTLE_KIND_OPAQUE)) {
    return false;
  }
  if (from == PESTLE_I1) return has_zero(to);
  if (to == PESTLE_I1) return false;
  if (t->kind == PESTLE_KIND_FLOAT) {
    // f16 holds 2^15, so 11 bits of an integer always fit.
    if (f->kind != PESTLE_KIND_FLOAT) return f->bits <= significant_bits(to);
    return to == PESTLE_F64 || (to == PESTLE_F32 && f->bits <= 16);
  }
  if (f->kind == PESTLE_KIND_FLOAT) return false;
  if (f->kind == t->kind) return f->bits <= t->bits;
  return f->kind == PESTLE_KIND_UNSIGNED && f->bits < t->bits;
}

pestle_value_t* pestle_rule_convert_convert(pestle_formula_t* f,
                                            pestle_node_t* node) {
  pestle_value_t* x = pestle_pass_through(operand(node, 0), PESTLE_OP_CONVERT);
  if (!x) return NULL;
  pestle_dtype_t from = x->type->dtype, to = type_of(node)->dtype;
  pestle_dtype_t between = operand(node, 0)->type->dtype;
  if (!is_lossless(from, between)) return NULL;
  // Floats stop at the ends of an integer's range, where integers wrap.
  bool wraps = !pestle_dtype_is(from, PESTLE_KIND_FLOAT) &&
               pestle_dtype_is(between, PESTLE_KIND_FLOAT) &&
               pestle_dtype_is(to, PESTLE_KIND_INT);
  if (wraps && !is_lossless(from, to)) return NULL;
  return pestle_f_convert(f, x, type_of(node)->dtype);
}

// --- Broadcasts ---

// The broadcast that all operands have in common, or NULL. Splat constants and
// operands of rank 0 where the op allows them fit any.
static const pestle_node_t* common_broadcast(const pestle_node_t* node) {
  const pestle_node_t* common = NULL;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    const pestle_value_t* v = operand(node, i);
    const pestle_elements_t* e = pestle_value_constant(v);
    if (e && e->splat) continue;
    if (v->type->rank == 0 && type_of(node)->rank > 0) continue;
    if (!pestle_pass_is(v, PESTLE_OP_BROADCAST_IN_DIM)) return NULL;
    if (!common) {
      common = v->node;
    } else if (!pestle_pass_same_dims(operand(common, 0)->type,
                                      operand(v->node, 0)->type) ||
               !pestle_i64s_equal(
                   PESTLE_NODE_I64S(common, broadcast_dimensions),
                   PESTLE_NODE_I64S(v->node, broadcast_dimensions))) {
      return NULL;
    }
  }
  return common;
}

static pestle_value_t* before_broadcast(pestle_formula_t* f, pestle_value_t* v,
                                        const pestle_type_t* dims) {
  if (pestle_pass_is(v, PESTLE_OP_BROADCAST_IN_DIM)) {
    return operand(v->node, 0);
  }
  const pestle_elements_t* e = pestle_value_constant(v);
  if (!e || !e->splat || v->type->rank == 0) return v;
  pestle_elements_t smaller = *e;
  smaller.type = *dims;
  smaller.type.dtype = e->type.dtype;
  return pestle_f_elements(f, &smaller);
}

// Work on the small side: op(broadcast a, broadcast b) = broadcast(op(a, b)).
pestle_value_t* pestle_rule_hoist_broadcast(pestle_formula_t* f,
                                            pestle_node_t* node) {
  if (!node->operand_count || node->operand_count > 3) return NULL;
  if (node->region_count) return NULL;
  if (operand(node, 0)->type->rank > type_of(node)->rank) return NULL;
  const pestle_node_t* broadcast = common_broadcast(node);
  // A bitcast to another width has an axis more or less.
  if (!broadcast ||
      !pestle_pass_same_dims(broadcast->results[0].type, type_of(node))) {
    return NULL;
  }
  pestle_type_t small = *operand(broadcast, 0)->type;
  if (pestle_type_count(&small) >= pestle_type_count(type_of(node))) {
    return NULL;
  }
  pestle_value_t* operands[3];
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    operands[i] = before_broadcast(f, operand(node, i), &small);
  }
  small.dtype = type_of(node)->dtype;
  pestle_value_t* result = pestle_f_like(f, node, operands, &small);
  return pestle_f_broadcast_to(
      f, result, type_of(node),
      PESTLE_NODE_I64S(broadcast, broadcast_dimensions).data);
}

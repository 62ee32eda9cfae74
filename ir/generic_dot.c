// SPDX-License-Identifier: Apache-2.0
// Products of operands of several element types: operands are brought to one type before, the
// result to its own behind. So are the inputs of folds; and what no row does on complex numbers.
//
//   dot_general %x, %w : (bf16, i8) -> f32    ->    %1 = convert %w : f32, ..
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "ir/dot_algorithm.h"
#include "ir/formula.h"
#include "ir/generic_internal.h"
#include "ir/internal.h"

typedef pestle_value_t pv_t;

static bool is_float(pestle_dtype_t dtype) {
  return pestle_dtype_is(dtype, PESTLE_KIND_FLOAT);
}

static bool is_int(pestle_dtype_t dtype) {
  return pestle_dtype_is(dtype, PESTLE_KIND_INT);
}

static size_t width(pestle_dtype_t dtype) {
  return pestle_dtype_info(dtype)->bits;
}

// The float that holds what |a| and |b| hold: the wider, f32 for two of one width.
static pestle_dtype_t common_float(pestle_dtype_t a, pestle_dtype_t b) {
  if (a == b || !is_float(b)) return a;
  if (!is_float(a)) return b;
  if (width(a) != width(b)) return width(a) > width(b) ? a : b;
  return PESTLE_F32;
}

// --- Types ---

// What both operands are multiplied in.
static pestle_dtype_t factors(pestle_dtype_t a, pestle_dtype_t b,
                              pestle_dtype_t result, pestle_dtype_t sum) {
  if (a == b && (sum != PESTLE_F64 || a == PESTLE_F64)) return a;
  pestle_dtype_t common = common_float(a, b);
  if (!is_float(common)) {
    bool kin = pestle_dtype_is(a, PESTLE_KIND_SIGNED) ==
               pestle_dtype_is(b, PESTLE_KIND_SIGNED);
    return kin && width(a) >= width(b) ? a : kin ? b : result;
  }
  common = common_float(common, result);
  return sum == PESTLE_NONE ? common : common_float(common, sum);
}

pestle_status_t pestle_generic_product(pestle_generic_t* g, pestle_builder_t* b,
                                       pv_t** operands, pestle_type_t* type,
                                       pestle_dtype_t* out_final) {
  pestle_formula_t f = pestle_formula_make(*b);
  pestle_dot_algorithm_t how = {.sum = PESTLE_NONE};
  *out_final = type->dtype;
  if (g->algorithm) {
    const char* text;
    PESTLE_TRY(pestle_dot_algorithm_text(g->arena, g->algorithm, &text));
    PESTLE_TRY(pestle_dot_algorithm_read(text, &how));
  }
  pestle_dtype_t l = operands[0]->type->dtype, r = operands[1]->type->dtype;
  bool known = (is_float(l) || is_int(l)) && (is_float(r) || is_int(r));
  // Of integers of 8 bits and fewer kernels take any two.
  bool small = is_int(l) && is_int(r) && width(l) <= 8 && width(r) <= 8;
  // So do they of these 8-bit floats, whose products an f32 holds.
  bool narrow = pestle_dot_is_f8(l) && pestle_dot_is_f8(r) &&
                type->dtype == PESTLE_F32 &&
                (how.sum == PESTLE_NONE || how.sum == PESTLE_F32);
  if (!known || narrow || (small && is_int(type->dtype))) return NULL;
  pestle_dtype_t common = factors(l, r, type->dtype, how.sum);
  for (size_t i = 0; i < 2; ++i)
    operands[i] = pestle_f_convert(&f, operands[i], common);
  // A product of floats is no integer, and one of integers no float.
  if (is_float(common) != is_float(type->dtype)) {
    type->dtype = is_float(common) ? common : PESTLE_I32;
  }
  return f.status;
}

// --- Folds whose regions are wider than their inputs ---

bool pestle_generic_folds(pestle_op_t op) {
  return op == PESTLE_OP_REDUCE || op == PESTLE_OP_REDUCE_WINDOW ||
         op == PESTLE_OP_SCATTER;
}

// Of scatter the indices stand between inputs and updates.
pestle_status_t pestle_generic_widen(pestle_op_t op, pestle_builder_t* b,
                                     pestle_value_t** operands, size_t count,
                                     const pestle_region_t* region) {
  const pestle_block_t* block = region->block;
  bool scatter = op == PESTLE_OP_SCATTER;
  size_t inputs = scatter ? (count - 1) / 2 : count / 2;
  if (!inputs || block->argument_count != 2 * inputs) return NULL;
  pestle_formula_t f = pestle_formula_make(*b);
  for (size_t i = 0; i < count; ++i) {
    if (scatter && i == inputs) continue;
    size_t of = scatter && i > inputs ? i - inputs - 1 : i % inputs;
    pestle_dtype_t to = block->arguments[of]->type->dtype;
    operands[i] = pestle_f_convert(&f, operands[i], to);
  }
  return f.status;
}

// --- Complex numbers in an order ---

// Whether |a| comes behind |b|, or holds NaN: by real, then by imaginary parts.
static pv_t* is_larger(pestle_formula_t* f, pv_t* a, pv_t* b) {
  pv_t* parts[4];
  for (size_t i = 0; i < 4; ++i) {
    parts[i] = pestle_f_unary(f, i < 2 ? PESTLE_OP_REAL : PESTLE_OP_IMAG,
                              i % 2 ? b : a);
  }
  pv_t* more = pestle_f_gt(f, parts[2], parts[3]);
  more = pestle_f_and(f, pestle_f_eq(f, parts[0], parts[1]), more);
  return pestle_f_or(f, pestle_f_gt(f, parts[0], parts[1]), more);
}

static pv_t* larger(pestle_formula_t* f, pv_t* a, pv_t* b, bool less) {
  pv_t* first = less ? is_larger(f, b, a) : is_larger(f, a, b);
  // NaN of either is the result.
  pv_t* nan = pestle_f_ne(f, a, a);
  first = pestle_f_or(f, first, nan);
  pv_t* other = pestle_f_ne(f, b, b);
  pv_t* y = pestle_f_select(f, first, a, b);
  pv_t* keep = pestle_f_and(f, other, pestle_f_not(f, nan));
  return pestle_f_select(f, keep, b, y);
}

static pv_t* part_of(pestle_formula_t* f, pv_t* z, bool im) {
  return pestle_f_unary(f, im ? PESTLE_OP_IMAG : PESTLE_OP_REAL, z);
}

static pv_t* joined(pestle_formula_t* f, pv_t* re, pv_t* im) {
  return pestle_f_binary(f, PESTLE_OP_COMPLEX, re, im);
}

// A power of two by which the squares of numbers whose largest part is |m| neither
// overflow nor vanish.
static pv_t* scale_of_squares(pestle_formula_t* f, pv_t* m) {
  if (!m) return NULL;
  bool wide = m->type->dtype == PESTLE_F64;
  pv_t* large = pestle_f_splat(f, m, ldexp(1, wide ? 500 : 60));
  large = pestle_f_gt(f, m, large);
  pv_t* small = pestle_f_splat(f, m, ldexp(1, wide ? -500 : -60));
  small = pestle_f_lt(f, m, small);
  pv_t* one = pestle_f_splat(f, m, 1);
  pv_t* up = pestle_f_splat(f, m, ldexp(1, wide ? 700 : 100));
  pv_t* down = pestle_f_splat(f, m, ldexp(1, wide ? -600 : -70));
  up = pestle_f_select(f, small, up, one);
  return pestle_f_select(f, large, down, up);
}

// -i log((x + i y) / sqrt(x^2 + y^2)); of real numbers what it is of those.
static pv_t* arc(pestle_formula_t* f, pv_t* y, pv_t* x) {
  pv_t* parts[4];
  for (size_t i = 0; i < 4; ++i)
    parts[i] = part_of(f, i < 2 ? y : x, i % 2);
  pv_t* m = pestle_f_abs(f, parts[0]);
  for (size_t i = 1; i < 4; ++i)
    m = pestle_f_maximum(f, m, pestle_f_abs(f, parts[i]));
  pv_t *by = scale_of_squares(f, m), *part[4];
  for (size_t i = 0; i < 4; ++i)
    part[i] = pestle_f_multiply(f, parts[i], by);
  y = joined(f, part[0], part[1]);
  x = joined(f, part[2], part[3]);
  pv_t* turned = joined(f, pestle_f_negate(f, part[1]), part[0]);
  pv_t* square = pestle_f_multiply(f, x, x);
  square = pestle_f_add(f, square, pestle_f_multiply(f, y, y));
  pv_t* z = pestle_f_add(f, x, turned);
  z = pestle_f_divide(f, z, pestle_f_sqrt(f, square));
  z = pestle_f_log(f, z);
  pv_t* level = pestle_f_is_zero(f, parts[1]);
  level = pestle_f_and(f, level, pestle_f_is_zero(f, parts[3]));
  pv_t* re = pestle_f_atan2(f, parts[0], parts[2]);
  re = pestle_f_select(f, level, re, part_of(f, z, true));
  pv_t* im = pestle_f_negate(f, part_of(f, z, false));
  im = pestle_f_select(f, level, parts[1], im);
  return joined(f, re, im);
}

bool pestle_generic_orders(pestle_op_t op, pestle_value_t* const* operands,
                           size_t count) {
  bool known = op == PESTLE_OP_MAXIMUM || op == PESTLE_OP_MINIMUM ||
               op == PESTLE_OP_ATAN2;
  return known && count == 2 && pestle_type_is_complex(operands[0]->type) &&
         operands[0]->type == operands[1]->type &&
         pestle_type_is_static(operands[0]->type);
}

pestle_status_t pestle_generic_order(pestle_op_t op, pestle_builder_t* b,
                                     pestle_value_t* const* operands,
                                     pestle_node_t** out_node) {
  pestle_formula_t f = pestle_formula_make(*b);
  pv_t* y = op == PESTLE_OP_ATAN2
                ? arc(&f, operands[0], operands[1])
                : larger(&f, operands[0], operands[1], op == PESTLE_OP_MINIMUM);
  if (y) *out_node = y->node;
  return f.status;
}

// SPDX-License-Identifier: Apache-2.0
// What `algorithm` of a dot_general asks for becomes ops that every target has.
//
//   %0 = dot_general %a, %b               %1 = reduce_precision %a    // to 8 and 10 bits
//        by one product of tf32      ->   %2 = reduce_precision %b
//                                         %0 = dot_general %1, %2
//
// Of bf16, f16 and others operands are converted. A product of tf32 keeps its algorithm
// where the target's units take such operands, which cut them themselves.
//
// Of a product of several parts, of f32 by bf16's units, a = a1 + a2 + a3 in bf16, and so b:
//
//   three products    a2 b1 + a1 b2, and a1 b1
//   six               a3 b1 + a1 b3 + a2 b2 before those
//   nine              a3 b3 + a3 b2 + a2 b3 before these
//
// All but the last are one product with several times the k, of operands that lie behind
// each other, the small ones first. Where that is not finite, as infinity times a part of 0,
// it counts as 0: a1 b1 says then what there is. Where the target has no such units, or
// little is multiplied, it is a product of f32, which has more digits.
#include <math.h>
#include <string.h>

#include "ir/dot_algorithm.h"
#include "passes/util.h"

enum {
  PARTS = 3,
  MOST_TERMS = 8,  // without the largest
  TF32_BITS = 10,
  BF16_BITS = 7,
  // Multiplications from which on parts are smaller than what they spare.
  LEAST_PRODUCTS = 1 << 24,
};

typedef pestle_value_t pv_t;

typedef struct algorithms_t {
  pestle_pass_context_t* ctx;
  bool tf32, bf16;  // units that multiply such operands
  bool* changed;
} algorithms_t;

static const pestle_type_t* type_of(const pestle_node_t* node, size_t operand) {
  return pestle_node_operand(node, operand)->type;
}

// --- One product ---

static pv_t* reduced(pestle_formula_t* f, pv_t* a, int64_t bits) {
  pestle_attr_t attrs[] = {PESTLE_SET_I64(exponent_bits, 8),
                           PESTLE_SET_I64(mantissa_bits, bits)};
  return pestle_f_make(f, PESTLE_OP_REDUCE_PRECISION, &a, 1, attrs, 2, NULL);
}

// |a| with no more digits than the algorithm's operand |side| has.
static pv_t* narrowed(pestle_formula_t* f, pv_t* a,
                      const pestle_dot_algorithm_t* how, size_t side) {
  pestle_dtype_t own = a->type->dtype, to = how->side[side];
  if (!pestle_dtype_is(own, PESTLE_KIND_FLOAT)) return a;
  // Two types of one width, f16 and bf16, do not hold each other.
  bool wider =
      own != to && pestle_dtype_info(own)->bits >= pestle_dtype_info(to)->bits;
  if (how->is_tf32[side]) {
    if (own != PESTLE_F32 && !wider) return a;
    return reduced(f, a, TF32_BITS);
  }
  return wider ? pestle_f_convert(f, a, to) : a;
}

// |node| of other operands, and by another algorithm.
static pv_t* dot_of(pestle_formula_t* f, const pestle_node_t* node, pv_t* a,
                    pv_t* b, const char* algorithm) {
  pestle_attr_t attrs[8];
  if (node->attr_count > sizeof attrs / sizeof *attrs) return NULL;
  memcpy(attrs, node->attrs, node->attr_count * sizeof *attrs);
  for (uint32_t i = 0; i < node->attr_count; ++i) {
    if (attrs[i].name == PESTLE_ATTR_algorithm) attrs[i].as.str = algorithm;
  }
  return pestle_f_make(f, PESTLE_OP_DOT_GENERAL, (pv_t*[]){a, b}, 2, attrs,
                       node->attr_count, node->results[0].type);
}

static pv_t* one_product(algorithms_t* w, pestle_formula_t* f,
                         const pestle_node_t* node,
                         const pestle_dot_algorithm_t* how) {
  pv_t *a = pestle_node_operand(node, 0), *b = pestle_node_operand(node, 1);
  if (w->tf32 && pestle_dot_is_tf32(node)) return NULL;  // stays
  a = narrowed(f, a, how, 0);
  b = narrowed(f, b, how, 1);
  if (f->status) return NULL;
  if (a->type->dtype == b->type->dtype) return dot_of(f, node, a, b, "");
  // They were of one type: what is narrower holds in the wider one.
  bool first = pestle_dtype_info(a->type->dtype)->bits >
               pestle_dtype_info(b->type->dtype)->bits;
  pestle_dtype_t to = (first ? a : b)->type->dtype;
  if (pestle_dtype_info(a->type->dtype)->bits ==
      pestle_dtype_info(b->type->dtype)->bits) {
    to = PESTLE_F32;
  }
  a = pestle_f_convert(f, a, to);
  b = pestle_f_convert(f, b, to);
  return dot_of(f, node, a, b, "");
}

// --- Several ---

// |x| as a sum of parts of bf16, or of f32 that units cut to tf32. What is not finite is in
// the first part alone, and what would be rounded to infinity is the largest number there.
static void split(pestle_formula_t* f, pv_t* x, bool tf32, pv_t* out[PARTS]) {
  pv_t* finite = pestle_f_is_finite(f, x);
  for (int i = 0; i < PARTS; ++i) {
    // The largest number of 11 bits, and of 8.
    double most = tf32 ? ldexp(2047, 117) : ldexp(255, 120);
    pv_t* low = pestle_f_maximum(f, x, pestle_f_splat(f, x, -most));
    low = pestle_f_minimum(f, low, pestle_f_splat(f, x, most));
    if (!i) low = pestle_f_select(f, finite, low, x);
    pv_t* wide = reduced(f, low, tf32 ? TF32_BITS : BF16_BITS);
    out[i] = tf32 ? wide : pestle_f_convert(f, wide, PESTLE_BF16);
    x = pestle_f_subtract(f, x, wide);
    if (f->status) return;
    if (!i) x = pestle_f_select(f, finite, x, pestle_f_splat(f, x, 0));
    if (f->status) return;
  }
}

// Which part of a, and of b: the smallest first.
static const uint8_t term[MOST_TERMS][2] = {{2, 2}, {2, 1}, {1, 2}, {2, 0},
                                            {0, 2}, {1, 1}, {1, 0}, {0, 1}};

static pv_t* behind_each_other(pestle_formula_t* f, pv_t* const part[PARTS],
                               size_t side, int64_t terms, int64_t axis) {
  pv_t* list[MOST_TERMS];
  for (int64_t i = 0; i < terms; ++i)
    list[i] = part[term[MOST_TERMS - terms + i][side]];
  return pestle_f_concatenate(f, list, (size_t)terms, axis);
}

static pv_t* several_products(pestle_formula_t* f, const pestle_node_t* node,
                              int64_t products, bool tf32) {
  static const char by_tf32[] =
      "lhs_precision_type = tf32, rhs_precision_type = tf32, "
      "accumulation_type = f32, lhs_component_count = 1, "
      "rhs_component_count = 1, num_primitive_operations = 1, "
      "allow_imprecise_accumulation = false";
  const char* algorithm = tf32 ? by_tf32 : "";
  pestle_i64s_t a_axes = PESTLE_NODE_I64S(node, lhs_contracting_dimensions);
  pestle_i64s_t b_axes = PESTLE_NODE_I64S(node, rhs_contracting_dimensions);
  int64_t terms = products - 1;
  pv_t *a[PARTS] = {NULL}, *b[PARTS] = {NULL};
  split(f, pestle_node_operand(node, 0), tf32, a);
  split(f, pestle_node_operand(node, 1), tf32, b);
  if (f->status) return NULL;
  pv_t* x = behind_each_other(f, a, 0, terms, a_axes.data[0]);
  pv_t* y = behind_each_other(f, b, 1, terms, b_axes.data[0]);
  if (f->status) return NULL;
  pv_t* small = dot_of(f, node, x, y, algorithm);
  pv_t* large = dot_of(f, node, a[0], b[0], algorithm);
  if (!small || !large) return NULL;
  pv_t* finite = pestle_f_is_finite(f, small);
  small = pestle_f_select(f, finite, small, pestle_f_splat(f, small, 0));
  return pestle_f_add(f, large, small);
}

// Whether parts pay: units multiply them, and much is multiplied.
static bool has_parts(const algorithms_t* w, const pestle_node_t* node,
                      const pestle_dot_algorithm_t* how) {
  const pestle_type_t *a = type_of(node, 0), *z = node->results[0].type;
  pestle_i64s_t axes = PESTLE_NODE_I64S(node, lhs_contracting_dimensions);
  if (!(how->is_tf32[0] ? w->tf32 : w->bf16) || a->dtype != PESTLE_F32 ||
      type_of(node, 1)->dtype != PESTLE_F32 || z->dtype != PESTLE_F32 ||
      !axes.count || !pestle_type_is_static(a) ||
      !pestle_type_is_static(type_of(node, 1))) {
    return false;
  }
  double work = (double)pestle_type_count(z);
  for (size_t i = 0; i < axes.count; ++i)
    work *= (double)a->dims[axes.data[i]];
  return work >= LEAST_PRODUCTS;
}

static pestle_status_t rewrite(algorithms_t* w, pestle_node_t* node) {
  pestle_dot_algorithm_t how;
  if (!pestle_dot_algorithm_of(node, &how)) return NULL;
  pestle_formula_t f = pestle_formula_before(node);
  pv_t *y, *a = pestle_node_operand(node, 0), *b = pestle_node_operand(node, 1);
  if (how.products == 1) {
    y = one_product(w, &f, node, &how);
    if (!y && !f.status) return NULL;
  } else if (has_parts(w, node, &how)) {
    y = several_products(&f, node, how.products, how.is_tf32[0]);
  } else {
    y = dot_of(&f, node, a, b, "");
  }
  PESTLE_TRY(f.status);
  pestle_pass_replace(node, &y);
  *w->changed = true;
  return NULL;
}

static pestle_status_t rewrite_block(void* user, pestle_module_t* module,
                                     pestle_block_t* block) {
  (void)module;
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    if (n->op == PESTLE_OP_DOT_GENERAL) PESTLE_TRY(rewrite(user, n));
  }
  return NULL;
}

pestle_status_t pestle_pass_dot_algorithms(pestle_pass_context_t* ctx,
                                           pestle_module_t* module,
                                           bool* out_changed) {
  bool strict = ctx->options->numerics == PESTLE_NUMERICS_STRICT;
  algorithms_t w = {ctx, !strict && pestle_pass_has_tf32_units(ctx),
                    !strict && pestle_pass_has_units(ctx, PESTLE_BF16),
                    out_changed};
  PESTLE_TRY(pestle_pass_each_block(module, rewrite_block, &w));
  return *out_changed ? pestle_pass_dce(ctx, module, out_changed) : NULL;
}

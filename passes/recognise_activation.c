// SPDX-License-Identifier: Apache-2.0
// Matchers of elementwise composites.
#include "passes/recognise.h"

static pestle_value_t* operand(const pestle_node_t* node, size_t index) {
  return pestle_node_operand(node, index);
}

static bool is_float_op(const pestle_node_t* node, pestle_op_t op) {
  return node && node->op == op &&
         pestle_dtype_is(node->results[0].type->dtype, PESTLE_KIND_FLOAT);
}

// --- Products, however they are nested ---

enum { MAX_FACTORS = 4 };

typedef struct product_t {
  pestle_value_t* factors[MAX_FACTORS];  // not constant
  size_t count;
  double constant;
} product_t;

// Multiplies |value| out; factors that do not fit make the match fail.
static bool expand(pestle_value_t* value, product_t* p, int depth) {
  double c;
  const pestle_node_t* n = value->node;
  if (pestle_pass_splat_f64(value, &c)) {
    p->constant *= c;
    return true;
  }
  if (n && depth < 4 && is_float_op(n, PESTLE_OP_MULTIPLY)) {
    return expand(operand(n, 0), p, depth + 1) &&
           expand(operand(n, 1), p, depth + 1);
  }
  if (n && depth < 4 && is_float_op(n, PESTLE_OP_DIVIDE) &&
      pestle_pass_splat_f64(operand(n, 1), &c) && (c < 0 || c > 0)) {
    p->constant /= c;
    return expand(operand(n, 0), p, depth + 1);
  }
  if (p->count == MAX_FACTORS) return false;
  p->factors[p->count++] = value;
  return true;
}

static bool expand_all(pestle_value_t* value, product_t* p) {
  *p = (product_t){.constant = 1};
  return expand(value, p, 0);
}

// |value| is constant * x^power.
static bool is_monomial(pestle_value_t* value, const pestle_value_t* x,
                        size_t power, double constant) {
  product_t p;
  const pestle_node_t* n = value->node;
  if (!expand_all(value, &p) ||
      !pestle_match_near(value, p.constant, constant, 2)) {
    return false;
  }
  if (p.count == 1 && power > 1) {
    n = p.factors[0]->node;
    return n && n->op == PESTLE_OP_POWER && operand(n, 0) == x &&
           pestle_pass_splat_is(operand(n, 1), (double)power);
  }
  for (size_t i = 0; i < p.count; ++i) {
    if (p.factors[i] != x) return false;
  }
  return p.count == power;
}

// |value| is t + 1: t's node.
static pestle_node_t* plus_one(pestle_value_t* value) {
  const pestle_node_t* n = value->node;
  if (!is_float_op(n, PESTLE_OP_ADD) ||
      !pestle_pass_splat_is(operand(n, 1), 1)) {
    return NULL;
  }
  return operand(n, 0)->node;
}

// --- GELU ---

static bool is_erf_part(pestle_value_t* value, const pestle_value_t* x) {
  const pestle_node_t* erf = plus_one(value);
  return is_float_op(erf, PESTLE_OP_ERF) &&
         is_monomial(operand(erf, 0), x, 1, 0.70710678118654752440);
}

// sqrt(2 / pi) * (x + 0.044715 x^3), or x * (1 + 0.044715 x^2) inside.
static bool is_tanh_part(pestle_value_t* value, const pestle_value_t* x) {
  const pestle_node_t* tanh = plus_one(value);
  product_t p;
  if (!is_float_op(tanh, PESTLE_OP_TANH) || !expand_all(operand(tanh, 0), &p) ||
      !pestle_match_near(value, p.constant, 0.79788456080286535588, 2)) {
    return false;
  }
  if (p.count == 2) {
    size_t other = p.factors[0] == x ? 1 : 0;
    const pestle_node_t* square = plus_one(p.factors[other]);
    return p.factors[1 - other] == x && square &&
           is_monomial(&((pestle_node_t*)square)->results[0], x, 2, 0.044715);
  }
  if (p.count != 1 || !is_float_op(p.factors[0]->node, PESTLE_OP_ADD)) {
    return false;
  }
  const pestle_node_t* sum = p.factors[0]->node;
  for (size_t side = 0; side < 2; ++side) {
    if (operand(sum, side) == x &&
        is_monomial(operand(sum, 1 - side), x, 3, 0.044715)) {
      return true;
    }
  }
  return false;
}

// x / 2 * (1 + erf(x / sqrt(2))), or the form with tanh.
pestle_value_t* pestle_match_gelu(pestle_formula_t* f, pestle_node_t* node,
                                  bool strict) {
  product_t p;
  if (strict || (!is_float_op(node, PESTLE_OP_MULTIPLY) &&
                 !is_float_op(node, PESTLE_OP_DIVIDE))) {
    return NULL;
  }
  if (!expand_all(&node->results[0], &p) || p.count != 2 ||
      !pestle_match_near(&node->results[0], p.constant, 0.5, 2)) {
    return NULL;
  }
  for (size_t i = 0; i < 2; ++i) {
    pestle_value_t* x = p.factors[i];
    bool erf = is_erf_part(p.factors[1 - i], x);
    if (!erf && !is_tanh_part(p.factors[1 - i], x)) continue;
    pestle_attr_t attr = PESTLE_SET_BOOL(approximate, !erf);
    return pestle_f_make(f, PESTLE_OP_GELU, &x, 1, &attr, 1, NULL);
  }
  return NULL;
}

// --- Logistic and its kin ---

// 1 / (1 + exp(-x))
pestle_value_t* pestle_match_logistic(pestle_formula_t* f, pestle_node_t* node,
                                      bool strict) {
  if (strict || !is_float_op(node, PESTLE_OP_DIVIDE) ||
      !pestle_pass_splat_is(operand(node, 0), 1)) {
    return NULL;
  }
  const pestle_node_t* e = plus_one(operand(node, 1));
  if (!is_float_op(e, PESTLE_OP_EXP)) return NULL;
  pestle_value_t* x = pestle_pass_through(operand(e, 0), PESTLE_OP_NEGATE);
  return x ? pestle_f_logistic(f, x) : NULL;
}

pestle_value_t* pestle_match_silu(pestle_formula_t* f, pestle_node_t* node,
                                  bool strict) {
  (void)strict;
  if (!is_float_op(node, PESTLE_OP_MULTIPLY)) return NULL;
  for (size_t side = 0; side < 2; ++side) {
    pestle_value_t* x = operand(node, side);
    if (pestle_pass_through(operand(node, 1 - side), PESTLE_OP_LOGISTIC) == x) {
      return pestle_f_make(f, PESTLE_OP_SILU, &x, 1, NULL, 0, NULL);
    }
  }
  return NULL;
}

// clamp(0, alpha * x + beta, 1)
pestle_value_t* pestle_match_hard_sigmoid(pestle_formula_t* f,
                                          pestle_node_t* node, bool strict) {
  (void)strict;
  double alpha, beta;
  if (!is_float_op(node, PESTLE_OP_CLAMP) ||
      !pestle_pass_splat_is(operand(node, 0), 0) ||
      !pestle_pass_splat_is(operand(node, 2), 1)) {
    return NULL;
  }
  const pestle_node_t* sum = operand(node, 1)->node;
  if (!is_float_op(sum, PESTLE_OP_ADD) ||
      !pestle_pass_splat_f64(operand(sum, 1), &beta)) {
    return NULL;
  }
  const pestle_node_t* product = operand(sum, 0)->node;
  if (!is_float_op(product, PESTLE_OP_MULTIPLY) ||
      !pestle_pass_splat_f64(operand(product, 1), &alpha)) {
    return NULL;
  }
  pestle_value_t* x = operand(product, 0);
  pestle_attr_t attrs[] = {PESTLE_SET_F64(alpha, alpha),
                           PESTLE_SET_F64(beta, beta)};
  return pestle_f_make(f, PESTLE_OP_HARD_SIGMOID, &x, 1, attrs, 2, NULL);
}

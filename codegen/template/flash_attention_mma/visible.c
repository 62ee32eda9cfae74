// SPDX-License-Identifier: Apache-2.0
// What a row of attention sees by where it is: keys up to its own, a window. Found
// in x, which is -inf elsewhere:
//
//   select(row + 7 >= key, 0.125 * score, -inf)
//
// So the weights of such keys are 0, and blocks of nothing else need not be
// made. (0 times a value that is no number would be none: as where peers leave
// such blocks out, it is not looked at.)
#include <math.h>

#include "codegen/template/flash_attention_mma/flash_attention_mma.h"

enum { MOST_TESTS = 4, MOST_COEF = 1 << 16 };

// Sum of coefficients times row and key, and a constant.
typedef struct linear_t {
  int64_t row, key, constant;
} linear_t;

typedef struct look_t {
  const pestle_nest_t* nest;
  const pestle_flash_attention_t* a;
} look_t;

static bool is_op(const pestle_expr_t* x, pestle_op_t op) {
  return x->kind == PESTLE_EXPR_OP && x->op == op;
}

static bool is_wide_int(unsigned dtype) {
  return dtype == PESTLE_I32 || dtype == PESTLE_I64 || dtype == PESTLE_INDEX;
}

static bool add_affine(const look_t* l, const pestle_affine_t* affine,
                       int64_t by, linear_t* out) {
  out->constant += by * affine->constant;
  for (uint32_t i = 0; i < affine->count; ++i) {
    const pestle_atom_t* atom = affine->terms[i].atom;
    if (atom->kind != PESTLE_ATOM_AXIS) return false;
    int64_t coef = by * affine->terms[i].coef;
    if (atom->axis == l->a->x_rows.reduce[0]) {
      out->row += coef;
    } else if (atom->axis == l->a->x_keys.reduce[0]) {
      out->key += coef;
    } else if (l->nest->axes.data[atom->axis].full_extent != 1) {
      return false;
    }
  }
  return true;
}

// Adds |by| times |x|, of small whole numbers.
static bool add_linear(const look_t* l, const pestle_expr_t* x, int64_t by,
                       linear_t* out) {
  if (!is_wide_int(x->dtype)) return false;
  switch ((pestle_expr_kind_t)x->kind) {
    case PESTLE_EXPR_CONST:
      if (x->i > INT32_MAX || x->i < INT32_MIN) return false;
      out->constant += by * x->i;
      return true;
    case PESTLE_EXPR_INDEX:
      return add_affine(l, x->affine, by, out);
    case PESTLE_EXPR_CAST:
      return add_linear(l, x->args[0], by, out);
    case PESTLE_EXPR_OP:
      if (x->op == PESTLE_OP_ADD || x->op == PESTLE_OP_SUBTRACT) {
        int64_t second = x->op == PESTLE_OP_ADD ? by : -by;
        return add_linear(l, x->args[0], by, out) &&
               add_linear(l, x->args[1], second, out);
      }
      return x->op == PESTLE_OP_NEGATE && add_linear(l, x->args[0], -by, out);
    case PESTLE_EXPR_READ:
    case PESTLE_EXPR_BITCAST:
    case PESTLE_EXPR_INSIDE:
    case PESTLE_EXPR_ACC:
    case PESTLE_EXPR_VAL:
    case PESTLE_EXPR_DOT:
      return false;
  }
  return false;
}

static bool add_test(pestle_visible_t* out, const linear_t* sum) {
  if (out->count == MOST_TESTS || (sum->key != 1 && sum->key != -1) ||
      sum->row > MOST_COEF || sum->row < -MOST_COEF) {
    return false;
  }
  out->tests[out->count++] =
      (pestle_visible_test_t){sum->row, sum->key, sum->constant};
  return true;
}

// |x| >= |y| + |more|.
static bool add_order(const look_t* l, const pestle_expr_t* x,
                      const pestle_expr_t* y, int64_t more,
                      pestle_visible_t* out) {
  linear_t sum = {0, 0, -more};
  return add_linear(l, x, 1, &sum) && add_linear(l, y, -1, &sum) &&
         add_test(out, &sum);
}

// Takes the tests that |x| joins; whether they are all that it says.
static bool add_tests(const look_t* l, const pestle_expr_t* x,
                      pestle_visible_t* out) {
  if (is_op(x, PESTLE_OP_AND)) {
    bool first = add_tests(l, x->args[0], out);
    return add_tests(l, x->args[1], out) && first;
  }
  if (is_op(x, PESTLE_OP_GE))
    return add_order(l, x->args[0], x->args[1], 0, out);
  if (is_op(x, PESTLE_OP_GT))
    return add_order(l, x->args[0], x->args[1], 1, out);
  if (is_op(x, PESTLE_OP_LE))
    return add_order(l, x->args[1], x->args[0], 0, out);
  if (is_op(x, PESTLE_OP_LT))
    return add_order(l, x->args[1], x->args[0], 1, out);
  if (x->kind != PESTLE_EXPR_INSIDE) return false;
  linear_t low = {0, 0, -x->lo}, high = {0, 0, x->hi - 1};
  uint32_t before = out->count;
  if (add_affine(l, x->affine, 1, &low) &&
      add_affine(l, x->affine, -1, &high) && add_test(out, &low) &&
      add_test(out, &high)) {
    return true;
  }
  out->count = before;
  return false;
}

static bool is_number(const pestle_expr_t* x) {
  return x->kind == PESTLE_EXPR_CONST && x->dtype == PESTLE_F32;
}

static bool is_infinite(const pestle_expr_t* x) {
  return is_number(x) && isinf(x->f) && x->f < 0;
}

// A score times a number above 0; that number, or 0.
static double factor_of(pestle_nest_t* nest, const pestle_flash_attention_t* a,
                        const pestle_expr_t* x) {
  uint32_t scores = pestle_nest_stage(nest, a->scores)->tensors[0];
  if (x->kind == PESTLE_EXPR_READ && x->i == (int64_t)scores) return 1;
  if (!is_op(x, PESTLE_OP_MULTIPLY)) return 0;
  int c = is_number(x->args[1]) ? 1 : 0;
  const pestle_expr_t* s = x->args[!c];
  bool scaled = is_number(x->args[c]) && x->args[c]->f > 0 &&
                isfinite(x->args[c]->f) && s->kind == PESTLE_EXPR_READ &&
                s->i == (int64_t)scores;
  return scaled ? x->args[c]->f : 0;
}

void pestle_flash_attention_visible(pestle_nest_t* nest,
                                    const pestle_flash_attention_t* a,
                                    pestle_visible_t* out) {
  look_t l = {nest, a};
  *out = (pestle_visible_t){.plain = a->x, .placed = true};
  const pestle_expr_t* x = a->x;
  // A mask that is added: 0 or -inf.
  if (is_op(x, PESTLE_OP_ADD)) {
    for (int i = 0; i < 2; ++i) {
      const pestle_expr_t* m = x->args[i];
      if (!is_op(m, PESTLE_OP_SELECT) || !is_infinite(m->args[2]) ||
          !is_number(m->args[1]) || m->args[1]->f < 0 || m->args[1]->f > 0) {
        continue;
      }
      out->test = m->args[0];
      out->plain = x->args[!i];
    }
  } else if (is_op(x, PESTLE_OP_SELECT) && is_infinite(x->args[2])) {
    out->test = x->args[0];
    out->plain = x->args[1];
  }
  out->factor = factor_of(nest, a, out->plain);
  if (!out->test) return;
  out->placed = add_tests(&l, out->test, out);
  if (!out->placed) out->plain = a->x;
}

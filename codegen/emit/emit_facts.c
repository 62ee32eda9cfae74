// SPDX-License-Identifier: Apache-2.0
// Facts about a reduction's steps that follow from how its result is read, such as that
// the sign of a zero does not matter. Targets make shorter code where they hold.
#include "codegen/emit/emit_internal.h"

// Of nested choices no more than so many are looked through.
enum { MOST_CHOICES = 8 };

typedef struct reads_t {
  pestle_nest_t* nest;
  int64_t tensor;
  int64_t
      value;  // the ACC and VAL that stand for it in a reduction's steps, or -1
  uint8_t* seen;  // by expression; ACC and VAL are nodes of one stage alone
} reads_t;

static bool is_op(const pestle_expr_t* x, pestle_op_t op) {
  return x->kind == PESTLE_EXPR_OP && x->op == op;
}

// Whether some index of a read is computed from values.
static bool has_computed_index(const pestle_affine_t* affine) {
  for (uint32_t i = 0; i < affine->count; ++i) {
    const pestle_atom_t* atom = affine->terms[i].atom;
    if (atom->value || (atom->affine && has_computed_index(atom->affine))) {
      return true;
    }
  }
  return false;
}

static bool computes_index(const pestle_expr_t* x) {
  if (x->affine && has_computed_index(x->affine)) return true;
  for (uint32_t i = 0; i < x->index_count; ++i) {
    if (has_computed_index(x->index[i])) return true;
  }
  return false;
}

static bool is_read(const reads_t* r, const pestle_expr_t* x) {
  if (x->kind == PESTLE_EXPR_ACC || x->kind == PESTLE_EXPR_VAL) {
    return x->i == r->value;
  }
  return x->kind == PESTLE_EXPR_READ && x->i == r->tensor;
}

// Whether |x| is a function of the tensor that differs by no more than a zero's sign
// where the tensor does: it, the larger of two such, or a constant in place of a
// certain other number.
static bool is_alike(const reads_t* r, const pestle_expr_t* x, int choices) {
  if (choices > MOST_CHOICES) return false;
  if (is_op(x, PESTLE_OP_MAXIMUM)) {
    return is_alike(r, x->args[0], choices + 1) &&
           is_alike(r, x->args[1], choices + 1);
  }
  if (is_op(x, PESTLE_OP_SELECT)) {
    const pestle_expr_t* which = x->args[0];
    return is_op(which, PESTLE_OP_EQ) &&
           is_alike(r, which->args[0], choices + 1) &&
           which->args[1]->kind == PESTLE_EXPR_CONST &&
           x->args[1]->kind == PESTLE_EXPR_CONST &&
           is_alike(r, x->args[2], choices + 1);
  }
  return is_read(r, x) && !x->guard && !computes_index(x);
}

static bool tells_zeros(const reads_t* r, const pestle_expr_t* x);

static bool is_told(const reads_t* r, const pestle_expr_t* x) {
  return !is_alike(r, x, 0) && tells_zeros(r, x);
}

// Whether |x| reads the tensor otherwise than in exp(a - b), each of them alike or
// without it: that is the same for zeros of both signs, since exp(-0) is exp(+0).
static bool tells_zeros(const reads_t* r, const pestle_expr_t* x) {
  if (!x || r->seen[x->id]) return false;
  r->seen[x->id] = 1;
  if (is_read(r, x) || computes_index(x)) return true;
  bool is_power = is_op(x, PESTLE_OP_EXP) || is_op(x, PESTLE_OP_EXP2);
  if (is_power && is_op(x->args[0], PESTLE_OP_SUBTRACT)) {
    return is_told(r, x->args[0]->args[0]) || is_told(r, x->args[0]->args[1]);
  }
  for (int i = 0; i < 3; ++i) {
    if (tells_zeros(r, x->args[i])) return true;
  }
  return tells_zeros(r, x->guard);
}

static bool readers_tell_zeros(pestle_nest_t* nest, uint32_t stage,
                               uint32_t tensor);

// The value of the reduction |s| that is the largest of the tensor's, or -1.
static int64_t kept_largest(const reads_t* r, const pestle_nest_stage_t* s) {
  reads_t steps = *r;
  for (uint32_t v = 0; v < s->value_count && s->combine; ++v) {
    steps.value = v;
    if (is_alike(&steps, s->values[v], 0) &&
        is_alike(&steps, s->combine[v], 0)) {
      return v;
    }
  }
  return -1;
}

static bool stage_tells_zeros(const reads_t* r, uint32_t stage) {
  const pestle_nest_stage_t* s = pestle_nest_stage(r->nest, stage);
  reads_t steps = *r;
  steps.value = kept_largest(r, s);
  for (uint32_t v = 0; v < s->value_count; ++v) {
    bool kept = v == steps.value;
    if (s->is_reduction && tells_zeros(&steps, s->inits[v])) return true;
    if (!kept && tells_zeros(&steps, s->values[v])) return true;
    if (!kept && s->combine && tells_zeros(&steps, s->combine[v])) return true;
  }
  return steps.value >= 0 &&
         readers_tell_zeros(r->nest, stage, s->tensors[steps.value]);
}

// Of the stages behind |stage|, which makes the tensor.
static bool readers_tell_zeros(pestle_nest_t* nest, uint32_t stage,
                               uint32_t tensor) {
  if (nest->tensors.data[tensor].kind != PESTLE_TENSOR_STAGE) return true;
  reads_t r = {.nest = nest, .tensor = tensor, .value = -1};
  r.seen = pestle_arena_alloc_zero(nest->arena, nest->expr_count + 1, 1);
  if (!r.seen) {
    pestle_nest_fail_memory(nest);
    return true;
  }
  for (uint32_t q = stage + 1; q < nest->stages.size; ++q) {
    const pestle_nest_stage_t* s = &nest->stages.data[q];
    if (!s->inlined && stage_tells_zeros(&r, q)) return true;
  }
  return false;
}

uint8_t pestle_emit_reduce_facts(pestle_emit_t* e, uint32_t stage) {
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  bool extreme =
      s->reduce == PESTLE_OP_MAXIMUM || s->reduce == PESTLE_OP_MINIMUM;
  if (!extreme || s->combine || s->value_count != 1) return 0;
  bool tells = readers_tell_zeros(e->nest, stage, s->tensors[0]);
  return tells ? 0 : PESTLE_KIR_NSZ;
}

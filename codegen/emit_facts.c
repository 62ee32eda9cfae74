// SPDX-License-Identifier: Apache-2.0
// What need not be kept exactly: facts of a fold's steps that follow from how its
// result is read.
#include "codegen/emit_internal.h"

typedef struct reads_t {
  pestle_nest_t* nest;
  int64_t tensor;
  int64_t value;  // of a fold's steps that take the tensor on, or -1
  uint8_t* seen;  // by expression
} reads_t;

static bool is_op(const pestle_expr_t* x, pestle_op_t op) {
  return x->kind == PESTLE_EXPR_OP && x->op == op;
}

static bool is_read(const reads_t* r, const pestle_expr_t* x) {
  bool steps = x->kind == PESTLE_EXPR_ACC || x->kind == PESTLE_EXPR_VAL;
  return x->i == (steps ? r->value : r->tensor) &&
         (steps || x->kind == PESTLE_EXPR_READ);
}

// The tensor, the larger of two, or a constant in place of a certain other number:
// the same but for the sign of a zero, whatever the tensor's zeros have.
static bool is_alike(const reads_t* r, const pestle_expr_t* x) {
  if (is_op(x, PESTLE_OP_MAXIMUM)) {
    return is_alike(r, x->args[0]) && is_alike(r, x->args[1]);
  }
  if (is_op(x, PESTLE_OP_SELECT)) {
    const pestle_expr_t* which = x->args[0];
    return is_op(which, PESTLE_OP_EQ) && is_alike(r, which->args[0]) &&
           which->args[1]->kind == PESTLE_EXPR_CONST &&
           x->args[1]->kind == PESTLE_EXPR_CONST && is_alike(r, x->args[2]);
  }
  return is_read(r, x);
}

// Whether some index of a read is computed from values.
static bool has_computed_index(const pestle_lin_t* lin) {
  for (uint32_t i = 0; i < lin->count; ++i) {
    const pestle_atom_t* atom = lin->terms[i].atom;
    if (atom->value || (atom->lin && has_computed_index(atom->lin))) {
      return true;
    }
  }
  return false;
}

// Whether |x| reads the tensor otherwise than in exp(a - b), each of them alike or
// without it: that is the same for zeros of both signs, since exp(-0) is exp(+0).
static bool tells_zeros(const reads_t* r, const pestle_expr_t* x) {
  if (!x || r->seen[x->id]) return false;
  r->seen[x->id] = 1;
  if (is_read(r, x)) return true;
  if (is_op(x, PESTLE_OP_EXP) && is_op(x->args[0], PESTLE_OP_SUBTRACT)) {
    const pestle_expr_t *a = x->args[0]->args[0], *b = x->args[0]->args[1];
    return (!is_alike(r, a) && tells_zeros(r, a)) ||
           (!is_alike(r, b) && tells_zeros(r, b));
  }
  for (int i = 0; i < 3; ++i) {
    if (tells_zeros(r, x->args[i])) return true;
  }
  for (uint32_t i = 0; x->kind == PESTLE_EXPR_READ && i < x->index_count; ++i) {
    if (has_computed_index(x->index[i])) return true;
  }
  return tells_zeros(r, x->guard);
}

static bool readers_tell_zeros(pestle_nest_t* nest, uint32_t stage,
                               uint32_t tensor);

// The value of the fold |s| that is the largest of the tensor's, or -1.
static int64_t kept_largest(reads_t r, const pestle_nest_stage_t* s) {
  for (uint32_t v = 0; v < s->value_count && s->combine; ++v) {
    r.value = v;
    if (is_read(&r, s->values[v]) && is_alike(&r, s->combine[v])) return v;
  }
  return -1;
}

static bool stage_tells_zeros(reads_t r, uint32_t stage) {
  const pestle_nest_stage_t* s = pestle_nest_stage(r.nest, stage);
  int64_t largest = kept_largest(r, s);
  r.value = largest;
  for (uint32_t v = 0; v < s->value_count; ++v) {
    if (v == largest) continue;
    if (tells_zeros(&r, s->values[v])) return true;
    if (!s->is_fold) continue;
    if (tells_zeros(&r, s->inits[v])) return true;
    if (s->combine && tells_zeros(&r, s->combine[v])) return true;
  }
  return largest >= 0 && readers_tell_zeros(r.nest, stage, s->tensors[largest]);
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
    if (!s->inlined && stage_tells_zeros(r, q)) return true;
  }
  return false;
}

uint8_t pestle_emit_fold_facts(pestle_emit_t* e, uint32_t stage) {
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  bool extreme = s->fold == PESTLE_OP_MAXIMUM || s->fold == PESTLE_OP_MINIMUM;
  if (!extreme || s->combine || s->value_count != 1) return 0;
  bool tells = readers_tell_zeros(e->nest, stage, s->tensors[0]);
  return tells ? 0 : PESTLE_KIR_NSZ;
}

// SPDX-License-Identifier: Apache-2.0
// What need not be kept exactly: facts of a fold's steps that follow from how its
// result is read.
#include "codegen/emit_internal.h"

typedef struct reads_t {
  int64_t tensor;
  uint8_t* seen;  // by expression
} reads_t;

static bool is_read(const reads_t* r, const pestle_expr_t* x) {
  return x->kind == PESTLE_EXPR_READ && x->i == r->tensor;
}

static bool is_op(const pestle_expr_t* x, pestle_op_t op) {
  return x->kind == PESTLE_EXPR_OP && x->op == op;
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

// Whether |x| reads the tensor otherwise than as exp(a - tensor): that is the
// same for zeros of both signs, since exp(-0) is exp(+0).
static bool tells_zeros(const reads_t* r, const pestle_expr_t* x) {
  if (!x || r->seen[x->id]) return false;
  r->seen[x->id] = 1;
  if (is_read(r, x)) return true;
  if (is_op(x, PESTLE_OP_EXP) && is_op(x->args[0], PESTLE_OP_SUBTRACT) &&
      is_read(r, x->args[0]->args[1])) {
    return tells_zeros(r, x->args[0]->args[0]);
  }
  for (int i = 0; i < 3; ++i) {
    if (tells_zeros(r, x->args[i])) return true;
  }
  for (uint32_t i = 0; x->kind == PESTLE_EXPR_READ && i < x->index_count; ++i) {
    if (has_computed_index(x->index[i])) return true;
  }
  return tells_zeros(r, x->guard);
}

static bool stage_tells_zeros(const reads_t* r, const pestle_nest_stage_t* s) {
  for (uint32_t v = 0; v < s->value_count; ++v) {
    if (tells_zeros(r, s->values[v])) return true;
    if (!s->is_fold) continue;
    if (tells_zeros(r, s->inits[v])) return true;
    if (s->combine && tells_zeros(r, s->combine[v])) return true;
  }
  return false;
}

uint8_t pestle_emit_fold_facts(pestle_emit_t* e, uint32_t stage) {
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  bool extreme = s->fold == PESTLE_OP_MAXIMUM || s->fold == PESTLE_OP_MINIMUM;
  if (!extreme || s->combine || s->value_count != 1) return 0;
  uint32_t tensor = s->tensors[0];
  if (e->nest->tensors.data[tensor].kind != PESTLE_TENSOR_STAGE) return 0;
  reads_t r = {.tensor = tensor};
  r.seen = pestle_arena_alloc_zero(e->nest->arena, e->nest->expr_count + 1, 1);
  if (!r.seen) {
    pestle_nest_fail_memory(e->nest);
    return 0;
  }
  for (size_t q = stage + 1; q < e->nest->stages.size; ++q) {
    const pestle_nest_stage_t* reader = &e->nest->stages.data[q];
    if (!reader->inlined && stage_tells_zeros(&r, reader)) return 0;
  }
  return PESTLE_KIR_NSZ;
}

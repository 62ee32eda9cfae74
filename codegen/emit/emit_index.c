// SPDX-License-Identifier: Apache-2.0
// Coordinates of a stage's axes, and indices into memory, from the loops that are open.
#include "codegen/emit/emit_internal.h"

static bool any_open(const pestle_emit_t* e, uint32_t axis) {
  const pestle_nest_axis_t* a = &e->nest->axes.data[axis];
  if (a->outer < 0) return e->open[axis];
  return any_open(e, (uint32_t)a->outer) || any_open(e, (uint32_t)a->inner);
}

// The axis over what is open below it; a split axis of which nothing is open
// stands for itself, so that its range is exact in box inference.
static const pestle_affine_t* axis_value(pestle_emit_t* e, uint32_t axis) {
  const pestle_nest_axis_t* a = &e->nest->axes.data[axis];
  if (a->outer < 0 || !any_open(e, axis)) {
    return e->open[axis] ? e->value[axis] : pestle_affine_axis(e->nest, axis);
  }
  uint32_t outer = (uint32_t)a->outer, inner = (uint32_t)a->inner;
  int64_t factor = a->factor;
  const pestle_affine_t* o = axis_value(e, outer);
  const pestle_affine_t* i = axis_value(e, inner);
  return pestle_affine_add(e->nest, pestle_affine_scale(e->nest, o, factor), i);
}

void pestle_emit_coords(pestle_emit_t* e, uint32_t stage) {
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  const pestle_box_t* box = &e->box[s->tensors[0]];
  for (uint32_t i = 0; i < s->root_count; ++i) {
    const pestle_affine_t* at = axis_value(e, s->roots[i]);
    if (box->known && i < s->map_count && s->at_stage >= 0) {
      at = pestle_affine_add(e->nest, box->origin[i], at);
    }
    const pestle_nest_axis_t* a = &e->nest->axes.data[s->roots[i]];
    if (a->block_axis >= 0) {
      const pestle_affine_t* from =
          pestle_affine_scale(e->nest, e->coord[a->block_axis], a->block);
      at = pestle_affine_add(e->nest, from, at);
    }
    e->coord[s->roots[i]] = at;
  }
}

const pestle_affine_t* pestle_emit_resolve(pestle_emit_t* e,
                                           const pestle_affine_t* affine) {
  pestle_substitution_t how = {.map = e->coord, .keep_values = true};
  return pestle_affine_substitute(e->nest, &how, affine);
}

static pestle_kir_id_t vector_of(pestle_emit_t* e,
                                 const pestle_affine_t* affine);

pestle_kir_id_t pestle_emit_index_const(pestle_emit_t* e, unsigned lanes,
                                        int64_t value) {
  return pestle_kir_int(e->k, PESTLE_INDEX, lanes, value);
}

// The quotient or remainder of an atom.
static pestle_kir_id_t by_divisor(pestle_emit_t* e, pestle_op_t op,
                                  const pestle_atom_t* atom, bool vector) {
  unsigned lanes = vector ? e->lanes : 1;
  pestle_kir_id_t divisor = pestle_emit_index_const(e, lanes, atom->divisor);
  pestle_kir_id_t x = vector ? vector_of(e, atom->affine)
                             : pestle_emit_scalar_index(e, atom->affine);
  return pestle_kir_scalar(e->k, op, x, divisor, PESTLE_KIR_NONE);
}

static pestle_kir_id_t atom_of(pestle_emit_t* e, const pestle_atom_t* atom,
                               bool vector) {
  switch ((pestle_atom_kind_t)atom->kind) {
    case PESTLE_ATOM_AXIS:
      if (vector && (int32_t)atom->axis == e->vector_axis) {
        return pestle_kir_iota(e->k, PESTLE_INDEX, e->lanes);
      }
      // A scalar access inside a vector of one valid lane: lane 0.
      if ((int32_t)atom->axis == e->vector_axis) {
        return pestle_kir_index(e->k, 0);
      }
      return e->axis_id[atom->axis];
    case PESTLE_ATOM_DIV:
      return by_divisor(e, PESTLE_OP_DIVIDE, atom, vector);
    case PESTLE_ATOM_MOD:
      return by_divisor(e, PESTLE_OP_REMAINDER, atom, vector);
    case PESTLE_ATOM_VALUE:
      return pestle_kir_cast(e->k, pestle_emit_expr(e, atom->value),
                             PESTLE_INDEX);
  }
  return PESTLE_KIR_NONE;
}

pestle_kir_id_t pestle_emit_scalar_index(pestle_emit_t* e,
                                         const pestle_affine_t* affine) {
  pestle_kir_id_t sum = pestle_kir_index(e->k, affine->constant);
  for (uint32_t i = 0; i < affine->count; ++i) {
    sum = pestle_kir_madi(e->k, atom_of(e, affine->terms[i].atom, false),
                          affine->terms[i].coef, sum);
  }
  return sum;
}

static pestle_kir_id_t vector_of(pestle_emit_t* e,
                                 const pestle_affine_t* affine) {
  pestle_kir_id_t sum = pestle_emit_index_const(e, e->lanes, affine->constant);
  for (uint32_t i = 0; i < affine->count; ++i) {
    pestle_kir_id_t atom = atom_of(e, affine->terms[i].atom, true);
    if (affine->terms[i].coef != 1) {
      atom = pestle_kir_scalar(
          e->k, PESTLE_OP_MULTIPLY, atom,
          pestle_emit_index_const(e, pestle_kir_lanes_of(e->k, atom),
                                  affine->terms[i].coef),
          PESTLE_KIR_NONE);
    }
    sum = pestle_kir_scalar(e->k, PESTLE_OP_ADD, sum, atom, PESTLE_KIR_NONE);
  }
  return sum;
}

static bool lane_dependent(pestle_emit_t* e, const pestle_affine_t* affine);

// Whether a VALUE has one result a lane; evaluating it is what tells.
static bool atom_varies(pestle_emit_t* e, const pestle_atom_t* atom) {
  switch ((pestle_atom_kind_t)atom->kind) {
    case PESTLE_ATOM_AXIS:
      return false;
    case PESTLE_ATOM_DIV:
    case PESTLE_ATOM_MOD:
      return lane_dependent(e, atom->affine);
    case PESTLE_ATOM_VALUE:
      return pestle_kir_lanes_of(e->k, pestle_emit_expr(e, atom->value)) > 1;
  }
  return false;
}

static bool lane_dependent(pestle_emit_t* e, const pestle_affine_t* affine) {
  for (uint32_t i = 0; i < affine->count; ++i) {
    const pestle_atom_t* atom = affine->terms[i].atom;
    if (atom->kind == PESTLE_ATOM_AXIS &&
        (int32_t)atom->axis == e->vector_axis) {
      return true;
    }
    if (atom_varies(e, atom)) return true;
  }
  return false;
}

pestle_emit_index_t pestle_emit_index(pestle_emit_t* e,
                                      const pestle_affine_t* resolved) {
  pestle_emit_index_t out = {.vector = PESTLE_KIR_NONE,
                             .scalar = PESTLE_KIR_NONE};
  if (e->vector_axis < 0) {
    out.scalar = pestle_emit_scalar_index(e, resolved);
    return out;
  }
  pestle_kir_id_t sum = pestle_kir_index(e->k, resolved->constant);
  for (uint32_t i = 0; i < resolved->count; ++i) {
    const pestle_term_t* t = &resolved->terms[i];
    if (t->atom->kind == PESTLE_ATOM_AXIS &&
        (int32_t)t->atom->axis == e->vector_axis) {
      out.step = t->coef;
    } else if (atom_varies(e, t->atom)) {
      out.vector = vector_of(e, resolved);
      return out;
    } else {
      sum = pestle_kir_madi(e->k, atom_of(e, t->atom, false), t->coef, sum);
    }
  }
  out.scalar = sum;
  return out;
}

// One index a lane, whatever the form.
pestle_kir_id_t pestle_emit_index_lanes(pestle_emit_t* e,
                                        pestle_emit_index_t at) {
  if (at.vector != PESTLE_KIR_NONE) return at.vector;
  pestle_kir_id_t base = pestle_kir_splat(e->k, at.scalar, e->lanes);
  if (!at.step) return base;
  pestle_kir_id_t lane = pestle_kir_iota(e->k, PESTLE_INDEX, e->lanes);
  if (at.step != 1) {
    lane = pestle_kir_scalar(e->k, PESTLE_OP_MULTIPLY, lane,
                             pestle_emit_index_const(e, e->lanes, at.step),
                             PESTLE_KIR_NONE);
  }
  return pestle_kir_scalar(e->k, PESTLE_OP_ADD, base, lane, PESTLE_KIR_NONE);
}

pestle_kir_id_t pestle_emit_clamp(pestle_emit_t* e, pestle_kir_id_t index,
                                  int64_t lo, int64_t hi) {
  unsigned lanes = pestle_kir_lanes_of(e->k, index);
  index =
      pestle_kir_scalar(e->k, PESTLE_OP_MAXIMUM, index,
                        pestle_emit_index_const(e, lanes, lo), PESTLE_KIR_NONE);
  return pestle_kir_scalar(e->k, PESTLE_OP_MINIMUM, index,
                           pestle_emit_index_const(e, lanes, hi),
                           PESTLE_KIR_NONE);
}

pestle_kir_id_t pestle_emit_mask(pestle_emit_t* e, pestle_kir_id_t index) {
  if (e->vector_axis < 0 || e->valid >= (int64_t)e->lanes) {
    return PESTLE_KIR_NONE;
  }
  return pestle_kir_mask(
      e->k, index,
      pestle_kir_madi(e->k, index, 1, pestle_kir_index(e->k, e->valid)),
      e->lanes);
}

// SPDX-License-Identifier: Apache-2.0
// Boxes: which part of a tensor is alive at a place of the loop tree.
#include <string.h>

#include "codegen/emit/emit_internal.h"
#include "codegen/schedule/schedule.h"

typedef struct boxer_t {
  pestle_emit_t* e;
  uint32_t tensor;
  pestle_box_t* box;
  bool any;
} boxer_t;

static bool affine_closed(const pestle_emit_t* e,
                          const pestle_affine_t* affine) {
  for (uint32_t i = 0; i < affine->count; ++i) {
    const pestle_atom_t* atom = affine->terms[i].atom;
    if (atom->kind == PESTLE_ATOM_AXIS && !e->open[atom->axis]) return true;
    if (atom->affine && affine_closed(e, atom->affine)) return true;
    if (atom->value) return true;
  }
  return false;
}

static bool affine_open(const pestle_emit_t* e, const pestle_affine_t* affine) {
  for (uint32_t i = 0; i < affine->count; ++i) {
    const pestle_atom_t* atom = affine->terms[i].atom;
    if (atom->kind == PESTLE_ATOM_AXIS && e->open[atom->axis]) return true;
    if (atom->affine && affine_open(e, atom->affine)) return true;
    if (atom->value) return true;
  }
  return false;
}

// Splits |affine| into an origin over open axes and an extent over closed ones.
static bool box_of_affine(pestle_emit_t* e, const pestle_affine_t* affine,
                          const pestle_affine_t** out_origin,
                          int64_t* out_extent) {
  pestle_nest_t* nest = e->nest;
  const pestle_affine_t* origin = pestle_affine_const(nest, affine->constant);
  int64_t extent = 1;
  for (uint32_t i = 0; i < affine->count; ++i) {
    const pestle_term_t* t = &affine->terms[i];
    pestle_affine_t* one = pestle_arena_alloc_zero(
        nest->arena, sizeof(*one) + sizeof(*t), _Alignof(pestle_affine_t));
    if (!one) {
      pestle_nest_fail_memory(nest);
      return false;
    }
    one->count = 1;
    one->terms[0] = *t;
    if (!affine_open(e, one)) {
      pestle_range_t r = pestle_affine_range(nest, one);
      extent += r.hi - r.lo;
      origin = pestle_affine_add(nest, origin, pestle_affine_const(nest, r.lo));
    } else if (affine_closed(e, one)) {
      return false;
    } else {
      origin = pestle_affine_add(nest, origin, one);
    }
  }
  *out_origin = origin;
  *out_extent = extent;
  return true;
}

static void whole_dim(pestle_emit_t* e, pestle_box_t* box, int32_t d,
                      int64_t dim) {
  box->origin[d] = pestle_affine_const(e->nest, 0);
  box->extent[d] = dim;
}

static void join_dim(pestle_emit_t* e, pestle_box_t* box, int32_t d,
                     int64_t dim, const pestle_affine_t* origin, int64_t extent,
                     bool first) {
  pestle_nest_t* nest = e->nest;
  if (first) {
    box->origin[d] = origin;
    box->extent[d] = extent;
  } else {
    const pestle_affine_t* apart = pestle_affine_add(
        nest, origin, pestle_affine_scale(nest, box->origin[d], -1));
    if (!pestle_affine_is_const(apart)) {
      whole_dim(e, box, d, dim);
      return;
    }
    int64_t lo = apart->constant < 0 ? apart->constant : 0;
    int64_t hi = apart->constant + extent;
    if (box->extent[d] > hi) hi = box->extent[d];
    if (lo < 0) box->origin[d] = origin;
    box->extent[d] = hi - lo;
  }
  if (pestle_affine_is_const(box->origin[d]) &&
      box->origin[d]->constant + box->extent[d] > dim) {
    box->extent[d] = dim - box->origin[d]->constant;
  }
}

static void box_visit(void* user, const pestle_expr_t* x) {
  boxer_t* b = user;
  pestle_emit_t* e = b->e;
  if ((uint32_t)x->i != b->tensor) return;
  const pestle_type_t* type = &e->nest->tensors.data[b->tensor].type;
  for (int32_t d = 0; d < type->rank; ++d) {
    const pestle_affine_t* at = pestle_emit_resolve(e, x->index[d]);
    const pestle_affine_t* origin;
    int64_t extent;
    if (x->guard || !box_of_affine(e, at, &origin, &extent)) {
      whole_dim(e, b->box, d, type->dims[d]);
    } else {
      if (x->packed && d + 1 == type->rank) extent += x->packed - 1;
      join_dim(e, b->box, d, type->dims[d], origin, extent, !b->any);
    }
  }
  b->any = true;
}

bool pestle_emit_placed_under(const pestle_emit_t* e, uint32_t q,
                              uint32_t stage, int32_t axis) {
  return q != stage && !pestle_nest_stage(e->nest, q)->inlined &&
         pestle_schedule_is_under(e->nest, q, stage, axis);
}

// The arena is not rewound by the visit: boxes live in it.
static void visit_stage(pestle_emit_t* e, uint32_t stage, boxer_t* b) {
  uint8_t* seen =
      pestle_arena_alloc_zero(e->nest->arena, e->nest->expr_count + 1, 1);
  if (!seen) {
    pestle_nest_fail_memory(e->nest);
    return;
  }
  pestle_nest_visit_stage(e->nest, seen, pestle_nest_stage(e->nest, stage),
                          box_visit, b);
}

// Strides, and the extents of the stage's axes, of a box whose place is known.
static void finish_box(pestle_emit_t* e, uint32_t p);

void pestle_emit_find_box(pestle_emit_t* e, uint32_t p, uint32_t stage,
                          int32_t axis) {
  pestle_nest_t* nest = e->nest;
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, p);
  pestle_box_t* box = &e->box[s->tensors[0]];
  const pestle_type_t* type = &nest->tensors.data[s->tensors[0]].type;
  memset(box, 0, sizeof(*box));
  for (uint32_t v = 0; v < s->value_count; ++v) {
    boxer_t b = {.e = e, .tensor = s->tensors[v], .box = box};
    b.any = v > 0;
    for (uint32_t q = p + 1; q < nest->stages.size && !nest->failed; ++q) {
      if (q == stage || pestle_emit_placed_under(e, q, stage, axis)) {
        visit_stage(e, q, &b);
      }
    }
    if (!b.any) {
      for (int32_t d = 0; d < type->rank; ++d) {
        whole_dim(e, box, d, type->dims[d]);
      }
    }
  }
  if (nest->failed) {  // some readers were not seen; origins stay readable
    for (uint32_t v = 0; v < s->value_count; ++v) {
      for (int32_t d = 0; d < type->rank; ++d) {
        whole_dim(e, &e->box[s->tensors[v]], d, type->dims[d]);
      }
    }
    return;
  }
  finish_box(e, p);
}

static bool has_rows(const pestle_emit_t* e, uint32_t tensor) {
  return e->box[tensor].row_axis &&
         e->nest->tensors.data[tensor].scope == PESTLE_SCOPE_SHARED;
}

int64_t pestle_emit_box_count(const pestle_emit_t* e, uint32_t tensor) {
  const pestle_box_t* box = &e->box[tensor];
  return has_rows(e, tensor)
             ? box->count * e->nest->axes.data[box->row_axis - 1].full_extent
             : box->count;
}

const pestle_affine_t* pestle_emit_box_row(pestle_emit_t* e, uint32_t tensor) {
  const pestle_box_t* box = &e->box[tensor];
  if (!has_rows(e, tensor)) return pestle_affine_const(e->nest, 0);
  return pestle_affine_scale(e->nest, e->value[box->row_axis - 1], box->count);
}

// A reduction over one block covers what is left of its axis in the last one.
static void set_blocks(pestle_emit_t* e, const pestle_nest_stage_t* s,
                       const pestle_box_t* box) {
  pestle_nest_t* nest = e->nest;
  for (uint32_t i = s->map_count; i < s->root_count; ++i) {
    const pestle_nest_axis_t* a = &nest->axes.data[s->roots[i]];
    for (uint32_t d = 0; a->block_axis >= 0 && d < s->map_count; ++d) {
      if (s->roots[d] != (uint32_t)a->block_axis) continue;
      int64_t last =
          pestle_affine_range(nest, box->origin[d]).hi + box->extent[d] - 1;
      int64_t rest = a->full_extent - last * a->block;
      pestle_emit_set_extent(nest, s->roots[i],
                             rest < a->block ? rest : a->block);
      break;
    }
  }
}

static void finish_box(pestle_emit_t* e, uint32_t p) {
  pestle_nest_t* nest = e->nest;
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, p);
  const pestle_type_t* type = &nest->tensors.data[s->tensors[0]].type;
  pestle_box_t* box = &e->box[s->tensors[0]];
  box->known = true;
  box->count = 1;
  int64_t lanes = 1;
  const pestle_nest_axis_t* leaf =
      s->order_count ? &nest->axes.data[s->order[s->order_count - 1]] : NULL;
  if (leaf && leaf->mark == PESTLE_MARK_VECTOR && !leaf->reduce) {
    lanes = leaf->full_extent;
  }
  // Whole vectors are stored along the dim whose elements lie beside each other.
  int32_t inner = type->rank - 1;
  while (inner > 0 && type->dims[inner] == 1)
    --inner;
  for (int32_t d = type->rank - 1; d >= 0; --d) {
    pestle_emit_set_extent(nest, s->roots[d], box->extent[d]);
    box->stride[d] = box->count;
    int64_t extent = box->extent[d];
    if (d == inner) extent = (extent + lanes - 1) / lanes * lanes;
    box->count *= extent > 0 ? extent : 1;
  }
  for (uint32_t a = 0; a < nest->axes.size; ++a) {
    if (e->open[a] && pestle_mark_is_lane(nest->axes.data[a].mark))
      box->row_axis = a + 1;
  }
  set_blocks(e, s, box);
  for (uint32_t v = 1; v < s->value_count; ++v) {
    e->box[s->tensors[v]] = *box;
  }
  pestle_emit_coords(e, p);
}

void pestle_emit_carried_box(pestle_emit_t* e, uint32_t p, uint32_t owner) {
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, p);
  const pestle_nest_stage_t* o = pestle_nest_stage(e->nest, owner);
  const pestle_type_t* type = &e->nest->tensors.data[s->tensors[0]].type;
  const pestle_box_t* from = &e->box[o->tensors[0]];
  pestle_box_t* box = &e->box[s->tensors[0]];
  memset(box, 0, sizeof(*box));
  for (int32_t d = 0; d < type->rank; ++d) {
    whole_dim(e, box, d, type->dims[d]);
    if (type->dims[d] == 1) continue;
    box->origin[d] = from->origin[d];
    box->extent[d] = from->extent[d];
  }
  finish_box(e, p);
}

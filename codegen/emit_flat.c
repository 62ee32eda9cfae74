// SPDX-License-Identifier: Apache-2.0
// From a scheduled nest to the flat form.
//
// Invariants:
//  1. Loops are opened from a list of leaves, outermost first. A split whose
//     factor does not divide is peeled where its outer loop opens: first all
//     whole parts, then the rest with a shorter inner extent. So every other
//     place sees exact extents, and masks appear in the rest's vector only.
//  2. Stages placed under a loop are emitted when it has opened: consumers are
//     given their boxes first, from the last stage to the first, then code is
//     emitted from the first to the last.
//  3. A fold keeps its accumulators in a private buffer indexed by its unrolled
//     leaves; they are written to the stage's tensor when its loops are done.
#include "codegen/emit_flat.h"

#include <math.h>
#include <string.h>

#include "codegen/emit_internal.h"

typedef void (*body_fn_t)(pestle_emit_t* e, uint32_t stage, void* user);

typedef struct walk_t {
  pestle_emit_t* e;
  uint32_t stage;
  body_fn_t body;
  void* user;
  bool attach;  // emit the stages placed under these loops, and hoist
} walk_t;

static void walk(walk_t* w, const uint32_t* leaves, uint32_t count);
static void emit_attached(pestle_emit_t* e, uint32_t stage, int32_t axis);

// --- Extents ---

static void set_extent(pestle_nest_t* nest, uint32_t axis, int64_t extent) {
  pestle_nest_axis_t* a = &nest->axes.data[axis];
  a->extent = extent;
  if (a->outer < 0) return;
  int64_t factor = a->factor;
  uint32_t outer = (uint32_t)a->outer, inner = (uint32_t)a->inner;
  set_extent(nest, outer, (extent + factor - 1) / factor);
  set_extent(nest, inner, extent < factor ? extent : factor);
}

// --- Loops ---

static void hoist_values(walk_t* w) {
  const pestle_nest_stage_t* s = pestle_nest_stage(w->e->nest, w->stage);
  for (uint32_t v = 0; v < s->value_count; ++v) {
    pestle_emit_hoist(w->e, s->values[v]);
  }
}

static void set_ready(pestle_emit_t* e, uint32_t stage, int32_t axis,
                      bool ready);

// The axis has a value now: emit what belongs under it, then the other loops.
static void inside(walk_t* w, const uint32_t* leaves, uint32_t count) {
  pestle_emit_t* e = w->e;
  pestle_emit_coords(e, w->stage);
  if (w->attach) {
    emit_attached(e, w->stage, (int32_t)leaves[0]);
    pestle_emit_coords(e, w->stage);
    if (count > 1) hoist_values(w);
  }
  walk(w, leaves + 1, count - 1);
  if (w->attach) set_ready(e, w->stage, (int32_t)leaves[0], false);
}

static void open_fixed(walk_t* w, const uint32_t* leaves, uint32_t count,
                       int64_t value) {
  pestle_emit_t* e = w->e;
  uint32_t axis = leaves[0];
  size_t scope = pestle_emit_scope(e);
  e->open[axis] = true;
  e->value[axis] = pestle_lin_const(e->nest, value);
  inside(w, leaves, count);
  e->open[axis] = false;
  pestle_emit_unscope(e, scope);
}

static void open_vector(walk_t* w, const uint32_t* leaves, uint32_t count) {
  pestle_emit_t* e = w->e;
  uint32_t axis = leaves[0];
  const pestle_nest_axis_t* a = &e->nest->axes.data[axis];
  if (a->full_extent == 1) {
    open_fixed(w, leaves, count, 0);
    return;
  }
  size_t scope = pestle_emit_scope(e);
  e->vector_axis = (int32_t)axis;
  e->lanes = (unsigned)a->full_extent;
  e->valid = a->extent;
  e->open[axis] = true;
  e->value[axis] = pestle_lin_axis(e->nest, axis);
  inside(w, leaves, count);
  e->open[axis] = false;
  e->vector_axis = -1;
  pestle_emit_unscope(e, scope);
}

static void open_loop(walk_t* w, const uint32_t* leaves, uint32_t count,
                      int64_t trips) {
  pestle_emit_t* e = w->e;
  uint32_t axis = leaves[0];
  pestle_nest_axis_t* a = &e->nest->axes.data[axis];
  if (trips <= 0) return;
  if (trips == 1 && a->mark != PESTLE_MARK_GROUP) {
    open_fixed(w, leaves, count, 0);
    return;
  }
  int64_t before = a->extent;
  a->extent = trips;  // the range of the index
  size_t scope = pestle_emit_scope(e);
  bool group = a->mark == PESTLE_MARK_GROUP;
  if (!group) {
    e->axis_id[axis] = pestle_kir_for(
        e->k, a->name, pestle_kir_index(e->k, 0), pestle_kir_index(e->k, trips),
        1,
        a->mark == PESTLE_MARK_UNROLL ? PESTLE_KIR_UNROLL : PESTLE_KIR_SERIAL);
  }
  e->open[axis] = true;
  e->value[axis] = pestle_lin_axis(e->nest, axis);
  inside(w, leaves, count);
  if (!group) pestle_kir_end(e->k);
  e->open[axis] = false;
  pestle_emit_unscope(e, scope);
  e->nest->axes.data[axis].extent = before;
}

// A group axis has its index already: its rest is a branch.
static void open_group_peeled(walk_t* w, const uint32_t* leaves, uint32_t count,
                              int64_t full, uint32_t inner, int64_t factor,
                              int64_t rest) {
  pestle_emit_t* e = w->e;
  if (full == 0) {
    set_extent(e->nest, inner, rest);
    open_fixed(w, leaves, count, 0);
    return;
  }
  pestle_kir_if(
      e->k, pestle_kir_scalar(e->k, PESTLE_OP_LT, e->axis_id[leaves[0]],
                              pestle_kir_index(e->k, full), PESTLE_KIR_NONE));
  set_extent(e->nest, inner, factor);
  open_loop(w, leaves, count, full);
  pestle_kir_else(e->k);
  set_extent(e->nest, inner, rest);
  open_fixed(w, leaves, count, full);
  pestle_kir_end(e->k);
}

static void open_peeled(walk_t* w, const uint32_t* leaves, uint32_t count,
                        int64_t parent_extent, int64_t factor, uint32_t inner) {
  pestle_emit_t* e = w->e;
  int64_t full = parent_extent / factor, rest = parent_extent % factor;
  bool group = e->nest->axes.data[leaves[0]].mark == PESTLE_MARK_GROUP;
  int64_t before = e->nest->axes.data[inner].extent;
  if (rest && group) {
    open_group_peeled(w, leaves, count, full, inner, factor, rest);
  } else {
    set_extent(e->nest, inner, factor);
    open_loop(w, leaves, count, full);
    if (rest) {
      set_extent(e->nest, inner, rest);
      open_fixed(w, leaves, count, full);
    }
  }
  set_extent(e->nest, inner, before);
}

static void walk(walk_t* w, const uint32_t* leaves, uint32_t count) {
  pestle_emit_t* e = w->e;
  if (e->nest->failed) return;
  if (count == 0) {
    pestle_emit_coords(e, w->stage);
    w->body(e, w->stage, w->user);
    return;
  }
  const pestle_nest_axis_t* a = &e->nest->axes.data[leaves[0]];
  if (a->mark == PESTLE_MARK_VECTOR) {
    open_vector(w, leaves, count);
    return;
  }
  if (a->parent >= 0) {
    const pestle_nest_axis_t* p = &e->nest->axes.data[a->parent];
    if (p->outer == (int32_t)leaves[0]) {
      open_peeled(w, leaves, count, p->extent, p->factor, (uint32_t)p->inner);
      return;
    }
  }
  open_loop(w, leaves, count, a->extent);
}

// --- Boxes ---

typedef struct boxer_t {
  pestle_emit_t* e;
  uint32_t tensor;
  pestle_box_t* box;
  bool any;
} boxer_t;

static bool lin_closed(const pestle_emit_t* e, const pestle_lin_t* lin) {
  for (uint32_t i = 0; i < lin->count; ++i) {
    const pestle_atom_t* atom = lin->terms[i].atom;
    if (atom->kind == PESTLE_ATOM_AXIS && !e->open[atom->axis]) return true;
    if (atom->lin && lin_closed(e, atom->lin)) return true;
    if (atom->value) return true;
  }
  return false;
}

// Splits |lin| into an origin over open axes and an extent over closed ones.
static bool box_of_lin(pestle_emit_t* e, const pestle_lin_t* lin,
                       const pestle_lin_t** out_origin, int64_t* out_extent) {
  pestle_nest_t* nest = e->nest;
  const pestle_lin_t* origin = pestle_lin_const(nest, lin->constant);
  int64_t extent = 1;
  for (uint32_t i = 0; i < lin->count; ++i) {
    const pestle_term_t* t = &lin->terms[i];
    pestle_lin_t* one = pestle_arena_alloc_zero(
        nest->arena, sizeof(*one) + sizeof(*t), _Alignof(pestle_lin_t));
    if (!one) {
      nest->failed = true;
      return false;
    }
    one->count = 1;
    one->terms[0] = *t;
    bool axis = t->atom->kind == PESTLE_ATOM_AXIS;
    if (axis && !e->open[t->atom->axis]) {
      pestle_range_t r = pestle_lin_range(nest, one);
      extent += r.hi - r.lo;
      origin = pestle_lin_add(nest, origin, pestle_lin_const(nest, r.lo));
    } else if (!axis && lin_closed(e, one)) {
      return false;
    } else {
      origin = pestle_lin_add(nest, origin, one);
    }
  }
  *out_origin = origin;
  *out_extent = extent;
  return true;
}

static void whole_dim(pestle_emit_t* e, pestle_box_t* box, int32_t d,
                      int64_t dim) {
  box->origin[d] = pestle_lin_const(e->nest, 0);
  box->extent[d] = dim;
}

static void join_dim(pestle_emit_t* e, pestle_box_t* box, int32_t d,
                     int64_t dim, const pestle_lin_t* origin, int64_t extent,
                     bool first) {
  pestle_nest_t* nest = e->nest;
  if (first) {
    box->origin[d] = origin;
    box->extent[d] = extent;
  } else {
    const pestle_lin_t* apart = pestle_lin_add(
        nest, origin, pestle_lin_scale(nest, box->origin[d], -1));
    if (!pestle_lin_is_const(apart)) {
      whole_dim(e, box, d, dim);
      return;
    }
    int64_t lo = apart->constant < 0 ? apart->constant : 0;
    int64_t hi = apart->constant + extent;
    if (box->extent[d] > hi) hi = box->extent[d];
    if (lo < 0) box->origin[d] = origin;
    box->extent[d] = hi - lo;
  }
  if (pestle_lin_is_const(box->origin[d]) &&
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
    const pestle_lin_t* at = pestle_emit_resolve(e, x->index[d]);
    const pestle_lin_t* origin;
    int64_t extent;
    if (x->guard || !box_of_lin(e, at, &origin, &extent)) {
      whole_dim(e, b->box, d, type->dims[d]);
    } else {
      join_dim(e, b->box, d, type->dims[d], origin, extent, !b->any);
    }
  }
  b->any = true;
}

static bool placed_here(const pestle_nest_stage_t* s, uint32_t stage,
                        int32_t axis) {
  return !s->inlined && s->at_stage == (int32_t)stage && s->at_axis == axis;
}

// Whether |s| runs under that loop of |stage|, there or further in.
static bool placed_under(const pestle_emit_t* e, const pestle_nest_stage_t* s,
                         uint32_t stage, int32_t axis) {
  if (s->inlined || s->at_stage != (int32_t)stage) return false;
  if (s->at_axis == axis || axis < 0) return true;
  if (s->at_axis < 0) return false;  // it ran before all loops
  const pestle_nest_stage_t* c = pestle_nest_stage(e->nest, stage);
  for (uint32_t i = 0; i < c->order_count; ++i) {
    if ((int32_t)c->order[i] == axis) return true;
    if ((int32_t)c->order[i] == s->at_axis) return false;
  }
  return false;
}

static void visit_stage(pestle_emit_t* e, uint32_t stage, boxer_t* b) {
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  // The arena is not rewound by the visit: boxes live in it.
  for (uint32_t v = 0; v < s->value_count; ++v) {
    uint8_t* seen =
        pestle_arena_alloc_zero(e->nest->arena, e->nest->expr_count + 1, 1);
    if (!seen) {
      e->nest->failed = true;
      return;
    }
    pestle_expr_visit_with(e->nest, seen, s->values[v], box_visit, b);
  }
}

// What stage |p| must compute under (|stage|, |axis|): the hull of all reads.
static void find_box(pestle_emit_t* e, uint32_t p, uint32_t stage,
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
      if (q == stage ||
          placed_under(e, pestle_nest_stage(nest, q), stage, axis)) {
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
  box->known = true;
  box->count = 1;
  int64_t lanes = 1;
  const pestle_nest_axis_t* leaf =
      s->order_count ? &nest->axes.data[s->order[s->order_count - 1]] : NULL;
  if (leaf && leaf->mark == PESTLE_MARK_VECTOR && !leaf->fold) {
    lanes = leaf->full_extent;
  }
  for (int32_t d = type->rank - 1; d >= 0; --d) {
    set_extent(nest, s->roots[d], box->extent[d]);
    box->stride[d] = box->count;
    int64_t extent = box->extent[d];
    if (d == type->rank - 1) extent = (extent + lanes - 1) / lanes * lanes;
    box->count *= extent > 0 ? extent : 1;
  }
  for (uint32_t v = 1; v < s->value_count; ++v) {
    e->box[s->tensors[v]] = *box;
  }
  pestle_emit_coords(e, p);
}

// --- Statements ---

static void store_stage(pestle_emit_t* e, uint32_t stage, uint32_t v,
                        pestle_kir_id_t value) {
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  uint32_t tensor = s->tensors[v];
  const pestle_lin_t* at;
  if (e->nest->failed) return;
  if (s->write_index[v]) {
    at = pestle_emit_resolve(e, s->write_index[v][0]);
  } else {
    const pestle_box_t* box = &e->box[tensor];
    at = pestle_lin_const(e->nest, 0);
    for (uint32_t i = 0; i < s->map_count; ++i) {
      const pestle_lin_t* c =
          pestle_lin_add(e->nest, e->coord[s->roots[i]],
                         pestle_lin_scale(e->nest, box->origin[i], -1));
      at = pestle_lin_add(e->nest, at,
                          pestle_lin_scale(e->nest, c, box->stride[i]));
    }
  }
  pestle_emit_store(e, tensor, at, value);
}

static void map_body(pestle_emit_t* e, uint32_t stage, void* user) {
  (void)user;
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  size_t scope = pestle_emit_scope(e);
  pestle_kir_id_t ids[PESTLE_MAX_RANK];
  uint32_t n = s->value_count;
  // All values first: results may overwrite arguments that others read.
  for (uint32_t first = 0; first < n; first += PESTLE_MAX_RANK) {
    uint32_t last = first + PESTLE_MAX_RANK < n ? first + PESTLE_MAX_RANK : n;
    for (uint32_t v = first; v < last; ++v) {
      ids[v - first] = pestle_emit_expr(e, s->values[v]);
    }
    for (uint32_t v = first; v < last; ++v) {
      store_stage(e, stage, v, ids[v - first]);
    }
  }
  pestle_emit_unscope(e, scope);
}

// --- Folds ---

typedef struct fold_t {
  uint32_t acc[PESTLE_MAX_RANK];  // private buffers, one a value
  unsigned lanes;                 // of an accumulator
  int32_t vector;                 // the vector leaf, or -1
  bool vector_fold;
  uint32_t inner[PESTLE_NEST_MAX_AXES];  // leaves that index accumulators
  int64_t stride[PESTLE_NEST_MAX_AXES];
  uint32_t inner_count;
  uint32_t parts[PESTLE_NEST_MAX_AXES];  // rfactored, unrolled leaves
  uint32_t part_count;
  uint32_t maps[PESTLE_NEST_MAX_AXES];  // map leaves of the tile
  uint32_t map_count;
  bool fused;  // multiply-add in one step
} fold_t;

static double identity_float(pestle_op_t op) {
  if (op == PESTLE_OP_ADD) return -0.0;
  if (op == PESTLE_OP_MULTIPLY) return 1.0;
  return op == PESTLE_OP_MAXIMUM ? (double)-INFINITY : (double)INFINITY;
}

static int64_t identity_int(pestle_op_t op, pestle_dtype_t dtype) {
  const pestle_dtype_info_t* info = pestle_dtype_info(dtype);
  bool is_signed = info->kind == PESTLE_KIND_SIGNED;
  uint64_t ones = info->bits >= 64 ? ~0ull : (1ull << info->bits) - 1;
  uint64_t top = is_signed ? ones >> 1 : ones;
  switch ((int)op) {
    case PESTLE_OP_MULTIPLY:
      return 1;
    case PESTLE_OP_AND:
      return is_signed ? -1 : (int64_t)ones;
    case PESTLE_OP_MINIMUM:
      return (int64_t)top;
    case PESTLE_OP_MAXIMUM:
      return is_signed ? -(int64_t)top - 1 : 0;
    default:
      return 0;  // add, or, xor
  }
}

static pestle_kir_id_t identity_of(pestle_emit_t* e, pestle_op_t op,
                                   pestle_dtype_t dtype, unsigned lanes) {
  bool f = pestle_dtype_is(dtype, PESTLE_KIND_FLOAT);
  return pestle_kir_const(e->k, dtype, lanes, f ? identity_float(op) : 0.0,
                          f ? 0 : identity_int(op, dtype));
}

static pestle_dtype_t value_dtype(const pestle_emit_t* e,
                                  const pestle_nest_stage_t* s, uint32_t v) {
  return e->nest->tensors.data[s->tensors[v]].type.dtype;
}

static pestle_kir_id_t acc_index(pestle_emit_t* e, const fold_t* f) {
  pestle_kir_id_t at = pestle_kir_index(e->k, 0);
  for (uint32_t i = 0; i < f->inner_count; ++i) {
    const pestle_lin_t* v = e->value[f->inner[i]];
    if (!e->open[f->inner[i]]) continue;
    if (pestle_lin_is_const(v)) {
      at = pestle_kir_madi(e->k, pestle_kir_index(e->k, v->constant),
                           f->stride[i], at);
    } else {
      at = pestle_kir_madi(e->k, e->axis_id[f->inner[i]], f->stride[i], at);
    }
  }
  return at;
}

static bool starts_at_init(const fold_t* f) {
  return !f->vector_fold && f->part_count == 0;
}

static void init_body(pestle_emit_t* e, uint32_t stage, void* user) {
  fold_t* f = user;
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  for (uint32_t v = 0; v < s->value_count; ++v) {
    pestle_kir_id_t start =
        starts_at_init(f) ? pestle_emit_expr(e, s->inits[v])
                          : identity_of(e, s->fold, value_dtype(e, s, v), 1);
    if (pestle_kir_lanes_of(e->k, start) != f->lanes) {
      start = pestle_kir_splat(e->k, start, f->lanes);
    }
    pestle_kir_store(e->k, f->acc[v], acc_index(e, f), start, PESTLE_KIR_NONE,
                     0);
  }
}

static pestle_kir_id_t to_lanes(pestle_emit_t* e, pestle_kir_id_t value,
                                unsigned lanes) {
  if (pestle_kir_lanes_of(e->k, value) == lanes) return value;
  return pestle_kir_splat(e->k, value, lanes);
}

// The operands of the combine step stay on the stack of the caller only.
static void general_update(pestle_emit_t* e, const pestle_nest_stage_t* s,
                           fold_t* f, pestle_kir_id_t at) {
  pestle_kir_id_t acc[PESTLE_MAX_RANK], val[PESTLE_MAX_RANK],
      out[PESTLE_MAX_RANK];
  for (uint32_t v = 0; v < s->value_count; ++v) {
    acc[v] = pestle_kir_load(e->k, f->acc[v], f->lanes, at, PESTLE_KIR_NONE, 0);
    val[v] = to_lanes(e, pestle_emit_expr(e, s->values[v]), f->lanes);
  }
  e->acc_ids = acc;
  e->val_ids = val;
  for (uint32_t v = 0; v < s->value_count; ++v) {
    out[v] = to_lanes(e, pestle_emit_expr(e, s->combine[v]), f->lanes);
  }
  e->acc_ids = e->val_ids = NULL;
  for (uint32_t v = 0; v < s->value_count; ++v) {
    pestle_kir_store(e->k, f->acc[v], at, out[v], PESTLE_KIR_NONE, 0);
  }
}

static void row_update(pestle_emit_t* e, const pestle_nest_stage_t* s,
                       fold_t* f, pestle_kir_id_t at) {
  pestle_kir_id_t acc =
      pestle_kir_load(e->k, f->acc[0], f->lanes, at, PESTLE_KIR_NONE, 0);
  bool masked = f->vector_fold && e->valid < (int64_t)e->lanes;
  const pestle_expr_t* x = s->values[0];
  pestle_kir_id_t next;
  if (f->fused && !masked) {
    pestle_kir_id_t a = to_lanes(e, pestle_emit_expr(e, x->args[0]), f->lanes);
    pestle_kir_id_t b = to_lanes(e, pestle_emit_expr(e, x->args[1]), f->lanes);
    next = pestle_kir_scalar(e->k, PESTLE_OP_FMA, a, b, acc);
  } else {
    pestle_kir_id_t value = to_lanes(e, pestle_emit_expr(e, x), f->lanes);
    if (masked) {
      pestle_kir_id_t mask = pestle_emit_mask(e, pestle_kir_index(e->k, 0));
      value = pestle_kir_scalar(
          e->k, PESTLE_OP_SELECT, mask, value,
          identity_of(e, s->fold, value_dtype(e, s, 0), f->lanes));
    }
    next = pestle_kir_scalar(e->k, s->fold, acc, value, PESTLE_KIR_NONE);
  }
  pestle_kir_store(e->k, f->acc[0], at, next, PESTLE_KIR_NONE, 0);
}

static void update_body(pestle_emit_t* e, uint32_t stage, void* user) {
  fold_t* f = user;
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  size_t scope = pestle_emit_scope(e);
  if (s->combine) {
    general_update(e, s, f, acc_index(e, f));
  } else {
    row_update(e, s, f, acc_index(e, f));
  }
  pestle_emit_unscope(e, scope);
}

// The partial results of one element, folded pairwise in a fixed order.
static pestle_kir_id_t combine_parts(pestle_emit_t* e,
                                     const pestle_nest_stage_t* s, fold_t* f) {
  int64_t count = 1;
  for (uint32_t i = 0; i < f->part_count; ++i) {
    count *= e->nest->axes.data[f->parts[i]].full_extent;
  }
  pestle_kir_id_t part[64];
  if (count > 64) {  // the sketches make at most four
    e->nest->failed = true;
    return acc_index(e, f);
  }
  pestle_kir_id_t base = acc_index(e, f);
  for (int64_t i = 0; i < count; ++i) {
    part[i] = pestle_kir_load(
        e->k, f->acc[0], f->lanes,
        pestle_kir_madi(e->k, base, 1, pestle_kir_index(e->k, i)),
        PESTLE_KIR_NONE, 0);
  }
  for (int64_t w = 1; w < count; w *= 2) {
    for (int64_t i = 0; i + w < count; i += 2 * w) {
      part[i] = pestle_kir_scalar(e->k, s->fold, part[i], part[i + w],
                                  PESTLE_KIR_NONE);
    }
  }
  return part[0];
}

static bool init_is_neutral(const pestle_nest_stage_t* s) {
  const pestle_expr_t* x = s->inits[0];
  if (x->kind != PESTLE_EXPR_CONST) return false;
  pestle_dtype_t dtype = (pestle_dtype_t)x->dtype;
  if (!pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) {
    return x->i == identity_int(s->fold, dtype);
  }
  return s->fold != PESTLE_OP_ADD && x->f == identity_float(s->fold);
}

static void result_body(pestle_emit_t* e, uint32_t stage, void* user) {
  fold_t* f = user;
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  for (uint32_t v = 0; v < s->value_count; ++v) {
    pestle_kir_id_t value;
    if (starts_at_init(f)) {
      value = pestle_kir_load(e->k, f->acc[v], f->lanes, acc_index(e, f),
                              PESTLE_KIR_NONE, 0);
    } else {
      value = combine_parts(e, s, f);
      if (f->vector_fold) value = pestle_kir_reduce(e->k, value, s->fold);
      if (!init_is_neutral(s)) {
        value = pestle_kir_scalar(e->k, s->fold,
                                  to_lanes(e, pestle_emit_expr(e, s->inits[0]),
                                           pestle_kir_lanes_of(e->k, value)),
                                  value, PESTLE_KIR_NONE);
      }
    }
    store_stage(e, stage, v, value);
  }
}

// Sorts the leaves from the first fold loop on into those that index
// accumulators and the others; parts stand last, so that they are contiguous.
static void classify(pestle_emit_t* e, const pestle_nest_stage_t* s,
                     uint32_t first, fold_t* f) {
  f->vector = -1;
  for (uint32_t i = first; i < s->order_count; ++i) {
    const pestle_nest_axis_t* a = &e->nest->axes.data[s->order[i]];
    if (!a->fold) f->maps[f->map_count++] = s->order[i];
    if (a->mark == PESTLE_MARK_VECTOR) {
      f->vector = (int32_t)s->order[i];
      f->vector_fold = a->fold;
      f->lanes = (unsigned)a->full_extent;
    } else if (!a->fold) {
      f->inner[f->inner_count++] = s->order[i];
    } else if (a->rfactored) {
      f->parts[f->part_count++] = s->order[i];
    }
  }
  for (uint32_t i = 0; i < f->part_count; ++i) {
    f->inner[f->inner_count++] = f->parts[i];
  }
}

static int64_t tile_extent(const pestle_nest_t* nest, uint32_t leaf) {
  const pestle_nest_axis_t* a = &nest->axes.data[leaf];
  return a->rfactored ? a->full_extent : a->extent;
}

static void make_accumulators(pestle_emit_t* e, const pestle_nest_stage_t* s,
                              fold_t* f) {
  int64_t count = 1;
  for (uint32_t i = f->inner_count; i-- > 0;) {
    f->stride[i] = count;
    int64_t extent = tile_extent(e->nest, f->inner[i]);
    count *= extent > 0 ? extent : 1;
  }
  for (uint32_t v = 0; v < s->value_count; ++v) {
    f->acc[v] = pestle_kir_add_buffer(e->k, "acc", PESTLE_KIR_PRIVATE,
                                      value_dtype(e, s, v), f->lanes, count, 0);
    pestle_kir_alloc(e->k, f->acc[v]);
  }
}

// The fold's own loops, at the place where its map leaves outside of the first
// fold loop are open.
static void fold_body(pestle_emit_t* e, uint32_t stage, void* user) {
  uint32_t first = *(const uint32_t*)user;
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  fold_t f = {.lanes = 1};
  classify(e, s, first, &f);
  make_accumulators(e, s, &f);
  f.fused =
      e->contract && s->fold == PESTLE_OP_ADD && !s->combine &&
      s->values[0]->kind == PESTLE_EXPR_OP &&
      s->values[0]->op == PESTLE_OP_MULTIPLY &&
      pestle_dtype_is((pestle_dtype_t)s->values[0]->dtype, PESTLE_KIND_FLOAT);
  uint32_t leaves[PESTLE_NEST_MAX_AXES], n = 0;
  for (uint32_t i = 0; i < f.inner_count; ++i)
    leaves[n++] = f.inner[i];
  walk_t init = {e, stage, init_body, &f, false};
  walk(&init, leaves, n);
  walk_t update = {e, stage, update_body, &f, true};
  walk(&update, s->order + first, s->order_count - first);
  walk_t result = {e, stage, result_body, &f, false};
  walk(&result, f.maps, f.map_count);
}

static uint32_t first_fold_leaf(const pestle_emit_t* e,
                                const pestle_nest_stage_t* s) {
  for (uint32_t i = 0; i < s->order_count; ++i) {
    if (e->nest->axes.data[s->order[i]].fold) return i;
  }
  return s->order_count;
}

// --- Stages ---

// Registers are indexed by constants: a box that is walked by a real loop goes
// to scratch instead.
static void check_private(pestle_emit_t* e, const pestle_nest_stage_t* s) {
  bool unrolled = true;
  for (uint32_t i = 0; i < s->order_count; ++i) {
    const pestle_nest_axis_t* a = &e->nest->axes.data[s->order[i]];
    bool loop = a->mark == PESTLE_MARK_SERIAL || a->mark == PESTLE_MARK_GROUP;
    if (!a->fold && loop && a->extent > 1) unrolled = false;
  }
  for (uint32_t v = 0; !unrolled && v < s->value_count; ++v) {
    pestle_nest_tensor_t* t = &e->nest->tensors.data[s->tensors[v]];
    if (t->place == PESTLE_PLACE_PRIVATE) t->place = PESTLE_PLACE_SHARED;
  }
}

static void emit_stage(pestle_emit_t* e, uint32_t stage) {
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  check_private(e, s);
  for (uint32_t v = 0; v < s->value_count; ++v) {
    const pestle_nest_tensor_t* t = &e->nest->tensors.data[s->tensors[v]];
    if (t->kind != PESTLE_TENSOR_STAGE) continue;
    const pestle_nest_axis_t* leaf =
        s->order_count ? &e->nest->axes.data[s->order[s->order_count - 1]]
                       : NULL;
    unsigned lanes = 1;
    if (t->place == PESTLE_PLACE_PRIVATE && leaf &&
        leaf->mark == PESTLE_MARK_VECTOR && !leaf->fold) {
      lanes = (unsigned)leaf->full_extent;
    }
    bool fresh = e->buffer[s->tensors[v]] == PESTLE_KIR_NONE;
    if (fresh) {
      e->buffer[s->tensors[v]] = pestle_kir_add_buffer(
          e->k, t->name,
          t->place == PESTLE_PLACE_PRIVATE ? PESTLE_KIR_PRIVATE
                                           : PESTLE_KIR_SHARED,
          t->type.dtype, lanes, 1, 0);
    }
    if (e->k->failed) return;
    pestle_kir_buffer_t* b = &e->k->buffer.data[e->buffer[s->tensors[v]]];
    uint64_t count = (uint64_t)e->box[s->tensors[v]].count;
    if (t->place == PESTLE_PLACE_PRIVATE) count /= lanes;
    if (b->count < count) b->count = count;
    if (t->place == PESTLE_PLACE_PRIVATE) {
      pestle_kir_alloc(e->k, e->buffer[s->tensors[v]]);
    }
  }
  if (!s->is_fold) {
    walk_t w = {e, stage, map_body, NULL, true};
    pestle_emit_coords(e, stage);
    emit_attached(e, stage, -1);
    pestle_emit_coords(e, stage);
    hoist_values(&w);
    walk(&w, s->order, s->order_count);
    return;
  }
  uint32_t first = first_fold_leaf(e, s);
  walk_t w = {e, stage, fold_body, &first, false};
  walk(&w, s->order, first);
}

static void set_ready_stage(pestle_emit_t* e, uint32_t stage, bool ready) {
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  for (uint32_t v = 0; v < s->value_count; ++v) {
    e->ready[s->tensors[v]] = ready;
  }
}

// Whether what is placed under (|stage|, |axis|) may be read.
static void set_ready(pestle_emit_t* e, uint32_t stage, int32_t axis,
                      bool ready) {
  for (uint32_t p = 0; p < e->nest->stages.size; ++p) {
    if (placed_here(pestle_nest_stage(e->nest, p), stage, axis)) {
      set_ready_stage(e, p, ready);
    }
  }
}

static void emit_attached(pestle_emit_t* e, uint32_t stage, int32_t axis) {
  pestle_nest_t* nest = e->nest;
  int32_t vector = e->vector_axis;
  // Stages further in get their hull here first: what is placed here may be
  // read by them. They get their own box when their loop opens.
  for (size_t p = nest->stages.size; p-- > 0;) {
    if (placed_under(e, pestle_nest_stage(nest, (uint32_t)p), stage, axis)) {
      find_box(e, (uint32_t)p, stage, axis);
    }
  }
  for (uint32_t p = 0; p < nest->stages.size && !nest->failed; ++p) {
    if (!placed_here(pestle_nest_stage(nest, p), stage, axis)) continue;
    e->vector_axis = -1;
    emit_stage(e, p);
    set_ready_stage(e, p, true);
    e->vector_axis = vector;
  }
}

// --- The kernel ---

// The group loop: all group axes of the anchor as one, taken apart again.
static void emit_anchor(pestle_emit_t* e, uint32_t stage) {
  pestle_nest_t* nest = e->nest;
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  uint32_t groups = 0;
  int64_t total = 1;
  while (groups < s->order_count &&
         nest->axes.data[s->order[groups]].mark == PESTLE_MARK_GROUP) {
    total *= nest->axes.data[s->order[groups]].extent;
    ++groups;
  }
  pestle_kir_id_t g =
      pestle_kir_for(e->k, "g", pestle_kir_index(e->k, 0),
                     pestle_kir_index(e->k, total), 1, PESTLE_KIR_GROUP_X);
  if (total > 0) {
    for (uint32_t i = groups; i-- > 0;) {
      pestle_kir_id_t extent =
          pestle_kir_index(e->k, nest->axes.data[s->order[i]].extent);
      e->axis_id[s->order[i]] =
          i ? pestle_kir_scalar(e->k, PESTLE_OP_REMAINDER, g, extent,
                                PESTLE_KIR_NONE)
            : g;
      if (i) {
        g = pestle_kir_scalar(e->k, PESTLE_OP_DIVIDE, g, extent,
                              PESTLE_KIR_NONE);
      }
    }
    emit_stage(e, stage);
  }
  pestle_kir_end(e->k);
}

static pestle_status_t bind_arguments(pestle_emit_t* e, pestle_emitted_t* out) {
  pestle_nest_t* nest = e->nest;
  out->count = 0;
  uint8_t* used =
      pestle_arena_alloc_zero(nest->arena, nest->tensors.size + 1, 1);
  if (!used) return PESTLE_ERROR(OUT_OF_MEMORY, "emitting '%s'", nest->name);
  for (uint32_t s = 0; s < nest->stages.size; ++s) {
    const pestle_nest_stage_t* st = pestle_nest_stage(nest, s);
    if (st->inlined) continue;
    uint8_t* seen =
        pestle_arena_alloc_zero(nest->arena, nest->expr_count + 1, 1);
    if (!seen) return PESTLE_ERROR(OUT_OF_MEMORY, "emitting '%s'", nest->name);
    for (uint32_t v = 0; v < st->value_count; ++v) {
      pestle_expr_mark_tensors(nest, seen, st->values[v], used);
      if (st->is_fold) {
        pestle_expr_mark_tensors(nest, seen, st->inits[v], used);
      }
      used[st->tensors[v]] = 1;
    }
  }
  for (uint32_t t = 0; t < nest->tensors.size; ++t) {
    const pestle_nest_tensor_t* x = &nest->tensors.data[t];
    if (!used[t] || x->kind == PESTLE_TENSOR_STAGE) continue;
    if (out->count == sizeof(out->tensors) / sizeof(out->tensors[0])) {
      return PESTLE_ERROR(UNSUPPORTED,
                          "kernel '%s' has more than %u arguments; split the "
                          "group with --no-fuse",
                          nest->name, out->count);
    }
    bool input = x->kind == PESTLE_TENSOR_INPUT;
    int64_t count = x->pack ? x->packed_elements : pestle_type_count(&x->type);
    e->buffer[t] =
        pestle_kir_add_buffer(e->k, x->name, PESTLE_KIR_GLOBAL, x->type.dtype,
                              1, count, input ? PESTLE_KIR_READONLY : 0);
    out->tensors[out->count++] = t;
  }
  return NULL;
}

// A result that overwrites an argument shares its alias set, and the argument
// is not read-only to the compiler.
static void join_aliases(pestle_emit_t* e) {
  pestle_nest_t* nest = e->nest;
  for (uint32_t o = 0; o < nest->tensors.size; ++o) {
    const pestle_nest_tensor_t* out = &nest->tensors.data[o];
    if (out->kind != PESTLE_TENSOR_OUTPUT || out->alias < 0) continue;
    for (uint32_t i = 0; i < nest->tensors.size; ++i) {
      const pestle_nest_tensor_t* in = &nest->tensors.data[i];
      if (in->kind != PESTLE_TENSOR_INPUT || in->slot != (uint32_t)out->alias ||
          e->buffer[i] == PESTLE_KIR_NONE || e->k->failed) {
        continue;
      }
      pestle_kir_buffer_t* a = &e->k->buffer.data[e->buffer[i]];
      pestle_kir_buffer_t* b = &e->k->buffer.data[e->buffer[o]];
      a->flags &= (uint8_t)~PESTLE_KIR_READONLY;
      b->alias_set = a->alias_set;
    }
  }
}

static bool alloc_tables(pestle_emit_t* e) {
  pestle_nest_t* nest = e->nest;
  size_t axes = nest->axes.size + 1, tensors = nest->tensors.size + 1;
  e->memo_count = nest->expr_count;
  e->buffer = PESTLE_ARENA_ARRAY(nest->arena, uint32_t, tensors);
  e->box = pestle_arena_alloc_zero(nest->arena, tensors * sizeof(*e->box),
                                   _Alignof(pestle_box_t));
  e->open = pestle_arena_alloc_zero(nest->arena, axes, 1);
  e->ready = pestle_arena_alloc_zero(nest->arena, tensors, 1);
  e->value = pestle_arena_alloc_zero(nest->arena, axes * sizeof(*e->value),
                                     _Alignof(pestle_lin_t*));
  e->coord = pestle_arena_alloc_zero(nest->arena, axes * sizeof(*e->coord),
                                     _Alignof(pestle_lin_t*));
  e->axis_id = PESTLE_ARENA_ARRAY(nest->arena, pestle_kir_id_t, axes);
  e->memo = PESTLE_ARENA_ARRAY(nest->arena, pestle_kir_id_t, e->memo_count + 1);
  e->checked = pestle_arena_alloc_zero(
      nest->arena, (e->memo_count + 1) * sizeof(uint32_t), 4);
  if (!e->buffer || !e->box || !e->open || !e->ready || !e->value ||
      !e->coord || !e->axis_id || !e->memo || !e->checked) {
    return false;
  }
  memset(e->buffer, 0xff, tensors * sizeof(uint32_t));
  memset(e->axis_id, 0xff, axes * sizeof(pestle_kir_id_t));
  memset(e->memo, 0xff, (e->memo_count + 1) * sizeof(pestle_kir_id_t));
  return true;
}

pestle_status_t pestle_emit_flat(pestle_nest_t* nest,
                                 pestle_numerics_t numerics,
                                 pestle_kir_builder_t* k,
                                 pestle_emitted_t* out_args) {
  pestle_emit_t e = {
      .nest = nest, .k = k, .vector_axis = -1, .lanes = 1, .valid = 1};
  e.contract = numerics != PESTLE_NUMERICS_STRICT;
  k->facts = e.contract ? PESTLE_KIR_CONTRACT : 0;
  pestle_vec_init(&e.undo, nest->allocator);
  if (!alloc_tables(&e)) {
    return PESTLE_ERROR(OUT_OF_MEMORY, "emitting '%s'", nest->name);
  }
  PESTLE_TRY(bind_arguments(&e, out_args));
  join_aliases(&e);
  emit_anchor(&e, (uint32_t)nest->stages.size - 1);
  pestle_vec_deinit(&e.undo);
  if (nest->failed) {
    return PESTLE_ERROR(OUT_OF_MEMORY, "emitting '%s'", nest->name);
  }
  return pestle_kir_finish(k);
}

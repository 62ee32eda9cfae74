// SPDX-License-Identifier: Apache-2.0
// Reductions: sets accumulators, updates them in the reduction's loops, combines partial
// results and writes the sum.
#include <math.h>

#include "base/fault.h"
#include "codegen/emit/emit_internal.h"
#include "codegen/schedule/schedule.h"
#include "ir/identity.h"

enum {
  MAX_PARTS =
      64,  // of one element's reduction; more than any register file holds
};

typedef struct reduction_t {
  uint32_t acc[PESTLE_MAX_RANK];  // private buffers, one a value
  unsigned lanes;                 // of an accumulator
  int32_t vector;                 // the vector leaf, or -1
  bool vector_reduce;
  bool across[2];  // lanes of the group along x, y have partial results
  uint32_t inner[PESTLE_NEST_MAX_AXES];  // leaves that index accumulators
  int64_t stride[PESTLE_NEST_MAX_AXES];
  uint32_t inner_count;
  uint32_t parts[PESTLE_NEST_MAX_AXES];  // rfactored, unrolled leaves
  uint32_t part_count;
  uint32_t maps[PESTLE_NEST_MAX_AXES];  // map leaves of the tile
  uint32_t map_count;
  bool fused;     // multiply-add in one step
  uint8_t facts;  // of its steps, beside those of the kernel
  bool in_place;  // the accumulators are the stage's tensors
} reduction_t;

static pestle_kir_id_t identity_of(pestle_emit_t* e, pestle_op_t op,
                                   pestle_dtype_t dtype, unsigned lanes) {
  double f;
  int64_t i;
  pestle_reduce_identity(op, dtype, &f, &i);
  return pestle_kir_const(e->k, dtype, lanes, f, i);
}

static pestle_dtype_t value_dtype(const pestle_emit_t* e,
                                  const pestle_nest_stage_t* s, uint32_t v) {
  return e->nest->tensors.data[s->tensors[v]].type.dtype;
}

static pestle_kir_id_t acc_index(pestle_emit_t* e, const reduction_t* f) {
  pestle_kir_id_t at = pestle_kir_index(e->k, 0);
  for (uint32_t i = 0; i < f->inner_count; ++i) {
    const pestle_affine_t* v = e->value[f->inner[i]];
    if (!e->open[f->inner[i]]) continue;
    // Where a loop is cut, its parts count from where they begin.
    if (v->constant) {
      at = pestle_kir_madi(e->k, pestle_kir_index(e->k, v->constant),
                           f->stride[i], at);
    }
    if (!pestle_affine_is_const(v)) {
      at = pestle_kir_madi(e->k, e->axis_id[f->inner[i]], f->stride[i], at);
    }
  }
  return at;
}

// A step of the reduction.
static pestle_kir_id_t step(pestle_emit_t* e, const reduction_t* f,
                            pestle_op_t op, pestle_kir_id_t a,
                            pestle_kir_id_t b) {
  uint8_t facts = e->k->facts;
  e->k->facts |= f->facts;
  pestle_kir_id_t id = pestle_kir_scalar(e->k, op, a, b, PESTLE_KIR_NONE);
  e->k->facts = facts;
  return id;
}

// The lanes of |value|, reduced.
static pestle_kir_id_t reduce_lanes(pestle_emit_t* e, const reduction_t* f,
                                    pestle_op_t op, pestle_kir_id_t value) {
  uint8_t facts = e->k->facts;
  e->k->facts |= f->facts;
  pestle_kir_id_t id = pestle_kir_reduce(e->k, value, op);
  e->k->facts = facts;
  return id;
}

// --- Accumulators, at the open coordinates ---

static pestle_kir_id_t load_acc(pestle_emit_t* e, uint32_t stage,
                                reduction_t* f, uint32_t v) {
  if (f->in_place) return pestle_emit_load_stage(e, stage, v);
  return pestle_kir_load(e->k, f->acc[v], f->lanes, acc_index(e, f),
                         PESTLE_KIR_NONE, 0);
}

static void store_acc(pestle_emit_t* e, uint32_t stage, reduction_t* f,
                      uint32_t v, pestle_kir_id_t value) {
  if (f->in_place) {
    pestle_emit_store_stage(e, stage, v, value);
  } else {
    pestle_kir_store(e->k, f->acc[v], acc_index(e, f), value, PESTLE_KIR_NONE,
                     0);
  }
}

static bool starts_at_init(const reduction_t* f) {
  return !f->vector_reduce && !f->across[0] && !f->across[1] &&
         f->part_count == 0;
}

static void init_body(pestle_emit_t* e, uint32_t stage, void* user) {
  reduction_t* f = user;
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  for (uint32_t v = 0; v < s->value_count; ++v) {
    pestle_kir_id_t start =
        starts_at_init(f) ? pestle_emit_expr(e, s->inits[v])
                          : identity_of(e, s->reduce, value_dtype(e, s, v), 1);
    if (pestle_kir_lanes_of(e->k, start) != f->lanes) {
      start = pestle_kir_splat(e->k, start, f->lanes);
    }
    store_acc(e, stage, f, v, start);
  }
}

static pestle_kir_id_t to_lanes(pestle_emit_t* e, pestle_kir_id_t value,
                                unsigned lanes) {
  if (pestle_kir_lanes_of(e->k, value) == lanes) return value;
  return pestle_kir_splat(e->k, value, lanes);
}

// The operands of the combine step stay on the stack of the caller only.
static void general_update(pestle_emit_t* e, uint32_t stage,
                           const pestle_nest_stage_t* s, reduction_t* f) {
  pestle_kir_id_t acc[PESTLE_MAX_RANK], val[PESTLE_MAX_RANK],
      out[PESTLE_MAX_RANK];
  for (uint32_t v = 0; v < s->value_count; ++v) {
    acc[v] = load_acc(e, stage, f, v);
    val[v] = to_lanes(e, pestle_emit_expr(e, s->values[v]), f->lanes);
  }
  e->acc_ids = acc;
  e->val_ids = val;
  for (uint32_t v = 0; v < s->value_count; ++v) {
    out[v] = to_lanes(e, pestle_emit_expr(e, s->combine[v]), f->lanes);
  }
  e->acc_ids = e->val_ids = NULL;
  for (uint32_t v = 0; v < s->value_count; ++v) {
    store_acc(e, stage, f, v, out[v]);
  }
}

static void row_update(pestle_emit_t* e, uint32_t stage,
                       const pestle_nest_stage_t* s, reduction_t* f) {
  pestle_kir_id_t acc = load_acc(e, stage, f, 0);
  bool masked = f->vector_reduce && e->valid < (int64_t)e->lanes;
  if (PESTLE_FAULT(dropped_tail_mask)) masked = false;
  const pestle_expr_t* x = s->values[0];
  pestle_kir_id_t next;
  if (x->kind == PESTLE_EXPR_DOT && !masked) {
    next = pestle_emit_dot(e, x, acc);
  } else if (f->fused && !masked) {
    pestle_kir_id_t a = to_lanes(e, pestle_emit_expr(e, x->args[0]), f->lanes);
    pestle_kir_id_t b = to_lanes(e, pestle_emit_expr(e, x->args[1]), f->lanes);
    next = pestle_kir_scalar(e->k, PESTLE_OP_FMA, a, b, acc);
  } else {
    pestle_kir_id_t value = to_lanes(e, pestle_emit_expr(e, x), f->lanes);
    if (masked) {
      pestle_kir_id_t mask = pestle_emit_mask(e, pestle_kir_index(e->k, 0));
      value = pestle_kir_scalar(
          e->k, PESTLE_OP_SELECT, mask, value,
          identity_of(e, s->reduce, value_dtype(e, s, 0), f->lanes));
    }
    next = step(e, f, s->reduce, acc, value);
  }
  store_acc(e, stage, f, 0, next);
}

static void update_body(pestle_emit_t* e, uint32_t stage, void* user) {
  reduction_t* f = user;
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  size_t scope = pestle_emit_scope(e);
  if (s->combine) {
    general_update(e, stage, s, f);
  } else {
    row_update(e, stage, s, f);
  }
  pestle_emit_prefetch_step(e, stage);
  pestle_emit_unscope(e, scope);
}

// Whether partial result |index| exists here: a block that is shorter than the
// others has fewer.
static bool has_part(const pestle_emit_t* e, const reduction_t* f,
                     int64_t index) {
  for (uint32_t i = f->part_count; i-- > 0;) {
    const pestle_nest_axis_t* a = &e->nest->axes.data[f->parts[i]];
    if (index % a->full_extent >= a->extent) return false;
    index /= a->full_extent;
  }
  return true;
}

// The partial results of one element, reduced pairwise in a fixed order.
static pestle_kir_id_t combine_parts(pestle_emit_t* e,
                                     const pestle_nest_stage_t* s,
                                     reduction_t* f) {
  int64_t all = 1, count = 0;
  for (uint32_t i = 0; i < f->part_count; ++i) {
    all *= e->nest->axes.data[f->parts[i]].full_extent;
  }
  pestle_kir_id_t part[MAX_PARTS];
  if (all > MAX_PARTS) {
    pestle_nest_fail(
        e->nest,
        PESTLE_ERROR(
            UNSUPPORTED,
            "kernel '%s': stage '%s' reduces into %lld partial results "
            "side by side, more than %d; unroll fewer of its reduction "
            "loops",
            e->nest->name, s->name, (long long)all, MAX_PARTS));
    return acc_index(e, f);
  }
  pestle_kir_id_t base = acc_index(e, f);
  for (int64_t i = 0; i < all; ++i) {
    if (!has_part(e, f, i)) continue;
    part[count++] = pestle_kir_load(
        e->k, f->acc[0], f->lanes,
        pestle_kir_madi(e->k, base, 1, pestle_kir_index(e->k, i)),
        PESTLE_KIR_NONE, 0);
  }
  for (int64_t w = 1; w < count; w *= 2) {
    for (int64_t i = 0; i + w < count; i += 2 * w) {
      part[i] = step(e, f, s->reduce, part[i], part[i + w]);
    }
  }
  return part[0];
}

static bool init_is_identity(const pestle_nest_stage_t* s) {
  const pestle_expr_t* x = s->inits[0];
  if (PESTLE_FAULT(wrong_reduction_start)) return true;
  if (x->kind != PESTLE_EXPR_CONST) return false;
  pestle_dtype_t dtype = (pestle_dtype_t)x->dtype;
  double f;
  int64_t i;
  pestle_reduce_identity(s->reduce, dtype, &f, &i);
  if (!pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) return x->i == i;
  // -0 is the identity of sums, and equal to the 0 that is not.
  return x->f == f && (s->reduce != PESTLE_OP_ADD || signbit(x->f));
}

static void result_body(pestle_emit_t* e, uint32_t stage, void* user) {
  reduction_t* f = user;
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  for (uint32_t v = 0; v < s->value_count; ++v) {
    pestle_kir_id_t value;
    if (starts_at_init(f)) {
      value = pestle_kir_load(e->k, f->acc[v], f->lanes, acc_index(e, f),
                              PESTLE_KIR_NONE, 0);
    } else {
      value = combine_parts(e, s, f);
      if (f->vector_reduce) value = reduce_lanes(e, f, s->reduce, value);
      for (int d = 0; d < 2; ++d) {
        if (!f->across[d]) continue;
        value = pestle_emit_reduce_across(e, s->reduce, value, d);
      }
      if (!init_is_identity(s)) {
        value = pestle_kir_scalar(e->k, s->reduce,
                                  to_lanes(e, pestle_emit_expr(e, s->inits[0]),
                                           pestle_kir_lanes_of(e->k, value)),
                                  value, PESTLE_KIR_NONE);
      }
    }
    pestle_emit_store_stage(e, stage, v, value);
  }
}

// Sorts the leaves from the first reduction loop on into those that index
// accumulators and the others; parts stand last, so that they are contiguous.
static void classify(pestle_emit_t* e, const pestle_nest_stage_t* s,
                     uint32_t first, reduction_t* f) {
  f->vector = -1;
  for (uint32_t i = first; i < s->order_count; ++i) {
    const pestle_nest_axis_t* a = &e->nest->axes.data[s->order[i]];
    if (!a->reduce) f->maps[f->map_count++] = s->order[i];
    if (a->mark == PESTLE_MARK_VECTOR) {
      f->vector = (int32_t)s->order[i];
      f->vector_reduce = a->reduce;
      f->lanes = (unsigned)a->full_extent;
    } else if (!a->reduce) {
      f->inner[f->inner_count++] = s->order[i];
    } else if (pestle_mark_is_lane(a->mark)) {
      f->across[a->mark == PESTLE_MARK_LANE_Y] = true;
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
                              reduction_t* f) {
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

// Registers have no addresses: accumulators that a real loop walks lie where
// the stage's result does.
static bool is_walked(const pestle_emit_t* e, const reduction_t* f) {
  for (uint32_t i = 0; i < f->map_count; ++i) {
    const pestle_nest_axis_t* a = &e->nest->axes.data[f->maps[i]];
    if (a->mark == PESTLE_MARK_SERIAL && a->extent > 1) return true;
  }
  return false;
}

static void find_fused(const pestle_emit_t* e, const pestle_nest_stage_t* s,
                       reduction_t* f) {
  f->fused =
      e->contract && s->reduce == PESTLE_OP_ADD && !s->combine &&
      s->values[0]->kind == PESTLE_EXPR_OP &&
      s->values[0]->op == PESTLE_OP_MULTIPLY &&
      pestle_dtype_is((pestle_dtype_t)s->values[0]->dtype, PESTLE_KIND_FLOAT);
}

// --- Carried reductions ---

static bool is_carried_by(const pestle_nest_stage_t* s, uint32_t owner) {
  return s->carried && !s->inlined && s->at_stage == (int32_t)owner;
}

// All map leaves of a carried reduction, whose reduction loop is another's.
static void carried_reduce(pestle_emit_t* e, uint32_t stage, reduction_t* out) {
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  *out = (reduction_t){.lanes = 1, .vector = -1, .in_place = true};
  for (uint32_t i = 0; i < s->order_count; ++i) {
    const pestle_nest_axis_t* a = &e->nest->axes.data[s->order[i]];
    if (a->reduce) continue;
    out->maps[out->map_count++] = s->order[i];
    if (a->mark == PESTLE_MARK_VECTOR) out->lanes = (unsigned)a->full_extent;
  }
}

static void begin_carried(pestle_emit_t* e, uint32_t owner) {
  for (uint32_t c = 0; c < owner && !e->nest->failed; ++c) {
    if (!is_carried_by(pestle_nest_stage(e->nest, c), owner)) continue;
    reduction_t f;
    pestle_emit_carried_box(e, c, owner);
    pestle_emit_buffers(e, c);
    if (e->k->failed) return;
    carried_reduce(e, c, &f);
    pestle_emit_walk_t init = {e, c, init_body, &f, false};
    pestle_emit_walk(&init, f.maps, f.map_count);
  }
}

void pestle_emit_carried_step(pestle_emit_t* e, uint32_t stage) {
  reduction_t f;
  carried_reduce(e, stage, &f);
  pestle_emit_walk_t update = {e, stage, update_body, &f, false};
  pestle_emit_walk(&update, f.maps, f.map_count);
}

void pestle_emit_open_carried(pestle_emit_t* e, uint32_t stage, uint32_t axis,
                              bool open) {
  for (uint32_t c = 0; c < stage; ++c) {
    const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, c);
    if (!is_carried_by(s, stage) || s->at_axis != (int32_t)axis) continue;
    uint32_t own = s->roots[s->map_count];
    e->open[own] = open;
    e->value[own] = e->value[axis];
    e->axis_id[own] = e->axis_id[axis];
    pestle_emit_coords(e, c);
  }
}

// --- The loops ---

// The reduction's own loops, at the place where its map leaves outside of the first
// reduction loop are open.
static void reduce_body(pestle_emit_t* e, uint32_t stage, void* user) {
  uint32_t first = *(const uint32_t*)user;
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  reduction_t f = {.lanes = 1};
  classify(e, s, first, &f);
  find_fused(e, s, &f);
  f.facts = pestle_emit_reduce_facts(e, stage);
  f.in_place = is_walked(e, &f) && starts_at_init(&f);
  if (!f.in_place) make_accumulators(e, s, &f);
  begin_carried(e, stage);
  pestle_emit_walk_t init = {e, stage, init_body, &f, false};
  pestle_emit_walk_t update = {e, stage, update_body, &f, true};
  pestle_emit_walk_t result = {e, stage, result_body, &f, false};
  if (f.in_place) {
    pestle_emit_walk(&init, f.maps, f.map_count);
  } else {
    pestle_emit_walk(&init, f.inner, f.inner_count);
  }
  pestle_emit_walk(&update, s->order + first, s->order_count - first);
  if (!f.in_place) pestle_emit_walk(&result, f.maps, f.map_count);
}

// Without a reduction loop (a reduction over no axes) the vector loop takes its place:
// accumulators have its lanes.
static uint32_t first_reduce_leaf(const pestle_emit_t* e,
                                  const pestle_nest_stage_t* s) {
  uint32_t vector = s->order_count;
  for (uint32_t i = s->order_count; i-- > 0;) {
    if (e->nest->axes.data[s->order[i]].mark == PESTLE_MARK_VECTOR) vector = i;
  }
  for (uint32_t i = 0; i < s->order_count; ++i) {
    if (e->nest->axes.data[s->order[i]].reduce) return i;
  }
  return vector;
}

// Whether something is placed under one of the first |count| loops of |stage|. Only
// then, or where the border begins in one, are these attached: what is invariant in
// them is evaluated outside, too.
static bool has_placed(const pestle_emit_t* e, uint32_t stage, uint32_t count) {
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  for (uint32_t p = 0; p < stage; ++p) {
    const pestle_nest_stage_t* placed = pestle_nest_stage(e->nest, p);
    if (placed->inlined || placed->at_stage != (int32_t)stage) continue;
    for (uint32_t i = 0; i < count; ++i) {
      if (placed->at_axis == (int32_t)s->order[i]) return true;
    }
  }
  return false;
}

void pestle_emit_reduce(pestle_emit_t* e, uint32_t stage) {
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  uint32_t first = first_reduce_leaf(e, s);
  bool cuts = s->border && !s->skips;  // a result is none that is left out
  bool attach = cuts || has_placed(e, stage, first);
  pestle_emit_walk_t w = {e, stage, reduce_body, &first, attach};
  pestle_emit_walk(&w, s->order, first);
}

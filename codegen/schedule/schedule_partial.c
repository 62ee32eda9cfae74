// SPDX-License-Identifier: Apache-2.0
// The primitives partial and border, of one reduction. partial makes a reduction of
// partial results, one a block of the axis; border cuts its loops where padding begins.
#include <string.h>

#include "codegen/schedule/schedule_internal.h"
#include "ir/identity.h"

// --- partial ---

static pestle_status_t check_partial(const pestle_nest_t* nest,
                                     const pestle_nest_stage_t* s,
                                     uint32_t axis, int64_t factor,
                                     bool reassociate) {
  const pestle_nest_axis_t* a = &nest->axes.data[axis];
  bool exact = s->reduce != PESTLE_OP_ADD && s->reduce != PESTLE_OP_MULTIPLY;
  if (!s->is_reduction || s->reduce == PESTLE_OP_COUNT || s->value_count != 1 ||
      !a->reduce ||
      (!exact && !reassociate &&
       pestle_dtype_is(s->acc_dtype, PESTLE_KIND_FLOAT))) {
    return PESTLE_ERROR(
        INVALID_ARGUMENT,
        "partial %s.%s: it needs a reduction axis of an associative "
        "reduction, and reassociation for float sums",
        s->name, a->name);
  }
  if (a->parent >= 0 || a->outer >= 0 || a->block_axis >= 0 ||
      s->order_count != s->root_count || s->at_stage >= 0) {
    return PESTLE_ERROR(
        INVALID_ARGUMENT,
        "partial %s.%s: the stage has other primitives already; this "
        "one comes first",
        s->name, a->name);
  }
  if (factor < 1 || factor >= a->extent || s->map_count == PESTLE_MAX_RANK) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "partial %s.%s by %lld: blocks must be shorter than "
                        "the axis, and a tensor has at most %d dims",
                        s->name, a->name, (long long)factor, PESTLE_MAX_RANK);
  }
  return NULL;
}

// Gives |p| copies of the reduction axes of |stage|, that of |cut| in blocks, and
// fills |map| from the axes of |stage| to those of |p|.
static void take_axes(pestle_nest_t* nest, uint32_t stage, uint32_t p,
                      uint32_t cut, int64_t factor,
                      const pestle_affine_t** map) {
  const pestle_nest_stage_t s = *pestle_nest_stage(nest, stage);
  pestle_nest_stage_t* to = pestle_nest_stage(nest, p);
  for (uint32_t i = 0; i < s.map_count; ++i) {
    map[s.roots[i]] = pestle_affine_axis(nest, to->roots[i + 1]);
  }
  for (uint32_t i = s.map_count; i < s.root_count && !nest->failed; ++i) {
    const pestle_nest_axis_t from = nest->axes.data[s.roots[i]];
    uint32_t axis =
        pestle_nest_add_axis(nest, from.name, (int32_t)p, true, from.extent);
    if (nest->failed) return;
    if (s.roots[i] == cut) {
      nest->axes.data[axis].block_axis = (int32_t)to->roots[0];
      nest->axes.data[axis].block = factor;
      nest->axes.data[axis].peel_last = from.peel_last;
    }
    to->roots[to->root_count++] = axis;
    to->order[to->order_count++] = axis;
    map[s.roots[i]] = pestle_affine_axis(nest, axis);
  }
}

// The reduction of |stage| over blocks that |p| has computed.
static void reduce_blocks(pestle_nest_t* nest, uint32_t stage, uint32_t p,
                          uint32_t cut, int64_t blocks, bool rest) {
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  for (uint32_t i = s->map_count; i < s->root_count; ++i) {
    nest->axes.data[s->roots[i]].stage = -1;  // their names are free again
  }
  uint32_t axis = pestle_nest_add_axis(nest, nest->axes.data[cut].name,
                                       (int32_t)stage, true, blocks);
  if (nest->failed) return;
  nest->axes.data[axis].peel_last = rest;
  const pestle_affine_t* index[PESTLE_MAX_RANK] = {
      pestle_affine_axis(nest, axis)};
  for (uint32_t i = 0; i < s->map_count; ++i) {
    index[i + 1] = pestle_affine_axis(nest, s->roots[i]);
  }
  s->root_count = s->map_count;
  s->roots[s->root_count++] = axis;
  memcpy(s->order, s->roots, sizeof(s->order));
  s->order_count = s->root_count;
  s->values[0] = pestle_expr_read(nest, pestle_nest_stage(nest, p)->tensors[0],
                                  index, NULL);
}

pestle_status_t pestle_schedule_partial(pestle_nest_t* nest, uint32_t stage,
                                        uint32_t axis, int64_t factor,
                                        bool reassociate,
                                        uint32_t* out_partial) {
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  PESTLE_TRY(check_partial(nest, s, axis, factor, reassociate));
  const char* names[1] = {pestle_schedule_axis_name(nest, axis)};
  int64_t extent = nest->axes.data[axis].extent;
  int64_t blocks = extent / factor + (extent % factor != 0);
  pestle_type_t domain = {.dtype = s->acc_dtype,
                          .rank = (int32_t)s->map_count + 1,
                          .dims = {blocks}};
  for (uint32_t i = 0; i < s->map_count; ++i) {
    domain.dims[i + 1] = nest->axes.data[s->roots[i]].extent;
  }
  uint32_t p = pestle_nest_add_stage(
      nest, pestle_schedule_derived_name(nest, s->name, "p"), &domain);
  PESTLE_TRY(pestle_nest_status(nest));
  // Room for the axes that take_axes adds.
  const pestle_affine_t** map = pestle_arena_alloc_zero(
      nest->arena, (nest->axes.size + PESTLE_NEST_MAX_AXES) * sizeof(*map),
      _Alignof(pestle_affine_t*));
  pestle_nest_stage_t* to = pestle_nest_stage(nest, p);
  to->inits = PESTLE_ARENA_ARRAY(nest->arena, const pestle_expr_t*, 1);
  if (!map || !to->inits) {
    return PESTLE_ERROR(OUT_OF_MEMORY, "scheduling '%s'", nest->name);
  }
  s = pestle_nest_stage(nest, stage);
  to->is_reduction = true;
  to->reduce = s->reduce;
  to->acc_dtype = s->acc_dtype;
  double f;
  int64_t i;
  pestle_reduce_identity(s->reduce, s->acc_dtype, &f, &i);
  to->inits[0] = pestle_expr_const(nest, s->acc_dtype, f, i);
  take_axes(nest, stage, p, axis, factor, map);
  pestle_substitution_t how;
  pestle_substitution_init(nest, map, &how);
  pestle_nest_stage(nest, p)->values[0] = pestle_expr_substitute(
      nest, &how, pestle_nest_stage(nest, stage)->values[0]);
  // Blocks of blocks: the last one may hold a shorter one.
  bool rest = extent % factor != 0 || nest->axes.data[axis].peel_last;
  reduce_blocks(nest, stage, p, axis, blocks, rest);
  PESTLE_TRY(pestle_nest_status(nest));
  pestle_schedule_move_before(nest, stage);
  *out_partial = stage;
  int64_t ints[2] = {factor, reassociate};
  return pestle_schedule_record(nest, PESTLE_PRIM_PARTIAL,
                                pestle_schedule_stage_name(nest, stage + 1),
                                names, 1, ints, 2);
}

// --- border ---

static bool is_zero(const pestle_expr_t* x) {
  return x->kind == PESTLE_EXPR_CONST && x->f == 0 && x->i == 0;
}

// Whether padding adds nothing to the reduction: it is a 0 that is multiplied.
static bool pads_products(const pestle_nest_stage_t* s) {
  const pestle_expr_t* x = s->values[0];
  if (s->combine || s->reduce != PESTLE_OP_ADD || x->kind != PESTLE_EXPR_OP ||
      x->op != PESTLE_OP_MULTIPLY) {
    return false;
  }
  // A test in both factors would be of different padding.
  bool padded[2];
  for (int i = 0; i < 2; ++i) {
    const pestle_expr_t* a = x->args[i];
    bool select = a->kind == PESTLE_EXPR_OP && a->op == PESTLE_OP_SELECT;
    padded[i] = select && is_zero(a->args[2]);
    if (select && !padded[i]) return false;
  }
  return padded[0] != padded[1];
}

bool pestle_nest_may_border(pestle_nest_t* nest, uint32_t stage,
                            bool reassociate) {
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  for (uint32_t i = 0; i < s->order_count; ++i) {
    if (nest->axes.data[s->order[i]].mark >= PESTLE_MARK_GROUP) return false;
  }
  if (!s->is_reduction || s->value_count != 1) return false;
  // What is made within a step must be made where the step is left out.
  for (uint32_t p = 0; reassociate && p < nest->stages.size; ++p) {
    const pestle_nest_stage_t* placed = pestle_nest_stage(nest, p);
    if (!placed->inlined && placed->at_stage == (int32_t)stage) return false;
  }
  return !reassociate || pads_products(s);
}

pestle_status_t pestle_schedule_border(pestle_nest_t* nest, uint32_t stage,
                                       bool reassociate) {
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  if (!pestle_nest_may_border(nest, stage, reassociate)) {
    return PESTLE_ERROR(
        INVALID_ARGUMENT,
        "border %s: it must be a reduction of one value, of loops "
        "that are neither groups nor lanes; with reassoc, a "
        "sum of products with zeros for padding, with nothing "
        "placed under its loops",
        s->name);
  }
  s->border = true;
  s->skips = reassociate;
  int64_t flag = reassociate;
  return pestle_schedule_record(nest, PESTLE_PRIM_BORDER, s->name, NULL, 0,
                                &flag, 1);
}

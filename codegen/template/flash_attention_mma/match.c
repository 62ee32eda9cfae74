// SPDX-License-Identifier: Apache-2.0
// Which nests are an attention in one pass over the keys: two products joined by an
// online softmax, of few enough columns for registers.
#include "codegen/template/flash_attention_mma/flash_attention_mma.h"

#include <math.h>

#include "codegen/schedule/schedule.h"

// --- Are two expressions one ---

static bool same(const pestle_expr_t* a, const pestle_expr_t* b) {
  if (a == b) return true;
  if (!a || !b || a->kind != b->kind || a->dtype != b->dtype ||
      a->op != b->op || a->i != b->i || a->lo != b->lo || a->hi != b->hi ||
      a->index_count != b->index_count || !same(a->guard, b->guard) ||
      a->f < b->f || a->f > b->f || isnan(a->f) != isnan(b->f) ||
      !a->affine != !b->affine ||
      (a->affine && !pestle_affine_equal(a->affine, b->affine))) {
    return false;
  }
  for (uint32_t i = 0; i < a->index_count; ++i) {
    if (!pestle_affine_equal(a->index[i], b->index[i])) return false;
  }
  return same(a->args[0], b->args[0]) && same(a->args[1], b->args[1]) &&
         same(a->args[2], b->args[2]);
}

// Whether |x| of stage |from| is |y| of stage |to|: axes correspond in order,
// but for the last map axis of |to|, which is left out where |to| has one more.
static bool corresponds(pestle_nest_t* nest, uint32_t from,
                        const pestle_expr_t* x, uint32_t to,
                        const pestle_expr_t* y) {
  const pestle_nest_stage_t* a = pestle_nest_stage(nest, from);
  const pestle_nest_stage_t* b = pestle_nest_stage(nest, to);
  const pestle_affine_t** map = pestle_arena_alloc_zero(
      nest->arena, nest->axes.size * sizeof(*map), _Alignof(pestle_affine_t*));
  if (!map) {
    pestle_nest_fail_memory(nest);
    return false;
  }
  for (uint32_t i = 0; i < a->root_count; ++i) {
    uint32_t j = i < a->map_count ? i : b->map_count + (i - a->map_count);
    map[a->roots[i]] = pestle_affine_axis(nest, b->roots[j]);
  }
  pestle_substitution_t how;
  pestle_substitution_init(nest, map, &how);
  x = pestle_expr_substitute(nest, &how, x);
  return !nest->failed && same(x, y);
}

// --- The stages ---

// |read|, if there is one, is at the first |count| roots of |s|, or at those and
// the reduction axis (|reduce|).
static bool is_at(const pestle_nest_t* nest, const pestle_expr_t* read,
                  const pestle_nest_stage_t* s, uint32_t count, bool reduce) {
  if (!read || read->guard || read->index_count != count + reduce) return false;
  for (uint32_t i = 0; i < read->index_count; ++i) {
    uint32_t axis = s->roots[i < count ? i : s->map_count];
    const pestle_affine_t* at = read->index[i];
    if (nest->axes.data[axis].full_extent == 1 && !at->count && !at->constant) {
      continue;
    }
    if (pestle_affine_is_axis(at) != (int32_t)axis) return false;
  }
  return true;
}

static uint32_t tensor_of(pestle_nest_t* nest, uint32_t stage) {
  return pestle_nest_stage(nest, stage)->tensors[0];
}

static bool reads_at(pestle_nest_t* nest, uint32_t stage, uint32_t of,
                     uint32_t count, bool reduce) {
  return is_at(nest,
               pestle_schedule_find_read(nest, stage, tensor_of(nest, of)),
               pestle_nest_stage(nest, stage), count, reduce);
}

static bool is_reduction(const pestle_nest_stage_t* s, pestle_op_t op,
                         double start) {
  const pestle_expr_t* init = s->is_reduction ? s->inits[0] : NULL;
  return init && s->reduce == op && !s->combine && s->value_count == 1 &&
         s->root_count == s->map_count + 1 && s->acc_dtype == PESTLE_F32 &&
         init->kind == PESTLE_EXPR_CONST && !(init->f < start) &&
         !(init->f > start);
}

// The four reductions in their order, and nothing else.
static bool find_stages(pestle_nest_t* nest, pestle_flash_attention_t* out) {
  uint32_t found[4], count = 0;
  uint32_t last = (uint32_t)nest->stages.size - 1;
  for (uint32_t s = 0; s < last; ++s) {
    if (pestle_nest_stage(nest, s)->inlined) continue;
    if (count == 4) return false;
    found[count++] = s;
  }
  if (count != 4 || pestle_nest_stage(nest, last)->is_reduction) return false;
  out->scores = found[0];
  out->maximum = found[1];
  out->total = found[2];
  out->output = found[3];
  out->last = last;
  for (uint32_t s = 0; s <= last; ++s) {
    const pestle_nest_stage_t* x = pestle_nest_stage(nest, s);
    for (uint32_t i = 0; i < x->root_count && !x->inlined; ++i) {
      if (!pestle_nest_axis_is_whole(&nest->axes.data[x->roots[i]])) {
        return false;
      }
    }
  }
  return is_reduction(pestle_nest_stage(nest, out->scores), PESTLE_OP_ADD, 0) &&
         is_reduction(pestle_nest_stage(nest, out->maximum), PESTLE_OP_MAXIMUM,
                      -INFINITY) &&
         is_reduction(pestle_nest_stage(nest, out->total), PESTLE_OP_ADD, 0) &&
         is_reduction(pestle_nest_stage(nest, out->output), PESTLE_OP_ADD, 0);
}

// |x| is exp(x(scores) - m), or such a power of 2.
static bool is_weight(pestle_nest_t* nest, const pestle_flash_attention_t* a,
                      uint32_t stage, const pestle_expr_t* x) {
  if (x->kind != PESTLE_EXPR_OP || x->op != a->power) return false;
  x = x->args[0];
  if (x->kind != PESTLE_EXPR_OP || x->op != PESTLE_OP_SUBTRACT) return false;
  const pestle_expr_t* m = x->args[1];
  return m->kind == PESTLE_EXPR_READ &&
         m->i == (int64_t)tensor_of(nest, a->maximum) &&
         corresponds(nest, a->maximum, a->x, stage, x->args[0]);
}

// --- Axes and operands ---

static void take_axes(const pestle_nest_t* nest, const pestle_nest_stage_t* s,
                      uint32_t first, uint32_t count,
                      pestle_product_axes_t* out) {
  *out = (pestle_product_axes_t){.count = count, .all = 1};
  for (uint32_t i = 0; i < count; ++i) {
    out->reduce[i] = s->roots[first + i];
    out->last[i] = (int32_t)s->roots[first + i];
    out->extent[i] = nest->axes.data[s->roots[first + i]].full_extent;
    out->all *= out->extent[i];
  }
}

static bool find_axes(pestle_nest_t* nest, int64_t columns,
                      pestle_flash_attention_t* a) {
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, a->scores);
  const pestle_nest_stage_t* m = pestle_nest_stage(nest, a->maximum);
  const pestle_nest_stage_t* l = pestle_nest_stage(nest, a->total);
  const pestle_nest_stage_t* o = pestle_nest_stage(nest, a->output);
  const pestle_nest_stage_t* y = pestle_nest_stage(nest, a->last);
  if (s->map_count < 2) return false;
  uint32_t batch = s->map_count - 2;
  if (m->map_count != batch + 1 || l->map_count != batch + 1 ||
      o->map_count != batch + 2 || y->map_count != batch + 2 ||
      y->root_count != batch + 2) {
    return false;
  }
  take_axes(nest, s, 0, batch, &a->batch);
  take_axes(nest, s, batch, 1, &a->rows);
  take_axes(nest, s, batch + 1, 1, &a->keys);
  take_axes(nest, s, batch + 2, 1, &a->depth);
  take_axes(nest, m, 0, batch, &a->x_batch);
  take_axes(nest, m, batch, 1, &a->x_rows);
  take_axes(nest, m, batch + 1, 1, &a->x_keys);
  take_axes(nest, o, 0, batch, &a->v_batch);
  take_axes(nest, o, batch + 1, 1, &a->v_columns);
  take_axes(nest, o, batch + 2, 1, &a->v_keys);
  take_axes(nest, y, 0, batch, &a->y_batch);
  take_axes(nest, y, batch, 1, &a->y_rows);
  take_axes(nest, y, batch + 1, 1, &a->y_columns);
  bool same_extents =
      a->v_columns.all == a->y_columns.all && a->rows.all == a->y_rows.all &&
      a->batch.all == a->y_batch.all && a->keys.all == a->x_keys.all &&
      a->keys.all == a->v_keys.all;
  return same_extents && a->depth.all <= columns &&
         a->v_columns.all <= columns &&
         reads_at(nest, a->maximum, a->scores, batch + 1, true) &&
         reads_at(nest, a->total, a->scores, batch + 1, true) &&
         reads_at(nest, a->output, a->scores, batch + 1, true) &&
         reads_at(nest, a->total, a->maximum, batch + 1, false) &&
         reads_at(nest, a->output, a->maximum, batch + 1, false) &&
         reads_at(nest, a->last, a->total, batch + 1, false) &&
         reads_at(nest, a->last, a->output, batch + 2, false) &&
         !pestle_schedule_find_read(nest, a->last,
                                    tensor_of(nest, a->scores)) &&
         !pestle_schedule_find_read(nest, a->last, tensor_of(nest, a->maximum));
}

// q and k from the scores' product, v from the output's.
static bool find_sides(pestle_nest_t* nest, uint8_t units,
                       pestle_flash_attention_t* a) {
  const pestle_expr_t* s = pestle_nest_stage(nest, a->scores)->values[0];
  const pestle_expr_t* o = pestle_nest_stage(nest, a->output)->values[0];
  if (s->kind != PESTLE_EXPR_OP || s->op != PESTLE_OP_MULTIPLY ||
      o->kind != PESTLE_EXPR_OP || o->op != PESTLE_OP_MULTIPLY) {
    return false;
  }
  int q = pestle_expr_depends(nest, s->args[0], a->keys.reduce[0]) ? 1 : 0;
  int w = is_weight(nest, a, a->output, o->args[0]) ? 0 : 1;
  if (w && !is_weight(nest, a, a->output, o->args[1])) return false;
  if (pestle_expr_depends(nest, s->args[q], a->keys.reduce[0]) ||
      pestle_expr_depends(nest, s->args[!q], a->rows.reduce[0])) {
    return false;
  }
  const pestle_nest_stage_t* f = pestle_nest_stage(nest, a->output);
  return pestle_product_side(nest, s->args[q], units, &a->rows, &a->depth,
                             &a->q) &&
         pestle_product_side(nest, s->args[!q], units, &a->keys, &a->depth,
                             &a->k) &&
         pestle_product_side(nest, o->args[!w], units, &a->v_columns,
                             &a->v_keys, &a->v) &&
         !pestle_expr_depends(nest, o->args[!w], f->roots[f->map_count - 2]) &&
         a->q.dtype == a->k.dtype && a->q.dtype == a->v.dtype;
}

bool pestle_flash_attention_find(pestle_nest_t* nest, uint8_t units,
                                 int64_t columns,
                                 pestle_flash_attention_t* out) {
  *out = (pestle_flash_attention_t){.last = 0};
  if (!find_stages(nest, out)) return false;
  out->x = pestle_nest_stage(nest, out->maximum)->values[0];
  const pestle_expr_t* w = pestle_nest_stage(nest, out->total)->values[0];
  out->power = w->op == PESTLE_OP_EXP2 ? PESTLE_OP_EXP2 : PESTLE_OP_EXP;
  return find_axes(nest, columns, out) && is_weight(nest, out, out->total, w) &&
         find_sides(nest, units, out) && !nest->failed;
}

bool pestle_flash_attention_resembles(pestle_nest_t* nest, uint8_t units) {
  static const pestle_op_t kinds[] = {PESTLE_OP_ADD, PESTLE_OP_MAXIMUM,
                                      PESTLE_OP_ADD, PESTLE_OP_ADD};
  uint32_t count = 0, last = (uint32_t)nest->stages.size - 1;
  for (uint32_t s = 0; s < last; ++s) {
    const pestle_nest_stage_t* f = pestle_nest_stage(nest, s);
    if (f->inlined || !f->is_reduction) continue;
    if (count == 4 || f->reduce != kinds[count] || f->value_count != 1) {
      return false;
    }
    const pestle_expr_t* x = f->values[0];
    bool product = x->kind == PESTLE_EXPR_OP && x->op == PESTLE_OP_MULTIPLY;
    if ((count == 0 || count == 3) && !product) return false;
    if (units && count == 0 &&
        (!pestle_expr_widens_half(x->args[0]) ||
         !pestle_expr_widens_half(x->args[1]))) {
      return false;
    }
    ++count;
  }
  return count == 4 && !pestle_nest_stage(nest, last)->is_reduction;
}

// --- The primitive ---

int64_t pestle_flash_attention_bytes(const pestle_flash_attention_t* a,
                                     int64_t keys, bool teams) {
  enum { SUBGROUPS = PESTLE_FLASH_ATTENTION_SUBGROUPS };
  int64_t depth = pestle_flash_attention_pad(a->depth.all);
  int64_t columns = pestle_flash_attention_pad(a->v_columns.all);
  int64_t rows = PESTLE_FLASH_ATTENTION_ROWS * (teams ? 1 : SUBGROUPS);
  // Each lane's maxima, totals and sums, and what groups of a cluster show of them.
  int64_t parts = teams ? PESTLE_FLASH_ATTENTION_LANES *
                              (8 + columns / 2 + (columns / 8 + 3) / 4 * 4)
                        : 0;
  if (teams) keys *= SUBGROUPS;
  pestle_shared_tile_t s = {
      .m = rows, .n = keys, .k = depth, .units = PESTLE_UNITS_MMA};
  pestle_shared_tile_t o = {.n = columns, .k = keys, .units = PESTLE_UNITS_MMA};
  return 4 * parts + 2 * (pestle_shared_tile_slot(&s, &a->q, s.m) +
                          2 * pestle_shared_tile_slot(&s, &a->k, s.n) +
                          2 * pestle_shared_tile_slot(&o, &a->v, o.n));
}

pestle_flash_mma_how_t pestle_flash_mma_of(const pestle_nest_template_t* use) {
  const int64_t* i = use->ints;
  return (pestle_flash_mma_how_t){.keys = i[0],
                                  .teams = i[1] != 0,
                                  .async = i[2] != 0,
                                  .parts = (int64_t)1 << (i[3] & 3)};
}

pestle_status_t pestle_flash_attention_mma_match(
    pestle_nest_t* nest, const pestle_nest_template_t* use) {
  pestle_flash_attention_t a;
  pestle_flash_mma_how_t how = pestle_flash_mma_of(use);
  int64_t columns = pestle_flash_attention_columns(how.teams);
  if ((how.keys == 16 || how.keys == 32 || how.keys == 64) &&
      (how.teams || how.parts == 1) &&
      pestle_flash_attention_find(nest, PESTLE_UNITS_MMA, columns, &a) &&
      a.output == use->stage) {
    return NULL;
  }
  PESTLE_TRY(pestle_nest_status(nest));
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "flash_attention_mma %s: it must be the output of "
                      "attention on f16 or bf16 of at most %d columns, 16, 32 "
                      "or 64 keys at once; parts are those of teams",
                      pestle_nest_stage(nest, use->stage)->name, (int)columns);
}

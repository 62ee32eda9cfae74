// SPDX-License-Identifier: Apache-2.0
// The primitive unfuse: one map axis becomes two, so that what is read is divided by no
// axis.
//
//   c[a, f] = +[k] x[64 a + 16 (f / 8) + k] * w[..]
//   c[a, fo, fi] = +[k] x[64 a + 16 fo + k] * w[..]        unfuse c.f 8
#include <string.h>

#include "codegen/schedule/schedule_internal.h"

// The axis and the two that it becomes.
typedef struct parts_t {
  uint32_t at;  // among the stage's roots
  uint32_t axis, outer, inner;
  int64_t factor;
} parts_t;

static pestle_status_t check(const pestle_nest_t* nest,
                             const pestle_nest_stage_t* s, const parts_t* p) {
  const pestle_nest_axis_t* a = &nest->axes.data[p->axis];
  bool may = p->at < s->map_count && s->order_count == s->root_count &&
             s->root_count < PESTLE_NEST_MAX_AXES && !s->inlined &&
             pestle_nest_axis_is_whole(a) && !a->end_scale && p->factor > 1 &&
             p->factor < a->full_extent && a->full_extent % p->factor == 0;
  bool kept = pestle_nest_is_kept(nest, s);
  for (uint32_t v = 0; v < s->value_count && may; ++v) {
    may = kept ? nest->tensors.data[s->tensors[v]].type.rank < PESTLE_MAX_RANK
               : s->write_index[v] != NULL;
  }
  if (may) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "unfuse %s.%s: it must be a map axis of a stage of which "
                      "none is split, of whole parts of %lld, without an end",
                      s->name, a->name, (long long)p->factor);
}

// The stage's own values and where they are written.
static void replace_axis(pestle_nest_t* nest, pestle_nest_stage_t* s,
                         const parts_t* p) {
  const pestle_affine_t** map = pestle_arena_alloc_zero(
      nest->arena, nest->axes.size * sizeof(*map), _Alignof(pestle_affine_t*));
  if (!map) {
    pestle_nest_fail_memory(nest);
    return;
  }
  map[p->axis] = pestle_affine_add(
      nest,
      pestle_affine_scale(nest, pestle_affine_axis(nest, p->outer), p->factor),
      pestle_affine_axis(nest, p->inner));
  pestle_substitution_t how;
  pestle_substitution_init(nest, map, &how);
  for (uint32_t v = 0; v < s->value_count && !nest->failed; ++v) {
    s->values[v] = pestle_expr_substitute(nest, &how, s->values[v]);
    if (s->is_reduction)
      s->inits[v] = pestle_expr_substitute(nest, &how, s->inits[v]);
    if (!s->write_index[v]) continue;
    const pestle_affine_t** index =
        PESTLE_ARENA_ARRAY(nest->arena, const pestle_affine_t*, 1);
    if (!index) {
      pestle_nest_fail_memory(nest);
      return;
    }
    index[0] = pestle_affine_substitute(nest, &how, s->write_index[v][0]);
    s->write_index[v] = index;
  }
}

typedef struct unfused_t {
  pestle_nest_t* nest;
  uint32_t tensor, dim;
  int64_t factor;
} unfused_t;

static const pestle_expr_t* part_read(void* user, const pestle_expr_t* e) {
  const unfused_t* u = user;
  if ((uint32_t)e->i != u->tensor) return NULL;
  const pestle_affine_t* index[PESTLE_MAX_RANK + 1] = {0};
  for (uint32_t d = 0, n = 0; d < e->index_count; ++d) {
    index[n++] = e->index[d];
    if (d != u->dim) continue;
    index[n - 1] = pestle_affine_div(u->nest, e->index[d], u->factor);
    index[n++] = pestle_affine_mod(u->nest, e->index[d], u->factor);
  }
  return pestle_expr_read(u->nest, u->tensor, index, e->guard);
}

// The tensor that the stage keeps has two dims for one: its readers follow.
static void part_dim(pestle_nest_t* nest, uint32_t stage, const parts_t* p) {
  unfused_t u = {nest, pestle_nest_stage(nest, stage)->tensors[0], p->at,
                 p->factor};
  pestle_type_t* type = &nest->tensors.data[u.tensor].type;
  for (int32_t d = type->rank; d > (int32_t)p->at + 1; --d)
    type->dims[d] = type->dims[d - 1];
  type->dims[p->at] /= p->factor;
  type->dims[p->at + 1] = p->factor;
  ++type->rank;
  pestle_schedule_replace_reads(nest, stage, part_read, &u);
}

pestle_status_t pestle_schedule_unfuse(pestle_nest_t* nest, uint32_t stage,
                                       uint32_t axis, int64_t factor) {
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  parts_t p = {.axis = axis, .factor = factor};
  while (p.at < s->map_count && s->roots[p.at] != axis)
    ++p.at;
  PESTLE_TRY(check(nest, s, &p));
  const char* name = pestle_schedule_axis_name(nest, axis);
  int64_t parts = nest->axes.data[axis].full_extent / factor;
  p.outer =
      pestle_nest_add_axis(nest, pestle_schedule_derived_name(nest, name, "o"),
                           (int32_t)stage, false, parts);
  p.inner =
      pestle_nest_add_axis(nest, pestle_schedule_derived_name(nest, name, "i"),
                           (int32_t)stage, false, factor);
  PESTLE_TRY(pestle_nest_status(nest));
  s = pestle_nest_stage(nest, stage);
  replace_axis(nest, s, &p);
  if (pestle_nest_is_kept(nest, s)) part_dim(nest, stage, &p);
  s = pestle_nest_stage(nest, stage);
  memmove(&s->roots[p.at + 2], &s->roots[p.at + 1],
          (s->root_count - p.at - 1) * sizeof(s->roots[0]));
  s->roots[p.at] = p.outer;
  s->roots[p.at + 1] = p.inner;
  ++s->root_count;
  ++s->map_count;
  memcpy(s->order, s->roots, sizeof(s->order));
  s->order_count = s->root_count;
  PESTLE_TRY(pestle_nest_status(nest));
  return pestle_schedule_record(nest, PESTLE_PRIM_UNFUSE, s->name, &name, 1,
                                &factor, 1);
}

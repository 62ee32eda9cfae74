// SPDX-License-Identifier: Apache-2.0
// The primitive permute: the order in which the dims of a tensor that a stage keeps in the
// kernel lie in memory.
#include <string.h>

#include "codegen/schedule/schedule_internal.h"

typedef struct permuted_t {
  pestle_nest_t* nest;
  uint32_t tensor;
  uint32_t from[PESTLE_NEST_MAX_AXES];  // by new dim
} permuted_t;

static const pestle_expr_t* permute_read(void* user, const pestle_expr_t* e) {
  const permuted_t* p = user;
  if ((uint32_t)e->i != p->tensor) return NULL;
  const pestle_affine_t* index[PESTLE_MAX_RANK] = {0};
  for (uint32_t d = 0; d < e->index_count; ++d)
    index[d] = e->index[p->from[d]];
  return pestle_expr_read(p->nest, p->tensor, index, e->guard);
}

pestle_status_t pestle_schedule_permute(pestle_nest_t* nest, uint32_t stage,
                                        const uint32_t* axes, uint32_t count) {
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  bool whole = count == s->map_count && count > 0 &&
               s->order_count == s->root_count && !s->inlined &&
               pestle_nest_is_kept(nest, s);
  for (uint32_t i = 0; whole && i < s->root_count; ++i) {
    whole = nest->axes.data[s->roots[i]].mark == PESTLE_MARK_SERIAL;
  }
  permuted_t p = {.nest = nest, .tensor = s->tensors[0]};
  const char* names[PESTLE_NEST_MAX_AXES];
  uint32_t seen = 0;
  for (uint32_t i = 0; whole && i < count; ++i) {
    uint32_t at = 0;
    while (at < count && s->roots[at] != axes[i])
      ++at;
    whole = at < count && !(seen >> at & 1);
    seen |= 1u << at;
    p.from[i] = at;
    names[i] = pestle_schedule_axis_name(nest, axes[i]);
  }
  if (!whole) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "permute %s: all of its map axes must be named once, "
                        "none of them split or marked, and what it makes kept "
                        "in the kernel",
                        s->name);
  }
  pestle_type_t* type = &nest->tensors.data[p.tensor].type;
  pestle_type_t before = *type;
  for (uint32_t i = 0; i < count; ++i)
    type->dims[i] = before.dims[p.from[i]];
  pestle_schedule_replace_reads(nest, stage, permute_read, &p);
  s = pestle_nest_stage(nest, stage);
  memcpy(s->roots, axes, count * sizeof(axes[0]));
  memcpy(s->order, s->roots, sizeof(s->order));
  PESTLE_TRY(pestle_nest_status(nest));
  return pestle_schedule_record(nest, PESTLE_PRIM_PERMUTE, s->name, names,
                                count, NULL, 0);
}

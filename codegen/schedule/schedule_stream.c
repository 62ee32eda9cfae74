// SPDX-License-Identifier: Apache-2.0
// The primitive stream: stores that go past the caches. A line is then not read
// before it is written, and displaces no other; but who reads it next waits.
#include "codegen/schedule/schedule_internal.h"

// Whether whole vectors of value |v| are contiguous and begin at multiples of
// their size.
static bool is_aligned(const pestle_nest_t* nest, const pestle_nest_stage_t* s,
                       uint32_t v) {
  const pestle_nest_tensor_t* t = &nest->tensors.data[s->tensors[v]];
  if (!s->write_index[v] || !s->order_count) return false;
  const pestle_affine_t* flat = s->write_index[v][0];
  uint32_t lane = s->order[s->order_count - 1];
  const pestle_nest_axis_t* vector = &nest->axes.data[lane];
  int64_t size = (int64_t)pestle_dtype_size(t->type.dtype);
  int64_t bytes = size * vector->full_extent;
  if (vector->mark != PESTLE_MARK_VECTOR || bytes < 16 ||
      flat->constant * size % bytes) {
    return false;
  }
  for (uint32_t i = 0; i < s->order_count; ++i) {
    bool nested;
    int64_t coef =
        pestle_affine_coef(flat, pestle_nest_leaf_root(nest, s->order[i]),
                           &nested) *
        pestle_nest_leaf_step(nest, s->order[i]);
    if (nested) return false;
    if (s->order[i] == lane ? coef != 1 : coef * size % bytes) return false;
  }
  return true;
}

bool pestle_nest_may_stream(pestle_nest_t* nest, uint32_t stage,
                            const char** out_why) {
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  *out_why = "only the last stage writes results";
  if (stage + 1 != nest->stages.size || s->is_reduction) return false;
  for (uint32_t v = 0; v < s->value_count; ++v) {
    const pestle_nest_tensor_t* t = &nest->tensors.data[s->tensors[v]];
    *out_why = "a result that is read in the kernel stays in the caches";
    if (t->kind != PESTLE_TENSOR_OUTPUT || t->alias >= 0) return false;
    *out_why =
        "its innermost loop must be a vector of 16 bytes or more, all "
        "of which begin at multiples of their size";
    if (!is_aligned(nest, s, v)) return false;
  }
  return true;
}

pestle_status_t pestle_schedule_stream(pestle_nest_t* nest, uint32_t stage) {
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  const char* why;
  if (!pestle_nest_may_stream(nest, stage, &why)) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "stream %s: %s", s->name, why);
  }
  for (uint32_t v = 0; v < s->value_count; ++v) {
    nest->tensors.data[s->tensors[v]].streamed = true;
  }
  return pestle_schedule_record(nest, PESTLE_PRIM_STREAM, s->name, NULL, 0,
                                NULL, 0);
}

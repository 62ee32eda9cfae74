// SPDX-License-Identifier: Apache-2.0
// Ends that are read from memory (docs/adr/021): groups ask whether they begin before
// the end, serial loops stop there. A step that begins before it is made whole, so that
// vectors, tiles and lanes know nothing of it.
//
//   %n = load @n[%0]                 for g to 64 group.x {        64 tiles of 16
//   for i to min(ceil(n - 16 g, 1), 16) ...   if 16 g < n { ...
#include "base/bits.h"
#include "codegen/emit/emit_internal.h"

static uint32_t root_of(const pestle_nest_t* nest, uint32_t axis) {
  while (nest->axes.data[axis].parent >= 0)
    axis = (uint32_t)nest->axes.data[axis].parent;
  return axis;
}

bool pestle_emit_has_end(const pestle_emit_t* e, uint32_t axis) {
  return e->nest->axes.data[root_of(e->nest, axis)].end_scale > 0;
}

// Places of the root between a step of |axis| and the next.
static int64_t step_of(const pestle_nest_t* nest, uint32_t axis) {
  int64_t step = 1;
  for (int32_t p = nest->axes.data[axis].parent; p >= 0;
       p = nest->axes.data[axis].parent) {
    if (nest->axes.data[p].outer == (int32_t)axis)
      step *= nest->axes.data[p].factor;
    axis = (uint32_t)p;
  }
  return step;
}

// The first place along |axis| of what is open of it; lanes count as the first.
static const pestle_affine_t* first_place(pestle_emit_t* e, uint32_t axis) {
  const pestle_nest_axis_t* a = &e->nest->axes.data[axis];
  if (a->outer < 0) {
    bool counts = e->open[axis] && !pestle_mark_is_lane(a->mark) &&
                  a->mark != PESTLE_MARK_VECTOR;
    return counts ? e->value[axis] : pestle_affine_const(e->nest, 0);
  }
  uint32_t inner = (uint32_t)a->inner;
  int64_t factor = a->factor;
  const pestle_affine_t* outer = first_place(e, (uint32_t)a->outer);
  return pestle_affine_add(e->nest, pestle_affine_scale(e->nest, outer, factor),
                           first_place(e, inner));
}

static pestle_kir_id_t end_of(pestle_emit_t* e, uint32_t root) {
  const pestle_nest_axis_t* a = &e->nest->axes.data[root];
  int64_t scale = a->end_scale, most = pestle_ceil_div(a->full_extent, scale);
  const pestle_expr_t* n = pestle_expr_read(e->nest, a->end_tensor, NULL, NULL);
  pestle_kir_id_t id =
      pestle_kir_cast(e->k, pestle_emit_expr(e, n), PESTLE_INDEX);
  id = pestle_emit_clamp(e, id, 0, most);
  return pestle_kir_madi(e->k, id, scale, pestle_kir_index(e->k, 0));
}

pestle_kir_id_t pestle_emit_before_end(pestle_emit_t* e, uint32_t axis) {
  uint32_t root = root_of(e->nest, axis);
  pestle_kir_id_t at = pestle_emit_scalar_index(e, first_place(e, root));
  return pestle_kir_scalar(e->k, PESTLE_OP_LT, at, end_of(e, root),
                           PESTLE_KIR_NONE);
}

pestle_kir_id_t pestle_emit_steps_to_end(pestle_emit_t* e, uint32_t axis,
                                         int64_t first, int64_t trips) {
  uint32_t root = root_of(e->nest, axis);
  int64_t step = step_of(e->nest, axis);
  const pestle_affine_t* from =
      pestle_affine_add(e->nest, first_place(e, root),
                        pestle_affine_const(e->nest, first * step));
  pestle_kir_id_t left =
      pestle_kir_scalar(e->k, PESTLE_OP_SUBTRACT, end_of(e, root),
                        pestle_emit_scalar_index(e, from), PESTLE_KIR_NONE);
  left = pestle_emit_clamp(e, left, 0, step * trips);
  left = pestle_kir_madi(e->k, left, 1, pestle_kir_index(e->k, step - 1));
  return pestle_kir_scalar_i(e->k, PESTLE_OP_DIVIDE, left, step);
}

// SPDX-License-Identifier: Apache-2.0
// Reads with a stride along the last axis, of an argument that is contiguous along another
// axis: square tiles of it are transposed in registers, which takes fewer instructions
// than a gather an element.
#include "base/bits.h"
#include "codegen/sketch/sketch.h"

enum {
  // Lanes below which a gather costs no more than shuffles. A guess.
  LEAST_LANES = 4,
  // Memory takes neighbouring lines together.
  STRIP_LINES = 2,
};

static int64_t transpose_lanes(const pestle_sketch_t* k, pestle_dtype_t dtype,
                               int64_t rows, int64_t columns) {
  // Shorter elements have as many lanes, of a part of a vector: 256 x 3136 bytes
  // 295 us by gathers, 43 by shuffles; 512 x 768 bf16 223, 25.
  if (pestle_dtype_size(dtype) > PESTLE_SKETCH_ELEMENT) return 0;
  int64_t lanes = pestle_sketch_lanes(k, pestle_sketch_min(rows, columns));
  return lanes >= LEAST_LANES ? lanes : 0;
}

// Splits the axes |row| and |lane| of |stage| by |lanes|: others, tiles of both,
// |first| inner, |second| inner, of which the last is the vector. With |line| tiles
// of lanes to a line, strips of them are outside all tiles of rows, and those of a
// line are made together.
static pestle_status_t tile(pestle_sketch_t* k, uint32_t stage, uint32_t row,
                            uint32_t lane, int64_t lanes, int64_t line,
                            uint32_t* out_tiles) {
  pestle_nest_t* nest = k->nest;
  uint32_t ro, ri, lo, li, strip = 0, order[PESTLE_NEST_MAX_AXES], n = 0;
  if (line) {
    int64_t beside = line > 1 ? line : STRIP_LINES;
    PESTLE_TRY(pestle_schedule_split(nest, stage, lane, beside * lanes, &strip,
                                     &lane));
  }
  PESTLE_TRY(pestle_schedule_split(nest, stage, row, lanes, &ro, &ri));
  PESTLE_TRY(pestle_schedule_split(nest, stage, lane, lanes, &lo, &li));
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, stage);
  for (uint32_t i = 0; i < s->order_count; ++i) {
    uint32_t a = s->order[i];
    bool mine = a == ro || a == ri || a == lo || a == li;
    if (!mine && !(line && a == strip)) order[n++] = a;
  }
  if (line) order[n++] = strip;
  order[n++] = ro;
  if (line < 2) order[n++] = lo;
  *out_tiles = order[n - 1];
  order[n++] = ri;
  if (line > 1) order[n++] = lo;
  order[n++] = li;
  PESTLE_TRY(pestle_schedule_reorder(nest, stage, order, n));
  if (line > 1) {
    PESTLE_TRY(pestle_schedule_mark(nest, stage, lo, PESTLE_MARK_UNROLL));
  }
  PESTLE_TRY(pestle_schedule_mark(nest, stage, ri, PESTLE_MARK_UNROLL));
  return pestle_schedule_mark(nest, stage, li, PESTLE_MARK_VECTOR);
}

pestle_status_t pestle_sketch_transpose_in_registers(
    pestle_sketch_t* k, uint32_t stage, uint32_t tensor, uint32_t axis,
    bool scattered_stores, uint32_t* out_tiles) {
  pestle_nest_t* nest = k->nest;
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, stage);
  uint32_t row = s->roots[axis], last = s->roots[s->map_count - 1];
  const pestle_expr_t* read = pestle_schedule_find_read(nest, stage, tensor);
  int64_t lanes = transpose_lanes(
      k, read ? (pestle_dtype_t)read->dtype : PESTLE_NONE,
      pestle_sketch_extent(k, row), pestle_sketch_extent(k, last));
  uint32_t copy, tiles;
  const pestle_nest_tensor_t* result = &nest->tensors.data[s->tensors[0]];
  int64_t bytes = lanes * (int64_t)pestle_dtype_size(result->type.dtype);
  int64_t line = scattered_stores ? pestle_ceil_div(PESTLE_CPU_LINE, bytes) : 0;
  PESTLE_TRY(pestle_schedule_stage(nest, stage, tensor, &copy));
  ++k->anchor;
  PESTLE_TRY(tile(k, stage + 1, row, last, lanes, line, out_tiles));
  int32_t across = pestle_nest_transposed_axis(nest, copy);
  const pestle_nest_stage_t* c = pestle_sketch_stage(k, copy);
  if (across < 0) {
    return PESTLE_ERROR(INTERNAL, "the copy of '%s' has lost its axes",
                        nest->tensors.data[tensor].name);
  }
  PESTLE_TRY(tile(k, copy, c->roots[c->map_count - 1], c->roots[across], lanes,
                  0, &tiles));
  PESTLE_TRY(pestle_schedule_at(nest, copy, stage + 1, *out_tiles));
  if (line > 1) {
    // Its tiles of a line: tile() ends with rows' tiles, lanes' tiles, row, lane.
    uint32_t made = c->order[c->order_count - 4];
    PESTLE_TRY(pestle_schedule_mark(nest, copy, made, PESTLE_MARK_UNROLL));
  }
  PESTLE_TRY(pestle_schedule_transpose(nest, copy));
  return pestle_schedule_store(nest, copy, PESTLE_SCOPE_PRIVATE);
}

// Of all that a stage reads, an argument that is read once, across.
typedef struct strided_t {
  pestle_sketch_t* k;
  const pestle_nest_stage_t* s;
  int32_t tensor;
  uint32_t axis;
} strided_t;

static void strided_visit(void* user, const pestle_expr_t* e) {
  strided_t* a = user;
  const pestle_nest_tensor_t* t = &a->k->nest->tensors.data[e->i];
  bool nested;
  const pestle_nest_stage_t* s = a->s;
  if (a->tensor >= 0 || t->kind != PESTLE_TENSOR_INPUT ||
      !pestle_schedule_may_stage(s, e)) {
    return;
  }
  int64_t last =
      pestle_affine_coef(e->index[0], s->roots[s->map_count - 1], &nested);
  if (nested || last == 0 || last == 1) return;
  for (uint32_t i = 0; i + 1 < s->map_count; ++i) {
    int64_t unit = e->packed && e->lo == 1 ? e->packed : 1;
    if (pestle_affine_coef(e->index[0], s->roots[i], &nested) != unit ||
        nested) {
      continue;
    }
    int64_t columns = pestle_sketch_extent(a->k, s->roots[s->map_count - 1]);
    if (!transpose_lanes(a->k, (pestle_dtype_t)e->dtype,
                         pestle_sketch_extent(a->k, s->roots[i]), columns)) {
      continue;
    }
    a->tensor = (int32_t)e->i;
    a->axis = i;
    return;
  }
}

pestle_status_t pestle_sketch_find_transposed(pestle_sketch_t* k,
                                              uint32_t stage,
                                              int32_t* out_tensor,
                                              uint32_t* out_axis) {
  strided_t a = {k, pestle_sketch_stage(k, stage), -1, 0};
  *out_tensor = -1;
  if (k->nest->no_scratch || a.s->map_count < 2 || a.s->is_reduction)
    return NULL;
  pestle_nest_visit_values(k->nest, a.s, strided_visit, &a);
  PESTLE_TRY(pestle_nest_status(k->nest));
  // Read again elsewhere in the stage, it cannot be replaced by one copy.
  if (a.tensor >= 0 &&
      !pestle_schedule_find_read(k->nest, stage, (uint32_t)a.tensor)) {
    return NULL;
  }
  *out_tensor = a.tensor;
  *out_axis = a.axis;
  return NULL;
}

pestle_status_t pestle_sketch_vectorise_copy(pestle_sketch_t* k,
                                             uint32_t stage) {
  int32_t tensor;
  uint32_t axis, loop;
  PESTLE_TRY(pestle_sketch_find_transposed(k, stage, &tensor, &axis));
  if (tensor >= 0) {
    return pestle_sketch_transpose_in_registers(k, stage, (uint32_t)tensor,
                                                axis, false, &loop);
  }
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, stage);
  return pestle_sketch_vectorise(k, stage, s->roots[s->map_count - 1], 1,
                                 &loop);
}

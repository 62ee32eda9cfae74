// SPDX-License-Identifier: Apache-2.0
// Lanes of a group: their loops, reductions across them, and which lane writes a result
// that all of them have.
#include "base/bits.h"
#include "codegen/emit/emit_internal.h"

void pestle_emit_count_lanes(pestle_emit_t* e) {
  e->lane_count[0] = e->lane_count[1] = 1;
  for (uint32_t s = 0; s < e->nest->stages.size; ++s) {
    const pestle_nest_stage_t* st = pestle_nest_stage(e->nest, s);
    for (uint32_t i = 0; i < st->order_count && !st->inlined; ++i) {
      const pestle_nest_axis_t* a = &e->nest->axes.data[st->order[i]];
      if (!pestle_mark_is_lane(a->mark)) continue;
      int64_t* count = &e->lane_count[a->mark == PESTLE_MARK_LANE_Y];
      if (a->full_extent > *count) *count = a->full_extent;
    }
  }
  // Whole subgroups, which a row of lanes fills or shares evenly.
  int64_t subgroup = e->nest->subgroup;
  int64_t* x = &e->lane_count[0];
  if (*x <= 1 && e->lane_count[1] <= 1) return;
  *x = subgroup > 1 && *x > subgroup ? pestle_ceil_div(*x, subgroup) * subgroup
                                     : (int64_t)pestle_next_pow2((uint64_t)*x);
}

void pestle_emit_open_lanes(pestle_emit_t* e) {
  static const char* const names[2] = {"lx", "ly"};
  pestle_emit_count_lanes(e);
  for (int d = 2; d-- > 0;) {
    e->lane_id[d] = pestle_kir_index(e->k, 0);
    if (e->lane_count[d] <= 1) continue;
    pestle_kir_id_t end = pestle_kir_index(e->k, e->lane_count[d]);
    e->lane_id[d] =
        pestle_kir_for(e->k, names[d], pestle_kir_index(e->k, 0), end, 1,
                       (pestle_kir_axis_t)(PESTLE_KIR_LANE_X + d));
  }
}

void pestle_emit_close_lanes(pestle_emit_t* e) {
  for (int d = 0; d < 2; ++d) {
    if (e->lane_count[d] > 1) pestle_kir_end(e->k);
  }
}

void pestle_emit_barrier(pestle_emit_t* e) {
  if (pestle_emit_has_lanes(e)) pestle_kir_barrier(e->k);
}

// --- Reductions across lanes ---

typedef struct across_t {
  pestle_emit_t* e;
  pestle_op_t op;
  int dim;        // along which lanes are reduced: 0 x, 1 y
  uint32_t part;  // shared: a value a lane or a subgroup
  int64_t width;  // of it, those that are reduced into one
} across_t;

// Lanes along x lie side by side in either case, so that no two meet in one bank.
static pestle_kir_id_t part_index(const across_t* a, pestle_kir_id_t at) {
  pestle_emit_t* e = a->e;
  return a->dim ? pestle_kir_madi(e->k, at, e->lane_count[0], e->lane_id[0])
                : pestle_kir_madi(e->k, e->lane_id[1], a->width, at);
}

static pestle_kir_id_t load_part(const across_t* a, pestle_kir_id_t at) {
  return pestle_kir_load(a->e->k, a->part, 1, part_index(a, at),
                         PESTLE_KIR_NONE, 0);
}

static void store_part(const across_t* a, pestle_kir_id_t at,
                       pestle_kir_id_t value) {
  pestle_kir_store(a->e->k, a->part, part_index(a, at), value, PESTLE_KIR_NONE,
                   0);
}

static void make_part(across_t* a, pestle_dtype_t dtype, int64_t width) {
  a->width = width;
  a->part = pestle_kir_add_buffer(a->e->k, "part", PESTLE_KIR_SHARED, dtype, 1,
                                  width * a->e->lane_count[!a->dim], 0);
}

// Each lane reduces what the others left, in a fixed order.
static pestle_kir_id_t reduce_parts(const across_t* a) {
  pestle_emit_t* e = a->e;
  pestle_kir_id_t part[64];
  for (int64_t i = 0; i < a->width; ++i) {
    part[i] = load_part(a, pestle_kir_index(e->k, i));
  }
  for (int64_t w = 1; w < a->width; w *= 2) {
    for (int64_t i = 0; i + w < a->width; i += 2 * w) {
      part[i] =
          pestle_kir_scalar(e->k, a->op, part[i], part[i + w], PESTLE_KIR_NONE);
    }
  }
  return part[0];
}

// Without subgroups, or with more of them than a lane should read: halves of a
// power of two of parts are reduced onto each other.
static pestle_kir_id_t reduce_tree(across_t* a, pestle_kir_id_t value) {
  pestle_emit_t* e = a->e;
  int64_t lanes = e->lane_count[a->dim],
          half = (int64_t)pestle_next_pow2((uint64_t)lanes) / 2;
  pestle_kir_id_t lane = e->lane_id[a->dim];
  make_part(a, pestle_kir_type_of(e->k, value), lanes);
  if (e->serial_loops) pestle_emit_barrier(e);
  store_part(a, lane, value);
  for (; half >= 1; half /= 2) {
    int64_t pairs = lanes > 2 * half ? half : lanes - half;
    pestle_emit_barrier(e);
    if (pairs <= 0) continue;
    pestle_kir_if(e->k, pestle_kir_scalar_i(e->k, PESTLE_OP_LT, lane, pairs));
    pestle_kir_id_t far =
        pestle_kir_madi(e->k, lane, 1, pestle_kir_index(e->k, half));
    pestle_kir_id_t low = load_part(a, lane);
    pestle_kir_id_t high = load_part(a, far);
    store_part(a, lane,
               pestle_kir_scalar(e->k, a->op, low, high, PESTLE_KIR_NONE));
    pestle_kir_end(e->k);
    lanes = half;
  }
  pestle_emit_barrier(e);
  return load_part(a, pestle_kir_index(e->k, 0));
}

pestle_kir_id_t pestle_emit_reduce_across(pestle_emit_t* e, pestle_op_t op,
                                          pestle_kir_id_t value, int dim) {
  enum { MOST_PARTS = 64 };
  int64_t lanes = e->lane_count[dim], subgroup = e->nest->subgroup;
  across_t a = {.e = e, .op = op, .dim = dim};
  if (lanes <= 1) return value;
  if (dim || subgroup <= 1 || lanes > subgroup * MOST_PARTS) {
    return reduce_tree(&a, value);
  }
  int64_t width = lanes < subgroup ? lanes : subgroup;
  value = pestle_kir_sg_reduce(e->k, value, op, (unsigned)width);
  if (lanes <= subgroup) return value;
  make_part(&a, pestle_kir_type_of(e->k, value), lanes / subgroup);
  if (e->serial_loops) pestle_emit_barrier(e);
  pestle_kir_id_t in_subgroup =
      pestle_kir_scalar_i(e->k, PESTLE_OP_REMAINDER, e->lane_id[0], subgroup);
  pestle_kir_if(e->k, pestle_kir_scalar_i(e->k, PESTLE_OP_EQ, in_subgroup, 0));
  store_part(
      &a, pestle_kir_scalar_i(e->k, PESTLE_OP_DIVIDE, e->lane_id[0], subgroup),
      value);
  pestle_kir_end(e->k);
  pestle_emit_barrier(e);
  return reduce_parts(&a);
}

// --- Writers ---

bool pestle_emit_open_writer(pestle_emit_t* e, uint32_t stage) {
  static const uint8_t marks[2] = {PESTLE_MARK_LANE_X, PESTLE_MARK_LANE_Y};
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  if (stage + 1 != e->nest->stages.size || !pestle_emit_has_lanes(e)) {
    return false;
  }
  pestle_kir_id_t only = PESTLE_KIR_NONE;
  for (int d = 0; d < 2; ++d) {
    bool bound = e->lane_count[d] <= 1;
    for (uint32_t i = 0; i < s->order_count; ++i) {
      bound = bound || e->nest->axes.data[s->order[i]].mark == marks[d];
    }
    if (bound) continue;
    pestle_kir_id_t first =
        pestle_kir_scalar_i(e->k, PESTLE_OP_EQ, e->lane_id[d], 0);
    only = only == PESTLE_KIR_NONE
               ? first
               : pestle_kir_scalar(e->k, PESTLE_OP_AND, only, first,
                                   PESTLE_KIR_NONE);
  }
  if (only == PESTLE_KIR_NONE) return false;
  pestle_kir_if(e->k, only);
  return true;
}

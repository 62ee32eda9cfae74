// SPDX-License-Identifier: Apache-2.0
// A running reduction along an axis, on targets whose lanes run side by side: one kernel, in
// which the lanes of a group go along the axis together. The group of the one window
// (passes/split_scans.c) is called "running".
//
//   for g in group.x: for t in lane.x:       a row; of columns, lane.x has some of them side
//     carry = init                           by side, and t is lane.y
//     for each step of lanes x 8 elements:
//       x[0..8] = elements 8 t, 8 t + 1, ..  rows are read side by side, and turned in
//       x[i] = op(x[i - 1], x[i])            shared memory
//       for hop = 1, 2, 4, ..: x[7] of lane t - hop joins that of lane t
//       before = op(carry, lane t - 1's);  carry = op(carry, the last lane's)
//       y = op(before, x[0..8])
//
// Elements behind the end are the initial value, which may enter a result anywhere: the
// pass takes no other windows. Narrow floats are f32 until they are stored.
#include "base/bits.h"
#include "codegen/direct/direct.h"

enum {
  EACH = 8,  // elements of a lane
  GROUP_LANES = 128,
  LONE_LANES = 1024,  // of a group where there are few
  UNIT_LANES = 2048,  // of all groups that a core has at a time
  LEAST_LANES = 32,
  COLUMNS = 32,  // side by side
  // Of all banks of shared memory: elements of so many are followed by one that is not used.
  BANK_BYTES = 128,
};

typedef struct running_t {
  pestle_direct_t* d;
  pestle_op_t op;
  pestle_dtype_t stored, dtype;  // of the results, of the sums
  int64_t rows, length, inner;
  int64_t lanes, columns, steps;
  int64_t banks;  // elements
  bool reverse;
  uint32_t from, to, row, totals;  // buffers
  pk_t t, column, base, init;
  pk_t there;  // whether the column is there, or NONE: all are
  pk_t x[EACH];
} running_t;

static pk_t op(running_t* r, pestle_op_t o, pk_t a, pk_t b) {
  return pestle_direct_op(r->d, o, a, b);
}

static pk_t number(running_t* r, int64_t value) {
  return pestle_direct_index(r->d, value);
}

static bool has_columns(const running_t* r) {
  return r->inner > 1;
}

// --- How much of what ---

static void plan(running_t* r) {
  const pestle_target_caps_t* caps = r->d->caps;
  int64_t size = pestle_dtype_size(r->dtype);
  r->columns = 1;
  while (r->columns < COLUMNS && r->columns < r->inner)
    r->columns *= 2;
  int64_t groups = r->rows * pestle_ceil_div(r->inner, r->columns);
  int64_t most = LONE_LANES;
  while (most > GROUP_LANES &&
         groups * most > (int64_t)caps->cores * UNIT_LANES)
    most /= 2;
  if (most > (int64_t)caps->max_group_lanes) most = caps->max_group_lanes;
  r->lanes =
      (int64_t)pestle_next_pow2((uint64_t)pestle_ceil_div(r->length, EACH));
  if (!has_columns(r) && r->lanes < LEAST_LANES) r->lanes = LEAST_LANES;
  while (r->lanes > 1 &&
         (r->lanes * r->columns > most ||
          2 * size * (EACH * r->lanes + 2 * r->lanes * r->columns) >
              (int64_t)caps->scratch_bytes)) {
    r->lanes /= 2;
  }
  r->steps = pestle_ceil_div(r->length, r->lanes * EACH);
  r->banks = BANK_BYTES / size;
}

static uint32_t add_shared(running_t* r, const char* name, int64_t count) {
  return pestle_kir_add_buffer(r->d->k, name, PESTLE_KIR_SHARED, r->dtype, 1,
                               count, 0);
}

// --- Elements ---

// Where the axis has element |at|, and whether it is there; NONE: it is.
static pk_t place(running_t* r, pk_t at, pk_t* out_there) {
  *out_there = r->there;
  if (r->steps * r->lanes * EACH != r->length) {
    pk_t inside = op(r, PESTLE_OP_LT, at, number(r, r->length));
    *out_there = r->there == PESTLE_KIR_NONE
                     ? inside
                     : op(r, PESTLE_OP_AND, r->there, inside);
    at = op(r, PESTLE_OP_MINIMUM, at, number(r, r->length - 1));
  }
  if (r->reverse) {
    at = op(r, PESTLE_OP_SUBTRACT, number(r, r->length - 1), at);
  }
  return pestle_kir_madi(r->d->k, at, r->inner, r->base);
}

// Element |i| of those that the lane reads and writes in the step that begins at |first|:
// of a row, neighbouring lanes have neighbours.
static pk_t element(running_t* r, pk_t first, int64_t i) {
  bool columns = has_columns(r);
  pk_t at = pestle_kir_madi(r->d->k, r->t, columns ? EACH : 1, first);
  return pestle_kir_madi(r->d->k, at, 1, number(r, columns ? i : i * r->lanes));
}

// The same, and element |i| of those that follow each other, in shared memory.
static pk_t in_row(running_t* r, int64_t i, bool following) {
  pestle_kir_builder_t* k = r->d->k;
  pk_t at = following ? pestle_kir_madi(k, r->t, EACH, number(r, i))
                      : pestle_kir_madi(k, r->t, 1, number(r, i * r->lanes));
  return op(r, PESTLE_OP_ADD, at,
            op(r, PESTLE_OP_DIVIDE, at, number(r, r->banks)));
}

// From lanes side by side to elements that follow each other, or back.
static void turn(running_t* r, bool following) {
  if (has_columns(r)) return;
  for (int64_t i = 0; i < EACH; ++i)
    pestle_direct_store(r->d, r->row, in_row(r, i, !following), r->x[i]);
  pestle_kir_barrier(r->d->k);
  for (int64_t i = 0; i < EACH; ++i)
    r->x[i] = pestle_direct_load(r->d, r->row, in_row(r, i, following));
}

static void read_elements(running_t* r, pk_t first) {
  for (int64_t i = 0; i < EACH; ++i) {
    pk_t there, at = place(r, element(r, first, i), &there);
    r->x[i] = pestle_kir_cast(r->d->k, pestle_direct_load(r->d, r->from, at),
                              r->dtype);
    if (there != PESTLE_KIR_NONE)
      r->x[i] = pestle_direct_select(r->d, there, r->x[i], r->init);
  }
}

static void write_elements(running_t* r, pk_t first) {
  pestle_kir_builder_t* k = r->d->k;
  for (int64_t i = 0; i < EACH; ++i) {
    pk_t there, at = place(r, element(r, first, i), &there);
    if (there != PESTLE_KIR_NONE) pestle_kir_if(k, there);
    pestle_direct_store(r->d, r->to, at,
                        pestle_kir_cast(k, r->x[i], r->stored));
    if (there != PESTLE_KIR_NONE) pestle_kir_end(k);
  }
}

// --- Lanes ---

// Where half |half| of the totals has that of lane |t|.
static pk_t total_of(running_t* r, pk_t t, int64_t half) {
  pk_t at = pestle_kir_madi(r->d->k, t, r->columns, r->column);
  return pestle_kir_madi(r->d->k, at, 1,
                         number(r, half * r->lanes * r->columns));
}

static pk_t put_total(running_t* r, pk_t total, int64_t half, int64_t hop) {
  pestle_direct_store(r->d, r->totals, total_of(r, r->t, half), total);
  pestle_kir_barrier(r->d->k);
  pk_t from = op(r, PESTLE_OP_SUBTRACT, r->t, number(r, hop));
  from = op(r, PESTLE_OP_MAXIMUM, from, number(r, 0));
  return pestle_direct_load(r->d, r->totals, total_of(r, from, half));
}

// What is before the lane's elements; |carry| is what is before the step's, then the next
// one's.
static pk_t reduce_before(running_t* r, uint32_t carry) {
  pestle_direct_t* d = r->d;
  pk_t total = r->x[EACH - 1], before = pestle_direct_get(d, carry);
  int64_t half = 0, hop = 1;
  for (; hop < r->lanes; hop *= 2, half = !half) {
    pk_t other = put_total(r, total, half, hop);
    pk_t joins = op(r, PESTLE_OP_GE, r->t, number(r, hop));
    total = pestle_direct_select(d, joins, op(r, r->op, other, total), total);
  }
  pk_t other = put_total(r, total, half, 1);
  pk_t last = total_of(r, number(r, r->lanes - 1), half);
  pestle_direct_set(
      d, carry, op(r, r->op, before, pestle_direct_load(d, r->totals, last)));
  pk_t joins = op(r, PESTLE_OP_GE, r->t, number(r, 1));
  return pestle_direct_select(d, joins, op(r, r->op, before, other), before);
}

static void emit_step(running_t* r, pk_t first, uint32_t carry) {
  read_elements(r, first);
  turn(r, true);
  for (int64_t i = 1; i < EACH; ++i)
    r->x[i] = op(r, r->op, r->x[i - 1], r->x[i]);
  pk_t before = reduce_before(r, carry);
  for (int64_t i = 0; i < EACH; ++i)
    r->x[i] = op(r, r->op, before, r->x[i]);
  turn(r, false);
  write_elements(r, first);
  // The next one puts its totals where these were read.
  if (has_columns(r) && r->steps > 1) pestle_kir_barrier(r->d->k);
}

// --- The whole ---

static void read_node(running_t* r, const pestle_node_t* node) {
  const pestle_type_t* type = node->results[0].type;
  r->op = pestle_block_reduce_op(pestle_node_body(node, 0));
  r->stored = r->dtype = type->dtype;
  if (pestle_dtype_is(r->dtype, PESTLE_KIND_FLOAT) &&
      pestle_dtype_size(r->dtype) < pestle_dtype_size(PESTLE_F32)) {
    r->dtype = PESTLE_F32;
  }
  r->rows = r->inner = 1;
  for (int32_t i = 0; i < type->rank; ++i) {
    int64_t extent = type->dims[i];
    if (PESTLE_NODE_I64S(node, window_dimensions).data[i] > 1) {
      r->length = extent;
      r->reverse = !PESTLE_NODE_I64S(node, padding).data[2 * i];
    } else if (r->length) {
      r->inner *= extent;
    } else {
      r->rows *= extent;
    }
  }
}

pestle_status_t pestle_direct_running(pestle_direct_t* d) {
  pestle_kir_builder_t* k = d->k;
  running_t r = {.d = d, .there = PESTLE_KIR_NONE};
  read_node(&r, pestle_direct_whole_of(d->node));
  plan(&r);
  r.from = pestle_direct_operand(d, 0);
  uint32_t init = pestle_direct_operand(d, 1);
  r.to = pestle_direct_result(d, 0);
  if (!has_columns(&r))
    r.row = add_shared(&r, "row", r.lanes * EACH + r.lanes * EACH / r.banks);
  r.totals = add_shared(&r, "totals", 2 * r.lanes * r.columns);
  pk_t zero = number(&r, 0);
  int64_t across = pestle_ceil_div(r.inner, r.columns);
  pk_t g = pestle_kir_for(k, "g", zero, number(&r, r.rows * across), 1,
                          PESTLE_KIR_GROUP_X);
  r.t = pestle_kir_for(k, "t", zero, number(&r, r.lanes), 1,
                       has_columns(&r) ? PESTLE_KIR_LANE_Y : PESTLE_KIR_LANE_X);
  pk_t row = op(&r, PESTLE_OP_DIVIDE, g, number(&r, across)), at = zero;
  r.column = zero;
  if (has_columns(&r)) {
    r.column = pestle_kir_for(k, "c", zero, number(&r, r.columns), 1,
                              PESTLE_KIR_LANE_X);
    at = op(&r, PESTLE_OP_REMAINDER, g, number(&r, across));
    at = pestle_kir_madi(k, at, r.columns, r.column);
    if (r.inner % r.columns) {
      r.there = op(&r, PESTLE_OP_LT, at, number(&r, r.inner));
      at = op(&r, PESTLE_OP_MINIMUM, at, number(&r, r.inner - 1));
    }
  }
  r.base = pestle_kir_madi(k, row, r.length * r.inner, at);
  r.init = pestle_kir_cast(k, pestle_direct_load(d, init, zero), r.dtype);
  uint32_t carry = pestle_direct_variable(d, "carry", r.dtype, 1);
  pestle_direct_set(d, carry, r.init);
  pk_t step = pestle_kir_repeat(k, "step", r.steps);
  emit_step(&r, pestle_kir_madi(k, step, r.lanes * EACH, zero), carry);
  pestle_kir_end_repeat(k, r.steps);
  if (has_columns(&r)) pestle_kir_end(k);
  pestle_kir_end(k);
  pestle_kir_end(k);
  d->steps = (uint64_t)(r.rows * r.length * r.inner * EACH);
  return NULL;
}

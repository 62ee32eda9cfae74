// SPDX-License-Identifier: Apache-2.0
// sort and sort_first on targets whose lanes run side by side, of rows that fit in
// a group's shared memory: a bitonic network, eight elements a lane.
//
//   for rows in group.x: for a row in lane.y: for t in lane.x:
//     8 elements of the row to registers: neighbouring lanes read neighbours
//     pass: 8 elements, 2^s apart, in registers: up to three stages of the network,
//           whose pairs are 2^(s+2), 2^(s+1) and 2^s apart
//     to shared memory; barrier; the next pass
//     in the end neighbouring lanes have neighbours again, and write them
//
// Which elements of the row a lane reads at first is of no matter. Between each 2^p
// elements in shared memory there is one that is not used: lanes whose elements are a power
// of two apart would all meet one bank else.
//
// An element is what the comparator reads of it and its position in the row. Of two
// that are equal the one of the lower position comes first, so that all differ, the
// order is one alone and the sort stable. What else moves with an element is
// fetched by position in the end. A row is filled up to a power of two with
// positions behind its end, which come last.
//
// Where the order is that of one whole number (which IEEE's total order is too), that
// number and the position are one key, so that a pair is a minimum and a maximum, and all
// operands are fetched in the end.
//
// This needs a comparator that is an order; of others there is no such network.
#include "base/bits.h"
#include "codegen/direct/direct_sort.h"

enum {
  EACH_LOG2 = 3,
  EACH = 1 << EACH_LOG2,  // elements of a lane
  GROUP_LANES = 128,      // of a group of several rows
};

typedef struct network_t {
  pestle_direct_t* d;
  const pestle_sort_lanes_t* how;
  // Columns in the network beside the last one, which is positions or keys: those that are
  // compared, of these operands. |read|: of which keys are made.
  uint32_t count, read;
  uint32_t operand[PESTLE_SORT_MAX_COLUMNS];
  const pestle_value_t* key;  // NULL: there are none
  bool descending;
  pestle_dtype_t last;                           // of the last column
  uint32_t shared[PESTLE_SORT_MAX_COLUMNS + 1];  // and the positions
  int64_t length, size, lanes, rows;  // of a row, filled up; a group's
  unsigned log2, pad_log2;
  pk_t t;         // the lane of the row
  pk_t first;     // of the row in shared memory
  pk_t from, to;  // where the row begins and its result
  pk_t x[PESTLE_SORT_MAX_COLUMNS + 1][EACH];
} network_t;

static pk_t op(network_t* w, pestle_op_t o, pk_t a, pk_t b) {
  return pestle_direct_op(w->d, o, a, b);
}

static pk_t number(network_t* w, int64_t value) {
  return pestle_direct_index(w->d, value);
}

// --- Pairs ---

// Whether element |b| comes before element |a|.
static pestle_status_t is_wrong(network_t* w, unsigned a, unsigned b,
                                pk_t* out) {
  pestle_kir_builder_t* k = w->d->k;
  const pestle_node_t* node = w->d->node;
  pk_t pairs[2 * PESTLE_SORT_MAX_COLUMNS], later_first;
  const pk_t* at = w->x[w->count];
  pk_t in_order = op(w, PESTLE_OP_LT, at[a], at[b]);
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    pestle_dtype_t dtype = pestle_node_operand(node, i)->type->dtype;
    pairs[2 * i] = pairs[2 * i + 1] = pestle_kir_const(k, dtype, 1, 0, 0);
  }
  for (uint32_t c = 0; c < w->count; ++c) {
    pk_t later = pestle_direct_select(w->d, in_order, w->x[c][b], w->x[c][a]);
    pk_t earlier = pestle_direct_select(w->d, in_order, w->x[c][a], w->x[c][b]);
    pairs[2 * w->operand[c]] = later;
    pairs[2 * w->operand[c] + 1] = earlier;
  }
  PESTLE_TRY(pestle_direct_region(w->d, 0, pairs, &later_first));
  if (w->length != w->size) {
    pk_t later = pestle_direct_select(w->d, in_order, at[b], at[a]);
    pk_t end = pestle_kir_int(k, PESTLE_I32, 1, w->length);
    later_first =
        op(w, PESTLE_OP_AND, later_first, op(w, PESTLE_OP_LT, later, end));
  }
  *out = op(w, PESTLE_OP_EQ, later_first, in_order);
  return NULL;
}

// One comparison of two words says where both go.
static void exchange_wide_keys(network_t* w, unsigned a, unsigned b,
                               pk_t turned, bool always_turned) {
  pk_t *x = &w->x[0][a], *y = &w->x[0][b], kept = *x;
  pk_t stays = op(w, always_turned ? PESTLE_OP_GT : PESTLE_OP_LT, *x, *y);
  if (turned != PESTLE_KIR_NONE) stays = op(w, PESTLE_OP_NE, stays, turned);
  *x = pestle_direct_select(w->d, stays, kept, *y);
  *y = pestle_direct_select(w->d, stays, *y, kept);
}

static void exchange_keys(network_t* w, unsigned a, unsigned b, pk_t turned,
                          bool always_turned) {
  pk_t *x = &w->x[0][a], *y = &w->x[0][b];
  if (w->last == PESTLE_I64) {
    exchange_wide_keys(w, a, b, turned, always_turned);
    return;
  }
  pk_t low = op(w, PESTLE_OP_MINIMUM, *x, *y);
  pk_t high = op(w, PESTLE_OP_MAXIMUM, *x, *y);
  *x = always_turned ? high : low;
  *y = always_turned ? low : high;
  if (turned == PESTLE_KIR_NONE) return;
  *x = pestle_direct_select(w->d, turned, high, low);
  *y = pestle_direct_select(w->d, turned, low, high);
}

// Puts elements |a| and |b| in order, or, where |turned| is a value and true, the
// other way round.
static pestle_status_t exchange(network_t* w, unsigned a, unsigned b,
                                pk_t turned, bool always_turned) {
  pk_t swap;
  if (w->key) {
    exchange_keys(w, a, b, turned, always_turned);
    return NULL;
  }
  PESTLE_TRY(is_wrong(w, a, b, &swap));
  if (turned != PESTLE_KIR_NONE) swap = op(w, PESTLE_OP_NE, swap, turned);
  if (always_turned) {
    swap = pestle_kir_scalar(w->d->k, PESTLE_OP_NOT, swap, PESTLE_KIR_NONE,
                             PESTLE_KIR_NONE);
  }
  for (uint32_t c = 0; c <= w->count; ++c) {
    pk_t *x = &w->x[c][a], *y = &w->x[c][b], kept = *x;
    *x = pestle_direct_select(w->d, swap, *y, kept);
    *y = pestle_direct_select(w->d, swap, kept, *y);
  }
  return NULL;
}

// The stage of pairs 2^|apart| apart in the lane, of runs of 2^|level| elements:
// each second one of them is turned. The lane's elements are 2^|step| apart.
static pestle_status_t stage(network_t* w, unsigned level, unsigned apart,
                             unsigned step) {
  pk_t turned = PESTLE_KIR_NONE;
  unsigned within = level - step;
  if (within >= EACH_LOG2 && level < w->log2) {
    pk_t of_lane = op(w, PESTLE_OP_DIVIDE, w->t,
                      number(w, INT64_C(1) << (level - EACH_LOG2)));
    of_lane = op(w, PESTLE_OP_REMAINDER, of_lane, number(w, 2));
    turned = op(w, PESTLE_OP_EQ, of_lane, number(w, 1));
  }
  for (unsigned i = 0; i < EACH; ++i) {
    if (i >> apart & 1) continue;
    bool always = within < EACH_LOG2 && (i >> within & 1);
    PESTLE_TRY(exchange(w, i, i | 1u << apart, turned, always));
  }
  return NULL;
}

// --- Passes ---

// |value| times 2^|by|, or, where that is below 0, by a power of two less.
static pk_t scaled(network_t* w, pk_t value, int by) {
  pk_t zero = number(w, 0);
  if (by >= 0) return pestle_kir_madi(w->d->k, value, 1 << by, zero);
  return op(w, PESTLE_OP_DIVIDE, value, number(w, INT64_C(1) << -by));
}

static int64_t padded(const network_t* w, int64_t at) {
  return at + (at >> w->pad_log2);
}

// Where shared memory has element |i| of the lane's, 2^|step| apart: of
//   at = high 2^(step + 3) + low + i 2^step, low below 2^step,
// it is at + at / 2^p, whose parts have no bits in common.
static pk_t in_shared(network_t* w, unsigned step, unsigned i) {
  pestle_kir_builder_t* k = w->d->k;
  int64_t apart = INT64_C(1) << step;
  int above = (int)(step + EACH_LOG2) - (int)w->pad_log2;
  pk_t high = w->t, at = w->first;
  if (step) {
    high = op(w, PESTLE_OP_DIVIDE, w->t, number(w, apart));
    pk_t low = op(w, PESTLE_OP_REMAINDER, w->t, number(w, apart));
    at = pestle_kir_madi(k, low, 1, at);
    if (step > w->pad_log2) {
      at = pestle_kir_madi(k, scaled(w, low, -(int)w->pad_log2), 1, at);
    }
  }
  at = pestle_kir_madi(k, high, (int32_t)(apart * EACH), at);
  at = pestle_kir_madi(k, scaled(w, high, above), 1, at);
  return pestle_kir_madi(k, at, 1, number(w, padded(w, i * apart)));
}

// Element |i| of the lane in a row of which neighbouring lanes have neighbours.
static pk_t side_by_side(network_t* w, unsigned i) {
  return pestle_kir_madi(w->d->k, w->t, 1, number(w, i * w->lanes));
}
static pk_t side_by_side_in_shared(network_t* w, unsigned i) {
  pestle_kir_builder_t* k = w->d->k;
  pk_t at = pestle_kir_madi(k, w->t, 1, w->first);
  if (w->lanes > INT64_C(1) << w->pad_log2) {
    at = pestle_kir_madi(k, scaled(w, w->t, -(int)w->pad_log2), 1, at);
  }
  return pestle_kir_madi(k, at, 1, number(w, padded(w, i * w->lanes)));
}

static void keep(network_t* w, unsigned step) {
  for (uint32_t c = 0; c <= w->count; ++c) {
    for (unsigned i = 0; i < EACH; ++i) {
      pestle_direct_store(w->d, w->shared[c], in_shared(w, step, i),
                          w->x[c][i]);
    }
  }
  pestle_kir_barrier(w->d->k);
}

static void fetch(network_t* w, unsigned step) {
  for (uint32_t c = 0; c <= w->count; ++c) {
    for (unsigned i = 0; i < EACH; ++i)
      w->x[c][i] =
          pestle_direct_load(w->d, w->shared[c], in_shared(w, step, i));
  }
}

// Of the element of which the network's operands are |values|, at |at|.
static pestle_status_t make_key(network_t* w, const pk_t* values, pk_t at,
                                pk_t* out) {
  pestle_kir_builder_t* k = w->d->k;
  const pestle_node_t* node = w->d->node;
  pk_t pairs[2 * PESTLE_SORT_MAX_COLUMNS], key;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    pestle_dtype_t dtype = pestle_node_operand(node, i)->type->dtype;
    pairs[2 * i] = pairs[2 * i + 1] = pestle_kir_const(k, dtype, 1, 0, 0);
  }
  for (uint32_t c = 0; c < w->read; ++c)
    pairs[2 * w->operand[c]] = pairs[2 * w->operand[c] + 1] = values[c];
  PESTLE_TRY(pestle_direct_region_value(w->d, 0, pairs, w->key, &key));
  key = pestle_kir_cast(k, key, w->last);
  if (w->descending) {
    key = pestle_kir_scalar(k, PESTLE_OP_NOT, key, PESTLE_KIR_NONE,
                            PESTLE_KIR_NONE);
  }
  key =
      op(w, PESTLE_OP_SHIFT_LEFT, key, pestle_kir_int(k, w->last, 1, w->log2));
  key = op(w, PESTLE_OP_OR, key, pestle_kir_cast(k, at, w->last));
  if (w->length != w->size) {
    bool wide = w->last == PESTLE_I64;
    pk_t most = pestle_kir_int(k, w->last, 1, wide ? INT64_MAX : INT32_MAX);
    pk_t there = op(w, PESTLE_OP_LT, at, number(w, w->length));
    key = pestle_direct_select(w->d, there, key, most);
  }
  *out = key;
  return NULL;
}

static pestle_status_t read_row(network_t* w) {
  pestle_kir_builder_t* k = w->d->k;
  for (unsigned i = 0; i < EACH; ++i) {
    pk_t at = side_by_side(w, i);
    pk_t inside = at, values[PESTLE_SORT_MAX_COLUMNS];
    if (w->length != w->size)
      inside = op(w, PESTLE_OP_MINIMUM, at, number(w, w->length - 1));
    inside = pestle_kir_madi(k, inside, (int32_t)w->how->stride, w->from);
    for (uint32_t c = 0; c < w->read; ++c) {
      values[c] = pestle_direct_load(w->d, w->how->from[w->operand[c]], inside);
      if (!w->key) w->x[c][i] = values[c];
    }
    if (w->key) {
      PESTLE_TRY(make_key(w, values, at, &w->x[0][i]));
    } else {
      w->x[w->count][i] = pestle_kir_cast(k, at, PESTLE_I32);
    }
  }
  return NULL;
}

// From 8 elements that follow each other to those that neighbouring lanes write.
static void spread_row(network_t* w) {
  keep(w, 0);
  for (uint32_t c = 0; c <= w->count; ++c) {
    for (unsigned i = 0; i < EACH; ++i) {
      w->x[c][i] =
          pestle_direct_load(w->d, w->shared[c], side_by_side_in_shared(w, i));
    }
  }
}

static pestle_status_t sort_row(network_t* w) {
  for (unsigned level = 1; level <= EACH_LOG2; ++level) {
    for (unsigned apart = level; apart-- > 0;)
      PESTLE_TRY(stage(w, level, apart, 0));
  }
  unsigned step = 0;
  for (unsigned level = EACH_LOG2 + 1; level <= w->log2; ++level) {
    for (unsigned left = level; left > 0;) {
      keep(w, step);
      step = left > EACH_LOG2 ? left - EACH_LOG2 : 0;
      fetch(w, step);
      for (; left > step; --left)
        PESTLE_TRY(stage(w, level, left - 1 - step, step));
    }
  }
  spread_row(w);
  return NULL;
}

// --- Results ---

// Where element |i| of the lane was.
static pk_t position(network_t* w, unsigned i) {
  pk_t x = w->x[w->count][i];
  if (!w->key) return x;
  pk_t mask = pestle_kir_int(w->d->k, w->last, 1, w->size - 1);
  return pestle_kir_cast(w->d->k, op(w, PESTLE_OP_AND, x, mask), PESTLE_I32);
}

static bool is_compared(const network_t* w, uint32_t operand, uint32_t* out) {
  for (uint32_t c = 0; c < w->count; ++c) {
    *out = c;
    if (w->operand[c] == operand) return true;
  }
  return false;
}

// Opens an IF where element |i| may not be wanted.
static bool open_wanted(network_t* w, unsigned i) {
  if ((i + 1) * w->lanes <= w->how->wanted) return false;
  pestle_kir_if(w->d->k, op(w, PESTLE_OP_LT, side_by_side(w, i),
                            number(w, w->how->wanted)));
  return true;
}

// Operand |o| of the element that is now element |i| of the lane.
static pk_t moved_to(network_t* w, uint32_t o, unsigned i) {
  pestle_kir_builder_t* k = w->d->k;
  pk_t at = pestle_kir_cast(k, position(w, i), PESTLE_INDEX);
  at = pestle_direct_clamp(w->d, at, 0, w->length - 1);
  at = pestle_kir_madi(k, at, (int32_t)w->how->stride, w->from);
  return pestle_direct_load(w->d, w->how->from[o], at);
}

// Results that take an operand's place are written once all of the row is read.
static void write_row(network_t* w) {
  pestle_kir_builder_t* k = w->d->k;
  uint32_t count = w->d->node->operand_count, c;
  bool in_place = w->how->from[0] == w->how->to[0];
  pk_t moved[PESTLE_SORT_MAX_COLUMNS][EACH];
  for (uint32_t o = 0; o < count && in_place; ++o) {
    if (is_compared(w, o, &c)) continue;
    for (unsigned i = 0; i < EACH; ++i)
      moved[o][i] = moved_to(w, o, i);
  }
  if (in_place) pestle_kir_barrier(k);
  for (unsigned i = 0; i < EACH && i * w->lanes < w->how->wanted; ++i) {
    bool opened = open_wanted(w, i);
    pk_t at = op(w, PESTLE_OP_MINIMUM, side_by_side(w, i),
                 number(w, w->how->wanted - 1));
    at = pestle_kir_madi(k, at, (int32_t)w->how->stride, w->to);
    for (uint32_t o = 0; o < count; ++o) {
      pk_t value = is_compared(w, o, &c) ? w->x[c][i]
                   : in_place            ? moved[o][i]
                                         : moved_to(w, o, i);
      pestle_direct_store(w->d, w->how->to[o], at, value);
    }
    if (w->how->positions)
      pestle_direct_store(w->d, w->how->to[count], at, position(w, i));
    if (opened) pestle_kir_end(k);
  }
}

// --- The whole ---

// What the comparator reads.
static void find_compared(network_t* w) {
  const pestle_node_t* node = w->d->node;
  const pestle_block_t* block = pestle_node_body(node, 0);
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    bool read = block->arguments[2 * i]->use_count ||
                block->arguments[2 * i + 1]->use_count;
    if (read) w->operand[w->read++] = i;
  }
}

// Keys, if numbers of the order and positions are so short.
static void find_key(network_t* w) {
  const pestle_block_t* block = pestle_node_body(w->d->node, 0);
  w->key = pestle_block_order_key(block, &w->descending);
  unsigned bits =
      w->key ? 8 * pestle_dtype_size((pestle_dtype_t)w->key->type->dtype) : 0;
  if (bits > 32) w->key = NULL;
  w->last = bits + w->log2 < 32 || !w->key ? PESTLE_I32 : PESTLE_I64;
  w->count = w->key ? 0 : w->read;
}

static int64_t element_bytes(const network_t* w) {
  int64_t bytes = pestle_dtype_size(w->last);
  for (uint32_t c = 0; c < w->count; ++c) {
    pestle_dtype_t dtype =
        pestle_node_operand(w->d->node, w->operand[c])->type->dtype;
    bytes += pestle_dtype_size(dtype);
  }
  return bytes;
}

static bool plan(network_t* w, int64_t all_rows) {
  const pestle_target_caps_t* caps = w->d->caps;
  int64_t most = caps->max_group_lanes;
  int64_t length = w->length > EACH ? w->length : EACH;
  find_compared(w);
  w->size = (int64_t)pestle_next_pow2((uint64_t)length);
  w->lanes = w->size / EACH;
  while (INT64_C(1) << w->log2 < w->size)
    ++w->log2;
  find_key(w);
  w->pad_log2 = w->last == PESTLE_I64 ? 4 : 5;  // a lane each of all banks
  w->rows = 1;
  while (2 * w->rows * w->lanes <= GROUP_LANES &&
         2 * w->rows * w->lanes <= most && all_rows % (2 * w->rows) == 0) {
    w->rows *= 2;
  }
  // Each buffer begins at a multiple of some bytes.
  int64_t bytes =
      w->rows * padded(w, w->size) * element_bytes(w) + 64 * (w->count + 1);
  return w->lanes <= most && bytes <= (int64_t)caps->scratch_bytes;
}

static void add_shared(network_t* w) {
  for (uint32_t c = 0; c <= w->count; ++c) {
    pestle_dtype_t dtype = w->last;
    if (c < w->count)
      dtype = pestle_node_operand(w->d->node, w->operand[c])->type->dtype;
    w->shared[c] =
        pestle_kir_add_buffer(w->d->k, "row", PESTLE_KIR_SHARED, dtype, 1,
                              w->rows * padded(w, w->size), 0);
  }
}

bool pestle_sort_lanes_fit(pestle_direct_t* d, int64_t length, int64_t rows) {
  network_t w = {.d = d, .length = length};
  return (d->caps->flags & PESTLE_TARGET_LANES) &&
         pestle_block_is_order(pestle_node_body(d->node, 0)) && plan(&w, rows);
}

pestle_status_t pestle_sort_lanes(pestle_direct_t* d,
                                  const pestle_sort_lanes_t* how) {
  pestle_kir_builder_t* k = d->k;
  network_t w = {.d = d, .how = how, .length = how->length};
  (void)plan(&w, how->rows);
  add_shared(&w);
  pk_t zero = number(&w, 0);
  pk_t g = pestle_kir_for(k, "rows", zero, number(&w, how->rows / w.rows), 1,
                          PESTLE_KIR_GROUP_X);
  pk_t y = zero;
  if (w.rows > 1) {
    y = pestle_kir_for(k, "row", zero, number(&w, w.rows), 1,
                       PESTLE_KIR_LANE_Y);
  }
  w.t = pestle_kir_for(k, "t", zero, number(&w, w.lanes), 1, PESTLE_KIR_LANE_X);
  pk_t row = pestle_kir_madi(k, g, (int32_t)w.rows, y);
  pk_t by = number(&w, how->stride);
  pk_t outer = op(&w, PESTLE_OP_DIVIDE, row, by);
  pk_t rest = op(&w, PESTLE_OP_REMAINDER, row, by);
  w.first = pestle_kir_madi(k, y, (int32_t)padded(&w, w.size), zero);
  w.from =
      pestle_kir_madi(k, outer, (int32_t)(how->length * how->stride), rest);
  w.to = pestle_kir_madi(k, outer, (int32_t)(how->wanted * how->stride), rest);
  PESTLE_TRY(read_row(&w));
  PESTLE_TRY(sort_row(&w));
  write_row(&w);
  pestle_kir_end(k);
  if (w.rows > 1) pestle_kir_end(k);
  pestle_kir_end(k);
  d->steps = (uint64_t)(how->rows * w.size * w.log2 * w.log2);
  return NULL;
}

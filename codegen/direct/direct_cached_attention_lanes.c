// SPDX-License-Identifier: Apache-2.0
// Attention of a few new tokens over a cache on a target whose lanes run side by side
// (direct_cached_attention.c says what it computes). A group has a few rows that share keys,
// and of the keys every so many tiles: where the target has clusters, the groups of one share
// the keys of a row, and add up what they made.
//
//   for rows that share keys in group.x: for part in cluster: for l in lane.x:
//     for tiles of as many keys as lanes, up to what the last token sees, a part each in turn:
//       score = q k^T, some lanes side by side along a key, -inf behind the row's own
//       the maximum of all lanes, weights 2^(score - maximum) to shared memory, their sums
//       y = y * 2^(old maximum - maximum) + weights v, a few columns a lane, rows of v in turns
//     y, the maxima and the sums to shared memory
//     y = those of all parts, each times 2^(its maximum - the largest one), over the sum
//
// A key is no more than once on its way to a group. Behind the last one that a token sees
// nothing is read: what lies there may be a NaN.
//
// Of one new token the kernel may write the row of keys and that of values as well
// (passes/whole_attention_step.c): each group makes both for itself, in shared memory, and
// begins with them; the first one of those that share keys writes them to the caches, which all
// read up to the row before.
#include <float.h>
#include <math.h>

#include "base/bits.h"
#include "codegen/direct/direct_element.h"

#define LOG2E 0x1.71547652b82fep+0

enum {
  GROUP_LANES = 256,  // and keys of a tile
  SUBGROUP = 32,
  SUBGROUPS = GROUP_LANES / SUBGROUP,
  MOST_ROWS = 8,  // of a group
  MOST_SHARERS = 4,
  MOST_PARTS = 8,
  // Loads of a lane that are on their way together: of keys, and of values.
  AHEAD = 8,
  MOST_VALUES = 16,
  LOAD_BYTES = 16,
};

// Of |fresh| new tokens of each sequence of a batch; heads that share keys are rows of one
// another.
typedef struct cached_t {
  int64_t batch, shared, rows, fresh, most, depth, width;
  double scale;
  pestle_dtype_t dtype;  // of q and y
  // Of the group's body. Where the token's row is written, the caches are results, and the
  // rows are values [batch, shared, 1, width]; |drops|: behind the caches nothing is written,
  // else the last row is.
  const pestle_value_t *q, *key, *value, *past, *rows_of[2];
  bool writes, drops;
} cached_t;

typedef struct lanes_t {
  pestle_direct_t* d;
  pestle_kir_builder_t* k;
  cached_t c;
  int64_t block, blocks;  // rows of a group, groups that share keys
  int64_t parts;          // groups of a cluster
  unsigned key_lanes, value_lanes;
  int64_t
      sharers;  // lanes that take a key together, as many keys one after the other
  int64_t columns, turns;  // lanes of a row of v, rows of v at a time
  uint32_t key, value, past_buffer, y;
  // Shared: rows of q, weights of a tile, maxima and sums of subgroups, what lanes made of y,
  // and what the group made.
  uint32_t wide, weights, tops, sums, pieces, made, made_top, made_sum,
      fresh[2];
  pestle_direct_elements_t elements;
  // Registers, one a row.
  uint32_t scores, own, top, sum, rate;
  pk_t lane, part, outer, shared_at, first_row, past, count, last;
  pk_t place;                                // in the tile, of the lane's key
  pk_t score[MOST_ROWS];                     // of it
  pk_t is_written, written_at;               // the token's row
  pk_t v[MOST_VALUES], places[MOST_VALUES];  // rows of v, and where in the tile
} lanes_t;

static pk_t number(lanes_t* w, int64_t value) {
  return pestle_kir_index(w->k, value);
}
static pk_t real(lanes_t* w, unsigned lanes, double value) {
  return pestle_kir_float(w->k, PESTLE_F32, lanes, value);
}
static pk_t op(lanes_t* w, pestle_op_t o, pk_t a, pk_t b) {
  return pestle_kir_scalar(w->k, o, a, b, PESTLE_KIR_NONE);
}
static pk_t by(lanes_t* w, pestle_op_t o, pk_t a, int64_t b) {
  return pestle_kir_scalar_i(w->k, o, a, b);
}
// a * factor + b.
static pk_t at(lanes_t* w, pk_t a, int64_t factor, pk_t b) {
  return pestle_kir_madi(w->k, a, factor, b);
}
static pk_t exp2_of(lanes_t* w, pk_t a) {
  return op(w, PESTLE_OP_EXP2, a, PESTLE_KIR_NONE);
}
static pk_t get(lanes_t* w, uint32_t buffer, pk_t index) {
  return pestle_direct_load(w->d, buffer, index);
}
static void set(lanes_t* w, uint32_t buffer, pk_t index, pk_t value) {
  pestle_direct_store(w->d, buffer, index, value);
}
static pk_t get_row(lanes_t* w, uint32_t registers, int64_t row) {
  unsigned lanes = w->k->failed ? 1 : w->k->buffer.data[registers].lanes;
  return pestle_kir_load(w->k, registers, lanes, number(w, row),
                         PESTLE_KIR_NONE, 0);
}
static void set_row(lanes_t* w, uint32_t registers, int64_t row, pk_t value) {
  set(w, registers, number(w, row), value);
}

// |lanes| elements that begin at a multiple of them.
static pk_t load_as_is(lanes_t* w, uint32_t buffer, unsigned lanes,
                       pk_t index) {
  unsigned size = 4, align = lanes * size;
  if (!w->k->failed) {
    const pestle_kir_buffer_t* b = &w->k->buffer.data[buffer];
    size = (unsigned)pestle_dtype_size((pestle_dtype_t)b->dtype);
    align = lanes * size;
    if (b->scope == PESTLE_KIR_GLOBAL && b->align < align) align = b->align;
  }
  return pestle_kir_load(w->k, buffer, lanes, index, PESTLE_KIR_NONE,
                         align < LOAD_BYTES ? align : LOAD_BYTES);
}
static pk_t load(lanes_t* w, uint32_t buffer, unsigned lanes, pk_t index) {
  return pestle_kir_cast(w->k, load_as_is(w, buffer, lanes, index), PESTLE_F32);
}

// --- The beginning ---

// A loop over the lane's elements of |count|: |first|, and |step| further.
static pk_t each_of(lanes_t* w, int64_t count, pk_t first, int64_t step) {
  return pestle_kir_for(w->k, "e", first, number(w, count), (int32_t)step,
                        PESTLE_KIR_SERIAL);
}

// The group's row |row|, or the last one that there is.
static pk_t row_at(lanes_t* w, pk_t row) {
  row = op(w, PESTLE_OP_ADD, w->first_row, row);
  if (w->c.rows % w->block) row = by(w, PESTLE_OP_MINIMUM, row, w->c.rows - 1);
  return row;
}

// Element |d| of the token's row of keys or values, as the cache has it, in shared memory; and
// in the cache, which one group writes.
static void make_element(lanes_t* w, int which, pk_t d) {
  int64_t width = which ? w->c.width : w->c.depth;
  uint32_t cache = which ? w->value : w->key;
  d = pestle_direct_clamp(w->d, d, 0, width - 1);
  pk_t place[4] = {number(w, 0), w->outer, number(w, 0), d};
  if (w->c.batch > 1) {
    place[0] = by(w, PESTLE_OP_DIVIDE, w->outer, w->c.shared);
    place[1] = by(w, PESTLE_OP_REMAINDER, w->outer, w->c.shared);
  }
  pk_t x = pestle_direct_element(&w->elements, w->c.rows_of[which], place);
  set(w, w->fresh[which], d, pestle_kir_cast(w->k, x, PESTLE_F32));
  pk_t is_first = op(w, PESTLE_OP_EQ, w->first_row, number(w, 0));
  pk_t is_part = op(w, PESTLE_OP_EQ, w->part, number(w, 0));
  is_first = op(w, PESTLE_OP_AND, is_first, is_part);
  pestle_kir_if(w->k, op(w, PESTLE_OP_AND, is_first, w->is_written));
  pk_t to = at(w, w->outer, w->c.most, w->written_at);
  set(w, cache, at(w, to, width, d), x);
  pestle_kir_end(w->k);
}

// Both rows side by side.
static void make_rows(lanes_t* w) {
  int64_t depth = w->c.depth, all = depth + w->c.width;
  int64_t trips = (all + GROUP_LANES - 1) / GROUP_LANES;
  pk_t trip = pestle_kir_repeat(w->k, "trip", trips);
  pk_t e = at(w, trip, GROUP_LANES, w->lane);
  bool has_tail = all % GROUP_LANES;
  if (has_tail) pestle_kir_if(w->k, by(w, PESTLE_OP_LT, e, all));
  pestle_kir_if(w->k, by(w, PESTLE_OP_LT, e, depth));
  make_element(w, 0, e);
  pestle_kir_else(w->k);
  make_element(w, 1, at(w, e, 1, number(w, -depth)));
  pestle_kir_end(w->k);
  if (has_tail) pestle_kir_end(w->k);
  pestle_kir_end_repeat(w->k, trips);
}

// The score of row |row| with the token's key, the same in all lanes of a subgroup.
static pk_t score_of_fresh(lanes_t* w, int64_t row) {
  int64_t depth = w->c.depth, turns = (depth + SUBGROUP - 1) / SUBGROUP;
  pk_t within = by(w, PESTLE_OP_REMAINDER, w->lane, SUBGROUP);
  pk_t score = real(w, 1, 0);
  for (int64_t i = 0; i < turns; ++i) {
    pk_t d = at(w, within, 1, number(w, i * SUBGROUP)), there = d;
    bool has_tail = (i + 1) * SUBGROUP > depth;
    if (has_tail) there = by(w, PESTLE_OP_MINIMUM, d, depth - 1);
    pk_t q = get(w, w->wide, at(w, there, 1, number(w, row * depth)));
    pk_t k = get(w, w->fresh[0], there);
    if (has_tail) {
      pk_t is_there = by(w, PESTLE_OP_LT, d, depth);
      k = pestle_direct_select(w->d, is_there, k, real(w, 1, 0));
    }
    score = pestle_kir_scalar(w->k, PESTLE_OP_FMA, q, k, score);
  }
  return pestle_kir_sg_reduce(w->k, score, PESTLE_OP_ADD, SUBGROUP);
}

// The first part begins with the token's row, where its token sees it.
static void begin_with_row(lanes_t* w) {
  pk_t turn = by(w, PESTLE_OP_DIVIDE, w->lane, w->columns);
  pk_t column = by(w, PESTLE_OP_REMAINDER, w->lane, w->columns);
  pk_t is_part = op(w, PESTLE_OP_EQ, w->part, number(w, 0));
  pk_t is_seen = op(w, PESTLE_OP_GE, w->past, number(w, 0));
  is_seen = op(w, PESTLE_OP_AND, is_seen, w->is_written);
  is_seen = op(w, PESTLE_OP_AND, is_seen, is_part);
  pk_t is_turn = op(w, PESTLE_OP_EQ, turn, number(w, 0));
  is_turn = op(w, PESTLE_OP_AND, is_seen, is_turn);
  pk_t is_lane = op(w, PESTLE_OP_EQ, w->lane, number(w, 0));
  is_lane = op(w, PESTLE_OP_AND, is_seen, is_lane);
  pk_t v = load(w, w->fresh[1], w->value_lanes,
                at(w, column, w->value_lanes, number(w, 0)));
  v = pestle_direct_select(w->d, is_turn, v, real(w, w->value_lanes, 0));
  for (int64_t r = 0; r < w->block; ++r) {
    pk_t score = score_of_fresh(w, r), none = real(w, 1, -FLT_MAX / 2);
    pk_t one =
        pestle_direct_select(w->d, is_lane, real(w, 1, 1), real(w, 1, 0));
    set_row(w, w->top, r, pestle_direct_select(w->d, is_seen, score, none));
    set_row(w, w->sum, r, one);
    set_row(w, w->own, r, v);
  }
}

static void begin_rows(lanes_t* w) {
  int64_t depth = w->c.depth;
  int64_t all = w->block * depth, trips = (all + GROUP_LANES - 1) / GROUP_LANES;
  pk_t trip = pestle_kir_repeat(w->k, "trip", trips), place[4];
  pk_t e = at(w, trip, GROUP_LANES, w->lane);
  if (all % GROUP_LANES) {
    pestle_kir_if(w->k, by(w, PESTLE_OP_LT, e, all));
    e = by(w, PESTLE_OP_MINIMUM, e, all - 1);
  }
  place[0] = by(w, PESTLE_OP_DIVIDE, w->outer, w->c.shared);
  place[1] = by(w, PESTLE_OP_REMAINDER, w->outer, w->c.shared);
  place[2] = row_at(w, by(w, PESTLE_OP_DIVIDE, e, depth));
  place[3] = by(w, PESTLE_OP_REMAINDER, e, depth);
  pk_t q = pestle_direct_element(&w->elements, w->c.q, place);
  q = pestle_kir_cast(w->k, q, PESTLE_F32);
  set(w, w->wide, e,
      op(w, PESTLE_OP_MULTIPLY, q, real(w, 1, w->c.scale * LOG2E)));
  if (all % GROUP_LANES) pestle_kir_end(w->k);
  pestle_kir_end_repeat(w->k, trips);
  if (w->c.writes) make_rows(w);
  pestle_kir_alloc(w->k, w->own);
  pestle_kir_alloc(w->k, w->top);
  pestle_kir_alloc(w->k, w->sum);
  for (int64_t r = 0; r < w->block; ++r) {
    set_row(w, w->own, r, real(w, w->value_lanes, 0));
    // No score of a number is below it, and two of them have a difference.
    set_row(w, w->top, r, real(w, 1, -FLT_MAX / 2));
    set_row(w, w->sum, r, real(w, 1, 0));
  }
  pestle_kir_barrier(w->k);
  if (w->c.writes) begin_with_row(w);
}

// --- A tile ---

static pk_t seen_key(lanes_t* w, pk_t key) {
  key = op(w, PESTLE_OP_MINIMUM, key, w->last);
  return at(w, w->shared_at, w->c.most, key);
}

static pk_t key_of_turn(lanes_t* w, pk_t base, int64_t turn) {
  pk_t key = by(w, PESTLE_OP_DIVIDE, w->lane, w->sharers);
  return at(w, key, 1,
            at(w, base, 1, number(w, turn * GROUP_LANES / w->sharers)));
}

static pk_t chunk_at(lanes_t* w, pk_t chunk) {
  return at(w, chunk, w->key_lanes, number(w, 0));
}

// Adds |count| chunks of each of |turns| keys, the first of which is key |turn| of the lane.
static void add_chunks(lanes_t* w, pk_t base, int64_t turn, int64_t turns,
                       pk_t first, int64_t count) {
  pk_t k[AHEAD], within = by(w, PESTLE_OP_REMAINDER, w->lane, w->sharers);
  for (int64_t j = 0; j < turns * count; ++j) {
    pk_t key = seen_key(w, key_of_turn(w, base, turn + j / count));
    pk_t from = at(w, key, w->c.depth, number(w, 0));
    pk_t chunk = at(w, first, 1, number(w, j % count));
    chunk = chunk_at(w, at(w, chunk, w->sharers, within));
    k[j] = load_as_is(w, w->key, w->key_lanes, at(w, from, 1, chunk));
  }
  for (int64_t j = 0; j < turns * count; ++j) {
    pk_t chunk = at(w, first, 1, number(w, j % count));
    chunk = chunk_at(w, at(w, chunk, w->sharers, within));
    k[j] = pestle_kir_cast(w->k, k[j], PESTLE_F32);
    for (int64_t r = 0; r < w->block; ++r) {
      pk_t q = load(w, w->wide, w->key_lanes,
                    at(w, chunk, 1, number(w, r * w->c.depth)));
      int64_t place = (j / count) * w->block + r;
      pk_t sum = get_row(w, w->scores, place);
      set_row(w, w->scores, place,
              pestle_kir_scalar(w->k, PESTLE_OP_FMA, q, k[j], sum));
    }
  }
}

// Keys of a lane whose loads are on their way together.
static int64_t turns_together(const lanes_t* w) {
  int64_t chunks = w->c.depth / w->key_lanes / w->sharers, turns = w->sharers;
  while (turns > 1 && turns * chunks > AHEAD)
    turns /= 2;
  return turns;
}

// Scores of the lane's key, with every row. Lanes that share keys make those of each of them.
static void make_scores(lanes_t* w, pk_t base) {
  int64_t chunks = w->c.depth / w->key_lanes / w->sharers, ahead = AHEAD;
  int64_t turns = turns_together(w);
  pk_t within = by(w, PESTLE_OP_REMAINDER, w->lane, w->sharers);
  while (chunks % ahead)
    ahead /= 2;
  for (int64_t turn = 0; turn < w->sharers; turn += turns) {
    pestle_kir_alloc(w->k, w->scores);
    for (int64_t r = 0; r < w->block * turns; ++r)
      set_row(w, w->scores, r, real(w, w->key_lanes, 0));
    pk_t i = pestle_kir_repeat(w->k, "chunk", chunks / ahead);
    add_chunks(w, base, turn, turns, at(w, i, ahead, number(w, 0)), ahead);
    pestle_kir_end_repeat(w->k, chunks / ahead);
    for (int64_t r = 0; r < w->block * turns; ++r) {
      pk_t one =
          pestle_kir_reduce(w->k, get_row(w, w->scores, r), PESTLE_OP_ADD);
      if (w->sharers > 1)
        one = pestle_kir_sg_reduce(w->k, one, PESTLE_OP_ADD,
                                   (unsigned)w->sharers);
      int64_t now = turn + r / w->block;
      pk_t* score = &w->score[r % w->block];
      if (!now) {
        *score = one;
        continue;
      }
      pk_t is_own = op(w, PESTLE_OP_EQ, within, number(w, now));
      *score = pestle_direct_select(w->d, is_own, one, *score);
    }
  }
}

// The score of row |row|, -inf where its token does not see |key|.
static pk_t score_of(lanes_t* w, int64_t row, pk_t key) {
  pk_t score = w->score[row];
  pk_t token = number(w, 0);
  if (w->c.fresh > 1) {
    token = row_at(w, number(w, row));
    token = by(w, PESTLE_OP_REMAINDER, token, w->c.fresh);
  }
  pk_t limit = op(w, PESTLE_OP_ADD, w->past, token);
  limit = op(w, PESTLE_OP_MINIMUM, limit, w->last);
  pk_t is_seen = op(w, PESTLE_OP_LE, key, limit);
  return pestle_direct_select(w->d, is_seen, score, real(w, 1, -INFINITY));
}

// Weights of the tile in shared memory; the rate at which what was made before counts.
static void make_weights(lanes_t* w, pk_t key) {
  pk_t score[MOST_ROWS];
  pk_t place = by(w, PESTLE_OP_DIVIDE, w->lane, SUBGROUP);
  pk_t first = by(w, PESTLE_OP_REMAINDER, w->lane, SUBGROUP);
  first = op(w, PESTLE_OP_EQ, first, number(w, 0));
  for (int64_t r = 0; r < w->block; ++r) {
    score[r] = score_of(w, r, key);
    pk_t top =
        pestle_kir_sg_reduce(w->k, score[r], PESTLE_OP_MAXIMUM, SUBGROUP);
    pestle_kir_if(w->k, first);
    set(w, w->tops, at(w, place, 1, number(w, r * SUBGROUPS)), top);
    pestle_kir_end(w->k);
  }
  pestle_kir_barrier(w->k);
  pestle_kir_alloc(w->k, w->rate);
  for (int64_t r = 0; r < w->block; ++r) {
    pk_t old = get_row(w, w->top, r), top = old;
    for (int64_t i = 0; i < SUBGROUPS; ++i)
      top = op(w, PESTLE_OP_MAXIMUM, top,
               get(w, w->tops, number(w, r * SUBGROUPS + i)));
    pk_t rate = exp2_of(w, op(w, PESTLE_OP_SUBTRACT, old, top));
    pk_t weight = exp2_of(w, op(w, PESTLE_OP_SUBTRACT, score[r], top));
    set(w, w->weights, at(w, w->place, 1, number(w, r * GROUP_LANES)), weight);
    set_row(w, w->top, r, top);
    set_row(w, w->rate, r, rate);
    set_row(w, w->sum, r,
            pestle_kir_scalar(w->k, PESTLE_OP_FMA, get_row(w, w->sum, r), rate,
                              weight));
  }
  pestle_kir_barrier(w->k);
}

// The first |count| rows of v that are the lane's, from place |first| of the tile on. What is
// behind the last key that is seen is that one's.
static void load_values(lanes_t* w, pk_t base, pk_t first, int64_t count) {
  pk_t turn = by(w, PESTLE_OP_DIVIDE, w->lane, w->columns);
  pk_t column = by(w, PESTLE_OP_REMAINDER, w->lane, w->columns);
  for (int64_t j = 0; j < count; ++j) {
    w->places[j] = at(w, first, 1, at(w, turn, 1, number(w, j * w->turns)));
    pk_t row = seen_key(w, op(w, PESTLE_OP_ADD, base, w->places[j]));
    pk_t from =
        at(w, column, w->value_lanes, at(w, row, w->c.width, number(w, 0)));
    w->v[j] = load_as_is(w, w->value, w->value_lanes, from);
  }
}

static void use_values(lanes_t* w, pk_t left, int64_t count) {
  unsigned lanes = w->value_lanes;
  for (int64_t j = 0; j < count; ++j) {
    pk_t place = w->places[j], v = pestle_kir_cast(w->k, w->v[j], PESTLE_F32);
    pk_t is_there = op(w, PESTLE_OP_LT, place, left);
    if (GROUP_LANES % w->turns || GROUP_LANES / w->turns % count ||
        GROUP_LANES % w->columns) {
      pk_t is_within = by(w, PESTLE_OP_LT, place, GROUP_LANES);
      is_there = op(w, PESTLE_OP_AND, is_there, is_within);
      place = by(w, PESTLE_OP_MINIMUM, place, GROUP_LANES - 1);
    }
    // What is read twice counts once.
    v = pestle_direct_select(w->d, is_there, v, real(w, lanes, 0));
    for (int64_t r = 0; r < w->block; ++r) {
      pk_t from = at(w, place, 1, number(w, r * GROUP_LANES));
      pk_t weight = pestle_kir_splat(w->k, get(w, w->weights, from), lanes);
      pk_t sum = get_row(w, w->own, r);
      set_row(w, w->own, r,
              pestle_kir_scalar(w->k, PESTLE_OP_FMA, weight, v, sum));
    }
  }
}

static void scale_own(lanes_t* w) {
  for (int64_t r = 0; r < w->block; ++r) {
    pk_t rate = pestle_kir_splat(w->k, get_row(w, w->rate, r), w->value_lanes);
    set_row(w, w->own, r,
            op(w, PESTLE_OP_MULTIPLY, get_row(w, w->own, r), rate));
  }
}

// Asks for the rows of the first tile, a key and its value each lane.
static void ask_for_tile(lanes_t* w) {
  enum { LINE_BYTES = 128 };
  pk_t key = seen_key(w, at(w, w->part, GROUP_LANES, w->lane));
  pk_t is_some = by(w, PESTLE_OP_MULTIPLY, w->part, GROUP_LANES);
  pestle_kir_if(w->k, op(w, PESTLE_OP_LT, is_some, w->count));
  for (int which = 0; which < 2; ++which) {
    int64_t width = which ? w->c.width : w->c.depth;
    const pestle_value_t* of = which ? w->c.value : w->c.key;
    int64_t line = LINE_BYTES / (int64_t)pestle_dtype_size(of->type->dtype);
    for (int64_t i = 0; i < width; i += line)
      pestle_kir_act(w->k, PESTLE_KIR_PREFETCH, which ? w->value : w->key,
                     at(w, key, width, number(w, i)), 0, 0);
  }
  pestle_kir_end(w->k);
}

// Rows of v of which a lane has more than it takes at once.
static void add_values(lanes_t* w, pk_t base, pk_t left) {
  int64_t step = w->turns * AHEAD;
  pk_t steps =
      by(w, PESTLE_OP_DIVIDE, at(w, left, 1, number(w, step - 1)), step);
  steps = pestle_direct_clamp(w->d, steps, 0, (GROUP_LANES + step - 1) / step);
  pk_t i = pestle_kir_for(w->k, "i", number(w, 0), steps, 1, PESTLE_KIR_SERIAL);
  load_values(w, base, at(w, i, step, number(w, 0)), AHEAD);
  use_values(w, left, AHEAD);
  pestle_kir_end(w->k);
}

static void do_tiles(lanes_t* w) {
  int64_t all = (w->c.most + GROUP_LANES - 1) / GROUP_LANES;
  int64_t most = (all + w->parts - 1) / w->parts;
  pk_t tiles = at(w, w->count, 1, number(w, GROUP_LANES - 1));
  tiles = by(w, PESTLE_OP_DIVIDE, tiles, GROUP_LANES);
  tiles = at(w, tiles, 1, number(w, w->parts - 1));
  tiles = op(w, PESTLE_OP_SUBTRACT, tiles, w->part);
  tiles = by(w, PESTLE_OP_DIVIDE, tiles, w->parts);
  tiles = pestle_direct_clamp(w->d, tiles, 0, most);
  pk_t i =
      pestle_kir_for(w->k, "tile", number(w, 0), tiles, 1, PESTLE_KIR_SERIAL);
  pk_t base = at(w, at(w, i, w->parts, w->part), GROUP_LANES, number(w, 0));
  pk_t key = op(w, PESTLE_OP_ADD, base, w->place);
  pk_t left = op(w, PESTLE_OP_SUBTRACT, w->count, base);
  // They are on their way while weights are made.
  int64_t values = (GROUP_LANES + w->turns - 1) / w->turns;
  bool is_few = values <= MOST_VALUES;
  if (is_few) load_values(w, base, number(w, 0), values);
  make_scores(w, base);
  make_weights(w, key);
  scale_own(w);
  if (is_few)
    use_values(w, left, values);
  else
    add_values(w, base, left);
  pestle_kir_end(w->k);
}

// --- The end ---

// The group's sums, of what its lanes have.
static void add_lanes(lanes_t* w) {
  int64_t width = w->c.width;
  pk_t turn = by(w, PESTLE_OP_DIVIDE, w->lane, w->columns);
  pk_t column = by(w, PESTLE_OP_REMAINDER, w->lane, w->columns);
  pk_t place = by(w, PESTLE_OP_DIVIDE, w->lane, SUBGROUP);
  pk_t first = by(w, PESTLE_OP_REMAINDER, w->lane, SUBGROUP);
  bool has_idle = GROUP_LANES % w->columns;
  if (has_idle) {
    pestle_kir_if(w->k, op(w, PESTLE_OP_LT, turn, number(w, w->turns)));
    turn = by(w, PESTLE_OP_MINIMUM, turn, w->turns - 1);
  }
  for (int64_t r = 0; r < w->block; ++r) {
    pk_t to = at(w, turn, w->block * width, number(w, r * width));
    to = at(w, column, w->value_lanes, to);
    pestle_kir_store(w->k, w->pieces, to, get_row(w, w->own, r),
                     PESTLE_KIR_NONE, LOAD_BYTES);
  }
  if (has_idle) pestle_kir_end(w->k);
  for (int64_t r = 0; r < w->block; ++r) {
    pk_t sum = pestle_kir_sg_reduce(w->k, get_row(w, w->sum, r), PESTLE_OP_ADD,
                                    SUBGROUP);
    pestle_kir_if(w->k, op(w, PESTLE_OP_EQ, first, number(w, 0)));
    set(w, w->sums, at(w, place, 1, number(w, r * SUBGROUPS)), sum);
    pestle_kir_end(w->k);
  }
  pestle_kir_barrier(w->k);
  pk_t e = each_of(w, w->block * width, w->lane, GROUP_LANES);
  pk_t sum = get(w, w->pieces, e);
  for (int64_t i = 1; i < w->turns; ++i) {
    pk_t from = at(w, e, 1, number(w, i * w->block * width));
    sum = op(w, PESTLE_OP_ADD, sum, get(w, w->pieces, from));
  }
  set(w, w->made, e, sum);
  pestle_kir_end(w->k);
  pestle_kir_if(w->k, op(w, PESTLE_OP_EQ, w->lane, number(w, 0)));
  for (int64_t r = 0; r < w->block; ++r) {
    sum = get(w, w->sums, number(w, r * SUBGROUPS));
    for (int64_t i = 1; i < SUBGROUPS; ++i)
      sum = op(w, PESTLE_OP_ADD, sum,
               get(w, w->sums, number(w, r * SUBGROUPS + i)));
    set(w, w->made_sum, number(w, r), sum);
    set(w, w->made_top, number(w, r), get_row(w, w->top, r));
  }
  pestle_kir_end(w->k);
}

// Element |index| of |buffer| as part |part| has it.
static pk_t of_part(lanes_t* w, uint32_t buffer, pk_t index, int64_t part) {
  if (w->parts == 1) return get(w, buffer, index);
  pestle_kir_inst_t inst = {.op = PESTLE_KIR_REF,
                            .type = PESTLE_ADDR,
                            .lanes = 1,
                            .arg = {buffer, index}};
  pk_t own = pestle_kir_put(w->k, inst);
  inst.op = PESTLE_KIR_REF_AT;
  inst.arg[0] = own;
  inst.arg[1] = number(w, part);
  pk_t other = pestle_kir_put(w->k, inst);
  inst.op = PESTLE_KIR_LOAD_AT;
  inst.type = PESTLE_F32;
  inst.arg[0] = other;
  inst.arg[1] = number(w, 0);
  return pestle_kir_put(w->k, inst);
}

static void meet(lanes_t* w) {
  if (w->parts == 1) {
    pestle_kir_barrier(w->k);
  } else {
    pestle_kir_act(w->k, PESTLE_KIR_CLUSTER_SYNC, 0, 0, 0, 0);
  }
}

// A share of the elements of y, from what all parts made.
static void add_parts(lanes_t* w) {
  int64_t width = w->c.width, step = w->parts * GROUP_LANES;
  pk_t tops[MOST_PARTS];
  pk_t first = at(w, w->part, GROUP_LANES, w->lane);
  pk_t e = each_of(w, w->block * width, first, step);
  pk_t row = by(w, PESTLE_OP_DIVIDE, e, width);
  pk_t top = PESTLE_KIR_NONE, sum = PESTLE_KIR_NONE, y = PESTLE_KIR_NONE;
  for (int64_t i = 0; i < w->parts; ++i) {
    tops[i] = of_part(w, w->made_top, row, i);
    top = i ? op(w, PESTLE_OP_MAXIMUM, top, tops[i]) : tops[i];
  }
  for (int64_t i = 0; i < w->parts; ++i) {
    pk_t rate = exp2_of(w, op(w, PESTLE_OP_SUBTRACT, tops[i], top));
    pk_t one = op(w, PESTLE_OP_MULTIPLY, of_part(w, w->made_sum, row, i), rate);
    sum = i ? op(w, PESTLE_OP_ADD, sum, one) : one;
    one = op(w, PESTLE_OP_MULTIPLY, of_part(w, w->made, e, i), rate);
    y = i ? op(w, PESTLE_OP_ADD, y, one) : one;
  }
  y = pestle_kir_cast(w->k, op(w, PESTLE_OP_DIVIDE, y, sum), w->c.dtype);
  pk_t all = op(w, PESTLE_OP_ADD, w->first_row, row);
  bool has_tail = w->c.rows % w->block;
  if (has_tail) {
    pestle_kir_if(w->k, by(w, PESTLE_OP_LT, all, w->c.rows));
    all = by(w, PESTLE_OP_MINIMUM, all, w->c.rows - 1);
  }
  pk_t to = at(w, at(w, w->outer, w->c.rows, all), width,
               by(w, PESTLE_OP_REMAINDER, e, width));
  set(w, w->y, to, y);
  if (has_tail) pestle_kir_end(w->k);
  pestle_kir_end(w->k);
}

// --- The kernel ---

// Of a row of a group, in shared memory.
static int64_t bytes_of_row(const lanes_t* w) {
  return (int64_t)sizeof(float) *
         (w->c.depth + GROUP_LANES + (w->turns + 1) * w->c.width +
          2 * SUBGROUPS + 2);
}

// The fewest rows a group with which all groups run at once, as far as they have room. The
// groups of a cluster are neighbours on the device, where some cores are left over.
static int64_t choose_block(const lanes_t* w, int64_t cores, int64_t bytes) {
  int64_t block = 1;
  if (w->parts > 1) cores -= cores / 8;
  while (block < MOST_ROWS && block < w->c.rows &&
         w->c.batch * w->c.shared * w->parts *
                 ((w->c.rows + block - 1) / block) >
             cores &&
         2 * block * bytes_of_row(w) <= bytes)
    block *= 2;
  return block < w->c.rows ? block : w->c.rows;
}

static uint32_t shared(lanes_t* w, const char* name, int64_t count) {
  return pestle_kir_add_buffer(w->k, name, PESTLE_KIR_SHARED, PESTLE_F32, 1,
                               count, 0);
}

static uint32_t registers(lanes_t* w, const char* name, unsigned lanes) {
  return pestle_kir_add_buffer(w->k, name, PESTLE_KIR_PRIVATE, PESTLE_F32,
                               lanes, w->block, 0);
}

static void add_buffers(lanes_t* w) {
  int64_t block = w->block;
  w->elements.d = w->d;
  w->past_buffer = pestle_direct_argument(w->d, w->c.past);
  if (w->c.writes) {
    w->key = pestle_direct_result(w->d, 0);
    w->value = pestle_direct_result(w->d, 1);
    w->fresh[0] = shared(w, "fresh_key", w->c.depth);
    w->fresh[1] = shared(w, "fresh_value", w->c.width);
  } else {
    w->key = pestle_direct_argument(w->d, w->c.key);
    w->value = pestle_direct_argument(w->d, w->c.value);
  }
  w->y = pestle_direct_result(w->d, w->c.writes ? 2 : 0);
  w->wide = shared(w, "wide", block * w->c.depth);
  w->weights = shared(w, "weights", block * GROUP_LANES);
  w->pieces = shared(w, "pieces", w->turns * block * w->c.width);
  w->made = shared(w, "made", block * w->c.width);
  w->tops = shared(w, "tops", block * SUBGROUPS);
  w->sums = shared(w, "sums", block * SUBGROUPS);
  w->made_top = shared(w, "made_top", block);
  w->made_sum = shared(w, "made_sum", block);
  w->scores =
      pestle_kir_add_buffer(w->k, "scores", PESTLE_KIR_PRIVATE, PESTLE_F32,
                            w->key_lanes, block * turns_together(w), 0);
  w->own = registers(w, "own", w->value_lanes);
  w->top = registers(w, "top", 1);
  w->sum = registers(w, "sum", 1);
  w->rate = registers(w, "rate", 1);
}

static void find_place(lanes_t* w, pk_t group) {
  pk_t block = by(w, PESTLE_OP_REMAINDER, group, w->blocks);
  w->shared_at = w->outer = by(w, PESTLE_OP_DIVIDE, group, w->blocks);
  w->first_row = at(w, block, w->block, number(w, 0));
  pk_t slot = number(w, 0);
  if (w->c.batch > 1) slot = by(w, PESTLE_OP_DIVIDE, w->outer, w->c.shared);
  // Within 32 bits before it is an index: with one that may be longer all are.
  pk_t past = get(w, w->past_buffer, slot);
  past = op(w, PESTLE_OP_MAXIMUM, past,
            pestle_kir_int(w->k, PESTLE_I64, 1, -w->c.fresh));
  past = op(w, PESTLE_OP_MINIMUM, past,
            pestle_kir_int(w->k, PESTLE_I64, 1, w->c.most));
  past = pestle_kir_cast(w->k, past, PESTLE_I32);
  past = pestle_kir_cast(w->k, past, PESTLE_INDEX);
  // A row that sees no key is NaN; none sees more than there are.
  w->past = pestle_direct_clamp(w->d, past, -w->c.fresh, w->c.most);
  w->count = at(w, w->past, 1, number(w, w->c.fresh));
  w->count = pestle_direct_clamp(w->d, w->count, 0, w->c.most);
  if (w->c.writes) {
    // What the caches have of what the token sees, beside its own row.
    int64_t most = w->c.drops ? w->c.most : w->c.most - 1;
    w->count = pestle_direct_clamp(w->d, w->past, 0, most);
    w->written_at = pestle_direct_clamp(w->d, w->past, 0, w->c.most - 1);
    w->is_written = op(w, PESTLE_OP_EQ, number(w, 0), number(w, 0));
    if (w->c.drops) w->is_written = op(w, PESTLE_OP_EQ, w->written_at, w->past);
  }
  w->last = at(w, w->count, 1, number(w, -1));
  w->last = pestle_direct_clamp(w->d, w->last, 0, w->c.most - 1);
}

static cached_t read(const pestle_direct_t* d) {
  const pestle_node_t* node = pestle_direct_whole_of(d->node);
  const pestle_node_t *keys = pestle_node_operand(node, 1)->node,
                      *values = pestle_node_operand(node, 2)->node;
  cached_t c = {.q = pestle_node_operand(node, 0),
                .key = pestle_node_operand(keys, 0),
                .value = pestle_node_operand(values, 0),
                .past = pestle_direct_cached_past(node),
                .fresh = pestle_direct_cached_rows(node),
                .scale = PESTLE_NODE_F64(node, scale)};
  const pestle_node_t* write = c.key->node;
  if (write) {
    uint32_t row = write->op == PESTLE_OP_SCATTER ? 2 : 1;
    c.writes = true;
    c.drops = write->op == PESTLE_OP_SCATTER;
    c.rows_of[0] = pestle_node_operand(write, row);
    c.rows_of[1] = pestle_node_operand(c.value->node, row);
  }
  c.batch = c.q->type->dims[0];
  c.shared = c.q->type->dims[1];
  c.rows = c.q->type->dims[2];
  c.most = c.key->type->dims[2];
  c.depth = c.q->type->dims[3];
  c.width = c.value->type->dims[3];
  c.dtype = c.q->type->dtype;
  return c;
}

static void wait_for_others(lanes_t* w) {
  pestle_kir_act(w->k, PESTLE_KIR_GRID_WAIT, 0, 0, 0, 0);
}

pestle_status_t pestle_direct_cached_attention_lanes(pestle_direct_t* d) {
  lanes_t w = {.d = d, .k = d->k, .c = read(d)};
  bool has_clusters = d->caps->op_dtypes[PESTLE_KIR_CLUSTER_SYNC] != 0;
  w.key_lanes = LOAD_BYTES / (unsigned)pestle_dtype_size(w.c.key->type->dtype);
  w.value_lanes =
      LOAD_BYTES / (unsigned)pestle_dtype_size(w.c.value->type->dtype);
  w.sharers = MOST_SHARERS;
  while (w.c.depth / w.key_lanes % w.sharers)
    w.sharers /= 2;
  w.columns = w.c.width / w.value_lanes;
  w.turns = GROUP_LANES / w.columns;
  w.parts = has_clusters ? MOST_PARTS : 1;
  while (w.parts > 1 && (w.parts - 1) * GROUP_LANES >= w.c.most)
    w.parts /= 2;
  w.block =
      choose_block(&w, d->caps->cores, (int64_t)d->caps->scratch_bytes / 2);
  w.blocks = (w.c.rows + w.block - 1) / w.block;
  add_buffers(&w);
  pk_t group = pestle_kir_for(w.k, "group", number(&w, 0),
                              number(&w, w.c.batch * w.c.shared * w.blocks), 1,
                              PESTLE_KIR_GROUP_X);
  w.part = number(&w, 0);
  if (w.parts > 1)
    w.part = pestle_kir_for(w.k, "part", number(&w, 0), number(&w, w.parts), 1,
                            PESTLE_KIR_CLUSTER);
  w.lane = pestle_kir_for(w.k, "lane", number(&w, 0), number(&w, GROUP_LANES),
                          1, PESTLE_KIR_LANE_X);
  w.place = by(&w, PESTLE_OP_DIVIDE, w.lane, w.sharers);
  if (w.sharers > 1)
    w.place = at(&w, by(&w, PESTLE_OP_REMAINDER, w.lane, w.sharers),
                 GROUP_LANES / w.sharers, w.place);
  // What is in memory already is on its way while the new row is made, and, where the length
  // is given, while the kernel in front ends.
  bool asks = d->caps->op_dtypes[PESTLE_KIR_GRID_WAIT] != 0;
  bool is_early = asks && pestle_direct_is_given(d, w.c.past);
  if (asks && !is_early) wait_for_others(&w);
  find_place(&w, group);
  if (asks) ask_for_tile(&w);
  if (is_early) wait_for_others(&w);
  begin_rows(&w);
  do_tiles(&w);
  add_lanes(&w);
  meet(&w);
  add_parts(&w);
  if (w.parts > 1) meet(&w);
  pestle_kir_end(w.k);
  if (w.parts > 1) pestle_kir_end(w.k);
  pestle_kir_end(w.k);
  d->steps = (uint64_t)(w.c.batch * w.c.shared * w.c.rows * w.c.most *
                        (w.c.depth + w.c.width));
  return NULL;
}

// SPDX-License-Identifier: Apache-2.0
// sort: a merge sort of each row, rows in parallel, from blocks on whose
// elements count who comes before them.
//
// The op UPDATES: result i holds operand i when the kernel begins, and a
// workspace of the same elements takes every second pass:
//
//   for row in group.x:
//     for block: rank = for each element, in lanes, how many of the block come
//                       before it
//                workspaces[rank] = results
//     merge runs of a block from the workspaces into the results
//     for width = two blocks, times 4, below the length:
//       merge runs of |width| from the results into the workspaces
//       merge runs of 2 * |width| from the workspaces into the results
//
// A merge takes from the right run only where the comparator says that its head
// comes strictly first: the sort is stable, asked or not. All operands move with
// the elements that are compared, so that memory is walked in order. There is no
// branch in the merge: which side comes next is not to be foretold.
//
// Of two elements ranks ask what a merge would ask: whether the right one comes
// strictly first. When the ranks of a block are all different, each of its
// elements comes before all of higher rank, and merges end the same way. When
// they are not, as with NaN in an order by 'less', merges begin with single
// elements: a comparator that is no order has the same result everywhere. Where
// it is known to be one (pestle_block_is_order()), nothing of that is asked, and
// merges go from both ends.
#include "codegen/direct/direct_sort.h"

#include "base/fault.h"

static pk_t op(pestle_sort_t* s, pestle_op_t o, pk_t a, pk_t b) {
  return pestle_direct_op(s->d, o, a, b);
}

static pk_t add(pestle_sort_t* s, pk_t a, pk_t b) {
  return op(s, PESTLE_OP_ADD, a, b);
}

static pk_t loop(pestle_sort_t* s, const char* name, pk_t lo, pk_t hi,
                 int32_t step) {
  return pestle_kir_for(s->d->k, name, lo, hi, step, PESTLE_KIR_SERIAL);
}

static void end(pestle_sort_t* s) {
  pestle_kir_end(s->d->k);
}

pk_t pestle_sort_at(pestle_sort_t* s, const pestle_sort_place_t* place,
                    pk_t at) {
  return pestle_kir_madi(s->d->k, at, place->stride, place->base);
}

pk_t pestle_sort_within(pestle_sort_t* s, pk_t a) {
  return pestle_direct_clamp(s->d, a, 0, s->length);
}

pk_t pestle_sort_load(pestle_sort_t* s, const pestle_sort_place_t* place,
                      uint32_t column, unsigned lanes, pk_t at, pk_t mask) {
  pestle_kir_builder_t* k = s->d->k;
  uint32_t buffer = place->buffers[column];
  pk_t from = pestle_sort_at(s, place, at);
  if (lanes == 1 || place->stride == 1)
    return pestle_kir_load(k, buffer, lanes, from, mask, 0);
  pk_t step = pestle_kir_int(k, PESTLE_INDEX, lanes, place->stride);
  pk_t apart =
      op(s, PESTLE_OP_MULTIPLY, pestle_kir_iota(k, PESTLE_INDEX, lanes), step);
  return pestle_kir_gather(k, buffer, add(s, from, apart), mask);
}

pestle_status_t pestle_sort_before(pestle_sort_t* s, const pk_t* a,
                                   const pk_t* b, unsigned lanes,
                                   pk_t* out_before) {
  pk_t pairs[2 * PESTLE_SORT_MAX_COLUMNS];
  const pestle_node_t* node = s->d->node;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    pestle_dtype_t dtype = pestle_node_operand(node, i)->type->dtype;
    pairs[2 * i] = pairs[2 * i + 1] =
        pestle_kir_const(s->d->k, dtype, lanes, 0, 0);
  }
  for (uint32_t c = 0; c < s->compared; ++c) {
    pairs[2 * s->first[c]] = a[c];
    pairs[2 * s->first[c] + 1] = b[c];
  }
  return pestle_direct_region(s->d, 0, pairs, out_before);
}

static pk_t negate(pestle_sort_t* s, pk_t a) {
  return pestle_kir_scalar(s->d->k, PESTLE_OP_NOT, a, PESTLE_KIR_NONE,
                           PESTLE_KIR_NONE);
}

// Whether |right|, which lies behind |left|, goes before it.
static pestle_status_t goes_before(pestle_sort_t* s, const pk_t* right,
                                   const pk_t* left, unsigned lanes,
                                   pk_t* out) {
  if (!PESTLE_FAULT(wrong_tie_order))
    return pestle_sort_before(s, right, left, lanes, out);
  PESTLE_TRY(pestle_sort_before(s, left, right, lanes, out));
  *out = negate(s, *out);
  return NULL;
}

// --- Merges ---

// The heads of two runs, or, from the end, what is last of them.
typedef struct ends_t {
  uint32_t left, right;  // variables
  bool last;
} ends_t;

static void step(pestle_sort_t* s, const ends_t* e, uint32_t variable,
                 pk_t steps) {
  pk_t at = pestle_direct_get(s->d, variable);
  at = op(s, e->last ? PESTLE_OP_SUBTRACT : PESTLE_OP_ADD, at, steps);
  pestle_direct_set(s->d, variable, at);
}

// The element that comes next at this end goes to |position| of |to|.
static pestle_status_t merge_one(pestle_sort_t* s, const ends_t* e,
                                 const pestle_sort_place_t* from,
                                 const pestle_sort_place_t* to, pk_t position,
                                 const pestle_sort_runs_t* runs) {
  pestle_direct_t* d = s->d;
  pk_t lefts[PESTLE_SORT_MAX_COLUMNS], rights[PESTLE_SORT_MAX_COLUMNS], first;
  pk_t left = pestle_direct_get(d, e->left);
  pk_t right = pestle_direct_get(d, e->right);
  pk_t at_left = pestle_direct_clamp(d, left, 0, s->length - 1);
  pk_t at_right = pestle_direct_clamp(d, right, 0, s->length - 1);
  for (uint32_t i = 0; i < s->count; ++i) {
    rights[i] = pestle_sort_load(s, from, i, 1, at_right, PESTLE_KIR_NONE);
    lefts[i] = pestle_sort_load(s, from, i, 1, at_left, PESTLE_KIR_NONE);
  }
  PESTLE_TRY(goes_before(s, rights, lefts, 1, &first));
  if (e->last) first = negate(s, first);
  pk_t done = e->last ? op(s, PESTLE_OP_LT, left, runs->left)
                      : op(s, PESTLE_OP_GE, left, runs->left_end);
  pk_t some = e->last ? op(s, PESTLE_OP_GE, right, runs->right)
                      : op(s, PESTLE_OP_LT, right, runs->right_end);
  pk_t takes_right =
      op(s, PESTLE_OP_AND, some, op(s, PESTLE_OP_OR, done, first));
  for (uint32_t i = 0; i < s->count; ++i) {
    pk_t place = pestle_sort_at(s, to, position);
    pk_t taken = pestle_direct_select(d, takes_right, rights[i], lefts[i]);
    pestle_direct_store(d, to->buffers[i], place, taken);
  }
  pk_t one = pestle_kir_cast(d->k, takes_right, PESTLE_INDEX);
  step(s, e, e->right, one);
  step(s, e, e->left,
       op(s, PESTLE_OP_SUBTRACT, pestle_direct_index(d, 1), one));
  return NULL;
}

// From both ends at once: a step waits for the one before it, and so there are
// two to wait for. In the middle both may write the same element.
static pestle_status_t merge_both_ways(pestle_sort_t* s,
                                       const pestle_sort_place_t* from,
                                       const pestle_sort_place_t* to,
                                       const pestle_sort_runs_t* runs) {
  pestle_direct_t* d = s->d;
  ends_t first = {s->left, s->right, false};
  ends_t last = {s->last_left, s->last_right, true};
  pk_t one = pestle_direct_index(d, 1);
  pestle_direct_set(d, last.left,
                    op(s, PESTLE_OP_SUBTRACT, runs->left_end, one));
  pestle_direct_set(d, last.right,
                    op(s, PESTLE_OP_SUBTRACT, runs->right_end, one));
  pk_t count = op(s, PESTLE_OP_SUBTRACT, runs->end, runs->begin);
  count =
      op(s, PESTLE_OP_DIVIDE, add(s, count, one), pestle_direct_index(d, 2));
  pk_t k = loop(s, "k", pestle_direct_index(d, 0), count, 1);
  pk_t head = add(s, runs->begin, k);
  pk_t tail = op(s, PESTLE_OP_SUBTRACT, runs->end, add(s, k, one));
  tail = pestle_direct_clamp(d, tail, 0, s->length - 1);
  head = pestle_direct_clamp(d, head, 0, s->length - 1);
  PESTLE_TRY(merge_one(s, &first, from, to, head, runs));
  PESTLE_TRY(merge_one(s, &last, from, to, tail, runs));
  end(s);
  return NULL;
}

pestle_status_t pestle_sort_merge(pestle_sort_t* s,
                                  const pestle_sort_place_t* from,
                                  const pestle_sort_place_t* to,
                                  const pestle_sort_runs_t* runs) {
  ends_t heads = {s->left, s->right, false};
  pestle_direct_set(s->d, s->left, runs->left);
  pestle_direct_set(s->d, s->right, runs->right);
  if (s->is_order) return merge_both_ways(s, from, to, runs);
  pk_t position = loop(s, "k", runs->begin, runs->end, 1);
  PESTLE_TRY(merge_one(s, &heads, from, to, position, runs));
  end(s);
  return NULL;
}

void pestle_sort_copy(pestle_sort_t* s, const pestle_sort_place_t* from,
                      const pestle_sort_place_t* to, pk_t length) {
  pestle_kir_builder_t* k = s->d->k;
  pk_t v =
      loop(s, "v", pestle_direct_index(s->d, 0), length, (int32_t)s->lanes);
  pk_t mask = pestle_kir_mask(k, v, length, s->lanes);
  for (uint32_t i = 0; i < s->count; ++i) {
    pk_t x = pestle_sort_load(s, from, i, s->lanes, v, mask);
    pestle_kir_store(k, to->buffers[i], pestle_sort_at(s, to, v), x, mask, 0);
  }
  end(s);
}

// Runs of |width| elements of |from| become runs twice as long in |to|.
static pestle_status_t merge_pass(pestle_sort_t* s,
                                  const pestle_sort_place_t* from,
                                  const pestle_sort_place_t* to, pk_t width,
                                  pk_t length) {
  pestle_direct_t* d = s->d;
  bool dense = from->stride == 1 && to->stride == 1;
  if (dense) {
    pestle_kir_if(d->k, op(s, PESTLE_OP_GE, width, length));
    pestle_sort_copy(s, from, to, length);
    pestle_kir_else(d->k);
  }
  pk_t pair = add(s, width, width);
  // ceil(length / pair)
  pk_t most = add(s, pair, add(s, length, pestle_direct_index(d, -1)));
  pk_t runs = op(s, PESTLE_OP_DIVIDE, most, pair);
  pk_t run = loop(s, "run", pestle_direct_index(d, 0), runs, 1);
  pk_t start = op(s, PESTLE_OP_MULTIPLY, run, pair);
  start = pestle_sort_within(s, op(s, PESTLE_OP_MINIMUM, start, length));
  pk_t middle = op(s, PESTLE_OP_MINIMUM, add(s, start, width), length);
  pk_t last = op(s, PESTLE_OP_MINIMUM, add(s, start, pair), length);
  last = pestle_sort_within(s, last);
  pestle_sort_runs_t two = {.left = start,
                            .left_end = middle,
                            .right = middle,
                            .right_end = last,
                            .begin = start,
                            .end = last};
  PESTLE_TRY(pestle_sort_merge(s, from, to, &two));
  end(s);
  if (dense) end(s);
  return NULL;
}

// --- Ranks ---

static void add_rank(pestle_sort_t* s, pk_t condition) {
  pk_t rank = pestle_direct_get(s->d, s->rank);
  pk_t one = pestle_kir_cast(s->d->k, condition, PESTLE_I32);
  pestle_direct_set(s->d, s->rank, add(s, rank, one));
}

// Element |j| of |row|, the same in all lanes.
static void load_one(pestle_sort_t* s, const pestle_sort_place_t* row, pk_t j,
                     pk_t* out) {
  for (uint32_t c = 0; c < s->compared; ++c) {
    pk_t y = pestle_sort_load(s, row, c, 1, j, PESTLE_KIR_NONE);
    out[c] = pestle_kir_splat(s->d->k, y, s->lanes);
  }
}

// Those of the block [start, last) that go before the elements |x| of |row|, one
// a lane from number |v| on: of those in front all that |x| does not go before,
// of those behind all that go before |x|, and both among the lanes.
static pestle_status_t count_before(pestle_sort_t* s,
                                    const pestle_sort_place_t* row,
                                    const pk_t* x, pk_t start, pk_t v,
                                    pk_t last) {
  pestle_direct_t* d = s->d;
  pk_t y[PESTLE_SORT_MAX_COLUMNS], first, other;
  pk_t ahead = add(s, v, pestle_direct_index(d, s->lanes));
  ahead = op(s, PESTLE_OP_MINIMUM, ahead, last);
  pestle_direct_set(d, s->rank, pestle_kir_int(d->k, PESTLE_I32, s->lanes, 0));
  load_one(s, row, loop(s, "j", start, v, 1), y);
  PESTLE_TRY(goes_before(s, x, y, s->lanes, &first));
  add_rank(s, negate(s, first));
  end(s);
  pk_t j = loop(s, "j", v, ahead, 1);
  load_one(s, row, j, y);
  pk_t lane = op(s, PESTLE_OP_SUBTRACT, j, v);
  lane =
      pestle_kir_splat(d->k, pestle_kir_cast(d->k, lane, PESTLE_I32), s->lanes);
  pk_t lanes = pestle_kir_iota(d->k, PESTLE_I32, s->lanes);
  PESTLE_TRY(goes_before(s, x, y, s->lanes, &first));
  PESTLE_TRY(goes_before(s, y, x, s->lanes, &other));
  first =
      op(s, PESTLE_OP_AND, negate(s, first), op(s, PESTLE_OP_LT, lane, lanes));
  other = op(s, PESTLE_OP_AND, other, op(s, PESTLE_OP_GT, lane, lanes));
  add_rank(s, op(s, PESTLE_OP_OR, first, other));
  end(s);
  load_one(s, row, loop(s, "j", ahead, last, 1), y);
  PESTLE_TRY(goes_before(s, y, x, s->lanes, &first));
  add_rank(s, first);
  end(s);
  return NULL;
}

// Notes that one of |count| elements has |rank|.
static void see_rank(pestle_sort_t* s, pk_t rank) {
  pk_t bit =
      op(s, PESTLE_OP_SHIFT_LEFT, pestle_kir_int(s->d->k, PESTLE_I64, 1, 1),
         pestle_kir_cast(s->d->k, rank, PESTLE_I64));
  pk_t seen = pestle_direct_get(s->d, s->seen);
  pestle_direct_set(s->d, s->seen, op(s, PESTLE_OP_OR, seen, bit));
}

// The blocks are no runs unless those seen are 0 .. |count| - 1.
static void check_ranks(pestle_sort_t* s, pk_t count) {
  pestle_direct_t* d = s->d;
  pk_t one = pestle_kir_int(d->k, PESTLE_I64, 1, 1);
  pk_t all = op(s, PESTLE_OP_SHIFT_LEFT, one,
                pestle_kir_cast(d->k, count, PESTLE_I64));
  all = op(s, PESTLE_OP_SUBTRACT, all, one);
  pk_t fine = op(s, PESTLE_OP_EQ, pestle_direct_get(d, s->seen), all);
  pk_t before = pestle_direct_get(d, s->ordered);
  pk_t none = pestle_direct_index(d, 0);
  pestle_direct_set(d, s->ordered, pestle_direct_select(d, fine, before, none));
}

// The elements [start, last) of |from| to the places of their ranks in |to|.
static void scatter(pestle_sort_t* s, const pestle_sort_place_t* from,
                    const pestle_sort_place_t* to, pk_t start, pk_t last) {
  pestle_direct_t* d = s->d;
  if (!s->is_order)
    pestle_direct_set(d, s->seen, pestle_kir_int(d->k, PESTLE_I64, 1, 0));
  pk_t count = op(s, PESTLE_OP_SUBTRACT, last, start);
  count = pestle_direct_clamp(d, count, 0, pestle_sort_block(s));
  pk_t i = loop(s, "i", pestle_direct_index(d, 0), count, 1);
  pk_t rank = pestle_direct_load(d, s->ranks, i);
  if (!s->is_order) see_rank(s, rank);
  pk_t at = pestle_direct_clamp(d, add(s, start, i), 0, s->length - 1);
  pk_t place = add(s, start, pestle_kir_cast(d->k, rank, PESTLE_INDEX));
  place =
      pestle_sort_at(s, to, pestle_direct_clamp(d, place, 0, s->length - 1));
  for (uint32_t c = 0; c < s->count; ++c) {
    pk_t x = pestle_sort_load(s, from, c, 1, at, PESTLE_KIR_NONE);
    pestle_direct_store(d, to->buffers[c], place, x);
  }
  end(s);
  if (!s->is_order) check_ranks(s, count);
}

// Blocks of |from| become runs in |to|, unless |ordered| is 0 then.
static pestle_status_t rank_pass(pestle_sort_t* s,
                                 const pestle_sort_place_t* from,
                                 const pestle_sort_place_t* to, pk_t length) {
  pestle_direct_t* d = s->d;
  int64_t block = pestle_sort_block(s);
  pk_t x[PESTLE_SORT_MAX_COLUMNS];
  if (!s->is_order) pestle_direct_set(d, s->ordered, pestle_direct_index(d, 1));
  pk_t start =
      loop(s, "block", pestle_direct_index(d, 0), length, (int32_t)block);
  pk_t last = add(s, start, pestle_direct_index(d, block));
  last = pestle_sort_within(s, op(s, PESTLE_OP_MINIMUM, last, length));
  pk_t v = loop(s, "v", start, last, (int32_t)s->lanes);
  pk_t mask = pestle_kir_mask(d->k, v, last, s->lanes);
  for (uint32_t c = 0; c < s->compared; ++c)
    x[c] = pestle_sort_load(s, from, c, s->lanes, v, mask);
  PESTLE_TRY(count_before(s, from, x, start, v, last));
  pk_t at = pestle_direct_clamp(d, op(s, PESTLE_OP_SUBTRACT, v, start), 0,
                                block - s->lanes);
  pestle_kir_store(d->k, s->ranks, at, pestle_direct_get(d, s->rank),
                   PESTLE_KIR_NONE, 0);
  end(s);
  scatter(s, from, to, start, last);
  end(s);
  return NULL;
}

// --- Rows ---

// How often runs become four times as long before they are all of |length|.
static int64_t count_steps(int64_t length) {
  int64_t steps = 0;
  while (steps < 31 && INT64_C(1) << 2 * steps < length)
    ++steps;
  return steps;
}

pestle_status_t pestle_sort_row(pestle_sort_t* s,
                                const pestle_sort_place_t* row,
                                const pestle_sort_place_t* work, pk_t length) {
  pestle_direct_t* d = s->d;
  pk_t block = pestle_direct_index(d, pestle_sort_block(s));
  pk_t one = pestle_direct_index(d, 1);
  PESTLE_TRY(rank_pass(s, row, work, length));
  if (!s->is_order) {
    pk_t ordered = pestle_direct_get(d, s->ordered);
    pestle_kir_if(d->k, op(s, PESTLE_OP_EQ, ordered, one));
  }
  PESTLE_TRY(merge_pass(s, work, row, block, length));
  pestle_direct_set(d, s->width, add(s, block, block));
  if (!s->is_order) {
    pestle_kir_else(d->k);
    pestle_direct_set(d, s->width, one);
    end(s);
  }
  (void)loop(s, "p", pestle_direct_index(d, 0),
             pestle_direct_index(d, count_steps(s->length)), 1);
  pk_t width = pestle_direct_clamp(d, pestle_direct_get(d, s->width), 1,
                                   4 * (s->length + pestle_sort_block(s)));
  pestle_kir_if(d->k, op(s, PESTLE_OP_LT, width, length));
  PESTLE_TRY(merge_pass(s, row, work, width, length));
  pk_t twice = add(s, width, width);
  PESTLE_TRY(merge_pass(s, work, row, twice, length));
  pestle_direct_set(d, s->width, add(s, twice, twice));
  end(s);
  end(s);
  return NULL;
}

void pestle_sort_init(pestle_direct_t* d, pestle_sort_t* out_sort) {
  unsigned words = d->caps->vector_bytes / 4;
  const pestle_block_t* comparator = pestle_node_body(d->node, 0);
  *out_sort =
      (pestle_sort_t){.d = d, .is_order = pestle_block_is_order(comparator)};
  out_sort->lanes = words < 1 ? 1 : words > 16 ? 16 : words;
  out_sort->ranks =
      pestle_kir_add_buffer(d->k, "ranks", PESTLE_KIR_SHARED, PESTLE_I32, 1,
                            pestle_sort_block(out_sort), 0);
}

void pestle_sort_variables(pestle_sort_t* s) {
  pestle_direct_t* d = s->d;
  s->rank = pestle_direct_variable(d, "rank", PESTLE_I32, s->lanes);
  s->left = pestle_direct_variable(d, "left", PESTLE_INDEX, 1);
  s->right = pestle_direct_variable(d, "right", PESTLE_INDEX, 1);
  s->width = pestle_direct_variable(d, "width", PESTLE_INDEX, 1);
  if (s->is_order) {
    s->last_left = pestle_direct_variable(d, "last_left", PESTLE_INDEX, 1);
    s->last_right = pestle_direct_variable(d, "last_right", PESTLE_INDEX, 1);
    return;
  }
  s->seen = pestle_direct_variable(d, "seen", PESTLE_I64, 1);
  s->ordered = pestle_direct_variable(d, "ordered", PESTLE_INDEX, 1);
}

int64_t pestle_sort_axis(const pestle_node_t* node) {
  int64_t axis = PESTLE_NODE_I64(node, dimension);
  return axis < 0 ? axis + node->results[0].type->rank : axis;
}

int64_t pestle_sort_inner(const pestle_type_t* type, int64_t axis) {
  int64_t inner = 1;
  for (int64_t i = axis + 1; i < type->rank; ++i)
    inner *= type->dims[i];
  return inner;
}

// --- sort ---

bool pestle_direct_sort_is_idle(const pestle_node_t* node) {
  return node->results[0].type->dims[pestle_sort_axis(node)] < 2;
}

pestle_status_t pestle_direct_sort(pestle_direct_t* d) {
  const pestle_type_t* type = d->node->results[0].type;
  int64_t axis = pestle_sort_axis(d->node);
  int64_t inner = pestle_sort_inner(type, axis), length = type->dims[axis];
  int64_t rows = pestle_type_count(type) / length;
  uint32_t count = d->node->operand_count;
  if (count > PESTLE_SORT_MAX_COLUMNS) {
    return pestle_node_error(d->node, PESTLE_STATUS_UNSUPPORTED,
                             "%u operands; at most %d", count,
                             PESTLE_SORT_MAX_COLUMNS);
  }
  if (pestle_sort_lanes_fit(d, length, rows)) {
    pestle_sort_lanes_t how = {
        .length = length, .wanted = length, .rows = rows, .stride = inner};
    for (uint32_t i = 0; i < count; ++i)
      how.from[i] = how.to[i] = pestle_direct_result(d, i);
    return pestle_sort_lanes(d, &how);
  }
  pestle_sort_t s;
  pestle_sort_init(d, &s);
  s.count = s.compared = count;
  s.length = length;
  pestle_sort_place_t row = {.stride = inner}, work = {.stride = 1};
  for (uint32_t i = 0; i < count; ++i) {
    s.first[i] = i;
    row.buffers[i] = pestle_direct_result(d, i);
    work.buffers[i] = pestle_direct_workspace(
        d, d->node->results[i].type->dtype, rows * length);
  }
  pk_t zero = pestle_direct_index(d, 0);
  pk_t all = pestle_direct_index(d, rows);
  pk_t g = pestle_kir_for(d->k, "row", zero, all, 1, PESTLE_KIR_GROUP_X);
  pestle_sort_variables(&s);
  pk_t by = pestle_direct_index(d, inner);
  pk_t outer = pestle_direct_op(d, PESTLE_OP_DIVIDE, g, by);
  pk_t rest = pestle_direct_op(d, PESTLE_OP_REMAINDER, g, by);
  row.base = pestle_kir_madi(d->k, outer, length * inner, rest);
  work.base = pestle_kir_madi(d->k, g, length, PESTLE_KIR_NONE);
  PESTLE_TRY(pestle_sort_row(&s, &row, &work, pestle_direct_index(d, length)));
  pestle_kir_end(d->k);
  d->steps = (uint64_t)(rows * length * (2 * count_steps(length) + 1)) *
             (8 + 4 * count);
  return NULL;
}

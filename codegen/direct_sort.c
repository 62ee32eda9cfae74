// SPDX-License-Identifier: Apache-2.0
// sort: a bottom-up merge sort of each row, rows in parallel.
//
// The op UPDATES: result i holds operand i when the kernel begins, and a
// workspace of the same elements takes every second pass:
//
//   for row in group.x:
//     for p in 0 .. passes / 2:
//       merge runs of 4^p from the results into the workspaces
//       merge runs of 2 * 4^p from the workspaces into the results
//
// A pass with runs as long as the row copies it, so an even number of passes
// does no harm. A merge takes from the right run only where the comparator says
// that its head comes strictly first: the sort is stable, asked or not. All
// operands move with the elements that are compared, so that memory is walked
// in order. There is no branch in the merge: which side comes next is not to be
// foretold.
#include "base/fault.h"
#include "codegen/direct.h"

#define MAX_OPERANDS (PESTLE_KERNEL_MAX_ARGS / 2)

// A row in some buffers: element e of it is at base + e * stride.
typedef struct place_t {
  uint32_t buffers[MAX_OPERANDS];
  pk_t base;
  int64_t stride;
} place_t;

typedef struct sort_t {
  pestle_direct_t* d;
  uint32_t count;        // operands
  int64_t length;        // of a row
  uint32_t left, right;  // variables: the heads of two runs
} sort_t;

static pk_t add(sort_t* s, pk_t a, pk_t b) {
  return pestle_direct_op(s->d, PESTLE_OP_ADD, a, b);
}

static pk_t at(sort_t* s, const place_t* row, pk_t position) {
  return pestle_kir_madi(s->d->k, position, row->stride, row->base);
}

// |a| or the row's length, whichever is less.
static pk_t within(sort_t* s, pk_t a) {
  return pestle_direct_clamp(s->d, a, 0, s->length);
}

// The element that comes next goes to |position| of |to|.
static pestle_status_t merge_one(sort_t* s, const place_t* from,
                                 const place_t* to, pk_t position, pk_t middle,
                                 pk_t end) {
  pestle_direct_t* d = s->d;
  pk_t pairs[2 * MAX_OPERANDS], first;
  pk_t left = pestle_direct_get(d, s->left);
  pk_t right = pestle_direct_get(d, s->right);
  pk_t at_left = at(s, from, pestle_direct_clamp(d, left, 0, s->length - 1));
  pk_t at_right = at(s, from, pestle_direct_clamp(d, right, 0, s->length - 1));
  for (uint32_t i = 0; i < s->count; ++i) {
    pairs[2 * i] = pestle_direct_load(d, from->buffers[i], at_right);
    pairs[2 * i + 1] = pestle_direct_load(d, from->buffers[i], at_left);
  }
  PESTLE_TRY(pestle_direct_region(d, 0, pairs, &first));
  if (PESTLE_FAULT(wrong_tie_order)) {
    // Unless the left one comes strictly first.
    for (uint32_t i = 0; i < s->count; ++i) {
      pk_t other = pairs[2 * i];
      pairs[2 * i] = pairs[2 * i + 1];
      pairs[2 * i + 1] = other;
    }
    PESTLE_TRY(pestle_direct_region(d, 0, pairs, &first));
    first =
        pestle_direct_select(d, first, pestle_kir_int(d->k, PESTLE_I1, 1, 0),
                             pestle_kir_int(d->k, PESTLE_I1, 1, 1));
    for (uint32_t i = 0; i < s->count; ++i) {
      pk_t other = pairs[2 * i];
      pairs[2 * i] = pairs[2 * i + 1];
      pairs[2 * i + 1] = other;
    }
  }
  pk_t done = pestle_direct_op(d, PESTLE_OP_GE, left, middle);
  pk_t some = pestle_direct_op(d, PESTLE_OP_LT, right, end);
  pk_t takes_right = pestle_direct_op(
      d, PESTLE_OP_AND, some, pestle_direct_op(d, PESTLE_OP_OR, done, first));
  for (uint32_t i = 0; i < s->count; ++i) {
    pk_t place = at(s, to, position);
    pk_t taken =
        pestle_direct_select(d, takes_right, pairs[2 * i], pairs[2 * i + 1]);
    pestle_direct_store(d, to->buffers[i], place, taken);
  }
  pk_t step = pestle_kir_cast(d->k, takes_right, PESTLE_INDEX);
  pestle_direct_set(d, s->right, add(s, right, step));
  pk_t other =
      pestle_direct_op(d, PESTLE_OP_SUBTRACT, pestle_direct_index(d, 1), step);
  pestle_direct_set(d, s->left, add(s, left, other));
  return NULL;
}

// Runs of |width| elements of |from| become runs twice as long in |to|.
static pestle_status_t merge_pass(sort_t* s, const place_t* from,
                                  const place_t* to, pk_t width) {
  pestle_direct_t* d = s->d;
  pk_t zero = pestle_direct_index(d, 0);
  pk_t pair = add(s, width, width);
  // ceil(length / pair)
  pk_t runs = pestle_direct_op(
      d, PESTLE_OP_DIVIDE, add(s, pair, pestle_direct_index(d, s->length - 1)),
      pair);
  pk_t run = pestle_kir_for(d->k, "run", zero, runs, 1, PESTLE_KIR_SERIAL);
  pk_t start = within(s, pestle_direct_op(d, PESTLE_OP_MULTIPLY, run, pair));
  pk_t middle = within(s, add(s, start, width));
  pk_t end = within(s, add(s, start, pair));
  pestle_direct_set(d, s->left, start);
  pestle_direct_set(d, s->right, middle);
  pk_t position = pestle_kir_for(d->k, "k", start, end, 1, PESTLE_KIR_SERIAL);
  PESTLE_TRY(merge_one(s, from, to, position, middle, end));
  pestle_kir_end(d->k);
  pestle_kir_end(d->k);
  return NULL;
}

static int64_t count_passes(int64_t length) {
  int64_t passes = 0;
  while (passes < 62 && INT64_C(1) << passes < length)
    ++passes;
  return passes;
}

static pestle_status_t sort_row(sort_t* s, const place_t* rows,
                                const place_t* work) {
  pestle_direct_t* d = s->d;
  int64_t twice = (count_passes(s->length) + 1) / 2;
  s->left = pestle_direct_variable(d, "left", PESTLE_INDEX, 1);
  s->right = pestle_direct_variable(d, "right", PESTLE_INDEX, 1);
  uint32_t width = pestle_direct_variable(d, "width", PESTLE_INDEX, 1);
  pestle_direct_set(d, width, pestle_direct_index(d, 1));
  pk_t zero = pestle_direct_index(d, 0);
  pk_t end = pestle_direct_index(d, twice);
  pestle_kir_for(d->k, "p", zero, end, 1, PESTLE_KIR_SERIAL);
  pk_t w = pestle_direct_clamp(d, pestle_direct_get(d, width), 1, s->length);
  PESTLE_TRY(merge_pass(s, rows, work, w));
  w = pestle_direct_clamp(d, add(s, w, w), 1, s->length);
  PESTLE_TRY(merge_pass(s, work, rows, w));
  pestle_direct_set(d, width, add(s, w, w));
  pestle_kir_end(d->k);
  return NULL;
}

static int64_t axis_of(const pestle_node_t* node) {
  int64_t axis = PESTLE_NODE_I64(node, dimension);
  return axis < 0 ? axis + node->results[0].type->rank : axis;
}

bool pestle_direct_sort_is_idle(const pestle_node_t* node) {
  return node->results[0].type->dims[axis_of(node)] < 2;
}

pestle_status_t pestle_direct_sort(pestle_direct_t* d) {
  const pestle_type_t* type = d->node->results[0].type;
  int64_t axis = axis_of(d->node), inner = 1;
  for (int64_t i = axis + 1; i < type->rank; ++i)
    inner *= type->dims[i];
  sort_t s = {
      .d = d, .count = d->node->operand_count, .length = type->dims[axis]};
  if (s.count > MAX_OPERANDS) {
    return pestle_node_error(d->node, PESTLE_STATUS_UNSUPPORTED,
                             "%u operands; at most %d", s.count, MAX_OPERANDS);
  }
  int64_t rows = pestle_type_count(type) / s.length;
  place_t row = {.stride = inner}, work = {.stride = 1};
  for (uint32_t i = 0; i < s.count; ++i) {
    row.buffers[i] = pestle_direct_result(d, i);
    work.buffers[i] = pestle_direct_workspace(
        d, d->node->results[i].type->dtype, rows * s.length);
  }
  pk_t zero = pestle_direct_index(d, 0);
  pk_t all = pestle_direct_index(d, rows);
  pk_t g = pestle_kir_for(d->k, "row", zero, all, 1, PESTLE_KIR_GROUP_X);
  pk_t by = pestle_direct_index(d, inner);
  pk_t outer = pestle_direct_op(d, PESTLE_OP_DIVIDE, g, by);
  pk_t rest = pestle_direct_op(d, PESTLE_OP_REMAINDER, g, by);
  row.base = pestle_kir_madi(d->k, outer, s.length * inner, rest);
  work.base = pestle_kir_madi(d->k, g, s.length, PESTLE_KIR_NONE);
  PESTLE_TRY(sort_row(&s, &row, &work));
  pestle_kir_end(d->k);
  d->steps = (uint64_t)(rows * s.length * (count_passes(s.length) + 1)) *
             (8 + 4 * s.count);
  return NULL;
}

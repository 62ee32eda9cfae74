// SPDX-License-Identifier: Apache-2.0
// select_and_scatter whose windows lie side by side, none over another, as of the
// gradient of a 2 x 2 max pool: each element is in one window at most, and so is what
// its window's choice says, elementwise.
//
//   %0 = select_and_scatter %x, %s, %i     w: the elements of a window
//          windows 2 x 2, strides 2   ->   %at = a chain of comparisons: the number of
//                                                the element that each window keeps
//                                          %0 = select (%at == number), op(%i, %s), %i
//
// The chain compares in the order in which the op does, and each of its elements with
// the one that is kept so far, so that ties and NaN choose alike.
#include <string.h>

#include "passes/simplify.h"
#include "passes/util.h"

enum { MOST_ELEMENTS = 16 };  // of a window: a comparison and two selects each

static pestle_value_t* operand(const pestle_node_t* node, size_t index) {
  return pestle_node_operand(node, index);
}

// The comparison of both arguments in their order that |block| returns, else COUNT.
static pestle_op_t compared(const pestle_block_t* block) {
  const pestle_node_t *node = block->first, *end = block->last;
  if (block->argument_count != 2 || !node || node->next != end || !end ||
      end->op != PESTLE_OP_RETURN || node->operand_count != 2 ||
      operand(end, 0) != pestle_node_result(node, 0) ||
      operand(node, 0) != block->arguments[0] ||
      operand(node, 1) != block->arguments[1]) {
    return PESTLE_OP_COUNT;
  }
  switch ((int)node->op) {
    case PESTLE_OP_GE:
    case PESTLE_OP_GT:
    case PESTLE_OP_LE:
    case PESTLE_OP_LT:
      return (pestle_op_t)node->op;
  }
  return PESTLE_OP_COUNT;
}

// The input in whole windows: each axis that windows reach along becomes two.
typedef struct tiles_t {
  pestle_i64s_t sizes;
  int64_t elements;            // of a window
  pestle_type_t inside, wide;  // what windows cover, as it lies and in windows
  int64_t places[PESTLE_MAX_RANK];  // of each axis of the source in |wide|
} tiles_t;

static bool read_tiles(const pestle_node_t* node, tiles_t* out) {
  const pestle_type_t *x = operand(node, 0)->type, *y = operand(node, 1)->type;
  pestle_i64s_t strides = PESTLE_NODE_I64S(node, window_strides);
  pestle_i64s_t padding = PESTLE_NODE_I64S(node, padding);
  out->sizes = PESTLE_NODE_I64S(node, window_dimensions);
  out->elements = 1;
  out->inside = *x;
  out->wide = pestle_type_make(x->dtype, 0, NULL);
  for (int32_t i = 0; i < x->rank; ++i) {
    int64_t size = out->sizes.data[i];
    out->elements *= size;
    out->inside.dims[i] = y->dims[i] * size;
    if (strides.data[i] != size || padding.data[2 * i] || !y->dims[i] ||
        out->inside.dims[i] > x->dims[i] || out->elements > MOST_ELEMENTS ||
        out->wide.rank + 1 + (size > 1) > PESTLE_MAX_RANK) {
      return false;
    }
    out->places[i] = out->wide.rank;
    out->wide.dims[out->wide.rank++] = y->dims[i];
    if (size > 1) out->wide.dims[out->wide.rank++] = size;
  }
  return out->elements > 1;
}

// Element |number| of each window.
static pestle_value_t* take(pestle_formula_t* f, const tiles_t* t,
                            pestle_value_t* x, const pestle_type_t* places,
                            int64_t number) {
  int64_t starts[PESTLE_MAX_RANK] = {0}, limits[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < t->wide.rank; ++i)
    limits[i] = t->wide.dims[i];
  for (int32_t i = places->rank; i-- > 0;) {
    if (t->sizes.data[i] == 1) continue;
    int64_t axis = t->places[i] + 1;
    starts[axis] = number % t->sizes.data[i];
    limits[axis] = starts[axis] + 1;
    number /= t->sizes.data[i];
  }
  return pestle_f_reshape_to(f, pestle_f_slice(f, x, starts, limits, NULL),
                             places);
}

// The number of each element in its window.
static pestle_value_t* count_elements(pestle_formula_t* f, const tiles_t* t,
                                      int32_t rank) {
  pestle_type_t type = t->wide;
  type.dtype = PESTLE_I32;
  pestle_value_t* number = NULL;
  for (int32_t i = 0; i < rank; ++i) {
    if (t->sizes.data[i] == 1) continue;
    pestle_value_t* along = pestle_f_iota(f, &type, t->places[i] + 1);
    if (number) {
      number = pestle_f_times(f, number, (double)t->sizes.data[i]);
      along = pestle_f_add(f, number, along);
    }
    number = along;
  }
  return number;
}

pestle_value_t* pestle_rule_windows_apart(pestle_formula_t* f,
                                          pestle_node_t* node) {
  tiles_t t;
  pestle_op_t keeps = compared(pestle_node_body(node, 0));
  pestle_op_t scatters = pestle_block_reduce_op(pestle_node_body(node, 1));
  if (keeps == PESTLE_OP_COUNT || scatters == PESTLE_OP_COUNT ||
      !pestle_type_is_static(operand(node, 0)->type) ||
      !pestle_type_is_static(operand(node, 1)->type) || !read_tiles(node, &t)) {
    return NULL;
  }
  const pestle_type_t* whole = operand(node, 0)->type;
  const pestle_type_t* places = operand(node, 1)->type;
  int64_t zeros[PESTLE_MAX_RANK] = {0}, high[PESTLE_MAX_RANK];
  pestle_value_t *x = operand(node, 0), *initial = operand(node, 2);
  x = pestle_f_slice(f, x, zeros, t.inside.dims, NULL);
  x = pestle_f_reshape_to(f, x, &t.wide);
  pestle_type_t numbers = *places;
  numbers.dtype = PESTLE_I32;
  pestle_value_t* best = take(f, &t, x, places, 0);
  pestle_value_t* at = pestle_f_number(f, &numbers, 0);
  for (int64_t i = 1; i < t.elements; ++i) {
    pestle_value_t* next = take(f, &t, x, places, i);
    pestle_value_t* number = pestle_f_number(f, &numbers, (double)i);
    pestle_value_t* kept = pestle_f_binary(f, keeps, best, next);
    at = pestle_f_select(f, kept, at, number);
    best = pestle_f_select(f, kept, best, next);
  }
  pestle_value_t* start = pestle_f_broadcast_to(f, initial, places, NULL);
  pestle_value_t* value = pestle_f_binary(f, scatters, start, operand(node, 1));
  value = pestle_f_broadcast_to(f, value, &t.wide, t.places);
  at = pestle_f_broadcast_to(f, at, &t.wide, t.places);
  pestle_value_t* number = count_elements(f, &t, places->rank);
  pestle_value_t* chosen = pestle_f_eq(f, at, number);
  start = pestle_f_broadcast_to(f, initial, &t.wide, NULL);
  value = pestle_f_select(f, chosen, value, start);
  value = pestle_f_reshape_to(f, value, &t.inside);
  for (int32_t i = 0; i < whole->rank; ++i)
    high[i] = whole->dims[i] - t.inside.dims[i];
  return pestle_f_pad(f, value, initial, NULL, high, NULL);
}

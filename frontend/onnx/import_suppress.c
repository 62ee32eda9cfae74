// SPDX-License-Identifier: Apache-2.0
// NonMaxSuppression: pestle.suppress chooses the boxes of each batch and class; here
// its rows of places become one list, as long as only a run tells (bounded.h).
//
//   counts   [2 0 1]     starts [0 2 2]     places [[4 7 .] [. . .] [5 . .]]
//   row of the list     0 1 2 . .
//   its pair            0 0 2 . .    the last one that starts at or before it
//   its box             4 7 5 . .    places[pair][row - start of the pair]
#include <math.h>

#include "base/mem.h"
#include "frontend/onnx/bounded.h"
#include "frontend/onnx/ops.h"

typedef struct suppress_t {
  int64_t batches, classes, boxes, pairs, most;
  pestle_value_t* limit;
} suppress_t;

// The number that input |index| holds, or |missing|, as |dtype|.
static pestle_value_t* number_of(pestle_onnx_call_t* call, size_t index,
                                 pestle_dtype_t dtype, double missing) {
  pestle_value_t* given = pestle_onnx_input(call, index);
  if (!given || !pestle_type_count(pestle_onnx_type(given))) {
    return pestle_onnx_scalar(call, dtype, missing);
  }
  return pestle_onnx_convert(call, pestle_f_reshape(&call->f, given, 0, NULL),
                             dtype);
}

static bool fits(const pestle_value_t* boxes, const pestle_value_t* scores) {
  return rank_of(boxes) == 3 && rank_of(scores) == 3 &&
         dtype_of(boxes) == PESTLE_F32 && dtype_of(scores) == PESTLE_F32 &&
         pestle_onnx_dim(boxes, 2) == 4 &&
         pestle_onnx_dim(boxes, 0) == pestle_onnx_dim(scores, 0) &&
         pestle_onnx_dim(boxes, 1) == pestle_onnx_dim(scores, 2);
}

// How many boxes of a pair may be chosen at most; s->limit may be less.
static void read_limit(pestle_onnx_call_t* call, suppress_t* s) {
  s->limit = number_of(call, 2, PESTLE_I64, 0);
  const pestle_elements_t* known =
      s->limit ? pestle_value_constant(s->limit) : NULL;
  s->most = s->boxes;
  if (!known) return;
  int64_t limit = pestle_onnx_element_i64(known, 0);
  if (limit < s->most) s->most = limit < 0 ? 0 : limit;
}

static bool read_inputs(pestle_onnx_call_t* call, suppress_t* s) {
  const pestle_value_t *boxes = call->inputs[0], *scores = call->inputs[1];
  if (!fits(boxes, scores)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its boxes must be [batches, boxes, 4] and its scores "
                     "[batches, classes, boxes], both of f32");
    return false;
  }
  s->batches = pestle_onnx_dim(boxes, 0);
  s->boxes = pestle_onnx_dim(boxes, 1);
  s->classes = pestle_onnx_dim(scores, 1);
  s->pairs = s->batches * s->classes;
  read_limit(call, s);
  if (call->f.status ||
      pestle_type_count(pestle_onnx_type(scores)) <= INT32_MAX)
    return !call->f.status;
  pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                   "it chooses among %lld scores; at most 2^31 - 1 can be "
                   "numbered",
                   (long long)pestle_type_count(pestle_onnx_type(scores)));
  return false;
}

// How many boxes there really are; NULL, with an error kept, where inputs are bounded
// along other axes.
static pestle_value_t* count_boxes(pestle_onnx_call_t* call) {
  const pestle_onnx_import_t* import = call->import;
  pestle_value_t* size = pestle_onnx_real_size(import, call->inputs[0], 1);
  for (int32_t i = 0; i < 3; ++i) {
    bool same =
        pestle_onnx_same_size(pestle_onnx_real_size(import, call->inputs[1], i),
                              i == 2 ? size : NULL) &&
        (i == 1 || !pestle_onnx_real_size(import, call->inputs[0], i));
    if (same) continue;
    return pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                            "extents that only a run tells must be those of "
                            "its boxes and their scores alike");
  }
  return pestle_onnx_size(call, call->inputs[0], 1);
}

// Places [pairs, most] and counts [pairs], i32.
static bool choose(pestle_onnx_call_t* call, const suppress_t* s,
                   pestle_value_t** out_places, pestle_value_t** out_counts) {
  pestle_value_t* operands[] = {call->inputs[0],
                                call->inputs[1],
                                number_of(call, 4, PESTLE_F32, (double)NAN),
                                number_of(call, 3, PESTLE_F32, 0),
                                s->limit,
                                count_boxes(call)};
  if (call->f.status) return false;
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64(most, s->most),
      PESTLE_SET_BOOL(centers,
                      pestle_onnx_int(call, "center_point_box", 0) != 0)};
  pestle_node_t* node =
      pestle_f_node(&call->f, &(pestle_node_spec_t){.op = PESTLE_OP_SUPPRESS,
                                                    .operands = operands,
                                                    .operand_count = 6,
                                                    .attrs = attrs,
                                                    .attr_count = 2});
  if (!node) return false;
  int64_t dims[] = {s->pairs, s->most};
  *out_places =
      pestle_f_reshape(&call->f, pestle_node_result(node, 0), 2, dims);
  *out_counts =
      pestle_f_reshape(&call->f, pestle_node_result(node, 1), 1, dims);
  return !call->f.status;
}

// The last of |starts|, which ascend, that is not above each of |rows|: by bisection.
static pestle_value_t* pair_of(pestle_onnx_call_t* call, pestle_value_t* starts,
                               pestle_value_t* rows) {
  pestle_formula_t* f = &call->f;
  int64_t count = pestle_onnx_dim(starts, 0), step = 1;
  while (step < count)
    step *= 2;
  pestle_value_t* at = splat_like(call, rows, 0);
  for (; step; step /= 2) {
    pestle_value_t* next = pestle_f_plus(f, at, (double)step);
    pestle_value_t* inside =
        pestle_onnx_binary_f(call, PESTLE_OP_LT, next, (double)count);
    pestle_value_t* start = pestle_onnx_take(call, starts, next, 0);
    inside = pestle_f_and(f, inside, pestle_f_le(f, start, rows));
    at = pestle_f_select(f, inside, next, at);
  }
  return at;
}

// Numbers batch, class and box of each row of the list.
static void number_rows(pestle_onnx_call_t* call, const suppress_t* s,
                        pestle_value_t* places, pestle_value_t* counts) {
  pestle_formula_t* f = &call->f;
  int64_t all = s->pairs * s->most, axis = 0;
  pestle_type_t list = {.dtype = PESTLE_I32, .rank = 1, .dims = {all}};
  pestle_value_t* ends = pestle_onnx_running_sum(call, counts, 0);
  pestle_value_t* starts = sub(call, ends, counts);
  pestle_value_t* total = pestle_onnx_convert(
      call, pestle_onnx_reduce(call, PESTLE_OP_ADD, counts, &axis, 1, false),
      PESTLE_I64);
  pestle_value_t* rows = pestle_f_iota(f, &list, 0);
  pestle_value_t* pair = pair_of(call, starts, rows);
  pestle_value_t* at = sub(call, rows, pestle_onnx_take(call, starts, pair, 0));
  at = add(call, at, pestle_f_times(f, pair, (double)s->most));
  pestle_value_t* columns[3] = {
      pestle_onnx_binary_f(call, PESTLE_OP_DIVIDE, pair, (double)s->classes),
      pestle_onnx_binary_f(call, PESTLE_OP_REMAINDER, pair, (double)s->classes),
      pestle_onnx_take(call, pestle_f_reshape(f, places, 1, &all), at, 0)};
  for (int i = 0; i < 3; ++i)
    columns[i] = pestle_f_reshape(f, columns[i], 2, (int64_t[]){all, 1});
  call->outputs[0] = pestle_onnx_convert(
      call, pestle_f_concatenate(f, columns, 3, 1), PESTLE_I64);
  pestle_onnx_set_real(call, call->outputs[0], 0, total);
  call->outputs[0] = pestle_onnx_end_real(call, call->outputs[0]);
}

void pestle_onnx_import_non_max_suppression(pestle_onnx_call_t* call) {
  suppress_t s = {0};
  pestle_value_t *places, *counts;
  if (!read_inputs(call, &s)) return;
  if (!s.most || !s.pairs) {
    pestle_type_t none = {.dtype = PESTLE_I64, .rank = 2, .dims = {0, 3}};
    call->outputs[0] = pestle_onnx_splat_int(call, &none, 0);
    return;
  }
  if (choose(call, &s, &places, &counts)) number_rows(call, &s, places, counts);
}

// SPDX-License-Identifier: Apache-2.0
// Products that sum over an axis of which only a run tells how long it is: a part of the
// axis after the other is multiplied and added, as many as begin before its end.
//
//   for i below n / 256:            y += a[:, 256 i ..] * b[256 i .., :]
//   for i below ceil(n % 256 / 64): y += a[:, m + 64 i ..] * b[m + 64 i .., :],
//                                        m = n - n % 256, 0 from n on
//
// Few elements are a short product, and whole parts need no zeros. A kernel whose sum ends at n would need what is behind it in no vector, tile or packed
// panel of any target; a part is a product as all are.
#include "base/mem.h"
#include "frontend/onnx/bounded.h"

// Elements of a part: long enough for a product to be at its speed; and of one of the
// rest, so short that what is multiplied in vain costs little.
enum { PART = 256, REST = 64 };

typedef struct sum_t {
  pestle_value_t *x[2], *size;
  int64_t axes[2];
  int64_t part, length;
  pestle_value_t* begin;  // of the parts; NULL: 0
  bool is_whole;          // parts end before |size|
  pestle_onnx_product_fn_t product;
  void* self;
} sum_t;

// |x| with 0 along |axis| where |inside|, NULL for its real extent, does not hold, and
// what is not real along other axes left out.
static pestle_value_t* clear(pestle_onnx_call_t* call, pestle_value_t* x,
                             pestle_value_t* inside) {
  return pestle_f_select(&call->f, inside, x,
                         pestle_onnx_scalar(call, dtype_of(x), 0));
}

static pestle_value_t* clear_all(pestle_onnx_call_t* call, const sum_t* s,
                                 int which) {
  pestle_value_t* x = s->x[which];
  pestle_type_t index = *pestle_onnx_type(x);
  index.dtype = PESTLE_I64;
  pestle_value_t* at = pestle_f_iota(&call->f, &index, (int32_t)s->axes[which]);
  return clear(call, x, pestle_f_lt(&call->f, at, s->size));
}

// Part |first| of an operand, from |from| on, which is before where the part would
// reach over the bound: what was in the part before is 0 then.
static pestle_value_t* take_part(pestle_onnx_call_t* call, const sum_t* s,
                                 int which, pestle_value_t* first,
                                 pestle_value_t* from) {
  pestle_value_t* x = s->x[which];
  int32_t rank = rank_of(x), axis = (int32_t)s->axes[which];
  int64_t sizes[PESTLE_MAX_RANK];
  pestle_value_t* operands[PESTLE_MAX_RANK + 1] = {x};
  for (int32_t i = 0; i < rank; ++i) {
    sizes[i] = i == axis ? s->part : pestle_onnx_dim(x, i);
    operands[i + 1] = i == axis ? from : pestle_onnx_size_number(call, 0);
  }
  pestle_attr_t attr = PESTLE_SET_I64S(slice_sizes, sizes, (size_t)rank);
  pestle_value_t* y = pestle_f_emit(
      &call->f, &(pestle_node_spec_t){.op = PESTLE_OP_DYNAMIC_SLICE,
                                      .operands = operands,
                                      .operand_count = (size_t)rank + 1,
                                      .attrs = &attr,
                                      .attr_count = 1});
  pestle_type_t index = *pestle_onnx_type(y);
  index.dtype = PESTLE_I64;
  if (!s->is_whole) {
    pestle_value_t* at = add(call, pestle_f_iota(&call->f, &index, axis), from);
    pestle_value_t* inside = pestle_f_lt(&call->f, at, s->size);
    inside = pestle_f_and(&call->f, pestle_f_ge(&call->f, at, first), inside);
    y = clear(call, y, inside);
  }
  for (int32_t i = 0; y && i < rank; ++i) {
    if (i == axis) continue;
    pestle_onnx_set_real(call, y, i, pestle_onnx_real_size(call->import, x, i));
  }
  return pestle_onnx_end_real(call, y);
}

static void add_part(pestle_onnx_call_t* call, void* self, pestle_value_t* i,
                     pestle_value_t** sum) {
  const sum_t* s = self;
  pestle_value_t* first = pestle_onnx_size_times(call, i, s->part);
  if (s->begin) first = add(call, first, s->begin);
  pestle_value_t* from = pestle_f_minimum(
      &call->f, first, pestle_onnx_size_number(call, s->length - s->part));
  pestle_value_t* x = take_part(call, s, 0, first, from);
  pestle_value_t* y = take_part(call, s, 1, first, from);
  sum[0] = add(call, sum[0], s->product(call, s->self, x, y));
}

pestle_value_t* pestle_onnx_sum_products(
    pestle_onnx_call_t* call, pestle_value_t* a, int64_t a_axis,
    pestle_value_t* b, int64_t b_axis, pestle_value_t* size,
    pestle_onnx_product_fn_t product, pestle_onnx_note_fn_t note, void* self) {
  sum_t s = {.x = {a, b},
             .size = size,
             .axes = {a_axis, b_axis},
             .part = PART,
             .length = pestle_onnx_dim(a, a_axis),
             .product = product,
             .self = self};
  if (!size) return product(call, self, a, b);
  // Behind the rows of a cache all is finite: zeros of one side are enough.
  if (pestle_onnx_room_of(call->import, size)) {
    const pestle_node_t* from = a->node;
    bool is_zero = from && from->op == PESTLE_OP_SOFTMAX;
    return product(call, self, is_zero ? a : clear_all(call, &s, 0), b);
  }
  pestle_value_t* whole =
      product(call, self, clear_all(call, &s, 0), clear_all(call, &s, 1));
  // Sums of narrow floats would be rounded once a part.
  pestle_dtype_t dtype = dtype_of(whole);
  bool narrow = pestle_dtype_is(dtype, PESTLE_KIND_FLOAT) &&
                pestle_dtype_size(dtype) < sizeof(float);
  if (call->f.status || narrow || s.length < 2 * PART) return whole;
  // Nobody reads |whole| but its type.
  pestle_value_t* sum = pestle_onnx_splat(call, pestle_onnx_type(whole), 0);
  if (note) note(call, self, sum, a, b);
  sum = pestle_onnx_end_real(call, sum);
  pestle_value_t* parts =
      quotient(call, size, pestle_onnx_size_number(call, PART));
  s.is_whole = true;
  pestle_onnx_for_below(call, parts, &sum, 1, add_part, &s);
  s.is_whole = false;
  s.part = REST;
  s.begin = pestle_onnx_size_times(call, parts, PART);
  pestle_value_t* rest = pestle_f_subtract(&call->f, size, s.begin);
  rest =
      quotient(call, add(call, rest, pestle_onnx_size_number(call, REST - 1)),
               pestle_onnx_size_number(call, REST));
  pestle_onnx_for_below(call, rest, &sum, 1, add_part, &s);
  return sum;
}

// SPDX-License-Identifier: Apache-2.0
// TopK: a stable sort with the positions beside, and its beginning.
#include <math.h>

#include "base/mem.h"
#include "frontend/onnx/bounded.h"
#include "frontend/onnx/ops.h"

static pestle_value_t* scalar_op(pestle_onnx_call_t* call, pestle_builder_t* b,
                                 pestle_op_t op, pestle_value_t* x,
                                 pestle_value_t* y) {
  pestle_node_t* node;
  if (call->f.status) return NULL;
  pestle_node_spec_t spec = {.op = op,
                             .operands = (pestle_value_t*[]){x, y},
                             .operand_count = y ? 2 : 1};
  if (pestle_onnx_keep(call, pestle_node_create(b, &spec, &node))) return NULL;
  return pestle_node_result(node, 0);
}

// a > b, or a < b; NaN counts as the largest number, as numpy has it.
static pestle_value_t* comes_first(pestle_onnx_call_t* call,
                                   pestle_builder_t* b, bool largest,
                                   pestle_value_t* x, pestle_value_t* y) {
  pestle_value_t* first =
      scalar_op(call, b, largest ? PESTLE_OP_GT : PESTLE_OP_LT, x, y);
  if (!pestle_dtype_is(x->type->dtype, PESTLE_KIND_FLOAT)) return first;
  pestle_value_t* nan =
      scalar_op(call, b, PESTLE_OP_IS_NAN, largest ? x : y, NULL);
  pestle_value_t* number =
      scalar_op(call, b, PESTLE_OP_EQ, largest ? y : x, largest ? y : x);
  nan = scalar_op(call, b, PESTLE_OP_AND, nan, number);
  return scalar_op(call, b, PESTLE_OP_OR, first, nan);
}

static pestle_region_t* comparator(pestle_onnx_call_t* call, bool largest,
                                   pestle_dtype_t dtype) {
  pestle_module_t* module = call->import->module;
  pestle_type_t x = {.dtype = dtype}, at = {.dtype = PESTLE_I32};
  pestle_region_t* region;
  pestle_block_t* block;
  if (pestle_onnx_keep(
          call, pestle_region_create(module, (pestle_type_t[]){x, x, at, at}, 4,
                                     &region, &block))) {
    return NULL;
  }
  pestle_builder_t b = {
      .module = module, .block = block, .loc = call->f.builder.loc};
  pestle_value_t* first =
      comes_first(call, &b, largest, pestle_block_argument(block, 0),
                  pestle_block_argument(block, 1));
  if (!first || pestle_onnx_keep(call, pestle_op_return(&b, &first, 1, NULL))) {
    return NULL;
  }
  return region;
}

bool pestle_onnx_sort(pestle_onnx_call_t* call, bool largest, int64_t axis,
                      pestle_value_t** x, pestle_value_t** at) {
  pestle_value_t* operands[] = {*x, *at};
  pestle_region_t* region =
      *x && *at ? comparator(call, largest, dtype_of(*x)) : NULL;
  if (!region) return false;
  pestle_attr_t attrs[] = {PESTLE_SET_I64(dimension, axis),
                           {.name = PESTLE_ATTR_is_stable,
                            .kind = PESTLE_ATTR_KIND_BOOL,
                            .as.b = true}};
  pestle_node_spec_t spec = {.op = PESTLE_OP_SORT,
                             .operands = operands,
                             .operand_count = 2,
                             .attrs = attrs,
                             .attr_count = 2,
                             .regions = &region,
                             .region_count = 1};
  pestle_node_t* node = pestle_f_node(&call->f, &spec);
  if (!node) return false;
  *x = pestle_node_result(node, 0);
  *at = pestle_node_result(node, 1);
  return true;
}

// How many are wanted: an attribute before opset 10, then an input, of which
// |*size| may be what only a run tells.
static int64_t read_k(pestle_onnx_call_t* call, int64_t extent,
                      pestle_value_t** size) {
  int64_t k = -1;
  pestle_onnx_extent_t given;
  *size = NULL;
  if (call->opset >= 10 && pestle_onnx_extent(call, 1, &given)) {
    *size = given.size;
    k = given.dim < extent ? given.dim : extent;
  } else if (call->opset < 10) {
    k = pestle_onnx_int(call, "k", -1);
  } else {
    pestle_i64s_t list = pestle_onnx_input_ints(call, 1, "k");
    if (list.count == 1) {
      k = list.data[0];
    } else {
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                       "its k has %zu elements, but must be one number",
                       list.count);
    }
  }
  if (!call->f.status && (k < 0 || k > extent)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its k is %lld, its axis has %lld elements", (long long)k,
                     (long long)extent);
  }
  return k;
}

// What comes last of all, behind equals that are real: the order is stable.
static pestle_value_t* last_one(pestle_onnx_call_t* call, pestle_dtype_t dtype,
                                bool largest) {
  pestle_type_t scalar = {.dtype = dtype};
  if (largest) return pestle_onnx_lowest(call, &scalar);
  if (!pestle_dtype_is(dtype, PESTLE_KIND_FLOAT))
    return pestle_onnx_highest(call, &scalar);
  return pestle_onnx_scalar(call, dtype, (double)NAN);
}

// Of an axis whose extent only a run tells there are at most |k|.
static void top_real(pestle_onnx_call_t* call, pestle_value_t* y, int64_t axis,
                     int64_t k, pestle_value_t* wanted) {
  const pestle_value_t* x = call->inputs[0];
  for (int32_t i = 0; i < rank_of(x); ++i) {
    pestle_value_t* size = pestle_onnx_real_size(call->import, x, i);
    if (size && i == axis && k < pestle_onnx_dim(x, i)) {
      size = pestle_f_minimum(&call->f, size, pestle_onnx_size_number(call, k));
    }
    if (i == axis && wanted) {
      size = size ? pestle_f_minimum(&call->f, size, wanted) : wanted;
    }
    pestle_onnx_set_real(call, y, i, size);
  }
}

static void import_top_k(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  int64_t axis =
      pestle_onnx_axis(call, pestle_onnx_int(call, "axis", -1), rank_of(x));
  bool largest = pestle_onnx_int(call, "largest", 1) != 0;
  int64_t extent = pestle_onnx_dim(x, axis);
  pestle_value_t* wanted;
  int64_t k = read_k(call, extent, &wanted);
  if (call->f.status) return;
  if (extent > INT32_MAX) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "axis %lld has %lld elements; at most 2^31 - 1 can be "
                     "numbered",
                     (long long)axis, (long long)extent);
    return;
  }
  pestle_type_t positions = *pestle_onnx_type(x);
  positions.dtype = PESTLE_I32;
  if (pestle_onnx_real_size(call->import, x, axis)) {
    x = pestle_onnx_fill_unreal(call, x, UINT32_C(1) << axis,
                                last_one(call, dtype_of(x), largest));
  }
  pestle_value_t* y[] = {x, pestle_f_iota(&call->f, &positions, axis)};
  if (!pestle_onnx_sort(call, largest, axis, &y[0], &y[1])) return;
  for (size_t i = 0; i < call->output_count; ++i) {
    y[i] = pestle_onnx_slice_axis(call, y[i], axis, 0, k, 1);
    call->outputs[i] = i ? pestle_onnx_convert(call, y[i], PESTLE_I64) : y[i];
    top_real(call, call->outputs[i], axis, k, wanted);
  }
}

void pestle_onnx_import_top_k(pestle_onnx_call_t* call) {
  pestle_onnx_by_size(call, import_top_k);
}

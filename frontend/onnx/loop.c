// SPDX-License-Identifier: Apache-2.0
// Loops of a known number of trips, and the rows that they read and write.
#include "frontend/onnx/emit.h"

static pestle_value_t* index_scalar(pestle_onnx_call_t* call, int64_t value) {
  pestle_type_t type = {.dtype = PESTLE_I64};
  return pestle_onnx_splat_int(call, &type, value);
}

// --- Rows ---

// The operands of a dynamic slice or update at row |i| behind |given| others.
static size_t row_operands(pestle_onnx_call_t* call, pestle_value_t* i,
                           int32_t rank, pestle_value_t** operands,
                           size_t given) {
  operands[given++] = i;
  for (int32_t k = 1; k < rank; ++k)
    operands[given++] = index_scalar(call, 0);
  return given;
}

pestle_value_t* pestle_onnx_row(pestle_onnx_call_t* call, pestle_value_t* x,
                                pestle_value_t* i) {
  if (!x || !i) return NULL;
  int32_t rank = x->type->rank;
  if (rank < 1) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "a scalar has no rows");
  }
  const int64_t* rest = x->type->dims + 1;
  const pestle_elements_t* known = pestle_value_constant(i);
  if (known) {
    int64_t at = pestle_onnx_element_i64(known, 0);
    return pestle_f_reshape(&call->f,
                            pestle_onnx_slice_axis(call, x, 0, at, at + 1, 1),
                            rank - 1, rest);
  }
  int64_t sizes[PESTLE_MAX_RANK];
  for (int32_t k = 0; k < rank; ++k)
    sizes[k] = k ? x->type->dims[k] : 1;
  pestle_value_t* operands[PESTLE_MAX_RANK + 1] = {x};
  pestle_attr_t attr = PESTLE_SET_I64S(slice_sizes, sizes, (size_t)rank);
  pestle_node_spec_t spec = {
      .op = PESTLE_OP_DYNAMIC_SLICE,
      .operands = operands,
      .operand_count = row_operands(call, i, rank, operands, 1),
      .attrs = &attr,
      .attr_count = 1};
  return pestle_f_reshape(&call->f, pestle_f_emit(&call->f, &spec), rank - 1,
                          rest);
}

pestle_value_t* pestle_onnx_store_row(pestle_onnx_call_t* call,
                                      pestle_value_t* y, pestle_value_t* row,
                                      pestle_value_t* i) {
  if (!y || !row || !i) return NULL;
  int32_t rank = row->type->rank + 1;
  int64_t dims[PESTLE_MAX_RANK + 1] = {1};
  for (int32_t k = 1; k < rank; ++k)
    dims[k] = row->type->dims[k - 1];
  pestle_value_t* wide = pestle_f_reshape(&call->f, row, rank, dims);
  if (!wide) return NULL;
  // The only row is all of it.
  if (pestle_type_equal(wide->type, y->type)) return wide;
  pestle_value_t* operands[PESTLE_MAX_RANK + 2] = {y, wide};
  pestle_node_spec_t spec = {
      .op = PESTLE_OP_DYNAMIC_UPDATE_SLICE,
      .operands = operands,
      .operand_count = row_operands(call, i, rank, operands, 2)};
  return pestle_f_emit(&call->f, &spec);
}

// --- Regions ---

pestle_region_t* pestle_onnx_enter_region(pestle_onnx_call_t* call,
                                          const pestle_type_t* types,
                                          size_t count) {
  pestle_module_t* module = call->import->module;
  pestle_region_t* region = NULL;
  pestle_block_t* block = NULL;
  if (call->f.status ||
      pestle_onnx_keep(
          call, pestle_region_create(module, types, count, &region, &block))) {
    return NULL;
  }
  call->f.builder.block = block;
  call->f.builder.before = NULL;
  return region;
}

bool pestle_onnx_finish_region(pestle_onnx_call_t* call,
                               pestle_value_t** values, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!values[i]) return false;
  }
  return !call->f.status &&
         !pestle_onnx_keep(
             call, pestle_op_return(&call->f.builder, values, count, NULL));
}

// --- The loop ---

typedef struct loop_t {
  int64_t trips;
  pestle_value_t* limit;  // instead: i64 of rank 0, or NULL
  bool asks;              // the last value says whether it goes on
  size_t count;  // of values, and of types but for the counter in front
  pestle_type_t* types;
  pestle_value_t** values;
  pestle_onnx_body_fn_t body;
  void* self;
} loop_t;

static pestle_region_t* condition(pestle_onnx_call_t* call,
                                  const loop_t* loop) {
  pestle_builder_t outer = call->f.builder;
  pestle_region_t* region =
      pestle_onnx_enter_region(call, loop->types, loop->count + 1);
  if (region) {
    pestle_value_t* goes_on = pestle_f_lt(
        &call->f, pestle_block_argument(call->f.builder.block, 0),
        loop->limit ? loop->limit : index_scalar(call, loop->trips));
    if (loop->asks) {
      pestle_value_t* asked =
          pestle_block_argument(call->f.builder.block, loop->count);
      goes_on = pestle_f_and(&call->f, goes_on, asked);
    }
    if (!pestle_onnx_finish_region(call, &goes_on, 1)) region = NULL;
  }
  call->f.builder = outer;
  return region;
}

// Whether the body has kept the types that it was given.
static bool keeps_types(pestle_onnx_call_t* call, const loop_t* loop,
                        pestle_value_t* const* next) {
  for (size_t i = 0; i < loop->count; ++i) {
    if (!next[i]) return false;
    if (pestle_type_equal(next[i]->type, &loop->types[i + 1])) continue;
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "its loop changes the type of what it carries in place "
                     "%zu",
                     i);
    return false;
  }
  return true;
}

static pestle_region_t* loop_body(pestle_onnx_call_t* call,
                                  const loop_t* loop) {
  size_t bytes = (loop->count + 1) * sizeof(pestle_value_t*);
  pestle_value_t** next = pestle_onnx_scratch(call, bytes);
  pestle_builder_t outer = call->f.builder;
  pestle_region_t* region =
      pestle_onnx_enter_region(call, loop->types, loop->count + 1);
  if (region && next) {
    pestle_value_t* i = pestle_block_argument(call->f.builder.block, 0);
    for (size_t k = 0; k < loop->count; ++k)
      next[k + 1] = pestle_block_argument(call->f.builder.block, k + 1);
    loop->body(call, loop->self, i, next + 1);
    next[0] = add(call, i, index_scalar(call, 1));
    if (!keeps_types(call, loop, next + 1) ||
        !pestle_onnx_finish_region(call, next, loop->count + 1)) {
      region = NULL;
    }
  }
  call->f.builder = outer;
  return region;
}

static void emit_while(pestle_onnx_call_t* call, const loop_t* loop) {
  size_t count = loop->count + 1;
  pestle_value_t** operands =
      pestle_onnx_scratch(call, count * sizeof(pestle_value_t*));
  if (!operands) return;
  operands[0] = index_scalar(call, 0);
  for (size_t i = 1; i < count; ++i)
    operands[i] = loop->values[i - 1];
  for (size_t i = 0; i < count; ++i)
    loop->types[i] = *pestle_onnx_type(operands[i]);
  pestle_region_t* regions[2];
  regions[0] = condition(call, loop);
  regions[1] = regions[0] ? loop_body(call, loop) : NULL;
  if (!regions[1]) return;
  pestle_node_spec_t spec = {.op = PESTLE_OP_WHILE,
                             .operands = operands,
                             .operand_count = count,
                             .regions = regions,
                             .region_count = 2};
  pestle_node_t* node = pestle_f_node(&call->f, &spec);
  for (size_t i = 1; node && i < count; ++i)
    loop->values[i - 1] = pestle_node_result(node, i);
}

static void run_loop(pestle_onnx_call_t* call, loop_t loop,
                     pestle_value_t** values, size_t count,
                     pestle_onnx_body_fn_t body, void* self) {
  loop.count = count;
  loop.values = values;
  loop.body = body;
  loop.self = self;
  loop.types = pestle_onnx_scratch(call, (count + 1) * sizeof(pestle_type_t));
  if (loop.types) emit_while(call, &loop);
}

void pestle_onnx_for(pestle_onnx_call_t* call, int64_t trips,
                     pestle_value_t** values, size_t count,
                     pestle_onnx_body_fn_t body, void* self) {
  if (call->f.status || trips <= 0) return;
  if (trips == 1) {
    body(call, self, index_scalar(call, 0), values);
    return;
  }
  run_loop(call, (loop_t){.trips = trips}, values, count, body, self);
}

void pestle_onnx_for_while(pestle_onnx_call_t* call, int64_t trips,
                           pestle_value_t** values, size_t count,
                           pestle_onnx_body_fn_t body, void* self) {
  if (call->f.status || trips <= 0) return;
  run_loop(call, (loop_t){.trips = trips, .asks = true}, values, count, body,
           self);
}

void pestle_onnx_for_below(pestle_onnx_call_t* call, pestle_value_t* limit,
                           pestle_value_t** values, size_t count,
                           pestle_onnx_body_fn_t body, void* self) {
  if (call->f.status || !limit) return;
  run_loop(call, (loop_t){.limit = limit}, values, count, body, self);
}

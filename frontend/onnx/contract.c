// SPDX-License-Identifier: Apache-2.0
// Reductions, windows and matrix products.
#include "frontend/onnx/emit.h"

// --- Reductions ---

// The identity of |op|, of rank 0.
static pestle_value_t* identity(pestle_onnx_call_t* call, pestle_op_t op,
                                pestle_dtype_t dtype) {
  pestle_type_t type = {.dtype = dtype};
  if (op == PESTLE_OP_MULTIPLY || op == PESTLE_OP_AND) {
    return pestle_onnx_splat_int(call, &type, 1);
  }
  if (op == PESTLE_OP_MAXIMUM) return pestle_onnx_lowest(call, &type);
  if (op == PESTLE_OP_MINIMUM) return pestle_onnx_highest(call, &type);
  return pestle_onnx_splat_int(call, &type, 0);
}

pestle_value_t* pestle_onnx_reduce(pestle_onnx_call_t* call, pestle_op_t op,
                                   pestle_value_t* a, const int64_t* axes,
                                   size_t count, bool keep_dims) {
  if (!a) return NULL;
  int64_t sorted[PESTLE_MAX_RANK], dims[PESTLE_MAX_RANK];
  size_t n = 0;
  for (int32_t i = 0; i < a->type->rank; ++i) {
    bool reduced = false;
    for (size_t j = 0; j < count; ++j)
      reduced |= axes[j] == i;
    dims[i] = reduced ? 1 : a->type->dims[i];
    if (reduced) sorted[n++] = i;
  }
  pestle_value_t* result = a;
  if (n) {
    result = pestle_f_reduce_from(&call->f, op, a, (pestle_i64s_t){sorted, n},
                                  identity(call, op, a->type->dtype));
  }
  return keep_dims ? pestle_f_reshape(&call->f, result, a->type->rank, dims)
                   : result;
}

pestle_value_t* pestle_onnx_reduce_window(pestle_onnx_call_t* call,
                                          pestle_op_t op, pestle_value_t* a,
                                          const pestle_windows_t* windows) {
  if (!a) return NULL;
  pestle_value_t* initial = identity(call, op, a->type->dtype);
  return pestle_f_reduce_windows(&call->f, op, a, initial, windows);
}

pestle_value_t* pestle_onnx_softmax(pestle_onnx_call_t* call, pestle_op_t op,
                                    pestle_value_t* a, int64_t axis) {
  pestle_attr_t attr = PESTLE_SET_I64S(dimensions, &axis, 1);
  return pestle_f_make(&call->f, op, &a, 1, &attr, 1, NULL);
}

// --- Products ---

static bool contains(pestle_i64s_t list, int64_t value) {
  for (size_t i = 0; i < list.count; ++i) {
    if (list.data[i] == value) return true;
  }
  return false;
}

static bool add_free(pestle_type_t* type, const pestle_type_t* from,
                     pestle_i64s_t batch, pestle_i64s_t contract) {
  for (int32_t i = 0; i < from->rank; ++i) {
    if (contains(batch, i) || contains(contract, i)) continue;
    if (type->rank == PESTLE_MAX_RANK) return false;
    type->dims[type->rank++] = from->dims[i];
  }
  return true;
}

pestle_value_t* pestle_onnx_dot(pestle_onnx_call_t* call, pestle_value_t* a,
                                pestle_value_t* b, pestle_i64s_t a_batch,
                                pestle_i64s_t b_batch, pestle_i64s_t a_contract,
                                pestle_i64s_t b_contract,
                                pestle_dtype_t dtype) {
  if (!a || !b) return NULL;
  pestle_type_t type = {.dtype = dtype};
  for (size_t i = 0; i < a_batch.count; ++i) {
    type.dims[type.rank++] = a->type->dims[a_batch.data[i]];
  }
  if (!add_free(&type, a->type, a_batch, a_contract) ||
      !add_free(&type, b->type, b_batch, b_contract)) {
    return pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                            "the product has more than %d axes",
                            PESTLE_MAX_RANK);
  }
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64S(lhs_batching_dimensions, a_batch.data, a_batch.count),
      PESTLE_SET_I64S(rhs_batching_dimensions, b_batch.data, b_batch.count),
      PESTLE_SET_I64S(lhs_contracting_dimensions, a_contract.data,
                      a_contract.count),
      PESTLE_SET_I64S(rhs_contracting_dimensions, b_contract.data,
                      b_contract.count),
  };
  return pestle_f_make(&call->f, PESTLE_OP_DOT_GENERAL,
                       (pestle_value_t*[]){a, b}, 2, attrs, 4, &type);
}

// |a| with its leading axes broadcast to |dims|, its last two kept.
static pestle_value_t* broadcast_batch(pestle_onnx_call_t* call,
                                       pestle_value_t* a,
                                       const pestle_type_t* batch) {
  if (!a) return NULL;
  int64_t dims[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < batch->rank; ++i)
    dims[i] = batch->dims[i];
  const pestle_type_t* type = a->type;
  dims[batch->rank] = type->dims[type->rank - 2];
  dims[batch->rank + 1] = type->dims[type->rank - 1];
  return pestle_onnx_broadcast(call, a, batch->rank + 2, dims);
}

// The leading axes of a matrix stack as a type.
static pestle_type_t batch_of(const pestle_type_t* type) {
  pestle_type_t batch = *type;
  batch.rank -= 2;
  return batch;
}

static pestle_value_t* batched_matmul(pestle_onnx_call_t* call,
                                      pestle_value_t* a, pestle_value_t* b,
                                      pestle_dtype_t dtype) {
  int64_t last_a = a->type->rank - 1;
  // One matrix on the right serves every row on the left, without batches.
  if (b->type->rank == 2) {
    return pestle_onnx_dot(call, a, b, (pestle_i64s_t){0}, (pestle_i64s_t){0},
                           PESTLE_I64S(last_a), PESTLE_I64S(0), dtype);
  }
  pestle_type_t batch_a = batch_of(a->type), batch_b = batch_of(b->type);
  pestle_type_t batch;
  if (!pestle_onnx_common_shape(call, &batch_a, &batch_b, &batch)) return NULL;
  a = broadcast_batch(call, a, &batch);
  b = broadcast_batch(call, b, &batch);
  int64_t axes[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < batch.rank; ++i)
    axes[i] = i;
  pestle_i64s_t list = {axes, (size_t)batch.rank};
  return pestle_onnx_dot(call, a, b, list, list, PESTLE_I64S(batch.rank + 1),
                         PESTLE_I64S(batch.rank), dtype);
}

pestle_value_t* pestle_onnx_matmul(pestle_onnx_call_t* call, pestle_value_t* a,
                                   pestle_value_t* b, pestle_dtype_t dtype) {
  if (!a || !b) return NULL;
  if (a->type->rank == 0 || b->type->rank == 0) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "a matrix product of a scalar");
  }
  bool row = a->type->rank == 1, column = b->type->rank == 1;
  if (row) {
    a = pestle_f_reshape(&call->f, a, 2,
                         (const int64_t[]){1, a->type->dims[0]});
  }
  if (column) {
    b = pestle_f_reshape(&call->f, b, 2,
                         (const int64_t[]){b->type->dims[0], 1});
  }
  if (!a || !b) return NULL;
  pestle_value_t* product = batched_matmul(call, a, b, dtype);
  if (!product || (!row && !column)) return product;
  int64_t dims[PESTLE_MAX_RANK];
  int32_t rank = 0, last = product->type->rank - 1;
  for (int32_t i = 0; i <= last; ++i) {
    if ((row && i == last - 1) || (column && i == last)) continue;
    dims[rank++] = product->type->dims[i];
  }
  return pestle_f_reshape(&call->f, product, rank, dims);
}

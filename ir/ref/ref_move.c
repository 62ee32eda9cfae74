// SPDX-License-Identifier: Apache-2.0
// Sources and ops that move whole boxes of elements: each is a strided copy.
#include <string.h>

#include "base/half.h"
#include "base/mem.h"
#include "ir/ref/ref_internal.h"

pestle_status_t pestle_ref_constant(const pestle_ref_call_t* call) {
  const pestle_elements_t* value = PESTLE_NODE_ELEMENTS(call->node);
  size_t size = pestle_dtype_size(value->type.dtype);
  size_t count = (size_t)pestle_type_count(&value->type);
  if (!count) return NULL;
  if (value->splat) {
    pestle_ref_fill(call->results[0], size, count, value->data);
  } else {
    memcpy(call->results[0], value->data, count * size);
  }
  return NULL;
}

// One element of value |index| as |dtype|.
static void make_index(pestle_dtype_t dtype, int64_t index, void* out) {
  if (pestle_dtype_is(dtype, PESTLE_KIND_COMPLEX)) {
    memset(out, 0, pestle_dtype_size(dtype));
    dtype = dtype == PESTLE_C64 ? PESTLE_F32 : PESTLE_F64;
  }
  if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) {
    double value = (double)index;
    pestle_ref_store_f64(dtype, &value, 1, out);
  } else {
    pestle_ref_store_wide(dtype, &index, 1, out);
  }
}

pestle_status_t pestle_ref_iota(const pestle_ref_call_t* call) {
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  int axis = (int)PESTLE_NODE_I64(call->node, iota_dimension);
  size_t size = pestle_dtype_size(type->dtype);
  size_t length = (size_t)type->dims[axis];
  char* line = pestle_alloc_array(call->allocator, length, size);
  if (!line) return PESTLE_OOM();
  for (size_t i = 0; i < length; ++i) {
    make_index(type->dtype, (int64_t)i, line + i * size);
  }
  int64_t to[PESTLE_MAX_RANK], from[PESTLE_MAX_RANK] = {0};
  pestle_ref_strides(type, to);
  from[axis] = (int64_t)size;
  pestle_ref_copy_strided(size, type->rank, type->dims, call->results[0], to,
                          line, from);
  pestle_dealloc(call->allocator, line, length * size);
  return NULL;
}

pestle_status_t pestle_ref_reshape(const pestle_ref_call_t* call) {
  size_t bytes = pestle_type_bytes(pestle_ref_result_type(call, 0));
  if (bytes) memcpy(call->results[0], call->operands[0], bytes);
  return NULL;
}

pestle_status_t pestle_ref_extent(const pestle_ref_call_t* call) {
  return pestle_ref_reshape(call);
}

pestle_status_t pestle_ref_broadcast_in_dim(const pestle_ref_call_t* call) {
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  const pestle_type_t* source = pestle_ref_operand_type(call, 0);
  pestle_i64s_t axes = PESTLE_NODE_I64S(call->node, broadcast_dimensions);
  int64_t own[PESTLE_MAX_RANK], to[PESTLE_MAX_RANK];
  int64_t from[PESTLE_MAX_RANK] = {0};
  pestle_ref_strides(source, own);
  pestle_ref_strides(type, to);
  for (size_t i = 0; i < axes.count; ++i) {
    if (source->dims[i] != 1) from[axes.data[i]] = own[i];
  }
  pestle_ref_copy_strided(pestle_dtype_size(type->dtype), type->rank,
                          type->dims, call->results[0], to, call->operands[0],
                          from);
  return NULL;
}

pestle_status_t pestle_ref_transpose(const pestle_ref_call_t* call) {
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  pestle_i64s_t permutation = PESTLE_NODE_I64S(call->node, permutation);
  int64_t own[PESTLE_MAX_RANK], to[PESTLE_MAX_RANK], from[PESTLE_MAX_RANK];
  pestle_ref_strides(pestle_ref_operand_type(call, 0), own);
  pestle_ref_strides(type, to);
  for (int i = 0; i < type->rank; ++i)
    from[i] = own[permutation.data[i]];
  pestle_ref_copy_strided(pestle_dtype_size(type->dtype), type->rank,
                          type->dims, call->results[0], to, call->operands[0],
                          from);
  return NULL;
}

pestle_status_t pestle_ref_slice(const pestle_ref_call_t* call) {
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  pestle_i64s_t starts = PESTLE_NODE_I64S(call->node, start_indices);
  pestle_i64s_t steps = PESTLE_NODE_I64S(call->node, strides);
  if (!pestle_type_count(type)) return NULL;
  int64_t from[PESTLE_MAX_RANK], to[PESTLE_MAX_RANK];
  const char* source = call->operands[0];
  pestle_ref_strides(pestle_ref_operand_type(call, 0), from);
  pestle_ref_strides(type, to);
  for (int i = 0; i < type->rank; ++i) {
    source += starts.data[i] * from[i];
    // An extent of 1 may have a step that no address could take.
    from[i] = type->dims[i] == 1 ? 0 : from[i] * steps.data[i];
  }
  pestle_ref_copy_strided(pestle_dtype_size(type->dtype), type->rank,
                          type->dims, call->results[0], to, source, from);
  return NULL;
}

pestle_status_t pestle_ref_reverse(const pestle_ref_call_t* call) {
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  pestle_i64s_t axes = PESTLE_NODE_I64S(call->node, dimensions);
  if (!pestle_type_count(type)) return NULL;
  int64_t from[PESTLE_MAX_RANK], to[PESTLE_MAX_RANK];
  const char* source = call->operands[0];
  pestle_ref_strides(type, from);
  pestle_ref_strides(type, to);
  for (size_t i = 0; i < axes.count; ++i) {
    int64_t axis = axes.data[i];
    source += (type->dims[axis] - 1) * from[axis];
    from[axis] = -from[axis];
  }
  pestle_ref_copy_strided(pestle_dtype_size(type->dtype), type->rank,
                          type->dims, call->results[0], to, source, from);
  return NULL;
}

// The part [*first, *first + *count) of an axis whose element i lands at
// low + i * step inside [0, limit).
static void clip_axis(int64_t extent, int64_t low, int64_t step, int64_t limit,
                      int64_t* first, int64_t* count) {
  *first = low < 0 ? -low / step + (-low % step != 0) : 0;
  int64_t end = limit <= low ? 0 : (limit - 1 - low) / step + 1;
  if (end > extent) end = extent;
  *count = end > *first ? end - *first : 0;
}

pestle_status_t pestle_ref_pad(const pestle_ref_call_t* call) {
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  const pestle_type_t* source_type = pestle_ref_operand_type(call, 0);
  pestle_i64s_t low = PESTLE_NODE_I64S(call->node, edge_padding_low);
  pestle_i64s_t inner = PESTLE_NODE_I64S(call->node, interior_padding);
  size_t size = pestle_dtype_size(type->dtype);
  size_t total = (size_t)pestle_type_count(type);
  if (!total) return NULL;
  pestle_ref_fill(call->results[0], size, total, call->operands[1]);
  int64_t from[PESTLE_MAX_RANK], to[PESTLE_MAX_RANK], box[PESTLE_MAX_RANK];
  const char* source = call->operands[0];
  char* target = call->results[0];
  pestle_ref_strides(source_type, from);
  pestle_ref_strides(type, to);
  for (int i = 0; i < type->rank; ++i) {
    int64_t first, step = inner.data[i] + 1;
    clip_axis(source_type->dims[i], low.data[i], step, type->dims[i], &first,
              &box[i]);
    if (!box[i]) return NULL;
    source += first * from[i];
    target += (low.data[i] + first * step) * to[i];
    to[i] = box[i] == 1 ? 0 : to[i] * step;
  }
  pestle_ref_copy_strided(size, type->rank, box, target, to, source, from);
  return NULL;
}

pestle_status_t pestle_ref_concatenate(const pestle_ref_call_t* call) {
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  int64_t axis = PESTLE_NODE_I64(call->node, dimension);
  int64_t from[PESTLE_MAX_RANK], to[PESTLE_MAX_RANK];
  pestle_ref_strides(type, to);
  char* target = call->results[0];
  for (uint32_t i = 0; i < call->node->operand_count; ++i) {
    const pestle_type_t* part = pestle_ref_operand_type(call, i);
    pestle_ref_strides(part, from);
    pestle_ref_copy_strided(pestle_dtype_size(type->dtype), type->rank,
                            part->dims, target, to, call->operands[i], from);
    target += part->dims[axis] * to[axis];
  }
  return NULL;
}

// SPDX-License-Identifier: Apache-2.0
// Ops whose indices are data. A start outside the operand is moved inside, so
// that the whole slice fits.
#include "ir/ref/ref_internal.h"

// Element |at| of an integer array, clamped into [0, limit].
static int64_t clamped_index(pestle_dtype_t dtype, const void* data, size_t at,
                             int64_t limit) {
  uint64_t raw;
  pestle_ref_load_wide(dtype, (const char*)data + at * pestle_dtype_size(dtype),
                       1, &raw);
  bool is_signed = pestle_dtype_is(dtype, PESTLE_KIND_SIGNED);
  if (is_signed && (int64_t)raw < 0) return 0;
  return raw > (uint64_t)limit ? limit : (int64_t)raw;
}

pestle_status_t pestle_ref_dynamic_slice(const pestle_ref_call_t* call) {
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  const pestle_type_t* source_type = pestle_ref_operand_type(call, 0);
  int64_t from[PESTLE_MAX_RANK], to[PESTLE_MAX_RANK];
  pestle_ref_strides(source_type, from);
  pestle_ref_strides(type, to);
  const char* source = call->operands[0];
  for (int i = 0; i < type->rank; ++i) {
    size_t at = (size_t)i + 1;
    source += from[i] * clamped_index(pestle_ref_operand_type(call, at)->dtype,
                                      call->operands[at], 0,
                                      source_type->dims[i] - type->dims[i]);
  }
  pestle_ref_copy_strided(pestle_dtype_size(type->dtype), type->rank,
                          type->dims, call->results[0], to, source, from);
  return NULL;
}

pestle_status_t pestle_ref_dynamic_update_slice(const pestle_ref_call_t* call) {
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  const pestle_type_t* update = pestle_ref_operand_type(call, 1);
  size_t size = pestle_dtype_size(type->dtype);
  int64_t from[PESTLE_MAX_RANK], to[PESTLE_MAX_RANK];
  pestle_ref_strides(type, to);
  pestle_ref_copy_strided(size, type->rank, type->dims, call->results[0], to,
                          call->operands[0], to);
  pestle_ref_strides(update, from);
  char* target = call->results[0];
  for (int i = 0; i < type->rank; ++i) {
    size_t at = (size_t)i + 2;
    target += to[i] * clamped_index(pestle_ref_operand_type(call, at)->dtype,
                                    call->operands[at], 0,
                                    type->dims[i] - update->dims[i]);
  }
  pestle_ref_copy_strided(size, type->rank, update->dims, target, to,
                          call->operands[1], from);
  return NULL;
}

static bool contains(pestle_i64s_t set, int64_t value) {
  for (size_t i = 0; i < set.count; ++i) {
    if (set.data[i] == value) return true;
  }
  return false;
}

// The axes of a gather, sorted out once.
typedef struct gather_t {
  const pestle_type_t *source, *starts, *result;
  int64_t source_strides[PESTLE_MAX_RANK];  // bytes
  int64_t start_strides[PESTLE_MAX_RANK];   // elements
  int64_t result_strides[PESTLE_MAX_RANK];  // bytes
  int64_t batch_dims[PESTLE_MAX_RANK];      // of the result, in order
  int64_t batch_result_strides[PESTLE_MAX_RANK];
  int64_t batch_start_strides[PESTLE_MAX_RANK];
  int batch_rank;
  int64_t slice_dims[PESTLE_MAX_RANK];  // of the operand
  int64_t slice_result_strides[PESTLE_MAX_RANK];
  int64_t slice_limits[PESTLE_MAX_RANK];  // largest start
  pestle_i64s_t start_map, batching, start_batching;
  int64_t vector_axis;
} gather_t;

// Which position of the batch index (the axes of the start indices without the
// index vector's) axis |axis| of the start indices has.
static int batch_position(const gather_t* g, int64_t axis) {
  return (int)(axis > g->vector_axis ? axis - 1 : axis);
}

static void sort_axes(gather_t* g, const pestle_node_t* node) {
  pestle_i64s_t offsets = PESTLE_NODE_I64S(node, offset_dims);
  pestle_i64s_t collapsed = PESTLE_NODE_I64S(node, collapsed_slice_dims);
  pestle_i64s_t sizes = PESTLE_NODE_I64S(node, slice_sizes);
  pestle_ref_strides(g->source, g->source_strides);
  pestle_ref_strides(g->result, g->result_strides);
  pestle_ref_strides(g->starts, g->start_strides);
  for (int i = 0; i < g->starts->rank; ++i) {
    g->start_strides[i] /= pestle_dtype_size(g->starts->dtype);
  }
  g->batch_rank = 0;
  for (int i = 0; i < g->result->rank; ++i) {
    if (contains(offsets, i)) continue;
    g->batch_dims[g->batch_rank] = g->result->dims[i];
    g->batch_result_strides[g->batch_rank++] = g->result_strides[i];
  }
  for (int i = 0; i < g->starts->rank; ++i) {
    if (i == g->vector_axis) continue;
    g->batch_start_strides[batch_position(g, i)] = g->start_strides[i];
  }
  size_t next = 0;
  for (int i = 0; i < g->source->rank; ++i) {
    g->slice_dims[i] = sizes.data[i];
    g->slice_limits[i] = g->source->dims[i] - sizes.data[i];
    bool dropped = contains(collapsed, i) || contains(g->batching, i);
    g->slice_result_strides[i] =
        dropped ? 0 : g->result_strides[offsets.data[next++]];
  }
}

// Where in the operand, in bytes, the slice for one batch index starts.
static int64_t slice_offset(const gather_t* g, const void* starts,
                            const int64_t* index) {
  int64_t offset = 0, at = 0;
  for (int i = 0; i < g->batch_rank; ++i) {
    at += index[i] * g->batch_start_strides[i];
  }
  int64_t step =
      g->vector_axis < g->starts->rank ? g->start_strides[g->vector_axis] : 0;
  for (size_t i = 0; i < g->start_map.count; ++i) {
    int64_t axis = g->start_map.data[i];
    int64_t start =
        clamped_index(g->starts->dtype, starts,
                      (size_t)(at + step * (int64_t)i), g->slice_limits[axis]);
    offset += start * g->source_strides[axis];
  }
  for (size_t i = 0; i < g->batching.count; ++i) {
    int64_t axis = g->batching.data[i];
    offset += index[batch_position(g, g->start_batching.data[i])] *
              g->source_strides[axis];
  }
  return offset;
}

pestle_status_t pestle_ref_gather(const pestle_ref_call_t* call) {
  gather_t g = {.source = pestle_ref_operand_type(call, 0),
                .starts = pestle_ref_operand_type(call, 1),
                .result = pestle_ref_result_type(call, 0),
                .start_map = PESTLE_NODE_I64S(call->node, start_index_map),
                .batching = PESTLE_NODE_I64S(call->node, operand_batching_dims),
                .start_batching =
                    PESTLE_NODE_I64S(call->node, start_indices_batching_dims),
                .vector_axis = PESTLE_NODE_I64(call->node, index_vector_dim)};
  if (!pestle_type_count(g.result)) return NULL;
  sort_axes(&g, call->node);
  int64_t index[PESTLE_MAX_RANK] = {0};
  do {
    int64_t to = 0;
    for (int i = 0; i < g.batch_rank; ++i) {
      to += index[i] * g.batch_result_strides[i];
    }
    pestle_ref_copy_strided(pestle_dtype_size(g.result->dtype), g.source->rank,
                            g.slice_dims, (char*)call->results[0] + to,
                            g.slice_result_strides,
                            (const char*)call->operands[0] +
                                slice_offset(&g, call->operands[1], index),
                            g.source_strides);
  } while (pestle_ref_next(g.batch_rank, g.batch_dims, index));
  return NULL;
}

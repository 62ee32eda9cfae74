// SPDX-License-Identifier: Apache-2.0
// Ops that move elements.
#include "frontend/onnx/emit.h"

// --- Broadcasting ---

static bool shapes_clash(pestle_onnx_call_t* call, const pestle_type_t* a,
                         const pestle_type_t* b) {
  pestle_strbuf_t text;
  pestle_strbuf_init(call->import->allocator, &text);
  pestle_type_print(a, &text);
  pestle_strbuf_append_c(&text, " and ");
  pestle_type_print(b, &text);
  pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                   "the shapes of %s cannot be broadcast to one",
                   pestle_strbuf_cstr(&text));
  pestle_strbuf_deinit(&text);
  return false;
}

bool pestle_onnx_common_shape(pestle_onnx_call_t* call, const pestle_type_t* a,
                              const pestle_type_t* b, pestle_type_t* out) {
  pestle_type_t result = {.dtype = a->dtype,
                          .rank = a->rank > b->rank ? a->rank : b->rank};
  for (int32_t i = 0; i < result.rank; ++i) {
    int32_t in_a = i - (result.rank - a->rank);
    int32_t in_b = i - (result.rank - b->rank);
    int64_t x = in_a < 0 ? 1 : a->dims[in_a], y = in_b < 0 ? 1 : b->dims[in_b];
    if (x != y && x != 1 && y != 1) return shapes_clash(call, a, b);
    result.dims[i] = x == 1 ? y : x;
  }
  *out = result;
  return true;
}

pestle_value_t* pestle_onnx_broadcast(pestle_onnx_call_t* call,
                                      pestle_value_t* a, int32_t rank,
                                      const int64_t* dims) {
  if (!a) return NULL;
  pestle_type_t type = pestle_type_make(a->type->dtype, rank, dims);
  if (pestle_type_equal(a->type, &type)) return a;
  int64_t axes[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < a->type->rank; ++i)
    axes[i] = rank - a->type->rank + i;
  return pestle_f_broadcast(&call->f, a, rank, dims,
                            (pestle_i64s_t){axes, (size_t)rank_of(a)});
}

pestle_value_t* pestle_onnx_along(pestle_onnx_call_t* call, pestle_value_t* a,
                                  const pestle_value_t* like, int64_t axis) {
  if (!a || !like) return NULL;
  if (a->type->rank != 1) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "a per-axis input has rank %d, it should be a list",
                            a->type->rank);
  }
  return pestle_f_broadcast(&call->f, a, like->type->rank, like->type->dims,
                            (pestle_i64s_t){&axis, (size_t)rank_of(a)});
}

// --- Views ---

pestle_value_t* pestle_onnx_slice_axis(pestle_onnx_call_t* call,
                                       pestle_value_t* a, int64_t axis,
                                       int64_t start, int64_t limit,
                                       int64_t stride) {
  if (!a) return NULL;
  if (axis < 0 || axis >= a->type->rank) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "an input of rank %d has no axis %lld",
                            a->type->rank, (long long)axis);
  }
  int64_t starts[PESTLE_MAX_RANK] = {0}, limits[PESTLE_MAX_RANK];
  int64_t strides[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < a->type->rank; ++i) {
    limits[i] = a->type->dims[i];
    strides[i] = 1;
  }
  starts[axis] = start;
  limits[axis] = limit;
  strides[axis] = stride;
  return pestle_f_slice(&call->f, a, starts, limits, strides);
}

// --- Indices ---

static bool is_among(const int64_t* list, size_t count, int64_t value) {
  for (size_t i = 0; i < count; ++i) {
    if (list[i] == value) return true;
  }
  return false;
}

// Of |a| without elements there is nothing to take: the result is empty too, or
// the indices, whatever they are, lie outside.
static pestle_value_t* gather_nothing(pestle_onnx_call_t* call,
                                      pestle_value_t* a,
                                      const pestle_value_t* indices,
                                      const pestle_onnx_gather_t* how) {
  int64_t dims[PESTLE_MAX_RANK], kept = 0, batch = 0, count = 1;
  int64_t rank = indices->type->rank + (int64_t)how->offset_count;
  if (how->vector < indices->type->rank) --rank;
  for (int64_t i = 0; i < rank && i < PESTLE_MAX_RANK; ++i) {
    if (is_among(how->offsets, how->offset_count, i)) {
      while (is_among(how->mapped, how->mapped_count, kept) ||
             is_among(how->batch, how->batch_count, kept)) {
        ++kept;
      }
      dims[i] = a->type->dims[kept++];
    } else {
      if (batch == how->vector) ++batch;
      dims[i] = indices->type->dims[batch++];
    }
    if (!dims[i]) count = 0;
  }
  if (!count && rank <= PESTLE_MAX_RANK) {
    return pestle_f_reshape(&call->f, a, (int32_t)rank, dims);
  }
  return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                          "the axis that is indexed has the extent 0, and no "
                          "index lies inside of it");
}

pestle_value_t* pestle_onnx_gather(pestle_onnx_call_t* call, pestle_value_t* a,
                                   pestle_value_t* indices,
                                   const pestle_onnx_gather_t* how) {
  if (!a || !indices) return NULL;
  if (!pestle_type_count(a->type)) {
    return gather_nothing(call, a, indices, how);
  }
  pestle_attr_t attrs[7];
  size_t n = 0;
  if (how->offset_count) {
    attrs[n++] = PESTLE_SET_I64S(offset_dims, how->offsets, how->offset_count);
  }
  attrs[n++] =
      PESTLE_SET_I64S(collapsed_slice_dims, how->mapped, how->mapped_count);
  if (how->batch_count) {
    attrs[n++] =
        PESTLE_SET_I64S(operand_batching_dims, how->batch, how->batch_count);
    attrs[n++] = PESTLE_SET_I64S(start_indices_batching_dims, how->batch,
                                 how->batch_count);
  }
  attrs[n++] = PESTLE_SET_I64S(start_index_map, how->mapped, how->mapped_count);
  attrs[n++] = PESTLE_SET_I64(index_vector_dim, how->vector);
  attrs[n++] = PESTLE_SET_I64S(slice_sizes, how->sizes, (size_t)a->type->rank);
  return pestle_f_make(&call->f, PESTLE_OP_GATHER,
                       (pestle_value_t*[]){a, indices}, 2, attrs, n, NULL);
}

pestle_value_t* pestle_onnx_take(pestle_onnx_call_t* call, pestle_value_t* a,
                                 pestle_value_t* indices, int64_t axis) {
  if (!a || !indices) return NULL;
  pestle_onnx_gather_t how = {
      .vector = indices->type->rank, .mapped_count = 1, .mapped = {axis}};
  for (int64_t i = 0; i < a->type->rank; ++i) {
    how.sizes[i] = i == axis ? 1 : a->type->dims[i];
    if (i == axis) continue;
    how.offsets[how.offset_count++] = i < axis ? i : i - 1 + how.vector;
  }
  return pestle_onnx_gather(call, a, indices, &how);
}

bool pestle_onnx_check_indices(pestle_onnx_call_t* call,
                               const pestle_value_t* indices, int64_t extent) {
  const pestle_elements_t* known =
      indices ? pestle_value_constant(indices) : NULL;
  int64_t count = !known         ? 0
                  : known->splat ? known->size != 0
                                 : pestle_type_count(&known->type);
  for (int64_t i = 0; i < count; ++i) {
    int64_t index = pestle_onnx_element_i64(known, (size_t)i);
    if (index >= 0 && index < extent) continue;
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "it takes place %lld of %lld", (long long)index,
                     (long long)extent);
    break;
  }
  return !call->f.status;
}

// A run of indices with one positive stride is a slice, which fuses better.
pestle_value_t* pestle_onnx_take_list(pestle_onnx_call_t* call,
                                      pestle_value_t* a, const int64_t* indices,
                                      size_t count, int64_t axis) {
  if (!a) return NULL;
  int64_t stride = count > 1 ? indices[1] - indices[0] : 1;
  bool is_run = count > 0 && stride > 0;
  for (size_t i = 1; is_run && i < count; ++i) {
    is_run = indices[i] - indices[i - 1] == stride;
  }
  if (is_run) {
    return pestle_onnx_slice_axis(call, a, axis, indices[0],
                                  indices[count - 1] + 1, stride);
  }
  return pestle_onnx_take(call, a, pestle_onnx_int_list(call, indices, count),
                          axis);
}

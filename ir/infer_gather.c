// SPDX-License-Identifier: Apache-2.0
// Type rules of ops that move elements by computed indices.
#include "base/mem.h"
#include "ir/infer.h"

// Operands from |first| on are one index of rank 0 an axis, of one integer
// type.
static pestle_status_t check_indices(const pestle_infer_t* in, size_t first) {
  size_t rank = (size_t)pestle_in_type(in, 0)->rank;
  size_t count = in->spec->operand_count - first;
  if (count != rank) {
    return PESTLE_BAD("%zu start indices for operand 0 of rank %zu", count,
                      rank);
  }
  for (size_t i = first; i < in->spec->operand_count; ++i) {
    PESTLE_TRY(pestle_need_rank(in, i, 0));
    PESTLE_TRY(pestle_need_kind(in, i, PESTLE_KIND_INT));
    PESTLE_TRY(pestle_need_same_dtype(in, first, i));
  }
  return NULL;
}

static pestle_status_t need_operands(const pestle_infer_t* in, size_t least) {
  if (in->spec->operand_count >= least) return NULL;
  return PESTLE_BAD("%zu operands are given, the op takes at least %zu",
                    in->spec->operand_count, least);
}

// 0 <= slice_sizes <= shape of operand 0.
static pestle_status_t check_sizes(const pestle_infer_t* in) {
  const pestle_type_t* x = pestle_in_type(in, 0);
  pestle_attr_name_t name = PESTLE_ATTR_slice_sizes;
  PESTLE_TRY(pestle_need_count(in, name, (size_t)x->rank));
  PESTLE_TRY(pestle_need_at_least(in, name, 0));
  for (int i = 0; i < x->rank; ++i) {
    int64_t size = pestle_in_i64s(in, name).data[i];
    if (pestle_dim_known(x->dims[i]) && size > x->dims[i]) {
      return PESTLE_BAD("slice size %lld of axis %d passes operand 0, %s",
                        (long long)size, i, pestle_type_text(x).text);
    }
  }
  return NULL;
}

pestle_status_t pestle_infer_dynamic_slice(pestle_infer_t* in) {
  PESTLE_TRY(need_operands(in, 1));
  PESTLE_TRY(check_indices(in, 1));
  PESTLE_TRY(check_sizes(in));
  pestle_type_t type = *pestle_in_type(in, 0);
  for (int i = 0; i < type.rank; ++i) {
    type.dims[i] = pestle_in_i64s(in, PESTLE_ATTR_slice_sizes).data[i];
  }
  return pestle_emit(in, &type);
}

pestle_status_t pestle_infer_dynamic_update_slice(pestle_infer_t* in) {
  PESTLE_TRY(need_operands(in, 2));
  PESTLE_TRY(check_indices(in, 2));
  const pestle_type_t* x = pestle_in_type(in, 0);
  const pestle_type_t* update = pestle_in_type(in, 1);
  PESTLE_TRY(pestle_need_same_dtype(in, 0, 1));
  PESTLE_TRY(pestle_need_rank(in, 1, x->rank));
  for (int i = 0; i < x->rank; ++i) {
    bool known =
        pestle_dim_known(x->dims[i]) && pestle_dim_known(update->dims[i]);
    if (known && update->dims[i] > x->dims[i]) {
      return PESTLE_BAD("the update %s passes axis %d of operand 0, %s",
                        pestle_type_text(update).text, i,
                        pestle_type_text(x).text);
    }
  }
  return pestle_emit(in, x);
}

// --- Gather. The comments number the constraints of the StableHLO spec. ---

// C1, C6 to C12, C18 to C21: what names the axes of the operand.
static pestle_status_t check_gather_operand(const pestle_infer_t* in) {
  const pestle_type_t* x = pestle_in_type(in, 0);
  size_t offsets = pestle_in_i64s(in, PESTLE_ATTR_offset_dims).count;
  pestle_i64s_t collapsed =
      pestle_in_i64s(in, PESTLE_ATTR_collapsed_slice_dims);
  pestle_i64s_t batching =
      pestle_in_i64s(in, PESTLE_ATTR_operand_batching_dims);
  bool dropped[PESTLE_MAX_RANK] = {false};
  bool mapped[PESTLE_MAX_RANK] = {false};
  PESTLE_TRY(
      pestle_need_axes(in, PESTLE_ATTR_collapsed_slice_dims, x->rank, dropped));
  PESTLE_TRY(pestle_need_axes(in, PESTLE_ATTR_operand_batching_dims, x->rank,
                              dropped));
  PESTLE_TRY(
      pestle_need_axes(in, PESTLE_ATTR_operand_batching_dims, x->rank, mapped));
  PESTLE_TRY(
      pestle_need_axes(in, PESTLE_ATTR_start_index_map, x->rank, mapped));
  PESTLE_TRY(pestle_need_sorted(in, PESTLE_ATTR_collapsed_slice_dims));
  PESTLE_TRY(pestle_need_sorted(in, PESTLE_ATTR_operand_batching_dims));
  if ((size_t)x->rank != offsets + collapsed.count + batching.count) {
    return PESTLE_BAD(
        "operand 0 has rank %d, but 'offset_dims', "
        "'collapsed_slice_dims' and 'operand_batching_dims' "
        "have %zu elements together",
        x->rank, offsets + collapsed.count + batching.count);
  }
  PESTLE_TRY(check_sizes(in));
  for (int i = 0; i < x->rank; ++i) {
    int64_t size = pestle_in_i64s(in, PESTLE_ATTR_slice_sizes).data[i];
    if (dropped[i] && size > 1) {
      return PESTLE_BAD(
          "slice size %lld of axis %d must be 0 or 1: the axis "
          "is collapsed or batching",
          (long long)size, i);
    }
  }
  return NULL;
}

// C2, C3, C13 to C17: what names the axes of the indices.
static pestle_status_t check_gather_indices(const pestle_infer_t* in) {
  const pestle_type_t* x = pestle_in_type(in, 0);
  const pestle_type_t* indices = pestle_in_type(in, 1);
  bool batch[PESTLE_MAX_RANK] = {false};
  PESTLE_TRY(pestle_need_kind(in, 1, PESTLE_KIND_INT));
  PESTLE_TRY(pestle_need_between(in, PESTLE_ATTR_index_vector_dim, 0,
                                 (int64_t)indices->rank + 1));
  int64_t vector = pestle_in_i64(in, PESTLE_ATTR_index_vector_dim);
  int64_t length = vector < indices->rank ? indices->dims[vector] : 1;
  size_t mapped = pestle_in_i64s(in, PESTLE_ATTR_start_index_map).count;
  if (!pestle_dims_agree((int64_t)mapped, length)) {
    return PESTLE_BAD("an index has %lld elements, 'start_index_map' has %zu",
                      (long long)length, mapped);
  }
  pestle_attr_name_t name = PESTLE_ATTR_start_indices_batching_dims;
  pestle_i64s_t of_indices = pestle_in_i64s(in, name);
  pestle_i64s_t of_operand =
      pestle_in_i64s(in, PESTLE_ATTR_operand_batching_dims);
  PESTLE_TRY(pestle_need_axes(in, name, indices->rank, batch));
  PESTLE_TRY(pestle_need_count(in, name, of_operand.count));
  if (vector < indices->rank && batch[vector]) {
    return PESTLE_BAD(
        "'start_indices_batching_dims' names "
        "'index_vector_dim', %lld",
        (long long)vector);
  }
  for (size_t i = 0; i < of_operand.count; ++i) {
    int64_t a = of_operand.data[i], b = of_indices.data[i];
    if (!pestle_dims_agree(x->dims[a], indices->dims[b])) {
      return PESTLE_BAD(
          "batching axis %lld of operand 0 has extent %lld, "
          "axis %lld of the indices %lld",
          (long long)a, (long long)x->dims[a], (long long)b,
          (long long)indices->dims[b]);
    }
  }
  return NULL;
}

static bool contains(pestle_i64s_t array, int64_t value) {
  for (size_t i = 0; i < array.count; ++i) {
    if (array.data[i] == value) return true;
  }
  return false;
}

// The next axis of operand 0 from |axis| on that is kept in the result.
static int next_kept(const pestle_infer_t* in, int axis) {
  pestle_i64s_t collapsed =
      pestle_in_i64s(in, PESTLE_ATTR_collapsed_slice_dims);
  pestle_i64s_t batching =
      pestle_in_i64s(in, PESTLE_ATTR_operand_batching_dims);
  while (contains(collapsed, axis) || contains(batching, axis))
    ++axis;
  return axis;
}

// C22: offsets go where 'offset_dims' says, the batch fills the other axes.
static void gather_shape(const pestle_infer_t* in, pestle_type_t* type) {
  const pestle_type_t* indices = pestle_in_type(in, 1);
  pestle_i64s_t offsets = pestle_in_i64s(in, PESTLE_ATTR_offset_dims);
  pestle_i64s_t sizes = pestle_in_i64s(in, PESTLE_ATTR_slice_sizes);
  int64_t vector = pestle_in_i64(in, PESTLE_ATTR_index_vector_dim);
  int kept = 0, batch = 0;
  for (int i = 0; i < type->rank; ++i) {
    if (contains(offsets, i)) {
      kept = next_kept(in, kept);
      type->dims[i] = sizes.data[kept++];
    } else {
      if (batch == vector) ++batch;
      type->dims[i] = indices->dims[batch++];
    }
  }
}

// The spec lets a collapsed axis have the slice size 0, but then a result with
// elements would be of nothing.
static pestle_status_t check_gather_source(const pestle_infer_t* in,
                                           const pestle_type_t* type) {
  pestle_i64s_t collapsed =
      pestle_in_i64s(in, PESTLE_ATTR_collapsed_slice_dims);
  pestle_i64s_t sizes = pestle_in_i64s(in, PESTLE_ATTR_slice_sizes);
  for (int i = 0; i < type->rank; ++i) {
    if (!pestle_dim_known(type->dims[i]) || !type->dims[i]) return NULL;
  }
  for (size_t i = 0; i < collapsed.count; ++i) {
    int64_t axis = collapsed.data[i];
    if (sizes.data[axis]) continue;
    return PESTLE_BAD(
        "slice size 0 of axis %lld, which is collapsed: the elements of the "
        "result, %s, would come from nowhere; it must be 1",
        (long long)axis, pestle_type_text(type).text);
  }
  return NULL;
}

pestle_status_t pestle_infer_gather(pestle_infer_t* in) {
  PESTLE_TRY(check_gather_operand(in));
  PESTLE_TRY(check_gather_indices(in));
  const pestle_type_t* indices = pestle_in_type(in, 1);
  int64_t vector = pestle_in_i64(in, PESTLE_ATTR_index_vector_dim);
  size_t offsets = pestle_in_i64s(in, PESTLE_ATTR_offset_dims).count;
  int rank = indices->rank - (vector < indices->rank) + (int)offsets;
  if (rank > PESTLE_MAX_RANK) {
    return PESTLE_BAD("the result would have rank %d: ranks are 0 to %d", rank,
                      PESTLE_MAX_RANK);
  }
  PESTLE_TRY(pestle_need_axes(in, PESTLE_ATTR_offset_dims, rank, NULL));
  PESTLE_TRY(pestle_need_sorted(in, PESTLE_ATTR_offset_dims));
  pestle_type_t type = {.dtype = pestle_in_type(in, 0)->dtype, .rank = rank};
  gather_shape(in, &type);
  PESTLE_TRY(check_gather_source(in, &type));
  return pestle_emit(in, &type);
}

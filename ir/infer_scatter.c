// SPDX-License-Identifier: Apache-2.0
// Type rules of scatter (operands: n inputs, the indices, n updates) and of
// select_and_scatter. The comments number the constraints of the StableHLO spec.
#include "base/mem.h"
#include "ir/infer.h"

static size_t inputs_of(const pestle_infer_t* in) {
  return in->spec->operand_count / 2;
}
static const pestle_type_t* indices_of(const pestle_infer_t* in) {
  return pestle_in_type(in, inputs_of(in));
}
static const pestle_type_t* updates_of(const pestle_infer_t* in) {
  return pestle_in_type(in, inputs_of(in) + 1);
}

// C1, C3, C5, C6: n inputs of one shape, n updates of another.
static pestle_status_t check_operands(const pestle_infer_t* in) {
  size_t count = in->spec->operand_count, n = count / 2;
  if (!n || count % 2 == 0) {
    return PESTLE_BAD(
        "%zu operands are given: there must be inputs, the indices and an "
        "update for each input",
        count);
  }
  PESTLE_TRY(pestle_need_kind(in, n, PESTLE_KIND_INT));
  for (size_t i = 0; i < n; ++i) {
    PESTLE_TRY(pestle_need_same_dtype(in, i, n + 1 + i));
    if (!pestle_shapes_agree(pestle_in_type(in, 0), pestle_in_type(in, i)) ||
        !pestle_shapes_agree(updates_of(in), pestle_in_type(in, n + 1 + i))) {
      return PESTLE_BAD(
          "input %zu and its update are %s and %s, those of input 0 %s and "
          "%s: shapes must be equal",
          i, pestle_type_text(pestle_in_type(in, i)).text,
          pestle_type_text(pestle_in_type(in, n + 1 + i)).text,
          pestle_type_text(pestle_in_type(in, 0)).text,
          pestle_type_text(updates_of(in)).text);
    }
  }
  return NULL;
}

// C2, C9 to C13, C19 to C21: what names the axes of the inputs. |dropped| gets
// those that windows lack.
static pestle_status_t check_input_axes(const pestle_infer_t* in,
                                        bool* dropped) {
  const pestle_type_t* x = pestle_in_type(in, 0);
  bool mapped[PESTLE_MAX_RANK] = {false};
  pestle_attr_name_t inserted = PESTLE_ATTR_inserted_window_dims;
  pestle_attr_name_t batching = PESTLE_ATTR_input_batching_dims;
  size_t windows = pestle_in_i64s(in, PESTLE_ATTR_update_window_dims).count;
  size_t others =
      pestle_in_i64s(in, inserted).count + pestle_in_i64s(in, batching).count;
  PESTLE_TRY(pestle_need_axes(in, inserted, x->rank, dropped));
  PESTLE_TRY(pestle_need_axes(in, batching, x->rank, dropped));
  PESTLE_TRY(pestle_need_axes(in, batching, x->rank, mapped));
  PESTLE_TRY(pestle_need_axes(in, PESTLE_ATTR_scatter_dims_to_operand_dims,
                              x->rank, mapped));
  PESTLE_TRY(pestle_need_sorted(in, inserted));
  PESTLE_TRY(pestle_need_sorted(in, batching));
  if ((size_t)x->rank == windows + others) return NULL;
  return PESTLE_BAD(
      "input 0 has rank %d, but 'update_window_dims', 'inserted_window_dims' "
      "and 'input_batching_dims' have %zu elements together",
      x->rank, windows + others);
}

// C14 to C18, C19, C22: what names the axes of the indices.
static pestle_status_t check_index_axes(const pestle_infer_t* in) {
  const pestle_type_t *x = pestle_in_type(in, 0), *indices = indices_of(in);
  bool batch[PESTLE_MAX_RANK] = {false};
  pestle_attr_name_t name = PESTLE_ATTR_scatter_indices_batching_dims;
  PESTLE_TRY(pestle_need_between(in, PESTLE_ATTR_index_vector_dim, 0,
                                 (int64_t)indices->rank + 1));
  int64_t vector = pestle_in_i64(in, PESTLE_ATTR_index_vector_dim);
  int64_t length = vector < indices->rank ? indices->dims[vector] : 1;
  size_t mapped =
      pestle_in_i64s(in, PESTLE_ATTR_scatter_dims_to_operand_dims).count;
  if (!pestle_dims_agree((int64_t)mapped, length)) {
    return PESTLE_BAD(
        "an index has %lld elements, 'scatter_dims_to_operand_dims' has %zu",
        (long long)length, mapped);
  }
  pestle_i64s_t of_indices = pestle_in_i64s(in, name);
  pestle_i64s_t of_input = pestle_in_i64s(in, PESTLE_ATTR_input_batching_dims);
  PESTLE_TRY(pestle_need_axes(in, name, indices->rank, batch));
  PESTLE_TRY(pestle_need_count(in, name, of_input.count));
  if (vector < indices->rank && batch[vector]) {
    return PESTLE_BAD(
        "'scatter_indices_batching_dims' names 'index_vector_dim', %lld",
        (long long)vector);
  }
  for (size_t i = 0; i < of_input.count; ++i) {
    int64_t a = of_input.data[i], b = of_indices.data[i];
    if (pestle_dims_agree(x->dims[a], indices->dims[b])) continue;
    return PESTLE_BAD(
        "batching axis %lld of input 0 has extent %lld, axis %lld of the "
        "indices %lld",
        (long long)a, (long long)x->dims[a], (long long)b,
        (long long)indices->dims[b]);
  }
  return NULL;
}

// C4, C7, C8: the updates have the axes of the indices and those of windows.
static pestle_status_t check_updates(const pestle_infer_t* in,
                                     const bool* dropped) {
  const pestle_type_t *x = pestle_in_type(in, 0), *indices = indices_of(in);
  const pestle_type_t* updates = updates_of(in);
  bool window[PESTLE_MAX_RANK] = {false};
  pestle_attr_name_t name = PESTLE_ATTR_update_window_dims;
  int64_t vector = pestle_in_i64(in, PESTLE_ATTR_index_vector_dim);
  int rank = indices->rank - (vector < indices->rank) +
             (int)pestle_in_i64s(in, name).count;
  if (updates->rank != rank) {
    return PESTLE_BAD("the updates are %s, their rank must be %d",
                      pestle_type_text(updates).text, rank);
  }
  PESTLE_TRY(pestle_need_axes(in, name, rank, window));
  PESTLE_TRY(pestle_need_sorted(in, name));
  int kept = 0, batch = 0;
  for (int i = 0; i < rank; ++i) {
    if (window[i]) {
      while (dropped[kept])
        ++kept;
      int64_t most = x->dims[kept++];
      if (!pestle_dim_known(most) || updates->dims[i] <= most) continue;
      return PESTLE_BAD(
          "axis %d of the updates, %s, passes axis %d of input 0, %s", i,
          pestle_type_text(updates).text, kept - 1, pestle_type_text(x).text);
    }
    if (batch == vector) ++batch;
    if (!pestle_dims_agree(updates->dims[i], indices->dims[batch++])) {
      return PESTLE_BAD(
          "axis %d of the updates, %s, must have the extent of axis %d of the "
          "indices, %s",
          i, pestle_type_text(updates).text, batch - 1,
          pestle_type_text(indices).text);
    }
  }
  return NULL;
}

pestle_status_t pestle_infer_scatter(pestle_infer_t* in) {
  bool dropped[PESTLE_MAX_RANK] = {false};
  PESTLE_TRY(check_operands(in));
  PESTLE_TRY(check_input_axes(in, dropped));
  PESTLE_TRY(check_index_axes(in));
  PESTLE_TRY(check_updates(in, dropped));
  PESTLE_TRY(pestle_need_reduce_body(in, inputs_of(in)));  // C23
  for (size_t i = 0; i < inputs_of(in); ++i) {
    PESTLE_TRY(pestle_emit(in, pestle_in_type(in, i)));
  }
  return NULL;
}

// --- select_and_scatter: input, source, initial value ---

// C9, C10: region |region| takes two elements and returns |returned|.
static pestle_status_t check_pair_body(const pestle_infer_t* in, size_t region,
                                       pestle_dtype_t returned) {
  pestle_type_t type = pestle_type_make(pestle_in_type(in, 0)->dtype, 0, NULL);
  pestle_type_t result = pestle_type_make(returned, 0, NULL);
  PESTLE_TRY(pestle_need_arguments(in, region, 2));
  const pestle_block_t* block = pestle_in_block(in, region);
  for (size_t i = 0; i < 2; ++i) {
    PESTLE_TRY(pestle_need_region_type("argument", i, region,
                                       block->arguments[i]->type, &type));
  }
  const pestle_node_t* node;
  PESTLE_TRY(pestle_in_return(in, region, &node));
  if (node->operand_count != 1) {
    return PESTLE_BAD("region %zu returns %u values, not one", region,
                      (unsigned)node->operand_count);
  }
  return pestle_need_region_type("result", 0, region,
                                 pestle_node_operand(node, 0)->type, &result);
}

// C2, C4 to C8: the source has an element for each place of the window.
static pestle_status_t check_places(const pestle_infer_t* in) {
  const pestle_type_t *x = pestle_in_type(in, 0), *y = pestle_in_type(in, 1);
  size_t rank = (size_t)x->rank;
  PESTLE_TRY(pestle_need_rank(in, 1, x->rank));
  PESTLE_TRY(pestle_need_count(in, PESTLE_ATTR_window_dimensions, rank));
  PESTLE_TRY(pestle_need_at_least(in, PESTLE_ATTR_window_dimensions, 1));
  PESTLE_TRY(pestle_need_count(in, PESTLE_ATTR_window_strides, rank));
  PESTLE_TRY(pestle_need_at_least(in, PESTLE_ATTR_window_strides, 1));
  PESTLE_TRY(pestle_need_count(in, PESTLE_ATTR_padding, 2 * rank));
  const int64_t* padding = pestle_in_i64s(in, PESTLE_ATTR_padding).data;
  for (int i = 0; i < x->rank; ++i) {
    int64_t places;
    pestle_window_t window = {
        .size = pestle_in_i64s(in, PESTLE_ATTR_window_dimensions).data[i],
        .stride = pestle_in_i64s(in, PESTLE_ATTR_window_strides).data[i],
        .base_dilation = 1,
        .window_dilation = 1,
        .low = padding[2 * i],
        .high = padding[2 * i + 1]};
    PESTLE_TRY(pestle_window_places(x->dims[i], &window, i, &places));
    if (pestle_dims_agree(places, y->dims[i])) continue;
    return PESTLE_BAD(
        "the window has %lld places along axis %d, the source %lld elements",
        (long long)places, i, (long long)y->dims[i]);
  }
  return NULL;
}

pestle_status_t pestle_infer_select_and_scatter(pestle_infer_t* in) {
  PESTLE_TRY(pestle_need_same_dtype(in, 0, 1));
  PESTLE_TRY(pestle_need_same_dtype(in, 0, 2));
  PESTLE_TRY(pestle_need_rank(in, 2, 0));
  PESTLE_TRY(check_places(in));
  PESTLE_TRY(check_pair_body(in, 0, PESTLE_I1));
  PESTLE_TRY(check_pair_body(in, 1, pestle_in_type(in, 0)->dtype));
  return pestle_emit(in, pestle_in_type(in, 0));
}

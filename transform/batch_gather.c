// SPDX-License-Identifier: Apache-2.0
// Batching of what reads and writes at computed places: the new axis is a batching axis
// of tensor and indices, which have it both.
#include <string.h>

#include "base/fault.h"
#include "transform/vmap.h"

// --- gather and scatter ---

static int64_t* list(pestle_vmap_t* v, pestle_i64s_t from, bool begins,
                     int64_t by, pestle_attr_t* attr) {
  int64_t* to = PESTLE_ARENA_ARRAY(&v->arena, int64_t, from.count + 2);
  size_t n = 0;
  if (!to) {
    pestle_f_fail(&v->f, PESTLE_OOM());
    return NULL;
  }
  if (begins) to[n++] = by ? 0 : 1;
  for (size_t i = 0; i < from.count; ++i)
    to[n++] = from.data[i] + by;
  attr->as.i64s = (pestle_i64s_t){to, n};
  return to;
}

// Attributes of |node| whose tensor, indices and updates all begin with the new axis.
static void batching_attrs(pestle_vmap_t* v, const pestle_node_t* node,
                           pestle_attr_t* out) {
  for (uint32_t i = 0; i < node->attr_count; ++i) {
    pestle_attr_t* a = &out[i];
    *a = node->attrs[i];
    switch (a->name) {
      case PESTLE_ATTR_operand_batching_dims:
      case PESTLE_ATTR_start_indices_batching_dims:
      case PESTLE_ATTR_input_batching_dims:
      case PESTLE_ATTR_scatter_indices_batching_dims:
        list(v, a->as.i64s, true, 1, a);
        break;
      case PESTLE_ATTR_slice_sizes:
        list(v, a->as.i64s, true, 0, a);
        break;
      case PESTLE_ATTR_index_vector_dim:
        ++a->as.i64;
        break;
      case PESTLE_ATTR_indices_are_sorted:
        a->as.b = false;
        break;
      default:
        if (a->kind == PESTLE_ATTR_KIND_I64S) list(v, a->as.i64s, false, 1, a);
    }
  }
}

static void batch_all(pestle_vmap_t* v, pestle_node_t* node,
                      pv_t* const* operands, const bool* is_batched,
                      pv_t** out) {
  pestle_attr_t attrs[PESTLE_MAX_ATTRS];
  pestle_region_t** regions;
  pv_t** all = pestle_value_array(&v->f, &v->arena, node->operand_count);
  for (uint32_t i = 0; all && i < node->operand_count; ++i)
    all[i] = pestle_vmap_batch(v, operands[i], is_batched[i]);
  batching_attrs(v, node, attrs);
  if (!all || v->f.status) return;
  v->f.status = pestle_vmap_regions(v, node, &regions);
  pestle_node_t* made = pestle_f_node(
      &v->f, &(pestle_node_spec_t){.op = (pestle_op_t)node->op,
                                   .operands = all,
                                   .operand_count = node->operand_count,
                                   .attrs = attrs,
                                   .attr_count = node->attr_count,
                                   .regions = regions,
                                   .region_count = node->region_count});
  for (uint32_t r = 0; made && r < node->result_count; ++r)
    out[r] = pestle_node_result(made, r);
}

// Of a tensor that alone is batched each window has the whole axis.
static void gather_shared(pestle_vmap_t* v, const pestle_node_t* node,
                          pv_t* const* operands, pv_t** out) {
  pestle_attr_t attrs[PESTLE_MAX_ATTRS];
  for (uint32_t i = 0; i < node->attr_count; ++i) {
    pestle_attr_t* a = &attrs[i];
    *a = node->attrs[i];
    if (a->name == PESTLE_ATTR_offset_dims) {
      list(v, a->as.i64s, true, 1, a);
    } else if (a->name == PESTLE_ATTR_slice_sizes) {
      int64_t* sizes = list(v, a->as.i64s, true, 0, a);
      if (sizes) sizes[0] = v->size;
    } else if (a->kind == PESTLE_ATTR_KIND_I64S &&
               a->name != PESTLE_ATTR_start_indices_batching_dims) {
      list(v, a->as.i64s, false, 1, a);
    }
  }
  out[0] = pestle_f_make(&v->f, PESTLE_OP_GATHER, operands, 2, attrs,
                         node->attr_count, NULL);
}

void pestle_vmap_gather(pestle_vmap_t* v, pestle_node_t* node,
                        pv_t* const* operands, const bool* is_batched,
                        pv_t** out) {
  if (!is_batched[1]) {
    gather_shared(v, node, operands, out);
  } else {
    batch_all(v, node, operands, is_batched, out);
  }
}

void pestle_vmap_scatter(pestle_vmap_t* v, pestle_node_t* node,
                         pv_t* const* operands, const bool* is_batched,
                         pv_t** out) {
  batch_all(v, node, operands, is_batched, out);
}

// --- dynamic_slice and dynamic_update_slice ---

// The places [size, rank] of windows of |part|'s dims, inside |type|.
static pv_t* places(pestle_vmap_t* v, const pestle_type_t* type,
                    const int64_t* part, pv_t* const* starts,
                    const bool* is_batched) {
  pestle_formula_t* f = &v->f;
  pv_t* columns[PESTLE_MAX_RANK];
  for (int32_t d = 0; d < type->rank; ++d) {
    pv_t* at = pestle_f_convert(f, starts[d], PESTLE_I64);
    at = pestle_vmap_batch(v, at, is_batched[d]);
    if (!at) return NULL;
    pv_t* low = pestle_zeros(f, at);
    pv_t* high = pestle_f_splat(f, at, (double)(type->dims[d] - part[d]));
    if (!PESTLE_FAULT(unclamped_start)) at = pestle_f_clamp(f, low, at, high);
    int64_t dims[2] = {v->size, 1};
    columns[d] = pestle_f_reshape(f, at, 2, dims);
  }
  return pestle_f_concatenate(f, columns, (size_t)type->rank, 1);
}

static bool any(const bool* flags, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (flags[i]) return true;
  }
  return false;
}

// |node| on values with the axis, from 0 on along it.
static void shifted_starts(pestle_vmap_t* v, const pestle_node_t* node,
                           pv_t* const* operands, const bool* is_batched,
                           size_t first, pv_t** out) {
  pestle_attr_t attrs[PESTLE_MAX_ATTRS];
  pv_t* all[PESTLE_MAX_RANK + 3];
  size_t count = node->operand_count;
  for (size_t i = 0; i < first; ++i)
    all[i] = pestle_vmap_batch(v, operands[i], is_batched[i]);
  pestle_dtype_t dtype =
      count > first ? operands[first]->type->dtype : PESTLE_I32;
  all[first] = pestle_f_scalar(&v->f, dtype, 0);
  for (size_t i = first; i < count; ++i)
    all[i + 1] = operands[i];
  pestle_status_t status = pestle_vmap_attrs(v, node, attrs);
  if (status) {
    pestle_f_fail(&v->f, status);
    return;
  }
  out[0] = pestle_f_make(&v->f, (pestle_op_t)node->op, all, count + 1, attrs,
                         node->attr_count, NULL);
}

// Of a tensor's first axis and index vectors along axis 1.
static void identity_lists(const pestle_type_t* type, int64_t* dims) {
  for (int32_t d = 0; d < type->rank; ++d)
    dims[d] = d + 1;
}

void pestle_vmap_dynamic_slice(pestle_vmap_t* v, pestle_node_t* node,
                               pv_t* const* operands, const bool* is_batched,
                               pv_t** out) {
  const pestle_type_t* type = pestle_node_operand(node, 0)->type;
  const int64_t* sizes = PESTLE_NODE_I64S(node, slice_sizes).data;
  int64_t dims[PESTLE_MAX_RANK], window[PESTLE_MAX_RANK + 1] = {1};
  static const int64_t zero = 0;
  if (!any(is_batched + 1, node->operand_count - 1u)) {
    shifted_starts(v, node, operands, is_batched, 1, out);
    return;
  }
  identity_lists(type, dims);
  size_t rank = (size_t)type->rank;
  memcpy(window + 1, sizes, rank * sizeof(int64_t));
  pv_t* all[2] = {pestle_vmap_batch(v, operands[0], is_batched[0]), NULL};
  all[1] = places(v, type, sizes, operands + 1, is_batched + 1);
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64S(offset_dims, dims, rank),
      PESTLE_SET_I64S(operand_batching_dims, &zero, 1),
      PESTLE_SET_I64S(start_indices_batching_dims, &zero, 1),
      PESTLE_SET_I64S(start_index_map, dims, rank),
      PESTLE_SET_I64(index_vector_dim, 1),
      PESTLE_SET_I64S(slice_sizes, window, rank + 1)};
  out[0] = pestle_f_make(&v->f, PESTLE_OP_GATHER, all, 2, attrs, 6, NULL);
}

void pestle_vmap_dynamic_update_slice(pestle_vmap_t* v, pestle_node_t* node,
                                      pv_t* const* operands,
                                      const bool* is_batched, pv_t** out) {
  const pestle_type_t* type = pestle_node_operand(node, 0)->type;
  const pestle_type_t* part = pestle_node_operand(node, 1)->type;
  int64_t dims[PESTLE_MAX_RANK];
  static const int64_t zero = 0;
  if (!any(is_batched + 2, node->operand_count - 2u)) {
    shifted_starts(v, node, operands, is_batched, 2, out);
    return;
  }
  identity_lists(type, dims);
  size_t rank = (size_t)type->rank;
  pv_t* all[3] = {pestle_vmap_batch(v, operands[0], is_batched[0]), NULL, NULL};
  all[1] = places(v, type, part->dims, operands + 2, is_batched + 2);
  all[2] = pestle_vmap_batch(v, operands[1], is_batched[1]);
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64S(update_window_dims, dims, rank),
      PESTLE_SET_I64S(input_batching_dims, &zero, 1),
      PESTLE_SET_I64S(scatter_indices_batching_dims, &zero, 1),
      PESTLE_SET_I64S(scatter_dims_to_operand_dims, dims, rank),
      PESTLE_SET_I64(index_vector_dim, 1),
      PESTLE_SET_BOOL(unique_indices, true)};
  pestle_region_t* region =
      pestle_f_region(&v->f, PESTLE_OP_COUNT, type->dtype);
  out[0] = pestle_f_emit(&v->f, &(pestle_node_spec_t){.op = PESTLE_OP_SCATTER,
                                                      .operands = all,
                                                      .operand_count = 3,
                                                      .attrs = attrs,
                                                      .attr_count = 6,
                                                      .regions = &region,
                                                      .region_count = 1});
}

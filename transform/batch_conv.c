// SPDX-License-Identifier: Apache-2.0
// Batching of convolutions: the axis is merged into another one. Of the input alone it is
// more of the batch; of the kernel alone more features of the result; of both it is a
// group of features each.
#include "transform/vmap.h"

// Axis 0 of |a| becomes the major part of what was axis |to| of the source.
static pv_t* merge(pestle_formula_t* f, pv_t* a, int64_t to) {
  int64_t order[PESTLE_MAX_RANK], dims[PESTLE_MAX_RANK];
  int32_t n = 0, rank = 0;
  if (!a) return NULL;
  for (int32_t d = 1; d < a->type->rank; ++d) {
    if (d == to + 1) order[n++] = 0;
    order[n++] = d;
    dims[rank++] =
        d == to + 1 ? a->type->dims[0] * a->type->dims[d] : a->type->dims[d];
  }
  return pestle_f_reshape(f, pestle_f_transpose(f, a, order), rank, dims);
}

// The major |size| parts of axis |from| become axis 0; the rest has |inner| parts of
// which it is the middle one: [inner, size, rest].
static pv_t* split(pestle_formula_t* f, pv_t* a, int64_t size, int64_t from,
                   int64_t inner) {
  int64_t order[PESTLE_MAX_RANK], dims[PESTLE_MAX_RANK];
  int32_t rank = 0, n = 0;
  if (!a) return NULL;
  pestle_type_t type = *a->type;
  int64_t rest = type.dims[from] / size / inner;
  for (int32_t d = 0; d < type.rank; ++d) {
    if (d != from) {
      dims[rank++] = type.dims[d];
      continue;
    }
    dims[rank++] = inner;
    dims[rank++] = size;
    dims[rank++] = rest;
  }
  a = pestle_f_reshape(f, a, rank, dims);
  order[n++] = from + 1;
  for (int32_t d = 0; d < rank; ++d) {
    if (d != from + 1) order[n++] = d;
  }
  a = pestle_f_transpose(f, a, order);
  type.dims[from] /= size;
  for (int32_t d = type.rank; d > 0; --d)
    type.dims[d] = type.dims[d - 1];
  type.dims[0] = size;
  ++type.rank;
  return pestle_f_reshape_to(f, a, &type);
}

// The axis behind the |groups| major parts of axis |to|: [groups, size, rest].
static pv_t* merge_inside(pestle_formula_t* f, pv_t* a, int64_t to,
                          int64_t groups) {
  int64_t order[PESTLE_MAX_RANK + 1], dims[PESTLE_MAX_RANK + 1];
  int32_t rank = 0, n = 0;
  if (!a || groups == 1) return merge(f, a, to);
  int64_t size = a->type->dims[0];
  pestle_type_t type = *a->type;
  for (int32_t d = 0; d < type.rank; ++d) {
    if (d == to + 1) dims[rank++] = groups;
    dims[rank++] = d == to + 1 ? type.dims[d] / groups : type.dims[d];
  }
  a = pestle_f_reshape(f, a, rank, dims);
  for (int32_t d = 1; d < rank; ++d) {
    order[n++] = d;
    if (d == to + 1) order[n++] = 0;
  }
  a = pestle_f_transpose(f, a, order);
  for (int32_t d = 1; d < type.rank; ++d)
    type.dims[d - 1] = d == to + 1 ? type.dims[d] * size : type.dims[d];
  --type.rank;
  return pestle_f_reshape_to(f, a, &type);
}

static pv_t* convolve(pestle_vmap_t* v, const pestle_node_t* node, pv_t* a,
                      pv_t* b, int64_t groups, int64_t batch, int64_t feature) {
  pestle_attr_t attrs[PESTLE_MAX_ATTRS];
  pestle_type_t type = *node->results[0].type;
  type.dims[PESTLE_NODE_I64(node, output_batch_dimension)] *= batch;
  type.dims[PESTLE_NODE_I64(node, output_feature_dimension)] *= feature;
  for (uint32_t i = 0; i < node->attr_count; ++i) {
    attrs[i] = node->attrs[i];
    if (attrs[i].name == PESTLE_ATTR_feature_group_count) {
      attrs[i].as.i64 *= groups;
    }
  }
  pv_t* operands[2] = {a, b};
  return pestle_f_make(&v->f, PESTLE_OP_CONVOLUTION, operands, 2, attrs,
                       node->attr_count, &type);
}

void pestle_vmap_convolution(pestle_vmap_t* v, pestle_node_t* node,
                             pv_t* const* operands, const bool* is_batched,
                             pv_t** out) {
  pestle_formula_t* f = &v->f;
  int64_t n = v->size;
  int64_t groups = PESTLE_NODE_I64(node, feature_group_count);
  int64_t batch_groups = PESTLE_NODE_I64(node, batch_group_count);
  int64_t batch = PESTLE_NODE_I64(node, input_batch_dimension);
  int64_t feature = PESTLE_NODE_I64(node, input_feature_dimension);
  int64_t kernel_out = PESTLE_NODE_I64(node, kernel_output_feature_dimension);
  int64_t out_batch = PESTLE_NODE_I64(node, output_batch_dimension);
  int64_t out_feature = PESTLE_NODE_I64(node, output_feature_dimension);
  if (!n || node->results[0].type->rank + 2 > PESTLE_MAX_RANK ||
      (batch_groups > 1 && is_batched[1])) {
    pestle_vmap_refuse(
        v, node,
        "is batched along no elements, has too many axes, or has "
        "batch groups beside a batched kernel; write it as one "
        "of feature groups");
    return;
  }
  if (!is_batched[1]) {
    pv_t* a = merge_inside(f, operands[0], batch, batch_groups);
    a = convolve(v, node, a, operands[1], 1, n, 1);
    out[0] = split(f, a, n, out_batch, 1);
  } else if (!is_batched[0]) {
    pv_t* b = merge_inside(f, operands[1], kernel_out, groups);
    pv_t* a = convolve(v, node, operands[0], b, 1, 1, n);
    out[0] = split(f, a, n, out_feature, groups);
  } else {
    pv_t* a = merge(f, operands[0], feature);
    pv_t* b = merge(f, operands[1], kernel_out);
    a = convolve(v, node, a, b, n, 1, n);
    out[0] = split(f, a, n, out_feature, 1);
  }
}

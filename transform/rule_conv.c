// SPDX-License-Identifier: Apache-2.0
// The cotangents of a convolution's sides are convolutions. Along a spatial axis window o
// reads element i of the input with element k of the kernel where
//
//   o * stride + k * rhs_dilation = low + i * lhs_dilation
//
// and each side's cotangent is that equation turned round.
#include "transform/transform.h"

typedef struct conv_t {
  const pestle_node_t* node;
  size_t spatial;
  pestle_i64s_t lhs, rhs, out;  // spatial dims of input, kernel and result
  int64_t lhs_batch, lhs_feature, rhs_in, rhs_out, out_batch, out_feature;
  int64_t feature_groups, batch_groups;
  int64_t strides[PESTLE_MAX_RANK], low[PESTLE_MAX_RANK], high[PESTLE_MAX_RANK];
  int64_t lhs_dilation[PESTLE_MAX_RANK], rhs_dilation[PESTLE_MAX_RANK];
  int64_t reversed[PESTLE_MAX_RANK];
} conv_t;

static int64_t at(pestle_i64s_t list, size_t i, int64_t otherwise) {
  return i < list.count ? list.data[i] : otherwise;
}

static void read(const pestle_node_t* node, conv_t* c) {
  *c = (conv_t){
      .node = node,
      .lhs = PESTLE_NODE_I64S(node, input_spatial_dimensions),
      .rhs = PESTLE_NODE_I64S(node, kernel_spatial_dimensions),
      .out = PESTLE_NODE_I64S(node, output_spatial_dimensions),
      .lhs_batch = PESTLE_NODE_I64(node, input_batch_dimension),
      .lhs_feature = PESTLE_NODE_I64(node, input_feature_dimension),
      .rhs_in = PESTLE_NODE_I64(node, kernel_input_feature_dimension),
      .rhs_out = PESTLE_NODE_I64(node, kernel_output_feature_dimension),
      .out_batch = PESTLE_NODE_I64(node, output_batch_dimension),
      .out_feature = PESTLE_NODE_I64(node, output_feature_dimension),
      .feature_groups = PESTLE_NODE_I64(node, feature_group_count),
      .batch_groups = PESTLE_NODE_I64(node, batch_group_count)};
  c->spatial = c->lhs.count;
  for (size_t i = 0; i < c->spatial; ++i) {
    pestle_i64s_t padding = PESTLE_NODE_I64S(node, padding);
    c->strides[i] = at(PESTLE_NODE_I64S(node, window_strides), i, 1);
    c->low[i] = at(padding, 2 * i, 0);
    c->high[i] = at(padding, 2 * i + 1, 0);
    c->lhs_dilation[i] = at(PESTLE_NODE_I64S(node, lhs_dilation), i, 1);
    c->rhs_dilation[i] = at(PESTLE_NODE_I64S(node, rhs_dilation), i, 1);
    c->reversed[i] = at(PESTLE_NODE_I64S(node, window_reversal), i, 0);
  }
}

static pv_t* emit(pestle_formula_t* f, const conv_t* c, pv_t* a, pv_t* b,
                  const pestle_type_t* type) {
  int64_t padding[2 * PESTLE_MAX_RANK];
  size_t n = c->spatial;
  for (size_t i = 0; i < n; ++i) {
    padding[2 * i] = c->low[i];
    padding[2 * i + 1] = c->high[i];
  }
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64S(window_strides, c->strides, n),
      PESTLE_SET_I64S(padding, padding, 2 * n),
      PESTLE_SET_I64S(lhs_dilation, c->lhs_dilation, n),
      PESTLE_SET_I64S(rhs_dilation, c->rhs_dilation, n),
      PESTLE_SET_I64S(window_reversal, c->reversed, n),
      PESTLE_SET_I64(input_batch_dimension, c->lhs_batch),
      PESTLE_SET_I64(input_feature_dimension, c->lhs_feature),
      PESTLE_SET_I64S(input_spatial_dimensions, c->lhs.data, n),
      PESTLE_SET_I64(kernel_input_feature_dimension, c->rhs_in),
      PESTLE_SET_I64(kernel_output_feature_dimension, c->rhs_out),
      PESTLE_SET_I64S(kernel_spatial_dimensions, c->rhs.data, n),
      PESTLE_SET_I64(output_batch_dimension, c->out_batch),
      PESTLE_SET_I64(output_feature_dimension, c->out_feature),
      PESTLE_SET_I64S(output_spatial_dimensions, c->out.data, n),
      PESTLE_SET_I64(feature_group_count, c->feature_groups),
      PESTLE_SET_I64(batch_group_count, c->batch_groups)};
  pv_t* operands[2] = {a, b};
  return pestle_f_make(f, PESTLE_OP_CONVOLUTION, operands, 2, attrs,
                       sizeof(attrs) / sizeof(attrs[0]), type);
}

// The first |groups| parts of axis |from|, which become the major part of axis |to|.
static pv_t* move_groups(pestle_formula_t* f, pv_t* a, int64_t groups,
                         int64_t from, int64_t to) {
  int64_t dims[PESTLE_MAX_RANK], order[PESTLE_MAX_RANK];
  int32_t rank = 0, n = 0;
  if (!a || groups == 1) return a;
  const pestle_type_t type = *a->type;
  if (type.rank == PESTLE_MAX_RANK) {
    return pestle_f_fail(
        f, PESTLE_ERROR(UNSUPPORTED,
                        "a convolution of rank %d has groups, whose derivative "
                        "needs an axis more",
                        PESTLE_MAX_RANK));
  }
  for (int32_t d = 0; d < type.rank; ++d) {
    if (d == from) dims[rank++] = groups;
    dims[rank++] = d == from ? type.dims[d] / groups : type.dims[d];
  }
  // In the split tensor axis d is at d, or one further from |from| on; the groups are
  // at |from| and go in front of |to|.
  for (int32_t d = 0; d < type.rank; ++d) {
    if (d == to) order[n++] = from;
    order[n++] = d < from ? d : d + 1;
  }
  a = pestle_f_transpose(f, pestle_f_reshape(f, a, rank, dims), order);
  pestle_type_t merged = type;
  merged.dims[from] /= groups;
  merged.dims[to] *= groups;
  return pestle_f_reshape_to(f, a, &merged);
}

static int64_t dilated(int64_t n, int64_t by) {
  return n ? (n - 1) * by + 1 : 0;
}

static pv_t* lhs_cotangent(pestle_formula_t* f, const conv_t* c, pv_t* ct) {
  const pestle_type_t* type = pestle_node_operand(c->node, 0)->type;
  pv_t* kernel = pestle_node_operand(c->node, 1);
  int64_t groups = c->feature_groups * c->batch_groups;
  conv_t t = *c;
  t.lhs = c->out;
  t.lhs_batch = c->out_batch;
  t.lhs_feature = c->out_feature;
  t.rhs_in = c->rhs_out;
  t.rhs_out = c->rhs_in;
  t.out = c->lhs;
  t.out_batch = c->lhs_batch;
  t.out_feature = c->lhs_feature;
  t.feature_groups = groups;
  t.batch_groups = 1;
  for (size_t i = 0; i < c->spatial; ++i) {
    int64_t span =
        (kernel->type->dims[c->rhs.data[i]] - 1) * c->rhs_dilation[i];
    int64_t length = dilated(ct->type->dims[c->out.data[i]], c->strides[i]);
    int64_t wanted = dilated(type->dims[c->lhs.data[i]], c->lhs_dilation[i]);
    t.strides[i] = c->lhs_dilation[i];
    t.lhs_dilation[i] = c->strides[i];
    t.reversed[i] = !c->reversed[i];
    t.low[i] = span - c->low[i];
    t.high[i] = wanted + span - t.low[i] - length;
  }
  // Kernels of a group give each its own features of the input.
  kernel = pestle_f_convert(f, kernel, ct->type->dtype);
  kernel = move_groups(f, kernel, groups, c->rhs_out, c->rhs_in);
  pestle_type_t made = *type;
  made.dtype = ct->type->dtype;
  made.dims[c->lhs_batch] /= c->batch_groups;
  made.dims[c->lhs_feature] *= c->batch_groups;
  pv_t* a = emit(f, &t, ct, kernel, &made);
  a = move_groups(f, a, c->batch_groups, c->lhs_feature, c->lhs_batch);
  return pestle_f_convert(f, a, type->dtype);
}

// Input and cotangent change what is batch and what feature.
static pv_t* rhs_cotangent(pestle_formula_t* f, const conv_t* c, pv_t* ct) {
  const pestle_type_t* type = pestle_node_operand(c->node, 1)->type;
  pv_t* a = pestle_node_operand(c->node, 0);
  int64_t turned[PESTLE_MAX_RANK];
  size_t turns = 0;
  conv_t t = *c;
  t.lhs_batch = c->lhs_feature;
  t.lhs_feature = c->lhs_batch;
  t.rhs = c->out;
  t.rhs_in = c->out_batch;
  t.rhs_out = c->out_feature;
  t.out = c->rhs;
  t.out_batch = c->rhs_in;
  t.out_feature = c->rhs_out;
  t.feature_groups = c->batch_groups;
  t.batch_groups = c->feature_groups;
  for (size_t i = 0; i < c->spatial; ++i) {
    int64_t taps = dilated(type->dims[c->rhs.data[i]], c->rhs_dilation[i]);
    int64_t length = dilated(a->type->dims[c->lhs.data[i]], c->lhs_dilation[i]);
    int64_t span = dilated(ct->type->dims[c->out.data[i]], c->strides[i]);
    t.strides[i] = c->rhs_dilation[i];
    t.rhs_dilation[i] = c->strides[i];
    t.high[i] = taps + span - 1 - c->low[i] - length;
    t.reversed[i] = 0;
    if (c->reversed[i]) turned[turns++] = c->rhs.data[i];
  }
  pestle_type_t made = *type;
  made.dtype = ct->type->dtype;
  a = emit(f, &t, pestle_f_convert(f, a, ct->type->dtype), ct, &made);
  a = pestle_f_reverse(f, a, (pestle_i64s_t){turned, turns});
  return pestle_f_convert(f, a, type->dtype);
}

void pestle_transpose_convolution(pestle_transposer_t* x, pestle_node_t* node,
                                  pv_t* const* ct) {
  size_t side = pestle_is_linear(x, pestle_node_operand(node, 0)) ? 0 : 1;
  pv_t* like = pestle_node_operand(node, side);
  conv_t c;
  read(node, &c);
  // An empty window or result gives nothing, and dilations of it no sizes.
  if (!pestle_type_count(ct[0]->type) || !pestle_type_count(like->type) ||
      !pestle_type_count(pestle_node_operand(node, 1 - side)->type)) {
    pestle_cotangent_add(x, node, side, pestle_zeros(&x->f, like));
    return;
  }
  pestle_cotangent_add(
      x, node, side,
      side ? rhs_cotangent(&x->f, &c, ct[0]) : lhs_cotangent(&x->f, &c, ct[0]));
}

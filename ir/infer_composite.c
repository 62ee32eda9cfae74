// SPDX-License-Identifier: Apache-2.0
// Type rules of composites: but for quantisation, the type of operand 0.
#include <string.h>

#include "base/mem.h"
#include "ir/infer.h"

static pestle_status_t infer_like(pestle_infer_t* in) {
  PESTLE_TRY(pestle_need_kind(in, 0, PESTLE_KIND_FLOAT));
  return pestle_emit(in, pestle_in_type(in, 0));
}

static pestle_status_t infer_along(pestle_infer_t* in) {
  PESTLE_TRY(pestle_need_axes(in, PESTLE_ATTR_dimensions,
                              pestle_in_type(in, 0)->rank, NULL));
  return infer_like(in);
}

pestle_status_t pestle_infer_softmax(pestle_infer_t* in) {
  return infer_along(in);
}

pestle_status_t pestle_infer_log_softmax(pestle_infer_t* in) {
  return infer_along(in);
}

pestle_status_t pestle_infer_extent(pestle_infer_t* in) {
  PESTLE_TRY(pestle_need_between(in, PESTLE_ATTR_dimension, 0,
                                 pestle_in_type(in, 0)->rank));
  const pestle_type_t* n = pestle_in_type(in, 1);
  if (n->dtype != PESTLE_I64 || n->rank) {
    return PESTLE_BAD("operand 1 is %s, not tensor<i64>",
                      pestle_type_text(n).text);
  }
  return pestle_emit(in, pestle_in_type(in, 0));
}

pestle_status_t pestle_infer_logsumexp(pestle_infer_t* in) {
  bool gone[PESTLE_MAX_RANK] = {false};
  pestle_type_t type = *pestle_in_type(in, 0);
  PESTLE_TRY(pestle_need_kind(in, 0, PESTLE_KIND_FLOAT));
  PESTLE_TRY(pestle_need_axes(in, PESTLE_ATTR_dimensions, type.rank, gone));
  int32_t rank = type.rank;
  type.rank = 0;
  for (int32_t i = 0; i < rank; ++i) {
    if (!gone[i]) type.dims[type.rank++] = type.dims[i];
  }
  return pestle_emit(in, &type);
}

// --- Norms ---

// Operand |operand| has the element type of x and the shape of the axes that
// 'dimensions' names, in that order.
static pestle_status_t check_per_dimension(const pestle_infer_t* in,
                                           size_t operand) {
  const pestle_type_t* x = pestle_in_type(in, 0);
  pestle_i64s_t axes = pestle_in_i64s(in, PESTLE_ATTR_dimensions);
  pestle_type_t shape = {.dtype = x->dtype, .rank = (int32_t)axes.count};
  for (size_t i = 0; i < axes.count; ++i) {
    shape.dims[i] = x->dims[axes.data[i]];
  }
  const pestle_type_t* type = pestle_in_type(in, operand);
  if (type->dtype == x->dtype && pestle_shapes_agree(type, &shape)) return NULL;
  return PESTLE_BAD(
      "operand %zu is %s, not %s: the shape of the normalised "
      "'dimensions'",
      operand, pestle_type_text(type).text, pestle_type_text(&shape).text);
}

static pestle_status_t infer_norm(pestle_infer_t* in) {
  PESTLE_TRY(pestle_need_kind(in, 0, PESTLE_KIND_FLOAT));
  PESTLE_TRY(pestle_need_axes(in, PESTLE_ATTR_dimensions,
                              pestle_in_type(in, 0)->rank, NULL));
  PESTLE_TRY(pestle_need_sorted(in, PESTLE_ATTR_dimensions));
  double epsilon = pestle_in_attr(in, PESTLE_ATTR_epsilon)->as.f64;
  if (!(epsilon >= 0)) {
    return PESTLE_BAD("'epsilon' is %g: it must not be negative", epsilon);
  }
  for (size_t i = 1; i < in->spec->operand_count; ++i) {
    PESTLE_TRY(check_per_dimension(in, i));
  }
  return infer_like(in);
}

pestle_status_t pestle_infer_layer_norm(pestle_infer_t* in) {
  return infer_norm(in);
}

pestle_status_t pestle_infer_rms_norm(pestle_infer_t* in) {
  return infer_norm(in);
}

// x, scale, cotangent.
pestle_status_t pestle_infer_norm_grad(pestle_infer_t* in) {
  const pestle_type_t *x = pestle_in_type(in, 0),
                      *scale = pestle_in_type(in, 1),
                      *c = pestle_in_type(in, 2);
  PESTLE_TRY(pestle_need_kind(in, 0, PESTLE_KIND_FLOAT));
  PESTLE_TRY(pestle_need_between(in, PESTLE_ATTR_dimension, 0, x->rank));
  int32_t first = (int32_t)pestle_in_i64(in, PESTLE_ATTR_dimension);
  int64_t blocks = pestle_in_i64(in, PESTLE_ATTR_blocks), rows = 1;
  pestle_type_t sums = {
      .dtype = x->dtype == PESTLE_F64 ? PESTLE_F64 : PESTLE_F32,
      .rank = 1,
      .dims = {blocks}};
  pestle_type_t shape = {.dtype = x->dtype};
  for (int32_t d = 0; d < x->rank; ++d) {
    if (d >= first) {
      shape.dims[shape.rank++] = x->dims[d];
      if (sums.rank < PESTLE_MAX_RANK) sums.dims[sums.rank++] = x->dims[d];
    } else if (pestle_dim_known(x->dims[d]) && pestle_dim_known(rows)) {
      rows *= x->dims[d];
    } else {
      rows = PESTLE_DIM_DYNAMIC;
    }
  }
  double epsilon = pestle_in_attr(in, PESTLE_ATTR_epsilon)->as.f64;
  if (!(epsilon >= 0)) {
    return PESTLE_BAD("'epsilon' is %g: it must not be negative", epsilon);
  }
  if (first == 0 && x->rank == PESTLE_MAX_RANK) {
    return PESTLE_BAD("operand 0 is %s: sums of it would have too many axes",
                      pestle_type_text(x).text);
  }
  if (scale->dtype != x->dtype || !pestle_shapes_agree(scale, &shape)) {
    return PESTLE_BAD(
        "operand 1 is %s, not %s: the shape of the normalised axes",
        pestle_type_text(scale).text, pestle_type_text(&shape).text);
  }
  if (c->dtype != x->dtype || !pestle_shapes_agree(c, x)) {
    return PESTLE_BAD("operand 0 is %s, operand 2 is %s: types must be equal",
                      pestle_type_text(x).text, pestle_type_text(c).text);
  }
  if (blocks < 1 || (pestle_dim_known(rows) && rows && blocks > rows)) {
    return PESTLE_BAD("'blocks' is %lld: there are %lld rows",
                      (long long)blocks, (long long)rows);
  }
  PESTLE_TRY(pestle_emit(in, x));
  PESTLE_TRY(pestle_emit(in, &sums));
  return pestle_in_attr(in, PESTLE_ATTR_centred)->as.b ? pestle_emit(in, &sums)
                                                       : NULL;
}

// x, then numbers for each feature: |count| operands in all.
static pestle_status_t check_features(const pestle_infer_t* in, size_t first,
                                      size_t count) {
  const pestle_type_t* x = pestle_in_type(in, 0);
  PESTLE_TRY(pestle_need_between(in, PESTLE_ATTR_feature_index, 0, x->rank));
  int64_t axis = pestle_in_i64(in, PESTLE_ATTR_feature_index);
  for (size_t i = first; i < count; ++i) {
    PESTLE_TRY(pestle_need_same_dtype(in, 0, i));
    PESTLE_TRY(pestle_need_rank(in, i, 1));
    const pestle_type_t* type = pestle_in_type(in, i);
    if (pestle_dims_agree(type->dims[0], x->dims[axis])) continue;
    return PESTLE_BAD(
        "operand %zu is %s: its extent must be that of axis "
        "%lld of operand 0, %s",
        i, pestle_type_text(type).text, (long long)axis,
        pestle_type_text(x).text);
  }
  return NULL;
}

static pestle_status_t need_operands(const pestle_infer_t* in, size_t count) {
  if (in->spec->operand_count == count) return NULL;
  return PESTLE_BAD("%zu operands are given, the op takes %zu",
                    in->spec->operand_count, count);
}

// C1 to C7 of the StableHLO spec: x, and four numbers for each feature.
pestle_status_t pestle_infer_batch_norm_inference(pestle_infer_t* in) {
  PESTLE_TRY(need_operands(in, 5));
  PESTLE_TRY(check_features(in, 1, 5));
  return infer_like(in);
}

// The result like x, and two of a number for each feature.
static pestle_status_t emit_features(pestle_infer_t* in) {
  PESTLE_TRY(infer_like(in));
  PESTLE_TRY(pestle_emit(in, pestle_in_type(in, 1)));
  return pestle_emit(in, pestle_in_type(in, 1));
}

pestle_status_t pestle_infer_batch_norm_training(pestle_infer_t* in) {
  PESTLE_TRY(check_features(in, 1, 3));
  return emit_features(in);
}

pestle_status_t pestle_infer_batch_norm_grad(pestle_infer_t* in) {
  PESTLE_TRY(need_operands(in, 5));
  PESTLE_TRY(check_features(in, 1, 4));
  PESTLE_TRY(pestle_need_same_dtype(in, 0, 4));
  const pestle_type_t *x = pestle_in_type(in, 0), *g = pestle_in_type(in, 4);
  if (!pestle_shapes_agree(x, g)) {
    return PESTLE_BAD("operand 0 is %s, operand 4 is %s: shapes must be equal",
                      pestle_type_text(x).text, pestle_type_text(g).text);
  }
  return emit_features(in);
}

// --- Activations ---

pestle_status_t pestle_infer_gelu(pestle_infer_t* in) {
  return infer_like(in);
}

pestle_status_t pestle_infer_silu(pestle_infer_t* in) {
  return infer_like(in);
}

pestle_status_t pestle_infer_hard_sigmoid(pestle_infer_t* in) {
  return infer_like(in);
}

// --- Attention: q, k, v, bias, mask ---

// Axis i of operand |operand| has the extent number names[i]: all that have one
// number agree.
static pestle_status_t match_extents(const pestle_infer_t* in, size_t operand,
                                     const int64_t* names,
                                     int64_t extents[PESTLE_MAX_RANK + 2]) {
  const pestle_type_t* type = pestle_in_type(in, operand);
  for (int i = 0; i < type->rank; ++i) {
    int64_t* extent = &extents[names[i]];
    if (!pestle_dim_known(*extent)) *extent = type->dims[i];
    if (pestle_dims_agree(*extent, type->dims[i])) continue;
    return PESTLE_BAD(
        "operand %zu is %s: axis %d must have %lld elements, as "
        "the operands before it say",
        operand, pestle_type_text(type).text, i, (long long)*extent);
  }
  return NULL;
}

// Bias and mask, from operand |first| on, have the scores' extents, or 1. The mask is
// the last operand.
static pestle_status_t check_spread(const pestle_infer_t* in, size_t operand,
                                    size_t first, const pestle_type_t* scores) {
  const pestle_type_t* type = pestle_in_type(in, operand);
  bool mask = type->dtype == PESTLE_I1 &&
              operand + 1 == (size_t)in->spec->operand_count;
  if (!mask && operand > first) {
    return PESTLE_BAD(
        "operand %zu is %s: behind the bias there may be a mask "
        "of i1",
        operand, pestle_type_text(type).text);
  }
  if (!mask) PESTLE_TRY(pestle_need_kind(in, operand, PESTLE_KIND_FLOAT));
  PESTLE_TRY(pestle_need_rank(in, operand, scores->rank));
  for (int i = 0; i < type->rank; ++i) {
    if (type->dims[i] == 1 ||
        pestle_dims_agree(type->dims[i], scores->dims[i])) {
      continue;
    }
    return PESTLE_BAD(
        "operand %zu is %s: it does not spread over the scores, %s", operand,
        pestle_type_text(type).text, pestle_type_text(scores).text);
  }
  return NULL;
}

// Emits nothing: |*out_scores| is the type of the scores, |*out_width| the extent of a
// row of v. Bias and mask are the operands from |first| on.
static pestle_status_t check_attention(const pestle_infer_t* in, size_t first,
                                       pestle_type_t* out_scores,
                                       int64_t* out_width) {
  PESTLE_TRY(pestle_need_kind(in, 0, PESTLE_KIND_FLOAT));
  int rank = pestle_in_type(in, 0)->rank;
  if (rank < 2) {
    return PESTLE_BAD("operand 0 is %s: its rank must be 2 or more",
                      pestle_type_text(pestle_in_type(in, 0)).text);
  }
  // The batch axes, then the extents S, D, T and E. Behind v come what has the shape of
  // the result.
  int64_t extents[PESTLE_MAX_RANK + 2], names[PESTLE_MAX_RANK];
  for (int i = 0; i < rank + 2; ++i)
    extents[i] = PESTLE_DIM_DYNAMIC;
  for (int i = 0; i < rank; ++i)
    names[i] = i;
  static const int last[5][2] = {{0, 1}, {2, 1}, {2, 3}, {0, 3}, {0, 3}};
  for (size_t i = 0; i < first; ++i) {
    if (i) PESTLE_TRY(pestle_need_same_dtype(in, i, 0));
    PESTLE_TRY(pestle_need_rank(in, i, rank));
    names[rank - 2] = rank - 2 + last[i][0];
    names[rank - 1] = rank - 2 + last[i][1];
    PESTLE_TRY(match_extents(in, i, names, extents));
  }
  pestle_type_t type = *pestle_in_type(in, 0);
  memcpy(type.dims, extents, sizeof(extents[0]) * (size_t)(rank - 1));
  type.dims[rank - 1] = extents[rank];
  for (size_t i = first; i < in->spec->operand_count; ++i) {
    PESTLE_TRY(check_spread(in, i, first, &type));
  }
  *out_scores = type;
  *out_width = extents[rank + 1];
  return NULL;
}

pestle_status_t pestle_infer_attention(pestle_infer_t* in) {
  pestle_type_t type;
  if (in->spec->operand_count < 3 || in->spec->operand_count > 5) {
    return PESTLE_BAD(
        "%zu operands: it takes q, k, v and perhaps a bias and a mask",
        in->spec->operand_count);
  }
  int64_t width;
  PESTLE_TRY(check_attention(in, 3, &type, &width));
  type.dims[type.rank - 1] = width;
  return pestle_emit(in, &type);
}

pestle_status_t pestle_infer_attention_grad(pestle_infer_t* in) {
  pestle_type_t scores;
  int64_t width;
  if (in->spec->operand_count < 5 || in->spec->operand_count > 7) {
    return PESTLE_BAD(
        "%zu operands: it takes q, k, v, the result, its cotangent and "
        "perhaps a bias and a mask",
        in->spec->operand_count);
  }
  PESTLE_TRY(check_attention(in, 5, &scores, &width));
  for (size_t i = 0; i < 3; ++i)
    PESTLE_TRY(pestle_emit(in, pestle_in_type(in, i)));
  if (!pestle_in_attr(in, PESTLE_ATTR_of_bias)->as.b) return NULL;
  if (in->spec->operand_count < 6 ||
      pestle_in_type(in, 5)->dtype == PESTLE_I1) {
    return PESTLE_BAD("'of_bias' is true, and there is no bias");
  }
  return pestle_emit(in, pestle_in_type(in, 5));
}

// --- Quantisation: x, scale, zero point ---

static bool is_f8(pestle_dtype_t dtype) {
  return pestle_dtype_is(dtype, PESTLE_KIND_FLOAT) &&
         pestle_dtype_size(dtype) == 1;
}

// Wider integers do not pass unharmed through the f32 in which it is computed.
static bool is_quantized(pestle_dtype_t dtype) {
  return is_f8(dtype) || (pestle_dtype_is(dtype, PESTLE_KIND_INT) &&
                          pestle_dtype_size(dtype) <= 2);
}

// The scale is a float; scale and zero point have rank 0, or rank 1 along
// 'axis'.
static pestle_status_t check_parameters(const pestle_infer_t* in) {
  const pestle_type_t* x = pestle_in_type(in, 0);
  const pestle_type_t* scale = pestle_in_type(in, 1);
  const pestle_type_t* zero = pestle_in_type(in, 2);
  PESTLE_TRY(pestle_need_kind(in, 1, PESTLE_KIND_FLOAT));
  if (!pestle_shapes_agree(scale, zero)) {
    return PESTLE_BAD("operand 1 is %s, operand 2 is %s: shapes must be equal",
                      pestle_type_text(scale).text,
                      pestle_type_text(zero).text);
  }
  if (scale->rank == 0) return NULL;
  PESTLE_TRY(pestle_need_rank(in, 1, 1));
  PESTLE_TRY(pestle_need_between(in, PESTLE_ATTR_axis, 0, x->rank));
  int64_t axis = pestle_in_i64(in, PESTLE_ATTR_axis);
  if (pestle_dims_agree(x->dims[axis], scale->dims[0]) &&
      pestle_dims_agree(x->dims[axis], zero->dims[0])) {
    return NULL;
  }
  return PESTLE_BAD(
      "operand 1 is %s: its extent must be that of axis %lld of "
      "operand 0, %s",
      pestle_type_text(scale).text, (long long)axis, pestle_type_text(x).text);
}

pestle_status_t pestle_infer_quantize(pestle_infer_t* in) {
  pestle_type_t type = *pestle_in_type(in, 0);
  PESTLE_TRY(check_parameters(in));
  if (type.dtype != PESTLE_I32) PESTLE_TRY(pestle_need_same_dtype(in, 1, 0));
  type.dtype = pestle_in_type(in, 2)->dtype;
  if (!is_quantized(type.dtype)) {
    return PESTLE_BAD(
        "operand 2 is %s: the zero point's element type must be "
        "an integer of up to 16 bits or an f8",
        pestle_type_text(pestle_in_type(in, 2)).text);
  }
  return pestle_emit(in, &type);
}

pestle_status_t pestle_infer_dequantize(pestle_infer_t* in) {
  pestle_type_t type = *pestle_in_type(in, 0);
  PESTLE_TRY(check_parameters(in));
  PESTLE_TRY(pestle_need_same_dtype(in, 0, 2));
  if (type.dtype != PESTLE_I32 && !is_quantized(type.dtype)) {
    return PESTLE_BAD(
        "operand 0 is %s: its element type must be i32, an "
        "integer of up to 16 bits or an f8",
        pestle_type_text(pestle_in_type(in, 0)).text);
  }
  type.dtype = pestle_in_type(in, 1)->dtype;
  return pestle_emit(in, &type);
}

// x [.., k], w [n, bytes], scales and zeros [n, blocks].
static pestle_status_t check_blocks(const pestle_infer_t* in) {
  const pestle_type_t *x = pestle_in_type(in, 0), *w = pestle_in_type(in, 1),
                      *scales = pestle_in_type(in, 2);
  int64_t bits = pestle_in_i64(in, PESTLE_ATTR_bits);
  int64_t block = pestle_in_i64(in, PESTLE_ATTR_block);
  int64_t rows = w->dims[0], blocks = scales->dims[1];
  int64_t k = x->dims[x->rank - 1];
  if (rows != scales->dims[0] || blocks < 1 || block > INT32_MAX / blocks ||
      w->dims[1] != blocks * block * bits / 8) {
    return PESTLE_BAD(
        "operand 1 is %s, operand 2 is %s: they must have the same rows, and "
        "those of operand 1 %lld * %lld / 8 bytes for each column of operand 2",
        pestle_type_text(w).text, pestle_type_text(scales).text,
        (long long)block, (long long)bits);
  }
  if (k > (blocks - 1) * block && k <= blocks * block) return NULL;
  return PESTLE_BAD(
      "operand 0 is %s: its last axis must end within the last of %lld blocks "
      "of %lld",
      pestle_type_text(x).text, (long long)blocks, (long long)block);
}

pestle_status_t pestle_infer_block_dot(pestle_infer_t* in) {
  int64_t bits = pestle_in_i64(in, PESTLE_ATTR_bits);
  int64_t block = pestle_in_i64(in, PESTLE_ATTR_block);
  if (in->spec->operand_count < 3 || in->spec->operand_count > 4) {
    return PESTLE_BAD("%zu operands are given, the op takes 3 or 4",
                      in->spec->operand_count);
  }
  PESTLE_TRY(pestle_need_kind(in, 0, PESTLE_KIND_FLOAT));
  PESTLE_TRY(pestle_need_kind(in, 2, PESTLE_KIND_FLOAT));
  PESTLE_TRY(pestle_need_between(in, PESTLE_ATTR_accuracy, 0, 5));
  if ((bits != 2 && bits != 4 && bits != 8) || block < 16 ||
      (block & (block - 1)) != 0) {
    return PESTLE_BAD(
        "'bits' is %lld and 'block' is %lld: known are 2, 4 and 8 bits, and "
        "powers of two from 16 on",
        (long long)bits, (long long)block);
  }
  for (size_t i = 0; i < in->spec->operand_count; ++i) {
    const pestle_type_t* type = pestle_in_type(in, i);
    if (i) PESTLE_TRY(pestle_need_rank(in, i, 2));
    if (type->rank == 0 || !pestle_type_is_static(type)) {
      return PESTLE_BAD("operand %zu is %s: its extents must be known", i,
                        pestle_type_text(type).text);
    }
  }
  if (pestle_in_type(in, 1)->dtype != PESTLE_U8) {
    return PESTLE_BAD("operand 1 is %s: its elements must be ui8",
                      pestle_type_text(pestle_in_type(in, 1)).text);
  }
  if (in->spec->operand_count > 3) {
    const pestle_type_t *zeros = pestle_in_type(in, 3),
                        *scales = pestle_in_type(in, 2);
    bool is_taken = zeros->dtype == PESTLE_U8 ||
                    pestle_dtype_is(zeros->dtype, PESTLE_KIND_FLOAT);
    if (!is_taken || !pestle_shapes_agree(zeros, scales)) {
      return PESTLE_BAD(
          "operand 3 is %s: its elements must be ui8 or floats, and its shape "
          "that of operand 2, %s",
          pestle_type_text(zeros).text, pestle_type_text(scales).text);
    }
  }
  PESTLE_TRY(check_blocks(in));
  pestle_type_t type = *pestle_in_type(in, 0);
  type.dims[type.rank - 1] = pestle_in_type(in, 1)->dims[0];
  return pestle_emit(in, &type);
}

// SPDX-License-Identifier: Apache-2.0
// Rules about the dims of a convolution: windows without the taps that never meet
// the input, and dims that its window leaves alone as one.
#include <string.h>

#include "base/bits.h"
#include "passes/simplify.h"
#include "passes/util.h"

enum { MAX_SPATIAL = PESTLE_MAX_RANK - 2 };

// One spatial dim, and where it lies in each tensor.
typedef struct dim_t {
  int64_t in, taps, out;  // extents
  int64_t stride, low, high, spread, dilation, reversed;
  int64_t in_dim, tap_dim, out_dim;
} dim_t;

static pestle_value_t* operand(const pestle_node_t* node, size_t index) {
  return pestle_node_operand(node, index);
}

static int64_t entry(pestle_i64s_t list, size_t i, int64_t otherwise) {
  return i < list.count ? list.data[i] : otherwise;
}

// The spatial dims of |n|; the result: how many there are.
static size_t read_dims(const pestle_node_t* n, dim_t* dims) {
  pestle_i64s_t in = PESTLE_NODE_I64S(n, input_spatial_dimensions);
  pestle_i64s_t taps = PESTLE_NODE_I64S(n, kernel_spatial_dimensions);
  pestle_i64s_t out = PESTLE_NODE_I64S(n, output_spatial_dimensions);
  pestle_i64s_t padding = PESTLE_NODE_I64S(n, padding);
  for (size_t i = 0; i < in.count; ++i) {
    dims[i] = (dim_t){
        .in = operand(n, 0)->type->dims[in.data[i]],
        .taps = operand(n, 1)->type->dims[taps.data[i]],
        .out = n->results[0].type->dims[out.data[i]],
        .stride = entry(PESTLE_NODE_I64S(n, window_strides), i, 1),
        .low = entry(padding, 2 * i, 0),
        .high = entry(padding, 2 * i + 1, 0),
        .spread = entry(PESTLE_NODE_I64S(n, lhs_dilation), i, 1),
        .dilation = entry(PESTLE_NODE_I64S(n, rhs_dilation), i, 1),
        .reversed = entry(PESTLE_NODE_I64S(n, window_reversal), i, 0),
        .in_dim = in.data[i],
        .tap_dim = taps.data[i],
        .out_dim = out.data[i],
    };
  }
  return in.count;
}

// Where batches and features lie.
typedef struct ends_t {
  int64_t in_batch, in_feature, out_batch, out_feature, tap_in, tap_out;
} ends_t;

static ends_t read_ends(const pestle_node_t* n) {
  return (ends_t){
      .in_batch = PESTLE_NODE_I64(n, input_batch_dimension),
      .in_feature = PESTLE_NODE_I64(n, input_feature_dimension),
      .out_batch = PESTLE_NODE_I64(n, output_batch_dimension),
      .out_feature = PESTLE_NODE_I64(n, output_feature_dimension),
      .tap_in = PESTLE_NODE_I64(n, kernel_input_feature_dimension),
      .tap_out = PESTLE_NODE_I64(n, kernel_output_feature_dimension),
  };
}

// A convolution of |x| by |w| as |dims| and |ends| say, else as |node| is.
static pestle_value_t* convolve(pestle_formula_t* f, const pestle_node_t* node,
                                pestle_value_t* x, pestle_value_t* w,
                                const dim_t* dims, size_t count, ends_t ends,
                                const pestle_type_t* type) {
  int64_t lists[7][MAX_SPATIAL], padding[2 * MAX_SPATIAL];
  for (size_t i = 0; i < count; ++i) {
    lists[0][i] = dims[i].stride;
    lists[1][i] = dims[i].spread;
    lists[2][i] = dims[i].dilation;
    lists[3][i] = dims[i].reversed;
    lists[4][i] = dims[i].in_dim;
    lists[5][i] = dims[i].tap_dim;
    lists[6][i] = dims[i].out_dim;
    padding[2 * i] = dims[i].low;
    padding[2 * i + 1] = dims[i].high;
  }
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64S(window_strides, lists[0], count),
      PESTLE_SET_I64S(padding, padding, 2 * count),
      PESTLE_SET_I64S(lhs_dilation, lists[1], count),
      PESTLE_SET_I64S(rhs_dilation, lists[2], count),
      PESTLE_SET_I64S(window_reversal, lists[3], count),
      PESTLE_SET_I64(input_batch_dimension, ends.in_batch),
      PESTLE_SET_I64(input_feature_dimension, ends.in_feature),
      PESTLE_SET_I64S(input_spatial_dimensions, lists[4], count),
      PESTLE_SET_I64(kernel_input_feature_dimension, ends.tap_in),
      PESTLE_SET_I64(kernel_output_feature_dimension, ends.tap_out),
      PESTLE_SET_I64S(kernel_spatial_dimensions, lists[5], count),
      PESTLE_SET_I64(output_batch_dimension, ends.out_batch),
      PESTLE_SET_I64(output_feature_dimension, ends.out_feature),
      PESTLE_SET_I64S(output_spatial_dimensions, lists[6], count),
      PESTLE_SET_I64(feature_group_count,
                     PESTLE_NODE_I64(node, feature_group_count)),
      PESTLE_SET_I64(batch_group_count,
                     PESTLE_NODE_I64(node, batch_group_count)),
  };
  pestle_value_t* operands[] = {x, w};
  return pestle_f_make(f, PESTLE_OP_CONVOLUTION, operands, 2, attrs,
                       sizeof(attrs) / sizeof(attrs[0]), type);
}

// --- Taps that meet nothing ---

// Whether tap |t| of any window lies on an element of the input.
static bool is_live(const dim_t* d, int64_t t) {
  // That of result |o| lies at o stride + from.
  int64_t from = t * d->dilation - d->low;
  int64_t first = from >= 0 ? 0 : pestle_ceil_div(-from, d->stride);
  return first < d->out && first * d->stride + from < d->in;
}

// Leaves the taps from the first to the last one that meet the input; the result:
// how many there were in front of them, or -1, as all of them do, or none.
static int64_t trim(dim_t* d) {
  if (d->spread != 1 || d->low < 0 || d->high < 0) return -1;
  int64_t first = 0, end = d->taps;
  while (first < end && !is_live(d, first))
    ++first;
  while (end > first && !is_live(d, end - 1))
    --end;
  int64_t low = d->low - first * d->dilation;
  int64_t high = d->high - (d->taps - end) * d->dilation;
  if (first == end || end - first == d->taps || low < 0 || high < 0) return -1;
  d->taps = end - first;
  d->low = low;
  d->high = high;
  if (d->taps == 1) d->dilation = 1;
  return first;
}

// What is a border away from every element of a small map, as windows with wide
// dilations have it, is multiplied by zeros of the padding alone, which ir/ref
// leaves out.
pestle_value_t* pestle_rule_convolution_dead_taps(pestle_formula_t* f,
                                                  pestle_node_t* node) {
  dim_t dims[MAX_SPATIAL];
  size_t count = read_dims(node, dims);
  pestle_value_t* w = operand(node, 1);
  int64_t start[PESTLE_MAX_RANK], limit[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < w->type->rank; ++i) {
    start[i] = 0;
    limit[i] = w->type->dims[i];
  }
  bool any = false;
  for (size_t i = 0; i < count; ++i) {
    int64_t taps = dims[i].taps, first = trim(&dims[i]);
    if (first < 0) continue;
    if (dims[i].reversed) first = taps - first - dims[i].taps;
    start[dims[i].tap_dim] = first;
    limit[dims[i].tap_dim] = first + dims[i].taps;
    any = true;
  }
  if (!any) return NULL;
  w = pestle_f_slice(f, w, start, limit, NULL);
  return convolve(f, node, operand(node, 0), w, dims, count, read_ends(node),
                  node->results[0].type);
}

// --- Dims that are left alone ---

// Whether each result along |d| reads the input's element there and no other.
static bool is_alone(const dim_t* d) {
  return d->taps == 1 && d->stride == 1 && d->low == 0 && d->high == 0 &&
         d->spread == 1;
}

// |type| without dim |at|, which becomes one with the dim in front of it.
static pestle_type_t merged(const pestle_type_t* type, int64_t at) {
  pestle_type_t out = pestle_type_make((pestle_dtype_t)type->dtype, 0, NULL);
  for (int32_t i = 0; i < type->rank; ++i) {
    if (i == at) {
      out.dims[out.rank - 1] *= type->dims[i];
    } else {
      out.dims[out.rank++] = type->dims[i];
    }
  }
  return out;
}

// |type| without dim |at|, which is 1.
static pestle_type_t dropped(const pestle_type_t* type, int64_t at) {
  pestle_type_t out = pestle_type_make((pestle_dtype_t)type->dtype, 0, NULL);
  for (int32_t i = 0; i < type->rank; ++i) {
    if (i != at) out.dims[out.rank++] = type->dims[i];
  }
  return out;
}

static void close_gap(int64_t gap, int64_t* dim) {
  if (*dim > gap) --*dim;
}

// The dim that lies behind batches or behind a dim that is left alone too, in the
// input and in the result; |count|: there is none.
static size_t find_alone(const dim_t* dims, size_t count, ends_t ends) {
  for (size_t i = 0; i < count; ++i) {
    const dim_t* d = &dims[i];
    if (!is_alone(d)) continue;
    if (ends.in_batch == d->in_dim - 1 && ends.out_batch == d->out_dim - 1) {
      return i;
    }
    for (size_t k = 0; k < count; ++k) {
      if (is_alone(&dims[k]) && dims[k].in_dim == d->in_dim - 1 &&
          dims[k].out_dim == d->out_dim - 1) {
        return i;
      }
    }
  }
  return count;
}

// A window of 1 x 3 x 3 taps is one of 3 x 3 over more images, one of 3 x 1 x 1
// one of 3 x 1 over longer rows: kernels know windows of two dims best.
pestle_value_t* pestle_rule_convolution_flat_dims(pestle_formula_t* f,
                                                  pestle_node_t* node) {
  enum { KNOWN_SPATIAL = 2 };
  dim_t dims[MAX_SPATIAL];
  size_t count = read_dims(node, dims);
  ends_t ends = read_ends(node);
  size_t gone = find_alone(dims, count, ends);
  if (count <= KNOWN_SPATIAL || gone == count ||
      PESTLE_NODE_I64(node, batch_group_count) != 1) {
    return NULL;
  }
  dim_t d = dims[gone];
  for (size_t i = 0; i < count; ++i) {
    close_gap(d.in_dim, &dims[i].in_dim);
    close_gap(d.tap_dim, &dims[i].tap_dim);
    close_gap(d.out_dim, &dims[i].out_dim);
  }
  memmove(&dims[gone], &dims[gone + 1], (count - gone - 1) * sizeof(dims[0]));
  close_gap(d.in_dim, &ends.in_feature);
  close_gap(d.in_dim, &ends.in_batch);
  close_gap(d.out_dim, &ends.out_feature);
  close_gap(d.out_dim, &ends.out_batch);
  close_gap(d.tap_dim, &ends.tap_in);
  close_gap(d.tap_dim, &ends.tap_out);
  pestle_value_t *x = operand(node, 0), *w = operand(node, 1), *y;
  pestle_type_t input = merged(x->type, d.in_dim);
  pestle_type_t window = dropped(w->type, d.tap_dim);
  pestle_type_t result = merged(node->results[0].type, d.out_dim);
  x = pestle_f_reshape_to(f, x, &input);
  w = pestle_f_reshape_to(f, w, &window);
  y = convolve(f, node, x, w, dims, count - 1, ends, &result);
  return pestle_f_reshape_to(f, y, node->results[0].type);
}

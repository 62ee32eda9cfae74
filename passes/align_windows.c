// SPDX-License-Identifier: Apache-2.0
// Images of few channels are copied to lines that have their padding, and channels
// enough for runs of 16 bytes, where the target's matrix units take windows from the
// copy engine alone: a window's pixels of one line are then channels side by side.
//
//   %0 = convolution %x, %w              %1 = pad %x        // to [32,224,230,4]
//     [32,224,224,3] x [7,7,3,64]   ->   %2 = pad %w        // to [7,7,4,64]
//     pad [[3, 3], [3, 3]]               %0 = convolution %1, %2
//                                          pad [[3, 3], [0, 0]]
//
// Seven taps of three channels are one of 28 there (codegen/template/tensorise). The
// copy of constant weights is made with the plan.
//
// Channels and features that are no whole runs are filled up with zeros, in copies, where
// the units would do much: features that are too many are cut off behind the convolution.
//
// Weights that were turned to [spatial.., in, out], and lie along either in memory, are
// read where they lie: the units take both. So are those of windows that each have a plane
// of their own, on all targets of lanes.
//
//   %1 = transpose %w, [0, 1, 3, 2]   ->   %0 = convolution %x, %w
//   %0 = convolution %x, %1                  [b,0,1,f]x[0,1,o,i]
#include <string.h>

#include "base/bits.h"
#include "passes/fold_constants.h"
#include "passes/util.h"

enum {
  RUN_BYTES = 16,
  MAX_ATTRS = 24,
  MOST_CHANNELS = 7,  // more are taken as they lie
  DEPTH = 64,         // elements of k that a step of the units' schedule has
  // So many results fill the units in many rounds, and each line of them.
  LEAST_ROWS = 1 << 16,
  LEAST_COLUMNS = 64,
  LEAST_TAPS = 24,
  // Products from which on copies of both operands are small beside them, also of a few
  // results of very many. By units of subgroups, element by element, 32 x 17 x 20 x 408 by
  // 3x3 to 145 features takes 202 us on an H200, 2 x 14 x 14 x 375 by 5x5 to 247 271.
  LEAST_PRODUCTS = 1 << 26,
  LEAST_OF_LONG = 1 << 23,
  LONG = 2048,
  LEAST_PIXELS = 64,
  // Products of f32 from which on features are whole runs: 16 x 35 x 35 x 64 by 7x7 to 171
  // features takes 1,091 us on an H200, 744 with 172.
  LEAST_PRODUCTS_F32 = 1 << 30,
  // Results that a core has vectors of.
  VECTOR_RESULTS = 1 << 12,
};

typedef struct align_t {
  pestle_pass_context_t* ctx;
  pestle_module_t* module;
  bool* changed;
} align_t;

static const pestle_type_t* type_of(const pestle_node_t* node, size_t operand) {
  return pestle_node_operand(node, operand)->type;
}

// [b, spatial.., f] x [spatial.., i, o] -> [b, spatial.., f].
static bool is_channels_last(const pestle_node_t* node, int32_t rank) {
  return pestle_pass_has_channels_last(node) &&
         PESTLE_NODE_I64(node, kernel_input_feature_dimension) == rank - 2 &&
         PESTLE_NODE_I64(node, kernel_output_feature_dimension) == rank - 1 &&
         pestle_pass_i64s_is_iota(
             PESTLE_NODE_I64S(node, kernel_spatial_dimensions));
}

// Channels with which windows that follow each other in a line begin at whole runs.
static int64_t grown_channels(const pestle_node_t* node) {
  const pestle_type_t* x = type_of(node, 0);
  int64_t run = RUN_BYTES / (int64_t)pestle_dtype_size(x->dtype);
  pestle_i64s_t steps = PESTLE_NODE_I64S(node, window_strides);
  int64_t channels = x->dims[x->rank - 1];
  while (channels * steps.data[steps.count - 1] % run)
    ++channels;
  return channels;
}

// A convolution of the units' form.
static bool has_form(const pestle_node_t* node) {
  if (node->op != PESTLE_OP_CONVOLUTION) return false;
  const pestle_type_t *x = type_of(node, 0), *w = type_of(node, 1);
  int32_t rank = x->rank;
  return rank >= 3 && rank <= 5 && x->dtype == w->dtype &&
         pestle_type_is_static(x) && pestle_type_is_static(w) &&
         is_channels_last(node, rank) && node->attr_count <= MAX_ATTRS &&
         PESTLE_NODE_I64(node, feature_group_count) == 1 &&
         PESTLE_NODE_I64(node, batch_group_count) == 1 &&
         pestle_pass_i64s_all(PESTLE_NODE_I64S(node, lhs_dilation), 1) &&
         pestle_pass_i64s_all(PESTLE_NODE_I64S(node, window_reversal), 0);
}

// And of their dtype.
static bool suits_units(const align_t* a, const pestle_node_t* node) {
  return has_form(node) &&
         pestle_pass_has_warpgroups(a->ctx, type_of(node, 0)->dtype);
}

// Of f32, whose products lanes make of runs that are copied past the registers.
static bool suits_lanes(const align_t* a, const pestle_node_t* node) {
  uint64_t needed = PESTLE_TARGET_LANES | PESTLE_TARGET_ASYNC_COPY;
  return (a->ctx->caps->flags & needed) == needed && has_form(node) &&
         type_of(node, 0)->dtype == PESTLE_F32;
}

static bool is_wanted(const align_t* a, const pestle_node_t* node) {
  if (!suits_units(a, node)) return false;
  const pestle_type_t *x = type_of(node, 0), *w = type_of(node, 1);
  const pestle_type_t* y = node->results[0].type;
  int32_t rank = x->rank;
  size_t last = (size_t)rank - 3;
  pestle_i64s_t padding = PESTLE_NODE_I64S(node, padding);
  int64_t taps = w->dims[last] * grown_channels(node), rows = 1;
  for (int32_t i = 0; i + 1 < rank; ++i)
    rows *= y->dims[i];
  return x->dims[rank - 1] <= MOST_CHANNELS && w->dims[last] > 1 &&
         PESTLE_NODE_I64S(node, rhs_dilation).data[last] == 1 &&
         padding.data[2 * last] >= 0 && padding.data[2 * last + 1] >= 0 &&
         taps >= LEAST_TAPS && taps <= DEPTH && rows >= LEAST_ROWS &&
         y->dims[rank - 1] >= LEAST_COLUMNS;
}

// |node|'s convolution of |x| and |w|, whose lines have their padding and |more|.
static pestle_value_t* convolve(pestle_formula_t* f, const pestle_node_t* node,
                                pestle_value_t* x, pestle_value_t* w,
                                int64_t more) {
  pestle_attr_t attrs[MAX_ATTRS];
  int64_t padding[2 * PESTLE_MAX_RANK];
  pestle_i64s_t own = PESTLE_NODE_I64S(node, padding);
  memcpy(attrs, node->attrs, node->attr_count * sizeof *attrs);
  memcpy(padding, own.data, own.count * sizeof *padding);
  padding[own.count - 2] = 0;
  padding[own.count - 1] = -more;
  for (uint32_t i = 0; i < node->attr_count; ++i) {
    if (attrs[i].name == PESTLE_ATTR_padding)
      attrs[i].as.i64s = (pestle_i64s_t){padding, own.count};
  }
  return pestle_f_make(f, PESTLE_OP_CONVOLUTION, (pestle_value_t*[]){x, w}, 2,
                       attrs, node->attr_count, node->results[0].type);
}

static pestle_status_t align_convolution(align_t* a, pestle_node_t* node) {
  pestle_formula_t f = pestle_formula_before(node);
  const pestle_type_t* x = type_of(node, 0);
  int32_t rank = x->rank, line = rank - 2, channel = rank - 1;
  int64_t run = RUN_BYTES / (int64_t)pestle_dtype_size(x->dtype);
  pestle_i64s_t padding = PESTLE_NODE_I64S(node, padding);
  int64_t low[PESTLE_MAX_RANK] = {0}, high[PESTLE_MAX_RANK] = {0};
  int64_t of_weights[PESTLE_MAX_RANK] = {0};
  int64_t channels = grown_channels(node);
  low[line] = padding.data[padding.count - 2];
  high[line] = padding.data[padding.count - 1];
  high[channel] = of_weights[rank - 2] = channels - x->dims[channel];
  // Lines begin at whole runs too.
  int64_t length = x->dims[line] + low[line] + high[line], more = 0;
  while ((length + more) * channels % run)
    ++more;
  high[line] += more;
  pestle_value_t* zero = pestle_f_scalar(&f, x->dtype, 0);
  pestle_value_t* image =
      pestle_f_pad(&f, pestle_node_operand(node, 0), zero, low, high, NULL);
  pestle_value_t* weights = pestle_f_pad(&f, pestle_node_operand(node, 1), zero,
                                         NULL, of_weights, NULL);
  PESTLE_TRY(f.status);
  PESTLE_TRY(pestle_pass_fold_value(a->ctx, a->module, &weights));
  pestle_value_t* y = convolve(&f, node, image, weights, more);
  PESTLE_TRY(f.status);
  pestle_pass_replace(node, &y);
  *a->changed = true;
  return NULL;
}

// --- Weights ---

// Of a feature's own plane: lanes read few of them, each again and again. With many results
// they have vectors of features, of weights too: on an H200 18 x 19 x 192 of 32 images by 3x3
// takes 11.4 us with a kernel that turns the weights and 14.0 without.
static bool is_depthwise(const align_t* a, const pestle_node_t* node) {
  const pestle_type_t* w = type_of(node, 1);
  const pestle_type_t* y = node->results[0].type;
  if (y->dims[y->rank - 1] % 2 == 0 &&
      pestle_type_count(y) >= a->ctx->caps->cores * VECTOR_RESULTS) {
    return false;
  }
  return a->ctx->caps->flags & PESTLE_TARGET_LANES &&
         w->dims[w->rank - 2] == 1 &&
         PESTLE_NODE_I64(node, feature_group_count) == w->dims[w->rank - 1];
}

static bool has_turned_weights(const align_t* a, const pestle_node_t* node) {
  if (node->op != PESTLE_OP_CONVOLUTION) return false;
  const pestle_type_t *x = type_of(node, 0), *w = type_of(node, 1);
  const pestle_node_t* turn = pestle_node_operand(node, 1)->node;
  int32_t rank = w->rank;
  if (!turn || turn->op != PESTLE_OP_TRANSPOSE || x->dtype != w->dtype ||
      node->attr_count > MAX_ATTRS || !pestle_type_is_static(w) ||
      !is_channels_last(node, rank) ||
      PESTLE_NODE_I64(node, batch_group_count) != 1) {
    return false;
  }
  if (is_depthwise(a, node)) return true;
  if (!pestle_pass_has_warpgroups(a->ctx, x->dtype) ||
      PESTLE_NODE_I64(node, feature_group_count) != 1) {
    return false;
  }
  pestle_i64s_t perm = PESTLE_NODE_I64S(turn, permutation);
  int64_t run = RUN_BYTES / (int64_t)pestle_dtype_size(w->dtype);
  for (int32_t d = rank - 2; d < rank; ++d)
    if (perm.data[d] == rank - 1) return w->dims[d] % run == 0;
  return false;
}

static pestle_status_t read_weights(align_t* a, pestle_node_t* node) {
  pestle_formula_t f = pestle_formula_before(node);
  pestle_node_t* turn = pestle_node_operand(node, 1)->node;
  pestle_i64s_t perm = PESTLE_NODE_I64S(turn, permutation);
  pestle_attr_t attrs[MAX_ATTRS];
  size_t rank = perm.count;
  memcpy(attrs, node->attrs, node->attr_count * sizeof *attrs);
  for (uint32_t i = 0; i < node->attr_count; ++i) {
    if (attrs[i].name == PESTLE_ATTR_kernel_spatial_dimensions)
      attrs[i].as.i64s = (pestle_i64s_t){perm.data, rank - 2};
    if (attrs[i].name == PESTLE_ATTR_kernel_input_feature_dimension)
      attrs[i].as.i64 = perm.data[rank - 2];
    if (attrs[i].name == PESTLE_ATTR_kernel_output_feature_dimension)
      attrs[i].as.i64 = perm.data[rank - 1];
  }
  pestle_value_t* operands[2] = {pestle_node_operand(node, 0),
                                 pestle_node_operand(turn, 0)};
  pestle_value_t* y =
      pestle_f_make(&f, PESTLE_OP_CONVOLUTION, operands, 2, attrs,
                    node->attr_count, node->results[0].type);
  PESTLE_TRY(f.status);
  pestle_pass_replace(node, &y);
  *a->changed = true;
  return NULL;
}

// --- Channels that are no whole runs ---

static int64_t rest_of(int64_t n, int64_t run) {
  return (run - n % run) % run;
}

// How many channels and features more there are to be. False: none, or it is not worth
// the copies.
static bool wants_more(const align_t* a, const pestle_node_t* node,
                       int64_t* out_channels, int64_t* out_features) {
  bool units = suits_units(a, node);
  if (!units && !suits_lanes(a, node)) return false;
  const pestle_type_t *x = type_of(node, 0), *w = type_of(node, 1);
  const pestle_type_t* y = node->results[0].type;
  int32_t last = x->rank - 1;
  int64_t run = RUN_BYTES / (int64_t)pestle_dtype_size(x->dtype);
  int64_t taps = x->dims[last], pixels = 1;
  for (int32_t i = 0; i < last; ++i) {
    pixels *= y->dims[i];
    if (i + 1 < last) taps *= w->dims[i];
  }
  *out_channels = rest_of(x->dims[last], run);
  *out_features = rest_of(y->dims[last], run);
  // Weights that are read where they lie need no runs of features, but pairs of them.
  bool as_they_lie = !*out_channels && has_turned_weights(a, node);
  if (as_they_lie && y->dims[last] % 2 == 0) *out_features = 0;
  int64_t products = pixels * taps * y->dims[last];
  if (!units) {
    return !*out_channels && *out_features && products >= LEAST_PRODUCTS_F32;
  }
  return (*out_channels || *out_features) && x->dims[last] > MOST_CHANNELS &&
         pixels >= LEAST_PIXELS && 2 * y->dims[last] > LEAST_COLUMNS &&
         products >= (taps >= LONG ? LEAST_OF_LONG : LEAST_PRODUCTS);
}

static pestle_status_t grow(align_t* a, pestle_node_t* node, int64_t channels,
                            int64_t features) {
  pestle_formula_t f = pestle_formula_before(node);
  const pestle_type_t* x = type_of(node, 0);
  pestle_type_t type = *node->results[0].type;
  int32_t last = x->rank - 1;
  int64_t of_image[PESTLE_MAX_RANK] = {0}, of_weights[PESTLE_MAX_RANK] = {0};
  int64_t count = type.dims[last];
  of_image[last] = of_weights[last - 1] = channels;
  of_weights[last] = features;
  type.dims[last] += features;
  pestle_value_t* zero = pestle_f_scalar(&f, x->dtype, 0);
  pestle_value_t* both[2] = {pestle_node_operand(node, 0),
                             pestle_node_operand(node, 1)};
  if (channels) both[0] = pestle_f_pad(&f, both[0], zero, NULL, of_image, NULL);
  both[1] = pestle_f_pad(&f, both[1], zero, NULL, of_weights, NULL);
  PESTLE_TRY(f.status);
  PESTLE_TRY(pestle_pass_fold_value(a->ctx, a->module, &both[1]));
  pestle_value_t* y = pestle_f_make(&f, PESTLE_OP_CONVOLUTION, both, 2,
                                    node->attrs, node->attr_count, &type);
  if (features) y = pestle_f_slice_axis(&f, y, last, 0, count);
  PESTLE_TRY(f.status);
  pestle_pass_replace(node, &y);
  *a->changed = true;
  return NULL;
}

static pestle_status_t align_block(void* user, pestle_module_t* module,
                                   pestle_block_t* block) {
  align_t* a = user;
  a->module = module;
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    int64_t channels, features;
    if (is_wanted(a, n)) {
      PESTLE_TRY(align_convolution(a, n));
    } else if (wants_more(a, n, &channels, &features)) {
      PESTLE_TRY(grow(a, n, channels, features));
    } else if (has_turned_weights(a, n)) {
      PESTLE_TRY(read_weights(a, n));
    }
  }
  return NULL;
}

pestle_status_t pestle_pass_align_windows(pestle_pass_context_t* ctx,
                                          pestle_module_t* module,
                                          bool* out_changed) {
  align_t a = {.ctx = ctx, .module = module, .changed = out_changed};
  if (ctx->options->numerics == PESTLE_NUMERICS_STRICT) return NULL;
  PESTLE_TRY(pestle_pass_each_block(module, align_block, &a));
  return *out_changed ? pestle_pass_dce(ctx, module, out_changed) : NULL;
}

// SPDX-License-Identifier: Apache-2.0
// A per-channel constant that multiplies a convolution with constant weights
// goes into the weights: batch norms disappear. Constants that are added become
// one term behind it, the epilogue's bias.
//
//   %0 = convolution %x, %w                 %0 = convolution %x, (%w * c)
//   %1 = add %0, b                     ->   %1 = add %0, (b * c)
//   %2 = multiply %1, c
//
// Left out under PESTLE_NUMERICS_STRICT: products are rounded elsewhere.
#include <string.h>

#include "base/half.h"
#include "base/mem.h"
#include "passes/util.h"

static pestle_value_t* operand(const pestle_node_t* node, size_t index) {
  return pestle_node_operand(node, index);
}

// One constant number a channel, read through what repeats it.
typedef struct channels_t {
  const pestle_elements_t* elements;
  int64_t count;
} channels_t;

// |value|, of the convolution's result type, is one constant a |feature|.
static bool read_channels(const pestle_value_t* value, int64_t feature,
                          channels_t* out) {
  out->count = value->type->dims[feature];
  out->elements = pestle_value_constant(value);
  if (out->elements) {
    return out->elements->splat || pestle_type_count(value->type) == out->count;
  }
  const pestle_node_t* n = value->node;
  if (!n || n->op != PESTLE_OP_BROADCAST_IN_DIM) return false;
  const pestle_type_t* from = operand(n, 0)->type;
  out->elements = pestle_value_constant(operand(n, 0));
  if (!out->elements) return false;
  if (out->elements->splat) return true;
  pestle_i64s_t dims = PESTLE_NODE_I64S(n, broadcast_dimensions);
  for (size_t i = 0; i < dims.count; ++i) {
    if (from->dims[i] != 1 && dims.data[i] != feature) return false;
  }
  return pestle_type_count(from) == out->count;
}

static double channel(const channels_t* c, int64_t index) {
  return pestle_pass_element_f64(c->elements, (size_t)index);
}

// A new rank-1 constant of x[i] * y[i] or x[i] + y[i], spread like |like|.
static pestle_value_t* make_channels(pestle_formula_t* f,
                                     const pestle_type_t* like, int64_t feature,
                                     const channels_t* x, const channels_t* y,
                                     bool sum) {
  size_t size = pestle_dtype_size(like->dtype);
  char* data = pestle_f_memory(f, size * (size_t)x->count);
  if (!data) return NULL;
  for (int64_t i = 0; i < x->count; ++i) {
    double value =
        sum ? channel(x, i) + channel(y, i) : channel(x, i) * channel(y, i);
    uint64_t bits = pestle_float_encode(like->dtype, value);
    memcpy(data + (size_t)i * size, &bits, size);
  }
  pestle_elements_t e = {pestle_type_make(like->dtype, 1, &x->count), data,
                         size * (size_t)x->count, false};
  pestle_value_t* row = pestle_f_elements(f, &e);
  return pestle_f_broadcast_to(f, row, like, &feature);
}

// |count| elements of |w| from |at| on, times |factor|, to |to|. A model has millions.
static void scale_run(const pestle_elements_t* w, size_t at, size_t count,
                      double factor, char* to) {
  pestle_dtype_t dtype = w->type.dtype;
  if (dtype == PESTLE_F32 && !w->splat) {
    const char* from = (const char*)w->data + at * sizeof(float);
    for (size_t i = 0; i < count; ++i) {
      float x;
      memcpy(&x, from + i * sizeof x, sizeof x);
      x = (float)((double)x * factor);
      memcpy(to + i * sizeof x, &x, sizeof x);
    }
    return;
  }
  size_t size = pestle_dtype_size(dtype);
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits =
        pestle_float_encode(dtype, pestle_pass_element_f64(w, at + i) * factor);
    memcpy(to + i * size, &bits, size);
  }
}

// The weights times |c| along their output feature.
static pestle_value_t* scale_weights(pestle_formula_t* f,
                                     const pestle_node_t* conv,
                                     const channels_t* c) {
  const pestle_elements_t* w = pestle_value_constant(operand(conv, 1));
  const pestle_type_t* type = &w->type;
  size_t size = pestle_dtype_size(type->dtype);
  size_t count = (size_t)pestle_type_count(type);
  int64_t axis = PESTLE_NODE_I64(conv, kernel_output_feature_dimension);
  size_t inner = 1, extent = (size_t)type->dims[axis];
  for (int32_t i = (int32_t)axis + 1; i < type->rank; ++i) {
    inner *= (size_t)type->dims[i];
  }
  char* data = pestle_f_memory(f, size * count);
  if (!data) return NULL;
  double* factors = pestle_f_memory(f, extent * sizeof *factors);
  if (!factors) return NULL;
  for (size_t i = 0; i < extent; ++i)
    factors[i] = channel(c, (int64_t)i);
  for (size_t i = 0, at = 0; at < count; i = i + 1 == extent ? 0 : i + 1) {
    scale_run(w, at, inner, factors[i], data + at * size);
    at += inner;
  }
  pestle_elements_t e = {*type, data, size * count, false};
  return pestle_f_elements(f, &e);
}

static bool is_scalable(const pestle_value_t* value) {
  const pestle_node_t* n = value->node;
  return n && n->op == PESTLE_OP_CONVOLUTION && value->use_count == 1 &&
         pestle_value_constant(operand(n, 1)) &&
         PESTLE_NODE_I64(n, batch_group_count) == 1 &&
         pestle_dtype_is(value->type->dtype, PESTLE_KIND_FLOAT) &&
         operand(n, 1)->type->dtype == value->type->dtype;
}

static pestle_value_t* scaled_convolution(pestle_formula_t* f,
                                          const pestle_node_t* conv,
                                          const channels_t* c) {
  pestle_value_t* operands[2] = {operand(conv, 0), scale_weights(f, conv, c)};
  pestle_formula_t at = *f;
  at.builder.loc = conv->loc;
  pestle_value_t* y = pestle_f_like(&at, conv, operands, conv->results[0].type);
  f->status = at.status;
  return y;
}

// |node| multiplies a convolution, or a convolution with something per channel
// added or subtracted, by |c|.
static pestle_value_t* fold_into(pestle_formula_t* f, pestle_node_t* node,
                                 size_t side) {
  pestle_value_t* inner = operand(node, side);
  const pestle_node_t* sum = inner->node;
  bool biased = sum && inner->use_count == 1 &&
                (sum->op == PESTLE_OP_ADD || sum->op == PESTLE_OP_SUBTRACT);
  pestle_value_t* conv = biased ? operand(sum, 0) : inner;
  if (!is_scalable(conv)) return NULL;
  int64_t feature = PESTLE_NODE_I64(conv->node, output_feature_dimension);
  channels_t c, bias;
  if (!read_channels(operand(node, 1 - side), feature, &c)) return NULL;
  if (biased && !read_channels(operand(sum, 1), feature, &bias)) return NULL;
  pestle_value_t* y = scaled_convolution(f, conv->node, &c);
  if (!biased) return y;
  pestle_value_t* shifted =
      make_channels(f, conv->type, feature, &bias, &c, false);
  return pestle_f_binary(f, (pestle_op_t)sum->op, y, shifted);
}

// |node| adds to a convolution with something per channel added: one sum.
static pestle_value_t* merge_terms(pestle_formula_t* f, pestle_node_t* node) {
  const pestle_node_t* inner = operand(node, 0)->node;
  if (!inner || inner->op != PESTLE_OP_ADD ||
      operand(node, 0)->use_count != 1 || !is_scalable(operand(inner, 0))) {
    return NULL;
  }
  pestle_value_t* conv = operand(inner, 0);
  int64_t feature = PESTLE_NODE_I64(conv->node, output_feature_dimension);
  channels_t x, y;
  if (!read_channels(operand(inner, 1), feature, &x) ||
      !read_channels(operand(node, 1), feature, &y)) {
    return NULL;
  }
  return pestle_f_add(f, conv,
                      make_channels(f, conv->type, feature, &x, &y, true));
}

static pestle_status_t scale_block(void* user, pestle_module_t* module,
                                   pestle_block_t* block) {
  bool* changed = user;
  (void)module;
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    pestle_formula_t f = pestle_formula_before(n);
    pestle_value_t* out = NULL;
    for (size_t side = 0; n->op == PESTLE_OP_MULTIPLY && side < 2 && !out;
         ++side) {
      out = fold_into(&f, n, side);
    }
    if (n->op == PESTLE_OP_ADD) out = merge_terms(&f, n);
    PESTLE_TRY(f.status);
    if (!out) continue;
    pestle_pass_replace(n, &out);
    *changed = true;
  }
  return NULL;
}

pestle_status_t pestle_pass_fold_scale(pestle_pass_context_t* ctx,
                                       pestle_module_t* module,
                                       bool* out_changed) {
  if (ctx->options->numerics == PESTLE_NUMERICS_STRICT) return NULL;
  PESTLE_TRY(pestle_pass_each_block(module, scale_block, out_changed));
  return *out_changed ? pestle_pass_dce(ctx, module, out_changed) : NULL;
}

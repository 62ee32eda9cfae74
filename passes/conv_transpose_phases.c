// SPDX-License-Identifier: Apache-2.0
// A convolution over an input with |s| - 1 zeros between its elements (a
// transposed one, or the gradient of one with strides) multiplies mostly by
// those zeros. Outputs whose position leaves the same rest, their phase, meet
// the same taps, and these alone are elements of the input: each phase is an
// ordinary convolution with every s-th tap.
//
//   %0 = convolution %x, %w            %0 = convolution %x, %w'
//        lhs_dilate 2, [.., 4, I, O]        lhs_dilate 1, [.., 2, I, 2 O]
//   %1 = maximum %0, 0           ->    %1 = maximum %0, 0
//                                      %2 = slice (reshape (transpose
//                                             (reshape %1)))
//
// With t = j s + s - 1 - r the tap |t| of the convolution's window, position
// q s + r - shift of its result adds up x[q - low + j] w[t] over j: phases whose
// |s| divides the window have as many taps, and become features side by side.
// Others would have to multiply by a zero weight, which would be seen where x
// is infinite: they are convolutions of their own, whose results are
// interleaved. Each element adds up the same products in the same order as
// before, so that strict numerics take it too.
//
// What follows elementwise is done before the phases are interleaved, so that
// it stays in the convolution's kernel.
//
// On a device of lanes a small convolution stays one kernel, which leaves the zeros out too
// (codegen/lower/lower_phases.c), where all phases have as many results: those beyond the end
// are cut off. It multiplies by a zero where a phase has a tap less than others, and less of
// it is one product: from some size on a kernel for each phase, another one for its weights
// and one that joins them take less time.
#include <string.h>

#include "base/bits.h"
#include "passes/fuse.h"
#include "passes/util.h"

enum {
  MAX_SPATIAL = 3,
  MAX_ATTRS = 24,
  // Convolutions that take the place of one.
  MAX_PARTS = 16,
  MAX_OPERANDS = 4,
  // Products that a core makes while a kernel starts and ends, by matrix units of 16 bits
  // and without.
  PRODUCTS_A_KERNEL_UNITS = 250000,
  PRODUCTS_A_KERNEL = 100000,
};

// One spatial dim of the convolution.
typedef struct dim_t {
  int64_t in, out, taps;  // extents of input, output, window
  int64_t step;           // lhs_dilation; 1: the dim is left as it is
  bool merged;            // its phases are features
  bool reversed;
  int64_t count;  // positions of a phase
  int64_t low;    // padding in front of them
  int64_t shift;  // interleaved positions that come before the result's first
} dim_t;

typedef struct split_t {
  pestle_formula_t* f;
  pestle_node_t* node;
  dim_t dims[MAX_SPATIAL];
  int32_t rank;  // spatial dims
  int64_t batch, groups;
  int64_t in, out;  // features of a group
  int64_t parts;    // convolutions
  int64_t phases;   // features that each has for one of the result's
  bool one_part;    // all others have no taps
} split_t;

static pestle_value_t* operand(const pestle_node_t* node, size_t index) {
  return pestle_node_operand(node, index);
}

// --- What it is ---

static bool is_channels_last(const pestle_node_t* n, int64_t spatial) {
  bool last =
      pestle_pass_has_channels_last(n) &&
      PESTLE_NODE_I64(n, kernel_input_feature_dimension) == spatial &&
      PESTLE_NODE_I64(n, kernel_output_feature_dimension) == spatial + 1;
  for (int64_t i = 0; i < spatial && last; ++i) {
    last = PESTLE_NODE_I64S(n, kernel_spatial_dimensions).data[i] == i;
  }
  return last;
}

static int64_t positive_rest(int64_t a, int64_t s) {
  int64_t rest = a % s;
  return rest < 0 ? rest + s : rest;
}

// How dim |i| is split; false: it is not.
static bool read_dim(split_t* p, int32_t i) {
  const pestle_node_t* n = p->node;
  dim_t* d = &p->dims[i];
  d->in = operand(n, 0)->type->dims[i + 1];
  d->out = n->results[0].type->dims[i + 1];
  d->taps = operand(n, 1)->type->dims[i];
  d->step = PESTLE_NODE_I64S(n, lhs_dilation).data[i];
  d->reversed = PESTLE_NODE_I64S(n, window_reversal).data[i] != 0;
  d->count = d->out;
  if (d->step == 1) return true;
  if (PESTLE_NODE_I64S(n, window_strides).data[i] != 1 ||
      (PESTLE_NODE_I64S(n, rhs_dilation).data[i] != 1 && d->taps != 1)) {
    return false;
  }
  int64_t low = PESTLE_NODE_I64S(n, padding).data[2 * i];
  d->merged = d->taps % d->step == 0;
  d->shift = positive_rest(d->step - 1 - low, d->step);
  d->low = (d->shift + low - (d->step - 1)) / d->step;
  d->count = (d->out - 1 + d->shift) / d->step + 1;
  *(d->merged ? &p->phases : &p->parts) *= d->step;
  return true;
}

// Whether |node| has zeros between its inputs, and phases instead.
static bool read_split(pestle_node_t* node, split_t* p) {
  const pestle_type_t* out = node->results[0].type;
  *p = (split_t){.node = node, .rank = out->rank - 2, .parts = 1, .phases = 1};
  if (p->rank < 1 || p->rank > MAX_SPATIAL || !pestle_type_count(out) ||
      !pestle_type_count(operand(node, 0)->type) ||
      !pestle_type_count(operand(node, 1)->type) ||
      pestle_pass_i64s_all(PESTLE_NODE_I64S(node, lhs_dilation), 1) ||
      !is_channels_last(node, p->rank) ||
      PESTLE_NODE_I64(node, batch_group_count) != 1) {
    return false;
  }
  p->batch = out->dims[0];
  p->groups = PESTLE_NODE_I64(node, feature_group_count);
  p->in = operand(node, 1)->type->dims[p->rank];
  p->out = out->dims[p->rank + 1] / p->groups;
  int64_t filled = 1;
  for (int32_t i = 0; i < p->rank; ++i) {
    if (!read_dim(p, i)) return false;
    const dim_t* d = &p->dims[i];
    if (d->step > 1 && !d->merged) {
      filled *= d->taps < d->step ? d->taps : d->step;
    }
  }
  p->one_part = p->parts > 1 && filled == 1 && p->phases == 1;
  return filled <= MAX_PARTS && (p->one_part || p->parts <= MAX_PARTS);
}

// Whether one kernel can leave the zeros out (codegen/lower/lower_phases.c).
static bool can_stay(const split_t* p) {
  pestle_i64s_t apart = PESTLE_NODE_I64S(p->node, rhs_dilation);
  for (int32_t i = 0; i < p->rank; ++i) {
    if (p->dims[i].step > 1 && (p->dims[i].reversed || apart.data[i] != 1))
      return false;
  }
  return !p->one_part;
}

// Whether products by zeros, or by taps that some phases lack, take longer than the kernels
// of the phases. Phases that are features side by side are counted by all products: they
// fill tiles of few features, and one kernel more joins them. On an H200 14 x 17 x 116 to 43
// of bf16 by 4 x 4 takes 9.3 us so and 16.4 as one kernel, 17 x 20 x 86 to 16 of f32 5.6 and
// 4.7; 18 x 19 x 188 to 56 by 5 x 5 in kernels of their own 44 and 19, 28 x 28 x 94 to 312 of
// 8 images by 3 x 3 27 and 30.
static bool pays(const split_t* p, const pestle_target_caps_t* caps) {
  if (!(caps->flags & PESTLE_TARGET_LANES)) return true;
  const pestle_type_t* out = p->node->results[0].type;
  double products = (double)pestle_type_count(out) * (double)p->in, useful = 1;
  for (int32_t i = 0; i < p->rank; ++i) {
    double taps = (double)p->dims[i].taps, step = (double)p->dims[i].step;
    products *= taps;
    useful /= step;
    if (p->parts > 1 && can_stay(p)) {
      double most = (double)pestle_ceil_div(p->dims[i].taps, p->dims[i].step);
      products *= most / taps;
      useful *= taps / most;
    }
  }
  double kernels = p->one_part || p->parts == 1 ? 1 : 2 * (double)p->parts + 1;
  double rate = pestle_dtype_size(out->dtype) == 2 ? PRODUCTS_A_KERNEL_UNITS
                                                   : PRODUCTS_A_KERNEL;
  double cores = caps->cores ? (double)caps->cores : 1;
  return products * (1 - useful) > kernels * cores * rate;
}

// --- Weights ---

// The window the right way round, and of the dims that are not merged the taps
// of |phase|.
static pestle_value_t* take_taps(const split_t* p, const int64_t* phase) {
  pestle_value_t* w = operand(p->node, 1);
  int64_t turned[MAX_SPATIAL], start[PESTLE_MAX_RANK] = {0};
  int64_t limit[PESTLE_MAX_RANK], strides[PESTLE_MAX_RANK];
  size_t count = 0;
  for (int32_t i = 0; i < w->type->rank; ++i) {
    limit[i] = w->type->dims[i];
    strides[i] = 1;
    if (i >= p->rank || p->dims[i].step == 1) continue;
    if (p->dims[i].reversed) turned[count++] = i;
    if (p->dims[i].merged) continue;
    start[i] = p->dims[i].step - 1 - phase[i];
    strides[i] = p->dims[i].step;
  }
  w = pestle_f_reverse(p->f, w, (pestle_i64s_t){turned, count});
  return pestle_f_slice(p->f, w, start, limit, strides);
}

// The merged dims' phases as features: [taps.., in, groups, phases.., out].
static pestle_value_t* merge_phases(const split_t* p, pestle_value_t* w) {
  if (!w || p->phases == 1) return w;
  const pestle_type_t whole = *w->type;
  // [taps / step, step, .., in, groups, out], the steps last first.
  pestle_type_t type = pestle_type_make(whole.dtype, 0, NULL);
  int64_t perm[PESTLE_MAX_RANK], steps[MAX_SPATIAL];
  int32_t n = 0;
  size_t count = 0;
  for (int32_t i = 0; i < p->rank; ++i) {
    int64_t step = p->dims[i].merged ? p->dims[i].step : 1;
    perm[n++] = type.rank;
    type.dims[type.rank++] = whole.dims[i] / step;
    if (step == 1) continue;
    steps[count++] = type.rank;
    type.dims[type.rank++] = step;
  }
  perm[n++] = type.rank;
  type.dims[type.rank++] = p->in;
  if (p->groups > 1) {
    perm[n++] = type.rank;
    type.dims[type.rank++] = p->groups;
  }
  for (size_t i = 0; i < count; ++i)
    perm[n++] = steps[i];
  perm[n++] = type.rank;
  type.dims[type.rank++] = p->out;
  w = pestle_f_reshape_to(p->f, w, &type);
  w = pestle_f_reverse(p->f, w, (pestle_i64s_t){steps, count});
  w = pestle_f_transpose(p->f, w, perm);
  pestle_type_t flat = pestle_type_make(whole.dtype, p->rank, type.dims);
  for (int32_t i = 0; i < p->rank; ++i)
    flat.dims[i] = type.dims[perm[i]];
  flat.dims[flat.rank++] = p->in;
  flat.dims[flat.rank++] = p->groups * p->phases * p->out;
  return pestle_f_reshape_to(p->f, w, &flat);
}

// --- Convolutions ---

// The type of one part's result.
static pestle_type_t part_type(const split_t* p, pestle_dtype_t dtype) {
  pestle_type_t type = pestle_type_make(dtype, 0, NULL);
  type.dims[type.rank++] = p->batch;
  for (int32_t i = 0; i < p->rank; ++i) {
    type.dims[type.rank++] = p->dims[i].count;
  }
  type.dims[type.rank++] = p->groups * p->phases * p->out;
  return type;
}

// Taps that |phase| has in dim |i|.
static int64_t taps_of(const split_t* p, int32_t i, const int64_t* phase) {
  const dim_t* d = &p->dims[i];
  if (d->step == 1) return d->taps;
  if (d->merged) return d->taps / d->step;
  int64_t first = d->step - 1 - phase[i];
  return first < d->taps ? (d->taps - first + d->step - 1) / d->step : 0;
}

static pestle_value_t* make_part(const split_t* p, const int64_t* phase) {
  pestle_type_t type = part_type(p, p->node->results[0].type->dtype);
  int64_t ones[MAX_SPATIAL], dilate[MAX_SPATIAL], turned[MAX_SPATIAL];
  int64_t padding[2 * MAX_SPATIAL];
  for (int32_t i = 0; i < p->rank; ++i) {
    const dim_t* d = &p->dims[i];
    bool split = d->step > 1;
    int64_t taps = taps_of(p, i, phase);
    if (!taps) return pestle_f_number(p->f, &type, 0);
    ones[i] = 1;
    dilate[i] = split ? 1 : PESTLE_NODE_I64S(p->node, rhs_dilation).data[i];
    turned[i] = !split && d->reversed;
    memcpy(&padding[2 * i], &PESTLE_NODE_I64S(p->node, padding).data[2 * i],
           2 * sizeof(int64_t));
    if (!split) continue;
    padding[2 * i] = d->low;
    padding[2 * i + 1] = d->count - 1 + taps - d->in - d->low;
  }
  pestle_value_t* w = merge_phases(p, take_taps(p, phase));
  pestle_value_t* operands[2] = {operand(p->node, 0), w};
  pestle_attr_t attrs[MAX_ATTRS];
  if (p->node->attr_count > MAX_ATTRS) {
    return pestle_f_fail(
        p->f, PESTLE_ERROR(INTERNAL, "a convolution has too many attributes"));
  }
  memcpy(attrs, p->node->attrs, p->node->attr_count * sizeof(attrs[0]));
  for (uint32_t i = 0; i < p->node->attr_count; ++i) {
    size_t n = (size_t)p->rank;
    if (attrs[i].name == PESTLE_ATTR_lhs_dilation)
      attrs[i].as.i64s = (pestle_i64s_t){ones, n};
    if (attrs[i].name == PESTLE_ATTR_rhs_dilation)
      attrs[i].as.i64s = (pestle_i64s_t){dilate, n};
    if (attrs[i].name == PESTLE_ATTR_window_reversal)
      attrs[i].as.i64s = (pestle_i64s_t){turned, n};
    if (attrs[i].name == PESTLE_ATTR_padding)
      attrs[i].as.i64s = (pestle_i64s_t){padding, 2 * n};
  }
  return pestle_f_make(p->f, PESTLE_OP_CONVOLUTION, operands, 2, attrs,
                       p->node->attr_count, &type);
}

// The next phase of the dims that are not merged, last dim fastest.
static void next_phase(const split_t* p, int64_t* phase) {
  for (int32_t i = p->rank; i-- > 0;) {
    if (p->dims[i].step == 1 || p->dims[i].merged) continue;
    if (++phase[i] < p->dims[i].step) return;
    phase[i] = 0;
  }
}

// --- What follows ---

// |value|, which repeats one number a feature, for the features of the phases.
// NULL: it is something else.
static pestle_value_t* repeat_features(const split_t* p,
                                       pestle_value_t* value) {
  pestle_type_t type = part_type(p, value->type->dtype);
  const pestle_elements_t* e = pestle_value_constant(value);
  if (e && e->splat) {
    pestle_elements_t wide = *e;
    wide.type = type;
    return pestle_f_elements(p->f, &wide);
  }
  const pestle_node_t* n = value->node;
  int64_t last = p->rank + 1, feature = last, count = 1;
  for (; n && n->op == PESTLE_OP_TRANSPOSE; n = operand(n, 0)->node) {
    feature = PESTLE_NODE_I64S(n, permutation).data[feature];
  }
  if (!n || n->op != PESTLE_OP_BROADCAST_IN_DIM) return NULL;
  pestle_value_t* x = operand(n, 0);
  pestle_i64s_t dims = PESTLE_NODE_I64S(n, broadcast_dimensions);
  for (size_t i = 0; i < dims.count; ++i) {
    if (x->type->dims[i] != 1 && dims.data[i] != feature) return NULL;
    count *= x->type->dims[i];
  }
  if (count == 1) {
    x = pestle_f_reshape(p->f, x, 0, NULL);
    return pestle_f_broadcast_to(p->f, x, &type, NULL);
  }
  int64_t in[2] = {p->groups, p->out};
  int64_t wide[3] = {p->groups, p->phases, p->out};
  int64_t flat = p->groups * p->phases * p->out;
  x = pestle_f_reshape(p->f, x, 2, in);
  x = pestle_f_broadcast(p->f, x, 3, wide, PESTLE_I64S(0, 2));
  x = pestle_f_reshape(p->f, x, 1, &flat);
  return pestle_f_broadcast_to(p->f, x, &type, &last);
}

// Whether the phases can go on through |n|, the only reader of |of|; |out| are
// its operands then.
static bool operands_of(const split_t* p, const pestle_node_t* n,
                        const pestle_value_t* of, pestle_value_t** out) {
  if (!pestle_fuse_is_elementwise(n) || n->region_count ||
      n->result_count != 1 || n->operand_count > MAX_OPERANDS ||
      n->op == PESTLE_OP_QUANTIZE || n->op == PESTLE_OP_DEQUANTIZE ||
      n->op == PESTLE_OP_BATCH_NORM_INFERENCE ||
      n->op == PESTLE_OP_BITCAST_CONVERT || n->block != p->node->block ||
      !pestle_pass_same_dims(n->results[0].type, of->type)) {
    return false;
  }
  for (uint32_t i = 0; i < n->operand_count; ++i) {
    out[i] = operand(n, i);
    if (out[i] == of || !out[i]->type->rank) continue;
    if (!pestle_pass_same_dims(out[i]->type, of->type)) return false;
    out[i] = repeat_features(p, out[i]);
    if (!out[i]) return false;
  }
  return true;
}

// Does what follows the convolution elementwise to its parts; |*last| is the
// last op that was taken.
static void take_followers(split_t* p, pestle_value_t** parts,
                           pestle_node_t** last) {
  for (;;) {
    pestle_value_t* of = &(*last)->results[0];
    if (of->use_count != 1) return;
    pestle_node_t* n = of->uses->user;
    pestle_value_t* operands[MAX_OPERANDS];
    p->f->builder = pestle_builder_before(n);
    if (!operands_of(p, n, of, operands)) return;
    pestle_type_t type = part_type(p, n->results[0].type->dtype);
    for (int64_t i = 0; i < p->parts; ++i) {
      pestle_value_t* now[MAX_OPERANDS];
      for (uint32_t o = 0; o < n->operand_count; ++o) {
        now[o] = operands[o] == of ? parts[i] : operands[o];
      }
      parts[i] = pestle_f_like(p->f, n, now, &type);
    }
    *last = n;
  }
}

// --- The result ---

// [batch * q0, q1.., parts, features] of all parts.
static pestle_value_t* join_parts(const split_t* p, pestle_value_t** parts) {
  pestle_type_t type = {.rank = 0};
  type.dims[type.rank++] = p->batch * p->dims[0].count;
  for (int32_t i = 1; i < p->rank; ++i) {
    type.dims[type.rank++] = p->dims[i].count;
  }
  type.dims[type.rank++] = 1;
  type.dims[type.rank++] = p->groups * p->phases * p->out;
  for (int64_t i = 0; i < p->parts; ++i) {
    parts[i] = pestle_f_reshape_to(p->f, parts[i], &type);
  }
  return p->parts == 1
             ? parts[0]
             : pestle_f_concatenate(p->f, parts, (size_t)p->parts, p->rank);
}

// Puts the phases between each other and cuts out what is asked for.
static pestle_value_t* interleave(const split_t* p, pestle_value_t** parts) {
  pestle_value_t* x = join_parts(p, parts);
  if (!x) return NULL;
  pestle_type_t type = pestle_type_make(x->type->dtype, p->rank, x->type->dims);
  int64_t perm[PESTLE_MAX_RANK], at[MAX_SPATIAL] = {0}, group = -1;
  int32_t n = 0;
  for (int pass = 0; pass < 2; ++pass) {
    for (int32_t i = 0; i < p->rank; ++i) {
      if (p->dims[i].step == 1 || p->dims[i].merged != (pass == 1)) continue;
      at[i] = type.rank;
      type.dims[type.rank++] = p->dims[i].step;
    }
    if (pass || p->groups == 1) continue;
    group = type.rank;
    type.dims[type.rank++] = p->groups;
  }
  type.dims[type.rank++] = p->out;
  for (int32_t i = 0; i < p->rank; ++i) {
    perm[n++] = i;
    if (at[i]) perm[n++] = at[i];
  }
  if (group >= 0) perm[n++] = group;
  perm[n++] = type.rank - 1;
  x = pestle_f_reshape_to(p->f, x, &type);
  x = pestle_f_transpose(p->f, x, perm);
  pestle_type_t whole = *p->node->results[0].type;
  int64_t start[PESTLE_MAX_RANK] = {0}, limit[PESTLE_MAX_RANK];
  int64_t strides[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < whole.rank; ++i) {
    bool inner = i > 0 && i <= p->rank && p->dims[i - 1].step > 1;
    strides[i] = 1;
    if (inner) start[i] = p->dims[i - 1].shift;
    limit[i] = start[i] + whole.dims[i];
    if (inner) whole.dims[i] = p->dims[i - 1].count * p->dims[i - 1].step;
  }
  x = pestle_f_reshape_to(p->f, x, &whole);
  return pestle_f_slice(p->f, x, start, limit, strides);
}

// The only phase that has taps, with zeros between its elements.
static pestle_value_t* spread(const split_t* p, pestle_value_t* x,
                              const int64_t* phase) {
  int64_t low[PESTLE_MAX_RANK] = {0}, high[PESTLE_MAX_RANK] = {0};
  int64_t between[PESTLE_MAX_RANK] = {0};
  for (int32_t i = 0; i < p->rank; ++i) {
    const dim_t* d = &p->dims[i];
    if (d->step == 1) continue;
    low[i + 1] = phase[i] - d->shift;
    between[i + 1] = d->step - 1;
    high[i + 1] = d->out - (d->count - 1) * d->step - 1 - low[i + 1];
  }
  pestle_dtype_t dtype = p->node->results[0].type->dtype;
  return pestle_f_pad(p->f, x, pestle_f_scalar(p->f, dtype, 0), low, high,
                      between);
}

// --- The pass ---

static void remark(pestle_remarks_t* remarks, const split_t* p) {
  pestle_remarks_add_on(
      remarks, "conv_transpose_phases", p->node, "phases",
      p->one_part ? "most of its results meet no element of the input: the "
                    "others alone are computed"
      : p->parts == 1
          ? "the zeros between its inputs are left out: each phase of its "
            "results is so many features more of one convolution"
          : "the zeros between its inputs are left out: phases of its results "
            "that meet fewer taps are convolutions of their own");
}

static pestle_status_t split(split_t* p, pestle_node_t** last) {
  int64_t phase[MAX_SPATIAL] = {0};
  pestle_value_t *parts[MAX_PARTS], *out;
  if (p->one_part) {
    // The only tap is at the step's end; where the result ends before that, the
    // last position of the phase is not asked for.
    for (int32_t i = 0; i < p->rank; ++i) {
      dim_t* d = &p->dims[i];
      phase[i] = d->step - 1;
      int64_t reach = d->out - 1 + d->shift - phase[i];
      if (reach >= 0) d->count = reach / d->step + 1;
    }
    out = spread(p, make_part(p, phase), phase);
  } else {
    for (int64_t i = 0; i < p->parts; ++i, next_phase(p, phase)) {
      parts[i] = make_part(p, phase);
    }
    PESTLE_TRY(p->f->status);
    take_followers(p, parts, last);
    p->f->builder = pestle_builder_before(*last);
    out = interleave(p, parts);
  }
  PESTLE_TRY(p->f->status);
  pestle_pass_replace(*last, &out);
  return NULL;
}

// As many results of each phase, of one kernel, and what is asked for of them.
static pestle_status_t round_up(split_t* p, bool* changed) {
  pestle_type_t type = *p->node->results[0].type;
  int64_t padding[2 * MAX_SPATIAL], start[PESTLE_MAX_RANK] = {0};
  int64_t ones[PESTLE_MAX_RANK];
  pestle_attr_t attrs[MAX_ATTRS];
  const pestle_node_t* node = p->node;
  bool more = false;
  for (int32_t i = 0; i < p->rank; ++i) {
    const dim_t* d = &p->dims[i];
    int64_t rest = positive_rest(-d->out, d->step);
    memcpy(&padding[2 * i], &PESTLE_NODE_I64S(node, padding).data[2 * i],
           2 * sizeof(int64_t));
    padding[2 * i + 1] += rest;
    type.dims[i + 1] += rest;
    more = more || rest;
  }
  if (!more || !can_stay(p) || node->attr_count > MAX_ATTRS) return NULL;
  memcpy(attrs, node->attrs, node->attr_count * sizeof(attrs[0]));
  for (uint32_t i = 0; i < node->attr_count; ++i) {
    if (attrs[i].name == PESTLE_ATTR_padding)
      attrs[i].as.i64s = (pestle_i64s_t){padding, 2 * (size_t)p->rank};
  }
  for (int32_t i = 0; i < type.rank; ++i)
    ones[i] = 1;
  pestle_formula_t f = pestle_formula_before(p->node);
  pestle_value_t* operands[2] = {operand(node, 0), operand(node, 1)};
  pestle_value_t* y = pestle_f_make(&f, PESTLE_OP_CONVOLUTION, operands, 2,
                                    attrs, node->attr_count, &type);
  y = pestle_f_slice(&f, y, start, node->results[0].type->dims, ones);
  PESTLE_TRY(f.status);
  pestle_pass_replace(p->node, &y);
  *changed = true;
  return NULL;
}

typedef struct split_pass_t {
  pestle_remarks_t* remarks;
  const pestle_target_caps_t* caps;
  bool changed;
} split_pass_t;

static pestle_status_t split_block(void* user, pestle_module_t* module,
                                   pestle_block_t* block) {
  split_pass_t* s = user;
  (void)module;
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    split_t p;
    if (n->op != PESTLE_OP_CONVOLUTION || !read_split(n, &p)) continue;
    if (!pays(&p, s->caps)) {
      pestle_remarks_add_on(
          s->remarks, "conv_transpose_phases", n, "whole",
          can_stay(&p) ? "one kernel makes all phases of its results: that "
                         "takes less time than more kernels would"
                       : "the zeros between its inputs are multiplied: that "
                         "takes less time than more kernels would");
      PESTLE_TRY(round_up(&p, &s->changed));
      continue;
    }
    remark(s->remarks, &p);
    pestle_formula_t f = pestle_formula_before(n);
    pestle_node_t* last = n;
    p.f = &f;
    PESTLE_TRY(split(&p, &last));
    if (last == next) next = n->next;
    s->changed = true;
  }
  return NULL;
}

pestle_status_t pestle_pass_conv_transpose_phases(pestle_pass_context_t* ctx,
                                                  pestle_module_t* module,
                                                  bool* out_changed) {
  split_pass_t s = {.remarks = ctx->remarks, .caps = ctx->caps};
  PESTLE_TRY(pestle_pass_each_block(module, split_block, &s));
  if (s.changed) PESTLE_TRY(pestle_pass_dce(ctx, module, &s.changed));
  *out_changed = s.changed;
  return NULL;
}

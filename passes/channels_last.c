// SPDX-License-Identifier: Apache-2.0
// Every convolution works on [batch, spatial..., feature] with weights
// [spatial..., in, out]: the innermost axis is what kernels vectorise.
//
//   %0 = convolution %x, %w            %0 = transpose %x    // to b01f
//        [b,f,0,1]x[o,i,0,1]     ->    %1 = convolution %0, %w'
//   %1 = maximum %0, 0                 %2 = maximum %1, 0
//                                      %3 = transpose %2    // to bf01
//
// The transposes behind convolutions are pushed on, through everything that
// can work in either layout, until they meet their inverse in front of another
// convolution. What is left stands where data enters or leaves such a region.
// Weights are constants: their transposes are folded.
#include "passes/channels_last.h"

#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "ir/conv.h"

static pestle_value_t* operand(const pestle_node_t* node, size_t index) {
  return pestle_node_operand(node, index);
}

pestle_value_t* pestle_layout_transpose(pestle_formula_t* f, pestle_value_t* x,
                                        const int64_t* perm) {
  int64_t both[PESTLE_MAX_RANK];
  if (!x) return NULL;
  memcpy(both, perm, (size_t)x->type->rank * sizeof(both[0]));
  const pestle_node_t* n = x->node;
  // Two in a row are one, and often none.
  if (n && n->op == PESTLE_OP_TRANSPOSE && n->scratch == PESTLE_MOVABLE) {
    pestle_i64s_t first = PESTLE_NODE_I64S(n, permutation);
    for (size_t i = 0; i < first.count; ++i)
      both[i] = first.data[perm[i]];
    x = operand(n, 0);
  }
  pestle_value_t* y = pestle_f_transpose(f, x, both);
  if (y && y != x) y->node->scratch = PESTLE_MOVABLE;
  return y;
}

// --- Convolutions ---

typedef struct layout_t {
  int64_t lhs[PESTLE_MAX_RANK], rhs[PESTLE_MAX_RANK], out[PESTLE_MAX_RANK];
  int32_t rank;
} layout_t;

// The permutations from the convolution's own layouts to channels-last.
static layout_t read_layout(const pestle_node_t* node) {
  layout_t l = {.rank = node->results[0].type->rank};
  pestle_i64s_t in = PESTLE_NODE_I64S(node, input_spatial_dimensions);
  pestle_i64s_t kernel = PESTLE_NODE_I64S(node, kernel_spatial_dimensions);
  pestle_i64s_t out = PESTLE_NODE_I64S(node, output_spatial_dimensions);
  l.lhs[0] = PESTLE_NODE_I64(node, input_batch_dimension);
  l.out[0] = PESTLE_NODE_I64(node, output_batch_dimension);
  for (size_t i = 0; i < in.count; ++i) {
    l.lhs[i + 1] = in.data[i];
    l.out[i + 1] = out.data[i];
    l.rhs[i] = kernel.data[i];
  }
  l.lhs[l.rank - 1] = PESTLE_NODE_I64(node, input_feature_dimension);
  l.out[l.rank - 1] = PESTLE_NODE_I64(node, output_feature_dimension);
  l.rhs[l.rank - 2] = PESTLE_NODE_I64(node, kernel_input_feature_dimension);
  l.rhs[l.rank - 1] = PESTLE_NODE_I64(node, kernel_output_feature_dimension);
  return l;
}

static bool is_iota(const int64_t* perm, int32_t rank) {
  return pestle_pass_i64s_is_iota((pestle_i64s_t){perm, (size_t)rank});
}

static void set_attr_i64(pestle_attr_t* attrs, size_t count,
                         pestle_attr_name_t name, int64_t value) {
  for (size_t i = 0; i < count; ++i) {
    if (attrs[i].name == name) attrs[i].as.i64 = value;
  }
}

static void set_attr_i64s(pestle_attr_t* attrs, size_t count,
                          pestle_attr_name_t name, const int64_t* data,
                          size_t size) {
  for (size_t i = 0; i < count; ++i) {
    if (attrs[i].name == name) attrs[i].as.i64s = (pestle_i64s_t){data, size};
  }
}

enum {
  MAX_ATTRS = 24,
  // Of so few input features a line of a plane holds more than one of pixels.
  FEW_FEATURES = 4,
  // Of lanes along the width one of so many may idle at its end.
  FEW_IDLE = 8,
  // Registers with which a tile is worth windows that begin anywhere: measured, the
  // 7x7 below by the 16 of AVX2 4.0 ms turned, 4.6 by planes.
  MANY_REGISTERS = 32,
  // Elementwise steps between a convolution and the module's end.
  MOST_STEPS = 8,
  // Vectors that a plane has, so that its last one counts for little.
  PLANE_VECTORS = 4,
  // Products of a result from which on turning it counts for little: turning 16
  // results takes 5 cycles, their products by lanes of features, 6 of 16, 1.3 a tap, by
  // lanes along a width of 28 0.6.
  // Taps of each plane that are worth turning it.
  TURNED_TAPS = 16,
  MANY_TAPS = 16,
  // Products of a point convolution up to which turning its operands and its result, three
  // kernels, takes longer than it does: 8 x 14 x 14 x 24 to 408 features 9.6 us on an H200,
  // torch's one kernel 4.1.
  MOST_POINT_PRODUCTS = 1 << 25,
  // The same of f32: 2 x 35 x 35 x 119 to 191 features 16.2 us, 13.6 as it lies.
  MOST_POINT_PRODUCTS_F32 = 1 << 26,
  // The same of a convolution of f32 whose results lanes share k for, with a window.
  MOST_SHARED_PRODUCTS = 1 << 23,
  LEAST_SHARED_TAPS = 128,
};

// Whether a transpose that could be pushed on is in front of |node|.
static bool comes_turned(const pestle_node_t* node) {
  const pestle_node_t* x = pestle_node_operand(node, 0)->node;
  return x && x->op == PESTLE_OP_TRANSPOSE && x->scratch == PESTLE_MOVABLE;
}

// Bytes of the runs, at most 16, that |count| elements side by side are.
static int64_t run_bytes(const pestle_type_t* type, int64_t count) {
  return pestle_gcd(16, count * (int64_t)pestle_dtype_size(type->dtype));
}

// Whether it is the gradient by the weights of a convolution of channels last: those are its
// batch, innermost, and the images are its features. A GPU's lanes copy runs of the channels
// as they lie, where images would not be longer ones.
static bool keeps_channels(const pestle_node_t* node, const layout_t* l) {
  const pestle_type_t* x = pestle_node_operand(node, 0)->type;
  int64_t batch = l->lhs[0], images = x->dims[l->lhs[l->rank - 1]];
  int64_t bytes = run_bytes(x, x->dims[batch]);
  return batch == l->rank - 1 && bytes >= 4 && bytes > run_bytes(x, images) &&
         pestle_pass_i64s_all(PESTLE_NODE_I64S(node, lhs_dilation), 1) &&
         PESTLE_NODE_I64(node, feature_group_count) == 1 &&
         PESTLE_NODE_I64(node, batch_group_count) == 1;
}

// Whether the input may stay as it is: where a CPU has lanes along the features
// of the result, single elements of the input are repeated, and where they lie
// does not matter. With few features the copy into a padded box is along the
// width then, by whole vectors.
static bool keeps_input(const pestle_node_t* node, const layout_t* l,
                        const pestle_target_caps_t* caps) {
  const pestle_value_t* x = pestle_node_operand(node, 0);
  if (comes_turned(node)) return false;
  if (caps->flags & PESTLE_TARGET_LANES) return keeps_channels(node, l);
  return x->type->dims[l->lhs[l->rank - 1]] <= FEW_FEATURES &&
         l->lhs[l->rank - 1] == 1 && l->lhs[0] == 0 &&
         node->results[0].type->dims[l->out[l->rank - 1]] > FEW_FEATURES &&
         PESTLE_NODE_I64(node, feature_group_count) == 1 &&
         PESTLE_NODE_I64(node, batch_group_count) == 1;
}

// --- Convolutions that stand alone ---

// Whether |v| is computed from other values, so that it may lie turned.
static bool is_computed(const pestle_value_t* v) {
  while (v->node && (v->node->op == PESTLE_OP_BROADCAST_IN_DIM ||
                     v->node->op == PESTLE_OP_RESHAPE)) {
    v = pestle_node_operand(v->node, 0);
  }
  return v->node && !pestle_pass_is_stored(v->node);
}

// Whether |v| becomes the module's result by steps that are done element by
// element, and meets nothing on its way that could lie turned: turned itself it
// would only be turned back.
static bool only_leaves(const pestle_value_t* v, int depth) {
  if (depth == 0 || !v->uses) return false;
  for (const pestle_use_t* u = v->uses; u; u = u->next) {
    const pestle_node_t* n = u->user;
    if (pestle_pass_is_terminator(n)) continue;
    bool elementwise =
        pestle_op_is_scalar((pestle_op_t)n->op) || n->op == PESTLE_OP_CONVERT;
    if (!elementwise || n->result_count != 1) return false;
    for (uint32_t i = 0; i < n->operand_count; ++i) {
      const pestle_value_t* x = pestle_node_operand(n, i);
      if (x != v && is_computed(x)) return false;
    }
    if (!only_leaves(&n->results[0], depth - 1)) return false;
  }
  return true;
}

// Whether the spatial dims lie behind the others.
static bool has_planes(const layout_t* l) {
  for (int64_t i = 1; i < l->rank - 1; ++i) {
    if (l->lhs[i] != i + 1 || l->out[i] != i + 1) return false;
  }
  return true;
}

// And batches in front of features.
static bool is_planar(const layout_t* l) {
  return has_planes(l) && l->lhs[0] == 0 && l->out[0] == 0;
}

// Whether its kernel works on planes as well as on features: lanes go along the
// width where a feature is made of one plane, along all of a plane where there
// is one tap. Measured, one thread of a Sapphire Rapids: depthwise 3x3 of 144
// features at 56 x 56 858 us turned at both ends, 212 as it lies; 1x1 of 64 to
// 256 features 1410, 811; 7x7 with strides of 3 to 64 at 224 x 224 2350, 1820.
static bool suits_planes(const pestle_node_t* node, const layout_t* l,
                         const pestle_target_caps_t* caps) {
  const pestle_type_t* x = pestle_node_operand(node, 0)->type;
  const pestle_type_t* w = pestle_node_operand(node, 1)->type;
  const pestle_type_t* y = node->results[0].type;
  int64_t features = y->dims[1], plane = 1;
  int64_t width = y->dims[l->rank - 1];
  int64_t lanes = caps->vector_bytes / (int64_t)sizeof(float);
  bool depthwise = PESTLE_NODE_I64(node, feature_group_count) == features &&
                   x->dims[1] == features;
  bool point = PESTLE_NODE_I64(node, feature_group_count) == 1;
  if (y->dtype != PESTLE_F32 || x->dtype != PESTLE_F32 ||
      PESTLE_NODE_I64(node, batch_group_count) != 1 ||
      !pestle_pass_i64s_all(PESTLE_NODE_I64S(node, lhs_dilation), 1)) {
    return false;
  }
  for (int32_t i = 0; i + 2 < l->rank; ++i) {
    plane *= y->dims[i + 2];
    point =
        point && w->dims[l->rhs[i]] == 1 && y->dims[i + 2] == x->dims[i + 2];
  }
  // Half of the lanes have work at least.
  int64_t vectors = lanes ? (width + lanes - 1) / lanes : 0;
  if (!pestle_pass_i64s_all(PESTLE_NODE_I64S(node, window_strides), 1)) {
    return caps->vector_registers >= MANY_REGISTERS && l->rank == 4 &&
           pestle_conv_phases(node) > 1 && keeps_input(node, l, caps) &&
           vectors * lanes - width <= width / FEW_IDLE;
  }
  if (depthwise) return l->rank == 4 && 2 * width >= vectors * lanes;
  return point && plane >= PLANE_VECTORS * lanes;
}

// Whether each feature is made of one plane, by windows that begin anywhere: lanes of a
// GPU go along planes as well as along features.
static bool is_of_planes(const pestle_node_t* node) {
  const pestle_type_t* x = pestle_node_operand(node, 0)->type;
  int64_t features = node->results[0].type->dims[1];
  return PESTLE_NODE_I64(node, feature_group_count) == features &&
         x->dims[1] == features &&
         PESTLE_NODE_I64(node, batch_group_count) == 1 &&
         pestle_conv_phases(node) == 1 &&
         pestle_pass_i64s_all(PESTLE_NODE_I64S(node, lhs_dilation), 1);
}

// Whether it is a product of few matrices [out, in] x [in, pixels] of f16, bf16 or f32, whose
// operands a GPU's subgroups take as they lie.
static bool is_small_point(const pestle_node_t* node, const layout_t* l,
                           const pestle_target_caps_t* caps) {
  const pestle_type_t* x = pestle_node_operand(node, 0)->type;
  const pestle_type_t* w = pestle_node_operand(node, 1)->type;
  const pestle_type_t* y = node->results[0].type;
  for (int32_t i = 0; i + 2 < l->rank; ++i)
    if (w->dims[l->rhs[i]] != 1) return false;
  bool half = x->dtype == PESTLE_F16 || x->dtype == PESTLE_BF16;
  return (half ? caps->intrinsic_count > 0 : x->dtype == PESTLE_F32) &&
         PESTLE_NODE_I64(node, feature_group_count) == 1 &&
         PESTLE_NODE_I64(node, batch_group_count) == 1 &&
         pestle_pass_i64s_all(PESTLE_NODE_I64S(node, window_strides), 1) &&
         pestle_type_is_static(x) && pestle_type_is_static(w) &&
         pestle_pass_i64s_all(PESTLE_NODE_I64S(node, lhs_dilation), 1) &&
         pestle_pass_i64s_all(PESTLE_NODE_I64S(node, padding), 0) &&
         pestle_type_count(y) * x->dims[1] <=
             (half ? MOST_POINT_PRODUCTS : MOST_POINT_PRODUCTS_F32);
}

// Products of each result.
static int64_t taps_of(const pestle_node_t* node, const layout_t* l) {
  const pestle_type_t* w = pestle_node_operand(node, 1)->type;
  int64_t taps = w->dims[l->rhs[l->rank - 2]];
  for (int32_t i = 0; i + 2 < l->rank; ++i)
    taps *= w->dims[l->rhs[i]];
  return taps;
}

// Whether it is a product of f32 of few results and a long k, which subgroups share
// wherever its elements lie.
static bool is_small_shared(const pestle_node_t* node, const layout_t* l) {
  const pestle_type_t* x = pestle_node_operand(node, 0)->type;
  const pestle_type_t* y = node->results[0].type;
  return x->dtype == PESTLE_F32 &&
         PESTLE_NODE_I64(node, feature_group_count) == 1 &&
         PESTLE_NODE_I64(node, batch_group_count) == 1 &&
         pestle_type_is_static(x) && pestle_type_is_static(y) &&
         pestle_pass_i64s_all(PESTLE_NODE_I64S(node, lhs_dilation), 1) &&
         taps_of(node, l) >= LEAST_SHARED_TAPS &&
         pestle_type_count(y) * taps_of(node, l) <= MOST_SHARED_PRODUCTS;
}

static bool stays_planar(const pestle_node_t* node, const layout_t* l,
                         const pestle_target_caps_t* caps) {
  bool has_lanes = caps->flags & PESTLE_TARGET_LANES;
  bool suits = has_lanes ? is_of_planes(node) || is_small_point(node, l, caps)
                         : suits_planes(node, l, caps);
  suits = (suits && is_planar(l)) ||
          (has_lanes && is_small_shared(node, l) && has_planes(l));
  return suits && !comes_turned(node) &&
         only_leaves(&node->results[0], MOST_STEPS);
}

// Whether its windows are those that Winograd's algorithm has a form for.
static bool suits_winograd(const pestle_node_t* node, const layout_t* l) {
  const pestle_type_t* w = pestle_node_operand(node, 1)->type;
  return w->dims[l->rhs[0]] == 3 && w->dims[l->rhs[1]] == 3;
}

// Whether so few features are made that lanes along them would mostly idle, half of
// what idles along the width at most: then planes are made, and turned behind it. Not
// of as many input features as lanes where Winograd's algorithm is faster (512 to 8 of
// 16 x 16 84 us, 226), and of features side by side where taps are many beside what is
// turned. LeNet-5 of 64 images, one thread of a Zen 5, 5x5 to 6 features: 180 us, by
// planes 71 and 21 for turning them; 9x9 of 32 to 3 features at 192 x 192 12.9 ms, 2.4.
static bool makes_planes(const pestle_node_t* node, const layout_t* l,
                         const pestle_target_caps_t* caps) {
  const pestle_type_t* x = pestle_node_operand(node, 0)->type;
  const pestle_type_t* y = node->results[0].type;
  int64_t lanes = caps->vector_bytes / (int64_t)sizeof(float);
  if ((caps->flags & PESTLE_TARGET_LANES) || !lanes || !is_planar(l) ||
      l->rank != 4 || x->dtype != PESTLE_F32 || y->dtype != PESTLE_F32 ||
      caps->vector_registers < MANY_REGISTERS ||
      PESTLE_NODE_I64(node, feature_group_count) != 1 ||
      PESTLE_NODE_I64(node, batch_group_count) != 1 ||
      !pestle_pass_i64s_all(PESTLE_NODE_I64S(node, window_strides), 1) ||
      !pestle_pass_i64s_all(PESTLE_NODE_I64S(node, lhs_dilation), 1) ||
      !pestle_pass_i64s_all(PESTLE_NODE_I64S(node, rhs_dilation), 1)) {
    return false;
  }
  if (comes_turned(node) && taps_of(node, l) < TURNED_TAPS * x->dims[1]) {
    return false;
  }
  int64_t features = y->dims[1], width = y->dims[3];
  int64_t along = pestle_ceil_div(width, lanes) * lanes;
  return features > 1 && 2 * features <= lanes && width >= lanes &&
         (x->dims[1] < lanes || !suits_winograd(node, l)) &&
         width * lanes >= 2 * features * along && taps_of(node, l) >= MANY_TAPS;
}

static pestle_value_t* make_convolution(pestle_formula_t* f,
                                        const pestle_node_t* node,
                                        const layout_t* l, bool input,
                                        pestle_value_t* x, pestle_value_t* w) {
  pestle_attr_t attrs[MAX_ATTRS];
  size_t count = node->attr_count, spatial = (size_t)l->rank - 2;
  if (count > MAX_ATTRS) {
    return pestle_f_fail(f, PESTLE_ERROR(INTERNAL, "too many attributes"));
  }
  memcpy(attrs, node->attrs, count * sizeof(attrs[0]));
  int64_t middle[PESTLE_MAX_RANK], first[PESTLE_MAX_RANK];
  for (size_t i = 0; i < spatial; ++i) {
    middle[i] = (int64_t)i + 1;
    first[i] = (int64_t)i;
  }
  int64_t last = l->rank - 1;
  if (input) {
    set_attr_i64(attrs, count, PESTLE_ATTR_input_batch_dimension, 0);
    set_attr_i64(attrs, count, PESTLE_ATTR_input_feature_dimension, last);
    set_attr_i64s(attrs, count, PESTLE_ATTR_input_spatial_dimensions, middle,
                  spatial);
  }
  set_attr_i64(attrs, count, PESTLE_ATTR_kernel_input_feature_dimension,
               last - 1);
  set_attr_i64(attrs, count, PESTLE_ATTR_kernel_output_feature_dimension, last);
  set_attr_i64s(attrs, count, PESTLE_ATTR_kernel_spatial_dimensions, first,
                spatial);
  set_attr_i64(attrs, count, PESTLE_ATTR_output_batch_dimension, 0);
  set_attr_i64(attrs, count, PESTLE_ATTR_output_feature_dimension, last);
  set_attr_i64s(attrs, count, PESTLE_ATTR_output_spatial_dimensions, middle,
                spatial);
  pestle_type_t type = *node->results[0].type;
  for (int32_t i = 0; i < l->rank; ++i) {
    type.dims[i] = node->results[0].type->dims[l->out[i]];
  }
  return pestle_f_make(f, PESTLE_OP_CONVOLUTION, (pestle_value_t*[]){x, w}, 2,
                       attrs, count, &type);
}

// Whether all that reads the result of |node| are transposes to channels last.
static bool is_turned(const pestle_node_t* node, const layout_t* l) {
  for (const pestle_use_t* u = node->results[0].uses; u; u = u->next) {
    if (u->user->op != PESTLE_OP_TRANSPOSE) return false;
    pestle_i64s_t perm = PESTLE_NODE_I64S(u->user, permutation);
    if (!pestle_i64s_equal(perm, (pestle_i64s_t){l->out, (size_t)l->rank})) {
      return false;
    }
  }
  return node->results[0].use_count > 0;
}

// |node| as it is, its planes turned behind it and, for those who read them, back.
static pestle_status_t turn_planes(pestle_node_t* node, const layout_t* l) {
  pestle_formula_t f = pestle_formula_before(node);
  pestle_value_t* operands[2] = {operand(node, 0), operand(node, 1)};
  int64_t back[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < l->rank; ++i)
    back[l->out[i]] = i;
  pestle_value_t* y = pestle_f_like(&f, node, operands, node->results[0].type);
  y = pestle_f_transpose(&f, y, l->out);
  y = pestle_f_transpose(&f, y, back);
  PESTLE_TRY(f.status);
  y->node->scratch = PESTLE_MOVABLE;
  pestle_pass_replace(node, &y);
  return NULL;
}

// --- What `pestle explain` says ---

static const struct {
  const char* code;
  const char* sentence;
} stays[PESTLE_LAYOUT_REASON_COUNT] = {
    [PESTLE_LAYOUT_NONE] = {"stays",
                            "reads a transposed copy, made because its "
                            "neighbours work on [b, spatial, f]"},
    [PESTLE_LAYOUT_NO_FORM] = {"stays-no-form",
                               "reads a transposed copy: the op has no form "
                               "for another order of dimensions"},
    [PESTLE_LAYOUT_NO_GAIN] = {"stays-no-gain",
                               "reads a transposed copy: more of its operands "
                               "would need a transpose than lose one"},
    [PESTLE_LAYOUT_STRICT] = {"stays-strict",
                              "reads a transposed copy: strict numerics keep "
                              "the order in which it adds"},
    [PESTLE_LAYOUT_TURNS] = {"stays-turns",
                             "reads a transposed copy: it turns dimensions "
                             "itself"},
    [PESTLE_LAYOUT_REGROUPS] = {"stays-regroups",
                                "reads a transposed copy: it merges or splits "
                                "dimensions that the transpose moves apart"},
    [PESTLE_LAYOUT_GATHERS] = {"stays-gathers",
                               "reads a transposed copy: it gathers more than "
                               "whole slices along one dimension"},
};

// "[b,f,0,1]": what each dim is, where |perm| leads to [b, spatial, f].
static void append_layout(const int64_t* perm, int32_t rank,
                          pestle_strbuf_t* out) {
  for (int64_t dim = 0; dim < rank; ++dim) {
    int32_t at = 0;
    while (perm[at] != dim)
      ++at;
    pestle_strbuf_append_char(out, dim ? ',' : '[');
    if (at == 0) {
      pestle_strbuf_append_char(out, 'b');
    } else if (at == rank - 1) {
      pestle_strbuf_append_char(out, 'f');
    } else {
      pestle_strbuf_append_i64(out, at - 1);
    }
  }
  pestle_strbuf_append_char(out, ']');
}

// Per cent of the lanes that have work, of vectors along |extent| elements.
static int64_t filled(int64_t extent, int64_t lanes) {
  return 100 * extent / (pestle_ceil_div(extent, lanes) * lanes);
}

// What the other layout of |node| loses, where there is an estimate: lanes of a CPU
// that idle, and so many bytes of copies.
static void append_lost(const pestle_node_t* node, const layout_t* l,
                        const pestle_target_caps_t* caps, bool features_lost,
                        uint64_t bytes, pestle_strbuf_t* out) {
  const pestle_type_t* y = node->results[0].type;
  int64_t lanes = caps->vector_bytes / (int64_t)sizeof(float);
  if ((caps->flags & PESTLE_TARGET_LANES) || lanes < 2 || !is_planar(l)) return;
  int64_t features = filled(y->dims[1], lanes);
  int64_t planes = filled(y->dims[l->rank - 1], lanes);
  pestle_strbuf_appendf(
      out,
      "; lost: %s, with %" PRId64 " %% of lanes filled beside %" PRId64 " %%",
      features_lost ? "along the features" : "along planes",
      features_lost ? features : planes, features_lost ? planes : features);
  if (bytes) {
    pestle_strbuf_appendf(out, ", and copies of %" PRIu64 " KiB", bytes >> 10);
  }
}

static void remark_planes(pestle_remarks_t* remarks, const pestle_node_t* node,
                          const layout_t* l, const pestle_target_caps_t* caps,
                          const char* code, const char* why) {
  if (!remarks) return;
  pestle_strbuf_t text;
  pestle_strbuf_init(remarks->list.allocator, &text);
  pestle_strbuf_append_c(&text, why);
  // What is turned behind the convolution all the same is no loss.
  uint64_t bytes = pestle_type_bytes(pestle_node_operand(node, 0)->type) +
                   pestle_type_bytes(node->results[0].type);
  bool is_left = !strcmp(code, "planes");
  append_lost(node, l, caps, true, is_left ? bytes : 0, &text);
  pestle_remarks_add_on(remarks, "channels_last", node, code,
                        pestle_strbuf_cstr(&text));
  pestle_strbuf_deinit(&text);
}

static void remark_turned(pestle_remarks_t* remarks, const pestle_node_t* node,
                          const layout_t* l, const pestle_target_caps_t* caps) {
  if (!remarks) return;
  int64_t last[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < l->rank; ++i)
    last[i] = i;
  pestle_strbuf_t text;
  pestle_strbuf_init(remarks->list.allocator, &text);
  pestle_strbuf_append_c(&text, "works on ");
  append_layout(last, l->rank, &text);
  pestle_strbuf_append_c(&text, " instead of ");
  append_layout(l->lhs, l->rank, &text);
  pestle_strbuf_append_c(&text,
                         ": vectors go along the features, which are then "
                         "contiguous");
  append_lost(node, l, caps, false, 0, &text);
  pestle_remarks_add_on(remarks, "channels_last", node, "turned",
                        pestle_strbuf_cstr(&text));
  pestle_strbuf_deinit(&text);
}

// A constant is folded, a broadcast repeats along other dims: no copy.
static bool is_free(const pestle_value_t* v) {
  for (int depth = 0; v->node && depth < 16; ++depth) {
    switch (v->node->op) {
      case PESTLE_OP_CONSTANT:
      case PESTLE_OP_CONSTANT_PART:
      case PESTLE_OP_BROADCAST_IN_DIM:
        return true;
      case PESTLE_OP_RESHAPE:
      case PESTLE_OP_TRANSPOSE:
        v = operand(v->node, 0);
        break;
      default:
        return false;
    }
  }
  return false;
}

static bool is_movable(const pestle_node_t* n) {
  return n->op == PESTLE_OP_TRANSPOSE && n->scratch == PESTLE_MOVABLE;
}

static void remark_reader(pestle_remarks_t* remarks,
                          const pestle_node_t* reader) {
  uint64_t why = reader->scratch;
  if (reader->op == PESTLE_OP_CONVOLUTION) {
    pestle_remarks_add_on(
        remarks, "channels_last", reader, "enters",
        "reads a transposed copy: here data comes in that lies the other "
        "way");
  } else if (pestle_pass_is_terminator(reader)) {
    pestle_remarks_add_on(
        remarks, "channels_last", reader, "leaves",
        "reads a transposed copy: the model's results have an order of "
        "their own");
  } else {
    if (why >= PESTLE_LAYOUT_REASON_COUNT) why = PESTLE_LAYOUT_NONE;
    pestle_remarks_add_on(remarks, "channels_last", reader, stays[why].code,
                          stays[why].sentence);
  }
}

// The transposes that are left, at each op that reads one.
static void remark_left(pestle_remarks_t* remarks,
                        const pestle_block_t* block) {
  if (!remarks) return;
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    if (!is_movable(n) || !pestle_pass_turns(n) || is_free(operand(n, 0))) {
      continue;
    }
    for (const pestle_use_t* u = n->results[0].uses; u; u = u->next) {
      // One that nobody reads goes with the dead ops.
      bool dead = is_movable(u->user) && !u->user->results[0].use_count;
      if (!dead) remark_reader(remarks, u->user);
    }
  }
}

typedef struct channels_last_t {
  const pestle_target_caps_t* caps;
  bool strict;
  bool changed;
  pestle_remarks_t* remarks;
} channels_last_t;

static pestle_status_t convert_convolution(channels_last_t* c,
                                           pestle_node_t* node) {
  pestle_remarks_t* remarks = c->remarks;
  layout_t l = read_layout(node);
  bool kept = keeps_input(node, &l, c->caps);
  if ((kept || is_iota(l.lhs, l.rank)) && is_iota(l.rhs, l.rank) &&
      is_iota(l.out, l.rank)) {
    pestle_remarks_add_on(remarks, "channels_last", node, "channels-last",
                          "has its features innermost as it is");
    return NULL;
  }
  if (stays_planar(node, &l, c->caps)) {
    remark_planes(remarks, node, &l, c->caps, "planes",
                  "stays as it is: no other op would work on turned tensors, "
                  "and its own vectors go along planes");
    return NULL;
  }
  bool planes = makes_planes(node, &l, c->caps);
  if (planes &&
      (only_leaves(&node->results[0], MOST_STEPS) || is_turned(node, &l))) {
    remark_planes(remarks, node, &l, c->caps, "planes",
                  "stays as it is: its vectors go along planes, and nothing "
                  "else would work on turned tensors, or works on them behind "
                  "a transpose that is there");
    return NULL;
  }
  if (planes) {
    remark_planes(remarks, node, &l, c->caps, "few-features",
                  "makes planes, which are turned behind it: lanes along its "
                  "few features would mostly idle");
    c->changed = true;
    return turn_planes(node, &l);
  }
  remark_turned(remarks, node, &l, c->caps);
  if (!is_iota(l.rhs, l.rank) && !is_free(operand(node, 1))) {
    pestle_remarks_add_on(
        remarks, "channels_last", node, "weights",
        "has weights that are no constant: each run copies them to "
        "[spatial, in, out]");
  }
  pestle_formula_t f = pestle_formula_before(node);
  pestle_value_t* x = operand(node, 0);
  if (!kept) x = pestle_layout_transpose(&f, x, l.lhs);
  pestle_value_t* w = pestle_f_transpose(&f, operand(node, 1), l.rhs);
  pestle_value_t* y = make_convolution(&f, node, &l, !kept, x, w);
  int64_t back[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < l.rank; ++i)
    back[l.out[i]] = i;
  y = pestle_layout_transpose(&f, y, back);
  PESTLE_TRY(f.status);
  pestle_pass_replace(node, &y);
  c->changed = true;
  return NULL;
}

// --- The pass ---

static pestle_status_t convert_block(void* user, pestle_module_t* module,
                                     pestle_block_t* block) {
  channels_last_t* c = user;
  (void)module;
  for (pestle_node_t* n = block->first; n; n = n->next)
    n->scratch = 0;
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    if (n->op == PESTLE_OP_CONVOLUTION) {
      PESTLE_TRY(convert_convolution(c, n));
      continue;
    }
    pestle_formula_t f = pestle_formula_before(n);
    pestle_layout_reason_t why = PESTLE_LAYOUT_NONE;
    pestle_value_t* out = n->op == PESTLE_OP_DOT_GENERAL
                              ? pestle_turn_rows(&f, n)
                              : pestle_push_merged(&f, n, c->strict);
    if (!out) out = pestle_push_transpose(&f, n, c->strict, &why);
    PESTLE_TRY(f.status);
    if (!out) {
      if (why) n->scratch = why;
      continue;
    }
    pestle_remarks_add_on(
        c->remarks, "channels_last", n, "pushed",
        "works on the turned tensor; the transpose in front of it moves "
        "behind it");
    pestle_pass_replace(n, &out);
    c->changed = true;
  }
  remark_left(c->remarks, block);
  return NULL;
}

pestle_status_t pestle_pass_channels_last(pestle_pass_context_t* ctx,
                                          pestle_module_t* module,
                                          bool* out_changed) {
  channels_last_t c = {
      .caps = ctx->caps,
      .strict = ctx->options->numerics == PESTLE_NUMERICS_STRICT,
      .remarks = ctx->remarks};
  PESTLE_TRY(pestle_pass_each_block(module, convert_block, &c));
  if (c.changed) PESTLE_TRY(pestle_pass_dce(ctx, module, &c.changed));
  *out_changed = c.changed;
  return NULL;
}

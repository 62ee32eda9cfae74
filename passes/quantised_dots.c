// SPDX-License-Identifier: Apache-2.0
// Products of bytes stay products of bytes, summed as i32, where the target
// multiplies four of them at a time (DOT4) or has matrix units for them: zero points,
// scales and widening conversions go behind the contraction.
//
//   %0 = subtract (convert %x : i32), zx            %0 = dot_general %x, %w : i32
//   %1 = dot_general %0, (convert %w : i32)    ->   %1 = subtract %0, zx * sums of w
//
//   %0 = dequantize %x, sx, zx                      %0 = dot_general %x, %w : i32
//   %1 = dequantize %w, sw, 0                  ->   %1 = subtract %0, zx * sums of w
//   %2 = dot_general %0, %1                         %2 = (convert %1) * (sx * sw)
//
// The first is exact, in arithmetic that wraps. The second is more exact than
// what it replaces, since sums of integers are not rounded, but not the same:
// it is left out under PESTLE_NUMERICS_STRICT, and where sums could overflow.
// Constant operands that still fit a byte without their zero point lose it:
// weights of ui8 about 128 become i8. Padding of a convolution becomes explicit
// when there is a zero point, which is what it is padded with; the zero point of
// its weights is taken off times the sums of its windows.
#include <string.h>

#include "base/mem.h"
#include "passes/util.h"
#include "pestle/kir.h"

// Products of two bytes are at most this large.
#define LARGEST_PRODUCT ((int64_t)255 * 255)
// Bytes that are multiplied at a time.
#define WORD 4

static pestle_value_t* operand(const pestle_node_t* node, size_t index) {
  return pestle_node_operand(node, index);
}

static bool is_bytes(pestle_dtype_t dtype) {
  return dtype == PESTLE_I8 || dtype == PESTLE_U8;
}

// --- Operands ---

// (bytes - zero) * scale.
typedef struct side_t {
  pestle_value_t* bytes;
  const pestle_elements_t* narrow;  // a constant that is bytes less |offset|,
                                    // which are made when they are needed
  pestle_dtype_t narrow_dtype;
  int64_t offset;
  pestle_value_t* zero;   // one number of the bytes' dtype; NULL: see |known|
  int64_t known;          // the zero point, a constant of another dtype
  pestle_value_t* scale;  // f32, one number or a list along |axis|; NULL: 1
  int64_t axis;
} side_t;

// Takes a zero point, unless it is known to be 0. One number, of |dtype|.
static bool take_zero(pestle_value_t* zero, pestle_dtype_t dtype,
                      side_t* side) {
  int64_t value;
  if (pestle_pass_splat_i64(zero, &value) && value == 0) return true;
  const pestle_elements_t* e = pestle_value_constant(zero);
  size_t i = 0, count = e ? (size_t)pestle_type_count(&e->type) : 0;
  while (i < count && !e->splat && !pestle_pass_element_i64(e, i))
    ++i;
  if (i && i == count) return true;
  bool is_known = pestle_pass_splat_i64(zero, &value);
  int64_t lowest = dtype == PESTLE_I8 ? -128 : 0;
  if (is_known && zero->type->dtype == PESTLE_I32 && value >= lowest &&
      value <= lowest + 255) {
    side->known = value;
    return true;
  }
  if (pestle_type_count(zero->type) != 1 || zero->type->dtype != dtype) {
    return false;
  }
  side->zero = zero;
  return true;
}

// The least and the largest element.
static void range_of(const pestle_elements_t* e, int64_t* lo, int64_t* hi) {
  size_t count = e->splat ? 1 : (size_t)pestle_type_count(&e->type);
  *lo = *hi = count ? pestle_pass_element_i64(e, 0) : 0;
  for (size_t i = 1; i < count; ++i) {
    int64_t v = pestle_pass_element_i64(e, i);
    if (v < *lo) *lo = v;
    if (v > *hi) *hi = v;
  }
}

static pestle_dtype_t dtype_that_holds(int64_t lo, int64_t hi) {
  if (lo >= -128 && hi <= 127) return PESTLE_I8;
  return lo >= 0 && hi <= 255 ? PESTLE_U8 : PESTLE_NONE;
}

// A constant of i32 as bytes, about a zero point where its range asks for one:
// it was folded from both.
static bool read_narrow(const pestle_elements_t* e, side_t* out) {
  int64_t lo, hi;
  range_of(e, &lo, &hi);
  out->narrow = e;
  out->narrow_dtype = dtype_that_holds(lo, hi);
  if (out->narrow_dtype != PESTLE_NONE) return true;
  if (lo < -255 || lo > 0 || hi - lo > 255) return false;
  out->narrow_dtype = PESTLE_I8;
  out->offset = lo + 128;
  out->known = -out->offset;
  return true;
}

// |value| as it is, or widened.
static bool read_bytes(pestle_value_t* value, side_t* out) {
  pestle_value_t* from = pestle_pass_through(value, PESTLE_OP_CONVERT);
  if (is_bytes(value->type->dtype)) from = value;
  if (from && is_bytes(from->type->dtype)) {
    out->bytes = from;
    return true;
  }
  const pestle_elements_t* e = pestle_value_constant(value);
  return e && value->type->dtype == PESTLE_I32 && read_narrow(e, out);
}

// The one number behind a value that repeats it, before it was widened: bytes
// may themselves be converted, of what was rounded.
static pestle_value_t* one_number(pestle_value_t* value) {
  for (;;) {
    pestle_value_t* from =
        pestle_pass_through(value, PESTLE_OP_BROADCAST_IN_DIM);
    if (!from) from = pestle_pass_through(value, PESTLE_OP_RESHAPE);
    if (!from && !is_bytes(value->type->dtype)) {
      from = pestle_pass_through(value, PESTLE_OP_CONVERT);
    }
    if (!from) return value;
    value = from;
  }
}

static bool read_integers(pestle_value_t* value, side_t* out) {
  *out = (side_t){0};
  if (read_bytes(value, out)) return true;
  const pestle_node_t* n = value->node;
  *out = (side_t){0};
  return n && n->op == PESTLE_OP_SUBTRACT && value->type->dtype == PESTLE_I32 &&
         read_bytes(operand(n, 0), out) && out->bytes &&
         take_zero(one_number(operand(n, 1)), out->bytes->type->dtype, out);
}

static bool read_quantised(pestle_value_t* value, side_t* out) {
  const pestle_node_t* n = value->node;
  *out = (side_t){0};
  if (!n || n->op != PESTLE_OP_DEQUANTIZE || value->type->dtype != PESTLE_F32 ||
      !is_bytes(operand(n, 0)->type->dtype)) {
    return false;
  }
  out->bytes = operand(n, 0);
  out->scale = operand(n, 1);
  out->axis = PESTLE_NODE_I64(n, axis);
  return take_zero(operand(n, 2), out->bytes->type->dtype, out);
}

static bool has_zero(const side_t* side) {
  return side->zero || side->known;
}

// Takes the zero point off a constant, where what is left are bytes too.
static void centre(side_t* side) {
  const pestle_elements_t* e =
      side->bytes ? pestle_value_constant(side->bytes) : NULL;
  int64_t zero = side->known;
  if (!e || !has_zero(side) ||
      (side->zero && !pestle_pass_splat_i64(side->zero, &zero))) {
    return;
  }
  int64_t lo, hi;
  range_of(e, &lo, &hi);
  pestle_dtype_t dtype = dtype_that_holds(lo - zero, hi - zero);
  if (dtype == PESTLE_NONE) return;
  *side = (side_t){.narrow = e,
                   .narrow_dtype = dtype,
                   .offset = zero,
                   .scale = side->scale,
                   .axis = side->axis};
}

// Makes what is known of |side| and not in the graph: its zero point and bytes.
static void make_operands(pestle_formula_t* f, side_t* side) {
  if (!side->bytes) {
    const pestle_elements_t* e = side->narrow;
    size_t count = e->splat ? 1 : (size_t)pestle_type_count(&e->type);
    uint8_t* data = pestle_f_memory(f, count);
    if (!data) return;
    for (size_t i = 0; i < count; ++i) {
      data[i] = (uint8_t)(pestle_pass_element_i64(e, i) - side->offset);
    }
    pestle_elements_t made = {e->type, data, count, e->splat};
    made.type.dtype = side->narrow_dtype;
    side->bytes = pestle_f_elements(f, &made);
  }
  if (side->bytes && side->known) {
    side->zero =
        pestle_f_scalar(f, side->bytes->type->dtype, (double)side->known);
  }
}

// --- Contractions ---

typedef struct product_t {
  pestle_formula_t f;
  pestle_node_t* node;
  side_t side[2];
  bool floats;
  bool by_words;  // bytes are multiplied as words
  int64_t depth;
  pestle_value_t* windows;  // what a convolution reads, padded if it is apart
  // Of each side, the axes that are reduced, and, by axis, where the others are
  // in the result; -1: nowhere, or in several places.
  bool reduced[2][PESTLE_MAX_RANK];
  int64_t place[2][PESTLE_MAX_RANK];
} product_t;

static void place_dot(product_t* p) {
  pestle_i64s_t batch[2] = {PESTLE_NODE_I64S(p->node, lhs_batching_dimensions),
                            PESTLE_NODE_I64S(p->node, rhs_batching_dimensions)};
  pestle_i64s_t contract[2] = {
      PESTLE_NODE_I64S(p->node, lhs_contracting_dimensions),
      PESTLE_NODE_I64S(p->node, rhs_contracting_dimensions)};
  int64_t next = (int64_t)batch[0].count;
  for (int s = 0; s < 2; ++s) {
    const pestle_type_t* type = operand(p->node, (size_t)s)->type;
    for (size_t i = 0; i < batch[s].count; ++i) {
      p->place[s][batch[s].data[i]] = (int64_t)i;
    }
    for (size_t i = 0; i < contract[s].count; ++i) {
      p->reduced[s][contract[s].data[i]] = true;
    }
    for (int32_t d = 0; d < type->rank; ++d) {
      if (p->reduced[s][d] || pestle_i64s_has(batch[s], d)) continue;
      p->place[s][d] = next++;
    }
  }
  p->depth = 1;
  for (size_t i = 0; i < contract[0].count; ++i) {
    p->depth *= operand(p->node, 0)->type->dims[contract[0].data[i]];
  }
}

// Inputs are not placed: each is in many windows.
static void place_convolution(product_t* p) {
  const pestle_type_t* w = operand(p->node, 1)->type;
  int64_t feature = PESTLE_NODE_I64(p->node, kernel_output_feature_dimension);
  p->depth = 1;
  for (int32_t d = 0; d < w->rank; ++d) {
    p->reduced[1][d] = d != feature;
    if (d != feature) p->depth *= w->dims[d];
  }
  p->place[1][feature] = PESTLE_NODE_I64(p->node, output_feature_dimension);
}

static bool has_padding(const pestle_node_t* node) {
  return !pestle_pass_i64s_all(PESTLE_NODE_I64S(node, padding), 0);
}

// Whether what a side has can be taken behind the contraction.
static bool is_taken(const product_t* p, int s) {
  const side_t* side = &p->side[s];
  bool convolution = p->node->op == PESTLE_OP_CONVOLUTION;
  if (convolution && has_zero(side) &&
      ((s == 1 && PESTLE_NODE_I64(p->node, feature_group_count) != 1) ||
       PESTLE_NODE_I64(p->node, batch_group_count) != 1 ||
       !pestle_pass_i64s_all(PESTLE_NODE_I64S(p->node, lhs_dilation), 1))) {
    return false;
  }
  if (!side->scale || pestle_type_count(side->scale->type) == 1) return true;
  return side->scale->type->rank == 1 && p->place[s][side->axis] >= 0 &&
         !p->reduced[s][side->axis];
}

static bool read_product(pestle_node_t* node, bool may_round, product_t* out) {
  *out = (product_t){.f = pestle_formula_before(node), .node = node};
  pestle_dtype_t dtype = node->results[0].type->dtype;
  out->floats = dtype == PESTLE_F32 && may_round;
  if (dtype != PESTLE_I32 && !out->floats) return false;
  memset(out->place, 0xff, sizeof out->place);
  for (int s = 0; s < 2; ++s) {
    pestle_value_t* value = operand(node, (size_t)s);
    if (!pestle_type_is_static(value->type)) return false;
    if (!(out->floats ? read_quantised(value, &out->side[s])
                      : read_integers(value, &out->side[s]))) {
      return false;
    }
    centre(&out->side[s]);
  }
  if (node->op == PESTLE_OP_CONVOLUTION) {
    place_convolution(out);
  } else {
    place_dot(out);
  }
  if (!is_taken(out, 0) || !is_taken(out, 1)) return false;
  return !out->floats || out->depth <= INT32_MAX / LARGEST_PRODUCT;
}

// --- What goes behind ---

static pestle_value_t* spread_number(product_t* p, pestle_value_t* value,
                                     const pestle_type_t* type) {
  pestle_value_t* scalar = pestle_f_reshape(&p->f, value, 0, NULL);
  return pestle_f_broadcast_to(&p->f, scalar, type, NULL);
}

// Sums, as i32, and where their dims are in the result.
typedef struct sums_t {
  pestle_value_t* value;
  int64_t dims[PESTLE_MAX_RANK];
} sums_t;

// |bytes| summed over the axes that |reduced| names.
static pestle_value_t* reduce_bytes(product_t* p, pestle_value_t* bytes,
                                    const bool* reduced) {
  int64_t dims[PESTLE_MAX_RANK];
  pestle_i64s_t list = {dims, 0};
  for (int32_t d = 0; d < bytes->type->rank; ++d) {
    if (reduced[d]) dims[list.count++] = d;
  }
  pestle_value_t* wide = pestle_f_convert(&p->f, bytes, PESTLE_I32);
  return pestle_f_reduce(&p->f, PESTLE_OP_ADD, wide, list, 0);
}

// Of side |s| over what is reduced.
static sums_t sum_side(product_t* p, int s) {
  sums_t sums;
  int32_t rank = 0;
  for (int32_t d = 0; d < operand(p->node, (size_t)s)->type->rank; ++d) {
    if (!p->reduced[s][d]) sums.dims[rank++] = p->place[s][d];
  }
  sums.value = reduce_bytes(p, p->side[s].bytes, p->reduced[s]);
  return sums;
}

// Windows along axis |i| of the space, which is |d| among the sums.
static void read_window(const product_t* p, size_t i, int64_t d,
                        pestle_windows_t* out) {
  const pestle_node_t* n = p->node;
  int64_t tap = PESTLE_NODE_I64S(n, kernel_spatial_dimensions).data[i];
  out->sizes[d] = operand(n, 1)->type->dims[tap];
  out->strides[d] = PESTLE_NODE_I64S(n, window_strides).data[i];
  out->dilations[d] = PESTLE_NODE_I64S(n, rhs_dilation).data[i];
  for (int64_t end = 0; end < 2 && p->windows == p->side[0].bytes; ++end) {
    out->padding[2 * d + end] =
        PESTLE_NODE_I64S(n, padding).data[2 * i + (size_t)end];
  }
}

// Whether each window is one element, at its own place.
static bool are_elements(const pestle_windows_t* w) {
  pestle_windows_t none;
  pestle_windows_init(&none);
  return !memcmp(w->sizes, none.sizes, sizeof(none.sizes)) &&
         !memcmp(w->strides, none.strides, sizeof(none.strides)) &&
         !memcmp(w->padding, none.padding, sizeof(none.padding));
}

// Of what the windows of a convolution hold. Features first: what is left of
// them is small.
static sums_t sum_windows(product_t* p) {
  sums_t sums;
  const pestle_node_t* n = p->node;
  int64_t feature = PESTLE_NODE_I64(n, input_feature_dimension);
  int64_t batch = PESTLE_NODE_I64(n, input_batch_dimension);
  bool reduced[PESTLE_MAX_RANK] = {0};
  reduced[feature] = true;
  sums.value = reduce_bytes(p, p->windows, reduced);
  pestle_windows_t w;
  pestle_windows_init(&w);
  batch -= batch > feature;
  sums.dims[batch] = PESTLE_NODE_I64(n, output_batch_dimension);
  pestle_i64s_t axes = PESTLE_NODE_I64S(n, input_spatial_dimensions);
  for (size_t i = 0; i < axes.count; ++i) {
    int64_t d = axes.data[i] - (axes.data[i] > feature);
    read_window(p, i, d, &w);
    sums.dims[d] = PESTLE_NODE_I64S(n, output_spatial_dimensions).data[i];
  }
  if (are_elements(&w)) return sums;
  pestle_value_t* zero = pestle_f_scalar(&p->f, PESTLE_I32, 0);
  sums.value =
      pestle_f_reduce_windows(&p->f, PESTLE_OP_ADD, sums.value, zero, &w);
  return sums;
}

// |value| times the zero point of side |s|, as i32.
static pestle_value_t* by_zero(product_t* p, int s, pestle_value_t* value) {
  if (!value) return NULL;
  pestle_value_t* zero = pestle_f_convert(&p->f, p->side[s].zero, PESTLE_I32);
  zero = spread_number(p, zero, value->type);
  return pestle_f_multiply(&p->f, value, zero);
}

// |value| without what the zero point of w adds to it, once for each of k.
static pestle_value_t* take_off_k(product_t* p, pestle_value_t* value) {
  if (!value) return NULL;
  // Sums wrap, and so may their number.
  int32_t wrapped = (int32_t)(uint32_t)(uint64_t)p->depth;
  pestle_value_t* depth = pestle_f_scalar(&p->f, PESTLE_I32, (double)wrapped);
  depth = spread_number(p, by_zero(p, 1, depth), value->type);
  return pestle_f_subtract(&p->f, value, depth);
}

// sums - zero of x * (sums of w - k * zero of w) - zero of w * sums of x.
static pestle_value_t* take_off_zeros(product_t* p, pestle_value_t* sums) {
  bool convolution = p->node->op == PESTLE_OP_CONVOLUTION;
  for (int s = 0; s < 2 && sums; ++s) {
    if (!p->side[s].zero) continue;
    sums_t other = convolution && s == 1 ? sum_windows(p) : sum_side(p, 1 - s);
    pestle_value_t* term = other.value;
    if (s == 0 && p->side[1].zero) term = take_off_k(p, term);
    term = by_zero(p, s, term);
    term = pestle_f_broadcast_to(&p->f, term, sums->type, other.dims);
    sums = pestle_f_subtract(&p->f, sums, term);
  }
  return sums;
}

// The scale of side |s| for each element of |type|.
static pestle_value_t* spread_scale(product_t* p, int s, pestle_value_t* scale,
                                    const pestle_type_t* type) {
  return pestle_f_broadcast_to(&p->f, scale, type,
                               &p->place[s][p->side[s].axis]);
}

static pestle_value_t* multiply_scales(product_t* p, pestle_value_t* real) {
  if (!real) return NULL;
  const pestle_type_t type = *real->type;
  pestle_value_t *factor[2], *both;
  // One number first: of the product of two, few are computed.
  bool lists[2];
  for (int s = 0; s < 2; ++s) {
    lists[s] = pestle_type_count(p->side[s].scale->type) != 1;
  }
  if (lists[0] != lists[1]) {
    int list = lists[1];
    pestle_value_t* scale = p->side[list].scale;
    both = spread_number(p, p->side[1 - list].scale, scale->type);
    both = pestle_f_multiply(&p->f, both, scale);
    both = spread_scale(p, list, both, &type);
    return pestle_f_multiply(&p->f, real, both);
  }
  for (int s = 0; s < 2; ++s) {
    pestle_value_t* scale = p->side[s].scale;
    factor[s] = lists[s] ? spread_scale(p, s, scale, &type)
                         : spread_number(p, scale, &type);
  }
  both = pestle_f_multiply(&p->f, factor[0], factor[1]);
  return pestle_f_multiply(&p->f, real, both);
}

// --- The contraction ---

// Whether padding is a step of its own. That of few features is too, although it
// is of zeros: their elements of k then lie behind each other, as those of words do.
static bool pads_apart(const product_t* p) {
  if (p->node->op != PESTLE_OP_CONVOLUTION || !has_padding(p->node)) {
    return false;
  }
  int64_t feature = PESTLE_NODE_I64(p->node, input_feature_dimension);
  bool few = p->by_words &&
             operand(p->node, 0)->type->dims[feature] % WORD != 0 &&
             PESTLE_NODE_I64(p->node, feature_group_count) == 1 &&
             pestle_pass_i64s_all(PESTLE_NODE_I64S(p->node, lhs_dilation), 1);
  return p->side[0].zero || few;
}

// |x| with the padding of the convolution made of its zero point.
static pestle_value_t* pad_input(product_t* p, pestle_value_t* x) {
  int64_t low[PESTLE_MAX_RANK] = {0}, high[PESTLE_MAX_RANK] = {0};
  pestle_i64s_t axes = PESTLE_NODE_I64S(p->node, input_spatial_dimensions);
  pestle_i64s_t padding = PESTLE_NODE_I64S(p->node, padding);
  for (size_t i = 0; i < axes.count; ++i) {
    low[axes.data[i]] = padding.data[2 * i];
    high[axes.data[i]] = padding.data[2 * i + 1];
  }
  pestle_value_t* zero = p->side[0].zero;
  if (!zero) zero = pestle_f_scalar(&p->f, x->type->dtype, 0);
  zero = pestle_f_reshape(&p->f, zero, 0, NULL);
  return pestle_f_pad(&p->f, x, zero, low, high, NULL);
}

static pestle_value_t* contract(product_t* p) {
  pestle_value_t* operands[2] = {p->side[0].bytes, p->side[1].bytes};
  pestle_type_t type = *p->node->results[0].type;
  type.dtype = PESTLE_I32;
  bool pads = pads_apart(p);
  size_t count = p->node->attr_count;
  pestle_attr_t* attrs = pestle_f_memory(&p->f, count * sizeof(*attrs));
  if (!attrs) return NULL;
  if (count) memcpy(attrs, p->node->attrs, count * sizeof(*attrs));
  int64_t none[2 * PESTLE_MAX_RANK] = {0};
  for (size_t i = 0; pads && i < count; ++i) {
    if (attrs[i].name == PESTLE_ATTR_padding) attrs[i].as.i64s.data = none;
  }
  if (pads) operands[0] = pad_input(p, operands[0]);
  p->windows = operands[0];
  return pestle_f_make(&p->f, (pestle_op_t)p->node->op, operands, 2, attrs,
                       count, &type);
}

static pestle_value_t* rewrite(product_t* p) {
  for (int s = 0; s < 2; ++s)
    make_operands(&p->f, &p->side[s]);
  pestle_value_t* y = take_off_zeros(p, contract(p));
  if (!p->floats) return y;
  y = pestle_f_convert(&p->f, y, PESTLE_F32);
  return multiply_scales(p, y);
}

// --- The pass ---

typedef struct walk_t {
  pestle_pass_context_t* ctx;
  bool may_round, by_words;
  bool* changed;
} walk_t;

static bool is_news(const product_t* p) {
  return p->floats || p->side[0].bytes != operand(p->node, 0) ||
         p->side[1].bytes != operand(p->node, 1);
}

static pestle_status_t rewrite_block(void* user, pestle_module_t* module,
                                     pestle_block_t* block) {
  walk_t* w = user;
  (void)module;
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    if (n->op != PESTLE_OP_DOT_GENERAL && n->op != PESTLE_OP_CONVOLUTION) {
      continue;
    }
    product_t p;
    if (!read_product(n, w->may_round, &p) || !is_news(&p)) continue;
    p.by_words = w->by_words;
    pestle_value_t* out = rewrite(&p);
    PESTLE_TRY(p.f.status);
    pestle_pass_replace(n, &out);
    *w->changed = true;
  }
  return NULL;
}

pestle_status_t pestle_pass_quantised_dots(pestle_pass_context_t* ctx,
                                           pestle_module_t* module,
                                           bool* out_changed) {
  // Lanes side by side multiply bytes by matrix units alone; and any bytes are meant
  // (docs/kernel-ir.md says how a target says that its DOT4 wants small ones).
  uint32_t dots = ctx->caps->op_dtypes[PESTLE_KIR_DOT4];
  bool lanes = ctx->caps->flags & PESTLE_TARGET_LANES;
  if (lanes ? !pestle_pass_has_byte_units(ctx->caps)
            : !dots || (dots & pestle_dtype_bit(PESTLE_I8))) {
    return NULL;
  }
  walk_t w = {ctx, ctx->options->numerics != PESTLE_NUMERICS_STRICT, !lanes,
              out_changed};
  PESTLE_TRY(pestle_pass_each_block(module, rewrite_block, &w));
  return *out_changed ? pestle_pass_dce(ctx, module, out_changed) : NULL;
}

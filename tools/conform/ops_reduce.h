// SPDX-License-Identifier: Apache-2.0
// Instances of reductions, contractions, control and composites.
#ifndef PESTLE_TOOLS_CONFORM_OPS_REDUCE_H_
#define PESTLE_TOOLS_CONFORM_OPS_REDUCE_H_

#include "tools/conform/instance.h"
#include "tools/conform/ops_move.h"

// --- Regions ---

typedef struct body_t {
  pestle_region_t* region;
  pestle_builder_t b;
} body_t;

static inline body_t body_make(instance_t* t, const pestle_type_t* types,
                               size_t count) {
  body_t body = {.b = {.module = t->module}};
  assert_ok(pestle_region_create(t->module, types, count, &body.region,
                                 &body.b.block));
  return body;
}

static inline pestle_value_t* body_arg(body_t* body, size_t i) {
  return pestle_block_argument(body->b.block, i);
}

static inline pestle_value_t* scalar_op(pestle_builder_t* b, pestle_op_t op,
                                        pestle_value_t* x, pestle_value_t* y) {
  pestle_node_t* node;
  pestle_value_t* args[] = {x, y};
  pestle_node_spec_t spec = {.op = op, .operands = args, .operand_count = 2};
  assert_ok(pestle_node_create(b, &spec, &node));
  return &node->results[0];
}

// A constant of |type| whose every element has |value|.
static inline pestle_value_t* splat(pestle_builder_t* b,
                                    const pestle_type_t* type, int64_t value) {
  uint64_t bits = is_float(type->dtype)
                      ? pestle_float_encode(type->dtype, (double)value)
                      : (uint64_t)value;
  if (type->dtype == PESTLE_I1) bits &= 1;
  if (pestle_dtype_is_sub_byte(type->dtype)) {
    bits = pestle_dtype_extend(type->dtype, (uint8_t)bits);
  }
  pestle_value_t* y;
  pestle_constant_attrs_t attrs = {
      sizeof(attrs), {*type, &bits, pestle_dtype_size(type->dtype), true}};
  assert_ok(pestle_op_constant(b, &attrs, &y));
  return y;
}

// --- Reductions ---

typedef struct reduce_op_t {
  const char* name;
  pestle_op_t op;
  unsigned kinds;
  fill_t fill;
} reduce_op_t;

// ADD's and MULTIPLY's regions on i1 are or and and.
static const reduce_op_t reduce_ops[] = {
    {"add", PESTLE_OP_ADD, REAL_KINDS | PESTLE_KIND_COMPLEX, FILL_UNIT},
    {"multiply", PESTLE_OP_MULTIPLY, REAL_KINDS, FILL_SCALE},
    {"maximum", PESTLE_OP_MAXIMUM, REAL_KINDS, FILL_VALUES},
    {"minimum", PESTLE_OP_MINIMUM, REAL_KINDS, FILL_UNIT},
    {"and", PESTLE_OP_AND, PESTLE_KIND_BOOL | PESTLE_KIND_INT, FILL_BITS},
    {"or", PESTLE_OP_OR, PESTLE_KIND_BOOL | PESTLE_KIND_INT, FILL_BITS},
    {"xor", PESTLE_OP_XOR, PESTLE_KIND_BOOL | PESTLE_KIND_INT, FILL_BITS},
};
enum { REDUCE_OPS = sizeof(reduce_ops) / sizeof(reduce_ops[0]) };

static inline pestle_region_t* reduce_region(instance_t* t, pestle_op_t op) {
  pestle_type_t s = type_of(t->dtype, 0, NULL);
  body_t body = body_make(t, (pestle_type_t[]){s, s}, 2);
  pestle_value_t* y =
      scalar_op(&body.b, op, body_arg(&body, 0), body_arg(&body, 1));
  assert_ok(pestle_op_return(&body.b, &y, 1, NULL));
  return body.region;
}

// acc + max(x, -3): more than one op, so elements are reduced in order.
static inline pestle_region_t* long_region(instance_t* t) {
  pestle_type_t s = type_of(t->dtype, 0, NULL);
  body_t body = body_make(t, (pestle_type_t[]){s, s}, 2);
  pestle_value_t* low = splat(&body.b, &s, -3);
  pestle_value_t* y =
      scalar_op(&body.b, PESTLE_OP_MAXIMUM, body_arg(&body, 1), low);
  y = scalar_op(&body.b, PESTLE_OP_ADD, body_arg(&body, 0), y);
  assert_ok(pestle_op_return(&body.b, &y, 1, NULL));
  return body.region;
}

// (best, at), (x, i) -> the larger, of equal ones the first.
static inline pestle_region_t* arg_max_region(instance_t* t) {
  pestle_type_t s = type_of(t->dtype, 0, NULL);
  pestle_type_t i = type_of(PESTLE_I32, 0, NULL);
  body_t body = body_make(t, (pestle_type_t[]){s, i, s, i}, 4);
  pestle_value_t *a = body_arg(&body, 0), *b = body_arg(&body, 2), *y[2];
  pestle_value_t* keep = scalar_op(&body.b, PESTLE_OP_GE, a, b);
  assert_ok(pestle_op_select(&body.b, keep, a, b, &y[0]));
  assert_ok(pestle_op_select(&body.b, keep, body_arg(&body, 1),
                             body_arg(&body, 3), &y[1]));
  assert_ok(pestle_op_return(&body.b, y, 2, NULL));
  return body.region;
}

static inline void reduce_check(instance_t* t, const reduce_op_t* op,
                                double terms) {
  t->fill[0] = t->fill[1] = op->fill;
  bool sums = op->op == PESTLE_OP_ADD || op->op == PESTLE_OP_MULTIPLY;
  t->check = sums ? CHECK_REDUCTION : CHECK_VALUES;
  t->terms = terms;
}

static const char* const axis_choices[] = {"last axis", "first axis",
                                           "all axes", "outer axes", "no axis"};
enum { AXIS_CHOICES = sizeof(axis_choices) / sizeof(axis_choices[0]) };

// A body of several ops is reduced in order, each step rounded to the type.
static inline void in_order_check(instance_t* t) {
  if (is_float(t->dtype)) t->terms *= roundoff(t->dtype) * 0x1p24;
}

// The axes of the reduction for one of the choices.
static inline int32_t reduce_axes(const instance_t* t, uint32_t choice,
                                  int64_t* axes) {
  int32_t rank = t->shape->rank, n = 0;
  for (int32_t i = 0; i < rank; ++i) {
    bool in = choice == 0   ? i == rank - 1
              : choice == 1 ? i == 0
              : choice == 2 ? true
              : choice == 4 ? false
                            : i == 0 || (i == rank - 1 && rank > 2);
    if (in) axes[n++] = i;
  }
  return n;
}

static inline double reduce_terms(const instance_t* t, const int64_t* axes,
                                  int32_t count) {
  double terms = 1;
  for (int32_t i = 0; i < count; ++i)
    terms *= (double)t->shape->dims[axes[i]];
  return terms + 1;  // the initial value
}

static inline void reduce_two(instance_t* t, pestle_i64s_t axes) {
  pestle_type_t x = shaped(t), i = x, s = type_of(t->dtype, 0, NULL);
  pestle_type_t zero = type_of(PESTLE_I32, 0, NULL);
  i.dtype = PESTLE_I32;
  begin(t, (pestle_type_t[]){x, i, s, zero}, 4);
  // -0 is equal to 0 but is told apart by its bits, and so is a NaN's place.
  t->fill[0] = FILL_UNIT;
  t->fill[2] = FILL_UNIT;
  t->check = CHECK_VALUES;
  pestle_value_t *operands[4], *y[2];
  for (size_t k = 0; k < 4; ++k)
    operands[k] = arg(t, k);
  pestle_reduce_attrs_t attrs = {sizeof(attrs), axes};
  assert_ok(
      pestle_op_reduce(&t->b, operands, 4, &attrs, arg_max_region(t), y, 2));
  finish(t, y, 2);
}

// Variants: each op over each choice of axes, then two bodies of their own.
enum { REDUCE_VARIANTS = (REDUCE_OPS + 2) * AXIS_CHOICES };

static inline bool build_reduce(instance_t* t) {
  static char name[64];
  uint32_t kind = t->variant / AXIS_CHOICES;
  const reduce_op_t* op =
      kind < REDUCE_OPS ? &reduce_ops[kind] : &reduce_ops[0];
  snprintf(name, sizeof(name), "%s, %s",
           kind < REDUCE_OPS    ? op->name
           : kind == REDUCE_OPS ? "two ops"
                                : "arg max",
           axis_choices[t->variant % AXIS_CHOICES]);
  t->what = name;
  int64_t axes[PESTLE_MAX_RANK];
  int32_t n = reduce_axes(t, t->variant % AXIS_CHOICES, axes);
  if (!pestle_dtype_is(t->dtype, op->kinds)) return false;
  if (kind >= REDUCE_OPS && is_complex(t->dtype)) return false;
  if (kind > REDUCE_OPS) {
    reduce_two(t, i64s(axes, n));
    return true;
  }
  reduce_check(t, op, reduce_terms(t, axes, n));
  begin(t, (pestle_type_t[]){shaped(t), type_of(t->dtype, 0, NULL)}, 2);
  if (kind == REDUCE_OPS) in_order_check(t);
  pestle_value_t *operands[] = {arg(t, 0), arg(t, 1)}, *y;
  pestle_reduce_attrs_t attrs = {sizeof(attrs), i64s(axes, n)};
  assert_ok(pestle_op_reduce(
      &t->b, operands, 2, &attrs,
      kind == REDUCE_OPS ? long_region(t) : reduce_region(t, op->op), &y, 1));
  finish1(t, y);
  return true;
}

typedef struct window_case_t {
  const char* name;
  int64_t size, stride, base, dilation, low, high;
} window_case_t;

static const window_case_t windows[] = {
    {"small", 2, 1, 1, 1, 0, 0},        {"padded", 3, 1, 1, 1, 1, 1},
    {"strided", 3, 2, 1, 1, 1, 2},      {"dilated", 2, 1, 1, 3, 2, 2},
    {"base dilated", 3, 2, 2, 1, 1, 0}, {"cropped", 2, 1, 1, 1, -1, 0},
    {"none fits", 500, 1, 1, 1, 0, 0},
};
enum { WINDOWS = sizeof(windows) / sizeof(windows[0]) };

static inline bool build_reduce_window(instance_t* t) {
  static char name[64];
  const window_case_t* w = &windows[t->variant % WINDOWS];
  bool two = t->variant / WINDOWS == 2;
  const reduce_op_t* op = &reduce_ops[t->variant / WINDOWS == 1 ? 2 : 0];
  snprintf(name, sizeof(name), "%s, %s", two ? "two ops" : op->name, w->name);
  t->what = name;
  if (!pestle_dtype_is(t->dtype, op->kinds)) return false;
  if (two && is_complex(t->dtype)) return false;
  int32_t rank = t->shape->rank;
  int64_t size[4], stride[4], base[4], dilation[4], padding[8];
  double terms = 1;
  for (int32_t i = 0; i < rank; ++i) {
    bool spatial = i >= rank - 2;  // of at most two axes
    size[i] = spatial ? w->size : 1;
    stride[i] = spatial ? w->stride : 1;
    base[i] = spatial ? w->base : 1;
    dilation[i] = spatial ? w->dilation : 1;
    padding[2 * i] = spatial ? w->low : 0;
    padding[2 * i + 1] = spatial ? w->high : 0;
    terms *= (double)size[i];
  }
  reduce_check(t, op, terms + 1);
  if (two) in_order_check(t);
  begin(t, (pestle_type_t[]){shaped(t), type_of(t->dtype, 0, NULL)}, 2);
  pestle_value_t *operands[] = {arg(t, 0), arg(t, 1)}, *y;
  pestle_reduce_window_attrs_t attrs = {
      .struct_size = sizeof(attrs),
      .window_dimensions = i64s(size, rank),
      .window_strides = i64s(stride, rank),
      .base_dilations = i64s(base, rank),
      .window_dilations = i64s(dilation, rank),
      .padding = i64s(padding, 2 * rank)};
  assert_ok(pestle_op_reduce_window(
      &t->b, operands, 2, &attrs,
      two ? long_region(t) : reduce_region(t, op->op), &y, 1));
  finish1(t, y);
  return true;
}

// --- Running reductions ---

typedef struct cumulative_case_t {
  const char *name, *combiner;
  pestle_op_t op;
  bool reverse, exclusive;
} cumulative_case_t;

static const cumulative_case_t cumulatives[] = {
    {"ADD", "ADD", PESTLE_OP_ADD, false, false},
    {"ADD before each", "ADD", PESTLE_OP_ADD, false, true},
    {"ADD from the end", "ADD", PESTLE_OP_ADD, true, false},
    {"MULTIPLY", "MULTIPLY", PESTLE_OP_MULTIPLY, false, false},
    {"MAXIMUM", "MAXIMUM", PESTLE_OP_MAXIMUM, false, false},
    {"MINIMUM behind each", "MINIMUM", PESTLE_OP_MINIMUM, true, true},
    {"AND", "AND", PESTLE_OP_AND, false, false},
    {"OR", "OR", PESTLE_OP_OR, false, false},
    {"XOR from the end", "XOR", PESTLE_OP_XOR, true, false},
    {"LOGSUMEXP", "LOGSUMEXP", PESTLE_OP_LOGSUMEXP, false, false},
    {"LOGSUMEXP behind each", "LOGSUMEXP", PESTLE_OP_LOGSUMEXP, true, true},
};
enum { CUMULATIVES = sizeof(cumulatives) / sizeof(cumulatives[0]) };

static inline bool build_cumulative(instance_t* t) {
  const cumulative_case_t* c = &cumulatives[t->variant];
  bool logs = c->op == PESTLE_OP_LOGSUMEXP;
  int32_t axis = t->shape->rank > 1;
  reduce_op_t how = {.kinds = PESTLE_KIND_FLOAT};
  for (size_t i = 0; i < REDUCE_OPS; ++i) {
    if (reduce_ops[i].op == c->op) how = reduce_ops[i];
  }
  bool whole = how.op != PESTLE_OP_ADD && how.op != PESTLE_OP_MULTIPLY;
  t->what = c->name;
  if (!t->shape->rank || !pestle_dtype_is(t->dtype, how.kinds)) return false;
  if (!whole && t->dtype == PESTLE_I1) return false;
  double terms = (double)t->shape->dims[axis];
  if (logs) {
    t->check = CHECK_ABSOLUTE;
    t->terms = terms + 24;
    t->fill[0] = FILL_SPREAD;
  } else {
    reduce_check(t, &how, terms + 1);
  }
  pestle_value_t *x = begin_unary(t), *y;
  pestle_cumulative_attrs_t attrs = {sizeof(attrs), axis, c->combiner,
                                     c->reverse, c->exclusive};
  assert_ok(pestle_op_cumulative(&t->b, x, &attrs, &y));
  finish1(t, y);
  return true;
}

// --- Contractions ---

// A sum's element type: narrow ones are summed in a wider one too.
static inline pestle_dtype_t sum_dtype(pestle_dtype_t dtype, bool wide) {
  if (!wide) return dtype;
  if (is_complex(dtype)) return dtype;
  if (is_float(dtype)) return dtype == PESTLE_F64 ? PESTLE_F64 : PESTLE_F32;
  return pestle_dtype_size(dtype) == 8 ? dtype : PESTLE_I32;
}

typedef struct dot_case_t {
  const char* name;
  const char *lhs, *rhs;  // one letter an axis: b batch, m, k and l summed, n
  bool wide;
  bool mixed;  // integers of two signs
} dot_case_t;

static const dot_case_t dots[] = {
    {"mk,kn", "mk", "kn", false, false},
    {"mk,nk wide", "mk", "nk", true, false},
    {"km,kn", "km", "kn", true, false},
    {"bmk,bkn", "bmk", "bkn", false, false},
    {"mbk,bnk wide", "mbk", "bnk", true, false},
    {"k,k", "k", "k", true, false},
    {"m,n", "m", "n", false, false},
    {"mkl,lkn", "mkl", "lkn", true, false},
    {"b,b", "b", "b", false, false},
    {"k,kn", "k", "kn", false, false},
    {"mk,k", "mk", "k", true, false},
    {"mk,kn of two signs", "mk", "kn", true, true},
    {"bkm,bkn of two signs", "bkm", "bkn", false, true},
};
enum { DOTS = sizeof(dots) / sizeof(dots[0]) };

static inline int64_t dot_extent(const instance_t* t, char axis) {
  int32_t rank = t->shape->rank;
  switch (axis) {
    case 'm':
      return dim(t, 0);
    case 'k':
      return rank > 1 ? dim(t, 1) : 5;
    case 'n':
      return rank > 2 ? dim(t, 2) : rank ? 17 : 1;
    case 'l':
      return 3;
    default:
      return rank > 3 ? dim(t, 3) : 2;
  }
}

static inline pestle_type_t dot_type(const instance_t* t, const char* axes) {
  int64_t dims[4];
  int32_t rank = (int32_t)strlen(axes);
  for (int32_t i = 0; i < rank; ++i)
    dims[i] = dot_extent(t, axes[i]);
  return type_of(t->dtype, rank, dims);
}

// Positions in |own| of the axes of |which| that |own| has, in its order.
static inline pestle_i64s_t dot_axes(const char* which, const char* own,
                                     int64_t* out) {
  int32_t n = 0;
  for (; *which; ++which) {
    const char* at = strchr(own, *which);
    if (at) out[n++] = at - own;
  }
  return i64s(out, n);
}

static inline pestle_dtype_t other_sign(pestle_dtype_t dtype) {
  unsigned bits = pestle_dtype_info(dtype)->bits;
  if (pestle_dtype_is(dtype, PESTLE_KIND_SIGNED)) {
    return pestle_dtype_unsigned(bits);
  }
  if (!pestle_dtype_is(dtype, PESTLE_KIND_UNSIGNED)) return dtype;
  return dtype == PESTLE_U2    ? PESTLE_I2
         : dtype == PESTLE_U4  ? PESTLE_I4
         : dtype == PESTLE_U8  ? PESTLE_I8
         : dtype == PESTLE_U16 ? PESTLE_I16
         : dtype == PESTLE_U32 ? PESTLE_I32
                               : PESTLE_I64;
}

static inline bool build_dot(instance_t* t) {
  const dot_case_t* d = &dots[t->variant];
  t->what = d->name;
  pestle_type_t types[] = {dot_type(t, d->lhs), dot_type(t, d->rhs)};
  if (d->mixed) types[1].dtype = other_sign(t->dtype);
  t->fill[0] = t->fill[1] = FILL_UNIT;
  t->check = CHECK_REDUCTION;
  t->terms = (double)(dot_extent(t, 'k') * (strchr(d->lhs, 'l') ? 3 : 1)) + 1;
  begin(t, types, 2);
  int64_t axes[4][4];
  pestle_dot_general_attrs_t attrs = {
      .struct_size = sizeof(attrs),
      .lhs_batching_dimensions = dot_axes("b", d->lhs, axes[0]),
      .rhs_batching_dimensions = dot_axes("b", d->rhs, axes[1]),
      .lhs_contracting_dimensions = dot_axes("kl", d->lhs, axes[2]),
      .rhs_contracting_dimensions = dot_axes("kl", d->rhs, axes[3])};
  int64_t dims[4];
  int32_t rank = 0;
  if (strchr(d->lhs, 'b')) dims[rank++] = dot_extent(t, 'b');
  if (strchr(d->lhs, 'm')) dims[rank++] = dot_extent(t, 'm');
  if (strchr(d->rhs, 'n')) dims[rank++] = dot_extent(t, 'n');
  pestle_value_t* y;
  assert_ok(pestle_op_dot_general(
      &t->b, arg(t, 0), arg(t, 1), &attrs,
      type_of(sum_dtype(t->dtype, d->wide), rank, dims), &y));
  finish1(t, y);
  return true;
}

typedef struct conv_case_t {
  const char* name;
  int32_t space;  // spatial axes
  bool features_last;
  int64_t features, out, groups, batch_groups;
  window_case_t w;
  bool reversed, wide;
} conv_case_t;

static const conv_case_t convs[] = {
    {"1x1", 2, false, 5, 7, 1, 1, {"", 1, 1, 1, 1, 0, 0}, false, false},
    {"3x3 same", 2, false, 3, 8, 1, 1, {"", 3, 1, 1, 1, 1, 1}, false, true},
    {"strided, channels last",
     2,
     true,
     3,
     5,
     1,
     1,
     {"", 3, 2, 1, 1, 1, 0},
     false,
     false},
    {"grouped", 2, false, 6, 4, 2, 1, {"", 3, 1, 1, 1, 1, 1}, false, true},
    {"depthwise", 2, false, 5, 5, 5, 1, {"", 3, 1, 1, 1, 1, 1}, false, false},
    {"depthwise, channels last",
     2,
     true,
     17,
     17,
     17,
     1,
     {"", 3, 2, 1, 1, 1, 1},
     false,
     true},
    {"batch groups",
     1,
     false,
     3,
     4,
     1,
     2,
     {"", 2, 1, 1, 1, 0, 0},
     false,
     false},
    {"dilated, reversed",
     2,
     false,
     2,
     3,
     1,
     1,
     {"", 2, 1, 1, 2, 2, 2},
     true,
     true},
    {"transposed", 2, false, 2, 3, 1, 1, {"", 3, 1, 2, 1, 2, 2}, true, false},
    {"cropped", 1, false, 2, 3, 1, 1, {"", 2, 1, 1, 1, -1, 1}, false, true},
    {"3 axes", 3, false, 2, 3, 1, 1, {"", 2, 1, 1, 1, 1, 0}, false, false},
    {"no space", 0, false, 3, 4, 1, 1, {"", 1, 1, 1, 1, 0, 0}, false, false},
    {"no features", 1, false, 0, 3, 1, 1, {"", 1, 1, 1, 1, 0, 0}, false, true},
};
enum { CONVS = sizeof(convs) / sizeof(convs[0]) };

static inline int64_t conv_places(int64_t n, const window_case_t* w) {
  int64_t padded = (n ? (n - 1) * w->base + 1 : 0) + w->low + w->high;
  int64_t reach = (w->size - 1) * w->dilation + 1;
  return padded <= 0 || reach > padded ? 0 : (padded - reach) / w->stride + 1;
}

// The three shapes; axes are [batch, features, space] or [batch, space,
// features], the kernel's [out, in, space] or [space, in, out].
static inline void conv_types(const instance_t* t, const conv_case_t* c,
                              pestle_type_t types[3]) {
  int32_t first = c->features_last ? 1 : 2;
  int32_t feature = c->features_last ? c->space + 1 : 1;
  int32_t k_space = c->features_last ? 0 : 2;
  for (int i = 0; i < 3; ++i)
    types[i] = (pestle_type_t){.dtype = t->dtype, .rank = c->space + 2};
  types[0].dims[0] = 2 * c->batch_groups;
  types[0].dims[feature] = c->features;
  types[1].dims[c->features_last ? c->space + 1 : 0] = c->out;
  types[1].dims[c->features_last ? c->space : 1] = c->features / c->groups;
  types[2].dims[0] = 2;
  types[2].dims[feature] = c->out;
  for (int32_t i = 0; i < c->space; ++i) {
    int64_t n = dim(t, t->shape->rank - 1 - i);
    types[0].dims[first + i] = n;
    types[1].dims[k_space + i] = c->w.size;
    types[2].dims[first + i] = conv_places(n, &c->w);
  }
  types[2].dtype = sum_dtype(t->dtype, c->wide);
}

static inline bool build_conv(instance_t* t) {
  const conv_case_t* c = &convs[t->variant];
  t->what = c->name;
  pestle_type_t types[3];
  conv_types(t, c, types);
  int64_t stride[3], base[3], dilation[3], reversed[3], padding[6], space[3],
      kernel[3];
  double terms = (double)c->features;
  for (int32_t i = 0; i < c->space; ++i) {
    stride[i] = c->w.stride;
    base[i] = c->w.base;
    dilation[i] = c->w.dilation;
    reversed[i] = c->reversed;
    padding[2 * i] = c->w.low;
    padding[2 * i + 1] = c->w.high;
    space[i] = i + (c->features_last ? 1 : 2);
    kernel[i] = i + (c->features_last ? 0 : 2);
    terms *= (double)c->w.size;
  }
  t->fill[0] = t->fill[1] = FILL_UNIT;
  t->check = CHECK_REDUCTION;
  t->terms = terms + 1;
  int32_t feature = c->features_last ? c->space + 1 : 1;
  pestle_convolution_attrs_t attrs = {
      .struct_size = sizeof(attrs),
      .window_strides = i64s(stride, c->space),
      .padding = i64s(padding, 2 * c->space),
      .lhs_dilation = i64s(base, c->space),
      .rhs_dilation = i64s(dilation, c->space),
      .window_reversal = i64s(reversed, c->space),
      .input_batch_dimension = 0,
      .input_feature_dimension = feature,
      .input_spatial_dimensions = i64s(space, c->space),
      .kernel_input_feature_dimension = c->features_last ? c->space : 1,
      .kernel_output_feature_dimension = c->features_last ? c->space + 1 : 0,
      .kernel_spatial_dimensions = i64s(kernel, c->space),
      .output_batch_dimension = 0,
      .output_feature_dimension = feature,
      .output_spatial_dimensions = i64s(space, c->space),
      .feature_group_count = c->groups,
      .batch_group_count = c->batch_groups};
  begin(t, types, 2);
  pestle_value_t* y;
  assert_ok(
      pestle_op_convolution(&t->b, arg(t, 0), arg(t, 1), &attrs, types[2], &y));
  finish1(t, y);
  return true;
}

// --- Control ---

// n times: (i, x, y) -> (i + 1, y, x).
static inline bool build_while(instance_t* t) {
  static const char* const names[] = {"no turn", "one turn", "five turns"};
  static const int64_t turns[] = {0, 1, 5};
  t->what = names[t->variant];
  pestle_type_t i = type_of(PESTLE_I32, 0, NULL), x = shaped(t);
  begin(t, (pestle_type_t[]){x, x}, 2);
  pestle_type_t state[] = {i, x, x};
  body_t cond = body_make(t, state, 3), body = body_make(t, state, 3);
  pestle_value_t* limit = splat(&cond.b, &i, turns[t->variant]);
  pestle_value_t* go =
      scalar_op(&cond.b, PESTLE_OP_LT, body_arg(&cond, 0), limit);
  assert_ok(pestle_op_return(&cond.b, &go, 1, NULL));
  pestle_value_t* next[] = {
      scalar_op(&body.b, PESTLE_OP_ADD, body_arg(&body, 0),
                splat(&body.b, &i, 1)),
      body_arg(&body, 2), body_arg(&body, 1)};
  assert_ok(pestle_op_return(&body.b, next, 3, NULL));
  pestle_value_t *init[] = {splat(&t->b, &i, 0), arg(t, 0), arg(t, 1)}, *y[3];
  assert_ok(
      pestle_op_while(&t->b, init, 3, NULL, cond.region, body.region, y, 3));
  finish(t, y, 3);
  return true;
}

// (c; x_i; k) -> (x_i; c, k), of arrays that lie as the shape does with an axis in front.
static inline bool build_scan(instance_t* t) {
  static const char* const names[] = {"no turn", "one turn", "five turns",
                                      "five turns from the end, two at a time"};
  static const int64_t turns[] = {0, 1, 5, 5};
  t->what = names[t->variant];
  pestle_type_t x = shaped(t);
  if (x.rank == PESTLE_MAX_RANK) return false;
  int64_t dims[PESTLE_MAX_RANK] = {turns[t->variant]};
  for (int32_t i = 0; i < x.rank; ++i)
    dims[1 + i] = x.dims[i];
  begin(t, (pestle_type_t[]){x, type_of(x.dtype, x.rank + 1, dims), x}, 3);
  pestle_type_t inside[] = {x, x, x};
  body_t body = body_make(t, inside, 3);
  pestle_value_t* given[] = {body_arg(&body, 1), body_arg(&body, 0),
                             body_arg(&body, 2)};
  assert_ok(pestle_op_return(&body.b, given, 3, NULL));
  pestle_scan_attrs_t attrs = {.struct_size = sizeof(attrs),
                               .length = turns[t->variant],
                               .reverse = t->variant == 3,
                               .carry_count = 1,
                               .xs_count = 1,
                               .unroll = t->variant == 3 ? 2 : 0};
  pestle_value_t *operands[] = {arg(t, 0), arg(t, 1), arg(t, 2)}, *y[3];
  assert_ok(pestle_op_scan(&t->b, operands, 3, &attrs, body.region, y, 3));
  finish(t, y, 3);
  return true;
}

// A region that takes nothing and returns |values|.
static inline pestle_region_t* returning(instance_t* t, pestle_value_t** values,
                                         size_t count) {
  body_t body = body_make(t, NULL, 0);
  assert_ok(pestle_op_return(&body.b, values, count, NULL));
  return body.region;
}

static inline bool build_if(instance_t* t) {
  static const char* const names[] = {"chosen by an input", "always"};
  t->what = names[t->variant];
  pestle_type_t x = shaped(t), flag = type_of(PESTLE_I1, 0, NULL);
  begin(t, (pestle_type_t[]){x, x, flag}, 3);
  pestle_value_t *a = arg(t, 0), *b = arg(t, 1), *y[2];
  pestle_value_t* which = t->variant ? splat(&t->b, &flag, 1) : arg(t, 2);
  assert_ok(pestle_op_if(&t->b, which, NULL,
                         returning(t, (pestle_value_t*[]){a, b}, 2),
                         returning(t, (pestle_value_t*[]){b, a}, 2), y, 2));
  finish(t, y, 2);
  return true;
}

static inline bool build_case(instance_t* t) {
  static const char* const names[] = {"below", "first", "last", "above"};
  static const int64_t which[] = {-5, 0, 2, 3};
  t->what = names[t->variant];
  pestle_type_t x = shaped(t), index = type_of(PESTLE_I32, 0, NULL);
  begin(t, (pestle_type_t[]){x, x, x, index}, 4);
  // An index that no pass knows: the argument, bounded from both sides.
  pestle_value_t *at = arg(t, 3), *y, *v[] = {arg(t, 0), arg(t, 1), arg(t, 2)};
  pestle_value_t* k = splat(&t->b, &index, which[t->variant]);
  assert_ok(pestle_op_clamp(&t->b, k, at, k, &at));
  pestle_region_t* regions[3];
  for (int i = 0; i < 3; ++i)
    regions[i] = returning(t, &v[i], 1);
  assert_ok(pestle_op_case(&t->b, at, NULL, regions, 3, &y, 1));
  finish1(t, y);
  return true;
}

static inline bool build_call(instance_t* t) {
  t->what = "twice";
  pestle_type_t x = shaped(t);
  pestle_function_t* callee;
  assert_ok(pestle_module_create(strict_context, "m", &t->module));
  assert_ok(pestle_module_add_function(
      t->module, "swap", (pestle_type_t[]){x, x}, NULL, 2, &callee));
  pestle_builder_t b = pestle_builder_make(callee);
  pestle_value_t* swapped[] = {pestle_function_argument(callee, 1),
                               pestle_function_argument(callee, 0)};
  assert_ok(pestle_op_return(&b, swapped, 2, NULL));
  begin(t, (pestle_type_t[]){x, x}, 2);
  pestle_call_attrs_t attrs = {sizeof(attrs), "swap"};
  pestle_value_t *args[] = {arg(t, 0), arg(t, 1)}, *once[2], *y[4];
  assert_ok(pestle_op_call(&t->b, args, 2, &attrs, once, 2));
  assert_ok(pestle_op_call(&t->b, once, 2, &attrs, y, 2));
  y[2] = once[0];
  y[3] = once[1];
  finish(t, y, 4);
  return true;
}

static inline bool build_barrier(instance_t* t) {
  t->what = "of two";
  pestle_type_t x = shaped(t);
  begin(t, (pestle_type_t[]){x, x}, 2);
  pestle_value_t *args[] = {arg(t, 0), arg(t, 1)}, *y[2];
  assert_ok(pestle_op_optimization_barrier(&t->b, args, 2, NULL, y, 2));
  finish(t, y, 2);
  return true;
}

// The two tensors change places.
static inline pestle_status_t swap_tensors(void* user,
                                           const pestle_custom_call_t* call) {
  (void)user;
  for (size_t i = 0; i < 2; ++i) {
    const pestle_tensor_t* x = &call->inputs[1 - i];
    size_t size = pestle_dtype_size(pestle_dtype_from_dlpack(x->dtype));
    for (int32_t d = 0; d < x->ndim; ++d)
      size *= (size_t)x->shape[d];
    if (size) memcpy(call->outputs[i].data, x->data, size);
  }
  return NULL;
}

static inline bool build_custom_call(instance_t* t) {
  t->what = "of two";
  pestle_context_t* contexts[] = {strict_context, lenient_context};
  for (size_t i = 0; i < 2; ++i) {
    // It may be there from the instance before.
    pestle_status_release(pestle_context_register_custom_call(
        contexts[i], "conform.swap", swap_tensors, NULL, NULL));
  }
  pestle_type_t x = shaped(t), types[] = {x, x};
  begin(t, types, 2);
  pestle_value_t *args[] = {arg(t, 0), arg(t, 1)}, *y[2];
  pestle_custom_call_attrs_t attrs = {.struct_size = sizeof(attrs),
                                      .call_target_name = "conform.swap",
                                      .has_side_effect = t->variant == 1,
                                      .backend_config = "",
                                      .backend_dictionary = "",
                                      .called_computations = ""};
  assert_ok(pestle_op_custom_call(&t->b, args, 2, &attrs, types, 2, y, 2));
  finish(t, y, 2);
  return true;
}

// A body that gives its arguments back the other way round; inside another one
// for variant 1.
static inline bool build_custom(instance_t* t) {
  static const char* const names[] = {"of two", "of two, nested"};
  t->what = names[t->variant];
  pestle_type_t x = shaped(t), types[] = {x, x};
  begin(t, types, 2);
  body_t body = body_make(t, types, 2);
  pestle_value_t* y[2] = {body_arg(&body, 1), body_arg(&body, 0)};
  assert_ok(pestle_op_return(&body.b, y, 2, NULL));
  pestle_composite_attrs_t attrs = {sizeof(attrs), "conform.swap", 1, ""};
  pestle_region_t* region = body.region;
  if (t->variant == 1) {
    body_t outer = body_make(t, types, 2);
    pestle_value_t* in[] = {body_arg(&outer, 0), body_arg(&outer, 1)};
    assert_ok(pestle_op_composite(&outer.b, in, 2, &attrs, &region, 1, types, 2,
                                  y, 2));
    assert_ok(pestle_op_return(&outer.b, y, 2, NULL));
    region = outer.region;
    attrs.name = "conform.swap_outer";
  }
  pestle_value_t* args[] = {arg(t, 0), arg(t, 1)};
  assert_ok(
      pestle_op_composite(&t->b, args, 2, &attrs, &region, 1, types, 2, y, 2));
  finish(t, y, 2);
  return true;
}

// A group that exists before the fuse pass runs.
static inline bool build_fusion(instance_t* t) {
  static const char* const names[] = {"of a reverse", "of its argument"};
  t->what = names[t->variant];
  pestle_type_t x = shaped(t);
  begin(t, &x, 1);
  body_t body = body_make(t, &x, 1);
  pestle_value_t* y = body_arg(&body, 0);
  if (t->variant == 0) {
    if (!x.rank) {
      pestle_module_release(t->module);
      t->module = NULL;
      return false;
    }
    pestle_reverse_attrs_t attrs = {sizeof(attrs), PESTLE_I64S(0)};
    assert_ok(pestle_op_reverse(&body.b, y, &attrs, &y));
  }
  assert_ok(pestle_op_return(&body.b, &y, 1, NULL));
  pestle_value_t* operand = arg(t, 0);
  assert_ok(pestle_op_fusion(&t->b, &operand, 1, NULL, body.region, &y, 1));
  finish1(t, y);
  return true;
}

// --- Composites ---

static inline void wide_check(instance_t* t, check_t check, double terms) {
  t->check = check;
  t->terms = terms;
}

// exp(x - max) is off by |x - max| <= 8 roundings of its argument and 2 ulp of
// its own, the sum by one for each element.
static inline bool build_soft(instance_t* t) {
  t->what = axis_choices[t->variant];
  int64_t axes[PESTLE_MAX_RANK];
  int32_t n = reduce_axes(t, t->variant, axes);
  bool log = t->row->op == PESTLE_OP_LOG_SOFTMAX;
  wide_check(t, log ? CHECK_ABSOLUTE : CHECK_RELATIVE,
             reduce_terms(t, axes, n) + 24);
  t->fill[0] = FILL_SPREAD;
  pestle_value_t *x = begin_unary(t), *y;
  if (t->row->op == PESTLE_OP_LOGSUMEXP) {
    t->check = CHECK_ABSOLUTE;
    pestle_logsumexp_attrs_t attrs = {sizeof(attrs), i64s(axes, n)};
    assert_ok(pestle_op_logsumexp(&t->b, x, &attrs, &y));
  } else if (log) {
    pestle_log_softmax_attrs_t attrs = {sizeof(attrs), i64s(axes, n)};
    assert_ok(pestle_op_log_softmax(&t->b, x, &attrs, &y));
  } else {
    pestle_softmax_attrs_t attrs = {sizeof(attrs), i64s(axes, n)};
    assert_ok(pestle_op_softmax(&t->b, x, &attrs, &y));
  }
  finish1(t, y);
  return true;
}

// One element, about half of them, or a few more than there are: windows that
// divide the axis, that overlap, and of one or two elements.
static const char* const pool_sizes[] = {"one", "half", "more"};
enum { POOLS = 3 * AXIS_CHOICES };

static inline bool build_adaptive(instance_t* t) {
  static char name[64];
  uint32_t how = t->variant / AXIS_CHOICES;
  int64_t axes[PESTLE_MAX_RANK], sizes[PESTLE_MAX_RANK];
  int32_t n = reduce_axes(t, t->variant % AXIS_CHOICES, axes);
  double terms = 1;
  snprintf(name, sizeof(name), "onto %s, %s", pool_sizes[how],
           axis_choices[t->variant % AXIS_CHOICES]);
  t->what = name;
  for (int32_t i = 0; i < n; ++i) {
    int64_t extent = t->shape->dims[axes[i]];
    sizes[i] = how == 0 ? 1 : how == 1 ? (extent + 1) / 2 : extent + 2;
    if (extent == 0) sizes[i] = 0;
    terms *= (double)(sizes[i] ? extent / sizes[i] + 2 : 1);
  }
  bool average = t->row->op == PESTLE_OP_ADAPTIVE_AVERAGE_POOL;
  if (average) t->fill[0] = FILL_UNIT;
  wide_check(t, average ? CHECK_ABSOLUTE : CHECK_VALUES, terms + 2);
  pestle_value_t *x = begin_unary(t), *y;
  if (average) {
    pestle_adaptive_average_pool_attrs_t attrs = {sizeof(attrs), i64s(axes, n),
                                                  i64s(sizes, n)};
    assert_ok(pestle_op_adaptive_average_pool(&t->b, x, &attrs, &y));
  } else {
    pestle_adaptive_max_pool_attrs_t attrs = {sizeof(attrs), i64s(axes, n),
                                              i64s(sizes, n)};
    assert_ok(pestle_op_adaptive_max_pool(&t->b, x, &attrs, &y));
  }
  finish1(t, y);
  return true;
}

typedef struct attention_case_t {
  const char* name;
  int64_t depth, width;
  bool bias, masked;       // masked: -infinity where the argument is negative
  bool by_row, by_column;  // the bias differs from row to row, ...
  bool hidden;             // that is a mask, of scores that become -8
} attention_case_t;

static const attention_case_t attentions[] = {
    {"no bias", 16, 20, false, false, false, false, false},
    {"bias", 5, 7, true, false, true, true, false},
    {"row hidden", 8, 16, true, false, false, true, true},
    {"masked rows", 1, 1, true, true, true, false, false},
    {"masked", 7, 33, true, true, true, true, false},
};
enum { ATTENTIONS = sizeof(attentions) / sizeof(attentions[0]) };

// The last two axes of the shape are those of the scores.
static inline pestle_type_t attention_type(const instance_t* t, int64_t rows,
                                           int64_t columns) {
  pestle_type_t type = type_of(t->dtype, 0, NULL);
  for (int32_t i = 0; i + 2 < t->shape->rank; ++i)
    type.dims[type.rank++] = t->shape->dims[i];
  type.dims[type.rank++] = rows;
  type.dims[type.rank++] = columns;
  return type;
}

// |x| where it is not negative, else -infinity.
static inline pestle_value_t* mask(instance_t* t, pestle_value_t* x) {
  uint64_t bits = pestle_float_encode(t->dtype, -INFINITY);
  pestle_constant_attrs_t attrs = {
      sizeof(attrs), {*x->type, &bits, pestle_dtype_size(t->dtype), true}};
  pestle_value_t *low, *y, *zero = splat(&t->b, x->type, 0);
  assert_ok(pestle_op_constant(&t->b, &attrs, &low));
  pestle_value_t* keep = scalar_op(&t->b, PESTLE_OP_GE, x, zero);
  assert_ok(pestle_op_select(&t->b, keep, x, low, &y));
  return y;
}

// Scores are at most 8 + 1 with one rounding a term, which show in the weights;
// their sum and that of the values, which are at most 1, take one a column.
static inline bool build_attention(instance_t* t) {
  const attention_case_t* c = &attentions[t->variant];
  int32_t rank = t->shape->rank;
  int64_t columns = rank ? t->shape->dims[rank - 1] : 1;
  int64_t rows = rank > 1 ? t->shape->dims[rank - 2] : 1;
  t->what = c->name;
  wide_check(t, CHECK_ABSOLUTE,
             2 * (double)columns + 9 * (double)c->depth + 24);
  for (size_t i = 0; i < 4; ++i)
    t->fill[i] = FILL_UNIT;
  pestle_type_t types[] = {
      attention_type(t, rows, c->depth), attention_type(t, columns, c->depth),
      attention_type(t, columns, c->width),
      attention_type(t, c->by_row ? rows : 1, c->by_column ? columns : 1)};
  begin(t, types, c->bias ? 4 : 3);
  pestle_value_t *operands[4], *y;
  for (size_t i = 0; i < t->arg_count; ++i)
    operands[i] = arg(t, i);
  if (c->masked) operands[3] = mask(t, operands[3]);
  if (c->hidden) {
    pestle_value_t* zero = splat(&t->b, operands[3]->type, 0);
    operands[3] = scalar_op(&t->b, PESTLE_OP_GE, operands[3], zero);
  }
  pestle_attention_attrs_t attrs = {sizeof(attrs), 0.5, -8};
  assert_ok(pestle_op_attention(&t->b, operands, t->arg_count, &attrs, &y));
  finish1(t, y);
  return true;
}

// Sums of rows and columns of what the gradient has of the scores, each of which has the
// roundings of a weight and of a product with a row of v.
static inline bool build_attention_grad(instance_t* t) {
  const attention_case_t* c = &attentions[t->variant];
  int32_t rank = t->shape->rank;
  int64_t columns = rank ? t->shape->dims[rank - 1] : 1;
  int64_t rows = rank > 1 ? t->shape->dims[rank - 2] : 1;
  t->what = c->name;
  wide_check(t, CHECK_ABSOLUTE,
             2 * (1 + (double)c->width) *
                 (2 * (double)(columns + rows) +
                  9 * (double)(c->depth + c->width) + 24));
  for (size_t i = 0; i < 6; ++i)
    t->fill[i] = FILL_UNIT;
  pestle_type_t types[] = {
      attention_type(t, rows, c->depth),
      attention_type(t, columns, c->depth),
      attention_type(t, columns, c->width),
      attention_type(t, rows, c->width),
      attention_type(t, rows, c->width),
      attention_type(t, c->by_row ? rows : 1, c->by_column ? columns : 1)};
  begin(t, types, c->bias ? 6 : 5);
  pestle_value_t *operands[6], *y[4];
  for (size_t i = 0; i < t->arg_count; ++i)
    operands[i] = arg(t, i);
  if (c->masked) operands[5] = mask(t, operands[5]);
  if (c->hidden) {
    pestle_value_t* zero = splat(&t->b, operands[5]->type, 0);
    operands[5] = scalar_op(&t->b, PESTLE_OP_GE, operands[5], zero);
  }
  bool of_bias = c->bias && !c->hidden && !c->masked;
  pestle_attention_grad_attrs_t attrs = {sizeof(attrs), 0.5, -8, of_bias};
  size_t count = of_bias ? 4 : 3;
  assert_ok(pestle_op_attention_grad(&t->b, operands, t->arg_count, &attrs, y,
                                     count));
  finish(t, y, count);
  return true;
}

// With epsilon 0.1 and |x| <= 1 what is divided by is at least 0.31: each of
// the roundings of mean, difference and square shows at most 3.2 times.
static inline bool build_norm(instance_t* t) {
  t->what = axis_choices[t->variant];
  int64_t axes[PESTLE_MAX_RANK], dims[PESTLE_MAX_RANK];
  int32_t n = reduce_axes(t, t->variant, axes);
  for (int32_t i = 0; i < n; ++i)
    dims[i] = t->shape->dims[axes[i]];
  bool layer = t->row->op == PESTLE_OP_LAYER_NORM;
  wide_check(t, CHECK_ABSOLUTE, 3.2 * (reduce_terms(t, axes, n) + 8));
  t->fill[0] = FILL_UNIT;
  t->fill[1] = FILL_SCALE;
  t->fill[2] = FILL_UNIT;
  pestle_type_t along = type_of(t->dtype, n, dims);
  begin(t, (pestle_type_t[]){shaped(t), along, along}, layer ? 3 : 2);
  pestle_value_t* y;
  if (layer) {
    pestle_layer_norm_attrs_t attrs = {sizeof(attrs), i64s(axes, n), 0.1};
    assert_ok(pestle_op_layer_norm(&t->b, arg(t, 0), arg(t, 1), arg(t, 2),
                                   &attrs, &y));
  } else {
    pestle_rms_norm_attrs_t attrs = {sizeof(attrs), i64s(axes, n), 0.1};
    assert_ok(pestle_op_rms_norm(&t->b, arg(t, 0), arg(t, 1), &attrs, &y));
  }
  finish1(t, y);
  return true;
}

// Sums of as many terms as there are rows, of numbers that are divided by 0.31 at least.
static inline bool build_norm_grad(instance_t* t) {
  static const char* const names[] = {"centred", "two blocks"};
  int32_t rank = t->shape->rank;
  t->what = names[t->variant];
  if (!rank) return false;
  pestle_type_t x = shaped(t);
  int64_t length = x.dims[rank - 1], rows = 1;
  for (int32_t d = 0; d + 1 < rank; ++d)
    rows *= x.dims[d];
  // The mean of nothing is NaN here and there.
  if (!rows || !length) return false;
  wide_check(t, CHECK_ABSOLUTE, 60 * (1 + (double)rows) * ((double)length + 8));
  for (size_t i = 0; i < 3; ++i)
    t->fill[i] = FILL_UNIT;
  pestle_type_t along = type_of(t->dtype, 1, &length);
  begin(t, (pestle_type_t[]){x, along, x}, 3);
  pestle_value_t* y[3];
  pestle_norm_grad_attrs_t attrs = {
      .struct_size = sizeof(attrs),
      .dimension = rank - 1,
      .epsilon = 0.1,
      .centred = t->variant == 0,
      .blocks = t->variant == 1 && rows > 1 ? 2 : 1};
  size_t count = attrs.centred ? 3 : 2;
  assert_ok(pestle_op_norm_grad(&t->b, arg(t, 0), arg(t, 1), arg(t, 2), &attrs,
                                y, count));
  finish(t, y, count);
  return true;
}

// Numbers of bits, lengths of blocks, and what the zero points are.
typedef struct block_dot_case_t {
  const char* name;
  int64_t bits, block;
  enum { ZEROS_HALF, ZEROS_BYTES, ZEROS_FLOATS } zeros;
} block_dot_case_t;

static const block_dot_case_t block_dots[] = {
    {"4 bits of 32", 4, 32, ZEROS_HALF},
    {"4 bits of 32, zeros", 4, 32, ZEROS_BYTES},
    {"4 bits of 128, float zeros", 4, 128, ZEROS_FLOATS},
    {"8 bits of 16", 8, 16, ZEROS_HALF},
    {"8 bits of 32, float zeros", 8, 32, ZEROS_FLOATS},
    {"2 bits of 64, zeros", 2, 64, ZEROS_BYTES},
    {"4 bits of 256", 4, 256, ZEROS_HALF},
    {"2 bits of 16", 2, 16, ZEROS_HALF},
};
enum { BLOCK_DOTS = sizeof(block_dots) / sizeof(block_dots[0]) };

// The shape's last extents are rows of x and of the weights; k ends within a block.
static inline bool build_block_dot(instance_t* t) {
  const block_dot_case_t* c = &block_dots[t->variant];
  int32_t rank = t->shape->rank;
  int64_t n = rank ? t->shape->dims[rank - 1] : 1;
  int64_t rows = rank > 1 ? t->shape->dims[rank - 2] : 1;
  int64_t blocks = 1 + (n + rows) % 7, k = blocks * c->block - n % c->block;
  t->what = c->name;
  if (!n || !rows) return false;
  double most = (double)((int64_t)1 << c->bits);
  wide_check(t, CHECK_ABSOLUTE, most * ((double)k + 8));
  t->fill[0] = t->fill[2] = FILL_UNIT;
  t->fill[1] = FILL_BITS;
  t->fill[3] = c->zeros == ZEROS_BYTES ? FILL_BITS : FILL_SCALE;
  const int64_t x[] = {rows, k}, w[] = {n, blocks * c->block * c->bits / 8};
  const int64_t scales[] = {n, blocks};
  pestle_type_t types[] = {
      type_of(t->dtype, 2, x), type_of(PESTLE_U8, 2, w),
      type_of(t->dtype, 2, scales),
      type_of(c->zeros == ZEROS_BYTES ? PESTLE_U8 : t->dtype, 2, scales)};
  if (c->zeros == ZEROS_BYTES) t->terms *= 256 / most;
  begin(t, types, c->zeros == ZEROS_HALF ? 3 : 4);
  pestle_value_t *operands[4], *y;
  for (size_t i = 0; i < t->arg_count; ++i)
    operands[i] = arg(t, i);
  pestle_block_dot_attrs_t attrs = {sizeof(attrs), c->bits, c->block, 0};
  assert_ok(pestle_op_block_dot(&t->b, operands, t->arg_count, &attrs, &y));
  finish1(t, y);
  return true;
}

// |x| <= 4: what cancels to little near -4 keeps the roundings of values up to
// 4, a few each.
static inline bool build_activation(instance_t* t) {
  static const char* const names[] = {"", "approximate"};
  t->what = names[t->variant];
  wide_check(t, CHECK_ABSOLUTE, 24);
  t->fill[0] = FILL_SPREAD;
  pestle_value_t *x = begin_unary(t), *y;
  if (t->row->op == PESTLE_OP_GELU) {
    pestle_gelu_attrs_t attrs = {sizeof(attrs), t->variant == 1};
    assert_ok(pestle_op_gelu(&t->b, x, &attrs, &y));
  } else if (t->row->op == PESTLE_OP_SILU) {
    assert_ok(pestle_op_silu(&t->b, x, NULL, &y));
  } else {
    pestle_hard_sigmoid_attrs_t attrs = {sizeof(attrs), 0.2, 0.5};
    assert_ok(pestle_op_hard_sigmoid(&t->b, x, &attrs, &y));
  }
  finish1(t, y);
  return true;
}

// --- Quantisation ---

// |dtype| is that of the scale; variants choose the quantised one, and whether
// there is one scale or one along the last axis.
static const pestle_dtype_t quantized[] = {
    PESTLE_I8,         PESTLE_U8,         PESTLE_I16,      PESTLE_U16,
    PESTLE_I4,         PESTLE_U4,         PESTLE_F8E4M3FN, PESTLE_F8E5M2,
    PESTLE_F8E4M3FNUZ, PESTLE_F8E5M2FNUZ, PESTLE_I32,      PESTLE_I2,
    PESTLE_U2,         PESTLE_F4E2M1FN,   PESTLE_F6E3M2FN};
enum { QUANTIZED = sizeof(quantized) / sizeof(quantized[0]) };

static inline bool build_quantisation(instance_t* t) {
  static char name[64];
  pestle_dtype_t q = quantized[t->variant % QUANTIZED];
  bool along = t->variant / QUANTIZED,
       back = t->row->op == PESTLE_OP_DEQUANTIZE;
  int32_t rank = t->shape->rank;
  snprintf(name, sizeof(name), "%s, %s", pestle_dtype_info(q)->name,
           along ? "by axis" : "one scale");
  t->what = name;
  if ((along && !rank) || (q == PESTLE_I32 && !back)) return false;
  int64_t last = rank ? t->shape->dims[rank - 1] : 1;
  pestle_type_t x = shaped(t), scale = type_of(t->dtype, along, &last);
  pestle_type_t zero = type_of(q, along, &last);
  if (back) x.dtype = q;
  t->fill[0] = is_float(q) ? FILL_UNIT : FILL_SPREAD;
  t->fill[1] = FILL_SCALE;
  t->fill[2] = FILL_UNIT;
  // To integers both sides take one rounding in the scale's precision; beside
  // it there is one of the difference and one of the product.
  bool exact = !back && !is_float(q);
  wide_check(t, exact ? CHECK_VALUES : CHECK_ABSOLUTE, 4);
  begin(t, (pestle_type_t[]){x, scale, zero}, 3);
  pestle_value_t* y;
  if (back) {
    pestle_dequantize_attrs_t attrs = {sizeof(attrs), rank ? rank - 1 : 0};
    assert_ok(pestle_op_dequantize(&t->b, arg(t, 0), arg(t, 1), arg(t, 2),
                                   &attrs, &y));
  } else {
    pestle_quantize_attrs_t attrs = {sizeof(attrs), rank ? rank - 1 : 0};
    assert_ok(
        pestle_op_quantize(&t->b, arg(t, 0), arg(t, 1), arg(t, 2), &attrs, &y));
  }
  finish1(t, y);
  return true;
}

// --- fft ---

enum { FFTS = 6 };

// The error of a transform of n points that it takes apart is a few roundings a
// factor of numbers whose size, of inputs up to 1, is sqrt(n) or so.
static inline bool build_fft(instance_t* t) {
  static char name[64];
  static const char* const kinds[] = {"FFT", "IFFT", "IRFFT"};
  bool real = !is_complex(t->dtype), all = t->variant >= 3;
  const char* kind = real ? "RFFT" : kinds[t->variant % 3];
  int32_t rank = t->shape->rank, axes = all && rank < 3 ? rank : all ? 3 : 1;
  if (!rank || (real && t->variant % 3)) return false;
  snprintf(name, sizeof(name), "%s, %d axes", kind, (int)axes);
  t->what = name;
  pestle_type_t type = shaped(t), wide = shaped(t);
  int64_t lengths[3];
  double points = 1;
  for (int32_t i = 0; i < axes; ++i) {
    lengths[i] = type.dims[rank - axes + i];
    points *= (double)(lengths[i] ? lengths[i] : 1);
  }
  bool half = !strcmp(kind, "IRFFT");
  if (half && lengths[axes - 1]) {
    type.dims[rank - 1] = lengths[axes - 1] / 2 + 1;
  }
  t->fill[0] = FILL_UNIT;
  t->check = CHECK_ABSOLUTE;
  t->terms = 6 * log2(2 * points) * sqrt(points);
  if (wide.dtype != PESTLE_F64) wide.dtype = PESTLE_F32;
  begin(t, &type, 1);
  pestle_value_t *x = arg(t, 0), *y;
  if (real) assert_ok(pestle_op_convert(&t->b, x, NULL, wide, &x));
  pestle_fft_attrs_t attrs = {sizeof(attrs), kind, i64s(lengths, axes)};
  assert_ok(pestle_op_fft(&t->b, x, &attrs, &y));
  finish1(t, y);
  return true;
}

#endif  // PESTLE_TOOLS_CONFORM_OPS_REDUCE_H_

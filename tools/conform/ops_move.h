// SPDX-License-Identifier: Apache-2.0
// Instances of the ops that make or move elements: sources, conversions, views,
// computed indices.
#ifndef PESTLE_TOOLS_CONFORM_OPS_MOVE_H_
#define PESTLE_TOOLS_CONFORM_OPS_MOVE_H_

#include "tools/conform/instance.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

static inline int64_t dim(const instance_t* t, int32_t i) {
  return i >= 0 && i < t->shape->rank ? t->shape->dims[i] : 1;
}

static inline pestle_type_t shaped(const instance_t* t) {
  return type_of(t->dtype, t->shape->rank, t->shape->dims);
}

static inline pestle_i64s_t i64s(const int64_t* data, int32_t count) {
  return (pestle_i64s_t){data, (size_t)count};
}

// An argument of the instance's shape and dtype.
static inline pestle_value_t* begin_unary(instance_t* t) {
  pestle_type_t type = shaped(t);
  begin(t, &type, 1);
  return arg(t, 0);
}

// --- Sources ---

static inline bool build_constant(instance_t* t) {
  static const char* const names[] = {"dense", "splat", "as an operand",
                                      "splat as an operand"};
  t->what = names[t->variant];
  pestle_type_t type = shaped(t);
  begin(t, &type, t->variant > 1);
  pestle_value_t* y;
  bool splat = t->variant & 1;
  t->fill[0] = FILL_BITS;
  // A scalar of a kernel is an f64 there, whose NaNs are quiet.
  if (t->variant == 3) t->check = CHECK_VALUES;
  char* data = make_data(t, 0, &type, false);
  pestle_constant_attrs_t attrs = {
      sizeof(attrs),
      {type, data,
       splat ? pestle_dtype_size(type.dtype) : pestle_type_bytes(&type),
       splat}};
  assert_ok(pestle_op_constant(&t->b, &attrs, &y));
  free(data);
  if (t->variant > 1) {
    // Beside the argument, so that a kernel reads it.
    if (!type.rank) {
      pestle_value_t* flag;
      int64_t none = 0;
      pestle_elements_t yes = {type_of(PESTLE_I1, 0, &none), "\1", 1, true};
      assert_ok(pestle_op_constant(
          &t->b, &(pestle_constant_attrs_t){sizeof(attrs), yes}, &flag));
      assert_ok(pestle_op_select(&t->b, flag, y, arg(t, 0), &y));
    } else {
      pestle_value_t* parts[] = {arg(t, 0), y};
      assert_ok(pestle_op_concatenate(
          &t->b, parts, 2,
          &(pestle_concatenate_attrs_t){sizeof(pestle_concatenate_attrs_t),
                                        type.rank - 1},
          &y));
    }
  }
  finish1(t, y);
  return true;
}

static inline bool build_iota(instance_t* t) {
  static const char* const names[] = {"axis 0", "axis 1", "axis 2"};
  t->what = names[t->variant];
  if ((int32_t)t->variant >= t->shape->rank) return false;
  begin(t, NULL, 0);
  pestle_value_t* y;
  pestle_iota_attrs_t attrs = {sizeof(attrs), (int64_t)t->variant};
  t->check = CHECK_VALUES;
  assert_ok(pestle_op_iota(&t->b, &attrs, shaped(t), &y));
  finish1(t, y);
  return true;
}

// --- Elementwise with a type of their own ---

enum { REAL_KINDS = PESTLE_KIND_BOOL | PESTLE_KIND_REAL };

// One result for every dtype that |t|'s converts to.
static inline bool build_convert(instance_t* t) {
  static const char* const names[] = {"to reals", "to complex"};
  t->what = names[t->variant];
  t->fill[0] = FILL_VALUES;
  t->check = CHECK_VALUES;
  pestle_value_t *x = begin_unary(t), *y[MAX_RESULTS];
  size_t n = 0;
  for (int d = PESTLE_I1; d < PESTLE_DTYPE_COUNT; ++d) {
    if (!pestle_dtype_is_stored((pestle_dtype_t)d)) continue;
    pestle_type_t type = shaped(t);
    type.dtype = (pestle_dtype_t)d;
    if (is_complex(type.dtype) != (t->variant == 1)) continue;
    assert_ok(pestle_op_convert(&t->b, x, NULL, type, &y[n++]));
  }
  finish(t, y, n);
  return true;
}

// One result for every dtype of the variant's width: as many bits, or 2, 4 or 8
// times fewer or more.
static inline bool build_bitcast(instance_t* t) {
  static const char* const names[] = {"same width", "2 parts",    "4 parts",
                                      "8 parts",    "of 2 parts", "of 4 parts",
                                      "of 8 parts"};
  static const unsigned parts[] = {1, 2, 4, 8, 2, 4, 8};
  t->what = names[t->variant];
  // What negating makes of a NaN's bits is not said, and here it would show.
  bool negated = t->wrapped && is_float(part_of(t->dtype));
  t->fill[0] = negated ? FILL_UNIT : FILL_BITS;
  bool wider = t->variant > 3;
  unsigned n = parts[t->variant], bits = pestle_dtype_info(t->dtype)->bits;
  pestle_dtype_t to[MAX_RESULTS];
  size_t count = 0;
  for (int d = PESTLE_I1; d < PESTLE_DTYPE_COUNT; ++d) {
    if (!pestle_dtype_is_stored((pestle_dtype_t)d)) continue;
    pestle_dtype_t dtype = (pestle_dtype_t)d;
    unsigned other = pestle_dtype_info(dtype)->bits;
    bool fits = wider ? other == bits * n : other * n == bits;
    // A complex number is cut into its own parts alone.
    bool alike = is_complex(dtype) == is_complex(t->dtype) ||
                 part_of(dtype) == part_of(t->dtype);
    if (fits && alike) to[count++] = dtype;
  }
  if (!count) return false;
  pestle_type_t argument = shaped(t);
  if (wider) argument.dims[argument.rank++] = n;
  begin(t, &argument, 1);
  pestle_value_t *x = arg(t, 0), *y[MAX_RESULTS];
  for (size_t i = 0; i < count; ++i) {
    pestle_type_t type = shaped(t);
    type.dtype = to[i];
    if (!wider && n > 1) type.dims[type.rank++] = n;
    assert_ok(pestle_op_bitcast_convert(&t->b, x, NULL, type, &y[i]));
  }
  finish(t, y, count);
  return true;
}

// Of f32 and f64; narrower floats are widened.
static inline bool build_complex(instance_t* t) {
  t->what = "parts";
  t->check = CHECK_VALUES;
  t->fill[0] = t->fill[1] = FILL_VALUES;
  pestle_type_t types[] = {shaped(t), shaped(t)}, wide = shaped(t);
  if (wide.dtype != PESTLE_F64) wide.dtype = PESTLE_F32;
  begin(t, types, 2);
  pestle_value_t *re = arg(t, 0), *im = arg(t, 1), *y;
  assert_ok(pestle_op_convert(&t->b, re, NULL, wide, &re));
  assert_ok(pestle_op_convert(&t->b, im, NULL, wide, &im));
  assert_ok(pestle_op_complex(&t->b, re, im, NULL, &y));
  finish1(t, y);
  return true;
}

static inline bool build_part(instance_t* t) {
  t->what = "part";
  pestle_value_t *x = begin_unary(t), *y;
  bool real = t->row->op == PESTLE_OP_REAL;
  assert_ok(real ? pestle_op_real(&t->b, x, NULL, &y)
                 : pestle_op_imag(&t->b, x, NULL, &y));
  finish1(t, y);
  return true;
}

// --- Views ---

static inline bool build_broadcast(instance_t* t) {
  static const char* const names[] = {"of a scalar", "of ones",
                                      "under a new first axis",
                                      "axes in another order"};
  t->what = names[t->variant];
  pestle_type_t type = shaped(t), from = type;
  int64_t axes[PESTLE_MAX_RANK];
  int32_t rank = type.rank;
  for (int32_t i = 0; i < rank; ++i)
    axes[i] = i;
  if (t->variant == 0) {
    from.rank = 0;
  } else if (t->variant == 1) {
    for (int32_t i = 0; i < rank; i += 2)
      from.dims[i] = 1;
  } else if (t->variant == 2) {
    if (rank >= 4) return false;
    for (int32_t i = 0; i < rank; ++i)
      axes[i] = i + 1;
    for (int32_t i = type.rank++; i > 0; --i)
      type.dims[i] = type.dims[i - 1];
    type.dims[0] = 3;
  } else {
    if (rank < 2) return false;
    for (int32_t i = 0; i < rank; ++i) {
      axes[i] = rank - 1 - i;
      from.dims[i] = type.dims[rank - 1 - i];
    }
    from.dims[0] = 1;
  }
  begin(t, &from, 1);
  pestle_broadcast_in_dim_attrs_t attrs = {sizeof(attrs),
                                           i64s(axes, from.rank)};
  pestle_value_t* y;
  assert_ok(pestle_op_broadcast_in_dim(&t->b, arg(t, 0), &attrs, type, &y));
  finish1(t, y);
  return true;
}

static inline bool build_reshape(instance_t* t) {
  static const char* const names[] = {"to one axis", "with ones between",
                                      "axes split and merged"};
  t->what = names[t->variant];
  pestle_type_t from = shaped(t), to = from;
  int64_t count = pestle_type_count(&from);
  if (t->variant == 0) {
    to = type_of(t->dtype, 1, DIMS(count));
  } else if (t->variant == 1) {
    to.rank = 0;
    for (int32_t i = 0; i < from.rank; ++i) {
      to.dims[to.rank++] = 1;
      to.dims[to.rank++] = from.dims[i];
    }
    to.dims[to.rank++] = 1;
  } else {
    // [a, b, c] -> [b * c, a]: no axis keeps its place.
    if (from.rank < 2) return false;
    int64_t rest = 1;
    for (int32_t i = 1; i < from.rank; ++i)
      rest *= from.dims[i];
    to = type_of(t->dtype, 2, DIMS(rest, from.dims[0]));
  }
  pestle_value_t *x = begin_unary(t), *y;
  assert_ok(pestle_op_reshape(&t->b, x, NULL, to, &y));
  finish1(t, y);
  return true;
}

static inline bool build_transpose(instance_t* t) {
  static const char* const names[] = {"reversed", "rotated", "last two",
                                      "identity"};
  t->what = names[t->variant];
  int32_t rank = t->shape->rank;
  if (rank < 2 && t->variant != 3) return false;
  int64_t p[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < rank; ++i) {
    p[i] = t->variant == 0   ? rank - 1 - i
           : t->variant == 1 ? (i + 1) % rank
                             : i;
  }
  if (t->variant == 2) {
    p[rank - 1] = rank - 2;
    p[rank - 2] = rank - 1;
  }
  pestle_value_t *x = begin_unary(t), *y;
  pestle_transpose_attrs_t attrs = {sizeof(attrs), i64s(p, rank)};
  assert_ok(pestle_op_transpose(&t->b, x, &attrs, &y));
  finish1(t, y);
  return true;
}

static inline bool build_slice(instance_t* t) {
  static const char* const names[] = {"all", "inside", "strided", "empty"};
  t->what = names[t->variant];
  int32_t rank = t->shape->rank;
  int64_t start[PESTLE_MAX_RANK], limit[PESTLE_MAX_RANK], step[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < rank; ++i) {
    int64_t n = t->shape->dims[i];
    start[i] = t->variant == 0 ? 0 : n / 4;
    limit[i] = t->variant == 1 ? n - n / 3 : n;
    if (t->variant == 3 && i == rank - 1) limit[i] = start[i];
    step[i] = t->variant == 2 ? 2 + i : 1;
  }
  pestle_value_t *x = begin_unary(t), *y;
  pestle_slice_attrs_t attrs = {sizeof(attrs), i64s(start, rank),
                                i64s(limit, rank), i64s(step, rank)};
  assert_ok(pestle_op_slice(&t->b, x, &attrs, &y));
  finish1(t, y);
  return true;
}

static inline bool build_reverse(instance_t* t) {
  static const char* const names[] = {"all axes", "last axis", "first axis"};
  t->what = names[t->variant];
  int32_t rank = t->shape->rank;
  if (!rank && t->variant) return false;
  int64_t axes[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < rank; ++i)
    axes[i] = i;
  if (t->variant == 1) axes[0] = rank - 1;
  pestle_value_t *x = begin_unary(t), *y;
  pestle_reverse_attrs_t attrs = {sizeof(attrs),
                                  i64s(axes, t->variant ? 1 : rank)};
  assert_ok(pestle_op_reverse(&t->b, x, &attrs, &y));
  finish1(t, y);
  return true;
}

static inline bool build_pad(instance_t* t) {
  static const char* const names[] = {"edges", "interior", "negative edges",
                                      "all at once"};
  t->what = names[t->variant];
  int32_t rank = t->shape->rank;
  int64_t low[PESTLE_MAX_RANK], high[PESTLE_MAX_RANK], inner[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < rank; ++i) {
    int64_t n = t->shape->dims[i];
    inner[i] = t->variant & 1 ? 1 + i % 2 : 0;
    low[i] = t->variant == 0 ? i : t->variant == 1 ? 0 : n > 2 ? -1 : 0;
    high[i] = t->variant == 0   ? 2
              : t->variant == 1 ? 0
              : t->variant == 2 ? (n > 3 ? -2 : 1)
                                : 3;
  }
  pestle_type_t types[] = {shaped(t), type_of(t->dtype, 0, NULL)};
  begin(t, types, 2);
  pestle_value_t* y;
  pestle_pad_attrs_t attrs = {sizeof(attrs), i64s(low, rank), i64s(high, rank),
                              i64s(inner, rank)};
  assert_ok(pestle_op_pad(&t->b, arg(t, 0), arg(t, 1), &attrs, &y));
  finish1(t, y);
  return true;
}

static inline bool build_concatenate(instance_t* t) {
  static const char* const names[] = {"first axis", "last axis", "one operand",
                                      "one operand twice, one empty"};
  t->what = names[t->variant];
  int32_t rank = t->shape->rank, axis = t->variant == 0 ? 0 : rank - 1;
  if (!rank) return false;
  pestle_type_t types[3] = {shaped(t), shaped(t), shaped(t)};
  types[1].dims[axis] = t->variant == 3 ? 0 : types[1].dims[axis] + 3;
  types[2].dims[axis] = 1;
  begin(t, types, t->variant == 2 ? 1 : 3);
  pestle_value_t *parts[4] = {arg(t, 0)}, *y;
  size_t n = 1;
  for (size_t i = 1; i < t->arg_count; ++i)
    parts[n++] = arg(t, i);
  if (t->variant == 3) parts[n++] = parts[0];
  pestle_concatenate_attrs_t attrs = {sizeof(attrs), axis};
  assert_ok(pestle_op_concatenate(&t->b, parts, n, &attrs, &y));
  finish1(t, y);
  return true;
}

// --- Computed indices ---

static const pestle_dtype_t index_dtypes[] = {
    PESTLE_I32, PESTLE_I64, PESTLE_U8, PESTLE_I16, PESTLE_U64, PESTLE_I8,
};

// Of |extent| positions, which the index type can hold.
static inline pestle_dtype_t index_dtype(const instance_t* t) {
  return index_dtypes[(t->variant + t->dtype) % 6];
}

static inline void index_arg(instance_t* t, size_t i, int64_t limit) {
  t->fill[i] = FILL_INDEX;
  t->limit[i] = limit < 0 ? 0 : limit > 100 ? 100 : limit;
}

static inline bool build_dynamic_slice(instance_t* t) {
  static const char* const names[] = {"parts", "whole", "empty"};
  t->what = names[t->variant];
  int32_t rank = t->shape->rank;
  int64_t sizes[PESTLE_MAX_RANK];
  pestle_type_t types[MAX_ARGS] = {shaped(t)};
  for (int32_t i = 0; i < rank; ++i) {
    int64_t n = t->shape->dims[i];
    sizes[i] = t->variant == 0 ? n - n / 3 : n;
    if (t->variant == 2 && i == 0) sizes[i] = 0;
    types[i + 1] = type_of(index_dtype(t), 0, NULL);
    index_arg(t, (size_t)i + 1, n - sizes[i]);
  }
  begin(t, types, (size_t)rank + 1);
  pestle_value_t *operands[MAX_ARGS], *y;
  for (int32_t i = 0; i <= rank; ++i)
    operands[i] = arg(t, (size_t)i);
  pestle_dynamic_slice_attrs_t attrs = {sizeof(attrs), i64s(sizes, rank)};
  assert_ok(
      pestle_op_dynamic_slice(&t->b, operands, (size_t)rank + 1, &attrs, &y));
  finish1(t, y);
  return true;
}

static inline bool build_dynamic_update_slice(instance_t* t) {
  static const char* const names[] = {"parts", "whole", "empty"};
  t->what = names[t->variant];
  int32_t rank = t->shape->rank;
  pestle_type_t types[MAX_ARGS] = {shaped(t), shaped(t)};
  for (int32_t i = 0; i < rank; ++i) {
    int64_t n = t->shape->dims[i], *size = &types[1].dims[i];
    if (t->variant == 0) *size = n - n / 3;
    if (t->variant == 2 && i == 0) *size = 0;
    types[i + 2] = type_of(index_dtype(t), 0, NULL);
    index_arg(t, (size_t)i + 2, n - *size);
  }
  size_t count = (size_t)rank + 2;
  begin(t, types, count);
  pestle_value_t *operands[MAX_ARGS], *y;
  for (size_t i = 0; i < count; ++i)
    operands[i] = arg(t, i);
  assert_ok(pestle_op_dynamic_update_slice(&t->b, operands, count, NULL, &y));
  finish1(t, y);
  return true;
}

// x reversed, of which a run says how much is needed along an axis, with an element
// replaced by an op that needs a kernel of its own; behind that end x itself, since what
// lies there is not said.
static inline bool build_extent(instance_t* t) {
  static const char* const names[] = {"axis 0", "axis 1", "axis 2"};
  t->what = names[t->variant];
  int32_t rank = t->shape->rank, axis = (int32_t)t->variant;
  if (axis >= rank || rank > 6) return false;
  pestle_type_t types[MAX_ARGS] = {shaped(t), type_of(PESTLE_I64, 0, NULL),
                                   shaped(t)};
  int64_t axes[PESTLE_MAX_RANK], size = t->shape->dims[axis];
  for (int32_t i = 0; i < rank; ++i) {
    axes[i] = i;
    if (types[2].dims[i] > 1) types[2].dims[i] = 1;
    types[i + 3] = type_of(PESTLE_I64, 0, NULL);
    index_arg(t, (size_t)i + 3, t->shape->dims[i] - types[2].dims[i]);
  }
  index_arg(t, 1, size);
  begin(t, types, (size_t)rank + 3);
  pestle_value_t *operands[MAX_ARGS], *y, *place, *end, *inside;
  assert_ok(
      pestle_op_reverse(&t->b, arg(t, 0),
                        &(pestle_reverse_attrs_t){
                            sizeof(pestle_reverse_attrs_t), i64s(axes, rank)},
                        &y));
  assert_ok(pestle_op_extent(
      &t->b, y, arg(t, 1),
      &(pestle_extent_attrs_t){sizeof(pestle_extent_attrs_t), axis},
      &operands[0]));
  operands[1] = arg(t, 2);
  for (int32_t i = 0; i < rank; ++i)
    operands[i + 2] = arg(t, (size_t)i + 3);
  assert_ok(pestle_op_dynamic_update_slice(&t->b, operands, (size_t)rank + 2,
                                           NULL, &y));
  pestle_type_t index = types[0];
  index.dtype = PESTLE_I64;
  assert_ok(pestle_op_iota(
      &t->b, &(pestle_iota_attrs_t){sizeof(pestle_iota_attrs_t), axis}, index,
      &place));
  assert_ok(pestle_op_broadcast_in_dim(
      &t->b, arg(t, 1),
      &(pestle_broadcast_in_dim_attrs_t){
          sizeof(pestle_broadcast_in_dim_attrs_t), i64s(axes, 0)},
      index, &end));
  assert_ok(pestle_op_lt(&t->b, place, end, &inside));
  assert_ok(pestle_op_select(&t->b, inside, y, arg(t, 0), &y));
  finish1(t, y);
  return true;
}

static inline void finish_gather(instance_t* t, const pestle_type_t types[2],
                                 int64_t limit,
                                 const pestle_gather_attrs_t* attrs) {
  pestle_value_t* y;
  index_arg(t, 1, limit);
  begin(t, types, 2);
  assert_ok(pestle_op_gather(&t->b, arg(t, 0), arg(t, 1), attrs, &y));
  finish1(t, y);
}

// Rows by index, as an embedding.
static inline void gather_rows(instance_t* t, int64_t indices) {
  pestle_type_t types[] = {shaped(t),
                           type_of(index_dtype(t), 1, DIMS(indices))};
  int64_t sizes[PESTLE_MAX_RANK], offsets[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < types[0].rank; ++i) {
    sizes[i] = types[0].dims[i];
    offsets[i] = i;
  }
  sizes[0] = 1;
  pestle_gather_attrs_t attrs = {
      .struct_size = sizeof(attrs),
      .offset_dims = i64s(offsets + 1, types[0].rank - 1),
      .collapsed_slice_dims = PESTLE_I64S(0),
      .start_index_map = PESTLE_I64S(0),
      .index_vector_dim = 1,
      .slice_sizes = i64s(sizes, types[0].rank)};
  finish_gather(t, types, types[0].dims[0] - 1, &attrs);
}

// Windows at [5, 2] pairs of positions; the pair's axis comes first.
static inline void gather_windows(instance_t* t) {
  pestle_type_t types[] = {shaped(t), type_of(index_dtype(t), 2, DIMS(2, 5))};
  int32_t rank = types[0].rank;
  int64_t sizes[PESTLE_MAX_RANK], offsets[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < rank; ++i) {
    int64_t n = types[0].dims[i];
    sizes[i] = i < 2 ? n - n / 2 : n;
    offsets[i] = i;
  }
  // The batch axis comes last in the result; the map swaps the pair.
  pestle_gather_attrs_t attrs = {.struct_size = sizeof(attrs),
                                 .offset_dims = i64s(offsets, rank),
                                 .start_index_map = PESTLE_I64S(1, 0),
                                 .index_vector_dim = 0,
                                 .slice_sizes = i64s(sizes, rank)};
  finish_gather(t, types, types[0].dims[0] / 2, &attrs);
}

// One element for each [batch, 4]: the first axis is batched.
static inline void gather_batched(instance_t* t) {
  pestle_type_t types[] = {
      shaped(t), type_of(index_dtype(t), 2, DIMS(4, t->shape->dims[0]))};
  int32_t rank = types[0].rank;
  int64_t sizes[PESTLE_MAX_RANK], offsets[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < rank; ++i) {
    sizes[i] = i < 2 ? 1 : types[0].dims[i];
    offsets[i] = i;
  }
  // The batching axis may be empty.
  sizes[0] = types[0].dims[0] > 0;
  pestle_gather_attrs_t attrs = {.struct_size = sizeof(attrs),
                                 .offset_dims = i64s(offsets + 2, rank - 2),
                                 .collapsed_slice_dims = PESTLE_I64S(1),
                                 .operand_batching_dims = PESTLE_I64S(0),
                                 .start_indices_batching_dims = PESTLE_I64S(1),
                                 .start_index_map = PESTLE_I64S(1),
                                 .index_vector_dim = 2,
                                 .slice_sizes = i64s(sizes, rank)};
  finish_gather(t, types, types[0].dims[1] - 1, &attrs);
}

static inline bool build_gather(instance_t* t) {
  static const char* const names[] = {"rows", "windows", "batched", "no index"};
  t->what = names[t->variant];
  if (t->shape->rank < 1) return false;
  if (t->shape->rank < 2 && (t->variant == 1 || t->variant == 2)) return false;
  // Where a collapsed axis is empty there is nothing to take.
  if (t->variant == 2 && !t->shape->dims[1]) return false;
  if (t->variant == 0) gather_rows(t, 7);
  if (t->variant == 1) gather_windows(t);
  if (t->variant == 2) gather_batched(t);
  if (t->variant == 3) gather_rows(t, 0);
  return true;
}

#endif  // PESTLE_TOOLS_CONFORM_OPS_MOVE_H_

// SPDX-License-Identifier: Apache-2.0
// Random instances of the elementwise ops, sources, views and moves by index.
#include "random/random.h"

enum {
  REALS = PESTLE_KIND_BOOL | PESTLE_KIND_REAL,
  ALL = REALS | PESTLE_KIND_COMPLEX,
  NUMBERS = PESTLE_KIND_REAL,
  FIELD = NUMBERS | PESTLE_KIND_COMPLEX,
  FLOATS = PESTLE_KIND_FLOAT,
};

#define BIT(NAME) (UINT64_C(1) << PESTLE_##NAME)
#define OR_BIT(NAME, ...) | BIT(NAME)
#define NARROW                                                            \
  (0u PESTLE_FLOAT_FORMATS_SMALL(OR_BIT) PESTLE_FLOAT_FORMATS_8(OR_BIT) | \
   BIT(BF16) | BIT(F16))
#define UNQUANTISED \
  (BIT(I64) | BIT(U32) | BIT(U64) | BIT(BF16) | BIT(F16) | BIT(F32) | BIT(F64))

// clang-format off
const row_t structured_rows[] = {
    {PESTLE_OP_CONSTANT, ALL, 0, row_constant},
    {PESTLE_OP_IOTA, FIELD, 0, row_iota},
    {PESTLE_OP_CONVERT, ALL, 0, row_convert},
    {PESTLE_OP_BITCAST_CONVERT, ALL, 0, row_bitcast_convert},
    {PESTLE_OP_BROADCAST_IN_DIM, ALL, 0, row_broadcast_in_dim},
    {PESTLE_OP_RESHAPE, ALL, 0, row_reshape},
    {PESTLE_OP_TRANSPOSE, ALL, 0, row_transpose},
    {PESTLE_OP_SLICE, ALL, 0, row_slice},
    {PESTLE_OP_REVERSE, ALL, 0, row_reverse},
    {PESTLE_OP_PAD, ALL, 0, row_pad},
    {PESTLE_OP_CONCATENATE, ALL, 0, row_concatenate},
    {PESTLE_OP_DYNAMIC_SLICE, ALL, 0, row_dynamic_slice},
    {PESTLE_OP_DYNAMIC_UPDATE_SLICE, ALL, 0, row_dynamic_update_slice},
    {PESTLE_OP_GATHER, ALL, 0, row_gather},
    {PESTLE_OP_REDUCE, ALL, 0, row_reduce},
    {PESTLE_OP_REDUCE_WINDOW, ALL, 0, row_reduce_window},
    {PESTLE_OP_DOT_GENERAL, FIELD, 0, row_dot_general},
    {PESTLE_OP_CONVOLUTION, FIELD, 0, row_convolution},
    {PESTLE_OP_WHILE, ALL, 0, row_while},
    {PESTLE_OP_SCAN, ALL, 0, row_scan},
    {PESTLE_OP_IF, ALL, 0, row_if},
    {PESTLE_OP_CASE, ALL, 0, row_case},
    {PESTLE_OP_CALL, ALL, 0, row_call},
    {PESTLE_OP_OPTIMIZATION_BARRIER, ALL, 0, row_optimization_barrier},
    {PESTLE_OP_FUSION, ALL, 0, row_fusion},
    {PESTLE_OP_CUSTOM, ALL, 0, row_composite},
    {PESTLE_OP_SOFTMAX, FLOATS, 0, row_softmax},
    // No logarithm of a part of a whole is above 0.
    {PESTLE_OP_LOG_SOFTMAX, FLOATS, BIT(F8E8M0FNU), row_log_softmax},
    {PESTLE_OP_LAYER_NORM, FLOATS, 0, row_layer_norm},
    {PESTLE_OP_RMS_NORM, FLOATS, 0, row_rms_norm},
    {PESTLE_OP_GELU, FLOATS, 0, row_gelu},
    {PESTLE_OP_SILU, FLOATS, 0, row_silu},
    {PESTLE_OP_HARD_SIGMOID, FLOATS, 0, row_hard_sigmoid},
    {PESTLE_OP_QUANTIZE, FLOATS, 0, row_quantize},
    {PESTLE_OP_DEQUANTIZE, NUMBERS, UNQUANTISED, row_dequantize},
    {PESTLE_OP_ATTENTION, FLOATS, 0, row_attention},
    {PESTLE_OP_SORT, REALS, 0, row_sort},
    {PESTLE_OP_SORT_FIRST, REALS, 0, row_sort_first},
    {PESTLE_OP_SCATTER, REALS, 0, row_scatter},
    {PESTLE_OP_SELECT_AND_SCATTER, REALS, 0, row_select_and_scatter},
    {PESTLE_OP_CHOLESKY, FLOATS, 0, row_cholesky},
    {PESTLE_OP_TRIANGULAR_SOLVE, FLOATS, 0, row_triangular_solve},
    {PESTLE_OP_MAP, REALS, 0, row_map},
    {PESTLE_OP_BATCH_NORM_INFERENCE, FLOATS, 0, row_batch_norm_inference},
    {PESTLE_OP_REDUCE_PRECISION, FLOATS, 0, row_reduce_precision},
    {PESTLE_OP_COMPLEX, FLOATS, NARROW, row_complex},
    {PESTLE_OP_REAL, FLOATS | PESTLE_KIND_COMPLEX, 0, row_real},
    {PESTLE_OP_IMAG, FLOATS | PESTLE_KIND_COMPLEX, 0, row_imag},
    {PESTLE_OP_FFT, FLOATS | PESTLE_KIND_COMPLEX, NARROW, row_fft},
    {PESTLE_OP_RNG_BIT_GENERATOR, PESTLE_KIND_INT,
     BIT(I4) | BIT(U4) | BIT(I2) | BIT(U2), row_rng_bit_generator},
    // Powers of two round to the upper end.
    {PESTLE_OP_RNG, NUMBERS, BIT(F8E8M0FNU), row_rng},
    {PESTLE_OP_LU, FLOATS, NARROW, row_lu},
    {PESTLE_OP_SOLVE, FLOATS, 0, row_solve},
    {PESTLE_OP_INVERSE, FLOATS, 0, row_inverse},
    {PESTLE_OP_QR, FLOATS, NARROW, row_qr},
    {PESTLE_OP_EIGH, FLOATS, NARROW, row_eigh},
    {PESTLE_OP_SVD, FLOATS, NARROW, row_svd},
    {PESTLE_OP_LOGSUMEXP, FLOATS, 0, row_logsumexp},
    {PESTLE_OP_CUMULATIVE, ALL, 0, row_cumulative},
    {PESTLE_OP_ADAPTIVE_AVERAGE_POOL, FLOATS, 0, row_adaptive_average_pool},
    {PESTLE_OP_ADAPTIVE_MAX_POOL, NUMBERS, 0, row_adaptive_max_pool},
    {PESTLE_OP_BATCH_NORM_TRAINING, FLOATS, 0, row_batch_norm_training},
    // Of numbers whose sum is 0 some are not above it.
    {PESTLE_OP_BATCH_NORM_GRAD, FLOATS, BIT(F8E8M0FNU), row_batch_norm_grad},
    // What is negative has no such number.
    {PESTLE_OP_ATTENTION_GRAD, FLOATS, BIT(F8E8M0FNU), row_attention_grad},
    {PESTLE_OP_NORM_GRAD, FLOATS, BIT(F8E8M0FNU), row_norm_grad},
    {PESTLE_OP_BLOCK_DOT, FLOATS, BIT(F8E8M0FNU), row_block_dot},
};
// clang-format on
const size_t structured_row_count =
    sizeof(structured_rows) / sizeof(structured_rows[0]);

static const pestle_type_t* type_at(const value_t* v) {
  return v->value->type;
}

// --- Elementwise ---

static value_t* build_select(graph_t* g, pestle_dtype_t dtype) {
  spec_t s = SPEC(SELECT);
  value_t* x = any_of(g, dtype, false, 0);
  pestle_type_t flag = *type_at(x);
  flag.dtype = PESTLE_I1;
  if (one_in(g, 4)) flag.rank = 0;
  spec_operand(&s, partner(g, &flag, true));
  spec_operand(&s, x);
  spec_operand(&s, partner(g, type_at(x), false));
  return add(g, &s, NULL);
}

static value_t* build_clamp(graph_t* g, pestle_dtype_t dtype) {
  spec_t s = SPEC(CLAMP);
  value_t* x = any_of(g, dtype, false, 0);
  pestle_type_t bound = *type_at(x);
  if (one_in(g, 2)) bound.rank = 0;
  value_t* low = one_in(g, 2) ? splat(g, bound, has_floats(dtype) ? -1 : 0)
                              : partner(g, &bound, false);
  bound = *type_at(x);
  if (one_in(g, 2)) bound.rank = 0;
  spec_operand(&s, low);
  spec_operand(&s, x);
  spec_operand(&s,
               one_in(g, 2) ? splat(g, bound, 3) : partner(g, &bound, false));
  return add(g, &s, NULL);
}

value_t* build_scalar(graph_t* g, pestle_op_t op, pestle_dtype_t dtype) {
  if (op == PESTLE_OP_SELECT) return build_select(g, dtype);
  if (op == PESTLE_OP_CLAMP) return build_clamp(g, dtype);
  const pestle_op_info_t* info = pestle_op_info(op);
  spec_t s = {.op = op};
  value_t* x = any_of(g, dtype, one_in(g, 2), 0);
  spec_operand(&s, x);
  for (uint32_t i = 1; i < info->operands; ++i)
    spec_operand(&s, partner(g, type_at(x), one_in(g, 2)));
  // A constant on the left too.
  if (info->operands == 2 && one_in(g, 2)) {
    value_t* t = s.operands[0];
    s.operands[0] = s.operands[1];
    s.operands[1] = t;
  }
  return add(g, &s, NULL);
}

// --- Sources ---

value_t* row_constant(graph_t* g, pestle_dtype_t dtype) {
  ++g->ops;
  pestle_type_t type = pick_shape(g, dtype);
  if (one_in(g, 3)) return splat(g, type, 1);
  return constant(g, type, one_in(g, 4) ? FILL_EDGES : FILL_GRID);
}

value_t* row_iota(graph_t* g, pestle_dtype_t dtype) {
  spec_t s = SPEC(IOTA);
  s.type = pick_shape(g, dtype);
  s.typed = true;
  if (!s.type.rank) s.type.dims[s.type.rank++] = 5;
  spec_i64(&s, PESTLE_ATTR_iota_dimension, pick(g, (uint32_t)s.type.rank));
  return add(g, &s, NULL);
}

// --- Elementwise with a type of their own ---

value_t* row_convert(graph_t* g, pestle_dtype_t dtype) {
  spec_t s = SPEC(CONVERT);
  value_t* x = any_of(g, dtype, one_in(g, 2), 0);
  spec_operand(&s, x);
  s.type = *type_at(x);
  s.type.dtype = pick_dtype(g, ALL);
  s.typed = true;
  return add(g, &s, NULL);
}

value_t* row_bitcast_convert(graph_t* g, pestle_dtype_t dtype) {
  spec_t s = SPEC(BITCAST_CONVERT);
  value_t* x = any_of(g, dtype, true, 0);
  unsigned bits = pestle_dtype_info(dtype)->bits;
  s.type = *type_at(x);
  s.typed = true;
  for (int tries = 0; tries < 40; ++tries) {
    pestle_dtype_t to = pick_any_dtype(g);
    // To XLA an i1 has 8 bits.
    if (g->peer && to == PESTLE_I1) continue;
    // A complex number is read as its parts alone.
    bool pairs = is_complex(dtype) || is_complex(to);
    // XLA does not even that.
    if (g->peer && pairs && dtype != to) continue;
    if (pairs && dtype != to &&
        (is_complex(dtype) == is_complex(to) ||
         pestle_dtype_part(dtype) != pestle_dtype_part(to))) {
      continue;
    }
    unsigned other = pestle_dtype_info(to)->bits;
    s.type = *type_at(x);
    s.type.dtype = to;
    if (bits > other && bits % other == 0 && s.type.rank < 6) {
      s.type.dims[s.type.rank++] = bits / other;
    } else if (bits < other) {
      int32_t last = s.type.rank - 1;
      if (other % bits || last < 0 || s.type.dims[last] != other / bits)
        continue;
      s.type.rank = last;
    } else if (bits != other) {
      continue;
    }
    spec_operand(&s, x);
    return add(g, &s, NULL);
  }
  return NULL;
}

// --- Complex numbers ---

value_t* row_complex(graph_t* g, pestle_dtype_t dtype) {
  spec_t s = SPEC(COMPLEX);
  value_t* x = any_of(g, dtype, false, 0);
  spec_operand(&s, x);
  spec_operand(&s, partner(g, type_at(x), false));
  return add(g, &s, NULL);
}

value_t* row_real(graph_t* g, pestle_dtype_t dtype) {
  spec_t s = SPEC(REAL);
  spec_operand(&s, any_of(g, dtype, false, 0));
  return add(g, &s, NULL);
}

value_t* row_imag(graph_t* g, pestle_dtype_t dtype) {
  spec_t s = SPEC(IMAG);
  spec_operand(&s, any_of(g, dtype, false, 0));
  return add(g, &s, NULL);
}

// --- Views ---

value_t* row_broadcast_in_dim(graph_t* g, pestle_dtype_t dtype) {
  value_t* x = any_of(g, dtype, false, 0);
  const pestle_type_t* from = type_at(x);
  if (from->rank > 4) return NULL;
  spec_t s = SPEC(BROADCAST_IN_DIM);
  int64_t axes[PESTLE_MAX_RANK];
  int32_t more = (int32_t)pick(g, 3), rank = from->rank + more, at = 0;
  s.type = type_of(dtype, 0, NULL);
  for (int32_t i = 0; i < rank; ++i) {
    bool old = at < from->rank && (pick(g, 2) || rank - i <= from->rank - at);
    if (old) axes[at] = i;
    int64_t n = old ? from->dims[at++] : 1 + pick(g, 4);
    if (old && n == 1 && one_in(g, 2)) n = 1 + pick(g, 7);
    s.type.dims[s.type.rank++] = n;
  }
  // Sometimes axes in another order.
  if (at > 1 && one_in(g, 3)) {
    int64_t a = axes[0], n = s.type.dims[axes[0]];
    s.type.dims[axes[0]] = s.type.dims[axes[1]];
    s.type.dims[axes[1]] = n;
    axes[0] = axes[1];
    axes[1] = a;
  }
  spec_operand(&s, x);
  spec_i64s(&s, PESTLE_ATTR_broadcast_dimensions, axes, from->rank);
  s.typed = true;
  return add(g, &s, NULL);
}

value_t* row_reshape(graph_t* g, pestle_dtype_t dtype) {
  value_t* x = any_of(g, dtype, false, 0);
  spec_t s = SPEC(RESHAPE);
  int64_t left = count_of(x);
  s.type = type_of(dtype, 0, NULL);
  static const int64_t factors[] = {1, 2, 3, 4, 5, 7, 8, 16};
  if (left == 0) {
    s.type.dims[s.type.rank++] = pick(g, 5);
    s.type.dims[s.type.rank++] = 0;
    left = 1;
  }
  while (s.type.rank < 4 && left > 1) {
    int64_t f = factors[pick(g, 8)];
    if (left % f) f = one_in(g, 3) ? left : 1;
    if (f == 1 && !one_in(g, 3)) continue;
    s.type.dims[s.type.rank++] = f;
    left /= f;
  }
  if (left > 1 || one_in(g, 3)) s.type.dims[s.type.rank++] = left;
  spec_operand(&s, x);
  s.typed = true;
  return add(g, &s, NULL);
}

static void shuffle(graph_t* g, int64_t* p, int32_t n) {
  for (int32_t i = 0; i < n; ++i) {
    p[i] = i;
    int32_t j = (int32_t)pick(g, (uint32_t)i + 1);
    p[i] = p[j];
    p[j] = i;
  }
}

value_t* row_transpose(graph_t* g, pestle_dtype_t dtype) {
  value_t* x = any_of(g, dtype, false, one_in(g, 8) ? 0 : 2);
  int64_t p[PESTLE_MAX_RANK];
  shuffle(g, p, type_at(x)->rank);
  spec_t s = SPEC(TRANSPOSE);
  spec_operand(&s, x);
  spec_i64s(&s, PESTLE_ATTR_permutation, p, type_at(x)->rank);
  return add(g, &s, NULL);
}

value_t* row_slice(graph_t* g, pestle_dtype_t dtype) {
  value_t* x = any_of(g, dtype, false, 0);
  const pestle_type_t* type = type_at(x);
  int64_t start[PESTLE_MAX_RANK], limit[PESTLE_MAX_RANK], step[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < type->rank; ++i) {
    uint32_t n = (uint32_t)type->dims[i];
    start[i] = one_in(g, 2) ? 0 : pick(g, n + 1);
    limit[i] =
        one_in(g, 3) ? n : start[i] + pick(g, n - (uint32_t)start[i] + 1);
    step[i] = one_in(g, 3) ? 1 + pick(g, 3) : 1;
    if (limit[i] == start[i] && n > 0 && !one_in(g, 8)) {
      start[i] = 0;
      limit[i] = n;
    }
  }
  spec_t s = SPEC(SLICE);
  spec_operand(&s, x);
  spec_i64s(&s, PESTLE_ATTR_start_indices, start, type->rank);
  spec_i64s(&s, PESTLE_ATTR_limit_indices, limit, type->rank);
  spec_i64s(&s, PESTLE_ATTR_strides, step, type->rank);
  return add(g, &s, NULL);
}

value_t* row_reverse(graph_t* g, pestle_dtype_t dtype) {
  value_t* x = any_of(g, dtype, false, one_in(g, 8) ? 0 : 1);
  int64_t axes[PESTLE_MAX_RANK];
  int32_t n = 0;
  for (int32_t i = 0; i < type_at(x)->rank; ++i) {
    if (one_in(g, 2)) axes[n++] = i;
  }
  spec_t s = SPEC(REVERSE);
  spec_operand(&s, x);
  spec_i64s(&s, PESTLE_ATTR_dimensions, axes, n);
  return add(g, &s, NULL);
}

static value_t* any_scalar(graph_t* g, pestle_dtype_t dtype, bool exact) {
  pestle_type_t type = scalar_of(dtype);
  value_t* v = one_in(g, 3) ? of_type(g, &type, exact) : NULL;
  if (v) return v;
  static const double small[] = {0, 1, 2, -1, 3, 0.5};
  return one_in(g, 2) ? splat(g, type, small[pick(g, 6)])
                      : fresh(g, type, FILL_GRID, 9);
}

value_t* row_pad(graph_t* g, pestle_dtype_t dtype) {
  value_t* x = any_of(g, dtype, false, 0);
  const pestle_type_t* type = type_at(x);
  int64_t low[PESTLE_MAX_RANK], high[PESTLE_MAX_RANK], inner[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < type->rank; ++i) {
    int64_t n = type->dims[i];
    inner[i] = one_in(g, 4) ? 1 + pick(g, 2) : 0;
    low[i] = n > 2 && one_in(g, 5) ? -1 : (int64_t)pick(g, 3);
    high[i] = n > 3 && one_in(g, 5) ? -2 : (int64_t)pick(g, 3);
  }
  spec_t s = SPEC(PAD);
  spec_operand(&s, x);
  spec_operand(&s, any_scalar(g, dtype, false));
  spec_i64s(&s, PESTLE_ATTR_edge_padding_low, low, type->rank);
  spec_i64s(&s, PESTLE_ATTR_edge_padding_high, high, type->rank);
  spec_i64s(&s, PESTLE_ATTR_interior_padding, inner, type->rank);
  return add(g, &s, NULL);
}

value_t* row_concatenate(graph_t* g, pestle_dtype_t dtype) {
  value_t* x = any_of(g, dtype, false, 1);
  const pestle_type_t* type = type_at(x);
  uint32_t axis = pick(g, (uint32_t)type->rank), n = 1 + pick(g, 4);
  spec_t s = SPEC(CONCATENATE);
  for (uint32_t i = 0; i < n; ++i) {
    pestle_type_t part = *type;
    if (one_in(g, 3)) part.dims[axis] = pick(g, 4);
    spec_operand(&s, i == n / 2 ? x : partner(g, &part, false));
  }
  spec_i64(&s, PESTLE_ATTR_dimension, axis);
  return add(g, &s, NULL);
}

// --- Computed indices ---

static pestle_dtype_t index_dtype(graph_t* g) {
  static const pestle_dtype_t dtypes[] = {PESTLE_I32, PESTLE_I32, PESTLE_I64,
                                          PESTLE_U8,  PESTLE_I16, PESTLE_U64,
                                          PESTLE_I8};
  return dtypes[pick(g, 7)];
}

// Integers from a little below 0 to a little above |limit|; or any that are
// there.
static value_t* indices(graph_t* g, pestle_type_t type, int64_t limit) {
  value_t* v = one_in(g, 3) ? of_type(g, &type, true) : NULL;
  return v ? v : fresh(g, type, FILL_INDEX, limit > 100 ? 100 : limit);
}

value_t* row_dynamic_slice(graph_t* g, pestle_dtype_t dtype) {
  value_t* x = any_of(g, dtype, false, one_in(g, 8) ? 0 : 1);
  const pestle_type_t* type = type_at(x);
  if (type->rank > 6) return NULL;
  int64_t sizes[PESTLE_MAX_RANK];
  spec_t s = SPEC(DYNAMIC_SLICE);
  spec_operand(&s, x);
  pestle_dtype_t at = index_dtype(g);
  for (int32_t i = 0; i < type->rank; ++i) {
    int64_t n = type->dims[i];
    sizes[i] = one_in(g, 3) ? n : n - pick(g, (uint32_t)n);
    spec_operand(&s, indices(g, scalar_of(at), n - sizes[i]));
  }
  spec_i64s(&s, PESTLE_ATTR_slice_sizes, sizes, type->rank);
  return add(g, &s, NULL);
}

value_t* row_dynamic_update_slice(graph_t* g, pestle_dtype_t dtype) {
  value_t* x = any_of(g, dtype, false, one_in(g, 8) ? 0 : 1);
  pestle_type_t type = *type_at(x);
  if (type.rank > 6) return NULL;
  pestle_type_t update = type;
  pestle_dtype_t at = index_dtype(g);
  for (int32_t i = 0; i < type.rank; ++i) {
    int64_t n = type.dims[i];
    update.dims[i] = one_in(g, 3) ? n : n - pick(g, (uint32_t)n);
  }
  spec_t s = SPEC(DYNAMIC_UPDATE_SLICE);
  spec_operand(&s, x);
  spec_operand(&s, partner(g, &update, false));
  for (int32_t i = 0; i < type.rank; ++i) {
    spec_operand(&s, indices(g, scalar_of(at), type.dims[i] - update.dims[i]));
  }
  return add(g, &s, NULL);
}

// Rows, or parts of them, by index along one axis; else windows at pairs of
// positions; else one element for each of a batch.
static value_t* gather_rows(graph_t* g, value_t* x) {
  const pestle_type_t* type = type_at(x);
  int64_t sizes[PESTLE_MAX_RANK], offsets[PESTLE_MAX_RANK];
  int64_t axis = pick(g, (uint32_t)type->rank), n = pick(g, 9);
  if (!type->dims[axis]) return NULL;
  for (int32_t i = 0; i < type->rank; ++i) {
    sizes[i] = type->dims[i];
    if (sizes[i] > 1 && one_in(g, 4)) sizes[i] -= 1;
    offsets[i] = i;
  }
  sizes[axis] = 1;
  bool last = one_in(g, 2);  // the batch axis comes behind the windows
  spec_t s = SPEC(GATHER);
  spec_operand(&s, x);
  pestle_type_t at = type_of(index_dtype(g), 1, &n);
  spec_operand(&s, indices(g, at, type->dims[axis] - 1));
  spec_i64s(&s, PESTLE_ATTR_offset_dims, offsets + !last, type->rank - 1);
  spec_i64s(&s, PESTLE_ATTR_collapsed_slice_dims, &axis, 1);
  spec_i64s(&s, PESTLE_ATTR_start_index_map, &axis, 1);
  spec_i64(&s, PESTLE_ATTR_index_vector_dim, 1);
  spec_i64s(&s, PESTLE_ATTR_slice_sizes, sizes, type->rank);
  return add(g, &s, NULL);
}

static value_t* gather_windows(graph_t* g, value_t* x) {
  const pestle_type_t* type = type_at(x);
  int64_t sizes[PESTLE_MAX_RANK], offsets[PESTLE_MAX_RANK];
  int64_t pair[] = {2, 1 + pick(g, 6)}, map[] = {1, 0};
  for (int32_t i = 0; i < type->rank; ++i) {
    sizes[i] = i < 2 ? type->dims[i] - type->dims[i] / 2 : type->dims[i];
    offsets[i] = i;
  }
  spec_t s = SPEC(GATHER);
  spec_operand(&s, x);
  spec_operand(&s,
               indices(g, type_of(index_dtype(g), 2, pair), type->dims[0] / 2));
  spec_i64s(&s, PESTLE_ATTR_offset_dims, offsets, type->rank);
  spec_i64s(&s, PESTLE_ATTR_start_index_map, map, 2);
  spec_i64(&s, PESTLE_ATTR_index_vector_dim, 0);
  spec_i64s(&s, PESTLE_ATTR_slice_sizes, sizes, type->rank);
  return add(g, &s, NULL);
}

static value_t* gather_batched(graph_t* g, value_t* x) {
  const pestle_type_t* type = type_at(x);
  if (!type->dims[1]) return NULL;
  int64_t sizes[PESTLE_MAX_RANK], offsets[PESTLE_MAX_RANK];
  int64_t dims[] = {1 + pick(g, 4), type->dims[0]}, zero = 0, one = 1;
  for (int32_t i = 0; i < type->rank; ++i) {
    sizes[i] = i < 2 ? 1 : type->dims[i];
    offsets[i] = i;
  }
  sizes[0] = type->dims[0] > 0;
  spec_t s = SPEC(GATHER);
  spec_operand(&s, x);
  spec_operand(&s,
               indices(g, type_of(index_dtype(g), 2, dims), type->dims[1] - 1));
  spec_i64s(&s, PESTLE_ATTR_offset_dims, offsets + 2, type->rank - 2);
  spec_i64s(&s, PESTLE_ATTR_collapsed_slice_dims, &one, 1);
  spec_i64s(&s, PESTLE_ATTR_operand_batching_dims, &zero, 1);
  spec_i64s(&s, PESTLE_ATTR_start_indices_batching_dims, &one, 1);
  spec_i64s(&s, PESTLE_ATTR_start_index_map, &one, 1);
  spec_i64(&s, PESTLE_ATTR_index_vector_dim, 2);
  spec_i64s(&s, PESTLE_ATTR_slice_sizes, sizes, type->rank);
  return add(g, &s, NULL);
}

value_t* row_gather(graph_t* g, pestle_dtype_t dtype) {
  value_t* x = any_of(g, dtype, false, 1);
  if (type_at(x)->rank < 2) return gather_rows(g, x);
  switch (pick(g, 4)) {
    case 0:
      return gather_windows(g, x);
    case 1:
      return gather_batched(g, x);
    default:
      return gather_rows(g, x);
  }
}

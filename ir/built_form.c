// SPDX-License-Identifier: Apache-2.0
// Older forms of StableHLO, and ops of CHLO, by those that have rows.
#include "base/mem.h"
#include "ir/built.h"
#include "ir/chlo.h"
#include "ir/internal.h"
#include "ir/text.h"

typedef pestle_value_t pv_t;

#define FAIL(b, CODE, ...) \
  pestle_built_fail(b, PESTLE_STATUS_##CODE, __VA_ARGS__)

static bool all_static(pestle_built_t* b) {
  for (size_t i = 0; i < b->operand_count; ++i) {
    if (pestle_type_is_static(pestle_built_type(b, i))) continue;
    FAIL(b, UNSUPPORTED, "operand %zu has unknown extents; give them", i);
    return false;
  }
  return true;
}

// --- dot ---

// Rows of the first by columns of the second, vectors being one of those.
void pestle_built_dot(pestle_built_t* b) {
  int32_t left = pestle_built_type(b, 0)->rank;
  int32_t right = pestle_built_type(b, 1)->rank;
  if (left < 1 || left > 2 || right < 1 || right > 2) {
    FAIL(b, MALFORMED, "it takes vectors and matrices");
    return;
  }
  int64_t last = left - 1, first = 0;
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64S(lhs_contracting_dimensions, &last, 1),
      PESTLE_SET_I64S(rhs_contracting_dimensions, &first, 1)};
  b->results[0] = pestle_f_make(&b->f, PESTLE_OP_DOT_GENERAL, b->operands, 2,
                                attrs, 2, &b->types[0]);
}

// --- einsum ---

// What stands for the axes of an operand or the result: a letter each.
typedef struct labels_t {
  char at[PESTLE_MAX_RANK];
  size_t count;
} labels_t;

static bool has(const labels_t* l, char label, size_t* out_axis) {
  for (size_t i = 0; i < l->count; ++i) {
    if (l->at[i] != label) continue;
    *out_axis = i;
    return true;
  }
  return false;
}

static bool read_labels(pestle_built_t* b, pestle_str_t text, labels_t* out) {
  out->count = 0;
  for (size_t i = 0; i < text.size; ++i) {
    char c = text.data[i];
    size_t axis;
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (c == ' ') continue;
    if (!letter || has(out, c, &axis) || out->count == PESTLE_MAX_RANK) {
      FAIL(b, UNSUPPORTED,
           "'einsum_config' names each axis by a letter of its own, once an "
           "operand: '%.*s' does not",
           text.size > 40 ? 40 : (int)text.size, text.data);
      return false;
    }
    out->at[out->count++] = c;
  }
  return true;
}

// "ab,bc->ac" of |b->operand_count| operands.
static bool read_config(pestle_built_t* b, labels_t in[2], labels_t* out) {
  const pestle_generic_value_t* text = pestle_built_attr(b, "einsum_config");
  if (!text || text->kind != PESTLE_GENERIC_STRING) {
    FAIL(b, MALFORMED, "attribute 'einsum_config' must be a string");
    return false;
  }
  pestle_str_t rest = text->text, left, field;
  if (!pestle_str_next(&rest, '-', &left) || !rest.size ||
      rest.data[0] != '>') {
    FAIL(b, MALFORMED, "'einsum_config' is no \"ab,bc->ac\"");
    return false;
  }
  ++rest.data;
  --rest.size;
  if (!read_labels(b, rest, out)) return false;
  for (size_t i = 0; i < b->operand_count; ++i) {
    if (!pestle_str_next(&left, ',', &field)) field = PESTLE_STR("");
    if (!read_labels(b, field, &in[i])) return false;
    if (in[i].count == (size_t)pestle_built_type(b, i)->rank) continue;
    FAIL(b, MALFORMED, "'einsum_config' names %zu axes of operand %zu",
         in[i].count, i);
    return false;
  }
  size_t axis;
  for (size_t i = 0; i < out->count; ++i) {
    if (has(&in[0], out->at[i], &axis)) continue;
    if (b->operand_count > 1 && has(&in[1], out->at[i], &axis)) continue;
    FAIL(b, MALFORMED, "'einsum_config' names a result's axis '%c' of nothing",
         out->at[i]);
    return false;
  }
  return true;
}

// |a| summed over the axes that neither |other| nor |out| names.
static pv_t* sum_own(pestle_built_t* b, pv_t* a, labels_t* own,
                     const labels_t* other, const labels_t* out) {
  int64_t axes[PESTLE_MAX_RANK];
  size_t count = 0, kept = 0, axis;
  for (size_t i = 0; i < own->count; ++i) {
    bool needed =
        has(out, own->at[i], &axis) || (other && has(other, own->at[i], &axis));
    if (needed) own->at[kept++] = own->at[i];
    if (!needed) axes[count++] = (int64_t)i;
  }
  own->count = kept;
  if (!count) return a;
  return pestle_f_reduce(&b->f, PESTLE_OP_ADD, a, (pestle_i64s_t){axes, count},
                         0);
}

// |a|, whose axes are |own|, with them in the order of |out|.
static pv_t* in_order(pestle_built_t* b, pv_t* a, const labels_t* own,
                      const labels_t* out) {
  int64_t order[PESTLE_MAX_RANK];
  size_t axis = 0;
  for (size_t i = 0; i < out->count; ++i) {
    if (!has(own, out->at[i], &axis)) return NULL;
    order[i] = (int64_t)axis;
  }
  return pestle_f_transpose(&b->f, a, order);
}

static pv_t* product(pestle_built_t* b, pv_t* const operands[2],
                     const labels_t in[2], const labels_t* out,
                     labels_t* made) {
  int64_t axes[4][PESTLE_MAX_RANK];  // batch of both, contracted of both
  size_t batch = 0, sums = 0, at, axis;
  pestle_type_t type = {.dtype = b->types[0].dtype};
  if (!operands[0] || !operands[1]) return NULL;
  made->count = 0;
  for (size_t i = 0; i < in[0].count; ++i) {
    if (!has(&in[1], in[0].at[i], &at)) continue;
    bool kept = has(out, in[0].at[i], &axis);
    axes[kept ? 0 : 2][kept ? batch : sums] = (int64_t)i;
    axes[kept ? 1 : 3][kept ? batch : sums] = (int64_t)at;
    if (kept) {
      made->at[made->count++] = in[0].at[i];
      type.dims[type.rank++] = operands[0]->type->dims[i];
    }
    batch += kept;
    sums += !kept;
  }
  for (size_t side = 0; side < 2; ++side) {
    for (size_t i = 0; i < in[side].count; ++i) {
      if (has(&in[1 - side], in[side].at[i], &at)) continue;
      if (made->count == PESTLE_MAX_RANK) return NULL;
      made->at[made->count++] = in[side].at[i];
      type.dims[type.rank++] = operands[side]->type->dims[i];
    }
  }
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64S(lhs_batching_dimensions, axes[0], batch),
      PESTLE_SET_I64S(rhs_batching_dimensions, axes[1], batch),
      PESTLE_SET_I64S(lhs_contracting_dimensions, axes[2], sums),
      PESTLE_SET_I64S(rhs_contracting_dimensions, axes[3], sums)};
  return pestle_f_make(&b->f, PESTLE_OP_DOT_GENERAL, operands, 2, attrs, 4,
                       &type);
}

void pestle_built_einsum(pestle_built_t* b) {
  labels_t in[2], out, made;
  if (!all_static(b) || !read_config(b, in, &out)) return;
  pv_t* parts[2];
  bool two = b->operand_count == 2;
  for (size_t i = 0; i < b->operand_count; ++i) {
    parts[i] =
        sum_own(b, b->operands[i], &in[i], two ? &in[1 - i] : NULL, &out);
  }
  pv_t* y = two ? product(b, parts, in, &out, &made) : parts[0];
  if (!y) FAIL(b, UNSUPPORTED, "its product has too many axes");
  b->results[0] = in_order(b, y, two ? &made : &in[0], &out);
}

// --- Moving ---

void pestle_built_broadcast(pestle_built_t* b) {
  pestle_i64s_t sizes;
  pestle_type_t type = *pestle_built_type(b, 0);
  int64_t dims[PESTLE_MAX_RANK], axes[PESTLE_MAX_RANK];
  if (!pestle_built_i64s(b, "broadcast_sizes", true, &sizes)) return;
  if (sizes.count + (size_t)type.rank > PESTLE_MAX_RANK) {
    FAIL(b, UNSUPPORTED, "the result's rank would pass %d", PESTLE_MAX_RANK);
    return;
  }
  for (size_t i = 0; i < sizes.count; ++i)
    dims[i] = sizes.data[i];
  for (int32_t i = 0; i < type.rank; ++i) {
    axes[i] = (int64_t)sizes.count + i;
    dims[axes[i]] = type.dims[i];
  }
  b->results[0] = pestle_f_broadcast(&b->f, b->operands[0],
                                     (int32_t)sizes.count + type.rank, dims,
                                     (pestle_i64s_t){axes, (size_t)type.rank});
}

void pestle_built_index_select(pestle_built_t* b) {
  const pestle_type_t *x = pestle_built_type(b, 0),
                      *at = pestle_built_type(b, 1);
  int64_t dim, batch, axes[PESTLE_MAX_RANK], offsets[2 * PESTLE_MAX_RANK];
  int64_t sizes[PESTLE_MAX_RANK];
  if (!pestle_built_i64(b, "dim", true, &dim) ||
      !pestle_built_i64(b, "batch_dims", true, &batch) || !all_static(b)) {
    return;
  }
  if (batch < 0 || batch > dim || batch > at->rank || dim >= x->rank ||
      x->rank - 1 + at->rank - batch > PESTLE_MAX_RANK) {
    FAIL(b, MALFORMED, "'dim' %lld and 'batch_dims' %lld are out of range",
         (long long)dim, (long long)batch);
    return;
  }
  size_t count = 0;
  for (int64_t i = 0; i < x->rank; ++i) {
    bool whole = i >= batch && i != dim;
    sizes[i] = whole ? x->dims[i] : 1;
    axes[i] = i;
    if (whole) offsets[count++] = i < dim ? i : i - 1 + at->rank - batch;
  }
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64S(offset_dims, offsets, count),
      PESTLE_SET_I64S(collapsed_slice_dims, &dim, 1),
      PESTLE_SET_I64S(operand_batching_dims, axes, batch),
      PESTLE_SET_I64S(start_indices_batching_dims, axes, batch),
      PESTLE_SET_I64S(start_index_map, &dim, 1),
      PESTLE_SET_I64(index_vector_dim, at->rank),
      PESTLE_SET_I64S(slice_sizes, sizes, x->rank)};
  b->results[0] =
      pestle_f_make(&b->f, PESTLE_OP_GATHER, b->operands, 2, attrs, 7, NULL);
}

// --- CHLO ---

void pestle_built_conj(pestle_built_t* b) {
  pv_t* z = b->operands[0];
  b->results[0] = z;
  if (!pestle_type_is_complex(z->type)) return;
  pv_t* parts[2];
  parts[0] = pestle_f_unary(&b->f, PESTLE_OP_REAL, z);
  parts[1] = pestle_f_unary(&b->f, PESTLE_OP_IMAG, z);
  parts[1] = pestle_f_negate(&b->f, parts[1]);
  b->results[0] =
      pestle_f_make(&b->f, PESTLE_OP_COMPLEX, parts, 2, NULL, 0, NULL);
}

void pestle_built_tan(pestle_built_t* b) {
  b->results[0] = pestle_f_tan(&b->f, b->operands[0]);
}

void pestle_built_constant(pestle_built_t* b) {
  const pestle_generic_value_t* v = pestle_built_attr(b, "value");
  if (!v || v->kind != PESTLE_GENERIC_ELEMENTS) {
    FAIL(b, MALFORMED, "attribute 'value' must be constant data");
    return;
  }
  pestle_constant_attrs_t attrs = {sizeof(attrs), v->elements};
  if (b->f.status) return;
  b->f.status = pestle_op_constant(&b->f.builder, &attrs, &b->results[0]);
}

void pestle_built_constant_like(pestle_built_t* b) {
  const pestle_generic_value_t* v = pestle_built_attr(b, "value");
  if (!all_static(b)) return;
  if (!v ||
      (v->kind != PESTLE_GENERIC_INT && v->kind != PESTLE_GENERIC_FLOAT)) {
    FAIL(b, MALFORMED, "attribute 'value' must be a number");
    return;
  }
  const pestle_type_t* type = pestle_built_type(b, 0);
  bool whole = v->kind == PESTLE_GENERIC_INT;
  b->results[0] =
      whole && pestle_dtype_is(type->dtype, PESTLE_KIND_INT)
          ? pestle_f_bits(&b->f, type, (uint64_t)v->i64)
          : pestle_f_number(&b->f, type, whole ? (double)v->i64 : v->f64);
}

// --- Operands of several shapes ---

// Which axes of |type| the axes of operand |index| are: as they are written, of
// the one of lower rank, or the last ones.
static bool place(pestle_built_t* b, size_t index, int32_t rank,
                  int64_t* out_axes) {
  const pestle_type_t* type = pestle_built_type(b, index);
  pestle_i64s_t axes;
  if (!pestle_built_i64s(b, "broadcast_dimensions", false, &axes) &&
      b->f.status) {
    return false;
  }
  bool written = axes.data && type->rank < rank;
  if (written && axes.count != (size_t)type->rank) {
    FAIL(b, MALFORMED, "'broadcast_dimensions' has %zu numbers for %d axes",
         axes.count, type->rank);
    return false;
  }
  for (int32_t i = 0; i < type->rank; ++i) {
    out_axes[i] = written ? axes.data[i] : rank - type->rank + i;
    bool fits = out_axes[i] >= 0 && out_axes[i] < rank &&
                (!i || out_axes[i] > out_axes[i - 1]);
    if (fits) continue;
    FAIL(b, MALFORMED, "'broadcast_dimensions' must ascend within %d axes",
         rank);
    return false;
  }
  return true;
}

// All operands in the one shape that they are repeated to.
static bool spread(pestle_built_t* b, pv_t** out) {
  int64_t axes[3][PESTLE_MAX_RANK], dims[PESTLE_MAX_RANK];
  int32_t rank = 0;
  if (!all_static(b)) return false;
  for (size_t i = 0; i < b->operand_count; ++i) {
    int32_t own = pestle_built_type(b, i)->rank;
    rank = own > rank ? own : rank;
  }
  for (int32_t i = 0; i < rank; ++i)
    dims[i] = 1;
  for (size_t i = 0; i < b->operand_count; ++i) {
    const pestle_type_t* type = pestle_built_type(b, i);
    if (!place(b, i, rank, axes[i])) return false;
    for (int32_t k = 0; k < type->rank; ++k) {
      int64_t* dim = &dims[axes[i][k]];
      if (*dim == 1) *dim = type->dims[k];
      if (*dim == type->dims[k] || type->dims[k] == 1) continue;
      FAIL(b, MALFORMED, "extents %lld and %lld of one axis do not go together",
           (long long)*dim, (long long)type->dims[k]);
      return false;
    }
  }
  for (size_t i = 0; i < b->operand_count; ++i) {
    // Axes of one element are dropped, then repeated like those it has not.
    const pestle_type_t* type = pestle_built_type(b, i);
    int64_t kept[PESTLE_MAX_RANK], to[PESTLE_MAX_RANK];
    int32_t n = 0;
    for (int32_t k = 0; k < type->rank; ++k) {
      if (type->dims[k] == 1 && dims[axes[i][k]] != 1) continue;
      kept[n] = type->dims[k];
      to[n++] = axes[i][k];
    }
    out[i] = pestle_f_reshape(&b->f, b->operands[i], n, kept);
    out[i] = pestle_f_broadcast(&b->f, out[i], rank, dims,
                                (pestle_i64s_t){to, (size_t)n});
  }
  return !b->f.status;
}

static void with(pestle_built_t* b, pestle_op_t op) {
  pv_t* operands[3];
  if (!spread(b, operands)) return;
  b->results[0] =
      pestle_f_make(&b->f, op, operands, b->operand_count, NULL, 0, NULL);
}

#define WITH(op, NAME)                             \
  void pestle_built_with_##op(pestle_built_t* b) { \
    with(b, PESTLE_OP_##NAME);                     \
  }
WITH(add, ADD)
WITH(subtract, SUBTRACT)
WITH(multiply, MULTIPLY)
WITH(divide, DIVIDE)
WITH(remainder, REMAINDER)
WITH(maximum, MAXIMUM)
WITH(minimum, MINIMUM)
WITH(power, POWER)
WITH(atan2, ATAN2)
WITH(and, AND)
WITH(or, OR)
WITH(xor, XOR)
WITH(shift_left, SHIFT_LEFT)
WITH(shift_right_arithmetic, SHIFT_RIGHT_ARITHMETIC)
WITH(shift_right_logical, SHIFT_RIGHT_LOGICAL)
WITH(complex, COMPLEX)
WITH(select, SELECT)

static void with_row(pestle_built_t* b, const char* name) {
  pv_t* operands[3];
  if (!spread(b, operands)) return;
  b->f.status =
      pestle_chlo_build(&b->f.builder, pestle_chlo_find(pestle_str(name)),
                        operands, b->operand_count, &b->results[0]);
}

void pestle_built_with_next_after(pestle_built_t* b) {
  with_row(b, "chlo.next_after");
}

void pestle_built_with_polygamma(pestle_built_t* b) {
  with_row(b, "chlo.polygamma");
}

void pestle_built_with_zeta(pestle_built_t* b) {
  with_row(b, "chlo.zeta");
}

void pestle_built_asin_acos_kernel(pestle_built_t* b) {
  if (pestle_type_is_complex(pestle_built_type(b, 0))) {
    b->results[0] = pestle_chlo_complex_kernel(&b->f, b->operands[0]);
    return;
  }
  FAIL(b, MALFORMED, "its operand must be of complex numbers");
}

// A comparison in total order is one of keys.
static void compare_totally(pestle_built_t* b, pestle_op_t op) {
  pv_t* operands[3];
  for (size_t i = 0; i < b->operand_count; ++i) {
    if (pestle_dtype_is(pestle_built_type(b, i)->dtype, PESTLE_KIND_FLOAT))
      continue;
    FAIL(b, MALFORMED,
         "TOTALORDER compares floats; integers are compared as SIGNED or "
         "UNSIGNED and complex numbers as FLOAT");
    return;
  }
  if (!spread(b, operands)) return;
  for (size_t i = 0; i < b->operand_count && !b->f.status; ++i) {
    b->f.status =
        pestle_total_order_key(&b->f.builder, operands[i], &operands[i]);
  }
  if (b->f.status) return;
  b->results[0] =
      pestle_f_make(&b->f, op, operands, b->operand_count, NULL, 0, NULL);
}

void pestle_built_with_compare(pestle_built_t* b) {
  const pestle_generic_value_t* how =
      pestle_built_attr(b, "comparison_direction");
  const pestle_generic_value_t* type = pestle_built_attr(b, "compare_type");
  bool total = type && pestle_str_equal_c(type->text, "TOTALORDER");
  for (unsigned i = 0; how && i < PESTLE_SCALAR_COUNT; ++i) {
    const char* name = pestle_text_direction((pestle_op_t)i);
    if (!name || !pestle_str_equal_c(how->text, name)) continue;
    if (total) {
      compare_totally(b, (pestle_op_t)i);
    } else {
      with(b, (pestle_op_t)i);
    }
    return;
  }
  FAIL(b, MALFORMED,
       "attribute 'comparison_direction' must be EQ, NE, LT, LE, "
       "GT or GE");
}

// SPDX-License-Identifier: Apache-2.0
// Type rules of sources, elementwise ops with a type of their own, and views.
#include "base/checked.h"
#include "base/mem.h"
#include "ir/infer.h"

enum { ANY_KIND = PESTLE_KIND_BOOL | PESTLE_KIND_REAL | PESTLE_KIND_COMPLEX };

// --- Sources ---

// Narrow values are stored a byte each: other bits would be read as values that
// the type does not have.
static pestle_status_t check_bytes(const pestle_elements_t* value) {
  const unsigned char* bytes = value->data;
  int low = 0, high = 0;
  if (value->type.dtype == PESTLE_I1) {
    high = 1;
  } else if (pestle_dtype_is_sub_byte(value->type.dtype)) {
    const pestle_dtype_info_t* info = pestle_dtype_info(value->type.dtype);
    high = (1 << info->bits) - 1;
    if (info->kind == PESTLE_KIND_SIGNED) {
      high /= 2;
      low = -high - 1;
    }
  } else {
    return NULL;
  }
  for (size_t i = 0; i < value->size; ++i) {
    int byte = low ? (signed char)bytes[i] : bytes[i];
    if (byte < low || byte > high) {
      return PESTLE_BAD("element %zu of the value is %d, which is no %s", i,
                        byte, pestle_dtype_info(value->type.dtype)->name);
    }
  }
  return NULL;
}

pestle_status_t pestle_infer_constant(pestle_infer_t* in) {
  const pestle_elements_t* value =
      pestle_in_attr(in, PESTLE_ATTR_value)->as.elements;
  if (!value) return PESTLE_BAD("attribute 'value' is missing");
  PESTLE_TRY(pestle_type_check(&value->type));
  if (!pestle_type_is_static(&value->type)) {
    return PESTLE_BAD("the value's type %s is not static",
                      pestle_type_text(&value->type).text);
  }
  size_t expected = value->splat ? pestle_dtype_size(value->type.dtype)
                                 : pestle_type_bytes(&value->type);
  if (value->size != expected || (expected && !value->data)) {
    return PESTLE_BAD("%zu bytes of data for %s, which takes %zu",
                      value->data ? value->size : 0,
                      pestle_type_text(&value->type).text, expected);
  }
  PESTLE_TRY(check_bytes(value));
  return pestle_emit(in, &value->type);
}

pestle_status_t pestle_infer_iota(pestle_infer_t* in) {
  const pestle_type_t* type;
  PESTLE_TRY(pestle_in_stated(in, &type));
  if (!pestle_dtype_is(type->dtype, PESTLE_KIND_REAL | PESTLE_KIND_COMPLEX)) {
    return PESTLE_BAD("the result's element type must be a number, not %s",
                      pestle_dtype_info(type->dtype)->name);
  }
  if (!pestle_type_is_static(type)) {
    return PESTLE_BAD("the result %s must be static",
                      pestle_type_text(type).text);
  }
  PESTLE_TRY(
      pestle_need_between(in, PESTLE_ATTR_iota_dimension, 0, type->rank));
  return pestle_emit(in, type);
}

// --- Elementwise ---

pestle_status_t pestle_infer_convert(pestle_infer_t* in) {
  const pestle_type_t* stated;
  const pestle_type_t* x = pestle_in_type(in, 0);
  PESTLE_TRY(pestle_in_stated(in, &stated));
  PESTLE_TRY(pestle_need_kind(in, 0, ANY_KIND));
  if (!pestle_shapes_agree(x, stated)) {
    return PESTLE_BAD("the result %s has another shape than the operand %s",
                      pestle_type_text(stated).text, pestle_type_text(x).text);
  }
  pestle_type_t type = *stated;
  pestle_merge_shape(&type, x);
  return pestle_emit(in, &type);
}

pestle_status_t pestle_infer_bitcast_convert(pestle_infer_t* in) {
  const pestle_type_t* stated;
  const pestle_type_t* x = pestle_in_type(in, 0);
  PESTLE_TRY(pestle_in_stated(in, &stated));
  int from = pestle_dtype_info(x->dtype)->bits;
  int to = pestle_dtype_info(stated->dtype)->bits;
  bool complex_from = pestle_dtype_is(x->dtype, PESTLE_KIND_COMPLEX);
  bool complex_to = pestle_dtype_is(stated->dtype, PESTLE_KIND_COMPLEX);
  bool divides = from >= to ? from % to == 0 : to % from == 0;
  // Of the two, a complex number is read as its parts alone.
  if (complex_from != complex_to) {
    divides = complex_from ? pestle_dtype_part(x->dtype) == stated->dtype
                           : pestle_dtype_part(stated->dtype) == x->dtype;
  }
  if (!divides) {
    return PESTLE_BAD("the bits of %s cannot be read as %s",
                      pestle_dtype_info(x->dtype)->name,
                      pestle_dtype_info(stated->dtype)->name);
  }
  // A wider element gains a last axis of its parts, a narrower one loses it.
  pestle_type_t type = *x;
  type.dtype = stated->dtype;
  if (from > to) {
    if (type.rank == PESTLE_MAX_RANK) return PESTLE_BAD("the rank is too high");
    type.dims[type.rank++] = from / to;
  } else if (from < to) {
    int64_t parts = to / from;
    if (type.rank == 0 || !pestle_dims_agree(type.dims[type.rank - 1], parts)) {
      return PESTLE_BAD("the last extent of operand %s must be %lld",
                        pestle_type_text(x).text, (long long)parts);
    }
    type.dims[--type.rank] = 0;
  }
  if (!pestle_shapes_agree(&type, stated)) {
    return PESTLE_BAD("the result %s must be %s", pestle_type_text(stated).text,
                      pestle_type_text(&type).text);
  }
  pestle_merge_shape(&type, stated);
  return pestle_emit(in, &type);
}

// --- Views ---

pestle_status_t pestle_infer_broadcast_in_dim(pestle_infer_t* in) {
  const pestle_type_t* stated;
  const pestle_type_t* x = pestle_in_type(in, 0);
  PESTLE_TRY(pestle_in_stated(in, &stated));
  if (stated->dtype != x->dtype) {
    return PESTLE_BAD("the result %s has another element type than operand %s",
                      pestle_type_text(stated).text, pestle_type_text(x).text);
  }
  pestle_attr_name_t name = PESTLE_ATTR_broadcast_dimensions;
  PESTLE_TRY(pestle_need_count(in, name, (size_t)x->rank));
  PESTLE_TRY(pestle_need_axes(in, name, stated->rank, NULL));
  const int64_t* axes = pestle_in_i64s(in, name).data;
  pestle_type_t type = *stated;
  for (int i = 0; i < x->rank; ++i) {
    int64_t* dim = &type.dims[axes[i]];
    if (x->dims[i] == 1) continue;
    if (!pestle_dims_agree(x->dims[i], *dim)) {
      return PESTLE_BAD(
          "extent %lld of axis %d of the operand is neither 1 "
          "nor the extent %lld of axis %lld of the result",
          (long long)x->dims[i], i, (long long)*dim, (long long)axes[i]);
    }
    if (!pestle_dim_known(*dim)) *dim = x->dims[i];
  }
  return pestle_emit(in, &type);
}

// The product of the known extents, and how many are not known.
static bool known_count(const pestle_type_t* type, int* out_unknown,
                        int64_t* out_count) {
  *out_unknown = 0;
  *out_count = 1;
  for (int i = 0; i < type->rank; ++i) {
    if (!pestle_dim_known(type->dims[i])) {
      ++*out_unknown;
    } else if (!pestle_checked_mul_i64(*out_count, type->dims[i], out_count)) {
      return false;
    }
  }
  return true;
}

// Solves the one unknown extent of |type|, whose others make |known|.
static pestle_status_t solve_reshape(const pestle_type_t* x, int64_t count,
                                     pestle_type_t* type, int64_t known) {
  for (int i = 0; i < type->rank; ++i) {
    if (pestle_dim_known(type->dims[i])) continue;
    if (known == 0 ? count != 0 : count % known != 0) {
      return PESTLE_BAD("%s does not reshape to %s", pestle_type_text(x).text,
                        pestle_type_text(type).text);
    }
    // 0 elements over 0: any extent would do, and nothing says which.
    if (known != 0) type->dims[i] = count / known;
  }
  return NULL;
}

pestle_status_t pestle_infer_reshape(pestle_infer_t* in) {
  const pestle_type_t* stated;
  const pestle_type_t* x = pestle_in_type(in, 0);
  PESTLE_TRY(pestle_in_stated(in, &stated));
  if (stated->dtype != x->dtype) {
    return PESTLE_BAD("the result %s has another element type than operand %s",
                      pestle_type_text(stated).text, pestle_type_text(x).text);
  }
  int unknown_x, unknown;
  int64_t count, known;
  if (!known_count(x, &unknown_x, &count) ||
      !known_count(stated, &unknown, &known)) {
    return PESTLE_BAD("the number of elements passes 2^63");
  }
  pestle_type_t type = *stated;
  if (unknown_x == 0 && unknown == 0 && count != known) {
    return PESTLE_BAD("operand %s has %lld elements, the result %s has %lld",
                      pestle_type_text(x).text, (long long)count,
                      pestle_type_text(stated).text, (long long)known);
  }
  if (unknown_x == 0 && unknown == 1) {
    PESTLE_TRY(solve_reshape(x, count, &type, known));
  }
  return pestle_emit(in, &type);
}

pestle_status_t pestle_infer_transpose(pestle_infer_t* in) {
  const pestle_type_t* x = pestle_in_type(in, 0);
  pestle_attr_name_t name = PESTLE_ATTR_permutation;
  PESTLE_TRY(pestle_need_count(in, name, (size_t)x->rank));
  PESTLE_TRY(pestle_need_axes(in, name, x->rank, NULL));
  pestle_type_t type = *x;
  for (int i = 0; i < x->rank; ++i) {
    type.dims[i] = x->dims[pestle_in_i64s(in, name).data[i]];
  }
  return pestle_emit(in, &type);
}

pestle_status_t pestle_infer_slice(pestle_infer_t* in) {
  const pestle_type_t* x = pestle_in_type(in, 0);
  size_t rank = (size_t)x->rank;
  PESTLE_TRY(pestle_need_count(in, PESTLE_ATTR_start_indices, rank));
  PESTLE_TRY(pestle_need_count(in, PESTLE_ATTR_limit_indices, rank));
  PESTLE_TRY(pestle_need_count(in, PESTLE_ATTR_strides, rank));
  PESTLE_TRY(pestle_need_at_least(in, PESTLE_ATTR_start_indices, 0));
  PESTLE_TRY(pestle_need_at_least(in, PESTLE_ATTR_strides, 1));
  pestle_type_t type = *x;
  for (int i = 0; i < x->rank; ++i) {
    int64_t start = pestle_in_i64s(in, PESTLE_ATTR_start_indices).data[i];
    int64_t limit = pestle_in_i64s(in, PESTLE_ATTR_limit_indices).data[i];
    int64_t stride = pestle_in_i64s(in, PESTLE_ATTR_strides).data[i];
    bool inside = !pestle_dim_known(x->dims[i]) || limit <= x->dims[i];
    if (start > limit || !inside) {
      return PESTLE_BAD(
          "start %lld and limit %lld of axis %d do not lie in "
          "operand %s",
          (long long)start, (long long)limit, i, pestle_type_text(x).text);
    }
    int64_t extent = limit - start;
    type.dims[i] = extent / stride + (extent % stride != 0);
  }
  return pestle_emit(in, &type);
}

pestle_status_t pestle_infer_reverse(pestle_infer_t* in) {
  const pestle_type_t* x = pestle_in_type(in, 0);
  PESTLE_TRY(pestle_need_axes(in, PESTLE_ATTR_dimensions, x->rank, NULL));
  return pestle_emit(in, x);
}

// low + extent + (extent - 1) * interior + high.
static pestle_status_t pad_extent(int axis, int64_t low, int64_t high,
                                  int64_t interior, int64_t* dim) {
  if (!pestle_dim_known(*dim)) return NULL;
  int64_t between = *dim > 0 ? *dim - 1 : 0;
  if (!pestle_checked_mul_i64(between, interior, &between) ||
      !pestle_checked_add_i64(*dim, between, dim) ||
      !pestle_checked_add_i64(*dim, low, dim) ||
      !pestle_checked_add_i64(*dim, high, dim)) {
    return PESTLE_BAD("the padded extent of axis %d passes 2^63", axis);
  }
  if (*dim >= 0) return NULL;
  return PESTLE_BAD(
      "the padding takes more from axis %d than it has: its "
      "extent would be %lld",
      axis, (long long)*dim);
}

pestle_status_t pestle_infer_pad(pestle_infer_t* in) {
  const pestle_type_t* x = pestle_in_type(in, 0);
  size_t rank = (size_t)x->rank;
  PESTLE_TRY(pestle_need_same_dtype(in, 0, 1));
  PESTLE_TRY(pestle_need_rank(in, 1, 0));
  PESTLE_TRY(pestle_need_count(in, PESTLE_ATTR_edge_padding_low, rank));
  PESTLE_TRY(pestle_need_count(in, PESTLE_ATTR_edge_padding_high, rank));
  PESTLE_TRY(pestle_need_count(in, PESTLE_ATTR_interior_padding, rank));
  PESTLE_TRY(pestle_need_at_least(in, PESTLE_ATTR_interior_padding, 0));
  pestle_type_t type = *x;
  for (int i = 0; i < x->rank; ++i) {
    PESTLE_TRY(
        pad_extent(i, pestle_in_i64s(in, PESTLE_ATTR_edge_padding_low).data[i],
                   pestle_in_i64s(in, PESTLE_ATTR_edge_padding_high).data[i],
                   pestle_in_i64s(in, PESTLE_ATTR_interior_padding).data[i],
                   &type.dims[i]));
  }
  return pestle_emit(in, &type);
}

// Adds operand |i| to |type| along |axis|.
static pestle_status_t append_part(const pestle_infer_t* in, size_t i,
                                   int64_t axis, pestle_type_t* type) {
  pestle_type_t part = *pestle_in_type(in, i);
  PESTLE_TRY(pestle_need_same_dtype(in, 0, i));
  PESTLE_TRY(pestle_need_rank(in, i, type->rank));
  int64_t extent = part.dims[axis];
  int64_t* sum = &type->dims[axis];
  if (!pestle_dim_known(extent) || !pestle_dim_known(*sum)) {
    *sum = PESTLE_DIM_DYNAMIC;
  } else if (!pestle_checked_add_i64(*sum, extent, sum)) {
    return PESTLE_BAD("the extents along axis %lld add up to more than 2^63",
                      (long long)axis);
  }
  part.dims[axis] = *sum;
  if (!pestle_shapes_agree(type, &part)) {
    return PESTLE_BAD(
        "operand %zu is %s: but for axis %lld its shape must be "
        "that of operand 0, %s",
        i, pestle_type_text(pestle_in_type(in, i)).text, (long long)axis,
        pestle_type_text(pestle_in_type(in, 0)).text);
  }
  part.dims[axis] = PESTLE_DIM_DYNAMIC;
  pestle_merge_shape(type, &part);
  return NULL;
}

pestle_status_t pestle_infer_concatenate(pestle_infer_t* in) {
  if (in->spec->operand_count == 0) {
    return PESTLE_BAD("the op takes at least one operand");
  }
  pestle_type_t type = *pestle_in_type(in, 0);
  PESTLE_TRY(pestle_need_between(in, PESTLE_ATTR_dimension, 0, type.rank));
  int64_t axis = pestle_in_i64(in, PESTLE_ATTR_dimension);
  for (size_t i = 1; i < in->spec->operand_count; ++i) {
    PESTLE_TRY(append_part(in, i, axis, &type));
  }
  return pestle_emit(in, &type);
}

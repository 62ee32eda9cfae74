// SPDX-License-Identifier: Apache-2.0
// Conveniences of C over the other headers: types and attributes in one expression,
// tensors of the host's memory that are made, filled and printed, and a dense layer.
// examples/c/network.c uses them all.
//
// Contents:
// - Types and attributes
// - Sizes
// - Views
// - Tensors with memory of their own
// - Layers
#ifndef PESTLE_HELPERS_H_
#define PESTLE_HELPERS_H_

#include <stddef.h>
#include <stdint.h>

#include "pestle/context.h"
#include "pestle/export.h"
#include "pestle/graph.h"
#include "pestle/status.h"
#include "pestle/tensor.h"
#include "pestle/types.h"

PESTLE_EXTERN_C_BEGIN

// --- Types and attributes ---

// The type of |rank| extents at |dims|, which may be NULL for rank 0. Of dtype NONE where
// there are more than PESTLE_MAX_RANK: what is built with it fails and says so.
static inline pestle_type_t pestle_type_of(pestle_dtype_t dtype,
                                           const int64_t* dims, size_t rank) {
  pestle_type_t type = {PESTLE_NONE, 0, {0}};
  if (rank > PESTLE_MAX_RANK || (rank && !dims)) return type;
  type.dtype = dtype;
  type.rank = (int32_t)rank;
  for (size_t i = 0; i < rank; ++i)
    type.dims[i] = dims[i];
  return type;
}

// A type as a value: PESTLE_TYPE(PESTLE_F32, 2, 3) is f32 of 2 rows and 3 columns,
// PESTLE_TYPE(PESTLE_F32) a single number. C alone.
#define PESTLE_TYPE(...)                                              \
  pestle_type_of((pestle_dtype_t)((const int64_t[]){__VA_ARGS__})[0], \
                 (const int64_t[]){__VA_ARGS__} + 1,                  \
                 sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t) - 1)

// The attributes of |op| as an argument, struct_size set, at least one field named:
//
//   pestle_op_dot_general(&b, x, w,
//                         PESTLE_ATTRS(dot_general,
//                                      .lhs_contracting_dimensions = PESTLE_I64S(1),
//                                      .rhs_contracting_dimensions = PESTLE_I64S(0)),
//                         PESTLE_TYPE(PESTLE_F32, 4, 2), &y)
//
// They live as long as the block that it stands in. C alone.
#define PESTLE_ATTRS(op, ...)      \
  (&(const pestle_##op##_attrs_t){ \
      .struct_size = sizeof(pestle_##op##_attrs_t), __VA_ARGS__})

// --- Sizes ---

// How many bytes the elements of |type| take in a dense tensor. 0 where an extent is 0 or
// not known, for a dtype that is no tensor's, and where the number does not fit.
static inline size_t pestle_type_byte_size(pestle_type_t type) {
  size_t bytes =
      pestle_dtype_is_stored(type.dtype) ? pestle_dtype_size(type.dtype) : 0;
  if (type.rank < 0 || type.rank > PESTLE_MAX_RANK) return 0;
  for (int32_t i = 0; i < type.rank; ++i) {
    if (type.dims[i] <= 0) return 0;
  }
  for (int32_t i = 0; i < type.rank; ++i) {
    if (bytes > (size_t)INT64_MAX / (size_t)type.dims[i]) return 0;
    bytes *= (size_t)type.dims[i];
  }
  return bytes;
}

// The same of |tensor|, whatever its strides are; 0 for NULL.
PESTLE_API size_t pestle_tensor_byte_size(const pestle_tensor_t* tensor);

// --- Views ---

// A dense, row-major view of |data|, memory of the host, with |ndim| extents at |shape|.
// Both are borrowed for as long as the view is used.
static inline pestle_tensor_t pestle_tensor_view(void* data,
                                                 pestle_dtype_t dtype,
                                                 int64_t* shape, int32_t ndim) {
  const pestle_dtype_info_t* info = pestle_dtype_info(dtype);
  pestle_tensor_t view = {data,  {PESTLE_DEVICE_CPU, 0},
                          ndim,  {info->dlpack_code, info->dlpack_bits, 1},
                          shape, NULL,
                          0};
  return view;
}

// The same with the extents as arguments, at least one: PESTLE_TENSOR(x, PESTLE_F32, 2,
// 3). The extents live as long as the block that it stands in. C alone.
#define PESTLE_TENSOR(data, dtype, ...)          \
  pestle_tensor_view(                            \
      (data), (dtype), (int64_t[]){__VA_ARGS__}, \
      (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

// --- Tensors with memory of their own ---

// Makes |*out_tensor| a dense tensor with memory and shape of its own, at an alignment
// at which kernels use it in place. |values| are its elements, row-major, to be copied;
// NULL: zeros. |shape| has |ndim| extents and may be NULL for none. Freed by
// pestle_tensor_deinit() with the same |context|. INVALID_ARGUMENT: a dtype that is no
// tensor's, more than PESTLE_MAX_RANK axes, an extent below 0, a size that does not fit.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_tensor_init(
    pestle_context_t* context, pestle_dtype_t dtype, const int64_t* shape,
    int32_t ndim, const void* values, pestle_tensor_t* out_tensor);
// Frees what pestle_tensor_init() made, and clears |*tensor|. Does nothing for NULL and
// for a tensor without data. Data, shape and extents are to be as they were made.
PESTLE_API void pestle_tensor_deinit(pestle_context_t* context,
                                     pestle_tensor_t* tensor);

// Sets every element of |tensor|, a view of the host's memory with any strides, to
// |value|: rounded to a float dtype; the real part of a complex one. INVALID_ARGUMENT:
// memory of another device, or a |value| that an integer or bool dtype has not, naming it.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_tensor_fill(const pestle_tensor_t* tensor, double value);

// Writes "f32[2, 3] [[1, 2, 3], [4, 5, 6]]" into |buffer| (always terminated when
// |capacity| > 0) and returns the length that the whole text has, without the 0.
// |buffer| may be NULL, to measure. Along an axis of more than 8 places the first and
// last 3 stand, with ".." between. Elements of another device are not read: the text
// names the device then. Strides may be any. "none" for NULL.
PESTLE_API size_t pestle_tensor_format(const pestle_tensor_t* tensor,
                                       char* buffer, size_t capacity);

// --- Layers ---

// y = x w + b, a dense layer: |x| [.., k], |w| [k, n], and |b| [n] or NULL give |*out|
// [.., n]. The ops that it is made of fuse as they would alone. INVALID_ARGUMENT names
// ranks, extents or dtypes that do not fit; such a call adds nothing.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_op_linear(pestle_builder_t* builder, pestle_value_t* x,
                 pestle_value_t* w, pestle_value_t* b, pestle_value_t** out);

PESTLE_EXTERN_C_END

#endif  // PESTLE_HELPERS_H_

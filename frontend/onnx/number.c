// SPDX-License-Identifier: Apache-2.0
// Single elements of stored data, written from numbers and read as numbers.
// Little-endian, like the files and the hosts that we run on.
#include <math.h>

#include "base/half.h"
#include "frontend/onnx/tensor.h"

bool pestle_onnx_type_fits(const pestle_type_t* type) {
  int64_t count = 1;
  for (int32_t i = 0; i < type->rank; ++i) {
    int64_t extent = type->dims[i] < 1 ? 1 : type->dims[i];
    if (extent > (INT64_C(1) << 48) / count) return false;
    count *= extent;
  }
  return true;
}

void pestle_onnx_store_bits(pestle_dtype_t dtype, uint64_t bits, void* out) {
  if (pestle_dtype_info(dtype)->kind == PESTLE_KIND_BOOL) bits = bits != 0;
  memcpy(out, &bits, pestle_dtype_size(dtype));
}

void pestle_onnx_store_f64(pestle_dtype_t dtype, double value, void* out) {
  if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) {
    pestle_onnx_store_bits(dtype, pestle_float_encode(dtype, value), out);
  } else if (value >= 9223372036854775808.0) {
    pestle_onnx_store_bits(
        dtype, value < 18446744073709551616.0 ? (uint64_t)value : UINT64_MAX,
        out);
  } else {
    pestle_onnx_store_bits(dtype,
                           value > -9223372036854775808.0
                               ? (uint64_t)(int64_t)value
                               : (uint64_t)INT64_MIN,
                           out);
  }
}

int64_t pestle_onnx_element_i64(const pestle_elements_t* elements,
                                size_t index) {
  const pestle_dtype_info_t* info = pestle_dtype_info(elements->type.dtype);
  if (info->kind == PESTLE_KIND_FLOAT) {
    double value = pestle_onnx_element_f64(elements, index);
    if (isnan(value)) return 0;
    return value < -0x1p63   ? INT64_MIN
           : value >= 0x1p63 ? INT64_MAX
                             : (int64_t)value;
  }
  if (elements->splat) index = 0;
  uint64_t bits = 0;
  if (info->size > sizeof(bits)) return 0;
  memcpy(&bits, (const char*)elements->data + index * info->size, info->size);
  if (info->kind != PESTLE_KIND_SIGNED || info->size == 8) return (int64_t)bits;
  unsigned shift = 64u - 8u * info->size;
  return (int64_t)(bits << shift) >> shift;
}

double pestle_onnx_element_f64(const pestle_elements_t* elements,
                               size_t index) {
  pestle_dtype_t dtype = elements->type.dtype;
  const pestle_dtype_info_t* info = pestle_dtype_info(dtype);
  if (info->kind != PESTLE_KIND_FLOAT) {
    int64_t value = pestle_onnx_element_i64(elements, index);
    return dtype == PESTLE_U64 ? (double)(uint64_t)value : (double)value;
  }
  if (elements->splat) index = 0;
  uint64_t bits = 0;
  memcpy(&bits, (const char*)elements->data + index * info->size, info->size);
  return pestle_float_decode(dtype, bits);
}

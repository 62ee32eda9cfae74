// SPDX-License-Identifier: Apache-2.0
// Constants made from numbers.
#include <math.h>

#include "base/half.h"
#include "base/mem.h"
#include "frontend/onnx/emit.h"

// Before anything is computed from |type|, whose extents may be made up.
static bool check_type(pestle_onnx_call_t* call, const pestle_type_t* type) {
  if (call->f.status || pestle_onnx_keep(call, pestle_type_check(type))) {
    return false;
  }
  if (pestle_onnx_type_fits(type)) return true;
  pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                   "it makes a constant of more than 2^48 elements");
  return false;
}

bool pestle_onnx_refuses_complex(pestle_onnx_call_t* call,
                                 pestle_dtype_t dtype) {
  if (!pestle_dtype_is(dtype, PESTLE_KIND_COMPLEX)) return false;
  pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                   "complex numbers are not supported here");
  return true;
}

static pestle_value_t* splat_bytes(pestle_onnx_call_t* call,
                                   const pestle_type_t* type,
                                   const void* element) {
  if (!check_type(call, type)) return NULL;
  size_t size = pestle_dtype_size(type->dtype);
  void* data = pestle_arena_copy(&call->import->module->arena, element, size,
                                 PESTLE_DEFAULT_ALIGNMENT);
  if (!data) {
    pestle_onnx_keep(call, PESTLE_OOM());
    return NULL;
  }
  int64_t count = pestle_type_count(type);
  return pestle_f_elements(
      &call->f, &(pestle_elements_t){.type = *type,
                                     .data = data,
                                     .size = count == 0 ? 0 : size,
                                     .splat = count != 1 && count != 0});
}

pestle_value_t* pestle_onnx_splat(pestle_onnx_call_t* call,
                                  const pestle_type_t* type, double value) {
  uint64_t element[2] = {0};
  if (pestle_onnx_refuses_complex(call, type->dtype)) return NULL;
  pestle_onnx_store_f64(type->dtype, value, element);
  return splat_bytes(call, type, element);
}

pestle_value_t* pestle_onnx_splat_int(pestle_onnx_call_t* call,
                                      const pestle_type_t* type,
                                      int64_t value) {
  if (pestle_dtype_is(type->dtype, PESTLE_KIND_FLOAT | PESTLE_KIND_COMPLEX)) {
    return pestle_onnx_splat(call, type, (double)value);
  }
  uint64_t element[2] = {0};
  pestle_onnx_store_bits(type->dtype, (uint64_t)value, element);
  return splat_bytes(call, type, element);
}

pestle_value_t* pestle_onnx_scalar(pestle_onnx_call_t* call,
                                   pestle_dtype_t dtype, double value) {
  return pestle_onnx_splat(call, &(pestle_type_t){.dtype = dtype}, value);
}

pestle_value_t* pestle_onnx_int_list(pestle_onnx_call_t* call,
                                     const int64_t* values, size_t count) {
  if (call->f.status) return NULL;
  size_t size = count * sizeof(int64_t);
  int64_t* data = pestle_arena_alloc(&call->import->module->arena, size,
                                     PESTLE_DEFAULT_ALIGNMENT);
  if (!data) {
    pestle_onnx_keep(call, PESTLE_OOM());
    return NULL;
  }
  if (size) memcpy(data, values, size);
  return pestle_f_elements(
      &call->f,
      &(pestle_elements_t){
          .type = {.dtype = PESTLE_I64, .rank = 1, .dims = {(int64_t)count}},
          .data = data,
          .size = size});
}

pestle_value_t* pestle_onnx_numbers(pestle_onnx_call_t* call,
                                    const pestle_type_t* type,
                                    const double* values) {
  if (!check_type(call, type) ||
      pestle_onnx_refuses_complex(call, type->dtype)) {
    return NULL;
  }
  size_t count = (size_t)pestle_type_count(type);
  size_t size = pestle_dtype_size(type->dtype);
  char* data = pestle_arena_alloc_array(&call->import->module->arena, count,
                                        size, PESTLE_DEFAULT_ALIGNMENT);
  if (!data) {
    pestle_onnx_keep(call, PESTLE_OOM());
    return NULL;
  }
  for (size_t i = 0; i < count; ++i) {
    pestle_onnx_store_f64(type->dtype, values[i], data + i * size);
  }
  return pestle_f_elements(
      &call->f,
      &(pestle_elements_t){.type = *type, .data = data, .size = count * size});
}

static pestle_value_t* extreme(pestle_onnx_call_t* call,
                               const pestle_type_t* type, bool high) {
  const pestle_dtype_info_t* info = pestle_dtype_info(type->dtype);
  uint64_t bits = 0;
  if (!pestle_dtype_is(type->dtype, PESTLE_KIND_REAL | PESTLE_KIND_BOOL)) {
    return pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                            "of %s no number is the greatest", info->name);
  }
  if (info->kind == PESTLE_KIND_FLOAT) {
    const pestle_float_format_t* format = pestle_float_format(type->dtype);
    bool infinite = format->specials == PESTLE_FLOAT_IEEE;
    double value = infinite ? (double)INFINITY : pestle_float_max(type->dtype);
    if (high || format->sign) {
      return pestle_onnx_splat(call, type, high ? value : -value);
    }
    return pestle_onnx_splat(call, type, pestle_float_decode(type->dtype, 0));
  }
  if (info->kind == PESTLE_KIND_SIGNED) {
    bits = UINT64_C(1) << (info->bits - 1);
    bits = high ? bits - 1 : ~(bits - 1);
  } else if (high) {
    bits = info->bits == 64 ? UINT64_MAX : (UINT64_C(1) << info->bits) - 1;
  }
  return pestle_onnx_splat_int(call, type, (int64_t)bits);
}

pestle_value_t* pestle_onnx_lowest(pestle_onnx_call_t* call,
                                   const pestle_type_t* type) {
  return extreme(call, type, false);
}

pestle_value_t* pestle_onnx_highest(pestle_onnx_call_t* call,
                                    const pestle_type_t* type) {
  return extreme(call, type, true);
}

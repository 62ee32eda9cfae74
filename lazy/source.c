// SPDX-License-Identifier: Apache-2.0
// Arrays of data: copied, wrapped, of a buffer; of one element everywhere; numbers.
#include "lazy/lazy.h"

#include <math.h>

#include "base/half.h"
#include "base/require.h"

pestle_status_t pestle_array_check_type(const pestle_type_t* type) {
  PESTLE_TRY(pestle_type_check(type));
  if (pestle_type_is_static(type)) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "an array's extents must be known, one of them is not");
}

// The context that |device| is of, through a buffer or an array.
static pestle_status_t lazy_of_device(pestle_device_t* device,
                                      pestle_lazy_t** out_lazy) {
  return pestle_lazy_of(pestle_device_context(device), out_lazy);
}

// Whether the elements of |type|, from |offset| on with |strides|, lie in |size|
// bytes.
static bool is_inside(const pestle_type_t* type, uint64_t offset,
                      const int64_t* strides, size_t size) {
  uint64_t element = pestle_dtype_size(type->dtype);
  if (!pestle_type_count(type)) return true;
  uint64_t last = offset, first = offset;
  int64_t row_major[PESTLE_MAX_RANK];
  pestle_strides_of(type, row_major);
  if (!strides) strides = row_major;
  for (int32_t i = 0; i < type->rank; ++i) {
    uint64_t step =
        strides[i] < 0 ? 0 - (uint64_t)strides[i] : (uint64_t)strides[i];
    uint64_t way;
    if (__builtin_mul_overflow(step, (uint64_t)type->dims[i] - 1, &way) ||
        __builtin_mul_overflow(way, element, &way)) {
      return false;
    }
    if (strides[i] < 0) {
      if (way > first) return false;
      first -= way;
    } else if (__builtin_add_overflow(last, way, &last)) {
      return false;
    }
  }
  return last <= size && size - last >= element;
}

pestle_status_t pestle_array_from_buffer(pestle_buffer_t* buffer,
                                         const pestle_type_t* type,
                                         uint64_t byte_offset,
                                         const int64_t* strides,
                                         pestle_array_t** out_array) {
  PESTLE_REQUIRE(buffer && type && out_array,
                 "a buffer, a type and a place for the array");
  *out_array = NULL;
  PESTLE_TRY(pestle_array_check_type(type));
  if (!is_inside(type, byte_offset, strides, pestle_buffer_size(buffer))) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "an array of %s from byte %llu on leads out of its "
                        "buffer of %zu bytes",
                        pestle_dtype_info(type->dtype)->name,
                        (unsigned long long)byte_offset,
                        pestle_buffer_size(buffer));
  }
  int64_t row_major[PESTLE_MAX_RANK];
  pestle_strides_of(type, row_major);
  if (strides &&
      (!type->rank ||
       !memcmp(strides, row_major, (size_t)type->rank * sizeof(*strides)))) {
    strides = NULL;
  }
  pestle_lazy_t* lazy;
  PESTLE_TRY(lazy_of_device(pestle_buffer_device(buffer), &lazy));
  PESTLE_TRY(pestle_array_make_data(lazy, type, buffer, byte_offset, strides,
                                    out_array));
  pestle_buffer_retain(buffer);
  return NULL;
}

pestle_status_t pestle_array_failed(pestle_device_t* device,
                                    const pestle_type_t* type,
                                    pestle_status_t status,
                                    pestle_array_t** out_array) {
  PESTLE_REQUIRE(device && type && status && out_array,
                 "a device, a type, a status and a place for the array");
  *out_array = NULL;
  pestle_lazy_t* lazy;
  pestle_status_t wrong = pestle_array_check_type(type);
  if (!wrong) wrong = lazy_of_device(device, &lazy);
  pestle_array_t* array =
      wrong ? NULL : pestle_array_make(lazy, device, PESTLE_NODE_FAILED, 0);
  if (!array) {
    pestle_status_release(status);
    return wrong ? wrong : PESTLE_OOM();
  }
  pestle_array_keep_context(array);
  array->type = *type;
  array->failure = status;
  *out_array = array;
  return NULL;
}

pestle_status_t pestle_array_empty(pestle_device_t* device,
                                   const pestle_type_t* type,
                                   pestle_array_t** out_array) {
  PESTLE_REQUIRE(device && type && out_array,
                 "a device, a type and a place for the array");
  *out_array = NULL;
  PESTLE_TRY(pestle_array_check_type(type));
  pestle_lazy_t* lazy;
  pestle_buffer_t* buffer;
  PESTLE_TRY(lazy_of_device(device, &lazy));
  PESTLE_TRY(pestle_buffer_create(device, pestle_type_bytes(type), &buffer));
  pestle_status_t status =
      pestle_array_make_data(lazy, type, buffer, 0, NULL, out_array);
  if (status) pestle_buffer_release(buffer);
  return status;
}

pestle_status_t pestle_array_from_data(pestle_device_t* device,
                                       const pestle_type_t* type,
                                       const void* data,
                                       pestle_array_t** out_array) {
  PESTLE_TRY(pestle_array_empty(device, type, out_array));
  size_t size = pestle_type_bytes(type);
  pestle_status_t status;
  if (size && !data) {
    status =
        PESTLE_ERROR(INVALID_ARGUMENT,
                     "pestle_array_from_data needs data for %zu bytes", size);
  } else {
    status = pestle_buffer_write((*out_array)->buffer, 0, data, size);
  }
  if (!status) return NULL;
  pestle_array_release(*out_array);
  *out_array = NULL;
  return status;
}

// --- Memory of others ---

static pestle_status_t check_tensor(const pestle_device_t* device,
                                    const pestle_tensor_t* tensor,
                                    pestle_type_t* out_type) {
  pestle_dl_device_t at = pestle_device_dl(device);
  if (tensor->device.device_type != at.device_type) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the tensor is memory of device type %d, %s is of %d",
                        (int)tensor->device.device_type,
                        pestle_device_name(device), (int)at.device_type);
  }
  if (tensor->ndim < 0 || tensor->ndim > PESTLE_MAX_RANK ||
      (tensor->ndim && !tensor->shape)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the tensor has rank %d, or no shape; ranks go to %d",
                        (int)tensor->ndim, PESTLE_MAX_RANK);
  }
  *out_type = (pestle_type_t){.dtype = pestle_dtype_from_dlpack(tensor->dtype),
                              .rank = tensor->ndim};
  if (out_type->dtype == PESTLE_NONE) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "Pestle has no dtype of DLPack's code %d, %d bits, %d "
                        "lanes",
                        (int)tensor->dtype.code, (int)tensor->dtype.bits,
                        (int)tensor->dtype.lanes);
  }
  for (int32_t i = 0; i < tensor->ndim; ++i)
    out_type->dims[i] = tensor->shape[i];
  return pestle_array_check_type(out_type);
}

// The bytes that the tensor's elements reach below and above its first one.
static pestle_status_t reach(const pestle_type_t* type, const int64_t* strides,
                             uint64_t* out_below, uint64_t* out_above) {
  uint64_t element = pestle_dtype_size(type->dtype);
  *out_below = 0;
  *out_above = pestle_type_count(type) ? element : 0;
  for (int32_t i = 0; *out_above && i < type->rank; ++i) {
    int64_t stride = strides[i];
    uint64_t step = stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride, way;
    uint64_t* end = stride < 0 ? out_below : out_above;
    if (__builtin_mul_overflow(step, (uint64_t)type->dims[i] - 1, &way) ||
        __builtin_mul_overflow(way, element, &way) ||
        __builtin_add_overflow(*end, way, end)) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "stride %lld of axis %d leads out of memory",
                          (long long)stride, (int)i);
    }
  }
  return *out_above <= SIZE_MAX / 2 && *out_below <= SIZE_MAX / 2
             ? NULL
             : PESTLE_ERROR(INVALID_ARGUMENT, "strides lead out of memory");
}

pestle_status_t pestle_array_wrap(pestle_device_t* device,
                                  const pestle_tensor_t* tensor,
                                  const pestle_buffer_wrap_options_t* options,
                                  pestle_array_t** out_array) {
  PESTLE_REQUIRE(device && tensor && out_array,
                 "a device, a tensor and a place for the array");
  *out_array = NULL;
  pestle_type_t type;
  pestle_lazy_t* lazy;
  PESTLE_TRY(check_tensor(device, tensor, &type));
  PESTLE_TRY(lazy_of_device(device, &lazy));
  int64_t row_major[PESTLE_MAX_RANK];
  pestle_strides_of(&type, row_major);
  const int64_t* strides = tensor->strides;
  if (strides &&
      (!type.rank ||
       !memcmp(strides, row_major, (size_t)type.rank * sizeof(*strides)))) {
    strides = NULL;
  }
  uint64_t below, above;
  PESTLE_TRY(reach(&type, strides ? strides : row_major, &below, &above));
  // The array first: once the buffer is there nothing may fail, since its release
  // would call the caller's.
  pestle_array_t* array =
      pestle_array_make(lazy, device, PESTLE_NODE_DATA,
                        strides ? (size_t)type.rank * sizeof(int64_t) : 0);
  if (!array) return PESTLE_OOM();
  array->type = type;
  char* first = (char*)tensor->data + tensor->byte_offset;
  pestle_status_t status =
      pestle_buffer_wrap(device, above ? first - below : tensor->data,
                         (size_t)(below + above), options, &array->buffer);
  if (status) {
    pestle_array_release(array);
    return status;
  }
  array->byte_offset = below;
  if (strides) {
    array->strides = (int64_t*)(void*)(array + 1);
    memcpy(array->strides, strides, (size_t)type.rank * sizeof(int64_t));
  }
  *out_array = array;
  return NULL;
}

// --- Elements that are a part of the graph ---

pestle_status_t pestle_array_full(pestle_device_t* device,
                                  const pestle_type_t* type,
                                  const void* element,
                                  pestle_array_t** out_array) {
  PESTLE_REQUIRE(device && type && element && out_array,
                 "a device, a type, an element and a place for the array");
  *out_array = NULL;
  PESTLE_TRY(pestle_array_check_type(type));
  pestle_elements_t value = {.type = *type,
                             .data = element,
                             .size = pestle_dtype_size(type->dtype),
                             .splat = true};
  pestle_attr_t attr = {
      PESTLE_ATTR_value, PESTLE_ATTR_KIND_ELEMENTS, {.elements = &value}};
  pestle_record_t r = {.op = PESTLE_OP_CONSTANT,
                       .parts = {.attrs = &attr, .attr_count = 1},
                       .device = device};
  return pestle_array_record(&r, out_array, 1);
}

static pestle_status_t encode(pestle_dtype_t dtype, double value,
                              unsigned char bytes[8]) {
  unsigned bits = pestle_dtype_info(dtype)->bits;
  uint64_t encoded;
  if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) {
    encoded = pestle_float_encode(dtype, value);
  } else if (pestle_dtype_is(dtype, PESTLE_KIND_BOOL)) {
    encoded = value != 0;
  } else {
    bool is_signed = pestle_dtype_is(dtype, PESTLE_KIND_SIGNED);
    double above = ldexp(1, (int)bits - is_signed);
    if (!(value < above && value >= (is_signed ? -above : 0))) {
      return PESTLE_ERROR(INVALID_ARGUMENT, "%g is no number of %s", value,
                          pestle_dtype_info(dtype)->name);
    }
    encoded = is_signed ? (uint64_t)(int64_t)value : (uint64_t)value;
  }
  memcpy(bytes, &encoded, 8);
  if (bits < 8) bytes[0] = pestle_dtype_extend(dtype, bytes[0]);
  return NULL;
}

static bool is_baked_in(double value) {
  return value == 0 || value == 1 || value == -1 || value == 2 || value == 0.5;
}

pestle_status_t pestle_array_scalar(pestle_device_t* device,
                                    pestle_dtype_t dtype, double value,
                                    pestle_array_t** out_array) {
  PESTLE_REQUIRE(device && out_array, "a device and a place for the array");
  *out_array = NULL;
  unsigned char bytes[8];
  pestle_type_t type = {.dtype = dtype};
  PESTLE_TRY(pestle_array_check_type(&type));
  if (!pestle_dtype_is(dtype, PESTLE_KIND_REAL | PESTLE_KIND_BOOL)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_array_scalar makes real numbers, not %s",
                        pestle_dtype_info(dtype)->name);
  }
  PESTLE_TRY(encode(dtype, value, bytes));
  PESTLE_TRY(is_baked_in(value)
                 ? pestle_array_full(device, &type, bytes, out_array)
                 : pestle_array_from_data(device, &type, bytes, out_array));
  atomic_fetch_or_explicit(&(*out_array)->flags, PESTLE_NODE_WEAK,
                           memory_order_relaxed);
  return NULL;
}

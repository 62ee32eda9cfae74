// SPDX-License-Identifier: Apache-2.0
// Elements out of arrays: as a view, to the host, to another device.
#include "base/require.h"
#include "lazy/lazy.h"

pestle_status_t pestle_array_data(pestle_array_t* array,
                                  pestle_tensor_t* out_tensor) {
  PESTLE_REQUIRE(array && out_tensor, "an array and a place for the tensor");
  *out_tensor = (pestle_tensor_t){.data = NULL};
  PESTLE_TRY(pestle_array_wait(array));
  *out_tensor = (pestle_tensor_t){
      .data = pestle_buffer_data(array->buffer),
      .device = pestle_device_dl(pestle_buffer_device(array->buffer)),
      .ndim = array->type.rank,
      .dtype = pestle_dtype_to_dlpack(array->type.dtype),
      .shape = array->type.dims,
      .strides = array->strides,
      .byte_offset = array->byte_offset};
  return NULL;
}

// |array|'s elements row-major in memory that begins with them: |array| itself, with
// a reference, or a copy.
static pestle_status_t row_major(pestle_array_t* array,
                                 pestle_array_t** out_array) {
  *out_array = NULL;
  PESTLE_TRY(pestle_array_wait(array));
  if (!array->strides) {
    pestle_array_retain(array);
    *out_array = array;
    return NULL;
  }
  pestle_record_t r = {.op = PESTLE_OP_CONVERT,
                       .operands = &array,
                       .operand_count = 1,
                       .parts = {.type = &array->type},
                       .no_views = true};
  PESTLE_TRY(pestle_array_record(&r, out_array, 1));
  pestle_status_t status = pestle_array_wait(*out_array);
  if (!status) return NULL;
  pestle_array_release(*out_array);
  *out_array = NULL;
  return status;
}

pestle_status_t pestle_array_read(pestle_array_t* array, void* data,
                                  size_t size) {
  PESTLE_REQUIRE(array && (data || !size), "an array and memory");
  size_t bytes = pestle_type_bytes(&array->type);
  if (size != bytes) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the array has %zu bytes, %zu are asked for", bytes,
                        size);
  }
  pestle_array_t* source;
  PESTLE_TRY(row_major(array, &source));
  pestle_status_t status = pestle_buffer_read(
      source->buffer, (size_t)source->byte_offset, data, size);
  pestle_array_release(source);
  return status;
}

pestle_status_t pestle_array_copy_to(pestle_array_t* array,
                                     pestle_device_t* device,
                                     pestle_array_t** out_array) {
  PESTLE_REQUIRE(array && device && out_array,
                 "an array, a device and a place for the array");
  *out_array = NULL;
  if (pestle_device_context(device) != array->lazy->context) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "device %s is of another context than the array",
                        pestle_device_name(device));
  }
  pestle_array_t *source, *copy = NULL;
  PESTLE_TRY(row_major(array, &source));
  pestle_status_t status = pestle_array_empty(device, &array->type, &copy);
  if (!status) {
    status =
        pestle_buffer_copy(source->buffer, (size_t)source->byte_offset,
                           copy->buffer, 0, pestle_type_bytes(&array->type));
  }
  pestle_array_release(source);
  if (status) {
    pestle_array_release(copy);
    copy = NULL;
  }
  *out_array = copy;
  return status;
}

pestle_status_t pestle_array_base(pestle_array_t* array,
                                  pestle_array_t** out_array) {
  PESTLE_REQUIRE(array && out_array, "an array and a place for the array");
  *out_array = NULL;
  PESTLE_TRY(pestle_array_wait(array));
  pestle_type_t type = {.dtype = PESTLE_U8,
                        .rank = 1,
                        .dims = {(int64_t)pestle_buffer_size(array->buffer)}};
  return pestle_array_from_buffer(array->buffer, &type, 0, NULL, out_array);
}

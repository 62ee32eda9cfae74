// SPDX-License-Identifier: Apache-2.0
// Tensors of the host's memory made, filled and printed (pestle/helpers.h).
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/half.h"
#include "base/mem.h"
#include "base/require.h"
#include "pestle/helpers.h"
#include "runtime/view.h"

// --- Sizes ---

static pestle_type_t type_of(const pestle_tensor_t* tensor) {
  return pestle_type_of(pestle_dtype_from_dlpack(tensor->dtype), tensor->shape,
                        tensor->ndim < 0 ? SIZE_MAX : (size_t)tensor->ndim);
}

size_t pestle_tensor_byte_size(const pestle_tensor_t* tensor) {
  return tensor ? pestle_type_byte_size(type_of(tensor)) : 0;
}

// --- Made and freed ---

// A block is the extents, then the elements on a line of their own.
static size_t head_bytes(int32_t ndim) {
  size_t bytes = (size_t)ndim * sizeof(int64_t);
  return (bytes + PESTLE_BUFFER_ALIGNMENT) & ~(PESTLE_BUFFER_ALIGNMENT - 1);
}

static pestle_status_t check_new(pestle_dtype_t dtype, const int64_t* shape,
                                 int32_t ndim, size_t* out_bytes) {
  bool empty = false;
  if (!pestle_dtype_is_stored(dtype)) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "a tensor cannot be of dtype '%s'",
                        pestle_dtype_info(dtype)->name);
  }
  if (ndim < 0 || ndim > PESTLE_MAX_RANK) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "a tensor has 0 to %d axes, not %" PRId32,
                        PESTLE_MAX_RANK, ndim);
  }
  PESTLE_REQUIRE(shape || !ndim, "a shape");
  *out_bytes = pestle_dtype_size(dtype);
  for (int32_t i = 0; i < ndim; ++i) {
    size_t extent;
    if (!pestle_checked_size(shape[i], &extent)) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "extent %" PRId32 " of a tensor is %" PRId64
                          "; give one that is not negative",
                          i, shape[i]);
    }
    empty |= !extent;
    if (extent && !pestle_checked_mul(*out_bytes, extent, out_bytes)) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "the elements of the tensor are more bytes than a "
                          "size can count");
    }
  }
  if (empty) *out_bytes = 0;
  return NULL;
}

pestle_status_t pestle_tensor_init(pestle_context_t* context,
                                   pestle_dtype_t dtype, const int64_t* shape,
                                   int32_t ndim, const void* values,
                                   pestle_tensor_t* out_tensor) {
  size_t bytes, total;
  PESTLE_REQUIRE(out_tensor, "a place for the tensor");
  memset(out_tensor, 0, sizeof(*out_tensor));
  PESTLE_REQUIRE(context, "a context");
  PESTLE_TRY(check_new(dtype, shape, ndim, &bytes));
  if (!pestle_checked_add(head_bytes(ndim), bytes, &total)) return PESTLE_OOM();
  char* block = pestle_alloc_aligned(pestle_context_allocator(context), total,
                                     PESTLE_BUFFER_ALIGNMENT);
  if (!block) return PESTLE_OOM();
  char* data = block + head_bytes(ndim);
  if (ndim) memcpy(block, shape, (size_t)ndim * sizeof(*shape));
  if (values && bytes) {
    memcpy(data, values, bytes);
  } else {
    memset(data, 0, bytes);
  }
  *out_tensor = pestle_tensor_view(data, dtype, (int64_t*)(void*)block, ndim);
  return NULL;
}

void pestle_tensor_deinit(pestle_context_t* context, pestle_tensor_t* tensor) {
  if (!context || !tensor || !tensor->data) return;
  size_t head = head_bytes(tensor->ndim);
  pestle_free_aligned(
      pestle_context_allocator(context), (char*)tensor->data - head,
      head + pestle_tensor_byte_size(tensor), PESTLE_BUFFER_ALIGNMENT);
  memset(tensor, 0, sizeof(*tensor));
}

// --- Elements ---

// The bytes of |value| as an element of |dtype|; false if it has no such number.
static bool encode(pestle_dtype_t dtype, double value, uint64_t out[2]) {
  unsigned bits = pestle_dtype_info(dtype)->bits;
  out[0] = out[1] = 0;
  if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) {
    out[0] = pestle_float_encode(dtype, value);
    return true;
  }
  if (dtype == PESTLE_C64 || dtype == PESTLE_C128) {
    out[0] = pestle_float_encode(dtype == PESTLE_C64 ? PESTLE_F32 : PESTLE_F64,
                                 value);
    return true;
  }
  bool is_signed = pestle_dtype_is(dtype, PESTLE_KIND_SIGNED);
  double limit = 1;  // 2 to the power of the bits of a magnitude, exactly
  for (unsigned i = is_signed; i < bits; ++i)
    limit *= 2;
  if (!(value >= (is_signed ? -limit : 0) && value < limit)) return false;
  if (is_signed) {
    int64_t integer = (int64_t)value;
    out[0] = (uint64_t)integer;
    return (double)integer == value;
  }
  out[0] = (uint64_t)value;
  return (double)out[0] == value;
}

pestle_status_t pestle_tensor_fill(const pestle_tensor_t* tensor,
                                   double value) {
  static const int64_t one_place[PESTLE_MAX_RANK] = {0};
  uint64_t bytes[2];
  PESTLE_REQUIRE(tensor, "a tensor");
  pestle_dtype_t dtype = pestle_dtype_from_dlpack(tensor->dtype);
  PESTLE_REQUIRE(dtype != PESTLE_NONE, "a tensor of a dtype that Pestle has");
  PESTLE_REQUIRE(tensor->device.device_type == PESTLE_DEVICE_CPU,
                 "a tensor of the host's memory; copy it there first");
  if (!pestle_tensor_byte_size(tensor)) return NULL;
  PESTLE_REQUIRE(tensor->data, "a tensor with data");
  if (!encode(dtype, value, bytes)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "%.17g is no number of %s, whose tensor is to be "
                        "filled with it",
                        value, pestle_dtype_info(dtype)->name);
  }
  pestle_view_copy(tensor->ndim, tensor->shape, pestle_dtype_size(dtype), bytes,
                   one_place, pestle_view_data(tensor), tensor->strides);
  return NULL;
}

// --- Text ---

typedef struct text_t {
  char* buffer;
  size_t capacity, length;
} text_t;

__attribute__((format(printf, 2, 3))) static void put(text_t* text,
                                                      const char* format, ...) {
  size_t room =
      text->length < text->capacity ? text->capacity - text->length : 0;
  va_list args;
  va_start(args, format);
  int n =
      vsnprintf(room ? text->buffer + text->length : NULL, room, format, args);
  va_end(args);
  if (n > 0) text->length += (size_t)n;
}

static double decode(pestle_dtype_t dtype, const char* at) {
  uint64_t bits = 0;
  memcpy(&bits, at, pestle_dtype_size(dtype));
  return pestle_float_decode(dtype, bits);
}

static void put_element(text_t* text, pestle_dtype_t dtype, const char* at) {
  int64_t integer = 0;
  if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) {
    put(text, "%.7g", decode(dtype, at));
  } else if (dtype == PESTLE_C64) {
    put(text, "%.7g%+.7gi", decode(PESTLE_F32, at), decode(PESTLE_F32, at + 4));
  } else if (dtype == PESTLE_C128) {
    put(text, "%.7g%+.7gi", decode(PESTLE_F64, at), decode(PESTLE_F64, at + 8));
  } else if (dtype == PESTLE_I1) {
    put(text, *at ? "true" : "false");
  } else {
    // Little-endian; the sign is extended from the last byte.
    unsigned size = pestle_dtype_size(dtype), unused = 64 - 8 * size;
    memcpy(&integer, at, size);
    if (pestle_dtype_is(dtype, PESTLE_KIND_SIGNED)) {
      put(text, "%" PRId64, (int64_t)((uint64_t)integer << unused) >> unused);
    } else {
      put(text, "%" PRIu64, (uint64_t)integer);
    }
  }
}

enum { MOST_PLACES = 8, END_PLACES = 3 };

// |strides| in elements; |at| is the first element of what |axis| and those behind it
// span.
static void put_axis(text_t* text, const pestle_tensor_t* t,
                     pestle_dtype_t dtype, const int64_t* strides, int32_t axis,
                     const char* at) {
  if (axis == t->ndim) {
    put_element(text, dtype, at);
    return;
  }
  int64_t extent = t->shape[axis];
  int64_t step = strides[axis] * (int64_t)pestle_dtype_size(dtype);
  put(text, "[");
  for (int64_t i = 0; i < extent; ++i) {
    if (i) put(text, ", ");
    if (extent > MOST_PLACES && i == END_PLACES) {
      put(text, ".., ");
      i = extent - END_PLACES;
    }
    put_axis(text, t, dtype, strides, axis + 1, at + i * step);
  }
  put(text, "]");
}

size_t pestle_tensor_format(const pestle_tensor_t* tensor, char* buffer,
                            size_t capacity) {
  text_t text = {buffer, buffer ? capacity : 0, 0};
  if (!tensor) {
    put(&text, "none");
    return text.length;
  }
  pestle_dtype_t dtype = pestle_dtype_from_dlpack(tensor->dtype);
  put(&text, "%s[", pestle_dtype_info(dtype)->name);
  for (int32_t i = 0; tensor->shape && i < tensor->ndim; ++i)
    put(&text, "%s%" PRId64, i ? ", " : "", tensor->shape[i]);
  put(&text, "]");
  if (tensor->device.device_type != PESTLE_DEVICE_CPU) {
    put(&text, " on device %" PRId32 ":%" PRId32, tensor->device.device_type,
        tensor->device.device_id);
  } else if (dtype != PESTLE_NONE && tensor->data &&
             pestle_tensor_byte_size(tensor)) {
    int64_t dense[PESTLE_MAX_RANK];
    const int64_t* strides = tensor->strides ? tensor->strides : dense;
    pestle_view_dense_strides(tensor->ndim, tensor->shape, dense);
    put(&text, " ");
    put_axis(&text, tensor, dtype, strides, 0, pestle_view_data(tensor));
  }
  return text.length;
}

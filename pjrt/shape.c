// SPDX-License-Identifier: Apache-2.0
#include "pjrt/shape.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "pjrt/dtype.h"
#include "pjrt/error.h"

#define INVALID(...) \
  pestle_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT, __VA_ARGS__)
#define UNIMPLEMENTED(...) \
  pestle_pjrt_error(PJRT_Error_Code_UNIMPLEMENTED, __VA_ARGS__)

PJRT_Error* pestle_pjrt_shape_make(PJRT_Buffer_Type type, const int64_t* dims,
                                   size_t rank,
                                   pestle_pjrt_shape_t* out_shape) {
  pestle_dtype_t dtype = pestle_pjrt_dtype_of(type);
  if (dtype == PESTLE_NONE) {
    return UNIMPLEMENTED("buffers of PJRT_Buffer_Type %d are not supported",
                         (int)type);
  }
  if (rank > PESTLE_MAX_RANK) {
    return UNIMPLEMENTED("a buffer of %zu axes; there may be %d", rank,
                         PESTLE_MAX_RANK);
  }
  if (rank && !dims) return INVALID("%zu extents are given at NULL", rank);
  *out_shape = (pestle_pjrt_shape_t){.type = type,
                                     .dtype = dtype,
                                     .element = pestle_dtype_size(dtype),
                                     .rank = rank};
  size_t size = out_shape->element;
  bool is_empty = false, fits = true;
  for (size_t i = 0; i < rank; ++i) {
    if (dims[i] < 0)
      return INVALID("axis %zu has extent %lld", i, (long long)dims[i]);
    out_shape->dims[i] = dims[i];
    if (!dims[i])
      is_empty = true;
    else
      fits = fits && pestle_checked_mul(size, (size_t)dims[i], &size);
  }
  if (!fits || size > PTRDIFF_MAX)
    return INVALID("the extents of a buffer make more than 2^63 bytes");
  out_shape->size = is_empty ? 0 : size;
  for (size_t i = 0; i < rank; ++i)
    out_shape->order[i] = (uint8_t)i;
  return NULL;
}

void pestle_pjrt_shape_print(const pestle_pjrt_shape_t* shape,
                             char out_text[PESTLE_PJRT_SHAPE_TEXT]) {
  size_t room = PESTLE_PJRT_SHAPE_TEXT;
  if (shape->type == PJRT_Buffer_Type_TOKEN) {
    snprintf(out_text, room, "token");
    return;
  }
  size_t at = (size_t)snprintf(out_text, room, "%s %s",
                               pestle_dtype_info(shape->dtype)->name,
                               shape->rank ? "tensor of" : "scalar");
  for (size_t i = 0; i < shape->rank; ++i) {
    at += (size_t)snprintf(out_text + at, room - at, "%s%lld", i ? " x " : " ",
                           (long long)shape->dims[i]);
  }
  if (pestle_pjrt_is_row_major(shape)) return;
  at += (size_t)snprintf(out_text + at, room - at, " in layout {");
  for (size_t i = shape->rank; i-- > 0;) {
    at += (size_t)snprintf(out_text + at, room - at, "%u%s", shape->order[i],
                           i ? "," : "}");
  }
}

void pestle_pjrt_row_major(const pestle_pjrt_shape_t* shape,
                           int64_t out_strides[PESTLE_MAX_RANK]) {
  int64_t stride = (int64_t)shape->element;
  for (size_t i = shape->rank; i-- > 0;) {
    out_strides[i] = stride;
    if (shape->dims[i]) stride *= shape->dims[i];
  }
}

void pestle_pjrt_device_strides(const pestle_pjrt_shape_t* shape,
                                int64_t out_strides[PESTLE_MAX_RANK]) {
  int64_t stride = (int64_t)shape->element;
  for (size_t i = shape->rank; i-- > 0;) {
    size_t axis = shape->order[i];
    out_strides[axis] = stride;
    if (shape->dims[axis]) stride *= shape->dims[axis];
  }
}

bool pestle_pjrt_lies_so(const pestle_pjrt_shape_t* shape,
                         const int64_t* strides) {
  int64_t dense[PESTLE_MAX_RANK];
  if (!shape->size) return true;
  pestle_pjrt_device_strides(shape, dense);
  for (size_t i = 0; i < shape->rank; ++i) {
    if (shape->dims[i] != 1 && strides[i] != dense[i]) return false;
  }
  return true;
}

bool pestle_pjrt_is_row_major(const pestle_pjrt_shape_t* shape) {
  bool is_so = true;
  for (size_t i = 0; i < shape->rank; ++i)
    is_so &= shape->order[i] == i;
  return is_so;
}

static PJRT_Error* tiled_strides(const pestle_pjrt_shape_t* shape,
                                 const PJRT_Buffer_MemoryLayout_Tiled* tiled,
                                 int64_t out_strides[PESTLE_MAX_RANK]) {
  int64_t stride = (int64_t)shape->element;
  uint32_t seen = 0;
  if (tiled->num_tiles)
    return UNIMPLEMENTED(
        "a layout with tiles; use strides, or a layout without");
  if (tiled->minor_to_major_size != shape->rank ||
      (shape->rank && !tiled->minor_to_major)) {
    return INVALID("a layout of %zu axes is for a buffer of %zu",
                   tiled->minor_to_major_size, shape->rank);
  }
  for (size_t i = 0; i < shape->rank; ++i) {
    int64_t axis = tiled->minor_to_major[i];
    if (axis < 0 || axis >= (int64_t)shape->rank || (seen >> axis & 1))
      return INVALID("a layout is no permutation of the %zu axes", shape->rank);
    seen |= UINT32_C(1) << axis;
    out_strides[axis] = stride;
    if (shape->dims[axis]) stride *= shape->dims[axis];
  }
  return NULL;
}

PJRT_Error* pestle_pjrt_layout_strides(const pestle_pjrt_shape_t* shape,
                                       const PJRT_Buffer_MemoryLayout* layout,
                                       int64_t out_strides[PESTLE_MAX_RANK]) {
  if (!layout) {
    pestle_pjrt_row_major(shape, out_strides);
    return NULL;
  }
  if (layout->type == PJRT_Buffer_MemoryLayout_Type_Tiled)
    return tiled_strides(shape, &layout->tiled, out_strides);
  if (layout->type != PJRT_Buffer_MemoryLayout_Type_Strides)
    return INVALID("a layout of type %d", (int)layout->type);
  const PJRT_Buffer_MemoryLayout_Strides* strides = &layout->strides;
  if (strides->num_byte_strides != shape->rank ||
      (shape->rank && !strides->byte_strides)) {
    return INVALID("%zu strides are for a buffer of %zu axes",
                   strides->num_byte_strides, shape->rank);
  }
  if (shape->rank) {
    memcpy(out_strides, strides->byte_strides, shape->rank * sizeof(int64_t));
  }
  return NULL;
}

// The axes by |strides|, the slowest first; false where something lies between
// elements, or two on one place.
static bool order_of(const pestle_pjrt_shape_t* shape, const int64_t* strides,
                     uint8_t* out_order) {
  for (size_t i = 0; i < shape->rank; ++i) {
    size_t at = i;
    for (; at && strides[out_order[at - 1]] < strides[i]; --at)
      out_order[at] = out_order[at - 1];
    out_order[at] = (uint8_t)i;
  }
  pestle_pjrt_shape_t other = *shape;
  memcpy(other.order, out_order, shape->rank);
  return pestle_pjrt_lies_so(&other, strides);
}

PJRT_Error* pestle_pjrt_shape_set_layout(
    pestle_pjrt_shape_t* shape, const PJRT_Buffer_MemoryLayout* layout) {
  int64_t strides[PESTLE_MAX_RANK];
  uint8_t order[PESTLE_MAX_RANK];
  if (!layout) return NULL;
  PJRT_Error* error = pestle_pjrt_layout_strides(shape, layout, strides);
  if (error) return error;
  if (layout->type == PJRT_Buffer_MemoryLayout_Type_Tiled) {
    for (size_t i = 0; i < shape->rank; ++i) {
      shape->order[shape->rank - 1 - i] =
          (uint8_t)layout->tiled.minor_to_major[i];
    }
    return NULL;
  }
  if (!order_of(shape, strides, order)) {
    return UNIMPLEMENTED(
        "a buffer whose elements do not follow each other on the device; ask "
        "for a layout without gaps, or for none");
  }
  memcpy(shape->order, order, shape->rank);
  return NULL;
}

// --- Copies ---

// The inner axis, of |count| elements that do not all follow each other.
static void copy_elements(const char* from, int64_t from_stride, char* to,
                          int64_t to_stride, int64_t count, size_t element) {
#define COPY(type)                                                    \
  for (int64_t i = 0; i < count; ++i) {                               \
    memcpy(to + i * to_stride, from + i * from_stride, sizeof(type)); \
  }                                                                   \
  break
  switch (element) {
    case 1:
      COPY(uint8_t);
    case 2:
      COPY(uint16_t);
    case 4:
      COPY(uint32_t);
    case 8:
      COPY(uint64_t);
    default:
      for (int64_t i = 0; i < count; ++i)
        memcpy(to + i * to_stride, from + i * from_stride, element);
  }
#undef COPY
}

void pestle_pjrt_copy_strided(const pestle_pjrt_shape_t* shape,
                              const void* from, const int64_t* from_strides,
                              void* to, const int64_t* to_strides) {
  int64_t index[PESTLE_MAX_RANK] = {0};
  size_t inner = shape->rank;  // axes from here on lie densely in both
  size_t run = shape->element;
  const char* source = from;
  char* target = to;
  if (!shape->size) return;
  while (inner > 0 && (shape->dims[inner - 1] == 1 ||
                       (from_strides[inner - 1] == (int64_t)run &&
                        to_strides[inner - 1] == (int64_t)run))) {
    run *= (size_t)shape->dims[--inner];
  }
  bool has_loop = inner > 0 && run == shape->element;
  if (has_loop) --inner;
  for (;;) {
    if (has_loop) {
      copy_elements(source, from_strides[inner], target, to_strides[inner],
                    shape->dims[inner], run);
    } else {
      memcpy(target, source, run);
    }
    size_t axis = inner;
    while (axis-- > 0) {
      source += from_strides[axis];
      target += to_strides[axis];
      if (++index[axis] < shape->dims[axis]) break;
      source -= from_strides[axis] * shape->dims[axis];
      target -= to_strides[axis] * shape->dims[axis];
      index[axis] = 0;
    }
    if (axis == SIZE_MAX) return;
  }
}

void pestle_pjrt_extend(pestle_dtype_t dtype, void* data, size_t size) {
  uint8_t* bytes = data;
  if (!pestle_dtype_is_sub_byte(dtype) || dtype == PESTLE_I1) return;
  for (size_t i = 0; i < size; ++i)
    bytes[i] = pestle_dtype_extend(dtype, bytes[i]);
}

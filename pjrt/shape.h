// SPDX-License-Identifier: Apache-2.0
// Shapes and host layouts, and copies between a strided host array and the dense
// row-major form that buffers have.
#ifndef PESTLE_PJRT_SHAPE_H_
#define PESTLE_PJRT_SHAPE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pestle/types.h"
#include "pjrt/abi.h"

typedef struct pestle_pjrt_shape_t {
  PJRT_Buffer_Type type;
  pestle_dtype_t dtype;
  size_t element;  // bytes
  size_t rank;
  size_t size;  // bytes, dense
  int64_t dims[PESTLE_MAX_RANK];
  // The axes as they lie on the device, the slowest first.
  uint8_t order[PESTLE_MAX_RANK];
} pestle_pjrt_shape_t;

// INVALID_ARGUMENT: an extent is negative or the whole too large; UNIMPLEMENTED:
// a type or rank that Pestle has not. It is row-major.
PJRT_Error* pestle_pjrt_shape_make(PJRT_Buffer_Type type, const int64_t* dims,
                                   size_t rank, pestle_pjrt_shape_t* out_shape);

// Enough for any shape, as "f32 tensor of 2 x 3".
enum { PESTLE_PJRT_SHAPE_TEXT = 64 + 26 * PESTLE_MAX_RANK };
void pestle_pjrt_shape_print(const pestle_pjrt_shape_t* shape,
                             char out_text[PESTLE_PJRT_SHAPE_TEXT]);

// Byte strides of dense row-major data.
void pestle_pjrt_row_major(const pestle_pjrt_shape_t* shape,
                           int64_t out_strides[PESTLE_MAX_RANK]);
// Byte strides of the elements where they lie on the device.
void pestle_pjrt_device_strides(const pestle_pjrt_shape_t* shape,
                                int64_t out_strides[PESTLE_MAX_RANK]);
// Whether |strides| are those, but for axes where they do not matter.
bool pestle_pjrt_lies_so(const pestle_pjrt_shape_t* shape,
                         const int64_t* strides);
bool pestle_pjrt_is_row_major(const pestle_pjrt_shape_t* shape);
// Takes over the order that |layout| (NULL: row-major) has. UNIMPLEMENTED: tiles, or
// strides that leave gaps.
PJRT_Error* pestle_pjrt_shape_set_layout(
    pestle_pjrt_shape_t* shape, const PJRT_Buffer_MemoryLayout* layout);
// The byte strides that |layout| (NULL: row-major) stands for. UNIMPLEMENTED:
// tiles; INVALID_ARGUMENT: it is not for this rank.
PJRT_Error* pestle_pjrt_layout_strides(const pestle_pjrt_shape_t* shape,
                                       const PJRT_Buffer_MemoryLayout* layout,
                                       int64_t out_strides[PESTLE_MAX_RANK]);

// Copies from |from| to |to|; |strides| in bytes, of any sign. Neither overlaps.
void pestle_pjrt_copy_strided(const pestle_pjrt_shape_t* shape,
                              const void* from, const int64_t* from_strides,
                              void* to, const int64_t* to_strides);

// Extends |size| elements of fewer than 8 bits, of which the upper bits of each byte
// may hold anything, to what Pestle's tensors have there. Other dtypes stay.
void pestle_pjrt_extend(pestle_dtype_t dtype, void* data, size_t size);

#endif  // PESTLE_PJRT_SHAPE_H_

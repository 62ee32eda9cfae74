// SPDX-License-Identifier: Apache-2.0
// A borrowed view of tensor memory, field for field DLPack's DLTensor, so that
// a DLTensor* may be passed where a pestle_tensor_t* is asked for.
#ifndef PESTLE_TENSOR_H_
#define PESTLE_TENSOR_H_

#include <stdint.h>

#include "pestle/export.h"
#include "pestle/types.h"

PESTLE_EXTERN_C_BEGIN

// Frozen: DLDevice.
typedef struct pestle_dl_device_t {
  int32_t device_type;  // pestle_device_type_t
  int32_t device_id;
} pestle_dl_device_t;

// Frozen: DLDataType. |lanes| must be 1.
typedef struct pestle_dl_dtype_t {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} pestle_dl_dtype_t;

// Frozen: DLTensor. |strides| counts elements, of any sign, 0 too; NULL means
// row-major contiguous. The first element lies at (char*)data + byte_offset.
typedef struct pestle_tensor_t {
  void* data;
  pestle_dl_device_t device;
  int32_t ndim;
  pestle_dl_dtype_t dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
} pestle_tensor_t;

// The dtype of a DLPack triple, or NONE when Pestle has none like it.
PESTLE_API pestle_dtype_t pestle_dtype_from_dlpack(pestle_dl_dtype_t dtype);
// The DLPack triple of |dtype|, of NONE when it is out of range.
PESTLE_API pestle_dl_dtype_t pestle_dtype_to_dlpack(pestle_dtype_t dtype);

PESTLE_EXTERN_C_END

#endif  // PESTLE_TENSOR_H_

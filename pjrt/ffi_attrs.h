// SPDX-License-Identifier: Apache-2.0
// The attributes of a foreign function's call, from the text that a custom call has.
#ifndef PESTLE_PJRT_FFI_ATTRS_H_
#define PESTLE_PJRT_FFI_ATTRS_H_

#include "base/arena.h"
#include "pestle/status.h"
#include "pjrt/ffi_abi.h"

// The axes of a tensor as they lie, the slowest first.
typedef struct pestle_ffi_order_t {
  size_t rank;
  const int64_t* axes;
} pestle_ffi_order_t;

typedef struct pestle_ffi_attrs_t {
  XLA_FFI_Attrs attrs;
  // Of operands, then of results; NULL: all tensors are row-major.
  const pestle_ffi_order_t* orders;
  size_t order_count;
} pestle_ffi_attrs_t;

// The key under which a dictionary says how tensors lie: no attribute of the
// function's.
#define PESTLE_FFI_LAYOUTS "pestle.layouts"

// XLA's number of |dtype|; INVALID where its buffers lie otherwise than Pestle's.
XLA_FFI_DataType pestle_ffi_dtype(int dtype);

// Reads |dictionary| ("{eps = 1.0e-05 : f32}", or "" for none) into |arena|.
// MALFORMED, UNSUPPORTED: the sentence names the attribute.
PESTLE_NODISCARD pestle_status_t
pestle_ffi_attrs_read(const char* dictionary, pestle_arena_t* arena,
                      pestle_ffi_attrs_t* out_attrs);

#endif  // PESTLE_PJRT_FFI_ATTRS_H_

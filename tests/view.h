// SPDX-License-Identifier: Apache-2.0
// A tensor over a test's own host memory.
#ifndef PESTLE_TESTS_VIEW_H_
#define PESTLE_TESTS_VIEW_H_

#include "pestle/tensor.h"

// |strides| NULL: dense.
static inline pestle_tensor_t test_view(void* data, pestle_dtype_t dtype,
                                        int32_t rank, int64_t* dims,
                                        int64_t* strides) {
  return (pestle_tensor_t){.data = data,
                           .device = {PESTLE_DEVICE_CPU, 0},
                           .ndim = rank,
                           .dtype = pestle_dtype_to_dlpack(dtype),
                           .shape = dims,
                           .strides = strides};
}

#endif  // PESTLE_TESTS_VIEW_H_

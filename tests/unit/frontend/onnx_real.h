// SPDX-License-Identifier: Apache-2.0
// Results of which only a run tells how much is real.
#ifndef PESTLE_TESTS_UNIT_FRONTEND_ONNX_REAL_H_
#define PESTLE_TESTS_UNIT_FRONTEND_ONNX_REAL_H_

#include "onnx_test.h"

// Keeps of the tensor |data| of |type| its first |dims| alone, in place.
static inline void real_cut(pestle_type_t* type, const int64_t* dims,
                            uint8_t* data) {
  size_t size = pestle_dtype_size(type->dtype);
  pestle_type_t cut = pestle_type_make(type->dtype, type->rank, dims);
  int64_t at[PESTLE_MAX_RANK] = {0};
  for (int64_t n = 0; n < pestle_type_count(&cut); ++n) {
    int64_t from = 0;
    for (int32_t k = 0; k < cut.rank; ++k)
      from = from * type->dims[k] + at[k];
    memmove(data + (size_t)n * size, data + (size_t)from * size, size);
    for (int32_t k = cut.rank; k-- > 0 && ++at[k] == dims[k];)
      at[k] = 0;
  }
  *type = cut;
}

// The same of those of the |count| |results| of |entry| whose extents others say, which
// come last. How many are left; 0: the run has failed.
static inline size_t real_results(const pestle_function_t* entry,
                                  pestle_type_t* types, void* const* results,
                                  size_t count) {
  size_t own = count;
  for (size_t i = count; i-- > 0;) {
    int64_t of = pestle_function_shape_of(entry, i);
    if (of < 0) continue;
    // A run that fails says so by an extent that is none.
    const int64_t* dims = results[i];
    for (int32_t k = 0; k < types[of].rank; ++k) {
      if (dims[k] < 0 || dims[k] > types[of].dims[k]) return 0;
    }
    real_cut(&types[of], results[i], results[of]);
    own = i;
  }
  return own;
}

#endif  // PESTLE_TESTS_UNIT_FRONTEND_ONNX_REAL_H_

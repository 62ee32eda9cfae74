// SPDX-License-Identifier: Apache-2.0
// What tests over the corpora do with a module that was read and has extents that only
// a caller says: it is read again for extents of 3 and arguments whose elements are 3.
#ifndef PESTLE_TESTS_UNIT_FRONTEND_CORPUS_H_
#define PESTLE_TESTS_UNIT_FRONTEND_CORPUS_H_

#include "ir/graph.h"
#include "test.h"

enum { CORPUS_ARGUMENTS = 8, CORPUS_ELEMENTS = 1024, CORPUS_EXTENT = 3 };

// OK with NULL where all extents are known, or there are more arguments than that.
static inline pestle_status_t corpus_specialize(pestle_module_t* module,
                                                pestle_module_t** out_module) {
  static _Alignas(16) char threes[CORPUS_ARGUMENTS][CORPUS_ELEMENTS * 16];
  pestle_type_t types[CORPUS_ARGUMENTS];
  pestle_tensor_t views[CORPUS_ARGUMENTS];
  pestle_function_t* entry = pestle_module_entry(module);
  size_t count = entry ? pestle_function_argument_count(entry) : 0;
  bool is_known = true;
  *out_module = NULL;
  for (size_t i = 0; i < count && i < CORPUS_ARGUMENTS; ++i) {
    pestle_type_t* type = &types[i];
    *type = pestle_value_type(pestle_function_argument(entry, i));
    for (int k = 0; k < type->rank; ++k) {
      if (type->dims[k] != PESTLE_DIM_DYNAMIC) continue;
      type->dims[k] = CORPUS_EXTENT;
      is_known = false;
    }
    size_t size = pestle_dtype_size(type->dtype);
    int64_t elements = pestle_type_count(type);
    views[i] = (pestle_tensor_t){.device = {PESTLE_DEVICE_CPU, 0},
                                 .ndim = type->rank,
                                 .dtype = pestle_dtype_to_dlpack(type->dtype),
                                 .shape = type->dims};
    if (elements > CORPUS_ELEMENTS) continue;
    memset(threes[i], 0, sizeof(threes[i]));
    for (int64_t k = 0; k < elements; ++k)
      threes[i][(size_t)k * size] = CORPUS_EXTENT;
    views[i].data = threes[i];
  }
  if (is_known || count > CORPUS_ARGUMENTS) return NULL;
  return pestle_module_specialize_values(module, views, count, out_module);
}

#endif  // PESTLE_TESTS_UNIT_FRONTEND_CORPUS_H_

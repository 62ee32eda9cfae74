// SPDX-License-Identifier: Apache-2.0
// Random words as JAX asks for them on GPUs, and memory that nobody has filled.
#include "base/mem.h"
#include "ir/built.h"
#include "ir/composite.h"

// Two keys and two counters of words, in one shape; two words of each.
void pestle_built_threefry(pestle_built_t* b) {
  pv_t *key[2], *x[2];
  for (size_t i = 0; i < 4; ++i) {
    const pestle_type_t* type = pestle_built_type(b, i);
    if (type->dtype == PESTLE_U32 && pestle_type_is_static(type) &&
        pestle_type_equal(type, pestle_built_type(b, 0))) {
      continue;
    }
    pestle_built_fail(b, PESTLE_STATUS_MALFORMED,
                      "it takes four tensors of ui32 of one shape");
    return;
  }
  for (size_t i = 0; i < 2; ++i) {
    key[i] = b->operands[i];
    x[i] = b->operands[2 + i];
  }
  pestle_threefry(&b->f, x, key);
  b->results[0] = x[0];
  b->results[1] = x[1];
}

// What has no values yet has zeros.
void pestle_built_zeros(pestle_built_t* b) {
  if (!pestle_type_is_static(&b->types[0])) {
    pestle_built_fail(b, PESTLE_STATUS_UNSUPPORTED,
                      "memory of unknown extents is not supported");
    return;
  }
  b->results[0] = pestle_f_number(&b->f, &b->types[0], 0);
}

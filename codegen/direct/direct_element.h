// SPDX-License-Identifier: Apache-2.0
// Elements of values within a group, where a kernel wants one here and there: what makes them
// are views and elementwise ops of the group's body, which are computed anew for each.
#ifndef PESTLE_CODEGEN_DIRECT_DIRECT_ELEMENT_H_
#define PESTLE_CODEGEN_DIRECT_DIRECT_ELEMENT_H_

#include "codegen/direct/direct.h"

enum { PESTLE_DIRECT_MOST_ARGUMENTS = 64 };

typedef struct pestle_direct_elements_t {
  pestle_direct_t* d;
  uint32_t buffers[PESTLE_DIRECT_MOST_ARGUMENTS];  // of the body's arguments
  bool has[PESTLE_DIRECT_MOST_ARGUMENTS];
} pestle_direct_elements_t;

// The element of |value| at |at|, an index for each of its dims, which lie within.
pk_t pestle_direct_element(pestle_direct_elements_t* e,
                           const pestle_value_t* value, const pk_t* at);

#endif  // PESTLE_CODEGEN_DIRECT_DIRECT_ELEMENT_H_

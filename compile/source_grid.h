// SPDX-License-Identifier: Apache-2.0
// How many threads a source has: integers and expressions over extents, which are
// known when a plan is made.
//
//   "256", "x.size", "ceil(x.size / 4)", "x.shape[0] * N", "max(x.size, y.size)"
#ifndef PESTLE_COMPILE_SOURCE_GRID_H_
#define PESTLE_COMPILE_SOURCE_GRID_H_

#include "base/str.h"
#include "pestle/graph.h"

// Names that an expression may use: tensors, with types, and numbers.
typedef struct pestle_grid_name_t {
  const char* name;
  const pestle_type_t* type;  // NULL: |value|
  int64_t value;
} pestle_grid_name_t;

// INVALID_ARGUMENT says what in |text| is not understood, or that it is no integer
// from 0 to 2^31 - 1.
PESTLE_NODISCARD pestle_status_t
pestle_grid_evaluate(const char* text, const pestle_grid_name_t* names,
                     size_t count, int64_t* out_value);

#endif  // PESTLE_COMPILE_SOURCE_GRID_H_

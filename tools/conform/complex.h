// SPDX-License-Identifier: Apache-2.0
// One scalar row on complex numbers: a module, inputs of all orders, and the
// distance of a result from the reference's, which computes in long double.
// Shared by the tests of codegen/ and the conformance kit.
#ifndef PESTLE_TOOLS_CONFORM_COMPLEX_H_
#define PESTLE_TOOLS_CONFORM_COMPLEX_H_

#include <math.h>
#include <stdlib.h>

#include "ir/graph.h"
#include "ir/ref/ref.h"
#include "pestle/pestle.h"
#include "tools/conform/check.h"

typedef struct complex_case_t {
  pestle_op_t op;
  double steps;  // see complex.def
  double reach;
} complex_case_t;

static const complex_case_t complex_cases[] = {
#define PESTLE_COMPLEX(NAME, RESULT, STEPS, REACH, expr) \
  {PESTLE_OP_##NAME, STEPS, REACH},
#include "ir/complex.def"
};

// --- Data ---

static inline double complex_random(uint32_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 17;
  *state ^= *state << 5;
  return (double)*state / 2147483648.0 - 1;
}

// Sizes of all orders up to the reach; zeros of both signs, parts alone, whole
// numbers.
static inline double complex_value(uint32_t* state, double reach) {
  static const double edges[] = {0.0, -0.0, 1, -1, 0.5, -2};
  double pick = complex_random(state), value = complex_random(state);
  if (pick > 0.5) return edges[(size_t)(fabs(value) * 5.99)];
  if (pick > 0) return value * reach;
  return value * pow(2, -20 * fabs(complex_random(state)));
}

static inline void complex_put(pestle_dtype_t part, void* data, size_t at,
                               double value) {
  if (part == PESTLE_F32) {
    ((float*)data)[at] = (float)value;
  } else {
    ((double*)data)[at] = value;
  }
}

static inline double complex_get(pestle_dtype_t part, const void* data,
                                 size_t at) {
  return part == PESTLE_F32 ? (double)((const float*)data)[at]
                            : ((const double*)data)[at];
}

enum { COMPLEX_COUNT = 4099 };

static inline void* complex_data(pestle_dtype_t part, double reach,
                                 uint32_t seed) {
  void* data = aligned_alloc(64, (COMPLEX_COUNT * 16 + 127) / 64 * 64);
  for (size_t i = 0; i < 2 * COMPLEX_COUNT; ++i)
    complex_put(part, data, i, complex_value(&seed, reach));
  return data;
}

// --- One op ---

static inline pestle_module_t* complex_module(pestle_context_t* context,
                                              const complex_case_t* c,
                                              pestle_dtype_t dtype) {
  pestle_module_t* module;
  pestle_function_t* f;
  uint32_t n = pestle_op_info(c->op)->operands;
  pestle_type_t type = pestle_type_make(dtype, 1, (int64_t[]){COMPLEX_COUNT});
  assert_ok(pestle_module_create(context, "m", &module));
  assert_ok(pestle_module_add_function(
      module, "main", (pestle_type_t[]){type, type}, NULL, n, &f));
  pestle_builder_t b = pestle_builder_make(f);
  pestle_value_t* args[2] = {pestle_function_argument(f, 0),
                             pestle_function_argument(f, n - 1)};
  pestle_node_t* node;
  pestle_node_spec_t spec = {.op = c->op, .operands = args, .operand_count = n};
  assert_ok(pestle_node_create(&b, &spec, &node));
  pestle_value_t* y = &node->results[0];
  assert_ok(pestle_op_return(&b, &y, 1, NULL));
  return module;
}

// The largest complex_distance in roundoffs of the right result's size.
static inline double complex_distance(pestle_dtype_t dtype, const void* want,
                                      const void* got, size_t* at) {
  pestle_dtype_t part = pestle_dtype_part(dtype);
  size_t n = part == dtype ? 1 : 2;
  double u = part == PESTLE_F32 ? 0x1p-24 : 0x1p-53, worst = 0;
  double least = part == PESTLE_F32 ? 0x1p-126 : 0x1p-1022;
  for (size_t i = 0; i < COMPLEX_COUNT; ++i) {
    double size = 0, off = 0;
    for (size_t k = 0; k < n; ++k) {
      double w = complex_get(part, want, n * i + k),
             g = complex_get(part, got, n * i + k);
      if (w == g || (isnan(w) && isnan(g))) continue;
      off = fmax(off, isfinite(w) && isfinite(g) ? fabs(w - g) : INFINITY);
    }
    for (size_t k = 0; k < n; ++k)
      size = fmax(size, fabs(complex_get(part, want, n * i + k)));
    if (off == 0) continue;
    // Below the smallest normal number steps are no smaller.
    double steps = off / (u * (isfinite(size) ? fmax(size, least) : least));
    if (steps > worst) {
      worst = steps;
      *at = i;
    }
  }
  return worst;
}

#endif  // PESTLE_TOOLS_CONFORM_COMPLEX_H_

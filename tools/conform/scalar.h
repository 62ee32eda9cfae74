// SPDX-License-Identifier: Apache-2.0
// One scalar row on one dtype: a module, inputs with the values at which ops have
// edges, and the distance of a result from the reference's. Rows are expanded
// from scalar.def. Shared by the tests of codegen/ and the conformance kit.
#ifndef PESTLE_TOOLS_CONFORM_SCALAR_H_
#define PESTLE_TOOLS_CONFORM_SCALAR_H_

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/half.h"
#include "ir/accuracy.h"
#include "ir/graph.h"
#include "ir/ref/ref.h"
#include "pestle/pestle.h"
#include "tools/conform/check.h"

typedef struct scalar_shape_t {
  int32_t rank;
  int64_t dims[4];
} scalar_shape_t;

static const scalar_shape_t scalar_shapes[] = {
    {0, {0}}, {1, {1}}, {1, {0}}, {1, {17}}, {3, {3, 1, 7}}, {2, {31, 67}},
};

// --- Data ---

// Values where ops have edges, then pseudo-random ones.
static const double scalar_edges[] = {
    0.0,        -0.0,      1.0,   -1.0,  0.5,    -0.5,   1.5,    2.5,
    -2.5,       3.0,       -7.0,  10.0,  88.0,   -88.0,  104.0,  -104.0,
    1e-3,       1e10,      -1e10, 1e-40, -1e-40, 1e-45,  3.4e38, -3.4e38,
    INFINITY,   -INFINITY, NAN,   0.25,  0.75,   100.25, -0.99,  3.14159274,
    1.57079637, 6.0,       31.0,  64.0,
};
enum { SCALAR_EDGES = sizeof(scalar_edges) / sizeof(scalar_edges[0]) };

static inline uint64_t scalar_bits(pestle_dtype_t dtype, int64_t i,
                                   uint32_t seed) {
  uint32_t r = (uint32_t)i * 2654435761u + seed * 40503u;
  r ^= r >> 15;
  r *= 2246822519u;
  r ^= r >> 13;
  double v = ((double)r / 4294967296.0 * 2 - 1) * (r & 1 ? 4.0 : 100.0);
  bool edge = (i + (int64_t)seed * 5) % 3 == 0;
  if (edge)
    v = scalar_edges[(uint64_t)(i / 3 * (seed + 1) + seed) % SCALAR_EDGES];
  if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) {
    return pestle_float_encode(dtype, v);
  }
  if (dtype == PESTLE_I1) return r >> 9 & 1;
  const pestle_dtype_info_t* info = pestle_dtype_info(dtype);
  uint64_t bits = edge ? (uint64_t)(r & 1 ? 0 : -1) << (r % info->bits)
                       : (uint64_t)(int64_t)(isfinite(v) ? v : 7);
  if (pestle_dtype_is_sub_byte(dtype)) {
    bits = pestle_dtype_extend(dtype, (uint8_t)bits);
  }
  return bits;
}

// A complex number is two elements of its part.
static inline void* scalar_data(const pestle_type_t* type, uint32_t seed) {
  pestle_dtype_t part = pestle_dtype_part(type->dtype);
  size_t n = pestle_type_bytes(type), size = pestle_dtype_size(part);
  char* data = aligned_alloc(64, (n + 127) / 64 * 64);
  for (size_t i = 0; i * size < n; ++i) {
    uint64_t bits = scalar_bits(part, (int64_t)i, seed);
    memcpy(data + i * size, &bits, size);
  }
  return data;
}

// Steps between two values of |dtype|; 0 for two NaNs.
static inline double scalar_ulps(pestle_dtype_t dtype, uint64_t a, uint64_t b) {
  double x = pestle_float_decode(dtype, a), y = pestle_float_decode(dtype, b);
  if (isnan(x) || isnan(y)) return isnan(x) && isnan(y) ? 0 : INFINITY;
  if (x == y) return signbit(x) == signbit(y) ? 0 : x == 0 ? 0.5 : 0;
  if (isinf(x) || isinf(y)) {
    // One step beyond the largest finite value counts as one.
    double big = isinf(x) ? y : x;
    return fabs(big) >= 3.4e38 ? 1 : INFINITY;
  }
  unsigned bits = pestle_dtype_info(dtype)->bits;
  uint64_t sign = 1ull << (bits - 1), mask = sign - 1;
  // As integers: those of f64 are no f64.
  int64_t p = (int64_t)(a & mask), q = (int64_t)(b & mask);
  if (a & sign) p = -p;
  if (b & sign) q = -q;
  return fabs((double)(p - q));
}

// --- One op ---

typedef struct op_case_t {
  pestle_op_t op;
  pestle_dtype_t dtype;
} op_case_t;

static inline pestle_type_t scalar_operand(const op_case_t* c,
                                           const scalar_shape_t* s,
                                           uint32_t operand) {
  pestle_dtype_t dtype = c->dtype;
  if (c->op == PESTLE_OP_SELECT && operand == 0) dtype = PESTLE_I1;
  return pestle_type_make(dtype, s->rank, s->dims);
}

static inline pestle_module_t* scalar_module(pestle_context_t* context,
                                             const op_case_t* c,
                                             const scalar_shape_t* s) {
  pestle_module_t* module;
  pestle_function_t* f;
  uint32_t n = pestle_op_info(c->op)->operands;
  pestle_type_t types[3];
  for (uint32_t i = 0; i < n; ++i)
    types[i] = scalar_operand(c, s, i);
  assert_ok(pestle_module_create(context, "m", &module));
  assert_ok(pestle_module_add_function(module, "main", types, NULL, n, &f));
  pestle_builder_t b = pestle_builder_make(f);
  pestle_value_t* args[3];
  for (uint32_t i = 0; i < n; ++i)
    args[i] = pestle_function_argument(f, i);
  pestle_node_t* node;
  pestle_node_spec_t spec = {.op = c->op, .operands = args, .operand_count = n};
  assert_ok(pestle_node_create(&b, &spec, &node));
  pestle_value_t* y = &node->results[0];
  assert_ok(pestle_op_return(&b, &y, 1, NULL));
  return module;
}

static inline double scalar_allowed(const op_case_t* c) {
  if (!pestle_dtype_is(c->dtype, PESTLE_KIND_FLOAT)) return 0;
  return pestle_accuracy_steps(c->op, c->dtype);
}

static inline double scalar_compare(const pestle_type_t* type, const char* want,
                                    const char* got, int64_t* out_at) {
  pestle_dtype_t part = pestle_dtype_part(type->dtype);
  size_t size = pestle_dtype_size(part), bytes = pestle_type_bytes(type);
  double worst = 0;
  for (size_t i = 0; i * size < bytes; ++i) {
    uint64_t w = 0, g = 0;
    memcpy(&w, want + i * size, size);
    memcpy(&g, got + i * size, size);
    double d = pestle_dtype_is(part, PESTLE_KIND_FLOAT)
                   ? scalar_ulps(part, w, g)
               : w != g ? INFINITY
                        : 0;
    if (d > worst) {
      worst = d;
      *out_at = (int64_t)i;
    }
  }
  return worst;
}

#endif  // PESTLE_TOOLS_CONFORM_SCALAR_H_

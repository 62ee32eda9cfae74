// SPDX-License-Identifier: Apache-2.0
// Random instances of transforms and of the generators of random numbers.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "random/random.h"

static const pestle_type_t* type_at(const value_t* v) {
  return v->value->type;
}

// --- fft ---

// Real numbers give half of a spectrum, complex ones a whole one or, as such a
// half, real numbers. An even or an odd length may have made the half.
value_t* row_fft(graph_t* g, pestle_dtype_t dtype) {
  static const char* const kinds[] = {"FFT", "IFFT", "IRFFT"};
  const char* kind = is_complex(dtype) ? kinds[pick(g, 3)] : "RFFT";
  value_t* x = any_of(g, dtype, one_in(g, 2), 1);
  const pestle_type_t* type = type_at(x);
  int32_t most = type->rank < 3 ? type->rank : 3;
  int32_t axes = 1 + (int32_t)pick(g, (uint32_t)most);
  int64_t lengths[3];
  for (int32_t i = 0; i < axes; ++i)
    lengths[i] = type->dims[type->rank - axes + i];
  int64_t* last = &lengths[axes - 1];
  if (!strcmp(kind, "IRFFT") && *last)
    *last = *last == 1 ? 1 : 2 * (*last - 1) + pick(g, 2);
  spec_t s = SPEC(FFT);
  spec_operand(&s, x);
  spec_str(&s, PESTLE_ATTR_fft_type, kind);
  spec_i64s(&s, PESTLE_ATTR_fft_length, lengths, axes);
  return add(g, &s, NULL);
}

// --- rng_bit_generator ---

value_t* row_rng_bit_generator(graph_t* g, pestle_dtype_t dtype) {
  static const char* const algorithms[] = {"THREE_FRY", "PHILOX", "DEFAULT"};
  uint32_t how = pick(g, 3);
  int64_t words = how == 1 ? 2 + pick(g, 2) : 2;
  spec_t s = SPEC(RNG_BIT_GENERATOR);
  pestle_type_t state = type_of(PESTLE_U64, 1, &words);
  spec_operand(&s, fresh(g, state, FILL_EDGES, 0));
  spec_str(&s, PESTLE_ATTR_rng_algorithm, algorithms[how]);
  spec_type(&s, PESTLE_ATTR_output_type, pick_shape(g, dtype));
  value_t* results[2];
  return add(g, &s, results) ? results[1] : NULL;
}

// --- rng ---

// Which numbers come is not said, but where they lie is: [1, 3), or a mean of 1
// and a deviation of 3, of which no number is 12 off, as 2^-53 is 8. The op's
// own result has no value here, what is asked of it is true.
value_t* row_rng(graph_t* g, pestle_dtype_t dtype) {
  // Without negative numbers none is normally distributed.
  bool normal = is_float(dtype) && dtype != PESTLE_F8E8M0FNU && one_in(g, 2);
  pestle_type_t type = pick_shape(g, dtype), flags = type;
  flags.dtype = PESTLE_I1;
  pestle_type_t list = type_of(PESTLE_I64, 1, (int64_t[]){type.rank});
  pestle_constant_attrs_t dims = {
      sizeof(dims), {list, type.dims, 8 * (size_t)type.rank, false}};
  pestle_value_t *shape, *y, *low, *high;
  expect(g, pestle_op_constant(&g->b, &dims, &shape));
  pestle_rng_attrs_t attrs = {sizeof(attrs), normal ? "NORMAL" : "UNIFORM"};
  // Those of an i2 end at 1.
  double first = dtype == PESTLE_I2 ? -2 : 1;
  double last = dtype == PESTLE_I2 ? 1 : 3;
  pestle_value_t* a = splat(g, scalar_of(dtype), first)->value;
  pestle_value_t* b = splat(g, scalar_of(dtype), last)->value;
  expect(g, pestle_op_rng(&g->b, a, b, shape, &attrs, type, &y));
  // f8 rounds 37 to 36 or 40.
  double reach = is_float(dtype) ? fmin(40, pestle_float_max(dtype)) : 40;
  double least = normal ? -reach : first, most = normal ? reach : last;
  pestle_value_t* bounds[] = {splat(g, type, least)->value,
                              splat(g, type, most)->value};
  low = raw(g, &g->b, PESTLE_OP_GE, y, bounds[0], NULL);
  high =
      raw(g, &g->b, normal ? PESTLE_OP_LE : PESTLE_OP_LT, y, bounds[1], NULL);
  value_t* v = make_value(g, raw(g, &g->b, PESTLE_OP_AND, low, high, NULL));
  memset(v->data, 1, pestle_type_bytes(&flags));
  if (g->counts) ++g->counts->by_op[PESTLE_OP_RNG][dtype];
  g->ops += 4;
  keep(g, v);
  return v;
}

// SPDX-License-Identifier: Apache-2.0
// map, whose region is interpreted for each element, reduce_precision and
// batch_norm_inference.
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/half.h"
#include "base/mem.h"
#include "ir/ref/ref_internal.h"

static pestle_status_t map_elements(const pestle_ref_call_t* call,
                                    const void** arguments) {
  int64_t count = pestle_type_count(pestle_ref_result_type(call, 0));
  size_t size = pestle_dtype_size(pestle_ref_result_type(call, 0)->dtype);
  for (int64_t at = 0; at < count; ++at) {
    for (uint32_t i = 0; i < call->node->operand_count; ++i) {
      pestle_dtype_t dtype = pestle_ref_operand_type(call, i)->dtype;
      arguments[i] = (const char*)call->operands[i] +
                     (size_t)at * pestle_dtype_size(dtype);
    }
    uint64_t value[2];
    void* results[] = {value};
    PESTLE_TRY(
        pestle_ref_run(call->interp, call->bodies[0], arguments, results));
    memcpy((char*)call->results[0] + (size_t)at * size, value, size);
  }
  return NULL;
}

pestle_status_t pestle_ref_map(const pestle_ref_call_t* call) {
  pestle_arena_t arena;
  pestle_arena_init(call->allocator, &arena);
  const void** arguments =
      PESTLE_ARENA_ARRAY(&arena, const void*, call->node->operand_count);
  pestle_status_t status =
      arguments ? map_elements(call, arguments) : PESTLE_OOM();
  pestle_arena_deinit(&arena);
  return status;
}

// What is computed in has numbers of this many bits; below 2^|least| they are as
// far apart as there.
typedef struct format_t {
  int exponent_bits, mantissa_bits, least;
} format_t;

// f8 is computed in f32.
static format_t format_of(pestle_dtype_t dtype) {
  const pestle_float_format_t* f =
      pestle_float_format(pestle_dtype_size(dtype) == 1 ? PESTLE_F32 : dtype);
  return (format_t){f->exponent_bits, f->mantissa_bits, 1 - f->bias};
}

// Rounds a finite |x| to |mantissa_bits|, ties to the even one. Of no bits at all
// the exponent is what is even: 1.5 * 2^e goes up where e is, as XLA has it.
static double round_mantissa(double x, int mantissa_bits, int least) {
  int exponent = ilogb(x);
  if (exponent < least) exponent = least;
  int unit = exponent - mantissa_bits;
  double scaled = ldexp(x, -unit);
  if (!mantissa_bits && fabs(scaled) == 1.5) {
    return ldexp(copysign(exponent % 2 ? 1 : 2, x), unit);
  }
  return ldexp(rint(scaled), unit);
}

static double reduced(double x, int exponent_bits, int mantissa_bits,
                      const format_t* own) {
  if (isnan(x)) return mantissa_bits ? x : copysign(INFINITY, x);
  if (isinf(x) || x == 0) return x;
  if (mantissa_bits < own->mantissa_bits) {
    x = round_mantissa(x, mantissa_bits, own->least);
  }
  if (exponent_bits >= own->exponent_bits) return x;
  int reach = 1 << (exponent_bits - 1);
  if (fabs(x) >= ldexp(1, reach)) return copysign(INFINITY, x);
  // What is below the smallest normal number is 0.
  return fabs(x) < ldexp(1, 2 - reach) ? copysign(0, x) : x;
}

pestle_status_t pestle_ref_reduce_precision(const pestle_ref_call_t* call) {
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  int exponent_bits = (int)PESTLE_NODE_I64(call->node, exponent_bits);
  int mantissa_bits = (int)PESTLE_NODE_I64(call->node, mantissa_bits);
  size_t size = pestle_dtype_size(type->dtype);
  format_t own = format_of(type->dtype);
  for (int64_t i = 0; i < pestle_type_count(type); ++i) {
    uint64_t bits = 0;
    memcpy(&bits, (const char*)call->operands[0] + (size_t)i * size, size);
    double x = pestle_float_decode(type->dtype, bits);
    bits = pestle_float_encode(type->dtype,
                               reduced(x, exponent_bits, mantissa_bits, &own));
    memcpy((char*)call->results[0] + (size_t)i * size, &bits, size);
  }
  return NULL;
}

// Element |at| of float operand |index|.
static double number(const pestle_ref_call_t* call, size_t index, int64_t at) {
  pestle_dtype_t dtype = pestle_ref_operand_type(call, index)->dtype;
  size_t size = pestle_dtype_size(dtype);
  uint64_t bits = 0;
  memcpy(&bits, (const char*)call->operands[index] + (size_t)at * size, size);
  return pestle_float_decode(dtype, bits);
}

pestle_status_t pestle_ref_batch_norm_inference(const pestle_ref_call_t* call) {
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  int64_t axis = PESTLE_NODE_I64(call->node, feature_index), inner = 1;
  double epsilon = PESTLE_NODE_F64(call->node, epsilon);
  size_t size = pestle_dtype_size(type->dtype);
  for (int64_t i = axis + 1; i < type->rank; ++i)
    inner *= type->dims[i];
  for (int64_t i = 0; i < pestle_type_count(type); ++i) {
    int64_t f = i / inner % type->dims[axis];
    double y = (number(call, 0, i) - number(call, 3, f)) /
               sqrt(number(call, 4, f) + epsilon);
    y = y * number(call, 1, f) + number(call, 2, f);
    uint64_t bits = pestle_float_encode(type->dtype, y);
    memcpy((char*)call->results[0] + (size_t)i * size, &bits, size);
  }
  return NULL;
}

// SPDX-License-Identifier: Apache-2.0
// Elementwise arithmetic. Ops that StableHLO lacks are written as the formula
// that keeps its digits (sinh by expm1, asin by atan2).
#include <math.h>

#include "frontend/onnx/ops.h"

// Before opset 7 an operand was broadcast only when |broadcast| was set, and
// then lay at |axis| of the other one.
pestle_value_t* pestle_onnx_second_operand(pestle_onnx_call_t* call) {
  pestle_value_t* a = pestle_onnx_input(call, 0);
  pestle_value_t* b = pestle_onnx_input(call, 1);
  if (call->opset >= 7 || !pestle_onnx_has(call, "axis")) return b;
  int64_t axis =
      pestle_onnx_axis(call, pestle_onnx_int(call, "axis", 0), rank_of(a));
  int64_t rank = rank_of(a) - axis;
  if (call->f.status || rank_of(b) > rank) return b;
  int64_t dims[PESTLE_MAX_RANK];
  for (int64_t i = 0; i < rank; ++i)
    dims[i] = pestle_onnx_dim(b, i);
  return pestle_f_reshape(&call->f, b, (int32_t)rank, dims);
}

static void binary(pestle_onnx_call_t* call, pestle_op_t op) {
  pestle_value_t* b = pestle_onnx_second_operand(call);
  call->outputs[0] = pestle_f_binary(&call->f, op, call->inputs[0], b);
}

#define UNARY(fn, OP)                                              \
  void pestle_onnx_import_##fn(pestle_onnx_call_t* call) {         \
    call->outputs[0] =                                             \
        pestle_f_unary(&call->f, PESTLE_OP_##OP, call->inputs[0]); \
  }
#define BINARY(fn, OP)                                     \
  void pestle_onnx_import_##fn(pestle_onnx_call_t* call) { \
    binary(call, PESTLE_OP_##OP);                          \
  }
UNARY(abs, ABS)
UNARY(ceil, CEIL)
UNARY(cos, COSINE)
UNARY(erf, ERF)
UNARY(exp, EXP)
UNARY(floor, FLOOR)
UNARY(log, LOG)
UNARY(neg, NEGATE)
UNARY(round, ROUND_EVEN)
UNARY(sigmoid, LOGISTIC)
UNARY(sign, SIGN)
UNARY(sin, SINE)
UNARY(sqrt, SQRT)
UNARY(tan, TAN)
UNARY(tanh, TANH)
BINARY(add, ADD)
BINARY(div, DIVIDE)
BINARY(mul, MULTIPLY)
BINARY(sub, SUBTRACT)

void pestle_onnx_import_reciprocal(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  call->outputs[0] = quotient(call, splat_like(call, x, 1), x);
}

// --- Trigonometric and hyperbolic ---
//
// Computed in f32 at least, and without overflow before the result does.

// sqrt((1 - x)(1 + x))
static pestle_value_t* cathetus(pestle_onnx_call_t* call, pestle_value_t* x) {
  pestle_value_t* one = splat_like(call, x, 1);
  pestle_value_t* more = add(call, one, x);
  return pestle_f_sqrt(&call->f, mul(call, sub(call, one, x), more));
}

static pestle_value_t* plus(pestle_onnx_call_t* call, pestle_value_t* x,
                            double number) {
  return pestle_onnx_binary_f(call, PESTLE_OP_ADD, x, number);
}

// |far| where |x| > |limit|, else |near|.
static pestle_value_t* above(pestle_onnx_call_t* call, pestle_value_t* x,
                             double limit, pestle_value_t* far,
                             pestle_value_t* near) {
  return pestle_f_select(
      &call->f, pestle_onnx_binary_f(call, PESTLE_OP_GT, x, limit), far, near);
}

// |size| with the sign of |x|, of which it is an odd function.
static pestle_value_t* signed_as(pestle_onnx_call_t* call, pestle_value_t* size,
                                 pestle_value_t* x) {
  return mul(call, size, pestle_f_sign(&call->f, x));
}

static pestle_value_t* asin_of(pestle_onnx_call_t* call, pestle_value_t* x) {
  return pestle_f_atan2(&call->f, x, cathetus(call, x));
}

static pestle_value_t* acos_of(pestle_onnx_call_t* call, pestle_value_t* x) {
  return pestle_f_atan2(&call->f, cathetus(call, x), x);
}

static pestle_value_t* atan_of(pestle_onnx_call_t* call, pestle_value_t* x) {
  return pestle_onnx_binary_f(call, PESTLE_OP_ATAN2, x, 1);
}

// e^a / 2
static pestle_value_t* half_exp(pestle_onnx_call_t* call, pestle_value_t* a) {
  pestle_value_t* root = pestle_f_exponential(&call->f, times(call, a, 0.5));
  return mul(call, times(call, root, 0.5), root);
}

// (e + e / (e + 1)) / 2 with e = e^|x| - 1; from 22 on e^|x| / 2.
static pestle_value_t* sinh_of(pestle_onnx_call_t* call, pestle_value_t* x) {
  pestle_value_t* a = pestle_f_abs(&call->f, x);
  pestle_value_t* e = pestle_f_exponential_minus_one(&call->f, a);
  pestle_value_t* sum = add(call, e, quotient(call, e, plus(call, e, 1)));
  pestle_value_t* size =
      above(call, a, 22, half_exp(call, a), times(call, sum, 0.5));
  return signed_as(call, size, x);
}

static pestle_value_t* cosh_of(pestle_onnx_call_t* call, pestle_value_t* x) {
  pestle_value_t* a = pestle_f_abs(&call->f, x);
  pestle_value_t* e = pestle_f_exponential(&call->f, a);
  pestle_value_t* back = quotient(call, splat_like(call, e, 0.5), e);
  return above(call, a, 22, half_exp(call, a),
               add(call, times(call, e, 0.5), back));
}

// log1p(a + a^2 / (1 + sqrt(1 + a^2))), a = |x|; from 2^28 on log(a) + log(2).
static pestle_value_t* asinh_of(pestle_onnx_call_t* call, pestle_value_t* x) {
  pestle_value_t* a = pestle_f_abs(&call->f, x);
  pestle_value_t* square = mul(call, a, a);
  pestle_value_t* root = pestle_f_sqrt(&call->f, plus(call, square, 1));
  pestle_value_t* more = quotient(call, square, plus(call, root, 1));
  pestle_value_t* near = pestle_f_log_plus_one(&call->f, add(call, a, more));
  pestle_value_t* far = plus(call, pestle_f_log(&call->f, a), log(2));
  return signed_as(call, above(call, a, 0x1p28, far, near), x);
}

// log1p(t + sqrt(t (t + 2))), t = x - 1; NaN below 1.
static pestle_value_t* acosh_of(pestle_onnx_call_t* call, pestle_value_t* x) {
  pestle_value_t* t = plus(call, x, -1);
  pestle_value_t* root =
      pestle_f_sqrt(&call->f, mul(call, t, plus(call, t, 2)));
  pestle_value_t* near = pestle_f_log_plus_one(&call->f, add(call, t, root));
  pestle_value_t* far = plus(call, pestle_f_log(&call->f, x), log(2));
  pestle_value_t* less = pestle_onnx_binary_f(call, PESTLE_OP_LT, x, 1);
  return pestle_f_select(&call->f, less, splat_like(call, x, (double)NAN),
                         above(call, x, 0x1p28, far, near));
}

// (log1p(x) - log1p(-x)) / 2: both have one sign, nothing cancels.
static pestle_value_t* atanh_of(pestle_onnx_call_t* call, pestle_value_t* x) {
  pestle_value_t* up = pestle_f_log_plus_one(&call->f, x);
  pestle_value_t* down =
      pestle_f_log_plus_one(&call->f, pestle_f_negate(&call->f, x));
  return times(call, sub(call, up, down), 0.5);
}

#define FORMULA(fn)                                                        \
  void pestle_onnx_import_##fn(pestle_onnx_call_t* call) {                 \
    pestle_value_t* x = call->inputs[0];                                   \
    pestle_dtype_t dtype = dtype_of(x);                                    \
    if (dtype != PESTLE_F64) x = pestle_onnx_convert(call, x, PESTLE_F32); \
    call->outputs[0] = pestle_onnx_convert(call, fn##_of(call, x), dtype); \
  }
FORMULA(asin)
FORMULA(acos)
FORMULA(atan)
FORMULA(sinh)
FORMULA(cosh)
FORMULA(asinh)
FORMULA(acosh)
FORMULA(atanh)

// --- Powers and remainders ---

// Exponents that need no pow; NULL for others.
static pestle_value_t* simple_power(pestle_onnx_call_t* call, pestle_value_t* x,
                                    double exponent) {
  bool is_float = pestle_dtype_is(dtype_of(x), PESTLE_KIND_FLOAT);
  if (exponent == 1) return x;
  if (exponent == 2) return mul(call, x, x);
  if (exponent == 3) return mul(call, mul(call, x, x), x);
  if (!is_float) return NULL;
  if (exponent == 0.5) return pestle_f_sqrt(&call->f, x);
  if (exponent == -1) return quotient(call, splat_like(call, x, 1), x);
  return NULL;
}

static pestle_value_t* power_by_constant(pestle_onnx_call_t* call,
                                         pestle_value_t* x,
                                         pestle_value_t* exponent) {
  const pestle_elements_t* elements = pestle_value_constant(exponent);
  pestle_type_t type;
  if (!elements || !elements->size ||
      (!elements->splat && pestle_type_count(&elements->type) != 1) ||
      !pestle_onnx_common_shape(call, x->type, exponent->type, &type)) {
    return NULL;
  }
  pestle_value_t* power =
      simple_power(call, x, pestle_onnx_element_f64(elements, 0));
  return power ? pestle_onnx_broadcast(call, power, type.rank, type.dims)
               : NULL;
}

// The result has the base's dtype, whatever the exponent's is.
void pestle_onnx_import_pow(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  pestle_value_t* exponent = pestle_onnx_second_operand(call);
  if (!exponent) return;
  pestle_dtype_t dtype = dtype_of(x), other = dtype_of(exponent);
  call->outputs[0] = power_by_constant(call, x, exponent);
  if (call->outputs[0]) return;
  pestle_dtype_t work = pestle_dtype_is(dtype, PESTLE_KIND_INT) &&
                                pestle_dtype_is(other, PESTLE_KIND_FLOAT)
                            ? other
                            : dtype;
  exponent = pestle_onnx_convert(call, exponent, work);
  pestle_value_t* power =
      pestle_f_power(&call->f, pestle_onnx_convert(call, x, work), exponent);
  call->outputs[0] = pestle_onnx_convert(call, power, dtype);
}

// fmod = 0 gives the divisor's sign, as Python does; StableHLO's remainder has
// the dividend's.
void pestle_onnx_import_mod(pestle_onnx_call_t* call) {
  pestle_value_t *a = call->inputs[0], *b = call->inputs[1];
  pestle_value_t* rest = pestle_f_remainder(&call->f, a, b);
  bool is_unsigned = pestle_dtype_is(dtype_of(a), PESTLE_KIND_UNSIGNED);
  if (pestle_onnx_int(call, "fmod", 0) || is_unsigned || !rest) {
    call->outputs[0] = rest;
    return;
  }
  pestle_value_t* zero = splat_like(call, rest, 0);
  pestle_value_t* b_below = pestle_f_lt(&call->f, b, splat_like(call, b, 0));
  pestle_value_t* other_sign =
      pestle_f_ne(&call->f, pestle_f_lt(&call->f, rest, zero), b_below);
  pestle_value_t* moves =
      pestle_f_and(&call->f, other_sign, pestle_f_ne(&call->f, rest, zero));
  call->outputs[0] = pestle_f_select(&call->f, moves, add(call, rest, b), rest);
}

// --- Any number of operands ---

static pestle_value_t* combine_inputs(pestle_onnx_call_t* call,
                                      pestle_op_t op) {
  pestle_value_t* result = call->inputs[0];
  for (size_t i = 1; i < call->input_count; ++i) {
    result = pestle_f_binary(&call->f, op, result, call->inputs[i]);
  }
  return result;
}

void pestle_onnx_import_max(pestle_onnx_call_t* call) {
  call->outputs[0] = combine_inputs(call, PESTLE_OP_MAXIMUM);
}

void pestle_onnx_import_min(pestle_onnx_call_t* call) {
  call->outputs[0] = combine_inputs(call, PESTLE_OP_MINIMUM);
}

void pestle_onnx_import_sum(pestle_onnx_call_t* call) {
  call->outputs[0] = combine_inputs(call, PESTLE_OP_ADD);
}

void pestle_onnx_import_mean(pestle_onnx_call_t* call) {
  call->outputs[0] = pestle_onnx_binary_f(call, PESTLE_OP_DIVIDE,
                                          combine_inputs(call, PESTLE_OP_ADD),
                                          (double)call->input_count);
}

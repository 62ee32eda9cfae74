// SPDX-License-Identifier: Apache-2.0
// Random numbers, by Philox. ONNX says no algorithm: the numbers are Pestle's own. They
// follow from the node's seed, or its place among the random nodes of the model where it
// has none, and are the same in each run.
#include <math.h>
#include <string.h>

#include "frontend/onnx/bounded.h"
#include "frontend/onnx/ops.h"

// The node's seed, a float of all ops but Dropout, where it is an integer; false without.
static bool read_seed(pestle_onnx_call_t* call, uint64_t* out_key) {
  const pestle_onnx_attr_t* attr = pestle_onnx_node_attr(call->node, "seed");
  if (attr && attr->kind == PESTLE_ONNX_ATTR_INT) {
    *out_key = (uint64_t)pestle_onnx_int(call, "seed", 0);
  } else {
    float seed = (float)pestle_onnx_float(call, "seed", 0);
    uint32_t bits;
    memcpy(&bits, &seed, sizeof(bits));
    *out_key = bits;
  }
  return attr != NULL;
}

// A key, and a counter that begins 2^32 further with each trip of the loops around: what
// nothing else of the model begins with.
static pestle_value_t* read_state(pestle_onnx_call_t* call) {
  pestle_onnx_import_t* import = call->import;
  const pestle_type_t type = {.dtype = PESTLE_U64, .rank = 1, .dims = {1}};
  const int64_t one = 1;
  uint64_t key;
  if (!read_seed(call, &key)) key = UINT64_MAX - ++import->random_nodes;
  pestle_value_t* parts[2] = {pestle_f_bits(&call->f, &type, key),
                              pestle_f_bits(&call->f, &type, 0)};
  if (import->trip) {
    pestle_value_t* trip = pestle_onnx_convert(call, import->trip, PESTLE_U64);
    trip = pestle_onnx_binary_f(call, PESTLE_OP_SHIFT_LEFT, trip, 32);
    parts[1] = pestle_f_reshape(&call->f, trip, 1, &one);
  }
  return pestle_f_concatenate(&call->f, parts, 2, 0);
}

// Unsigned integers, all equally likely, in the shape of |type|: of 64 bits for f64, else
// of 32.
static pestle_value_t* random_bits(pestle_onnx_call_t* call,
                                   const pestle_type_t* type) {
  pestle_type_t bits = *type;
  bits.dtype = type->dtype == PESTLE_F64 ? PESTLE_U64 : PESTLE_U32;
  pestle_value_t* from = read_state(call);
  pestle_attr_t attrs[] = {PESTLE_SET_STR(rng_algorithm, "PHILOX"),
                           {.name = PESTLE_ATTR_output_type,
                            .kind = PESTLE_ATTR_KIND_TYPE,
                            .as.type = &bits}};
  pestle_node_t* node =
      from ? pestle_f_node(
                 &call->f,
                 &(pestle_node_spec_t){.op = PESTLE_OP_RNG_BIT_GENERATOR,
                                       .operands = &from,
                                       .operand_count = 1,
                                       .attrs = attrs,
                                       .attr_count = 2})
           : NULL;
  return node ? pestle_node_result(node, 1) : NULL;
}

// The highest |count| of the bits of |x|, as a float that holds them exactly.
static pestle_value_t* high_bits(pestle_onnx_call_t* call, pestle_value_t* x,
                                 int count) {
  bool wide = dtype_of(x) == PESTLE_U64;
  x = pestle_onnx_binary_f(call, PESTLE_OP_SHIFT_RIGHT_LOGICAL, x,
                           (wide ? 64 : 32) - count);
  x = pestle_onnx_convert(call, x, wide ? PESTLE_I64 : PESTLE_I32);
  return pestle_onnx_convert(call, x, wide ? PESTLE_F64 : PESTLE_F32);
}

pestle_value_t* pestle_onnx_uniform(pestle_onnx_call_t* call,
                                    const pestle_type_t* type) {
  int count = type->dtype == PESTLE_F64 ? 53 : 24;
  pestle_value_t* x = high_bits(call, random_bits(call, type), count);
  return times(call, x, ldexp(1, -count));
}

// Of mean 0 and deviation 1: no bits give an infinite one.
static pestle_value_t* normal(pestle_onnx_call_t* call,
                              const pestle_type_t* type) {
  int count = type->dtype == PESTLE_F64 ? 52 : 23;
  pestle_value_t* x = high_bits(call, random_bits(call, type), count);
  x = pestle_onnx_binary_f(call, PESTLE_OP_ADD, x, 0.5 - ldexp(1, count - 1));
  x = pestle_f_erf_inv(&call->f, times(call, x, ldexp(1, 1 - count)));
  return times(call, x, sqrt(2));
}

// Attribute "dtype", or |missing|; PESTLE_NONE with an error kept when it is no float.
static pestle_dtype_t read_dtype(pestle_onnx_call_t* call,
                                 pestle_dtype_t missing) {
  int64_t number = pestle_onnx_int(call, "dtype", 0);
  pestle_dtype_t dtype = number ? pestle_onnx_dtype(number) : missing;
  if (dtype != PESTLE_NONE && pestle_dtype_is(dtype, PESTLE_KIND_FLOAT))
    return dtype;
  pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                   "its numbers are of the type %s, which is no float",
                   number ? pestle_onnx_dtype_name(number)
                          : pestle_dtype_info(missing)->name);
  return PESTLE_NONE;
}

static void distribute(pestle_onnx_call_t* call, const pestle_type_t* like,
                       pestle_dtype_t missing, bool is_normal) {
  pestle_type_t type = *like;
  type.dtype = read_dtype(call, missing);
  if (call->f.status || pestle_onnx_keep(call, pestle_type_check(&type)))
    return;
  double low = is_normal ? pestle_onnx_float(call, "mean", 0)
                         : pestle_onnx_float(call, "low", 0);
  double wide = is_normal ? pestle_onnx_float(call, "scale", 1)
                          : pestle_onnx_float(call, "high", 1) - low;
  pestle_value_t* x =
      is_normal ? normal(call, &type) : pestle_onnx_uniform(call, &type);
  x = pestle_onnx_binary_f(call, PESTLE_OP_ADD, times(call, x, wide), low);
  call->outputs[0] = pestle_onnx_convert(call, x, type.dtype);
}

// The shape that attribute "shape" says.
static void distribute_shape(pestle_onnx_call_t* call, bool is_normal) {
  pestle_i64s_t shape = pestle_onnx_ints(call, "shape");
  pestle_type_t type = {.dtype = PESTLE_F32};
  bool fits = shape.count <= PESTLE_MAX_RANK;
  for (size_t i = 0; fits && i < shape.count; ++i) {
    type.dims[type.rank++] = shape.data[i];
    fits = shape.data[i] >= 0 && shape.data[i] <= INT64_C(1) << 40;
  }
  if (!fits) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "attribute 'shape' is no shape of at most %d axes",
                     PESTLE_MAX_RANK);
    return;
  }
  distribute(call, &type, PESTLE_F32, is_normal);
}

void pestle_onnx_import_random_normal(pestle_onnx_call_t* call) {
  distribute_shape(call, true);
}

void pestle_onnx_import_random_uniform(pestle_onnx_call_t* call) {
  distribute_shape(call, false);
}

void pestle_onnx_import_random_normal_like(pestle_onnx_call_t* call) {
  const pestle_type_t* type = pestle_onnx_type(call->inputs[0]);
  distribute(call, type, type->dtype, true);
}

void pestle_onnx_import_random_uniform_like(pestle_onnx_call_t* call) {
  const pestle_type_t* type = pestle_onnx_type(call->inputs[0]);
  distribute(call, type, type->dtype, false);
}

// 1 with the probability that input 0 says.
void pestle_onnx_import_bernoulli(pestle_onnx_call_t* call) {
  pestle_value_t* p = call->inputs[0];
  int64_t number = pestle_onnx_int(call, "dtype", 0);
  pestle_dtype_t dtype = number ? pestle_onnx_dtype(number) : dtype_of(p);
  if (dtype == PESTLE_NONE ||
      !pestle_dtype_is(dtype_of(p), PESTLE_KIND_FLOAT)) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "attribute 'dtype' is %s, and its input must be floats",
                     pestle_onnx_dtype_name(number));
    return;
  }
  pestle_value_t* u = pestle_onnx_uniform(call, pestle_onnx_type(p));
  p = pestle_onnx_convert(call, p, dtype_of(u));
  call->outputs[0] =
      pestle_onnx_convert(call, pestle_f_lt(&call->f, u, p), dtype);
}

// Classes by the logarithms of what they weigh [batch, classes]: the first whose sum of
// weights is above a number below the sum of all.
void pestle_onnx_import_multinomial(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  int64_t samples = pestle_onnx_int(call, "sample_size", 1);
  int64_t number = pestle_onnx_int(call, "dtype", 6);
  pestle_dtype_t dtype = pestle_onnx_dtype(number);
  int64_t batch = pestle_onnx_dim(x, 0), classes = pestle_onnx_dim(x, 1);
  const int64_t last = 2;
  const int64_t sums[3] = {batch, 1, classes}, numbers[3] = {batch, samples, 1};
  if (rank_of(x) != 2 || classes < 1 || samples < 1 ||
      samples > PESTLE_ONNX_MAX_INDICES ||
      (dtype != PESTLE_I32 && dtype != PESTLE_I64)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its input must be [batch, classes], sample_size %lld "
                     "positive and dtype int32 or int64",
                     (long long)samples);
    return;
  }
  pestle_type_t type = {
      .dtype = dtype_of(x) == PESTLE_F64 ? PESTLE_F64 : PESTLE_F32,
      .rank = 2,
      .dims = {batch, samples}};
  x = pestle_onnx_convert(call, x, type.dtype);
  x = pestle_onnx_softmax(call, PESTLE_OP_SOFTMAX, x, 1);
  x = pestle_onnx_running_sum(call, x, 1);
  pestle_value_t* all =
      pestle_onnx_slice_axis(call, x, 1, classes - 1, classes, 1);
  pestle_value_t* u = pestle_onnx_uniform(call, &type);
  u = pestle_f_reshape(&call->f, mul(call, u, all), 3, numbers);
  x = pestle_f_reshape(&call->f, x, 3, sums);
  pestle_value_t* below =
      pestle_onnx_convert(call, pestle_f_le(&call->f, x, u), dtype);
  below = pestle_onnx_reduce(call, PESTLE_OP_ADD, below, &last, 1, false);
  // A product may be rounded up to the sum of all.
  call->outputs[0] = pestle_onnx_binary_f(call, PESTLE_OP_MINIMUM, below,
                                          (double)(classes - 1));
}

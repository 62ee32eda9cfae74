// SPDX-License-Identifier: Apache-2.0
// Activations and softmax.
#include <math.h>

#include "frontend/onnx/bounded.h"
#include "frontend/onnx/ops.h"

static pestle_value_t* composite_f64(pestle_onnx_call_t* call, pestle_op_t op,
                                     pestle_value_t* x,
                                     const pestle_attr_t* attrs, size_t count) {
  return pestle_f_make(&call->f, op, &x, 1, attrs, count, NULL);
}

pestle_value_t* pestle_onnx_hard_sigmoid(pestle_onnx_call_t* call,
                                         pestle_value_t* x, double alpha,
                                         double beta) {
  pestle_attr_t attrs[] = {
      {.name = PESTLE_ATTR_alpha,
       .kind = PESTLE_ATTR_KIND_F64,
       .as.f64 = alpha},
      {.name = PESTLE_ATTR_beta, .kind = PESTLE_ATTR_KIND_F64, .as.f64 = beta},
  };
  return composite_f64(call, PESTLE_OP_HARD_SIGMOID, x, attrs, 2);
}

static pestle_value_t* relu(pestle_onnx_call_t* call, pestle_value_t* x) {
  return pestle_onnx_binary_f(call, PESTLE_OP_MAXIMUM, x, 0);
}

static pestle_value_t* is_negative(pestle_onnx_call_t* call,
                                   pestle_value_t* x) {
  return pestle_onnx_binary_f(call, PESTLE_OP_LT, x, 0);
}

static pestle_value_t* leaky(pestle_onnx_call_t* call, pestle_value_t* x,
                             double alpha) {
  pestle_value_t* below = times(call, x, alpha);
  return pestle_f_select(&call->f, is_negative(call, x), below, x);
}

static pestle_value_t* elu(pestle_onnx_call_t* call, pestle_value_t* x,
                           double alpha) {
  pestle_value_t* below =
      times(call, pestle_f_exponential_minus_one(&call->f, x), alpha);
  return pestle_f_select(&call->f, is_negative(call, x), below, x);
}

// log(1 + e^x) without overflow: x + log1p(e^-x) above 0, else log1p(e^x), whose slope
// is the right one at 0.
static pestle_value_t* softplus(pestle_onnx_call_t* call, pestle_value_t* x) {
  pestle_formula_t* f = &call->f;
  pestle_value_t* zero = splat_like(call, x, 0);
  pestle_value_t* is_above = pestle_f_gt(f, x, zero);
  pestle_value_t* whole = pestle_f_select(f, is_above, x, zero);
  pestle_value_t* exponent =
      pestle_f_select(f, is_above, pestle_f_negate(f, x), x);
  pestle_value_t* rest =
      pestle_f_log_plus_one(f, pestle_f_exponential(f, exponent));
  return add(call, whole, rest);
}

static pestle_value_t* softsign(pestle_onnx_call_t* call, pestle_value_t* x) {
  pestle_value_t* magnitude = pestle_f_abs(&call->f, x);
  return quotient(call, x,
                  pestle_onnx_binary_f(call, PESTLE_OP_ADD, magnitude, 1));
}

static pestle_value_t* thresholded(pestle_onnx_call_t* call, pestle_value_t* x,
                                   double alpha) {
  pestle_value_t* zero = splat_like(call, x, 0);
  return pestle_f_select(
      &call->f, pestle_onnx_binary_f(call, PESTLE_OP_GT, x, alpha), x, zero);
}

pestle_value_t* pestle_onnx_activation(pestle_onnx_call_t* call,
                                       pestle_str_t name, double alpha,
                                       double beta, pestle_value_t* x) {
  if (pestle_str_equal_c(name, "Sigmoid")) {
    return pestle_f_logistic(&call->f, x);
  }
  if (pestle_str_equal_c(name, "Tanh")) {
    return pestle_f_tanh(&call->f, x);
  }
  if (pestle_str_equal_c(name, "Relu")) return relu(call, x);
  if (pestle_str_equal_c(name, "Affine")) {
    return pestle_onnx_binary_f(call, PESTLE_OP_ADD, times(call, x, alpha),
                                beta);
  }
  if (pestle_str_equal_c(name, "LeakyRelu")) return leaky(call, x, alpha);
  if (pestle_str_equal_c(name, "ThresholdedRelu")) {
    return thresholded(call, x, alpha);
  }
  if (pestle_str_equal_c(name, "ScaledTanh")) {
    return times(call, pestle_f_tanh(&call->f, times(call, x, beta)), alpha);
  }
  if (pestle_str_equal_c(name, "HardSigmoid")) {
    return pestle_onnx_hard_sigmoid(call, x, alpha, beta);
  }
  if (pestle_str_equal_c(name, "Elu")) return elu(call, x, alpha);
  if (pestle_str_equal_c(name, "Softsign")) return softsign(call, x);
  if (pestle_str_equal_c(name, "Softplus")) return softplus(call, x);
  return pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                          "the activation '%.*s' is not known",
                          PESTLE_STR_ARG(name));
}

// --- Ops of one formula ---

void pestle_onnx_import_relu(pestle_onnx_call_t* call) {
  call->outputs[0] = relu(call, call->inputs[0]);
}

void pestle_onnx_import_leaky_relu(pestle_onnx_call_t* call) {
  call->outputs[0] =
      leaky(call, call->inputs[0], pestle_onnx_float(call, "alpha", 0.01));
}

void pestle_onnx_import_prelu(pestle_onnx_call_t* call) {
  pestle_value_t *x = call->inputs[0], *slope = call->inputs[1];
  // Before opset 7 a slope of rank 1 lay along the channels.
  if (call->opset < 7 && rank_of(slope) == 1 &&
      pestle_onnx_dim(slope, 0) != 1) {
    slope = pestle_onnx_along(call, slope, x, 1);
  }
  pestle_value_t* below = mul(call, x, slope);
  call->outputs[0] = pestle_f_select(&call->f, is_negative(call, x), below, x);
}

void pestle_onnx_import_elu(pestle_onnx_call_t* call) {
  call->outputs[0] =
      elu(call, call->inputs[0], pestle_onnx_float(call, "alpha", 1));
}

void pestle_onnx_import_selu(pestle_onnx_call_t* call) {
  double alpha = pestle_onnx_float(call, "alpha", 1.67326319217681884765625);
  double gamma = pestle_onnx_float(call, "gamma", 1.05070102214813232421875);
  call->outputs[0] = times(call, elu(call, call->inputs[0], alpha), gamma);
}

void pestle_onnx_import_celu(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  double alpha = pestle_onnx_float(call, "alpha", 1);
  pestle_value_t* below = times(
      call,
      pestle_f_exponential_minus_one(
          &call->f, pestle_onnx_binary_f(call, PESTLE_OP_DIVIDE, x, alpha)),
      alpha);
  below = pestle_onnx_binary_f(call, PESTLE_OP_MINIMUM, below, 0);
  call->outputs[0] = add(call, relu(call, x), below);
}

void pestle_onnx_import_thresholded_relu(pestle_onnx_call_t* call) {
  call->outputs[0] =
      thresholded(call, call->inputs[0], pestle_onnx_float(call, "alpha", 1));
}

void pestle_onnx_import_shrink(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  double lambd = pestle_onnx_float(call, "lambd", 0.5);
  double bias = pestle_onnx_float(call, "bias", 0);
  pestle_value_t* zero = splat_like(call, x, 0);
  pestle_value_t* less =
      pestle_onnx_binary_f(call, PESTLE_OP_SUBTRACT, x, bias);
  pestle_value_t* above = pestle_f_select(
      &call->f, pestle_onnx_binary_f(call, PESTLE_OP_GT, x, lambd), less, zero);
  pestle_value_t* more = pestle_onnx_binary_f(call, PESTLE_OP_ADD, x, bias);
  call->outputs[0] = pestle_f_select(
      &call->f, pestle_onnx_binary_f(call, PESTLE_OP_LT, x, -lambd), more,
      above);
}

void pestle_onnx_import_hard_sigmoid(pestle_onnx_call_t* call) {
  double alpha = pestle_onnx_float(call, "alpha", 0.2);
  double beta = pestle_onnx_float(call, "beta", 0.5);
  call->outputs[0] =
      pestle_onnx_hard_sigmoid(call, call->inputs[0], alpha, beta);
}

void pestle_onnx_import_hard_swish(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  call->outputs[0] =
      mul(call, x, pestle_onnx_hard_sigmoid(call, x, 1.0 / 6.0, 0.5));
}

void pestle_onnx_import_softplus(pestle_onnx_call_t* call) {
  call->outputs[0] = softplus(call, call->inputs[0]);
}

void pestle_onnx_import_softsign(pestle_onnx_call_t* call) {
  call->outputs[0] = softsign(call, call->inputs[0]);
}

void pestle_onnx_import_mish(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  call->outputs[0] = mul(call, x, pestle_f_tanh(&call->f, softplus(call, x)));
}

static pestle_value_t* swish(pestle_onnx_call_t* call, pestle_value_t* x) {
  double alpha = pestle_onnx_float(call, "alpha", 1);
  if (alpha == 1) return composite_f64(call, PESTLE_OP_SILU, x, NULL, 0);
  return mul(call, x, pestle_f_logistic(&call->f, times(call, x, alpha)));
}

void pestle_onnx_import_swish(pestle_onnx_call_t* call) {
  call->outputs[0] = swish(call, call->inputs[0]);
}

void pestle_onnx_import_swiglu(pestle_onnx_call_t* call) {
  pestle_value_t *gate = call->inputs[0], *x = call->inputs[1];
  if (!pestle_type_equal(gate->type, x->type)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its inputs differ in type");
    return;
  }
  call->outputs[0] = mul(call, swish(call, gate), x);
}

void pestle_onnx_import_gelu(pestle_onnx_call_t* call) {
  pestle_str_t how = pestle_onnx_string(call, "approximate", "none");
  pestle_attr_t attr = {.name = PESTLE_ATTR_approximate,
                        .kind = PESTLE_ATTR_KIND_BOOL,
                        .as.b = pestle_str_equal_c(how, "tanh")};
  if (!attr.as.b && !pestle_str_equal_c(how, "none")) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "attribute 'approximate' is '%.*s', known are none and "
                     "tanh",
                     PESTLE_STR_ARG(how));
  }
  call->outputs[0] =
      composite_f64(call, PESTLE_OP_GELU, call->inputs[0], &attr, 1);
}

// --- Clip ---

// A bound as a scalar; a list of one element is common.
static pestle_value_t* bound(pestle_onnx_call_t* call, size_t index,
                             const char* name) {
  pestle_value_t* x = call->inputs[0];
  if (call->opset < 11) {
    if (!pestle_onnx_has(call, name)) return NULL;
    return pestle_onnx_scalar(call, dtype_of(x),
                              pestle_onnx_float(call, name, 0));
  }
  pestle_value_t* value = pestle_onnx_input(call, index);
  return value ? pestle_f_reshape(&call->f, value, 0, NULL) : NULL;
}

void pestle_onnx_import_clip(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  pestle_value_t* low = bound(call, 1, "min");
  pestle_value_t* high = bound(call, 2, "max");
  if (low && high) {
    pestle_node_spec_t spec = {.op = PESTLE_OP_CLAMP,
                               .operands = (pestle_value_t*[]){low, x, high},
                               .operand_count = 3};
    call->outputs[0] = pestle_f_emit(&call->f, &spec);
    return;
  }
  if (low) x = pestle_f_maximum(&call->f, x, low);
  if (high) x = pestle_f_minimum(&call->f, x, high);
  call->outputs[0] = x;
}

// --- Softmax ---

// |x| with what changes no softmax where it is not real along |axis|, or from
// there on.
static pestle_value_t* without_unreal(pestle_onnx_call_t* call,
                                      pestle_value_t* x, int64_t axis,
                                      bool flattens) {
  uint32_t axes = flattens ? UINT32_MAX << axis : UINT32_C(1) << axis;
  pestle_type_t scalar = {.dtype = dtype_of(x)};
  if (!pestle_onnx_real(call->import, x)) return x;
  return pestle_onnx_fill_unreal(call, x, axes,
                                 pestle_onnx_lowest(call, &scalar));
}

// The same along one axis of f32 or f64 that ends where a run says: its folds leave out
// what is not real, and nothing else is made of that.
static pestle_value_t* ended_softmax(pestle_onnx_call_t* call, pestle_op_t op,
                                     pestle_value_t* x, int64_t axis) {
  pestle_formula_t* f = &call->f;
  pestle_dtype_t dtype = dtype_of(x);
  pestle_value_t* mask = pestle_onnx_real_mask(
      call, pestle_onnx_type(x), pestle_onnx_real(call->import, x),
      UINT32_C(1) << axis);
  pestle_value_t* most = pestle_f_select(
      f, mask, x, pestle_f_identity(f, PESTLE_OP_MAXIMUM, dtype));
  most = pestle_onnx_reduce(call, PESTLE_OP_MAXIMUM, most, &axis, 1, true);
  pestle_value_t* below = sub(call, x, most);
  pestle_value_t* power = pestle_f_exponential(f, below);
  pestle_value_t* sum = pestle_f_select(
      f, mask, power, pestle_f_identity(f, PESTLE_OP_ADD, dtype));
  sum = pestle_onnx_reduce(call, PESTLE_OP_ADD, sum, &axis, 1, true);
  if (op == PESTLE_OP_SOFTMAX) return quotient(call, power, sum);
  return sub(call, below, pestle_f_log(f, sum));
}

// Before opset 13 all axes from |axis| on were one: the tensor was seen as a
// matrix.
static void softmax(pestle_onnx_call_t* call, pestle_op_t op) {
  pestle_value_t* x = call->inputs[0];
  int64_t rank = rank_of(x);
  bool flattens = call->opset < 13;
  int64_t axis = pestle_onnx_int(call, "axis", flattens ? 1 : -1);
  if (rank == 0) {
    pestle_value_t* row = pestle_f_reshape(&call->f, x, 1, PESTLE_I64S(1).data);
    row = pestle_onnx_softmax(call, op, row, 0);
    call->outputs[0] = pestle_f_reshape(&call->f, row, 0, NULL);
    return;
  }
  if (flattens && axis == rank) axis = rank - 1;
  axis = pestle_onnx_axis(call, axis, rank);
  if (call->f.status) return;
  const pestle_onnx_room_t* room = pestle_onnx_room_of(
      call->import, pestle_onnx_real_size(call->import, x, axis));
  if (room && (!flattens || axis == rank - 1)) {
    const pestle_type_t scalar = {.dtype = dtype_of(x)};
    pestle_value_t* mask =
        pestle_onnx_room_mask(call, pestle_onnx_type(x), axis, -1, room);
    pestle_value_t* low = pestle_onnx_lowest(call, &scalar);
    pestle_value_t* zero = pestle_onnx_scalar(call, scalar.dtype, 0);
    x = add(call, x, pestle_f_select(&call->f, mask, zero, low));
    call->outputs[0] = pestle_onnx_softmax(call, op, x, axis);
    return;
  }
  bool wide = dtype_of(x) == PESTLE_F32 || dtype_of(x) == PESTLE_F64;
  if (wide && (!flattens || axis == rank - 1) &&
      pestle_onnx_real_size(call->import, x, axis)) {
    call->outputs[0] = ended_softmax(call, op, x, axis);
    return;
  }
  x = without_unreal(call, x, axis, flattens);
  if (!flattens || axis == rank - 1) {
    call->outputs[0] = pestle_onnx_softmax(call, op, x, axis);
    return;
  }
  int64_t dims[2] = {pestle_onnx_dims_product(x, 0, axis),
                     pestle_onnx_dims_product(x, axis, rank)};
  pestle_value_t* matrix = pestle_f_reshape(&call->f, x, 2, dims);
  matrix = pestle_onnx_softmax(call, op, matrix, 1);
  call->outputs[0] =
      pestle_f_reshape(&call->f, matrix, (int32_t)rank, x->type->dims);
}

void pestle_onnx_import_softmax(pestle_onnx_call_t* call) {
  softmax(call, PESTLE_OP_SOFTMAX);
}

void pestle_onnx_import_log_softmax(pestle_onnx_call_t* call) {
  softmax(call, PESTLE_OP_LOG_SOFTMAX);
}

// One at the first maximum of a row, zero elsewhere.
void pestle_onnx_import_hardmax(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  int64_t rank = rank_of(x);
  bool flattens = call->opset < 13;
  int64_t axis = pestle_onnx_axis(
      call, pestle_onnx_int(call, "axis", flattens ? 1 : -1), rank);
  if (call->f.status) return;
  x = without_unreal(call, x, axis, flattens);
  int64_t dims[2] = {pestle_onnx_dims_product(x, 0, axis),
                     pestle_onnx_dims_product(x, axis, rank)};
  pestle_value_t* y = flattens ? pestle_f_reshape(&call->f, x, 2, dims) : x;
  if (flattens) axis = 1;
  pestle_value_t* top =
      pestle_onnx_reduce(call, PESTLE_OP_MAXIMUM, y, &axis, 1, true);
  pestle_type_t index = *pestle_onnx_type(y);
  index.dtype = PESTLE_I64;
  pestle_value_t* none = pestle_onnx_highest(call, &index);
  pestle_value_t* place = pestle_f_iota(&call->f, &index, axis);
  pestle_value_t* is_top = pestle_f_eq(&call->f, y, top);
  // NaN is the largest.
  if (pestle_dtype_is(dtype_of(y), PESTLE_KIND_FLOAT)) {
    is_top = pestle_f_or(&call->f, is_top, pestle_f_is_nan(&call->f, y));
  }
  pestle_value_t* places = pestle_f_select(&call->f, is_top, place, none);
  pestle_value_t* first =
      pestle_onnx_reduce(call, PESTLE_OP_MINIMUM, places, &axis, 1, true);
  pestle_value_t* hit = pestle_onnx_convert(
      call, pestle_f_eq(&call->f, places, first), dtype_of(x));
  call->outputs[0] =
      pestle_f_reshape(&call->f, hit, (int32_t)rank, pestle_onnx_type(x)->dims);
}

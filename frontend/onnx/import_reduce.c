// SPDX-License-Identifier: Apache-2.0
// Reductions over axes, arg-max and running sums.
#include "frontend/onnx/bounded.h"
#include "frontend/onnx/ops.h"
#include "ir/cumulative.h"

size_t pestle_onnx_axes(pestle_onnx_call_t* call, int64_t as_input,
                        int64_t rank, int64_t* out_axes, bool* out_given) {
  pestle_i64s_t list = {0};
  if (call->opset < as_input) {
    list = pestle_onnx_ints(call, "axes");
  } else if (pestle_onnx_input(call, 1)) {
    list = pestle_onnx_input_ints(call, 1, "axes");
  }
  *out_given = list.count != 0;
  bool chosen[PESTLE_MAX_RANK] = {false};
  for (size_t i = 0; i < list.count && rank; ++i) {
    chosen[pestle_onnx_axis(call, list.data[i], rank)] = true;
  }
  size_t count = 0;
  for (int64_t i = 0; i < rank; ++i) {
    if (chosen[i] || !list.count) out_axes[count++] = i;
  }
  return call->f.status ? 0 : count;
}

// What a reduction is over.
typedef struct reduction_t {
  int64_t axes[PESTLE_MAX_RANK];
  size_t count;
  bool keep_dims;
  const pestle_onnx_real_t* real;  // of input 0, or NULL
} reduction_t;

static uint32_t axis_bits(const reduction_t* how) {
  uint32_t bits = 0;
  for (size_t i = 0; i < how->count; ++i)
    bits |= 1u << how->axes[i];
  return bits;
}

// Reads the axes; those of ReduceSum became an input at opset 13, the others'
// at 18.
static reduction_t read_reduction(pestle_onnx_call_t* call, int64_t as_input) {
  reduction_t result = {0};
  bool given;
  result.keep_dims = pestle_onnx_int(call, "keepdims", 1) != 0;
  result.count = pestle_onnx_axes(call, as_input, rank_of(call->inputs[0]),
                                  result.axes, &given);
  if (!given && pestle_onnx_int(call, "noop_with_empty_axes", 0)) {
    result.count = 0;
  }
  result.real = pestle_onnx_real(call->import, call->inputs[0]);
  return result;
}

// Notes what is real of |y|, which axes of input 0 were reduced to.
static void finish(pestle_onnx_call_t* call, const reduction_t* how,
                   pestle_value_t* y) {
  call->outputs[0] = y;
  uint32_t reduced = axis_bits(how);
  int32_t at = 0;
  for (int32_t i = 0; how->real && i < rank_of(call->inputs[0]); ++i) {
    bool gone = reduced >> i & 1;
    if (!gone) pestle_onnx_set_real(call, y, at, how->real->sizes[i]);
    at += !gone || how->keep_dims;
  }
}

// |x| is what was made of input 0 element by element.
static pestle_value_t* reduce(pestle_onnx_call_t* call, pestle_op_t op,
                              const reduction_t* how, pestle_value_t* x) {
  pestle_value_t* mask = pestle_onnx_real_mask(call, pestle_onnx_type(x),
                                               how->real, axis_bits(how));
  if (mask) {
    x = pestle_f_select(&call->f, mask, x,
                        pestle_f_identity(&call->f, op, dtype_of(x)));
  }
  return pestle_onnx_reduce(call, op, x, how->axes, how->count, how->keep_dims);
}

// |sum| over how many elements of |x| were reduced to one.
static pestle_value_t* mean_of(pestle_onnx_call_t* call, const reduction_t* how,
                               const pestle_value_t* x, pestle_value_t* sum) {
  double count = 1;
  pestle_value_t* real = NULL;
  for (size_t i = 0; i < how->count; ++i) {
    pestle_value_t* size = how->real ? how->real->sizes[how->axes[i]] : NULL;
    if (!size) count *= (double)pestle_onnx_dim(x, how->axes[i]);
    if (size) real = real ? mul(call, real, size) : size;
  }
  if (!real) return pestle_onnx_binary_f(call, PESTLE_OP_DIVIDE, sum, count);
  // The product may be more than a narrow float holds on its way.
  real = pestle_onnx_convert(
      call, pestle_onnx_binary_f(call, PESTLE_OP_MULTIPLY, real, count),
      dtype_of(x));
  return quotient(call, sum, real);
}

// |x| in what its sums are taken in: f32 for narrower floats, since a sum may pass
// what they hold where the mean, the root or the logarithm does not.
static pestle_value_t* for_sums(pestle_onnx_call_t* call, pestle_value_t* x) {
  pestle_dtype_t dtype = dtype_of(x);
  bool narrow = pestle_dtype_is(dtype, PESTLE_KIND_FLOAT) &&
                pestle_dtype_size(dtype) < pestle_dtype_size(PESTLE_F32);
  return narrow ? pestle_onnx_convert(call, x, PESTLE_F32) : x;
}

#define SIMPLE(fn, OP, as_input)                                             \
  void pestle_onnx_import_reduce_##fn(pestle_onnx_call_t* call) {            \
    reduction_t how = read_reduction(call, as_input);                        \
    finish(call, &how, reduce(call, PESTLE_OP_##OP, &how, call->inputs[0])); \
  }
SIMPLE(sum, ADD, 13)
SIMPLE(prod, MULTIPLY, 18)
SIMPLE(max, MAXIMUM, 18)
SIMPLE(min, MINIMUM, 18)

void pestle_onnx_import_reduce_mean(pestle_onnx_call_t* call) {
  pestle_dtype_t dtype = dtype_of(call->inputs[0]);
  pestle_value_t* x = for_sums(call, call->inputs[0]);
  reduction_t how = read_reduction(call, 18);
  pestle_value_t* sum = reduce(call, PESTLE_OP_ADD, &how, x);
  pestle_value_t* mean = mean_of(call, &how, x, sum);
  finish(call, &how, pestle_onnx_convert(call, mean, dtype));
}

void pestle_onnx_import_reduce_l1(pestle_onnx_call_t* call) {
  reduction_t how = read_reduction(call, 18);
  pestle_value_t* magnitude = pestle_f_abs(&call->f, call->inputs[0]);
  finish(call, &how, reduce(call, PESTLE_OP_ADD, &how, magnitude));
}

static pestle_value_t* sum_of_squares(pestle_onnx_call_t* call,
                                      const reduction_t* how) {
  pestle_value_t* x = for_sums(call, call->inputs[0]);
  return reduce(call, PESTLE_OP_ADD, how, mul(call, x, x));
}

void pestle_onnx_import_reduce_sum_square(pestle_onnx_call_t* call) {
  reduction_t how = read_reduction(call, 18);
  pestle_value_t* sum = sum_of_squares(call, &how);
  finish(call, &how, pestle_onnx_convert(call, sum, dtype_of(call->inputs[0])));
}

// Integers take the root as floats.
void pestle_onnx_import_reduce_l2(pestle_onnx_call_t* call) {
  pestle_dtype_t dtype = dtype_of(call->inputs[0]);
  bool is_float = pestle_dtype_is(dtype, PESTLE_KIND_FLOAT);
  reduction_t how = read_reduction(call, 18);
  pestle_value_t* sum = sum_of_squares(call, &how);
  if (!is_float) sum = pestle_onnx_convert(call, sum, PESTLE_F64);
  sum = pestle_f_sqrt(&call->f, sum);
  finish(call, &how, pestle_onnx_convert(call, sum, dtype));
}

static pestle_value_t* log_as(pestle_onnx_call_t* call, pestle_value_t* x,
                              pestle_dtype_t dtype) {
  bool is_float = pestle_dtype_is(dtype, PESTLE_KIND_FLOAT);
  if (!is_float) x = pestle_onnx_convert(call, x, PESTLE_F64);
  return pestle_onnx_convert(call, pestle_f_log(&call->f, x), dtype);
}

void pestle_onnx_import_reduce_log_sum(pestle_onnx_call_t* call) {
  reduction_t how = read_reduction(call, 18);
  pestle_value_t* sum =
      reduce(call, PESTLE_OP_ADD, &how, for_sums(call, call->inputs[0]));
  finish(call, &how, log_as(call, sum, dtype_of(call->inputs[0])));
}

// max + log(sum(exp(x - max))), with a max of -inf or inf taken as 0.
void pestle_onnx_import_reduce_log_sum_exp(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  pestle_dtype_t dtype = dtype_of(x);
  x = pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)
          ? for_sums(call, x)
          : pestle_onnx_convert(call, x, PESTLE_F64);
  reduction_t how = read_reduction(call, 18), kept = how;
  kept.keep_dims = true;
  pestle_value_t* top = reduce(call, PESTLE_OP_MAXIMUM, &kept, x);
  pestle_value_t* zero = splat_like(call, top, 0);
  top = pestle_f_select(&call->f, pestle_f_is_finite(&call->f, top), top, zero);
  pestle_value_t* sum =
      reduce(call, PESTLE_OP_ADD, &kept,
             pestle_f_exponential(&call->f, sub(call, x, top)));
  pestle_value_t* result = add(call, pestle_f_log(&call->f, sum), top);
  if (!how.keep_dims && result) {
    // Dropping axes of extent 1 is all that a reduction would still do.
    int64_t dims[PESTLE_MAX_RANK];
    int32_t rank = 0;
    size_t next = 0;
    for (int32_t i = 0; i < rank_of(result); ++i) {
      if (next < how.count && how.axes[next] == i) {
        ++next;
      } else {
        dims[rank++] = pestle_onnx_dim(result, i);
      }
    }
    result = pestle_f_reshape(&call->f, result, rank, dims);
  }
  finish(call, &how, pestle_onnx_convert(call, result, dtype));
}

// --- Arg-max ---

// The first (or last) position that holds the extreme, by two plain reductions:
// the extreme, then the least (or greatest) index at which it lies.
static void arg_extreme(pestle_onnx_call_t* call, pestle_op_t op) {
  pestle_value_t* x = call->inputs[0];
  int64_t axis =
      pestle_onnx_axis(call, pestle_onnx_int(call, "axis", 0), rank_of(x));
  bool keep = pestle_onnx_int(call, "keepdims", 1) != 0;
  bool last = pestle_onnx_int(call, "select_last_index", 0) != 0;
  if (call->f.status || rank_of(x) == 0) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED, "it needs an axis");
    return;
  }
  reduction_t how = {.axes = {axis},
                     .count = 1,
                     .keep_dims = true,
                     .real = pestle_onnx_real(call->import, x)};
  pestle_value_t* top = reduce(call, op, &how, x);
  pestle_value_t* hit = pestle_f_eq(&call->f, x, top);
  if (pestle_dtype_is(dtype_of(x), PESTLE_KIND_FLOAT)) {
    hit = pestle_f_or(&call->f, hit, pestle_f_is_nan(&call->f, x));
  }
  pestle_value_t* mask = pestle_onnx_real_mask(call, pestle_onnx_type(x),
                                               how.real, axis_bits(&how));
  if (mask) hit = pestle_f_and(&call->f, hit, mask);
  pestle_type_t index = *pestle_onnx_type(x);
  index.dtype = PESTLE_I64;
  pestle_value_t* none = last ? pestle_onnx_splat_int(call, &index, -1)
                              : pestle_onnx_highest(call, &index);
  pestle_value_t* places = pestle_f_select(
      &call->f, hit, pestle_f_iota(&call->f, &index, axis), none);
  how.keep_dims = keep;
  finish(call, &how,
         pestle_onnx_reduce(call, last ? PESTLE_OP_MAXIMUM : PESTLE_OP_MINIMUM,
                            places, &axis, 1, keep));
}

void pestle_onnx_import_arg_max(pestle_onnx_call_t* call) {
  arg_extreme(call, PESTLE_OP_MAXIMUM);
}

void pestle_onnx_import_arg_min(pestle_onnx_call_t* call) {
  arg_extreme(call, PESTLE_OP_MINIMUM);
}

// --- Running sums ---

static pestle_value_t* running(pestle_onnx_call_t* call, pestle_op_t op,
                               pestle_value_t* x, int64_t axis, bool exclusive,
                               bool reverse) {
  pestle_attr_t attrs[] = {PESTLE_SET_I64(dimension, axis),
                           PESTLE_SET_STR(combiner, pestle_cumulative_name(op)),
                           PESTLE_SET_BOOL(reverse, reverse),
                           PESTLE_SET_BOOL(exclusive, exclusive)};
  return pestle_f_make(&call->f, PESTLE_OP_CUMULATIVE, &x, 1, attrs, 4, NULL);
}

static void cumulate(pestle_onnx_call_t* call, pestle_op_t op) {
  pestle_value_t* x = call->inputs[0];
  pestle_i64s_t axes = pestle_onnx_input_ints(call, 1, "axis");
  if (call->f.status || axes.count != 1) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED, "it needs one axis");
    return;
  }
  int64_t axis = pestle_onnx_axis(call, axes.data[0], rank_of(x));
  bool exclusive = pestle_onnx_int(call, "exclusive", 0) != 0;
  bool reverse = pestle_onnx_int(call, "reverse", 0) != 0;
  if (call->f.status || pestle_onnx_dim(x, axis) == 0) {
    call->outputs[0] = x;
    return;
  }
  if (reverse) {  // it begins behind the real ones
    x = pestle_onnx_fill_unreal(call, x, UINT32_C(1) << axis,
                                pestle_f_identity(&call->f, op, dtype_of(x)));
  }
  call->outputs[0] = running(call, op, x, axis, exclusive, reverse);
  pestle_onnx_copy_real(call, call->outputs[0], call->inputs[0]);
}

pestle_value_t* pestle_onnx_running_sum(pestle_onnx_call_t* call,
                                        pestle_value_t* x, int64_t axis) {
  return running(call, PESTLE_OP_ADD, x, axis, false, false);
}

static void cum_sum(pestle_onnx_call_t* call) {
  cumulate(call, PESTLE_OP_ADD);
}

void pestle_onnx_import_cum_sum(pestle_onnx_call_t* call) {
  pestle_onnx_by_size(call, cum_sum);
}

static void cum_prod(pestle_onnx_call_t* call) {
  cumulate(call, PESTLE_OP_MULTIPLY);
}

void pestle_onnx_import_cum_prod(pestle_onnx_call_t* call) {
  pestle_onnx_by_size(call, cum_prod);
}

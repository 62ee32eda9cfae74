// SPDX-License-Identifier: Apache-2.0
// Losses over classes: the negative log-likelihood of each target, weighted,
// and its sum or mean. Targets that are to be ignored weigh nothing.
#include "frontend/onnx/bounded.h"
#include "frontend/onnx/ops.h"

typedef struct loss_t {
  pestle_onnx_call_t* call;
  pestle_value_t* likelihoods;  // [n, classes, ...], logarithms
  pestle_value_t* target;       // i64 [n, ...]
  pestle_value_t* weight;       // [classes], or NULL
  pestle_value_t* size;         // n where only a run tells it, else NULL
} loss_t;

static bool read_loss(loss_t* loss) {
  pestle_onnx_call_t* call = loss->call;
  const int64_t rows[] = {0, 0};
  if (!pestle_onnx_allow_real(call, 0, 1) ||
      !pestle_onnx_allow_real(call, 1, 1) ||
      !pestle_onnx_allow_real(call, 2, 0) ||
      (rank_of(call->inputs[0]) && rank_of(call->inputs[1]) &&
       !pestle_onnx_fit(call, call->inputs, rows, 2, &loss->size))) {
    return false;
  }
  pestle_value_t *x = call->inputs[0], *target = call->inputs[1];
  bool fits = rank_of(x) >= 2 && rank_of(target) == rank_of(x) - 1 &&
              pestle_onnx_dim(x, 0) == pestle_onnx_dim(target, 0) &&
              pestle_onnx_dim(x, 1) > 0 &&
              pestle_dtype_is(dtype_of(target), PESTLE_KIND_INT) &&
              pestle_dtype_is(dtype_of(x), PESTLE_KIND_FLOAT);
  for (int32_t i = 2; fits && i < rank_of(x); ++i) {
    fits = pestle_onnx_dim(x, i) == pestle_onnx_dim(target, i - 1);
  }
  loss->weight = pestle_onnx_input(call, 2);
  if (loss->weight) {
    fits &= rank_of(loss->weight) == 1 &&
            pestle_onnx_dim(loss->weight, 0) == pestle_onnx_dim(x, 1) &&
            dtype_of(loss->weight) == dtype_of(x);
  }
  if (!fits) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its scores must be floats [n, classes, ...], its targets "
                     "integers [n, ...] and its weights one number a class");
    return false;
  }
  loss->target = pestle_onnx_convert(call, target, PESTLE_I64);
  return !call->f.status;
}

// The likelihood of each target, as [n, ...].
static pestle_value_t* at_targets(const loss_t* loss, pestle_value_t* index) {
  pestle_onnx_call_t* call = loss->call;
  if (!index || !loss->likelihoods) return NULL;
  int32_t rank = rank_of(loss->likelihoods);
  int64_t dims[PESTLE_MAX_RANK] = {pestle_onnx_dim(index, 0), 1};
  pestle_onnx_gather_t how = {
      .vector = rank, .mapped_count = 1, .mapped = {1}, .sizes = {1, 1}};
  how.batch[how.batch_count++] = 0;
  for (int32_t i = 2; i < rank; ++i) {
    dims[i] = pestle_onnx_dim(index, i - 1);
    how.batch[how.batch_count++] = i;
    how.sizes[i] = 1;
  }
  pestle_value_t* picked =
      pestle_onnx_gather(call, loss->likelihoods,
                         pestle_f_reshape(&call->f, index, rank, dims), &how);
  return pestle_f_reshape(&call->f, picked, rank - 1,
                          pestle_onnx_type(index)->dims);
}

static pestle_value_t* sum_all(const loss_t* loss, pestle_value_t* x) {
  pestle_onnx_call_t* call = loss->call;
  int64_t axes[PESTLE_MAX_RANK];
  if (!x) return NULL;
  pestle_onnx_set_real(call, x, 0, loss->size);
  x = pestle_onnx_fill_unreal(call, x, 1,
                              pestle_onnx_scalar(call, dtype_of(x), 0));
  for (int32_t i = 0; i < rank_of(x); ++i)
    axes[i] = i;
  return pestle_onnx_reduce(call, PESTLE_OP_ADD, x, axes, (size_t)rank_of(x),
                            false);
}

// The weight of each target, NULL for all 1; |*index| becomes one that lies
// inside of the classes.
static pestle_value_t* target_weights(const loss_t* loss,
                                      pestle_value_t** index) {
  pestle_onnx_call_t* call = loss->call;
  *index = loss->target;
  pestle_value_t* weights = NULL;
  if (!pestle_onnx_has(call, "ignore_index")) {
    return loss->weight ? pestle_onnx_take(call, loss->weight, *index, 0)
                        : NULL;
  }
  pestle_type_t scalar = {.dtype = PESTLE_I64};
  pestle_value_t* ignored = pestle_onnx_splat_int(
      call, &scalar, pestle_onnx_int(call, "ignore_index", -1));
  pestle_value_t* counts = pestle_f_ne(&call->f, loss->target, ignored);
  *index = pestle_f_select(&call->f, counts, loss->target,
                           pestle_onnx_splat_int(call, &scalar, 0));
  pestle_dtype_t dtype = dtype_of(loss->likelihoods);
  if (!loss->weight) return pestle_onnx_convert(call, counts, dtype);
  weights = pestle_onnx_take(call, loss->weight, *index, 0);
  return pestle_f_select(&call->f, counts, weights,
                         pestle_onnx_scalar(call, dtype, 0));
}

static pestle_value_t* reduced(const loss_t* loss) {
  pestle_onnx_call_t* call = loss->call;
  pestle_str_t how = pestle_onnx_string(call, "reduction", "mean");
  pestle_value_t* index;
  pestle_value_t* weights = target_weights(loss, &index);
  pestle_value_t* each = pestle_f_negate(&call->f, at_targets(loss, index));
  if (weights) each = mul(call, each, weights);
  if (pestle_str_equal_c(how, "none")) {
    pestle_onnx_set_real(call, each, 0, loss->size);
    return loss->size ? pestle_onnx_end_real(call, each) : each;
  }
  pestle_value_t* sum = sum_all(loss, each);
  if (pestle_str_equal_c(how, "sum")) return sum;
  if (!pestle_str_equal_c(how, "mean")) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "attribute 'reduction' is '%.*s', known are none, "
                            "sum and mean",
                            PESTLE_STR_ARG(how));
  }
  if (weights) return quotient(call, sum, sum_all(loss, weights));
  if (loss->size) {
    int64_t rest =
        pestle_type_count(pestle_onnx_type(index)) / pestle_onnx_dim(index, 0);
    pestle_value_t* all = pestle_onnx_size_times(call, loss->size, rest);
    return quotient(call, sum, pestle_onnx_convert(call, all, dtype_of(sum)));
  }
  return pestle_onnx_binary_f(
      call, PESTLE_OP_DIVIDE, sum,
      (double)pestle_type_count(pestle_onnx_type(index)));
}

void pestle_onnx_import_nll_loss(pestle_onnx_call_t* call) {
  loss_t loss = {.call = call, .likelihoods = call->inputs[0]};
  if (read_loss(&loss)) call->outputs[0] = reduced(&loss);
}

void pestle_onnx_import_softmax_cross_entropy(pestle_onnx_call_t* call) {
  loss_t loss = {.call = call};
  if (!read_loss(&loss)) return;
  loss.likelihoods =
      pestle_onnx_softmax(call, PESTLE_OP_LOG_SOFTMAX, call->inputs[0], 1);
  call->outputs[0] = reduced(&loss);
  if (!pestle_onnx_wants(call, 1)) return;
  pestle_onnx_set_real(call, loss.likelihoods, 0, loss.size);
  call->outputs[1] = loss.size ? pestle_onnx_end_real(call, loss.likelihoods)
                               : loss.likelihoods;
}

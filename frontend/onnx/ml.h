// SPDX-License-Identifier: Apache-2.0
// What the importers of ai.onnx.ml share: lists of numbers, class labels, and what
// is made of scores at the end.
#ifndef PESTLE_FRONTEND_ONNX_ML_H_
#define PESTLE_FRONTEND_ONNX_ML_H_

#include "frontend/onnx/ops.h"

// The numbers of the attribute |name|, a list of floats, or of the tensor
// |name|_as_tensor; none where there is neither. |wide| (may be NULL) becomes true
// where they are doubles.
typedef struct pestle_ml_numbers_t {
  const double* data;
  size_t count;
} pestle_ml_numbers_t;
pestle_ml_numbers_t pestle_ml_numbers(pestle_onnx_call_t* call,
                                      const char* name, bool* wide);
// A tensor of |dtype| with |dims|, of such numbers.
pestle_value_t* pestle_ml_table(pestle_onnx_call_t* call, pestle_dtype_t dtype,
                                int32_t rank, const int64_t* dims,
                                const double* values);

// |x| as rows of features, [rows, features], of which a list is one; its rank must
// be 1 or 2. NULL with an error kept.
pestle_value_t* pestle_ml_rows(pestle_onnx_call_t* call, pestle_value_t* x,
                               pestle_dtype_t dtype);

// --- Labels ---

typedef struct pestle_ml_labels_t {
  size_t count;
  const int64_t* ints;          // or NULL
  const pestle_str_t* strings;  // or NULL
} pestle_ml_labels_t;
// The attributes |ints| and |strings|, of which one may be there.
pestle_ml_labels_t pestle_ml_labels(pestle_onnx_call_t* call, const char* ints,
                                    const char* strings);
// The label of each number in |which|, i64.
pestle_value_t* pestle_ml_label_of(pestle_onnx_call_t* call,
                                   const pestle_ml_labels_t* labels,
                                   pestle_value_t* which);
// The first place of the greatest of |scores| [rows, classes]: i64 [rows].
pestle_value_t* pestle_ml_top(pestle_onnx_call_t* call, pestle_value_t* scores);
// 1 where |condition| is true, else 0, as i64.
pestle_value_t* pestle_ml_truth(pestle_onnx_call_t* call,
                                pestle_value_t* condition);

// --- Scores ---

typedef enum pestle_ml_post_e {
  PESTLE_ML_NONE,
  PESTLE_ML_SOFTMAX,
  PESTLE_ML_LOGISTIC,
  PESTLE_ML_SOFTMAX_ZERO,
  PESTLE_ML_PROBIT,
} pestle_ml_post_t;
// The attribute post_transform.
pestle_ml_post_t pestle_ml_post(pestle_onnx_call_t* call);
// |scores| [rows, classes] transformed. One score a row is only ever changed by
// PROBIT, as ONNX Runtime has it.
pestle_value_t* pestle_ml_transform(pestle_onnx_call_t* call,
                                    pestle_ml_post_t post,
                                    pestle_value_t* scores);
// One score a row, [rows, 1], as those of two classes, as ONNX Runtime 1.31 has it:
// of LOGISTIC the logistic function of [-s, s]; else [1 - s, s] where |complement|,
// [-s, s] where not.
pestle_value_t* pestle_ml_two_classes(pestle_onnx_call_t* call,
                                      pestle_ml_post_t post,
                                      pestle_value_t* score, bool complement);

#endif  // PESTLE_FRONTEND_ONNX_ML_H_

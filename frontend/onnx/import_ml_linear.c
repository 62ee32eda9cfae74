// SPDX-License-Identifier: Apache-2.0
// ai.onnx.ml: linear models and support vector machines. All are products of the
// rows and a constant matrix, and what a kernel function makes of them.
#include <math.h>

#include "frontend/onnx/ml.h"

// [rows, features] times the transposed [n, features].
static pestle_value_t* product(pestle_onnx_call_t* call, pestle_value_t* x,
                               pestle_value_t* w) {
  int64_t axis = 1;
  pestle_i64s_t last = {&axis, 1}, none = {0};
  return pestle_onnx_dot(call, x, w, none, none, last, last, dtype_of(x));
}

// The numbers as a matrix of |rows| rows; NULL with an error kept if |features|
// columns are not what that makes.
static pestle_value_t* matrix(pestle_onnx_call_t* call, const char* name,
                              pestle_ml_numbers_t numbers, int64_t rows,
                              int64_t features) {
  int64_t dims[] = {rows, features};
  int64_t count = (int64_t)numbers.count;
  if (rows < 1 || features < 1 || count / rows != features || count % rows) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "attribute '%s' has %zu numbers, not %lld rows of "
                            "%lld features",
                            name, numbers.count, (long long)rows,
                            (long long)features);
  }
  return pestle_ml_table(call, PESTLE_F32, 2, dims, numbers.data);
}

static pestle_value_t* list(pestle_onnx_call_t* call,
                            pestle_ml_numbers_t numbers, size_t count) {
  int64_t dims[] = {(int64_t)count};
  return pestle_ml_table(call, PESTLE_F32, 1, dims, numbers.data);
}

// --- Linear models ---

// x coefficients^T + intercepts, [rows, targets]; no intercepts are zeros.
static pestle_value_t* linear(pestle_onnx_call_t* call, pestle_value_t* x,
                              int64_t targets, pestle_ml_numbers_t intercepts) {
  pestle_ml_numbers_t numbers = pestle_ml_numbers(call, "coefficients", NULL);
  pestle_value_t* w =
      matrix(call, "coefficients", numbers, targets, pestle_onnx_dim(x, 1));
  pestle_value_t* y = product(call, x, w);
  if (!intercepts.count) return y;
  if ((int64_t)intercepts.count != targets) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "attribute 'intercepts' has %zu numbers for %lld "
                            "targets",
                            intercepts.count, (long long)targets);
  }
  pestle_value_t* b = list(call, intercepts, intercepts.count);
  return add(call, y, b);
}

void pestle_onnx_import_ml_linear_regressor(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call,
                         "coefficients intercepts post_transform targets"))
    return;
  pestle_value_t* x = pestle_ml_rows(call, call->inputs[0], PESTLE_F32);
  pestle_ml_numbers_t intercepts = pestle_ml_numbers(call, "intercepts", NULL);
  int64_t targets = pestle_onnx_int(call, "targets", 1);
  pestle_value_t* y = linear(call, x, targets, intercepts);
  if (!y) return;
  call->outputs[0] = pestle_ml_transform(call, pestle_ml_post(call), y);
}

// |scores| with numbers in the place of NaN, by which the first class wins whose score is
// NaN in front of all and none behind: ONNX Runtime's order, the text has none.
static pestle_value_t* without_nan(pestle_onnx_call_t* call,
                                   pestle_value_t* scores) {
  pestle_formula_t* f = &call->f;
  int64_t classes = pestle_onnx_dim(scores, 1);
  double* low = pestle_onnx_scratch(call, (size_t)(classes + 1) * sizeof(*low));
  if (!low || classes < 1) return scores;
  for (int64_t i = 0; i < classes; ++i)
    low[i] = i ? -(double)INFINITY : (double)INFINITY;
  pestle_value_t* instead =
      pestle_ml_table(call, dtype_of(scores), 1, &classes, low);
  instead =
      pestle_onnx_broadcast(call, instead, 2, pestle_onnx_type(scores)->dims);
  return pestle_f_select(f, pestle_f_eq(f, scores, scores), scores, instead);
}

// Of one score a row: class 1 where it is greater than |limit|.
static pestle_value_t* one_of_two(pestle_onnx_call_t* call,
                                  pestle_value_t* score, double limit) {
  int64_t rows = pestle_onnx_dim(score, 0);
  pestle_value_t* yes = pestle_onnx_binary_f(call, PESTLE_OP_GT, score, limit);
  return pestle_f_reshape(&call->f, pestle_ml_truth(call, yes), 1, &rows);
}

void pestle_onnx_import_ml_linear_classifier(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call,
                         "classlabels_ints classlabels_strings coefficients "
                         "intercepts multi_class post_transform"))
    return;
  pestle_value_t* x = pestle_ml_rows(call, call->inputs[0], PESTLE_F32);
  pestle_ml_labels_t labels =
      pestle_ml_labels(call, "classlabels_ints", "classlabels_strings");
  pestle_ml_numbers_t intercepts = pestle_ml_numbers(call, "intercepts", NULL);
  int64_t targets = (int64_t)intercepts.count;
  if (!targets) {
    size_t count = pestle_ml_numbers(call, "coefficients", NULL).count;
    int64_t features = pestle_onnx_dim(x, 1);
    targets = features > 0 ? (int64_t)count / features : 0;
  }
  pestle_value_t* y = linear(call, x, targets, intercepts);
  pestle_ml_post_t post = pestle_ml_post(call);
  if (!y) return;
  if (targets > 1 && labels.count != (size_t)targets) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "it has %zu class labels for %lld scores", labels.count,
                     (long long)targets);
    return;
  }
  // One score is of two classes, called 0 and 1 where they have no two labels.
  static const int64_t own[] = {0, 1};
  bool pair = targets == 1 && labels.count == 2;
  if (targets == 1 && !pair) {
    if (labels.strings) {
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                       "it has %zu class labels for one score, which is of two "
                       "classes",
                       labels.count);
      return;
    }
    labels = (pestle_ml_labels_t){.count = 2, .ints = own};
  }
  pestle_value_t* which = targets == 1
                              ? one_of_two(call, y, 0)
                              : pestle_ml_top(call, without_nan(call, y));
  call->outputs[0] = pestle_ml_label_of(call, &labels, which);
  if (pair && post == PESTLE_ML_PROBIT) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "post_transform PROBIT of one score and two labels");
    return;
  }
  // ONNX Runtime's: one score becomes two, and LOGISTIC alone is made of them.
  call->outputs[1] = pair ? pestle_ml_two_classes(call, post, y, true)
                          : pestle_ml_transform(call, post, y);
}

// --- Support vectors ---

typedef struct svm_t {
  const char* kind;  // of the kernel function
  double gamma, coef0, degree;
  pestle_ml_numbers_t rho, coefficients, vectors;
} svm_t;

static bool read_svm(pestle_onnx_call_t* call, svm_t* s) {
  static const char* const kinds[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
  pestle_str_t kind = pestle_onnx_string(call, "kernel_type", "LINEAR");
  for (size_t i = 0; i < 4; ++i) {
    if (pestle_str_equal_c(kind, kinds[i])) s->kind = kinds[i];
  }
  if (!s->kind) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "attribute 'kernel_type' is '%.*s', known are LINEAR, "
                     "POLY, RBF and SIGMOID",
                     PESTLE_STR_ARG(kind));
  }
  pestle_onnx_floats_t params = pestle_onnx_floats(call, "kernel_params");
  if (params.count >= 3) {
    s->gamma = (double)params.data[0];
    s->coef0 = (double)params.data[1];
    s->degree = (double)params.data[2];
  } else if (params.count) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "attribute 'kernel_params' has %zu numbers; gamma, coef0 "
                     "and degree are needed",
                     params.count);
  }
  s->rho = pestle_ml_numbers(call, "rho", NULL);
  s->coefficients = pestle_ml_numbers(call, "coefficients", NULL);
  s->vectors = pestle_ml_numbers(call, "support_vectors", NULL);
  if (!s->rho.count || !s->coefficients.count) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "it needs the attributes 'rho' and 'coefficients'");
  }
  return !call->f.status;
}

// exp(-gamma |x - v|^2) of each row and vector. Vectors lie side by side: a feature of
// many of them is taken at once.
static pestle_value_t* rbf(pestle_onnx_call_t* call, const svm_t* s,
                           pestle_value_t* x, pestle_value_t* v) {
  int64_t axis = 1;
  int64_t left[] = {pestle_onnx_dim(x, 0), pestle_onnx_dim(x, 1), 1};
  int64_t right[] = {1, pestle_onnx_dim(v, 1), pestle_onnx_dim(v, 0)};
  x = pestle_f_reshape(&call->f, x, 3, left);
  v = pestle_f_transpose_matrix(&call->f, v);
  v = pestle_f_reshape(&call->f, v, 3, right);
  pestle_value_t* d = sub(call, x, v);
  d = pestle_onnx_reduce(call, PESTLE_OP_ADD, mul(call, d, d), &axis, 1, false);
  return pestle_f_exponential(&call->f, times(call, d, -s->gamma));
}

// The kernel function of each row of |x| and each vector: [rows, vectors].
static pestle_value_t* kernel(pestle_onnx_call_t* call, const svm_t* s,
                              pestle_value_t* x, pestle_value_t* v) {
  pestle_formula_t* f = &call->f;
  if (s->kind[0] == 'R') return rbf(call, s, x, v);
  pestle_value_t* k = product(call, x, v);
  if (s->kind[0] == 'L') return k;
  k = pestle_f_plus(f, times(call, k, s->gamma), s->coef0);
  if (s->kind[0] == 'S') return pestle_f_tanh(f, k);
  if (s->degree == 2) return mul(call, k, k);
  if (s->degree == 3) {
    pestle_value_t* square = mul(call, k, k);
    return mul(call, square, k);
  }
  return pestle_onnx_binary_f(call, PESTLE_OP_POWER, k, s->degree);
}

void pestle_onnx_import_ml_svm_regressor(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call,
                         "coefficients kernel_params kernel_type n_supports "
                         "one_class post_transform rho support_vectors"))
    return;
  svm_t s = {0};
  pestle_value_t* x = pestle_ml_rows(call, call->inputs[0], PESTLE_F32);
  int64_t count = pestle_onnx_int(call, "n_supports", 0);
  pestle_ml_post_t post = pestle_ml_post(call);
  if (!x || !read_svm(call, &s)) return;
  int64_t features = pestle_onnx_dim(x, 1);
  pestle_value_t *w, *y;
  if (count > 0) {
    w = matrix(call, "support_vectors", s.vectors, count, features);
    y = kernel(call, &s, x, w);
    w = matrix(call, "coefficients", s.coefficients, 1, count);
    y = product(call, y, w);
  } else {
    w = matrix(call, "coefficients", s.coefficients, 1, features);
    y = product(call, x, w);
  }
  y = pestle_f_plus(&call->f, y, s.rho.data[0]);
  if (pestle_onnx_int(call, "one_class", 0)) {
    pestle_value_t* inside = pestle_onnx_binary_f(call, PESTLE_OP_GT, y, 0);
    pestle_value_t* one = splat_like(call, y, 1);
    y = pestle_f_select(&call->f, inside, one, splat_like(call, y, -1));
  }
  // ONNX Runtime leaves the one score as it is whatever post_transform says.
  call->outputs[0] = post == PESTLE_ML_PROBIT ? NULL : y;
  if (post != PESTLE_ML_PROBIT) return;
  pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                   "post_transform PROBIT of a support vector regressor");
}

typedef struct svc_t {
  svm_t svm;
  pestle_i64s_t per_class;
  pestle_ml_labels_t labels;
  int64_t classes, vectors, pairs;
  pestle_ml_numbers_t a, b;  // of the probabilities, one a pair; or none
  bool positive;             // no coefficient is below 0
} svc_t;

static bool read_svc(pestle_onnx_call_t* call, svc_t* c) {
  if (!read_svm(call, &c->svm)) return false;
  c->labels = pestle_ml_labels(call, "classlabels_ints", "classlabels_strings");
  c->per_class = pestle_onnx_ints(call, "vectors_per_class");
  c->a = pestle_ml_numbers(call, "prob_a", NULL);
  c->b = pestle_ml_numbers(call, "prob_b", NULL);
  c->classes = (int64_t)c->labels.count;
  c->pairs = c->classes * (c->classes - 1) / 2;
  c->positive = true;
  for (size_t i = 0; i < c->svm.coefficients.count; ++i)
    c->positive = c->positive && c->svm.coefficients.data[i] >= 0;
  bool fits = c->classes > 0 && c->classes < 65536;
  for (size_t i = 0; i < c->per_class.count; ++i) {
    fits = fits && c->per_class.data[i] >= 0 &&
           c->per_class.data[i] < PESTLE_ONNX_MAX_INDICES;
    if (fits) c->vectors += c->per_class.data[i];
  }
  if (c->vectors) {
    size_t pairs = (size_t)c->pairs;
    fits = fits && (int64_t)c->per_class.count == c->classes &&
           c->svm.rho.count >= pairs && c->a.count == c->b.count &&
           (!c->a.count || c->a.count >= pairs) &&
           (int64_t)c->svm.coefficients.count >= (c->classes - 1) * c->vectors;
  }
  if (call->f.status) return false;
  if (!fits) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "%lld class labels, %lld support vectors, %zu "
                     "coefficients, %zu rho, %zu prob_a and %zu prob_b do not "
                     "fit each other",
                     (long long)c->classes, (long long)c->vectors,
                     c->svm.coefficients.count, c->svm.rho.count, c->a.count,
                     c->b.count);
  }
  return fits;
}

// What each vector counts for each pair of classes: [pairs, vectors]. Pair (i, j)
// takes row j - 1 for the vectors of class i, and row i for those of j.
static pestle_value_t* pair_weights(pestle_onnx_call_t* call, const svc_t* c) {
  size_t vectors = (size_t)c->vectors;
  double* w = pestle_onnx_scratch(
      call, ((size_t)c->pairs * vectors + 1) * sizeof(double));
  int64_t* starts =
      pestle_onnx_scratch(call, (size_t)(c->classes + 1) * sizeof(int64_t));
  if (!w || !starts) return NULL;
  for (int64_t i = 0; i < c->classes; ++i)
    starts[i + 1] = starts[i] + c->per_class.data[i];
  double* row = w;
  const double* all = c->svm.coefficients.data;
  for (int64_t i = 0; i < c->classes; ++i) {
    for (int64_t j = i + 1; j < c->classes; ++j, row += vectors) {
      for (int64_t v = starts[i]; v < starts[i + 1]; ++v)
        row[v] = all[(j - 1) * c->vectors + v];
      for (int64_t v = starts[j]; v < starts[j + 1]; ++v)
        row[v] = all[i * c->vectors + v];
    }
  }
  int64_t dims[] = {c->pairs, c->vectors};
  return pestle_ml_table(call, PESTLE_F32, 2, dims, w);
}

// The class that wins most pairs, the first of those: i64 [rows]. Of a pair whose
// score is above 0 the first class wins.
static pestle_value_t* votes(pestle_onnx_call_t* call, const svc_t* c,
                             pestle_value_t* scores) {
  size_t size = (size_t)(c->classes * c->pairs);
  double* first = pestle_onnx_scratch(call, (size + 1) * sizeof(double));
  double* second = pestle_onnx_scratch(call, (size + 1) * sizeof(double));
  if (!first || !second) return NULL;
  int64_t pair = 0, dims[] = {c->classes, c->pairs};
  for (int64_t i = 0; i < c->classes; ++i) {
    for (int64_t j = i + 1; j < c->classes; ++j, ++pair) {
      first[i * c->pairs + pair] = 1;
      second[j * c->pairs + pair] = 1;
    }
  }
  pestle_value_t* won = pestle_onnx_binary_f(call, PESTLE_OP_GT, scores, 0);
  won = pestle_onnx_convert(call, won, PESTLE_F32);
  pestle_value_t* lost = sub(call, splat_like(call, won, 1), won);
  pestle_value_t* w = pestle_ml_table(call, PESTLE_F32, 2, dims, first);
  pestle_value_t* count = product(call, won, w);
  w = pestle_ml_table(call, PESTLE_F32, 2, dims, second);
  return pestle_ml_top(call, add(call, count, product(call, lost, w)));
}

// --- Probabilities of pairs to those of classes ---

typedef struct coupling_t {
  int64_t rows, n;
} coupling_t;

static pestle_value_t* column(pestle_onnx_call_t* call, pestle_value_t* a,
                              int64_t at) {
  return pestle_onnx_slice_axis(call, a, 1, at, at + 1, 1);
}

// One trip of Wu, Lin and Weng's second method over all rows: values[0] is p
// [rows, n], values[1] Q [rows, n n], values[2] whether any row is not done: one whose
// error is small enough stays.
static void couple(pestle_onnx_call_t* call, void* self, pestle_value_t* i,
                   pestle_value_t** values) {
  (void)i;
  const coupling_t* c = self;
  pestle_formula_t* f = &call->f;
  int64_t n = c->n, axis = 2, one = 1, both[] = {0, 1};
  int64_t matrix_dims[] = {c->rows, n, n}, row_dims[] = {c->rows, 1, n};
  pestle_value_t *p = values[0], *q = values[1];
  pestle_value_t* whole = pestle_f_reshape(f, q, 3, matrix_dims);
  pestle_value_t* spread = pestle_f_reshape(f, p, 3, row_dims);
  pestle_value_t* qp = pestle_onnx_reduce(
      call, PESTLE_OP_ADD, mul(call, whole, spread), &axis, 1, false);
  pestle_value_t* pqp =
      pestle_onnx_reduce(call, PESTLE_OP_ADD, mul(call, p, qp), &one, 1, true);
  pestle_value_t* error = pestle_f_abs(f, sub(call, qp, pqp));
  error = pestle_onnx_reduce(call, PESTLE_OP_MAXIMUM, error, &one, 1, true);
  pestle_value_t* open = pestle_onnx_binary_f(call, PESTLE_OP_GE, error,
                                              (double)(0.005f / (float)n));
  for (int64_t t = 0; t < n; ++t) {
    pestle_value_t* own = column(call, q, t * n + t);
    pestle_value_t* row =
        pestle_onnx_slice_axis(call, q, 1, t * n, t * n + n, 1);
    pestle_value_t* at = column(call, qp, t);
    pestle_value_t* step = quotient(call, sub(call, pqp, at), own);
    pestle_value_t* scale = pestle_f_plus(f, step, 1);
    pestle_type_t type = {.dtype = PESTLE_I64, .rank = 2, .dims = {1, n}};
    pestle_value_t* here = pestle_onnx_binary_f(
        call, PESTLE_OP_EQ, pestle_f_iota(f, &type, 1), (double)t);
    pestle_value_t* moved = add(call, p, step);
    p = pestle_f_select(f, here, moved, p);
    pestle_value_t* more = mul(call, step, own);
    more = add(call, more, times(call, at, 2));
    pqp = add(call, pqp, mul(call, step, more));
    pqp = quotient(call, quotient(call, pqp, scale), scale);
    qp = quotient(call, add(call, qp, mul(call, step, row)), scale);
    p = quotient(call, p, scale);
  }
  values[0] = pestle_f_select(f, open, p, values[0]);
  values[2] = pestle_onnx_reduce(call, PESTLE_OP_OR, open, both, 2, false);
}

// Q of the probabilities |r| [rows, pairs] that the first of each pair wins.
static pestle_value_t* coupling_matrix(pestle_onnx_call_t* call, const svc_t* c,
                                       pestle_value_t* r) {
  int64_t n = c->classes;
  pestle_value_t** wins =
      pestle_onnx_scratch(call, (size_t)(n * n + 1) * sizeof(pestle_value_t*));
  pestle_value_t** parts =
      pestle_onnx_scratch(call, (size_t)(n * n + 1) * sizeof(pestle_value_t*));
  if (!wins || !parts) return NULL;
  for (int64_t i = 0, pair = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j, ++pair) {
      pestle_value_t* win = column(call, r, pair);
      wins[i * n + j] = win;
      wins[j * n + i] = sub(call, splat_like(call, win, 1), win);
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    pestle_value_t* sum = NULL;
    for (int64_t j = 0; j < n; ++j) {
      if (i == j) continue;
      pestle_value_t* w = wins[j * n + i];
      pestle_value_t* square = mul(call, w, w);
      sum = sum ? add(call, sum, square) : square;
      parts[i * n + j] =
          mul(call, pestle_f_negate(&call->f, w), wins[i * n + j]);
    }
    parts[i * n + i] = sum;
  }
  return pestle_f_concatenate(&call->f, parts, (size_t)(n * n), 1);
}

// The most classes whose probabilities are coupled: a trip is unrolled over them.
#define MOST_COUPLED 64

static pestle_value_t* probabilities(pestle_onnx_call_t* call, const svc_t* c,
                                     pestle_value_t* scores) {
  pestle_formula_t* f = &call->f;
  if (c->classes > MOST_COUPLED) {
    return pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                            "probabilities of %lld classes; %d are the most",
                            (long long)c->classes, MOST_COUPLED);
  }
  pestle_value_t* a = list(call, c->a, (size_t)c->pairs);
  pestle_value_t* r = mul(call, scores, a);
  r = add(call, r, list(call, c->b, (size_t)c->pairs));
  r = pestle_f_logistic(f, pestle_f_negate(f, r));
  r = pestle_f_maximum(f, r, splat_like(call, r, (double)1e-7f));
  r = pestle_f_minimum(f, r, splat_like(call, r, (double)(1 - 1e-7f)));
  coupling_t how = {.rows = pestle_onnx_dim(scores, 0), .n = c->classes};
  pestle_type_t type = {
      .dtype = PESTLE_F32, .rank = 2, .dims = {how.rows, how.n}};
  pestle_type_t truth = {.dtype = PESTLE_I1};
  pestle_value_t* values[3];
  values[0] = pestle_onnx_splat(call, &type, (double)(1.0f / (float)how.n));
  values[1] = coupling_matrix(call, c, r);
  if (!values[1]) return NULL;
  values[2] = pestle_onnx_splat_int(call, &truth, 1);
  pestle_onnx_for_while(call, 100, values, 3, couple, &how);
  return values[0];
}

// The linear form: a row of coefficients a class, and rho[0] for all.
static void linear_svc(pestle_onnx_call_t* call, const svc_t* c,
                       pestle_value_t* x) {
  pestle_formula_t* f = &call->f;
  int64_t axis = 1;
  pestle_value_t* w = matrix(call, "coefficients", c->svm.coefficients,
                             c->classes, pestle_onnx_dim(x, 1));
  pestle_value_t* y = product(call, x, w);
  y = pestle_f_plus(f, y, c->svm.rho.data[0]);
  pestle_value_t* which = pestle_ml_top(call, y);
  if (c->classes == 2) {
    // ONNX Runtime's rule for two.
    pestle_value_t* best =
        pestle_onnx_reduce(call, PESTLE_OP_MAXIMUM, y, &axis, 1, false);
    pestle_value_t* second =
        pestle_onnx_binary_f(call, c->positive ? PESTLE_OP_GE : PESTLE_OP_GT,
                             best, c->positive ? 0.5 : 0);
    pestle_value_t* one = pestle_ml_truth(call, second);
    which = pestle_f_maximum(f, which, one);
  }
  call->outputs[0] = pestle_ml_label_of(call, &c->labels, which);
  call->outputs[1] = pestle_ml_transform(call, pestle_ml_post(call), y);
}

void pestle_onnx_import_ml_svm_classifier(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(
          call,
          "classlabels_ints classlabels_strings coefficients "
          "kernel_params kernel_type post_transform prob_a prob_b rho "
          "support_vectors vectors_per_class"))
    return;
  svc_t c = {0};
  pestle_value_t* x = pestle_ml_rows(call, call->inputs[0], PESTLE_F32);
  pestle_ml_post_t post = pestle_ml_post(call);
  if (!x || !read_svc(call, &c)) return;
  if (!c.vectors) {
    linear_svc(call, &c, x);
    return;
  }
  if (c.classes < 2) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "support vectors of one class");
    return;
  }
  pestle_value_t* v = matrix(call, "support_vectors", c.svm.vectors, c.vectors,
                             pestle_onnx_dim(x, 1));
  pestle_value_t* y = kernel(call, &c.svm, x, v);
  y = product(call, y, pair_weights(call, &c));
  y = add(call, y, list(call, c.svm.rho, (size_t)c.pairs));
  if (!y) return;
  call->outputs[0] = pestle_ml_label_of(call, &c.labels, votes(call, &c, y));
  if (c.a.count) {
    y = probabilities(call, &c, y);
    call->outputs[1] = pestle_ml_transform(call, post, y);
  } else if (c.classes > 2) {
    call->outputs[1] = pestle_ml_transform(call, post, y);
  } else if (post == PESTLE_ML_PROBIT) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "post_transform PROBIT of the score of two classes");
  } else {
    // ONNX Runtime's: SOFTMAX and SOFTMAX_ZERO are not made, but decide how one
    // score becomes two.
    call->outputs[1] =
        pestle_ml_two_classes(call, post, y, post != PESTLE_ML_NONE);
  }
}

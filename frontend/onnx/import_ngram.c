// SPDX-License-Identifier: Apache-2.0
// TfIdfVectorizer over integers or strings: how often each n-gram of a pool occurs in a
// row, with up to max_skip_count elements left out between two of its own. For
// one length and one skip that is a comparison of every start with every
// n-gram, and a sum over the starts.
#include "base/mem.h"
#include "frontend/onnx/bounded.h"
#include "frontend/onnx/ops.h"

#define MOST_COMPARISONS ((int64_t)1 << 28)
#define MOST_STEPS 1024

typedef struct ngrams_t {
  pestle_onnx_call_t* call;
  pestle_value_t* x;  // i64 [rows, length]
  int64_t rows, length, shortest, longest, skips;
  pestle_i64s_t pool, starts, columns;
} ngrams_t;

// The pool, of strings as their ids; the input must be of its kind.
static void read_pool(ngrams_t* g, pestle_value_t* x) {
  pestle_onnx_call_t* call = g->call;
  const pestle_onnx_attr_t* attr =
      pestle_onnx_node_attr(call->node, "pool_strings");
  bool text = attr && attr->kind == PESTLE_ONNX_ATTR_STRINGS && attr->count;
  g->pool = pestle_onnx_ints(call, "pool_int64s");
  if (text != pestle_onnx_is_text(call->import, x) || (text && g->pool.count)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its pool and its input are not both of integers or both "
                     "of strings");
    return;
  }
  if (!text) return;
  int64_t* ids = pestle_onnx_scratch(call, attr->count * sizeof(*ids));
  if (!ids) return;
  for (size_t i = 0; i < attr->count; ++i)
    ids[i] = pestle_onnx_id_of(call, attr->strings[i]);
  g->pool = (pestle_i64s_t){ids, attr->count};
}

static bool read_ngrams(ngrams_t* g) {
  pestle_onnx_call_t* call = g->call;
  pestle_value_t* x = call->inputs[0];
  g->shortest = pestle_onnx_int(call, "min_gram_length", 1);
  g->longest = pestle_onnx_int(call, "max_gram_length", 1);
  g->skips = pestle_onnx_int(call, "max_skip_count", 0);
  read_pool(g, x);
  g->starts = pestle_onnx_ints(call, "ngram_counts");
  g->columns = pestle_onnx_ints(call, "ngram_indexes");
  g->rows = rank_of(x) == 2 ? pestle_onnx_dim(x, 0) : 1;
  g->length = pestle_onnx_dim(x, rank_of(x) - 1);
  if (!g->pool.count || rank_of(x) > 2 ||
      !pestle_dtype_is(dtype_of(x), PESTLE_KIND_INT)) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "only integers or strings, one row or several, with a "
                     "pool are supported");
  } else if (g->shortest < 1 || g->longest < g->shortest || g->skips < 0 ||
             (g->longest > MOST_STEPS || g->skips > MOST_STEPS ||
              g->longest * (g->skips + 1) > MOST_STEPS)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "n-grams of %lld to %lld with %lld skips make no sense",
                     (long long)g->shortest, (long long)g->longest,
                     (long long)g->skips);
  }
  int64_t dims[] = {g->rows, g->length};
  g->x = pestle_f_reshape(&call->f, pestle_onnx_convert(call, x, PESTLE_I64), 2,
                          dims);
  return !call->f.status;
}

// The pool's n-grams of |n|: their first element and how many there are. The
// elements must fit, and each have a column.
static bool ngrams_of(const ngrams_t* g, int64_t n, size_t* first,
                      size_t* count, size_t* first_column) {
  *count = 0;
  size_t column = 0;
  for (size_t i = 0; i < g->starts.count; ++i) {
    int64_t begin = g->starts.data[i], size = (int64_t)i + 1;
    int64_t end = i + 1 < g->starts.count ? g->starts.data[i + 1]
                                          : (int64_t)g->pool.count;
    if (begin < 0 || end < begin || end > (int64_t)g->pool.count) return false;
    size_t grams = (size_t)((end - begin) / size);
    if (size == n) {
      *first = (size_t)begin;
      *count = grams;
      *first_column = column;
    }
    column += grams;
  }
  return column == g->columns.count;
}

// Element |k| of the n-grams: i64 [1, 1, count].
static pestle_value_t* pool_column(const ngrams_t* g, int64_t n, int64_t k,
                                   size_t first, size_t count) {
  pestle_onnx_call_t* call = g->call;
  int64_t* values = pestle_onnx_scratch(call, (count + 1) * sizeof(int64_t));
  if (!values) return NULL;
  for (size_t i = 0; i < count; ++i)
    values[i] = g->pool.data[first + i * (size_t)n + (size_t)k];
  int64_t dims[] = {1, 1, (int64_t)count};
  return pestle_f_reshape(&call->f, pestle_onnx_int_list(call, values, count),
                          3, dims);
}

// How often each n-gram occurs with steps of |step|: f32 [rows, count].
static pestle_value_t* occurrences(const ngrams_t* g, int64_t n, int64_t step,
                                   size_t first, size_t count) {
  pestle_onnx_call_t* call = g->call;
  int64_t windows = g->length - (n - 1) * step, axis = 1;
  pestle_value_t* all = NULL;
  if (windows < 1) return NULL;
  if (windows > MOST_COMPARISONS / (int64_t)count / (g->rows + 1)) {
    return pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                            "%zu n-grams sought at %lld places of %lld rows",
                            count, (long long)windows, (long long)g->rows);
  }
  int64_t dims[] = {g->rows, windows, 1};
  for (int64_t k = 0; k < n; ++k) {
    pestle_value_t* x =
        pestle_onnx_slice_axis(call, g->x, 1, k * step, k * step + windows, 1);
    pestle_value_t* same =
        pestle_f_eq(&call->f, pestle_f_reshape(&call->f, x, 3, dims),
                    pool_column(g, n, k, first, count));
    all = all ? pestle_f_and(&call->f, all, same) : same;
  }
  return pestle_onnx_reduce(call, PESTLE_OP_ADD,
                            pestle_onnx_convert(call, all, PESTLE_F32), &axis,
                            1, false);
}

// The counts of all n-grams, in the pool's order: f32 [rows, n-grams].
static pestle_value_t* count_all(const ngrams_t* g) {
  pestle_onnx_call_t* call = g->call;
  pestle_value_t** parts = pestle_onnx_scratch(
      call, (g->starts.count + 1) * sizeof(pestle_value_t*));
  size_t used = 0;
  for (size_t i = 0; parts && i < g->starts.count && !call->f.status; ++i) {
    int64_t n = (int64_t)i + 1;
    size_t first = 0, count, column;
    if (!ngrams_of(g, n, &first, &count, &column)) {
      return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                              "its ngram_counts and ngram_indexes do not fit "
                              "its pool");
    }
    if (!count) continue;
    pestle_type_t type = {
        .dtype = PESTLE_F32, .rank = 2, .dims = {g->rows, (int64_t)count}};
    pestle_value_t* sum = pestle_onnx_splat(call, &type, 0);
    // A single element is the same with every skip, and counts once.
    int64_t steps = n == 1 ? 1 : g->skips + 1;
    if (n < g->shortest || n > g->longest) steps = 0;
    for (int64_t step = 1; step <= steps; ++step) {
      pestle_value_t* found = occurrences(g, n, step, first, count);
      if (found) sum = add(call, sum, found);
    }
    parts[used++] = sum;
  }
  if (call->f.status || !used) return NULL;
  return pestle_f_concatenate(&call->f, parts, used, 1);
}

// The n-grams' counts in their columns; columns of no n-gram are 0.
static pestle_value_t* to_columns(const ngrams_t* g, pestle_value_t* counts,
                                  int64_t width) {
  pestle_onnx_call_t* call = g->call;
  int64_t* sources =
      pestle_onnx_scratch(call, (size_t)(width + 1) * sizeof(int64_t));
  if (!sources || !counts) return NULL;
  int64_t none = (int64_t)g->columns.count;
  for (int64_t i = 0; i < width; ++i)
    sources[i] = none;
  for (size_t i = 0; i < g->columns.count; ++i) {
    int64_t* source = &sources[g->columns.data[i]];
    if (*source != none) {
      return pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                              "two n-grams of column %lld",
                              (long long)g->columns.data[i]);
    }
    *source = (int64_t)i;
  }
  const int64_t low[] = {0, 0}, high[] = {0, 1};
  counts =
      pestle_f_pad(&call->f, counts, pestle_onnx_scalar(call, PESTLE_F32, 0),
                   low, high, NULL);
  return pestle_onnx_take_list(call, counts, sources, (size_t)width, 1);
}

// f32 [1, n-grams], in the pool's order as the counts are.
static pestle_value_t* gram_weights(const ngrams_t* g) {
  pestle_onnx_call_t* call = g->call;
  size_t count = g->columns.count;
  const pestle_onnx_attr_t* attr = pestle_onnx_node_attr(call->node, "weights");
  if (!attr) return NULL;
  pestle_type_t type = {
      .dtype = PESTLE_F32, .rank = 2, .dims = {1, (int64_t)count}};
  double* values = pestle_onnx_scratch(call, (count + 1) * sizeof(double));
  if (!values) return NULL;
  if (attr->kind != PESTLE_ONNX_ATTR_FLOATS || attr->count != count) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "attribute 'weights' must have a float for each "
                            "of %zu n-grams",
                            count);
  }
  for (size_t i = 0; i < count; ++i)
    values[i] = (double)attr->floats[i];
  return pestle_onnx_numbers(call, &type, values);
}

static pestle_value_t* weighted(const ngrams_t* g, pestle_value_t* counts) {
  pestle_onnx_call_t* call = g->call;
  pestle_str_t mode = pestle_onnx_string(call, "mode", "TF");
  if (pestle_str_equal_c(mode, "TF")) return counts;
  bool idf = pestle_str_equal_c(mode, "IDF");
  if (!idf && !pestle_str_equal_c(mode, "TFIDF")) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "attribute 'mode' is '%.*s', known are TF, IDF and "
                            "TFIDF",
                            PESTLE_STR_ARG(mode));
  }
  if (idf) {
    counts = pestle_onnx_convert(
        call, pestle_onnx_binary_f(call, PESTLE_OP_GT, counts, 0), PESTLE_F32);
  }
  pestle_value_t* weights = gram_weights(g);
  return weights ? mul(call, counts, weights) : counts;
}

static void count_ngrams(pestle_onnx_call_t* call) {
  ngrams_t g = {.call = call};
  pestle_value_t* x = call->inputs[0];
  int32_t last = rank_of(x) - 1;
  pestle_value_t* rows =
      last > 0 ? pestle_onnx_real_size(call->import, x, 0) : NULL;
  // What lies behind the real end of a row is in no n-gram, as no string is; of numbers
  // none is free for it.
  if (last >= 0 && pestle_onnx_is_text(call->import, x)) {
    call->inputs[0] = pestle_onnx_mark_text(
        call,
        pestle_onnx_fill_unreal(call, x, 1u << last,
                                pestle_onnx_scalar(call, PESTLE_I32, -1)));
  } else if (!pestle_onnx_allow_real(call, 0, last > 0 ? 1 : 0)) {
    return;
  }
  if (!read_ngrams(&g)) return;
  int64_t width = 0;
  for (size_t i = 0; i < g.columns.count; ++i) {
    int64_t column = g.columns.data[i];
    if (column < 0 || column >= PESTLE_ONNX_MAX_INDICES) {
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                       "attribute 'ngram_indexes' holds %lld",
                       (long long)column);
      return;
    }
    if (column >= width) width = column + 1;
  }
  pestle_value_t* y = to_columns(&g, weighted(&g, count_all(&g)), width);
  if (last == 0) y = pestle_f_reshape(&call->f, y, 1, &width);
  pestle_onnx_set_real(call, y, 0, rows);
  call->outputs[0] = rows ? pestle_onnx_end_real(call, y) : y;
}

static void count_words(pestle_onnx_call_t* call) {
  if (pestle_onnx_mark_text(call, call->inputs[0])) count_ngrams(call);
}

void pestle_onnx_import_tf_idf(pestle_onnx_call_t* call) {
  bool text = pestle_onnx_is_text(call->import, call->inputs[0]);
  pestle_onnx_by_size(call, text ? count_words : count_ngrams);
}

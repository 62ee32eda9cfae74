// SPDX-License-Identifier: Apache-2.0
// Matrix products and Einsum.
#include "base/mem.h"
#include "frontend/onnx/bounded.h"
#include "frontend/onnx/ops.h"

// Rows behind the real ones give rows behind them; nothing else may be bounded.
static void keep_rows(pestle_onnx_call_t* call) {
  const pestle_onnx_import_t* import = call->import;
  const pestle_value_t *a = call->inputs[0], *b = call->inputs[1];
  if (!pestle_onnx_real(import, a) && !pestle_onnx_real(import, b)) return;
  int32_t last = rank_of(a) - 1;
  if (pestle_onnx_real(import, b) || rank_of(b) > 2 ||
      pestle_onnx_real_size(import, a, last)) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "extents that only a run tells are taken along rows of "
                     "its first matrix alone, and with one second matrix");
    return;
  }
  for (int32_t i = 0; i < last; ++i) {
    pestle_onnx_set_real(call, call->outputs[0], i,
                         pestle_onnx_real_size(import, a, i));
  }
}

void pestle_onnx_import_matmul(pestle_onnx_call_t* call) {
  call->outputs[0] = pestle_onnx_matmul(call, call->inputs[0], call->inputs[1],
                                        dtype_of(call->inputs[0]));
  if (!call->f.status) keep_rows(call);
}

// Which of A's axes becomes rows may be bounded, and C's with it.
static void gemm_real(pestle_onnx_call_t* call, int64_t a_axis,
                      const pestle_value_t* c) {
  const pestle_onnx_import_t* import = call->import;
  const pestle_value_t *a = call->inputs[0], *b = call->inputs[1];
  pestle_value_t* rows = pestle_onnx_real_size(import, a, 1 - a_axis);
  bool fits =
      !pestle_onnx_real_size(import, a, a_axis) && !pestle_onnx_real(import, b);
  if (c && pestle_onnx_real(import, c)) {
    fits = fits && rank_of(c) == 2 && !pestle_onnx_real_size(import, c, 1) &&
           pestle_onnx_same_size(pestle_onnx_real_size(import, c, 0), rows);
  }
  if (!fits) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "an extent that only a run tells must be that of rows of "
                     "its first matrix alone");
  }
  pestle_onnx_set_real(call, call->outputs[0], 0, rows);
}

// Transposed operands are contracted over their other axis, not moved.
void pestle_onnx_import_gemm(pestle_onnx_call_t* call) {
  pestle_value_t *a = call->inputs[0], *b = call->inputs[1];
  pestle_value_t* c = pestle_onnx_input(call, 2);
  double alpha = pestle_onnx_float(call, "alpha", 1);
  double beta = pestle_onnx_float(call, "beta", 1);
  int64_t a_axis = pestle_onnx_int(call, "transA", 0) ? 0 : 1;
  int64_t b_axis = pestle_onnx_int(call, "transB", 0) ? 1 : 0;
  if (rank_of(a) != 2 || rank_of(b) != 2) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "inputs A and B must be matrices");
    return;
  }
  pestle_value_t* y = pestle_onnx_dot(
      call, a, b, (pestle_i64s_t){0}, (pestle_i64s_t){0},
      (pestle_i64s_t){&a_axis, 1}, (pestle_i64s_t){&b_axis, 1}, dtype_of(a));
  if (alpha != 1) y = times(call, y, alpha);
  if (c && beta != 1) c = times(call, c, beta);
  call->outputs[0] = c ? add(call, y, c) : y;
  gemm_real(call, a_axis, pestle_onnx_input(call, 2));
}

// --- Einsum ---
//
// Each operand becomes a tensor with one axis a letter (diagonals taken, axes
// that nobody else reads summed); then operands are multiplied from the left by
// dot_general, and the result is transposed to the output's order. "..." stands
// for letters of its own, aligned at the right as numpy broadcasts.

#define ELLIPSIS_LABEL 128  // + axis counted from the right
#define LABELS 256
// Every operand is looked at for each other one.
#define MOST_OPERANDS 256

typedef struct labelled_t {
  pestle_value_t* value;
  int32_t rank;
  uint8_t labels[PESTLE_MAX_RANK];
} labelled_t;

static bool has_label(const labelled_t* t, uint8_t label, int64_t* out_axis) {
  for (int32_t i = 0; i < t->rank; ++i) {
    if (t->labels[i] != label) continue;
    if (out_axis) *out_axis = i;
    return true;
  }
  return false;
}

// Labels of one term for a tensor of |rank|; false if it does not fit. |rank|
// -1: an output, where "..." stands for |ellipsis| axes.
static bool parse_term(pestle_str_t term, int32_t rank, int32_t* ellipsis,
                       labelled_t* out) {
  int32_t letters = 0, points = 0;
  for (size_t i = 0; i < term.size; ++i) {
    if (term.data[i] == '.') {
      if (++points > 3) return false;
    } else if (term.data[i] != ' ') {
      if (++letters > PESTLE_MAX_RANK) return false;
    }
  }
  bool dots = points > 0;
  int32_t extra = rank < 0 ? *ellipsis : rank - letters;
  if (extra < 0 || (!dots && rank >= 0 && extra) ||
      letters + (dots ? extra : 0) > PESTLE_MAX_RANK) {
    return false;
  }
  if (rank >= 0 && extra > *ellipsis) *ellipsis = extra;
  out->rank = 0;
  for (size_t i = 0; i < term.size; ++i) {
    char c = term.data[i];
    if (c == '.') {
      if (i + 2 >= term.size || term.data[i + 1] != '.') return false;
      i += 2;
      for (int32_t k = extra; k > 0; --k) {
        out->labels[out->rank++] = (uint8_t)(ELLIPSIS_LABEL + k);
      }
    } else if (c != ' ') {
      bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      if (!letter) return false;
      out->labels[out->rank++] = (uint8_t)c;
    }
  }
  return true;
}

// Keeps the elements at which two axes of one label agree, and drops one axis.
static void take_diagonals(pestle_onnx_call_t* call, labelled_t* t) {
  for (int32_t i = 0; i < t->rank; ++i) {
    for (int32_t j = i + 1; j < t->rank; ++j) {
      if (t->labels[i] != t->labels[j] || !t->value) continue;
      pestle_type_t type = *pestle_onnx_type(t->value);
      type.dtype = PESTLE_I64;
      pestle_value_t* column = pestle_f_iota(&call->f, &type, j);
      pestle_value_t* same =
          pestle_f_eq(&call->f, pestle_f_iota(&call->f, &type, i), column);
      pestle_value_t* kept = pestle_f_select(&call->f, same, t->value,
                                             splat_like(call, t->value, 0));
      int64_t axis = j;
      t->value = pestle_onnx_reduce(call, PESTLE_OP_ADD, kept, &axis, 1, false);
      for (int32_t k = j; k + 1 < t->rank; ++k)
        t->labels[k] = t->labels[k + 1];
      --t->rank;
      --j;
    }
  }
}

// Sums the axes whose label is not in |needed|.
static void sum_private(pestle_onnx_call_t* call, labelled_t* t,
                        const bool* needed) {
  int64_t axes[PESTLE_MAX_RANK];
  size_t count = 0;
  int32_t kept = 0;
  for (int32_t i = 0; i < t->rank; ++i) {
    if (needed[t->labels[i]]) {
      t->labels[kept++] = t->labels[i];
    } else {
      axes[count++] = i;
    }
  }
  t->rank = kept;
  t->value =
      pestle_onnx_reduce(call, PESTLE_OP_ADD, t->value, axes, count, false);
}

// Where both have a label but one has extent 1, the other's extent wins.
static void match_extents(pestle_onnx_call_t* call, labelled_t* t,
                          const labelled_t* other) {
  int64_t dims[PESTLE_MAX_RANK], axis;
  for (int32_t i = 0; i < t->rank; ++i) {
    dims[i] = pestle_onnx_dim(t->value, i);
    if (dims[i] == 1 && has_label(other, t->labels[i], &axis)) {
      dims[i] = pestle_onnx_dim(other->value, axis);
    }
  }
  t->value = pestle_onnx_broadcast(call, t->value, t->rank, dims);
}

static labelled_t contract(pestle_onnx_call_t* call, labelled_t a, labelled_t b,
                           const bool* needed) {
  match_extents(call, &a, &b);
  match_extents(call, &b, &a);
  int64_t batch_a[PESTLE_MAX_RANK], batch_b[PESTLE_MAX_RANK];
  int64_t sum_a[PESTLE_MAX_RANK], sum_b[PESTLE_MAX_RANK], axis;
  size_t batches = 0, sums = 0;
  labelled_t out = {0};
  for (int32_t i = 0; i < a.rank; ++i) {
    if (!has_label(&b, a.labels[i], &axis)) continue;
    if (needed[a.labels[i]]) {
      batch_a[batches] = i;
      batch_b[batches++] = axis;
      out.labels[out.rank++] = a.labels[i];
    } else {
      sum_a[sums] = i;
      sum_b[sums++] = axis;
    }
  }
  for (int pass = 0; pass < 2; ++pass) {
    const labelled_t *own = pass ? &b : &a, *other = pass ? &a : &b;
    for (int32_t i = 0; i < own->rank; ++i) {
      if (has_label(other, own->labels[i], NULL)) continue;
      if (out.rank == PESTLE_MAX_RANK) {
        pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                         "an intermediate product has more than %d axes",
                         PESTLE_MAX_RANK);
        return out;
      }
      out.labels[out.rank++] = own->labels[i];
    }
  }
  out.value = pestle_onnx_dot(
      call, a.value, b.value, (pestle_i64s_t){batch_a, batches},
      (pestle_i64s_t){batch_b, batches}, (pestle_i64s_t){sum_a, sums},
      (pestle_i64s_t){sum_b, sums}, dtype_of(a.value));
  return out;
}

// Without "->" the output has the labels that occur once, in order.
static void implicit_output(const labelled_t* terms, size_t count,
                            int32_t ellipsis, labelled_t* out) {
  int seen[LABELS] = {0};
  for (size_t i = 0; i < count; ++i) {
    for (int32_t j = 0; j < terms[i].rank; ++j)
      ++seen[terms[i].labels[j]];
  }
  for (int32_t k = ellipsis; k > 0; --k) {
    out->labels[out->rank++] = (uint8_t)(ELLIPSIS_LABEL + k);
  }
  for (int c = 'A'; c <= 'z' && out->rank < PESTLE_MAX_RANK; ++c) {
    if (seen[c] == 1) out->labels[out->rank++] = (uint8_t)c;
  }
}

static bool parse_equation(pestle_onnx_call_t* call, labelled_t* terms,
                           labelled_t* out) {
  pestle_str_t equation = pestle_onnx_string(call, "equation", "");
  size_t arrow = pestle_str_find(equation, PESTLE_STR("->"));
  pestle_str_t rest = pestle_str_slice(equation, 0, arrow);
  int32_t ellipsis = 0;
  bool ok = !call->f.status;
  for (size_t i = 0; ok && i < call->input_count; ++i) {
    pestle_str_t term;
    bool last = !pestle_str_split(rest, ',', &term, &rest);
    ok = last == (i + 1 == call->input_count) &&
         parse_term(term, rank_of(call->inputs[i]), &ellipsis, &terms[i]);
    terms[i].value = call->inputs[i];
  }
  if (ok && arrow == SIZE_MAX) {
    implicit_output(terms, call->input_count, ellipsis, out);
  } else if (ok) {
    ok = parse_term(pestle_str_slice(equation, arrow + 2, equation.size), -1,
                    &ellipsis, out);
  }
  if (!ok) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "the equation '%.*s' does not fit its inputs",
                     PESTLE_STR_ARG(equation));
  }
  return ok;
}

// Labels that the output or a term from |next| on still reads.
static void mark_needed(const labelled_t* terms, size_t next, size_t count,
                        const labelled_t* out, bool* needed) {
  memset(needed, 0, LABELS);
  for (int32_t i = 0; i < out->rank; ++i)
    needed[out->labels[i]] = true;
  for (size_t i = next; i < count; ++i) {
    for (int32_t j = 0; j < terms[i].rank; ++j)
      needed[terms[i].labels[j]] = true;
  }
}

void pestle_onnx_import_einsum(pestle_onnx_call_t* call) {
  size_t count = call->input_count;
  if (count > MOST_OPERANDS) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "it has %zu operands; at most %d are supported", count,
                     MOST_OPERANDS);
    return;
  }
  labelled_t* terms =
      pestle_onnx_scratch(call, (count + 1) * sizeof(labelled_t));
  labelled_t out = {0};
  if (!terms || !parse_equation(call, terms, &out)) return;
  bool needed[LABELS];
  for (size_t i = 0; i < count; ++i)
    take_diagonals(call, &terms[i]);
  for (size_t i = 0; i < count; ++i) {
    labelled_t own = terms[i];
    mark_needed(terms, i + 1, count, &out, needed);
    for (size_t j = 0; j < i; ++j) {
      for (int32_t k = 0; k < terms[j].rank; ++k) {
        needed[terms[j].labels[k]] = true;
      }
    }
    sum_private(call, &own, needed);
    terms[i] = own;
  }
  labelled_t result = terms[0];
  for (size_t i = 1; i < count && !call->f.status; ++i) {
    mark_needed(terms, i + 1, count, &out, needed);
    result = contract(call, result, terms[i], needed);
  }
  int64_t order[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < out.rank; ++i) {
    if (has_label(&result, out.labels[i], &order[i]) &&
        out.rank == result.rank) {
      continue;
    }
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "an output label of its equation is not in its inputs");
    return;
  }
  call->outputs[0] = pestle_f_transpose(&call->f, result.value, order);
}

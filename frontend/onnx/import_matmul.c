// SPDX-License-Identifier: Apache-2.0
// Matrix products and Einsum.
#include "base/mem.h"
#include "frontend/onnx/bounded.h"
#include "frontend/onnx/ops.h"

// --- Extents that only a run tells ---

// The real extent of an axis that |a| and |b|, which may be NULL, share by numpy's rule:
// an axis of one element is repeated. False, with an error kept, where they may differ.
static bool share_size(pestle_onnx_call_t* call, const pestle_value_t* a,
                       int64_t a_axis, const pestle_value_t* b, int64_t b_axis,
                       pestle_value_t** out) {
  const pestle_onnx_import_t* import = call->import;
  pestle_value_t* x = a ? pestle_onnx_real_size(import, a, a_axis) : NULL;
  pestle_value_t* y = b ? pestle_onnx_real_size(import, b, b_axis) : NULL;
  *out = x ? x : y;
  bool fits = x && y ? pestle_onnx_same_size(x, y)
              : x    ? !b || pestle_onnx_dim(b, b_axis) == 1
              : y    ? !a || pestle_onnx_dim(a, a_axis) == 1
                     : true;
  if (fits) return true;
  pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                   "its inputs differ in how long they are along an axis, for "
                   "at least one of them is so long as only a run tells");
  return false;
}

// Notes the extents of |y|, the product of |a| and |b|: batches, rows, columns.
static void note_product(pestle_onnx_call_t* call, void* self,
                         pestle_value_t* y, pestle_value_t* a,
                         pestle_value_t* b) {
  (void)self;
  int32_t rows = rank_of(a) - 2, columns = rank_of(b) - 2, at = rank_of(y) - 1;
  pestle_value_t* size;
  if (columns >= 0) {
    pestle_onnx_set_real(call, y, at--,
                         pestle_onnx_real_size(call->import, b, columns + 1));
  }
  if (rows >= 0) {
    pestle_onnx_set_real(call, y, at--,
                         pestle_onnx_real_size(call->import, a, rows));
  }
  for (int32_t i = rows - 1, j = columns - 1; at >= 0; --i, --j) {
    if (!share_size(call, i < 0 ? NULL : a, i, j < 0 ? NULL : b, j, &size))
      return;
    pestle_onnx_set_real(call, y, at--, size);
  }
}

static pestle_value_t* multiply_matrices(pestle_onnx_call_t* call, void* self,
                                         pestle_value_t* a, pestle_value_t* b) {
  (void)self;
  return pestle_onnx_matmul(call, a, b, dtype_of(a));
}

pestle_value_t* pestle_onnx_matmul_real(pestle_onnx_call_t* call,
                                        pestle_value_t* a, pestle_value_t* b,
                                        pestle_onnx_product_fn_t product,
                                        void* self) {
  pestle_value_t* size = NULL;
  if (!a || !b) return NULL;
  bool bounded =
      pestle_onnx_real(call->import, a) || pestle_onnx_real(call->import, b);
  const int64_t axes[] = {rank_of(a) - 1, rank_of(b) > 1 ? rank_of(b) - 2 : 0};
  pestle_value_t* both[] = {a, b};
  if (bounded && rank_of(a) && rank_of(b) &&
      !pestle_onnx_fit(call, both, axes, 2, &size)) {
    return NULL;
  }
  pestle_value_t* y =
      pestle_onnx_sum_products(call, both[0], axes[0], both[1], axes[1], size,
                               product, note_product, self);
  if (bounded && !call->f.status) note_product(call, self, y, a, b);
  return size ? pestle_onnx_end_real(call, y) : y;
}

void pestle_onnx_import_matmul(pestle_onnx_call_t* call) {
  call->outputs[0] = pestle_onnx_matmul_real(
      call, call->inputs[0], call->inputs[1], multiply_matrices, NULL);
}

// C is added to rows and columns of the product, whose extents are noted.
static void check_addend(pestle_onnx_call_t* call, const pestle_value_t* y,
                         const pestle_value_t* c) {
  pestle_value_t* size;
  for (int32_t i = 1; c && i <= rank_of(c); ++i) {
    bool has = pestle_onnx_real_size(call->import, c, rank_of(c) - i) ||
               pestle_onnx_dim(c, rank_of(c) - i) != 1;
    if (has && !share_size(call, y, rank_of(y) - i, c, rank_of(c) - i, &size))
      return;
  }
}

// |self|: the axes that are summed over.
static pestle_value_t* multiply_along(pestle_onnx_call_t* call, void* self,
                                      pestle_value_t* a, pestle_value_t* b) {
  const int64_t* axes = self;
  return pestle_onnx_dot(call, a, b, (pestle_i64s_t){0}, (pestle_i64s_t){0},
                         (pestle_i64s_t){&axes[0], 1},
                         (pestle_i64s_t){&axes[1], 1}, dtype_of(a));
}

static void note_along(pestle_onnx_call_t* call, void* self, pestle_value_t* y,
                       pestle_value_t* a, pestle_value_t* b) {
  const int64_t* axes = self;
  pestle_onnx_set_real(call, y, 0,
                       pestle_onnx_real_size(call->import, a, 1 - axes[0]));
  pestle_onnx_set_real(call, y, 1,
                       pestle_onnx_real_size(call->import, b, 1 - axes[1]));
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
  pestle_value_t* rows = pestle_onnx_real_size(call->import, a, 1 - a_axis);
  pestle_value_t* columns = pestle_onnx_real_size(call->import, b, 1 - b_axis);
  pestle_value_t *both[] = {a, b}, *size;
  int64_t axes[] = {a_axis, b_axis};
  if (!pestle_onnx_fit(call, both, axes, 2, &size)) return;
  pestle_value_t* y =
      pestle_onnx_sum_products(call, both[0], a_axis, both[1], b_axis, size,
                               multiply_along, note_along, axes);
  pestle_onnx_set_real(call, y, 0, rows);
  pestle_onnx_set_real(call, y, 1, columns);
  if (size) y = pestle_onnx_end_real(call, y);
  check_addend(call, y, c);
  if (alpha != 1) y = times(call, y, alpha);
  if (c && beta != 1) c = times(call, c, beta);
  call->outputs[0] = c ? add(call, y, c) : y;
  pestle_onnx_set_real(call, call->outputs[0], 0, rows);
  pestle_onnx_set_real(call, call->outputs[0], 1, columns);
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
// -1: an output, where "..." stands for |ellipsis| axes; that is -1 after too many.
static bool parse_term(pestle_str_t term, int32_t rank, int32_t* ellipsis,
                       labelled_t* out) {
  int32_t letters = 0, points = 0;
  for (size_t i = 0; i < term.size; ++i) {
    if (term.data[i] == '.') {
      if (++points > 3) return false;
    } else {
      letters += term.data[i] != ' ';
    }
  }
  bool dots = points > 0;
  int32_t extra = rank < 0 ? *ellipsis : rank - letters;
  if (extra < 0 || (!dots && rank >= 0 && extra)) return false;
  if (letters + (dots ? extra : 0) > PESTLE_MAX_RANK) {
    *ellipsis = -1;
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
      if (type.dims[i] != type.dims[j]) {
        pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                         "label '%c' is of an axis of %lld and of one of %lld "
                         "of the same input",
                         t->labels[i], (long long)type.dims[i],
                         (long long)type.dims[j]);
      }
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

typedef struct dot_t {
  pestle_i64s_t batch[2], sum[2];
} dot_t;

static pestle_value_t* multiply_letters(pestle_onnx_call_t* call, void* self,
                                        pestle_value_t* a, pestle_value_t* b) {
  const dot_t* dot = self;
  return pestle_onnx_dot(call, a, b, dot->batch[0], dot->batch[1], dot->sum[0],
                         dot->sum[1], dtype_of(a));
}

// A letter that the only product sums over, and how long it really is.
typedef struct ended_t {
  uint8_t label;
  pestle_value_t* size;  // NULL: there is none
} ended_t;

static labelled_t contract(pestle_onnx_call_t* call, labelled_t a, labelled_t b,
                           const bool* needed, const ended_t* ended) {
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
  dot_t dot = {.batch = {{batch_a, batches}, {batch_b, batches}},
               .sum = {{sum_a, sums}, {sum_b, sums}}};
  int64_t a_axis = 0, b_axis = 0;
  bool ends = ended->size && has_label(&a, ended->label, &a_axis) &&
              has_label(&b, ended->label, &b_axis);
  out.value = pestle_onnx_sum_products(call, a.value, a_axis, b.value, b_axis,
                                       ends ? ended->size : NULL,
                                       multiply_letters, NULL, &dot);
  return out;
}

// Without "->" the output has the labels that occur once, in order; false where those are
// too many.
static bool implicit_output(const labelled_t* terms, size_t count,
                            int32_t* ellipsis, labelled_t* out) {
  int seen[LABELS] = {0};
  for (size_t i = 0; i < count; ++i) {
    for (int32_t j = 0; j < terms[i].rank; ++j)
      ++seen[terms[i].labels[j]];
  }
  for (int32_t k = *ellipsis; k > 0; --k) {
    out->labels[out->rank++] = (uint8_t)(ELLIPSIS_LABEL + k);
  }
  for (int c = 'A'; c <= 'z'; ++c) {
    if (seen[c] != 1) continue;
    if (out->rank == PESTLE_MAX_RANK) {
      *ellipsis = -1;
      return false;
    }
    out->labels[out->rank++] = (uint8_t)c;
  }
  return true;
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
    ok = implicit_output(terms, call->input_count, &ellipsis, out);
  } else if (ok) {
    ok = parse_term(pestle_str_slice(equation, arrow + 2, equation.size), -1,
                    &ellipsis, out);
  }
  if (!ok) {
    bool many = ellipsis < 0;
    pestle_onnx_fail(
        call, many ? PESTLE_STATUS_UNSUPPORTED : PESTLE_STATUS_MALFORMED,
        "the equation '%.*s' %s", PESTLE_STR_ARG(equation),
        many ? "has a result of more than 16 axes" : "does not fit its inputs");
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

// Makes the axes of one letter equally long; |*size|: how long, where only a run tells.
static bool fit_letter(pestle_onnx_call_t* call, labelled_t* terms,
                       size_t count, uint8_t label, pestle_value_t** size) {
  pestle_value_t** values =
      pestle_onnx_scratch(call, (count + 1) * sizeof(pestle_value_t*));
  int64_t* axes = pestle_onnx_scratch(call, (count + 1) * sizeof(int64_t));
  if (!values || !axes) return false;
  for (size_t i = 0; i < count; ++i) {
    values[i] = terms[i].value;
    bool has = has_label(&terms[i], label, &axes[i]);
    // An axis of one element is repeated.
    if (!has || (pestle_onnx_dim(values[i], axes[i]) == 1 &&
                 !pestle_onnx_real_size(call->import, values[i], axes[i]))) {
      axes[i] = -1;
    }
  }
  if (!pestle_onnx_fit(call, values, axes, count, size)) return false;
  for (size_t i = 0; i < count; ++i)
    terms[i].value = values[i];
  return true;
}

// The first letter of a product of two that both have once, and the result has not.
static ended_t find_ended(const labelled_t* terms, size_t count,
                          const labelled_t* out, pestle_value_t* const* sizes) {
  for (int32_t k = 0; count == 2 && k < terms[0].rank; ++k) {
    uint8_t label = terms[0].labels[k];
    int times[2] = {0, 0};
    for (int t = 0; t < 2; ++t) {
      for (int32_t i = 0; i < terms[t].rank; ++i)
        times[t] += terms[t].labels[i] == label;
    }
    if (sizes[label] && times[0] == 1 && times[1] == 1 &&
        !has_label(out, label, NULL)) {
      return (ended_t){label, sizes[label]};
    }
  }
  return (ended_t){0};
}

// How long each letter really is, where only a run tells; what is not real of those
// that are summed over becomes 0.
static bool read_sizes(pestle_onnx_call_t* call, labelled_t* terms,
                       size_t count, const labelled_t* out,
                       pestle_value_t** sizes, ended_t* ended) {
  bool seen[LABELS] = {false}, any = false;
  for (size_t i = 0; i < count; ++i)
    any |= pestle_onnx_real(call->import, terms[i].value) != NULL;
  for (size_t i = 0; any && i < count; ++i) {
    for (int32_t k = 0; k < terms[i].rank; ++k) {
      uint8_t label = terms[i].labels[k];
      if (seen[label]) continue;
      seen[label] = true;
      if (!fit_letter(call, terms, count, label, &sizes[label])) return false;
    }
  }
  if (any) *ended = find_ended(terms, count, out, sizes);
  for (size_t i = 0; any && i < count; ++i) {
    uint32_t summed = 0;
    for (int32_t k = 0; k < terms[i].rank; ++k) {
      uint8_t label = terms[i].labels[k];
      if (!has_label(out, label, NULL) && label != ended->label)
        summed |= UINT32_C(1) << k;
    }
    pestle_value_t* x = terms[i].value;
    terms[i].value = pestle_onnx_fill_unreal(
        call, x, summed, pestle_onnx_scalar(call, dtype_of(x), 0));
  }
  return !call->f.status;
}

void pestle_onnx_import_einsum(pestle_onnx_call_t* call) {
  pestle_value_t* sizes[LABELS] = {NULL};
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
  ended_t ended = {0};
  if (!terms || !parse_equation(call, terms, &out) ||
      !read_sizes(call, terms, count, &out, sizes, &ended)) {
    return;
  }
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
    result = contract(call, result, terms[i], needed, &ended);
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
  for (int32_t i = 0; i < out.rank; ++i)
    pestle_onnx_set_real(call, call->outputs[0], i, sizes[out.labels[i]]);
}

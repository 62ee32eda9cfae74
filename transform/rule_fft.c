// SPDX-License-Identifier: Apache-2.0
// Fourier transforms are linear, and the matrices of the complex ones symmetric. Those
// of real numbers give, or take, the first half of the last axis' frequencies.
#include <string.h>

#include "transform/transform.h"

static pv_t* transform(pestle_formula_t* f, pv_t* a, const char* kind,
                       pestle_i64s_t lengths) {
  pestle_attr_t attrs[] = {
      PESTLE_SET_STR(fft_type, kind),
      PESTLE_SET_I64S(fft_length, lengths.data, lengths.count)};
  return pestle_f_make(f, PESTLE_OP_FFT, &a, 1, attrs, 2, NULL);
}

// The frequencies that were left out have cotangents of zero.
static pv_t* real_forward(pestle_formula_t* f, pv_t* ct,
                          pestle_i64s_t lengths) {
  int32_t last = ct->type->rank - 1;
  int64_t missing = lengths.data[lengths.count - 1] - ct->type->dims[last];
  ct = pestle_f_pad_end(f, ct, last, missing);
  ct = transform(f, ct, "FFT", lengths);
  return pestle_f_typed(f, PESTLE_OP_REAL, &ct, 1, NULL);
}

// Frequencies that stand for two, themselves and their conjugates, count twice.
static pv_t* real_inverse(pestle_formula_t* f, pv_t* ct,
                          pestle_i64s_t lengths) {
  pv_t* a = transform(f, ct, "RFFT", lengths);
  if (!a) return NULL;
  int64_t axis = a->type->rank - 1, count = a->type->dims[axis];
  int64_t length = lengths.data[lengths.count - 1], total = 1;
  for (size_t i = 0; i < lengths.count; ++i)
    total *= lengths.data[i];
  pestle_type_t list = pestle_type_make(ct->type->dtype, 1, &count);
  double* weights = pestle_f_memory(f, (size_t)count * sizeof(double));
  if (!weights) return NULL;
  for (int64_t i = 0; i < count; ++i)
    weights[i] = (i == 0 || 2 * i == length ? 1.0 : 2.0) / (double)total;
  pestle_type_t type = *a->type;
  type.dtype = ct->type->dtype;
  pv_t* w = pestle_f_broadcast_to(f, pestle_f_numbers(f, &list, weights), &type,
                                  &axis);
  pv_t* x = pestle_f_typed(f, PESTLE_OP_REAL, &a, 1, NULL);
  pv_t* parts[2] = {pestle_f_multiply(f, x, w), NULL};
  pv_t* y = pestle_f_typed(f, PESTLE_OP_IMAG, &a, 1, NULL);
  parts[1] = pestle_f_negate(f, pestle_f_multiply(f, y, w));
  return pestle_f_typed(f, PESTLE_OP_COMPLEX, parts, 2, NULL);
}

void pestle_transpose_fft(pestle_transposer_t* x, pestle_node_t* node,
                          pv_t* const* ct) {
  pestle_formula_t* f = &x->f;
  const char* kind = PESTLE_NODE_STR(node, fft_type);
  pestle_i64s_t lengths = PESTLE_NODE_I64S(node, fft_length);
  pv_t* like = pestle_node_operand(node, 0);
  pv_t* a = !pestle_type_count(like->type) || !pestle_type_count(ct[0]->type)
                ? pestle_zeros(f, like)
            : !strcmp(kind, "RFFT")  ? real_forward(f, ct[0], lengths)
            : !strcmp(kind, "IRFFT") ? real_inverse(f, ct[0], lengths)
                                     : transform(f, ct[0], kind, lengths);
  pestle_cotangent_add(x, node, 0, a);
}

// SPDX-License-Identifier: Apache-2.0
// Signals: windows, the mel matrix, DFT and STFT.
//
// A transform of n = n1 n2 points is one of n1 points, a multiplication by
// twiddle factors and one of n2 points; what does not divide further is a
// product with the matrix of powers of the root of unity. All of it is done in
// f64: of values that cancel to nearly nothing f32 leaves no digit.
#include <math.h>

#include "frontend/onnx/ops.h"

static const double pi = 3.14159265358979323846;

// --- Windows ---

static pestle_dtype_t output_dtype(pestle_onnx_call_t* call) {
  int64_t type = pestle_onnx_int(call, "output_datatype", 1);
  pestle_dtype_t dtype = pestle_onnx_dtype(type);
  if (dtype == PESTLE_NONE ||
      !pestle_dtype_is(dtype, PESTLE_KIND_FLOAT | PESTLE_KIND_INT)) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "attribute 'output_datatype' is %s",
                     pestle_onnx_dtype_name(type));
  }
  return dtype;
}

static int64_t known_int(pestle_onnx_call_t* call, size_t index,
                         const char* what, int64_t low, int64_t high) {
  pestle_i64s_t list = pestle_onnx_input_ints(call, index, what);
  if (call->status) return low;
  if (list.count == 1 && list.data[0] >= low && list.data[0] <= high) {
    return list.data[0];
  }
  pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                   "its %s must be one number from %lld to %lld", what,
                   (long long)low, (long long)high);
  return low;
}

// a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n), n the size or one less.
static void window(pestle_onnx_call_t* call, double a0, double a1, double a2) {
  int64_t size = known_int(call, 0, "size", 0, PESTLE_ONNX_MAX_INDICES);
  bool periodic = pestle_onnx_int(call, "periodic", 1) != 0;
  pestle_type_t type = {.dtype = output_dtype(call), .rank = 1, .dims = {size}};
  if (call->status) return;
  double* values =
      pestle_onnx_scratch(call, (size_t)(size + 1) * sizeof(double));
  double n = (double)(periodic ? size : size - 1);
  for (int64_t i = 0; values && i < size; ++i) {
    double angle = n > 0 ? 2 * pi * (double)i / n : 0;
    values[i] = a0 - a1 * cos(angle) + a2 * cos(2 * angle);
  }
  if (values) call->outputs[0] = pestle_onnx_numbers(call, &type, values);
}

void pestle_onnx_import_hann_window(pestle_onnx_call_t* call) {
  window(call, 0.5, 0.5, 0);
}

void pestle_onnx_import_hamming_window(pestle_onnx_call_t* call) {
  window(call, 25.0 / 46, 21.0 / 46, 0);
}

void pestle_onnx_import_blackman_window(pestle_onnx_call_t* call) {
  window(call, 0.42, 0.5, 0.08);
}

// --- Mel weights ---

typedef struct mel_t {
  int64_t bins, length, rate, rows;
  double low, step;  // in mel
} mel_t;

// The spectrogram's bin of edge |i|.
static double mel_edge(const mel_t* m, int64_t i) {
  double mel = m->low + (double)i * m->step;
  double hertz = 700 * expm1(mel / 2595 * log(10.0));
  return floor((double)(m->length + 1) * hertz / (double)m->rate);
}

static double to_mel(double hertz) {
  return 2595 * log1p(hertz / 700) / log(10.0);
}

// A triangle over the bins between three neighbouring edges.
static void fill_filter(const mel_t* m, int64_t filter, double* matrix) {
  int64_t low = (int64_t)mel_edge(m, filter);
  int64_t middle = (int64_t)mel_edge(m, filter + 1);
  int64_t high = (int64_t)mel_edge(m, filter + 2);
  for (int64_t row = low; row <= high && row < m->rows; ++row) {
    double rise =
        middle > low ? (double)(row - low) / (double)(middle - low) : 1;
    double fall =
        high > middle ? (double)(high - row) / (double)(high - middle) : 0;
    double value =
        row < middle || (row == middle && high == middle) ? rise : fall;
    matrix[row * m->bins + filter] = value;
  }
}

void pestle_onnx_import_mel_weights(pestle_onnx_call_t* call) {
  mel_t m = {.bins = known_int(call, 0, "num_mel_bins", 0, 65536),
             .length = known_int(call, 1, "dft_length", 1, 1 << 24),
             .rate = known_int(call, 2, "sample_rate", 1, INT32_MAX)};
  double low = pestle_onnx_input_float(call, 3, "lower_edge_hertz", 0);
  double high = pestle_onnx_input_float(call, 4, "upper_edge_hertz", 0);
  m.rows = m.length / 2 + 1;
  pestle_type_t type = {
      .dtype = output_dtype(call), .rank = 2, .dims = {m.rows, m.bins}};
  if (call->status) return;
  m.low = to_mel(low);
  m.step = (to_mel(high) - m.low) / (double)(m.bins + 2);
  bool sane =
      low >= 0 && high >= low && m.rows * m.bins <= PESTLE_ONNX_MAX_INDICES;
  if (!sane || !(mel_edge(&m, m.bins + 1) <= (double)m.rows)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "edges of %g and %g Hz do not fit the %lld bins of a "
                     "transform of %lld points at %lld Hz",
                     low, high, (long long)m.rows, (long long)m.length,
                     (long long)m.rate);
    return;
  }
  double* matrix =
      pestle_onnx_scratch(call, (size_t)(m.rows * m.bins + 1) * sizeof(double));
  for (int64_t i = 0; matrix && i < m.bins; ++i)
    fill_filter(&m, i, matrix);
  if (matrix) call->outputs[0] = pestle_onnx_numbers(call, &type, matrix);
}

// --- Transforms ---

typedef struct complex_t {
  pestle_value_t *re, *im;  // f64 [rows, n]; |im| NULL: all 0
} complex_t;

// cos and sin of 2 pi (i j) / n for i, j below |rows| and |columns|, by |sign|.
static complex_t roots(pestle_onnx_call_t* call, int64_t rows, int64_t columns,
                       int64_t n, double sign) {
  complex_t out = {NULL, NULL};
  pestle_type_t type = {
      .dtype = PESTLE_F64, .rank = 2, .dims = {rows, columns}};
  if (rows > PESTLE_ONNX_MAX_INDICES / columns) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "a transform of %lld points, which has a prime factor "
                     "above 2048 or is too long",
                     (long long)n);
    return out;
  }
  size_t bytes = (size_t)(rows * columns) * sizeof(double);
  double* cosines = pestle_onnx_scratch(call, bytes);
  double* sines = pestle_onnx_scratch(call, bytes);
  if (call->status) return out;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      double angle = 2 * pi * (double)(i * j % n) / (double)n;
      cosines[i * columns + j] = cos(angle);
      sines[i * columns + j] = sign * sin(angle);
    }
  }
  out.re = pestle_onnx_numbers(call, &type, cosines);
  out.im = pestle_onnx_numbers(call, &type, sines);
  return out;
}

// |op| on what may be NULL, which is 0.
static pestle_value_t* add_part(pestle_onnx_call_t* call, pestle_value_t* a,
                                pestle_value_t* b, bool minus) {
  if (!b) return a;
  if (a) return minus ? sub(call, a, b) : add(call, a, b);
  return minus ? pestle_onnx_unary(call, PESTLE_OP_NEGATE, b) : b;
}

typedef pestle_value_t* (*product_fn_t)(pestle_onnx_call_t* call,
                                        pestle_value_t* a, pestle_value_t* b);

// a b by |product| of the parts.
static complex_t multiply(pestle_onnx_call_t* call, complex_t a, complex_t b,
                          product_fn_t product) {
  pestle_value_t* ac = product(call, a.re, b.re);
  pestle_value_t* bd = a.im ? product(call, a.im, b.im) : NULL;
  pestle_value_t* ad = product(call, a.re, b.im);
  pestle_value_t* bc = a.im ? product(call, a.im, b.re) : NULL;
  return (complex_t){add_part(call, ac, bd, true),
                     add_part(call, ad, bc, false)};
}

// a [.., n] by the matrix b [n, m].
static pestle_value_t* by_matrix(pestle_onnx_call_t* call, pestle_value_t* a,
                                 pestle_value_t* b) {
  return pestle_onnx_matmul(call, a, b, PESTLE_F64);
}

static complex_t each(pestle_onnx_call_t* call, complex_t x,
                      const int64_t* dims, int32_t rank, const int64_t* order) {
  pestle_value_t** parts[2] = {&x.re, &x.im};
  for (int i = 0; i < 2; ++i) {
    if (!*parts[i]) continue;
    if (dims) *parts[i] = pestle_onnx_reshape(call, *parts[i], rank, dims);
    if (order) *parts[i] = pestle_onnx_transpose(call, *parts[i], order);
  }
  return x;
}

// The largest factor of |n| that is at most 32; 1 when there is none but 1.
static int64_t factor_of(int64_t n) {
  for (int64_t f = 32; f > 1; --f) {
    if (n % f == 0) return f;
  }
  return 1;
}

// Transforms the last axis of |x| [rows, n] with exp(sign 2 pi i j k / n). Of
// the frequencies the first |wanted| are needed.
static complex_t transform(pestle_onnx_call_t* call, complex_t x, int64_t n,
                           int64_t wanted, double sign) {
  static const int64_t swap[] = {0, 2, 1};
  int64_t a = factor_of(n), b = n / a;
  int64_t rows = pestle_onnx_dim(x.re, 0);
  if (call->status) return x;
  if (n <= 64 || a == 1) {
    return multiply(call, x, roots(call, n, wanted, n, sign), by_matrix);
  }
  // [rows, a, b] -> [rows, b, a], a transform of a points for each of b.
  const int64_t split[] = {rows, a, b}, flat[] = {rows * a, b};
  const int64_t joined[] = {rows, n};
  x = each(call, x, split, 3, swap);
  x = multiply(call, x, roots(call, a, a, a, sign), by_matrix);
  x = multiply(call, x, roots(call, b, a, n, sign), mul);
  x = each(call, each(call, x, NULL, 3, swap), flat, 2, NULL);
  x = transform(call, x, b, b, sign);
  x = each(call, each(call, x, split, 3, swap), joined, 2, NULL);
  if (wanted == n) return x;
  x.re = pestle_onnx_slice_axis(call, x.re, 1, 0, wanted, 1);
  x.im = pestle_onnx_slice_axis(call, x.im, 1, 0, wanted, 1);
  return x;
}

// --- DFT ---

typedef struct dft_t {
  pestle_onnx_call_t* call;
  int32_t rank;  // without the axis of real and imaginary parts
  int64_t axis, length;
  bool inverse, onesided;
} dft_t;

static bool read_dft(dft_t* d) {
  pestle_onnx_call_t* call = d->call;
  pestle_value_t* x = call->inputs[0];
  int64_t axis = call->opset < 20 ? pestle_onnx_int(call, "axis", 1) : -2;
  if (call->opset >= 20 && pestle_onnx_input(call, 2)) {
    axis = known_int(call, 2, "axis", -PESTLE_MAX_RANK, PESTLE_MAX_RANK);
  }
  d->rank = rank_of(x) - 1;
  d->axis = pestle_onnx_axis(call, axis, rank_of(x));
  d->inverse = pestle_onnx_int(call, "inverse", 0) != 0;
  d->onesided = pestle_onnx_int(call, "onesided", 0) != 0;
  int64_t parts = pestle_onnx_dim(x, d->rank);
  d->length = pestle_onnx_dim(x, d->axis);
  if (d->inverse && d->onesided) d->length = 2 * (d->length - 1);
  if (!call->status && pestle_onnx_input(call, 1)) {
    d->length = known_int(call, 1, "dft_length", 1, INT32_MAX);
  }
  if (!call->status &&
      (d->rank < 1 || d->axis >= d->rank || parts < 1 || parts > 2 ||
       d->length < 1 || !pestle_dtype_is(dtype_of(x), PESTLE_KIND_FLOAT))) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its input must be floats [..., 1 or 2] and its axis, "
                     "%lld, another one than the last",
                     (long long)axis);
  }
  return !call->status;
}

// The order that brings the axis to the end.
static void last_order(const dft_t* d, int64_t* order) {
  int32_t at = 0;
  for (int32_t i = 0; i < d->rank; ++i) {
    if (i != d->axis) order[at++] = i;
  }
  order[at] = d->axis;
}

// The first |extent| elements of the last of two axes, with zeros behind.
static pestle_value_t* fit_length(pestle_onnx_call_t* call, pestle_value_t* x,
                                  int64_t extent) {
  int64_t found = pestle_onnx_dim(x, 1);
  const int64_t low[] = {0, 0}, high[] = {0, extent - found};
  if (found > extent) return pestle_onnx_slice_axis(call, x, 1, 0, extent, 1);
  return pestle_onnx_pad(call, x, pestle_onnx_scalar(call, dtype_of(x), 0), low,
                         high, NULL);
}

// Part |which| of the input as f64 [rows, extent].
static pestle_value_t* read_part(const dft_t* d, int64_t which,
                                 int64_t extent) {
  pestle_onnx_call_t* call = d->call;
  pestle_value_t* x = call->inputs[0];
  const int64_t* dims = pestle_onnx_type(x)->dims;
  if (which >= dims[d->rank]) return NULL;
  int64_t order[PESTLE_MAX_RANK], found = dims[d->axis];
  last_order(d, order);
  x = pestle_onnx_slice_axis(call, x, d->rank, which, which + 1, 1);
  x = pestle_onnx_reshape(call, x, d->rank, dims);
  x = pestle_onnx_transpose(call, pestle_onnx_convert(call, x, PESTLE_F64),
                            order);
  int64_t rows = 1;
  for (int32_t i = 0; i < d->rank; ++i)
    rows *= i == d->axis ? 1 : dims[i];
  const int64_t flat[] = {rows, found};
  return fit_length(call, pestle_onnx_reshape(call, x, 2, flat), extent);
}

// The whole spectrum of a real signal from its first half.
static pestle_value_t* mirror(const dft_t* d, pestle_value_t* half, bool odd) {
  pestle_onnx_call_t* call = d->call;
  int64_t end = (d->length + 1) / 2, axis = 1;
  if (!half || end <= 1) return half;
  pestle_value_t* rest = pestle_onnx_reverse(
      call, pestle_onnx_slice_axis(call, half, 1, 1, end, 1), &axis, 1);
  if (odd) rest = pestle_onnx_unary(call, PESTLE_OP_NEGATE, rest);
  return pestle_onnx_concat(call, (pestle_value_t*[]){half, rest}, 2, 1);
}

// [rows, extent] where the input has the axis, in its dtype.
static pestle_value_t* put_back(const dft_t* d, pestle_value_t* x,
                                int64_t extent) {
  pestle_onnx_call_t* call = d->call;
  const pestle_type_t* type = pestle_onnx_type(call->inputs[0]);
  int64_t order[PESTLE_MAX_RANK], back[PESTLE_MAX_RANK], dims[PESTLE_MAX_RANK];
  last_order(d, order);
  for (int32_t i = 0; i < d->rank; ++i) {
    back[order[i]] = i;
    dims[i] = order[i] == d->axis ? extent : type->dims[order[i]];
  }
  x = pestle_onnx_transpose(call, pestle_onnx_reshape(call, x, d->rank, dims),
                            back);
  for (int32_t i = 0; i < d->rank; ++i)
    dims[i] = i == d->axis ? extent : type->dims[i];
  dims[d->rank] = 1;
  return pestle_onnx_reshape(call, pestle_onnx_convert(call, x, type->dtype),
                             d->rank + 1, dims);
}

void pestle_onnx_import_dft(pestle_onnx_call_t* call) {
  dft_t d = {.call = call};
  if (!read_dft(&d)) return;
  int64_t n = d.length, half = n / 2 + 1;
  bool real = d.inverse && d.onesided;
  complex_t x = {.re = read_part(&d, 0, real ? half : n),
                 .im = read_part(&d, 1, real ? half : n)};
  if (real) {
    x.re = mirror(&d, x.re, false);
    x.im = mirror(&d, x.im, true);
  }
  int64_t wanted = d.onesided && !real ? half : n;
  if (call->status) return;
  x = transform(call, x, n, wanted, d.inverse ? 1 : -1);
  if (d.inverse && !call->status) {
    x.re = times(call, x.re, 1 / (double)n);
    x.im = times(call, x.im, 1 / (double)n);
  }
  pestle_value_t* parts[2] = {put_back(&d, x.re, wanted),
                              put_back(&d, x.im, wanted)};
  call->outputs[0] =
      real ? parts[0] : pestle_onnx_concat(call, parts, 2, d.rank);
}

// --- STFT ---

typedef struct stft_t {
  pestle_onnx_call_t* call;
  int64_t batch, signal, step, length, frames;
  pestle_value_t* window;  // f64 [length], or NULL
} stft_t;

static bool read_stft(stft_t* s) {
  pestle_onnx_call_t* call = s->call;
  pestle_value_t *x = call->inputs[0], *given = pestle_onnx_input(call, 2);
  s->batch = pestle_onnx_dim(x, 0);
  s->signal = pestle_onnx_dim(x, 1);
  s->step = known_int(call, 1, "frame_step", 1, INT32_MAX);
  s->length = given ? pestle_onnx_dim(given, 0) : s->signal;
  if (pestle_onnx_input(call, 3)) {
    s->length = known_int(call, 3, "frame_length", 1, INT32_MAX);
  }
  if (call->status) return false;
  int64_t parts = rank_of(x) == 3 ? pestle_onnx_dim(x, 2) : 1;
  bool fits = (rank_of(x) == 3 || rank_of(x) == 2) && s->length >= 1 &&
              s->length <= s->signal && (parts == 1 || parts == 2) &&
              (!given ||
               (rank_of(given) == 1 && pestle_onnx_dim(given, 0) == s->length));
  if (!fits) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its signal must be [batch, length, 1 or 2], its frames "
                     "of %lld must lie inside of it and its window be as long",
                     (long long)s->length);
    return false;
  }
  s->frames = 1 + (s->signal - s->length) / s->step;
  if (given) s->window = pestle_onnx_convert(call, given, PESTLE_F64);
  return true;
}

// Part |which| of all frames: f64 [batch * frames, length].
static pestle_value_t* frames_of(const stft_t* s, int64_t which) {
  pestle_onnx_call_t* call = s->call;
  pestle_value_t* x = call->inputs[0];
  int64_t dims[] = {s->batch, s->signal};
  if (rank_of(x) == 3) {
    if (which >= pestle_onnx_dim(x, 2)) return NULL;
    x = pestle_onnx_slice_axis(call, x, 2, which, which + 1, 1);
  } else if (which) {
    return NULL;
  }
  x = pestle_onnx_convert(call, pestle_onnx_reshape(call, x, 2, dims),
                          PESTLE_F64);
  pestle_type_t type = {
      .dtype = PESTLE_I64, .rank = 2, .dims = {s->frames, s->length}};
  pestle_value_t* starts =
      times(call, pestle_onnx_iota(call, &type, 0), (double)s->step);
  pestle_value_t* places = add(call, starts, pestle_onnx_iota(call, &type, 1));
  x = pestle_onnx_take(call, x, places, 1);
  if (s->window) x = mul(call, x, s->window);
  int64_t flat[] = {s->batch * s->frames, s->length};
  return pestle_onnx_reshape(call, x, 2, flat);
}

void pestle_onnx_import_stft(pestle_onnx_call_t* call) {
  stft_t s = {.call = call};
  if (!read_stft(&s)) return;
  bool onesided = pestle_onnx_int(call, "onesided", 1) != 0;
  int64_t wanted = onesided ? s.length / 2 + 1 : s.length;
  complex_t x = {.re = frames_of(&s, 0), .im = frames_of(&s, 1)};
  if (call->status) return;
  x = transform(call, x, s.length, wanted, -1);
  int64_t dims[] = {s.batch, s.frames, wanted, 1};
  x = each(call, x, dims, 4, NULL);
  call->outputs[0] = pestle_onnx_convert(
      call, pestle_onnx_concat(call, (pestle_value_t*[]){x.re, x.im}, 2, 3),
      dtype_of(call->inputs[0]));
}

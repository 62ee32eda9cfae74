// SPDX-License-Identifier: Apache-2.0
// Signals: windows, the mel matrix, DFT and STFT.
//
// Transforms are stablehlo.fft, in f64: of values that cancel to nearly nothing
// f32 leaves no digit.
#include <math.h>

#include "frontend/onnx/bounded.h"
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
  if (call->f.status) return low;
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
  if (call->f.status) return;
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
  if (call->f.status) return;
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

static complex_t each(pestle_onnx_call_t* call, complex_t x,
                      const int64_t* dims, int32_t rank) {
  x.re = pestle_f_reshape(&call->f, x.re, rank, dims);
  if (x.im) x.im = pestle_f_reshape(&call->f, x.im, rank, dims);
  return x;
}

static pestle_value_t* fft(pestle_onnx_call_t* call, pestle_value_t* x,
                           const char* kind, int64_t n) {
  pestle_attr_t attrs[] = {
      {PESTLE_ATTR_fft_type, PESTLE_ATTR_KIND_STR, .as.str = kind},
      {PESTLE_ATTR_fft_length, PESTLE_ATTR_KIND_I64S, .as.i64s = {&n, 1}}};
  pestle_node_spec_t spec = {.op = PESTLE_OP_FFT,
                             .operands = &x,
                             .operand_count = 1,
                             .attrs = attrs,
                             .attr_count = 2};
  return x ? pestle_f_emit(&call->f, &spec) : NULL;
}

// One complex number of two parts.
static pestle_value_t* join(pestle_onnx_call_t* call, complex_t x) {
  pestle_value_t* parts[2] = {x.re, x.im};
  if (!x.im && x.re) parts[1] = splat_like(call, x.re, 0);
  pestle_node_spec_t spec = {
      .op = PESTLE_OP_COMPLEX, .operands = parts, .operand_count = 2};
  return parts[0] && parts[1] ? pestle_f_emit(&call->f, &spec) : NULL;
}

// Transforms the last axis of |x| [rows, n], backwards divided by n. Of the
// frequencies the first |wanted| are needed.
static complex_t transform(pestle_onnx_call_t* call, complex_t x, int64_t n,
                           int64_t wanted, bool backward) {
  bool half = !x.im && !backward && wanted <= n / 2 + 1;
  pestle_value_t* y =
      half ? fft(call, x.re, "RFFT", n)
           : fft(call, join(call, x), backward ? "IFFT" : "FFT", n);
  x.re = y ? pestle_f_unary(&call->f, PESTLE_OP_REAL, y) : NULL;
  x.im = y ? pestle_f_unary(&call->f, PESTLE_OP_IMAG, y) : NULL;
  if (call->f.status || wanted == pestle_onnx_dim(x.re, 1)) return x;
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
  if (d->axis == 0 && !pestle_onnx_allow_real(call, 0, 0)) return false;
  d->inverse = pestle_onnx_int(call, "inverse", 0) != 0;
  d->onesided = pestle_onnx_int(call, "onesided", 0) != 0;
  int64_t parts = pestle_onnx_dim(x, d->rank);
  d->length = pestle_onnx_dim(x, d->axis);
  if (d->inverse && d->onesided) d->length = 2 * (d->length - 1);
  if (!call->f.status && pestle_onnx_input(call, 1)) {
    d->length = known_int(call, 1, "dft_length", 1, INT32_MAX);
  }
  if (!call->f.status &&
      (d->rank < 1 || d->axis >= d->rank || parts < 1 || parts > 2 ||
       d->length < 1 || !pestle_dtype_is(dtype_of(x), PESTLE_KIND_FLOAT))) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its input must be floats [..., 1 or 2] and its axis, "
                     "%lld, another one than the last",
                     (long long)axis);
  }
  return !call->f.status;
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
  return pestle_f_pad(&call->f, x, pestle_onnx_scalar(call, dtype_of(x), 0),
                      low, high, NULL);
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
  x = pestle_f_reshape(&call->f, x, d->rank, dims);
  x = pestle_f_transpose(&call->f, pestle_onnx_convert(call, x, PESTLE_F64),
                         order);
  int64_t rows = 1;
  for (int32_t i = 0; i < d->rank; ++i)
    rows *= i == d->axis ? 1 : dims[i];
  const int64_t flat[] = {rows, found};
  return fit_length(call, pestle_f_reshape(&call->f, x, 2, flat), extent);
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
  x = pestle_f_transpose(&call->f, pestle_f_reshape(&call->f, x, d->rank, dims),
                         back);
  for (int32_t i = 0; i < d->rank; ++i)
    dims[i] = i == d->axis ? extent : type->dims[i];
  dims[d->rank] = 1;
  return pestle_f_reshape(&call->f, pestle_onnx_convert(call, x, type->dtype),
                          d->rank + 1, dims);
}

void pestle_onnx_import_dft(pestle_onnx_call_t* call) {
  dft_t d = {.call = call};
  if (!read_dft(&d)) return;
  int64_t n = d.length, half = n / 2 + 1;
  bool real = d.inverse && d.onesided;
  complex_t x = {.re = read_part(&d, 0, real ? half : n),
                 .im = read_part(&d, 1, real ? half : n)};
  if (call->f.status) return;
  if (real) {
    pestle_value_t* y = fft(call, join(call, x), "IRFFT", n);
    call->outputs[0] = put_back(&d, y, n);
    return;
  }
  int64_t wanted = d.onesided ? half : n;
  x = transform(call, x, n, wanted, d.inverse);
  pestle_value_t* parts[2] = {put_back(&d, x.re, wanted),
                              put_back(&d, x.im, wanted)};
  call->outputs[0] = pestle_f_concatenate(&call->f, parts, 2, d.rank);
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
  if (call->f.status) return false;
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
  x = pestle_onnx_convert(call, pestle_f_reshape(&call->f, x, 2, dims),
                          PESTLE_F64);
  pestle_type_t type = {
      .dtype = PESTLE_I64, .rank = 2, .dims = {s->frames, s->length}};
  pestle_value_t* starts =
      times(call, pestle_f_iota(&call->f, &type, 0), (double)s->step);
  pestle_value_t* places = add(call, starts, pestle_f_iota(&call->f, &type, 1));
  x = pestle_onnx_take(call, x, places, 1);
  if (s->window) x = mul(call, x, s->window);
  int64_t flat[] = {s->batch * s->frames, s->length};
  return pestle_f_reshape(&call->f, x, 2, flat);
}

void pestle_onnx_import_stft(pestle_onnx_call_t* call) {
  stft_t s = {.call = call};
  if (!read_stft(&s)) return;
  bool onesided = pestle_onnx_int(call, "onesided", 1) != 0;
  int64_t wanted = onesided ? s.length / 2 + 1 : s.length;
  complex_t x = {.re = frames_of(&s, 0), .im = frames_of(&s, 1)};
  if (call->f.status) return;
  x = transform(call, x, s.length, wanted, false);
  int64_t dims[] = {s.batch, s.frames, wanted, 1};
  x = each(call, x, dims, 4);
  call->outputs[0] = pestle_onnx_convert(
      call,
      pestle_f_concatenate(&call->f, (pestle_value_t*[]){x.re, x.im}, 2, 3),
      dtype_of(call->inputs[0]));
}

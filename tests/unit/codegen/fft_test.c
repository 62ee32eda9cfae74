// SPDX-License-Identifier: Apache-2.0
// fft at lengths that are products of matrices, of factors, and convolutions
// with a chirp: through the whole compiler, against the sum itself in long
// double. Small shapes of every kind are in the sweep of conform_ops.h.
#include <math.h>
#include <stdlib.h>

#include "ir/graph.h"
#include "pestle/pestle.h"
#include "test.h"

static pestle_context_t* context;

typedef struct case_t {
  const char* kind;
  int64_t n;
  bool wide;
} case_t;

static const int64_t lengths[] = {
    1,   2,   3,   13,  48,   49,   64,   96,   127,
    128, 131, 257, 360, 1009, 1024, 2018, 3001,
};
static const char* const kinds[] = {"FFT", "IFFT", "RFFT", "IRFFT"};

static double random_unit(uint32_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 17;
  *state ^= *state << 5;
  return (double)*state / 2147483648.0 - 1;
}

static double get(bool wide, const void* data, int64_t at) {
  return wide ? ((const double*)data)[at] : (double)((const float*)data)[at];
}

static void put(bool wide, void* data, int64_t at, double value) {
  if (wide) {
    ((double*)data)[at] = value;
  } else {
    ((float*)data)[at] = (float)value;
  }
}

typedef struct signal_t {
  bool in_real, out_real;
  int64_t in, out;       // elements
  long double *re, *im;  // n each: the whole input
} signal_t;

static signal_t make_signal(const case_t* c, void* data) {
  int64_t half = c->n / 2 + 1, n = c->n;
  signal_t s = {.in_real = !strcmp(c->kind, "RFFT"),
                .out_real = !strcmp(c->kind, "IRFFT")};
  s.in = s.out_real ? half : n;
  s.out = s.in_real ? half : n;
  s.re = calloc((size_t)n, sizeof(*s.re));
  s.im = calloc((size_t)n, sizeof(*s.im));
  uint32_t state = (uint32_t)n;
  int64_t parts = s.in_real ? 1 : 2;
  for (int64_t i = 0; i < s.in * parts; ++i)
    put(c->wide, data, i, random_unit(&state));
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = i < s.in ? i : n - i;
    s.re[i] = (long double)get(c->wide, data, parts * at);
    if (parts == 1) continue;
    s.im[i] = (long double)get(c->wide, data, parts * at + 1);
    if (i >= s.in) s.im[i] = -s.im[i];
  }
  return s;
}

// The largest error and the largest result, over every stride-th frequency.
static void compare(const case_t* c, const signal_t* s, const void* got,
                    double* out_error, double* out_size) {
  const long double turn = 6.28318530717958647692528676655900577L;
  int64_t n = c->n, stride = n > 500 ? n / 97 : 1;
  int sign = c->kind[0] == 'I' ? 1 : -1;
  *out_error = *out_size = 0;
  for (int64_t k = 0; k < s->out; k += stride) {
    long double re = 0, im = 0;
    for (int64_t j = 0; j < n; ++j) {
      long double angle =
          sign * turn * (long double)(j * k % n) / (long double)n;
      long double a = cosl(angle), b = sinl(angle);
      re += s->re[j] * a - s->im[j] * b;
      im += s->re[j] * b + s->im[j] * a;
    }
    long double by = sign > 0 ? (long double)n : 1;
    double x = get(c->wide, got, s->out_real ? k : 2 * k);
    double y = s->out_real ? 0 : get(c->wide, got, 2 * k + 1);
    double off = fabs((double)(re / by - (long double)x));
    if (!s->out_real) off = fmax(off, fabs((double)(im / by - (long double)y)));
    *out_error = fmax(*out_error, off);
    *out_size = fmax(*out_size, (double)hypotl(re / by, im / by));
  }
}

static pestle_executable_t* compile(const case_t* c, const signal_t* s) {
  char text[512];
  const char* part = c->wide ? "f64" : "f32";
  char in[64], out[64];
  snprintf(in, sizeof(in),
           s->in_real ? "tensor<%lldx%s>" : "tensor<%lldxcomplex<%s>>",
           (long long)s->in, part);
  snprintf(out, sizeof(out),
           s->out_real ? "tensor<%lldx%s>" : "tensor<%lldxcomplex<%s>>",
           (long long)s->out, part);
  snprintf(text, sizeof(text),
           "func.func @main(%%x: %s) -> %s { %%0 = stablehlo.fft %%x, type = "
           "%s, length = [%lld] : (%s) -> %s return %%0 : %s }",
           in, out, c->kind, (long long)c->n, in, out, out);
  pestle_module_t* module;
  pestle_plan_t* plan;
  pestle_executable_t* exe;
  assert_ok(pestle_module_parse(context, text, strlen(text), NULL, &module));
  pestle_compile_options_t options = {
      .struct_size = sizeof(options), .no_cache = true, .verify = true};
  assert_ok(pestle_compile(context, module, NULL, &options, &plan));
  assert_ok(pestle_executable_create(context, plan, NULL, &exe));
  pestle_plan_release(plan);
  pestle_module_release(module);
  return exe;
}

static bool run(const case_t* c) {
  void* data = aligned_alloc(64, 16 * (size_t)(c->n + 8) / 64 * 64 + 64);
  signal_t s = make_signal(c, data);
  pestle_executable_t* exe = compile(c, &s);
  pestle_io_info_t io = pestle_executable_input(exe, 0);
  pestle_tensor_t in = {.data = data,
                        .device = {PESTLE_DEVICE_CPU, 0},
                        .ndim = 1,
                        .dtype = pestle_dtype_to_dlpack(io.dtype),
                        .shape = (int64_t*)(uintptr_t)io.dims};
  pestle_tensor_t out = {0};
  assert_ok(pestle_executable_run(exe, NULL, &in, 1, &out, 1, NULL));
  double error, size;
  compare(c, &s, out.data, &error, &size);
  // Of the largest frequency: 12 roundings, where 8 is the most that was seen
  // over these lengths (a chirp's convolution is three transforms).
  double bound = 12 * (c->wide ? 0x1p-53 : 0x1p-24) * size;
  bool ok = error <= bound;
  if (!ok) {
    print_error("%s of %lld, %s: off by %g of %g, %g allowed\n", c->kind,
                (long long)c->n, c->wide ? "f64" : "f32", error, size, bound);
  }
  pestle_tensor_release(exe, &out);
  pestle_executable_release(exe);
  free(s.re);
  free(s.im);
  free(data);
  return ok;
}

static void test_kind(void** state) {
  bool ok = true;
  for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); ++i) {
    for (int wide = 0; wide < 2; ++wide) {
      case_t c = {*state, lengths[i], wide != 0};
      ok = run(&c) && ok;
    }
  }
  assert_true(ok);
}

static int setup(void** state) {
  (void)state;
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .use_environment = true,
                                      .no_cache = true};
  assert_ok(pestle_context_create(&options, &context));
  return 0;
}

static int teardown(void** state) {
  (void)state;
  pestle_context_release(context);
  return 0;
}

int main(void) {
  struct CMUnitTest tests[4];
  for (size_t i = 0; i < 4; ++i) {
    tests[i] = (struct CMUnitTest){.name = kinds[i],
                                   .test_func = test_kind,
                                   .initial_state = (void*)(uintptr_t)kinds[i]};
  }
  return _cmocka_run_group_tests("fft", tests, 4, setup, teardown);
}

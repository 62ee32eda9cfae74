// SPDX-License-Identifier: Apache-2.0
// The protocol of compare.py for its workers in C and C++ (a JSON line a
// command and an answer), and how they time runs.
//
//   {"cmd": "prep", "case": "NAME"} ->
//     {"ok":1,"first_ms":..,"compile_ms":..,"chk":[sum,absmean]}
//   {"cmd": "run", "ms": MILLISECONDS} -> {"min":us,"med":us,"n":runs}
//
// An answer may also be {"err":"what"}. chk is of the first output.
#ifndef PESTLE_BENCH_CPU_SERVE_H_
#define PESTLE_BENCH_CPU_SERVE_H_

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline double serve_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Always false.
__attribute__((format(printf, 1, 2))) static inline bool serve_error(
    const char* format, ...) {
  char text[300];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  for (char* c = text; *c; ++c) {
    if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ') *c = '\'';
  }
  printf("{\"err\":\"%s\"}\n", text);
  return false;
}

// An input of a case, |size| bytes. False: an error, which is said.
static inline bool serve_read(const char* folder, const char* name, size_t i,
                              void* data, size_t size) {
  char path[1024];
  snprintf(path, sizeof(path), "%s/inputs/%s/%zu.bin", folder, name, i);
  FILE* file = fopen(path, "rb");
  size_t got = file ? fread(data, 1, size, file) : 0;
  if (file) fclose(file);
  return got == size || serve_error("%s has %zu of %zu bytes", path, got, size);
}

// Says that a case is ready. |i32|: its output is of those, else of f32.
static inline void serve_ready(double first, double compile, const void* output,
                               size_t n, bool i32) {
  double sum = 0, sizes = 0;
  for (size_t i = 0; i < n; ++i) {
    double x = i32 ? (double)((const int32_t*)output)[i]
                   : (double)((const float*)output)[i];
    sum += x;
    sizes += fabs(x);
  }
  printf("{\"ok\":1,\"first_ms\":%.3f,\"compile_ms\":%.3f", first * 1e3,
         compile * 1e3);
  if (n) printf(",\"chk\":[%.17g,%.17g]", sum, sizes / (double)n);
  printf("}\n");
}

static inline int serve_by_size(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static inline void serve_measure(bool (*run)(void*), void* state,
                                 double seconds) {
  enum { MOST = 200000 };
  static double times[MOST];
  if (!run(state)) return;
  double start = serve_now();
  if (!run(state)) return;
  double one = fmax(serve_now() - start, 1e-8), end = serve_now() + seconds;
  // Short ones are timed by the 100 us.
  int batch = one < 1e-4 ? (int)(1e-4 / one) + 1 : 1, n = 0;
  do {
    start = serve_now();
    for (int i = 0; i < batch; ++i) {
      if (!run(state)) return;
    }
    times[n++] = (serve_now() - start) / batch;
  } while ((serve_now() < end || n < 3) && n < MOST);
  qsort(times, (size_t)n, sizeof(*times), serve_by_size);
  printf("{\"min\":%.6g,\"med\":%.6g,\"n\":%ld}\n", times[0] * 1e6,
         times[n / 2] * 1e6, (long)n * batch);
}

// Answers until the input ends. |prepare| and |run| say their errors and return
// whether there was none; |prepare| calls serve_ready().
static inline void serve(bool (*prepare)(void*, const char* name),
                         bool (*run)(void*), void* state) {
  char line[1024], name[256];
  bool ready = false;
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("{\"ready\":1}\n");
  while (fgets(line, sizeof(line), stdin)) {
    const char* at = strstr(line, "\"case\": \"");
    const char* ms = strstr(line, "\"ms\":");
    if (at && sscanf(at + 9, "%255[^\"]", name) == 1) {
      ready = prepare(state, name);
    } else if (ms && ready) {
      serve_measure(run, state, atof(ms + 5) * 1e-3);
    } else {
      serve_error("nothing is prepared");
    }
  }
}

#endif  // PESTLE_BENCH_CPU_SERVE_H_

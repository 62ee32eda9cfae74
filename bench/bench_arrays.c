// SPDX-License-Identifier: Apache-2.0
// bench_arrays [PYTHON]: what arrays cost beside their kernels, as ratios of one run
// of this program. A line each:
//
//   record     nanoseconds to record a + b on four floats, and to drop it
//   evaluate   to record a + b, evaluate it from the cache, and drop it
//   call       to call a function that was captured as x * 2 + 1, four floats, and
//              drop its result
//   look up    to encode a cached graph of 1,000 nodes and find it, a node
//   graph      the same, to run it and drop it, a node; recording them is left out
//
// With PYTHON, one that has numpy, the first are also ratios to numpy's a + b, and
// the call to its x * 2 + 1, on four floats. A figure is the least of many short bursts, taken in turns, since other
// work shares the machine.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "pestle/pestle.h"

enum { ROUNDS = 400, BURST = 1000, NODES = 500 };

static void check(pestle_status_t status) {
  if (!status) return;
  char text[1024];
  pestle_status_format(status, text, sizeof(text));
  fprintf(stderr, "bench: %s\n", text);
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double least(double a, double b) {
  return a < b ? a : b;
}

static double numpy_ns(const char* python, const char* what) {
  char command[1024];
  double ns = 1e9;
  snprintf(command, sizeof(command),
           "'%s' -c \"import numpy, timeit; a = numpy.ones(4, 'f'); b = "
           "numpy.ones(4, 'f'); print(min(timeit.repeat('%s', number=2000, "
           "repeat=400, globals=globals())) / 2000 * 1e9)\"",
           python, what);
  FILE* pipe = popen(command, "r");
  if (!pipe || fscanf(pipe, "%lf", &ns) != 1) ns = 1e9;
  if (pipe) pclose(pipe);
  return ns;
}

static double record(pestle_array_t* a, pestle_array_t* b) {
  double begin = now();
  for (int i = 0; i < BURST; ++i) {
    pestle_array_t* y;
    check(pestle_array_add(a, b, &y));
    pestle_array_release(y);
  }
  return (now() - begin) / BURST;
}

static double evaluate(pestle_array_t* a, pestle_array_t* b) {
  double begin = now();
  for (int i = 0; i < BURST; ++i) {
    pestle_array_t* y;
    check(pestle_array_add(a, b, &y));
    check(pestle_array_eval(&y, 1, NULL));
    pestle_array_release(y);
  }
  return (now() - begin) / BURST;
}

static pestle_jit_t* capture(pestle_device_t* device,
                             const pestle_type_t* type) {
  pestle_capture_t* capture;
  pestle_array_t *x, *one, *two, *product, *y;
  pestle_module_t* module;
  pestle_jit_t* jit;
  check(pestle_capture_begin(device, type, 1, &capture, &x));
  check(pestle_array_scalar(device, PESTLE_F32, 1, &one));
  check(pestle_array_scalar(device, PESTLE_F32, 2, &two));
  check(pestle_array_multiply(x, two, &product));
  check(pestle_array_add(product, one, &y));
  check(pestle_capture_end(capture, &y, 1, &module));
  check(pestle_jit_create(device, module, capture, NULL, &jit));
  pestle_capture_release(capture);
  pestle_module_release(module);
  pestle_array_release(x);
  pestle_array_release(one);
  pestle_array_release(two);
  pestle_array_release(product);
  pestle_array_release(y);
  return jit;
}

static double call(pestle_jit_t* jit, pestle_array_t* a) {
  double begin = now();
  for (int i = 0; i < BURST; ++i) {
    pestle_array_t* y;
    check(pestle_jit_call(jit, &a, 1, NULL, &y, 1));
    pestle_array_release(y);
  }
  return (now() - begin) / BURST;
}

// Two chains of 500 nodes: longer ones are evaluated on the way.
static double graph(pestle_array_t* a, pestle_array_t* b, double* out_lookup) {
  pestle_array_t* ends[2] = {a, b};
  for (int e = 0; e < 2; ++e) {
    pestle_array_t* last = ends[e];
    pestle_array_retain(last);
    for (int i = 0; i < NODES; ++i) {
      pestle_array_t* y;
      check(pestle_array_add(last, i & 1 ? a : b, &y));
      pestle_array_release(last);
      last = y;
    }
    ends[e] = last;
  }
  // What is known to take longer than 1 ns is found and left.
  bool done;
  double begin = now();
  check(pestle_array_eval_quick(ends, 2, 1, &done));
  *out_lookup = done ? 1e9 : (now() - begin) / (2 * NODES);
  begin = now();
  check(pestle_array_eval(ends, 2, NULL));
  pestle_array_release(ends[0]);
  pestle_array_release(ends[1]);
  return (now() - begin) / (2 * NODES);
}

static void print(const char* what, double ns, const char* peer, double numpy) {
  printf("%-10s %.1f ns", what, ns);
  if (numpy < 1e9) printf("  of numpy's %s %.3f", peer, ns / numpy);
  printf("\n");
}

int main(int argc, char** argv) {
  const char* python = argc > 1 ? argv[1] : NULL;
  pestle_context_options_t options = {
      .struct_size = sizeof(options), .use_environment = true, .threads = 1};
  pestle_context_t* context;
  pestle_device_t* device;
  pestle_array_t *a, *b;
  float data[] = {1, 2, 3, 4};
  pestle_type_t type = {.dtype = PESTLE_F32, .rank = 1, .dims = {4}};
  check(pestle_context_create(&options, &context));
  check(pestle_context_device(context, NULL, &device));
  check(pestle_array_from_data(device, &type, data, &a));
  check(pestle_array_from_data(device, &type, data, &b));
  pestle_jit_t* jit = capture(device, &type);
  double best[5] = {1e9, 1e9, 1e9, 1e9, 1e9}, sum = 1e9, affine = 1e9;
  for (int round = 0; round < ROUNDS; ++round) {
    best[0] = least(best[0], record(a, b));
    best[1] = least(best[1], evaluate(a, b));
    best[2] = least(best[2], call(jit, a));
    if (round % 8 == 0) {
      double ns;
      best[3] = least(best[3], graph(a, b, &ns));
      // The first runs are timed: until then it is not known.
      if (round) best[4] = least(best[4], ns);
    }
    if (python && round % (ROUNDS / 4) == 0) {
      sum = least(sum, numpy_ns(python, "a + b"));
      affine = least(affine, numpy_ns(python, "a * 2 + 1"));
    }
  }
  print("record", best[0], "a + b", sum);
  print("evaluate", best[1], "a + b", sum);
  print("call", best[2], "a * 2 + 1", affine);
  print("look up", best[4], "", 1e9);
  print("graph", best[3], "", 1e9);
  if (python) printf("numpy      %.1f ns, %.1f ns\n", sum, affine);
  pestle_jit_release(jit);
  pestle_array_release(a);
  pestle_array_release(b);
  pestle_context_release(context);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// bench_buffers [PYTHON]: what a run on buffers costs, as ratios of one run of
// this program. A line each:
//
//   call       nanoseconds of pestle_executable_run_buffers() on a function of one
//              element, its output released again; of pestle_executable_run() on
//              the same; and, if PYTHON with numpy is given, of numpy's a + b on
//              four floats
//   alignment  4 x + 2 y of 256x512 f32, inputs 4, 16 and 48 bytes past a
//              multiple of 64, over aligned ones
//   loop       the same from aligned inputs, outputs from the cache, over a loop in
//              C whose output is reused
//
// All run on the calling thread. A figure is the least of many short bursts, taken
// in turns, since other work shares the machine.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pestle/pestle.h"

enum { ROWS = 256, COLUMNS = 512, COUNT = ROWS * COLUMNS, ROUNDS = 400 };

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

typedef struct bench_t {
  pestle_context_t* context;
  pestle_device_t* device;
} bench_t;

static pestle_executable_t* compile(const bench_t* b, const char* text) {
  pestle_module_t* module;
  pestle_plan_t* plan;
  pestle_executable_t* executable;
  check(pestle_module_parse(b->context, text, strlen(text), "bench.mlir",
                            &module));
  check(pestle_compile(b->context, module, b->device, NULL, &plan));
  check(pestle_executable_create(b->context, plan, NULL, &executable));
  pestle_plan_release(plan);
  pestle_module_release(module);
  return executable;
}

static void free_memory(void* memory) {
  free(memory);
}

// |count| floats |offset| bytes past a multiple of a page.
static pestle_buffer_t* wrap(const bench_t* b, size_t count, size_t offset) {
  size_t size = count * sizeof(float);
  char* memory = aligned_alloc(4096, (size + offset + 4095) / 4096 * 4096);
  pestle_buffer_wrap_options_t options = {.struct_size = sizeof(options),
                                          .release = free_memory,
                                          .release_self = memory};
  pestle_buffer_t* buffer;
  if (!memory) exit(1);
  float* data = (float*)(void*)(memory + offset);
  for (size_t i = 0; i < count; ++i)
    data[i] = (float)(i % 17) * 0.25f;
  check(pestle_buffer_wrap(b->device, data, size, &options, &buffer));
  return buffer;
}

static void run(pestle_executable_t* executable, pestle_buffer_t* const* inputs,
                size_t count) {
  pestle_buffer_view_t views[2] = {{.buffer = inputs[0]},
                                   {.buffer = inputs[1]}};
  pestle_buffer_t* output;
  check(pestle_executable_run_buffers(executable, NULL, views, count, &output,
                                      1, NULL));
  pestle_buffer_release(output);
}

static double least(double a, double b) {
  return a < b ? a : b;
}

// --- A call ---

static double numpy_ns(const char* python) {
  static const char script[] =
      "import numpy, timeit; a = numpy.ones(4, 'f'); b = numpy.ones(4, 'f'); "
      "print(min(timeit.repeat('a + b', number=2000, repeat=400, "
      "globals=globals())) / 2000 * 1e9)";
  char command[1024];
  double ns = 0;
  snprintf(command, sizeof(command), "'%s' -c \"%s\"", python, script);
  FILE* pipe = popen(command, "r");
  if (!pipe || fscanf(pipe, "%lf", &ns) != 1) ns = 0;
  if (pipe) pclose(pipe);
  return ns;
}

static void bench_call(const bench_t* b, const char* python) {
  enum { BURST = 2000 };
  pestle_executable_t* executable = compile(
      b,
      "module @one { func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> { "
      "%0 = stablehlo.add %x, %x : tensor<1xf32>\n return %0 : "
      "tensor<1xf32> } }");
  pestle_buffer_t* x[2] = {wrap(b, 1, 0), NULL};
  float in = 1, out;
  int64_t dims[] = {1};
  pestle_tensor_t input = {.data = &in,
                           .device = {PESTLE_DEVICE_CPU, 0},
                           .ndim = 1,
                           .dtype = {2, 32, 1},
                           .shape = dims};
  static _Alignas(64) float aligned[16];
  pestle_tensor_t output = input;
  output.data = aligned;
  double buffers = 1e9, tensors = 1e9, numpy = 1e9;
  (void)out;
  for (int round = 0; round < ROUNDS; ++round) {
    double begin = now();
    for (int i = 0; i < BURST; ++i)
      run(executable, x, 1);
    buffers = least(buffers, (now() - begin) / BURST);
    begin = now();
    for (int i = 0; i < BURST; ++i) {
      check(
          pestle_executable_run(executable, NULL, &input, 1, &output, 1, NULL));
    }
    tensors = least(tensors, (now() - begin) / BURST);
    if (python && round % (ROUNDS / 4) == 0) {
      numpy = least(numpy, numpy_ns(python));
    }
  }
  printf("call       run_buffers %.1f ns  run %.1f ns", buffers, tensors);
  if (python) {
    printf("  numpy's a + b %.1f ns  ratio %.2f", numpy, buffers / numpy);
  }
  printf("\n");
  pestle_buffer_release(x[0]);
  pestle_executable_release(executable);
}

// --- 4 x + 2 y ---

static void loop(const float* restrict x, const float* restrict y,
                 float* restrict z) {
  for (size_t i = 0; i < COUNT; ++i)
    z[i] = 4.0f * x[i] + 2.0f * y[i];
}

static void bench_axpby(const bench_t* b) {
  enum { BURST = 20, PLACES = 4 };
  static const size_t offsets[PLACES] = {0, 4, 16, 48};
  pestle_executable_t* executable = compile(
      b,
      "module @axpby { func.func @main(%x: tensor<256x512xf32>, %y: "
      "tensor<256x512xf32>) -> tensor<256x512xf32> { %c = stablehlo.constant "
      "dense<4.0> : tensor<256x512xf32>\n %d = stablehlo.constant dense<2.0> : "
      "tensor<256x512xf32>\n %0 = stablehlo.multiply %x, %c : "
      "tensor<256x512xf32>\n %1 = stablehlo.multiply %y, %d : "
      "tensor<256x512xf32>\n %2 = stablehlo.add %0, %1 : "
      "tensor<256x512xf32>\n return %2 : tensor<256x512xf32> } }");
  pestle_buffer_t* inputs[PLACES][2];
  for (int p = 0; p < PLACES; ++p) {
    for (int i = 0; i < 2; ++i)
      inputs[p][i] = wrap(b, COUNT, offsets[p]);
  }
  pestle_buffer_t* z = wrap(b, COUNT, 0);
  double best[PLACES] = {1e9, 1e9, 1e9, 1e9}, plain = 1e9;
  for (int round = 0; round < ROUNDS; ++round) {
    for (int p = 0; p < PLACES; ++p) {
      double begin = now();
      for (int i = 0; i < BURST; ++i)
        run(executable, inputs[p], 2);
      best[p] = least(best[p], (now() - begin) / BURST);
    }
    double begin = now();
    for (int i = 0; i < BURST; ++i) {
      loop(pestle_buffer_data(inputs[0][0]), pestle_buffer_data(inputs[0][1]),
           pestle_buffer_data(z));
      __asm__ volatile("" ::: "memory");
    }
    plain = least(plain, (now() - begin) / BURST);
  }
  printf("alignment  aligned %.0f ns  +4: %.3f  +16: %.3f  +48: %.3f\n",
         best[0], best[1] / best[0], best[2] / best[0], best[3] / best[0]);
  printf("loop       %.0f ns  ratio %.3f  bound %.3f\n", plain, best[0] / plain,
         (1.25 * plain + 1000) / plain);
  for (int p = 0; p < PLACES; ++p) {
    for (int i = 0; i < 2; ++i)
      pestle_buffer_release(inputs[p][i]);
  }
  pestle_buffer_release(z);
  pestle_executable_release(executable);
}

int main(int argc, char** argv) {
  bench_t b = {NULL, NULL};
  pestle_context_options_t options = {
      .struct_size = sizeof(options), .use_environment = true, .threads = 1};
  check(pestle_context_create(&options, &b.context));
  check(pestle_context_device(b.context, NULL, &b.device));
  bench_call(&b, argc > 1 ? argv[1] : NULL);
  bench_axpby(&b);
  pestle_context_release(b.context);
  return 0;
}

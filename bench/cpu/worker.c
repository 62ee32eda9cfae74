// SPDX-License-Identifier: Apache-2.0
// cpu_worker FOLDER THREADS: Pestle as one more program of a driver that takes
// turns with its peers, a JSON line a command and an answer:
//
//   {"cmd": "prep", "case": "NAME"} -> {"ok":1,"first_ms":..,"chk":[sum,absmean]}
//   {"cmd": "run", "ms": MILLISECONDS} -> {"min":us,"med":us,"n":runs}
//
// FOLDER/NAME.mlir, or else NAME.onnx, is compiled without any cache; its inputs
// are FOLDER/inputs/NAME/INDEX.bin, their bytes alone (prepare.py writes both).
// first_ms has the import, the compilation and the first run in it; chk is of the
// first output. Buffers are of the device and stay for all runs.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pestle/pestle.h"

enum { MOST_IO = 16, MOST_TIMES = 200000 };

typedef struct worker_t {
  const char* folder;
  pestle_context_t* context;
  pestle_device_t* device;
  pestle_executable_t* executable;
  size_t inputs, outputs;
  pestle_buffer_t* buffers[MOST_IO];
  pestle_tensor_t views[MOST_IO];
  int64_t shapes[MOST_IO][PESTLE_MAX_RANK];
  double times[MOST_TIMES];
} worker_t;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Whether |status| is an error; says so.
static bool failed(pestle_status_t status) {
  if (!status) return false;
  char text[1024];
  pestle_status_format(status, text, sizeof(text));
  pestle_status_release(status);
  for (char* c = text; *c; ++c) {
    if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ') *c = '\'';
  }
  printf("{\"err\":\"%.300s\"}\n", text);
  return true;
}

// --- A case ---

static void unload(worker_t* w) {
  for (int i = 0; i < MOST_IO; ++i) {
    if (w->buffers[i]) pestle_buffer_release(w->buffers[i]);
    w->buffers[i] = NULL;
  }
  if (w->executable) pestle_executable_release(w->executable);
  w->executable = NULL;
}

static pestle_status_t compile(worker_t* w, const char* name) {
  char path[1024];
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .no_cache = true};
  pestle_module_t* module = NULL;
  pestle_plan_t* plan = NULL;
  snprintf(path, sizeof(path), "%s/%s.mlir", w->folder, name);
  FILE* text = fopen(path, "rb");
  if (text) {
    fclose(text);
  } else {
    snprintf(path, sizeof(path), "%s/%s.onnx", w->folder, name);
  }
  pestle_status_t status = pestle_import_file(w->context, path, NULL, &module);
  if (!status)
    status = pestle_compile(w->context, module, w->device, &options, &plan);
  if (!status) {
    status =
        pestle_executable_create(w->context, plan, w->device, &w->executable);
  }
  if (plan) pestle_plan_release(plan);
  if (module) pestle_module_release(module);
  return status;
}

// False: an error, which is said.
static bool make_io(worker_t* w, const char* name, size_t i) {
  bool input = i < w->inputs;
  pestle_io_info_t info =
      input ? pestle_executable_input(w->executable, i)
            : pestle_executable_output(w->executable, i - w->inputs);
  size_t size = pestle_dtype_size(info.dtype);
  for (int32_t k = 0; k < info.rank; ++k) {
    w->shapes[i][k] = info.dims[k];
    size *= (size_t)info.dims[k];
  }
  if (failed(pestle_buffer_create(w->device, size, &w->buffers[i])))
    return false;
  w->views[i] = (pestle_tensor_t){.data = pestle_buffer_data(w->buffers[i]),
                                  .device = pestle_device_dl(w->device),
                                  .ndim = info.rank,
                                  .dtype = pestle_dtype_to_dlpack(info.dtype),
                                  .shape = w->shapes[i]};
  if (!input) return true;
  char path[1024];
  snprintf(path, sizeof(path), "%s/inputs/%s/%zu.bin", w->folder, name, i);
  FILE* file = fopen(path, "rb");
  size_t got = file ? fread(w->views[i].data, 1, size, file) : 0;
  if (file) fclose(file);
  if (got == size) return true;
  printf("{\"err\":\"%s has %zu of %zu bytes\"}\n", path, got, size);
  return false;
}

static pestle_status_t run_once(worker_t* w) {
  return pestle_executable_run(w->executable, NULL, w->views, w->inputs,
                               w->views + w->inputs, w->outputs, NULL);
}

static void say_ready(const worker_t* w, double took) {
  pestle_io_info_t info = pestle_executable_output(w->executable, 0);
  const void* data = w->views[w->inputs].data;
  size_t n = 1;
  for (int32_t k = 0; k < info.rank; ++k)
    n *= (size_t)info.dims[k];
  double sum = 0, sizes = 0;
  for (size_t i = 0; i < n; ++i) {
    double x = info.dtype == PESTLE_I32 ? (double)((const int32_t*)data)[i]
                                        : (double)((const float*)data)[i];
    sum += x;
    sizes += fabs(x);
  }
  printf("{\"ok\":1,\"first_ms\":%.3f,\"chk\":[%.17g,%.17g]}\n", took * 1e3,
         sum, sizes / (double)n);
}

static void prepare(worker_t* w, const char* name) {
  unload(w);
  double begin = now();
  if (failed(compile(w, name))) return;
  w->inputs = pestle_executable_input_count(w->executable);
  w->outputs = pestle_executable_output_count(w->executable);
  pestle_dtype_t dtype = pestle_executable_output(w->executable, 0).dtype;
  if (w->inputs + w->outputs > MOST_IO ||
      (dtype != PESTLE_F32 && dtype != PESTLE_I32)) {
    printf(
        "{\"err\":\"not for this program: more than %d inputs and outputs, "
        "or a first output that is neither f32 nor i32\"}\n",
        MOST_IO);
    unload(w);
    return;
  }
  double loaded = now();
  for (size_t i = 0; i < w->inputs + w->outputs; ++i) {
    if (!make_io(w, name, i)) {
      unload(w);
      return;
    }
  }
  double start = now();
  if (!failed(run_once(w))) say_ready(w, loaded - begin + now() - start);
}

// --- Timing ---

static int by_size(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void measure(worker_t* w, double seconds) {
  if (!w->executable) {
    printf("{\"err\":\"nothing is prepared\"}\n");
    return;
  }
  if (failed(run_once(w))) return;
  double start = now();
  if (failed(run_once(w))) return;
  double one = fmax(now() - start, 1e-8), end = now() + seconds;
  // As the peers' workers: short ones are timed by the 100 us.
  int batch = one < 1e-4 ? (int)(1e-4 / one) + 1 : 1, n = 0;
  do {
    start = now();
    for (int i = 0; i < batch; ++i) {
      if (failed(run_once(w))) return;
    }
    w->times[n++] = (now() - start) / batch;
  } while ((now() < end || n < 3) && n < MOST_TIMES);
  qsort(w->times, (size_t)n, sizeof(*w->times), by_size);
  printf("{\"min\":%.6g,\"med\":%.6g,\"n\":%ld}\n", w->times[0] * 1e6,
         w->times[n / 2] * 1e6, (long)n * batch);
}

int main(int argc, char** argv) {
  static worker_t w;
  char line[1024], name[256];
  if (argc < 3) {
    fprintf(stderr, "usage: cpu_worker FOLDER THREADS\n");
    return 2;
  }
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .use_environment = true,
                                      .no_cache = true,
                                      .threads = atoi(argv[2])};
  setvbuf(stdout, NULL, _IOLBF, 0);
  w.folder = argv[1];
  if (failed(pestle_context_create(&options, &w.context)) ||
      failed(pestle_context_device(w.context, "llvm", &w.device))) {
    return 1;
  }
  printf("{\"ready\":1}\n");
  while (fgets(line, sizeof(line), stdin)) {
    const char* at = strstr(line, "\"case\": \"");
    const char* ms = strstr(line, "\"ms\":");
    if (at && sscanf(at + 9, "%255[^\"]", name) == 1) {
      prepare(&w, name);
    } else if (ms) {
      measure(&w, atof(ms + 5) * 1e-3);
    } else {
      break;
    }
  }
  unload(&w);
  pestle_context_release(w.context);
  return 0;
}

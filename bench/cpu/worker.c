// SPDX-License-Identifier: Apache-2.0
// cpu_worker FOLDER THREADS: Pestle as one more program of compare.py, which
// takes turns with its peers; serve.h has the protocol.
//
// FOLDER/NAME.mlir, or else NAME.onnx, is compiled without any cache; its
// inputs are FOLDER/inputs/NAME/INDEX.bin (prepare.py writes both). compile_ms
// has the import in it, first_ms the first run too. Buffers are of the device
// and stay for all runs.
#include "pestle/pestle.h"
#include "serve.h"

enum { MOST_IO = 16 };

typedef struct worker_t {
  const char* folder;
  pestle_context_t* context;
  pestle_device_t* device;
  pestle_executable_t* executable;
  size_t inputs, outputs;
  pestle_buffer_t* buffers[MOST_IO];
  pestle_tensor_t views[MOST_IO];
  int64_t shapes[MOST_IO][PESTLE_MAX_RANK];
} worker_t;

// Whether |status| is none; says what it is.
static bool succeeded(pestle_status_t status) {
  if (!status) return true;
  char text[1024];
  pestle_status_format(status, text, sizeof(text));
  pestle_status_release(status);
  return serve_error("%s", text);
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
  if (!succeeded(pestle_buffer_create(w->device, size, &w->buffers[i])))
    return false;
  w->views[i] = (pestle_tensor_t){.data = pestle_buffer_data(w->buffers[i]),
                                  .device = pestle_device_dl(w->device),
                                  .ndim = info.rank,
                                  .dtype = pestle_dtype_to_dlpack(info.dtype),
                                  .shape = w->shapes[i]};
  return !input || serve_read(w->folder, name, i, w->views[i].data, size);
}

static bool run(void* state) {
  worker_t* w = state;
  return succeeded(pestle_executable_run(w->executable, NULL, w->views,
                                         w->inputs, w->views + w->inputs,
                                         w->outputs, NULL));
}

static bool prepare(void* state, const char* name) {
  worker_t* w = state;
  unload(w);
  double begin = serve_now();
  if (!succeeded(compile(w, name))) return false;
  double compiled = serve_now() - begin;
  w->inputs = pestle_executable_input_count(w->executable);
  w->outputs = pestle_executable_output_count(w->executable);
  pestle_io_info_t info = pestle_executable_output(w->executable, 0);
  if (w->inputs + w->outputs > MOST_IO ||
      (info.dtype != PESTLE_F32 && info.dtype != PESTLE_I32)) {
    return serve_error(
        "not for this program: more than %d inputs and outputs, or a first "
        "output that is neither f32 nor i32",
        MOST_IO);
  }
  for (size_t i = 0; i < w->inputs + w->outputs; ++i) {
    if (!make_io(w, name, i)) return false;
  }
  double start = serve_now();
  if (!run(w)) return false;
  double first = compiled + serve_now() - start;
  size_t n = 1;
  for (int32_t k = 0; k < info.rank; ++k)
    n *= (size_t)info.dims[k];
  serve_ready(first, compiled, w->views[w->inputs].data, n,
              info.dtype == PESTLE_I32);
  return true;
}

int main(int argc, char** argv) {
  static worker_t w;
  if (argc < 3) {
    fprintf(stderr, "usage: cpu_worker FOLDER THREADS\n");
    return 2;
  }
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .use_environment = true,
                                      .no_cache = true,
                                      .threads = atoi(argv[2])};
  w.folder = argv[1];
  if (!succeeded(pestle_context_create(&options, &w.context)) ||
      !succeeded(pestle_context_device(w.context, "llvm", &w.device))) {
    return 1;
  }
  serve(prepare, run, &w);
  unload(&w);
  pestle_context_release(w.context);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// A program that loads a plugin file of somebody else's and runs a module on it.
// Built against libpestle.so and, the same, against libpestle.a.
//
// usage: host PLUGIN.so BACKEND
#include <pestle/pestle.h>
#include <stdio.h>
#include <string.h>

static const char text[] =
    "func.func public @main(%x: tensor<6xf32>) -> tensor<6xf32> {\n"
    "  %0 = stablehlo.multiply %x, %x : tensor<6xf32>\n"
    "  return %0 : tensor<6xf32>\n"
    "}\n";

static pestle_context_t* context;
static pestle_module_t* module;
static pestle_plan_t* plan;
static pestle_executable_t* executable;

static pestle_status_t load(const char* path, const char* backend) {
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .cache_dir = "",
                                      .strict = true,
                                      .manual_backends = true,
                                      .probe_backends = true};
  pestle_compile_options_t compile = {.struct_size = sizeof(compile)};
  pestle_device_t* device;
  pestle_status_t status = pestle_context_create(&options, &context);
  if (!status) status = pestle_context_load_backend(context, path);
  if (!status) status = pestle_context_device(context, backend, &device);
  if (!status) {
    status = pestle_module_parse(context, text, strlen(text), "m", &module);
  }
  if (!status)
    status = pestle_compile(context, module, device, &compile, &plan);
  if (!status) {
    status = pestle_executable_create(context, plan, device, &executable);
  }
  return status;
}

static pestle_status_t run(float* y) {
  float x[6] = {1, 2, 3, 4, 5, 6};
  int64_t shape[1] = {6};
  pestle_tensor_t in = {.data = x,
                        .device = {PESTLE_DEVICE_CPU, 0},
                        .ndim = 1,
                        .dtype = pestle_dtype_to_dlpack(PESTLE_F32),
                        .shape = shape};
  pestle_tensor_t out = in;
  out.data = y;
  return pestle_executable_run(executable, NULL, &in, 1, &out, 1, NULL);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  float y[6] = {0};
  pestle_status_t status = load(argv[1], argv[2]);
  if (!status) status = run(y);
  if (status) fprintf(stderr, "%s\n", pestle_status_message(status));
  int failed = status != NULL;
  for (int i = 0; i < 6 && !failed; ++i)
    failed = y[i] != (float)((i + 1) * (i + 1));
  pestle_status_release(status);
  pestle_executable_release(executable);
  pestle_plan_release(plan);
  pestle_module_release(module);
  pestle_context_release(context);
  if (!failed) printf("right on %s\n", argv[2]);
  return failed;
}

// SPDX-License-Identifier: Apache-2.0
// The program by which pestle doctor sees whether a device computes.
#include <string.h>

#include "cli.h"

static const char program[] =
    "func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {"
    "  %p = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]"
    "       : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>"
    "  %y = stablehlo.add %p, %x : tensor<8x8xf32>"
    "  return %y : tensor<8x8xf32> }";

// x x + x, for x = all ones but for the last row of twos.
static bool is_right(const float* y) {
  for (int i = 0; i < 64; ++i) {
    float row = i / 8 == 7 ? 2 : 1;
    if (y[i] != row * 9 + row) return false;
  }
  return true;
}

pestle_status_t cli_doctor_compute(cli_t* cli, pestle_device_t* device,
                                   bool* out_is_right) {
  float x[64], y[64] = {0};
  *out_is_right = false;
  int64_t dims[2] = {8, 8};
  for (int i = 0; i < 64; ++i)
    x[i] = i / 8 == 7 ? 2 : 1;
  pestle_tensor_t in = {.data = x,
                        .device = {PESTLE_DEVICE_CPU, 0},
                        .ndim = 2,
                        .dtype = {2, 32, 1},
                        .shape = dims};
  pestle_tensor_t out = in;
  out.data = y;
  pestle_module_t* module;
  pestle_plan_t* plan = NULL;
  pestle_executable_t* executable = NULL;
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .no_cache = true};
  PESTLE_TRY(pestle_module_parse(cli->context, program, strlen(program),
                                 "doctor", &module));
  pestle_status_t status =
      pestle_compile(cli->context, module, device, &options, &plan);
  if (!status) {
    status = pestle_executable_create(cli->context, plan, device, &executable);
  }
  if (!status)
    status = pestle_executable_run(executable, NULL, &in, 1, &out, 1, NULL);
  *out_is_right = !status && is_right(y);
  pestle_executable_release(executable);
  pestle_plan_release(plan);
  pestle_module_release(module);
  return status;
}

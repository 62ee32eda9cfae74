// SPDX-License-Identifier: Apache-2.0
// pestle compile: a model becomes a plan in a file.
#include "cli.h"

pestle_status_t cli_compile(cli_t* cli, int* out_exit) {
  (void)out_exit;
  const char* path;
  pestle_device_t* device;
  pestle_plan_t* plan;
  PESTLE_TRY(cli_only_model(cli, &path));
  const char* file = cli->text[CLI_OUT];
  if (!file) {
    return CLI_USAGE_ERROR(
        "'pestle compile' wants -o FILE.plan: where to write the plan");
  }
  PESTLE_TRY(cli_check_target(path, file, "-o"));
  PESTLE_TRY(cli_device(cli, &device));
  PESTLE_TRY(cli_compile_plan(cli, path, NULL, device, &plan));
  pestle_status_t status = pestle_plan_save(plan, file);
  pestle_plan_release(plan);
  return status;
}

// SPDX-License-Identifier: Apache-2.0
// From a file to a plan: a saved plan is loaded, all else is compiled.
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "cli.h"
#include "pestle/plan_format.h"

bool cli_is_plan(const char* path) {
  char head[8] = {0};
  pestle_file_info_t info;
  pestle_status_t status = pestle_file_stat(path, true, &info);
  // No pipe: open() would wait for who writes to it.
  FILE* file = !status && info.is_file ? fopen(path, "rb") : NULL;
  pestle_status_release(status);
  size_t size = file ? fread(head, 1, sizeof(head), file) : 0;
  if (file) fclose(file);
  // A damaged plan is still told from a model by its name.
  return (size == sizeof(head) &&
          !memcmp(head, PESTLE_PLAN_MAGIC, sizeof(head))) ||
         pestle_str_ends_with(pestle_str(path), PESTLE_STR(".plan"));
}

pestle_status_t cli_check_target(const char* model, const char* file,
                                 const char* option) {
  pestle_file_info_t from, to;
  pestle_status_t status = pestle_file_stat(model, true, &from);
  if (!status) status = pestle_file_stat(file, true, &to);
  bool is_same = !status && from.device == to.device && from.inode == to.inode;
  pestle_status_release(status);
  if (!is_same) return NULL;
  return CLI_USAGE_ERROR("%s %s is the model itself, which would be lost",
                         option, file);
}

pestle_status_t cli_only_model(cli_t* cli, const char** out_path) {
  PESTLE_TRY(cli_only_argument(cli, "a model", out_path));
  if (!cli_is_plan(*out_path)) return NULL;
  return PESTLE_ERROR(
      INVALID_ARGUMENT,
      "'%s' is a compiled plan, which 'pestle run %s' runs; 'pestle %s' wants "
      "the model that it was made of",
      *out_path, *out_path, cli->verb);
}

static pestle_status_t check_plan_options(const cli_t* cli) {
  static const struct {
    int option;
    const char* name;
  } made[] = {{CLI_TARGET_CPU, "target-cpu"},
              {CLI_NUMERICS, "numerics"},
              {CLI_PRINT_AFTER, "print-after"},
              {CLI_TIME_PASSES, "time-passes"},
              {CLI_SKIP, "skip-passes"}};
  if (cli->list[CLI_DIM].size || cli->list[CLI_SHAPE].size ||
      cli->list[CLI_CONST].size) {
    return CLI_USAGE_ERROR(
        "a plan's shapes and constants are fixed: --dim, "
        "--shape and --const go where the plan is made");
  }
  for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); ++i) {
    if (!cli->text[made[i].option]) continue;
    return CLI_USAGE_ERROR(
        "a plan is compiled already: --%s goes where the plan is made",
        made[i].name);
  }
  return NULL;
}

pestle_status_t cli_open_plan(cli_t* cli, const char* path,
                              cli_inputs_t* inputs, pestle_plan_t** out_plan,
                              pestle_device_t** out_device) {
  *out_plan = NULL;
  *out_device = NULL;
  if (cli_is_plan(path)) {
    PESTLE_TRY(check_plan_options(cli));
    if (cli->text[CLI_DEVICE]) PESTLE_TRY(cli_device(cli, out_device));
    return pestle_plan_load(cli->context, path, out_plan);
  }
  PESTLE_TRY(cli_device(cli, out_device));
  return cli_compile_plan(cli, path, inputs, *out_device, out_plan);
}

// SPDX-License-Identifier: Apache-2.0
// From a file to a plan: a saved plan is loaded, all else is compiled.
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "cli.h"
#include "pestle/plan_format.h"
#include "pestle/plan_set.h"

// The first bytes of a regular file.
static bool read_head(const char* path, char head[8]) {
  pestle_file_info_t info;
  pestle_status_t status = pestle_file_stat(path, true, &info);
  // No pipe: open() would wait for who writes to it.
  FILE* file = !status && info.is_file ? fopen(path, "rb") : NULL;
  pestle_status_release(status);
  size_t size = file ? fread(head, 1, 8, file) : 0;
  if (file) fclose(file);
  return size == 8;
}

bool cli_is_plan_set(const char* path) {
  char head[8];
  return read_head(path, head) && !memcmp(head, PESTLE_PLAN_SET_MAGIC, 8);
}

bool cli_is_plan(const char* path) {
  char head[8];
  bool is_plan =
      read_head(path, head) && (!memcmp(head, PESTLE_PLAN_MAGIC, 8) ||
                                !memcmp(head, PESTLE_PLAN_SET_MAGIC, 8));
  // A damaged plan is still told from a model by its name.
  return is_plan || pestle_str_ends_with(pestle_str(path), PESTLE_STR(".plan"));
}

static bool is_same_file(const char* a, const char* b) {
  pestle_file_info_t first, second;
  pestle_status_t status = pestle_file_stat(a, true, &first);
  if (!status) status = pestle_file_stat(b, true, &second);
  bool is_same = !status && first.is_file && first.device == second.device &&
                 first.inode == second.inode;
  pestle_status_release(status);
  return is_same;
}

// Also of files that are not there yet.
static pestle_status_t is_same_target(cli_t* cli, const char* a, const char* b,
                                      bool* out_is_same) {
  *out_is_same = is_same_file(a, b);
  if (*out_is_same) return NULL;
  pestle_str_t name = pestle_path_name(a);
  if (!pestle_str_equal(name, pestle_path_name(b))) return NULL;
  const char* folders[2];
  const char* paths[] = {a, b};
  pestle_file_info_t info[2];
  bool found = true;
  for (int i = 0; i < 2; ++i) {
    folders[i] = cli_copy(cli, pestle_path_folder(paths[i]));
    if (!folders[i]) return PESTLE_OOM();
    pestle_status_t status = pestle_file_stat(folders[i], true, &info[i]);
    found = found && !status;
    pestle_status_release(status);
  }
  *out_is_same = found && info[0].device == info[1].device &&
                 info[0].inode == info[1].inode;
  return NULL;
}

static pestle_status_t check_trace_beside(cli_t* cli, const char* trace,
                                          const char* what, const char* file) {
  bool is_same = false;
  if (file) PESTLE_TRY(is_same_target(cli, trace, file, &is_same));
  if (!is_same) return NULL;
  return CLI_USAGE_ERROR("the trace goes to %s, which is %s: it would be lost",
                         trace, what);
}

// The values that are files: "x=FILE.npy".
static pestle_status_t check_trace_list(cli_t* cli, const char* trace,
                                        cli_option_t option) {
  for (size_t i = 0; i < cli->list[option].size; ++i) {
    pestle_str_t name;
    const char* file;
    if (!cli_split(cli->list[option].data[i], &name, &file)) continue;
    PESTLE_TRY(check_trace_beside(cli, trace, "an input", file));
  }
  return NULL;
}

pestle_status_t cli_check_trace(cli_t* cli, const char* trace) {
  for (size_t i = 0; i < cli->args.size; ++i) {
    PESTLE_TRY(
        check_trace_beside(cli, trace, "the model itself", cli->args.data[i]));
  }
  PESTLE_TRY(
      check_trace_beside(cli, trace, "what -o writes", cli->text[CLI_OUT]));
  PESTLE_TRY(check_trace_beside(cli, trace, "what --save-plan writes",
                                cli->text[CLI_SAVE_PLAN]));
  PESTLE_TRY(check_trace_list(cli, trace, CLI_INPUT));
  return check_trace_list(cli, trace, CLI_CONST);
}

pestle_status_t cli_check_target(const char* model, const char* file,
                                 const char* option) {
  if (!is_same_file(model, file)) return NULL;
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
              {CLI_COMPAT, "compat"},
              {CLI_NUMERICS, "numerics"},
              {CLI_TIER, "tier"},
              {CLI_PRINT_AFTER, "print-after"},
              {CLI_TIME_PASSES, "time-passes"},
              {CLI_TUNE, "tune"},
              {CLI_LOCK, "lock"},
              {CLI_FROZEN, "frozen"},
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
    if (cli_is_plan_set(path))
      return cli_choose_plan(cli, path, inputs, out_plan);
    return pestle_plan_load(cli->context, path, out_plan);
  }
  PESTLE_TRY(cli_device(cli, out_device));
  return cli_compile_plan(cli, path, inputs, *out_device, out_plan);
}

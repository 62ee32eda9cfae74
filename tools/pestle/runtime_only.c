// SPDX-License-Identifier: Apache-2.0
// Stands in for the *_compiler.c files in a build without the compiler
// (PESTLE_RUNTIME_ONLY). The only file of the command that asks which it is.
#include "cli.h"
#include "view.h"

#if PESTLE_RUNTIME_ONLY

#define NO_COMPILER(what)                                            \
  PESTLE_ERROR(UNSUPPORTED,                                          \
               "%s needs the compiler, which this pestle was built " \
               "without (PESTLE_RUNTIME_ONLY); it runs plans that "  \
               "'pestle run MODEL --save-plan FILE.plan' wrote",     \
               (what))

pestle_status_t cli_compile_plan(cli_t* cli, const char* path,
                                 cli_inputs_t* inputs, pestle_device_t* device,
                                 pestle_plan_t** out_plan) {
  (void)cli, (void)inputs, (void)device, (void)out_plan;
  return NO_COMPILER(path);
}

pestle_status_t cli_spread_io(cli_t* cli, bool of_result, size_t index,
                              pestle_io_info_t* info) {
  (void)cli, (void)of_result, (void)index, (void)info;
  return NULL;
}

void cli_spread_close(cli_t* cli) {
  (void)cli;
}

pestle_status_t cli_spread_run(cli_job_t* job) {
  (void)job;
  return NO_COMPILER("--mesh");
}

pestle_status_t cli_info_model(cli_t* cli, const char* path,
                               pestle_json_t* json) {
  (void)cli, (void)json;
  return NO_COMPILER(path);
}

pestle_status_t cli_view_compile(cli_view_t* view, pestle_device_t* device) {
  (void)device;
  return NO_COMPILER(view->path);
}

pestle_status_t cli_read_pb(cli_t* cli, const char* path,
                            cli_array_t* out_array) {
  (void)cli, (void)out_array;
  return NO_COMPILER(path);
}

pestle_status_t cli_limits(cli_t* cli, pestle_device_t* device, bool anew,
                           cli_limits_t* out_limits) {
  (void)cli, (void)device, (void)anew;
  *out_limits = (cli_limits_t){.threads = 0};
  return NULL;
}

double cli_limits_spread(const cli_limits_t* limits) {
  (void)limits;
  return 0;
}

pestle_status_t cli_doctor_compute(cli_t* cli, pestle_device_t* device,
                                   bool* out_is_right) {
  (void)cli, (void)device;
  *out_is_right = true;
  return NULL;
}

pestle_status_t cli_compile(cli_t* cli, int* out_exit) {
  (void)cli, (void)out_exit;
  return NO_COMPILER("'pestle compile'");
}

pestle_status_t cli_generate(cli_t* cli, int* out_exit) {
  (void)cli, (void)out_exit;
  return NO_COMPILER("'pestle generate'");
}

pestle_status_t cli_op_test(cli_t* cli, int* out_exit) {
  (void)cli, (void)out_exit;
  return NO_COMPILER("'pestle op-test'");
}

pestle_status_t cli_opt(cli_t* cli, int* out_exit) {
  (void)cli, (void)out_exit;
  return NO_COMPILER("'pestle opt'");
}

pestle_status_t cli_explain(cli_t* cli, int* out_exit) {
  (void)cli, (void)out_exit;
  return NO_COMPILER("'pestle explain'");
}

pestle_status_t cli_dump(cli_t* cli, int* out_exit) {
  (void)cli, (void)out_exit;
  return NO_COMPILER("'pestle dump'");
}

pestle_status_t cli_diff(cli_t* cli, int* out_exit) {
  (void)cli, (void)out_exit;
  return NO_COMPILER("'pestle diff'");
}

pestle_status_t cli_reduce(cli_t* cli, int* out_exit) {
  (void)cli, (void)out_exit;
  return NO_COMPILER("'pestle reduce'");
}

#endif

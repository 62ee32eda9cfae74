// SPDX-License-Identifier: Apache-2.0
// pestle explain: why a compilation does what it does, on stdout.
#include <string.h>

#include "base/str.h"
#include "cli.h"
#include "json.h"

typedef struct explain_t {
  const char* kernel;  // number or name; NULL: everything
  size_t kernels;      // seen
  size_t shown;
  bool complete;   // all that is known before kernels are compiled
  int32_t cancel;  // all was received
  pestle_json_t* json;
} explain_t;

static bool is_kernel(const char* name) {
  static const char* const others[] = {"cache", "layouts", "summary",
                                       "refused"};
  for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); ++i) {
    if (!strcmp(others[i], name)) return false;
  }
  return true;
}

// The kernel of that name, or of that number.
static bool is_wanted(const explain_t* e, const char* name, size_t number) {
  int64_t wanted;
  return !strcmp(e->kernel, name) ||
         (pestle_str_parse_i64(pestle_str(e->kernel), &wanted) && wanted >= 0 &&
          (size_t)wanted == number);
}

static void receive(void* user, pestle_stage_t stage, const char* name,
                    const char* text, size_t size) {
  explain_t* e = user;
  if (stage != PESTLE_STAGE_EXPLAIN) return;
  bool kernel = is_kernel(name);
  bool shown = !e->kernel || (kernel && is_wanted(e, name, e->kernels));
  if (shown && e->json) {
    pestle_json_begin_object(e->json);
    cli_key_cstr(e->json, "name", name);
    cli_key_bool(e->json, "is_kernel", kernel);
    pestle_json_key(e->json, "text");
    pestle_json_str(e->json, pestle_str_make(text, size));
    pestle_json_end_object(e->json);
    ++e->shown;
  } else if (shown) {
    if (e->shown) fputc('\n', stdout);
    fwrite(text, 1, size, stdout);
    ++e->shown;
  }
  e->kernels += kernel;
  if (strcmp(name, "summary") != 0) return;
  // What the target refuses only when it compiles is known after that; of one
  // kernel nobody asks for it.
  e->complete = true;
  e->cancel = e->kernel != NULL;
  fflush(stdout);
}

static void refuse(const explain_t* e, const char* message) {
  if (!e->json) {
    printf("\nrefused\n  %s\n", message);
    return;
  }
  pestle_json_begin_object(e->json);
  cli_key_cstr(e->json, "name", "refused");
  cli_key_bool(e->json, "is_kernel", false);
  cli_key_cstr(e->json, "text", message);
  pestle_json_end_object(e->json);
}

static pestle_status_t explain(cli_t* cli, explain_t* e,
                               pestle_module_t* module,
                               pestle_compile_options_t* options) {
  pestle_device_t* device;
  pestle_plan_t* plan = NULL;
  PESTLE_TRY(cli_device(cli, &device));
  options->dump = receive;
  options->dump_user = e;
  options->dump_stages = 1u << PESTLE_STAGE_EXPLAIN;
  cli->control.cancel = &e->cancel;
  pestle_status_t status =
      cli_compile_module(cli, module, device, options, &plan);
  pestle_plan_release(plan);
  if (e->complete) {
    if (pestle_status_code(status) == PESTLE_STATUS_UNSUPPORTED) {
      refuse(e, pestle_status_message(status));
    }
    pestle_status_release(status);
    status = NULL;
  }
  if (status || e->shown) return status;
  return CLI_USAGE_ERROR(
      "there is no kernel '%s': the model has %zu, from 0 on", e->kernel,
      e->kernels);
}

pestle_status_t cli_explain(cli_t* cli, int* out_exit) {
  (void)out_exit;
  const char* path;
  pestle_module_t* module;
  pestle_compile_options_t options;
  explain_t e = {.kernel = cli->text[CLI_KERNEL], .json = cli->json};
  PESTLE_TRY(cli_only_model(cli, &path));
  PESTLE_TRY(cli_compile_options(cli, &options));
  PESTLE_TRY(cli_open_module(cli, path, NULL, &module));
  if (cli->json) {
    cli_key_cstr(cli->json, "model", path);
    pestle_json_key(cli->json, "sections");
    pestle_json_begin_array(cli->json);
  }
  pestle_status_t status = explain(cli, &e, module, &options);
  if (cli->json) pestle_json_end_array(cli->json);
  pestle_module_release(module);
  return status;
}

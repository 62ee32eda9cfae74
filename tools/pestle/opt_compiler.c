// SPDX-License-Identifier: Apache-2.0
// pestle opt: a module after the passes that the options name.
#include "base/file.h"
#include "cli.h"
#include "json.h"

static pestle_status_t write_module(cli_t* cli, const pestle_module_t* module) {
  char* text;
  size_t size;
  PESTLE_TRY(pestle_module_print(
      module, cli->text[CLI_ELIDE] ? PESTLE_PRINT_ELIDE : 0, &text, &size));
  pestle_status_t status = NULL;
  if (cli->json) {
    cli_key_cstr(cli->json, "model", cli->args.data[0]);
    if (cli->text[CLI_OUT]) {
      cli_key_cstr(cli->json, "file", cli->text[CLI_OUT]);
    } else {
      cli_key_cstr(cli->json, "module", text);
    }
  }
  if (cli->text[CLI_OUT]) {
    status = pestle_file_write(cli->text[CLI_OUT], pestle_str_make(text, size));
  } else if (!cli->json) {
    fwrite(text, 1, size, stdout);  // main() looks whether it was written
  }
  pestle_context_free(cli->context, text, size + 1);
  return status;
}

pestle_status_t cli_opt(cli_t* cli, int* out_exit) {
  (void)out_exit;
  const char* path;
  pestle_device_t* device;
  pestle_module_t* module;
  pestle_compile_options_t options;
  PESTLE_TRY(cli_only_model(cli, &path));
  if (cli->text[CLI_OUT]) {
    PESTLE_TRY(cli_check_target(path, cli->text[CLI_OUT], "-o"));
  }
  PESTLE_TRY(cli_compile_options(cli, &options));
  PESTLE_TRY(cli_device(cli, &device));
  PESTLE_TRY(cli_open_module(cli, path, NULL, &module));
  pestle_status_t status =
      pestle_optimize(cli->context, module, device, &options);
  if (!status) status = write_module(cli, module);
  pestle_module_release(module);
  return status;
}

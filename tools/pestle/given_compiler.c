// SPDX-License-Identifier: Apache-2.0
// Imports that fail by what the command line says: which option it was.
#include <string.h>

#include "cli.h"

static const struct {
  cli_option_t option;
  const char* name;
} given[] = {{CLI_DIM, "--dim"},
             {CLI_SHAPE, "--shape"},
             {CLI_CONST, "--const"},
             {CLI_INPUT, "--input"}};
enum { GIVEN_COUNT = sizeof(given) / sizeof(given[0]) };

// Whether |message| is about the name of one of the options.
static bool is_about_name(const cli_t* cli, const char* message) {
  char quoted[1024];
  for (size_t g = 0; g < GIVEN_COUNT; ++g) {
    for (size_t i = 0; i < cli->list[given[g].option].size; ++i) {
      const char* text = cli->list[given[g].option].data[i];
      size_t size = strcspn(text, "=");
      if (size + 3 > sizeof(quoted)) continue;
      snprintf(quoted, sizeof(quoted), "'%.*s'", (int)size, text);
      if (strstr(message, quoted)) return true;
    }
  }
  return false;
}

// Whether the file fails in the same way when nothing is said about its inputs.
static bool fails_alone(const cli_t* cli, const char* path,
                        pestle_status_t status) {
  pestle_module_t* module;
  pestle_status_t alone = pestle_import_file(cli->context, path, NULL, &module);
  bool is_same = alone && !strcmp(pestle_status_message(alone),
                                  pestle_status_message(status));
  pestle_status_release(alone);
  pestle_module_release(module);
  return is_same;
}

static void list_options(const cli_t* cli, pestle_strbuf_t* out) {
  enum { MOST = 8 };
  size_t count = 0;
  for (size_t g = 0; g < GIVEN_COUNT; ++g) {
    for (size_t i = 0; i < cli->list[given[g].option].size; ++i) {
      if (count++ >= MOST) continue;
      pestle_strbuf_appendf(out, "%s%s %s", out->size ? ", " : "",
                            given[g].name, cli->list[given[g].option].data[i]);
    }
  }
  if (cli->text[CLI_INPUTS]) {
    pestle_strbuf_appendf(out, "%s--inputs %s", out->size ? ", " : "",
                          cli->text[CLI_INPUTS]);
  }
  if (cli->text[CLI_INPUTS_PB]) {
    pestle_strbuf_appendf(out, "%s--inputs-pb %s", out->size ? ", " : "",
                          cli->text[CLI_INPUTS_PB]);
  }
  if (count > MOST) {
    pestle_strbuf_appendf(out, " and %zu more", count - MOST);
  }
}

pestle_status_t cli_blame_options(cli_t* cli, const char* path,
                                  pestle_status_t status) {
  pestle_status_code_t code = pestle_status_code(status);
  // A name that the model lacks, as against a file that is missing.
  if (code == PESTLE_STATUS_NOT_FOUND &&
      is_about_name(cli, pestle_status_message(status))) {
    return cli_as_usage(status, code);
  }
  if (code != PESTLE_STATUS_MALFORMED && code != PESTLE_STATUS_UNSUPPORTED &&
      code != PESTLE_STATUS_INVALID_ARGUMENT) {
    return status;
  }
  pestle_strbuf_t options;
  pestle_strbuf_init(pestle_allocator_system(), &options);
  list_options(cli, &options);
  bool is_usage = !strcmp(pestle_status_file(status), "usage");
  if (options.size && !is_usage && !fails_alone(cli, path, status)) {
    status = pestle_status_annotate(
        status, "with what the command line says: %s; does it fit the model?",
        pestle_strbuf_cstr(&options));
  }
  pestle_strbuf_deinit(&options);
  return status;
}

// SPDX-License-Identifier: Apache-2.0
// pestle plugins test: the conformance kit, a program of its own beside this
// one. It has all of Pestle in itself, the reference evaluator included, which
// the library does not hand out.
#include <string.h>

#include "base/file.h"
#include "cli.h"

#define KIT "pestle-conform"

static pestle_status_t find_kit(cli_t* cli, const char** out_path) {
  const char* self;
  PESTLE_TRY(cli_own_path(&cli->arena, &self));
  const char* folder = cli_copy(cli, pestle_path_folder(self));
  if (!folder) return PESTLE_ERROR(OUT_OF_MEMORY, "looking for " KIT);
  *out_path = pestle_path_join(&cli->arena, folder, KIT);
  if (!*out_path) return PESTLE_ERROR(OUT_OF_MEMORY, "looking for " KIT);
  if (pestle_file_exists(*out_path)) return NULL;
  return PESTLE_ERROR(UNSUPPORTED,
                      "'pestle plugins test' needs the program %s, which this "
                      "build leaves out (PESTLE_RUNTIME_ONLY)",
                      *out_path);
}

// The folders that this command searches: the kit's own are others.
static pestle_status_t search_path(cli_t* cli, const char** out_text) {
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  const char* folder;
  for (size_t i = 0; (folder = pestle_context_search_path(cli->context, i));
       ++i) {
    if (!pestle_file_exists(folder)) continue;
    pestle_strbuf_appendf(&text, "%s%s", text.size ? ":" : "", folder);
  }
  pestle_status_t status = pestle_strbuf_status(&text);
  if (!status) *out_text = cli_copy(cli, pestle_strbuf_view(&text));
  pestle_strbuf_deinit(&text);
  return status;
}

pestle_status_t cli_plugins_test(cli_t* cli, int* out_exit) {
  (void)out_exit;
  if (cli->args.size != 2) {
    return CLI_USAGE_ERROR(
        "'pestle plugins test' wants one plugin: its file, or the name of a "
        "backend");
  }
  const char *kit, *folders = "";
  PESTLE_TRY(find_kit(cli, &kit));
  PESTLE_TRY(search_path(cli, &folders));
  const char* arguments[13] = {kit, cli->args.data[1], folders};
  size_t count = 3;
  if (cli->text[CLI_MARKDOWN]) arguments[count++] = "--markdown";
  if (cli->json) arguments[count++] = "--json";
  if (cli->text[CLI_OPS]) {
    arguments[count++] = "--ops";
    arguments[count++] = cli->text[CLI_OPS];
  }
  if (cli->text[CLI_TARGET_CPU]) {
    arguments[count++] = "--target-cpu";
    arguments[count++] = cli->text[CLI_TARGET_CPU];
  }
  if (cli->text[CLI_JOBS]) {
    arguments[count++] = "--jobs";
    arguments[count++] = cli->text[CLI_JOBS];
  }
  return cli_become(kit, arguments);
}

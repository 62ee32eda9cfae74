// SPDX-License-Identifier: Apache-2.0
// pestle dump: one stage of a compilation, on stdout or as files.
#include <ctype.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli.h"
#include "json.h"

static const struct {
  const char* name;
  pestle_stage_t stage;
  const char* suffix;
  bool is_per_kernel;
} stages[] = {
    {"graph", PESTLE_STAGE_GRAPH, "graph.mlir", false},
    {"fused", PESTLE_STAGE_FUSED, "fused.mlir", false},
    {"schedule", PESTLE_STAGE_SCHEDULE, "schedule.txt", true},
    {"kernels", PESTLE_STAGE_KERNELS, "kir.txt", true},
    {"source", PESTLE_STAGE_SOURCE, "ll", true},
    {"asm", PESTLE_STAGE_ASM, "s", true},
    {"plan", PESTLE_STAGE_PLAN, "plan.txt", false},
};
enum { STAGE_COUNT = sizeof(stages) / sizeof(stages[0]) };

typedef struct dump_t {
  cli_t* cli;
  const char* folder;  // or NULL: stdout
  size_t count;        // texts of the stage received
  size_t pass_count;   // of --print-after
  int32_t cancel;      // what is wanted was received
  pestle_status_t status;
} dump_t;

// The graph is shown as it is before any pass.
static pestle_status_t check_graph_options(const cli_t* cli,
                                           const char* passes) {
  static const struct {
    int option;
    const char* name;
  } chosen[] = {{CLI_PASSES, "passes"},
                {CLI_SKIP, "skip-passes"},
                {CLI_STOP_AFTER, "stop-after"}};
  for (size_t i = 0; i < sizeof(chosen) / sizeof(chosen[0]); ++i) {
    if (!cli->text[chosen[i].option]) continue;
    if (chosen[i].option == CLI_PASSES && !passes[0]) continue;  // transforms
    return CLI_USAGE_ERROR(
        "--stage graph is before all passes and --%s changes nothing in it; "
        "--stage fused is after them",
        chosen[i].name);
  }
  return NULL;
}

// Without --stage: what the options are about.
static const char* default_stage(const cli_t* cli, const char* passes) {
  bool has_passes =
      (passes && passes[0]) || cli->text[CLI_SKIP] || cli->text[CLI_STOP_AFTER];
  return has_passes ? "fused" : "graph";
}

static pestle_status_t read_stage(const cli_t* cli, const char* passes,
                                  int* out_stage) {
  const char* text = cli->text[CLI_STAGE];
  if (!text) text = default_stage(cli, passes);
  *out_stage = 0;
  for (int i = 0; i < STAGE_COUNT; ++i) {
    if (strcmp(stages[i].name, text)) continue;
    *out_stage = i;
    if (i && cli->text[CLI_FULL]) {
      return CLI_USAGE_ERROR(
          "--full is for --stage graph, not '%s'; 'pestle opt' prints the "
          "module after its passes in full",
          text);
    }
    return i ? NULL : check_graph_options(cli, passes);
  }
  pestle_closest_t closest = pestle_closest_to(pestle_str(text));
  char hint[PESTLE_HINT];
  for (int i = 0; i < STAGE_COUNT; ++i)
    pestle_closest_offer(&closest, pestle_str(stages[i].name));
  return CLI_USAGE_ERROR(
      "--stage wants graph, fused, schedule, kernels, "
      "source, asm or plan, not '%s'%s",
      text, pestle_closest_hint(&closest, hint));
}

// A kernel is called as the graph ops are: any bytes may be in its name.
static void append_file_name(const char* name, pestle_strbuf_t* out) {
  for (size_t i = 0; name[i] && i < 100; ++i) {
    bool is_plain = isalnum((unsigned char)name[i]) || strchr("_-.", name[i]);
    pestle_strbuf_append_char(out, is_plain ? name[i] : '_');
  }
}

// "003_add.ll" for a kernel, "pass_02_cse.mlir" for a pass, "plan.txt" for what
// there is one of: files sort in the order in which they were made.
static void make_file_name(const dump_t* dump, pestle_stage_t stage,
                           const char* name, pestle_strbuf_t* out) {
  const char* suffix = stage == PESTLE_STAGE_PASS ? "mlir" : "times.txt";
  bool is_numbered = stage == PESTLE_STAGE_PASS;
  for (int i = 0; i < STAGE_COUNT; ++i) {
    if (stages[i].stage != stage) continue;
    suffix = stages[i].suffix;
    is_numbered = stages[i].is_per_kernel;
  }
  if (stage == PESTLE_STAGE_PASS) {
    pestle_strbuf_appendf(out, "pass_%02zu_", dump->pass_count);
  } else if (is_numbered) {
    pestle_strbuf_appendf(out, "%03zu_", dump->count);
  }
  if (is_numbered) append_file_name(name, out);
  if (is_numbered) pestle_strbuf_append_char(out, '.');
  pestle_strbuf_append_c(out, suffix);
}

// Said at the top of a text that nothing can read back.
static const char* remark_for(pestle_stage_t stage, const char* text) {
  bool is_module = stage == PESTLE_STAGE_GRAPH || stage == PESTLE_STAGE_FUSED ||
                   stage == PESTLE_STAGE_PASS;
  if (!is_module || !strstr(text, "dense_elided<")) return "";
  return stage == PESTLE_STAGE_GRAPH
             ? "// Large constants are left out: dense_elided<hash>. --full "
               "prints them.\n"
             : "// Large constants are left out: dense_elided<hash>. 'pestle "
               "opt' prints them.\n";
}

static pestle_status_t write_file(dump_t* dump, pestle_stage_t stage,
                                  const char* name, const char* text,
                                  size_t size) {
  pestle_strbuf_t file;
  pestle_strbuf_init(pestle_allocator_system(), &file);
  make_file_name(dump, stage, name, &file);
  const char* path = pestle_path_join(&dump->cli->arena, dump->folder,
                                      pestle_strbuf_cstr(&file));
  pestle_strbuf_t whole;
  pestle_strbuf_init(pestle_allocator_system(), &whole);
  pestle_strbuf_append_c(&whole, remark_for(stage, text));
  pestle_strbuf_append_bytes(&whole, text, size);
  pestle_status_t status = path ? pestle_strbuf_status(&whole) : PESTLE_OOM();
  if (!status) status = pestle_file_write(path, pestle_strbuf_view(&whole));
  if (dump->cli->json) cli_key_cstr(dump->cli->json, "file", path);
  pestle_strbuf_deinit(&whole);
  pestle_strbuf_deinit(&file);
  return status;
}

static const char* stage_name(pestle_stage_t stage) {
  for (int i = 0; i < STAGE_COUNT; ++i) {
    if (stages[i].stage == stage) return stages[i].name;
  }
  return stage == PESTLE_STAGE_PASS ? "pass" : "times";
}

static void receive(void* user, pestle_stage_t stage, const char* name,
                    const char* text, size_t size) {
  dump_t* dump = user;
  if (dump->status) return;
  bool is_aside = stage == PESTLE_STAGE_PASS || stage == PESTLE_STAGE_TIMES;
  pestle_json_t* json = dump->cli->json;
  if (json) {
    pestle_json_begin_object(json);
    cli_key_cstr(json, "stage", stage_name(stage));
    cli_key_cstr(json, "name", name);
    if (!dump->folder) {
      pestle_json_key(json, "text");
      pestle_json_str(json, pestle_str_make(text, size));
    }
  }
  if (dump->folder) {
    dump->status = write_file(dump, stage, name, text, size);
  } else if (!json) {
    // Timings are no data of the dump; passes are, between title lines.
    FILE* out = stage == PESTLE_STAGE_TIMES ? stderr : stdout;
    if (stage == PESTLE_STAGE_PASS) fprintf(out, "// ---- after %s\n", name);
    fputs(remark_for(stage, text), out);
    fwrite(text, 1, size, out);
    if (size && text[size - 1] != '\n') fputc('\n', out);
  }
  if (json) pestle_json_end_object(json);
  if (!is_aside) ++dump->count;
  if (stage == PESTLE_STAGE_FUSED) dump->cancel = 1;
  if (stage == PESTLE_STAGE_PASS) ++dump->pass_count;
}

static pestle_status_t print_module(dump_t* dump,
                                    const pestle_module_t* module) {
  char* text;
  size_t size;
  unsigned flags = dump->cli->text[CLI_FULL] ? 0 : PESTLE_PRINT_ELIDE;
  PESTLE_TRY(pestle_module_print(module, flags, &text, &size));
  receive(dump, PESTLE_STAGE_GRAPH, "graph", text, size);
  pestle_context_free(dump->cli->context, text, size + 1);
  return NULL;
}

static pestle_status_t dump_compiled(dump_t* dump, pestle_module_t* module,
                                     pestle_compile_options_t* options) {
  pestle_device_t* device;
  pestle_plan_t* plan = NULL;
  PESTLE_TRY(cli_device(dump->cli, &device));
  options->dump = receive;
  options->dump_user = dump;
  options->no_cache = true;
  dump->cli->control.cancel = &dump->cancel;
  pestle_status_t status =
      cli_compile_module(dump->cli, module, device, options, &plan);
  pestle_plan_release(plan);
  // Passes that were left out may leave nothing that could be compiled.
  if (dump->cancel) {
    pestle_status_release(status);
    status = NULL;
  }
  return status;
}

// A device that is named exists, also where the stage asks nothing of it.
static pestle_status_t check_device(cli_t* cli) {
  pestle_device_t* device;
  bool is_named = cli->text[CLI_DEVICE] || cli->text[CLI_TARGET];
  return is_named ? cli_device(cli, &device) : NULL;
}

static pestle_status_t check_count(const dump_t* dump, int stage) {
  const char* pass = dump->cli->text[CLI_PRINT_AFTER];
  if (pass && !dump->pass_count) {
    return CLI_USAGE_ERROR(
        "no pass called '%s' ran; --time-passes lists "
        "those that do",
        pass);
  }
  if (dump->count) return NULL;
  return PESTLE_ERROR(UNSUPPORTED,
                      "the device has no text for the stage '%s' of this "
                      "model",
                      stages[stage].name);
}

static pestle_status_t dump_model(dump_t* dump, const char* path, int stage,
                                  pestle_compile_options_t* options) {
  pestle_module_t* module;
  PESTLE_TRY(cli_open_module(dump->cli, path, NULL, &module));
  pestle_status_t status;
  // The graph alone needs no compilation, and shows also what fails in one.
  if (stages[stage].stage == PESTLE_STAGE_GRAPH && !options->dump_stages) {
    status = check_device(dump->cli);
    if (!status) status = print_module(dump, module);
  } else {
    options->dump_stages |= 1u << stages[stage].stage;
    status = dump_compiled(dump, module, options);
    if (!status) status = check_count(dump, stage);
  }
  pestle_module_release(module);
  return pestle_status_join(status, dump->status);
}

pestle_status_t cli_dump(cli_t* cli, int* out_exit) {
  (void)out_exit;
  const char* path;
  int stage;
  pestle_compile_options_t options;
  dump_t dump = {.cli = cli, .folder = cli->text[CLI_OUT]};
  PESTLE_TRY(cli_only_model(cli, &path));
  PESTLE_TRY(cli_compile_options(cli, &options));
  PESTLE_TRY(read_stage(cli, options.passes, &stage));
  if (dump.folder) {
    pestle_file_info_t info;
    pestle_status_t status = pestle_file_stat(dump.folder, true, &info);
    if (status || !info.is_folder) {
      pestle_status_release(status);
      PESTLE_TRY(pestle_folder_make(dump.folder));
    }
  }
  if (!cli->json) return dump_model(&dump, path, stage, &options);
  cli_key_cstr(cli->json, "model", path);
  pestle_json_key(cli->json, "texts");
  pestle_json_begin_array(cli->json);
  pestle_status_t status = dump_model(&dump, path, stage, &options);
  pestle_json_end_array(cli->json);
  return status;
}

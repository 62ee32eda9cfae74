// SPDX-License-Identifier: Apache-2.0
// From a module to a plan, as the options say.
#include <string.h>

#include "base/file.h"
#include "base/thread.h"
#include "cli.h"

static void show_progress(void* user, const char* stage, int64_t done,
                          int64_t total) {
  cli_progress_t* p = user;
  if (total <= 0 || pestle_clock_ns() - p->begin_ns < 1000000000) return;
  char bar[31];
  for (int i = 0; i < 30; ++i)
    bar[i] = i < 30 * done / total ? '#' : '.';
  bar[30] = 0;
  fprintf(stderr, "\r%-8s [%s] %lld/%lld \033[K", stage, bar, (long long)done,
          (long long)total);
  atomic_store(&p->is_shown, true);
}

static void begin_progress(cli_t* cli) {
  cli->control = (pestle_control_t){.struct_size = sizeof(cli->control)};
  cli->progress.begin_ns = pestle_clock_ns();
  if (!cli_is_terminal(stderr)) return;
  cli->control.progress = show_progress;
  cli->control.progress_user = &cli->progress;
}

static void end_progress(cli_t* cli) {
  if (atomic_exchange(&cli->progress.is_shown, false)) {
    fputs("\r\033[K", stderr);
  }
}

pestle_status_t cli_numerics(const cli_t* cli,
                             pestle_numerics_t* out_numerics) {
  static const char* const names[] = {"default", "strict", "fast", NULL};
  char hint[PESTLE_HINT];
  const char* text = cli->text[CLI_NUMERICS];
  *out_numerics = PESTLE_NUMERICS_DEFAULT;
  for (int i = 0; text && i < 3; ++i) {
    if (strcmp(text, names[i])) continue;
    *out_numerics = (pestle_numerics_t)i;
    return NULL;
  }
  if (!text) return NULL;
  return CLI_USAGE_ERROR("--numerics wants strict, default or fast, not '%s'%s",
                         text, cli_hint(pestle_str(text), names, hint));
}

static pestle_status_t read_tier(const cli_t* cli,
                                 pestle_compile_options_t* options) {
  static const char* const names[] = {"full", "quick", NULL};
  char hint[PESTLE_HINT];
  const char* text = cli->text[CLI_TIER];
  if (!text || !strcmp(text, "full")) return NULL;
  if (strcmp(text, "quick")) {
    return CLI_USAGE_ERROR("--tier wants full or quick, not '%s'%s", text,
                           cli_hint(pestle_str(text), names, hint));
  }
  options->tier = PESTLE_TIER_QUICK;
  if (!cli->text[CLI_TUNE] && !cli->text[CLI_FROZEN]) return NULL;
  return CLI_USAGE_ERROR(
      "--tier quick takes no schedule from a lock: leave out --%s",
      cli->text[CLI_TUNE] ? "tune" : "frozen");
}

static pestle_status_t unknown_pass(const char* option, pestle_str_t name) {
  pestle_strbuf_t known;
  pestle_strbuf_init(pestle_allocator_system(), &known);
  pestle_closest_t closest = pestle_closest_to(name);
  char hint[PESTLE_HINT];
  for (size_t i = 0; pestle_pass_name(i); ++i) {
    pestle_closest_offer(&closest, pestle_str(pestle_pass_name(i)));
    pestle_strbuf_appendf(&known, i ? ", %s" : "%s", pestle_pass_name(i));
  }
  pestle_status_t status =
      CLI_USAGE_ERROR("%s: no pass is named '%.*s'; there are: %s%s", option,
                      PESTLE_STR_ARG(name), pestle_strbuf_cstr(&known),
                      pestle_closest_hint(&closest, hint));
  pestle_strbuf_deinit(&known);
  return status;
}

static bool is_pass(pestle_str_t name) {
  for (size_t i = 0; pestle_pass_name(i); ++i) {
    if (pestle_str_equal_c(name, pestle_pass_name(i))) return true;
  }
  return false;
}

pestle_status_t cli_check_passes(const char* name, const char* list,
                                 bool takes_all) {
  pestle_str_t rest = list ? pestle_str(list) : (pestle_str_t){0}, field;
  while (list && pestle_str_next(&rest, ',', &field)) {
    field = pestle_str_trim(field);
    if (takes_all && pestle_str_equal_c(field, "all")) continue;
    if (!is_pass(field)) return unknown_pass(name, field);
  }
  return NULL;
}

// stdout is for data: what a verb is asked to show goes to stderr.
static void print_stage(void* user, pestle_stage_t stage, const char* name,
                        const char* text, size_t size) {
  (void)user, (void)stage;
  fprintf(stderr, "// ---- %s\n%.*s\n", name,
          PESTLE_STR_ARG(pestle_str_make(text, size)));
}

// What is not asked for is used where it is there.
static pestle_status_t read_lock_options(cli_t* cli,
                                         pestle_compile_options_t* options) {
  static const char usual[] = "pestle.lock";
  bool tunes = cli->text[CLI_TUNE] != NULL;
  options->frozen = cli->text[CLI_FROZEN] != NULL;
  options->tune_seconds = (double)cli->count[CLI_TUNE];
  options->lock_path = cli->text[CLI_LOCK];
  if (tunes && (cli->count[CLI_TUNE] < 1 || cli->count[CLI_TUNE] > 1000000)) {
    return CLI_USAGE_ERROR("--tune wants 1 to 1000000 seconds, not '%s'",
                           cli->text[CLI_TUNE]);
  }
  if (tunes && options->frozen) {
    return CLI_USAGE_ERROR(
        "--tune and --frozen: what is frozen is not measured anew");
  }
  if (options->lock_path) return NULL;
  bool wanted = tunes || options->frozen;
  // What compares two ways to compile, or none at all, is not to depend on it.
  const char* verb = cli->verb;
  if (!strcmp(verb, "opt") || !strcmp(verb, "diff") ||
      !strcmp(verb, "reduce")) {
    return NULL;
  }
  if (wanted || pestle_file_exists(usual)) options->lock_path = usual;
  return NULL;
}

pestle_status_t cli_compile_options(cli_t* cli,
                                    pestle_compile_options_t* out_options) {
  const char* passes;
  PESTLE_TRY(cli_split_passes(cli, &passes));
  PESTLE_TRY(cli_check_passes("--passes", passes, false));
  PESTLE_TRY(cli_check_passes("--skip-passes", cli->text[CLI_SKIP], false));
  PESTLE_TRY(
      cli_check_passes("--print-after", cli->text[CLI_PRINT_AFTER], true));
  begin_progress(cli);
  *out_options = (pestle_compile_options_t){
      .struct_size = sizeof(*out_options),
      .target_cpu = cli->text[CLI_TARGET_CPU],
      .no_fuse = cli->text[CLI_NO_FUSE] != NULL,
      .no_cache = cli->text[CLI_NO_CACHE] != NULL,
      .verify = cli->text[CLI_VERIFY] != NULL,
      .passes = passes,
      .skip_passes = cli->text[CLI_SKIP],
      .print_after = cli->text[CLI_PRINT_AFTER],
      .control = &cli->control,
  };
  if (cli->count[CLI_STOP_AFTER] > INT32_MAX) {
    return CLI_USAGE_ERROR("--stop-after %s is too large",
                           cli->text[CLI_STOP_AFTER]);
  }
  out_options->stop_after = (int32_t)cli->count[CLI_STOP_AFTER];
  if (cli->text[CLI_PRINT_AFTER]) {
    out_options->dump_stages |= 1u << PESTLE_STAGE_PASS;
  }
  if (cli->text[CLI_TIME_PASSES]) {
    out_options->dump_stages |= 1u << PESTLE_STAGE_TIMES;
  }
  if (out_options->dump_stages) out_options->dump = print_stage;
  PESTLE_TRY(read_lock_options(cli, out_options));
  PESTLE_TRY(read_tier(cli, out_options));
  return cli_numerics(cli, &out_options->numerics);
}

pestle_status_t cli_compile_module(cli_t* cli, pestle_module_t* module,
                                   pestle_device_t* device,
                                   const pestle_compile_options_t* options,
                                   pestle_plan_t** out_plan) {
  int64_t begin = pestle_clock_ns();
  pestle_status_t status =
      pestle_compile(cli->context, module, device, options, out_plan);
  end_progress(cli);
  cli->times.compile_ms = (double)(pestle_clock_ns() - begin) * 1e-6;
  return status;
}

pestle_status_t cli_compile_plan(cli_t* cli, const char* path,
                                 cli_inputs_t* inputs, pestle_device_t* device,
                                 pestle_plan_t** out_plan) {
  *out_plan = NULL;
  pestle_compile_options_t options;
  pestle_module_t* module;
  PESTLE_TRY(cli_compile_options(cli, &options));
  pestle_status_t status = cli_open_module(cli, path, inputs, &module);
  end_progress(cli);
  if (!status) status = cli_spread_open(cli, module, device, &options);
  if (!status) {
    status = cli_compile_module(cli, module, device, &options, out_plan);
  }
  pestle_module_release(module);
  return status;
}

// SPDX-License-Identifier: Apache-2.0
// The context and the device that the options ask for, and small helpers.
#include <stdarg.h>
#include <string.h>

#include "base/file.h"
#include "cli.h"

static const char* const levels[] = {"error", "warn", "info", "debug"};

void cli_print_label(FILE* out, pestle_log_level_t level) {
  cli_colour_t colour = level == PESTLE_LOG_ERROR  ? CLI_RED
                        : level == PESTLE_LOG_WARN ? CLI_YELLOW
                                                   : CLI_PLAIN;
  fprintf(out, "pestle: %s%s:%s ", cli_colour(out, colour), levels[level],
          cli_colour(out, CLI_PLAIN));
}

static void log_message(void* user, pestle_log_level_t level,
                        const char* message) {
  const cli_t* cli = user;
  if (level > cli->log_level) return;
  // 'pestle plugins' prints what the log would say about them.
  bool is_listed = !strncmp(message, "backend ", strlen("backend "));
  if (is_listed && !cli->text[CLI_LOG] && !strcmp(cli->verb, "plugins")) return;
  cli_print_label(stderr, level);
  fprintf(stderr, "%s\n", message);
}

static pestle_status_t read_log_level(cli_t* cli,
                                      pestle_context_options_t* options) {
  const char* text = cli->text[CLI_LOG];
  const char* environment = cli_environment("PESTLE_LOG");
  cli->log_level = PESTLE_LOG_WARN;
  if (!text && !environment) {
    options->log_level = PESTLE_LOG_WARN;
    return NULL;
  }
  // The library reads the variable, and says so when it cannot be used.
  if (!text) {
    cli->log_level = PESTLE_LOG_DEBUG;
    return NULL;
  }
  for (int i = 0; i < 4; ++i) {
    if (strcmp(levels[i], text)) continue;
    options->log_level = cli->log_level = (pestle_log_level_t)i;
    return NULL;
  }
  pestle_closest_t closest = pestle_closest_to(pestle_str(text));
  char hint[PESTLE_HINT];
  for (int i = 0; i < 4; ++i)
    pestle_closest_offer(&closest, pestle_str(levels[i]));
  return CLI_USAGE_ERROR("--log wants error, warn, info or debug, not '%s'%s",
                         text, pestle_closest_hint(&closest, hint));
}

static pestle_status_t read_threads(const cli_t* cli,
                                    pestle_context_options_t* options) {
  if (!cli->text[CLI_THREADS]) return NULL;
  if (cli->count[CLI_THREADS] < 1 || cli->count[CLI_THREADS] > 1024) {
    return CLI_USAGE_ERROR("--threads wants a number from 1 to 1024, not '%s'",
                           cli->text[CLI_THREADS]);
  }
  options->threads = (int32_t)cli->count[CLI_THREADS];
  return NULL;
}

static pestle_status_t read_cache_size(const cli_t* cli,
                                       pestle_context_options_t* options) {
  if (!cli->text[CLI_CACHE_SIZE]) return NULL;
  if (cli->count[CLI_CACHE_SIZE] < 1) {
    return CLI_USAGE_ERROR(
        "--cache-size wants at least 1 byte, not '%s'; --no-cache keeps "
        "nothing",
        cli->text[CLI_CACHE_SIZE]);
  }
  options->cache_bytes = (uint64_t)cli->count[CLI_CACHE_SIZE];
  return NULL;
}

// Of PESTLE_TRACE the library warns when it cannot be written; who says --trace
// waits for the file.
static pestle_status_t open_trace(cli_t* cli) {
  const char* asked = cli->text[CLI_TRACE];
  const char* path = asked ? asked : cli_environment("PESTLE_TRACE");
  if (!path || !path[0]) return NULL;
  PESTLE_TRY(cli_check_trace(cli, path));
  if (!asked) return NULL;
  pestle_file_info_t info;
  pestle_status_t status = pestle_file_stat(path, true, &info);
  // Pipes and devices take the trace alone.
  bool is_other = !status && !info.is_file && !info.is_folder;
  pestle_status_release(status);
  if (is_other) return NULL;
  return pestle_status_annotate(pestle_file_write(path, pestle_str("")),
                                "while opening --trace %s", path);
}

// "--target cuda:sm_90a" is "--target cuda --target-cpu sm_90a"; "cuda:1" is a
// device's number.
static pestle_status_t split_target(cli_t* cli) {
  pestle_str_t name, cpu;
  int64_t number;
  const char* target = cli->text[CLI_TARGET];
  if (!target || !pestle_str_split(pestle_str(target), ':', &name, &cpu) ||
      !name.size || !cpu.size || pestle_str_parse_i64(cpu, &number)) {
    return NULL;
  }
  if (cli->text[CLI_TARGET_CPU]) {
    return CLI_USAGE_ERROR(
        "--target %s and --target-cpu %s name two; leave one out", target,
        cli->text[CLI_TARGET_CPU]);
  }
  cli->text[CLI_TARGET] = cli_copy(cli, name);
  cli->text[CLI_TARGET_CPU] = cli_copy(cli, cpu);
  if (cli->text[CLI_TARGET] && cli->text[CLI_TARGET_CPU]) return NULL;
  return PESTLE_OOM();
}

pestle_status_t cli_open_context(cli_t* cli) {
  PESTLE_TRY(split_target(cli));
  PESTLE_TRY(open_trace(cli));
  pestle_context_options_t options = {
      .struct_size = sizeof(options),
      .log = log_message,
      .log_user = cli,
      .use_environment = true,
      .strict = cli->text[CLI_STRICT] != NULL,
      .cache_dir = cli->text[CLI_CACHE_DIR],
      .backend_path = cli->text[CLI_BACKENDS],
      .trace_file = cli->text[CLI_TRACE],
  };
  options.no_cache = cli->text[CLI_NO_CACHE] != NULL;
  // The command outlives every plugin; what lists them tries each one anew.
  options.probe_backends = true;
  options.remember_probes = strcmp(cli->verb, "plugins") != 0;
  PESTLE_TRY(read_log_level(cli, &options));
  PESTLE_TRY(read_threads(cli, &options));
  PESTLE_TRY(read_cache_size(cli, &options));
  // Only an option or a variable can be an invalid argument here.
  PESTLE_TRY(cli_as_usage(pestle_context_create(&options, &cli->context),
                          PESTLE_STATUS_INVALID_ARGUMENT));
  for (size_t i = 0; i < cli->list[CLI_EXTENSION].size; ++i) {
    PESTLE_TRY(pestle_context_load_extension(cli->context,
                                             cli->list[CLI_EXTENSION].data[i]));
  }
  return NULL;
}

pestle_status_t cli_as_usage(pestle_status_t status,
                             pestle_status_code_t code) {
  if (!status || pestle_status_code(status) != code) return status;
  pestle_status_t usage = CLI_USAGE_ERROR("%s", pestle_status_message(status));
  const char* note;
  for (size_t i = 0; (note = pestle_status_note(status, i)); ++i)
    usage = pestle_status_annotate(usage, "%s", note);
  pestle_status_release(status);
  return usage;
}

pestle_status_t cli_device(cli_t* cli, pestle_device_t** out_device) {
  const char* target = cli->text[CLI_TARGET];
  pestle_status_t status =
      target ? pestle_context_target(cli->context, target, out_device)
             : pestle_context_device(cli->context, cli->text[CLI_DEVICE],
                                     out_device);
  status = cli_as_usage(status, PESTLE_STATUS_INVALID_ARGUMENT);
  return cli_as_usage(status, PESTLE_STATUS_NOT_FOUND);
}

const char* cli_hint(pestle_str_t typed, const char* const* names,
                     char out_hint[PESTLE_HINT]) {
  pestle_closest_t closest = pestle_closest_to(typed);
  for (; *names; ++names)
    pestle_closest_offer(&closest, pestle_str(*names));
  return pestle_closest_hint(&closest, out_hint);
}

bool cli_split(const char* text, pestle_str_t* out_name,
               const char** out_rest) {
  const char* equals = strchr(text, '=');
  if (!equals || equals == text) return false;
  *out_name = pestle_str_make(text, (size_t)(equals - text));
  *out_rest = equals + 1;
  return true;
}

const char* cli_copy(cli_t* cli, pestle_str_t text) {
  return pestle_arena_strndup(&cli->arena, text);
}

const char* cli_shown(cli_t* cli, const char* text) {
  char* out = PESTLE_ARENA_ARRAY(&cli->arena, char, 4 * strlen(text) + 1);
  if (!out) return "(out of memory)";
  size_t size = 0;
  for (const char* c = text; *c; ++c) {
    unsigned char byte = (unsigned char)*c;
    if (byte >= 0x20 && byte != 0x7f) {
      out[size++] = *c;
    } else {
      size += (size_t)sprintf(out + size, "\\x%02x", byte);
    }
  }
  out[size] = 0;
  return out;
}

pestle_status_t cli_only_argument(cli_t* cli, const char* what,
                                  const char** out_argument) {
  *out_argument = NULL;
  if (cli->args.size == 1) {
    *out_argument = cli->args.data[0];
    return NULL;
  }
  if (!cli->args.size) {
    return CLI_USAGE_ERROR("'pestle %s' wants %s; see 'pestle %s --help'",
                           cli->verb, what, cli->verb);
  }
  return CLI_USAGE_ERROR("'pestle %s' wants %s alone; what is '%s'?", cli->verb,
                         what, cli->args.data[1]);
}

void cli_say_error(const char* format, ...) {
  va_list args;
  va_start(args, format);
  cli_print_label(stderr, PESTLE_LOG_ERROR);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
}

// SPDX-License-Identifier: Apache-2.0
// pestle doctor: what is here and what is wrong with it. What JAX finds is looked at
// by a script (doctor_jax.py, which is in this program) in the Python whose JAX is
// meant: a command that is whole says what is wrong with an installation that is not.
#include <string.h>

#include "cli.h"
#include "json.h"
#include "pestle/version.h"

// --- What is looked at ---

typedef struct doctor_t {
  cli_t* cli;
  size_t wrong;
} doctor_t;

// One finding: "ok", "note" or "wrong", which makes the exit code 1.
static void say(doctor_t* d, const char* verdict, const char* what,
                const char* text) {
  bool is_wrong = !strcmp(verdict, "wrong");
  bool is_ok = !strcmp(verdict, "ok");
  d->wrong += is_wrong;
  if (d->cli->json) {
    pestle_json_begin_object(d->cli->json);
    cli_key_cstr(d->cli->json, "verdict", verdict);
    cli_key_cstr(d->cli->json, "about", what);
    cli_key_cstr(d->cli->json, "text", text);
    pestle_json_end_object(d->cli->json);
    return;
  }
  cli_colour_t colour = is_wrong ? CLI_RED : is_ok ? CLI_GREEN : CLI_YELLOW;
  printf("%s%-6s%s %s: %s\n", cli_colour(stdout, colour), verdict,
         cli_colour(stdout, CLI_PLAIN), what, text);
}

// A small program is compiled and run on each device: what is listed also computes.
static pestle_status_t look_at_devices(doctor_t* d) {
  static const char* const types[] = {"cpu", "gpu", "software"};
  cli_t* cli = d->cli;
  PESTLE_TRY(pestle_context_load_backends(cli->context));
  for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); ++t) {
    int32_t count = pestle_context_device_count(cli->context, types[t]);
    for (int32_t i = 0; i < count; ++i) {
      char spec[64], text[1024], what[160];
      bool is_right = false;
      pestle_device_t* device;
      (void)snprintf(spec, sizeof(spec), "%s:%d", types[t], (int)i);
      PESTLE_TRY(pestle_context_device(cli->context, spec, &device));
      (void)snprintf(what, sizeof(what), "%s (%s)", spec,
                     pestle_device_name(device));
      pestle_status_t status = cli_doctor_compute(cli, device, &is_right);
      if (status) pestle_status_format(status, text, sizeof(text));
      if (status) {
        say(d, "wrong", what, text);
      } else if (is_right) {
        say(d, "ok", what, "a program compiles and computes right");
      } else {
        say(d, "wrong", what, "a program computes another result than it must");
      }
      pestle_status_release(status);
    }
  }
  return NULL;
}

static pestle_status_t look_at_backends(doctor_t* d) {
  bool has_compiler = false;
  size_t count = pestle_context_backend_count(d->cli->context);
  for (size_t i = 0; i < count; ++i) {
    pestle_backend_info_t info = {.struct_size = sizeof(info)};
    PESTLE_TRY(pestle_context_backend_info(d->cli->context, i, &info));
    bool is_cpu = info.device_type == PESTLE_DEVICE_CPU;
    bool is_spare = info.verdict == PESTLE_VERDICT_OUTSCORED ||
                    info.verdict == PESTLE_VERDICT_FILTERED;
    if (is_spare) {
      // Another one of its name is used.
    } else if (info.reason[0]) {
      say(d, "note", info.name[0] ? info.name : "a backend", info.reason);
    } else if (is_cpu && info.path[0] && info.device_count) {
      has_compiler = true;
    }
  }
  if (!has_compiler) {
    say(d, "note", "cpu",
        "no backend generates code for this CPU, so that kernels are "
        "interpreted: install the llvm backend (pestle-llvm), or see 'pestle "
        "plugins list --why'");
  }
  return NULL;
}

static void look_at_cache(doctor_t* d) {
  char text[1200];
  const char* folder = pestle_context_cache_dir(d->cli->context);
  if (!folder) {
    say(d, "note", "cache", "plans are not kept: every start compiles anew");
    return;
  }
  pestle_cache_stats_t stats = {.struct_size = sizeof(stats)};
  pestle_status_t status = pestle_cache_stats(d->cli->context, &stats);
  if (status) {
    pestle_status_format(status, text, sizeof(text));
    say(d, "wrong", "cache", text);
  } else {
    (void)snprintf(text, sizeof(text), "%llu plans in %s",
                   (unsigned long long)stats.disk_entries, folder);
    say(d, "ok", "cache", text);
  }
  pestle_status_release(status);
}

// --- The verb ---

static pestle_status_t look(doctor_t* d) {
  cli_t* cli = d->cli;
  if (cli->json) {
    cli_key_cstr(cli->json, "version", pestle_version());
    cli_key_cstr(cli->json, "build_id", pestle_build_id());
    pestle_json_key(cli->json, "findings");
    pestle_json_begin_array(cli->json);
  } else {
    printf("pestle %s %s\n", pestle_version(), pestle_build_id());
  }
  PESTLE_TRY(look_at_devices(d));
  PESTLE_TRY(look_at_backends(d));
  look_at_cache(d);
  if (cli->json) {
    pestle_json_end_array(cli->json);
    cli_key_u64(cli->json, "wrong", d->wrong);
  }
  return NULL;
}

static pestle_status_t look_at_jax(const cli_t* cli, int* out_exit) {
  const char* python =
      cli->text[CLI_PYTHON] ? cli->text[CLI_PYTHON] : "python3";
  const char* const arguments[] = {python, "-c", cli_doctor_jax, NULL};
  int code = CLI_DONE;
  pestle_status_t status = cli_run_program(arguments, &code);
  if (code) *out_exit = code;
  if (!status) return NULL;
  return pestle_status_annotate(status,
                                "--python PYTHON says whose JAX is meant");
}

pestle_status_t cli_doctor(cli_t* cli, int* out_exit) {
  if (cli->args.size) {
    return CLI_USAGE_ERROR("'pestle doctor' takes no argument, not '%s'",
                           cli->args.data[0]);
  }
  if (cli->text[CLI_PYTHON] && !cli->text[CLI_JAX])
    return CLI_USAGE_ERROR("--python goes with --jax");
  if (cli->text[CLI_JAX] && cli->json)
    return CLI_USAGE_ERROR("--jax prints text: leave --json out");
  doctor_t d = {.cli = cli};
  PESTLE_TRY(look(&d));
  if (d.wrong) *out_exit = CLI_CHECK_FAILED;
  return cli->text[CLI_JAX] ? look_at_jax(cli, out_exit) : NULL;
}

// SPDX-License-Identifier: Apache-2.0
// pestle cache: the plans on disk.
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "json.h"

typedef struct visit_t {
  bool is_list;
  pestle_json_t* json;
  uint64_t sound, damaged;
} visit_t;

static void visit(void* user, const char* name, const char* model,
                  uint64_t bytes, int64_t used, pestle_status_t status) {
  visit_t* v = user;
  ++*(status ? &v->damaged : &v->sound);
  if (!v->is_list && !status) return;
  char when[32] = "-";
  time_t seconds = (time_t)used;
  const struct tm* parts = gmtime(&seconds);
  if (parts) strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", parts);
  if (v->json) {
    pestle_json_begin_object(v->json);
    cli_key_cstr(v->json, "name", name);
    cli_key_cstr(v->json, "model", model ? model : "");
    cli_key_u64(v->json, "bytes", bytes);
    cli_key_cstr(v->json, "used", when);
    cli_key_bool(v->json, "is_sound", !status);
    if (status) cli_key_cstr(v->json, "why", pestle_status_message(status));
    pestle_json_end_object(v->json);
    return;
  }
  printf("%s  %10" PRIu64 "  %s  %s%s%s\n", when, bytes, name,
         model ? model : "-", status ? "  DAMAGED: " : "",
         status ? pestle_status_message(status) : "");
}

static pestle_status_t print_stats(cli_t* cli) {
  pestle_cache_stats_t stats = {.struct_size = sizeof(stats)};
  PESTLE_TRY(pestle_cache_stats(cli->context, &stats));
  if (cli->json) {
    cli_key_cstr(cli->json, "folder", pestle_context_cache_dir(cli->context));
    cli_key_u64(cli->json, "entries", stats.disk_entries);
    cli_key_u64(cli->json, "constants", stats.disk_constants);
    cli_key_u64(cli->json, "bytes", stats.disk_bytes);
    return NULL;
  }
  printf("folder     %s\nentries    %" PRIu64 "\nconstants  %" PRIu64
         "\nbytes      %" PRIu64 "\n",
         pestle_context_cache_dir(cli->context), stats.disk_entries,
         stats.disk_constants, stats.disk_bytes);
  return NULL;
}

// The entries, printed or as the member "entries" of the JSON.
static pestle_status_t visit_all(cli_t* cli, bool checks, visit_t* v) {
  v->json = cli->json;
  if (!cli->json) return pestle_cache_visit(cli->context, checks, visit, v);
  pestle_json_key(cli->json, "entries");
  pestle_json_begin_array(cli->json);
  pestle_status_t status = pestle_cache_visit(cli->context, checks, visit, v);
  pestle_json_end_array(cli->json);
  return status;
}

static pestle_status_t verify(cli_t* cli, int* out_exit) {
  visit_t v = {0};
  PESTLE_TRY(visit_all(cli, true, &v));
  if (cli->json) {
    cli_key_u64(cli->json, "sound", v.sound);
    cli_key_u64(cli->json, "damaged", v.damaged);
  } else {
    printf("%" PRIu64 " sound, %" PRIu64 " damaged\n", v.sound, v.damaged);
  }
  if (!v.damaged) return NULL;
  *out_exit = CLI_CHECK_FAILED;
  cli_say_error("%" PRIu64
                " entries of the plan cache are damaged; they are "
                "not used, 'pestle cache prune' removes them",
                v.damaged);
  return NULL;
}

static pestle_status_t prune(cli_t* cli, uint64_t keep_bytes) {
  uint64_t removed = 0;
  PESTLE_TRY(pestle_cache_prune(cli->context, keep_bytes, &removed));
  if (cli->json) {
    cli_key_u64(cli->json, "removed", removed);
  } else {
    printf("removed %" PRIu64 " entries\n", removed);
  }
  return NULL;
}

pestle_status_t cli_cache(cli_t* cli, int* out_exit) {
  static const char words[] = "stats, list, verify, clear or prune";
  const char* what;
  PESTLE_TRY(cli_only_argument(cli, words, &what));
  if (!pestle_context_cache_dir(cli->context)) {
    return CLI_USAGE_ERROR(
        "there is no cache to look at: PESTLE_NO_CACHE is set, --cache-dir is "
        "empty, or nothing says where it is; give --cache-dir DIR");
  }
  if (!strcmp(what, "stats")) return print_stats(cli);
  if (!strcmp(what, "verify")) return verify(cli, out_exit);
  if (!strcmp(what, "clear")) return prune(cli, 0);
  if (!strcmp(what, "prune")) {
    // Without --keep: only what is damaged or belongs to no plan.
    return prune(
        cli, cli->text[CLI_KEEP] ? (uint64_t)cli->count[CLI_KEEP] : UINT64_MAX);
  }
  if (!strcmp(what, "list")) {
    visit_t v = {.is_list = true};
    return visit_all(cli, false, &v);
  }
  static const char* const names[] = {"stats", "list",  "verify",
                                      "clear", "prune", NULL};
  char hint[PESTLE_HINT];
  return CLI_USAGE_ERROR("'pestle cache' wants %s, not '%s'%s", words, what,
                         cli_hint(pestle_str(what), names, hint));
}

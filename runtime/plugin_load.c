// SPDX-License-Identifier: Apache-2.0
// One plugin: judge, open, compare, score, start. Every refusal is a sentence
// that names the path, what was expected, what was found and how to mend it.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/dynlib.h"
#include "base/file.h"
#include "base/mem.h"
#include "pestle/version.h"
#include "runtime/context.h"
#include "runtime/registry.h"

const char* pestle_plugin_where(const pestle_plugin_t* plugin) {
  return *plugin->path ? plugin->path : "the linked-in backend";
}

pestle_status_t pestle_plugin_refuse(pestle_arena_t* arena,
                                     pestle_plugin_t* plugin,
                                     pestle_verdict_t verdict,
                                     const char* format, ...) {
  char text[PESTLE_PLUGIN_REASON];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  plugin->is_refused = true;
  plugin->verdict = verdict;
  plugin->reason = pestle_arena_strdup(arena, text);
  if (plugin->reason) return NULL;
  plugin->reason = "";
  return PESTLE_OOM();
}

// --- Rows ---

static pestle_status_t make_row(pestle_arena_t* arena, const char* path,
                                pestle_plugin_t** out_plugin) {
  pestle_plugin_t* plugin = PESTLE_ARENA_NEW(arena, pestle_plugin_t);
  const char* copy = pestle_arena_strdup(arena, path);
  if (!plugin || !copy) return PESTLE_OOM();
  plugin->path = plugin->real_path = copy;
  plugin->name = plugin->label = plugin->build_id = "";
  plugin->reason = plugin->id = "";
  *out_plugin = plugin;
  return NULL;
}

pestle_status_t pestle_plugin_row(pestle_arena_t* arena, const char* path,
                                  pestle_plugin_t** out_plugin) {
  pestle_plugin_t* plugin = NULL;
  PESTLE_TRY(make_row(arena, path, &plugin));
  // "llvm-v19" and "llvm" of ".../libpestle-llvm-v19.so".
  pestle_str_t label = pestle_path_name(path);
  pestle_str_t prefix = PESTLE_STR(PESTLE_PLUGIN_PREFIX);
  pestle_str_t suffix = PESTLE_STR(PESTLE_PLUGIN_SUFFIX);
  if (pestle_str_starts_with(label, prefix)) {
    label = pestle_str_slice(label, prefix.size, label.size);
  }
  if (pestle_str_ends_with(label, suffix)) {
    label = pestle_str_slice(label, 0, label.size - suffix.size);
  }
  size_t end = 0;
  while (end < label.size && label.data[end] != '-' && label.data[end] != '.') {
    ++end;
  }
  const char* name =
      pestle_arena_strndup(arena, pestle_str_slice(label, 0, end));
  const char* copy = pestle_arena_strndup(arena, label);
  if (!name || !copy) return PESTLE_OOM();
  plugin->name = name;
  plugin->label = copy;
  *out_plugin = plugin;
  return NULL;
}

static pestle_status_t take_identity(pestle_arena_t* arena,
                                     const pestle_backend_abi_info_t* info,
                                     pestle_plugin_t* plugin) {
  size_t size = strlen(info->name) + strlen(info->build_id) + 2;
  char* id = pestle_arena_alloc(arena, size, 1);
  const char* name = pestle_arena_strdup(arena, info->name);
  const char* build_id = pestle_arena_strdup(arena, info->build_id);
  if (!id || !name || !build_id) return PESTLE_OOM();
  (void)snprintf(id, size, "%s %s", name, build_id);
  plugin->id = id;
  plugin->name = name;
  plugin->build_id = build_id;
  plugin->is_own = !strcmp(build_id, pestle_build_id()) ||
                   (PESTLE_HAS(info, host_build_id) &&
                    !strcmp(info->host_build_id, pestle_build_id()));
  return NULL;
}

// --- Files ---

static pestle_status_t ask_score(pestle_arena_t* arena,
                                 pestle_plugin_t* plugin) {
  plugin->score = 1;
  if (!plugin->score_fn) return NULL;
  char why[512] = "";
  plugin->score = plugin->score_fn(why, sizeof(why));
  why[sizeof(why) - 1] = 0;
  if (plugin->score > 0) return NULL;
  const char* where = pestle_plugin_where(plugin);
  if (*why) {
    return pestle_plugin_refuse(arena, plugin, PESTLE_VERDICT_SCORE,
                                "%s: not for this machine: %s", where, why);
  }
  return pestle_plugin_refuse(
      arena, plugin, PESTLE_VERDICT_SCORE,
      "%s: not for this machine: its score is %d, without a reason", where,
      (int)plugin->score);
}

static pestle_status_t find_functions(pestle_arena_t* arena,
                                      pestle_dynlib_t library,
                                      pestle_plugin_t* plugin) {
  pestle_dynlib_fn_t abi_info =
      pestle_dynlib_function(library, "pestle_backend_abi_info");
  pestle_dynlib_fn_t init =
      pestle_dynlib_function(library, "pestle_backend_init");
  if (!abi_info || !init) {
    return pestle_plugin_refuse(
        arena, plugin, PESTLE_VERDICT_ABI,
        "%s: exports no %s, expected of a backend; write the entry points "
        "with PESTLE_BACKEND_IMPL of pestle/plugin.h",
        plugin->path,
        abi_info ? "pestle_backend_init" : "pestle_backend_abi_info");
  }
  plugin->library = library;
  plugin->abi_info = (pestle_backend_abi_info_fn_t)abi_info;
  plugin->init = (pestle_backend_init_fn_t)init;
  plugin->score_fn = (pestle_backend_score_fn_t)pestle_dynlib_function(
      library, "pestle_backend_score");
  return NULL;
}

// Whether it says of itself that its devices are no cpus.
static bool is_other(const pestle_backend_abi_info_t* info) {
  return PESTLE_HAS(info, device_type) &&
         info->device_type != PESTLE_DEVICE_CPU;
}

static bool works_alone(const pestle_backend_abi_info_t* info) {
  return PESTLE_HAS(info, flags) && (info->flags & PESTLE_BACKEND_TARGET_ALONE);
}

pestle_status_t pestle_plugin_open(pestle_arena_t* arena,
                                   pestle_plugin_t* plugin,
                                   pestle_plugin_at_fn_t at, void* user) {
  if (!pestle_plugin_is_same(plugin->real_path, &plugin->stamp)) {
    return pestle_plugin_refuse(
        arena, plugin, PESTLE_VERDICT_UNTRUSTED,
        "%s: the file was changed or put in place of another while it was "
        "looked at; load it again when it is complete",
        plugin->path);
  }
  // A file that is cut short meanwhile ends the process that looks into it.
  if (at) at(user, "the look at its headers");
  const char* odd = pestle_plugin_inspect(plugin->real_path);
  if (odd) {
    return pestle_plugin_refuse(arena, plugin, PESTLE_VERDICT_UNLOADABLE,
                                "%s %s", plugin->path, odd);
  }
  pestle_dynlib_t library;
  if (at) at(user, "its constructors");
  pestle_status_t status = pestle_dynlib_open(plugin->real_path, &library);
  if (status) {
    pestle_status_t oom = pestle_plugin_refuse(
        arena, plugin, PESTLE_VERDICT_UNLOADABLE,
        "%s: cannot be loaded: %s; install what it needs or "
        "remove the file",
        plugin->path, pestle_status_message(status));
    pestle_status_release(status);
    return oom;
  }
  // Never closed, refused or not: its constructors may have started threads or
  // left functions behind, and its destructors are no better known than they.
  PESTLE_TRY(find_functions(arena, library, plugin));
  if (plugin->is_refused) return NULL;
  if (at) at(user, "pestle_backend_abi_info");
  const pestle_backend_abi_info_t* info = plugin->abi_info();
  PESTLE_TRY(pestle_plugin_check_abi(arena, info, plugin));
  if (plugin->is_refused) return NULL;
  PESTLE_TRY(take_identity(arena, info, plugin));
  plugin->is_target = works_alone(info);
  plugin->is_put_off = plugin->cpu_only && is_other(info);
  if (plugin->is_put_off || plugin->as_target) return NULL;
  if (at) at(user, "pestle_backend_score");
  return ask_score(arena, plugin);
}

// --- Trying ---

// From what a file that is not a crashed one came back.
static pestle_tried_t came_back_from(const pestle_plugin_t* plugin) {
  pestle_tried_t tried = PESTLE_TRIED_OPENED;
  if (plugin->is_put_off) return tried;
  if (!plugin->is_refused) {
    tried |= plugin->as_target ? PESTLE_TRIED_TARGET
                               : PESTLE_TRIED_SCORED | PESTLE_TRIED_STARTED;
  } else if (plugin->verdict == PESTLE_VERDICT_SCORE) {
    tried |= PESTLE_TRIED_SCORED;
  } else {
    return 0;
  }
  return tried;
}

static pestle_status_t try_in_child(pestle_context_t* context,
                                    pestle_arena_t* arena,
                                    pestle_plugin_t* plugin) {
  pestle_context_log(context, PESTLE_LOG_DEBUG, "backend tried in a child: %s",
                     plugin->path);
  int64_t begin = pestle_context_trace_begin(context);
  pestle_status_t status = pestle_plugin_try_in_child(context, arena, plugin);
  pestle_context_trace_end(context, begin, "load", "try in a child",
                           plugin->path);
  PESTLE_TRY(status);
  return pestle_plugin_note_tried(context, arena, plugin,
                                  came_back_from(plugin));
}

// What came back from a step in a child may take that step here; what it has
// not taken yet, a child takes first.
static pestle_status_t try_file(pestle_context_t* context,
                                pestle_arena_t* arena,
                                pestle_plugin_t* plugin) {
  pestle_tried_t tried;
  PESTLE_TRY(pestle_plugin_tried(context, arena, plugin, &tried));
  pestle_tried_t start = PESTLE_TRIED_STARTED;
  pestle_tried_t open = PESTLE_TRIED_SCORED;
  if (plugin->as_target) start = open = start | PESTLE_TRIED_TARGET;
  if (plugin->cpu_only) open |= PESTLE_TRIED_OPENED;
  if (tried & (start | open)) {
    PESTLE_TRY(pestle_plugin_open(arena, plugin, NULL, NULL));
    bool is_done = (tried & start) || plugin->is_refused || plugin->is_put_off;
    if (is_done) return NULL;
  }
  return try_in_child(context, arena, plugin);
}

pestle_status_t pestle_plugin_probe(pestle_context_t* context,
                                    pestle_arena_t* arena,
                                    pestle_plugin_t* plugin) {
  const char* reason;
  PESTLE_TRY(pestle_plugin_trust(arena, plugin->path, &plugin->real_path,
                                 &plugin->stamp, &reason));
  if (reason) {
    return pestle_plugin_refuse(arena, plugin, PESTLE_VERDICT_UNTRUSTED,
                                "%s: %s", plugin->path, reason);
  }
  if (context->probe_backends) return try_file(context, arena, plugin);
  return pestle_plugin_open(arena, plugin, NULL, NULL);
}

pestle_status_t pestle_plugin_probe_static(
    pestle_arena_t* arena, pestle_backend_abi_info_fn_t abi_info,
    pestle_backend_score_fn_t score, pestle_backend_init_fn_t init,
    bool cpu_only, pestle_plugin_t** out_plugin) {
  pestle_plugin_t* plugin = NULL;
  PESTLE_TRY(make_row(arena, "", &plugin));
  *out_plugin = plugin;
  plugin->abi_info = abi_info;
  plugin->score_fn = score;
  plugin->init = init;
  const pestle_backend_abi_info_t* info = abi_info();
  PESTLE_TRY(pestle_plugin_check_abi(arena, info, plugin));
  if (plugin->is_refused) return NULL;
  PESTLE_TRY(take_identity(arena, info, plugin));
  plugin->label = plugin->name;
  plugin->is_target = works_alone(info);
  plugin->is_put_off = cpu_only && is_other(info);
  if (plugin->is_put_off) return NULL;
  return ask_score(arena, plugin);
}

// --- Starting ---

// What init() said when it gave no backend. Takes |failure| over.
static pestle_status_t refuse_start(pestle_arena_t* arena,
                                    pestle_status_t failure,
                                    pestle_plugin_t* plugin) {
  if (pestle_status_code(failure) == PESTLE_STATUS_OUT_OF_MEMORY) {
    return failure;
  }
  char why[768] = "it gave no reason";
  if (failure) pestle_status_format(failure, why, sizeof(why));
  pestle_status_release(failure);
  return pestle_plugin_refuse(arena, plugin, PESTLE_VERDICT_INIT,
                              "%s: cannot start: %s",
                              pestle_plugin_where(plugin), why);
}

// Ends what init() gave. A table whose length is none is not looked into.
static void end_backend(const pestle_backend_t* backend) {
  bool is_table = backend->struct_size <= PESTLE_LONGEST_TABLE;
  if (is_table && PESTLE_HAS(backend, deinit)) backend->deinit(backend->self);
}

pestle_status_t pestle_plugin_start(pestle_context_t* context,
                                    pestle_arena_t* arena,
                                    pestle_plugin_t* plugin,
                                    pestle_plugin_at_fn_t at, void* user) {
  if (!plugin->init) {  // tried in a child only
    PESTLE_TRY(pestle_plugin_open(arena, plugin, NULL, NULL));
    if (plugin->is_refused) return NULL;
  }
  pestle_status_t failure = NULL;
  pestle_backend_init_fn_t init = plugin->init;
  if (at) at(user, "pestle_backend_init");
  const pestle_backend_t* backend = init(&context->host, &failure);
  if (at) at(user, "what pestle_backend_init gave");
  if (!backend || failure) return refuse_start(arena, failure, plugin);
  pestle_status_t status = pestle_plugin_check_tables(arena, backend, plugin);
  if (status || plugin->is_refused) {
    end_backend(backend);
    return status;
  }
  plugin->backend = backend;
  plugin->device_type = backend->device_type;
  plugin->score = backend->score;
  plugin->device_count = backend->device ? backend->device_count : 0;
  return NULL;
}

void pestle_plugin_stop(pestle_plugin_t* plugin) {
  const pestle_backend_t* backend = plugin->backend;
  plugin->backend = NULL;
  if (backend && !plugin->is_of_parent) end_backend(backend);
}

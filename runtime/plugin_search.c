// SPDX-License-Identifier: Apache-2.0
// Where plugin files lie. PESTLE_BACKEND_PATH (or the option) alone if set;
// else <folder of libpestle>/pestle/backends, where an install puts them, then
// backends/ beside libpestle, where a build does. Never the current folder.
#include <string.h>

#include "base/dynlib.h"
#include "base/file.h"
#include "runtime/context.h"
#include "runtime/registry.h"

static pestle_status_t search_folder(pestle_context_t* context,
                                     pestle_arena_t* arena, const char* folder,
                                     pestle_paths_t* paths) {
  const char** names;
  size_t count;
  pestle_status_t status = pestle_folder_list(folder, arena, &names, &count);
  if (status) {
    if (pestle_status_code(status) == PESTLE_STATUS_OUT_OF_MEMORY) {
      return status;
    }
    pestle_context_log_status(
        context, context->backend_path ? PESTLE_LOG_WARN : PESTLE_LOG_DEBUG,
        "looking for backends", status);
    return NULL;
  }
  for (size_t i = 0; i < count; ++i) {
    pestle_str_t name = pestle_str(names[i]);
    if (!pestle_str_starts_with(name, PESTLE_STR("libpestle-")) ||
        !pestle_str_ends_with(name, PESTLE_STR(".so"))) {
      continue;
    }
    const char* path = pestle_path_join(arena, folder, names[i]);
    if (!path || !pestle_vec_push(paths, path)) return PESTLE_OOM();
  }
  return NULL;
}

static pestle_status_t search_listed(pestle_context_t* context,
                                     pestle_arena_t* arena,
                                     pestle_paths_t* paths) {
  pestle_str_t rest = pestle_str(context->backend_path);
  pestle_str_t field;
  while (pestle_str_next(&rest, ':', &field)) {
    if (!field.size) continue;
    const char* folder = pestle_arena_strndup(arena, field);
    if (!folder) return PESTLE_OOM();
    PESTLE_TRY(search_folder(context, arena, folder, paths));
  }
  return NULL;
}

pestle_status_t pestle_plugin_search(pestle_context_t* context,
                                     pestle_arena_t* arena,
                                     pestle_paths_t* paths) {
  if (context->backend_path) return search_listed(context, arena, paths);
  const char* library;
  pestle_status_t status = pestle_dynlib_path_of(
      (pestle_dynlib_fn_t)pestle_plugin_search, arena, &library);
  if (pestle_status_code(status) == PESTLE_STATUS_OUT_OF_MEMORY) return status;
  if (status) {
    pestle_context_log_status(context, PESTLE_LOG_WARN, "looking for backends",
                              status);
    return NULL;
  }
  const char* base = pestle_arena_strndup(arena, pestle_path_folder(library));
  if (!base) return PESTLE_OOM();
  static const char* const folders[] = {"pestle/backends", "backends"};
  for (size_t i = 0; i < 2; ++i) {
    const char* folder = pestle_path_join(arena, base, folders[i]);
    if (!folder) return PESTLE_OOM();
    PESTLE_TRY(search_folder(context, arena, folder, paths));
  }
  return NULL;
}

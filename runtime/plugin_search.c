// SPDX-License-Identifier: Apache-2.0
// Where plugin files lie. PESTLE_BACKEND_PATH (or the option) alone if set;
// else <folder of libpestle>/pestle/backends, where an install puts them, then
// backends/ beside libpestle, where a build does. Never the current folder.
#include <string.h>

#include "base/dynlib.h"
#include "base/file.h"
#include "runtime/context.h"
#include "runtime/registry.h"

// --- Folders ---

static pestle_status_t add_folder(pestle_registry_t* registry,
                                  pestle_str_t folder) {
  for (size_t i = 0; i < registry->search_paths.size; ++i) {
    const char* other = registry->search_paths.data[i];
    if (pestle_str_equal_c(folder, other)) return NULL;
  }
  const char* copy = pestle_arena_strndup(&registry->arena, folder);
  if (!copy || !pestle_vec_push(&registry->search_paths, copy)) {
    return PESTLE_OOM();
  }
  return NULL;
}

static pestle_status_t add_listed(pestle_registry_t* registry) {
  pestle_context_t* context = registry->context;
  pestle_str_t rest = pestle_str(context->backend_path);
  pestle_str_t field;
  while (pestle_str_next(&rest, ':', &field)) {
    if (!field.size) continue;
    // A variable outlives many changes of the folder that it would be of.
    if (context->environment_path && field.data[0] != '/') {
      pestle_context_log(context, PESTLE_LOG_WARN,
                         "PESTLE_BACKEND_PATH has the folder '%.*s', which "
                         "depends on the current one and is not searched; "
                         "write it from / on",
                         PESTLE_STR_ARG(field));
      continue;
    }
    PESTLE_TRY(add_folder(registry, field));
  }
  return NULL;
}

static pestle_status_t add_built_in(pestle_registry_t* registry) {
  pestle_arena_t* arena = &registry->arena;
  const char* library;
  pestle_status_t status = pestle_dynlib_path_of(
      (pestle_dynlib_fn_t)pestle_plugin_search, arena, &library);
  if (pestle_status_code(status) == PESTLE_STATUS_OUT_OF_MEMORY) return status;
  if (status) {
    pestle_context_log_status(registry->context, PESTLE_LOG_WARN,
                              "looking for backends", status);
    return NULL;
  }
  const char* base = pestle_arena_strndup(arena, pestle_path_folder(library));
  if (!base) return PESTLE_OOM();
  static const char* const folders[] = {"pestle/backends", "backends"};
  for (size_t i = 0; i < 2; ++i) {
    const char* folder = pestle_path_join(arena, base, folders[i]);
    if (!folder) return PESTLE_OOM();
    PESTLE_TRY(add_folder(registry, pestle_str(folder)));
  }
  return NULL;
}

pestle_status_t pestle_plugin_search_paths(pestle_registry_t* registry) {
  if (registry->has_search_paths) return NULL;
  registry->search_paths.size = 0;
  PESTLE_TRY(registry->context->backend_path ? add_listed(registry)
                                             : add_built_in(registry));
  registry->has_search_paths = true;
  return NULL;
}

// --- Files ---

static pestle_status_t search_folder(pestle_registry_t* registry,
                                     const char* folder,
                                     pestle_paths_t* paths) {
  pestle_context_t* context = registry->context;
  const char** names;
  size_t count;
  pestle_status_t status =
      pestle_folder_list(folder, &registry->arena, &names, &count);
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
    if (!pestle_str_starts_with(name, PESTLE_STR(PESTLE_PLUGIN_PREFIX)) ||
        !pestle_str_ends_with(name, PESTLE_STR(PESTLE_PLUGIN_SUFFIX))) {
      continue;
    }
    const char* path = pestle_path_join(&registry->arena, folder, names[i]);
    if (!path || !pestle_vec_push(paths, path)) return PESTLE_OOM();
  }
  return NULL;
}

pestle_status_t pestle_plugin_search(pestle_registry_t* registry,
                                     pestle_paths_t* paths) {
  PESTLE_TRY(pestle_plugin_search_paths(registry));
  for (size_t i = 0; i < registry->search_paths.size; ++i) {
    PESTLE_TRY(search_folder(registry, registry->search_paths.data[i], paths));
  }
  return NULL;
}

// --- The caller's view ---

size_t pestle_context_search_path_count(pestle_context_t* context) {
  if (!context) return 0;
  pestle_context_enter(context);
  pestle_registry_t* registry = &context->registry;
  pestle_mutex_lock(&registry->mutex);
  // Out of memory: there are none yet.
  pestle_status_release(pestle_plugin_search_paths(registry));
  size_t count = registry->has_search_paths ? registry->search_paths.size : 0;
  pestle_mutex_unlock(&registry->mutex);
  return count;
}

const char* pestle_context_search_path(pestle_context_t* context,
                                       size_t index) {
  if (index >= pestle_context_search_path_count(context)) return NULL;
  pestle_registry_t* registry = &context->registry;
  pestle_mutex_lock(&registry->mutex);
  // Another thread may have set fewer.
  const char* path = index < registry->search_paths.size
                         ? registry->search_paths.data[index]
                         : NULL;
  pestle_mutex_unlock(&registry->mutex);
  return path;
}

static pestle_status_t copy_folders(pestle_registry_t* registry,
                                    const char* const* folders, size_t count,
                                    pestle_paths_t* copies) {
  for (size_t i = 0; i < count; ++i) {
    const char* copy = pestle_arena_strdup(&registry->arena, folders[i]);
    if (!copy || !pestle_vec_push(copies, copy)) return PESTLE_OOM();
  }
  return NULL;
}

pestle_status_t pestle_context_set_search_paths(pestle_context_t* context,
                                                const char* const* folders,
                                                size_t count) {
  if (!context || (count && !folders)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_context_set_search_paths needs a context and "
                        "the folders");
  }
  for (size_t i = 0; i < count; ++i) {
    if (folders[i] && *folders[i]) continue;
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "search path %zu of %zu is empty; the current folder "
                        "is never searched",
                        i, count);
  }
  pestle_context_enter(context);
  pestle_registry_t* registry = &context->registry;
  pestle_mutex_lock(&registry->mutex);
  pestle_paths_t copies;
  pestle_vec_init(&copies, context->core.allocator);
  pestle_status_t status = copy_folders(registry, folders, count, &copies);
  if (status) {
    pestle_vec_deinit(&copies);
  } else {
    pestle_vec_deinit(&registry->search_paths);
    registry->search_paths = copies;
    registry->has_search_paths = true;
  }
  pestle_mutex_unlock(&registry->mutex);
  return status;
}

// SPDX-License-Identifier: Apache-2.0
// Counting, listing and cutting the cache folder.
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "runtime/context.h"
#include "runtime/disk_entry.h"
#include "runtime/plan.h"

// A writer's file that is older was left behind by a crash.
#define STALE_NS ((int64_t)3600 * 1000000000)

typedef struct file_t {
  const char* name;
  const char* path;
  uint64_t size;
  int64_t used_ns;
  bool temporary;
} file_t;

typedef struct folder_t {
  pestle_arena_t arena;
  file_t* files;
  size_t count;
} folder_t;

static pestle_status_t list_files(pestle_context_t* context, folder_t* folder) {
  const char** names;
  size_t count;
  PESTLE_TRY(
      pestle_folder_list(context->cache_dir, &folder->arena, &names, &count));
  folder->files = PESTLE_ARENA_ARRAY(&folder->arena, file_t, count);
  if (!folder->files) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    file_t file = {.name = names[i]};
    if (!pestle_disk_entry_is_name(names[i], &file.temporary)) continue;
    file.path = pestle_path_join(&folder->arena, context->cache_dir, names[i]);
    if (!file.path) return PESTLE_OOM();
    pestle_file_info_t info;
    pestle_status_t status = pestle_file_stat(file.path, false, &info);
    if (status) {
      // Another process has just removed it.
      pestle_status_release(status);
      continue;
    }
    file.size = (uint64_t)info.size;
    file.used_ns = info.modified_ns;
    folder->files[folder->count++] = file;
  }
  return NULL;
}

// Lists the folder, which may not exist: then it has no files. To be ended
// with close_folder(), also after a failure.
static pestle_status_t open_folder(pestle_context_t* context,
                                   folder_t* out_folder) {
  memset(out_folder, 0, sizeof(*out_folder));
  pestle_arena_init(context->allocator, &out_folder->arena);
  const char* path = pestle_context_cache_dir(context);
  if (!path || !pestle_file_exists(path)) return NULL;
  return list_files(context, out_folder);
}

static void close_folder(folder_t* folder) {
  pestle_arena_deinit(&folder->arena);
}

// --- Statistics ---

pestle_status_t pestle_cache_stats(pestle_context_t* context,
                                   pestle_cache_stats_t* out_stats) {
  size_t size = out_stats->struct_size;
  if (size < sizeof(size_t)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_cache_stats_t.struct_size is not set");
  }
  pestle_context_enter(context);
  pestle_plan_cache_t* cache = &context->plan_cache;
  pestle_cache_stats_t stats = {
      .struct_size = size,
      .memory_hits = atomic_load(&cache->memory_hits),
      .disk_hits = atomic_load(&cache->disk_hits),
      .misses = atomic_load(&cache->misses),
      .evictions = atomic_load(&cache->evictions),
      .healed = atomic_load(&cache->healed),
  };
  pestle_mutex_lock(&cache->mutex);
  stats.memory_entries = cache->finished;
  pestle_mutex_unlock(&cache->mutex);
  folder_t folder;
  pestle_status_t status = open_folder(context, &folder);
  for (size_t i = 0; i < folder.count && !status; ++i) {
    if (folder.files[i].temporary) continue;
    ++stats.disk_entries;
    stats.disk_bytes += folder.files[i].size;
  }
  close_folder(&folder);
  PESTLE_TRY(status);
  memcpy(out_stats, &stats, size < sizeof(stats) ? size : sizeof(stats));
  return NULL;
}

// --- Looking at one entry ---

// Maps an entry and finds the model's name in it. The status says what is wrong
// with the entry; the mapping is to be unmapped in any case.
static pestle_status_t open_entry(const file_t* file, bool verify,
                                  pestle_mapping_t* out_mapping,
                                  const char** out_model) {
  *out_mapping = (pestle_mapping_t){NULL, 0};
  *out_model = "";
  const char* fault = pestle_platform_distrust(file->path, false);
  if (!fault) {
    PESTLE_TRY(pestle_file_map(file->path, out_mapping));
    fault = pestle_disk_entry_fault(*out_mapping, verify);
  }
  if (fault) {
    return PESTLE_ERROR(MALFORMED,
                        "%s: '%s'; it is replaced when its plan is "
                        "needed",
                        fault, file->path);
  }
  const pestle_disk_entry_t* header = out_mapping->data;
  const char* data = (const char*)out_mapping->data + header->plan_offset;
  PESTLE_TRY(pestle_plan_check(data, header->plan_size, false));
  pestle_plan_t plan = {.data = data, .size = header->plan_size};
  *out_model = pestle_plan_text(&plan, pestle_plan_header(&plan)->name);
  return NULL;
}

pestle_status_t pestle_cache_visit(pestle_context_t* context, bool verify,
                                   void (*visit)(void* user, const char* name,
                                                 const char* model,
                                                 uint64_t bytes, int64_t used,
                                                 pestle_status_t status),
                                   void* user) {
  pestle_context_enter(context);
  folder_t folder;
  pestle_status_t status = open_folder(context, &folder);
  for (size_t i = 0; i < folder.count && !status; ++i) {
    const file_t* file = &folder.files[i];
    if (file->temporary) continue;
    pestle_mapping_t mapping;
    const char* model;
    pestle_status_t fault = open_entry(file, verify, &mapping, &model);
    visit(user, file->name, model, file->size, file->used_ns / 1000000000,
          fault);
    pestle_status_release(fault);
    pestle_file_unmap(&mapping);
  }
  close_folder(&folder);
  return status;
}

// --- Cutting ---

static int compare_files(const void* a, const void* b) {
  const file_t* x = a;
  const file_t* y = b;
  if (x->used_ns != y->used_ns) return x->used_ns < y->used_ns ? -1 : 1;
  return strcmp(x->name, y->name);
}

static bool is_sound(const file_t* file) {
  pestle_mapping_t mapping;
  const char* model;
  pestle_status_t status = open_entry(file, true, &mapping, &model);
  bool sound = !status;
  pestle_status_release(status);
  pestle_file_unmap(&mapping);
  return sound;
}

pestle_status_t pestle_disk_cache_cut(pestle_context_t* context,
                                      uint64_t keep_bytes, bool verify,
                                      uint64_t* out_removed) {
  folder_t folder;
  uint64_t total = 0, removed = 0;
  pestle_status_t status = open_folder(context, &folder);
  if (folder.count) {
    qsort(folder.files, folder.count, sizeof(file_t), compare_files);
  }
  for (size_t i = 0; i < folder.count; ++i) {
    if (!folder.files[i].temporary) total += folder.files[i].size;
  }
  int64_t stale = pestle_wall_clock_ns() - STALE_NS;
  for (size_t i = 0; i < folder.count && !status; ++i) {
    const file_t* file = &folder.files[i];
    bool remove = file->temporary
                      ? file->used_ns < stale
                      : total > keep_bytes || (verify && !is_sound(file));
    if (!remove) continue;
    status = pestle_file_remove(file->path);
    if (status || file->temporary) continue;
    total -= file->size;
    ++removed;
  }
  close_folder(&folder);
  if (out_removed) *out_removed = removed;
  return status;
}

pestle_status_t pestle_cache_prune(pestle_context_t* context,
                                   uint64_t keep_bytes, uint64_t* out_removed) {
  if (out_removed) *out_removed = 0;
  pestle_context_enter(context);
  return pestle_disk_cache_cut(context, keep_bytes, true, out_removed);
}

// SPDX-License-Identifier: Apache-2.0
// Counting, listing and cutting the cache folder.
#include <stdlib.h>
#include <string.h>

#include "base/require.h"
#include "base/thread.h"
#include "runtime/context.h"
#include "runtime/disk_entry.h"
#include "runtime/plan.h"

// What is known of a plugin that was not tried for so long is let go: it may be
// gone, and costs a child to know again.
#define UNUSED_NS ((int64_t)90 * 24 * 3600 * 1000000000)
// A writer's file that is older was left behind by a crash; so was a constant
// whose plan has not come by then.
#define STALE_NS ((int64_t)3600 * 1000000000)

typedef struct file_t file_t;
struct file_t {
  const char* name;
  const char* path;
  uint64_t size;
  int64_t used_ns;
  pestle_disk_name_t kind;
  pestle_hash128_t hash;
  file_t** constants;  // of a plan: the files that it refers to
  size_t constant_count;
  size_t references;  // of a constant: the plans that refer to it
  bool removed, is_folder;
};

typedef struct folder_t {
  pestle_arena_t arena;
  file_t* files;
  size_t count;
} folder_t;

// A folder under an entry's name is a damaged one when it is empty; what somebody
// keeps in one is not ours to count or to remove.
static pestle_status_t is_empty(pestle_arena_t* arena, const char* path,
                                bool* out_empty) {
  const char** names;
  size_t count;
  pestle_status_t status = pestle_folder_list(path, arena, &names, &count);
  if (pestle_status_code(status) == PESTLE_STATUS_OUT_OF_MEMORY) return status;
  *out_empty = !status && !count;
  pestle_status_release(status);
  return NULL;
}

static pestle_status_t list_files(pestle_context_t* context, folder_t* folder) {
  const char** names;
  size_t count;
  PESTLE_TRY(
      pestle_folder_list(context->cache_dir, &folder->arena, &names, &count));
  folder->files = PESTLE_ARENA_ARRAY(&folder->arena, file_t, count);
  if (!folder->files) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    file_t file = {.name = names[i]};
    file.kind = pestle_disk_entry_name(names[i], &file.hash);
    if (file.kind == PESTLE_DISK_OTHER) continue;
    file.path = pestle_path_join(&folder->arena, context->cache_dir, names[i]);
    if (!file.path) return PESTLE_OOM();
    pestle_file_info_t info;
    pestle_status_t status = pestle_file_stat(file.path, false, &info);
    if (status) {
      // Another process has just removed it.
      pestle_status_release(status);
      continue;
    }
    file.is_folder = info.is_folder;
    bool counts = true;
    if (info.is_folder)
      PESTLE_TRY(is_empty(&folder->arena, file.path, &counts));
    if (!counts) continue;
    file.size = info.is_folder ? 0 : (uint64_t)info.size;
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
  pestle_arena_init(context->core.allocator, &out_folder->arena);
  const char* path = pestle_context_cache_dir(context);
  if (!path || !pestle_file_exists(path)) return NULL;
  return list_files(context, out_folder);
}

static void close_folder(folder_t* folder) {
  pestle_arena_deinit(&folder->arena);
}

// Whether it is of plans.
static bool is_entry(const file_t* file) {
  return file->kind == PESTLE_DISK_PLAN || file->kind == PESTLE_DISK_CONSTANT;
}

// --- Statistics ---

pestle_status_t pestle_cache_stats(pestle_context_t* context,
                                   pestle_cache_stats_t* out_stats) {
  PESTLE_REQUIRE(context && out_stats, "a context and a place for the counts");
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
  pestle_constants_stats(&context->constants, &stats.memory_constants,
                         &stats.memory_constant_bytes);
  folder_t folder;
  pestle_status_t status = open_folder(context, &folder);
  for (size_t i = 0; i < folder.count && !status; ++i) {
    if (!is_entry(&folder.files[i])) continue;
    ++*(folder.files[i].kind == PESTLE_DISK_PLAN ? &stats.disk_entries
                                                 : &stats.disk_constants);
    stats.disk_bytes += folder.files[i].size;
  }
  close_folder(&folder);
  PESTLE_TRY(status);
  memcpy(out_stats, &stats, size < sizeof(stats) ? size : sizeof(stats));
  return NULL;
}

// --- Looking at one entry ---

static pestle_status_t fault_of(const file_t* file, const char* fault) {
  if (!fault) return NULL;
  return PESTLE_ERROR(MALFORMED,
                      "%s: '%s'; it is replaced when its plan is "
                      "needed",
                      fault, file->path);
}

// Maps an entry. The status says what is wrong with it; the mapping is to be
// unmapped in any case.
static pestle_status_t open_entry(const file_t* file, bool verify,
                                  pestle_mapping_t* out_mapping) {
  *out_mapping = (pestle_mapping_t){NULL, 0};
  PESTLE_TRY(fault_of(file, pestle_platform_distrust(file->path, false)));
  PESTLE_TRY(pestle_file_map(file->path, out_mapping));
  if (file->kind == PESTLE_DISK_CONSTANT) {
    return fault_of(
        file, pestle_constant_file_fault(*out_mapping, file->hash, verify));
  }
  PESTLE_TRY(fault_of(file, pestle_disk_entry_fault(*out_mapping, verify)));
  const pestle_disk_entry_t* header = out_mapping->data;
  return pestle_plan_check((const char*)header + header->plan_offset,
                           header->plan_size, false);
}

// The plan in an entry that was opened; only its bytes can be read.
static pestle_plan_t plan_in(pestle_mapping_t mapping) {
  const pestle_disk_entry_t* header = mapping.data;
  return (pestle_plan_t){.data = (const char*)header + header->plan_offset,
                         .size = header->plan_size};
}

// Whether what the plan refers to is there; not whether it is sound.
static pestle_status_t check_constants(pestle_context_t* context,
                                       const file_t* file,
                                       pestle_mapping_t mapping) {
  pestle_plan_t plan = plan_in(mapping);
  const pestle_plan_constant_ref_t* refs =
      PESTLE_PLAN_RECORDS(&plan, pestle_plan_constant_ref_t, constant_refs);
  pestle_arena_t arena;
  pestle_arena_init(context->core.allocator, &arena);
  pestle_status_t status = NULL;
  uint64_t count = pestle_plan_header(&plan)->constant_refs.count;
  for (uint64_t i = 0; i < count && !status; ++i) {
    if (!refs[i].external) continue;
    pestle_hash128_t hash = {refs[i].hash[0], refs[i].hash[1]};
    const char* path =
        pestle_constant_file_path(&arena, context->cache_dir, hash);
    if (!path) {
      status = PESTLE_OOM();
    } else if (!pestle_file_exists(path)) {
      status = fault_of(file, "a constant of the entry on disk is missing");
    }
  }
  pestle_arena_deinit(&arena);
  return status;
}

static pestle_status_t check_file(pestle_context_t* context, const file_t* file,
                                  bool verify, pestle_mapping_t* out_mapping) {
  PESTLE_TRY(open_entry(file, verify, out_mapping));
  if (file->kind != PESTLE_DISK_PLAN) return NULL;
  return check_constants(context, file, *out_mapping);
}

// The name of the model in an entry that was opened.
static const char* model_of(const file_t* file, pestle_mapping_t mapping) {
  if (file->kind == PESTLE_DISK_CONSTANT) return "(constant)";
  pestle_plan_t plan = plan_in(mapping);
  return pestle_plan_text(&plan, pestle_plan_header(&plan)->name);
}

pestle_status_t pestle_cache_visit(pestle_context_t* context, bool verify,
                                   void (*visit)(void* user, const char* name,
                                                 const char* model,
                                                 uint64_t bytes, int64_t used,
                                                 pestle_status_t status),
                                   void* user) {
  PESTLE_REQUIRE(context && visit, "a context and a function to call");
  pestle_context_enter(context);
  folder_t folder;
  pestle_status_t status = open_folder(context, &folder);
  for (size_t i = 0; i < folder.count && !status; ++i) {
    const file_t* file = &folder.files[i];
    if (!is_entry(file)) continue;
    pestle_mapping_t mapping;
    pestle_status_t fault = check_file(context, file, verify, &mapping);
    visit(user, file->name, fault ? "" : model_of(file, mapping), file->size,
          file->used_ns / 1000000000, fault);
    pestle_status_release(fault);
    pestle_file_unmap(&mapping);
  }
  close_folder(&folder);
  return status;
}

pestle_status_t pestle_cache_visit_keys(
    pestle_context_t* context,
    void (*visit)(void* user, const void* key, size_t key_size), void* user) {
  PESTLE_REQUIRE(context && visit, "a context and a function to call");
  pestle_context_enter(context);
  folder_t folder;
  pestle_status_t status = open_folder(context, &folder);
  for (size_t i = 0; i < folder.count && !status; ++i) {
    const file_t* file = &folder.files[i];
    if (file->kind != PESTLE_DISK_PLAN) continue;
    pestle_mapping_t mapping;
    pestle_status_t fault = open_entry(file, false, &mapping);
    if (!fault) {
      const pestle_disk_entry_t* header = mapping.data;
      visit(user, header + 1, header->key_size);
    }
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

typedef struct cut_t {
  pestle_context_t* context;
  folder_t folder;
  pestle_map_t constants;  // pestle_hash128_t -> file_t*
  uint64_t total, removed;
} cut_t;

static bool is_sound(const cut_t* c, const file_t* file) {
  pestle_mapping_t mapping;
  pestle_status_t status = check_file(c->context, file, true, &mapping);
  bool sound = !status;
  pestle_status_release(status);
  pestle_file_unmap(&mapping);
  return sound;
}

// Notes the files that an opened plan refers to.
static pestle_status_t link_plan(cut_t* c, file_t* file,
                                 pestle_mapping_t mapping) {
  pestle_plan_t plan = plan_in(mapping);
  const pestle_plan_constant_ref_t* refs =
      PESTLE_PLAN_RECORDS(&plan, pestle_plan_constant_ref_t, constant_refs);
  uint64_t count = pestle_plan_header(&plan)->constant_refs.count;
  file->constants = PESTLE_ARENA_ARRAY(&c->folder.arena, file_t*, count);
  if (!file->constants) return PESTLE_OOM();
  for (uint64_t i = 0; i < count; ++i) {
    if (!refs[i].external) continue;
    const pestle_map_value_t* value =
        pestle_map_find(&c->constants, refs[i].hash, sizeof(pestle_hash128_t));
    if (!value) continue;
    file_t* constant = value->ptr;
    ++constant->references;
    file->constants[file->constant_count++] = constant;
  }
  return NULL;
}

// Finds out which plans refer to which constants. Damaged ones refer to none.
static pestle_status_t link_files(cut_t* c) {
  for (size_t i = 0; i < c->folder.count; ++i) {
    file_t* file = &c->folder.files[i];
    if (file->kind != PESTLE_DISK_CONSTANT) continue;
    pestle_map_value_t* value =
        pestle_map_put(&c->constants, &file->hash, sizeof(file->hash), NULL);
    if (!value) return PESTLE_OOM();
    value->ptr = file;
  }
  for (size_t i = 0; i < c->folder.count; ++i) {
    file_t* file = &c->folder.files[i];
    if (file->kind != PESTLE_DISK_PLAN) continue;
    pestle_mapping_t mapping;
    pestle_status_t fault = open_entry(file, false, &mapping);
    pestle_status_t status = fault ? NULL : link_plan(c, file, mapping);
    pestle_status_release(fault);
    pestle_file_unmap(&mapping);
    PESTLE_TRY(status);
  }
  return NULL;
}

static pestle_status_t remove_file(cut_t* c, file_t* file) {
  if (file->removed) return NULL;
  file->removed = true;
  PESTLE_TRY(file->is_folder ? pestle_folder_remove(file->path)
                             : pestle_file_remove(file->path));
  if (!is_entry(file)) return NULL;
  c->total -= file->size;
  ++c->removed;
  // Constants go with the last plan that refers to them.
  for (size_t i = 0; i < file->constant_count; ++i) {
    if (--file->constants[i]->references) continue;
    PESTLE_TRY(remove_file(c, file->constants[i]));
  }
  return NULL;
}

static uint64_t size_with_constants(const file_t* file) {
  uint64_t size = file->size;
  for (size_t i = 0; i < file->constant_count; ++i)
    size += file->constants[i]->size;
  return size;
}

// First what alone is too large, of a day when the folder might hold more: else
// all that is older would go before it.
static pestle_status_t cut_oversized(cut_t* c, uint64_t keep_bytes) {
  for (size_t i = 0; i < c->folder.count && c->total > keep_bytes; ++i) {
    file_t* file = &c->folder.files[i];
    if (file->kind != PESTLE_DISK_PLAN) continue;
    if (size_with_constants(file) <= keep_bytes) continue;
    PESTLE_TRY(remove_file(c, file));
  }
  return NULL;
}

static pestle_status_t cut_plans(cut_t* c, uint64_t keep_bytes, bool verify) {
  for (size_t i = 0; i < c->folder.count; ++i) {
    file_t* file = &c->folder.files[i];
    if (file->kind != PESTLE_DISK_PLAN || file->removed) continue;
    if (c->total <= keep_bytes && (!verify || is_sound(c, file))) continue;
    PESTLE_TRY(remove_file(c, file));
  }
  return NULL;
}

// Constants that are damaged, or that no plan refers to: a plan that is being
// made may be about to, so that only |verify| removes young ones.
static pestle_status_t cut_constants(cut_t* c, int64_t stale, bool verify) {
  for (size_t i = 0; i < c->folder.count; ++i) {
    file_t* file = &c->folder.files[i];
    if (file->kind != PESTLE_DISK_CONSTANT) continue;
    bool remove = file->references ? verify && !is_sound(c, file)
                                   : verify || file->used_ns < stale;
    if (remove) PESTLE_TRY(remove_file(c, file));
  }
  return NULL;
}

// What is left without a plan is another process's, which is about to store
// one: no reason to throw plans away.
static void leave_young(cut_t* c) {
  for (size_t i = 0; i < c->folder.count; ++i) {
    const file_t* file = &c->folder.files[i];
    if (file->kind != PESTLE_DISK_CONSTANT) continue;
    if (!file->references && !file->removed) c->total -= file->size;
  }
}

// Files that are not of plans; sums those that are. An empty cache has neither.
static pestle_status_t cut_others(cut_t* c, int64_t now, bool all) {
  for (size_t i = 0; i < c->folder.count; ++i) {
    file_t* file = &c->folder.files[i];
    bool tried = file->kind == PESTLE_DISK_TRIED;
    int64_t kept_ns = tried ? UNUSED_NS : STALE_NS;
    if (is_entry(file)) {
      c->total += file->size;
    } else if (file->used_ns < now - kept_ns || (tried && all)) {
      PESTLE_TRY(remove_file(c, file));
    }
  }
  return NULL;
}

static pestle_status_t cut(cut_t* c, uint64_t keep_bytes, bool verify) {
  int64_t now = pestle_wall_clock_ns();
  PESTLE_TRY(open_folder(c->context, &c->folder));
  if (c->folder.count) {
    qsort(c->folder.files, c->folder.count, sizeof(file_t), compare_files);
  }
  PESTLE_TRY(cut_others(c, now, verify && !keep_bytes));
  // The common case opens no file.
  if (c->total <= keep_bytes && !verify) return NULL;
  PESTLE_TRY(link_files(c));
  // A plan without one of its constants is not sound.
  PESTLE_TRY(cut_constants(c, now - STALE_NS, verify));
  leave_young(c);
  PESTLE_TRY(cut_oversized(c, keep_bytes));
  return cut_plans(c, keep_bytes, verify);
}

pestle_status_t pestle_disk_cache_cut(pestle_context_t* context,
                                      uint64_t keep_bytes, bool verify,
                                      uint64_t* out_removed) {
  cut_t c = {.context = context};
  pestle_map_init(context->core.allocator, &c.constants);
  pestle_status_t status = cut(&c, keep_bytes, verify);
  pestle_map_deinit(&c.constants);
  close_folder(&c.folder);
  if (out_removed) *out_removed = c.removed;
  return status;
}

static pestle_status_t drop_constants(cut_t* c, const pestle_plan_t* plan) {
  PESTLE_TRY(open_folder(c->context, &c->folder));
  PESTLE_TRY(link_files(c));
  const pestle_plan_constant_ref_t* refs =
      PESTLE_PLAN_RECORDS(plan, pestle_plan_constant_ref_t, constant_refs);
  for (size_t i = 0; i < plan->constant_count; ++i) {
    if (!refs[i].external) continue;
    pestle_hash128_t hash = {refs[i].hash[0], refs[i].hash[1]};
    const pestle_map_value_t* value =
        pestle_map_find(&c->constants, &hash, sizeof(hash));
    file_t* file = value ? value->ptr : NULL;
    if (file && !file->references) PESTLE_TRY(remove_file(c, file));
  }
  return NULL;
}

pestle_status_t pestle_disk_cache_drop_constants(pestle_context_t* context,
                                                 const pestle_plan_t* plan) {
  cut_t c = {.context = context};
  pestle_map_init(context->core.allocator, &c.constants);
  pestle_status_t status = drop_constants(&c, plan);
  pestle_map_deinit(&c.constants);
  close_folder(&c.folder);
  return status;
}

pestle_status_t pestle_cache_prune(pestle_context_t* context,
                                   uint64_t keep_bytes, uint64_t* out_removed) {
  PESTLE_REQUIRE(context, "a context");
  if (out_removed) *out_removed = 0;
  pestle_context_enter(context);
  return pestle_disk_cache_cut(context, keep_bytes, true, out_removed);
}

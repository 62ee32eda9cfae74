// SPDX-License-Identifier: Apache-2.0
// The plan cache on disk: entries by the hash of their key, compared in full, written by
// atomic rename; damaged ones are misses.
#include <string.h>

#include "base/bits.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/thread.h"
#include "runtime/context.h"
#include "runtime/disk_entry.h"
#include "runtime/job.h"
#include "runtime/plan.h"

// Of the bytes from here on is the checksum.
#define CHECKED_FROM 24

_Static_assert(sizeof(pestle_disk_entry_t) == 64, "a stable format");
_Static_assert(offsetof(pestle_disk_entry_t, version) == CHECKED_FROM,
               "disk_entry.h promises this offset");

// --- Entries ---

char* pestle_disk_entry_path(pestle_arena_t* arena, const char* folder,
                             pestle_str_t key) {
  char name[PESTLE_HASH128_HEX_SIZE];
  pestle_hash128_t hash = pestle_hash128(key.data, key.size);
  if (PESTLE_FAULT(trust_own_names)) hash.low ^= (uint64_t)pestle_thread_id();
  pestle_hash128_to_hex(hash, name);
  return pestle_path_join(arena, folder, name);
}

pestle_disk_name_t pestle_disk_entry_name(const char* name,
                                          pestle_hash128_t* out_hash) {
  pestle_str_t text = pestle_str(name);
  bool constant =
      pestle_str_starts_with(text, PESTLE_STR(PESTLE_CONSTANT_FILE_PREFIX));
  bool tried =
      pestle_str_starts_with(text, PESTLE_STR(PESTLE_TRIED_FILE_PREFIX));
  if (constant || tried) text = pestle_str_slice(text, 2, text.size);
  size_t digits = PESTLE_HASH128_HEX_SIZE - 1;
  if (!pestle_hash128_from_hex(pestle_str_slice(text, 0, digits), out_hash)) {
    return PESTLE_DISK_OTHER;
  }
  pestle_str_t rest = pestle_str_slice(text, digits, text.size);
  if (pestle_str_starts_with(rest, PESTLE_STR(".tmp-"))) {
    return PESTLE_DISK_TEMPORARY;
  }
  if (rest.size) return PESTLE_DISK_OTHER;
  if (tried) return PESTLE_DISK_TRIED;
  return constant ? PESTLE_DISK_CONSTANT : PESTLE_DISK_PLAN;
}

const char* pestle_disk_entry_fault(pestle_mapping_t mapping, bool verify) {
  if (mapping.size < sizeof(pestle_disk_entry_t)) {
    return mapping.size ? "the entry on disk is cut off"
                        : "the entry on disk is empty";
  }
  pestle_disk_entry_t header;
  memcpy(&header, mapping.data, sizeof(header));
  if (memcmp(header.magic, PESTLE_DISK_ENTRY_MAGIC, sizeof(header.magic))) {
    return "the file on disk is not an entry of the plan cache";
  }
  if (header.version != PESTLE_DISK_ENTRY_VERSION ||
      header.header_size != sizeof(header)) {
    return "the entry on disk has another format";
  }
  if (header.key_size > mapping.size - sizeof(header) ||
      header.plan_offset !=
          pestle_align_up(sizeof(header) + header.key_size, 64) ||
      header.plan_offset > mapping.size ||
      header.plan_size != mapping.size - header.plan_offset) {
    return "the entry on disk is cut off or has the wrong length";
  }
  if (!verify || PESTLE_FAULT(trust_checksum)) return NULL;
  pestle_hash128_t hash = pestle_hash128(
      (const char*)mapping.data + CHECKED_FROM, mapping.size - CHECKED_FROM);
  if (hash.low != header.checksum[0] || hash.high != header.checksum[1]) {
    return "the entry on disk is damaged: its checksum does not match";
  }
  return NULL;
}

// --- Loading ---

static const char* key_fault(pestle_mapping_t mapping, pestle_str_t key) {
  const pestle_disk_entry_t* header = mapping.data;
  pestle_str_t found =
      pestle_str_make((const char*)(header + 1), header->key_size);
  return pestle_str_equal(found, key)
             ? NULL
             : "the entry on disk was made for another key";
}

// Makes a plan of a mapped entry; a fault of it is a reason, not an error.
static pestle_status_t plan_of(pestle_context_t* context,
                               pestle_mapping_t mapping, pestle_str_t key,
                               pestle_plan_t** out_plan,
                               const char** out_reason) {
  *out_reason = pestle_disk_entry_fault(mapping, true);
  if (!*out_reason) *out_reason = key_fault(mapping, key);
  if (*out_reason) return NULL;
  const pestle_disk_entry_t* header = mapping.data;
  pestle_status_t status =
      pestle_plan_create_mapped(context, mapping, header->plan_offset,
                                header->plan_size, true, out_plan, out_reason);
  if (pestle_status_code(status) == PESTLE_STATUS_OUT_OF_MEMORY) return status;
  if (!status) return NULL;
  if (*out_reason) {
    pestle_status_release(status);
    return NULL;
  }
  *out_reason = "the entry on disk holds a plan that this Pestle cannot read";
  pestle_context_log_status(context, PESTLE_LOG_WARN, "plan cache", status);
  return NULL;
}

static pestle_status_t load_file(pestle_context_t* context, const char* path,
                                 pestle_str_t key, pestle_plan_t** out_plan,
                                 const char** out_reason) {
  *out_reason = pestle_platform_distrust(path, false);
  if (*out_reason) return NULL;
  pestle_mapping_t mapping;
  pestle_status_t status = pestle_file_map(path, &mapping);
  if (status) {
    bool oom = pestle_status_code(status) == PESTLE_STATUS_OUT_OF_MEMORY;
    if (oom) return status;
    *out_reason = "the entry on disk cannot be read";
    pestle_context_log_status(context, PESTLE_LOG_WARN, "plan cache", status);
    return NULL;
  }
  status = plan_of(context, mapping, key, out_plan, out_reason);
  if (!*out_plan) pestle_file_unmap(&mapping);
  return status;
}

// Makes sure that what the plan refers to is on disk too.
static pestle_status_t keep_constants(pestle_context_t* context,
                                      const pestle_plan_t* plan) {
  for (size_t i = 0; i < plan->constant_count; ++i) {
    const pestle_constant_t* constant = plan->constants[i];
    if (!constant) continue;
    PESTLE_TRY(pestle_constant_file_keep(context, constant->hash,
                                         constant->data, constant->size, NULL));
  }
  return NULL;
}

// Lets go of a plan whose parts of constants are damaged. Those of this process are looked
// at where the environment says which one it is, else all: its ranks may be threads.
static pestle_status_t drop_damaged(pestle_plan_t** plan,
                                    const char** out_reason) {
  pestle_job_t job;
  if (!*plan || !(*plan)->part_files) return NULL;
  pestle_status_t status = pestle_job_read(&job);
  int32_t process = status ? -1 : job.rank;
  pestle_status_release(status);
  status = pestle_plan_check_parts(*plan, process);
  if (!status) return NULL;
  pestle_plan_release(*plan);
  *plan = NULL;
  if (pestle_status_code(status) != PESTLE_STATUS_MALFORMED) return status;
  pestle_status_release(status);
  *out_reason = "a part of a constant on disk is damaged";
  return NULL;
}

static pestle_status_t load(pestle_context_t* context, pestle_arena_t* arena,
                            pestle_str_t key, pestle_plan_t** out_plan,
                            const char** out_reason, bool* out_damaged) {
  if (!pestle_file_exists(context->cache_dir)) {
    *out_reason = "not in the cache";
    return NULL;
  }
  *out_reason = pestle_platform_distrust(context->cache_dir, true);
  if (*out_reason) return NULL;
  char* path = pestle_disk_entry_path(arena, context->cache_dir, key);
  if (!path) return PESTLE_OOM();
  if (!pestle_file_exists(path)) {
    *out_reason = "not in the cache";
    return NULL;
  }
  PESTLE_TRY(load_file(context, path, key, out_plan, out_reason));
  PESTLE_TRY(drop_damaged(out_plan, out_reason));
  if (*out_plan) {
    *out_reason = "hit on disk";
    // What is still in memory need not be on disk any more.
    pestle_disk_cache_report(context, keep_constants(context, *out_plan));
    // The time of its last use; not to be able to note it does no harm.
    pestle_status_release(pestle_file_touch(path));
    return NULL;
  }
  *out_damaged = true;
  pestle_context_log(context, PESTLE_LOG_WARN,
                     "plan cache: %s (%s); it is "
                     "made anew",
                     *out_reason, path);
  pestle_context_log_status(context, PESTLE_LOG_WARN, "plan cache",
                            pestle_file_remove(path));
  return NULL;
}

pestle_status_t pestle_disk_cache_load(pestle_context_t* context,
                                       pestle_str_t key,
                                       pestle_plan_t** out_plan,
                                       const char** out_reason,
                                       bool* out_damaged) {
  *out_plan = NULL;
  *out_damaged = false;
  pestle_arena_t arena;
  pestle_arena_init(context->core.allocator, &arena);
  pestle_status_t status =
      load(context, &arena, key, out_plan, out_reason, out_damaged);
  pestle_arena_deinit(&arena);
  return status;
}

// --- Storing ---

static pestle_status_t write_entry(const char* path, pestle_str_t key,
                                   const pestle_plan_t* plan) {
  static const char zeros[64] = {0};
  pestle_disk_entry_t header = {
      .magic = PESTLE_DISK_ENTRY_MAGIC,
      .version = PESTLE_DISK_ENTRY_VERSION,
      .header_size = sizeof(header),
      .key_size = key.size,
      .plan_offset = pestle_align_up(sizeof(header) + key.size, 64),
      .plan_size = plan->size,
  };
  pestle_str_t parts[] = {
      pestle_str_make((const char*)&header, sizeof(header)),
      key,
      pestle_str_make(zeros, header.plan_offset - sizeof(header) - key.size),
      pestle_str_make(plan->data, plan->size),
  };
  pestle_hasher_t hasher;
  pestle_hasher_init(&hasher);
  pestle_hasher_update(&hasher, parts[0].data + CHECKED_FROM,
                       sizeof(header) - CHECKED_FROM);
  for (size_t i = 1; i < 4; ++i) {
    pestle_hasher_update(&hasher, parts[i].data, parts[i].size);
  }
  pestle_hash128_t hash = pestle_hasher_finish(&hasher);
  header.checksum[0] = hash.low;
  header.checksum[1] = hash.high;
  return pestle_file_write_cached(path, parts, 4);
}

pestle_status_t pestle_disk_cache_prepare(pestle_context_t* context) {
  const char* folder = context->cache_dir;
  if (!pestle_file_exists(folder)) PESTLE_TRY(pestle_folder_make(folder));
  const char* distrust = pestle_platform_distrust(folder, true);
  if (!distrust) return NULL;
  return PESTLE_ERROR(IO,
                      "%s: '%s'; make it yours alone (chmod 700) or name "
                      "another in PESTLE_CACHE_DIR",
                      distrust, folder);
}

// What the entry and its constants take on disk.
static uint64_t stored_size(pestle_str_t key, const pestle_plan_t* plan) {
  uint64_t size =
      pestle_align_up(sizeof(pestle_disk_entry_t) + key.size, 64) + plan->size;
  const pestle_plan_constant_ref_t* refs =
      PESTLE_PLAN_RECORDS(plan, pestle_plan_constant_ref_t, constant_refs);
  for (size_t i = 0; i < plan->constant_count; ++i) {
    if (refs[i].external) size += sizeof(pestle_constant_file_t) + refs[i].size;
  }
  return size;
}

// The constants were written when they were packed.
static pestle_status_t refuse(pestle_context_t* context, pestle_str_t key,
                              const pestle_plan_t* plan) {
  pestle_context_log(
      context, PESTLE_LOG_INFO,
      "plan cache: the plan of '%s' is not kept: it takes %llu bytes, the "
      "cache may hold %llu (--cache-size, PESTLE_CACHE_SIZE)",
      pestle_plan_text(plan, pestle_plan_header(plan)->name),
      (unsigned long long)stored_size(key, plan),
      (unsigned long long)context->cache_bytes);
  PESTLE_TRY(pestle_disk_cache_drop_constants(context, plan));
  return pestle_disk_cache_cut(context, context->cache_bytes, false, NULL);
}

static pestle_status_t store(pestle_context_t* context, pestle_arena_t* arena,
                             pestle_str_t key, const pestle_plan_t* plan) {
  PESTLE_TRY(pestle_disk_cache_prepare(context));
  char* path = pestle_disk_entry_path(arena, context->cache_dir, key);
  if (!path) return PESTLE_OOM();
  // Before the plan: an entry never refers to what was not written. A crash in
  // between leaves constants that pruning removes.
  PESTLE_TRY(keep_constants(context, plan));
  PESTLE_TRY(write_entry(path, key, plan));
  return pestle_disk_cache_cut(context, context->cache_bytes, false, NULL);
}

bool pestle_disk_cache_store(pestle_context_t* context, pestle_str_t key,
                             const pestle_plan_t* plan) {
  if (pestle_plan_transient(plan)) return true;
  bool fits = stored_size(key, plan) <= context->cache_bytes;
  pestle_arena_t arena;
  pestle_arena_init(context->core.allocator, &arena);
  pestle_status_t status =
      fits ? store(context, &arena, key, plan) : refuse(context, key, plan);
  pestle_arena_deinit(&arena);
  pestle_disk_cache_report(context, status);
  return fits;
}

void pestle_disk_cache_report(pestle_context_t* context,
                              pestle_status_t status) {
  if (!status) return;
  bool warned = atomic_exchange(&context->plan_cache.warned, true);
  pestle_context_log_status(context,
                            warned ? PESTLE_LOG_DEBUG : PESTLE_LOG_WARN,
                            "plans are not kept on disk", status);
}

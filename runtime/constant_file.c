// SPDX-License-Identifier: Apache-2.0
// Constants as files of the cache folder, named by their content: written once, checked
// and mapped by every plan that uses them.
#include <string.h>

#include "runtime/constant.h"
#include "runtime/context.h"
#include "runtime/disk_entry.h"

_Static_assert(sizeof(pestle_constant_file_t) == 64, "a stable format");

static pestle_constant_file_t header_of(pestle_hash128_t hash, size_t size) {
  return (pestle_constant_file_t){
      .magic = PESTLE_CONSTANT_FILE_MAGIC,
      .version = PESTLE_CONSTANT_FILE_VERSION,
      .header_size = sizeof(pestle_constant_file_t),
      .size = size,
      .hash = {hash.low, hash.high},
  };
}

char* pestle_constant_file_path(pestle_arena_t* arena, const char* folder,
                                pestle_hash128_t hash) {
  char name[sizeof(PESTLE_CONSTANT_FILE_PREFIX) + PESTLE_HASH128_HEX_SIZE] =
      PESTLE_CONSTANT_FILE_PREFIX;
  pestle_hash128_to_hex(hash, name + sizeof(PESTLE_CONSTANT_FILE_PREFIX) - 1);
  return pestle_path_join(arena, folder, name);
}

const char* pestle_constant_file_fault(pestle_mapping_t mapping,
                                       pestle_hash128_t hash, bool verify) {
  if (mapping.size < sizeof(pestle_constant_file_t)) {
    return "a constant of the entry on disk is cut off";
  }
  size_t size = mapping.size - sizeof(pestle_constant_file_t);
  const pestle_constant_file_t* found = mapping.data;
  pestle_constant_file_t header = header_of(hash, size);
  if (memcmp(found->magic, header.magic, sizeof(header.magic)) != 0) {
    return "a constant of the entry on disk is not a file of the cache";
  }
  if (found->version != header.version ||
      found->header_size != header.header_size) {
    return "a constant of the entry on disk has another format";
  }
  if (found->size != size) {
    return "a constant of the entry on disk is cut off or has the wrong length";
  }
  if (memcmp(found, &header, sizeof(header)) != 0 ||
      (verify &&
       !pestle_hash128_equal(pestle_hash128(found + 1, size), hash))) {
    return "a constant of the entry on disk is damaged: its checksum does not "
           "match";
  }
  return NULL;
}

// The constant's words for what pestle_platform_distrust() says of an entry.
static const char* distrust(const char* path) {
  return pestle_platform_distrust(path, false)
             ? "a constant of the entry on disk is not a regular file of this "
               "user that group and others cannot write"
             : NULL;
}

static pestle_status_t map_path(pestle_context_t* context, const char* path,
                                pestle_hash128_t hash, size_t size, bool verify,
                                pestle_mapping_t* mapping,
                                const char** out_reason) {
  *out_reason = distrust(path);
  if (*out_reason) return NULL;
  pestle_status_t status = pestle_file_map(path, mapping);
  if (status) {
    if (pestle_status_code(status) == PESTLE_STATUS_OUT_OF_MEMORY) {
      return status;
    }
    *out_reason = "a constant of the entry on disk cannot be read";
    pestle_context_log_status(context, PESTLE_LOG_WARN, "plan cache", status);
    return NULL;
  }
  *out_reason = pestle_constant_file_fault(*mapping, hash, verify);
  if (!*out_reason && mapping->size - sizeof(pestle_constant_file_t) != size) {
    *out_reason = "a constant of the entry on disk has another size";
  }
  if (*out_reason) pestle_file_unmap(mapping);
  return NULL;
}

static pestle_status_t map_in(pestle_context_t* context, pestle_arena_t* arena,
                              pestle_hash128_t hash, size_t size, bool verify,
                              pestle_mapping_t* mapping,
                              const char** out_reason) {
  const char* folder = pestle_context_cache_dir(context);
  *out_reason = "a constant is neither in the plan nor in the context";
  if (!folder) return NULL;
  *out_reason = "a constant of the entry on disk is missing";
  if (!pestle_file_exists(folder)) return NULL;
  *out_reason = pestle_platform_distrust(folder, true);
  if (*out_reason) return NULL;
  char* path = pestle_constant_file_path(arena, folder, hash);
  if (!path) return PESTLE_OOM();
  *out_reason = "a constant of the entry on disk is missing";
  if (!pestle_file_exists(path)) return NULL;
  PESTLE_TRY(map_path(context, path, hash, size, verify, mapping, out_reason));
  if (!*out_reason) return NULL;
  pestle_context_log(context, PESTLE_LOG_WARN, "plan cache: %s (%s)",
                     *out_reason, path);
  pestle_context_log_status(context, PESTLE_LOG_WARN, "plan cache",
                            pestle_file_remove(path));
  return NULL;
}

pestle_status_t pestle_constant_file_map(pestle_context_t* context,
                                         pestle_hash128_t hash, size_t size,
                                         bool verify,
                                         pestle_mapping_t* out_mapping,
                                         const char** out_reason) {
  *out_mapping = (pestle_mapping_t){NULL, 0};
  pestle_arena_t arena;
  pestle_arena_init(context->core.allocator, &arena);
  pestle_status_t status =
      map_in(context, &arena, hash, size, verify, out_mapping, out_reason);
  pestle_arena_deinit(&arena);
  return status;
}

// --- Writing ---

static bool is_there(const char* path, size_t size) {
  if (!pestle_file_exists(path) || distrust(path)) return false;
  pestle_file_info_t info;
  pestle_status_t status = pestle_file_stat(path, false, &info);
  bool there =
      !status && (uint64_t)info.size == size + sizeof(pestle_constant_file_t);
  pestle_status_release(status);
  return there;
}

static pestle_status_t keep(pestle_context_t* context, pestle_arena_t* arena,
                            pestle_hash128_t hash, const void* data,
                            size_t size, bool* out_written) {
  PESTLE_TRY(pestle_disk_cache_prepare(context));
  char* path = pestle_constant_file_path(arena, context->cache_dir, hash);
  if (!path) return PESTLE_OOM();
  if (is_there(path, size)) return NULL;
  pestle_constant_file_t header = header_of(hash, size);
  pestle_str_t parts[] = {
      pestle_str_make((const char*)&header, sizeof(header)),
      pestle_str_make(data, size),
  };
  PESTLE_TRY(pestle_file_write_cached(path, parts, 2));
  *out_written = true;
  return NULL;
}

pestle_status_t pestle_constant_file_keep(pestle_context_t* context,
                                          pestle_hash128_t hash,
                                          const void* data, size_t size,
                                          bool* out_written) {
  bool written = false;
  pestle_arena_t arena;
  pestle_arena_init(context->core.allocator, &arena);
  pestle_status_t status = keep(context, &arena, hash, data, size, &written);
  pestle_arena_deinit(&arena);
  if (out_written) *out_written = written;
  return status;
}

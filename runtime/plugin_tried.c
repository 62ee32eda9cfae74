// SPDX-License-Identifier: Apache-2.0
// Which plugin files have come back from a child process that tried them. A
// small file in the folder of the plan cache for each of their paths: a text with
// the host's build and the file's state, held against what they are now as a
// whole, so that damage is the same as a change. Whoever can write there can
// spare a plugin the child, but not the look at who may write the plugin.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "pestle/version.h"
#include "runtime/context.h"
#include "runtime/disk_entry.h"
#include "runtime/registry.h"

enum { ALL_TRIED = 15, LONGEST_RECORD = 1 << 15 };

// NULL when nothing is remembered in this context.
static const char* folder_of(const pestle_context_t* context) {
  return pestle_context_cache_dir(context);
}

static pestle_status_t path_of(pestle_context_t* context, pestle_arena_t* arena,
                               const pestle_plugin_t* plugin,
                               const char** out_path) {
  char name[sizeof(PESTLE_TRIED_FILE_PREFIX) + PESTLE_HASH128_HEX_SIZE] =
      PESTLE_TRIED_FILE_PREFIX;
  const char* path = plugin->real_path;
  pestle_hash128_to_hex(pestle_hash128(path, strlen(path)),
                        name + strlen(PESTLE_TRIED_FILE_PREFIX));
  *out_path = pestle_path_join(arena, folder_of(context), name);
  return *out_path ? NULL : PESTLE_OOM();
}

static pestle_status_t make_record(pestle_arena_t* arena,
                                   const pestle_plugin_t* plugin,
                                   pestle_tried_t tried,
                                   const char** out_text) {
  static const char* const words[] = {" opened", " scored", " started",
                                      " target"};
  const char* has[4];
  for (unsigned i = 0; i < 4; ++i)
    has[i] = tried >> i & 1 ? words[i] : "";
  const pestle_file_stamp_t* s = &plugin->stamp;
  size_t capacity = strlen(plugin->real_path) + strlen(pestle_build_id()) + 512;
  char* text = pestle_arena_alloc(arena, capacity, 1);
  if (!text) return PESTLE_OOM();
  (void)snprintf(
      text, capacity,
      "pestle tried 1\nhost %s\nfile %" PRIu64 " %" PRIu64 " %" PRIu64
      " %" PRId64 " %" PRId64 "\ncame back:%s%s%s%s\npath %s\n",
      pestle_build_id(), s->device, s->inode, s->size, s->modified_ns,
      s->changed_ns, has[0], has[1], has[2], has[3], plugin->real_path);
  *out_text = text;
  return NULL;
}

// What a record says, if it is of this very file.
static pestle_status_t read_record(pestle_arena_t* arena,
                                   const pestle_plugin_t* plugin,
                                   pestle_str_t record,
                                   pestle_tried_t* out_tried) {
  for (pestle_tried_t tried = ALL_TRIED; tried; --tried) {
    const char* text;
    PESTLE_TRY(make_record(arena, plugin, tried, &text));
    if (!pestle_str_equal_c(record, text)) continue;
    *out_tried = tried;
    return NULL;
  }
  return NULL;
}

pestle_status_t pestle_plugin_tried(pestle_context_t* context,
                                    pestle_arena_t* arena,
                                    const pestle_plugin_t* plugin,
                                    pestle_tried_t* out_tried) {
  *out_tried = 0;
  const char* folder = folder_of(context);
  if (!context->remember_probes || !folder) return NULL;
  const char* path;
  PESTLE_TRY(path_of(context, arena, plugin, &path));
  // As for plans: what others can write is not read.
  if (!pestle_file_exists(path) || pestle_platform_distrust(folder, true) ||
      pestle_platform_distrust(path, false)) {
    return NULL;
  }
  char* data;
  size_t size;
  pestle_status_t status = pestle_file_read(
      path, LONGEST_RECORD, context->core.allocator, &data, &size);
  if (status) {
    bool oom = pestle_status_code(status) == PESTLE_STATUS_OUT_OF_MEMORY;
    if (oom) return status;
    pestle_status_release(status);
    return NULL;
  }
  status = read_record(arena, plugin, pestle_str_make(data, size), out_tried);
  pestle_dealloc(context->core.allocator, data, size + 1);
  return status;
}

static pestle_status_t write_record(pestle_context_t* context, const char* path,
                                    const char* text) {
  PESTLE_TRY(pestle_disk_cache_prepare(context));
  pestle_str_t part = pestle_str(text);
  return pestle_file_write_atomic(path, &part, 1);
}

pestle_status_t pestle_plugin_note_tried(pestle_context_t* context,
                                         pestle_arena_t* arena,
                                         const pestle_plugin_t* plugin,
                                         pestle_tried_t tried) {
  if (!folder_of(context)) return NULL;
  const char *path, *text;
  PESTLE_TRY(path_of(context, arena, plugin, &path));
  if (!tried) {
    pestle_status_release(pestle_file_remove(path));
    return NULL;
  }
  if (!context->remember_probes) return NULL;
  pestle_tried_t before;
  PESTLE_TRY(pestle_plugin_tried(context, arena, plugin, &before));
  PESTLE_TRY(make_record(arena, plugin, tried | before, &text));
  pestle_context_log_status(context, PESTLE_LOG_DEBUG,
                            "that a plugin came back is not remembered",
                            write_record(context, path, text));
  return NULL;
}

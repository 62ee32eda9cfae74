// SPDX-License-Identifier: Apache-2.0
// Models in several files, NAME-00001-of-00003.gguf and so on, as llama-gguf-split writes them:
// the first has the metadata, each its tensors and which part it is.
#include "frontend/gguf/parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

enum { MOST_PARTS = 9999, ENDING = 32 };

// --- Which part a file is ---

static pestle_status_t read_number(const pestle_gguf_file_t* file,
                                   const char* key, int64_t usual,
                                   int64_t* out) {
  const pestle_gguf_value_t* v = pestle_gguf_find_value(file, pestle_str(key));
  *out = usual;
  if (!v || (pestle_gguf_as_i64(v, 0, out) && *out >= 0)) return NULL;
  return PESTLE_ERROR(MALFORMED, "the key '%s' is no number from 0 on", key);
}

static pestle_status_t read_split(const pestle_gguf_file_t* file,
                                  int64_t* out_no, int64_t* out_count) {
  PESTLE_TRY(read_number(file, "split.no", 0, out_no));
  PESTLE_TRY(read_number(file, "split.count", 1, out_count));
  if (*out_count <= MOST_PARTS) return NULL;
  return PESTLE_ERROR(MALFORMED,
                      "it is of %" PRId64 " parts; there may be %d at most",
                      *out_count, MOST_PARTS);
}

// How the name of part |no|, from 0 on, ends.
static void print_ending(int64_t no, int64_t count, char ending[ENDING]) {
  (void)snprintf(ending, ENDING, "-%05d-of-%05d.gguf", (int)no + 1, (int)count);
}

static pestle_status_t check_first(const char* path, int64_t no,
                                   int64_t count) {
  char first[ENDING];
  print_ending(0, count, first);
  if (no) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "it is part %" PRId64 " of %" PRId64
                        ": give the first, whose name ends in %s",
                        no + 1, count, first);
  }
  if (pestle_str_ends_with(pestle_str(path), pestle_str(first))) return NULL;
  return PESTLE_ERROR(NOT_FOUND,
                      "it is the first of %" PRId64
                      " parts, which are found beside it if its name ends in "
                      "%s: name them so, or join them by llama-gguf-split "
                      "--merge",
                      count, first);
}

// --- Tensors of all ---

static pestle_status_t add_tensors(const pestle_gguf_file_t* part,
                                   pestle_arena_t* arena,
                                   pestle_gguf_file_t* file) {
  size_t count = file->tensor_count + part->tensor_count;
  pestle_gguf_tensor_t* all =
      PESTLE_ARENA_ARRAY(arena, pestle_gguf_tensor_t, count + 1);
  if (!all) return PESTLE_OOM();
  memcpy(all, file->tensors, file->tensor_count * sizeof(*all));
  memcpy(all + file->tensor_count, part->tensors,
         part->tensor_count * sizeof(*all));
  for (size_t i = 0; i < count; ++i) {
    bool is_new;
    pestle_map_value_t* slot = pestle_map_put(
        &file->tensor_by_name, all[i].name.data, all[i].name.size, &is_new);
    if (!slot) return PESTLE_OOM();
    if (!is_new && i >= file->tensor_count) {
      return PESTLE_ERROR(MALFORMED,
                          "the tensor '%.*s' is there twice, in two parts",
                          PESTLE_STR_ARG(all[i].name));
    }
    slot->ptr = &all[i];
  }
  file->tensors = all;
  file->tensor_count = count;
  return NULL;
}

// What both parts say, but for their numbers, is one thing: a part of another model of the
// same sizes fits else.
static pestle_status_t check_model(const pestle_gguf_file_t* part,
                                   const pestle_gguf_file_t* file) {
  for (size_t i = 0; i < part->value_count; ++i) {
    const pestle_gguf_value_t *v = &part->values[i],
                              *own = pestle_gguf_find_value(file, v->key);
    if (!own || pestle_str_equal_c(v->key, "split.no") ||
        (v->kind == own->kind && v->of == own->of && v->size == own->size &&
         !memcmp(v->data, own->data, v->size))) {
      continue;
    }
    return PESTLE_ERROR(MALFORMED,
                        "its key '%.*s' is not the first part's: it is of "
                        "another model",
                        PESTLE_STR_ARG(v->key));
  }
  return NULL;
}

static pestle_status_t add_mapped(const pestle_mapping_t* mapping, int64_t no,
                                  int64_t count, pestle_arena_t* arena,
                                  pestle_gguf_file_t* file) {
  pestle_gguf_file_t part;
  int64_t is_no = 0, is_count = 0;
  pestle_status_t status =
      pestle_gguf_read(mapping->data, mapping->size, arena, &part);
  if (!status) status = read_split(&part, &is_no, &is_count);
  if (!status && (is_no != no || is_count != count)) {
    status = PESTLE_ERROR(MALFORMED,
                          "it says that it is part %" PRId64 " of %" PRId64
                          ", by its name it is %" PRId64 " of %" PRId64,
                          is_no + 1, is_count, no + 1, count);
  }
  if (!status) status = check_model(&part, file);
  if (!status) status = add_tensors(&part, arena, file);
  pestle_gguf_file_deinit(&part);
  return status;
}

// --- Files ---

static pestle_status_t map(const char* path, pestle_arena_t* arena,
                           pestle_gguf_parts_t* parts,
                           const pestle_mapping_t** out_mapping) {
  pestle_gguf_part_t* part = PESTLE_ARENA_NEW(arena, pestle_gguf_part_t);
  if (!part) return PESTLE_OOM();
  part->path = pestle_arena_strdup(arena, path);
  if (!part->path) return PESTLE_OOM();
  PESTLE_TRY(pestle_file_stat(path, true, &part->info));
  PESTLE_TRY(pestle_file_map(path, &part->mapping));
  part->next = parts->first;
  parts->first = part;
  *out_mapping = &part->mapping;
  return NULL;
}

static pestle_status_t add_part(const char* path, int64_t no, int64_t count,
                                pestle_arena_t* arena,
                                pestle_gguf_parts_t* parts,
                                pestle_gguf_file_t* file) {
  char ending[ENDING];
  const pestle_mapping_t* mapping;
  print_ending(no, count, ending);
  char* name = pestle_arena_strdup(arena, path);
  if (!name) return PESTLE_OOM();
  memcpy(name + strlen(name) - strlen(ending), ending, strlen(ending));
  PESTLE_TRY(map(name, arena, parts, &mapping));
  return pestle_status_annotate(add_mapped(mapping, no, count, arena, file),
                                "in part %" PRId64 ", '%s'", no + 1, name);
}

pestle_status_t pestle_gguf_open(const char* path, pestle_arena_t* arena,
                                 pestle_gguf_parts_t* out_parts,
                                 pestle_gguf_file_t* out_file) {
  int64_t no, count, tensors;
  const pestle_mapping_t* first;
  PESTLE_TRY(map(path, arena, out_parts, &first));
  PESTLE_TRY(pestle_gguf_read(first->data, first->size, arena, out_file));
  PESTLE_TRY(read_split(out_file, &no, &count));
  if (count <= 1) return NULL;
  PESTLE_TRY(check_first(path, no, count));
  for (int64_t i = 1; i < count; ++i)
    PESTLE_TRY(add_part(path, i, count, arena, out_parts, out_file));
  int64_t all = (int64_t)out_file->tensor_count;
  PESTLE_TRY(read_number(out_file, "split.tensors.count", all, &tensors));
  if (tensors == all) return NULL;
  return PESTLE_ERROR(MALFORMED,
                      "its %" PRId64 " parts have %" PRId64
                      " tensors, and are to have %" PRId64,
                      count, all, tensors);
}

pestle_status_t pestle_gguf_check_alone(const pestle_gguf_file_t* file) {
  int64_t no, count;
  PESTLE_TRY(read_split(file, &no, &count));
  if (count <= 1) return NULL;
  return PESTLE_ERROR(UNSUPPORTED,
                      "it is part %" PRId64 " of %" PRId64
                      ", and bytes have no files beside them: join the parts "
                      "by llama-gguf-split --merge, or give the first as a "
                      "file",
                      no + 1, count);
}

static bool is_cut(const pestle_gguf_part_t* part, int64_t* out_size) {
  pestle_file_info_t now;
  pestle_status_t status = pestle_file_stat(part->path, true, &now);
  bool is_it = !status && now.device == part->info.device &&
               now.inode == part->info.inode &&
               (size_t)now.size < part->mapping.size;
  if (is_it) *out_size = now.size;
  pestle_status_release(status);
  return is_it;
}

pestle_status_t pestle_gguf_check_whole(const pestle_gguf_parts_t* parts) {
  int64_t size;
  for (const pestle_gguf_part_t* p = parts->first; p; p = p->next) {
    if (!is_cut(p, &size)) continue;
    return PESTLE_ERROR(MALFORMED,
                        "'%s' has %" PRId64
                        " bytes, and had %zu when it was opened: it was cut "
                        "off while it is in use; replace a model by renaming",
                        p->path, size, p->mapping.size);
  }
  return NULL;
}

void pestle_gguf_close(pestle_gguf_parts_t* parts) {
  for (pestle_gguf_part_t* p = parts->first; p; p = p->next)
    pestle_file_unmap(&p->mapping);
  parts->first = NULL;
}

void pestle_gguf_forget(const pestle_gguf_parts_t* parts, const void* data,
                        size_t size) {
  for (const pestle_gguf_part_t* p = parts->first; p; p = p->next) {
    if (data)
      pestle_file_forget_part(&p->mapping, data, size);
    else
      pestle_file_forget(&p->mapping);
  }
}

// SPDX-License-Identifier: Apache-2.0
// Modules of GGUF files: at first one without a body, which makes itself for each set of
// extents.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "frontend/gguf/source.h"
#include "ir/infer.h"

// --- Sources ---

static void release(void* self) {
  pestle_gguf_source_t* source = self;
  if (__atomic_sub_fetch(&source->refs, 1, __ATOMIC_ACQ_REL)) return;
  pestle_context_t* context = source->context;
  pestle_gguf_file_deinit(&source->file);
  pestle_gguf_close(&source->parts);
  pestle_arena_deinit(&source->arena);
  pestle_dealloc(pestle_context_allocator(context), source, sizeof(*source));
  pestle_context_release(context);
}

static void relax(void* self, const void* data, size_t size) {
  const pestle_gguf_source_t* source = self;
  pestle_gguf_forget(&source->parts, data, size);
}

// |module| keeps |source|.
static pestle_status_t keep(pestle_gguf_source_t* source,
                            pestle_module_t* module) {
  PESTLE_TRY(pestle_module_keep_relaxed(module, release, relax, source));
  __atomic_fetch_add(&source->refs, 1, __ATOMIC_RELAXED);
  return NULL;
}

static pestle_status_t read_source(pestle_gguf_source_t* source,
                                   const char* path, const void* data,
                                   size_t size) {
  enum { ALIGNMENT = 64 };
  pestle_str_t name = pestle_path_name(path);
  source->name =
      pestle_arena_strdup(&source->arena, name.size ? name.data : path);
  if (!source->name) return PESTLE_OOM();
  if (data) {
    data = pestle_arena_copy(&source->arena, data, size, ALIGNMENT);
    if (!data) return PESTLE_OOM();
    PESTLE_TRY(pestle_gguf_read(data, size, &source->arena, &source->file));
    PESTLE_TRY(pestle_gguf_check_alone(&source->file));
  } else {
    PESTLE_TRY(
        pestle_gguf_open(path, &source->arena, &source->parts, &source->file));
  }
  return pestle_gguf_find_model(&source->file, &source->arena, &source->model);
}

// --- Modules ---

// The file's name without its ending, as an identifier.
static void module_name(const pestle_gguf_source_t* source, char name[64]) {
  pestle_str_t stem = pestle_str(source->name);
  size_t dot = pestle_str_rfind_char(stem, '.'), n = 0;
  if (dot > 0 && dot < stem.size) stem.size = dot;
  for (; n < stem.size && n + 1 < 64; ++n) {
    char c = stem.data[n];
    bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
              (c >= '0' && c <= '9');
    name[n] = ok ? c : '_';
  }
  name[n] = 0;
}

static size_t argument_count(const pestle_gguf_model_t* m) {
  return PESTLE_GGUF_CACHES + 2 * (size_t)m->layers;
}

// The types of the arguments with these extents.
static void argument_types(const pestle_gguf_model_t* m, int64_t batch,
                           int64_t rows, int64_t total, pestle_type_t* types) {
  const int64_t ids[2] = {batch, rows}, mask[2] = {batch, total};
  int64_t cache[4] = {batch, m->shared, total, m->depth};
  types[PESTLE_GGUF_IDS] = pestle_type_make(PESTLE_I64, 2, ids);
  types[PESTLE_GGUF_MASK] = pestle_type_make(PESTLE_I64, 2, mask);
  for (int64_t i = 0; i < 2 * m->layers; ++i) {
    cache[3] = i % 2 ? m->value_depth : m->depth;
    types[PESTLE_GGUF_CACHES + i] = pestle_type_make(PESTLE_F32, 4, cache);
  }
}

// "past_key_values.3.key"
static const char* cache_name(pestle_arena_t* arena, int64_t index) {
  char name[64];
  (void)snprintf(name, sizeof(name), "past_key_values.%" PRId64 ".%s",
                 index / 2, index % 2 ? "value" : "key");
  return pestle_arena_strdup(arena, name);
}

// A module with a function of these types, without a body.
static pestle_status_t make_module(pestle_gguf_source_t* source,
                                   const pestle_type_t* types,
                                   pestle_module_t** out_module,
                                   pestle_function_t** out_function) {
  size_t count = argument_count(&source->model);
  char name[64];
  pestle_arena_t arena;
  module_name(source, name);
  PESTLE_TRY(pestle_module_create(source->context, name, out_module));
  PESTLE_TRY(keep(source, *out_module));
  pestle_arena_init(pestle_context_allocator(source->context), &arena);
  const char** names = PESTLE_ARENA_ARRAY(&arena, const char*, count);
  bool is_there = names != NULL;
  for (size_t i = PESTLE_GGUF_CACHES; is_there && i < count; ++i) {
    names[i] = cache_name(&arena, (int64_t)i - PESTLE_GGUF_CACHES);
    is_there = names[i] != NULL;
  }
  pestle_status_t status = is_there ? NULL : PESTLE_OOM();
  if (is_there) {
    names[PESTLE_GGUF_IDS] = "input_ids";
    names[PESTLE_GGUF_MASK] = "attention_mask";
    status = pestle_module_add_function(*out_module, "main", types, names,
                                        count, out_function);
  }
  pestle_arena_deinit(&arena);
  return status;
}

// --- Known extents ---

// All extents are those of batch, rows and total.
static pestle_status_t check_types(const pestle_gguf_model_t* m,
                                   const pestle_type_t* types,
                                   pestle_type_t* expected) {
  const pestle_type_t* ids = &types[PESTLE_GGUF_IDS];
  int64_t batch = ids->dims[0], rows = ids->dims[1];
  int64_t total = types[PESTLE_GGUF_MASK].dims[1];
  if (batch < 1 || rows < 1 || total < rows || batch > INT32_MAX ||
      total > INT32_MAX) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "input_ids is [%" PRId64 ", %" PRId64
                        "] and attention_mask has %" PRId64
                        " columns: there must be a token at least, and a "
                        "column for each position",
                        batch, rows, total);
  }
  argument_types(m, batch, rows, total, expected);
  for (size_t i = 0; i < argument_count(m); ++i) {
    pestle_type_t type = expected[i];
    if (pestle_type_equal(&types[i], &type)) continue;
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "argument %zu is %s; for input_ids [%" PRId64
                        ", %" PRId64 "] and a mask of %" PRId64
                        " columns it is %s: caches have a row for each column",
                        i, pestle_type_text(&types[i]).text, batch, rows, total,
                        pestle_type_text(&type).text);
  }
  return NULL;
}

static pestle_status_t specialize(void* self, const pestle_type_t* types,
                                  const pestle_elements_t* values, size_t count,
                                  pestle_module_t** out_module) {
  pestle_gguf_source_t* source = self;
  pestle_allocator_t allocator = pestle_context_allocator(source->context);
  pestle_module_t* module = NULL;
  pestle_function_t* function;
  (void)values;
  *out_module = NULL;
  PESTLE_TRY(pestle_gguf_check_whole(&source->parts));
  pestle_type_t* expected =
      pestle_alloc(allocator, count * sizeof(pestle_type_t));
  if (!expected) return PESTLE_OOM();
  pestle_status_t status = check_types(&source->model, types, expected);
  if (!status) status = make_module(source, types, &module, &function);
  if (!status) status = pestle_gguf_build(source, function);
  pestle_dealloc(allocator, expected, count * sizeof(pestle_type_t));
  if (status) {
    pestle_module_release(module);
    return pestle_status_annotate(status, "while making the graph of '%s'",
                                  source->name);
  }
  // Norms and tables of the file were copied.
  pestle_module_relax(module);
  *out_module = module;
  return NULL;
}

// --- Extents to come ---

static pestle_status_t declare_results(const pestle_gguf_model_t* m,
                                       pestle_type_t* types,
                                       pestle_function_t* function) {
  const int64_t dims[3] = {types[PESTLE_GGUF_IDS].dims[0],
                           types[PESTLE_GGUF_IDS].dims[1], m->words};
  char name[64];
  types[PESTLE_GGUF_MASK] = pestle_type_make(PESTLE_F32, 3, dims);
  PESTLE_TRY(pestle_function_declare_results(function, &types[PESTLE_GGUF_MASK],
                                             argument_count(m) - 1));
  PESTLE_TRY(pestle_function_set_result_name(function, 0, "logits"));
  for (int64_t i = 0; i < 2 * m->layers; ++i) {
    (void)snprintf(name, sizeof(name), "present.%" PRId64 ".%s", i / 2,
                   i % 2 ? "value" : "key");
    PESTLE_TRY(pestle_function_set_result_name(function, (size_t)i + 1, name));
  }
  return NULL;
}

// The extents that |options| fix by name, dynamic where they do not.
static pestle_status_t read_dims(const pestle_import_options_t* options,
                                 int64_t dims[3]) {
  static const char* const names[3] = {"batch_size", "sequence_length",
                                       "total_sequence_length"};
  for (int i = 0; i < 3; ++i)
    dims[i] = PESTLE_DIM_DYNAMIC;
  for (size_t d = 0; options && d < options->dim_count; ++d) {
    const char* name = options->dims[d].name ? options->dims[d].name : "";
    int i = 0;
    while (i < 3 && strcmp(names[i], name) != 0)
      ++i;
    if (i == 3 || options->dims[d].extent < 1) {
      return PESTLE_ERROR(
          INVALID_ARGUMENT,
          "the dim '%s' is given as %" PRId64
          "; dims of GGUF models are batch_size, "
          "sequence_length and total_sequence_length, from 1 on",
          name, options->dims[d].extent);
    }
    dims[i] = options->dims[d].extent;
  }
  return NULL;
}

static pestle_status_t make_symbolic(pestle_gguf_source_t* source,
                                     const int64_t dims[3],
                                     pestle_module_t** out_module) {
  const pestle_gguf_model_t* m = &source->model;
  pestle_type_t* types =
      PESTLE_ARENA_ARRAY(&source->arena, pestle_type_t, argument_count(m));
  pestle_function_t* function;
  if (!types) return PESTLE_OOM();
  argument_types(m, dims[0], dims[1], dims[2], types);
  if (dims[0] > 0 && dims[1] > 0 && dims[2] > 0)
    return specialize(source, types, NULL, argument_count(m), out_module);
  pestle_status_t status = make_module(source, types, out_module, &function);
  if (!status) status = declare_results(m, types, function);
  if (status) {
    pestle_module_release(*out_module);
    *out_module = NULL;
    return status;
  }
  (*out_module)->specialize = specialize;
  (*out_module)->specialize_self = source;
  return NULL;
}

pestle_status_t pestle_gguf_import(pestle_context_t* context, const char* path,
                                   const void* data, size_t size,
                                   const pestle_import_options_t* options,
                                   pestle_module_t** out_module) {
  pestle_allocator_t allocator = pestle_context_allocator(context);
  int64_t dims[3];
  *out_module = NULL;
  PESTLE_TRY(read_dims(options, dims));
  pestle_gguf_source_t* source = pestle_alloc_zero(allocator, sizeof(*source));
  if (!source) return PESTLE_OOM();
  source->refs = 1;
  source->context = context;
  pestle_context_retain(context);
  pestle_arena_init(allocator, &source->arena);
  pestle_map_init(allocator, &source->file.value_by_key);
  pestle_map_init(allocator, &source->file.tensor_by_name);
  pestle_status_t status = read_source(source, path, data, size);
  if (!status) status = make_symbolic(source, dims, out_module);
  release(source);
  return pestle_status_annotate(status, "while reading '%s'", path);
}

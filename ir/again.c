// SPDX-License-Identifier: Apache-2.0
#include "ir/again.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"

// A source that a module keeps, and the arguments whose values decide extents.
typedef struct kept_t {
  pestle_again_source_t source;
  const char* entry;
  size_t count;
  const char* const* names;
  bool* wanted;
} kept_t;

static pestle_status_t missing_values(const kept_t* kept, pestle_arena_t* arena,
                                      const pestle_type_t* types,
                                      const bool* missing) {
  const char** names = PESTLE_ARENA_ARRAY(arena, const char*, kept->count + 1);
  pestle_type_t* own =
      PESTLE_ARENA_ARRAY(arena, pestle_type_t, kept->count + 1);
  size_t n = 0;
  if (!names || !own) return PESTLE_OOM();
  for (size_t i = 0; i < kept->count; ++i) {
    if (!missing[i]) continue;
    names[n] = kept->names[i];
    own[n++] = types[i];
  }
  return pestle_module_values_missing(arena->allocator, names, own, n);
}

// What is wanted and given, and what is wanted only.
static bool sort_wanted(const kept_t* kept, const bool* wanted,
                        const pestle_elements_t* values, bool* fixed,
                        bool* missing) {
  bool some = false;
  for (size_t i = 0; i < kept->count; ++i) {
    fixed[i] = wanted[i] && values && values[i].data;
    missing[i] = wanted[i] && !fixed[i];
    some |= missing[i];
  }
  return some;
}

static bool is_starved(pestle_status_t status) {
  return pestle_status_code(status) == PESTLE_STATUS_OUT_OF_MEMORY;
}

// Reads |kept| once with what |wanted| says; |*out_more| is set when other
// arguments turn out to be wanted, which |wanted| has then.
static pestle_status_t read_with(const kept_t* kept, pestle_arena_t* arena,
                                 const pestle_type_t* types,
                                 const pestle_elements_t* values, bool* wanted,
                                 const bool* fixed, bool* out_more,
                                 pestle_module_t** out_module) {
  pestle_again_t again = {kept->entry, types, values, fixed, kept->count};
  bool* marks = PESTLE_ARENA_ARRAY(arena, bool, kept->count + 1);
  *out_more = false;
  if (!marks) return PESTLE_OOM();
  memset(marks, 0, kept->count + 1);
  pestle_status_t status =
      kept->source.read(&kept->source, &again, marks, out_module);
  for (size_t i = 0; status && !is_starved(status) && i < kept->count; ++i) {
    *out_more |= marks[i] && !wanted[i];
    wanted[i] |= marks[i];
  }
  return status;
}

static pestle_status_t read_kept(const kept_t* kept, pestle_arena_t* arena,
                                 const pestle_type_t* types,
                                 const pestle_elements_t* values, bool* wanted,
                                 pestle_module_t** out_module) {
  bool* fixed = PESTLE_ARENA_ARRAY(arena, bool, kept->count + 1);
  bool* missing = PESTLE_ARENA_ARRAY(arena, bool, kept->count + 1);
  if (!fixed || !missing) return PESTLE_OOM();
  for (;;) {
    bool more;
    if (sort_wanted(kept, wanted, values, fixed, missing)) {
      return missing_values(kept, arena, types, missing);
    }
    pestle_status_t status =
        read_with(kept, arena, types, values, wanted, fixed, &more, out_module);
    if (!status || !more) return status;
    pestle_status_release(status);
  }
}

static pestle_status_t specialize(void* self, const pestle_type_t* types,
                                  const pestle_elements_t* values, size_t count,
                                  pestle_module_t** out_module) {
  const kept_t* kept = self;
  *out_module = NULL;
  pestle_arena_t arena;
  pestle_arena_init(pestle_context_allocator(kept->source.context), &arena);
  bool* wanted = PESTLE_ARENA_ARRAY(&arena, bool, count + 1);
  pestle_status_t status = wanted ? NULL : PESTLE_OOM();
  for (size_t i = 0; wanted && i < count; ++i)
    wanted[i] = kept->wanted[i];
  if (!status) {
    status = read_kept(kept, &arena, types, values, wanted, out_module);
  }
  pestle_arena_deinit(&arena);
  return status;
}

// Its name, or the number that an argument without one goes by.
static const char* argument_name(pestle_arena_t* arena,
                                 const pestle_function_t* entry, size_t index) {
  char text[24];
  const char* name = pestle_function_argument_name(entry, index);
  snprintf(text, sizeof(text), "%zu", index);
  return name ? name : pestle_arena_strdup(arena, text);
}

// Of |module|, which has functions without bodies, the entry function alone stays,
// and it reads |source| again when it is specialised.
static pestle_status_t keep_source(pestle_module_t* module,
                                   const pestle_again_source_t* source,
                                   const bool* wanted, kept_t** out_kept) {
  pestle_arena_t* arena = &module->arena;
  pestle_function_t* entry = pestle_module_entry(module);
  if (!entry) return PESTLE_ERROR(MALFORMED, "the module has no function");
  size_t count = pestle_function_argument_count(entry);
  size_t size = source->bytes.size;
  kept_t* kept = PESTLE_ARENA_NEW(arena, kept_t);
  char* copy = pestle_arena_alloc(arena, size + 1, 8);
  const char* name = pestle_arena_strdup(arena, source->name);
  const char** names = PESTLE_ARENA_ARRAY(arena, const char*, count + 1);
  bool* flags = PESTLE_ARENA_ARRAY(arena, bool, count + 1);
  uint32_t* indices = PESTLE_ARENA_ARRAY(arena, uint32_t, count + 1);
  if (!kept || !copy || !name || !names || !flags || !indices) {
    return PESTLE_OOM();
  }
  memcpy(copy, source->bytes.data, size);
  copy[size] = 0;
  size_t found = 0;
  for (size_t i = 0; i < count; ++i) {
    names[i] = argument_name(arena, entry, i);
    if (!names[i]) return PESTLE_OOM();
    flags[i] = wanted && wanted[i];
    if (flags[i]) indices[found++] = (uint32_t)i;
  }
  *kept = (kept_t){
      {module->context, name, pestle_str_make(copy, size), source->read},
      entry->name,
      count,
      names,
      flags};
  pestle_function_t* next;
  for (pestle_function_t* f = module->first; f; f = next) {
    next = f->next;
    if (f != entry) pestle_module_remove_function(f);
  }
  module->specialize = specialize;
  module->specialize_self = kept;
  *out_kept = kept;
  return pestle_module_set_value_arguments(module, indices, found);
}

// The module without bodies.
static pestle_status_t read_signatures(const pestle_again_source_t* source,
                                       const bool* wanted,
                                       pestle_module_t** out_module,
                                       kept_t** out_kept) {
  PESTLE_TRY(source->read(source, NULL, NULL, out_module));
  pestle_status_t status = keep_source(*out_module, source, wanted, out_kept);
  if (!status) return NULL;
  pestle_module_release(*out_module);
  *out_module = NULL;
  return status;
}

// Types of the entry function's arguments; false where extents are not known.
static bool entry_types(const pestle_module_t* module, pestle_type_t* out,
                        size_t count) {
  const pestle_function_t* entry =
      pestle_module_entry((pestle_module_t*)module);
  bool is_static = true;
  for (size_t i = 0; i < count; ++i) {
    out[i] = *entry->body->block->arguments[i]->type;
    is_static &= pestle_type_is_static(&out[i]);
  }
  return is_static;
}

// Of a module whose shapes are all there: constants may be what is wanted.
static pestle_status_t read_static(const pestle_again_source_t* source,
                                   kept_t* kept, pestle_arena_t* arena,
                                   const pestle_type_t* types, bool* wanted,
                                   pestle_module_t** out_module) {
  bool more;
  pestle_status_t status =
      read_with(kept, arena, types, NULL, wanted, NULL, &more, out_module);
  if (!status || !more) return status;
  pestle_status_release(status);
  return read_signatures(source, wanted, out_module, &kept);
}

pestle_status_t pestle_again_read(const pestle_again_source_t* source,
                                  pestle_status_t failure,
                                  pestle_module_t** out_module) {
  kept_t* kept;
  pestle_arena_t arena;
  pestle_module_t* module = NULL;
  pestle_status_t status = read_signatures(source, NULL, &module, &kept);
  if (is_starved(status)) {
    pestle_status_release(failure);
    return status;
  }
  if (status) {
    pestle_status_release(status);
    return failure;
  }
  pestle_arena_init(pestle_context_allocator(source->context), &arena);
  size_t n = kept->count + 1;
  pestle_type_t* types = PESTLE_ARENA_ARRAY(&arena, pestle_type_t, n);
  bool* wanted = PESTLE_ARENA_ARRAY(&arena, bool, n);
  if (!types || !wanted) {
    status = PESTLE_OOM();
  } else if (entry_types(module, types, kept->count)) {
    memset(wanted, 0, n);
    status = read_static(source, kept, &arena, types, wanted, out_module);
  } else {
    *out_module = module;
    module = NULL;
  }
  pestle_module_release(module);
  pestle_arena_deinit(&arena);
  pestle_status_release(failure);
  return status;
}

// --- Which arguments ---

pestle_status_t pestle_again_mark(pestle_status_t failure,
                                  pestle_allocator_t allocator,
                                  const pestle_value_t* value, bool* marks) {
  if (is_starved(failure)) return failure;
  PESTLE_VEC(const pestle_value_t*) todo;
  pestle_map_t seen;
  pestle_vec_init(&todo, allocator);
  pestle_map_init(allocator, &seen);
  bool ok = pestle_vec_push(&todo, value);
  while (ok && todo.size) {
    const pestle_value_t* v = pestle_vec_pop(&todo);
    if (pestle_map_find_u64(&seen, (uintptr_t)v)) continue;
    ok = pestle_map_set_u64(&seen, (uintptr_t)v, 1);
    const pestle_node_t* node = v->node;
    if (!node) {
      // Of a loop or branch: what that is of.
      const pestle_region_t* region = v->block->region;
      if (region->function) marks[v->index] = true;
      node = region->owner;
    }
    for (uint32_t i = 0; ok && node && i < node->operand_count; ++i)
      ok = pestle_vec_push(&todo, pestle_node_operand(node, i));
  }
  pestle_map_deinit(&seen);
  pestle_vec_deinit(&todo);
  if (ok) return failure;
  pestle_status_release(failure);
  return PESTLE_OOM();
}

pestle_status_t pestle_again_callees(const pestle_function_t* entry,
                                     pestle_map_t* called) {
  const pestle_node_t* n = NULL;
  while ((n = pestle_region_next(entry->body, n))) {
    if (n->op != PESTLE_OP_CALL) continue;
    pestle_str_t name = pestle_str(PESTLE_NODE_STR(n, callee));
    if (!pestle_map_set_str(called, name, 1)) return PESTLE_OOM();
  }
  return NULL;
}

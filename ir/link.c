// SPDX-License-Identifier: Apache-2.0
// Several modules as one: what one returns is an argument of another.
//
//   link { @f(%x) -> %a, @g(%a, %y) -> %b }, results a and b
//   ->   func @main(%0, %1) { ops of f; ops of g on what f made; return }
//
// Functions that an entry calls come along under new names.
#include <stdio.h>

#include "base/mem.h"
#include "base/require.h"
#include "ir/collective.h"
#include "ir/copy.h"

typedef struct linker_t {
  pestle_copier_t copier;  // first: the callback gets it
  const pestle_link_part_t* parts;
  size_t part;  // that is being copied
  pestle_function_t* main;
  pestle_value_t*** results;  // of each part that is copied
} linker_t;

static pestle_function_t* entry_of(const linker_t* l, size_t part) {
  return pestle_module_entry(l->parts[part].module);
}

// --- Checks ---

static pestle_status_t check_part(const pestle_link_part_t* parts, size_t at) {
  const pestle_link_part_t* part = &parts[at];
  pestle_function_t* entry =
      part->module ? pestle_module_entry(part->module) : NULL;
  if (!entry || !entry->body->block->last) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "part %zu has no entry function", at);
  }
  size_t count = pestle_function_argument_count(entry);
  if (part->argument_count != count || (count && !part->arguments)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "part %zu takes %zu arguments; the sources of %zu are "
                        "given",
                        at, count, part->argument_count);
  }
  if (part->module->context != parts[0].module->context) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "part %zu is of another context than part 0", at);
  }
  return NULL;
}

// The type of what |source| names, for a reader in part |reader| or, |count|, for
// a result.
static pestle_status_t check_source(const linker_t* l,
                                    const pestle_link_source_t* source,
                                    size_t reader) {
  if (source->part == PESTLE_LINK_ARGUMENT) return NULL;
  if (source->part < 0 || (size_t)source->part >= reader) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "part %d is a source of part %zu: it must come before "
                        "it",
                        (int)source->part, reader);
  }
  const pestle_node_t* end =
      entry_of(l, (size_t)source->part)->body->block->last;
  if (source->index < end->operand_count) return NULL;
  return PESTLE_ERROR(
      INVALID_ARGUMENT, "result %u of part %d was asked for, which has %u",
      (unsigned)source->index, (int)source->part, (unsigned)end->operand_count);
}

// --- Arguments ---

static pestle_status_t note_argument(const linker_t* l, size_t part, size_t i,
                                     const pestle_type_t** types,
                                     size_t count) {
  uint32_t at = l->parts[part].arguments[i].index;
  const pestle_type_t* type =
      entry_of(l, part)->body->block->arguments[i]->type;
  if (at >= count) {
    return PESTLE_ERROR(
        INVALID_ARGUMENT,
        "argument %u of the whole was asked for; the parts have "
        "%zu in all",
        (unsigned)at, count);
  }
  if (types[at] && !pestle_type_equal(types[at], type)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "argument %u is read as another type by part %zu",
                        (unsigned)at, part);
  }
  types[at] = type;
  return NULL;
}

// What part |part| reads as its argument |i| has the type that it takes.
static pestle_status_t check_seam(const linker_t* l,
                                  const pestle_link_source_t* source,
                                  size_t part, size_t i) {
  const pestle_block_t* from = entry_of(l, (size_t)source->part)->body->block;
  const pestle_block_t* to = entry_of(l, part)->body->block;
  if (pestle_type_equal(pestle_node_operand(from->last, source->index)->type,
                        to->arguments[i]->type)) {
    return NULL;
  }
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "result %u of part %d is not of the type that part %zu "
                      "takes as argument %zu",
                      (unsigned)source->index, (int)source->part, part, i);
}

// Every argument of the whole is read by a part, which says its type.
static pestle_status_t find_arguments(const linker_t* l, size_t parts,
                                      const pestle_type_t** types, size_t room,
                                      size_t* out_count) {
  *out_count = 0;
  for (size_t p = 0; p < parts; ++p) {
    for (size_t i = 0; i < l->parts[p].argument_count; ++i) {
      const pestle_link_source_t* source = &l->parts[p].arguments[i];
      PESTLE_TRY(check_source(l, source, p));
      if (source->part != PESTLE_LINK_ARGUMENT) {
        PESTLE_TRY(check_seam(l, source, p, i));
        continue;
      }
      PESTLE_TRY(note_argument(l, p, i, types, room));
      if (source->index >= *out_count) *out_count = source->index + 1;
    }
  }
  for (size_t i = 0; i < *out_count; ++i) {
    if (types[i]) continue;
    return PESTLE_ERROR(INVALID_ARGUMENT, "no part reads argument %zu", i);
  }
  return NULL;
}

static pestle_status_t check_result(const linker_t* l,
                                    const pestle_link_source_t* source,
                                    size_t parts, size_t arguments) {
  if (source->part != PESTLE_LINK_ARGUMENT)
    return check_source(l, source, parts);
  if (source->index < arguments) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "argument %u is to be a result; there are %zu",
                      (unsigned)source->index, arguments);
}

static pestle_status_t make_main(linker_t* l, const pestle_type_t** found,
                                 size_t count) {
  pestle_module_t* target = l->copier.builder.module;
  pestle_type_t* types =
      PESTLE_ARENA_ARRAY(&target->arena, pestle_type_t, count);
  if (!types) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i)
    types[i] = *found[i];
  return pestle_module_add_function(target, "main", types, NULL, count,
                                    &l->main);
}

// --- Copying ---

enum { NAME_SIZE = 512 };

static pestle_status_t linked_name(size_t part, const char* name,
                                   char out_name[NAME_SIZE]) {
  int length = snprintf(out_name, NAME_SIZE, "part%zu_%s", part, name);
  if (length > 0 && length < NAME_SIZE) return NULL;
  return PESTLE_ERROR(UNSUPPORTED, "a function's name is longer than %d bytes",
                      NAME_SIZE - 32);
}

static pestle_status_t name_callee(pestle_copier_t* copier,
                                   const pestle_node_t* call,
                                   const char** out_name) {
  linker_t* l = (linker_t*)copier;
  char name[NAME_SIZE];
  PESTLE_TRY(linked_name(l->part, PESTLE_NODE_STR(call, callee), name));
  *out_name = pestle_module_intern_string(copier->builder.module, name);
  return *out_name ? NULL : PESTLE_OOM();
}

static pestle_status_t declare(const pestle_function_t* source,
                               pestle_function_t* copy) {
  size_t count;
  if (!pestle_function_result_count(source, &count)) return NULL;
  pestle_type_t* types =
      PESTLE_ARENA_ARRAY(&copy->module->arena, pestle_type_t, count);
  if (!types) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i)
    types[i] = *pestle_function_result_type(source, i);
  return pestle_function_declare_results(copy, types, count);
}

static pestle_status_t copy_signature(linker_t* l,
                                      const pestle_function_t* source) {
  pestle_module_t* target = l->copier.builder.module;
  size_t count = pestle_function_argument_count(source);
  char name[NAME_SIZE];
  pestle_function_t* copy;
  pestle_type_t* types =
      PESTLE_ARENA_ARRAY(&target->arena, pestle_type_t, count);
  if (!types) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i)
    types[i] = *source->body->block->arguments[i]->type;
  PESTLE_TRY(linked_name(l->part, source->name, name));
  PESTLE_TRY(
      pestle_copier_add_function(&l->copier, source, name, types, &copy));
  copy->is_private = true;
  return declare(source, copy);
}

// The functions of part |l->part| but its entry; calls may come before callees.
static pestle_status_t copy_callees(linker_t* l) {
  const pestle_module_t* source = l->parts[l->part].module;
  const pestle_function_t* entry = entry_of(l, l->part);
  pestle_function_t* before = l->copier.builder.module->last;
  for (const pestle_function_t* f = source->first; f; f = f->next) {
    if (f != entry) PESTLE_TRY(copy_signature(l, f));
  }
  pestle_function_t* copy = before->next;
  for (const pestle_function_t* f = source->first; f; f = f->next) {
    if (f == entry) continue;
    PESTLE_TRY(pestle_copier_push_function(&l->copier, f, copy));
    PESTLE_TRY(pestle_copier_run(&l->copier));
    copy = copy->next;
  }
  return NULL;
}

static pestle_value_t* find(const linker_t* l,
                            const pestle_link_source_t* source) {
  if (source->part == PESTLE_LINK_ARGUMENT)
    return pestle_function_argument(l->main, source->index);
  return l->results[source->part][source->index];
}

// One module may stand for several parts, so what a part returns is noted before
// the next one is copied.
static pestle_status_t copy_part(linker_t* l) {
  const pestle_link_part_t* part = &l->parts[l->part];
  const pestle_block_t* block = entry_of(l, l->part)->body->block;
  pestle_module_t* target = l->copier.builder.module;
  PESTLE_TRY(pestle_module_keep_module(target, part->module));
  for (uint32_t i = 0; i < block->argument_count; ++i) {
    PESTLE_TRY(pestle_copier_set(&l->copier, block->arguments[i],
                                 find(l, &part->arguments[i])));
  }
  PESTLE_TRY(copy_callees(l));
  l->copier.builder.block = l->main->body->block;
  PESTLE_TRY(pestle_copier_block(&l->copier, block));
  uint32_t count = block->last->operand_count;
  pestle_value_t** results =
      PESTLE_ARENA_ARRAY(&target->arena, pestle_value_t*, count);
  if (!results) return PESTLE_OOM();
  for (uint32_t i = 0; i < count; ++i) {
    results[i] =
        pestle_copier_get(&l->copier, pestle_node_operand(block->last, i));
  }
  l->results[l->part] = results;
  return NULL;
}

static pestle_status_t finish(linker_t* l, const pestle_link_source_t* results,
                              size_t count) {
  pestle_module_t* target = l->copier.builder.module;
  pestle_value_t** values =
      PESTLE_ARENA_ARRAY(&target->arena, pestle_value_t*, count);
  if (!values) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i)
    values[i] = find(l, &results[i]);
  pestle_builder_t end = pestle_builder_make(l->main);
  return pestle_op_return(&end, values, count, NULL);
}

static pestle_status_t link_parts(linker_t* l, size_t parts,
                                  const pestle_link_source_t* results,
                                  size_t result_count) {
  pestle_arena_t* arena = &l->copier.builder.module->arena;
  size_t room = 0, count;
  for (size_t p = 0; p < parts; ++p) {
    PESTLE_TRY(check_part(l->parts, p));
    room += l->parts[p].argument_count;
  }
  const pestle_type_t** types =
      PESTLE_ARENA_ARRAY(arena, const pestle_type_t*, room);
  l->results = PESTLE_ARENA_ARRAY(arena, pestle_value_t**, parts);
  if (!types || !l->results) return PESTLE_OOM();
  for (size_t i = 0; i < room; ++i)
    types[i] = NULL;
  PESTLE_TRY(find_arguments(l, parts, types, room, &count));
  for (size_t i = 0; i < result_count; ++i)
    PESTLE_TRY(check_result(l, &results[i], parts, count));
  PESTLE_TRY(make_main(l, types, count));
  for (l->part = 0; l->part < parts; ++l->part)
    PESTLE_TRY(copy_part(l));
  return finish(l, results, result_count);
}

// A part for several processes makes the module one for as many; all that are agree.
static pestle_status_t take_world(pestle_module_t* target,
                                  const pestle_link_part_t* parts,
                                  size_t count) {
  pestle_world_shape_t world = {1, 1};
  for (size_t p = 0; p < count; ++p) {
    pestle_world_shape_t w = pestle_module_world(parts[p].module);
    bool is_one = w.replicas == 1 && w.partitions == 1;
    if (is_one ||
        (w.replicas == world.replicas && w.partitions == world.partitions)) {
      continue;
    }
    if (world.replicas > 1 || world.partitions > 1) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "part %zu is for %d replicas of %d partitions, an "
                          "earlier one for %d of %d",
                          p, (int)w.replicas, (int)w.partitions,
                          (int)world.replicas, (int)world.partitions);
    }
    world = w;
    char text[2][24];
    (void)snprintf(text[0], sizeof(text[0]), "%d : i32", (int)w.partitions);
    (void)snprintf(text[1], sizeof(text[1]), "%d : i32", (int)w.replicas);
    pestle_dialect_attr_t attrs[] = {{"mhlo.num_partitions", text[0]},
                                     {"mhlo.num_replicas", text[1]}};
    PESTLE_TRY(pestle_module_set_dialect_attrs(target, attrs, 2));
  }
  return NULL;
}

pestle_status_t pestle_module_link(const pestle_link_part_t* parts,
                                   size_t count,
                                   const pestle_link_source_t* results,
                                   size_t result_count,
                                   pestle_module_t** out_module) {
  if (out_module) *out_module = NULL;
  PESTLE_REQUIRE(parts && count && (results || !result_count) && out_module,
                 "parts, the sources of results and a place for the module");
  PESTLE_TRY(check_part(parts, 0));
  pestle_module_t* target;
  PESTLE_TRY(pestle_module_create(parts[0].module->context, "linked", &target));
  linker_t l = {.parts = parts};
  pestle_copier_init(target->arena.allocator,
                     (pestle_builder_t){.module = target}, &l.copier);
  l.copier.foreign = true;
  l.copier.callee = name_callee;
  pestle_status_t status = link_parts(&l, count, results, result_count);
  if (!status) status = take_world(target, parts, count);
  pestle_copier_deinit(&l.copier);
  if (status) {
    pestle_module_release(target);
    return status;
  }
  *out_module = target;
  return NULL;
}

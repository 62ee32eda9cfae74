// SPDX-License-Identifier: Apache-2.0
// Modules, functions, regions and what they own: the interner and the list of
// things kept alive. Nodes are made in node.c and edited in edit.c.
#include "ir/graph.h"

#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/require.h"
#include "ir/internal.h"

// Keys are copied by the maps; the values lie in the module's arena.
struct pestle_interner_t {
  pestle_map_t types;
  pestle_map_t strings;
  pestle_map_t functions;  // name -> pestle_function_t*
};

// --- Interner ---

// The bytes of a type that matter, which lie at its beginning.
static size_t type_key_size(const pestle_type_t* type) {
  return offsetof(pestle_type_t, dims) + (size_t)type->rank * sizeof(int64_t);
}

const pestle_type_t* pestle_module_intern_type(pestle_module_t* module,
                                               const pestle_type_t* type) {
  pestle_map_t* map = &module->interner->types;
  pestle_map_value_t* slot = pestle_map_find(map, type, type_key_size(type));
  if (slot) return slot->ptr;
  pestle_type_t* copy = PESTLE_ARENA_NEW(&module->arena, pestle_type_t);
  if (!copy) return NULL;
  memcpy(copy, type, type_key_size(type));
  slot = pestle_map_put(map, type, type_key_size(type), NULL);
  if (!slot) return NULL;
  slot->ptr = copy;
  return copy;
}

const pestle_type_t* pestle_module_find_type(const pestle_module_t* module,
                                             const pestle_type_t* type) {
  if (type->rank < 0 || type->rank > PESTLE_MAX_RANK) return NULL;
  pestle_map_value_t* slot =
      pestle_map_find(&module->interner->types, type, type_key_size(type));
  return slot ? slot->ptr : NULL;
}

const char* pestle_module_intern_string(pestle_module_t* module,
                                        const char* text) {
  pestle_map_t* map = &module->interner->strings;
  size_t size = strlen(text);
  pestle_map_value_t* slot = pestle_map_find(map, text, size);
  if (slot) return slot->ptr;
  char* copy = pestle_arena_strdup(&module->arena, text);
  if (!copy) return NULL;
  slot = pestle_map_put(map, text, size, NULL);
  if (!slot) return NULL;
  slot->ptr = copy;
  return copy;
}

pestle_status_t pestle_module_intern_opt(pestle_module_t* module,
                                         const char* text,
                                         const char** out_text) {
  *out_text = NULL;
  if (!text) return NULL;
  *out_text = pestle_module_intern_string(module, text);
  return *out_text ? NULL : PESTLE_OOM();
}

// --- Modules ---

// |refs| is a plain field of the header, so that plain C can read the struct;
// it is only ever touched here.
static atomic_uint_least32_t* refs_of(pestle_module_t* module) {
  _Static_assert(sizeof(atomic_uint_least32_t) == sizeof(uint32_t),
                 "the counter has the size of its field");
  return (atomic_uint_least32_t*)&module->refs;
}

static void destroy(pestle_module_t* module) {
  // Newest first: what was kept alive later may depend on what came earlier.
  for (pestle_keep_alive_t* k = module->keep_alive; k; k = k->next) {
    k->release(k->self);
  }
  pestle_context_t* context = module->context;
  pestle_allocator_t allocator = module->arena.allocator;
  if (module->interner) {
    pestle_map_deinit(&module->interner->types);
    pestle_map_deinit(&module->interner->strings);
    pestle_map_deinit(&module->interner->functions);
  }
  pestle_arena_deinit(&module->arena);
  pestle_dealloc(allocator, module, sizeof(*module));
  pestle_context_release(context);
}

static pestle_status_t init(pestle_module_t* module, const char* name) {
  pestle_interner_t* interner =
      PESTLE_ARENA_NEW(&module->arena, pestle_interner_t);
  if (!interner) return PESTLE_OOM();
  pestle_map_init(module->arena.allocator, &interner->types);
  pestle_map_init(module->arena.allocator, &interner->strings);
  pestle_map_init(module->arena.allocator, &interner->functions);
  module->interner = interner;
  return pestle_module_intern_opt(module, name, &module->name);
}

pestle_status_t pestle_module_create(pestle_context_t* context,
                                     const char* name,
                                     pestle_module_t** out_module) {
  if (!context || !out_module) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_module_create needs a context and a place for "
                        "the module");
  }
  *out_module = NULL;
  pestle_allocator_t allocator = pestle_context_allocator(context);
  pestle_module_t* module = pestle_alloc_zero(allocator, sizeof(*module));
  if (!module) return PESTLE_OOM();
  module->refs = 1;
  module->context = context;
  pestle_context_retain(context);
  pestle_arena_init(allocator, &module->arena);
  pestle_status_t status = init(module, name);
  if (status) {
    destroy(module);
    return status;
  }
  *out_module = module;
  return NULL;
}

void pestle_module_retain(pestle_module_t* module) {
  if (!module) return;
  atomic_fetch_add_explicit(refs_of(module), 1, memory_order_relaxed);
}

void pestle_module_release(pestle_module_t* module) {
  if (!module) return;
  if (atomic_fetch_sub_explicit(refs_of(module), 1, memory_order_acq_rel) ==
      1) {
    destroy(module);
  }
}

pestle_status_t pestle_module_keep_alive(pestle_module_t* module,
                                         void (*release)(void* self),
                                         void* self) {
  return pestle_module_keep_relaxed(module, release, NULL, self);
}

void pestle_module_relax_part(const pestle_module_t* module, const void* data,
                              size_t size) {
  const pestle_keep_alive_t* keep = module->keep_alive;
  for (; keep; keep = keep->next) {
    if (keep->relax) keep->relax(keep->self, data, size);
  }
}

void pestle_module_relax(const pestle_module_t* module) {
  pestle_module_relax_part(module, NULL, 0);
}

pestle_status_t pestle_module_keep_relaxed(
    pestle_module_t* module, void (*release)(void* self),
    void (*relax)(void* self, const void* data, size_t size), void* self) {
  pestle_keep_alive_t* keep =
      PESTLE_ARENA_NEW(&module->arena, pestle_keep_alive_t);
  if (!keep) return PESTLE_OOM();
  keep->release = release;
  keep->relax = relax;
  keep->self = self;
  keep->next = module->keep_alive;
  module->keep_alive = keep;
  return NULL;
}

// --- Functions ---

static pestle_status_t name_arguments(pestle_function_t* function,
                                      const char* const* names, size_t count) {
  pestle_module_t* module = function->module;
  function->argument_names =
      PESTLE_ARENA_ARRAY(&module->arena, const char*, count);
  if (!function->argument_names) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    const char** name = &function->argument_names[i];
    PESTLE_TRY(pestle_module_intern_opt(module, names ? names[i] : NULL, name));
    pestle_value_t* argument = pestle_function_argument(function, i);
    if (!argument->name) argument->name = *name;
  }
  return NULL;
}

pestle_status_t pestle_module_add_function(
    pestle_module_t* module, const char* name, const pestle_type_t* types,
    const char* const* names, size_t count, pestle_function_t** out_function) {
  if (out_function) *out_function = NULL;
  PESTLE_REQUIRE(module && (types || !count) && out_function,
                 "a module, the arguments' types and a place for the function");
  if (!name || !*name) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "a function needs a name");
  }
  if (pestle_module_find_function(module, name)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the module has a function '%s' already", name);
  }
  pestle_function_t* function =
      PESTLE_ARENA_NEW(&module->arena, pestle_function_t);
  if (!function) return PESTLE_OOM();
  function->module = module;
  PESTLE_TRY(pestle_module_intern_opt(module, name, &function->name));
  pestle_block_t* block;
  PESTLE_TRY(
      pestle_region_create(module, types, count, &function->body, &block));
  PESTLE_TRY(name_arguments(function, names, count));
  function->body->function = function;
  if (!pestle_map_set_str_ptr(&module->interner->functions, pestle_str(name),
                              function)) {
    return PESTLE_OOM();
  }
  function->prev = module->last;
  if (module->last) {
    module->last->next = function;
  } else {
    module->first = function;
  }
  module->last = function;
  *out_function = function;
  return NULL;
}

pestle_function_t* pestle_module_find_function(pestle_module_t* module,
                                               const char* name) {
  const pestle_map_value_t* slot =
      pestle_map_find_str(&module->interner->functions, pestle_str(name));
  pestle_function_t* found = slot ? slot->ptr : NULL;
  return found && !strcmp(found->name, name) ? found : NULL;
}

void pestle_module_forget_function(pestle_function_t* function) {
  pestle_str_t name = pestle_str(function->name);
  pestle_map_remove(&function->module->interner->functions, name.data,
                    name.size);
}

pestle_function_t* pestle_module_entry(pestle_module_t* module) {
  if (!module) return NULL;
  pestle_function_t* main = pestle_module_find_function(module, "main");
  if (main) return main;
  for (pestle_function_t* f = module->first; f; f = f->next) {
    if (!f->is_private) return f;
  }
  return NULL;
}

size_t pestle_function_argument_count(const pestle_function_t* function) {
  return function ? function->body->block->argument_count : 0;
}

pestle_value_t* pestle_function_argument(pestle_function_t* function,
                                         size_t index) {
  return function ? pestle_block_argument(function->body->block, index) : NULL;
}

// Makes room for entry |index| in a list of |count|, at least as much again, so
// that a list that grows one by one costs what it is long. New entries are 0.
static pestle_status_t grow_results(pestle_arena_t* arena, size_t index,
                                    size_t size, uint32_t count, uint32_t* room,
                                    void** list) {
  if (index < *room) return NULL;
  size_t wanted = index + 1 > 2 * (size_t)*room ? index + 1 : 2 * (size_t)*room;
  if (wanted > UINT32_MAX) wanted = UINT32_MAX;
  size_t bytes;
  if (!pestle_checked_mul(wanted, size, &bytes)) return PESTLE_OOM();
  char* grown = pestle_arena_alloc_zero(arena, bytes, 16);
  if (!grown) return PESTLE_OOM();
  if (count) memcpy(grown, *list, count * size);
  *list = grown;
  *room = (uint32_t)wanted;
  return NULL;
}

pestle_status_t pestle_function_set_result_name(pestle_function_t* function,
                                                size_t index,
                                                const char* name) {
  if (index >= UINT32_MAX) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "result index %zu is too large",
                        index);
  }
  pestle_module_t* module = function->module;
  const char* interned;
  PESTLE_TRY(pestle_module_intern_opt(module, name, &interned));
  if (index >= function->result_name_count) {
    PESTLE_TRY(grow_results(
        &module->arena, index, sizeof(const char*), function->result_name_count,
        &function->result_name_room, (void**)(void*)&function->result_names));
    function->result_name_count = (uint32_t)(index + 1);
  }
  function->result_names[index] = interned;
  return NULL;
}

pestle_status_t pestle_function_set_shape_of(pestle_function_t* function,
                                             size_t index, size_t of) {
  if (index >= UINT32_MAX || of >= index) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "result %zu cannot hold the extents of result %zu",
                        index, of);
  }
  if (index >= function->result_shape_count) {
    PESTLE_TRY(grow_results(&function->module->arena, index, sizeof(uint32_t),
                            function->result_shape_count,
                            &function->result_shape_room,
                            (void**)(void*)&function->result_shape_of));
    function->result_shape_count = (uint32_t)(index + 1);
  }
  function->result_shape_of[index] = (uint32_t)of + 1;
  return NULL;
}

int64_t pestle_function_shape_of(const pestle_function_t* function,
                                 size_t index) {
  if (index >= function->result_shape_count) return -1;
  return (int64_t)function->result_shape_of[index] - 1;
}

pestle_status_t pestle_function_declare_results(pestle_function_t* function,
                                                const pestle_type_t* types,
                                                size_t count) {
  pestle_module_t* module = function->module;
  if (count > UINT32_MAX) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "too many results");
  }
  const pestle_type_t** copies =
      PESTLE_ARENA_ARRAY(&module->arena, const pestle_type_t*, count);
  if (!copies) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    PESTLE_TRY(pestle_type_check(&types[i]));
    copies[i] = pestle_module_intern_type(module, &types[i]);
    if (!copies[i]) return PESTLE_OOM();
  }
  function->results_declared = true;
  function->result_types = copies;
  function->result_type_count = (uint32_t)count;
  return NULL;
}

// The return of |function|, or NULL while its body is being built.
static const pestle_node_t* function_return(const pestle_function_t* function) {
  const pestle_node_t* last = function->body->block->last;
  return last && last->op == PESTLE_OP_RETURN ? last : NULL;
}

bool pestle_function_result_count(const pestle_function_t* function,
                                  size_t* out_count) {
  const pestle_node_t* node = function_return(function);
  *out_count = node ? node->operand_count : function->result_type_count;
  return node || function->results_declared;
}

const pestle_type_t* pestle_function_result_type(
    const pestle_function_t* function, size_t index) {
  const pestle_node_t* node = function_return(function);
  return node ? pestle_node_operand(node, index)->type
              : function->result_types[index];
}

// --- Regions ---

static pestle_value_t* make_argument(pestle_module_t* module,
                                     pestle_block_t* block, uint32_t index,
                                     const pestle_type_t* type) {
  pestle_value_t* value = PESTLE_ARENA_NEW(&module->arena, pestle_value_t);
  if (!value) return NULL;
  value->type = pestle_module_intern_type(module, type);
  value->block = block;
  value->index = index;
  return value->type ? value : NULL;
}

pestle_status_t pestle_region_create(pestle_module_t* module,
                                     const pestle_type_t* types, size_t count,
                                     pestle_region_t** out_region,
                                     pestle_block_t** out_block) {
  if (out_region) *out_region = NULL;
  if (out_block) *out_block = NULL;
  PESTLE_REQUIRE(
      module && (types || !count) && out_region && out_block,
      "a module, the arguments' types and places for region and block");
  if (count > UINT32_MAX) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "too many arguments");
  }
  for (size_t i = 0; i < count; ++i) {
    pestle_status_t status = pestle_type_check(&types[i]);
    if (status) return pestle_status_annotate(status, "in argument %zu", i);
  }
  pestle_arena_t* arena = &module->arena;
  pestle_region_t* region = PESTLE_ARENA_NEW(arena, pestle_region_t);
  pestle_block_t* block = PESTLE_ARENA_NEW(arena, pestle_block_t);
  pestle_value_t** arguments =
      PESTLE_ARENA_ARRAY(arena, pestle_value_t*, count);
  if (!region || !block || !arguments) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    arguments[i] = make_argument(module, block, (uint32_t)i, &types[i]);
    if (!arguments[i]) return PESTLE_OOM();
  }
  region->block = block;
  region->module = module;
  block->region = region;
  block->arguments = arguments;
  block->argument_count = (uint32_t)count;
  *out_region = region;
  *out_block = block;
  return NULL;
}

pestle_value_t* pestle_block_argument(pestle_block_t* block, size_t index) {
  return block && index < block->argument_count ? block->arguments[index]
                                                : NULL;
}

pestle_status_t pestle_block_add_argument(pestle_module_t* module,
                                          pestle_block_t* block,
                                          const pestle_type_t* type,
                                          pestle_value_t** out_value) {
  *out_value = NULL;
  PESTLE_TRY(pestle_type_check(type));
  uint32_t count = block->argument_count;
  if (count == UINT32_MAX) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "too many arguments");
  }
  pestle_value_t* value = make_argument(module, block, count, type);
  pestle_value_t** arguments =
      PESTLE_ARENA_ARRAY(&module->arena, pestle_value_t*, (size_t)count + 1);
  if (!value || !arguments) return PESTLE_OOM();
  for (uint32_t i = 0; i < count; ++i)
    arguments[i] = block->arguments[i];
  arguments[count] = value;
  block->arguments = arguments;
  block->argument_count = count + 1;
  *out_value = value;
  return NULL;
}

pestle_type_t pestle_value_type(const pestle_value_t* value) {
  if (!value) return (pestle_type_t){.dtype = PESTLE_NONE};
  return *value->type;
}

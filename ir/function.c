// SPDX-License-Identifier: Apache-2.0
// What functions take and return, and changes of that.
#include <string.h>

#include "base/mem.h"
#include "ir/internal.h"

const char* pestle_function_argument_name(const pestle_function_t* function,
                                          size_t index) {
  if (index >= pestle_function_argument_count(function)) return NULL;
  const char* name =
      function->argument_names ? function->argument_names[index] : NULL;
  return name && name[0] ? name : function->body->block->arguments[index]->name;
}

// --- Results ---

// What is noted of the results beside their types.
typedef struct results_t {
  const char** names;
  uint32_t* shape_of;
  pestle_dialect_attrs_t* attrs;
} results_t;

// The new place of old result |old|, or -1.
static int64_t place_in(const int64_t* from, size_t count, int64_t old) {
  for (size_t i = 0; from && i < count; ++i) {
    if (from[i] == old) return (int64_t)i;
  }
  return -1;
}

static pestle_status_t move_results(const pestle_function_t* f,
                                    const int64_t* from, size_t count,
                                    results_t* out) {
  pestle_arena_t* arena = &f->module->arena;
  out->names = PESTLE_ARENA_ARRAY(arena, const char*, count);
  out->shape_of = PESTLE_ARENA_ARRAY(arena, uint32_t, count);
  out->attrs = PESTLE_ARENA_ARRAY(arena, pestle_dialect_attrs_t, count);
  if (!out->names || !out->shape_of || !out->attrs) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    int64_t old = from ? from[i] : -1;
    out->names[i] = NULL;
    out->shape_of[i] = 0;
    out->attrs[i] = (pestle_dialect_attrs_t){NULL, 0};
    if (old < 0) continue;
    out->attrs[i] = pestle_function_result_attrs(f, (size_t)old);
    if (old < f->result_name_count) out->names[i] = f->result_names[old];
    int64_t of = pestle_function_shape_of(f, (size_t)old);
    int64_t moved = of < 0 ? -1 : place_in(from, count, of);
    if (of < 0) continue;
    if (moved < 0 || moved >= (int64_t)i) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "result %zu holds the extents of result %lld, which "
                          "must stay before it",
                          i, (long long)of);
    }
    out->shape_of[i] = (uint32_t)moved + 1;
  }
  return NULL;
}

static pestle_status_t declare_as(pestle_function_t* f,
                                  pestle_value_t* const* values, size_t count) {
  const pestle_type_t** types =
      PESTLE_ARENA_ARRAY(&f->module->arena, const pestle_type_t*, count);
  if (!types) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i)
    types[i] = values[i]->type;
  f->result_types = types;
  f->result_type_count = (uint32_t)count;
  return NULL;
}

pestle_status_t pestle_function_set_results(pestle_function_t* function,
                                            pestle_value_t* const* values,
                                            size_t count, const int64_t* from) {
  pestle_block_t* block = function->body->block;
  pestle_node_t* old = block->last;
  if (!old || old->op != PESTLE_OP_RETURN) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "function '%s' has no return",
                        function->name);
  }
  results_t results;
  PESTLE_TRY(move_results(function, from, count, &results));
  pestle_builder_t b = pestle_builder_before(old);
  pestle_node_spec_t spec = {
      .op = PESTLE_OP_RETURN, .operands = values, .operand_count = count};
  // A terminator may stand before another for the moment of the change.
  pestle_node_t* made;
  PESTLE_TRY(pestle_node_create(&b, &spec, &made));
  if (function->results_declared) {
    pestle_status_t status = declare_as(function, values, count);
    if (status) {
      pestle_node_erase(made);
      return status;
    }
  }
  pestle_node_erase(old);
  function->result_names = results.names;
  function->result_shape_of = results.shape_of;
  function->result_attrs = results.attrs;
  function->result_name_count = function->result_shape_count =
      function->result_attr_count = (uint32_t)count;
  function->result_name_room = function->result_shape_room = (uint32_t)count;
  return NULL;
}

// --- Arguments ---

pestle_status_t pestle_function_add_argument(pestle_function_t* function,
                                             const pestle_type_t* type,
                                             const char* name,
                                             pestle_value_t** out_value) {
  pestle_module_t* module = function->module;
  pestle_block_t* block = function->body->block;
  size_t count = block->argument_count;
  *out_value = NULL;
  const char** names =
      PESTLE_ARENA_ARRAY(&module->arena, const char*, count + 1);
  if (!names) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i)
    names[i] = function->argument_names ? function->argument_names[i] : NULL;
  PESTLE_TRY(pestle_module_intern_opt(module, name, &names[count]));
  PESTLE_TRY(pestle_block_add_argument(module, block, type, out_value));
  (*out_value)->name = names[count];
  function->argument_names = names;
  return NULL;
}

pestle_status_t pestle_function_name_arguments(pestle_function_t* function,
                                               const pestle_function_t* like) {
  pestle_module_t* module = function->module;
  const pestle_block_t* block = function->body->block;
  const char** names =
      PESTLE_ARENA_ARRAY(&module->arena, const char*, block->argument_count);
  if (!names) return PESTLE_OOM();
  for (uint32_t i = 0; i < block->argument_count; ++i) {
    const char* name = pestle_function_argument_name(like, i);
    PESTLE_TRY(pestle_module_intern_opt(module, name, &names[i]));
    block->arguments[i]->name = names[i];
  }
  function->argument_names = names;
  return NULL;
}

pestle_status_t pestle_function_remove_argument(pestle_function_t* function,
                                                size_t index) {
  pestle_block_t* block = function->body->block;
  if (index >= block->argument_count) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "function '%s' has %u arguments",
                        function->name, (unsigned)block->argument_count);
  }
  if (block->arguments[index]->uses) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "argument %zu of function '%s' has uses", index,
                        function->name);
  }
  size_t behind = block->argument_count - index - 1;
  memmove(&block->arguments[index], &block->arguments[index + 1],
          behind * sizeof(block->arguments[0]));
  if (function->argument_names) {
    memmove(&function->argument_names[index],
            &function->argument_names[index + 1],
            behind * sizeof(function->argument_names[0]));
  }
  if (index < function->argument_attr_count) {
    size_t attrs = function->argument_attr_count - index - 1;
    memmove(&function->argument_attrs[index],
            &function->argument_attrs[index + 1],
            attrs * sizeof(function->argument_attrs[0]));
    --function->argument_attr_count;
  }
  --block->argument_count;
  for (size_t i = index; i < block->argument_count; ++i)
    block->arguments[i]->index = (uint32_t)i;
  return NULL;
}

void pestle_module_remove_function(pestle_function_t* function) {
  pestle_module_t* module = function->module;
  *(function->prev ? &function->prev->next : &module->first) = function->next;
  *(function->next ? &function->next->prev : &module->last) = function->prev;
  pestle_module_forget_function(function);
  pestle_region_discard(function->body);
}

// SPDX-License-Identifier: Apache-2.0
// A module with the extents of its arguments filled in: a copy in which every
// op's rule runs again. A function is copied once for each list of argument
// types that it is called with.
#include "base/mem.h"
#include "base/require.h"
#include "ir/copy.h"

typedef struct specializer_t {
  pestle_copier_t copier;  // first: the callbacks get it
  pestle_module_t* source;
  pestle_map_t instances;  // function and argument types -> its copy
} specializer_t;

// --- Checks of what was asked for ---

static pestle_status_t check_argument(const pestle_function_t* entry, size_t i,
                                      const pestle_type_t* type) {
  const pestle_type_t* own = entry->body->block->arguments[i]->type;
  const char* name = entry->argument_names[i];
  PESTLE_TRY(pestle_type_check(type));
  bool fits = type->dtype == own->dtype && pestle_type_is_static(type) &&
              type->rank == own->rank;
  for (int axis = 0; fits && axis < own->rank; ++axis) {
    fits = own->dims[axis] == PESTLE_DIM_DYNAMIC ||
           own->dims[axis] == type->dims[axis];
  }
  if (fits) return NULL;
  pestle_strbuf_t text;
  pestle_strbuf_init(entry->module->arena.allocator, &text);
  pestle_type_print(type, &text);
  pestle_strbuf_append_c(&text, " does not fit ");
  pestle_type_print(own, &text);
  pestle_status_t status = PESTLE_ERROR(
      INVALID_ARGUMENT, "argument %zu%s%s%s: %s", i, name ? " ('" : "",
      name ? name : "", name ? "')" : "", pestle_strbuf_cstr(&text));
  pestle_strbuf_deinit(&text);
  return status;
}

static pestle_status_t check_arguments(const pestle_function_t* entry,
                                       const pestle_type_t* types, size_t count,
                                       bool* out_equal) {
  size_t own = pestle_function_argument_count(entry);
  if (count != own) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "%zu argument types are given, '%s' takes %zu", count,
                        entry->name, own);
  }
  *out_equal = true;
  for (size_t i = 0; i < count; ++i) {
    PESTLE_TRY(check_argument(entry, i, &types[i]));
    *out_equal &=
        pestle_type_equal(entry->body->block->arguments[i]->type, &types[i]);
  }
  return NULL;
}

// Looks at each copied op.
static pestle_status_t check_static(const pestle_node_t* source,
                                    const pestle_node_t* copy) {
  for (uint32_t i = 0; i < copy->result_count; ++i) {
    const pestle_type_t* type = copy->results[i].type;
    if (pestle_type_is_static(type)) continue;
    return pestle_node_error(source, PESTLE_STATUS_UNSUPPORTED,
                             "the shape of result %u does not follow from the "
                             "shapes of the arguments",
                             (unsigned)i);
  }
  return NULL;
}

// --- Instances of functions ---

static pestle_status_t make_key(const pestle_function_t* function,
                                const pestle_type_t* types, size_t count,
                                pestle_strbuf_t* out_key) {
  pestle_strbuf_append_bytes(out_key, &function, sizeof(pestle_function_t*));
  for (size_t i = 0; i < count; ++i) {
    pestle_strbuf_append_bytes(out_key, &types[i],
                               offsetof(pestle_type_t, dims) +
                                   (size_t)types[i].rank * sizeof(int64_t));
  }
  return pestle_strbuf_status(out_key);
}

// "name", or "name_N" when that is taken.
static pestle_status_t make_name(specializer_t* s,
                                 const pestle_function_t* function,
                                 pestle_strbuf_t* out_name) {
  pestle_strbuf_append_c(out_name, function->name);
  for (unsigned n = 1;; ++n) {
    PESTLE_TRY(pestle_strbuf_status(out_name));
    const char* name = pestle_strbuf_cstr(out_name);
    // A later function of the source may want a name that is free by now.
    bool taken = pestle_module_find_function(s->copier.builder.module, name) ||
                 (n > 1 && pestle_module_find_function(s->source, name));
    if (!taken) return NULL;
    pestle_strbuf_clear(out_name);
    pestle_strbuf_appendf(out_name, "%s_%u", function->name, n);
  }
}

static pestle_status_t add_instance(specializer_t* s,
                                    const pestle_function_t* function,
                                    const pestle_type_t* types,
                                    pestle_str_t key,
                                    pestle_function_t** out_function) {
  pestle_strbuf_t name;
  pestle_strbuf_init(s->source->arena.allocator, &name);
  pestle_status_t status = make_name(s, function, &name);
  if (!status) {
    status = pestle_copier_add_function(
        &s->copier, function, pestle_strbuf_cstr(&name), types, out_function);
  }
  pestle_strbuf_deinit(&name);
  if (status) return status;
  if (!pestle_map_set_str_ptr(&s->instances, key, *out_function)) {
    return PESTLE_OOM();
  }
  return pestle_copier_push_function(&s->copier, function, *out_function);
}

// Finds or begins the copy of |function| for |types|.
static pestle_status_t find_instance(specializer_t* s,
                                     const pestle_function_t* function,
                                     const pestle_type_t* types, size_t count,
                                     pestle_function_t** out_function) {
  pestle_strbuf_t key;
  pestle_strbuf_init(s->source->arena.allocator, &key);
  pestle_status_t status = make_key(function, types, count, &key);
  if (!status) {
    pestle_map_value_t* slot =
        pestle_map_find_str(&s->instances, pestle_strbuf_view(&key));
    if (slot) {
      *out_function = slot->ptr;
    } else {
      status = add_instance(s, function, types, pestle_strbuf_view(&key),
                            out_function);
    }
  }
  pestle_strbuf_deinit(&key);
  return status;
}

static bool is_being_copied(const specializer_t* s,
                            const pestle_function_t* function) {
  for (size_t i = 0; i < s->copier.frames.size; ++i) {
    if (s->copier.frames.data[i].function == function) return true;
  }
  return false;
}

static pestle_status_t operand_types(specializer_t* s,
                                     const pestle_node_t* call,
                                     pestle_type_t* out_types) {
  for (uint32_t i = 0; i < call->operand_count; ++i) {
    const pestle_value_t* value =
        pestle_copier_get(&s->copier, pestle_node_operand(call, i));
    if (!value) {
      return pestle_node_error(call, PESTLE_STATUS_INVALID_ARGUMENT,
                               "operand %u is used before it is defined",
                               (unsigned)i);
    }
    out_types[i] = *value->type;
  }
  return NULL;
}

static pestle_status_t call_instance(specializer_t* s,
                                     const pestle_node_t* call,
                                     const pestle_function_t* callee,
                                     pestle_function_t** out_function) {
  size_t count = call->operand_count;
  pestle_allocator_t allocator = s->source->arena.allocator;
  pestle_type_t* types =
      pestle_alloc_array(allocator, count, sizeof(pestle_type_t));
  if (!types) return PESTLE_OOM();
  pestle_status_t status = operand_types(s, call, types);
  if (!status) status = find_instance(s, callee, types, count, out_function);
  pestle_dealloc(allocator, types, count * sizeof(pestle_type_t));
  return status;
}

static pestle_status_t name_callee(pestle_copier_t* copier,
                                   const pestle_node_t* call,
                                   const char** out_name) {
  specializer_t* s = (specializer_t*)copier;
  const char* name = PESTLE_NODE_STR(call, callee);
  *out_name = NULL;
  pestle_function_t* callee = pestle_module_find_function(s->source, name);
  if (!callee ||
      pestle_function_argument_count(callee) != call->operand_count) {
    return pestle_node_error(call, PESTLE_STATUS_INVALID_ARGUMENT,
                             "there is no function '%s' of %u arguments", name,
                             (unsigned)call->operand_count);
  }
  size_t depth = copier->frames.size;
  pestle_function_t* instance;
  PESTLE_TRY(call_instance(s, call, callee, &instance));
  if (copier->frames.size > depth) return NULL;  // its body comes first
  if (is_being_copied(s, instance)) {
    return pestle_node_error(call, PESTLE_STATUS_INVALID_ARGUMENT,
                             "'%s' calls itself", name);
  }
  *out_name = instance->name;
  return NULL;
}

// --- Entry ---

static pestle_status_t run(specializer_t* s, const pestle_function_t* entry,
                           const pestle_type_t* types, size_t count) {
  pestle_function_t* copy;
  PESTLE_TRY(pestle_module_keep_module(s->copier.builder.module, s->source));
  PESTLE_TRY(pestle_module_set_dialect_attrs(s->copier.builder.module,
                                             s->source->dialect_attrs.data,
                                             s->source->dialect_attrs.count));
  PESTLE_TRY(find_instance(s, entry, types, count, &copy));
  return pestle_copier_run(&s->copier);
}

static pestle_status_t specialize(pestle_module_t* source,
                                  const pestle_function_t* entry,
                                  const pestle_type_t* types, size_t count,
                                  pestle_module_t** out_module) {
  pestle_module_t* target;
  PESTLE_TRY(pestle_module_create(source->context, source->name, &target));
  specializer_t s = {.source = source};
  pestle_copier_init(target->arena.allocator,
                     (pestle_builder_t){.module = target}, &s.copier);
  s.copier.foreign = true;
  s.copier.callee = name_callee;
  s.copier.check = check_static;
  pestle_map_init(source->arena.allocator, &s.instances);
  pestle_status_t status = run(&s, entry, types, count);
  pestle_map_deinit(&s.instances);
  pestle_copier_deinit(&s.copier);
  if (status) {
    pestle_module_release(target);
    return status;
  }
  *out_module = target;
  return NULL;
}

static pestle_status_t check_entry(pestle_module_t* module,
                                   const pestle_function_t** out_entry) {
  *out_entry = pestle_module_entry(module);
  if (*out_entry) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT, "the module has no function");
}

pestle_status_t pestle_module_specialize_as(pestle_module_t* module,
                                            const pestle_type_t* types,
                                            const pestle_elements_t* values,
                                            size_t count,
                                            pestle_module_t** out_module) {
  const pestle_function_t* entry;
  bool equal = false;
  PESTLE_TRY(check_entry(module, &entry));
  PESTLE_TRY(check_arguments(entry, types, count, &equal));
  if (module->specialize) {
    return module->specialize(module->specialize_self, types, values, count,
                              out_module);
  }
  if (equal) {
    pestle_module_retain(module);
    *out_module = module;
    return NULL;
  }
  return specialize(module, entry, types, count, out_module);
}

pestle_status_t pestle_module_specialize(pestle_module_t* module,
                                         const pestle_type_t* types,
                                         size_t count,
                                         pestle_module_t** out_module) {
  if (out_module) *out_module = NULL;
  PESTLE_REQUIRE(
      module && (types || !count) && out_module,
      "a module, the arguments' types and a place for the new module");
  return pestle_module_specialize_as(module, types, NULL, count, out_module);
}

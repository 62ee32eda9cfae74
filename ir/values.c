// SPDX-License-Identifier: Apache-2.0
// Arguments whose values decide shapes.
#include <stdio.h>

#include "base/checked.h"
#include "base/mem.h"
#include "base/require.h"
#include "ir/graph.h"

pestle_status_t pestle_module_set_value_arguments(pestle_module_t* module,
                                                  const uint32_t* indices,
                                                  size_t count) {
  uint32_t* copy = PESTLE_ARENA_ARRAY(&module->arena, uint32_t, count + 1);
  if (!copy) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i)
    copy[i] = indices[i];
  module->value_arguments = copy;
  module->value_argument_count = (uint32_t)count;
  return NULL;
}

size_t pestle_module_value_argument_count(const pestle_module_t* module) {
  return module ? module->value_argument_count : 0;
}

size_t pestle_module_value_argument(const pestle_module_t* module,
                                    size_t index) {
  if (index >= pestle_module_value_argument_count(module)) return SIZE_MAX;
  return module->value_arguments[index];
}

pestle_status_t pestle_module_values_missing(pestle_allocator_t allocator,
                                             const char* const* names,
                                             const pestle_type_t* types,
                                             size_t count) {
  pestle_strbuf_t text;
  pestle_strbuf_init(allocator, &text);
  for (size_t i = 0; i < count; ++i) {
    pestle_strbuf_appendf(&text, "%s'%s' (", i ? ", " : "",
                          names[i] ? names[i] : "");
    pestle_type_print(&types[i], &text);
    pestle_strbuf_append_c(&text, ")");
  }
  pestle_status_t status = PESTLE_ERROR(
      INVALID_ARGUMENT,
      "the model's shapes follow from the values of inputs that are not given: "
      "%s; give them to pestle_module_specialize_values() (on the command line "
      "as inputs of 'run', or with --const NAME=VALUE)",
      pestle_strbuf_cstr(&text));
  pestle_strbuf_deinit(&text);
  return status;
}

// An argument without a name goes by its number.
static const char* number_text(pestle_arena_t* arena, uint32_t number) {
  char text[16];
  snprintf(text, sizeof(text), "%u", number);
  return pestle_arena_strdup(arena, text);
}

pestle_status_t pestle_module_check_values(const pestle_module_t* module) {
  size_t count = module->value_argument_count;
  const pestle_function_t* entry =
      pestle_module_entry((pestle_module_t*)module);
  if (!count || !entry) return NULL;
  pestle_arena_t arena;
  pestle_arena_init(module->arena.allocator, &arena);
  const char** names = PESTLE_ARENA_ARRAY(&arena, const char*, count);
  pestle_type_t* types = PESTLE_ARENA_ARRAY(&arena, pestle_type_t, count);
  pestle_status_t status = names && types ? NULL : PESTLE_OOM();
  for (size_t i = 0; !status && i < count; ++i) {
    uint32_t at = module->value_arguments[i];
    names[i] = pestle_function_argument_name(entry, at);
    if (!names[i]) names[i] = number_text(&arena, at);
    types[i] = *entry->body->block->arguments[at]->type;
  }
  if (!status) {
    status = pestle_module_values_missing(arena.allocator, names, types, count);
  }
  pestle_arena_deinit(&arena);
  return status;
}

// --- Views ---

// Copies a strided view to row-major order.
static void copy_view(const pestle_tensor_t* view, size_t size, int64_t count,
                      char* out) {
  int64_t index[PESTLE_MAX_RANK] = {0};
  const char* base = (const char*)view->data + view->byte_offset;
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = 0, stride = 1;
    for (int32_t axis = view->ndim - 1; axis >= 0; --axis) {
      offset += index[axis] * (view->strides ? view->strides[axis] : stride);
      stride *= view->shape[axis];
    }
    memcpy(out + (size_t)i * size, base + offset * (int64_t)size, size);
    for (int32_t axis = view->ndim - 1; axis >= 0; --axis) {
      if (++index[axis] < view->shape[axis]) break;
      index[axis] = 0;
    }
  }
}

static pestle_status_t view_type(const pestle_tensor_t* view,
                                 pestle_type_t* out_type) {
  int64_t count;
  *out_type = (pestle_type_t){.dtype = pestle_dtype_from_dlpack(view->dtype),
                              .rank = view->ndim};
  if (out_type->dtype == PESTLE_NONE || view->ndim < 0 ||
      view->ndim > PESTLE_MAX_RANK || (view->ndim && !view->shape) ||
      !pestle_checked_count(view->shape, (size_t)view->ndim, &count)) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "it is no tensor of a known dtype");
  }
  for (int32_t i = 0; i < view->ndim; ++i)
    out_type->dims[i] = view->shape[i];
  return NULL;
}

pestle_status_t pestle_elements_copy_view(pestle_arena_t* arena,
                                          const pestle_tensor_t* view,
                                          pestle_elements_t* out_elements) {
  pestle_type_t type;
  size_t size;
  PESTLE_TRY(view_type(view, &type));
  if (!view->data || view->device.device_type != PESTLE_DEVICE_CPU ||
      !pestle_checked_mul((size_t)pestle_type_count(&type),
                          pestle_dtype_size(type.dtype), &size)) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "it does not lie on the host");
  }
  char* data =
      pestle_arena_alloc(arena, size ? size : 1, PESTLE_BUFFER_ALIGNMENT);
  if (!data) return PESTLE_OOM();
  copy_view(view, pestle_dtype_size(type.dtype), pestle_type_count(&type),
            data);
  *out_elements = (pestle_elements_t){.type = type, .data = data, .size = size};
  return NULL;
}

// --- Specialisation ---

static bool is_value_argument(const pestle_module_t* module, size_t index) {
  for (uint32_t i = 0; i < module->value_argument_count; ++i) {
    if (module->value_arguments[i] == index) return true;
  }
  return false;
}

// A view that cannot be read matters only where its elements are needed.
static pestle_status_t read_input(const pestle_module_t* module, size_t index,
                                  const pestle_tensor_t* view,
                                  pestle_arena_t* arena, pestle_type_t* type,
                                  pestle_elements_t* value) {
  *value = (pestle_elements_t){0};
  pestle_status_t status = view_type(view, type);
  if (!status && view->data && module->specialize &&
      pestle_type_count(type) <= PESTLE_VALUE_ARGUMENT_MAX &&
      (view->device.device_type == PESTLE_DEVICE_CPU ||
       is_value_argument(module, index))) {
    status = pestle_elements_copy_view(arena, view, value);
  }
  return pestle_status_annotate(status, "argument %zu of the module", index);
}

pestle_status_t pestle_module_specialize_values(pestle_module_t* module,
                                                const pestle_tensor_t* inputs,
                                                size_t count,
                                                pestle_module_t** out_module) {
  if (out_module) *out_module = NULL;
  PESTLE_REQUIRE(
      module && (inputs || !count) && out_module,
      "a module, a view for each argument and a place for the new module");
  pestle_arena_t arena;
  pestle_arena_init(module->arena.allocator, &arena);
  pestle_type_t* types = PESTLE_ARENA_ARRAY(&arena, pestle_type_t, count + 1);
  pestle_elements_t* values =
      PESTLE_ARENA_ARRAY(&arena, pestle_elements_t, count + 1);
  pestle_status_t status = types && values ? NULL : PESTLE_OOM();
  for (size_t i = 0; !status && i < count; ++i) {
    status = read_input(module, i, &inputs[i], &arena, &types[i], &values[i]);
  }
  if (!status) {
    status =
        pestle_module_specialize_as(module, types, values, count, out_module);
  }
  pestle_arena_deinit(&arena);
  return status;
}

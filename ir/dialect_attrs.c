// SPDX-License-Identifier: Apache-2.0
// What dialects say of modules, functions, arguments and results: see graph.h.
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ir/collective.h"
#include "ir/internal.h"

// --- Setting ---

static int by_key(const void* a, const void* b) {
  const pestle_dialect_attr_t *x = a, *y = b;
  return strcmp(x->key, y->key);
}

static pestle_status_t copy_attrs(pestle_module_t* module,
                                  const pestle_dialect_attr_t* attrs,
                                  size_t count, pestle_dialect_attrs_t* out) {
  if (count > UINT32_MAX) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "too many attributes");
  }
  pestle_dialect_attr_t* data =
      PESTLE_ARENA_ARRAY(&module->arena, pestle_dialect_attr_t, count);
  if (!data) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    if (!strchr(attrs[i].key, '.')) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "attribute '%.60s' has no dot in its name",
                          attrs[i].key);
    }
    PESTLE_TRY(pestle_module_intern_opt(module, attrs[i].key, &data[i].key));
    PESTLE_TRY(pestle_module_intern_opt(module, attrs[i].text, &data[i].text));
  }
  if (count) qsort(data, count, sizeof(*data), by_key);
  for (size_t i = 1; i < count; ++i) {
    if (strcmp(data[i - 1].key, data[i].key)) continue;
    return PESTLE_ERROR(INVALID_ARGUMENT, "attribute '%.60s' is given twice",
                        data[i].key);
  }
  *out = (pestle_dialect_attrs_t){data, (uint32_t)count};
  return NULL;
}

// Sets entry |index| of an array that grows to hold it.
static pestle_status_t set_at(pestle_module_t* module,
                              pestle_dialect_attrs_t** list, uint32_t* size,
                              size_t index, const pestle_dialect_attr_t* attrs,
                              size_t count) {
  if (index >= UINT32_MAX) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "index %zu is too large", index);
  }
  if (!count && index >= *size) return NULL;
  pestle_dialect_attrs_t made;
  PESTLE_TRY(copy_attrs(module, attrs, count, &made));
  if (index >= *size) {
    pestle_dialect_attrs_t* all =
        PESTLE_ARENA_ARRAY(&module->arena, pestle_dialect_attrs_t, index + 1);
    if (!all) return PESTLE_OOM();
    for (size_t i = 0; i <= index; ++i) {
      all[i] = i < *size ? (*list)[i] : (pestle_dialect_attrs_t){NULL, 0};
    }
    *list = all;
    *size = (uint32_t)(index + 1);
  }
  (*list)[index] = made;
  return NULL;
}

pestle_status_t pestle_module_set_dialect_attrs(
    pestle_module_t* module, const pestle_dialect_attr_t* attrs, size_t count) {
  return copy_attrs(module, attrs, count, &module->dialect_attrs);
}

pestle_status_t pestle_function_set_dialect_attrs(
    pestle_function_t* function, const pestle_dialect_attr_t* attrs,
    size_t count) {
  return copy_attrs(function->module, attrs, count, &function->dialect_attrs);
}

pestle_status_t pestle_function_set_argument_attrs(
    pestle_function_t* f, size_t index, const pestle_dialect_attr_t* attrs,
    size_t count) {
  return set_at(f->module, &f->argument_attrs, &f->argument_attr_count, index,
                attrs, count);
}

pestle_status_t pestle_function_set_result_attrs(
    pestle_function_t* f, size_t index, const pestle_dialect_attr_t* attrs,
    size_t count) {
  return set_at(f->module, &f->result_attrs, &f->result_attr_count, index,
                attrs, count);
}

pestle_status_t pestle_function_copy_dialect_attrs(
    const pestle_function_t* from, pestle_function_t* to) {
  PESTLE_TRY(pestle_function_set_dialect_attrs(to, from->dialect_attrs.data,
                                               from->dialect_attrs.count));
  for (uint32_t i = 0; i < from->argument_attr_count; ++i) {
    PESTLE_TRY(pestle_function_set_argument_attrs(
        to, i, from->argument_attrs[i].data, from->argument_attrs[i].count));
  }
  for (uint32_t i = 0; i < from->result_attr_count; ++i) {
    PESTLE_TRY(pestle_function_set_result_attrs(
        to, i, from->result_attrs[i].data, from->result_attrs[i].count));
  }
  return NULL;
}

// --- Reading ---

pestle_dialect_attrs_t pestle_function_argument_attrs(
    const pestle_function_t* function, size_t index) {
  return index < function->argument_attr_count
             ? function->argument_attrs[index]
             : (pestle_dialect_attrs_t){NULL, 0};
}

pestle_dialect_attrs_t pestle_function_result_attrs(
    const pestle_function_t* function, size_t index) {
  return index < function->result_attr_count
             ? function->result_attrs[index]
             : (pestle_dialect_attrs_t){NULL, 0};
}

const char* pestle_dialect_attrs_find(pestle_dialect_attrs_t attrs,
                                      const char* key) {
  for (uint32_t i = 0; i < attrs.count; ++i) {
    if (!strcmp(attrs.data[i].key, key)) return attrs.data[i].text;
  }
  return NULL;
}

int64_t pestle_dialect_attrs_i64(pestle_dialect_attrs_t attrs, const char* key,
                                 int64_t otherwise) {
  const char* text = pestle_dialect_attrs_find(attrs, key);
  pestle_str_t rest = pestle_str(text ? text : ""), number;
  int64_t value;
  if (!pestle_str_next(&rest, ':', &number) ||
      !pestle_str_parse_i64(pestle_str_trim(number), &value)) {
    return otherwise;
  }
  return value;
}

int64_t pestle_function_aliased_result(const pestle_function_t* function,
                                       size_t index) {
  return pestle_dialect_attrs_i64(
      pestle_function_argument_attrs(function, index), "tf.aliasing_output",
      -1);
}

bool pestle_function_argument_is_donor(const pestle_function_t* function,
                                       size_t index) {
  const char* text = pestle_dialect_attrs_find(
      pestle_function_argument_attrs(function, index), "jax.buffer_donor");
  return text && strcmp(text, "false") != 0;
}

int64_t pestle_module_device_count(const pestle_module_t* module) {
  pestle_world_shape_t world = pestle_module_world(module);
  return (int64_t)world.replicas * world.partitions;
}

const char* pestle_module_name(const pestle_module_t* module) {
  return module && module->name ? module->name : "";
}

const char* pestle_module_attribute(const pestle_module_t* module,
                                    const char* key) {
  if (!module || !key) return NULL;
  return pestle_dialect_attrs_find(module->dialect_attrs, key);
}

const char* pestle_function_argument_attribute(
    const pestle_function_t* function, size_t index, const char* key) {
  if (!function || !key) return NULL;
  return pestle_dialect_attrs_find(
      pestle_function_argument_attrs(function, index), key);
}

pestle_type_t pestle_function_returned_type(const pestle_function_t* function,
                                            size_t index) {
  size_t count;
  if (!function || !pestle_function_result_count(function, &count) ||
      index >= count) {
    return (pestle_type_t){.dtype = PESTLE_NONE};
  }
  return *pestle_function_result_type(function, index);
}

const char* pestle_function_result_attribute(const pestle_function_t* function,
                                             size_t index, const char* key) {
  if (!function || !key) return NULL;
  return pestle_dialect_attrs_find(
      pestle_function_result_attrs(function, index), key);
}

pestle_status_t pestle_function_set_tokens(pestle_function_t* function,
                                           bool of_results,
                                           const uint32_t* positions,
                                           size_t count) {
  uint32_t* copy = pestle_arena_copy(&function->module->arena, positions,
                                     count * sizeof(*copy), _Alignof(uint32_t));
  if (!copy) return PESTLE_OOM();
  if (of_results) {
    function->result_tokens = copy;
    function->result_token_count = (uint32_t)count;
  } else {
    function->argument_tokens = copy;
    function->argument_token_count = (uint32_t)count;
  }
  return NULL;
}

size_t pestle_function_tokens(const pestle_function_t* function,
                              bool of_results, const uint32_t** out_positions) {
  const uint32_t* positions = NULL;
  size_t count = 0;
  if (function) {
    positions =
        of_results ? function->result_tokens : function->argument_tokens;
    count = of_results ? function->result_token_count
                       : function->argument_token_count;
  }
  if (out_positions) *out_positions = positions;
  return count;
}

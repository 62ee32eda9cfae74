// SPDX-License-Identifier: Apache-2.0
#include "ir/sharding.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "ir/collective.h"
#include "ir/internal.h"
#include "ir/sharding_text.h"

// --- Meshes ---

static const char mesh_prefix[] = "sdy.mesh.";

static bool is_mesh(const pestle_dialect_attr_t* attr) {
  return !strncmp(attr->key, mesh_prefix, sizeof(mesh_prefix) - 1);
}

bool pestle_module_has_mesh(const pestle_module_t* module) {
  for (uint32_t i = 0; i < module->dialect_attrs.count; ++i) {
    if (is_mesh(&module->dialect_attrs.data[i])) return true;
  }
  return false;
}

const char* pestle_module_find_mesh(const pestle_module_t* module,
                                    pestle_str_t name) {
  for (uint32_t i = 0; i < module->dialect_attrs.count; ++i) {
    const pestle_dialect_attr_t* attr = &module->dialect_attrs.data[i];
    if (is_mesh(attr) &&
        pestle_str_equal_c(name, attr->key + sizeof(mesh_prefix) - 1)) {
      return attr->text;
    }
  }
  return NULL;
}

// The module's attributes and |key|, or those that are no meshes where it is NULL.
static pestle_status_t set_attrs(pestle_module_t* module, const char* key,
                                 const char* text) {
  uint32_t count = module->dialect_attrs.count, n = 0;
  pestle_dialect_attr_t* data =
      PESTLE_ARENA_ARRAY(&module->arena, pestle_dialect_attr_t, count + 1);
  if (!data) return PESTLE_OOM();
  for (uint32_t i = 0; i < count; ++i) {
    const pestle_dialect_attr_t* attr = &module->dialect_attrs.data[i];
    if (key || !is_mesh(attr)) data[n++] = *attr;
  }
  if (key) data[n++] = (pestle_dialect_attr_t){key, text};
  return pestle_module_set_dialect_attrs(module, data, n);
}

pestle_status_t pestle_module_drop_meshes(pestle_module_t* module) {
  if (!pestle_module_has_mesh(module)) return NULL;
  return set_attrs(module, NULL, NULL);
}

pestle_status_t pestle_module_settle_meshes(pestle_module_t* module) {
  bool alone = pestle_module_world(module).partitions == 1;
  return alone ? pestle_module_drop_meshes(module)
               : pestle_module_read_tiles(module);
}

pestle_status_t pestle_sharding_check(pestle_module_t* module,
                                      pestle_str_t text) {
  pestle_generic_value_t value;
  pestle_arena_mark_t mark = pestle_arena_mark(&module->arena);
  pestle_status_t status =
      pestle_generic_parse_value(module->context, &module->arena, text, &value);
  pestle_arena_rewind(&module->arena, mark);
  return status;
}

pestle_status_t pestle_module_add_mesh(pestle_module_t* module,
                                       pestle_str_t name, pestle_str_t text) {
  pestle_strbuf_t key, value;
  // Shardings name it as it is written.
  bool plain = pestle_str_find_char(name, '"') == SIZE_MAX &&
               pestle_str_find_char(name, '\\') == SIZE_MAX;
  if (!plain || pestle_module_find_mesh(module, name)) {
    return PESTLE_ERROR(MALFORMED, "the mesh '%.*s' %s",
                        name.size > 60 ? 60 : (int)name.size, name.data,
                        plain ? "is declared twice"
                              : "has quotes in its name, which shardings are "
                                "not read with");
  }
  pestle_strbuf_init(module->arena.allocator, &key);
  pestle_strbuf_init(module->arena.allocator, &value);
  pestle_strbuf_append_c(&key, mesh_prefix);
  pestle_strbuf_append(&key, name);
  size_t open = pestle_str_find_char(text, '<');
  pestle_strbuf_append_c(&value, "#sdy.mesh");
  if (open != SIZE_MAX)
    pestle_strbuf_append(
        &value, pestle_str_trim(pestle_str_slice(text, open, text.size)));
  pestle_status_t status = pestle_strbuf_status(&key);
  if (!status) status = pestle_strbuf_status(&value);
  if (!status)
    status = pestle_sharding_check(module, pestle_strbuf_view(&value));
  if (!status)
    status =
        set_attrs(module, pestle_strbuf_cstr(&key), pestle_strbuf_cstr(&value));
  pestle_strbuf_deinit(&value);
  pestle_strbuf_deinit(&key);
  return status;
}

pestle_str_t pestle_sharding_of_list(pestle_str_t list, size_t index) {
  int depth = 0;
  size_t found = 0;
  const char* begin = NULL;
  for (size_t i = 0; i < list.size; ++i) {
    // Per value: "#sdy.sharding_per_value<[<..>, <..>]>".
    char c = list.data[i];
    if (c == '[' && !depth && !begin) {
      depth = 1;
    } else if (c == '<' && depth == 1) {
      begin = list.data + i;
      depth = 2;
    } else if (c == '>' && depth == 2) {
      if (found++ == index)
        return pestle_str_make(begin, (size_t)(list.data + i + 1 - begin));
      depth = 1;
    }
  }
  return pestle_str_make("", 0);
}

// --- What it says ---

static pestle_str_t text_at(const pestle_generic_value_t* dict,
                            const char* key) {
  const pestle_generic_value_t* value = pestle_generic_find(dict, key);
  return value ? value->whole : pestle_str_make("", 0);
}

pestle_shardings_t pestle_shardings_read(const pestle_generic_value_t* dict) {
  return (pestle_shardings_t){.in = text_at(dict, "in_shardings"),
                              .out = text_at(dict, "out_shardings"),
                              .axes = text_at(dict, "manual_axes")};
}

const char* pestle_sharding_text(const pestle_sharding_t* s,
                                 pestle_arena_t* arena) {
  if (s->replicated) return pestle_arena_strdup(arena, "{replicated}");
  if (s->sums == s->count) return pestle_arena_strdup(arena, "{unreduced}");
  pestle_strbuf_t text;
  pestle_strbuf_init(arena->allocator, &text);
  pestle_strbuf_append_c(&text, "{devices=[");
  for (int32_t i = 0; i < s->rank; ++i)
    pestle_strbuf_appendf(&text, "%s%" PRId64, i ? "," : "", s->tiles[i]);
  if (s->sums > 1)
    pestle_strbuf_appendf(&text, s->rank ? ",%" PRId64 : "%" PRId64, s->sums);
  if (s->copies > 1) pestle_strbuf_appendf(&text, ",%" PRId64, s->copies);
  pestle_strbuf_append_char(&text, ']');
  for (int64_t i = 0; i < s->count; ++i)
    pestle_strbuf_appendf(&text, "%s%" PRId32, i ? "," : "", s->processes[i]);
  if (s->sums > 1) {
    pestle_strbuf_appendf(&text, " last_tile_dims={unreduced%s}",
                          s->copies > 1 ? ", replicated" : "");
  } else if (s->copies > 1) {
    pestle_strbuf_append_c(&text, " last_tile_dim_replicate");
  }
  pestle_strbuf_append_char(&text, '}');
  const char* out =
      text.failed ? NULL
                  : pestle_arena_strndup(arena, pestle_strbuf_view(&text));
  pestle_strbuf_deinit(&text);
  return out;
}

// The attributes of a dialect but for sdy.sharding, and ours.
pestle_status_t pestle_function_set_sharding(pestle_function_t* function,
                                             bool of_result, uint32_t index,
                                             const pestle_sharding_t* sharding,
                                             pestle_arena_t* arena) {
  pestle_dialect_attrs_t old =
      of_result ? pestle_function_result_attrs(function, index)
                : pestle_function_argument_attrs(function, index);
  pestle_dialect_attr_t* data =
      PESTLE_ARENA_ARRAY(arena, pestle_dialect_attr_t, old.count + 1);
  if (!data) return PESTLE_OOM();
  uint32_t n = 0;
  for (uint32_t i = 0; i < old.count; ++i) {
    if (strcmp(old.data[i].key, "sdy.sharding") != 0) data[n++] = old.data[i];
  }
  if (sharding) {
    const char* text = pestle_sharding_text(sharding, arena);
    size_t size = text ? strlen(text) + 3 : 0;
    char* quoted = text ? pestle_arena_alloc(arena, size, 1) : NULL;
    if (!quoted) return PESTLE_OOM();
    quoted[0] = '"';
    memcpy(quoted + 1, text, size - 3);
    memcpy(quoted + size - 2, "\"", 2);
    data[n++] = (pestle_dialect_attr_t){PESTLE_SHARDING_KEY, quoted};
  }
  return of_result
             ? pestle_function_set_result_attrs(function, index, data, n)
             : pestle_function_set_argument_attrs(function, index, data, n);
}

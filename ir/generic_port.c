// SPDX-License-Identifier: Apache-2.0
// What is noted of arguments and results beside their types, and the attributes
// of dialects that the module keeps.
#include <stdio.h>

#include "base/mem.h"
#include "ir/dictionary.h"
#include "ir/generic.h"

// The string under "pestle.name", or NULL.
static const char* name_in(const pestle_generic_value_t* dict) {
  const pestle_generic_value_t* v = pestle_generic_find(dict, "pestle.name");
  return v && v->kind == PESTLE_GENERIC_STRING ? v->text.data : NULL;
}

// The number under "pestle.shape_of" + 1, or 0.
static uint32_t shape_in(const pestle_generic_value_t* dict) {
  const pestle_generic_value_t* v =
      pestle_generic_find(dict, "pestle.shape_of");
  bool fits =
      v && v->kind == PESTLE_GENERIC_INT && v->i64 >= 0 && v->i64 < UINT32_MAX;
  return fits ? (uint32_t)v->i64 + 1 : 0;
}

// A dialect's, and neither ours, but for strings, nor a name in the user's Python.
static bool is_kept(pestle_str_t key) {
  bool own = pestle_str_starts_with(key, PESTLE_STR("pestle.")) &&
             !pestle_str_equal_c(key, PESTLE_FUNCTION_STRINGS) &&
             !pestle_str_equal_c(key, PESTLE_FUNCTION_DICTIONARY);
  return pestle_str_find_char(key, '.') != SIZE_MAX && !own &&
         !pestle_str_equal_c(key, "jax.result_info");
}

// |text| with one space where several or a new line are, but in strings.
static char* one_line(pestle_arena_t* arena, pestle_str_t text) {
  char* out = pestle_arena_alloc(arena, text.size + 1, 1);
  if (!out) return NULL;
  size_t n = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size; ++i) {
    char c = text.data[i];
    bool escaped = quoted && i && text.data[i - 1] == '\\';
    if (c == '"' && !escaped) quoted = !quoted;
    bool space = !quoted && (c == ' ' || c == '\n' || c == '\t' || c == '\r');
    if (space && n && out[n - 1] == ' ') continue;
    out[n++] = space ? ' ' : c;
  }
  out[n] = 0;
  return out;
}

// The entries of |dict| that the module keeps.
pestle_status_t pestle_generic_kept(pestle_arena_t* arena,
                                    const pestle_generic_value_t* dict,
                                    pestle_dialect_attrs_t* out) {
  pestle_dialect_attr_t* data =
      PESTLE_ARENA_ARRAY(arena, pestle_dialect_attr_t, dict->entry_count);
  if (!data) return PESTLE_OOM();
  *out = (pestle_dialect_attrs_t){data, 0};
  for (const pestle_generic_entry_t* e = dict->entries; e; e = e->next) {
    if (!is_kept(e->key)) continue;
    pestle_dialect_attr_t* a = &data[out->count++];
    a->key = pestle_arena_strndup(arena, e->key);
    a->text = one_line(arena, e->value.whole);
    if (!a->key || !a->text) return PESTLE_OOM();
  }
  return NULL;
}

pestle_status_t pestle_generic_port(pestle_arena_t* arena,
                                    const pestle_generic_value_t* dict,
                                    pestle_generic_port_t* out) {
  out->name = name_in(dict);
  out->shape_of = shape_in(dict);
  return pestle_generic_kept(arena, dict, &out->attrs);
}

// |*attrs| with results counted as the graph has them, without tokens.
static pestle_status_t count_without_tokens(const pestle_function_t* function,
                                            pestle_dialect_attrs_t* attrs) {
  static const char key[] = "tf.aliasing_output";
  int64_t result = pestle_dialect_attrs_i64(*attrs, key, -1);
  int64_t before = 0;
  for (uint32_t i = 0; i < function->result_token_count; ++i)
    before += function->result_tokens[i] < result;
  if (!before) return NULL;
  pestle_arena_t* arena = &function->module->arena;
  pestle_dialect_attr_t* data =
      PESTLE_ARENA_ARRAY(arena, pestle_dialect_attr_t, attrs->count);
  char* text = PESTLE_ARENA_ARRAY(arena, char, 32);
  if (!data || !text) return PESTLE_OOM();
  snprintf(text, 32, "%lld : i32", (long long)(result - before));
  for (uint32_t i = 0; i < attrs->count; ++i) {
    data[i] = attrs->data[i];
    if (!strcmp(data[i].key, key)) data[i].text = text;
  }
  attrs->data = data;
  return NULL;
}

pestle_status_t pestle_generic_set_ports(pestle_function_t* function,
                                         const pestle_generic_port_t* arguments,
                                         size_t argument_count,
                                         const pestle_generic_port_t* results,
                                         size_t result_count) {
  // From the last, which makes room for all.
  for (size_t i = argument_count; i-- > 0;) {
    pestle_dialect_attrs_t a = arguments[i].attrs;
    PESTLE_TRY(count_without_tokens(function, &a));
    PESTLE_TRY(
        pestle_function_set_argument_attrs(function, i, a.data, a.count));
  }
  for (size_t i = result_count; i-- > 0;) {
    const pestle_generic_port_t* port = &results[i];
    PESTLE_TRY(pestle_function_set_result_attrs(function, i, port->attrs.data,
                                                port->attrs.count));
    if (port->shape_of) {
      PESTLE_TRY(pestle_function_set_shape_of(function, i, port->shape_of - 1));
    }
    if (!port->name) continue;
    PESTLE_TRY(pestle_function_set_result_name(function, i, port->name));
  }
  return NULL;
}

// SPDX-License-Identifier: Apache-2.0
// Attributes of custom calls. Functions that one is given (called_computations) travel
// as text, since a function of the caller's own can do nothing with a name:
//
//   custom_call @f(%x) {called_computations = [@g]}  in a module that has @g
//   custom_call @f(%x) {pestle.called_computations = "module { .. @g .. }"}
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "ir/copy.h"
#include "ir/generic.h"
#include "ir/generic_internal.h"
#include "ir/internal.h"
#include "pestle/plan_format.h"

// The texts of all have no more bytes: a text of few lines can name one function many
// times.
enum { MAX_TEXT = 16 << 20 };

static pestle_status_t wrong(pestle_generic_t* g,
                             const pestle_generic_value_t* value,
                             const char* name, const char* what) {
  g->at = value->line ? value : NULL;
  return PESTLE_ERROR(MALFORMED, "attribute '%s' must be %s", name, what);
}

static pestle_status_t push_str(pestle_generic_t* g, pestle_attr_name_t name,
                                pestle_str_t text) {
  pestle_attr_t a = {.name = (uint16_t)name, .kind = PESTLE_ATTR_KIND_STR};
  a.as.str = pestle_arena_strndup(g->arena, text);
  return a.as.str ? pestle_generic_push(g, &a) : PESTLE_OOM();
}

// --- Aliases ---

// The one number of a list, or 0 of an empty one: parts of tuples, which results are
// and operands are not.
static bool read_part(const pestle_generic_value_t* list, bool may_be_one,
                      int64_t* out) {
  *out = 0;
  if (!list) return true;
  if (list->kind != PESTLE_GENERIC_LIST) return false;
  if (!list->entry_count) return true;
  *out = list->entries->value.i64;
  return may_be_one && list->entry_count == 1 &&
         list->entries->value.kind == PESTLE_GENERIC_INT;
}

// #stablehlo.output_operand_alias<output_tuple_indices = [1], operand_index = 0,
//                                 operand_tuple_indices = []>
static pestle_status_t read_alias(pestle_generic_t* g,
                                  const pestle_generic_value_t* alias,
                                  int64_t out_pair[2]) {
  const pestle_generic_value_t* operand =
      alias->kind == PESTLE_GENERIC_DICT
          ? pestle_generic_find(alias, "operand_index")
          : NULL;
  int64_t none;
  bool fits = operand && operand->kind == PESTLE_GENERIC_INT &&
              read_part(pestle_generic_find(alias, "output_tuple_indices"),
                        true, &out_pair[0]) &&
              read_part(pestle_generic_find(alias, "operand_tuple_indices"),
                        false, &none);
  if (!fits) {
    return wrong(g, alias, "output_operand_aliases",
                 "aliases of at most one output index with an operand_index "
                 "and no operand_tuple_indices");
  }
  out_pair[1] = operand->i64;
  return NULL;
}

// [alias, ..] as StableHLO writes it, or the pairs of numbers that the row has.
static pestle_status_t apply_aliases(pestle_generic_t* g,
                                     const pestle_generic_value_t* value) {
  pestle_attr_t a = {.name = PESTLE_ATTR_output_operand_aliases,
                     .kind = PESTLE_ATTR_KIND_I64S};
  if (value->kind != PESTLE_GENERIC_LIST) {
    return wrong(g, value, "output_operand_aliases", "a list of aliases");
  }
  if (!value->entry_count) return NULL;
  int64_t* pairs =
      PESTLE_ARENA_ARRAY(g->arena, int64_t, 2 * value->entry_count);
  if (!pairs) return PESTLE_OOM();
  a.as.i64s = (pestle_i64s_t){pairs, 2 * value->entry_count};
  for (const pestle_generic_entry_t* e = value->entries; e; e = e->next) {
    PESTLE_TRY(read_alias(g, &e->value, pairs));
    pairs += 2;
  }
  return pestle_generic_push(g, &a);
}

// --- Computations ---

// [@f, @g] as "@f\n@g\n" until all functions are there.
static pestle_status_t apply_names(pestle_generic_t* g,
                                   const pestle_generic_value_t* value) {
  pestle_strbuf_t names;
  bool fits = value->kind == PESTLE_GENERIC_LIST;
  if (fits && !value->entry_count) return NULL;
  pestle_strbuf_init(g->arena->allocator, &names);
  for (const pestle_generic_entry_t* e = value->entries; fits && e;
       e = e->next) {
    fits = e->value.kind == PESTLE_GENERIC_SYMBOL ||
           e->value.kind == PESTLE_GENERIC_STRING;
    fits = fits && pestle_str_find_char(e->value.text, '\n') == SIZE_MAX;
    if (!fits) break;
    pestle_strbuf_append_char(&names, '@');
    pestle_strbuf_append(&names, e->value.text);
    pestle_strbuf_append_char(&names, '\n');
  }
  pestle_status_t status =
      fits ? pestle_strbuf_status(&names)
           : wrong(g, value, "called_computations", "a list of functions");
  if (!status) {
    status = push_str(g, PESTLE_ATTR_called_computations,
                      pestle_str(pestle_strbuf_cstr(&names)));
  }
  pestle_strbuf_deinit(&names);
  return status;
}

// --- All ---

pestle_status_t pestle_generic_apply_custom(pestle_generic_t* g,
                                            const pestle_generic_entry_t* e,
                                            bool* out_done) {
  const pestle_generic_value_t* value = &e->value;
  *out_done = true;
  if (value->kind == PESTLE_GENERIC_DICT &&
      (pestle_str_is_one_of(e->key, "backend_config mhlo.backend_config"))) {
    g->configuration = value;
    return push_str(g, PESTLE_ATTR_backend_dictionary, value->text);
  }
  if (pestle_str_equal_c(e->key, "pestle.version")) {
    pestle_attr_t a = {.name = PESTLE_ATTR_version,
                       .kind = PESTLE_ATTR_KIND_I64};
    g->by_name = true;
    PESTLE_TRY(pestle_generic_convert(g, "pestle.version", value, &a));
    return pestle_generic_push(g, &a);
  }
  if (pestle_str_equal_c(e->key, "operand_layouts")) {
    g->operand_layouts = e;
    return NULL;
  }
  if (pestle_str_equal_c(e->key, "result_layouts")) {
    g->result_layouts = e;
    return NULL;
  }
  if (pestle_str_equal_c(e->key, "output_operand_aliases")) {
    return apply_aliases(g, value);
  }
  if (pestle_str_equal_c(e->key, "called_computations")) {
    return apply_names(g, value);
  }
  if (pestle_str_equal_c(e->key, "pestle.called_computations")) {
    if (value->kind != PESTLE_GENERIC_STRING || !value->text.size ||
        value->text.data[0] == '@') {
      return wrong(g, value, "pestle.called_computations",
                   "the text of modules");
    }
    return push_str(g, PESTLE_ATTR_called_computations, value->text);
  }
  *out_done = false;
  return NULL;
}

// --- Text in the place of names ---

static pestle_status_t append_text(pestle_function_t* f, pestle_strbuf_t* out) {
  pestle_module_t* part;
  char* text;
  size_t size;
  PESTLE_TRY(pestle_module_extract(f, &part));
  pestle_allocator_t allocator = part->arena.allocator;
  pestle_status_t status = pestle_module_print(part, 0, &text, &size);
  pestle_module_release(part);
  if (status) return status;
  pestle_strbuf_append_bytes(out, text, size);
  pestle_strbuf_append_char(out, PESTLE_PLAN_COMPUTATION_END);
  pestle_dealloc(allocator, text, size + 1);
  if (out->size <= MAX_TEXT) return NULL;
  return PESTLE_ERROR(RESOURCE_EXHAUSTED,
                      "the functions that custom calls are given have more "
                      "than %d bytes of text",
                      MAX_TEXT);
}

// A function that hands functions on itself has no text yet.
static bool is_plain(const pestle_function_t* f) {
  const pestle_node_t* n = NULL;
  while ((n = pestle_region_next(f->body, n))) {
    if (n->op == PESTLE_OP_CUSTOM_CALL &&
        PESTLE_NODE_STR(n, called_computations)[0] == '@') {
      return false;
    }
  }
  return true;
}

static pestle_status_t append_function(const pestle_node_t* node,
                                       pestle_module_t* module,
                                       const char* name, pestle_strbuf_t* out) {
  pestle_function_t* f = pestle_module_find_function(module, name);
  if (!f) {
    return pestle_node_error(node, PESTLE_STATUS_MALFORMED,
                             "'called_computations' names function '%.60s', "
                             "which the module lacks",
                             name);
  }
  if (!is_plain(f)) {
    return pestle_node_error(node, PESTLE_STATUS_UNSUPPORTED,
                             "'called_computations' names function '%.60s', "
                             "whose own custom calls are given functions",
                             name);
  }
  return append_text(f, out);
}

static pestle_status_t resolve(pestle_module_t* module, pestle_node_t* node,
                               pestle_attr_t* attr, pestle_strbuf_t* all) {
  pestle_str_t rest = pestle_str(attr->as.str), line;
  size_t begin = all->size;
  while (pestle_str_next(&rest, '\n', &line)) {
    if (!line.size) continue;
    const char* name = pestle_arena_strndup(
        &module->arena, pestle_str_make(line.data + 1, line.size - 1));
    if (!name) return PESTLE_OOM();
    PESTLE_TRY(append_function(node, module, name, all));
  }
  PESTLE_TRY(pestle_strbuf_status(all));
  attr->as.str =
      pestle_module_intern_string(module, pestle_strbuf_cstr(all) + begin);
  return attr->as.str ? NULL : PESTLE_OOM();
}

pestle_status_t pestle_generic_attach_computations(pestle_module_t* module) {
  pestle_strbuf_t all;
  pestle_status_t status = NULL;
  pestle_strbuf_init(module->arena.allocator, &all);
  for (pestle_function_t* f = module->first; f && !status; f = f->next) {
    pestle_node_t* n = NULL;
    while (!status && (n = pestle_region_next(f->body, n))) {
      for (uint32_t a = 0; !status && a < n->attr_count; ++a) {
        pestle_attr_t* attr = &n->attrs[a];
        if (attr->name == PESTLE_ATTR_called_computations &&
            attr->as.str[0] == '@') {
          status = resolve(module, n, attr, &all);
        }
      }
    }
  }
  pestle_strbuf_deinit(&all);
  return status;
}

// SPDX-License-Identifier: Apache-2.0
// One op: results, name, form, types, location; and the names of values.
#include "ir/built.h"
#include "ir/fold.h"
#include "ir/infer.h"
#include "ir/internal.h"
#include "ir/parse_internal.h"
#include "ir/quant.h"
#include "ir/text.h"

// --- Scopes ---

size_t pestle_parse_scope_begin(pestle_parser_t* p) {
  return p->bindings.size;
}

void pestle_parse_scope_end(pestle_parser_t* p, size_t mark) {
  while (p->bindings.size > mark) {
    pestle_str_t name = pestle_vec_pop(&p->bindings).name;
    pestle_map_remove(&p->scope, name.data, name.size);
  }
}

pestle_status_t pestle_parse_bind(pestle_parser_t* p, const pestle_token_t* at,
                                  pestle_str_t name, pestle_value_t* values,
                                  size_t count) {
  bool added;
  pestle_map_value_t* slot =
      pestle_map_put(&p->scope, name.data, name.size, &added);
  if (!slot) return PESTLE_OOM();
  if (!added) {
    return pestle_parse_error(p, at, PESTLE_STATUS_MALFORMED,
                              "%%%.*s is defined twice",
                              name.size > 60 ? 60 : (int)name.size, name.data);
  }
  slot->u64 = p->bindings.size;
  pestle_parse_binding_t binding = {name, values, count, NULL};
  if (!pestle_vec_push(&p->bindings, binding)) return PESTLE_OOM();
  return NULL;
}

pestle_status_t pestle_parse_bind_forms(
    pestle_parser_t* p, const pestle_token_t* at, pestle_str_t name,
    pestle_value_t** leaves, const pestle_parse_form_t* forms, size_t count) {
  size_t leaf_count = 0, next = 0;
  for (size_t i = 0; i < count; ++i)
    leaf_count += forms[i].leaves;
  pestle_parse_part_t* parts =
      PESTLE_ARENA_ARRAY(&p->kept, pestle_parse_part_t, count);
  pestle_value_t** kept =
      PESTLE_ARENA_ARRAY(&p->kept, pestle_value_t*, leaf_count + 1);
  if (!parts || !kept) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    parts[i] =
        (pestle_parse_part_t){.leaves = kept + next, .count = forms[i].leaves};
    for (size_t k = 0; k < forms[i].leaves; ++k, ++next)
      kept[next] = leaves[next];
    if (!forms[i].nest) continue;
    parts[i].nest = pestle_arena_strdup(&p->kept, forms[i].nest);
    if (!parts[i].nest) return PESTLE_OOM();
  }
  PESTLE_TRY(pestle_parse_bind(p, at, name, NULL, count));
  p->bindings.data[p->bindings.size - 1].parts = parts;
  return NULL;
}

// The value that the token names; the leaves of a tuple.
static pestle_status_t find_part(pestle_parser_t* p, pestle_value_t** room,
                                 pestle_parse_part_t* out_part) {
  const pestle_token_t* t = pestle_parse_token(p);
  if (t->kind != PESTLE_TOKEN_VALUE) {
    return pestle_parse_expected(p, "a value such as %0");
  }
  const pestle_map_value_t* found = pestle_map_find_str(&p->scope, t->text);
  if (!found) {
    return pestle_parse_error(
        p, t, PESTLE_STATUS_MALFORMED, "%%%.*s is not defined before its use",
        t->text.size > 60 ? 60 : (int)t->text.size, t->text.data);
  }
  const pestle_parse_binding_t* b = &p->bindings.data[found->u64];
  size_t index = t->index < 0 ? 0 : (size_t)t->index;
  if (index >= b->count || (t->index < 0 && b->count != 1)) {
    return pestle_parse_error(p, t, PESTLE_STATUS_MALFORMED,
                              "%%%.*s stands for %zu results: one is picked "
                              "by a number below that, as in %%0#1",
                              b->name.size > 60 ? 60 : (int)b->name.size,
                              b->name.data, b->count);
  }
  *room = b->parts ? NULL : &b->values[index];
  *out_part = b->parts ? b->parts[index]
                       : (pestle_parse_part_t){.leaves = room, .count = 1};
  pestle_parse_advance(p);
  return NULL;
}

// --- Parts of an op ---

pestle_status_t pestle_parse_push_operand(pestle_parser_t* p,
                                          pestle_parse_op_t* o) {
  pestle_value_t* room;
  pestle_parse_part_t part;
  PESTLE_TRY(find_part(p, &room, &part));
  for (size_t i = 0; i < part.count; ++i) {
    PESTLE_TRY(pestle_parse_grow(p, &o->operands, o->operand_count,
                                 &o->operand_capacity, sizeof(*o->operands)));
    o->operands[o->operand_count++] = part.leaves[i];
  }
  PESTLE_TRY(pestle_parse_grow(p, &o->forms, o->form_count, &o->form_capacity,
                               sizeof(*o->forms)));
  o->forms[o->form_count++] = (pestle_parse_form_t){part.nest, part.count};
  return NULL;
}

pestle_status_t pestle_parse_operands(pestle_parser_t* p,
                                      pestle_parse_op_t* o) {
  if (!pestle_parse_at_kind(p, PESTLE_TOKEN_VALUE)) return NULL;
  do {
    PESTLE_TRY(pestle_parse_push_operand(p, o));
  } while (pestle_parse_take(p, ','));
  return NULL;
}

pestle_status_t pestle_parse_placed(const pestle_parser_t* p,
                                    const pestle_parse_op_t* o,
                                    pestle_status_t status) {
  pestle_token_t at = o->at;
  if (status && o->g.at) {
    at.line = o->g.at->line;
    at.column = o->g.at->column;
  }
  return pestle_parse_place(p, &at, status);
}

pestle_status_t pestle_parse_push_attr(pestle_parser_t* p, pestle_parse_op_t* o,
                                       const pestle_attr_t* attr) {
  return pestle_parse_placed(p, o, pestle_generic_push(&o->g, attr));
}

pestle_status_t pestle_parse_apply_dict(pestle_parser_t* p,
                                        pestle_parse_op_t* o,
                                        const pestle_generic_value_t* dict) {
  return pestle_parse_placed(p, o, pestle_generic_apply(&o->g, dict));
}

pestle_status_t pestle_parse_push_region(pestle_parser_t* p,
                                         pestle_parse_op_t* o,
                                         pestle_region_t* region) {
  PESTLE_TRY(pestle_parse_grow(p, &o->regions, o->region_count,
                               &o->region_capacity, sizeof(*o->regions)));
  o->regions[o->region_count++] = region;
  return NULL;
}

static pestle_status_t push_result_type(pestle_parser_t* p,
                                        pestle_parse_op_t* o,
                                        const pestle_parse_types_t* list,
                                        size_t index) {
  return pestle_parse_push_quant(p, &o->result_types, &list->data[index],
                                 list->quants[index]);
}

static pestle_status_t push_operand_type(pestle_parser_t* p,
                                         pestle_parse_op_t* o,
                                         const pestle_parse_types_t* list,
                                         size_t index) {
  return pestle_parse_push_quant(p, &o->operand_types, &list->data[index],
                                 list->quants[index]);
}

// "A, B, .." without an arrow: what each type is of depends on the op.
static pestle_status_t spread_types(pestle_parser_t* p, pestle_parse_op_t* o,
                                    const pestle_parse_types_t* list) {
  const pestle_op_info_t* info = pestle_op_info(o->g.op);
  const pestle_type_t* last = list->count ? &list->data[list->count - 1] : NULL;
  if (o->g.built && list->count == 1) {
    o->typed = true;
    for (size_t i = 0; i < o->operand_count; ++i) {
      PESTLE_TRY(push_operand_type(p, o, list, list->count - 1));
    }
    return push_result_type(p, o, list, list->count - 1);
  }
  if (o->g.op == PESTLE_OP_SELECT && last) {
    // "P, T", or "T" for three operands of one type.
    o->typed = list->count <= 2;
    PESTLE_TRY(push_operand_type(p, o, list, 0));
    PESTLE_TRY(push_operand_type(p, o, list, list->count - 1));
    PESTLE_TRY(push_operand_type(p, o, list, list->count - 1));
    return push_result_type(p, o, list, list->count - 1);
  }
  if (info->results == 0 || info->results == PESTLE_VARIADIC) {
    // One for each operand, and for each result if there are any.
    o->typed = true;
    o->operand_types = *list;
    for (size_t i = 0; info->results && i < list->count; ++i) {
      PESTLE_TRY(push_result_type(p, o, list, i));
    }
    o->result_types.forms = list->forms;
    o->result_types.form_count = list->form_count;
    o->result_types.nested = list->nested;
    return NULL;
  }
  if (list->count != 1) {
    return pestle_parse_error(p, &o->at, PESTLE_STATUS_MALFORMED,
                              "'%s' has one type or a function's after ':'",
                              info->mlir);
  }
  // Of the operands too, where there are any; but "complex" joins real ones.
  if (o->g.op == PESTLE_OP_COMPLEX)
    return push_result_type(p, o, list, list->count - 1);
  o->typed = true;
  for (size_t i = 0; i < o->operand_count; ++i) {
    PESTLE_TRY(push_operand_type(p, o, list, list->count - 1));
  }
  return push_result_type(p, o, list, list->count - 1);
}

pestle_status_t pestle_parse_op_types(pestle_parser_t* p,
                                      pestle_parse_op_t* o) {
  PESTLE_TRY(pestle_parse_expect(p, ':'));
  if (pestle_parse_at(p, '(')) {
    o->typed = true;
    return pestle_parse_function_type(p, &o->operand_types, &o->result_types);
  }
  pestle_parse_types_t list = {0};
  PESTLE_TRY(pestle_parse_type_list(p, &list));
  if (!pestle_parse_at_kind(p, PESTLE_TOKEN_ARROW)) {
    return spread_types(p, o, &list);
  }
  pestle_parse_advance(p);
  o->typed = true;
  o->operand_types = list;
  return pestle_parse_type_list(p, &o->result_types);
}

// --- From parts to a node ---

static const char* name_of(const pestle_parse_op_t* o) {
  return o->g.built ? o->g.built->name : pestle_op_info(o->g.op)->mlir;
}

static pestle_status_t type_mismatch(const pestle_parser_t* p,
                                     const pestle_parse_op_t* o,
                                     const char* what, size_t index,
                                     const pestle_type_t* written,
                                     const pestle_type_t* actual) {
  pestle_strbuf_t text;
  pestle_strbuf_init(p->allocator, &text);
  pestle_strbuf_appendf(&text, "%s %zu of '%s' is written as ", what, index,
                        name_of(o));
  pestle_type_print(written, &text);
  pestle_strbuf_append_c(&text, " and is ");
  pestle_type_print(actual, &text);
  pestle_status_t status = pestle_parse_error(
      p, &o->at, PESTLE_STATUS_MALFORMED, "%s", pestle_strbuf_cstr(&text));
  pestle_strbuf_deinit(&text);
  return status;
}

pestle_status_t pestle_parse_check_operands(const pestle_parser_t* p,
                                            const pestle_parse_op_t* o) {
  if (!o->typed) return NULL;
  if (o->operand_types.count != o->operand_count) {
    return pestle_parse_error(p, &o->at, PESTLE_STATUS_MALFORMED,
                              "'%s' has %zu operands and types for %zu",
                              name_of(o), o->operand_count,
                              o->operand_types.count);
  }
  for (size_t i = 0; i < o->operand_count; ++i) {
    const pestle_type_t* written = &o->operand_types.data[i];
    if (pestle_types_agree(written, o->operands[i]->type)) continue;
    return type_mismatch(p, o, "operand", i, written, o->operands[i]->type);
  }
  return NULL;
}

static pestle_status_t check_results(const pestle_parser_t* p,
                                     const pestle_parse_op_t* o,
                                     const pestle_node_t* node) {
  if (o->result_types.count != node->result_count) {
    return pestle_parse_error(p, &o->at, PESTLE_STATUS_MALFORMED,
                              "'%s' has %u results and types for %zu",
                              pestle_op_info(o->g.op)->mlir, node->result_count,
                              o->result_types.count);
  }
  for (uint32_t i = 0; i < node->result_count; ++i) {
    const pestle_type_t* written = &o->result_types.data[i];
    if (pestle_types_agree(written, node->results[i].type)) continue;
    return type_mismatch(p, o, "result", i, written, node->results[i].type);
  }
  return NULL;
}

pestle_status_t pestle_parse_place(const pestle_parser_t* p,
                                   const pestle_token_t* at,
                                   pestle_status_t status) {
  pestle_status_code_t code = pestle_status_code(status);
  if (!status || code == PESTLE_STATUS_OUT_OF_MEMORY) return status;
  if (code == PESTLE_STATUS_INVALID_ARGUMENT) code = PESTLE_STATUS_MALFORMED;
  pestle_status_t placed =
      pestle_parse_error(p, at, code, "%s", pestle_status_message(status));
  pestle_status_release(status);
  return placed;
}

pestle_status_t pestle_parse_site(const pestle_parser_t* p,
                                  const pestle_parse_op_t* o,
                                  pestle_generic_site_t* out_site) {
  PESTLE_TRY(pestle_parse_check_operands(p, o));
  *out_site = (pestle_generic_site_t){.arena = o->g.arena,
                                      .builder = *o->builder,
                                      .name = o->at.text,
                                      .operands = o->operands,
                                      .operand_count = o->operand_count,
                                      .types = o->result_types.data,
                                      .type_count = o->result_types.count};
  out_site->builder.loc = (pestle_loc_t){
      .file = p->file, .line = o->at.line, .column = o->at.column};
  return NULL;
}

pestle_status_t pestle_parse_finish(pestle_parser_t* p, pestle_parse_op_t* o,
                                    pestle_node_t** out_node) {
  PESTLE_TRY(pestle_parse_check_operands(p, o));
  PESTLE_TRY(pestle_parse_placed(
      p, o,
      pestle_generic_create(&o->g, o->builder, o->operands, o->operand_count,
                            o->regions, o->region_count, o->result_types.data,
                            o->result_types.count, out_node)));
  // Set afterwards, so that errors do not name the place twice.
  pestle_loc_t* loc = &(*out_node)->loc;
  *loc = (pestle_loc_t){.file = pestle_module_intern_string(p->module, p->file),
                        .line = o->at.line,
                        .column = o->at.column};
  if (!loc->file) return PESTLE_OOM();
  PESTLE_TRY(check_results(p, o, *out_node));
  return o->g.op == PESTLE_OP_CUSTOM
             ? pestle_parse_note_composite(p, o, *out_node)
             : NULL;
}

// --- Names ---

pestle_status_t pestle_parse_op_name(pestle_parser_t* p,
                                     const pestle_token_t* at,
                                     pestle_op_t* out_op) {
  pestle_str_t name = at->text;
  if (pestle_str_equal_c(name, "call")) name = PESTLE_STR("func.call");
  if (pestle_str_equal_c(name, "return")) name = PESTLE_STR("func.return");
  const pestle_map_value_t* found = pestle_map_find_str(&p->ops, name);
  if (!found || found->u64 >= PESTLE_OP_COUNT) {
    return pestle_parse_error(
        p, at, PESTLE_STATUS_UNSUPPORTED, "operation '%.*s' is not supported",
        name.size > 100 ? 100 : (int)name.size, name.data);
  }
  *out_op = (pestle_op_t)found->u64;
  return NULL;
}

// The names before '=', each with how many results it stands for.
typedef struct result_names_t {
  pestle_token_t* names;
  int64_t* counts;
  size_t count, name_capacity, count_capacity;
} result_names_t;

static pestle_status_t read_result_names(pestle_parser_t* p,
                                         result_names_t* r) {
  if (!pestle_parse_at_kind(p, PESTLE_TOKEN_VALUE)) return NULL;
  do {
    PESTLE_TRY(pestle_parse_grow(p, &r->names, r->count, &r->name_capacity,
                                 sizeof(*r->names)));
    PESTLE_TRY(pestle_parse_grow(p, &r->counts, r->count, &r->count_capacity,
                                 sizeof(*r->counts)));
    if (!pestle_parse_at_kind(p, PESTLE_TOKEN_VALUE)) {
      return pestle_parse_expected(p, "a value such as %0");
    }
    r->names[r->count] = *pestle_parse_token(p);
    r->counts[r->count] = 1;
    pestle_parse_advance(p);
    if (pestle_parse_take(p, ':')) {
      PESTLE_TRY(pestle_parse_integer(p, &r->counts[r->count]));
    }
    ++r->count;
  } while (pestle_parse_take(p, ','));
  return pestle_parse_expect(p, '=');
}

// Of results some of which are tuples or tokens.
static pestle_status_t bind_nested(pestle_parser_t* p,
                                   const pestle_parse_op_t* o,
                                   const result_names_t* r,
                                   pestle_node_t* node) {
  const pestle_parse_types_t* types = &o->result_types;
  size_t next = 0, leaf = 0;
  pestle_value_t** leaves =
      PESTLE_ARENA_ARRAY(&p->scratch, pestle_value_t*, node->result_count + 1);
  if (!leaves) return PESTLE_OOM();
  for (uint32_t i = 0; i < node->result_count; ++i)
    leaves[i] = &node->results[i];
  for (size_t i = 0; i < r->count; ++i) {
    size_t count = (size_t)r->counts[i];
    if (r->counts[i] <= 0 || count > types->form_count - next) {
      return pestle_parse_error(
          p, &o->at, PESTLE_STATUS_MALFORMED,
          "'%s' has %zu results, not as many as are named",
          pestle_op_info(o->g.op)->mlir, types->form_count);
    }
    PESTLE_TRY(pestle_parse_bind_forms(p, &r->names[i], r->names[i].text,
                                       leaves + leaf, types->forms + next,
                                       count));
    for (size_t k = 0; k < count; ++k)
      leaf += types->forms[next++].leaves;
  }
  return NULL;
}

static pestle_status_t bind_results(pestle_parser_t* p,
                                    const pestle_parse_op_t* o,
                                    const result_names_t* r,
                                    pestle_node_t* node) {
  uint32_t next = 0;
  if (o->result_types.nested) return bind_nested(p, o, r, node);
  for (size_t i = 0; i < r->count; ++i) {
    int64_t count = r->counts[i];
    if (count <= 0 || count > node->result_count - next) {
      next = UINT32_MAX;
      break;
    }
    PESTLE_TRY(pestle_parse_bind(p, &r->names[i], r->names[i].text,
                                 &node->results[next], (size_t)count));
    next += (uint32_t)count;
  }
  if (next != node->result_count && r->count) {
    return pestle_parse_error(p, &o->at, PESTLE_STATUS_MALFORMED,
                              "'%s' has %u results, not as many as are named",
                              pestle_op_info(o->g.op)->mlir,
                              node->result_count);
  }
  if (r->count != 1 || !pestle_text_is_wish(r->names[0].text)) return NULL;
  char* name = pestle_arena_strndup(&p->scratch, r->names[0].text);
  if (!name) return PESTLE_OOM();
  node->results[0].name = pestle_module_intern_string(p->module, name);
  return node->results[0].name ? NULL : PESTLE_OOM();
}

// --- Ops ---

static pestle_status_t check_return(pestle_parser_t* p,
                                    const pestle_parse_op_t* o,
                                    const pestle_function_t* function) {
  size_t count;
  if (!function || !pestle_function_result_count(function, &count)) return NULL;
  if (o->operand_count != count) {
    return pestle_parse_error(p, &o->at, PESTLE_STATUS_MALFORMED,
                              "returns %zu values from a function of %zu "
                              "results",
                              o->operand_count, count);
  }
  for (size_t i = 0; i < count; ++i) {
    const pestle_type_t* want = pestle_function_result_type(function, i);
    if (pestle_type_equal(want, o->operands[i]->type)) continue;
    if (pestle_types_agree(want, o->operands[i]->type)) {
      // Another reading knows all extents; types are what follows from them then.
      p->shapes.wanted = o->operands[i];
      if (p->again) continue;
    }
    return type_mismatch(p, o, "operand", i, want, o->operands[i]->type);
  }
  return NULL;
}

static pestle_status_t begin_op(pestle_parser_t* p, pestle_parse_op_t* o) {
  const pestle_map_value_t* found = pestle_map_find_str(&p->ops, o->at.text);
  if (!found || found->u64 < PESTLE_OP_COUNT) {
    return pestle_parse_op_name(p, &o->at, &o->g.op);
  }
  o->g.op = PESTLE_OP_CUSTOM;
  o->g.built = pestle_built_row(found->u64 - PESTLE_OP_COUNT);
  return NULL;
}

// The CUSTOM that |*node| stands for, if |o| is an op of CHLO.
static pestle_status_t name_chlo(pestle_parser_t* p, const pestle_parse_op_t* o,
                                 pestle_node_t** node) {
  pestle_generic_site_t site = {.arena = o->g.arena,
                                .name = o->at.text,
                                .operands = o->operands,
                                .operand_count = o->operand_count};
  return pestle_parse_placed(p, o, pestle_generic_chlo(&site, node));
}

// A call, or a composite, where extents are not known: its body takes its place.
static pestle_status_t inline_call(pestle_parser_t* p, pestle_parse_op_t* o,
                                   const char* callee,
                                   const result_names_t* names) {
  pestle_value_t** values;
  size_t count;
  PESTLE_TRY(pestle_parse_check_operands(p, o));
  PESTLE_TRY(pestle_parse_inline(p, o, callee, &values, &count));
  PESTLE_TRY(pestle_parse_bind_values(p, o, names->names, names->counts,
                                      names->count, values, count));
  return pestle_parse_skip_loc(p);
}

static bool is_quantised(const pestle_parse_op_t* o) {
  if (!o->operand_types.quantised && !o->result_types.quantised) return false;
  return o->operand_types.count == o->operand_count &&
         pestle_quant_needs(&o->g, o->operand_types.quants, o->operand_count,
                            o->result_types.quants, o->result_types.count);
}

static const char* inlined_callee(const pestle_parser_t* p,
                                  const pestle_parse_op_t* o) {
  if (!p->again) return NULL;
  if (o->g.op == PESTLE_OP_CUSTOM) return o->g.decomposition;
  for (size_t i = 0; o->g.op == PESTLE_OP_CALL && i < o->g.attr_count; ++i) {
    if (o->g.attrs[i].name == PESTLE_ATTR_callee) return o->g.attrs[i].as.str;
  }
  return NULL;
}

static pestle_status_t take_return(pestle_parser_t* p,
                                   const pestle_parse_op_t* o,
                                   pestle_parse_return_t* end) {
  if (end->any) {
    end->count = o->operand_count;
    end->values = PESTLE_ARENA_ARRAY(&p->kept, pestle_value_t*, end->count + 1);
    if (!end->values) return PESTLE_OOM();
  }
  if (o->operand_count != end->count) {
    return pestle_parse_error(p, &o->at, PESTLE_STATUS_MALFORMED,
                              "returns %zu values from a function of %zu "
                              "results",
                              o->operand_count, end->count);
  }
  for (size_t i = 0; i < end->count; ++i)
    end->values[i] = o->operands[i];
  end->seen = true;
  return pestle_parse_skip_loc(p);
}

// What is read with the extents of its operands has all of its own, and small
// numbers are evaluated at once.
static pestle_status_t settle(pestle_parser_t* p, pestle_parse_op_t* o,
                              pestle_node_t** node) {
  for (uint32_t i = 0; i < (*node)->result_count; ++i) {
    if (pestle_type_is_static((*node)->results[i].type)) continue;
    return pestle_parse_error(p, &o->at, PESTLE_STATUS_UNSUPPORTED,
                              "the shape of result %u does not follow from the "
                              "shapes of the arguments",
                              (unsigned)i);
  }
  if ((*node)->result_count != 1) return NULL;
  pestle_value_t* value = &(*node)->results[0];
  PESTLE_TRY(pestle_fold_value(o->builder, &value));
  value->node->loc = (*node)->loc;
  *node = value->node;
  return NULL;
}

pestle_status_t pestle_parse_one(pestle_parser_t* p, pestle_builder_t* builder,
                                 const pestle_function_t* function,
                                 pestle_parse_return_t* end) {
  result_names_t names = {0};
  pestle_parse_op_t o = {.g = {.arena = &p->scratch, .shapes = &p->shapes},
                         .builder = builder};
  pestle_node_t* node = NULL;
  PESTLE_TRY(read_result_names(p, &names));
  o.at = *pestle_parse_token(p);
  bool generic = o.at.kind == PESTLE_TOKEN_STRING;
  if (!generic && o.at.kind != PESTLE_TOKEN_WORD) {
    return pestle_parse_expected(p, "an operation");
  }
  PESTLE_TRY(begin_op(p, &o));
  pestle_parse_advance(p);
  if (pestle_str_equal_c(o.at.text, "chlo.top_k")) {
    PESTLE_TRY(pestle_parse_top_k(p, &o, generic, &node));
    PESTLE_TRY(bind_results(p, &o, &names, node));
    return pestle_parse_node_loc(p, node);
  }
  if (pestle_str_equal_c(o.at.text, "chlo.ragged_dot")) {
    if (!generic)
      return pestle_parse_expected(p, "its generic form, in quotes");
    PESTLE_TRY(pestle_parse_ragged_dot(p, &o, &node));
    PESTLE_TRY(bind_results(p, &o, &names, node));
    return pestle_parse_node_loc(p, node);
  }
  if (pestle_parse_is_computation(o.at.text)) {
    pestle_parse_return_t inner;
    PESTLE_TRY(pestle_parse_computation(p, &o, generic, &inner));
    PESTLE_TRY(pestle_parse_bind_values(p, &o, names.names, names.counts,
                                        names.count, inner.values,
                                        inner.count));
    return pestle_parse_skip_loc(p);
  }
  if (pestle_parse_is_tuple(o.at.text)) {
    bool one = names.count == 1 && names.counts[0] == 1;
    if (names.count && !one) return pestle_parse_expected(p, "one result");
    return pestle_parse_tuple(p, &o, generic, one ? names.names : NULL);
  }
  PESTLE_TRY(generic ? pestle_parse_generic(p, &o)
                     : pestle_parse_pretty(p, &o));
  if (is_quantised(&o) || pestle_generic_is_built(&o.g)) {
    PESTLE_TRY(pestle_parse_check_operands(p, &o));
    return pestle_parse_built(p, &o, names.names, names.counts, names.count);
  }
  const char* callee = inlined_callee(p, &o);
  if (callee) return inline_call(p, &o, callee, &names);
  if (o.g.op == PESTLE_OP_RETURN && end) return take_return(p, &o, end);
  if (o.g.op == PESTLE_OP_RETURN) PESTLE_TRY(check_return(p, &o, function));
  PESTLE_TRY(pestle_parse_finish(p, &o, &node));
  PESTLE_TRY(name_chlo(p, &o, &node));
  PESTLE_TRY(pestle_parse_placed(p, &o, pestle_generic_layouts(&o.g, &node)));
  if (p->again) PESTLE_TRY(settle(p, &o, &node));
  PESTLE_TRY(bind_results(p, &o, &names, node));
  return pestle_parse_node_loc(p, node);
}

pestle_status_t pestle_parse_ops(pestle_parser_t* p, pestle_block_t* block,
                                 const pestle_function_t* function) {
  pestle_builder_t builder = {.module = p->module, .block = block};
  PESTLE_TRY(pestle_parse_enter(p));
  while (!pestle_parse_at(p, '}')) {
    if (block->last && block->last->op == PESTLE_OP_RETURN) {
      return pestle_parse_expected(p, "'}' after the return");
    }
    pestle_arena_mark_t mark = pestle_arena_mark(&p->scratch);
    PESTLE_TRY(pestle_parse_one(p, &builder, function, NULL));
    pestle_arena_rewind(&p->scratch, mark);
  }
  if (!block->last || block->last->op != PESTLE_OP_RETURN) {
    return pestle_parse_expected(p, "a return before the end of the region");
  }
  pestle_parse_leave(p);
  pestle_parse_advance(p);
  return NULL;
}

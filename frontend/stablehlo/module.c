// SPDX-License-Identifier: Apache-2.0
// The module and its functions: what they take, return and are called, and what
// dialects say of them.
#include "frontend/stablehlo/build.h"

#include <string.h>

#include "base/mem.h"
#include "ir/sharding.h"

typedef pestle_generic_value_t value_t;

// --- What dialects say ---

// Gives each entry of |dict|, which is a copy, its text.
static pestle_status_t write_texts(pestle_bytecode_builder_t* b,
                                   value_t* dict) {
  for (pestle_generic_entry_t* e = dict->entries; e; e = e->next) {
    bool has_dot = pestle_str_find_char(e->key, '.') != SIZE_MAX;
    if (!has_dot || e->value.whole.size) continue;
    PESTLE_TRY(pestle_bytecode_attribute_text(&b->decoder, &e->value,
                                              &e->value.whole));
  }
  return NULL;
}

// An entry for each of |count| tensors; |list| has a dictionary for each of
// |type_count| |types|, or is missing or empty.
static pestle_status_t read_ports(pestle_bytecode_builder_t* b,
                                  const value_t* list,
                                  const pestle_bytecode_type_t* const* types,
                                  size_t type_count, size_t count,
                                  pestle_generic_port_t** out) {
  pestle_generic_port_t* ports = pestle_arena_alloc_zero(
      &b->kept, (count + 1) * sizeof(*ports), _Alignof(pestle_generic_port_t));
  if (!ports) return PESTLE_OOM();
  *out = ports;
  pestle_generic_entry_t* e =
      list && list->kind == PESTLE_GENERIC_LIST ? list->entries : NULL;
  for (size_t i = 0; e && i < type_count; e = e->next, ++i) {
    // What is said of a tuple is said of no tensor.
    if (types[i]->kind == PESTLE_BYTECODE_TENSOR &&
        e->value.kind == PESTLE_GENERIC_DICT) {
      PESTLE_TRY(write_texts(b, &e->value));
      PESTLE_TRY(pestle_generic_port(&b->kept, &e->value, ports));
    }
    ports += types[i]->leaves;
  }
  return NULL;
}

// --- Functions ---

typedef struct signature_t {
  const char* name;
  bool is_private;
  const pestle_bytecode_type_t* type;
  pestle_type_t *inputs, *results;
  size_t input_count, result_count;
  pestle_generic_port_t *input_ports, *result_ports;
  pestle_dialect_attrs_t attrs;
} signature_t;

static pestle_status_t read_types(pestle_bytecode_builder_t* b,
                                  const pestle_bytecode_type_t* const* types,
                                  size_t count, pestle_type_t** out,
                                  size_t* out_count) {
  *out_count = 0;
  for (size_t i = 0; i < count; ++i) {
    PESTLE_TRY(pestle_bytecode_check_value_type(types[i]));
    PESTLE_TRY(pestle_bytecode_use_type(&b->decoder, types[i]));
    *out_count += types[i]->leaves;
  }
  pestle_type_t* at =
      PESTLE_ARENA_ARRAY(&b->kept, pestle_type_t, *out_count + 1);
  if (!at) return PESTLE_OOM();
  *out = at;
  for (size_t i = 0; i < count; ++i)
    pestle_bytecode_type_leaves(types[i], &at);
  return NULL;
}

static pestle_status_t read_signature(pestle_bytecode_builder_t* b,
                                      value_t* dict, signature_t* s) {
  const value_t* name = pestle_generic_find(dict, "sym_name");
  const value_t* type = pestle_generic_find(dict, "function_type");
  const value_t* seen = pestle_generic_find(dict, "sym_visibility");
  if (!name || name->kind != PESTLE_GENERIC_STRING || !name->text.size ||
      !type || type->kind != PESTLE_GENERIC_FUNCTION) {
    return PESTLE_ERROR(MALFORMED,
                        "expected attributes 'sym_name' and 'function_type'");
  }
  s->name = name->text.data;
  s->is_private =
      seen && seen->text.size && !pestle_str_equal_c(seen->text, "public");
  PESTLE_TRY(pestle_bytecode_type(&b->decoder, (uint32_t)type->i64, &s->type));
  const pestle_bytecode_type_t* const* types = s->type->parts;
  size_t inputs = s->type->input_count;
  size_t results = s->type->part_count - inputs;
  PESTLE_TRY(read_types(b, types, inputs, &s->inputs, &s->input_count));
  PESTLE_TRY(
      read_types(b, types + inputs, results, &s->results, &s->result_count));
  PESTLE_TRY(read_ports(b, pestle_generic_find(dict, "arg_attrs"), types,
                        inputs, s->input_count, &s->input_ports));
  PESTLE_TRY(read_ports(b, pestle_generic_find(dict, "res_attrs"),
                        types + inputs, results, s->result_count,
                        &s->result_ports));
  PESTLE_TRY(write_texts(b, dict));
  return pestle_generic_kept(&b->kept, dict, &s->attrs);
}

// Notes where tokens stand among |types|.
static pestle_status_t set_tokens(pestle_bytecode_builder_t* b,
                                  pestle_function_t* function, bool of_results,
                                  const pestle_bytecode_type_t* const* types,
                                  size_t type_count) {
  size_t count = 0;
  uint32_t* positions = PESTLE_ARENA_ARRAY(&b->kept, uint32_t, type_count + 1);
  if (!positions) return PESTLE_OOM();
  for (size_t i = 0; i < type_count; ++i) {
    if (types[i]->kind == PESTLE_BYTECODE_TUPLE && !types[i]->part_count)
      positions[count++] = (uint32_t)i;
  }
  return pestle_function_set_tokens(function, of_results, positions, count);
}

static pestle_status_t add_function(pestle_bytecode_builder_t* b,
                                    const signature_t* s,
                                    pestle_function_t** out) {
  const char** names =
      PESTLE_ARENA_ARRAY(&b->kept, const char*, s->input_count + 1);
  if (!names) return PESTLE_OOM();
  for (size_t i = 0; i < s->input_count; ++i)
    names[i] = s->input_ports[i].name;
  const pestle_type_t* inputs = s->inputs;
  bool given = b->again && !strcmp(s->name, b->again->entry) &&
               b->again->count == s->input_count;
  if (given) inputs = b->again->types;
  PESTLE_TRY(pestle_module_add_function(b->module, s->name, inputs, names,
                                        s->input_count, out));
  (*out)->is_private = s->is_private;
  PESTLE_TRY(set_tokens(b, *out, false, s->type->parts, s->type->input_count));
  PESTLE_TRY(set_tokens(b, *out, true, s->type->parts + s->type->input_count,
                        s->type->part_count - s->type->input_count));
  // Of given arguments the results follow.
  if (!given) {
    PESTLE_TRY(
        pestle_function_declare_results(*out, s->results, s->result_count));
  }
  PESTLE_TRY(
      pestle_function_set_dialect_attrs(*out, s->attrs.data, s->attrs.count));
  return pestle_generic_set_ports(*out, s->input_ports, s->input_count,
                                  s->result_ports, s->result_count);
}

static pestle_status_t declare_function(pestle_bytecode_builder_t* b,
                                        const pestle_bytecode_op_t* op) {
  value_t dict;
  signature_t s = {.name = NULL};
  pestle_bytecode_body_t body = {.op = op};
  PESTLE_TRY(pestle_bytecode_op_attributes(
      &b->decoder, &b->kept, b->names[op->name].form, op->properties,
      op->attributes, &dict));
  PESTLE_TRY(read_signature(b, &dict, &s));
  if (op->region_count != 1 || op->regions->is_empty) {
    return PESTLE_ERROR(UNSUPPORTED, "function '%.60s' has no body", s.name);
  }
  PESTLE_TRY(add_function(b, &s, &body.function));
  return pestle_vec_push(&b->bodies, body) ? NULL : PESTLE_OOM();
}

// --- The module ---

static pestle_status_t declare_module(pestle_bytecode_builder_t* b,
                                      const pestle_bytecode_op_t* op) {
  value_t dict;
  pestle_dialect_attrs_t attrs;
  PESTLE_TRY(pestle_bytecode_op_attributes(
      &b->decoder, &b->kept, b->names[op->name].form, op->properties,
      op->attributes, &dict));
  const value_t* name = pestle_generic_find(&dict, "sym_name");
  bool named = name && name->kind == PESTLE_GENERIC_STRING;
  PESTLE_TRY(pestle_module_create(b->decoder.context,
                                  named ? name->text.data : "", &b->module));
  PESTLE_TRY(write_texts(b, &dict));
  PESTLE_TRY(pestle_generic_kept(&b->kept, &dict, &attrs));
  return pestle_module_set_dialect_attrs(b->module, attrs.data, attrs.count);
}

// What leaves no trace outside of functions are meshes.
static pestle_status_t declare_mesh(pestle_bytecode_builder_t* b,
                                    const pestle_bytecode_op_t* op) {
  value_t dict;
  const pestle_bytecode_form_t* form = b->names[op->name].form;
  if (!form) return NULL;
  PESTLE_TRY(pestle_bytecode_op_attributes(
      &b->decoder, &b->kept, form, op->properties, op->attributes, &dict));
  const value_t* name = pestle_generic_find(&dict, "sym_name");
  const value_t* mesh = pestle_generic_find(&dict, "mesh");
  if (!name || name->kind != PESTLE_GENERIC_STRING || !mesh) return NULL;
  return pestle_module_add_mesh(b->module, name->text, mesh->whole);
}

pestle_status_t pestle_bytecode_declare(pestle_bytecode_builder_t* b,
                                        const pestle_bytecode_region_t* top) {
  const pestle_bytecode_op_t* module = top->ops;
  if (!module || module->next ||
      b->names[module->name].role != PESTLE_BYTECODE_MODULE ||
      module->region_count != 1) {
    return PESTLE_ERROR(MALFORMED, "%s: expected one module", b->name);
  }
  PESTLE_TRY(pestle_bytecode_place_error(b, module, declare_module(b, module)));
  const pestle_bytecode_op_t* op = module->regions->ops;
  for (; op; op = op->next) {
    pestle_bytecode_role_t role = b->names[op->name].role;
    if (role == PESTLE_BYTECODE_NOTHING) {
      PESTLE_TRY(pestle_bytecode_place_error(b, op, declare_mesh(b, op)));
      continue;
    }
    pestle_status_t status =
        role == PESTLE_BYTECODE_FUNC
            ? declare_function(b, op)
            : PESTLE_ERROR(UNSUPPORTED, "it stands outside of a function");
    PESTLE_TRY(pestle_bytecode_place_error(b, op, status));
  }
  return NULL;
}

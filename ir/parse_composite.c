// SPDX-License-Identifier: Apache-2.0
// stablehlo.composite, an op by name, and ops of the text that are read as one
// with a body that the parser makes.
#include "ir/parse_internal.h"

// --- Reading ---

pestle_status_t pestle_parse_composite(pestle_parser_t* p,
                                       pestle_parse_op_t* o) {
  pestle_str_t name;
  if (!pestle_parse_at_kind(p, PESTLE_TOKEN_STRING)) {
    return pestle_parse_expected(p, "the composite's name in quotes");
  }
  PESTLE_TRY(pestle_parse_string(p, &p->scratch, &name));
  pestle_attr_t a = {.name = PESTLE_ATTR_name, .kind = PESTLE_ATTR_KIND_STR};
  a.as.str = name.data;
  PESTLE_TRY(pestle_parse_push_attr(p, o, &a));
  PESTLE_TRY(pestle_parse_operands(p, o));
  return pestle_parse_types_after_dict(p, o);
}

pestle_status_t pestle_parse_note_composite(pestle_parser_t* p,
                                            const pestle_parse_op_t* o,
                                            pestle_node_t* node) {
  if (o->g.by_name) return NULL;
  pestle_generic_composite_t composite = {
      .node = node,
      .decomposition = pestle_arena_strdup(&p->kept, o->g.decomposition),
      .line = o->at.line,
      .column = o->at.column};
  return composite.decomposition && pestle_vec_push(&p->composites, composite)
             ? NULL
             : PESTLE_OOM();
}

pestle_status_t pestle_parse_attach_bodies(pestle_parser_t* p) {
  const pestle_generic_composite_t* at;
  pestle_status_t status = pestle_generic_attach_bodies(
      p->module, p->composites.data, p->composites.size, &at);
  if (!at) return status;
  pestle_token_t token = {.line = at->line, .column = at->column};
  return pestle_parse_place(p, &token, status);
}

// --- Ops of the text that have no row ---

pestle_status_t pestle_parse_wrap_begin(pestle_parser_t* p,
                                        const pestle_parse_op_t* o,
                                        pestle_parse_wrap_t* out_wrap) {
  size_t count = o->operand_count;
  pestle_type_t* types = PESTLE_ARENA_ARRAY(&p->scratch, pestle_type_t, count);
  if (!types) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i)
    types[i] = *o->operands[i]->type;
  *out_wrap = (pestle_parse_wrap_t){.inside = {.module = p->module}};
  PESTLE_TRY(pestle_region_create(p->module, types, count, &out_wrap->region,
                                  &out_wrap->inside.block));
  out_wrap->arguments = out_wrap->inside.block->arguments;
  return NULL;
}

pestle_status_t pestle_parse_wrap_end(pestle_parser_t* p,
                                      const pestle_parse_op_t* o,
                                      pestle_parse_wrap_t* wrap,
                                      pestle_str_t attributes,
                                      pestle_value_t* const* results,
                                      size_t count, pestle_node_t** out_node) {
  char* name = pestle_arena_strndup(&p->scratch, o->at.text);
  char* text = pestle_arena_strndup(&p->scratch, attributes);
  pestle_type_t* types = PESTLE_ARENA_ARRAY(&p->scratch, pestle_type_t, count);
  if (!name || !text || !types) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i)
    types[i] = *results[i]->type;
  PESTLE_TRY(pestle_op_return(&wrap->inside, results, count, NULL));
  pestle_attr_t attrs[] = {
      {PESTLE_ATTR_name, PESTLE_ATTR_KIND_STR, .as.str = name},
      {PESTLE_ATTR_version, PESTLE_ATTR_KIND_I64, .as.i64 = 1},
      {PESTLE_ATTR_attributes, PESTLE_ATTR_KIND_STR, .as.str = text}};
  pestle_node_spec_t spec = {.op = PESTLE_OP_CUSTOM,
                             .operands = o->operands,
                             .operand_count = o->operand_count,
                             .attrs = attrs,
                             .attr_count = 3,
                             .regions = &wrap->region,
                             .region_count = 1,
                             .types = types,
                             .type_count = count};
  pestle_builder_t b = *o->builder;
  b.loc = (pestle_loc_t){
      .file = p->file, .line = o->at.line, .column = o->at.column};
  return pestle_node_create(&b, &spec, out_node);
}

// SPDX-License-Identifier: Apache-2.0
// stablehlo.composite, an op by name.
#include "ir/parse_internal.h"

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
  if (!composite.decomposition) return PESTLE_OOM();
  return pestle_vec_push(&p->composites, composite) ? NULL : PESTLE_OOM();
}

pestle_status_t pestle_parse_attach_bodies(pestle_parser_t* p) {
  const pestle_generic_composite_t* at;
  pestle_status_t status = pestle_generic_attach_bodies(
      p->module, p->composites.data, p->composites.size, &at);
  if (!at) return status;
  pestle_token_t token = {.line = at->line, .column = at->column};
  return pestle_parse_place(p, &token, status);
}

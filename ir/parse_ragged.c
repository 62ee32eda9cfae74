// SPDX-License-Identifier: Apache-2.0
// The text of chlo.ragged_dot; what it means is in generic_ragged.c.
#include "ir/parse_internal.h"

// "(%a, %b, %sizes) <{..}> : (A, B, C) -> D"
static pestle_status_t read_text(pestle_parser_t* p, pestle_parse_op_t* o,
                                 pestle_generic_value_t* out_dict) {
  pestle_generic_value_t more;
  PESTLE_TRY(pestle_parse_expect(p, '('));
  PESTLE_TRY(pestle_parse_operands(p, o));
  PESTLE_TRY(pestle_parse_expect(p, ')'));
  bool properties = pestle_parse_take(p, '<');
  if (!pestle_parse_at(p, '{')) return pestle_parse_expected(p, "'{'");
  PESTLE_TRY(pestle_parse_dict(p, '}', out_dict));
  if (properties) PESTLE_TRY(pestle_parse_expect(p, '>'));
  if (properties && pestle_parse_at(p, '{')) {
    pestle_generic_entry_t** end = &out_dict->entries;
    PESTLE_TRY(pestle_parse_dict(p, '}', &more));
    while (*end)
      end = &(*end)->next;
    *end = more.entries;
  }
  PESTLE_TRY(pestle_parse_expect(p, ':'));
  return pestle_parse_function_type(p, &o->operand_types, &o->result_types);
}

pestle_status_t pestle_parse_ragged_dot(pestle_parser_t* p,
                                        pestle_parse_op_t* o,
                                        pestle_node_t** out) {
  pestle_generic_value_t dict;
  pestle_generic_site_t site;
  PESTLE_TRY(read_text(p, o, &dict));
  PESTLE_TRY(pestle_parse_site(p, o, &site));
  return pestle_parse_placed(p, o,
                             pestle_generic_ragged_dot(&site, &dict, out));
}

// SPDX-License-Identifier: Apache-2.0
// The text of chlo.top_k; what it means is in generic_top_k.c.
#include "ir/parse_internal.h"

// "(%x, k = 2) : A -> (B, C)", of a type that is not quantised
static pestle_status_t read_pretty(pestle_parser_t* p, pestle_parse_op_t* o,
                                   int64_t* out_k) {
  pestle_type_t type;
  PESTLE_TRY(pestle_parse_expect(p, '('));
  PESTLE_TRY(pestle_parse_push_operand(p, o));
  PESTLE_TRY(pestle_parse_expect(p, ','));
  PESTLE_TRY(pestle_parse_expect_word(p, "k"));
  PESTLE_TRY(pestle_parse_expect(p, '='));
  PESTLE_TRY(pestle_parse_integer(p, out_k));
  PESTLE_TRY(pestle_parse_expect(p, ')'));
  PESTLE_TRY(pestle_parse_expect(p, ':'));
  PESTLE_TRY(pestle_parse_type(p, &type));
  if (p->quant)
    return pestle_parse_expected(p, "a type that is not quantised before");
  PESTLE_TRY(pestle_parse_push_type(p, &o->operand_types, &type));
  PESTLE_TRY(pestle_parse_expect_arrow(p));
  PESTLE_TRY(pestle_parse_expect(p, '('));
  PESTLE_TRY(pestle_parse_type_list(p, &o->result_types));
  return pestle_parse_expect(p, ')');
}

// "(%x) <{k = 2 : i64}> : (A) -> (B, C)"
static pestle_status_t read_generic(pestle_parser_t* p, pestle_parse_op_t* o,
                                    int64_t* out_k) {
  pestle_generic_value_t dict;
  PESTLE_TRY(pestle_parse_expect(p, '('));
  PESTLE_TRY(pestle_parse_push_operand(p, o));
  PESTLE_TRY(pestle_parse_expect(p, ')'));
  bool properties = pestle_parse_take(p, '<');
  if (!pestle_parse_at(p, '{')) return pestle_parse_expected(p, "'{'");
  PESTLE_TRY(pestle_parse_dict(p, '}', &dict));
  if (properties) PESTLE_TRY(pestle_parse_expect(p, '>'));
  const pestle_generic_value_t* k = pestle_generic_find(&dict, "k");
  if (!k || k->kind != PESTLE_GENERIC_INT)
    return pestle_parse_expected(p, "attribute 'k' before");
  *out_k = k->i64;
  PESTLE_TRY(pestle_parse_expect(p, ':'));
  return pestle_parse_function_type(p, &o->operand_types, &o->result_types);
}

pestle_status_t pestle_parse_top_k(pestle_parser_t* p, pestle_parse_op_t* o,
                                   bool generic, pestle_node_t** out) {
  int64_t k;
  pestle_generic_site_t site;
  PESTLE_TRY(generic ? read_generic(p, o, &k) : read_pretty(p, o, &k));
  PESTLE_TRY(pestle_parse_site(p, o, &site));
  return pestle_parse_placed(p, o, pestle_generic_top_k(&site, k, out));
}

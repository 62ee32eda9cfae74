// SPDX-License-Identifier: Apache-2.0
// The generic form: what each op means by it is in generic.c.
#include "ir/parse_internal.h"
#include "ir/text.h"

// --- The form ---

// "(operands) <{..}> ({..}, {..}) {..} : (A) -> B"
pestle_status_t pestle_parse_generic(pestle_parser_t* p, pestle_parse_op_t* o) {
  pestle_generic_value_t dict;
  PESTLE_TRY(pestle_parse_expect(p, '('));
  PESTLE_TRY(pestle_parse_operands(p, o));
  PESTLE_TRY(pestle_parse_expect(p, ')'));
  if (pestle_parse_take(p, '<')) {
    if (!pestle_parse_at(p, '{')) return pestle_parse_expected(p, "'{'");
    PESTLE_TRY(pestle_parse_dict(p, '}', &dict));
    PESTLE_TRY(pestle_parse_apply_dict(p, o, &dict));
    PESTLE_TRY(pestle_parse_expect(p, '>'));
    o->g.lenient = true;  // what comes behind the regions
  }
  if (pestle_parse_take(p, '(')) {
    do {
      PESTLE_TRY(pestle_parse_region(p, o, NULL));
    } while (pestle_parse_take(p, ','));
    PESTLE_TRY(pestle_parse_expect(p, ')'));
  }
  if (pestle_parse_at(p, '{')) {
    PESTLE_TRY(pestle_parse_dict(p, '}', &dict));
    PESTLE_TRY(pestle_parse_apply_dict(p, o, &dict));
  }
  if (pestle_text_direction(o->g.op) && !o->g.directed) {
    return pestle_parse_expected(p, "attribute 'comparison_direction' before");
  }
  PESTLE_TRY(pestle_parse_expect(p, ':'));
  o->typed = true;
  return pestle_parse_function_type(p, &o->operand_types, &o->result_types);
}

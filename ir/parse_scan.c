// SPDX-License-Identifier: Apache-2.0
// The short form of chlo.scan; what it means is in built_scan.c.
#include "ir/parse_internal.h"

// "(%a, %b)", which may be empty.
static pestle_status_t read_list(pestle_parser_t* p, pestle_parse_op_t* o,
                                 int64_t* out_count) {
  size_t before = o->operand_count;
  PESTLE_TRY(pestle_parse_expect(p, '('));
  if (!pestle_parse_at(p, ')')) PESTLE_TRY(pestle_parse_operands(p, o));
  *out_count = (int64_t)(o->operand_count - before);
  return pestle_parse_expect(p, ')');
}

// "dimension=1", and how the operands are divided, as attributes.
static pestle_status_t set_numbers(pestle_parser_t* p, pestle_parse_op_t* o,
                                   int64_t dimension, const int64_t counts[2]) {
  pestle_generic_entry_t* e =
      PESTLE_ARENA_ARRAY(&p->scratch, pestle_generic_entry_t, 4);
  if (!e) return PESTLE_OOM();
  for (size_t i = 0; i < 2; ++i) {
    e[i] = (pestle_generic_entry_t){
        .value = {.kind = PESTLE_GENERIC_INT, .i64 = counts[i]},
        .next = i ? NULL : &e[1]};
  }
  e[2] = (pestle_generic_entry_t){
      .key = pestle_str("operandSegmentSizes"),
      .value = {.kind = PESTLE_GENERIC_LIST, .entries = e, .entry_count = 2},
      .next = &e[3]};
  e[3] = (pestle_generic_entry_t){
      .key = pestle_str("dimension"),
      .value = {.kind = PESTLE_GENERIC_INT, .i64 = dimension}};
  pestle_generic_value_t dict = {
      .kind = PESTLE_GENERIC_DICT, .entries = &e[2], .entry_count = 2};
  return pestle_parse_apply_dict(p, o, &dict);
}

// "(%x) inits (%c) dimension=1 attributes {..} {..} : (A, B) -> (A, B)"
pestle_status_t pestle_parse_scan_form(pestle_parser_t* p,
                                       pestle_parse_op_t* o) {
  int64_t counts[2], dimension;
  pestle_generic_value_t dict;
  PESTLE_TRY(read_list(p, o, &counts[0]));
  PESTLE_TRY(pestle_parse_expect_word(p, "inits"));
  PESTLE_TRY(read_list(p, o, &counts[1]));
  PESTLE_TRY(pestle_parse_expect_word(p, "dimension"));
  PESTLE_TRY(pestle_parse_expect(p, '='));
  PESTLE_TRY(pestle_parse_integer(p, &dimension));
  PESTLE_TRY(set_numbers(p, o, dimension, counts));
  if (pestle_parse_at_word(p, "attributes")) {
    pestle_parse_advance(p);
    if (!pestle_parse_at(p, '{')) return pestle_parse_expected(p, "'{'");
    o->g.lenient = true;
    PESTLE_TRY(pestle_parse_dict(p, '}', &dict));
    PESTLE_TRY(pestle_parse_apply_dict(p, o, &dict));
  }
  PESTLE_TRY(pestle_parse_region(p, o, NULL));
  PESTLE_TRY(pestle_parse_expect(p, ':'));
  o->typed = true;
  return pestle_parse_function_type(p, &o->operand_types, &o->result_types);
}

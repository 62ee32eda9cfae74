// SPDX-License-Identifier: Apache-2.0
// Pretty forms: those that a row of text.c describes, and those of one op.
#include <string.h>

#include "ir/parse_internal.h"
#include "ir/text.h"

static pestle_status_t push_i64s(pestle_parser_t* p, pestle_parse_op_t* o,
                                 pestle_attr_name_t name,
                                 pestle_i64s_t values) {
  pestle_attr_t a = {.name = (uint16_t)name, .kind = PESTLE_ATTR_KIND_I64S};
  a.as.i64s = values;
  return pestle_parse_push_attr(p, o, &a);
}

// "{..}" before the types, when it is there.
static pestle_status_t optional_dict(pestle_parser_t* p, pestle_parse_op_t* o) {
  pestle_generic_value_t dict;
  if (!pestle_parse_at(p, '{')) return NULL;
  PESTLE_TRY(pestle_parse_dict(p, '}', &dict));
  o->g.lenient = true;
  return pestle_parse_apply_dict(p, o, &dict);
}

pestle_status_t pestle_parse_types_after_dict(pestle_parser_t* p,
                                              pestle_parse_op_t* o) {
  PESTLE_TRY(optional_dict(p, o));
  return pestle_parse_op_types(p, o);
}

// --- Rows of text.c ---

static bool is_text(pestle_op_t op, uint16_t name) {
  size_t count;
  const pestle_attr_row_t* rows = pestle_op_attr_rows(op, &count);
  for (size_t i = 0; i < count; ++i) {
    if (rows[i].name == name) return rows[i].kind == PESTLE_ATTR_KIND_STR;
  }
  return false;
}

static pestle_status_t text_attr(pestle_parser_t* p, pestle_parse_op_t* o,
                                 pestle_attr_t* a) {
  if (!pestle_parse_at_kind(p, PESTLE_TOKEN_WORD)) {
    return pestle_parse_expected(p, "a word");
  }
  a->kind = PESTLE_ATTR_KIND_STR;
  a->as.str = pestle_arena_strndup(&p->scratch, pestle_parse_token(p)->text);
  if (!a->as.str) return PESTLE_OOM();
  pestle_parse_advance(p);
  return pestle_parse_push_attr(p, o, a);
}

// "keyword = 0", "keyword = WORD", "keyword = true" or "keyword = [0, 1]", for any keyword of
// |form|.
static pestle_status_t form_attr(pestle_parser_t* p, pestle_parse_op_t* o,
                                 const pestle_text_form_t* form) {
  for (size_t i = 0; i < form->attr_count; ++i) {
    if (!pestle_parse_take_word(p, form->attrs[i].keyword)) continue;
    PESTLE_TRY(pestle_parse_expect(p, '='));
    if (pestle_parse_at(p, '[')) {
      pestle_i64s_t values;
      PESTLE_TRY(pestle_parse_i64s(p, &values));
      return push_i64s(p, o, (pestle_attr_name_t)form->attrs[i].attr, values);
    }
    pestle_attr_t a = {.name = form->attrs[i].attr,
                       .kind = PESTLE_ATTR_KIND_I64};
    if (is_text(o->g.op, a.name)) return text_attr(p, o, &a);
    if (pestle_parse_at_kind(p, PESTLE_TOKEN_WORD)) {
      a.kind = PESTLE_ATTR_KIND_BOOL;
      a.as.b = pestle_parse_take_word(p, "true");
      if (!a.as.b) PESTLE_TRY(pestle_parse_expect_word(p, "false"));
    } else {
      PESTLE_TRY(pestle_parse_integer(p, &a.as.i64));
    }
    return pestle_parse_push_attr(p, o, &a);
  }
  return pestle_parse_expected(p, "a value or a keyword of the operation");
}

static pestle_status_t parse_form(pestle_parser_t* p, pestle_parse_op_t* o,
                                  const pestle_text_form_t* form) {
  bool first = true;
  while (!pestle_parse_at(p, ':') && !pestle_parse_at(p, '{')) {
    if (!first) PESTLE_TRY(pestle_parse_expect(p, ','));
    first = false;
    if (pestle_parse_at_kind(p, PESTLE_TOKEN_VALUE)) {
      PESTLE_TRY(pestle_parse_push_operand(p, o));
    } else {
      PESTLE_TRY(form_attr(p, o, form));
    }
  }
  return pestle_parse_types_after_dict(p, o);
}

// --- Forms that one op has ---

// "dense<1> : tensor<4xi8>", or "() <{value = dense<1> : tensor<4xi8>}> : () -> T" of a
// type that is not that of the data, a quantised one.
static pestle_status_t parse_constant(pestle_parser_t* p,
                                      pestle_parse_op_t* o) {
  if (pestle_parse_at(p, '(')) return pestle_parse_generic(p, o);
  pestle_elements_t* elements =
      PESTLE_ARENA_NEW(&p->scratch, pestle_elements_t);
  if (!elements) return PESTLE_OOM();
  PESTLE_TRY(optional_dict(p, o));
  pestle_generic_value_t value;
  pestle_token_t at = *pestle_parse_token(p);
  PESTLE_TRY(pestle_parse_value(p, &value));
  if (value.kind != PESTLE_GENERIC_ELEMENTS) {
    return pestle_parse_error(p, &at, PESTLE_STATUS_MALFORMED,
                              "expected dense<..>");
  }
  *elements = value.elements;
  pestle_attr_t a = {.name = PESTLE_ATTR_value,
                     .kind = PESTLE_ATTR_KIND_ELEMENTS};
  a.as.elements = elements;
  PESTLE_TRY(pestle_parse_push_attr(p, o, &a));
  return pestle_parse_push_quant(p, &o->result_types, &elements->type,
                                 p->quant);
}

// "%0 [0:4, 1:3:2]"
static pestle_status_t parse_slice(pestle_parser_t* p, pestle_parse_op_t* o) {
  int64_t* starts =
      PESTLE_ARENA_ARRAY(&p->scratch, int64_t, 3 * PESTLE_MAX_RANK);
  if (!starts) return PESTLE_OOM();
  int64_t* limits = starts + PESTLE_MAX_RANK;
  int64_t* steps = limits + PESTLE_MAX_RANK;
  size_t n = 0;
  PESTLE_TRY(pestle_parse_push_operand(p, o));
  PESTLE_TRY(pestle_parse_expect(p, '['));
  while (!pestle_parse_at(p, ']')) {
    if (n) PESTLE_TRY(pestle_parse_expect(p, ','));
    if (n == PESTLE_MAX_RANK) return pestle_parse_expected(p, "']'");
    PESTLE_TRY(pestle_parse_integer(p, &starts[n]));
    PESTLE_TRY(pestle_parse_expect(p, ':'));
    PESTLE_TRY(pestle_parse_integer(p, &limits[n]));
    steps[n] = 1;
    if (pestle_parse_take(p, ':')) {
      PESTLE_TRY(pestle_parse_integer(p, &steps[n]));
    }
    ++n;
  }
  pestle_parse_advance(p);
  PESTLE_TRY(
      push_i64s(p, o, PESTLE_ATTR_start_indices, (pestle_i64s_t){starts, n}));
  PESTLE_TRY(
      push_i64s(p, o, PESTLE_ATTR_limit_indices, (pestle_i64s_t){limits, n}));
  PESTLE_TRY(push_i64s(p, o, PESTLE_ATTR_strides, (pestle_i64s_t){steps, n}));
  return pestle_parse_types_after_dict(p, o);
}

// "LT, %a, %b, FLOAT"
static pestle_status_t parse_compare(pestle_parser_t* p, pestle_parse_op_t* o) {
  pestle_token_t direction = *pestle_parse_token(p);
  PESTLE_TRY(pestle_parse_place(p, &direction,
                                pestle_generic_direct(&o->g, direction.text)));
  pestle_parse_advance(p);
  PESTLE_TRY(pestle_parse_expect(p, ','));
  PESTLE_TRY(pestle_parse_push_operand(p, o));
  PESTLE_TRY(pestle_parse_expect(p, ','));
  PESTLE_TRY(pestle_parse_push_operand(p, o));
  if (pestle_parse_take(p, ',')) {
    pestle_token_t type = *pestle_parse_token(p);
    PESTLE_TRY(pestle_parse_place(p, &type,
                                  pestle_generic_compare_as(&o->g, type.text)));
    pestle_parse_advance(p);
  }
  return pestle_parse_types_after_dict(p, o);
}

// "batching_dims = [0] x [0]", and "contracting_dims" likewise.
static pestle_status_t parse_axes_pair(pestle_parser_t* p, pestle_parse_op_t* o,
                                       pestle_attr_name_t left,
                                       pestle_attr_name_t right) {
  pestle_i64s_t values;
  PESTLE_TRY(pestle_parse_expect(p, '='));
  PESTLE_TRY(pestle_parse_i64s(p, &values));
  PESTLE_TRY(push_i64s(p, o, left, values));
  PESTLE_TRY(pestle_parse_expect_word(p, "x"));
  PESTLE_TRY(pestle_parse_i64s(p, &values));
  return push_i64s(p, o, right, values);
}

// "algorithm = <lhs_precision_type = bf16, .., accumulation_type = f32, ..>"
static pestle_status_t parse_algorithm(pestle_parser_t* p,
                                       pestle_parse_op_t* o) {
  pestle_parse_advance(p);
  PESTLE_TRY(pestle_parse_expect(p, '='));
  pestle_generic_value_t* value =
      PESTLE_ARENA_NEW(&p->scratch, pestle_generic_value_t);
  if (!value) return PESTLE_OOM();
  if (!pestle_parse_at(p, '<')) return pestle_parse_expected(p, "'<'");
  PESTLE_TRY(pestle_parse_dict(p, '>', value));
  o->g.algorithm = value;
  return NULL;
}

static pestle_status_t parse_dot(pestle_parser_t* p, pestle_parse_op_t* o) {
  PESTLE_TRY(pestle_parse_push_operand(p, o));
  PESTLE_TRY(pestle_parse_expect(p, ','));
  PESTLE_TRY(pestle_parse_push_operand(p, o));
  while (pestle_parse_take(p, ',')) {
    if (pestle_parse_take_word(p, "batching_dims")) {
      PESTLE_TRY(parse_axes_pair(p, o, PESTLE_ATTR_lhs_batching_dimensions,
                                 PESTLE_ATTR_rhs_batching_dimensions));
    } else if (pestle_parse_take_word(p, "contracting_dims")) {
      PESTLE_TRY(parse_axes_pair(p, o, PESTLE_ATTR_lhs_contracting_dimensions,
                                 PESTLE_ATTR_rhs_contracting_dimensions));
    } else if (pestle_parse_take_word(p, "precision")) {
      pestle_generic_value_t list;
      PESTLE_TRY(pestle_parse_expect(p, '='));
      pestle_token_t at = *pestle_parse_token(p);
      PESTLE_TRY(pestle_parse_value(p, &list));
      PESTLE_TRY(pestle_parse_place(p, &at, pestle_generic_precision(&list)));
    } else if (pestle_parse_at_word(p, "algorithm")) {
      PESTLE_TRY(parse_algorithm(p, o));
    } else {
      return pestle_parse_expected(
          p, "batching_dims, contracting_dims, precision or algorithm");
    }
  }
  return pestle_parse_types_after_dict(p, o);
}

// "window = {stride = [..], pad = [[..]], ..}"
static pestle_status_t parse_window(pestle_parser_t* p, pestle_parse_op_t* o) {
  const pestle_text_field_t* fields = pestle_text_window;
  enum { FIELDS = PESTLE_TEXT_WINDOW_FIELDS };
  bool first = true;
  PESTLE_TRY(pestle_parse_expect(p, '{'));
  while (!pestle_parse_take(p, '}')) {
    if (!first) PESTLE_TRY(pestle_parse_expect(p, ','));
    first = false;
    size_t i = 0;
    while (i < FIELDS && !pestle_parse_take_word(p, fields[i].keyword))
      ++i;
    if (i == FIELDS) {
      return pestle_parse_expected(
          p, "stride, pad, lhs_dilate, rhs_dilate or reverse");
    }
    pestle_i64s_t values;
    PESTLE_TRY(pestle_parse_expect(p, '='));
    PESTLE_TRY(pestle_parse_i64s(p, &values));
    PESTLE_TRY(push_i64s(p, o, (pestle_attr_name_t)fields[i].attr, values));
  }
  return NULL;
}

static pestle_status_t parse_convolution(pestle_parser_t* p,
                                         pestle_parse_op_t* o) {
  pestle_generic_conv_t* conv =
      PESTLE_ARENA_NEW(&p->scratch, pestle_generic_conv_t);
  if (!conv) return PESTLE_OOM();
  PESTLE_TRY(pestle_parse_expect(p, '('));
  PESTLE_TRY(pestle_parse_operands(p, o));
  PESTLE_TRY(pestle_parse_expect(p, ')'));
  PESTLE_TRY(pestle_parse_expect_word(p, "dim_numbers"));
  PESTLE_TRY(pestle_parse_expect(p, '='));
  PESTLE_TRY(pestle_parse_conv_dims(p, conv));
  PESTLE_TRY(pestle_parse_placed(p, o, pestle_generic_push_conv(&o->g, conv)));
  if (pestle_parse_take(p, ',')) {
    PESTLE_TRY(pestle_parse_expect_word(p, "window"));
    PESTLE_TRY(pestle_parse_expect(p, '='));
    PESTLE_TRY(parse_window(p, o));
  }
  return pestle_parse_types_after_dict(p, o);
}

static pestle_status_t push_callee(pestle_parser_t* p, pestle_parse_op_t* o,
                                   pestle_str_t name) {
  pestle_attr_t a = {.name = PESTLE_ATTR_callee, .kind = PESTLE_ATTR_KIND_STR};
  a.as.str = name.data;
  return pestle_parse_push_attr(p, o, &a);
}

// "@f(%0, %1) {..}"
static pestle_status_t parse_custom_call(pestle_parser_t* p,
                                         pestle_parse_op_t* o) {
  pestle_attr_t a = {.name = PESTLE_ATTR_call_target_name,
                     .kind = PESTLE_ATTR_KIND_STR};
  pestle_str_t name;
  PESTLE_TRY(pestle_parse_symbol(p, &p->scratch, &name));
  a.as.str = name.data;
  PESTLE_TRY(pestle_parse_push_attr(p, o, &a));
  PESTLE_TRY(pestle_parse_expect(p, '('));
  PESTLE_TRY(pestle_parse_operands(p, o));
  PESTLE_TRY(pestle_parse_expect(p, ')'));
  return pestle_parse_types_after_dict(p, o);
}

// "@f(%0, %1)"
static pestle_status_t parse_call(pestle_parser_t* p, pestle_parse_op_t* o) {
  pestle_str_t name;
  PESTLE_TRY(pestle_parse_symbol(p, &p->scratch, &name));
  PESTLE_TRY(push_callee(p, o, name));
  PESTLE_TRY(pestle_parse_expect(p, '('));
  PESTLE_TRY(pestle_parse_operands(p, o));
  PESTLE_TRY(pestle_parse_expect(p, ')'));
  return pestle_parse_types_after_dict(p, o);
}

// "%a, format = e5m10"
static pestle_status_t parse_precision(pestle_parser_t* p,
                                       pestle_parse_op_t* o) {
  PESTLE_TRY(pestle_parse_push_operand(p, o));
  PESTLE_TRY(pestle_parse_expect(p, ','));
  PESTLE_TRY(pestle_parse_expect_word(p, "format"));
  PESTLE_TRY(pestle_parse_expect(p, '='));
  pestle_str_t word = pestle_parse_token(p)->text;
  int64_t bits[2] = {0, 0};
  size_t at = 0;
  bool right = pestle_parse_at_kind(p, PESTLE_TOKEN_WORD);
  for (int i = 0; i < 2 && right; ++i) {
    right = at + 1 < word.size && word.data[at] == "em"[i];
    for (++at; right && at < word.size && word.data[at] != 'm'; ++at) {
      right = word.data[at] >= '0' && word.data[at] <= '9' && bits[i] < 1000;
      bits[i] = bits[i] * 10 + (word.data[at] - '0');
    }
  }
  if (!right || at != word.size) {
    return pestle_parse_expected(p, "a format such as e5m10");
  }
  pestle_parse_advance(p);
  pestle_attr_t attrs[] = {{.name = PESTLE_ATTR_exponent_bits,
                            .kind = PESTLE_ATTR_KIND_I64,
                            .as.i64 = bits[0]},
                           {.name = PESTLE_ATTR_mantissa_bits,
                            .kind = PESTLE_ATTR_KIND_I64,
                            .as.i64 = bits[1]}};
  PESTLE_TRY(pestle_parse_push_attr(p, o, &attrs[0]));
  PESTLE_TRY(pestle_parse_push_attr(p, o, &attrs[1]));
  return pestle_parse_types_after_dict(p, o);
}

// "%a, %b : A, B", or nothing
static pestle_status_t parse_return(pestle_parser_t* p, pestle_parse_op_t* o) {
  PESTLE_TRY(pestle_parse_operands(p, o));
  return o->operand_count ? pestle_parse_types_after_dict(p, o) : NULL;
}

pestle_status_t pestle_parse_pretty(pestle_parser_t* p, pestle_parse_op_t* o) {
  if (pestle_str_equal_c(o->at.text, "chlo.scan")) {
    return pestle_parse_scan_form(p, o);
  }
  if (o->g.built) return pestle_parse_built_form(p, o);
  const pestle_text_form_t* form = pestle_text_form(o->g.op);
  // Comparisons share one name; the table gave the first of them.
  if (pestle_text_direction(o->g.op)) return parse_compare(p, o);
  if (form->types != PESTLE_TEXT_TYPES_NONE) return parse_form(p, o, form);
  if (o->g.op == PESTLE_OP_CONSTANT) return parse_constant(p, o);
  if (o->g.op == PESTLE_OP_SLICE) return parse_slice(p, o);
  if (o->g.op == PESTLE_OP_DOT_GENERAL) return parse_dot(p, o);
  if (o->g.op == PESTLE_OP_CONVOLUTION) return parse_convolution(p, o);
  if (o->g.op == PESTLE_OP_REDUCE_PRECISION) return parse_precision(p, o);
  if (o->g.op == PESTLE_OP_REDUCE) return pestle_parse_reduce(p, o);
  if (o->g.op == PESTLE_OP_WHILE) return pestle_parse_while(p, o);
  if (o->g.op == PESTLE_OP_CALL) return parse_call(p, o);
  if (o->g.op == PESTLE_OP_CUSTOM_CALL) return parse_custom_call(p, o);
  if (o->g.op == PESTLE_OP_CUSTOM) return pestle_parse_composite(p, o);
  if (o->g.op == PESTLE_OP_RETURN) return parse_return(p, o);
  return pestle_parse_error(p, &o->at, PESTLE_STATUS_MALFORMED,
                            "'%s' is written in the generic form, its name in "
                            "quotes",
                            pestle_op_info(o->g.op)->mlir);
}

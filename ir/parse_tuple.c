// SPDX-License-Identifier: Apache-2.0
// Ops that leave no node behind: tuples are taken apart as they are read, a token
// is a tuple of nothing.
#include "ir/infer.h"
#include "ir/parse_internal.h"

static const char* const names[] = {
    "stablehlo.tuple", "stablehlo.get_tuple_element", "stablehlo.after_all",
    "stablehlo.create_token", NULL};
enum { TUPLE, ELEMENT, AFTER_ALL, CREATE_TOKEN, NAMES };

const char* pestle_parse_tuple_name(size_t index) {
  return names[index];
}

static int which(pestle_str_t name) {
  int i = 0;
  while (i < NAMES && !pestle_str_equal_c(name, names[i]))
    ++i;
  return i;
}

bool pestle_parse_is_tuple(pestle_str_t name) {
  return which(name) < NAMES;
}

static pestle_status_t bad(pestle_parser_t* p, const pestle_parse_op_t* o) {
  return pestle_parse_error(p, &o->at, PESTLE_STATUS_MALFORMED,
                            "'%.*s' has other operands or another result than "
                            "its types say",
                            PESTLE_STR_ARG(o->at.text));
}

// --- Reading ---

// "{index = 0 : i32}"
static pestle_status_t read_dict(pestle_parser_t* p, int64_t* number) {
  pestle_generic_value_t dict;
  if (!pestle_parse_at(p, '{')) return NULL;
  PESTLE_TRY(pestle_parse_dict(p, '}', &dict));
  const pestle_generic_value_t* v = pestle_generic_find(&dict, "index");
  if (v && v->kind == PESTLE_GENERIC_INT) *number = v->i64;
  return NULL;
}

static pestle_status_t read_generic(pestle_parser_t* p, pestle_parse_op_t* o,
                                    int64_t* number) {
  PESTLE_TRY(pestle_parse_expect(p, '('));
  PESTLE_TRY(pestle_parse_operands(p, o));
  PESTLE_TRY(pestle_parse_expect(p, ')'));
  if (pestle_parse_take(p, '<')) {
    PESTLE_TRY(read_dict(p, number));
    PESTLE_TRY(pestle_parse_expect(p, '>'));
  }
  PESTLE_TRY(read_dict(p, number));
  PESTLE_TRY(pestle_parse_expect(p, ':'));
  return pestle_parse_function_type(p, &o->operand_types, &o->result_types);
}

// "%t[0]" or operands alone; then a function's type or that of the
// result.
static pestle_status_t read_pretty(pestle_parser_t* p, pestle_parse_op_t* o,
                                   int op, int64_t* number) {
  PESTLE_TRY(pestle_parse_operands(p, o));
  if (op == ELEMENT) {
    PESTLE_TRY(pestle_parse_expect(p, '['));
    PESTLE_TRY(pestle_parse_integer(p, number));
    PESTLE_TRY(pestle_parse_expect(p, ']'));
  }
  PESTLE_TRY(read_dict(p, number));
  PESTLE_TRY(pestle_parse_expect(p, ':'));
  if (!pestle_parse_at(p, '(')) {
    return pestle_parse_type_form(p, &o->result_types);
  }
  return pestle_parse_function_type(p, &o->operand_types, &o->result_types);
}

// --- What they give ---

// Whether |nest| is a tuple of what |forms| are.
static bool joins(const char* nest, const pestle_parse_form_t* forms,
                  size_t count) {
  if (*nest++ != '(') return false;
  for (size_t i = 0; i < count; ++i) {
    const char* part = forms[i].nest ? forms[i].nest : "t";
    size_t size = strlen(part);
    if (strncmp(nest, part, size)) return false;
    nest += size;
  }
  return !strcmp(nest, ")");
}

// Behind the value that begins at |nest|; its tensors are added to |*leaves|.
static const char* behind(const char* nest, size_t* leaves) {
  int depth = 0;
  do {
    depth += *nest == '(';
    depth -= *nest == ')';
    *leaves += *nest == 't';
    ++nest;
  } while (depth);
  return nest;
}

// Element |index| of |nest|, a tuple: where it begins and the tensors before it.
static const char* element(const char* nest, int64_t index, size_t* before) {
  ++nest;
  for (; index > 0 && *nest != ')'; --index)
    nest = behind(nest, before);
  return index || *nest == ')' ? NULL : nest;
}

static pestle_status_t take_element(pestle_parser_t* p, pestle_parse_op_t* o,
                                    int64_t index,
                                    pestle_value_t*** out_leaves) {
  const pestle_parse_form_t* want = &o->result_types.forms[0];
  size_t before = 0, leaves = 0;
  if (o->form_count != 1 || !o->forms[0].nest || index < 0) return bad(p, o);
  const char* at = element(o->forms[0].nest, index, &before);
  if (!at) {
    return pestle_parse_error(p, &o->at, PESTLE_STATUS_MALFORMED,
                              "the tuple has no element %lld",
                              (long long)index);
  }
  size_t size = (size_t)(behind(at, &leaves) - at);
  const char* nest = want->nest ? want->nest : "t";
  if (strlen(nest) != size || strncmp(nest, at, size)) return bad(p, o);
  *out_leaves = o->operands + before;
  return NULL;
}

pestle_status_t pestle_parse_tuple(pestle_parser_t* p, pestle_parse_op_t* o,
                                   bool generic, const pestle_token_t* name) {
  int op = which(o->at.text);
  int64_t number = -1;
  pestle_value_t** leaves = o->operands;
  PESTLE_TRY(generic ? read_generic(p, o, &number)
                     : read_pretty(p, o, op, &number));
  const pestle_parse_types_t* types = &o->result_types;
  if (types->form_count != 1) return bad(p, o);
  const char* nest = types->forms[0].nest;
  leaves = o->operands;
  if (op == ELEMENT) {
    PESTLE_TRY(take_element(p, o, number, &leaves));
  } else if (op == TUPLE) {
    if (!nest || !joins(nest, o->forms, o->form_count)) return bad(p, o);
  } else if (!nest || strcmp(nest, "()") || o->operand_count) {
    return bad(p, o);
  }
  for (size_t i = 0; i < types->count; ++i) {
    if (!pestle_types_agree(&types->data[i], leaves[i]->type)) {
      return bad(p, o);
    }
  }
  if (name) {
    PESTLE_TRY(
        pestle_parse_bind_forms(p, name, name->text, leaves, types->forms, 1));
  }
  return pestle_parse_skip_loc(p);
}

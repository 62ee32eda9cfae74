// SPDX-License-Identifier: Apache-2.0
// Attribute values, read into a tree without knowing which op they belong to.
#include "ir/parse_internal.h"

static pestle_status_t new_entry(pestle_parser_t* p,
                                 pestle_generic_value_t* owner,
                                 pestle_generic_entry_t*** tail,
                                 pestle_generic_entry_t** out_entry) {
  pestle_generic_entry_t* e =
      PESTLE_ARENA_NEW(&p->scratch, pestle_generic_entry_t);
  if (!e) return PESTLE_OOM();
  **tail = e;
  *tail = &e->next;
  ++owner->entry_count;
  *out_entry = e;
  return NULL;
}

// --- Lists and dictionaries ---

static pestle_status_t read_list(pestle_parser_t* p, char close,
                                 pestle_generic_value_t* out) {
  pestle_generic_entry_t** tail = &out->entries;
  pestle_generic_entry_t* e = NULL;
  out->kind = PESTLE_GENERIC_LIST;
  if (pestle_parse_take(p, close)) return NULL;
  do {
    PESTLE_TRY(new_entry(p, out, &tail, &e));
    PESTLE_TRY(pestle_parse_value(p, &e->value));
  } while (pestle_parse_take(p, ','));
  return pestle_parse_expect(p, close);
}

static pestle_status_t read_key(pestle_parser_t* p, pestle_str_t* out_key) {
  if (pestle_parse_at_kind(p, PESTLE_TOKEN_STRING)) {
    return pestle_parse_string(p, &p->scratch, out_key);
  }
  if (!pestle_parse_at_kind(p, PESTLE_TOKEN_WORD)) {
    return pestle_parse_expected(p, "an attribute's name");
  }
  *out_key = pestle_parse_token(p)->text;
  pestle_parse_advance(p);
  return NULL;
}

pestle_status_t pestle_parse_dict(pestle_parser_t* p, char close,
                                  pestle_generic_value_t* out_value) {
  pestle_token_t open = *pestle_parse_token(p);
  *out_value = (pestle_generic_value_t){
      .kind = PESTLE_GENERIC_DICT, .line = open.line, .column = open.column};
  pestle_generic_entry_t** tail = &out_value->entries;
  pestle_generic_entry_t* e = NULL;
  PESTLE_TRY(pestle_parse_enter(p));
  pestle_parse_advance(p);
  while (!pestle_parse_at(p, close)) {
    if (out_value->entry_count) PESTLE_TRY(pestle_parse_expect(p, ','));
    if (pestle_parse_at(p, close)) break;  // "a = 1, }"
    PESTLE_TRY(new_entry(p, out_value, &tail, &e));
    PESTLE_TRY(read_key(p, &e->key));
    if (pestle_parse_take(p, '=')) {
      PESTLE_TRY(pestle_parse_value(p, &e->value));
    }
  }
  pestle_parse_leave(p);
  if (close == '}') {
    const pestle_str_t* end = &pestle_parse_token(p)->whole;
    const char* begin = open.whole.data;
    out_value->text =
        pestle_str_make(begin, (size_t)(end->data + end->size - begin));
  }
  return pestle_parse_expect(p, close);
}

// --- Dimension numbers ---

// "[b, 0, 1, f]": where the two letters and the spatial axes stand.
static pestle_status_t read_side(pestle_parser_t* p, const char* first,
                                 const char* second,
                                 pestle_generic_conv_t* conv, int which) {
  int64_t axis = 0, number, seen = 0;
  conv->side[which].first = conv->side[which].second = -1;
  for (int i = 0; i < PESTLE_MAX_RANK; ++i)
    conv->side[which].space[i] = -1;
  pestle_token_t start = *pestle_parse_token(p);
  PESTLE_TRY(pestle_parse_expect(p, '['));
  do {
    if (pestle_parse_take_word(p, first)) {
      conv->side[which].first = axis;
    } else if (pestle_parse_take_word(p, second)) {
      conv->side[which].second = axis;
    } else {
      pestle_token_t t = *pestle_parse_token(p);
      PESTLE_TRY(pestle_parse_integer(p, &number));
      if (number < 0 || number >= PESTLE_MAX_RANK ||
          conv->side[which].space[number] >= 0) {
        return pestle_parse_error(p, &t, PESTLE_STATUS_MALFORMED,
                                  "spatial dimension %lld is out of range or "
                                  "named twice",
                                  (long long)number);
      }
      conv->side[which].space[number] = axis;
      ++seen;
    }
    ++axis;
  } while (pestle_parse_take(p, ','));
  conv->side[which].count = (size_t)seen;
  bool complete = conv->side[which].first >= 0 && conv->side[which].second >= 0;
  for (int64_t i = 0; i < seen; ++i) {
    complete &= conv->side[which].space[i] >= 0;
  }
  if (!complete) {
    return pestle_parse_error(p, &start, PESTLE_STATUS_MALFORMED,
                              "expected '%s', '%s' and each spatial dimension "
                              "once",
                              first, second);
  }
  return pestle_parse_expect(p, ']');
}

pestle_status_t pestle_parse_conv_dims(pestle_parser_t* p,
                                       pestle_generic_conv_t* out_conv) {
  PESTLE_TRY(read_side(p, "b", "f", out_conv, 0));
  PESTLE_TRY(pestle_parse_expect_word(p, "x"));
  PESTLE_TRY(read_side(p, "i", "o", out_conv, 1));
  PESTLE_TRY(pestle_parse_expect_arrow(p));
  return read_side(p, "b", "f", out_conv, 2);
}

// --- Dialect attributes ---

static pestle_status_t read_conv(pestle_parser_t* p,
                                 pestle_generic_value_t* out) {
  pestle_generic_conv_t* conv =
      PESTLE_ARENA_NEW(&p->scratch, pestle_generic_conv_t);
  if (!conv) return PESTLE_OOM();
  pestle_parse_advance(p);
  // "raw input_batch_dimension = 0, .." says by name what the others say by place.
  if (pestle_parse_at_word(p, "raw")) return pestle_parse_dict(p, '>', out);
  out->conv = conv;
  out->kind = PESTLE_GENERIC_CONV;
  PESTLE_TRY(pestle_parse_conv_dims(p, conv));
  return pestle_parse_expect(p, '>');
}

// #stablehlo.gather<key = value>, #stablehlo<kind WORD>, or anything else that
// no op needs, which is read over.
static pestle_status_t read_dialect(pestle_parser_t* p,
                                    pestle_generic_value_t* out) {
  pestle_token_t name = *pestle_parse_token(p);
  out->kind = PESTLE_GENERIC_OPAQUE;
  pestle_parse_advance(p);
  if (!pestle_parse_at(p, '<')) return NULL;
  if (pestle_str_equal_c(name.text, "stablehlo.conv")) {
    return read_conv(p, out);
  }
  pestle_lexer_t open = p->lexer;
  pestle_parse_advance(p);
  if (pestle_parse_at_kind(p, PESTLE_TOKEN_WORD)) {
    pestle_parse_advance(p);
    pestle_token_t second = *pestle_parse_token(p);
    if (second.sign == '=') {
      p->lexer = open;
      return pestle_parse_dict(p, '>', out);
    }
    pestle_parse_advance(p);
    if (second.kind == PESTLE_TOKEN_WORD && pestle_parse_take(p, '>')) {
      out->kind = PESTLE_GENERIC_WORD;
      out->text = second.text;
      return NULL;
    }
  } else if (pestle_parse_take(p, '>')) {
    out->kind = PESTLE_GENERIC_DICT;
    return NULL;
  }
  p->lexer = open;
  return pestle_parse_skip_brackets(p, true);
}

// array<i64: 1, 2>, array<i1>
static pestle_status_t read_array(pestle_parser_t* p,
                                  pestle_generic_value_t* out) {
  pestle_parse_advance(p);
  PESTLE_TRY(pestle_parse_expect(p, '<'));
  if (!pestle_parse_at_kind(p, PESTLE_TOKEN_WORD)) {
    return pestle_parse_expected(p, "an element type");
  }
  pestle_parse_advance(p);
  if (pestle_parse_take(p, ':')) return read_list(p, '>', out);
  out->kind = PESTLE_GENERIC_LIST;
  return pestle_parse_expect(p, '>');
}

// The type that may follow a number or string; it changes nothing here.
static pestle_status_t skip_type_suffix(pestle_parser_t* p) {
  if (!pestle_parse_take(p, ':')) return NULL;
  if (pestle_parse_at_word(p, "tensor")) {
    pestle_type_t type;
    return pestle_parse_type(p, &type);
  }
  if (!pestle_parse_at_kind(p, PESTLE_TOKEN_WORD) &&
      !pestle_parse_at_kind(p, PESTLE_TOKEN_BANG)) {
    return pestle_parse_expected(p, "a type");
  }
  pestle_parse_advance(p);
  if (pestle_parse_at(p, '<')) return pestle_parse_skip_brackets(p, true);
  return NULL;
}

static pestle_status_t read_number(pestle_parser_t* p,
                                   pestle_generic_value_t* out) {
  pestle_token_t t = *pestle_parse_token(p);
  bool is_int = t.kind == PESTLE_TOKEN_INT;
  out->kind = is_int ? PESTLE_GENERIC_INT : PESTLE_GENERIC_FLOAT;
  if (is_int) {
    PESTLE_TRY(pestle_parse_integer(p, &out->i64));
  } else {
    if (!pestle_str_parse_f64(t.text, &out->f64)) {
      return pestle_parse_error(p, &t, PESTLE_STATUS_MALFORMED,
                                "a number does not fit into f64");
    }
    pestle_parse_advance(p);
  }
  // 0x7FF0000000000000 : f64 is a float's bits.
  bool hex = is_int && t.text.size > 2 && t.text.data[1] == 'x';
  pestle_lexer_t here = p->lexer;
  if (hex && pestle_parse_take(p, ':') && pestle_parse_at_word(p, "f64")) {
    memcpy(&out->f64, &out->i64, sizeof(out->f64));
    out->kind = PESTLE_GENERIC_FLOAT;
  }
  p->lexer = here;
  // 0.1 : f32 is the f32 that is nearest.
  if (pestle_parse_take(p, ':') && pestle_parse_at_word(p, "f32"))
    out->f64 = (double)(float)out->f64;
  p->lexer = here;
  return skip_type_suffix(p);
}

static pestle_status_t read_word(pestle_parser_t* p,
                                 pestle_generic_value_t* out) {
  pestle_token_t at = *pestle_parse_token(p);
  if (pestle_parse_take_word(p, "true") || pestle_parse_take_word(p, "false")) {
    out->kind = PESTLE_GENERIC_BOOL;
    out->b = at.text.data[0] == 't';
    return NULL;
  }
  if (pestle_parse_at_word(p, "array")) return read_array(p, out);
  if (pestle_parse_at_word(p, "dense")) {
    out->kind = PESTLE_GENERIC_ELEMENTS;
    p->allows_index = true;
    pestle_status_t status = pestle_parse_dense(p, &out->elements);
    p->allows_index = false;
    return status;
  }
  if (pestle_parse_at_word(p, "tensor")) {
    out->kind = PESTLE_GENERIC_TYPE;
    return pestle_parse_type(p, &out->type);
  }
  bool elsewhere = pestle_parse_at_word(p, "dense_resource") ||
                   pestle_parse_at_word(p, "sparse") ||
                   pestle_parse_at_word(p, "dense_elided");
  if (elsewhere) {
    return pestle_parse_error(p, &at, PESTLE_STATUS_UNSUPPORTED,
                              "'%.*s' holds no data in the text",
                              PESTLE_STR_ARG(at.text));
  }
  // unit, i32, affine_map<..>, loc(..)
  out->kind = PESTLE_GENERIC_OPAQUE;
  out->text = at.text;
  pestle_parse_advance(p);
  if (pestle_parse_at(p, '<') || pestle_parse_at(p, '(')) {
    return pestle_parse_skip_brackets(p, true);
  }
  return NULL;
}

// "(2)4", a part of a mesh's axis: in front of it are parts of 2, and it has 4.
static pestle_status_t read_sub_axis(pestle_parser_t* p,
                                     pestle_generic_value_t* out) {
  pestle_generic_entry_t* e =
      PESTLE_ARENA_ARRAY(&p->scratch, pestle_generic_entry_t, 2);
  if (!e) return PESTLE_OOM();
  PESTLE_TRY(pestle_parse_expect(p, '('));
  PESTLE_TRY(pestle_parse_integer(p, &e[0].value.i64));
  PESTLE_TRY(pestle_parse_expect(p, ')'));
  PESTLE_TRY(pestle_parse_integer(p, &e[1].value.i64));
  e[0].key = PESTLE_STR("pre_size");
  e[1].key = PESTLE_STR("size");
  e[0].value.kind = e[1].value.kind = PESTLE_GENERIC_INT;
  e[0].next = &e[1];
  out->kind = PESTLE_GENERIC_DICT;
  out->entries = e;
  out->entry_count = 2;
  return NULL;
}

static bool is_sub_axis(pestle_parser_t* p) {
  pestle_lexer_t here = p->lexer;
  pestle_parse_advance(p);
  bool is = pestle_parse_at_kind(p, PESTLE_TOKEN_INT);
  p->lexer = here;
  return is;
}

static pestle_status_t read_value(pestle_parser_t* p,
                                  pestle_generic_value_t* out) {
  pestle_lexer_t back;
  if (pestle_parse_enter_alias(p, &back)) {
    PESTLE_TRY(pestle_parse_enter(p));
    PESTLE_TRY(read_value(p, out));
    pestle_parse_leave(p);
    p->lexer = back;
    return NULL;
  }
  switch ((pestle_token_kind_t)pestle_parse_token(p)->kind) {
    case PESTLE_TOKEN_INT:
    case PESTLE_TOKEN_FLOAT:
      return read_number(p, out);
    case PESTLE_TOKEN_STRING:
      out->kind = PESTLE_GENERIC_STRING;
      PESTLE_TRY(pestle_parse_string(p, &p->scratch, &out->text));
      return skip_type_suffix(p);
    case PESTLE_TOKEN_SYMBOL:
      out->kind = PESTLE_GENERIC_SYMBOL;
      return pestle_parse_symbol(p, &p->scratch, &out->text);
    case PESTLE_TOKEN_HASH:
      return read_dialect(p, out);
    case PESTLE_TOKEN_WORD:
      return read_word(p, out);
    case PESTLE_TOKEN_PUNCTUATION:
      if (pestle_parse_at(p, '{')) return pestle_parse_dict(p, '}', out);
      if (pestle_parse_take(p, '[')) return read_list(p, ']', out);
      // "<name = "x", size = 2>" among values of one kind.
      if (pestle_parse_at(p, '<')) return pestle_parse_dict(p, '>', out);
      if (!pestle_parse_at(p, '(')) break;
      if (is_sub_axis(p)) return read_sub_axis(p, out);
      out->kind = PESTLE_GENERIC_FUNCTION;
      out->inputs = PESTLE_ARENA_NEW(&p->scratch, pestle_parse_types_t);
      out->outputs = PESTLE_ARENA_NEW(&p->scratch, pestle_parse_types_t);
      if (!out->inputs || !out->outputs) return PESTLE_OOM();
      return pestle_parse_function_type(p, out->inputs, out->outputs);
    case PESTLE_TOKEN_BANG:
      out->kind = PESTLE_GENERIC_OPAQUE;
      pestle_parse_advance(p);
      if (!pestle_parse_at(p, '<')) return NULL;
      return pestle_parse_skip_brackets(p, true);
    case PESTLE_TOKEN_END:
    case PESTLE_TOKEN_VALUE:
    case PESTLE_TOKEN_CARET:
    case PESTLE_TOKEN_ARROW:
    case PESTLE_TOKEN_BAD:
      break;
  }
  return pestle_parse_expected(p, "an attribute value");
}

pestle_status_t pestle_parse_value(pestle_parser_t* p,
                                   pestle_generic_value_t* out_value) {
  pestle_token_t at = *pestle_parse_token(p);
  *out_value = (pestle_generic_value_t){.line = at.line, .column = at.column};
  PESTLE_TRY(pestle_parse_enter(p));
  PESTLE_TRY(read_value(p, out_value));
  const char* begin = at.whole.data;
  out_value->whole = pestle_str_make(begin, (size_t)(p->lexer.taken - begin));
  pestle_parse_leave(p);
  return NULL;
}

// --- Integers without a tree ---

static pestle_status_t collect(pestle_parser_t* p, int64_t** data,
                               size_t* count, size_t* capacity, int depth) {
  PESTLE_TRY(pestle_parse_expect(p, '['));
  if (pestle_parse_take(p, ']')) return NULL;
  do {
    if (depth < 2 && pestle_parse_at(p, '[')) {
      PESTLE_TRY(collect(p, data, count, capacity, depth + 1));
      continue;
    }
    int64_t value = 0;
    if (pestle_parse_take_word(p, "true")) {
      value = 1;
    } else if (!pestle_parse_take_word(p, "false")) {
      PESTLE_TRY(pestle_parse_integer(p, &value));
    }
    PESTLE_TRY(pestle_parse_grow(p, data, *count, capacity, sizeof(**data)));
    (*data)[(*count)++] = value;
  } while (pestle_parse_take(p, ','));
  return pestle_parse_expect(p, ']');
}

pestle_status_t pestle_parse_i64s(pestle_parser_t* p,
                                  pestle_i64s_t* out_values) {
  int64_t* data = NULL;
  size_t count = 0, capacity = 0;
  PESTLE_TRY(collect(p, &data, &count, &capacity, 0));
  *out_values = (pestle_i64s_t){data, count};
  return NULL;
}

// SPDX-License-Identifier: Apache-2.0
// Types. The inside of tensor<..> is read from the characters: "4x8xf32" is one
// word to a lexer.
#include "ir/parse_internal.h"
#include "ir/quant.h"

static char at(const pestle_parser_t* p) {
  return p->lexer.cursor < p->end ? *p->lexer.cursor : 0;
}

static void skip_blanks(pestle_parser_t* p) {
  while (at(p) == ' ' || at(p) == '\t')
    ++p->lexer.cursor;
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// An error inside of tensor<..>, at the character.
static pestle_status_t bad_type(const pestle_parser_t* p,
                                pestle_status_code_t code, const char* what) {
  pestle_token_t here = p->lexer.token;
  here.column = (uint32_t)(p->lexer.cursor - p->lexer.line_start) + 1;
  return pestle_parse_error(p, &here, code, "%s", what);
}

// "4x" or "?x"; false when something else stands there.
static pestle_status_t read_dim(pestle_parser_t* p, pestle_type_t* type,
                                bool* out_found) {
  const char* start = p->lexer.cursor;
  *out_found = is_digit(at(p)) || at(p) == '?';
  if (!*out_found) return NULL;
  if (type->rank == PESTLE_MAX_RANK) {
    return bad_type(p, PESTLE_STATUS_UNSUPPORTED,
                    "a tensor may have at most 16 dimensions");
  }
  int64_t extent = PESTLE_DIM_DYNAMIC;
  if (at(p) == '?') {
    ++p->lexer.cursor;
  } else {
    while (is_digit(at(p)))
      ++p->lexer.cursor;
    pestle_str_t digits =
        pestle_str_make(start, (size_t)(p->lexer.cursor - start));
    if (!pestle_str_parse_i64(digits, &extent)) {
      return bad_type(p, PESTLE_STATUS_MALFORMED,
                      "an extent does not fit into 63 bits");
    }
  }
  if (at(p) != 'x') {
    return bad_type(p, PESTLE_STATUS_MALFORMED,
                    "expected 'x' and an element type after an extent");
  }
  ++p->lexer.cursor;
  type->dims[type->rank++] = extent;
  return NULL;
}

static bool is_dtype_char(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         c == '_' || c == '.' || c == '!';
}

pestle_dtype_t pestle_parse_dtype_name(pestle_str_t name) {
  char text[32];
  if (name.size >= sizeof(text)) return PESTLE_NONE;
  memcpy(text, name.data, name.size);
  text[name.size] = 0;
  return pestle_dtype_from_name(text);
}

// "quant.uniform<..>" from |start| on, which is behind the '!'; |*out_end| is behind
// the last angle. NULL where there is none.
static const char* quant_end(const pestle_parser_t* p, const char* start) {
  int depth = 0;
  for (const char* c = start; c < p->end && *c != '\n'; ++c) {
    depth += *c == '<';
    if (*c == '>' && --depth == 0) return c + 1;
  }
  return NULL;
}

static pestle_status_t read_quant(pestle_parser_t* p, pestle_dtype_t* out) {
  static const char head[] = "quant.uniform<";
  const char* start = p->lexer.cursor + 1;
  const char* word = start;
  while (is_dtype_char(at(p)))
    ++p->lexer.cursor;
  // "!name", which stands for it.
  pestle_str_t name =
      pestle_str_make(start - 1, (size_t)(p->lexer.cursor - start + 1));
  const pestle_map_value_t* found = pestle_map_find_str(&p->words, name);
  if (found) start = ((const pestle_lexer_t*)found->ptr)->token.whole.data + 1;
  const char* end = quant_end(p, start);
  if (!end || (size_t)(end - start) < sizeof(head) ||
      memcmp(start, head, sizeof(head) - 1)) {
    p->lexer.cursor = word;
    return bad_type(p, PESTLE_STATUS_UNSUPPORTED,
                    "of quantised types only !quant.uniform<..> is supported");
  }
  const char* inside = start + sizeof(head) - 1;
  pestle_status_t status = pestle_quant_parse(
      &p->kept, pestle_str_make(inside, (size_t)(end - 1 - inside)), &p->quant);
  if (status) {
    pestle_token_t here = p->lexer.token;
    here.column = (uint32_t)(word - p->lexer.line_start);
    return pestle_parse_place(p, &here, status);
  }
  if (!found) p->lexer.cursor = end;
  *out = p->quant->storage;
  return NULL;
}

static pestle_status_t read_dtype(pestle_parser_t* p, pestle_dtype_t* out) {
  const char* start = p->lexer.cursor;
  if (at(p) == '!') return read_quant(p, out);
  while (is_dtype_char(at(p)))
    ++p->lexer.cursor;
  size_t size = (size_t)(p->lexer.cursor - start);
  if (size == 7 && !memcmp(start, "complex", 7) && at(p) == '<') {
    while (at(p) && at(p) != '>' && at(p) != '\n')
      ++p->lexer.cursor;
    if (at(p) == '>') ++p->lexer.cursor;
    size = (size_t)(p->lexer.cursor - start);
  }
  *out = pestle_parse_dtype_name(pestle_str_make(start, size));
  if (*out == PESTLE_INDEX && p->allows_index) *out = PESTLE_I64;
  if (*out != PESTLE_NONE) return NULL;
  pestle_token_t here = p->lexer.token;
  here.column = (uint32_t)(start - p->lexer.line_start) + 1;
  return pestle_parse_error(
      p, &here, size ? PESTLE_STATUS_UNSUPPORTED : PESTLE_STATUS_MALFORMED,
      size ? "element type '%.*s' is not supported"
           : "expected an element type%.*s",
      size > 40 ? 40 : (int)size, start);
}

// From the '<' that is the token.
static pestle_status_t read_tensor(pestle_parser_t* p, pestle_type_t* type) {
  bool more = true;
  skip_blanks(p);
  if (at(p) == '*') {
    return bad_type(p, PESTLE_STATUS_UNSUPPORTED,
                    "tensors of unknown rank are not supported");
  }
  while (more) {
    PESTLE_TRY(read_dim(p, type, &more));
    skip_blanks(p);
  }
  PESTLE_TRY(read_dtype(p, &type->dtype));
  pestle_parse_advance(p);
  // An encoding, such as #stablehlo.bounds<..>, changes no value.
  if (pestle_parse_take(p, ',')) {
    pestle_parse_advance(p);
    if (pestle_parse_at(p, '<')) {
      PESTLE_TRY(pestle_parse_skip_brackets(p, true));
    }
  }
  return pestle_parse_expect(p, '>');
}

pestle_status_t pestle_parse_type(pestle_parser_t* p, pestle_type_t* out_type) {
  pestle_token_t start = p->lexer.token;
  pestle_lexer_t back;
  p->quant = NULL;
  if (pestle_parse_enter_alias(p, &back)) {
    PESTLE_TRY(pestle_parse_enter(p));
    PESTLE_TRY(pestle_parse_type(p, out_type));
    pestle_parse_leave(p);
    p->lexer = back;
    return NULL;
  }
  *out_type = (pestle_type_t){.dtype = PESTLE_NONE};
  if (!pestle_parse_take_word(p, "tensor")) {
    bool other = pestle_parse_at_kind(p, PESTLE_TOKEN_BANG) ||
                 pestle_parse_at_word(p, "tuple") ||
                 pestle_parse_at_word(p, "memref");
    if (other) {
      return pestle_parse_error(p, &start, PESTLE_STATUS_UNSUPPORTED,
                                "type '%.*s' is not supported",
                                PESTLE_STR_ARG(start.whole));
    }
    return pestle_parse_expected(p, "a tensor type");
  }
  if (!pestle_parse_at(p, '<')) return pestle_parse_expected(p, "'<'");
  PESTLE_TRY(read_tensor(p, out_type));
  pestle_status_t status = pestle_type_check(out_type);
  if (!status) return NULL;
  pestle_status_t placed = pestle_parse_error(
      p, &start, PESTLE_STATUS_MALFORMED, "%s", pestle_status_message(status));
  pestle_status_release(status);
  return placed;
}

pestle_status_t pestle_parse_push_quant(pestle_parser_t* p,
                                        pestle_parse_types_t* types,
                                        const pestle_type_t* type,
                                        const pestle_quant_t* quant) {
  PESTLE_TRY(pestle_parse_grow(p, &types->data, types->count, &types->capacity,
                               sizeof(*types->data)));
  PESTLE_TRY(pestle_parse_grow(p, &types->quants, types->count,
                               &types->quant_capacity, sizeof(*types->quants)));
  types->quants[types->count] = quant;
  types->data[types->count++] = *type;
  types->quantised = types->quantised || quant;
  return NULL;
}

pestle_status_t pestle_parse_push_type(pestle_parser_t* p,
                                       pestle_parse_types_t* types,
                                       const pestle_type_t* type) {
  return pestle_parse_push_quant(p, types, type, NULL);
}

// --- Tuples and tokens ---

typedef struct nest_t {
  char* text;
  size_t size, capacity;
} nest_t;

static pestle_status_t push_sign(pestle_parser_t* p, nest_t* nest, char sign) {
  PESTLE_TRY(pestle_parse_grow(p, &nest->text, nest->size, &nest->capacity, 1));
  nest->text[nest->size++] = sign;
  return NULL;
}

static pestle_status_t read_nested(pestle_parser_t* p,
                                   pestle_parse_types_t* types, nest_t* nest) {
  pestle_type_t type;
  pestle_lexer_t back;
  if (pestle_parse_enter_alias(p, &back)) {
    PESTLE_TRY(pestle_parse_enter(p));
    PESTLE_TRY(read_nested(p, types, nest));
    pestle_parse_leave(p);
    p->lexer = back;
    return NULL;
  }
  if (pestle_parse_at_kind(p, PESTLE_TOKEN_BANG) &&
      pestle_str_equal_c(pestle_parse_token(p)->text, "stablehlo.token")) {
    pestle_parse_advance(p);
    PESTLE_TRY(push_sign(p, nest, '('));
    return push_sign(p, nest, ')');
  }
  if (!pestle_parse_take_word(p, "tuple")) {
    PESTLE_TRY(pestle_parse_type(p, &type));
    PESTLE_TRY(pestle_parse_push_quant(p, types, &type, p->quant));
    return push_sign(p, nest, 't');
  }
  PESTLE_TRY(pestle_parse_enter(p));
  PESTLE_TRY(pestle_parse_expect(p, '<'));
  PESTLE_TRY(push_sign(p, nest, '('));
  if (!pestle_parse_at(p, '>')) {
    do {
      PESTLE_TRY(read_nested(p, types, nest));
    } while (pestle_parse_take(p, ','));
  }
  pestle_parse_leave(p);
  PESTLE_TRY(pestle_parse_expect(p, '>'));
  return push_sign(p, nest, ')');
}

pestle_status_t pestle_parse_type_form(pestle_parser_t* p,
                                       pestle_parse_types_t* types) {
  pestle_parse_form_t form = {.leaves = types->count};
  if (pestle_parse_at_kind(p, PESTLE_TOKEN_BANG) ||
      pestle_parse_at_word(p, "tuple")) {
    nest_t nest = {0};
    PESTLE_TRY(read_nested(p, types, &nest));
    PESTLE_TRY(push_sign(p, &nest, 0));
    types->nested = types->nested || nest.text[0] == '(';
    if (nest.text[0] == '(') form.nest = nest.text;
  } else {
    pestle_type_t type;
    PESTLE_TRY(pestle_parse_type(p, &type));
    PESTLE_TRY(pestle_parse_push_quant(p, types, &type, p->quant));
  }
  form.leaves = types->count - form.leaves;
  PESTLE_TRY(pestle_parse_grow(p, &types->forms, types->form_count,
                               &types->form_capacity, sizeof(form)));
  types->forms[types->form_count++] = form;
  return NULL;
}

// --- Lists ---

pestle_status_t pestle_parse_type_list(pestle_parser_t* p,
                                       pestle_parse_types_t* types) {
  do {
    PESTLE_TRY(pestle_parse_type_form(p, types));
  } while (pestle_parse_take(p, ','));
  return NULL;
}

// "(A, B)", possibly empty.
static pestle_status_t type_tuple(pestle_parser_t* p,
                                  pestle_parse_types_t* types) {
  PESTLE_TRY(pestle_parse_expect(p, '('));
  if (pestle_parse_take(p, ')')) return NULL;
  PESTLE_TRY(pestle_parse_type_list(p, types));
  return pestle_parse_expect(p, ')');
}

pestle_status_t pestle_parse_function_type(pestle_parser_t* p,
                                           pestle_parse_types_t* operands,
                                           pestle_parse_types_t* results) {
  PESTLE_TRY(type_tuple(p, operands));
  PESTLE_TRY(pestle_parse_expect_arrow(p));
  if (pestle_parse_at(p, '(')) return type_tuple(p, results);
  return pestle_parse_type_form(p, results);
}

// SPDX-License-Identifier: Apache-2.0
// Text to tokens, and the errors that a token can make.
#include <stdarg.h>
#include <stdio.h>

#include "base/hex.h"
#include "ir/parse_internal.h"

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool is_hex(char c) {
  return pestle_hex_digit(c) >= 0;
}
static bool is_word_char(char c) {
  return is_letter(c) || is_digit(c) || c == '$' || c == '.';
}
static bool is_suffix_char(char c) {
  return is_word_char(c) || c == '-';
}

static char peek(const pestle_parser_t* p, size_t ahead) {
  size_t left = (size_t)(p->end - p->lexer.cursor);
  return ahead < left ? p->lexer.cursor[ahead] : 0;
}

static void skip_space(pestle_parser_t* p) {
  pestle_lexer_t* l = &p->lexer;
  while (l->cursor < p->end) {
    char c = *l->cursor;
    if (c == '\n') {
      l->line_start = ++l->cursor;
      ++l->line;
      l->fresh = true;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++l->cursor;
    } else if (c == '/' && peek(p, 1) == '/') {
      while (l->cursor < p->end && *l->cursor != '\n')
        ++l->cursor;
    } else {
      return;
    }
  }
}

static void take_while(pestle_parser_t* p, bool (*accept)(char)) {
  while (p->lexer.cursor < p->end && accept(*p->lexer.cursor)) {
    ++p->lexer.cursor;
  }
}

static void lex_string(pestle_parser_t* p, pestle_token_t* t) {
  const char* start = ++p->lexer.cursor;
  for (; p->lexer.cursor < p->end; ++p->lexer.cursor) {
    char c = *p->lexer.cursor;
    if (c == '\n') break;
    if (c == '\\' && p->lexer.cursor + 1 < p->end) {
      ++p->lexer.cursor;
    } else if (c == '"') {
      t->kind = PESTLE_TOKEN_STRING;
      t->text = pestle_str_make(start, (size_t)(p->lexer.cursor - start));
      ++p->lexer.cursor;
      return;
    }
  }
  t->kind = PESTLE_TOKEN_BAD;
}

// "e5", "E+5"
static bool at_exponent(const pestle_parser_t* p, size_t ahead) {
  char letter = peek(p, ahead), sign = peek(p, ahead + 1);
  return (letter == 'e' || letter == 'E') &&
         (is_digit(sign) ||
          ((sign == '-' || sign == '+') && is_digit(peek(p, ahead + 2))));
}

static void lex_number(pestle_parser_t* p, pestle_token_t* t) {
  t->kind = PESTLE_TOKEN_INT;
  if (peek(p, 0) == '-') ++p->lexer.cursor;
  if (peek(p, 0) == '0' && peek(p, 1) == 'x' && is_hex(peek(p, 2))) {
    p->lexer.cursor += 2;
    take_while(p, is_hex);
    return;
  }
  take_while(p, is_digit);
  if (peek(p, 0) == '.' && (!is_letter(peek(p, 1)) || at_exponent(p, 1))) {
    t->kind = PESTLE_TOKEN_FLOAT;
    ++p->lexer.cursor;
    take_while(p, is_digit);
  }
  if (at_exponent(p, 0)) {
    t->kind = PESTLE_TOKEN_FLOAT;
    p->lexer.cursor += 2;
    take_while(p, is_digit);
  }
}

// %3, %name, #name, ^name, !name: a number or a word that may hold '-'.
static void lex_prefixed(pestle_parser_t* p, pestle_token_t* t,
                         pestle_token_kind_t kind) {
  const char* start = ++p->lexer.cursor;
  if (is_digit(peek(p, 0))) {
    take_while(p, is_digit);
  } else if (kind == PESTLE_TOKEN_VALUE || kind == PESTLE_TOKEN_CARET) {
    take_while(p, is_suffix_char);
  } else {
    take_while(p, is_word_char);
  }
  t->text = pestle_str_make(start, (size_t)(p->lexer.cursor - start));
  t->kind = t->text.size ? (uint8_t)kind : PESTLE_TOKEN_BAD;
}

static void lex_value(pestle_parser_t* p, pestle_token_t* t) {
  lex_prefixed(p, t, PESTLE_TOKEN_VALUE);
  t->index = -1;
  if (peek(p, 0) != '#' || !is_digit(peek(p, 1))) return;
  const char* start = ++p->lexer.cursor;
  take_while(p, is_digit);
  pestle_str_t digits =
      pestle_str_make(start, (size_t)(p->lexer.cursor - start));
  if (!pestle_str_parse_i64(digits, &t->index)) t->kind = PESTLE_TOKEN_BAD;
}

static void lex_token(pestle_parser_t* p, pestle_token_t* t) {
  char c = *p->lexer.cursor;
  if (is_letter(c)) {
    const char* start = p->lexer.cursor;
    take_while(p, is_word_char);
    t->kind = PESTLE_TOKEN_WORD;
    t->text = pestle_str_make(start, (size_t)(p->lexer.cursor - start));
  } else if (is_digit(c) || (c == '-' && is_digit(peek(p, 1)))) {
    lex_number(p, t);
    t->text = pestle_str_make(t->whole.data,
                              (size_t)(p->lexer.cursor - t->whole.data));
  } else if (c == '"') {
    lex_string(p, t);
  } else if (c == '%') {
    lex_value(p, t);
  } else if (c == '@' && peek(p, 1) == '"') {
    ++p->lexer.cursor;
    lex_string(p, t);
    if (t->kind == PESTLE_TOKEN_STRING) t->kind = PESTLE_TOKEN_SYMBOL;
    t->quoted = true;
  } else if (c == '@') {
    lex_prefixed(p, t, PESTLE_TOKEN_SYMBOL);
  } else if (c == '#') {
    lex_prefixed(p, t, PESTLE_TOKEN_HASH);
  } else if (c == '!') {
    lex_prefixed(p, t, PESTLE_TOKEN_BANG);
  } else if (c == '^') {
    lex_prefixed(p, t, PESTLE_TOKEN_CARET);
  } else if (c == '-' && peek(p, 1) == '>') {
    t->kind = PESTLE_TOKEN_ARROW;
    p->lexer.cursor += 2;
  } else {
    static const char signs[] = "()[]{}<>,:=?*+|-";
    bool known = c && memchr(signs, c, sizeof(signs) - 1);
    t->kind = known ? PESTLE_TOKEN_PUNCTUATION : PESTLE_TOKEN_BAD;
    t->sign = known ? c : 0;
    ++p->lexer.cursor;
  }
}

void pestle_parse_advance(pestle_parser_t* p) {
  pestle_lexer_t* l = &p->lexer;
  l->taken = l->cursor;
  skip_space(p);
  l->token =
      (pestle_token_t){.kind = PESTLE_TOKEN_END,
                       .first = l->fresh,
                       .line = l->line,
                       .column = (uint32_t)(l->cursor - l->line_start) + 1};
  l->fresh = false;
  l->token.whole = pestle_str_make(l->cursor, 0);
  if (l->cursor >= p->end) return;
  lex_token(p, &l->token);
  l->token.whole.size = (size_t)(l->cursor - l->token.whole.data);
}

bool pestle_parse_at_word(const pestle_parser_t* p, const char* word) {
  return p->lexer.token.kind == PESTLE_TOKEN_WORD &&
         pestle_str_equal_c(p->lexer.token.text, word);
}

bool pestle_parse_at_open_string(const pestle_parser_t* p) {
  const pestle_token_t* t = &p->lexer.token;
  return t->kind == PESTLE_TOKEN_BAD && (t->whole.data[0] == '"' || t->quoted);
}

bool pestle_parse_take(pestle_parser_t* p, char sign) {
  if (!pestle_parse_at(p, sign)) return false;
  pestle_parse_advance(p);
  return true;
}

bool pestle_parse_take_word(pestle_parser_t* p, const char* word) {
  if (!pestle_parse_at_word(p, word)) return false;
  pestle_parse_advance(p);
  return true;
}

// --- Errors ---

pestle_status_t pestle_parse_error(const pestle_parser_t* p,
                                   const pestle_token_t* at,
                                   pestle_status_code_t code,
                                   const char* format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  return pestle_status_make(code, __FILE__, __LINE__, "%s:%u:%u: %s", p->file,
                            at->line, at->column, text);
}

pestle_status_t pestle_parse_expected(const pestle_parser_t* p,
                                      const char* what) {
  const pestle_token_t* t = &p->lexer.token;
  if (t->kind == PESTLE_TOKEN_END) {
    return pestle_parse_error(p, t, PESTLE_STATUS_MALFORMED,
                              "expected %s, found the end of the text", what);
  }
  if (pestle_parse_at_open_string(p)) {
    return pestle_parse_error(p, t, PESTLE_STATUS_MALFORMED,
                              "a string does not end on its line");
  }
  // Damaged input may hold any byte: only what prints is quoted.
  if (t->whole.data[0] < ' ' || t->whole.data[0] > '~') {
    return pestle_parse_error(p, t, PESTLE_STATUS_MALFORMED,
                              "expected %s, found the byte 0x%02x", what,
                              (unsigned char)t->whole.data[0]);
  }
  char found[41];
  size_t n = 0;
  for (; n < t->whole.size && n < sizeof(found) - 1; ++n) {
    char c = t->whole.data[n];
    found[n] = c >= ' ' && c <= '~' ? c : '?';
  }
  found[n] = 0;
  return pestle_parse_error(p, t, PESTLE_STATUS_MALFORMED,
                            "expected %s, found '%s'", what, found);
}

pestle_status_t pestle_parse_expect(pestle_parser_t* p, char sign) {
  if (pestle_parse_take(p, sign)) return NULL;
  char what[] = {'\'', sign, '\'', 0};
  return pestle_parse_expected(p, what);
}

pestle_status_t pestle_parse_expect_word(pestle_parser_t* p, const char* word) {
  if (pestle_parse_take_word(p, word)) return NULL;
  char what[64];
  snprintf(what, sizeof(what), "'%s'", word);
  return pestle_parse_expected(p, what);
}

pestle_status_t pestle_parse_expect_arrow(pestle_parser_t* p) {
  if (!pestle_parse_at_kind(p, PESTLE_TOKEN_ARROW)) {
    return pestle_parse_expected(p, "'->'");
  }
  pestle_parse_advance(p);
  return NULL;
}

// --- Simple tokens ---

pestle_status_t pestle_parse_integer(pestle_parser_t* p, int64_t* out_value) {
  uint64_t bits;
  pestle_str_t text = p->lexer.token.text;
  if (!pestle_parse_at_kind(p, PESTLE_TOKEN_INT)) {
    return pestle_parse_expected(p, "an integer");
  }
  if (!pestle_str_parse_i64(text, out_value)) {
    if (!pestle_str_parse_u64(text, &bits)) {
      return pestle_parse_error(p, &p->lexer.token, PESTLE_STATUS_MALFORMED,
                                "%.*s does not fit into 64 bits",
                                text.size > 40 ? 40 : (int)text.size,
                                text.data);
    }
    *out_value = (int64_t)bits;
  }
  pestle_parse_advance(p);
  return NULL;
}

// Undoes the escapes of |raw|; what is no escape stays as it is.
static pestle_status_t unescape(pestle_arena_t* arena, pestle_str_t raw,
                                pestle_str_t* out_text) {
  char* text = pestle_arena_alloc(arena, raw.size + 1, 1);
  if (!text) return PESTLE_OOM();
  size_t n = 0;
  for (size_t i = 0; i < raw.size; ++i) {
    char c = raw.data[i];
    if (c != '\\' || i + 1 >= raw.size) {
      text[n++] = c;
      continue;
    }
    char next = raw.data[++i];
    int low = i + 1 < raw.size ? pestle_hex_digit(raw.data[i + 1]) : -1;
    if (pestle_hex_digit(next) >= 0 && low >= 0) {
      text[n++] = (char)(pestle_hex_digit(next) * 16 + low);
      ++i;
    } else {
      text[n++] = (char)(next == 'n' ? '\n' : next == 't' ? '\t' : next);
    }
  }
  text[n] = 0;
  *out_text = pestle_str_make(text, n);
  return NULL;
}

pestle_status_t pestle_parse_string(pestle_parser_t* p, pestle_arena_t* arena,
                                    pestle_str_t* out_text) {
  if (!pestle_parse_at_kind(p, PESTLE_TOKEN_STRING)) {
    return pestle_parse_expected(p, "a string");
  }
  PESTLE_TRY(unescape(arena, p->lexer.token.text, out_text));
  pestle_parse_advance(p);
  return NULL;
}

pestle_status_t pestle_parse_symbol(pestle_parser_t* p, pestle_arena_t* arena,
                                    pestle_str_t* out_text) {
  const pestle_token_t* t = &p->lexer.token;
  if (t->kind != PESTLE_TOKEN_SYMBOL) {
    return pestle_parse_expected(p, "a name that starts with '@'");
  }
  if (t->quoted) {
    PESTLE_TRY(unescape(arena, t->text, out_text));
  } else {
    const char* copy = pestle_arena_strndup(arena, t->text);
    if (!copy) return PESTLE_OOM();
    *out_text = pestle_str_make(copy, t->text.size);
  }
  pestle_parse_advance(p);
  return NULL;
}

pestle_status_t pestle_parse_skip_brackets(pestle_parser_t* p, bool angles) {
  pestle_token_t open = p->lexer.token;
  size_t depth = 0;
  do {
    char c = p->lexer.token.sign;
    if (pestle_parse_at_open_string(p)) return pestle_parse_expected(p, "");
    if (pestle_parse_at_kind(p, PESTLE_TOKEN_END) ||
        pestle_parse_at_kind(p, PESTLE_TOKEN_BAD)) {
      return pestle_parse_error(p, &open, PESTLE_STATUS_MALFORMED,
                                "'%c' is not closed", open.sign);
    }
    if (c == '(' || c == '[' || c == '{' || (angles && c == '<')) ++depth;
    if (c == ')' || c == ']' || c == '}' || (angles && c == '>')) --depth;
    pestle_parse_advance(p);
  } while (depth);
  return NULL;
}

pestle_status_t pestle_parse_enter(pestle_parser_t* p) {
  if (++p->depth <= PESTLE_PARSE_MAX_DEPTH) return NULL;
  return pestle_parse_error(p, &p->lexer.token, PESTLE_STATUS_MALFORMED,
                            "nested more than %d deep", PESTLE_PARSE_MAX_DEPTH);
}

pestle_status_t pestle_parse_grow(pestle_parser_t* p, void* data, size_t count,
                                  size_t* capacity, size_t element_size) {
  if (count < *capacity) return NULL;
  size_t wanted = *capacity ? *capacity * 2 : 8;
  void* old;
  void* grown = pestle_arena_alloc_array(&p->scratch, wanted, element_size, 16);
  if (!grown) return PESTLE_OOM();
  memcpy(&old, data, sizeof(old));
  if (count) memcpy(grown, old, count * element_size);
  memcpy(data, &grown, sizeof(grown));
  *capacity = wanted;
  return NULL;
}

// SPDX-License-Identifier: Apache-2.0
#include "codegen/nest/lex.h"

pestle_status_t pestle_lex_error(const pestle_lex_t* s, const char* format,
                                 ...) {
  unsigned line = 1, column = 1;
  for (size_t i = 0; i < s->token && i < s->size; ++i) {
    bool newline = s->text[i] == '\n';
    line += newline;
    column = newline ? 1 : column + 1;
  }
  pestle_strbuf_t message;
  pestle_strbuf_init(s->allocator, &message);
  va_list args;
  va_start(args, format);
  pestle_strbuf_appendf_v(&message, format, args);
  va_end(args);
  pestle_status_t status =
      PESTLE_ERROR(MALFORMED, "%s:%u:%u: %s", s->file, line, column,
                   pestle_strbuf_cstr(&message));
  pestle_strbuf_deinit(&message);
  return status;
}

bool pestle_lex_at_comment(const pestle_lex_t* s) {
  return s->at + 1 < s->size && s->text[s->at] == '/' &&
         s->text[s->at + 1] == '/';
}

void pestle_lex_skip(pestle_lex_t* s) {
  while (s->at < s->size) {
    char c = s->text[s->at];
    if (c == ' ' || c == '\t' || c == '\r' || (c == '\n' && !s->lines)) {
      ++s->at;
    } else if (pestle_lex_at_comment(s)) {
      while (s->at < s->size && s->text[s->at] != '\n')
        ++s->at;
    } else {
      break;
    }
  }
  s->token = s->at;
}

char pestle_lex_peek(pestle_lex_t* s) {
  pestle_lex_skip(s);
  return s->at < s->size ? s->text[s->at] : '\0';
}

bool pestle_lex_accept(pestle_lex_t* s, char c) {
  if (pestle_lex_peek(s) != c || s->at >= s->size) return false;
  ++s->at;
  return true;
}

pestle_status_t pestle_lex_expect(pestle_lex_t* s, char c) {
  if (pestle_lex_accept(s, c)) return NULL;
  return pestle_lex_error(s, "expected '%c'", c);
}

static bool word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_';
}

pestle_str_t pestle_lex_word(pestle_lex_t* s) {
  pestle_lex_skip(s);
  size_t start = s->at;
  while (s->at < s->size &&
         (word_char(s->text[s->at]) || (s->dots && s->text[s->at] == '.'))) {
    ++s->at;
  }
  return pestle_str_make(s->text + start, s->at - start);
}

bool pestle_lex_accept_word(pestle_lex_t* s, const char* wanted) {
  pestle_lex_skip(s);
  size_t start = s->at;
  if (pestle_str_equal_c(pestle_lex_word(s), wanted)) return true;
  s->at = start;
  return false;
}

pestle_status_t pestle_lex_expect_word(pestle_lex_t* s, const char* wanted) {
  if (pestle_lex_accept_word(s, wanted)) return NULL;
  return pestle_lex_error(s, "expected '%s'", wanted);
}

pestle_status_t pestle_lex_name(pestle_lex_t* s, const char* what,
                                const char** out_name) {
  enum { LONGEST = 128 };
  *out_name = "";
  pestle_str_t word = pestle_lex_word(s);
  if (!word.size || (word.data[0] >= '0' && word.data[0] <= '9')) {
    return pestle_lex_error(s, "expected the name of %s", what);
  }
  if (word.size > LONGEST) {
    return pestle_lex_error(s, "a name has at most %d characters", LONGEST);
  }
  *out_name = pestle_arena_strndup(s->arena, word);
  return *out_name ? NULL : PESTLE_OOM();
}

pestle_str_t pestle_lex_number(pestle_lex_t* s) {
  pestle_lex_skip(s);
  size_t start = s->at;
  while (s->at < s->size) {
    char c = s->text[s->at];
    bool sign =
        (c == '-' || c == '+') && (s->at == start || s->text[s->at - 1] == 'e');
    if (!word_char(c) && c != '.' && !sign) break;
    // "0..8" is two numbers.
    if (c == '.' && s->at + 1 < s->size && s->text[s->at + 1] == '.') break;
    ++s->at;
  }
  return pestle_str_make(s->text + start, s->at - start);
}

pestle_status_t pestle_lex_int(pestle_lex_t* s, int64_t lo, int64_t hi,
                               int64_t* out_value) {
  *out_value = 0;
  if (!pestle_str_parse_i64(pestle_lex_number(s), out_value)) {
    return pestle_lex_error(s, "expected an integer");
  }
  if (*out_value >= lo && *out_value <= hi) return NULL;
  return pestle_lex_error(s, "expected an integer from %lld to %lld",
                          (long long)lo, (long long)hi);
}

pestle_status_t pestle_lex_quoted(pestle_lex_t* s, const char** out_text) {
  *out_text = "";
  PESTLE_TRY(pestle_lex_expect(s, '"'));
  size_t start = s->at;
  while (s->at < s->size && s->text[s->at] != '"' && s->text[s->at] != '\n') {
    ++s->at;
  }
  pestle_str_t inside = pestle_str_make(s->text + start, s->at - start);
  s->token = s->at;
  if (s->at >= s->size || s->text[s->at] != '"') {
    return pestle_lex_error(s, "expected '\"'");
  }
  ++s->at;
  *out_text = pestle_arena_strndup(s->arena, inside);
  return *out_text ? NULL : PESTLE_OOM();
}

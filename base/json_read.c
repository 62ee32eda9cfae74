// SPDX-License-Identifier: Apache-2.0
#include "base/json_read.h"

#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

enum { MOST_DEPTH = 64 };

typedef struct reader_t {
  const char *begin, *at, *end;
  pestle_arena_t* arena;
} reader_t;

static pestle_status_t wrong(const reader_t* r, const char* what) {
  size_t line = 1, column = 1;
  for (const char* p = r->begin; p < r->at; ++p) {
    column = *p == '\n' ? 1 : column + 1;
    line += *p == '\n';
  }
  return PESTLE_ERROR(MALFORMED, "line %zu, column %zu: %s", line, column,
                      what);
}

static void skip(reader_t* r) {
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' ||
                            *r->at == '\r')) {
    ++r->at;
  }
}

static bool takes(reader_t* r, char c) {
  skip(r);
  bool is = r->at < r->end && *r->at == c;
  r->at += is;
  return is;
}

// --- Strings ---

static int32_t hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// The number of four digits at |at|, or -1.
static int32_t unit(const reader_t* r, const char* at) {
  int32_t value = 0;
  if (r->end - at < 4) return -1;
  for (int i = 0; i < 4; ++i) {
    int32_t digit = hex(at[i]);
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

static char* put_utf8(char* to, int32_t c) {
  if (c < 0x80) {
    *to++ = (char)c;
  } else if (c < 0x800) {
    *to++ = (char)(0xc0 | c >> 6);
    *to++ = (char)(0x80 | (c & 63));
  } else if (c < 0x10000) {
    *to++ = (char)(0xe0 | c >> 12);
    *to++ = (char)(0x80 | (c >> 6 & 63));
    *to++ = (char)(0x80 | (c & 63));
  } else {
    *to++ = (char)(0xf0 | c >> 18);
    *to++ = (char)(0x80 | (c >> 12 & 63));
    *to++ = (char)(0x80 | (c >> 6 & 63));
    *to++ = (char)(0x80 | (c & 63));
  }
  return to;
}

// What is behind \u; of two units that are one character, both.
static pestle_status_t read_unit(reader_t* r, char** to) {
  int32_t c = unit(r, r->at);
  if (c < 0) return wrong(r, "\\u wants four hexadecimal digits");
  r->at += 4;
  if (c >= 0xd800 && c < 0xdc00 && r->end - r->at >= 2 && r->at[0] == '\\' &&
      r->at[1] == 'u') {
    int32_t low = unit(r, r->at + 2);
    if (low >= 0xdc00 && low < 0xe000) {
      c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
      r->at += 6;
    }
  }
  if (!c || (c >= 0xd800 && c < 0xe000))
    return wrong(r, "\\u is no character that a string may have");
  *to = put_utf8(*to, c);
  return NULL;
}

static pestle_status_t read_escape(reader_t* r, char** to) {
  static const char from[] = "\"\\/bfnrt", as[] = "\"\\/\b\f\n\r\t";
  if (r->at == r->end) return wrong(r, "a string has no end");
  char c = *r->at++;
  if (c == 'u') return read_unit(r, to);
  const char* known = c ? strchr(from, c) : NULL;
  if (!known) return wrong(r, "an escape that JSON has not");
  *(*to)++ = as[known - from];
  return NULL;
}

// |at| is behind the quote.
static pestle_status_t read_string(reader_t* r, pestle_str_t* out_text) {
  const char* end = r->at;
  while (end < r->end && *end != '"')
    end += *end == '\\' && end + 1 < r->end ? 2 : 1;
  if (end >= r->end) return wrong(r, "a string has no end");
  // What an escape becomes is no longer than what it was.
  char* text = pestle_arena_alloc(r->arena, (size_t)(end - r->at) + 1, 1);
  char* to = text;
  if (!text) return PESTLE_OOM();
  while (*r->at != '"') {
    unsigned char c = (unsigned char)*r->at;
    if (c < ' ') return wrong(r, "a control character within a string");
    ++r->at;
    if (c == '\\') {
      PESTLE_TRY(read_escape(r, &to));
    } else {
      *to++ = (char)c;
    }
  }
  *to = 0;
  *out_text = pestle_str_make(text, (size_t)(to - text));
  if (!pestle_utf8_is_valid(*out_text))
    return wrong(r, "a string that is not UTF-8");
  ++r->at;
  return NULL;
}

// --- Values ---

static bool is_digit(const reader_t* r) {
  return r->at < r->end && *r->at >= '0' && *r->at <= '9';
}

static bool skip_digits(reader_t* r) {
  if (!is_digit(r)) return false;
  while (is_digit(r))
    ++r->at;
  return true;
}

static bool skip_number(reader_t* r) {
  r->at += *r->at == '-';
  const char* first = r->at;
  if (!skip_digits(r) || (*first == '0' && r->at - first > 1)) return false;
  if (r->at < r->end && *r->at == '.') {
    ++r->at;
    if (!skip_digits(r)) return false;
  }
  if (r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
    ++r->at;
    if (r->at < r->end && (*r->at == '+' || *r->at == '-')) ++r->at;
    if (!skip_digits(r)) return false;
  }
  return true;
}

static bool takes_word(reader_t* r, const char* word) {
  size_t size = strlen(word);
  if ((size_t)(r->end - r->at) < size || memcmp(r->at, word, size))
    return false;
  r->at += size;
  return true;
}

static pestle_status_t read_value(reader_t* r, int depth,
                                  pestle_json_value_t* value);

static pestle_status_t read_items(reader_t* r, int depth, bool is_object,
                                  pestle_json_value_t* value) {
  const pestle_json_value_t** last = &value->first;
  char end = is_object ? '}' : ']';
  value->kind = is_object ? PESTLE_JSON_OBJECT : PESTLE_JSON_ARRAY;
  if (takes(r, end)) return NULL;
  do {
    pestle_json_value_t* item =
        PESTLE_ARENA_ARRAY(r->arena, pestle_json_value_t, 1);
    pestle_str_t key = {NULL, 0};
    if (!item) return PESTLE_OOM();
    *item = (pestle_json_value_t){.kind = PESTLE_JSON_NULL};
    if (is_object) {
      if (!takes(r, '"')) return wrong(r, "a key in quotes is wanted here");
      PESTLE_TRY(read_string(r, &key));
      if (!takes(r, ':')) return wrong(r, "':' is wanted here");
      item->key = key.data;
    }
    PESTLE_TRY(read_value(r, depth + 1, item));
    *last = item;
    last = &item->next;
    ++value->count;
  } while (takes(r, ','));
  if (takes(r, end)) return NULL;
  return wrong(
      r, is_object ? "',' or '}' is wanted here" : "',' or ']' is wanted here");
}

static pestle_status_t read_value(reader_t* r, int depth,
                                  pestle_json_value_t* value) {
  if (depth > MOST_DEPTH) return wrong(r, "too many values within each other");
  if (takes(r, '{')) return read_items(r, depth, true, value);
  if (takes(r, '[')) return read_items(r, depth, false, value);
  if (takes(r, '"')) {
    value->kind = PESTLE_JSON_STRING;
    return read_string(r, &value->text);
  }
  value->truth = takes_word(r, "true");
  if (value->truth || takes_word(r, "false")) {
    value->kind = PESTLE_JSON_BOOL;
    return NULL;
  }
  if (takes_word(r, "null")) return NULL;
  const char* begin = r->at;
  value->kind = PESTLE_JSON_NUMBER;
  if (r->at == r->end || !skip_number(r)) return wrong(r, "no value of JSON");
  value->text = pestle_str_make(begin, (size_t)(r->at - begin));
  return NULL;
}

pestle_status_t pestle_json_read(pestle_str_t text, pestle_arena_t* arena,
                                 const pestle_json_value_t** out_value) {
  reader_t r = {text.data, text.data, text.data + text.size, arena};
  pestle_json_value_t* value =
      PESTLE_ARENA_ARRAY(arena, pestle_json_value_t, 1);
  *out_value = NULL;
  if (!value) return PESTLE_OOM();
  *value = (pestle_json_value_t){.kind = PESTLE_JSON_NULL};
  PESTLE_TRY(read_value(&r, 0, value));
  skip(&r);
  if (r.at < r.end) return wrong(&r, "the value has ended before this");
  *out_value = value;
  return NULL;
}

const pestle_json_value_t* pestle_json_find(const pestle_json_value_t* value,
                                            const char* path) {
  pestle_str_t rest = pestle_str(path), key;
  while (value && pestle_str_next(&rest, '.', &key)) {
    const pestle_json_value_t* found = NULL;
    for (const pestle_json_value_t* i = value->first; i; i = i->next) {
      if (i->key && pestle_str_equal_c(key, i->key)) found = i;
    }
    value = found;
  }
  return value;
}

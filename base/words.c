// SPDX-License-Identifier: Apache-2.0
// Numbers of strings: those of a dictionary, and what encoding adds.
#include "base/words.h"

#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/hex.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/require.h"
#include "base/utf8.h"
#include "base/vec.h"

struct pestle_strings_s {
  pestle_allocator_t allocator;
  pestle_context_t* context;
  pestle_map_t ids;
  PESTLE_VEC(pestle_string_t) words;
  size_t own;                  // the dictionary's
  uint64_t hash;               // of its text
  pestle_arena_t arena, more;  // bytes of those, and of all others
};

// --- The dictionary's text: "3:red5:green", as pestle_strbuf_append_quoted() writes ---

// The next byte, or -1 at the end and of what is no such text.
static int next_byte(const char** at) {
  const char* p = *at;
  if (!*p || *p == '"') return -1;
  ++*at;
  if (*p != '\\') return (unsigned char)*p;
  ++*at;
  switch (p[1]) {
    case '"':
    case '\\':
      return p[1];
    case 'n':
      return '\n';
    case 't':
      return '\t';
    default:
      break;
  }
  int high = pestle_hex_digit(p[1]),
      low = high < 0 ? -1 : pestle_hex_digit(p[2]);
  if (low < 0) return -1;
  ++*at;
  return high * 16 + low;
}

static pestle_status_t damaged(void) {
  return PESTLE_ERROR(MALFORMED,
                      "the dictionary of the model's strings is damaged");
}

static pestle_status_t append(pestle_strings_t* s, pestle_arena_t* arena,
                              pestle_string_t word, int32_t* out_id) {
  bool added = false;
  if (s->words.size >= INT32_MAX)
    return PESTLE_ERROR(RESOURCE_EXHAUSTED, "there are 2^31 strings already");
  pestle_map_value_t* slot =
      pestle_map_put(&s->ids, word.data, word.size, &added);
  if (!slot) return PESTLE_OOM();
  if (added) {
    char* copy = pestle_arena_copy(arena, word.data, word.size, 1);
    pestle_string_t own = {copy, word.size};
    if ((!copy && word.size) || !pestle_vec_push(&s->words, own)) {
      pestle_map_remove(&s->ids, word.data, word.size);
      return PESTLE_OOM();
    }
    slot->u64 = s->words.size - 1;
  }
  *out_id = (int32_t)slot->u64;
  return NULL;
}

static pestle_status_t read_word(pestle_strings_t* s, const char** at,
                                 char* buffer) {
  size_t size = 0, limit = strlen(*at);
  int c = next_byte(at);
  int32_t id;
  for (; c >= '0' && c <= '9'; c = next_byte(at)) {
    size = size * 10 + (size_t)(c - '0');
    if (size > limit) return damaged();
  }
  if (c != ':') return damaged();
  for (size_t i = 0; i < size; ++i) {
    c = next_byte(at);
    if (c < 0) return damaged();
    buffer[i] = (char)c;
  }
  return append(s, &s->arena, (pestle_string_t){buffer, size}, &id);
}

static pestle_status_t read_dictionary(pestle_strings_t* s, const char* text) {
  size_t size = strlen(text) + 1;
  if (*text != '"') return *text ? damaged() : NULL;
  char* buffer = pestle_alloc(s->allocator, size);
  if (!buffer) return PESTLE_OOM();
  pestle_status_t status = NULL;
  for (++text; !status && *text && *text != '"';)
    status = read_word(s, &text, buffer);
  pestle_dealloc(s->allocator, buffer, size);
  s->own = s->words.size;
  return status;
}

// --- The functions ---

pestle_status_t pestle_strings_create_text(pestle_context_t* context,
                                           const char* text,
                                           pestle_strings_t** out_strings) {
  *out_strings = NULL;
  pestle_allocator_t allocator = pestle_context_allocator(context);
  pestle_strings_t* s = pestle_alloc_zero(allocator, sizeof(*s));
  if (!s) return PESTLE_OOM();
  s->allocator = allocator;
  s->context = context;
  pestle_context_retain(context);
  pestle_map_init(allocator, &s->ids);
  pestle_vec_init(&s->words, allocator);
  pestle_arena_init(allocator, &s->arena);
  pestle_arena_init(allocator, &s->more);
  s->hash = pestle_dictionary_hash(text);
  pestle_status_t status = read_dictionary(s, text);
  if (status) {
    pestle_strings_release(s);
    return status;
  }
  *out_strings = s;
  return NULL;
}

uint64_t pestle_dictionary_hash(const char* text) {
  return pestle_hash64(text, strlen(text));
}

uint64_t pestle_strings_hash(const pestle_strings_t* strings) {
  return strings->hash;
}

pestle_str_t pestle_strings_word(const pestle_strings_t* strings, int32_t id) {
  if (id < 0 || (size_t)id >= strings->words.size) return PESTLE_STR("");
  pestle_string_t word = strings->words.data[id];
  return pestle_str_make(word.size ? word.data : "", word.size);
}

void pestle_field_append(pestle_strbuf_t* list, pestle_str_t text) {
  for (size_t i = 0; i < text.size; ++i) {
    unsigned char c = (unsigned char)text.data[i];
    bool plain = c > ' ' && c < 0x7f && c != '%';
    pestle_strbuf_appendf(list, plain ? "%c" : "%%%02x", c);
  }
  pestle_strbuf_append_char(list, ' ');
}

bool pestle_field_next(pestle_str_t* rest, pestle_strbuf_t* out) {
  pestle_str_t field;
  pestle_strbuf_clear(out);
  if (!rest->size || !pestle_str_next(rest, ' ', &field)) return false;
  for (size_t i = 0; i < field.size; ++i) {
    char c = field.data[i];
    if (c == '%' && i + 2 < field.size) {
      int value = pestle_hex_digit(field.data[i + 1]) * 16 +
                  pestle_hex_digit(field.data[i + 2]);
      c = (char)value;
      i += 2;
    }
    pestle_strbuf_append_char(out, c);
  }
  return true;
}

void pestle_strings_release(pestle_strings_t* strings) {
  if (!strings) return;
  pestle_context_t* context = strings->context;
  pestle_arena_deinit(&strings->more);
  pestle_arena_deinit(&strings->arena);
  pestle_vec_deinit(&strings->words);
  pestle_map_deinit(&strings->ids);
  pestle_dealloc(strings->allocator, strings, sizeof(*strings));
  pestle_context_release(context);
}

size_t pestle_strings_count(const pestle_strings_t* strings) {
  return strings ? strings->words.size : 0;
}

pestle_status_t pestle_strings_encode(pestle_strings_t* strings,
                                      const pestle_string_t* words,
                                      size_t count, int32_t* out_ids) {
  PESTLE_REQUIRE(strings && (words || !count) && (out_ids || !count),
                 "strings, the words and a place for their numbers");
  for (size_t i = 0; i < count; ++i) {
    pestle_string_t word = words[i];
    if (!word.size) word.data = "";
    if (!word.data ||
        !pestle_utf8_is_valid(pestle_str_make(word.data, word.size))) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "string %zu of %zu is no UTF-8, which strings of a "
                          "model must be",
                          i, count);
    }
    PESTLE_TRY(append(strings, &strings->more, word, &out_ids[i]));
  }
  return NULL;
}

pestle_status_t pestle_strings_decode(const pestle_strings_t* strings,
                                      const int32_t* ids, size_t count,
                                      pestle_string_t* out_words) {
  PESTLE_REQUIRE(strings && (ids || !count) && (out_words || !count),
                 "strings, the numbers and a place for their words");
  for (size_t i = 0; i < count; ++i) {
    if (ids[i] < 0 || (size_t)ids[i] >= strings->words.size) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "%d is the number of no string; there are %zu",
                          (int)ids[i], strings->words.size);
    }
    out_words[i] = strings->words.data[ids[i]];
  }
  return NULL;
}

void pestle_strings_forget(pestle_strings_t* strings) {
  if (!strings) return;
  while (strings->words.size > strings->own) {
    pestle_string_t word = strings->words.data[--strings->words.size];
    pestle_map_remove(&strings->ids, word.data, word.size);
  }
  pestle_arena_reset(&strings->more);
}

// SPDX-License-Identifier: Apache-2.0
// Attributes as MLIR writes them, in the words of its printer: what the text form
// of a program says and what its bytecode says are one.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "frontend/stablehlo/decode.h"
#include "ir/print_internal.h"

// Few bytes can name parts of parts that are very long.
enum { MAX_TEXT = 1 << 20, MAX_TEXTS = 64 * MAX_TEXT };

static void print_value(const pestle_generic_value_t* value,
                        pestle_strbuf_t* out);

// --- Scalars ---

// Six digits where they are the number, else as many as it takes.
static void print_float(const pestle_generic_value_t* value,
                        pestle_strbuf_t* out) {
  char text[48];
  double x = value->f64;
  uint64_t bits;
  if (!isfinite(x)) {
    memcpy(&bits, &x, sizeof(bits));
    pestle_strbuf_appendf(out, "0x%016llX", (unsigned long long)bits);
    return;
  }
  for (int digits = 6; digits <= 17; ++digits) {
    snprintf(text, sizeof(text), "%.*e", digits, x);
    if (strtod(text, NULL) == x) break;
  }
  pestle_str_from_locale(text);
  pestle_strbuf_append_c(out, text);
}

static void print_string(pestle_str_t text, pestle_strbuf_t* out) {
  pestle_strbuf_append_char(out, '"');
  for (size_t i = 0; i < text.size; ++i) {
    unsigned char c = (unsigned char)text.data[i];
    if (c == '\\') {
      pestle_strbuf_append_c(out, "\\\\");
    } else if (c < 32 || c > 126 || c == '"') {
      pestle_strbuf_appendf(out, "\\%02X", c);
    } else {
      pestle_strbuf_append_char(out, (char)c);
    }
  }
  pestle_strbuf_append_char(out, '"');
}

static void print_symbol(pestle_str_t name, pestle_strbuf_t* out) {
  bool bare = name.size && !(name.data[0] >= '0' && name.data[0] <= '9');
  for (size_t i = 0; i < name.size; ++i) {
    char c = name.data[i];
    bare &= (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
            (c >= '0' && c <= '9') || c == '_' || c == '$' || c == '.';
  }
  pestle_strbuf_append_char(out, '@');
  if (bare)
    pestle_strbuf_append(out, name);
  else
    print_string(name, out);
}

// --- What holds others ---

static bool is_bare_key(pestle_str_t key) {
  for (size_t i = 0; i < key.size; ++i) {
    char c = key.data[i];
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    bool later = (c >= '0' && c <= '9') || c == '$' || c == '.';
    if (!letter && !(i && later)) return false;
  }
  return key.size != 0;
}

static void print_number(const pestle_generic_value_t* value, bool in_list,
                         pestle_strbuf_t* out) {
  bool is_float = value->kind == PESTLE_GENERIC_FLOAT;
  if (is_float)
    print_float(value, out);
  else
    pestle_strbuf_append_i64(out, value->i64);
  // In lists the common types go without saying.
  bool common = pestle_str_equal_c(value->text, is_float ? "f64" : "i64");
  if (!value->text.size || (in_list && common)) return;
  pestle_strbuf_appendf(out, " : %.*s", PESTLE_STR_ARG(value->text));
}

static void print_list(const pestle_generic_value_t* value,
                       pestle_strbuf_t* out) {
  const pestle_generic_entry_t* e = value->entries;
  bool typed = value->text.size != 0;  // array<i64: 1, 2>
  if (typed) {
    pestle_strbuf_appendf(out, "array<%.*s%s", PESTLE_STR_ARG(value->text),
                          e ? ": " : "");
  } else {
    pestle_strbuf_append_char(out, '[');
  }
  for (; e && out->size < MAX_TEXT; e = e->next) {
    bool number = e->value.kind == PESTLE_GENERIC_INT ||
                  e->value.kind == PESTLE_GENERIC_FLOAT;
    if (number)
      print_number(&e->value, true, out);
    else
      print_value(&e->value, out);
    if (e->next) pestle_strbuf_append_c(out, ", ");
  }
  pestle_strbuf_append_char(out, typed ? '>' : ']');
}

static void print_dictionary(const pestle_generic_value_t* value,
                             pestle_strbuf_t* out) {
  pestle_strbuf_append_char(out, '{');
  const pestle_generic_entry_t* e = value->entries;
  for (; e && out->size < MAX_TEXT; e = e->next) {
    if (is_bare_key(e->key))
      pestle_strbuf_append(out, e->key);
    else
      print_string(e->key, out);
    if (e->value.kind != PESTLE_GENERIC_UNIT) {
      pestle_strbuf_append_c(out, " = ");
      print_value(&e->value, out);
    }
    if (e->next) pestle_strbuf_append_c(out, ", ");
  }
  pestle_strbuf_append_char(out, '}');
}

static void print_value(const pestle_generic_value_t* value,
                        pestle_strbuf_t* out) {
  switch (value->kind) {
    case PESTLE_GENERIC_UNIT:
      pestle_strbuf_append_c(out, "unit");
      return;
    case PESTLE_GENERIC_BOOL:
      pestle_strbuf_append_c(out, value->b ? "true" : "false");
      return;
    case PESTLE_GENERIC_INT:
    case PESTLE_GENERIC_FLOAT:
      print_number(value, false, out);
      return;
    case PESTLE_GENERIC_STRING:
      print_string(value->text, out);
      return;
    case PESTLE_GENERIC_SYMBOL:
      print_symbol(value->text, out);
      return;
    case PESTLE_GENERIC_LIST:
      print_list(value, out);
      return;
    case PESTLE_GENERIC_DICT:
      print_dictionary(value, out);
      return;
    case PESTLE_GENERIC_TYPE:
      pestle_type_print(&value->type, out);
      return;
    case PESTLE_GENERIC_ELEMENTS:
      pestle_print_elements(&value->elements, 0, out);
      pestle_strbuf_append_c(out, " : ");
      pestle_type_print(&value->elements.type, out);
      return;
    case PESTLE_GENERIC_WORD:
    case PESTLE_GENERIC_FUNCTION:
    case PESTLE_GENERIC_CONV:
    case PESTLE_GENERIC_OPAQUE:
      break;
  }
  pestle_str_t text = value->whole.size ? value->whole : value->text;
  pestle_strbuf_append(out, text);
}

pestle_status_t pestle_bytecode_attribute_text(
    pestle_bytecode_decoder_t* d, const pestle_generic_value_t* value,
    pestle_str_t* out_text) {
  pestle_strbuf_t text;
  *out_text = pestle_str_make(NULL, 0);
  pestle_strbuf_init(d->arena->allocator, &text);
  if (value->kind != PESTLE_GENERIC_UNIT) print_value(value, &text);
  pestle_status_t status = pestle_strbuf_status(&text);
  d->text_size += text.size;
  if (!status && (text.size > MAX_TEXT || d->text_size > MAX_TEXTS)) {
    status = PESTLE_ERROR(RESOURCE_EXHAUSTED,
                          "the text of an attribute is longer than a mebibyte, "
                          "or all are longer than 64");
  }
  if (!status) {
    char* kept = pestle_arena_strndup(d->arena, pestle_strbuf_view(&text));
    status = kept ? NULL : PESTLE_OOM();
    *out_text = pestle_str_make(kept, text.size);
  }
  pestle_strbuf_deinit(&text);
  return status;
}

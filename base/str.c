// SPDX-License-Identifier: Apache-2.0
#include "base/str.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

bool pestle_str_starts_with(pestle_str_t text, pestle_str_t prefix) {
  return text.size >= prefix.size &&
         pestle_str_equal(pestle_str_make(text.data, prefix.size), prefix);
}

bool pestle_str_ends_with(pestle_str_t text, pestle_str_t suffix) {
  return text.size >= suffix.size &&
         pestle_str_equal(
             pestle_str_slice(text, text.size - suffix.size, text.size),
             suffix);
}

size_t pestle_str_find_char(pestle_str_t text, char c) {
  const char* at = text.size ? memchr(text.data, c, text.size) : NULL;
  return at ? (size_t)(at - text.data) : SIZE_MAX;
}

size_t pestle_str_rfind_char(pestle_str_t text, char c) {
  for (size_t i = text.size; i > 0; --i) {
    if (text.data[i - 1] == c) return i - 1;
  }
  return SIZE_MAX;
}

size_t pestle_str_find(pestle_str_t text, pestle_str_t needle) {
  if (!needle.size) return 0;
  for (size_t at = 0; at + needle.size <= text.size; ++at) {
    pestle_str_t rest = pestle_str_slice(text, at, text.size);
    size_t next = pestle_str_find_char(rest, needle.data[0]);
    if (next == SIZE_MAX) return SIZE_MAX;
    at += next;
    if (pestle_str_starts_with(pestle_str_slice(text, at, text.size), needle)) {
      return at;
    }
  }
  return SIZE_MAX;
}

pestle_str_t pestle_str_slice(pestle_str_t text, size_t begin, size_t end) {
  if (end > text.size) end = text.size;
  if (begin > end) begin = end;
  return pestle_str_make(text.data ? text.data + begin : NULL, end - begin);
}

static bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

pestle_str_t pestle_str_trim(pestle_str_t text) {
  size_t begin = 0, end = text.size;
  while (begin < end && is_space(text.data[begin]))
    ++begin;
  while (end > begin && is_space(text.data[end - 1]))
    --end;
  return pestle_str_slice(text, begin, end);
}

bool pestle_str_split(pestle_str_t text, char separator, pestle_str_t* out_head,
                      pestle_str_t* out_tail) {
  size_t at = pestle_str_find_char(text, separator);
  bool found = at != SIZE_MAX;
  *out_head = pestle_str_slice(text, 0, at);
  *out_tail = pestle_str_slice(text, found ? at + 1 : text.size, text.size);
  return found;
}

bool pestle_str_next(pestle_str_t* rest, char separator,
                     pestle_str_t* out_field) {
  if (!rest->size) return false;
  pestle_str_split(*rest, separator, out_field, rest);
  return true;
}

bool pestle_str_is_one_of(pestle_str_t text, const char* words) {
  pestle_str_t rest = pestle_str(words), word;
  while (pestle_str_next(&rest, ' ', &word)) {
    if (word.size && pestle_str_equal(text, word)) return true;
  }
  return false;
}

// The value of a digit of any base up to 16, or 16.
static unsigned digit_value(char c) {
  if (c >= '0' && c <= '9') return (unsigned)(c - '0');
  if (c >= 'a' && c <= 'f') return (unsigned)(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return (unsigned)(c - 'A') + 10;
  return 16;
}

static bool has_hex_prefix(pestle_str_t text) {
  return text.size > 2 && text.data[0] == '0' &&
         (text.data[1] == 'x' || text.data[1] == 'X');
}

bool pestle_str_parse_u64(pestle_str_t text, uint64_t* out_value) {
  unsigned base = 10;
  if (has_hex_prefix(text)) {
    base = 16;
    text = pestle_str_slice(text, 2, text.size);
  }
  if (!text.size) return false;
  uint64_t value = 0;
  for (size_t i = 0; i < text.size; ++i) {
    unsigned digit = digit_value(text.data[i]);
    if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
        __builtin_add_overflow(value, digit, &value)) {
      return false;
    }
  }
  *out_value = value;
  return true;
}

bool pestle_str_parse_i64(pestle_str_t text, int64_t* out_value) {
  bool negative = text.size > 0 && text.data[0] == '-';
  if (negative) text = pestle_str_slice(text, 1, text.size);
  uint64_t magnitude;
  if (!pestle_str_parse_u64(text, &magnitude)) return false;
  uint64_t limit = (uint64_t)INT64_MAX + (negative ? 1 : 0);
  if (magnitude > limit) return false;
  // Negated in unsigned arithmetic, where INT64_MIN exists too.
  *out_value = (int64_t)(negative ? 0 - magnitude : magnitude);
  return true;
}

bool pestle_str_parse_bytes(pestle_str_t text, int64_t* out_bytes) {
  static const char letters[] = "KMG";
  const char* letter =
      text.size ? memchr(letters, text.data[text.size - 1], 3) : NULL;
  unsigned shift = letter ? 10 * (unsigned)(letter - letters + 1) : 0;
  if (letter) --text.size;
  int64_t value;
  if (!pestle_str_parse_i64(text, &value) || value < 0 ||
      value > INT64_MAX >> shift) {
    return false;
  }
  *out_bytes = value << shift;
  return true;
}

// What a number may be written with, beside inf and nan: strtod() also takes
// leading spaces, "infinity", "nan(...)" and the locale's decimal point.
static bool is_number_text(pestle_str_t text) {
  for (size_t i = 0; i < text.size; ++i) {
    char c = text.data[i];
    if (digit_value(c) < 16 || c == '.' || c == '-' || c == '+' || c == 'x' ||
        c == 'X' || c == 'p' || c == 'P') {
      continue;
    }
    return false;
  }
  return true;
}

static bool parse_special(pestle_str_t text, double* out_value) {
  bool negative = text.size > 0 && text.data[0] == '-';
  if (negative || (text.size > 0 && text.data[0] == '+')) {
    text = pestle_str_slice(text, 1, text.size);
  }
  double value;
  if (pestle_str_equal_c(text, "inf")) {
    value = (double)INFINITY;
  } else if (pestle_str_equal_c(text, "nan")) {
    value = (double)NAN;
  } else {
    return false;
  }
  *out_value = negative ? -value : value;
  return true;
}

// A point of several bytes occurs in no locale where it matters to us.
static char locale_point(void) {
  char sample[8];
  snprintf(sample, sizeof(sample), "%.1f", 1.5);
  return sample[1];
}

void pestle_str_to_locale(char* text) {
  char point = locale_point();
  if (point == '.') return;
  while (*text && *text != '.' && *text != point)
    ++text;
  // The C locale's number ends before another point.
  if (*text) *text = *text == '.' ? point : '\0';
}

void pestle_str_from_locale(char* text) {
  char* point = strchr(text, locale_point());
  if (point) *point = '.';
}

// strtod() reads the locale's decimal point, which the application may have
// set to something else: then the text is tried again with that.
static bool read_double(char* text, size_t size, double* out_value) {
  char* end;
  double value = strtod(text, &end);
  if (end != text + size && *end == '.') {
    *end = locale_point();
    value = strtod(text, &end);
  }
  if (end != text + size) return false;
  *out_value = value;
  return true;
}

bool pestle_str_parse_f64(pestle_str_t text, double* out_value) {
  char buffer[512];
  if (parse_special(text, out_value)) return true;
  if (!text.size || text.size >= sizeof(buffer) || !is_number_text(text)) {
    return false;
  }
  memcpy(buffer, text.data, text.size);
  buffer[text.size] = '\0';
  double value;
  if (!read_double(buffer, text.size, &value) || isinf(value)) return false;
  *out_value = value;
  return true;
}

void pestle_strbuf_init(pestle_allocator_t allocator,
                        pestle_strbuf_t* out_buffer) {
  *out_buffer = (pestle_strbuf_t){.allocator = allocator};
}

void pestle_strbuf_deinit(pestle_strbuf_t* buffer) {
  pestle_dealloc(buffer->allocator, buffer->data, buffer->capacity);
  pestle_strbuf_init(buffer->allocator, buffer);
}

void pestle_strbuf_clear(pestle_strbuf_t* buffer) {
  buffer->size = 0;
  buffer->failed = false;
  if (buffer->data) buffer->data[0] = '\0';
}

// Makes room for |extra| bytes and the terminator; returns where they go.
static char* grow(pestle_strbuf_t* buffer, size_t extra) {
  if (buffer->failed) return NULL;
  size_t needed;
  if (__builtin_add_overflow(buffer->size, extra, &needed) ||
      __builtin_add_overflow(needed, (size_t)1, &needed)) {
    buffer->failed = true;
    return NULL;
  }
  if (needed > buffer->capacity) {
    size_t capacity = buffer->capacity ? buffer->capacity : 64;
    while (capacity < needed) {
      if (__builtin_mul_overflow(capacity, (size_t)2, &capacity)) {
        capacity = needed;
      }
    }
    char* data = pestle_realloc(buffer->allocator, buffer->data,
                                buffer->capacity, capacity);
    if (!data) {
      buffer->failed = true;
      return NULL;
    }
    buffer->data = data;
    buffer->capacity = capacity;
  }
  return buffer->data + buffer->size;
}

static void advance(pestle_strbuf_t* buffer, size_t size) {
  buffer->size += size;
  buffer->data[buffer->size] = '\0';
}

void pestle_strbuf_append_bytes(pestle_strbuf_t* buffer, const void* data,
                                size_t size) {
  char* to = grow(buffer, size);
  if (!to) return;
  if (size) memcpy(to, data, size);
  advance(buffer, size);
}

void pestle_strbuf_append(pestle_strbuf_t* buffer, pestle_str_t text) {
  pestle_strbuf_append_bytes(buffer, text.data, text.size);
}

void pestle_strbuf_append_c(pestle_strbuf_t* buffer, const char* text) {
  pestle_strbuf_append_bytes(buffer, text, strlen(text));
}

void pestle_strbuf_append_char(pestle_strbuf_t* buffer, char c) {
  pestle_strbuf_append_fill(buffer, c, 1);
}

void pestle_strbuf_append_fill(pestle_strbuf_t* buffer, char c, size_t count) {
  char* to = grow(buffer, count);
  if (!to) return;
  memset(to, c, count);
  advance(buffer, count);
}

void pestle_strbuf_appendf_v(pestle_strbuf_t* buffer, const char* format,
                             va_list args) {
  char small[256];
  va_list again;
  va_copy(again, args);
  int length = vsnprintf(small, sizeof(small), format, args);
  if (length < 0) {
    buffer->failed = true;
  } else if ((size_t)length < sizeof(small)) {
    pestle_strbuf_append_bytes(buffer, small, (size_t)length);
  } else {
    char* to = grow(buffer, (size_t)length);
    if (to) {
      vsnprintf(to, (size_t)length + 1, format, again);
      advance(buffer, (size_t)length);
    }
  }
  va_end(again);
}

void pestle_strbuf_appendf(pestle_strbuf_t* buffer, const char* format, ...) {
  va_list args;
  va_start(args, format);
  pestle_strbuf_appendf_v(buffer, format, args);
  va_end(args);
}

void pestle_strbuf_append_u64(pestle_strbuf_t* buffer, uint64_t value) {
  char digits[20];
  size_t at = sizeof(digits);
  do {
    digits[--at] = (char)('0' + value % 10);
    value /= 10;
  } while (value);
  pestle_strbuf_append_bytes(buffer, digits + at, sizeof(digits) - at);
}

void pestle_strbuf_append_i64(pestle_strbuf_t* buffer, int64_t value) {
  if (value < 0) pestle_strbuf_append_char(buffer, '-');
  pestle_strbuf_append_u64(buffer,
                           value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

// Writes |value| with |digits| significant digits and a '.' as decimal point.
static void format_double(double value, int digits, char* text, size_t size) {
  snprintf(text, size, "%.*g", digits, value);
  bool has_point = false;
  for (char* c = text; *c; ++c) {
    if (digit_value(*c) < 16 || *c == '-' || *c == '+') {
      has_point = has_point || *c == 'e';
      continue;
    }
    *c = '.';
    has_point = true;
  }
  if (!has_point) strncat(text, ".0", size - strlen(text) - 1);
}

// Tries more and more digits until the text reads back as |value|. %g drops
// trailing zeros, so that any text of up to DBL_DIG (FLT_DIG) digits is found
// by the first try; only denormals have a precision below that.
static void append_shortest(pestle_strbuf_t* buffer, double value,
                            int first_digits, int last_digits, bool single) {
  if (isnan(value)) {
    pestle_strbuf_append_c(buffer, "nan");
    return;
  }
  if (isinf(value)) {
    pestle_strbuf_append_c(buffer, value < 0 ? "-inf" : "inf");
    return;
  }
  char text[48];
  for (int digits = first_digits; digits <= last_digits; ++digits) {
    format_double(value, digits, text, sizeof(text));
    double again;
    if (!pestle_str_parse_f64(pestle_str(text), &again)) continue;
    if (single ? (float)again == (float)value : again == value) break;
  }
  pestle_strbuf_append_c(buffer, text);
}

void pestle_strbuf_append_f64(pestle_strbuf_t* buffer, double value) {
  int first_digits = fabs(value) < DBL_MIN ? 1 : DBL_DIG;
  append_shortest(buffer, value, first_digits, DBL_DECIMAL_DIG, false);
}

void pestle_strbuf_append_f32(pestle_strbuf_t* buffer, float value) {
  int first_digits = fabsf(value) < FLT_MIN ? 1 : FLT_DIG;
  append_shortest(buffer, (double)value, first_digits, FLT_DECIMAL_DIG, true);
}

void pestle_strbuf_append_quoted(pestle_strbuf_t* buffer, pestle_str_t text) {
  static const char digits[] = "0123456789ABCDEF";
  pestle_strbuf_append_char(buffer, '"');
  for (size_t i = 0; i < text.size; ++i) {
    unsigned char c = (unsigned char)text.data[i];
    if (c == '"' || c == '\\') {
      pestle_strbuf_append_char(buffer, '\\');
      pestle_strbuf_append_char(buffer, (char)c);
    } else if (c == '\n') {
      pestle_strbuf_append_c(buffer, "\\n");
    } else if (c == '\t') {
      pestle_strbuf_append_c(buffer, "\\t");
    } else if (c < 0x20 || c > 0x7e) {
      char escape[3] = {'\\', digits[c >> 4], digits[c & 15]};
      pestle_strbuf_append_bytes(buffer, escape, sizeof(escape));
    } else {
      pestle_strbuf_append_char(buffer, (char)c);
    }
  }
  pestle_strbuf_append_char(buffer, '"');
}

void pestle_strbuf_append_name(pestle_strbuf_t* buffer, const char* name) {
  const unsigned char* c = (const unsigned char*)name;
  for (; *c; ++c) {
    // U+0080 to U+009F are control characters of two bytes.
    bool two = c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0;
    if (*c >= 0x20 && *c != 0x7f && !two) {
      pestle_strbuf_append_char(buffer, (char)*c);
      continue;
    }
    pestle_strbuf_appendf(buffer, "\\x%02x", *c);
    if (two) pestle_strbuf_appendf(buffer, "\\x%02x", *++c);
  }
}

void pestle_strbuf_append_listed(pestle_strbuf_t* buffer, const char* name) {
  pestle_strbuf_append_c(buffer, buffer->size ? ", '" : "'");
  pestle_strbuf_append_name(buffer, name);
  pestle_strbuf_append_char(buffer, '\'');
}

pestle_status_t pestle_strbuf_status(const pestle_strbuf_t* buffer) {
  return buffer->failed ? PESTLE_OOM() : NULL;
}

pestle_status_t pestle_strbuf_take(pestle_strbuf_t* buffer, char** out_text,
                                   size_t* out_size) {
  *out_text = NULL;
  *out_size = 0;
  PESTLE_TRY(pestle_strbuf_status(buffer));
  // The block is handed over at its exact size, so that it can be freed.
  char* text = pestle_realloc(buffer->allocator, buffer->data, buffer->capacity,
                              buffer->size + 1);
  if (!text) return PESTLE_OOM();
  text[buffer->size] = '\0';
  *out_text = text;
  *out_size = buffer->size;
  pestle_strbuf_init(buffer->allocator, buffer);
  return NULL;
}

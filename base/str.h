// SPDX-License-Identifier: Apache-2.0
// Text: pestle_str_t, a borrowed view that need not be terminated, and
// pestle_strbuf_t, a builder that remembers a failed allocation so that a
// printer checks once at its end. Nothing here depends on the C locale.
#ifndef PESTLE_BASE_STR_H_
#define PESTLE_BASE_STR_H_

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "pestle/allocator.h"
#include "pestle/status.h"

typedef struct pestle_str_t {
  const char* data;
  size_t size;
} pestle_str_t;

// For printf: printf("%.*s", PESTLE_STR_ARG(name)). Cuts at INT_MAX bytes.
#define PESTLE_STR_ARG(str) pestle_str_precision(str), pestle_str_chars(str)
static inline int pestle_str_precision(pestle_str_t str) {
  return (int)(str.size > 0x7fffffff ? 0x7fffffff : str.size);
}
static inline const char* pestle_str_chars(pestle_str_t str) {
  return str.size ? str.data : "";
}

// A view of a string constant.
#define PESTLE_STR(literal) \
  ((pestle_str_t){.data = (literal), .size = sizeof(literal) - 1})

static inline pestle_str_t pestle_str_make(const char* data, size_t size) {
  return (pestle_str_t){.data = data, .size = size};
}
// A view of a terminated string; NULL gives an empty view.
static inline pestle_str_t pestle_str(const char* text) {
  return pestle_str_make(text, text ? strlen(text) : 0);
}
static inline bool pestle_str_equal(pestle_str_t a, pestle_str_t b) {
  return a.size == b.size && (!a.size || !memcmp(a.data, b.data, a.size));
}
static inline bool pestle_str_equal_c(pestle_str_t a, const char* b) {
  return pestle_str_equal(a, pestle_str(b));
}

// Whether |text| is one of |words|, between which spaces stand.
bool pestle_str_is_one_of(pestle_str_t text, const char* words);
bool pestle_str_starts_with(pestle_str_t text, pestle_str_t prefix);
bool pestle_str_ends_with(pestle_str_t text, pestle_str_t suffix);
// Index of the first occurrence, or SIZE_MAX.
size_t pestle_str_find_char(pestle_str_t text, char c);
size_t pestle_str_rfind_char(pestle_str_t text, char c);
size_t pestle_str_find(pestle_str_t text, pestle_str_t needle);
// Bytes [begin, end), both clamped to the size.
pestle_str_t pestle_str_slice(pestle_str_t text, size_t begin, size_t end);
// Without leading and trailing space, tab, CR and LF.
pestle_str_t pestle_str_trim(pestle_str_t text);
// Cuts |text| at the first |separator|: |out_head| is what is before it,
// |out_tail| what is after. Returns false, with the whole text as head and an
// empty tail, when there is none. The out_ views may be |text| itself.
bool pestle_str_split(pestle_str_t text, char separator, pestle_str_t* out_head,
                      pestle_str_t* out_tail);
// Takes the next |separator|-separated field off |rest|. False when there is
// none left; "a,,b" has three fields, "" none, "a," one.
bool pestle_str_next(pestle_str_t* rest, char separator,
                     pestle_str_t* out_field);

// Each parses the whole of |text|, without spaces; false when it is not a
// number of that kind or does not fit (nothing is written then). Integers are
// decimal or 0x hexadecimal.
bool pestle_str_parse_i64(pestle_str_t text, int64_t* out_value);
bool pestle_str_parse_u64(pestle_str_t text, uint64_t* out_value);
// Bytes, or KiB, MiB or GiB with one of K, M, G behind the number: "512M".
bool pestle_str_parse_bytes(pestle_str_t text, int64_t* out_bytes);
// Decimal or 0x hexadecimal floating point, inf, nan. Overflow is a failure,
// underflow rounds.
bool pestle_str_parse_f64(pestle_str_t text, double* out_value);

// What strtod() reads and snprintf() writes has the decimal point of the locale that the
// application has set. The first makes of a number with '.', and of what follows it, a text
// that strtod() reads as it would in the C locale; the second makes that point '.' again.
void pestle_str_to_locale(char* text);
void pestle_str_from_locale(char* text);

// A growing text. |data| is NULL or terminated. Initialise with
// pestle_strbuf_init(); a buffer that failed once stays failed and empty of
// later text.
typedef struct pestle_strbuf_t {
  pestle_allocator_t allocator;
  char* data;
  size_t size;
  size_t capacity;
  bool failed;
} pestle_strbuf_t;

void pestle_strbuf_init(pestle_allocator_t allocator,
                        pestle_strbuf_t* out_buffer);
void pestle_strbuf_deinit(pestle_strbuf_t* buffer);
// Forgets the text and a failure, keeps the memory.
void pestle_strbuf_clear(pestle_strbuf_t* buffer);

void pestle_strbuf_append(pestle_strbuf_t* buffer, pestle_str_t text);
void pestle_strbuf_append_c(pestle_strbuf_t* buffer, const char* text);
void pestle_strbuf_append_bytes(pestle_strbuf_t* buffer, const void* data,
                                size_t size);
void pestle_strbuf_append_char(pestle_strbuf_t* buffer, char c);
void pestle_strbuf_append_fill(pestle_strbuf_t* buffer, char c, size_t count);
void pestle_strbuf_appendf(pestle_strbuf_t* buffer, const char* format, ...)
    PESTLE_PRINTF(2, 3);
void pestle_strbuf_appendf_v(pestle_strbuf_t* buffer, const char* format,
                             va_list args);
void pestle_strbuf_append_i64(pestle_strbuf_t* buffer, int64_t value);
void pestle_strbuf_append_u64(pestle_strbuf_t* buffer, uint64_t value);
// The shortest decimal text that reads back as the same number, always with a
// '.' or an exponent ("1.0", "1e+20"); "inf", "-inf", "nan".
void pestle_strbuf_append_f64(pestle_strbuf_t* buffer, double value);
void pestle_strbuf_append_f32(pestle_strbuf_t* buffer, float value);
// |text| between double quotes with \", \\, \n, \t and \XX (two upper-case
// hexadecimal digits, as MLIR writes) for other control bytes and bytes > 126.
void pestle_strbuf_append_quoted(pestle_strbuf_t* buffer, pestle_str_t text);
// A name that a model gave, for somebody to read on one line: control characters,
// which would move a terminal's cursor or change its colours, as \xNN.
void pestle_strbuf_append_name(pestle_strbuf_t* buffer, const char* name);
// The next of the names that |buffer| lists: "'a'", then ", 'b'".
void pestle_strbuf_append_listed(pestle_strbuf_t* buffer, const char* name);

// OK, or OUT_OF_MEMORY when an append failed.
PESTLE_NODISCARD pestle_status_t
pestle_strbuf_status(const pestle_strbuf_t* buffer);
static inline pestle_str_t pestle_strbuf_view(const pestle_strbuf_t* buffer) {
  return pestle_str_make(buffer->data, buffer->size);
}
// Terminated, never NULL; valid until the next append.
static inline const char* pestle_strbuf_cstr(const pestle_strbuf_t* buffer) {
  return buffer->data ? buffer->data : "";
}
// Hands over the text as a block of |out_size| + 1 bytes, to be freed with
// pestle_dealloc(allocator, text, out_size + 1); the buffer is empty
// afterwards.
PESTLE_NODISCARD pestle_status_t pestle_strbuf_take(pestle_strbuf_t* buffer,
                                                    char** out_text,
                                                    size_t* out_size);

#endif  // PESTLE_BASE_STR_H_

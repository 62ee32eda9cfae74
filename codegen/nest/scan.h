// SPDX-License-Identifier: Apache-2.0
// The scanner of codegen's texts: kernels, nests and schedule rows.
#ifndef PESTLE_CODEGEN_NEST_SCAN_H_
#define PESTLE_CODEGEN_NEST_SCAN_H_

#include "base/arena.h"
#include "base/str.h"
#include "codegen/nest/schedule_row.h"
#include "pestle/status.h"

typedef struct pestle_scan_t {
  const char* file;
  const char* text;
  size_t size, at;
  size_t token;  // where the token that is being looked at began
  bool lines;    // a newline ends a row and is no space
  bool dots;     // words may hold '.'
  pestle_allocator_t allocator;  // of messages
  pestle_arena_t* arena;         // of names and quoted texts
} pestle_scan_t;

// MALFORMED with "file:line:col: " and the message, which says what was
// expected.
PESTLE_NODISCARD PESTLE_PRINTF(2, 3) pestle_status_t
    pestle_scan_error(const pestle_scan_t* s, const char* format, ...);
// Passes spaces and comments.
void pestle_scan_skip(pestle_scan_t* s);
bool pestle_scan_at_comment(const pestle_scan_t* s);
// The next character, or 0 at the end.
char pestle_scan_peek(pestle_scan_t* s);
bool pestle_scan_accept(pestle_scan_t* s, char c);
PESTLE_NODISCARD pestle_status_t pestle_scan_expect(pestle_scan_t* s, char c);
// Letters, digits, '_' and perhaps '.'; empty when there are none.
pestle_str_t pestle_scan_word(pestle_scan_t* s);
bool pestle_scan_accept_word(pestle_scan_t* s, const char* wanted);
PESTLE_NODISCARD pestle_status_t pestle_scan_expect_word(pestle_scan_t* s,
                                                         const char* wanted);
// An identifier, copied into the arena. |what| says of what.
PESTLE_NODISCARD pestle_status_t pestle_scan_name(pestle_scan_t* s,
                                                  const char* what,
                                                  const char** out_name);
PESTLE_NODISCARD pestle_status_t pestle_scan_int(pestle_scan_t* s, int64_t lo,
                                                 int64_t hi,
                                                 int64_t* out_value);
// The characters of a number of any kind, sign and exponent included.
pestle_str_t pestle_scan_number(pestle_scan_t* s);
// A quoted text without escapes, copied into the arena.
PESTLE_NODISCARD pestle_status_t pestle_scan_quoted(pestle_scan_t* s,
                                                    const char** out_text);

// Rows until '}' or the end.
PESTLE_NODISCARD pestle_status_t
pestle_schedule_rows_scan(pestle_scan_t* s, pestle_schedule_rows_t* rows);

#endif  // PESTLE_CODEGEN_NEST_SCAN_H_

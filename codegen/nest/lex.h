// SPDX-License-Identifier: Apache-2.0
// The lexer of the texts that codegen reads: kernels, nests and schedule primitives.
#ifndef PESTLE_CODEGEN_NEST_LEX_H_
#define PESTLE_CODEGEN_NEST_LEX_H_

#include "base/arena.h"
#include "base/str.h"
#include "codegen/nest/primitive.h"
#include "pestle/status.h"

typedef struct pestle_lex_t {
  const char* file;
  const char* text;
  size_t size, at;
  size_t token;  // where the token that is being looked at began
  bool lines;    // a newline ends a primitive and is no space
  bool dots;     // words may hold '.'
  pestle_allocator_t allocator;  // of messages
  pestle_arena_t* arena;         // of names and quoted texts
} pestle_lex_t;

// MALFORMED with "file:line:col: " and the message, which says what was
// expected.
PESTLE_NODISCARD PESTLE_PRINTF(2, 3) pestle_status_t
    pestle_lex_error(const pestle_lex_t* s, const char* format, ...);
// Passes spaces and comments.
void pestle_lex_skip(pestle_lex_t* s);
bool pestle_lex_at_comment(const pestle_lex_t* s);
// The next character, or 0 at the end.
char pestle_lex_peek(pestle_lex_t* s);
bool pestle_lex_accept(pestle_lex_t* s, char c);
PESTLE_NODISCARD pestle_status_t pestle_lex_expect(pestle_lex_t* s, char c);
// Letters, digits, '_' and perhaps '.'; empty when there are none.
pestle_str_t pestle_lex_word(pestle_lex_t* s);
bool pestle_lex_accept_word(pestle_lex_t* s, const char* wanted);
PESTLE_NODISCARD pestle_status_t pestle_lex_expect_word(pestle_lex_t* s,
                                                        const char* wanted);
// An identifier, copied into the arena. |what| says of what.
PESTLE_NODISCARD pestle_status_t pestle_lex_name(pestle_lex_t* s,
                                                 const char* what,
                                                 const char** out_name);
PESTLE_NODISCARD pestle_status_t pestle_lex_int(pestle_lex_t* s, int64_t lo,
                                                int64_t hi, int64_t* out_value);
// The characters of a number of any kind, sign and exponent included.
pestle_str_t pestle_lex_number(pestle_lex_t* s);
// A quoted text without escapes, copied into the arena.
PESTLE_NODISCARD pestle_status_t pestle_lex_quoted(pestle_lex_t* s,
                                                   const char** out_text);

// The template whose name comes next, or NULL.
const pestle_template_t* pestle_lex_template(pestle_lex_t* s);

// Rows until '}' or the end.
PESTLE_NODISCARD pestle_status_t
pestle_primitives_lex(pestle_lex_t* s, pestle_primitives_t* rows);

#endif  // PESTLE_CODEGEN_NEST_LEX_H_

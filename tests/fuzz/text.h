// SPDX-License-Identifier: Apache-2.0
// Mutations of IR text: by token (names, numbers, ops and dtypes for others of their
// kind), by group (what a bracket holds), by line (an op less, twice, elsewhere), and
// rarely by byte. Ops come from the tables of ops.
#ifndef PESTLE_TESTS_FUZZ_TEXT_H_
#define PESTLE_TESTS_FUZZ_TEXT_H_

#include <ctype.h>
#include <stdio.h>

#include "mutate.h"
#include "pestle/types.h"

enum { FUZZ_TOKENS = 8192, FUZZ_TEXT = 1 << 16 };

typedef enum fuzz_kind_t {
  FUZZ_NAME,    // %x, @f, ^bb0, #a
  FUZZ_WORD,    // stablehlo.add, f32, tensor
  FUZZ_NUMBER,  // 12, -1.5e+3, 0x7fc0
  FUZZ_STRING,
  FUZZ_MARK,  // one byte of punctuation
} fuzz_kind_t;

typedef struct fuzz_token_t {
  uint32_t at, size;
  fuzz_kind_t kind;
} fuzz_token_t;

static const char* const fuzz_ops[] = {
#define PESTLE_OP_BEGIN(NAME, op, mlir, ...) mlir,
#define PESTLE_OP_ATTR(...)
#define PESTLE_OP_END(...)
#include "pestle/ops.def"
#define PESTLE_SCALAR(NAME, op, mlir, ...) mlir,
#include "pestle/scalar.def"
};

static const char* const fuzz_dtypes[] = {
#define X(NAME, text, ...) text,
    PESTLE_DTYPES(X)
#undef X
        "!quant.uniform<i8:f32, 0.5:3>",
    "!stablehlo.token",
    "i128",
    "i3",
    "tuple<tensor<f32>>",
};

static const char* const fuzz_marks[] = {"(", ")", "<", ">", "{",  "}", "[",
                                         "]", ",", ":", "=", "->", "x", "?"};

static inline bool fuzz_is_word(int c) {
  return isalnum(c) || c == '_' || c == '.' || c == '$';
}

static inline size_t fuzz_tokens(const uint8_t* text, size_t size,
                                 fuzz_token_t* tokens) {
  size_t count = 0, at = 0;
  while (at < size && count < FUZZ_TOKENS) {
    size_t begin = at;
    int c = text[at++];
    fuzz_kind_t kind = FUZZ_MARK;
    if (isspace(c)) continue;
    if (c == '"') {
      kind = FUZZ_STRING;
      while (at < size && text[at] != '"' && text[at] != '\n')
        at += text[at] == '\\' && at + 1 < size ? 2 : 1;
      if (at < size) ++at;
    } else if (strchr("%@^#!", c) && c) {
      kind = FUZZ_NAME;
      while (at < size && fuzz_is_word(text[at]))
        ++at;
    } else if (isdigit(c) ||
               (c == '-' && at < size && isdigit(text[at]) != 0)) {
      kind = FUZZ_NUMBER;
      while (at < size && (isxdigit(text[at]) || text[at] == '.' ||
                           (text[at] == 'x' && text[at - 1] == '0') ||
                           (strchr("+-", text[at]) && text[at - 1] == 'e')))
        ++at;
    } else if (isalpha(c) || c == '_') {
      kind = FUZZ_WORD;
      while (at < size && fuzz_is_word(text[at]))
        ++at;
    }
    if (at > size) at = size;
    tokens[count++] =
        (fuzz_token_t){(uint32_t)begin, (uint32_t)(at - begin), kind};
  }
  return count;
}

// One of |kind|, from a token picked at random on; or |count|.
static inline size_t fuzz_pick(const fuzz_token_t* tokens, size_t count,
                               fuzz_kind_t kind, uint64_t* state) {
  size_t from = fuzz_below(state, count);
  for (size_t i = 0; i < count; ++i) {
    size_t at = (from + i) % count;
    if (tokens[at].kind == kind) return at;
  }
  return count;
}

static inline const char* fuzz_one_of(const char* const* list, size_t count,
                                      uint64_t* state) {
  return list[fuzz_below(state, count)];
}
#define FUZZ_ONE_OF(list, state) \
  fuzz_one_of((list), sizeof(list) / sizeof(*(list)), (state))

// A number as text: an edge, a neighbour of what is there, or a float.
static inline void fuzz_number_text(char out[32], uint64_t* state) {
  static const char* const floats[] = {
      "0x7FC00000", "0xFF800000", "1.0e+40", "-0.0", "4.9e-324",
      "0x",         "1e",         "0.5",     "nan",  "0x7FF0000000000001"};
  uint64_t value = fuzz_number(state);
  switch (fuzz_below(state, 4)) {
    case 0:
      snprintf(out, 32, "%s", FUZZ_ONE_OF(floats, state));
      return;
    case 1:
      snprintf(out, 32, "-%llu", (unsigned long long)value);
      return;
    default:
      snprintf(out, 32, "%llu", (unsigned long long)value);
      return;
  }
}

// The end of the bracket that opens at |text|[at], or of the line.
static inline size_t fuzz_group_end(const uint8_t* text, size_t size,
                                    size_t at) {
  int depth = 0;
  for (size_t i = at; i < size; ++i) {
    if (strchr("([{<", text[i]) && text[i]) ++depth;
    if (strchr(")]}>", text[i]) && text[i] && --depth <= 0) return i + 1;
  }
  return size;
}

static inline size_t fuzz_line(const uint8_t* text, size_t size, size_t at,
                               size_t* out_end) {
  size_t begin = at < size ? at : size, end = begin;
  while (begin && text[begin - 1] != '\n')
    --begin;
  while (end < size && text[end] != '\n')
    ++end;
  *out_end = end < size ? end + 1 : end;
  return begin;
}

// Changes one token by its kind.
static inline size_t fuzz_change_token(uint8_t* text, size_t size, size_t room,
                                       const fuzz_token_t* tokens, size_t count,
                                       uint64_t* state) {
  static uint8_t copy[FUZZ_TEXT];
  fuzz_kind_t kind = (fuzz_kind_t)fuzz_below(state, FUZZ_MARK + 1);
  size_t i = fuzz_pick(tokens, count, kind, state);
  if (i == count) return size;
  const fuzz_token_t* t = &tokens[i];
  char number[32];
  const char* with = number;
  // Another one of the text, so that operands are what others are.
  const fuzz_token_t* other = &tokens[fuzz_pick(tokens, count, kind, state)];
  bool is_own = fuzz_below(state, 2) == 0;
  if (kind == FUZZ_NUMBER) {
    fuzz_number_text(number, state);
  } else if (kind == FUZZ_WORD) {
    bool is_op = memchr(text + t->at, '.', t->size) != NULL;
    with =
        is_op ? FUZZ_ONE_OF(fuzz_ops, state) : FUZZ_ONE_OF(fuzz_dtypes, state);
  } else if (kind == FUZZ_STRING) {
    snprintf(number, sizeof(number), "\"%.28s\"", FUZZ_ONE_OF(fuzz_ops, state));
  } else {
    is_own = kind == FUZZ_NAME || is_own;
    with = FUZZ_ONE_OF(fuzz_marks, state);
  }
  if (!is_own) {
    return fuzz_replace(text, size, room, t->at, t->size, with, strlen(with));
  }
  memcpy(copy, text + other->at, other->size);
  return fuzz_replace(text, size, room, t->at, t->size, copy, other->size);
}

// A line or a bracket's group less, twice, or elsewhere.
static inline size_t fuzz_change_piece(uint8_t* text, size_t size, size_t room,
                                       uint64_t* state) {
  static uint8_t copy[FUZZ_TEXT];
  size_t begin = fuzz_below(state, size), end;
  if (fuzz_below(state, 2)) {
    while (begin < size && !(strchr("([{<", text[begin]) && text[begin]))
      ++begin;
    end = fuzz_group_end(text, size, begin);
  } else {
    begin = fuzz_line(text, size, begin, &end);
  }
  size_t length = end - begin;
  if (!length) return size;
  memcpy(copy, text + begin, length);
  size_t how = fuzz_below(state, 3);
  if (how != 1) size = fuzz_replace(text, size, room, begin, length, NULL, 0);
  if (how == 0) return size;
  size_t ignored, to = fuzz_below(state, size + 1);
  if (copy[length - 1] == '\n') to = fuzz_line(text, size, to, &ignored);
  return fuzz_replace(text, size, room, to, 0, copy, length);
}

static inline size_t fuzz_change_text(uint8_t* text, size_t size, size_t room,
                                      uint64_t* state) {
  static fuzz_token_t tokens[FUZZ_TOKENS];
  if (!size || size > FUZZ_TEXT / 2) return size;
  size_t how = fuzz_below(state, 20);
  if (how == 0) {
    uint8_t byte = (uint8_t)fuzz_next(state);
    return fuzz_bytes(text, size, room, &byte, 1, state);
  }
  if (how < 5) return fuzz_change_piece(text, size, room, state);
  size_t count = fuzz_tokens(text, size, tokens);
  if (!count) return size;
  if (how > 6) return fuzz_change_token(text, size, room, tokens, count, state);
  // One more, or one less.
  const fuzz_token_t* t = &tokens[fuzz_below(state, count)];
  if (how == 5) return fuzz_replace(text, size, room, t->at, t->size, NULL, 0);
  const char* mark = FUZZ_ONE_OF(fuzz_marks, state);
  return fuzz_replace(text, size, room, t->at, 0, mark, strlen(mark));
}

#endif  // PESTLE_TESTS_FUZZ_TEXT_H_

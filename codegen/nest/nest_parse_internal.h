// SPDX-License-Identifier: Apache-2.0
// Shared by the nest_parse*.c files; nobody else includes it.
#ifndef PESTLE_CODEGEN_NEST_NEST_PARSE_INTERNAL_H_
#define PESTLE_CODEGEN_NEST_NEST_PARSE_INTERNAL_H_

#include "codegen/nest/lex.h"
#include "codegen/nest/nest.h"

// Extents and factors are at most this.
#define PESTLE_NEST_LARGEST ((int64_t)1 << 53)

typedef struct pestle_nest_label_t {
  const pestle_expr_t* expr;
  uint32_t height;
} pestle_nest_label_t;

typedef struct pestle_nest_write_t {
  uint32_t tensor;
  const pestle_expr_t *value, *init, *combine;
  const pestle_affine_t* const* index;
} pestle_nest_write_t;

typedef struct pestle_nest_at_t {
  uint32_t stage;
  size_t token;
  const char* consumer;
  const char* axis;  // NULL: before its loops
} pestle_nest_at_t;

typedef struct pestle_nest_parser_t {
  pestle_lex_t s;
  pestle_nest_t* nest;
  uint32_t stage;    // that is being read
  uint32_t splits;   // in it
  uint32_t nesting;  // of the expression that is being read
  uint32_t height;   // of the one that was read last: operations on a path
  PESTLE_VEC(pestle_nest_label_t) labels;
  PESTLE_VEC(pestle_nest_write_t) writes;
  PESTLE_VEC(pestle_nest_at_t) places;
} pestle_nest_parser_t;

bool pestle_nest_parse_dtype(pestle_str_t name, pestle_dtype_t* out_dtype);
// A scalar row by name.
bool pestle_nest_parse_op(const char* name, pestle_op_t* out_op);
PESTLE_NODISCARD pestle_status_t
pestle_nest_parse_expr(pestle_nest_parser_t* p, const pestle_expr_t** out_expr);
PESTLE_NODISCARD pestle_status_t pestle_nest_parse_affine(
    pestle_nest_parser_t* p, const pestle_affine_t** out_affine);
// "%3 = expression"
PESTLE_NODISCARD pestle_status_t
pestle_nest_parse_binding(pestle_nest_parser_t* p);

#endif  // PESTLE_CODEGEN_NEST_NEST_PARSE_INTERNAL_H_

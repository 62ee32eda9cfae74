// SPDX-License-Identifier: Apache-2.0
// The rows of ops.def and scalar.def as tables: what is known of each op and attribute.
#include "pestle/op.h"

#include "ir/graph.h"

// Columns of the rows, spelt there without a prefix.
#define COUNT_0 0
#define COUNT_1 1
#define COUNT_2 2
#define COUNT_3 3
#define COUNT_V PESTLE_VARIADIC
#define COMM PESTLE_OP_FLAG_COMM
#define ASSOC PESTLE_OP_FLAG_ASSOC
#define IDEM PESTLE_OP_FLAG_IDEM
#define TRANS PESTLE_OP_FLAG_TRANS
#define TERMINATOR PESTLE_OP_FLAG_TERMINATOR
#define EFFECT PESTLE_OP_FLAG_EFFECT
#define UPDATES PESTLE_OP_FLAG_UPDATES
#define SPLITS PESTLE_OP_FLAG_SPLITS

const pestle_op_info_t* pestle_op_info(pestle_op_t op) {
  static const pestle_op_info_t rows[] = {
#define PESTLE_SCALAR(NAME, op, mlir, n, RULE, KINDS, FLAGS, ...)     \
  {#op,   mlir, n, 0, 1, PESTLE_RULE_##RULE, PESTLE_FUSE_ELEMENTWISE, \
   KINDS, FLAGS},
#include "pestle/scalar.def"
#define PESTLE_OP_BEGIN(NAME, op, mlir, OPERANDS, REGIONS, RESULTS, TYPE, \
                        FUSE, FLAGS)                                      \
  {#op,                                                                   \
   mlir,                                                                  \
   COUNT_##OPERANDS,                                                      \
   COUNT_##REGIONS,                                                       \
   COUNT_##RESULTS,                                                       \
   PESTLE_RULE_##TYPE,                                                    \
   PESTLE_FUSE_##FUSE,                                                    \
   0,                                                                     \
   FLAGS},
#include "pestle/ops.def"
  };
  _Static_assert(sizeof(rows) / sizeof(rows[0]) == PESTLE_OP_COUNT,
                 "one row an op");
  return (unsigned)op < PESTLE_OP_COUNT ? &rows[op] : NULL;
}

const char* pestle_attr_name_text(pestle_attr_name_t name) {
  static const char* const names[] = {
#define ATTR_TEXT(name) #name,
      PESTLE_ATTR_NAMES(ATTR_TEXT)
#undef ATTR_TEXT
  };
  return (unsigned)name < PESTLE_ATTR_COUNT ? names[name] : "";
}

// A switch rather than one table, so that each op's rows are an array of its
// own; the last element stands in for an op without rows.
const pestle_attr_row_t* pestle_op_attr_rows(pestle_op_t op,
                                             size_t* out_count) {
  enum { REQUIRED = true, OPTIONAL = false, RESULT = PESTLE_ATTR_OF_RESULT };
#define PLAIN PESTLE_ATTR_IS_PLAIN, 0
#define DIMS(of) PESTLE_ATTR_IS_DIMS, of
#define EACH(of) PESTLE_ATTR_IS_EACH, of
#define PAIRS(of) PESTLE_ATTR_IS_PAIRS, of
#define SPATIAL PESTLE_ATTR_IS_SPATIAL, 0
  *out_count = 0;
  switch ((unsigned)op) {
#define PESTLE_OP_BEGIN(NAME, ...) \
  case PESTLE_OP_##NAME: {         \
    static const pestle_attr_row_t rows[] = {
#define PESTLE_OP_ATTR(NAME, op, KIND, attr, NEED, MEANS) \
  {PESTLE_ATTR_##attr, PESTLE_ATTR_KIND_##KIND, NEED, MEANS},
#define PESTLE_OP_END(NAME, op)                    \
  {                                                \
    PESTLE_ATTR_COUNT, 0, false, 0, 0              \
  }                                                \
  }                                                \
  ;                                                \
  *out_count = sizeof(rows) / sizeof(rows[0]) - 1; \
  return rows;                                     \
  }
#include "pestle/ops.def"
  }
  return NULL;
}

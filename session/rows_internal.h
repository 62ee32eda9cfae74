// SPDX-License-Identifier: Apache-2.0
// What the walk (rows.c) and the rules of ops (rows_rules.c) share.
#ifndef PESTLE_SESSION_ROWS_INTERNAL_H_
#define PESTLE_SESSION_ROWS_INTERNAL_H_

#include "base/map.h"
#include "base/vec.h"
#include "session/rows.h"

typedef pestle_row_relation_t relation_t;

enum { PESTLE_ROWS_SAME = -1 };

typedef struct pestle_rows_pair_t {
  const pestle_value_t *many, *few;
} pestle_rows_pair_t;

typedef struct pestle_rows_t {
  int64_t n, m;
  pestle_allocator_t allocator;
  pestle_map_t known;  // pestle_rows_pair_t -> relation, packed
  PESTLE_VEC(pestle_rows_pair_t) stack;
  uint32_t depth;  // of bodies around the pairs that are being compared
  const pestle_node_t* culprit;
  bool is_out_of_memory;
} pestle_rows_t;

// One op in both modules: the same op, with as many operands, results, regions and
// attributes; what is known of its operands.
typedef struct pestle_rows_op_t {
  pestle_rows_t* rows;
  const pestle_node_t *many, *few;
  const relation_t* operands;
  relation_t* results;
} pestle_rows_op_t;

static inline relation_t pestle_rows_same(void) {
  return (relation_t){.axis = PESTLE_ROWS_SAME};
}
static inline bool pestle_rows_is_same(relation_t r) {
  return r.axis == PESTLE_ROWS_SAME;
}
static inline bool pestle_rows_equal(relation_t a, relation_t b) {
  return a.axis == b.axis && (pestle_rows_is_same(a) || a.per == b.per);
}

// Compares the bodies of region |index|, whose arguments are related by |arguments|
// (NULL: all are the same). |results|, room for what the region returns.
PESTLE_NODISCARD bool pestle_rows_body(const pestle_rows_op_t* op, size_t index,
                                       const relation_t* arguments,
                                       relation_t* results);
// The same of the functions that a call names.
PESTLE_NODISCARD bool pestle_rows_callee(const pestle_rows_op_t* op);

// op->many repeats a constant, and op->few is a constant: an importer makes small
// results of ops on constants, and leaves large ones to the op. Whether its elements
// are those of the first rows.
PESTLE_NODISCARD bool pestle_rows_repeated(const pestle_rows_op_t* op);
// Fills op->results; false: no rule fits. Their types are checked by the caller.
PESTLE_NODISCARD bool pestle_rows_rule(const pestle_rows_op_t* op);

#endif  // PESTLE_SESSION_ROWS_INTERNAL_H_

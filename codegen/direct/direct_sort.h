// SPDX-License-Identifier: Apache-2.0
// What sort and sort_first are made of: rows of a few columns whose elements
// move together, put in order in place. direct_sort.c has both ops' shared part
// and sort, direct_sort_first.c the other.
#ifndef PESTLE_CODEGEN_DIRECT_DIRECT_SORT_H_
#define PESTLE_CODEGEN_DIRECT_DIRECT_SORT_H_

#include "codegen/direct/direct.h"

#define PESTLE_SORT_MAX_COLUMNS (PESTLE_KERNEL_MAX_ARGS / 2)

// Elements in some buffers, one a column: number e is at base + e * stride.
typedef struct pestle_sort_place_t {
  uint32_t buffers[PESTLE_SORT_MAX_COLUMNS];
  pk_t base;
  int64_t stride;
} pestle_sort_place_t;

typedef struct pestle_sort_t {
  pestle_direct_t* d;
  uint32_t count;                           // columns
  uint32_t compared;                        // of which the first are compared,
  uint32_t first[PESTLE_SORT_MAX_COLUMNS];  // as this operand of the op
  int64_t length;                           // no row is longer
  unsigned lanes;  // elements that are compared at once
  bool is_order;   // the comparator is known to be one
  uint32_t ranks;  // buffer of pestle_sort_block()
  // Variables: some of those that are an order, some of others.
  uint32_t rank, left, right, width, last_left, last_right, seen, ordered;
} pestle_sort_t;

// Elements whose places are found by counting those that come before them.
static inline int64_t pestle_sort_block(const pestle_sort_t* s) {
  return 4 * (int64_t)s->lanes;
}

// Fills in all but columns and length, and makes the buffer of ranks, outside
// of loops; then the variables, inside of them.
void pestle_sort_init(pestle_direct_t* d, pestle_sort_t* out_sort);
void pestle_sort_variables(pestle_sort_t* s);

// Whether element |a| comes strictly before |b|: values of the compared columns,
// |lanes| of them.
PESTLE_NODISCARD pestle_status_t pestle_sort_before(pestle_sort_t* s,
                                                    const pk_t* a,
                                                    const pk_t* b,
                                                    unsigned lanes,
                                                    pk_t* out_before);

// |lanes| elements of |buffer| from number |at| of |place| on.
pk_t pestle_sort_load(pestle_sort_t* s, const pestle_sort_place_t* place,
                      uint32_t column, unsigned lanes, pk_t at, pk_t mask);
pk_t pestle_sort_at(pestle_sort_t* s, const pestle_sort_place_t* place,
                    pk_t at);
// |a| or the greatest length, whichever is less; not below 0.
pk_t pestle_sort_within(pestle_sort_t* s, pk_t a);

// Puts the first |length| elements of |row| in order; |work| is as large.
PESTLE_NODISCARD pestle_status_t
pestle_sort_row(pestle_sort_t* s, const pestle_sort_place_t* row,
                const pestle_sort_place_t* work, pk_t length);

// Merges what is in order from number |left| to |left_end| of |from|, and from
// |right| to |right_end|, into numbers [begin, end) of |to|. Of equals the left
// one comes first.
typedef struct pestle_sort_runs_t {
  pk_t left, left_end, right, right_end, begin, end;
} pestle_sort_runs_t;
PESTLE_NODISCARD pestle_status_t pestle_sort_merge(
    pestle_sort_t* s, const pestle_sort_place_t* from,
    const pestle_sort_place_t* to, const pestle_sort_runs_t* runs);

// The first |length| elements, where both places are dense.
void pestle_sort_copy(pestle_sort_t* s, const pestle_sort_place_t* from,
                      const pestle_sort_place_t* to, pk_t length);

// Rows in order by lanes that run side by side (direct_sort_lanes.c).
typedef struct pestle_sort_lanes_t {
  // Of operand i, and of its result; and, where |positions|, of where the elements
  // were, behind those. The same buffer may be both.
  uint32_t from[PESTLE_SORT_MAX_COLUMNS], to[PESTLE_SORT_MAX_COLUMNS + 1];
  int64_t length,
      wanted;            // of a row, and of its result, which begins as it does
  int64_t rows, stride;  // rows in all; from an element to the next
  bool positions;
} pestle_sort_lanes_t;

// Whether the target and |rows| rows of so many elements are of the kind.
bool pestle_sort_lanes_fit(pestle_direct_t* d, int64_t length, int64_t rows);
PESTLE_NODISCARD pestle_status_t
pestle_sort_lanes(pestle_direct_t* d, const pestle_sort_lanes_t* how);

// The dimension of sort or sort_first, counted from the front, and the elements
// from one of its numbers to the next.
int64_t pestle_sort_axis(const pestle_node_t* node);
int64_t pestle_sort_inner(const pestle_type_t* type, int64_t axis);

#endif  // PESTLE_CODEGEN_DIRECT_DIRECT_SORT_H_

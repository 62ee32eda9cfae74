// SPDX-License-Identifier: Apache-2.0
// Scans whose turns are by rows: what is carried is [rows, width], a turn takes products of
// it with matrices that no turn changes, and goes element by element for the rest. So are
// recurrent layers: LSTM, GRU, RNN. Each row is by itself, and each element of a turn can be
// computed from the row's state of the turn before:
//
//   gates = x[r, ..] + h[r, :] W[:, ..];  c' = f(gates[r, j + width], .. c[r, j]);  h' = ..
//
// Here is what elements are made of: which columns of which matrices, which elements of the
// arrays, which values must stand as whole rows before a product can begin.
#ifndef PESTLE_IR_SCAN_ROWS_H_
#define PESTLE_IR_SCAN_ROWS_H_

#include "ir/scan.h"
#include "pestle/plugin.h"

enum {
  PESTLE_SCAN_ROWS_DOTS = 16,
  PESTLE_SCAN_ROWS_READS = 32,
  PESTLE_SCAN_ROWS_STAGES = 4,
};

// Where an element is along a dim: the row that is computed, or |by| times its column plus
// |from|.
typedef struct pestle_scan_at_t {
  bool is_row;
  int64_t by, from;
} pestle_scan_at_t;

typedef struct pestle_scan_element_t {
  pestle_scan_at_t at[PESTLE_MAX_RANK];  // by the dims of its value
} pestle_scan_element_t;

// A column of a matrix that whole rows are multiplied by.
typedef struct pestle_scan_dot_t {
  const pestle_node_t* node;
  pestle_scan_at_t column;  // of the matrix
  int64_t depth;            // terms of the sum
  int32_t carry, stage;     // whose rows: one of them, the other is -1
  uint32_t matrix;          // argument of the body
  bool by_columns;          // its columns lie dense, not its rows
} pestle_scan_dot_t;

// An element of an array's row (|x|: argument of the body) or of a constant.
typedef struct pestle_scan_load_t {
  uint32_t argument;
  pestle_scan_element_t at;
} pestle_scan_load_t;

typedef struct pestle_scan_rows_t {
  int64_t rows, width;
  const pestle_value_t*
      stage[PESTLE_SCAN_ROWS_STAGES];  // each before its readers
  pestle_scan_dot_t dot[PESTLE_SCAN_ROWS_DOTS];
  pestle_scan_load_t x[PESTLE_SCAN_ROWS_READS], fixed[PESTLE_SCAN_ROWS_READS];
  uint32_t stages, dots, xs, fixeds;
  int64_t ops;  // simple operations of an element and turn, products aside
  // Bit i: carry i is read at other places than an element's own. Those from 64 on are.
  uint64_t elsewhere;
} pestle_scan_rows_t;

// Whether |s| is such a scan, with one product at least; what it is made of.
bool pestle_scan_rows(const pestle_scan_t* s, pestle_scan_rows_t* out_rows);

// The element of a value of |type| that is [row, column]: a row for each dim of |rows|
// elements and a column for the one of |width|, all others are 1. False: it is no such type.
bool pestle_scan_rows_place(const pestle_scan_rows_t* r,
                            const pestle_type_t* type,
                            pestle_scan_element_t* out);
// The column of a carried row that element |at| of |type| is; false: it is of another row.
bool pestle_scan_rows_column(const pestle_scan_rows_t* r,
                             const pestle_type_t* type,
                             const pestle_scan_element_t* at,
                             pestle_scan_at_t* out_column);
// The element of operand |operand| of |node| that element |at| of its result is made of;
// false: of others too, or of none.
bool pestle_scan_rows_operand(const pestle_node_t* node, uint32_t operand,
                              const pestle_scan_element_t* at,
                              pestle_scan_element_t* out);
// Number |dot| of |r| that element |at| of |node| is, or -1.
int32_t pestle_scan_rows_dot(const pestle_scan_rows_t* r,
                             const pestle_node_t* node,
                             const pestle_scan_element_t* at);
bool pestle_scan_rows_same(const pestle_scan_element_t* a,
                           const pestle_scan_element_t* b, int32_t rank);

// Whether carry |carry| is read by the element alone that it is of.
static inline bool pestle_scan_rows_is_own(const pestle_scan_rows_t* r,
                                           size_t carry) {
  return carry < 64 && !(r->elsewhere >> carry & 1);
}

// --- Groups of lanes ---

// What a group has; 0: that is not known.
typedef struct pestle_scan_rows_room_t {
  int64_t shared_bytes, lane_words, group_words;  // words: registers of 32 bits
  int64_t lanes, subgroup, groups;
  int64_t units;         // of a wide group; 1: there are none
  int64_t launch_units;  // of one that is alone in its launch
} pestle_scan_rows_room_t;

// |split| lanes next to each other share an element: each has |each| of the |depth| terms
// of its sums, fours that are |split| fours apart. |depth| is filled up with zeros.
typedef struct pestle_scan_rows_fit_t {
  int64_t group_rows;  // that a group computes, a divisor of all
  // The sums of all rows are made one after the other, and then each lane of an element has
  // a row of its own: there are at most |split|.
  bool by_lanes;
  // Execution units of a wide group, each with as many columns; it has no shared memory.
  int64_t units;
  int64_t lanes, split, depth, each;  // lanes of a unit
  int64_t shared_bytes;
  bool in_registers[PESTLE_SCAN_ROWS_DOTS];  // matrices' columns, else shared
} pestle_scan_rows_fit_t;

pestle_scan_rows_room_t pestle_scan_rows_room(const pestle_target_caps_t* caps);
// How many of the values that |s| carries are rows that others read.
int64_t pestle_scan_rows_state(const pestle_scan_t* s,
                               const pestle_scan_rows_t* r);
// How a group keeps the state and the matrices of |r| for all turns, whose state is |state|
// arrays; false: there is no room.
bool pestle_scan_rows_fit(const pestle_scan_rows_t* r, int64_t state,
                          const pestle_scan_rows_room_t* room,
                          pestle_scan_rows_fit_t* out_fit);

#endif  // PESTLE_IR_SCAN_ROWS_H_

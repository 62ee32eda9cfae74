// SPDX-License-Identifier: Apache-2.0
// Whether one plan may serve fewer rows than it is made for. A module specialised
// for n rows and the same module specialised for m < n rows are compared value by
// value: given inputs that begin alike, do the results begin alike?
//
//   %x : [4, 8]    %x' : [3, 8]       x' is the first 3 rows of x: given
//   %y = dot %x, %w                   y' is the first 3 rows of y: rows of the left
//                                     operand are rows of the product
//   %s = reduce add %y over 0         no rule: what is behind row 3 counts
//
// Nothing is assumed of an op: one without a rule, or whose operands no rule fits,
// ends the comparison, and the plan does not serve that shape. The names of dims
// play no part, only what depends on what.
#ifndef PESTLE_SESSION_ROWS_H_
#define PESTLE_SESSION_ROWS_H_

#include "ir/graph.h"

// How a value of the module for m rows follows from that of the module for n rows:
// it is the same (axis -1), or it is the first |per| * m places along |axis|, where
// the other has |per| * n.
typedef struct pestle_row_relation_t {
  int32_t axis;
  int64_t per;
} pestle_row_relation_t;

// Compares the entry functions of |many|, for |n| rows, and of |few|, for |m|.
// |inputs| has what is known of each argument. True: |results|, one for each
// result, are shown. False: |*out_why| says, if there is memory for it, which op
// ended the comparison.
PESTLE_NODISCARD pestle_status_t pestle_rows_compare(
    pestle_module_t* many, pestle_module_t* few, int64_t n, int64_t m,
    const pestle_row_relation_t* inputs, pestle_row_relation_t* results,
    bool* out_is_shown, pestle_strbuf_t* out_why);

#endif  // PESTLE_SESSION_ROWS_H_

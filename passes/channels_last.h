// SPDX-License-Identifier: Apache-2.0
// What the pass channels_last (channels_last.c) and the step by which it moves a transpose
// through an op (push_transpose.c) share.
#ifndef PESTLE_PASSES_CHANNELS_LAST_H_
#define PESTLE_PASSES_CHANNELS_LAST_H_

#include "passes/util.h"

// node->scratch of a transpose that the pass made and that may be pushed on.
#define PESTLE_MOVABLE 0x5452

// A transpose of |x| by |perm| that may be pushed on; |x| itself when |perm|
// changes nothing.
pestle_value_t* pestle_layout_transpose(pestle_formula_t* f, pestle_value_t* x,
                                        const int64_t* perm);

// Why a transpose stays in front of an op.
typedef enum pestle_layout_reason_e {
  PESTLE_LAYOUT_NONE,
  PESTLE_LAYOUT_NO_FORM,
  PESTLE_LAYOUT_NO_GAIN,
  PESTLE_LAYOUT_STRICT,
  PESTLE_LAYOUT_TURNS,
  PESTLE_LAYOUT_REGROUPS,
  PESTLE_LAYOUT_GATHERS,
  PESTLE_LAYOUT_REASON_COUNT
} pestle_layout_reason_t;

// Where an operand of |node| is a movable transpose and the op is better done
// before it: the op's result made that way, behind a transpose of its own. Else
// NULL, and |*out_why| says why where there is such a transpose. |strict|:
// reductions keep the order of their terms.
pestle_value_t* pestle_push_transpose(pestle_formula_t* f, pestle_node_t* node,
                                      bool strict,
                                      pestle_layout_reason_t* out_why);

// The product |dot| on its rows in the order in which they lie before the transposes in
// front of it, behind a movable one of its own; NULL: they lie so, or that meets no other
// transpose (turn_rows.c).
pestle_value_t* pestle_turn_rows(pestle_formula_t* f, pestle_node_t* dot);
// Where a reshape stands between |node| and a movable transpose: the reshape behind the
// node, so that the transpose can pass; NULL: there is none.
pestle_value_t* pestle_push_merged(pestle_formula_t* f, pestle_node_t* node,
                                   bool strict);

#endif  // PESTLE_PASSES_CHANNELS_LAST_H_

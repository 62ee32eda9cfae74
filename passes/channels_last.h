// SPDX-License-Identifier: Apache-2.0
// What channels_last.c and push_transpose.c share.
#ifndef PESTLE_PASSES_CHANNELS_LAST_H_
#define PESTLE_PASSES_CHANNELS_LAST_H_

#include "passes/util.h"

// node->scratch of a transpose that the pass made and that may be pushed on.
#define PESTLE_MOVABLE 0x5452

// A transpose of |x| by |perm| that may be pushed on; |x| itself when |perm|
// changes nothing.
PESTLE_NODISCARD pestle_status_t pestle_layout_transpose(pestle_builder_t* b,
                                                         pestle_value_t* x,
                                                         const int64_t* perm,
                                                         pestle_value_t** out);

// Where an operand of |node| is a movable transpose and the op is better done
// before it: |*out| is the op's result made that way, behind a transpose of its
// own. Else NULL. |strict|: folds keep the order of their terms.
PESTLE_NODISCARD pestle_status_t pestle_push_transpose(pestle_builder_t* b,
                                                       pestle_node_t* node,
                                                       bool strict,
                                                       pestle_value_t** out);

#endif  // PESTLE_PASSES_CHANNELS_LAST_H_

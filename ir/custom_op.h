// SPDX-License-Identifier: Apache-2.0
// Ops of the caller's own (pestle/custom_op.h) as nodes: what a rule sees of one.
// Transforms call the rules that way:
//
//   pestle_custom_use_t use;
//   PESTLE_TRY(pestle_custom_use(arena, node, &use));
//   if (use.op && use.op->jvp) ... use.op->jvp(use.op->user, &builder, &use.node, ..)
#ifndef PESTLE_IR_CUSTOM_OP_H_
#define PESTLE_IR_CUSTOM_OP_H_

#include "base/arena.h"
#include "ir/graph.h"
#include "pestle/custom_op.h"

typedef struct pestle_custom_use_t {
  const pestle_custom_op_t* op;  // NULL: the context has none of that version
  pestle_custom_node_t node;     // operands, results, their types, attributes
} pestle_custom_use_t;

// What |node|, a CUSTOM, is a use of; tables are |arena|'s. A failure says why the
// op that the context has under that name and version cannot be meant: attributes
// or result types are not those that it declares.
PESTLE_NODISCARD pestle_status_t
pestle_custom_use(pestle_arena_t* arena, const pestle_node_t* node,
                  pestle_custom_use_t* out_use);

// The attributes of |node| from their text, where the node is not one of a graph.
PESTLE_NODISCARD pestle_status_t
pestle_custom_use_attrs(pestle_arena_t* arena, const pestle_custom_op_t* op,
                        const char* text, pestle_custom_node_t* node);

// An eval in a graph is a custom call of this, the op's name, '#' and the eval's id,
// or '@' and its place in the list where it is no function, whose backend_dictionary
// are the attributes.
#define PESTLE_EVAL_CALL "pestle.op."
bool pestle_is_eval_call(const pestle_node_t* node);
// What such a call is, from |node|'s context. NOT_FOUND names what that lacks.
PESTLE_NODISCARD pestle_status_t pestle_eval_call_find(
    const pestle_node_t* node, const pestle_custom_op_t** out_op,
    const pestle_custom_eval_t** out_eval);

// Whether |eval| is text, of which a kernel is made, and no function.
static inline bool pestle_eval_is_text(const pestle_custom_eval_t* eval) {
  return eval->kind == PESTLE_EVAL_SOURCE ||
         eval->kind == PESTLE_EVAL_KERNEL_IR;
}
// Whether such a call is of one.
bool pestle_is_text_call(const pestle_node_t* node);

// Whether |eval| is for targets such as that one, and of text whether they take its
// language.
bool pestle_custom_eval_is_for(const pestle_custom_eval_t* eval,
                               const pestle_target_caps_t* caps);

#endif  // PESTLE_IR_CUSTOM_OP_H_

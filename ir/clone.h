// SPDX-License-Identifier: Apache-2.0
// The copying of ops with all that is in them, shared by cloning and
// specialisation. Depth is on a stack of its own, never on the C stack.
#ifndef PESTLE_IR_CLONE_H_
#define PESTLE_IR_CLONE_H_

#include "base/map.h"
#include "base/vec.h"
#include "ir/internal.h"

// One function body or one op with regions that is being copied.
typedef struct pestle_clone_frame_t {
  const pestle_node_t* owner;   // NULL: a function's body
  pestle_function_t* function;  // the copy, when |owner| is NULL
  pestle_region_t** regions;    // copies of the owner's regions so far
  uint32_t region;              // the one that is being copied
  const pestle_node_t* cursor;  // the next node to copy
  pestle_block_t* block;        // where its copy goes
} pestle_clone_frame_t;

typedef struct pestle_cloner_t pestle_cloner_t;
struct pestle_cloner_t {
  pestle_module_t* target;
  bool share_elements;
  // A value that was not copied stands for itself (copies in one module).
  bool captures;
  // The op of pestle_node_clone() and the operands that its copy gets.
  const pestle_node_t* root;
  pestle_value_t* const* root_operands;
  // The source is read by other threads too, so the map is not in its values.
  pestle_map_t values;
  PESTLE_VEC(pestle_clone_frame_t) frames;
  PESTLE_VEC(pestle_value_t*) operands;
  // Names the callee of the copy of |call|. May push a function's frame and set
  // |*out_name| to NULL: it is asked again when that function is done. NULL:
  // callees keep their names.
  pestle_status_t (*callee)(pestle_cloner_t* cloner, const pestle_node_t* call,
                            const char** out_name);
  // Looks at each copy. May be NULL.
  pestle_status_t (*check)(const pestle_node_t* source,
                           const pestle_node_t* copy);
};

void pestle_cloner_init(pestle_module_t* target, pestle_cloner_t* out_cloner);
void pestle_cloner_deinit(pestle_cloner_t* cloner);

// The copy of |value|.
PESTLE_NODISCARD pestle_status_t pestle_cloner_find(const pestle_cloner_t* c,
                                                    const pestle_value_t* value,
                                                    pestle_value_t** out_value);
// Adds to the target a function like |source| that takes |types|, without body.
PESTLE_NODISCARD pestle_status_t pestle_cloner_add_function(
    pestle_cloner_t* cloner, const pestle_function_t* source, const char* name,
    const pestle_type_t* types, pestle_function_t** out_function);
// Pushes the body of |source| to be copied into |function|.
PESTLE_NODISCARD pestle_status_t pestle_cloner_push_function(
    pestle_cloner_t* cloner, const pestle_function_t* source,
    pestle_function_t* function);
// Copies until no frame is left.
PESTLE_NODISCARD pestle_status_t pestle_cloner_run(pestle_cloner_t* cloner);

// Makes |target| hold a reference to |source|, whose data it shares.
PESTLE_NODISCARD pestle_status_t
pestle_module_keep_module(pestle_module_t* target, pestle_module_t* source);

#endif  // PESTLE_IR_CLONE_H_

// SPDX-License-Identifier: Apache-2.0
// Copies of ops with all that is in them: within a module (inlining, moving
// into a region, changed operands) and from one module to another (cloning,
// specialisation). Each op's rule runs again, so result types follow from what
// the operands are mapped to. Depth is on a stack of its own, never on the C
// stack.
#ifndef PESTLE_IR_COPY_H_
#define PESTLE_IR_COPY_H_

#include "base/map.h"
#include "base/vec.h"
#include "ir/graph.h"

// One function body, region or op with regions that is being copied.
typedef struct pestle_copy_frame_t {
  const pestle_node_t* owner;   // NULL: a function's body, or a lone region
  pestle_function_t* function;  // the copy of a function, else NULL
  pestle_region_t** regions;    // copies of the owner's regions so far
  uint32_t region;              // the one that is being copied
  const pestle_node_t* cursor;  // the next node to copy
  pestle_block_t* block;        // where its copy goes
} pestle_copy_frame_t;

typedef struct pestle_copier_t pestle_copier_t;
struct pestle_copier_t {
  // Where the copies of pestle_copier_node() go; each gets the location of what
  // it is a copy of.
  pestle_builder_t builder;
  // The source is another module. Names are interned anew, and a value without
  // a copy is an error. Else such a value stands for itself.
  bool foreign;
  // The copy is looked at and erased: it is not what becomes of its source.
  bool trial;
  // The source is read by other threads too, so the map is not in its values.
  pestle_map_t values;  // source value -> pestle_value_t*
  PESTLE_VEC(pestle_copy_frame_t) frames;
  PESTLE_VEC(pestle_value_t*) operands;
  // Names the callee of the copy of |call|. May push a function's frame and set
  // |*out_name| to NULL: it is asked again when that function is done. NULL:
  // callees keep their names.
  pestle_status_t (*callee)(pestle_copier_t* copier, const pestle_node_t* call,
                            const char** out_name);
  // Looks at each copy. May be NULL.
  pestle_status_t (*check)(const pestle_node_t* source,
                           const pestle_node_t* copy);
};

// Constant data is shared with the source, which must outlive the copies.
void pestle_copier_init(pestle_allocator_t allocator, pestle_builder_t builder,
                        pestle_copier_t* out_copier);
void pestle_copier_deinit(pestle_copier_t* copier);

// From now on |to| takes the place of |from| in what is copied.
PESTLE_NODISCARD pestle_status_t pestle_copier_set(pestle_copier_t* copier,
                                                   const pestle_value_t* from,
                                                   pestle_value_t* to);
// What takes the place of |value|: its copy, or what was set; else |value|
// itself, or NULL when the source is foreign.
pestle_value_t* pestle_copier_get(const pestle_copier_t* copier,
                                  pestle_value_t* value);

// Copies |node| to the builder's place. |node| need not be in a block: a changed
// copy of the struct gives an op with other attributes. On failure nothing is
// left behind.
PESTLE_NODISCARD pestle_status_t pestle_copier_node(pestle_copier_t* copier,
                                                    const pestle_node_t* node,
                                                    pestle_node_t** out_node);
// Copies every node of |block| but its terminator there.
PESTLE_NODISCARD pestle_status_t
pestle_copier_block(pestle_copier_t* copier, const pestle_block_t* block);
// Makes a region without owner like |source|, which may be a function's body,
// with its terminator. The caller gives it to an op or discards it.
PESTLE_NODISCARD pestle_status_t
pestle_copier_region(pestle_copier_t* copier, const pestle_region_t* source,
                     pestle_region_t** out_region);

// --- Functions ---

// Adds to the builder's module a function like |source| that takes |types|,
// without body.
PESTLE_NODISCARD pestle_status_t pestle_copier_add_function(
    pestle_copier_t* copier, const pestle_function_t* source, const char* name,
    const pestle_type_t* types, pestle_function_t** out_function);
// The same with the name and the types of |source|, and the results that it has, so
// that calls may be copied before its body.
PESTLE_NODISCARD pestle_status_t
pestle_copier_declare(pestle_copier_t* copier, const pestle_function_t* source,
                      pestle_function_t** out_function);
// Pushes the body of |source| to be copied into |function|.
PESTLE_NODISCARD pestle_status_t pestle_copier_push_function(
    pestle_copier_t* copier, const pestle_function_t* source,
    pestle_function_t* function);
// Copies until no frame is left.
PESTLE_NODISCARD pestle_status_t pestle_copier_run(pestle_copier_t* copier);

// Makes |target| hold a reference to |source|, whose data it shares.
PESTLE_NODISCARD pestle_status_t
pestle_module_keep_module(pestle_module_t* target, pestle_module_t* source);

#endif  // PESTLE_IR_COPY_H_

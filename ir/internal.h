// SPDX-License-Identifier: Apache-2.0
// What the files of ir/ share among themselves.
#ifndef PESTLE_IR_INTERNAL_H_
#define PESTLE_IR_INTERNAL_H_

#include "ir/graph.h"

typedef struct pestle_interner_t pestle_interner_t;

// The interned type equal to |type|, or NULL when there is none.
const pestle_type_t* pestle_module_find_type(const pestle_module_t* module,
                                             const pestle_type_t* type);
// Forgets the name of |function|, which leaves its module.
void pestle_module_forget_function(pestle_function_t* function);
// Interns |text|, of which NULL stays NULL.
PESTLE_NODISCARD pestle_status_t pestle_module_intern_opt(
    pestle_module_t* module, const char* text, const char** out_text);

// Place, operands and regions of an op to be made, but not its types.
PESTLE_NODISCARD pestle_status_t pestle_node_check_spec(
    const pestle_builder_t* builder, const pestle_node_spec_t* spec);

// The attributes of |spec| as its node will have them: one for each row, sorted
// by name, defaults filled in. Contents are borrowed from |spec| or static.
PESTLE_NODISCARD pestle_status_t pestle_attrs_complete(
    const pestle_node_spec_t* spec, pestle_attr_t out_attrs[PESTLE_MAX_ATTRS],
    size_t* out_count);

// What an attribute of kind I64 is when it is left out.
int64_t pestle_attr_default_i64(pestle_op_t op, unsigned name);

// Copies what |attrs| point at into |module|; the data of ELEMENTS too unless
// |share_elements|.
PESTLE_NODISCARD pestle_status_t pestle_attrs_copy(pestle_module_t* module,
                                                   bool share_elements,
                                                   const pestle_attr_t* attrs,
                                                   size_t count,
                                                   pestle_attr_t** out_attrs);

// Gives |to| the dialect attributes of |from| and of its arguments and results.
PESTLE_NODISCARD pestle_status_t pestle_function_copy_dialect_attrs(
    const pestle_function_t* from, pestle_function_t* to);

// Puts |use| on the list of |value|, of which it must not be on any.
void pestle_use_link(pestle_use_t* use, pestle_value_t* value);
// Puts |node| into |block| before |before|, or at the end for NULL.
void pestle_node_insert(pestle_node_t* node, pestle_block_t* block,
                        pestle_node_t* before);
// Puts "'stablehlo.add' (node 'conv1' in model.onnx): " before the message of
// |status|, of which it takes ownership; code, source line and notes stay.
PESTLE_NODISCARD pestle_status_t
pestle_op_wrap_error(pestle_op_t op, const pestle_loc_t* loc,
                     const pestle_module_t* module, pestle_status_t status);
// An integer of the same width for each element of |x|, a float of known
// extents: the integers compare, signed, as the floats do in total order.
PESTLE_NODISCARD pestle_status_t pestle_total_order_key(
    pestle_builder_t* b, pestle_value_t* x, pestle_value_t** out_key);
// The region in which |value| is defined.
static inline const pestle_region_t* pestle_value_region(
    const pestle_value_t* value) {
  const pestle_block_t* block = value->node ? value->node->block : value->block;
  return block ? block->region : NULL;
}

#endif  // PESTLE_IR_INTERNAL_H_

// SPDX-License-Identifier: Apache-2.0
// What the files of generic.h share.
#ifndef PESTLE_IR_GENERIC_INTERNAL_H_
#define PESTLE_IR_GENERIC_INTERNAL_H_

#include "ir/generic.h"

// Of a custom call: what its row has otherwise than MLIR writes it. |*out_done| says
// whether |e| was such an attribute.
PESTLE_NODISCARD pestle_status_t pestle_generic_apply_custom(
    pestle_generic_t* g, const pestle_generic_entry_t* e, bool* out_done);

// The two |operands| of a product in one element type, in the precision that
// |g->algorithm| asks for; |type|, that of its result, becomes the one that the
// product gives, and |*out_final| is the element type that was written.
PESTLE_NODISCARD pestle_status_t pestle_generic_product(
    pestle_generic_t* g, pestle_builder_t* b, pestle_value_t** operands,
    pestle_type_t* type, pestle_dtype_t* out_final);

// In which order the axes of a tensor lie.
typedef struct pestle_generic_lying_t {
  int64_t axes[PESTLE_MAX_RANK];  // that lie there, the slowest first
  bool row_major;
} pestle_generic_lying_t;
// One for each of |count| tensors, of operand_layouts or result_layouts; where there is
// no |list| (NULL) all are row-major. |*any|, which may be set before: one is not.
PESTLE_NODISCARD pestle_status_t pestle_generic_read_lying(
    pestle_generic_t* g, const pestle_generic_entry_t* list,
    const pestle_type_t* const* types, size_t count,
    pestle_generic_lying_t* out, bool* any);

// Ops that fold by a region, and their operands in the element types that it takes.
bool pestle_generic_folds(pestle_op_t op);
PESTLE_NODISCARD pestle_status_t pestle_generic_widen(
    pestle_op_t op, pestle_builder_t* b, pestle_value_t** operands,
    size_t count, const pestle_region_t* region);
// maximum, minimum and atan2 of complex numbers, which are formulas.
bool pestle_generic_orders(pestle_op_t op, pestle_value_t* const* operands,
                           size_t count);
PESTLE_NODISCARD pestle_status_t
pestle_generic_order(pestle_op_t op, pestle_builder_t* b,
                     pestle_value_t* const* operands, pestle_node_t** out_node);

#endif  // PESTLE_IR_GENERIC_INTERNAL_H_

// SPDX-License-Identifier: Apache-2.0
// What the files of generic.h share.
#ifndef PESTLE_IR_GENERIC_INTERNAL_H_
#define PESTLE_IR_GENERIC_INTERNAL_H_

#include "ir/generic.h"

// The two |operands| of a product in one element type, in the precision that
// |g->algorithm| asks for; |type|, that of its result, becomes the one that the
// product gives, and |*out_final| is the element type that was written.
PESTLE_NODISCARD pestle_status_t pestle_generic_product(
    pestle_generic_t* g, pestle_builder_t* b, pestle_value_t** operands,
    pestle_type_t* type, pestle_dtype_t* out_final);

#endif  // PESTLE_IR_GENERIC_INTERNAL_H_

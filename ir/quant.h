// SPDX-License-Identifier: Apache-2.0
// Quantised element types, !quant.uniform<i8:f32, 0.1:3>: integers q that stand for
// (q - zero) x scale. A tensor of such is one of its storage type here, and an op on
// them is what StableHLO says it is: operands to numbers, the op, its result back.
//
//   add %a, %b : tensor<4x!quant..>   ->   dequantize a, b; add; quantize
//
// What only moves elements, all of one such type, moves the integers.
#ifndef PESTLE_IR_QUANT_H_
#define PESTLE_IR_QUANT_H_

#include "ir/generic.h"

struct pestle_quant_t {
  pestle_dtype_t storage, expressed;
  int64_t low, high;  // the least and the largest integer
  int32_t axis;       // along which |count| scales lie; -1: one for all
  size_t count;
  const double* scales;
  const int64_t* zeros;
};

// Reads what stands between the angles of !quant.uniform<..> into |arena|.
// UNSUPPORTED for scales of blocks.
PESTLE_NODISCARD pestle_status_t pestle_quant_parse(pestle_arena_t* arena,
                                                    pestle_str_t text,
                                                    const pestle_quant_t** out);
// Whether |g| with these (NULL: no quantised type) has to go another way than others.
bool pestle_quant_needs(const pestle_generic_t* g,
                        const pestle_quant_t* const* operands,
                        size_t operand_count,
                        const pestle_quant_t* const* results,
                        size_t result_count);
// pestle_generic_build() of such an op; |types| have the storage types.
PESTLE_NODISCARD pestle_status_t pestle_quant_build(
    pestle_generic_t* g, pestle_builder_t* builder,
    pestle_value_t* const* operands,
    const pestle_quant_t* const* operand_quants, size_t operand_count,
    pestle_region_t* const* regions, size_t region_count,
    const pestle_type_t* types, const pestle_quant_t* const* result_quants,
    size_t type_count, pestle_value_t*** out_values);

#endif  // PESTLE_IR_QUANT_H_

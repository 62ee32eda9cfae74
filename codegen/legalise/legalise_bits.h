// SPDX-License-Identifier: Apache-2.0
// Narrow floats by integer arithmetic, on any lanes. Private to
// codegen/legalise/*.c.
#ifndef PESTLE_CODEGEN_LEGALISE_LEGALISE_BITS_H_
#define PESTLE_CODEGEN_LEGALISE_LEGALISE_BITS_H_

#include "codegen/legalise/legalise.h"
#include "codegen/legalise/vector_math_internal.h"

// The bits, as u8 or u16, of the f32 |x| rounded to |dtype|, a float of at most
// 16 bits, to nearest even; and back, exactly.
pestle_kir_id_t pestle_bits_encode(pestle_kir_builder_t* k,
                                   pestle_dtype_t dtype, pestle_kir_id_t x);
pestle_kir_id_t pestle_bits_decode(pestle_kir_builder_t* k,
                                   pestle_dtype_t dtype, pestle_kir_id_t bits);

// The f64 |x| as f32, rounded to odd: whoever rounds that to a narrower type to
// nearest even has rounded |x| once.
pestle_kir_id_t pestle_bits_odd_f32(pestle_kir_builder_t* k, pestle_kir_id_t x);

#endif  // PESTLE_CODEGEN_LEGALISE_LEGALISE_BITS_H_

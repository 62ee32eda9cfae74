// SPDX-License-Identifier: Apache-2.0
// Formulas of CHLO's ops, one for each row of chlo.def. The operands of those that
// are WIDE are of |f->compute|, f32 or f64; of complex ones its parts are.
#ifndef PESTLE_IR_CHLO_H_
#define PESTLE_IR_CHLO_H_

#include "ir/composite.h"

#define PESTLE_CHLO(op, base, IN, ULPS, bound) \
  pv_t* pestle_chlo_##op(pestle_formula_t* f, pv_t* const* operands);
#define PESTLE_CHLO_COMPLEX(op, STEPS, REACH) \
  pv_t* pestle_chlo_complex_##op(pestle_formula_t* f, pv_t* z);
#include "ir/chlo.def"

#endif  // PESTLE_IR_CHLO_H_

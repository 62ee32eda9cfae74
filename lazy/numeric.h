// SPDX-License-Identifier: Apache-2.0
// The formulas of numeric.def: of scalars, which a map has as its body.
#ifndef PESTLE_LAZY_NUMERIC_H_
#define PESTLE_LAZY_NUMERIC_H_

#include "ir/chlo.h"
#include "lazy/lazy.h"
#include "pestle/numeric.h"

// What row |fn| makes of |x|, |count| scalars of one type; NULL and a status in |f|
// where it fails.
pv_t* pestle_numeric_formula(pestle_formula_t* f, pestle_numeric_t fn,
                             pv_t* const* x, size_t count);
// The op of scalar.def that row |fn| is on operands of |dtype|, or NONE_ where it is
// a formula or nothing.
enum { PESTLE_NUMERIC_NO_OP = PESTLE_SCALAR_COUNT };
int pestle_numeric_op(pestle_numeric_t fn, pestle_dtype_t dtype);
// Whether row |fn| gives back operands of |dtype| as they are.
bool pestle_numeric_is_same(pestle_numeric_t fn, pestle_dtype_t dtype);

#endif  // PESTLE_LAZY_NUMERIC_H_

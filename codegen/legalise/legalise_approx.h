// SPDX-License-Identifier: Apache-2.0
// Which f32 values may be approximations: those of which nothing is read but
// what was rounded to f16 or bf16. Private to codegen/legalise/*.c.
#ifndef PESTLE_CODEGEN_LEGALISE_LEGALISE_APPROX_H_
#define PESTLE_CODEGEN_LEGALISE_LEGALISE_APPROX_H_

#include "codegen/legalise/legalise.h"

typedef enum pestle_approx_e {
  PESTLE_APPROX_NEVER = 0,
  // Sums, products and their kin of it are rounded, or it is: a few ulp of f32
  // are not seen.
  PESTLE_APPROX_FEW_ULP = 1,
  // It is rounded to bf16 itself: an eighth of that one's ulp is not seen.
  PESTLE_APPROX_BF16 = 2,
} pestle_approx_t;

// What value |id| of |r->from| may be; under `fast` all of f32 may be the last,
// under `strict` nothing is more than the first.
pestle_approx_t pestle_approx_of(pestle_rewrite_t* r, pestle_kir_id_t id);

// Whether |inst| says that the target's approximation will do, and that has one.
bool pestle_approx_is_row(const pestle_rewrite_t* r,
                          const pestle_kir_inst_t* inst);
// Appends scalar |op| on |a|, of f32, by approximations of the target's. False:
// there is none for |op| that |how| allows.
bool pestle_approx_expand(pestle_rewrite_t* r, pestle_op_t op,
                          pestle_approx_t how, pestle_kir_id_t a,
                          pestle_kir_id_t* out_id);
// Whether that is true.
bool pestle_approx_has(const pestle_rewrite_t* r, pestle_op_t op,
                       pestle_approx_t how);

#endif  // PESTLE_CODEGEN_LEGALISE_LEGALISE_APPROX_H_

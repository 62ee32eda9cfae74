// SPDX-License-Identifier: Apache-2.0
// Where sketches ask templates, and what these ask of the target.
#include "codegen/sketch/sketch.h"

pestle_status_t pestle_sketch_offer(pestle_sketch_t* k, pestle_offer_t offer,
                                    bool* out_done) {
  *out_done = false;
  for (uint32_t i = 0; !*out_done && pestle_template_at(i); ++i) {
    offer.row = pestle_template_at(i);
    if (offer.row->offer != offer.kind) continue;
    PESTLE_TRY(offer.row->sketch(k, &offer, out_done));
  }
  return pestle_nest_status(k->nest);
}

bool pestle_sketch_has_byte_unit(const pestle_sketch_t* k,
                                 pestle_intrinsic_kind_t kind, pestle_dtype_t a,
                                 pestle_dtype_t b) {
  const pestle_target_caps_t* caps = k->caps;
  bool wide = kind == PESTLE_INTRINSIC_WGMMA;
  unsigned m = wide ? 64 : 16, n = wide ? 256 : 8, lanes = wide ? 128 : 32;
  for (uint32_t i = 0; i < caps->intrinsic_count && i < 16; ++i) {
    const pestle_intrinsic_t* x = &caps->intrinsic[i];
    if (x->kind == kind && x->a == a && x->b == b && x->c == PESTLE_I32 &&
        x->m == m && x->n == n && x->k == 32 && x->lanes == lanes &&
        caps->subgroup == 32) {
      return true;
    }
  }
  return false;
}

bool pestle_sketch_has_unit(const pestle_sketch_t* k,
                            pestle_intrinsic_kind_t kind, pestle_dtype_t dtype,
                            unsigned m, unsigned n, unsigned taps) {
  const pestle_target_caps_t* caps = k->caps;
  // Fragments are those of subgroups of 32.
  unsigned lanes = kind == PESTLE_INTRINSIC_WGMMA ? 128 : 32;
  for (uint32_t i = 0; i < caps->intrinsic_count && i < 16; ++i) {
    const pestle_intrinsic_t* x = &caps->intrinsic[i];
    if (x->kind == kind && x->a == dtype && x->b == dtype &&
        x->c == PESTLE_F32 && x->m == m && x->n == n && x->k == taps &&
        x->lanes == lanes && caps->subgroup == 32) {
      return true;
    }
  }
  return false;
}

bool pestle_sketch_has_f8_unit(const pestle_sketch_t* k,
                               pestle_intrinsic_kind_t kind) {
  const pestle_target_caps_t* caps = k->caps;
  bool wide = kind == PESTLE_INTRINSIC_WGMMA;
  unsigned m = wide ? 64 : 16, n = wide ? 256 : 8, lanes = wide ? 128 : 32;
  for (uint32_t i = 0; i < caps->intrinsic_count && i < 16; ++i) {
    const pestle_intrinsic_t* x = &caps->intrinsic[i];
    if (x->kind == kind && x->a == PESTLE_F8E4M3FN && x->b == PESTLE_F8E5M2 &&
        x->c == PESTLE_F32 && x->m == m && x->n == n && x->k == 32 &&
        x->lanes == lanes && caps->subgroup == 32) {
      return true;
    }
  }
  return false;
}

// SPDX-License-Identifier: Apache-2.0
// Convolutions of inputs with |s| - 1 zeros between their elements, as one kernel that
// multiplies no zeros. Results at whole steps of |s|, a phase, meet every |s|-th tap alone:
//
//   c[a, y, f] = +[t:6, i] xpad[a, y + t, i] * w[t, i, f]
//   c[a, y, f] = +[j:3, i] x[a, (y + 1)/2 + j - 1, i] * w[2 j + 1 - (y + 1)%2, i, f]
//
// Schedules take the phase apart from its steps (codegen/sketch/sketch_unfuse.c): a batch of
// products. Where |s| does not divide the window, some phases have a tap less: both factors
// of it are zeros then, so that no infinite one is seen.
#include "codegen/lower/lower_internal.h"

bool pestle_lower_has_phases(const pestle_node_t* node) {
  pestle_i64s_t steps = PESTLE_NODE_I64S(node, lhs_dilation);
  bool any = false;
  for (size_t i = 0; i < steps.count; ++i) {
    int64_t yd = PESTLE_NODE_I64S(node, output_spatial_dimensions).data[i];
    if (steps.data[i] == 1) continue;
    if (PESTLE_NODE_I64S(node, window_strides).data[i] != 1 ||
        PESTLE_NODE_I64S(node, rhs_dilation).data[i] != 1 ||
        PESTLE_NODE_I64S(node, window_reversal).data[i] ||
        node->results[0].type->dims[yd] % steps.data[i]) {
      return false;
    }
    any = true;
  }
  return any;
}

// With t = j s + s - 1 - r position q s + r - shift of the result meets element
// q - low + j of the input.
void pestle_lower_phase(pestle_nest_t* nest, const pestle_node_t* node,
                        size_t i, const pestle_affine_t** place,
                        const pestle_affine_t** tap) {
  int64_t step = PESTLE_NODE_I64S(node, lhs_dilation).data[i];
  int64_t low = PESTLE_NODE_I64S(node, padding).data[2 * i];
  int64_t shift = ((step - 1 - low) % step + step) % step;
  const pestle_affine_t* y =
      pestle_affine_add(nest, *place, pestle_affine_const(nest, shift));
  const pestle_affine_t* first =
      pestle_affine_const(nest, -((shift + low - (step - 1)) / step));
  *place = pestle_affine_add(nest, pestle_affine_div(nest, y, step),
                             pestle_affine_add(nest, *tap, first));
  const pestle_affine_t* rest = pestle_affine_add(
      nest, pestle_affine_scale(nest, pestle_affine_mod(nest, y, step), -1),
      pestle_affine_const(nest, step - 1));
  *tap = pestle_affine_add(nest, pestle_affine_scale(nest, *tap, step), rest);
}

// SPDX-License-Identifier: Apache-2.0
// Shared by the emit*.c files; nobody else includes it. The kernel is
//
//   for each box of tiles: a group
//     for each tile: its inputs as factors, in scratch     (emit_in.c)
//     for each panel of features:
//       a product over channels for each, in scratch       (emit.c)
//       for each tile: its results, then the last stage    (emit_out.c)
#ifndef PESTLE_CODEGEN_TEMPLATE_WINOGRAD_EMIT_H_
#define PESTLE_CODEGEN_TEMPLATE_WINOGRAD_EMIT_H_

#include "codegen/emit/emit_internal.h"
#include "codegen/template/winograd/winograd.h"

typedef struct winograd_t {
  pestle_emit_t* e;
  pestle_kir_builder_t* k;
  const pestle_winograd_how_t* how;
  pestle_winograd_t w;
  int64_t boxes_high, boxes_wide;   // groups of one image
  int64_t tiles;                    // of a group
  int64_t factor_pitch, sum_pitch;  // elements from one factor to the next
  uint32_t factors, sums, shown;    // scratch; the last: results of one tile
  // Axes of the emission's own: a tile whose inputs are inside, an input's row
  // and column, a tile whose results exist, one of them, a vector of channels
  // or features, its lanes.
  uint32_t in_high, in_wide, at_high, at_wide, out_high, out_wide, px_high,
      px_wide, vector, lane;
  pestle_kir_id_t tile_high, tile_wide;  // of this group's first tile
  pestle_kir_id_t panels;                // which of those of a group's share
} winograd_t;

// The number of tile (r, s) in its group, and its place in the image.
pestle_kir_id_t pestle_winograd_emit_number(winograd_t* t, pestle_kir_id_t r,
                                            pestle_kir_id_t s);
// A vector of |value| in every lane.
pestle_kir_id_t pestle_winograd_emit_number_of(winograd_t* t, double value);
pestle_kir_id_t pestle_winograd_emit_fma(winograd_t* t, pestle_kir_id_t a,
                                         pestle_kir_id_t b, pestle_kir_id_t c);
pestle_kir_id_t pestle_winograd_emit_op(winograd_t* t, pestle_op_t op,
                                        pestle_kir_id_t a, pestle_kir_id_t b);
void pestle_winograd_emit_open_vector(winograd_t* t, pestle_kir_id_t number,
                                      int64_t extent, int64_t valid);
// Factors of the tiles of this group.
void pestle_winograd_emit_inputs(winograd_t* t);
// The last stage for all tiles of this group and |vectors| vectors of features
// from vector |first| on; of the last of them |valid| lanes exist.
void pestle_winograd_emit_results(winograd_t* t, pestle_kir_id_t first,
                                  int64_t vectors, int64_t valid);

#endif  // PESTLE_CODEGEN_TEMPLATE_WINOGRAD_EMIT_H_

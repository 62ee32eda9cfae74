// SPDX-License-Identifier: Apache-2.0
// Shared by the emit*.c files, and with flash_attention_mma/, which moves its operands
// the same way. The kernel is
//
//   for each tile of results: a group
//     for each step of k:
//       copy boxes of both operands to a slot of shared memory (emit_copy.c)
//       multiply the boxes of another slot (emit_sums.c)
//     the last stage, from the sums in registers (emit_result.c)
//
// Rows, columns and k beyond the last are those of the last: their sums are
// stored nowhere, and such elements of k are zeros.
#ifndef PESTLE_CODEGEN_TEMPLATE_SHARED_TILE_EMIT_H_
#define PESTLE_CODEGEN_TEMPLATE_SHARED_TILE_EMIT_H_

#include "codegen/emit/emit_internal.h"
#include "codegen/template/shared_tile/shared_tile.h"

// One operand's boxes.
typedef struct shared_box_t {
  const pestle_product_side_t* side;
  const pestle_product_axes_t* axes;  // its rows
  int64_t rows, pitch, slot;          // of a box; elements
  int64_t runs, each;                 // of a box; that a lane moves of them
  bool copies;                        // past the registers
  bool by_rows;           // elements of k lie side by side in shared memory
  uint32_t buffer, held;  // shared; private, on the way there
  uint32_t run_axis, lane_axis;  // what a run's coordinate is made of
  pestle_kir_id_t tile;          // which of the boxes along rows
} shared_box_t;

typedef struct shared_emit_t {
  pestle_emit_t* e;
  pestle_kir_builder_t* k;
  const pestle_shared_tile_t* t;
  pestle_product_t p;
  shared_box_t a, b;
  int64_t lanes, steps;
  uint32_t sums, fragment_a, fragment_b, shown;
  uint32_t run_axis, lane_axis;  // of the columns of the last stage
  int64_t vector, row_vector;    // elements of a lane's vectors of sums
  bool strips;                   // sums go through shared memory
  pestle_kir_id_t lane, batch;
  pestle_kir_id_t rank;            // which part of k the group has
  pestle_kir_id_t first, ends;     // its first step, and how many it has
  pestle_kir_id_t row, column;     // of this lane's sums, or its subgroup's
  pestle_kir_id_t from_a, from_b;  // where in a slot this lane's part begins
} shared_emit_t;

pestle_kir_id_t pestle_shared_tile_min(const shared_emit_t* t,
                                       pestle_kir_id_t a, int64_t b);
// |number| taken apart into coordinates of |axes|, of the reduction or of the |last|
// stage. Along the last of them it counts runs of |run|, if that is not 1: the
// coordinate then is |run_axis| times |run| plus |lane_axis| (or NONE).
void pestle_shared_tile_coords(shared_emit_t* t,
                               const pestle_product_axes_t* axes, bool last,
                               pestle_kir_id_t number, int64_t run,
                               uint32_t run_axis, uint32_t lane_axis);

// --- emit_copy.c ---
void pestle_shared_tile_add_box(shared_emit_t* t, const char* name,
                                const pestle_product_side_t* side,
                                const pestle_product_axes_t* axes, int64_t rows,
                                shared_box_t* out_box);
// Begins to move the box of |step|: to |slot|, or to registers.
void pestle_shared_tile_fetch(shared_emit_t* t, const shared_box_t* box,
                              pestle_kir_id_t step, pestle_kir_id_t slot);
// From registers to |slot|, where it did not go past them.
void pestle_shared_tile_put(shared_emit_t* t, const shared_box_t* box,
                            pestle_kir_id_t slot);

// Waits until what was fetched and put is seen by all lanes; |copies|: some of
// it goes past the registers.
void pestle_shared_tile_meet(const shared_emit_t* t, bool copies);

// --- emit_sums.c ---
void pestle_shared_tile_start_sums(shared_emit_t* t);
// Where in |box| lane |in| of a subgroup points for its fragments, whose rows or
// columns begin at |first|.
pestle_kir_id_t pestle_shared_tile_fragment_at(shared_emit_t* t,
                                               const shared_box_t* box,
                                               pestle_kir_id_t in, bool is_a,
                                               pestle_kir_id_t first);
// |count| fragments of 16 rows or columns, of step |u| of 32 bytes of k, to buffer
// |to|; |from| is the lane's place in the slot.
void pestle_shared_tile_load_fragments(shared_emit_t* t,
                                       const shared_box_t* box, uint32_t to,
                                       int64_t count, pestle_kir_id_t from,
                                       pestle_kir_id_t u);
// Sums += the boxes of |slot|.
void pestle_shared_tile_multiply(shared_emit_t* t, pestle_kir_id_t slot);

// --- emit_teams.c ---
void pestle_shared_tile_start_teams(shared_emit_t* t);
void pestle_shared_tile_multiply_teams(shared_emit_t* t, pestle_kir_id_t slot);
// Opens, for each vector of sums of the tile that is this lane's, so many regions: its
// row, which of the row's vectors it is, and what all teams' sums add up to.
uint32_t pestle_shared_tile_open_team_sums(shared_emit_t* t,
                                           pestle_kir_id_t* out_row,
                                           pestle_kir_id_t* out_vector,
                                           pestle_kir_id_t* out_sums);

// --- emit_parts.c ---
// Opens, for each vector of sums of this group's rows of the tile, so many regions: its
// row in the tile, which of the row's vectors it is, and what all parts add up to.
uint32_t pestle_shared_tile_open_part_sums(shared_emit_t* t,
                                           pestle_kir_id_t* out_row,
                                           pestle_kir_id_t* out_vector,
                                           pestle_kir_id_t* out_sums);

// --- emit_result.c ---
void pestle_shared_tile_results(shared_emit_t* t);

#endif  // PESTLE_CODEGEN_TEMPLATE_SHARED_TILE_EMIT_H_

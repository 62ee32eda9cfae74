// SPDX-License-Identifier: Apache-2.0
// The template shared_tile: a sum of products by groups of lanes that keep boxes of both
// operands in shared memory and sums in registers.
//
//   shared_tile S m n k r c slots [units | units8 | teams] [async] [parts2 | parts4]
//
// A group makes m x n sums, k products a step, a lane r x c of them; by matrix units a
// subgroup does. Of teams, each subgroup makes all m x n sums, of its 8 elements of a
// step's k. With parts, so many groups of a cluster have a part of the steps each, and
// then some rows of the tile. More than two slots in shared memory are filled by copies past the
// registers, and two with |async|.
#ifndef PESTLE_CODEGEN_TEMPLATE_SHARED_TILE_SHARED_TILE_H_
#define PESTLE_CODEGEN_TEMPLATE_SHARED_TILE_SHARED_TILE_H_

#include "codegen/template/product.h"
#include "codegen/template/template.h"

// What the primitive says, in its order.
typedef struct pestle_shared_tile_t {
  int64_t m, n, k;  // rows, columns and k of a group's step
  int64_t r, c;     // rows and columns of a lane, or of a subgroup's units
  int64_t slots;    // of shared memory, a step each
  uint8_t units;    // pestle_product_units_t
  bool async;       // shared memory is filled past the registers
  int64_t parts;    // groups that share k: 1, 2 or 4
} pestle_shared_tile_t;

enum {
  // Of a team: elements of k a step, those that a lane reads at once, and elements
  // between rows of sums in shared memory.
  PESTLE_SHARED_TILE_TEAM_K = 8,
  PESTLE_SHARED_TILE_TEAM_RUN = 4,
  PESTLE_SHARED_TILE_TEAM_PAD = 8,
  // Elements between rows of a part's sums in shared memory.
  PESTLE_SHARED_TILE_PART_PAD = 8,
};

pestle_shared_tile_t pestle_shared_tile_of(const pestle_nest_template_t* use);

// Whether sums of matrix units pass through shared memory, strips of 16 rows a subgroup,
// to the last stage, which then is a loop: it calls functions of tens of instructions,
// which are not written out for each sum of a lane, or columns are odd, so that
// neighbouring lanes take neighbouring ones.
bool pestle_shared_tile_has_strips(const pestle_shared_tile_t* tile,
                                   pestle_nest_t* nest,
                                   const pestle_product_t* p);

// Elements of such strips, and from one row of them to the next.
static inline int64_t pestle_shared_tile_strip_pitch(
    const pestle_shared_tile_t* tile) {
  return tile->c + 8;
}
static inline int64_t pestle_shared_tile_strips(
    const pestle_shared_tile_t* tile) {
  return tile->m / tile->r * (tile->n / tile->c) * 16 *
         pestle_shared_tile_strip_pitch(tile);
}

// Rows of a product of such units; all have 8 columns.
static inline int64_t pestle_shared_tile_unit_rows(uint8_t units) {
  return units == PESTLE_UNITS_MMA8 ? 8 : 16;
}
// Elements of k of a product of matrix units on operands of |dtype|: rows of 32 bytes of
// a subgroup's, 8 elements of the others'.
static inline int64_t pestle_shared_tile_unit_k(uint8_t units,
                                                pestle_dtype_t dtype) {
  return units == PESTLE_UNITS_MMA8 ? 8
                                    : 32 / (int64_t)pestle_dtype_size(dtype);
}
// Lanes of a group of |tile|.
static inline int64_t pestle_shared_tile_lanes(
    const pestle_shared_tile_t* tile) {
  if (tile->units == PESTLE_UNITS_TEAMS) {
    return tile->k / PESTLE_SHARED_TILE_TEAM_K * 32;
  }
  return tile->m / tile->r * (tile->n / tile->c) * (tile->units ? 32 : 1);
}
// Elements of shared memory from one row (or element of k) of a kept box to the next.
static inline int64_t pestle_shared_tile_pitch(
    const pestle_shared_tile_t* tile, const pestle_product_side_t* side,
    int64_t rows) {
  // 16 bytes more: rows that are read together lie in different banks.
  int64_t more = 16 / (int64_t)pestle_dtype_size(side->dtype);
  // Words of which a lane reads one: four rows of k, eight of them in each.
  if (tile->units == PESTLE_UNITS_MMA && !side->along_k &&
      pestle_dtype_size(side->dtype) == 4) {
    more = 8;
  }
  if (tile->units) return (side->along_k ? tile->k : rows) + more;
  return rows + 4;
}
// Elements of one slot.
static inline int64_t pestle_shared_tile_slot(const pestle_shared_tile_t* tile,
                                              const pestle_product_side_t* side,
                                              int64_t rows) {
  bool by_rows = tile->units && side->along_k;
  return pestle_shared_tile_pitch(tile, side, rows) *
         (by_rows ? rows : tile->k);
}
static inline int64_t pestle_shared_tile_bytes(const pestle_shared_tile_t* tile,
                                               const pestle_product_t* p) {
  int64_t slots =
      tile->slots *
      (int64_t)(pestle_dtype_size(p->a.dtype) *
                    (uint64_t)pestle_shared_tile_slot(tile, &p->a, tile->m) +
                pestle_dtype_size(p->b.dtype) *
                    (uint64_t)pestle_shared_tile_slot(tile, &p->b, tile->n));
  if (tile->parts > 1) {
    slots += tile->m * (tile->n + PESTLE_SHARED_TILE_PART_PAD) * 4;
  }
  if (tile->units != PESTLE_UNITS_TEAMS) return slots;
  return slots + pestle_shared_tile_lanes(tile) / 32 * tile->m *
                     (tile->n + PESTLE_SHARED_TILE_TEAM_PAD) * 4;
}

#endif  // PESTLE_CODEGEN_TEMPLATE_SHARED_TILE_SHARED_TILE_H_

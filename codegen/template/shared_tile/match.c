// SPDX-License-Identifier: Apache-2.0
// Which sums of products are staged in shared memory, and what the integers of the
// primitive mean.
#include "base/bits.h"
#include "codegen/sketch/sketch.h"
#include "codegen/template/shared_tile/shared_tile.h"

enum { MOST_LANES = 1024 };

pestle_shared_tile_t pestle_shared_tile_of(const pestle_nest_template_t* use) {
  const int64_t* i = use->ints;
  bool known = i[6] >= PESTLE_UNITS_LANES && i[6] <= PESTLE_UNITS_TEAMS;
  return (pestle_shared_tile_t){
      .m = i[0],
      .n = i[1],
      .k = i[2],
      .r = i[3],
      .c = i[4],
      .slots = i[5],
      .units = known ? (uint8_t)i[6] : PESTLE_UNITS_AMX,  // which no tile has
      .async = i[7] != 0,
      .parts = (int64_t)1 << (i[8] & 3)};
}

bool pestle_shared_tile_has_strips(const pestle_shared_tile_t* tile,
                                   pestle_nest_t* nest,
                                   const pestle_product_t* p) {
  if (tile->units != PESTLE_UNITS_MMA) return false;
  pestle_sketch_t k = {.nest = nest};
  return pestle_product_last_extent(&p->n) % 2 ||
         pestle_sketch_transcendental(&k, pestle_nest_stage(nest, p->last));
}

static bool is_tile(const pestle_shared_tile_t* t) {
  bool sizes = t->m > 0 && t->n > 0 && t->k > 0 && t->r > 0 && t->c > 0 &&
               t->slots >= 2 && t->slots <= 8 && t->m <= 512 && t->n <= 512 &&
               t->k <= 128;
  bool parts = t->parts == 1 ||
               (t->parts <= 4 && t->slots > 2 && t->units == PESTLE_UNITS_MMA);
  if (!sizes || !parts || !pestle_is_pow2((uint64_t)t->m) ||
      !pestle_is_pow2((uint64_t)t->n) || !pestle_is_pow2((uint64_t)t->k) ||
      t->m % t->r || t->n % t->c || pestle_shared_tile_lanes(t) > MOST_LANES) {
    return false;
  }
  if (!t->units) {
    return pestle_is_pow2((uint64_t)t->r) && pestle_is_pow2((uint64_t)t->c) &&
           t->r * t->c <= 128 && t->slots == 2;
  }
  if (t->units == PESTLE_UNITS_TEAMS) {
    return pestle_is_pow2((uint64_t)t->r) && pestle_is_pow2((uint64_t)t->c) &&
           t->r * t->c <= 64 && t->m / t->r * (t->n / t->c) == 32 &&
           t->k % PESTLE_SHARED_TILE_TEAM_K == 0 &&
           t->n % PESTLE_SHARED_TILE_TEAM_RUN == 0;
  }
  int64_t unit = pestle_shared_tile_unit_rows(t->units);
  bool columns = t->units == PESTLE_UNITS_MMA ? t->c == 8 || t->c % 16 == 0
                                              : t->c % 8 == 0;
  return t->units <= PESTLE_UNITS_MMA8 && t->r % unit == 0 &&
         t->k % unit == 0 && columns && t->r * t->c <= 64 * 64;
}

pestle_status_t pestle_shared_tile_match(pestle_nest_t* nest,
                                         const pestle_nest_template_t* use) {
  pestle_product_t p;
  pestle_shared_tile_t tile = pestle_shared_tile_of(use);
  const char* name = pestle_nest_stage(nest, use->stage)->name;
  if (!pestle_product_find(nest, use->stage, tile.units, &p)) {
    PESTLE_TRY(pestle_nest_status(nest));
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "shared_tile %s: it must be a sum of products that the "
                        "last stage reads where it was made%s",
                        name,
                        tile.units == PESTLE_UNITS_MMA
                            ? ", of f16 or bf16, of bytes in i32, of 8-bit "
                              "floats or of f32 as tf32"
                        : tile.units ? ", in f32"
                                     : "");
  }
  int64_t unit = pestle_shared_tile_unit_k(tile.units, p.a.dtype);
  if (is_tile(&tile) && (tile.slots == 2 || (p.a.read && p.b.read))) {
    if (tile.units == PESTLE_UNITS_MMA && tile.k % unit) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "shared_tile %s: units multiply %d elements of k of "
                          "such operands at once",
                          name, (int)unit);
    }
    return NULL;
  }
  return PESTLE_ERROR(
      INVALID_ARGUMENT,
      "shared_tile %s: m, n and k must be powers of two, whole parts of r and "
      "c, for at most %d lanes; more than two slots need operands that can be "
      "copied as they lie; parts need units and more than two slots",
      name, MOST_LANES);
}

// SPDX-License-Identifier: Apache-2.0
// What is done to the rows of attention between its two products, whoever makes
// those: shared by emit.c and flash_attention_wgmma/.
#ifndef PESTLE_CODEGEN_TEMPLATE_FLASH_ATTENTION_MMA_ROWS_H_
#define PESTLE_CODEGEN_TEMPLATE_FLASH_ATTENTION_MMA_ROWS_H_

#include "codegen/template/flash_attention_mma/flash_attention_mma.h"
#include "codegen/template/shared_tile/emit.h"

// A lane's part of 16 rows of a subgroup: rows g and g + 8, g = lane / 4, and of
// every eight columns two: the fragments of MMA's sums.
typedef struct flash_rows_t {
  pestle_emit_t* e;
  pestle_kir_builder_t* k;
  pestle_flash_attention_t a;
  pestle_visible_t visible;
  shared_emit_t at;       // by which numbers become coordinates
  int64_t tile;           // rows of a group
  int64_t keys, columns;  // of a subgroup's block; padded
  int64_t block;  // keys that a group takes at once: one or more such blocks
  bool beyond;    // columns of results may lie behind the last one
  bool rounded;   // a weight is one narrow float
  bool raw;  // what is kept of scores are the products, x is their multiple
  int64_t width_keys, width_columns;
  uint32_t scores, sums;                  // f32x4 for eight columns
  uint32_t most, next, safe, scale, all;  // of a lane's two rows
  uint32_t pair, total;
  uint32_t key_run, key_lane, column_run, column_lane;
  pestle_kir_id_t row, quad;
  pestle_kir_id_t first_row, last_row;  // of the group's tile
} flash_rows_t;

static inline pestle_kir_id_t flash_index(const flash_rows_t* t, int64_t i) {
  return pestle_kir_index(t->k, i);
}
pestle_kir_id_t pestle_flash_get(const flash_rows_t* t, uint32_t buffer,
                                 pestle_kir_id_t index);
void pestle_flash_put(const flash_rows_t* t, uint32_t buffer,
                      pestle_kir_id_t index, pestle_kir_id_t value);
// |count| lanes of a and b from |first| on.
pestle_kir_id_t pestle_flash_pick(const flash_rows_t* t, pestle_kir_id_t a,
                                  pestle_kir_id_t b, uint32_t first,
                                  unsigned count);
uint32_t pestle_flash_registers(const flash_rows_t* t, const char* name,
                                pestle_dtype_t dtype, int64_t lanes,
                                int64_t count);
void pestle_flash_fill(const flash_rows_t* t, uint32_t buffer, int64_t count,
                       double value);
// An axis of |extent| of the last stage as |out_run| runs of |out_lane|.
void pestle_flash_add_run(flash_rows_t* t, const char* name, int64_t extent,
                          int64_t run, uint32_t* out_run, uint32_t* out_lane);

// What |expr|, x or a part of it, is of |scores|, |width_keys| of them from |key|
// (in such vectors) on.
pestle_kir_id_t pestle_flash_x(flash_rows_t* t, pestle_kir_id_t row,
                               pestle_kir_id_t key, pestle_kir_id_t scores,
                               const pestle_expr_t* expr);
// The last stage of |sums|, |width_columns| of them likewise, with |total|.
void pestle_flash_result(flash_rows_t* t, pestle_kir_id_t row,
                         pestle_kir_id_t column, pestle_kir_id_t sums);

// Coordinates of the batch axes of all stages, by |at|.
static inline void pestle_flash_rows_batch(const flash_rows_t* t,
                                           shared_emit_t* at,
                                           pestle_kir_id_t batch) {
  const pestle_product_axes_t* const axes[] = {&t->a.batch, &t->a.x_batch,
                                               &t->a.v_batch, &t->a.y_batch};
  for (int i = 0; i < 4; ++i)
    pestle_shared_tile_coords(at, axes[i], false, batch, 1, 0, 0);
}
// Opens an IF for each of batch axes and rows, from |row| on, of which the group's may
// lie behind an end: how many.
static inline uint32_t pestle_flash_rows_open_ends(const flash_rows_t* t,
                                                   pestle_kir_id_t batch,
                                                   pestle_kir_id_t row) {
  const pestle_product_axes_t *b = &t->a.y_batch, *m = &t->a.y_rows;
  uint32_t opened =
      pestle_emit_open_place(t->e, b->last, b->extent, b->count, batch);
  return opened + pestle_emit_open_end(t->e, m->last, m->extent, m->count, row);
}

void pestle_flash_rows_add_registers(flash_rows_t* t);
// The rows of the group's tile number |tile|.
void pestle_flash_rows_bound(flash_rows_t* t, pestle_kir_id_t tile);
// Before the first block.
void pestle_flash_rows_start(flash_rows_t* t);
// Of block |step|'s scores what the weights are made of, and the maxima so far.
void pestle_flash_rows_maximum(flash_rows_t* t, pestle_kir_id_t step);
// The totals so far are those of the new maxima; and so are the sums.
void pestle_flash_rows_scale(flash_rows_t* t);
void pestle_flash_rows_scale_sums(flash_rows_t* t);
// The weights of 16 keys as fragment a of MMA, and what that lost.
void pestle_flash_rows_weights(flash_rows_t* t, pestle_kir_id_t u,
                               pestle_kir_id_t out_words[2]);
// Scores are weights from here on (|rounded|); those of 16 keys, rounded, as
// fragment a.
void pestle_flash_rows_round(flash_rows_t* t);
pestle_kir_id_t pestle_flash_rows_rounded(flash_rows_t* t, pestle_kir_id_t u);
// The last stage, of |count| times eight columns: the lane's sums are those from number
// |first| on.
void pestle_flash_rows_results(flash_rows_t* t, pestle_kir_id_t first,
                               int64_t count);

// How many blocks have a key that is visible from rows |first| to |last|, and
// in |*out_from| the first of them; |steps| is how many there are.
pestle_kir_id_t pestle_flash_rows_blocks(flash_rows_t* t, pestle_kir_id_t first,
                                         pestle_kir_id_t last,
                                         pestle_kir_id_t steps,
                                         pestle_kir_id_t* out_from);

#endif  // PESTLE_CODEGEN_TEMPLATE_FLASH_ATTENTION_MMA_ROWS_H_

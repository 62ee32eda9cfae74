// SPDX-License-Identifier: Apache-2.0
// The template flash_attention_mma: softmax(q k) v in one pass over the keys, both
// products by the matrix units of subgroups. The scores never leave registers.
//
//   flash_attention_mma S n [teams] [async] [parts2|parts4|parts8]
//
// n keys are taken at once by a subgroup; S is the stage of the output. Subgroups have
// 16 rows each and the same keys; of teams, the same 16 rows and n keys each, and what
// they found is joined at the end. |async|: shared memory is filled past the registers.
// With parts, so many groups of a cluster, all teams, have a part of the keys each.
#ifndef PESTLE_CODEGEN_TEMPLATE_FLASH_ATTENTION_MMA_FLASH_ATTENTION_MMA_H_
#define PESTLE_CODEGEN_TEMPLATE_FLASH_ATTENTION_MMA_FLASH_ATTENTION_MMA_H_

#include "base/bits.h"
#include "codegen/template/shared_tile/shared_tile.h"

// Shared with flash_attention_wgmma/ and _lanes/, which make the products otherwise;
// |units|: pestle_product_units_t.
// scores[b.., i, j] = +[e] q k;  m[b.., i] = max[j] x(scores);
// l[b.., i] = +[j] exp(x - m);   o[b.., i, d] = +[j] exp(x - m) * v;
// the last stage reads o and l at its own axes.
typedef struct pestle_flash_attention_t {
  uint32_t scores, maximum, total, output, last;  // stages
  const pestle_expr_t* x;                         // at the axes of |maximum|
  pestle_op_t power;                              // EXP or EXP2
  // Axes of the stages named: batch axes and rows, then what the name says.
  pestle_product_axes_t batch, rows, keys, depth;    // of the scores
  pestle_product_axes_t v_batch, v_columns, v_keys;  // of the output
  pestle_product_axes_t x_batch, x_rows, x_keys;     // of the maximum
  pestle_product_axes_t y_batch, y_rows, y_columns;  // of the last stage
  pestle_product_side_t q, k, v;
} pestle_flash_attention_t;

// What ints of the primitive say.
typedef struct pestle_flash_mma_how_t {
  int64_t keys;  // at once, of a subgroup
  bool teams, async;
  int64_t parts;  // groups that share the keys; 1 where there is no cluster
} pestle_flash_mma_how_t;

pestle_flash_mma_how_t pestle_flash_mma_of(const pestle_nest_template_t* use);

// Whether its reductions look like that; what stands between them may have to be
// inlined first for it to be that.
bool pestle_flash_attention_resembles(pestle_nest_t* nest, uint8_t units);
// Of at most |columns| columns of q, k and v.
bool pestle_flash_attention_find(pestle_nest_t* nest, uint8_t units,
                                 int64_t columns,
                                 pestle_flash_attention_t* out);
// What registers of mma hold; of teams, whose other registers are fewer keys'.
enum {
  PESTLE_FLASH_ATTENTION_COLUMNS = 128,
  PESTLE_FLASH_ATTENTION_TEAM_COLUMNS = 256,
};

static inline int64_t pestle_flash_attention_columns(bool teams) {
  return teams ? PESTLE_FLASH_ATTENTION_TEAM_COLUMNS
               : PESTLE_FLASH_ATTENTION_COLUMNS;
}

// A key is visible only where row * its row + key * its own + constant >= 0; key is
// 1 or -1. Along |x_rows| and |x_keys|.
typedef struct pestle_visible_test_t {
  int64_t row, key, constant;
} pestle_visible_test_t;

// What x hides by -inf (visible.c).
typedef struct pestle_visible_t {
  uint32_t count;
  pestle_visible_test_t tests[4];
  const pestle_expr_t* test;   // it is -inf where this is false; or NULL
  bool placed;                 // |tests| are all that this asks
  const pestle_expr_t* plain;  // what x is where they hold
  double factor;  // > 0: where |test| holds x is this times the score
} pestle_visible_t;

void pestle_flash_attention_visible(pestle_nest_t* nest,
                                    const pestle_flash_attention_t* a,
                                    pestle_visible_t* out_visible);

// Rows of a subgroup, subgroups of a group, lanes of it.
enum {
  PESTLE_FLASH_ATTENTION_ROWS = 16,
  PESTLE_FLASH_ATTENTION_SUBGROUPS = 4,
  PESTLE_FLASH_ATTENTION_LANES = 128,
};

// Whole fragments' elements of k or columns that hold |count| of them.
static inline int64_t pestle_flash_attention_pad(int64_t count) {
  return (int64_t)pestle_align_up((size_t)count, 16);
}

// Bytes of shared memory where a subgroup takes |keys| at once.
int64_t pestle_flash_attention_bytes(const pestle_flash_attention_t* a,
                                     int64_t keys, bool teams);

#endif  // PESTLE_CODEGEN_TEMPLATE_FLASH_ATTENTION_MMA_FLASH_ATTENTION_MMA_H_

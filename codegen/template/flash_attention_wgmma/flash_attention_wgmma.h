// SPDX-License-Identifier: Apache-2.0
// The template flash_attention_wgmma: softmax(q k) v in one pass over the keys, both
// products by warpgroups whose operands are copied ahead of them.
//
//   flash_attention_wgmma S n w g h [back]
//
// n keys are taken at once; w warpgroups have 64 rows each; S is the stage of the
// output. At most g groups stay for the whole launch. They take the tiles of h heads by
// rows, then those of the next h; |back|: every other round from the last group to the
// first.
#ifndef PESTLE_CODEGEN_TEMPLATE_FLASH_ATTENTION_WGMMA_FLASH_ATTENTION_WGMMA_H_
#define PESTLE_CODEGEN_TEMPLATE_FLASH_ATTENTION_WGMMA_FLASH_ATTENTION_WGMMA_H_

#include "codegen/template/flash_attention_mma/flash_attention_mma.h"

enum {
  PESTLE_FLASH_WGMMA_COLUMNS = 256,  // of q, k and v, at most
  PESTLE_FLASH_WGMMA_ROWS = 64,      // of a warpgroup
};

typedef struct pestle_flash_wgmma_how_t {
  int64_t keys;       // of a block
  int64_t consumers;  // warpgroups of 64 rows
  int64_t groups;
  int64_t heads;  // at a time; they divide the batch
  bool back;
} pestle_flash_wgmma_how_t;

pestle_flash_wgmma_how_t pestle_flash_wgmma_of(
    const pestle_nest_template_t* use);

// An operand as boxes are copied of it: element (row, element of k) of the batch
// at these places of its axes.
typedef struct pestle_flash_operand_t {
  uint32_t tensor;
  int64_t offset, row_stride, k_stride;
  int64_t batch_stride[PESTLE_NEST_MAX_AXES];  // by batch axis
} pestle_flash_operand_t;

// Whether |side|, whose batch axes are the same as |batch|'s, lies in runs of 16
// bytes at even distances. |batch|: of its own stage.
bool pestle_flash_wgmma_operand(const pestle_nest_t* nest,
                                const pestle_product_side_t* side,
                                const pestle_product_axes_t* batch,
                                const pestle_product_axes_t* rows,
                                const pestle_product_axes_t* depth,
                                pestle_flash_operand_t* out);

// Attention, its operands such ones: q, k, v.
bool pestle_flash_wgmma_find(pestle_nest_t* nest, pestle_flash_attention_t* out,
                             pestle_flash_operand_t out_operands[3]);

// Sets |how|'s order, by which no group has much more to do than the others.
void pestle_flash_wgmma_order(pestle_nest_t* nest,
                              const pestle_flash_attention_t* a,
                              pestle_flash_wgmma_how_t* how);

// Bytes of shared memory that a group needs.
int64_t pestle_flash_wgmma_bytes(const pestle_flash_attention_t* a,
                                 const pestle_flash_wgmma_how_t* how);

#endif  // PESTLE_CODEGEN_TEMPLATE_FLASH_ATTENTION_WGMMA_FLASH_ATTENTION_WGMMA_H_

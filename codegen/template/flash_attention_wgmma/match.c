// SPDX-License-Identifier: Apache-2.0
// Which attention warpgroups take: operands whose boxes the copy engine brings.
#include "codegen/template/flash_attention_wgmma/flash_attention_wgmma.h"

enum {
  RUN = 8,     // elements of 16 bytes: what boxes are copied by
  CHUNK = 64,  // elements of a row of 128 bytes
  MOST_RANK = 5,
  BARRIER_BYTES = 1024,
};

static bool take_coef(const pestle_affine_t* at, uint32_t axis, int64_t* out,
                      uint32_t* found) {
  bool nested = false;
  *out = pestle_affine_coef(at, axis, &nested);
  *found += *out != 0;
  return !nested && *out >= 0;
}

bool pestle_flash_wgmma_operand(const pestle_nest_t* nest,
                                const pestle_product_side_t* side,
                                const pestle_product_axes_t* batch,
                                const pestle_product_axes_t* rows,
                                const pestle_product_axes_t* depth,
                                pestle_flash_operand_t* out) {
  const pestle_expr_t* x = side->value;
  uint32_t found = 0, rank = 2;
  if (x->kind != PESTLE_EXPR_READ || x->guard || x->packed) return false;
  const pestle_nest_tensor_t* tensor = &nest->tensors.data[x->i];
  const pestle_affine_t* at = x->index[0];
  *out = (pestle_flash_operand_t){.tensor = (uint32_t)x->i,
                                  .offset = at->constant};
  if (tensor->kind != PESTLE_TENSOR_INPUT || tensor->pack ||
      !take_coef(at, rows->reduce[0], &out->row_stride, &found) ||
      !take_coef(at, depth->reduce[0], &out->k_stride, &found)) {
    return false;
  }
  for (uint32_t i = 0; i < batch->count; ++i) {
    int64_t* stride = &out->batch_stride[i];
    if (!take_coef(at, batch->reduce[i], stride, &found) || *stride % RUN)
      return false;
    rank += *stride != 0;
  }
  // One row is as far from the next as it is long.
  if (rows->all == 1 && !out->row_stride) {
    out->row_stride = (int64_t)pestle_align_up((size_t)depth->all, RUN);
  }
  // What is left of the index are axes of one element, or other things.
  bool along_k = out->k_stride == 1;
  int64_t other = along_k ? out->row_stride : out->k_stride;
  return found == at->count && rank <= MOST_RANK && out->offset >= 0 &&
         out->offset % RUN == 0 && (along_k || out->row_stride == 1) &&
         other > 0 && other % RUN == 0;
}

bool pestle_flash_wgmma_find(pestle_nest_t* nest, pestle_flash_attention_t* a,
                             pestle_flash_operand_t operands[3]) {
  if (!pestle_flash_attention_find(nest, PESTLE_UNITS_MMA,
                                   PESTLE_FLASH_WGMMA_COLUMNS, a)) {
    return false;
  }
  bool whole = a->depth.all % RUN == 0 && a->v_columns.all % RUN == 0;
  return whole &&
         pestle_flash_wgmma_operand(nest, &a->q, &a->batch, &a->rows, &a->depth,
                                    &operands[0]) &&
         pestle_flash_wgmma_operand(nest, &a->k, &a->batch, &a->keys, &a->depth,
                                    &operands[1]) &&
         pestle_flash_wgmma_operand(nest, &a->v, &a->v_batch, &a->v_columns,
                                    &a->v_keys, &operands[2]) &&
         // Queries are read in place, rows of 64 at a time.
         operands[0].k_stride == 1;
}

int64_t pestle_flash_wgmma_bytes(const pestle_flash_attention_t* a,
                                 const pestle_flash_wgmma_how_t* how) {
  int64_t depth = (int64_t)pestle_align_up((size_t)a->depth.all, CHUNK);
  int64_t columns = (int64_t)pestle_align_up((size_t)a->v_columns.all, CHUNK);
  int64_t rows = CHUNK * how->consumers;
  return 2 * (rows * depth + 2 * how->keys * (depth + columns)) + BARRIER_BYTES;
}

// --- The primitive ---

pestle_flash_wgmma_how_t pestle_flash_wgmma_of(
    const pestle_nest_template_t* use) {
  const int64_t* i = use->ints;
  return (pestle_flash_wgmma_how_t){.keys = i[0],
                                    .consumers = i[1],
                                    .groups = i[2],
                                    .heads = i[3],
                                    .back = i[4] != 0};
}

pestle_status_t pestle_flash_attention_wgmma_match(
    pestle_nest_t* nest, const pestle_nest_template_t* use) {
  pestle_flash_attention_t a;
  pestle_flash_operand_t operands[3];
  pestle_flash_wgmma_how_t how = pestle_flash_wgmma_of(use);
  bool sizes = (how.keys == 64 || how.keys == 128) && how.consumers >= 1 &&
               how.consumers <= 2 && how.groups > 0 &&
               how.groups <= INT32_MAX && how.heads > 0;
  if (sizes && pestle_flash_wgmma_find(nest, &a, operands) &&
      a.output == use->stage && a.batch.all % how.heads == 0) {
    return NULL;
  }
  PESTLE_TRY(pestle_nest_status(nest));
  return PESTLE_ERROR(
      INVALID_ARGUMENT,
      "flash_attention_wgmma %s: it must be the output of attention on f16 or "
      "bf16 whose operands lie in runs of 16 bytes, of at most %d columns, a "
      "multiple of 8; 64 or 128 keys at once, one or two warpgroups, so many "
      "heads at a time that they divide the batch",
      pestle_nest_stage(nest, use->stage)->name,
      (int)PESTLE_FLASH_WGMMA_COLUMNS);
}

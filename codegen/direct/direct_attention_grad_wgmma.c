// SPDX-License-Identifier: Apache-2.0
// The products of an attention's gradient where warpgroups multiply tiles in shared memory
// (wgmma): a group is one warpgroup, which owns 64 rows and goes over 64 others at a time.
// Its sums lie as those of MMA do, so that all but the products is as without
// (direct_attention_grad_lanes.c and _rows.c).
//
// A tile is columns of 64 elements (rows of 128 bytes, swizzled: run c of row r stands where
// run c ^ r % 8 would), all rows of a column behind each other. So one tile is an operand
// along its columns, and, of 64 rows, one along its rows too. Lanes copy what they need
// themselves and say so by TILE_FENCE in front of the barrier.
#include "codegen/direct/direct_attention_grad_lanes.h"

enum { CHUNK = 64, SWIZZLED = 8 };

bool pestle_flash_grad_has_warpgroups(const flash_grad_t* g) {
  const pestle_target_caps_t* caps = g->d->caps;
  for (uint32_t i = 0; i < caps->intrinsic_count && i < 16; ++i) {
    const pestle_intrinsic_t* x = &caps->intrinsic[i];
    if (x->kind == PESTLE_INTRINSIC_WGMMA && x->a == g->dtype && x->k == 16)
      return true;
  }
  return false;
}

pk_t pestle_flash_grad_swizzled(const flash_grad_t* g, const flash_matrix_t* m,
                                pk_t row, pk_t run, pk_t from) {
  int64_t runs = CHUNK / FLASH_RUN;
  pk_t chunk = flash_by(g, PESTLE_OP_DIVIDE, run, runs);
  pk_t in = flash_by(g, PESTLE_OP_REMAINDER, run, runs);
  pk_t low = flash_by(g, PESTLE_OP_REMAINDER, row, SWIZZLED);
  in = flash_op(g, PESTLE_OP_XOR, in, low);
  // The bits of both are below eight.
  in = flash_by(g, PESTLE_OP_MINIMUM, in, runs - 1);
  in = flash_by(g, PESTLE_OP_MAXIMUM, in, 0);
  from = flash_at(g, chunk, CHUNK * m->rows, from);
  from = flash_at(g, row, CHUNK, from);
  return flash_at(g, in, FLASH_RUN, from);
}

static void act(const flash_grad_t* g, pestle_kir_op_t op, uint32_t a) {
  pestle_kir_act(g->k, op, a, 0, 0, 0);
}

static pk_t ref(const flash_grad_t* g, const flash_matrix_t* m, pk_t slot,
                pk_t element) {
  pk_t at = flash_at(g, slot, m->rows * m->pitch, element);
  return pestle_kir_put(g->k, (pestle_kir_inst_t){.op = PESTLE_KIR_REF,
                                                  .type = PESTLE_ADDR,
                                                  .lanes = 1,
                                                  .arg = {m->shared, at}});
}

static uint32_t how_of(const flash_grad_t* g, int64_t columns) {
  uint32_t how = (uint32_t)columns;
  return g->dtype == PESTLE_F16 ? how | PESTLE_KIR_WGMMA_F16 : how;
}

void pestle_flash_grad_ask_products(const flash_grad_t* g, int which,
                                    uint32_t sums, pk_t slot) {
  const flash_matrix_t *a = &g->own[which], *b = &g->other[which];
  int64_t units = a->padded / FLASH_UNIT, each = CHUNK / FLASH_UNIT;
  pestle_kir_alloc(g->k, sums);
  act(g, PESTLE_KIR_WGMMA_FENCE, 0);
  for (int64_t u = 0; u < units; ++u) {
    int64_t in = u % each * FLASH_UNIT, chunk = u / each * CHUNK;
    pk_t own = flash_number(g, chunk * a->rows + in);
    pk_t other = flash_number(g, chunk * b->rows + in);
    pestle_kir_act(g->k, PESTLE_KIR_WGMMA, sums,
                   ref(g, a, flash_number(g, 0), own), ref(g, b, slot, other),
                   how_of(g, b->rows) | (u ? 0 : PESTLE_KIR_WGMMA_ZERO));
  }
  act(g, PESTLE_KIR_WGMMA_COMMIT, 0);
}

void pestle_flash_grad_ask_sums(const flash_grad_t* g, int of, int which,
                                pk_t slot) {
  const flash_matrix_t* b = &g->other[which];
  act(g, PESTLE_KIR_WGMMA_FENCE, 0);
  pk_t u = pestle_kir_unroll(g->k, "u", b->rows / FLASH_UNIT);
  pk_t taps = flash_at(g, u, FLASH_UNIT * CHUNK, flash_number(g, 0));
  pestle_kir_act(g->k, PESTLE_KIR_WGMMA_RA, g->sums[of],
                 flash_get(g, g->words[of], u), ref(g, b, slot, taps),
                 how_of(g, b->padded) | PESTLE_KIR_WGMMA_B_TRANSPOSED);
  pestle_kir_end(g->k);
  act(g, PESTLE_KIR_WGMMA_COMMIT, 0);
}

void pestle_flash_grad_wait(const flash_grad_t* g) {
  act(g, PESTLE_KIR_WGMMA_WAIT, 0);
}

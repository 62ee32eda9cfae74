// SPDX-License-Identifier: Apache-2.0
// Sums by parts of k: each group of a cluster makes the tile's sums of its own steps and
// leaves them in shared memory. Then each adds up some rows of the tile, from the first
// part to the last.
#include "codegen/template/shared_tile/emit.h"

static pestle_kir_id_t address(shared_emit_t* t, pestle_kir_op_t op, uint32_t a,
                               uint32_t b) {
  return pestle_kir_put(
      t->k,
      (pestle_kir_inst_t){
          .op = (uint16_t)op, .type = PESTLE_ADDR, .lanes = 1, .arg = {a, b}});
}

// The lane's fragments: two rows, 8 apart, of two columns each.
static void keep_part(shared_emit_t* t, uint32_t parts, int64_t pitch) {
  static const uint32_t halves[2][2] = {{0, 1}, {2, 3}};
  pestle_kir_builder_t* k = t->k;
  int64_t columns = t->t->c / 8;
  pestle_kir_id_t i = pestle_kir_unroll(k, "i", t->t->r / 16);
  pestle_kir_id_t j = pestle_kir_unroll(k, "j", columns);
  pestle_kir_id_t sum = pestle_kir_load(
      k, t->sums, 4, pestle_kir_madi(k, i, columns, j), PESTLE_KIR_NONE, 0);
  pestle_kir_id_t at = pestle_kir_madi(k, t->row, pitch, t->column);
  at = pestle_kir_madi(k, i, 16 * pitch, at);
  at = pestle_kir_madi(k, j, 8, at);
  for (int half = 0; half < 2; ++half) {
    pestle_kir_id_t to =
        pestle_kir_madi(k, at, 1, pestle_kir_index(k, 8 * half * pitch));
    pestle_kir_store(k, parts, to,
                     pestle_kir_shuffle(k, sum, sum, halves[half], 2),
                     PESTLE_KIR_NONE, 8);
  }
  pestle_kir_end(k);
  pestle_kir_end(k);
}

static pestle_kir_id_t add_parts(shared_emit_t* t, uint32_t parts,
                                 pestle_kir_id_t at) {
  pestle_kir_builder_t* k = t->k;
  pestle_kir_id_t sum = PESTLE_KIR_NONE, zero = pestle_kir_index(k, 0);
  pestle_kir_id_t own = address(t, PESTLE_KIR_REF, parts, at);
  for (int64_t i = 0; i < t->t->parts; ++i) {
    pestle_kir_id_t from =
        address(t, PESTLE_KIR_REF_AT, own, pestle_kir_index(k, i));
    pestle_kir_id_t part =
        pestle_kir_put(k, (pestle_kir_inst_t){.op = PESTLE_KIR_LOAD_AT,
                                              .type = (uint8_t)t->p.sums,
                                              .lanes = (uint8_t)t->vector,
                                              .arg = {from, zero}});
    sum = i ? pestle_kir_scalar(k, PESTLE_OP_ADD, sum, part, PESTLE_KIR_NONE)
            : part;
  }
  return sum;
}

uint32_t pestle_shared_tile_open_part_sums(shared_emit_t* t,
                                           pestle_kir_id_t* out_row,
                                           pestle_kir_id_t* out_vector,
                                           pestle_kir_id_t* out_sums) {
  pestle_kir_builder_t* k = t->k;
  int64_t across = t->t->n / t->vector, rows = t->t->m / t->t->parts;
  int64_t pitch = t->t->n + PESTLE_SHARED_TILE_PART_PAD, count = rows * across;
  uint32_t parts = pestle_kir_add_buffer(k, "parts", PESTLE_KIR_SHARED,
                                         t->p.sums, 1, t->t->m * pitch, 0);
  keep_part(t, parts, pitch);
  pestle_kir_act(k, PESTLE_KIR_CLUSTER_SYNC, 0, 0, 0, 0);
  pestle_kir_id_t number =
      pestle_kir_for(k, "v", t->lane, pestle_kir_index(k, count),
                     (int32_t)t->lanes, PESTLE_KIR_SERIAL);
  pestle_kir_id_t row =
      pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, number, across);
  *out_row = pestle_kir_madi(k, t->rank, rows, row);
  *out_vector = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, number, across);
  pestle_kir_id_t at =
      pestle_kir_madi(k, *out_vector, t->vector, pestle_kir_index(k, 0));
  *out_sums = add_parts(t, parts, pestle_kir_madi(k, *out_row, pitch, at));
  return 1;
}

// SPDX-License-Identifier: Apache-2.0
#include "codegen/direct/direct_tile.h"

static pk_t plus(const pestle_direct_tile_t* t, pk_t a, int64_t value) {
  return value ? pestle_kir_madi(t->k, a, 1, pestle_kir_index(t->k, value)) : a;
}

static pk_t load(const pestle_direct_tile_t* t, uint32_t buffer, unsigned lanes,
                 pk_t index) {
  return pestle_kir_load(t->k, buffer, lanes, index, PESTLE_KIR_NONE, 0);
}

void pestle_direct_tile_begin(pestle_direct_tile_t* t) {
  t->sums = pestle_kir_add_buffer(t->k, "sums", PESTLE_KIR_PRIVATE, PESTLE_F32,
                                  t->lanes, t->rows * t->vectors, 0);
  pestle_kir_alloc(t->k, t->sums);
}

pk_t pestle_direct_tile_get(const pestle_direct_tile_t* t, int64_t i,
                            int64_t j) {
  return load(t, t->sums, t->lanes, pestle_kir_index(t->k, i * t->vectors + j));
}

void pestle_direct_tile_set(const pestle_direct_tile_t* t, int64_t i, int64_t j,
                            pk_t value) {
  pk_t at = pestle_kir_index(t->k, i * t->vectors + j);
  pestle_kir_store(t->k, t->sums, at, value, PESTLE_KIR_NONE, 0);
}

void pestle_direct_tile_clear(const pestle_direct_tile_t* t) {
  pk_t zero = pestle_kir_float(t->k, PESTLE_F32, t->lanes, 0);
  for (int64_t i = 0; i < t->rows; ++i) {
    for (int64_t j = 0; j < t->vectors; ++j)
      pestle_direct_tile_set(t, i, j, zero);
  }
}

void pestle_direct_tile_load(const pestle_direct_tile_t* t, uint32_t buffer,
                             pk_t from, int64_t pitch) {
  for (int64_t i = 0; i < t->rows; ++i) {
    for (int64_t j = 0; j < t->vectors; ++j) {
      pk_t index = plus(t, from, i * pitch + j * t->lanes);
      pestle_direct_tile_set(t, i, j, load(t, buffer, t->lanes, index));
    }
  }
}

void pestle_direct_tile_store(const pestle_direct_tile_t* t, uint32_t buffer,
                              pk_t to, int64_t pitch) {
  for (int64_t i = 0; i < t->rows; ++i) {
    for (int64_t j = 0; j < t->vectors; ++j) {
      pk_t index = plus(t, to, i * pitch + j * t->lanes);
      pk_t value = pestle_direct_tile_get(t, i, j);
      pestle_kir_store(t->k, buffer, index, value, PESTLE_KIR_NONE, 0);
    }
  }
}

void pestle_direct_tile_multiply(const pestle_direct_tile_t* t) {
  pk_t b[PESTLE_DIRECT_TILE_VECTORS];
  pk_t step = pestle_kir_repeat(t->k, "t", t->depth), row = step;
  if (t->bounded) {
    row = pestle_kir_madi(t->k, step, 1, t->b_first);
    row = pestle_kir_scalar_i(t->k, PESTLE_OP_MINIMUM, row, t->b_last);
  }
  pk_t from = pestle_kir_madi(t->k, row, t->b_step, t->b_at);
  for (int64_t j = 0; j < t->vectors; ++j)
    b[j] = load(t, t->b, t->lanes, plus(t, from, j * t->lanes));
  for (int64_t i = 0; i < t->rows; ++i) {
    pk_t first = plus(t, t->a_at, i * t->a_row);
    pk_t a = load(t, t->a, 1, pestle_kir_madi(t->k, step, t->a_step, first));
    a = pestle_kir_splat(t->k, a, t->lanes);
    for (int64_t j = 0; j < t->vectors; ++j) {
      pk_t sum = pestle_direct_tile_get(t, i, j);
      sum = pestle_kir_scalar(t->k, PESTLE_OP_FMA, a, b[j], sum);
      pestle_direct_tile_set(t, i, j, sum);
    }
  }
  pestle_kir_end_repeat(t->k, t->depth);
}

// SPDX-License-Identifier: Apache-2.0
// Short dot products (DOT2, DOT4) and what they take: neighbouring elements packed
// into words of 32 bits.
#include "codegen/emit/emit_internal.h"

// --- One element at a time ---

typedef struct word_t {
  const pestle_expr_t* x;
  uint32_t buffer;
  int64_t count;
  pestle_emit_index_t at;     // of the first element
  pestle_emit_index_t along;  // its coordinate
  pestle_range_t range;       // of that, over all lanes
  pestle_dtype_t dtype;
} word_t;

static pestle_kir_id_t to_lanes(pestle_emit_t* e, pestle_kir_id_t id,
                                unsigned lanes) {
  return pestle_kir_lanes_of(e->k, id) == lanes
             ? id
             : pestle_kir_splat(e->k, id, lanes);
}

// Whether element |j| is below the limit, NONE where it always is.
static pestle_kir_id_t is_there(pestle_emit_t* e, const word_t* w, int64_t j) {
  if (w->range.hi + j < w->x->hi) return PESTLE_KIR_NONE;
  bool vector = w->along.vector != PESTLE_KIR_NONE || w->along.step != 0;
  pestle_kir_id_t i =
      vector ? pestle_emit_index_lanes(e, w->along) : w->along.scalar;
  pestle_kir_id_t end =
      pestle_emit_index_const(e, pestle_kir_lanes_of(e->k, i), w->x->hi - j);
  return pestle_kir_scalar(e->k, PESTLE_OP_LT, i, end, PESTLE_KIR_NONE);
}

// Element |j| as it lies, of one lane or all. Those that are not there are read
// somewhere else within the buffer.
static pestle_kir_id_t load_element(pestle_emit_t* e, const word_t* w,
                                    int64_t j, bool always) {
  pestle_emit_index_t at = w->at;
  if (at.vector == PESTLE_KIR_NONE && at.step <= 1 && at.step >= 0) {
    pestle_kir_id_t index = pestle_kir_madi(
        e->k, at.scalar, 1, pestle_kir_index(e->k, j * w->x->lo));
    if (at.step == 0) {
      if (!always) index = pestle_emit_clamp(e, index, 0, w->count - 1);
      return pestle_kir_load(e->k, w->buffer, 1, index, PESTLE_KIR_NONE, 0);
    }
    if (!always) index = pestle_emit_clamp(e, index, 0, w->count - e->valid);
    return pestle_kir_load(e->k, w->buffer, e->lanes, index,
                           pestle_emit_mask(e, index), 0);
  }
  pestle_kir_id_t apart = pestle_emit_index_const(e, e->lanes, j * w->x->lo);
  pestle_kir_id_t mask = pestle_emit_mask(e, pestle_kir_index(e->k, 0));
  pestle_kir_id_t indices =
      pestle_kir_scalar(e->k, PESTLE_OP_ADD, pestle_emit_index_lanes(e, at),
                        apart, PESTLE_KIR_NONE);
  if (!always || mask != PESTLE_KIR_NONE) {
    indices = pestle_emit_clamp(e, indices, 0, w->count - 1);
  }
  return pestle_kir_gather(e->k, w->buffer, indices, mask);
}

static pestle_kir_id_t element(pestle_emit_t* e, const word_t* w, int64_t j) {
  pestle_kir_id_t there = is_there(e, w, j);
  int64_t known;
  if (there != PESTLE_KIR_NONE && pestle_kir_is_int(e->k, there, &known)) {
    if (!known) return PESTLE_KIR_NONE;
    there = PESTLE_KIR_NONE;
  }
  pestle_kir_id_t id = load_element(e, w, j, there == PESTLE_KIR_NONE);
  pestle_dtype_t bits =
      pestle_dtype_size(w->dtype) == 1 ? PESTLE_U8 : PESTLE_U16;
  id = pestle_kir_cast(e->k, pestle_kir_bitcast(e->k, id, bits), PESTLE_I32);
  if (there != PESTLE_KIR_NONE) {
    unsigned lanes = pestle_kir_lanes_of(e->k, there);
    if (pestle_kir_lanes_of(e->k, id) > lanes) {
      lanes = pestle_kir_lanes_of(e->k, id);
    }
    pestle_kir_id_t zero = pestle_kir_int(e->k, PESTLE_I32, lanes, 0);
    id = to_lanes(e, id, lanes);
    there = to_lanes(e, there, lanes);
    id = pestle_kir_scalar(e->k, PESTLE_OP_SELECT, there, id, zero);
  }
  if (!j) return id;
  unsigned lanes = pestle_kir_lanes_of(e->k, id);
  int64_t shift = j * 8 * (int64_t)pestle_dtype_size(w->dtype);
  return pestle_kir_scalar(e->k, PESTLE_OP_SHIFT_LEFT, id,
                           pestle_kir_int(e->k, PESTLE_I32, lanes, shift),
                           PESTLE_KIR_NONE);
}

static pestle_kir_id_t by_elements(pestle_emit_t* e, const word_t* w) {
  pestle_kir_id_t word = PESTLE_KIR_NONE;
  for (int64_t j = 0; j < w->x->packed; ++j) {
    pestle_kir_id_t one = element(e, w, j);
    if (one == PESTLE_KIR_NONE) continue;
    if (word == PESTLE_KIR_NONE) {
      word = one;
      continue;
    }
    unsigned lanes = pestle_kir_lanes_of(e->k, one);
    if (pestle_kir_lanes_of(e->k, word) > lanes) {
      lanes = pestle_kir_lanes_of(e->k, word);
    }
    one = to_lanes(e, one, lanes);
    word = to_lanes(e, word, lanes);
    word = pestle_kir_scalar(e->k, PESTLE_OP_OR, word, one, PESTLE_KIR_NONE);
  }
  return word;
}

// --- Words ---

pestle_kir_id_t pestle_emit_packed(pestle_emit_t* e, const pestle_expr_t* x,
                                   uint32_t buffer, int64_t count,
                                   const pestle_affine_t* flat) {
  if (e->k->failed) return 0;
  const pestle_affine_t* along = pestle_emit_resolve(e, x->affine);
  word_t w = {.x = x,
              .buffer = buffer,
              .count = count,
              .at = pestle_emit_index(e, flat),
              .along = pestle_emit_index(e, along),
              .range = pestle_affine_range(e->nest, along),
              .dtype = (pestle_dtype_t)e->k->buffer.data[buffer].dtype};
  bool whole = x->lo == 1 && w.range.hi + x->packed <= x->hi &&
               w.at.vector == PESTLE_KIR_NONE;
  if (whole && w.at.step == 0) {
    return pestle_kir_load_words(e->k, buffer, 1, w.at.scalar);
  }
  if (whole && w.at.step == x->packed && e->valid == (int64_t)e->lanes) {
    return pestle_kir_load_words(e->k, buffer, e->lanes, w.at.scalar);
  }
  return by_elements(e, &w);
}

pestle_kir_id_t pestle_emit_dot(pestle_emit_t* e, const pestle_expr_t* x,
                                pestle_kir_id_t sum) {
  pestle_kir_id_t a = pestle_emit_expr(e, x->args[0]);
  pestle_kir_id_t b = pestle_emit_expr(e, x->args[1]);
  if (pestle_emit_has_failed(e)) return 0;
  unsigned lanes = pestle_kir_lanes_of(e->k, a);
  if (pestle_kir_lanes_of(e->k, b) > lanes) {
    lanes = pestle_kir_lanes_of(e->k, b);
  }
  if (sum == PESTLE_KIR_NONE) {
    sum = pestle_kir_const(e->k, (pestle_dtype_t)x->dtype, lanes, 0, 0);
  }
  lanes = pestle_kir_lanes_of(e->k, sum);
  b = to_lanes(e, b, lanes);
  a = to_lanes(e, a, lanes);
  return pestle_kir_dot(e->k, a, b, sum, (unsigned)x->i);
}

// SPDX-License-Identifier: Apache-2.0
// Whether a model that keeps its caches' length keeps their rows: a token is written behind rows
// of known numbers. A model whose outputs are paired wrongly, or that does more to a cache than
// write new rows, would give wrong tokens without a word.
#include <string.h>

#include "base/half.h"
#include "base/mem.h"
#include "session/decode.h"

typedef struct keep_t {
  pestle_decoder_t* d;
  decode_slot_t* slot;
  int64_t rows;      // that are known
  char *want, *got;  // as many of one part, and one more
} keep_t;

static size_t size_of(const keep_t* k, size_t cache) {
  return (size_t)k->rows * k->d->caches[cache].row_bytes;
}

static size_t place_of(const keep_t* k, size_t cache, int64_t part) {
  return (size_t)(part * k->d->room) * k->d->caches[cache].row_bytes;
}

static pestle_dtype_t dtype_of(const keep_t* k, size_t cache) {
  return k->d->inputs[k->d->caches[cache].input].type.dtype;
}

// Numbers from 1 to 2 where they are floats: no product of them is infinite.
static void make_rows(const keep_t* k, size_t cache, int64_t part) {
  pestle_dtype_t dtype = dtype_of(k, cache);
  size_t size = pestle_dtype_size(dtype), count = size_of(k, cache) / size;
  uint64_t state = (uint64_t)cache << 32 | (uint64_t)part;
  for (size_t i = 0; i < count; ++i) {
    state = (state + 1) * 0x9e3779b97f4a7c15;
    uint64_t bits = state >> 56;
    if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT))
      bits = pestle_float_encode(dtype, 1 + (double)bits / 256);
    memcpy(k->want + i * size, &bits,
           size < sizeof(bits) ? size : sizeof(bits));
  }
}

static pestle_status_t write_all(const keep_t* k, bool is_zero) {
  for (size_t c = 0; c < k->d->cache_count; ++c) {
    size_t row = k->d->caches[c].row_bytes;
    size_t size = size_of(k, c) + (is_zero ? row : 0);
    memset(k->want, 0, size);
    for (int64_t p = 0; p < k->d->caches[c].parts; ++p) {
      if (!is_zero) make_rows(k, c, p);
      PESTLE_TRY(pestle_buffer_write(k->slot->caches[c], place_of(k, c, p),
                                     k->want, size));
    }
  }
  return NULL;
}

// Whether |cache| has the rows that |other| had.
static pestle_status_t has_rows(const keep_t* k, size_t cache, size_t other,
                                bool* out_has) {
  const decode_cache_t *a = &k->d->caches[cache], *b = &k->d->caches[other];
  *out_has = a->parts == b->parts && a->row_bytes == b->row_bytes &&
             dtype_of(k, cache) == dtype_of(k, other);
  for (int64_t p = 0; *out_has && p < a->parts; ++p) {
    make_rows(k, other, p);
    PESTLE_TRY(pestle_buffer_read(k->slot->caches[cache], place_of(k, cache, p),
                                  k->got, size_of(k, cache)));
    *out_has = !memcmp(k->want, k->got, size_of(k, cache));
  }
  return NULL;
}

static pestle_status_t refuse(const keep_t* k, size_t cache) {
  const decode_cache_t* a = &k->d->caches[cache];
  const decode_input_t* inputs = k->d->inputs;
  for (size_t c = 0; c < k->d->cache_count; ++c) {
    bool has;
    PESTLE_TRY(has_rows(k, cache, c, &has));
    if (!has) continue;
    return PESTLE_ERROR(
        UNSUPPORTED,
        "cache %zu, '%s', becomes '%s', which has the rows of another cache, "
        "'%s': what a cache becomes is found by names",
        cache, inputs[a->input].name, a->present,
        inputs[k->d->caches[c].input].name);
  }
  return PESTLE_ERROR(UNSUPPORTED,
                      "cache %zu, '%s', becomes '%s', which changes rows that "
                      "are not new",
                      cache, inputs[a->input].name, a->present);
}

// What the encoder would give.
static pestle_status_t give_zeros(const keep_t* k) {
  const decode_encoder_t* e = &k->d->encoder;
  for (size_t i = 0; i < e->count; ++i)
    PESTLE_TRY(pestle_decode_make_zeros(k->d, e->sizes[i], &k->slot->given[i]));
  return NULL;
}

static pestle_status_t try_token(const keep_t* k) {
  const int64_t id = k->d->words > 1;
  PESTLE_TRY(give_zeros(k));
  PESTLE_TRY(write_all(k, false));
  k->slot->length = k->rows;
  PESTLE_TRY(pestle_decode_run(k->d, k->slot, &id, 1, 1, false));
  for (size_t c = 0; c < k->d->cache_count; ++c) {
    bool has;
    PESTLE_TRY(has_rows(k, c, c, &has));
    if (!has) return refuse(k, c);
  }
  return write_all(k, true);
}

pestle_status_t pestle_decode_try_keeping(pestle_decoder_t* d) {
  enum { KNOWN = 3 };
  keep_t k = {.d = d, .slot = &d->slots[0], .rows = KNOWN};
  if (k.rows >= d->room) k.rows = d->room - 1;
  size_t row = 0;
  for (size_t c = 0; c < d->cache_count; ++c)
    row = d->caches[c].row_bytes > row ? d->caches[c].row_bytes : row;
  size_t size = 2 * (KNOWN + 1) * row;
  k.want = pestle_alloc(d->allocator, size);
  if (!k.want) return PESTLE_OOM();
  k.got = k.want + size / 2;
  pestle_status_t status = try_token(&k);
  pestle_decode_forget_features(d, k.slot);
  k.slot->length = 0;
  pestle_dealloc(d->allocator, k.want, size);
  return status;
}

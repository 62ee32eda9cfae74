// SPDX-License-Identifier: Apache-2.0
// Tokens and slots. A prompt but for its last token goes through executables for many rows,
// which give no logits; the last token through that for one. Rows behind the prompt's end in
// the last of the former are written too, where later tokens write again: nothing reads them,
// since no token looks at places behind its own.
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "base/mem.h"
#include "base/require.h"
#include "session/decode.h"

// Numbers of rows that executables are made for.
static const int64_t buckets[] = {8, 16, 32, 64, 128, 256, DECODE_MOST_ROWS};
enum { BUCKETS = sizeof(buckets) / sizeof(*buckets), FEW = 3 };

pestle_status_t pestle_decode_slot(const pestle_decoder_t* d, size_t slot,
                                   decode_slot_t** out_slot) {
  *out_slot = NULL;
  if (slot >= d->slot_count) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "there is no slot %zu, only %zu",
                        slot, d->slot_count);
  }
  *out_slot = &d->slots[slot];
  return NULL;
}

// --- What a run is given ---

pestle_status_t pestle_decode_write(pestle_buffer_t* buffer,
                                    pestle_dtype_t dtype, int64_t at,
                                    const int64_t* numbers, size_t count) {
  int32_t narrow[DECODE_MOST_ROWS];
  size_t size = pestle_dtype_size(dtype);
  if (dtype == PESTLE_I64)
    return pestle_buffer_write(buffer, (size_t)at * size, numbers,
                               count * size);
  for (size_t done = 0, part; done < count; done += part) {
    part = count - done < DECODE_MOST_ROWS ? count - done : DECODE_MOST_ROWS;
    for (size_t i = 0; i < part; ++i)
      narrow[i] = (int32_t)numbers[done + i];
    PESTLE_TRY(pestle_buffer_write(buffer, ((size_t)at + done) * size, narrow,
                                   part * size));
  }
  return NULL;
}

// Ones for the first |length| positions.
static pestle_status_t write_mask(pestle_decoder_t* d, pestle_dtype_t dtype,
                                  int64_t length) {
  int64_t numbers[DECODE_MOST_ROWS], one = length > d->mask_length;
  int64_t at = one ? d->mask_length : length;
  int64_t end = one ? length : d->mask_length;
  for (size_t i = 0; i < DECODE_MOST_ROWS; ++i)
    numbers[i] = one;
  while (at < end) {
    size_t part =
        end - at < DECODE_MOST_ROWS ? (size_t)(end - at) : DECODE_MOST_ROWS;
    PESTLE_TRY(pestle_decode_write(d->mask, dtype, at, numbers, part));
    at += (int64_t)part;
    // Ones end where they are known to.
    d->mask_length = one ? at : d->mask_length;
  }
  d->mask_length = length;
  return NULL;
}

static pestle_status_t fill(pestle_decoder_t* d, const decode_slot_t* slot,
                            const int64_t* ids, size_t count, int64_t rows) {
  int64_t numbers[DECODE_MOST_ROWS];
  for (size_t i = 0; i < d->input_count; ++i) {
    const decode_input_t* input = &d->inputs[i];
    pestle_dtype_t dtype = input->type.dtype;
    switch (input->role) {
      case DECODE_IDS:
        memset(numbers, 0, sizeof(numbers));
        memcpy(numbers, ids, count * sizeof(*ids));
        PESTLE_TRY(
            pestle_decode_write(d->ids, dtype, 0, numbers, (size_t)rows));
        d->views[i] = (pestle_buffer_view_t){.buffer = d->ids};
        break;
      case DECODE_POSITIONS:
        for (int64_t r = 0; r < rows; ++r)
          numbers[r] = slot->length + r;
        PESTLE_TRY(
            pestle_decode_write(d->positions, dtype, 0, numbers, (size_t)rows));
        d->views[i] = (pestle_buffer_view_t){.buffer = d->positions};
        break;
      case DECODE_FIRST:
        PESTLE_TRY(pestle_decode_write(d->first, dtype, 0, &slot->length, 1));
        d->views[i] = (pestle_buffer_view_t){.buffer = d->first};
        break;
      case DECODE_TOTAL:
        *numbers = slot->length + rows;
        PESTLE_TRY(pestle_decode_write(d->total, dtype, 0, numbers, 1));
        d->views[i] = (pestle_buffer_view_t){.buffer = d->total};
        break;
      case DECODE_MASK:
        // Where rows are appended the mask's ones for them are there already.
        PESTLE_TRY(write_mask(d, dtype, slot->length + (d->grows ? 0 : rows)));
        d->views[i] = (pestle_buffer_view_t){.buffer = d->mask};
        break;
      case DECODE_BEAM_WIDTH:
        *numbers = 1;
        PESTLE_TRY(pestle_decode_write(d->beam_width, dtype, 0, numbers, 1));
        d->views[i] = (pestle_buffer_view_t){.buffer = d->beam_width};
        break;
      case DECODE_BEAMS:
        d->views[i] = (pestle_buffer_view_t){.buffer = d->beams};
        break;
      case DECODE_CACHE:
        d->views[i] =
            (pestle_buffer_view_t){.buffer = slot->caches[input->cache]};
        break;
      case DECODE_HIDDEN:
      case DECODE_CROSS:
        d->views[i] =
            (pestle_buffer_view_t){.buffer = slot->given[input->cache]};
        break;
    }
  }
  if (!d->grows) return NULL;
  d->views[d->input_count] = (pestle_buffer_view_t){.buffer = d->start};
  return pestle_decode_write(d->start, PESTLE_I64, 0, &slot->length, 1);
}

void pestle_decode_take_logits(const pestle_decoder_t* d, decode_slot_t* slot,
                               const char* data) {
  size_t size = pestle_dtype_size(d->logits_dtype), words = (size_t)d->words;
  if (d->logits_dtype == PESTLE_F32) {
    memcpy(slot->logits, data, words * size);
  } else {
    for (size_t i = 0; i < words; ++i) {
      uint64_t bits = 0;
      memcpy(&bits, data + i * size, size);
      slot->logits[i] = (float)pestle_float_decode(d->logits_dtype, bits);
    }
  }
  slot->has_logits = true;
  pestle_decode_drop(slot);
}

static pestle_status_t read_logits(pestle_decoder_t* d, decode_slot_t* slot,
                                   const pestle_buffer_t* buffer) {
  size_t size = pestle_dtype_size(d->logits_dtype) * (size_t)d->words;
  PESTLE_TRY(pestle_buffer_read(buffer, 0, d->bytes, size));
  pestle_decode_take_logits(d, slot, d->bytes);
  return NULL;
}

void* pestle_decode_place(const pestle_decoder_t* d, size_t cache,
                          const decode_slot_t* slot) {
  const decode_cache_t* c = &d->caches[cache];
  char* data = pestle_buffer_data(d->blocks[cache]);
  size_t size = (size_t)(c->parts * d->room) * c->row_bytes;
  return data + (size_t)(slot - d->slots) * size;
}

pestle_status_t pestle_decode_run(pestle_decoder_t* d, decode_slot_t* slot,
                                  const int64_t* ids, size_t count,
                                  int64_t rows, bool wants_logits) {
  const decode_plan_t* plan;
  PESTLE_TRY(pestle_decode_plan(d, rows, 1, &plan));
  PESTLE_TRY(fill(d, slot, ids, count, rows));
  // Their memory is what the run's results take, so that a recording serves it.
  pestle_decode_drop(slot);
  size_t results = d->cache_count + (rows == 1) + (rows == 1 && d->is_far);
  pestle_run_buffers_options_t options = {.struct_size = sizeof(options),
                                          .threads = d->threads,
                                          .donated = d->donated,
                                          .donated_count = d->cache_count};
  PESTLE_TRY(pestle_executable_run_buffers(plan->executable, NULL, d->views,
                                           d->input_count + d->grows,
                                           d->results, results, &options));
  for (size_t c = 0; c < d->cache_count; ++c) {
    if (d->blocks &&
        pestle_buffer_data(d->results[c]) != pestle_decode_place(d, c, slot)) {
      d->batch.is_off = true;
    }
    slot->caches[c] = d->results[c];
    d->results[c] = NULL;
  }
  slot->length += (int64_t)count;
  pestle_status_t status = NULL;
  if (wants_logits && d->is_far) {
    slot->far_logits = d->results[d->cache_count];
    slot->far_choice = d->results[d->cache_count + 1];
    slot->has_logits = true;
    return NULL;
  }
  if (wants_logits) status = read_logits(d, slot, d->results[d->cache_count]);
  for (size_t r = 0; r < results; ++r)
    pestle_buffer_release(d->results[r]);
  return status;
}

// --- A try ---
//
// Two tokens one by one are compared with the same two as a prompt. A model that appends rows
// sees the sequence with a gap between what is past and the new rows: one that counts places
// where it should look at position_ids or at the mask, for angles or for a window, would give
// wrong numbers. A model that counts its rows may be a trace of one token, without a mask that
// hides tokens from those before them.

enum { TRIED = 2 };

// The first rows of all caches as f32.
static pestle_status_t read_first(pestle_decoder_t* d,
                                  const decode_slot_t* slot, char* bytes,
                                  float* out) {
  for (size_t c = 0; c < d->cache_count; ++c) {
    const decode_cache_t* cache = &d->caches[c];
    pestle_dtype_t dtype = d->inputs[cache->input].type.dtype;
    size_t size = pestle_dtype_size(dtype), count = cache->row_bytes / size;
    for (int64_t p = 0; p < cache->parts * TRIED; ++p, out += count) {
      size_t at = (size_t)(p / TRIED * d->room + p % TRIED) * cache->row_bytes;
      PESTLE_TRY(
          pestle_buffer_read(slot->caches[c], at, bytes, cache->row_bytes));
      for (size_t i = 0; i < count; ++i) {
        uint64_t bits = 0;
        memcpy(&bits, bytes + i * size, size);
        out[i] = (float)pestle_float_decode(dtype, bits);
      }
    }
  }
  return NULL;
}

// Whether the numbers of each cache are those of the other but for rounding.
static bool are_near(const pestle_decoder_t* d, const float* a,
                     const float* b) {
  for (size_t c = 0; c < d->cache_count; ++c) {
    const decode_cache_t* cache = &d->caches[c];
    pestle_dtype_t dtype = d->inputs[cache->input].type.dtype;
    size_t count = TRIED * (size_t)cache->parts * cache->row_bytes /
                   pestle_dtype_size(dtype);
    float most = 0, off = 0;
    for (size_t i = 0; i < count; ++i) {
      most = fmaxf(most, fmaxf(fabsf(a[i]), fabsf(b[i])));
      off = fmaxf(off, fabsf(a[i] - b[i]));
    }
    if (!(off <= 0.05f * most)) return false;
    a += count;
    b += count;
  }
  return true;
}

static pestle_status_t try_both(pestle_decoder_t* d, decode_slot_t* slot,
                                char* bytes, float* one, float* other,
                                bool* out_alike) {
  const int64_t ids[2] = {d->words > 1, d->words > 2 ? 2 : 0};
  PESTLE_TRY(pestle_decode_run(d, slot, ids, 1, 1, false));
  PESTLE_TRY(pestle_decode_run(d, slot, ids + 1, 1, 1, false));
  PESTLE_TRY(read_first(d, slot, bytes, one));
  slot->length = 0;
  PESTLE_TRY(pestle_decode_run(d, slot, ids, 2, buckets[0], false));
  PESTLE_TRY(read_first(d, slot, bytes, other));
  slot->length = 0;
  *out_alike = are_near(d, one, other);
  return NULL;
}

// In |slot|, which is empty.
static pestle_status_t try_in(pestle_decoder_t* d, decode_slot_t* slot,
                              bool* out_alike) {
  size_t numbers = 0, row = 1;
  if (d->most < buckets[0]) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "%lld positions: a model that appends rows to its "
                        "caches has %lld at least",
                        (long long)d->most, (long long)buckets[0]);
  }
  for (size_t c = 0; c < d->cache_count; ++c) {
    const decode_cache_t* cache = &d->caches[c];
    pestle_dtype_t dtype = d->inputs[cache->input].type.dtype;
    if (!pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) {
      return PESTLE_ERROR(UNSUPPORTED,
                          "the cache '%s' is not of floats, and rows are "
                          "appended to it",
                          d->inputs[cache->input].name);
    }
    numbers += TRIED * (size_t)cache->parts * cache->row_bytes /
               pestle_dtype_size(dtype);
    if (cache->row_bytes > row) row = cache->row_bytes;
  }
  size_t size = 2 * numbers * sizeof(float) + row;
  float* one = pestle_alloc(d->allocator, size);
  if (!one) return PESTLE_OOM();
  pestle_status_t status = try_both(d, slot, (char*)(one + 2 * numbers), one,
                                    one + numbers, out_alike);
  pestle_dealloc(d->allocator, one, size);
  return status;
}

pestle_status_t pestle_decode_try(pestle_decoder_t* d) {
  bool is_alike;
  PESTLE_TRY(try_in(d, &d->slots[0], &is_alike));
  if (is_alike) return NULL;
  return PESTLE_ERROR(
      UNSUPPORTED,
      "the model appends rows to its caches, and gives other rows for two "
      "tokens one by one than for both at once: it counts the places of keys, "
      "for angles or a window, where it should look at position_ids or "
      "attention_mask, or a present_* is of another cache than its past_*. "
      "Export it with GroupQueryAttention");
}

// Whether prompts of a model that counts its rows may go by many rows. One that cannot be
// compiled for them takes them one by one too.
static pestle_status_t try_rows(pestle_decoder_t* d, decode_slot_t* slot) {
  pestle_status_t status = try_in(d, slot, &d->takes_rows);
  d->is_tried = true;
  slot->length = 0;
  if (!status || pestle_status_code(status) == PESTLE_STATUS_OUT_OF_MEMORY)
    return status;
  d->takes_rows = false;
  pestle_status_release(status);
  return NULL;
}

// --- Tokens ---

// How many rows |left| tokens are given where there is room for |room|.
static int64_t rows_for(const pestle_decoder_t* d, int64_t left, int64_t room) {
  int64_t rows = 1;
  if (left <= FEW || (pestle_decode_counts(d) && !d->takes_rows)) return 1;
  for (int i = 0; i < BUCKETS && buckets[i] <= room; ++i) {
    rows = buckets[i];
    if (rows >= left) break;
  }
  return rows;
}

pestle_status_t pestle_decode_check_ids(const pestle_decoder_t* d,
                                        const decode_slot_t* slot,
                                        const int64_t* ids, size_t count) {
  PESTLE_TRY(pestle_decode_check_features(d, slot));
  if (count > (size_t)(d->most - slot->length)) {
    return PESTLE_ERROR(
        INVALID_ARGUMENT,
        "%zu tokens behind %lld: the sequence has room for %lld positions in "
        "all (pestle_decoder_options_t.most)",
        count, (long long)slot->length, (long long)d->most);
  }
  for (size_t i = 0; i < count; ++i) {
    if (ids[i] >= 0 && ids[i] < d->words) continue;
    return PESTLE_ERROR(
        INVALID_ARGUMENT,
        "id %lld at place %zu is none of the model's, which are 0 to %lld",
        (long long)ids[i], i, (long long)d->words - 1);
  }
  return NULL;
}

// Where the last row lies that |count| more tokens of |slot| make, which may be behind the
// last token's.
static int64_t end_of(const pestle_decoder_t* d, const decode_slot_t* slot,
                      size_t count) {
  int64_t at = slot->length, last = at + (int64_t)count - 1, end = last + 1;
  while (at < last) {
    int64_t rows = rows_for(d, last - at, d->most - at);
    if (at + rows > end) end = at + rows;
    at += rows;
  }
  return end;
}

static pestle_status_t feed(pestle_decoder_t* d, decode_slot_t* slot,
                            const int64_t* ids, size_t count) {
  size_t at = 0;
  if (pestle_decode_counts(d) && !d->is_tried && !slot->length &&
      count > FEW + 1 && d->most >= buckets[0]) {
    PESTLE_TRY(pestle_decode_fit(d, slot, buckets[0]));
    PESTLE_TRY(try_rows(d, slot));
  }
  PESTLE_TRY(pestle_decode_fit(d, slot, end_of(d, slot, count)));
  while (at + 1 < count) {
    int64_t left = (int64_t)(count - 1 - at);
    int64_t rows = rows_for(d, left, d->most - slot->length);
    size_t part = (size_t)(left < rows ? left : rows);
    PESTLE_TRY(pestle_decode_run(d, slot, ids + at, part, rows, false));
    at += part;
  }
  return pestle_decode_run(d, slot, ids + at, 1, 1, true);
}

pestle_status_t pestle_decoder_feed(pestle_decoder_t* decoder, size_t slot,
                                    const int64_t* ids, size_t count) {
  PESTLE_REQUIRE(decoder && ids && count, "a decoder, and one token at least");
  decode_slot_t* s;
  PESTLE_TRY(pestle_decode_slot(decoder, slot, &s));
  PESTLE_TRY(pestle_decode_check_ids(decoder, s, ids, count));
  int64_t length = s->length;
  s->has_logits = false;
  pestle_status_t status = feed(decoder, s, ids, count);
  if (pestle_decode_relieve(decoder, &status)) {
    s->length = length;
    status = feed(decoder, s, ids, count);
  }
  if (status) {
    s->length = length;
  } else {
    pestle_decode_begin_ahead(decoder);
  }
  return status;
}

const float* pestle_decoder_logits(const pestle_decoder_t* decoder,
                                   size_t slot) {
  if (!decoder || slot >= decoder->slot_count) return NULL;
  decode_slot_t* s = &decoder->slots[slot];
  pestle_status_t status =
      s->has_logits ? pestle_decode_fetch(decoder, s) : NULL;
  bool is_there = s->has_logits && !status;
  pestle_status_release(status);
  return is_there ? s->logits : NULL;
}

// --- Slots ---

int64_t pestle_decoder_length(const pestle_decoder_t* decoder, size_t slot) {
  bool is = decoder && slot < decoder->slot_count;
  return is ? decoder->slots[slot].length : -1;
}

pestle_status_t pestle_decoder_cut(pestle_decoder_t* decoder, size_t slot,
                                   int64_t length) {
  PESTLE_REQUIRE(decoder, "a decoder");
  decode_slot_t* s;
  PESTLE_TRY(pestle_decode_slot(decoder, slot, &s));
  if (length < 0 || length > s->length) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "a sequence of %lld tokens cannot be cut at %lld",
                        (long long)s->length, (long long)length);
  }
  s->length = length;
  s->has_logits = false;
  pestle_decode_drop(s);
  return NULL;
}

pestle_status_t pestle_decoder_fork(pestle_decoder_t* decoder, size_t from,
                                    size_t to) {
  PESTLE_REQUIRE(decoder, "a decoder");
  const pestle_decoder_t* d = decoder;
  decode_slot_t *a, *b;
  PESTLE_TRY(pestle_decode_slot(d, from, &a));
  PESTLE_TRY(pestle_decode_slot(d, to, &b));
  if (a == b) return NULL;
  PESTLE_TRY(pestle_decode_fetch(d, a));
  pestle_decode_drop(b);
  b->length = 0;
  b->has_logits = false;
  for (size_t c = 0; c < d->cache_count; ++c) {
    const decode_cache_t* cache = &d->caches[c];
    size_t size = (size_t)a->length * cache->row_bytes;
    for (int64_t p = 0; size && p < cache->parts; ++p) {
      size_t at = (size_t)(p * d->room) * cache->row_bytes;
      PESTLE_TRY(pestle_buffer_copy(a->caches[c], at, b->caches[c], at, size));
    }
  }
  pestle_decode_share_features(d, a, b);
  b->length = a->length;
  b->has_logits = a->has_logits;
  if (a->has_logits)
    memcpy(b->logits, a->logits, (size_t)d->words * sizeof(float));
  return NULL;
}

// SPDX-License-Identifier: Apache-2.0
// A sequence as a file: a header, the logits, what the encoder gave, and of each cache the rows
// in use.
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/require.h"
#include "session/decode.h"

static const char magic[8] = {'P', 'S', 'T', 'L', 'S', 'E', 'Q', '1'};

typedef struct header_t {
  char magic[8];
  uint64_t model[2];
  int64_t most, words, length;
  uint64_t has, size;  // LOGITS and FEATURES; bytes of the file
  uint64_t check;      // of all that follows
} header_t;

enum { LOGITS = 1, FEATURES = 2 };

static size_t features_size(const pestle_decoder_t* d) {
  size_t size = 0;
  for (size_t i = 0; i < d->encoder.count; ++i)
    size += d->encoder.sizes[i];
  return size;
}

static uint64_t file_size(const pestle_decoder_t* d, int64_t length,
                          uint64_t has) {
  uint64_t size = sizeof(header_t);
  if (has & LOGITS) size += (uint64_t)d->words * sizeof(float);
  for (size_t c = 0; c < d->cache_count; ++c) {
    const decode_cache_t* cache = &d->caches[c];
    size += (uint64_t)(cache->parts * length) * cache->row_bytes;
  }
  return has & FEATURES ? size + features_size(d) : size;
}

static pestle_status_t read_rows(const pestle_decoder_t* d,
                                 const decode_slot_t* slot, char* to) {
  for (size_t c = 0; c < d->cache_count; ++c) {
    const decode_cache_t* cache = &d->caches[c];
    size_t part = (size_t)slot->length * cache->row_bytes;
    for (int64_t p = 0; part && p < cache->parts; ++p, to += part) {
      size_t at = (size_t)(p * d->room) * cache->row_bytes;
      PESTLE_TRY(pestle_buffer_read(slot->caches[c], at, to, part));
    }
  }
  return NULL;
}

static pestle_status_t write_rows(const pestle_decoder_t* d,
                                  decode_slot_t* slot, int64_t length,
                                  const char* from) {
  for (size_t c = 0; c < d->cache_count; ++c) {
    const decode_cache_t* cache = &d->caches[c];
    size_t part = (size_t)length * cache->row_bytes;
    for (int64_t p = 0; part && p < cache->parts; ++p, from += part) {
      size_t at = (size_t)(p * d->room) * cache->row_bytes;
      PESTLE_TRY(pestle_buffer_write(slot->caches[c], at, from, part));
    }
  }
  return NULL;
}

static pestle_status_t read_features(const pestle_decoder_t* d,
                                     const decode_slot_t* slot, char* to) {
  for (size_t i = 0; slot->is_encoded && i < d->encoder.count; ++i) {
    PESTLE_TRY(pestle_buffer_read(slot->given[i], 0, to, d->encoder.sizes[i]));
    to += d->encoder.sizes[i];
  }
  return NULL;
}

// Gives |slot| what |from| has of the encoder, nothing where that is NULL. After an error it
// has what it had.
static pestle_status_t write_features(const pestle_decoder_t* d,
                                      decode_slot_t* slot, const char* from) {
  pestle_buffer_t** made = d->encoder.results;
  size_t count = from ? d->encoder.count : 0, at = 0;
  pestle_status_t status = NULL;
  for (; !status && at < count; ++at) {
    size_t size = d->encoder.sizes[at];
    made[at] = NULL;
    status = pestle_buffer_create(d->device, size, &made[at]);
    if (!status) status = pestle_buffer_write(made[at], 0, from, size);
    from += size;
  }
  if (!status) pestle_decode_forget_features(d, slot);
  for (size_t i = 0; i < at; ++i) {
    if (status)
      pestle_buffer_release(made[i]);
    else
      slot->given[i] = made[i];
  }
  if (!status) slot->is_encoded = count > 0;
  return status;
}

pestle_status_t pestle_decoder_save(const pestle_decoder_t* decoder,
                                    size_t slot, const char* path) {
  PESTLE_REQUIRE(decoder && path, "a decoder and a path");
  const pestle_decoder_t* d = decoder;
  decode_slot_t* s;
  PESTLE_TRY(pestle_decode_slot(d, slot, &s));
  PESTLE_TRY(pestle_decode_fetch(d, s));
  uint64_t has = (s->has_logits ? LOGITS : 0) | (s->is_encoded ? FEATURES : 0);
  uint64_t size = file_size(d, s->length, has);
  header_t header = {.model = {d->signature[0], d->signature[1]},
                     .most = d->most,
                     .words = d->words,
                     .length = s->length,
                     .has = has,
                     .size = size};
  memcpy(header.magic, magic, sizeof(magic));
  char* data = pestle_alloc(d->allocator, (size_t)size);
  if (!data) return PESTLE_OOM();
  char* at = data + sizeof(header);
  if (s->has_logits) {
    memcpy(at, s->logits, (size_t)d->words * sizeof(float));
    at += (size_t)d->words * sizeof(float);
  }
  pestle_status_t status = read_features(d, s, at);
  if (s->is_encoded) at += features_size(d);
  if (!status) status = read_rows(d, s, at);
  header.check =
      pestle_hash64(data + sizeof(header), (size_t)size - sizeof(header));
  memcpy(data, &header, sizeof(header));
  const pestle_str_t part = {data, (size_t)size};
  if (!status) status = pestle_file_write_atomic(path, &part, 1);
  pestle_dealloc(d->allocator, data, (size_t)size);
  return status;
}

// A signature is that of the model in |most| positions: with another number of them it does not
// say whether the weights are others.
static pestle_status_t other_most(const char* path, int64_t most, int64_t own,
                                  const char* also) {
  return PESTLE_ERROR(INCOMPATIBLE,
                      "'%s' is of %s%lld positions where this decoder has %lld",
                      path, also, (long long)most, (long long)own);
}

static pestle_status_t check(const pestle_decoder_t* d, const char* path,
                             const char* data, size_t size) {
  header_t h;
  if (size < sizeof(h) || memcmp(data, magic, sizeof(magic)) != 0) {
    return PESTLE_ERROR(MALFORMED, "'%s' is no sequence that a decoder saved",
                        path);
  }
  memcpy(&h, data, sizeof(h));
  if (h.model[0] != d->signature[0] || h.model[1] != d->signature[1] ||
      h.words != d->words) {
    return h.most == d->most
               ? PESTLE_ERROR(INCOMPATIBLE, "'%s' is of another model", path)
               : other_most(path, h.most, d->most, "another model, or of ");
  }
  if (h.most != d->most) return other_most(path, h.most, d->most, "");
  bool fits = h.length >= 0 && h.length <= d->most &&
              h.has <= (LOGITS | FEATURES) && h.size == size &&
              file_size(d, h.length, h.has) == size &&
              h.check == pestle_hash64(data + sizeof(h), size - sizeof(h));
  if (fits) return NULL;
  return PESTLE_ERROR(MALFORMED, "'%s' is damaged: write it again", path);
}

static pestle_status_t take(pestle_decoder_t* d, decode_slot_t* slot,
                            const char* data) {
  header_t h;
  memcpy(&h, data, sizeof(h));
  const char* at = data + sizeof(h);
  size_t logits = h.has & LOGITS ? (size_t)d->words * sizeof(float) : 0;
  size_t features = h.has & FEATURES ? features_size(d) : 0;
  PESTLE_TRY(pestle_decode_fit(d, NULL, h.length));
  PESTLE_TRY(write_features(d, slot, features ? at + logits : NULL));
  slot->length = 0;
  slot->has_logits = false;
  pestle_decode_drop(slot);
  PESTLE_TRY(write_rows(d, slot, h.length, at + logits + features));
  memcpy(slot->logits, at, logits);
  slot->length = h.length;
  slot->has_logits = (h.has & LOGITS) != 0;
  return NULL;
}

pestle_status_t pestle_decoder_load(pestle_decoder_t* decoder, size_t slot,
                                    const char* path) {
  PESTLE_REQUIRE(decoder && path, "a decoder and a path");
  pestle_decoder_t* d = decoder;
  decode_slot_t* s;
  char* data;
  size_t size, limit = (size_t)file_size(d, d->most, LOGITS | FEATURES);
  PESTLE_TRY(pestle_decode_slot(d, slot, &s));
  PESTLE_TRY(pestle_file_read(path, limit, d->allocator, &data, &size));
  pestle_status_t status = check(d, path, data, size);
  if (!status) status = take(d, s, data);
  pestle_dealloc(d->allocator, data, size + 1);
  return status;
}

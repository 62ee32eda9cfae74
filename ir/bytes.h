// SPDX-License-Identifier: Apache-2.0
// Numbers and text as bytes: what the binary form and the canonical form share.
// Integers take seven bits a byte, lowest first; the reader checks every step
// against the end and stays failed once it failed.
#ifndef PESTLE_IR_BYTES_H_
#define PESTLE_IR_BYTES_H_

#include <string.h>

#include "base/str.h"

static inline void pestle_put_uint(pestle_strbuf_t* out, uint64_t value) {
  unsigned char bytes[10];
  size_t n = 0;
  do {
    bytes[n++] = (unsigned char)((value & 127) | (value > 127 ? 128 : 0));
    value >>= 7;
  } while (value);
  pestle_strbuf_append_bytes(out, bytes, n);
}

// Small numbers of either sign take few bytes.
static inline void pestle_put_int(pestle_strbuf_t* out, int64_t value) {
  uint64_t bits = (uint64_t)value;
  pestle_put_uint(out, bits << 1 ^ (value < 0 ? UINT64_MAX : 0));
}

// Eight bytes, little-endian.
static inline void pestle_put_u64(pestle_strbuf_t* out, uint64_t value) {
  unsigned char bytes[8];
  for (unsigned i = 0; i < 8; ++i) {
    bytes[i] = (unsigned char)(value >> (8 * i) & 255);
  }
  pestle_strbuf_append_bytes(out, bytes, sizeof(bytes));
}

static inline void pestle_put_text(pestle_strbuf_t* out, const char* text) {
  size_t size = text ? strlen(text) : 0;
  pestle_put_uint(out, size);
  pestle_strbuf_append_bytes(out, text, size);
}

static inline uint64_t pestle_f64_bits(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

typedef struct pestle_reader_t {
  const unsigned char* data;
  size_t size, at;
  bool failed;
} pestle_reader_t;

static inline uint64_t pestle_get_uint(pestle_reader_t* r) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (r->failed || r->at >= r->size) break;
    unsigned char byte = r->data[r->at++];
    value |= (uint64_t)(byte & 127) << shift;
    if (!(byte & 128)) return value;
  }
  r->failed = true;
  return 0;
}

static inline int64_t pestle_get_int(pestle_reader_t* r) {
  uint64_t bits = pestle_get_uint(r);
  return (int64_t)(bits >> 1 ^ (0 - (bits & 1)));
}

static inline uint64_t pestle_get_u64(pestle_reader_t* r) {
  uint64_t value = 0;
  if (r->failed || r->size - r->at < 8) {
    r->failed = true;
    return 0;
  }
  for (unsigned i = 0; i < 8; ++i) {
    value |= (uint64_t)r->data[r->at++] << (8 * i);
  }
  return value;
}

// A number of things that each take at least |each| bytes: one that the rest of
// the bytes cannot hold is a failure, so that it may be allocated.
static inline size_t pestle_get_count(pestle_reader_t* r, size_t each) {
  uint64_t count = pestle_get_uint(r);
  if (r->failed || count > (r->size - r->at) / each) {
    r->failed = true;
    return 0;
  }
  return (size_t)count;
}

// A number below |limit|.
static inline size_t pestle_get_index(pestle_reader_t* r, size_t limit) {
  uint64_t index = pestle_get_uint(r);
  if (r->failed || index >= limit) {
    r->failed = true;
    return 0;
  }
  return (size_t)index;
}

static inline pestle_str_t pestle_get_text(pestle_reader_t* r) {
  size_t size = pestle_get_count(r, 1);
  const char* data = (const char*)r->data + r->at;
  r->at += size;
  return pestle_str_make(data, size);
}

#endif  // PESTLE_IR_BYTES_H_

// SPDX-License-Identifier: Apache-2.0
#include "frontend/stablehlo/reader.h"

#include <string.h>

#include "base/fault.h"

pestle_reader_t pestle_reader_make(const void* data, size_t size) {
  static const uint8_t empty[1] = {0};
  const uint8_t* begin = size ? data : empty;
  return (pestle_reader_t){.next = begin, .end = begin + size, .base = begin};
}

pestle_reader_t pestle_reader_sub(const pestle_reader_t* outer,
                                  pestle_str_t bytes) {
  const uint8_t* begin = bytes.size ? (const uint8_t*)bytes.data : outer->end;
  return (pestle_reader_t){
      .next = begin, .end = begin + bytes.size, .base = outer->base};
}

pestle_status_t pestle_reader_damaged(const pestle_reader_t* r,
                                      const char* what) {
  return PESTLE_ERROR(MALFORMED,
                      "the file is not whole MLIR bytecode: %s at byte %zu",
                      what, (size_t)(r->next - r->base));
}

pestle_status_t pestle_reader_byte(pestle_reader_t* r, uint8_t* out) {
  if (!pestle_reader_more(r)) return pestle_reader_damaged(r, "it is cut off");
  *out = *r->next++;
  return NULL;
}

static uint64_t little_endian(const uint8_t* bytes, unsigned count) {
  uint64_t value = 0;
  for (unsigned i = 0; i < count; ++i)
    value |= (uint64_t)bytes[i] << (8 * i);
  return value;
}

pestle_status_t pestle_reader_varint(pestle_reader_t* r, uint64_t* out) {
  if (!pestle_reader_more(r)) return pestle_reader_damaged(r, "it is cut off");
  uint8_t first = *r->next;
  // Bytes after the first; eight of them hold the whole number.
  unsigned extra = first ? (unsigned)__builtin_ctz(first) : 8;
  if (pestle_reader_left(r) < extra + 1u) {
    return pestle_reader_damaged(r, "a number is cut off");
  }
  uint64_t value = extra == 8
                       ? little_endian(r->next + 1, 8)
                       : little_endian(r->next, extra + 1) >> (extra + 1);
  r->next += extra + 1;
  *out = value;
  return NULL;
}

pestle_status_t pestle_reader_signed(pestle_reader_t* r, int64_t* out) {
  uint64_t value;
  PESTLE_TRY(pestle_reader_varint(r, &value));
  uint64_t bits = (value >> 1) ^ (0 - (value & 1));
  memcpy(out, &bits, sizeof(*out));
  return NULL;
}

pestle_status_t pestle_reader_flagged(pestle_reader_t* r, uint64_t* out,
                                      bool* out_flag) {
  uint64_t value;
  PESTLE_TRY(pestle_reader_varint(r, &value));
  *out = value >> 1;
  *out_flag = value & 1;
  return NULL;
}

static pestle_status_t check_index(const pestle_reader_t* at, uint64_t value,
                                   size_t limit, const char* what,
                                   uint32_t* out) {
  if ((value >= limit || value > UINT32_MAX) &&
      !PESTLE_FAULT(trust_reader_index)) {
    return PESTLE_ERROR(MALFORMED,
                        "the file is not whole MLIR bytecode: %s %llu of %zu "
                        "at byte %zu",
                        what, (unsigned long long)value, limit,
                        (size_t)(at->next - at->base));
  }
  *out = (uint32_t)value;
  return NULL;
}

pestle_status_t pestle_reader_index(pestle_reader_t* r, size_t limit,
                                    const char* what, uint32_t* out) {
  pestle_reader_t at = *r;
  uint64_t value;
  PESTLE_TRY(pestle_reader_varint(r, &value));
  return check_index(&at, value, limit, what, out);
}

pestle_status_t pestle_reader_flagged_index(pestle_reader_t* r, size_t limit,
                                            const char* what, uint32_t* out,
                                            bool* out_flag) {
  pestle_reader_t at = *r;
  uint64_t value;
  PESTLE_TRY(pestle_reader_flagged(r, &value, out_flag));
  return check_index(&at, value, limit, what, out);
}

pestle_status_t pestle_reader_count(pestle_reader_t* r, size_t* out) {
  pestle_reader_t at = *r;
  uint64_t value;
  PESTLE_TRY(pestle_reader_varint(r, &value));
  if (value > pestle_reader_left(r)) {
    return pestle_reader_damaged(&at, "a count of more than the file holds");
  }
  *out = (size_t)value;
  return NULL;
}

pestle_status_t pestle_reader_bytes(pestle_reader_t* r, uint64_t size,
                                    pestle_str_t* out) {
  if (size > pestle_reader_left(r)) {
    return pestle_reader_damaged(r, "a part is longer than what it lies in");
  }
  *out = pestle_str_make((const char*)r->next, (size_t)size);
  r->next += size;
  return NULL;
}

pestle_status_t pestle_reader_blob(pestle_reader_t* r, pestle_str_t* out) {
  uint64_t size;
  PESTLE_TRY(pestle_reader_varint(r, &size));
  return pestle_reader_bytes(r, size, out);
}

pestle_status_t pestle_reader_terminated(pestle_reader_t* r,
                                         pestle_str_t* out) {
  const uint8_t* zero = memchr(r->next, 0, pestle_reader_left(r));
  if (!zero) return pestle_reader_damaged(r, "a text without end");
  *out = pestle_str_make((const char*)r->next, (size_t)(zero - r->next));
  r->next = zero + 1;
  return NULL;
}

// SPDX-License-Identifier: Apache-2.0
// A cursor over the bytes of an MLIR bytecode file: the encoding's numbers and
// strings, each checked against the end of what encloses it. Nothing is copied.
//
// Number formats (MLIR's bytecode format, versions 0 to 6): a *varint* has as
// many bytes after the first as that has zero bits at its low end; a first byte
// of 0 means that eight bytes follow. A *signed varint* is a varint in zigzag
// form. A *flagged varint* holds a flag in its lowest bit.
#ifndef PESTLE_FRONTEND_STABLEHLO_READER_H_
#define PESTLE_FRONTEND_STABLEHLO_READER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "pestle/status.h"

typedef struct pestle_reader_t {
  const uint8_t* next;
  const uint8_t* end;
  const uint8_t* base;  // of the whole file: offsets in diagnostics
} pestle_reader_t;

// A cursor over a whole file.
pestle_reader_t pestle_reader_make(const void* data, size_t size);
// A cursor over |bytes|, which lie in |outer|'s file.
pestle_reader_t pestle_reader_sub(const pestle_reader_t* outer,
                                  pestle_str_t bytes);
static inline bool pestle_reader_more(const pestle_reader_t* r) {
  return r->next != r->end;
}
static inline size_t pestle_reader_left(const pestle_reader_t* r) {
  return (size_t)(r->end - r->next);
}
// MALFORMED: "the file is not whole MLIR bytecode: |what| at byte N".
PESTLE_NODISCARD pestle_status_t pestle_reader_damaged(const pestle_reader_t* r,
                                                       const char* what);

PESTLE_NODISCARD pestle_status_t pestle_reader_byte(pestle_reader_t* r,
                                                    uint8_t* out);
PESTLE_NODISCARD pestle_status_t pestle_reader_varint(pestle_reader_t* r,
                                                      uint64_t* out);
PESTLE_NODISCARD pestle_status_t pestle_reader_signed(pestle_reader_t* r,
                                                      int64_t* out);
PESTLE_NODISCARD pestle_status_t pestle_reader_flagged(pestle_reader_t* r,
                                                       uint64_t* out,
                                                       bool* out_flag);
// An index below |limit|; |what| names the table in the sentence of a failure.
PESTLE_NODISCARD pestle_status_t pestle_reader_index(pestle_reader_t* r,
                                                     size_t limit,
                                                     const char* what,
                                                     uint32_t* out);
// The same with a flag.
PESTLE_NODISCARD pestle_status_t pestle_reader_flagged_index(pestle_reader_t* r,
                                                             size_t limit,
                                                             const char* what,
                                                             uint32_t* out,
                                                             bool* out_flag);
// A count of things of which each takes at least one byte of what is left, so
// that a count never asks for more memory than the file backs.
PESTLE_NODISCARD pestle_status_t pestle_reader_count(pestle_reader_t* r,
                                                     size_t* out);
// |size| bytes.
PESTLE_NODISCARD pestle_status_t pestle_reader_bytes(pestle_reader_t* r,
                                                     uint64_t size,
                                                     pestle_str_t* out);
// A varint and as many bytes.
PESTLE_NODISCARD pestle_status_t pestle_reader_blob(pestle_reader_t* r,
                                                    pestle_str_t* out);
// Text up to a zero byte, which is read over.
PESTLE_NODISCARD pestle_status_t pestle_reader_terminated(pestle_reader_t* r,
                                                          pestle_str_t* out);

#endif  // PESTLE_FRONTEND_STABLEHLO_READER_H_

// SPDX-License-Identifier: Apache-2.0
// From the blocks of a GGUF tensor to what pestle.block_dot takes, and to plain numbers.
#ifndef PESTLE_FRONTEND_GGUF_PACK_H_
#define PESTLE_FRONTEND_GGUF_PACK_H_

#include "frontend/gguf/file.h"
#include "pestle/context.h"

// Which rows of a matrix are taken, in which order.
typedef struct pestle_gguf_rows_t {
  int64_t first, count;
  // Not 0: each |depth| rows are a head, in the first |turned| of which pairs 2 i and
  // 2 i + 1 turn together; they are put at i and |turned| / 2 + i.
  int64_t depth, turned;
} pestle_gguf_rows_t;

// The place among a tensor's rows of row |index| of those taken.
int64_t pestle_gguf_row(const pestle_gguf_rows_t* rows, int64_t index);

// Fills |bytes| [rows, columns * bits / 8], |scales| [rows, columns / group], f16 or f32 as
// the type has them, and where it has a least f32 |zeros| alike, of |t|, whose type has
// bits. Exact: but for the rounding of zeros to f32 the numbers are those of the file.
void pestle_gguf_pack(pestle_context_t* context, const pestle_gguf_tensor_t* t,
                      const pestle_gguf_rows_t* rows, uint8_t* bytes,
                      void* scales, float* zeros);

// All elements of |t|, of whatever type, as f32.
void pestle_gguf_unpack(const pestle_gguf_tensor_t* t, float* out);

#endif  // PESTLE_FRONTEND_GGUF_PACK_H_

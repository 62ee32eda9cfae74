// SPDX-License-Identifier: Apache-2.0
// Quantised types, and ops on values that have them: ir/quant.h says what those are.
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "frontend/stablehlo/build.h"

typedef pestle_bytecode_decoder_t decoder_t;
typedef pestle_bytecode_type_t type_t;

// --- Types ---

// The storage is signless; a flag says whether its numbers are signed.
enum { SIGNED = 1, MAX_BITS = 32 };

static pestle_status_t read_storage(decoder_t* d, pestle_reader_t* r,
                                    pestle_quant_t* q) {
  uint64_t flags;
  const type_t *storage, *expressed;
  PESTLE_TRY(pestle_reader_varint(r, &flags));
  PESTLE_TRY(pestle_bytecode_read_type(d, r, &storage));
  PESTLE_TRY(pestle_bytecode_read_type(d, r, &expressed));
  q->storage = storage->type.dtype;
  q->expressed = expressed->type.dtype;
  if (!(flags & SIGNED)) q->storage = pestle_dtype_unsigned(storage->bits);
  bool fits = storage->kind == PESTLE_BYTECODE_ELEMENT &&
              expressed->kind == PESTLE_BYTECODE_ELEMENT &&
              pestle_dtype_is(q->storage, PESTLE_KIND_INT) &&
              pestle_dtype_is(q->expressed, PESTLE_KIND_FLOAT) &&
              storage->bits <= MAX_BITS;
  if (fits) return NULL;
  return PESTLE_ERROR(
      UNSUPPORTED, "'%.*s' that stand for '%.*s' are not supported",
      PESTLE_STR_ARG(storage->text), PESTLE_STR_ARG(expressed->text));
}

static pestle_status_t read_range(pestle_reader_t* r, pestle_quant_t* q) {
  PESTLE_TRY(pestle_reader_signed(r, &q->low));
  PESTLE_TRY(pestle_reader_signed(r, &q->high));
  unsigned bits = pestle_dtype_info(q->storage)->bits;
  bool is_signed = pestle_dtype_is(q->storage, PESTLE_KIND_SIGNED);
  int64_t high = (INT64_C(1) << (is_signed ? bits - 1 : bits)) - 1;
  int64_t low = is_signed ? -high - 1 : 0;
  return q->low >= low && q->high <= high && q->low <= q->high
             ? NULL
             : pestle_reader_damaged(r, "a range that its storage has not");
}

static pestle_status_t read_scale(pestle_reader_t* r, double* out) {
  int64_t bits;
  PESTLE_TRY(pestle_reader_signed(r, &bits));
  memcpy(out, &bits, sizeof(*out));
  return *out > 0 && isfinite(*out)
             ? NULL
             : pestle_reader_damaged(r, "a scale that is no positive number");
}

static pestle_status_t allocate(decoder_t* d, size_t count, pestle_quant_t* q,
                                double** scales, int64_t** zeros) {
  *scales = PESTLE_ARENA_ARRAY(d->arena, double, count + 1);
  *zeros = PESTLE_ARENA_ARRAY(d->arena, int64_t, count + 1);
  q->scales = *scales;
  q->zeros = *zeros;
  q->count = count;
  return *scales && *zeros ? NULL : PESTLE_OOM();
}

static pestle_status_t read_one(decoder_t* d, pestle_reader_t* r,
                                pestle_quant_t* q) {
  double* scales;
  int64_t* zeros;
  q->axis = -1;
  PESTLE_TRY(allocate(d, 1, q, &scales, &zeros));
  PESTLE_TRY(read_scale(r, scales));
  PESTLE_TRY(pestle_reader_signed(r, zeros));
  return read_range(r, q);
}

static pestle_status_t read_along(decoder_t* d, pestle_reader_t* r,
                                  pestle_quant_t* q) {
  uint32_t axis;
  size_t count, zero_count;
  double* scales;
  int64_t* zeros;
  PESTLE_TRY(pestle_reader_index(r, PESTLE_MAX_RANK, "axis", &axis));
  q->axis = (int32_t)axis;
  PESTLE_TRY(read_range(r, q));
  PESTLE_TRY(pestle_reader_count(r, &count));
  PESTLE_TRY(allocate(d, count, q, &scales, &zeros));
  for (size_t i = 0; i < count; ++i)
    PESTLE_TRY(read_scale(r, &scales[i]));
  PESTLE_TRY(pestle_reader_count(r, &zero_count));
  if (!count || zero_count != count) {
    return pestle_reader_damaged(r, "not as many zeros as scales");
  }
  for (size_t i = 0; i < count; ++i)
    PESTLE_TRY(pestle_reader_signed(r, &zeros[i]));
  return NULL;
}

pestle_status_t pestle_bytecode_read_quant(decoder_t* d, pestle_reader_t* r,
                                           bool along_axis, type_t* out_type) {
  pestle_quant_t* q = PESTLE_ARENA_NEW(d->arena, pestle_quant_t);
  if (!q) return PESTLE_OOM();
  PESTLE_TRY(read_storage(d, r, q));
  PESTLE_TRY(along_axis ? read_along(d, r, q) : read_one(d, r, q));
  d->quantised = true;
  out_type->kind = PESTLE_BYTECODE_ELEMENT;
  out_type->text = PESTLE_STR("!quant.uniform");
  out_type->type = pestle_type_make(q->storage, 0, NULL);
  out_type->quant = q;
  return NULL;
}

// --- Ops ---

pestle_status_t pestle_bytecode_quants(pestle_bytecode_builder_t* b,
                                       const pestle_bytecode_op_t* op,
                                       size_t operand_count,
                                       size_t result_count,
                                       const pestle_quant_t*** out_operands,
                                       const pestle_quant_t*** out_results) {
  const pestle_quant_t** at = PESTLE_ARENA_ARRAY(
      &b->scratch, const pestle_quant_t*, operand_count + result_count + 1);
  if (!at) return PESTLE_OOM();
  *out_operands = at;
  for (uint32_t i = 0; i < op->operand_count; ++i) {
    const pestle_bytecode_slot_t* slot;
    PESTLE_TRY(pestle_bytecode_operand(b, op, i, &slot));
    pestle_bytecode_type_quants(slot->type, &at);
  }
  *out_results = at;
  for (uint32_t i = 0; i < op->result_count; ++i) {
    const type_t* type;
    PESTLE_TRY(pestle_bytecode_type(&b->decoder, op->result_types[i], &type));
    pestle_bytecode_type_quants(type, &at);
  }
  return NULL;
}

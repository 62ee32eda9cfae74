// SPDX-License-Identifier: Apache-2.0
// com.microsoft: weights of a few bits in blocks with a scale each. They stay packed
// until they are multiplied, by pestle.block_dot; gathered ones are unpacked, converted,
// less a zero point, times a scale.
#include "frontend/onnx/bounded.h"
#include "frontend/onnx/contrib.h"

pestle_value_t* pestle_onnx_unpack(pestle_onnx_call_t* call, pestle_value_t* x,
                                   int64_t bits, int32_t rank,
                                   const int64_t* dims) {
  int64_t each = 8 / bits, wide[PESTLE_MAX_RANK];
  pestle_value_t* parts[8];
  if (each == 1) return pestle_f_reshape(&call->f, x, rank, dims);
  int32_t last = rank_of(x);
  for (int32_t i = 0; i < last; ++i)
    wide[i] = pestle_onnx_dim(x, i);
  wide[last] = 1;
  for (int64_t i = 0; i < each; ++i) {
    pestle_value_t* one = x;
    if (i)
      one = pestle_onnx_binary_f(call, PESTLE_OP_SHIFT_RIGHT_LOGICAL, one,
                                 (double)(i * bits));
    if (i + 1 < each)
      one = pestle_onnx_binary_f(call, PESTLE_OP_AND, one,
                                 (double)((1 << bits) - 1));
    parts[i] = pestle_f_reshape(&call->f, one, last + 1, wide);
  }
  x = pestle_f_concatenate(&call->f, parts, (size_t)each, last);
  return pestle_f_reshape(&call->f, x, rank, dims);
}

static bool is_bits(int64_t bits) {
  return bits == 2 || bits == 4 || bits == 8;
}

static bool is_block(int64_t size) {
  return size >= 16 && size <= INT32_MAX && (size & (size - 1)) == 0;
}

// --- MatMulNBits ---

typedef struct blocks_t {
  int64_t rows, columns, bits, size, count;  // N, K, ..., blocks a row
} blocks_t;

static bool read_blocks(pestle_onnx_call_t* call, blocks_t* b) {
  if (!pestle_onnx_takes(
          call, "K N accuracy_level bits block_size weight_prepacked") ||
      !pestle_onnx_takes_only(call, "weight_prepacked", 0,
                              "the layout is that of one device") ||
      !pestle_onnx_takes_no_input(call, 4, "g_idx", "it is deprecated")) {
    return false;
  }
  b->columns = pestle_onnx_int(call, "K", 0);
  b->rows = pestle_onnx_int(call, "N", 0);
  b->bits = pestle_onnx_int(call, "bits", 4);
  b->size = pestle_onnx_int(call, "block_size", 0);
  int64_t level = pestle_onnx_int(call, "accuracy_level", 0);
  if (!is_bits(b->bits) || !is_block(b->size) || level < 0 || level > 4) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "attributes 'bits' %lld, 'block_size' %lld and "
                     "'accuracy_level' %lld; known are 2, 4 and 8 bits, powers "
                     "of two from 16 on, and levels 0 to 4",
                     (long long)b->bits, (long long)b->size, (long long)level);
    return false;
  }
  const pestle_value_t *a = call->inputs[0], *w = call->inputs[1];
  b->count = b->columns > 0 ? (b->columns - 1) / b->size + 1 : 0;
  // So that no product of them overflows.
  const int64_t most = INT64_C(1) << 28;
  bool fits = b->columns > 0 && b->rows > 0 && b->columns <= most &&
              b->rows <= most && b->size <= most && dtype_of(w) == PESTLE_U8 &&
              pestle_type_count(w->type) ==
                  b->rows * b->count * (b->size * b->bits / 8) &&
              pestle_type_count(call->inputs[2]->type) == b->rows * b->count &&
              rank_of(a) >= 1 &&
              pestle_onnx_dim(a, rank_of(a) - 1) == b->columns;
  if (!fits) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "A must have K columns, B be u8 [N, blocks, bytes of a "
                     "block], and scales have N * blocks elements");
  }
  return fits;
}

// [n, blocks], ui8 or of the type of A; NULL where there are none.
static pestle_value_t* zero_points(pestle_onnx_call_t* call,
                                   const blocks_t* b) {
  pestle_value_t* zero = pestle_onnx_input(call, 3);
  const int64_t dims[2] = {b->rows, b->count};
  if (!zero) return NULL;
  int64_t elements = pestle_type_count(zero->type);
  if (dtype_of(zero) == PESTLE_U8) {
    int64_t each = 8 / b->bits, bytes = (b->count + each - 1) / each;
    const int64_t packed[2] = {b->rows, bytes},
                  all[2] = {b->rows, bytes * each};
    if (elements == b->rows * bytes) {
      zero = pestle_f_reshape(&call->f, zero, 2, packed);
      zero = pestle_onnx_unpack(call, zero, b->bits, 2, all);
      zero = pestle_onnx_slice_axis(call, zero, 1, 0, b->count, 1);
      elements = b->rows * b->count;
    } else {
      elements = 0;
    }
  }
  if (elements != b->rows * b->count) {
    return pestle_onnx_fail(
        call, PESTLE_STATUS_MALFORMED,
        "its zero_points must be packed u8 with whole bytes "
        "a row, or of the type of A, for each block");
  }
  return pestle_f_reshape(&call->f, zero, 2, dims);
}

void pestle_onnx_import_matmul_nbits(pestle_onnx_call_t* call) {
  blocks_t b;
  pestle_value_t *a = call->inputs[0], *bias = pestle_onnx_input(call, 5);
  // The result has no such last axis.
  if (!read_blocks(call, &b) ||
      !pestle_onnx_allow_real(call, 0, ~(UINT32_C(1) << (rank_of(a) - 1)))) {
    return;
  }
  const int64_t weights[2] = {b.rows, b.count * (b.size * b.bits / 8)};
  const int64_t scales[2] = {b.rows, b.count};
  pestle_value_t* operands[4] = {
      a, pestle_f_reshape(&call->f, call->inputs[1], 2, weights),
      pestle_f_reshape(&call->f, call->inputs[2], 2, scales),
      zero_points(call, &b)};
  if (call->f.status) return;
  const pestle_attr_t attrs[] = {
      PESTLE_SET_I64(bits, b.bits), PESTLE_SET_I64(block, b.size),
      PESTLE_SET_I64(accuracy, pestle_onnx_int(call, "accuracy_level", 0))};
  pestle_value_t* y = pestle_f_make(&call->f, PESTLE_OP_BLOCK_DOT, operands,
                                    operands[3] ? 4 : 3, attrs, 3, NULL);
  call->outputs[0] = bias ? add(call, y, bias) : y;
}

// --- GatherBlockQuantized ---

// |x| with one number for each block of |size| along |axis|, repeated for |extent|.
static pestle_value_t* spread(pestle_onnx_call_t* call, pestle_value_t* x,
                              int64_t axis, int64_t size, int64_t extent) {
  int64_t* at =
      pestle_onnx_scratch(call, (size_t)(extent + 1) * sizeof(int64_t));
  for (int64_t i = 0; at && i < extent; ++i)
    at[i] = i / size;
  return at ? pestle_onnx_take_list(call, x, at, (size_t)extent, axis) : NULL;
}

static pestle_value_t* gather_rows(pestle_onnx_call_t* call, pestle_value_t* x,
                                   int64_t axis) {
  pestle_value_t* in[2] = {x, call->inputs[1]};
  const pestle_onnx_attr_t attr = pestle_onnx_make_int("axis", axis);
  return pestle_onnx_part(call, pestle_onnx_import_gather, in, 2, &attr, 1);
}

// Whole rows are gathered as they lie, and then unpacked.
void pestle_onnx_import_gather_block_quantized(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "bits block_size gather_axis quantize_axis"))
    return;
  pestle_value_t *data = call->inputs[0], *scales = call->inputs[2];
  pestle_value_t* zero = pestle_onnx_input(call, 3);
  int64_t rank = rank_of(data), bits = pestle_onnx_int(call, "bits", 4);
  int64_t size = pestle_onnx_int(call, "block_size", 128);
  int64_t from =
      pestle_onnx_axis(call, pestle_onnx_int(call, "gather_axis", 0), rank);
  int64_t axis =
      pestle_onnx_axis(call, pestle_onnx_int(call, "quantize_axis", 1), rank);
  bool bytes = dtype_of(data) == PESTLE_U8;
  int64_t each = bytes ? 8 / (is_bits(bits) ? bits : 8) : 1;
  if (call->f.status) return;
  int64_t extent = pestle_onnx_dim(data, axis) * (axis == rank - 1 ? each : 1);
  bool fits = is_block(size) && rank_of(scales) == rank && from != axis &&
              (!bytes || (is_bits(bits) && from == 0)) &&
              pestle_dtype_is(dtype_of(data), PESTLE_KIND_INT) && extent > 0 &&
              extent <= PESTLE_ONNX_MAX_INDICES &&
              pestle_onnx_dim(scales, axis) == (extent - 1) / size + 1;
  if (!fits) {
    pestle_onnx_fail(
        call, PESTLE_STATUS_UNSUPPORTED,
        "it gathers along axis %lld in blocks of %lld along axis %lld of "
        "numbers of %lld bits; known are other axes than that of the blocks "
        "(of bytes only axis 0), 2, 4 and 8 bits, and blocks of powers of two "
        "from 16 on with a scale each",
        (long long)from, (long long)size, (long long)axis, (long long)bits);
    return;
  }
  pestle_dtype_t dtype = dtype_of(scales);
  pestle_value_t* x = gather_rows(call, data, from);
  pestle_value_t* s = gather_rows(call, scales, from);
  if (!x || !s) return;
  int32_t more = rank_of(x) - (int32_t)rank;
  int64_t place = axis + (axis > from ? more : 0);
  int64_t dims[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < rank_of(x); ++i)
    dims[i] = pestle_onnx_dim(x, i) * (i == rank_of(x) - 1 ? each : 1);
  x = pestle_onnx_convert(
      call, pestle_onnx_unpack(call, x, 8 / each, rank_of(x), dims),
      PESTLE_F32);
  pestle_value_t* z = NULL;
  if (zero) {
    z = gather_rows(call, zero, from);
    for (int32_t i = 0; i < rank_of(z); ++i)
      dims[i] = pestle_onnx_dim(z, i) * (i == rank_of(z) - 1 ? each : 1);
    z = pestle_onnx_unpack(call, z, 8 / each, rank_of(z), dims);
    // Whole bytes: there may be more than blocks.
    z = pestle_onnx_slice_axis(call, z, place, 0, pestle_onnx_dim(s, place), 1);
    z = spread(call, pestle_onnx_convert(call, z, PESTLE_F32), place, size,
               extent);
  } else if (bytes) {
    z = pestle_onnx_scalar(call, PESTLE_F32, (double)(1 << (bits - 1)));
  }
  if (z) x = sub(call, x, z);
  s = spread(call, pestle_onnx_convert(call, s, PESTLE_F32), place, size,
             extent);
  call->outputs[0] = pestle_onnx_convert(call, mul(call, x, s), dtype);
}

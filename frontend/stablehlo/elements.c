// SPDX-License-Identifier: Apache-2.0
// Numbers and constant data.
#include <string.h>

#include "base/mem.h"
#include "frontend/stablehlo/decode.h"

typedef pestle_bytecode_type_t type_t;

// Up to 8 bits are a byte, up to 64 one number in zigzag, more several.
pestle_status_t pestle_bytecode_read_number(pestle_reader_t* r,
                                            const type_t* type, uint64_t* out) {
  int64_t value;
  if (type->kind != PESTLE_BYTECODE_ELEMENT || !type->bits) {
    return pestle_reader_damaged(r, "a number of no number's type");
  }
  if (type->bits <= 8) {
    uint8_t byte;
    PESTLE_TRY(pestle_reader_byte(r, &byte));
    *out = byte;
    return NULL;
  }
  if (type->bits > 64) {
    return PESTLE_ERROR(UNSUPPORTED, "numbers of type '%.*s' are not supported",
                        PESTLE_STR_ARG(type->text));
  }
  PESTLE_TRY(pestle_reader_signed(r, &value));
  uint64_t mask =
      type->bits == 64 ? UINT64_MAX : (UINT64_C(1) << type->bits) - 1;
  *out = (uint64_t)value & mask;
  return NULL;
}

// --- Constant data ---

static void unpack(const uint8_t* packed, size_t count, uint8_t* out) {
  for (size_t i = 0; i < count; ++i)
    out[i] = packed[i / 8] >> (i % 8) & 1;
}

// Bytes that no value of the type has would travel on as they are.
static void clean(pestle_dtype_t dtype, uint8_t* data, size_t count) {
  if (dtype == PESTLE_I1) {
    for (size_t i = 0; i < count; ++i)
      data[i] = data[i] != 0;
  } else if (pestle_dtype_is_sub_byte(dtype)) {
    for (size_t i = 0; i < count; ++i)
      data[i] = pestle_dtype_extend(dtype, data[i]);
  }
}

static pestle_status_t copy(pestle_bytecode_decoder_t* d, pestle_str_t bytes,
                            bool packed, pestle_elements_t* e) {
  size_t count = (size_t)pestle_type_count(&e->type);
  e->size = packed ? count : bytes.size;
  uint8_t* data = pestle_arena_alloc(d->arena, e->size, 64);
  if (!data) return PESTLE_OOM();
  e->data = data;
  if (packed) {
    unpack((const uint8_t*)bytes.data, count, data);
    return NULL;
  }
  if (bytes.size) memcpy(data, bytes.data, bytes.size);
  clean(e->type.dtype, data, e->size);
  return NULL;
}

// Booleans are eight to a byte, or a byte each as older files have them; one byte
// of all bits or none stands for all.
pestle_status_t pestle_bytecode_elements(pestle_bytecode_decoder_t* d,
                                         const pestle_reader_t* r,
                                         const type_t* type, pestle_str_t bytes,
                                         pestle_elements_t* out_elements) {
  *out_elements = (pestle_elements_t){.type = type->type};
  PESTLE_TRY(pestle_bytecode_check_value_type(type));
  if (type->kind != PESTLE_BYTECODE_TENSOR ||
      !pestle_type_is_static(&type->type)) {
    return pestle_reader_damaged(r, "constant data of no tensor's type");
  }
  size_t count = (size_t)pestle_type_count(&type->type);
  size_t size = pestle_dtype_size(type->type.dtype);
  bool is_bool = type->type.dtype == PESTLE_I1;
  bool packed = is_bool && bytes.size != count && bytes.size == (count + 7) / 8;
  bool splat = !packed && count != 1 && bytes.size == size;
  // A value for no elements is no value.
  if (!count) return NULL;
  if (!packed && !splat && bytes.size != count * size) {
    return pestle_reader_damaged(r,
                                 "constant data of another size than its "
                                 "type has");
  }
  out_elements->splat = splat;
  return copy(d, bytes, packed, out_elements);
}

// SPDX-License-Identifier: Apache-2.0
// Attributes of the dialects builtin, vhlo and stablehlo, as ir/generic.h takes
// them.
#include <string.h>

#include "base/half.h"
#include "base/mem.h"
#include "frontend/stablehlo/attributes.h"
#include "frontend/stablehlo/decode.h"

typedef pestle_bytecode_decoder_t decoder_t;
typedef pestle_generic_value_t value_t;
typedef pestle_bytecode_type_t type_t;

// --- What the dialects share ---

pestle_status_t pestle_bytecode_add_entry(decoder_t* d, pestle_str_t key,
                                          const value_t* value, value_t* owner,
                                          pestle_generic_entry_t*** tail) {
  pestle_generic_entry_t* e =
      PESTLE_ARENA_NEW(d->arena, pestle_generic_entry_t);
  if (!e) return PESTLE_OOM();
  e->key = key;
  e->value = *value;
  **tail = e;
  *tail = &e->next;
  ++owner->entry_count;
  return NULL;
}

pestle_status_t pestle_bytecode_read_optional(decoder_t* d, pestle_reader_t* r,
                                              const value_t** out_value) {
  pestle_reader_t back = *r;
  uint64_t raw;
  uint32_t index;
  bool there;
  *out_value = NULL;
  PESTLE_TRY(pestle_reader_flagged(r, &raw, &there));
  if (!there) return NULL;
  *r = back;
  PESTLE_TRY(pestle_reader_flagged_index(r, d->file->attribute_count,
                                         "attribute", &index, &there));
  return pestle_bytecode_attribute(d, index, out_value);
}

pestle_status_t pestle_bytecode_read_list(decoder_t* d, pestle_reader_t* r,
                                          value_t* out) {
  size_t count;
  pestle_generic_entry_t** tail = &out->entries;
  out->kind = PESTLE_GENERIC_LIST;
  PESTLE_TRY(pestle_reader_count(r, &count));
  for (size_t i = 0; i < count; ++i) {
    const value_t* value;
    PESTLE_TRY(pestle_bytecode_read_attribute(d, r, &value));
    PESTLE_TRY(pestle_bytecode_add_entry(d, pestle_str_make(NULL, 0), value,
                                         out, &tail));
  }
  return NULL;
}

static pestle_status_t read_dictionary(decoder_t* d, pestle_reader_t* r,
                                       value_t* out) {
  size_t count;
  pestle_generic_entry_t** tail = &out->entries;
  out->kind = PESTLE_GENERIC_DICT;
  PESTLE_TRY(pestle_reader_count(r, &count));
  for (size_t i = 0; i < count; ++i) {
    const value_t *key, *value;
    PESTLE_TRY(pestle_bytecode_read_attribute(d, r, &key));
    PESTLE_TRY(pestle_bytecode_read_attribute(d, r, &value));
    if (key->kind != PESTLE_GENERIC_STRING) {
      return pestle_reader_damaged(r, "a key that is no string");
    }
    PESTLE_TRY(pestle_bytecode_add_entry(d, key->text, value, out, &tail));
  }
  return NULL;
}

static pestle_status_t read_string(decoder_t* d, pestle_reader_t* r,
                                   value_t* out) {
  out->kind = PESTLE_GENERIC_STRING;
  return pestle_bytecode_string(d->file, r, &out->text);
}

// The type of a number is kept by its name, for the text.
static pestle_status_t read_integer(decoder_t* d, pestle_reader_t* r,
                                    value_t* out) {
  const type_t* type;
  uint64_t bits;
  PESTLE_TRY(pestle_bytecode_read_type(d, r, &type));
  PESTLE_TRY(pestle_bytecode_read_number(r, type, &bits));
  out->kind = PESTLE_GENERIC_INT;
  out->text = type->text;
  if (type->bits == 1) {
    out->kind = PESTLE_GENERIC_BOOL;
    out->b = bits & 1;
    return NULL;
  }
  uint64_t sign = UINT64_C(1) << (type->bits - 1);
  if (type->bits < 64) bits &= 2 * sign - 1;
  if (!type->is_unsigned) bits = (bits ^ sign) - sign;
  memcpy(&out->i64, &bits, sizeof(out->i64));
  return NULL;
}

static pestle_status_t read_float(decoder_t* d, pestle_reader_t* r,
                                  value_t* out) {
  const type_t* type;
  uint64_t bits;
  PESTLE_TRY(pestle_bytecode_read_type(d, r, &type));
  PESTLE_TRY(pestle_bytecode_read_number(r, type, &bits));
  if (!type->is_float || type->type.dtype == PESTLE_NONE) {
    return PESTLE_ERROR(UNSUPPORTED, "a number of type '%.*s' is not supported",
                        PESTLE_STR_ARG(type->text));
  }
  out->kind = PESTLE_GENERIC_FLOAT;
  out->text = type->text;
  out->f64 = pestle_float_decode(type->type.dtype, bits);
  return NULL;
}

// A FUNCTION has the index of its type beside.
static pestle_status_t read_type(decoder_t* d, pestle_reader_t* r,
                                 value_t* out) {
  const type_t* type;
  uint32_t index;
  PESTLE_TRY(pestle_reader_index(r, d->file->type_count, "type", &index));
  PESTLE_TRY(pestle_bytecode_type(d, index, &type));
  out->kind = PESTLE_GENERIC_OPAQUE;
  out->type = type->type;
  out->text = type->text;
  out->i64 = index;
  if (type->kind == PESTLE_BYTECODE_FUNCTION) {
    out->kind = PESTLE_GENERIC_FUNCTION;
  } else if (type->kind == PESTLE_BYTECODE_TENSOR &&
             type->type.dtype != PESTLE_NONE) {
    out->kind = PESTLE_GENERIC_TYPE;
  }
  return NULL;
}

static pestle_status_t read_elements(decoder_t* d, pestle_reader_t* r,
                                     value_t* out) {
  const type_t* type;
  pestle_str_t bytes;
  PESTLE_TRY(pestle_bytecode_read_type(d, r, &type));
  PESTLE_TRY(pestle_reader_blob(r, &bytes));
  out->kind = PESTLE_GENERIC_ELEMENTS;
  return pestle_bytecode_elements(d, r, type, bytes, &out->elements);
}

pestle_status_t pestle_bytecode_read_opaque(pestle_reader_t* r, value_t* out) {
  r->next = r->end;
  out->kind = PESTLE_GENERIC_OPAQUE;
  return NULL;
}

// --- vhlo ---

enum {
  VHLO_ARRAY = 1,
  VHLO_BOOLEAN = 2,
  VHLO_API_VERSION = 5,
  VHLO_DICTIONARY = 6,
  VHLO_FLOAT = 8,
  VHLO_INTEGER = 9,
  VHLO_ALIAS = 10,
  VHLO_STRING = 14,
  VHLO_TENSOR = 15,
  VHLO_TYPE = 17,
  VHLO_SUB_AXIS = 21,
  VHLO_AXIS_REF = 22,
  VHLO_MESH_GROUPS = 23,
  VHLO_MESH_AXIS = 24,
  VHLO_MESH = 25,
  VHLO_LAST = VHLO_MESH,
};

// The cases of vhlo's enumerations by their code.
enum { MAX_CASES = 6 };
static const char* const vhlo_words[][MAX_CASES] = {
    [3] = {"EQ", "NE", "GE", "GT", "LE", "LT"},
    [4] = {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"},
    [7] = {"FFT", "IFFT", "RFFT", "IRFFT"},
    [11] = {"DEFAULT", "HIGH", "HIGHEST"},
    [12] = {"DEFAULT", "THREE_FRY", "PHILOX"},
    [13] = {NULL, "UNIFORM", "NORMAL"},
    [16] = {"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"},
    [19] = {"DEFAULT", "HIGHEST", "TOLERANCE"},
};

static bool is_vhlo_word(uint64_t code) {
  return code < sizeof(vhlo_words) / sizeof(*vhlo_words) && vhlo_words[code][1];
}

pestle_status_t pestle_bytecode_read_vhlo_word(uint64_t code,
                                               pestle_reader_t* r,
                                               value_t* out) {
  uint64_t index;
  PESTLE_TRY(pestle_reader_varint(r, &index));
  if (index >= MAX_CASES || !vhlo_words[code][index]) {
    return pestle_reader_damaged(r, "a case that an enumeration has not");
  }
  out->kind = PESTLE_GENERIC_WORD;
  out->text = pestle_str(vhlo_words[code][index]);
  return NULL;
}

static pestle_status_t read_mesh_part(decoder_t* d, pestle_reader_t* r,
                                      pestle_mesh_part_t part, value_t* out) {
  return pestle_bytecode_read_mesh_part(d, r, part, true, out);
}

static pestle_status_t read_vhlo(decoder_t* d, pestle_reader_t* r,
                                 value_t* out) {
  uint64_t code, number;
  PESTLE_TRY(pestle_reader_varint(r, &code));
  if (is_vhlo_word(code)) return pestle_bytecode_read_vhlo_word(code, r, out);
  switch (code) {
    case VHLO_ARRAY:
      return pestle_bytecode_read_list(d, r, out);
    case VHLO_BOOLEAN:
      PESTLE_TRY(pestle_reader_varint(r, &number));
      out->kind = PESTLE_GENERIC_BOOL;
      out->b = number != 0;
      return NULL;
    case VHLO_ALIAS:
      return pestle_bytecode_read_alias(d, r, out);
    case VHLO_API_VERSION:
      out->kind = PESTLE_GENERIC_INT;
      out->text = PESTLE_STR("i32");
      PESTLE_TRY(pestle_reader_varint(r, &number));
      out->i64 = number > INT32_MAX ? INT32_MAX : (int64_t)number;
      return NULL;
    case VHLO_DICTIONARY:
      return read_dictionary(d, r, out);
    case VHLO_FLOAT:
      return read_float(d, r, out);
    case VHLO_INTEGER:
      return read_integer(d, r, out);
    case VHLO_STRING:
      return read_string(d, r, out);
    case VHLO_TENSOR:
      return read_elements(d, r, out);
    case VHLO_TYPE:
      return read_type(d, r, out);
    case VHLO_SUB_AXIS:
      return read_mesh_part(d, r, PESTLE_MESH_SUB_AXIS, out);
    case VHLO_AXIS_REF:
      return read_mesh_part(d, r, PESTLE_MESH_AXIS_REF, out);
    case VHLO_MESH_GROUPS:
      return read_mesh_part(d, r, PESTLE_MESH_GROUPS, out);
    case VHLO_MESH_AXIS:
      return read_mesh_part(d, r, PESTLE_MESH_AXIS, out);
    case VHLO_MESH:
      return read_mesh_part(d, r, PESTLE_MESH, out);
    default:
      if (code <= VHLO_LAST) return pestle_bytecode_read_opaque(r, out);
      return PESTLE_ERROR(UNSUPPORTED,
                          "attribute %llu of vhlo is newer than StableHLO "
                          "1.20.0, which Pestle reads",
                          (unsigned long long)code);
  }
}

// --- builtin ---

enum {
  BUILTIN_ARRAY = 0,
  BUILTIN_DICTIONARY = 1,
  BUILTIN_STRING = 2,
  BUILTIN_TYPED_STRING = 3,
  BUILTIN_SYMBOL = 4,
  BUILTIN_NESTED_SYMBOL = 5,
  BUILTIN_TYPE = 6,
  BUILTIN_UNIT = 7,
  BUILTIN_INTEGER = 8,
  BUILTIN_FLOAT = 9,
  BUILTIN_RESOURCE = 16,
  BUILTIN_DENSE_ARRAY = 17,
  BUILTIN_DENSE = 18,
};

static pestle_status_t read_symbol(decoder_t* d, pestle_reader_t* r,
                                   value_t* out) {
  const value_t* name;
  PESTLE_TRY(pestle_bytecode_read_attribute(d, r, &name));
  if (name->kind != PESTLE_GENERIC_STRING) {
    return pestle_reader_damaged(r, "a symbol that is no string");
  }
  out->kind = PESTLE_GENERIC_SYMBOL;
  out->text = name->text;
  return NULL;
}

static pestle_status_t read_resource(decoder_t* d, pestle_reader_t* r,
                                     value_t* out) {
  const type_t* type;
  uint32_t index;
  PESTLE_TRY(pestle_bytecode_read_type(d, r, &type));
  PESTLE_TRY(
      pestle_reader_index(r, d->file->resource_count, "resource", &index));
  out->kind = PESTLE_GENERIC_ELEMENTS;
  return pestle_bytecode_elements(d, r, type, d->file->resources[index].bytes,
                                  &out->elements);
}

// array<i64: 1, 2>: as many numbers as the blob has.
static pestle_status_t read_dense_array(decoder_t* d, pestle_reader_t* r,
                                        value_t* out) {
  const type_t* type;
  uint64_t count;
  pestle_str_t bytes;
  PESTLE_TRY(pestle_bytecode_read_type(d, r, &type));
  PESTLE_TRY(pestle_reader_varint(r, &count));
  PESTLE_TRY(pestle_reader_blob(r, &bytes));
  size_t size = type->bits == 1 ? 1 : type->bits / 8u;
  if (type->kind != PESTLE_BYTECODE_ELEMENT || !size || size > 8 ||
      bytes.size / size != count || bytes.size % size) {
    return pestle_reader_damaged(r, "an array of another size than it says");
  }
  pestle_generic_entry_t** tail = &out->entries;
  out->kind = PESTLE_GENERIC_LIST;
  out->text = type->text;
  for (size_t at = 0; at < bytes.size; at += size) {
    value_t item = {.kind = PESTLE_GENERIC_INT};
    uint64_t bits = 0, sign = UINT64_C(1) << (8 * size - 1);
    memcpy(&bits, bytes.data + at, size);
    bits = (bits ^ sign) - sign;
    memcpy(&item.i64, &bits, sizeof(bits));
    if (type->is_float) return pestle_bytecode_read_opaque(r, out);
    if (type->bits == 1) {
      item.kind = PESTLE_GENERIC_BOOL;
      item.b = bits != 0;
    }
    PESTLE_TRY(pestle_bytecode_add_entry(d, pestle_str_make(NULL, 0), &item,
                                         out, &tail));
  }
  return NULL;
}

static pestle_status_t read_builtin(decoder_t* d, pestle_reader_t* r,
                                    value_t* out) {
  uint64_t code;
  PESTLE_TRY(pestle_reader_varint(r, &code));
  switch (code) {
    case BUILTIN_ARRAY:
      return pestle_bytecode_read_list(d, r, out);
    case BUILTIN_DICTIONARY:
      return read_dictionary(d, r, out);
    case BUILTIN_STRING:
      return read_string(d, r, out);
    case BUILTIN_TYPED_STRING:
      PESTLE_TRY(read_string(d, r, out));
      r->next = r->end;
      return NULL;
    case BUILTIN_SYMBOL:
      return read_symbol(d, r, out);
    case BUILTIN_TYPE:
      return read_type(d, r, out);
    case BUILTIN_UNIT:
      out->kind = PESTLE_GENERIC_UNIT;
      return NULL;
    case BUILTIN_INTEGER:
      return read_integer(d, r, out);
    case BUILTIN_FLOAT:
      return read_float(d, r, out);
    case BUILTIN_RESOURCE:
      return read_resource(d, r, out);
    case BUILTIN_DENSE_ARRAY:
      return read_dense_array(d, r, out);
    case BUILTIN_DENSE:
      return read_elements(d, r, out);
    default:  // nested symbols, locations, sparse and distinct things
      return pestle_bytecode_read_opaque(r, out);
  }
}

// --- Any dialect ---

static pestle_status_t read_entry(decoder_t* d,
                                  const pestle_bytecode_entry_t* entry,
                                  value_t* out) {
  pestle_str_t dialect = d->file->dialects[entry->dialect].name;
  pestle_reader_t r = pestle_reader_sub(&d->file->file, entry->bytes);
  if (entry->is_text) {
    return pestle_generic_parse_value(d->context, d->arena, entry->bytes, out);
  }
  if (pestle_str_equal_c(dialect, "vhlo")) {
    PESTLE_TRY(read_vhlo(d, &r, out));
  } else if (pestle_str_equal_c(dialect, "builtin")) {
    PESTLE_TRY(read_builtin(d, &r, out));
  } else if (pestle_str_equal_c(dialect, "stablehlo")) {
    PESTLE_TRY(pestle_bytecode_read_stablehlo(d, &r, out));
  } else if (pestle_str_equal_c(dialect, "sdy")) {
    PESTLE_TRY(pestle_bytecode_read_sdy(d, &r, out));
  } else if (pestle_str_equal_c(dialect, "chlo")) {
    PESTLE_TRY(pestle_bytecode_read_chlo(&r, out));
  } else {
    PESTLE_TRY(pestle_bytecode_read_opaque(&r, out));
  }
  return pestle_reader_more(&r)
             ? pestle_reader_damaged(&r, "bytes behind an attribute")
             : NULL;
}

pestle_status_t pestle_bytecode_attribute(decoder_t* d, uint32_t index,
                                          const value_t** out_value) {
  *out_value = d->attributes[index];
  if (*out_value) return NULL;
  value_t* made = PESTLE_ARENA_NEW(d->arena, value_t);
  if (!made) return PESTLE_OOM();
  PESTLE_TRY(pestle_bytecode_enter(d));
  PESTLE_TRY(read_entry(d, &d->file->attributes[index], made));
  pestle_bytecode_leave(d);
  *out_value = d->attributes[index] = made;
  return NULL;
}

pestle_status_t pestle_bytecode_read_attribute(decoder_t* d, pestle_reader_t* r,
                                               const value_t** out_value) {
  uint32_t index;
  PESTLE_TRY(
      pestle_reader_index(r, d->file->attribute_count, "attribute", &index));
  return pestle_bytecode_attribute(d, index, out_value);
}

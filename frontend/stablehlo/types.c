// SPDX-License-Identifier: Apache-2.0
// Types of the dialects builtin, vhlo and stablehlo.
#include <stdio.h>

#include "base/mem.h"
#include "frontend/stablehlo/decode.h"

typedef pestle_bytecode_type_t type_t;
typedef pestle_bytecode_decoder_t decoder_t;

// --- Element types ---

typedef struct element_t {
  const char* name;
  uint8_t bits;
  char kind;  // 'i', 'u' and 'f', 'x' for index
} element_t;

static pestle_status_t make_other(decoder_t* d, pestle_str_t text,
                                  type_t* out) {
  const char* kept = pestle_arena_strndup(d->arena, text);
  if (!kept) return PESTLE_OOM();
  out->kind = PESTLE_BYTECODE_OTHER;
  out->text = pestle_str_make(kept, text.size);
  return NULL;
}

// Elements that Pestle has not keep their name and are of dtype NONE.
static void make_element(const element_t* e, type_t* out) {
  pestle_dtype_t dtype = pestle_dtype_from_name(e->name);
  if (dtype == PESTLE_INDEX) dtype = PESTLE_I64;
  out->kind = PESTLE_BYTECODE_ELEMENT;
  out->is_float = e->kind == 'f';
  out->is_unsigned = e->kind == 'u';
  out->bits = e->bits;
  out->text = pestle_str(e->name);
  out->type = pestle_type_make(dtype, 0, NULL);
}

static pestle_status_t read_complex(decoder_t* d, pestle_reader_t* r,
                                    type_t* out) {
  const type_t* part;
  PESTLE_TRY(pestle_bytecode_read_type(d, r, &part));
  bool wide = part->type.dtype == PESTLE_F64;
  if (part->kind != PESTLE_BYTECODE_ELEMENT ||
      (!wide && part->type.dtype != PESTLE_F32)) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "complex numbers of '%.*s' are not supported",
                        PESTLE_STR_ARG(part->text));
  }
  make_element(&(element_t){wide ? "complex<f64>" : "complex<f32>", 0, 'c'},
               out);
  return NULL;
}

// --- Types of types ---

// Types in a type in all, at most: few bytes can name parts of parts that are
// very many.
enum { MAX_SIZE = 1 << 20 };

static pestle_status_t read_parts(decoder_t* d, pestle_reader_t* r,
                                  const type_t** parts, size_t count,
                                  type_t* out) {
  for (size_t i = 0; i < count; ++i) {
    PESTLE_TRY(pestle_bytecode_read_type(d, r, &parts[i]));
    out->leaves += parts[i]->leaves;
    out->size += parts[i]->size + 1;
    if (out->size > MAX_SIZE) {
      return pestle_reader_damaged(r, "a type of more than a million types");
    }
  }
  return NULL;
}

static pestle_status_t read_tuple(decoder_t* d, pestle_reader_t* r,
                                  type_t* out) {
  size_t count;
  PESTLE_TRY(pestle_reader_count(r, &count));
  const type_t** parts = PESTLE_ARENA_ARRAY(d->arena, const type_t*, count + 1);
  if (!parts) return PESTLE_OOM();
  out->kind = PESTLE_BYTECODE_TUPLE;
  out->parts = parts;
  out->part_count = (uint32_t)count;
  return read_parts(d, r, parts, count, out);
}

static pestle_status_t read_function(decoder_t* d, pestle_reader_t* r,
                                     type_t* out) {
  size_t inputs, results;
  pestle_reader_t at = *r;
  uint64_t skipped;
  PESTLE_TRY(pestle_reader_count(r, &inputs));
  for (size_t i = 0; i < inputs; ++i)
    PESTLE_TRY(pestle_reader_varint(r, &skipped));
  PESTLE_TRY(pestle_reader_count(r, &results));
  size_t count = inputs + results;
  const type_t** parts = PESTLE_ARENA_ARRAY(d->arena, const type_t*, count + 1);
  if (!parts) return PESTLE_OOM();
  out->kind = PESTLE_BYTECODE_FUNCTION;
  out->parts = parts;
  out->part_count = (uint32_t)count;
  out->input_count = (uint32_t)inputs;
  PESTLE_TRY(pestle_reader_count(&at, &inputs));
  PESTLE_TRY(read_parts(d, &at, parts, inputs, out));
  return read_parts(d, r, parts + inputs, results, out);
}

// A shape and a type of elements. What an encoding says of bounds changes no
// value.
static pestle_status_t read_tensor(decoder_t* d, pestle_reader_t* r,
                                   type_t* out) {
  size_t rank;
  int64_t dims[PESTLE_MAX_RANK];
  const type_t* element;
  PESTLE_TRY(pestle_reader_count(r, &rank));
  if (rank > PESTLE_MAX_RANK) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "a tensor has %zu dimensions; at most %d are possible",
                        rank, PESTLE_MAX_RANK);
  }
  for (size_t i = 0; i < rank; ++i) {
    PESTLE_TRY(pestle_reader_signed(r, &dims[i]));
    if (dims[i] == INT64_MIN)
      dims[i] = PESTLE_DIM_DYNAMIC;
    else if (dims[i] < 0)
      return pestle_reader_damaged(r, "a negative extent");
  }
  PESTLE_TRY(pestle_bytecode_read_type(d, r, &element));
  if (element->kind != PESTLE_BYTECODE_ELEMENT) {
    return pestle_reader_damaged(r, "a tensor of no elements' type");
  }
  out->kind = PESTLE_BYTECODE_TENSOR;
  out->text = element->text;
  out->quant = element->quant;
  out->type = pestle_type_make(element->type.dtype, (int)rank, dims);
  out->leaves = 1;
  if (out->type.dtype == PESTLE_NONE) return NULL;
  pestle_status_t status = pestle_type_check(&out->type);
  if (!status) return NULL;
  pestle_status_t damaged =
      pestle_reader_damaged(r, pestle_status_message(status));
  pestle_status_release(status);
  return damaged;
}

static pestle_status_t read_encoded_tensor(decoder_t* d, pestle_reader_t* r,
                                           type_t* out) {
  uint32_t encoding;
  PESTLE_TRY(
      pestle_reader_index(r, d->file->attribute_count, "attribute", &encoding));
  return read_tensor(d, r, out);
}

static pestle_status_t unsupported(decoder_t* d, const char* name,
                                   pestle_reader_t* r, type_t* out) {
  r->next = r->end;
  return make_other(d, pestle_str(name), out);
}

// --- vhlo ---

static const element_t vhlo_elements[] = {
    [0] = {"i1", 1, 'i'},
    [2] = {"bf16", 16, 'f'},
    [3] = {"f16", 16, 'f'},
    [4] = {"f32", 32, 'f'},
    [5] = {"f64", 64, 'f'},
    [6] = {"f8E4M3FN", 8, 'f'},
    [7] = {"f8E5M2", 8, 'f'},
    [9] = {"index", 64, 'x'},
    [10] = {"i4", 4, 'i'},
    [11] = {"i8", 8, 'i'},
    [12] = {"i16", 16, 'i'},
    [13] = {"i32", 32, 'i'},
    [14] = {"i64", 64, 'i'},
    [15] = {"ui4", 4, 'u'},
    [16] = {"ui8", 8, 'u'},
    [17] = {"ui16", 16, 'u'},
    [18] = {"ui32", 32, 'u'},
    [19] = {"ui64", 64, 'u'},
    [27] = {"f8E4M3FNUZ", 8, 'f'},
    [28] = {"f8E5M2FNUZ", 8, 'f'},
    [29] = {"f8E4M3B11FNUZ", 8, 'f'},
    [31] = {"i2", 2, 'i'},
    [32] = {"ui2", 2, 'u'},
    [34] = {"tf32", 19, 'f'},
    [35] = {"f8E4M3", 8, 'f'},
    [36] = {"f8E3M4", 8, 'f'},
    [37] = {"f4E2M1FN", 4, 'f'},
    [38] = {"f6E2M3FN", 6, 'f'},
    [39] = {"f6E3M2FN", 6, 'f'},
    [40] = {"f8E8M0FNU", 8, 'f'},
};

enum {
  VHLO_COMPLEX = 1,
  VHLO_FUNCTION = 8,
  VHLO_TENSOR = 20,
  VHLO_TENSOR_ENCODED = 21,
  VHLO_TOKEN = 22,
  VHLO_TUPLE = 23,
  VHLO_QUANT = 24,
  VHLO_UNRANKED = 25,
  VHLO_WITNESS = 26,
  VHLO_QUANT_AXIS = 30,
  VHLO_NONE = 33,
  VHLO_BUFFER = 41,
  VHLO_FUTURE = 42,
};

// Elements for which builtin has no code are written as text.
static pestle_status_t read_text(decoder_t* d, pestle_str_t text, type_t* out) {
  for (size_t i = 0; i < sizeof(vhlo_elements) / sizeof(*vhlo_elements); ++i) {
    const element_t* e = &vhlo_elements[i];
    if (!e->name || !pestle_str_equal_c(text, e->name)) continue;
    make_element(e, out);
    return NULL;
  }
  return make_other(d, text, out);
}

static pestle_status_t read_vhlo(decoder_t* d, pestle_reader_t* r,
                                 type_t* out) {
  uint64_t code;
  PESTLE_TRY(pestle_reader_varint(r, &code));
  if (code < sizeof(vhlo_elements) / sizeof(*vhlo_elements) &&
      vhlo_elements[code].name) {
    make_element(&vhlo_elements[code], out);
    return NULL;
  }
  switch (code) {
    case VHLO_COMPLEX:
      return read_complex(d, r, out);
    case VHLO_FUNCTION:
      return read_function(d, r, out);
    case VHLO_TENSOR:
      return read_tensor(d, r, out);
    case VHLO_TENSOR_ENCODED:
      return read_encoded_tensor(d, r, out);
    case VHLO_TOKEN:
      out->kind = PESTLE_BYTECODE_TUPLE;
      return NULL;
    case VHLO_TUPLE:
      return read_tuple(d, r, out);
    case VHLO_QUANT:
      return pestle_bytecode_read_quant(d, r, false, out);
    case VHLO_QUANT_AXIS:
      return pestle_bytecode_read_quant(d, r, true, out);
    case VHLO_UNRANKED:
      return unsupported(d, "tensor of unknown rank", r, out);
    case VHLO_WITNESS:
      return unsupported(d, "!shape.witness", r, out);
    case VHLO_NONE:
      return unsupported(d, "none", r, out);
    case VHLO_BUFFER:
      return unsupported(d, "memref", r, out);
    case VHLO_FUTURE:
      return unsupported(d, "!stablehlo.future", r, out);
    default:
      return PESTLE_ERROR(UNSUPPORTED,
                          "type %llu of vhlo is newer than StableHLO 1.20.0, "
                          "which Pestle reads",
                          (unsigned long long)code);
  }
}

// --- builtin ---

enum {
  BUILTIN_INTEGER = 0,
  BUILTIN_FUNCTION = 2,
  BUILTIN_COMPLEX = 9,
  BUILTIN_NONE = 12,
  BUILTIN_TENSOR = 13,
  BUILTIN_TENSOR_ENCODED = 14,
  BUILTIN_TUPLE = 15,
};

static const element_t builtin_elements[] = {
    [1] = {"index", 64, 'x'},      [3] = {"bf16", 16, 'f'},
    [4] = {"f16", 16, 'f'},        [5] = {"f32", 32, 'f'},
    [6] = {"f64", 64, 'f'},        [7] = {"f80", 80, 'f'},
    [8] = {"f128", 128, 'f'},      [21] = {"tf32", 19, 'f'},
    [22] = {"f8E5M2", 8, 'f'},     [23] = {"f8E4M3", 8, 'f'},
    [24] = {"f8E4M3FN", 8, 'f'},   [25] = {"f8E5M2FNUZ", 8, 'f'},
    [26] = {"f8E4M3FNUZ", 8, 'f'}, [27] = {"f8E4M3B11FNUZ", 8, 'f'},
    [28] = {"f8E3M4", 8, 'f'},     [29] = {"f4E2M1FN", 4, 'f'},
    [30] = {"f6E2M3FN", 6, 'f'},   [31] = {"f6E3M2FN", 6, 'f'},
    [32] = {"f8E8M0FNU", 8, 'f'},
};

// Width and sign in one number.
static pestle_status_t read_integer(decoder_t* d, pestle_reader_t* r,
                                    type_t* out) {
  static const char* const prefix[] = {"i", "si", "ui", "?"};
  uint64_t code;
  char text[32];
  PESTLE_TRY(pestle_reader_varint(r, &code));
  if (code >> 2 > 1 << 24 || (code & 3) == 3) {
    return pestle_reader_damaged(r, "an integer type of an impossible width");
  }
  snprintf(text, sizeof(text), "%s%u", prefix[code & 3], (unsigned)(code >> 2));
  const char* kept = pestle_arena_strdup(d->arena, text);
  if (!kept) return PESTLE_OOM();
  make_element(&(element_t){kept, 0, (code & 3) == 2 ? 'u' : 'i'}, out);
  out->bits = code >> 2 > UINT16_MAX ? UINT16_MAX : (uint16_t)(code >> 2);
  return NULL;
}

static pestle_status_t read_builtin(decoder_t* d, pestle_reader_t* r,
                                    type_t* out) {
  uint64_t code;
  PESTLE_TRY(pestle_reader_varint(r, &code));
  if (code < sizeof(builtin_elements) / sizeof(*builtin_elements) &&
      builtin_elements[code].name) {
    make_element(&builtin_elements[code], out);
    return NULL;
  }
  switch (code) {
    case BUILTIN_INTEGER:
      return read_integer(d, r, out);
    case BUILTIN_FUNCTION:
      return read_function(d, r, out);
    case BUILTIN_COMPLEX:
      return read_complex(d, r, out);
    case BUILTIN_NONE:
      return unsupported(d, "none", r, out);
    case BUILTIN_TENSOR:
      return read_tensor(d, r, out);
    case BUILTIN_TENSOR_ENCODED:
      return read_encoded_tensor(d, r, out);
    case BUILTIN_TUPLE:
      return read_tuple(d, r, out);
    default:
      return unsupported(d, "a type that StableHLO has not", r, out);
  }
}

// --- quant ---

enum { QUANT_UNIFORM = 4, QUANT_UNIFORM_AXIS = 5 };

static pestle_status_t read_quant(decoder_t* d, pestle_reader_t* r,
                                  type_t* out) {
  uint64_t code;
  PESTLE_TRY(pestle_reader_varint(r, &code));
  return code == QUANT_UNIFORM || code == QUANT_UNIFORM_AXIS
             ? pestle_bytecode_read_quant(d, r, code == QUANT_UNIFORM_AXIS, out)
             : unsupported(d, "a quantised type that is not uniform", r, out);
}

// --- Any dialect ---

static pestle_status_t read_entry(decoder_t* d,
                                  const pestle_bytecode_entry_t* entry,
                                  type_t* out) {
  pestle_str_t dialect = d->file->dialects[entry->dialect].name;
  if (entry->is_text) return read_text(d, entry->bytes, out);
  pestle_reader_t r = pestle_reader_sub(&d->file->file, entry->bytes);
  if (pestle_str_equal_c(dialect, "vhlo")) {
    PESTLE_TRY(read_vhlo(d, &r, out));
  } else if (pestle_str_equal_c(dialect, "builtin")) {
    PESTLE_TRY(read_builtin(d, &r, out));
  } else if (pestle_str_equal_c(dialect, "quant")) {
    PESTLE_TRY(read_quant(d, &r, out));
  } else if (pestle_str_equal_c(dialect, "stablehlo")) {
    // Its one type is the token.
    out->kind = PESTLE_BYTECODE_TUPLE;
    return NULL;
  } else {
    return make_other(d, dialect, out);
  }
  return pestle_reader_more(&r)
             ? pestle_reader_damaged(&r, "bytes behind a type")
             : NULL;
}

pestle_status_t pestle_bytecode_type(decoder_t* d, uint32_t index,
                                     const type_t** out_type) {
  *out_type = d->types[index];
  if (*out_type) return NULL;
  type_t* made = PESTLE_ARENA_NEW(d->arena, type_t);
  if (!made) return PESTLE_OOM();
  PESTLE_TRY(pestle_bytecode_enter(d));
  PESTLE_TRY(read_entry(d, &d->file->types[index], made));
  pestle_bytecode_leave(d);
  *out_type = d->types[index] = made;
  return NULL;
}

pestle_status_t pestle_bytecode_read_type(decoder_t* d, pestle_reader_t* r,
                                          const type_t** out_type) {
  uint32_t index;
  PESTLE_TRY(pestle_reader_index(r, d->file->type_count, "type", &index));
  return pestle_bytecode_type(d, index, out_type);
}

pestle_status_t pestle_bytecode_check_value_type(const type_t* type) {
  switch ((pestle_bytecode_type_kind_t)type->kind) {
    case PESTLE_BYTECODE_TENSOR:
      if (type->type.dtype != PESTLE_NONE) return NULL;
      return PESTLE_ERROR(UNSUPPORTED, "element type '%.*s' is not supported",
                          PESTLE_STR_ARG(type->text));
    case PESTLE_BYTECODE_TUPLE:
      for (uint32_t i = 0; i < type->part_count; ++i) {
        PESTLE_TRY(pestle_bytecode_check_value_type(type->parts[i]));
      }
      return NULL;
    case PESTLE_BYTECODE_ELEMENT:
    case PESTLE_BYTECODE_OTHER:
      return PESTLE_ERROR(UNSUPPORTED, "type '%.*s' is not supported",
                          PESTLE_STR_ARG(type->text));
    case PESTLE_BYTECODE_FUNCTION:
      break;
  }
  return PESTLE_ERROR(UNSUPPORTED,
                      "values that are functions are not "
                      "supported");
}

pestle_status_t pestle_bytecode_use_type(decoder_t* d, const type_t* type) {
  if (type->kind == PESTLE_BYTECODE_TUPLE) d->tuple_size += type->size;
  return d->tuple_size <= MAX_SIZE
             ? NULL
             : PESTLE_ERROR(RESOURCE_EXHAUSTED,
                            "tuples have more than a million types in all");
}

void pestle_bytecode_type_leaves(const type_t* type, pestle_type_t** out) {
  if (type->kind == PESTLE_BYTECODE_TENSOR) *(*out)++ = type->type;
  for (uint32_t i = 0; i < type->part_count; ++i)
    pestle_bytecode_type_leaves(type->parts[i], out);
}

void pestle_bytecode_type_quants(const type_t* type,
                                 const pestle_quant_t*** out) {
  if (type->kind == PESTLE_BYTECODE_TENSOR) *(*out)++ = type->quant;
  for (uint32_t i = 0; i < type->part_count; ++i)
    pestle_bytecode_type_quants(type->parts[i], out);
}

// --- The decoder ---

pestle_status_t pestle_bytecode_decoder_init(pestle_context_t* context,
                                             const pestle_bytecode_t* file,
                                             pestle_arena_t* arena,
                                             decoder_t* out_decoder) {
  *out_decoder = (decoder_t){.context = context, .file = file, .arena = arena};
  size_t types = file->type_count, attributes = file->attribute_count;
  out_decoder->types = pestle_arena_alloc_zero(
      arena, (types + 1) * sizeof(*out_decoder->types), _Alignof(void*));
  out_decoder->attributes = pestle_arena_alloc_zero(
      arena, (attributes + 1) * sizeof(*out_decoder->attributes),
      _Alignof(void*));
  return out_decoder->types && out_decoder->attributes ? NULL : PESTLE_OOM();
}

pestle_status_t pestle_bytecode_enter(decoder_t* d) {
  if (++d->depth <= PESTLE_BYTECODE_MAX_NESTING) return NULL;
  return PESTLE_ERROR(MALFORMED,
                      "the file is not whole MLIR bytecode: types or "
                      "attributes are nested more than %d deep",
                      PESTLE_BYTECODE_MAX_NESTING);
}

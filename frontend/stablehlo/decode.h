// SPDX-License-Identifier: Apache-2.0
// What the types, attributes and locations of an MLIR bytecode file mean. They
// lie in tables and refer to each other by index: each is decoded once, when it
// is first asked for. Encodings of the dialects builtin, vhlo and stablehlo are
// read, and MLIR's assembly text, which stands for what has no encoding.
#ifndef PESTLE_FRONTEND_STABLEHLO_DECODE_H_
#define PESTLE_FRONTEND_STABLEHLO_DECODE_H_

#include "base/arena.h"
#include "frontend/stablehlo/container.h"
#include "ir/generic.h"
#include "ir/graph.h"
#include "ir/quant.h"

// Types in types and attributes in attributes, at most.
#define PESTLE_BYTECODE_MAX_NESTING 64

// --- Types ---

typedef enum pestle_bytecode_type_kind_e {
  PESTLE_BYTECODE_TENSOR,
  PESTLE_BYTECODE_ELEMENT,  // f32, i64: of tensors and of numbers
  PESTLE_BYTECODE_FUNCTION,
  PESTLE_BYTECODE_TUPLE,  // a token is a tuple of nothing
  PESTLE_BYTECODE_OTHER,  // none that a value may have
} pestle_bytecode_type_kind_t;

typedef struct pestle_bytecode_type_t pestle_bytecode_type_t;
struct pestle_bytecode_type_t {
  uint8_t kind;  // pestle_bytecode_type_kind_t
  // Of an ELEMENT: numbers in attributes have |bits| bits.
  bool is_float, is_unsigned;
  uint16_t bits;
  // TENSOR; of an ELEMENT the dtype alone. Indices count as i64.
  pestle_type_t type;
  pestle_str_t text;  // of an ELEMENT or OTHER: its name; of a TENSOR of
                      // elements that Pestle has not: theirs
  const pestle_quant_t*
      quant;  // of quantised elements, whose storage |type| has
  // Parts of a TUPLE; inputs, then results of a FUNCTION.
  const pestle_bytecode_type_t** parts;
  uint32_t part_count, input_count;
  uint32_t leaves;  // tensors in it
  uint32_t size;    // types in it, of any kind
};

// --- The decoder ---

typedef struct pestle_bytecode_decoder_t {
  pestle_context_t* context;
  const pestle_bytecode_t* file;
  pestle_arena_t* arena;                 // of what is decoded
  const pestle_bytecode_type_t** types;  // an entry each; NULL: not read yet
  const pestle_generic_value_t** attributes;
  int depth;
  bool quantised;  // some type is
  // What a file asks for beyond its own size, where few bytes can name much: bytes
  // of attributes' texts, tensors of tuples.
  size_t text_size, tuple_size;
} pestle_bytecode_decoder_t;

PESTLE_NODISCARD pestle_status_t pestle_bytecode_decoder_init(
    pestle_context_t* context, const pestle_bytecode_t* file,
    pestle_arena_t* arena, pestle_bytecode_decoder_t* out_decoder);
// One level further in; MALFORMED where there are too many. A type or attribute
// that is within itself has no end of levels.
PESTLE_NODISCARD pestle_status_t
pestle_bytecode_enter(pestle_bytecode_decoder_t* d);
static inline void pestle_bytecode_leave(pestle_bytecode_decoder_t* d) {
  --d->depth;
}

// --- types.c ---

// Type |index| of the file.
PESTLE_NODISCARD pestle_status_t
pestle_bytecode_type(pestle_bytecode_decoder_t* d, uint32_t index,
                     const pestle_bytecode_type_t** out_type);
// The type whose index is at |r|.
PESTLE_NODISCARD pestle_status_t
pestle_bytecode_read_type(pestle_bytecode_decoder_t* d, pestle_reader_t* r,
                          const pestle_bytecode_type_t** out_type);
// UNSUPPORTED unless a value may have |type|.
PESTLE_NODISCARD pestle_status_t
pestle_bytecode_check_value_type(const pestle_bytecode_type_t* type);
// Accounts for a use of |type|: RESOURCE_EXHAUSTED when tuples have more than a
// million types in all.
PESTLE_NODISCARD pestle_status_t pestle_bytecode_use_type(
    pestle_bytecode_decoder_t* d, const pestle_bytecode_type_t* type);
// Appends the tensors of |type| to |out|, which has room for |type->leaves|.
void pestle_bytecode_type_leaves(const pestle_bytecode_type_t* type,
                                 pestle_type_t** out);
// The same of how their elements are quantised; NULL where they are not.
void pestle_bytecode_type_quants(const pestle_bytecode_type_t* type,
                                 const pestle_quant_t*** out);

// --- quantised.c ---

// One scale for all elements, or one for each along an axis: what is behind the
// type's code.
PESTLE_NODISCARD pestle_status_t
pestle_bytecode_read_quant(pestle_bytecode_decoder_t* d, pestle_reader_t* r,
                           bool along_axis, pestle_bytecode_type_t* out_type);

// --- attributes.c, elements.c ---

// Attribute |index| of the file; it belongs to |d|. A number's |text| is its
// type, a FUNCTION's |i64| the index of its type.
PESTLE_NODISCARD pestle_status_t
pestle_bytecode_attribute(pestle_bytecode_decoder_t* d, uint32_t index,
                          const pestle_generic_value_t** out_value);
// The attribute whose index is at |r|.
PESTLE_NODISCARD pestle_status_t
pestle_bytecode_read_attribute(pestle_bytecode_decoder_t* d, pestle_reader_t* r,
                               const pestle_generic_value_t** out_value);
// Bits of a number of |type|, as attributes have them.
PESTLE_NODISCARD pestle_status_t pestle_bytecode_read_number(
    pestle_reader_t* r, const pestle_bytecode_type_t* type, uint64_t* out);
// A tensor's constant data from its bytes. |packed|: i1 has eight a byte.
PESTLE_NODISCARD pestle_status_t
pestle_bytecode_elements(pestle_bytecode_decoder_t* d, const pestle_reader_t* r,
                         const pestle_bytecode_type_t* type, pestle_str_t bytes,
                         pestle_elements_t* out_elements);

// --- text.c ---

// How MLIR writes |value|: what dialects say is kept so. A text of more than a
// mebibyte, or 64 of all, are RESOURCE_EXHAUSTED.
PESTLE_NODISCARD pestle_status_t pestle_bytecode_attribute_text(
    pestle_bytecode_decoder_t* d, const pestle_generic_value_t* value,
    pestle_str_t* out_text);

// --- locations.c ---

// The outermost name and the first place in a file that attribute |index|, a
// location, has. Texts belong to the file.
PESTLE_NODISCARD pestle_status_t pestle_bytecode_location(
    pestle_bytecode_decoder_t* d, uint32_t index, pestle_loc_t* out_loc);

#endif  // PESTLE_FRONTEND_STABLEHLO_DECODE_H_

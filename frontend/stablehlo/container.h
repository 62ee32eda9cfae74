// SPDX-License-Identifier: Apache-2.0
// An MLIR bytecode file as it lies on disk: sections, strings, dialects, op
// names, and where each attribute, type and property begins. Versions 0 to 6 of
// the format. What the bytes of an attribute or type mean is for attribute.h
// and type.h to say; ops are read by operation.h.
#ifndef PESTLE_FRONTEND_STABLEHLO_CONTAINER_H_
#define PESTLE_FRONTEND_STABLEHLO_CONTAINER_H_

#include "base/arena.h"
#include "frontend/stablehlo/reader.h"

// The newest version of the container format that is read.
#define PESTLE_BYTECODE_MAX_FORMAT 6

typedef struct pestle_bytecode_dialect_t {
  pestle_str_t name;
  pestle_str_t version;  // its own encoding; empty where none is given
} pestle_bytecode_dialect_t;

typedef struct pestle_bytecode_op_name_t {
  uint32_t dialect;
  pestle_str_t name;  // without the dialect
} pestle_bytecode_op_name_t;

// Where an attribute or type lies.
typedef struct pestle_bytecode_entry_t {
  uint32_t dialect;
  bool is_text;        // MLIR's assembly, else the dialect's own encoding
  pestle_str_t bytes;  // of the text, without the terminator
} pestle_bytecode_entry_t;

// A blob that DenseResource attributes name.
typedef struct pestle_bytecode_resource_t {
  pestle_str_t key;
  pestle_str_t bytes;
} pestle_bytecode_resource_t;

// Texts and entries point into the file, arrays lie in the arena that
// pestle_bytecode_open() was given.
typedef struct pestle_bytecode_t {
  pestle_reader_t file;
  uint64_t format;
  pestle_str_t producer;
  const pestle_str_t* strings;
  size_t string_count;
  const pestle_bytecode_dialect_t* dialects;
  size_t dialect_count;
  const pestle_bytecode_op_name_t* ops;
  size_t op_count;
  const pestle_bytecode_entry_t* attributes;
  size_t attribute_count;
  const pestle_bytecode_entry_t* types;
  size_t type_count;
  const pestle_str_t* properties;
  size_t property_count;
  const pestle_bytecode_resource_t* resources;
  size_t resource_count;
  pestle_reader_t ir;  // of the section that holds the ops
} pestle_bytecode_t;

// Whether |size| bytes at |data| begin as MLIR bytecode does.
bool pestle_bytecode_is(const void* data, size_t size);
// Reads the tables of a file, which must outlive |out_file|. MALFORMED: damaged;
// UNSUPPORTED: a newer format.
PESTLE_NODISCARD pestle_status_t
pestle_bytecode_open(const void* data, size_t size, pestle_arena_t* arena,
                     pestle_bytecode_t* out_file);
// A section at |r|: its number and its bytes.
PESTLE_NODISCARD pestle_status_t pestle_bytecode_section(
    pestle_reader_t* r, uint8_t* out_id, pestle_reader_t* out_section);
// A string by its index at |r|.
PESTLE_NODISCARD pestle_status_t pestle_bytecode_string(
    const pestle_bytecode_t* file, pestle_reader_t* r, pestle_str_t* out);

#endif  // PESTLE_FRONTEND_STABLEHLO_CONTAINER_H_

// SPDX-License-Identifier: Apache-2.0
// A writer of MLIR bytecode for tests: tables that grow as they are asked for, and
// ops, regions and blocks as bytes that are put into one another.
//
//   bc_t b = {.format = 6};
//   uint32_t type = bc_tensor(&b, bc_element(&b, BC_F32), 1, (int64_t[]){4});
//   bc_op_t add = {.name = bc_name(&b, BC_VHLO, "add_v1"), .operands = {0, 0},
//                  .operand_count = 2, .types = {type}, .type_count = 1};
//   buf_t ops = {0};
//   bc_put_op(&b, &ops, &add);
#ifndef PESTLE_TESTS_UNIT_FRONTEND_BYTECODE_TEST_H_
#define PESTLE_TESTS_UNIT_FRONTEND_BYTECODE_TEST_H_

#include <stdlib.h>

#include "test.h"

// --- Bytes ---

typedef struct buf_t {
  uint8_t* data;
  size_t size;
} buf_t;

static inline void buf_raw(buf_t* b, const void* data, size_t size) {
  b->data = realloc(b->data, b->size + size + 1);
  if (size) memcpy(b->data + b->size, data, size);
  b->size += size;
}

static inline void buf_byte(buf_t* b, unsigned byte) {
  uint8_t one = (uint8_t)byte;
  buf_raw(b, &one, 1);
}

static inline void buf_varint(buf_t* b, uint64_t value) {
  unsigned extra = 0;
  while (extra < 8 && value >> (7 * (extra + 1)))
    ++extra;
  if (extra == 8) buf_byte(b, 0);
  uint64_t bits = extra == 8 ? value : (value << 1 | 1) << extra;
  for (unsigned i = 0; i < (extra == 8 ? 8 : extra + 1); ++i)
    buf_byte(b, bits >> (8 * i) & 255);
}

static inline void buf_signed(buf_t* b, int64_t value) {
  uint64_t sign = value < 0 ? UINT64_MAX : 0;
  buf_varint(b, ((uint64_t)value << 1) ^ sign);
}

// |part|, which is freed.
static inline void buf_take(buf_t* b, buf_t* part) {
  buf_raw(b, part->data, part->size);
  free(part->data);
  *part = (buf_t){0};
}

static inline void buf_section(buf_t* b, unsigned id, buf_t* content) {
  buf_byte(b, id);
  buf_varint(b, content->size);
  buf_take(b, content);
}

// --- Tables ---

enum {
  BC_BUILTIN,
  BC_VHLO,
  BC_STABLEHLO,
  BC_SDY,
  BC_CHLO,
  BC_QUANT,
  BC_OTHER,
  BC_DIALECTS
};
enum { BC_MAX = 256 };
// Elements' codes in vhlo.
enum { BC_I1 = 0, BC_F32 = 4, BC_INDEX = 9, BC_I32 = 13, BC_I64 = 14 };

typedef struct bc_entry_t {
  uint32_t dialect;
  buf_t bytes;
  bool is_text;
} bc_entry_t;

typedef struct bc_t {
  unsigned format;
  const char* producer;
  const char* strings[BC_MAX];
  size_t string_count;
  struct {
    uint32_t dialect, name;
  } names[BC_MAX];
  size_t name_count;
  bc_entry_t attributes[BC_MAX], types[BC_MAX];
  size_t attribute_count, type_count;
  buf_t properties[BC_MAX];
  size_t property_count;
  uint32_t unknown;  // location + 1
} bc_t;

static inline uint32_t bc_string(bc_t* b, const char* text) {
  for (size_t i = 0; i < b->string_count; ++i) {
    if (!strcmp(b->strings[i], text)) return (uint32_t)i;
  }
  b->strings[b->string_count] = text;
  return (uint32_t)b->string_count++;
}

static inline uint32_t bc_name(bc_t* b, uint32_t dialect, const char* op) {
  b->names[b->name_count].dialect = dialect;
  b->names[b->name_count].name = bc_string(b, op);
  return (uint32_t)b->name_count++;
}

// An attribute or type whose encoding is |count| varints.
static inline uint32_t bc_attribute(bc_t* b, uint32_t dialect,
                                    const uint64_t* numbers, size_t count) {
  bc_entry_t* e = &b->attributes[b->attribute_count];
  e->dialect = dialect;
  for (size_t i = 0; i < count; ++i)
    buf_varint(&e->bytes, numbers[i]);
  return (uint32_t)b->attribute_count++;
}
#define BC_ATTRIBUTE(b, dialect, ...)                     \
  bc_attribute((b), (dialect), (uint64_t[]){__VA_ARGS__}, \
               sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static inline uint32_t bc_type(bc_t* b, uint32_t dialect,
                               const uint64_t* numbers, size_t count) {
  bc_entry_t* e = &b->types[b->type_count];
  e->dialect = dialect;
  for (size_t i = 0; i < count; ++i)
    buf_varint(&e->bytes, numbers[i]);
  return (uint32_t)b->type_count++;
}
#define BC_TYPE(b, dialect, ...)                     \
  bc_type((b), (dialect), (uint64_t[]){__VA_ARGS__}, \
          sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static inline uint32_t bc_element(bc_t* b, unsigned code) {
  return BC_TYPE(b, BC_VHLO, code);
}
static inline uint32_t bc_tensor(bc_t* b, uint32_t element, size_t rank,
                                 const int64_t* dims) {
  buf_t* bytes = &b->types[b->type_count].bytes;
  b->types[b->type_count].dialect = BC_VHLO;
  buf_varint(bytes, 20);
  buf_varint(bytes, rank);
  for (size_t i = 0; i < rank; ++i)
    buf_signed(bytes, dims[i]);
  buf_varint(bytes, element);
  return (uint32_t)b->type_count++;
}
static inline uint32_t bc_function(bc_t* b, uint32_t input, uint32_t result) {
  return BC_TYPE(b, BC_VHLO, 8, 1, input, 1, result);
}

static inline uint32_t bc_text(bc_t* b, const char* text) {
  return BC_ATTRIBUTE(b, BC_VHLO, 14, bc_string(b, text));
}
// "file":3:4
static inline uint32_t bc_file(bc_t* b, const char* file, unsigned line,
                               unsigned column) {
  uint32_t name = BC_ATTRIBUTE(b, BC_BUILTIN, 2, bc_string(b, file));
  return BC_ATTRIBUTE(b, BC_BUILTIN, 11, name, line, column);
}
static inline uint32_t bc_unknown(bc_t* b) {
  if (!b->unknown) b->unknown = BC_ATTRIBUTE(b, BC_BUILTIN, 15) + 1;
  return b->unknown - 1;
}

// Properties that are the |count| attributes.
static inline uint32_t bc_properties(bc_t* b, const uint32_t* attributes,
                                     size_t count) {
  buf_t* p = &b->properties[b->property_count];
  for (size_t i = 0; i < count; ++i)
    buf_varint(p, attributes[i]);
  return (uint32_t)b->property_count++;
}

// --- Ops ---

typedef struct bc_op_t {
  uint32_t name, location;          // |location| + 1; 0: unknown
  uint32_t attributes, properties;  // + 1; 0: none
  uint32_t types[4], operands[4];
  size_t type_count, operand_count;
  buf_t regions[3];  // each freed by bc_put_op
  size_t region_count;
  bool isolated;
} bc_op_t;

static inline void bc_put_op(bc_t* b, buf_t* out, bc_op_t* op) {
  buf_varint(out, op->name);
  buf_byte(out, (op->attributes ? 1u : 0) | (op->type_count ? 2u : 0) |
                    (op->operand_count ? 4u : 0) |
                    (op->region_count ? 0x10u : 0) |
                    (op->properties ? 0x40u : 0));
  buf_varint(out, op->location ? op->location - 1 : bc_unknown(b));
  if (op->attributes) buf_varint(out, op->attributes - 1);
  if (op->properties) buf_varint(out, op->properties - 1);
  if (op->type_count) buf_varint(out, op->type_count);
  for (size_t i = 0; i < op->type_count; ++i)
    buf_varint(out, op->types[i]);
  if (op->operand_count) buf_varint(out, op->operand_count);
  for (size_t i = 0; i < op->operand_count; ++i)
    buf_varint(out, op->operands[i]);
  if (!op->region_count) return;
  buf_varint(out, op->region_count << 1 | op->isolated);
  buf_t regions = {0};
  for (size_t i = 0; i < op->region_count; ++i)
    buf_take(&regions, &op->regions[i]);
  if (op->isolated)
    buf_section(out, 4, &regions);
  else
    buf_take(out, &regions);
}

// A region of one block with |values| in all and |op_count| |ops|, which are
// taken.
static inline buf_t bc_region(size_t values, const uint32_t* arguments,
                              size_t argument_count, size_t op_count,
                              buf_t* ops) {
  buf_t r = {0};
  buf_varint(&r, 1);
  buf_varint(&r, values);
  buf_varint(&r, op_count << 1 | (argument_count != 0));
  if (argument_count) {
    buf_varint(&r, argument_count);
    for (size_t i = 0; i < argument_count; ++i)
      buf_varint(&r, (uint64_t)arguments[i] << 1);
    buf_byte(&r, 0);  // no use lists
  }
  buf_take(&r, ops);
  return r;
}

// Puts the function |name|(|type|) -> |type| with the body |ops|, which has |values|
// values with the argument.
static inline void bc_put_function(bc_t* b, buf_t* out, const char* name,
                                   uint32_t type, size_t values,
                                   size_t op_count, buf_t* ops) {
  uint32_t none = BC_ATTRIBUTE(b, BC_VHLO, 1, 0);
  uint32_t attributes[5] = {
      none, BC_ATTRIBUTE(b, BC_VHLO, 17, bc_function(b, type, type)), none,
      bc_text(b, name), bc_text(b, "public")};
  bc_op_t func = {.name = bc_name(b, BC_VHLO, "func_v1"),
                  .properties = bc_properties(b, attributes, 5) + 1,
                  .region_count = 1,
                  .isolated = true};
  func.regions[0] = bc_region(values, &type, 1, op_count, ops);
  bc_put_op(b, out, &func);
}

// The section of ops: a module of |count| |functions|, which are taken.
static inline buf_t bc_module(bc_t* b, size_t count, buf_t* functions) {
  buf_t top = {0};
  bc_op_t module = {.name = bc_name(b, BC_BUILTIN, "module"),
                    .region_count = 1,
                    .isolated = true};
  module.regions[0] = bc_region(0, NULL, 0, count, functions);
  buf_varint(&top, 1 << 1);
  bc_put_op(b, &top, &module);
  return top;
}

// The same of one function, main.
static inline buf_t bc_main(bc_t* b, uint32_t type, size_t values,
                            size_t op_count, buf_t* ops) {
  buf_t functions = {0};
  bc_put_function(b, &functions, "main", type, values, op_count, ops);
  return bc_module(b, 1, &functions);
}

// --- The file ---

static inline void bc_put_entries(buf_t* offsets, buf_t* data,
                                  bc_entry_t* entries, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    buf_varint(offsets, entries[i].dialect);
    buf_varint(offsets, 1);
    buf_varint(offsets, entries[i].bytes.size << 1 | !entries[i].is_text);
    buf_take(data, &entries[i].bytes);
  }
}

static inline void bc_put_strings(bc_t* b, buf_t* out) {
  buf_varint(out, b->string_count);
  for (size_t i = b->string_count; i-- > 0;)
    buf_varint(out, strlen(b->strings[i]) + 1);
  for (size_t i = 0; i < b->string_count; ++i)
    buf_raw(out, b->strings[i], strlen(b->strings[i]) + 1);
}

// The whole file with |ir|, the section of ops; the tables are freed.
static inline buf_t bc_file_of(bc_t* b, buf_t* ir) {
  static const char* const dialects[] = {"builtin", "vhlo",  "stablehlo", "sdy",
                                         "chlo",    "quant", "my"};
  buf_t out = {0}, strings = {0}, names = {0}, offsets = {0}, data = {0};
  buf_t properties = {0};
  buf_varint(&names, BC_DIALECTS);
  for (size_t i = 0; i < BC_DIALECTS; ++i)
    buf_varint(&names, (uint64_t)bc_string(b, dialects[i]) << 1);
  buf_varint(&names, b->name_count);
  for (size_t i = 0; i < b->name_count; ++i) {
    buf_varint(&names, b->names[i].dialect);
    buf_varint(&names, 1);
    buf_varint(&names, (uint64_t)b->names[i].name << 1 | 1);
  }
  buf_varint(&offsets, b->attribute_count);
  buf_varint(&offsets, b->type_count);
  bc_put_entries(&offsets, &data, b->attributes, b->attribute_count);
  bc_put_entries(&offsets, &data, b->types, b->type_count);
  buf_varint(&properties, b->property_count);
  for (size_t i = 0; i < b->property_count; ++i) {
    buf_varint(&properties, b->properties[i].size);
    buf_take(&properties, &b->properties[i]);
  }
  bc_put_strings(b, &strings);
  const char* producer = b->producer ? b->producer : "StableHLO_v1.20.0";
  buf_raw(&out, "ML\xefR", 4);
  buf_varint(&out, b->format);
  buf_raw(&out, producer, strlen(producer) + 1);
  buf_section(&out, 0, &strings);
  buf_section(&out, 1, &names);
  buf_section(&out, 2, &data);
  buf_section(&out, 3, &offsets);
  buf_section(&out, 4, ir);
  buf_section(&out, 8, &properties);
  return out;
}

#endif  // PESTLE_TESTS_UNIT_FRONTEND_BYTECODE_TEST_H_

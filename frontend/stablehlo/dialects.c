// SPDX-License-Identifier: Apache-2.0
// Attributes of the dialects stablehlo and chlo, as bytecode without versions has
// them.
#include <string.h>

#include "base/mem.h"
#include "frontend/stablehlo/attributes.h"

typedef pestle_bytecode_decoder_t decoder_t;
typedef pestle_generic_value_t value_t;
typedef pestle_generic_entry_t entry_t;

enum {
  CHANNEL_HANDLE = 1,
  CONVOLUTION = 4,
  DOT = 5,
  GATHER = 7,
  SCATTER = 11,
  ALIAS = 14,
  ALGORITHM = 15,
  MESH_GROUPS = 18,
  SUB_AXIS = 19,
  AXIS_REF = 20,
  MESH_AXIS = 21,
  MESH = 22,
};

// The code that vhlo has for the enumeration of a code here.
static const uint8_t stablehlo_words[] = {
    [2] = 3,  [3] = 4,   [6] = 7,   [8] = 11,
    [9] = 12, [10] = 13, [12] = 16, [16] = 19};
static const uint8_t chlo_words[] = {[0] = 3, [1] = 4};

// --- Dictionaries ---

typedef struct fields_t {
  decoder_t* d;
  pestle_reader_t* r;
  value_t* dict;
  entry_t** tail;
} fields_t;

static fields_t begin(decoder_t* d, pestle_reader_t* r, value_t* out) {
  out->kind = PESTLE_GENERIC_DICT;
  return (fields_t){d, r, out, &out->entries};
}

static pestle_status_t add(fields_t* f, const char* key, const value_t* value) {
  return pestle_bytecode_add_entry(f->d, pestle_str(key), value, f->dict,
                                   &f->tail);
}

static pestle_status_t read_number(fields_t* f, const char* key) {
  value_t number = {.kind = PESTLE_GENERIC_INT};
  PESTLE_TRY(pestle_reader_signed(f->r, &number.i64));
  return add(f, key, &number);
}

static pestle_status_t read_numbers(fields_t* f, const char* key) {
  value_t list = {.kind = PESTLE_GENERIC_LIST};
  entry_t** tail = &list.entries;
  size_t count;
  PESTLE_TRY(pestle_reader_count(f->r, &count));
  for (size_t i = 0; i < count; ++i) {
    value_t number = {.kind = PESTLE_GENERIC_INT};
    PESTLE_TRY(pestle_reader_signed(f->r, &number.i64));
    PESTLE_TRY(pestle_bytecode_add_entry(f->d, pestle_str_make(NULL, 0),
                                         &number, &list, &tail));
  }
  return add(f, key, &list);
}

// |lists|, then |number|, which may be NULL.
static pestle_status_t read_fields(decoder_t* d, pestle_reader_t* r,
                                   const char* const* lists, size_t count,
                                   const char* number, value_t* out) {
  fields_t f = begin(d, r, out);
  for (size_t i = 0; i < count; ++i) {
    PESTLE_TRY(read_numbers(&f, lists[i]));
  }
  return number ? read_number(&f, number) : NULL;
}

static pestle_status_t read_dot(decoder_t* d, pestle_reader_t* r,
                                value_t* out) {
  static const char* const lists[] = {
      "lhs_batching_dimensions", "rhs_batching_dimensions",
      "lhs_contracting_dimensions", "rhs_contracting_dimensions"};
  return read_fields(d, r, lists, 4, NULL, out);
}

static pestle_status_t read_gather(decoder_t* d, pestle_reader_t* r,
                                   value_t* out) {
  static const char* const lists[] = {
      "offset_dims", "collapsed_slice_dims", "operand_batching_dims",
      "start_indices_batching_dims", "start_index_map"};
  return read_fields(d, r, lists, 5, "index_vector_dim", out);
}

static pestle_status_t read_scatter(decoder_t* d, pestle_reader_t* r,
                                    value_t* out) {
  static const char* const lists[] = {
      "update_window_dims", "inserted_window_dims", "input_batching_dims",
      "scatter_indices_batching_dims", "scatter_dims_to_operand_dims"};
  return read_fields(d, r, lists, 5, "index_vector_dim", out);
}

pestle_status_t pestle_bytecode_read_alias(decoder_t* d, pestle_reader_t* r,
                                           value_t* out) {
  fields_t f = begin(d, r, out);
  PESTLE_TRY(read_numbers(&f, "output_tuple_indices"));
  PESTLE_TRY(read_number(&f, "operand_index"));
  return read_numbers(&f, "operand_tuple_indices");
}

// --- Groups as the axes of a mesh, in both dialects ---

static pestle_status_t read_attribute(fields_t* f, const char* key) {
  const value_t* value;
  PESTLE_TRY(pestle_bytecode_read_attribute(f->d, f->r, &value));
  return add(f, key, value);
}

// stablehlo has the number of a string where vhlo has that of an attribute.
static pestle_status_t read_name(fields_t* f, bool is_vhlo) {
  if (is_vhlo) return read_attribute(f, "name");
  value_t name = {.kind = PESTLE_GENERIC_STRING};
  PESTLE_TRY(pestle_bytecode_string(f->d->file, f->r, &name.text));
  return add(f, "name", &name);
}

static pestle_status_t read_axis_ref(fields_t* f, bool is_vhlo) {
  uint64_t there;
  uint8_t byte;
  PESTLE_TRY(read_name(f, is_vhlo));
  if (is_vhlo) {
    PESTLE_TRY(pestle_reader_varint(f->r, &there));
  } else {
    PESTLE_TRY(pestle_reader_byte(f->r, &byte));
    there = byte;
  }
  return there ? read_attribute(f, "sub_axis_info") : NULL;
}

static pestle_status_t read_groups(fields_t* f, bool is_vhlo) {
  PESTLE_TRY(read_attribute(f, "mesh"));
  if (is_vhlo) return read_attribute(f, "axes");
  value_t list = {.kind = PESTLE_GENERIC_LIST};
  PESTLE_TRY(pestle_bytecode_read_list(f->d, f->r, &list));
  return add(f, "axes", &list);
}

static pestle_status_t read_mesh(fields_t* f, bool is_vhlo) {
  const value_t* ids;
  uint8_t byte;
  PESTLE_TRY(read_attribute(f, "axes"));
  if (!is_vhlo) {
    PESTLE_TRY(pestle_reader_byte(f->r, &byte));
    return byte ? read_attribute(f, "device_ids") : NULL;
  }
  PESTLE_TRY(pestle_bytecode_read_optional(f->d, f->r, &ids));
  return ids ? add(f, "device_ids", ids) : NULL;
}

pestle_status_t pestle_bytecode_read_mesh_part(decoder_t* d, pestle_reader_t* r,
                                               pestle_mesh_part_t part,
                                               bool is_vhlo, value_t* out) {
  fields_t f = begin(d, r, out);
  switch (part) {
    case PESTLE_MESH_GROUPS:
      return read_groups(&f, is_vhlo);
    case PESTLE_MESH_SUB_AXIS:
      PESTLE_TRY(read_number(&f, "pre_size"));
      return read_number(&f, "size");
    case PESTLE_MESH_AXIS_REF:
      return read_axis_ref(&f, is_vhlo);
    case PESTLE_MESH_AXIS:
      PESTLE_TRY(read_name(&f, is_vhlo));
      return read_number(&f, "size");
    case PESTLE_MESH:
      return read_mesh(&f, is_vhlo);
  }
  return NULL;
}

static pestle_status_t read_channel(decoder_t* d, pestle_reader_t* r,
                                    value_t* out) {
  fields_t f = begin(d, r, out);
  PESTLE_TRY(read_number(&f, "handle"));
  return read_number(&f, "type");
}

static pestle_status_t read_algorithm(decoder_t* d, pestle_reader_t* r,
                                      value_t* out) {
  static const char* const types[] = {
      "lhs_precision_type", "rhs_precision_type", "accumulation_type"};
  fields_t f = begin(d, r, out);
  for (size_t i = 0; i < 3; ++i) {
    const pestle_bytecode_type_t* type;
    PESTLE_TRY(pestle_bytecode_read_type(d, r, &type));
    value_t value = {.kind = PESTLE_GENERIC_OPAQUE, .text = type->text};
    PESTLE_TRY(add(&f, types[i], &value));
  }
  PESTLE_TRY(read_number(&f, "lhs_component_count"));
  PESTLE_TRY(read_number(&f, "rhs_component_count"));
  PESTLE_TRY(read_number(&f, "num_primitive_operations"));
  value_t allow = {.kind = PESTLE_GENERIC_BOOL};
  uint8_t byte;
  PESTLE_TRY(pestle_reader_byte(r, &byte));
  allow.b = byte != 0;
  return add(&f, "allow_imprecise_accumulation", &allow);
}

// --- Convolutions ---

static pestle_status_t read_side(pestle_reader_t* r,
                                 pestle_generic_conv_t* conv, size_t side) {
  size_t count;
  PESTLE_TRY(pestle_reader_signed(r, &conv->side[side].first));
  PESTLE_TRY(pestle_reader_signed(r, &conv->side[side].second));
  PESTLE_TRY(pestle_reader_count(r, &count));
  if (count > PESTLE_MAX_RANK) {
    return pestle_reader_damaged(r, "a convolution of too many dimensions");
  }
  for (size_t i = 0; i < count; ++i) {
    PESTLE_TRY(pestle_reader_signed(r, &conv->side[side].space[i]));
  }
  conv->side[side].count = count;
  return NULL;
}

static pestle_status_t read_convolution(decoder_t* d, pestle_reader_t* r,
                                        value_t* out) {
  pestle_generic_conv_t* conv =
      PESTLE_ARENA_NEW(d->arena, pestle_generic_conv_t);
  if (!conv) return PESTLE_OOM();
  for (size_t side = 0; side < 3; ++side) {
    PESTLE_TRY(read_side(r, conv, side));
  }
  out->kind = PESTLE_GENERIC_CONV;
  out->conv = conv;
  return NULL;
}

// --- By code ---

pestle_status_t pestle_bytecode_read_chlo(pestle_reader_t* r, value_t* out) {
  uint64_t code;
  PESTLE_TRY(pestle_reader_varint(r, &code));
  return code < sizeof(chlo_words)
             ? pestle_bytecode_read_vhlo_word(chlo_words[code], r, out)
             : pestle_bytecode_read_opaque(r, out);
}

static pestle_status_t read_mesh_part(decoder_t* d, pestle_reader_t* r,
                                      pestle_mesh_part_t part, value_t* out) {
  return pestle_bytecode_read_mesh_part(d, r, part, false, out);
}

pestle_status_t pestle_bytecode_read_stablehlo(decoder_t* d, pestle_reader_t* r,
                                               value_t* out) {
  uint64_t code;
  PESTLE_TRY(pestle_reader_varint(r, &code));
  if (code < sizeof(stablehlo_words) && stablehlo_words[code]) {
    return pestle_bytecode_read_vhlo_word(stablehlo_words[code], r, out);
  }
  switch (code) {
    case CHANNEL_HANDLE:
      return read_channel(d, r, out);
    case CONVOLUTION:
      return read_convolution(d, r, out);
    case DOT:
      return read_dot(d, r, out);
    case GATHER:
      return read_gather(d, r, out);
    case SCATTER:
      return read_scatter(d, r, out);
    case ALIAS:
      return pestle_bytecode_read_alias(d, r, out);
    case ALGORITHM:
      return read_algorithm(d, r, out);
    case MESH_GROUPS:
      return read_mesh_part(d, r, PESTLE_MESH_GROUPS, out);
    case SUB_AXIS:
      return read_mesh_part(d, r, PESTLE_MESH_SUB_AXIS, out);
    case AXIS_REF:
      return read_mesh_part(d, r, PESTLE_MESH_AXIS_REF, out);
    case MESH_AXIS:
      return read_mesh_part(d, r, PESTLE_MESH_AXIS, out);
    case MESH:
      return read_mesh_part(d, r, PESTLE_MESH, out);
    default:
      return pestle_bytecode_read_opaque(r, out);
  }
}

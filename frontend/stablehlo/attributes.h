// SPDX-License-Identifier: Apache-2.0
// What the readers of several dialects' attributes share.
#ifndef PESTLE_FRONTEND_STABLEHLO_ATTRIBUTES_H_
#define PESTLE_FRONTEND_STABLEHLO_ATTRIBUTES_H_

#include "frontend/stablehlo/decode.h"

// Adds an entry to |owner|, a LIST or DICT, whose last one is before |*tail|.
PESTLE_NODISCARD pestle_status_t pestle_bytecode_add_entry(
    pestle_bytecode_decoder_t* d, pestle_str_t key,
    const pestle_generic_value_t* value, pestle_generic_value_t* owner,
    pestle_generic_entry_t*** tail);
// An attribute that may be missing: a flag, and its number; NULL where it is.
PESTLE_NODISCARD pestle_status_t
pestle_bytecode_read_optional(pestle_bytecode_decoder_t* d, pestle_reader_t* r,
                              const pestle_generic_value_t** out_value);
// A count and as many attributes.
PESTLE_NODISCARD pestle_status_t
pestle_bytecode_read_list(pestle_bytecode_decoder_t* d, pestle_reader_t* r,
                          pestle_generic_value_t* out_value);
// A case of the enumeration that has |code| in vhlo; it must be one of those that
// dialects share.
PESTLE_NODISCARD pestle_status_t pestle_bytecode_read_vhlo_word(
    uint64_t code, pestle_reader_t* r, pestle_generic_value_t* out_value);
// What no op here needs: the rest of |r| is read over.
PESTLE_NODISCARD pestle_status_t pestle_bytecode_read_opaque(
    pestle_reader_t* r, pestle_generic_value_t* out_value);

// --- dialects.c ---

PESTLE_NODISCARD pestle_status_t
pestle_bytecode_read_stablehlo(pestle_bytecode_decoder_t* d, pestle_reader_t* r,
                               pestle_generic_value_t* out_value);
// An alias of a result and an operand, in both dialects.
PESTLE_NODISCARD pestle_status_t
pestle_bytecode_read_alias(pestle_bytecode_decoder_t* d, pestle_reader_t* r,
                           pestle_generic_value_t* out_value);
// Parts of replica_groups as the axes of a mesh: a DICT each, with the names that the
// text has (ir/mesh_axes.h reads them). vhlo and stablehlo write them each in its way.
typedef enum pestle_mesh_part_e {
  PESTLE_MESH_GROUPS,
  PESTLE_MESH_SUB_AXIS,
  PESTLE_MESH_AXIS_REF,
  PESTLE_MESH_AXIS,
  PESTLE_MESH,
} pestle_mesh_part_t;
PESTLE_NODISCARD pestle_status_t pestle_bytecode_read_mesh_part(
    pestle_bytecode_decoder_t* d, pestle_reader_t* r, pestle_mesh_part_t part,
    bool is_vhlo, pestle_generic_value_t* out_value);
PESTLE_NODISCARD pestle_status_t pestle_bytecode_read_chlo(
    pestle_reader_t* r, pestle_generic_value_t* out_value);

// --- sdy_attributes.c ---

PESTLE_NODISCARD pestle_status_t
pestle_bytecode_read_sdy(pestle_bytecode_decoder_t* d, pestle_reader_t* r,
                         pestle_generic_value_t* out_value);

#endif  // PESTLE_FRONTEND_STABLEHLO_ATTRIBUTES_H_

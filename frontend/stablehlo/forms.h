// SPDX-License-Identifier: Apache-2.0
// What the ops of a file are called today and which attributes their properties
// are: the tables vhlo.def and stablehlo.def, and what changed since a form.
#ifndef PESTLE_FRONTEND_STABLEHLO_FORMS_H_
#define PESTLE_FRONTEND_STABLEHLO_FORMS_H_

#include "frontend/stablehlo/decode.h"
#include "frontend/stablehlo/operation.h"

typedef struct pestle_bytecode_form_t {
  const char* op;          // "vhlo.add_v1"
  const char* name;        // "stablehlo.add"
  const char* attributes;  // in the order of the properties, with spaces
                           // between; "?" before what may be missing, "&"
                           // before lists of numbers
} pestle_bytecode_form_t;

// The first of the forms that |dialect|.|op| has, or NULL; those of one op are
// neighbours, the newest first, and differ in how many attributes they have.
const pestle_bytecode_form_t* pestle_bytecode_find_form(pestle_str_t dialect,
                                                        pestle_str_t op);

// The attributes of an op of |form| (or NULL) as one dictionary in |arena|: its
// |properties| and |attributes|, indices of the file or PESTLE_BYTECODE_NONE,
// as StableHLO has them today.
PESTLE_NODISCARD pestle_status_t pestle_bytecode_op_attributes(
    pestle_bytecode_decoder_t* d, pestle_arena_t* arena,
    const pestle_bytecode_form_t* form, uint32_t properties,
    uint32_t attributes, pestle_generic_value_t* out_dict);

// Turns the attributes that vhlo has in the place of others into those: a channel
// of two numbers, an algorithm of seven, what is given as nothing. In |arena|.
PESTLE_NODISCARD pestle_status_t pestle_bytecode_upgrade(
    pestle_bytecode_decoder_t* d, pestle_arena_t* arena,
    const pestle_bytecode_form_t* form, pestle_generic_value_t* dict);

#endif  // PESTLE_FRONTEND_STABLEHLO_FORMS_H_

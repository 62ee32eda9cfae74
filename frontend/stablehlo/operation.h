// SPDX-License-Identifier: Apache-2.0
// The ops of an MLIR bytecode file as a tree, before anybody asks what they mean.
// Names, types, attributes and properties are indices into the file's tables.
//
// Values are numbered within each isolated scope: a region's own numbers lie
// behind all those of the region around it, arguments first, then results in
// the order of the ops. An op that is isolated from above begins anew at 0.
#ifndef PESTLE_FRONTEND_STABLEHLO_OPERATION_H_
#define PESTLE_FRONTEND_STABLEHLO_OPERATION_H_

#include "frontend/stablehlo/container.h"

// Regions inside each other, at most.
#define PESTLE_BYTECODE_MAX_DEPTH 100
// No attribute dictionary, no properties.
#define PESTLE_BYTECODE_NONE UINT32_MAX

typedef struct pestle_bytecode_region_t pestle_bytecode_region_t;

typedef struct pestle_bytecode_op_t pestle_bytecode_op_t;
struct pestle_bytecode_op_t {
  uint32_t name;        // in the file's ops
  uint32_t location;    // in its attributes
  uint32_t attributes;  // a dictionary in its attributes, or NONE
  uint32_t properties;  // in its properties, or NONE
  uint32_t first_result;
  uint32_t result_count, operand_count, region_count;
  const uint32_t* result_types;
  const uint32_t* operands;           // values
  pestle_bytecode_region_t* regions;  // the first of them
  bool isolated;
  pestle_bytecode_op_t* next;  // in the block
};

// A region of one block, or of none: a function without a body.
struct pestle_bytecode_region_t {
  bool is_empty;
  uint32_t first_argument, argument_count;
  const uint32_t* argument_types;
  pestle_bytecode_op_t* ops;       // the first of them
  uint32_t value_end;              // its values and those around it are below
  pestle_bytecode_region_t* next;  // of the op
};

// Reads all ops of |file| into |arena|. MALFORMED for damaged bytes; UNSUPPORTED
// for branches and regions of several blocks, which StableHLO has not.
PESTLE_NODISCARD pestle_status_t
pestle_bytecode_read_ops(const pestle_bytecode_t* file, pestle_arena_t* arena,
                         pestle_bytecode_region_t* out_top);

#endif  // PESTLE_FRONTEND_STABLEHLO_OPERATION_H_

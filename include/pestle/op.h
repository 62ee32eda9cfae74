// SPDX-License-Identifier: Apache-2.0
// What scalar.def and ops.def say, as enums and tables.
#ifndef PESTLE_OP_H_
#define PESTLE_OP_H_

#include <stdbool.h>
#include <stdint.h>

#include "pestle/export.h"
#include "pestle/types.h"

PESTLE_EXTERN_C_BEGIN

// Every op of the graph IR: the scalar rows first, then the structured rows.
typedef enum pestle_op_e {
#define PESTLE_SCALAR(NAME, ...) PESTLE_OP_##NAME,
#include "pestle/scalar.def"
  PESTLE_SCALAR_COUNT,
  PESTLE_OP_FIRST_STRUCTURED_ = PESTLE_SCALAR_COUNT - 1,
#define PESTLE_OP_BEGIN(NAME, ...) PESTLE_OP_##NAME,
#include "pestle/ops.def"
  PESTLE_OP_COUNT
} pestle_op_t;

typedef enum pestle_rule_e {
  PESTLE_RULE_SAME,
  PESTLE_RULE_COMPARE,
  PESTLE_RULE_TEST,
  PESTLE_RULE_SELECT,
  PESTLE_RULE_CLAMP,
  PESTLE_RULE_INFER,  // structured: results follow from operands and attributes
  PESTLE_RULE_TYPED,  // structured: the caller states the result type
  PESTLE_RULE_TYPES,  // structured: the caller states all result types
} pestle_rule_t;

typedef enum pestle_fuse_class_e {
  PESTLE_FUSE_SOURCE,
  PESTLE_FUSE_ELEMENTWISE,
  PESTLE_FUSE_VIEW,
  PESTLE_FUSE_GATHER,
  PESTLE_FUSE_REDUCTION,
  PESTLE_FUSE_WINDOW,
  PESTLE_FUSE_CONTRACTION,
  PESTLE_FUSE_COMPOSITE,
  PESTLE_FUSE_CONTROL,
  PESTLE_FUSE_FUSION,
  PESTLE_FUSE_DIRECT,
  PESTLE_FUSE_COLLECTIVE,
} pestle_fuse_class_t;

typedef enum pestle_op_flag_e {
  PESTLE_OP_FLAG_COMM = 1,
  PESTLE_OP_FLAG_ASSOC = 2,
  PESTLE_OP_FLAG_IDEM = 4,
  PESTLE_OP_FLAG_TRANS = 8,
  PESTLE_OP_FLAG_TERMINATOR = 16,
  PESTLE_OP_FLAG_EFFECT = 32,
  PESTLE_OP_FLAG_UPDATES = 64,
  PESTLE_OP_FLAG_SPLITS = 128,
} pestle_op_flag_t;

// Stands for "any number" in operand, region and result counts.
#define PESTLE_VARIADIC 0xff

// Frozen.
typedef struct pestle_op_info_t {
  const char* name;                    // "dot_general"
  const char* mlir;                    // "stablehlo.dot_general"
  uint8_t operands, regions, results;  // or PESTLE_VARIADIC
  uint8_t rule;                        // pestle_rule_t
  uint8_t fuse;                        // pestle_fuse_class_t
  uint8_t kinds;   // dtype kinds of a scalar row; 0 for structured rows
  uint16_t flags;  // pestle_op_flag_t
} pestle_op_info_t;

// What the tables say about |op|; NULL when it is out of range. Static.
PESTLE_API const pestle_op_info_t* pestle_op_info(pestle_op_t op);

// Whether |op| is a row of scalar.def.
static inline bool pestle_op_is_scalar(pestle_op_t op) {
  return (unsigned)op < PESTLE_SCALAR_COUNT;
}

// Names of attributes: one enumerator for each name that any op uses.
// clang-format off
#define PESTLE_ATTR_NAMES(X)                                                   \
  X(value) X(iota_dimension) X(broadcast_dimensions) X(permutation)            \
  X(start_indices) X(limit_indices) X(strides) X(dimensions) X(dimension)      \
  X(edge_padding_low) X(edge_padding_high) X(interior_padding) X(slice_sizes)  \
  X(offset_dims) X(collapsed_slice_dims) X(operand_batching_dims)              \
  X(start_indices_batching_dims) X(start_index_map) X(index_vector_dim)        \
  X(indices_are_sorted) X(window_dimensions) X(window_strides)                 \
  X(base_dilations) X(window_dilations) X(padding) X(lhs_batching_dimensions)  \
  X(rhs_batching_dimensions) X(lhs_contracting_dimensions)                     \
  X(rhs_contracting_dimensions) X(lhs_dilation) X(rhs_dilation)                \
  X(window_reversal) X(input_batch_dimension) X(input_feature_dimension)       \
  X(input_spatial_dimensions) X(kernel_input_feature_dimension)                \
  X(kernel_output_feature_dimension) X(kernel_spatial_dimensions)              \
  X(output_batch_dimension) X(output_feature_dimension)                        \
  X(output_spatial_dimensions) X(feature_group_count) X(batch_group_count)     \
  X(callee) X(label) X(epsilon) X(approximate) X(alpha) X(beta) X(axis) X(scale) \
  X(is_stable) X(update_window_dims) X(inserted_window_dims)                    \
  X(input_batching_dims) X(scatter_indices_batching_dims)                      \
  X(scatter_dims_to_operand_dims) X(unique_indices) X(exponent_bits)            \
  X(mantissa_bits) X(lower) X(left_side) X(unit_diagonal) X(transpose_a) \
  X(feature_index) X(fft_type) X(fft_length) X(rng_algorithm)         \
  X(output_type) X(rng_distribution) X(full) X(call_target_name) \
  X(has_side_effect) X(backend_config) X(backend_dictionary) X(api_version) \
  X(output_sizes) X(masked) X(count) X(name) X(version) X(attributes) X(ends) \
  X(most) X(centers) X(output_operand_aliases) X(called_computations) \
  X(combiner) X(reverse) X(exclusive) X(length) X(carry_count) X(xs_count) \
  X(unroll) \
  X(replica_groups) X(channel_handle) \
  X(use_global_device_ids) X(all_gather_dim) X(scatter_dimension) \
  X(split_dimension) X(concat_dimension) X(split_count) X(source_target_pairs) \
  X(of_bias) X(centred) X(blocks) X(bits) X(block) X(accuracy) X(parts) \
  X(algorithm)
// clang-format on

typedef enum pestle_attr_name_e {
#define PESTLE_ATTR_ENUM_(name) PESTLE_ATTR_##name,
  PESTLE_ATTR_NAMES(PESTLE_ATTR_ENUM_)
#undef PESTLE_ATTR_ENUM_
      PESTLE_ATTR_COUNT
} pestle_attr_name_t;

PESTLE_EXTERN_C_END

#endif  // PESTLE_OP_H_

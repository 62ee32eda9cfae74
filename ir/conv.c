// SPDX-License-Identifier: Apache-2.0
#include "ir/conv.h"

// Elements from one window to the next, at most, where the copy is of phases.
enum { MOST_PHASES = 4 };

int64_t pestle_conv_phases(const pestle_node_t* node) {
  int32_t rank = pestle_node_operand(node, 0)->type->rank;
  size_t spatial = PESTLE_NODE_I64S(node, input_spatial_dimensions).count;
  size_t i = spatial - 1;
  if (!spatial || rank == PESTLE_MAX_RANK ||
      PESTLE_NODE_I64S(node, input_spatial_dimensions).data[i] + 1 != rank ||
      PESTLE_NODE_I64S(node, output_spatial_dimensions).data[i] + 1 != rank) {
    return 1;
  }
  int64_t wd = PESTLE_NODE_I64S(node, kernel_spatial_dimensions).data[i];
  int64_t taps = pestle_node_operand(node, 1)->type->dims[wd];
  int64_t stride = PESTLE_NODE_I64S(node, window_strides).data[i];
  return taps > 1 && stride <= MOST_PHASES ? stride : 1;
}

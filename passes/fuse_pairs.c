// SPDX-License-Identifier: Apache-2.0
// A depthwise convolution and the pointwise one that reads it, as one kernel, where
// what passes between them does not stay in a core's nearer cache: the kernel makes a
// few rows of it at a time, and multiplies them while they are there.
//
//   %1 = convolution %x, %w        (3 x 3 taps, each feature its own)
//   %2 = clamp ... %1              its followers
//   %3 = convolution %2, %v        (1 x 1 taps)
//
// On CPUs alone: a GPU's group is much smaller than the rows that would be shared.
#include "passes/fuse.h"

enum { DEFAULT_L2_BYTES = 1 << 20 };

static int64_t attribute(pestle_i64s_t list, size_t i) {
  return i < list.count ? list.data[i] : -1;
}

// Whether images and results lie with batches outermost and features innermost.
static bool has_channels_last(const pestle_node_t* node) {
  int32_t rank = node->results[0].type->rank;
  bool last = rank == 4 && PESTLE_NODE_I64(node, input_batch_dimension) == 0 &&
              PESTLE_NODE_I64(node, output_batch_dimension) == 0 &&
              PESTLE_NODE_I64(node, input_feature_dimension) == rank - 1 &&
              PESTLE_NODE_I64(node, output_feature_dimension) == rank - 1;
  for (int32_t i = 0; last && i + 2 < rank; ++i) {
    size_t at = (size_t)i;
    last = attribute(PESTLE_NODE_I64S(node, input_spatial_dimensions), at) ==
               i + 1 &&
           attribute(PESTLE_NODE_I64S(node, output_spatial_dimensions), at) ==
               i + 1;
  }
  return last;
}

static bool is_plain(const pestle_node_t* node) {
  const pestle_type_t* x = pestle_node_operand(node, 0)->type;
  const pestle_type_t* w = pestle_node_operand(node, 1)->type;
  return node->op == PESTLE_OP_CONVOLUTION && has_channels_last(node) &&
         x->dtype == PESTLE_F32 && w->dtype == PESTLE_F32 &&
         node->results[0].type->dtype == PESTLE_F32 &&
         PESTLE_NODE_I64(node, batch_group_count) == 1 &&
         pestle_pass_i64s_all(PESTLE_NODE_I64S(node, lhs_dilation), 1);
}

static bool is_depthwise(const pestle_node_t* node) {
  int64_t features = node->results[0].type->dims[3];
  return is_plain(node) && features > 1 &&
         pestle_node_operand(node, 0)->type->dims[3] == features &&
         PESTLE_NODE_I64(node, feature_group_count) == features;
}

static bool is_pointwise(const pestle_node_t* node) {
  if (!is_plain(node) || PESTLE_NODE_I64(node, feature_group_count) != 1 ||
      !pestle_pass_i64s_all(PESTLE_NODE_I64S(node, window_strides), 1) ||
      !pestle_pass_i64s_all(PESTLE_NODE_I64S(node, padding), 0)) {
    return false;
  }
  const pestle_type_t* w = pestle_node_operand(node, 1)->type;
  pestle_i64s_t spatial = PESTLE_NODE_I64S(node, kernel_spatial_dimensions);
  for (size_t i = 0; i < spatial.count; ++i) {
    if (w->dims[spatial.data[i]] != 1) return false;
  }
  return true;
}

// Half of the cache: the other holds what it is made of and what is made of it.
static bool passes_cache(const pestle_fuse_t* f, const pestle_type_t* type) {
  size_t l2 = f->ctx->caps->l2_bytes ? (size_t)f->ctx->caps->l2_bytes
                                     : (size_t)DEFAULT_L2_BYTES;
  return pestle_type_bytes(type) > l2 / 2;
}

// The pointwise convolution's group, which |group| joins; or NONE.
static uint32_t find_reader(const pestle_fuse_t* f, uint32_t group) {
  const pestle_fuse_group_t* g = &f->groups[group];
  if (g->dead || g->kind != PESTLE_FUSE_KIND_DOT ||
      !is_depthwise(pestle_fuse_node(f, g->hero)) ||
      !passes_cache(f, g->domain)) {
    return PESTLE_FUSE_NONE;
  }
  const pestle_node_t* user = pestle_fuse_only_user(f, group);
  if (!user || user->block != f->block || !is_pointwise(user)) {
    return PESTLE_FUSE_NONE;
  }
  uint32_t reader = f->items[user->scratch].group;
  const pestle_value_t* x = pestle_node_operand(user, 0);
  uint32_t from = pestle_fuse_item_of(f, x);
  // Read as it is, and by nobody as a weight.
  bool whole = from != PESTLE_FUSE_NONE && f->items[from].group == group &&
               from != g->hero && pestle_node_operand(user, 1) != x;
  return whole ? reader : PESTLE_FUSE_NONE;
}

void pestle_fuse_pairs(pestle_fuse_t* f) {
  if (f->ctx->caps->flags & PESTLE_TARGET_LANES) return;
  for (uint32_t g = 0; g < f->group_count; ++g) {
    uint32_t reader = find_reader(f, g);
    if (reader == PESTLE_FUSE_NONE || !pestle_fuse_has_room(f, reader, g)) {
      continue;
    }
    pestle_fuse_merge(f, reader, g);
  }
}

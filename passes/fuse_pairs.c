// SPDX-License-Identifier: Apache-2.0
// A depthwise convolution and the pointwise one that reads it, as one kernel, where
// what passes between them does not stay in a core's nearer cache: the kernel makes a
// part of a row of it at a time, and multiplies that while it is there.
//
//   %1 = convolution %x, %w        (3 x 3 taps, each feature its own)
//   %2 = clamp ... %1              its followers
//   %3 = convolution %2, %v        (1 x 1 taps)
//
// On CPUs alone: a GPU's group is much smaller than the rows that would be shared.
#include "passes/fuse.h"

enum {
  // Results of a row that are made at a time, at most, as sketch_pair.c has them.
  MOST_RESULTS = 16,
  // Rows of all images at least, which cores share. Not by their number, on which
  // results never depend: apart, long sums are cut into blocks.
  LEAST_ROWS = 16,
};

static bool is_plain(const pestle_node_t* node) {
  if (node->op != PESTLE_OP_CONVOLUTION) return false;
  const pestle_type_t* x = pestle_node_operand(node, 0)->type;
  const pestle_type_t* w = pestle_node_operand(node, 1)->type;
  return node->results[0].type->rank == 4 &&
         pestle_pass_has_channels_last(node) && x->dtype == PESTLE_F32 &&
         w->dtype == PESTLE_F32 && node->results[0].type->dtype == PESTLE_F32 &&
         PESTLE_NODE_I64(node, batch_group_count) == 1 &&
         pestle_pass_i64s_all(PESTLE_NODE_I64S(node, lhs_dilation), 1);
}

static bool is_depthwise(const pestle_node_t* node) {
  if (!is_plain(node)) return false;
  int64_t features = node->results[0].type->dims[3];
  return features > 1 &&
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

// Whether what passes between them, |type|, is more than half of the L2: the other
// half holds what it is made of and what is made of it.
static bool passes_cache(const pestle_fuse_t* f, const pestle_type_t* type) {
  return (int64_t)pestle_type_bytes(type) > pestle_pass_l2_bytes(f->ctx) / 2;
}

// Whether the second one suits: its weights, which each part of a row is multiplied
// with, stay in the L2, and so does the part; its columns fill half of the lanes; and
// no function behind it is unrolled with its tiles. Measured on a Zen 4: 1024 features
// of 28 x 28 to 1024 apart 7100 us, joined 10640; on a Zen 5: 256 to 1 99, 135.
static bool suits(const pestle_fuse_t* f, uint32_t group,
                  const pestle_node_t* point) {
  int64_t l2 = pestle_pass_l2_bytes(f->ctx);
  const pestle_type_t* y = point->results[0].type;
  const pestle_type_t* x = pestle_node_operand(point, 0)->type;
  int64_t weights =
      (int64_t)pestle_type_bytes(pestle_node_operand(point, 1)->type);
  int64_t part = x->dims[3] * MOST_RESULTS * (int64_t)sizeof(float);
  int64_t lanes = f->ctx->caps->vector_bytes / (int64_t)sizeof(float);
  if (weights > l2 / 4 || part > l2 / 4 || 2 * y->dims[3] < lanes ||
      y->dims[0] * y->dims[1] < LEAST_ROWS) {
    return false;
  }
  for (uint32_t i = f->groups[group].first; i != PESTLE_FUSE_NONE;
       i = f->items[i].next) {
    if (pestle_pass_info(pestle_fuse_node(f, i))->flags &
        PESTLE_OP_FLAG_TRANS) {
      return false;
    }
  }
  return true;
}

// The pointwise convolution's group, which |group| joins; or NONE.
static uint32_t find_reader(pestle_fuse_t* f, uint32_t group) {
  const pestle_fuse_group_t* g = &f->groups[group];
  if (g->dead || g->kind != PESTLE_FUSE_KIND_DOT ||
      !is_depthwise(pestle_fuse_node(f, g->hero))) {
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
  if (!whole) return PESTLE_FUSE_NONE;
  pestle_fuse_reason_t why = PESTLE_FUSE_REASON_NONE;
  if (!passes_cache(f, g->domain)) {
    why = PESTLE_FUSE_REASON_PAIR_NEAR;
  } else if (!suits(f, reader, user)) {
    why = PESTLE_FUSE_REASON_PAIR_UNFIT;
  }
  bool apart = pestle_fuse_note(f, group, (uint32_t)user->scratch, why);
  return apart ? PESTLE_FUSE_NONE : reader;
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

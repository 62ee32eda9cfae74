// SPDX-License-Identifier: Apache-2.0
// Which ops may share a kernel: rules over the classes, shapes and costs of ops. Two look
// at the target, reads_across() and refuses_view(); others that do are in fuse_pairs.c.
#include <string.h>

#include "passes/fuse.h"

// Members that a group may evaluate more often than they have elements.
#define MAX_REPEATED 4
// Parts of a concatenation that is read in the middle of a kernel: each costs
// a guarded read an element.
#define MAX_INNER_PARTS 3
// On devices of lanes, where a part that is written for itself is a kernel.
#define MAX_INNER_PARTS_LANES 4
// Groups that a cheap op is copied into.
#define MAX_COPIES 3
// Ops from a value that reads no tensor on that are copied as it is.
#define MAX_COUNTED 4
// Bytes that what makes an attention's mask may read an element.
#define MASK_BYTES 4
// How many times as much a bias has that is computed for each row or head
// again.
#define LESS_BYTES 2
// Rows of the matrix that a product steps over for each sum, at most.
#define MAX_ACROSS 256

static pestle_fuse_class_t class_of(const pestle_node_t* node) {
  return (pestle_fuse_class_t)pestle_pass_info(node)->fuse;
}
static const pestle_type_t* type_of(const pestle_node_t* node) {
  return node->results[0].type;
}
static const pestle_type_t* operand_type(const pestle_node_t* node, size_t i) {
  return pestle_node_operand(node, i)->type;
}

// --- Single ops ---

static bool is_pointwise_composite(const pestle_node_t* node) {
  switch (node->op) {
    case PESTLE_OP_GELU:
    case PESTLE_OP_SILU:
    case PESTLE_OP_HARD_SIGMOID:
    case PESTLE_OP_QUANTIZE:
    case PESTLE_OP_DEQUANTIZE:
    case PESTLE_OP_MAP:
    case PESTLE_OP_REDUCE_PRECISION:
    case PESTLE_OP_BATCH_NORM_INFERENCE:
      return true;
    default:
      return false;
  }
}

bool pestle_fuse_is_elementwise(const pestle_node_t* node) {
  if (node->op == PESTLE_OP_BITCAST_CONVERT) {
    return type_of(node)->rank == operand_type(node, 0)->rank;
  }
  return pestle_op_is_scalar((pestle_op_t)node->op) ||
         node->op == PESTLE_OP_CONVERT || is_pointwise_composite(node);
}

bool pestle_fuse_is_cheap(const pestle_node_t* node) {
  switch (class_of(node)) {
    case PESTLE_FUSE_VIEW:
      return node->op != PESTLE_OP_CONCATENATE;
    case PESTLE_FUSE_SOURCE:
      return true;
    case PESTLE_FUSE_ELEMENTWISE:
      break;
    case PESTLE_FUSE_GATHER:
    case PESTLE_FUSE_REDUCTION:
    case PESTLE_FUSE_WINDOW:
    case PESTLE_FUSE_CONTRACTION:
    case PESTLE_FUSE_COMPOSITE:
    case PESTLE_FUSE_CONTROL:
    case PESTLE_FUSE_FUSION:
    case PESTLE_FUSE_DIRECT:
    case PESTLE_FUSE_COLLECTIVE:
      return false;
  }
  return !(pestle_pass_info(node)->flags & PESTLE_OP_FLAG_TRANS) &&
         node->op != PESTLE_OP_DIVIDE && node->op != PESTLE_OP_REMAINDER &&
         node->op != PESTLE_OP_SQRT;
}

bool pestle_fuse_is_inline_constant(const pestle_node_t* node) {
  return node->op == PESTLE_OP_CONSTANT &&
         (PESTLE_NODE_ELEMENTS(node)->splat ||
          pestle_type_count(type_of(node)) == 1);
}

bool pestle_fuse_is_trivial_reshape(const pestle_node_t* node) {
  if (node->op != PESTLE_OP_RESHAPE) return false;
  const pestle_type_t *a = operand_type(node, 0), *b = type_of(node);
  int32_t i = 0, j = 0;
  for (;;) {
    while (i < a->rank && a->dims[i] == 1)
      ++i;
    while (j < b->rank && b->dims[j] == 1)
      ++j;
    if (i == a->rank || j == b->rank) return i == a->rank && j == b->rank;
    if (a->dims[i++] != b->dims[j++]) return false;
  }
}

bool pestle_fuse_keeps_runs(const pestle_node_t* node) {
  if (node->op != PESTLE_OP_RESHAPE) return false;
  const pestle_type_t *a = operand_type(node, 0), *b = type_of(node);
  return a->rank && b->rank && a->dims[a->rank - 1] > 1 &&
         a->dims[a->rank - 1] == b->dims[b->rank - 1];
}

bool pestle_fuse_splits_dims(const pestle_node_t* node) {
  if (node->op != PESTLE_OP_RESHAPE) return false;
  const pestle_type_t *a = operand_type(node, 0), *b = type_of(node);
  int32_t j = 0;
  for (int32_t i = 0; i < a->rank; ++i) {
    int64_t product = 1;
    while (j < b->rank && product < a->dims[i])
      product *= b->dims[j++];
    if (product != a->dims[i]) return false;
  }
  while (j < b->rank && b->dims[j] == 1)
    ++j;
  return j == b->rank;
}

bool pestle_fuse_is_view_of_parts(const pestle_node_t* node) {
  return node->op == PESTLE_OP_BITCAST_CONVERT &&
         pestle_type_is_complex(operand_type(node, 0)) !=
             pestle_type_is_complex(type_of(node));
}

// Kernels may rely on where their buffers begin.
#define VIEW_ALIGNMENT 64

bool pestle_fuse_is_zero_copy(const pestle_node_t* node) {
  if (node->op == PESTLE_OP_RESHAPE) return true;
  if (pestle_fuse_is_view_of_parts(node)) return true;
  if (node->op != PESTLE_OP_SLICE) return false;
  const pestle_type_t *from = operand_type(node, 0), *to = type_of(node);
  pestle_i64s_t strides = PESTLE_NODE_I64S(node, strides);
  bool inside = false;  // past the outermost dim with more than one element
  for (int32_t i = 0; i < to->rank; ++i) {
    bool whole = to->dims[i] == from->dims[i];
    if (!whole && (inside || (to->dims[i] != 1 && strides.data[i] != 1))) {
      return false;
    }
    inside = inside || to->dims[i] != 1;
  }
  return pestle_fuse_view_offset(node) % VIEW_ALIGNMENT == 0;
}

bool pestle_fuse_is_view(const pestle_node_t* node) {
  return node->op == PESTLE_OP_OPTIMIZATION_BARRIER ||
         pestle_fuse_is_zero_copy(node);
}

int64_t pestle_fuse_view_offset(const pestle_node_t* node) {
  if (node->op != PESTLE_OP_SLICE) return 0;
  const pestle_type_t* from = operand_type(node, 0);
  pestle_i64s_t start = PESTLE_NODE_I64S(node, start_indices);
  int64_t offset = 0;
  for (int32_t i = 0; i < from->rank; ++i) {
    offset = offset * from->dims[i] + start.data[i];
  }
  return offset * (int64_t)pestle_dtype_size(from->dtype);
}

// --- Kinds ---

pestle_fuse_kind_t pestle_fuse_kind_of(const pestle_node_t* node) {
  if (pestle_fuse_is_view_of_parts(node) || pestle_extents_is_anchor(node)) {
    return PESTLE_FUSE_KIND_ALONE;
  }
  switch (class_of(node)) {
    case PESTLE_FUSE_CONTRACTION:
      return PESTLE_FUSE_KIND_DOT;
    case PESTLE_FUSE_WINDOW:
      return PESTLE_FUSE_KIND_WINDOW;
    case PESTLE_FUSE_REDUCTION:
      return PESTLE_FUSE_KIND_ROW;
    case PESTLE_FUSE_COMPOSITE:
      if (node->op == PESTLE_OP_ATTENTION) return PESTLE_FUSE_KIND_DOT;
      return is_pointwise_composite(node) ? PESTLE_FUSE_KIND_MAP
                                          : PESTLE_FUSE_KIND_ROW;
    case PESTLE_FUSE_SOURCE:
    case PESTLE_FUSE_ELEMENTWISE:
    case PESTLE_FUSE_VIEW:
    case PESTLE_FUSE_GATHER:
      return PESTLE_FUSE_KIND_MAP;
    case PESTLE_FUSE_CONTROL:
    case PESTLE_FUSE_FUSION:
    case PESTLE_FUSE_DIRECT:
    case PESTLE_FUSE_COLLECTIVE:
      break;
  }
  return PESTLE_FUSE_KIND_ALONE;
}

void pestle_fuse_set_hero(pestle_fuse_t* f, uint32_t group, uint32_t item) {
  pestle_fuse_group_t* g = &f->groups[group];
  const pestle_node_t* node = pestle_fuse_node(f, item);
  g->hero = item;
  g->kind = pestle_fuse_kind_of(node);
  g->domain = type_of(node);
  if (g->kind == PESTLE_FUSE_KIND_ROW) {
    g->domain = operand_type(node, 0);
    g->axes = PESTLE_NODE_I64S(node, dimensions);
    g->one_reduction = node->op == PESTLE_OP_REDUCE;
  }
}

// --- Rows ---

// Whether |type| has the reduced shape, dims of one element aside.
static bool is_row_like(const pestle_fuse_group_t* g,
                        const pestle_type_t* type) {
  int32_t j = 0;
  for (int32_t i = 0; i < g->domain->rank; ++i) {
    if (pestle_i64s_has(g->axes, i) || g->domain->dims[i] == 1) continue;
    while (j < type->rank && type->dims[j] == 1)
      ++j;
    if (j == type->rank || type->dims[j++] != g->domain->dims[i]) return false;
  }
  while (j < type->rank && type->dims[j] == 1)
    ++j;
  return j == type->rank;
}

// A broadcast that repeats one number a row along the row.
static bool is_row_broadcast(const pestle_fuse_group_t* g,
                             const pestle_node_t* node) {
  if (node->op != PESTLE_OP_BROADCAST_IN_DIM ||
      !pestle_pass_same_dims(type_of(node), g->domain) ||
      !is_row_like(g, operand_type(node, 0))) {
    return false;
  }
  pestle_i64s_t dims = PESTLE_NODE_I64S(node, broadcast_dimensions);
  for (size_t i = 0; i < dims.count; ++i) {
    bool one = operand_type(node, 0)->dims[i] == 1;
    if (!one && pestle_i64s_has(g->axes, dims.data[i])) return false;
    if (i && dims.data[i] < dims.data[i - 1]) return false;
  }
  return true;
}

static bool is_same_reduce(const pestle_fuse_group_t* g,
                           const pestle_node_t* node) {
  if (node->op != PESTLE_OP_REDUCE ||
      !pestle_pass_same_dims(operand_type(node, 0), g->domain)) {
    return false;
  }
  pestle_i64s_t dims = PESTLE_NODE_I64S(node, dimensions);
  for (size_t i = 0; i < dims.count; ++i) {
    if (!pestle_i64s_has(g->axes, dims.data[i])) return false;
  }
  return dims.count == g->axes.count;
}

// What follows a reduction: its own rows, and with |rows_only| numbers of a row.
static pestle_fuse_reason_t refuses_row(const pestle_fuse_group_t* g,
                                        const pestle_node_t* hero,
                                        const pestle_node_t* node,
                                        bool rows_only) {
  bool core = hero->op == PESTLE_OP_REDUCE;
  bool elementwise = pestle_fuse_is_elementwise(node);
  if (core && is_row_like(g, type_of(node)) &&
      (elementwise || pestle_fuse_is_trivial_reshape(node))) {
    return PESTLE_FUSE_REASON_NONE;
  }
  if (rows_only) {
    return core && is_same_reduce(g, node) ? PESTLE_FUSE_REASON_NONE
                                           : PESTLE_FUSE_REASON_COLUMNS;
  }
  if (elementwise) {
    return pestle_pass_same_dims(type_of(node), g->domain)
               ? PESTLE_FUSE_REASON_NONE
               : PESTLE_FUSE_REASON_OTHER_SHAPE;
  }
  if (!core) return PESTLE_FUSE_REASON_COMPOSITE_ROWS;
  return is_row_broadcast(g, node) || is_same_reduce(g, node)
             ? PESTLE_FUSE_REASON_NONE
             : PESTLE_FUSE_REASON_OTHER_ROWS;
}

pestle_fuse_reason_t pestle_fuse_refuses_follower(const pestle_fuse_t* f,
                                                  const pestle_fuse_group_t* g,
                                                  const pestle_node_t* node,
                                                  bool rows_only) {
  if (g->kind == PESTLE_FUSE_KIND_ROW) {
    return refuses_row(g, pestle_fuse_node(f, g->hero), node, rows_only);
  }
  if (!pestle_fuse_is_elementwise(node)) {
    return PESTLE_FUSE_REASON_NOT_ELEMENTWISE;
  }
  return pestle_pass_same_dims(type_of(node), g->domain)
             ? PESTLE_FUSE_REASON_NONE
             : PESTLE_FUSE_REASON_OTHER_SHAPE;
}

// --- Producers ---

static bool keeps_innermost(const pestle_node_t* transpose) {
  pestle_i64s_t perm = PESTLE_NODE_I64S(transpose, permutation);
  return !perm.count || perm.data[perm.count - 1] == (int64_t)perm.count - 1;
}

// How |user| reads operand |index|.
typedef enum reading_e {
  READS_ONCE,      // each element at most once
  READS_REPEATED,  // elements again and again
  READS_NOT,       // must lie in memory
} reading_t;

static reading_t reading_of_view(const pestle_node_t* user, size_t index) {
  switch (user->op) {
    case PESTLE_OP_BROADCAST_IN_DIM:
      return pestle_type_count(type_of(user)) >
                     pestle_type_count(operand_type(user, 0))
                 ? READS_REPEATED
                 : READS_ONCE;
    case PESTLE_OP_PAD:
      return index == 0 ? READS_ONCE : READS_REPEATED;
    default:
      return READS_ONCE;
  }
}

static reading_t reading_of(const pestle_fuse_group_t* g,
                            const pestle_node_t* user, size_t index) {
  switch (class_of(user)) {
    case PESTLE_FUSE_SOURCE:
    case PESTLE_FUSE_ELEMENTWISE:
      // Bounds and predicates of rank 0.
      return operand_type(user, index)->rank < type_of(user)->rank
                 ? READS_REPEATED
                 : READS_ONCE;
    case PESTLE_FUSE_VIEW:
      return reading_of_view(user, index);
    case PESTLE_FUSE_GATHER:
      if (user->op == PESTLE_OP_DYNAMIC_SLICE && index == 0) return READS_ONCE;
      return index == 0 ? READS_NOT : READS_REPEATED;
    case PESTLE_FUSE_REDUCTION:
      return g->one_reduction ? READS_ONCE : READS_REPEATED;
    case PESTLE_FUSE_COMPOSITE:
      if (is_pointwise_composite(user)) {
        return index == 0 || user->op == PESTLE_OP_MAP ? READS_ONCE
                                                       : READS_REPEATED;
      }
      return READS_REPEATED;
    case PESTLE_FUSE_WINDOW:
    case PESTLE_FUSE_CONTRACTION:
    case PESTLE_FUSE_CONTROL:
    case PESTLE_FUSE_FUSION:
    case PESTLE_FUSE_DIRECT:
    case PESTLE_FUSE_COLLECTIVE:
      break;
  }
  return READS_NOT;
}

// Inlining |node| must read less than storing its result would write.
static bool shrinks_traffic(const pestle_node_t* node) {
  size_t bytes = 0;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    const pestle_node_t* from = pestle_node_operand(node, i)->node;
    bool view = from && from->op == PESTLE_OP_BROADCAST_IN_DIM;
    bytes +=
        pestle_type_bytes(view ? operand_type(from, 0) : operand_type(node, i));
  }
  return bytes < pestle_type_bytes(type_of(node));
}

// Bytes of the operands that |node| reads from memory.
static int64_t bytes_read(const pestle_node_t* node) {
  int64_t bytes = 0;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    const pestle_node_t* from = pestle_node_operand(node, i)->node;
    bool free = from && (pestle_fuse_is_inline_constant(from) ||
                         from->op == PESTLE_OP_BROADCAST_IN_DIM ||
                         from->op == PESTLE_OP_IOTA);
    if (!free) bytes += (int64_t)pestle_type_bytes(operand_type(node, i));
  }
  return bytes;
}

// Of a bias with one element a score the scores' loop computes what is cheap,
// unless that reads more than it writes. One that repeats itself would be
// computed again and again: only where it reads much less.
static bool accepts_into_bias(const pestle_node_t* attention,
                              const pestle_node_t* node) {
  pestle_type_t scores = *operand_type(attention, 0);
  scores.dims[scores.rank - 1] =
      operand_type(attention, 1)->dims[scores.rank - 2];
  bool repeats = pestle_type_count(type_of(node)) != pestle_type_count(&scores);
  return pestle_fuse_is_elementwise(node) && pestle_fuse_is_cheap(node) &&
         bytes_read(node) * (repeats ? LESS_BYTES : 1) <=
             (int64_t)pestle_type_bytes(type_of(node));
}

// Of a mask the scores' loop computes all that is cheap, also where the mask
// repeats itself: comparing positions takes less than reading what they compare
// to, and a number a score no more than what is stored of it first.
static bool accepts_into_mask(const pestle_node_t* node) {
  return pestle_fuse_is_elementwise(node) && pestle_fuse_is_cheap(node) &&
         bytes_read(node) <= MASK_BYTES * pestle_type_count(type_of(node));
}

// Whether |transpose| swaps the last two dims and does nothing else.
static bool swaps_last(const pestle_node_t* transpose) {
  pestle_i64s_t perm = PESTLE_NODE_I64S(transpose, permutation);
  int64_t last = (int64_t)perm.count - 1;
  for (int64_t d = 0; d <= last; ++d) {
    int64_t from = d + 1 < last ? d : 2 * last - 1 - d;
    if (perm.data[d] != from) return false;
  }
  return last > 0;
}

// Whether |dot| reads its left side's columns where these lie, as rows of what |transpose|
// turns. Each tile of results steps over all rows of that once, a line each: they are to
// stay near. Measured on a Sapphire Rapids of 2 MiB, the product's time of that with a
// transposed copy: k = 128, 100 columns 0.61, 768 0.93 to 0.99, 1024 1.05, 3072 1.27; k =
// 256, 256 columns 0.88; k = 1024, 512 columns 6.3.
static bool reads_across(const pestle_fuse_t* f, const pestle_node_t* dot,
                         const pestle_node_t* transpose) {
  const pestle_type_t *x = operand_type(transpose, 0), *y = type_of(dot);
  bool is_float = x->dtype == PESTLE_F32 || x->dtype == PESTLE_F64;
  if ((f->ctx->caps->flags & PESTLE_TARGET_LANES) || !is_float ||
      dot->op != PESTLE_OP_DOT_GENERAL || !swaps_last(transpose) ||
      operand_type(dot, 1)->dtype != x->dtype) {
    return false;
  }
  int64_t size = (int64_t)pestle_dtype_size(x->dtype);
  int64_t k = x->dims[x->rank - 2], rows = x->dims[x->rank - 1];
  return k <= MAX_ACROSS && rows > 1 &&
         y->dims[y->rank - 1] * size >= f->ctx->caps->vector_bytes &&
         k * rows * size <= pestle_pass_l2_bytes(f->ctx) / 4;
}

// What a contraction takes in while it packs operand |side|.
// Whether a convolution on lanes reads its weights through |node| as they lie: some of
// their taps, or these the other way round. Copying them would be a kernel.
static bool is_view_of_taps(const pestle_fuse_t* f, size_t side,
                            const pestle_node_t* node) {
  int64_t last = type_of(node)->rank - 1;
  if (side != 1 || !(f->ctx->caps->flags & PESTLE_TARGET_LANES)) return false;
  if (node->op == PESTLE_OP_SLICE) {
    return PESTLE_NODE_I64S(node, strides).data[last] == 1;
  }
  return node->op == PESTLE_OP_REVERSE &&
         !pestle_i64s_has(PESTLE_NODE_I64S(node, dimensions), last);
}

static pestle_fuse_reason_t refuses_dot_operand(const pestle_fuse_t* f,
                                                const pestle_node_t* dot,
                                                size_t side,
                                                const pestle_node_t* node) {
  bool attention = dot->op == PESTLE_OP_ATTENTION;
  if (!attention && dot->op != PESTLE_OP_DOT_GENERAL) {
    return dot->op == PESTLE_OP_CONVOLUTION && is_view_of_taps(f, side, node)
               ? PESTLE_FUSE_REASON_NONE
               : PESTLE_FUSE_REASON_CONVOLUTION_OPERAND;
  }
  switch (node->op) {
    case PESTLE_OP_BROADCAST_IN_DIM:
    case PESTLE_OP_IOTA:
      return PESTLE_FUSE_REASON_NONE;
    case PESTLE_OP_TRANSPOSE:
      if (side == 1 && !attention && !keeps_innermost(node) &&
          pestle_pass_reads_along_k(f->ctx, dot)) {
        return PESTLE_FUSE_REASON_ALONG_K;
      }
      return side == 1 || keeps_innermost(node) || reads_across(f, dot, node)
                 ? PESTLE_FUSE_REASON_NONE
                 : PESTLE_FUSE_REASON_LEFT_TRANSPOSE;
    case PESTLE_OP_RESHAPE:
      return pestle_fuse_is_trivial_reshape(node)
                 ? PESTLE_FUSE_REASON_NONE
                 : PESTLE_FUSE_REASON_DOT_RESHAPE;
    case PESTLE_OP_SLICE:
      return PESTLE_NODE_I64S(node, strides).data[type_of(node)->rank - 1] == 1
                 ? PESTLE_FUSE_REASON_NONE
                 : PESTLE_FUSE_REASON_DOT_SLICE;
    default:
      break;
  }
  if (attention && side && side == pestle_attention_mask(dot)) {
    return accepts_into_mask(node) ? PESTLE_FUSE_REASON_NONE
                                   : PESTLE_FUSE_REASON_BIAS;
  }
  if (attention && side && side == pestle_attention_bias(dot)) {
    return accepts_into_bias(dot, node) ? PESTLE_FUSE_REASON_NONE
                                        : PESTLE_FUSE_REASON_BIAS;
  }
  if (!pestle_fuse_is_elementwise(node) || !pestle_fuse_is_cheap(node)) {
    return PESTLE_FUSE_REASON_DOT_COSTLY;
  }
  return shrinks_traffic(node) ? PESTLE_FUSE_REASON_NONE
                               : PESTLE_FUSE_REASON_DOT_TRAFFIC;
}

static pestle_fuse_reason_t refuses_window_operand(size_t side,
                                                   const pestle_node_t* node) {
  bool taken = side == 0 && (node->op == PESTLE_OP_PAD ||
                             node->op == PESTLE_OP_BROADCAST_IN_DIM);
  return taken ? PESTLE_FUSE_REASON_NONE : PESTLE_FUSE_REASON_WINDOW_OPERAND;
}

static bool is_window_hero(const pestle_node_t* node) {
  return class_of(node) == PESTLE_FUSE_CONTRACTION ||
         class_of(node) == PESTLE_FUSE_WINDOW ||
         node->op == PESTLE_OP_ATTENTION;
}

// One use of |node| by the member |user|. |*side| is set when it ends up as
// (part of) an operand of the hero.
static pestle_fuse_reason_t refuses_use(const pestle_fuse_t* f,
                                        const pestle_fuse_group_t* g,
                                        const pestle_fuse_item_t* user_item,
                                        size_t index, const pestle_node_t* node,
                                        bool* repeated, uint8_t* side) {
  const pestle_node_t* user = user_item->node;
  if (is_window_hero(user) || user_item->side) {
    *side = user_item->side ? user_item->side : (uint8_t)(index + 1);
    const pestle_node_t* hero = pestle_fuse_node(f, g->hero);
    return class_of(hero) != PESTLE_FUSE_WINDOW
               ? refuses_dot_operand(f, hero, *side - 1u, node)
               : refuses_window_operand(*side - 1u, node);
  }
  reading_t reading = reading_of(g, user, index);
  if (reading == READS_NOT) return PESTLE_FUSE_REASON_IN_MEMORY;
  bool again = reading == READS_REPEATED || user_item->repeated;
  *repeated = *repeated || again;
  return !again || pestle_fuse_is_cheap(node) ? PESTLE_FUSE_REASON_NONE
                                              : PESTLE_FUSE_REASON_COSTLY_AGAIN;
}

static pestle_fuse_reason_t refuses_view(const pestle_fuse_t* f,
                                         const pestle_fuse_group_t* g,
                                         const pestle_node_t* node) {
  if (node->op == PESTLE_OP_CONCATENATE) {
    bool lanes = f->ctx->caps->flags & PESTLE_TARGET_LANES;
    uint32_t most = lanes ? MAX_INNER_PARTS_LANES : MAX_INNER_PARTS;
    return g->kind == PESTLE_FUSE_KIND_MAP && node->operand_count <= most
               ? PESTLE_FUSE_REASON_NONE
               : PESTLE_FUSE_REASON_CONCATENATE;
  }
  return node->op != PESTLE_OP_TRANSPOSE || g->kind != PESTLE_FUSE_KIND_ROW ||
                 keeps_innermost(node)
             ? PESTLE_FUSE_REASON_NONE
             : PESTLE_FUSE_REASON_ROW_TRANSPOSE;
}

static pestle_fuse_reason_t refuses_kind(const pestle_fuse_t* f,
                                         const pestle_fuse_group_t* g,
                                         const pestle_node_t* node) {
  if (node->op == PESTLE_OP_RESHAPE) {
    return pestle_fuse_is_trivial_reshape(node) ||
                   pestle_fuse_keeps_runs(node) ||
                   (g->kind == PESTLE_FUSE_KIND_ROW &&
                    pestle_fuse_splits_dims(node))
               ? PESTLE_FUSE_REASON_NONE
               : PESTLE_FUSE_REASON_RESHAPE;
  }
  switch (class_of(node)) {
    case PESTLE_FUSE_SOURCE:
      return node->op == PESTLE_OP_IOTA ? PESTLE_FUSE_REASON_NONE
                                        : PESTLE_FUSE_REASON_SOURCE;
    case PESTLE_FUSE_ELEMENTWISE:
      return PESTLE_FUSE_REASON_NONE;
    case PESTLE_FUSE_COMPOSITE:
      return is_pointwise_composite(node) ? PESTLE_FUSE_REASON_NONE
                                          : PESTLE_FUSE_REASON_OWN_LOOPS;
    case PESTLE_FUSE_VIEW:
      return refuses_view(f, g, node);
    case PESTLE_FUSE_GATHER:
      return g->kind == PESTLE_FUSE_KIND_MAP ? PESTLE_FUSE_REASON_NONE
                                             : PESTLE_FUSE_REASON_GATHER;
    case PESTLE_FUSE_REDUCTION:
    case PESTLE_FUSE_WINDOW:
    case PESTLE_FUSE_CONTRACTION:
    case PESTLE_FUSE_CONTROL:
    case PESTLE_FUSE_FUSION:
    case PESTLE_FUSE_DIRECT:
    case PESTLE_FUSE_COLLECTIVE:
      break;
  }
  return PESTLE_FUSE_REASON_OWN_LOOPS;
}

// What is learned about the uses of one node by the members of a group.
typedef struct uses_t {
  uint32_t count;
  bool repeated;
  uint8_t side;
} uses_t;

// Walks the uses of |node|, which |producer| passes on, through floating
// copies.
static pestle_fuse_reason_t refuses_uses(const pestle_fuse_t* f, uint32_t group,
                                         const pestle_node_t* node,
                                         const pestle_node_t* producer,
                                         uses_t* uses, int depth) {
  const pestle_fuse_group_t* g = &f->groups[group];
  pestle_fuse_reason_t why;
  for (const pestle_use_t* u = producer->results[0].uses; u; u = u->next) {
    if (u->user->block != f->block) continue;
    const pestle_fuse_item_t* user = &f->items[u->user->scratch];
    size_t index = (size_t)(u - u->user->operands);
    if (user->floating && depth < 8) {
      uses_t inner = {0};
      why = refuses_uses(f, group, node, user->node, &inner, depth + 1);
      if (why) return why;
      if (!inner.count) continue;
      bool again = reading_of(g, user->node, index) != READS_ONCE;
      if (again && !pestle_fuse_is_cheap(node)) {
        return PESTLE_FUSE_REASON_COSTLY_AGAIN;
      }
      uses->repeated = uses->repeated || again || inner.repeated;
      uses->count += inner.count;
      if (inner.side) uses->side = inner.side;
    } else if (user->group == group) {
      why = refuses_use(f, g, user, index, node, &uses->repeated, &uses->side);
      if (why) return why;
      ++uses->count;
    }
  }
  return PESTLE_FUSE_REASON_NONE;
}

pestle_fuse_reason_t pestle_fuse_refuses_producer(const pestle_fuse_t* f,
                                                  uint32_t group,
                                                  uint32_t item) {
  const pestle_fuse_group_t* g = &f->groups[group];
  const pestle_node_t* node = pestle_fuse_node(f, item);
  if (node->result_count != 1) return PESTLE_FUSE_REASON_MANY_RESULTS;
  if (g->kind == PESTLE_FUSE_KIND_ALONE || pestle_fuse_is_view_of_parts(node)) {
    return PESTLE_FUSE_REASON_IN_MEMORY;
  }
  pestle_fuse_reason_t why = refuses_kind(f, g, node);
  uses_t uses = {0};
  if (!why) why = refuses_uses(f, group, node, node, &uses, 0);
  if (why) return why;
  // Several readers of one row read it one after the other.
  if (g->kind == PESTLE_FUSE_KIND_ROW && uses.count > 1) {
    uses.repeated = true;
    if (!pestle_fuse_is_cheap(node)) return PESTLE_FUSE_REASON_ROW_PASSES;
  }
  if (class_of(node) == PESTLE_FUSE_GATHER && uses.repeated) {
    return PESTLE_FUSE_REASON_GATHER_AGAIN;
  }
  bool work = pestle_fuse_is_elementwise(node);
  return !uses.repeated || !work || g->repeated < MAX_REPEATED
             ? PESTLE_FUSE_REASON_NONE
             : PESTLE_FUSE_REASON_ENOUGH_AGAIN;
}

void pestle_fuse_note_joined(pestle_fuse_t* f, uint32_t group, uint32_t item) {
  uses_t uses = {0};
  const pestle_node_t* node = pestle_fuse_node(f, item);
  (void)refuses_uses(f, group, node, node, &uses, 0);
  f->items[item].repeated = uses.repeated;
  f->items[item].side = uses.side;
  if (uses.repeated && pestle_fuse_is_elementwise(node)) {
    ++f->groups[group].repeated;
  }
}

// --- Copies ---

// What is the same everywhere, or counts, reads no tensor.
static bool reads_no_tensor(const pestle_node_t* node) {
  return pestle_fuse_is_inline_constant(node) || node->op == PESTLE_OP_IOTA ||
         (node->op == PESTLE_OP_BROADCAST_IN_DIM &&
          pestle_type_count(operand_type(node, 0)) == 1);
}

// What is cheaply computed from such values is counted too, |depth| ops at most: a comparison of
// places, a causal mask. Each of the folds that a masked value goes into ends by itself then
// (docs/adr/021), and attention sees which keys its rows see, in each layer that has the mask.
static bool counts(const pestle_node_t* node, int depth) {
  if (reads_no_tensor(node)) return true;
  if (!depth || !node->operand_count || !pestle_fuse_is_cheap(node) ||
      !(pestle_fuse_is_elementwise(node) ||
        node->op == PESTLE_OP_BROADCAST_IN_DIM ||
        node->op == PESTLE_OP_RESHAPE)) {
    return false;
  }
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    const pestle_node_t* from = pestle_node_operand(node, i)->node;
    if (!from || !counts(from, depth - 1)) return false;
  }
  return true;
}

static uint32_t live_operands(const pestle_node_t* node) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    const pestle_node_t* from = pestle_node_operand(node, i)->node;
    if (!from || !counts(from, MAX_COUNTED)) ++count;
  }
  return count;
}

// Whether contractions alone read it: they pack it, or read it where it lies.
static bool is_for_dots(const pestle_fuse_t* f,
                        const pestle_fuse_users_t* users) {
  for (uint32_t i = 0; i < users->count; ++i) {
    if (f->groups[users->groups[i]].kind != PESTLE_FUSE_KIND_DOT) return false;
  }
  return true;
}

// Of a copy in each of its readers, besides what each of them says.
static pestle_fuse_reason_t refuses_cost(const pestle_fuse_t* f,
                                         const pestle_node_t* node,
                                         const pestle_fuse_users_t* users) {
  uint32_t readers = users->count;
  switch (node->op) {
    case PESTLE_OP_TRANSPOSE:
      if (swaps_last(node) && is_for_dots(f, users))
        return PESTLE_FUSE_REASON_NONE;
      break;
    case PESTLE_OP_BROADCAST_IN_DIM:
    case PESTLE_OP_IOTA:
    case PESTLE_OP_SLICE:
    case PESTLE_OP_RESHAPE:
    case PESTLE_OP_CONVERT:
      return PESTLE_FUSE_REASON_NONE;
    default:
      break;
  }
  if (counts(node, MAX_COUNTED)) return PESTLE_FUSE_REASON_NONE;
  if (readers > MAX_COPIES) return PESTLE_FUSE_REASON_MANY_READERS;
  if (!pestle_op_is_scalar((pestle_op_t)node->op) ||
      !pestle_fuse_is_cheap(node)) {
    return PESTLE_FUSE_REASON_COSTLY_COPIES;
  }
  return live_operands(node) > 1 ? PESTLE_FUSE_REASON_COPIES_READ
                                 : PESTLE_FUSE_REASON_NONE;
}

pestle_fuse_reason_t pestle_fuse_refuses_copies(
    const pestle_fuse_t* f, uint32_t item, const pestle_fuse_users_t* users) {
  const pestle_node_t* node = pestle_fuse_node(f, item);
  if (node->result_count != 1) return PESTLE_FUSE_REASON_MANY_RESULTS;
  if (users->outside) return PESTLE_FUSE_REASON_OUTSIDE;
  if (users->many) return PESTLE_FUSE_REASON_MANY_READERS;
  pestle_fuse_reason_t why = refuses_cost(f, node, users);
  for (uint32_t i = 0; i < users->count && !why; ++i) {
    why = pestle_fuse_refuses_producer(f, users->groups[i], item);
  }
  return why;
}

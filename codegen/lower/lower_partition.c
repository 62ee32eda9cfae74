// SPDX-License-Identifier: Apache-2.0
// Which results of a fusion share a kernel, and what of its body each needs.
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "codegen/lower/lower.h"

// --- Groups ---

static bool is_bijective_view(const pestle_node_t* node) {
  return node &&
         (node->op == PESTLE_OP_TRANSPOSE || node->op == PESTLE_OP_RESHAPE);
}

static bool has_reduce(const pestle_block_t* block) {
  for (pestle_node_t* n = block->first; n; n = n->next) {
    switch (pestle_op_info((pestle_op_t)n->op)->fuse) {
      case PESTLE_FUSE_REDUCTION:
      case PESTLE_FUSE_WINDOW:
      case PESTLE_FUSE_CONTRACTION:
        return true;
      default:
        break;
    }
  }
  return false;
}

// Whether all that |block| does is element by element, as its operands lie.
static bool is_plain(const pestle_block_t* block) {
  for (pestle_node_t* n = block->first; n; n = n->next) {
    pestle_fuse_class_t fuse =
        (pestle_fuse_class_t)pestle_op_info((pestle_op_t)n->op)->fuse;
    if (fuse != PESTLE_FUSE_ELEMENTWISE && fuse != PESTLE_FUSE_SOURCE &&
        fuse != PESTLE_FUSE_CONTROL && n->op != PESTLE_OP_CONCATENATE) {
      return false;
    }
  }
  return true;
}

// Where a reduction is, its consumer runs over the reduction's own axes and the views
// after it become part of the write.
static pestle_status_t strip_views(pestle_arena_t* arena, pestle_piece_t* p) {
  size_t count = 0;
  for (pestle_value_t* v = p->value; is_bijective_view(v->node);
       v = pestle_node_operand(v->node, 0)) {
    ++count;
  }
  p->views = PESTLE_ARENA_ARRAY(arena, pestle_node_t*, count ? count : 1);
  if (!p->views) return PESTLE_ERROR(OUT_OF_MEMORY, "lowering a group");
  while (is_bijective_view(p->value->node)) {
    p->views[p->view_count++] = p->value->node;
    p->value = pestle_node_operand(p->value->node, 0);
  }
  return NULL;
}

static bool same_domain(const pestle_value_t* a, const pestle_value_t* b) {
  return a->type->rank == b->type->rank &&
         !memcmp(a->type->dims, b->type->dims,
                 (size_t)a->type->rank * sizeof(int64_t));
}

typedef struct partition_t {
  pestle_arena_t* arena;
  const pestle_node_t* fusion;
  pestle_kernel_group_t* groups;
  uint32_t count;
  uint32_t capacity;
  bool joins;  // large parts of a concatenation, too
} partition_t;

// Room for one piece more: arrays have a power of two of slots.
static bool grow(pestle_arena_t* arena, pestle_kernel_group_t* group) {
  uint32_t n = group->piece_count;
  if (n & (n - 1)) return true;
  pestle_piece_t* more =
      PESTLE_ARENA_ARRAY(arena, pestle_piece_t, n ? 2 * n : 1);
  if (!more) return false;
  if (n) memcpy(more, group->pieces, n * sizeof(*more));
  group->pieces = more;
  return true;
}

// Small parts of a concatenation share a kernel: each alone would cost a launch,
// and a compilation, for a few elements. Where a launch costs more than a lane's two
// copies, large ones do too.
static bool is_joined(const partition_t* part,
                      const pestle_kernel_group_t* group,
                      const pestle_piece_t* piece) {
  enum { SMALL = 1024, MOST = 16, MOST_LARGE = 4 };
  const pestle_piece_t* first = &group->pieces[0];
  bool is_small = pestle_type_count(piece->value->type) <= SMALL;
  return first->concat_dim == piece->concat_dim && first->slot == piece->slot &&
         group->piece_count < (is_small ? MOST : MOST_LARGE) &&
         (is_small || part->joins) && same_domain(first->value, piece->value);
}

static pestle_kernel_group_t* group_for(partition_t* part,
                                        const pestle_piece_t* piece) {
  if (piece->concat_dim >= 0 && part->count &&
      is_joined(part, &part->groups[part->count - 1], piece)) {
    return &part->groups[part->count - 1];
  }
  for (uint32_t g = 0; g < part->count && piece->concat_dim < 0; ++g) {
    pestle_kernel_group_t* group = &part->groups[g];
    if (group->pieces[0].concat_dim < 0 &&
        same_domain(group->pieces[0].value, piece->value)) {
      return group;
    }
  }
  pestle_kernel_group_t* group = &part->groups[part->count++];
  *group = (pestle_kernel_group_t){0};
  return group;
}

static pestle_status_t add_piece(partition_t* part, pestle_piece_t piece) {
  if (!pestle_type_count(piece.value->type)) return NULL;  // nothing to write
  pestle_kernel_group_t* group = group_for(part, &piece);
  if (!grow(part->arena, group)) {
    return PESTLE_ERROR(OUT_OF_MEMORY, "lowering a group");
  }
  group->pieces[group->piece_count++] = piece;
  return NULL;
}

static pestle_status_t add_result(partition_t* part, bool reductions,
                                  uint32_t slot, pestle_value_t* value) {
  pestle_piece_t piece = {.slot = slot, .value = value, .concat_dim = -1};
  if (reductions || (value->node && value->node->op == PESTLE_OP_RESHAPE)) {
    PESTLE_TRY(strip_views(part->arena, &piece));
  }
  pestle_node_t* node = piece.value->node;
  if (!node || node->op != PESTLE_OP_CONCATENATE) {
    return add_piece(part, piece);
  }
  piece.concat_dim = (int32_t)PESTLE_NODE_I64(node, dimension);
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    piece.value = pestle_node_operand(node, i);
    PESTLE_TRY(add_piece(part, piece));
    piece.concat_offset += piece.value->type->dims[piece.concat_dim];
    if (piece.concat_offset > 1 && PESTLE_FAULT(wrong_concatenation)) {
      --piece.concat_offset;
    }
  }
  return NULL;
}

// --- What a group needs ---

typedef struct needs_t {
  uint64_t group;  // node->scratch and argument->scratch of what is in already
  PESTLE_VEC(pestle_node_t*) nodes;
  PESTLE_VEC(uint32_t) arguments;
} needs_t;

static bool need(needs_t* n, pestle_value_t* value) {
  uint64_t* mark = value->node ? &value->node->scratch : &value->scratch;
  if (*mark == n->group) return true;
  *mark = n->group;
  return value->node ? pestle_vec_push(&n->nodes, value->node)
                     : pestle_vec_push(&n->arguments, value->index);
}

static int by_position(const void* a, const void* b) {
  uint64_t x = (*(pestle_node_t* const*)a)->results[0].scratch;
  uint64_t y = (*(pestle_node_t* const*)b)->results[0].scratch;
  return (x > y) - (x < y);
}

static int by_number(const void* a, const void* b) {
  uint32_t x = *(const uint32_t*)a, y = *(const uint32_t*)b;
  return (x > y) - (x < y);
}

// In the order of the body and of the operands.
static pestle_status_t take_needs(needs_t* n, pestle_arena_t* arena,
                                  pestle_kernel_group_t* group) {
  size_t nodes = n->nodes.size, arguments = n->arguments.size;
  if (nodes) {
    qsort(n->nodes.data, nodes, sizeof(*n->nodes.data), by_position);
    group->nodes =
        pestle_arena_copy(arena, n->nodes.data, nodes * sizeof(*group->nodes),
                          _Alignof(pestle_node_t*));
  }
  if (arguments) {
    qsort(n->arguments.data, arguments, sizeof(uint32_t), by_number);
    group->arguments =
        pestle_arena_copy(arena, n->arguments.data,
                          arguments * sizeof(uint32_t), _Alignof(uint32_t));
  }
  if ((nodes && !group->nodes) || (arguments && !group->arguments)) {
    return PESTLE_ERROR(OUT_OF_MEMORY, "lowering a group");
  }
  group->node_count = (uint32_t)nodes;
  group->argument_count = (uint32_t)arguments;
  return NULL;
}

// What the group's results end at.
static bool need_ends(needs_t* n, const pestle_node_t* fusion,
                      const pestle_kernel_group_t* group) {
  pestle_i64s_t ends = PESTLE_NODE_I64S(fusion, ends);
  const pestle_block_t* body = pestle_node_body(fusion, 0);
  bool ok = true;
  for (size_t i = 0; i < ends.count; i += 4) {
    for (uint32_t p = 0; p < group->piece_count && ok; ++p) {
      if (group->pieces[p].slot != ends.data[i]) continue;
      ok = need(n, body->arguments[ends.data[i + 2]]);
    }
  }
  return ok;
}

static pestle_status_t needs_of(needs_t* n, const pestle_node_t* fusion,
                                pestle_arena_t* arena,
                                pestle_kernel_group_t* group) {
  bool ok = true;
  pestle_vec_clear(&n->nodes);
  pestle_vec_clear(&n->arguments);
  for (uint32_t p = 0; p < group->piece_count; ++p) {
    ok = ok && need(n, group->pieces[p].value);
  }
  for (size_t i = 0; i < n->nodes.size && ok; ++i) {
    const pestle_node_t* node = n->nodes.data[i];
    for (uint32_t o = 0; o < node->operand_count; ++o) {
      ok = ok && need(n, pestle_node_operand(node, o));
    }
  }
  ok = ok && need_ends(n, fusion, group);
  if (!ok) return PESTLE_ERROR(OUT_OF_MEMORY, "lowering a group");
  return take_needs(n, arena, group);
}

// Each group's own nodes and operands, so that hundreds of groups (a wide
// concatenation has one an operand) do not look at all of the fusion each.
static pestle_status_t find_needs(partition_t* part,
                                  const pestle_block_t* body) {
  uint64_t position = 0;
  for (uint32_t i = 0; i < body->argument_count; ++i) {
    body->arguments[i]->scratch = 0;
  }
  for (pestle_node_t* n = body->first; n; n = n->next) {
    n->scratch = 0;
    if (n->result_count) n->results[0].scratch = position++;
  }
  needs_t needs = {0};
  pestle_vec_init(&needs.nodes, part->arena->allocator);
  pestle_vec_init(&needs.arguments, part->arena->allocator);
  pestle_status_t status = NULL;
  for (uint32_t g = 0; g < part->count && !status; ++g) {
    needs.group = g + 1;
    status = needs_of(&needs, part->fusion, part->arena, &part->groups[g]);
  }
  pestle_vec_deinit(&needs.nodes);
  pestle_vec_deinit(&needs.arguments);
  return status;
}

// --- Partition ---

pestle_status_t pestle_lower_partition(pestle_arena_t* arena,
                                       const pestle_node_t* fusion, bool joins,
                                       pestle_kernel_group_t** out_groups,
                                       uint32_t* out_count) {
  pestle_block_t* body = pestle_node_body(fusion, 0);
  const pestle_node_t* ret = body->last;
  partition_t part = {.arena = arena,
                      .fusion = fusion,
                      .capacity = ret->operand_count,
                      .joins = joins && is_plain(body)};
  for (uint32_t i = 0; i < ret->operand_count; ++i) {
    // A concatenation may stand behind views: count the widest possibility.
    pestle_value_t* v = pestle_node_operand(ret, i);
    while (is_bijective_view(v->node))
      v = pestle_node_operand(v->node, 0);
    if (v->node && v->node->op == PESTLE_OP_CONCATENATE) {
      part.capacity += v->node->operand_count;
    }
  }
  part.groups = PESTLE_ARENA_ARRAY(arena, pestle_kernel_group_t,
                                   part.capacity ? part.capacity : 1);
  if (!part.groups) return PESTLE_ERROR(OUT_OF_MEMORY, "lowering a group");
  bool reductions = has_reduce(body);
  for (uint32_t i = 0; i < ret->operand_count; ++i) {
    PESTLE_TRY(add_result(&part, reductions, i, pestle_node_operand(ret, i)));
  }
  PESTLE_TRY(find_needs(&part, body));
  *out_groups = part.groups;
  *out_count = part.count;
  return NULL;
}

// SPDX-License-Identifier: Apache-2.0
// Collectives that meet for more than they need:
//
//   slice of an all_reduce, each process its own part   ->   reduce_scatter
//   slice of an all_gather, each process its own part   ->   what it gave
//   all_gather of a reduce_scatter                      ->   all_reduce
//   all_gather of such slices of what all have alike    ->   what all have
//   all_to_all of the all_to_all the other way round    ->   what it took
//   all_reduce %a + all_reduce %b                       ->   all_reduce (%a + %b)
//   all_reduce of what all have alike                   ->   as many times that
//   collective_permute of each process to itself        ->   what it took
//
// Sums of floats are grouped anew only where numerics allow it; in `fast` alone n times
// a number is for the sum of n.
#include <string.h>

#include "base/mem.h"
#include "ir/collective.h"
#include "passes/util.h"

typedef pestle_value_t pv_t;
typedef pestle_node_t node_t;

enum { DEPTH = 16, MOST_RANKS = 4096 };

typedef struct work_t {
  pestle_pass_context_t* ctx;
  pestle_world_shape_t world;
  bool strict;
  bool changed;
} work_t;

// --- Groups ---

// Groups of equally many members, and every process in one; false: not so.
static bool groups_of(const work_t* w, const node_t* n, pestle_groups_t* out) {
  pestle_status_t status = pestle_collective_groups(n, w->ctx->scratch, out);
  bool whole = !status && out->count;
  pestle_status_release(status);
  uint32_t members = whole ? pestle_groups_members(out, 0) : 0;
  for (uint32_t i = 1; whole && i < out->count; ++i)
    whole = pestle_groups_members(out, i) == members;
  return whole && members && members == out->size &&
         (uint64_t)out->count * members ==
             (uint64_t)w->world.replicas * (uint64_t)w->world.partitions;
}

static bool same_groups(const pestle_groups_t* a, const pestle_groups_t* b) {
  return a->count == b->count && a->size == b->size &&
         !memcmp(a->ranks, b->ranks,
                 (size_t)a->count * a->size * sizeof(*a->ranks));
}

// Whether the members of each group of |inner| are together in a group of |outer|.
static bool holds(const pestle_groups_t* outer, const pestle_groups_t* inner) {
  for (uint32_t row = 0; row < inner->count; ++row) {
    uint32_t first = 0, other, place;
    for (uint32_t i = 0; i < inner->size; ++i) {
      int32_t rank = inner->ranks[(size_t)row * inner->size + i];
      if (!pestle_groups_find(outer, rank, i ? &other : &first, &place))
        return false;
      if (i && other != first) return false;
    }
  }
  return true;
}

static bool is_meeting(const node_t* n, pestle_op_t op) {
  return n && n->op == op && n->operand_count == 1;
}

static pestle_op_t op_of(const node_t* n) {
  return pestle_block_reduce_op(pestle_node_body(n, 0));
}

// --- Numbers that follow from which process it is ---

static bool number_at(const work_t* w, const pv_t* v, int32_t process,
                      int depth, int64_t* out);

static bool number_of_pair(const work_t* w, const node_t* n, int32_t process,
                           int depth, int64_t* out) {
  int64_t a, b;
  if (!number_at(w, pestle_node_operand(n, 0), process, depth, &a) ||
      !number_at(w, pestle_node_operand(n, 1), process, depth, &b))
    return false;
  // Numbers of places are small: what is not, is none.
  if (a < 0 || b < 0 || a > INT32_MAX || b > INT32_MAX) return false;
  switch ((int)n->op) {
    case PESTLE_OP_ADD:
      *out = a + b;
      break;
    case PESTLE_OP_SUBTRACT:
      *out = a - b;
      break;
    case PESTLE_OP_MULTIPLY:
      *out = a * b;
      break;
    case PESTLE_OP_DIVIDE:
      if (!b) return false;
      *out = a / b;
      break;
    case PESTLE_OP_REMAINDER:
      if (!b) return false;
      *out = a % b;
      break;
    default:
      return false;
  }
  return *out >= 0 && *out <= INT32_MAX;
}

// An entry of a table that the process' number picks.
static bool number_in_table(const work_t* w, const node_t* n, int32_t process,
                            int depth, int64_t* out) {
  const pestle_elements_t* e = pestle_value_constant(pestle_node_operand(n, 0));
  const pestle_type_t* type = n->results[0].type;
  int64_t at;
  if (!e || e->type.rank != 1 || type->dims[0] != 1 ||
      !number_at(w, pestle_node_operand(n, 1), process, depth, &at))
    return false;
  if (at > e->type.dims[0] - 1) at = e->type.dims[0] - 1;
  *out = pestle_pass_element_i64(e, e->splat ? 0 : (size_t)at);
  return true;
}

static bool number_at(const work_t* w, const pv_t* v, int32_t process,
                      int depth, int64_t* out) {
  const node_t* n = v->node;
  if (!n || !depth || !pestle_dtype_is(v->type->dtype, PESTLE_KIND_INT) ||
      pestle_type_count(v->type) != 1)
    return false;
  // What every type of that size has.
  int64_t most = pestle_dtype_size(v->type->dtype) < 4 ? 7 : INT32_MAX;
  switch ((int)n->op) {
    case PESTLE_OP_PARTITION_ID:
      *out = process % w->world.partitions;
      return true;
    case PESTLE_OP_REPLICA_ID:
      *out = process / w->world.partitions;
      return true;
    case PESTLE_OP_CONSTANT:
      *out = pestle_pass_element_i64(PESTLE_NODE_ELEMENTS(n), 0);
      return true;
    case PESTLE_OP_CONSTANT_PART: {
      // Of one element each.
      size_t at = (size_t)(process % w->world.partitions);
      int64_t part = PESTLE_NODE_I64S(n, parts).data[at];
      *out = pestle_pass_element_i64(PESTLE_NODE_ELEMENTS(n), (size_t)part);
      return true;
    }
    case PESTLE_OP_RESHAPE:
    case PESTLE_OP_BROADCAST_IN_DIM:
      return number_at(w, pestle_node_operand(n, 0), process, depth - 1, out);
    case PESTLE_OP_CONVERT:
      return number_at(w, pestle_node_operand(n, 0), process, depth - 1, out) &&
             *out >= 0 && *out <= most;
    case PESTLE_OP_DYNAMIC_SLICE:
      return n->operand_count == 2 &&
             number_in_table(w, n, process, depth - 1, out);
    case PESTLE_OP_ADD:
    case PESTLE_OP_SUBTRACT:
    case PESTLE_OP_MULTIPLY:
    case PESTLE_OP_DIVIDE:
    case PESTLE_OP_REMAINDER:
      return number_of_pair(w, n, process, depth - 1, out) && *out <= most;
    default:
      return false;
  }
}

// The dim along which |n|, a slice, gives the i-th member of each group part i; -1: it
// is no such slice.
static int sliced_dim(const work_t* w, const node_t* n,
                      const pestle_groups_t* groups) {
  const pestle_type_t* whole = pestle_node_operand(n, 0)->type;
  const pestle_type_t* part = n->results[0].type;
  int dim = -1;
  int64_t at;
  for (int32_t d = 0; d < whole->rank; ++d) {
    if (part->dims[d] == whole->dims[d]) continue;
    if (dim >= 0) return -1;
    dim = d;
  }
  if (dim < 0 || part->dims[dim] * groups->size != whole->dims[dim]) return -1;
  // Along the others it is all, wherever it is said to begin: that is clamped.
  const pv_t* index = pestle_node_operand(n, (uint32_t)dim + 1);
  for (uint32_t i = 0; i < groups->count * groups->size; ++i) {
    int32_t process = groups->ranks[i];
    if (!number_at(w, index, process, DEPTH, &at) ||
        at != (int64_t)(i % groups->size) * part->dims[dim])
      return -1;
  }
  return dim;
}

// --- What all members have alike ---

static bool is_alike(const work_t* w, const pv_t* v,
                     const pestle_groups_t* groups, int depth) {
  const node_t* n = v->node;
  pestle_groups_t other;
  if (!n || !depth) return false;
  switch ((int)n->op) {
    case PESTLE_OP_PARTITION_ID:
    case PESTLE_OP_REPLICA_ID:
    case PESTLE_OP_ALL_TO_ALL:
    case PESTLE_OP_REDUCE_SCATTER:
    case PESTLE_OP_COLLECTIVE_PERMUTE:
    case PESTLE_OP_COLLECTIVE_BROADCAST:
      return false;
    case PESTLE_OP_ALL_REDUCE:
    case PESTLE_OP_ALL_GATHER:
      return groups_of(w, n, &other) && holds(&other, groups);
    case PESTLE_OP_CONSTANT:
    case PESTLE_OP_IOTA:
      return true;
    default:
      break;
  }
  const pestle_op_info_t* info = pestle_pass_info(n);
  bool plain =
      info->fuse == PESTLE_FUSE_ELEMENTWISE || info->fuse == PESTLE_FUSE_VIEW ||
      pestle_op_is_scalar((pestle_op_t)n->op) || n->op == PESTLE_OP_DOT_GENERAL;
  if (!plain || n->region_count || pestle_node_has_effect(n)) return false;
  for (uint32_t i = 0; i < n->operand_count; ++i) {
    if (!is_alike(w, pestle_node_operand(n, i), groups, depth - 1))
      return false;
  }
  return n->operand_count > 0;
}

// --- Making ---

static bool is_float(const pv_t* v) {
  return pestle_dtype_is(v->type->dtype, PESTLE_KIND_FLOAT) ||
         pestle_type_is_complex(v->type);
}

// Ops that give the same whatever the order.
static bool has_no_order(pestle_op_t op, const pv_t* v) {
  switch ((int)op) {
    case PESTLE_OP_ADD:
    case PESTLE_OP_MULTIPLY:
      return !is_float(v);
    case PESTLE_OP_MINIMUM:
    case PESTLE_OP_MAXIMUM:
    case PESTLE_OP_AND:
    case PESTLE_OP_OR:
      return true;
    default:
      return false;
  }
}

static bool is_known(pestle_op_t op) {
  return op == PESTLE_OP_ADD || op == PESTLE_OP_MULTIPLY ||
         op == PESTLE_OP_MINIMUM || op == PESTLE_OP_MAXIMUM ||
         op == PESTLE_OP_AND || op == PESTLE_OP_OR;
}

// --- Rules: what replaces the one result, or NULL ---

static pv_t* slice_of(const work_t* w, pestle_formula_t* f, node_t* n) {
  pestle_groups_t groups;
  pv_t* whole = pestle_node_operand(n, 0);
  node_t* from = whole->node;
  bool sum = is_meeting(from, PESTLE_OP_ALL_REDUCE);
  if (!sum && !is_meeting(from, PESTLE_OP_ALL_GATHER)) return NULL;
  if (!groups_of(w, from, &groups)) return NULL;
  int dim = sliced_dim(w, n, &groups);
  if (dim < 0) return NULL;
  if (!sum) {
    return PESTLE_NODE_I64(from, all_gather_dim) == dim
               ? pestle_node_operand(from, 0)
               : NULL;
  }
  if (whole->use_count != 1 || from->block != n->block ||
      !is_known(op_of(from))) {
    return NULL;
  }
  pestle_attr_t scatter = PESTLE_SET_I64(scatter_dimension, dim);
  return pestle_pass_meet(f, PESTLE_OP_REDUCE_SCATTER, from,
                          pestle_node_operand(from, 0), &scatter,
                          n->results[0].type);
}

static pv_t* gather_of(const work_t* w, pestle_formula_t* f, node_t* n) {
  pestle_groups_t groups, other;
  pv_t* part = pestle_node_operand(n, 0);
  node_t* from = part->node;
  int64_t dim = PESTLE_NODE_I64(n, all_gather_dim);
  if (!from || !groups_of(w, n, &groups)) return NULL;
  if (is_meeting(from, PESTLE_OP_REDUCE_SCATTER)) {
    if (part->use_count != 1 || from->block != n->block ||
        PESTLE_NODE_I64(from, scatter_dimension) != dim ||
        !is_known(op_of(from)))
      return NULL;
    if (!groups_of(w, from, &other) || !same_groups(&groups, &other))
      return NULL;
    return pestle_pass_meet(f, PESTLE_OP_ALL_REDUCE, from,
                            pestle_node_operand(from, 0), NULL, NULL);
  }
  if (from->op != PESTLE_OP_DYNAMIC_SLICE ||
      sliced_dim(w, from, &groups) != dim) {
    return NULL;
  }
  pv_t* whole = pestle_node_operand(from, 0);
  return is_alike(w, whole, &groups, DEPTH) ? whole : NULL;
}

static pv_t* exchange_of(const work_t* w, node_t* n) {
  pestle_groups_t groups, other;
  node_t* from = pestle_node_operand(n, 0)->node;
  if (!is_meeting(from, PESTLE_OP_ALL_TO_ALL) || !groups_of(w, n, &groups) ||
      !groups_of(w, from, &other) || !same_groups(&groups, &other)) {
    return NULL;
  }
  bool back =
      PESTLE_NODE_I64(n, split_dimension) ==
          PESTLE_NODE_I64(from, concat_dimension) &&
      PESTLE_NODE_I64(n, concat_dimension) ==
          PESTLE_NODE_I64(from, split_dimension) &&
      PESTLE_NODE_I64(n, split_count) == PESTLE_NODE_I64(from, split_count);
  return back ? pestle_node_operand(from, 0) : NULL;
}

// |a| as often as there are members.
static pv_t* times(pestle_formula_t* f, pv_t* a, uint32_t members) {
  pestle_type_t type = *a->type;
  return pestle_f_multiply(f, a, pestle_f_number(f, &type, (double)members));
}

static pv_t* sum_of_alike(const work_t* w, pestle_formula_t* f, node_t* n) {
  pestle_groups_t groups;
  pv_t* a = pestle_node_operand(n, 0);
  pestle_op_t op = op_of(n);
  if (!is_known(op) || op == PESTLE_OP_MULTIPLY || !groups_of(w, n, &groups) ||
      !is_alike(w, a, &groups, DEPTH)) {
    return NULL;
  }
  if (op != PESTLE_OP_ADD) return a;
  if (pestle_type_is_complex(a->type) || a->type->dtype == PESTLE_I1)
    return NULL;
  // Sums in the order of the ranks, which docs/world.md promises, round otherwise.
  if (is_float(a) && w->ctx->options->numerics != PESTLE_NUMERICS_FAST)
    return NULL;
  if (!is_float(a) &&
      (pestle_dtype_size(a->type->dtype) < 4 || groups.size > MOST_RANKS)) {
    return NULL;
  }
  return times(f, a, groups.size);
}

static pv_t* pair_of(const work_t* w, pestle_formula_t* f, node_t* n) {
  pestle_groups_t groups, other;
  pv_t *a = pestle_node_operand(n, 0), *b = pestle_node_operand(n, 1);
  if (a == b || !is_meeting(a->node, PESTLE_OP_ALL_REDUCE) ||
      !is_meeting(b->node, PESTLE_OP_ALL_REDUCE) || a->use_count != 1 ||
      b->use_count != 1 || a->node->block != n->block ||
      b->node->block != n->block) {
    return NULL;
  }
  pestle_op_t op = op_of(a->node);
  if (op != n->op || op_of(b->node) != op) return NULL;
  if (!has_no_order(op, a) && (w->strict || op != PESTLE_OP_ADD)) return NULL;
  if (!groups_of(w, a->node, &groups) || !groups_of(w, b->node, &other) ||
      !same_groups(&groups, &other)) {
    return NULL;
  }
  pv_t* both = pestle_f_binary(f, op, pestle_node_operand(a->node, 0),
                               pestle_node_operand(b->node, 0));
  return both ? pestle_pass_meet(f, PESTLE_OP_ALL_REDUCE, a->node, both, NULL,
                                 NULL)
              : NULL;
}

static pv_t* permute_of(const work_t* w, node_t* n) {
  pestle_groups_t pairs;
  pestle_status_t status = pestle_collective_groups(n, w->ctx->scratch, &pairs);
  bool stays = !status && (int64_t)pairs.count ==
                              (int64_t)w->world.replicas * w->world.partitions;
  pestle_status_release(status);
  for (uint32_t i = 0; stays && i < pairs.count; ++i)
    stays = pairs.ranks[2 * (size_t)i] == pairs.ranks[2 * (size_t)i + 1];
  return stays ? pestle_node_operand(n, 0) : NULL;
}

static pv_t* simpler(const work_t* w, pestle_formula_t* f, node_t* n) {
  switch ((int)n->op) {
    case PESTLE_OP_DYNAMIC_SLICE:
      return slice_of(w, f, n);
    case PESTLE_OP_ALL_GATHER:
      return n->operand_count == 1 ? gather_of(w, f, n) : NULL;
    case PESTLE_OP_ALL_TO_ALL:
      return n->operand_count == 1 ? exchange_of(w, n) : NULL;
    case PESTLE_OP_ALL_REDUCE:
      return n->operand_count == 1 ? sum_of_alike(w, f, n) : NULL;
    case PESTLE_OP_COLLECTIVE_PERMUTE:
      return permute_of(w, n);
    case PESTLE_OP_ADD:
    case PESTLE_OP_MULTIPLY:
    case PESTLE_OP_MINIMUM:
    case PESTLE_OP_MAXIMUM:
    case PESTLE_OP_AND:
    case PESTLE_OP_OR:
      return pair_of(w, f, n);
    default:
      return NULL;
  }
}

// --- The walk ---

static pestle_status_t walk_block(void* user, pestle_module_t* module,
                                  pestle_block_t* block) {
  work_t* w = user;
  (void)module;
  for (node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    if (n->result_count != 1) continue;
    pestle_formula_t f = pestle_formula_before(n);
    node_t* from = n->operand_count ? pestle_node_operand(n, 0)->node : NULL;
    node_t* other =
        n->operand_count > 1 ? pestle_node_operand(n, 1)->node : NULL;
    pv_t* made = simpler(w, &f, n);
    PESTLE_TRY(f.status);
    if (!made) continue;
    pestle_pass_replace(n, &made);
    // One that nobody needs is not to be combined with others.
    node_t* sources[] = {from, other};
    for (int i = 0; i < 2; ++i) {
      node_t* source = sources[i];
      if (source && source->result_count == 1 && source->block &&
          !source->results[0].use_count && source != sources[!i] &&
          pestle_pass_info(source)->fuse == PESTLE_FUSE_COLLECTIVE)
        pestle_node_erase(source);
    }
    w->changed = true;
  }
  return NULL;
}

pestle_status_t pestle_pass_simplify_collectives(pestle_pass_context_t* ctx,
                                                 pestle_module_t* module,
                                                 bool* out_changed) {
  work_t w = {.ctx = ctx,
              .world = pestle_module_world(module),
              .strict = ctx->options->numerics == PESTLE_NUMERICS_STRICT};
  int64_t processes = (int64_t)w.world.replicas * w.world.partitions;
  if (processes == 1 || processes > MOST_RANKS) return NULL;
  PESTLE_TRY(pestle_pass_each_block(module, walk_block, &w));
  *out_changed |= w.changed;
  return NULL;
}

// SPDX-License-Identifier: Apache-2.0
// Collectives become those that transports have: parts lie one behind the other along
// a first axis, reductions are by one op, numbers are real, groups have several
// members.
//
//   all_gather %x dim = 1       %a = reshape %x          // [3, 5] -> [1, 3, 5]
//                               %b = all_gather %a dim = 0          // [n, 3, 5]
//                          ->   %c = transpose %b                   // [3, n, 5]
//                               reshape %c                          // [3, n 5]
//
//   all_reduce %x (a - b)       %b = all_gather %a dim = 0          // [n, 3, 5]
//                          ->   %c = map(a - b) of part 0 and part 1
//                               ... with each further part in the order of the group
//
// The moves are views that kernels around them take in. Devices other than CPUs meet by
// transports that combine less (NCCL: no numbers of 16 bits, no and / or, neither the
// least nor the greatest of floats), in an order of their own: there a strict sum of
// three and more, and what they lack, is gathered and combined in the same way.
#include <string.h>

#include "base/mem.h"
#include "ir/collective.h"
#include "ir/copy.h"
#include "passes/util.h"

typedef pestle_value_t pv_t;

typedef struct expand_t {
  pestle_pass_context_t* ctx;
  pestle_formula_t f;
  pestle_node_t* node;
  pestle_groups_t groups;
  int64_t members;  // of each group; 0: they differ
  pv_t** results;
} expand_t;

// --- Questions ---

// What transports of devices combine, if the members' order is kept.
static bool device_combines(const pestle_pass_context_t* ctx, pestle_op_t op,
                            pestle_dtype_t dtype, int64_t members) {
  bool sum = op == PESTLE_OP_ADD || op == PESTLE_OP_MULTIPLY;
  bool strict = ctx->options->numerics == PESTLE_NUMERICS_STRICT;
  switch ((int)dtype) {
    case PESTLE_I1:
      return true;
    case PESTLE_F64:
    case PESTLE_F32:
    case PESTLE_F16:
    case PESTLE_BF16:
      return sum && !(strict && members > 2);
    case PESTLE_I8:
    case PESTLE_U8:
    case PESTLE_I32:
    case PESTLE_U32:
    case PESTLE_I64:
    case PESTLE_U64:
      return op != PESTLE_OP_AND && op != PESTLE_OP_OR;
    default:
      return false;
  }
}

// |members| 0: groups that differ in size, which are not combined here.
static bool is_simple(const pestle_pass_context_t* ctx,
                      const pestle_node_t* node, int64_t members) {
  pestle_op_t op = pestle_block_reduce_op(pestle_node_body(node, 0));
  const pestle_type_t* type = pestle_node_operand(node, 0)->type;
  if (ctx->caps->device_type != PESTLE_DEVICE_CPU && members &&
      !pestle_type_is_complex(type) &&
      !device_combines(ctx, op, (pestle_dtype_t)type->dtype, members)) {
    return false;
  }
  switch ((int)op) {
    case PESTLE_OP_ADD:
      return true;
    case PESTLE_OP_MULTIPLY:
    case PESTLE_OP_MINIMUM:
    case PESTLE_OP_MAXIMUM:
    case PESTLE_OP_AND:
    case PESTLE_OP_OR:
      return !pestle_type_is_complex(type);
    default:
      return false;
  }
}

static int64_t members_of(const pestle_groups_t* groups) {
  int64_t members = groups->count ? pestle_groups_members(groups, 0) : 0;
  for (uint32_t i = 1; i < groups->count; ++i) {
    if (pestle_groups_members(groups, i) != members) return 0;
  }
  return members;
}

// --- The op again ---

// |x->node|'s op with |operands|, of which there are |count|, and |types| for results.
static pestle_node_t* again(expand_t* x, pestle_op_t op, pv_t* const* operands,
                            uint32_t count, const pestle_attr_t* dim,
                            const pestle_type_t* types, bool region) {
  pestle_attr_t attrs[PESTLE_MAX_ATTRS];
  size_t rows, n = 0;
  const pestle_attr_row_t* row = pestle_op_attr_rows(op, &rows);
  pestle_region_t* body = NULL;
  if (x->f.status) return NULL;
  for (size_t i = 0; i < rows; ++i) {
    if (dim && row[i].name == dim->name) continue;
    const pestle_attr_t* a =
        pestle_node_attr(x->node, (pestle_attr_name_t)row[i].name);
    if (a->name == row[i].name && a->kind == row[i].kind) attrs[n++] = *a;
  }
  if (dim) attrs[n++] = *dim;
  if (region) {
    pestle_copier_t copier;
    pestle_copier_init(pestle_context_allocator(x->ctx->context), x->f.builder,
                       &copier);
    x->f.status = pestle_copier_region(&copier, x->node->regions[0], &body);
    pestle_copier_deinit(&copier);
    if (x->f.status) return NULL;
  }
  return pestle_f_node(&x->f, &(pestle_node_spec_t){.op = op,
                                                    .operands = operands,
                                                    .operand_count = count,
                                                    .attrs = attrs,
                                                    .attr_count = n,
                                                    .regions = &body,
                                                    .region_count = region,
                                                    .type = types,
                                                    .types = types,
                                                    .type_count = count,
                                                    .share_elements = true});
}

static pv_t* first_of(pestle_node_t* node) {
  return node ? &node->results[0] : NULL;
}

// |a| as [1, ...].
static pv_t* lift(expand_t* x, pv_t* a) {
  pestle_type_t type = *a->type;
  if (type.rank == PESTLE_MAX_RANK) {
    return pestle_f_fail(
        &x->f,
        pestle_node_error(x->node, PESTLE_STATUS_UNSUPPORTED,
                          "its parts need one axis more than the %d that "
                          "tensors have",
                          PESTLE_MAX_RANK));
  }
  memmove(type.dims + 1, type.dims, (size_t)type.rank * sizeof(*type.dims));
  type.dims[0] = 1;
  ++type.rank;
  return pestle_f_reshape_to(&x->f, a, &type);
}

// The members' |a|, [n, ...].
static pv_t* gather(expand_t* x, pv_t* a) {
  pestle_attr_t dim = PESTLE_SET_I64(all_gather_dim, 0);
  pv_t* one = lift(x, a);
  if (!one) return NULL;
  pestle_type_t type = *one->type;
  type.dims[0] = x->members;
  return first_of(again(x, PESTLE_OP_ALL_GATHER, &one, 1, &dim, &type, false));
}

// --- Moves of the parts ---

// [.., n k, ..] -> [n, .., k, ..], the axis at |axis|.
static pv_t* cut(expand_t* x, pv_t* a, int64_t axis, int64_t n) {
  if (!a) return NULL;
  pestle_type_t type = *a->type;
  if (type.rank == PESTLE_MAX_RANK) return lift(x, a);  // fails
  int64_t order[PESTLE_MAX_RANK];
  memmove(type.dims + axis + 1, type.dims + axis,
          (size_t)(type.rank - axis) * sizeof(*type.dims));
  type.dims[axis] = n;
  type.dims[axis + 1] /= n;
  ++type.rank;
  a = pestle_f_reshape_to(&x->f, a, &type);
  for (int32_t i = 0; i < type.rank; ++i)
    order[i] = i == 0 ? axis : (i <= axis ? i - 1 : i);
  return axis ? pestle_f_transpose(&x->f, a, order) : a;
}

// [n, .., k, ..] -> [.., n k, ..]: the parts lie along |axis|.
static pv_t* join(expand_t* x, pv_t* a, int64_t axis) {
  if (!a) return NULL;
  int64_t order[PESTLE_MAX_RANK];
  int32_t rank = a->type->rank;
  for (int32_t i = 0; i < rank; ++i)
    order[i] = i < axis ? i + 1 : (i == axis ? 0 : i);
  if (axis) a = pestle_f_transpose(&x->f, a, order);
  if (!a) return NULL;
  pestle_type_t type = *a->type;
  type.dims[axis] *= type.dims[axis + 1];
  memmove(type.dims + axis + 1, type.dims + axis + 2,
          (size_t)(rank - axis - 2) * sizeof(*type.dims));
  --type.rank;
  return pestle_f_reshape_to(&x->f, a, &type);
}

// --- Complex numbers ---

static bool is_complex(const pv_t* value) {
  return pestle_type_is_complex(value->type);
}

typedef pv_t* (*part_fn_t)(expand_t* x, pv_t* a);

// |fn| of a real tensor, or of each part of a complex one.
static pv_t* each_part(expand_t* x, pv_t* a, part_fn_t fn) {
  if (!a || !is_complex(a)) return a ? fn(x, a) : NULL;
  pv_t* parts[2];
  parts[0] = fn(x, pestle_f_make(&x->f, PESTLE_OP_REAL, &a, 1, NULL, 0, NULL));
  parts[1] = fn(x, pestle_f_make(&x->f, PESTLE_OP_IMAG, &a, 1, NULL, 0, NULL));
  if (!parts[0] || !parts[1]) return NULL;
  return pestle_f_make(&x->f, PESTLE_OP_COMPLEX, parts, 2, NULL, 0, NULL);
}

// --- Reductions ---

// By an op that transports have, of one real tensor; a sum of complex numbers is one
// of each part.
static pv_t* reduce_simple(expand_t* x, pv_t* a, pestle_op_t op,
                           const pestle_attr_t* dim,
                           const pestle_type_t* type) {
  return pestle_pass_meet(&x->f, op, x->node, a, dim, type);
}

static pv_t* all_reduce_part(expand_t* x, pv_t* a) {
  return a ? reduce_simple(x, a, PESTLE_OP_ALL_REDUCE, NULL, NULL) : NULL;
}

// [n, ...] -> [...], for each member its own.
static pv_t* scatter_part(expand_t* x, pv_t* a) {
  if (!a) return NULL;
  pestle_attr_t dim = PESTLE_SET_I64(scatter_dimension, 0);
  pestle_type_t type = *a->type;
  type.dims[0] = 1;
  pv_t* y = reduce_simple(x, a, PESTLE_OP_REDUCE_SCATTER, &dim, &type);
  if (!y) return NULL;
  type = *y->type;
  memmove(type.dims, type.dims + 1,
          (size_t)(type.rank - 1) * sizeof(*type.dims));
  --type.rank;
  return pestle_f_reshape_to(&x->f, y, &type);
}

static pv_t* map_pair(expand_t* x, pv_t* a, pv_t* b) {
  pestle_region_t* body = NULL;
  pestle_copier_t copier;
  pv_t* operands[2] = {a, b};
  int64_t axes[PESTLE_MAX_RANK];
  if (!a || !b) return NULL;
  for (int32_t i = 0; i < a->type->rank; ++i)
    axes[i] = i;
  pestle_attr_t dims = PESTLE_SET_I64S(dimensions, axes, a->type->rank);
  pestle_copier_init(pestle_context_allocator(x->ctx->context), x->f.builder,
                     &copier);
  x->f.status = pestle_copier_region(&copier, x->node->regions[0], &body);
  pestle_copier_deinit(&copier);
  if (x->f.status) return NULL;
  return pestle_f_emit(&x->f, &(pestle_node_spec_t){.op = PESTLE_OP_MAP,
                                                    .operands = operands,
                                                    .operand_count = 2,
                                                    .attrs = &dims,
                                                    .attr_count = 1,
                                                    .regions = &body,
                                                    .region_count = 1});
}

// Narrow floats are combined in f32 and rounded once, as transports do.
static bool is_narrow(const expand_t* x, const pv_t* a) {
  pestle_op_t op = pestle_block_reduce_op(pestle_node_body(x->node, 0));
  bool known = op == PESTLE_OP_ADD || op == PESTLE_OP_MULTIPLY ||
               op == PESTLE_OP_MINIMUM || op == PESTLE_OP_MAXIMUM;
  return known && pestle_dtype_is(a->type->dtype, PESTLE_KIND_FLOAT) &&
         pestle_dtype_size(a->type->dtype) < sizeof(float);
}

// Parts 0 up to n - 1 along the first axis, in that order.
static pv_t* fold(expand_t* x, pv_t* all) {
  if (!all) return NULL;
  pestle_dtype_t dtype = all->type->dtype;
  bool narrow = is_narrow(x, all);
  pestle_op_t op = pestle_block_reduce_op(pestle_node_body(x->node, 0));
  if (narrow) all = pestle_f_convert(&x->f, all, PESTLE_F32);
  pv_t* sum = all ? pestle_f_part(&x->f, all, 0, 0) : NULL;
  for (int64_t i = 1; sum && i < x->members; ++i) {
    pv_t* next = pestle_f_part(&x->f, all, 0, i);
    pv_t* both[2] = {sum, next};
    if (!next) return NULL;
    sum = narrow ? pestle_f_make(&x->f, op, both, 2, NULL, 0, NULL)
                 : map_pair(x, sum, next);
  }
  return narrow && sum ? pestle_f_convert(&x->f, sum, dtype) : sum;
}

// By any other region: all members' values, combined here.
static pv_t* reduce_gathered(expand_t* x, pv_t* a) {
  return fold(x, each_part(x, a, gather));
}

static pestle_status_t need_equal(const expand_t* x) {
  if (x->members) return NULL;
  return pestle_node_error(x->node, PESTLE_STATUS_UNSUPPORTED,
                           "its groups differ in size, and it combines by more "
                           "than one op");
}

static pestle_status_t all_reduce(expand_t* x) {
  bool simple = is_simple(x->ctx, x->node, x->members);
  if (!simple) PESTLE_TRY(need_equal(x));
  for (uint32_t i = 0; i < x->node->operand_count; ++i) {
    pv_t* a = pestle_node_operand(x->node, i);
    x->results[i] =
        simple ? each_part(x, a, all_reduce_part) : reduce_gathered(x, a);
  }
  return x->f.status;
}

// --- Moves ---

static pestle_status_t all_gather(expand_t* x) {
  int64_t axis = PESTLE_NODE_I64(x->node, all_gather_dim);
  PESTLE_TRY(need_equal(x));
  for (uint32_t i = 0; i < x->node->operand_count; ++i) {
    pv_t* all = each_part(x, pestle_node_operand(x->node, i), gather);
    x->results[i] = join(x, all, axis);
  }
  return x->f.status;
}

static pv_t* exchange(expand_t* x, pv_t* a) {
  pestle_attr_t attrs[5] = {
      *pestle_node_attr(x->node, PESTLE_ATTR_replica_groups),
      *pestle_node_attr(x->node, PESTLE_ATTR_channel_handle),
      PESTLE_SET_I64(split_dimension, 0), PESTLE_SET_I64(concat_dimension, 0),
      PESTLE_SET_I64(split_count, x->members)};
  if (!a) return NULL;
  return first_of(
      pestle_f_node(&x->f, &(pestle_node_spec_t){.op = PESTLE_OP_ALL_TO_ALL,
                                                 .operands = &a,
                                                 .operand_count = 1,
                                                 .attrs = attrs,
                                                 .attr_count = 5,
                                                 .share_elements = true}));
}

// Whether an all_to_all with its attributes is between the same processes.
static bool has_same_groups(const pestle_node_t* node) {
  if (PESTLE_NODE_I64(node, channel_handle) <= 0) return true;
  return PESTLE_NODE_BOOL(node, use_global_device_ids) &&
         pestle_module_world(node->block->region->module).replicas == 1;
}

static pestle_status_t reduce_scatter(expand_t* x) {
  pestle_node_t* node = x->node;
  int64_t axis = PESTLE_NODE_I64(node, scatter_dimension);
  PESTLE_TRY(need_equal(x));
  pv_t* a = pestle_node_operand(node, 0);
  if (is_simple(x->ctx, node, x->members)) {
    x->results[0] = each_part(x, cut(x, a, axis, x->members), scatter_part);
    return x->f.status;
  }
  if (!has_same_groups(node)) {
    return pestle_node_error(node, PESTLE_STATUS_UNSUPPORTED,
                             "it combines by what transports do not, in groups "
                             "that all_to_all has not; use all_reduce and a "
                             "slice");
  }
  pv_t* parts = cut(x, a, axis, x->members);
  x->results[0] = fold(x, each_part(x, parts, exchange));
  return x->f.status;
}

static pestle_status_t all_to_all(expand_t* x) {
  int64_t split = PESTLE_NODE_I64(x->node, split_dimension);
  int64_t concat = PESTLE_NODE_I64(x->node, concat_dimension);
  PESTLE_TRY(need_equal(x));
  for (uint32_t i = 0; i < x->node->operand_count; ++i) {
    pv_t* parts = cut(x, pestle_node_operand(x->node, i), split, x->members);
    x->results[i] = join(x, each_part(x, parts, exchange), concat);
  }
  return x->f.status;
}

static pv_t* move_part(expand_t* x, pv_t* a) {
  return a ? first_of(
                 again(x, (pestle_op_t)x->node->op, &a, 1, NULL, NULL, false))
           : NULL;
}

static pestle_status_t move(expand_t* x) {
  pv_t* a = pestle_node_operand(x->node, 0);
  x->results[0] = each_part(x, a, move_part);
  return x->f.status;
}

// --- The walk ---

// What transports have already.
static bool is_done(const expand_t* x) {
  const pestle_node_t* node = x->node;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (is_complex(pestle_node_operand(node, i))) return false;
  }
  const pestle_type_t* type =
      node->operand_count ? pestle_node_operand(node, 0)->type : NULL;
  switch ((int)node->op) {
    case PESTLE_OP_ALL_REDUCE:
      return is_simple(x->ctx, node, x->members);
    case PESTLE_OP_ALL_GATHER:
      return node->operand_count == 1 &&
             PESTLE_NODE_I64(node, all_gather_dim) == 0 && type->dims[0] == 1;
    case PESTLE_OP_REDUCE_SCATTER:
      return is_simple(x->ctx, node, x->members) &&
             PESTLE_NODE_I64(node, scatter_dimension) == 0;
    case PESTLE_OP_ALL_TO_ALL:
      return node->operand_count == 1 &&
             PESTLE_NODE_I64(node, split_dimension) == 0 &&
             PESTLE_NODE_I64(node, concat_dimension) == 0;
    default:
      return true;
  }
}

// Of groups of one, all but permutations give what they take.
static bool is_alone(const expand_t* x) {
  return x->members == 1 && x->node->op != PESTLE_OP_COLLECTIVE_PERMUTE &&
         x->node->op != PESTLE_OP_COLLECTIVE_BROADCAST;
}

static pestle_status_t expand(expand_t* x, bool* out_changed) {
  pestle_node_t* node = x->node;
  if (!node->operand_count) return NULL;
  PESTLE_TRY(pestle_collective_groups(node, x->ctx->scratch, &x->groups));
  x->members = members_of(&x->groups);
  bool alone = is_alone(x);
  if (!alone && is_done(x)) return NULL;
  x->f = pestle_formula_before(node);
  x->results =
      PESTLE_ARENA_ARRAY(x->ctx->scratch, pv_t*, node->result_count + 1);
  if (!x->results) return PESTLE_OOM();
  pestle_status_t status = NULL;
  if (alone) {
    for (uint32_t i = 0; i < node->result_count; ++i)
      x->results[i] = pestle_node_operand(node, i);
  } else if (node->op == PESTLE_OP_ALL_REDUCE) {
    status = all_reduce(x);
  } else if (node->op == PESTLE_OP_REDUCE_SCATTER) {
    status = reduce_scatter(x);
  } else if (node->op == PESTLE_OP_ALL_GATHER) {
    status = all_gather(x);
  } else if (node->op == PESTLE_OP_ALL_TO_ALL) {
    status = all_to_all(x);
  } else {
    status = move(x);
  }
  if (status) return status;
  pestle_pass_replace(node, x->results);
  *out_changed = true;
  return NULL;
}

typedef struct walk_t {
  pestle_pass_context_t* ctx;
  bool* changed;
} walk_t;

static pestle_status_t expand_block(void* user, pestle_module_t* module,
                                    pestle_block_t* block) {
  walk_t* w = user;
  (void)module;
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    if (pestle_pass_info(n)->fuse != PESTLE_FUSE_COLLECTIVE) continue;
    expand_t x = {.ctx = w->ctx, .node = n};
    PESTLE_TRY(expand(&x, w->changed));
  }
  return NULL;
}

pestle_status_t pestle_pass_expand_collectives(pestle_pass_context_t* ctx,
                                               pestle_module_t* module,
                                               bool* out_changed) {
  walk_t w = {ctx, out_changed};
  if (pestle_module_device_count(module) == 1) return NULL;
  return pestle_pass_each_block(module, expand_block, &w);
}

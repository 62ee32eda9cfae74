// SPDX-License-Identifier: Apache-2.0
#include "ir/scan.h"

// What one of these takes, in simple operations: calls of functions, and what has no
// instruction that begins in every cycle.
enum { FUNCTION = 24, SLOW = 6 };

static bool has_scalars(pestle_dtype_t dtype) {
  unsigned kinds = PESTLE_KIND_INT | PESTLE_KIND_BOOL;
  if (pestle_dtype_is(dtype, kinds)) {
    return dtype == PESTLE_I1 || pestle_dtype_info(dtype)->bits >= 8;
  }
  return dtype == PESTLE_F16 || dtype == PESTLE_BF16 || dtype == PESTLE_F32 ||
         dtype == PESTLE_F64;
}

// Whether sums of |dtype| may be made in it, term by term.
static bool sums_in_itself(pestle_dtype_t dtype) {
  return dtype == PESTLE_F32 || dtype == PESTLE_F64 ||
         pestle_dtype_is(dtype, PESTLE_KIND_INT | PESTLE_KIND_BOOL);
}

static int64_t cost_of_row(const pestle_node_t* n) {
  if (pestle_op_info((pestle_op_t)n->op)->flags & PESTLE_OP_FLAG_TRANS)
    return FUNCTION;
  bool slow = n->op == PESTLE_OP_DIVIDE || n->op == PESTLE_OP_REMAINDER ||
              n->op == PESTLE_OP_SQRT;
  return slow ? SLOW : 1;
}

static int64_t count_reduce(const pestle_node_t* n) {
  const pestle_type_t* x = pestle_node_operand(n, 0)->type;
  bool known =
      n->operand_count == 2 &&
      pestle_block_reduce_op(pestle_node_body(n, 0)) != PESTLE_OP_COUNT &&
      sums_in_itself(x->dtype);
  return known ? pestle_type_count(x) : -1;
}

static int64_t count_dot(const pestle_node_t* n) {
  const pestle_type_t* a = pestle_node_operand(n, 0)->type;
  pestle_dtype_t dtype = n->results[0].type->dtype;
  pestle_i64s_t dims = PESTLE_NODE_I64S(n, lhs_contracting_dimensions);
  int64_t terms = 1;
  if (a->dtype != dtype || !sums_in_itself(dtype) ||
      pestle_node_operand(n, 1)->type->dtype != dtype) {
    return -1;
  }
  for (size_t i = 0; i < dims.count; ++i)
    terms *= a->dims[dims.data[i]];
  return pestle_type_count(n->results[0].type) * terms;
}

// Of an array that lies in memory: a place is clamped along each dim.
static int64_t count_slice(const pestle_scan_t* s, const pestle_node_t* n) {
  const pestle_value_t* x = pestle_node_operand(n, 0);
  bool is_constant = !x->node && x->block == s->body &&
                     x->index >= s->carry_count + s->xs_count;
  return is_constant ? pestle_type_count(n->results[0].type) + 3 * x->type->rank
                     : -1;
}

// Simple operations of |n|, or -1.
static int64_t count_node(const pestle_scan_t* s, const pestle_node_t* n) {
  const pestle_type_t* type = n->results[0].type;
  int64_t count = pestle_type_count(type);
  if (pestle_op_is_scalar((pestle_op_t)n->op)) return count * cost_of_row(n);
  switch ((int)n->op) {
    case PESTLE_OP_CONVERT:
      return count;
    case PESTLE_OP_BITCAST_CONVERT: {
      const pestle_type_t* from = pestle_node_operand(n, 0)->type;
      bool same = pestle_dtype_info(from->dtype)->bits ==
                  pestle_dtype_info(type->dtype)->bits;
      return same ? count : -1;
    }
    case PESTLE_OP_CONSTANT:
    case PESTLE_OP_IOTA:
    case PESTLE_OP_BROADCAST_IN_DIM:
    case PESTLE_OP_RESHAPE:
    case PESTLE_OP_TRANSPOSE:
    case PESTLE_OP_SLICE:
    case PESTLE_OP_REVERSE:
    case PESTLE_OP_CONCATENATE:
      return 0;
    case PESTLE_OP_REDUCE:
      return count_reduce(n);
    case PESTLE_OP_DOT_GENERAL:
      return count_dot(n);
    case PESTLE_OP_DYNAMIC_SLICE:
      return count_slice(s, n);
    default:
      return -1;
  }
}

static bool is_small(const pestle_type_t* type) {
  return has_scalars(type->dtype) &&
         pestle_type_count(type) <= PESTLE_SCAN_MOST_SCALARS;
}

// Whether |constant| is only read place by place.
static bool is_looked_up(const pestle_value_t* constant) {
  for (const pestle_use_t* use = constant->uses; use; use = use->next) {
    if (use->user->op != PESTLE_OP_DYNAMIC_SLICE ||
        pestle_node_operand(use->user, 0) != constant) {
      return false;
    }
  }
  return true;
}

bool pestle_scan_is_looked_up(const pestle_scan_t* s, size_t constant) {
  return is_looked_up(s->constant[constant]);
}

int64_t pestle_scan_scalar_ops(const pestle_scan_t* s) {
  int64_t total = 0, state = 0;
  for (uint32_t i = 0; i < s->body->argument_count; ++i) {
    const pestle_value_t* v = s->body->arguments[i];
    bool held = i < s->carry_count + s->xs_count || !is_looked_up(v);
    if (!has_scalars(v->type->dtype) || (held && !is_small(v->type))) return -1;
    state += held ? pestle_type_count(v->type) : 0;
  }
  for (const pestle_node_t* n = s->body->first; n != s->body->last;
       n = n->next) {
    if (n->result_count != 1 || !is_small(n->results[0].type)) return -1;
    int64_t count = count_node(s, n);
    if (count < 0 || state > PESTLE_SCAN_MOST_SCALARS) return -1;
    total += count;
  }
  for (size_t i = 0; i < s->ys_count; ++i)
    state += pestle_type_count(s->y[i].value->type);
  return state > PESTLE_SCAN_MOST_SCALARS ? -1 : total + state;
}

// --- Element by element ---

static int64_t wide_node(const pestle_node_t* n, int64_t elements) {
  int64_t count = pestle_type_count(n->results[0].type);
  if (count != 1 && count != elements) return -1;
  if (pestle_op_is_scalar((pestle_op_t)n->op)) return cost_of_row(n);
  const pestle_type_t* from =
      n->operand_count ? pestle_node_operand(n, 0)->type : NULL;
  switch ((int)n->op) {
    case PESTLE_OP_CONVERT:
      return 1;
    case PESTLE_OP_BITCAST_CONVERT:
      return pestle_dtype_info(from->dtype)->bits ==
                     pestle_dtype_info(n->results[0].type->dtype)->bits
                 ? 1
                 : -1;
    case PESTLE_OP_CONSTANT:
      return count == 1 || PESTLE_NODE_ELEMENTS(n)->splat ? 0 : -1;
    case PESTLE_OP_RESHAPE:
      return 0;
    case PESTLE_OP_BROADCAST_IN_DIM: {
      // Of one number, or of the elements in their order.
      pestle_i64s_t dims = PESTLE_NODE_I64S(n, broadcast_dimensions);
      bool ordered = true;
      for (size_t i = 1; i < dims.count; ++i)
        ordered = ordered && dims.data[i - 1] < dims.data[i];
      int64_t own = pestle_type_count(from);
      return own == 1 || (own == count && ordered) ? 0 : -1;
    }
    default:
      return -1;
  }
}

int64_t pestle_scan_wide_ops(const pestle_scan_t* s, int64_t* out_elements) {
  int64_t elements = 1, total = 2;
  for (size_t i = 0; i < s->carry_count; ++i) {
    int64_t count = pestle_type_count(s->carry[i]->type);
    if (count > elements) elements = count;
  }
  *out_elements = elements;
  if (elements < PESTLE_SCAN_LEAST_WIDE) return -1;
  for (uint32_t i = 0; i < s->body->argument_count; ++i) {
    const pestle_type_t* type = s->body->arguments[i]->type;
    int64_t count = pestle_type_count(type);
    if (!has_scalars(type->dtype) || (count != 1 && count != elements))
      return -1;
  }
  for (const pestle_node_t* n = s->body->first; n != s->body->last;
       n = n->next) {
    if (n->result_count != 1 || !has_scalars(n->results[0].type->dtype))
      return -1;
    int64_t count = wide_node(n, elements);
    if (count < 0) return -1;
    total += count;
  }
  return total;
}

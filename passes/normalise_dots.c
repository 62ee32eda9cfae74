// SPDX-License-Identifier: Apache-2.0
// Every dot_general becomes [batch..., m, k] x [batch..., k, n], or x
// [batch..., n, k] where the right side is not constant and lies that way.
//
//   %0 = dot_general %x, %w,                  %0 = reshape %x   // [S, K]
//            contracting [2] x [0]       ->   %1 = dot_general %0, %w
//        : [1,S,K], [K,N] -> [1,S,N]          %2 = reshape %1   // [1,S,N]
//
// Several free or contracted dims become one by a reshape, which costs nothing;
// dims that are in the way are moved by a transpose. A transpose in front is
// looked through. The reshape behind a dot or convolution then sinks below
// the elementwise ops that follow, so that they can be its epilogue.
#include <stdio.h>
#include <string.h>

#include "base/fault.h"
#include "passes/fuse.h"
#include "passes/util.h"

static pestle_value_t* operand(const pestle_node_t* node, size_t index) {
  return pestle_node_operand(node, index);
}

// One side of a dot while its dims are sorted.
typedef struct side_t {
  pestle_value_t* value;
  int64_t batch[PESTLE_MAX_RANK], contract[PESTLE_MAX_RANK];
  int64_t free[PESTLE_MAX_RANK];
  size_t batches, contracts, frees;
  bool contract_last;
} side_t;

static void read_side(pestle_value_t* value, pestle_i64s_t batch,
                      pestle_i64s_t contract, side_t* s) {
  s->value = value;
  s->batches = batch.count;
  s->contracts = contract.count;
  s->frees = 0;
  for (size_t i = 0; i < batch.count; ++i)
    s->batch[i] = batch.data[i];
  for (size_t i = 0; i < contract.count; ++i)
    s->contract[i] = contract.data[i];
  for (int32_t i = 0; i < value->type->rank; ++i) {
    if (!pestle_i64s_has(batch, i) && !pestle_i64s_has(contract, i)) {
      s->free[s->frees++] = i;
    }
  }
}

static bool is_run(const int64_t* dims, size_t count) {
  for (size_t i = 1; i < count; ++i) {
    if (dims[i] != dims[i - 1] + 1) return false;
  }
  return true;
}

// Whether |s| is a matrix a batch that lies column by column: what is contracted, then what
// is kept, each in one piece.
static bool is_across(const side_t* s) {
  return is_run(s->batch, s->batches) && is_run(s->contract, s->contracts) &&
         is_run(s->free, s->frees) && s->contracts && s->frees &&
         (!s->batches || s->batch[0] == 0) &&
         s->contract[0] == (int64_t)s->batches &&
         s->free[0] == s->contract[0] + (int64_t)s->contracts;
}

// Pairs of contracted dims may be in any order: by the left side's.
static void sort_contracted(side_t* lhs, side_t* rhs) {
  for (size_t i = 1; i < lhs->contracts; ++i) {
    for (size_t j = i; j > 0 && lhs->contract[j] < lhs->contract[j - 1]; --j) {
      int64_t l = lhs->contract[j], r = rhs->contract[j];
      lhs->contract[j] = lhs->contract[j - 1];
      if (PESTLE_FAULT(unsorted_contraction)) r = rhs->contract[j - 1];
      rhs->contract[j] = rhs->contract[j - 1];
      lhs->contract[j - 1] = l;
      rhs->contract[j - 1] = r;
    }
  }
}

static void order_of(const side_t* s, bool contract_last, int64_t* perm) {
  size_t at = 0;
  for (size_t i = 0; i < s->batches; ++i)
    perm[at++] = s->batch[i];
  for (int part = 0; part < 2; ++part) {
    bool contract = contract_last == (part == 1);
    for (size_t i = 0; contract && i < s->contracts; ++i) {
      perm[at++] = s->contract[i];
    }
    for (size_t i = 0; !contract && i < s->frees; ++i)
      perm[at++] = s->free[i];
  }
}

// Whether a transpose to that order would move elements.
static bool moves(const side_t* s, bool contract_last) {
  int64_t perm[PESTLE_MAX_RANK], last = -1;
  order_of(s, contract_last, perm);
  for (int32_t i = 0; i < s->value->type->rank; ++i) {
    if (s->value->type->dims[perm[i]] == 1) continue;
    if (perm[i] < last) return true;
    last = perm[i];
  }
  return false;
}

// A transpose in front only renames dims. One that others read lies in memory: where it
// makes a matrix of a side that is in pieces before it, that is read as it is.
static void look_through(side_t* s) {
  const pestle_node_t* n = s->value->node;
  if (!n || n->op != PESTLE_OP_TRANSPOSE) return;
  pestle_i64s_t perm = PESTLE_NODE_I64S(n, permutation);
  side_t seen = *s;
  for (size_t i = 0; i < s->batches; ++i)
    seen.batch[i] = perm.data[s->batch[i]];
  for (size_t i = 0; i < s->frees; ++i)
    seen.free[i] = perm.data[s->free[i]];
  for (size_t i = 0; i < s->contracts; ++i) {
    seen.contract[i] = perm.data[s->contract[i]];
  }
  seen.value = operand(n, 0);
  bool stays = n->results[0].use_count > 1 && is_across(s) &&
               moves(&seen, false) && moves(&seen, true);
  if (!stays) *s = seen;
}

// Whether a constant's columns lie densely: where lanes run side by side and there is one
// row, each group sums a column, and its lanes read neighbours then. Measured on an H200:
// 1 x 1024 times 1024 x 4096 in f32 took some 28 us with rows that lie densely. Matrix
// units take words of bytes along k, however many rows there are.
static bool has_columns(const pestle_target_caps_t* caps, int64_t rows,
                        const pestle_value_t* constant) {
  pestle_dtype_t dtype = constant->type->dtype;
  if (dtype == PESTLE_I8 || dtype == PESTLE_U8) {
    return (caps->flags & PESTLE_TARGET_LANES) &&
           pestle_pass_has_byte_units(caps);
  }
  return (caps->flags & PESTLE_TARGET_LANES) && rows == 1 &&
         (dtype == PESTLE_F32 || dtype == PESTLE_F16 || dtype == PESTLE_BF16);
}

static int64_t rows_of(const side_t* lhs) {
  int64_t rows = 1;
  for (size_t i = 0; i < lhs->frees; ++i)
    rows *= lhs->value->type->dims[lhs->free[i]];
  return rows;
}

// How the right side shall lie. Constants are arranged once, n innermost, but for one row.
static bool choose_contract_last(const pestle_target_caps_t* caps,
                                 const side_t* lhs, const side_t* rhs) {
  if (pestle_value_is_stored(rhs->value))
    return has_columns(caps, rows_of(lhs), rhs->value);
  if (!moves(rhs, false)) return false;
  if (!moves(rhs, true)) return true;
  int64_t last = rhs->value->type->rank - 1;
  for (size_t i = 0; i < rhs->contracts; ++i) {
    if (rhs->contract[i] == last) return true;
  }
  return false;
}

// |s|, a matrix a batch that lies column by column, as two dims behind those of the batch.
static pestle_value_t* turned(pestle_formula_t* f, const side_t* s,
                              int64_t contracted, int64_t kept) {
  const pestle_type_t* from = s->value->type;
  int64_t n = (int64_t)s->batches, perm[PESTLE_MAX_RANK];
  pestle_type_t type = pestle_type_make(from->dtype, 0, NULL);
  for (int64_t i = 0; i < n; ++i) {
    perm[i] = i;
    type.dims[type.rank++] = from->dims[i];
  }
  perm[n] = n + 1;
  perm[n + 1] = n;
  type.dims[type.rank++] = contracted;
  type.dims[type.rank++] = kept;
  return pestle_f_transpose(f, pestle_f_reshape_to(f, s->value, &type), perm);
}

// The side as [batch..., x, y].
static pestle_value_t* arrange(pestle_formula_t* f, const side_t* s) {
  const pestle_type_t* from = s->value->type;
  int64_t perm[PESTLE_MAX_RANK];
  order_of(s, s->contract_last, perm);
  pestle_value_t* moved = s->value;
  pestle_type_t type = pestle_type_make(from->dtype, 0, NULL);
  for (size_t i = 0; i < s->batches; ++i) {
    type.dims[type.rank++] = from->dims[s->batch[i]];
  }
  int64_t contracted = 1, kept = 1;
  for (size_t i = 0; i < s->contracts; ++i) {
    contracted *= from->dims[s->contract[i]];
  }
  for (size_t i = 0; i < s->frees; ++i)
    kept *= from->dims[s->free[i]];
  if (moves(s, s->contract_last)) {
    if (s->contract_last && is_across(s)) return turned(f, s, contracted, kept);
    moved = pestle_f_transpose(f, s->value, perm);
  }
  type.dims[type.rank++] = s->contract_last ? kept : contracted;
  type.dims[type.rank++] = s->contract_last ? contracted : kept;
  return pestle_f_reshape_to(f, moved, &type);
}

static bool is_normal(const pestle_target_caps_t* caps,
                      const pestle_node_t* dot) {
  int64_t rank = operand(dot, 0)->type->rank;
  pestle_i64s_t lb = PESTLE_NODE_I64S(dot, lhs_batching_dimensions);
  pestle_i64s_t rb = PESTLE_NODE_I64S(dot, rhs_batching_dimensions);
  pestle_i64s_t lc = PESTLE_NODE_I64S(dot, lhs_contracting_dimensions);
  pestle_i64s_t rc = PESTLE_NODE_I64S(dot, rhs_contracting_dimensions);
  if (!pestle_pass_i64s_is_iota(lb) || !pestle_pass_i64s_is_iota(rb) ||
      (int64_t)lb.count != rank - 2 || operand(dot, 1)->type->rank != rank ||
      lc.count != 1 || lc.data[0] != rank - 1 ||
      pestle_pass_is(operand(dot, 0), PESTLE_OP_TRANSPOSE) ||
      pestle_pass_is(operand(dot, 1), PESTLE_OP_TRANSPOSE)) {
    return false;
  }
  if (!pestle_value_is_stored(operand(dot, 1))) return true;
  int64_t rows = operand(dot, 0)->type->dims[rank - 2];
  bool columns = has_columns(caps, rows, operand(dot, 1));
  return rc.data[0] == rank - (columns ? 1 : 2);
}

static pestle_value_t* make_dot(pestle_formula_t* f, const pestle_node_t* node,
                                const side_t* lhs, const side_t* rhs) {
  pestle_value_t* x = arrange(f, lhs);
  pestle_value_t* y = arrange(f, rhs);
  if (f->status) return NULL;
  size_t batches = lhs->batches;
  pestle_type_t type = *x->type;
  type.dtype = node->results[0].type->dtype;
  type.dims[batches + 1] =
      y->type->dims[batches + (rhs->contract_last ? 0 : 1)];
  return pestle_f_dot_as(f, x, y, rhs->contract_last, &type, node);
}

// --- What `pestle explain` says ---

static void remark_dot(pestle_remarks_t* remarks, const pestle_node_t* node,
                       const side_t* lhs, const side_t* rhs) {
  bool left = moves(lhs, lhs->contract_last);
  bool constant = pestle_value_is_stored(rhs->value);
  bool right = moves(rhs, rhs->contract_last) && !constant;
  const char* how = left && right ? "both operands are copied into that order"
                    : left        ? "the left operand is copied into that order"
                    : right ? "the right operand is copied into that order"
                    : constant
                        ? "the right operand is a constant, arranged once"
                        : "no element moves";
  char text[160];
  (void)snprintf(text, sizeof(text),
                 "is written as [batch, m, k] x [batch, %s]: %s",
                 rhs->contract_last ? "n, k" : "k, n", how);
  pestle_remarks_add_on(remarks, "normalise_dots", node, "dot", text);
}

typedef struct dots_t {
  bool* changed;
  pestle_remarks_t* remarks;
  const pestle_target_caps_t* caps;
} dots_t;

static pestle_status_t normalise(pestle_node_t* node, dots_t* d) {
  if (is_normal(d->caps, node)) return NULL;
  side_t lhs, rhs;
  read_side(operand(node, 0), PESTLE_NODE_I64S(node, lhs_batching_dimensions),
            PESTLE_NODE_I64S(node, lhs_contracting_dimensions), &lhs);
  read_side(operand(node, 1), PESTLE_NODE_I64S(node, rhs_batching_dimensions),
            PESTLE_NODE_I64S(node, rhs_contracting_dimensions), &rhs);
  if (lhs.batches + 2 > PESTLE_MAX_RANK) return NULL;
  look_through(&lhs);
  look_through(&rhs);
  sort_contracted(&lhs, &rhs);
  lhs.contract_last = true;
  rhs.contract_last = choose_contract_last(d->caps, &lhs, &rhs);
  remark_dot(d->remarks, node, &lhs, &rhs);
  pestle_formula_t f = pestle_formula_before(node);
  pestle_value_t* result = make_dot(&f, node, &lhs, &rhs);
  result = pestle_f_reshape_to(&f, result, node->results[0].type);
  PESTLE_TRY(f.status);
  pestle_pass_replace(node, &result);
  *d->changed = true;
  return NULL;
}

// --- Sinking the reshape ---

// Whether |value| is a contraction, or elementwise work that was moved behind
// one.
static bool is_dot_result(const pestle_value_t* value) {
  return value->node &&
         (pestle_pass_info(value->node)->fuse == PESTLE_FUSE_CONTRACTION ||
          value->node->scratch == 1);
}

static bool quantises(const pestle_node_t* node) {
  return node->op == PESTLE_OP_QUANTIZE || node->op == PESTLE_OP_DEQUANTIZE;
}

static bool may_sink(const pestle_node_t* node) {
  // A scale along an axis would have to find its axis again, a map's region
  // would have to be copied.
  return pestle_fuse_is_elementwise(node) && node->operand_count <= 3 &&
         !node->region_count &&
         !(quantises(node) && operand(node, 1)->type->rank > 0);
}

// Whether |value| can have any shape for nothing.
static bool is_shapeless(const pestle_value_t* value) {
  return value->type->rank == 0 || pestle_value_is_stored(value) ||
         pestle_pass_is(value, PESTLE_OP_BROADCAST_IN_DIM);
}

// Whether operand |i| is a scalar beside others, which serves any shape; one of
// scalars alone may be the reshaped operand.
static bool is_beside(const pestle_node_t* node, uint32_t i) {
  if (operand(node, i)->type->rank > 0) return false;
  return quantises(node) ? i > 0 : node->results[0].type->rank > 0;
}

// The reshape among the operands that should come after |node|: that of a dot,
// or one that no other operand minds. NULL if there is none.
static const pestle_node_t* find_reshape(const pestle_node_t* node) {
  const pestle_node_t* found = NULL;
  bool free = true;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    const pestle_value_t* v = operand(node, i);
    const pestle_node_t* n = v->node;
    if (is_beside(node, i)) continue;
    if (n && n->op == PESTLE_OP_RESHAPE) {
      if (is_dot_result(operand(n, 0))) return n;
      bool same = !found || pestle_pass_same_dims(operand(n, 0)->type,
                                                  operand(found, 0)->type);
      free = free && same;
      if (!found) found = n;
    } else {
      free = free && is_shapeless(v);
    }
  }
  return free ? found : NULL;
}

static pestle_status_t sink(pestle_node_t* node, bool* changed,
                            pestle_remarks_t* remarks) {
  const pestle_node_t* reshape = may_sink(node) ? find_reshape(node) : NULL;
  if (!reshape) return NULL;
  pestle_remarks_add_on(
      remarks, "normalise_dots", node, "sunk",
      "works before the reshape that it read, which would part it from the "
      "op before");
  pestle_type_t type = *operand(reshape, 0)->type;
  pestle_formula_t f = pestle_formula_before(node);
  pestle_value_t* operands[3];
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    operands[i] = operand(node, i);
    if (is_beside(node, i)) continue;
    pestle_value_t* before =
        pestle_pass_through(operands[i], PESTLE_OP_RESHAPE);
    if (before && pestle_pass_same_dims(before->type, &type)) {
      operands[i] = before;
    } else {
      operands[i] = pestle_f_reshape_to(&f, operands[i], &type);
    }
  }
  type.dtype = node->results[0].type->dtype;
  pestle_value_t* inner = pestle_f_like(&f, node, operands, &type);
  if (inner) inner->node->scratch = 1;
  pestle_value_t* result =
      pestle_f_reshape_to(&f, inner, node->results[0].type);
  PESTLE_TRY(f.status);
  pestle_pass_replace(node, &result);
  *changed = true;
  return NULL;
}

static pestle_status_t normalise_block(void* user, pestle_module_t* module,
                                       pestle_block_t* block) {
  dots_t* d = user;
  (void)module;
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    if (n->op != PESTLE_OP_DOT_GENERAL) continue;
    PESTLE_TRY(normalise(n, d));
  }
  for (pestle_node_t* n = block->first; n; n = n->next)
    n->scratch = 0;
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    PESTLE_TRY(sink(n, d->changed, d->remarks));
  }
  return NULL;
}

pestle_status_t pestle_pass_normalise_dots(pestle_pass_context_t* ctx,
                                           pestle_module_t* module,
                                           bool* out_changed) {
  dots_t d = {out_changed, ctx->remarks, ctx->caps};
  PESTLE_TRY(pestle_pass_each_block(module, normalise_block, &d));
  return *out_changed ? pestle_pass_dce(ctx, module, out_changed) : NULL;
}

// SPDX-License-Identifier: Apache-2.0
// A long reduction to few elements becomes a reduction of blocks and a reduction of their
// results, so that several groups share it.
//
//   %0 = reduce add %x over [0]         %1 = reshape %x      // [256, 65536]
//          : [16777216] -> []      ->   %2 = reduce add %1 over [1]
//                                       %0 = reduce add %2 over [0]
//
// The blocks follow from the shape and the target's caches, never from how many
// threads there are: the order of the terms is the plan's. Where no divisor
// fits, the identity pads the last block; the kernel reads it under a
// mask. Sums of narrow floats are kept in f32 between the two reductions. Composites
// with few long rows are decomposed for it.
//
// A product of few vectors and a matrix is such a reduction too: blocks of its taps
// become a batch. So is one of f32 by lanes whose tiles are fewer than cores.
//
// Reductions of several values, or by a region that is no single op, are cut where
// the region keeps the initial values (f(init, init) = init), as StableHLO lets
// these enter anywhere. Under PESTLE_NUMERICS_STRICT float sums and products
// and such reductions stay whole.
#include <string.h>

#include "base/bits.h"
#include "base/half.h"
#include "ir/ref/ref.h"
#include "passes/fuse.h"
#include "passes/util.h"

enum {
  // With so many groups a reduction is shared well enough as it is.
  ENOUGH_GROUPS = 32,
  // Of a reduction that is cut, groups are made until there are about so many, or
  // blocks are of the least size: 64 KiB take some 2 us from DRAM and 1 us from
  // the L3, ten times what the start of a group takes.
  WANTED_GROUPS = 64,
  LEAST_BLOCK_BYTES = 64 << 10,
  // Less is not worth a second kernel.
  LEAST_BYTES = 512 << 10,
  // Columns that one group reduces side by side, at most: as the sketches have
  // it for vectors of 16.
  GROUP_COLUMNS = 64,
  // Of an inner block: whole cache lines, and whole vectors of f32, side by
  // side as the sketches have them.
  BLOCK_STEP = 64,
  // Vectors that a matrix is multiplied with, at most; the columns and rows of
  // it that a group then takes, and the least part of a column or row that it
  // goes through. As the sketches have it. A block's sums are written once, so
  // that 64 rows of taps a vector make that 3 % of the traffic.
  MOST_VECTORS = 8,
  PANEL_COLUMNS = 4096,
  DOT_ROWS = 16,
  LEAST_TAPS = 64,
  LEAST_DOT = 4096,
  LEAST_L2S = 8,
  // Products of f32 by tiles of groups of lanes: the tile's rows and columns, products that
  // are worth a second kernel, taps of a part, parts that are worth it, groups of a core.
  TILE = 32,
  LEAST_PRODUCTS = 1 << 25,
  LEAST_TILE_TAPS = 512,
  LEAST_PARTS = 4,
  CORE_GROUPS = 2,
  // For targets that do not say.
  DEFAULT_L3_BYTES = 8 << 20,
  MAX_VALUES = 8,
};

typedef struct split_t {
  pestle_pass_context_t* ctx;
  bool changed;
} split_t;

// Dim |dim| as |blocks| x |length|; the last block may be longer than the rest.
typedef struct cut_t {
  int64_t dim, blocks, length;
} cut_t;

static pestle_value_t* operand(const pestle_node_t* node, size_t index) {
  return pestle_node_operand(node, index);
}

static bool is_strict(const split_t* s) {
  return s->ctx->options->numerics == PESTLE_NUMERICS_STRICT;
}

// --- Where to cut ---

// Groups that a kernel of this reduction would run in.
static int64_t count_groups(const pestle_type_t* type, pestle_i64s_t dims) {
  int64_t groups = 1;
  for (int32_t d = 0; d < type->rank; ++d) {
    if (pestle_i64s_has(dims, d)) continue;
    bool columns = d == type->rank - 1;
    groups *= columns ? (type->dims[d] + GROUP_COLUMNS - 1) / GROUP_COLUMNS
                      : type->dims[d];
  }
  return groups;
}

// Into how many blocks each group's part is cut, of |bytes| that |groups|
// share; 1: none.
static int64_t count_blocks(const split_t* s, int64_t bytes, int64_t groups) {
  if (groups >= ENOUGH_GROUPS || bytes < LEAST_BYTES) return 1;
  // A block that is read by several reductions, one after the other, stays in L2.
  int64_t block = bytes / WANTED_GROUPS,
          most = pestle_pass_l2_bytes(s->ctx) / 4;
  if (block > most) block = most;
  if (block < LEAST_BLOCK_BYTES) block = LEAST_BLOCK_BYTES;
  return bytes / groups / block;
}

// The outermost reduced dim that has the blocks, so that they are contiguous as
// far as possible; the longest where none has.
static int64_t choose_dim(const pestle_type_t* type, pestle_i64s_t dims,
                          int64_t blocks) {
  int64_t longest = dims.data[0];
  for (int32_t d = 0; d < type->rank; ++d) {
    if (!pestle_i64s_has(dims, d)) continue;
    if (type->dims[d] >= blocks) return d;
    if (type->dims[d] > type->dims[longest]) longest = d;
  }
  return longest;
}

// A divisor of |extent| near |blocks| whose blocks are of whole steps, or 0.
static int64_t find_divisor(int64_t extent, int64_t blocks, int64_t step) {
  for (int64_t off = 0; off <= blocks / 2; ++off) {
    for (int sign = -1; sign <= 1; sign += 2) {
      int64_t b = blocks + sign * off;
      if (b > 1 && b <= extent && extent % b == 0 && extent / b % step == 0) {
        return b;
      }
    }
  }
  return 0;
}

static bool choose_cut(const split_t* s, const pestle_type_t* type,
                       pestle_i64s_t dims, int64_t element_bytes, cut_t* out) {
  int64_t blocks = count_blocks(s, pestle_type_count(type) * element_bytes,
                                count_groups(type, dims));
  if (blocks < 2) return false;
  out->dim = choose_dim(type, dims, blocks);
  int64_t extent = type->dims[out->dim];
  if (blocks > extent) blocks = extent;
  int64_t step = out->dim == type->rank - 1 ? BLOCK_STEP : 1;
  out->blocks = find_divisor(extent, blocks, step);
  if (out->blocks) {
    out->length = extent / out->blocks;
    return true;
  }
  out->length = (extent + blocks - 1) / blocks;
  out->length = (out->length + step - 1) / step * step;
  out->blocks = (extent + out->length - 1) / out->length;
  return out->blocks > 1;
}

// --- The pieces of the new graph ---

// |x| in blocks, the last one filled up with |fill|.
static pestle_value_t* cut_value(pestle_formula_t* f, pestle_value_t* x,
                                 const cut_t* cut, pestle_value_t* fill) {
  if (!x) return NULL;
  pestle_type_t whole = *x->type;
  int64_t high[PESTLE_MAX_RANK] = {0};
  high[cut->dim] = cut->blocks * cut->length - whole.dims[cut->dim];
  if (high[cut->dim]) x = pestle_f_pad(f, x, fill, NULL, high, NULL);
  pestle_type_t type = pestle_type_make(whole.dtype, 0, NULL);
  for (int32_t d = 0; d < whole.rank; ++d) {
    if (d != cut->dim) {
      type.dims[type.rank++] = whole.dims[d];
    } else {
      type.dims[type.rank++] = cut->blocks;
      type.dims[type.rank++] = cut->length;
    }
  }
  return pestle_f_reshape_to(f, x, &type);
}

// The reduced dims once |cut| has been made.
static size_t inner_dims(pestle_i64s_t dims, const cut_t* cut, int64_t* out) {
  for (size_t i = 0; i < dims.count; ++i) {
    out[i] = dims.data[i] + (dims.data[i] >= cut->dim);
  }
  return dims.count;
}

// The dim of the blocks in the results of the first reduction.
static int64_t block_dim(pestle_i64s_t dims, const cut_t* cut) {
  int64_t at = 0;
  for (int64_t d = 0; d < cut->dim; ++d)
    at += !pestle_i64s_has(dims, d);
  return at;
}

// --- Reductions by one op ---

static pestle_status_t split_by_op(split_t* s, pestle_node_t* node,
                                   pestle_op_t op) {
  pestle_value_t *x = operand(node, 0), *init = operand(node, 1);
  pestle_i64s_t dims = PESTLE_NODE_I64S(node, dimensions);
  pestle_dtype_t dtype = x->type->dtype;
  cut_t cut;
  if (!pestle_pass_may_regroup(s->ctx->options, op, dtype) ||
      !choose_cut(s, x->type, dims, (int64_t)pestle_dtype_size(dtype), &cut)) {
    return NULL;
  }
  pestle_formula_t f = pestle_formula_before(node);
  bool narrow = pestle_dtype_is(dtype, PESTLE_KIND_FLOAT) &&
                pestle_dtype_size(dtype) < pestle_dtype_size(PESTLE_F32);
  pestle_dtype_t wide = narrow ? PESTLE_F32 : dtype;
  x = pestle_f_convert(&f, x, wide);
  init = pestle_f_convert(&f, init, wide);
  int64_t inner[PESTLE_MAX_RANK], outer = block_dim(dims, &cut);
  pestle_i64s_t inside = {inner, inner_dims(dims, &cut, inner)};
  pestle_value_t* identity = pestle_f_identity(&f, op, wide);
  x = cut_value(&f, x, &cut, identity);
  x = pestle_f_reduce_from(&f, op, x, inside, identity);
  x = pestle_f_reduce_from(&f, op, x, (pestle_i64s_t){&outer, 1}, init);
  x = pestle_f_convert(&f, x, dtype);
  PESTLE_TRY(f.status);
  pestle_pass_replace(node, &x);
  s->changed = true;
  return NULL;
}

// --- Reductions by a region ---

// A copy of |node| that reduces |values| over other dims.
static pestle_node_t* clone_reduce(pestle_formula_t* f,
                                   const pestle_node_t* node,
                                   pestle_value_t* const* values,
                                   const int64_t* dims, size_t dim_count) {
  pestle_copier_t copier;
  pestle_node_t* copy;
  if (f->status) return NULL;
  pestle_attr_t attr = PESTLE_SET_I64S(dimensions, dims, dim_count);
  pestle_node_t changed = *node;
  changed.attrs = &attr;
  changed.attr_count = 1;
  pestle_copier_init(pestle_context_allocator(f->builder.module->context),
                     f->builder, &copier);
  for (uint32_t i = 0; i < node->operand_count / 2 && !f->status; ++i) {
    f->status = pestle_copier_set(&copier, operand(node, i), values[i]);
  }
  if (!f->status) f->status = pestle_copier_node(&copier, &changed, &copy);
  pestle_copier_deinit(&copier);
  return f->status ? NULL : copy;
}

// Whether the reduction of the initial values alone gives them back, to the bit.
// |probe| reduces one element, the initial value, for each.
static pestle_status_t evaluate_probe(split_t* s, const pestle_node_t* probe,
                                      bool* out_kept) {
  uint32_t n = probe->operand_count / 2;
  const void* data[2 * MAX_VALUES];
  uint64_t made[MAX_VALUES][2];
  void* results[MAX_VALUES];
  memset(made, 0, sizeof(made));
  for (uint32_t i = 0; i < 2 * n; ++i) {
    data[i] = pestle_value_constant(operand(probe, i))->data;
  }
  for (uint32_t i = 0; i < n; ++i)
    results[i] = made[i];
  PESTLE_TRY(pestle_ref_evaluate_node(pestle_context_allocator(s->ctx->context),
                                      probe, data, results));
  *out_kept = true;
  for (uint32_t i = 0; i < n; ++i) {
    size_t size = pestle_dtype_size(probe->results[i].type->dtype);
    if (memcmp(made[i], data[n + i], size)) *out_kept = false;
  }
  return NULL;
}

static pestle_status_t keeps_initial(split_t* s, pestle_node_t* node,
                                     bool* out_kept) {
  uint32_t n = node->operand_count / 2;
  pestle_formula_t f = pestle_formula_before(node);
  pestle_value_t* ones[MAX_VALUES];
  *out_kept = false;
  for (uint32_t i = 0; i < n; ++i) {
    if (!pestle_value_constant(operand(node, n + i))) return NULL;
  }
  for (uint32_t i = 0; i < n; ++i) {
    pestle_elements_t e = *pestle_value_constant(operand(node, n + i));
    e.type = pestle_type_make(e.type.dtype, 1, (int64_t[]){1});
    e.splat = true;
    ones[i] = pestle_f_elements(&f, &e);
  }
  int64_t dim = 0;
  pestle_node_t* probe = clone_reduce(&f, node, ones, &dim, 1);
  PESTLE_TRY(f.status);
  pestle_status_t status = evaluate_probe(s, probe, out_kept);
  pestle_node_erase(probe);
  for (uint32_t i = 0; i < n; ++i)
    pestle_node_erase(ones[i]->node);
  return status;
}

static pestle_status_t split_region(split_t* s, pestle_node_t* node) {
  uint32_t n = node->operand_count / 2;
  const pestle_type_t* type = operand(node, 0)->type;
  pestle_i64s_t dims = PESTLE_NODE_I64S(node, dimensions);
  int64_t bytes = 0;
  for (uint32_t i = 0; i < n; ++i) {
    bytes += (int64_t)pestle_dtype_size(operand(node, i)->type->dtype);
  }
  cut_t cut;
  bool kept;
  if (n > MAX_VALUES || is_strict(s) ||
      !choose_cut(s, type, dims, bytes, &cut)) {
    return NULL;
  }
  PESTLE_TRY(keeps_initial(s, node, &kept));
  if (!kept) return NULL;
  pestle_formula_t f = pestle_formula_before(node);
  pestle_value_t* values[MAX_VALUES];
  int64_t inner[PESTLE_MAX_RANK], outer = block_dim(dims, &cut);
  size_t count = inner_dims(dims, &cut, inner);
  for (uint32_t i = 0; i < n; ++i)
    values[i] = cut_value(&f, operand(node, i), &cut, operand(node, n + i));
  pestle_node_t* reduce = clone_reduce(&f, node, values, inner, count);
  PESTLE_TRY(f.status);
  for (uint32_t i = 0; i < n; ++i)
    values[i] = pestle_node_result(reduce, i);
  reduce = clone_reduce(&f, node, values, &outer, 1);
  PESTLE_TRY(f.status);
  for (uint32_t i = 0; i < n; ++i)
    values[i] = pestle_node_result(reduce, i);
  pestle_pass_replace(node, values);
  s->changed = true;
  return NULL;
}

// --- Products of a matrix and few vectors ---

// The dims of one side of a dot, and what they multiply to.
typedef struct side_t {
  pestle_value_t* value;
  pestle_i64s_t batch;
  int64_t contract, batches, rows;
} side_t;

static side_t read_side(pestle_value_t* value, pestle_i64s_t batch,
                        pestle_i64s_t contract) {
  side_t s = {value, batch, contract.data[0], 1, 1};
  for (int32_t d = 0; d < value->type->rank; ++d) {
    if (d == s.contract) continue;
    bool shared = pestle_i64s_has(batch, d);
    *(shared ? &s.batches : &s.rows) *= value->type->dims[d];
  }
  return s;
}

static bool is_contiguous(const side_t* s) {
  return s->contract == s->value->type->rank - 1 || s->rows == 1;
}

// Bytes of a matrix of columns from which on the sketches read it as it lies.
static int64_t least_matrix(const split_t* s, int64_t vectors) {
  if (vectors == 1) return LEAST_L2S * pestle_pass_l2_bytes(s->ctx);
  uint64_t l3 = s->ctx->caps->l3_bytes;
  return (l3 ? (int64_t)l3 : DEFAULT_L3_BYTES) / 2 + 1;
}

// How many blocks of the taps; 1: none.
static int64_t count_dot_blocks(const split_t* s, const side_t* vectors,
                                const side_t* matrix) {
  const pestle_type_t* type = matrix->value->type;
  int64_t taps = type->dims[matrix->contract];
  bool rows = is_contiguous(matrix);
  if (!pestle_type_count(type) || !vectors->rows) return 1;  // nothing to read
  if (vectors->rows > MOST_VECTORS || pestle_value_constant(matrix->value) ||
      (rows && !is_contiguous(vectors))) {
    return 1;
  }
  int64_t columns = rows ? DOT_ROWS : PANEL_COLUMNS;
  int64_t groups = matrix->batches * ((matrix->rows + columns - 1) / columns);
  int64_t bytes =
      pestle_type_count(type) * (int64_t)pestle_dtype_size(type->dtype);
  if (!rows && bytes < least_matrix(s, vectors->rows)) return 1;
  int64_t blocks = count_blocks(s, bytes, groups);
  int64_t most = taps / (rows ? LEAST_DOT : LEAST_TAPS * vectors->rows);
  // Nothing is read twice, so that there is no need for small blocks.
  if (blocks > WANTED_GROUPS / groups) blocks = WANTED_GROUPS / groups;
  if (blocks > most) blocks = most;
  if (blocks < 2) return 1;
  blocks = find_divisor(taps, blocks, rows ? BLOCK_STEP : 1);
  return blocks <= most ? blocks : 1;
}

// The same where lanes make tiles of the results, which are few and of many taps each.
static int64_t count_tile_blocks(const split_t* s, const side_t* lhs,
                                 const side_t* rhs) {
  const pestle_target_caps_t* caps = s->ctx->caps;
  const pestle_type_t* type = lhs->value->type;
  int64_t taps = type->dims[lhs->contract], rows = lhs->batches * lhs->rows;
  int64_t tiles = lhs->batches * pestle_ceil_div(lhs->rows, TILE) *
                  pestle_ceil_div(rhs->rows, TILE);
  if (!tiles || rows * rhs->rows < LEAST_PRODUCTS / (taps + 1)) return 1;
  int64_t blocks = CORE_GROUPS * (int64_t)caps->cores / tiles;
  int64_t most = taps / LEAST_TILE_TAPS;
  if (blocks > most) blocks = most;
  if (blocks < LEAST_PARTS) return 1;
  blocks = find_divisor(taps, blocks, 1);
  return blocks < LEAST_PARTS ? 1 : blocks;
}

// |side| with its taps in blocks, and its batch dims then.
static pestle_value_t* cut_side(pestle_formula_t* f, const side_t* side,
                                int64_t blocks, int64_t* out_batch) {
  int64_t taps = side->value->type->dims[side->contract];
  cut_t cut = {side->contract, blocks, taps / blocks};
  size_t n = inner_dims(side->batch, &cut, out_batch);
  out_batch[n] = side->contract;
  return cut_value(f, side->value, &cut, NULL);
}

static pestle_value_t* make_block_dot(pestle_formula_t* f,
                                      const pestle_node_t* node,
                                      const side_t* lhs, const side_t* rhs,
                                      int64_t blocks) {
  pestle_value_t* operands[2];
  int64_t lb[PESTLE_MAX_RANK], rb[PESTLE_MAX_RANK];
  operands[0] = cut_side(f, lhs, blocks, lb);
  operands[1] = cut_side(f, rhs, blocks, rb);
  int64_t left = lhs->contract + 1, right = rhs->contract + 1;
  size_t n = lhs->batch.count;
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64S(lhs_batching_dimensions, lb, n + 1),
      PESTLE_SET_I64S(rhs_batching_dimensions, rb, n + 1),
      PESTLE_SET_I64S(lhs_contracting_dimensions, &left, 1),
      PESTLE_SET_I64S(rhs_contracting_dimensions, &right, 1)};
  const pestle_type_t* whole = node->results[0].type;
  bool narrow = pestle_dtype_is(whole->dtype, PESTLE_KIND_FLOAT) &&
                pestle_dtype_size(whole->dtype) < 4;
  pestle_type_t type =
      pestle_type_make(narrow ? PESTLE_F32 : whole->dtype, 0, NULL);
  for (int32_t d = 0; d < whole->rank; ++d) {
    if (d == (int32_t)n) type.dims[type.rank++] = blocks;
    type.dims[type.rank++] = whole->dims[d];
  }
  if (whole->rank == (int32_t)n) type.dims[type.rank++] = blocks;
  return pestle_f_make(f, PESTLE_OP_DOT_GENERAL, operands, 2, attrs, 4, &type);
}

// A product that a group of its own would only share badly: blocks of the taps
// become a batch, and their products are added.
static pestle_status_t split_dot(split_t* s, pestle_node_t* node) {
  pestle_i64s_t lc = PESTLE_NODE_I64S(node, lhs_contracting_dimensions);
  pestle_i64s_t rc = PESTLE_NODE_I64S(node, rhs_contracting_dimensions);
  const pestle_type_t* whole = node->results[0].type;
  if (is_strict(s) || lc.count != 1 || whole->rank >= PESTLE_MAX_RANK ||
      operand(node, 0)->type->rank >= PESTLE_MAX_RANK ||
      operand(node, 1)->type->rank >= PESTLE_MAX_RANK ||
      pestle_dtype_is(whole->dtype, PESTLE_KIND_COMPLEX)) {
    return NULL;
  }
  side_t lhs = read_side(operand(node, 0),
                         PESTLE_NODE_I64S(node, lhs_batching_dimensions), lc);
  side_t rhs = read_side(operand(node, 1),
                         PESTLE_NODE_I64S(node, rhs_batching_dimensions), rc);
  bool right = rhs.rows >= lhs.rows;
  // What makes the matrix may go into the kernel only as it is.
  const pestle_node_t* made = (right ? &rhs : &lhs)->value->node;
  if (made && pestle_fuse_is_elementwise(made)) return NULL;
  bool tiles = s->ctx->caps->flags & PESTLE_TARGET_LANES &&
               lhs.value->type->dtype == PESTLE_F32;
  int64_t blocks =
      tiles ? count_tile_blocks(s, &lhs, &rhs)
            : count_dot_blocks(s, right ? &lhs : &rhs, right ? &rhs : &lhs);
  if (blocks < 2) return NULL;
  pestle_formula_t f = pestle_formula_before(node);
  int64_t dim = (int64_t)lhs.batch.count;
  pestle_value_t* x = make_block_dot(&f, node, &lhs, &rhs, blocks);
  x = pestle_f_reduce(&f, PESTLE_OP_ADD, x, (pestle_i64s_t){&dim, 1}, 0);
  x = pestle_f_convert(&f, x, whole->dtype);
  PESTLE_TRY(f.status);
  pestle_pass_replace(node, &x);
  s->changed = true;
  return NULL;
}

// --- The pass ---

static bool is_static(const pestle_node_t* node) {
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (!pestle_type_is_static(operand(node, i)->type)) return false;
  }
  return node->operand_count > 0;
}

static pestle_status_t split_reduce(split_t* s, pestle_node_t* node) {
  const pestle_type_t* type = operand(node, 0)->type;
  pestle_i64s_t dims = PESTLE_NODE_I64S(node, dimensions);
  if (!dims.count || type->rank == PESTLE_MAX_RANK) return NULL;
  pestle_op_t op = node->operand_count == 2
                       ? pestle_block_reduce_op(pestle_node_body(node, 0))
                       : PESTLE_OP_COUNT;
  return op == PESTLE_OP_COUNT ? split_region(s, node)
                               : split_by_op(s, node, op);
}

// Rows that would be cut as reductions: the composite as core ops, else NULL.
static pestle_status_t open_composite(split_t* s, pestle_node_t* node,
                                      pestle_node_t** out_first) {
  *out_first = NULL;
  const pestle_type_t* type = operand(node, 0)->type;
  cut_t cut;
  if (pestle_fuse_kind_of(node) != PESTLE_FUSE_KIND_ROW || is_strict(s) ||
      type->rank == PESTLE_MAX_RANK ||
      !choose_cut(s, type, PESTLE_NODE_I64S(node, dimensions),
                  (int64_t)pestle_dtype_size(type->dtype), &cut)) {
    return NULL;
  }
  pestle_node_t* before = node->prev;
  pestle_value_t* out[1];
  PESTLE_TRY(pestle_decompose(node, out));
  *out_first = before ? before->next : node->block->first;
  pestle_pass_replace(node, out);
  s->changed = true;
  return NULL;
}

static pestle_status_t split_block(void* user, pestle_module_t* module,
                                   pestle_block_t* block) {
  split_t* s = user;
  (void)module;
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    if (!is_static(n)) continue;
    if (n->op == PESTLE_OP_REDUCE) {
      PESTLE_TRY(split_reduce(s, n));
    } else if (n->op == PESTLE_OP_DOT_GENERAL) {
      PESTLE_TRY(split_dot(s, n));
    } else if (pestle_pass_info(n)->fuse == PESTLE_FUSE_COMPOSITE) {
      pestle_node_t* first;
      PESTLE_TRY(open_composite(s, n, &first));
      if (first) next = first;
    }
  }
  return NULL;
}

pestle_status_t pestle_pass_split_reductions(pestle_pass_context_t* ctx,
                                             pestle_module_t* module,
                                             bool* out_changed) {
  split_t s = {.ctx = ctx};
  PESTLE_TRY(pestle_pass_each_block(module, split_block, &s));
  // Reductions of one value read the same blocks.
  if (s.changed) PESTLE_TRY(pestle_pass_cse(ctx, module, &s.changed));
  *out_changed = s.changed;
  return NULL;
}

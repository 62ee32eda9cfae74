// SPDX-License-Identifier: Apache-2.0
// A running fold, spelled as a window as long as its axis, takes work that
// grows with the square of the extent. It becomes running folds of blocks, to
// which the fold of all blocks before is added:
//
//   %0 = reduce_window add %x       %1 = reshape %x               // [16, 8]
//          window [128]             %2 = reduce_window add %1
//          padding [127, 0]    ->          window [1, 8] padding [7, 0]
//                                   %3 = reduce add %1 over [1]
//                                   %4 = reduce_window add %3     // exclusive
//                                          window [16] padding [16, -1]
//                                   %0 = reshape (add (broadcast %4) %2)
//
// The fold of the blocks before is such a window itself and is split as long as
// it is long. The same for folds from the end, for those that leave their own
// element out, and for part of the results. Where the blocks do not fill the
// axis, neutral elements do.
//
// Every element of padding enters the initial value anew, so that it has to be
// neutral, or the op one that does not count (maximum, and). Under
// PESTLE_NUMERICS_STRICT float sums and products stay as they are. Narrow
// floats are kept in f32 throughout.
#include "passes/util.h"

enum {
  // Elements of a block: one vector of most types. Of 4 and of 16 the running
  // sums of a million f32 in a row take 1.2 and 1.7 times as long; 10 leave
  // lanes idle (2.1 times).
  BLOCK = 8,
  // Windows that are shorter stay as they are: of 16 to a row 2 kernels more
  // win next to nothing. More than a block, so that this comes to an end.
  LEAST_WINDOW = 32,
};

// Of result i along |dim|: the fold of elements [0, i] of x, or [i, end) when
// |reverse|, once x has |low| and |high| initial values around it.
typedef struct scan_t {
  pestle_value_t *x, *init;
  pestle_op_t op;
  int32_t dim;
  bool reverse;
  int64_t low, high;
} scan_t;

// --- Which windows are running folds ---

static bool is_plain(const pestle_node_t* node) {
  return node->operand_count == 2 && node->result_count == 1 &&
         pestle_type_is_static(pestle_node_operand(node, 0)->type) &&
         pestle_pass_i64s_all(PESTLE_NODE_I64S(node, window_strides), 1) &&
         pestle_pass_i64s_all(PESTLE_NODE_I64S(node, base_dilations), 1) &&
         pestle_pass_i64s_all(PESTLE_NODE_I64S(node, window_dilations), 1);
}

// The one dim whose windows are longer than 1; without another's padding.
static int32_t find_dim(const pestle_node_t* node) {
  pestle_i64s_t window = PESTLE_NODE_I64S(node, window_dimensions);
  pestle_i64s_t padding = PESTLE_NODE_I64S(node, padding);
  int32_t dim = -1;
  for (int32_t d = 0; d < (int32_t)window.count; ++d) {
    if (window.data[d] != 1) {
      if (dim >= 0) return -1;
      dim = d;
    } else if (padding.data[2 * d] || padding.data[2 * d + 1]) {
      return -1;
    }
  }
  return dim;
}

// Result i folds the elements [i - low, i - low + window) that there are.
static bool read_range(const pestle_node_t* node, scan_t* out) {
  int64_t window = PESTLE_NODE_I64S(node, window_dimensions).data[out->dim];
  int64_t low = PESTLE_NODE_I64S(node, padding).data[2 * out->dim];
  int64_t extent = out->x->type->dims[out->dim];
  int64_t results = node->results[0].type->dims[out->dim];
  if (window < LEAST_WINDOW || results < LEAST_WINDOW) return false;
  if (results - 1 <= low && window - 1 <= low) {
    out->reverse = false;
    out->low = low - (window - 1);
    out->high = results - extent - out->low;
    return true;
  }
  out->reverse = true;
  out->low = low;
  out->high = results - extent - low;
  return low <= 0 && out->high >= 0 && window - low >= extent;
}

// Whether padding, which is the initial value, adds nothing.
static bool may_repeat(pestle_op_t op, const pestle_value_t* init) {
  switch ((int)op) {
    case PESTLE_OP_MAXIMUM:
    case PESTLE_OP_MINIMUM:
    case PESTLE_OP_AND:
    case PESTLE_OP_OR:
      return true;
    case PESTLE_OP_ADD:
    case PESTLE_OP_XOR:
      return pestle_pass_splat_is(init, 0);
    case PESTLE_OP_MULTIPLY:
      return pestle_pass_splat_is(init, 1);
    default:
      return false;
  }
}

static bool read_scan(const pestle_pass_context_t* ctx,
                      const pestle_node_t* node, scan_t* out) {
  if (node->op != PESTLE_OP_REDUCE_WINDOW || !is_plain(node)) return false;
  out->x = pestle_node_operand(node, 0);
  out->init = pestle_node_operand(node, 1);
  out->op = pestle_block_fold_op(pestle_node_body(node, 0));
  out->dim = find_dim(node);
  return out->op != PESTLE_OP_COUNT && out->dim >= 0 &&
         pestle_type_count(node->results[0].type) > 0 &&
         pestle_pass_may_regroup(ctx->options, out->op, out->x->type->dtype) &&
         may_repeat(out->op, out->init) && read_range(node, out);
}

// --- The pieces of the new graph ---

static pestle_status_t pad(pestle_builder_t* b, pestle_value_t* x, int32_t dim,
                           int64_t low, int64_t high, pestle_value_t* fill,
                           pestle_value_t** out) {
  int64_t lows[PESTLE_MAX_RANK] = {0}, highs[PESTLE_MAX_RANK] = {0};
  int64_t none[PESTLE_MAX_RANK] = {0};
  int32_t rank = x->type->rank;
  lows[dim] = low;
  highs[dim] = high;
  pestle_attr_t attrs[] = {PESTLE_SET_I64S(edge_padding_low, lows, rank),
                           PESTLE_SET_I64S(edge_padding_high, highs, rank),
                           PESTLE_SET_I64S(interior_padding, none, rank)};
  pestle_value_t* operands[2] = {x, fill};
  *out = x;
  if (!low && !high) return NULL;
  return pestle_pass_make(b, PESTLE_OP_PAD, operands, 2, attrs, 3, NULL, out);
}

static pestle_status_t fold(pestle_builder_t* b, pestle_op_t kind,
                            pestle_op_t op, pestle_value_t* const operands[2],
                            const pestle_attr_t* attrs, size_t attr_count,
                            pestle_value_t** out) {
  pestle_region_t* region;
  PESTLE_TRY(pestle_pass_fold_region(b, op, operands[0]->type->dtype, &region));
  pestle_node_spec_t spec = {.op = kind,
                             .operands = operands,
                             .operand_count = 2,
                             .attrs = attrs,
                             .attr_count = attr_count,
                             .regions = &region,
                             .region_count = 1};
  pestle_node_t* node;
  PESTLE_TRY(pestle_node_create(b, &spec, &node));
  *out = pestle_node_result(node, 0);
  return NULL;
}

// The running fold of |s| along |dim|; |exclusive|: without the own element.
static pestle_status_t make_window(pestle_builder_t* b, const scan_t* s,
                                   pestle_value_t* x, pestle_value_t* init,
                                   int32_t dim, bool exclusive,
                                   pestle_value_t** out) {
  int64_t sizes[PESTLE_MAX_RANK], ones[PESTLE_MAX_RANK];
  int64_t padding[2 * PESTLE_MAX_RANK] = {0};
  int32_t rank = x->type->rank;
  for (int32_t d = 0; d < rank; ++d)
    sizes[d] = ones[d] = 1;
  sizes[dim] = x->type->dims[dim];
  padding[2 * dim + s->reverse] = sizes[dim] - !exclusive;
  padding[2 * dim + !s->reverse] = exclusive ? -1 : 0;
  pestle_attr_t attrs[] = {PESTLE_SET_I64S(window_dimensions, sizes, rank),
                           PESTLE_SET_I64S(window_strides, ones, rank),
                           PESTLE_SET_I64S(base_dilations, ones, rank),
                           PESTLE_SET_I64S(window_dilations, ones, rank),
                           PESTLE_SET_I64S(padding, padding, 2 * rank)};
  pestle_value_t* operands[2] = {x, init};
  return fold(b, PESTLE_OP_REDUCE_WINDOW, s->op, operands, attrs, 5, out);
}

// The fold of all blocks before each block, for every element of it.
static pestle_status_t fold_before(pestle_builder_t* b, const scan_t* s,
                                   pestle_value_t* blocks,
                                   pestle_value_t* neutral,
                                   pestle_value_t* init, pestle_value_t** out) {
  int64_t inner = s->dim + 1, map[PESTLE_MAX_RANK];
  pestle_attr_t attr = PESTLE_SET_I64S(dimensions, &inner, 1);
  pestle_value_t *operands[2] = {blocks, neutral}, *x;
  PESTLE_TRY(fold(b, PESTLE_OP_REDUCE, s->op, operands, &attr, 1, &x));
  PESTLE_TRY(make_window(b, s, x, init, s->dim, true, &x));
  for (int32_t d = 0; d < x->type->rank; ++d)
    map[d] = d + (d > s->dim);
  return pestle_pass_broadcast(b, x, blocks->type, map, out);
}

// |x|, whose results are asked for, in blocks; those that fill the last one
// (the first one of a fold from the end) up are cut off by trim().
static pestle_status_t cut(pestle_builder_t* b, const scan_t* s,
                           pestle_value_t* x, int64_t missing,
                           pestle_value_t* neutral, pestle_value_t** out) {
  PESTLE_TRY(pad(b, x, s->dim, 0, missing, neutral, &x));
  pestle_type_t type = pestle_type_make(x->type->dtype, 0, NULL);
  for (int32_t d = 0; d < x->type->rank; ++d) {
    bool here = d == s->dim;
    type.dims[type.rank++] = x->type->dims[d] / (here ? BLOCK : 1);
    if (here) type.dims[type.rank++] = BLOCK;
  }
  return pestle_pass_reshape(b, x, &type, out);
}

static pestle_status_t trim(pestle_builder_t* b, const scan_t* s,
                            pestle_value_t* x, const pestle_type_t* type,
                            pestle_value_t** out) {
  int64_t start[PESTLE_MAX_RANK] = {0}, strides[PESTLE_MAX_RANK];
  for (int32_t d = 0; d < type->rank; ++d)
    strides[d] = 1;
  pestle_type_t whole = *type;
  whole.dims[s->dim] = (type->dims[s->dim] + BLOCK - 1) / BLOCK * BLOCK;
  PESTLE_TRY(pestle_pass_reshape(b, x, &whole, &x));
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64S(start_indices, start, type->rank),
      PESTLE_SET_I64S(limit_indices, type->dims, type->rank),
      PESTLE_SET_I64S(strides, strides, type->rank)};
  *out = x;
  if (whole.dims[s->dim] == type->dims[s->dim]) return NULL;
  return pestle_pass_make(b, PESTLE_OP_SLICE, &x, 1, attrs, 3, NULL, out);
}

// The dims on either side of the axis as one, since a kernel has few.
static pestle_type_t collapse(const pestle_type_t* type, int32_t dim) {
  pestle_type_t out = pestle_type_make(type->dtype, 0, NULL);
  for (int32_t d = 0; d < type->rank; ++d) {
    bool joins = d > 0 && d != dim && d != dim + 1;
    if (joins) {
      out.dims[out.rank - 1] *= type->dims[d];
    } else {
      out.dims[out.rank++] = type->dims[d];
    }
  }
  return out;
}

static pestle_status_t split_scan(scan_t* s, pestle_node_t* node) {
  pestle_builder_t b = pestle_builder_before(node);
  const pestle_type_t* whole = node->results[0].type;
  pestle_dtype_t dtype = whole->dtype;
  pestle_type_t from = collapse(s->x->type, s->dim);
  pestle_type_t type = collapse(whole, s->dim);
  pestle_value_t *x, *init = s->init, *neutral, *before, *inside;
  s->dim = s->dim > 0;
  PESTLE_TRY(pestle_pass_reshape(&b, s->x, &from, &x));
  PESTLE_TRY(pad(&b, x, s->dim, s->low, s->high, init, &x));
  if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT) &&
      pestle_dtype_size(dtype) < pestle_dtype_size(PESTLE_F32)) {
    PESTLE_TRY(pestle_pass_convert(&b, x, PESTLE_F32, &x));
    PESTLE_TRY(pestle_pass_convert(&b, init, PESTLE_F32, &init));
  }
  int64_t missing = (BLOCK - type.dims[s->dim] % BLOCK) % BLOCK;
  PESTLE_TRY(pestle_pass_neutral(&b, s->op, x->type->dtype, &neutral));
  PESTLE_TRY(cut(&b, s, x, missing, neutral, &x));
  PESTLE_TRY(fold_before(&b, s, x, neutral, init, &before));
  PESTLE_TRY(make_window(&b, s, x, neutral, s->dim + 1, false, &inside));
  PESTLE_TRY(pestle_pass_binary(&b, s->op, before, inside, &x));
  PESTLE_TRY(trim(&b, s, x, &type, &x));
  PESTLE_TRY(pestle_pass_reshape(&b, x, whole, &x));
  PESTLE_TRY(pestle_pass_convert(&b, x, dtype, &x));
  pestle_pass_replace(node, &x);
  return NULL;
}

// --- The pass ---

typedef struct split_t {
  const pestle_pass_context_t* ctx;
  bool changed;
} split_t;

static pestle_status_t split_block(void* user, pestle_module_t* module,
                                   pestle_block_t* block) {
  split_t* split = user;
  (void)module;
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    scan_t s;
    next = n->next;
    if (!read_scan(split->ctx, n, &s)) continue;
    // What it becomes begins behind this, and holds a window to split.
    pestle_node_t* before = n->prev;
    PESTLE_TRY(split_scan(&s, n));
    next = before ? before->next : block->first;
    split->changed = true;
  }
  return NULL;
}

pestle_status_t pestle_pass_split_scans(pestle_pass_context_t* ctx,
                                        pestle_module_t* module,
                                        bool* out_changed) {
  split_t split = {.ctx = ctx};
  PESTLE_TRY(pestle_pass_each_block(module, split_block, &split));
  *out_changed = split.changed;
  return NULL;
}

// SPDX-License-Identifier: Apache-2.0
// A running reduction, spelled as a window as long as its axis, takes work that
// grows with the square of the extent. It becomes running reductions of blocks, to
// which the reduction of all blocks before is added:
//
//   %0 = reduce_window add %x       %1 = reshape %x               // [16, 8]
//          window [128]             %2 = reduce_window add %1
//          padding [127, 0]    ->          window [1, 8] padding [7, 0]
//                                   %3 = reduce add %1 over [1]
//                                   %4 = reduce_window add %3     // exclusive
//                                          window [16] padding [16, -1]
//                                   %0 = reshape (add (broadcast %4) %2)
//
// The reduction of the blocks before is such a window itself and is split as long as
// it is long. The same for reductions from the end, for those that leave their own
// element out, and for part of the results. Where the blocks do not fill the
// axis, the op's identity fills it.
//
// Every element of padding enters the initial value anew. So the initial value has to
// be the identity, or the op one to which repetition makes no difference (maximum,
// and). Narrow floats are
// kept in f32 throughout.
//
// On targets of lanes the window is a group of its own instead, which is one kernel:
// lanes go along the axis together (codegen/direct/direct_running.c).
//
// Under PESTLE_NUMERICS_STRICT float sums and products keep the order of their
// terms: a loop over blocks, each of which begins with what the one before it
// ended with, and is replaced by its running reduction. From the end they stay as
// they are.
#include "passes/util.h"

enum {
  // Elements of a block: one vector of most types. Of 4 and of 16 the running
  // sums of a million f32 in a row take 1.2 and 1.7 times as long; 10 leave
  // lanes idle (2.1 times).
  BLOCK = 8,
  // Windows that are shorter stay as they are: of 16 they would gain a third
  // for two kernels more, of 32 they gain two. More than a block, so that this
  // comes to an end.
  LEAST_WINDOW = 32,
  // The same for the loop: of blocks of 16 or 64 a million f32 in a row take
  // 1.4 times as long; a row of 128 takes two thirds of what its window does.
  LOOP_BLOCK = 32,
  LEAST_LOOP_WINDOW = 128,
  LEAST_LANES = 32,
};

// Of result i along |dim|: the reduction of elements [0, i] of x, or [i, end) when
// |reverse|, once x has |low| and |high| initial values around it.
typedef struct scan_t {
  pestle_value_t *x, *init;
  pestle_op_t op;
  int32_t dim;
  bool reverse, ordered, whole;
  int64_t low, high;
  int64_t block;
  // Of begin(): the identity, and the results' type with the dims on
  // either side of the axis as one.
  pestle_value_t* identity;
  pestle_type_t type;
} scan_t;

// --- Which windows are running reductions ---

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

// Result i reduces the elements [i - low, i - low + window) that there are.
static bool read_range(const pestle_node_t* node, scan_t* out) {
  int64_t window = PESTLE_NODE_I64S(node, window_dimensions).data[out->dim];
  int64_t low = PESTLE_NODE_I64S(node, padding).data[2 * out->dim];
  int64_t extent = out->x->type->dims[out->dim];
  int64_t results = node->results[0].type->dims[out->dim];
  int64_t least = out->ordered ? LEAST_LOOP_WINDOW : LEAST_WINDOW;
  if (window < least || results < least) return false;
  if (results - 1 <= low && window - 1 <= low) {
    out->reverse = false;
    out->low = low - (window - 1);
    out->high = results - extent - out->low;
    return true;
  }
  // From the end, each result's sum begins with another term.
  if (out->ordered) return false;
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

// Complex numbers have no kernels.
static bool read_order(const pestle_pass_context_t* ctx, scan_t* out) {
  pestle_dtype_t dtype = out->x->type->dtype;
  out->ordered = !pestle_pass_may_regroup(ctx->options, out->op, dtype);
  out->whole = !out->ordered && ctx->caps &&
               ctx->caps->flags & PESTLE_TARGET_LANES &&
               ctx->caps->max_group_lanes >= LEAST_LANES &&
               pestle_dtype_is(dtype, PESTLE_KIND_REAL) &&
               pestle_dtype_info(dtype)->bits >= 8;
  out->block = out->ordered ? LOOP_BLOCK : out->whole ? 1 : BLOCK;
  return !pestle_dtype_is(dtype, PESTLE_KIND_COMPLEX);
}

static bool read_scan(const pestle_pass_context_t* ctx,
                      const pestle_node_t* node, scan_t* out) {
  if (node->op != PESTLE_OP_REDUCE_WINDOW || !is_plain(node)) return false;
  out->x = pestle_node_operand(node, 0);
  out->init = pestle_node_operand(node, 1);
  out->op = pestle_block_reduce_op(pestle_node_body(node, 0));
  out->dim = find_dim(node);
  return out->op != PESTLE_OP_COUNT && out->dim >= 0 &&
         pestle_type_count(node->results[0].type) > 0 && read_order(ctx, out) &&
         may_repeat(out->op, out->init) && read_range(node, out);
}

// --- The pieces of the new graph ---

static pestle_value_t* pad(pestle_formula_t* f, pestle_value_t* x, int32_t dim,
                           int64_t low, int64_t high, pestle_value_t* fill) {
  int64_t lows[PESTLE_MAX_RANK] = {0}, highs[PESTLE_MAX_RANK] = {0};
  lows[dim] = low;
  highs[dim] = high;
  return pestle_f_pad(f, x, fill, lows, highs, NULL);
}

// The running reduction of |s| along |dim|; |shift| 1: without the own element, -1:
// without the first result.
static pestle_value_t* make_window(pestle_formula_t* f, const scan_t* s,
                                   pestle_value_t* x, pestle_value_t* init,
                                   int32_t dim, int64_t shift) {
  pestle_windows_t w;
  if (!x) return NULL;
  pestle_windows_init(&w);
  w.sizes[dim] = x->type->dims[dim];
  w.padding[2 * dim + s->reverse] = w.sizes[dim] - 1 + shift;
  w.padding[2 * dim + !s->reverse] = shift > 0 ? -shift : 0;
  return pestle_f_reduce_windows(f, s->op, x, init, &w);
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

// |s->x| with an element for each result, and identities that fill its last
// block.
static pestle_value_t* begin(pestle_formula_t* f, scan_t* s,
                             const pestle_node_t* node) {
  pestle_type_t from = collapse(s->x->type, s->dim);
  s->type = collapse(node->results[0].type, s->dim);
  s->dim = s->dim > 0;
  pestle_value_t* x = pestle_f_reshape_to(f, s->x, &from);
  x = pad(f, x, s->dim, s->low, s->high, s->init);
  bool narrow = !s->whole && pestle_dtype_is(from.dtype, PESTLE_KIND_FLOAT) &&
                pestle_dtype_size(from.dtype) < pestle_dtype_size(PESTLE_F32);
  pestle_dtype_t wide = narrow ? PESTLE_F32 : from.dtype;
  x = pestle_f_convert(f, x, wide);
  s->init = pestle_f_convert(f, s->init, wide);
  s->identity = pestle_f_identity(f, s->op, wide);
  int64_t over = s->type.dims[s->dim] % s->block;
  return pad(f, x, s->dim, 0, over ? s->block - over : 0, s->identity);
}

// Puts |x|, the running reduction of s->x, in the place of |node|'s result.
static pestle_status_t finish(pestle_formula_t* f, const scan_t* s,
                              pestle_value_t* x, pestle_node_t* node) {
  const pestle_type_t* type = node->results[0].type;
  x = pestle_f_slice_axis(f, x, s->dim, 0, s->type.dims[s->dim]);
  x = pestle_f_reshape_to(f, x, type);
  x = pestle_f_convert(f, x, type->dtype);
  PESTLE_TRY(f->status);
  pestle_pass_replace(node, &x);
  return NULL;
}

// --- Blocks side by side ---

// The reduction of all blocks before each block, for every element of it.
static pestle_value_t* reduce_before(pestle_formula_t* f, const scan_t* s,
                                     pestle_value_t* blocks) {
  int64_t inner = s->dim + 1, map[PESTLE_MAX_RANK];
  if (!blocks) return NULL;
  pestle_value_t* x = pestle_f_reduce_from(
      f, s->op, blocks, (pestle_i64s_t){&inner, 1}, s->identity);
  x = make_window(f, s, x, s->init, s->dim, 1);
  for (int32_t d = 0; d + 1 < blocks->type->rank; ++d)
    map[d] = d + (d > s->dim);
  return pestle_f_broadcast_to(f, x, blocks->type, map);
}

static pestle_value_t* cut(pestle_formula_t* f, const scan_t* s) {
  const pestle_type_t* whole = s->x->type;
  pestle_type_t type = pestle_type_make(whole->dtype, 0, NULL);
  for (int32_t d = 0; d < whole->rank; ++d) {
    bool here = d == s->dim;
    type.dims[type.rank++] = whole->dims[d] / (here ? s->block : 1);
    if (here) type.dims[type.rank++] = s->block;
  }
  return pestle_f_reshape_to(f, s->x, &type);
}

static pestle_value_t* make_levels(pestle_formula_t* f, const scan_t* s) {
  pestle_value_t* blocks = cut(f, s);
  pestle_value_t* before = reduce_before(f, s, blocks);
  pestle_value_t* inside =
      make_window(f, s, blocks, s->identity, s->dim + 1, 0);
  pestle_value_t* x = pestle_f_binary(f, s->op, before, inside);
  return pestle_f_reshape_to(f, x, s->x->type);
}

// --- Blocks one after the other ---

enum { LOOP_VALUES = 3 };  // elements done, the array, the last result

// A formula in a new region over |types|; NULL in |*out_region| on failure.
static pestle_formula_t enter_region(pestle_formula_t* around,
                                     const pestle_type_t* types,
                                     pestle_region_t** out_region) {
  pestle_builder_t b = {.module = around->builder.module,
                        .loc = around->builder.loc};
  *out_region = NULL;
  pestle_formula_t f = {.status =
                            pestle_region_create(b.module, types, LOOP_VALUES,
                                                 out_region, &b.block)};
  f.builder = b;
  return f;
}

static pestle_status_t loop_condition(pestle_formula_t* around, const scan_t* s,
                                      const pestle_type_t* types,
                                      pestle_region_t** out_region) {
  pestle_formula_t f = enter_region(around, types, out_region);
  PESTLE_TRY(f.status);
  pestle_value_t* done = pestle_block_argument(f.builder.block, 0);
  double end = (double)s->x->type->dims[s->dim];
  pestle_value_t* goes_on =
      pestle_f_lt(&f, done, pestle_f_splat(&f, done, end));
  PESTLE_TRY(f.status);
  return pestle_op_return(&f.builder, &goes_on, 1, NULL);
}

// The running reduction of the block at |at| of |x|, begun with |last|.
static pestle_value_t* reduce_block(pestle_formula_t* f, const scan_t* s,
                                    pestle_value_t* x, pestle_value_t* last,
                                    pestle_value_t* const* at) {
  pestle_type_t type = *x->type;
  size_t rank = (size_t)type.rank;
  pestle_value_t* operands[PESTLE_MAX_RANK + 1] = {x};
  for (size_t d = 0; d < rank; ++d)
    operands[d + 1] = at[d];
  type.dims[s->dim] = s->block;
  pestle_attr_t sizes = PESTLE_SET_I64S(slice_sizes, type.dims, rank);
  pestle_value_t* block = pestle_f_make(f, PESTLE_OP_DYNAMIC_SLICE, operands,
                                        rank + 1, &sizes, 1, NULL);
  pestle_value_t* both =
      pestle_f_concatenate(f, (pestle_value_t*[]){last, block}, 2, s->dim);
  return make_window(f, s, both, s->identity, s->dim, -1);
}

static pestle_status_t loop_body(pestle_formula_t* around, const scan_t* s,
                                 const pestle_type_t* types,
                                 pestle_region_t** out_region) {
  pestle_formula_t f = enter_region(around, types, out_region);
  PESTLE_TRY(f.status);
  pestle_block_t* block = f.builder.block;
  pestle_value_t* done = pestle_block_argument(block, 0);
  pestle_value_t* x = pestle_block_argument(block, 1);
  pestle_value_t* next[LOOP_VALUES];
  pestle_value_t* operands[PESTLE_MAX_RANK + 2] = {x};
  pestle_value_t* zero = pestle_f_scalar(&f, PESTLE_I64, 0);
  pestle_value_t* step = pestle_f_scalar(&f, PESTLE_I64, (double)s->block);
  for (int32_t d = 0; d < x->type->rank; ++d)
    operands[d + 2] = d == s->dim ? done : zero;
  operands[1] =
      reduce_block(&f, s, x, pestle_block_argument(block, 2), operands + 2);
  next[0] = pestle_f_add(&f, done, step);
  next[1] = pestle_f_make(&f, PESTLE_OP_DYNAMIC_UPDATE_SLICE, operands,
                          (size_t)x->type->rank + 2, NULL, 0, NULL);
  next[2] =
      pestle_f_slice_axis(&f, operands[1], s->dim, s->block - 1, s->block);
  PESTLE_TRY(f.status);
  return pestle_op_return(&f.builder, next, LOOP_VALUES, NULL);
}

static pestle_value_t* make_loop(pestle_formula_t* f, const scan_t* s) {
  pestle_type_t types[LOOP_VALUES] = {pestle_type_make(PESTLE_I64, 0, NULL),
                                      *s->x->type, *s->x->type};
  pestle_value_t* operands[LOOP_VALUES] = {NULL, s->x, NULL};
  pestle_region_t* regions[2];
  types[2].dims[s->dim] = 1;
  operands[0] = pestle_f_scalar(f, PESTLE_I64, 0);
  operands[2] = pestle_f_broadcast_to(f, s->init, &types[2], NULL);
  if (!f->status) f->status = loop_condition(f, s, types, &regions[0]);
  if (!f->status) f->status = loop_body(f, s, types, &regions[1]);
  pestle_node_t* node =
      pestle_f_node(f, &(pestle_node_spec_t){.op = PESTLE_OP_WHILE,
                                             .operands = operands,
                                             .operand_count = LOOP_VALUES,
                                             .regions = regions,
                                             .region_count = 2});
  return node ? pestle_node_result(node, 1) : NULL;
}

// --- The pass ---

static pestle_status_t split_scan(const pestle_pass_context_t* ctx, scan_t* s,
                                  pestle_node_t* node) {
  pestle_formula_t f = pestle_formula_before(node);
  s->x = begin(&f, s, node);
  PESTLE_TRY(f.status);
  pestle_value_t* x = s->whole ? make_window(&f, s, s->x, s->init, s->dim, 0)
                      : s->ordered ? make_loop(&f, s)
                                   : make_levels(&f, s);
  PESTLE_TRY(finish(&f, s, x, node));
  return s->whole ? pestle_pass_wrap(ctx, x->node, "running") : NULL;
}

typedef struct split_t {
  const pestle_pass_context_t* ctx;
  bool changed;
} split_t;

static pestle_status_t split_block(void* user, pestle_module_t* module,
                                   pestle_block_t* block) {
  split_t* split = user;
  (void)module;
  const pestle_node_t* owner = block->region->owner;
  if (owner && owner->op == PESTLE_OP_FUSION) return NULL;  // it is done
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    scan_t s;
    next = n->next;
    if (!read_scan(split->ctx, n, &s)) continue;
    // What it becomes begins behind this, and may hold a window to split.
    pestle_node_t* before = n->prev;
    PESTLE_TRY(split_scan(split->ctx, &s, n));
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

// SPDX-License-Identifier: Apache-2.0
// Operands of products whose rows begin at odd places are copied to rows of whole
// runs of 16 bytes, where the target's matrix units take their tiles by such runs
// alone.
//
//   %0 = dot_general %a, %b          %1 = pad %a        // to [3000, 1112]
//     [3000, 1111] x [1111, 776] ->  %2 = slice %1      // of [3000, 1111]
//                                    %0 = dot_general %2, %b
//
// The kernel reads the slice where it lies; the copy of a constant is made with the
// plan. Where the result's rows are odd in number of elements, which no pair of sums
// is, columns are added to the product and cut off behind it.
//
// What lies along the last axis of an operand is what lies there in memory, behind
// a transpose too.
//
// Matrix units that multiply bytes, 8-bit floats or f32 take both operands along k. The right
// matrix is turned where it lies otherwise, and zeros, which add nothing, fill k up to whole runs:
//
//   %0 = dot_general %a, %b          %1 = pad %a                  // to [3000, 1120]
//     [3000, 1111] x [1111, 776] ->  %2 = pad (transpose %b)      // to [776, 1120]
//                                    %0 = dot_general %1, %2      // of [m, k] x [n, k]
#include <string.h>

#include "ir/dot_algorithm.h"
#include "passes/fold_constants.h"
#include "passes/util.h"

enum {
  RUN_BYTES = 16,
  // What the units' schedule takes (codegen/template/tensorise/sketch.c).
  LEAST_ROWS = 64,
  LEAST_COLUMNS = 64,
  LEAST_TAPS = 32,
  // Elements of the right matrix from which on a copy is small beside the product, or
  // products of as many rows as that holds for.
  LEAST_MATRIX = 1 << 18,
  LEAST_PRODUCTS = 1 << 25,
  // Of few rows the copy counts for more; but element by element, as such a matrix is read
  // else, 48 x 2021 x 6289 takes 221 us on an H200, of which 15 would be the copy.
  FEW_ROWS = 4,
  LEAST_MATRIX_OF_FEW = 1 << 20,
};

typedef struct align_t {
  pestle_pass_context_t* ctx;
  pestle_module_t* module;
  bool* changed;
} align_t;

static const pestle_type_t* type_of(const pestle_node_t* node, size_t operand) {
  return pestle_node_operand(node, operand)->type;
}

static bool is_axis(pestle_i64s_t axes, int64_t axis) {
  return axes.count == 1 && axes.data[0] == axis;
}

// Whether the right matrix of |node| lies as [batch.., n, k].
static bool contracts_last(const pestle_node_t* node) {
  return is_axis(PESTLE_NODE_I64S(node, rhs_contracting_dimensions),
                 type_of(node, 1)->rank - 1);
}

static bool is_byte(pestle_dtype_t dtype) {
  return dtype == PESTLE_I8 || dtype == PESTLE_U8;
}

// Whether warpgroups that multiply operands of the types of |node| take them along k alone.
static bool is_along_k(const pestle_pass_context_t* ctx,
                       const pestle_node_t* node) {
  pestle_dtype_t a = type_of(node, 0)->dtype, b = type_of(node, 1)->dtype;
  if (a == PESTLE_F32 && b == a) {
    pestle_numerics_t numerics = ctx->options->numerics;
    return (numerics == PESTLE_NUMERICS_FAST ||
            (numerics != PESTLE_NUMERICS_STRICT && pestle_dot_is_tf32(node))) &&
           pestle_pass_has_tf32_warpgroups(ctx);
  }
  if (pestle_dot_is_f8(a) && pestle_dot_is_f8(b)) {
    return ctx->options->numerics != PESTLE_NUMERICS_STRICT &&
           pestle_pass_has_f8_warpgroups(ctx);
  }
  return is_byte(a) && is_byte(b) &&
         node->results[0].type->dtype == PESTLE_I32 &&
         pestle_pass_has_byte_warpgroups(ctx);
}

// Whether warpgroups take them as they lie along k or across.
static bool is_either_way(const pestle_pass_context_t* ctx,
                          const pestle_node_t* node) {
  pestle_dtype_t dtype = type_of(node, 0)->dtype;
  return dtype == type_of(node, 1)->dtype &&
         ctx->options->numerics != PESTLE_NUMERICS_STRICT &&
         pestle_pass_has_warpgroups(ctx, dtype);
}

// A product [batch.., m, k] x [batch.., k, n] that the units would take.
static bool is_wanted(const pestle_pass_context_t* ctx,
                      const pestle_node_t* node) {
  if (node->op != PESTLE_OP_DOT_GENERAL || node->operand_count != 2) {
    return false;
  }
  const pestle_type_t *x = type_of(node, 0), *y = type_of(node, 1);
  const pestle_type_t* z = node->results[0].type;
  int32_t rank = x->rank;
  if (rank < 2 || y->rank != rank || z->rank != rank ||
      !pestle_type_is_static(x) || !pestle_type_is_static(y) ||
      (!is_along_k(ctx, node) && !is_either_way(ctx, node)) ||
      !is_axis(PESTLE_NODE_I64S(node, lhs_contracting_dimensions), rank - 1) ||
      (!is_axis(PESTLE_NODE_I64S(node, rhs_contracting_dimensions), rank - 2) &&
       !contracts_last(node))) {
    return false;
  }
  int64_t m = x->dims[rank - 2], k = x->dims[rank - 1], n = z->dims[rank - 1];
  // One row too, where lanes would read a line for each element of an odd column.
  int64_t run = RUN_BYTES / (int64_t)pestle_dtype_size(y->dtype);
  int64_t few = contracts_last(node) || n % run == 0 ? FEW_ROWS : 1;
  bool large = m >= LEAST_ROWS
                   ? k * n >= LEAST_MATRIX || m * k * n >= LEAST_PRODUCTS
                   : m >= few && k * n >= LEAST_MATRIX_OF_FEW;
  return n >= LEAST_COLUMNS && k >= LEAST_TAPS && large;
}

bool pestle_pass_reads_along_k(const pestle_pass_context_t* ctx,
                               const pestle_node_t* node) {
  return is_wanted(ctx, node) && is_along_k(ctx, node) &&
         type_of(node, 0)->dims[type_of(node, 0)->rank - 2] >= LEAST_ROWS;
}

// |*x| from rows of whole runs, |more| elements longer along |axis|. Stays what it is
// where it lies so already.
static pestle_status_t align(align_t* a, pestle_formula_t* f, int64_t axis,
                             int64_t more, pestle_value_t** x) {
  pestle_value_t* base = *x;
  pestle_i64s_t order = {NULL, 0};
  if (base->node && base->node->op == PESTLE_OP_TRANSPOSE) {
    order = PESTLE_NODE_I64S(base->node, permutation);
    base = pestle_node_operand(base->node, 0);
  }
  const pestle_type_t* type = base->type;
  int32_t rank = type->rank, last = rank - 1;
  int64_t high[PESTLE_MAX_RANK] = {0}, from[PESTLE_MAX_RANK] = {0};
  int64_t to[PESTLE_MAX_RANK];
  int64_t run = RUN_BYTES / (int64_t)pestle_dtype_size(type->dtype);
  int64_t grown = order.count ? order.data[axis] : axis;
  memcpy(to, type->dims, sizeof to);
  to[grown] += more;
  high[grown] = more;
  high[last] += (run - (type->dims[last] + high[last]) % run) % run;
  if (!high[grown] && !high[last]) return NULL;
  pestle_value_t* zero = pestle_f_scalar(f, type->dtype, 0);
  pestle_value_t* copy = pestle_f_pad(f, base, zero, NULL, high, NULL);
  PESTLE_TRY(f->status);
  PESTLE_TRY(pestle_pass_fold_value(a->ctx, a->module, &copy));
  copy = pestle_f_slice(f, copy, from, to, NULL);
  if (order.count) copy = pestle_f_transpose(f, copy, order.data);
  *x = copy;
  return f->status;
}

static pestle_status_t align_dot(align_t* a, pestle_node_t* node) {
  pestle_formula_t f = pestle_formula_before(node);
  pestle_value_t* x = pestle_node_operand(node, 0);
  pestle_value_t* y = pestle_node_operand(node, 1);
  const pestle_value_t *old_x = x, *old_y = y;
  pestle_type_t type = *node->results[0].type;
  int32_t last = type.rank - 1;
  int64_t n = type.dims[last];
  int64_t run = RUN_BYTES / (int64_t)pestle_dtype_size(x->type->dtype);
  int64_t more = n % 2 ? run - n % run : 0;
  bool turned = contracts_last(node);
  PESTLE_TRY(align(a, &f, last, 0, &x));
  PESTLE_TRY(align(a, &f, turned ? last - 1 : last, more, &y));
  if (x == old_x && y == old_y) return NULL;
  type.dims[last] += more;
  pestle_value_t* z = pestle_f_dot_as(&f, x, y, turned, &type, node);
  if (more) z = pestle_f_slice_axis(&f, z, last, 0, n);
  PESTLE_TRY(f.status);
  pestle_pass_replace(node, &z);
  *a->changed = true;
  return NULL;
}

// --- Operands that lie along k ---

// Elements from |extent| on to whole runs of |dtype|.
static int64_t up_to_run(int64_t extent, pestle_dtype_t dtype) {
  int64_t run = RUN_BYTES / (int64_t)pestle_dtype_size(dtype);
  return (run - extent % run) % run;
}

// |x| with zeros behind its last two axes.
static pestle_value_t* grown(align_t* a, pestle_formula_t* f, pestle_value_t* x,
                             int64_t rows, int64_t taps) {
  int64_t high[PESTLE_MAX_RANK] = {0};
  int32_t last = x->type->rank - 1;
  if (!rows && !taps) return x;
  high[last - 1] = rows;
  high[last] = taps;
  pestle_value_t* zero = pestle_f_scalar(f, x->type->dtype, 0);
  x = pestle_f_pad(f, x, zero, NULL, high, NULL);
  if (!f->status) f->status = pestle_pass_fold_value(a->ctx, a->module, &x);
  return x;
}

static pestle_status_t lay_along_k(align_t* a, pestle_node_t* node) {
  pestle_formula_t f = pestle_formula_before(node);
  pestle_value_t* x = pestle_node_operand(node, 0);
  pestle_value_t* y = pestle_node_operand(node, 1);
  pestle_type_t type = *node->results[0].type;
  int32_t last = type.rank - 1;
  int64_t n = type.dims[last];
  int64_t taps = up_to_run(x->type->dims[last], x->type->dtype);
  int64_t more = n % 2 ? up_to_run(n, type.dtype) : 0;
  bool turned = contracts_last(node);
  // Of few rows a turned copy costs more than it gains.
  if ((turned && !taps && !more) ||
      (!turned && !pestle_pass_reads_along_k(a->ctx, node))) {
    return NULL;
  }
  if (!turned) {
    y = pestle_f_transpose_matrix(&f, y);
    PESTLE_TRY(f.status);
    PESTLE_TRY(pestle_pass_fold_value(a->ctx, a->module, &y));
  }
  x = grown(a, &f, x, 0, taps);
  y = grown(a, &f, y, more, taps);
  type.dims[last] += more;
  pestle_value_t* z = pestle_f_dot_as(&f, x, y, true, &type, node);
  if (more) z = pestle_f_slice_axis(&f, z, last, 0, n);
  PESTLE_TRY(f.status);
  pestle_pass_replace(node, &z);
  *a->changed = true;
  return NULL;
}

static pestle_status_t align_block(void* user, pestle_module_t* module,
                                   pestle_block_t* block) {
  align_t* a = user;
  a->module = module;
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    if (!is_wanted(a->ctx, n)) continue;
    PESTLE_TRY(is_along_k(a->ctx, n) ? lay_along_k(a, n) : align_dot(a, n));
  }
  return NULL;
}

pestle_status_t pestle_pass_align_rows(pestle_pass_context_t* ctx,
                                       pestle_module_t* module,
                                       bool* out_changed) {
  align_t a = {.ctx = ctx, .module = module, .changed = out_changed};
  PESTLE_TRY(pestle_pass_each_block(module, align_block, &a));
  return *out_changed ? pestle_pass_dce(ctx, module, out_changed) : NULL;
}

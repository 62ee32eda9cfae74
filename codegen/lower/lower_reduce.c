// SPDX-License-Identifier: Apache-2.0
// Ops that combine many elements into one: reduction stages. Narrow floats are
// accumulated in f32 and rounded once by a map stage behind the reduction.
#include <math.h>
#include <string.h>

#include "base/bits.h"
#include "base/fault.h"
#include "codegen/lower/lower_internal.h"
#include "ir/conv.h"
#include "ir/dot_algorithm.h"

static pestle_dtype_t accumulator(pestle_dtype_t dtype) {
  if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT) &&
      pestle_dtype_size(dtype) < 4) {
    return PESTLE_F32;
  }
  return dtype;
}

// Adds a reduction stage over |domain|'s axes and |reduce_count| reduction axes.
static uint32_t add_reduce(pestle_lower_t* lower, const char* name,
                           const pestle_type_t* domain, pestle_op_t op,
                           const int64_t* reduction_extents,
                           size_t reduce_count, pestle_index_t out_map,
                           const pestle_affine_t** out_reduce) {
  static const char* const names[] = {"k", "l", "m", "n", "p", "q"};
  pestle_nest_t* nest = lower->nest;
  uint32_t id = pestle_nest_add_stage(nest, name, domain);
  if (nest->failed) return id;
  pestle_lower_axes(lower, id, out_map);
  pestle_nest_stage_t* s = pestle_nest_stage(nest, id);
  s->is_reduction = true;
  s->reduce = op;
  s->acc_dtype = domain->dtype;
  for (size_t i = 0; i < reduce_count; ++i) {
    uint32_t axis = pestle_nest_add_axis(nest, names[i % 6], (int32_t)id, true,
                                         reduction_extents[i]);
    s->roots[s->root_count++] = axis;
    s->order[s->order_count++] = axis;
    out_reduce[i] = pestle_affine_axis(nest, axis);
  }
  s->inits = PESTLE_ARENA_ARRAY(nest->arena, const pestle_expr_t*, 1);
  if (!s->inits) pestle_nest_fail_memory(nest);
  return id;
}

// Makes the reduction's tensor the result of |node|, rounded to the node's type.
static void finish_reduce(pestle_lower_t* lower, const pestle_node_t* node,
                          uint32_t result, uint32_t tensor) {
  pestle_nest_t* nest = lower->nest;
  const pestle_type_t* type = node->results[result].type;
  if (nest->failed) return;
  if (nest->tensors.data[tensor].type.dtype == type->dtype) {
    lower->values[node->results[result].scratch].tensor = tensor;
    return;
  }
  uint32_t id = pestle_nest_add_stage(nest, "rounded", type);
  if (nest->failed) return;
  pestle_index_t axes = {0};
  pestle_lower_axes(lower, id, axes);
  const pestle_expr_t* read = pestle_expr_read(nest, tensor, axes, NULL);
  pestle_nest_stage_t* s = pestle_nest_stage(nest, id);
  s->values[0] = pestle_expr_cast(nest, read, type->dtype);
  lower->values[node->results[result].scratch].tensor = s->tensors[0];
}

static size_t reduce_space(const pestle_type_t* type, int32_t extra) {
  return (size_t)type->rank + (size_t)extra;
}

static pestle_status_t check_axes(const pestle_node_t* node, size_t axes) {
  if (axes <= PESTLE_NEST_MAX_AXES / 2) return NULL;
  return pestle_node_error(node, PESTLE_STATUS_UNSUPPORTED,
                           "%zu axes in one kernel; at most %d: reshape to "
                           "fewer dimensions",
                           axes, PESTLE_NEST_MAX_AXES / 2);
}

// --- Reduce ---

// The region's scalars as expressions over ACC and VAL.
static pestle_status_t lower_combine(pestle_lower_t* lower,
                                     const pestle_node_t* node,
                                     const pestle_block_t* block, size_t n,
                                     const pestle_expr_t** out) {
  pestle_nest_t* nest = lower->nest;
  size_t count = block->argument_count;
  for (pestle_node_t* i = block->first; i; i = i->next)
    count += i->result_count;
  const pestle_expr_t** made =
      PESTLE_ARENA_ARRAY(nest->arena, const pestle_expr_t*, count);
  if (!made) {
    pestle_nest_fail_memory(nest);
    return NULL;
  }
  size_t next = 0;
  for (uint32_t a = 0; a < block->argument_count; ++a) {
    pestle_expr_t* e =
        pestle_expr_make(nest, a < n ? PESTLE_EXPR_ACC : PESTLE_EXPR_VAL,
                         block->arguments[a]->type->dtype);
    e->i = (int64_t)(a < n ? a : a - n);
    block->arguments[a]->scratch = next;
    made[next++] = e;
  }
  for (pestle_node_t* i = block->first; i != block->last; i = i->next) {
    const pestle_expr_t* args[3] = {0};
    for (uint32_t a = 0; a < i->operand_count && a < 3; ++a) {
      args[a] = made[pestle_node_operand(i, a)->scratch];
    }
    const pestle_expr_t* e;
    pestle_dtype_t dtype = i->results[0].type->dtype;
    if (pestle_op_is_scalar((pestle_op_t)i->op)) {
      e = pestle_expr_op(nest, (pestle_op_t)i->op, dtype, args[0], args[1],
                         args[2]);
    } else if (i->op == PESTLE_OP_CONVERT) {
      e = pestle_expr_cast(nest, args[0], dtype);
    } else if (pestle_value_constant(&i->results[0])) {
      e = pestle_lower_first_element(nest, PESTLE_NODE_ELEMENTS(i));
    } else {
      return pestle_node_error(
          node, PESTLE_STATUS_UNSUPPORTED,
          "its region holds '%s'; regions of reductions may "
          "hold scalar ops, converts and constants",
          pestle_op_info((pestle_op_t)i->op)->name);
    }
    i->results[0].scratch = next;
    made[next++] = e;
  }
  for (size_t r = 0; r < n; ++r) {
    out[r] = made[pestle_node_operand(block->last, r)->scratch];
  }
  return NULL;
}

static bool alloc_values(pestle_nest_t* nest, pestle_nest_stage_t* s,
                         size_t n) {
  s->value_count = (uint32_t)n;
  s->values = PESTLE_ARENA_ARRAY(nest->arena, const pestle_expr_t*, n);
  s->inits = PESTLE_ARENA_ARRAY(nest->arena, const pestle_expr_t*, n);
  s->combine = PESTLE_ARENA_ARRAY(nest->arena, const pestle_expr_t*, n);
  uint32_t first = s->tensors[0];
  s->tensors = PESTLE_ARENA_ARRAY(nest->arena, uint32_t, n);
  s->write_index =
      PESTLE_ARENA_ARRAY(nest->arena, const pestle_affine_t* const*, n);
  if (!s->values || !s->inits || !s->combine || !s->tensors ||
      !s->write_index) {
    pestle_nest_fail_memory(nest);
    return false;
  }
  memset((void*)s->write_index, 0, n * sizeof(*s->write_index));
  s->tensors[0] = first;
  return true;
}

// Several operands, or a region that is no single scalar row: accumulators are
// combined in order, one after the other.
static pestle_status_t general_reduce(pestle_lower_t* lower,
                                      const pestle_node_t* node, uint32_t id,
                                      size_t n) {
  pestle_nest_t* nest = lower->nest;
  pestle_nest_stage_t* s = pestle_nest_stage(nest, id);
  if (!alloc_values(nest, s, n)) return NULL;
  for (size_t r = 0; r < n; ++r) {
    if (r) {
      pestle_type_t type = *node->results[r].type;
      uint32_t t =
          pestle_nest_add_tensor(nest, "reduce", PESTLE_TENSOR_STAGE, 0, &type);
      if (nest->failed) return NULL;
      nest->tensors.data[t].stage = (int32_t)id;
      s->tensors[r] = t;
    } else {
      nest->tensors.data[s->tensors[0]].type.dtype =
          node->results[0].type->dtype;
    }
    s->inits[r] =
        pestle_lower_at(lower, pestle_node_operand(node, n + r), NULL);
  }
  s->acc_dtype = node->results[0].type->dtype;
  return lower_combine(lower, node, pestle_node_body(node, 0), n, s->combine);
}

static pestle_op_t reduce_row(const pestle_node_t* node, size_t n) {
  if (n != 1) return PESTLE_OP_COUNT;
  return pestle_block_reduce_op(pestle_node_body(node, 0));
}

pestle_status_t pestle_lower_reduce(pestle_lower_t* lower,
                                    const pestle_node_t* node) {
  pestle_nest_t* nest = lower->nest;
  size_t n = node->operand_count / 2;
  const pestle_value_t* x = pestle_node_operand(node, 0);
  pestle_i64s_t dims = PESTLE_NODE_I64S(node, dimensions);
  pestle_type_t domain = *node->results[0].type;
  PESTLE_TRY(check_axes(node, reduce_space(&domain, (int32_t)dims.count)));
  pestle_op_t op = reduce_row(node, n);
  if (op != PESTLE_OP_COUNT) domain.dtype = accumulator(domain.dtype);
  int64_t extents[PESTLE_MAX_RANK];
  const pestle_affine_t* reduce[PESTLE_MAX_RANK] = {0};
  bool reduced[PESTLE_MAX_RANK] = {false};
  for (size_t i = 0; i < dims.count; ++i)
    reduced[dims.data[i]] = true;
  size_t count = 0;
  for (int32_t d = 0; d < x->type->rank; ++d) {
    if (reduced[d]) extents[count++] = x->type->dims[d];
  }
  pestle_index_t map = {0}, index = {0};
  uint32_t id =
      add_reduce(lower, "r", &domain, op, extents, count, map, reduce);
  if (nest->failed) return NULL;
  size_t m = 0, f = 0;
  for (int32_t d = 0; d < x->type->rank; ++d) {
    index[d] = reduced[d] ? reduce[f++] : map[m++];
  }
  if (op == PESTLE_OP_COUNT) {
    PESTLE_TRY(general_reduce(lower, node, id, n));
    if (nest->failed) return NULL;
    for (size_t r = 0; r < n; ++r) {
      const pestle_expr_t* value =
          pestle_lower_at(lower, pestle_node_operand(node, r), index);
      pestle_nest_stage_t* s = pestle_nest_stage(nest, id);
      s->values[r] = value;
      finish_reduce(lower, node, (uint32_t)r, s->tensors[r]);
    }
    return NULL;
  }
  pestle_nest_stage_t* s = pestle_nest_stage(nest, id);
  s->values[0] =
      pestle_expr_cast(nest, pestle_lower_at(lower, x, index), domain.dtype);
  s->inits[0] = pestle_expr_cast(
      nest, pestle_lower_at(lower, pestle_node_operand(node, 1), NULL),
      domain.dtype);
  finish_reduce(lower, node, 0, s->tensors[0]);
  return NULL;
}

// --- Windows ---

pestle_status_t pestle_lower_window(pestle_lower_t* lower,
                                    const pestle_node_t* node) {
  pestle_nest_t* nest = lower->nest;
  size_t n = node->operand_count / 2;
  const pestle_type_t* in = pestle_node_operand(node, 0)->type;
  pestle_i64s_t window = PESTLE_NODE_I64S(node, window_dimensions);
  pestle_i64s_t strides = PESTLE_NODE_I64S(node, window_strides);
  pestle_i64s_t base = PESTLE_NODE_I64S(node, base_dilations);
  pestle_i64s_t dilation = PESTLE_NODE_I64S(node, window_dilations);
  pestle_i64s_t padding = PESTLE_NODE_I64S(node, padding);
  pestle_type_t domain = *node->results[0].type;
  PESTLE_TRY(check_axes(node, reduce_space(&domain, domain.rank)));
  pestle_op_t op = reduce_row(node, n);
  if (op != PESTLE_OP_COUNT) domain.dtype = accumulator(domain.dtype);
  int64_t extents[PESTLE_MAX_RANK];
  const pestle_affine_t* reduce[PESTLE_MAX_RANK] = {0};
  size_t count = 0;
  for (int32_t d = 0; d < in->rank; ++d) {
    if (window.data[d] != 1) extents[count++] = window.data[d];
  }
  pestle_index_t map = {0}, index = {0};
  uint32_t id =
      add_reduce(lower, "w", &domain, op, extents, count, map, reduce);
  if (nest->failed) return NULL;
  const pestle_expr_t* guard = NULL;
  size_t f = 0;
  for (int32_t d = 0; d < in->rank; ++d) {
    const pestle_affine_t* at =
        pestle_affine_scale(nest, map[d], strides.data[d]);
    if (window.data[d] != 1) {
      at = pestle_affine_add(
          nest, at, pestle_affine_scale(nest, reduce[f++], dilation.data[d]));
    }
    int64_t low = padding.data[2 * d + PESTLE_FAULT(wrong_window_padding)];
    at = pestle_affine_add(nest, at, pestle_affine_const(nest, -low));
    index[d] = pestle_lower_spread(nest, at, base.data[d], in->dims[d], &guard);
  }
  if (op == PESTLE_OP_COUNT) {
    PESTLE_TRY(general_reduce(lower, node, id, n));
    if (nest->failed) return NULL;
  } else {
    const pestle_expr_t* init =
        pestle_lower_at(lower, pestle_node_operand(node, 1), NULL);
    init = pestle_expr_cast(nest, init, domain.dtype);
    pestle_nest_stage(nest, id)->inits[0] = init;
  }
  for (size_t r = 0; r < n; ++r) {
    const pestle_lowered_t* v =
        &lower->values[pestle_node_operand(node, r)->scratch];
    const pestle_expr_t* x =
        v->splat ? v->splat : pestle_expr_read(nest, v->tensor, index, guard);
    const pestle_expr_t* init =
        pestle_lower_at(lower, pestle_node_operand(node, n + r), NULL);
    if (guard && !(guard->kind == PESTLE_EXPR_CONST && guard->i)) {
      x = pestle_expr_op(nest, PESTLE_OP_SELECT, x->dtype, guard, x, init);
    }
    if (op != PESTLE_OP_COUNT) x = pestle_expr_cast(nest, x, domain.dtype);
    pestle_nest_stage_t* s = pestle_nest_stage(nest, id);
    s->values[r] = x;
    finish_reduce(lower, node, (uint32_t)r, s->tensors[r]);
  }
  return NULL;
}

// --- Contractions ---

static const pestle_expr_t* product(pestle_nest_t* nest, const pestle_expr_t* a,
                                    const pestle_expr_t* b,
                                    pestle_dtype_t dtype) {
  b = pestle_expr_cast(nest, b, dtype);
  a = pestle_expr_cast(nest, a, dtype);
  return pestle_expr_op(nest, PESTLE_OP_MULTIPLY, dtype, a, b, NULL);
}

static void finish_contraction(pestle_lower_t* lower, const pestle_node_t* node,
                               uint32_t id, const pestle_expr_t* value) {
  pestle_nest_t* nest = lower->nest;
  if (nest->failed) return;
  pestle_nest_stage_t* s = pestle_nest_stage(nest, id);
  s->values[0] = value;
  s->inits[0] = pestle_expr_const(nest, s->acc_dtype, 0.0, 0);
  finish_reduce(lower, node, 0, s->tensors[0]);
}

static pestle_type_t contraction_domain(const pestle_node_t* node) {
  pestle_type_t domain = *node->results[0].type;
  domain.dtype = accumulator(domain.dtype);
  return domain;
}

static pestle_status_t check_real(const pestle_node_t* node) {
  pestle_dtype_t dtype = node->results[0].type->dtype;
  if (!pestle_dtype_is(dtype, PESTLE_KIND_COMPLEX)) return NULL;
  return pestle_node_error(node, PESTLE_STATUS_UNSUPPORTED,
                           "products of %s have no kernel yet; multiply real "
                           "and imaginary parts",
                           pestle_dtype_info(dtype)->name);
}

pestle_status_t pestle_lower_dot(pestle_lower_t* lower,
                                 const pestle_node_t* node) {
  pestle_nest_t* nest = lower->nest;
  const pestle_value_t* lhs = pestle_node_operand(node, 0);
  const pestle_value_t* rhs = pestle_node_operand(node, 1);
  pestle_i64s_t lb = PESTLE_NODE_I64S(node, lhs_batching_dimensions);
  pestle_i64s_t rb = PESTLE_NODE_I64S(node, rhs_batching_dimensions);
  pestle_i64s_t lc = PESTLE_NODE_I64S(node, lhs_contracting_dimensions);
  pestle_i64s_t rc = PESTLE_NODE_I64S(node, rhs_contracting_dimensions);
  pestle_type_t domain = contraction_domain(node);
  PESTLE_TRY(check_real(node));
  PESTLE_TRY(check_axes(node, reduce_space(&domain, (int32_t)lc.count)));
  int64_t extents[PESTLE_MAX_RANK];
  const pestle_affine_t* reduce[PESTLE_MAX_RANK] = {0};
  for (size_t i = 0; i < lc.count; ++i) {
    extents[i] = lhs->type->dims[lc.data[i]];
  }
  pestle_index_t map = {0}, li = {0}, ri = {0};
  uint32_t id = add_reduce(lower, "c", &domain, PESTLE_OP_ADD, extents,
                           lc.count, map, reduce);
  if (nest->failed) return NULL;
  size_t m = 0;
  for (size_t i = 0; i < lb.count; ++i) {
    li[lb.data[i]] = ri[rb.data[i]] = map[m++];
  }
  for (size_t i = 0; i < lc.count; ++i) {
    li[lc.data[i]] = ri[rc.data[i]] = reduce[i];
  }
  for (int32_t d = 0; d < lhs->type->rank; ++d) {
    if (!pestle_i64s_has(lb, d) && !pestle_i64s_has(lc, d)) li[d] = map[m++];
  }
  for (int32_t d = 0; d < rhs->type->rank; ++d) {
    if (!pestle_i64s_has(rb, d) && !pestle_i64s_has(rc, d)) ri[d] = map[m++];
  }
  const pestle_expr_t* b = pestle_lower_at(lower, rhs, ri);
  const pestle_expr_t* a = pestle_lower_at(lower, lhs, li);
  finish_contraction(lower, node, id, product(nest, a, b, domain.dtype));
  if (!nest->failed && pestle_dot_is_f8(lhs->type->dtype) &&
      pestle_dot_is_f8(rhs->type->dtype))
    pestle_nest_stage(nest, id)->factors = PESTLE_FACTORS_F8;
  if (!nest->failed && domain.dtype == PESTLE_F32 && pestle_dot_is_tf32(node))
    pestle_nest_stage(nest, id)->factors = PESTLE_FACTORS_TF32;
  return NULL;
}

typedef struct conv_t {
  pestle_index_t map, x, w;
  const pestle_affine_t* reduce[PESTLE_MAX_RANK + 1];
  // Where the input is read without a padded copy: which elements and taps there are; NULL:
  // all.
  const pestle_expr_t *in_x, *in_w;
} conv_t;

// The padded, dilated input as a stage of its own: convolutions then read it
// without guards. It covers what output positions and taps reach.
static bool needs_padding(const pestle_node_t* node, size_t spatial) {
  for (size_t i = 0; i < spatial; ++i) {
    int64_t xd = PESTLE_NODE_I64S(node, input_spatial_dimensions).data[i];
    int64_t extent = pestle_node_operand(node, 0)->type->dims[xd];
    int64_t yd = PESTLE_NODE_I64S(node, output_spatial_dimensions).data[i];
    int64_t wd = PESTLE_NODE_I64S(node, kernel_spatial_dimensions).data[i];
    int64_t reach = (node->results[0].type->dims[yd] - 1) *
                        PESTLE_NODE_I64S(node, window_strides).data[i] +
                    (pestle_node_operand(node, 1)->type->dims[wd] - 1) *
                        PESTLE_NODE_I64S(node, rhs_dilation).data[i] +
                    1;
    if (PESTLE_NODE_I64S(node, lhs_dilation).data[i] != 1 ||
        PESTLE_NODE_I64S(node, padding).data[2 * i] != 0 || reach > extent) {
      return true;
    }
  }
  return false;
}

static int64_t padded_extent(const pestle_node_t* node, size_t i) {
  int64_t yd = PESTLE_NODE_I64S(node, output_spatial_dimensions).data[i];
  int64_t wd = PESTLE_NODE_I64S(node, kernel_spatial_dimensions).data[i];
  int64_t last = (node->results[0].type->dims[yd] - 1) *
                     PESTLE_NODE_I64S(node, window_strides).data[i] +
                 (pestle_node_operand(node, 1)->type->dims[wd] - 1) *
                     PESTLE_NODE_I64S(node, rhs_dilation).data[i];
  return last + 1;
}

// A padded copy has zeros, which formats of scales lack: theirs is of f32.
static pestle_dtype_t padded_dtype(pestle_dtype_t dtype) {
  const pestle_float_format_t* format = pestle_float_format(dtype);
  bool has_zero = !format || format->specials != PESTLE_FLOAT_SCALE;
  return has_zero ? dtype : PESTLE_F32;
}

// |axes|: of the copy, whose last two are phase and place if |phases| > 1.
static const pestle_expr_t* padded_body(pestle_lower_t* lower,
                                        const pestle_node_t* node,
                                        pestle_index_t axes, size_t spatial,
                                        int64_t phases) {
  pestle_nest_t* nest = lower->nest;
  const pestle_value_t* x = pestle_node_operand(node, 0);
  pestle_index_t index;
  memcpy(index, axes, sizeof(index));
  const pestle_expr_t* guard = NULL;
  if (phases > 1) {
    int32_t last = x->type->rank - 1;
    axes[last] = pestle_affine_add(
        nest, axes[last], pestle_affine_scale(nest, axes[last + 1], phases));
  }
  for (size_t i = 0; i < spatial; ++i) {
    int64_t d = PESTLE_NODE_I64S(node, input_spatial_dimensions).data[i];
    int64_t low = PESTLE_NODE_I64S(node, padding).data[2 * i];
    int64_t step = PESTLE_NODE_I64S(node, lhs_dilation).data[i];
    const pestle_affine_t* at =
        pestle_affine_add(nest, axes[d], pestle_affine_const(nest, -low));
    index[d] = pestle_lower_spread(nest, at, step, x->type->dims[d], &guard);
  }
  const pestle_lowered_t* v = &lower->values[x->scratch];
  const pestle_expr_t* read =
      v->splat ? v->splat : pestle_expr_read(nest, v->tensor, index, guard);
  read = pestle_expr_cast(nest, read, padded_dtype(read->dtype));
  const pestle_expr_t* zero = pestle_expr_const(nest, read->dtype, 0, 0);
  if (!guard) return read;
  if (guard->kind == PESTLE_EXPR_CONST) return guard->i ? read : zero;
  return pestle_expr_op(nest, PESTLE_OP_SELECT, read->dtype, guard, read, zero);
}

// The tensor that the convolution reads: the input, or its padded copy.
static pestle_lowered_t conv_input(pestle_lower_t* lower,
                                   const pestle_node_t* node, size_t spatial,
                                   int64_t* out_phases) {
  const pestle_value_t* x = pestle_node_operand(node, 0);
  int64_t phases = pestle_conv_phases(node);
  *out_phases = 1;
  if (phases == 1 && !needs_padding(node, spatial)) {
    return lower->values[x->scratch];
  }
  pestle_type_t type = *x->type;
  type.dtype = padded_dtype(type.dtype);
  for (size_t i = 0; i < spatial; ++i) {
    int64_t d = PESTLE_NODE_I64S(node, input_spatial_dimensions).data[i];
    type.dims[d] = padded_extent(node, i);
  }
  // Without features there is nothing to copy, and nothing is read.
  if (!pestle_type_count(&type)) return lower->values[x->scratch];
  if (phases > 1) {
    int64_t* width = &type.dims[type.rank - 1];
    width[1] = (*width + phases - 1) / phases;
    width[0] = phases;
    ++type.rank;
  }
  uint32_t id = pestle_nest_add_stage(lower->nest, "xpad", &type);
  if (lower->nest->failed) return lower->values[x->scratch];
  pestle_index_t axes = {0};
  pestle_lower_axes(lower, id, axes);
  const pestle_expr_t* body = padded_body(lower, node, axes, spatial, phases);
  pestle_nest_stage_t* s = pestle_nest_stage(lower->nest, id);
  s->values[0] = body;
  s->keep = true;
  *out_phases = phases;
  return (pestle_lowered_t){.tensor = s->tensors[0]};
}

// One spatial dim: the position in what is read, and the tap.
static void conv_spatial(pestle_nest_t* nest, const pestle_node_t* node,
                         conv_t* c, size_t i) {
  int64_t xd = PESTLE_NODE_I64S(node, input_spatial_dimensions).data[i];
  int64_t wd = PESTLE_NODE_I64S(node, kernel_spatial_dimensions).data[i];
  int64_t yd = PESTLE_NODE_I64S(node, output_spatial_dimensions).data[i];
  int64_t stride = PESTLE_NODE_I64S(node, window_strides).data[i];
  int64_t dilation = PESTLE_NODE_I64S(node, rhs_dilation).data[i];
  int64_t taps = pestle_node_operand(node, 1)->type->dims[wd];
  c->x[xd] =
      pestle_affine_add(nest, pestle_affine_scale(nest, c->map[yd], stride),
                        pestle_affine_scale(nest, c->reduce[i], dilation));
  bool turned = PESTLE_NODE_I64S(node, window_reversal).data[i];
  c->w[wd] =
      turned && !PESTLE_FAULT(lost_window_reversal)
          ? pestle_affine_add(nest, pestle_affine_scale(nest, c->reduce[i], -1),
                              pestle_affine_const(nest, taps - 1))
          : c->reduce[i];
}

// The same of an input that is read as it lies.
static void conv_phase(pestle_nest_t* nest, const pestle_node_t* node,
                       conv_t* c, size_t i) {
  int64_t xd = PESTLE_NODE_I64S(node, input_spatial_dimensions).data[i];
  int64_t wd = PESTLE_NODE_I64S(node, kernel_spatial_dimensions).data[i];
  int64_t step = PESTLE_NODE_I64S(node, lhs_dilation).data[i];
  int64_t low = PESTLE_NODE_I64S(node, padding).data[2 * i];
  int64_t extent = pestle_node_operand(node, 0)->type->dims[xd];
  int64_t taps = pestle_node_operand(node, 1)->type->dims[wd];
  if (step == 1) {
    conv_spatial(nest, node, c, i);
    c->x[xd] =
        pestle_affine_add(nest, c->x[xd], pestle_affine_const(nest, -low));
  } else {
    int64_t yd = PESTLE_NODE_I64S(node, output_spatial_dimensions).data[i];
    c->x[xd] = c->map[yd];
    c->w[wd] = c->reduce[i];
    pestle_lower_phase(nest, node, i, &c->x[xd], &c->w[wd]);
  }
  c->x[xd] = pestle_lower_spread(nest, c->x[xd], 1, extent, &c->in_x);
  if (taps % step)
    c->w[wd] = pestle_lower_spread(nest, c->w[wd], 1, taps, &c->in_w);
}

// |value| at |index| where |exists|, else zero.
static const pestle_expr_t* where(pestle_lower_t* lower,
                                  const pestle_value_t* value,
                                  const pestle_affine_t* const* index,
                                  const pestle_expr_t* exists) {
  pestle_nest_t* nest = lower->nest;
  const pestle_lowered_t* v = &lower->values[value->scratch];
  bool known = !exists || exists->kind == PESTLE_EXPR_CONST;
  if (known && (!exists || exists->i))
    return pestle_lower_at(lower, value, index);
  const pestle_expr_t* zero = pestle_expr_const(nest, value->type->dtype, 0, 0);
  if (known) return zero;
  const pestle_expr_t* read =
      v->splat ? v->splat : pestle_expr_read(nest, v->tensor, index, exists);
  return pestle_expr_op(nest, PESTLE_OP_SELECT, zero->dtype, exists, read,
                        zero);
}

// Batch and feature dims, with groups: output feature f of group f / (F / g)
// reads the input features of its group.
static void conv_features(pestle_nest_t* nest, const pestle_node_t* node,
                          conv_t* c, size_t spatial) {
  const pestle_type_t* w = pestle_node_operand(node, 1)->type;
  int64_t xb = PESTLE_NODE_I64(node, input_batch_dimension);
  int64_t xf = PESTLE_NODE_I64(node, input_feature_dimension);
  int64_t wi = PESTLE_NODE_I64(node, kernel_input_feature_dimension);
  int64_t wo = PESTLE_NODE_I64(node, kernel_output_feature_dimension);
  int64_t yb = PESTLE_NODE_I64(node, output_batch_dimension);
  int64_t yf = PESTLE_NODE_I64(node, output_feature_dimension);
  int64_t groups = PESTLE_NODE_I64(node, feature_group_count);
  int64_t batches = PESTLE_NODE_I64(node, batch_group_count);
  const pestle_affine_t* f = c->map[yf];
  const pestle_affine_t* k = c->reduce[spatial];
  int64_t features = w->dims[wo];
  c->w[wi] = k;
  c->w[wo] = f;
  c->x[xf] = k;
  c->x[xb] = c->map[yb];
  if (groups > 1) {
    c->x[xf] = pestle_affine_add(
        nest, k,
        pestle_affine_scale(nest, pestle_affine_div(nest, f, features / groups),
                            w->dims[wi]));
  }
  if (batches > 1) {
    c->x[xb] = pestle_affine_add(
        nest, c->map[yb],
        pestle_affine_scale(nest,
                            pestle_affine_div(nest, f, features / batches),
                            node->results[0].type->dims[yb]));
  }
}

pestle_status_t pestle_lower_convolution(pestle_lower_t* lower,
                                         const pestle_node_t* node) {
  pestle_nest_t* nest = lower->nest;
  const pestle_value_t* w = pestle_node_operand(node, 1);
  pestle_i64s_t taps = PESTLE_NODE_I64S(node, kernel_spatial_dimensions);
  pestle_type_t domain = contraction_domain(node);
  PESTLE_TRY(check_real(node));
  PESTLE_TRY(check_axes(node, reduce_space(&domain, (int32_t)taps.count + 1)));
  int64_t extents[PESTLE_MAX_RANK + 1];
  for (size_t i = 0; i < taps.count; ++i) {
    extents[i] = w->type->dims[taps.data[i]];
  }
  extents[taps.count] =
      w->type->dims[PESTLE_NODE_I64(node, kernel_input_feature_dimension)];
  conv_t c = {0};
  int64_t phases = 1;
  pestle_lowered_t input = {0};
  pestle_dtype_t dtype = pestle_node_operand(node, 0)->type->dtype;
  bool spread = nest->by_phases && pestle_lower_has_phases(node) &&
                padded_dtype(dtype) == dtype;
  if (!spread) input = conv_input(lower, node, taps.count, &phases);
  for (size_t i = 0; i < taps.count && spread; ++i) {
    extents[i] = pestle_ceil_div(extents[i],
                                 PESTLE_NODE_I64S(node, lhs_dilation).data[i]);
  }
  uint32_t id = add_reduce(lower, "c", &domain, PESTLE_OP_ADD, extents,
                           taps.count + 1, c.map, c.reduce);
  if (nest->failed) return NULL;
  for (size_t i = 0; i < taps.count; ++i)
    (spread ? conv_phase : conv_spatial)(nest, node, &c, i);
  conv_features(nest, node, &c, taps.count);
  if (phases > 1) {
    int32_t last = pestle_node_operand(node, 0)->type->rank - 1;
    c.x[last + 1] = pestle_affine_div(nest, c.x[last], phases);
    c.x[last] = pestle_affine_mod(nest, c.x[last], phases);
  }
  const pestle_expr_t* read =
      spread        ? where(lower, pestle_node_operand(node, 0), c.x,
                            pestle_lower_and(nest, c.in_x, c.in_w))
      : input.splat ? input.splat
                    : pestle_expr_read(nest, input.tensor, c.x, NULL);
  finish_contraction(
      lower, node, id,
      product(nest, read, where(lower, w, c.w, c.in_w), domain.dtype));
  return NULL;
}

// SPDX-License-Identifier: Apache-2.0
// Any op, elementwise ops, constants and reductions; formula_move.c has what
// moves elements.
#include "ir/formula.h"

#include <string.h>

#include "base/half.h"
#include "base/mem.h"
#include "ir/identity.h"

typedef pestle_value_t pv_t;

// A cache line, so that kernels read whole vectors of constants.
#define CONSTANT_ALIGNMENT ((size_t)64)

// --- Any op ---

pv_t* pestle_f_fail(pestle_formula_t* f, pestle_status_t status) {
  if (f->status) {
    pestle_status_release(status);
  } else {
    f->status = status;
  }
  return NULL;
}

void* pestle_f_memory(pestle_formula_t* f, size_t size) {
  if (f->status) return NULL;
  void* data = pestle_arena_alloc(&f->builder.module->arena, size ? size : 1,
                                  CONSTANT_ALIGNMENT);
  if (!data) f->status = PESTLE_OOM();
  return data;
}

pestle_node_t* pestle_f_node(pestle_formula_t* f,
                             const pestle_node_spec_t* spec) {
  pestle_node_t* node;
  if (f->hooks) return f->hooks->node(f, spec);
  if (f->status) return NULL;
  for (size_t i = 0; i < spec->operand_count; ++i) {
    if (!spec->operands[i]) return NULL;
  }
  f->status = pestle_node_create(&f->builder, spec, &node);
  return f->status ? NULL : node;
}

pv_t* pestle_f_emit(pestle_formula_t* f, const pestle_node_spec_t* spec) {
  if (f->hooks) return f->hooks->emit(f, spec);
  pestle_node_t* node = pestle_f_node(f, spec);
  return node ? pestle_node_result(node, 0) : NULL;
}

pv_t* pestle_f_make(pestle_formula_t* f, pestle_op_t op, pv_t* const* operands,
                    size_t count, const pestle_attr_t* attrs, size_t attr_count,
                    const pestle_type_t* type) {
  return pestle_f_emit(f, &(pestle_node_spec_t){.op = op,
                                                .operands = operands,
                                                .operand_count = count,
                                                .attrs = attrs,
                                                .attr_count = attr_count,
                                                .type = type,
                                                .share_elements = true});
}

pv_t* pestle_f_typed(pestle_formula_t* f, pestle_op_t op, pv_t* const* operands,
                     size_t count, const pestle_type_t* type) {
  bool stated = pestle_op_info(op)->rule == PESTLE_RULE_TYPED;
  return pestle_f_make(f, op, operands, count, NULL, 0, stated ? type : NULL);
}

pv_t* pestle_f_like(pestle_formula_t* f, const pestle_node_t* node,
                    pv_t* const* operands, const pestle_type_t* type) {
  return pestle_f_make(f, (pestle_op_t)node->op, operands, node->operand_count,
                       node->attrs, node->attr_count, type);
}

// --- Elementwise ---

pv_t* pestle_f_unary(pestle_formula_t* f, pestle_op_t op, pv_t* a) {
  return pestle_f_make(f, op, &a, 1, NULL, 0, NULL);
}

pv_t* pestle_f_binary(pestle_formula_t* f, pestle_op_t op, pv_t* a, pv_t* b) {
  pv_t* operands[] = {a, b};
  if (f->hooks && !f->hooks->broadcast(f, operands, 2)) return NULL;
  return pestle_f_make(f, op, operands, 2, NULL, 0, NULL);
}

pv_t* pestle_f_ternary(pestle_formula_t* f, pestle_op_t op, pv_t* a, pv_t* b,
                       pv_t* c) {
  pv_t* operands[] = {a, b, c};
  if (op == PESTLE_OP_SELECT && f->hooks &&
      !f->hooks->broadcast(f, operands, 3)) {
    return NULL;
  }
  return pestle_f_make(f, op, operands, 3, NULL, 0, NULL);
}

pv_t* pestle_f_plus(pestle_formula_t* f, pv_t* a, double term) {
  return pestle_f_add(f, a, pestle_f_splat(f, a, term));
}

pv_t* pestle_f_times(pestle_formula_t* f, pv_t* a, double factor) {
  return pestle_f_multiply(f, a, pestle_f_splat(f, a, factor));
}

pv_t* pestle_f_is_zero(pestle_formula_t* f, pv_t* a) {
  return pestle_f_eq(f, a, pestle_f_splat(f, a, 0));
}

// (Bits of |a| or'd with the sign of |b| are what LLVM 15 gets wrong behind a
// select, as lavapipe has it.)
pv_t* pestle_f_copy_sign(pestle_formula_t* f, pv_t* a, pv_t* b) {
  if (!a || !b) return NULL;
  pv_t* bits = pestle_f_bitcast(
      f, b, b->type->dtype == PESTLE_F64 ? PESTLE_I64 : PESTLE_I32);
  pv_t* below = pestle_f_lt(f, bits, pestle_f_splat(f, bits, 0));
  a = pestle_f_abs(f, a);
  return pestle_f_select(f, below, pestle_f_negate(f, a), a);
}

static pv_t* as_dtype(pestle_formula_t* f, pestle_op_t op, pv_t* a,
                      pestle_dtype_t dtype) {
  if (!a || a->type->dtype == dtype) return a;
  pestle_type_t type = *a->type;
  type.dtype = dtype;
  return pestle_f_make(f, op, &a, 1, NULL, 0, &type);
}

pv_t* pestle_f_convert(pestle_formula_t* f, pv_t* a, pestle_dtype_t dtype) {
  return as_dtype(f, PESTLE_OP_CONVERT, a, dtype);
}

pv_t* pestle_f_bitcast(pestle_formula_t* f, pv_t* a, pestle_dtype_t dtype) {
  return as_dtype(f, PESTLE_OP_BITCAST_CONVERT, a, dtype);
}

// --- Constants ---

pv_t* pestle_f_elements(pestle_formula_t* f, const pestle_elements_t* e) {
  pestle_attr_t attr = {PESTLE_ATTR_value, PESTLE_ATTR_KIND_ELEMENTS,
                        .as.elements = e};
  return pestle_f_emit(f, &(pestle_node_spec_t){.op = PESTLE_OP_CONSTANT,
                                                .attrs = &attr,
                                                .attr_count = 1,
                                                .share_elements = !e->splat});
}

// The bits of |value|; of an integer it is one.
static uint64_t encode(pestle_dtype_t dtype, double value) {
  if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) {
    return pestle_float_encode(dtype, value);
  }
  return pestle_dtype_is(dtype, PESTLE_KIND_UNSIGNED) && value >= 0
             ? (uint64_t)value
             : (uint64_t)(int64_t)value;
}

pv_t* pestle_f_bits(pestle_formula_t* f, const pestle_type_t* type,
                    uint64_t bits) {
  pestle_elements_t e = {*type, &bits, pestle_dtype_size(type->dtype), true};
  return pestle_f_elements(f, &e);
}

// A complex number is its real part.
pv_t* pestle_f_number(pestle_formula_t* f, const pestle_type_t* type,
                      double value) {
  if (!pestle_type_is_complex(type)) {
    return pestle_f_bits(f, type, encode(type->dtype, value));
  }
  char data[16] = {0};
  pestle_dtype_t part = pestle_dtype_part(type->dtype);
  uint64_t bits = encode(part, value);
  memcpy(data, &bits, pestle_dtype_size(part));
  pestle_elements_t e = {*type, data, pestle_dtype_size(type->dtype), true};
  return pestle_f_elements(f, &e);
}

pv_t* pestle_f_splat(pestle_formula_t* f, const pv_t* like, double value) {
  return like ? pestle_f_number(f, like->type, value) : NULL;
}

pv_t* pestle_f_scalar(pestle_formula_t* f, pestle_dtype_t dtype, double value) {
  pestle_type_t type = pestle_type_make(dtype, 0, NULL);
  return pestle_f_number(f, &type, value);
}

pv_t* pestle_f_numbers(pestle_formula_t* f, const pestle_type_t* type,
                       const double* values) {
  size_t size = pestle_dtype_size(type->dtype);
  size_t count = (size_t)pestle_type_count(type);
  char* data = pestle_f_memory(f, count * size);
  if (!data) return NULL;
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = encode(type->dtype, values[i]);
    memcpy(data + i * size, &bits, size);
  }
  pestle_elements_t e = {*type, data, count * size, false};
  return pestle_f_elements(f, &e);
}

pv_t* pestle_f_identity(pestle_formula_t* f, pestle_op_t op,
                        pestle_dtype_t dtype) {
  double number;
  int64_t bits;
  if (pestle_dtype_is(dtype, PESTLE_KIND_COMPLEX)) {
    return pestle_f_scalar(f, dtype, op == PESTLE_OP_MULTIPLY ? 1 : 0);
  }
  pestle_reduce_identity(op, dtype, &number, &bits);
  if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) {
    return pestle_f_scalar(f, dtype, number);
  }
  pestle_type_t type = pestle_type_make(dtype, 0, NULL);
  return pestle_f_bits(f, &type, (uint64_t)bits);
}

pv_t* pestle_f_iota(pestle_formula_t* f, const pestle_type_t* type,
                    int64_t axis) {
  pestle_attr_t attr = PESTLE_SET_I64(iota_dimension, axis);
  return pestle_f_make(f, PESTLE_OP_IOTA, NULL, 0, &attr, 1, type);
}

// --- Reductions ---

static pestle_status_t make_region(const pestle_builder_t* around,
                                   pestle_op_t op, pestle_dtype_t dtype,
                                   pestle_region_t** out_region) {
  pestle_type_t types[2] = {pestle_type_make(dtype, 0, NULL),
                            pestle_type_make(dtype, 0, NULL)};
  pestle_builder_t b = {.module = around->module, .loc = around->loc};
  PESTLE_TRY(pestle_region_create(b.module, types, 2, out_region, &b.block));
  pestle_formula_t inside = pestle_formula_make(b);
  pv_t* y = pestle_block_argument(b.block, 1);
  if (op != PESTLE_OP_COUNT) {
    y = pestle_f_binary(&inside, op, pestle_block_argument(b.block, 0), y);
  }
  return inside.status ? inside.status
                       : pestle_op_return(&inside.builder, &y, 1, NULL);
}

pestle_region_t* pestle_f_region(pestle_formula_t* f, pestle_op_t op,
                                 pestle_dtype_t dtype) {
  pestle_region_t* region = NULL;
  if (!f->status) f->status = make_region(&f->builder, op, dtype, &region);
  return f->status ? NULL : region;
}

static pv_t* reduce(pestle_formula_t* f, pestle_op_t kind, pestle_op_t op,
                    pv_t* a, pv_t* initial, const pestle_attr_t* attrs,
                    size_t attr_count) {
  if (!a || !initial) return NULL;
  pestle_region_t* region = pestle_f_region(f, op, a->type->dtype);
  pv_t* operands[2] = {a, initial};
  return pestle_f_emit(f, &(pestle_node_spec_t){.op = kind,
                                                .operands = operands,
                                                .operand_count = 2,
                                                .attrs = attrs,
                                                .attr_count = attr_count,
                                                .regions = &region,
                                                .region_count = 1});
}

pv_t* pestle_f_reduce(pestle_formula_t* f, pestle_op_t op, pv_t* a,
                      pestle_i64s_t dimensions, double initial) {
  if (!a) return NULL;
  return pestle_f_reduce_from(f, op, a, dimensions,
                              pestle_f_scalar(f, a->type->dtype, initial));
}

pv_t* pestle_f_reduce_from(pestle_formula_t* f, pestle_op_t op, pv_t* a,
                           pestle_i64s_t dimensions, pv_t* initial) {
  pestle_attr_t attr =
      PESTLE_SET_I64S(dimensions, dimensions.data, dimensions.count);
  return reduce(f, PESTLE_OP_REDUCE, op, a, initial, &attr, 1);
}

void pestle_windows_init(pestle_windows_t* out_windows) {
  *out_windows = (pestle_windows_t){.sizes = {0}};
  for (int32_t d = 0; d < PESTLE_MAX_RANK; ++d) {
    out_windows->sizes[d] = out_windows->strides[d] = 1;
    out_windows->base_dilations[d] = out_windows->dilations[d] = 1;
  }
}

pv_t* pestle_f_reduce_windows(pestle_formula_t* f, pestle_op_t op, pv_t* a,
                              pv_t* initial, const pestle_windows_t* w) {
  if (!a) return NULL;
  size_t rank = (size_t)a->type->rank;
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64S(window_dimensions, w->sizes, rank),
      PESTLE_SET_I64S(window_strides, w->strides, rank),
      PESTLE_SET_I64S(base_dilations, w->base_dilations, rank),
      PESTLE_SET_I64S(window_dilations, w->dilations, rank),
      PESTLE_SET_I64S(padding, w->padding, 2 * rank)};
  return reduce(f, PESTLE_OP_REDUCE_WINDOW, op, a, initial, attrs, 5);
}

pv_t* pestle_f_dot(pestle_formula_t* f, pv_t* a, pv_t* b, bool contract_last,
                   const pestle_type_t* type) {
  return pestle_f_dot_as(f, a, b, contract_last, type, NULL);
}

pv_t* pestle_f_dot_as(pestle_formula_t* f, pv_t* a, pv_t* b, bool contract_last,
                      const pestle_type_t* type, const pestle_node_t* like) {
  int64_t batch[PESTLE_MAX_RANK], left = type->rank - 1;
  int64_t right = contract_last ? left : left - 1;
  size_t batches = (size_t)left - 1;
  for (size_t i = 0; i < batches; ++i)
    batch[i] = (int64_t)i;
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64S(lhs_batching_dimensions, batch, batches),
      PESTLE_SET_I64S(rhs_batching_dimensions, batch, batches),
      PESTLE_SET_I64S(lhs_contracting_dimensions, &left, 1),
      PESTLE_SET_I64S(rhs_contracting_dimensions, &right, 1),
      PESTLE_SET_STR(algorithm, like ? PESTLE_NODE_STR(like, algorithm) : "")};
  return pestle_f_make(f, PESTLE_OP_DOT_GENERAL, (pv_t*[]){a, b}, 2, attrs, 5,
                       type);
}

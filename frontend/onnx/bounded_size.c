// SPDX-License-Identifier: Apache-2.0
// Extents that only a run tells, as numbers of the graph: see bounded.h.
#include <string.h>

#include "base/mem.h"
#include "frontend/onnx/bounded.h"

pestle_value_t* pestle_onnx_size_number(pestle_onnx_call_t* call,
                                        int64_t number) {
  const pestle_type_t type = {.dtype = PESTLE_I64};
  return pestle_onnx_splat_int(call, &type, number);
}

pestle_value_t* pestle_onnx_size(pestle_onnx_call_t* call,
                                 const pestle_value_t* value, int64_t axis) {
  pestle_value_t* size = pestle_onnx_real_size(call->import, value, axis);
  return size ? size
              : pestle_onnx_size_number(call, pestle_onnx_dim(value, axis));
}

pestle_value_t* pestle_onnx_size_times(pestle_onnx_call_t* call,
                                       pestle_value_t* size, int64_t factor) {
  if (factor == 1) return size;
  return mul(call, size, pestle_onnx_size_number(call, factor));
}

pestle_value_t* pestle_onnx_size_product(pestle_onnx_call_t* call,
                                         const pestle_value_t* value,
                                         int64_t begin, int64_t end) {
  pestle_value_t* product = NULL;
  int64_t whole = 1;
  for (int64_t i = begin; i < end; ++i) {
    pestle_value_t* size = pestle_onnx_real_size(call->import, value, i);
    if (!size) whole *= pestle_onnx_dim(value, i);
    if (size) product = product ? mul(call, product, size) : size;
  }
  return product ? pestle_onnx_size_times(call, product, whole) : NULL;
}

// --- Whether sizes are one number ---

// Pairs of values that are looked at: a size is a few ops away from the mask
// that it was counted from, which two nodes of a model may both have; a detector joins
// those of a hundred classes.
enum { PAIRS = 1 << 15 };

static bool same_attr(const pestle_attr_t* a, const pestle_attr_t* b) {
  if (a->name != b->name || a->kind != b->kind) return false;
  if (a->kind == PESTLE_ATTR_KIND_I64) return a->as.i64 == b->as.i64;
  if (a->kind == PESTLE_ATTR_KIND_BOOL) return a->as.b == b->as.b;
  if (a->kind != PESTLE_ATTR_KIND_I64S) return false;
  return a->as.i64s.count == b->as.i64s.count &&
         !memcmp(a->as.i64s.data, b->as.i64s.data,
                 a->as.i64s.count * sizeof(int64_t));
}

// Whether |a| and |b| do alike to their operands: no region but that of a reduction
// by one op, and no constants among their attributes.
static bool same_op(const pestle_node_t* a, const pestle_node_t* b) {
  if (a->op != b->op || a->operand_count != b->operand_count ||
      a->attr_count != b->attr_count || a->result_count != b->result_count ||
      a->region_count != b->region_count || a->region_count > 1) {
    return false;
  }
  for (uint32_t i = 0; i < a->attr_count; ++i) {
    if (!same_attr(&a->attrs[i], &b->attrs[i])) return false;
  }
  if (!a->region_count) return true;
  pestle_op_t op = pestle_block_reduce_op(pestle_node_body(a, 0));
  return pestle_op_is_scalar(op) &&
         op == pestle_block_reduce_op(pestle_node_body(b, 0));
}

static bool same_constant(const pestle_elements_t* a,
                          const pestle_elements_t* b) {
  return a->splat == b->splat && a->size == b->size &&
         !memcmp(a->data, b->data, a->size);
}

static bool same(const pestle_value_t* a, const pestle_value_t* b, int* left) {
  if (a == b) return true;
  if (!a || !b || (*left)-- <= 0 || !pestle_type_equal(a->type, b->type))
    return false;
  const pestle_elements_t* x = pestle_value_constant(a);
  const pestle_elements_t* y = pestle_value_constant(b);
  if (x && y) return same_constant(x, y);
  if (!a->node || !b->node || a->index != b->index ||
      !same_op(a->node, b->node)) {
    return false;
  }
  uint16_t flags = pestle_op_info((pestle_op_t)a->node->op)->flags;
  if (flags & PESTLE_OP_FLAG_EFFECT) return false;
  for (uint32_t i = 0; i < a->node->operand_count; ++i) {
    if (!same(pestle_node_operand(a->node, i), pestle_node_operand(b->node, i),
              left)) {
      return false;
    }
  }
  return true;
}

bool pestle_onnx_same_size(const pestle_value_t* a, const pestle_value_t* b) {
  int left = PAIRS;
  return same(a, b, &left);
}

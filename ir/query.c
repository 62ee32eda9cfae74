// SPDX-License-Identifier: Apache-2.0
// Questions about nodes and blocks that several folders ask.
#include <string.h>

#include "base/half.h"
#include "ir/graph.h"

const pestle_elements_t* pestle_value_constant(const pestle_value_t* value) {
  const pestle_node_t* node = value->node;
  if (!node || node->op != PESTLE_OP_CONSTANT) return NULL;
  return pestle_node_attr(node, PESTLE_ATTR_value)->as.elements;
}

const pestle_node_t* pestle_value_constant_part(const pestle_value_t* value) {
  const pestle_node_t* node = value->node;
  return node && node->op == PESTLE_OP_CONSTANT_PART ? node : NULL;
}

bool pestle_value_is_stored(const pestle_value_t* value) {
  return pestle_value_constant(value) || pestle_value_constant_part(value);
}

pestle_type_t pestle_constant_part_type(const pestle_elements_t* value) {
  pestle_type_t type = value->type;
  --type.rank;
  for (int32_t d = 0; d < type.rank; ++d)
    type.dims[d] = value->type.dims[d + 1];
  type.dims[type.rank] = 0;
  return type;
}

pestle_elements_t pestle_constant_part_at(const pestle_node_t* node,
                                          int64_t index) {
  const pestle_elements_t* all = PESTLE_NODE_ELEMENTS(node);
  pestle_elements_t part = {.type = pestle_constant_part_type(all)};
  part.size = pestle_type_bytes(&part.type);
  part.data = (const char*)all->data + (size_t)index * part.size;
  return part;
}

void pestle_elements_first(const pestle_elements_t* e, double* out_f,
                           int64_t* out_i) {
  const pestle_dtype_info_t* info = pestle_dtype_info(e->type.dtype);
  uint64_t bits = 0;
  memcpy(&bits, e->data, info->size);
  *out_f = 0;
  *out_i = 0;
  if (info->kind == PESTLE_KIND_FLOAT) {
    *out_f = pestle_float_decode(e->type.dtype, bits);
  } else if (info->kind == PESTLE_KIND_SIGNED && info->size < 8) {
    unsigned shift = 64u - 8u * info->size;
    *out_i = (int64_t)(bits << shift) >> shift;
  } else {
    *out_i = (int64_t)bits;
  }
}

bool pestle_value_integer(const pestle_value_t* value, int64_t* out) {
  const pestle_elements_t* e = pestle_value_constant(value);
  double f;
  if (!e || e->type.rank || !pestle_dtype_is(e->type.dtype, PESTLE_KIND_INT)) {
    return false;
  }
  pestle_elements_first(e, &f, out);
  return true;
}

bool pestle_dtypes_have_same_bits(pestle_dtype_t a, pestle_dtype_t b) {
  pestle_dtype_t narrow = a == PESTLE_U8 ? b : a, byte = a == PESTLE_U8 ? a : b;
  bool in_byte = byte == PESTLE_U8 && pestle_dtype_is_sub_byte(narrow) &&
                 pestle_dtype_is(narrow, PESTLE_KIND_FLOAT);
  return in_byte || pestle_dtype_info(a)->bits == pestle_dtype_info(b)->bits;
}

bool pestle_reshape_axis(const pestle_type_t* from, const pestle_type_t* to,
                         int32_t axis, int32_t* out_axis, int64_t* out_times,
                         int64_t* out_parts) {
  int64_t outer = 1, inner = 1, before = 1, behind = 1;
  for (int32_t i = 0; i < from->rank; ++i) {
    if (!from->dims[i]) return false;
    if (i < axis) outer *= from->dims[i];
    if (i > axis) inner *= from->dims[i];
  }
  int32_t at = 0;
  while (at < to->rank && (before < outer || to->dims[at] == 1))
    before *= to->dims[at++];
  if (at == to->rank || before != outer) return false;
  for (int32_t i = at + 1; i < to->rank; ++i)
    behind *= to->dims[i];
  *out_axis = at;
  *out_times = inner % behind ? 1 : inner / behind;
  *out_parts = behind % inner ? 1 : behind / inner;
  return inner % behind == 0 || behind % inner == 0;
}

// Deeper calls are taken to have an effect.
enum { MAX_CALLS = 16 };

// Whether a custom call with an effect is in |region|, or in what it calls.
static bool calls_out(const pestle_region_t* region, int depth) {
  const pestle_node_t* n = NULL;
  while ((n = pestle_region_next(region, n))) {
    if (n->op == PESTLE_OP_CUSTOM_CALL) {
      if (PESTLE_NODE_BOOL(n, has_side_effect)) return true;
    } else if (n->op == PESTLE_OP_CALL) {
      const pestle_function_t* f = pestle_module_find_function(
          region->module, PESTLE_NODE_STR(n, callee));
      if (!depth) return true;
      if (f && f->body && calls_out(f->body, depth - 1)) return true;
    }
  }
  return false;
}

bool pestle_node_has_effect(const pestle_node_t* node) {
  if (pestle_op_info((pestle_op_t)node->op)->flags & PESTLE_OP_FLAG_EFFECT) {
    return true;
  }
  if (node->op == PESTLE_OP_CUSTOM_CALL &&
      PESTLE_NODE_BOOL(node, has_side_effect)) {
    return true;
  }
  if (node->op == PESTLE_OP_CALL) {
    const pestle_function_t* f = pestle_module_find_function(
        node->block->region->module, PESTLE_NODE_STR(node, callee));
    return f && f->body && calls_out(f->body, MAX_CALLS);
  }
  for (uint32_t i = 0; i < node->region_count; ++i) {
    if (calls_out(node->regions[i], MAX_CALLS)) return true;
  }
  return false;
}

// Whether |node| takes both arguments of |block|, in either order, and nothing
// else.
static bool takes_both(const pestle_node_t* node, const pestle_block_t* block) {
  if (node->operand_count != 2) return false;
  const pestle_value_t* a = pestle_node_operand(node, 0);
  const pestle_value_t* b = pestle_node_operand(node, 1);
  const pestle_value_t* x = block->arguments[0];
  const pestle_value_t* y = block->arguments[1];
  return (a == x && b == y) || (a == y && b == x);
}

pestle_op_t pestle_block_reduce_op(const pestle_block_t* block) {
  const pestle_node_t* node = block->first;
  const pestle_node_t* end = block->last;
  if (block->argument_count != 2 || !node || node->next != end || !end) {
    return PESTLE_OP_COUNT;
  }
  unsigned needed = PESTLE_OP_FLAG_COMM | PESTLE_OP_FLAG_ASSOC;
  pestle_op_t op = (pestle_op_t)node->op;
  bool reduces = pestle_op_is_scalar(op) &&
                 (pestle_op_info(op)->flags & needed) == needed &&
                 takes_both(node, block);
  bool returns = end->op == PESTLE_OP_RETURN && end->operand_count == 1 &&
                 pestle_node_operand(end, 0) == pestle_node_result(node, 0);
  return reduces && returns ? op : PESTLE_OP_COUNT;
}

// Whether copies of |node| on equal operands have equal results, whatever code
// is made of them: sums of floats may be contracted in one and not in the other.
static bool is_exact(const pestle_node_t* node) {
  switch ((int)node->op) {
    case PESTLE_OP_CONVERT:
    case PESTLE_OP_BITCAST_CONVERT:
    case PESTLE_OP_NEGATE:
    case PESTLE_OP_ABS:
    case PESTLE_OP_SELECT:
      return true;
  }
  return pestle_op_is_scalar((pestle_op_t)node->op) &&
         !pestle_dtype_is(node->results[0].type->dtype, PESTLE_KIND_FLOAT);
}

static bool is_same_number(const pestle_value_t* x, const pestle_value_t* y) {
  const pestle_elements_t* a = pestle_value_constant(x);
  const pestle_elements_t* b = pestle_value_constant(y);
  return a && b && a->size == b->size && !memcmp(a->data, b->data, a->size);
}

// Whether |y| is made of each pair's second argument as |x| is of its first.
static bool is_mirrored(const pestle_block_t* block, const pestle_value_t* x,
                        const pestle_value_t* y) {
  if (x->type->dtype != y->type->dtype) return false;
  for (uint32_t i = 0; i + 1 < block->argument_count; i += 2) {
    if (x == block->arguments[i]) return y == block->arguments[i + 1];
  }
  const pestle_node_t *a = x->node, *b = y->node;
  bool outside = a ? a->block != block : x->block != block;
  if (outside && x == y) return true;
  if (is_same_number(x, y)) return true;
  bool pure = a && b && a->block == block && b->block == block &&
              a->op == b->op && is_exact(a);
  for (uint32_t i = 0; pure && i < a->operand_count; ++i) {
    pure = is_mirrored(block, pestle_node_operand(a, i),
                       pestle_node_operand(b, i));
  }
  return pure;
}

// x < y or x > y of what is_mirrored() either way round.
static bool is_less(const pestle_block_t* block, const pestle_node_t* node) {
  if (!node || (node->op != PESTLE_OP_LT && node->op != PESTLE_OP_GT)) {
    return false;
  }
  const pestle_value_t* x = pestle_node_operand(node, 0);
  const pestle_value_t* y = pestle_node_operand(node, 1);
  return is_mirrored(block, x, y) || is_mirrored(block, y, x);
}

// What |node| says to be NaN, or, if |number|, not to be; NULL: neither.
static const pestle_value_t* tested_nan(const pestle_node_t* node,
                                        bool number) {
  if (!node) return NULL;
  if (node->op == PESTLE_OP_IS_NAN && !number)
    return pestle_node_operand(node, 0);
  if (node->op != (number ? PESTLE_OP_EQ : PESTLE_OP_NE)) return NULL;
  const pestle_value_t* x = pestle_node_operand(node, 0);
  return x == pestle_node_operand(node, 1) ? x : NULL;
}

// Whether |node| says of the operands of |less| that one is NaN and the other
// is not: all NaN come last, or first.
static bool parts_nan(const pestle_node_t* node, const pestle_node_t* less) {
  if (!node || node->op != PESTLE_OP_AND) return false;
  const pestle_value_t* a = pestle_node_operand(less, 0);
  const pestle_value_t* b = pestle_node_operand(less, 1);
  for (uint32_t i = 0; i < 2; ++i) {
    const pestle_value_t* nan =
        tested_nan(pestle_node_operand(node, i)->node, false);
    const pestle_value_t* number =
        tested_nan(pestle_node_operand(node, 1 - i)->node, true);
    if ((nan == a && number == b) || (nan == b && number == a)) return true;
  }
  return false;
}

bool pestle_block_is_order(const pestle_block_t* block) {
  const pestle_node_t* node = pestle_node_operand(block->last, 0)->node;
  if (is_less(block, node)) {
    pestle_dtype_t dtype = pestle_node_operand(node, 0)->type->dtype;
    return pestle_dtype_is(dtype, PESTLE_KIND_INT | PESTLE_KIND_BOOL);
  }
  if (!node || node->op != PESTLE_OP_OR) return false;
  for (uint32_t i = 0; i < 2; ++i) {
    const pestle_node_t* less = pestle_node_operand(node, i)->node;
    const pestle_node_t* nan = pestle_node_operand(node, 1 - i)->node;
    if (is_less(block, less) && parts_nan(nan, less)) return true;
  }
  return false;
}

const pestle_value_t* pestle_block_order_key(const pestle_block_t* block,
                                             bool* out_descending) {
  const pestle_node_t* end = block->last;
  const pestle_node_t* less =
      end->operand_count == 1 ? pestle_node_operand(end, 0)->node : NULL;
  if (!is_less(block, less)) return NULL;
  const pestle_value_t* x = pestle_node_operand(less, 0);
  bool first = is_mirrored(block, x, pestle_node_operand(less, 1));
  *out_descending = first == (less->op == PESTLE_OP_GT);
  return pestle_dtype_is(x->type->dtype, PESTLE_KIND_INT) ? x : NULL;
}

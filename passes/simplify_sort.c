// SPDX-License-Identifier: Apache-2.0
// The rule about sorts whose results are read at the beginning alone: they become
// sort_first.
#include "base/mem.h"
#include "passes/simplify.h"
#include "passes/util.h"

static int64_t axis_of(const pestle_node_t* sort) {
  int64_t axis = PESTLE_NODE_I64(sort, dimension);
  return axis < 0 ? axis + sort->results[0].type->rank : axis;
}

// How many of a row's elements are read, if all that reads them are slices.
static int64_t count_read(const pestle_node_t* sort, int64_t axis) {
  int64_t count = 0;
  for (uint32_t i = 0; i < sort->result_count; ++i) {
    const pestle_value_t* y = &sort->results[i];
    for (const pestle_use_t* use = y->uses; use; use = use->next) {
      if (use->user->op != PESTLE_OP_SLICE) return y->type->dims[axis];
      int64_t limit = PESTLE_NODE_I64S(use->user, limit_indices).data[axis];
      if (limit > count) count = limit;
    }
  }
  return count;
}

// What becomes of a sort's operands: those that count along its axis, and are not
// compared, are positions.
typedef struct split_t {
  pestle_value_t* operands[PESTLE_SIMPLIFY_MAX_RESULTS];
  bool kept[PESTLE_SIMPLIFY_MAX_RESULTS];
  size_t count;  // of |operands|, which are kept
} split_t;

static void split_operands(const pestle_node_t* sort, int64_t axis,
                           split_t* out) {
  const pestle_block_t* block = pestle_node_body(sort, 0);
  *out = (split_t){.count = 0};
  for (uint32_t i = 0; i < sort->operand_count; ++i) {
    pestle_value_t* x = pestle_node_operand(sort, i);
    out->kept[i] = block->arguments[2 * i]->use_count ||
                   block->arguments[2 * i + 1]->use_count ||
                   !pestle_pass_counts_along(x, axis);
    if (out->kept[i]) out->operands[out->count++] = x;
  }
}

// |to| becomes the comparator |from| of the operands that |split| keeps.
static pestle_status_t copy_comparator(const split_t* split,
                                       const pestle_block_t* from,
                                       pestle_block_t* to,
                                       pestle_copier_t* copier) {
  size_t next = 0;
  for (uint32_t i = 0; i < from->argument_count; ++i) {
    if (!split->kept[i / 2]) continue;
    PESTLE_TRY(pestle_copier_set(copier, from->arguments[i],
                                 pestle_block_argument(to, next++)));
  }
  copier->builder.block = to;
  copier->builder.before = NULL;
  PESTLE_TRY(pestle_copier_block(copier, from));
  pestle_value_t* y =
      pestle_copier_get(copier, pestle_node_operand(from->last, 0));
  return pestle_op_return(&copier->builder, &y, 1, NULL);
}

static pestle_region_t* make_region(pestle_formula_t* f, const split_t* split,
                                    const pestle_node_t* sort) {
  const pestle_block_t* from = pestle_node_body(sort, 0);
  pestle_module_t* module = f->builder.module;
  pestle_type_t types[2 * PESTLE_SIMPLIFY_MAX_RESULTS];
  pestle_region_t* region = NULL;
  pestle_block_t* to;
  for (size_t i = 0; i < 2 * split->count; ++i)
    types[i] = pestle_type_make(split->operands[i / 2]->type->dtype, 0, NULL);
  f->status =
      pestle_region_create(module, types, 2 * split->count, &region, &to);
  if (f->status) return NULL;
  pestle_copier_t copier;
  pestle_copier_init(pestle_context_allocator(module->context), f->builder,
                     &copier);
  f->status = copy_comparator(split, from, to, &copier);
  pestle_copier_deinit(&copier);
  return region;
}

// A sort of which slices read the beginnings of rows. Of a comparator that is no
// order the first elements follow from the whole sort alone.
void pestle_rule_sort_first(pestle_formula_t* f, pestle_node_t* node,
                            pestle_value_t** out) {
  split_t split;
  int64_t axis = axis_of(node), length = node->results[0].type->dims[axis];
  int64_t count = count_read(node, axis);
  if (count >= length || length > INT32_MAX ||
      !pestle_block_is_order(pestle_node_body(node, 0))) {
    return;
  }
  split_operands(node, axis, &split);
  pestle_region_t* region = make_region(f, &split, node);
  pestle_attr_t attrs[] = {PESTLE_SET_I64(dimension, axis),
                           PESTLE_SET_I64(count, count)};
  pestle_node_t* first =
      pestle_f_node(f, &(pestle_node_spec_t){.op = PESTLE_OP_SORT_FIRST,
                                             .operands = split.operands,
                                             .operand_count = split.count,
                                             .attrs = attrs,
                                             .attr_count = 2,
                                             .regions = &region,
                                             .region_count = 1});
  uint32_t next = 0;
  for (uint32_t i = 0; first && i < node->result_count; ++i) {
    pestle_dtype_t dtype = node->results[i].type->dtype;
    out[i] = split.kept[i]
                 ? pestle_node_result(first, next++)
                 : pestle_f_convert(f, pestle_node_result(first, split.count),
                                    dtype);
  }
}

// SPDX-License-Identifier: Apache-2.0
// Batching. Each op that a batched value reaches is made again on values with one
// more axis, the first; the others stay as they are:
//
//   %y = sine %x : tensor<3xf32>    ->   %y = sine %x : tensor<8x3xf32>
//
// Arguments and results have the axis where the caller wants it: a transpose at the
// border, which passes push away.
#include <string.h>

#include "base/context.h"
#include "base/mem.h"
#include "base/require.h"
#include "ir/copy.h"
#include "transform/vmap.h"
#include "transform/work.h"

pestle_type_t pestle_vmap_type(const pestle_vmap_t* v,
                               const pestle_type_t* type) {
  pestle_type_t out = {.dtype = type->dtype, .rank = type->rank + 1};
  out.dims[0] = v->size;
  if (type->rank < PESTLE_MAX_RANK) {
    memcpy(out.dims + 1, type->dims, (size_t)type->rank * sizeof(int64_t));
  }
  return out;
}

pv_t* pestle_vmap_batch(pestle_vmap_t* v, pv_t* value, bool is_batched) {
  int64_t axes[PESTLE_MAX_RANK];
  if (!value || is_batched) return value;
  for (int32_t d = 0; d < value->type->rank; ++d)
    axes[d] = d + 1;
  pestle_type_t type = pestle_vmap_type(v, value->type);
  return pestle_f_broadcast_to(&v->f, value, &type, axes);
}

void pestle_vmap_set(pestle_vmap_t* v, const pv_t* from, pv_t* to) {
  if (!to) return;
  if (!pestle_map_set_u64_ptr(&v->values, (uintptr_t)from, to)) {
    pestle_f_fail(&v->f, PESTLE_OOM());
  }
}

void pestle_vmap_refuse(pestle_vmap_t* v, const pestle_node_t* node,
                        const char* why) {
  pestle_f_fail(&v->f,
                pestle_node_error(node, PESTLE_STATUS_UNSUPPORTED, "%s", why));
}

// --- Kinds of rows ---

static pestle_type_t* stated_type(const pestle_vmap_t* v,
                                  const pestle_node_t* node,
                                  pestle_type_t* type) {
  *type = pestle_vmap_type(v, node->results[0].type);
  return pestle_op_info((pestle_op_t)node->op)->rule == PESTLE_RULE_TYPED
             ? type
             : NULL;
}

// Whether operand |i| may have rank 0 beside others that have more.
static bool may_be_scalar(const pestle_node_t* node, size_t i) {
  return node->op == PESTLE_OP_SELECT ? i == 0
                                      : node->op == PESTLE_OP_CLAMP && i != 1;
}

// A batched operand of rank 0 beside others of more has the axis alone.
static pv_t* spread_scalar(pestle_vmap_t* v, const pestle_node_t* node,
                           pv_t* value) {
  pestle_type_t type = pestle_vmap_type(v, node->results[0].type);
  if (!value || value->type->rank == type.rank) return value;
  return pestle_f_broadcast_to(&v->f, value, &type, (const int64_t[]){0});
}

static void vmap_elementwise(pestle_vmap_t* v, const pestle_node_t* node,
                             pv_t** operands, const bool* is_batched,
                             pv_t** out) {
  pestle_type_t type;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    bool is_scalar =
        may_be_scalar(node, i) && pestle_node_operand(node, i)->type->rank == 0;
    if (is_scalar && !is_batched[i]) continue;
    operands[i] = pestle_vmap_batch(v, operands[i], is_batched[i]);
    if (is_scalar) operands[i] = spread_scalar(v, node, operands[i]);
  }
  out[0] = pestle_f_like(&v->f, node, operands, stated_type(v, node, &type));
}

// What an attribute with a number for each dim says of the new one.
static int64_t neutral(const pestle_vmap_t* v, unsigned name) {
  switch (name) {
    case PESTLE_ATTR_limit_indices:
    case PESTLE_ATTR_slice_sizes:
      return v->size;
    case PESTLE_ATTR_strides:
    case PESTLE_ATTR_window_dimensions:
    case PESTLE_ATTR_window_strides:
    case PESTLE_ATTR_base_dilations:
    case PESTLE_ATTR_window_dilations:
      return 1;
    default:
      return 0;
  }
}

// |rank| is that of the op's operand.
static pestle_status_t shift(pestle_vmap_t* v, const pestle_attr_row_t* row,
                             int32_t rank, pestle_attr_t* attr) {
  bool is_dims = row->meaning == PESTLE_ATTR_IS_DIMS;
  if (attr->kind == PESTLE_ATTR_KIND_I64) {
    if (is_dims && attr->as.i64 >= 0) ++attr->as.i64;
    return NULL;
  }
  if (attr->kind != PESTLE_ATTR_KIND_I64S ||
      row->meaning == PESTLE_ATTR_IS_PLAIN) {
    return NULL;
  }
  // Lists of all dims begin with the new one.
  bool is_whole = !is_dims || attr->name == PESTLE_ATTR_permutation ||
                  attr->name == PESTLE_ATTR_broadcast_dimensions;
  size_t n = attr->as.i64s.count, more = !is_whole ? 0 : 1;
  if (row->meaning == PESTLE_ATTR_IS_PAIRS) more = 2;
  // Left out: the default. Of rank 0 an empty list is whole too.
  if (is_whole && !is_dims && !n && rank) return NULL;
  int64_t* list = PESTLE_ARENA_ARRAY(&v->arena, int64_t, n + more + 1);
  if (!list) return PESTLE_OOM();
  for (size_t i = 0; i < more; ++i)
    list[i] = neutral(v, attr->name);
  for (size_t i = 0; i < n; ++i)
    list[more + i] = attr->as.i64s.data[i] + (is_dims ? 1 : 0);
  attr->as.i64s = (pestle_i64s_t){list, n + more};
  return NULL;
}

pestle_status_t pestle_vmap_attrs(pestle_vmap_t* v, const pestle_node_t* node,
                                  pestle_attr_t* out_attrs) {
  size_t count;
  const pestle_attr_row_t* rows =
      pestle_op_attr_rows((pestle_op_t)node->op, &count);
  int32_t rank =
      node->operand_count ? pestle_node_operand(node, 0)->type->rank : 0;
  for (uint32_t i = 0; i < node->attr_count; ++i) {
    out_attrs[i] = node->attrs[i];
    for (size_t k = 0; k < count; ++k) {
      if (rows[k].name != out_attrs[i].name) continue;
      PESTLE_TRY(shift(v, &rows[k], rank, &out_attrs[i]));
    }
  }
  return NULL;
}

pestle_status_t pestle_vmap_regions(pestle_vmap_t* v, const pestle_node_t* node,
                                    pestle_region_t*** out_regions) {
  pestle_copier_t copier;
  pestle_status_t status = NULL;
  *out_regions =
      PESTLE_ARENA_ARRAY(&v->arena, pestle_region_t*, node->region_count + 1);
  if (!*out_regions) return PESTLE_OOM();
  pestle_copier_init(v->allocator, v->f.builder, &copier);
  for (uint32_t r = 0; r < node->region_count && !status; ++r)
    status =
        pestle_copier_region(&copier, node->regions[r], &(*out_regions)[r]);
  pestle_copier_deinit(&copier);
  return status;
}

pestle_node_t* pestle_vmap_shifted(pestle_vmap_t* v, const pestle_node_t* node,
                                   pv_t* const* operands) {
  pestle_attr_t attrs[PESTLE_MAX_ATTRS];
  pestle_region_t** regions;
  pestle_type_t type;
  if (v->f.status) return NULL;
  pestle_status_t status = pestle_vmap_attrs(v, node, attrs);
  if (!status) status = pestle_vmap_regions(v, node, &regions);
  if (status) {
    pestle_f_fail(&v->f, status);
    return NULL;
  }
  return pestle_f_node(
      &v->f, &(pestle_node_spec_t){.op = (pestle_op_t)node->op,
                                   .operands = operands,
                                   .operand_count = node->operand_count,
                                   .attrs = attrs,
                                   .attr_count = node->attr_count,
                                   .regions = regions,
                                   .region_count = node->region_count,
                                   .type = stated_type(v, node, &type),
                                   .share_elements = true});
}

static void vmap_shift(pestle_vmap_t* v, const pestle_node_t* node,
                       pv_t** operands, const bool* is_batched, pv_t** out) {
  for (uint32_t i = 0; i < node->operand_count; ++i)
    operands[i] = pestle_vmap_batch(v, operands[i], is_batched[i]);
  pestle_node_t* made = pestle_vmap_shifted(v, node, operands);
  for (uint32_t r = 0; made && r < node->result_count; ++r)
    out[r] = pestle_node_result(made, r);
}

// --- The walk ---

pv_t* pestle_vmap_get(const pestle_vmap_t* v, pv_t* value) {
  const pestle_map_value_t* slot =
      pestle_map_find_u64(&v->values, (uintptr_t)value);
  return slot ? slot->ptr : value;
}

static void apply(pestle_vmap_t* v, pestle_node_t* node, pv_t** operands,
                  const bool* is_batched, pv_t** out) {
  pestle_op_t op = (pestle_op_t)node->op;
  switch ((pestle_batching_t)pestle_transform_row(op).batching) {
    case PESTLE_VMAP_ELEMENTWISE:
      vmap_elementwise(v, node, operands, is_batched, out);
      return;
    case PESTLE_VMAP_SHIFT:
      vmap_shift(v, node, operands, is_batched, out);
      return;
    case PESTLE_VMAP_RULE:
      pestle_vmap_rule(op)(v, node, operands, is_batched, out);
      return;
    case PESTLE_VMAP_DECOMPOSE:
      pestle_custom_vmap(v, node, operands, is_batched, out);
      return;
    case PESTLE_VMAP_NONE:
      pestle_vmap_refuse(v, node,
                         "cannot be batched; give it operands that are the "
                         "same for all elements, or write it with other ops");
  }
}

static pestle_status_t vmap_node(pestle_vmap_t* v, pestle_node_t* node) {
  size_t count = node->operand_count, results = node->result_count;
  pv_t** operands = pestle_value_array(&v->f, &v->arena, count);
  pv_t** out = pestle_value_array(&v->f, &v->arena, results);
  bool* flags = PESTLE_ARENA_ARRAY(&v->arena, bool, count + 1);
  if (!operands || !out || !flags) return PESTLE_OOM();
  v->f.builder.loc = node->loc;
  for (size_t i = 0; i < count; ++i) {
    operands[i] = pestle_vmap_get(v, pestle_node_operand(node, i));
    flags[i] = operands[i] != pestle_node_operand(node, i);
  }
  apply(v, node, operands, flags, out);
  for (size_t r = 0; r < results && !v->f.status; ++r) {
    if (!out[r]) continue;  // another value is in its place, not batched
    if (!pestle_map_set_u64_ptr(&v->values, (uintptr_t)&node->results[r],
                                out[r])) {
      return PESTLE_OOM();
    }
  }
  pestle_status_t status = v->f.status;
  v->f.status = NULL;
  return status;
}

static pestle_status_t vmap_all(pestle_vmap_t* v, pestle_node_t* first,
                                const pestle_node_t* end) {
  for (pestle_node_t *n = first, *next; n != end; n = next) {
    next = n->next;
    if (!pestle_reads(n, &v->values)) continue;
    // Behind its source, before those that read what is not batched of it.
    v->f.builder.block = n->block;
    v->f.builder.before = next;
    if (pestle_transform_row((pestle_op_t)n->op).batching ==
            PESTLE_VMAP_DECOMPOSE &&
        !pestle_custom_has_vmap(v, n)) {
      PESTLE_TRY(pestle_transform_expand(v->allocator, n, &next));
      continue;
    }
    pestle_arena_mark_t mark = pestle_arena_mark(&v->arena);
    pestle_status_t status = vmap_node(v, n);
    pestle_arena_rewind(&v->arena, mark);
    if (status) return status;
  }
  return NULL;
}

pestle_status_t pestle_vmap_nodes(pestle_vmap_t* v, pestle_node_t* first,
                                  const pestle_node_t* end) {
  pestle_builder_t builder = v->f.builder;
  pestle_status_t status = vmap_all(v, first, end);
  v->f.builder = builder;
  return status;
}

pestle_status_t pestle_vmap_inner(pestle_vmap_t* v, pestle_block_t* block) {
  pestle_formula_t f = v->f;
  v->f = pestle_formula_before(block->last);
  pv_t* fence = pestle_f_scalar(&v->f, PESTLE_I1, 0);
  pestle_status_t status = v->f.status;
  v->f.status = NULL;
  if (!status) status = pestle_vmap_nodes(v, block->first, fence->node);
  v->f = f;
  return status;
}

// --- The border ---

typedef struct border_t {
  pestle_vmap_t v;
  pestle_module_t* module;
  pestle_vmap_options_t o;
  size_t argument_count, result_count;
} border_t;

static pestle_status_t check_axes(const border_t* b, bool is_result) {
  const int64_t* axes = is_result ? b->o.result_axes : b->o.argument_axes;
  size_t given = is_result ? b->o.result_axis_count : b->o.argument_axis_count;
  size_t count = is_result ? b->result_count : b->argument_count;
  const char* what = is_result ? "result" : "argument";
  const pestle_block_t* body = b->v.function->body->block;
  if (!axes) return NULL;
  if (given != count) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "%zu axes of %ss are given; function '%s' has %zu",
                        given, what, b->v.function->name, count);
  }
  for (size_t i = 0; i < count; ++i) {
    const pv_t* value =
        is_result ? pestle_node_operand(body->last, i) : body->arguments[i];
    if (axes[i] == PESTLE_NOT_BATCHED) continue;
    if (axes[i] < 0 || axes[i] > value->type->rank) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "axis %lld of %s %zu is none: the batched %s has "
                          "rank %d",
                          (long long)axes[i], what, i, what,
                          (int)value->type->rank + 1);
    }
    if (value->type->rank == PESTLE_MAX_RANK) {
      return PESTLE_ERROR(UNSUPPORTED,
                          "%s %zu has rank %d and can have no further axis",
                          what, i, PESTLE_MAX_RANK);
    }
  }
  return NULL;
}

static int64_t axis_of(const int64_t* axes, size_t index) {
  return axes ? axes[index] : 0;
}

// |value| with axis |from| moved to |to|.
static pv_t* move_axis(pestle_formula_t* f, pv_t* value, int64_t from,
                       int64_t to) {
  int64_t order[PESTLE_MAX_RANK];
  if (!value) return NULL;
  int64_t next = 0;
  for (int64_t d = 0; d < value->type->rank; ++d) {
    if (next == from) ++next;
    order[d] = d == to ? from : next++;
  }
  return pestle_f_transpose(f, value, order);
}

static pestle_status_t add_arguments(border_t* b) {
  pestle_vmap_t* v = &b->v;
  pestle_function_t* function = v->function;
  for (size_t i = 0; i < b->argument_count; ++i) {
    pv_t *old = function->body->block->arguments[i], *made;
    int64_t axis = axis_of(b->o.argument_axes, i);
    pestle_type_t type = *old->type;
    if (axis >= 0) {
      size_t behind = (size_t)(type.rank - axis) * sizeof(type.dims[0]);
      memmove(&type.dims[axis + 1], &type.dims[axis], behind);
      type.dims[axis] = v->size;
      ++type.rank;
    }
    PESTLE_TRY(pestle_function_add_argument(
        function, &type, pestle_function_argument_name(function, i), &made));
    if (axis < 0) {
      pestle_value_replace_all_uses(old, made);
      continue;
    }
    made = move_axis(&v->f, made, axis, 0);
    if (v->f.status) return v->f.status;
    if (!pestle_map_set_u64_ptr(&v->values, (uintptr_t)old, made)) {
      return PESTLE_OOM();
    }
  }
  return NULL;
}

static pestle_status_t batched_results(border_t* b, pv_t** out, int64_t* from) {
  pestle_vmap_t* v = &b->v;
  const pestle_node_t* last = v->function->body->block->last;
  for (size_t i = 0; i < b->result_count; ++i) {
    pv_t* old = pestle_node_operand(last, i);
    int64_t axis = axis_of(b->o.result_axes, i);
    out[i] = pestle_vmap_get(v, old);
    from[i] = (int64_t)i;
    if (axis >= 0) {
      pv_t* whole = pestle_vmap_batch(v, out[i], out[i] != old);
      out[i] = move_axis(&v->f, whole, 0, axis);
    } else if (out[i] != old) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "result %zu of function '%s' depends on a batched "
                          "argument and needs an axis",
                          i, v->function->name);
    }
  }
  return v->f.status;
}

static pestle_status_t transform(border_t* b) {
  pestle_vmap_t* v = &b->v;
  pestle_block_t* body = v->function->body->block;
  if (b->o.size < 0) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the extent of the new axis is %lld; it is the number "
                        "of elements to be batched",
                        (long long)b->o.size);
  }
  for (size_t i = 0; i < b->result_count; ++i) {
    if (pestle_function_shape_of(v->function, i) < 0) continue;
    return PESTLE_ERROR(UNSUPPORTED,
                        "result %lld of function '%s' has extents that a run "
                        "decides, and elements of a batch would have their "
                        "own; fix them",
                        (long long)pestle_function_shape_of(v->function, i),
                        v->function->name);
  }
  PESTLE_TRY(check_axes(b, false));
  PESTLE_TRY(check_axes(b, true));
  // Arguments are moved in front of all, results behind this one.
  v->f = pestle_formula_before(body->last);
  pv_t* fence = pestle_f_scalar(&v->f, PESTLE_I1, 0);
  if (v->f.status) return v->f.status;
  pestle_node_t* first = body->first;
  v->f.builder.before = first;
  PESTLE_TRY(add_arguments(b));
  PESTLE_TRY(pestle_vmap_nodes(v, first, fence->node));
  v->f.builder.before = body->last;
  pv_t** out = pestle_value_array(&v->f, &v->arena, b->result_count);
  int64_t* from = PESTLE_ARENA_ARRAY(&v->arena, int64_t, b->result_count + 1);
  if (!out || !from) return PESTLE_OOM();
  PESTLE_TRY(batched_results(b, out, from));
  PESTLE_TRY(
      pestle_function_set_results(v->function, out, b->result_count, from));
  pestle_sweep(body);
  for (size_t i = b->argument_count; i-- > 0;)
    PESTLE_TRY(pestle_function_remove_argument(v->function, i));
  return NULL;
}

pestle_status_t pestle_module_vmap(pestle_module_t* module,
                                   const pestle_vmap_options_t* options,
                                   pestle_module_t** out_module) {
  border_t b = {.o = {.struct_size = sizeof(b.o)}};
  PESTLE_REQUIRE(out_module, "out_module");
  *out_module = NULL;
  PESTLE_REQUIRE(options, "options");
  memcpy(
      &b.o, options,
      options->struct_size < sizeof(b.o) ? options->struct_size : sizeof(b.o));
  PESTLE_TRY(pestle_transform_copy(module, b.o.function, &b.module));
  b.v.allocator = pestle_context_allocator(b.module->context);
  b.v.function = pestle_module_entry(b.module);
  b.v.size = b.o.size;
  b.argument_count = b.v.function->body->block->argument_count;
  b.result_count = b.v.function->body->block->last->operand_count;
  pestle_arena_init(b.v.allocator, &b.v.arena);
  pestle_map_init(b.v.allocator, &b.v.values);
  pestle_status_t status = transform(&b);
  pestle_map_deinit(&b.v.values);
  pestle_arena_deinit(&b.v.arena);
  if (status) {
    pestle_module_release(b.module);
  } else {
    *out_module = b.module;
  }
  return status;
}

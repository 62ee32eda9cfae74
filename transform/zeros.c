// SPDX-License-Identifier: Apache-2.0
// Zeros, sums, and what else all walks share.
#include "base/mem.h"
#include "ir/composite.h"
#include "ir/copy.h"
#include "transform/transform.h"

pv_t* pestle_zeros(pestle_formula_t* f, const pv_t* like) {
  return pestle_f_splat(f, like, 0);
}

bool pestle_is_zeros(const pv_t* value) {
  if (value->node && value->node->op == PESTLE_OP_BROADCAST_IN_DIM) {
    return pestle_is_zeros(pestle_node_operand(value->node, 0));
  }
  const pestle_elements_t* e = pestle_value_constant(value);
  if (!e) return false;
  const char* data = e->data;
  for (size_t i = 0; i < e->size; ++i) {
    if (data[i]) return false;
  }
  return true;
}

pestle_dtype_t pestle_compute_dtype(pestle_dtype_t dtype) {
  bool is_narrow =
      pestle_dtype_is(dtype, PESTLE_KIND_FLOAT) && pestle_dtype_size(dtype) < 4;
  return is_narrow ? PESTLE_F32 : dtype;
}

pv_t* pestle_sum(pestle_formula_t* f, pv_t** terms, size_t count) {
  size_t n = 0;
  for (size_t i = 0; i < count; ++i) {
    if (terms[i]) terms[n++] = terms[i];
  }
  if (n < 2) return n ? terms[0] : NULL;
  pestle_dtype_t dtype = terms[0]->type->dtype;
  for (size_t i = 0; n > 2 && i < n; ++i)
    terms[i] = pestle_f_convert(f, terms[i], pestle_compute_dtype(dtype));
  for (; n > 1; n = (n + 1) / 2) {
    for (size_t i = 0; 2 * i < n; ++i) {
      terms[i] = 2 * i + 1 < n ? pestle_f_add(f, terms[2 * i], terms[2 * i + 1])
                               : terms[2 * i];
    }
  }
  return pestle_f_convert(f, terms[0], dtype);
}

pv_t* pestle_sum_axes(pestle_formula_t* f, pv_t* a, const int64_t* axes,
                      size_t count) {
  int64_t kept[PESTLE_MAX_RANK], summed = 1;
  int32_t rank = 0;
  if (!a || !count) return a;
  for (int32_t d = 0; d < a->type->rank; ++d) {
    if (pestle_i64s_has((pestle_i64s_t){axes, count}, d)) {
      summed *= a->type->dims[d];
    } else {
      kept[rank++] = a->type->dims[d];
    }
  }
  if (summed == 1) return pestle_f_reshape(f, a, rank, kept);
  return pestle_f_reduce(f, PESTLE_OP_ADD, a, (pestle_i64s_t){axes, count}, 0);
}

pv_t* pestle_spread_axes(pestle_formula_t* f, pv_t* a,
                         const pestle_type_t* type, pestle_i64s_t axes) {
  int64_t kept[PESTLE_MAX_RANK];
  int32_t n = 0;
  for (int32_t i = 0; i < type->rank; ++i) {
    if (!pestle_i64s_has(axes, i)) kept[n++] = i;
  }
  return pestle_f_broadcast_to(f, a, type, kept);
}

pv_t** pestle_value_array(pestle_formula_t* f, pestle_arena_t* arena,
                          size_t count) {
  pv_t** array = pestle_arena_alloc_zero(arena, (count + 1) * sizeof(*array),
                                         _Alignof(pv_t*));
  if (!array) pestle_f_fail(f, PESTLE_OOM());
  return array;
}

// --- Reading and sweeping ---

static bool has_any(const pestle_node_t* node, const pestle_map_t* map) {
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (pestle_map_find_u64(map, (uintptr_t)pestle_node_operand(node, i))) {
      return true;
    }
  }
  return false;
}

bool pestle_captures(const pestle_node_t* node, const pestle_map_t* map) {
  for (uint32_t r = 0; r < node->region_count; ++r) {
    const pestle_node_t* n = NULL;
    while ((n = pestle_region_next(node->regions[r], n))) {
      if (has_any(n, map)) return true;
    }
  }
  return false;
}

bool pestle_reads(const pestle_node_t* node, const pestle_map_t* map) {
  return has_any(node, map) || pestle_captures(node, map);
}

static bool is_dead(const pestle_node_t* node) {
  if (node->op == PESTLE_OP_RETURN) return false;
  for (uint32_t i = 0; i < node->result_count; ++i) {
    if (node->results[i].use_count) return false;
  }
  return node->op == PESTLE_OP_OPTIMIZATION_BARRIER ||
         !pestle_node_has_effect(node);
}

void pestle_sweep(pestle_block_t* block) {
  for (pestle_node_t *n = block->last, *prev; n; n = prev) {
    prev = n->prev;
    if (is_dead(n)) pestle_node_erase(n);
  }
}

// --- Putting in place ---

// The node behind |before| in |block|, its first for NULL.
static pestle_node_t* behind(const pestle_block_t* block,
                             pestle_node_t* before) {
  return before ? before->next : block->first;
}

static pestle_status_t put_decomposition(pestle_node_t* node,
                                         pestle_node_t** out_next) {
  pv_t* results[PESTLE_COMPOSITE_MAX_RESULTS] = {NULL};
  pestle_node_t* before = node->prev;
  const pestle_block_t* block = node->block;
  PESTLE_TRY(pestle_decompose(node, results));
  for (uint32_t i = 0; i < node->result_count; ++i)
    pestle_value_replace_all_uses(pestle_node_result(node, i), results[i]);
  pestle_node_erase(node);
  *out_next = behind(block, before);
  return NULL;
}

static pestle_status_t copy_body(pestle_copier_t* copier, pestle_node_t* node,
                                 const pestle_block_t* body) {
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    PESTLE_TRY(pestle_copier_set(copier, body->arguments[i],
                                 pestle_node_operand(node, i)));
  }
  PESTLE_TRY(pestle_copier_block(copier, body));
  for (uint32_t i = 0; i < node->result_count; ++i) {
    pestle_value_replace_all_uses(
        pestle_node_result(node, i),
        pestle_copier_get(copier, pestle_node_operand(body->last, i)));
  }
  return NULL;
}

static pestle_status_t put_body(pestle_allocator_t allocator,
                                pestle_node_t* node, const pestle_block_t* body,
                                pestle_node_t** out_next) {
  pestle_copier_t copier;
  pestle_node_t* before = node->prev;
  const pestle_block_t* block = node->block;
  pestle_copier_init(allocator, pestle_builder_before(node), &copier);
  pestle_status_t status = copy_body(&copier, node, body);
  pestle_copier_deinit(&copier);
  if (status) return status;
  pestle_node_erase(node);
  *out_next = behind(block, before);
  return NULL;
}

static pestle_status_t put_callee(pestle_allocator_t allocator,
                                  pestle_node_t* call,
                                  pestle_node_t** out_next) {
  pestle_module_t* module = call->block->region->module;
  const pestle_function_t* callee =
      pestle_module_find_function(module, PESTLE_NODE_STR(call, callee));
  if (!callee) {
    return pestle_node_error(call, PESTLE_STATUS_MALFORMED,
                             "there is no function '%s'",
                             PESTLE_NODE_STR(call, callee));
  }
  return put_body(allocator, call, callee->body->block, out_next);
}

pestle_status_t pestle_transform_expand(pestle_allocator_t allocator,
                                        pestle_node_t* node,
                                        pestle_node_t** out_next) {
  if (node->op == PESTLE_OP_CALL) {
    return put_callee(allocator, node, out_next);
  }
  if (node->op != PESTLE_OP_CUSTOM) return put_decomposition(node, out_next);
  if (node->region_count) {
    return put_body(allocator, node, pestle_node_body(node, 0), out_next);
  }
  return pestle_node_error(
      node, PESTLE_STATUS_UNSUPPORTED,
      "op '%s' has neither a rule for this transform nor a "
      "body; give it one",
      PESTLE_NODE_STR(node, name));
}

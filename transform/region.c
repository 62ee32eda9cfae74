// SPDX-License-Identifier: Apache-2.0
#include "transform/region.h"

#include "base/mem.h"

pestle_status_t pestle_jvp_inner(pestle_jvp_t* j, pestle_block_t* block) {
  pestle_formula_t f = j->f;
  j->f.status = NULL;
  pestle_status_t status = pestle_jvp_block(j, block);
  j->f = f;
  return status;
}

static bool is_source(const pv_t* value) {
  return value->node && pestle_op_info((pestle_op_t)value->node->op)->fuse ==
                            PESTLE_FUSE_SOURCE;
}

// --- Residuals ---

typedef struct finder_t {
  const pestle_transposer_t* x;
  const pestle_block_t* block;
  pestle_map_t seen;
  pestle_values_t* out;
} finder_t;

static pestle_status_t look_at(finder_t* s, pv_t* value) {
  const pestle_block_t* home = value->node ? value->node->block : value->block;
  bool added;
  uint64_t key = (uintptr_t)value;
  if (home != s->block || pestle_is_linear(s->x, value) || is_source(value)) {
    return NULL;
  }
  if (!pestle_map_put(&s->seen, &key, sizeof(key), &added)) return PESTLE_OOM();
  return !added || pestle_vec_push(s->out, value) ? NULL : PESTLE_OOM();
}

static pestle_status_t look_at_operands(finder_t* s,
                                        const pestle_node_t* node) {
  for (uint32_t i = 0; i < node->operand_count; ++i)
    PESTLE_TRY(look_at(s, pestle_node_operand(node, i)));
  return NULL;
}

static pestle_status_t look_at_node(finder_t* s, const pestle_node_t* node) {
  PESTLE_TRY(look_at_operands(s, node));
  for (uint32_t r = 0; r < node->region_count; ++r) {
    const pestle_node_t* n = NULL;
    while ((n = pestle_region_next(node->regions[r], n)))
      PESTLE_TRY(look_at_operands(s, n));
  }
  return NULL;
}

static pestle_status_t find(finder_t* s, pv_t* const* outputs,
                            size_t output_count) {
  for (size_t i = 0; i < s->x->nodes.size; ++i)
    PESTLE_TRY(look_at_node(s, s->x->nodes.data[i]));
  for (size_t i = 0; i < output_count; ++i) {
    if (outputs[i]) PESTLE_TRY(look_at(s, outputs[i]));
  }
  return NULL;
}

pestle_status_t pestle_region_residuals(const pestle_transposer_t* x,
                                        const pestle_block_t* block,
                                        pv_t* const* outputs,
                                        size_t output_count,
                                        pestle_values_t* out_residuals) {
  finder_t s = {.x = x, .block = block, .out = out_residuals};
  pestle_map_init(x->allocator, &s.seen);
  pestle_status_t status = find(&s, outputs, output_count);
  pestle_map_deinit(&s.seen);
  return status;
}

// --- Copies ---

pestle_status_t pestle_region_map(pestle_copier_t* copier, pv_t* value,
                                  pv_t** out_value) {
  pestle_node_t* copy;
  *out_value = pestle_copier_get(copier, value);
  if (*out_value != value || !is_source(value)) return NULL;
  PESTLE_TRY(pestle_copier_node(copier, value->node, &copy));
  *out_value = pestle_copier_get(copier, value);
  return NULL;
}

static pestle_status_t map_operands(pestle_copier_t* copier,
                                    const pestle_node_t* node) {
  pv_t* value;
  for (uint32_t i = 0; i < node->operand_count; ++i)
    PESTLE_TRY(pestle_region_map(copier, pestle_node_operand(node, i), &value));
  return NULL;
}

pestle_status_t pestle_region_copy_linear(const pestle_transposer_t* x,
                                          pestle_copier_t* copier) {
  pestle_node_t* copy;
  for (size_t i = 0; i < x->nodes.size; ++i) {
    const pestle_node_t* node = x->nodes.data[i];
    PESTLE_TRY(map_operands(copier, node));
    for (uint32_t r = 0; r < node->region_count; ++r) {
      const pestle_node_t* n = NULL;
      while ((n = pestle_region_next(node->regions[r], n))) {
        for (uint32_t k = 0; k < n->operand_count; ++k) {
          pv_t *from = pestle_node_operand(n, k), *value;
          const pestle_block_t* home =
              from->node ? from->node->block : from->block;
          if (home != node->block) continue;
          PESTLE_TRY(pestle_region_map(copier, from, &value));
        }
      }
    }
    PESTLE_TRY(pestle_copier_node(copier, node, &copy));
  }
  return NULL;
}

static bool is_linear_node(const pestle_transposer_t* x,
                           const pestle_node_t* node) {
  for (uint32_t r = 0; r < node->result_count; ++r) {
    if (pestle_is_linear(x, &node->results[r])) return true;
  }
  return false;
}

pestle_status_t pestle_region_copy_primal(const pestle_transposer_t* x,
                                          const pestle_block_t* block,
                                          pestle_copier_t* copier) {
  pestle_node_t* copy;
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    if (n->op == PESTLE_OP_RETURN || is_linear_node(x, n)) continue;
    PESTLE_TRY(pestle_copier_node(copier, n, &copy));
  }
  return NULL;
}

// --- Ends ---

pestle_status_t pestle_region_return(pestle_module_t* module,
                                     pestle_block_t* block, pv_t* const* values,
                                     size_t count) {
  pestle_node_t *last = block->last, *made;
  bool has_end = last && last->op == PESTLE_OP_RETURN;
  pestle_builder_t b = {.module = module, .block = block};
  if (has_end) b = pestle_builder_before(last);
  pestle_node_spec_t spec = {
      .op = PESTLE_OP_RETURN, .operands = values, .operand_count = count};
  PESTLE_TRY(pestle_node_create(&b, &spec, &made));
  if (has_end) pestle_node_erase(last);
  return NULL;
}

static bool is_inside(const pestle_node_t* node, const pv_t* value) {
  const pestle_block_t* block = value->node ? value->node->block : value->block;
  while (block) {
    const pestle_node_t* owner = block->region->owner;
    if (owner == node) return true;
    block = owner ? owner->block : NULL;
  }
  return false;
}

static pestle_status_t capture(const pestle_node_t* node, pv_t* value,
                               const pestle_map_t* map, pestle_map_t* seen,
                               pestle_values_t* out) {
  bool added;
  uint64_t key = (uintptr_t)value;
  if ((map && !pestle_map_find_u64(map, key)) || is_inside(node, value)) {
    return NULL;
  }
  if (!pestle_map_put(seen, &key, sizeof(key), &added)) return PESTLE_OOM();
  return !added || pestle_vec_push(out, value) ? NULL : PESTLE_OOM();
}

pestle_status_t pestle_region_captures(const pestle_node_t* node,
                                       const pestle_map_t* map,
                                       pestle_values_t* out_values) {
  pestle_map_t seen;
  pestle_status_t status = NULL;
  pestle_map_init(out_values->allocator, &seen);
  for (uint32_t r = 0; r < node->region_count; ++r) {
    const pestle_node_t* n = NULL;
    while (!status && (n = pestle_region_next(node->regions[r], n))) {
      for (uint32_t i = 0; i < n->operand_count && !status; ++i)
        status =
            capture(node, pestle_node_operand(n, i), map, &seen, out_values);
    }
  }
  pestle_map_deinit(&seen);
  return status;
}

// SPDX-License-Identifier: Apache-2.0
// Two scatters that write updates of one shape at the same places of two inputs become one
// that writes both, a kernel in the place of two: the keys and values of a token in their
// caches.
//
//   %2 = scatter(%0, %i, %u) { return update };  %3 = scatter(%1, %i, %v) { return update }
//   ->
//   %2:2 = scatter(%0, %1, %i, %u, %v) { return updates }
//
// It stands where the second stood; nothing may read the first before that. Targets whose
// lanes run side by side keep them apart: there a scatter chooses its lanes by its input.
#include "ir/equal.h"
#include "passes/util.h"

enum { INPUT, INDICES, UPDATES, OPERANDS, WINDOW = 64 };

// A scatter of one input that puts the update there.
static bool is_write(const pestle_node_t* node) {
  if (node->op != PESTLE_OP_SCATTER || node->operand_count != OPERANDS)
    return false;
  const pestle_block_t* body = pestle_node_body(node, 0);
  return body->first == body->last && body->argument_count == 2 &&
         pestle_node_operand(body->last, 0) == body->arguments[1];
}

static bool is_alike(const pestle_node_t* a, const pestle_node_t* b) {
  if (a->attr_count != b->attr_count ||
      pestle_node_operand(a, INDICES) != pestle_node_operand(b, INDICES)) {
    return false;
  }
  for (uint32_t i = 0; i < a->attr_count; ++i) {
    if (!pestle_attr_equal(&a->attrs[i], &b->attrs[i])) return false;
  }
  for (int i = 0; i < OPERANDS; ++i) {
    const pestle_type_t *x = pestle_node_operand(a, (size_t)i)->type,
                        *y = pestle_node_operand(b, (size_t)i)->type;
    if (x->dtype != y->dtype || !pestle_pass_same_dims(x, y)) return false;
  }
  return pestle_node_operand(a, INPUT) != pestle_node_operand(b, INPUT);
}

// Nodes of the block have their places in |scratch|.
static bool is_read_behind(const pestle_node_t* first,
                           const pestle_node_t* second) {
  for (const pestle_use_t* u = first->results[0].uses; u; u = u->next) {
    if (u->user->block != second->block ||
        u->user->scratch <= second->scratch) {
      return false;
    }
  }
  return true;
}

static pestle_node_t* find_partner(pestle_node_t* first) {
  pestle_node_t* node = first->next;
  for (int i = 0; i < WINDOW && node; ++i, node = node->next) {
    if (is_write(node) && is_alike(first, node))
      return is_read_behind(first, node) ? node : NULL;
  }
  return NULL;
}

static pestle_status_t make_region(pestle_formula_t* f, pestle_dtype_t dtype,
                                   pestle_region_t** out_region) {
  const pestle_type_t one = pestle_type_make(dtype, 0, NULL);
  pestle_builder_t inside = {.module = f->builder.module,
                             .loc = f->builder.loc};
  pestle_value_t* arguments[4];
  pestle_region_t* region;
  PESTLE_TRY(
      pestle_region_create(inside.module, NULL, 0, &region, &inside.block));
  pestle_status_t status = NULL;
  for (int i = 0; i < 4 && !status; ++i)
    status = pestle_block_add_argument(inside.module, inside.block, &one,
                                       &arguments[i]);
  if (!status) status = pestle_op_return(&inside, &arguments[2], 2, NULL);
  if (status) {
    pestle_region_discard(region);
    return status;
  }
  *out_region = region;
  return NULL;
}

static pestle_status_t join(pestle_node_t* a, pestle_node_t* b) {
  pestle_formula_t f = pestle_formula_before(b);
  pestle_region_t* region;
  PESTLE_TRY(
      make_region(&f, pestle_node_operand(a, INPUT)->type->dtype, &region));
  pestle_value_t* operands[] = {
      pestle_node_operand(a, INPUT), pestle_node_operand(b, INPUT),
      pestle_node_operand(a, INDICES), pestle_node_operand(a, UPDATES),
      pestle_node_operand(b, UPDATES)};
  pestle_node_t* joined =
      pestle_f_node(&f, &(pestle_node_spec_t){.op = PESTLE_OP_SCATTER,
                                              .operands = operands,
                                              .operand_count = 5,
                                              .attrs = a->attrs,
                                              .attr_count = a->attr_count,
                                              .regions = &region,
                                              .region_count = 1});
  PESTLE_TRY(f.status);
  joined->scratch = b->scratch;
  pestle_value_replace_all_uses(&a->results[0], &joined->results[0]);
  pestle_value_replace_all_uses(&b->results[0], &joined->results[1]);
  pestle_node_set_heir(a, joined);
  pestle_node_set_heir(b, joined);
  pestle_node_erase(a);
  pestle_node_erase(b);
  return NULL;
}

static pestle_status_t visit(void* user, pestle_module_t* module,
                             pestle_block_t* block) {
  bool* changed = user;
  uint64_t place = 0;
  (void)module;
  for (pestle_node_t* n = block->first; n; n = n->next)
    n->scratch = ++place;
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    pestle_node_t* partner = is_write(n) ? find_partner(n) : NULL;
    if (!partner) continue;
    if (next == partner) next = partner->next;
    PESTLE_TRY(join(n, partner));
    *changed = true;
  }
  return NULL;
}

pestle_status_t pestle_pass_join_writes(pestle_pass_context_t* ctx,
                                        pestle_module_t* module,
                                        bool* out_changed) {
  if (ctx->caps->flags & PESTLE_TARGET_LANES) return NULL;
  return pestle_pass_each_block(module, visit, out_changed);
}

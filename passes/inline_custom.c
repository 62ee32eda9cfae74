// SPDX-License-Identifier: Apache-2.0
// Replaces every op by name (docs/adr/025) that has a body by it, in which there may be
// others. One without a body stays: only its name says what it does.
//
//   %1 = custom "user.twice"(%x) { ^bb0(%a): %0 = add %a, %a; return %0 }
//                                          ->   %1 = add %x, %x
#include "passes/util.h"

// What the parser wrote has no place of its own.
static void place_copies(pestle_node_t* node, const pestle_node_t* before) {
  const pestle_block_t* block = node->block;
  pestle_node_t* n = before ? before->next : block->first;
  for (; n != node; n = n->next) {
    if (!n->loc.file && !n->loc.name) n->loc = node->loc;
  }
}

static pestle_status_t copy_body(pestle_copier_t* copier, pestle_node_t* node) {
  const pestle_block_t* body = pestle_node_body(node, 0);
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    PESTLE_TRY(pestle_copier_set(copier, body->arguments[i],
                                 pestle_node_operand(node, i)));
  }
  const pestle_node_t* before = node->prev;
  PESTLE_TRY(pestle_copier_block(copier, body));
  place_copies(node, before);
  for (uint32_t i = 0; i < node->result_count; ++i) {
    pestle_value_t* value =
        pestle_copier_get(copier, pestle_node_operand(body->last, i));
    const char* name = node->results[i].name;
    bool made = pestle_node_operand(body->last, i)->node;  // and no operand
    if (made && name && !value->name) value->name = name;
    pestle_value_replace_all_uses(pestle_node_result(node, i), value);
  }
  pestle_node_erase(node);
  return NULL;
}

static pestle_status_t expand(pestle_node_t* node) {
  pestle_copier_t copier;
  pestle_builder_t before = pestle_builder_before(node);
  pestle_copier_init(pestle_context_allocator(before.module->context), before,
                     &copier);
  pestle_status_t status = copy_body(&copier, node);
  pestle_copier_deinit(&copier);
  return status;
}

static pestle_status_t expand_block(pestle_block_t* block, bool* changed) {
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    if (n->op == PESTLE_OP_CUSTOM && n->region_count) {
      const pestle_node_t* before = n->prev;
      PESTLE_TRY(expand(n));
      *changed = true;
      next = before ? before->next : block->first;  // the body may have more
      continue;
    }
    for (uint32_t r = 0; r < n->region_count; ++r)
      PESTLE_TRY(expand_block(pestle_node_body(n, r), changed));
  }
  return NULL;
}

pestle_status_t pestle_pass_inline_custom(pestle_pass_context_t* ctx,
                                          pestle_module_t* module,
                                          bool* out_changed) {
  (void)ctx;
  for (pestle_function_t* f = module->first; f; f = f->next)
    PESTLE_TRY(expand_block(f->body->block, out_changed));
  return NULL;
}

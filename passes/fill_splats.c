// SPDX-License-Identifier: Apache-2.0
// A long tensor of one number that is stored as such, where a loop begins or as a
// result, is filled by a kernel: as a constant it would lie in the plan, element by
// element, and be copied from there.
//
//   %0 = constant dense<0.0> : tensor<10000x64xf32>
//   %1 = while(%s = %0) ...
//   ->   %2 = broadcast_in_dim dense<0.0> : tensor<10000x64xf32>
//        %1 = while(%s = %2) ...
#include <string.h>

#include "passes/util.h"

// Less is copied, which costs no code.
enum { LEAST_BYTES = 16 * 1024 };

// Whether |node| wants operand |index| as memory that is its own.
static bool takes_memory(const pestle_node_t* node, uint32_t index) {
  if (node->op == PESTLE_OP_WHILE || node->op == PESTLE_OP_RETURN) return true;
  // It is its operand, of which little may have to be filled.
  if (node->op == PESTLE_OP_EXTENT) return index == 0;
  return (pestle_pass_info(node)->flags & PESTLE_OP_FLAG_UPDATES) &&
         index < node->result_count;
}

static bool is_long_splat(const pestle_value_t* value) {
  const pestle_elements_t* e = pestle_value_constant(value);
  return e && e->splat && value->type->rank > 0 &&
         pestle_type_bytes(value->type) >= LEAST_BYTES;
}

static pestle_status_t fill(pestle_node_t* user, uint32_t index) {
  pestle_value_t* value = pestle_node_operand(user, index);
  const pestle_elements_t* e = pestle_value_constant(value);
  pestle_formula_t f = pestle_formula_before(user);
  pestle_elements_t one = {pestle_type_make(value->type->dtype, 0, NULL),
                           e->data, e->size, true};
  pestle_value_t* filled =
      pestle_f_broadcast_to(&f, pestle_f_elements(&f, &one), value->type, NULL);
  PESTLE_TRY(f.status);
  pestle_node_set_operand(user, index, filled);
  return NULL;
}

static pestle_status_t fill_block(void* user, pestle_module_t* module,
                                  pestle_block_t* block) {
  bool* changed = user;
  (void)module;
  for (pestle_node_t* n = block->first; n; n = n->next) {
    for (uint32_t i = 0; i < n->operand_count; ++i) {
      if (!takes_memory(n, i) || !is_long_splat(pestle_node_operand(n, i)))
        continue;
      PESTLE_TRY(fill(n, i));
      *changed = true;
    }
  }
  return NULL;
}

pestle_status_t pestle_pass_fill_splats(pestle_pass_context_t* ctx,
                                        pestle_module_t* module,
                                        bool* out_changed) {
  PESTLE_TRY(pestle_pass_each_block(module, fill_block, out_changed));
  return *out_changed ? pestle_pass_dce(ctx, module, out_changed) : NULL;
}

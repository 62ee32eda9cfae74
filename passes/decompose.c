// SPDX-License-Identifier: Apache-2.0
// Composites become the core ops that they stand for: decompose all of them, the
// inverse of recognise; expand_composites those of several kernels. Both make whiles of
// scans, and the first cuts parts of constants out of them.
//
//   %0 = pestle.silu %x    ->   %0 = logistic %x
//                               %1 = multiply %x, %0
#include "ir/scan.h"
#include "passes/util.h"

typedef struct decompose_t {
  const pestle_pass_context_t*
      ctx;  // what the target has a kernel for stays; NULL: nothing
  bool* changed;
  uint16_t flags;  // that an op must have
} decompose_t;

static pestle_value_t* slice_at(pestle_formula_t* f, pestle_value_t* from,
                                pestle_value_t* at) {
  pestle_value_t* operands[PESTLE_MAX_RANK + 1] = {from, at};
  if (!from || !at) return NULL;
  pestle_type_t type = *from->type;
  type.dims[0] = 1;
  for (int32_t d = 1; d < type.rank; ++d)
    operands[d + 1] = pestle_f_scalar(f, at->type->dtype, 0);
  pestle_attr_t sizes = PESTLE_SET_I64S(slice_sizes, type.dims, type.rank);
  pestle_value_t* part = pestle_f_make(f, PESTLE_OP_DYNAMIC_SLICE, operands,
                                       (size_t)type.rank + 1, &sizes, 1, NULL);
  return pestle_f_reshape(f, part, type.rank - 1, type.dims + 1);
}

// A part of a constant is cut out of all parts: what fold_parts.c has folded.
static pestle_status_t cut_part(pestle_node_t* node) {
  pestle_formula_t f = pestle_formula_before(node);
  pestle_i64s_t parts = PESTLE_NODE_I64S(node, parts);
  int64_t count = (int64_t)parts.count;
  size_t size = parts.count * sizeof(int32_t);
  int32_t* table = pestle_f_memory(&f, size);
  if (!table) return f.status ? f.status : PESTLE_OOM();
  for (int64_t i = 0; i < count; ++i)
    table[i] = (int32_t)parts.data[i];
  pestle_elements_t e = {.type = pestle_type_make(PESTLE_I32, 1, &count),
                         .data = table,
                         .size = size};
  pestle_value_t* numbers = pestle_f_elements(&f, &e);
  pestle_node_t* process =
      pestle_f_node(&f, &(pestle_node_spec_t){.op = PESTLE_OP_PARTITION_ID});
  pestle_value_t* at =
      slice_at(&f, numbers, process ? &process->results[0] : NULL);
  pestle_value_t* all = pestle_f_elements(&f, PESTLE_NODE_ELEMENTS(node));
  pestle_value_t* part = slice_at(&f, all, at);
  PESTLE_TRY(f.status);
  pestle_pass_replace(node, &part);
  return NULL;
}

static pestle_status_t decompose_block(void* user, pestle_module_t* module,
                                       pestle_block_t* block) {
  decompose_t* d = user;
  (void)module;
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    const pestle_op_info_t* info = pestle_pass_info(n);
    if (n->op == PESTLE_OP_SCAN) {
      PESTLE_TRY(pestle_scan_expand(n));
      *d->changed = true;
      continue;
    }
    if (n->op == PESTLE_OP_CONSTANT_PART && !d->flags) {
      PESTLE_TRY(cut_part(n));
      *d->changed = true;
      continue;
    }
    if (info->fuse != PESTLE_FUSE_COMPOSITE) continue;
    if ((info->flags & d->flags) != d->flags) continue;
    if (d->ctx && pestle_pass_is_whole(d->ctx, n)) continue;
    pestle_value_t* out[PESTLE_COMPOSITE_MAX_RESULTS];
    pestle_node_t* before = n->prev;
    PESTLE_TRY(pestle_decompose(n, out));
    // What it stands for may hold scans and other composites.
    pestle_node_t* first = before ? before->next : block->first;
    next = first == n ? n->next : first;
    pestle_pass_replace(n, out);
    *d->changed = true;
  }
  return NULL;
}

pestle_status_t pestle_pass_decompose(pestle_pass_context_t* ctx,
                                      pestle_module_t* module,
                                      bool* out_changed) {
  decompose_t d = {.changed = out_changed};
  (void)ctx;
  return pestle_pass_each_block(module, decompose_block, &d);
}

pestle_status_t pestle_pass_expand_composites(pestle_pass_context_t* ctx,
                                              pestle_module_t* module,
                                              bool* out_changed) {
  decompose_t d = {
      .ctx = ctx, .changed = out_changed, .flags = PESTLE_OP_FLAG_SPLITS};
  return pestle_pass_each_block(module, decompose_block, &d);
}

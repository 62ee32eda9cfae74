// SPDX-License-Identifier: Apache-2.0
// A loop that counts becomes one kernel where its turn is few scalars, or treats each element
// by itself, or, on targets with lanes, is products of rows with matrices that fit a group:
// its state stays in registers, and no turn is a list of launches and jumps.
//
//   %0:2 = while (%i = 0, %c = %init) ..     ->  %0:2 = pestle.fusion(%init, ..) ({
//                                                  %1:2 = pestle.scan (%init; ..) .. })
#include <stdio.h>

#include "ir/scan_rows.h"
#include "passes/util.h"

// A turn of more is better spread over vectors and cores; a loop of more in all should stop
// where its run is cancelled, which a kernel does not.
#define MOST_OPS 1024
#define MOST_STEPS (INT64_C(1) << 34)
#define MOST_ARGUMENTS 60  // of a kernel

// Of the ops that ir/scan_scalars.c knows.
static bool may_be_inside(const pestle_node_t* n, bool rows) {
  if (n->result_count != 1 || pestle_node_has_effect(n)) return false;
  bool small =
      pestle_type_count(n->results[0].type) <= PESTLE_SCAN_MOST_SCALARS;
  if (pestle_op_is_scalar((pestle_op_t)n->op)) return true;
  switch ((int)n->op) {
    case PESTLE_OP_CONVERT:
    case PESTLE_OP_BITCAST_CONVERT:
    case PESTLE_OP_CONSTANT:
    case PESTLE_OP_RESHAPE:
    case PESTLE_OP_BROADCAST_IN_DIM:
    case PESTLE_OP_DYNAMIC_SLICE:
    case PESTLE_OP_DYNAMIC_UPDATE_SLICE:
      return true;
    case PESTLE_OP_SLICE:
    case PESTLE_OP_DOT_GENERAL:
      return small || rows;
    case PESTLE_OP_IOTA:
    case PESTLE_OP_TRANSPOSE:
    case PESTLE_OP_REVERSE:
    case PESTLE_OP_CONCATENATE:
    case PESTLE_OP_REDUCE:
      return small;
    default:
      return false;
  }
}

// Says of most loops that they are none, before anything is built.
static bool may_be_whole(const pestle_node_t* loop, bool rows) {
  const pestle_block_t* body = pestle_node_body(loop, 1);
  size_t count = 0;
  for (const pestle_node_t* n = body->first; n != body->last; n = n->next) {
    if (++count > MOST_OPS || !may_be_inside(n, rows)) return false;
  }
  return true;
}

static bool is_whole(const pestle_pass_context_t* ctx,
                     const pestle_node_t* node) {
  pestle_scan_t s = pestle_scan_read(node);
  int64_t elements, ops = pestle_scan_wide_ops(&s, &elements);
  // Where lanes run side by side a group of one would leave them idle.
  if (ops >= 0 && (ctx->caps->flags & PESTLE_TARGET_LANES)) return false;
  if (ops < 0) {
    ops = pestle_scan_scalar_ops(&s);
    elements = 1;
  }
  return ops >= 0 && ops <= MOST_OPS &&
         s.length <= MOST_STEPS / (ops + 1) / elements &&
         node->operand_count + node->result_count <= MOST_ARGUMENTS;
}

// Groups keep their matrices for all turns, and sums are made in parts.
static bool has_rows(const pestle_pass_context_t* ctx) {
  return (ctx->caps->flags & PESTLE_TARGET_LANES) &&
         ctx->options->numerics != PESTLE_NUMERICS_STRICT;
}

// Whether |node| is by rows of which a group has all.
static bool is_by_rows(const pestle_pass_context_t* ctx,
                       const pestle_node_t* node, pestle_scan_rows_fit_t* fit) {
  pestle_scan_t s = pestle_scan_read(node);
  pestle_scan_rows_t rows;
  pestle_scan_rows_room_t room = pestle_scan_rows_room(ctx->caps);
  return pestle_scan_rows(&s, &rows) &&
         pestle_scan_rows_fit(&rows, pestle_scan_rows_state(&s, &rows), &room,
                              fit) &&
         node->operand_count + node->result_count <= MOST_ARGUMENTS;
}

static void remark_rows(const pestle_pass_context_t* ctx,
                        const pestle_node_t* scan,
                        const pestle_scan_rows_fit_t* fit) {
  pestle_scan_t s = pestle_scan_read(scan);
  char text[320];
  if (!ctx->remarks) return;
  snprintf(text, sizeof(text),
           "all %lld turns are one kernel, which keeps the state and the "
           "matrices in a group (%lld lanes on %lld execution units, %lld to "
           "an element, %lld rows a group, %lld bytes shared): a list of "
           "launches a turn waits for memory and for the queue in each of them",
           (long long)s.length, (long long)(fit->lanes * fit->units),
           (long long)fit->units, (long long)fit->split,
           (long long)fit->group_rows, (long long)fit->shared_bytes);
  pestle_remarks_add_on(ctx->remarks, "whole_loops", scan, "by rows", text);
}

typedef struct loops_t {
  pestle_pass_context_t* ctx;
  bool* changed;
  bool tried;  // what was made to look at it is dead
} loops_t;

// Whether a copy of |loop| becomes a scan that is whole: a loop that does not is left as it
// is, since what a scan expands to counts once more a turn.
static pestle_status_t try_copy(loops_t* l, pestle_node_t* loop,
                                bool* out_whole, bool* out_has_inputs) {
  pestle_scan_rows_fit_t fit;
  pestle_copier_t copier;
  pestle_node_t *copy, *scan = NULL;
  *out_whole = false;
  pestle_copier_init(pestle_context_allocator(l->ctx->context),
                     pestle_builder_before(loop), &copier);
  copier.trial = true;
  pestle_status_t status = pestle_copier_node(&copier, loop, &copy);
  pestle_copier_deinit(&copier);
  PESTLE_TRY(status);
  l->tried = true;
  PESTLE_TRY(pestle_scan_recognise(copy, &scan));
  *out_whole = scan && is_whole(l->ctx, scan);
  *out_has_inputs = false;
  if (scan && !*out_whole && has_rows(l->ctx)) {
    *out_has_inputs = pestle_pass_has_scan_inputs(scan);
    PESTLE_TRY(pestle_pass_scan_inputs(l->ctx, scan, &scan));
    *out_whole = is_by_rows(l->ctx, scan, &fit);
  }
  pestle_node_erase(scan ? scan : copy);
  return NULL;
}

static pestle_status_t replace(loops_t* l, pestle_node_t* scan) {
  pestle_scan_rows_fit_t fit;
  if (is_whole(l->ctx, scan)) return pestle_pass_wrap(l->ctx, scan, "scan");
  PESTLE_TRY(pestle_pass_scan_inputs(l->ctx, scan, &scan));
  if (!is_by_rows(l->ctx, scan, &fit)) return pestle_scan_expand(scan);
  remark_rows(l->ctx, scan, &fit);
  return pestle_pass_wrap(l->ctx, scan, "scan");
}

static pestle_status_t visit(void* user, pestle_module_t* module,
                             pestle_block_t* block) {
  loops_t* l = user;
  (void)module;
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    if (n->op != PESTLE_OP_WHILE || !may_be_whole(n, has_rows(l->ctx)))
      continue;
    pestle_node_t* scan;
    bool whole, has_inputs;
    PESTLE_TRY(try_copy(l, n, &whole, &has_inputs));
    if (!whole && !has_inputs) continue;
    PESTLE_TRY(pestle_scan_recognise(n, &scan));
    if (!scan) continue;
    *l->changed = true;
    PESTLE_TRY(replace(l, scan));
  }
  return NULL;
}

pestle_status_t pestle_pass_whole_loops(pestle_pass_context_t* ctx,
                                        pestle_module_t* module,
                                        bool* out_changed) {
  loops_t l = {.ctx = ctx, .changed = out_changed};
  PESTLE_TRY(pestle_pass_each_block(module, visit, &l));
  bool swept;
  return l.tried ? pestle_pass_dce(ctx, module, &swept) : NULL;
}

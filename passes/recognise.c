// SPDX-License-Identifier: Apache-2.0
// Core ops that spell a composite become that composite, however they were
// written: softmax, log_softmax, layer_norm, rms_norm, gelu in both forms,
// silu, hard_sigmoid, attention, and 1 / (1 + exp(-x)) as logistic.
//
//   %0 = logistic %x
//   %1 = multiply %x, %0    ->   %1 = pestle.silu %x
//
// The module is canonical before: constants stand right, broadcasts are behind
// the work on single rows, powers of two are products.
#include "passes/recognise.h"

typedef struct match_t {
  pestle_op_t op;  // that it makes
  pestle_matcher_t match;
} match_t;

static const match_t matchers[] = {
    {PESTLE_OP_LOGISTIC, pestle_match_logistic},
    {PESTLE_OP_SOFTMAX, pestle_match_softmax},
    {PESTLE_OP_LOG_SOFTMAX, pestle_match_log_softmax},
    {PESTLE_OP_LAYER_NORM, pestle_match_norm},  // or RMS_NORM
    {PESTLE_OP_GELU, pestle_match_gelu},
    {PESTLE_OP_SILU, pestle_match_silu},
    {PESTLE_OP_HARD_SIGMOID, pestle_match_hard_sigmoid},
    {PESTLE_OP_ATTENTION, pestle_match_attention}};

typedef struct recognise_t {
  const pestle_target_caps_t* caps;
  pestle_remarks_t* remarks;
  bool strict;
  bool changed;
} recognise_t;

// What apart.def says was measured; NULL: nothing, the composite is taken.
static const char* stays_apart(const pestle_target_caps_t* caps, pestle_op_t op,
                               pestle_dtype_t dtype) {
#define PESTLE_APART(OP, DTYPE, WHERE, measured)                    \
  if (op == PESTLE_OP_##OP && dtype == PESTLE_##DTYPE && (WHERE)) { \
    return measured;                                                \
  }
#include "passes/apart.def"
  return NULL;
}

// --- What is read from outside ---

enum { MOST_INSIDE = 48 };

typedef struct inside_t {
  const pestle_node_t* nodes[MOST_INSIDE];
  size_t count;
  bool is_full;
} inside_t;

static bool is_inside(const inside_t* in, const pestle_node_t* node) {
  for (size_t i = 0; i < in->count; ++i) {
    if (in->nodes[i] == node) return true;
  }
  return false;
}

// Adds what |node| is made of, down to what |composite| reads.
static void find_inside(inside_t* in, const pestle_node_t* node,
                        const pestle_node_t* composite) {
  if (in->count == MOST_INSIDE) {
    in->is_full = true;
    return;
  }
  in->nodes[in->count++] = node;
  for (uint32_t i = 0; i < node->operand_count && !in->is_full; ++i) {
    const pestle_value_t* value = pestle_node_operand(node, i);
    bool is_end = !value->node || is_inside(in, value->node);
    for (uint32_t k = 0; k < composite->operand_count; ++k)
      is_end = is_end || pestle_node_operand(composite, k) == value;
    if (!is_end) find_inside(in, value->node, composite);
  }
}

// Reductions and functions cost enough that nobody wants them twice.
static bool is_costly(const pestle_node_t* node) {
  return node->op == PESTLE_OP_REDUCE ||
         (pestle_op_is_scalar((pestle_op_t)node->op) &&
          (pestle_pass_info(node)->flags & PESTLE_OP_FLAG_TRANS));
}

// The composite that |value| is a view of.
static pestle_node_t* composite_of(const pestle_value_t* value) {
  pestle_node_t* node = value->node;
  while (node && pestle_pass_info(node)->fuse == PESTLE_FUSE_VIEW)
    node = pestle_node_operand(node, 0)->node;
  return node;
}

// Whether something else reads what |node| was made of on the way from |composite|'s
// operands, such as a derivative that reads a norm's variance: as a composite it would
// be computed twice. Attention keeps no scores, which is worth it.
static bool is_read_inside(const pestle_node_t* node,
                           const pestle_node_t* composite) {
  inside_t in = {.count = 0};
  if (!composite || composite->op == PESTLE_OP_ATTENTION) return false;
  find_inside(&in, node, composite);
  for (size_t i = 1; i < in.count && !in.is_full; ++i) {
    if (!is_costly(in.nodes[i])) continue;
    for (const pestle_use_t* u = in.nodes[i]->results[0].uses; u; u = u->next) {
      if (!is_inside(&in, u->user)) return true;
    }
  }
  return false;
}

static pestle_status_t recognise_node(recognise_t* r, pestle_node_t* node) {
  pestle_formula_t f = pestle_formula_before(node);
  for (size_t i = 0; i < sizeof(matchers) / sizeof(matchers[0]); ++i) {
    pestle_dtype_t dtype = node->results[0].type->dtype;
    if (stays_apart(r->caps, matchers[i].op, dtype)) continue;
    pestle_value_t* value = matchers[i].match(&f, node, r->strict);
    PESTLE_TRY(f.status);
    if (!value) continue;
    if (is_read_inside(node, composite_of(value))) {
      if (value->node) pestle_node_erase(value->node);
      continue;
    }
    pestle_pass_replace(node, &value);
    r->changed = true;
    return NULL;
  }
  return NULL;
}

static pestle_status_t recognise_block(void* user, pestle_module_t* module,
                                       pestle_block_t* block) {
  (void)module;
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    if (n->result_count == 1) PESTLE_TRY(recognise_node(user, n));
  }
  return NULL;
}

// What looks like attention and is none stays two products and a softmax: why.
static pestle_status_t remark_block(void* user, pestle_module_t* module,
                                    pestle_block_t* block) {
  const recognise_t* r = user;
  (void)module;
  for (pestle_node_t* n = block->first; n; n = n->next) {
    const char* why;
    if (!pestle_is_like_attention(n, r->strict, &why)) continue;
    if (!why) {
      why =
          stays_apart(r->caps, PESTLE_OP_ATTENTION, n->results[0].type->dtype);
    }
    if (why) {
      pestle_remarks_add_on(r->remarks, "recognise", n, "no-attention", why);
    }
  }
  return NULL;
}

pestle_status_t pestle_pass_recognise(pestle_pass_context_t* ctx,
                                      pestle_module_t* module,
                                      bool* out_changed) {
  recognise_t r = {.caps = ctx->caps,
                   .remarks = ctx->remarks,
                   .strict = ctx->options->numerics == PESTLE_NUMERICS_STRICT};
  *out_changed = false;
  // What a match leaves without users still uses what a larger one wants to itself:
  // attention is one once the ops of its softmax are gone.
  do {
    bool dead;
    r.changed = false;
    PESTLE_TRY(pestle_pass_each_block(module, recognise_block, &r));
    if (r.changed) PESTLE_TRY(pestle_pass_dce(ctx, module, &dead));
    *out_changed = *out_changed || r.changed;
  } while (r.changed);
  if (!r.remarks) return NULL;
  return pestle_pass_each_block(module, remark_block, &r);
}

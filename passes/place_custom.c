// SPDX-License-Identifier: Apache-2.0
// Replaces every op by name (docs/adr/025): by its body, in which there may be others,
// or, where the context has the op (pestle/custom_op.h), by a call of an eval that
// computes it on the target. One that has neither stays, and fails later if it is
// still needed.
//
//   %1 = custom "user.twice"(%x) { ^bb0(%a): %0 = add %a, %a; return %0 }
//                                          ->   %1 = add %x, %x
//   %1 = custom "user.solve"(%x)   ->   %1 = custom_call "pestle.op.user.solve#1"(%x)
#include <string.h>

#include "ir/custom_op.h"
#include "passes/util.h"

// --- Inline ---

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

// --- Which ---

// Kernels have no complex numbers.
static bool any_complex(const pestle_type_t* types, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (pestle_type_is_complex(&types[i])) return true;
  }
  return false;
}

// |any_target|: a function of the host's serves every device, by copies.
static bool may_run(const pestle_pass_context_t* ctx,
                    const pestle_custom_use_t* use,
                    const pestle_custom_eval_t* e, bool any_target) {
  bool meant = pestle_custom_eval_is_for(e, ctx->caps);
  if (!meant && !(any_target && e->kind == PESTLE_EVAL_HOST_FUNCTION)) {
    return false;
  }
  if (pestle_eval_is_text(e) &&
      (any_complex(use->node.operand_types, use->node.operand_count) ||
       any_complex(use->node.result_types, use->node.result_count))) {
    return false;
  }
  return !e->takes || e->takes(use->op->user, &use->node, ctx->caps);
}

static const pestle_custom_eval_t* find_eval(const pestle_pass_context_t* ctx,
                                             const pestle_custom_use_t* use,
                                             bool any_target) {
  for (size_t i = 0; i < use->op->eval_count; ++i) {
    if (may_run(ctx, use, use->op->evals[i], any_target)) {
      return use->op->evals[i];
    }
  }
  return NULL;
}

// Whether the body fuses with what is around it.
static bool is_light(const pestle_node_t* node) {
  const pestle_region_t* body = node->regions[0];
  const pestle_node_t* n = NULL;
  while ((n = pestle_region_next(body, n))) {
    switch ((pestle_fuse_class_t)pestle_pass_info(n)->fuse) {
      case PESTLE_FUSE_SOURCE:
      case PESTLE_FUSE_ELEMENTWISE:
      case PESTLE_FUSE_VIEW:
      case PESTLE_FUSE_REDUCTION:
        continue;
      case PESTLE_FUSE_GATHER:
      case PESTLE_FUSE_WINDOW:
      case PESTLE_FUSE_CONTRACTION:
      case PESTLE_FUSE_COMPOSITE:
      case PESTLE_FUSE_FUSION:
      case PESTLE_FUSE_DIRECT:
      case PESTLE_FUSE_COLLECTIVE:
        return false;
      case PESTLE_FUSE_CONTROL:
        if (n->op == PESTLE_OP_RETURN || n->op == PESTLE_OP_CUSTOM) continue;
        return false;
    }
  }
  return true;
}

typedef struct choice_t {
  const pestle_custom_eval_t* eval;  // NULL: the body
  const char *code, *why;
} choice_t;

static choice_t inlined(const char* why) {
  return (choice_t){NULL, "op_inlined", why};
}

static choice_t choose(const pestle_pass_context_t* ctx,
                       const pestle_custom_use_t* use,
                       const pestle_node_t* node) {
  bool body = node->region_count;
  int32_t prefer = use->op->prefer;
  if (body && ctx->options->numerics == PESTLE_NUMERICS_STRICT) {
    return inlined("strict numerics: the body says what its bits are");
  }
  if (body && prefer == PESTLE_CUSTOM_INLINE) {
    return inlined("it is registered with prefer INLINE");
  }
  if (body && prefer == PESTLE_CUSTOM_AUTO && is_light(node)) {
    return inlined(
        "its body only computes, moves and reduces elements: fused, "
        "it needs no memory of its own");
  }
  const pestle_custom_eval_t* eval = find_eval(ctx, use, !body);
  if (!eval) return inlined("no eval takes it on this target");
  return (choice_t){eval, "op_eval",
                    prefer == PESTLE_CUSTOM_EVAL
                        ? "it is registered with prefer EVAL"
                    : body ? "its body is more than elementwise"
                           : "it has no body"};
}

static void remark(const pestle_pass_context_t* ctx, const pestle_node_t* node,
                   const choice_t* choice) {
  if (!ctx->remarks) return;
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_context_allocator(ctx->context), &text);
  pestle_strbuf_appendf(&text, "op '%s' ", PESTLE_NODE_STR(node, name));
  if (choice->eval) {
    pestle_strbuf_appendf(&text, "is done by eval '%s' for '%s'",
                          choice->eval->id, choice->eval->target);
  } else {
    pestle_strbuf_append_c(&text, "is inlined");
  }
  pestle_strbuf_appendf(&text, ": %s", choice->why);
  pestle_remarks_add_on(ctx->remarks, "place_custom", node, choice->code,
                        pestle_strbuf_cstr(&text));
  pestle_strbuf_deinit(&text);
}

// --- Eval ---

static pestle_status_t call_eval(const pestle_pass_context_t* ctx,
                                 pestle_node_t* node,
                                 const pestle_custom_use_t* use,
                                 const pestle_custom_eval_t* eval) {
  const pestle_target_caps_t* caps = ctx->caps;
  if (eval->kind == PESTLE_EVAL_HOST_FUNCTION &&
      caps->device_type != PESTLE_DEVICE_CPU) {
    pestle_context_log(ctx->context, PESTLE_LOG_WARN,
                       "op '%s' runs on the host: what it reads and makes is "
                       "copied from and to '%s'",
                       use->op->name, caps->name);
  }
  pestle_strbuf_t name;
  pestle_strbuf_init(pestle_context_allocator(ctx->context), &name);
  size_t index = 0;
  while (use->op->evals[index] != eval)
    ++index;
  if (pestle_eval_is_text(eval)) {
    pestle_strbuf_appendf(&name, PESTLE_EVAL_CALL "%s@%zu", use->op->name,
                          index);
  } else {
    pestle_strbuf_appendf(&name, PESTLE_EVAL_CALL "%s#%s", use->op->name,
                          eval->id);
  }
  pestle_attr_t attrs[] = {
      {PESTLE_ATTR_call_target_name, PESTLE_ATTR_KIND_STR,
       .as.str = pestle_strbuf_cstr(&name)},
      {PESTLE_ATTR_backend_dictionary, PESTLE_ATTR_KIND_STR,
       .as.str = PESTLE_NODE_STR(node, attributes)}};
  pestle_formula_t f = pestle_formula_before(node);
  pestle_node_t* call = pestle_f_node(
      &f, &(pestle_node_spec_t){.op = PESTLE_OP_CUSTOM_CALL,
                                .operands = use->node.operands,
                                .operand_count = use->node.operand_count,
                                .attrs = attrs,
                                .attr_count = 2,
                                .types = use->node.result_types,
                                .type_count = use->node.result_count});
  for (uint32_t i = 0; call && i < node->result_count; ++i) {
    call->results[i].name = node->results[i].name;
    pestle_value_replace_all_uses(pestle_node_result(node, i),
                                  pestle_node_result(call, i));
  }
  pestle_strbuf_deinit(&name);
  if (call) pestle_node_erase(node);
  return f.status;
}

// --- All ---

static pestle_status_t no_way(const pestle_pass_context_t* ctx,
                              const pestle_node_t* node,
                              const pestle_custom_use_t* use) {
  pestle_strbuf_t targets;
  pestle_strbuf_init(pestle_context_allocator(ctx->context), &targets);
  for (size_t i = 0; i < use->op->eval_count; ++i) {
    const pestle_custom_eval_t* e = use->op->evals[i];
    pestle_strbuf_appendf(&targets, i ? ", '%s'" : "'%s'", e->target);
    if (e->kind == PESTLE_EVAL_SOURCE) {
      pestle_strbuf_appendf(&targets, " in %s", e->source->language);
    }
  }
  pestle_status_t status = pestle_node_error(
      node, PESTLE_STATUS_UNSUPPORTED,
      "op '%s' has no body, and none of its evals takes it on '%s': they are "
      "for %s",
      use->op->name, ctx->caps->name, pestle_strbuf_cstr(&targets));
  pestle_strbuf_deinit(&targets);
  return status;
}

// |*out_done|: |node| is no more.
static pestle_status_t place(pestle_pass_context_t* ctx, pestle_node_t* node,
                             bool* out_done) {
  pestle_custom_use_t use;
  bool body = node->region_count;
  *out_done = body;
  pestle_status_t status = pestle_custom_use(ctx->scratch, node, &use);
  if (status && !body) {
    return pestle_status_annotate(status, "at op '%s'",
                                  PESTLE_NODE_STR(node, name));
  }
  if (status || !use.op) {
    // Somebody else's op of that name, as its body shows.
    if (status && ctx->remarks) {
      pestle_remarks_add_on(ctx->remarks, "place_custom", node, "op_not_meant",
                            pestle_status_message(status));
    }
    pestle_status_release(status);
    return body ? expand(node) : NULL;
  }
  choice_t choice = choose(ctx, &use, node);
  if (!choice.eval && !body) return no_way(ctx, node, &use);
  remark(ctx, node, &choice);
  *out_done = true;
  return choice.eval ? call_eval(ctx, node, &use, choice.eval) : expand(node);
}

static pestle_status_t place_block(pestle_pass_context_t* ctx,
                                   pestle_block_t* block, bool* changed) {
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    if (n->op == PESTLE_OP_CUSTOM) {
      pestle_node_t* before = n->prev;
      bool done;
      PESTLE_TRY(place(ctx, n, &done));
      if (!done) continue;
      *changed = true;
      next = before ? before->next : block->first;  // the body may have more
      continue;
    }
    for (uint32_t r = 0; r < n->region_count; ++r)
      PESTLE_TRY(place_block(ctx, pestle_node_body(n, r), changed));
  }
  return NULL;
}

pestle_status_t pestle_pass_place_custom(pestle_pass_context_t* ctx,
                                         pestle_module_t* module,
                                         bool* out_changed) {
  for (pestle_function_t* f = module->first; f; f = f->next)
    PESTLE_TRY(place_block(ctx, f->body->block, out_changed));
  return NULL;
}

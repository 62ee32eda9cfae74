// SPDX-License-Identifier: Apache-2.0
// Ops of the caller's own: by the rules that they are registered with, where these are
// there; else by their bodies, which the walks put in the ops' places.
//
//   vjp    In reverse mode the tangents of such an op are those of an op that has no
//          meaning but to be transposed, which its cotangents take away:
//            %z = user.f %x              ->  %z = user.f %x
//            %z.t = pestle.pullback.user.f %x, %z, %x.t
//            %x.ct = what user.f's vjp says of %x, %z and %z.ct
#include <string.h>

#include "base/custom_attrs.h"
#include "ir/copy.h"
#include "ir/custom_op.h"
#include "ir/infer.h"
#include "ir/scan.h"
#include "transform/checkpoint.h"
#include "transform/transform.h"
#include "transform/vmap.h"

#define PULLBACK "pestle.pullback."

// The op that |node| is a use of, or NULL; |*out_use| is the arena's.
static const pestle_custom_op_t* find_op(pestle_arena_t* arena,
                                         const pestle_node_t* node,
                                         pestle_custom_use_t* out_use) {
  if (node->op != PESTLE_OP_CUSTOM) return NULL;
  pestle_status_t status = pestle_custom_use(arena, node, out_use);
  pestle_status_release(status);  // somebody else's op, as its body says
  return status ? NULL : out_use->op;
}

static bool is_pullback(const pestle_node_t* node) {
  return node->op == PESTLE_OP_CUSTOM &&
         !strncmp(PESTLE_NODE_STR(node, name), PULLBACK, strlen(PULLBACK));
}

static bool is_of(const pestle_node_t* pullback, const char* op) {
  return !strcmp(PESTLE_NODE_STR(pullback, name) + strlen(PULLBACK), op);
}

// A pullback reads its source, so that it is made where that is, in no body of a loop.
static bool is_pulled_checkpoint(const pestle_jvp_t* j,
                                 const pestle_node_t* node) {
  return j->is_whole && node->block == j->function->body->block &&
         pestle_is_checkpoint(node);
}

// --- Forward ---

bool pestle_custom_has_jvp(pestle_jvp_t* j, const pestle_node_t* node) {
  pestle_custom_use_t use;
  if (pestle_is_pulled_batch_norm(j, node)) return true;
  if (node->op != PESTLE_OP_CUSTOM) return false;
  if (is_pullback(node)) return true;  // refused below
  if (pestle_is_stop(node) || is_pulled_checkpoint(j, node)) return true;
  pestle_arena_mark_t mark = pestle_arena_mark(&j->arena);
  const pestle_custom_op_t* op = find_op(&j->arena, node, &use);
  pestle_arena_rewind(&j->arena, mark);
  return op && (op->jvp || (j->is_reverse && op->vjp));
}

void pestle_pull_back(pestle_jvp_t* j, const pestle_node_t* node,
                      const pestle_pull_t* pull, pv_t* const* t, pv_t** out) {
  uint32_t n = node->operand_count, m = node->result_count;
  pv_t** operands = pestle_value_array(&j->f, &j->arena, 2 * n + m);
  pestle_strbuf_t name;
  if (!operands) return;
  for (uint32_t i = 0; i < n; ++i) {
    pv_t* operand = pestle_node_operand(node, i);
    operands[i] = operand;
    operands[n + m + i] = t[i] ? t[i]
                          : pestle_is_smooth(operand->type->dtype)
                              ? pestle_zeros(&j->f, operand)
                              : operand;
  }
  for (uint32_t r = 0; r < m; ++r)
    operands[n + r] = pestle_node_result(node, r);
  for (uint32_t i = 0; i < n + m && i < 32; ++i) {
    if (pull->unread >> i & 1) operands[i] = pestle_zeros(&j->f, operands[i]);
  }
  pestle_strbuf_init(j->allocator, &name);
  pestle_strbuf_appendf(&name, PULLBACK "%s", pull->op);
  pestle_attr_t attrs[] = {
      {PESTLE_ATTR_name, PESTLE_ATTR_KIND_STR,
       .as.str = pestle_strbuf_cstr(&name)},
      {PESTLE_ATTR_version, PESTLE_ATTR_KIND_I64, .as.i64 = n},
      {PESTLE_ATTR_attributes, PESTLE_ATTR_KIND_STR,
       .as.str = pull->attributes}};
  pestle_node_spec_t spec = {.op = PESTLE_OP_CUSTOM,
                             .operands = operands,
                             .operand_count = 2 * (size_t)n + m,
                             .attrs = attrs,
                             .attr_count = 3};
  if (name.failed) {
    pestle_f_fail(&j->f, PESTLE_OOM());
  } else {
    pestle_f_fail(&j->f,
                  pestle_node_result_types(j->function->module, node, &spec));
  }
  pestle_node_t* made = j->f.status ? NULL : pestle_f_node(&j->f, &spec);
  for (uint32_t r = 0; made && r < m; ++r)
    out[r] = pestle_node_result(made, r);
  pestle_strbuf_deinit(&name);
}

void pestle_pull_back_by(pestle_jvp_t* j, const pestle_node_t* node,
                         const char* op, uint32_t unread,
                         const pestle_custom_attr_value_t* values, size_t count,
                         pv_t* const* t, pv_t** out) {
  pestle_custom_attrs_t attrs = {values, count};
  pestle_strbuf_t text;
  pestle_strbuf_init(j->allocator, &text);
  pestle_custom_attrs_print(&attrs, &text);
  pestle_pull_t pull = {op, pestle_strbuf_cstr(&text), unread};
  pestle_f_fail(&j->f, pestle_strbuf_status(&text));
  if (!j->f.status) pestle_pull_back(j, node, &pull, t, out);
  pestle_strbuf_deinit(&text);
}

bool pestle_pull_attrs(pestle_transposer_t* x, const pestle_node_t* pullback,
                       pestle_custom_attrs_t* out_attrs) {
  const char* text = PESTLE_NODE_STR(pullback, attributes);
  pestle_custom_attr_value_t* values = NULL;
  size_t count = 0;
  pestle_f_fail(&x->f, pestle_custom_attrs_read(&x->arena, pestle_str(text),
                                                &values, &count));
  *out_attrs = (pestle_custom_attrs_t){values, count};
  return !x->f.status;
}

// An op by name, by the rule that |op| names.
static void pull_custom(pestle_jvp_t* j, const pestle_node_t* node,
                        const char* op, pv_t* const* t, pv_t** out) {
  pestle_pull_t pull = {op, PESTLE_NODE_STR(node, attributes), 0};
  pestle_pull_back(j, node, &pull, t, out);
}

void pestle_custom_jvp(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                       pv_t** out) {
  pestle_custom_use_t use;
  if (pestle_is_pulled_batch_norm(j, node)) {
    pestle_batch_norm_pull_back(j, node, t, out);
    return;
  }
  if (pestle_is_stop(node)) return;
  if (is_pulled_checkpoint(j, node)) {
    pull_custom(j, node, PESTLE_CHECKPOINT, t, out);
    return;
  }
  const pestle_custom_op_t* op =
      is_pullback(node) ? NULL : find_op(&j->arena, node, &use);
  if (!op) {
    pestle_jvp_refuse(j, node,
                      "the derivative of a cotangent that a vjp rule gave is "
                      "taken before the rule is");
    return;
  }
  if (j->is_reverse && op->vjp) {
    pull_custom(j, node, op->name, t, out);
    return;
  }
  pestle_f_fail(&j->f, pestle_status_annotate(
                           op->jvp(op->user, &j->f.builder, &use.node, t, out),
                           "in the jvp of op '%s'", op->name));
  for (uint32_t r = 0; r < node->result_count && !j->f.status; ++r) {
    if (!out[r] || pestle_type_equal(out[r]->type, node->results[r].type))
      continue;
    pestle_f_fail(
        &j->f,
        PESTLE_ERROR(INVALID_ARGUMENT,
                     "the jvp of op '%s' gives result %u a tangent of %s, "
                     "and the result is %s",
                     op->name, (unsigned)r, pestle_type_text(out[r]->type).text,
                     pestle_type_text(node->results[r].type).text));
  }
}

// --- Backward ---

bool pestle_custom_has_transpose(pestle_arena_t* arena,
                                 const pestle_node_t* node) {
  pestle_custom_use_t use;
  if (is_pullback(node)) return true;
  pestle_arena_mark_t mark = pestle_arena_mark(arena);
  const pestle_custom_op_t* op = find_op(arena, node, &use);
  pestle_arena_rewind(arena, mark);
  // A vjp may read operands, of which the linear ones are no values of the function:
  // it serves where there is nothing else.
  return op && (op->transpose || (op->vjp && !node->region_count));
}

// The use that |node|, a pullback, stands for.
static const pestle_custom_op_t* pulled_use(pestle_transposer_t* x,
                                            const pestle_node_t* node,
                                            pestle_custom_use_t* out_use) {
  uint32_t n = (uint32_t)PESTLE_NODE_I64(node, version);
  uint32_t m = node->result_count;
  const char* name = PESTLE_NODE_STR(node, name) + strlen(PULLBACK);
  const pestle_custom_op_t* op =
      pestle_context_find_op(node->block->region->module->context, name);
  pv_t** values = pestle_value_array(&x->f, &x->arena, n + m);
  pestle_type_t* types = PESTLE_ARENA_ARRAY(&x->arena, pestle_type_t, n + m);
  if (!op || !values || !types) {
    pestle_f_fail(&x->f, PESTLE_OOM());
    return NULL;
  }
  for (uint32_t i = 0; i < n + m; ++i) {
    values[i] = pestle_node_operand(node, i);
    types[i] = *values[i]->type;
  }
  *out_use = (pestle_custom_use_t){op,
                                   {.struct_size = sizeof(pestle_custom_node_t),
                                    .name = name,
                                    .operands = values,
                                    .operand_count = n,
                                    .operand_types = types,
                                    .results = values + n,
                                    .result_count = m,
                                    .result_types = types + n,
                                    .version = op->version}};
  pestle_f_fail(&x->f, pestle_custom_use_attrs(
                           &x->arena, op, PESTLE_NODE_STR(node, attributes),
                           &out_use->node));
  return x->f.status ? NULL : op;
}

void pestle_custom_transpose(pestle_transposer_t* x, pestle_node_t* node,
                             pv_t* const* ct) {
  pestle_custom_use_t use;
  bool pulled = is_pullback(node);
  uint32_t count = pulled ? (uint32_t)PESTLE_NODE_I64(node, version) : 0;
  if (pulled && is_of(node, PESTLE_PULLED_ATTENTION)) {
    pestle_attention_pull(x, node, count, ct[0]);
    return;
  }
  if (pulled && is_of(node, PESTLE_PULLED_NORM)) {
    pestle_norm_pull(x, node, count, ct[0]);
    return;
  }
  if (pulled && is_of(node, PESTLE_PULLED_BATCH_NORM)) {
    pestle_batch_norm_pull(x, node, count, ct);
    return;
  }
  if (pulled && is_of(node, PESTLE_CHECKPOINT)) {
    pestle_checkpoint_pull(x, node, count, ct);
    return;
  }
  const pestle_custom_op_t* op =
      pulled ? pulled_use(x, node, &use) : find_op(&x->arena, node, &use);
  if (!op) return;
  size_t n = use.node.operand_count;
  size_t first = pulled ? n + use.node.result_count : 0;
  pv_t** out = pestle_value_array(&x->f, &x->arena, n);
  bool* needed = PESTLE_ARENA_ARRAY(&x->arena, bool, n + 1);
  if (!out || !needed) {
    pestle_f_fail(&x->f, PESTLE_OOM());
    return;
  }
  for (size_t i = 0; i < n; ++i) {
    needed[i] =
        pestle_is_linear(x, pestle_node_operand(node, (uint32_t)(first + i)));
  }
  pestle_status_t status =
      !pulled && op->transpose
          ? op->transpose(op->user, &x->f.builder, &use.node, needed, ct, out)
          : op->vjp(op->user, &x->f.builder, &use.node, ct, needed, out);
  pestle_f_fail(
      &x->f, pestle_status_annotate(status, "in the vjp of op '%s'", op->name));
  for (size_t i = 0; i < n && !x->f.status; ++i) {
    if (!needed[i] || !out[i]) continue;
    if (!pestle_type_equal(out[i]->type, &use.node.operand_types[i])) {
      pestle_f_fail(&x->f,
                    PESTLE_ERROR(INVALID_ARGUMENT,
                                 "the vjp of op '%s' gives operand %zu a "
                                 "cotangent of another type than it has",
                                 op->name, i));
      return;
    }
    pestle_cotangent_add(x, node, first + i, out[i]);
  }
}

// --- Batched ---

// Whether the op itself is what it is batched: it has one number of each dynamic attribute,
// which are the last operands, for all elements.
static bool is_on_bigger_shape(const pestle_vmap_t* v,
                               const pestle_custom_op_t* op,
                               const pestle_node_t* node) {
  size_t dynamic = pestle_custom_dynamic_count(op);
  if (!op->elementwise || dynamic > node->operand_count) return false;
  for (size_t i = node->operand_count - dynamic; i < node->operand_count; ++i) {
    pv_t* value = pestle_node_operand(node, (uint32_t)i);
    if (pestle_vmap_get(v, value) != value) return false;
  }
  return true;
}

bool pestle_custom_has_vmap(pestle_vmap_t* v, const pestle_node_t* node) {
  pestle_custom_use_t use;
  if (pestle_is_kept(node)) return true;
  pestle_arena_mark_t mark = pestle_arena_mark(&v->arena);
  const pestle_custom_op_t* op = find_op(&v->arena, node, &use);
  pestle_arena_rewind(&v->arena, mark);
  // Without a body there is nothing else to batch: it is done one by one.
  return (op && (op->vmap || is_on_bigger_shape(v, op, node))) ||
         !node->region_count;
}

// The op in the body of a scan over the axis.
static pestle_status_t fill_loop(const pestle_vmap_t* v, pestle_node_t* node,
                                 const bool* is_batched,
                                 const pestle_scan_body_t* body,
                                 pv_t** out_results) {
  pestle_copier_t copier;
  pestle_node_t* made;
  pestle_copier_init(v->allocator, body->builder, &copier);
  pestle_status_t status = NULL;
  for (size_t i = 0, x = 0, c = 0; i < node->operand_count && !status; ++i) {
    pv_t* to = is_batched[i] ? body->x[x++] : body->constant[c++];
    status =
        pestle_copier_set(&copier, pestle_node_operand(node, (uint32_t)i), to);
  }
  if (!status) status = pestle_copier_node(&copier, node, &made);
  for (uint32_t r = 0; r < node->result_count && !status; ++r)
    out_results[r] = pestle_node_result(made, r);
  pestle_copier_deinit(&copier);
  return status;
}

static pestle_status_t one_by_one(pestle_vmap_t* v, pestle_node_t* node,
                                  pv_t* const* operands, const bool* is_batched,
                                  pv_t** out) {
  size_t n = node->operand_count, m = node->result_count;
  pv_t** lists = pestle_value_array(&v->f, &v->arena, 2 * n + m);
  if (!lists) return PESTLE_OOM();
  pestle_scan_spec_t spec = {
      .xs = lists, .constants = lists + n, .length = v->size};
  pv_t** results = lists + 2 * n;
  for (size_t i = 0; i < n; ++i) {
    if (is_batched[i]) lists[spec.xs_count++] = operands[i];
    if (!is_batched[i]) lists[n + spec.constant_count++] = operands[i];
  }
  pestle_context_log(node->block->region->module->context, PESTLE_LOG_WARN,
                     "op '%s' has no rule for vmap and no body: it runs once "
                     "for each of %lld elements",
                     PESTLE_NODE_STR(node, name), (long long)v->size);
  pestle_scan_body_t body;
  pestle_node_t* scan;
  PESTLE_TRY(pestle_scan_begin(&v->f.builder, &spec, &body));
  pestle_status_t status = fill_loop(v, node, is_batched, &body, results);
  PESTLE_TRY(pestle_scan_end(&v->f.builder, &spec, &body, status, NULL, results,
                             m, &scan));
  for (size_t r = 0; r < m; ++r)
    out[r] = pestle_node_result(scan, (uint32_t)r);
  return NULL;
}

// The op on operands that all have the axis.
static pestle_status_t on_bigger_shape(pestle_vmap_t* v,
                                       const pestle_custom_use_t* use,
                                       pv_t** operands, const bool* is_batched,
                                       pv_t** out) {
  enum { MOST_ATTRS = 256 };
  pestle_custom_attr_value_t* attrs =
      PESTLE_ARENA_ARRAY(&v->arena, pestle_custom_attr_value_t, MOST_ATTRS);
  size_t count = 0;
  size_t n = use->node.operand_count - pestle_custom_dynamic_count(use->op);
  if (!attrs) return PESTLE_OOM();
  for (size_t i = 0; i < n; ++i)
    operands[i] = pestle_vmap_batch(v, operands[i], is_batched[i]);
  if (v->f.status) return NULL;
  const pestle_custom_attr_value_t* a;
  while (count < MOST_ATTRS &&
         (a = pestle_custom_attr_at(use->node.attrs, count)))
    attrs[count++] = *a;
  for (size_t i = 0, d = n; i < use->op->attr_count && count < MOST_ATTRS;
       ++i) {
    if (!use->op->attrs[i]->dynamic) continue;
    attrs[count++] = (pestle_custom_attr_value_t){
        use->op->attrs[i]->name, PESTLE_CUSTOM_VALUE, {.value = operands[d++]}};
  }
  return pestle_op_custom(&v->f.builder, use->op->name, operands, n, attrs,
                          count, out, use->node.result_count);
}

// Whether |made| is |one| with |size| elements more along |axis|; the same without.
static bool is_batch_of(const pestle_type_t* made, const pestle_type_t* one,
                        int64_t axis, int64_t size) {
  if (axis < 0) return pestle_type_equal(made, one);
  if (made->dtype != one->dtype || made->rank != one->rank + 1) return false;
  if (axis >= made->rank || made->dims[axis] != size) return false;
  for (int32_t i = 0, k = 0; i < made->rank; ++i)
    if (i != axis && made->dims[i] != one->dims[k++]) return false;
  return true;
}

static void check_batched(pestle_vmap_t* v, const pestle_custom_op_t* op,
                          const pestle_node_t* node, const int64_t* axes,
                          pv_t* const* out) {
  for (uint32_t r = 0; r < node->result_count && !v->f.status; ++r) {
    const pestle_type_t* one = node->results[r].type;
    if (out[r] && is_batch_of(out[r]->type, one, axes[r], v->size)) continue;
    if (!out[r]) {
      pestle_f_fail(&v->f,
                    PESTLE_ERROR(INVALID_ARGUMENT,
                                 "the vmap of op '%s' gives no result %u",
                                 op->name, (unsigned)r));
      return;
    }
    pestle_f_fail(
        &v->f,
        PESTLE_ERROR(INVALID_ARGUMENT,
                     "the vmap of op '%s' gives result %u as %s with axis "
                     "%lld; %s %lld times is meant",
                     op->name, (unsigned)r, pestle_type_text(out[r]->type).text,
                     (long long)axes[r], pestle_type_text(one).text,
                     (long long)v->size));
  }
}

// What the rule made, with the axis in front.
static void move_axes(pestle_vmap_t* v, const int64_t* axes, size_t count,
                      pv_t** out) {
  for (size_t r = 0; r < count && !v->f.status; ++r) {
    int64_t order[PESTLE_MAX_RANK];
    if (axes[r] <= 0) {
      out[r] = pestle_vmap_batch(v, out[r], axes[r] == 0);
      continue;
    }
    order[0] = axes[r];
    for (int32_t d = 0, to = 1; d < out[r]->type->rank; ++d) {
      if (d != axes[r]) order[to++] = d;
    }
    out[r] = pestle_f_transpose(&v->f, out[r], order);
  }
}

void pestle_custom_vmap(pestle_vmap_t* v, pestle_node_t* node, pv_t** operands,
                        const bool* is_batched, pv_t** out) {
  pestle_custom_use_t use;
  if (pestle_is_kept(node)) {
    pestle_vmap_kept(v, node, operands, is_batched, out);
    return;
  }
  const pestle_custom_op_t* op = find_op(&v->arena, node, &use);
  if (!op || (!op->vmap && !is_on_bigger_shape(v, op, node))) {
    pestle_f_fail(&v->f, one_by_one(v, node, operands, is_batched, out));
    return;
  }
  size_t n = use.node.operand_count, m = use.node.result_count;
  int64_t* axes = PESTLE_ARENA_ARRAY(&v->arena, int64_t, n + m + 1);
  pestle_type_t* types = PESTLE_ARENA_ARRAY(&v->arena, pestle_type_t, n + 1);
  if (!op || !axes || !types) {
    pestle_f_fail(&v->f, PESTLE_OOM());
    return;
  }
  if (!op->vmap) {
    pestle_f_fail(&v->f, on_bigger_shape(v, &use, operands, is_batched, out));
    return;
  }
  for (size_t i = 0; i < n; ++i) {
    axes[i] = is_batched[i] ? 0 : -1;
    types[i] = *operands[i]->type;
  }
  use.node.operands = operands;
  use.node.operand_types = types;
  use.node.results = NULL;
  pestle_f_fail(
      &v->f, pestle_status_annotate(op->vmap(op->user, &v->f.builder, &use.node,
                                             axes, v->size, out, axes + n),
                                    "in the vmap of op '%s'", op->name));
  check_batched(v, op, node, axes + n, out);
  if (!v->f.status) move_axes(v, axes + n, m, out);
}

// SPDX-License-Identifier: Apache-2.0
// What a scan by rows takes from around it: matrices and vectors that its body has as
// constants, and the products of its inputs, which are one product for all turns.
//
//   scan (%h; %xs) of T { %w = constant; %x W + %h %w .. }
//     ->  %p = dot_general(reshape %xs, %W);  scan (%h; reshape %p; %w) of T { %x + %h %w .. }
#include "base/mem.h"
#include "ir/scan_rows.h"
#include "passes/util.h"

typedef struct inputs_t {
  pestle_pass_context_t* ctx;
  pestle_scan_t s;
  pestle_formula_t f;       // before the scan
  pestle_copier_t outside;  // of the body's constants to there
  pestle_scan_spec_t spec;
  pestle_value_t **xs, **constants, **next, **ys;
  pestle_node_t **products,
      **lifted;  // nodes of the body that become arguments
  size_t product_count, lifted_count;
} inputs_t;

static bool is_argument(const pestle_scan_t* s, const pestle_value_t* v,
                        size_t from, size_t to) {
  return !v->node && v->block == s->body && v->index >= from && v->index < to;
}

static bool is_table(const pestle_node_t* n) {
  return n->op == PESTLE_OP_CONSTANT && !PESTLE_NODE_ELEMENTS(n)->splat &&
         pestle_type_count(n->results[0].type) > 1;
}

// Products of all turns together that take more memory are made turn by turn.
#define MOST_BYTES (INT64_C(1) << 30)

// [.., k] of an array's turn times a matrix that each turn has alike.
static bool is_product(const pestle_scan_t* s, const pestle_node_t* n) {
  if (n->op != PESTLE_OP_DOT_GENERAL) return false;
  const pestle_value_t* a = pestle_node_operand(n, 0);
  const pestle_value_t* b = pestle_node_operand(n, 1);
  size_t first = s->carry_count + s->xs_count;
  bool alike = is_argument(s, b, first, SIZE_MAX) ||
               (b->node && b->node->block == s->body && is_table(b->node));
  pestle_i64s_t summed = PESTLE_NODE_I64S(n, lhs_contracting_dimensions);
  return alike && is_argument(s, a, s->carry_count, first) &&
         !PESTLE_NODE_I64S(n, lhs_batching_dimensions).count &&
         summed.count == 1 && summed.data[0] == a->type->rank - 1 &&
         b->type->rank == 2 && pestle_type_count(a->type) > 0 &&
         s->length <=
             MOST_BYTES / (int64_t)pestle_type_bytes(n->results[0].type);
}

bool pestle_pass_has_scan_inputs(const pestle_node_t* scan) {
  pestle_scan_t s = pestle_scan_read(scan);
  for (const pestle_node_t* n = s.body->first; n; n = n->next) {
    if (is_product(&s, n)) return true;
  }
  return false;
}

// Whether anything but products that are made before the scan reads |v|.
static bool is_read(const pestle_scan_t* s, const pestle_value_t* v) {
  for (const pestle_use_t* use = v->uses; use; use = use->next) {
    if (!is_product(s, use->user)) return true;
  }
  return false;
}

// What |v| of the body is before the scan.
static pestle_value_t* outer(inputs_t* in, pestle_value_t* v) {
  if (v->node) return pestle_copier_get(&in->outside, v);
  size_t first = in->s.carry_count + in->s.xs_count;
  return in->s.constants[v->index - first].value;
}

static pestle_value_t* whole_product(inputs_t* in, const pestle_node_t* n) {
  const pestle_value_t* x = pestle_node_operand(n, 0);
  pestle_value_t* xs = in->s.xs[x->index - in->s.carry_count].value;
  pestle_value_t* w = outer(in, pestle_node_operand(n, 1));
  bool turned = PESTLE_NODE_I64S(n, rhs_contracting_dimensions).data[0] == 1;
  const pestle_type_t* row = n->results[0].type;
  int64_t k = x->type->dims[x->type->rank - 1];
  int64_t flat[2] = {pestle_type_count(xs->type) / k, k};
  pestle_type_t type = pestle_type_make(row->dtype, 2, flat), stacked;
  type.dims[1] = row->dims[row->rank - 1];
  (void)pestle_scan_stacked_type(row, in->s.length, &stacked);
  in->f.builder.loc = n->loc;
  pestle_value_t* a = pestle_f_reshape(&in->f, xs, 2, flat);
  return pestle_f_reshape_to(&in->f, pestle_f_dot(&in->f, a, w, turned, &type),
                             &stacked);
}

static pestle_status_t make_spec(inputs_t* in) {
  const pestle_scan_t* s = &in->s;
  size_t nodes = 1;
  for (const pestle_node_t* n = s->body->first; n; n = n->next)
    ++nodes;
  pestle_arena_t* arena = in->ctx->scratch;
  in->xs = PESTLE_ARENA_ARRAY(arena, pestle_value_t*, s->xs_count + nodes);
  in->constants =
      PESTLE_ARENA_ARRAY(arena, pestle_value_t*, s->constant_count + nodes);
  in->next = PESTLE_ARENA_ARRAY(arena, pestle_value_t*, s->carry_count + 1);
  in->ys = PESTLE_ARENA_ARRAY(arena, pestle_value_t*, s->ys_count + 1);
  in->products = PESTLE_ARENA_ARRAY(arena, pestle_node_t*, nodes);
  in->lifted = PESTLE_ARENA_ARRAY(arena, pestle_node_t*, nodes);
  pestle_value_t** init =
      PESTLE_ARENA_ARRAY(arena, pestle_value_t*, s->carry_count + 1);
  if (!in->xs || !in->constants || !in->next || !in->ys || !in->products ||
      !in->lifted || !init) {
    return PESTLE_OOM();
  }
  in->spec = (pestle_scan_spec_t){.init = init,
                                  .carry_count = s->carry_count,
                                  .xs = in->xs,
                                  .constants = in->constants,
                                  .length = s->length,
                                  .unroll = s->unroll,
                                  .reverse = s->reverse};
  for (size_t i = 0; i < s->carry_count; ++i)
    init[i] = s->init[i].value;
  for (size_t i = 0; i < s->xs_count; ++i) {
    if (is_read(s, s->x[i])) in->xs[in->spec.xs_count++] = s->xs[i].value;
  }
  for (size_t i = 0; i < s->constant_count; ++i) {
    if (is_read(s, s->constant[i]))
      in->constants[in->spec.constant_count++] = s->constants[i].value;
  }
  for (pestle_node_t* n = s->body->first; n != s->body->last; n = n->next) {
    pestle_node_t* copy;
    if (!is_table(n)) continue;
    PESTLE_TRY(pestle_copier_node(&in->outside, n, &copy));
    if (!is_read(s, &n->results[0])) continue;
    in->lifted[in->lifted_count++] = n;
    in->constants[in->spec.constant_count++] = &copy->results[0];
  }
  for (pestle_node_t* n = s->body->first; n != s->body->last; n = n->next) {
    if (!is_product(s, n)) continue;
    in->products[in->product_count++] = n;
    in->xs[in->spec.xs_count++] = whole_product(in, n);
  }
  return in->f.status;
}

static pestle_status_t map_values(inputs_t* in, const pestle_scan_body_t* body,
                                  pestle_copier_t* copier) {
  const pestle_scan_t* s = &in->s;
  size_t x = 0, constant = 0;
  for (size_t i = 0; i < s->carry_count; ++i)
    PESTLE_TRY(pestle_copier_set(copier, s->carry[i], body->carry[i]));
  for (size_t i = 0; i < s->xs_count; ++i) {
    if (is_read(s, s->x[i]))
      PESTLE_TRY(pestle_copier_set(copier, s->x[i], body->x[x++]));
  }
  for (size_t i = 0; i < s->constant_count; ++i) {
    const pestle_value_t* v = s->constant[i];
    if (is_read(s, v))
      PESTLE_TRY(pestle_copier_set(copier, v, body->constant[constant++]));
  }
  for (size_t i = 0; i < in->lifted_count; ++i) {
    const pestle_value_t* v = &in->lifted[i]->results[0];
    PESTLE_TRY(pestle_copier_set(copier, v, body->constant[constant++]));
  }
  for (size_t i = 0; i < in->product_count; ++i) {
    const pestle_value_t* v = &in->products[i]->results[0];
    PESTLE_TRY(pestle_copier_set(copier, v, body->x[x++]));
  }
  return NULL;
}

static pestle_status_t copy_body(inputs_t* in, const pestle_scan_body_t* body,
                                 pestle_copier_t* copier) {
  const pestle_scan_t* s = &in->s;
  PESTLE_TRY(map_values(in, body, copier));
  for (pestle_node_t* n = s->body->first; n != s->body->last; n = n->next) {
    pestle_node_t* copy;
    if (is_table(n) || is_product(s, n)) continue;
    PESTLE_TRY(pestle_copier_node(copier, n, &copy));
  }
  for (size_t i = 0; i < s->carry_count; ++i)
    in->next[i] = pestle_copier_get(copier, s->next[i].value);
  for (size_t i = 0; i < s->ys_count; ++i)
    in->ys[i] = pestle_copier_get(copier, s->y[i].value);
  return NULL;
}

static pestle_status_t build(inputs_t* in, pestle_node_t** out_scan) {
  pestle_scan_body_t body;
  pestle_copier_t copier;
  PESTLE_TRY(make_spec(in));
  pestle_builder_t builder = in->f.builder;
  builder.loc = in->s.node->loc;
  PESTLE_TRY(pestle_scan_begin(&builder, &in->spec, &body));
  pestle_copier_init(pestle_context_allocator(in->ctx->context), body.builder,
                     &copier);
  pestle_status_t status = copy_body(in, &body, &copier);
  pestle_copier_deinit(&copier);
  return pestle_scan_end(&builder, &in->spec, &body, status, in->next, in->ys,
                         in->s.ys_count, out_scan);
}

pestle_status_t pestle_pass_scan_inputs(pestle_pass_context_t* ctx,
                                        pestle_node_t* scan,
                                        pestle_node_t** out_scan) {
  inputs_t in = {.ctx = ctx,
                 .s = pestle_scan_read(scan),
                 .f = pestle_formula_before(scan)};
  pestle_copier_init(pestle_context_allocator(ctx->context),
                     pestle_builder_before(scan), &in.outside);
  pestle_status_t status = build(&in, out_scan);
  pestle_copier_deinit(&in.outside);
  PESTLE_TRY(status);
  for (uint32_t i = 0; i < scan->result_count; ++i)
    pestle_value_replace_all_uses(&scan->results[i], &(*out_scan)->results[i]);
  pestle_node_erase(scan);
  return NULL;
}

// SPDX-License-Identifier: Apache-2.0
// attention in reverse mode. Its tangent would be an op that has no meaning but to be
// transposed (rule_custom.c says more of such), so that the cotangents are written at
// once, with w = softmax(x) made again and c the cotangent of the result y:
//
//   dv = w^T c     dx = w (c v^T - sum c y)     dq = scale dx k     dk = scale dx^T q
//
// Where w is large, a scan goes over blocks of rows, each of which gives its rows of dq
// and adds to dk and dv, in the order of the blocks: no more than a block of w is alive.
#include "ir/scan.h"
#include "transform/attention.h"
#include "transform/transform.h"

enum {
  // Bytes of all scores from which on they are made in blocks, and of a block. At 12 heads
  // of 1024 x 1024 (50 MB) blocks of 128 rows took 1.4 times as long as all at once.
  WHOLE_BYTES = 128 << 20,
  BLOCK_BYTES = 16 << 20,
  LEAST_ROWS = 16,
  MOST_OPERANDS = 5,
};

// What is made from the operands of |a|, of all rows or of a block.
typedef struct back_t {
  bool needs[MOST_OPERANDS];
  pv_t* out[MOST_OPERANDS];
} back_t;

// --- One block ---

// a^T b over the rows, with the result across: it lies as [.., columns of b, of a], since
// of the two |a| is what is cheap to turn.
static pv_t* across(pestle_formula_t* f, pv_t* a, pv_t* b) {
  int64_t batch[PESTLE_MAX_RANK], order[PESTLE_MAX_RANK];
  if (!a || !b) return NULL;
  size_t n = (size_t)a->type->rank - 2;
  int64_t rows = (int64_t)n;
  for (size_t i = 0; i < n + 2; ++i)
    batch[i] = order[i] = (int64_t)i;
  order[n] = rows + 1;
  order[n + 1] = rows;
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64S(lhs_batching_dimensions, batch, n),
      PESTLE_SET_I64S(rhs_batching_dimensions, batch, n),
      PESTLE_SET_I64S(lhs_contracting_dimensions, &rows, 1),
      PESTLE_SET_I64S(rhs_contracting_dimensions, &rows, 1)};
  pestle_type_t type = *a->type;
  type.dims[n] = a->type->dims[n + 1];
  type.dims[n + 1] = b->type->dims[n + 1];
  pv_t* operands[] = {a, b};
  pv_t* y =
      pestle_f_make(f, PESTLE_OP_DOT_GENERAL, operands, 2, attrs, 4, &type);
  return pestle_f_transpose(f, y, order);
}

// |c| and |y| are the cotangent and the result.
static void make_block(pestle_attention_parts_t* a, pv_t* c, pv_t* y,
                       back_t* b) {
  pestle_formula_t* f = a->f;
  int64_t last = a->scores.rank - 1;
  size_t bias = pestle_attention_bias(a->node);
  pv_t* w = pestle_attention_weights(a);
  c = pestle_attention_wide(a, c);
  if (b->needs[2]) b->out[2] = across(f, c, w);
  if (!b->needs[0] && !b->needs[1] && !(bias && b->needs[bias])) return;
  pv_t* dw = c && a->v ? pestle_f_dot(f, c, a->v, true, &a->scores) : NULL;
  // A result that was rounded would lose more than the weights do.
  bool is_exact = y && y->type->dtype == a->compute;
  pv_t* sum =
      is_exact ? pestle_f_multiply(f, c, y) : pestle_f_multiply(f, w, dw);
  if (!sum) return;
  sum = pestle_sum_axes(f, sum, &last, 1);
  sum = pestle_spread_axes(f, sum, &a->scores, (pestle_i64s_t){&last, 1});
  pv_t* dx = pestle_f_multiply(f, w, pestle_f_subtract(f, dw, sum));
  if (a->mask && dx) dx = pestle_f_select(f, a->mask, dx, pestle_zeros(f, dx));
  if (bias && b->needs[bias]) b->out[bias] = dx;
  if (!dx) return;
  dx = pestle_f_times(f, dx, PESTLE_NODE_F64(a->node, scale));
  if (dx && b->needs[0]) {
    b->out[0] = pestle_f_dot(f, dx, a->k, false, a->q ? a->q->type : NULL);
  }
  if (b->needs[1]) b->out[1] = across(f, a->q, dx);
}

// |dx|, of the scores, summed to what |operand| has of them.
static pv_t* gather_back(pestle_formula_t* f, pv_t* dx, const pv_t* operand) {
  int64_t axes[PESTLE_MAX_RANK];
  size_t count = 0;
  if (!dx) return NULL;
  for (int32_t d = 0; d < dx->type->rank; ++d) {
    if (operand->type->dims[d] != dx->type->dims[d]) axes[count++] = d;
  }
  dx = pestle_sum_axes(f, dx, axes, count);
  return pestle_f_reshape_to(f, dx, operand->type);
}

// --- Blocks of rows ---

// Rows of a block, a divisor of all; 0: all at once.
static int64_t block_rows(const pestle_attention_parts_t* a) {
  int64_t rows = a->scores.dims[a->scores.rank - 2];
  int64_t bytes = (int64_t)pestle_type_bytes(&a->scores);
  if (bytes <= WHOLE_BYTES || !rows) return 0;
  int64_t most = BLOCK_BYTES / (bytes / rows);
  if (most < LEAST_ROWS) most = LEAST_ROWS;
  for (int64_t n = most; n >= LEAST_ROWS; --n) {
    if (rows % n == 0) return n;
  }
  return 0;
}

// [batch.., rows, columns] as [blocks, batch.., rows of a block, columns].
static pv_t* cut(pestle_formula_t* f, pv_t* a, int64_t rows) {
  int64_t dims[PESTLE_MAX_RANK], order[PESTLE_MAX_RANK];
  if (!a) return NULL;
  int32_t rank = a->type->rank, n = rank - 2;
  for (int32_t d = 0; d < n; ++d) {
    dims[d] = a->type->dims[d];
    order[d + 1] = d;
  }
  dims[n] = a->type->dims[n] / rows;
  dims[n + 1] = rows;
  dims[n + 2] = a->type->dims[n + 1];
  order[0] = n;
  order[n + 1] = n + 1;
  order[n + 2] = n + 2;
  return pestle_f_transpose(f, pestle_f_reshape(f, a, rank + 1, dims), order);
}

// The blocks, [blocks, batch.., rows, columns], one behind the other.
static pv_t* join(pestle_formula_t* f, pv_t* a, const pestle_type_t* type) {
  int64_t order[PESTLE_MAX_RANK];
  if (!a) return NULL;
  int32_t n = a->type->rank - 3;
  for (int32_t d = 0; d < n; ++d)
    order[d] = d + 1;
  order[n] = 0;
  order[n + 1] = n + 1;
  order[n + 2] = n + 2;
  return pestle_f_reshape_to(f, pestle_f_transpose(f, a, order), type);
}

typedef struct blocks_t {
  pestle_attention_parts_t* a;
  back_t* b;
  pv_t *c, *y;
  pv_t* xs[MOST_OPERANDS + 2];
  pv_t* constants[MOST_OPERANDS];
  // Where operand i is: |xs_at| one above its place among xs, else a constant's.
  size_t xs_at[MOST_OPERANDS], constant_at[MOST_OPERANDS];
  size_t xs_count, constant_count;
} blocks_t;

static void add_operands(blocks_t* s, int64_t rows) {
  pestle_attention_parts_t* a = s->a;
  s->xs[s->xs_count++] = cut(a->f, s->c, rows);
  s->xs[s->xs_count++] = cut(a->f, s->y, rows);
  for (uint32_t i = 0; i < a->count; ++i) {
    pv_t* operand = a->operands[i];
    int32_t axis = operand->type->rank - 2;
    bool has_rows = i == 0 || (i > 2 && operand->type->dims[axis] != 1);
    if (has_rows) {
      s->xs[s->xs_count++] = cut(a->f, operand, rows);
      s->xs_at[i] = s->xs_count;
    } else {
      s->constant_at[i] = s->constant_count;
      s->constants[s->constant_count++] = operand;
    }
  }
}

static pestle_status_t make_body(blocks_t* s, pestle_scan_body_t* body,
                                 pv_t** next, pv_t** out_y, size_t* ys) {
  pestle_formula_t f = pestle_formula_make(body->builder);
  pestle_attention_parts_t part;
  pv_t* operands[MOST_OPERANDS];
  back_t b = {{s->b->needs[0], s->b->needs[1], s->b->needs[2]}, {NULL}};
  for (uint32_t i = 0; i < s->a->count; ++i) {
    operands[i] = s->xs_at[i] ? body->x[s->xs_at[i] - 1]
                              : body->constant[s->constant_at[i]];
  }
  pestle_attention_parts(&f, s->a->node, operands, s->a->count, &part);
  make_block(&part, body->x[0], body->x[1], &b);
  size_t carries = 0;
  for (size_t i = 1; i <= 2; ++i) {
    if (!b.needs[i]) continue;
    next[carries] = pestle_f_add(&f, body->carry[carries], b.out[i]);
    ++carries;
  }
  if (b.needs[0]) out_y[(*ys)++] = b.out[0];
  body->builder = f.builder;
  return f.status;
}

static void make_in_blocks(pestle_attention_parts_t* a, pv_t* c, pv_t* y,
                           int64_t rows, back_t* b) {
  pestle_formula_t* f = a->f;
  blocks_t s = {.a = a, .b = b, .c = c, .y = y};
  pv_t *carries[2], *next[2], *ys[1];
  size_t carry_count = 0, y_count = 0;
  pestle_scan_body_t body;
  pestle_node_t* scan = NULL;
  add_operands(&s, rows);
  for (size_t i = 1; i <= 2; ++i) {
    pv_t* like = i == 1 ? a->k : a->v;
    if (b->needs[i] && like) carries[carry_count++] = pestle_zeros(f, like);
  }
  if (f->status) return;
  pestle_scan_spec_t spec = {
      .init = carries,
      .carry_count = carry_count,
      .xs = s.xs,
      .xs_count = s.xs_count,
      .constants = s.constants,
      .constant_count = s.constant_count,
      .length = a->scores.dims[a->scores.rank - 2] / rows};
  f->status = pestle_scan_begin(&f->builder, &spec, &body);
  if (f->status) return;
  pestle_status_t status = make_body(&s, &body, next, ys, &y_count);
  f->status = pestle_scan_end(&f->builder, &spec, &body, status, next, ys,
                              y_count, &scan);
  if (f->status) return;
  size_t r = 0;
  for (size_t i = 1; i <= 2; ++i) {
    if (b->needs[i]) b->out[i] = pestle_node_result(scan, r++);
  }
  if (b->needs[0]) {
    b->out[0] = join(f, pestle_node_result(scan, r), a->q->type);
  }
}

// --- The rule ---

// |node|: operands of the attention, its result, a tangent for each operand.
void pestle_attention_pull(pestle_transposer_t* x, const pestle_node_t* node,
                           uint32_t count, pv_t* ct) {
  pestle_attention_parts_t a;
  back_t b = {{false}, {NULL}};
  pv_t* operands[MOST_OPERANDS];
  pv_t* y = pestle_node_operand(node, count);
  for (uint32_t i = 0; i < count; ++i) {
    operands[i] = pestle_node_operand(node, i);
    b.needs[i] = pestle_is_linear(x, pestle_node_operand(node, count + 1 + i));
  }
  pestle_attention_parts(&x->f, y->node, operands, count, &a);
  size_t bias = pestle_attention_bias(y->node);
  bool is_whole = bias && b.needs[bias];
  int64_t rows = is_whole ? 0 : block_rows(&a);
  if (rows) {
    make_in_blocks(&a, ct, y, rows, &b);
  } else {
    make_block(&a, ct, y, &b);
  }
  if (is_whole) b.out[bias] = gather_back(&x->f, b.out[bias], operands[bias]);
  for (uint32_t i = 0; i < count; ++i) {
    if (!b.needs[i] || !b.out[i]) continue;
    pestle_cotangent_add(
        x, node, count + 1 + i,
        pestle_f_convert(&x->f, b.out[i], operands[i]->type->dtype));
  }
}

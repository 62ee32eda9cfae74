// SPDX-License-Identifier: Apache-2.0
// The gradient of an attention as core ops, with w = softmax(x) made again and c the
// cotangent of the result y:
//
//   dv = w^T c     dx = w (c v^T - sum c y)     dq = scale dx k     dk = scale dx^T q
//
// Where w is large, a scan goes over blocks of rows, each of which gives its rows of dq
// and adds to dk and dv, in the order of the blocks: no more than a block of w is alive.
#include "ir/attention.h"
#include "ir/composite.h"
#include "ir/scan.h"

typedef pestle_attention_parts_t parts_t;

enum {
  // Bytes of all scores from which on they are made in blocks, and of a block. At 12 heads
  // of 1024 x 1024 (50 MB) blocks of 128 rows took 1.4 times as long as all at once.
  WHOLE_BYTES = 128 << 20,
  BLOCK_BYTES = 16 << 20,
  LEAST_ROWS = 16,
  Y = 3,  // operands
  C,
  DQ = 0,  // results
  DK,
  DV,
  DBIAS,
  RESULTS,
};

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

// |dx|, of the scores, summed to what |operand| has of them.
static pv_t* gather_back(pestle_formula_t* f, pv_t* dx, const pv_t* operand) {
  int64_t axes[PESTLE_MAX_RANK];
  size_t count = 0;
  if (!dx) return NULL;
  for (int32_t d = 0; d < dx->type->rank; ++d) {
    if (operand->type->dims[d] != dx->type->dims[d]) axes[count++] = d;
  }
  if (count) {
    pestle_i64s_t all = {axes, count};
    dx = pestle_f_reduce(f, PESTLE_OP_ADD, dx, all, 0);
  }
  return pestle_f_reshape_to(f, dx, operand->type);
}

// |c| and |y| are the cotangent and the result.
static void make_block(parts_t* a, pv_t* c, pv_t* y, pv_t* out[RESULTS]) {
  pestle_formula_t* f = a->f;
  pv_t* bias = a->given[PESTLE_ATTENTION_BIAS];
  pv_t* w = pestle_attention_weights(a);
  c = pestle_attention_wide(a, c);
  out[DV] = across(f, c, w);
  pv_t* dw = c && a->v ? pestle_f_dot(f, c, a->v, true, &a->scores) : NULL;
  // A result that was rounded would lose more than the weights do.
  bool is_exact = y && y->type->dtype == a->compute;
  pv_t* sum =
      is_exact ? pestle_f_multiply(f, c, y) : pestle_f_multiply(f, w, dw);
  sum = pestle_attention_row_sums(a, sum);
  pv_t* dx = pestle_f_multiply(f, w, pestle_f_subtract(f, dw, sum));
  if (a->mask && dx)
    dx = pestle_f_select(f, a->mask, dx, pestle_f_splat(f, dx, 0));
  if (PESTLE_NODE_BOOL(a->node, of_bias)) out[DBIAS] = gather_back(f, dx, bias);
  if (!dx) return;
  dx = pestle_f_times(f, dx, PESTLE_NODE_F64(a->node, scale));
  if (!dx || !a->q) return;
  out[DQ] = pestle_f_dot(f, dx, a->k, false, a->q->type);
  out[DK] = across(f, a->q, dx);
}

// --- Blocks of rows ---

// Rows of a block, a divisor of all; 0: all at once.
static int64_t block_rows(const parts_t* a) {
  int64_t rows = a->scores.dims[a->scores.rank - 2];
  int64_t bytes = (int64_t)pestle_type_bytes(&a->scores);
  if (bytes <= WHOLE_BYTES || !rows || PESTLE_NODE_BOOL(a->node, of_bias)) {
    return 0;
  }
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
  parts_t* a;
  pv_t* xs[PESTLE_ATTENTION_VALUES + 2];
  pv_t* constants[PESTLE_ATTENTION_VALUES];
  // Where value i is: |xs_at| one above its place among xs, else a constant's.
  size_t xs_at[PESTLE_ATTENTION_VALUES], constant_at[PESTLE_ATTENTION_VALUES];
  size_t xs_count, constant_count;
} blocks_t;

static void add_operands(blocks_t* s, pv_t* c, pv_t* y, int64_t rows) {
  parts_t* a = s->a;
  s->xs[s->xs_count++] = cut(a->f, c, rows);
  s->xs[s->xs_count++] = cut(a->f, y, rows);
  for (int i = 0; i < PESTLE_ATTENTION_VALUES; ++i) {
    pv_t* value = a->given[i];
    if (!value) continue;
    int32_t axis = value->type->rank - 2;
    bool has_rows = i == PESTLE_ATTENTION_Q ||
                    (i > PESTLE_ATTENTION_V && value->type->dims[axis] != 1);
    if (has_rows) {
      s->xs[s->xs_count++] = cut(a->f, value, rows);
      s->xs_at[i] = s->xs_count;
    } else {
      s->constant_at[i] = s->constant_count;
      s->constants[s->constant_count++] = value;
    }
  }
}

static pestle_status_t make_body(blocks_t* s, pestle_scan_body_t* body,
                                 pv_t** next, pv_t** out_y) {
  pestle_formula_t f = pestle_formula_make(body->builder);
  f.compute = s->a->compute;
  parts_t part;
  pv_t *values[PESTLE_ATTENTION_VALUES] = {NULL}, *out[RESULTS] = {NULL};
  for (int i = 0; i < PESTLE_ATTENTION_VALUES; ++i) {
    if (!s->a->given[i]) continue;
    values[i] = s->xs_at[i] ? body->x[s->xs_at[i] - 1]
                            : body->constant[s->constant_at[i]];
  }
  pestle_attention_parts(&f, s->a->node, values, &part);
  make_block(&part, body->x[0], body->x[1], out);
  next[0] = pestle_f_add(&f, body->carry[0], out[DK]);
  next[1] = pestle_f_add(&f, body->carry[1], out[DV]);
  *out_y = out[DQ];
  body->builder = f.builder;
  return f.status;
}

static void make_in_blocks(parts_t* a, pv_t* c, pv_t* y, int64_t rows,
                           pv_t* out[RESULTS]) {
  pestle_formula_t* f = a->f;
  blocks_t s = {.a = a};
  pv_t *carries[2], *next[2], *dq = NULL;
  pestle_scan_body_t body;
  pestle_node_t* scan = NULL;
  add_operands(&s, c, y, rows);
  carries[0] = a->k ? pestle_f_splat(f, a->k, 0) : NULL;
  carries[1] = a->v ? pestle_f_splat(f, a->v, 0) : NULL;
  if (f->status) return;
  pestle_scan_spec_t spec = {
      .init = carries,
      .carry_count = 2,
      .xs = s.xs,
      .xs_count = s.xs_count,
      .constants = s.constants,
      .constant_count = s.constant_count,
      .length = a->scores.dims[a->scores.rank - 2] / rows};
  f->status = pestle_scan_begin(&f->builder, &spec, &body);
  if (f->status) return;
  pestle_status_t status = make_body(&s, &body, next, &dq);
  f->status =
      pestle_scan_end(&f->builder, &spec, &body, status, next, &dq, 1, &scan);
  if (f->status) return;
  out[DK] = pestle_node_result(scan, 0);
  out[DV] = pestle_node_result(scan, 1);
  out[DQ] = join(f, pestle_node_result(scan, 2), a->q->type);
}

pv_t* pestle_decompose_attention_grad(pestle_formula_t* f) {
  const pestle_node_t* node = f->of->node;
  pv_t *values[PESTLE_ATTENTION_VALUES], *out[RESULTS] = {NULL};
  pv_t *y = pestle_node_operand(node, Y), *c = pestle_node_operand(node, C);
  parts_t a;
  pestle_attention_values(node, values);
  pestle_attention_parts(f, node, values, &a);
  int64_t rows = block_rows(&a);
  if (rows) {
    make_in_blocks(&a, c, y, rows, out);
  } else {
    make_block(&a, c, y, out);
  }
  for (uint32_t r = 0; r < node->result_count; ++r) {
    out[r] = pestle_f_convert(f, out[r], node->results[r].type->dtype);
    if (r) f->of->more[r - 1] = out[r];
  }
  return out[0];
}

// SPDX-License-Identifier: Apache-2.0
// What an element of a scan by rows is, at the place where it is asked for: from the group's
// state, from arrays, by the op that makes it. Sums of products are made for all columns that
// read the same rows at once.
#include "codegen/direct/direct_scan_rows.h"

enum { FOUR = 4, F32_BYTES = 4 };

// --- Where elements lie ---

static pk_t place_of(pestle_direct_rows_t* x, pestle_scan_at_t at,
                     unsigned row) {
  if (at.is_row) return x->row[row];
  if (!at.by) return pestle_rows_number(x, at.from);
  return pestle_kir_madi(x->k, x->column, at.by,
                         pestle_rows_number(x, at.from));
}

// Element |at| of |type|, behind |base| (NONE: 0).
pk_t pestle_rows_linear(pestle_direct_rows_t* x, const pestle_type_t* type,
                        const pestle_scan_element_t* at, unsigned row,
                        pk_t base) {
  int64_t stride = 1;
  pk_t sum = base == PESTLE_KIR_NONE ? pestle_rows_number(x, 0) : base;
  for (int32_t d = type->rank; d-- > 0;) {
    sum = pestle_kir_madi(x->k, place_of(x, at->at[d], row), stride, sum);
    stride *= type->dims[d];
  }
  return sum;
}

// Element |column| of row |row| of a state or a stage that begins at |base|.
pk_t pestle_rows_of_row(pestle_direct_rows_t* x, pk_t base, unsigned row,
                        pk_t column) {
  pk_t at =
      x->fit.by_lanes
          ? pestle_kir_madi(x->k, x->row[row], x->fit.depth, PESTLE_KIR_NONE)
          : pestle_rows_number(x, (int64_t)row * x->fit.depth);
  at = pestle_rows_op(x, PESTLE_OP_ADD, base, at);
  return pestle_rows_op(x, PESTLE_OP_ADD, at, column);
}

pk_t pestle_rows_load(pestle_direct_rows_t* x, const pestle_scan_load_t* l,
                      unsigned row, pk_t turn) {
  const pestle_value_t* v = x->s.body->arguments[l->argument];
  pk_t base = turn == PESTLE_KIR_NONE
                  ? turn
                  : pestle_kir_madi(x->k, turn, pestle_type_count(v->type),
                                    PESTLE_KIR_NONE);
  return pestle_direct_load(x->d, x->buffers[l->argument],
                            pestle_rows_linear(x, v->type, &l->at, row, base));
}

// --- Sums ---

static pk_t multiply_add(pestle_direct_rows_t* x, pk_t a, pk_t b, pk_t c) {
  if (x->d->caps->flags & PESTLE_TARGET_FMA)
    return pestle_kir_scalar(x->k, PESTLE_OP_FMA, a, b, c);
  return pestle_rows_op(x, PESTLE_OP_ADD,
                        pestle_rows_op(x, PESTLE_OP_MULTIPLY, a, b), c);
}

static pk_t matrix_at(pestle_direct_rows_t* x, const pestle_scan_dot_t* dot,
                      pk_t k) {
  const pestle_type_t* type = x->s.body->arguments[dot->matrix]->type;
  pk_t n = place_of(x, dot->column, 0);
  pk_t major = dot->by_columns ? n : k, minor = dot->by_columns ? k : n;
  pk_t at = pestle_kir_madi(x->k, major, type->dims[1], minor);
  pk_t w = pestle_direct_load(x->d, x->buffers[dot->matrix], at);
  return pestle_kir_cast(x->k, w, PESTLE_F32);
}

// Term |i| of the lane.
static pk_t term_of(pestle_direct_rows_t* x, int64_t i) {
  int64_t four = i / FOUR * FOUR;
  return pestle_kir_madi(x->k, x->part, FOUR,
                         pestle_rows_number(x, four * x->fit.split + i % FOUR));
}

static pk_t shared_four(pestle_direct_rows_t* x, int64_t i) {
  return pestle_kir_madi(x->k, x->lane, FOUR,
                         pestle_rows_number(x, i * x->fit.lanes));
}

// The lane's part of its column; what is behind the matrix is 0.
void pestle_rows_load_column(pestle_direct_rows_t* x, uint32_t d) {
  const pestle_scan_dot_t* dot = &x->r.dot[d];
  bool own = x->fit.in_registers[d];
  int64_t count = own ? x->fit.each : x->fit.each * x->fit.lanes;
  x->weights[d] = pestle_kir_add_buffer(
      x->k, "w", own ? PESTLE_KIR_PRIVATE : PESTLE_KIR_SHARED, PESTLE_F32, 1,
      count, 0);
  if (own) pestle_kir_alloc(x->k, x->weights[d]);
  for (int64_t i = 0; i < x->fit.each; ++i) {
    pk_t k = term_of(x, i), last = pestle_rows_number(x, dot->depth - 1);
    bool whole = x->fit.depth == dot->depth;
    pk_t at = whole ? k : pestle_rows_op(x, PESTLE_OP_MINIMUM, k, last);
    pk_t w = matrix_at(x, dot, at);
    if (!whole) {
      pk_t zero = pestle_kir_float(x->k, PESTLE_F32, 1, 0);
      w = pestle_direct_select(x->d, pestle_rows_op(x, PESTLE_OP_LE, k, last),
                               w, zero);
    }
    pk_t to =
        own ? pestle_rows_number(x, i)
            : pestle_rows_op(x, PESTLE_OP_ADD, shared_four(x, i / FOUR * FOUR),
                             pestle_rows_number(x, i % FOUR));
    pestle_direct_store(x->d, x->weights[d], to, w);
  }
}

static uint32_t buffer_of(const pestle_direct_rows_t* x,
                          const pestle_scan_dot_t* dot) {
  return dot->carry >= 0 ? x->state[dot->carry] : x->stage[dot->stage];
}

static pk_t base_of(pestle_direct_rows_t* x, const pestle_scan_dot_t* dot) {
  return dot->carry >= 0 ? x->now : x->stage_at;
}

// Those of |mine|, a lane's part of them, of the row that begins at |base|.
static void add_terms(pestle_direct_rows_t* x, uint32_t buffer, pk_t base,
                      const bool* mine, pk_t* sums) {
  unsigned align =
      FOUR * (unsigned)pestle_dtype_size(x->k->buffer.data[buffer].dtype);
  for (uint32_t d = 0; d < x->r.dots; ++d)
    sums[d] = pestle_kir_float(x->k, PESTLE_F32, 1, 0);
  for (int64_t i = 0; i < x->fit.each; i += FOUR) {
    pk_t at = pestle_rows_op(x, PESTLE_OP_ADD, base, term_of(x, i));
    pk_t four = pestle_kir_load(x->k, buffer, FOUR, at, PESTLE_KIR_NONE, align);
    four = pestle_kir_cast(x->k, four, PESTLE_F32);
    for (uint32_t d = 0; d < x->r.dots; ++d) {
      bool own = x->fit.in_registers[d];
      if (!mine[d]) continue;
      pk_t w =
          own ? PESTLE_KIR_NONE
              : pestle_kir_load(x->k, x->weights[d], FOUR, shared_four(x, i),
                                PESTLE_KIR_NONE, FOUR * F32_BYTES);
      for (uint32_t e = 0; e < FOUR; ++e) {
        pk_t factor =
            own ? pestle_direct_load(x->d, x->weights[d],
                                     pestle_rows_number(x, i + (int64_t)e))
                : pestle_kir_extract(x->k, w, e);
        sums[d] =
            multiply_add(x, pestle_kir_extract(x->k, four, e), factor, sums[d]);
      }
    }
  }
  for (uint32_t d = 0; d < x->r.dots; ++d) {
    if (mine[d])
      sums[d] = pestle_kir_sg_reduce(x->k, sums[d], PESTLE_OP_ADD,
                                     (unsigned)x->fit.split);
  }
}

// The rows one after the other, of which each lane keeps its own. Units begin with different
// ones: else all would read the same lines of memory at the same time.
static void make_sums_by_lanes(pestle_direct_rows_t* x, uint32_t buffer,
                               pk_t base, const bool* mine, pk_t* sums) {
  int64_t rows = x->fit.group_rows;
  int64_t each = rows % 4 == 0 ? 4 : rows % 2 == 0 ? 2 : 1;
  uint32_t kept[PESTLE_SCAN_ROWS_DOTS];
  for (uint32_t d = 0; d < x->r.dots; ++d) {
    if (!mine[d]) continue;
    kept[d] = pestle_direct_variable(x->d, "sum", PESTLE_F32, 1);
    pestle_direct_set(x->d, kept[d], pestle_kir_float(x->k, PESTLE_F32, 1, 0));
  }
  pk_t turns = pestle_rows_number(x, rows / each);
  pk_t i = pestle_kir_repeat(x->k, "i", rows / each);
  i = pestle_rows_op(x, PESTLE_OP_REMAINDER,
                     pestle_rows_op(x, PESTLE_OP_ADD, i, x->unit), turns);
  for (int64_t e = 0; e < each; ++e) {
    pk_t row = pestle_kir_madi(x->k, i, each, pestle_rows_number(x, e));
    pk_t is_own = pestle_rows_op(x, PESTLE_OP_EQ, x->row[0], row);
    add_terms(x, buffer, pestle_kir_madi(x->k, row, x->fit.depth, base), mine,
              sums);
    for (uint32_t d = 0; d < x->r.dots; ++d) {
      if (!mine[d]) continue;
      pk_t old = pestle_direct_get(x->d, kept[d]);
      pestle_direct_set(x->d, kept[d],
                        pestle_direct_select(x->d, is_own, sums[d], old));
    }
  }
  pestle_kir_end_repeat(x->k, rows / each);
  for (uint32_t d = 0; d < x->r.dots; ++d) {
    if (mine[d]) sums[d] = pestle_direct_get(x->d, kept[d]);
  }
}

// All sums of the row that number |first| is of, side by side.
static void make_sums(pestle_direct_rows_t* x, uint32_t first, unsigned row) {
  const pestle_scan_dot_t* like = &x->r.dot[first];
  uint32_t buffer = buffer_of(x, like);
  pk_t sums[PESTLE_SCAN_ROWS_DOTS], base = base_of(x, like);
  bool mine[PESTLE_SCAN_ROWS_DOTS];
  for (uint32_t d = 0; d < x->r.dots; ++d) {
    const pestle_scan_dot_t* dot = &x->r.dot[d];
    mine[d] = dot->carry == like->carry && dot->stage == like->stage;
  }
  if (x->fit.by_lanes) {
    make_sums_by_lanes(x, buffer, base, mine, sums);
  } else {
    pk_t zero = pestle_rows_number(x, 0);
    add_terms(x, buffer, pestle_rows_of_row(x, base, row, zero), mine, sums);
  }
  for (uint32_t d = 0; d < x->r.dots; ++d) {
    if (mine[d])
      x->sums[d][row] = pestle_kir_cast(
          x->k, sums[d], x->r.dot[d].node->results[0].type->dtype);
  }
}

// One of them, where there are no lanes.
static void make_sum(pestle_direct_rows_t* x, uint32_t d, unsigned row) {
  const pestle_scan_dot_t* dot = &x->r.dot[d];
  uint32_t sum = pestle_direct_variable(x->d, "sum", PESTLE_F32, 1);
  pestle_direct_set(x->d, sum, pestle_kir_float(x->k, PESTLE_F32, 1, 0));
  pk_t k = pestle_kir_repeat(x->k, "k", dot->depth);
  pk_t at = pestle_rows_of_row(x, base_of(x, dot), row, k);
  pk_t h = pestle_direct_load(x->d, buffer_of(x, dot), at);
  h = pestle_kir_cast(x->k, h, PESTLE_F32);
  pestle_direct_set(
      x->d, sum,
      multiply_add(x, h, matrix_at(x, dot, k), pestle_direct_get(x->d, sum)));
  pestle_kir_end_repeat(x->k, dot->depth);
  x->sums[d][row] = pestle_kir_cast(x->k, pestle_direct_get(x->d, sum),
                                    dot->node->results[0].type->dtype);
}

// --- Elements ---

static pk_t eval(pestle_direct_rows_t* x, const pestle_value_t* v,
                 const pestle_scan_element_t* at, unsigned row);

static pk_t load_known(pestle_direct_rows_t* x, const pestle_scan_load_t* list,
                       uint32_t count, const pestle_value_t* v,
                       const pestle_scan_element_t* at, unsigned row) {
  uint32_t i = 0;
  while (i < count && (list[i].argument != v->index ||
                       !pestle_scan_rows_same(&list[i].at, at, v->type->rank)))
    ++i;
  if (i == count) {
    x->failed = true;
    return pestle_rows_number(x, 0);
  }
  bool fixed = list == x->r.fixed;
  if (!x->lanes)
    return pestle_rows_load(x, &list[i], row,
                            fixed ? PESTLE_KIR_NONE : x->turn);
  return fixed ? x->fixed[i][row] : pestle_direct_get(x->d, x->x[i][row]);
}

static pk_t eval_argument(pestle_direct_rows_t* x, const pestle_value_t* v,
                          const pestle_scan_element_t* at, unsigned row) {
  size_t carries = x->s.carry_count;
  pestle_scan_at_t column;
  if (v->index >= carries + x->s.xs_count)
    return load_known(x, x->r.fixed, x->r.fixeds, v, at, row);
  if (v->index >= carries) return load_known(x, x->r.x, x->r.xs, v, at, row);
  if (pestle_rows_is_one(v)) return pestle_direct_get(x->d, x->state[v->index]);
  if (pestle_rows_is_own(x, v->index))
    return pestle_direct_get(x->d, x->own[v->index][row]);
  if (!pestle_scan_rows_column(&x->r, v->type, at, &column)) x->failed = true;
  pk_t place = pestle_rows_of_row(x, x->now, row, place_of(x, column, row));
  return pestle_direct_load(x->d, x->state[v->index], place);
}

static pk_t eval_dot(pestle_direct_rows_t* x, const pestle_node_t* n,
                     const pestle_scan_element_t* at, unsigned row) {
  int32_t dot = pestle_scan_rows_dot(&x->r, n, at);
  if (dot < 0) {
    x->failed = true;
    return pestle_rows_number(x, 0);
  }
  if (x->sums[dot][row] == PESTLE_KIR_NONE) {
    if (x->lanes) {
      make_sums(x, (uint32_t)dot, row);
    } else {
      make_sum(x, (uint32_t)dot, row);
    }
  }
  return x->sums[dot][row];
}

static pk_t eval_node(pestle_direct_rows_t* x, const pestle_node_t* n,
                      const pestle_scan_element_t* at, unsigned row) {
  pestle_dtype_t dtype = n->results[0].type->dtype;
  pk_t args[3] = {PESTLE_KIR_NONE, PESTLE_KIR_NONE, PESTLE_KIR_NONE};
  if (n->op == PESTLE_OP_CONSTANT) {
    double f;
    int64_t i;
    pestle_elements_first(PESTLE_NODE_ELEMENTS(n), &f, &i);
    return pestle_kir_const(x->k, dtype, 1, f, i);
  }
  if (n->op == PESTLE_OP_DOT_GENERAL) return eval_dot(x, n, at, row);
  for (uint32_t i = 0; i < n->operand_count && i < 3; ++i) {
    pestle_scan_element_t from;
    if (!pestle_scan_rows_operand(n, i, at, &from)) x->failed = true;
    args[i] = eval(x, pestle_node_operand(n, i), &from, row);
  }
  switch ((int)n->op) {
    case PESTLE_OP_BROADCAST_IN_DIM:
    case PESTLE_OP_RESHAPE:
    case PESTLE_OP_SLICE:
      return args[0];
    case PESTLE_OP_CONVERT:
      return pestle_kir_cast(x->k, args[0], dtype);
    default:
      return pestle_kir_scalar(x->k, (pestle_op_t)n->op, args[0], args[1],
                               args[2]);
  }
}

static pk_t eval(pestle_direct_rows_t* x, const pestle_value_t* v,
                 const pestle_scan_element_t* at, unsigned row) {
  for (size_t i = 0; i < x->memos; ++i) {
    const pestle_scan_memo_t* m = &x->memo[i];
    if (m->value == v && m->row == row &&
        pestle_scan_rows_same(&m->at, at, v->type->rank)) {
      return m->id;
    }
  }
  pk_t id =
      v->node ? eval_node(x, v->node, at, row) : eval_argument(x, v, at, row);
  if (x->memos < PESTLE_SCAN_MEMOS)
    x->memo[x->memos++] = (pestle_scan_memo_t){v, *at, row, id};
  return id;
}

// What |v| is at its own element.
pk_t pestle_rows_value(pestle_direct_rows_t* x, const pestle_value_t* v,
                       unsigned row) {
  pestle_scan_element_t at = {.at = {{false, 0, 0}}};
  if (!pestle_rows_is_one(v) && !pestle_scan_rows_place(&x->r, v->type, &at))
    x->failed = true;
  return eval(x, v, &at, row);
}

void pestle_rows_forget(pestle_direct_rows_t* x) {
  x->memos = 0;
  for (uint32_t d = 0; d < x->r.dots; ++d) {
    for (unsigned r = 0; r < PESTLE_SCAN_MOST_ROWS; ++r)
      x->sums[d][r] = PESTLE_KIR_NONE;
  }
}

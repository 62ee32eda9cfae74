// SPDX-License-Identifier: Apache-2.0
#include "ir/scan_rows.h"

#include <string.h>

// Rows of fewer elements are scalars; a turn of more elements is no small one.
enum { LEAST_WIDTH = 8, MOST_SEEN = 512, MOST_DEPTH = 2048, FUNCTION = 24 };

typedef struct seen_t {
  const pestle_value_t* value;
  pestle_scan_element_t at;
} seen_t;

typedef struct trace_t {
  const pestle_scan_t* s;
  pestle_scan_rows_t* r;
  seen_t seen[MOST_SEEN];
  size_t count;
} trace_t;

static bool same_at(pestle_scan_at_t a, pestle_scan_at_t b) {
  return a.is_row == b.is_row &&
         (a.is_row || (a.by == b.by && a.from == b.from));
}

bool pestle_scan_rows_same(const pestle_scan_element_t* a,
                           const pestle_scan_element_t* b, int32_t rank) {
  for (int32_t d = 0; d < rank; ++d) {
    if (!same_at(a->at[d], b->at[d])) return false;
  }
  return true;
}

// --- Places ---

bool pestle_scan_rows_place(const pestle_scan_rows_t* r,
                            const pestle_type_t* type,
                            pestle_scan_element_t* out) {
  int32_t column = -1, row = -1;
  *out = (pestle_scan_element_t){.at = {{false, 0, 0}}};
  for (int32_t d = type->rank; d-- > 0;) {
    if (type->dims[d] == 1) continue;
    if (column < 0 && type->dims[d] == r->width) {
      column = d;
    } else if (column >= 0 && row < 0 && type->dims[d] == r->rows) {
      row = d;
    } else {
      return false;
    }
  }
  if (column < 0 || (row < 0 && r->rows > 1)) return false;
  out->at[column].by = 1;
  if (row >= 0) out->at[row].is_row = true;
  return true;
}

bool pestle_scan_rows_column(const pestle_scan_rows_t* r,
                             const pestle_type_t* type,
                             const pestle_scan_element_t* at,
                             pestle_scan_at_t* out_column) {
  pestle_scan_element_t home;
  if (!pestle_scan_rows_place(r, type, &home)) return false;
  *out_column = (pestle_scan_at_t){false, 0, 0};
  for (int32_t d = 0; d < type->rank; ++d) {
    if (home.at[d].is_row && !at->at[d].is_row) return false;
    if (home.at[d].by) *out_column = at->at[d];
  }
  return !out_column->is_row;
}

// Dims of 1 come and go.
static bool reshaped(const pestle_type_t* to, const pestle_type_t* from,
                     const pestle_scan_element_t* at,
                     pestle_scan_element_t* out) {
  int32_t t = 0;
  for (int32_t d = 0; d < from->rank; ++d) {
    out->at[d] = (pestle_scan_at_t){false, 0, 0};
    if (from->dims[d] == 1) continue;
    while (t < to->rank && to->dims[t] == 1)
      ++t;
    if (t == to->rank || to->dims[t] != from->dims[d]) return false;
    out->at[d] = at->at[t++];
  }
  return true;
}

static bool sliced(const pestle_node_t* n, const pestle_scan_element_t* at,
                   pestle_scan_element_t* out) {
  const pestle_type_t* from = pestle_node_operand(n, 0)->type;
  pestle_i64s_t starts = PESTLE_NODE_I64S(n, start_indices);
  pestle_i64s_t strides = PESTLE_NODE_I64S(n, strides);
  for (int32_t d = 0; d < from->rank; ++d) {
    out->at[d] = at->at[d];
    if (starts.data[d] == 0 && strides.data[d] == 1) continue;
    if (at->at[d].is_row) return false;
    out->at[d].by *= strides.data[d];
    out->at[d].from = starts.data[d] + at->at[d].from * strides.data[d];
  }
  return true;
}

bool pestle_scan_rows_operand(const pestle_node_t* n, uint32_t operand,
                              const pestle_scan_element_t* at,
                              pestle_scan_element_t* out) {
  const pestle_type_t* from = pestle_node_operand(n, operand)->type;
  const pestle_type_t* to = n->results[0].type;
  *out = (pestle_scan_element_t){.at = {{false, 0, 0}}};
  switch ((int)n->op) {
    case PESTLE_OP_RESHAPE:
      return reshaped(to, from, at, out);
    case PESTLE_OP_SLICE:
      return sliced(n, at, out);
    case PESTLE_OP_BROADCAST_IN_DIM: {
      pestle_i64s_t dims = PESTLE_NODE_I64S(n, broadcast_dimensions);
      for (int32_t d = 0; d < from->rank; ++d) {
        if (from->dims[d] != 1) out->at[d] = at->at[dims.data[d]];
      }
      return true;
    }
    default:
      // A scalar goes with each element.
      if (from->rank) *out = *at;
      return from->rank == 0 || from->rank == to->rank;
  }
}

// --- Products ---

static bool is_argument(const trace_t* t, const pestle_value_t* v,
                        uint32_t from, uint32_t to) {
  return !v->node && v->block == t->s->body && v->index >= from &&
         v->index < to;
}

// [.., k] x [k, n] or [n, k]: the dim of the result that is n, or -1.
static int32_t matrix_dim(const pestle_node_t* n, int64_t* out_depth,
                          bool* out_by_columns) {
  const pestle_type_t* a = pestle_node_operand(n, 0)->type;
  const pestle_type_t* b = pestle_node_operand(n, 1)->type;
  pestle_i64s_t of_a = PESTLE_NODE_I64S(n, lhs_contracting_dimensions);
  pestle_i64s_t of_b = PESTLE_NODE_I64S(n, rhs_contracting_dimensions);
  if (PESTLE_NODE_I64S(n, lhs_batching_dimensions).count || of_a.count != 1 ||
      b->rank != 2 || a->rank < 1 || a->rank > 2) {
    return -1;
  }
  *out_depth = a->dims[of_a.data[0]];
  *out_by_columns = of_b.data[0] == 1;
  return a->rank - 1;
}

int32_t pestle_scan_rows_dot(const pestle_scan_rows_t* r,
                             const pestle_node_t* node,
                             const pestle_scan_element_t* at) {
  int64_t depth;
  bool by_columns;
  int32_t dim = matrix_dim(node, &depth, &by_columns);
  for (uint32_t i = 0; dim >= 0 && i < r->dots; ++i) {
    if (r->dot[i].node == node && same_at(r->dot[i].column, at->at[dim]))
      return (int32_t)i;
  }
  return -1;
}

static bool is_float(pestle_dtype_t dtype) {
  return dtype == PESTLE_F32 || dtype == PESTLE_F16 || dtype == PESTLE_BF16;
}

static bool trace(trace_t* t, const pestle_value_t* v,
                  const pestle_scan_element_t* at);

static void read_elsewhere(pestle_scan_rows_t* r, uint32_t carry) {
  if (carry < 64) r->elsewhere |= UINT64_C(1) << carry;
}

// The number of the stage that |v| is, which is made first.
static bool trace_stage(trace_t* t, const pestle_value_t* v, int32_t* out) {
  pestle_scan_rows_t* r = t->r;
  pestle_scan_element_t home;
  for (uint32_t i = 0; i < r->stages; ++i) {
    *out = (int32_t)i;
    if (r->stage[i] == v) return true;
  }
  if (!pestle_scan_rows_place(r, v->type, &home) || !trace(t, v, &home) ||
      r->stages == PESTLE_SCAN_ROWS_STAGES) {
    return false;
  }
  *out = (int32_t)r->stages;
  r->stage[r->stages++] = v;
  return true;
}

static bool trace_dot(trace_t* t, const pestle_node_t* n,
                      const pestle_scan_element_t* at) {
  pestle_scan_rows_t* r = t->r;
  const pestle_scan_t* s = t->s;
  const pestle_value_t* a = pestle_node_operand(n, 0);
  const pestle_value_t* b = pestle_node_operand(n, 1);
  uint32_t first = (uint32_t)(s->carry_count + s->xs_count);
  pestle_scan_dot_t dot = {.node = n, .carry = -1, .stage = -1};
  pestle_scan_element_t home;
  int32_t dim = matrix_dim(n, &dot.depth, &dot.by_columns);
  if (dim < 0 || dot.depth != r->width || dot.depth > MOST_DEPTH ||
      !is_argument(t, b, first, UINT32_MAX) || !is_float(a->type->dtype) ||
      !is_float(b->type->dtype) || !is_float(n->results[0].type->dtype) ||
      !pestle_scan_rows_place(r, a->type, &home)) {
    return false;
  }
  // Row by row, and each of the whole row.
  pestle_i64s_t summed = PESTLE_NODE_I64S(n, lhs_contracting_dimensions);
  if (home.at[summed.data[0]].by != 1 || at->at[dim].is_row) return false;
  bool other_row = dim == 1 && r->rows > 1 && !at->at[0].is_row;
  if (other_row) return false;
  if (pestle_scan_rows_dot(r, n, at) >= 0) return true;
  dot.column = at->at[dim];
  dot.matrix = b->index;
  if (is_argument(t, a, 0, (uint32_t)s->carry_count)) {
    dot.carry = (int32_t)a->index;
    read_elsewhere(r, a->index);
  } else if (!trace_stage(t, a, &dot.stage)) {
    return false;
  }
  if (r->dots == PESTLE_SCAN_ROWS_DOTS) return false;
  r->dot[r->dots++] = dot;
  return true;
}

// --- Elements ---

static bool add_load(pestle_scan_load_t* list, uint32_t* count,
                     const pestle_value_t* v, const pestle_scan_element_t* at) {
  for (uint32_t i = 0; i < *count; ++i) {
    if (list[i].argument == v->index &&
        pestle_scan_rows_same(&list[i].at, at, v->type->rank)) {
      return true;
    }
  }
  if (*count == PESTLE_SCAN_ROWS_READS) return false;
  list[(*count)++] = (pestle_scan_load_t){v->index, *at};
  return true;
}

static bool trace_argument(trace_t* t, const pestle_value_t* v,
                           const pestle_scan_element_t* at) {
  pestle_scan_at_t column;
  if (v->index < t->s->carry_count) {
    pestle_scan_element_t home;
    if (pestle_type_count(v->type) == 1) return true;
    if (!pestle_scan_rows_place(t->r, v->type, &home) ||
        !pestle_scan_rows_column(t->r, v->type, at, &column)) {
      return false;
    }
    if (!pestle_scan_rows_same(&home, at, v->type->rank))
      read_elsewhere(t->r, v->index);
    return true;
  }
  if (v->index < t->s->carry_count + t->s->xs_count)
    return add_load(t->r->x, &t->r->xs, v, at);
  return add_load(t->r->fixed, &t->r->fixeds, v, at);
}

static bool trace_node(trace_t* t, const pestle_node_t* n,
                       const pestle_scan_element_t* at) {
  const pestle_type_t* type = n->results[0].type;
  bool scalar = pestle_op_is_scalar((pestle_op_t)n->op);
  bool known = scalar || n->op == PESTLE_OP_CONVERT ||
               n->op == PESTLE_OP_BROADCAST_IN_DIM ||
               n->op == PESTLE_OP_RESHAPE || n->op == PESTLE_OP_SLICE;
  if (n->op == PESTLE_OP_CONSTANT) {
    return PESTLE_NODE_ELEMENTS(n)->splat || pestle_type_count(type) == 1;
  }
  if (n->op == PESTLE_OP_DOT_GENERAL) return trace_dot(t, n, at);
  if (!known || n->result_count != 1) return false;
  bool slow = pestle_op_info((pestle_op_t)n->op)->flags & PESTLE_OP_FLAG_TRANS;
  if (scalar) t->r->ops += slow ? FUNCTION : 1;
  for (uint32_t i = 0; i < n->operand_count; ++i) {
    pestle_scan_element_t from;
    if (!pestle_scan_rows_operand(n, i, at, &from) ||
        !trace(t, pestle_node_operand(n, i), &from)) {
      return false;
    }
  }
  return true;
}

static bool has_numbers(pestle_dtype_t dtype) {
  return is_float(dtype) || dtype == PESTLE_I1 || dtype == PESTLE_I32 ||
         dtype == PESTLE_I64;
}

static bool trace(trace_t* t, const pestle_value_t* v,
                  const pestle_scan_element_t* at) {
  if (!has_numbers(v->type->dtype)) return false;
  for (size_t i = 0; i < t->count; ++i) {
    if (t->seen[i].value == v &&
        pestle_scan_rows_same(&t->seen[i].at, at, v->type->rank)) {
      return true;
    }
  }
  if (t->count == MOST_SEEN) return false;
  t->seen[t->count++] = (seen_t){v, *at};
  return v->node ? trace_node(t, v->node, at) : trace_argument(t, v, at);
}

// --- Entry ---

// What the first carried array is, all of them must be.
static bool find_shape(const pestle_scan_t* s, pestle_scan_rows_t* r) {
  for (size_t i = 0; i < s->carry_count; ++i) {
    const pestle_type_t* type = s->carry[i]->type;
    int64_t dims[2] = {1, 1};
    int32_t found = 0;
    for (int32_t d = 0; d < type->rank; ++d) {
      if (type->dims[d] == 1) continue;
      if (found == 2) return false;
      dims[found++] = type->dims[d];
    }
    if (!found) continue;
    r->rows = found == 2 ? dims[0] : 1;
    r->width = found == 2 ? dims[1] : dims[0];
    return r->width >= LEAST_WIDTH;
  }
  return false;
}

static bool trace_result(trace_t* t, const pestle_value_t* v) {
  pestle_scan_element_t at = {.at = {{false, 0, 0}}};
  if (pestle_type_count(v->type) != 1 &&
      !pestle_scan_rows_place(t->r, v->type, &at)) {
    return false;
  }
  return trace(t, v, &at);
}

bool pestle_scan_rows(const pestle_scan_t* s, pestle_scan_rows_t* out_rows) {
  trace_t t = {.s = s, .r = out_rows};
  memset(out_rows, 0, sizeof(*out_rows));
  if (s->length < 1 || !find_shape(s, out_rows)) return false;
  pestle_scan_element_t home;
  for (size_t i = 0; i < s->carry_count; ++i) {
    const pestle_type_t* type = s->carry[i]->type;
    if (pestle_type_count(type) != 1 &&
        !pestle_scan_rows_place(out_rows, type, &home)) {
      return false;
    }
    if (!trace_result(&t, s->next[i].value)) return false;
  }
  for (size_t i = 0; i < s->ys_count; ++i) {
    if (!trace_result(&t, s->y[i].value)) return false;
  }
  return out_rows->dots > 0;
}

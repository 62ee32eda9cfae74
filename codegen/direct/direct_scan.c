// SPDX-License-Identifier: Apache-2.0
// A scan whose body is few scalars, all of it in one kernel: what is carried stays in
// registers, elements of arrays are read and stacks written where they lie.
//
//   for g in group.x of 1:
//     c[..] = init[..]
//     for t in 0 .. length:
//       x = xs[t, ..];  the body, each element of each value a number of its own
//       ys[t, ..] = y[..];  c[..] = next[..]
//     final[..] = c[..]
//
// pestle_scan_scalar_ops() says of which scans this can be made.
#include "codegen/direct/direct_scan.h"
#include "base/mem.h"

typedef struct scalars_t {
  pestle_direct_t* d;
  pestle_scan_t s;
  pestle_arena_t arena;
  pk_t** made;  // by the scratch of the body's values, an id an element
  size_t next;
  uint32_t* buffers;    // of the operands, then of the results
  uint32_t* variables;  // one an element of the carries
} scalars_t;

const pestle_node_t* pestle_direct_scan_of(const pestle_node_t* node) {
  if (node->op != PESTLE_OP_FUSION) return NULL;
  const pestle_node_t* n = pestle_node_body(node, 0)->first;
  return n && n->op == PESTLE_OP_SCAN && n->next &&
                 n->next->op == PESTLE_OP_RETURN
             ? n
             : NULL;
}

// --- Values ---

static size_t count_of(const pestle_value_t* v) {
  return (size_t)pestle_type_count(v->type);
}

static pestle_status_t begin_value(scalars_t* x, pestle_value_t* v,
                                   pk_t** out) {
  *out = PESTLE_ARENA_ARRAY(&x->arena, pk_t, count_of(v) + 1);
  if (!*out) return PESTLE_OOM();
  v->scratch = x->next;
  x->made[x->next++] = *out;
  return NULL;
}

static const pk_t* of(const scalars_t* x, const pestle_node_t* n, uint32_t i) {
  return x->made[pestle_node_operand(n, i)->scratch];
}

static pk_t index_of(scalars_t* x, int64_t value) {
  return pestle_direct_index(x->d, value);
}

// --- Where elements lie ---

static void strides_of(const pestle_type_t* type, int64_t* out) {
  int64_t stride = 1;
  for (int32_t i = type->rank; i-- > 0;) {
    out[i] = stride;
    stride *= type->dims[i];
  }
}

// Element |at| along each dim.
static void places_of(const pestle_type_t* type, size_t at, int64_t* out) {
  for (int32_t i = type->rank; i-- > 0;) {
    out[i] = (int64_t)at % type->dims[i];
    at /= (size_t)type->dims[i];
  }
}

// The element of operand 0 that element |to| of |n|'s result is.
static size_t moved_from(const pestle_node_t* n, const int64_t* to) {
  const pestle_type_t* from = pestle_node_operand(n, 0)->type;
  int64_t strides[PESTLE_MAX_RANK], at = 0;
  strides_of(from, strides);
  for (int32_t i = 0; i < from->rank; ++i) {
    int64_t place = 0;
    if (n->op == PESTLE_OP_BROADCAST_IN_DIM) {
      int64_t dim = PESTLE_NODE_I64S(n, broadcast_dimensions).data[i];
      place = from->dims[i] == 1 ? 0 : to[dim];
    } else if (n->op == PESTLE_OP_SLICE) {
      place = PESTLE_NODE_I64S(n, start_indices).data[i] +
              to[i] * PESTLE_NODE_I64S(n, strides).data[i];
    } else if (n->op == PESTLE_OP_REVERSE) {
      bool turned = pestle_i64s_has(PESTLE_NODE_I64S(n, dimensions), i);
      place = turned ? from->dims[i] - 1 - to[i] : to[i];
    }
    at += place * strides[i];
  }
  if (n->op != PESTLE_OP_TRANSPOSE) return (size_t)at;
  pestle_i64s_t order = PESTLE_NODE_I64S(n, permutation);
  for (size_t i = 0; i < order.count; ++i)
    at += to[i] * strides[order.data[i]];
  return (size_t)at;
}

// --- Ops ---

static void make_constant(scalars_t* x, const pestle_node_t* n, pk_t* out) {
  const pestle_elements_t* e = PESTLE_NODE_ELEMENTS(n);
  size_t size = pestle_dtype_size(e->type.dtype);
  for (size_t i = 0; i < count_of(n->results); ++i) {
    pestle_elements_t one = {pestle_type_make(e->type.dtype, 0, NULL),
                             (const char*)e->data + (e->splat ? 0 : i * size),
                             size, true};
    double f;
    int64_t number;
    pestle_elements_first(&one, &f, &number);
    out[i] = pestle_kir_const(x->d->k, e->type.dtype, 1, f, number);
  }
}

static void make_iota(scalars_t* x, const pestle_node_t* n, pk_t* out) {
  const pestle_type_t* type = n->results[0].type;
  int64_t to[PESTLE_MAX_RANK];
  for (size_t i = 0; i < count_of(n->results); ++i) {
    places_of(type, i, to);
    int64_t place = to[PESTLE_NODE_I64(n, iota_dimension)];
    out[i] = pestle_kir_const(x->d->k, type->dtype, 1, (double)place, place);
  }
}

// Operands of rank 0 go with each element.
static void make_scalars(scalars_t* x, const pestle_node_t* n, pk_t* out) {
  for (size_t i = 0; i < count_of(n->results); ++i) {
    pk_t args[3] = {PESTLE_KIR_NONE, PESTLE_KIR_NONE, PESTLE_KIR_NONE};
    for (uint32_t a = 0; a < n->operand_count && a < 3; ++a) {
      bool one = !pestle_node_operand(n, a)->type->rank;
      args[a] = of(x, n, a)[one ? 0 : i];
    }
    pestle_dtype_t dtype = n->results[0].type->dtype;
    out[i] = n->op == PESTLE_OP_CONVERT
                 ? pestle_kir_cast(x->d->k, args[0], dtype)
             : n->op == PESTLE_OP_BITCAST_CONVERT
                 ? pestle_kir_bitcast(x->d->k, args[0], dtype)
                 : pestle_kir_scalar(x->d->k, (pestle_op_t)n->op, args[0],
                                     args[1], args[2]);
  }
}

static void make_moved(scalars_t* x, const pestle_node_t* n, pk_t* out) {
  int64_t to[PESTLE_MAX_RANK];
  for (size_t i = 0; i < count_of(n->results); ++i) {
    places_of(n->results[0].type, i, to);
    out[i] = of(x, n, 0)[n->op == PESTLE_OP_RESHAPE ? i : moved_from(n, to)];
  }
}

static void make_concatenation(scalars_t* x, const pestle_node_t* n,
                               pk_t* out) {
  int64_t axis = PESTLE_NODE_I64(n, dimension);
  int64_t to[PESTLE_MAX_RANK], strides[PESTLE_MAX_RANK];
  for (size_t i = 0; i < count_of(n->results); ++i) {
    places_of(n->results[0].type, i, to);
    uint32_t part = 0;
    while (to[axis] >= pestle_node_operand(n, part)->type->dims[axis])
      to[axis] -= pestle_node_operand(n, part++)->type->dims[axis];
    const pestle_type_t* type = pestle_node_operand(n, part)->type;
    int64_t at = 0;
    strides_of(type, strides);
    for (int32_t d = 0; d < type->rank; ++d)
      at += to[d] * strides[d];
    out[i] = of(x, n, part)[at];
  }
}

static void make_reduction(scalars_t* x, const pestle_node_t* n, pk_t* out) {
  const pestle_type_t* from = pestle_node_operand(n, 0)->type;
  pestle_op_t op = pestle_block_reduce_op(pestle_node_body(n, 0));
  pestle_i64s_t gone = PESTLE_NODE_I64S(n, dimensions);
  int64_t places[PESTLE_MAX_RANK];
  for (size_t i = 0; i < count_of(n->results); ++i)
    out[i] = of(x, n, 1)[0];
  for (size_t i = 0; i < (size_t)pestle_type_count(from); ++i) {
    int64_t at = 0;
    places_of(from, i, places);
    for (int32_t d = 0; d < from->rank; ++d) {
      if (!pestle_i64s_has(gone, d)) at = at * from->dims[d] + places[d];
    }
    out[at] = pestle_direct_op(x->d, op, out[at], of(x, n, 0)[i]);
  }
}

// The dims of an operand of a product in the order of the result's: batches, own ones, and
// behind them those that are summed over.
static int32_t order_dims(const pestle_type_t* type, pestle_i64s_t batch,
                          pestle_i64s_t summed, int32_t* out) {
  int32_t count = 0;
  for (size_t i = 0; i < batch.count; ++i)
    out[count++] = (int32_t)batch.data[i];
  for (int32_t d = 0; d < type->rank; ++d) {
    if (!pestle_i64s_has(batch, d) && !pestle_i64s_has(summed, d))
      out[count++] = d;
  }
  int32_t kept = count;
  for (size_t i = 0; i < summed.count; ++i)
    out[count++] = (int32_t)summed.data[i];
  return kept;
}

static void make_product(scalars_t* x, const pestle_node_t* n, pk_t* out) {
  const pestle_type_t* a = pestle_node_operand(n, 0)->type;
  const pestle_type_t* b = pestle_node_operand(n, 1)->type;
  const pestle_type_t* y = n->results[0].type;
  pestle_i64s_t summed = PESTLE_NODE_I64S(n, lhs_contracting_dimensions);
  int32_t batches = (int32_t)PESTLE_NODE_I64S(n, lhs_batching_dimensions).count;
  int32_t of_a[PESTLE_MAX_RANK], of_b[PESTLE_MAX_RANK];
  int64_t step_a[PESTLE_MAX_RANK], step_b[PESTLE_MAX_RANK];
  int64_t to[PESTLE_MAX_RANK], terms = 1;
  int32_t kept_a =
      order_dims(a, PESTLE_NODE_I64S(n, lhs_batching_dimensions), summed, of_a);
  int32_t kept_b =
      order_dims(b, PESTLE_NODE_I64S(n, rhs_batching_dimensions),
                 PESTLE_NODE_I64S(n, rhs_contracting_dimensions), of_b);
  strides_of(a, step_a);
  strides_of(b, step_b);
  for (size_t i = 0; i < summed.count; ++i)
    terms *= a->dims[summed.data[i]];
  for (size_t i = 0; i < count_of(n->results); ++i) {
    int64_t base_a = 0, base_b = 0;
    places_of(y, i, to);
    for (int32_t d = 0; d < kept_a; ++d)
      base_a += to[d] * step_a[of_a[d]];
    for (int32_t d = 0; d < kept_b; ++d)
      base_b += to[d < batches ? d : kept_a + d - batches] * step_b[of_b[d]];
    double zero = 0;
    out[i] = pestle_kir_const(x->d->k, y->dtype, 1, zero, 0);
    for (int64_t t = 0; t < terms; ++t) {
      int64_t at_a = base_a, at_b = base_b, left = t;
      for (size_t s = summed.count; s-- > 0;) {
        int64_t extent = a->dims[summed.data[s]], place = left % extent;
        left /= extent;
        at_a += place * step_a[of_a[kept_a + (int32_t)s]];
        at_b += place * step_b[of_b[kept_b + (int32_t)s]];
      }
      pk_t term = pestle_direct_op(x->d, PESTLE_OP_MULTIPLY, of(x, n, 0)[at_a],
                                   of(x, n, 1)[at_b]);
      out[i] = t ? pestle_direct_op(x->d, PESTLE_OP_ADD, out[i], term) : term;
    }
  }
}

// Of an array in memory, as near to the place that is said as fits.
static void make_slice(scalars_t* x, const pestle_node_t* n, pk_t* out) {
  const pestle_value_t* array = pestle_node_operand(n, 0);
  const pestle_type_t *from = array->type, *type = n->results[0].type;
  int64_t strides[PESTLE_MAX_RANK], to[PESTLE_MAX_RANK];
  pk_t base = index_of(x, 0);
  strides_of(from, strides);
  for (int32_t d = 0; d < from->rank; ++d) {
    pk_t at = of(x, n, 1 + (uint32_t)d)[0];
    int64_t most = from->dims[d] - type->dims[d];
    // One of u64 may be above all that an index is.
    if (pestle_kir_type_of(x->d->k, at) == PESTLE_U64) {
      pk_t limit = pestle_kir_int(x->d->k, PESTLE_U64, 1, most);
      at = pestle_direct_op(x->d, PESTLE_OP_MINIMUM, at, limit);
    }
    at = pestle_kir_cast(x->d->k, at, PESTLE_INDEX);
    at = pestle_direct_clamp(x->d, at, 0, most);
    base = pestle_kir_madi(x->d->k, at, strides[d], base);
  }
  for (size_t i = 0; i < count_of(n->results); ++i) {
    int64_t offset = 0;
    places_of(type, i, to);
    for (int32_t d = 0; d < type->rank; ++d)
      offset += to[d] * strides[d];
    pk_t place = index_of(x, offset);
    place = pestle_direct_op(x->d, PESTLE_OP_ADD, base, place);
    out[i] = pestle_direct_load(x->d, x->buffers[array->index], place);
  }
}

static pestle_status_t make_node(scalars_t* x, pestle_node_t* n) {
  pk_t* out;
  PESTLE_TRY(begin_value(x, &n->results[0], &out));
  switch ((int)n->op) {
    case PESTLE_OP_CONSTANT:
      make_constant(x, n, out);
      return NULL;
    case PESTLE_OP_IOTA:
      make_iota(x, n, out);
      return NULL;
    case PESTLE_OP_BROADCAST_IN_DIM:
    case PESTLE_OP_RESHAPE:
    case PESTLE_OP_TRANSPOSE:
    case PESTLE_OP_SLICE:
    case PESTLE_OP_REVERSE:
      make_moved(x, n, out);
      return NULL;
    case PESTLE_OP_CONCATENATE:
      make_concatenation(x, n, out);
      return NULL;
    case PESTLE_OP_REDUCE:
      make_reduction(x, n, out);
      return NULL;
    case PESTLE_OP_DOT_GENERAL:
      make_product(x, n, out);
      return NULL;
    case PESTLE_OP_DYNAMIC_SLICE:
      make_slice(x, n, out);
      return NULL;
    default:
      make_scalars(x, n, out);
      return NULL;
  }
}

// --- The loop ---

static pestle_status_t load_all(scalars_t* x, size_t operand, pk_t base) {
  pk_t* out;
  pestle_value_t* v = x->s.body->arguments[operand];
  PESTLE_TRY(begin_value(x, v, &out));
  for (size_t i = 0; i < count_of(v); ++i) {
    pk_t at =
        pestle_direct_op(x->d, PESTLE_OP_ADD, base, index_of(x, (int64_t)i));
    out[i] = pestle_direct_load(x->d, x->buffers[operand], at);
  }
  return NULL;
}

static void store_all(scalars_t* x, uint32_t buffer, const pestle_value_t* v,
                      const pk_t* values, pk_t base) {
  for (size_t i = 0; i < count_of(v); ++i) {
    pk_t at =
        pestle_direct_op(x->d, PESTLE_OP_ADD, base, index_of(x, (int64_t)i));
    pestle_direct_store(x->d, buffer, at, values[i]);
  }
}

// The carries as variables, begun with what the operands hold.
static pestle_status_t begin_carries(scalars_t* x) {
  size_t total = 0;
  for (size_t i = 0; i < x->s.carry_count; ++i)
    total += count_of(x->s.carry[i]);
  x->variables = PESTLE_ARENA_ARRAY(&x->arena, uint32_t, total + 1);
  if (!x->variables) return PESTLE_OOM();
  size_t at = 0;
  for (size_t i = 0; i < x->s.carry_count; ++i) {
    const pestle_value_t* v = x->s.carry[i];
    for (size_t e = 0; e < count_of(v); ++e) {
      uint32_t variable = pestle_direct_variable(x->d, "c", v->type->dtype, 1);
      pk_t from = index_of(x, (int64_t)e);
      pestle_direct_set(x->d, variable,
                        pestle_direct_load(x->d, x->buffers[i], from));
      x->variables[at++] = variable;
    }
  }
  return NULL;
}

static pestle_status_t get_carries(scalars_t* x) {
  size_t at = 0;
  for (size_t i = 0; i < x->s.carry_count; ++i) {
    pk_t* out;
    PESTLE_TRY(begin_value(x, x->s.carry[i], &out));
    for (size_t e = 0; e < count_of(x->s.carry[i]); ++e)
      out[e] = pestle_direct_get(x->d, x->variables[at++]);
  }
  return NULL;
}

static void set_carries(scalars_t* x) {
  size_t at = 0;
  for (size_t i = 0; i < x->s.carry_count; ++i) {
    const pk_t* next = x->made[x->s.next[i].value->scratch];
    for (size_t e = 0; e < count_of(x->s.carry[i]); ++e)
      pestle_direct_set(x->d, x->variables[at++], next[e]);
  }
}

static pestle_status_t emit_turn(scalars_t* x, pk_t row) {
  const pestle_scan_t* s = &x->s;
  PESTLE_TRY(get_carries(x));
  for (size_t i = 0; i < s->xs_count; ++i) {
    int64_t size = pestle_type_count(s->x[i]->type);
    pk_t base = pestle_kir_madi(x->d->k, row, size, PESTLE_KIR_NONE);
    PESTLE_TRY(load_all(x, s->carry_count + i, base));
  }
  for (pestle_node_t* n = s->body->first; n != s->body->last; n = n->next)
    PESTLE_TRY(make_node(x, n));
  for (size_t i = 0; i < s->ys_count; ++i) {
    const pestle_value_t* y = s->y[i].value;
    uint32_t buffer = x->buffers[s->node->operand_count + s->carry_count + i];
    pk_t base = pestle_kir_madi(x->d->k, row, pestle_type_count(y->type),
                                PESTLE_KIR_NONE);
    store_all(x, buffer, y, x->made[y->scratch], base);
  }
  set_carries(x);
  return NULL;
}

static pestle_status_t emit_loop(scalars_t* x) {
  const pestle_scan_t* s = &x->s;
  pk_t zero = index_of(x, 0);
  (void)pestle_kir_for(x->d->k, "g", zero, index_of(x, 1), 1,
                       PESTLE_KIR_GROUP_X);
  size_t first = s->carry_count + s->xs_count;
  for (size_t i = 0; i < s->constant_count; ++i) {
    if (!pestle_scan_is_looked_up(s, i))
      PESTLE_TRY(load_all(x, first + i, zero));
  }
  PESTLE_TRY(begin_carries(x));
  if (s->length) {
    pk_t row = pestle_kir_for(x->d->k, "t", zero, index_of(x, s->length), 1,
                              PESTLE_KIR_SERIAL);
    if (s->reverse)
      row = pestle_kir_madi(x->d->k, row, -1, index_of(x, s->length - 1));
    PESTLE_TRY(emit_turn(x, row));
    pestle_kir_end(x->d->k);
  }
  PESTLE_TRY(get_carries(x));
  for (size_t i = 0; i < s->carry_count; ++i) {
    store_all(x, x->buffers[s->node->operand_count + i], s->carry[i],
              x->made[s->carry[i]->scratch], zero);
  }
  pestle_kir_end(x->d->k);
  return NULL;
}

static pestle_status_t emit(scalars_t* x) {
  const pestle_scan_t* s = &x->s;
  size_t values = s->body->argument_count + 2 * s->carry_count;
  for (const pestle_node_t* n = s->body->first; n; n = n->next)
    values += n->result_count;
  x->made = PESTLE_ARENA_ARRAY(&x->arena, pk_t*, values + 1);
  if (!x->made) return PESTLE_OOM();
  PESTLE_TRY(pestle_direct_scan_buffers(x->d, &x->arena, s, &x->buffers));
  return emit_loop(x);
}

pestle_status_t pestle_direct_scan_buffers(pestle_direct_t* d,
                                           pestle_arena_t* arena,
                                           const pestle_scan_t* s,
                                           uint32_t** out_buffers) {
  size_t operands = s->node->operand_count, results = s->node->result_count;
  uint32_t* buffers =
      PESTLE_ARENA_ARRAY(arena, uint32_t, operands + results + 1);
  if (!buffers) return PESTLE_OOM();
  for (size_t i = 0; i < operands; ++i)
    buffers[i] = pestle_direct_operand(d, i);
  for (size_t i = 0; i < results; ++i)
    buffers[operands + i] = pestle_direct_result(d, i);
  *out_buffers = buffers;
  return NULL;
}

pestle_status_t pestle_direct_scan(pestle_direct_t* d) {
  const pestle_node_t* node = pestle_direct_scan_of(d->node);
  scalars_t x = {.d = d, .s = pestle_scan_read(node)};
  int64_t elements, ops = pestle_scan_wide_ops(&x.s, &elements);
  if (ops >= 0) return pestle_direct_scan_wide(d, &x.s, elements, ops);
  ops = pestle_scan_scalar_ops(&x.s);
  pestle_scan_rows_t rows;
  if (ops < 0 && pestle_scan_rows(&x.s, &rows))
    return pestle_direct_scan_rows(d, &x.s, &rows);
  if (ops < 0) {
    return pestle_node_error(node, PESTLE_STATUS_INTERNAL,
                             "the body is not known to be of few scalars");
  }
  pestle_arena_init(d->k->allocator, &x.arena);
  pestle_status_t status = emit(&x);
  pestle_arena_deinit(&x.arena);
  d->steps = (uint64_t)x.s.length * (uint64_t)(ops + 4);
  return status;
}

// SPDX-License-Identifier: Apache-2.0
// gather and scatter. Windows that leave their tensor are moved into it by gather and
// left out by scatter; what takes one for the other has to say so.
#include <math.h>
#include <string.h>

#include "base/fault.h"
#include "ir/copy.h"
#include "transform/transform.h"

static pv_t* operand(const pestle_node_t* node, size_t index) {
  return pestle_node_operand(node, index);
}

// --- One description of both ---

// How windows of |dims| lie: what gather calls offset_dims, scatter update_window_dims.
typedef struct places_t {
  pestle_i64s_t window_dims, inserted, batching, index_batching, index_map;
  int64_t vector_dim;
  bool sorted, unique;
  int64_t sizes[PESTLE_MAX_RANK];  // of a window, along each dim of the tensor
} places_t;

static void read_gather(const pestle_node_t* node, places_t* p) {
  pestle_i64s_t sizes = PESTLE_NODE_I64S(node, slice_sizes);
  *p = (places_t){
      .window_dims = PESTLE_NODE_I64S(node, offset_dims),
      .inserted = PESTLE_NODE_I64S(node, collapsed_slice_dims),
      .batching = PESTLE_NODE_I64S(node, operand_batching_dims),
      .index_batching = PESTLE_NODE_I64S(node, start_indices_batching_dims),
      .index_map = PESTLE_NODE_I64S(node, start_index_map),
      .vector_dim = PESTLE_NODE_I64(node, index_vector_dim),
      .sorted = PESTLE_NODE_BOOL(node, indices_are_sorted)};
  memcpy(p->sizes, sizes.data, sizes.count * sizeof(int64_t));
}

static void read_scatter(const pestle_node_t* node, places_t* p) {
  const pestle_type_t* type = operand(node, 0)->type;
  const pestle_type_t* updates = operand(node, 2)->type;
  *p = (places_t){
      .window_dims = PESTLE_NODE_I64S(node, update_window_dims),
      .inserted = PESTLE_NODE_I64S(node, inserted_window_dims),
      .batching = PESTLE_NODE_I64S(node, input_batching_dims),
      .index_batching = PESTLE_NODE_I64S(node, scatter_indices_batching_dims),
      .index_map = PESTLE_NODE_I64S(node, scatter_dims_to_operand_dims),
      .vector_dim = PESTLE_NODE_I64(node, index_vector_dim),
      .sorted = PESTLE_NODE_BOOL(node, indices_are_sorted),
      .unique = PESTLE_NODE_BOOL(node, unique_indices)};
  size_t next = 0;
  for (int32_t d = 0; d < type->rank; ++d) {
    bool is_one =
        pestle_i64s_has(p->inserted, d) || pestle_i64s_has(p->batching, d);
    p->sizes[d] = is_one ? 1 : updates->dims[p->window_dims.data[next++]];
  }
}

static pv_t* gather(pestle_formula_t* f, const places_t* p, pv_t* a,
                    pv_t* indices) {
  if (!a || !indices) return NULL;
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64S(offset_dims, p->window_dims.data, p->window_dims.count),
      PESTLE_SET_I64S(collapsed_slice_dims, p->inserted.data,
                      p->inserted.count),
      PESTLE_SET_I64S(operand_batching_dims, p->batching.data,
                      p->batching.count),
      PESTLE_SET_I64S(start_indices_batching_dims, p->index_batching.data,
                      p->index_batching.count),
      PESTLE_SET_I64S(start_index_map, p->index_map.data, p->index_map.count),
      PESTLE_SET_I64(index_vector_dim, p->vector_dim),
      PESTLE_SET_I64S(slice_sizes, p->sizes, (size_t)a->type->rank),
      PESTLE_SET_BOOL(indices_are_sorted, p->sorted)};
  pv_t* operands[2] = {a, indices};
  return pestle_f_make(f, PESTLE_OP_GATHER, operands, 2, attrs,
                       sizeof(attrs) / sizeof(attrs[0]), NULL);
}

// |op| combines, PESTLE_OP_COUNT: the update is taken.
static pv_t* scatter(pestle_formula_t* f, const places_t* p, pestle_op_t op,
                     pv_t* a, pv_t* indices, pv_t* updates) {
  if (!a || !updates) return NULL;
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64S(update_window_dims, p->window_dims.data,
                      p->window_dims.count),
      PESTLE_SET_I64S(inserted_window_dims, p->inserted.data,
                      p->inserted.count),
      PESTLE_SET_I64S(input_batching_dims, p->batching.data, p->batching.count),
      PESTLE_SET_I64S(scatter_indices_batching_dims, p->index_batching.data,
                      p->index_batching.count),
      PESTLE_SET_I64S(scatter_dims_to_operand_dims, p->index_map.data,
                      p->index_map.count),
      PESTLE_SET_I64(index_vector_dim, p->vector_dim),
      PESTLE_SET_BOOL(indices_are_sorted, p->sorted),
      PESTLE_SET_BOOL(unique_indices, p->unique)};
  pestle_region_t* region = pestle_f_region(f, op, a->type->dtype);
  pv_t* operands[3] = {a, indices, updates};
  return pestle_f_emit(
      f, &(pestle_node_spec_t){.op = PESTLE_OP_SCATTER,
                               .operands = operands,
                               .operand_count = 3,
                               .attrs = attrs,
                               .attr_count = sizeof(attrs) / sizeof(attrs[0]),
                               .regions = &region,
                               .region_count = 1});
}

// --- Windows inside the tensor ---

// The largest number of |dtype|, an integer, as far as extents go.
static double most_of(pestle_dtype_t dtype) {
  unsigned bits = pestle_dtype_info(dtype)->bits;
  bool has_sign = pestle_dtype_is(dtype, PESTLE_KIND_SIGNED);
  return ldexp(1, (int)bits - has_sign) - 1;
}

// The largest place that a window may have in |type|, in the shape of |indices|; what these
// can name at most, where that is less.
static pv_t* last_places(pestle_formula_t* f, const places_t* p,
                         const pestle_type_t* type, pv_t* indices) {
  double last[PESTLE_MAX_RANK] = {0};
  for (size_t i = 0; i < p->index_map.count; ++i) {
    int64_t d = p->index_map.data[i];
    last[i] = fmin((double)(type->dims[d] - p->sizes[d]),
                   most_of(indices->type->dtype));
  }
  int64_t count = (int64_t)p->index_map.count;
  if (p->vector_dim == indices->type->rank) {
    return pestle_f_splat(f, indices, last[0]);
  }
  pestle_type_t list = pestle_type_make(indices->type->dtype, 1, &count);
  return pestle_f_broadcast_to(f, pestle_f_numbers(f, &list, last),
                               indices->type, &p->vector_dim);
}

// Whether every place that |indices| can name is inside.
static bool is_inside(const places_t* p, const pestle_type_t* type,
                      const pv_t* indices) {
  const pestle_node_t* n = indices->node;
  if (!n || n->op != PESTLE_OP_IOTA) return false;
  int64_t high = indices->type->dims[PESTLE_NODE_I64(n, iota_dimension)] - 1;
  for (size_t i = 0; i < p->index_map.count; ++i) {
    int64_t d = p->index_map.data[i];
    if (high > type->dims[d] - p->sizes[d]) return false;
  }
  return true;
}

// Where gather reads: |indices| moved inside.
static pv_t* moved_inside(pestle_formula_t* f, const places_t* p,
                          const pestle_type_t* type, pv_t* indices) {
  if (is_inside(p, type, indices)) return indices;
  pv_t* last = last_places(f, p, type, indices);
  pv_t* zero = pestle_zeros(f, indices);
  return pestle_f_clamp(f, zero, indices, last);
}

// For each element of |updates| whether scatter has its window.
static pv_t* is_kept(pestle_formula_t* f, const places_t* p,
                     const pestle_type_t* type, pv_t* indices,
                     const pestle_type_t* updates) {
  int64_t axes[PESTLE_MAX_RANK];
  int32_t n = 0;
  if (is_inside(p, type, indices)) return NULL;
  pv_t* last = last_places(f, p, type, indices);
  pv_t* is_low = pestle_f_le(f, pestle_zeros(f, indices), indices);
  pv_t* is_high = pestle_f_le(f, indices, last);
  pv_t* flags = pestle_f_and(f, is_low, is_high);
  if (p->vector_dim < indices->type->rank) {
    pestle_i64s_t axis = {&p->vector_dim, 1};
    flags = pestle_f_reduce(f, PESTLE_OP_AND, flags, axis, 1);
  }
  for (int32_t d = 0; d < updates->rank; ++d) {
    if (!pestle_i64s_has(p->window_dims, d)) axes[n++] = d;
  }
  pestle_type_t whole = *updates;
  whole.dtype = PESTLE_I1;
  return pestle_f_broadcast_to(f, flags, &whole, axes);
}

// What gather finds at the places of |updates|, 0 where scatter leaves them out.
static pv_t* gather_kept(pestle_formula_t* f, const places_t* p, pv_t* a,
                         pv_t* indices, const pestle_type_t* updates) {
  if (!a) return NULL;
  pv_t* kept = PESTLE_FAULT(kept_outside)
                   ? NULL
                   : is_kept(f, p, a->type, indices, updates);
  pv_t* parts = gather(f, p, a, indices);
  if (!kept || !parts) return parts;
  return pestle_f_select(f, kept, parts, pestle_zeros(f, parts));
}

// --- gather ---

void pestle_transpose_gather(pestle_transposer_t* x, pestle_node_t* node,
                             pv_t* const* ct) {
  places_t p;
  read_gather(node, &p);
  pv_t* like = operand(node, 0);
  pv_t* indices = moved_inside(&x->f, &p, like->type, operand(node, 1));
  p.sorted = p.sorted && indices == operand(node, 1);
  pestle_cotangent_add(
      x, node, 0,
      scatter(&x->f, &p,
              PESTLE_FAULT(gather_overwrites) ? PESTLE_OP_COUNT : PESTLE_OP_ADD,
              pestle_zeros(&x->f, like), indices, ct[0]));
}

// --- scatter ---

static bool is_overwrite(const pestle_node_t* node) {
  const pestle_block_t* body = pestle_node_body(node, 0);
  return body->first == body->last &&
         operand(body->last, 0) == body->arguments[1];
}

// x * u: tx scattered likewise, and what u's tangent adds to the product of the rest,
// which is x as long as no place comes twice.
static void jvp_product(pestle_jvp_t* j, const pestle_node_t* node,
                        const places_t* p, pv_t* const* t, pv_t** out) {
  pestle_formula_t* f = &j->f;
  pv_t *x = operand(node, 0), *u = operand(node, 2), *at = operand(node, 1);
  pv_t* terms[2] = {NULL, NULL};
  if (t[2] && !p->unique) {
    pestle_jvp_refuse(j, node,
                      "multiplies, and has a derivative by its updates where "
                      "its indices are unique; say so by unique_indices");
    return;
  }
  if (t[0]) terms[0] = scatter(f, p, PESTLE_OP_MULTIPLY, t[0], at, u);
  if (t[2]) {
    pv_t* part = pestle_f_multiply(f, t[2], gather(f, p, x, at));
    terms[1] = scatter(f, p, PESTLE_OP_ADD, pestle_zeros(f, x), at, part);
  }
  out[0] = pestle_sum(f, terms, 2);
}

// The mean of the tangents of what is equal to the result.
static void jvp_extremum(pestle_jvp_t* j, const pestle_node_t* node,
                         const places_t* p, pv_t* const* t, pv_t** out) {
  pestle_formula_t* f = &j->f;
  pv_t *x = operand(node, 0), *u = operand(node, 2), *at = operand(node, 1);
  pv_t* y = pestle_node_result(node, 0);
  pv_t* is_x = pestle_f_eq(f, x, y);
  pv_t* is_u = pestle_f_eq(f, u, gather(f, p, y, at));
  pv_t* none = pestle_zeros(f, x);
  pv_t* zeros = pestle_zeros(f, u);
  pv_t* count = pestle_f_convert(f, is_x, x->type->dtype);
  pv_t* more = pestle_f_convert(f, is_u, u->type->dtype);
  count = scatter(f, p, PESTLE_OP_ADD, count, at, more);
  pv_t* sum = t[0] ? pestle_f_select(f, is_x, t[0], none) : none;
  more = t[2] ? pestle_f_select(f, is_u, t[2], zeros) : zeros;
  sum = scatter(f, p, PESTLE_OP_ADD, sum, at, more);
  out[0] = pestle_f_divide(f, sum, count);
}

void pestle_jvp_scatter(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                        pv_t** out) {
  pestle_formula_t* f = &j->f;
  places_t p;
  pestle_op_t op = pestle_block_reduce_op(pestle_node_body(node, 0));
  if (node->operand_count != 3) {
    pestle_jvp_refuse(j, node,
                      "has a derivative for one input; scatter each by itself");
    return;
  }
  read_scatter(node, &p);
  if (op == PESTLE_OP_ADD || is_overwrite(node)) {
    pv_t* a = t[0] ? t[0] : pestle_zeros(f, operand(node, 0));
    pv_t* b = t[2] ? t[2] : pestle_zeros(f, operand(node, 2));
    out[0] = scatter(f, &p, op, a, operand(node, 1), b);
  } else if (op == PESTLE_OP_MULTIPLY) {
    jvp_product(j, node, &p, t, out);
  } else if (op == PESTLE_OP_MAXIMUM || op == PESTLE_OP_MINIMUM) {
    jvp_extremum(j, node, &p, t, out);
  } else {
    pestle_jvp_refuse(j, node,
                      "has a derivative where its region is add, multiply, "
                      "maximum, minimum or the update itself; write it with "
                      "those");
  }
}

// Of an overwriting scatter the input keeps what nothing was put on, and an update
// what is the last that was put at its place: ids, scattered likewise, tell.
static void transpose_overwrite(pestle_transposer_t* x,
                                const pestle_node_t* node, const places_t* p,
                                pv_t* ct) {
  pestle_formula_t* f = &x->f;
  pv_t *a = operand(node, 0), *u = operand(node, 2), *at = operand(node, 1);
  int64_t count = pestle_type_count(u->type);
  pestle_type_t flat = pestle_type_make(PESTLE_I64, 1, &count);
  pestle_type_t type = *a->type;
  type.dtype = PESTLE_I64;
  pv_t* ids = pestle_f_plus(f, pestle_f_iota(f, &flat, 0), 1);
  ids = pestle_f_reshape_to(f, ids, u->type);
  pv_t* none = pestle_f_number(f, &type, 0);
  pv_t* last = scatter(f, p, PESTLE_OP_COUNT, none, at, ids);
  if (pestle_is_linear(x, a)) {
    pv_t* zeros = pestle_zeros(f, ct);
    pv_t* is_free = pestle_f_eq(f, last, none);
    pestle_cotangent_add(x, node, 0, pestle_f_select(f, is_free, ct, zeros));
  }
  if (!pestle_is_linear(x, u)) return;
  pv_t* part = gather_kept(f, p, ct, at, u->type);
  if (!p->unique) {
    pv_t* zeros = pestle_zeros(f, u);
    pv_t* is_last = pestle_f_eq(f, gather(f, p, last, at), ids);
    part = pestle_f_select(f, is_last, part, zeros);
  }
  pestle_cotangent_add(x, node, 2, part);
}

void pestle_transpose_scatter(pestle_transposer_t* x, pestle_node_t* node,
                              pv_t* const* ct) {
  pestle_formula_t* f = &x->f;
  places_t p;
  pestle_op_t op = pestle_block_reduce_op(pestle_node_body(node, 0));
  pv_t *at = operand(node, 1), *u = operand(node, 2);
  read_scatter(node, &p);
  if (op == PESTLE_OP_MULTIPLY) {
    pestle_cotangent_add(x, node, 0, scatter(f, &p, op, ct[0], at, u));
  } else if (op != PESTLE_OP_ADD) {
    transpose_overwrite(x, node, &p, ct[0]);
  } else {
    pestle_cotangent_add(x, node, 0, ct[0]);
    if (!pestle_is_linear(x, u)) return;
    pestle_cotangent_add(x, node, 2, gather_kept(f, &p, ct[0], at, u->type));
  }
}

// --- Elements along an axis ---

pv_t* pestle_take_along(pestle_formula_t* f, pv_t* a, pv_t* positions,
                        int64_t axis) {
  int64_t others[PESTLE_MAX_RANK];
  size_t n = 0;
  if (!a || !positions) return NULL;
  places_t p = {.vector_dim = positions->type->rank};
  for (int32_t d = 0; d < a->type->rank; ++d) {
    p.sizes[d] = 1;
    if (d != axis) others[n++] = d;
  }
  p.inserted = (pestle_i64s_t){&axis, 1};
  p.index_map = p.inserted;
  p.batching = p.index_batching = (pestle_i64s_t){others, n};
  return gather(f, &p, a, positions);
}

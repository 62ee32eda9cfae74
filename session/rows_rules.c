// SPDX-License-Identifier: Apache-2.0
// What each op does to rows. A rule may only say what holds for every value of the
// operands: result i of the module for few rows is the first rows of result i of
// that for many. An op that has no row in rule() is not shown.
//
// Most ops keep an axis where it is, unless their attribute names it as one that
// they work along: these are a table. Ops that move axes have a function each.
#include <string.h>

#include "ir/equal.h"
#include "session/rows_internal.h"

typedef pestle_rows_op_t op_t;

static const pestle_type_t* type(const op_t* op, size_t operand) {
  return pestle_node_operand(op->many, operand)->type;
}
static const pestle_type_t* result_type(const op_t* op) {
  return op->many->results[0].type;
}

// --- Attributes ---

// All but those of |except| (a name, or PESTLE_ATTR_COUNT) are equal.
static bool attrs_equal(const op_t* op, pestle_attr_name_t a,
                        pestle_attr_name_t b) {
  for (uint32_t i = 0; i < op->many->attr_count; ++i) {
    const pestle_attr_t *x = &op->many->attrs[i], *y = &op->few->attrs[i];
    if (x->name != y->name || x->kind != y->kind) return false;
    if (x->name == a || x->name == b) continue;
    if (!pestle_attr_equal(x, y)) return false;
  }
  return true;
}

static bool all_attrs_equal(const op_t* op) {
  return attrs_equal(op, PESTLE_ATTR_COUNT, PESTLE_ATTR_COUNT);
}

// Lists that have a number for each axis are equal but for |axis|.
static bool equal_but(pestle_i64s_t a, pestle_i64s_t b, int32_t axis) {
  if (a.count != b.count) return false;
  for (size_t i = 0; i < a.count; ++i) {
    if ((int32_t)i != axis && a.data[i] != b.data[i]) return false;
  }
  return true;
}

static int32_t place_in(pestle_i64s_t list, int64_t value) {
  for (size_t i = 0; i < list.count; ++i) {
    if (list.data[i] == value) return (int32_t)i;
  }
  return -1;
}

// --- Operands ---

static bool all_same(const op_t* op) {
  for (uint32_t i = 0; i < op->many->operand_count; ++i) {
    if (!pestle_rows_is_same(op->operands[i])) return false;
  }
  return true;
}

// Operands from |first| on.
static bool rest_same(const op_t* op, uint32_t first) {
  for (uint32_t i = first; i < op->many->operand_count; ++i) {
    if (!pestle_rows_is_same(op->operands[i])) return false;
  }
  return true;
}

// The first |count| operands have their rows along one axis.
static bool all_rows(const op_t* op, uint32_t count) {
  if (!count || pestle_rows_is_same(op->operands[0])) return false;
  for (uint32_t i = 1; i < count; ++i) {
    if (!pestle_rows_equal(op->operands[i], op->operands[0])) return false;
  }
  return true;
}

static bool give_all(const op_t* op, relation_t r) {
  for (uint32_t i = 0; i < op->many->result_count; ++i)
    op->results[i] = r;
  return true;
}

static bool give(const op_t* op, int32_t axis, int64_t per) {
  return axis >= 0 && give_all(op, (relation_t){axis, per});
}

static bool give_same(const op_t* op) {
  return give_all(op, pestle_rows_same());
}

// Bodies that take elements and give elements do the same with the same ones.
static bool same_bodies(const op_t* op) {
  relation_t results[64];
  for (uint32_t r = 0; r < op->many->region_count; ++r) {
    const pestle_node_t* last = pestle_node_body(op->many, r)->last;
    if (!last || last->operand_count > 64) return false;
    if (!pestle_rows_body(op, r, NULL, results)) return false;
    for (uint32_t i = 0; i < last->operand_count; ++i) {
      if (!pestle_rows_is_same(results[i])) return false;
    }
  }
  return true;
}

// --- Results whose shape alone says how many rows there are ---

// The only axis along which the results differ, as rows; SAME: none, or several.
static relation_t differing(const op_t* op) {
  const pestle_type_t* a = result_type(op);
  const pestle_type_t* b = op->few->results[0].type;
  relation_t found = pestle_rows_same();
  for (int32_t d = 0; d < a->rank && a->rank == b->rank; ++d) {
    if (a->dims[d] == b->dims[d]) continue;
    if (!pestle_rows_is_same(found)) return pestle_rows_same();
    found = (relation_t){d, a->dims[d] / op->rows->n};
  }
  return found;
}

static bool constant(const op_t* op) {
  const pestle_elements_t* a = PESTLE_NODE_ELEMENTS(op->many);
  const pestle_elements_t* b = PESTLE_NODE_ELEMENTS(op->few);
  if (a->splat != b->splat || b->size > a->size) return false;
  relation_t r = differing(op);
  if (pestle_rows_is_same(r) && a->size != b->size) return false;
  // Of several elements only the outermost axis has its first rows in front.
  for (int32_t d = 0; d < r.axis && !a->splat; ++d) {
    if (a->type.dims[d] != 1) return false;
  }
  if (a->data != b->data && b->size && memcmp(a->data, b->data, b->size) != 0)
    return false;
  return give_all(op, r);
}

static bool iota(const op_t* op) {
  return all_attrs_equal(op) && give_all(op, differing(op));
}

static bool broadcast(const op_t* op) {
  pestle_i64s_t dims = PESTLE_NODE_I64S(op->many, broadcast_dimensions);
  if (!all_attrs_equal(op)) return false;
  relation_t r = op->operands[0], made = differing(op);
  if (pestle_rows_is_same(r)) {
    // What is repeated more often for more rows.
    int32_t from = place_in(dims, made.axis);
    if (!pestle_rows_is_same(made) && from >= 0 && type(op, 0)->dims[from] != 1)
      return false;
    return give_all(op, made);
  }
  int32_t to = (int32_t)dims.data[r.axis];
  // An axis of one row is not one that is repeated.
  const pestle_type_t* few = pestle_node_operand(op->few, 0)->type;
  if (result_type(op)->dims[to] != type(op, 0)->dims[r.axis] ||
      op->few->results[0].type->dims[to] != few->dims[r.axis]) {
    return false;
  }
  return give(op, to, r.per);
}

bool pestle_rows_repeated(const op_t* op) {
  enum { MOST = 1 << 20 };
  const pestle_elements_t* from =
      pestle_value_constant(pestle_node_operand(op->many, 0));
  const pestle_elements_t* made = PESTLE_NODE_ELEMENTS(op->few);
  size_t size = pestle_dtype_size(made->type.dtype);
  int64_t count = pestle_type_count(&made->type);
  pestle_i64s_t dims = PESTLE_NODE_I64S(op->many, broadcast_dimensions);
  if (!from || from->type.dtype != made->type.dtype || count > MOST ||
      pestle_dtype_info(made->type.dtype)->bits != 8 * size) {
    return false;
  }
  for (int64_t i = 0; i < count; ++i) {
    int64_t at[PESTLE_MAX_RANK], place = 0, rest = i;
    for (int32_t d = made->type.rank; d-- > 0; rest /= made->type.dims[d])
      at[d] = rest % made->type.dims[d];
    for (size_t d = 0; d < dims.count; ++d) {
      int64_t extent = from->type.dims[d];
      place = place * extent + (extent == 1 ? 0 : at[dims.data[d]]);
    }
    const char* a =
        (const char*)from->data + (from->splat ? 0 : place) * (int64_t)size;
    const char* b =
        (const char*)made->data + (made->splat ? 0 : i) * (int64_t)size;
    if (memcmp(a, b, size) != 0) return false;
  }
  return give_all(op, differing(op));
}

static int64_t elements_before(const pestle_type_t* t, int32_t axis) {
  int64_t count = 1;
  for (int32_t d = 0; d < axis; ++d)
    count *= t->dims[d];
  return count;
}

// Rows stay in front where as many elements lie around them.
static bool reshape(const op_t* op) {
  relation_t r = op->operands[0], made = differing(op);
  if (pestle_rows_is_same(made)) return false;
  if (elements_before(type(op, 0), r.axis) !=
      elements_before(result_type(op), made.axis)) {
    return false;
  }
  return give(op, made.axis, made.per);
}

// --- Views ---

static bool transpose(const op_t* op) {
  pestle_i64s_t p = PESTLE_NODE_I64S(op->many, permutation);
  return all_attrs_equal(op) &&
         give(op, place_in(p, op->operands[0].axis), op->operands[0].per);
}

static bool slice(const op_t* op) {
  relation_t r = op->operands[0];
  pestle_i64s_t start = PESTLE_NODE_I64S(op->many, start_indices);
  pestle_i64s_t limit = PESTLE_NODE_I64S(op->many, limit_indices);
  pestle_i64s_t other = PESTLE_NODE_I64S(op->few, limit_indices);
  int64_t step = PESTLE_NODE_I64S(op->many, strides).data[r.axis];
  int64_t there = pestle_node_operand(op->few, 0)->type->dims[r.axis];
  // The same few of the rows that both have.
  if (all_attrs_equal(op)) return limit.data[r.axis] <= there && give_same(op);
  bool is_whole = start.data[r.axis] == 0 && step == 1 &&
                  limit.data[r.axis] == type(op, 0)->dims[r.axis] &&
                  other.data[r.axis] == there;
  return is_whole &&
         attrs_equal(op, PESTLE_ATTR_limit_indices, PESTLE_ATTR_COUNT) &&
         equal_but(limit, other, r.axis) && give(op, r.axis, r.per);
}

static bool pad(const op_t* op) {
  relation_t r = op->operands[0];
  return all_attrs_equal(op) && !pestle_rows_is_same(r) && rest_same(op, 1) &&
         !PESTLE_NODE_I64S(op->many, edge_padding_low).data[r.axis] &&
         !PESTLE_NODE_I64S(op->many, edge_padding_high).data[r.axis] &&
         !PESTLE_NODE_I64S(op->many, interior_padding).data[r.axis] &&
         give(op, r.axis, r.per);
}

// Whether a list of sizes takes all of |axis| of operand 0 in both modules, and is
// the same elsewhere.
static bool takes_whole(const op_t* op, int32_t axis) {
  pestle_i64s_t a = PESTLE_NODE_I64S(op->many, slice_sizes);
  pestle_i64s_t b = PESTLE_NODE_I64S(op->few, slice_sizes);
  return attrs_equal(op, PESTLE_ATTR_slice_sizes, PESTLE_ATTR_COUNT) &&
         equal_but(a, b, axis) && a.data[axis] == type(op, 0)->dims[axis] &&
         b.data[axis] == pestle_node_operand(op->few, 0)->type->dims[axis];
}

// Where all of an axis is taken, the place that it is taken from is 0.
static bool dynamic_slice(const op_t* op) {
  relation_t r = op->operands[0];
  return !pestle_rows_is_same(r) && rest_same(op, 1) &&
         takes_whole(op, r.axis) && give(op, r.axis, r.per);
}

static bool dynamic_update(const op_t* op) {
  return all_rows(op, 2) && rest_same(op, 2) &&
         give(op, op->operands[0].axis, op->operands[0].per);
}

// --- Gather ---

// The result's axis that is axis |axis| of the indices.
static int32_t gathered_batch(const op_t* op, int32_t axis) {
  pestle_i64s_t offsets = PESTLE_NODE_I64S(op->many, offset_dims);
  int64_t vector = PESTLE_NODE_I64(op->many, index_vector_dim);
  int32_t place = axis - (axis > vector);
  for (int32_t d = 0; d < result_type(op)->rank; ++d) {
    if (!pestle_i64s_has(offsets, d) && place-- == 0) return d;
  }
  return -1;
}

// The result's axis that is axis |axis| of the operand.
static int32_t gathered_offset(const op_t* op, int32_t axis) {
  pestle_i64s_t offsets = PESTLE_NODE_I64S(op->many, offset_dims);
  pestle_i64s_t gone = PESTLE_NODE_I64S(op->many, collapsed_slice_dims);
  pestle_i64s_t shared = PESTLE_NODE_I64S(op->many, operand_batching_dims);
  size_t place = 0;
  for (int32_t d = 0; d <= axis; ++d) {
    bool is_offset = !pestle_i64s_has(gone, d) && !pestle_i64s_has(shared, d);
    if (d == axis)
      return is_offset && place < offsets.count ? (int32_t)offsets.data[place]
                                                : -1;
    place += is_offset;
  }
  return -1;
}

static bool gather(const op_t* op) {
  relation_t x = op->operands[0], i = op->operands[1];
  pestle_i64s_t shared = PESTLE_NODE_I64S(op->many, operand_batching_dims);
  pestle_i64s_t along = PESTLE_NODE_I64S(op->many, start_indices_batching_dims);
  if (pestle_rows_is_same(i)) {
    return !pestle_rows_is_same(x) && takes_whole(op, x.axis) &&
           give(op, gathered_offset(op, x.axis), x.per);
  }
  if (!all_attrs_equal(op) ||
      i.axis == PESTLE_NODE_I64(op->many, index_vector_dim)) {
    return false;
  }
  int32_t place = place_in(along, i.axis);
  bool fits =
      pestle_rows_is_same(x)
          ? place < 0
          : place >= 0 && shared.data[place] == x.axis && x.per == i.per;
  return fits && give(op, gathered_batch(op, i.axis), i.per);
}

// --- Folds, products, windows ---

static bool reduce(const op_t* op) {
  uint32_t inputs = op->many->operand_count / 2;
  pestle_i64s_t dims = PESTLE_NODE_I64S(op->many, dimensions);
  if (!all_attrs_equal(op) || !all_rows(op, inputs) || !rest_same(op, inputs))
    return false;
  relation_t r = op->operands[0];
  int32_t to = r.axis;
  for (int32_t d = 0; d <= r.axis; ++d) {
    if (!pestle_i64s_has(dims, d)) continue;
    if (d == r.axis) return false;
    --to;
  }
  return same_bodies(op) && give(op, to, r.per);
}

static bool is_number(pestle_i64s_t list, int32_t at, int64_t wanted) {
  return !list.count || list.data[at] == wanted;
}

static bool reduce_window(const op_t* op) {
  uint32_t inputs = op->many->operand_count / 2;
  if (!all_attrs_equal(op) || !all_rows(op, inputs) || !rest_same(op, inputs))
    return false;
  relation_t r = op->operands[0];
  pestle_i64s_t padding = PESTLE_NODE_I64S(op->many, padding);
  bool is_alone =
      is_number(PESTLE_NODE_I64S(op->many, window_dimensions), r.axis, 1) &&
      is_number(PESTLE_NODE_I64S(op->many, window_strides), r.axis, 1) &&
      is_number(PESTLE_NODE_I64S(op->many, base_dilations), r.axis, 1) &&
      is_number(padding, 2 * r.axis, 0) &&
      is_number(padding, 2 * r.axis + 1, 0);
  return is_alone && same_bodies(op) && give(op, r.axis, r.per);
}

// The result's axis of axis |axis| of operand |side|, which is neither summed over
// nor one of the batch.
static int32_t free_axis(const op_t* op, int side, int32_t axis) {
  int32_t at =
      (int32_t)PESTLE_NODE_I64S(op->many, lhs_batching_dimensions).count;
  for (int s = 0; s <= side; ++s) {
    pestle_i64s_t batch =
        s ? PESTLE_NODE_I64S(op->many, rhs_batching_dimensions)
          : PESTLE_NODE_I64S(op->many, lhs_batching_dimensions);
    pestle_i64s_t sum =
        s ? PESTLE_NODE_I64S(op->many, rhs_contracting_dimensions)
          : PESTLE_NODE_I64S(op->many, lhs_contracting_dimensions);
    for (int32_t d = 0; d < type(op, (size_t)s)->rank; ++d) {
      bool is_free = !pestle_i64s_has(batch, d) && !pestle_i64s_has(sum, d);
      if (s == side && d == axis) return is_free ? at : -1;
      at += is_free;
    }
  }
  return -1;
}

static bool dot(const op_t* op) {
  relation_t a = op->operands[0], b = op->operands[1];
  if (!all_attrs_equal(op)) return false;
  if (!pestle_rows_is_same(a) && !pestle_rows_is_same(b)) {
    int32_t place =
        place_in(PESTLE_NODE_I64S(op->many, lhs_batching_dimensions), a.axis);
    return a.per == b.per && place >= 0 &&
           PESTLE_NODE_I64S(op->many, rhs_batching_dimensions).data[place] ==
               b.axis &&
           give(op, place, a.per);
  }
  int side = pestle_rows_is_same(a) ? 1 : 0;
  relation_t r = op->operands[side];
  int32_t to = free_axis(op, side, r.axis);
  return to >= 0 && give(op, to, r.per);
}

static bool convolution(const op_t* op) {
  relation_t x = op->operands[0];
  return all_attrs_equal(op) && rest_same(op, 1) &&
         x.axis == PESTLE_NODE_I64(op->many, input_batch_dimension) &&
         PESTLE_NODE_I64(op->many, batch_group_count) == 1 &&
         give(op, (int32_t)PESTLE_NODE_I64(op->many, output_batch_dimension),
              x.per);
}

// q, k and v have the batch; what is added to scores or masks them has it, or is
// one for all.
static bool attention(const op_t* op) {
  if (!all_attrs_equal(op) || !all_rows(op, 3)) return false;
  relation_t r = op->operands[0];
  if (r.axis >= type(op, 0)->rank - 2) return false;
  for (uint32_t i = 3; i < op->many->operand_count; ++i) {
    bool is_one =
        pestle_rows_is_same(op->operands[i]) && type(op, i)->dims[r.axis] == 1;
    if (!is_one && !pestle_rows_equal(op->operands[i], r)) return false;
  }
  return give(op, r.axis, r.per);
}

// Matrices, or signals, behind the axes of a batch.
static bool batched(const op_t* op, int32_t inner) {
  return all_attrs_equal(op) && all_rows(op, op->many->operand_count) &&
         op->operands[0].axis < type(op, 0)->rank - inner &&
         give(op, op->operands[0].axis, op->operands[0].per);
}

// --- Elements ---

static bool elementwise(const op_t* op) {
  int32_t rank = result_type(op)->rank;
  relation_t r = pestle_rows_same();
  for (uint32_t i = 0; i < op->many->operand_count; ++i) {
    relation_t o = op->operands[i];
    // A predicate or a limit of rank 0 is for all elements.
    if (type(op, i)->rank != rank) {
      if (type(op, i)->rank != 0 || !pestle_rows_is_same(o)) return false;
      continue;
    }
    if (pestle_rows_is_same(o)) return false;
    if (!pestle_rows_is_same(r) && !pestle_rows_equal(o, r)) return false;
    r = o;
  }
  return !pestle_rows_is_same(r) && all_attrs_equal(op) && same_bodies(op) &&
         give(op, r.axis, r.per);
}

// --- Ops that keep an axis which their attribute does not name ---

typedef enum others_e { OTHERS_SAME, OTHERS_ROWS } others_t;

static bool keep(const op_t* op, pestle_attr_name_t name, others_t others) {
  const pestle_attr_t* attr = pestle_node_attr(op->many, name);
  relation_t r = op->operands[0];
  if (!all_attrs_equal(op) || pestle_rows_is_same(r)) return false;
  if (others == OTHERS_ROWS ? !all_rows(op, op->many->operand_count)
                            : !rest_same(op, 1)) {
    return false;
  }
  if (attr->kind == PESTLE_ATTR_KIND_I64S) {
    if (pestle_i64s_has(attr->as.i64s, r.axis)) return false;
  } else {
    int64_t along = attr->as.i64;
    if (along < 0) along += type(op, 0)->rank;
    if (along == r.axis) return false;
  }
  return same_bodies(op) && give(op, r.axis, r.per);
}

// One scale for all elements is along no axis.
static bool quantised(const op_t* op) {
  if (type(op, 1)->rank) return keep(op, PESTLE_ATTR_axis, OTHERS_SAME);
  return all_attrs_equal(op) && !pestle_rows_is_same(op->operands[0]) &&
         rest_same(op, 1) &&
         give(op, op->operands[0].axis, op->operands[0].per);
}

static bool logsumexp(const op_t* op) {
  relation_t r = op->operands[0];
  pestle_i64s_t dims = PESTLE_NODE_I64S(op->many, dimensions);
  if (!keep(op, PESTLE_ATTR_dimensions, OTHERS_SAME)) return false;
  int32_t to = r.axis;
  for (int32_t d = 0; d < r.axis; ++d)
    to -= pestle_i64s_has(dims, d);
  return give(op, to, r.per);
}

// --- Loops and branches ---

// What is carried is related after each turn as it was before the first.
static bool loop(const op_t* op) {
  relation_t flag, *after = op->results;
  if (!pestle_rows_body(op, 0, op->operands, &flag) ||
      !pestle_rows_is_same(flag) ||
      !pestle_rows_body(op, 1, op->operands, after)) {
    return false;
  }
  for (uint32_t i = 0; i < op->many->result_count; ++i) {
    if (!pestle_rows_equal(after[i], op->operands[i])) return false;
  }
  return true;
}

static bool branch(const op_t* op) {
  enum { MOST = 64 };
  relation_t other[MOST];
  uint32_t count = op->many->result_count;
  if (!pestle_rows_is_same(op->operands[0]) || count > MOST) return false;
  for (uint32_t r = 0; r < op->many->region_count; ++r) {
    if (!pestle_rows_body(op, r, NULL, r ? other : op->results)) return false;
    for (uint32_t i = 0; r && i < count; ++i) {
      if (!pestle_rows_equal(other[i], op->results[i])) return false;
    }
  }
  return op->many->region_count > 0;
}

static bool scan(const op_t* op) {
  enum { MOST = 64 };
  relation_t arguments[MOST], made[MOST];
  size_t carries = (size_t)PESTLE_NODE_I64(op->many, carry_count);
  size_t arrays = (size_t)PESTLE_NODE_I64(op->many, xs_count);
  uint32_t count = op->many->operand_count, results = op->many->result_count;
  if (!all_attrs_equal(op) || count > MOST || results > MOST) return false;
  for (uint32_t i = 0; i < count; ++i) {
    bool is_array = i >= carries && i < carries + arrays;
    arguments[i] = op->operands[i];
    if (!is_array || pestle_rows_is_same(arguments[i])) continue;
    if (!arguments[i].axis--) return false;  // rows are turns
  }
  if (!pestle_rows_body(op, 0, arguments, made)) return false;
  for (uint32_t i = 0; i < results; ++i) {
    if (i < carries && !pestle_rows_equal(made[i], arguments[i])) return false;
    if (i >= carries && !pestle_rows_is_same(made[i])) ++made[i].axis;
    op->results[i] = made[i];
  }
  return true;
}

// --- The table ---

static bool structured(const op_t* op) {
  // clang-format off
  switch ((int)op->many->op) {
    case PESTLE_OP_RESHAPE: return reshape(op);
    case PESTLE_OP_TRANSPOSE: return transpose(op);
    case PESTLE_OP_SLICE: return slice(op);
    case PESTLE_OP_PAD: return pad(op);
    case PESTLE_OP_DYNAMIC_SLICE: return dynamic_slice(op);
    case PESTLE_OP_DYNAMIC_UPDATE_SLICE: return dynamic_update(op);
    case PESTLE_OP_GATHER: return gather(op);
    case PESTLE_OP_REDUCE: return reduce(op);
    case PESTLE_OP_REDUCE_WINDOW: return reduce_window(op);
    case PESTLE_OP_DOT_GENERAL: return dot(op);
    case PESTLE_OP_CONVOLUTION: return convolution(op);
    case PESTLE_OP_ATTENTION: return attention(op);
    case PESTLE_OP_QUANTIZE:
    case PESTLE_OP_DEQUANTIZE: return quantised(op);
    case PESTLE_OP_LOGSUMEXP: return logsumexp(op);
    case PESTLE_OP_CONVERT:
    case PESTLE_OP_BITCAST_CONVERT:
    case PESTLE_OP_COMPLEX:
    case PESTLE_OP_REAL:
    case PESTLE_OP_IMAG:
    case PESTLE_OP_GELU:
    case PESTLE_OP_SILU:
    case PESTLE_OP_HARD_SIGMOID:
    case PESTLE_OP_MAP:
    case PESTLE_OP_REDUCE_PRECISION: return elementwise(op);
    case PESTLE_OP_SOFTMAX:
    case PESTLE_OP_LOG_SOFTMAX:
    case PESTLE_OP_LAYER_NORM:
    case PESTLE_OP_RMS_NORM:
    case PESTLE_OP_REVERSE:
    case PESTLE_OP_ADAPTIVE_AVERAGE_POOL:
    case PESTLE_OP_ADAPTIVE_MAX_POOL: return keep(op, PESTLE_ATTR_dimensions, OTHERS_SAME);
    case PESTLE_OP_EXTENT:
    case PESTLE_OP_CUMULATIVE: return keep(op, PESTLE_ATTR_dimension, OTHERS_SAME);
    case PESTLE_OP_CONCATENATE:
    case PESTLE_OP_SORT:
    case PESTLE_OP_SORT_FIRST: return keep(op, PESTLE_ATTR_dimension, OTHERS_ROWS);
    case PESTLE_OP_BATCH_NORM_INFERENCE: return keep(op, PESTLE_ATTR_feature_index, OTHERS_SAME);
    case PESTLE_OP_FFT: return batched(op, (int32_t)PESTLE_NODE_I64S(op->many, fft_length).count);
    case PESTLE_OP_CHOLESKY:
    case PESTLE_OP_TRIANGULAR_SOLVE:
    case PESTLE_OP_SOLVE:
    case PESTLE_OP_INVERSE: return batched(op, 2);
    default: return false;
  }
  // clang-format on
}

bool pestle_rows_rule(const op_t* op) {
  pestle_op_t code = (pestle_op_t)op->many->op;
  // clang-format off
  switch ((int)code) {
    case PESTLE_OP_CONSTANT: return constant(op);
    case PESTLE_OP_IOTA: return iota(op);
    case PESTLE_OP_BROADCAST_IN_DIM: return broadcast(op);
    case PESTLE_OP_CALL: return pestle_rows_callee(op);
    case PESTLE_OP_WHILE: return loop(op);
    case PESTLE_OP_IF:
    case PESTLE_OP_CASE: return branch(op);
    case PESTLE_OP_SCAN: return scan(op);
    case PESTLE_OP_CUSTOM:
      return op->many->region_count == 1 &&
             pestle_rows_body(op, 0, op->operands, op->results);
    case PESTLE_OP_CUSTOM_CALL: return false;
    default: break;
  }
  // clang-format on
  if (pestle_op_info(code)->fuse == PESTLE_FUSE_COLLECTIVE) return false;
  // Whatever it computes, it computes the same of the same.
  if (all_same(op))
    return all_attrs_equal(op) && same_bodies(op) && give_same(op);
  return pestle_op_is_scalar(code) ? elementwise(op) : structured(op);
}

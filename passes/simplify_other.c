// SPDX-License-Identifier: Apache-2.0
// Rules about gathers, reductions, convolutions and control flow.
#include <math.h>
#include <string.h>

#include "passes/simplify.h"
#include "passes/util.h"

static pestle_value_t* operand(const pestle_node_t* node, size_t index) {
  return pestle_node_operand(node, index);
}
static const pestle_type_t* type_of(const pestle_node_t* node) {
  return node->results[0].type;
}
static int64_t clamp(int64_t value, int64_t lo, int64_t hi) {
  return value < lo ? lo : value > hi ? hi : value;
}

// --- Computed indices that are known ---

// Start, count and step of the indices of |e|, clamped into the axis.
static bool read_progression(const pestle_elements_t* e, int64_t extent,
                             int64_t* start, int64_t* count, int64_t* step) {
  *count = pestle_type_count(&e->type);
  *step = 1;
  if (*count < 1 || *count > 1 << 20) return false;
  int64_t previous = 0;
  for (int64_t i = 0; i < *count; ++i) {
    int64_t index = clamp(pestle_pass_element_i64(e, (size_t)i), 0, extent - 1);
    if (i == 0) *start = index;
    if (i == 1) *step = index - previous;
    if (i >= 1 && (index - previous != *step || *step < 1)) return false;
    previous = index;
  }
  return true;
}

// The one axis that |gather| indexes, taking whole slices of all others; -1.
static int64_t indexed_axis(const pestle_node_t* gather) {
  pestle_i64s_t map = PESTLE_NODE_I64S(gather, start_index_map);
  pestle_i64s_t collapsed = PESTLE_NODE_I64S(gather, collapsed_slice_dims);
  pestle_i64s_t sizes = PESTLE_NODE_I64S(gather, slice_sizes);
  if (map.count != 1 || !pestle_i64s_equal(map, collapsed) ||
      PESTLE_NODE_I64S(gather, operand_batching_dims).count) {
    return -1;
  }
  const pestle_type_t* from = operand(gather, 0)->type;
  for (int32_t i = 0; i < from->rank; ++i) {
    if (i != map.data[0] && sizes.data[i] != from->dims[i]) return -1;
  }
  return map.data[0];
}

// The position of the first batch dim among the result's dims, when they lie
// together; -1 else.
static int32_t batch_position(const pestle_node_t* gather) {
  pestle_i64s_t offset = PESTLE_NODE_I64S(gather, offset_dims);
  int32_t first = -1, last = -1, count = 0;
  for (int32_t i = 0; i < type_of(gather)->rank; ++i) {
    if (pestle_i64s_has(offset, i)) continue;
    if (first < 0) first = i;
    last = i;
    ++count;
  }
  if (count == 0) return -2;  // one index: nothing to place
  return last - first + 1 == count ? first : -1;
}

static pestle_value_t* slice_axis(pestle_formula_t* f, pestle_value_t* x,
                                  int64_t axis, int64_t start, int64_t count,
                                  int64_t step) {
  int64_t starts[PESTLE_MAX_RANK], limits[PESTLE_MAX_RANK];
  int64_t strides[PESTLE_MAX_RANK];
  int32_t rank = x->type->rank;
  for (int32_t i = 0; i < rank; ++i) {
    bool sliced = i == axis;
    starts[i] = sliced ? start : 0;
    limits[i] = sliced ? start + (count - 1) * step + 1 : x->type->dims[i];
    strides[i] = sliced ? step : 1;
  }
  return pestle_f_slice(f, x, starts, limits, strides);
}

pestle_value_t* pestle_rule_gather_to_slice(pestle_formula_t* f,
                                            pestle_node_t* node) {
  const pestle_elements_t* e = pestle_value_constant(operand(node, 1));
  if (!e || pestle_type_count(type_of(node)) == 0) return NULL;
  pestle_value_t* x = operand(node, 0);
  int64_t axis = indexed_axis(node), start, count, step;
  int32_t position = batch_position(node);
  if (axis < 0 || position == -1 ||
      !read_progression(e, x->type->dims[axis], &start, &count, &step)) {
    return NULL;
  }
  pestle_value_t* value = slice_axis(f, x, axis, start, count, step);
  if (position >= 0 && position != axis) {
    int64_t perm[PESTLE_MAX_RANK];
    int32_t next = 0;
    for (int32_t i = 0; i < x->type->rank; ++i) {
      if (i == position) {
        perm[i] = axis;
        continue;
      }
      if (next == axis) ++next;
      perm[i] = next++;
    }
    value = pestle_f_transpose(f, value, perm);
  }
  return pestle_f_reshape_to(f, value, type_of(node));
}

pestle_value_t* pestle_rule_dynamic_slice_static(pestle_formula_t* f,
                                                 pestle_node_t* node) {
  pestle_value_t* x = operand(node, 0);
  int64_t starts[PESTLE_MAX_RANK], limits[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < x->type->rank; ++i) {
    int64_t start, size = type_of(node)->dims[i];
    if (!pestle_pass_splat_i64(operand(node, (size_t)i + 1), &start)) {
      return NULL;
    }
    starts[i] = clamp(start, 0, x->type->dims[i] - size);
    limits[i] = starts[i] + size;
  }
  return pestle_f_slice(f, x, starts, limits, NULL);
}

// --- Reductions ---

static bool reductions_single_elements(const pestle_node_t* node) {
  pestle_i64s_t dims = PESTLE_NODE_I64S(node, dimensions);
  for (size_t i = 0; i < dims.count; ++i) {
    if (operand(node, 0)->type->dims[dims.data[i]] != 1) return false;
  }
  return node->operand_count == 2;
}

// A sum of one number is that number: how often the identity goes in is
// free where reductions may be regrouped. (0 + -0 is 0: not under strict.)
pestle_value_t* pestle_rule_reduce_one_each(pestle_formula_t* f,
                                            pestle_node_t* node) {
  if (pestle_block_reduce_op(pestle_node_body(node, 0)) != PESTLE_OP_ADD ||
      !reductions_single_elements(node) ||
      !pestle_pass_splat_is(operand(node, 1), 0)) {
    return NULL;
  }
  return pestle_f_reshape_to(f, operand(node, 0), type_of(node));
}

// A reduction over axes of one element is its op on the initial value and the
// element.
pestle_value_t* pestle_rule_reduce_ones(pestle_formula_t* f,
                                        pestle_node_t* node) {
  pestle_op_t reduce = pestle_block_reduce_op(pestle_node_body(node, 0));
  if (reduce == PESTLE_OP_COUNT || !reductions_single_elements(node))
    return NULL;
  pestle_value_t *x = operand(node, 0), *init;
  x = pestle_f_reshape_to(f, x, type_of(node));
  init = pestle_f_broadcast_to(f, operand(node, 1), type_of(node), NULL);
  return pestle_f_binary(f, reduce, x, init);
}

// Whether |pad| only adds edges, and none along the dims that |keep| lists.
static bool adds_edges_only(const pestle_node_t* pad, const int64_t* keep,
                            size_t keep_count) {
  pestle_i64s_t low = PESTLE_NODE_I64S(pad, edge_padding_low);
  pestle_i64s_t high = PESTLE_NODE_I64S(pad, edge_padding_high);
  if (!pestle_pass_i64s_all(PESTLE_NODE_I64S(pad, interior_padding), 0)) {
    return false;
  }
  for (size_t i = 0; i < low.count; ++i) {
    if (low.data[i] < 0 || high.data[i] < 0) return false;
  }
  for (size_t i = 0; i < keep_count; ++i) {
    if (low.data[keep[i]] || high.data[keep[i]]) return false;
  }
  return true;
}

// A copy of |node| with operand 0 and the padding replaced.
static pestle_value_t* with_padding(pestle_formula_t* f,
                                    const pestle_node_t* node,
                                    pestle_value_t* x, const int64_t* padding,
                                    size_t count) {
  pestle_copier_t copier;
  pestle_node_t* copy = NULL;
  pestle_copier_init(pestle_context_allocator(f->builder.module->context),
                     f->builder, &copier);
  pestle_status_t status = pestle_copier_set(&copier, operand(node, 0), x);
  // Attributes are immutable: copy the array and change the copy.
  pestle_attr_t attrs[24];
  pestle_node_t changed = *node;
  if (!status && node->attr_count <= 24) {
    memcpy(attrs, node->attrs, node->attr_count * sizeof(attrs[0]));
    for (uint32_t i = 0; i < node->attr_count; ++i) {
      if (attrs[i].name != PESTLE_ATTR_padding) continue;
      attrs[i].as.i64s = (pestle_i64s_t){padding, count};
    }
    changed.attrs = attrs;
    status = pestle_copier_node(&copier, &changed, &copy);
  }
  pestle_copier_deinit(&copier);
  if (status) return pestle_f_fail(f, status);
  return copy ? pestle_node_result(copy, 0) : NULL;
}

// Windows of padding alone, which ir/ref leaves out and kernels multiply as
// zeros: without this what is infinite in |w| would make NaNs of them.
pestle_value_t* pestle_rule_convolution_empty(pestle_formula_t* f,
                                              pestle_node_t* node) {
  if (pestle_type_count(operand(node, 0)->type) ||
      !pestle_type_count(node->results[0].type)) {
    return NULL;
  }
  return pestle_f_number(f, node->results[0].type, 0);
}

pestle_value_t* pestle_rule_convolution_pad(pestle_formula_t* f,
                                            pestle_node_t* node) {
  const pestle_node_t* pad = operand(node, 0)->node;
  double value;
  if (!pad || pad->op != PESTLE_OP_PAD ||
      !pestle_pass_splat_f64(operand(pad, 1), &value) || value > 0 ||
      value < 0 || signbit(value) || isnan(value) ||
      !pestle_pass_i64s_all(PESTLE_NODE_I64S(node, lhs_dilation), 1)) {
    return NULL;
  }
  int64_t keep[] = {PESTLE_NODE_I64(node, input_batch_dimension),
                    PESTLE_NODE_I64(node, input_feature_dimension)};
  if (!adds_edges_only(pad, keep, 2)) return NULL;
  pestle_i64s_t spatial = PESTLE_NODE_I64S(node, input_spatial_dimensions);
  pestle_i64s_t old = PESTLE_NODE_I64S(node, padding);
  pestle_i64s_t low = PESTLE_NODE_I64S(pad, edge_padding_low);
  pestle_i64s_t high = PESTLE_NODE_I64S(pad, edge_padding_high);
  int64_t padding[2 * PESTLE_MAX_RANK];
  for (size_t i = 0; i < spatial.count; ++i) {
    int64_t dim = spatial.data[i];
    padding[2 * i] = low.data[dim] + (old.count ? old.data[2 * i] : 0);
    padding[2 * i + 1] = high.data[dim] + (old.count ? old.data[2 * i + 1] : 0);
  }
  return with_padding(f, node, operand(pad, 0), padding, 2 * spatial.count);
}

// The padding has the reduction's initial value, as the reduction's own padding has.
pestle_value_t* pestle_rule_window_pad(pestle_formula_t* f,
                                       pestle_node_t* node) {
  const pestle_node_t* pad = operand(node, 0)->node;
  if (!pad || pad->op != PESTLE_OP_PAD || node->operand_count != 2 ||
      !pestle_pass_i64s_all(PESTLE_NODE_I64S(node, base_dilations), 1) ||
      !adds_edges_only(pad, NULL, 0)) {
    return NULL;
  }
  const pestle_elements_t* v = pestle_value_constant(operand(pad, 1));
  const pestle_elements_t* init = pestle_value_constant(operand(node, 1));
  if (!v || !init || v->size != init->size ||
      memcmp(v->data, init->data, v->size)) {
    return NULL;
  }
  pestle_i64s_t old = PESTLE_NODE_I64S(node, padding);
  pestle_i64s_t low = PESTLE_NODE_I64S(pad, edge_padding_low);
  pestle_i64s_t high = PESTLE_NODE_I64S(pad, edge_padding_high);
  int64_t padding[2 * PESTLE_MAX_RANK];
  for (size_t i = 0; i < low.count; ++i) {
    padding[2 * i] = low.data[i] + (old.count ? old.data[2 * i] : 0);
    padding[2 * i + 1] = high.data[i] + (old.count ? old.data[2 * i + 1] : 0);
  }
  return with_padding(f, node, operand(pad, 0), padding, 2 * low.count);
}

static void read_windows(const pestle_node_t* node, pestle_windows_t* out) {
  const struct {
    pestle_i64s_t list;
    int64_t* to;
  } attrs[] = {
      {PESTLE_NODE_I64S(node, window_dimensions), out->sizes},
      {PESTLE_NODE_I64S(node, window_strides), out->strides},
      {PESTLE_NODE_I64S(node, base_dilations), out->base_dilations},
      {PESTLE_NODE_I64S(node, window_dilations), out->dilations},
      {PESTLE_NODE_I64S(node, padding), out->padding},
  };
  pestle_windows_init(out);
  for (size_t i = 0; i < sizeof(attrs) / sizeof(attrs[0]); ++i) {
    for (size_t k = 0; k < attrs[i].list.count; ++k)
      attrs[i].to[k] = attrs[i].list.data[k];
  }
}

// Makes what |from| has along |axis| a part of |to|.
static void move_axis(pestle_windows_t* from, int32_t axis,
                      pestle_windows_t* to) {
  pestle_windows_t none;
  pestle_windows_init(&none);
#define MOVE(field, at)            \
  to->field[at] = from->field[at]; \
  from->field[at] = none.field[at];
  MOVE(sizes, axis)
  MOVE(strides, axis)
  MOVE(base_dilations, axis)
  MOVE(dilations, axis)
  MOVE(padding, 2 * axis)
  MOVE(padding, 2 * axis + 1)
#undef MOVE
}

// Whether a reduction by |op| may be one of reductions, each from |init| on. Sums of narrow
// floats would be rounded between.
static bool reductions_again(pestle_op_t op, const pestle_value_t* init) {
  pestle_dtype_t dtype = (pestle_dtype_t)init->type->dtype;
  bool wide = dtype == PESTLE_F32 || dtype == PESTLE_F64 ||
              pestle_dtype_is(dtype, PESTLE_KIND_INT);
  return op == PESTLE_OP_MAXIMUM || op == PESTLE_OP_MINIMUM ||
         op == PESTLE_OP_AND || op == PESTLE_OP_OR ||
         (op == PESTLE_OP_ADD && wide && pestle_pass_splat_is(init, 0));
}

// Two kernels must take so many times fewer taps than one, for there is a tensor
// between them; of windows whose taps are too many to be unrolled, less. Measured on a
// Zen 5, maxima, one thread: 4x4 76 us as one, 86 as two, 5x5 113 and 101; with strides
// of 2 6x6 119 and 20.
static const double FEWER_TAPS = 2, FEWER_OF_MANY = 1.25;
enum { MANY_TAPS = 32 };

// The largest of a window is that of its rows' largest, its sum that of their sums: n +
// n taps, not n * n, where windows overlap. The axis of the largest stride goes first,
// which leaves the fewest results. (Which zero is the larger is not said, and sums are
// grouped anew: not under strict.)
pestle_value_t* pestle_rule_window_by_axes(pestle_formula_t* f,
                                           pestle_node_t* node) {
  pestle_windows_t w, first;
  pestle_op_t op = pestle_block_reduce_op(pestle_node_body(node, 0));
  if (node->operand_count != 2 || !reductions_again(op, operand(node, 1))) {
    return NULL;
  }
  read_windows(node, &w);
  int32_t axis = 0;
  double taps = 1, steps = 1;  // of all axes
  for (int32_t d = 0; d < type_of(node)->rank; ++d) {
    taps *= (double)w.sizes[d];
    steps *= (double)w.strides[d];
    if (w.sizes[axis] == 1 ||
        (w.sizes[d] > 1 && w.strides[d] >= w.strides[axis])) {
      axis = d;
    }
  }
  double own = (double)w.sizes[axis];
  double apart = own * steps / (double)w.strides[axis] + taps / own;
  double fewer = taps > MANY_TAPS ? FEWER_OF_MANY : FEWER_TAPS;
  if (taps <= fewer * apart) return NULL;
  pestle_windows_init(&first);
  move_axis(&w, axis, &first);
  pestle_value_t *x = operand(node, 0), *init = operand(node, 1);
  x = pestle_f_reduce_windows(f, op, x, init, &first);
  return pestle_f_reduce_windows(f, op, x, init, &w);
}

// A window of windows: |size| neighbours, |stride| apart, and of those |count|, which
// lie |dilation| apart among them.
typedef struct parts_t {
  int64_t size, stride, count, dilation;
  double taps;  // of a result
} parts_t;

static int64_t gcd(int64_t a, int64_t b) {
  return b ? gcd(b, a % b) : a;
}

// The parts of |size| taps, |stride| apart, that take the fewest. Those of maxima
// may overlap, sums' may not.
static parts_t part_window(int64_t size, int64_t stride, bool overlap) {
  parts_t best = {.taps = INFINITY};
  for (int64_t n = 2; n < size; ++n) {
    int64_t step = n, least = overlap ? 1 : n;
    while (step > least && (size - n) % step)
      --step;
    if ((size - n) % step) continue;
    int64_t common = gcd(stride, step);
    parts_t p = {.size = n,
                 .stride = common,
                 .count = (size - n) / step + 1,
                 .dilation = step / common};
    p.taps = (double)n * (double)(stride / common) + (double)p.count;
    if (p.taps < best.taps) best = p;
  }
  return best;
}

// The one axis along which windows have more than one tap; -1.
static int32_t only_axis(const pestle_windows_t* w, int32_t rank) {
  int32_t axis = -1;
  for (int32_t d = 0; d < rank; ++d) {
    if (w->sizes[d] == 1) continue;
    if (axis >= 0) return -1;
    axis = d;
  }
  return axis;
}

// Windows of many taps along one axis: neighbours share most of what they reduce, 40 taps
// are those of windows of 5 among windows of 8. Not where a window is about as long as
// its axis: split_scans has that.
pestle_value_t* pestle_rule_window_by_parts(pestle_formula_t* f,
                                            pestle_node_t* node) {
  enum { MOST_TAPS = 4096 };
  pestle_windows_t w, first;
  pestle_op_t op = pestle_block_reduce_op(pestle_node_body(node, 0));
  if (node->operand_count != 2 || !reductions_again(op, operand(node, 1))) {
    return NULL;
  }
  read_windows(node, &w);
  int32_t axis = only_axis(&w, type_of(node)->rank);
  if (axis < 0 || w.dilations[axis] != 1 || w.base_dilations[axis] != 1 ||
      w.sizes[axis] > MOST_TAPS ||
      2 * w.sizes[axis] > operand(node, 0)->type->dims[axis]) {
    return NULL;
  }
  int64_t size = w.sizes[axis], stride = w.strides[axis];
  parts_t parts = part_window(size, stride, op != PESTLE_OP_ADD);
  double fewer = size > MANY_TAPS ? FEWER_OF_MANY : FEWER_TAPS;
  if ((double)size <= fewer * parts.taps) return NULL;
  pestle_windows_init(&first);
  move_axis(&w, axis, &first);
  first.sizes[axis] = parts.size;
  first.strides[axis] = parts.stride;
  w.sizes[axis] = parts.count;
  w.dilations[axis] = parts.dilation;
  w.strides[axis] = stride / parts.stride;
  pestle_value_t *x = operand(node, 0), *init = operand(node, 1);
  x = pestle_f_reduce_windows(f, op, x, init, &first);
  return pestle_f_reduce_windows(f, op, x, init, &w);
}

// --- Control flow ---

// Copies |block|, which takes no arguments, before |node|.
static void take_branch(pestle_formula_t* f, pestle_block_t* block,
                        const pestle_node_t* node, pestle_value_t** out) {
  pestle_copier_t copier;
  pestle_copier_init(pestle_context_allocator(f->builder.module->context),
                     f->builder, &copier);
  f->status = pestle_copier_block(&copier, block);
  for (uint32_t i = 0; i < node->result_count && !f->status; ++i) {
    out[i] = pestle_copier_get(&copier, operand(block->last, i));
  }
  pestle_copier_deinit(&copier);
}

void pestle_rule_if_constant(pestle_formula_t* f, pestle_node_t* node,
                             pestle_value_t** out) {
  int64_t taken;
  if (!pestle_pass_splat_i64(operand(node, 0), &taken)) return;
  take_branch(f, pestle_node_body(node, taken ? 0 : 1), node, out);
}

void pestle_rule_case_constant(pestle_formula_t* f, pestle_node_t* node,
                               pestle_value_t** out) {
  int64_t index;
  if (!node->region_count || !pestle_pass_splat_i64(operand(node, 0), &index)) {
    return;
  }
  // An index out of range takes the last branch.
  if (index < 0 || index >= (int64_t)node->region_count) {
    index = (int64_t)node->region_count - 1;
  }
  take_branch(f, pestle_node_body(node, (size_t)index), node, out);
}

void pestle_rule_while_never(pestle_formula_t* f, pestle_node_t* node,
                             pestle_value_t** out) {
  (void)f;
  int64_t runs;
  const pestle_block_t* condition = pestle_node_body(node, 0);
  if (!pestle_pass_splat_i64(operand(condition->last, 0), &runs) || runs) {
    return;
  }
  for (uint32_t i = 0; i < node->result_count; ++i)
    out[i] = operand(node, i);
}

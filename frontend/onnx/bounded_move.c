// SPDX-License-Identifier: Apache-2.0
// Views of values whose extents only a run tells: slices, joins, reshapes. A
// view that leaves the real elements where they are is the plain op on bounds;
// any other is one gather, whose places are computed from the sizes. Places
// that are not real may be anything: a gather clamps them.
//
//   concat of [a a . .] and [b b .]   of 2 and 2:  a a . . b b .
//                                     places       0 1 4 5 . . .
#include "frontend/onnx/bounded.h"

pestle_value_t* pestle_onnx_widen(pestle_onnx_call_t* call, pestle_value_t* x,
                                  const int64_t* dims) {
  int64_t low[PESTLE_MAX_RANK] = {0}, high[PESTLE_MAX_RANK];
  bool any = false;
  for (int32_t axis = 0; axis < rank_of(x); ++axis) {
    high[axis] = dims[axis] - pestle_onnx_dim(x, axis);
    any |= high[axis] > 0;
  }
  if (!any) return x;
  const pestle_type_t scalar = {.dtype = dtype_of(x)};
  return pestle_f_pad(&call->f, x, pestle_onnx_splat(call, &scalar, 0), low,
                      high, NULL);
}

// |y| has the sizes of |x| but along |axis|, where it is shorter: the size of x there has
// another bound.
static pestle_value_t* keep_others(pestle_onnx_call_t* call, pestle_value_t* y,
                                   const pestle_value_t* x, int64_t axis) {
  for (int32_t i = 0; y && i < rank_of(y); ++i) {
    if (i == axis) continue;
    pestle_onnx_set_real(call, y, i, pestle_onnx_real_size(call->import, x, i));
  }
  return y;
}

// The same, and |size| along |axis|.
static pestle_value_t* set_size(pestle_onnx_call_t* call, pestle_value_t* y,
                                const pestle_value_t* x, int64_t axis,
                                pestle_value_t* size) {
  pestle_onnx_set_real(call, keep_others(call, y, x, axis), axis, size);
  return pestle_onnx_end_real(call, y);
}

pestle_value_t* pestle_onnx_first_real(pestle_onnx_call_t* call,
                                       pestle_value_t* x, int64_t axis) {
  pestle_value_t* y =
      pestle_onnx_apart(call, pestle_onnx_slice_axis(call, x, axis, 0, 1, 1));
  return keep_others(call, y, x, axis);
}

pestle_value_t* pestle_onnx_transpose_real(pestle_onnx_call_t* call,
                                           pestle_value_t* x,
                                           const int64_t* perm) {
  pestle_value_t* y = pestle_f_transpose(&call->f, x, perm);
  for (int32_t i = 0; y && i < rank_of(y); ++i) {
    pestle_onnx_set_real(call, y, i,
                         pestle_onnx_real_size(call->import, x, perm[i]));
  }
  return y;
}

// Further than any axis is long.
#define FAR (INT64_C(1) << 62)

// 0, 1, .. along a new list of |count|, i64.
static pestle_value_t* numbers(pestle_onnx_call_t* call, int64_t count) {
  const pestle_type_t type = {.dtype = PESTLE_I64, .rank = 1, .dims = {count}};
  return pestle_f_iota(&call->f, &type, 0);
}

static pestle_value_t* least(pestle_onnx_call_t* call, pestle_value_t* a,
                             int64_t b) {
  return pestle_f_minimum(&call->f, a, pestle_onnx_size_number(call, b));
}

static pestle_value_t* most(pestle_onnx_call_t* call, pestle_value_t* a,
                            int64_t b) {
  return pestle_f_maximum(&call->f, a, pestle_onnx_size_number(call, b));
}

// --- Slices ---

typedef struct cut_t {
  int64_t start, end, step;  // as they are written
  int64_t bound;             // of the axis
  pestle_value_t* size;      // of the axis
} cut_t;

// |at| as numpy counts along an axis of |size|: within [0, size], or backwards
// within [-1, size - 1].
static pestle_value_t* place(pestle_onnx_call_t* call, const cut_t* cut,
                             int64_t at) {
  int64_t low = cut->step < 0 ? -1 : 0;
  pestle_value_t* number = pestle_onnx_size_number(call, at);
  if (at < 0) return most(call, add(call, cut->size, number), low);
  if (low == 0 && at >= cut->bound) return cut->size;
  if (low == 0 && at == 0) return number;
  pestle_value_t* last =
      low ? add(call, cut->size, pestle_onnx_size_number(call, -1)) : cut->size;
  return least(call, last, at);
}

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}
static int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}

// How many places there are at most between start and end, step 1.
static int64_t most_places(const cut_t* cut) {
  int64_t n = cut->bound, s = cut->start, e = cut->end, count;
  if (cut->step < 0) {  // the mirror image, whose numbers are -1 - them
    int64_t from = s >= 0 ? smaller(s, n - 1) + 1 : n;
    if (s >= 0 && e >= 0) {
      count = from - 1 - smaller(e, n - 1);
    } else if (s < 0 && e >= 0) {
      count = larger(n + s, -1) - smaller(e, n - 1);
    } else if (s >= 0) {
      count = smaller(from, -1 - e);
    } else {
      count = s - e;
    }
  } else if (s >= 0) {
    count = (e >= 0 ? smaller(e, n) : larger(n + e, 0)) - smaller(s, n);
  } else {
    count = e >= 0 ? smaller(-s, e) : e - s;
  }
  return smaller(larger(count, 0), n);
}

// Numbers that are far outside mean no more than those just outside.
static cut_t read_cut(pestle_onnx_call_t* call, const pestle_value_t* x,
                      int64_t axis, int64_t start, int64_t end, int64_t step) {
  int64_t n = pestle_onnx_dim(x, axis), far = n + 1;
  return (cut_t){.start = smaller(larger(start, -far), far),
                 .end = smaller(larger(end, -far), far),
                 .step = smaller(larger(step, -far), far),
                 .bound = n,
                 .size = pestle_onnx_real_size(call->import, x, axis)};
}

pestle_value_t* pestle_onnx_apart(pestle_onnx_call_t* call, pestle_value_t* x) {
  if (!x) return NULL;
  return pestle_f_emit(&call->f, &(pestle_node_spec_t){.op = PESTLE_OP_RESHAPE,
                                                       .operands = &x,
                                                       .operand_count = 1,
                                                       .type = x->type});
}

pestle_value_t* pestle_onnx_slice_real(pestle_onnx_call_t* call,
                                       pestle_value_t* x, int64_t axis,
                                       int64_t start, int64_t end,
                                       int64_t step) {
  if (step == 0) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED, "its step is 0");
  }
  cut_t cut = read_cut(call, x, axis, start, end, step);
  int64_t size = cut.step < 0 ? -cut.step : cut.step;
  int64_t places = most_places(&cut), count = (places + size - 1) / size;
  if (count == 0) {  // which a type can say
    return keep_others(call, pestle_onnx_slice_axis(call, x, axis, 0, 0, 1), x,
                       axis);
  }
  pestle_value_t* first = place(call, &cut, cut.start);
  pestle_value_t* last = place(call, &cut, cut.end);
  pestle_value_t* real = cut.start == 0 && cut.step > 0 ? last
                         : cut.step > 0                 ? sub(call, last, first)
                                        : sub(call, first, last);
  if (cut.start || cut.step < 0) real = most(call, real, 0);
  if (size > 1) {
    real = add(call, real, pestle_onnx_size_number(call, size - 1));
    real = quotient(call, real, pestle_onnx_size_number(call, size));
  }
  pestle_value_t* y;
  if (cut.step > 0 && cut.start >= 0) {
    y = pestle_onnx_slice_axis(call, x, axis, cut.start, cut.start + places,
                               smaller(cut.step, places));
  } else {
    pestle_value_t* at = mul(call, numbers(call, count),
                             pestle_onnx_size_number(call, cut.step));
    y = pestle_onnx_take(call, x, most(call, add(call, at, first), 0), axis);
  }
  if (y == x && pestle_onnx_same_size(real, cut.size)) return y;
  if (y == x) y = pestle_onnx_apart(call, y);
  return set_size(call, y, x, axis, real);
}

int64_t pestle_onnx_distance(const pestle_value_t* start,
                             const pestle_value_t* end, int64_t step) {
  const pestle_value_t* far = step > 0 ? end : start;
  const pestle_value_t* near = step > 0 ? start : end;
  const pestle_node_t* node = far->node;
  if (!node || node->op != PESTLE_OP_ADD) return -1;
  for (int i = 0; i < 2; ++i) {
    const pestle_elements_t* known =
        pestle_value_constant(pestle_node_operand(node, (uint32_t)(1 - i)));
    if (known &&
        pestle_onnx_same_size(pestle_node_operand(node, (uint32_t)i), near))
      return larger(pestle_onnx_element_i64(known, 0), 0);
  }
  return -1;
}

// |at| as numpy counts along an axis of |size|: within [low, high].
static pestle_value_t* clamp_place(pestle_onnx_call_t* call, pestle_value_t* at,
                                   pestle_value_t* size, int64_t step) {
  pestle_formula_t* f = &call->f;
  int64_t low = step < 0 ? -1 : 0;
  pestle_value_t* zero = pestle_onnx_size_number(call, 0);
  // Far numbers, as exporters write them, may not wrap around.
  pestle_value_t* back =
      pestle_f_maximum(f, at, pestle_onnx_size_number(call, -FAR));
  at = pestle_f_select(f, pestle_f_lt(f, at, zero), add(call, back, size), at);
  pestle_value_t* high =
      low ? add(call, size, pestle_onnx_size_number(call, -1)) : size;
  return most(call, pestle_f_minimum(f, at, high), low);
}

pestle_value_t* pestle_onnx_part_real(pestle_onnx_call_t* call,
                                      pestle_value_t* x, int64_t axis,
                                      pestle_value_t* first,
                                      pestle_value_t* size, int64_t bound) {
  bound = smaller(bound, pestle_onnx_dim(x, axis));
  pestle_value_t* at = add(call, numbers(call, bound), first);
  pestle_value_t* y = pestle_onnx_take(call, x, at, axis);
  return set_size(call, y, x, axis, size);
}

// Whether |start| is how much a cache has, so that there is room for what follows.
static bool begins_at_room(const pestle_onnx_call_t* call,
                           const pestle_value_t* start) {
  return pestle_onnx_room_of(call->import, start) != NULL;
}

// |count| places of |axis| from |start| on: what stands for positions of a cache, of which
// there must be as many as the cache has room for.
static pestle_value_t* slice_behind(pestle_onnx_call_t* call, pestle_value_t* x,
                                    int64_t axis, pestle_value_t* start,
                                    int64_t count) {
  int64_t room = pestle_onnx_number_bound(call, start);
  int64_t sizes[PESTLE_MAX_RANK], n = pestle_onnx_dim(x, axis);
  pestle_value_t* operands[PESTLE_MAX_RANK + 1] = {x};
  if (n < room) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "it takes rows by a cache's length from a table "
                            "that has a row for %lld positions, and the cache "
                            "has room for %lld",
                            (long long)n, (long long)room);
  }
  for (int32_t i = 0; i < rank_of(x); ++i) {
    sizes[i] = i == axis ? count : pestle_onnx_dim(x, i);
    operands[i + 1] = i == axis ? start : pestle_onnx_size_number(call, 0);
  }
  pestle_attr_t attr = PESTLE_SET_I64S(slice_sizes, sizes, (size_t)rank_of(x));
  pestle_value_t* y = pestle_f_emit(
      &call->f, &(pestle_node_spec_t){.op = PESTLE_OP_DYNAMIC_SLICE,
                                      .operands = operands,
                                      .operand_count = (size_t)rank_of(x) + 1,
                                      .attrs = &attr,
                                      .attr_count = 1});
  return keep_others(call, y, x, axis);
}

pestle_value_t* pestle_onnx_slice_computed(pestle_onnx_call_t* call,
                                           pestle_value_t* x, int64_t axis,
                                           pestle_value_t* start,
                                           pestle_value_t* end, int64_t step) {
  int64_t n = pestle_onnx_dim(x, axis), stride = step < 0 ? -step : step;
  if (!start || !end || call->f.status) return NULL;
  int64_t bound = n, near = pestle_onnx_distance(start, end, step);
  if (step == 1 && near >= 0 && begins_at_room(call, start) &&
      !pestle_onnx_real_size(call->import, x, axis)) {
    return slice_behind(call, x, axis, start, near);
  }
  pestle_value_t* size = pestle_onnx_size(call, x, axis);
  int64_t last = pestle_onnx_number_bound(call, end);
  if (near >= 0) bound = smaller(bound, near);
  if (step > 0 && last >= 0) bound = smaller(bound, last);
  stride = smaller(stride, larger(n, 1));
  bound = (bound + stride - 1) / stride;
  start = clamp_place(call, start, size, step);
  end = clamp_place(call, end, size, step);
  pestle_value_t* count =
      step > 0 ? sub(call, end, start) : sub(call, start, end);
  count = most(call, count, 0);
  if (stride > 1) {
    count = add(call, count, pestle_onnx_size_number(call, stride - 1));
    count = quotient(call, count, pestle_onnx_size_number(call, stride));
  }
  pestle_value_t* at =
      mul(call, numbers(call, bound),
          pestle_onnx_size_number(call, step < 0 ? -stride : stride));
  at = most(call, add(call, at, start), 0);
  pestle_value_t* y = pestle_onnx_take(call, x, at, axis);
  return set_size(call, y, x, axis, count);
}

// --- Joins ---

// Parts that a join reads side by side, each place from one of them, rather than in
// two steps: more would cost a read each for an element.
enum { MOST_PARTS = 4 };

static bool has_none(const pestle_value_t* const* values, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!pestle_type_count(pestle_onnx_type(values[i]))) return true;
  }
  return false;
}

// Each place from the part that it falls to, |ends| after one another: what is behind
// all of them is not made.
static pestle_value_t* choose_parts(pestle_onnx_call_t* call,
                                    pestle_value_t* const* values,
                                    pestle_value_t* const* ends, size_t count,
                                    int64_t axis) {
  int64_t all = 0;
  for (size_t i = 0; i < count; ++i)
    all += pestle_onnx_dim(values[i], axis);
  pestle_value_t *place = numbers(call, all), *y = NULL;
  for (size_t i = count; i-- > 0;) {
    pestle_value_t* at = i ? sub(call, place, ends[i - 1]) : place;
    pestle_value_t* part = pestle_onnx_take(call, values[i], at, axis);
    if (!y) {
      y = part;
      continue;
    }
    pestle_value_t* own = pestle_onnx_along(
        call, pestle_f_lt(&call->f, place, ends[i]), part, axis);
    y = pestle_f_select(&call->f, own, part, y);
  }
  return y;
}

// One join, and what comes behind a part moved up by as much as that lacks.
static pestle_value_t* close_gaps(pestle_onnx_call_t* call,
                                  pestle_value_t* const* values,
                                  pestle_value_t* const* ends, size_t count,
                                  int64_t axis) {
  pestle_value_t* y = pestle_f_concatenate(&call->f, values, count, axis);
  pestle_value_t* at = NULL;
  for (size_t i = 0; y && i + 1 < count; ++i) {
    if (!pestle_onnx_real_size(call->import, values[i], axis)) continue;
    int64_t bound = pestle_onnx_dim(values[i], axis);
    pestle_value_t* place = numbers(call, pestle_onnx_dim(y, axis));
    pestle_value_t* gap = sub(call, pestle_onnx_size_number(call, bound),
                              pestle_onnx_size(call, values[i], axis));
    gap = pestle_f_select(&call->f, pestle_f_ge(&call->f, place, ends[i]), gap,
                          pestle_onnx_size_number(call, 0));
    at = add(call, at ? at : place, gap);
  }
  return at ? pestle_onnx_take(call, y, at, axis) : y;
}

pestle_value_t* pestle_onnx_concat_real(pestle_onnx_call_t* call,
                                        pestle_value_t* const* values,
                                        size_t count, int64_t axis) {
  pestle_value_t** ends =
      pestle_onnx_scratch(call, (count + 1) * sizeof(*ends));
  bool moves = false;
  pestle_value_t* past = pestle_onnx_real_size(call->import, values[0], axis);
  if (count == 2 && pestle_onnx_room_of(call->import, past) &&
      !pestle_onnx_real_size(call->import, values[1], axis)) {
    return pestle_onnx_append(call, values[0], values[1], axis);
  }
  for (size_t i = 0; ends && i < count; ++i) {
    pestle_value_t* size = pestle_onnx_size(call, values[i], axis);
    ends[i] = i ? add(call, ends[i - 1], size) : size;
    moves = moves || (i + 1 < count &&
                      pestle_onnx_real_size(call->import, values[i], axis));
  }
  if (!ends || call->f.status) return NULL;
  bool few = count <= MOST_PARTS &&
             !has_none((const pestle_value_t* const*)values, count);
  pestle_value_t* y = moves && few
                          ? choose_parts(call, values, ends, count, axis)
                          : close_gaps(call, values, ends, count, axis);
  if (!y || y == values[0]) return y;  // of one
  pestle_onnx_set_real(call, y, axis, ends[count - 1]);
  return pestle_onnx_end_real(call, y);
}

// --- Reshapes ---

// A run of axes: from the first whose extent is not always 1.
typedef struct group_t {
  pestle_value_t* size;  // of the axis that is bounded
  int64_t inner;         // elements behind one place of it
  bool is_first;         // nothing but ones is before it
  int bounded;           // how many axes are
} group_t;

static void take_axis(group_t* g, int64_t dim, pestle_value_t* size) {
  if (size) {
    ++g->bounded;
    g->size = size;
    g->inner = 1;
  } else if (g->bounded) {
    g->inner *= dim;
  } else {
    g->is_first = g->is_first && dim == 1;
  }
}

// Whether the real elements of both runs lie alike.
static bool lie_alike(pestle_onnx_call_t* call, const group_t* from,
                      const group_t* to) {
  if (!from->bounded && !to->bounded) return true;
  return from->bounded == 1 && to->bounded == 1 && from->is_first &&
         to->is_first && to->inner && from->inner % to->inner == 0 &&
         pestle_onnx_same_size(
             to->size,
             pestle_onnx_size_times(call, from->size, from->inner / to->inner));
}

// Whether a reshape of the bounds moves no real element: the axes fall into runs
// of equal products, in each of which it is the outermost that is bounded.
static bool is_plain(pestle_onnx_call_t* call, const pestle_value_t* x,
                     int32_t rank, const int64_t* dims,
                     pestle_value_t* const* sizes) {
  int32_t i = 0, j = 0;
  while (i < rank_of(x) || j < rank) {
    group_t from = {.is_first = true}, to = {.is_first = true};
    int64_t a = 1, b = 1;
    bool begins = true;
    while (begins || a != b) {
      bool takes_from = begins || a < b, takes_to = begins || b < a;
      begins = false;
      if (takes_from && i < rank_of(x)) {
        take_axis(&from, pestle_onnx_dim(x, i),
                  pestle_onnx_real_size(call->import, x, i));
        a *= pestle_onnx_dim(x, i++);
      }
      if (takes_to && j < rank) {
        take_axis(&to, dims[j], sizes[j]);
        b *= dims[j++];
      }
      bool stuck = a < b ? i == rank_of(x) : b < a && j == rank;
      if (!a || !b || stuck) return false;
    }
    if (!lie_alike(call, &from, &to)) return false;
  }
  return true;
}

// The place among the real elements of each place of |type|, really |sizes|.
static pestle_value_t* ranks(pestle_onnx_call_t* call,
                             const pestle_type_t* type,
                             pestle_value_t* const* sizes) {
  pestle_value_t *at = pestle_onnx_splat_int(call, type, 0), *stride = NULL;
  for (int32_t i = type->rank - 1; i >= 0; --i) {
    pestle_value_t* along = pestle_f_iota(&call->f, type, i);
    at = add(call, at, stride ? mul(call, along, stride) : along);
    pestle_value_t* size =
        sizes[i] ? sizes[i] : pestle_onnx_size_number(call, type->dims[i]);
    stride = stride ? mul(call, stride, size) : size;
  }
  return at;
}

// Where the real elements numbered |at| lie in |x|, seen as a list.
static pestle_value_t* places(pestle_onnx_call_t* call, const pestle_value_t* x,
                              pestle_value_t* at) {
  pestle_value_t* place = NULL;
  int64_t stride = 1;
  for (int32_t i = rank_of(x) - 1; i >= 0; --i) {
    pestle_value_t* size = most(call, pestle_onnx_size(call, x, i), 1);
    pestle_value_t* index = i ? pestle_f_remainder(&call->f, at, size) : at;
    index = pestle_onnx_size_times(call, index, stride);
    place = place ? add(call, place, index) : index;
    at = quotient(call, at, size);
    stride *= pestle_onnx_dim(x, i);
  }
  return place;
}

pestle_value_t* pestle_onnx_reshape_real(pestle_onnx_call_t* call,
                                         pestle_value_t* x, int32_t rank,
                                         const int64_t* dims,
                                         pestle_value_t* const* sizes) {
  pestle_type_t type = {.dtype = PESTLE_I64, .rank = rank};
  for (int32_t i = 0; i < rank; ++i)
    type.dims[i] = dims[i];
  if (call->f.status || pestle_onnx_keep(call, pestle_type_check(&type)))
    return NULL;
  int64_t count = pestle_type_count(pestle_onnx_type(x));
  pestle_value_t* y;
  bool is_moved = !is_plain(call, x, rank, dims, sizes);
  if (!is_moved) {
    y = pestle_f_reshape(&call->f, x, rank, dims);
  } else if (!count || !pestle_type_count(&type)) {
    type.dtype = dtype_of(x);
    y = pestle_onnx_splat(call, &type, 0);
  } else {
    pestle_value_t* list = pestle_f_reshape(&call->f, x, 1, &count);
    y = pestle_onnx_take(call, list, places(call, x, ranks(call, &type, sizes)),
                         0);
  }
  if (y == x) return y;  // each axis is what it was
  for (int32_t i = 0; i < rank; ++i)
    pestle_onnx_set_real(call, y, i, sizes[i]);
  return is_moved ? pestle_onnx_end_real(call, y) : y;
}

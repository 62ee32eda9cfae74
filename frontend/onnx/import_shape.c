// SPDX-License-Identifier: Apache-2.0
// Shapes and views. Shapes are static here, so Shape, Size and Range are
// constants and what is computed from them folds away.
#include <math.h>

#include "base/checked.h"
#include "base/mem.h"
#include "frontend/onnx/bounded.h"
#include "frontend/onnx/ops.h"

static bool check_rank(pestle_onnx_call_t* call, int64_t rank) {
  if (rank <= PESTLE_MAX_RANK) return !call->f.status;
  pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                   "its result has %lld axes; at most %d are supported",
                   (long long)rank, PESTLE_MAX_RANK);
  return false;
}

// --- Constants ---

static pestle_value_t* stored_tensor(pestle_onnx_call_t* call,
                                     const pestle_onnx_tensor_t* tensor) {
  pestle_elements_t elements;
  pestle_onnx_import_t* import = call->import;
  pestle_arena_t* arena = &import->module->arena;
  bool text = tensor->data_type == PESTLE_ONNX_STRING;
  if (pestle_onnx_keep(
          call, text ? pestle_onnx_tensor_ids(tensor, import->strings, arena,
                                              &elements)
                     : pestle_onnx_tensor_elements(tensor, import->files, arena,
                                                   &elements))) {
    return NULL;
  }
  pestle_value_t* value = pestle_f_elements(&call->f, &elements);
  return text ? pestle_onnx_mark_text(call, value) : value;
}

static pestle_value_t* float_list(pestle_onnx_call_t* call,
                                  const pestle_onnx_attr_t* attr) {
  pestle_type_t type = {
      .dtype = PESTLE_F32, .rank = 1, .dims = {(int64_t)attr->count}};
  double* values =
      pestle_onnx_scratch(call, (attr->count + 1) * sizeof(double));
  for (size_t i = 0; values && i < attr->count; ++i) {
    values[i] = (double)attr->floats[i];
  }
  return values ? pestle_onnx_numbers(call, &type, values) : NULL;
}

// An empty list may have no kind.
static bool is_list(const pestle_onnx_attr_t* attr, const char* name,
                    pestle_onnx_attr_kind_t kind) {
  return pestle_str_equal_c(attr->name, name) &&
         (attr->kind == kind || !attr->count);
}

void pestle_onnx_import_constant(pestle_onnx_call_t* call) {
  for (uint32_t i = 0; i < call->node->attr_count; ++i) {
    const pestle_onnx_attr_t* attr = &call->node->attrs[i];
    bool is_tensor = pestle_str_is_one_of(attr->name, "value sparse_value");
    if (is_tensor && attr->tensor) {
      call->outputs[0] = stored_tensor(call, attr->tensor);
    } else if (is_list(attr, "value_floats", PESTLE_ONNX_ATTR_FLOATS)) {
      call->outputs[0] = float_list(call, attr);
    } else if (is_list(attr, "value_ints", PESTLE_ONNX_ATTR_INTS)) {
      call->outputs[0] = pestle_onnx_int_list(call, attr->ints, attr->count);
    } else if (is_list(attr, "value_strings", PESTLE_ONNX_ATTR_STRINGS)) {
      call->outputs[0] = pestle_onnx_id_list(call, attr->strings, attr->count);
    } else if (pestle_str_equal_c(attr->name, "value_string")) {
      pestle_value_t* list = pestle_onnx_id_list(call, &attr->s, 1);
      call->outputs[0] = pestle_onnx_mark_text(
          call, pestle_f_reshape(&call->f, list, 0, NULL));
    } else if (pestle_str_equal_c(attr->name, "value_float")) {
      call->outputs[0] = pestle_onnx_scalar(call, PESTLE_F32, (double)attr->f);
    } else if (pestle_str_equal_c(attr->name, "value_int")) {
      pestle_type_t type = {.dtype = PESTLE_I64};
      call->outputs[0] = pestle_onnx_splat_int(call, &type, attr->i);
    } else {
      continue;
    }
    return;
  }
  pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                   "it holds no tensor and no numbers or strings");
}

// Reads a list of extents into |type|.
static bool read_dims(pestle_onnx_call_t* call, pestle_i64s_t list,
                      pestle_type_t* type) {
  if (!check_rank(call, (int64_t)list.count)) return false;
  type->rank = (int32_t)list.count;
  for (size_t i = 0; i < list.count; ++i) {
    type->dims[i] = list.data[i];
    if (list.data[i] >= 0) continue;
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "extent %lld of axis %zu is negative",
                     (long long)list.data[i], i);
  }
  if (!call->f.status) pestle_onnx_keep(call, pestle_type_check(type));
  return !call->f.status;
}

void pestle_onnx_import_constant_of_shape(pestle_onnx_call_t* call) {
  pestle_elements_t value = {.type = {.dtype = PESTLE_F32}};
  const pestle_onnx_attr_t* attr = pestle_onnx_node_attr(call->node, "value");
  static const float zero[1] = {0};
  value.data = zero;
  value.size = sizeof(zero);
  if (attr && attr->tensor &&
      pestle_onnx_keep(call, pestle_onnx_tensor_elements(
                                 attr->tensor, call->import->files,
                                 &call->import->module->arena, &value))) {
    return;
  }
  if (value.size != pestle_dtype_size(value.type.dtype)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "attribute 'value' must hold one element");
    return;
  }
  pestle_onnx_extent_t extents[PESTLE_MAX_RANK];
  int64_t dims[PESTLE_MAX_RANK];
  size_t rank = 0;
  bool sized = pestle_onnx_extents(call, 0, extents, &rank);
  for (size_t i = 0; i < rank; ++i)
    dims[i] = extents[i].dim;
  pestle_i64s_t list = sized ? (pestle_i64s_t){dims, rank}
                             : pestle_onnx_input_ints(call, 0, "shape");
  if (!read_dims(call, list, &value.type)) return;
  int64_t count = pestle_type_count(&value.type);
  value.splat = count > 1;
  if (count == 0) value.size = 0;
  call->outputs[0] = pestle_f_elements(&call->f, &value);
  for (size_t i = 0; i < rank; ++i)
    pestle_onnx_set_real(call, call->outputs[0], (int64_t)i, extents[i].size);
}

void pestle_onnx_import_shape(pestle_onnx_call_t* call) {
  const pestle_type_t* type = pestle_onnx_type(call->inputs[0]);
  int64_t rank = type->rank;
  int64_t start = pestle_onnx_int(call, "start", 0);
  int64_t end = pestle_onnx_int(call, "end", rank);
  if (start < 0) start = start + rank < 0 ? 0 : start + rank;
  if (end < 0) end = end + rank < 0 ? 0 : end + rank;
  if (start > rank) start = rank;
  if (end > rank) end = rank;
  if (pestle_onnx_real(call->import, call->inputs[0]) && end > start) {
    pestle_value_t* shape = pestle_onnx_real_shape(call, call->inputs[0]);
    call->outputs[0] = pestle_onnx_slice_axis(call, shape, 0, start, end, 1);
    return;
  }
  call->outputs[0] = pestle_onnx_int_list(
      call, type->dims + start, end > start ? (size_t)(end - start) : 0);
}

void pestle_onnx_import_size(pestle_onnx_call_t* call) {
  pestle_type_t type = {.dtype = PESTLE_I64};
  if (pestle_onnx_real(call->import, call->inputs[0])) {
    int64_t axis = 0;
    call->outputs[0] = pestle_onnx_reduce(
        call, PESTLE_OP_MULTIPLY, pestle_onnx_real_shape(call, call->inputs[0]),
        &axis, 1, false);
    return;
  }
  call->outputs[0] = pestle_onnx_splat_int(
      call, &type, pestle_type_count(pestle_onnx_type(call->inputs[0])));
}

// start + i * delta, in |type|.
static pestle_value_t* make_range(pestle_onnx_call_t* call,
                                  const pestle_type_t* type) {
  pestle_value_t* ends[2] = {call->inputs[0], call->inputs[2]};
  for (int i = 0; i < 2; ++i) {
    ends[i] = pestle_onnx_convert(
        call, pestle_f_reshape(&call->f, ends[i], 0, NULL), type->dtype);
  }
  int64_t count = type->dims[0];
  if (count > 4096) {
    return add(call, mul(call, pestle_f_iota(&call->f, type, 0), ends[1]),
               ends[0]);
  }
  double* values =
      pestle_onnx_scratch(call, (size_t)(count + 1) * sizeof(double));
  if (!values) return NULL;
  for (int64_t i = 0; i < count; ++i)
    values[i] = (double)i;
  return add(call, mul(call, pestle_onnx_numbers(call, type, values), ends[1]),
             ends[0]);
}

// From a number up to a size by whole steps; false where it is something else.
static bool range_to_size(pestle_onnx_call_t* call) {
  pestle_onnx_extent_t limit;
  const pestle_elements_t* start = pestle_value_constant(call->inputs[0]);
  const pestle_elements_t* step = pestle_value_constant(call->inputs[2]);
  pestle_dtype_t dtype = dtype_of(call->inputs[0]);
  if (!start || !step || !pestle_dtype_is(dtype, PESTLE_KIND_SIGNED) ||
      pestle_type_count(&start->type) != 1 ||
      pestle_type_count(&step->type) != 1 ||
      !pestle_onnx_extent(call, 1, &limit) || !limit.size) {
    return false;
  }
  int64_t from = pestle_onnx_element_i64(start, 0);
  int64_t by = pestle_onnx_element_i64(step, 0);
  if (by < 1 || by > INT32_MAX || from < INT32_MIN || from > INT32_MAX)
    return false;
  // ceil((limit - from) / by), at least 0.
  int64_t most = limit.dim - from + by - 1;
  pestle_type_t type = {
      .dtype = dtype, .rank = 1, .dims = {most > 0 ? most / by : 0}};
  if (pestle_onnx_keep(call, pestle_type_check(&type))) return true;
  pestle_value_t* size =
      add(call, limit.size, pestle_onnx_size_number(call, by - 1 - from));
  size = pestle_f_maximum(&call->f, size, pestle_onnx_size_number(call, 0));
  size = quotient(call, size, pestle_onnx_size_number(call, by));
  call->outputs[0] = make_range(call, &type);
  pestle_onnx_set_real(call, call->outputs[0], 0,
                       from || by > 1 ? size : limit.size);
  call->outputs[0] = pestle_onnx_end_real(call, call->outputs[0]);
  return true;
}

// From how many rows a cache has on, as many numbers as are added to that; false where it is
// something else.
static bool range_from_room(pestle_onnx_call_t* call) {
  pestle_onnx_extent_t ends[2];
  pestle_dtype_t dtype = dtype_of(call->inputs[0]);
  const pestle_elements_t* step = pestle_value_constant(call->inputs[2]);
  if (!step || !pestle_dtype_is(dtype, PESTLE_KIND_SIGNED) ||
      pestle_onnx_element_i64(step, 0) != 1 ||
      !pestle_onnx_extent(call, 0, &ends[0]) || !ends[0].size ||
      !pestle_onnx_room_of(call->import, ends[0].size) ||
      !pestle_onnx_extent(call, 1, &ends[1]) || !ends[1].size) {
    return false;
  }
  const pestle_type_t type = {
      .dtype = dtype,
      .rank = 1,
      .dims = {pestle_onnx_distance(ends[0].size, ends[1].size, 1)}};
  if (type.dims[0] < 0) return false;
  call->outputs[0] = make_range(call, &type);
  return true;
}

void pestle_onnx_import_range(pestle_onnx_call_t* call) {
  pestle_dtype_t dtype = dtype_of(call->inputs[0]);
  if (range_to_size(call) || range_from_room(call)) return;
  // Narrow floats cannot count far: they do it in f32.
  bool narrow =
      pestle_dtype_is(dtype, PESTLE_KIND_FLOAT) && pestle_dtype_size(dtype) < 4;
  pestle_type_t type = {.dtype = narrow ? PESTLE_F32 : dtype, .rank = 1};
  double start = pestle_onnx_input_float(call, 0, "start", 0);
  double limit = pestle_onnx_input_float(call, 1, "limit", 0);
  double delta = pestle_onnx_input_float(call, 2, "delta", 1);
  if (call->f.status) return;
  double count = delta == 0 ? (double)NAN : ceil((limit - start) / delta);
  if (!(count < 1e15)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "a range from %g to %g by %g has no end", start, limit,
                     delta);
    return;
  }
  type.dims[0] = count > 0 ? (int64_t)count : 0;
  if (pestle_onnx_keep(call, pestle_type_check(&type))) return;
  call->outputs[0] = pestle_onnx_convert(call, make_range(call, &type), dtype);
}

void pestle_onnx_import_eye_like(pestle_onnx_call_t* call) {
  pestle_type_t type = *pestle_onnx_type(call->inputs[0]);
  int64_t k = pestle_onnx_int(call, "k", 0);
  pestle_dtype_t dtype = type.dtype;
  if (pestle_onnx_has(call, "dtype")) {
    dtype = pestle_onnx_dtype(pestle_onnx_int(call, "dtype", 1));
  }
  if (type.rank != 2 || dtype == PESTLE_NONE) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "it needs a matrix and a known dtype");
    return;
  }
  type.dtype = PESTLE_I64;
  pestle_value_t* row = pestle_f_iota(&call->f, &type, 0);
  pestle_value_t* column = pestle_f_iota(&call->f, &type, 1);
  pestle_value_t* shifted =
      pestle_onnx_binary_f(call, PESTLE_OP_ADD, row, (double)k);
  call->outputs[0] =
      pestle_onnx_convert(call, pestle_f_eq(&call->f, shifted, column), dtype);
}

// --- Views ---

// Of a tensor or a sequence.
void pestle_onnx_import_identity(pestle_onnx_call_t* call) {
  call->outputs[0] = call->inputs[0];
  call->made[0] = call->sequences[0];
}

// In training each element is dropped with the probability |ratio|, the others grow.
static void drop_out(pestle_onnx_call_t* call) {
  pestle_value_t *x = call->inputs[0], *ratio = pestle_onnx_input(call, 1);
  pestle_value_t* u = pestle_onnx_uniform(call, pestle_onnx_type(x));
  pestle_dtype_t dtype = dtype_of(u);
  ratio = ratio ? pestle_f_reshape(&call->f, ratio, 0, NULL)
                : pestle_onnx_scalar(call, dtype, 0.5);
  ratio = pestle_onnx_convert(call, ratio, dtype);
  pestle_value_t* kept = pestle_f_ge(&call->f, u, ratio);
  pestle_value_t* share = sub(call, pestle_onnx_scalar(call, dtype, 1), ratio);
  pestle_value_t* y =
      quotient(call, pestle_onnx_convert(call, x, dtype), share);
  y = pestle_f_select(&call->f, kept, y, splat_like(call, y, 0));
  call->outputs[0] = pestle_onnx_convert(call, y, dtype_of(x));
  if (pestle_onnx_wants(call, 1)) call->outputs[1] = kept;
}

// In inference: the input as it is, and a mask that keeps everything.
void pestle_onnx_import_dropout(pestle_onnx_call_t* call) {
  pestle_value_t* training = pestle_onnx_input(call, 2);
  if (training) {
    const pestle_elements_t* mode = pestle_value_constant(training);
    if (!mode || !mode->size) {
      pestle_onnx_need(call, training);
      pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                       "its training_mode must be known while importing");
      return;
    }
    if (pestle_onnx_element_i64(mode, 0) != 0) {
      drop_out(call);
      return;
    }
  }
  call->outputs[0] = call->inputs[0];
  if (!pestle_onnx_wants(call, 1)) return;
  pestle_type_t type = *pestle_onnx_type(call->inputs[0]);
  if (call->opset >= 10) type.dtype = PESTLE_I1;
  // What is kept; ONNX Runtime had it the other way round before opset 12.
  bool none = call->opset < 12 && pestle_onnx_as_ort(call);
  call->outputs[1] = pestle_onnx_splat(call, &type, none ? 0 : 1);
}

// 0 copies an extent of the input (unless |allowzero|), -1 takes what is left.
static bool resolve_reshape(pestle_onnx_call_t* call, const pestle_type_t* from,
                            pestle_i64s_t wanted, bool allow_zero,
                            int64_t* dims) {
  int64_t known = 1, free_axis = -1;
  for (size_t i = 0; i < wanted.count; ++i) {
    dims[i] = wanted.data[i];
    if (dims[i] == 0 && !allow_zero && (int64_t)i < from->rank) {
      dims[i] = from->dims[i];
    }
    bool bad =
        dims[i] < -1 || (dims[i] == -1 && free_axis >= 0) ||
        (dims[i] != -1 && !pestle_checked_mul_i64(known, dims[i], &known));
    if (bad) {
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                       "extent %lld of axis %zu of the new shape makes no "
                       "sense",
                       (long long)dims[i], i);
      return false;
    }
    if (dims[i] == -1) free_axis = (int64_t)i;
  }
  int64_t count = pestle_type_count(from);
  if (free_axis >= 0) dims[free_axis] = known ? count / known : 0;
  if (free_axis >= 0 && known && count % known == 0) return true;
  if (free_axis < 0 && known == count) return true;
  if (free_axis >= 0 && !known && count == 0) return true;
  pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                   "%lld elements cannot be reshaped to a multiple of %lld",
                   (long long)count, (long long)known);
  return false;
}

// What a reshape of |x| that copies some axes, a bit each, has beside them.
typedef struct leftover_t {
  int64_t whole;         // elements that the type says
  int64_t bound;         // at most as many times
  pestle_value_t* size;  // really as many times; NULL for once
} leftover_t;

static leftover_t read_leftover(pestle_onnx_call_t* call,
                                const pestle_value_t* x, uint32_t copied) {
  leftover_t left = {.whole = 1, .bound = 1};
  for (int32_t i = 0; i < rank_of(x); ++i) {
    pestle_value_t* real = pestle_onnx_real_size(call->import, x, i);
    if (!real) left.whole *= pestle_onnx_dim(x, i);
    if (!real || copied >> i & 1) continue;
    left.bound *= pestle_onnx_dim(x, i);
    left.size = left.size ? mul(call, left.size, real) : real;
  }
  return left;
}

// Which bounded axis of |x|, not yet |copied|, extent |e| is, or is a multiple of, or has
// |*rest| of it behind each; -1 where it is none.
static int32_t axis_of(pestle_onnx_call_t* call, const pestle_value_t* x,
                       const pestle_onnx_extent_t* e, uint32_t copied,
                       int64_t* factor, int64_t* rest) {
  for (int32_t i = 0; i < rank_of(x); ++i) {
    pestle_value_t* real = pestle_onnx_real_size(call->import, x, i);
    int64_t dim = pestle_onnx_dim(x, i);
    if (!real || copied >> i & 1 || !dim || !e->dim) continue;
    *factor = e->dim < dim ? 1 : e->dim / dim;
    *rest = e->dim < dim ? dim / e->dim : 1;
    if (pestle_onnx_same_size(pestle_onnx_size_times(call, e->size, *rest),
                              pestle_onnx_size_times(call, real, *factor)))
      return i;
  }
  return -1;
}

// A reshape that is to have as many elements as |x|: the bounds, of which there may be
// more than |MOST_SPARE| times as many, and extents of the result, whose |free_axis| takes
// what is left.
typedef struct counted_t {
  int64_t dims[PESTLE_MAX_RANK], whole;
  pestle_value_t* sizes[PESTLE_MAX_RANK];
  pestle_value_t* product;  // of the extents but that of the free axis
  size_t free_axis;
} counted_t;

enum { MOST_SPARE = 16 };

static counted_t read_counted(pestle_onnx_call_t* call,
                              const pestle_onnx_extent_t* wanted, size_t count,
                              bool allow_zero) {
  pestle_value_t* x = call->inputs[0];
  counted_t c = {.whole = 1,
                 .product = pestle_onnx_size_number(call, 1),
                 .free_axis = count};
  for (size_t i = 0; i < count; ++i) {
    c.dims[i] = wanted[i].dim;
    c.sizes[i] = wanted[i].size;
    if (!c.sizes[i] && c.dims[i] == 0 && !allow_zero &&
        (int32_t)i < rank_of(x)) {
      c.dims[i] = pestle_onnx_dim(x, (int64_t)i);
      c.sizes[i] = pestle_onnx_real_size(call->import, x, (int64_t)i);
    }
    if (!c.sizes[i] && c.dims[i] == -1) {
      c.free_axis = i;
      continue;
    }
    if (!c.sizes[i] && !pestle_checked_mul_i64(c.whole, c.dims[i], &c.whole))
      c.dims[i] = -1;
    c.product =
        mul(call, c.product,
            c.sizes[i] ? c.sizes[i] : pestle_onnx_size_number(call, c.dims[i]));
  }
  return c;
}

// A reshape of which only a run shows that it has the elements that it should.
static void reshape_by_count(pestle_onnx_call_t* call,
                             const pestle_onnx_extent_t* wanted, size_t count,
                             bool allow_zero) {
  pestle_value_t *x = call->inputs[0], *made;
  pestle_value_t* total = pestle_onnx_size_product(call, x, 0, rank_of(x));
  int64_t most = pestle_type_count(pestle_onnx_type(x)), places = 1;
  counted_t c = read_counted(call, wanted, count, allow_zero);
  if (!total) total = pestle_onnx_size_number(call, most);
  made = c.product;
  if (c.free_axis < count) {
    pestle_value_t* one = pestle_onnx_size_number(call, 1);
    c.dims[c.free_axis] = c.whole ? most / c.whole : 0;
    c.sizes[c.free_axis] =
        quotient(call, total, pestle_f_maximum(&call->f, c.product, one));
    made = mul(call, made, c.sizes[c.free_axis]);
  }
  bool fits = true;
  for (size_t i = 0; i < count; ++i) {
    fits = fits && pestle_checked_mul_i64(places, c.dims[i], &places);
    if (c.dims[i] >= 0) continue;
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "extent %lld of axis %zu of the new shape makes no sense",
                     (long long)wanted[i].dim, i);
    return;
  }
  fits = fits && places / MOST_SPARE <= most;
  if (fits && pestle_onnx_must_hold(call, pestle_f_eq(&call->f, total, made))) {
    call->outputs[0] =
        pestle_onnx_reshape_real(call, x, (int32_t)count, c.dims, c.sizes);
    return;
  }
  pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                   "only a run tells whether it has as many elements as its "
                   "shape says");
}

// Extents that only a run tells are copied, by 0 or as they are computed, or go
// to the axis that is left free.
static void reshape_bounded(pestle_onnx_call_t* call,
                            const pestle_onnx_extent_t* wanted, size_t count,
                            bool allow_zero) {
  pestle_value_t *x = call->inputs[0], *sizes[PESTLE_MAX_RANK] = {NULL};
  int64_t dims[PESTLE_MAX_RANK], known = 1, factor, rest, split = 1;
  uint32_t copied = 0;
  size_t free_axis = count;
  for (size_t i = 0; i < count; ++i) {
    dims[i] = wanted[i].dim;
    sizes[i] = wanted[i].size;
    int32_t from = -1;
    if (sizes[i]) {
      from = axis_of(call, x, &wanted[i], copied, &factor, &rest);
      if (from < 0) {
        reshape_by_count(call, wanted, count, allow_zero);
        return;
      }
      split *= rest;
    } else if (dims[i] == 0 && !allow_zero && (int32_t)i < rank_of(x)) {
      from = (int32_t)i;
      dims[i] = pestle_onnx_dim(x, from);
      sizes[i] = pestle_onnx_real_size(call->import, x, from);
    }
    if (sizes[i]) copied |= 1u << from;
    bool is_number = !sizes[i] && dims[i] != -1;
    if (is_number) factor = dims[i];
    if (dims[i] < -1 || (dims[i] == -1 && free_axis < count) ||
        ((is_number || wanted[i].size) &&
         !pestle_checked_mul_i64(known, factor, &known))) {
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                       "extent %lld of axis %zu of the new shape makes no "
                       "sense",
                       (long long)dims[i], i);
      return;
    }
    if (dims[i] == -1) free_axis = i;
  }
  leftover_t left = read_leftover(call, x, copied);
  left.whole *= split;
  bool is_free = free_axis < count;
  if (is_free ? !known || left.whole % known
              : left.size || left.whole != known) {
    reshape_by_count(call, wanted, count, allow_zero);
    return;
  }
  if (is_free) {
    int64_t rows = left.whole / known;
    dims[free_axis] = rows * left.bound;
    sizes[free_axis] =
        left.size ? pestle_onnx_size_times(call, left.size, rows) : NULL;
  }
  call->outputs[0] =
      pestle_onnx_reshape_real(call, x, (int32_t)count, dims, sizes);
}

void pestle_onnx_import_reshape(pestle_onnx_call_t* call) {
  pestle_onnx_extent_t extents[PESTLE_MAX_RANK];
  size_t count;
  bool allow_zero = pestle_onnx_int(call, "allowzero", 0) != 0;
  if (call->opset >= 5 && pestle_onnx_extents(call, 1, extents, &count)) {
    reshape_bounded(call, extents, count, allow_zero);
    return;
  }
  pestle_i64s_t wanted = call->opset < 5
                             ? pestle_onnx_ints(call, "shape")
                             : pestle_onnx_input_ints(call, 1, "shape");
  int64_t dims[PESTLE_MAX_RANK];
  if (!check_rank(call, (int64_t)wanted.count)) return;
  if (pestle_onnx_real(call->import, call->inputs[0])) {
    for (size_t i = 0; i < wanted.count; ++i)
      extents[i] = (pestle_onnx_extent_t){.dim = wanted.data[i]};
    reshape_bounded(call, extents, wanted.count, allow_zero);
    return;
  }
  if (!resolve_reshape(call, pestle_onnx_type(call->inputs[0]), wanted,
                       allow_zero, dims)) {
    return;
  }
  call->outputs[0] =
      pestle_f_reshape(&call->f, call->inputs[0], (int32_t)wanted.count, dims);
}

void pestle_onnx_import_flatten(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  int64_t rank = rank_of(x), axis = pestle_onnx_int(call, "axis", 1);
  if (axis != rank) axis = pestle_onnx_axis(call, axis, rank);
  int64_t dims[2] = {pestle_onnx_dims_product(x, 0, axis),
                     pestle_onnx_dims_product(x, axis, rank)};
  if (!pestle_onnx_real(call->import, x)) {
    call->outputs[0] = pestle_f_reshape(&call->f, x, 2, dims);
    return;
  }
  pestle_value_t* sizes[2] = {pestle_onnx_size_product(call, x, 0, axis),
                              pestle_onnx_size_product(call, x, axis, rank)};
  call->outputs[0] = pestle_onnx_reshape_real(call, x, 2, dims, sizes);
}

void pestle_onnx_import_squeeze(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  int64_t axes[PESTLE_MAX_RANK], dims[PESTLE_MAX_RANK], rank = rank_of(x);
  bool given;
  size_t count = pestle_onnx_axes(call, 13, rank, axes, &given);
  int32_t kept = 0;
  pestle_value_t* sizes[PESTLE_MAX_RANK];
  for (int64_t i = 0; i < rank; ++i) {
    bool squeezed = !given && pestle_onnx_dim(x, i) == 1;
    for (size_t j = 0; given && j < count; ++j)
      squeezed |= axes[j] == i;
    pestle_value_t* size = pestle_onnx_real_size(call->import, x, i);
    bool shows = size && squeezed && given && pestle_onnx_dim(x, i) > 0 &&
                 pestle_onnx_must_hold(
                     call, pestle_f_eq(&call->f, size,
                                       pestle_onnx_size_number(call, 1)));
    if (shows) {
      x = pestle_onnx_first_real(call, x, i);
    } else if (size && (squeezed || !given)) {
      pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                       "whether axis %lld has the extent 1 only a run tells",
                       (long long)i);
    }
    if (!squeezed) {
      sizes[kept] = size;
      dims[kept++] = pestle_onnx_dim(x, i);
    } else if (pestle_onnx_dim(x, i) != 1) {
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                       "axis %lld has the extent %lld, not 1", (long long)i,
                       (long long)pestle_onnx_dim(x, i));
    }
  }
  if (call->f.status) return;
  call->outputs[0] = pestle_f_reshape(&call->f, x, kept, dims);
  for (int32_t i = 0; i < kept; ++i)
    pestle_onnx_set_real(call, call->outputs[0], i, sizes[i]);
}

void pestle_onnx_import_unsqueeze(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  pestle_i64s_t list = call->opset < 13
                           ? pestle_onnx_ints(call, "axes")
                           : pestle_onnx_input_ints(call, 1, "axes");
  int64_t rank = rank_of(x) + (int64_t)list.count;
  int64_t dims[PESTLE_MAX_RANK];
  bool added[PESTLE_MAX_RANK] = {false};
  if (!check_rank(call, rank)) return;
  for (size_t i = 0; i < list.count; ++i) {
    int64_t axis = pestle_onnx_axis(call, list.data[i], rank);
    if (added[axis]) {
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                       "axis %lld is given twice", (long long)axis);
    }
    added[axis] = true;
  }
  if (call->f.status) return;
  for (int64_t i = 0, from = 0; i < rank; ++i) {
    dims[i] = added[i] ? 1 : pestle_onnx_dim(x, from++);
  }
  call->outputs[0] = pestle_f_reshape(&call->f, x, (int32_t)rank, dims);
  for (int64_t i = 0, from = 0; i < rank; ++i) {
    if (added[i]) continue;
    pestle_onnx_set_real(call, call->outputs[0], i,
                         pestle_onnx_real_size(call->import, x, from++));
  }
}

void pestle_onnx_import_transpose(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  int64_t rank = rank_of(x), reversed[PESTLE_MAX_RANK];
  pestle_i64s_t perm = pestle_onnx_ints(call, "perm");
  for (int64_t i = 0; i < rank; ++i)
    reversed[i] = rank - 1 - i;
  if (!pestle_onnx_has(call, "perm")) {
    perm = (pestle_i64s_t){reversed, (size_t)rank};
  }
  if ((int64_t)perm.count != rank) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "attribute 'perm' has %zu axes, the input has %lld",
                     perm.count, (long long)rank);
    return;
  }
  call->outputs[0] = pestle_onnx_transpose_real(call, x, perm.data);
}

// --- Joining, cutting, repeating ---

// Along other axes than the one that is joined they are all alike. |sizes|: how long.
static bool fit_parts(pestle_onnx_call_t* call, pestle_value_t** values,
                      size_t count, int64_t joined, pestle_value_t** sizes) {
  int64_t* axes = pestle_onnx_scratch(call, (count + 1) * sizeof(int64_t));
  for (int64_t axis = 0; axes && axis < rank_of(values[0]); ++axis) {
    for (size_t i = 0; i < count; ++i)
      axes[i] = axis < rank_of(values[i]) ? axis : -1;
    if (axis != joined &&
        !pestle_onnx_fit(call, values, axes, count, &sizes[axis])) {
      return false;
    }
  }
  return axes && !call->f.status;
}

pestle_value_t* pestle_onnx_join(pestle_onnx_call_t* call,
                                 pestle_value_t** values, size_t count,
                                 int64_t axis) {
  pestle_value_t* sizes[PESTLE_MAX_RANK] = {NULL};
  if (call->f.status || !fit_parts(call, values, count, axis, sizes))
    return NULL;
  bool bounded = false;
  for (size_t i = 0; i < count; ++i) {
    bounded = bounded || pestle_onnx_real_size(call->import, values[i], axis);
  }
  pestle_value_t* y = bounded
                          ? pestle_onnx_concat_real(call, values, count, axis)
                          : pestle_f_concatenate(&call->f, values, count, axis);
  for (int32_t i = 0; !call->f.status && i < rank_of(y); ++i) {
    if (i != axis) pestle_onnx_set_real(call, y, i, sizes[i]);
  }
  return y;
}

void pestle_onnx_import_concat(pestle_onnx_call_t* call) {
  int64_t missing = call->opset < 4 ? 1 : 0;
  int64_t axis = pestle_onnx_axis(call, pestle_onnx_int(call, "axis", missing),
                                  rank_of(call->inputs[0]));
  call->outputs[0] =
      pestle_onnx_join(call, call->inputs, call->input_count, axis);
}

// The sizes of the parts: given, or as equal as they can be.
static bool split_sizes(pestle_onnx_call_t* call, int64_t extent,
                        int64_t* sizes, size_t parts) {
  pestle_i64s_t given = pestle_onnx_ints(call, "split");
  // An attribute from opset 2 to 12; at 1 it could be either.
  if ((call->opset >= 13 || call->opset < 2) && pestle_onnx_input(call, 1)) {
    given = pestle_onnx_input_ints(call, 1, "split");
  }
  if (call->f.status) return false;
  if (given.count && given.count != parts) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "%zu parts are given sizes, it has %zu outputs",
                     given.count, parts);
    return false;
  }
  int64_t count = (int64_t)parts, sum = 0;
  int64_t part = extent / count + (extent % count != 0);
  bool fits = true;
  if (!given.count && extent % count && call->opset < 18) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its axis of %lld has no %lld equal parts, which opsets "
                     "before 18 ask for",
                     (long long)extent, (long long)count);
    return false;
  }
  for (size_t i = 0; fits && i < parts; ++i) {
    int64_t left = extent - sum;
    sizes[i] = given.count ? given.data[i] : (left < part ? left : part);
    fits = sizes[i] >= 0 && sizes[i] <= left;
    if (fits) sum += sizes[i];
  }
  if (fits && sum == extent) return true;
  pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                   "the sizes of its parts do not add up to %lld",
                   (long long)extent);
  return false;
}

// Parts of an axis whose extent only a run tells: each is the extent over their number,
// rounded up, and the last ones what is left.
static void split_evenly(pestle_onnx_call_t* call, pestle_value_t* x,
                         int64_t axis) {
  pestle_formula_t* f = &call->f;
  int64_t count = (int64_t)call->output_count;
  int64_t bound = (pestle_onnx_dim(x, axis) + count - 1) / count;
  pestle_value_t* size = pestle_onnx_real_size(call->import, x, axis);
  pestle_value_t* part =
      quotient(call, add(call, size, pestle_onnx_size_number(call, count - 1)),
               pestle_onnx_size_number(call, count));
  // Before, all parts had to be alike.
  if (call->opset < 18 &&
      !pestle_onnx_must_hold(
          call,
          pestle_f_eq(f, pestle_onnx_size_times(call, part, count), size))) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "only a run tells whether axis %lld is a multiple of %lld",
                     (long long)axis, (long long)count);
  }
  for (int64_t i = 0; i < count; ++i) {
    pestle_value_t* from = pestle_onnx_size_times(call, part, i);
    pestle_value_t* left = pestle_f_maximum(f, sub(call, size, from),
                                            pestle_onnx_size_number(call, 0));
    call->outputs[i] = pestle_onnx_part_real(
        call, x, axis, from, pestle_f_minimum(f, left, part), bound);
  }
}

// Parts of stated sizes, of which some are what only a run tells, or that have to add up
// to what it tells.
static void split_computed(pestle_onnx_call_t* call, pestle_value_t* x,
                           int64_t axis, pestle_value_t* sizes) {
  int64_t count = (int64_t)call->output_count;
  pestle_value_t *from = pestle_onnx_size_number(call, 0), *zero = from;
  bool may_fail = true;
  if (rank_of(sizes) != 1 || pestle_onnx_dim(sizes, 0) != count) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "%lld parts are given sizes, it has %lld outputs",
                     (long long)pestle_type_count(pestle_onnx_type(sizes)),
                     (long long)count);
    return;
  }
  for (int64_t i = 0; i < count && !call->f.status; ++i) {
    pestle_value_t* size = pestle_onnx_list_number(call, sizes, i);
    const pestle_elements_t* known = size ? pestle_value_constant(size) : NULL;
    int64_t bound = pestle_onnx_number_bound(call, size);
    if (bound < 0) bound = pestle_onnx_dim(x, axis);
    call->outputs[i] =
        pestle_onnx_part_real(call, x, axis, from, known ? NULL : size, bound);
    from = add(call, from, size);
    if (!known)
      may_fail &=
          pestle_onnx_must_hold(call, pestle_f_ge(&call->f, size, zero));
  }
  if (!may_fail ||
      !pestle_onnx_must_hold(
          call, pestle_f_eq(&call->f, from, pestle_onnx_size(call, x, axis)))) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "only a run tells how long axis %lld is, which it splits "
                     "into parts of stated sizes",
                     (long long)axis);
  }
}

// The list of sizes, or NULL where there is none.
static pestle_value_t* stated_sizes(pestle_onnx_call_t* call) {
  if ((call->opset >= 13 || call->opset < 2) && pestle_onnx_input(call, 1))
    return call->inputs[1];
  pestle_i64s_t given = pestle_onnx_ints(call, "split");
  return given.count ? pestle_onnx_int_list(call, given.data, given.count)
                     : NULL;
}

void pestle_onnx_import_split(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  int64_t axis =
      pestle_onnx_axis(call, pestle_onnx_int(call, "axis", 0), rank_of(x));
  size_t parts = call->output_count;
  int64_t* sizes = pestle_onnx_scratch(call, (parts + 1) * sizeof(int64_t));
  int64_t outputs = pestle_onnx_int(call, "num_outputs", (int64_t)parts);
  if (call->opset >= 18 && outputs != (int64_t)parts) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "attribute 'num_outputs' is %lld, it has %zu outputs",
                     (long long)outputs, parts);
  }
  if (!sizes || call->f.status || !parts) return;
  pestle_onnx_extent_t extents[PESTLE_MAX_RANK];
  size_t unused;
  bool bounded = pestle_onnx_real_size(call->import, x, axis) != NULL;
  pestle_value_t* stated = stated_sizes(call);
  if (stated && (bounded || pestle_onnx_extents(call, 1, extents, &unused) ||
                 (!pestle_value_constant(stated) &&
                  !pestle_onnx_can_need(call, stated)))) {
    split_computed(call, x, axis, stated);
    return;
  }
  if (bounded) {
    split_evenly(call, x, axis);
    return;
  }
  if (!split_sizes(call, pestle_onnx_dim(x, axis), sizes, parts)) return;
  int64_t at = 0;
  for (size_t i = 0; i < parts; ++i) {
    call->outputs[i] =
        pestle_onnx_slice_axis(call, x, axis, at, at + sizes[i], 1);
    pestle_onnx_copy_real(call, call->outputs[i], x);
    at += sizes[i];
  }
}

// The extents that it asks for, of which some may be sizes.
static bool read_expansion(pestle_onnx_call_t* call, pestle_type_t* wanted,
                           pestle_value_t** sizes) {
  pestle_onnx_extent_t extents[PESTLE_MAX_RANK];
  size_t count = 0;
  if (!pestle_onnx_extents(call, 1, extents, &count)) {
    return read_dims(call, pestle_onnx_input_ints(call, 1, "shape"), wanted);
  }
  int64_t dims[PESTLE_MAX_RANK];
  for (size_t i = 0; i < count; ++i) {
    dims[i] = extents[i].dim;
    sizes[i] = extents[i].size;
  }
  return read_dims(call, (pestle_i64s_t){dims, count}, wanted);
}

// An axis that has one element is repeated; else both sides are known to be equal.
static bool expansion_fits(pestle_onnx_call_t* call, int32_t axis,
                           pestle_value_t* size, int64_t dim,
                           pestle_value_t* wanted, int64_t wanted_dim) {
  bool is_one = !size && dim == 1, asks_one = !wanted && wanted_dim == 1;
  if (is_one || asks_one || (!size && !wanted) ||
      pestle_onnx_same_size(size, wanted)) {
    return true;
  }
  pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                   "whether axis %d of its input has %lld elements only a run "
                   "tells",
                   axis, (long long)wanted_dim);
  return false;
}

void pestle_onnx_import_expand(pestle_onnx_call_t* call) {
  pestle_value_t *x = call->inputs[0], *sizes[PESTLE_MAX_RANK] = {NULL};
  pestle_type_t wanted = {.dtype = dtype_of(x)}, type;
  if (!read_expansion(call, &wanted, sizes)) return;
  int32_t rank = rank_of(x) > wanted.rank ? rank_of(x) : wanted.rank;
  int32_t more = rank - rank_of(x), skipped = rank - wanted.rank;
  for (int32_t i = 0; i < rank_of(x); ++i) {
    int32_t at = i + more - skipped;
    if (at >= 0 &&
        !expansion_fits(call, i, pestle_onnx_real_size(call->import, x, i),
                        pestle_onnx_dim(x, i), sizes[at], wanted.dims[at])) {
      return;
    }
  }
  if (!pestle_onnx_common_shape(call, pestle_onnx_type(x), &wanted, &type)) {
    return;
  }
  pestle_value_t* y = pestle_onnx_broadcast(call, x, type.rank, type.dims);
  call->outputs[0] = y;
  for (int32_t i = 0; y != x && i < rank; ++i) {
    pestle_value_t* own =
        i >= more ? pestle_onnx_real_size(call->import, x, i - more) : NULL;
    pestle_onnx_set_real(call, y, i,
                         own || i < skipped ? own : sizes[i - skipped]);
  }
  if (y != x) call->outputs[0] = pestle_onnx_end_real(call, y);
}

// |x| repeated along |axis|, whose extent only a run tells: place p is the remainder of
// p by that. NULL on failure.
static pestle_value_t* repeat_real(pestle_onnx_call_t* call, pestle_value_t* x,
                                   int64_t axis, int64_t times) {
  pestle_formula_t* f = &call->f;
  pestle_value_t* size = pestle_onnx_real_size(call->import, x, axis);
  pestle_type_t list = {.dtype = PESTLE_I64, .rank = 1};
  if (!times) {
    pestle_value_t* none = pestle_onnx_slice_axis(call, x, axis, 0, 0, 1);
    for (int32_t i = 0; i < rank_of(x); ++i) {
      if (i != axis)
        pestle_onnx_set_real(call, none, i,
                             pestle_onnx_real_size(call->import, x, i));
    }
    return none;
  }
  if (!pestle_checked_mul_i64(pestle_onnx_dim(x, axis), times, &list.dims[0])) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "axis %lld cannot be repeated %lld times",
                            (long long)axis, (long long)times);
  }
  pestle_value_t* some =
      pestle_f_maximum(f, size, pestle_onnx_size_number(call, 1));
  pestle_value_t* at = pestle_f_remainder(f, pestle_f_iota(f, &list, 0), some);
  pestle_value_t* y = pestle_onnx_take(call, x, at, axis);
  pestle_onnx_copy_real(call, y, x);
  pestle_onnx_set_real(call, y, axis,
                       pestle_onnx_size_times(call, size, times));
  return pestle_onnx_end_real(call, y);
}

// [a, b] repeated (m, n) times is [1, a, 1, b] broadcast to [m, a, n, b].
void pestle_onnx_import_tile(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  pestle_i64s_t repeats = pestle_onnx_input_ints(call, 1, "repeats");
  int32_t rank = rank_of(x), wide = 0;
  if (call->f.status) return;
  if (repeats.count != (size_t)rank) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its repeats have %zu numbers, the input %d axes",
                     repeats.count, rank);
    return;
  }
  int64_t dims[2 * PESTLE_MAX_RANK], axes[PESTLE_MAX_RANK];
  pestle_type_t type = *pestle_onnx_type(x);
  for (int32_t i = 0; i < rank; ++i) {
    int64_t times = repeats.data[i];
    if (pestle_onnx_real_size(call->import, x, i) && times != 1 && times >= 0) {
      x = repeat_real(call, x, i, times);
      if (!x) return;
      type = *pestle_onnx_type(x);
    }
  }
  for (int32_t i = 0; i < rank; ++i) {
    if (pestle_onnx_real_size(call->import, x, i)) {
      axes[i] = wide;
      dims[wide++] = type.dims[i];
      continue;
    }
    if (repeats.data[i] != 1) dims[wide++] = repeats.data[i];
    axes[i] = wide;
    dims[wide++] = type.dims[i];
    if (repeats.data[i] < 0 ||
        !pestle_checked_mul_i64(type.dims[i], repeats.data[i], &type.dims[i])) {
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                       "axis %d cannot be repeated %lld times", i,
                       (long long)repeats.data[i]);
    }
  }
  if (!check_rank(call, wide)) return;
  pestle_value_t* tiled = pestle_f_broadcast(
      &call->f, x, wide, dims, (pestle_i64s_t){axes, (size_t)rank_of(x)});
  call->outputs[0] = pestle_f_reshape(&call->f, tiled, rank, type.dims);
  pestle_onnx_copy_real(call, call->outputs[0], x);
}

void pestle_onnx_import_trilu(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  bool upper = pestle_onnx_int(call, "upper", 1) != 0;
  double k = pestle_onnx_input_float(call, 1, "k", 0);
  int32_t rank = rank_of(x);
  if (rank < 2 || call->f.status) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED, "it needs a matrix");
    return;
  }
  pestle_type_t type = {
      .dtype = PESTLE_I64,
      .rank = 2,
      .dims = {pestle_onnx_dim(x, rank - 2), pestle_onnx_dim(x, rank - 1)}};
  pestle_value_t* diagonal = pestle_onnx_binary_f(
      call, PESTLE_OP_ADD, pestle_f_iota(&call->f, &type, 0), k);
  pestle_value_t* keeps =
      pestle_f_binary(&call->f, upper ? PESTLE_OP_GE : PESTLE_OP_LE,
                      pestle_f_iota(&call->f, &type, 1), diagonal);
  call->outputs[0] =
      pestle_f_select(&call->f, keeps, x, splat_like(call, x, 0));
}

// --- Blocks of space and depth ---

static bool block_dims(pestle_onnx_call_t* call, int64_t* n, int64_t* c,
                       int64_t* h, int64_t* w, int64_t* block) {
  pestle_value_t* x = call->inputs[0];
  *block = pestle_onnx_int(call, "blocksize", 0);
  // So that its square times an extent does not overflow.
  if (rank_of(x) != 4 || *block < 1 || *block > 1 << 7) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "it needs an NCHW input and a blocksize of 1 to 128, its "
                     "rank is %d and its blocksize %lld",
                     rank_of(x), (long long)*block);
    return false;
  }
  *n = pestle_onnx_dim(x, 0);
  *c = pestle_onnx_dim(x, 1);
  *h = pestle_onnx_dim(x, 2);
  *w = pestle_onnx_dim(x, 3);
  return true;
}

void pestle_onnx_import_depth_to_space(pestle_onnx_call_t* call) {
  int64_t n, c, h, w, b;
  if (!block_dims(call, &n, &c, &h, &w, &b)) return;
  bool crd = pestle_str_equal_c(
      pestle_onnx_word(call, "mode", "DCR", "DCR CRD"), "CRD");
  int64_t depth = c / (b * b);
  const int64_t dcr_dims[6] = {n, b, b, depth, h, w};
  const int64_t crd_dims[6] = {n, depth, b, b, h, w};
  const int64_t dcr_order[6] = {0, 3, 4, 1, 5, 2};
  const int64_t crd_order[6] = {0, 1, 4, 2, 5, 3};
  const int64_t dims[4] = {n, depth, h * b, w * b};
  pestle_value_t* split =
      pestle_f_reshape(&call->f, call->inputs[0], 6, crd ? crd_dims : dcr_dims);
  pestle_value_t* moved =
      pestle_f_transpose(&call->f, split, crd ? crd_order : dcr_order);
  call->outputs[0] = pestle_f_reshape(&call->f, moved, 4, dims);
}

void pestle_onnx_import_space_to_depth(pestle_onnx_call_t* call) {
  int64_t n, c, h, w, b;
  if (!block_dims(call, &n, &c, &h, &w, &b)) return;
  const int64_t split_dims[6] = {n, c, h / b, b, w / b, b};
  const int64_t dcr_order[6] = {0, 3, 5, 1, 2, 4};
  const int64_t crd_order[6] = {0, 1, 3, 5, 2, 4};
  bool crd = pestle_str_equal_c(
      pestle_onnx_word(call, "mode", "DCR", "DCR CRD"), "CRD");
  const int64_t dims[4] = {n, c * b * b, h / b, w / b};
  pestle_value_t* split =
      pestle_f_reshape(&call->f, call->inputs[0], 6, split_dims);
  pestle_value_t* moved =
      pestle_f_transpose(&call->f, split, crd ? crd_order : dcr_order);
  call->outputs[0] = pestle_f_reshape(&call->f, moved, 4, dims);
}

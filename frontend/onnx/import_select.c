// SPDX-License-Identifier: Apache-2.0
// Ops whose results are as long as their inputs' elements say (NonZero,
// Compress, ...). Inputs that are known while importing decide the length then;
// for others the result has as many elements as there could be at most, the
// chosen ones in front, and a real extent (bounded.h).
//
//   flags   [0 1 1 0 1]
//   places  [1 2 4 . .], of which 3 are real (pestle.places)
#include <math.h>

#include "base/mem.h"
#include "frontend/onnx/bounded.h"
#include "frontend/onnx/ops.h"

// The constant behind input |index| if it is known and not too long.
static const pestle_elements_t* known_elements(pestle_onnx_call_t* call,
                                               size_t index) {
  const pestle_elements_t* known = pestle_value_constant(call->inputs[index]);
  bool is_short =
      known && pestle_type_count(&known->type) <= PESTLE_ONNX_MAX_INDICES;
  return is_short ? known : NULL;
}

// --- Places of flags ---

// False, with an error kept, for more elements than an i32 numbers.
static bool can_number(pestle_onnx_call_t* call, int64_t count) {
  if (count <= INT32_MAX) return !call->f.status;
  pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                   "it chooses among %lld elements; at most 2^31 - 1 can be "
                   "numbered",
                   (long long)count);
  return false;
}

static pestle_type_t i32_list(int64_t count) {
  return (pestle_type_t){.dtype = PESTLE_I32, .rank = 1, .dims = {count}};
}

static pestle_value_t* i32_iota(pestle_onnx_call_t* call, int64_t count) {
  pestle_type_t type = i32_list(count);
  return pestle_f_iota(&call->f, &type, 0);
}

static pestle_value_t* i32_zeros(pestle_onnx_call_t* call, int64_t count) {
  pestle_type_t type = i32_list(count);
  return pestle_onnx_splat_int(call, &type, 0);
}

static pestle_value_t* sum_all(pestle_onnx_call_t* call, pestle_value_t* list) {
  int64_t axis = 0;
  return pestle_onnx_convert(
      call, pestle_onnx_reduce(call, PESTLE_OP_ADD, list, &axis, 1, false),
      PESTLE_I64);
}

// The positions of |flags|, an i1 list, in front of a list as long, i32, and how
// many there are, i64.
static pestle_value_t* places_of(pestle_onnx_call_t* call,
                                 pestle_value_t* flags,
                                 pestle_value_t** out_count) {
  *out_count = NULL;
  if (!flags) return NULL;
  pestle_node_t* node =
      pestle_f_node(&call->f, &(pestle_node_spec_t){.op = PESTLE_OP_PLACES,
                                                    .operands = &flags,
                                                    .operand_count = 1});
  if (!node) return NULL;
  *out_count = pestle_node_result(node, 1);
  return pestle_node_result(node, 0);
}

static bool is_set(const pestle_elements_t* elements, int64_t i) {
  return pestle_onnx_element_f64(elements, (size_t)i) != 0;
}

// |flags| without those of |x| that are not real.
static pestle_value_t* real_flags(pestle_onnx_call_t* call, pestle_value_t* x,
                                  pestle_value_t* flags) {
  pestle_value_t* mask = pestle_onnx_real_mask(
      call, pestle_onnx_type(x), pestle_onnx_real(call->import, x), UINT32_MAX);
  return mask ? pestle_f_and(&call->f, flags, mask) : flags;
}

static void compress_by(pestle_onnx_call_t* call, pestle_value_t* x,
                        int64_t axis) {
  pestle_value_t *flags = call->inputs[1], *count;
  if (!can_number(call, pestle_onnx_dim(flags, 0))) return;
  flags = real_flags(call, flags, pestle_onnx_convert(call, flags, PESTLE_I1));
  pestle_value_t* places = places_of(call, flags, &count);
  call->outputs[0] = pestle_onnx_take(call, x, places, axis);
  pestle_onnx_set_real(call, call->outputs[0], axis, count);
  call->outputs[0] = pestle_onnx_end_real(call, call->outputs[0]);
}

// The places along an axis where the condition holds.
void pestle_onnx_import_compress(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  const pestle_value_t* given = call->inputs[1];
  const pestle_elements_t* condition = known_elements(call, 1);
  int64_t axis = 0, count = pestle_type_count(pestle_onnx_type(x));
  if (pestle_onnx_real(call->import, x)) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "the extents of its data are known after a run only");
    return;
  }
  if (pestle_onnx_has(call, "axis")) {
    axis = pestle_onnx_axis(call, pestle_onnx_int(call, "axis", 0), rank_of(x));
  } else {
    x = pestle_f_reshape(&call->f, x, 1, &count);
  }
  int64_t length = pestle_type_count(pestle_onnx_type(given)), used = 0;
  if (call->f.status || rank_of(given) != 1 ||
      length > pestle_onnx_dim(x, axis)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its condition has %lld elements for an axis of %lld",
                     (long long)length, (long long)pestle_onnx_dim(x, axis));
    return;
  }
  if (!condition) {
    compress_by(call, x, axis);
    return;
  }
  int64_t* places =
      pestle_onnx_scratch(call, (size_t)(length + 1) * sizeof(int64_t));
  for (int64_t i = 0; places && i < length; ++i) {
    if (is_set(condition, i)) places[used++] = i;
  }
  if (!places) return;
  call->outputs[0] =
      used ? pestle_onnx_take_list(call, x, places, (size_t)used, axis)
           : pestle_onnx_slice_axis(call, x, axis, 0, 0, 1);
}

// Row |axis| of the result: coordinates of |places| in |type|.
static pestle_value_t* coordinates(pestle_onnx_call_t* call,
                                   const pestle_type_t* type, int32_t axis,
                                   pestle_value_t* places) {
  int64_t stride = 1, row[] = {1, pestle_onnx_dim(places, 0)};
  for (int32_t i = axis + 1; i < type->rank; ++i)
    stride *= type->dims[i];
  places = pestle_onnx_binary_f(call, PESTLE_OP_DIVIDE, places, (double)stride);
  if (axis > 0) {
    places = pestle_onnx_binary_f(call, PESTLE_OP_REMAINDER, places,
                                  (double)type->dims[axis]);
  }
  return pestle_f_reshape(&call->f, places, 2, row);
}

static void find_non_zero(pestle_onnx_call_t* call) {
  pestle_value_t *x = call->inputs[0], *real, *rows[PESTLE_MAX_RANK];
  const pestle_type_t* type = pestle_onnx_type(x);
  int64_t count = pestle_type_count(type);
  int32_t rank = type->rank;
  if (!can_number(call, count)) return;
  if (count == 0) {
    pestle_type_t none = {.dtype = PESTLE_I64, .rank = 2, .dims = {rank, 0}};
    call->outputs[0] = pestle_onnx_splat_int(call, &none, 0);
    return;
  }
  pestle_value_t* flags =
      real_flags(call, x, pestle_onnx_convert(call, x, PESTLE_I1));
  flags = pestle_f_reshape(&call->f, flags, 1, &count);
  pestle_value_t* places = places_of(call, flags, &real);
  for (int32_t i = 0; i < rank; ++i)
    rows[i] = coordinates(call, type, i, places);
  call->outputs[0] = pestle_onnx_convert(
      call, pestle_f_concatenate(&call->f, rows, (size_t)rank, 0), PESTLE_I64);
  pestle_onnx_set_real(call, call->outputs[0], 1, real);
  call->outputs[0] = pestle_onnx_end_real(call, call->outputs[0]);
}

static void non_zero_scalar(pestle_onnx_call_t* call,
                            const pestle_elements_t* known) {
  pestle_type_t none = {.dtype = PESTLE_I64, .rank = 2, .dims = {0, 1}};
  if (known) none.dims[1] = is_set(known, 0);
  call->outputs[0] = pestle_onnx_splat_int(call, &none, 0);
  if (known) return;
  pestle_value_t* is_one =
      pestle_onnx_convert(call, call->inputs[0], PESTLE_I1);
  pestle_onnx_set_real(call, call->outputs[0], 1,
                       pestle_onnx_convert(call, is_one, PESTLE_I64));
}

// The indices of what is not 0: a row for each axis.
void pestle_onnx_import_non_zero(pestle_onnx_call_t* call) {
  const pestle_elements_t* x = known_elements(call, 0);
  // A scalar has no axes: 0 rows, and a column if it is not 0.
  if (!rank_of(call->inputs[0])) {
    non_zero_scalar(call, x);
    return;
  }
  if (!x) {
    find_non_zero(call);
    return;
  }
  int64_t count = pestle_type_count(&x->type), found = 0;
  int32_t rank = x->type.rank;
  for (int64_t i = 0; i < count; ++i)
    found += is_set(x, i);
  int64_t* indices =
      pestle_onnx_scratch(call, (size_t)(found * rank + 1) * sizeof(int64_t));
  for (int64_t i = 0, at = 0; indices && i < count; ++i) {
    if (!is_set(x, i)) continue;
    int64_t rest = i;
    for (int32_t axis = rank - 1; axis >= 0; --axis) {
      int64_t extent = x->type.dims[axis];
      indices[axis * found + at] = rest % extent;
      rest /= extent;
    }
    ++at;
  }
  if (!indices) return;
  int64_t dims[] = {rank, found};
  call->outputs[0] = pestle_f_reshape(
      &call->f, pestle_onnx_int_list(call, indices, (size_t)(found * rank)), 2,
      dims);
}

// --- Unique ---

// What is told apart: |rows| of |width| elements.
typedef struct unique_t {
  pestle_value_t* x;  // [rows, width], or [rows] without an axis
  int64_t rows, width;
  pestle_value_t* size;           // rows that are real, or NULL
  pestle_value_t *at, *starts;    // in order: where each was, whether it is new
  pestle_value_t *group, *count;  // in order: which, and how many there are
  pestle_value_t *first, *counts;  // of each group
} unique_t;

// One column: the order by it, of rows that are in order by those behind it.
static void sort_column(pestle_onnx_call_t* call, void* self,
                        pestle_value_t* trip, pestle_value_t** values) {
  unique_t* u = self;
  pestle_type_t type = {.dtype = PESTLE_I64};
  pestle_value_t* last = pestle_onnx_splat_int(call, &type, u->width - 1);
  pestle_value_t* columns =
      pestle_f_transpose(&call->f, u->x, (const int64_t[]){1, 0});
  pestle_value_t* column =
      pestle_onnx_row(call, columns, sub(call, last, trip));
  column = pestle_onnx_take(call, column, values[0], 0);
  (void)pestle_onnx_sort(call, false, 0, &column, &values[0]);
}

// Whether |x|, in order, differs from what is before it; the first one does.
static pestle_value_t* differs(pestle_onnx_call_t* call, const unique_t* u,
                               pestle_value_t* x) {
  pestle_value_t* before[] = {
      pestle_onnx_slice_axis(call, x, 0, 0, 1, 1),
      pestle_onnx_slice_axis(call, x, 0, 0, u->rows - 1, 1)};
  pestle_value_t* other =
      u->rows > 1 ? pestle_f_concatenate(&call->f, before, 2, 0) : before[0];
  pestle_value_t* differ = pestle_f_ne(&call->f, x, other);
  if (pestle_dtype_is(dtype_of(x), PESTLE_KIND_FLOAT)) {
    // All NaN are one.
    pestle_value_t* number = pestle_f_eq(&call->f, other, other);
    number = pestle_f_or(&call->f, pestle_f_eq(&call->f, x, x), number);
    differ = pestle_f_and(&call->f, differ, number);
  }
  int64_t axis = 1;
  if (rank_of(x) == 2) {
    differ = pestle_onnx_reduce(call, PESTLE_OP_OR, differ, &axis, 1, false);
  }
  pestle_value_t* is_first =
      pestle_onnx_binary_f(call, PESTLE_OP_EQ, i32_iota(call, u->rows), 0);
  return pestle_f_or(&call->f, differ, is_first);
}

// Which places in order hold rows that are real, or NULL for all: the others are last.
static pestle_value_t* real_places(pestle_onnx_call_t* call,
                                   const unique_t* u) {
  if (!u->size) return NULL;
  return pestle_f_lt(&call->f, i32_iota(call, u->rows),
                     pestle_onnx_convert(call, u->size, PESTLE_I32));
}

static void find_groups(pestle_onnx_call_t* call, unique_t* u) {
  pestle_value_t* sorted = u->x;
  u->at = i32_iota(call, u->rows);
  if (rank_of(u->x) == 1) {
    (void)pestle_onnx_sort(call, false, 0, &sorted, &u->at);
  } else {
    pestle_onnx_for(call, u->width, &u->at, 1, sort_column, u);
    sorted = pestle_onnx_take(call, u->x, u->at, 0);
  }
  if (call->f.status) return;
  u->starts = differs(call, u, sorted);
  pestle_value_t* is_real = real_places(call, u);
  if (is_real) u->starts = pestle_f_and(&call->f, u->starts, is_real);
  pestle_value_t* ones = pestle_onnx_convert(call, u->starts, PESTLE_I32);
  u->group = pestle_onnx_binary_f(call, PESTLE_OP_SUBTRACT,
                                  pestle_onnx_running_sum(call, ones, 0), 1);
  u->count = sum_all(call, ones);
  // The order is stable: the first of a group comes first.
  pestle_type_t scalar = {.dtype = PESTLE_I32};
  pestle_value_t* nowhere = pestle_onnx_splat_int(call, &scalar, u->rows);
  pestle_value_t* to = pestle_f_select(&call->f, u->starts, u->group, nowhere);
  u->first = pestle_onnx_scatter_list(call, i32_zeros(call, u->rows), to, u->at,
                                      PESTLE_OP_COUNT);
  pestle_type_t list = i32_list(u->rows);
  pestle_value_t* counted =
      is_real ? pestle_f_select(&call->f, is_real, u->group, nowhere)
              : u->group;
  u->counts = pestle_onnx_scatter_list(call, i32_zeros(call, u->rows), counted,
                                       pestle_onnx_splat_int(call, &list, 1),
                                       PESTLE_OP_ADD);
}

// Numbers the groups by where they occur first.
static void order_by_occurrence(pestle_onnx_call_t* call, unique_t* u) {
  pestle_value_t* numbers = i32_iota(call, u->rows);
  pestle_value_t* is_real = pestle_f_lt(
      &call->f, numbers, pestle_onnx_convert(call, u->count, PESTLE_I32));
  pestle_type_t scalar = {.dtype = PESTLE_I32};
  pestle_value_t* key =
      pestle_f_select(&call->f, is_real, u->first,
                      pestle_onnx_splat_int(call, &scalar, u->rows));
  pestle_value_t* order = numbers;
  if (!pestle_onnx_sort(call, false, 0, &key, &order)) return;
  pestle_value_t* rank = pestle_onnx_scatter_list(
      call, i32_zeros(call, u->rows), order, numbers, PESTLE_OP_COUNT);
  u->first = pestle_onnx_take(call, u->first, order, 0);
  u->counts = pestle_onnx_take(call, u->counts, order, 0);
  u->group = pestle_onnx_take(call, rank, u->group, 0);
}

static void empty_unique(pestle_onnx_call_t* call, pestle_value_t* x) {
  pestle_type_t none = {.dtype = PESTLE_I64, .rank = 1, .dims = {0}};
  call->outputs[0] = x;
  for (size_t i = 1; i < call->output_count; ++i)
    call->outputs[i] = pestle_onnx_splat_int(call, &none, 0);
}

// |x| with what is not real of it last in order, and alike along other axes than |axis|.
static pestle_value_t* put_last(pestle_onnx_call_t* call, pestle_value_t* x,
                                int64_t axis) {
  const pestle_type_t scalar = {.dtype = dtype_of(x)};
  const uint32_t own = UINT32_C(1) << axis;
  pestle_value_t* last = pestle_dtype_is(scalar.dtype, PESTLE_KIND_FLOAT)
                             ? pestle_onnx_splat(call, &scalar, NAN)
                             : pestle_onnx_highest(call, &scalar);
  pestle_value_t* zero = pestle_onnx_splat(call, &scalar, 0);
  pestle_value_t* y = pestle_onnx_fill_unreal(call, x, ~own, zero);
  pestle_onnx_copy_real(call, y, x);
  return pestle_onnx_fill_unreal(call, y, own, last);
}

// |x| with |axis| in front, as rows of all the others.
static pestle_value_t* as_rows(pestle_onnx_call_t* call, pestle_value_t* x,
                               int64_t axis, unique_t* u) {
  int64_t order[PESTLE_MAX_RANK], dims[2];
  order[0] = axis;
  for (int64_t i = 0, at = 1; i < rank_of(x); ++i) {
    if (i != axis) order[at++] = i;
  }
  dims[0] = u->rows = pestle_onnx_dim(x, axis);
  dims[1] = u->width =
      u->rows ? pestle_type_count(pestle_onnx_type(x)) / u->rows : 0;
  return pestle_f_reshape(&call->f, pestle_f_transpose(&call->f, x, order), 2,
                          dims);
}

// All elements of |x| as a list, the real ones in front.
static pestle_value_t* as_list(pestle_onnx_call_t* call, pestle_value_t* x) {
  int64_t count = pestle_type_count(pestle_onnx_type(x));
  pestle_value_t* size = pestle_onnx_size_product(call, x, 0, rank_of(x));
  return size ? pestle_onnx_reshape_real(call, x, 1, &count, &size)
              : pestle_f_reshape(&call->f, x, 1, &count);
}

static void give_unique(pestle_onnx_call_t* call, const unique_t* u,
                        pestle_value_t* x, int64_t axis) {
  pestle_value_t* results[] = {
      pestle_onnx_take(call, x, u->first, axis), u->first,
      pestle_onnx_scatter_list(call, i32_zeros(call, u->rows), u->at, u->group,
                               PESTLE_OP_COUNT),
      u->counts};
  for (int32_t i = 0; i < rank_of(x); ++i) {
    if (i == axis) continue;
    pestle_onnx_set_real(call, results[0], i,
                         pestle_onnx_real_size(call->import, x, i));
  }
  for (size_t i = 0; i < call->output_count; ++i) {
    call->outputs[i] =
        i ? pestle_onnx_convert(call, results[i], PESTLE_I64) : results[0];
    pestle_onnx_set_real(call, call->outputs[i], i ? 0 : axis,
                         i == 2 ? u->size : u->count);
    call->outputs[i] = pestle_onnx_end_real(call, call->outputs[i]);
  }
}

static void import_unique(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  unique_t u = {.width = 1};
  int64_t axis = 0;
  bool is_flat = !pestle_onnx_has(call, "axis");
  if (is_flat) {
    x = as_list(call, x);
    u.rows = pestle_onnx_dim(x, 0);
  } else {
    axis = pestle_onnx_axis(call, pestle_onnx_int(call, "axis", 0), rank_of(x));
  }
  if (call->f.status) return;
  u.size = pestle_onnx_real_size(call->import, x, axis);
  u.x = put_last(call, x, axis);
  if (!is_flat) u.x = as_rows(call, u.x, axis, &u);
  if (!can_number(call, u.rows)) return;
  if (!u.rows) {
    empty_unique(call, x);
    return;
  }
  find_groups(call, &u);
  if (!pestle_onnx_int(call, "sorted", 1)) order_by_occurrence(call, &u);
  give_unique(call, &u, x, axis);
}

void pestle_onnx_import_unique(pestle_onnx_call_t* call) {
  pestle_onnx_by_size(call, import_unique);
}

// SPDX-License-Identifier: Apache-2.0
// Updates of elements whose positions are data: each is one stablehlo.scatter.
#include "base/checked.h"
#include "base/mem.h"
#include "frontend/onnx/bounded.h"
#include "frontend/onnx/ops.h"

typedef struct scatter_t {
  size_t window_count, inserted_count, mapped_count, batch_count;
  int64_t window[PESTLE_MAX_RANK];    // axes of the updates
  int64_t inserted[PESTLE_MAX_RANK];  // of the data
  int64_t mapped[PESTLE_MAX_RANK];
  int64_t batch[PESTLE_MAX_RANK];  // of data and indices alike
  int64_t vector;                  // of the indices
  bool unique;
} scatter_t;

// |op| combines what is there with what comes; PESTLE_OP_COUNT replaces it.
static pestle_value_t* scatter(pestle_onnx_call_t* call, pestle_value_t* data,
                               pestle_value_t* indices, pestle_value_t* updates,
                               pestle_op_t op, const scatter_t* how) {
  if (!data || !indices || !updates || call->f.status) return NULL;
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64S(update_window_dims, how->window, how->window_count),
      PESTLE_SET_I64S(inserted_window_dims, how->inserted, how->inserted_count),
      PESTLE_SET_I64S(input_batching_dims, how->batch, how->batch_count),
      PESTLE_SET_I64S(scatter_indices_batching_dims, how->batch,
                      how->batch_count),
      PESTLE_SET_I64S(scatter_dims_to_operand_dims, how->mapped,
                      how->mapped_count),
      PESTLE_SET_I64(index_vector_dim, how->vector),
      {.name = PESTLE_ATTR_unique_indices,
       .kind = PESTLE_ATTR_KIND_BOOL,
       .as.b = how->unique},
  };
  pestle_region_t* region = pestle_f_region(&call->f, op, dtype_of(data));
  if (!region) return NULL;
  pestle_node_spec_t spec = {
      .op = PESTLE_OP_SCATTER,
      .operands = (pestle_value_t*[]){data, indices, updates},
      .operand_count = 3,
      .attrs = attrs,
      .attr_count = sizeof(attrs) / sizeof(attrs[0]),
      .regions = &region,
      .region_count = 1};
  return pestle_f_emit(&call->f, &spec);
}

pestle_value_t* pestle_onnx_scatter_list(pestle_onnx_call_t* call,
                                         pestle_value_t* data,
                                         pestle_value_t* indices,
                                         pestle_value_t* updates,
                                         pestle_op_t op) {
  scatter_t how = {.inserted_count = 1,
                   .mapped_count = 1,
                   .vector = 1,
                   .unique = op == PESTLE_OP_COUNT};
  return scatter(call, data, indices, updates, op, &how);
}

// The op that attribute 'reduction' names.
static pestle_op_t read_reduction(pestle_onnx_call_t* call) {
  static const struct {
    const char* name;
    pestle_op_t op;
  } known[] = {{"none", PESTLE_OP_COUNT},
               {"add", PESTLE_OP_ADD},
               {"mul", PESTLE_OP_MULTIPLY},
               {"max", PESTLE_OP_MAXIMUM},
               {"min", PESTLE_OP_MINIMUM}};
  pestle_str_t name = pestle_onnx_string(call, "reduction", "none");
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); ++i) {
    if (pestle_str_equal_c(name, known[i].name)) return known[i].op;
  }
  pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                   "its reduction is '%.*s'; it must be none, add, mul, max or "
                   "min",
                   name.size > 100 ? 100 : (int)name.size, name.data);
  return PESTLE_OP_COUNT;
}

// Negative indices count from the end: |extents| broadcasts with |indices|.
static pestle_value_t* wrap(pestle_onnx_call_t* call, pestle_value_t* indices,
                            pestle_value_t* extents) {
  pestle_value_t* negative =
      pestle_onnx_binary_f(call, PESTLE_OP_LT, indices, 0);
  return pestle_f_select(&call->f, negative, add(call, indices, extents),
                         indices);
}

// Indices, or index vectors along axis |vector|, that are not real are led
// outside of the data, where updates are left out.
static pestle_value_t* lead_outside(pestle_onnx_call_t* call,
                                    pestle_value_t* indices, int32_t vector) {
  const pestle_onnx_import_t* import = call->import;
  const pestle_value_t* updates = call->inputs[2];
  bool fits = vector >= rank_of(indices) ||
              !pestle_onnx_real_size(import, indices, vector);
  for (int32_t i = 0; fits && i < rank_of(updates); ++i) {
    pestle_value_t* size = i < vector && i < rank_of(indices)
                               ? pestle_onnx_real_size(import, indices, i)
                               : NULL;
    fits =
        pestle_onnx_same_size(size, pestle_onnx_real_size(import, updates, i));
  }
  if (!fits) {
    return pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                            "extents that only a run tells must be those of "
                            "its indices and updates alike");
  }
  pestle_type_t scalar = {.dtype = dtype_of(indices)};
  if (!pestle_onnx_real(import, indices)) return indices;
  return pestle_onnx_fill_unreal(call, indices, UINT32_MAX,
                                 pestle_onnx_highest(call, &scalar));
}

// --- ScatterElements ---

// Elements of |part| come first along each axis, those of |whole| remain.
static pestle_value_t* put_back(pestle_onnx_call_t* call, pestle_value_t* whole,
                                pestle_value_t* part) {
  if (!whole || !part) return NULL;
  pestle_value_t* operands[PESTLE_MAX_RANK + 2] = {whole, part};
  int32_t rank = rank_of(whole);
  for (int32_t i = 0; i < rank; ++i)
    operands[2 + i] = pestle_onnx_scalar(call, PESTLE_I32, 0);
  return pestle_f_emit(
      &call->f, &(pestle_node_spec_t){.op = PESTLE_OP_DYNAMIC_UPDATE_SLICE,
                                      .operands = operands,
                                      .operand_count = (size_t)rank + 2});
}

static bool elements_fit(const pestle_value_t* x, const pestle_value_t* indices,
                         const pestle_value_t* updates, int64_t axis) {
  if (rank_of(indices) != rank_of(x) || rank_of(updates) != rank_of(x)) {
    return false;
  }
  for (int32_t i = 0; i < rank_of(x); ++i) {
    int64_t extent = pestle_onnx_dim(indices, i);
    if (extent != pestle_onnx_dim(updates, i) ||
        (i != axis && extent > pestle_onnx_dim(x, i))) {
      return false;
    }
  }
  return true;
}

// Scatter is what opsets 9 and 10 call ScatterElements. All axes but one are
// batch axes; data that is larger there takes part with its first elements.
void pestle_onnx_import_scatter_elements(pestle_onnx_call_t* call) {
  pestle_value_t *x = call->inputs[0], *indices = call->inputs[1];
  pestle_value_t* updates = call->inputs[2];
  int64_t rank = rank_of(x);
  int64_t axis = pestle_onnx_axis(call, pestle_onnx_int(call, "axis", 0), rank);
  pestle_op_t op = read_reduction(call);
  if (call->f.status) return;
  if (!elements_fit(x, indices, updates, axis)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its indices and updates do not fit its data");
    return;
  }
  scatter_t how = {.inserted_count = 1,
                   .inserted = {axis},
                   .mapped_count = 1,
                   .mapped = {axis},
                   .vector = rank};
  pestle_value_t* part = x;
  for (int64_t i = 0; i < rank; ++i) {
    if (i == axis) continue;
    how.batch[how.batch_count++] = i;
    part = pestle_onnx_slice_axis(call, part, i, 0, pestle_onnx_dim(indices, i),
                                  1);
  }
  indices = wrap(call, lead_outside(call, indices, (int32_t)rank),
                 pestle_onnx_convert(call, pestle_onnx_size(call, x, axis),
                                     dtype_of(indices)));
  part = scatter(call, part, indices, updates, op, &how);
  bool whole = part && pestle_type_count(pestle_onnx_type(part)) ==
                           pestle_type_count(pestle_onnx_type(x));
  call->outputs[0] = whole ? part : put_back(call, x, part);
  pestle_onnx_copy_real(call, call->outputs[0], x);
}

// --- ScatterND ---

void pestle_onnx_import_scatter_nd(pestle_onnx_call_t* call) {
  pestle_value_t *x = call->inputs[0], *indices = call->inputs[1];
  int64_t rank = rank_of(x), vector = rank_of(indices) - 1;
  int64_t width = pestle_onnx_dim(indices, vector);
  pestle_op_t op = read_reduction(call);
  if (vector < 0 || width < 1 || width > rank ||
      vector + rank - width > PESTLE_MAX_RANK) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its index vectors do not fit its data");
    return;
  }
  if (pestle_onnx_real(call->import, x)) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "the extents of its data are known after a run only");
    return;
  }
  scatter_t how = {.window_count = (size_t)(rank - width),
                   .inserted_count = (size_t)width,
                   .mapped_count = (size_t)width,
                   .vector = vector};
  pestle_type_t type = {.dtype = dtype_of(indices), .rank = 1, .dims = {width}};
  double extents[PESTLE_MAX_RANK];
  for (int64_t i = 0; i < rank; ++i) {
    how.inserted[i] = how.mapped[i] = i;
    how.window[i] = vector + i;
    extents[i] = (double)pestle_onnx_dim(x, i);
  }
  indices = wrap(call, lead_outside(call, indices, (int32_t)vector),
                 pestle_onnx_numbers(call, &type, extents));
  call->outputs[0] = scatter(call, x, indices, call->inputs[2], op, &how);
}

// --- TensorScatter ---

// The positions along the cache's axis, [batch, sequence].
static pestle_value_t* cache_positions(pestle_onnx_call_t* call,
                                       pestle_value_t* update, int64_t axis,
                                       int64_t capacity, bool circular) {
  pestle_type_t type = {
      .dtype = PESTLE_I64,
      .rank = 2,
      .dims = {pestle_onnx_dim(update, 0), pestle_onnx_dim(update, axis)}};
  pestle_value_t* at = pestle_f_iota(&call->f, &type, 1);
  if (pestle_onnx_input(call, 2)) {
    pestle_value_t* first =
        pestle_onnx_convert(call, call->inputs[2], PESTLE_I64);
    at =
        add(call, at,
            pestle_f_reshape(&call->f, first, 2, (int64_t[]){type.dims[0], 1}));
  }
  if (!circular) return at;
  return pestle_onnx_binary_f(call, PESTLE_OP_REMAINDER, at, (double)capacity);
}

// update[b, .., s, ..] goes to cache[b, .., first[b] + s, ..].
void pestle_onnx_import_tensor_scatter(pestle_onnx_call_t* call) {
  pestle_value_t *cache = call->inputs[0], *update = call->inputs[1];
  int64_t rank = rank_of(cache);
  int64_t axis =
      pestle_onnx_axis(call, pestle_onnx_int(call, "axis", -2), rank);
  pestle_str_t mode = pestle_onnx_string(call, "mode", "linear");
  bool circular = pestle_str_equal_c(mode, "circular");
  if (call->f.status) return;
  if (axis == 0 || rank_of(update) != rank ||
      (!circular && !pestle_str_equal_c(mode, "linear"))) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its axis, mode or update do not fit its cache");
    return;
  }
  int64_t capacity = pestle_onnx_dim(cache, axis);
  scatter_t how = {.inserted_count = 1,
                   .inserted = {axis},
                   .mapped_count = 1,
                   .mapped = {axis},
                   .batch_count = 1,
                   .batch = {0},
                   .vector = 2,
                   .unique = pestle_onnx_dim(update, axis) <= capacity};
  for (int64_t i = 1; i < rank; ++i) {
    if (i != axis) how.window[how.window_count++] = i;
  }
  pestle_value_t* at = cache_positions(call, update, axis, capacity, circular);
  call->outputs[0] = scatter(call, cache, at, update, PESTLE_OP_COUNT, &how);
}

// --- MaxUnpool ---

// The extents that the pool had; false with an error kept.
static bool pooled_dims(pestle_onnx_call_t* call, int64_t* dims,
                        int64_t* count) {
  pestle_value_t* x = call->inputs[0];
  pestle_onnx_space_t space = {0};
  if (!pestle_onnx_read_kernel(call, x, &space) ||
      !pestle_onnx_read_space(call, x, &space)) {
    return false;
  }
  pestle_type_t type = *pestle_onnx_type(x);
  for (int32_t i = 0; i < space.count; ++i) {
    int64_t extent = type.dims[2 + i], whole;
    bool fits = extent > 0 &&
                pestle_checked_mul_i64(extent - 1, space.strides[i], &whole);
    if (fits) {
      whole += space.kernel[i] - space.low[i] - space.high[i];
      type.dims[2 + i] = whole;
    }
    if (fits && whole > 0) continue;
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "spatial axis %d of extent %lld was pooled from nothing",
                     i, (long long)extent);
    return false;
  }
  if (!pestle_onnx_type_fits(&type)) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "it makes more than 2^48 elements");
    return false;
  }
  *count = pestle_type_count(&type);
  memcpy(dims, type.dims, sizeof(type.dims));
  return true;
}

// The shape that input 2 asks for, in place of |dims| and their product, which it must hold;
// false with an error kept.
static bool shape_to_make(pestle_onnx_call_t* call, int64_t* dims,
                          int64_t* count) {
  pestle_value_t* x = call->inputs[0];
  pestle_i64s_t shape = pestle_onnx_input_ints(call, 2, "output_shape");
  pestle_type_t type = *pestle_onnx_type(x);
  bool fits = shape.count == (size_t)type.rank;
  for (int32_t i = 0; fits && i < type.rank; ++i) {
    type.dims[i] = shape.data[i];
    fits = shape.data[i] >= dims[i];
  }
  if (!fits || !pestle_onnx_type_fits(&type)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its output_shape does not hold what it unpools");
    return false;
  }
  *count = pestle_type_count(&type);
  memcpy(dims, type.dims, sizeof(type.dims));
  return true;
}

// |y| with zeros behind, in the shape that input 2 asks for.
static pestle_value_t* grow_to_shape(pestle_onnx_call_t* call,
                                     pestle_value_t* y) {
  if (!pestle_onnx_input(call, 2)) return y;
  pestle_i64s_t shape = pestle_onnx_input_ints(call, 2, "output_shape");
  int64_t none[PESTLE_MAX_RANK] = {0}, high[PESTLE_MAX_RANK];
  bool fits = shape.count == (size_t)rank_of(y);
  for (int32_t i = 0; fits && i < rank_of(y); ++i) {
    int64_t extent = pestle_onnx_dim(y, i);
    fits = shape.data[i] >= extent && shape.data[i] <= INT64_C(1) << 48;
    if (fits) high[i] = shape.data[i] - extent;
  }
  if (!fits) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "its output_shape does not hold what it unpools");
  }
  return pestle_f_pad(&call->f, y, pestle_onnx_scalar(call, dtype_of(y), 0),
                      none, high, NULL);
}

// Each element where it was before MaxPool: its index counts over all axes.
void pestle_onnx_import_max_unpool(pestle_onnx_call_t* call) {
  pestle_value_t *x = call->inputs[0], *indices = call->inputs[1];
  int64_t dims[PESTLE_MAX_RANK], count;
  const int64_t rows[] = {0, 0};
  pestle_value_t* both[] = {x, indices};
  pestle_value_t* size = NULL;
  if (!pestle_onnx_allow_real(call, 0, 1) ||
      !pestle_onnx_allow_real(call, 1, 1) ||
      (rank_of(x) && rank_of(indices) &&
       !pestle_onnx_fit(call, both, rows, 2, &size))) {
    return;
  }
  call->inputs[0] = x = both[0];
  // Nobody is where what lies behind says.
  indices =
      pestle_onnx_fill_unreal(call, both[1], UINT32_MAX,
                              pestle_onnx_scalar(call, dtype_of(indices), -1));
  if (!pooled_dims(call, dims, &count)) return;
  // The text counts indices over what was pooled, ONNX Runtime over output_shape.
  bool whole = pestle_onnx_input(call, 2) && pestle_onnx_as_ort(call);
  if (whole && !shape_to_make(call, dims, &count)) return;
  int64_t given = pestle_type_count(pestle_onnx_type(x));
  if (pestle_type_count(pestle_onnx_type(indices)) != given) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "it has %lld elements and another number of indices",
                     (long long)given);
    return;
  }
  pestle_type_t type = {.dtype = dtype_of(x), .rank = 1, .dims = {count}};
  scatter_t how = {.inserted_count = 1,
                   .inserted = {0},
                   .mapped_count = 1,
                   .mapped = {0},
                   .vector = 1};
  pestle_value_t* updates = pestle_f_reshape(&call->f, x, 1, &given);
  pestle_value_t* places = pestle_f_reshape(&call->f, indices, 1, &given);
  pestle_value_t* y = pestle_onnx_splat(call, &type, 0);
  y = scatter(call, y, places, updates, PESTLE_OP_COUNT, &how);
  y = pestle_f_reshape(&call->f, y, rank_of(x), dims);
  if (size && pestle_onnx_input(call, 2)) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "it has an output_shape, and how long axis 0 is only a "
                     "run tells");
    return;
  }
  if (!whole) y = grow_to_shape(call, y);
  pestle_onnx_set_real(call, y, 0, size);
  call->outputs[0] = pestle_onnx_end_real(call, y);
}

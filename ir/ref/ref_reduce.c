// SPDX-License-Identifier: Apache-2.0
// reduce and reduce_window. Each result element starts as the initial value and
// takes the elements in row-major order. A body that is one commutative,
// associative scalar op is reduced in the widest type of its kind and rounded
// once at the end (the order of a reduction is not fixed by its meaning, and
// this is what every order approximates); any other body is interpreted.
#include <string.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/mem.h"
#include "ir/ref/ref_internal.h"

// The kernel of a body that is one scalar op over one input, or NULL.
static pestle_ref_kernel_t simple_kernel(const pestle_ref_call_t* call) {
  const pestle_type_t* type = pestle_ref_operand_type(call, 0);
  pestle_ref_class_t kind = pestle_ref_wide_class(type->dtype);
  if (call->node->operand_count != 2 || kind == PESTLE_REF_NONE) return NULL;
  pestle_op_t op = pestle_block_reduce_op(pestle_node_body(call->node, 0));
  if (!pestle_op_is_scalar(op)) return NULL;
  return pestle_ref_kernel(op, kind);
}

// --- Interpreted bodies ---

typedef struct element_t {
  uint64_t data[2];
} element_t;

// One running reduction of |count| values side by side.
typedef struct reduction_t {
  const pestle_ref_call_t* call;
  size_t count;
  element_t *now, *next;   // accumulators, swapped after each step
  const void** arguments;  // accumulators, then elements
  void** results;
} reduction_t;

static pestle_status_t reduction_init(const pestle_ref_call_t* call,
                                      pestle_arena_t* arena,
                                      reduction_t* reduction) {
  size_t count = call->node->operand_count / 2;
  *reduction = (reduction_t){
      .call = call,
      .count = count,
      .now = PESTLE_ARENA_ARRAY(arena, element_t, count),
      .next = PESTLE_ARENA_ARRAY(arena, element_t, count),
      .arguments = PESTLE_ARENA_ARRAY(arena, const void*, 2 * count),
      .results = PESTLE_ARENA_ARRAY(arena, void*, count)};
  if (!reduction->now || !reduction->next || !reduction->arguments ||
      !reduction->results) {
    return PESTLE_OOM();
  }
  return NULL;
}

static size_t element_size(const reduction_t* reduction, size_t index) {
  return pestle_dtype_size(
      pestle_ref_operand_type(reduction->call, index)->dtype);
}

static void reduction_begin(reduction_t* reduction) {
  for (size_t i = 0; i < reduction->count; ++i) {
    memcpy(&reduction->now[i], reduction->call->operands[reduction->count + i],
           element_size(reduction, reduction->count + i));
  }
}

// Takes element |at| of every input, or the initial values for a negative one.
static pestle_status_t reduction_step(reduction_t* reduction, int64_t at) {
  for (size_t i = 0; i < reduction->count; ++i) {
    const char* input = reduction->call->operands[i];
    reduction->arguments[i] = &reduction->now[i];
    reduction->arguments[reduction->count + i] =
        at < 0 ? reduction->call->operands[reduction->count + i]
               : input + (size_t)at * element_size(reduction, i);
    reduction->results[i] = &reduction->next[i];
  }
  PESTLE_TRY(pestle_ref_run(reduction->call->interp, reduction->call->bodies[0],
                            reduction->arguments, reduction->results));
  element_t* swap = reduction->now;
  reduction->now = reduction->next;
  reduction->next = swap;
  return NULL;
}

static void reduction_end(const reduction_t* reduction, size_t result_index) {
  for (size_t i = 0; i < reduction->count; ++i) {
    size_t size =
        pestle_dtype_size(pestle_ref_result_type(reduction->call, i)->dtype);
    memcpy((char*)reduction->call->results[i] + result_index * size,
           &reduction->now[i], size);
  }
}

// --- reduce ---

// The input as a loop nest over axes that are all kept or all reduced;
// |stride| counts elements of the result, 0 on reduced axes.
typedef struct nest_t {
  int rank;
  int64_t dims[PESTLE_MAX_RANK];
  int64_t stride[PESTLE_MAX_RANK];
} nest_t;

static void make_nest(const pestle_type_t* type, pestle_i64s_t axes,
                      nest_t* nest) {
  bool reduced[PESTLE_MAX_RANK] = {false};
  bool last = false;
  for (size_t i = 0; i < axes.count; ++i)
    reduced[axes.data[i]] = true;
  nest->rank = 0;
  for (int i = 0; i < type->rank; ++i) {
    if (type->dims[i] == 1) continue;
    if (nest->rank && last == reduced[i]) {
      nest->dims[nest->rank - 1] *= type->dims[i];
    } else {
      nest->dims[nest->rank] = type->dims[i];
      nest->stride[nest->rank++] = reduced[i] ? 0 : 1;
      last = reduced[i];
    }
  }
  int64_t stride = 1;
  for (int i = nest->rank - 1; i >= 0; --i) {
    if (!nest->stride[i]) continue;
    nest->stride[i] = stride;
    stride *= nest->dims[i];
  }
}

enum { BLOCK = 512 };

// Folds one row of |length| elements into sums that are |stride| (0 or 1)
// apart.
static void reduce_row(pestle_ref_kernel_t kernel, pestle_dtype_t dtype,
                       const char* row, int64_t length, int64_t stride,
                       uint64_t* sums) {
  uint64_t block[BLOCK];
  uint64_t width = pestle_dtype_info(dtype)->bits;
  for (int64_t start = 0; start < length; start += BLOCK) {
    size_t n = (size_t)(length - start < BLOCK ? length - start : BLOCK);
    pestle_ref_load_wide(dtype, row + start * pestle_dtype_size(dtype), n,
                         block);
    if (stride) {
      uint64_t* to = sums + start;
      kernel(to, to, block, block, n, width);
    } else {
      for (size_t i = 0; i < n; ++i) {
        kernel(sums, sums, block + i, block + i, 1, width);
      }
    }
  }
}

static void reduce_simple(const pestle_ref_call_t* call,
                          pestle_ref_kernel_t kernel, const nest_t* nest,
                          uint64_t* sums, size_t count) {
  pestle_dtype_t dtype = pestle_ref_operand_type(call, 0)->dtype;
  pestle_ref_load_wide(dtype, call->operands[1], 1, sums);
  pestle_ref_fill(sums, sizeof(*sums), count, sums);
  if (pestle_type_count(pestle_ref_operand_type(call, 0))) {
    int inner = nest->rank - 1;
    int64_t length = nest->rank ? nest->dims[inner] : 1;
    int64_t stride = nest->rank ? nest->stride[inner] : 0;
    const char* row = call->operands[0];
    int64_t index[PESTLE_MAX_RANK] = {0};
    do {
      int64_t to = 0;
      for (int i = 0; i < inner; ++i)
        to += index[i] * nest->stride[i];
      reduce_row(kernel, dtype, row, length, stride, sums + to);
      row += length * pestle_dtype_size(dtype);
    } while (pestle_ref_next(inner, nest->dims, index));
  }
  pestle_ref_store_wide(dtype, sums, count, call->results[0]);
}

static pestle_status_t reduce_any(const pestle_ref_call_t* call,
                                  reduction_t* reduction) {
  const pestle_type_t* type = pestle_ref_operand_type(call, 0);
  pestle_i64s_t axes = PESTLE_NODE_I64S(call->node, dimensions);
  int64_t strides[PESTLE_MAX_RANK];
  pestle_dense_strides(type->dims, (size_t)type->rank, 1, strides);
  int64_t kept[PESTLE_MAX_RANK], kept_stride[PESTLE_MAX_RANK];
  int64_t reduced[PESTLE_MAX_RANK], reduced_stride[PESTLE_MAX_RANK];
  int kept_rank = 0, reduced_rank = 0;
  for (int i = 0; i < type->rank; ++i) {
    if (pestle_i64s_has(axes, i)) {
      reduced_stride[reduced_rank] = strides[i];
      reduced[reduced_rank++] = type->dims[i];
    } else {
      kept_stride[kept_rank] = strides[i];
      kept[kept_rank++] = type->dims[i];
    }
  }
  int64_t at[PESTLE_MAX_RANK] = {0};
  bool empty = !pestle_type_count(type);
  size_t result = 0;
  do {
    int64_t index[PESTLE_MAX_RANK] = {0}, base = 0;
    for (int i = 0; i < kept_rank; ++i)
      base += at[i] * kept_stride[i];
    reduction_begin(reduction);
    if (!empty) {
      do {
        int64_t offset = base;
        for (int i = 0; i < reduced_rank; ++i) {
          offset += index[i] * reduced_stride[i];
        }
        PESTLE_TRY(reduction_step(reduction, offset));
      } while (pestle_ref_next(reduced_rank, reduced, index));
    }
    reduction_end(reduction, result++);
  } while (pestle_ref_next(kept_rank, kept, at));
  return NULL;
}

static pestle_status_t reduce(const pestle_ref_call_t* call,
                              pestle_arena_t* arena) {
  size_t count = (size_t)pestle_type_count(pestle_ref_result_type(call, 0));
  if (!count) return NULL;
  pestle_ref_kernel_t kernel = simple_kernel(call);
  if (!kernel) {
    reduction_t reduction;
    PESTLE_TRY(reduction_init(call, arena, &reduction));
    return reduce_any(call, &reduction);
  }
  uint64_t* sums = PESTLE_ARENA_ARRAY(arena, uint64_t, count);
  if (!sums) return PESTLE_OOM();
  nest_t nest;
  make_nest(pestle_ref_operand_type(call, 0),
            PESTLE_NODE_I64S(call->node, dimensions), &nest);
  reduce_simple(call, kernel, &nest, sums, count);
  return NULL;
}

pestle_status_t pestle_ref_reduce(const pestle_ref_call_t* call) {
  pestle_arena_t arena;
  pestle_arena_init(call->allocator, &arena);
  pestle_status_t status =
      call->node->result_count ? reduce(call, &arena) : NULL;
  pestle_arena_deinit(&arena);
  return status;
}

// --- reduce_window ---

typedef struct window_t {
  int rank;
  const int64_t *input, *output, *size;
  int64_t stride[PESTLE_MAX_RANK], low[PESTLE_MAX_RANK];
  int64_t base[PESTLE_MAX_RANK], dilation[PESTLE_MAX_RANK];
} window_t;

static int64_t item(pestle_i64s_t values, int index, int64_t missing) {
  return (size_t)index < values.count ? values.data[index] : missing;
}

static void window_make(const pestle_ref_call_t* call, window_t* w) {
  const pestle_node_t* node = call->node;
  w->rank = pestle_ref_operand_type(call, 0)->rank;
  w->input = pestle_ref_operand_type(call, 0)->dims;
  w->output = pestle_ref_result_type(call, 0)->dims;
  w->size = PESTLE_NODE_I64S(node, window_dimensions).data;
  for (int i = 0; i < w->rank; ++i) {
    w->stride[i] = item(PESTLE_NODE_I64S(node, window_strides), i, 1);
    w->low[i] = item(PESTLE_NODE_I64S(node, padding), 2 * i, 0);
    w->base[i] = item(PESTLE_NODE_I64S(node, base_dilations), i, 1);
    w->dilation[i] = item(PESTLE_NODE_I64S(node, window_dilations), i, 1);
  }
}

// The element under one window position, or -1 where the padding or a gap
// between dilated elements holds the initial value.
static int64_t window_element(const window_t* w, const int64_t* at,
                              const int64_t* tap) {
  int64_t element = 0;
  for (int i = 0; i < w->rank; ++i) {
    int64_t p = at[i] * w->stride[i] + tap[i] * w->dilation[i] - w->low[i];
    if (p < 0 || p % w->base[i]) return -1;
    p /= w->base[i];
    if (p >= w->input[i]) return -1;
    element = element * w->input[i] + p;
  }
  return element;
}

static bool window_empty(const window_t* w) {
  for (int i = 0; i < w->rank; ++i) {
    if (w->size[i] <= 0) return true;
  }
  return false;
}

static pestle_status_t window_any(const pestle_ref_call_t* call,
                                  pestle_arena_t* arena, const window_t* w) {
  reduction_t reduction;
  PESTLE_TRY(reduction_init(call, arena, &reduction));
  int64_t at[PESTLE_MAX_RANK] = {0};
  size_t result = 0;
  do {
    int64_t tap[PESTLE_MAX_RANK] = {0};
    reduction_begin(&reduction);
    if (!window_empty(w)) {
      do {
        PESTLE_TRY(reduction_step(&reduction, window_element(w, at, tap)));
      } while (pestle_ref_next(w->rank, w->size, tap));
    }
    reduction_end(&reduction, result++);
  } while (pestle_ref_next(w->rank, w->output, at));
  return NULL;
}

static pestle_status_t window_simple(const pestle_ref_call_t* call,
                                     pestle_ref_kernel_t kernel,
                                     pestle_arena_t* arena, const window_t* w) {
  const pestle_type_t* type = pestle_ref_operand_type(call, 0);
  size_t in_count = (size_t)pestle_type_count(type);
  size_t count = (size_t)pestle_type_count(pestle_ref_result_type(call, 0));
  uint64_t* input = PESTLE_ARENA_ARRAY(arena, uint64_t, in_count);
  uint64_t* sums = PESTLE_ARENA_ARRAY(arena, uint64_t, count);
  if (!input || !sums) return PESTLE_OOM();
  uint64_t init[1];
  pestle_ref_load_wide(type->dtype, call->operands[0], in_count, input);
  pestle_ref_load_wide(type->dtype, call->operands[1], 1, init);
  uint64_t width = pestle_dtype_info(type->dtype)->bits;
  int64_t at[PESTLE_MAX_RANK] = {0};
  uint64_t* sum = sums;
  do {
    int64_t tap[PESTLE_MAX_RANK] = {0};
    memcpy(sum, init, sizeof(*sum));
    if (!window_empty(w)) {
      do {
        int64_t element = window_element(w, at, tap);
        const uint64_t* value = element < 0 ? init : input + element;
        kernel(sum, sum, value, value, 1, width);
      } while (pestle_ref_next(w->rank, w->size, tap));
    }
    ++sum;
  } while (pestle_ref_next(w->rank, w->output, at));
  pestle_ref_store_wide(type->dtype, sums, count, call->results[0]);
  return NULL;
}

pestle_status_t pestle_ref_reduce_window(const pestle_ref_call_t* call) {
  if (!call->node->result_count) return NULL;
  if (!pestle_type_count(pestle_ref_result_type(call, 0))) return NULL;
  window_t window;
  window_make(call, &window);
  pestle_arena_t arena;
  pestle_arena_init(call->allocator, &arena);
  pestle_ref_kernel_t kernel = simple_kernel(call);
  pestle_status_t status = kernel ? window_simple(call, kernel, &arena, &window)
                                  : window_any(call, &arena, &window);
  pestle_arena_deinit(&arena);
  return status;
}

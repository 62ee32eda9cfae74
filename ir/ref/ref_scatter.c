// SPDX-License-Identifier: Apache-2.0
// scatter: updates in row-major order, each window whole or not at all; and
// select_and_scatter, sources in row-major order.
#include <string.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/mem.h"
#include "ir/ref/ref_internal.h"

// Axes of the updates, sorted out once; strides count elements. A window axis
// moves in the input, any other axis in the indices too.
typedef struct scatter_t {
  const pestle_ref_call_t* call;
  size_t count;  // inputs
  const pestle_type_t *input, *indices, *updates;
  pestle_i64s_t map;
  int64_t vector_stride;
  int batch_rank, window_rank;
  int64_t batch_dims[PESTLE_MAX_RANK], window_dims[PESTLE_MAX_RANK];
  int64_t batch_update[PESTLE_MAX_RANK], window_update[PESTLE_MAX_RANK];
  int64_t batch_input[PESTLE_MAX_RANK], window_input[PESTLE_MAX_RANK];
  int64_t batch_index[PESTLE_MAX_RANK];
  int64_t input_stride[PESTLE_MAX_RANK];
  int64_t limit[PESTLE_MAX_RANK];  // the largest start of each input axis
  uint64_t* scratch;               // arguments and results of the region
  const void** arguments;
  void** results;
} scatter_t;

static bool contains(pestle_i64s_t set, int64_t value) {
  for (size_t i = 0; i < set.count; ++i) {
    if (set.data[i] == value) return true;
  }
  return false;
}

static void element_strides(const pestle_type_t* type, int64_t* out) {
  pestle_dense_strides(type->dims, (size_t)type->rank, 1, out);
}

static void add_batch(scatter_t* s, int64_t extent, int64_t update,
                      int64_t index, int64_t input) {
  int k = s->batch_rank++;
  s->batch_dims[k] = extent;
  s->batch_update[k] = update;
  s->batch_index[k] = index;
  s->batch_input[k] = input;
}

static void sort_axes(scatter_t* s) {
  const pestle_node_t* node = s->call->node;
  int64_t update[PESTLE_MAX_RANK], index[PESTLE_MAX_RANK];
  pestle_i64s_t windows = PESTLE_NODE_I64S(node, update_window_dims);
  pestle_i64s_t inserted = PESTLE_NODE_I64S(node, inserted_window_dims);
  pestle_i64s_t batching = PESTLE_NODE_I64S(node, input_batching_dims);
  pestle_i64s_t of_indices =
      PESTLE_NODE_I64S(node, scatter_indices_batching_dims);
  int64_t vector = PESTLE_NODE_I64(node, index_vector_dim);
  element_strides(s->updates, update);
  element_strides(s->indices, index);
  element_strides(s->input, s->input_stride);
  s->vector_stride = vector < s->indices->rank ? index[vector] : 0;
  int kept = 0, batch = 0;
  for (int i = 0; i < s->input->rank; ++i)
    s->limit[i] = s->input->dims[i] - 1;
  for (int i = 0; i < s->updates->rank; ++i) {
    if (contains(windows, i)) {
      while (contains(inserted, kept) || contains(batching, kept))
        ++kept;
      int k = s->window_rank++;
      s->window_dims[k] = s->updates->dims[i];
      s->window_update[k] = update[i];
      s->window_input[k] = s->input_stride[kept];
      s->limit[kept] = s->input->dims[kept] - s->updates->dims[i];
      ++kept;
      continue;
    }
    if (batch == vector) ++batch;
    int64_t input = 0;
    for (size_t j = 0; j < of_indices.count; ++j) {
      if (of_indices.data[j] == batch) {
        input = s->input_stride[batching.data[j]];
      }
    }
    add_batch(s, s->updates->dims[i], update[i], index[batch++], input);
  }
}

// Where the window at |at| of the indices begins; false where it does not fit.
static bool window_start(const scatter_t* s, int64_t at, int64_t* out) {
  const char* data = s->call->operands[s->count];
  size_t size = pestle_dtype_size(s->indices->dtype);
  for (size_t i = 0; i < s->map.count; ++i) {
    uint64_t raw;
    int64_t axis = s->map.data[i];
    int64_t from = at + (int64_t)i * s->vector_stride;
    pestle_ref_load_wide(s->indices->dtype, data + (size_t)from * size, 1,
                         &raw);
    // What is negative is above any limit too.
    if (s->limit[axis] < 0 || raw > (uint64_t)s->limit[axis]) return false;
    *out += (int64_t)raw * s->input_stride[axis];
  }
  return true;
}

static pestle_status_t update_one(const scatter_t* s, int64_t to,
                                  int64_t from) {
  for (size_t i = 0; i < s->count; ++i) {
    size_t size = pestle_dtype_size(pestle_ref_operand_type(s->call, i)->dtype);
    const char* update = s->call->operands[s->count + 1 + i];
    s->arguments[i] = (char*)s->call->results[i] + (size_t)to * size;
    s->arguments[s->count + i] = update + (size_t)from * size;
    s->results[i] = s->scratch + 2 * i;
  }
  PESTLE_TRY(pestle_ref_run(s->call->interp, s->call->bodies[0], s->arguments,
                            s->results));
  for (size_t i = 0; i < s->count; ++i) {
    size_t size = pestle_dtype_size(pestle_ref_operand_type(s->call, i)->dtype);
    memcpy((char*)s->call->results[i] + (size_t)to * size, s->results[i], size);
  }
  return NULL;
}

static pestle_status_t update_all(const scatter_t* s) {
  int64_t batch[PESTLE_MAX_RANK] = {0};
  do {
    int64_t at = 0, to = 0, from = 0;
    for (int i = 0; i < s->batch_rank; ++i) {
      at += batch[i] * s->batch_index[i];
      to += batch[i] * s->batch_input[i];
      from += batch[i] * s->batch_update[i];
    }
    if (!window_start(s, at, &to)) continue;
    int64_t window[PESTLE_MAX_RANK] = {0};
    do {
      int64_t in_input = to, in_update = from;
      for (int i = 0; i < s->window_rank; ++i) {
        in_input += window[i] * s->window_input[i];
        in_update += window[i] * s->window_update[i];
      }
      PESTLE_TRY(update_one(s, in_input, in_update));
    } while (pestle_ref_next(s->window_rank, s->window_dims, window));
  } while (pestle_ref_next(s->batch_rank, s->batch_dims, batch));
  return NULL;
}

pestle_status_t pestle_ref_scatter(const pestle_ref_call_t* call) {
  size_t n = call->node->operand_count / 2;
  for (size_t i = 0; i < n; ++i) {
    size_t size = pestle_type_bytes(pestle_ref_operand_type(call, i));
    if (size) memcpy(call->results[i], call->operands[i], size);
  }
  scatter_t s = {
      .call = call,
      .count = n,
      .input = pestle_ref_operand_type(call, 0),
      .indices = pestle_ref_operand_type(call, n),
      .updates = pestle_ref_operand_type(call, n + 1),
      .map = PESTLE_NODE_I64S(call->node, scatter_dims_to_operand_dims)};
  if (!pestle_type_count(s.updates)) return NULL;
  sort_axes(&s);
  pestle_arena_t arena;
  pestle_arena_init(call->allocator, &arena);
  s.scratch = PESTLE_ARENA_ARRAY(&arena, uint64_t, 2 * n);
  s.arguments = PESTLE_ARENA_ARRAY(&arena, const void*, 2 * n);
  s.results = PESTLE_ARENA_ARRAY(&arena, void*, n);
  pestle_status_t status =
      s.scratch && s.arguments && s.results ? update_all(&s) : PESTLE_OOM();
  pestle_arena_deinit(&arena);
  return status;
}

// --- select_and_scatter ---

typedef struct select_t {
  const pestle_ref_call_t* call;
  const pestle_type_t *input, *source;
  pestle_i64s_t size, strides, padding;
  size_t element;
} select_t;

// The element of the input under a position of the window, or -1.
static int64_t window_element(const select_t* s, const int64_t* at,
                              const int64_t* tap) {
  int64_t element = 0;
  for (int i = 0; i < s->input->rank; ++i) {
    int64_t p = at[i] * s->strides.data[i] + tap[i] - s->padding.data[2 * i];
    if (p < 0 || p >= s->input->dims[i]) return -1;
    element = element * s->input->dims[i] + p;
  }
  return element;
}

// The element that the first region keeps of the window at |at|, or -1.
static pestle_status_t select_element(const select_t* s, const int64_t* at,
                                      int64_t* out) {
  const char* data = s->call->operands[0];
  int64_t tap[PESTLE_MAX_RANK] = {0};
  *out = -1;
  do {
    int64_t element = window_element(s, at, tap);
    uint8_t keep = *out >= 0;
    if (element < 0) continue;
    if (keep) {
      const void* arguments[] = {data + (size_t)*out * s->element,
                                 data + (size_t)element * s->element};
      void* results[] = {&keep};
      PESTLE_TRY(pestle_ref_run(s->call->interp, s->call->bodies[0], arguments,
                                results));
    }
    if (!keep) *out = element;
  } while (pestle_ref_next(s->input->rank, s->size.data, tap));
  return NULL;
}

static pestle_status_t scatter_sources(const select_t* s) {
  const char* source = s->call->operands[1];
  char* result = s->call->results[0];
  int64_t at[PESTLE_MAX_RANK] = {0};
  do {
    int64_t element;
    PESTLE_TRY(select_element(s, at, &element));
    if (element >= 0) {
      uint64_t value[2];
      char* to = result + (size_t)element * s->element;
      const void* arguments[] = {to, source};
      void* results[] = {value};
      PESTLE_TRY(pestle_ref_run(s->call->interp, s->call->bodies[1], arguments,
                                results));
      memcpy(to, value, s->element);
    }
    source += s->element;
  } while (pestle_ref_next(s->source->rank, s->source->dims, at));
  return NULL;
}

pestle_status_t pestle_ref_select_and_scatter(const pestle_ref_call_t* call) {
  const pestle_node_t* node = call->node;
  select_t s = {.call = call,
                .input = pestle_ref_operand_type(call, 0),
                .source = pestle_ref_operand_type(call, 1),
                .size = PESTLE_NODE_I64S(node, window_dimensions),
                .strides = PESTLE_NODE_I64S(node, window_strides),
                .padding = PESTLE_NODE_I64S(node, padding)};
  s.element = pestle_dtype_size(s.input->dtype);
  pestle_ref_fill(call->results[0], s.element,
                  (size_t)pestle_type_count(s.input), call->operands[2]);
  return pestle_type_count(s.source) ? scatter_sources(&s) : NULL;
}

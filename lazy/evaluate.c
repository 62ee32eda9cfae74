// SPDX-License-Identifier: Apache-2.0
// Evaluation: claim, find or make the executable, run, turn nodes into data.
#include "base/require.h"
#include "base/status_copy.h"
#include "lazy/lazy.h"

// --- The run ---

static bool bind(pestle_walk_t* walk, pestle_executable_t* executable) {
  size_t count = walk->leaves.size;
  size_t outputs = pestle_executable_output_count(executable);
  pestle_vec_clear(&walk->views);
  pestle_vec_clear(&walk->results);
  if (!pestle_vec_reserve(&walk->views, count + 1) ||
      !pestle_vec_resize(&walk->results, outputs)) {
    return false;
  }
  for (size_t i = 0; i < count; ++i) {
    const pestle_array_t* leaf = walk->leaves.data[i];
    walk->views.data[i] =
        (pestle_buffer_view_t){leaf->buffer, leaf->byte_offset,
                               walk->dense.data[i] ? NULL : leaf->strides};
  }
  return true;
}

static pestle_status_t run(pestle_walk_t* walk, pestle_executable_t* executable,
                           pestle_stream_t* stream) {
  if (!bind(walk, executable)) return PESTLE_OOM();
  pestle_run_buffers_options_t options = {.struct_size = sizeof(options),
                                          .donated = walk->donated.data,
                                          .donated_count = walk->donated.size};
  PESTLE_TRY(pestle_executable_run_buffers(
      executable, stream, walk->views.data, walk->leaves.size,
      walk->results.data, walk->results.size,
      walk->donated.size ? &options : NULL));
  for (size_t i = 0; i < walk->donated.size; ++i)
    walk->leaves.data[walk->donated.data[i]]->buffer = NULL;
  return NULL;
}

// --- What comes of it ---

// The operands of |node|, which is data now, are dropped outside of the lock.
static void detach(pestle_walk_t* walk, pestle_array_t* node) {
  for (uint32_t i = 0; i < node->operand_count; ++i)
    walk->dropped.data[walk->dropped.size++] = node->operands[i];
  node->operand_count = 0;
}

static size_t fill_parts(pestle_walk_t* walk, pestle_array_t* tuple,
                         size_t result) {
  for (uint32_t i = 0; i < tuple->part_count; ++i)
    tuple->parts[i] = walk->results.data[result++];
  return result;
}

// A TUPLE needs a place for its parts, which is made before the run.
static bool make_parts(pestle_walk_t* walk) {
  for (size_t i = 0; i < walk->outputs.size; ++i) {
    pestle_array_t* node = walk->outputs.data[i];
    if (!(pestle_array_flags(node) & PESTLE_NODE_TUPLE) || node->parts)
      continue;
    size_t size = node->part_count * sizeof(*node->parts);
    node->parts = pestle_alloc_zero(walk->lazy->allocator, size);
    if (!node->parts) return false;
  }
  return true;
}

// The lock is held.
static void finish(pestle_walk_t* walk) {
  size_t result = 0;
  for (size_t i = 0; i < walk->outputs.size; ++i) {
    pestle_array_t* node = walk->outputs.data[i];
    if (node->parts) {
      result = fill_parts(walk, node, result);
    } else {
      node->buffer = walk->results.data[result++];
    }
    detach(walk, node);
    pestle_array_set_state(node, PESTLE_NODE_DATA);
  }
}

// Whether the same run may be tried again: it found no memory, and was given none
// that it may have written to.
static bool may_retry(const pestle_walk_t* walk, pestle_status_t status) {
  pestle_status_code_t code = pestle_status_code(status);
  return !walk->donated.size && (code == PESTLE_STATUS_OUT_OF_MEMORY ||
                                 code == PESTLE_STATUS_RESOURCE_EXHAUSTED);
}

// The lock is held. What a run wrote before it failed is not known, so it is not
// tried again.
static void fail(pestle_walk_t* walk, pestle_status_t status) {
  for (size_t i = 0; i < walk->outputs.size; ++i) {
    pestle_array_t* node = walk->outputs.data[i];
    node->failure = pestle_status_retain(status);
    detach(walk, node);
    pestle_array_set_state(node, PESTLE_NODE_FAILED);
  }
}

static pestle_status_t run_claimed(pestle_walk_t* walk,
                                   pestle_executable_t* executable,
                                   pestle_stream_t* stream) {
  pestle_lazy_t* lazy = walk->lazy;
  pestle_status_t status = NULL;
  bool ran = false;
  if (!executable) status = pestle_cache_make(walk, &executable);
  if (!status && !make_parts(walk)) status = PESTLE_OOM();
  if (!status) {
    ran = true;
    status = run(walk, executable, stream);
  }
  pestle_lazy_lock(lazy);
  if (!status) {
    finish(walk);
    ++lazy->evaluations;
    lazy->donations += walk->donated.size;
  } else if (ran && !may_retry(walk, status)) {
    fail(walk, status);
  } else {
    pestle_walk_unclaim(walk);
  }
  if (lazy->waiting) pestle_cond_broadcast(&lazy->done);
  pestle_mutex_unlock(&lazy->mutex);
  pestle_array_drop_operands(walk->dropped.data, (uint32_t)walk->dropped.size);
  pestle_vec_clear(&walk->dropped);
  pestle_executable_release(executable);
  return status;
}

// --- One device ---

static void give(pestle_walk_t* walk) {
  pestle_lazy_t* lazy = walk->lazy;
  pestle_lazy_lock(lazy);
  pestle_walk_give(walk);
  pestle_mutex_unlock(&lazy->mutex);
}

// Evaluates those of |arrays| that are on the first one's device.
static pestle_status_t evaluate(pestle_array_t* const* arrays, size_t count,
                                pestle_stream_t* stream) {
  pestle_lazy_t* lazy = arrays[0]->lazy;
  pestle_executable_t* executable = NULL;
  pestle_lazy_lock(lazy);
  pestle_walk_t* walk = pestle_walk_take(lazy);
  if (!walk) {
    pestle_mutex_unlock(&lazy->mutex);
    return PESTLE_OOM();
  }
  pestle_status_t status = pestle_walk_claim(walk, arrays, count);
  while (!status && walk->busy) {
    ++lazy->waiting;
    pestle_cond_wait(&lazy->done, &lazy->mutex);
    --lazy->waiting;
    status = pestle_walk_claim(walk, arrays, count);
  }
  bool has_work = !status && walk->nodes.size;
  if (has_work) {
    executable = pestle_cache_find(walk);
  } else {
    pestle_walk_give(walk);
  }
  pestle_mutex_unlock(&lazy->mutex);
  if (!has_work) return status;
  status = run_claimed(walk, executable, stream);
  give(walk);
  return status;
}

// --- Entry ---

static bool is_data(const pestle_array_t* array) {
  return pestle_array_node_state(array) == PESTLE_NODE_DATA;
}

pestle_status_t pestle_array_evaluate(pestle_array_t* const* arrays,
                                      size_t count, pestle_stream_t* stream) {
  // Each turn settles all arrays of one device.
  for (size_t i = 0; i < count; ++i) {
    if (is_data(arrays[i])) continue;
    PESTLE_TRY(evaluate(arrays + i, count - i, stream));
  }
  return NULL;
}

static pestle_status_t check(pestle_array_t* const* arrays, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!arrays[i]) {
      return PESTLE_ERROR(INVALID_ARGUMENT, "array %zu is NULL", i);
    }
    if (arrays[i]->lazy != arrays[0]->lazy) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "array %zu is of another context than array 0", i);
    }
  }
  return NULL;
}

pestle_status_t pestle_array_eval_async(pestle_array_t* const* arrays,
                                        size_t count, pestle_stream_t* stream) {
  PESTLE_REQUIRE(arrays || !count, "arrays");
  PESTLE_TRY(check(arrays, count));
  return pestle_array_evaluate(arrays, count, stream);
}

pestle_status_t pestle_array_eval(pestle_array_t* const* arrays, size_t count,
                                  pestle_stream_t* stream) {
  PESTLE_TRY(pestle_array_eval_async(arrays, count, stream));
  for (size_t i = 0; i < count; ++i)
    PESTLE_TRY(pestle_buffer_wait(arrays[i]->buffer));
  return NULL;
}

pestle_status_t pestle_array_wait(pestle_array_t* array) {
  PESTLE_REQUIRE(array, "an array");
  return pestle_array_eval(&array, 1, NULL);
}

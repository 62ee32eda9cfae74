// SPDX-License-Identifier: Apache-2.0
// Evaluation: claim, find or make the executable, run, turn nodes into data.
#include "base/require.h"
#include "base/status_copy.h"
#include "base/thread.h"
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
  for (size_t i = 0; i < walk->donated.size; ++i) {
    pestle_array_t* leaf = walk->leaves.data[walk->donated.data[i]];
    pestle_array_keep_context(leaf);
    leaf->buffer = NULL;
  }
  return NULL;
}

// --- What comes of it ---

// The operands of |node|, which is data now or has failed, are dropped outside of the
// lock.
static void detach(pestle_walk_t* walk, pestle_array_t* node) {
  if (!node->buffer) pestle_array_keep_context(node);
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

// A node's number, after the run.
static const uint32_t TO_FAIL = UINT32_MAX;

// Chooses the nodes that fail with a run: those that read an op of the caller's own,
// which is in the body of a CALL, if there is one, since its eval is what fails; else, or
// where memory was given to be written to, all of them.
static void choose_failing(pestle_walk_t* walk) {
  bool has_own = false;
  for (size_t i = 0; i < walk->leaves.size; ++i)
    walk->leaves.data[i]->number = 0;
  for (size_t i = 0; i < walk->nodes.size; ++i) {
    pestle_array_t* node = walk->nodes.data[i];
    bool fails = node->op == PESTLE_OP_CALL;
    for (uint32_t k = 0; k < node->operand_count; ++k)
      fails |= node->operands[k]->number == TO_FAIL;
    node->number = fails ? TO_FAIL : 0;
    has_own |= fails;
  }
  for (size_t i = 0; i < walk->nodes.size; ++i) {
    if (!has_own || walk->donated.size) walk->nodes.data[i]->number = TO_FAIL;
  }
}

// The lock is held. What a run wrote before it failed is not known, so it is not
// tried again; nodes that have no part in the failure are LAZY as before.
static void fail(pestle_walk_t* walk, pestle_status_t status) {
  choose_failing(walk);
  for (size_t i = 0; i < walk->nodes.size; ++i) {
    pestle_array_t* node = walk->nodes.data[i];
    if (node->number != TO_FAIL) pestle_array_set_state(node, PESTLE_NODE_LAZY);
  }
  for (size_t i = 0; i < walk->outputs.size; ++i) {
    pestle_array_t* node = walk->outputs.data[i];
    if (node->number != TO_FAIL) continue;
    node->failure = pestle_status_retain(status);
    detach(walk, node);
    pestle_array_set_state(node, PESTLE_NODE_FAILED);
  }
}

static void give(pestle_walk_t* walk) {
  pestle_lazy_t* lazy = walk->lazy;
  pestle_lazy_lock(lazy);
  pestle_walk_give(walk);
  pestle_mutex_unlock(&lazy->mutex);
}

// Ends the evaluation, whose lock is held: operands of what is data now are let go of
// without it, since that may free anything.
static void leave(pestle_walk_t* walk) {
  enum { FEW = 16 };
  pestle_array_t* few[FEW];
  pestle_lazy_t* lazy = walk->lazy;
  size_t count = walk->dropped.size;
  bool is_small = count <= FEW;
  if (lazy->waiting) pestle_cond_broadcast(&lazy->done);
  if (is_small) {
    if (count) memcpy(few, walk->dropped.data, count * sizeof(few[0]));
    pestle_walk_give(walk);
  }
  pestle_mutex_unlock(&lazy->mutex);
  pestle_array_drop_operands(is_small ? few : walk->dropped.data,
                             (uint32_t)count);
  if (!is_small) give(walk);
}

// Runs |executable|, or, where that is NULL, what is compiled first, and gives |walk|
// back. |is_timed|: how long a run takes is not known well.
static pestle_status_t run_claimed(pestle_walk_t* walk,
                                   pestle_executable_t* executable,
                                   bool is_timed, pestle_stream_t* stream) {
  pestle_lazy_t* lazy = walk->lazy;
  pestle_status_t status = NULL;
  bool ran = false;
  int64_t begin = 0, ns = 0;
  if (!executable) status = pestle_cache_make(walk, &executable);
  if (!status && !make_parts(walk)) status = PESTLE_OOM();
  if (!status) {
    ran = true;
    if (is_timed) begin = pestle_clock_ns();
    status = run(walk, executable, stream);
    if (is_timed) ns = pestle_clock_ns() - begin;
  }
  pestle_lazy_lock(lazy);
  if (ran && status) status = pestle_walk_note_sites(walk, status);
  if (!status) {
    if (stream) pestle_walk_pass_sites(walk);
    finish(walk);
    if (is_timed) pestle_cache_note(walk, (uint64_t)ns);
    ++lazy->evaluations;
    lazy->donations += walk->donated.size;
  } else if (ran && !may_retry(walk, status)) {
    fail(walk, status);
  } else {
    pestle_walk_unclaim(walk);
  }
  leave(walk);
  pestle_executable_release(executable);
  return status;
}

// --- One device ---

// Whether |walk|'s run takes |most_ns| at most and waits for nothing.
static bool is_quick(const pestle_walk_t* walk, pestle_lazy_cost_t cost,
                     uint64_t most_ns) {
  if (cost.runs < PESTLE_LAZY_TIMED || cost.ns > most_ns) return false;
  for (size_t i = 0; i < walk->leaves.size; ++i) {
    if (!pestle_buffer_is_ready(walk->leaves.data[i]->buffer)) return false;
  }
  return true;
}

// Evaluates those of |arrays| that are on the first one's device. |most_ns| other
// than 0: if it is quick, else |*out_late| is set.
static pestle_status_t evaluate(pestle_array_t* const* arrays, size_t count,
                                pestle_stream_t* stream, uint64_t most_ns,
                                bool* out_late) {
  pestle_lazy_t* lazy = arrays[0]->lazy;
  pestle_executable_t* executable = NULL;
  pestle_lazy_cost_t cost = {.runs = 0};
  pestle_lazy_lock(lazy);
  pestle_walk_t* walk = pestle_walk_take(lazy);
  if (!walk) {
    pestle_mutex_unlock(&lazy->mutex);
    return PESTLE_OOM();
  }
  pestle_status_t status = pestle_walk_claim(walk, arrays, count);
  while (!status && walk->busy && !most_ns) {
    ++lazy->waiting;
    pestle_cond_wait(&lazy->done, &lazy->mutex);
    --lazy->waiting;
    status = pestle_walk_claim(walk, arrays, count);
  }
  bool has_work = !status && walk->nodes.size;
  if (has_work) executable = pestle_cache_find(walk, &cost);
  bool is_late = !status && most_ns &&
                 (walk->busy || (has_work && !is_quick(walk, cost, most_ns)));
  if (is_late) {
    *out_late = true;
    if (has_work) pestle_walk_unclaim(walk);
  }
  if (!has_work || is_late) pestle_walk_give(walk);
  pestle_mutex_unlock(&lazy->mutex);
  if (has_work && !is_late) {
    return run_claimed(walk, executable, cost.runs < PESTLE_LAZY_TIMED, stream);
  }
  pestle_executable_release(executable);
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
    PESTLE_TRY(evaluate(arrays + i, count - i, stream, 0, NULL));
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

static pestle_status_t wait_all(pestle_array_t* const* arrays, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    PESTLE_TRY(
        pestle_site_note(arrays[i], pestle_buffer_wait(arrays[i]->buffer)));
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
  return wait_all(arrays, count);
}

pestle_status_t pestle_array_eval_quick(pestle_array_t* const* arrays,
                                        size_t count, uint64_t most_ns,
                                        bool* out_done) {
  PESTLE_REQUIRE(out_done, "a place for the answer");
  *out_done = false;
  PESTLE_REQUIRE(arrays || !count, "arrays");
  PESTLE_TRY(check(arrays, count));
  for (size_t i = 0; i < count; ++i) {
    bool is_late = !most_ns;
    if (is_data(arrays[i])) continue;
    if (pestle_device_dl(arrays[i]->device).device_type != PESTLE_DEVICE_CPU) {
      return NULL;
    }
    if (!is_late) {
      PESTLE_TRY(evaluate(arrays + i, count - i, NULL, most_ns, &is_late));
    }
    if (is_late) return NULL;
  }
  for (size_t i = 0; i < count; ++i) {
    if (!pestle_buffer_is_ready(arrays[i]->buffer)) return NULL;
  }
  PESTLE_TRY(wait_all(arrays, count));
  *out_done = true;
  return NULL;
}

pestle_status_t pestle_array_wait(pestle_array_t* array) {
  PESTLE_REQUIRE(array, "an array");
  return pestle_array_eval(&array, 1, NULL);
}

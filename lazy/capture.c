// SPDX-License-Identifier: Apache-2.0
// Captures: arguments without elements, and the module of what was recorded on them.
#include "base/require.h"
#include "lazy/lazy.h"

struct pestle_capture_s {
  pestle_lazy_t* lazy;  // whose context it keeps alive
  pestle_device_t* device;
  pestle_array_t** arguments;
  size_t argument_count;
  uint32_t number;  // of those of a context, in the order in which they began
  PESTLE_VEC(pestle_array_t*) hidden;
};

static pestle_status_t make_arguments(pestle_capture_t* capture,
                                      const pestle_type_t* types,
                                      size_t count) {
  capture->arguments = pestle_alloc_array(capture->lazy->allocator, count,
                                          sizeof(*capture->arguments));
  if (!capture->arguments) return PESTLE_OOM();
  capture->argument_count = count;
  memset(capture->arguments, 0, count * sizeof(*capture->arguments));
  for (size_t i = 0; i < count; ++i) {
    PESTLE_TRY(pestle_array_check_type(&types[i]));
    pestle_array_t* argument = pestle_array_make(capture->lazy, capture->device,
                                                 PESTLE_NODE_TRACED, 0);
    if (!argument) return PESTLE_OOM();
    pestle_array_keep_context(argument);
    argument->op = PESTLE_LAZY_ARGUMENT;
    argument->capture = capture->number;
    argument->type = types[i];
    capture->arguments[i] = argument;
  }
  return NULL;
}

pestle_status_t pestle_capture_begin(pestle_device_t* device,
                                     const pestle_type_t* types, size_t count,
                                     pestle_capture_t** out_capture,
                                     pestle_array_t** arguments) {
  PESTLE_REQUIRE(device && out_capture && (!count || (types && arguments)),
                 "a device, types, a place for the capture and its arguments");
  *out_capture = NULL;
  for (size_t i = 0; i < count; ++i)
    arguments[i] = NULL;
  pestle_lazy_t* lazy;
  PESTLE_TRY(pestle_lazy_of(pestle_device_context(device), &lazy));
  pestle_capture_t* capture =
      pestle_alloc_zero(lazy->allocator, sizeof(*capture));
  if (!capture) return PESTLE_OOM();
  capture->lazy = lazy;
  capture->device = device;
  capture->number = (uint32_t)atomic_fetch_add_explicit(&lazy->captures, 1,
                                                        memory_order_relaxed) +
                    1;
  pestle_vec_init(&capture->hidden, lazy->allocator);
  pestle_context_retain(lazy->context);
  pestle_status_t status = make_arguments(capture, types, count);
  if (status) {
    pestle_capture_release(capture);
    return status;
  }
  for (size_t i = 0; i < count; ++i) {
    pestle_array_retain(capture->arguments[i]);
    arguments[i] = capture->arguments[i];
  }
  *out_capture = capture;
  return NULL;
}

pestle_status_t pestle_capture_bind(pestle_capture_t* capture,
                                    pestle_array_t* const* arrays,
                                    size_t count) {
  PESTLE_REQUIRE(capture && (arrays || !count), "a capture and arrays");
  for (size_t i = 0; i < count; ++i) {
    if (!arrays[i] || arrays[i]->lazy != capture->lazy) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "array %zu is NULL or of another context", i);
    }
  }
  size_t size = sizeof(*capture->arguments), total;
  if (__builtin_add_overflow(capture->argument_count, count, &total)) {
    return PESTLE_OOM();
  }
  pestle_array_t** all =
      pestle_alloc_array(capture->lazy->allocator, total, size);
  if (!all) return PESTLE_OOM();
  memcpy(all, capture->arguments, capture->argument_count * size);
  for (size_t i = 0; i < count; ++i) {
    pestle_array_retain(arrays[i]);
    all[capture->argument_count + i] = arrays[i];
  }
  pestle_dealloc(capture->lazy->allocator, capture->arguments,
                 capture->argument_count * size);
  capture->arguments = all;
  capture->argument_count = total;
  return NULL;
}

static void drop_hidden(pestle_capture_t* capture) {
  for (size_t i = 0; i < capture->hidden.size; ++i)
    pestle_array_release(capture->hidden.data[i]);
  pestle_vec_clear(&capture->hidden);
}

void pestle_capture_release(pestle_capture_t* capture) {
  if (!capture) return;
  pestle_lazy_t* lazy = capture->lazy;
  pestle_context_t* context = lazy->context;
  drop_hidden(capture);
  pestle_vec_deinit(&capture->hidden);
  for (size_t i = 0; i < capture->argument_count; ++i)
    pestle_array_release(capture->arguments[i]);
  pestle_dealloc(lazy->allocator, capture->arguments,
                 capture->argument_count * sizeof(*capture->arguments));
  pestle_dealloc(lazy->allocator, capture, sizeof(*capture));
  pestle_context_release(context);
}

// Leaves that are no arguments, kept from under the lock, since a node that reads
// one may be evaluated meanwhile and drop it.
static pestle_status_t keep_hidden(pestle_capture_t* capture,
                                   const pestle_walk_t* walk) {
  size_t first = capture->argument_count;
  if (!pestle_vec_reserve(&capture->hidden, walk->leaves.size - first)) {
    return PESTLE_OOM();
  }
  for (size_t i = first; i < walk->leaves.size; ++i) {
    pestle_array_t* leaf = walk->leaves.data[i];
    pestle_array_retain(leaf);
    capture->hidden.data[capture->hidden.size++] = leaf;
  }
  return NULL;
}

static pestle_status_t check_results(const pestle_capture_t* capture,
                                     pestle_array_t* const* results,
                                     size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!results[i] || results[i]->lazy != capture->lazy) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "result %zu is NULL or of another context", i);
    }
  }
  return NULL;
}

pestle_status_t pestle_capture_end(pestle_capture_t* capture,
                                   pestle_array_t* const* results, size_t count,
                                   pestle_module_t** out_module) {
  PESTLE_REQUIRE(capture && (results || !count) && out_module,
                 "a capture, results and a place for the module");
  *out_module = NULL;
  pestle_lazy_t* lazy = capture->lazy;
  PESTLE_TRY(check_results(capture, results, count));
  drop_hidden(capture);
  pestle_lazy_lock(lazy);
  pestle_walk_t* walk = pestle_walk_take(lazy);
  pestle_status_t status =
      walk ? pestle_walk_trace(walk, capture->number, capture->device,
                               capture->arguments, capture->argument_count,
                               results, count)
           : PESTLE_OOM();
  if (!status) status = keep_hidden(capture, walk);
  pestle_mutex_unlock(&lazy->mutex);
  if (!status) {
    status =
        pestle_build_module(lazy, walk->key.data, walk->key.size, out_module);
  }
  pestle_lazy_lock(lazy);
  if (walk) pestle_walk_give(walk);
  pestle_mutex_unlock(&lazy->mutex);
  return status;
}

size_t pestle_capture_hidden_count(const pestle_capture_t* capture) {
  return capture ? capture->hidden.size : 0;
}

pestle_array_t* pestle_capture_hidden(const pestle_capture_t* capture,
                                      size_t index) {
  if (!capture || index >= capture->hidden.size) return NULL;
  return capture->hidden.data[index];
}

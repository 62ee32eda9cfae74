// SPDX-License-Identifier: Apache-2.0
#include "runtime/context.h"

#include <string.h>

#include "base/mem.h"
#include "pestle/runtime.h"
#include "pestle/version.h"

// --- Parallel work ---

typedef struct plain_task_t {
  void (*task)(void* arg, int64_t index);
  void* arg;
} plain_task_t;

static void run_plain_task(void* arg, int32_t participant, int64_t piece) {
  (void)participant;
  const plain_task_t* plain = arg;
  plain->task(plain->arg, piece);
}

static void run_on_pool(pestle_context_t* context, int64_t count,
                        void (*task)(void* arg, int64_t index), void* arg) {
  pestle_context_enter(context);
  plain_task_t plain = {task, arg};
  pestle_pool_run(&context->pool, count, 0, run_plain_task, &plain);
}

// --- Creation ---

static pestle_status_t check_options(const pestle_context_options_t* options,
                                     pestle_context_options_t* out_options) {
  *out_options = (pestle_context_options_t){.struct_size = 0};
  if (options) {
    if (options->struct_size < sizeof(size_t)) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "pestle_context_options_t.struct_size is not set; "
                          "set it to sizeof(pestle_context_options_t)");
    }
    size_t size = options->struct_size < sizeof(*options) ? options->struct_size
                                                          : sizeof(*options);
    memcpy(out_options, options, size);
  }
  if (out_options->threads < 0 || out_options->threads > 1024) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "option threads is %d; expected 0 (the cores) to 1024",
                        (int)out_options->threads);
  }
  if (out_options->log_level < PESTLE_LOG_ERROR ||
      out_options->log_level > PESTLE_LOG_DEBUG) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "option log_level is %d; expected 0 to 3",
                        (int)out_options->log_level);
  }
  if (out_options->probe_timeout_ms < 0) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "option probe_timeout_ms is %d; expected 0 (5000 ms) "
                        "or more",
                        (int)out_options->probe_timeout_ms);
  }
  if (!out_options->allocator.resize) {
    out_options->allocator = pestle_allocator_system();
  }
  if (!out_options->device_allocator.allocate !=
      !out_options->device_allocator.deallocate) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "option device_allocator needs both allocate and "
                        "deallocate, or neither");
  }
  return NULL;
}

static pestle_status_t copy_text(pestle_allocator_t allocator, const char* text,
                                 char** out_copy) {
  *out_copy = text ? pestle_strdup(allocator, text) : NULL;
  return text && !*out_copy ? PESTLE_OOM() : NULL;
}

static pestle_status_t copy_strings(const pestle_context_options_t* options,
                                    const char* default_device,
                                    pestle_context_t* context) {
  pestle_allocator_t allocator = context->core.allocator;
  PESTLE_TRY(copy_text(allocator, default_device ? default_device : "cpu",
                       &context->default_device));
  // An empty path is the built-in search too, an empty folder none at all.
  if (options->backend_path && *options->backend_path) {
    PESTLE_TRY(
        copy_text(allocator, options->backend_path, &context->backend_path));
  }
  if (!options->cache_dir) {
    return pestle_context_default_cache_dir(allocator, &context->cache_dir);
  }
  if (!*options->cache_dir) return NULL;
  return copy_text(allocator, options->cache_dir, &context->cache_dir);
}

static void destroy(pestle_context_t* context) {
  pestle_context_enter(context);
  pestle_allocator_t allocator = context->core.allocator;
  pestle_context_end_guest(context);
  pestle_registry_end_exchanges(&context->registry);
  // Its threads may still be in callbacks, which may use all that follows.
  pestle_notifier_deinit(&context->notifier);
  pestle_poison_deinit(&context->poison);
  // Each tolerates that it was never initialised.
  pestle_plan_cache_deinit(&context->plan_cache);
  pestle_constants_deinit(&context->constants);
  pestle_device_constants_deinit(&context->device_constants);
  pestle_pool_deinit(&context->pool);
  pestle_context_close_trace(context);
  pestle_registry_deinit(&context->registry);
  pestle_custom_calls_deinit(context);
  pestle_custom_ops_deinit(context);
  pestle_fork_mark_deinit(&context->fork_mark);
  pestle_free_str(allocator, context->default_device);
  pestle_free_str(allocator, context->backend_path);
  pestle_free_str(allocator, context->cache_dir);
  pestle_free_aligned(allocator, context, sizeof(*context),
                      _Alignof(pestle_context_t));
}

static void enter(pestle_context_t* context) {
  pestle_context_enter(context);
}

pestle_status_t pestle_context_create(const pestle_context_options_t* user,
                                      pestle_context_t** out_context) {
  if (!out_context) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_context_create needs a place for the context");
  }
  *out_context = NULL;
  pestle_context_options_t options;
  const char* default_device = NULL;
  PESTLE_TRY(check_options(user, &options));
  bool own_path = options.backend_path != NULL;
  if (options.use_environment) {
    PESTLE_TRY(pestle_context_read_environment(&options, &default_device));
  }
  pestle_context_t* context = pestle_alloc_aligned(
      options.allocator, sizeof(*context), _Alignof(pestle_context_t));
  if (!context) return PESTLE_OOM();
  memset(context, 0, sizeof(*context));
  pestle_context_core_init(options.allocator, &context->core);
  context->core.parallel_for = run_on_pool;
  context->core.destroy = destroy;
  context->core.enter = enter;
  context->core.find_op = pestle_custom_ops_find;
  context->device_allocator = options.device_allocator;
  context->core.log = options.log;
  context->core.log_user = options.log_user;
  context->core.log_level = options.log_level;
  context->strict = options.strict;
  context->no_cache = options.no_cache;
  context->manual_backends = options.manual_backends;
  context->environment_path = !own_path;
  context->probe_backends = options.probe_backends;
  context->remember_probes = options.remember_probes;
  context->probe_timeout_ms =
      options.probe_timeout_ms ? options.probe_timeout_ms : 5000;
  context->core.threads =
      options.threads ? options.threads : pestle_core_count();
  context->memory_cache_entries =
      options.memory_cache_entries ? options.memory_cache_entries : 64;
  context->cache_bytes =
      options.cache_bytes ? options.cache_bytes : PESTLE_CACHE_BYTES;
  context->build_id = pestle_build_id_u64();
  pestle_fork_mark_init(&context->fork_mark);
  atomic_init(&context->custom_calls, NULL);
  atomic_init(&context->custom_ops, NULL);
  atomic_init(&context->fork_count, 0);
  pestle_host_init(context, &context->host);
  pestle_pool_init(
      context->core.allocator, context->core.threads,
      (pestle_pool_hook_t){options.parallel_for, options.parallel_user},
      &context->pool);
  pestle_notifier_init(context->core.allocator, &context->notifier);
  pestle_poison_init(context->core.allocator, &context->poison);
  pestle_registry_init(context, &context->registry);
  pestle_constants_init(context, &context->constants);
  pestle_device_constants_init(context, &context->device_constants);
  pestle_plan_cache_init(context, &context->plan_cache);
  pestle_status_t status = copy_strings(&options, default_device, context);
  if (!status) status = pestle_context_open_trace(context, options.trace_file);
  context->pool.trace = context->core.trace;
  if (status) {
    destroy(context);
  } else {
    *out_context = context;
  }
  return status;
}

void pestle_context_after_fork(pestle_context_t* context) {
  unsigned expected = PESTLE_FORK_CLEARED;
  atomic_uint* state = context->fork_mark.state;
  if (atomic_compare_exchange_strong(state, &expected, PESTLE_FORK_RESETTING)) {
    atomic_fetch_add(&context->fork_count, 1);
    // Its locks may be held by threads of the parent, whose file it is.
    context->core.trace = NULL;
    pestle_pool_after_fork(&context->pool);
    pestle_notifier_after_fork(&context->notifier);
    pestle_poison_after_fork(&context->poison);
    pestle_registry_after_fork(&context->registry);
    pestle_constants_after_fork(&context->constants);
    pestle_device_constants_after_fork(&context->device_constants);
    pestle_plan_cache_after_fork(&context->plan_cache);
    pestle_context_guest_t* guest = pestle_context_guest(context);
    if (guest && guest->after_fork) guest->after_fork(guest);
    atomic_store(state, PESTLE_FORK_READY);
  }
  while (atomic_load(state) != PESTLE_FORK_READY)
    pestle_thread_yield();
}

// --- Getters ---

bool pestle_context_is_strict(const pestle_context_t* context) {
  return context && context->strict;
}

const char* pestle_context_cache_dir(const pestle_context_t* context) {
  return !context || context->no_cache ? NULL : context->cache_dir;
}

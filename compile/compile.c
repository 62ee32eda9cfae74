// SPDX-License-Identifier: Apache-2.0
// The whole compiler on one page: cache, passes, memory plan, kernels, steps,
// the plan's bytes.
#include "pestle/compile.h"

#include "base/thread.h"
#include "compile/check.h"
#include "compile/compilation.h"
#include "compile/dump.h"
#include "compile/explain.h"
#include "compile/library.h"
#include "compile/locations.h"
#include "compile/steps.h"
#include "compile/tune.h"
#include "ir/sharding.h"
#include "passes/pass.h"
#include "pestle/partition.h"

// --- The pipeline ---

// What a compilation makes on its way to a plan.
typedef struct work_t {
  pestle_arena_t arena;  // of the memory plan, nests and arguments
  pestle_locations_t locations;
  pestle_memory_plan_t memory;
  pestle_kernels_t kernels;
  pestle_plan_build_t build;
} work_t;

static pestle_status_t run_pipeline(pestle_compilation_t* c,
                                    pestle_module_t* module, work_t* w,
                                    pestle_plan_t** out_plan) {
  const pestle_compile_options_t* options = &c->options;
  const pestle_target_caps_t* caps = &w->kernels.targets[0].caps;
  PESTLE_TRY(pestle_kernels_init(c->context, c->device, options, c->lock,
                                 &w->arena, &w->kernels));
  PESTLE_TRY(pestle_locations_number(&w->locations, module));
  PESTLE_TRY(pestle_dump_module(options, PESTLE_STAGE_GRAPH, module));
  if (pestle_libraries_are_used(options)) {
    PESTLE_TRY(pestle_libraries_apply(c->device, module, c->remarks));
  }
  PESTLE_TRY(pestle_passes_run(c->context, caps, options, module, c->remarks));
  PESTLE_TRY(pestle_dump_module(options, PESTLE_STAGE_FUSED, module));
  PESTLE_TRY(
      pestle_passes_complete(c->context, caps, options, module, c->remarks));
  PESTLE_TRY(pestle_locations_settle(&w->locations));
  const pestle_function_t* entry = pestle_module_entry(module);
  PESTLE_TRY(pestle_check_sizes(entry));
  pestle_memory_wishes_t wishes = {
      .aliases = c->donations.list.data,
      .count = c->donations.list.size,
      .remarks = c->remarks,
      .copies_wait = (caps->flags & PESTLE_TARGET_LANES) != 0,
      .overlaps = true};
  PESTLE_TRY(pestle_memory_plan_make(module, &wishes, &w->arena, &w->memory));
  PESTLE_TRY(pestle_kernels_make(&w->kernels, &w->memory, entry));
  if (c->tuning) return pestle_tune(&w->kernels, c->lock);
  PESTLE_TRY(pestle_kernels_check_lockfile(&w->kernels));
  if (c->remarks) PESTLE_TRY(pestle_explain_kernels(&w->kernels, c->remarks));
  PESTLE_TRY(pestle_kernels_compile(&w->kernels));
  if (c->remarks) PESTLE_TRY(pestle_explain_refused(&w->kernels));
  PESTLE_TRY(pestle_steps_build(&w->kernels, &w->memory, &w->locations, entry,
                                &w->build));
  PESTLE_TRY(pestle_dump_plan(options, module, &w->memory, &w->build));
  // A plan that nobody else will find is self-contained.
  bool share = !options->no_cache && !options->dump;
  return pestle_plan_build_finish(&w->build, share, &w->kernels, module->name,
                                  c->signature, out_plan);
}

// Compiles a copy of the module, which the caller keeps as it is.
static pestle_status_t compile_copy(pestle_compilation_t* c,
                                    pestle_plan_t** out_plan) {
  pestle_allocator_t allocator = pestle_context_allocator(c->context);
  pestle_module_t* copy;
  PESTLE_TRY(pestle_module_clone(c->module, &copy));
  work_t w = {.kernels = {0}};
  pestle_arena_init(allocator, &w.arena);
  pestle_locations_init(allocator, &w.locations);
  pestle_plan_build_init(allocator, &w.build);
  pestle_status_t status = run_pipeline(c, copy, &w, out_plan);
  pestle_kernels_deinit(&w.kernels);
  pestle_plan_build_deinit(&w.build);
  pestle_locations_deinit(&w.locations);
  pestle_arena_deinit(&w.arena);
  pestle_module_release(copy);
  return status;
}

// --- Its calls ---

// The cache's miss handler.
static pestle_status_t make(void* user, pestle_plan_t** out_plan) {
  pestle_compilation_t* c = user;
  int64_t begin = pestle_clock_ns();
  int64_t traced = pestle_context_trace_begin(c->context);
  pestle_status_t status = compile_copy(c, out_plan);
  pestle_context_trace_end(c->context, traced, "compile", "compile",
                           c->module->name);
  if (status) return status;
  pestle_context_log(c->context, PESTLE_LOG_INFO, "compiled '%s' in %.1f ms",
                     c->module->name,
                     (double)(pestle_clock_ns() - begin) * 1e-6);
  return NULL;
}

// Compiles and says why.
static pestle_status_t explain(pestle_compilation_t* c, pestle_str_t key,
                               pestle_plan_t** out_plan) {
  pestle_remarks_t remarks;
  pestle_remarks_init(pestle_context_allocator(c->context), &remarks);
  c->remarks = &remarks;
  pestle_status_t status =
      pestle_explain_cache(c->context, &c->options, key, c->key_head);
  if (!status) status = make(c, out_plan);
  pestle_remarks_deinit(&remarks);
  return status;
}

// Measures what the lock lacks, and writes it. None of it is shown.
static pestle_status_t tune(pestle_compilation_t* c) {
  pestle_plan_t* none = NULL;
  pestle_compilation_t tuning = *c;
  tuning.tuning = true;
  tuning.options.dump = NULL;
  PESTLE_TRY(compile_copy(&tuning, &none));
  return pestle_lockfile_save(c->lock, c->options.lock_path);
}

// What is wanted soon may be there already, by the full tier.
static pestle_status_t find_full(const pestle_compilation_t* c,
                                 pestle_strbuf_t* key,
                                 pestle_plan_t** out_plan) {
  if (c->options.tier != PESTLE_TIER_QUICK) return NULL;
  char* tier = &key->data[c->key_tier];
  char own = *tier;
  *tier = '0' + PESTLE_TIER_FULL;
  pestle_status_t status =
      pestle_plan_cache_find(c->context, key->data, key->size, out_plan);
  *tier = own;
  return status;
}

// |key| is empty, and gets the plan's.
static pestle_status_t find_or_make(pestle_compilation_t* c,
                                    pestle_strbuf_t* key,
                                    pestle_plan_t** out_plan) {
  int64_t begin = pestle_context_trace_begin(c->context);
  pestle_status_t status = pestle_plan_key(c, key);
  pestle_context_trace_end(c->context, begin, "cache", "cache key", NULL);
  PESTLE_TRY(status);
  // Who wants to see the stages must compile.
  if (pestle_wants_dump(&c->options, PESTLE_STAGE_EXPLAIN)) {
    return explain(c, pestle_strbuf_view(key), out_plan);
  }
  if (c->options.no_cache || c->options.dump) return make(c, out_plan);
  PESTLE_TRY(find_full(c, key, out_plan));
  if (*out_plan) return NULL;
  const char* reason = "";
  status = pestle_plan_cache_get(c->context, key->data, key->size, make, c,
                                 out_plan, &reason);
  pestle_context_log(c->context, PESTLE_LOG_DEBUG, "plan of '%s': %s",
                     c->module->name, reason ? reason : "");
  return status;
}

static pestle_status_t compile_with_lock(pestle_compilation_t* c,
                                         pestle_plan_t** out_plan) {
  bool tunes = c->options.tune_seconds > 0;
  if (c->lock) {
    PESTLE_TRY(pestle_lockfile_load(c->options.lock_path, tunes, c->lock));
  }
  if (tunes) PESTLE_TRY(tune(c));
  pestle_strbuf_t key;
  pestle_strbuf_init(pestle_context_allocator(c->context), &key);
  pestle_status_t status = find_or_make(c, &key, out_plan);
  pestle_strbuf_deinit(&key);
  return status;
}

pestle_status_t pestle_compile(pestle_context_t* context,
                               pestle_module_t* module, pestle_device_t* device,
                               const pestle_compile_options_t* options,
                               pestle_plan_t** out_plan) {
  if (!out_plan || !context || !module ||
      (options && options->struct_size < sizeof(size_t))) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_compile needs a context, a module, a place for "
                        "the plan, and options, if any, with their struct_size "
                        "set");
  }
  *out_plan = NULL;
  if (!device) PESTLE_TRY(pestle_context_device(context, NULL, &device));
  pestle_compilation_t c = {
      .context = context, .module = module, .device = device};
  PESTLE_TRY(pestle_options_read(options, &c.options, &c.control));
  PESTLE_TRY(pestle_check_module(module));
  PESTLE_TRY(pestle_options_check(&c.options));
  pestle_lockfile_t lock;
  pestle_lockfile_init(pestle_context_allocator(context), &lock);
  pestle_donations_init(pestle_context_allocator(context), &c.donations);
  bool is_quick = c.options.tier == PESTLE_TIER_QUICK;
  if (c.options.lock_path && !is_quick) c.lock = &lock;
  pestle_status_t status = pestle_donations_collect(
      &c.options, pestle_module_entry(module), &c.donations);
  if (!status) status = compile_with_lock(&c, out_plan);
  pestle_donations_deinit(&c.donations);
  pestle_lockfile_deinit(&lock);
  return status;
}

static pestle_status_t check_call(const char* function,
                                  const pestle_context_t* context,
                                  const pestle_module_t* module,
                                  const pestle_compile_options_t* options) {
  if (context && module &&
      (!options || options->struct_size >= sizeof(size_t))) {
    return NULL;
  }
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "%s needs a context, a module, and options, if any, with "
                      "their struct_size set",
                      function);
}

// The passes up to |last|; NULL: all.
static pestle_status_t run_passes(pestle_context_t* context,
                                  pestle_module_t* module,
                                  pestle_device_t* device,
                                  const pestle_compile_options_t* options,
                                  const char* last) {
  pestle_compile_options_t own;
  pestle_control_t control;
  pestle_target_caps_t caps = {.struct_size = sizeof(caps)};
  if (!device) PESTLE_TRY(pestle_context_device(context, NULL, &device));
  PESTLE_TRY(pestle_options_read(options, &own, &control));
  PESTLE_TRY(pestle_check_module(module));
  PESTLE_TRY(pestle_device_caps(device, own.target_cpu, &caps));
  return pestle_passes_run_to(context, &caps, &own, module, NULL, last);
}

pestle_status_t pestle_optimize(pestle_context_t* context,
                                pestle_module_t* module,
                                pestle_device_t* device,
                                const pestle_compile_options_t* options) {
  PESTLE_TRY(check_call("pestle_optimize", context, module, options));
  return run_passes(context, module, device, options, NULL);
}

pestle_status_t pestle_partition(pestle_context_t* context,
                                 pestle_module_t* module,
                                 pestle_device_t* device,
                                 const pestle_compile_options_t* options) {
  PESTLE_TRY(check_call("pestle_partition", context, module, options));
  if (!pestle_module_has_mesh(module)) return NULL;
  return run_passes(context, module, device, options, "partition");
}

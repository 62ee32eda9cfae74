// SPDX-License-Identifier: Apache-2.0
// The whole compiler on one page: key, cache, passes, memory plan, steps and
// kernels, compilation, bytes.
#include "pestle/compile.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/thread.h"
#include "compile/custom.h"
#include "compile/explain.h"
#include "compile/library.h"
#include "compile/lockfile.h"
#include "compile/memory_plan.h"
#include "compile/steps.h"
#include "compile/tune.h"
#include "ir/signature.h"
#include "passes/pass.h"
#include "pestle/version.h"

typedef struct compilation_t {
  pestle_context_t* context;
  pestle_module_t* module;
  pestle_device_t* device;
  pestle_compile_options_t options;
  uint64_t signature[2];
  size_t key_head;            // bytes of the key before the module
  pestle_remarks_t* remarks;  // NULL: nobody asks why
  pestle_lockfile_t* lock;    // NULL: the usual schedules
  bool tuning;                // the lock is made, and no plan
} compilation_t;

// --- The key: every input that can change the plan ---

static const char* numerics_name(pestle_numerics_t numerics) {
  switch (numerics) {
    case PESTLE_NUMERICS_DEFAULT:
      return "default";
    case PESTLE_NUMERICS_STRICT:
      return "strict";
    case PESTLE_NUMERICS_FAST:
      return "fast";
  }
  return "?";
}

// A library has its own order of sums.
static bool uses_libraries(const compilation_t* c) {
  return c->options.numerics != PESTLE_NUMERICS_STRICT;
}

static pestle_status_t append_key(compilation_t* c, pestle_strbuf_t* key) {
  const pestle_backend_t* backend = pestle_device_backend(c->device);
  pestle_target_caps_t caps = {.struct_size = sizeof(caps)};
  const char* toolchain = "";
  pestle_device_t* fallback = NULL;
  PESTLE_TRY(pestle_device_caps(c->device, c->options.target_cpu, &caps));
  PESTLE_TRY(pestle_context_fallback(c->context, c->device, &fallback));
  if (backend->target) {
    PESTLE_TRY(pestle_kernel_toolchain(backend, &toolchain));
  }
  pestle_strbuf_appendf(
      key, "pestle %s\nbackend %s\ntoolchain %s\ncpu %s\nfeatures %s\n",
      pestle_build_id(), pestle_device_backend_id(c->device), toolchain,
      caps.cpu, caps.features);
  // Schedules, blocks of folds and kinds of stores are chosen by them.
  pestle_strbuf_appendf(key, "caches %llu %llu %llu\ncores %u\n",
                        (unsigned long long)caps.l1_bytes,
                        (unsigned long long)caps.l2_bytes,
                        (unsigned long long)caps.l3_bytes, caps.cores);
  pestle_hash128_t target = pestle_hash128(&caps, sizeof(caps));
  pestle_strbuf_appendf(key, "target %016llx%016llx\n",
                        (unsigned long long)target.high,
                        (unsigned long long)target.low);
  // What a strict context refuses another one may have put into the cache.
  pestle_strbuf_appendf(key, "fallback %s\nstrict %d\n",
                        fallback ? pestle_device_backend_id(fallback) : "",
                        pestle_context_is_strict(c->context));
  pestle_strbuf_appendf(
      key, "numerics %s\nfuse %d\npasses %s\nskip %s\nstop %d\nfold %lld\n",
      numerics_name(c->options.numerics), !c->options.no_fuse,
      c->options.passes ? c->options.passes : "",
      c->options.skip_passes ? c->options.skip_passes : "",
      c->options.stop_after, (long long)c->options.fold_limit);
  if (c->lock) {
    pestle_lockfile_place_t place = pestle_kernels_place(c->context, &caps);
    pestle_lockfile_append_key(c->lock, place.target, place.cpu, place.threads,
                               key);
    pestle_strbuf_appendf(key, "frozen %d\n", c->options.frozen);
  }
  // Names are no part of the signature, but the plan carries them.
  const pestle_function_t* f = pestle_module_entry(c->module);
  for (size_t i = 0; i < f->body->block->argument_count; ++i) {
    char name[256];
    pestle_steps_input_name(f, (uint32_t)i, name, sizeof(name));
    pestle_strbuf_appendf(key, "input %s\n", name);
  }
  for (uint32_t i = 0; i < f->result_name_count; ++i) {
    const char* name = f->result_names[i];
    pestle_strbuf_appendf(key, "output %s\n", name ? name : "");
  }
  PESTLE_TRY(pestle_custom_calls_key(c->context, c->module, key));
  if (uses_libraries(c)) pestle_libraries_key(c->device, key);
  c->key_head = key->size;
  PESTLE_TRY(pestle_module_canonical(c->module, key, c->signature));
  // All of it was read for its hash. A plan that is found needs none of it.
  pestle_module_relax(c->module);
  return pestle_strbuf_status(key);
}

// --- The pipeline ---

static pestle_plan_binding_t placed(const void* plan,
                                    const pestle_value_t* value,
                                    const pestle_value_t** out_root) {
  static const uint16_t storages[] = {
      [PESTLE_STORAGE_NONE] = PESTLE_PLAN_ARENA,
      [PESTLE_STORAGE_ARENA] = PESTLE_PLAN_ARENA,
      [PESTLE_STORAGE_INPUT] = PESTLE_PLAN_INPUT,
      [PESTLE_STORAGE_OUTPUT] = PESTLE_PLAN_OUTPUT,
      [PESTLE_STORAGE_CONSTANT] = PESTLE_PLAN_CONSTANT};
  const pestle_placement_t* p =
      &((const pestle_memory_plan_t*)plan)->placements[value->scratch];
  *out_root = p->root;
  return (pestle_plan_binding_t){.storage = storages[p->storage],
                                 .index = p->index,
                                 .offset = (uint64_t)p->offset,
                                 .size = (uint64_t)p->size};
}

static pestle_status_t dump_module(const compilation_t* c, pestle_stage_t stage,
                                   const pestle_module_t* module) {
  if (!pestle_wants_dump(&c->options, stage)) return NULL;
  char* text;
  size_t size;
  PESTLE_TRY(pestle_module_print(module, PESTLE_PRINT_ELIDE, &text, &size));
  pestle_dump(&c->options, stage, module->name, text, size);
  pestle_context_free(c->context, text, size + 1);
  return NULL;
}

static pestle_status_t dump_plan(const compilation_t* c,
                                 const pestle_module_t* module,
                                 const pestle_memory_plan_t* memory,
                                 const pestle_plan_build_t* plan) {
  if (!pestle_wants_dump(&c->options, PESTLE_STAGE_PLAN)) return NULL;
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_context_allocator(c->context), &text);
  pestle_plan_build_print(plan, &text);
  pestle_status_t status = pestle_memory_plan_print(module, memory, &text);
  if (!status) status = pestle_strbuf_status(&text);
  if (!status) {
    pestle_dump(&c->options, PESTLE_STAGE_PLAN, module->name,
                pestle_strbuf_cstr(&text), text.size);
  }
  pestle_strbuf_deinit(&text);
  return status;
}

typedef struct plan_memory_t {
  pestle_allocator_t allocator;
  void* data;
  size_t size;
} plan_memory_t;

static void release_plan(void* self) {
  plan_memory_t* m = self;
  pestle_free_aligned(m->allocator, m->data, m->size, PESTLE_BUFFER_ALIGNMENT);
  pestle_dealloc(m->allocator, m, sizeof(*m));
}

static pestle_status_t make_plan(compilation_t* c, pestle_plan_build_t* build,
                                 const pestle_kernels_t* kernels,
                                 pestle_plan_t** out_plan) {
  pestle_allocator_t allocator = pestle_context_allocator(c->context);
  plan_memory_t* m = pestle_alloc_zero(allocator, sizeof(*m));
  if (!m) return PESTLE_ERROR(OUT_OF_MEMORY, "writing a plan");
  m->allocator = allocator;
  // A plan that nobody else will find is self-contained.
  bool share = !c->options.no_cache && !c->options.dump;
  pestle_status_t status = pestle_plan_write(
      build, share, kernels, c->module->name, c->signature, &m->data, &m->size);
  if (status) {
    pestle_dealloc(allocator, m, sizeof(*m));
    return status;
  }
  status = pestle_plan_create(c->context, m->data, m->size, release_plan, m,
                              out_plan);
  if (status) release_plan(m);  // it took nothing over
  return status;
}

// No process addresses more.
#define MOST_BYTES ((size_t)1 << 47)

static pestle_status_t check_size(const pestle_value_t* value,
                                  const char* what) {
  size_t size = pestle_type_bytes(value->type);
  if (size <= MOST_BYTES) return NULL;
  return PESTLE_ERROR(RESOURCE_EXHAUSTED,
                      "%s takes %zu bytes, more memory than a process can "
                      "have; give smaller extents",
                      what, size);
}

// What is stored must fit a machine; what a kernel makes and uses up need not.
static pestle_status_t check_sizes(const pestle_function_t* f) {
  const pestle_block_t* block = f->body->block;
  for (uint32_t i = 0; i < block->argument_count; ++i) {
    char name[256], what[280];
    pestle_steps_input_name(f, i, name, sizeof(name));
    snprintf(what, sizeof(what), "input '%s'", name);
    PESTLE_TRY(check_size(block->arguments[i], what));
  }
  const pestle_node_t* n = NULL;
  while ((n = pestle_region_next(f->body, n))) {
    const pestle_node_t* owner = n->block->region->owner;
    if (owner && owner->op == PESTLE_OP_FUSION) continue;
    char what[280];
    snprintf(what, sizeof(what), "a result of '%.250s'",
             pestle_op_info((pestle_op_t)n->op)->name);
    for (uint32_t r = 0; r < n->result_count; ++r) {
      PESTLE_TRY(check_size(&n->results[r], what));
    }
  }
  return NULL;
}

// From the optimised module to the plan.
static pestle_status_t generate(compilation_t* c, pestle_module_t* module,
                                pestle_arena_t* arena,
                                pestle_kernels_t* kernels,
                                pestle_plan_build_t* build,
                                pestle_plan_t** out_plan) {
  pestle_memory_plan_t memory;
  PESTLE_TRY(check_sizes(pestle_module_entry(module)));
  int64_t begin = pestle_context_trace_begin(c->context);
  PESTLE_TRY(pestle_memory_plan_make(module, arena, &memory));
  pestle_context_trace_end(c->context, begin, "pass", "plan memory", NULL);
  build->arena_size = memory.arena_size;
  build->lower_bound = memory.lower_bound;
  pestle_placements_t placements = {&memory, placed};
  PESTLE_TRY(pestle_steps_build(kernels, build, &placements,
                                pestle_module_entry(module)));
  if (c->tuning) {
    return pestle_tune(kernels, c->options.tune_seconds, c->lock);
  }
  PESTLE_TRY(pestle_kernels_check_lockfile(kernels));
  if (c->remarks) PESTLE_TRY(pestle_explain_kernels(kernels, c->remarks));
  PESTLE_TRY(pestle_kernels_compile(kernels));
  if (c->remarks) PESTLE_TRY(pestle_explain_refused(kernels));
  PESTLE_TRY(pestle_steps_finish(kernels, build, &placements));
  PESTLE_TRY(dump_plan(c, module, &memory, build));
  begin = pestle_context_trace_begin(c->context);
  pestle_status_t status = make_plan(c, build, kernels, out_plan);
  pestle_context_trace_end(c->context, begin, "compile", "write plan", NULL);
  return status;
}

static pestle_status_t compile_module(compilation_t* c, pestle_module_t* module,
                                      pestle_plan_t** out_plan) {
  pestle_allocator_t allocator = pestle_context_allocator(c->context);
  pestle_arena_t arena;
  pestle_kernels_t kernels;
  pestle_plan_build_t build;
  pestle_arena_init(allocator, &arena);
  pestle_plan_build_init(allocator, &build);
  pestle_status_t status =
      pestle_kernels_init(c->context, c->device, &c->options, &arena, &kernels);
  kernels.lock = c->lock;
  kernels.frozen = c->options.frozen;
  if (!status) status = dump_module(c, PESTLE_STAGE_GRAPH, module);
  if (!status && uses_libraries(c)) {
    status = pestle_libraries_apply(c->device, module, c->remarks);
  }
  if (!status) {
    status = pestle_passes_run(c->context, &kernels.targets[0].caps,
                               &c->options, module, c->remarks);
  }
  if (!status) status = dump_module(c, PESTLE_STAGE_FUSED, module);
  if (!status) {
    status = pestle_passes_complete(c->context, &kernels.targets[0].caps,
                                    &c->options, module, c->remarks);
  }
  if (!status) {
    status = generate(c, module, &arena, &kernels, &build, out_plan);
  }
  pestle_kernels_deinit(&kernels);
  pestle_plan_build_deinit(&build);
  pestle_arena_deinit(&arena);
  return status;
}

// The cache's miss handler.
static pestle_status_t make(void* user, pestle_plan_t** out_plan) {
  compilation_t* c = user;
  pestle_module_t* copy;
  int64_t begin = pestle_clock_ns();
  int64_t traced = pestle_context_trace_begin(c->context);
  PESTLE_TRY(pestle_module_clone(c->module, &copy));
  pestle_status_t status = compile_module(c, copy, out_plan);
  pestle_module_release(copy);
  pestle_context_trace_end(c->context, traced, "compile", "compile",
                           c->module->name);
  if (!status) {
    pestle_context_log(c->context, PESTLE_LOG_INFO, "compiled '%s' in %.1f ms",
                       c->module->name,
                       (double)(pestle_clock_ns() - begin) * 1e-6);
  }
  return status;
}

// Compiles and says why.
static pestle_status_t explain(compilation_t* c, pestle_str_t key,
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

static pestle_status_t check_static(const pestle_module_t* module) {
  const pestle_function_t* f = pestle_module_entry((pestle_module_t*)module);
  if (!f) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "module '%s' has no function",
                        module->name);
  }
  for (uint32_t i = 0; i < f->body->block->argument_count; ++i) {
    if (pestle_type_is_static(f->body->block->arguments[i]->type)) continue;
    const char* name = f->argument_names ? f->argument_names[i] : NULL;
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "input %u ('%s') of '%s' has dimensions that are not "
                        "known; fix them with pestle_module_specialize() "
                        "(--shape or --dim on the command line)",
                        i, name ? name : "", module->name);
  }
  return pestle_module_check_values(module);
}

static void copy_options(const pestle_compile_options_t* options,
                         pestle_compile_options_t* out_options) {
  *out_options = (pestle_compile_options_t){.struct_size = 0};
  if (options) {
    size_t n = options->struct_size;
    memcpy(out_options, options,
           n < sizeof(*out_options) ? n : sizeof(*out_options));
  }
  out_options->struct_size = sizeof(*out_options);
}

pestle_status_t pestle_optimize(pestle_context_t* context,
                                pestle_module_t* module,
                                pestle_device_t* device,
                                const pestle_compile_options_t* options) {
  if (!context || !module ||
      (options && options->struct_size < sizeof(size_t))) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_optimize needs a context, a module, and "
                        "options, if any, with their struct_size set");
  }
  if (!device) PESTLE_TRY(pestle_context_device(context, NULL, &device));
  pestle_compile_options_t own;
  pestle_target_caps_t caps = {.struct_size = sizeof(caps)};
  copy_options(options, &own);
  PESTLE_TRY(pestle_module_verify(module));
  PESTLE_TRY(check_static(module));
  PESTLE_TRY(pestle_device_caps(device, own.target_cpu, &caps));
  return pestle_passes_run(context, &caps, &own, module, NULL);
}

// --- The lock ---

static pestle_status_t check_lock_options(
    const pestle_compile_options_t* options) {
  double seconds = options->tune_seconds;
  if (!(seconds >= 0 && seconds <= 1e6)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_compile_options_t.tune_seconds is %g; expected "
                        "0 to a million",
                        seconds);
  }
  if ((seconds > 0 || options->frozen) && !options->lock_path) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_compile_options_t has %s, but no lock_path",
                        options->frozen ? "frozen" : "tune_seconds");
  }
  if (seconds > 0 && options->frozen) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_compile_options_t has frozen and tune_seconds: "
                        "what is frozen is not measured anew");
  }
  return NULL;
}

static pestle_status_t read_lock(compilation_t* c) {
  const char* path = c->options.lock_path;
  pestle_status_t status = pestle_lockfile_read(path, c->lock);
  if (pestle_status_code(status) == PESTLE_STATUS_NOT_FOUND &&
      c->options.tune_seconds > 0) {
    pestle_status_release(status);
    c->lock->changed = true;  // also if there is nothing to choose
    return NULL;
  }
  return pestle_status_annotate(status, "while reading the lock '%s'", path);
}

// Measures what the lock lacks, and writes it.
static pestle_status_t tune(compilation_t* c) {
  pestle_module_t* copy;
  pestle_plan_t* none = NULL;
  pestle_compile_options_t shown = c->options;
  PESTLE_TRY(pestle_module_clone(c->module, &copy));
  c->tuning = true;
  c->options.dump = NULL;
  pestle_status_t status = compile_module(c, copy, &none);
  c->options.dump = shown.dump;
  c->tuning = false;
  pestle_module_release(copy);
  if (status || !c->lock->changed) return status;
  return pestle_status_annotate(
      pestle_lockfile_write(c->lock, c->options.lock_path),
      "while writing the lock '%s'", c->options.lock_path);
}

static pestle_status_t compile_checked(compilation_t* c,
                                       pestle_plan_t** out_plan) {
  pestle_context_t* context = c->context;
  pestle_strbuf_t key;
  if (c->options.tune_seconds > 0) PESTLE_TRY(tune(c));
  pestle_strbuf_init(pestle_context_allocator(context), &key);
  int64_t begin = pestle_context_trace_begin(context);
  pestle_status_t status = append_key(c, &key);
  pestle_context_trace_end(context, begin, "cache", "cache key", NULL);
  // Who wants to see the stages must compile.
  if (!status && pestle_wants_dump(&c->options, PESTLE_STAGE_EXPLAIN)) {
    status = explain(c, pestle_strbuf_view(&key), out_plan);
  } else if (!status && (c->options.no_cache || c->options.dump)) {
    status = make(c, out_plan);
  } else if (!status) {
    const char* reason = "";
    status = pestle_plan_cache_get(context, key.data, key.size, make, c,
                                   out_plan, &reason);
    pestle_context_log(context, PESTLE_LOG_DEBUG, "plan of '%s': %s",
                       c->module->name, reason ? reason : "");
  }
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
  compilation_t c = {.context = context, .module = module, .device = device};
  copy_options(options, &c.options);
  PESTLE_TRY(pestle_module_verify(module));
  PESTLE_TRY(check_static(module));
  PESTLE_TRY(check_lock_options(&c.options));
  if (!c.options.lock_path) return compile_checked(&c, out_plan);
  pestle_lockfile_t lock;
  pestle_lockfile_init(pestle_context_allocator(context), &lock);
  c.lock = &lock;
  pestle_status_t status = read_lock(&c);
  if (!status) status = compile_checked(&c, out_plan);
  pestle_lockfile_deinit(&lock);
  return status;
}

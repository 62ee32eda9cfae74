// SPDX-License-Identifier: Apache-2.0
// The key of a plan in the cache: every input that can change the plan.
#include "base/hash.h"
#include "compile/compilation.h"
#include "compile/custom.h"
#include "compile/kernels.h"
#include "compile/library.h"
#include "compile/steps.h"
#include "ir/signature.h"
#include "pestle/version.h"

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

static pestle_status_t append_target(const pestle_compilation_t* c,
                                     const pestle_target_caps_t* caps,
                                     pestle_strbuf_t* key) {
  const pestle_backend_t* backend = pestle_device_backend(c->device);
  const char* toolchain = "";
  pestle_device_t* fallback = NULL;
  PESTLE_TRY(pestle_context_fallback(c->context, c->device, &fallback));
  if (backend->target) {
    PESTLE_TRY(pestle_kernel_toolchain(backend, &toolchain));
  }
  pestle_strbuf_appendf(
      key, "pestle %s\nbackend %s\ntoolchain %s\ncpu %s\nfeatures %s\n",
      pestle_build_id(), pestle_device_backend_id(c->device), toolchain,
      caps->cpu, caps->features);
  // Schedules, blocks of reductions and kinds of stores are chosen by them.
  pestle_strbuf_appendf(key, "caches %llu %llu %llu\ncores %u\n",
                        (unsigned long long)caps->l1_bytes,
                        (unsigned long long)caps->l2_bytes,
                        (unsigned long long)caps->l3_bytes, caps->cores);
  pestle_hash128_t target = pestle_hash128(caps, sizeof(*caps));
  pestle_strbuf_appendf(key, "target %016llx%016llx\n",
                        (unsigned long long)target.high,
                        (unsigned long long)target.low);
  // Of bytes, the smallest element: 1 says that elements are enough.
  pestle_strbuf_appendf(key, "input_alignment %u\n",
                        pestle_input_align(caps, PESTLE_U8));
  // What a strict context refuses another one may have put into the cache.
  pestle_strbuf_appendf(key, "fallback %s\nstrict %d\n",
                        fallback ? pestle_device_backend_id(fallback) : "",
                        pestle_context_is_strict(c->context));
  return NULL;
}

static void append_options(const pestle_compile_options_t* o,
                           pestle_strbuf_t* key) {
  pestle_strbuf_appendf(
      key, "numerics %s\nfuse %d\npasses %s\nskip %s\nstop %d\nfold %lld\n",
      numerics_name(o->numerics), !o->no_fuse, o->passes ? o->passes : "",
      o->skip_passes ? o->skip_passes : "", o->stop_after,
      (long long)o->fold_limit);
}

// What applies of a lock file.
static void append_lock(const pestle_compilation_t* c,
                        const pestle_target_caps_t* caps,
                        pestle_strbuf_t* key) {
  if (!c->lock) return;
  pestle_lockfile_place_t place = pestle_kernels_place(c->context, caps);
  pestle_lockfile_append_key(c->lock, place.target, place.cpu, place.threads,
                             key);
  pestle_strbuf_appendf(key, "frozen %d\n", c->options.frozen);
}

// Names are no part of the signature, but the plan carries them.
static void append_names(const pestle_function_t* f, pestle_strbuf_t* key) {
  for (uint32_t i = 0; i < f->body->block->argument_count; ++i) {
    char name[256];
    pestle_steps_input_name(f, i, name, sizeof(name));
    pestle_strbuf_appendf(key, "input %s\n", name);
  }
  for (uint32_t i = 0; i < f->result_name_count; ++i) {
    const char* name = f->result_names[i];
    pestle_strbuf_appendf(key, "output %s\n", name ? name : "");
  }
}

pestle_status_t pestle_plan_key(pestle_compilation_t* c,
                                pestle_strbuf_t* out_key) {
  pestle_target_caps_t caps = {.struct_size = sizeof(caps)};
  PESTLE_TRY(pestle_device_caps(c->device, c->options.target_cpu, &caps));
  PESTLE_TRY(append_target(c, &caps, out_key));
  append_options(&c->options, out_key);
  pestle_strbuf_append_c(out_key, "tier ");
  c->key_tier = out_key->size;
  pestle_strbuf_appendf(out_key, "%d\n", (int)c->options.tier);
  append_lock(c, &caps, out_key);
  pestle_donations_key(&c->donations, out_key);
  append_names(pestle_module_entry(c->module), out_key);
  if (pestle_libraries_are_used(&c->options)) {
    pestle_libraries_key(c->device, out_key);
  }
  PESTLE_TRY(pestle_custom_calls_key(c->context, &caps, c->module, out_key));
  c->key_head = out_key->size;
  PESTLE_TRY(pestle_module_canonical(c->module, out_key, c->signature));
  // All of it was read for its hash. A plan that is found needs none of it.
  pestle_module_relax(c->module);
  return pestle_strbuf_status(out_key);
}

// SPDX-License-Identifier: Apache-2.0
// Code for all kernels: each that is another's twin once, by all threads; what a
// target refuses goes to the fallback.
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "compile/control.h"
#include "compile/dump.h"
#include "compile/kernel_build.h"

static pestle_kernel_options_t options_for(const pestle_kernels_t* ks,
                                           const pestle_kernel_t* k) {
  bool is_quick = k->is_cold || ks->options->tier == PESTLE_TIER_QUICK;
  return (pestle_kernel_options_t){
      .struct_size = sizeof(pestle_kernel_options_t),
      .cpu = k->device == 0 ? ks->options->target_cpu : NULL,
      .strict = ks->options->numerics == PESTLE_NUMERICS_STRICT,
      .effort = is_quick ? PESTLE_EFFORT_QUICK : PESTLE_EFFORT_FULL};
}

static void compile_one(pestle_kernels_t* ks, pestle_kernel_t* k) {
  const pestle_kernel_target_t* t = &ks->targets[k->device];
  pestle_kernel_options_t options = options_for(ks, k);
  pestle_blob_t code = {0};
  const pestle_target_api_t* api = t->backend->target;
  if (!k->source) {
    k->status =
        api->compile(t->backend->self, &k->legal->view, &options, &code);
  } else if (PESTLE_HAS(api, compile_source)) {
    k->status = api->compile_source(t->backend->self, &k->legal->view,
                                    k->source, &options, &code);
  } else {
    k->status = PESTLE_ERROR(
        UNSUPPORTED, "backend '%s' takes no kernels as text", t->backend->name);
  }
  if (!k->status && (!code.data || !code.size)) {
    k->status = PESTLE_ERROR(INTERNAL,
                             "backend '%s' says that compile() has succeeded, "
                             "but it gave no artifact; mend the backend",
                             t->backend->name);
  }
  if (k->status) {
    k->status =
        pestle_status_annotate(k->status, "compiling kernel '%s'", k->name);
    return;
  }
  k->code = code;
  k->compiled = true;
}

typedef struct batch_t {
  pestle_kernels_t* ks;
  uint32_t* order;
  atomic_int stopped;
} batch_t;

static void compile_task(void* arg, int64_t index) {
  batch_t* b = arg;
  pestle_kernel_t* k = b->ks->list.data[b->order[index]];
  const pestle_control_t* control = b->ks->options->control;
  if (atomic_load(&b->stopped)) return;
  if (pestle_control_is_over(control)) {
    atomic_store(&b->stopped, 1);
    return;
  }
  int64_t begin = pestle_context_trace_begin(b->ks->context);
  compile_one(b->ks, k);
  pestle_context_trace_end(b->ks->context, begin, "compile", k->name, k->ops);
  if (k->status && !pestle_kernel_is_refusal(b->ks, k, k->status)) {
    atomic_store(&b->stopped, 1);
  }
}

// Lists in |order| those whose code is still to be made.
static pestle_status_t find_unique(pestle_kernels_t* ks, uint32_t* order,
                                   uint32_t* out_count) {
  pestle_map_t seen;
  pestle_map_init(ks->list.allocator, &seen);
  pestle_status_t status = NULL;
  uint32_t n = 0;
  for (uint32_t i = 0; i < ks->list.size && !status; ++i) {
    pestle_kernel_t* k = ks->list.data[i];
    uint64_t key[3] = {k->legal->view.hash[0], k->legal->view.hash[1],
                       k->device};
    bool added = false;
    pestle_map_value_t* v = pestle_map_put(&seen, key, sizeof(key), &added);
    if (!v) {
      status = PESTLE_ERROR(OUT_OF_MEMORY, "comparing kernels");
    } else {
      if (added) v->u64 = i;
      if (added && !k->compiled) order[n++] = i;
      k->unique = (uint32_t)v->u64;
    }
  }
  pestle_map_deinit(&seen);
  *out_count = n;
  return status;
}

typedef struct sized_t {
  uint32_t instructions, kernel;
} sized_t;

static int by_size(const void* a, const void* b) {
  const sized_t *x = a, *y = b;
  if (x->instructions != y->instructions)
    return x->instructions < y->instructions ? 1 : -1;
  return x->kernel < y->kernel ? -1 : x->kernel > y->kernel;
}

// The longest kernels first, so that no thread begins one when the others are done.
static pestle_status_t sort_by_size(const pestle_kernels_t* ks, uint32_t* order,
                                    uint32_t count) {
  sized_t* sized = PESTLE_ARENA_ARRAY(ks->arena, sized_t, count + 1);
  if (!sized) return PESTLE_ERROR(OUT_OF_MEMORY, "compiling kernels");
  for (uint32_t i = 0; i < count; ++i) {
    const pestle_kernel_t* k = ks->list.data[order[i]];
    sized[i] = (sized_t){k->legal->view.inst_count, order[i]};
  }
  if (count) qsort(sized, count, sizeof(*sized), by_size);
  for (uint32_t i = 0; i < count; ++i)
    order[i] = sized[i].kernel;
  return NULL;
}

static pestle_status_t dump_text(pestle_kernels_t* ks, const pestle_kernel_t* k,
                                 pestle_stage_t stage, pestle_text_t kind) {
  if (!pestle_wants_dump(ks->options, stage)) return NULL;
  if (k->source) {
    if (kind == PESTLE_TEXT_SOURCE) {
      pestle_dump(ks->options, stage, k->name, k->source->body,
                  strlen(k->source->body));
    }
    return NULL;
  }
  const pestle_kernel_target_t* t = &ks->targets[k->device];
  if (!PESTLE_HAS(t->backend->target, print)) return NULL;
  pestle_kernel_options_t options = options_for(ks, k);
  pestle_blob_t text = {0};
  pestle_status_t status = t->backend->target->print(
      t->backend->self, &k->legal->view, &options, kind, &text);
  if (pestle_status_code(status) == PESTLE_STATUS_UNSUPPORTED) {
    pestle_status_release(status);
    return NULL;
  }
  PESTLE_TRY(status);
  if (!text.data) text.size = 0;
  pestle_dump(ks->options, stage, k->name, text.data ? text.data : "",
              text.size);
  pestle_free_aligned(ks->list.allocator, text.data, text.size,
                      PESTLE_BUFFER_ALIGNMENT);
  return NULL;
}

static pestle_status_t dump_code(pestle_kernels_t* ks) {
  for (uint32_t i = 0; i < ks->list.size; ++i) {
    const pestle_kernel_t* k = ks->list.data[i];
    if (k->unique != i) continue;
    PESTLE_TRY(dump_text(ks, k, PESTLE_STAGE_SOURCE, PESTLE_TEXT_SOURCE));
    PESTLE_TRY(dump_text(ks, k, PESTLE_STAGE_ASM, PESTLE_TEXT_ASM));
  }
  return NULL;
}

// Compiles |count| kernels of |order|; a refusal is left in its kernel.
static pestle_status_t compile_all(pestle_kernels_t* ks, uint32_t* order,
                                   uint32_t count) {
  const pestle_control_t* control = ks->options->control;
  batch_t batch = {.ks = ks, .order = order};
  // In slices, so that progress is seen: a thread has several kernels of each, since all wait
  // for the longest one.
  enum { LEAST_SLICE = 16, EACH = 4 };
  uint32_t most = EACH * (uint32_t)pestle_context_threads(ks->context);
  if (most < LEAST_SLICE) most = LEAST_SLICE;
  for (uint32_t done = 0; done < count; done += most) {
    PESTLE_TRY(pestle_control_check(control, "compile", done, count));
    uint32_t slice = count - done < most ? count - done : most;
    batch.order = order + done;
    pestle_context_parallel_for(ks->context, slice, compile_task, &batch);
    for (uint32_t i = done; i < done + slice; ++i) {
      pestle_kernel_t* k = ks->list.data[order[i]];
      if (k->status && !pestle_kernel_is_refusal(ks, k, k->status)) {
        pestle_status_t status = k->status;
        k->status = NULL;
        return pestle_kernel_say_strict(ks, k, status);
      }
    }
    if (atomic_load(&batch.stopped)) {
      PESTLE_TRY(pestle_control_check(control, "compile", done, count));
      // The flag may have been lowered again; kernels were skipped all the same.
      return PESTLE_ERROR(CANCELLED, "cancelled by the caller during compile");
    }
  }
  return pestle_control_check(control, "compile", count, count);
}

// Builds for the fallback what was refused, and what has the same code.
static pestle_status_t replace_refused(pestle_kernels_t* ks, bool* out_any) {
  *out_any = false;
  for (uint32_t i = 0; i < ks->list.size; ++i) {
    pestle_kernel_t* k = ks->list.data[i];
    pestle_status_t why = ks->list.data[k->unique]->status;
    if (!why) continue;
    PESTLE_TRY(pestle_kernel_replace(ks, k, why));
    *out_any = true;
  }
  for (uint32_t i = 0; i < ks->list.size; ++i) {
    pestle_status_release(ks->list.data[i]->status);
    ks->list.data[i]->status = NULL;
  }
  return NULL;
}

pestle_status_t pestle_kernels_compile(pestle_kernels_t* kernels) {
  size_t n = kernels->list.size;
  uint32_t* order = PESTLE_ARENA_ARRAY(kernels->arena, uint32_t, n ? n : 1);
  if (!order) return PESTLE_ERROR(OUT_OF_MEMORY, "compiling kernels");
  // The second round is what the first refused, and refuses nothing.
  bool again = true;
  while (again) {
    uint32_t count;
    PESTLE_TRY(find_unique(kernels, order, &count));
    PESTLE_TRY(sort_by_size(kernels, order, count));
    PESTLE_TRY(compile_all(kernels, order, count));
    PESTLE_TRY(replace_refused(kernels, &again));
  }
  return dump_code(kernels);
}

// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan.h"

#include "base/mem.h"
#include "pestle/version.h"
#include "runtime/context.h"

static void destroy(pestle_plan_t* plan) {
  pestle_context_t* context = plan->context;
  if (plan->release) plan->release(plan->release_self);
  if (plan->mapping.data) pestle_file_unmap(&plan->mapping);
  pestle_dealloc(context->allocator, plan, sizeof(*plan));
}

// A plan of another build is read as long as its format is ours: what it needs
// of the machine and of the backend is checked when it is loaded there, and the
// backend knows its own artifacts. The cache is stricter, since the build is
// part of its keys.
static void note_build(const pestle_plan_t* plan) {
  if (pestle_plan_header(plan)->build_id == pestle_build_id_u64()) return;
  pestle_context_log(plan->context, PESTLE_LOG_INFO,
                     "plan '%s' was made by another build",
                     pestle_plan_text(plan, pestle_plan_header(plan)->name));
}

static pestle_status_t create(pestle_context_t* context, const void* data,
                              size_t size, bool trusted,
                              pestle_plan_t** out_plan) {
  PESTLE_TRY(pestle_plan_check(data, size, !trusted));
  pestle_plan_t* plan = pestle_alloc_zero(context->allocator, sizeof(*plan));
  if (!plan) return PESTLE_OOM();
  pestle_refcount_init(&plan->refcount);
  pestle_context_retain(context);
  plan->context = context;
  atomic_init(&plan->holders, 1);
  plan->data = data;
  plan->size = size;
  atomic_init(&plan->users, 0);
  note_build(plan);
  *out_plan = plan;
  return NULL;
}

pestle_status_t pestle_plan_create(pestle_context_t* context, const void* data,
                                   size_t size, void (*release)(void* self),
                                   void* self, pestle_plan_t** out_plan) {
  *out_plan = NULL;
  PESTLE_TRY(create(context, data, size, false, out_plan));
  (*out_plan)->release = release;
  (*out_plan)->release_self = self;
  return NULL;
}

pestle_status_t pestle_plan_create_mapped(pestle_context_t* context,
                                          pestle_mapping_t mapping,
                                          size_t offset, size_t size,
                                          bool trusted,
                                          pestle_plan_t** out_plan) {
  *out_plan = NULL;
  PESTLE_TRY(create(context, (const char*)mapping.data + offset, size, trusted,
                    out_plan));
  (*out_plan)->mapping = mapping;
  return NULL;
}

void pestle_plan_retain(pestle_plan_t* plan) {
  pestle_refcount_retain(&plan->refcount);
  // Whoever takes the first hold got the plan from the cache, and so has the
  // context at hand.
  if (!atomic_fetch_add(&plan->holders, 1)) {
    pestle_context_retain(plan->context);
  }
}

void pestle_plan_release(pestle_plan_t* plan) {
  if (!plan) return;
  pestle_context_t* context = plan->context;
  bool last = atomic_fetch_sub(&plan->holders, 1) == 1;
  pestle_plan_release_cached(plan);
  if (last) pestle_context_release(context);
}

void pestle_plan_retain_cached(pestle_plan_t* plan) {
  pestle_refcount_retain(&plan->refcount);
}

void pestle_plan_release_cached(pestle_plan_t* plan) {
  if (plan && pestle_refcount_release(&plan->refcount)) destroy(plan);
}

const void* pestle_plan_data(const pestle_plan_t* plan, size_t* out_size) {
  if (out_size) *out_size = plan->size;
  return plan->data;
}

pestle_status_t pestle_plan_save(const pestle_plan_t* plan, const char* path) {
  pestle_str_t part = pestle_str_make(plan->data, plan->size);
  return pestle_status_annotate(pestle_file_write_atomic(path, &part, 1),
                                "while saving a plan");
}

pestle_status_t pestle_plan_load(pestle_context_t* context, const char* path,
                                 pestle_plan_t** out_plan) {
  *out_plan = NULL;
  pestle_mapping_t mapping;
  PESTLE_TRY(pestle_file_map(path, &mapping));
  pestle_status_t status = pestle_plan_create_mapped(
      context, mapping, 0, mapping.size, false, out_plan);
  if (!status) return NULL;
  pestle_file_unmap(&mapping);
  return pestle_status_annotate(status, "while loading the plan '%s'", path);
}

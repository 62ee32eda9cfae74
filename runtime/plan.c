// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan.h"

#include <string.h>

#include "base/bits.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/require.h"
#include "pestle/version.h"
#include "runtime/context.h"

static void free_plan(pestle_plan_t* plan) {
  pestle_allocator_t allocator = plan->context->core.allocator;
  for (size_t i = 0; plan->constants && i < plan->constant_count; ++i) {
    pestle_constant_release(plan->constants[i]);
  }
  pestle_dealloc(allocator, plan->constants,
                 plan->constant_count * sizeof(*plan->constants));
  if (PESTLE_FAULT(trust_plan_leak)) return;
  pestle_dealloc(allocator, plan, sizeof(*plan));
}

static void destroy(pestle_plan_t* plan) {
  if (plan->release) plan->release(plan->release_self);
  if (plan->mapping.data) pestle_file_unmap(&plan->mapping);
  free_plan(plan);
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

// Takes hold of the constants that lie outside of the plan.
static pestle_status_t find_constants(pestle_plan_t* plan,
                                      const char** out_reason) {
  const pestle_plan_constant_ref_t* refs =
      PESTLE_PLAN_RECORDS(plan, pestle_plan_constant_ref_t, constant_refs);
  plan->constant_count = pestle_plan_header(plan)->constant_refs.count;
  plan->constants =
      pestle_alloc_zero(plan->context->core.allocator,
                        plan->constant_count * sizeof(*plan->constants));
  if (!plan->constants) return PESTLE_OOM();
  for (size_t i = 0; i < plan->constant_count; ++i) {
    if (!refs[i].external) continue;
    PESTLE_TRY(pestle_constant_find(plan->context, &refs[i],
                                    &plan->constants[i], out_reason));
    if (plan->constants[i]) continue;
    return PESTLE_ERROR(
        NOT_FOUND,
        "plan '%s' does not hold all of its constants: %s; save it with "
        "pestle_plan_save(), or compile the model again",
        pestle_plan_text(plan, pestle_plan_header(plan)->name), *out_reason);
  }
  return NULL;
}

static pestle_status_t create(pestle_context_t* context, const void* data,
                              size_t size, bool trusted,
                              pestle_plan_t** out_plan,
                              const char** out_reason) {
  *out_reason = NULL;
  PESTLE_TRY(pestle_plan_check(data, size, !trusted));
  pestle_plan_t* plan =
      pestle_alloc_zero(context->core.allocator, sizeof(*plan));
  if (!plan) return PESTLE_OOM();
  pestle_refcount_init(&plan->refcount);
  plan->context = context;
  atomic_init(&plan->holders, 1);
  plan->data = data;
  plan->size = size;
  atomic_init(&plan->users, 0);
  pestle_status_t status = find_constants(plan, out_reason);
  if (status) {
    free_plan(plan);
    return status;
  }
  pestle_context_retain(context);
  note_build(plan);
  *out_plan = plan;
  return NULL;
}

pestle_status_t pestle_plan_create(pestle_context_t* context, const void* data,
                                   size_t size, void (*release)(void* self),
                                   void* self, pestle_plan_t** out_plan) {
  if (out_plan) *out_plan = NULL;
  PESTLE_REQUIRE(context && data && out_plan,
                 "a context, the plan's bytes and a place for the plan");
  const char* reason;
  PESTLE_TRY(create(context, data, size, false, out_plan, &reason));
  (*out_plan)->release = release;
  (*out_plan)->release_self = self;
  return NULL;
}

pestle_status_t pestle_plan_create_mapped(pestle_context_t* context,
                                          pestle_mapping_t mapping,
                                          size_t offset, size_t size,
                                          bool trusted,
                                          pestle_plan_t** out_plan,
                                          const char** out_reason) {
  *out_plan = NULL;
  // Nothing is mapped of an empty file.
  const char* bytes = mapping.data ? (const char*)mapping.data + offset : NULL;
  PESTLE_TRY(create(context, bytes, size, trusted, out_plan, out_reason));
  (*out_plan)->mapping = mapping;
  return NULL;
}

void pestle_plan_retain(pestle_plan_t* plan) {
  if (!plan) return;
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
  if (out_size) *out_size = plan ? plan->size : 0;
  return plan ? plan->data : NULL;
}

// --- Files ---

enum { CONSTANT_ALIGN = 64 };

// The parts of a file that holds the plan and all its constants: |head|, the plan's
// own bytes, is changed to say where they are; each lies where it is already.
static size_t list_parts(const pestle_plan_t* plan, char* head,
                         pestle_str_t* parts) {
  static const char zeros[CONSTANT_ALIGN];
  pestle_plan_header_t* header = (pestle_plan_header_t*)(void*)head;
  pestle_plan_constant_ref_t* refs =
      (pestle_plan_constant_ref_t*)(void*)(head + header->constant_refs.offset);
  size_t end = pestle_align_up(plan->size, CONSTANT_ALIGN), count = 0;
  parts[count++] = pestle_str_make(head, end);
  for (size_t i = 0; i < plan->constant_count; ++i) {
    const pestle_constant_t* constant = plan->constants[i];
    if (!constant) continue;
    size_t padded = pestle_align_up(constant->size, CONSTANT_ALIGN);
    refs[i].external = 0;
    refs[i].offset = end;
    end += padded;
    parts[count++] = pestle_str_make(constant->data, constant->size);
    if (padded > constant->size)
      parts[count++] = pestle_str_make(zeros, padded - constant->size);
  }
  header->size = end;
  pestle_hasher_t hasher;
  pestle_hasher_init(&hasher);
  pestle_hasher_update(&hasher, head + PESTLE_PLAN_CHECKED_FROM,
                       parts[0].size - PESTLE_PLAN_CHECKED_FROM);
  for (size_t i = 1; i < count; ++i)
    pestle_hasher_update(&hasher, parts[i].data, parts[i].size);
  header->checksum = pestle_hasher_finish64(&hasher);
  return count;
}

static bool has_constants(const pestle_plan_t* plan) {
  for (size_t i = 0; i < plan->constant_count; ++i) {
    if (plan->constants[i]) return true;
  }
  return false;
}

static pestle_status_t save(const pestle_plan_t* plan, const char* path) {
  if (!has_constants(plan)) {
    pestle_str_t whole = pestle_str_make(plan->data, plan->size);
    return pestle_file_write_atomic(path, &whole, 1);
  }
  pestle_allocator_t allocator = plan->context->core.allocator;
  size_t size = pestle_align_up(plan->size, CONSTANT_ALIGN);
  size_t parts_size = (2 * plan->constant_count + 1) * sizeof(pestle_str_t);
  char* head = pestle_alloc_aligned(allocator, size, PESTLE_BUFFER_ALIGNMENT);
  pestle_str_t* parts = pestle_alloc(allocator, parts_size);
  pestle_status_t status = head && parts ? NULL : PESTLE_OOM();
  if (!status) {
    memset(head, 0, size);
    memcpy(head, plan->data, plan->size);
    status =
        pestle_file_write_atomic(path, parts, list_parts(plan, head, parts));
  }
  pestle_dealloc(allocator, parts, parts_size);
  pestle_free_aligned(allocator, head, size, PESTLE_BUFFER_ALIGNMENT);
  return status;
}

const char* pestle_plan_transient(const pestle_plan_t* plan) {
  const pestle_plan_call_t* calls =
      PESTLE_PLAN_RECORDS(plan, pestle_plan_call_t, calls);
  for (uint64_t i = 0; i < pestle_plan_header(plan)->calls.count; ++i) {
    if (calls[i].kind == PESTLE_PLAN_CALL_EVAL &&
        (calls[i].flags & PESTLE_PLAN_EVAL_TRANSIENT)) {
      return pestle_plan_text(plan, calls[i].name);
    }
  }
  return NULL;
}

pestle_status_t pestle_plan_save(const pestle_plan_t* plan, const char* path) {
  PESTLE_REQUIRE(plan && path, "a plan and a path");
  const char* transient = pestle_plan_transient(plan);
  if (transient) {
    return PESTLE_ERROR(
        UNSUPPORTED,
        "the plan has op '%s' done by a function of this "
        "process, such as one of Python's, which no other has: "
        "it cannot be saved; give the op a body or an extension",
        transient);
  }
  return pestle_status_annotate(save(plan, path), "while saving a plan");
}

pestle_status_t pestle_plan_load(pestle_context_t* context, const char* path,
                                 pestle_plan_t** out_plan) {
  if (out_plan) *out_plan = NULL;
  PESTLE_REQUIRE(context && path && out_plan,
                 "a context, a path and a place for the plan");
  pestle_mapping_t mapping;
  PESTLE_TRY(pestle_file_map(path, &mapping));
  const char* reason;
  int64_t begin = pestle_context_trace_begin(context);
  pestle_status_t status = pestle_plan_create_mapped(
      context, mapping, 0, mapping.size, false, out_plan, &reason);
  pestle_context_trace_end(context, begin, "load", "load plan", path);
  if (!status) return NULL;
  pestle_file_unmap(&mapping);
  return pestle_status_annotate(status, "while loading the plan '%s'", path);
}

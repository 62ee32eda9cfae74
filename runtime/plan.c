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

// A file of the cache folder that a plan and constants hold.
typedef struct pestle_part_file_t {
  pestle_refcount_t refcount;
  pestle_allocator_t allocator;
  pestle_mapping_t mapping;
  bool is_sound;  // its content was checked
} part_file_t;

static void release_file(void* self) {
  part_file_t* file = self;
  if (!file || !pestle_refcount_release(&file->refcount)) return;
  pestle_file_unmap(&file->mapping);
  pestle_dealloc(file->allocator, file, sizeof(*file));
}

static void free_parts(pestle_plan_t* plan) {
  pestle_allocator_t allocator = plan->context->core.allocator;
  size_t count = plan->constant_count;
  for (size_t i = 0; plan->part_files && i < count; ++i)
    release_file(plan->part_files[i]);
  pestle_dealloc(allocator, plan->part_files,
                 count * sizeof(*plan->part_files));
  pestle_dealloc(allocator, plan->part_users,
                 count * sizeof(*plan->part_users));
}

static void free_plan(pestle_plan_t* plan) {
  pestle_allocator_t allocator = plan->context->core.allocator;
  for (size_t i = 0; plan->constants && i < plan->constant_count; ++i) {
    pestle_constant_release(plan->constants[i]);
  }
  pestle_dealloc(allocator, plan->constants,
                 plan->constant_count * sizeof(*plan->constants));
  if (plan->part_users) free_parts(plan);
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

// Which constants a process needs only if a part of it lies there.
static pestle_status_t find_parts(pestle_plan_t* plan) {
  const pestle_plan_header_t* h = pestle_plan_header(plan);
  const pestle_plan_part_place_t* places =
      PESTLE_PLAN_RECORDS(plan, pestle_plan_part_place_t, part_places);
  const pestle_plan_binding_t* bindings =
      PESTLE_PLAN_RECORDS(plan, pestle_plan_binding_t, bindings);
  size_t count = plan->constant_count;
  if (!h->parts.count) return NULL;
  pestle_allocator_t allocator = plan->context->core.allocator;
  plan->part_users =
      pestle_alloc_zero(allocator, count * sizeof(*plan->part_users));
  if (!plan->part_users) return PESTLE_OOM();
  plan->part_files =
      pestle_alloc_zero(allocator, count * sizeof(*plan->part_files));
  if (!plan->part_files) return PESTLE_OOM();
  for (uint64_t i = 0; i < h->part_places.count; ++i) {
    if (places[i].constant < count)
      atomic_store(&plan->part_users[places[i].constant], 1);
  }
  for (uint64_t i = 0; i < h->bindings.count; ++i) {
    if (bindings[i].storage == PESTLE_PLAN_CONSTANT)
      atomic_store(&plan->part_users[bindings[i].index], 0);
  }
  return NULL;
}

static pestle_status_t is_missing(const pestle_plan_t* plan,
                                  const char* reason) {
  return PESTLE_ERROR(
      NOT_FOUND,
      "plan '%s' does not hold all of its constants: %s; save it with "
      "pestle_plan_save(), or compile the model again",
      pestle_plan_text(plan, pestle_plan_header(plan)->name), reason);
}

// Takes hold of a constant that not every process reads.
static pestle_status_t look_at_part(pestle_plan_t* plan, size_t index,
                                    const char** out_reason) {
  const pestle_plan_constant_ref_t* ref = &PESTLE_PLAN_RECORDS(
      plan, pestle_plan_constant_ref_t, constant_refs)[index];
  pestle_mapping_t mapping;
  PESTLE_TRY(pestle_constant_look(plan->context, ref, &plan->constants[index],
                                  &mapping, out_reason));
  if (!mapping.data) return NULL;
  pestle_allocator_t allocator = plan->context->core.allocator;
  part_file_t* file = pestle_alloc_zero(allocator, sizeof(*file));
  if (!file) {
    pestle_file_unmap(&mapping);
    return PESTLE_OOM();
  }
  pestle_refcount_init(&file->refcount);
  file->allocator = allocator;
  file->mapping = mapping;
  plan->part_files[index] = file;
  return NULL;
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
  PESTLE_TRY(find_parts(plan));
  for (size_t i = 0; i < plan->constant_count; ++i) {
    if (!refs[i].external) continue;
    bool part = pestle_plan_is_part(plan, i);
    PESTLE_TRY(part ? look_at_part(plan, i, out_reason)
                    : pestle_constant_find(plan->context, &refs[i],
                                           &plan->constants[i], out_reason));
    if (*out_reason) return is_missing(plan, *out_reason);
  }
  return NULL;
}

static pestle_status_t is_damaged(const pestle_plan_t* plan, size_t index) {
  return PESTLE_ERROR(
      MALFORMED,
      "constant %zu of plan '%s' is damaged: its hash does not match; compile "
      "the model again",
      index, pestle_plan_text(plan, pestle_plan_header(plan)->name));
}

static bool has_hash(const void* data, const pestle_plan_constant_ref_t* ref) {
  pestle_hash128_t hash = pestle_hash128(data, (size_t)ref->size);
  return hash.low == ref->hash[0] && hash.high == ref->hash[1];
}

// Checks the file that the plan holds of constant |index|; a damaged one is removed, so
// that whoever compiles the model again makes it anew.
static pestle_status_t check_file(const pestle_plan_t* plan, size_t index) {
  const pestle_plan_constant_ref_t* ref = &PESTLE_PLAN_RECORDS(
      plan, pestle_plan_constant_ref_t, constant_refs)[index];
  const part_file_t* file = plan->part_files[index];
  if (file->is_sound ||
      has_hash((const char*)file->mapping.data + sizeof(pestle_constant_file_t),
               ref)) {
    return NULL;
  }
  pestle_hash128_t hash = {ref->hash[0], ref->hash[1]};
  const char* reason;
  pestle_mapping_t mapping;
  PESTLE_TRY(pestle_constant_file_map(plan->context, hash, (size_t)ref->size,
                                      true, &mapping, &reason));
  pestle_file_unmap(&mapping);
  return is_damaged(plan, index);
}

pestle_status_t pestle_plan_check_parts(const pestle_plan_t* plan,
                                        int32_t process) {
  const pestle_plan_header_t* h = pestle_plan_header(plan);
  const pestle_plan_part_t* parts =
      PESTLE_PLAN_RECORDS(plan, pestle_plan_part_t, parts);
  const pestle_plan_part_place_t* places =
      PESTLE_PLAN_RECORDS(plan, pestle_plan_part_place_t, part_places);
  for (uint64_t i = 0; i < h->parts.count; ++i) {
    for (int32_t k = 0; k < h->partitions; ++k) {
      uint32_t constant = places[parts[i].first + (uint32_t)k].constant;
      if (process >= 0 && process % h->partitions != k) continue;
      part_file_t* file = plan->part_files[constant];
      if (!file) continue;
      PESTLE_TRY(check_file(plan, constant));
      file->is_sound = true;
    }
  }
  return NULL;
}

// From the file that the plan holds, or from the table if it is there by now.
static pestle_status_t adopt_part(const pestle_plan_t* plan, size_t index,
                                  pestle_constant_t** out_constant) {
  const pestle_plan_constant_ref_t* ref = &PESTLE_PLAN_RECORDS(
      plan, pestle_plan_constant_ref_t, constant_refs)[index];
  part_file_t* file = plan->part_files[index];
  const char* data =
      (const char*)file->mapping.data + sizeof(pestle_constant_file_t);
  pestle_hash128_t hash = {ref->hash[0], ref->hash[1]};
  pestle_hash128_t key = {ref->key[0], ref->key[1]};
  PESTLE_TRY(check_file(plan, index));
  pestle_refcount_retain(&file->refcount);
  return pestle_constant_adopt(plan->context, hash, key, data,
                               (size_t)ref->size, release_file, file,
                               out_constant);
}

pestle_status_t pestle_plan_take_part(const pestle_plan_t* plan, uint32_t index,
                                      pestle_constant_t** out_constant,
                                      const char** out_data) {
  const pestle_plan_header_t* h = pestle_plan_header(plan);
  const pestle_plan_constant_ref_t* ref = &PESTLE_PLAN_RECORDS(
      plan, pestle_plan_constant_ref_t, constant_refs)[index];
  *out_constant = NULL;
  if (ref->external) {
    if (plan->part_files && plan->part_files[index]) {
      PESTLE_TRY(adopt_part(plan, index, out_constant));
    } else {
      *out_constant = plan->constants[index];
      pestle_constant_retain(*out_constant);
    }
    *out_data = (*out_constant)->data;
    return NULL;
  }
  *out_data = plan->data + ref->offset;
  bool is_checked = ref->offset + ref->size <= h->checked;
  return is_checked || has_hash(*out_data, ref) ? NULL
                                                : is_damaged(plan, index);
}

pestle_status_t pestle_plan_hold_all(const pestle_plan_t* plan,
                                     pestle_constant_t** out) {
  const pestle_plan_constant_ref_t* refs =
      PESTLE_PLAN_RECORDS(plan, pestle_plan_constant_ref_t, constant_refs);
  pestle_status_t status = NULL;
  memset(out, 0, plan->constant_count * sizeof(*out));
  for (size_t i = 0; i < plan->constant_count && !status; ++i) {
    const char* data;
    if (refs[i].external)
      status = pestle_plan_take_part(plan, (uint32_t)i, &out[i], &data);
  }
  for (size_t i = 0; status && i < plan->constant_count; ++i) {
    pestle_constant_release(out[i]);
    out[i] = NULL;
  }
  return status;
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

// A file that holds the plan and all its constants.
typedef struct saved_t {
  const pestle_plan_t* plan;
  pestle_constant_t** constants;
  char* head;  // the plan's own bytes, changed to say where they are
  pestle_str_t* parts;
  size_t part_count, size;
} saved_t;

// The constants that are only there as parts of processes, or all others.
static void add_constants(saved_t* s, bool parts) {
  static const char zeros[CONSTANT_ALIGN];
  const pestle_plan_header_t* header = (const void*)s->head;
  pestle_plan_constant_ref_t* refs =
      (pestle_plan_constant_ref_t*)(void*)(s->head +
                                           header->constant_refs.offset);
  for (size_t i = 0; i < s->plan->constant_count; ++i) {
    const pestle_constant_t* constant = s->constants[i];
    if (!constant || pestle_plan_is_part(s->plan, i) != parts) continue;
    size_t padded = pestle_align_up(constant->size, CONSTANT_ALIGN);
    refs[i].external = 0;
    refs[i].offset = s->size;
    s->size += padded;
    s->parts[s->part_count++] = pestle_str_make(constant->data, constant->size);
    if (padded > constant->size)
      s->parts[s->part_count++] =
          pestle_str_make(zeros, padded - constant->size);
  }
}

// Each constant lies where it is already; those that are only there as parts are the
// last ones, which the checksum leaves out.
static void list_parts(saved_t* s) {
  pestle_plan_header_t* header = (pestle_plan_header_t*)(void*)s->head;
  bool has_unchecked = header->checked < header->size;
  s->size = pestle_align_up(s->plan->size, CONSTANT_ALIGN);
  s->parts[s->part_count++] = pestle_str_make(s->head, s->size);
  add_constants(s, false);
  size_t checked = s->part_count;
  header->checked = s->size;
  add_constants(s, true);
  header->size = s->size;
  if (has_unchecked) {
    checked = s->part_count;
    header->checked = s->size;
  }
  pestle_hasher_t hasher;
  pestle_hasher_init(&hasher);
  pestle_hasher_update(&hasher, s->head + PESTLE_PLAN_CHECKED_FROM,
                       s->parts[0].size - PESTLE_PLAN_CHECKED_FROM);
  for (size_t i = 1; i < checked; ++i)
    pestle_hasher_update(&hasher, s->parts[i].data, s->parts[i].size);
  header->checksum = pestle_hasher_finish64(&hasher);
}

static bool has_constants(const pestle_plan_t* plan) {
  const pestle_plan_constant_ref_t* refs =
      PESTLE_PLAN_RECORDS(plan, pestle_plan_constant_ref_t, constant_refs);
  for (size_t i = 0; i < plan->constant_count; ++i) {
    if (refs[i].external) return true;
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
  size_t held_size = plan->constant_count * sizeof(pestle_constant_t*);
  saved_t s = {
      .plan = plan,
      .constants = pestle_alloc(allocator, held_size),
      .head = pestle_alloc_aligned(allocator, size, PESTLE_BUFFER_ALIGNMENT),
      .parts = pestle_alloc(allocator, parts_size)};
  bool ok = s.constants && s.head && s.parts;
  pestle_status_t status =
      ok ? pestle_plan_hold_all(plan, s.constants) : PESTLE_OOM();
  if (!status) {
    memset(s.head, 0, size);
    memcpy(s.head, plan->data, plan->size);
    list_parts(&s);
    status = pestle_file_write_atomic(path, s.parts, s.part_count);
    for (size_t i = 0; i < plan->constant_count; ++i)
      pestle_constant_release(s.constants[i]);
  }
  pestle_dealloc(allocator, s.parts, parts_size);
  pestle_free_aligned(allocator, s.head, size, PESTLE_BUFFER_ALIGNMENT);
  pestle_dealloc(allocator, s.constants, held_size);
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

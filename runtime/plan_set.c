// SPDX-License-Identifier: Apache-2.0
// Sets of plans: docs/adr/006, for a file.
#include "pestle/plan_set.h"

#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/require.h"
#include "base/vec.h"
#include "runtime/context.h"
#include "runtime/plan.h"

enum { CHECKED_FROM = 32, MOST_PLANS = 4096 };

// --- Writing ---

typedef struct writer_t {
  pestle_allocator_t allocator;
  pestle_plan_t* const* plans;
  size_t plan_count;
  pestle_plan_set_plan_t* records;
  PESTLE_VEC(pestle_constant_t*) constants;
  PESTLE_VEC(pestle_plan_set_constant_t) constant_records;
  PESTLE_VEC(pestle_str_t) parts;
  pestle_plan_set_header_t header;
} writer_t;

static const char zeros[64];

// A part of the file, filled up to a multiple of 64.
static pestle_status_t add_part(writer_t* w, const void* data, size_t size,
                                uint64_t* out_offset) {
  size_t rest = pestle_align_up(size, 64) - size;
  *out_offset = w->header.size;
  w->header.size += size + rest;
  if (!pestle_vec_push(&w->parts, pestle_str_make(data, size)) ||
      !pestle_vec_push(&w->parts, pestle_str_make(zeros, rest))) {
    return PESTLE_OOM();
  }
  return NULL;
}

// Holds the constants that are new.
static pestle_status_t collect(writer_t* w, const pestle_plan_t* plan) {
  size_t size = plan->constant_count * sizeof(pestle_constant_t*);
  pestle_constant_t** all = pestle_alloc(w->allocator, size);
  if (!all) return PESTLE_OOM();
  pestle_status_t status = pestle_plan_hold_all(plan, all);
  for (size_t i = 0; !status && i < plan->constant_count; ++i) {
    bool is_new = all[i] != NULL;
    for (size_t k = 0; k < w->constants.size && is_new; ++k)
      is_new = w->constants.data[k] != all[i];
    if (is_new && pestle_vec_push(&w->constants, all[i]))
      all[i] = NULL;
    else if (is_new)
      status = PESTLE_OOM();
  }
  for (size_t i = 0; i < plan->constant_count; ++i)
    pestle_constant_release(all[i]);
  pestle_dealloc(w->allocator, all, size);
  return status;
}

static pestle_status_t lay_out(writer_t* w) {
  size_t constants = w->constants.size;
  uint64_t ignored;
  w->records =
      pestle_alloc_zero(w->allocator, w->plan_count * sizeof(*w->records));
  if (!w->records || !pestle_vec_resize(&w->constant_records, constants))
    return PESTLE_OOM();
  PESTLE_TRY(add_part(w, &w->header, sizeof(w->header), &ignored));
  PESTLE_TRY(
      add_part(w, w->records, w->plan_count * sizeof(*w->records), &ignored));
  PESTLE_TRY(add_part(w, w->constant_records.data,
                      constants * sizeof(*w->constant_records.data), &ignored));
  for (size_t i = 0; i < w->plan_count; ++i) {
    w->records[i].size = w->plans[i]->size;
    PESTLE_TRY(add_part(w, w->plans[i]->data, w->plans[i]->size,
                        &w->records[i].offset));
  }
  for (size_t i = 0; i < constants; ++i) {
    const pestle_constant_t* c = w->constants.data[i];
    pestle_plan_set_constant_t* r = &w->constant_records.data[i];
    *r = (pestle_plan_set_constant_t){.hash = {c->hash.low, c->hash.high},
                                      .key = {c->key.low, c->key.high},
                                      .size = c->size};
    PESTLE_TRY(add_part(w, c->data, c->size, &r->offset));
  }
  return NULL;
}

// The header and the records lie in front, as parts that are filled up by zeros.
static size_t front_size(const pestle_plan_set_header_t* h) {
  return pestle_align_up(sizeof(*h), 64) +
         pestle_align_up(h->plan_count * sizeof(pestle_plan_set_plan_t), 64) +
         pestle_align_up(h->constant_count * sizeof(pestle_plan_set_constant_t),
                         64);
}

static pestle_status_t write_set(writer_t* w, const char* path) {
  for (size_t i = 0; i < w->plan_count; ++i)
    PESTLE_TRY(collect(w, w->plans[i]));
  memcpy(w->header.magic, PESTLE_PLAN_SET_MAGIC, sizeof(w->header.magic));
  w->header.version = PESTLE_PLAN_SET_VERSION;
  w->header.header_size = sizeof(w->header);
  w->header.plan_count = w->plan_count;
  w->header.constant_count = w->constants.size;
  PESTLE_TRY(lay_out(w));
  size_t size = front_size(&w->header), at = 0;
  char* front = pestle_alloc(w->allocator, size);
  if (!front) return PESTLE_OOM();
  for (size_t i = 0; at < size; ++i) {
    if (w->parts.data[i].size)
      memcpy(front + at, w->parts.data[i].data, w->parts.data[i].size);
    at += w->parts.data[i].size;
  }
  w->header.checksum = pestle_hash64(front + CHECKED_FROM, size - CHECKED_FROM);
  pestle_dealloc(w->allocator, front, size);
  return pestle_file_write_atomic(path, w->parts.data, w->parts.size);
}

static pestle_status_t check_plans(pestle_plan_t* const* plans, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    PESTLE_REQUIRE(plans[i] && plans[i]->context == plans[0]->context,
                   "plans of one context");
    const char* transient = pestle_plan_transient(plans[i]);
    if (!transient) continue;
    return PESTLE_ERROR(UNSUPPORTED,
                        "plan %zu has op '%s' done by a function of this "
                        "process, which no other has: it cannot be saved",
                        i, transient);
  }
  return NULL;
}

pestle_status_t pestle_plan_set_save(pestle_plan_t* const* plans, size_t count,
                                     const char* path) {
  PESTLE_REQUIRE(plans && count && count <= MOST_PLANS && path,
                 "1 to 4096 plans and a path");
  PESTLE_TRY(check_plans(plans, count));
  pestle_allocator_t allocator = plans[0]->context->core.allocator;
  writer_t w = {.allocator = allocator, .plans = plans, .plan_count = count};
  pestle_vec_init(&w.constants, allocator);
  pestle_vec_init(&w.constant_records, allocator);
  pestle_vec_init(&w.parts, allocator);
  pestle_status_t status = write_set(&w, path);
  pestle_dealloc(allocator, w.records, count * sizeof(*w.records));
  for (size_t i = 0; i < w.constants.size; ++i)
    pestle_constant_release(w.constants.data[i]);
  pestle_vec_deinit(&w.constants);
  pestle_vec_deinit(&w.constant_records);
  pestle_vec_deinit(&w.parts);
  return pestle_status_annotate(status, "while saving a set of plans");
}

// --- Reading ---

// The mapped file, held by plans and constants.
typedef struct set_file_t {
  pestle_refcount_t refcount;
  pestle_allocator_t allocator;
  pestle_mapping_t mapping;
} set_file_t;

struct pestle_plan_set_s {
  pestle_context_t* context;
  set_file_t* file;
  size_t count;
  pestle_plan_t** plans;
  size_t constant_count;
  pestle_constant_t** constants;  // held until all plans hold theirs
};

static void release_file(void* self) {
  set_file_t* file = self;
  if (!pestle_refcount_release(&file->refcount)) return;
  pestle_file_unmap(&file->mapping);
  pestle_dealloc(file->allocator, file, sizeof(*file));
}

static pestle_status_t damaged(const char* what) {
  return PESTLE_ERROR(
      MALFORMED, "the set of plans is damaged: %s; compile the model again",
      what);
}

static bool lies_within(const pestle_mapping_t* mapping, uint64_t offset,
                        uint64_t size) {
  return offset % 64 == 0 && offset <= mapping->size &&
         size <= mapping->size - offset;
}

static pestle_status_t check_front(const pestle_mapping_t* mapping) {
  const pestle_plan_set_header_t* h = mapping->data;
  if (mapping->size < sizeof(*h)) return damaged("it ends in its header");
  if (memcmp(h->magic, PESTLE_PLAN_SET_MAGIC, sizeof(h->magic)) != 0)
    return PESTLE_ERROR(MALFORMED, "this is no set of plans");
  if (h->version != PESTLE_PLAN_SET_VERSION) {
    return PESTLE_ERROR(INCOMPATIBLE,
                        "the set of plans has format %u, this Pestle reads %u; "
                        "compile the model again",
                        (unsigned)h->version, PESTLE_PLAN_SET_VERSION);
  }
  if (h->header_size != sizeof(*h) || h->size != mapping->size)
    return damaged("it is not as long as it says");
  if (!h->plan_count || h->plan_count > MOST_PLANS ||
      h->constant_count > mapping->size / sizeof(pestle_plan_set_constant_t) ||
      front_size(h) > mapping->size) {
    return damaged("it counts more plans or constants than it can have");
  }
  uint64_t sum = pestle_hash64((const char*)mapping->data + CHECKED_FROM,
                               front_size(h) - CHECKED_FROM);
  return sum == h->checksum ? NULL : damaged("the checksum of its tables");
}

static pestle_status_t load_constants(pestle_plan_set_t* set) {
  const pestle_mapping_t* mapping = &set->file->mapping;
  const pestle_plan_set_header_t* h = mapping->data;
  const char* begin = mapping->data;
  const pestle_plan_set_constant_t* records =
      (const void*)(begin + pestle_align_up(sizeof(*h), 64) +
                    pestle_align_up(
                        h->plan_count * sizeof(pestle_plan_set_plan_t), 64));
  set->constant_count = h->constant_count;
  set->constants =
      pestle_alloc_zero(set->context->core.allocator,
                        set->constant_count * sizeof(*set->constants) + 1);
  if (!set->constants) return PESTLE_OOM();
  for (size_t i = 0; i < set->constant_count; ++i) {
    const pestle_plan_set_constant_t* r = &records[i];
    if (!lies_within(mapping, r->offset, r->size))
      return damaged("a constant lies outside");
    pestle_hash128_t hash = {r->hash[0], r->hash[1]};
    pestle_hash128_t key = {r->key[0], r->key[1]};
    pestle_hash128_t found = pestle_hash128(begin + r->offset, r->size);
    if (found.low != hash.low || found.high != hash.high)
      return damaged("the bytes of a constant");
    pestle_refcount_retain(&set->file->refcount);
    PESTLE_TRY(pestle_constant_adopt(set->context, hash, key, begin + r->offset,
                                     r->size, release_file, set->file,
                                     &set->constants[i]));
  }
  return NULL;
}

static pestle_status_t load_plans(pestle_plan_set_t* set) {
  const pestle_mapping_t* mapping = &set->file->mapping;
  const pestle_plan_set_header_t* h = mapping->data;
  const char* begin = mapping->data;
  const pestle_plan_set_plan_t* records =
      (const void*)(begin + pestle_align_up(sizeof(*h), 64));
  set->plans = pestle_alloc_zero(set->context->core.allocator,
                                 h->plan_count * sizeof(*set->plans));
  if (!set->plans) return PESTLE_OOM();
  set->count = h->plan_count;
  for (size_t i = 0; i < set->count; ++i) {
    if (!lies_within(mapping, records[i].offset, records[i].size))
      return damaged("a plan lies outside");
    PESTLE_TRY(pestle_status_annotate(
        pestle_plan_create(set->context, begin + records[i].offset,
                           records[i].size, release_file, set->file,
                           &set->plans[i]),
        "in plan %zu of %zu", i + 1, set->count));
    pestle_refcount_retain(&set->file->refcount);
  }
  return NULL;
}

static void release_constants(pestle_plan_set_t* set) {
  for (size_t i = 0; i < set->constant_count; ++i)
    pestle_constant_release(set->constants[i]);
  pestle_dealloc(set->context->core.allocator, set->constants,
                 set->constant_count * sizeof(*set->constants) + 1);
  set->constants = NULL;
}

void pestle_plan_set_release(pestle_plan_set_t* set) {
  if (!set) return;
  pestle_context_t* context = set->context;
  pestle_allocator_t allocator = context->core.allocator;
  if (set->constants) release_constants(set);
  for (size_t i = 0; i < set->count; ++i)
    pestle_plan_release(set->plans[i]);
  pestle_dealloc(allocator, set->plans, set->count * sizeof(*set->plans));
  if (set->file) release_file(set->file);
  pestle_dealloc(allocator, set, sizeof(*set));
  pestle_context_release(context);
}

static pestle_status_t load(pestle_plan_set_t* set, const char* path) {
  pestle_allocator_t allocator = set->context->core.allocator;
  pestle_mapping_t mapping;
  PESTLE_TRY(pestle_file_map(path, &mapping));
  set->file = pestle_alloc_zero(allocator, sizeof(*set->file));
  if (!set->file) {
    pestle_file_unmap(&mapping);
    return PESTLE_OOM();
  }
  pestle_refcount_init(&set->file->refcount);
  set->file->allocator = allocator;
  set->file->mapping = mapping;
  PESTLE_TRY(check_front(&mapping));
  PESTLE_TRY(load_constants(set));
  PESTLE_TRY(load_plans(set));
  release_constants(set);
  return NULL;
}

pestle_status_t pestle_plan_set_load(pestle_context_t* context,
                                     const char* path,
                                     pestle_plan_set_t** out_set) {
  if (out_set) *out_set = NULL;
  PESTLE_REQUIRE(context && path && out_set,
                 "a context, a path and a place for the set");
  pestle_plan_set_t* set =
      pestle_alloc_zero(context->core.allocator, sizeof(*set));
  if (!set) return PESTLE_OOM();
  pestle_context_retain(context);
  set->context = context;
  pestle_status_t status = load(set, path);
  if (!status) {
    *out_set = set;
    return NULL;
  }
  pestle_plan_set_release(set);
  return pestle_status_annotate(status, "while loading the plans of '%s'",
                                path);
}

size_t pestle_plan_set_count(const pestle_plan_set_t* set) {
  return set ? set->count : 0;
}

pestle_plan_t* pestle_plan_set_plan(const pestle_plan_set_t* set,
                                    size_t index) {
  return set && index < set->count ? set->plans[index] : NULL;
}

// SPDX-License-Identifier: Apache-2.0
// A plan in memory: checked once when it is made, then read without further
// checks.
#ifndef PESTLE_RUNTIME_PLAN_H_
#define PESTLE_RUNTIME_PLAN_H_

#include "base/file.h"
#include "base/thread.h"
#include "pestle/plan_format.h"
#include "pestle/runtime.h"
#include "runtime/constant.h"

// A plan in the context's cache must not keep the context alive, or neither
// would ever die: the context is held while somebody else holds the plan.
struct pestle_plan_s {
  pestle_refcount_t refcount;  // of all, the cache among them
  atomic_uint holders;         // without the cache
  pestle_context_t* context;
  const char* data;
  size_t size;
  void (*release)(void* self);
  void* release_self;
  pestle_mapping_t mapping;  // the file that |data| lies in, if one does
  // For each constant: what it is outside of the plan, or NULL: in the plan.
  pestle_constant_t** constants;
  size_t constant_count;
  // Of constants that only parts name 1 and how many executables count them; else 0.
  // NULL: the plan has no parts.
  atomic_uint* part_users;
  // Of each of them the file that it lies in, the content of which nobody has looked at;
  // NULL: it is in |constants|, or in the plan.
  struct pestle_part_file_t** part_files;
  // How many executables use the constants: they are counted once.
  atomic_uint users;
};

// Takes over |mapping|, in which the plan lies at |offset|. |trusted| leaves
// out the checksum, for who has verified one already. On failure the mapping
// stays the caller's. |*out_reason| says which constant is not to be had, as a
// static sentence (the status is NOT_FOUND then), or is NULL.
PESTLE_NODISCARD pestle_status_t
pestle_plan_create_mapped(pestle_context_t* context, pestle_mapping_t mapping,
                          size_t offset, size_t size, bool trusted,
                          pestle_plan_t** out_plan, const char** out_reason);

// The cache's reference: such a one as does not hold the context.
void pestle_plan_retain_cached(pestle_plan_t* plan);
void pestle_plan_release_cached(pestle_plan_t* plan);

// --- plan_check.c ---

// Checks magic, version, checksum (if |verify|) and every bound of a plan.
PESTLE_NODISCARD pestle_status_t pestle_plan_check(const void* data,
                                                   size_t size, bool verify);

// --- Readers, for a plan that was checked ---

static inline const pestle_plan_header_t* pestle_plan_header(
    const pestle_plan_t* plan) {
  return (const pestle_plan_header_t*)(const void*)plan->data;
}

static inline const char* pestle_plan_text(const pestle_plan_t* plan,
                                           pestle_plan_str_t text) {
  return plan->data + pestle_plan_header(plan)->strings.offset + text;
}

// The records of a section; NULL-free: an empty one gives some address.
#define PESTLE_PLAN_RECORDS(plan, Type, section) \
  ((const Type*)(const void*)((plan)->data +     \
                              pestle_plan_header(plan)->section.offset))

static inline const char* pestle_plan_constant_base(const pestle_plan_t* plan,
                                                    uint32_t index) {
  const pestle_constant_t* outside = plan->constants[index];
  if (outside) return outside->data;
  return plan->data + PESTLE_PLAN_RECORDS(plan, pestle_plan_constant_ref_t,
                                          constant_refs)[index]
                          .offset;
}

// Whether constant |index| is only there as a part of some process: then it may be found
// late, by pestle_plan_take_part().
static inline bool pestle_plan_is_part(const pestle_plan_t* plan,
                                       size_t index) {
  return plan->part_users && atomic_load(&plan->part_users[index]) > 0;
}

// Constant |index|, with its content checked where it is only there as a part. Its
// bytes, and what is to be released, or NULL: they lie in the plan.
PESTLE_NODISCARD pestle_status_t
pestle_plan_take_part(const pestle_plan_t* plan, uint32_t index,
                      pestle_constant_t** out_constant, const char** out_data);
// Checks, of a plan that nobody else has yet, the files of the parts of |process|, or of
// all where that is below 0. MALFORMED: one is damaged, and removed.
PESTLE_NODISCARD pestle_status_t
pestle_plan_check_parts(const pestle_plan_t* plan, int32_t process);
// All constants outside of the plan, to be released one by one; |out| has room for all.
PESTLE_NODISCARD pestle_status_t pestle_plan_hold_all(const pestle_plan_t* plan,
                                                      pestle_constant_t** out);

// The name of an op that |plan| has done by a function that no other process has, or
// NULL.
const char* pestle_plan_transient(const pestle_plan_t* plan);

#endif  // PESTLE_RUNTIME_PLAN_H_

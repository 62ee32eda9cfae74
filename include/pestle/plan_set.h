// SPDX-License-Identifier: Apache-2.0
// Several plans in one file: a model for several shapes. Constants that plans share,
// as the weights of a model mostly are, stand in it once.
#ifndef PESTLE_PLAN_SET_H_
#define PESTLE_PLAN_SET_H_

#include <stddef.h>
#include <stdint.h>

#include "pestle/context.h"
#include "pestle/runtime.h"
#include "pestle/status.h"

PESTLE_EXTERN_C_BEGIN

#define PESTLE_PLAN_SET_MAGIC "PSTLSET1"
#define PESTLE_PLAN_SET_VERSION 1u

// The file, little-endian: this header, |plan_count| records of plans, |constant_count|
// of constants, then their bytes, each at a multiple of 64. The structs of one
// PESTLE_PLAN_SET_VERSION are frozen; plans have a version of their own
// (plan_format.h).
typedef struct pestle_plan_set_header_t {
  char magic[8];
  uint32_t version;
  uint32_t header_size;
  uint64_t size;      // of the file
  uint64_t checksum;  // XXH3-64 of the header from here on, and of all records
  uint64_t plan_count, constant_count;
} pestle_plan_set_header_t;
// Where a plan lies. Frozen.
typedef struct pestle_plan_set_plan_t {
  uint64_t offset, size;
} pestle_plan_set_plan_t;
// What a constant is and where it lies. Frozen.
typedef struct pestle_plan_set_constant_t {
  uint64_t hash[2];  // XXH3-128 of the bytes, low half first
  uint64_t key[2];
  uint64_t offset, size;
} pestle_plan_set_constant_t;

typedef struct pestle_plan_set_s pestle_plan_set_t;

// Writes |count| plans of one context with all their constants to |path| by atomic
// rename, mode 0600. INVALID_ARGUMENT: none; UNSUPPORTED: a plan that cannot be
// saved (pestle_plan_save()); IO, RESOURCE_EXHAUSTED: the place cannot be written.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_plan_set_save(
    pestle_plan_t* const* plans, size_t count, const char* path);
// Maps the set at |path|, which stays mapped while one of its plans lives. Plans are
// machine code: load only what you trust. Errors as those of pestle_plan_load();
// MALFORMED: damage, with the place.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_plan_set_load(
    pestle_context_t* context, const char* path, pestle_plan_set_t** out_set);
// Frees the set, which may be NULL; its plans stay with who retained them.
PESTLE_API void pestle_plan_set_release(pestle_plan_set_t* set);
// How many plans it has.
PESTLE_API size_t pestle_plan_set_count(const pestle_plan_set_t* set);
// Plan |index|, borrowed; NULL past the last.
PESTLE_API pestle_plan_t* pestle_plan_set_plan(const pestle_plan_set_t* set,
                                               size_t index);

PESTLE_EXTERN_C_END

#endif  // PESTLE_PLAN_SET_H_

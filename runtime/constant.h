// SPDX-License-Identifier: Apache-2.0
// The constants of a context, by content: each packed block exists once in a
// process, and once in the cache folder (docs/adr/006-constants-by-content.md).
//
// A constant belongs to those who hold it (plans, and codegen until its plan is
// made); the table only points to it, and forgets it with the last of them. The
// holders are counted under the table's lock: whoever finds one holds it before
// its last holder can have freed it.
#ifndef PESTLE_RUNTIME_CONSTANT_H_
#define PESTLE_RUNTIME_CONSTANT_H_

#include "base/file.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/thread.h"
#include "pestle/plan_format.h"
#include "pestle/runtime.h"

struct pestle_constant_s {
  pestle_context_t* context;
  unsigned holders;
  unsigned users;  // plans that an executable runs: their memory is counted
  pestle_device_t* counted_on;
  pestle_hash128_t hash, key;
  bool many_keys;  // beside |key|, which is 0 while there is none
  const void* data;
  size_t size;
  pestle_mapping_t mapping;     // the file that |data| lies in, or
  void* block;                  // the memory, or
  void (*release)(void* self);  // whoever gave it
  void* release_self;
};

typedef struct pestle_constants_t {
  pestle_context_t* context;
  pestle_mutex_t mutex;
  pestle_map_t by_hash;  // pestle_hash128_t -> pestle_constant_t*
  pestle_map_t by_key;   // the same
  uint64_t bytes;
} pestle_constants_t;

void pestle_constants_init(pestle_context_t* context,
                           pestle_constants_t* out_constants);
void pestle_constants_deinit(pestle_constants_t* constants);
void pestle_constants_after_fork(pestle_constants_t* constants);
void pestle_constants_stats(pestle_constants_t* constants, uint64_t* out_count,
                            uint64_t* out_bytes);

// The constant that a plan refers to, from the table or the cache folder. When
// it is in neither, or damaged, |*out_constant| is NULL and |*out_reason| a
// static sentence; only running out of memory is an error.
PESTLE_NODISCARD pestle_status_t pestle_constant_find(
    pestle_context_t* context, const pestle_plan_constant_ref_t* ref,
    pestle_constant_t** out_constant, const char** out_reason);
// The same without reading it: the constant from the table, or the mapping of a file of
// the cache folder, the content of which nobody has looked at.
PESTLE_NODISCARD pestle_status_t pestle_constant_look(
    pestle_context_t* context, const pestle_plan_constant_ref_t* ref,
    pestle_constant_t** out_constant, pestle_mapping_t* out_mapping,
    const char** out_reason);
// The constant of |hash|, whose bytes are those at |data| unless the table has it.
// release(self) is called when |data| is not needed any more, also on failure.
PESTLE_NODISCARD pestle_status_t pestle_constant_adopt(
    pestle_context_t* context, pestle_hash128_t hash, pestle_hash128_t key,
    const void* data, size_t size, void (*release)(void* self), void* self,
    pestle_constant_t** out_constant);
// Adds a holder to a constant that the caller holds.
void pestle_constant_retain(pestle_constant_t* constant);
// Counts a constant on |device| while plans that are run use it: once.
void pestle_constant_use(pestle_constant_t* constant, pestle_device_t* device);
void pestle_constant_unuse(pestle_constant_t* constant);
bool pestle_constant_is_used(pestle_constant_t* constant);

// --- constant_file.c ---

// The file of a constant: this header, then the bytes. Its name is their hash
// and the header follows from them, so that every bit of it is checked.
#define PESTLE_CONSTANT_FILE_MAGIC "PSTLCON1"
#define PESTLE_CONSTANT_FILE_VERSION 1u

typedef struct pestle_constant_file_t {
  char magic[8];
  uint32_t version;
  uint32_t header_size;
  uint64_t size;  // of the bytes
  uint64_t hash[2];
  uint64_t reserved[3];
} pestle_constant_file_t;

// The path in |folder|; NULL when out of memory.
char* pestle_constant_file_path(pestle_arena_t* arena, const char* folder,
                                pestle_hash128_t hash);
// NULL, or what is wrong with the mapped file, as a static sentence.
const char* pestle_constant_file_fault(pestle_mapping_t mapping,
                                       pestle_hash128_t hash, bool verify);
// Maps a file of the cache folder and checks it, its content too if |verify|; one that
// is damaged is removed. |*out_reason| is NULL, or says why there is no mapping.
PESTLE_NODISCARD pestle_status_t pestle_constant_file_map(
    pestle_context_t* context, pestle_hash128_t hash, size_t size, bool verify,
    pestle_mapping_t* out_mapping, const char** out_reason);
// Writes the file unless it is there with the right length; |out_written| (may be NULL):
// whether it did.
PESTLE_NODISCARD pestle_status_t
pestle_constant_file_keep(pestle_context_t* context, pestle_hash128_t hash,
                          const void* data, size_t size, bool* out_written);

#endif  // PESTLE_RUNTIME_CONSTANT_H_

// SPDX-License-Identifier: Apache-2.0
// The file of one cached plan: this header, the key, padding to 64 bytes, the
// plan. Its name is the hash of the key, so a file is found without an index
// and two keys of one hash replace each other. Never trusted: the checksum is
// over everything behind it, and owner and mode are looked at before.
#ifndef PESTLE_RUNTIME_DISK_ENTRY_H_
#define PESTLE_RUNTIME_DISK_ENTRY_H_

#include "base/arena.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "pestle/runtime.h"

#define PESTLE_DISK_ENTRY_MAGIC "PSTLENT1"
#define PESTLE_DISK_ENTRY_VERSION 1u
// Files of constants (constant.h) lie beside the entries.
#define PESTLE_CONSTANT_FILE_PREFIX "c-"
// So does what is remembered of plugins that were tried (plugin_tried.c).
#define PESTLE_TRIED_FILE_PREFIX "t-"

typedef struct pestle_disk_entry_t {
  char magic[8];
  uint64_t checksum[2];  // XXH3-128 of all bytes from offset 24 on
  uint32_t version;
  uint32_t header_size;
  uint64_t key_size;
  uint64_t plan_offset;  // a multiple of 64
  uint64_t plan_size;
  uint64_t reserved;
} pestle_disk_entry_t;

// The path of the entry of |key| in |folder|; NULL when out of memory.
char* pestle_disk_entry_path(pestle_arena_t* arena, const char* folder,
                             pestle_str_t key);
typedef enum pestle_disk_name_e {
  PESTLE_DISK_OTHER,      // none of ours
  PESTLE_DISK_TEMPORARY,  // a writer is at work on it, or left it behind
  PESTLE_DISK_PLAN,
  PESTLE_DISK_CONSTANT,
  PESTLE_DISK_TRIED,
} pestle_disk_name_t;

// What |name| is the name of, and the hash in it.
pestle_disk_name_t pestle_disk_entry_name(const char* name,
                                          pestle_hash128_t* out_hash);
// NULL, or what is wrong with the mapped file, as a static sentence. Looks at
// the checksum last, and only with |verify|.
const char* pestle_disk_entry_fault(pestle_mapping_t mapping, bool verify);

#endif  // PESTLE_RUNTIME_DISK_ENTRY_H_

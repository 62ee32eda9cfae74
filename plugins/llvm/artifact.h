// SPDX-License-Identifier: Apache-2.0
// The artifact of a kernel, which compile() makes and load() takes: this
// header, the entry's name, an ELF64 relocatable object.
#ifndef PESTLE_PLUGINS_LLVM_ARTIFACT_H_
#define PESTLE_PLUGINS_LLVM_ARTIFACT_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PESTLE_LLVM_MAGIC "PstlX86"
#define PESTLE_LLVM_ARTIFACT_VERSION 2u

typedef struct pestle_llvm_artifact_t {
  char magic[8];
  uint32_t version;
  uint32_t entry_size;  // of the name, which follows, without a 0
  uint64_t features;    // that the code uses: bits of features.def
  uint64_t object_at;   // from the artifact's begin
  uint64_t object_size;
  uint64_t checksum;  // of everything, this field as 0
} pestle_llvm_artifact_t;

_Static_assert(sizeof(pestle_llvm_artifact_t) == 48, "the header has no gaps");

// Not meant against an adversary, who could as well change the code.
static inline uint64_t pestle_llvm_checksum(const void* artifact, size_t size) {
  const size_t skip = offsetof(pestle_llvm_artifact_t, checksum);
  uint64_t hash = size * UINT64_C(0x9e3779b97f4a7c15);
  for (size_t at = 0; at < size; at += 8) {
    uint64_t word = 0;
    size_t left = size - at < 8 ? size - at : 8;
    if (at != skip) memcpy(&word, (const char*)artifact + at, left);
    hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
    hash ^= hash >> 32;
  }
  return hash;
}

#endif  // PESTLE_PLUGINS_LLVM_ARTIFACT_H_

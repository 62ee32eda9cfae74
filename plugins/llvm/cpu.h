// SPDX-License-Identifier: Apache-2.0
// CPU features: those of this machine by cpuid, those of others by name.
#ifndef PESTLE_PLUGINS_LLVM_CPU_H_
#define PESTLE_PLUGINS_LLVM_CPU_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum pestle_llvm_feature_e {
#define FEATURE(ID, ...) PESTLE_LLVM_##ID,
#include "plugins/llvm/features.def"
  PESTLE_LLVM_FEATURE_COUNT
} pestle_llvm_feature_t;

#define PESTLE_LLVM_BIT(ID) (UINT64_C(1) << PESTLE_LLVM_##ID)

// Feature sets, each holding the one before.
#define PESTLE_LLVM_SET_V3                                                    \
  (PESTLE_LLVM_BIT(SSE3) | PESTLE_LLVM_BIT(SSSE3) | PESTLE_LLVM_BIT(CX16) |   \
   PESTLE_LLVM_BIT(SSE41) | PESTLE_LLVM_BIT(SSE42) | PESTLE_LLVM_BIT(MOVBE) | \
   PESTLE_LLVM_BIT(POPCNT) | PESTLE_LLVM_BIT(AVX) | PESTLE_LLVM_BIT(F16C) |   \
   PESTLE_LLVM_BIT(FMA) | PESTLE_LLVM_BIT(BMI) | PESTLE_LLVM_BIT(AVX2) |      \
   PESTLE_LLVM_BIT(BMI2) | PESTLE_LLVM_BIT(LZCNT))
#define PESTLE_LLVM_SET_V4                                                     \
  (PESTLE_LLVM_SET_V3 | PESTLE_LLVM_BIT(AVX512F) | PESTLE_LLVM_BIT(AVX512DQ) | \
   PESTLE_LLVM_BIT(AVX512CD) | PESTLE_LLVM_BIT(AVX512BW) |                     \
   PESTLE_LLVM_BIT(AVX512VL))
#define PESTLE_LLVM_SET_ICX                                           \
  (PESTLE_LLVM_SET_V4 | PESTLE_LLVM_BIT(AVX512IFMA) |                 \
   PESTLE_LLVM_BIT(AVX512VBMI) | PESTLE_LLVM_BIT(AVX512VBMI2) |       \
   PESTLE_LLVM_BIT(GFNI) | PESTLE_LLVM_BIT(AVX512VNNI) |              \
   PESTLE_LLVM_BIT(AVX512BITALG) | PESTLE_LLVM_BIT(AVX512VPOPCNTDQ) | \
   PESTLE_LLVM_BIT(PRFCHW))
#define PESTLE_LLVM_SET_ZEN4 (PESTLE_LLVM_SET_ICX | PESTLE_LLVM_BIT(AVX512BF16))
#define PESTLE_LLVM_SET_ZEN5 (PESTLE_LLVM_SET_ZEN4 | PESTLE_LLVM_BIT(AVXVNNI))
#define PESTLE_LLVM_SET_MATRIX                           \
  (PESTLE_LLVM_BIT(AMXTILE) | PESTLE_LLVM_BIT(AMXBF16) | \
   PESTLE_LLVM_BIT(AMXINT8))
#define PESTLE_LLVM_SET_SPR (PESTLE_LLVM_SET_ZEN5 | PESTLE_LLVM_SET_MATRIX)

// Of one core, as the last fields of pestle_target_caps_t; all 0: not known.
typedef struct pestle_llvm_rates_t {
  uint32_t fma, load, broadcast, fma_cycles, l2, l3, memory;
} pestle_llvm_rates_t;

// Those of the CPU whose tuning |tune| names, with vectors of |vector_bytes|, else of
// the generic one; zeros: there is neither.
pestle_llvm_rates_t pestle_llvm_rates(const char* tune, uint32_t vector_bytes);

typedef struct pestle_llvm_cpu_t {
  const char* name;   // of features.def, or of the model; static
  const char* tune;   // scheduling model, by the newest LLVM's name; static
  uint64_t features;  // PESTLE_LLVM_BIT
  uint64_t l1_bytes, l2_bytes, l3_bytes;
  uint32_t cores;  // that this process may use; 0, unknown, for a named CPU
} pestle_llvm_cpu_t;

// The machine's. Features that the OS does not save are absent. AVX-512 is all
// of F, BW, CD, DQ and VL or nothing, and so are matrix registers with their
// products of bf16 and bytes. The system is asked to let this process use those.
void pestle_llvm_cpu_host(pestle_llvm_cpu_t* out_cpu);
// False when |name| is not in features.def.
bool pestle_llvm_cpu_named(const char* name, pestle_llvm_cpu_t* out_cpu);
// "x86-64-v3, x86-64-v4, ...": static.
const char* pestle_llvm_cpu_names(void);

// Writes "+avx,+avx2,..." of |features| with |sign|, and terminates it.
void pestle_llvm_feature_string(uint64_t features, char sign, char* out,
                                size_t capacity);

static inline bool pestle_llvm_has_v3(uint64_t features) {
  return (features & PESTLE_LLVM_SET_V3) == PESTLE_LLVM_SET_V3;
}
static inline bool pestle_llvm_has_v4(uint64_t features) {
  return (features & PESTLE_LLVM_SET_V4) == PESTLE_LLVM_SET_V4;
}

// Kernels of matrix registers work on vectors of AVX-512 beside them.
static inline bool pestle_llvm_has_matrix(uint64_t features) {
  return pestle_llvm_has_v4(features) &&
         (features & PESTLE_LLVM_SET_MATRIX) == PESTLE_LLVM_SET_MATRIX;
}

#endif  // PESTLE_PLUGINS_LLVM_CPU_H_

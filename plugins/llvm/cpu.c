// SPDX-License-Identifier: Apache-2.0
#include "plugins/llvm/cpu.h"

#include <cpuid.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

// --- Features ---

enum { EAX, EBX, ECX, EDX };

typedef struct feature_t {
  const char* name;
  uint32_t leaf, subleaf;
  uint8_t reg, bit, state;
} feature_t;

static const feature_t k_features[] = {
#define FEATURE(ID, name, leaf, subleaf, reg, bit, state) \
  {name, leaf, subleaf, reg, bit, state},
#include "plugins/llvm/features.def"
};

static void query(uint32_t leaf, uint32_t subleaf, uint32_t regs[4]) {
  memset(regs, 0, 4 * sizeof *regs);
  if (__get_cpuid_max(leaf & 0x80000000u, NULL) < leaf) return;
  __cpuid_count(leaf, subleaf, regs[EAX], regs[EBX], regs[ECX], regs[EDX]);
}

// Linux saves the tiles' 8 KiB only for who asks before the first use; all
// threads of the process may use them then. False where the hypervisor or the
// system does not give them, or some thread's signal stack is too small.
static bool ask_for_tiles(void) {
#ifdef __linux__
  enum { ASK = 0x1023, TILE_DATA = 18 };  // ARCH_REQ_XCOMP_PERM
  return syscall(SYS_arch_prctl, ASK, TILE_DATA) == 0;
#else
  return false;
#endif
}

// 0: the OS saves neither, 1: ymm, 2: zmm and mask registers too, 3: tiles too.
static int saved_state(void) {
  uint32_t regs[4], low, high;
  query(1, 0, regs);
  if (!(regs[ECX] >> 27 & 1)) return 0;  // no XGETBV
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  if ((low & 0x06) != 0x06) return 0;
  if ((low & 0xe0) != 0xe0) return 1;
  return (low & 0x60000) != 0x60000 || !ask_for_tiles() ? 2 : 3;
}

static uint64_t host_features(void) {
  uint64_t features = 0;
  int state = saved_state();
  for (unsigned i = 0; i < PESTLE_LLVM_FEATURE_COUNT; ++i) {
    const feature_t* f = &k_features[i];
    uint32_t regs[4];
    query(f->leaf, f->subleaf, regs);
    if (f->state <= state && (regs[f->reg] >> f->bit & 1)) {
      features |= UINT64_C(1) << i;
    }
  }
  int most = pestle_llvm_has_matrix(features) ? 3
             : pestle_llvm_has_v4(features)   ? 2
                                              : 1;
  for (unsigned i = 0; i < PESTLE_LLVM_FEATURE_COUNT; ++i) {
    if (k_features[i].state > most) features &= ~(UINT64_C(1) << i);
  }
  return features;
}

void pestle_llvm_feature_string(uint64_t features, char sign, char* out,
                                size_t capacity) {
  size_t used = 0;
  for (unsigned i = 0; i < PESTLE_LLVM_FEATURE_COUNT; ++i) {
    if (!(features >> i & 1)) continue;
    size_t size = strlen(k_features[i].name);
    if (used + size + 3 > capacity) break;
    if (used) out[used++] = ',';
    if (sign) out[used++] = sign;
    memcpy(out + used, k_features[i].name, size);
    used += size;
  }
  if (capacity) out[used] = 0;
}

// --- Names ---

typedef struct named_t {
  const char *name, *tune;
  uint64_t features;
  uint32_t l1, l2, l3;
} named_t;

static const named_t k_named[] = {
#define CPU(name, tune, SET, l1, l2, l3) \
  {name, tune, PESTLE_LLVM_SET_##SET, l1 * 1024u, l2 * 1024u, l3 * 1024u},
#include "plugins/llvm/features.def"
};

static const char k_names[] =
#define CPU(name, ...) name ", "
#include "plugins/llvm/features.def"
    "native";

bool pestle_llvm_cpu_named(const char* name, pestle_llvm_cpu_t* out_cpu) {
  for (size_t i = 0; i < sizeof k_named / sizeof *k_named; ++i) {
    const named_t* n = &k_named[i];
    if (strcmp(n->name, name)) continue;
    *out_cpu = (pestle_llvm_cpu_t){n->name, n->tune, n->features, n->l1, n->l2,
                                   n->l3,   0};
    return true;
  }
  return false;
}

const char* pestle_llvm_cpu_names(void) {
  return k_names;
}

pestle_llvm_rates_t pestle_llvm_rates(const char* tune, uint32_t vector_bytes) {
  static const struct {
    const char* tune;
    uint32_t vector_bytes;
    pestle_llvm_rates_t rates;
  } known[] = {
#define RATES(tune, vector_bytes, ...) {tune, vector_bytes, {__VA_ARGS__}},
#include "plugins/llvm/features.def"
  };
  pestle_llvm_rates_t generic = {0};
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
    if (known[i].vector_bytes != vector_bytes) continue;
    if (!strcmp(known[i].tune, tune)) return known[i].rates;
    if (!strcmp(known[i].tune, "generic")) generic = known[i].rates;
  }
  return generic;
}

typedef struct model_t {
  char vendor;  // A or I
  uint16_t family, first, last;
  const char* name;
} model_t;

// Model ranges whose scheduling model LLVM has.
static const model_t k_models[] = {
    {'A', 0x17, 0x00, 0x2f, "znver1"},
    {'A', 0x17, 0x30, 0xff, "znver2"},
    {'A', 0x19, 0x10, 0x1f, "znver4"},
    {'A', 0x19, 0x60, 0x7f, "znver4"},
    {'A', 0x19, 0xa0, 0xaf, "znver4"},
    {'A', 0x19, 0x00, 0xff, "znver3"},
    // Mobile kinds, whose units are half as wide, as those before them.
    {'A', 0x1a, 0x20, 0x2f, "znver4"},
    {'A', 0x1a, 0x60, 0x6f, "znver4"},
    {'A', 0x1a, 0x00, 0xff, "znver5"},
    {'I', 0x06, 0x3c, 0x3c, "haswell"},
    {'I', 0x06, 0x3f, 0x3f, "haswell"},
    {'I', 0x06, 0x45, 0x46, "haswell"},
    {'I', 0x06, 0x3d, 0x3d, "broadwell"},
    {'I', 0x06, 0x47, 0x47, "broadwell"},
    {'I', 0x06, 0x4f, 0x4f, "broadwell"},
    {'I', 0x06, 0x56, 0x56, "broadwell"},
    {'I', 0x06, 0x4e, 0x4e, "skylake"},
    {'I', 0x06, 0x5e, 0x5e, "skylake"},
    {'I', 0x06, 0x8e, 0x8e, "skylake"},
    {'I', 0x06, 0x9e, 0x9e, "skylake"},
    {'I', 0x06, 0xa5, 0xa6, "skylake"},
    {'I', 0x06, 0x55, 0x55, "skylake-avx512"},
    {'I', 0x06, 0x6a, 0x6c, "icelake-server"},
    {'I', 0x06, 0x7d, 0x7e, "icelake-client"},
    {'I', 0x06, 0x8c, 0x8d, "tigerlake"},
    {'I', 0x06, 0xa7, 0xa7, "rocketlake"},
    {'I', 0x06, 0x97, 0x9a, "alderlake"},
    {'I', 0x06, 0xb7, 0xbf, "alderlake"},
    {'I', 0x06, 0x8f, 0x8f, "sapphirerapids"},
    {'I', 0x06, 0xcf, 0xcf, "sapphirerapids"},
    {'I', 0x06, 0xad, 0xae, "graniterapids"},
};

// A hypervisor may name a model of another kind: AMX is of servers, from this one
// on.
static const char* believed(const char* name) {
  uint32_t regs[4];
  query(7, 0, regs);
  bool amx = regs[EDX] >> 24 & 1;
  return amx && strcmp(name, "graniterapids") ? "sapphirerapids" : name;
}

static const char* host_model(void) {
  uint32_t regs[4];
  query(0, 0, regs);
  bool amd = regs[EBX] == 0x68747541 || regs[EBX] == 0x6f677948;
  bool intel = regs[EBX] == 0x756e6547;
  query(1, 0, regs);
  uint32_t family = regs[EAX] >> 8 & 15, model = regs[EAX] >> 4 & 15;
  if (family == 6 || family == 15) model |= (regs[EAX] >> 16 & 15) << 4;
  if (family == 15) family += regs[EAX] >> 20 & 0xff;
  for (size_t i = 0; i < sizeof k_models / sizeof *k_models; ++i) {
    const model_t* m = &k_models[i];
    if (m->family == family && m->first <= model && model <= m->last &&
        (m->vendor == 'A' ? amd : intel)) {
      return believed(m->name);
    }
  }
  return NULL;
}

// --- Caches ---

// Leaf 4 of Intel and 0x8000001d of AMD have one layout.
static void host_caches(pestle_llvm_cpu_t* cpu) {
  uint32_t regs[4];
  query(0x80000000u, 0, regs);
  bool extended = regs[EAX] >= 0x8000001du;
  query(0x80000001u, 0, regs);
  uint32_t leaf = extended && (regs[ECX] >> 22 & 1) ? 0x8000001du : 4;
  for (uint32_t i = 0; i < 8; ++i) {
    query(leaf, i, regs);
    uint32_t type = regs[EAX] & 31, level = regs[EAX] >> 5 & 7;
    if (!type) break;
    if (type == 2) continue;  // instructions
    uint64_t bytes = (uint64_t)((regs[EBX] >> 22) + 1) *
                     ((regs[EBX] >> 12 & 0x3ff) + 1) *
                     ((regs[EBX] & 0xfff) + 1) * ((uint64_t)regs[ECX] + 1);
    if (level == 1) cpu->l1_bytes = bytes;
    if (level == 2) cpu->l2_bytes = bytes;
    if (level == 3) cpu->l3_bytes = bytes;
  }
}

void pestle_llvm_cpu_host(pestle_llvm_cpu_t* out_cpu) {
  uint64_t features = host_features();
  const char* fallback =
      pestle_llvm_has_v4(features) ? "x86-64-v4" : "x86-64-v3";
  const char* model = host_model();
  *out_cpu = (pestle_llvm_cpu_t){
      .name = model ? model : fallback,
      .tune = model ? model : "generic",
      .features = features,
      // For hypervisors that hide the cache leaves.
      .l1_bytes = 32 * 1024,
      .l2_bytes = 512 * 1024,
      .l3_bytes = 8 * 1024 * 1024,
      .cores = 1,
  };
  host_caches(out_cpu);
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    out_cpu->cores = (uint32_t)CPU_COUNT(&set);
  }
}

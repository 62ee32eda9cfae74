// SPDX-License-Identifier: Apache-2.0
// Loads what LLVM emitted (x86-64, PIC, small code model).
//
// Invariants:
//  1. The artifact is not trusted: sizes, offsets, indices and symbols are
//     checked before use, and nothing is executed while loading.
//  2. Memory is written, then made executable or read-only; never both.
//  3. Code refers to itself alone; an object that needs anything else, or has
//     writable data, is refused.
#include "plugins/llvm/load.h"

#include <string.h>
#include <sys/mman.h>

#include "plugins/common/error.h"
#include "plugins/llvm/announce.h"
#include "plugins/llvm/artifact.h"
#include "plugins/llvm/cpu.h"
#include "plugins/llvm/elf_object.h"

struct pestle_loaded_s {
  unsigned char* map;
  size_t map_size;
  pestle_cpu_entry_t entry;
  pestle_llvm_announced_t* announced;  // to debuggers; NULL: not
};

enum { PAGE = 4096, MAX_IMAGE = 1 << 28 };

// --- The image ---

typedef struct image_t {
  pestle_llvm_elf_t elf;
  size_t offset[PESTLE_LLVM_MAX_SECTIONS];  // in the map
  size_t code_size, size;
  unsigned char* map;
} image_t;

static bool is_mapped(const pestle_llvm_elf_t* elf, unsigned section) {
  return section < elf->section_count &&
         (elf->section[section].sh_flags & SHF_ALLOC);
}
static bool is_code(const pestle_llvm_elf_t* elf, unsigned section) {
  return is_mapped(elf, section) &&
         (elf->section[section].sh_flags & SHF_EXECINSTR);
}

static bool place_sections(image_t* image, bool code, size_t* at) {
  const pestle_llvm_elf_t* elf = &image->elf;
  for (unsigned i = 0; i < elf->section_count; ++i) {
    const Elf64_Shdr* s = &elf->section[i];
    if (!is_mapped(elf, i) || is_code(elf, i) != code) continue;
    if (s->sh_flags & (SHF_WRITE | SHF_TLS)) return false;
    size_t align = s->sh_addralign ? (size_t)s->sh_addralign : 1;
    *at = (*at + align - 1) & ~(align - 1);
    image->offset[i] = *at;
    *at += (size_t)s->sh_size;
    if (*at > MAX_IMAGE) return false;
  }
  return true;
}

// Code on its own pages, then what is only read.
static bool lay_out(image_t* image) {
  size_t at = 0;
  if (!place_sections(image, true, &at)) return false;
  image->code_size = at = (at + PAGE - 1) & ~(size_t)(PAGE - 1);
  if (!place_sections(image, false, &at)) return false;
  image->size = (at + PAGE - 1) & ~(size_t)(PAGE - 1);
  return true;
}

// The address that symbol |index| has in the map; false when it has none.
static bool resolve(const image_t* image, size_t index, uint64_t* out) {
  Elf64_Sym symbol;
  const pestle_llvm_elf_t* elf = &image->elf;
  if (!pestle_llvm_elf_symbol(elf, index, &symbol)) return false;
  if (!is_mapped(elf, symbol.st_shndx) ||
      symbol.st_value > elf->section[symbol.st_shndx].sh_size) {
    return false;
  }
  *out = (uint64_t)(uintptr_t)image->map + image->offset[symbol.st_shndx] +
         symbol.st_value;
  return true;
}

static bool apply(const image_t* image, unsigned target,
                  const Elf64_Rela* rela) {
  uint64_t value;
  uint32_t type = (uint32_t)ELF64_R_TYPE(rela->r_info);
  bool wide = type == R_X86_64_64 || type == R_X86_64_PC64;
  if (!wide && type != R_X86_64_PC32 && type != R_X86_64_PLT32) return false;
  uint64_t size = image->elf.section[target].sh_size, need = wide ? 8 : 4;
  if (size < need || rela->r_offset > size - need) return false;
  if (!resolve(image, (size_t)ELF64_R_SYM(rela->r_info), &value)) return false;
  unsigned char* at = image->map + image->offset[target] + rela->r_offset;
  value += (uint64_t)rela->r_addend;
  if (type != R_X86_64_64) value -= (uint64_t)(uintptr_t)at;
  if (wide) {
    memcpy(at, &value, 8);
    return true;
  }
  int32_t narrow = (int32_t)(uint32_t)value;
  if ((int64_t)value != narrow) return false;
  memcpy(at, &narrow, 4);
  return true;
}

static bool relocate(const image_t* image) {
  const pestle_llvm_elf_t* elf = &image->elf;
  for (unsigned i = 0; i < elf->section_count; ++i) {
    const Elf64_Shdr* s = &elf->section[i];
    if (s->sh_type == SHT_REL && is_mapped(elf, s->sh_info)) return false;
    if (s->sh_type != SHT_RELA || !is_mapped(elf, s->sh_info)) continue;
    size_t count = pestle_llvm_elf_count(elf, i, sizeof(Elf64_Rela));
    for (size_t r = 0; r < count; ++r) {
      Elf64_Rela rela;
      if (!pestle_llvm_elf_rela(elf, i, r, &rela)) return false;
      if (!apply(image, s->sh_info, &rela)) return false;
    }
  }
  return true;
}

// Where the function called |name| begins; 0 when there is none.
static uint64_t find_entry(const image_t* image, const char* name,
                           size_t size) {
  const pestle_llvm_elf_t* elf = &image->elf;
  Elf64_Sym symbol;
  for (size_t i = 0; pestle_llvm_elf_symbol(elf, i, &symbol); ++i) {
    const char* text = pestle_llvm_elf_symbol_name(elf, &symbol);
    uint64_t address;
    if (text && strlen(text) == size && !memcmp(text, name, size) &&
        symbol.st_shndx != SHN_UNDEF && is_code(elf, symbol.st_shndx) &&
        symbol.st_value < elf->section[symbol.st_shndx].sh_size &&
        resolve(image, i, &address)) {
      return address;
    }
  }
  return 0;
}

static const char* fill(image_t* image) {
  const pestle_llvm_elf_t* elf = &image->elf;
  image->map = mmap(NULL, image->size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (image->map == MAP_FAILED) {
    image->map = NULL;
    return "memory";
  }
  for (unsigned i = 0; i < elf->section_count; ++i) {
    if (!is_mapped(elf, i)) continue;
    memcpy(image->map + image->offset[i], pestle_llvm_elf_bytes(elf, i),
           (size_t)elf->section[i].sh_size);
  }
  if (!relocate(image)) return "relocations";
  size_t rest = image->size - image->code_size;
  if (mprotect(image->map, image->code_size, PROT_READ | PROT_EXEC) ||
      (rest && mprotect(image->map + image->code_size, rest, PROT_READ))) {
    return "executable memory";
  }
  return NULL;
}

// --- The artifact ---

static pestle_status_t check_artifact(const pestle_host_t* host,
                                      uint64_t features, const void* artifact,
                                      size_t size,
                                      pestle_llvm_artifact_t* header) {
  if (size < sizeof *header) {
    return PESTLE_PLUGIN_ERROR(
        host, MALFORMED, "an llvm artifact of %zu bytes is too short", size);
  }
  memcpy(header, artifact, sizeof *header);
  if (memcmp(header->magic, PESTLE_LLVM_MAGIC, sizeof header->magic) ||
      header->version != PESTLE_LLVM_ARTIFACT_VERSION) {
    return PESTLE_PLUGIN_ERROR(host, INCOMPATIBLE,
                               "not an llvm artifact of version %u",
                               PESTLE_LLVM_ARTIFACT_VERSION);
  }
  size_t rest = size - sizeof *header;
  if (pestle_llvm_checksum(artifact, size) != header->checksum ||
      header->entry_size > rest || header->object_at > size ||
      header->object_size != size - header->object_at) {
    return PESTLE_PLUGIN_ERROR(host, MALFORMED,
                               "an llvm artifact is damaged: its checksum or "
                               "its sizes are wrong");
  }
  uint64_t missing = header->features & ~features;
  if (missing) {
    char names[1024];
    uint64_t known = (UINT64_C(1) << PESTLE_LLVM_FEATURE_COUNT) - 1;
    pestle_llvm_feature_string(missing & known, 0, names, sizeof names);
    return PESTLE_PLUGIN_ERROR(host, INCOMPATIBLE,
                               "the code needs CPU features that this machine "
                               "lacks: %s%s",
                               names, missing & ~known ? " and newer" : "");
  }
  return NULL;
}

static pestle_llvm_announced_t* announce(const pestle_host_t* host,
                                         const image_t* image) {
  uint64_t address[PESTLE_LLVM_MAX_SECTIONS] = {0};
  for (unsigned i = 0; i < image->elf.section_count; ++i) {
    if (!is_mapped(&image->elf, i)) continue;
    address[i] = (uint64_t)(uintptr_t)image->map + image->offset[i];
  }
  return pestle_llvm_announce(host, &image->elf, address);
}

static pestle_status_t load_object(const pestle_host_t* host,
                                   const pestle_llvm_artifact_t* header,
                                   const void* artifact, image_t* image,
                                   pestle_loaded_t** out_loaded) {
  const char* bytes = artifact;
  if (!pestle_llvm_elf_open(bytes + header->object_at,
                            (size_t)header->object_size, &image->elf) ||
      !lay_out(image)) {
    return PESTLE_PLUGIN_ERROR(host, MALFORMED,
                               "an llvm artifact's object is damaged");
  }
  const char* why = fill(image);
  if (why && strstr(why, "memory")) {
    return PESTLE_PLUGIN_ERROR(host, RESOURCE_EXHAUSTED,
                               "the system refused %s for %zu bytes of code",
                               why, image->size);
  }
  uint64_t entry =
      why ? 0 : find_entry(image, bytes + sizeof *header, header->entry_size);
  if (!entry) {
    return PESTLE_PLUGIN_ERROR(host, MALFORMED,
                               "an llvm artifact's %s is damaged",
                               why ? why : "entry");
  }
  pestle_loaded_t* loaded = host->alloc(host->self, sizeof *loaded);
  if (!loaded) {
    return PESTLE_PLUGIN_ERROR(host, OUT_OF_MEMORY, "no memory to load code");
  }
  *loaded =
      (pestle_loaded_t){image->map, image->size, NULL, announce(host, image)};
  uintptr_t address = (uintptr_t)entry;
  memcpy(&loaded->entry, &address, sizeof address);
  *out_loaded = loaded;
  return NULL;
}

pestle_status_t pestle_llvm_load(const pestle_host_t* host, uint64_t features,
                                 const void* artifact, size_t size,
                                 pestle_loaded_t** out_loaded) {
  pestle_llvm_artifact_t header;
  image_t image = {0};
  *out_loaded = NULL;
  PESTLE_TRY(check_artifact(host, features, artifact, size, &header));
  pestle_status_t status =
      load_object(host, &header, artifact, &image, out_loaded);
  if (status && image.map) munmap(image.map, image.size);
  return status;
}

void pestle_llvm_unload(const pestle_host_t* host, pestle_loaded_t* loaded) {
  if (!loaded) return;
  pestle_llvm_withdraw(host, loaded->announced);
  munmap(loaded->map, loaded->map_size);
  host->free(host->self, loaded, sizeof *loaded);
}

pestle_cpu_entry_t pestle_llvm_entry(const pestle_loaded_t* loaded) {
  return loaded->entry;
}

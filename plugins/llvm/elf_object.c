// SPDX-License-Identifier: Apache-2.0
#include "plugins/llvm/elf_object.h"

#include <stdint.h>
#include <string.h>

static bool within(size_t size, uint64_t at, uint64_t length) {
  return at <= size && length <= size - at;
}

static bool header_fits(const Elf64_Ehdr* h, size_t size) {
  return !memcmp(h->e_ident, ELFMAG, SELFMAG) &&
         h->e_ident[EI_CLASS] == ELFCLASS64 &&
         h->e_ident[EI_DATA] == ELFDATA2LSB && h->e_type == ET_REL &&
         h->e_machine == EM_X86_64 && h->e_shentsize == sizeof(Elf64_Shdr) &&
         h->e_shnum > 0 && h->e_shnum <= PESTLE_LLVM_MAX_SECTIONS &&
         h->e_shstrndx < h->e_shnum &&
         within(size, h->e_shoff, h->e_shnum * sizeof(Elf64_Shdr));
}

static bool section_fits(const pestle_llvm_elf_t* elf, const Elf64_Shdr* s) {
  uint64_t align = s->sh_addralign;
  if (align & (align - 1) || align > 4096) return false;
  if (s->sh_type == SHT_NULL) return true;
  return s->sh_type != SHT_NOBITS && s->sh_link < elf->section_count &&
         within(elf->size, s->sh_offset, s->sh_size);
}

bool pestle_llvm_elf_open(const void* data, size_t size,
                          pestle_llvm_elf_t* out_elf) {
  Elf64_Ehdr header;
  *out_elf = (pestle_llvm_elf_t){.data = data, .size = size};
  if (size < sizeof header) return false;
  memcpy(&header, data, sizeof header);
  if (!header_fits(&header, size)) return false;
  out_elf->section_count = header.e_shnum;
  memcpy(out_elf->section, out_elf->data + header.e_shoff,
         header.e_shnum * sizeof(Elf64_Shdr));
  for (unsigned i = 0; i < out_elf->section_count; ++i) {
    const Elf64_Shdr* s = &out_elf->section[i];
    if (!section_fits(out_elf, s)) return false;
    if (s->sh_type == SHT_SYMTAB) out_elf->symtab = i;
  }
  // Names of sections are looked up through the section 0, which has none.
  out_elf->section[0].sh_link = header.e_shstrndx;
  return true;
}

const unsigned char* pestle_llvm_elf_bytes(const pestle_llvm_elf_t* elf,
                                           unsigned section) {
  return elf->data + elf->section[section].sh_offset;
}

size_t pestle_llvm_elf_count(const pestle_llvm_elf_t* elf, unsigned section,
                             size_t entry_size) {
  return (size_t)elf->section[section].sh_size / entry_size;
}

static bool entry(const pestle_llvm_elf_t* elf, unsigned section, size_t index,
                  void* out, size_t size) {
  if (index >= pestle_llvm_elf_count(elf, section, size)) return false;
  memcpy(out, pestle_llvm_elf_bytes(elf, section) + index * size, size);
  return true;
}

bool pestle_llvm_elf_symbol(const pestle_llvm_elf_t* elf, size_t index,
                            Elf64_Sym* out_symbol) {
  return elf->symtab &&
         entry(elf, elf->symtab, index, out_symbol, sizeof *out_symbol);
}

bool pestle_llvm_elf_rela(const pestle_llvm_elf_t* elf, unsigned section,
                          size_t index, Elf64_Rela* out_rela) {
  return entry(elf, section, index, out_rela, sizeof *out_rela);
}

static const char* string(const pestle_llvm_elf_t* elf, unsigned table,
                          uint64_t offset) {
  const Elf64_Shdr* s = &elf->section[table];
  if (s->sh_type != SHT_STRTAB || offset >= s->sh_size) return NULL;
  const char* text = (const char*)pestle_llvm_elf_bytes(elf, table) + offset;
  return memchr(text, 0, (size_t)(s->sh_size - offset)) ? text : NULL;
}

const char* pestle_llvm_elf_symbol_name(const pestle_llvm_elf_t* elf,
                                        const Elf64_Sym* symbol) {
  return string(elf, elf->section[elf->symtab].sh_link, symbol->st_name);
}

const char* pestle_llvm_elf_section_name(const pestle_llvm_elf_t* elf,
                                         unsigned section) {
  return string(elf, elf->section[0].sh_link, elf->section[section].sh_name);
}

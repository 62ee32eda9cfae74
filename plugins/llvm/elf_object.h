// SPDX-License-Identifier: Apache-2.0
// A reader of ELF64 relocatable objects that trusts nothing: every getter says
// whether what it was asked for lies within the bytes.
#ifndef PESTLE_PLUGINS_LLVM_ELF_OBJECT_H_
#define PESTLE_PLUGINS_LLVM_ELF_OBJECT_H_

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>

enum { PESTLE_LLVM_MAX_SECTIONS = 64 };

typedef struct pestle_llvm_elf_t {
  const unsigned char* data;
  size_t size;
  unsigned section_count;
  Elf64_Shdr section[PESTLE_LLVM_MAX_SECTIONS];
  unsigned symtab;  // 0: none
} pestle_llvm_elf_t;

// Sections without contents in the bytes (NOBITS) are refused, as are
// alignments that are no power of two of at most a page.
bool pestle_llvm_elf_open(const void* data, size_t size,
                          pestle_llvm_elf_t* out_elf);
const unsigned char* pestle_llvm_elf_bytes(const pestle_llvm_elf_t* elf,
                                           unsigned section);
// The number of |entry_size|d entries of a section.
size_t pestle_llvm_elf_count(const pestle_llvm_elf_t* elf, unsigned section,
                             size_t entry_size);
bool pestle_llvm_elf_symbol(const pestle_llvm_elf_t* elf, size_t index,
                            Elf64_Sym* out_symbol);
bool pestle_llvm_elf_rela(const pestle_llvm_elf_t* elf, unsigned section,
                          size_t index, Elf64_Rela* out_rela);
// Terminated strings within the object, or NULL.
const char* pestle_llvm_elf_symbol_name(const pestle_llvm_elf_t* elf,
                                        const Elf64_Sym* symbol);
const char* pestle_llvm_elf_section_name(const pestle_llvm_elf_t* elf,
                                         unsigned section);

#endif  // PESTLE_PLUGINS_LLVM_ELF_OBJECT_H_

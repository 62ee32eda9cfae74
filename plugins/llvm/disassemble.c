// SPDX-License-Identifier: Apache-2.0
// An object's code as text. The printer of assembly in libLLVM writes Intel
// syntax only by an option of the whole process, the disassembler by one of
// its own; so this shows what the artifact really holds, with labels for
// branch targets and names for what relocations refer to.
#include <stdio.h>
#include <string.h>

#include "plugins/llvm/compile.h"
#include "plugins/llvm/elf_object.h"

typedef struct listing_t {
  const pestle_llvm_api_t* ll;
  const pestle_llvm_elf_t* elf;
  unsigned section;      // of code
  unsigned relocations;  // its SHT_RELA section, 0 none
  uint8_t* is_target;    // by offset: a branch goes there
  char name[128];        // what the last callback answered with
} listing_t;

// A branch's target, first only noted, then named.
static const char* on_reference(void* self, uint64_t value, uint64_t* kind,
                                uint64_t pc, const char** name) {
  listing_t* l = self;
  (void)pc;
  *name = NULL;
  bool branch = *kind == LLVMDisassembler_ReferenceType_In_Branch;
  *kind = LLVMDisassembler_ReferenceType_InOut_None;
  if (!branch || value >= l->elf->section[l->section].sh_size) return NULL;
  l->is_target[value] = 1;
  snprintf(l->name, sizeof l->name, ".L%llx", (unsigned long long)value);
  return l->name;
}

// What the relocation at an operand refers to.
static bool name_relocation(listing_t* l, const Elf64_Rela* rela,
                            int64_t* out_offset) {
  Elf64_Sym symbol;
  if (!pestle_llvm_elf_symbol(l->elf, (size_t)ELF64_R_SYM(rela->r_info),
                              &symbol)) {
    return false;
  }
  // A displacement counts from the end of the instruction.
  *out_offset = rela->r_addend + 4;
  const char* name = pestle_llvm_elf_symbol_name(l->elf, &symbol);
  if (ELF64_ST_TYPE(symbol.st_info) == STT_SECTION &&
      symbol.st_shndx < l->elf->section_count) {
    name = pestle_llvm_elf_section_name(l->elf, symbol.st_shndx);
  }
  snprintf(l->name, sizeof l->name, "%s", name ? name : "?");
  return true;
}

static int on_operand(void* self, uint64_t pc, uint64_t offset,
                      uint64_t operand_size, uint64_t instruction_size, int tag,
                      void* buffer) {
  listing_t* l = self;
  struct LLVMOpInfo1* info = buffer;
  Elf64_Rela rela;
  (void)operand_size;
  (void)instruction_size;
  if (tag != 1 || !l->relocations) return 0;
  for (size_t i = 0; pestle_llvm_elf_rela(l->elf, l->relocations, i, &rela);
       ++i) {
    int64_t at;
    if (rela.r_offset != pc + offset || !name_relocation(l, &rela, &at)) {
      continue;
    }
    memset(info, 0, sizeof *info);
    info->AddSymbol.Present = 1;
    info->AddSymbol.Name = l->name;
    info->Value = (uint64_t)at;
    return 1;
  }
  return 0;
}

static void print_functions_at(const listing_t* l, uint64_t at,
                               pestle_plugin_text_t* out) {
  Elf64_Sym symbol;
  for (size_t i = 0; pestle_llvm_elf_symbol(l->elf, i, &symbol); ++i) {
    if (symbol.st_shndx != l->section || symbol.st_value != at ||
        ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) {
      continue;
    }
    const char* name = pestle_llvm_elf_symbol_name(l->elf, &symbol);
    if (name) pestle_plugin_text_format(out, "\n%s:\n", name);
  }
}

// One pass over the code; with |out| NULL only targets are noted.
static void list(listing_t* l, LLVMDisasmContextRef d,
                 pestle_plugin_text_t* out) {
  const unsigned char* code = pestle_llvm_elf_bytes(l->elf, l->section);
  uint64_t size = l->elf->section[l->section].sh_size;
  for (uint64_t at = 0; at < size;) {
    char line[512];
    // The callee does not write to it.
    size_t used = l->ll->DisasmInstruction(d, (uint8_t*)(uintptr_t)(code + at),
                                           size - at, at, line, sizeof line);
    if (out) {
      print_functions_at(l, at, out);
      if (l->is_target[at]) {
        pestle_plugin_text_format(out, ".L%llx:\n", (unsigned long long)at);
      }
      if (!used) snprintf(line, sizeof line, "\t.byte %u", code[at]);
      // Padding between functions says nothing.
      bool padding = strstr(line, "\tnop") || strstr(line, "\tint3");
      if (!padding) pestle_plugin_text_format(out, "%s\n", line);
    }
    at += used ? used : 1;
  }
}

static pestle_status_t list_section(pestle_llvm_job_t* job, listing_t* l,
                                    pestle_plugin_text_t* out) {
  pestle_llvm_emit_t* e = &job->emit;
  char features[1024];
  pestle_llvm_feature_string(e->cpu->features, '+', features, sizeof features);
  uint64_t size = l->elf->section[l->section].sh_size;
  l->is_target = pestle_plugin_arena_alloc(&e->arena, (size_t)size + 1, 1);
  LLVMDisasmContextRef d =
      l->is_target ? l->ll->CreateDisasmCPUFeatures(PESTLE_LLVM_TRIPLE,
                                                    "x86-64", features, l, 1,
                                                    on_operand, on_reference)
                   : NULL;
  if (!d) {
    return PESTLE_PLUGIN_ERROR(e->host, OUT_OF_MEMORY, "no disassembler of %s",
                               features);
  }
  l->ll->SetDisasmOptions(d, LLVMDisassembler_Option_AsmPrinterVariant |
                                 LLVMDisassembler_Option_PrintImmHex);
  list(l, d, NULL);
  list(l, d, out);
  l->ll->DisasmDispose(d);
  return NULL;
}

pestle_status_t pestle_llvm_disassemble(pestle_llvm_job_t* job,
                                        pestle_plugin_text_t* out) {
  pestle_llvm_emit_t* e = &job->emit;
  pestle_llvm_elf_t elf;
  if (!pestle_llvm_elf_open(e->ll->GetBufferStart(job->object),
                            e->ll->GetBufferSize(job->object), &elf)) {
    return PESTLE_PLUGIN_ERROR(e->host, INTERNAL, "LLVM made no ELF object");
  }
  for (unsigned i = 1; i < elf.section_count; ++i) {
    if (!(elf.section[i].sh_flags & SHF_EXECINSTR) || !elf.section[i].sh_size) {
      continue;
    }
    listing_t l = {.ll = e->ll, .elf = &elf, .section = i};
    for (unsigned r = 1; r < elf.section_count; ++r) {
      if (elf.section[r].sh_type == SHT_RELA && elf.section[r].sh_info == i) {
        l.relocations = r;
      }
    }
    PESTLE_TRY(list_section(job, &l, out));
  }
  return NULL;
}

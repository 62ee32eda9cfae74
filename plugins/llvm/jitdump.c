// SPDX-License-Identifier: Apache-2.0
// PESTLE_JITDUMP=FOLDER: the code itself, for 'perf inject --jit', which makes objects
// of it that 'perf annotate' shows. Names and layout are perf's ("jitdump
// specification" of its documentation).
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "plugins/llvm/announce.h"

typedef struct dump_header_t {
  uint32_t magic, version, size, machine, unused, process;
  uint64_t time, flags;
} dump_header_t;

typedef struct dump_code_t {
  uint32_t kind, size;  // of the record with the name and the code
  uint64_t time;
  uint32_t process, thread;
  uint64_t address, code, code_size, number;
} dump_code_t;

enum { MAGIC = 0x4A695444, CODE_LOAD = 0 };

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);  // 'perf record -k mono'
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// The file of this process, locked; it begins with a header. That it is mapped is how
// perf learns of it: the mapping stays.
static int open_dump(const char* folder, const pestle_llvm_elf_t* elf) {
  char path[4096];
  struct stat info;
  Elf64_Ehdr header;
  snprintf(path, sizeof path, "%s/jit-%ld.dump", folder, (long)getpid());
  int file =
      open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return -1;
  if (flock(file, LOCK_EX) || fstat(file, &info)) goto failed;
  if (!S_ISREG(info.st_mode) || info.st_uid != geteuid()) {
    errno = EPERM;
    goto failed;
  }
  if (info.st_size) return file;
  memcpy(&header, elf->data, sizeof header);
  dump_header_t begin = {.magic = MAGIC,
                         .version = 1,
                         .size = sizeof begin,
                         .machine = header.e_machine,
                         .process = (uint32_t)getpid(),
                         .time = now()};
  if (write(file, &begin, sizeof begin) != (ssize_t)sizeof begin) goto failed;
  if (mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_EXEC,
           MAP_PRIVATE, file, 0) != MAP_FAILED) {
    return file;
  }
failed:
  close(file);
  return -1;
}

static bool write_code(int file, const pestle_llvm_elf_t* elf,
                       const uint64_t* address, const Elf64_Sym* symbol) {
  const char* name = pestle_llvm_elf_symbol_name(elf, symbol);
  if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || !name ||
      symbol->st_shndx >= elf->section_count || !address[symbol->st_shndx]) {
    return true;
  }
  char text[256];
  uint64_t at = address[symbol->st_shndx] + symbol->st_value;
  size_t name_size =
      1 + (size_t)snprintf(text, sizeof text, "pestle:%.200s", name);
  dump_code_t code = {.kind = CODE_LOAD,
                      .time = now(),
                      .process = (uint32_t)getpid(),
                      .thread = (uint32_t)syscall(SYS_gettid),
                      .address = at,
                      .code = at,
                      .code_size = symbol->st_size,
                      .number = at};
  code.size = (uint32_t)(sizeof code + name_size + symbol->st_size);
  struct iovec parts[] = {{&code, sizeof code},
                          {text, name_size},
                          {(void*)(uintptr_t)at, symbol->st_size}};
  return writev(file, parts, 3) == (ssize_t)code.size;
}

bool pestle_llvm_dump_code(const char* folder, const pestle_llvm_elf_t* elf,
                           const uint64_t* address) {
  int file = open_dump(folder, elf);
  if (file < 0) return false;
  bool ok = true;
  Elf64_Sym symbol;
  for (size_t i = 0; ok && pestle_llvm_elf_symbol(elf, i, &symbol); ++i)
    ok = write_code(file, elf, address, &symbol);
  close(file);  // and the lock with it
  return ok;
}

// SPDX-License-Identifier: Apache-2.0
#include "plugins/llvm/announce.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_asked(const char* name) {
  const char* value = secure_getenv(name);
  return value && *value && strcmp(value, "0") != 0;
}

static void complain(const pestle_host_t* host, const char* what) {
  char text[256];
  snprintf(text, sizeof text, "%s: %s; kernels run, but without names", what,
           strerror(errno));
  host->log(host->self, 1, text);
}

// --- perf ---

// The file of this process, for appending. Others may write into /tmp: a link
// or a file of theirs is not followed.
static int open_perf_map(void) {
  char path[64];
  struct stat info;
  snprintf(path, sizeof path, "/tmp/perf-%ld.map", (long)getpid());
  int file =
      open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return -1;
  if (!fstat(file, &info) && S_ISREG(info.st_mode) &&
      info.st_uid == geteuid()) {
    return file;
  }
  close(file);
  errno = EPERM;
  return -1;
}

// One write a line, so that threads and a child after fork() do not mix them.
static bool write_symbol(int file, const pestle_llvm_elf_t* elf,
                         const uint64_t* address, const Elf64_Sym* symbol) {
  const char* name = pestle_llvm_elf_symbol_name(elf, symbol);
  if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || !name ||
      symbol->st_shndx >= elf->section_count || !address[symbol->st_shndx]) {
    return true;
  }
  char line[256];
  int size = snprintf(
      line, sizeof line, "%llx %llx pestle:%.200s\n",
      (unsigned long long)(address[symbol->st_shndx] + symbol->st_value),
      (unsigned long long)symbol->st_size, name);
  return write(file, line, (size_t)size) == size;
}

static void write_perf_map(const pestle_host_t* host,
                           const pestle_llvm_elf_t* elf,
                           const uint64_t* address) {
  int file = open_perf_map();
  bool ok = file >= 0;
  Elf64_Sym symbol;
  for (size_t i = 0; ok && pestle_llvm_elf_symbol(elf, i, &symbol); ++i) {
    ok = write_symbol(file, elf, address, &symbol);
  }
  if (!ok) complain(host, "PESTLE_PERF_MAP: cannot write /tmp/perf-PID.map");
  if (file >= 0) close(file);
}

// --- GDB ---
// Names and layout are GDB's ("JIT Compilation Interface" of its manual): it
// sets a breakpoint in the function and reads the list.

typedef struct jit_entry_t jit_entry_t;
struct jit_entry_t {
  jit_entry_t* next;
  jit_entry_t* previous;
  const void* object;
  uint64_t object_size;
};

typedef struct jit_descriptor_t {
  uint32_t version;
  uint32_t action;  // 0: nothing, 1: added, 2: removed
  jit_entry_t* relevant;
  jit_entry_t* first;
} jit_descriptor_t;

// Seen by GDB also in a stripped file, and never another library's.
#define SEEN __attribute__((visibility("protected")))

SEEN extern jit_descriptor_t __jit_debug_descriptor;
SEEN void __jit_debug_register_code(void);

jit_descriptor_t __jit_debug_descriptor = {1, 0, NULL, NULL};
// The list is one a process, and contexts may load at the same time.
static pthread_mutex_t jit_mutex = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) void __jit_debug_register_code(void) {
  // Or calls of an empty function are left out.
  __asm__ volatile("" ::: "memory");
}

struct pestle_llvm_announced_t {
  jit_entry_t entry;
  // The object lies behind it.
};

static void tell_gdb(jit_entry_t* entry, uint32_t action) {
  __jit_debug_descriptor.relevant = entry;
  __jit_debug_descriptor.action = action;
  __jit_debug_register_code();
}

static void link_entry(jit_entry_t* entry) {
  pthread_mutex_lock(&jit_mutex);
  entry->next = __jit_debug_descriptor.first;
  if (entry->next) entry->next->previous = entry;
  __jit_debug_descriptor.first = entry;
  tell_gdb(entry, 1);
  pthread_mutex_unlock(&jit_mutex);
}

static void unlink_entry(jit_entry_t* entry) {
  pthread_mutex_lock(&jit_mutex);
  *(entry->previous ? &entry->previous->next : &__jit_debug_descriptor.first) =
      entry->next;
  if (entry->next) entry->next->previous = entry->previous;
  tell_gdb(entry, 2);
  pthread_mutex_unlock(&jit_mutex);
}

// A copy of the object in which sections have the addresses they were loaded
// at: GDB adds them to the symbols.
static pestle_llvm_announced_t* register_object(const pestle_host_t* host,
                                                const pestle_llvm_elf_t* elf,
                                                const uint64_t* address) {
  pestle_llvm_announced_t* announced =
      host->alloc(host->self, sizeof *announced + elf->size);
  if (!announced) {
    errno = ENOMEM;
    complain(host, "PESTLE_GDB");
    return NULL;
  }
  char* object = (char*)(announced + 1);
  Elf64_Ehdr header;
  memcpy(object, elf->data, elf->size);
  memcpy(&header, object, sizeof header);
  for (unsigned i = 0; i < elf->section_count; ++i) {
    char* at = object + header.e_shoff + i * sizeof(Elf64_Shdr) +
               offsetof(Elf64_Shdr, sh_addr);
    memcpy(at, &address[i], sizeof address[i]);
  }
  announced->entry = (jit_entry_t){NULL, NULL, object, elf->size};
  link_entry(&announced->entry);
  return announced;
}

// --- Both ---

pestle_llvm_announced_t* pestle_llvm_announce(const pestle_host_t* host,
                                              const pestle_llvm_elf_t* elf,
                                              const uint64_t* address) {
  if (is_asked("PESTLE_PERF_MAP")) write_perf_map(host, elf, address);
  if (is_asked("PESTLE_JITDUMP") &&
      !pestle_llvm_dump_code(secure_getenv("PESTLE_JITDUMP"), elf, address)) {
    complain(host, "PESTLE_JITDUMP: cannot write jit-PID.dump there");
  }
  return is_asked("PESTLE_GDB") ? register_object(host, elf, address) : NULL;
}

void pestle_llvm_withdraw(const pestle_host_t* host,
                          pestle_llvm_announced_t* announced) {
  if (!announced) return;
  unlink_entry(&announced->entry);
  host->free(host->self, announced,
             sizeof *announced + announced->entry.object_size);
}

// SPDX-License-Identifier: Apache-2.0
// Tells perf and GDB about loaded code, when the environment asks for it:
//   PESTLE_PERF_MAP=1  a line a kernel in /tmp/perf-PID.map, which perf reads
//   PESTLE_JITDUMP=FOLDER  the code too, in FOLDER/jit-PID.dump, which 'perf
//                      inject --jit' reads
//   PESTLE_GDB=1       GDB's JIT interface: breakpoints and backtraces know
//                      kernels by name
#ifndef PESTLE_PLUGINS_LLVM_ANNOUNCE_H_
#define PESTLE_PLUGINS_LLVM_ANNOUNCE_H_

#include "pestle/plugin.h"
#include "plugins/llvm/elf_object.h"

typedef struct pestle_llvm_announced_t pestle_llvm_announced_t;

// Announces the functions of |elf|, whose section i lies at |address|[i] (0:
// not loaded). Code runs as well unannounced: what goes wrong is only logged.
// NULL: nothing is to be withdrawn.
pestle_llvm_announced_t* pestle_llvm_announce(const pestle_host_t* host,
                                              const pestle_llvm_elf_t* elf,
                                              const uint64_t* address);
// Appends the functions of |elf| to the dump in |folder|. False, with errno: it cannot
// be written (jitdump.c).
bool pestle_llvm_dump_code(const char* folder, const pestle_llvm_elf_t* elf,
                           const uint64_t* address);
// Before the code is unmapped. |announced| may be NULL.
void pestle_llvm_withdraw(const pestle_host_t* host,
                          pestle_llvm_announced_t* announced);

#endif  // PESTLE_PLUGINS_LLVM_ANNOUNCE_H_

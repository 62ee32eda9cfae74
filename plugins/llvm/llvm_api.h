// SPDX-License-Identifier: Apache-2.0
// libLLVM as a table of functions, opened at the first compile and never
// closed. Nothing else in the plugin refers to a symbol of libLLVM.
#ifndef PESTLE_PLUGINS_LLVM_LLVM_API_H_
#define PESTLE_PLUGINS_LLVM_LLVM_API_H_

#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/Disassembler.h>
#include <llvm-c/Error.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include "pestle/plugin.h"

typedef struct pestle_llvm_api_t {
#define LLVM_FN(Name) __typeof__(&LLVM##Name) Name;
#include "plugins/llvm/llvm_api.def"
} pestle_llvm_api_t;

// Opens libLLVM when no thread has yet. UNAVAILABLE when the library or one of
// the functions is missing, naming the package to install; asked again, it
// tries again.
PESTLE_NODISCARD pestle_status_t
pestle_llvm_open(const pestle_host_t* host, const pestle_llvm_api_t** out);

// Writes the path of the libLLVM that pestle_llvm_open() would open, found
// without opening it; false when it lies in none of the usual places.
bool pestle_llvm_find(char* path, size_t capacity);

// Writes the GNU build id of ELF file |path| in hexadecimal, read as a file;
// false when there is none.
bool pestle_llvm_file_build_id(const char* path, char* out, size_t capacity);

#endif  // PESTLE_PLUGINS_LLVM_LLVM_API_H_

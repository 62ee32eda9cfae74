// SPDX-License-Identifier: Apache-2.0
// What LLVM makes code by, for a set of features.
#ifndef PESTLE_PLUGINS_LLVM_MACHINE_H_
#define PESTLE_PLUGINS_LLVM_MACHINE_H_

#include "plugins/llvm/emit.h"

#define PESTLE_LLVM_TRIPLE "x86_64-unknown-linux-gnu"

typedef struct pestle_llvm_machine_t {
  LLVMTargetMachineRef made;  // or NULL
  uint64_t features;
  bool is_quick;
} pestle_llvm_machine_t;

// One for the caller alone, until it gives it back. Any thread.
PESTLE_NODISCARD pestle_status_t pestle_llvm_machine_take(
    const pestle_host_t* host, const pestle_llvm_api_t* ll, uint64_t features,
    bool is_quick, pestle_llvm_machine_t* out_machine);
// Does nothing where |machine->made| is NULL. Not after a fatal error of LLVM, which
// may have left it in any state.
void pestle_llvm_machine_give(const pestle_llvm_api_t* ll,
                              pestle_llvm_machine_t* machine);

#endif  // PESTLE_PLUGINS_LLVM_MACHINE_H_

// SPDX-License-Identifier: Apache-2.0
// Artifacts into executable memory, without libLLVM.
#ifndef PESTLE_PLUGINS_LLVM_LOAD_H_
#define PESTLE_PLUGINS_LLVM_LOAD_H_

#include "pestle/plugin.h"

// |features|: what this machine has. MALFORMED for a damaged artifact,
// INCOMPATIBLE for one of another format or for a better CPU.
PESTLE_NODISCARD pestle_status_t pestle_llvm_load(const pestle_host_t* host,
                                                  uint64_t features,
                                                  const void* artifact,
                                                  size_t size,
                                                  pestle_loaded_t** out_loaded);
void pestle_llvm_unload(const pestle_host_t* host, pestle_loaded_t* loaded);
pestle_cpu_entry_t pestle_llvm_entry(const pestle_loaded_t* loaded);

#endif  // PESTLE_PLUGINS_LLVM_LOAD_H_

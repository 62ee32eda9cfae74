// SPDX-License-Identifier: Apache-2.0
// All differences between the LLVM versions that the plugin builds against.
#ifndef PESTLE_PLUGINS_LLVM_LLVM_VERSION_H_
#define PESTLE_PLUGINS_LLVM_LLVM_VERSION_H_

#include <llvm/Config/llvm-config.h>

#define PESTLE_LLVM_STRING_(x) #x
#define PESTLE_LLVM_STRING(x) PESTLE_LLVM_STRING_(x)
#define PESTLE_LLVM_MAJOR PESTLE_LLVM_STRING(LLVM_VERSION_MAJOR)

// From 18 on the shared library carries "major.minor" as its version.
#if LLVM_VERSION_MAJOR >= 18
#define PESTLE_LLVM_SONAME \
  "libLLVM.so." PESTLE_LLVM_MAJOR "." PESTLE_LLVM_STRING(LLVM_VERSION_MINOR)
#else
#define PESTLE_LLVM_SONAME "libLLVM-" PESTLE_LLVM_MAJOR ".so.1"
#endif

// LLVM's name of Zen 5, or of its nearest relative that it knows.
#if LLVM_VERSION_MAJOR >= 19
#define PESTLE_LLVM_ZNVER5 "znver5"
#else
#define PESTLE_LLVM_ZNVER5 "znver4"
#endif

#endif  // PESTLE_PLUGINS_LLVM_LLVM_VERSION_H_

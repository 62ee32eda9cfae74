// SPDX-License-Identifier: Apache-2.0
// A thread of its own for each call of LLVM, so that what LLVM calls a fatal
// error ("Cannot select: ...") costs one compilation and not the process.
//
// LLVM calls its handler of fatal errors on the thread that failed and ends the
// process when the handler returns. Other users of LLVM: clang's crash recovery
// jumps out of the handler with longjmp, LLVM.jl throws out of it, both across
// C++ frames whose destructors do not run; IREE and llvmpipe let the process
// end. Here the handler never returns and unwinds nothing: it hands the reason
// to whoever waits and puts its thread to sleep for good. This is defined
// behaviour, and everything that the frames point to stays alive.
//
// The price: such a thread, with the LLVM context, module and target machine
// that it was at, is lost until the process ends. Everything that compiles has
// those of its own, LLVM calls the handler without holding its lock, and code
// generation changes nothing of LLVM's that is shared, so that later
// compilations are as good as the ones before. Only their number is limited.
//
// The handler is the process's, as libLLVM is. A fatal error on a thread of
// somebody else who uses the same libLLVM goes on as it would without us.
#ifndef PESTLE_PLUGINS_LLVM_GUARD_H_
#define PESTLE_PLUGINS_LLVM_GUARD_H_

#include "plugins/llvm/llvm_api.h"

// So many lost compilations, and the compiler is not used any more.
#define PESTLE_LLVM_MAX_LOST 16

// Runs task(arg) on a thread of its own with a large stack, and returns what it
// returns. After a fatal error: UNSUPPORTED with LLVM's reason and |kernel|'s
// name, and |*out_lost|: |arg| may be freed then, but nothing of LLVM's in it.
// RESOURCE_EXHAUSTED when there is no thread; UNAVAILABLE when too many were
// lost.
PESTLE_NODISCARD pestle_status_t pestle_llvm_guard(
    const pestle_host_t* host, const char* kernel,
    pestle_status_t (*task)(void* arg), void* arg, bool* out_lost);

// The handler, for LLVMInstallFatalErrorHandler().
void pestle_llvm_on_fatal(const char* reason);

#endif  // PESTLE_PLUGINS_LLVM_GUARD_H_

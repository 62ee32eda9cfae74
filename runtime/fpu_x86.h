// SPDX-License-Identifier: Apache-2.0
// The floating-point state that kernels run in: round to nearest even, no
// traps, denormals kept. The application may have set another; it gets it back.
#ifndef PESTLE_RUNTIME_FPU_X86_H_
#define PESTLE_RUNTIME_FPU_X86_H_

typedef unsigned pestle_fpu_t;

#define PESTLE_FPU_CONTROL 0x1f80u  // MXCSR as the ABI has it at start
#define PESTLE_FPU_FLAGS 0x3fu      // exceptions that happened

// Enters the state of kernels and returns the one before.
static inline pestle_fpu_t pestle_fpu_enter(void) {
  pestle_fpu_t before = __builtin_ia32_stmxcsr();
  if ((before & ~PESTLE_FPU_FLAGS) != PESTLE_FPU_CONTROL) {
    __builtin_ia32_ldmxcsr(PESTLE_FPU_CONTROL);
  }
  return before;
}

static inline void pestle_fpu_leave(pestle_fpu_t before) {
  __builtin_ia32_ldmxcsr(before);
}

#endif  // PESTLE_RUNTIME_FPU_X86_H_

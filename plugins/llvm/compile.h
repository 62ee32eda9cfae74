// SPDX-License-Identifier: Apache-2.0
// One compilation: a context, a module and a target machine of its own, so
// that any number of threads compile at once.
#ifndef PESTLE_PLUGINS_LLVM_COMPILE_H_
#define PESTLE_PLUGINS_LLVM_COMPILE_H_

#include "plugins/llvm/emit.h"
#include "plugins/llvm/machine.h"

// Chosen by measurement (LLVM 19, Zen 4; a GEMM of 6 x 64 tiles, exp and swish
// elementwise): emission leaves nothing to promote or to vectorise, so merging
// equal addresses and moving invariants out is what is left to do. Against
// early-cse alone licm is free and catches loads that emission left inside.
// sroa, simplifycfg and instcombine on top give 4 % on exp and nothing on GEMM
// for 15 to 20 % more compile time. Selection is 80 % of a compile.
#ifndef PESTLE_LLVM_PASSES
#define PESTLE_LLVM_PASSES "function(early-cse,loop-mssa(licm))"
#endif
#ifndef PESTLE_LLVM_QUICK_PASSES
#define PESTLE_LLVM_QUICK_PASSES "function(early-cse)"
#endif

typedef struct pestle_llvm_job_t {
  pestle_llvm_emit_t emit;
  pestle_llvm_machine_t machine;
  LLVMMemoryBufferRef object;
  bool lost;  // to a fatal error: what is LLVM's is left alone
} pestle_llvm_job_t;

// Opens libLLVM and emits |kernel| for |cpu|: |out_job->emit.module| is what
// goes to the passes. |is_quick|: code soon rather than fast. Deinit in any case.
PESTLE_NODISCARD pestle_status_t pestle_llvm_job_init(
    const pestle_host_t* host, const pestle_llvm_cpu_t* cpu,
    const pestle_kir_t* kernel, bool is_quick, pestle_llvm_job_t* out_job);
// Runs the passes and instruction selection: |job->object|.
PESTLE_NODISCARD pestle_status_t pestle_llvm_job_run(pestle_llvm_job_t* job);
// Wraps the object as an artifact.
PESTLE_NODISCARD pestle_status_t
pestle_llvm_job_artifact(pestle_llvm_job_t* job, pestle_blob_t* out_artifact);
void pestle_llvm_job_deinit(pestle_llvm_job_t* job);

// Compiles |kernel| to an artifact; fatal errors of LLVM are statuses.
PESTLE_NODISCARD pestle_status_t pestle_llvm_compile(
    const pestle_host_t* host, const pestle_llvm_cpu_t* cpu,
    const pestle_kir_t* kernel, bool is_quick, pestle_blob_t* out_artifact);

// --- print.c ---

PESTLE_NODISCARD pestle_status_t pestle_llvm_print(const pestle_host_t* host,
                                                   const pestle_llvm_cpu_t* cpu,
                                                   const pestle_kir_t* kernel,
                                                   bool is_quick,
                                                   pestle_text_t kind,
                                                   pestle_blob_t* out_text);

// --- disassemble.c ---

// Appends the object's functions in Intel syntax.
PESTLE_NODISCARD pestle_status_t
pestle_llvm_disassemble(pestle_llvm_job_t* job, pestle_plugin_text_t* out);

#endif  // PESTLE_PLUGINS_LLVM_COMPILE_H_

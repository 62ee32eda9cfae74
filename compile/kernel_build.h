// SPDX-License-Identifier: Apache-2.0
// One kernel, from its fusion or direct op to legal Kernel IR for a target; shared by
// kernels.c, which lists them, and kernels_compile.c.
#ifndef PESTLE_COMPILE_KERNEL_BUILD_H_
#define PESTLE_COMPILE_KERNEL_BUILD_H_

#include "compile/kernels.h"

// What |node| computes, as the arena's text: "add, tanh (node 'act1')".
PESTLE_NODISCARD pestle_status_t pestle_kernel_describe(
    pestle_kernels_t* ks, const pestle_node_t* node, const char** out);
// Appends the kernel of |node|, of |group| of it unless that is a direct op. What
// the target refuses is built for the fallback. All is borrowed; |wanted| may be
// NULL.
PESTLE_NODISCARD pestle_status_t pestle_kernel_add(
    pestle_kernels_t* ks, const pestle_node_t* node,
    const pestle_kernel_group_t* group, pestle_kernel_places_t places,
    const char* ops, const char* wanted);
// Builds |k| anew for the fallback; |why| stays the caller's.
PESTLE_NODISCARD pestle_status_t pestle_kernel_replace(pestle_kernels_t* ks,
                                                       pestle_kernel_t* k,
                                                       pestle_status_t why);

// Makes kernels that differ by scalars alone the same (kernel_share.c).
PESTLE_NODISCARD pestle_status_t pestle_kernels_share(pestle_kernels_t* ks);
// Finds the kernels whose code a run does not notice (kernel_effort.c).
PESTLE_NODISCARD pestle_status_t pestle_kernels_rate(pestle_kernels_t* ks);
// Shows the code of |k| to who asked for PESTLE_STAGE_KERNELS.
PESTLE_NODISCARD pestle_status_t pestle_kernel_dump(const pestle_kernels_t* ks,
                                                    const pestle_kernel_t* k);

// Whether what the target said of a kernel sends it to the fallback.
bool pestle_kernel_is_refusal(const pestle_kernels_t* ks,
                              const pestle_kernel_t* k, pestle_status_t why);
// A refusal that would have been none without strict says so.
PESTLE_NODISCARD pestle_status_t pestle_kernel_say_strict(
    const pestle_kernels_t* ks, const pestle_kernel_t* k, pestle_status_t why);

#endif  // PESTLE_COMPILE_KERNEL_BUILD_H_

// SPDX-License-Identifier: Apache-2.0
// Kernels that a person wrote: calls of evals that are text (ir/custom_op.h).
#ifndef PESTLE_COMPILE_SOURCE_H_
#define PESTLE_COMPILE_SOURCE_H_

#include "compile/kernels.h"

// Makes |k|, whose node is such a call, for target |device|: of a source its text,
// with a signature for |k->legal|; of Kernel IR what is legal there.
PESTLE_NODISCARD pestle_status_t pestle_source_build(pestle_kernels_t* ks,
                                                     uint32_t device,
                                                     pestle_kernel_t* k);

// What the results of |node| are before its kernel runs, in |arena|; NULL where it
// does not matter.
PESTLE_NODISCARD pestle_status_t
pestle_source_initial(pestle_arena_t* arena, const pestle_node_t* node,
                      uint32_t result, const pestle_elements_t** out_elements);

#endif  // PESTLE_COMPILE_SOURCE_H_

// SPDX-License-Identifier: Apache-2.0
// `pestle explain`: what passes and sketches left as remarks, as text, one a
// kernel and one a question about the whole module.
#ifndef PESTLE_COMPILE_EXPLAIN_H_
#define PESTLE_COMPILE_EXPLAIN_H_

#include "codegen/nest/nest.h"
#include "compile/kernels.h"
#include "ir/remark.h"

// Keeps, in the arena of |kernels|, what is told of |k|, which is measured: the
// lines in |why| and how much it computes.
void pestle_explain_note(pestle_kernels_t* kernels, const pestle_strbuf_t* why,
                         pestle_kernel_t* k);

// Sends the texts of PESTLE_STAGE_EXPLAIN to the caller's dump: "layouts", one
// a kernel, "summary".
PESTLE_NODISCARD pestle_status_t pestle_explain_kernels(
    const pestle_kernels_t* kernels, const pestle_remarks_t* remarks);

// Sends the text "refused", if there is anything in it: kernels that the target
// took by its description and refused when it was to compile them.
PESTLE_NODISCARD pestle_status_t
pestle_explain_refused(const pestle_kernels_t* kernels);

// Sends the text "cache": whether the plan of |key| is in the cache; if not,
// what else the entry of the same module was made with that comes nearest. The
// first |head_size| bytes are lines of "what value", the others the module.
PESTLE_NODISCARD pestle_status_t pestle_explain_cache(
    pestle_context_t* context, const pestle_compile_options_t* options,
    pestle_str_t key, size_t head_size);

#endif  // PESTLE_COMPILE_EXPLAIN_H_

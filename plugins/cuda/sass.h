// SPDX-License-Identifier: Apache-2.0
// The machine code of a kernel as text, by the tool nvdisasm.
#ifndef PESTLE_PLUGINS_CUDA_SASS_H_
#define PESTLE_PLUGINS_CUDA_SASS_H_

#include "plugins/common/memory.h"

// Appends what nvdisasm makes of |cubin|, or a line that says why there is none.
void pestle_cuda_disassemble(const pestle_blob_t* cubin,
                             pestle_plugin_text_t* out);

#endif  // PESTLE_PLUGINS_CUDA_SASS_H_

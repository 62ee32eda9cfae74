// SPDX-License-Identifier: Apache-2.0
// The extension for layouts. Buffers are row-major, so there is one layout a rank;
// another one is refused where a program asks for it.
#ifndef PESTLE_PJRT_LAYOUTS_H_
#define PESTLE_PJRT_LAYOUTS_H_

#include <stddef.h>

#include "pestle/graph.h"
#include "pjrt/abi.h"

extern const PJRT_Layouts_Extension pestle_pjrt_layouts;

// The layout of a buffer of |rank| axes, for good; NULL: no buffer has so many.
PJRT_Layouts_MemoryLayout* pestle_pjrt_layout(size_t rank);

// UNIMPLEMENTED: the entry of |module| wants an argument or a result in a layout
// that is not row-major (mhlo.layout_mode).
PJRT_Error* pestle_pjrt_layouts_check(pestle_module_t* module);

#endif  // PESTLE_PJRT_LAYOUTS_H_

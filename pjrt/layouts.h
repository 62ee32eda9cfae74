// SPDX-License-Identifier: Apache-2.0
// Layouts: the extension that tells them, and programs that ask for one of an argument
// or a result (mhlo.layout_mode). Code is made for row-major tensors: a program that
// wants another order is wrapped by transposes, which fusion takes in.
#ifndef PESTLE_PJRT_LAYOUTS_H_
#define PESTLE_PJRT_LAYOUTS_H_

#include <stddef.h>

#include "base/arena.h"
#include "pestle/graph.h"
#include "pjrt/abi.h"
#include "pjrt/program.h"
#include "pjrt/shape.h"

extern const PJRT_Layouts_Extension pestle_pjrt_layouts;

// The layout of |shape|, in |arena|; NULL when out of memory.
PJRT_Layouts_MemoryLayout* pestle_pjrt_layout(pestle_arena_t* arena,
                                              const pestle_pjrt_shape_t* shape);

// What the entry of |module| asks for goes to |info|->orders, in |arena|: NULL where
// all is row-major. UNIMPLEMENTED: tiles; INVALID_ARGUMENT: no order of the axes.
PJRT_Error* pestle_pjrt_layouts_read(pestle_module_t* module,
                                     pestle_arena_t* arena,
                                     pestle_pjrt_program_info_t* info);
// |module|, taken over, with transposes around it as |info|->orders has them.
PJRT_Error* pestle_pjrt_layouts_wrap(pestle_context_t* context,
                                     const pestle_pjrt_program_info_t* info,
                                     pestle_arena_t* arena,
                                     pestle_module_t** module);

#endif  // PESTLE_PJRT_LAYOUTS_H_

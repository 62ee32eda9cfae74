// SPDX-License-Identifier: Apache-2.0
// From a scheduled nest to the flat form, once.
//
// codegen/emit/ writes loops, vectors, masks and copies as a schedule says.
// codegen/emit/ knows nothing of which schedule is good, nor of what a target
// lacks.
#ifndef PESTLE_CODEGEN_EMIT_EMIT_FLAT_H_
#define PESTLE_CODEGEN_EMIT_EMIT_FLAT_H_

#include "codegen/kir/kir_build.h"
#include "codegen/nest/nest.h"

// The arguments of the emitted kernel, in arg_slot order: nest tensors.
typedef struct pestle_emitted_t {
  uint32_t tensors[64];
  uint32_t count;
} pestle_emitted_t;

// Emits |nest| into |k| (initialised by the caller, finished here). Narrows
// axis extents while it works; the nest is as before on return.
PESTLE_NODISCARD pestle_status_t pestle_emit_flat(pestle_nest_t* nest,
                                                  pestle_numerics_t numerics,
                                                  pestle_kir_builder_t* k,
                                                  pestle_emitted_t* out_args);

#endif  // PESTLE_CODEGEN_EMIT_EMIT_FLAT_H_

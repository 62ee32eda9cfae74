// SPDX-License-Identifier: Apache-2.0
// Element by element combinations of arrays, in the order in which they are given:
// the same bits however the elements are shared out.
#ifndef PESTLE_RUNTIME_COMBINE_H_
#define PESTLE_RUNTIME_COMBINE_H_

#include <stddef.h>

#include "pestle/collective.h"

// out[i] = in[0][i] op in[1][i] op ... of |arrays| >= 1 arrays of |count| elements.
// |out| overlaps none of them. False: |dtype| is none that |reduction| takes.
bool pestle_combine(pestle_reduction_t reduction, pestle_dtype_t dtype,
                    void* out, const void* const* in, size_t arrays,
                    size_t count);
// Whether it would.
bool pestle_combines(pestle_reduction_t reduction, pestle_dtype_t dtype);

// A collective that brings the members' heads alone: they tell what differs between
// their |op|.
pestle_collective_t pestle_collective_heads(const pestle_collective_t* op);

#endif  // PESTLE_RUNTIME_COMBINE_H_

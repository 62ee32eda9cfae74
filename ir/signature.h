// SPDX-License-Identifier: Apache-2.0
// The canonical binary form, from which the signature is taken.
#ifndef PESTLE_IR_SIGNATURE_H_
#define PESTLE_IR_SIGNATURE_H_

#include "base/str.h"
#include "ir/graph.h"

// Appends the canonical form to |out| and gives its hash. Two modules have
// equal bytes iff they compute the same by the same ops: names, locations,
// labels, ops that nothing needs and the order of independent ops leave no
// trace; ops with effects keep their order. A constant appears as type, length
// in bytes and 128-bit hash, a dense one whose elements are all equal as a
// splat.
PESTLE_NODISCARD pestle_status_t pestle_module_canonical(
    const pestle_module_t* module, pestle_strbuf_t* out, uint64_t out_hash[2]);

#endif  // PESTLE_IR_SIGNATURE_H_

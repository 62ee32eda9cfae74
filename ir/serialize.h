// SPDX-License-Identifier: Apache-2.0
// The binary form of a module, for the inside of Pestle.
#ifndef PESTLE_IR_SERIALIZE_H_
#define PESTLE_IR_SERIALIZE_H_

#include "ir/graph.h"

typedef enum pestle_deserialize_flag_e {
  // Constants stay in the given memory, which must outlive the module and lie
  // at a multiple of 64 bytes; their hashes are then not checked.
  PESTLE_DESERIALIZE_BORROW = 1,
} pestle_deserialize_flag_t;

// pestle_module_deserialize() with flags. MALFORMED for damaged bytes,
// INCOMPATIBLE for another version; the bytes are never trusted.
PESTLE_NODISCARD pestle_status_t pestle_module_deserialize_flags(
    pestle_context_t* context, const void* data, size_t size, unsigned flags,
    pestle_module_t** out_module);

#endif  // PESTLE_IR_SERIALIZE_H_

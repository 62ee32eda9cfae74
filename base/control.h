// SPDX-License-Identifier: Apache-2.0
// A caller's pestle_control_t, read only as far as its struct_size says.
#ifndef PESTLE_BASE_CONTROL_H_
#define PESTLE_BASE_CONTROL_H_

#include <string.h>

#include "pestle/context.h"

// Copies |control| to |*own|, fields that the caller does not know being 0, and
// points |*out_control| there; NULL stays NULL. INVALID_ARGUMENT: the struct_size
// is not set.
static inline pestle_status_t pestle_control_read(
    const pestle_control_t* control, pestle_control_t* own,
    const pestle_control_t** out_control) {
  *own = (pestle_control_t){.struct_size = sizeof(*own)};
  *out_control = control ? own : NULL;
  if (!control) return NULL;
  size_t size = control->struct_size;
  if (size < sizeof(size_t)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_control_t.struct_size is not set");
  }
  memcpy(own, control, size < sizeof(*own) ? size : sizeof(*own));
  return NULL;
}

#endif  // PESTLE_BASE_CONTROL_H_

// SPDX-License-Identifier: Apache-2.0
// Where an op runs.
#ifndef PESTLE_LAZY_PLACE_H_
#define PESTLE_LAZY_PLACE_H_

#include "lazy/lazy.h"

// The device of |r|'s operands, numbers that adapt left out. INVALID_ARGUMENT:
// several devices or contexts, or none.
PESTLE_NODISCARD pestle_status_t pestle_place(const pestle_record_t* r,
                                              pestle_device_t** out_device);

#endif  // PESTLE_LAZY_PLACE_H_

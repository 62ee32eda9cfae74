// SPDX-License-Identifier: Apache-2.0
// The check that a module survives its own text and binary forms.
#ifndef PESTLE_PASSES_ROUND_TRIP_H_
#define PESTLE_PASSES_ROUND_TRIP_H_

#include "ir/graph.h"

// Prints and parses, serialises and loads |module| and compares signatures.
// INTERNAL says which form lost something.
PESTLE_NODISCARD pestle_status_t pestle_passes_round_trip(
    pestle_context_t* context, const pestle_module_t* module);

#endif  // PESTLE_PASSES_ROUND_TRIP_H_

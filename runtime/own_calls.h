// SPDX-License-Identifier: Apache-2.0
// Functions that every context has for custom calls, under names that begin with
// "pestle.".
#ifndef PESTLE_RUNTIME_OWN_CALLS_H_
#define PESTLE_RUNTIME_OWN_CALLS_H_

#include "pestle/custom_call.h"

// Fills |out_info| in for |name|; false when there is no such function.
bool pestle_own_call(const pestle_context_t* context, const char* name,
                     pestle_custom_call_info_t* out_info);

#endif  // PESTLE_RUNTIME_OWN_CALLS_H_

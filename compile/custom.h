// SPDX-License-Identifier: Apache-2.0
// Which functions and ops of the context a module uses.
#ifndef PESTLE_COMPILE_CUSTOM_H_
#define PESTLE_COMPILE_CUSTOM_H_

#include "base/str.h"
#include "ir/graph.h"
#include "pestle/custom_call.h"
#include "pestle/plugin.h"

// Appends a line with name and version for each function that |module| calls, and
// of each op by name what of it can change a plan, so that who asks why a plan is
// not in the cache reads which op has changed; behind them a line about the rest of
// the module. NOT_FOUND names all that |context| has not; UNSUPPORTED: an op by name
// has neither a body nor an eval.
PESTLE_NODISCARD pestle_status_t pestle_custom_calls_key(
    const pestle_context_t* context, const pestle_target_caps_t* caps,
    const pestle_module_t* module, pestle_strbuf_t* key);

// Begins the line about the rest of the module.
#define PESTLE_KEY_REST "rest "

#endif  // PESTLE_COMPILE_CUSTOM_H_

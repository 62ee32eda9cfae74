// SPDX-License-Identifier: Apache-2.0
// Which functions of the context a module calls.
#ifndef PESTLE_COMPILE_CUSTOM_H_
#define PESTLE_COMPILE_CUSTOM_H_

#include "base/str.h"
#include "ir/graph.h"
#include "pestle/custom_call.h"

// Appends a line with name and version for each function that |module| calls.
// NOT_FOUND names all that |context| has not; UNSUPPORTED: an op by name has no
// body.
PESTLE_NODISCARD pestle_status_t
pestle_custom_calls_key(const pestle_context_t* context,
                        const pestle_module_t* module, pestle_strbuf_t* key);

#endif  // PESTLE_COMPILE_CUSTOM_H_

// SPDX-License-Identifier: Apache-2.0
// StableHLO in MLIR bytecode: portable artifacts (the versioned dialect vhlo, 0.9.0
// to 1.20.0) and bytecode of StableHLO itself, to a module: docs/adr/026.
#ifndef PESTLE_FRONTEND_STABLEHLO_IMPORT_H_
#define PESTLE_FRONTEND_STABLEHLO_IMPORT_H_

#include "pestle/context.h"
#include "pestle/graph.h"

// Reads |size| bytes at |data|, which may go afterwards. |name| (may be NULL) is
// the file in messages. MALFORMED: damaged bytes or an illegal program, with the
// op and its location; UNSUPPORTED: every op at once that Pestle does not know,
// with its version and location, or a newer format; RESOURCE_EXHAUSTED: composites
// or texts past all limits.
PESTLE_NODISCARD pestle_status_t pestle_import_stablehlo(
    pestle_context_t* context, const void* data, size_t size, const char* name,
    pestle_module_t** out_module);

#endif  // PESTLE_FRONTEND_STABLEHLO_IMPORT_H_

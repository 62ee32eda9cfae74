// SPDX-License-Identifier: Apache-2.0
// The three ways in which a scan is one kernel.
#ifndef PESTLE_CODEGEN_DIRECT_DIRECT_SCAN_H_
#define PESTLE_CODEGEN_DIRECT_DIRECT_SCAN_H_

#include "base/arena.h"
#include "codegen/direct/direct.h"
#include "ir/scan_rows.h"

// Buffers of the operands, then of the results, of the group around |s|.
PESTLE_NODISCARD pestle_status_t
pestle_direct_scan_buffers(pestle_direct_t* d, pestle_arena_t* arena,
                           const pestle_scan_t* s, uint32_t** out_buffers);
// Elements by themselves, in vectors; |ops| simple operations an element and turn.
PESTLE_NODISCARD pestle_status_t pestle_direct_scan_wide(pestle_direct_t* d,
                                                         const pestle_scan_t* s,
                                                         int64_t elements,
                                                         int64_t ops);

// By rows, of whose elements |r| says what they are made of.
PESTLE_NODISCARD pestle_status_t pestle_direct_scan_rows(
    pestle_direct_t* d, const pestle_scan_t* s, const pestle_scan_rows_t* r);

#endif  // PESTLE_CODEGEN_DIRECT_DIRECT_SCAN_H_

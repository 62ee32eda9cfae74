// SPDX-License-Identifier: Apache-2.0
// A status once more: for another holder, or as another code.
#ifndef PESTLE_BASE_STATUS_COPY_H_
#define PESTLE_BASE_STATUS_COPY_H_

#include "pestle/status.h"

// Adds a holder of |status|, which may be NULL, and returns it. Each holder may
// annotate, join and release it as its own: what others hold stays as it is.
pestle_status_t pestle_status_retain(pestle_status_t status);

// A copy of |status|, which is not NULL, with its place, message and notes, as
// |code|.
PESTLE_NODISCARD pestle_status_t pestle_status_copy(pestle_status_t status,
                                                    pestle_status_code_t code);

#endif  // PESTLE_BASE_STATUS_COPY_H_

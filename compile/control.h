// SPDX-License-Identifier: Apache-2.0
// How a caller follows a compilation and stops it: pestle_control_t.
#ifndef PESTLE_COMPILE_CONTROL_H_
#define PESTLE_COMPILE_CONTROL_H_

#include "pestle/compile.h"

// Reports that |done| of |total| pieces of |stage| are done. CANCELLED or
// DEADLINE_EXCEEDED when |control| (may be NULL) says so.
PESTLE_NODISCARD pestle_status_t
pestle_control_check(const pestle_control_t* control, const char* stage,
                     int64_t done, int64_t total);
// Whether the caller has cancelled, or the deadline has passed; for any thread, reports
// nothing.
bool pestle_control_is_over(const pestle_control_t* control);

#endif  // PESTLE_COMPILE_CONTROL_H_

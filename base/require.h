// SPDX-License-Identifier: Apache-2.0
// The check that every public function begins with.
#ifndef PESTLE_BASE_REQUIRE_H_
#define PESTLE_BASE_REQUIRE_H_

#include "pestle/status.h"

// INVALID_ARGUMENT from the enclosing function, a public one, unless
// |condition|: "pestle_import_file needs |what|".
#define PESTLE_REQUIRE(condition, what)                                       \
  do {                                                                        \
    if (!(condition)) {                                                       \
      return PESTLE_ERROR(INVALID_ARGUMENT, "%s needs %s", __func__, (what)); \
    }                                                                         \
  } while (0)

#endif  // PESTLE_BASE_REQUIRE_H_

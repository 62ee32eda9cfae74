// SPDX-License-Identifier: Apache-2.0
// The versions of StableHLO that programs may come in. The framework writes the
// current one, or its own if that is older.
#ifndef PESTLE_PJRT_VERSIONS_H_
#define PESTLE_PJRT_VERSIONS_H_

#define PESTLE_PJRT_STABLEHLO_CURRENT 1, 20, 0
#define PESTLE_PJRT_STABLEHLO_MINIMUM 0, 9, 0

#endif  // PESTLE_PJRT_VERSIONS_H_

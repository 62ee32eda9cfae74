// SPDX-License-Identifier: Apache-2.0
// Everything an application needs. Plugins include pestle/plugin.h instead.
#ifndef PESTLE_PESTLE_H_
#define PESTLE_PESTLE_H_

#include "pestle/allocator.h"
#include "pestle/compile.h"
#include "pestle/context.h"
#include "pestle/graph.h"
#include "pestle/import.h"
#include "pestle/runtime.h"
#include "pestle/status.h"
#include "pestle/tensor.h"
#include "pestle/types.h"

#endif  // PESTLE_PESTLE_H_

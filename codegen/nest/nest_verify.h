// SPDX-License-Identifier: Apache-2.0
// Checks a nest. A failure is a fault of Pestle's own: INTERNAL, naming the
// stage and the rule that it breaks.
#ifndef PESTLE_CODEGEN_NEST_NEST_VERIFY_H_
#define PESTLE_CODEGEN_NEST_NEST_VERIFY_H_

#include "codegen/nest/nest.h"
#include "pestle/plugin.h"

typedef enum pestle_nest_level_e {
  // Types of expressions; reads inside their tensor by box arithmetic, or
  // guarded; reductions have an associative row, or a start and a step; outputs are
  // written once where that can be decided; stages read earlier ones only.
  PESTLE_NEST_LOWERED,
  // And: every stage is inlined or has a place and a scope that fits; all its
  // readers run under the loop that it is placed under; loops are the leaves of
  // its axes; marks are where they may be.
  PESTLE_NEST_SCHEDULED,
} pestle_nest_level_t;

// |caps| (NULL: any machine) bounds scratch at SCHEDULED.
PESTLE_NODISCARD pestle_status_t
pestle_nest_verify(pestle_nest_t* nest, pestle_nest_level_t level,
                   const pestle_target_caps_t* caps);

#endif  // PESTLE_CODEGEN_NEST_NEST_VERIFY_H_

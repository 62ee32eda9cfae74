// SPDX-License-Identifier: Apache-2.0
// Loops with a bound on their turns.
#ifndef PESTLE_TRANSFORM_BOUNDED_H_
#define PESTLE_TRANSFORM_BOUNDED_H_

#include "transform/scan_build.h"

// Makes a scan of |turns| turns of |loop|, a while, which reads |captured| from outside;
// |out| has what takes the place of its results. False: a failure, which is kept.
bool pestle_while_bounded(pestle_jvp_t* j, pestle_node_t* loop, int64_t turns,
                          const pestle_values_t* captured, pv_t** out);

#endif  // PESTLE_TRANSFORM_BOUNDED_H_

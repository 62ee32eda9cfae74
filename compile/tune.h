// SPDX-License-Identifier: Apache-2.0
// Measuring schedules: what a lock is made of.
#ifndef PESTLE_COMPILE_TUNE_H_
#define PESTLE_COMPILE_TUNE_H_

#include "compile/kernels.h"

// Measures, for the seconds that the options say, the options of each kernel of |kernels| that
// |lock| has no measured line for, those with most work first, and puts what was
// found into |lock|; kernels that time does not suffice for get their usual
// choices. Kernels run alone, on the target's device, with the pool of the
// context, on random inputs and their own constants. An option is taken when it
// is clearly faster and gives the same bits. Stops as the compilation's control
// says. UNSUPPORTED: a target that cannot run here.
PESTLE_NODISCARD pestle_status_t pestle_tune(pestle_kernels_t* kernels,
                                             pestle_lockfile_t* lock);

#endif  // PESTLE_COMPILE_TUNE_H_

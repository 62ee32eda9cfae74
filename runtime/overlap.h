// SPDX-License-Identifier: Apache-2.0
// Collectives beside the other steps of a plan, on devices whose transport has that and on
// CPUs.
#ifndef PESTLE_RUNTIME_OVERLAP_H_
#define PESTLE_RUNTIME_OVERLAP_H_

#include "runtime/device_comm.h"

// Fills |executable|->waits and ->beside, both by step, where a collective has something
// to run beside; all else of the executable is there.
PESTLE_NODISCARD pestle_status_t
pestle_overlap_find(pestle_executable_t* executable, uint32_t step_count);

// Before |step|: what is queued next comes behind the collectives that it must wait for. On
// a CPU, whose |queue| is NULL, they are done.
PESTLE_NODISCARD pestle_status_t pestle_overlap_wait(
    const pestle_executable_t* executable, pestle_frame_t* frame,
    const pestle_queue_t* queue, uint32_t step, pestle_world_t* world);

#endif  // PESTLE_RUNTIME_OVERLAP_H_

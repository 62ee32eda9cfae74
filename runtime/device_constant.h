// SPDX-License-Identifier: Apache-2.0
// Constants in the memory of devices other than CPUs: uploaded once for all
// executables of a context that run on the device, whatever plans they are of.
#ifndef PESTLE_RUNTIME_DEVICE_CONSTANT_H_
#define PESTLE_RUNTIME_DEVICE_CONSTANT_H_

#include "base/map.h"
#include "base/thread.h"
#include "runtime/plan.h"

struct pestle_block_t;

typedef struct pestle_device_constant_t pestle_device_constant_t;

typedef struct pestle_device_constants_t {
  pestle_context_t* context;
  pestle_mutex_t mutex;  // held during an upload too: nobody uploads twice
  pestle_map_t map;      // key -> pestle_device_constant_t*
} pestle_device_constants_t;

void pestle_device_constants_init(pestle_context_t* context,
                                  pestle_device_constants_t* out_constants);
void pestle_device_constants_deinit(pestle_device_constants_t* constants);
void pestle_device_constants_after_fork(pestle_device_constants_t* constants);

// Constant |index| of |plan|, whose bytes are at |data|, on |device|, to be released.
PESTLE_NODISCARD pestle_status_t pestle_device_constant_get(
    const pestle_plan_t* plan, uint32_t index, const void* data,
    pestle_device_t* device, pestle_device_constant_t** out_constant);
// NULL is allowed.
void pestle_device_constant_release(pestle_context_t* context,
                                    pestle_device_constant_t* constant);
// Its first byte, as the device addresses it.
char* pestle_device_constant_data(const pestle_device_constant_t* constant);

#endif  // PESTLE_RUNTIME_DEVICE_CONSTANT_H_

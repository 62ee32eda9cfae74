// SPDX-License-Identifier: Apache-2.0
// The built-in backend `ref`: interprets any flat kernel on the CPU. It needs
// no library and no toolchain, so it is what a device falls back to, and what
// every target's code is held against. The registry reaches it by these two
// names, as it reaches a shared plugin's entry points.
#ifndef PESTLE_PLUGINS_REF_REF_H_
#define PESTLE_PLUGINS_REF_REF_H_

#include "pestle/plugin.h"

const pestle_backend_abi_info_t* pestle_ref_backend_abi_info(void);

// The backend, to be given back through its deinit; |host| outlives it. NULL
// with a failing |*out_status| out of memory.
const pestle_backend_t* pestle_ref_backend_init(const pestle_host_t* host,
                                                pestle_status_t* out_status);

#endif  // PESTLE_PLUGINS_REF_REF_H_

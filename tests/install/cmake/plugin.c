// SPDX-License-Identifier: Apache-2.0
// Only shows that a plugin compiles against the installed headers alone.
#include "pestle/plugin.h"

PESTLE_EXPORT const pestle_backend_abi_info_t* pestle_backend_abi_info(void);

const pestle_backend_abi_info_t* pestle_backend_abi_info(void) {
  return NULL;
}

// SPDX-License-Identifier: Apache-2.0
// Python callbacks: the custom call that the Python side writes for them.
#ifndef PESTLE_PJRT_CALLBACK_H_
#define PESTLE_PJRT_CALLBACK_H_

#include "pjrt/client.h"

#define PESTLE_PJRT_CALLBACK_TARGET "pjrt.python_callback"

// Registers the call's function in the client's context.
PJRT_Error* pestle_pjrt_callback_register(PJRT_Client* client);
// Whether the caller is a callback of this device: what it starts must be run by
// itself, since the device's thread is waiting for it.
bool pestle_pjrt_in_callback(const PJRT_Device* device);

#endif  // PESTLE_PJRT_CALLBACK_H_

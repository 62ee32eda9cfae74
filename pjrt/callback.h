// SPDX-License-Identifier: Apache-2.0
// Python callbacks: the custom call that the Python side writes for them.
#ifndef PESTLE_PJRT_CALLBACK_H_
#define PESTLE_PJRT_CALLBACK_H_

#include "pjrt/client.h"

#define PESTLE_PJRT_CALLBACK_TARGET "pjrt.python_callback"

// The number of the callback that a call says, as a string or as "index" of a
// dictionary. False where it says none.
bool pestle_pjrt_callback_index(const char* config, const char* dictionary,
                                int64_t* out_index);
// Tells the Python side that callback |index| is needed, or not any more.
void pestle_pjrt_callback_hold(const PJRT_Client* client, int64_t index,
                               bool is_held);
// Registers the call's function in the client's context.
PJRT_Error* pestle_pjrt_callback_register(PJRT_Client* client);
// Whether the caller is a callback of this device: what it starts must be run by
// itself, since the device's thread is waiting for it.
bool pestle_pjrt_in_callback(const PJRT_Device* device);

#endif  // PESTLE_PJRT_CALLBACK_H_

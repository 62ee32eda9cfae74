// SPDX-License-Identifier: Apache-2.0
// Executables that a cache of the context holds, and a quick look at buffers: what lazy/
// sees of the runtime beside its public functions.
#ifndef PESTLE_RUNTIME_OWNED_H_
#define PESTLE_RUNTIME_OWNED_H_

#include "pestle/runtime.h"

// From now on |executable| does not keep its context alive: whoever holds it is
// held by the context, or keeps it alive by other means. Call it once, before
// another thread knows the executable.
void pestle_executable_own_by_context(pestle_executable_t* executable);

// Whether the contents of |buffer| are there, and no run that made them failed; false
// where that takes a closer look.
bool pestle_buffer_is_made(const pestle_buffer_t* buffer);

#endif  // PESTLE_RUNTIME_OWNED_H_

// SPDX-License-Identifier: Apache-2.0
// Whether a GPU lays out the fragments of its matrix units as Kernel IR has
// them, which no specification says: docs/adr/012-fragments-of-metal.md.
#ifndef PESTLE_PLUGINS_METAL_PROBE_H_
#define PESTLE_PLUGINS_METAL_PROBE_H_

#include <stdbool.h>
#include <stddef.h>

// Floats that the probe takes as its only argument: a, b and what it makes of
// them, 8 x 8 each. One group of 32 lanes.
enum { PESTLE_METAL_PROBE_FLOATS = 192, PESTLE_METAL_PROBE_LANES = 32 };

#define PESTLE_METAL_PROBE_NAME "pestle_probe"

// The text of a kernel that multiplies as all kernels with units do; what it
// needs of |capacity| with its 0, at most 4096.
size_t pestle_metal_probe_text(char* text, size_t capacity);
// Sets a and b.
void pestle_metal_probe_fill(float* x);
// Whether the rest of |x| is their product added to the places' numbers.
bool pestle_metal_probe_agrees(const float* x);

#endif  // PESTLE_PLUGINS_METAL_PROBE_H_

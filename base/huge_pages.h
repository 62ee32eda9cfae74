// SPDX-License-Identifier: Apache-2.0
// Large pages of the system's memory.
#ifndef PESTLE_BASE_HUGE_PAGES_H_
#define PESTLE_BASE_HUGE_PAGES_H_

#include <stddef.h>

// The alignment from which pestle_advise_huge() has an effect.
#define PESTLE_HUGE_PAGE ((size_t)2 << 20)

// Asks for pages of PESTLE_HUGE_PAGE under the whole ones of |data|, which is
// aligned so and not touched yet. A hint.
void pestle_advise_huge(void* data, size_t size);

#endif  // PESTLE_BASE_HUGE_PAGES_H_

// SPDX-License-Identifier: Apache-2.0
// Planted faults. PESTLE_FAULT(name) is false: only tests build the files that use it
// a second time, with PESTLE_FAULTS, to prove that each fault is found when it is
// switched on: tests/random those of the compiler, tests/robust those that begin with
// trust_. No library that is installed has them.
#ifndef PESTLE_BASE_FAULT_H_
#define PESTLE_BASE_FAULT_H_

#include <stdbool.h>

#ifdef PESTLE_FAULTS
// Whether the environment variable PESTLE_FAULT is |name| (tests/random).
bool pestle_fault_is_on(const char* name);
#define PESTLE_FAULT(name) pestle_fault_is_on(#name)
#else
#define PESTLE_FAULT(name) false
#endif

#endif  // PESTLE_BASE_FAULT_H_

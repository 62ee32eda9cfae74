// SPDX-License-Identifier: Apache-2.0
// Chooses the planted fault: the one that the environment names.
#include "base/fault.h"

#include <stdlib.h>
#include <string.h>

bool pestle_fault_is_on(const char* name) {
  const char* wanted = getenv("PESTLE_FAULT");
  return wanted && !strcmp(wanted, name);
}

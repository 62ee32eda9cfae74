// SPDX-License-Identifier: Apache-2.0
// The only file that is compiled anew when any source has changed.
#include "pestle/version.h"

#include "pestle_build_id.h"

const char* pestle_version(void) {
  return PESTLE_VERSION_STRING;
}

const char* pestle_build_id(void) {
  return PESTLE_BUILD_ID;
}

uint64_t pestle_build_id_u64(void) {
  const char* digits = PESTLE_BUILD_ID;
  uint64_t value = 0;
  for (int i = 0; i < 16; ++i) {
    int digit = digits[i] <= '9' ? digits[i] - '0' : digits[i] - 'a' + 10;
    value = value << 4 | (uint64_t)digit;
  }
  return value;
}

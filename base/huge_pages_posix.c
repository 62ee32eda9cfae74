// SPDX-License-Identifier: Apache-2.0
#include "base/huge_pages.h"

#include <stdint.h>
#include <sys/mman.h>

void pestle_advise_huge(void* data, size_t size) {
  size_t whole = size & ~(PESTLE_HUGE_PAGE - 1);
  if (whole && !((uintptr_t)data & (PESTLE_HUGE_PAGE - 1))) {
    (void)madvise(data, whole, MADV_HUGEPAGE);
  }
}

// SPDX-License-Identifier: Apache-2.0
// What the command asks of the operating system and base/ does not offer.
#include <sys/resource.h>
#include <unistd.h>

#include "cli.h"

bool cli_is_terminal(FILE* file) {
  return isatty(fileno(file)) == 1;
}

int64_t cli_peak_rss_kb(void) {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) ? 0 : (int64_t)usage.ru_maxrss;
}

// SPDX-License-Identifier: Apache-2.0
// Included before the file that forks children to try plugins, in a build that counts
// branches: a child keeps its counts too, which _exit() alone would lose.
#ifndef PESTLE_TOOLS_RELIABILITY_COVERAGE_EXIT_H_
#define PESTLE_TOOLS_RELIABILITY_COVERAGE_EXIT_H_

#include <unistd.h>

int __llvm_profile_write_file(void);
#define _exit(code) (__llvm_profile_write_file(), (_exit)(code))

#endif  // PESTLE_TOOLS_RELIABILITY_COVERAGE_EXIT_H_

// SPDX-License-Identifier: Apache-2.0
// Included before the file that forks children to try plugins, in a build that counts
// branches: a child keeps its counts too, which _exit() alone would lose.
#ifndef PESTLE_TOOLS_RELIABILITY_COVERAGE_EXIT_H_
#define PESTLE_TOOLS_RELIABILITY_COVERAGE_EXIT_H_

#include <unistd.h>

int __llvm_profile_write_file(void);

// A function: what gives the code may be all that the child does.
static inline _Noreturn void pestle_coverage_exit(int code) {
  __llvm_profile_write_file();
  (_exit)(code);
}
#define _exit(code) pestle_coverage_exit(code)

#ifdef PESTLE_COVERAGE_KILLS
// A child that has said all is ended at once, while it writes its counts: the file that
// it leaves then is damaged. It is given half a second.
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

static inline int pestle_coverage_kill(pid_t pid, int number) {
  for (int i = 0; i < 500; ++i) {
    siginfo_t info = {.si_pid = 0};
    if (waitid(P_PID, (id_t)abs(pid), &info, WEXITED | WNOHANG | WNOWAIT) ||
        info.si_pid) {
      break;
    }
    usleep(1000);
  }
  return (kill)(pid, number);
}
#define kill(pid, number) pestle_coverage_kill((pid), (number))
#endif

#endif  // PESTLE_TOOLS_RELIABILITY_COVERAGE_EXIT_H_

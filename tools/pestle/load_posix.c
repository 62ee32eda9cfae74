// SPDX-License-Identifier: Apache-2.0
// How busy a machine is: the times of its processors in /proc/stat beside those of
// this process. Elsewhere than on Linux nothing is known.
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "cli.h"

// Busy: all but idle and waiting for disks. What a hypervisor takes counts, guests
// are in the first two.
enum { USER, NICE, SYSTEM, IDLE, IO_WAIT, IRQ, SOFT_IRQ, STEAL, FIELDS };

static double busy_ticks(const char* line, int* out_processor) {
  unsigned long long t[FIELDS] = {0};
  *out_processor = -1;
  int read = sscanf(line, "cpu%d %llu %llu %llu %llu %llu %llu %llu %llu",
                    out_processor, &t[USER], &t[NICE], &t[SYSTEM], &t[IDLE],
                    &t[IO_WAIT], &t[IRQ], &t[SOFT_IRQ], &t[STEAL]);
  if (read < 5) *out_processor = -1;
  return (double)(t[USER] + t[NICE] + t[SYSTEM] + t[IRQ] + t[SOFT_IRQ] +
                  t[STEAL]);
}

static double seconds(const struct timeval* t) {
  return (double)t->tv_sec + (double)t->tv_usec * 1e-6;
}

static bool may_use(const cpu_set_t* set, int processor) {
  return processor >= 0 && processor < CPU_SETSIZE &&
         CPU_ISSET((size_t)processor, set);
}

void cli_load_read(cli_load_t* out_load) {
  *out_load = (cli_load_t){.at_ns = pestle_clock_ns()};
  cpu_set_t set;
  struct rusage usage;
  char line[512];
  double ticks = (double)sysconf(_SC_CLK_TCK);
  FILE* file = fopen("/proc/stat", "r");
  if (sched_getaffinity(0, sizeof(set), &set)) CPU_ZERO(&set);
  while (file && fgets(line, sizeof(line), file)) {
    if (strncmp(line, "cpu", 3) != 0) break;
    int processor;
    double busy = busy_ticks(line, &processor);
    if (!may_use(&set, processor)) continue;
    out_load->busy_s += busy / ticks;
    out_load->is_known = true;
  }
  if (file) fclose(file);
  if (getrusage(RUSAGE_SELF, &usage)) out_load->is_known = false;
  out_load->own_s = seconds(&usage.ru_utime) + seconds(&usage.ru_stime);
}

double cli_load_of_others(const cli_load_t* before, const cli_load_t* after) {
  double spent = (double)(after->at_ns - before->at_ns) * 1e-9;
  if (!before->is_known || !after->is_known || spent <= 0) return -1;
  double others =
      (after->busy_s - before->busy_s) - (after->own_s - before->own_s);
  return others > 0 ? others / spent : 0;
}

bool cli_load_is_busy(double others) {
  return others > 0.05 * (double)pestle_cpu_count();
}

const char* cli_date(int64_t wall_ns, char* buffer, size_t capacity) {
  time_t now = (time_t)(wall_ns / 1000000000);
  struct tm parts;
  if (!gmtime_r(&now, &parts) ||
      !strftime(buffer, capacity, "%Y-%m-%d %H:%M:%SZ", &parts)) {
    snprintf(buffer, capacity, "-");
  }
  return buffer;
}

// SPDX-License-Identifier: Apache-2.0
// How a device's limits are measured: by kernels that Pestle compiles for it, as for
// any model.
#ifndef PESTLE_TOOLS_LIMITS_H_
#define PESTLE_TOOLS_LIMITS_H_

#include "cli.h"

typedef enum cli_probe_kind_e {
  CLI_PROBE_CHAIN,    // multiply-adds in a chain; |size| elements
  CLI_PROBE_PRODUCT,  // of f32; |size| rows, or of a square matrix
  CLI_PROBE_BF16,
  CLI_PROBE_F16,
  CLI_PROBE_BYTES,
  CLI_PROBE_SUM,   // z = x + y, bytes; |size| elements
  CLI_PROBE_SUMS,  // many of them, a kernel each
} cli_probe_kind_t;

typedef struct cli_probe_t {
  cli_t* cli;
  pestle_device_t* device;
  int32_t threads;
  // The device has lanes (a GPU): values lie in its memory, and a run is queued and
  // waited for as a whole.
  bool lanes;
  int64_t step_ns;  // of the run under way, without lanes
} cli_probe_t;

// Operations, or bytes, that such a probe takes.
double cli_probe_work(const cli_probe_t* p, cli_probe_kind_t kind,
                      int64_t size);
// The shortest time of the probe's runs, INFINITY where the device refuses it, and by
// what share of that the median is longer.
PESTLE_NODISCARD pestle_status_t cli_probe_run(cli_probe_t* p,
                                               cli_probe_kind_t kind,
                                               int64_t size, double* out_s,
                                               double* out_spread);

#endif  // PESTLE_TOOLS_LIMITS_H_

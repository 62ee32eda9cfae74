// SPDX-License-Identifier: Apache-2.0
// What 'pestle bench' measures: latencies of runs, in turns with a peer's, and what
// else the machine did meanwhile.
#ifndef PESTLE_TOOLS_BENCH_H_
#define PESTLE_TOOLS_BENCH_H_

#include "cli.h"

// Runs of one of those that are compared.
typedef struct cli_bench_side_t {
  const char* name;
  char version[64];
  PESTLE_VEC(double) ms;  // of each run
  double seconds;         // that they took together
} cli_bench_side_t;

// ONNX Runtime, in a Python of its own (bench_peer.c).
typedef struct cli_bench_peer_t {
  cli_child_t child;
  const char* python;
  const char* folder;  // for inputs and outputs
} cli_bench_peer_t;

// Starts a Python (PESTLE_PYTHON, else python3) and has it import onnxruntime; what
// it says of itself goes to |side|. UNAVAILABLE: it cannot.
PESTLE_NODISCARD pestle_status_t cli_bench_peer_start(cli_bench_side_t* side,
                                                      cli_bench_peer_t* peer);
// Opens |model| there and runs it once with the inputs of |job|; its outputs are then
// in |peer|->folder.
PESTLE_NODISCARD pestle_status_t cli_bench_peer_open(cli_bench_peer_t* peer,
                                                     const char* model,
                                                     cli_job_t* job,
                                                     int64_t concurrency);
// Runs for about |seconds|; |side| may be NULL (a warm-up).
PESTLE_NODISCARD pestle_status_t cli_bench_peer_run(cli_bench_peer_t* peer,
                                                    double seconds,
                                                    cli_bench_side_t* side);
void cli_bench_peer_stop(cli_t* cli, cli_bench_peer_t* peer);

// The text of bench_ort.py, in Python.
extern const char cli_bench_ort[];

#endif  // PESTLE_TOOLS_BENCH_H_

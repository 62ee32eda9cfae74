// SPDX-License-Identifier: Apache-2.0
// pestle world --simulate: a plan of many processes on machines that are not there.
//
// In its files: the machines (simulate_topology.c), what the plan does of which each
// process does its part (simulate_plan.c), the clock of all processes
// (simulate_clock.c), and what is shown (simulate.c). docs/simulate.md describes it.
#ifndef PESTLE_TOOLS_SIMULATE_H_
#define PESTLE_TOOLS_SIMULATE_H_

#include "base/wire.h"
#include "cli.h"
#include "pestle/plan_format.h"

enum { CLI_LINKS = 8 };

// One kind of wire. Links stand from the inside out.
typedef struct cli_link_t {
  const char* name;
  int64_t ranks;  // that one such wire joins; of the last: all
  pestle_wire_t wire;
} cli_link_t;

typedef struct cli_topology_t {
  // What one process does: operations a second of floats, of halves, of bytes; bytes of memory
  // a second; seconds that a step takes at least.
  double flops, half, byte, memory, launch;
  double jitter;  // a step takes up to this share longer
  bool overlaps;  // collectives run beside kernels
  cli_link_t links[CLI_LINKS];
  size_t link_count;
} cli_topology_t;

// Reads |path|; texts lie in the arena of |cli|.
PESTLE_NODISCARD pestle_status_t
cli_topology_read(cli_t* cli, const char* path, cli_topology_t* out_topology);
// The innermost link that joins both.
size_t cli_topology_link(const cli_topology_t* t, int32_t a, int32_t b);

// A collective of the plan. Rows of ranks are those of the plan; of PERMUTE pairs.
typedef struct cli_meeting_t {
  const pestle_plan_collective_t* record;
  const int32_t* groups;
  pestle_collective_kind_t kind;
  double bytes;         // of all operands of one member
  uint32_t step;        // of the plan
  uint64_t times;       // in a run
  double* row_seconds;  // a row of |record| each; of PERMUTE a pair each
  pestle_wire_way_t way;
} cli_meeting_t;

typedef struct cli_plan_run_t {
  const pestle_plan_header_t* plan;
  const pestle_plan_step_t* steps;
  const pestle_plan_binding_t* bindings;
  PESTLE_VEC(uint32_t) trace;  // the steps in the order of a run
  double* seconds;             // of each step of the plan; 0 of collectives
  uint32_t* meeting_of;        // of each step; UINT32_MAX: none
  PESTLE_VEC(cli_meeting_t) meetings;
  uint64_t conditions;  // jumps of which nobody knows where they go
  int32_t ranks;
} cli_plan_run_t;

// |times|: a file with the measured times of steps, or NULL.
PESTLE_NODISCARD pestle_status_t cli_plan_run_init(cli_t* cli,
                                                   const pestle_plan_t* plan,
                                                   const cli_topology_t* t,
                                                   const char* times,
                                                   cli_plan_run_t* out_run);
void cli_plan_run_deinit(cli_plan_run_t* run);
// Bytes of constants that |rank| has; |*out_all|: of all of them.
PESTLE_NODISCARD pestle_status_t cli_plan_run_weights(const cli_plan_run_t* run,
                                                      cli_t* cli, int32_t rank,
                                                      uint64_t* out_own,
                                                      uint64_t* out_all);
// What collectives take on |t|.
PESTLE_NODISCARD pestle_status_t cli_plan_run_price(cli_plan_run_t* run,
                                                    const cli_topology_t* t);

// A run in seconds: until the last rank is done; of the rank that waits longest
// what it computes, its wires are busy, and it waits for them.
typedef struct cli_clock_t {
  double end, compute, wire, exposed;
  double first;  // until the first rank is done
} cli_clock_t;

PESTLE_NODISCARD pestle_status_t cli_clock_run(const cli_plan_run_t* run,
                                               const cli_topology_t* t,
                                               uint64_t seed,
                                               cli_clock_t* out_clock);

#endif  // PESTLE_TOOLS_SIMULATE_H_

// SPDX-License-Identifier: Apache-2.0
// What a profile holds: a row a step, and the runs that they are of.
#ifndef PESTLE_TOOLS_PROFILE_H_
#define PESTLE_TOOLS_PROFILE_H_

#include "base/json.h"
#include "cli.h"

enum { CLI_WARM_UPS = 3 };

typedef struct cli_row_t {
  pestle_step_info_t info;
  uint32_t step;
  int64_t run_ns;  // of the run under way
  uint32_t times;  // that it ran in it; of the last one once all are done
  double best_us, mean_us;
  uint32_t runs;
  double limit_us;    // what the machine's limits allow; 0: not known
  const char* bound;  // by which
} cli_row_t;

// A step that ran.
typedef struct cli_event_t {
  uint32_t step;
  int64_t begin_ns, end_ns;
} cli_event_t;

typedef struct cli_events_t {
  PESTLE_VEC(cli_event_t) list;
  int64_t span_ns;
} cli_events_t;

typedef struct cli_table_t {
  cli_t* cli;
  cli_job_t* job;
  cli_limits_t limits;
  cli_row_t* rows;
  size_t count;
  int64_t runs;
  double best_us, sum_us;  // of a whole run without the hook; of all rows
  // How the machine was used by others, and whether limits were measured again since
  // a step did more than they allow.
  double others;
  bool was_repeated;
  bool keeps_events;
  cli_events_t now, best;  // of the run under way; of the fastest one
} cli_table_t;

// Prints the table, the slowest step first.
PESTLE_NODISCARD pestle_status_t cli_table_print(const cli_table_t* t);
// Writes it as an object.
void cli_table_json(const cli_table_t* t, pestle_json_t* json);
// To stdout where |path| is NULL.
PESTLE_NODISCARD pestle_status_t cli_table_write(const cli_table_t* t,
                                                 const char* path);
// Whether a step took less time than the limits allow (by more than clocks differ).
static inline bool cli_row_passes(const cli_row_t* row) {
  return row->limit_us > 1.02 * row->best_us && row->best_us > 0;
}

#endif  // PESTLE_TOOLS_PROFILE_H_

// SPDX-License-Identifier: Apache-2.0
// pestle run --profile: where the time of a run goes, step by step, and how near
// each comes to what the machine can do.
#include "profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

enum {
  LEAST_RUNS = 5,
  MOST_RUNS = 200,
  MOST_EVENTS = 100000,
};
// Runs are timed for so long, unless --bench says how many.
#define TIMED_NS 1000000000

// --- Running ---

static void on_step(void* user, uint32_t step, int64_t begin_ns,
                    int64_t end_ns) {
  cli_table_t* t = user;
  if (step >= t->count) return;
  t->rows[step].run_ns += end_ns - begin_ns;
  ++t->rows[step].times;
  cli_event_t event = {step, begin_ns, end_ns};
  // Without memory, or too many: what is shown ends there.
  if (t->keeps_events && t->now.list.size < MOST_EVENTS)
    (void)pestle_vec_push(&t->now.list, event);
}

static pestle_status_t run_once(cli_table_t* t, bool hooked) {
  cli_job_t* job = t->job;
  pestle_run_options_t options = {.struct_size = sizeof(options),
                                  .strings = job->strings};
  if (hooked) {
    options.on_step = on_step;
    options.on_step_user = t;
  }
  cli_job_reset(job);
  return pestle_executable_run(job->executable, NULL, job->input_views,
                               job->input_count, job->output_views,
                               job->outputs.size, &options);
}

static void add_run(cli_table_t* t) {
  for (size_t i = 0; i < t->count; ++i) {
    cli_row_t* r = &t->rows[i];
    double us = (double)r->run_ns * 1e-3;
    r->run_ns = 0;
    if (!r->times) continue;
    if (!r->runs || us < r->best_us) r->best_us = us;
    r->mean_us += us;
    ++r->runs;
  }
}

static void keep_fastest(cli_table_t* t) {
  size_t count = t->now.list.size;
  if (!count) return;
  t->now.span_ns =
      t->now.list.data[count - 1].end_ns - t->now.list.data[0].begin_ns;
  if (t->best.list.size && t->best.span_ns <= t->now.span_ns) return;
  cli_events_t other = t->best;
  t->best = t->now;
  t->now = other;
}

static void forget_run(cli_table_t* t) {
  pestle_vec_clear(&t->now.list);
  for (size_t i = 0; i < t->count; ++i)
    t->rows[i].run_ns = t->rows[i].times = 0;
}

static pestle_status_t run_all(cli_table_t* t) {
  int64_t wanted = t->cli->count[CLI_BENCH];
  for (int i = 0; i < CLI_WARM_UPS; ++i) {
    PESTLE_TRY(run_once(t, i > 0));
    forget_run(t);
  }
  int64_t begin = pestle_clock_ns();
  for (;; ++t->runs) {
    int64_t now = pestle_clock_ns();
    bool enough = t->runs >= LEAST_RUNS &&
                  (now - begin > TIMED_NS || t->runs >= MOST_RUNS);
    if (wanted ? t->runs >= wanted : enough) break;
    forget_run(t);
    PESTLE_TRY(run_once(t, true));
    add_run(t);
    keep_fastest(t);
    // Turn by turn with plain runs: what the hook costs is in the difference.
    int64_t plain = pestle_clock_ns();
    PESTLE_TRY(run_once(t, false));
    double us = (double)(pestle_clock_ns() - plain) * 1e-3;
    if (!t->runs || us < t->best_us) t->best_us = us;
  }
  return NULL;
}

// --- What the machine allows ---

typedef struct level_t {
  const char* name;
  double rate;
} level_t;

// The level that holds |bytes|.
static level_t level_of(const cli_limits_t* l, uint64_t bytes) {
  if (bytes <= l->l2_bytes) return (level_t){"L2", l->l2.rate};
  if (bytes <= l->l3_bytes) return (level_t){"L3", l->l3.rate};
  return (level_t){"memory", l->memory.rate};
}

// Seconds that the operations of a step take at the rates of their kinds.
static double time_of_ops(const pestle_step_info_t* s, const cli_limits_t* l) {
  double fma = l->flops.rate;
  double half = l->half_flops.rate > 0 ? l->half_flops.rate : fma;
  double byte = l->byte_flops.rate > 0 ? l->byte_flops.rate : fma;
  uint64_t other = s->flops - s->half_flops - s->byte_flops;
  return (double)other / fma + (double)s->half_flops / half +
         (double)s->byte_flops / byte;
}

static const char* name_of_ops(const pestle_step_info_t* s) {
  if (s->half_flops > s->flops / 2) return "half";
  return s->byte_flops > s->flops / 2 ? "bytes" : "fma";
}

// Weights come from where all weights of a run lie, all else from what holds the
// step's own bytes.
static void set_limits(cli_table_t* t) {
  const cli_limits_t* l = &t->limits;
  uint64_t weights = 0;
  for (size_t i = 0; i < t->count; ++i)
    weights += t->rows[i].info.constant_bytes;
  level_t far = level_of(l, weights);
  for (size_t i = 0; i < t->count && l->flops.rate > 0; ++i) {
    cli_row_t* r = &t->rows[i];
    double times = r->times ? r->times : 1;
    level_t near = level_of(l, r->info.bytes);
    double constant = (double)r->info.constant_bytes / far.rate;
    double other = (double)(r->info.bytes - r->info.constant_bytes) / near.rate;
    double moved = constant + other, computed = time_of_ops(&r->info, l);
    r->bound = constant > other ? far.name : near.name;
    if (computed > moved) r->bound = name_of_ops(&r->info);
    r->limit_us = 1e6 * times * (computed > moved ? computed : moved);
  }
}

// --- All of it ---

static pestle_status_t describe(cli_table_t* t) {
  for (size_t i = 0; i < t->count; ++i) {
    t->rows[i] =
        (cli_row_t){.step = (uint32_t)i,
                    .info = {.struct_size = sizeof(pestle_step_info_t)},
                    .bound = ""};
    PESTLE_TRY(pestle_executable_step(t->job->executable, i, &t->rows[i].info));
  }
  return NULL;
}

// A step that took less time than the limits allow.
static bool passes_limits(const cli_table_t* t) {
  for (size_t i = 0; i < t->count; ++i) {
    if (cli_row_passes(&t->rows[i])) return true;
  }
  return false;
}

// Limits that a step passes were measured on a machine that did something else too.
static pestle_status_t find_limits(cli_table_t* t) {
  cli_limits_t* l = &t->limits;
  PESTLE_TRY(cli_limits(t->cli, t->job->device, false, l));
  set_limits(t);
  if (l->was_measured || !passes_limits(t)) return NULL;
  PESTLE_TRY(cli_limits(t->cli, t->job->device, true, l));
  t->was_repeated = true;
  set_limits(t);
  return NULL;
}

static pestle_status_t measure(cli_table_t* t) {
  t->count = pestle_executable_step_count(t->job->executable);
  t->rows = PESTLE_ARENA_ARRAY(&t->cli->arena, cli_row_t, t->count + 1);
  if (!t->rows) return PESTLE_OOM();
  PESTLE_TRY(describe(t));
  cli_load_t before, after;
  cli_load_read(&before);
  PESTLE_TRY(run_all(t));
  cli_load_read(&after);
  t->others = cli_load_of_others(&before, &after);
  PESTLE_TRY(find_limits(t));
  for (size_t i = 0; i < t->count; ++i)
    t->sum_us += t->rows[i].best_us;
  return NULL;
}

pestle_status_t cli_profile(cli_job_t* job) {
  cli_table_t t = {.cli = job->cli, .job = job};
  PESTLE_TRY(measure(&t));
  const char* form = job->cli->text[CLI_PROFILE];
  if (!strcmp(form, "json")) return cli_table_write(&t, NULL);
  PESTLE_TRY(cli_table_print(&t));
  return *form ? cli_table_write(&t, form) : NULL;
}

pestle_status_t cli_profile_json(cli_job_t* job, pestle_json_t* json) {
  cli_table_t t = {.cli = job->cli, .job = job, .keeps_events = true};
  pestle_vec_init(&t.now.list, pestle_allocator_system());
  pestle_vec_init(&t.best.list, pestle_allocator_system());
  pestle_status_t status = measure(&t);
  if (!status) cli_table_json(&t, json);
  pestle_vec_deinit(&t.now.list);
  pestle_vec_deinit(&t.best.list);
  return status;
}

// SPDX-License-Identifier: Apache-2.0
// pestle bench: how long a run takes, how many there are in a second, and what else
// the machine did meanwhile.
#include "bench.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "json.h"
#include "pestle/version.h"

enum { MOST_LANES = 256 };
// One goes on for so long before it is the other's turn.
#define TURN_S 0.5
// Others are watched for so long before anything runs.
#define LOOK_NS 200000000

typedef struct worker_t {
  cli_lane_t lane;
  pestle_thread_t thread;
  int64_t deadline_ns;
  PESTLE_VEC(double) ms;
  pestle_status_t status;
} worker_t;

typedef struct bench_t {
  cli_t* cli;
  const char* path;
  cli_job_t job;
  int64_t concurrency;
  double duration_s, warm_up_s;
  worker_t* workers;
  cli_bench_side_t sides[2];  // Pestle, the peer
  cli_bench_peer_t peer;
  bool has_peer, agrees;
  double others_before, others_during;  // processors; negative: not known
  double watched_s;                     // how long "during" is
} bench_t;

// --- Statistics ---

static int by_value(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

typedef struct summary_t {
  size_t runs;
  double min, median, p90, p99, max, mean, per_s;
  double spread;  // from p10 to p90, as a share of the median
} summary_t;

// Of sorted values, between the two that are nearest.
static double quantile(const double* ms, size_t count, double q) {
  double at = q * (double)(count - 1);
  size_t low = (size_t)at;
  double rest = at - (double)low;
  return low + 1 < count ? ms[low] + rest * (ms[low + 1] - ms[low]) : ms[low];
}

static summary_t summarise(cli_bench_side_t* side) {
  summary_t s = {.runs = side->ms.size};
  const double* ms = side->ms.data;
  if (!s.runs) return s;
  qsort(side->ms.data, s.runs, sizeof(*ms), by_value);
  for (size_t i = 0; i < s.runs; ++i)
    s.mean += ms[i] / (double)s.runs;
  s.min = ms[0];
  s.max = ms[s.runs - 1];
  s.median = quantile(ms, s.runs, 0.5);
  s.p90 = quantile(ms, s.runs, 0.9);
  s.p99 = quantile(ms, s.runs, 0.99);
  s.spread = s.median > 0 ? (s.p90 - quantile(ms, s.runs, 0.1)) / s.median : 0;
  s.per_s = side->seconds > 0 ? (double)s.runs / side->seconds : 0;
  return s;
}

// --- Running ---

static pestle_status_t run_lane(worker_t* w) {
  while (pestle_clock_ns() < w->deadline_ns) {
    int64_t begin = pestle_clock_ns();
    PESTLE_TRY(cli_lane_queue(&w->lane));
    PESTLE_TRY(cli_lane_wait(&w->lane));
    double ms = (double)(pestle_clock_ns() - begin) * 1e-6;
    if (!pestle_vec_push(&w->ms, ms)) return PESTLE_OOM();
  }
  return NULL;
}

static void run_worker(void* argument) {
  worker_t* w = argument;
  w->status = run_lane(w);
}

// All workers at once for about |seconds|; |side| gets their times.
static pestle_status_t run_turn(bench_t* b, double seconds,
                                cli_bench_side_t* side) {
  int64_t begin = pestle_clock_ns();
  size_t count = (size_t)b->concurrency, started = 1;
  pestle_status_t status = NULL;
  for (size_t i = 0; i < count; ++i) {
    b->workers[i].ms.size = 0;
    b->workers[i].deadline_ns = begin + (int64_t)(seconds * 1e9);
  }
  while (started < count && !status) {
    worker_t* w = &b->workers[started];
    status = pestle_thread_start(run_worker, w, "bench", &w->thread);
    started += !status;
  }
  run_worker(&b->workers[0]);
  for (size_t i = 1; i < started; ++i)
    pestle_thread_join(&b->workers[i].thread);
  if (side) side->seconds += (double)(pestle_clock_ns() - begin) * 1e-9;
  for (size_t i = 0; i < started; ++i) {
    worker_t* w = &b->workers[i];
    for (size_t j = 0; side && !status && j < w->ms.size; ++j) {
      if (!pestle_vec_push(&side->ms, w->ms.data[j])) status = PESTLE_OOM();
    }
    status = pestle_status_join(status, w->status);
    w->status = NULL;
  }
  return status;
}

// A turn during which others are watched.
static pestle_status_t run_watched(bench_t* b, double seconds) {
  cli_load_t before, after;
  cli_load_read(&before);
  PESTLE_TRY(run_turn(b, seconds, &b->sides[0]));
  cli_load_read(&after);
  double others = cli_load_of_others(&before, &after);
  double spent = (double)(after.at_ns - before.at_ns) * 1e-9;
  if (others < 0 || b->others_during < 0) {
    b->others_during = -1;
    return NULL;
  }
  b->others_during = (b->others_during * b->watched_s + others * spent) /
                     (b->watched_s + spent);
  b->watched_s += spent;
  return NULL;
}

static pestle_status_t compare(bench_t* b) {
  PESTLE_TRY(cli_bench_peer_open(&b->peer, b->path, &b->job, b->concurrency));
  cli_lane_t* lane = &b->workers[0].lane;
  PESTLE_TRY(cli_lane_queue(lane));
  PESTLE_TRY(cli_lane_wait(lane));
  PESTLE_TRY(cli_lane_fetch(lane));
  cli_job_count_elements(&b->job);
  return cli_outputs_compare(b->cli, &b->job.inputs, b->peer.folder,
                             &b->job.outputs, b->cli->json, &b->agrees);
}

static pestle_status_t measure(bench_t* b) {
  cli_load_t before, after;
  if (b->has_peer) PESTLE_TRY(compare(b));
  cli_load_read(&before);
  pestle_thread_sleep_ns(LOOK_NS);
  cli_load_read(&after);
  b->others_before = cli_load_of_others(&before, &after);
  PESTLE_TRY(run_turn(b, b->warm_up_s, NULL));
  if (!b->has_peer) return run_watched(b, b->duration_s);
  PESTLE_TRY(cli_bench_peer_run(&b->peer, b->warm_up_s, NULL));
  for (double left = b->duration_s; left > 1e-9; left -= TURN_S) {
    double turn = left < TURN_S ? left : TURN_S;
    PESTLE_TRY(run_watched(b, turn));
    PESTLE_TRY(cli_bench_peer_run(&b->peer, turn, &b->sides[1]));
  }
  return NULL;
}

static pestle_status_t make_workers(bench_t* b) {
  size_t count = (size_t)b->concurrency;
  if (count > 1 && pestle_executable_needs_strings(b->job.executable)) {
    return CLI_USAGE_ERROR(
        "the model makes strings, which runs of one command share; time it "
        "without --concurrency");
  }
  b->workers = PESTLE_ARENA_ARRAY(&b->cli->arena, worker_t, count);
  if (!b->workers) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i)
    pestle_vec_init(&b->workers[i].ms, pestle_allocator_system());
  for (size_t i = 0; i < count; ++i)
    PESTLE_TRY(cli_lane_init(&b->job, &b->workers[i].lane));
  return NULL;
}

// --- What is said ---

static const char* backend_of(const bench_t* b) {
  pestle_step_info_t info = {.struct_size = sizeof(info)};
  if (!pestle_executable_step_count(b->job.executable)) return "";
  pestle_status_t status = pestle_executable_step(b->job.executable, 0, &info);
  pestle_status_release(status);
  return status || !info.backend ? "" : info.backend;
}

static void print_side(const cli_bench_side_t* side, const summary_t* s) {
  printf("  %-12s %8zu %10.4g %10.4g %10.4g %10.4g %10.4g %10.4g\n", side->name,
         s->runs, s->median, s->p90, s->p99, s->min, s->max, s->per_s);
}

static void print_machine(const bench_t* b) {
  int processors = (int)pestle_cpu_count();
  if (b->others_before < 0 || b->others_during < 0) {
    printf("machine: how busy it was is not known here\n");
    return;
  }
  printf(
      "machine: other programs used %.2f of %d processor%s before, %.2f "
      "during\n",
      b->others_before, processors, processors == 1 ? "" : "s",
      b->others_during);
  if (cli_load_is_busy(b->others_before) ||
      cli_load_is_busy(b->others_during)) {
    printf(
        "         it was busy: these times are not those of a quiet machine\n");
  }
}

static void print_text(bench_t* b) {
  const cli_times_t* times = &b->cli->times;
  summary_t s = summarise(&b->sides[0]);
  int threads = (int)pestle_context_threads(b->cli->context);
  printf("%s by %s, %d thread%s, %" PRId64 " run%s at once%s\n", b->path,
         backend_of(b), threads, threads == 1 ? "" : "s", b->concurrency,
         b->concurrency == 1 ? "" : "s",
         b->job.filled ? "; inputs that were not given are random" : "");
  printf(
      "import %.1f ms, compile %.1f ms, load %.1f ms; warm-up %g s, then %g "
      "s\n\n",
      times->import_ms, times->compile_ms, times->load_ms, b->warm_up_s,
      b->duration_s);
  printf("  %-12s %8s %10s %10s %10s %10s %10s %10s\n", "", "runs", "median ms",
         "p90 ms", "p99 ms", "min ms", "max ms", "runs/s");
  print_side(&b->sides[0], &s);
  if (b->has_peer) {
    summary_t p = summarise(&b->sides[1]);
    print_side(&b->sides[1], &p);
    printf(
        "\nratio of the medians, pestle / %s %s: %.3f; in turns of %g s\n"
        "results %s those of %s\n",
        b->sides[1].name, b->sides[1].version, s.median / p.median, TURN_S,
        b->agrees ? "agree with" : "differ from", b->sides[1].name);
  } else {
    printf("\n");
  }
  printf("spread: p10 to p90 is %.1f %% of the median\n", 100 * s.spread);
  print_machine(b);
}

static void json_side(cli_bench_side_t* side, pestle_json_t* json) {
  summary_t s = summarise(side);
  pestle_json_begin_object(json);
  cli_key_cstr(json, "name", side->name);
  cli_key_cstr(json, "version", side->version);
  cli_key_i64(json, "runs", (int64_t)s.runs);
  cli_key_f64(json, "seconds", side->seconds);
  cli_key_f64(json, "median_ms", s.median);
  cli_key_f64(json, "p90_ms", s.p90);
  cli_key_f64(json, "p99_ms", s.p99);
  cli_key_f64(json, "min_ms", s.min);
  cli_key_f64(json, "max_ms", s.max);
  cli_key_f64(json, "mean_ms", s.mean);
  cli_key_f64(json, "spread", s.spread);
  cli_key_f64(json, "runs_per_s", s.per_s);
  pestle_json_end_object(json);
}

static void json_machine(const bench_t* b, pestle_json_t* json) {
  bool is_known = b->others_before >= 0 && b->others_during >= 0;
  pestle_json_key(json, "machine");
  pestle_json_begin_object(json);
  cli_key_i64(json, "processors", pestle_cpu_count());
  cli_key_f64(json, "others_before", is_known ? b->others_before : (double)NAN);
  cli_key_f64(json, "others_during", is_known ? b->others_during : (double)NAN);
  pestle_json_key(json, "is_busy");
  if (is_known) {
    pestle_json_bool(json, cli_load_is_busy(b->others_before) ||
                               cli_load_is_busy(b->others_during));
  } else {
    pestle_json_null(json);
  }
  pestle_json_end_object(json);
}

static void write_json(bench_t* b, pestle_json_t* json) {
  const cli_times_t* times = &b->cli->times;
  char date[32];
  cli_key_cstr(json, "model", b->path);
  cli_key_cstr(json, "backend", backend_of(b));
  cli_key_cstr(json, "date",
               cli_date(pestle_wall_clock_ns(), date, sizeof(date)));
  cli_key_i64(json, "threads", pestle_context_threads(b->cli->context));
  cli_key_i64(json, "concurrency", b->concurrency);
  pestle_json_key(json, "random_inputs");
  pestle_json_bool(json, b->job.filled > 0);
  cli_key_f64(json, "warm_up_s", b->warm_up_s);
  cli_key_f64(json, "duration_s", b->duration_s);
  cli_key_f64(json, "import_ms", times->import_ms);
  cli_key_f64(json, "compile_ms", times->compile_ms);
  cli_key_f64(json, "load_ms", times->load_ms);
  cli_key_i64(json, "peak_rss_kb", cli_peak_rss_kb());
  pestle_json_key(json, "sides");
  pestle_json_begin_array(json);
  json_side(&b->sides[0], json);
  if (b->has_peer) json_side(&b->sides[1], json);
  pestle_json_end_array(json);
  if (b->has_peer) {
    summary_t own = summarise(&b->sides[0]), peer = summarise(&b->sides[1]);
    cli_key_f64(json, "ratio", own.median / peer.median);
    pestle_json_key(json, "results_agree");
    pestle_json_bool(json, b->agrees);
  }
  json_machine(b, json);
}

// --- The verb ---

static pestle_status_t read_seconds(const cli_t* cli, cli_option_t option,
                                    const char* name, double least,
                                    double* seconds) {
  const char* text = cli->text[option];
  if (!text || (pestle_str_parse_f64(pestle_str(text), seconds) &&
                *seconds >= least && *seconds <= 1e6)) {
    return NULL;
  }
  return CLI_USAGE_ERROR("--%s wants seconds, at least %g, not '%s'", name,
                         least, text);
}

static pestle_status_t read_options(bench_t* b) {
  const cli_t* cli = b->cli;
  const char* beside = cli->text[CLI_BESIDE];
  PESTLE_TRY(
      read_seconds(cli, CLI_DURATION, "duration", 0.001, &b->duration_s));
  PESTLE_TRY(read_seconds(cli, CLI_WARM_UP, "warm-up", 0, &b->warm_up_s));
  if (cli->text[CLI_CONCURRENCY]) b->concurrency = cli->count[CLI_CONCURRENCY];
  if (b->concurrency < 1 || b->concurrency > MOST_LANES) {
    return CLI_USAGE_ERROR("--concurrency wants 1 to %d runs at once, not '%s'",
                           MOST_LANES, cli->text[CLI_CONCURRENCY]);
  }
  if (!beside && (cli->text[CLI_ATOL] || cli->text[CLI_RTOL])) {
    return CLI_USAGE_ERROR("--%s is of --beside ort, which is not given",
                           cli->text[CLI_ATOL] ? "atol" : "rtol");
  }
  if (!beside) return NULL;
  if (strcmp(beside, "ort") != 0) {
    return CLI_USAGE_ERROR("--beside knows ort (ONNX Runtime), not '%s'",
                           beside);
  }
  b->has_peer = true;
  if (!cli_is_plan(b->path)) return NULL;
  return CLI_USAGE_ERROR(
      "'%s' is a compiled plan, which onnxruntime cannot read: --beside ort "
      "wants the model that it was made of",
      b->path);
}

static pestle_status_t bench(bench_t* b, int* out_exit) {
  PESTLE_TRY(cli_only_argument(b->cli, "a model or plan", &b->path));
  PESTLE_TRY(read_options(b));
  if (b->has_peer) PESTLE_TRY(cli_bench_peer_start(&b->sides[1], &b->peer));
  PESTLE_TRY(cli_job_open(&b->job, b->path, true));
  PESTLE_TRY(make_workers(b));
  PESTLE_TRY(measure(b));
  if (!b->agrees) *out_exit = CLI_CHECK_FAILED;
  if (b->cli->json) {
    write_json(b, b->cli->json);
  } else {
    print_text(b);
  }
  return NULL;
}

pestle_status_t cli_bench(cli_t* cli, int* out_exit) {
  bench_t b = {.cli = cli,
               .concurrency = 1,
               .duration_s = 3,
               .warm_up_s = 1,
               .agrees = true,
               .sides = {{.name = "pestle"}, {.name = "onnxruntime"}}};
  pestle_allocator_t a = pestle_allocator_system();
  pestle_vec_init(&b.sides[0].ms, a);
  pestle_vec_init(&b.sides[1].ms, a);
  snprintf(b.sides[0].version, sizeof(b.sides[0].version), "%s",
           pestle_version());
  cli_job_init(cli, &b.job);
  pestle_status_t status = bench(&b, out_exit);
  for (int64_t i = 0; b.workers && i < b.concurrency; ++i) {
    cli_lane_deinit(&b.workers[i].lane);
    pestle_vec_deinit(&b.workers[i].ms);
  }
  cli_bench_peer_stop(cli, &b.peer);
  cli_job_deinit(&b.job);
  pestle_vec_deinit(&b.sides[0].ms);
  pestle_vec_deinit(&b.sides[1].ms);
  return status;
}

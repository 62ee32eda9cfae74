// SPDX-License-Identifier: Apache-2.0
// pestle run: inputs, plan, executable, outputs.
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/thread.h"
#include "cli.h"
#include "json.h"

typedef struct run_t {
  cli_t* cli;
  cli_job_t job;
  double queued_ms;  // of a run among others on a stream; 0: not measured
  PESTLE_VEC(double) run_ms;
} run_t;

static double since_ms(int64_t begin_ns) {
  return (double)(pestle_clock_ns() - begin_ns) * 1e-6;
}

// --- Running ---

static pestle_status_t run_once(run_t* run) {
  cli_job_t* job = &run->job;
  pestle_run_options_t options = {.struct_size = sizeof(options),
                                  .world = run->cli->world,
                                  .strings = job->strings};
  cli_job_reset(job);
  if (job->cli->spread) return cli_spread_run(job);
  return pestle_executable_run(job->executable, NULL, job->input_views,
                               job->input_count, job->output_views,
                               job->outputs.size, &options);
}

// Each run with the wait for it, then as many that follow each other.
static pestle_status_t time_lane(run_t* run, cli_lane_t* lane) {
  int64_t count = run->cli->count[CLI_BENCH];
  for (int i = 0; i < 3; ++i)  // the second one may be recorded
    PESTLE_TRY(cli_lane_queue(lane));
  PESTLE_TRY(cli_lane_wait(lane));
  for (int64_t i = 0; i < count; ++i) {
    int64_t begin = pestle_clock_ns();
    PESTLE_TRY(cli_lane_queue(lane));
    PESTLE_TRY(cli_lane_wait(lane));
    double ms = since_ms(begin);
    if (!pestle_vec_push(&run->run_ms, ms)) return PESTLE_OOM();
  }
  int64_t begin = pestle_clock_ns();
  for (int64_t i = 0; i < count; ++i)
    PESTLE_TRY(cli_lane_queue(lane));
  PESTLE_TRY(cli_lane_wait(lane));
  run->queued_ms = since_ms(begin) / (double)count;
  return cli_lane_fetch(lane);
}

static pestle_status_t bench_on_device(run_t* run) {
  cli_lane_t lane;
  pestle_status_t status = cli_lane_init(&run->job, &lane);
  if (!status) status = time_lane(run, &lane);
  cli_lane_deinit(&lane);
  return status;
}

static pestle_status_t profile(run_t* run) {
  pestle_json_t* json = run->cli->json;
  if (json) {
    pestle_json_key(json, "profile");
    PESTLE_TRY(cli_profile_json(&run->job, json));
  } else {
    PESTLE_TRY(cli_profile(&run->job));
  }
  cli_job_count_elements(&run->job);
  return NULL;
}

static pestle_status_t run_all(run_t* run) {
  if (run->cli->text[CLI_PROFILE] && run->cli->spread) {
    return CLI_USAGE_ERROR(
        "--profile is for a model in one piece, not for one "
        "that is divided over a mesh");
  }
  if (run->cli->text[CLI_PROFILE]) return profile(run);
  if (run->cli->text[CLI_BENCH] && cli_job_is_far(&run->job))
    return bench_on_device(run);
  PESTLE_TRY(run_once(run));  // the warm-up of --bench
  for (int64_t i = 0; i < run->cli->count[CLI_BENCH]; ++i) {
    int64_t begin = pestle_clock_ns();
    PESTLE_TRY(run_once(run));
    double ms = since_ms(begin);
    if (!pestle_vec_push(&run->run_ms, ms)) return PESTLE_OOM();
  }
  cli_job_count_elements(&run->job);
  return NULL;
}

// --- What comes out ---

static void write_bench(const run_t* run, pestle_json_t* json) {
  const cli_times_t* times = &run->cli->times;
  pestle_json_begin_object(json);
  cli_key_f64(json, "create_ms", run->job.create_ms);
  pestle_json_key(json, "run_ms");
  pestle_json_begin_array(json);
  for (size_t i = 0; i < run->run_ms.size; ++i)
    pestle_json_f64(json, run->run_ms.data[i]);
  pestle_json_end_array(json);
  if (run->queued_ms > 0) cli_key_f64(json, "queued_ms", run->queued_ms);
  cli_key_i64(json, "peak_rss_kb", cli_peak_rss_kb());
  cli_key_f64(json, "import_ms", times->import_ms);
  cli_key_f64(json, "compile_ms", times->compile_ms);
  cli_key_f64(json, "load_ms", times->load_ms);
  pestle_json_end_object(json);
}

static pestle_status_t print_bench(const run_t* run) {
  pestle_strbuf_t text;
  pestle_json_t json;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  pestle_json_init(&text, 0, &json);
  write_bench(run, &json);
  pestle_status_t status = pestle_strbuf_status(&text);
  if (!status) printf("%s\n", pestle_strbuf_cstr(&text));
  pestle_strbuf_deinit(&text);
  return status;
}

static pestle_status_t deliver(run_t* run, int* out_exit) {
  cli_t* cli = run->cli;
  PESTLE_TRY(cli_words_decode(&run->job));
  if (cli->text[CLI_OUTPUTS]) {
    PESTLE_TRY(cli_outputs_write(cli, &run->job.inputs, cli->text[CLI_OUTPUTS],
                                 &run->job.outputs));
  }
  bool profiled = cli->text[CLI_PROFILE] != NULL;
  bool benched = cli->text[CLI_BENCH] && !profiled;
  if (cli->json) {
    cli_key_cstr(cli->json, "model", cli->args.data[0]);
    cli_outputs_json(&run->job.outputs, cli->json);
    if (cli->world) {
      pestle_json_key(cli->json, "world");
      pestle_json_begin_object(cli->json);
      cli_key_i64(cli->json, "rank", pestle_world_rank(cli->world));
      cli_key_i64(cli->json, "size", pestle_world_size(cli->world));
      cli_key_u64(cli->json, "sent_bytes", pestle_world_bytes(cli->world));
      pestle_json_end_object(cli->json);
    }
    if (benched) {
      pestle_json_key(cli->json, "bench");
      write_bench(run, cli->json);
    }
  } else if (benched) {
    PESTLE_TRY(print_bench(run));
  }
  if (cli->text[CLI_COMPARE]) {
    bool is_equal = true;
    PESTLE_TRY(cli_outputs_compare(cli, &run->job.inputs,
                                   cli->text[CLI_COMPARE], &run->job.outputs,
                                   cli->json, &is_equal));
    if (!is_equal) *out_exit = CLI_CHECK_FAILED;
  }
  if (!cli->text[CLI_OUTPUTS] && !cli->text[CLI_BENCH] &&
      !cli->text[CLI_COMPARE] && !profiled && !cli->json) {
    if (cli->world)
      printf("rank %d of %d\n", (int)pestle_world_rank(cli->world),
             (int)pestle_world_size(cli->world));
    cli_outputs_print(&run->job.outputs);
  }
  return NULL;
}

pestle_status_t cli_run(cli_t* cli, int* out_exit) {
  const char* path;
  PESTLE_TRY(cli_only_argument(cli, "a model or plan", &path));
  if (cli->text[CLI_BENCH] && cli->count[CLI_BENCH] < 1) {
    return CLI_USAGE_ERROR("--bench wants at least 1 run, not '%s'",
                           cli->text[CLI_BENCH]);
  }
  PESTLE_TRY(cli_outputs_check_options(cli));
  PESTLE_TRY(cli_rank_words(cli));
  if (cli->text[CLI_SAVE_PLAN] && !cli_is_plan(path)) {
    PESTLE_TRY(cli_check_target(path, cli->text[CLI_SAVE_PLAN], "--save-plan"));
  }
  run_t run = {.cli = cli};
  pestle_vec_init(&run.run_ms, pestle_allocator_system());
  cli_job_init(cli, &run.job);
  pestle_status_t status = cli_job_open(&run.job, path, false);
  if (!status) status = run_all(&run);
  if (!status) status = deliver(&run, out_exit);
  pestle_vec_deinit(&run.run_ms);
  cli_job_deinit(&run.job);
  cli_spread_close(cli);
  return status;
}

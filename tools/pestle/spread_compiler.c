// SPDX-License-Identifier: Apache-2.0
// --mesh and --shard: a model divided between processes, all of them threads here.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/thread.h"
#include "cli.h"
#include "pestle/partition.h"
#include "pestle/plan_format.h"
#include "pestle/world.h"

struct cli_spread_t {
  pestle_module_t* module;  // what each of them runs
  pestle_function_t* entry;
  int32_t ranks;
};

// --- The module ---

pestle_status_t cli_spread_say(cli_t* cli, pestle_module_t* module) {
  if (!cli->text[CLI_MESH]) {
    if (!cli->list[CLI_SHARD].size) return NULL;
    return CLI_USAGE_ERROR(
        "--shard says where values lie on a mesh, and there "
        "is no --mesh");
  }
  PESTLE_TRY(
      cli_as_usage(pestle_status_annotate(
                       pestle_module_set_mesh(module, cli->text[CLI_MESH]),
                       "--mesh %s", cli->text[CLI_MESH]),
                   PESTLE_STATUS_INVALID_ARGUMENT));
  for (size_t i = 0; i < cli->list[CLI_SHARD].size; ++i) {
    const char* rule = cli->list[CLI_SHARD].data[i];
    pestle_status_t status = pestle_status_annotate(
        pestle_module_shard(module, rule, NULL), "--shard %s", rule);
    status = cli_as_usage(status, PESTLE_STATUS_INVALID_ARGUMENT);
    PESTLE_TRY(cli_as_usage(status, PESTLE_STATUS_NOT_FOUND));
  }
  return NULL;
}

pestle_status_t cli_spread_open(cli_t* cli, pestle_module_t* module,
                                pestle_device_t* device,
                                const pestle_compile_options_t* options) {
  int64_t ranks = pestle_module_processes(module);
  if (!cli->text[CLI_MESH] || ranks < 2 || strcmp(cli->verb, "run") != 0)
    return NULL;
  if (ranks > 1024) {
    return PESTLE_ERROR(
        UNSUPPORTED, "the model is for %lld processes; at most 1024 run here",
        (long long)ranks);
  }
  PESTLE_TRY(pestle_partition(cli->context, module, device, options));
  cli->spread = PESTLE_ARENA_NEW(&cli->arena, cli_spread_t);
  if (!cli->spread) return PESTLE_OOM();
  pestle_module_retain(module);
  *cli->spread =
      (cli_spread_t){module, pestle_module_entry(module), (int32_t)ranks};
  return NULL;
}

void cli_spread_close(cli_t* cli) {
  if (cli->spread) pestle_module_release(cli->spread->module);
  cli->spread = NULL;
}

// --- Whole values ---

pestle_status_t cli_spread_io(cli_t* cli, bool of_result, size_t index,
                              pestle_io_info_t* info) {
  const cli_spread_t* s = cli->spread;
  if (!s) return NULL;
  int64_t* dims = PESTLE_ARENA_ARRAY(&cli->arena, int64_t, PESTLE_MAX_RANK);
  if (!dims) return PESTLE_OOM();
  memcpy(dims, info->dims, (size_t)info->rank * sizeof(*dims));
  for (int32_t r = 0; r < s->ranks; ++r) {
    int64_t starts[PESTLE_MAX_RANK];
    bool first;
    PESTLE_TRY(
        pestle_function_part(s->entry, of_result, index, r, starts, &first));
    for (int32_t d = 0; d < info->rank; ++d) {
      if (starts[d] + info->dims[d] > dims[d])
        dims[d] = starts[d] + info->dims[d];
    }
  }
  info->dims = dims;
  return NULL;
}

// Between a whole value and a part of it that begins at |starts|.
static void move_part(char* whole, const int64_t* whole_dims, char* part,
                      const int64_t* dims, int32_t rank, const int64_t* starts,
                      size_t size, bool out) {
  int64_t at[PESTLE_MAX_RANK] = {0}, rows = 1;
  int64_t row = rank ? dims[rank - 1] : 1;
  for (int32_t d = 0; d + 1 < rank; ++d)
    rows *= dims[d];
  for (int64_t i = 0; i < rows; ++i) {
    int64_t to = 0;
    for (int32_t d = 0; d < rank; ++d)
      to = to * whole_dims[d] + starts[d] + (d + 1 < rank ? at[d] : 0);
    char* a = whole + (size_t)to * size;
    char* b = part + (size_t)(i * row) * size;
    memcpy(out ? a : b, out ? b : a, (size_t)row * size);
    for (int32_t d = rank - 1; d-- > 0;) {
      if (++at[d] < dims[d]) break;
      at[d] = 0;
    }
  }
}

// --- A run of all of them ---

typedef struct rank_t {
  cli_job_t* job;
  pestle_executable_t* executable;  // the job's, or on a GPU of its own
  pestle_world_t* world;
  pestle_thread_t thread;
  bool started;
  cli_array_t* arrays;  // inputs, then outputs
  size_t array_count;
  pestle_tensor_t* views;
  pestle_status_t status;
} rank_t;

static pestle_status_t make_array(rank_t* r, const pestle_io_info_t* info) {
  cli_array_t* a = &r->arrays[r->array_count];
  PESTLE_TRY(cli_array_init(info->dtype, info->rank, info->dims, a));
  r->views[r->array_count++] = cli_array_view(a);
  return NULL;
}

// CPUs are shared; of GPUs each process has the one of its number, unless they meet
// through the host's memory and there are too few.
static pestle_status_t load_on_own(rank_t* r, int32_t rank) {
  cli_job_t* job = r->job;
  const pestle_plan_header_t* plan = pestle_plan_data(job->plan, NULL);
  const char* data = (const char*)plan;
  const pestle_plan_device_t* home =
      (const pestle_plan_device_t*)(const void*)(data + plan->devices.offset);
  const char* backend = data + plan->strings.offset + home->backend;
  const char* way = getenv("PESTLE_WORLD_TRANSPORT");
  pestle_device_t *first, *own;
  char name[80];
  r->executable = job->executable;
  pestle_executable_retain(r->executable);
  if (!plan->devices.count || !rank) return NULL;
  PESTLE_TRY(pestle_context_device(job->cli->context, backend, &first));
  if (pestle_device_dl(first).device_type == PESTLE_DEVICE_CPU) return NULL;
  (void)snprintf(name, sizeof(name), "%s:%d", backend, (int)rank);
  pestle_status_t status = pestle_context_device(job->cli->context, name, &own);
  if (status && way && !strcmp(way, "host")) {
    pestle_status_release(status);
    return NULL;
  }
  PESTLE_TRY(pestle_status_annotate(
      status,
      "for process %d of the mesh: each has a device of its own; "
      "PESTLE_WORLD_TRANSPORT=host lets them share those that there are",
      (int)rank));
  pestle_executable_release(r->executable);
  r->executable = NULL;
  return pestle_executable_create(job->cli->context, job->plan, own,
                                  &r->executable);
}

static pestle_status_t begin_rank(rank_t* r, int32_t rank) {
  cli_job_t* job = r->job;
  const cli_spread_t* s = job->cli->spread;
  PESTLE_TRY(load_on_own(r, rank));
  size_t count = job->input_count + job->outputs.size;
  r->arrays = PESTLE_ARENA_ARRAY(&job->cli->arena, cli_array_t, count + 1);
  r->views = PESTLE_ARENA_ARRAY(&job->cli->arena, pestle_tensor_t, count + 1);
  if (!r->arrays || !r->views) return PESTLE_OOM();
  for (size_t i = 0; i < job->input_count; ++i) {
    pestle_io_info_t info = pestle_executable_input(job->executable, i);
    int64_t starts[PESTLE_MAX_RANK];
    bool first;
    PESTLE_TRY(make_array(r, &info));
    PESTLE_TRY(pestle_function_part(s->entry, false, i, rank, starts, &first));
    const pestle_tensor_t* whole = &job->input_views[i];
    move_part((char*)whole->data + whole->byte_offset, whole->shape,
              r->arrays[i].data, info.dims, info.rank, starts,
              pestle_dtype_size(info.dtype), false);
  }
  for (size_t i = 0; i < job->outputs.size; ++i) {
    pestle_io_info_t info = pestle_executable_output(job->executable, i);
    PESTLE_TRY(make_array(r, &info));
  }
  return NULL;
}

static void run_rank(void* argument) {
  rank_t* r = argument;
  cli_job_t* job = r->job;
  pestle_run_options_t options = {.struct_size = sizeof(options),
                                  .world = r->world};
  r->status = pestle_executable_run(
      r->executable, NULL, r->views, job->input_count,
      r->views + job->input_count, job->outputs.size, &options);
}

static pestle_status_t end_rank(rank_t* r, int32_t rank) {
  cli_job_t* job = r->job;
  const cli_spread_t* s = job->cli->spread;
  for (size_t i = 0; i < job->outputs.size; ++i) {
    const cli_array_t* part = &r->arrays[job->input_count + i];
    cli_array_t* whole = &job->outputs.data[i];
    int64_t starts[PESTLE_MAX_RANK];
    bool first;
    PESTLE_TRY(pestle_function_part(s->entry, true, i, rank, starts, &first));
    if (first)
      move_part(whole->data, whole->dims, part->data, part->dims, part->rank,
                starts, pestle_dtype_size(part->dtype), true);
  }
  return NULL;
}

static pestle_status_t run_all(cli_job_t* job, rank_t* ranks, int32_t count) {
  pestle_status_t status = NULL;
  for (int32_t i = 0; i < count && !status; ++i)
    status = begin_rank(&ranks[i], i);
  for (int32_t i = 0; i < count && !status; ++i) {
    status = pestle_thread_start(run_rank, &ranks[i], "pestle rank",
                                 &ranks[i].thread);
    ranks[i].started = !status;
    if (status) pestle_world_abort(ranks[0].world, status);
  }
  for (int32_t i = 0; i < count; ++i) {
    if (ranks[i].started) pestle_thread_join(&ranks[i].thread);
  }
  // What the others gave up for says more than that they did.
  for (int pass = 0; pass < 2; ++pass) {
    for (int32_t i = 0; i < count && !status; ++i) {
      bool follows =
          pestle_status_code(ranks[i].status) == PESTLE_STATUS_UNAVAILABLE;
      if (!ranks[i].status || (follows && !pass)) continue;
      status = pestle_status_annotate(ranks[i].status, "in process %d", (int)i);
      ranks[i].status = NULL;
    }
  }
  for (int32_t i = 0; i < count && !status; ++i)
    status = end_rank(&ranks[i], i);
  uint64_t bytes = 0;
  for (int32_t i = 0; i < count; ++i)
    bytes += pestle_world_bytes(ranks[i].world);
  if (!status)
    fprintf(stderr, "pestle: %d processes read %llu bytes of each other\n",
            (int)count, (unsigned long long)bytes);
  (void)job;
  return status;
}

pestle_status_t cli_spread_run(cli_job_t* job) {
  int32_t count = job->cli->spread->ranks;
  rank_t* ranks = PESTLE_ARENA_ARRAY(&job->cli->arena, rank_t, (size_t)count);
  pestle_world_t** worlds =
      PESTLE_ARENA_ARRAY(&job->cli->arena, pestle_world_t*, (size_t)count);
  if (!ranks || !worlds) return PESTLE_OOM();
  PESTLE_TRY(pestle_world_create_local(job->cli->context, count, NULL, worlds));
  for (int32_t i = 0; i < count; ++i)
    ranks[i] = (rank_t){.job = job, .world = worlds[i]};
  pestle_status_t status = run_all(job, ranks, count);
  for (int32_t i = 0; i < count; ++i) {
    pestle_status_release(ranks[i].status);
    pestle_executable_release(ranks[i].executable);
    for (size_t k = 0; k < ranks[i].array_count; ++k)
      cli_array_deinit(&ranks[i].arrays[k]);
    pestle_world_release(worlds[i]);
  }
  return status;
}

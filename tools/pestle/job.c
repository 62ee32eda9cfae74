// SPDX-License-Identifier: Apache-2.0
// A model or plan that is ready to run: its plan, executable, inputs and outputs.
#include <string.h>

#include "base/thread.h"
#include "cli.h"
#include "pestle/plan_format.h"

// --- From the model to an executable ---

pestle_status_t cli_limit_memory(cli_t* cli, pestle_device_t* device) {
  if (!cli->text[CLI_MEMORY_LIMIT]) return NULL;
  return pestle_status_annotate(
      pestle_device_memory_set(device, PESTLE_MEMORY_LIMIT,
                               (uint64_t)cli->count[CLI_MEMORY_LIMIT], NULL),
      "while setting --memory-limit %s", cli->text[CLI_MEMORY_LIMIT]);
}

// Of the device that the job runs on: without --device that of the plan's.
static pestle_status_t limit_memory(cli_job_t* job) {
  cli_t* cli = job->cli;
  if (!cli->text[CLI_MEMORY_LIMIT]) return NULL;
  pestle_device_t* device = job->device;
  if (!device) {
    const pestle_plan_header_t* plan = pestle_plan_data(job->plan, NULL);
    const char* data = (const char*)plan;
    const pestle_plan_device_t* home =
        (const pestle_plan_device_t*)(const void*)(data + plan->devices.offset);
    const char* backend = plan->devices.count
                              ? data + plan->strings.offset + home->backend
                              : NULL;
    PESTLE_TRY(pestle_context_device(cli->context, backend, &device));
  }
  return cli_limit_memory(cli, device);
}

static pestle_status_t load(cli_job_t* job) {
  cli_t* cli = job->cli;
  int64_t begin = pestle_clock_ns();
  PESTLE_TRY(limit_memory(job));
  PESTLE_TRY(pestle_executable_create(cli->context, job->plan, job->device,
                                      &job->executable));
  cli->times.load_ms = (double)(pestle_clock_ns() - begin) * 1e-6;
  job->input_count = pestle_executable_input_count(job->executable);
  return cli_rank_join(cli, job->plan);
}

static pestle_status_t create(cli_job_t* job, const char* path) {
  cli_t* cli = job->cli;
  int64_t begin = pestle_clock_ns();
  PESTLE_TRY(cli_open_plan(cli, path, &job->inputs, &job->plan, &job->device));
  PESTLE_TRY(load(job));
  job->create_ms = (double)(pestle_clock_ns() - begin) * 1e-6;
  if (cli->text[CLI_SAVE_PLAN])
    return pestle_plan_save(job->plan, cli->text[CLI_SAVE_PLAN]);
  return NULL;
}

// --- Inputs and outputs ---

// --input names that the model does not have are typing errors; files in a
// folder may be more than it needs (--const makes an input a constant).
static pestle_status_t check_names(const cli_job_t* job, const char* name) {
  size_t count = pestle_executable_input_count(job->executable);
  size_t known = job->inputs.name_count;
  pestle_strbuf_t names;
  pestle_strbuf_init(pestle_allocator_system(), &names);
  pestle_closest_t closest = pestle_closest_to(pestle_str(name));
  char hint[PESTLE_HINT];
  int64_t number;
  bool is_found = pestle_str_parse_i64(pestle_str(name), &number) &&
                  number >= 0 && (size_t)number < (known ? known : count);
  for (size_t i = 0; i < known; ++i) {
    is_found = is_found || !strcmp(job->inputs.names[i], name);
    pestle_closest_offer(&closest, pestle_str(job->inputs.names[i]));
    pestle_strbuf_appendf(&names, "%s'%s'", i ? ", " : "",
                          job->inputs.names[i]);
  }
  for (size_t i = 0; i < count; ++i) {
    pestle_io_info_t info = pestle_executable_input(job->executable, i);
    is_found = is_found || !strcmp(info.name, name);
    pestle_closest_offer(&closest, pestle_str(info.name));
    if (!known)
      pestle_strbuf_appendf(&names, "%s'%s'", i ? ", " : "", info.name);
  }
  pestle_status_t status = NULL;
  if (!is_found) {
    status = CLI_USAGE_ERROR("the model has no input '%s'; it has %s%s", name,
                             names.size ? pestle_strbuf_cstr(&names) : "none",
                             pestle_closest_hint(&closest, hint));
  }
  pestle_strbuf_deinit(&names);
  return status;
}

static bool is_name(const cli_job_t* job, pestle_str_t name) {
  size_t count = pestle_executable_input_count(job->executable);
  for (size_t i = 0; i < count; ++i) {
    pestle_io_info_t info = pestle_executable_input(job->executable, i);
    if (pestle_str_equal_c(name, info.name)) return true;
  }
  return false;
}

// An input may be given by its name and by its number: both mean the same one,
// unless the number is another's name.
static pestle_status_t check_same(const cli_job_t* job, size_t index) {
  pestle_io_info_t info = pestle_executable_input(job->executable, index);
  const char* by_name = NULL;
  const char* by_number = NULL;
  for (size_t i = 0; i < job->cli->list[CLI_INPUT].size; ++i) {
    pestle_str_t name;
    const char* rest;
    int64_t number;
    if (!cli_split(job->cli->list[CLI_INPUT].data[i], &name, &rest)) continue;
    if (pestle_str_equal_c(name, info.name)) {
      by_name = job->cli->list[CLI_INPUT].data[i];
    } else if (pestle_str_parse_i64(name, &number) &&
               number ==
                   (int64_t)cli_inputs_number(&job->inputs, index, info.name) &&
               !is_name(job, name)) {
      by_number = job->cli->list[CLI_INPUT].data[i];
    }
  }
  if (!by_name || !by_number) return NULL;
  return CLI_USAGE_ERROR("--input is given twice for '%s': as '%s' and as '%s'",
                         info.name, by_name, by_number);
}

static bool is_const(const cli_t* cli, pestle_str_t name) {
  for (size_t i = 0; i < cli->list[CLI_CONST].size; ++i) {
    pestle_str_t made, rest;
    pestle_str_split(pestle_str(cli->list[CLI_CONST].data[i]), '=', &made,
                     &rest);
    if (pestle_str_equal(made, name)) return true;
    if (pestle_str_equal_c(made, ":integers")) return true;
    if (pestle_str_equal_c(made, ":numbers")) return true;
  }
  return false;
}

// An input that nobody gives gets random values, where the job takes such.
static pestle_status_t fill(cli_job_t* job, size_t index, const char* name) {
  cli_lazy_t lazy = {name, "random:0"};
  bool is_given = cli_inputs_find(&job->inputs, index, name) ||
                  cli_inputs_has(&job->inputs, index, name);
  if (is_given || !job->fills) return NULL;
  ++job->filled;
  return pestle_vec_push(&job->inputs.lazy, lazy) ? NULL : PESTLE_OOM();
}

static pestle_status_t bind_inputs(cli_job_t* job) {
  size_t count = pestle_executable_input_count(job->executable);
  for (size_t i = 0; i < job->cli->list[CLI_INPUT].size; ++i) {
    pestle_str_t name;
    const char* rest;
    if (!cli_split(job->cli->list[CLI_INPUT].data[i], &name, &rest)) continue;
    if (is_const(job->cli, name)) continue;
    const char* text = cli_copy(job->cli, name);
    PESTLE_TRY(text ? check_names(job, text) : PESTLE_OOM());
  }
  cli_array_t* array;
  if (pestle_executable_needs_strings(job->executable))
    PESTLE_TRY(cli_words_make(job));
  for (size_t i = 0; i < count; ++i)
    PESTLE_TRY(check_same(job, i));
  for (size_t i = 0; i < count; ++i) {
    pestle_io_info_t info = pestle_executable_input(job->executable, i);
    PESTLE_TRY(cli_spread_io(job->cli, false, i, &info));
    PESTLE_TRY(fill(job, i, info.name));
    PESTLE_TRY(cli_words_bind(job, i, &info));
    PESTLE_TRY(cli_inputs_bind(&job->inputs, i, &info, &array));
  }
  // Views once no array moves any more.
  for (size_t i = 0; i < count; ++i) {
    pestle_io_info_t info = pestle_executable_input(job->executable, i);
    array = cli_inputs_find(&job->inputs, i, info.name);
    job->input_views[i] = cli_array_view(array);
  }
  return NULL;
}

static pestle_status_t make_outputs(cli_job_t* job) {
  size_t count = pestle_executable_output_count(job->executable);
  for (size_t i = 0; i < count; ++i) {
    pestle_io_info_t info = pestle_executable_output(job->executable, i);
    PESTLE_TRY(cli_spread_io(job->cli, true, i, &info));
    cli_array_t array;
    PESTLE_TRY(cli_array_init(info.dtype, info.rank, info.dims, &array));
    array.index = (int64_t)i;
    if (!pestle_vec_push(&job->outputs, array)) {
      cli_array_deinit(&array);
      return PESTLE_OOM();
    }
    PESTLE_TRY(cli_array_set_name(&pestle_vec_last(&job->outputs),
                                  pestle_str(info.name)));
  }
  for (size_t i = 0; i < count; ++i) {
    job->output_views[i] = cli_array_view(&job->outputs.data[i]);
  }
  return NULL;
}

static pestle_status_t bind(cli_job_t* job) {
  size_t outputs = pestle_executable_output_count(job->executable);
  job->input_views = PESTLE_ARENA_ARRAY(&job->cli->arena, pestle_tensor_t,
                                        job->input_count + 1);
  job->output_views =
      PESTLE_ARENA_ARRAY(&job->cli->arena, pestle_tensor_t, outputs + 1);
  if (!job->input_views || !job->output_views) return PESTLE_OOM();
  PESTLE_TRY(bind_inputs(job));
  return make_outputs(job);
}

// A run writes the real extents of outputs whose size depends on data.
void cli_job_reset(cli_job_t* job) {
  if (job->cli->spread) return;
  for (size_t i = 0; i < job->outputs.size; ++i) {
    pestle_io_info_t info = pestle_executable_output(job->executable, i);
    memcpy(job->outputs.data[i].dims, info.dims,
           (size_t)info.rank * sizeof(*info.dims));
  }
}

void cli_job_count_elements(cli_job_t* job) {
  for (size_t i = 0; i < job->outputs.size; ++i) {
    cli_array_t* a = &job->outputs.data[i];
    a->count = 1;
    for (int32_t j = 0; j < a->rank; ++j)
      a->count *= a->dims[j];
  }
}

bool cli_job_is_far(const cli_job_t* job) {
  for (size_t i = 0; i < job->outputs.size; ++i) {
    if (pestle_executable_output(job->executable, i).bounded) return false;
  }
  return job->device &&
         pestle_device_dl(job->device).device_type != PESTLE_DEVICE_CPU;
}

// --- Lanes ---

// A buffer of the device for what |array| has on the host.
static pestle_status_t move_view(cli_lane_t* lane, const cli_array_t* array,
                                 bool writes, pestle_tensor_t* view) {
  size_t size = (size_t)array->count * pestle_dtype_size(array->dtype);
  pestle_buffer_t* buffer;
  PESTLE_TRY(pestle_buffer_create(lane->job->device, size, &buffer));
  lane->buffers[lane->buffer_count++] = buffer;
  if (writes) PESTLE_TRY(pestle_buffer_write(buffer, 0, array->data, size));
  *view = cli_array_view((cli_array_t*)(uintptr_t)array);
  view->data = pestle_buffer_data(buffer);
  view->device = pestle_device_dl(lane->job->device);
  return NULL;
}

static pestle_status_t move_to_device(cli_lane_t* lane) {
  cli_job_t* job = lane->job;
  lane->buffers = PESTLE_ARENA_ARRAY(&job->cli->arena, pestle_buffer_t*,
                                     job->input_count + job->outputs.size + 1);
  if (!lane->buffers) return PESTLE_OOM();
  for (size_t i = 0; i < job->input_count; ++i) {
    pestle_io_info_t info = pestle_executable_input(job->executable, i);
    PESTLE_TRY(move_view(lane, cli_inputs_find(&job->inputs, i, info.name),
                         true, &lane->inputs[i]));
  }
  for (size_t i = 0; i < job->outputs.size; ++i) {
    PESTLE_TRY(
        move_view(lane, &job->outputs.data[i], false, &lane->outputs[i]));
  }
  return pestle_stream_create(job->device, &lane->stream);
}

static pestle_status_t make_arrays(cli_lane_t* lane) {
  cli_job_t* job = lane->job;
  lane->arrays =
      PESTLE_ARENA_ARRAY(&job->cli->arena, cli_array_t, job->outputs.size + 1);
  if (!lane->arrays) return PESTLE_OOM();
  for (size_t i = 0; i < job->outputs.size; ++i) {
    pestle_io_info_t info = pestle_executable_output(job->executable, i);
    cli_array_t* array = &lane->arrays[lane->array_count];
    PESTLE_TRY(cli_array_init(info.dtype, info.rank, info.dims, array));
    ++lane->array_count;
    lane->outputs[i] = cli_array_view(array);
  }
  return NULL;
}

pestle_status_t cli_lane_init(cli_job_t* job, cli_lane_t* out_lane) {
  *out_lane = (cli_lane_t){.job = job};
  pestle_arena_t* arena = &job->cli->arena;
  out_lane->inputs =
      PESTLE_ARENA_ARRAY(arena, pestle_tensor_t, job->input_count + 1);
  out_lane->outputs =
      PESTLE_ARENA_ARRAY(arena, pestle_tensor_t, job->outputs.size + 1);
  if (!out_lane->inputs || !out_lane->outputs) return PESTLE_OOM();
  if (cli_job_is_far(job)) return move_to_device(out_lane);
  memcpy(out_lane->inputs, job->input_views,
         job->input_count * sizeof(*out_lane->inputs));
  return make_arrays(out_lane);
}

pestle_status_t cli_lane_queue(cli_lane_t* lane) {
  const cli_job_t* job = lane->job;
  for (size_t i = 0; i < lane->array_count; ++i) {
    pestle_io_info_t info = pestle_executable_output(job->executable, i);
    memcpy(lane->arrays[i].dims, info.dims,
           (size_t)info.rank * sizeof(*info.dims));
  }
  pestle_run_options_t options = {.struct_size = sizeof(options),
                                  .world = job->cli->world,
                                  .strings = job->strings};
  return pestle_executable_run(job->executable, lane->stream, lane->inputs,
                               job->input_count, lane->outputs,
                               job->outputs.size, &options);
}

pestle_status_t cli_lane_wait(cli_lane_t* lane) {
  return lane->stream ? pestle_stream_synchronize(lane->stream) : NULL;
}

pestle_status_t cli_lane_fetch(cli_lane_t* lane) {
  cli_job_t* job = lane->job;
  for (size_t i = 0; i < job->outputs.size; ++i) {
    cli_array_t* array = &job->outputs.data[i];
    if (lane->stream) {
      pestle_buffer_t* buffer = lane->buffers[job->input_count + i];
      PESTLE_TRY(pestle_buffer_read(buffer, 0, array->data,
                                    pestle_buffer_size(buffer)));
    } else {
      memcpy(array->dims, lane->arrays[i].dims, sizeof(array->dims));
      if (array->size) memcpy(array->data, lane->arrays[i].data, array->size);
    }
  }
  return NULL;
}

void cli_lane_deinit(cli_lane_t* lane) {
  pestle_stream_release(lane->stream);
  for (size_t i = 0; i < lane->buffer_count; ++i)
    pestle_buffer_release(lane->buffers[i]);
  for (size_t i = 0; i < lane->array_count; ++i)
    cli_array_deinit(&lane->arrays[i]);
}

// --- Life ---

void cli_job_init(cli_t* cli, cli_job_t* out_job) {
  *out_job = (cli_job_t){.cli = cli};
  pestle_vec_init(&out_job->outputs, pestle_allocator_system());
  cli_inputs_init(&out_job->inputs);
}

pestle_status_t cli_job_open(cli_job_t* job, const char* path, bool fills) {
  job->fills = fills;
  PESTLE_TRY(cli_inputs_read(job->cli, &job->inputs));
  PESTLE_TRY(create(job, path));
  return bind(job);
}

pestle_status_t cli_job_load(cli_job_t* job, bool fills) {
  job->fills = fills;
  PESTLE_TRY(load(job));
  return bind(job);
}

void cli_job_deinit(cli_job_t* job) {
  for (size_t i = 0; i < job->outputs.size; ++i) {
    cli_array_deinit(&job->outputs.data[i]);
  }
  pestle_vec_deinit(&job->outputs);
  pestle_strings_release(job->strings);
  pestle_executable_release(job->executable);
  pestle_plan_release(job->plan);
  cli_inputs_deinit(&job->inputs);
}

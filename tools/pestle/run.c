// SPDX-License-Identifier: Apache-2.0
// pestle run: inputs, plan, executable, outputs.
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/thread.h"
#include "cli.h"

typedef struct run_t {
  cli_t* cli;
  cli_inputs_t inputs;
  cli_arrays_t outputs;
  pestle_plan_t* plan;
  pestle_executable_t* executable;
  pestle_tensor_t* input_views;
  pestle_tensor_t* output_views;
  double create_ms;
  double queued_ms;  // of a run among others on a stream; 0: not measured
  PESTLE_VEC(double) run_ms;
  // --bench on a device other than a CPU: everything lies there.
  pestle_device_t* device;
  pestle_stream_t* stream;
  pestle_buffer_t** buffers;  // of inputs, then outputs
  size_t buffer_count;
} run_t;

static double since_ms(int64_t begin_ns) {
  return (double)(pestle_clock_ns() - begin_ns) * 1e-6;
}

// --- From the model to an executable ---

static pestle_status_t create(run_t* run, const char* path) {
  cli_t* cli = run->cli;
  pestle_device_t* device;
  int64_t begin = pestle_clock_ns();
  PESTLE_TRY(cli_open_plan(cli, path, &run->inputs, &run->plan, &device));
  int64_t load = pestle_clock_ns();
  PESTLE_TRY(pestle_executable_create(cli->context, run->plan, device,
                                      &run->executable));
  run->device = device;
  cli->times.load_ms = since_ms(load);
  run->create_ms = since_ms(begin);
  if (!cli->text[CLI_SAVE_PLAN]) return NULL;
  return pestle_plan_save(run->plan, cli->text[CLI_SAVE_PLAN]);
}

// --- Inputs and outputs ---

// --input names that the model does not have are typing errors; files in a
// folder may be more than it needs (--const makes an input a constant).
static pestle_status_t check_names(const run_t* run, const char* name) {
  size_t count = pestle_executable_input_count(run->executable);
  size_t known = run->inputs.name_count;
  pestle_strbuf_t names;
  pestle_strbuf_init(pestle_allocator_system(), &names);
  int64_t number;
  bool is_found = pestle_str_parse_i64(pestle_str(name), &number) &&
                  number >= 0 && (size_t)number < (known ? known : count);
  for (size_t i = 0; i < known; ++i) {
    is_found = is_found || !strcmp(run->inputs.names[i], name);
    pestle_strbuf_appendf(&names, "%s'%s'", i ? ", " : "",
                          run->inputs.names[i]);
  }
  for (size_t i = 0; i < count; ++i) {
    pestle_io_info_t info = pestle_executable_input(run->executable, i);
    is_found = is_found || !strcmp(info.name, name);
    if (!known)
      pestle_strbuf_appendf(&names, "%s'%s'", i ? ", " : "", info.name);
  }
  pestle_status_t status = NULL;
  if (!is_found) {
    status = CLI_USAGE_ERROR("the model has no input '%s'; it has %s", name,
                             names.size ? pestle_strbuf_cstr(&names) : "none");
  }
  pestle_strbuf_deinit(&names);
  return status;
}

static bool is_name(const run_t* run, pestle_str_t name) {
  size_t count = pestle_executable_input_count(run->executable);
  for (size_t i = 0; i < count; ++i) {
    pestle_io_info_t info = pestle_executable_input(run->executable, i);
    if (pestle_str_equal_c(name, info.name)) return true;
  }
  return false;
}

// An input may be given by its name and by its number: both mean the same one,
// unless the number is another's name.
static pestle_status_t check_same(const run_t* run, size_t index) {
  pestle_io_info_t info = pestle_executable_input(run->executable, index);
  const char* by_name = NULL;
  const char* by_number = NULL;
  for (size_t i = 0; i < run->cli->list[CLI_INPUT].size; ++i) {
    pestle_str_t name;
    const char* rest;
    int64_t number;
    if (!cli_split(run->cli->list[CLI_INPUT].data[i], &name, &rest)) continue;
    if (pestle_str_equal_c(name, info.name)) {
      by_name = run->cli->list[CLI_INPUT].data[i];
    } else if (pestle_str_parse_i64(name, &number) &&
               number ==
                   (int64_t)cli_inputs_number(&run->inputs, index, info.name) &&
               !is_name(run, name)) {
      by_number = run->cli->list[CLI_INPUT].data[i];
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

static pestle_status_t bind_inputs(run_t* run) {
  size_t count = pestle_executable_input_count(run->executable);
  for (size_t i = 0; i < run->cli->list[CLI_INPUT].size; ++i) {
    pestle_str_t name;
    const char* rest;
    if (!cli_split(run->cli->list[CLI_INPUT].data[i], &name, &rest)) continue;
    if (is_const(run->cli, name)) continue;
    const char* text = cli_copy(run->cli, name);
    PESTLE_TRY(text ? check_names(run, text) : PESTLE_OOM());
  }
  cli_array_t* array;
  for (size_t i = 0; i < count; ++i)
    PESTLE_TRY(check_same(run, i));
  for (size_t i = 0; i < count; ++i) {
    pestle_io_info_t info = pestle_executable_input(run->executable, i);
    PESTLE_TRY(cli_inputs_bind(&run->inputs, i, &info, &array));
  }
  // Views once no array moves any more.
  for (size_t i = 0; i < count; ++i) {
    pestle_io_info_t info = pestle_executable_input(run->executable, i);
    array = cli_inputs_find(&run->inputs, i, info.name);
    run->input_views[i] = cli_array_view(array);
  }
  return NULL;
}

static pestle_status_t make_outputs(run_t* run) {
  size_t count = pestle_executable_output_count(run->executable);
  for (size_t i = 0; i < count; ++i) {
    pestle_io_info_t info = pestle_executable_output(run->executable, i);
    cli_array_t array;
    PESTLE_TRY(cli_array_init(info.dtype, info.rank, info.dims, &array));
    array.index = (int64_t)i;
    if (!pestle_vec_push(&run->outputs, array)) {
      cli_array_deinit(&array);
      return PESTLE_OOM();
    }
    PESTLE_TRY(cli_array_set_name(&pestle_vec_last(&run->outputs),
                                  pestle_str(info.name)));
  }
  for (size_t i = 0; i < count; ++i) {
    run->output_views[i] = cli_array_view(&run->outputs.data[i]);
  }
  return NULL;
}

static pestle_status_t bind(run_t* run) {
  size_t inputs = pestle_executable_input_count(run->executable);
  size_t outputs = pestle_executable_output_count(run->executable);
  run->input_views =
      PESTLE_ARENA_ARRAY(&run->cli->arena, pestle_tensor_t, inputs + 1);
  run->output_views =
      PESTLE_ARENA_ARRAY(&run->cli->arena, pestle_tensor_t, outputs + 1);
  if (!run->input_views || !run->output_views) return PESTLE_OOM();
  PESTLE_TRY(bind_inputs(run));
  return make_outputs(run);
}

// --- Running ---

// A run writes the real extents of outputs whose size depends on data.
static void reset_extents(run_t* run) {
  for (size_t i = 0; i < run->outputs.size; ++i) {
    pestle_io_info_t info = pestle_executable_output(run->executable, i);
    memcpy(run->outputs.data[i].dims, info.dims,
           (size_t)info.rank * sizeof(*info.dims));
  }
}

static void count_elements(run_t* run) {
  for (size_t i = 0; i < run->outputs.size; ++i) {
    cli_array_t* a = &run->outputs.data[i];
    a->count = 1;
    for (int32_t j = 0; j < a->rank; ++j)
      a->count *= a->dims[j];
  }
}

static pestle_status_t run_once(run_t* run) {
  pestle_run_options_t options = {.struct_size = sizeof(options)};
  reset_extents(run);
  return pestle_executable_run(run->executable, NULL, run->input_views,
                               pestle_executable_input_count(run->executable),
                               run->output_views, run->outputs.size, &options);
}

// --- On a device ---

// A buffer of the device in place of what |view| has on the host.
static pestle_status_t move_view(run_t* run, const cli_array_t* array,
                                 bool writes, pestle_tensor_t* view) {
  size_t size = (size_t)array->count * pestle_dtype_size(array->dtype);
  pestle_buffer_t* buffer;
  PESTLE_TRY(pestle_buffer_create(run->device, size, &buffer));
  run->buffers[run->buffer_count++] = buffer;
  if (writes) PESTLE_TRY(pestle_buffer_write(buffer, 0, array->data, size));
  view->data = pestle_buffer_data(buffer);
  view->device = pestle_device_dl(run->device);
  return NULL;
}

static bool has_bounds(const run_t* run) {
  for (size_t i = 0; i < run->outputs.size; ++i) {
    if (pestle_executable_output(run->executable, i).bounded) return true;
  }
  return false;
}

static pestle_status_t move_to_device(run_t* run) {
  size_t inputs = pestle_executable_input_count(run->executable);
  size_t outputs = run->outputs.size;
  run->buffers = PESTLE_ARENA_ARRAY(&run->cli->arena, pestle_buffer_t*,
                                    inputs + outputs + 1);
  if (!run->buffers) return PESTLE_OOM();
  for (size_t i = 0; i < inputs; ++i) {
    pestle_io_info_t info = pestle_executable_input(run->executable, i);
    const cli_array_t* array = cli_inputs_find(&run->inputs, i, info.name);
    PESTLE_TRY(move_view(run, array, true, &run->input_views[i]));
  }
  for (size_t i = 0; i < outputs; ++i) {
    PESTLE_TRY(
        move_view(run, &run->outputs.data[i], false, &run->output_views[i]));
  }
  return pestle_stream_create(run->device, &run->stream);
}

static pestle_status_t queue_once(run_t* run) {
  return pestle_executable_run(run->executable, run->stream, run->input_views,
                               pestle_executable_input_count(run->executable),
                               run->output_views, run->outputs.size, NULL);
}

// Each run with the wait for it, then as many that follow each other.
static pestle_status_t bench_on_device(run_t* run) {
  int64_t count = run->cli->count[CLI_BENCH];
  PESTLE_TRY(move_to_device(run));
  for (int i = 0; i < 3; ++i)  // the second one may be recorded
    PESTLE_TRY(queue_once(run));
  PESTLE_TRY(pestle_stream_synchronize(run->stream));
  for (int64_t i = 0; i < count; ++i) {
    int64_t begin = pestle_clock_ns();
    PESTLE_TRY(queue_once(run));
    PESTLE_TRY(pestle_stream_synchronize(run->stream));
    double ms = since_ms(begin);
    if (!pestle_vec_push(&run->run_ms, ms)) return PESTLE_OOM();
  }
  int64_t begin = pestle_clock_ns();
  for (int64_t i = 0; i < count; ++i)
    PESTLE_TRY(queue_once(run));
  PESTLE_TRY(pestle_stream_synchronize(run->stream));
  run->queued_ms = since_ms(begin) / (double)count;
  size_t inputs = pestle_executable_input_count(run->executable);
  for (size_t i = 0; i < run->outputs.size; ++i) {
    pestle_buffer_t* buffer = run->buffers[inputs + i];
    PESTLE_TRY(pestle_buffer_read(buffer, 0, run->outputs.data[i].data,
                                  pestle_buffer_size(buffer)));
  }
  return NULL;
}

static void reset_run(void* user) {
  reset_extents(user);
}

static pestle_status_t profile(run_t* run) {
  cli_profile_t p = {
      .executable = run->executable,
      .device = run->device,
      .inputs = run->input_views,
      .outputs = run->output_views,
      .input_count = pestle_executable_input_count(run->executable),
      .output_count = run->outputs.size,
      .reset = reset_run,
      .user = run};
  PESTLE_TRY(cli_profile(run->cli, &p));
  count_elements(run);
  return NULL;
}

static pestle_status_t run_all(run_t* run) {
  if (run->cli->text[CLI_PROFILE]) return profile(run);
  bool far = run->device &&
             pestle_device_dl(run->device).device_type != PESTLE_DEVICE_CPU;
  if (run->cli->text[CLI_BENCH] && far && !has_bounds(run)) {
    return bench_on_device(run);
  }
  PESTLE_TRY(run_once(run));  // the warm-up of --bench
  for (int64_t i = 0; i < run->cli->count[CLI_BENCH]; ++i) {
    int64_t begin = pestle_clock_ns();
    PESTLE_TRY(run_once(run));
    double ms = since_ms(begin);
    if (!pestle_vec_push(&run->run_ms, ms)) return PESTLE_OOM();
  }
  count_elements(run);
  return NULL;
}

// --- What comes out ---

static pestle_status_t print_bench(const run_t* run) {
  const cli_times_t* times = &run->cli->times;
  pestle_strbuf_t text;
  pestle_json_t json;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  pestle_json_init(&text, 0, &json);
  pestle_json_begin_object(&json);
  pestle_json_key(&json, "create_ms");
  pestle_json_f64(&json, run->create_ms);
  pestle_json_key(&json, "run_ms");
  pestle_json_begin_array(&json);
  for (size_t i = 0; i < run->run_ms.size; ++i) {
    pestle_json_f64(&json, run->run_ms.data[i]);
  }
  pestle_json_end_array(&json);
  if (run->queued_ms > 0) {
    pestle_json_key(&json, "queued_ms");
    pestle_json_f64(&json, run->queued_ms);
  }
  pestle_json_key(&json, "peak_rss_kb");
  pestle_json_i64(&json, cli_peak_rss_kb());
  pestle_json_key(&json, "import_ms");
  pestle_json_f64(&json, times->import_ms);
  pestle_json_key(&json, "compile_ms");
  pestle_json_f64(&json, times->compile_ms);
  pestle_json_key(&json, "load_ms");
  pestle_json_f64(&json, times->load_ms);
  pestle_json_end_object(&json);
  pestle_status_t status = pestle_strbuf_status(&text);
  if (!status) printf("%s\n", pestle_strbuf_cstr(&text));
  pestle_strbuf_deinit(&text);
  return status;
}

static pestle_status_t deliver(run_t* run, int* out_exit) {
  cli_t* cli = run->cli;
  if (cli->text[CLI_OUTPUTS]) {
    PESTLE_TRY(cli_outputs_write(cli, &run->inputs, cli->text[CLI_OUTPUTS],
                                 &run->outputs));
  }
  bool profiled = cli->text[CLI_PROFILE] != NULL;
  if (cli->text[CLI_BENCH] && !profiled) PESTLE_TRY(print_bench(run));
  if (cli->text[CLI_COMPARE]) {
    bool is_equal = true;
    PESTLE_TRY(cli_outputs_compare(cli, &run->inputs, cli->text[CLI_COMPARE],
                                   &run->outputs, &is_equal));
    if (!is_equal) *out_exit = CLI_CHECK_FAILED;
  }
  if (!cli->text[CLI_OUTPUTS] && !cli->text[CLI_BENCH] &&
      !cli->text[CLI_COMPARE] && !profiled) {
    cli_outputs_print(&run->outputs);
  }
  return NULL;
}

static void run_deinit(run_t* run) {
  for (size_t i = 0; i < run->outputs.size; ++i) {
    cli_array_deinit(&run->outputs.data[i]);
  }
  pestle_stream_release(run->stream);
  for (size_t i = 0; i < run->buffer_count; ++i)
    pestle_buffer_release(run->buffers[i]);
  pestle_vec_deinit(&run->outputs);
  pestle_vec_deinit(&run->run_ms);
  pestle_executable_release(run->executable);
  pestle_plan_release(run->plan);
  cli_inputs_deinit(&run->inputs);
}

pestle_status_t cli_run(cli_t* cli, int* out_exit) {
  const char* path;
  PESTLE_TRY(cli_only_argument(cli, "a model or plan", &path));
  if (cli->text[CLI_BENCH] && cli->count[CLI_BENCH] < 1) {
    return CLI_USAGE_ERROR("--bench wants at least 1 run, not '%s'",
                           cli->text[CLI_BENCH]);
  }
  PESTLE_TRY(cli_outputs_check_options(cli));
  if (cli->text[CLI_SAVE_PLAN] && !cli_is_plan(path)) {
    PESTLE_TRY(cli_check_target(path, cli->text[CLI_SAVE_PLAN], "--save-plan"));
  }
  run_t run = {.cli = cli};
  pestle_vec_init(&run.outputs, pestle_allocator_system());
  pestle_vec_init(&run.run_ms, pestle_allocator_system());
  pestle_status_t status = cli_inputs_read(cli, &run.inputs);
  if (!status) status = create(&run, path);
  if (!status) status = bind(&run);
  if (!status) status = run_all(&run);
  if (!status) status = deliver(&run, out_exit);
  run_deinit(&run);
  return status;
}

// SPDX-License-Identifier: Apache-2.0
// The pestle command: what its verbs share. stdout carries data alone; errors
// and progress go to stderr.
//
// tools/ has the command, the conformance kit, and scripts that check the
// sources. tools/ knows nothing of the library but include/pestle and base/
// (the kit's generators also ir/).
#ifndef PESTLE_TOOLS_CLI_H_
#define PESTLE_TOOLS_CLI_H_

#include <stdatomic.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/closest.h"
#include "base/json.h"
#include "base/str.h"
#include "base/vec.h"
#include "pestle/pestle.h"

// Exit codes, documented in --help.
enum {
  CLI_DONE = 0,
  CLI_CHECK_FAILED = 1,
  CLI_USAGE = 2,
  CLI_UNSUPPORTED = 3,
  CLI_BAD_INPUT = 4,
  CLI_RESOURCES = 5,
  CLI_INTERNAL = 6,
};

typedef enum cli_option_e {
#define PESTLE_OPTION(ID, ...) CLI_##ID,
#include "options.def"
  CLI_OPTION_COUNT
} cli_option_t;

// The bar on a terminal that a long compile shows.
typedef struct cli_progress_t {
  int64_t begin_ns;  // 0: no bar
  atomic_bool is_shown;
} cli_progress_t;

// How long the steps from a file to an executable took.
typedef struct cli_times_t {
  double import_ms, compile_ms, load_ms;
} cli_times_t;

// Who runs a divided model (spread_compiler.c).
typedef struct cli_spread_t cli_spread_t;

typedef struct cli_t {
  const char* verb;
  pestle_arena_t arena;
  const char* text[CLI_OPTION_COUNT];  // TEXT, and FLAG ("1"); NULL: not given
  int64_t count[CLI_OPTION_COUNT];     // COUNT, BYTES
  PESTLE_VEC(const char*) list[CLI_OPTION_COUNT];
  PESTLE_VEC(const char*) args;  // what is no option
  const char* stdin_path;  // by which a model from a pipe is read, or NULL
  pestle_context_t* context;
  pestle_world_t*
      world;  // as whom plans for several processes are run, or NULL
  pestle_log_level_t log_level;  // messages above it are not shown
  cli_progress_t progress;
  pestle_control_t control;  // shows |progress|
  cli_times_t times;
  // Of --json: the object that stdout will be, open for the verb's members; else
  // NULL, and the verb prints text.
  pestle_json_t* json;
  cli_spread_t* spread;  // of a model that is run in parts, or NULL
} cli_t;

// A status for a wrong command line: exit code 2.
#define CLI_USAGE_ERROR(...) \
  pestle_status_make(PESTLE_STATUS_INVALID_ARGUMENT, "usage", 0, __VA_ARGS__)

// |status| as a wrong command line, when its code is |code|.
PESTLE_NODISCARD pestle_status_t cli_as_usage(pestle_status_t status,
                                              pestle_status_code_t code);
// That each name of |list|, with commas, is a pass (or "all"): one with a typing
// error would else be seen only if the passes run. |name| is what gave the list,
// which may be NULL.
PESTLE_NODISCARD pestle_status_t cli_check_passes(const char* name,
                                                  const char* list,
                                                  bool takes_all);
// "; did you mean 'graph'?" in |out_hint|, or "": of |names|, which end with NULL.
const char* cli_hint(pestle_str_t typed, const char* const* names,
                     char out_hint[PESTLE_HINT]);
// Splits "NAME=REST" at the first '='. False without one or without a name.
bool cli_split(const char* text, pestle_str_t* out_name, const char** out_rest);
// A terminated copy that lives as long as |cli|; NULL when out of memory.
const char* cli_copy(cli_t* cli, pestle_str_t text);
// |text| for a terminal and for who reads lines: control characters, which names of
// files may have, as \xNN. In the arena; "(out of memory)" where that has no more.
const char* cli_shown(cli_t* cli, const char* text);
// Makes cli->context as the options and the environment say.
PESTLE_NODISCARD pestle_status_t cli_open_context(cli_t* cli);
// The device of --device; NULL without the option lets the library choose.
PESTLE_NODISCARD pestle_status_t cli_device(cli_t* cli,
                                            pestle_device_t** out_device);
// Where an option for inputs or outputs has "{rank}": joins the world that the
// environment names, and puts the rank's number there.
PESTLE_NODISCARD pestle_status_t cli_rank_words(cli_t* cli);
// Joins it where |plan| is for several processes.
PESTLE_NODISCARD pestle_status_t cli_rank_join(cli_t* cli,
                                               const pestle_plan_t* plan);
// The only argument that is no option: |what| names it in the error.
PESTLE_NODISCARD pestle_status_t cli_only_argument(cli_t* cli, const char* what,
                                                   const char** out_argument);
// Prints "pestle: error: ..." on stderr.
void cli_say_error(const char* format, ...) PESTLE_PRINTF(1, 2);
// Prints "pestle: warn: ", with its colour.
void cli_print_label(FILE* out, pestle_log_level_t level);

typedef enum cli_colour_e {
  CLI_PLAIN,  // ends a colour
  CLI_BOLD,
  CLI_RED,
  CLI_GREEN,
  CLI_YELLOW,
} cli_colour_t;

// What switches a terminal to it; "" where |file| is none, TERM is dumb or NO_COLOR
// is set.
const char* cli_colour(FILE* file, cli_colour_t colour);
// From 40 to 120: COLUMNS, the terminal's width, or 80.
int cli_terminal_width(FILE* file);

// --- The system (system_posix.c) ---

bool cli_is_terminal(FILE* file);
// Where '-' stands for the model, reads it from stdin: cli->args has a path in its
// place that this process and its children can open.
PESTLE_NODISCARD pestle_status_t cli_take_stdin(cli_t* cli);
// Lets writes beyond the limit on files fail, with a sentence, and has children
// waited for, whatever the parent did about either.
void cli_set_signals(void);
// Ends the process without running what libraries have for its end: of those that
// 'pestle plugins' opens nothing is known. Comes back under sanitizers, which
// look for leaks there.
void cli_leave(int code);
// A variable that is set to something; NULL with raised privileges.
const char* cli_environment(const char* name);
// The most memory that the process had resident.
int64_t cli_peak_rss_kb(void);

// The file that this program was started from.
PESTLE_NODISCARD pestle_status_t cli_own_path(pestle_arena_t* arena,
                                              const char** out_path);
// Runs the program |path| in place of this one; comes back only when it cannot
// be run. |arguments| end with NULL.
PESTLE_NODISCARD pestle_status_t cli_become(const char* path,
                                            const char* const* arguments);
// Runs |command| in the shell: its exit code, or 128 and the signal that ended
// it.
int cli_run_command(const char* command);
// Runs |arguments|, which begin with a program that is looked for in PATH and end
// with NULL: its exit code, or 128 and the signal that ended it. NOT_FOUND, IO: it
// cannot be run.
PESTLE_NODISCARD pestle_status_t cli_run_program(const char* const* arguments,
                                                 int* out_exit);

// A program that answers lines with lines (child_posix.c).
typedef struct cli_child_t {
  int64_t pid;  // 0: none
  FILE *in, *out;
  char* line;  // the last one that was read, without its end
  size_t capacity;
} cli_child_t;

// |arguments| as in cli_run_program().
PESTLE_NODISCARD pestle_status_t cli_child_start(const char* const* arguments,
                                                 cli_child_t* out_child);
// False when there is no line any more.
bool cli_child_read(cli_child_t* child);
// Closes its input and waits for its end. A child that never started is allowed.
void cli_child_stop(cli_child_t* child);
// A new folder that is nobody else's.
PESTLE_NODISCARD pestle_status_t cli_temporary_folder(cli_t* cli,
                                                      const char** out_path);
// Removes |path| with its files; it holds no folders.
void cli_remove_folder(cli_t* cli, const char* path);

// How long the processors that this process may use were busy, and how long with
// this process (load_posix.c).
typedef struct cli_load_t {
  int64_t at_ns;
  double busy_s, own_s;
  bool is_known;
} cli_load_t;

void cli_load_read(cli_load_t* out_load);
// How many of these processors other programs used between two looks; negative: not
// known.
double cli_load_of_others(const cli_load_t* before, const cli_load_t* after);
// Whether so many processors are enough to disturb a measurement.
bool cli_load_is_busy(double others);
// "2026-11-28 21:04:05Z" of pestle_wall_clock_ns().
const char* cli_date(int64_t wall_ns, char* buffer, size_t capacity);

// --- Verbs ---

PESTLE_NODISCARD pestle_status_t cli_run(cli_t* cli, int* out_exit);
PESTLE_NODISCARD pestle_status_t cli_world(cli_t* cli, int* out_exit);
PESTLE_NODISCARD pestle_status_t cli_bench(cli_t* cli, int* out_exit);
PESTLE_NODISCARD pestle_status_t cli_generate(cli_t* cli, int* out_exit);
PESTLE_NODISCARD pestle_status_t cli_compile(cli_t* cli, int* out_exit);
PESTLE_NODISCARD pestle_status_t cli_opt(cli_t* cli, int* out_exit);
PESTLE_NODISCARD pestle_status_t cli_dump(cli_t* cli, int* out_exit);
PESTLE_NODISCARD pestle_status_t cli_explain(cli_t* cli, int* out_exit);
PESTLE_NODISCARD pestle_status_t cli_diff(cli_t* cli, int* out_exit);
PESTLE_NODISCARD pestle_status_t cli_reduce(cli_t* cli, int* out_exit);
PESTLE_NODISCARD pestle_status_t cli_op_test(cli_t* cli, int* out_exit);
PESTLE_NODISCARD pestle_status_t cli_info(cli_t* cli, int* out_exit);
PESTLE_NODISCARD pestle_status_t cli_view(cli_t* cli, int* out_exit);
PESTLE_NODISCARD pestle_status_t cli_devices(cli_t* cli, int* out_exit);
PESTLE_NODISCARD pestle_status_t cli_plugins(cli_t* cli, int* out_exit);
PESTLE_NODISCARD pestle_status_t cli_plugins_test(cli_t* cli, int* out_exit);
PESTLE_NODISCARD pestle_status_t cli_cache(cli_t* cli, int* out_exit);
// The text of doctor_jax.py, in Python.
extern const char cli_doctor_jax[];
PESTLE_NODISCARD pestle_status_t cli_doctor(cli_t* cli, int* out_exit);
// Compiles and runs a small program on |device|, and says whether its result is right.
PESTLE_NODISCARD pestle_status_t cli_doctor_compute(cli_t* cli,
                                                    pestle_device_t* device,
                                                    bool* out_is_right);

// --- Host arrays (array.c, npy.c) ---

// A contiguous host tensor with memory of its own.
typedef struct cli_array_t {
  char* name;     // or NULL
  int64_t index;  // of the input in the model's order; -1: known by name only
  bool is_made;   // for this index alone, whatever other input has the name
  pestle_dtype_t dtype;
  int32_t rank;
  int64_t dims[PESTLE_MAX_RANK];
  int64_t count;  // elements
  void* data;     // 64-byte aligned
  size_t size;    // bytes
  // Of an array of strings, whose |data| are their numbers, i32: they and their bytes
  // in one piece of memory; else NULL.
  pestle_string_t* words;
  size_t words_size;
} cli_array_t;
typedef PESTLE_VEC(cli_array_t) cli_arrays_t;

// Makes a zero-filled array.
PESTLE_NODISCARD pestle_status_t cli_array_init(pestle_dtype_t dtype,
                                                int32_t rank,
                                                const int64_t* dims,
                                                cli_array_t* out_array);
void cli_array_deinit(cli_array_t* array);
PESTLE_NODISCARD pestle_status_t cli_array_set_name(cli_array_t* array,
                                                    pestle_str_t name);
// A view without strides; a run may change |array|->dims through it.
pestle_tensor_t cli_array_view(cli_array_t* array);
// Takes the bytes for |dtype| when .npy files store it as what |array| holds:
// bf16 as u16, f8 and 4-bit integers as u8.
void cli_array_retype(cli_array_t* array, pestle_dtype_t dtype);
double cli_array_get(const cli_array_t* array, int64_t index);
// By their values; as doubles, large integers seem equal.
bool cli_array_is_less(const cli_array_t* array, int64_t a, int64_t b);
// With as many digits as tell any two elements of the type apart.
const char* cli_print_exact(const cli_array_t* array, int64_t index,
                            char* buffer, size_t capacity);
// Integers exactly, floats to six digits.
const char* cli_print_element(const cli_array_t* array, int64_t index,
                              char* buffer, size_t capacity);
void cli_array_set(cli_array_t* array, int64_t index, double value);
void cli_fill_random(cli_array_t* array, uint64_t seed);
// "0.5", "inf", "true" or "random:SEED".
PESTLE_NODISCARD pestle_status_t cli_fill(cli_array_t* array,
                                          const char* value);

// The dtype of a name as users write it: f32, float32, int64, bool ... or NONE.
pestle_dtype_t cli_dtype(pestle_str_t name);
// "1x3xf32", "f32", "scalar", or "1x3" (then |*out_dtype| is NONE).
PESTLE_NODISCARD pestle_status_t cli_parse_type(pestle_str_t text,
                                                pestle_dtype_t* out_dtype,
                                                int32_t* out_rank,
                                                int64_t dims[PESTLE_MAX_RANK]);
// Writes "1x3", "scalar", with "?" for what is not known.
const char* cli_print_dims(int32_t rank, const int64_t* dims, char* buffer,
                           size_t capacity);

// .npy files, little-endian, C order (Fortran order is read too).
PESTLE_NODISCARD pestle_status_t cli_npy_read(const char* path,
                                              cli_array_t* out_array);
PESTLE_NODISCARD pestle_status_t cli_npy_write(const char* path,
                                               const cli_array_t* array);

// --- Arrays of strings (words.c) ---

// Room for the strings of |array| and |bytes| of their own.
PESTLE_NODISCARD pestle_status_t cli_words_init(cli_array_t* array,
                                                size_t bytes, char** out_bytes);
void cli_words_deinit(cli_array_t* array);
// Strings of |length| characters each, of 4 bytes or one; zeros fill them up.
PESTLE_NODISCARD pestle_status_t cli_words_read(const char* from, size_t length,
                                                bool wide, cli_array_t* array);
// The characters of the longest, at least 1; and all, so long, of 4 bytes each.
size_t cli_words_length(const cli_array_t* array);
void cli_words_write(const cli_array_t* array, size_t length,
                     pestle_strbuf_t* out);
const char* cli_print_word(const cli_array_t* array, int64_t index,
                           char* buffer, size_t capacity);
// How many differ of arrays that are alike in shape, and the first of them.
int64_t cli_words_compare(const cli_array_t* found, const cli_array_t* expected,
                          int64_t* out_first);

// --- Inputs (inputs.c) ---

// A value for an input whose type only the model knows.
typedef struct cli_lazy_t {
  const char* name;
  const char* value;  // as cli_fill() takes it
} cli_lazy_t;

// What the caller gives for inputs, read before the model is opened.
typedef struct cli_inputs_t {
  cli_arrays_t arrays;
  PESTLE_VEC(cli_lazy_t) lazy;
  PESTLE_VEC(const char*) output_files;  // of io.txt, by index; may be NULL
  // The model's inputs as numbers count them, in the arena, where those are not
  // the executable's: some were specialised on, or have a default.
  const char** names;
  size_t name_count;
} cli_inputs_t;

// None.
void cli_inputs_init(cli_inputs_t* out_inputs);
PESTLE_NODISCARD pestle_status_t cli_inputs_read(cli_t* cli,
                                                 cli_inputs_t* out_inputs);
void cli_inputs_deinit(cli_inputs_t* inputs);
// Which of the model's inputs, as numbers on the command line count them, input
// |index| of the executable, called |name|, is.
size_t cli_inputs_number(const cli_inputs_t* inputs, size_t index,
                         const char* name);
// The given array for input |index| called |name| (may be NULL), or NULL.
cli_array_t* cli_inputs_find(cli_inputs_t* inputs, size_t index,
                             const char* name);
// Whether an input that cli_inputs_find() does not find can be made.
bool cli_inputs_has(const cli_inputs_t* inputs, size_t index, const char* name);
// The text that the command line gives for it, or NULL.
const char* cli_inputs_value(const cli_inputs_t* inputs, size_t index,
                             const char* name);
// The array for an input of a known type: found, or made from a lazy value.
PESTLE_NODISCARD pestle_status_t cli_inputs_bind(cli_inputs_t* inputs,
                                                 size_t index,
                                                 const pestle_io_info_t* info,
                                                 cli_array_t** out_array);

// --- What is ready to run (job.c) ---

typedef struct cli_job_t {
  cli_t* cli;
  cli_inputs_t inputs;
  cli_arrays_t outputs;  // on the host
  pestle_plan_t* plan;
  pestle_device_t* device;  // NULL: the one that the plan names
  pestle_executable_t* executable;
  pestle_strings_t* strings;                    // NULL: none was needed yet
  pestle_tensor_t *input_views, *output_views;  // of the host
  size_t input_count;
  bool fills;     // an input that is not given gets random values
  size_t filled;  // how many did
  double create_ms;
} cli_job_t;

// Holds |device| to --memory-limit, if that is given.
PESTLE_NODISCARD pestle_status_t cli_limit_memory(cli_t* cli,
                                                  pestle_device_t* device);
// An empty one: it may be deinitialised.
void cli_job_init(cli_t* cli, cli_job_t* out_job);
// Opens the model or plan |path| with the inputs of the command line, in an empty
// job, which must be deinitialised whatever comes back.
PESTLE_NODISCARD pestle_status_t cli_job_open(cli_job_t* job, const char* path,
                                              bool fills);
// Makes a job that has inputs, plan and device ready to run.
PESTLE_NODISCARD pestle_status_t cli_job_load(cli_job_t* job, bool fills);
void cli_job_deinit(cli_job_t* job);
// Makes |job|'s strings unless it has them.
PESTLE_NODISCARD pestle_status_t cli_words_make(cli_job_t* job);
// The numbers of the strings of input |index|, where it takes strings; and the strings
// of all outputs that give them, after a run.
PESTLE_NODISCARD pestle_status_t cli_words_bind(cli_job_t* job, size_t index,
                                                const pestle_io_info_t* info);
PESTLE_NODISCARD pestle_status_t cli_words_decode(cli_job_t* job);
// Before a run: the outputs' extents are their bounds. After the last one: their
// elements are counted.
void cli_job_reset(cli_job_t* job);
void cli_job_count_elements(cli_job_t* job);
// Whether runs are on a stream, with all values in the device's own memory: not
// where a run says how large an output is.
bool cli_job_is_far(const cli_job_t* job);

// One of those that run a job at once: outputs of its own; on a far device also
// inputs there and a stream.
typedef struct cli_lane_t {
  cli_job_t* job;
  pestle_tensor_t *inputs, *outputs;
  cli_array_t* arrays;  // of outputs on the host
  size_t array_count;
  pestle_stream_t* stream;    // or NULL
  pestle_buffer_t** buffers;  // of inputs, then outputs
  size_t buffer_count;
} cli_lane_t;

// Takes memory of the command's arena: one thread at a time. |out_lane| must be
// deinitialised whatever comes back.
PESTLE_NODISCARD pestle_status_t cli_lane_init(cli_job_t* job,
                                               cli_lane_t* out_lane);
void cli_lane_deinit(cli_lane_t* lane);
// Runs once; with a stream only queues.
PESTLE_NODISCARD pestle_status_t cli_lane_queue(cli_lane_t* lane);
PESTLE_NODISCARD pestle_status_t cli_lane_wait(cli_lane_t* lane);
// Brings the lane's outputs to the job's.
PESTLE_NODISCARD pestle_status_t cli_lane_fetch(cli_lane_t* lane);

// --- Models in parts (spread_compiler.c) ---

// Says what --mesh and --shard say of |module|.
PESTLE_NODISCARD pestle_status_t cli_spread_say(cli_t* cli,
                                                pestle_module_t* module);
// Divides |module|, if it is to run in parts, and makes cli->spread.
PESTLE_NODISCARD pestle_status_t
cli_spread_open(cli_t* cli, pestle_module_t* module, pestle_device_t* device,
                const pestle_compile_options_t* options);
void cli_spread_close(cli_t* cli);
// |info|, of a part, becomes that of the whole, where there are parts.
PESTLE_NODISCARD pestle_status_t cli_spread_io(cli_t* cli, bool of_result,
                                               size_t index,
                                               pestle_io_info_t* info);
// Runs every part of a job that has cli->spread, each on a thread.
PESTLE_NODISCARD pestle_status_t cli_spread_run(cli_job_t* job);

// --- Outputs (outputs.c) ---

PESTLE_NODISCARD pestle_status_t cli_outputs_write(cli_t* cli,
                                                   const cli_inputs_t* inputs,
                                                   const char* folder,
                                                   const cli_arrays_t* outputs);
// --atol and --rtol are numbers and have something to do.
PESTLE_NODISCARD pestle_status_t cli_outputs_check_options(const cli_t* cli);
void cli_outputs_print(const cli_arrays_t* outputs);
// The member "outputs" of |json|: what cli_outputs_print() says.
void cli_outputs_json(const cli_arrays_t* outputs, pestle_json_t* json);
// Compares with --compare; sets |*out_equal| and says where and how much they differ,
// and of those that agree by how much at most: on stderr, or as the member "compare"
// of |json| where that is not NULL.
PESTLE_NODISCARD pestle_status_t cli_outputs_compare(
    cli_t* cli, const cli_inputs_t* inputs, const char* folder,
    cli_arrays_t* outputs, pestle_json_t* json, bool* out_equal);

// --- What is told of models and plans (info.c) ---

// What a run of |plan| takes: members of |json|, or a paragraph when that is NULL.
PESTLE_NODISCARD pestle_status_t cli_info_cost(const pestle_plan_t* plan,
                                               pestle_json_t* json);
// "f32", or "str" of |strings|, whose numbers are of |dtype|; NULL of none.
const char* cli_info_type(pestle_dtype_t dtype, bool strings);
// One input or output, number |index|, of |type| (NULL: it is not known); |width| is that
// of the longest name. |dim_names| may be NULL, and |note| says more or is "".
void cli_info_value(size_t index, const char* name, int width, const char* type,
                    int32_t rank, const int64_t* dims,
                    const char* const* dim_names, const char* note);
// The same as an object of |json|, left open for more members.
void cli_info_json_value(pestle_json_t* json, const char* name,
                         const char* type, int32_t rank, const int64_t* dims,
                         const char* const* dim_names);
// "91.2 MB", "512 B".
const char* cli_info_bytes(uint64_t bytes, char* buffer, size_t capacity);

// --- Profiles (profile.c, limits_compiler.c) ---

// What was measured: operations or bytes a second (0: not known), and by what share of
// the shortest time the median is longer.
typedef struct cli_limit_t {
  double rate, spread;
} cli_limit_t;

// What a device does at most, as kernels that Pestle compiles measured it.
typedef struct cli_limits_t {
  // Operations: of f32; in products of f16 or bf16, and of bytes.
  cli_limit_t flops, half_flops, byte_flops;
  cli_limit_t l2, l3, memory;   // bytes
  uint64_t l2_bytes, l3_bytes;  // of all threads; 0: there is no L3
  int32_t threads;
  bool lanes;         // a GPU: threads mean nothing to it
  bool was_measured;  // now; else read from the cache folder
  int64_t date_ns;    // of pestle_wall_clock_ns()
  double
      others;  // processors that other programs used then; negative: not known
} cli_limits_t;

// The limits of |device| (NULL: the default), measured |anew| or as they were kept; of
// two measurements the better. All 0 where kernels are interpreted, and in a build
// without the compiler.
PESTLE_NODISCARD pestle_status_t cli_limits(cli_t* cli, pestle_device_t* device,
                                            bool anew,
                                            cli_limits_t* out_limits);
// The largest spread of them.
double cli_limits_spread(const cli_limits_t* limits);
// The name of this machine, cut to |capacity|.
void cli_host_name(char* out_name, size_t capacity);

// --profile: runs a job, and prints the table or writes the JSON.
PESTLE_NODISCARD pestle_status_t cli_profile(cli_job_t* job);

// Runs, and writes the profile as an object of |json|, with the steps of the fastest
// run of all in the order in which they ran: "events" of [step, begin us, end us].
PESTLE_NODISCARD pestle_status_t cli_profile_json(cli_job_t* job,
                                                  pestle_json_t* json);

// --- Models (model.c; model_, bindings_, compile_options_, tensor_compiler.c) ---

// Whether |path| is a saved plan, whole or damaged.
bool cli_is_plan(const char* path);
// Whether it holds several.
bool cli_is_plan_set(const char* path);
// The plan of the set at |path| that fits |inputs| (may be NULL: any), the first
// where several do.
PESTLE_NODISCARD pestle_status_t cli_choose_plan(cli_t* cli, const char* path,
                                                 cli_inputs_t* inputs,
                                                 pestle_plan_t** out_plan);
// Refuses to write to |file|, given as |option|, when it is the model itself.
PESTLE_NODISCARD pestle_status_t cli_check_target(const char* model,
                                                  const char* file,
                                                  const char* option);
// Refuses a trace that would be written over a file that the command reads or
// writes.
PESTLE_NODISCARD pestle_status_t cli_check_trace(cli_t* cli, const char* trace);
// The only argument, a model and no plan.
PESTLE_NODISCARD pestle_status_t cli_only_model(cli_t* cli,
                                                const char** out_path);
// A plan of |path|: loaded when it is one, else imported and compiled. Without
// --device |*out_device| may be NULL for a loaded plan: the one that it names.
PESTLE_NODISCARD pestle_status_t cli_open_plan(cli_t* cli, const char* path,
                                               cli_inputs_t* inputs,
                                               pestle_plan_t** out_plan,
                                               pestle_device_t** out_device);

// What needs the compiler. A build without it has these in runtime_only.c.
PESTLE_NODISCARD pestle_status_t cli_compile_plan(cli_t* cli, const char* path,
                                                  cli_inputs_t* inputs,
                                                  pestle_device_t* device,
                                                  pestle_plan_t** out_plan);
// An array of a serialised onnx.TensorProto.
PESTLE_NODISCARD pestle_status_t cli_read_pb(cli_t* cli, const char* path,
                                             cli_array_t* out_array);
// Imports the model with --dim, --shape, --const, specialised by |inputs| (may
// be NULL): static, or an error lists the dimensions that are left.
PESTLE_NODISCARD pestle_status_t cli_open_module(cli_t* cli, const char* path,
                                                 cli_inputs_t* inputs,
                                                 pestle_module_t** out_module);
// As the executable calls input |i|: by the source's name, else by position.
const char* cli_input_name(const pestle_function_t* f, size_t i, char out[32]);
bool cli_is_static(const pestle_type_t* type);
// A wrong command line unless all |types|, of the arguments of |f|, are static: lists
// the inputs that are not, with the names of their dims.
PESTLE_NODISCARD pestle_status_t cli_check_static(const cli_t* cli,
                                                  pestle_function_t* f,
                                                  const pestle_type_t* types,
                                                  size_t count);
// Describes the model as --dim, --shape and --const make it; the caller releases
// |*out_info|.
PESTLE_NODISCARD pestle_status_t cli_describe_model(
    cli_t* cli, const char* path, const pestle_model_info_t** out_info);
// 'pestle info' of a model: writes its members to |json|, or prints it when that
// is NULL.
PESTLE_NODISCARD pestle_status_t cli_info_model(cli_t* cli, const char* path,
                                                pestle_json_t* json);
// What is left of --passes behind the transforms that it begins with; "" when only
// those are there, NULL without the option.
PESTLE_NODISCARD pestle_status_t cli_split_passes(cli_t* cli,
                                                  const char** out_passes);
// Puts the module that --passes jvp=.. and --grad make of |*module| in its place.
PESTLE_NODISCARD pestle_status_t cli_transform(cli_t* cli,
                                               pestle_module_t** module);
// |status| of opening |path|: a name of --dim, --shape or --const that the model
// lacks is a wrong command line; another failure that is not there without them
// says which options were given.
PESTLE_NODISCARD pestle_status_t cli_blame_options(cli_t* cli, const char* path,
                                                   pestle_status_t status);
// What --numerics says; default without it.
PESTLE_NODISCARD pestle_status_t cli_numerics(const cli_t* cli,
                                              pestle_numerics_t* out_numerics);
// What the options ask to show goes to stderr, until the caller sets |dump|.
PESTLE_NODISCARD pestle_status_t
cli_compile_options(cli_t* cli, pestle_compile_options_t* out_options);
PESTLE_NODISCARD pestle_status_t cli_compile_module(
    cli_t* cli, pestle_module_t* module, pestle_device_t* device,
    const pestle_compile_options_t* options, pestle_plan_t** out_plan);

#endif  // PESTLE_TOOLS_CLI_H_

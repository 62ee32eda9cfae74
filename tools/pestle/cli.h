// SPDX-License-Identifier: Apache-2.0
// The pestle command: what its verbs share. stdout carries data alone; errors
// and progress go to stderr.
#ifndef PESTLE_TOOLS_CLI_H_
#define PESTLE_TOOLS_CLI_H_

#include <stdio.h>

#include "base/arena.h"
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

typedef struct cli_t {
  const char* verb;
  pestle_arena_t arena;
  const char* text[CLI_OPTION_COUNT];  // TEXT, and FLAG ("1"); NULL: not given
  int64_t count[CLI_OPTION_COUNT];     // COUNT
  PESTLE_VEC(const char*) list[CLI_OPTION_COUNT];
  PESTLE_VEC(const char*) args;        // what is no option
  pestle_context_t* context;
} cli_t;

// A status for a wrong command line: exit code 2.
#define CLI_USAGE_ERROR(...) \
  pestle_status_make(PESTLE_STATUS_INVALID_ARGUMENT, "usage", 0, __VA_ARGS__)

// Splits "NAME=REST" at the first '='. False without one.
bool cli_split(const char* text, pestle_str_t* out_name,
               const char** out_rest);
const char* cli_copy(cli_t* cli, pestle_str_t text);
// Makes cli->context as the options say.
PESTLE_NODISCARD pestle_status_t cli_open_context(cli_t* cli);
PESTLE_NODISCARD pestle_status_t cli_device(cli_t* cli,
                                            pestle_device_t** out_device);

// --- Verbs ---
PESTLE_NODISCARD pestle_status_t cli_run(cli_t* cli, int* out_exit);
PESTLE_NODISCARD pestle_status_t cli_dump(cli_t* cli, int* out_exit);
PESTLE_NODISCARD pestle_status_t cli_plugins(cli_t* cli, int* out_exit);
PESTLE_NODISCARD pestle_status_t cli_cache(cli_t* cli, int* out_exit);

// --- Host arrays ---

// A contiguous host tensor with memory of its own.
typedef struct cli_array_t {
  char* name;
  pestle_dtype_t dtype;
  int32_t rank;
  int64_t dims[PESTLE_MAX_RANK];
  void* data;    // 64-byte aligned
  size_t size;
} cli_array_t;

PESTLE_NODISCARD pestle_status_t cli_array_init(pestle_dtype_t dtype,
                                                int32_t rank,
                                                const int64_t* dims,
                                                cli_array_t* out_array);
void cli_array_deinit(cli_array_t* array);
pestle_tensor_t cli_array_view(cli_array_t* array, int64_t* strides);

// .npy files, little-endian, C order (Fortran order is read too). bf16 is
// stored as <u2, narrower types as |u1: |expected| (or NONE) says which dtype
// such a file holds.
PESTLE_NODISCARD pestle_status_t cli_npy_read(const char* path,
                                              pestle_dtype_t expected,
                                              cli_array_t* out_array);
PESTLE_NODISCARD pestle_status_t cli_npy_write(const char* path,
                                               const cli_array_t* array);
// The dtype of a name as users write it: f32, float32, int64, bool ...
pestle_dtype_t cli_dtype(pestle_str_t name);
// "1x3xf32" or "1x3" (then |*out_dtype| stays); false when malformed.
bool cli_parse_shape(pestle_str_t text, pestle_dtype_t* out_dtype,
                     int32_t* out_rank, int64_t dims[PESTLE_MAX_RANK]);
void cli_fill_random(cli_array_t* array, uint64_t seed);
PESTLE_NODISCARD pestle_status_t cli_fill_value(cli_array_t* array,
                                                const char* value);

// What an input is to be, known or asked for, before the model is opened.
typedef struct cli_inputs_t {
  PESTLE_VEC(cli_array_t) arrays;   // named or by position
  PESTLE_VEC(const char*) lazy;     // NAME=random:SEED or NAME=VALUE of the
                                    // model's own shape
} cli_inputs_t;
PESTLE_NODISCARD pestle_status_t cli_inputs_read(cli_t* cli,
                                                 cli_inputs_t* out_inputs);
void cli_inputs_deinit(cli_inputs_t* inputs);
// The given array for input |index| called |name|, or NULL.
cli_array_t* cli_inputs_find(cli_inputs_t* inputs, size_t index,
                             const char* name);

// --- Models ---

// Imports the model with --dim, --shape, --const, specialised by |inputs| (may
// be NULL), static on return.
PESTLE_NODISCARD pestle_status_t cli_open_module(cli_t* cli, const char* path,
                                                 cli_inputs_t* inputs,
                                                 pestle_module_t** out_module);
PESTLE_NODISCARD pestle_status_t cli_compile_options(
    cli_t* cli, pestle_compile_options_t* out_options);
// A plan of |path|: loaded when it is one, else imported and compiled.
PESTLE_NODISCARD pestle_status_t cli_open_plan(cli_t* cli, const char* path,
                                               cli_inputs_t* inputs,
                                               pestle_plan_t** out_plan,
                                               pestle_device_t** out_device);

#endif  // PESTLE_TOOLS_CLI_H_

// SPDX-License-Identifier: Apache-2.0
// One module run in one way on given or random inputs: what diff compares.
#ifndef PESTLE_TOOLS_TRIAL_H_
#define PESTLE_TOOLS_TRIAL_H_

#include "cli.h"

// "DEVICE[,strict][,fast][,no-fuse][,skip=A+B][,passes=A+B][,stop-after=N]
// [,cpu=NAME]".
typedef struct cli_way_t {
  const char* text;  // as given
  const char* device;
  pestle_numerics_t numerics;
  bool no_fuse;
  const char *passes, *skip, *cpu;
  int64_t stop_after;
} cli_way_t;

PESTLE_NODISCARD pestle_status_t cli_way_parse(cli_t* cli, const char* text,
                                               cli_way_t* out_way);
PESTLE_NODISCARD pestle_status_t cli_way_options(
    cli_t* cli, const cli_way_t* way, pestle_compile_options_t* out_options);

// Runs |module| that |way|. Inputs are those of --input and --inputs, and random
// ones of --seed beside them. |outputs| is initialised and to be deinitialised
// by the caller, whatever comes back.
PESTLE_NODISCARD pestle_status_t cli_trial(cli_t* cli, pestle_module_t* module,
                                           const cli_way_t* way,
                                           cli_inputs_t* inputs,
                                           cli_arrays_t* outputs);
void cli_trial_free(cli_arrays_t* outputs);

// The first output that differs by more than --rtol and --atol (integers: at
// all), or SIZE_MAX; |out_text| says where.
PESTLE_NODISCARD pestle_status_t
cli_trial_compare(cli_t* cli, const cli_arrays_t* a, const cli_arrays_t* b,
                  size_t* out_output, char* out_text, size_t text_size);

#endif  // PESTLE_TOOLS_TRIAL_H_

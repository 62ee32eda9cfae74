// SPDX-License-Identifier: Apache-2.0
// Which inputs and outputs of an executable are strings, and the plan's dictionary.
#include "pestle/strings.h"

#include "base/require.h"
#include "base/words.h"
#include "runtime/executable.h"

static const pestle_plan_io_t* input_of(const pestle_executable_t* e,
                                        size_t index) {
  const pestle_plan_io_t* all =
      PESTLE_PLAN_RECORDS(e->plan, pestle_plan_io_t, inputs);
  return index < e->input_count ? &all[index] : NULL;
}

static const pestle_plan_io_t* output_of(const pestle_executable_t* e,
                                         size_t index) {
  const pestle_plan_io_t* all =
      PESTLE_PLAN_RECORDS(e->plan, pestle_plan_io_t, outputs);
  return index < e->output_count ? &all[index] : NULL;
}

bool pestle_executable_input_is_strings(const pestle_executable_t* executable,
                                        size_t index) {
  const pestle_plan_io_t* io = executable ? input_of(executable, index) : NULL;
  return io && io->dictionary;
}

bool pestle_executable_output_is_strings(const pestle_executable_t* executable,
                                         size_t index) {
  const pestle_plan_io_t* io = executable ? output_of(executable, index) : NULL;
  return io && io->dictionary;
}

// The dictionary that all of the plan's strings share, or "".
static const char* dictionary_of(const pestle_executable_t* e) {
  pestle_plan_str_t text = 0;
  for (size_t i = 0; !text && i < e->input_count; ++i)
    text = input_of(e, i)->dictionary;
  for (size_t i = 0; !text && i < e->output_count; ++i)
    text = output_of(e, i)->dictionary;
  return pestle_plan_text(e->plan, text);
}

pestle_status_t pestle_strings_create(const pestle_executable_t* executable,
                                      pestle_strings_t** out_strings) {
  if (out_strings) *out_strings = NULL;
  PESTLE_REQUIRE(executable && out_strings,
                 "an executable and a place for the strings");
  return pestle_strings_create_text(executable->context,
                                    dictionary_of(executable), out_strings);
}

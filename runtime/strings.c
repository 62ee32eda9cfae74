// SPDX-License-Identifier: Apache-2.0
// Which inputs and outputs of an executable are strings, and the plan's dictionary.
#include "pestle/strings.h"

#include <string.h>

#include "base/require.h"
#include "base/words.h"
#include "runtime/executable.h"
#include "runtime/own_words.h"

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

bool pestle_executable_needs_strings(const pestle_executable_t* executable) {
  return executable && executable->needs_strings;
}

pestle_status_t pestle_executable_find_strings(pestle_executable_t* e) {
  const char* border = dictionary_of(e);
  if (*border) e->dictionary_hash = pestle_dictionary_hash(border);
  for (size_t i = 0; i < e->call_count && !e->own_dictionary; ++i) {
    const pestle_exec_call_t* c = &e->calls[i];
    bool is_own = !c->library && !c->attrs &&
                  !strncmp(c->name, PESTLE_OWN_WORDS, strlen(PESTLE_OWN_WORDS));
    if (!is_own) continue;
    pestle_str_t rest = pestle_str(c->config);
    pestle_strbuf_t text;
    pestle_strbuf_init(e->context->core.allocator, &text);
    (void)pestle_field_next(&rest, &text);
    pestle_status_t status = pestle_strbuf_status(&text);
    if (!status) {
      e->own_dictionary =
          pestle_arena_strndup(&e->arena, pestle_strbuf_view(&text));
      if (!e->own_dictionary) status = PESTLE_OOM();
    }
    pestle_strbuf_deinit(&text);
    if (status) return status;
  }
  e->needs_strings = e->own_dictionary && *border;
  return NULL;
}

pestle_status_t pestle_executable_check_strings(
    const pestle_executable_t* e, const pestle_strings_t* strings) {
  if (!e->needs_strings) return NULL;
  const char* name =
      pestle_plan_text(e->plan, pestle_plan_header(e->plan)->name);
  if (!strings) {
    return PESTLE_ERROR(
        INVALID_ARGUMENT,
        "plan '%s' makes strings, or reads their letters, and the run has "
        "none; give those that its inputs were encoded with in "
        "pestle_run_options_t.strings (in Python a Session does)",
        name);
  }
  if (pestle_strings_hash(strings) == e->dictionary_hash) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "the strings of the run are those of another model than "
                      "plan '%s'; pestle_strings_create() makes them",
                      name);
}

pestle_status_t pestle_frame_set_strings(pestle_executable_t* e,
                                         pestle_frame_t* frame,
                                         pestle_strings_t* strings) {
  frame->strings = strings;
  if (e->needs_strings) return NULL;
  // Nobody outside sees these: each run begins with the model's alone.
  if (!frame->own_strings) {
    PESTLE_TRY(pestle_strings_create_text(e->context, e->own_dictionary,
                                          &frame->own_strings));
  }
  pestle_strings_forget(frame->own_strings);
  frame->strings = frame->own_strings;
  return NULL;
}

pestle_status_t pestle_strings_create(const pestle_executable_t* executable,
                                      pestle_strings_t** out_strings) {
  if (out_strings) *out_strings = NULL;
  PESTLE_REQUIRE(executable && out_strings,
                 "an executable and a place for the strings");
  return pestle_strings_create_text(executable->context,
                                    dictionary_of(executable), out_strings);
}

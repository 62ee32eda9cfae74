// SPDX-License-Identifier: Apache-2.0
// A run whose tensors are given by name: which input or output each one is for.
#include <stdio.h>
#include <string.h>

#include "base/closest.h"
#include "base/mem.h"
#include "base/require.h"
#include "runtime/executable.h"

static size_t find(const pestle_exec_io_t* io, size_t count, const char* name) {
  for (size_t i = 0; name && i < count; ++i) {
    if (!strcmp(io[i].info.name, name)) return i;
  }
  return SIZE_MAX;
}

size_t pestle_executable_find_input(const pestle_executable_t* executable,
                                    const char* name) {
  return executable ? find(executable->io, executable->input_count, name)
                    : SIZE_MAX;
}

size_t pestle_executable_find_output(const pestle_executable_t* executable,
                                     const char* name) {
  return executable ? find(executable->io + executable->input_count,
                           executable->output_count, name)
                    : SIZE_MAX;
}

// Whether |text| is "name[index]".
static bool is_element(const char* text, const char* name, size_t index) {
  char number[24];
  size_t size = strlen(name);
  snprintf(number, sizeof(number), "[%zu]", index);
  return !strncmp(text, name, size) && !strcmp(text + size, number);
}

static size_t find_list(const pestle_exec_io_t* io, size_t count,
                        const char* name, size_t* out_first) {
  size_t first = 0, found = 0;
  while (name && first < count && !is_element(io[first].info.name, name, 0))
    ++first;
  while (name && first + found < count &&
         is_element(io[first + found].info.name, name, found))
    ++found;
  if (out_first) *out_first = found ? first : 0;
  return found;
}

size_t pestle_executable_find_input_list(const pestle_executable_t* executable,
                                         const char* name, size_t* out_first) {
  if (out_first) *out_first = 0;
  return executable ? find_list(executable->io, executable->input_count, name,
                                out_first)
                    : 0;
}

size_t pestle_executable_find_output_list(const pestle_executable_t* executable,
                                          const char* name, size_t* out_first) {
  if (out_first) *out_first = 0;
  return executable ? find_list(executable->io + executable->input_count,
                                executable->output_count, name, out_first)
                    : 0;
}

// The inputs or the outputs of an executable, and the tensors given for them.
typedef struct side_t {
  const char* kind;
  const pestle_exec_io_t* io;
  size_t count;
  pestle_tensor_t* tensors;
  uint32_t* given;  // the place of each one's tensor in the caller's list, + 1
} side_t;

// "'image' f32[1, 3, 224, 224], 'scale' f32[]": those that |skip| has not.
static void append_io(const side_t* side, const uint32_t* skip,
                      pestle_strbuf_t* text) {
  enum { MOST = 32 };
  size_t shown = 0;
  for (size_t i = 0; i < side->count; ++i) {
    const pestle_io_info_t* info = &side->io[i].info;
    if (skip && skip[i]) continue;
    if (shown++ >= MOST) continue;
    pestle_strbuf_append_listed(text, info->name);
    pestle_strbuf_appendf(text, " %s[", pestle_dtype_info(info->dtype)->name);
    for (int32_t d = 0; d < info->rank; ++d)
      pestle_strbuf_appendf(text, d ? ", %lld" : "%lld",
                            (long long)info->dims[d]);
    pestle_strbuf_append_char(text, ']');
  }
  if (shown > MOST) pestle_strbuf_appendf(text, " and %zu more", shown - MOST);
  if (!shown) pestle_strbuf_append_c(text, "none");
}

static pestle_status_t unknown(const pestle_executable_t* e, const side_t* side,
                               const char* name) {
  pestle_closest_t closest = pestle_closest_to(pestle_str(name));
  char hint[PESTLE_HINT];
  pestle_strbuf_t text;
  pestle_strbuf_init(e->context->core.allocator, &text);
  for (size_t i = 0; i < side->count; ++i)
    pestle_closest_offer(&closest, pestle_str(side->io[i].info.name));
  append_io(side, NULL, &text);
  pestle_status_t status = PESTLE_ERROR(
      NOT_FOUND, "the model has no %s '%s'; it has %s%s", side->kind, name,
      pestle_strbuf_cstr(&text), pestle_closest_hint(&closest, hint));
  pestle_strbuf_deinit(&text);
  return status;
}

static pestle_status_t missing(const pestle_executable_t* e,
                               const side_t* side) {
  pestle_strbuf_t text;
  pestle_strbuf_init(e->context->core.allocator, &text);
  append_io(side, side->given, &text);
  pestle_status_t status =
      PESTLE_ERROR(INVALID_ARGUMENT, "the run lacks %ss: %s", side->kind,
                   pestle_strbuf_cstr(&text));
  pestle_strbuf_deinit(&text);
  return status;
}

static pestle_status_t place(const pestle_executable_t* e, const side_t* side,
                             const pestle_named_tensor_t* named, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!named[i].name) {
      return PESTLE_ERROR(INVALID_ARGUMENT, "%s %zu of the run has no name",
                          side->kind, i);
    }
    size_t at = find(side->io, side->count, named[i].name);
    if (at == SIZE_MAX) return unknown(e, side, named[i].name);
    if (side->given[at]) {
      return PESTLE_ERROR(INVALID_ARGUMENT, "%s '%s' is given twice",
                          side->kind, named[i].name);
    }
    side->given[at] = (uint32_t)i + 1;
    side->tensors[at] = named[i].tensor;
  }
  return NULL;
}

static bool is_whole(const side_t* side) {
  for (size_t i = 0; i < side->count; ++i) {
    if (!side->given[i]) return false;
  }
  return true;
}

static pestle_status_t run(pestle_executable_t* e, pestle_stream_t* stream,
                           const pestle_named_tensor_t* inputs,
                           size_t input_count, pestle_named_tensor_t* outputs,
                           size_t output_count, const side_t* in,
                           const side_t* out,
                           const pestle_run_options_t* options) {
  PESTLE_TRY(place(e, in, inputs, input_count));
  PESTLE_TRY(place(e, out, outputs, output_count));
  if (!is_whole(in)) return missing(e, in);
  // What nobody takes must stay until the stream has made it: nobody would free it.
  if (stream && !is_whole(out)) return missing(e, out);
  PESTLE_TRY(pestle_executable_run(e, stream, in->tensors, in->count,
                                   out->tensors, out->count, options));
  for (size_t i = 0; i < out->count; ++i) {
    if (out->given[i]) {
      outputs[out->given[i] - 1].tensor = out->tensors[i];
    } else {
      pestle_tensor_release(e, &out->tensors[i]);
    }
  }
  return NULL;
}

pestle_status_t pestle_executable_run_named(
    pestle_executable_t* executable, pestle_stream_t* stream,
    const pestle_named_tensor_t* inputs, size_t input_count,
    pestle_named_tensor_t* outputs, size_t output_count,
    const pestle_run_options_t* options) {
  PESTLE_REQUIRE(
      executable && (inputs || !input_count) && (outputs || !output_count),
      "an executable, and as many tensors as it is told");
  enum { FEW = 8 };
  pestle_executable_t* e = executable;
  struct {
    pestle_tensor_t tensor;
    uint32_t given;
  } few[FEW], *all = few;
  size_t size = e->io_count * sizeof(few[0]);
  if (e->io_count > FEW) all = pestle_alloc(e->context->core.allocator, size);
  if (!all) return PESTLE_OOM();
  memset((void*)all, 0, size);
  // All tensors, then the numbers behind them.
  pestle_tensor_t* tensors = (pestle_tensor_t*)(void*)all;
  uint32_t* given = (uint32_t*)(void*)(tensors + e->io_count);
  side_t in = {"input", e->io, e->input_count, tensors, given};
  side_t out = {"output", e->io + e->input_count, e->output_count,
                tensors + e->input_count, given + e->input_count};
  pestle_status_t status = run(e, stream, inputs, input_count, outputs,
                               output_count, &in, &out, options);
  if (all != few) pestle_dealloc(e->context->core.allocator, all, size);
  return status;
}

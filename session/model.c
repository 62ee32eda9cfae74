// SPDX-License-Identifier: Apache-2.0
// Shapes that are made from a model: import, specialisation, compilation, and what
// the comparison of two graphs says about padding.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "pestle/graph.h"
#include "pestle/model_info.h"
#include "session/internal.h"
#include "session/rows.h"

// As executables call inputs without a name.
static const char* argument_name(const pestle_function_t* f, size_t i,
                                 char unnamed[32]) {
  const char* name = pestle_function_argument_name(f, i);
  if (name) return name;
  (void)snprintf(unnamed, 32, "arg%zu", i);
  return unnamed;
}

static const char* keep(pestle_session_t* s, const char* text) {
  return pestle_arena_strndup(&s->arena, pestle_str(text));
}

// --- What the model says of itself ---

// "x.0": what a dim without a name is called.
static const char* number_dim(pestle_session_t* s, const char* input,
                              size_t d) {
  char text[128];
  (void)snprintf(text, sizeof(text), "%.100s.%zu", input, d);
  return keep(s, text);
}

static pestle_status_t take_dim_names(pestle_session_t* s,
                                      const pestle_model_info_t* info,
                                      session_input_t* input) {
  size_t rank = (size_t)input->rank;
  input->dim_names = PESTLE_ARENA_ARRAY(&s->arena, const char*, rank + 1);
  if (!input->dim_names) return PESTLE_OOM();
  size_t at = pestle_model_info_find_input(info, input->name);
  bool is_known = at != SIZE_MAX && info->inputs[at].rank == input->rank;
  for (size_t d = 0; d < rank; ++d) {
    input->dim_names[d] = "";
    if (input->dims[d] != PESTLE_DIM_DYNAMIC) continue;
    bool is_named = is_known && info->inputs[at].dim_names[d][0];
    input->dim_names[d] = is_named ? keep(s, info->inputs[at].dim_names[d])
                                   : number_dim(s, input->name, d);
    if (!input->dim_names[d]) return PESTLE_OOM();
  }
  return NULL;
}

static pestle_status_t take_inputs(pestle_session_t* s,
                                   const pestle_model_info_t* info) {
  pestle_function_t* f = pestle_module_entry(s->module);
  if (!f) return PESTLE_ERROR(MALFORMED, "the model has no function to run");
  s->input_count = pestle_function_argument_count(f);
  s->inputs =
      PESTLE_ARENA_ARRAY(&s->arena, session_input_t, s->input_count + 1);
  if (!s->inputs) return PESTLE_OOM();
  for (size_t i = 0; i < s->input_count; ++i) {
    char unnamed[32];
    pestle_type_t type = pestle_value_type(pestle_function_argument(f, i));
    session_input_t* input = &s->inputs[i];
    *input = (session_input_t){.name = keep(s, argument_name(f, i, unnamed)),
                               .dtype = type.dtype,
                               .rank = type.rank,
                               .first = s->extent_count};
    size_t bytes = (size_t)type.rank * sizeof(int64_t);
    input->dims =
        pestle_arena_copy(&s->arena, type.dims, bytes + 1, _Alignof(int64_t));
    if (!input->name || !input->dims) return PESTLE_OOM();
    s->extent_count += (size_t)type.rank;
    PESTLE_TRY(take_dim_names(s, info, input));
  }
  size_t values = pestle_module_value_argument_count(s->module);
  for (size_t i = 0; i < values; ++i)
    s->inputs[pestle_module_value_argument(s->module, i)].decides_shapes = true;
  return NULL;
}

static pestle_status_t take_outputs(pestle_session_t* s,
                                    const pestle_model_info_t* info) {
  s->output_count = info->output_count;
  s->output_names =
      PESTLE_ARENA_ARRAY(&s->arena, const char*, s->output_count + 1);
  if (!s->output_names) return PESTLE_OOM();
  for (size_t i = 0; i < s->output_count; ++i) {
    bool is_list =
        info->output_kinds && info->output_kinds[i] == PESTLE_MODEL_LIST;
    if (is_list) {
      return PESTLE_ERROR(
          UNSUPPORTED,
          "output '%s' of the model is a sequence, which has no "
          "place among a session's outputs; an executable gives "
          "it as one output for each tensor",
          info->outputs[i].name);
    }
    s->output_names[i] = keep(s, info->outputs[i].name);
    if (!s->output_names[i]) return PESTLE_OOM();
  }
  return NULL;
}

pestle_status_t pestle_session_import(pestle_session_t* s, const char* path,
                                      const pestle_import_options_t* options) {
  const pestle_model_info_t* info;
  PESTLE_TRY(pestle_import_file(s->context, path, options, &s->module));
  PESTLE_TRY(pestle_model_info_create(s->context, path, options, &info));
  pestle_status_t status = take_inputs(s, info);
  if (!status) status = take_outputs(s, info);
  pestle_model_info_release(info);
  return status;
}

bool pestle_session_model_is_strings(const pestle_session_t* s, bool is_output,
                                     size_t index) {
  return is_output ? pestle_module_output_is_strings(s->module, index)
                   : pestle_module_input_is_strings(s->module, index);
}

pestle_status_t pestle_session_model_strings(const pestle_session_t* s,
                                             pestle_strings_t** out_strings) {
  return pestle_module_strings_create(s->module, out_strings);
}

// --- One shape ---

static pestle_type_t type_of(const pestle_session_t* s, const int64_t* dims,
                             size_t i) {
  const session_input_t* input = &s->inputs[i];
  pestle_type_t type = {.dtype = input->dtype, .rank = input->rank};
  if (input->rank) {
    memcpy(type.dims, dims + input->first,
           (size_t)input->rank * sizeof(int64_t));
  }
  return type;
}

static pestle_status_t specialize(pestle_session_t* s, session_shape_t* shape,
                                  const pestle_tensor_t* inputs,
                                  pestle_type_t* types) {
  if (inputs && pestle_module_value_argument_count(s->module)) {
    return pestle_module_specialize_values(s->module, inputs, s->input_count,
                                           &shape->module);
  }
  for (size_t i = 0; i < s->input_count; ++i)
    types[i] = type_of(s, shape->dims, i);
  return pestle_module_specialize(s->module, types, s->input_count,
                                  &shape->module);
}

pestle_status_t pestle_session_specialize(pestle_session_t* s,
                                          session_shape_t* shape,
                                          const pestle_tensor_t* inputs) {
  size_t size = (s->input_count + 1) * sizeof(pestle_type_t);
  pestle_type_t* types = pestle_alloc(s->allocator, size);
  if (!types) return PESTLE_OOM();
  pestle_status_t status = specialize(s, shape, inputs, types);
  pestle_dealloc(s->allocator, types, size);
  if (!status) return NULL;
  pestle_strbuf_t text;
  pestle_strbuf_init(s->allocator, &text);
  pestle_session_shape_text(s, shape, &text);
  status = pestle_status_annotate(status, "for the shape %s",
                                  pestle_strbuf_cstr(&text));
  pestle_strbuf_deinit(&text);
  return status;
}

pestle_status_t pestle_session_compile(pestle_session_t* s,
                                       const session_shape_t* shape,
                                       pestle_tier_t tier,
                                       pestle_executable_t** out_executable) {
  pestle_control_t control = {.struct_size = sizeof(control),
                              .cancel = &s->cancel};
  pestle_compile_options_t options = s->compile;
  options.control = &control;
  options.tier = tier;
  pestle_plan_t* plan;
  *out_executable = NULL;
  PESTLE_TRY(
      pestle_compile(s->context, shape->module, s->device, &options, &plan));
  pestle_status_t status =
      pestle_executable_create(s->context, plan, s->device, out_executable);
  if (!status) pestle_executable_share_arenas(*out_executable, s->arenas);
  pestle_plan_release(plan);
  return status;
}

// --- Padding ---

// The rows of each input of the session: where both shapes differ. False: along two
// axes of one input.
static bool input_rows(const pestle_session_t* s, const int64_t* many,
                       const int64_t* few, int64_t n, session_rows_t* out) {
  for (size_t i = 0; i < s->input_count; ++i) {
    out[i] = (session_rows_t){.axis = -1};
    for (int32_t d = 0; d < s->inputs[i].rank; ++d) {
      size_t at = s->inputs[i].first + (size_t)d;
      if (many[at] == few[at]) continue;
      if (out[i].axis >= 0) return false;
      out[i] = (session_rows_t){d, many[at] / n};
    }
  }
  return true;
}

static size_t find_input(const pestle_session_t* s, const char* name) {
  size_t i = 0;
  while (i < s->input_count && strcmp(s->inputs[i].name, name) != 0)
    ++i;
  return i;
}

typedef struct padding_t {
  pestle_session_t* session;
  pestle_module_t *many, *few;
  pestle_executable_t* by;
  int64_t n, m;
  session_rows_t* of_inputs;  // of the session
  session_rows_t* io;         // of the executable
  pestle_row_relation_t *arguments, *results;
  size_t result_count;
} padding_t;

// Compares the graphs; |*out_is_shown| with rows of what the executable takes and
// gives.
static pestle_status_t compare(padding_t* p, bool* out_is_shown,
                               pestle_strbuf_t* why) {
  const pestle_session_t* s = p->session;
  pestle_function_t* f = pestle_module_entry(p->many);
  size_t count = pestle_function_argument_count(f);
  for (size_t i = 0; i < count; ++i) {
    char unnamed[32];
    size_t at = find_input(s, argument_name(f, i, unnamed));
    p->arguments[i] = (pestle_row_relation_t){.axis = -1};
    if (at < s->input_count)
      p->arguments[i] =
          (pestle_row_relation_t){p->of_inputs[at].axis, p->of_inputs[at].per};
  }
  PESTLE_TRY(pestle_rows_compare(p->many, p->few, p->n, p->m, p->arguments,
                                 p->results, out_is_shown, why));
  size_t inputs = pestle_executable_input_count(p->by);
  size_t outputs = pestle_executable_output_count(p->by);
  for (size_t i = 0; i < inputs && *out_is_shown; ++i) {
    size_t at = find_input(s, pestle_executable_input(p->by, i).name);
    *out_is_shown = at < s->input_count;
    if (*out_is_shown) p->io[i] = p->of_inputs[at];
  }
  for (size_t i = 0; i < outputs && *out_is_shown; ++i) {
    p->io[inputs + i] = (session_rows_t){p->results[i].axis, p->results[i].per};
    if (!pestle_executable_output(p->by, i).bounded) continue;
    *out_is_shown = false;
    pestle_strbuf_append_c(why, "how large an output is depends on data");
  }
  return NULL;
}

pestle_status_t pestle_session_pad(
    pestle_session_t* s, const session_shape_t* shape, pestle_module_t* many,
    const int64_t* many_dims, pestle_executable_t* by,
    session_route_t** out_route, pestle_strbuf_t* out_why) {
  *out_route = NULL;
  padding_t p = {.session = s, .many = many, .few = shape->module, .by = by};
  for (size_t i = 0; i < s->extent_count; ++i) {
    if (many_dims[i] == shape->dims[i]) continue;
    p.n = many_dims[i];
    p.m = shape->dims[i];
  }
  const pestle_function_t* f = pestle_module_entry(many);
  if (!f || !pestle_function_result_count(f, &p.result_count)) return NULL;
  pestle_arena_t arena;
  pestle_arena_init(s->allocator, &arena);
  size_t io =
      pestle_executable_input_count(by) + pestle_executable_output_count(by);
  p.of_inputs = PESTLE_ARENA_ARRAY(&arena, session_rows_t, s->input_count + 1);
  p.io = PESTLE_ARENA_ARRAY(&arena, session_rows_t, io + 1);
  p.arguments = PESTLE_ARENA_ARRAY(&arena, pestle_row_relation_t,
                                   pestle_function_argument_count(f) + 1);
  p.results =
      PESTLE_ARENA_ARRAY(&arena, pestle_row_relation_t, p.result_count + 1);
  pestle_status_t status = NULL;
  bool is_shown = false;
  if (!p.of_inputs || !p.io || !p.arguments || !p.results ||
      p.result_count < pestle_executable_output_count(by)) {
    status = PESTLE_OOM();
  } else if (!input_rows(s, many_dims, shape->dims, p.n, p.of_inputs)) {
    pestle_strbuf_append_c(out_why, "several axes of an input differ");
  } else {
    status = compare(&p, &is_shown, out_why);
  }
  if (!status && is_shown) {
    status = pestle_session_route_create(
        s, by, p.n, p.m, p.io, p.io + pestle_executable_input_count(by),
        out_route);
  }
  pestle_arena_deinit(&arena);
  return status;
}

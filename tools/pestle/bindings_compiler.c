// SPDX-License-Identifier: Apache-2.0
// What the command line and the inputs say of a model's shapes and values: --dim, --shape,
// --const, and what is given of an ONNX model's inputs.
#include "bindings.h"

#include <string.h>

// --- --dim, --shape, --const ---

void cli_bindings_init(cli_bindings_t* b) {
  pestle_allocator_t a = pestle_allocator_system();
  b->compat = PESTLE_ONNX_COMPAT_TEXT;
  pestle_vec_init(&b->dims, a);
  pestle_vec_init(&b->shapes, a);
  pestle_vec_init(&b->consts, a);
  pestle_vec_init(&b->arrays, a);
}

void cli_bindings_deinit(cli_bindings_t* b) {
  for (size_t i = 0; i < b->arrays.size; ++i)
    cli_array_deinit(&b->arrays.data[i]);
  pestle_vec_deinit(&b->arrays);
  pestle_vec_deinit(&b->dims);
  pestle_vec_deinit(&b->shapes);
  pestle_vec_deinit(&b->consts);
}

static pestle_status_t split_option(cli_t* cli, const char* option,
                                    const char* text, const char** out_name,
                                    const char** out_rest) {
  pestle_str_t name;
  if (!cli_split(text, &name, out_rest)) {
    return CLI_USAGE_ERROR("--%s wants NAME=..., not '%s'", option, text);
  }
  *out_name = cli_copy(cli, name);
  return *out_name ? NULL : PESTLE_OOM();
}

static pestle_status_t add_dim(cli_t* cli, const char* text,
                               cli_bindings_t* b) {
  pestle_dim_binding_t dim;
  const char* rest;
  PESTLE_TRY(split_option(cli, "dim", text, &dim.name, &rest));
  if (!pestle_str_parse_i64(pestle_str(rest), &dim.extent) || dim.extent < 0) {
    return CLI_USAGE_ERROR("--dim %s wants an extent, not '%s'", dim.name,
                           rest);
  }
  return pestle_vec_push(&b->dims, dim) ? NULL : PESTLE_OOM();
}

static pestle_status_t push_shape(cli_t* cli, const char* name, int32_t rank,
                                  const int64_t* dims, cli_bindings_t* b) {
  size_t size = (size_t)rank * sizeof(*dims);
  pestle_shape_binding_t shape = {
      .input = name,
      .rank = rank,
      .dims = pestle_arena_copy(&cli->arena, dims, size, _Alignof(int64_t))};
  if (!shape.dims || !pestle_vec_push(&b->shapes, shape)) return PESTLE_OOM();
  return NULL;
}

static pestle_status_t add_shape(cli_t* cli, const char* text,
                                 cli_bindings_t* b) {
  const char *name, *rest;
  pestle_dtype_t dtype;
  int32_t rank;
  int64_t dims[PESTLE_MAX_RANK];
  PESTLE_TRY(split_option(cli, "shape", text, &name, &rest));
  PESTLE_TRY(cli_parse_type(pestle_str(rest), &dtype, &rank, dims));
  if (dtype != PESTLE_NONE) {
    return CLI_USAGE_ERROR("--shape %s: '%s' has a type; the model's is kept",
                           name, rest);
  }
  return push_shape(cli, name, rank, dims, b);
}

// A lone number becomes what the model's input is of; until then it is of a
// type that loses none of it.
static pestle_status_t make_const(const char* name, const char* rest,
                                  cli_array_t* out_array) {
  pestle_str_t type = PESTLE_STR("f64"), given;
  const char* value = rest;
  int64_t integer;
  if (pestle_str_parse_i64(pestle_str(rest), &integer)) {
    type = PESTLE_STR("i64");
  } else if (cli_split(rest, &given, &value)) {
    type = given;
  }
  pestle_dtype_t dtype;
  int32_t rank;
  int64_t dims[PESTLE_MAX_RANK];
  PESTLE_TRY(cli_parse_type(type, &dtype, &rank, dims));
  if (dtype == PESTLE_NONE) {
    return CLI_USAGE_ERROR("--const %s: '%s' lacks a type, as in 1x3xf32=0.5",
                           name, rest);
  }
  PESTLE_TRY(cli_array_init(dtype, rank, dims, out_array));
  pestle_status_t status = cli_array_set_name(out_array, pestle_str(name));
  if (!status) status = cli_fill(out_array, value);
  if (status) cli_array_deinit(out_array);
  return status;
}

// The view outlives |array|'s place, not its data.
static pestle_status_t push_const(cli_t* cli, const char* name,
                                  cli_array_t* array, cli_bindings_t* b) {
  pestle_tensor_t* view = PESTLE_ARENA_NEW(&cli->arena, pestle_tensor_t);
  if (!view) return PESTLE_OOM();
  *view = cli_array_view(array);
  view->shape = pestle_arena_copy(&cli->arena, array->dims, sizeof(array->dims),
                                  _Alignof(int64_t));
  pestle_const_binding_t binding = {.input = name, .value = view};
  if (!view->shape || !pestle_vec_push(&b->consts, binding)) {
    return PESTLE_OOM();
  }
  return NULL;
}

static pestle_status_t add_const(cli_t* cli, const char* text,
                                 cli_bindings_t* b) {
  const char *name, *rest;
  cli_array_t array;
  PESTLE_TRY(split_option(cli, "const", text, &name, &rest));
  bool is_file = pestle_str_ends_with(pestle_str(rest), PESTLE_STR(".npy"));
  PESTLE_TRY(is_file ? cli_npy_read(rest, &array)
                     : make_const(name, rest, &array));
  if (!pestle_vec_push(&b->arrays, array)) {
    cli_array_deinit(&array);
    return PESTLE_OOM();
  }
  return push_const(cli, name, &pestle_vec_last(&b->arrays), b);
}

// Shapes, axes and the like: the inputs that a model may want to know early.
static bool is_small_integer(const cli_array_t* array) {
  return array->count <= 64 && pestle_dtype_is(array->dtype, PESTLE_KIND_INT);
}

// Scales, limits and the like too: what is a number or a list of a few.
static bool is_short_list(const cli_array_t* array) {
  return array->count <= 64 && array->rank <= 1;
}

static bool is_const_bound(const cli_bindings_t* b, const char* name) {
  for (size_t i = 0; i < b->consts.size; ++i) {
    if (!strcmp(b->consts.data[i].input, name)) return true;
  }
  return false;
}

static bool is_meant(const cli_array_t* array, const char* name) {
  if (!strcmp(name, ":integers")) return is_small_integer(array);
  if (!strcmp(name, ":numbers")) return is_short_list(array);
  return !strcmp(array->name, name);
}

// --const NAME, :integers and :numbers: the values that are given as inputs.
static pestle_status_t add_given(cli_t* cli, const char* name,
                                 cli_inputs_t* inputs, cli_bindings_t* b) {
  bool is_found = !strcmp(name, ":integers") || !strcmp(name, ":numbers");
  for (size_t i = 0; inputs && i < inputs->arrays.size; ++i) {
    cli_array_t* a = &inputs->arrays.data[i];
    if (!a->name || !is_meant(a, name)) continue;
    is_found = true;
    if (is_const_bound(b, a->name)) continue;
    PESTLE_TRY(push_const(cli, a->name, a, b));
  }
  if (is_found) return NULL;
  return CLI_USAGE_ERROR(
      "--const %s: no value is given, neither as %s=VALUE "
      "nor among the inputs",
      name, name);
}

static pestle_status_t read_compat(const cli_t* cli, cli_bindings_t* b) {
  const char* text = cli->text[CLI_COMPAT];
  if (!text) return NULL;
  if (strcmp(text, "ort") != 0)
    return CLI_USAGE_ERROR("--compat wants ort, not '%s'", text);
  b->compat = PESTLE_ONNX_COMPAT_ORT;
  return NULL;
}

static pestle_status_t add_options(cli_t* cli, cli_inputs_t* inputs,
                                   cli_bindings_t* b) {
  PESTLE_TRY(read_compat(cli, b));
  for (size_t i = 0; i < cli->list[CLI_DIM].size; ++i) {
    PESTLE_TRY(add_dim(cli, cli->list[CLI_DIM].data[i], b));
  }
  for (size_t i = 0; i < cli->list[CLI_SHAPE].size; ++i) {
    PESTLE_TRY(add_shape(cli, cli->list[CLI_SHAPE].data[i], b));
  }
  // What is named goes before what ":integers" and ":numbers" would add.
  for (size_t i = 0; i < cli->list[CLI_CONST].size; ++i) {
    const char* text = cli->list[CLI_CONST].data[i];
    if (!strchr(text, '=')) continue;
    PESTLE_TRY(add_const(cli, text, b));
  }
  for (size_t i = 0; i < cli->list[CLI_CONST].size; ++i) {
    const char* text = cli->list[CLI_CONST].data[i];
    if (strchr(text, '=')) continue;
    PESTLE_TRY(add_given(cli, text, inputs, b));
  }
  return NULL;
}

static bool is_bound(const cli_bindings_t* b, const char* name) {
  for (size_t i = 0; i < b->shapes.size; ++i) {
    if (!strcmp(b->shapes.data[i].input, name)) return true;
  }
  return is_const_bound(b, name);
}

// --- What is given of an ONNX model's inputs ---

typedef struct listed_t {
  const char* name;
  bool has_default;
  bool is_of_known_rank;
  // The extents that it is made of for --input NAME=VALUE, -1 unknown: those
  // declared, or its default's.
  int32_t rank;
  int64_t dims[PESTLE_MAX_RANK];
} listed_t;

typedef struct listing_t {
  cli_t* cli;
  PESTLE_VEC(listed_t) inputs;
} listing_t;

static pestle_status_t list_input(void* user,
                                  const pestle_model_input_t* input) {
  listing_t* l = user;
  listed_t listed = {.name = cli_copy(l->cli, pestle_str(input->name)),
                     .has_default = input->has_default,
                     .is_of_known_rank = input->rank >= 0,
                     .rank = input->rank};
  bool is_static = input->rank >= 0;
  for (int32_t i = 0; i < input->rank; ++i) {
    listed.dims[i] = input->dims[i];
    is_static = is_static && listed.dims[i] != PESTLE_DIM_DYNAMIC;
  }
  if (!is_static && input->has_default) {
    listed.rank = input->default_rank;
    memcpy(listed.dims, input->default_dims,
           (size_t)listed.rank * sizeof(listed.dims[0]));
  }
  if (!listed.name || !pestle_vec_push(&l->inputs, listed)) return PESTLE_OOM();
  return NULL;
}

// How many inputs the numbers on the command line reach to.
static size_t highest_number(const cli_inputs_t* inputs) {
  int64_t most = 0, number;
  for (size_t i = 0; i < inputs->arrays.size; ++i) {
    if (inputs->arrays.data[i].index >= most)
      most = inputs->arrays.data[i].index + 1;
  }
  for (size_t i = 0; i < inputs->lazy.size; ++i) {
    pestle_str_t name = pestle_str(inputs->lazy.data[i].name);
    if (pestle_str_parse_i64(name, &number) && number >= most)
      most = number + 1;
  }
  return (size_t)most;
}

// Numbers count the inputs that must be given; those with a default come behind
// them. Where there are more numbers than that, they count all in the model's
// order.
static pestle_status_t number_inputs(listing_t* l, cli_inputs_t* inputs) {
  size_t count = l->inputs.size, required = 0, at = 0;
  const char** names =
      PESTLE_ARENA_ARRAY(&l->cli->arena, const char*, count + 1);
  if (!names) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i)
    required += !l->inputs.data[i].has_default;
  bool as_listed = highest_number(inputs) > required;
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t i = 0; i < count; ++i) {
      const listed_t* listed = &l->inputs.data[i];
      bool now = as_listed ? pass == 0 : listed->has_default == (pass == 1);
      if (now) names[at++] = listed->name;
    }
  }
  inputs->names = names;
  inputs->name_count = count;
  return NULL;
}

// What makes an input of the model an argument, or tells its rank, is the shape
// of what is given.
static pestle_status_t add_listed(cli_t* cli, const listed_t* listed,
                                  cli_inputs_t* inputs, cli_bindings_t* b) {
  if (is_bound(b, listed->name) ||
      (listed->is_of_known_rank && !listed->has_default)) {
    return NULL;
  }
  size_t number = cli_inputs_number(inputs, 0, listed->name);
  const cli_array_t* a = cli_inputs_find(inputs, number, listed->name);
  if (a) return push_shape(cli, listed->name, a->rank, a->dims, b);
  if (listed->rank < 0 || !cli_inputs_has(inputs, number, listed->name))
    return NULL;
  return push_shape(cli, listed->name, listed->rank, listed->dims, b);
}

// The shapes of inputs that are given by name.
static pestle_status_t add_named(cli_t* cli, const cli_inputs_t* inputs,
                                 cli_bindings_t* b) {
  for (size_t i = 0; i < inputs->arrays.size; ++i) {
    const cli_array_t* a = &inputs->arrays.data[i];
    int64_t number;
    if (!a->name || is_bound(b, a->name) ||
        pestle_str_parse_i64(pestle_str(a->name), &number)) {
      continue;
    }
    PESTLE_TRY(push_shape(cli, a->name, a->rank, a->dims, b));
  }
  return NULL;
}

static pestle_status_t add_inputs(listing_t* l, cli_inputs_t* inputs,
                                  cli_bindings_t* b) {
  PESTLE_TRY(number_inputs(l, inputs));
  for (size_t i = 0; i < l->inputs.size; ++i)
    PESTLE_TRY(add_listed(l->cli, &l->inputs.data[i], inputs, b));
  return add_named(l->cli, inputs, b);
}

static pestle_status_t add_given_inputs(cli_t* cli, const char* path,
                                        cli_inputs_t* inputs,
                                        cli_bindings_t* b) {
  if (!inputs->arrays.size && !inputs->lazy.size) return NULL;
  listing_t l = {.cli = cli};
  pestle_vec_init(&l.inputs, pestle_allocator_system());
  pestle_status_t status =
      pestle_import_visit_inputs(cli->context, path, list_input, &l);
  if (!status && l.inputs.size) status = add_inputs(&l, inputs, b);
  pestle_vec_deinit(&l.inputs);
  return status;
}

// --- All of them ---

pestle_status_t cli_bindings_read(cli_t* cli, const char* path,
                                  cli_inputs_t* inputs, cli_bindings_t* b) {
  PESTLE_TRY(add_options(cli, inputs, b));
  return inputs ? add_given_inputs(cli, path, inputs, b) : NULL;
}

pestle_import_options_t cli_bindings_options(cli_t* cli,
                                             const cli_bindings_t* b) {
  return (pestle_import_options_t){
      .struct_size = sizeof(pestle_import_options_t),
      .dims = b->dims.data,
      .dim_count = b->dims.size,
      .shapes = b->shapes.data,
      .shape_count = b->shapes.size,
      .consts = b->consts.data,
      .const_count = b->consts.size,
      .control = &cli->control,
      .onnx_compat = b->compat,
  };
}

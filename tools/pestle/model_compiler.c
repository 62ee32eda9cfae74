// SPDX-License-Identifier: Apache-2.0
// From a model to a static module and to a plan, as the options say.
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/thread.h"
#include "cli.h"

// --- --dim, --shape, --const ---

typedef struct bindings_t {
  PESTLE_VEC(pestle_dim_binding_t) dims;
  PESTLE_VEC(pestle_shape_binding_t) shapes;
  PESTLE_VEC(pestle_const_binding_t) consts;
} bindings_t;

static void bindings_init(bindings_t* b) {
  pestle_allocator_t a = pestle_allocator_system();
  pestle_vec_init(&b->dims, a);
  pestle_vec_init(&b->shapes, a);
  pestle_vec_init(&b->consts, a);
}

static void bindings_deinit(bindings_t* b) {
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

static pestle_status_t add_dim(cli_t* cli, const char* text, bindings_t* b) {
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
                                  const int64_t* dims, bindings_t* b) {
  size_t size = (size_t)rank * sizeof(*dims);
  pestle_shape_binding_t shape = {
      .input = name,
      .rank = rank,
      .dims = pestle_arena_copy(&cli->arena, dims, size, _Alignof(int64_t))};
  if (!shape.dims || !pestle_vec_push(&b->shapes, shape)) return PESTLE_OOM();
  return NULL;
}

static pestle_status_t add_shape(cli_t* cli, const char* text, bindings_t* b) {
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
                                  cli_array_t* array, bindings_t* b) {
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
                                 cli_arrays_t* arrays, bindings_t* b) {
  const char *name, *rest;
  cli_array_t array;
  PESTLE_TRY(split_option(cli, "const", text, &name, &rest));
  bool is_file = pestle_str_ends_with(pestle_str(rest), PESTLE_STR(".npy"));
  PESTLE_TRY(is_file ? cli_npy_read(rest, &array)
                     : make_const(name, rest, &array));
  if (!pestle_vec_push(arrays, array)) {
    cli_array_deinit(&array);
    return PESTLE_OOM();
  }
  return push_const(cli, name, &pestle_vec_last(arrays), b);
}

// Shapes, axes and the like: the inputs that a model may want to know early.
static bool is_small_integer(const cli_array_t* array) {
  return array->count <= 64 && pestle_dtype_is(array->dtype, PESTLE_KIND_INT);
}

// Scales, limits and the like too: what is a number or a list of a few.
static bool is_short_list(const cli_array_t* array) {
  return array->count <= 64 && array->rank <= 1;
}

static bool is_const_bound(const bindings_t* b, const char* name) {
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
                                 cli_inputs_t* inputs, bindings_t* b) {
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

static pestle_status_t add_options(cli_t* cli, cli_inputs_t* inputs,
                                   cli_arrays_t* arrays, bindings_t* b) {
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
    PESTLE_TRY(add_const(cli, text, arrays, b));
  }
  for (size_t i = 0; i < cli->list[CLI_CONST].size; ++i) {
    const char* text = cli->list[CLI_CONST].data[i];
    if (strchr(text, '=')) continue;
    PESTLE_TRY(add_given(cli, text, inputs, b));
  }
  return NULL;
}

static bool is_bound(const bindings_t* b, const char* name) {
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
                                  cli_inputs_t* inputs, bindings_t* b) {
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
                                 bindings_t* b) {
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
                                  bindings_t* b) {
  PESTLE_TRY(number_inputs(l, inputs));
  for (size_t i = 0; i < l->inputs.size; ++i)
    PESTLE_TRY(add_listed(l->cli, &l->inputs.data[i], inputs, b));
  return add_named(l->cli, inputs, b);
}

// --- Specialisation ---

const char* cli_input_name(const pestle_function_t* f, size_t i, char out[32]) {
  const char* name = pestle_function_argument_name(f, i);
  if (name) return name;
  snprintf(out, 32, "arg%zu", i);
  return out;
}

// What is known of argument |i|, from the module and from the caller.
static pestle_status_t known_type(pestle_function_t* f, size_t i,
                                  cli_inputs_t* inputs, pestle_type_t* out) {
  *out = pestle_value_type(pestle_function_argument(f, i));
  char unnamed[32];
  const char* name = cli_input_name(f, i, unnamed);
  cli_array_t* given = inputs ? cli_inputs_find(inputs, i, name) : NULL;
  if (!given) return NULL;
  bool fits = given->rank == out->rank;
  for (int32_t j = 0; fits && j < out->rank; ++j) {
    fits = out->dims[j] == PESTLE_DIM_DYNAMIC || out->dims[j] == given->dims[j];
  }
  if (!fits) {
    char own[400], found[400];
    return PESTLE_ERROR(
        INVALID_ARGUMENT,
        "input %zu, '%s', is given the shape %s, the model says %s", i, name,
        cli_print_dims(given->rank, given->dims, found, sizeof(found)),
        cli_print_dims(out->rank, out->dims, own, sizeof(own)));
  }
  memcpy(out->dims, given->dims, sizeof(out->dims));
  return NULL;
}

bool cli_is_static(const pestle_type_t* type) {
  for (int32_t i = 0; i < type->rank; ++i) {
    if (type->dims[i] == PESTLE_DIM_DYNAMIC) return false;
  }
  return true;
}

// The value of argument |i|, if it is given, for a model whose shapes may follow
// from it.
static pestle_status_t known_value(pestle_function_t* f, size_t i,
                                   const pestle_type_t* type, bool is_wanted,
                                   cli_inputs_t* inputs,
                                   pestle_tensor_t* out_view) {
  char unnamed[32];
  const char* name = cli_input_name(f, i, unnamed);
  cli_array_t* given = inputs ? cli_inputs_find(inputs, i, name) : NULL;
  pestle_io_info_t info = {name, type->dtype, type->rank, type->dims, false};
  if (inputs && !given && is_wanted && cli_inputs_has(inputs, i, name)) {
    PESTLE_TRY(cli_inputs_bind(inputs, i, &info, &given));
  }
  *out_view = (pestle_tensor_t){.ndim = type->rank,
                                .dtype = pestle_dtype_to_dlpack(type->dtype),
                                .shape = (int64_t*)type->dims};
  if (!given) return NULL;
  cli_array_retype(given, type->dtype);
  *out_view = cli_array_view(given);
  return NULL;
}

static bool is_value_argument(const pestle_module_t* module, size_t index) {
  for (size_t i = 0; i < pestle_module_value_argument_count(module); ++i) {
    if (pestle_module_value_argument(module, i) == index) return true;
  }
  return false;
}

// Numbers of the command line go on counting all inputs of the model.
static pestle_status_t keep_names(cli_t* cli, pestle_function_t* f,
                                  cli_inputs_t* inputs, size_t count) {
  inputs->names = PESTLE_ARENA_ARRAY(&cli->arena, const char*, count + 1);
  if (!inputs->names) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    char unnamed[32];
    inputs->names[i] = cli_copy(cli, pestle_str(cli_input_name(f, i, unnamed)));
    if (!inputs->names[i]) return PESTLE_OOM();
  }
  inputs->name_count = count;
  return NULL;
}

static pestle_status_t specialize_as(cli_t* cli, cli_inputs_t* inputs,
                                     const pestle_type_t* types, size_t count,
                                     pestle_module_t* module,
                                     pestle_module_t** out_module) {
  pestle_function_t* f = pestle_module_entry(module);
  pestle_tensor_t* views =
      PESTLE_ARENA_ARRAY(&cli->arena, pestle_tensor_t, count + 1);
  if (!views) return PESTLE_OOM();
  // Making one array may move the others.
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < count; ++i) {
      PESTLE_TRY(known_value(f, i, &types[i], is_value_argument(module, i),
                             inputs, &views[i]));
    }
  }
  PESTLE_TRY(pestle_module_specialize_values(module, views, count, out_module));
  pestle_function_t* made = pestle_module_entry(*out_module);
  if (!inputs || inputs->names ||
      pestle_function_argument_count(made) == count) {
    return NULL;
  }
  return keep_names(cli, f, inputs, count);
}

// What shows a model and runs nothing takes any extents for dims that are not known.
static bool takes_stand_ins(const cli_t* cli) {
  return !strcmp(cli->verb, "dump") || !strcmp(cli->verb, "opt") ||
         !strcmp(cli->verb, "explain");
}

static void say_stand_ins(pestle_function_t* f, const pestle_type_t* types,
                          size_t count, int64_t extent) {
  fprintf(stderr,
          "pestle: dims that are not known are taken as %lld; --dim NAME=N or "
          "--shape says what they are\n",
          (long long)extent);
  for (size_t i = 0; i < count; ++i) {
    pestle_type_t own = pestle_value_type(pestle_function_argument(f, i));
    char unnamed[32], dims[400];
    if (cli_is_static(&own)) continue;
    fprintf(stderr, "pestle:   '%s' is %s\n", cli_input_name(f, i, unnamed),
            cli_print_dims(types[i].rank, types[i].dims, dims, sizeof(dims)));
  }
}

// Some models fit few extents only: a window must fit an image, a size be a multiple.
static pestle_status_t specialize_stand_ins(cli_t* cli,
                                            const pestle_type_t* known,
                                            size_t count,
                                            pestle_module_t* module,
                                            pestle_module_t** out_module) {
  static const int64_t extents[] = {2, 8, 32, 64, 128, 256, 1};
  enum { EXTENTS = sizeof(extents) / sizeof(extents[0]) };
  pestle_function_t* f = pestle_module_entry(module);
  pestle_status_t first = NULL;
  pestle_type_t* types =
      PESTLE_ARENA_ARRAY(&cli->arena, pestle_type_t, count + 1);
  if (!types) return PESTLE_OOM();
  for (int e = 0; e < EXTENTS; ++e) {
    for (size_t i = 0; i < count; ++i) {
      types[i] = known[i];
      for (int32_t d = 0; d < types[i].rank; ++d) {
        if (types[i].dims[d] == PESTLE_DIM_DYNAMIC)
          types[i].dims[d] = extents[e];
      }
    }
    pestle_status_t status =
        specialize_as(cli, NULL, types, count, module, out_module);
    if (!status) {
      pestle_status_release(first);
      say_stand_ins(f, types, count, extents[e]);
      return NULL;
    }
    if (first) {
      pestle_status_release(status);
    } else {
      first = status;
    }
  }
  return pestle_status_annotate(
      first,
      "no extent fits all dims that are not known, which were taken as "
      "2, 8, 32 .. 256; give --dim NAME=N or --shape INPUT=1x3x640x640");
}

static pestle_status_t specialize(cli_t* cli, cli_inputs_t* inputs,
                                  pestle_module_t** module) {
  pestle_function_t* f = pestle_module_entry(*module);
  if (!f) return PESTLE_ERROR(MALFORMED, "the model has no function to run");
  size_t count = pestle_function_argument_count(f);
  bool was_static = !pestle_module_value_argument_count(*module);
  pestle_type_t* types =
      PESTLE_ARENA_ARRAY(&cli->arena, pestle_type_t, count + 1);
  if (!types) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    types[i] = pestle_value_type(pestle_function_argument(f, i));
    was_static = was_static && cli_is_static(&types[i]);
  }
  // A static module's inputs are checked where it runs.
  if (was_static) return NULL;
  for (size_t i = 0; i < count; ++i) {
    PESTLE_TRY(known_type(f, i, inputs, &types[i]));
  }
  pestle_module_t* out = NULL;
  pestle_status_t status = cli_check_static(cli, f, types, count);
  if (status && takes_stand_ins(cli)) {
    pestle_status_release(status);
    status = specialize_stand_ins(cli, types, count, *module, &out);
  } else if (!status) {
    status = specialize_as(cli, inputs, types, count, *module, &out);
  }
  if (status) {
    pestle_module_release(out);
    return status;
  }
  pestle_module_release(*module);
  *module = out;
  return NULL;
}

static pestle_status_t add_given_inputs(cli_t* cli, const char* path,
                                        cli_inputs_t* inputs, bindings_t* b) {
  if (!inputs->arrays.size && !inputs->lazy.size) return NULL;
  listing_t l = {.cli = cli};
  pestle_vec_init(&l.inputs, pestle_allocator_system());
  pestle_status_t status =
      pestle_import_visit_inputs(cli->context, path, list_input, &l);
  if (!status && l.inputs.size) status = add_inputs(&l, inputs, b);
  pestle_vec_deinit(&l.inputs);
  return status;
}

static pestle_import_options_t import_options(cli_t* cli, const bindings_t* b) {
  return (pestle_import_options_t){
      .struct_size = sizeof(pestle_import_options_t),
      .dims = b->dims.data,
      .dim_count = b->dims.size,
      .shapes = b->shapes.data,
      .shape_count = b->shapes.size,
      .consts = b->consts.data,
      .const_count = b->consts.size,
      .control = &cli->control,
  };
}

static pestle_status_t import(cli_t* cli, const char* path,
                              cli_inputs_t* inputs, cli_arrays_t* arrays,
                              bindings_t* b, pestle_module_t** out_module) {
  PESTLE_TRY(add_options(cli, inputs, arrays, b));
  if (inputs) PESTLE_TRY(add_given_inputs(cli, path, inputs, b));
  pestle_import_options_t options = import_options(cli, b);
  return pestle_import_file(cli->context, path, &options, out_module);
}

pestle_status_t cli_open_module(cli_t* cli, const char* path,
                                cli_inputs_t* inputs,
                                pestle_module_t** out_module) {
  *out_module = NULL;
  int64_t begin = pestle_clock_ns();
  bindings_t bindings;
  cli_arrays_t arrays;
  bindings_init(&bindings);
  pestle_vec_init(&arrays, pestle_allocator_system());
  pestle_status_t status =
      import(cli, path, inputs, &arrays, &bindings, out_module);
  if (!status) status = specialize(cli, inputs, out_module);
  if (status) status = cli_blame_options(cli, path, status);
  if (!status) status = cli_transform(cli, out_module);
  if (status) {
    pestle_module_release(*out_module);
    *out_module = NULL;
  }
  for (size_t i = 0; i < arrays.size; ++i)
    cli_array_deinit(&arrays.data[i]);
  pestle_vec_deinit(&arrays);
  bindings_deinit(&bindings);
  cli->times.import_ms = (double)(pestle_clock_ns() - begin) * 1e-6;
  return status;
}

pestle_status_t cli_describe_model(cli_t* cli, const char* path,
                                   const pestle_model_info_t** out_info) {
  *out_info = NULL;
  bindings_t bindings;
  cli_arrays_t arrays;
  bindings_init(&bindings);
  pestle_vec_init(&arrays, pestle_allocator_system());
  pestle_status_t status = add_options(cli, NULL, &arrays, &bindings);
  pestle_import_options_t options = import_options(cli, &bindings);
  if (!status)
    status = pestle_model_info_create(cli->context, path, &options, out_info);
  if (status) status = cli_blame_options(cli, path, status);
  for (size_t i = 0; i < arrays.size; ++i)
    cli_array_deinit(&arrays.data[i]);
  pestle_vec_deinit(&arrays);
  bindings_deinit(&bindings);
  return status;
}

// --- Compilation ---

static void show_progress(void* user, const char* stage, int64_t done,
                          int64_t total) {
  cli_progress_t* p = user;
  if (total <= 0 || pestle_clock_ns() - p->begin_ns < 1000000000) return;
  char bar[31];
  for (int i = 0; i < 30; ++i)
    bar[i] = i < 30 * done / total ? '#' : '.';
  bar[30] = 0;
  fprintf(stderr, "\r%-8s [%s] %lld/%lld \033[K", stage, bar, (long long)done,
          (long long)total);
  atomic_store(&p->is_shown, true);
}

static void begin_progress(cli_t* cli) {
  cli->control = (pestle_control_t){.struct_size = sizeof(cli->control)};
  cli->progress.begin_ns = pestle_clock_ns();
  if (!cli_is_terminal(stderr)) return;
  cli->control.progress = show_progress;
  cli->control.progress_user = &cli->progress;
}

static void end_progress(cli_t* cli) {
  if (atomic_exchange(&cli->progress.is_shown, false)) {
    fputs("\r\033[K", stderr);
  }
}

static pestle_status_t read_numerics(const cli_t* cli,
                                     pestle_numerics_t* out_numerics) {
  static const char* const names[] = {"default", "strict", "fast", NULL};
  char hint[PESTLE_HINT];
  const char* text = cli->text[CLI_NUMERICS];
  *out_numerics = PESTLE_NUMERICS_DEFAULT;
  for (int i = 0; text && i < 3; ++i) {
    if (strcmp(text, names[i])) continue;
    *out_numerics = (pestle_numerics_t)i;
    return NULL;
  }
  if (!text) return NULL;
  return CLI_USAGE_ERROR("--numerics wants strict, default or fast, not '%s'%s",
                         text, cli_hint(pestle_str(text), names, hint));
}

static pestle_status_t read_tier(const cli_t* cli,
                                 pestle_compile_options_t* options) {
  static const char* const names[] = {"full", "quick", NULL};
  char hint[PESTLE_HINT];
  const char* text = cli->text[CLI_TIER];
  if (!text || !strcmp(text, "full")) return NULL;
  if (strcmp(text, "quick")) {
    return CLI_USAGE_ERROR("--tier wants full or quick, not '%s'%s", text,
                           cli_hint(pestle_str(text), names, hint));
  }
  options->tier = PESTLE_TIER_QUICK;
  if (!cli->text[CLI_TUNE] && !cli->text[CLI_FROZEN]) return NULL;
  return CLI_USAGE_ERROR(
      "--tier quick takes no schedule from a lock: leave out --%s",
      cli->text[CLI_TUNE] ? "tune" : "frozen");
}

static pestle_status_t unknown_pass(const char* option, pestle_str_t name) {
  pestle_strbuf_t known;
  pestle_strbuf_init(pestle_allocator_system(), &known);
  pestle_closest_t closest = pestle_closest_to(name);
  char hint[PESTLE_HINT];
  for (size_t i = 0; pestle_pass_name(i); ++i) {
    pestle_closest_offer(&closest, pestle_str(pestle_pass_name(i)));
    pestle_strbuf_appendf(&known, i ? ", %s" : "%s", pestle_pass_name(i));
  }
  pestle_status_t status =
      CLI_USAGE_ERROR("%s: no pass is named '%.*s'; there are: %s%s", option,
                      PESTLE_STR_ARG(name), pestle_strbuf_cstr(&known),
                      pestle_closest_hint(&closest, hint));
  pestle_strbuf_deinit(&known);
  return status;
}

static bool is_pass(pestle_str_t name) {
  for (size_t i = 0; pestle_pass_name(i); ++i) {
    if (pestle_str_equal_c(name, pestle_pass_name(i))) return true;
  }
  return false;
}

pestle_status_t cli_check_passes(const char* name, const char* list,
                                 bool takes_all) {
  pestle_str_t rest = list ? pestle_str(list) : (pestle_str_t){0}, field;
  while (list && pestle_str_next(&rest, ',', &field)) {
    field = pestle_str_trim(field);
    if (takes_all && pestle_str_equal_c(field, "all")) continue;
    if (!is_pass(field)) return unknown_pass(name, field);
  }
  return NULL;
}

// stdout is for data: what a verb is asked to show goes to stderr.
static void print_stage(void* user, pestle_stage_t stage, const char* name,
                        const char* text, size_t size) {
  (void)user, (void)stage;
  fprintf(stderr, "// ---- %s\n%.*s\n", name,
          PESTLE_STR_ARG(pestle_str_make(text, size)));
}

// What is not asked for is used where it is there.
static pestle_status_t read_lock_options(cli_t* cli,
                                         pestle_compile_options_t* options) {
  static const char usual[] = "pestle.lock";
  bool tunes = cli->text[CLI_TUNE] != NULL;
  options->frozen = cli->text[CLI_FROZEN] != NULL;
  options->tune_seconds = (double)cli->count[CLI_TUNE];
  options->lock_path = cli->text[CLI_LOCK];
  if (tunes && (cli->count[CLI_TUNE] < 1 || cli->count[CLI_TUNE] > 1000000)) {
    return CLI_USAGE_ERROR("--tune wants 1 to 1000000 seconds, not '%s'",
                           cli->text[CLI_TUNE]);
  }
  if (tunes && options->frozen) {
    return CLI_USAGE_ERROR(
        "--tune and --frozen: what is frozen is not measured anew");
  }
  if (options->lock_path) return NULL;
  bool wanted = tunes || options->frozen;
  // What compares two ways to compile, or none at all, is not to depend on it.
  const char* verb = cli->verb;
  if (!strcmp(verb, "opt") || !strcmp(verb, "diff") ||
      !strcmp(verb, "reduce")) {
    return NULL;
  }
  if (wanted || pestle_file_exists(usual)) options->lock_path = usual;
  return NULL;
}

pestle_status_t cli_compile_options(cli_t* cli,
                                    pestle_compile_options_t* out_options) {
  const char* passes;
  PESTLE_TRY(cli_split_passes(cli, &passes));
  PESTLE_TRY(cli_check_passes("--passes", passes, false));
  PESTLE_TRY(cli_check_passes("--skip-passes", cli->text[CLI_SKIP], false));
  PESTLE_TRY(
      cli_check_passes("--print-after", cli->text[CLI_PRINT_AFTER], true));
  begin_progress(cli);
  *out_options = (pestle_compile_options_t){
      .struct_size = sizeof(*out_options),
      .target_cpu = cli->text[CLI_TARGET_CPU],
      .no_fuse = cli->text[CLI_NO_FUSE] != NULL,
      .no_cache = cli->text[CLI_NO_CACHE] != NULL,
      .verify = cli->text[CLI_VERIFY] != NULL,
      .passes = passes,
      .skip_passes = cli->text[CLI_SKIP],
      .print_after = cli->text[CLI_PRINT_AFTER],
      .control = &cli->control,
  };
  if (cli->count[CLI_STOP_AFTER] > INT32_MAX) {
    return CLI_USAGE_ERROR("--stop-after %s is too large",
                           cli->text[CLI_STOP_AFTER]);
  }
  out_options->stop_after = (int32_t)cli->count[CLI_STOP_AFTER];
  if (cli->text[CLI_PRINT_AFTER]) {
    out_options->dump_stages |= 1u << PESTLE_STAGE_PASS;
  }
  if (cli->text[CLI_TIME_PASSES]) {
    out_options->dump_stages |= 1u << PESTLE_STAGE_TIMES;
  }
  if (out_options->dump_stages) out_options->dump = print_stage;
  PESTLE_TRY(read_lock_options(cli, out_options));
  PESTLE_TRY(read_tier(cli, out_options));
  return read_numerics(cli, &out_options->numerics);
}

pestle_status_t cli_compile_module(cli_t* cli, pestle_module_t* module,
                                   pestle_device_t* device,
                                   const pestle_compile_options_t* options,
                                   pestle_plan_t** out_plan) {
  int64_t begin = pestle_clock_ns();
  pestle_status_t status =
      pestle_compile(cli->context, module, device, options, out_plan);
  end_progress(cli);
  cli->times.compile_ms = (double)(pestle_clock_ns() - begin) * 1e-6;
  return status;
}

pestle_status_t cli_compile_plan(cli_t* cli, const char* path,
                                 cli_inputs_t* inputs, pestle_device_t* device,
                                 pestle_plan_t** out_plan) {
  *out_plan = NULL;
  pestle_compile_options_t options;
  pestle_module_t* module;
  PESTLE_TRY(cli_compile_options(cli, &options));
  pestle_status_t status = cli_open_module(cli, path, inputs, &module);
  end_progress(cli);
  if (!status) {
    status = cli_compile_module(cli, module, device, &options, out_plan);
  }
  pestle_module_release(module);
  return status;
}

// --- ONNX test data ---

static pestle_status_t copy_elements(const pestle_elements_t* elements,
                                     cli_array_t* out_array) {
  PESTLE_TRY(cli_array_init(elements->type.dtype, elements->type.rank,
                            elements->type.dims, out_array));
  size_t size = pestle_dtype_size(out_array->dtype);
  if (!elements->splat && elements->size == out_array->size) {
    if (out_array->size) {
      memcpy(out_array->data, elements->data, out_array->size);
    }
    return NULL;
  }
  for (int64_t i = 0; elements->splat && i < out_array->count; ++i) {
    memcpy((char*)out_array->data + (size_t)i * size, elements->data, size);
  }
  return NULL;
}

pestle_status_t cli_read_pb(cli_t* cli, const char* path,
                            cli_array_t* out_array) {
  *out_array = (cli_array_t){.index = -1};
  pestle_mapping_t mapping;
  pestle_elements_t elements = {0};
  char name[1024] = "";
  PESTLE_TRY(pestle_file_map(path, &mapping));
  pestle_status_t status = pestle_read_onnx_tensor(
      cli->context, mapping.data, mapping.size, &elements, name, sizeof(name));
  if (!status) {
    status = copy_elements(&elements, out_array);
    pestle_context_free(cli->context, (void*)(uintptr_t)elements.data,
                        elements.size);
  }
  pestle_file_unmap(&mapping);
  if (!status && name[0]) {
    status = cli_array_set_name(out_array, pestle_str(name));
  }
  return pestle_status_annotate(status, "while reading '%s'", path);
}

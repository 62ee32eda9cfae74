// SPDX-License-Identifier: Apache-2.0
// From a model to a static module.
#include <string.h>

#include "base/thread.h"
#include "bindings.h"

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

// --- Import ---

pestle_status_t cli_open_module(cli_t* cli, const char* path,
                                cli_inputs_t* inputs,
                                pestle_module_t** out_module) {
  *out_module = NULL;
  int64_t begin = pestle_clock_ns();
  cli_bindings_t bindings;
  cli_bindings_init(&bindings);
  pestle_status_t status = cli_bindings_read(cli, path, inputs, &bindings);
  pestle_import_options_t options = cli_bindings_options(cli, &bindings);
  if (!status)
    status = pestle_import_file(cli->context, path, &options, out_module);
  if (!status) status = specialize(cli, inputs, out_module);
  if (status) status = cli_blame_options(cli, path, status);
  if (!status) status = cli_transform(cli, out_module);
  if (!status) status = cli_spread_say(cli, *out_module);
  if (status) {
    pestle_module_release(*out_module);
    *out_module = NULL;
  }
  cli_bindings_deinit(&bindings);
  cli->times.import_ms = (double)(pestle_clock_ns() - begin) * 1e-6;
  return status;
}

pestle_status_t cli_describe_model(cli_t* cli, const char* path,
                                   const pestle_model_info_t** out_info) {
  *out_info = NULL;
  cli_bindings_t bindings;
  cli_bindings_init(&bindings);
  pestle_status_t status = cli_bindings_read(cli, path, NULL, &bindings);
  pestle_import_options_t options = cli_bindings_options(cli, &bindings);
  if (!status)
    status = pestle_model_info_create(cli->context, path, &options, out_info);
  if (status) status = cli_blame_options(cli, path, status);
  cli_bindings_deinit(&bindings);
  return status;
}

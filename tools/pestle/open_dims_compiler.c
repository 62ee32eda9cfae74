// SPDX-License-Identifier: Apache-2.0
// What is said when dims of a model are not known.
#include <stdio.h>
#include <string.h>

#include "base/closest.h"
#include "cli.h"
#include "pestle/model_info.h"

// "[batch, 3, 224]": dims by the names that the model gives them, where |info|, which
// may be NULL, has them.
static const char* name_dims(const pestle_model_info_t* info, const char* input,
                             const pestle_type_t* type, char* out,
                             size_t capacity) {
  size_t at = pestle_model_info_find_input(info, input), size = 0;
  bool is_known = at != SIZE_MAX && info->inputs[at].rank == type->rank;
  size += (size_t)snprintf(out, capacity, "[");
  for (int32_t d = 0; d < type->rank && size + 80 < capacity; ++d) {
    const char* name = is_known ? info->inputs[at].dim_names[d] : "";
    const char* comma = d ? ", " : "";
    int n = type->dims[d] == PESTLE_DIM_DYNAMIC
                ? snprintf(out + size, capacity - size, "%s%.60s", comma,
                           name[0] ? name : "?")
                : snprintf(out + size, capacity - size, "%s%lld", comma,
                           (long long)type->dims[d]);
    size += n > 0 ? (size_t)n : 0;
  }
  (void)snprintf(out + size, capacity - size, "]");
  return out;
}

// Adds " --dim batch=N" for each name of |info| that |text| has not.
static void add_dims(const pestle_model_info_t* info, const char* input,
                     pestle_strbuf_t* text) {
  size_t at = pestle_model_info_find_input(info, input);
  for (int32_t d = 0; at != SIZE_MAX && d < info->inputs[at].rank; ++d) {
    const char* name = info->inputs[at].dim_names[d];
    char option[128];
    if (!name[0] || info->inputs[at].dims[d] != PESTLE_DIM_DYNAMIC) continue;
    (void)snprintf(option, sizeof(option), " --dim %.80s=N", name);
    if (!text->size || !strstr(pestle_strbuf_cstr(text), option))
      pestle_strbuf_append_c(text, option);
  }
}

// "x=1x3x224": a shape that input |name| may have.
static void add_shape(const char* name, const pestle_type_t* type,
                      pestle_strbuf_t* text) {
  pestle_strbuf_appendf(text, "%s=", name);
  for (int32_t d = 0; d < type->rank; ++d) {
    int64_t extent = type->dims[d] == PESTLE_DIM_DYNAMIC ? 1 : type->dims[d];
    pestle_strbuf_appendf(text, "%s%lld", d ? "x" : "", (long long)extent);
  }
}

// An input on the command line that the model has not is more of a mistake than a dim
// that is open for the lack of it.
static pestle_status_t check_names(const cli_t* cli, pestle_function_t* f,
                                   size_t count) {
  for (size_t k = 0; k < cli->list[CLI_INPUT].size; ++k) {
    pestle_str_t given;
    const char* rest;
    int64_t number;
    char unnamed[32], hint[PESTLE_HINT];
    if (!cli_split(cli->list[CLI_INPUT].data[k], &given, &rest)) continue;
    bool is_found = pestle_str_parse_i64(given, &number);
    pestle_closest_t closest = pestle_closest_to(given);
    pestle_strbuf_t names;
    pestle_strbuf_init(pestle_allocator_system(), &names);
    for (size_t i = 0; i < count; ++i) {
      const char* name = cli_input_name(f, i, unnamed);
      is_found = is_found || pestle_str_equal_c(given, name);
      pestle_closest_offer(&closest, pestle_str(name));
      pestle_strbuf_appendf(&names, "%s'%s'", i ? ", " : "", name);
    }
    pestle_status_t status =
        is_found
            ? NULL
            : CLI_USAGE_ERROR("the model has no input '%.*s'; it has %s%s",
                              PESTLE_STR_ARG(given), pestle_strbuf_cstr(&names),
                              pestle_closest_hint(&closest, hint));
    pestle_strbuf_deinit(&names);
    if (status) return status;
  }
  return NULL;
}

static pestle_status_t say_open(const cli_t* cli, pestle_function_t* f,
                                const pestle_type_t* types, size_t first,
                                size_t count, const pestle_model_info_t* info) {
  char unnamed[32];
  bool takes_inputs = !strcmp(cli->verb, "run");
  pestle_strbuf_t dims, shape;
  pestle_strbuf_init(pestle_allocator_system(), &dims);
  pestle_strbuf_init(pestle_allocator_system(), &shape);
  for (size_t i = first; i < count; ++i) {
    if (!cli_is_static(&types[i]))
      add_dims(info, cli_input_name(f, i, unnamed), &dims);
  }
  add_shape(cli_input_name(f, first, unnamed), &types[first], &shape);
  pestle_status_t status = CLI_USAGE_ERROR(
      "the model has dimensions that are not known; give%s%s --shape %s%s",
      dims.size ? pestle_strbuf_cstr(&dims) : "", dims.size ? ", or" : "",
      pestle_strbuf_cstr(&shape),
      takes_inputs ? ", or the inputs themselves (--inputs, --input)" : "");
  pestle_strbuf_deinit(&dims);
  pestle_strbuf_deinit(&shape);
  return status;
}

static pestle_status_t list_open(const cli_t* cli, pestle_function_t* f,
                                 const pestle_type_t* types, size_t count,
                                 const pestle_model_info_t* info) {
  pestle_status_t status = NULL;
  for (size_t i = 0; i < count; ++i) {
    if (cli_is_static(&types[i])) continue;
    char unnamed[32], dims[800];
    const char* name = cli_input_name(f, i, unnamed);
    if (!status) status = say_open(cli, f, types, i, count, info);
    status = pestle_status_annotate(
        status, "input %zu, '%s', is of %s", i, name,
        name_dims(info, name, &types[i], dims, sizeof(dims)));
  }
  return status;
}

pestle_status_t cli_check_static(const cli_t* cli, pestle_function_t* f,
                                 const pestle_type_t* types, size_t count) {
  size_t i = 0;
  while (i < count && cli_is_static(&types[i]))
    ++i;
  if (i == count) return NULL;
  PESTLE_TRY(check_names(cli, f, count));
  const pestle_model_info_t* info = NULL;
  pestle_status_t told = pestle_model_info_create(
      cli->context, cli->args.size ? cli->args.data[0] : "", NULL, &info);
  pestle_status_release(told);
  pestle_status_t status = list_open(cli, f, types, count, info);
  pestle_model_info_release(info);
  return status;
}

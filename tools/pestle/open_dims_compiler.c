// SPDX-License-Identifier: Apache-2.0
// What is said when dims of a model are not known.
#include <stdio.h>
#include <string.h>

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

static pestle_status_t list_open(const cli_t* cli, pestle_function_t* f,
                                 const pestle_type_t* types, size_t count,
                                 const pestle_model_info_t* info) {
  pestle_status_t status = NULL;
  for (size_t i = 0; i < count; ++i) {
    if (cli_is_static(&types[i])) continue;
    char unnamed[32], dims[800];
    const char* name = cli_input_name(f, i, unnamed);
    if (!status) {
      bool takes_inputs = !strcmp(cli->verb, "run");
      status = CLI_USAGE_ERROR(
          "the model has dimensions that are not known; give --shape "
          "INPUT=1x3x640x640 or --dim NAME=N%s",
          takes_inputs ? ", or the inputs themselves (--inputs, --input)" : "");
    }
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
  const pestle_model_info_t* info = NULL;
  pestle_status_t told = pestle_model_info_create(
      cli->context, cli->args.size ? cli->args.data[0] : "", NULL, &info);
  pestle_status_release(told);
  pestle_status_t status = list_open(cli, f, types, count, info);
  pestle_model_info_release(info);
  return status;
}

// SPDX-License-Identifier: Apache-2.0
// pestle compile: a model becomes a plan in a file, or a set of plans where --dim
// lists several extents.
#include <string.h>

#include "base/file.h"
#include "cli.h"
#include "json.h"
#include "pestle/plan_set.h"

enum { MOST_EXTENTS = 256, MOST_PLANS = 1024 };

// An option --dim NAME=1,4..16: the place of its text, and a text for each extent.
typedef struct axis_t {
  size_t option;
  const char* texts[MOST_EXTENTS];
  size_t count, at;
} axis_t;

static pestle_status_t add_extent(cli_t* cli, axis_t* axis, pestle_str_t name,
                                  int64_t extent) {
  char text[512];
  (void)snprintf(text, sizeof(text), "%.*s=%lld", PESTLE_STR_ARG(name),
                 (long long)extent);
  for (size_t i = 0; i < axis->count; ++i) {
    if (!strcmp(axis->texts[i], text)) return NULL;
  }
  if (axis->count == MOST_EXTENTS)
    return CLI_USAGE_ERROR("--dim %.*s lists more than %d extents",
                           PESTLE_STR_ARG(name), MOST_EXTENTS);
  axis->texts[axis->count] = cli_copy(cli, pestle_str(text));
  return axis->texts[axis->count++] ? NULL : PESTLE_OOM();
}

// "4", or "4..32", which are 4, 8, 16 and 32 as in a session.
static pestle_status_t add_part(cli_t* cli, axis_t* axis, pestle_str_t name,
                                pestle_str_t part) {
  int64_t first, last;
  size_t dots = pestle_str_find(part, PESTLE_STR(".."));
  bool is_range = dots != SIZE_MAX;
  pestle_str_t begin = is_range ? pestle_str_slice(part, 0, dots) : part;
  pestle_str_t end =
      is_range ? pestle_str_slice(part, dots + 2, part.size) : part;
  if (!pestle_str_parse_i64(begin, &first) ||
      !pestle_str_parse_i64(end, &last) || first < 1 || last < first) {
    return CLI_USAGE_ERROR(
        "--dim %.*s: '%.*s' is no extent and no range; expected numbers from 1 "
        "on, as 1,2,4..32",
        PESTLE_STR_ARG(name), PESTLE_STR_ARG(part));
  }
  while (first < last) {
    PESTLE_TRY(add_extent(cli, axis, name, first));
    first = first > last / 2 ? last : 2 * first;
  }
  return add_extent(cli, axis, name, last);
}

// The options that list several extents; |*out_count| is 0 when none does.
static pestle_status_t find_axes(cli_t* cli, axis_t** out_axes,
                                 size_t* out_count) {
  size_t options = cli->list[CLI_DIM].size;
  axis_t* axes = PESTLE_ARENA_ARRAY(&cli->arena, axis_t, options + 1);
  if (!axes) return PESTLE_OOM();
  *out_axes = axes;
  *out_count = 0;
  for (size_t i = 0; i < options; ++i) {
    pestle_str_t name, part, list;
    const char* rest;
    if (!cli_split(cli->list[CLI_DIM].data[i], &name, &rest)) continue;
    if (!strchr(rest, ',') && !strstr(rest, "..")) continue;
    axis_t* axis = &axes[(*out_count)++];
    *axis = (axis_t){.option = i};
    list = pestle_str(rest);
    while (pestle_str_next(&list, ',', &part))
      PESTLE_TRY(add_part(cli, axis, name, part));
  }
  return NULL;
}

// The next combination, the last axis the fastest; false behind the last.
static bool advance(axis_t* axes, size_t count) {
  for (size_t i = count; i-- > 0;) {
    if (++axes[i].at < axes[i].count) return true;
    axes[i].at = 0;
  }
  return false;
}

static pestle_status_t compile_set(cli_t* cli, const char* path,
                                   pestle_device_t* device, const char* file,
                                   axis_t* axes, size_t axis_count,
                                   size_t* out_count) {
  size_t total = 1;
  for (size_t i = 0; i < axis_count; ++i)
    total = total > MOST_PLANS ? total : total * axes[i].count;
  if (total > MOST_PLANS)
    return CLI_USAGE_ERROR("--dim: more than %d shapes", MOST_PLANS);
  pestle_plan_t** plans =
      PESTLE_ARENA_ARRAY(&cli->arena, pestle_plan_t*, total);
  if (!plans) return PESTLE_OOM();
  size_t count = 0;
  pestle_status_t status = NULL;
  *out_count = 0;
  do {
    for (size_t i = 0; i < axis_count; ++i)
      cli->list[CLI_DIM].data[axes[i].option] = axes[i].texts[axes[i].at];
    status = cli_compile_plan(cli, path, NULL, device, &plans[count]);
    count += !status;
  } while (!status && advance(axes, axis_count));
  if (!status) status = pestle_plan_set_save(plans, count, file);
  *out_count = count;
  for (size_t i = 0; i < count; ++i)
    pestle_plan_release(plans[i]);
  return status;
}

static pestle_status_t tell(cli_t* cli, const char* file, size_t plans) {
  pestle_file_info_t info;
  if (!cli->json) return NULL;
  PESTLE_TRY(pestle_file_stat(file, true, &info));
  cli_key_cstr(cli->json, "model", cli->args.data[0]);
  cli_key_cstr(cli->json, "file", file);
  cli_key_i64(cli->json, "bytes", info.size);
  cli_key_u64(cli->json, "plans", plans);
  cli_key_f64(cli->json, "import_ms", cli->times.import_ms);
  cli_key_f64(cli->json, "compile_ms", cli->times.compile_ms);
  return NULL;
}

pestle_status_t cli_compile(cli_t* cli, int* out_exit) {
  (void)out_exit;
  const char* path;
  pestle_device_t* device;
  pestle_plan_t* plan;
  axis_t* axes;
  size_t axis_count;
  PESTLE_TRY(cli_only_model(cli, &path));
  const char* file = cli->text[CLI_OUT];
  if (!file) {
    return CLI_USAGE_ERROR(
        "'pestle compile' wants -o FILE.plan: where to write the plan");
  }
  PESTLE_TRY(cli_check_target(path, file, "-o"));
  PESTLE_TRY(cli_device(cli, &device));
  PESTLE_TRY(find_axes(cli, &axes, &axis_count));
  if (axis_count) {
    size_t count;
    PESTLE_TRY(compile_set(cli, path, device, file, axes, axis_count, &count));
    return tell(cli, file, count);
  }
  PESTLE_TRY(cli_compile_plan(cli, path, NULL, device, &plan));
  pestle_status_t status = pestle_plan_save(plan, file);
  pestle_plan_release(plan);
  return status ? status : tell(cli, file, 1);
}

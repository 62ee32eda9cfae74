// SPDX-License-Identifier: Apache-2.0
// pestle info: what a model or a plan says of itself, for people or as JSON.
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "cli.h"
#include "pestle/plan_format.h"
#include "pestle/plan_set.h"

// --- Values ---

const char* cli_info_bytes(uint64_t bytes, char* buffer, size_t capacity) {
  static const char* const units[] = {"B", "KB", "MB", "GB", "TB"};
  double value = (double)bytes;
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < sizeof(units) / sizeof(units[0])) {
    value /= 1000;
    ++unit;
  }
  snprintf(buffer, capacity, unit && value < 100 ? "%.1f %s" : "%.0f %s", value,
           units[unit]);
  return buffer;
}

const char* cli_info_type(pestle_dtype_t dtype, bool strings) {
  if (strings) return "str";
  return dtype == PESTLE_NONE ? NULL : pestle_dtype_info(dtype)->name;
}

void cli_info_value(size_t index, const char* name, int width, const char* type,
                    int32_t rank, const int64_t* dims,
                    const char* const* dim_names, const char* note) {
  printf("  %-3zu %-*s  %s[", index, width, name, type ? type : "?");
  if (rank < 0) fputs("rank not stated", stdout);
  for (int32_t i = 0; i < rank; ++i) {
    if (i) fputs(", ", stdout);
    bool is_named = dim_names && dim_names[i][0];
    if (dims[i] != PESTLE_DIM_DYNAMIC) {
      printf("%lld", (long long)dims[i]);
    } else {
      fputs(is_named ? dim_names[i] : "?", stdout);
    }
  }
  printf("]%s%s\n", note[0] ? "  " : "", note);
}

void cli_info_json_value(pestle_json_t* json, const char* name,
                         const char* type, int32_t rank, const int64_t* dims,
                         const char* const* dim_names) {
  pestle_json_begin_object(json);
  pestle_json_key(json, "name");
  pestle_json_cstr(json, name);
  pestle_json_key(json, "dtype");
  if (type) {
    pestle_json_cstr(json, type);
  } else {
    pestle_json_null(json);
  }
  pestle_json_key(json, "dims");
  if (rank < 0) {
    pestle_json_null(json);
    return;
  }
  pestle_json_begin_array(json);
  for (int32_t i = 0; i < rank; ++i) {
    bool is_named = dim_names && dim_names[i][0];
    if (dims[i] != PESTLE_DIM_DYNAMIC) {
      pestle_json_i64(json, dims[i]);
    } else if (is_named) {
      pestle_json_cstr(json, dim_names[i]);
    } else {
      pestle_json_null(json);
    }
  }
  pestle_json_end_array(json);
}

// --- What a run costs ---

typedef struct cost_t {
  const pestle_plan_header_t* plan;
  const char* strings;
  const pestle_plan_device_t* device;  // the first; NULL: none
  uint64_t flops, bytes;               // of one pass over the steps
  size_t kernels, launches, calls;
  bool has_jumps;  // so that a run may take steps more often, or not at all
  uint64_t constants;
} cost_t;

static const void* section(const pestle_plan_header_t* plan,
                           pestle_plan_section_t s) {
  return (const char*)plan + s.offset;
}

static cost_t count_cost(const pestle_plan_t* plan) {
  cost_t c = {.plan = pestle_plan_data(plan, NULL)};
  const pestle_plan_step_t* steps = section(c.plan, c.plan->steps);
  const pestle_plan_kernel_t* kernels = section(c.plan, c.plan->kernels);
  const pestle_plan_constant_ref_t* refs =
      section(c.plan, c.plan->constant_refs);
  c.strings = section(c.plan, c.plan->strings);
  if (c.plan->devices.count) c.device = section(c.plan, c.plan->devices);
  c.kernels = c.plan->kernels.count;
  for (uint64_t i = 0; i < c.plan->steps.count; ++i) {
    bool is_launch = steps[i].kind == PESTLE_PLAN_LAUNCH;
    c.launches += is_launch;
    c.calls += steps[i].kind == PESTLE_PLAN_CALL;
    c.has_jumps = c.has_jumps || steps[i].kind == PESTLE_PLAN_JUMP ||
                  steps[i].kind == PESTLE_PLAN_JUMP_IF_ZERO ||
                  steps[i].kind == PESTLE_PLAN_JUMP_TABLE ||
                  steps[i].kind == PESTLE_PLAN_REPEAT;
    if (!is_launch) continue;
    c.flops += kernels[steps[i].kernel].flops;
    c.bytes += kernels[steps[i].kernel].bytes;
  }
  for (uint64_t i = 0; i < c.plan->constant_refs.count; ++i)
    c.constants += refs[i].size;
  return c;
}

static void write_cost(const cost_t* c, pestle_json_t* json) {
  const struct {
    const char* key;
    uint64_t value;
  } members[] = {{"flops", c->flops},
                 {"bytes", c->bytes},
                 {"kernels", c->kernels},
                 {"launches", c->launches},
                 {"calls", c->calls},
                 {"arena_bytes", (uint64_t)c->plan->arena_size},
                 {"scratch_bytes_a_thread", (uint64_t)c->plan->scratch_size},
                 {"constant_bytes", c->constants}};
  pestle_json_key(json, "run");
  pestle_json_begin_object(json);
  if (c->device) {
    pestle_json_key(json, "backend");
    pestle_json_cstr(json, c->strings + c->device->backend);
    pestle_json_key(json, "cpu");
    pestle_json_cstr(json, c->strings + c->device->cpu);
    pestle_json_key(json, "features");
    pestle_json_cstr(json, c->strings + c->device->features);
  }
  for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); ++i) {
    pestle_json_key(json, members[i].key);
    pestle_json_u64(json, members[i].value);
  }
  pestle_json_end_object(json);
}

static void print_cost(const cost_t* c) {
  char bytes[32], arena[32], scratch[32], constants[32];
  double flops = (double)c->flops;
  const char* unit = flops >= 1e9 ? "GFLOP" : "MFLOP";
  printf("a run%s%s%s%s\n", c->device ? ", on " : "",
         c->device ? c->strings + c->device->backend : "",
         c->device && c->strings[c->device->cpu] ? " for " : "",
         c->device ? c->strings + c->device->cpu : "");
  printf("  %.3g %s and %s read and written, in %zu launches of %zu kernels",
         flops * (flops >= 1e9 ? 1e-9 : 1e-6), unit,
         cli_info_bytes(c->bytes, bytes, sizeof(bytes)), c->launches,
         c->kernels);
  if (c->calls) printf(" and %zu calls of libraries", c->calls);
  printf("%s\n", c->has_jumps ? "; loops and branches counted once" : "");
  printf("  memory: %s for values between kernels, %s of constants",
         cli_info_bytes((uint64_t)c->plan->arena_size, arena, sizeof(arena)),
         cli_info_bytes(c->constants, constants, sizeof(constants)));
  if (c->plan->scratch_size)
    printf(", %s a thread", cli_info_bytes((uint64_t)c->plan->scratch_size,
                                           scratch, sizeof(scratch)));
  printf("\n");
}

pestle_status_t cli_info_cost(const pestle_plan_t* plan, pestle_json_t* json) {
  cost_t cost = count_cost(plan);
  if (json) {
    write_cost(&cost, json);
  } else {
    print_cost(&cost);
  }
  return NULL;
}

// --- Plans ---

static void tell_ios(const pestle_plan_header_t* plan, pestle_plan_section_t s,
                     const char* what, pestle_json_t* json) {
  const pestle_plan_io_t* ios = section(plan, s);
  const char* strings = section(plan, plan->strings);
  int width = 1;
  for (uint64_t i = 0; i < s.count; ++i) {
    int size = (int)strlen(strings + ios[i].name);
    if (size > width) width = size;
  }
  if (json) {
    pestle_json_key(json, what);
    pestle_json_begin_array(json);
  } else {
    printf("%s\n", what);
  }
  for (uint64_t i = 0; i < s.count; ++i) {
    const char* name = strings + ios[i].name;
    const char* type = cli_info_type((pestle_dtype_t)ios[i].dtype,
                                     strings[ios[i].dictionary] != 0);
    if (json) {
      cli_info_json_value(json, name, type, ios[i].rank, ios[i].dims, NULL);
      pestle_json_end_object(json);
    } else {
      cli_info_value(i, name, width, type, ios[i].rank, ios[i].dims, NULL,
                     ios[i].bounded ? "at most; a run tells" : "");
    }
  }
  if (json) pestle_json_end_array(json);
}

static pestle_status_t tell_loaded(const char* path, const pestle_plan_t* plan,
                                   pestle_json_t* json) {
  size_t size;
  const pestle_plan_header_t* header = pestle_plan_data(plan, &size);
  const char* name =
      (const char*)section(header, header->strings) + header->name;
  char bytes[32];
  if (json) {
    pestle_json_key(json, "format");
    pestle_json_cstr(json, "plan");
    pestle_json_key(json, "plan_version");
    pestle_json_u64(json, header->version);
    pestle_json_key(json, "model");
    pestle_json_cstr(json, name);
    pestle_json_key(json, "size");
    pestle_json_u64(json, size);
  } else {
    printf("%s: a plan of %s, %s, plan format %u\n", path,
           name[0] ? name : "a model without a name",
           cli_info_bytes(size, bytes, sizeof(bytes)),
           (unsigned)header->version);
  }
  tell_ios(header, header->inputs, "inputs", json);
  tell_ios(header, header->outputs, "outputs", json);
  return cli_info_cost(plan, json);
}

static pestle_status_t tell_plan(cli_t* cli, const char* path,
                                 pestle_json_t* json) {
  pestle_plan_t* plan;
  PESTLE_TRY(pestle_plan_load(cli->context, path, &plan));
  pestle_status_t status = tell_loaded(path, plan, json);
  pestle_plan_release(plan);
  return status;
}

static pestle_status_t tell_set(cli_t* cli, const char* path,
                                pestle_json_t* json) {
  pestle_plan_set_t* set;
  PESTLE_TRY(pestle_plan_set_load(cli->context, path, &set));
  size_t count = pestle_plan_set_count(set);
  if (json) {
    pestle_json_key(json, "format");
    pestle_json_cstr(json, "set of plans");
    pestle_json_key(json, "plans");
    pestle_json_begin_array(json);
  } else {
    printf("%s: a set of %zu plans\n", path, count);
  }
  pestle_status_t status = NULL;
  for (size_t i = 0; i < count && !status; ++i) {
    char title[32];
    snprintf(title, sizeof(title), "\nplan %zu", i);
    if (json) pestle_json_begin_object(json);
    status = tell_loaded(title, pestle_plan_set_plan(set, i), json);
    if (json) pestle_json_end_object(json);
  }
  if (json) pestle_json_end_array(json);
  pestle_plan_set_release(set);
  return status;
}

// --- The verb ---

static pestle_status_t tell(cli_t* cli, const char* path, pestle_json_t* json) {
  if (cli_is_plan_set(path)) return tell_set(cli, path, json);
  if (cli_is_plan(path)) return tell_plan(cli, path, json);
  return cli_info_model(cli, path, json);
}

pestle_status_t cli_info(cli_t* cli, int* out_exit) {
  (void)out_exit;
  const char* path;
  PESTLE_TRY(cli_only_argument(cli, "a model or a plan", &path));
  return tell(cli, path, cli->json);
}

// SPDX-License-Identifier: Apache-2.0
// Which plan of a set fits the inputs of the command line.
#include <string.h>

#include "cli.h"
#include "pestle/plan_format.h"

// Whether what is given for the inputs of |plan| has their extents.
static bool fits(const pestle_plan_t* plan, cli_inputs_t* inputs) {
  const pestle_plan_header_t* h = pestle_plan_data(plan, NULL);
  const char* begin = (const char*)h;
  const pestle_plan_io_t* ios = (const void*)(begin + h->inputs.offset);
  for (uint64_t i = 0; i < h->inputs.count; ++i) {
    const char* name = begin + h->strings.offset + ios[i].name;
    const cli_array_t* given =
        inputs ? cli_inputs_find(inputs, (size_t)i, name) : NULL;
    if (!given) continue;
    if (given->rank != ios[i].rank ||
        memcmp(given->dims, ios[i].dims,
               (size_t)given->rank * sizeof(given->dims[0])) != 0) {
      return false;
    }
  }
  return true;
}

static void append_inputs(const pestle_plan_t* plan, pestle_strbuf_t* out) {
  const pestle_plan_header_t* h = pestle_plan_data(plan, NULL);
  const char* begin = (const char*)h;
  const pestle_plan_io_t* ios = (const void*)(begin + h->inputs.offset);
  for (uint64_t i = 0; i < h->inputs.count; ++i) {
    char dims[400];
    pestle_strbuf_append_c(out, i ? ", " : "");
    pestle_strbuf_append_name(out, begin + h->strings.offset + ios[i].name);
    pestle_strbuf_appendf(
        out, " %s",
        cli_print_dims(ios[i].rank, ios[i].dims, dims, sizeof(dims)));
  }
}

static pestle_status_t none_fits(const pestle_plan_set_t* set,
                                 const char* path) {
  enum { MOST = 16 };
  size_t count = pestle_plan_set_count(set);
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  for (size_t i = 0; i < count && i < MOST; ++i) {
    pestle_strbuf_append_c(&text, i ? "; " : "");
    append_inputs(pestle_plan_set_plan(set, i), &text);
  }
  pestle_status_t status = CLI_USAGE_ERROR(
      "no plan of '%s' takes inputs of these extents; it has %s%s", path,
      pestle_strbuf_cstr(&text), count > MOST ? "; and more" : "");
  pestle_strbuf_deinit(&text);
  return status;
}

pestle_status_t cli_choose_plan(cli_t* cli, const char* path,
                                cli_inputs_t* inputs,
                                pestle_plan_t** out_plan) {
  *out_plan = NULL;
  pestle_plan_set_t* set;
  PESTLE_TRY(pestle_plan_set_load(cli->context, path, &set));
  for (size_t i = 0; i < pestle_plan_set_count(set) && !*out_plan; ++i) {
    if (fits(pestle_plan_set_plan(set, i), inputs))
      *out_plan = pestle_plan_set_plan(set, i);
  }
  pestle_plan_retain(*out_plan);
  pestle_status_t status = *out_plan ? NULL : none_fits(set, path);
  pestle_plan_set_release(set);
  return status;
}

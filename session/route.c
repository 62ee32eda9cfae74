// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "session/internal.h"

static pestle_status_t find_places(const pestle_session_t* s,
                                   session_route_t* r) {
  for (size_t i = 0; i < r->input_count; ++i) {
    const char* name = pestle_executable_input(r->executable, i).name;
    size_t at = 0;
    while (at < s->input_count && strcmp(s->inputs[at].name, name) != 0)
      ++at;
    if (at == s->input_count) {
      return PESTLE_ERROR(INTERNAL, "the model has no input '%s' of its plan",
                          name);
    }
    r->inputs[i] = (uint32_t)at;
  }
  if (r->output_count != s->output_count) {
    return PESTLE_ERROR(INTERNAL,
                        "a plan of the model has %zu outputs, not %zu",
                        r->output_count, s->output_count);
  }
  // Outputs keep their order.
  for (size_t i = 0; i < r->output_count; ++i)
    r->outputs[i] = (uint32_t)i;
  return NULL;
}

pestle_status_t pestle_session_route_create(const pestle_session_t* s,
                                            pestle_executable_t* executable,
                                            int64_t n, int64_t m,
                                            const session_rows_t* input_rows,
                                            const session_rows_t* output_rows,
                                            session_route_t** out_route) {
  *out_route = NULL;
  size_t inputs = pestle_executable_input_count(executable);
  size_t outputs = pestle_executable_output_count(executable);
  size_t io = inputs + outputs;
  size_t rows = input_rows ? io * sizeof(session_rows_t) : 0;
  size_t size = sizeof(session_route_t) + rows + io * sizeof(uint32_t);
  session_route_t* r = pestle_alloc_zero(s->allocator, size);
  if (!r) return PESTLE_OOM();
  pestle_refcount_init(&r->refcount);
  r->allocator = s->allocator;
  r->size = size;
  r->executable = executable;
  pestle_executable_retain(executable);
  r->input_count = inputs;
  r->output_count = outputs;
  r->n = n;
  r->m = m;
  char* at = (char*)(r + 1);
  if (input_rows) {
    r->input_rows = (session_rows_t*)(void*)at;
    r->output_rows = r->input_rows + inputs;
    memcpy(r->input_rows, input_rows, inputs * sizeof(*input_rows));
    memcpy(r->output_rows, output_rows, outputs * sizeof(*output_rows));
  }
  r->inputs = (uint32_t*)(void*)(at + rows);
  r->outputs = r->inputs + inputs;
  pestle_status_t status = find_places(s, r);
  if (status) {
    pestle_session_route_release(r);
  } else {
    *out_route = r;
  }
  return status;
}

void pestle_session_route_release(session_route_t* r) {
  if (!r || !pestle_refcount_release(&r->refcount)) return;
  pestle_executable_release(r->executable);
  pestle_dealloc(r->allocator, r, r->size);
}

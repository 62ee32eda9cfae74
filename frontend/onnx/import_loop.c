// SPDX-License-Identifier: Apache-2.0
// Loop: how many trips it makes, and with what room for its scan outputs (repeat.h).
#include "base/mem.h"
#include "frontend/onnx/lists.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/repeat.h"

// The most rows of a scan output that a run may cut short.
#define MOST_ROWS 16777216
// Bytes of the rows of a loop that only its condition ends, rows that there are at least,
// and the bytes that these may take.
#define USUAL_ROOM (INT64_C(4) << 20)
#define LEAST_ROWS 1024
#define MOST_ROOM (INT64_C(256) << 20)

// Input |index| as a scalar of |dtype|, or NULL.
static pestle_value_t* scalar_input(pestle_onnx_call_t* call, size_t index,
                                    pestle_dtype_t dtype) {
  pestle_value_t* value = pestle_onnx_input(call, index);
  if (!value) return NULL;
  return pestle_onnx_convert(call, pestle_f_reshape(&call->f, value, 0, NULL),
                             dtype);
}

static bool read_loop(pestle_onnx_call_t* call, pestle_onnx_repeat_t* r) {
  r->graph = pestle_onnx_body_of(call);
  if (!r->graph) return false;
  r->states = call->input_count > 2 ? call->input_count - 2 : 0;
  bool fits = call->input_count >= 2 &&
              r->graph->input_count >= r->states + 2 &&
              r->graph->output_count >= r->states + 1;
  if (fits) r->outs = r->graph->output_count - 1 - r->states;
  fits = fits && call->output_count <= r->states + r->outs;
  for (size_t i = 2; fits && i < call->input_count; ++i)
    fits = call->inputs[i] != NULL;
  if (fits) return true;
  pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                   "it has %zu inputs and %zu outputs, its body %zu and %zu",
                   call->input_count, call->output_count, r->graph->input_count,
                   r->graph->output_count);
  return false;
}

// The number of trips if it is known: |limit| is, and nothing else ends it.
static bool known_trips(pestle_onnx_repeat_t* r, const pestle_value_t* limit,
                        const pestle_value_t* condition) {
  const pestle_elements_t* most = limit ? pestle_value_constant(limit) : NULL;
  const pestle_elements_t* starts =
      condition ? pestle_value_constant(condition) : NULL;
  if (starts && !pestle_onnx_element_i64(starts, 0)) {
    r->trips = 0;
    return true;
  }
  r->trips = most ? pestle_onnx_element_i64(most, 0) : 0;
  if (r->trips < 0) r->trips = 0;
  if (most && !r->trips) return true;
  return most && (!condition || starts) && r->endless;
}

// Whether at most r->trips are made by a limit that is known, and only a run tells whether
// all are. A condition that can be had while importing would say it now.
static bool limited_trips(const pestle_onnx_repeat_t* r,
                          const pestle_value_t* limit,
                          const pestle_value_t* condition) {
  bool may_stop = !r->endless || !pestle_onnx_can_need(r->call, condition);
  return may_stop && limit && pestle_value_constant(limit) &&
         r->trips <= MOST_ROWS;
}

// Whether the limit is an extent that only a run tells, whose bound is that of the trips.
static bool extent_trips(pestle_onnx_repeat_t* r, pestle_value_t** limit,
                         const pestle_value_t* condition) {
  pestle_onnx_extent_t extent;
  if (!pestle_onnx_extent(r->call, 0, &extent) || !extent.size ||
      extent.dim > MOST_ROWS) {
    return false;
  }
  *limit = extent.size;
  r->trips = extent.dim;
  if (r->endless && (!condition || pestle_value_constant(condition)))
    r->limit = extent.size;
  return true;
}

// Whether a run alone tells how many trips there are: then there is room for as many
// rows as fit into some memory, and a run that has more fails (importer.h).
static bool guessed_trips(pestle_onnx_repeat_t* r,
                          const pestle_value_t* limit) {
  pestle_onnx_call_t* call = r->call;
  int64_t bytes = 1;
  bool open = limit ? pestle_value_constant(limit)
                          ? !r->endless && r->trips > MOST_ROWS
                          : !pestle_onnx_can_need(call, limit)
                    : !r->endless;
  if (!open || call->f.builder.block != call->import->entry) return false;
  for (size_t k = 0; k < r->outs; ++k)
    bytes += (int64_t)pestle_type_bytes(&r->types[r->states + k]);
  int64_t rows = USUAL_ROOM / bytes;
  if (rows < LEAST_ROWS) rows = LEAST_ROWS;
  if (rows > MOST_ROOM / bytes) rows = MOST_ROOM / bytes;
  r->trips = rows;
  r->guessed = true;
  return rows > 0;
}

// A body that cannot be imported for any trip may be for each: what it computes
// from the counter is known then. False when that is no way out.
static bool loop_over_known(pestle_onnx_repeat_t* r, pestle_value_t** values,
                            const pestle_value_t* limit,
                            const pestle_value_t* condition) {
  pestle_onnx_call_t* call = r->call;
  if (!call->f.status ||
      pestle_status_code(call->f.status) != PESTLE_STATUS_UNSUPPORTED) {
    return false;
  }
  r->endless = true;
  if (!known_trips(r, limit, condition)) {
    pestle_onnx_need(call, limit);
    pestle_onnx_need(call, condition);
    return false;
  }
  if (r->trips < 1 || r->trips > PESTLE_ONNX_MOST_COPIES) return false;
  pestle_status_release(call->f.status);
  call->f.status = NULL;
  pestle_onnx_repeat_write_out(r, values);
  return true;
}

void pestle_onnx_import_loop(pestle_onnx_call_t* call) {
  pestle_onnx_repeat_t r = {.call = call, .is_loop = true};
  for (size_t i = 2; i < call->input_count; ++i) {
    if (call->inputs[i]) continue;
    pestle_onnx_import_list_loop(call);
    return;
  }
  if (!read_loop(call, &r)) return;
  pestle_value_t* limit = scalar_input(call, 0, PESTLE_I64);
  pestle_value_t* condition = scalar_input(call, 1, PESTLE_I1);
  pestle_value_t** values = pestle_onnx_scratch(
      call, (r.states + r.outs + 1) * sizeof(pestle_value_t*));
  if (!values || call->f.status) return;
  for (size_t i = 0; i < r.states; ++i)
    values[i] = call->inputs[i + 2];
  if (!pestle_onnx_repeat_try(&r, values)) {
    if (!loop_over_known(&r, values, limit, condition)) return;
  } else if (known_trips(&r, limit, condition)) {
    pestle_onnx_repeat_known(&r, values);
  } else if (r.keeps_types && (!r.outs || limited_trips(&r, limit, condition) ||
                               extent_trips(&r, &limit, condition) ||
                               guessed_trips(&r, limit))) {
    pestle_onnx_repeat_while(&r, values, limit, condition);
  } else {
    pestle_onnx_need(call, limit);
    if (r.endless || !r.keeps_types) pestle_onnx_need(call, condition);
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "how many trips it makes is not known while importing, "
                     "and %s",
                     r.keeps_types
                         ? "its scan outputs have a row for each, up to "
                           "16777216"
                         : "its body changes the types of what it carries");
  }
  for (size_t i = 0; i < call->output_count; ++i)
    call->outputs[i] = values[i];
}

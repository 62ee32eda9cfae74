// SPDX-License-Identifier: Apache-2.0
// Repetitions whose number of trips is known: see repeat.h.
#include "base/mem.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/repeat.h"

// Nodes times trips that are written out rather than looped over.
#define SMALL_WORK 64

// Carried: the states, then the scan outputs with a row for each trip, then extents.
static void run_trip(pestle_onnx_call_t* call, void* self, pestle_value_t* i,
                     pestle_value_t** values) {
  const pestle_onnx_repeat_t* r = self;
  size_t count = pestle_onnx_repeat_width(r);
  pestle_value_t** trip =
      pestle_onnx_scratch(call, (count + 1) * sizeof(pestle_value_t*));
  pestle_value_t* goes_on;
  if (!trip) return;
  for (size_t k = 0; k < count; ++k)
    trip[k] = values[k];
  if (!pestle_onnx_repeat_trip(r, i, r->is_loop ? pestle_onnx_true(call) : NULL,
                               true, trip, &goes_on)) {
    return;
  }
  for (size_t k = 0; k < count; ++k) {
    bool is_row = k >= r->states && k < r->states + r->outs;
    values[k] =
        is_row ? pestle_onnx_store_row(call, values[k], trip[k],
                                       pestle_onnx_repeat_row(r, r->stores_back,
                                                              k - r->states, i))
               : trip[k];
  }
}

static void loop_trips(pestle_onnx_repeat_t* r, pestle_value_t** values) {
  pestle_onnx_call_t* call = r->call;
  size_t width = pestle_onnx_repeat_width(r);
  pestle_value_t** carried =
      pestle_onnx_scratch(call, (width + 1) * sizeof(pestle_value_t*));
  if (!carried) return;
  for (size_t k = 0; k < r->states; ++k)
    carried[k] = values[k];
  for (size_t k = 0; k < r->outs; ++k)
    carried[r->states + k] = pestle_onnx_repeat_empty(r, k);
  pestle_onnx_repeat_begin(r, carried);
  pestle_onnx_for(call, r->trips, carried, width, run_trip, r);
  if (r->trips > 0 && !call->f.status) pestle_onnx_repeat_end(r, carried);
  for (size_t k = 0; k < r->states + r->outs; ++k)
    values[k] = carried[k];
}

pestle_value_t* pestle_onnx_repeat_join(const pestle_onnx_repeat_t* r,
                                        pestle_value_t** rows, size_t k) {
  pestle_onnx_call_t* call = r->call;
  bool back = r->stores_back && r->stores_back[k];
  size_t count = (size_t)r->trips;
  pestle_value_t** parts =
      pestle_onnx_scratch(call, count * sizeof(pestle_value_t*));
  for (size_t i = 0; parts && i < count; ++i) {
    const pestle_value_t* row = rows[i * r->outs + k];
    int64_t dims[PESTLE_MAX_RANK + 1] = {1};
    for (int32_t axis = 0; axis < rank_of(row); ++axis)
      dims[axis + 1] = pestle_onnx_dim(row, axis);
    parts[back ? count - 1 - i : i] = pestle_f_reshape(
        &call->f, rows[i * r->outs + k], rank_of(row) + 1, dims);
  }
  pestle_value_t* y =
      parts ? pestle_f_concatenate(&call->f, parts, count, 0) : NULL;
  // All rows are of one shape.
  for (int32_t axis = 0; y && axis + 1 < rank_of(y); ++axis) {
    pestle_onnx_set_real(call, y, axis + 1,
                         pestle_onnx_real_size(call->import, rows[k], axis));
  }
  return y;
}

// Whether the trip after one that gave |goes_on| is made.
static bool trip_follows(pestle_onnx_call_t* call,
                         const pestle_value_t* goes_on) {
  const pestle_elements_t* known =
      goes_on ? pestle_value_constant(goes_on) : NULL;
  if (goes_on && !known) {
    pestle_onnx_need(call, goes_on);
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "its trips have to be written out, and whether it goes on "
                     "is not known while importing");
  }
  return known ? pestle_onnx_element_i64(known, 0) != 0 : !goes_on;
}

void pestle_onnx_repeat_write_out(pestle_onnx_repeat_t* r,
                                  pestle_value_t** values) {
  pestle_onnx_call_t* call = r->call;
  size_t count = (size_t)r->trips;
  pestle_value_t** rows = pestle_onnx_scratch(
      call, (count * r->outs + 1) * sizeof(pestle_value_t*));
  for (int64_t i = 0; rows && i < r->trips; ++i) {
    pestle_value_t* goes_on;
    if (!pestle_onnx_repeat_trip(r, pestle_onnx_size_number(call, i),
                                 r->is_loop ? pestle_onnx_true(call) : NULL,
                                 false, values, &goes_on)) {
      return;
    }
    for (size_t k = 0; k < r->outs; ++k)
      rows[(size_t)i * r->outs + k] = values[r->states + k];
    if (!trip_follows(call, goes_on)) r->trips = i + 1;
  }
  for (size_t k = 0; rows && k < r->outs; ++k)
    values[r->states + k] = pestle_onnx_repeat_join(r, rows, k);
}

void pestle_onnx_repeat_known(pestle_onnx_repeat_t* r,
                              pestle_value_t** values) {
  size_t nodes = r->graph->node_count + 1;
  bool small = r->trips == 1 || (r->trips > 0 && nodes <= SMALL_WORK &&
                                 r->trips <= SMALL_WORK / (int64_t)nodes);
  bool must = !r->keeps_types && r->trips > 0;
  if (must && r->trips > PESTLE_ONNX_MOST_COPIES) {
    pestle_onnx_fail(r->call, PESTLE_STATUS_UNSUPPORTED,
                     "its body changes the types of what it carries, over more "
                     "than %d trips",
                     PESTLE_ONNX_MOST_COPIES);
  } else if (small || must) {
    pestle_onnx_repeat_write_out(r, values);
  } else {
    loop_trips(r, values);
  }
}

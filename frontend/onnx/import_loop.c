// SPDX-License-Identifier: Apache-2.0
// Loop and Scan. A number of trips that is known gives pestle_onnx_for, with a
// row of each scan output stored a trip; few trips of a small body, or a body
// that changes the types of what it carries, are written out. Any other Loop is
// a while; its scan outputs have a row for each trip that there may be, of which
// those are real that were made.
//
// The body's types are not declared reliably, so that it is imported once into
// a region that is thrown away.
#include "base/mem.h"
#include "frontend/onnx/bounded.h"
#include "frontend/onnx/ops.h"

// Nodes times trips that are written out rather than looped over.
#define SMALL_WORK 64
// The most trips of a body that changes its types.
#define MOST_COPIES 256
// The most rows of a scan output that a run may cut short.
#define MOST_ROWS 16777216
// Bytes of the rows of a loop that only its condition ends, rows that there are at least,
// and the bytes that these may take.
#define USUAL_ROOM (INT64_C(4) << 20)
#define LEAST_ROWS 1024
#define MOST_ROOM (INT64_C(256) << 20)

typedef struct repeat_t {
  pestle_onnx_call_t* call;
  const pestle_onnx_graph_t* graph;
  bool is_loop;  // the body takes a counter and a condition, and gives one
  int64_t trips;
  bool guessed;               // |trips| is but what there is room for
  size_t states, rows, outs;  // carried, of scan inputs, scan outputs
  pestle_value_t** scans;     // the scan inputs, their axis in front
  const bool *reads_back, *stores_back;  // from the end; NULL: none does
  pestle_type_t* types;                  // of the states, then of the outs
  bool keeps_types, endless;             // what the trial has shown
} repeat_t;

static pestle_value_t* scalar_i64(pestle_onnx_call_t* call, int64_t value) {
  pestle_type_t type = {.dtype = PESTLE_I64};
  return pestle_onnx_splat_int(call, &type, value);
}

static pestle_value_t* scalar_true(pestle_onnx_call_t* call) {
  pestle_type_t type = {.dtype = PESTLE_I1};
  return pestle_onnx_splat_int(call, &type, 1);
}

// A counter or condition in the rank that the body declares.
static pestle_value_t* as_declared(const repeat_t* r, size_t input,
                                   pestle_value_t* value) {
  static const int64_t one[] = {1};
  const pestle_onnx_value_info_t* info = &r->graph->inputs[input];
  bool list = info->has_shape && info->rank == 1;
  return pestle_f_reshape(&r->call->f, value, list, one);
}

static pestle_value_t* row_number(const repeat_t* r, const bool* backwards,
                                  size_t which, pestle_value_t* i) {
  if (!backwards || !backwards[which]) return i;
  return sub(r->call, scalar_i64(r->call, r->trips - 1), i);
}

// Loops inside of loops multiply, each written out or tried.
static bool spend_nodes(const repeat_t* r) {
  size_t* left = &r->call->import->loop_nodes;
  size_t nodes = r->graph->node_count + 1;
  if (*left < nodes) {
    pestle_onnx_fail(r->call, PESTLE_STATUS_UNSUPPORTED,
                     "its body and those of other loops make too many nodes "
                     "when they are written out");
    return false;
  }
  *left -= nodes;
  return true;
}

// One trip where the call's builder stands: |states| in and out, and the scan
// outputs behind them. |*goes_on| is the body's condition, NULL for Scan.
static bool run_body(const repeat_t* r, pestle_value_t* i,
                     pestle_value_t* condition, pestle_value_t** states,
                     pestle_value_t** goes_on) {
  pestle_onnx_call_t* call = r->call;
  size_t lead = r->is_loop ? 2 : 0, first = r->is_loop ? 1 : 0;
  pestle_value_t** inputs = pestle_onnx_scratch(
      call, (lead + r->states + r->rows + 1) * sizeof(pestle_value_t*));
  pestle_value_t** values = pestle_onnx_scratch(
      call, (first + r->states + r->outs + 1) * sizeof(pestle_value_t*));
  if (!inputs || !values || call->f.status || !spend_nodes(r)) return false;
  if (r->is_loop) {
    inputs[0] = as_declared(r, 0, i);
    inputs[1] = as_declared(r, 1, condition);
  }
  for (size_t k = 0; k < r->states; ++k)
    inputs[lead + k] = states[k];
  for (size_t k = 0; k < r->rows; ++k) {
    inputs[lead + r->states + k] =
        pestle_onnx_row(call, r->scans[k], row_number(r, r->reads_back, k, i));
  }
  if (!pestle_onnx_import_subgraph(call, r->graph, &call->f.builder, inputs,
                                   lead + r->states + r->rows, values)) {
    return false;
  }
  for (size_t k = 0; k < r->states + r->outs; ++k) {
    states[k] = values[first + k];
    if (!pestle_onnx_leaves_whole(call, states[k], "an output of its body")) {
      return false;
    }
  }
  *goes_on = r->is_loop ? pestle_f_reshape(&call->f, values[0], 0, NULL) : NULL;
  return !call->f.status;
}

// --- The trial ---

static void note_trial(repeat_t* r, pestle_value_t* const* before,
                       pestle_value_t* const* after,
                       const pestle_value_t* condition,
                       const pestle_value_t* goes_on) {
  r->keeps_types = true;
  for (size_t k = 0; k < r->states + r->outs; ++k) {
    r->types[k] = *after[k]->type;
    if (k >= r->states) continue;
    r->keeps_types &= pestle_type_equal(after[k]->type, before[k]->type);
  }
  const pestle_elements_t* known =
      goes_on ? pestle_value_constant(goes_on) : NULL;
  r->endless = !goes_on || goes_on == condition ||
               (known && pestle_onnx_element_i64(known, 0) != 0);
}

// Imports the body into a region of its own, to see what it gives.
static bool try_body(repeat_t* r, pestle_value_t* const* states) {
  pestle_onnx_call_t* call = r->call;
  size_t count = r->states + r->outs;
  pestle_type_t* types =
      pestle_onnx_scratch(call, (r->states + 2) * sizeof(pestle_type_t));
  r->types = pestle_onnx_scratch(call, (count + 1) * sizeof(pestle_type_t));
  pestle_value_t** values =
      pestle_onnx_scratch(call, (count + 1) * sizeof(pestle_value_t*));
  if (!types || !values || !r->types) return false;
  types[0] = (pestle_type_t){.dtype = PESTLE_I64};
  types[1] = (pestle_type_t){.dtype = PESTLE_I1};
  for (size_t k = 0; k < r->states; ++k)
    types[k + 2] = *pestle_onnx_type(states[k]);
  pestle_builder_t outer = call->f.builder;
  pestle_region_t* region =
      pestle_onnx_enter_region(call, types, r->states + 2);
  if (!region) return false;
  for (size_t k = 0; k < r->states; ++k)
    values[k] = pestle_block_argument(call->f.builder.block, k + 2);
  pestle_value_t* condition = pestle_block_argument(call->f.builder.block, 1);
  pestle_value_t* goes_on;
  bool ok = run_body(r, pestle_block_argument(call->f.builder.block, 0),
                     condition, values, &goes_on);
  if (ok) note_trial(r, states, values, condition, goes_on);
  call->f.builder = outer;
  pestle_region_discard(region);
  return ok;
}

// --- Known trips ---

// Carried: the states, then the scan outputs with a row for each trip.
static void run_trip(pestle_onnx_call_t* call, void* self, pestle_value_t* i,
                     pestle_value_t** values) {
  const repeat_t* r = self;
  size_t count = r->states + r->outs;
  pestle_value_t** trip =
      pestle_onnx_scratch(call, (count + 1) * sizeof(pestle_value_t*));
  pestle_value_t* goes_on;
  if (!trip) return;
  for (size_t k = 0; k < r->states; ++k)
    trip[k] = values[k];
  if (!run_body(r, i, r->is_loop ? scalar_true(call) : NULL, trip, &goes_on)) {
    return;
  }
  for (size_t k = 0; k < r->states; ++k)
    values[k] = trip[k];
  for (size_t k = r->states; k < count; ++k) {
    values[k] =
        pestle_onnx_store_row(call, values[k], trip[k],
                              row_number(r, r->stores_back, k - r->states, i));
  }
}

// Scan output |k| before the first trip.
static pestle_value_t* empty_rows(const repeat_t* r, size_t k) {
  const pestle_type_t* row = &r->types[r->states + k];
  pestle_type_t type = {
      .dtype = row->dtype, .rank = row->rank + 1, .dims = {r->trips}};
  if (type.rank > PESTLE_MAX_RANK) {
    return pestle_onnx_fail(r->call, PESTLE_STATUS_UNSUPPORTED,
                            "its scan output %zu has more than %d axes", k,
                            PESTLE_MAX_RANK);
  }
  for (int32_t i = 0; i < row->rank; ++i)
    type.dims[i + 1] = row->dims[i];
  return pestle_onnx_splat(r->call, &type, 0);
}

static void loop_trips(repeat_t* r, pestle_value_t** values) {
  for (size_t k = 0; k < r->outs; ++k)
    values[r->states + k] = empty_rows(r, k);
  pestle_onnx_for(r->call, r->trips, values, r->states + r->outs, run_trip, r);
}

// The rows of scan output |k| of all trips as one.
static pestle_value_t* join_rows(const repeat_t* r, pestle_value_t** rows,
                                 size_t k) {
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
  return parts ? pestle_f_concatenate(&call->f, parts, count, 0) : NULL;
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

static void write_out(repeat_t* r, pestle_value_t** values) {
  pestle_onnx_call_t* call = r->call;
  size_t count = (size_t)r->trips;
  pestle_value_t** rows = pestle_onnx_scratch(
      call, (count * r->outs + 1) * sizeof(pestle_value_t*));
  for (int64_t i = 0; rows && i < r->trips; ++i) {
    pestle_value_t* goes_on;
    if (!run_body(r, scalar_i64(call, i), r->is_loop ? scalar_true(call) : NULL,
                  values, &goes_on)) {
      return;
    }
    for (size_t k = 0; k < r->outs; ++k)
      rows[(size_t)i * r->outs + k] = values[r->states + k];
    if (!trip_follows(call, goes_on)) r->trips = i + 1;
  }
  for (size_t k = 0; rows && k < r->outs; ++k)
    values[r->states + k] = join_rows(r, rows, k);
}

static void run_known(repeat_t* r, pestle_value_t** values) {
  size_t nodes = r->graph->node_count + 1;
  bool small = r->trips > 0 && nodes <= SMALL_WORK &&
               r->trips <= SMALL_WORK / (int64_t)nodes;
  bool must = !r->keeps_types && r->trips > 0;
  if (must && r->trips > MOST_COPIES) {
    pestle_onnx_fail(r->call, PESTLE_STATUS_UNSUPPORTED,
                     "its body changes the types of what it carries, over more "
                     "than %d trips",
                     MOST_COPIES);
  } else if (small || must) {
    write_out(r, values);
  } else {
    loop_trips(r, values);
  }
}

// --- Trips that only running tells ---

// Whether the trip that comes is made: |limit| may be NULL.
static pestle_region_t* while_condition(repeat_t* r, const pestle_type_t* types,
                                        size_t count, pestle_value_t* limit) {
  pestle_onnx_call_t* call = r->call;
  pestle_builder_t outer = call->f.builder;
  pestle_region_t* region = pestle_onnx_enter_region(call, types, count);
  if (!region) return NULL;
  pestle_value_t* goes_on = pestle_block_argument(call->f.builder.block, 1);
  if (limit) {
    pestle_value_t* left = pestle_f_lt(
        &call->f, pestle_block_argument(call->f.builder.block, 0), limit);
    goes_on = pestle_f_and(&call->f, goes_on, left);
  }
  if (!pestle_onnx_finish_region(call, &goes_on, 1)) region = NULL;
  call->f.builder = outer;
  return region;
}

// A trip: |next| holds counter, condition, states and scan outputs, and gets
// what they are behind it.
static bool while_trip(const repeat_t* r, pestle_value_t** next) {
  pestle_onnx_call_t* call = r->call;
  size_t count = r->states + r->outs;
  pestle_value_t *i = next[0], **rows = next + 2 + r->states;
  pestle_value_t** trip =
      pestle_onnx_scratch(call, (count + 1) * sizeof(pestle_value_t*));
  if (!trip) return false;
  for (size_t k = 0; k < r->states; ++k)
    trip[k] = next[k + 2];
  if (!run_body(r, i, next[1], trip, &next[1])) return false;
  for (size_t k = 0; k < r->states; ++k)
    next[k + 2] = trip[k];
  for (size_t k = 0; k < r->outs; ++k)
    rows[k] = pestle_onnx_store_row(call, rows[k], trip[r->states + k], i);
  next[0] = add(call, i, scalar_i64(call, 1));
  next[1] = pestle_onnx_convert(call, next[1], PESTLE_I1);
  return true;
}

static pestle_region_t* while_body(repeat_t* r, const pestle_type_t* types,
                                   size_t count) {
  pestle_onnx_call_t* call = r->call;
  pestle_builder_t outer = call->f.builder;
  pestle_value_t** next =
      pestle_onnx_scratch(call, count * sizeof(pestle_value_t*));
  pestle_region_t* region =
      next ? pestle_onnx_enter_region(call, types, count) : NULL;
  if (!region) return NULL;
  for (size_t k = 0; k < count; ++k)
    next[k] = pestle_block_argument(call->f.builder.block, k);
  if (!while_trip(r, next) || !pestle_onnx_finish_region(call, next, count)) {
    region = NULL;
  }
  call->f.builder = outer;
  return region;
}

// With scan outputs r->trips is how many rows they have room for.
static void run_while(repeat_t* r, pestle_value_t** values,
                      pestle_value_t* limit, pestle_value_t* condition) {
  pestle_onnx_call_t* call = r->call;
  size_t count = r->states + r->outs + 2;
  pestle_value_t** operands =
      pestle_onnx_scratch(call, count * sizeof(pestle_value_t*));
  pestle_type_t* types =
      pestle_onnx_scratch(call, count * sizeof(pestle_type_t));
  if (!operands || !types) return;
  operands[0] = scalar_i64(call, 0);
  operands[1] = condition ? condition : scalar_true(call);
  for (size_t k = 0; k < r->states; ++k)
    operands[k + 2] = values[k];
  for (size_t k = 0; k < r->outs; ++k)
    operands[k + 2 + r->states] = empty_rows(r, k);
  for (size_t k = 0; k < count; ++k)
    types[k] = *pestle_onnx_type(operands[k]);
  pestle_region_t* regions[2];
  regions[0] = call->f.status ? NULL : while_condition(r, types, count, limit);
  regions[1] = regions[0] ? while_body(r, types, count) : NULL;
  if (!regions[1]) return;
  pestle_node_spec_t spec = {.op = PESTLE_OP_WHILE,
                             .operands = operands,
                             .operand_count = count,
                             .regions = regions,
                             .region_count = 2};
  pestle_node_t* node = pestle_f_node(&call->f, &spec);
  for (size_t k = 0; node && k < r->states + r->outs; ++k)
    values[k] = pestle_node_result(node, k + 2);
  if (node && r->guessed) {
    pestle_value_t** overflow = &call->import->overflow;
    pestle_value_t* more =
        pestle_f_and(&call->f, pestle_node_result(node, 1),
                     pestle_f_ge(&call->f, pestle_node_result(node, 0), limit));
    *overflow = *overflow ? pestle_f_or(&call->f, *overflow, more) : more;
  }
  for (size_t k = 0; node && k < r->outs; ++k) {
    pestle_value_t** scan = &values[r->states + k];
    pestle_onnx_set_real(call, *scan, 0, pestle_node_result(node, 0));
    *scan = pestle_onnx_end_real(call, *scan);
  }
}

static const pestle_onnx_graph_t* body_of(pestle_onnx_call_t* call) {
  const pestle_onnx_attr_t* attr = pestle_onnx_node_attr(call->node, "body");
  if (attr && attr->graph) return attr->graph;
  pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                   "attribute 'body' is missing");
  return NULL;
}

// --- Loop ---

// Input |index| as a scalar of |dtype|, or NULL.
static pestle_value_t* scalar_input(pestle_onnx_call_t* call, size_t index,
                                    pestle_dtype_t dtype) {
  pestle_value_t* value = pestle_onnx_input(call, index);
  if (!value) return NULL;
  return pestle_onnx_convert(call, pestle_f_reshape(&call->f, value, 0, NULL),
                             dtype);
}

static bool read_loop(pestle_onnx_call_t* call, repeat_t* r) {
  r->graph = body_of(call);
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
static bool known_trips(repeat_t* r, const pestle_value_t* limit,
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

// Whether the body decides when it ends, and at most r->trips are made: then
// there is room for a row of each.
static bool bounded_trips(repeat_t* r, const pestle_value_t* limit) {
  return !r->endless && limit && pestle_value_constant(limit) &&
         r->trips <= MOST_ROWS;
}

// Whether only the condition ends it: then there is room for as many rows as fit into
// some memory, and a run that has more fails (importer.h).
static bool guessed_trips(repeat_t* r, const pestle_value_t* limit) {
  pestle_onnx_call_t* call = r->call;
  int64_t bytes = 1;
  bool open = !limit || (pestle_value_constant(limit) && r->trips > MOST_ROWS);
  if (r->endless || !open || call->f.builder.block != call->import->entry)
    return false;
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
static bool loop_over_known(repeat_t* r, pestle_value_t** values,
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
  if (r->trips < 1 || r->trips > MOST_COPIES) return false;
  pestle_status_release(call->f.status);
  call->f.status = NULL;
  write_out(r, values);
  return true;
}

void pestle_onnx_import_loop(pestle_onnx_call_t* call) {
  repeat_t r = {.call = call, .is_loop = true};
  if (!read_loop(call, &r)) return;
  pestle_value_t* limit = scalar_input(call, 0, PESTLE_I64);
  pestle_value_t* condition = scalar_input(call, 1, PESTLE_I1);
  pestle_value_t** values = pestle_onnx_scratch(
      call, (r.states + r.outs + 1) * sizeof(pestle_value_t*));
  if (!values || call->f.status) return;
  for (size_t i = 0; i < r.states; ++i)
    values[i] = call->inputs[i + 2];
  if (!try_body(&r, values)) {
    if (!loop_over_known(&r, values, limit, condition)) return;
  } else if (known_trips(&r, limit, condition)) {
    run_known(&r, values);
  } else if (r.keeps_types && r.outs && !bounded_trips(&r, limit) &&
             guessed_trips(&r, limit)) {
    run_while(&r, values, scalar_i64(call, r.trips), condition);
  } else if ((r.outs && !bounded_trips(&r, limit)) || !r.keeps_types) {
    pestle_onnx_need(call, limit);
    if (r.endless || !r.keeps_types) pestle_onnx_need(call, condition);
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "how many trips it makes is not known while importing, "
                     "and %s",
                     r.outs ? "its scan outputs have a row for each, up to "
                              "16777216"
                            : "its body changes the types of what it carries");
  } else {
    run_while(&r, values, limit, condition);
  }
  for (size_t i = 0; i < call->output_count; ++i)
    call->outputs[i] = values[i];
}

// --- Scan ---

typedef struct scan_t {
  repeat_t r;
  size_t first;  // input: the first state
  bool batched;  // opset 8: an axis of batches in front of all
  int64_t *in_axes, *out_axes;
  bool *in_back, *out_back;
} scan_t;

// The numbers of attribute |name|, |count| of them; 0 when it is missing.
static int64_t* read_numbers(pestle_onnx_call_t* call, const char* name,
                             size_t count) {
  pestle_i64s_t list = pestle_onnx_ints(call, name);
  int64_t* out = pestle_onnx_scratch(call, (count + 1) * sizeof(int64_t));
  if (list.count && list.count != count) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "attribute '%s' has %zu numbers, it should have %zu", name,
                     list.count, count);
    return NULL;
  }
  for (size_t i = 0; out && i < list.count; ++i)
    out[i] = list.data[i];
  return out;
}

static bool* read_flags(pestle_onnx_call_t* call, const char* name,
                        size_t count) {
  int64_t* numbers = read_numbers(call, name, count);
  bool* out = pestle_onnx_scratch(call, count + 1);
  for (size_t i = 0; out && numbers && i < count; ++i)
    out[i] = numbers[i] != 0;
  return out;
}

static bool read_scan(pestle_onnx_call_t* call, scan_t* s) {
  repeat_t* r = &s->r;
  r->graph = body_of(call);
  int64_t rows = pestle_onnx_int(call, "num_scan_inputs", 0);
  if (!r->graph || call->f.status) return false;
  s->batched = call->opset < 9;
  s->first = s->batched ? 1 : 0;
  size_t given = call->input_count;
  bool fits = rows > 0 && given > s->first &&
              (uint64_t)rows <= given - s->first &&
              r->graph->input_count >= given - s->first;
  if (fits) {
    r->rows = (size_t)rows;
    r->states = given - s->first - r->rows;
    fits = r->graph->output_count >= r->states &&
           call->output_count <= r->graph->output_count;
  }
  for (size_t i = s->first; fits && i < given; ++i)
    fits = call->inputs[i] != NULL;
  if (!fits) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its %zu inputs, num_scan_inputs of %lld and its body of "
                     "%zu inputs do not fit each other",
                     given, (long long)rows, r->graph->input_count);
    return false;
  }
  r->outs = r->graph->output_count - r->states;
  if (s->batched && pestle_onnx_input(call, 0)) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "lengths of sequences are not supported");
  }
  s->in_axes = read_numbers(call, "scan_input_axes", r->rows);
  s->out_axes = read_numbers(call, "scan_output_axes", r->outs);
  s->in_back = read_flags(
      call, s->batched ? "directions" : "scan_input_directions", r->rows);
  s->out_back = read_flags(call, "scan_output_directions", r->outs);
  return !call->f.status;
}

// |x| with |axis| moved to the front, or the front to |axis|.
static pestle_value_t* move_axis(pestle_onnx_call_t* call, pestle_value_t* x,
                                 int64_t axis, bool to_front) {
  int64_t order[PESTLE_MAX_RANK], rank = rank_of(x);
  axis = pestle_onnx_axis(call, axis, rank);
  if (call->f.status) return NULL;
  for (int64_t i = 0; i < rank; ++i) {
    if (to_front) {
      order[i] = i == 0 ? axis : i <= axis ? i - 1 : i;
    } else {
      order[i] = i < axis ? i + 1 : i == axis ? 0 : i;
    }
  }
  return pestle_f_transpose(&call->f, x, order);
}

// One scan: |values| holds the states, and then all outputs.
static void scan_once(scan_t* s, pestle_value_t** values,
                      pestle_value_t** scans) {
  repeat_t* r = &s->r;
  pestle_onnx_call_t* call = r->call;
  r->scans = scans;
  r->reads_back = s->in_back;
  r->stores_back = s->out_back;
  for (size_t i = 0; i < r->rows; ++i) {
    scans[i] = move_axis(call, scans[i], s->in_axes[i], true);
    int64_t extent = pestle_onnx_dim(scans[i], 0);
    if (i == 0) r->trips = extent;
    if (call->f.status || extent == r->trips) continue;
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its scan inputs differ in length: %lld and %lld",
                     (long long)r->trips, (long long)extent);
  }
  if (call->f.status || !try_body(r, values)) return;
  run_known(r, values);
  for (size_t i = 0; i < r->outs; ++i) {
    values[r->states + i] =
        move_axis(call, values[r->states + i], s->out_axes[i], false);
  }
}

// Opset 8: each element of the batch on its own, the results joined again.
static void scan_batches(scan_t* s, pestle_value_t** values,
                         pestle_value_t** scans) {
  repeat_t* r = &s->r;
  pestle_onnx_call_t* call = r->call;
  int64_t batch = pestle_onnx_dim(call->inputs[s->first], 0);
  size_t count = r->states + r->outs;
  if (batch < 1 || batch > MOST_COPIES) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "a batch of %lld; 1 to %d are supported", (long long)batch,
                     MOST_COPIES);
    return;
  }
  repeat_t join = {.call = call, .trips = batch, .outs = count};
  pestle_value_t** rows = pestle_onnx_scratch(
      call, ((size_t)batch * count + 1) * sizeof(pestle_value_t*));
  for (int64_t b = 0; rows && b < batch && !call->f.status; ++b) {
    pestle_value_t* i = scalar_i64(call, b);
    for (size_t k = 0; k < r->states; ++k)
      values[k] = pestle_onnx_row(call, call->inputs[s->first + k], i);
    for (size_t k = 0; k < r->rows; ++k) {
      scans[k] =
          pestle_onnx_row(call, call->inputs[s->first + r->states + k], i);
    }
    if (!call->f.status) scan_once(s, values, scans);
    for (size_t k = 0; k < count; ++k)
      rows[(size_t)b * count + k] = values[k];
  }
  for (size_t k = 0; rows && k < count && !call->f.status; ++k)
    values[k] = join_rows(&join, rows, k);
}

void pestle_onnx_import_scan(pestle_onnx_call_t* call) {
  scan_t s = {.r = {.call = call}};
  if (!read_scan(call, &s)) return;
  size_t count = s.r.states + s.r.outs;
  pestle_value_t** values =
      pestle_onnx_scratch(call, (count + 1) * sizeof(pestle_value_t*));
  pestle_value_t** scans =
      pestle_onnx_scratch(call, (s.r.rows + 1) * sizeof(pestle_value_t*));
  if (!values || !scans) return;
  if (s.batched) {
    scan_batches(&s, values, scans);
  } else {
    for (size_t i = 0; i < s.r.states; ++i)
      values[i] = call->inputs[i];
    for (size_t i = 0; i < s.r.rows; ++i)
      scans[i] = call->inputs[s.r.states + i];
    scan_once(&s, values, scans);
  }
  for (size_t i = 0; i < call->output_count; ++i)
    call->outputs[i] = values[i];
}

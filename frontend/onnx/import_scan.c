// SPDX-License-Identifier: Apache-2.0
// Scan: a trip for each row of its scan inputs (repeat.h).
#include "base/mem.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/repeat.h"

typedef struct scan_t {
  pestle_onnx_repeat_t r;
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
  pestle_onnx_repeat_t* r = &s->r;
  r->graph = pestle_onnx_body_of(call);
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
  return pestle_onnx_transpose_real(call, x, order);
}

// How many trips there are: all scan inputs are so long.
static bool read_trips(pestle_onnx_repeat_t* r) {
  pestle_onnx_call_t* call = r->call;
  int64_t* axes = pestle_onnx_scratch(call, (r->rows + 1) * sizeof(int64_t));
  if (!axes || call->f.status ||
      !pestle_onnx_fit(call, r->scans, axes, r->rows, &r->limit)) {
    return false;
  }
  r->trips = pestle_onnx_dim(r->scans[0], 0);
  for (size_t i = 1; i < r->rows; ++i) {
    int64_t extent = pestle_onnx_dim(r->scans[i], 0);
    if (extent == r->trips) continue;
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its scan inputs differ in length: %lld and %lld",
                     (long long)r->trips, (long long)extent);
    return false;
  }
  return true;
}

// One scan: |values| holds the states, and then all outputs.
static void scan_once(scan_t* s, pestle_value_t** values,
                      pestle_value_t** scans) {
  pestle_onnx_repeat_t* r = &s->r;
  pestle_onnx_call_t* call = r->call;
  r->scans = scans;
  r->reads_back = s->in_back;
  r->stores_back = s->out_back;
  for (size_t i = 0; i < r->rows; ++i) {
    scans[i] = move_axis(call, scans[i], s->in_axes[i], true);
  }
  if (!read_trips(r) || !pestle_onnx_repeat_try(r, values)) return;
  if (!r->limit) {
    pestle_onnx_repeat_known(r, values);
  } else if (r->keeps_types) {
    pestle_onnx_repeat_while(r, values, r->limit, NULL);
  } else {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "how many trips it makes only a run tells, and its body "
                     "changes the types of what it carries");
  }
  for (size_t i = 0; i < r->outs; ++i) {
    values[r->states + i] =
        move_axis(call, values[r->states + i], s->out_axes[i], false);
  }
}

// Opset 8: each element of the batch on its own, the results joined again.
static void scan_batches(scan_t* s, pestle_value_t** values,
                         pestle_value_t** scans) {
  pestle_onnx_repeat_t* r = &s->r;
  pestle_onnx_call_t* call = r->call;
  int64_t batch = pestle_onnx_dim(call->inputs[s->first], 0);
  size_t count = r->states + r->outs;
  for (size_t i = s->first; i < call->input_count; ++i) {
    if (!pestle_onnx_real(call->import, call->inputs[i])) continue;
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "it has batches, and how long its input %zu is only a run "
                     "tells",
                     i);
    return;
  }
  if (batch < 1 || batch > PESTLE_ONNX_MOST_COPIES) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "a batch of %lld; 1 to %d are supported", (long long)batch,
                     PESTLE_ONNX_MOST_COPIES);
    return;
  }
  pestle_onnx_repeat_t join = {.call = call, .trips = batch, .outs = count};
  pestle_value_t** rows = pestle_onnx_scratch(
      call, ((size_t)batch * count + 1) * sizeof(pestle_value_t*));
  for (int64_t b = 0; rows && b < batch && !call->f.status; ++b) {
    pestle_value_t* i = pestle_onnx_size_number(call, b);
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
    values[k] = pestle_onnx_repeat_join(&join, rows, k);
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

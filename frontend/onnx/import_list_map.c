// SPDX-License-Identifier: Apache-2.0
// Bodies over sequences: Loop whose state is one, and SequenceMap. What they do is written
// out, a trip after the other, since a sequence is a list that is known while importing.
// And optionals, which are a tensor, a sequence or nothing.
#include "base/mem.h"
#include "frontend/onnx/lists.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/repeat.h"

// --- Trips ---

typedef struct trips_t {
  pestle_onnx_call_t* call;
  const pestle_onnx_graph_t* graph;
  size_t lead, states, outs;  // a counter and a condition, or none
  // Behind each other: what a trip is given, and what it gives.
  pestle_value_t **in, **out;
  const pestle_onnx_sequence_t **in_lists, **out_lists;
  pestle_value_t** rows;  // of the outs, trip after trip
} trips_t;

static bool make_room(trips_t* t, size_t in, size_t out, size_t trips) {
  pestle_onnx_call_t* call = t->call;
  t->in = pestle_onnx_scratch(call, (in + 1) * sizeof(*t->in));
  t->in_lists = pestle_onnx_scratch(call, (in + 1) * sizeof(*t->in_lists));
  t->out = pestle_onnx_scratch(call, (out + 1) * sizeof(*t->out));
  t->out_lists = pestle_onnx_scratch(call, (out + 1) * sizeof(*t->out_lists));
  t->rows =
      pestle_onnx_scratch(call, (trips * (out + 1) + 1) * sizeof(*t->rows));
  return !call->f.status;
}

// Trip |i|: its inputs are |count| of |t|.
static bool run_trip(trips_t* t, int64_t i, size_t count) {
  pestle_onnx_call_t* call = t->call;
  pestle_value_t* around = call->import->trip;
  size_t* left = &call->import->loop_nodes;
  if (*left < t->graph->node_count + 1) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "its body and those of other loops make too many nodes "
                     "when they are written out");
    return false;
  }
  *left -= t->graph->node_count + 1;
  for (size_t k = 0; k < t->graph->output_count; ++k) {
    t->out[k] = NULL;
    t->out_lists[k] = NULL;
  }
  call->import->trip =
      pestle_onnx_count_trip(call, around, pestle_onnx_size_number(call, i));
  bool made = pestle_onnx_import_body(
      call, t->graph, &call->f.builder,
      &(pestle_onnx_body_t){t->in, t->in_lists, count, t->out, t->out_lists});
  call->import->trip = around;
  return made;
}

// --- Loop ---

// The one number that |value| holds; false, with the need of it noted, where that is not
// known.
static bool number_of(pestle_onnx_call_t* call, const pestle_value_t* value,
                      const char* what, int64_t* out) {
  const pestle_elements_t* known = value ? pestle_value_constant(value) : NULL;
  if (known && pestle_type_count(&known->type) == 1) {
    *out = pestle_onnx_element_i64(known, 0);
    return true;
  }
  if (value) pestle_onnx_need(call, value);
  pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                   "it carries a sequence, so that its trips are written out, "
                   "and %s is not known while importing",
                   what);
  return false;
}

static bool read_loop(trips_t* t) {
  pestle_onnx_call_t* call = t->call;
  t->graph = pestle_onnx_body_of(call);
  if (!t->graph) return false;
  t->lead = 2;
  t->states = call->input_count > 2 ? call->input_count - 2 : 0;
  bool fits = t->graph->input_count >= t->states + 2 &&
              t->graph->output_count >= t->states + 1;
  if (fits) t->outs = t->graph->output_count - 1 - t->states;
  if (fits && call->output_count <= t->states + t->outs) return true;
  pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                   "it has %zu inputs and %zu outputs, its body %zu and %zu",
                   call->input_count, call->output_count, t->graph->input_count,
                   t->graph->output_count);
  return false;
}

// What trip |i| leaves: the states of the next, and rows. False when none follows.
static bool keep_trip(trips_t* t, int64_t i, bool* goes_on) {
  pestle_onnx_call_t* call = t->call;
  int64_t condition = 1;
  for (size_t k = 0; k < t->states; ++k) {
    t->in[2 + k] = t->out[1 + k];
    t->in_lists[2 + k] = t->out_lists[1 + k];
  }
  for (size_t k = 0; k < t->outs; ++k) {
    t->rows[(size_t)i * t->outs + k] = t->out[1 + t->states + k];
    if (t->out[1 + t->states + k]) continue;
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its scan output %zu is no tensor", k);
    return false;
  }
  if (!number_of(call, t->out[0], "whether it goes on", &condition))
    return false;
  *goes_on = condition != 0;
  return true;
}

void pestle_onnx_import_list_loop(pestle_onnx_call_t* call) {
  trips_t t = {.call = call};
  int64_t trips = PESTLE_ONNX_MOST_COPIES, starts = 1, i = 0;
  bool limited = pestle_onnx_input(call, 0) != NULL;
  if (!read_loop(&t) ||
      (limited &&
       !number_of(call, call->inputs[0], "how many there are", &trips)) ||
      (pestle_onnx_input(call, 1) &&
       !number_of(call, call->inputs[1], "its condition", &starts))) {
    return;
  }
  if (trips < 0 || !starts) trips = 0;
  if (trips > PESTLE_ONNX_MOST_COPIES) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "it carries a sequence over %lld trips; at most %d are "
                     "written out",
                     (long long)trips, PESTLE_ONNX_MOST_COPIES);
    return;
  }
  if (!make_room(&t, t.graph->input_count, t.graph->output_count,
                 (size_t)trips)) {
    return;
  }
  for (size_t k = 0; k < t.states; ++k) {
    t.in[2 + k] = call->inputs[2 + k];
    t.in_lists[2 + k] = call->sequences[2 + k] || call->inputs[2 + k]
                            ? call->sequences[2 + k]
                            : &pestle_onnx_nothing;
  }
  bool goes_on = trips > 0;
  for (; goes_on && i < trips; ++i) {
    t.in[0] = pestle_onnx_size_number(call, i);
    t.in[1] = pestle_onnx_true(call);
    if (!run_trip(&t, i, t.lead + t.states) || !keep_trip(&t, i, &goes_on))
      return;
  }
  if (goes_on && !limited) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "it carries a sequence over more than %d trips",
                     PESTLE_ONNX_MOST_COPIES);
    return;
  }
  pestle_onnx_repeat_t r = {.call = call, .trips = i, .outs = t.outs};
  for (size_t k = 0; k < call->output_count; ++k) {
    bool is_state = k < t.states;
    if (is_state) {
      call->outputs[k] = t.in[2 + k];
      call->made[k] = t.in_lists[2 + k];
    } else if (i) {
      call->outputs[k] = pestle_onnx_repeat_join(&r, t.rows, k - t.states);
    }
  }
}

// --- SequenceMap ---

// The first input is a sequence, and so may the others be, as long as it.
void pestle_onnx_import_sequence_map(pestle_onnx_call_t* call) {
  trips_t t = {.call = call};
  t.graph = pestle_onnx_body_of(call);
  if (!t.graph) return;
  const pestle_onnx_sequence_t* first = call->sequences[0];
  size_t count = call->input_count, outs = t.graph->output_count;
  bool fits = first && !first->is_nothing && count <= t.graph->input_count &&
              call->output_count == outs;
  for (size_t k = 0; fits && k < count; ++k) {
    const pestle_onnx_sequence_t* s = call->sequences[k];
    fits = s ? !s->is_nothing && s->count == first->count
             : call->inputs[k] != NULL;
  }
  if (!fits) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its input 0 must be a sequence, its others tensors or "
                     "sequences as long, and its body must take %zu and give "
                     "%zu",
                     count, call->output_count);
    return;
  }
  if (!make_room(&t, count, outs, first->count)) return;
  for (size_t i = 0; i < first->count; ++i) {
    for (size_t k = 0; k < count; ++k) {
      const pestle_onnx_sequence_t* s = call->sequences[k];
      t.in[k] = s ? s->values[i] : call->inputs[k];
    }
    if (!run_trip(&t, (int64_t)i, count)) return;
    for (size_t k = 0; k < outs; ++k)
      t.rows[i * outs + k] = t.out[k];
  }
  for (size_t k = 0; k < outs; ++k) {
    pestle_onnx_sequence_t* s = pestle_onnx_make_list(call, first->count);
    for (size_t i = 0; s && i < first->count; ++i) {
      s->values[i] = t.rows[i * outs + k];
      if (s->values[i]) continue;
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                       "output %zu of its body is no tensor", k);
      return;
    }
    call->made[k] = s;
  }
}

// --- Optionals ---

const pestle_onnx_sequence_t pestle_onnx_nothing = {.is_nothing = true};

// An optional that has an element is that element.
void pestle_onnx_import_optional(pestle_onnx_call_t* call) {
  bool given = pestle_onnx_input(call, 0) != NULL;
  const pestle_onnx_sequence_t* list =
      call->input_count ? call->sequences[0] : NULL;
  if (given) {
    call->outputs[0] = call->inputs[0];
  } else {
    call->made[0] = list ? list : &pestle_onnx_nothing;
  }
}

void pestle_onnx_import_get_element(pestle_onnx_call_t* call) {
  const pestle_onnx_sequence_t* list = call->sequences[0];
  if (list && list->is_nothing) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its input is an optional without an element");
    return;
  }
  call->outputs[0] = call->inputs[0];
  call->made[0] = list;
}

// An optional is a tensor or sequence that is there, or an input that is left out: those
// that only a run tells are no tensors.
void pestle_onnx_import_has_element(pestle_onnx_call_t* call) {
  pestle_type_t type = {.dtype = PESTLE_I1};
  const pestle_onnx_sequence_t* list =
      call->input_count ? call->sequences[0] : NULL;
  bool has = pestle_onnx_input(call, 0) || (list && !list->is_nothing);
  call->outputs[0] = pestle_onnx_splat_int(call, &type, has);
}

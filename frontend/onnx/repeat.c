// SPDX-License-Identifier: Apache-2.0
// One trip of a loop's body, and the trial that tells what it carries: see repeat.h.
#include "frontend/onnx/repeat.h"

#include "base/mem.h"
#include "frontend/onnx/ops.h"

const pestle_onnx_graph_t* pestle_onnx_body_of(pestle_onnx_call_t* call) {
  const pestle_onnx_attr_t* attr = pestle_onnx_node_attr(call->node, "body");
  if (attr && attr->graph) return attr->graph;
  pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                   "attribute 'body' is missing");
  return NULL;
}

// --- A trip ---

// A counter or condition in the rank that the body declares.
static pestle_value_t* as_declared(const pestle_onnx_repeat_t* r, size_t input,
                                   pestle_value_t* value) {
  static const int64_t one[] = {1};
  const pestle_onnx_value_info_t* info = &r->graph->inputs[input];
  bool list = info->has_shape && info->rank == 1;
  return pestle_f_reshape(&r->call->f, value, list, one);
}

pestle_value_t* pestle_onnx_repeat_row(const pestle_onnx_repeat_t* r,
                                       const bool* backwards, size_t which,
                                       pestle_value_t* i) {
  if (!backwards || !backwards[which]) return i;
  pestle_value_t* last =
      r->limit ? add(r->call, r->limit, pestle_onnx_size_number(r->call, -1))
               : pestle_onnx_size_number(r->call, r->trips - 1);
  return sub(r->call, last, i);
}

// Row |which| of the scan inputs, whose other extents are the input's.
static pestle_value_t* scan_row(const pestle_onnx_repeat_t* r, size_t which,
                                pestle_value_t* i) {
  pestle_onnx_call_t* call = r->call;
  pestle_value_t* x = r->scans[which];
  pestle_value_t* row = pestle_onnx_row(
      call, x, pestle_onnx_repeat_row(r, r->reads_back, which, i));
  for (int32_t axis = 0; row && axis < rank_of(row); ++axis) {
    pestle_onnx_set_real(call, row, axis,
                         pestle_onnx_real_size(call->import, x, axis + 1));
  }
  return row;
}

// Loops inside of loops multiply, each written out or tried.
static bool spend_nodes(const pestle_onnx_repeat_t* r) {
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

pestle_value_t* pestle_onnx_count_trip(pestle_onnx_call_t* call,
                                       pestle_value_t* around,
                                       pestle_value_t* i) {
  if (!i) return around;
  i = pestle_onnx_convert(call, i, PESTLE_I64);
  return around ? add(call, times(call, around, 1 << 20), i) : i;
}

// Numbers and strings are told apart by value, which a loop carries under others.
static bool has_no_texts(pestle_onnx_call_t* call,
                         pestle_value_t* const* outputs, size_t count) {
  for (size_t k = 0; k < count; ++k) {
    if (!pestle_onnx_is_text(call->import, outputs[k])) continue;
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "output %zu of its body is of strings, which no loop "
                     "carries",
                     k);
    return false;
  }
  return true;
}

static bool import_trip(const pestle_onnx_repeat_t* r, pestle_value_t* i,
                        pestle_value_t* condition, pestle_value_t** values,
                        pestle_value_t** goes_on) {
  pestle_onnx_call_t* call = r->call;
  size_t lead = r->is_loop ? 2 : 0, first = r->is_loop ? 1 : 0;
  pestle_value_t** inputs = pestle_onnx_scratch(
      call, (lead + r->states + r->rows + 1) * sizeof(pestle_value_t*));
  pestle_value_t** outputs = pestle_onnx_scratch(
      call, (first + r->states + r->outs + 1) * sizeof(pestle_value_t*));
  if (!inputs || !outputs || call->f.status || !spend_nodes(r)) return false;
  if (r->is_loop) {
    inputs[0] = as_declared(r, 0, i);
    inputs[1] = as_declared(r, 1, condition);
  }
  for (size_t k = 0; k < r->states; ++k)
    inputs[lead + k] = values[k];
  for (size_t k = 0; k < r->rows; ++k)
    inputs[lead + r->states + k] = scan_row(r, k, i);
  pestle_value_t* around = call->import->trip;
  call->import->trip = pestle_onnx_count_trip(call, around, i);
  bool made =
      pestle_onnx_import_subgraph(call, r->graph, &call->f.builder, inputs,
                                  lead + r->states + r->rows, outputs);
  call->import->trip = around;
  if (!made || !has_no_texts(call, outputs, first + r->states + r->outs))
    return false;
  for (size_t k = 0; k < r->states + r->outs; ++k)
    values[k] = outputs[first + k];
  *goes_on =
      r->is_loop ? pestle_f_reshape(&call->f, outputs[0], 0, NULL) : NULL;
  return !call->f.status;
}

// --- Extents that only a run tells ---

static size_t slot_of(size_t k, int32_t axis) {
  return k * PESTLE_MAX_RANK + (size_t)axis;
}

static pestle_value_t** carried_at(const pestle_onnx_repeat_t* r,
                                   pestle_value_t** values, size_t slot) {
  return values + r->states + r->outs + r->places[slot] - 1;
}

// What is real of the states that a trip is given.
static void enter(const pestle_onnx_repeat_t* r, pestle_value_t** values) {
  for (size_t k = 0; k < r->states; ++k) {
    for (int32_t axis = 0; axis < rank_of(values[k]); ++axis) {
      size_t slot = slot_of(k, axis);
      pestle_onnx_set_real(
          r->call, values[k], axis,
          r->places[slot] ? *carried_at(r, values, slot) : r->sizes[slot]);
    }
  }
}

// The extents that the next trip is given, and states as long as those before.
static void leave(const pestle_onnx_repeat_t* r, pestle_value_t** values) {
  pestle_onnx_call_t* call = r->call;
  for (size_t k = 0; k < r->states + r->outs; ++k) {
    for (int32_t axis = 0; axis < rank_of(values[k]); ++axis) {
      size_t slot = slot_of(k, axis);
      if (!r->places[slot]) continue;
      *carried_at(r, values, slot) = pestle_onnx_size(call, values[k], axis);
    }
    if (k < r->states)
      values[k] = pestle_onnx_widen(call, values[k], r->types[k].dims);
  }
}

bool pestle_onnx_repeat_trip(const pestle_onnx_repeat_t* r, pestle_value_t* i,
                             pestle_value_t* condition, bool carries,
                             pestle_value_t** values,
                             pestle_value_t** goes_on) {
  if (carries) enter(r, values);
  if (!import_trip(r, i, condition, values, goes_on)) return false;
  if (carries) leave(r, values);
  return !r->call->f.status;
}

void pestle_onnx_repeat_begin(const pestle_onnx_repeat_t* r,
                              pestle_value_t** values) {
  for (size_t k = 0; k < r->states + r->outs; ++k) {
    for (int32_t axis = 0; axis < r->types[k].rank; ++axis) {
      size_t slot = slot_of(k, axis);
      if (!r->places[slot]) continue;
      // Without a trip nobody has seen a row.
      *carried_at(r, values, slot) =
          k < r->states ? pestle_onnx_size(r->call, values[k], axis)
                        : pestle_onnx_size_number(r->call, 0);
    }
  }
}

void pestle_onnx_repeat_end(const pestle_onnx_repeat_t* r,
                            pestle_value_t** values) {
  for (size_t k = 0; k < r->states + r->outs; ++k) {
    int32_t shift = k < r->states ? 0 : 1;
    for (int32_t axis = 0; axis < r->types[k].rank; ++axis) {
      size_t slot = slot_of(k, axis);
      pestle_onnx_set_real(
          r->call, values[k], axis + shift,
          r->places[slot] ? *carried_at(r, values, slot) : r->sizes[slot]);
    }
    values[k] = pestle_onnx_end_real(r->call, values[k]);
  }
}

pestle_value_t* pestle_onnx_repeat_empty(const pestle_onnx_repeat_t* r,
                                         size_t k) {
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

// --- The trial ---

static bool is_inside(const pestle_region_t* region,
                      const pestle_value_t* value) {
  const pestle_block_t* block = value->node ? value->node->block : value->block;
  while (block && block->region != region)
    block = block->region->owner ? block->region->owner->block : NULL;
  return block != NULL;
}

static void carry(pestle_onnx_repeat_t* r, size_t slot, bool* again) {
  r->sizes[slot] = NULL;
  r->places[slot] = ++r->carried;
  *again = true;
}

// State |k| that was |before| and is |after|: whether types can stay as they are.
static bool note_state(pestle_onnx_repeat_t* r, size_t k,
                       const pestle_type_t* before, pestle_value_t* after,
                       bool* again) {
  if (before->dtype != dtype_of(after) || before->rank != rank_of(after))
    return false;
  for (int32_t axis = 0; axis < before->rank; ++axis) {
    size_t slot = slot_of(k, axis);
    int64_t dim = pestle_onnx_dim(after, axis);
    pestle_value_t* size = pestle_onnx_real_size(r->call->import, after, axis);
    if (dim > before->dims[axis]) return false;
    bool same = dim == before->dims[axis] &&
                (size == r->sizes[slot] ||
                 (size && r->sizes[slot] &&
                  pestle_onnx_same_size(size, r->sizes[slot])));
    if (!same && !r->places[slot]) carry(r, slot, again);
  }
  return true;
}

static void note_row(pestle_onnx_repeat_t* r, size_t k,
                     const pestle_region_t* region, pestle_value_t* row,
                     bool* again) {
  for (int32_t axis = 0; axis < rank_of(row); ++axis) {
    size_t slot = slot_of(k, axis);
    pestle_value_t* size = pestle_onnx_real_size(r->call->import, row, axis);
    if (r->places[slot]) continue;
    if (!size || !is_inside(region, size)) {
      r->sizes[slot] = size;
    } else {
      carry(r, slot, again);
    }
  }
}

static void note_condition(pestle_onnx_repeat_t* r,
                           const pestle_value_t* condition,
                           const pestle_value_t* goes_on) {
  const pestle_elements_t* known =
      goes_on ? pestle_value_constant(goes_on) : NULL;
  r->endless = !goes_on || goes_on == condition ||
               (known && pestle_onnx_element_i64(known, 0) != 0);
}

// Types of a trial's arguments: counter, condition, states, carried extents.
static const pestle_type_t* argument_types(const pestle_onnx_repeat_t* r,
                                           pestle_value_t* const* states) {
  pestle_type_t* types = pestle_onnx_scratch(
      r->call, (r->states + r->carried + 2) * sizeof(pestle_type_t));
  if (!types) return NULL;
  types[0] = (pestle_type_t){.dtype = PESTLE_I64};
  types[1] = (pestle_type_t){.dtype = PESTLE_I1};
  for (size_t k = 0; k < r->states; ++k)
    types[k + 2] = *pestle_onnx_type(states[k]);
  for (size_t k = 0; k < r->carried; ++k)
    types[k + 2 + r->states] = types[0];
  return types;
}

// Imports the body into a region of its own. |*again|: it carries more than was known.
static bool try_once(pestle_onnx_repeat_t* r, pestle_value_t* const* states,
                     bool* again) {
  pestle_onnx_call_t* call = r->call;
  size_t count = r->states + r->outs;
  const pestle_type_t* types = argument_types(r, states);
  pestle_value_t** values = pestle_onnx_scratch(
      call, (pestle_onnx_repeat_width(r) + 1) * sizeof(pestle_value_t*));
  if (!types || !values) return false;
  pestle_builder_t outer = call->f.builder;
  pestle_region_t* region =
      pestle_onnx_enter_region(call, types, r->states + r->carried + 2);
  if (!region) return false;
  pestle_block_t* block = call->f.builder.block;
  for (size_t k = 0; k < r->states + r->carried; ++k) {
    size_t at = k < r->states ? k : k + r->outs;
    values[at] = pestle_block_argument(block, k + 2);
  }
  pestle_value_t *condition = pestle_block_argument(block, 1), *goes_on;
  enter(r, values);
  bool ok = import_trip(r, pestle_block_argument(block, 0), condition, values,
                        &goes_on);
  for (size_t k = 0; ok && k < count; ++k) {
    if (k < r->states) {
      r->keeps_types &= note_state(r, k, &types[k + 2], values[k], again);
    } else {
      note_row(r, k, region, values[k], again);
    }
    r->types[k] = k < r->states ? types[k + 2] : *pestle_onnx_type(values[k]);
  }
  if (ok) note_condition(r, condition, goes_on);
  call->f.builder = outer;
  pestle_region_discard(region);
  return ok;
}

bool pestle_onnx_repeat_try(pestle_onnx_repeat_t* r,
                            pestle_value_t* const* states) {
  pestle_onnx_call_t* call = r->call;
  size_t count = r->states + r->outs, slots = count * PESTLE_MAX_RANK + 1;
  r->types = pestle_onnx_scratch(call, (count + 1) * sizeof(pestle_type_t));
  r->sizes = pestle_onnx_scratch(call, slots * sizeof(pestle_value_t*));
  r->places = pestle_onnx_scratch(call, slots * sizeof(size_t));
  r->carried = 0;
  r->keeps_types = true;
  if (!r->types || !r->sizes || !r->places) return false;
  for (size_t k = 0; k < r->states; ++k) {
    for (int32_t axis = 0; axis < rank_of(states[k]); ++axis) {
      r->sizes[slot_of(k, axis)] =
          pestle_onnx_real_size(call->import, states[k], axis);
    }
  }
  bool again = true;
  while (again && r->keeps_types) {
    again = false;
    if (!try_once(r, states, &again)) return false;
  }
  return true;
}

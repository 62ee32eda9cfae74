// SPDX-License-Identifier: Apache-2.0
// Repetitions whose number of trips only running tells: see repeat.h.
#include "base/mem.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/repeat.h"

enum { COUNTER, CONDITION, FIRST };

// Whether the trip that comes is made: |limit| may be NULL.
static pestle_region_t* while_condition(pestle_onnx_repeat_t* r,
                                        const pestle_type_t* types,
                                        size_t count, pestle_value_t* limit) {
  pestle_onnx_call_t* call = r->call;
  pestle_builder_t outer = call->f.builder;
  pestle_region_t* region = pestle_onnx_enter_region(call, types, count);
  if (!region) return NULL;
  pestle_block_t* block = call->f.builder.block;
  pestle_value_t* goes_on = pestle_block_argument(block, CONDITION);
  if (limit) {
    pestle_value_t* left =
        pestle_f_lt(&call->f, pestle_block_argument(block, COUNTER), limit);
    goes_on = pestle_f_and(&call->f, goes_on, left);
  }
  if (!pestle_onnx_finish_region(call, &goes_on, 1)) region = NULL;
  call->f.builder = outer;
  return region;
}

// A trip: |next| holds counter, condition, states, scan outputs and extents, and gets
// what they are behind it.
static bool while_trip(const pestle_onnx_repeat_t* r, pestle_value_t** next) {
  pestle_onnx_call_t* call = r->call;
  size_t count = pestle_onnx_repeat_width(r);
  pestle_value_t *i = next[COUNTER], *goes_on, **carried = next + FIRST;
  pestle_value_t** trip =
      pestle_onnx_scratch(call, (count + 1) * sizeof(pestle_value_t*));
  if (!trip) return false;
  for (size_t k = 0; k < count; ++k)
    trip[k] = carried[k];
  if (!pestle_onnx_repeat_trip(r, i, next[CONDITION], true, trip, &goes_on))
    return false;
  for (size_t k = 0; k < count; ++k) {
    bool is_row = k >= r->states && k < r->states + r->outs;
    carried[k] =
        is_row ? pestle_onnx_store_row(call, carried[k], trip[k],
                                       pestle_onnx_repeat_row(r, r->stores_back,
                                                              k - r->states, i))
               : trip[k];
  }
  next[COUNTER] = add(call, i, pestle_onnx_size_number(call, 1));
  if (goes_on) next[CONDITION] = pestle_onnx_convert(call, goes_on, PESTLE_I1);
  return true;
}

static pestle_region_t* while_body(pestle_onnx_repeat_t* r,
                                   const pestle_type_t* types, size_t count) {
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

// What is carried into the first trip.
static pestle_value_t** begin(const pestle_onnx_repeat_t* r,
                              pestle_value_t** values,
                              pestle_value_t* condition) {
  pestle_onnx_call_t* call = r->call;
  size_t count = pestle_onnx_repeat_width(r) + FIRST;
  pestle_value_t** operands =
      pestle_onnx_scratch(call, count * sizeof(pestle_value_t*));
  if (!operands) return NULL;
  operands[COUNTER] = pestle_onnx_size_number(call, 0);
  operands[CONDITION] = condition ? condition : pestle_onnx_true(call);
  for (size_t k = 0; k < r->states; ++k)
    operands[k + FIRST] = values[k];
  for (size_t k = 0; k < r->outs; ++k)
    operands[k + FIRST + r->states] = pestle_onnx_repeat_empty(r, k);
  pestle_onnx_repeat_begin(r, operands + FIRST);
  return operands;
}

// A loop that wants more trips than there is room for makes the run fail.
static void check_room(const pestle_onnx_repeat_t* r, pestle_node_t* node,
                       pestle_value_t* limit, pestle_value_t* room) {
  pestle_formula_t* f = &r->call->f;
  pestle_value_t** overflow = &r->call->import->overflow;
  pestle_value_t* made = pestle_node_result(node, COUNTER);
  pestle_value_t* more = pestle_f_and(f, pestle_node_result(node, CONDITION),
                                      pestle_f_ge(f, made, room));
  if (limit) more = pestle_f_and(f, more, pestle_f_lt(f, made, limit));
  *overflow = *overflow ? pestle_f_or(f, *overflow, more) : more;
}

void pestle_onnx_repeat_while(pestle_onnx_repeat_t* r, pestle_value_t** values,
                              pestle_value_t* limit,
                              pestle_value_t* condition) {
  pestle_onnx_call_t* call = r->call;
  size_t count = pestle_onnx_repeat_width(r) + FIRST;
  pestle_value_t** operands = begin(r, values, condition);
  pestle_type_t* types =
      pestle_onnx_scratch(call, count * sizeof(pestle_type_t));
  if (!operands || !types || call->f.status) return;
  for (size_t k = 0; k < count; ++k)
    types[k] = *pestle_onnx_type(operands[k]);
  pestle_value_t* room = pestle_onnx_size_number(call, r->trips);
  pestle_value_t* end = limit;
  if (r->guessed) end = limit ? pestle_f_minimum(&call->f, limit, room) : room;
  pestle_region_t* regions[2];
  regions[0] = call->f.status ? NULL : while_condition(r, types, count, end);
  regions[1] = regions[0] ? while_body(r, types, count) : NULL;
  if (!regions[1]) return;
  pestle_node_spec_t spec = {.op = PESTLE_OP_WHILE,
                             .operands = operands,
                             .operand_count = count,
                             .regions = regions,
                             .region_count = 2};
  pestle_node_t* node = pestle_f_node(&call->f, &spec);
  if (!node) return;
  for (size_t k = 0; k < count; ++k)
    operands[k] = pestle_node_result(node, k);
  if (r->guessed) check_room(r, node, limit, room);
  for (size_t k = 0; k < r->outs; ++k) {
    pestle_onnx_set_real(call, operands[FIRST + r->states + k], 0,
                         r->limit ? r->limit : operands[COUNTER]);
  }
  pestle_onnx_repeat_end(r, operands + FIRST);
  for (size_t k = 0; k < r->states + r->outs; ++k)
    values[k] = operands[FIRST + k];
}

// SPDX-License-Identifier: Apache-2.0
// Lets a result be made where an argument lies that runs may be given.
//
//   func @step(%p, %g) -> %q     wanted: result 0 in place of argument 0
//   %q = fusion(%p, %g)          output 0, and so is %p: no COPY, no new memory
//
// The argument then has no storage of its own: its bytes lie in the output's when
// the steps begin, brought there by the runtime unless the caller gives the memory.
// It can be so where the argument is not read any more when the result is first
// written, by the rules for operands that die (memory_plan_in_place.c), or where
// the result is the argument itself.
#include "compile/donation.h"
#include "compile/memory_planner.h"
#include "ir/remark.h"

static const pestle_value_t* argument_of(const pestle_planner_t* p,
                                         uint32_t input) {
  return p->function->body->block->arguments[input];
}

static const pestle_value_t* result_of(const pestle_planner_t* p,
                                       uint32_t output) {
  return pestle_node_operand(p->function->body->block->last, output);
}

// The cell that became output |output|, or NULL: its value is copied there.
static pestle_cell_t* output_cell(const pestle_planner_t* p, uint32_t output) {
  pestle_cell_t* cell = pestle_planner_cell_of(p, result_of(p, output));
  bool placed = cell->storage == PESTLE_STORAGE_OUTPUT && cell->index == output;
  return placed ? cell : NULL;
}

// Whether |node| makes its result |index| over its operand |operand|, which lies
// in |cell| and is read there for the last time.
static bool overwrites(const pestle_planner_t* p, const pestle_node_t* node,
                       uint32_t index, uint32_t operand,
                       const pestle_cell_t* cell) {
  const pestle_value_t* value = pestle_node_operand(node, operand);
  return pestle_planner_cell_of(p, value) == cell &&
         pestle_planner_is_whole(p, value) &&
         pestle_planner_begins_over(p, node, index, operand);
}

// Whether what |result| holds first may be written where |argument| lies.
static bool may_share(const pestle_planner_t* p, const pestle_cell_t* argument,
                      const pestle_cell_t* result) {
  if (argument->end < result->begin) return true;
  const pestle_node_t* node = result->root->node;
  if (argument->end > result->begin || !node) return false;
  uint32_t index = (uint32_t)(result->root - node->results);
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (overwrites(p, node, index, i, argument)) return true;
  }
  return false;
}

// Puts argument |input| into the storage of result |output| if that can be.
static bool place(pestle_planner_t* p, uint32_t input, uint32_t output,
                  int32_t* outputs) {
  const pestle_value_t* value = argument_of(p, input);
  pestle_cell_t* argument = pestle_planner_cell_of(p, value);
  const pestle_value_t* result = result_of(p, output);
  // They have one type.
  bool is_itself = pestle_planner_cell_of(p, result) == argument;
  const pestle_cell_t* cell = output_cell(p, output);
  if (!is_itself && (!cell || !may_share(p, argument, cell))) return false;
  argument->storage = PESTLE_STORAGE_OUTPUT;
  argument->index = output;
  outputs[input] = (int32_t)output;
  return true;
}

static void remark(const pestle_planner_t* p, uint32_t input, uint32_t output) {
  pestle_strbuf_t text;
  if (!p->wishes->remarks) return;
  const pestle_value_t* argument = argument_of(p, input);
  const pestle_value_t* result = result_of(p, output);
  pestle_strbuf_init(p->allocator, &text);
  pestle_strbuf_appendf(&text,
                        "has memory of its own: argument %u ('%s'), which it "
                        "was to overwrite, is still read when it is written",
                        input, argument->name ? argument->name : "");
  pestle_remark_t r = {.pass = "memory plan",
                       .code = "not in place",
                       .what = result->name ? result->name : "a result",
                       .text = pestle_strbuf_cstr(&text)};
  pestle_remarks_add(p->wishes->remarks, &r);
  pestle_strbuf_deinit(&text);
}

static bool is_taken(const int32_t* outputs, uint32_t count, uint32_t output) {
  for (uint32_t i = 0; i < count; ++i) {
    if (outputs[i] == (int32_t)output) return true;
  }
  return false;
}

// Whether a wish names |output|.
static bool is_wanted(const pestle_planner_t* p, uint32_t output) {
  for (size_t i = 0; i < p->wishes->count; ++i) {
    if (p->wishes->aliases[i].output == (int32_t)output) return true;
  }
  return false;
}

// The first result of equal type that may be made over argument |input|.
static void place_somewhere(pestle_planner_t* p, uint32_t input,
                            int32_t* outputs) {
  const pestle_block_t* block = p->function->body->block;
  for (uint32_t o = 0; o < block->last->operand_count; ++o) {
    if (pestle_function_shape_of(p->function, o) >= 0 ||
        pestle_donation_is_bounded(p->function, o) || is_wanted(p, o) ||
        is_taken(outputs, block->argument_count, o) ||
        !pestle_type_equal(argument_of(p, input)->type,
                           result_of(p, o)->type)) {
      continue;
    }
    if (place(p, input, o, outputs)) return;
  }
}

void pestle_planner_place_donated(pestle_planner_t* p, int32_t* outputs) {
  // Named pairs first: what may go anywhere takes what they leave.
  for (size_t i = 0; i < p->wishes->count; ++i) {
    const pestle_alias_t* a = &p->wishes->aliases[i];
    if (a->output == PESTLE_ALIAS_ANY) continue;
    if (!place(p, a->input, (uint32_t)a->output, outputs)) {
      remark(p, a->input, (uint32_t)a->output);
    }
  }
  for (size_t i = 0; i < p->wishes->count; ++i) {
    const pestle_alias_t* a = &p->wishes->aliases[i];
    if (a->output == PESTLE_ALIAS_ANY) place_somewhere(p, a->input, outputs);
  }
}

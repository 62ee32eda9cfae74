// SPDX-License-Identifier: Apache-2.0
// What the files of the pass `partition` share. In their order: what the module says
// (partition_read.c), where values come to lie (partition_propagate.c), how a value gets
// from one place to another (partition_reshard.c), how each op is divided
// (partition_choose.c), and the ops that each process then has (partition_emit.c,
// partition_control.c).
#ifndef PESTLE_PASSES_PARTITION_H_
#define PESTLE_PASSES_PARTITION_H_

#include "base/vec.h"
#include "ir/shard_rule.h"
#include "passes/util.h"

// A value of the local module that is a value of the global one, as it is spread.
typedef struct partition_form_t partition_form_t;
struct partition_form_t {
  pestle_spread_t spread;
  pestle_value_t* value;
  const pestle_block_t* block;  // where it is defined
  uint32_t depth;               // of that block
  partition_form_t* next;
};

// One value of the global module.
typedef struct partition_value_t {
  pestle_value_t* value;   // NULL: a result of the module
  pestle_spread_t spread;  // where it is wanted
  pestle_axes_t manual;    // along which processes may hold different values
  // The round in which other values see what a dim was said to have; 0: the first.
  uint8_t rounds[PESTLE_MAX_RANK];
  partition_form_t* forms;  // those that there are, the first made last
  // Of an argument or result that lies on a mesh whose devices have other numbers.
  const pestle_sharding_t* other;
} partition_value_t;

// A block that is being written.
typedef struct partition_level_t {
  pestle_builder_t builder;
  const pestle_block_t* block;
} partition_level_t;

// A rule and the values of its tensors, by their numbers.
typedef struct partition_rule_t {
  pestle_shard_rule_t rule;
  uint32_t* values;
  struct partition_rule_t* next;
} partition_rule_t;

// What sdy.manual_computation says of a value that goes in or comes out.
typedef struct partition_marker_t {
  const pestle_node_t* node;
  bool enters;             // else it leaves
  pestle_spread_t spread;  // along the axes that are manual
  pestle_axes_t manual;
  struct partition_marker_t* next;
} partition_marker_t;

enum { PARTITION_DEPTH = 64 };

typedef struct partition_t {
  pestle_pass_context_t* ctx;
  pestle_module_t* module;
  pestle_function_t* entry;
  pestle_arena_t* arena;
  const pestle_mesh_t* mesh;
  pestle_mesh_maker_t maker;
  bool strict;
  PESTLE_VEC(partition_value_t) values;
  uint32_t* results;          // numbers of what stands for the module's results
  bool* said;                 // whether the module says where result i lies
  uint8_t round, last_round;  // of propagation
  partition_rule_t *rules, *last_rule;
  partition_marker_t* markers;
  // Writing.
  partition_level_t levels[PARTITION_DEPTH];
  uint32_t depth;
  pestle_value_t* process;  // this process' number
  struct partition_number_t* numbers;
  const pestle_node_t* asker;  // the op that is being written
} partition_t;

static inline uint32_t partition_index(const pestle_value_t* value) {
  return (uint32_t)value->scratch;
}
static inline partition_value_t* partition_of(partition_t* p,
                                              const pestle_value_t* value) {
  return &p->values.data[partition_index(value)];
}

// --- partition_read.c ---

// Numbers the values, and reads what the module says of them.
PESTLE_NODISCARD pestle_status_t partition_read(partition_t* p);
// The marker that |node| is, or NULL.
const partition_marker_t* partition_marker_of(const partition_t* p,
                                              const pestle_node_t* node);
// Axes along which |node| may not be divided.
pestle_axes_t partition_manual(partition_t* p, const pestle_node_t* node);
bool partition_has_bodies(const pestle_node_t* node);
// Whether it says where its operand is to lie.
bool partition_is_wish(const pestle_node_t* node);

// --- partition_propagate.c ---

PESTLE_NODISCARD pestle_status_t partition_propagate(partition_t* p);
// The factors' axes that |spread| of tensor |tensor| has; |orders| has one a factor.
void partition_project(const partition_t* p, const pestle_shard_rule_t* rule,
                       uint32_t tensor, const pestle_spread_t* spread,
                       pestle_axis_order_t* orders);

// --- partition_reshard.c ---

// Bytes that a process gets from others on the way.
double partition_reshard_cost(const partition_t* p, const pestle_type_t* type,
                              const pestle_spread_t* from,
                              const pestle_spread_t* to);
// The form that gets there by the fewest bytes, and these; NULL: there is none.
const partition_form_t* partition_nearest(const partition_t* p,
                                          const partition_value_t* v,
                                          const pestle_spread_t* to,
                                          double* out_cost);
// |value| as |spread| says, for the block that is being written.
PESTLE_NODISCARD pestle_status_t partition_obtain(partition_t* p,
                                                  const pestle_value_t* value,
                                                  const pestle_spread_t* spread,
                                                  pestle_value_t** out);
PESTLE_NODISCARD pestle_status_t partition_obtain_whole(
    partition_t* p, const pestle_value_t* value, pestle_value_t** out);
// Notes a form of |value|, made in the block that is being written.
PESTLE_NODISCARD pestle_status_t
partition_add_form(partition_t* p, const pestle_value_t* value,
                   const pestle_spread_t* spread, pestle_value_t* local);
// This process' number along |order|, an i32 of rank 0, times |step|.
pestle_value_t* partition_number(partition_t* p,
                                 const pestle_axis_order_t* order,
                                 int64_t step);

// --- partition_choose.c ---

// How an op is divided: the axes of each factor, and those along which summands of
// operands become summands of results.
typedef struct partition_plan_t {
  pestle_axis_order_t factors[PESTLE_RULE_FACTORS];
  pestle_axes_t sums;
} partition_plan_t;

// The way that moves the fewest bytes.
void partition_choose(partition_t* p, const partition_rule_t* rule,
                      pestle_axes_t manual, partition_plan_t* out);
// Where the plan wants operand |tensor|, or leaves result |tensor|.
pestle_spread_t partition_planned(const partition_t* p,
                                  const pestle_shard_rule_t* rule,
                                  const partition_plan_t* plan,
                                  uint32_t tensor);

// --- partition_emit.c, partition_control.c ---

// Writes |node| as a process has it.
PESTLE_NODISCARD pestle_status_t partition_emit(partition_t* p,
                                                const pestle_node_t* node);
PESTLE_NODISCARD pestle_status_t
partition_emit_block(partition_t* p, const pestle_block_t* block);
PESTLE_NODISCARD pestle_status_t
partition_emit_control(partition_t* p, const pestle_node_t* node);
PESTLE_NODISCARD pestle_status_t
partition_emit_marker(partition_t* p, const pestle_node_t* node,
                      const partition_marker_t* marker);
// |node|, of which every process does all.
PESTLE_NODISCARD pestle_status_t
partition_emit_whole(partition_t* p, const pestle_node_t* node);
// --- partition_combine.c ---

PESTLE_NODISCARD pestle_status_t partition_combine(pestle_pass_context_t* ctx,
                                                   pestle_module_t* module,
                                                   bool* out_changed);

static inline pestle_builder_t* partition_builder(partition_t* p) {
  return &p->levels[p->depth].builder;
}

#endif  // PESTLE_PASSES_PARTITION_H_

// SPDX-License-Identifier: Apache-2.0
// Where every value of a fused and ordered function lives during a run: storage,
// offset, and what shares it. memory_planner.h says how that is found.
#ifndef PESTLE_COMPILE_MEMORY_PLAN_H_
#define PESTLE_COMPILE_MEMORY_PLAN_H_

#include "base/arena.h"
#include "ir/graph.h"
#include "ir/remark.h"
#include "pestle/compile.h"

typedef enum pestle_storage_e {
  PESTLE_STORAGE_NONE,      // not materialised (values inside fusions)
  PESTLE_STORAGE_ARENA,     // |offset| in the arena
  PESTLE_STORAGE_INPUT,     // entry argument |index|
  PESTLE_STORAGE_OUTPUT,    // entry result |index|
  PESTLE_STORAGE_CONSTANT,  // the constant node of |root|
} pestle_storage_t;

// Where one value of the top level (or of a while/if/case body) lives. All
// values are dense row-major. A zero-copy view (reshape, contiguous slice) has
// the storage of its source; an op in place the storage of its dead operand.
typedef struct pestle_placement_t {
  uint8_t storage;             // pestle_storage_t
  uint32_t index;              // input or output
  int64_t offset;              // bytes from the start of the storage
  int64_t size;                // bytes of the value
  const pestle_value_t* root;  // the value that owns the storage
  // Number, from 1 on, of the state of a loop that it takes turns with as its next value;
  // 0: none. It may be that of others as well.
  uint32_t alternates;
} pestle_placement_t;

typedef struct pestle_memory_plan_t {
  // value->scratch of every planned value is its index here.
  pestle_placement_t* placements;
  size_t count;
  int64_t arena_size;   // planned peak, 64-byte aligned pieces
  int64_t lower_bound;  // the largest live set
  // For each argument: the result in whose storage it lies, or -1.
  int32_t* outputs;
  // An entry result that is an argument, a constant, or another result again
  // needs a copy at the end: its value has another storage than its OUTPUT.
} pestle_memory_plan_t;

// Which operand of |fusion| result r lies over: |out_aliases[r]|, -1 for none;
// whether one does is |*out_any|. INTERNAL if the two overlap in part.
PESTLE_NODISCARD pestle_status_t pestle_memory_plan_aliases(
    const pestle_memory_plan_t* plan, const pestle_node_t* fusion,
    int32_t* out_aliases, bool* out_any);

// The text of dumps: placements, planned peak beside lower bound.
PESTLE_NODISCARD pestle_status_t pestle_memory_plan_print(
    const pestle_module_t* module, const pestle_memory_plan_t* plan,
    pestle_strbuf_t* out);

// What is wanted of a plan and may turn out not to be possible.
typedef struct pestle_memory_wishes_t {
  const pestle_alias_t* aliases;  // checked, see donation.h
  size_t count;
  pestle_remarks_t* remarks;  // of what could not be; or NULL
  bool copies_wait;           // a copy of few bytes takes what a kernel takes
  // Collectives run beside other ops: what they send and receive is theirs until
  // the first reader of a result.
  bool overlaps;
} pestle_memory_wishes_t;

// Plans the entry function of |module|. |wishes| may be NULL: none. |*out_plan|
// lives in |arena|; it is looked up by value->scratch, which nobody may change as
// long as it is used.
PESTLE_NODISCARD pestle_status_t pestle_memory_plan_make(
    pestle_module_t* module, const pestle_memory_wishes_t* wishes,
    pestle_arena_t* arena, pestle_memory_plan_t* out_plan);

static inline const pestle_placement_t* pestle_memory_plan_at(
    const pestle_memory_plan_t* plan, const pestle_value_t* value) {
  return &plan->placements[value->scratch];
}

#endif  // PESTLE_COMPILE_MEMORY_PLAN_H_

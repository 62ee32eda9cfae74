// SPDX-License-Identifier: Apache-2.0
// Graph to graph. One file a pass, one row in passes.def, one entry function.
// passes/ knows the graph and a target's description; it knows nothing of
// kernels, devices or plugins. compile/compile.c is the only one outside that
// includes this header.
#ifndef PESTLE_PASSES_PASS_H_
#define PESTLE_PASSES_PASS_H_

#include "ir/graph.h"
#include "ir/remark.h"
#include "pestle/compile.h"

// Properties of a module that passes require and preserve (bits).
typedef enum pestle_property_e {
  PESTLE_PROPERTY_INLINED = 1,        // one function, no func.call
  PESTLE_PROPERTY_FOLDED = 2,         // canonical: no constant op left unfolded
  PESTLE_PROPERTY_RECOGNISED = 4,     // composites are composites
  PESTLE_PROPERTY_CHANNELS_LAST = 8,  // convolutions have the target's layout
  PESTLE_PROPERTY_FUSED = 16,    // every op is in a fusion, or CONTROL/SOURCE
  PESTLE_PROPERTY_ORDERED = 32,  // blocks are in execution order
} pestle_property_t;

// What a pass gets besides the module.
typedef struct pestle_pass_context_t {
  pestle_context_t* context;
  const pestle_target_caps_t* caps;         // of the target, never NULL
  const pestle_compile_options_t* options;  // never NULL
  pestle_arena_t* scratch;                  // emptied after each pass
  pestle_remarks_t* remarks;                // NULL: nobody asks why
} pestle_pass_context_t;

typedef pestle_status_t (*pestle_pass_fn_t)(pestle_pass_context_t* ctx,
                                            pestle_module_t* module,
                                            bool* out_changed);

typedef struct pestle_pass_t {
  const char* name;
  pestle_pass_fn_t run;
  uint32_t requires_properties;
  uint32_t preserves;  // of the properties held before
  uint32_t establishes;
  const char* summary;  // one line
} pestle_pass_t;

// The rows of passes.def.
const pestle_pass_t* pestle_pass_table(size_t* out_count);
const pestle_pass_t* pestle_pass_find(const char* name);

// Runs the standard pipeline (or options->passes when given) over |module| in
// place: checks requires, verifies in debug builds and tests, prints, times,
// skips, stops (options), and in round-trip mode prints, parses, serialises and
// loads the module after each pass and compares. |remarks| (may be NULL) gets
// why the passes did what they did.
PESTLE_NODISCARD pestle_status_t
pestle_passes_run(pestle_context_t* context, const pestle_target_caps_t* caps,
                  const pestle_compile_options_t* options,
                  pestle_module_t* module, pestle_remarks_t* remarks);

// After pestle_passes_run(), when the options left passes out: does what code
// generation cannot do without. Calls are inlined, and each op that no pass put
// into a fusion gets one of its own, as with options->no_fuse.
PESTLE_NODISCARD pestle_status_t pestle_passes_complete(
    pestle_context_t* context, const pestle_target_caps_t* caps,
    const pestle_compile_options_t* options, pestle_module_t* module,
    pestle_remarks_t* remarks);

// --- Memory plan of a fused, ordered entry function ---

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
} pestle_placement_t;

typedef struct pestle_memory_plan_t {
  // value->scratch of every planned value is its index here.
  pestle_placement_t* placements;
  size_t count;
  int64_t arena_size;   // planned peak, 64-byte aligned pieces
  int64_t lower_bound;  // the largest live set
  // An entry result that is an argument, a constant, or another result again
  // needs a copy at the end: its value has another storage than its OUTPUT.
} pestle_memory_plan_t;

// The text of dumps: placements, lifetimes, planned peak beside lower bound.
PESTLE_NODISCARD pestle_status_t pestle_memory_plan_print(
    const pestle_module_t* module, const pestle_memory_plan_t* plan,
    pestle_strbuf_t* out);

// Plans the entry function. |*out_plan| lives in |arena|.
PESTLE_NODISCARD pestle_status_t pestle_plan_memory(
    pestle_context_t* context, const pestle_compile_options_t* options,
    pestle_module_t* module, pestle_arena_t* arena,
    pestle_memory_plan_t* out_plan);

#endif  // PESTLE_PASSES_PASS_H_

// SPDX-License-Identifier: Apache-2.0
// Graph to graph. A pass is one row in passes.def and one entry function, in a file of
// its own or beside its kin (expand_composites is in decompose.c, clean_up in
// canonicalise.c).
// passes/ knows nothing of kernels, or of devices but by a target's
// description. Outside of it only compile/ includes its headers.
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
  bool reads_texts;  // now, which no verifier reads: a fault is theirs
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

// The same up to pass |last| of the standard pipeline; NULL: all.
PESTLE_NODISCARD pestle_status_t pestle_passes_run_to(
    pestle_context_t* context, const pestle_target_caps_t* caps,
    const pestle_compile_options_t* options, pestle_module_t* module,
    pestle_remarks_t* remarks, const char* last);

// After pestle_passes_run(), when the options left passes out: does what code
// generation cannot do without. Calls are inlined, and each op that no pass put
// into a fusion gets one of its own, as with options->no_fuse.
PESTLE_NODISCARD pestle_status_t pestle_passes_complete(
    pestle_context_t* context, const pestle_target_caps_t* caps,
    const pestle_compile_options_t* options, pestle_module_t* module,
    pestle_remarks_t* remarks);

#endif  // PESTLE_PASSES_PASS_H_

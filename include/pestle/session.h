// SPDX-License-Identifier: Apache-2.0
// A model as people use it: any shape, from any thread, by the names of its inputs.
//
//   pestle_session_create(context, "model.onnx", NULL, &session);
//   pestle_named_tensor_t in = {"image", view}, out = {"scores"};
//   pestle_session_run(session, &in, 1, &out, 1, NULL);   // any batch
//   ... out.tensor ...
//   pestle_session_tensor_release(session, &out.tensor);
//
// A model is imported once. Each shape that is asked for gets an executable of its
// own; the executables share weights, are kept by how recently they ran, and are
// compiled by a thread of the session while a larger one serves: with rows that
// repeat the last one and are cut off again. That is done only where a comparison of
// both graphs shows that rows do not depend on each other
// (docs/sessions.md); else the run waits for its own executable. Results of a padded
// run are those of the larger executable, whose sums may be rounded in another order:
// |exact| forgoes it.
//
// A session may be used from any threads at once. It is not to be used in a child of
// fork().
//
// Contents:
// - Sessions
// - Runs
// - What it counts and knows
// - Inputs and outputs
#ifndef PESTLE_SESSION_H_
#define PESTLE_SESSION_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pestle/compile.h"
#include "pestle/context.h"
#include "pestle/import.h"
#include "pestle/runtime.h"
#include "pestle/status.h"
#include "pestle/strings.h"

PESTLE_EXTERN_C_BEGIN

// --- Sessions ---

typedef struct pestle_session_s pestle_session_t;

// Zero-initialise and set |struct_size|. All is copied.
typedef struct pestle_session_options_t {
  size_t struct_size;
  pestle_device_t* device;  // NULL: pestle_context_device() without a name
  // Extents that dims are to have, as text: "batch=1,2,4..32" and, behind a
  // semicolon, other dims; "4..32" are 4, 8, 16 and 32. A dim without a name is called
  // by input and axis: "x.0=1,4". These are compiled from the
  // beginning, the largest first, and stay; other extents are served by the next
  // larger one where that is shown to be right. NULL: first come, first compiled.
  const char* shapes;
  const pestle_import_options_t* import;  // dims, shapes, constants; or NULL
  // Of this numerics, target_cpu, no_fuse, no_cache and lock_path count. Or NULL.
  const pestle_compile_options_t* compile;
  // Executables beside the declared ones: when there are more, the one that did not
  // run for longest goes. 0: 16.
  size_t most_executables;
  bool exact;    // each shape by its own executable, never padded
  bool waiting;  // no thread: who needs an executable compiles it
  // Serve first by executables of the quick tier (PESTLE_TIER_QUICK), which are there
  // sooner and run longer; the session's thread compiles the full ones meanwhile and
  // puts each in the place of the quick one. Runs under way end with what they began
  // with, whose memory goes with the last of them. Not with |waiting|.
  bool quick;
} pestle_session_options_t;

// Opens the model at |path|, of any format that pestle_import_file() takes, or what
// 'pestle compile' wrote: a plan, or a set of plans (pestle_plan_set_save()), of which
// |options|->import, compile and shapes must say nothing. |options| may be NULL. The
// session keeps |context| alive. Declared shapes are queued, not waited for. Errors
// are those of pestle_import_file() and pestle_plan_load(); INVALID_ARGUMENT:
// |shapes| is not understood or names several extents for the same input;
// NOT_FOUND: it names a dim that the model has not (those that it has are listed);
// UNSUPPORTED: a model in a build without the compiler;
// INVALID_ARGUMENT: |quick| and |waiting|, as nobody would compile the full ones.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_session_create(
    pestle_context_t* context, const char* path,
    const pestle_session_options_t* options, pestle_session_t** out_session);
// Adds a reference.
PESTLE_API void pestle_session_retain(pestle_session_t* session);
// Drops a reference; the last one stops the compilation under way and frees. What
// runs gave out must be released before.
PESTLE_API void pestle_session_release(pestle_session_t* session);

// --- Runs ---

// Runs once. |inputs| are all that the model takes, in any order, by name; names may
// all be NULL: then by place. Views of the host's memory with any strides. |outputs|
// are those that are wanted, likewise. One with data is written to, and must have
// the extents that this run gives; one without gets memory of the session's, data,
// shape and strides, which pestle_session_tensor_release() frees. Of |options| threads,
// control and strings count; without threads it is those of the pool divided by the runs that
// are under way. Any threads may run at once.
// A run in a shape that was seen before compiles nothing and, given memory,
// allocates nothing in the steady state.
// NOT_FOUND: a name that the model has not (what there is, is listed), or a shape
// that a saved plan has not; INVALID_ARGUMENT: a tensor that does not fit the model,
// naming input and dim; else what compiling and running fail with. A shape that
// could not be compiled is tried again when it is asked for again.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_session_run(
    pestle_session_t* session, const pestle_named_tensor_t* inputs,
    size_t input_count, pestle_named_tensor_t* outputs, size_t output_count,
    const pestle_run_options_t* options);
// Gives back an output that a run made, and clears data, shape and strides. Does
// nothing for NULL, and for a tensor without data; one with memory of the caller's is
// not to be given.
PESTLE_API void pestle_session_tensor_release(pestle_session_t* session,
                                              pestle_tensor_t* tensor);

// Waits until nothing is queued or being compiled: after it, runs in shapes that were
// declared or seen meet no compilation, and none is served by the quick tier. The first failure since the last call, which
// the log has too. CANCELLED, DEADLINE_EXCEEDED: as |control| (may be NULL) says,
// while the session goes on.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_session_wait(pestle_session_t* session, const pestle_control_t* control);

// --- What it counts and knows ---

// Counted since the session was made. Zero-initialise and set |struct_size|.
typedef struct pestle_session_stats_t {
  size_t struct_size;
  uint64_t runs;         // that succeeded
  uint64_t padded_runs;  // by a larger executable
  uint64_t failed_runs;
  uint64_t rows, padding;  // places along padded axes: real, and added
  uint64_t compiles;       // executables made, from the plan cache or anew
  uint64_t failed_compiles;
  uint64_t waits;      // runs that waited for a compilation
  uint64_t evictions;  // executables that others took the place of
  int64_t compile_ns;  // in imports and compilations
  // -- now --
  uint64_t executables, shapes, queued;
  uint64_t buffer_bytes;  // kept for outputs and padded inputs
  uint64_t quick;         // executables of the quick tier
  // -- counted --
  uint64_t quick_compiles;  // of |compiles|, those of the quick tier
  uint64_t replaced;  // quick executables that full ones took the place of
  // -- now --
  uint64_t
      arena_bytes;  // for what runs compute on the way, which all executables
                    // share; on a GPU each has its own, which are not counted
} pestle_session_stats_t;
// Fills |*out_stats|, whose struct_size must be set.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_session_stats(
    pestle_session_t* session, pestle_session_stats_t* out_stats);

typedef enum pestle_session_state_e {
  PESTLE_SESSION_READY = 0,   // an executable of its own
  PESTLE_SESSION_PADDED = 1,  // a larger one serves
  PESTLE_SESSION_QUEUED = 2,  // and is, or will be, compiled
  PESTLE_SESSION_FAILED = 3,
  PESTLE_SESSION_QUICK = 4,  // one of its own, of the quick tier
} pestle_session_state_t;

// A shape that the session knows. Borrowed while it is told.
typedef struct pestle_session_shape_t {
  size_t struct_size;
  const char* text;  // "image [3, 3, 224, 224], mask [3, 16]"
  int32_t state;     // pestle_session_state_t
  bool declared;
  uint64_t runs;
  // Why a larger executable does not serve it, or why it failed; "" if there is
  // nothing to say.
  const char* note;
} pestle_session_shape_t;
// Calls |visit| for each shape, the last one that ran first, with a lock held: it
// must not call Pestle.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_session_visit(
    pestle_session_t* session,
    void (*visit)(void* user, const pestle_session_shape_t* shape), void* user);

// --- Inputs and outputs ---

// How many inputs the model has.
PESTLE_API size_t pestle_session_input_count(const pestle_session_t* session);
// How many outputs the model has.
PESTLE_API size_t pestle_session_output_count(const pestle_session_t* session);
// What input |index| is; extents that runs decide are PESTLE_DIM_DYNAMIC. Past the
// last the name is "" and all else 0. Borrowed from the session.
PESTLE_API pestle_io_info_t
pestle_session_input(const pestle_session_t* session, size_t index);
// The name of output |index|; "" past the last. Borrowed from the session.
PESTLE_API const char* pestle_session_output_name(
    const pestle_session_t* session, size_t index);

// Whether a run takes the numbers of strings as input |index|; false past the last.
PESTLE_API bool pestle_session_input_is_strings(const pestle_session_t* session,
                                                size_t index);
// Whether a run gives the numbers of strings as output |index|; false past the last.
PESTLE_API bool pestle_session_output_is_strings(
    const pestle_session_t* session, size_t index);
// Makes the numbers of the strings of the session's model (pestle/strings.h): those of
// its runs in every shape. It does not keep the session.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_session_strings_create(
    const pestle_session_t* session, pestle_strings_t** out_strings);

PESTLE_EXTERN_C_END

#endif  // PESTLE_SESSION_H_

// SPDX-License-Identifier: Apache-2.0
// From a module to a plan: passes, kernels, memory plan.
#ifndef PESTLE_COMPILE_H_
#define PESTLE_COMPILE_H_

#include "pestle/context.h"
#include "pestle/graph.h"
#include "pestle/plugin.h"
#include "pestle/runtime.h"

PESTLE_EXTERN_C_BEGIN

typedef enum pestle_numerics_e {
  // Reductions may be reassociated as the plan fixes it; multiply-add may be
  // contracted, and erf(x) + 1 is one function; f16, bf16 and f8 compute in f32 and
  // round at each op's result.
  PESTLE_NUMERICS_DEFAULT = 0,
  // Neither: source order, no contraction.
  PESTLE_NUMERICS_STRICT = 1,
  // Default, and narrow floats stay f32 inside a kernel; products with weights of few bits
  // (pestle.block_dot) that say no accuracy take x as bytes, accuracy 4.
  PESTLE_NUMERICS_FAST = 2,
} pestle_numerics_t;

// How much time a plan is worth.
typedef enum pestle_tier_e {
  PESTLE_TIER_FULL = 0,  // the fastest plan
  // A plan as soon as possible: simpler schedules, no tuning, no lock, less work of
  // the target's compiler; or the full one, where the cache has it. Results keep the same tolerances, though sums may be rounded
  // in another order; runs take longer. What a session serves with until the full one
  // is ready (pestle_session_options_t.quick).
  PESTLE_TIER_QUICK = 1,
} pestle_tier_t;

// What pestle_compile_options_t.dump receives, in this order.
typedef enum pestle_stage_e {
  PESTLE_STAGE_GRAPH,     // the module as compiled, text
  PESTLE_STAGE_PASS,      // after a pass named by print_after; name = the pass
  PESTLE_STAGE_FUSED,     // after all passes
  PESTLE_STAGE_SCHEDULE,  // one a kernel: nest and schedule primitives
  PESTLE_STAGE_KERNELS,   // one a kernel: flat Kernel IR after legalisation
  PESTLE_STAGE_SOURCE,    // one a kernel: what the target printed (LLVM IR)
  PESTLE_STAGE_ASM,       // one a kernel: disassembly
  PESTLE_STAGE_PLAN,      // steps, bindings, memory plan
  PESTLE_STAGE_TIMES,     // pass and compile timings
  // Why it is so, for people: "cache", "layouts", one a kernel, "summary", all
  // before kernels are compiled; then "refused", if the target refused some that
  // it had seemed to take. The wording may change.
  PESTLE_STAGE_EXPLAIN,
  PESTLE_STAGE_COUNT
} pestle_stage_t;

// pestle_alias_t.output: whichever result can.
enum { PESTLE_ALIAS_ANY = -1 };

// A result to be made where an input lies, if a run is given the input's memory
// (pestle_run_buffers_options_t.donated). Frozen.
typedef struct pestle_alias_t {
  uint32_t input;
  int32_t output;  // or PESTLE_ALIAS_ANY
} pestle_alias_t;

// Zero-initialise and set |struct_size|. All is borrowed during the call.
typedef struct pestle_compile_options_t {
  size_t struct_size;
  pestle_numerics_t numerics;
  const char* target_cpu;  // compile for this CPU instead of the device's
  bool no_fuse;            // one kernel an op
  bool no_cache;           // neither look nor store
  bool verify;             // verify after every pass and kernel
  bool round_trip;         // print-parse, serialise-load after every pass
  // Names as pestle_pass_name() gives them. Whatever is left out, a compilation
  // still inlines calls and gives each op that is in no fusion its own kernel.
  const char* passes;       // "a,b,c": these instead of the pipeline
  const char* skip_passes;  // "a,b": leave these out
  int32_t stop_after;       // run only so many passes; 0: all (bisecting)
  const char* print_after;  // a pass name or "all"
  uint32_t dump_stages;     // bits (1u << pestle_stage_t) that |dump| wants
  // Receives text; |name| is the kernel or pass. Called on the caller's thread.
  void (*dump)(void* user, pestle_stage_t stage, const char* name,
               const char* text, size_t size);
  void* dump_user;
  int64_t fold_limit;  // largest folded constant in bytes; 0: 64 MiB
  const pestle_control_t* control;  // or NULL
  // -- schedules that were measured (docs/tuning.md) --
  // The file of the lock: the schedules that it has for this target, CPU and
  // number of threads are taken instead of those that the cost model would
  // choose. Results are the same bits with any lock and without. NULL: none.
  const char* lock_path;
  // Before compiling, measure kernels that the lock lacks for about so long, and
  // write what was found to the lock, which need not exist. 0: off.
  double tune_seconds;
  // A kernel that the lock lacks is an error, which names all of them.
  bool frozen;
  // -- inputs that runs may be given --
  // Each input and each result at most once, and of one type. A result is made in
  // place where the input is not read any more when it is first written, else
  // apart (PESTLE_STAGE_EXPLAIN says why; pestle_executable_alias() what is so).
  // A run that is not given the input copies it first; results are the same bits
  // in any case. What the module says itself of its arguments (tf.aliasing_output,
  // jax.buffer_donor) counts for those that are not named here.
  const pestle_alias_t* aliases;
  size_t alias_count;
  // -- how soon --
  pestle_tier_t tier;
} pestle_compile_options_t;

// Compiles |module|, all of whose dimensions must be known, for |device| (NULL:
// what pestle_context_device() gives without a name): looks in the plan cache,
// else runs the passes and the target's compiler. |module| is not changed and may
// be released afterwards. |options| may be NULL: all defaults. Concurrent calls
// with one key compile once.
// INVALID_ARGUMENT: a dimension is not known, or an alias of what does not exist,
// is bounded, is named twice or has another type; NOT_FOUND: a pass that an option
// names, MALFORMED: the module breaks a rule (pestle_module_verify()),
// UNSUPPORTED: an op, dtype or CPU that neither target nor fallback has,
// CANCELLED and DEADLINE_EXCEEDED: as options->control says. With a lock also
// NOT_FOUND: no such file, or |frozen| and kernels that it lacks; MALFORMED: a
// damaged line; UNSUPPORTED: to tune for a target without a device here; IO: the
// lock cannot be written; INVALID_ARGUMENT: |tune_seconds| or |frozen| without
// |lock_path|, or both, or with the quick tier. Two that tune one lock at once: the last one's is kept.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_compile(
    pestle_context_t* context, pestle_module_t* module, pestle_device_t* device,
    const pestle_compile_options_t* options, pestle_plan_t** out_plan);

// Runs passes over |module| in place, as pestle_compile() would for |device|:
// the pipeline, or those that |options| name. |device| and |options| may be
// NULL. After an error the module may be between two passes. Fails as
// pestle_compile() does.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_optimize(
    pestle_context_t* context, pestle_module_t* module, pestle_device_t* device,
    const pestle_compile_options_t* options);

// The name of pass |index|: of the pipeline, in its order, then of those that
// run by name only (pestle_compile_options_t.passes). NULL past the last.
// Static.
PESTLE_API const char* pestle_pass_name(size_t index);
// What pass |index| does, in a line. NULL past the last. Static.
PESTLE_API const char* pestle_pass_summary(size_t index);

PESTLE_EXTERN_C_END

#endif  // PESTLE_COMPILE_H_

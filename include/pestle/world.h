// SPDX-License-Identifier: Apache-2.0
// Worlds: processes, each with a rank, that run one plan on values of their own and
// meet at its collectives. Here all ranks are threads of this process.
//
//   pestle_world_t* ranks[4];
//   pestle_world_create_local(context, 4, NULL, ranks);
//   // on four threads, or on four streams:
//   pestle_run_options_t options = {sizeof(options), .world = ranks[i]};
//   pestle_executable_run(executable, NULL, inputs[i], ..., &options);
//
// A rank that fails ends the world: whoever waits for it, or comes later, fails
// with what ended it. So does one that is not met within the deadline, whose number
// the failure has. Nothing ever waits for longer.
#ifndef PESTLE_WORLD_H_
#define PESTLE_WORLD_H_

#include <stdint.h>

#include "pestle/context.h"
#include "pestle/status.h"

PESTLE_EXTERN_C_BEGIN

// One rank of a world.
typedef struct pestle_world_s pestle_world_t;

// Zero-initialise and set |struct_size|.
typedef struct pestle_world_options_t {
  size_t struct_size;
  int64_t deadline_ms;  // that a rank waits for another one; 0: 60,000
} pestle_world_options_t;

// Fills |out_ranks|, |size| of them, with the ranks of a new world. A rank runs one
// plan at a time; all ranks run the same plans in the same order, on threads of
// their own. |options| may be NULL. INVALID_ARGUMENT: a size below 1 or above
// 65,536, a deadline below 0.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_world_create_local(
    pestle_context_t* context, int32_t size,
    const pestle_world_options_t* options, pestle_world_t** out_ranks);
// Adds a reference to a rank.
PESTLE_API void pestle_world_retain(pestle_world_t* world);
// Drops a reference; NULL is allowed. Runs that are queued hold their own.
PESTLE_API void pestle_world_release(pestle_world_t* world);
// Place of the rank in its world: 0 up to the size less one.
PESTLE_API int32_t pestle_world_rank(const pestle_world_t* world);
// Ranks of the world.
PESTLE_API int32_t pestle_world_size(const pestle_world_t* world);
// Ends the world for all its ranks, with |reason|, which is borrowed and not NULL;
// the first reason counts. Any thread may call it at any time.
PESTLE_API void pestle_world_abort(pestle_world_t* world,
                                   pestle_status_t reason);
// Why the world has ended, for the caller to release; OK while it has not.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_world_status(const pestle_world_t* world);
// Bytes of other ranks that this one has read so far.
PESTLE_API uint64_t pestle_world_bytes(const pestle_world_t* world);

PESTLE_EXTERN_C_END

#endif  // PESTLE_WORLD_H_

// SPDX-License-Identifier: Apache-2.0
// Worlds: processes, each with a rank, that run one plan on values of their own and
// meet at its collectives. The ranks may be processes, which mpirun, srun, torchrun or
// a script has started:
//
//   pestle_world_t* world;  // who this process is stands in its environment
//   pestle_world_create(context, NULL, &world);
//   pestle_run_options_t options = {sizeof(options), .world = world};
//   pestle_executable_run(executable, NULL, inputs, ..., &options);
//
// or threads of one process:
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
// A loaded plan (runtime.h).
typedef struct pestle_executable_s pestle_executable_t;

// Bits of pestle_world_options_t.flags.
typedef enum pestle_world_flag_e {
  // Ranks of one machine do not share memory: what they send goes through sockets.
  PESTLE_WORLD_NO_SHARED_MEMORY = 1,
  // Sums of floats are in the order of the ranks whoever carries them, as those of
  // strict plans are, and those of less than 256 KiB.
  PESTLE_WORLD_ORDERED = 2,
} pestle_world_flag_t;

// A store of texts by keys that processes share before they are ranks of a world: a
// framework's (PJRT's key-value calls), a launcher's. Its functions are called by the
// thread that calls pestle_world_create().
typedef struct pestle_world_store_t {
  size_t struct_size;
  void* user;
  // Gives |key| its value, which it has had not.
  pestle_status_t (*put)(void* user, const char* key, const char* value);
  // Waits until |key| has a value, |timeout_ms| at most (DEADLINE_EXCEEDED), and copies
  // it with its end to |out_value|. RESOURCE_EXHAUSTED: it has no |capacity| bytes.
  pestle_status_t (*get)(void* user, const char* key, int64_t timeout_ms,
                         char* out_value, size_t capacity);
} pestle_world_store_t;

// Zero-initialise and set |struct_size|. Texts are borrowed during the call.
typedef struct pestle_world_options_t {
  size_t struct_size;
  int64_t deadline_ms;  // that a rank waits for another one; 0: 60,000
  // That ranks wait for all to come, and for what their devices meet by; 0: 300,000.
  int64_t create_deadline_ms;
  // From here on for pestle_world_create() alone.
  int32_t rank, size;  // size 0: what the environment says
  // "tcp://HOST:PORT", where rank 0 listens and all others find it. NULL: what the
  // environment says.
  const char* address;
  // 64 hexadecimal digits that all ranks have alike. NULL: PESTLE_WORLD_SECRET, or else
  // the file "world-secret" in the cache folder, which the user alone can read and
  // which is made where it is not there.
  const char* secret;
  uint32_t flags;  // pestle_world_flag_t
  // The backend that carries the bytes, "mpi"; NULL: PESTLE_WORLD_TRANSPORT, or else
  // "host", Pestle's own sockets and shared memory.
  const char* transport;
  // How the others find rank 0, which listens on a port that is free, of loopback or of
  // the host in |address| or PESTLE_WORLD. |size| must be set. Where neither |secret|
  // nor PESTLE_WORLD_SECRET is set, rank 0 makes one for the world and puts it there
  // too. NULL: all know where rank 0 listens. Borrowed during the call.
  const pestle_world_store_t* store;
  const char* name;  // of the world in |store|: another one for each world
} pestle_world_options_t;

// Fills |out_ranks|, |size| of them, with the ranks of a new world. A rank runs one
// plan at a time; all ranks run the same plans in the same order, on threads of
// their own. |options| may be NULL. INVALID_ARGUMENT: a size below 1 or above
// 65,536, a deadline below 0.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_world_create_local(
    pestle_context_t* context, int32_t size,
    const pestle_world_options_t* options, pestle_world_t** out_ranks);
// Makes this process a rank of a world of several processes; returns when all ranks
// have come. Who it is stands in |options|, or, where these have no size or are NULL, in
// the environment, whichever is there first: PESTLE_WORLD=tcp://HOST:PORT with RANK and
// WORLD_SIZE (or the rank of a launcher); what torchrun sets (the port is then the one
// after MASTER_PORT); OMPI_COMM_WORLD_RANK and _SIZE (mpirun); PMI_RANK and PMI_SIZE
// (mpiexec); PMIX_RANK with WORLD_SIZE; SLURM_PROCID (srun); MASTER_ADDR and MASTER_PORT
// with RANK and WORLD_SIZE. Deadlines that are 0 are PESTLE_WORLD_DEADLINE_MS and
// PESTLE_WORLD_CREATE_MS where these are set. PESTLE_WORLD_SHM=0 means
// PESTLE_WORLD_NO_SHARED_MEMORY, and PESTLE_WORLD_ORDERED=1 what its name says.
//
// A rank that dies ends the world within a second: all others fail with UNAVAILABLE and
// its number. One that lives and does not come to a collective ends it after the
// deadline, with DEADLINE_EXCEEDED. Ranks that run other plans fail with INCOMPATIBLE.
// The first failure counts for all.
//
// NOT_FOUND: the environment has no rank. INVALID_ARGUMENT: what it says is wrong.
// DEADLINE_EXCEEDED: ranks have not come, with their numbers. UNAVAILABLE: rank 0
// cannot listen, does not know the secret, or a rank has gone meanwhile.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_world_create(
    pestle_context_t* context, const pestle_world_options_t* options,
    pestle_world_t** out_world);
// What the first run of |executable| in |world| does before it: the ranks find out
// whether they have the same plan, and their devices how they meet. All ranks call it, and
// it waits for them, so that each needs a thread of its own; nothing may be running in
// |world|. Runs of |executable| that follow meet nobody before they begin: one thread may
// queue those of several ranks on streams. A failure ends the world. Fails as
// pestle_executable_run() does.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_world_prepare(pestle_world_t* world, pestle_executable_t* executable);
// Adds a reference to a rank.
PESTLE_API void pestle_world_retain(pestle_world_t* world);
// Drops a reference; NULL is allowed. Runs that are queued hold their own. The last of a
// world of processes leaves it: rank 0 then waits until the others have done so, but no
// longer than 10 seconds, or one second where the world has failed.
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
// Bytes of tensors that this rank has read of others so far, where ranks are threads;
// that it has sent, where they are processes.
PESTLE_API uint64_t pestle_world_bytes(const pestle_world_t* world);

PESTLE_EXTERN_C_END

#endif  // PESTLE_WORLD_H_

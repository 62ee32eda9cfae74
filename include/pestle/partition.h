// SPDX-License-Identifier: Apache-2.0
// One module over a mesh of processes: where its arguments and results lie, and what
// each process runs.
//
//   pestle_module_set_mesh(module, "data=2,model=4");    // 8 processes
//   pestle_module_shard(module, "x=data,-");             // rows of x by data
//   pestle_module_shard(module, "*.weight=-,model");     // columns of all weights
//   pestle_partition(context, module, NULL, NULL);       // now it is each one's part
//
// Process n stands at the place n of the mesh, its last axis fastest. What is not said
// follows from what is: shardings go from values to those that are made of them. Values
// of which a process needs more than it has are gathered. pestle_compile() does what
// pestle_partition() does, where it was not done. A module that was read from StableHLO
// says its mesh and shardings itself (sdy.mesh, sdy.sharding).
#ifndef PESTLE_PARTITION_H_
#define PESTLE_PARTITION_H_

#include "pestle/compile.h"

PESTLE_EXTERN_C_BEGIN

// Gives |module| a mesh: "data=2,model=4", up to 8 axes of a name and an extent of at
// least 1. Its processes are the product. INVALID_ARGUMENT: another text, more than 2^20
// processes, a module that has a mesh or processes already. Not thread-safe.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_module_set_mesh(pestle_module_t* module, const char* axes);

// Says where arguments, results and named constants (weights) of |module|, which has a
// mesh by pestle_module_set_mesh(), lie: "PATTERN=SPEC". The pattern is a name, '*' in it
// any number of letters; an argument without a name is "arg0", "arg1" by its place. The
// spec has an entry a dim, with commas between: an axis, axes with '+' between, '-' for a
// dim that stays whole, '?' for one of which nothing is said. Later calls win.
// |*out_count|, which may be NULL, gets how many values the pattern fits.
// INVALID_ARGUMENT: an axis that is not there or used twice, another number of dims than
// a value has, extents that are no multiples; NOT_FOUND: the pattern fits nothing. Not
// thread-safe.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_module_shard(
    pestle_module_t* module, const char* rule, size_t* out_count);

// Makes |module| what each of its processes runs, in place: its arguments and results
// become their parts. A module without a mesh stays as it is. |device| and |options| may
// be NULL; of the options numerics counts: under strict no sum of floats is cut into
// summands. After an error the module may be between two passes. MALFORMED: a mesh
// that is not there or has another number of devices, a sharding of another rank.
// UNSUPPORTED: meshes that do not fit each other, extents that are no multiples of their
// parts.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_partition(
    pestle_context_t* context, pestle_module_t* module, pestle_device_t* device,
    const pestle_compile_options_t* options);

// Of an argument, or a result, of a module that was divided: where the part of process
// |process| begins in the whole, an entry a dim in |out_starts|. |*out_first|: no
// process before it has the same part. A value that every process has begins at 0.
// INVALID_ARGUMENT: there is no such value or process. Thread-safe while nobody changes
// the module.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_function_part(
    const pestle_function_t* function, bool of_result, size_t index,
    int32_t process, int64_t* out_starts, bool* out_first);

// How many processes |module| runs on: its partitions times its replicas.
PESTLE_API int64_t pestle_module_processes(const pestle_module_t* module);

PESTLE_EXTERN_C_END

#endif  // PESTLE_PARTITION_H_

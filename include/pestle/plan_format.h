// SPDX-License-Identifier: Apache-2.0
// The bytes of a plan: what the compiler writes (compile/plan_build.c), the
// cache stores and the runtime maps. Position-free, little-endian, every part at an offset from the start of
// the plan. A plan file is machine code: loading one is trusting its maker. The
// checksum and the bounds checks of pestle_plan_load() catch damage, not
// malice.
//
// The structs of one PESTLE_PLAN_VERSION are frozen.
//
// Layout: pestle_plan_header_t, then the sections in any order, 64-byte
// aligned.
//
// Contents:
// - The file
// - Locations, constants and devices
// - Inputs and outputs
// - Buffers and kernels
// - Calls and collectives
// - Steps
#ifndef PESTLE_PLAN_FORMAT_H_
#define PESTLE_PLAN_FORMAT_H_

#include <stdint.h>

#include "pestle/collective.h"
#include "pestle/types.h"

// --- The file ---

#define PESTLE_PLAN_MAGIC "PSTLPLN1"
#define PESTLE_PLAN_VERSION 10u

// Constants of at least so many bytes lie outside of a plan that is not to be
// self-contained. Below it a file and a mapping of their own cost more than a
// second copy does.
#define PESTLE_PLAN_EXTERNAL_CONSTANT 16384u

// The header's checksum is of the bytes from here on.
#define PESTLE_PLAN_CHECKED_FROM 32

// |count| records of a kind, or bytes, at |offset|.
typedef struct pestle_plan_section_t {
  uint64_t offset, count;
} pestle_plan_section_t;

// Offset into the strings section (0: ""); strings end in 0.
typedef uint32_t pestle_plan_str_t;

typedef struct pestle_plan_header_t {
  char magic[8];
  uint32_t version;
  uint32_t header_size;
  uint64_t size;      // of the whole plan
  uint64_t checksum;  // XXH3-64 of the bytes from offset 32 to |checked|
  // -- covered by the checksum from here --
  uint64_t signature[2];  // of the module
  uint64_t build_id;      // of libpestle
  pestle_plan_str_t name;
  uint32_t numerics;
  int64_t arena_size;                   // bytes, 64-aligned; one arena a run
  int64_t lower_bound;                  // the largest live set
  int64_t scratch_size;                 // bytes a thread, 64-aligned
  pestle_plan_section_t strings;        // bytes
  pestle_plan_section_t devices;        // pestle_plan_device_t
  pestle_plan_section_t inputs;         // pestle_plan_io_t
  pestle_plan_section_t outputs;        // pestle_plan_io_t
  pestle_plan_section_t kernels;        // pestle_plan_kernel_t
  pestle_plan_section_t bindings;       // pestle_plan_binding_t
  pestle_plan_section_t steps;          // pestle_plan_step_t
  pestle_plan_section_t constant_refs;  // pestle_plan_constant_ref_t
  pestle_plan_section_t code;           // bytes; artifacts
  pestle_plan_section_t calls;          // pestle_plan_call_t
  pestle_plan_section_t call_tensors;   // pestle_plan_tensor_t
  pestle_plan_section_t locations;      // pestle_plan_location_t
  pestle_plan_section_t location_ids;   // uint32_t: numbers of locations
  // The plan runs as |replicas| x |partitions| processes; 1 and 1: alone.
  int32_t replicas, partitions;
  pestle_plan_section_t collectives;  // pestle_plan_collective_t
  pestle_plan_section_t groups;       // int32_t: numbers of processes
  // Behind |checked| bytes lie constants of which a process has its own alone: their
  // hashes are checked where they are taken, so that nobody reads all of them.
  uint64_t checked;
  pestle_plan_section_t parts;        // pestle_plan_part_t
  pestle_plan_section_t part_places;  // pestle_plan_part_place_t
} pestle_plan_header_t;

// --- Locations, constants and devices ---

// Where ops of the module came from. A location's number is its place here: the
// same for all plans of one module, whatever the target and the options. Names are
// no part of what the plan cache compares: a plan from there has those of the
// module that it was compiled from.
typedef struct pestle_plan_location_t {
  pestle_plan_str_t op;          // one that is there: "dot_general"
  pestle_plan_str_t name, file;  // "": none
  uint32_t line, column;         // 0: none
  uint32_t reserved;
} pestle_plan_location_t;

// A packed constant: in the plan, or found by its content where the plan is
// loaded (the context's table, a file of the cache). A plan without external
// ones is self-contained: what pestle_plan_save() writes.
typedef struct pestle_plan_constant_ref_t {
  uint64_t hash[2];  // XXH3-128 of the bytes, low half first
  uint64_t key[2];   // of what was packed and how; 0: unknown
  uint64_t size;
  uint64_t offset;  // from the start of the plan, 64-aligned; external: 0
  uint32_t external;
  uint32_t reserved;
} pestle_plan_constant_ref_t;

// Of |partitions| processes each has a part of its own, of |size| bytes: partition i has
// what place |first| + i says.
typedef struct pestle_plan_part_t {
  uint64_t size;
  uint32_t first;  // of part_places
  uint32_t reserved;
} pestle_plan_part_t;

// A piece of a constant. Processes load the constants that their places name.
typedef struct pestle_plan_part_place_t {
  uint64_t offset;  // in the constant, 64-aligned
  uint32_t constant;
  uint32_t reserved;
} pestle_plan_part_place_t;

// A device that steps run on, and what it must have. On the first one lie arena,
// inputs, outputs and constants. If it is no CPU, there may be CPUs beside it:
// what their kernels are bound to is copied there and, if written, back.
typedef struct pestle_plan_device_t {
  pestle_plan_str_t backend;  // "llvm"
  int32_t device_type;
  int32_t index;                // suggested; the executable may choose another
  pestle_plan_str_t cpu;        // compiled for
  pestle_plan_str_t features;   // "+avx2,+fma": all needed
  pestle_plan_str_t toolchain;  // toolchain_id() at compile time
  pestle_plan_str_t build_id;   // of the backend plugin
  uint32_t reserved;
} pestle_plan_device_t;

// --- Inputs and outputs ---

typedef struct pestle_plan_io_t {
  pestle_plan_str_t name;
  uint8_t dtype;
  uint8_t rank;
  uint8_t
      bounded;  // outputs: dims are bounds, the real ones come after the run
  // What the address must be a multiple of for the steps to use the memory
  // itself. What lies otherwise is copied.
  uint8_t align_log2;
  int64_t dims[PESTLE_MAX_RANK];
  uint64_t size;  // bytes
  // bounded outputs: arena offset of |rank| int64 extents, written by a step
  int64_t shape_offset;
  // outputs: the input whose bytes lie in the output's storage when the steps
  // begin, or -1. Such an input has no storage of its own: steps find it in the
  // output's. inputs: the output of which that is so, or -1.
  int32_t alias;
  // Of one whose elements, i32, are the numbers of strings: which strings
  // (docs/adr/035), "" of all others.
  pestle_plan_str_t dictionary;
} pestle_plan_io_t;

// --- Buffers and kernels ---

typedef enum pestle_plan_storage_e {
  PESTLE_PLAN_ARENA = 0,
  PESTLE_PLAN_INPUT = 1,
  PESTLE_PLAN_OUTPUT = 2,
  PESTLE_PLAN_CONSTANT = 3,
  PESTLE_PLAN_PART = 4,  // of a constant, this process' own
} pestle_plan_storage_t;

typedef enum pestle_plan_binding_flag_e {
  // The launch writes to it: what a kernel that runs on another device than
  // its plan is copied back for. Of the arena or an output only.
  PESTLE_PLAN_WRITTEN = 1,
} pestle_plan_binding_flag_t;

// A piece of memory: |size| bytes at |offset| of a storage; |index| of the
// input, output, constant or part.
typedef struct pestle_plan_binding_t {
  uint16_t storage;  // pestle_plan_storage_t
  uint16_t flags;    // pestle_plan_binding_flag_t
  uint32_t index;
  uint64_t offset;
  uint64_t size;
} pestle_plan_binding_t;

// Estimated time of a kernel for which one more thread is worth waking. Waking one
// that sleeps takes some 10 us, one that spins, as between the kernels of a run, less
// than 1 us. Measured on two cores: with 4 us here an LSTM's steps (8 us of weights,
// which two L2 hold) take half of what they did with 8 us; 3 us gains nothing more.
#define PESTLE_PLAN_NS_PER_THREAD 4000

// A kernel as compiled. Identical kernels are one record.
typedef struct pestle_plan_kernel_t {
  pestle_plan_str_t name;
  // Lines: graph ops with their sources, choices of the schedule, its rows.
  pestle_plan_str_t note;
  uint32_t device;  // index into devices
  uint32_t arg_count, param_count;
  uint32_t shared_bytes;
  uint64_t code_offset;  // into the code section
  uint64_t code_size;
  int64_t group[3];  // extents; a CPU runs [0, group[0]) in pieces
  uint64_t work;     // estimated ns of the whole launch on one thread, of which
                     // PESTLE_PLAN_NS_PER_THREAD make another worth waking
  uint64_t hash[2];  // of the Kernel IR
  // For profiles: operations (0: not counted; a function like exp counts 20), how
  // many of them are in products of f16 or bf16 and in those of bytes, and what it
  // must read and write once.
  uint64_t flops, half_flops, byte_flops, bytes;
  // Locations of the ops that it computes: of location_ids, ascending.
  uint32_t first_location, location_count;
} pestle_plan_kernel_t;

// --- Calls and collectives ---

typedef enum pestle_plan_call_kind_e {
  // A function that the context has under |name| (pestle/custom_call.h).
  PESTLE_PLAN_CALL_CUSTOM = 0,
  // The op |name| by the library of backend |version| (pestle/plugin.h).
  PESTLE_PLAN_CALL_LIBRARY = 1,
  // Eval |config| of the op |name| (pestle/custom_op.h), |version| in decimal, with
  // the attributes |dictionary|.
  PESTLE_PLAN_CALL_EVAL = 2,
} pestle_plan_call_kind_t;

// U+001E, which texts of modules have only escaped.
#define PESTLE_PLAN_COMPUTATION_END '\x1e'

// A function that is found by its name where the plan is loaded. An operand that the
// module has as the alias of a result is bound to where the result is, which holds it.
typedef struct pestle_plan_call_t {
  uint32_t kind;  // pestle_plan_call_kind_t
  pestle_plan_str_t name;
  pestle_plan_str_t version;     // which it must have; of a library, whose
  pestle_plan_str_t config;      // a string
  pestle_plan_str_t dictionary;  // the text of one
  // Texts of modules, PESTLE_PLAN_COMPUTATION_END behind each: what the function is
  // given of the module's functions.
  pestle_plan_str_t computations;
  uint32_t operand_count, result_count;
  uint32_t first;  // into call_tensors: the operands', then the results'
  // Of a library op pestle_library_flag_t; of an eval pestle_plan_eval_flag_t.
  uint32_t flags;
} pestle_plan_call_t;

typedef enum pestle_plan_eval_flag_e {
  PESTLE_PLAN_EVAL_TRANSIENT = 1,  // no other process has the function
} pestle_plan_eval_flag_t;

// What a call's bindings are: dense, row-major.
typedef struct pestle_plan_tensor_t {
  uint8_t dtype;
  uint8_t rank;
  uint16_t reserved[3];
  int64_t dims[PESTLE_MAX_RANK];
} pestle_plan_tensor_t;

// What a collective does; up to BROADCAST as in pestle/collective.h.
typedef enum pestle_plan_collective_kind_e {
  PESTLE_PLAN_ALL_REDUCE = PESTLE_COLLECTIVE_ALL_REDUCE,
  PESTLE_PLAN_ALL_GATHER = PESTLE_COLLECTIVE_ALL_GATHER,
  PESTLE_PLAN_REDUCE_SCATTER = PESTLE_COLLECTIVE_REDUCE_SCATTER,
  PESTLE_PLAN_ALL_TO_ALL = PESTLE_COLLECTIVE_ALL_TO_ALL,
  PESTLE_PLAN_PERMUTE = PESTLE_COLLECTIVE_PERMUTE,
  PESTLE_PLAN_BROADCAST = PESTLE_COLLECTIVE_BROADCAST,
  // One u32 result: which partition, or replica, the process is.
  PESTLE_PLAN_PARTITION_ID = 6,
  PESTLE_PLAN_REPLICA_ID = 7,
} pestle_plan_collective_kind_t;

// One collective of |tensor_count| tensors at once, all of one dtype. Its groups are
// |group_count| rows of |group_size| numbers of processes from |first_group| on, -1
// where a row has no more; of PERMUTE who sends and who receives.
typedef struct pestle_plan_collective_t {
  uint32_t kind;       // pestle_plan_collective_kind_t
  uint32_t reduction;  // pestle_reduction_t, of those that combine
  uint32_t dtype;
  uint32_t tensor_count;
  uint32_t first_group, group_count, group_size;
  uint32_t reserved;
  uint64_t hash;  // of what all processes must have alike
} pestle_plan_collective_t;

// --- Steps ---

typedef enum pestle_plan_step_kind_e {
  // a kernel: |kernel|, bindings [first, first + count) in arg_slot order
  PESTLE_PLAN_LAUNCH = 0,
  // copy bindings[first] to bindings[first + 1] (equal sizes), where the plan's
  // first device has them
  PESTLE_PLAN_COPY = 1,
  // go on at step |target|
  PESTLE_PLAN_JUMP = 2,
  // go on at |target| when the i1 or i32 at bindings[first] is zero
  PESTLE_PLAN_JUMP_IF_ZERO = 3,
  // case: the i32 at bindings[first], or count - 1 when out of range, picks one
  // of the |count| steps from |target| on, which are jumps
  PESTLE_PLAN_JUMP_TABLE = 4,
  PESTLE_PLAN_END = 5,
  // a call: number |kernel|, bindings [first, first + count) of its operands and
  // then its results
  PESTLE_PLAN_CALL = 6,
  // collective number |kernel|, bindings [first, first + count) of what is sent and
  // then, as many, of what is received; PARTITION_ID and REPLICA_ID send nothing
  PESTLE_PLAN_COLLECTIVE = 7,
  // a loop whose trips are known: go back to |target|, an earlier step, until the
  // steps from there to here have run |count| times; |kernel| is how many such
  // steps stand before this one
  PESTLE_PLAN_REPEAT = 8,
} pestle_plan_step_kind_t;

typedef struct pestle_plan_step_t {
  uint32_t kind;    // pestle_plan_step_kind_t
  uint32_t device;  // index into devices
  uint32_t kernel;
  uint32_t first, count;  // bindings; of REPEAT |count| trips and none
  uint32_t target;
  pestle_plan_str_t label;  // graph ops, for profiles and errors
  // Locations of the ops that it is for: of location_ids, ascending.
  uint32_t first_location, location_count;
  uint32_t reserved;
} pestle_plan_step_t;

#endif  // PESTLE_PLAN_FORMAT_H_

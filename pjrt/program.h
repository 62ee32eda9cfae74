// SPDX-License-Identifier: Apache-2.0
// A compiled program: the executable, and what the framework asks about it, all
// prepared when it is made, since most of those questions may not fail.
#ifndef PESTLE_PJRT_PROGRAM_H_
#define PESTLE_PJRT_PROGRAM_H_

#include "base/arena.h"
#include "base/hash.h"
#include "pjrt/client.h"
#include "pjrt/options.h"
#include "pjrt/shape.h"

enum { PESTLE_PJRT_COSTS = 4 };

// Positions of tokens, which order effects in the framework's lists of inputs and
// outputs and are no values of the executable. Ascending.
typedef struct pestle_pjrt_tokens_t {
  const uint32_t* positions;
  size_t count;
} pestle_pjrt_tokens_t;

struct PJRT_Executable {
  struct pestle_pjrt_program_t* program;
};

// Inputs and outputs are the framework's.
typedef struct pestle_pjrt_program_t {
  pestle_refcount_t references;
  // What every owner of an executable has, with a hold of the program each: to give
  // one away cannot fail.
  PJRT_Executable handle;
  PJRT_Client* client;
  // By the module's processes (number replica * partitions + partition), which are ranks
  // of a world where there are several.
  PJRT_Device** rank_devices;
  size_t rank_count;
  // Those of this process, in the same order.
  PJRT_Device** devices;
  size_t device_count;
  PJRT_LogicalDeviceIds* logical_ids;
  pestle_executable_t** executables;  // a hold each
  const char* assignment;             // a serialised xla.DeviceAssignmentProto
  size_t assignment_size;
  // Serialised xla.OpSharding of inputs and outputs; NULL: of one device.
  const char *const *input_shardings, *const *output_shardings;
  const size_t *input_sharding_sizes, *output_sharding_sizes;
  pestle_plan_t* plan;
  pestle_executable_t* executable;  // on the first of |devices|, borrowed
  uint64_t prepared;     // the world in which it may be run (worlds.h)
  pestle_arena_t arena;  // of what follows
  const char* name;
  uint64_t signature[2];
  char fingerprint[PESTLE_HASH128_HEX_SIZE];
  pestle_pjrt_options_t options;
  size_t input_count;
  pestle_pjrt_tokens_t input_tokens;
  const uint32_t* input_places;  // of each input of the plan among the inputs
  const pestle_pjrt_shape_t* inputs;
  const bool* is_donor;  // of each input: the program takes its memory
  size_t donor_count;
  size_t output_count;
  pestle_pjrt_tokens_t output_tokens;
  const uint32_t* output_places;
  const pestle_pjrt_shape_t* outputs;
  const PJRT_Buffer_Type* output_types;
  const int64_t* output_dims;  // of all outputs, one behind the other
  const size_t* output_ranks;
  const char* const* memory_kinds;  // as many as there are inputs or outputs
  const size_t* memory_kind_sizes;
  PJRT_Layouts_MemoryLayout **input_layouts, **output_layouts;
  PJRT_NamedValue costs[PESTLE_PJRT_COSTS];
  int64_t code_bytes, argument_bytes, output_bytes, alias_bytes, temp_bytes;
  // The Python callbacks that it calls: it is never run by the caller's thread
  // then.
  const int64_t* callbacks;
  size_t callback_count;
  bool has_orders;  // something is not row-major
  bool
      has_foreign;  // it calls functions of jax.ffi, whose effects are not known
  const char* text;  // as it came, or NULL: nobody asked to keep it
  size_t text_size;
  const char* code;  // to be linked with others; NULL: it will not be
  size_t code_size;
  const char* option_bytes;  // the framework's options, as they came
  size_t option_size;
  atomic_llong expected_ns;  // what a run takes
  // For merging (merge.h): what its runs have taken since it was compiled into a
  // sequence, and whether a sequence begins with it.
  atomic_llong spent_ns;
  atomic_bool begins_sequence;
} pestle_pjrt_program_t;

struct PJRT_LoadedExecutable {
  pestle_pjrt_program_t* program;
  atomic_bool is_deleted;
};

// What a program says of itself beside the plan: name, tokens, donors. Borrowed
// during the call.
typedef struct pestle_pjrt_program_info_t {
  const char* name;
  uint64_t signature[2];
  pestle_pjrt_tokens_t input_tokens, output_tokens;
  const bool* is_donor;  // of each input of the plan, of which there are
  size_t input_count;    // so many
  // XLA's texts of what the plan's inputs and outputs are parts of, "" of what is
  // whole; NULL: of one device.
  const char* const* input_shardings;
  const char* const* output_shardings;
  size_t output_count;  // as many
  // How inputs, then outputs of the plan lie, PESTLE_MAX_RANK axes each, the slowest
  // first; NULL: all are row-major. The plan has them as they lie.
  const uint8_t* orders;
  size_t order_count;
} pestle_pjrt_program_info_t;

// Loads |plan|, which is retained.
PJRT_Error* pestle_pjrt_program_create(PJRT_Client* client, pestle_plan_t* plan,
                                       const pestle_pjrt_options_t* options,
                                       const pestle_pjrt_program_info_t* info,
                                       pestle_pjrt_program_t** out_program);
void pestle_pjrt_program_retain(pestle_pjrt_program_t* program);
void pestle_pjrt_program_release(pestle_pjrt_program_t* program);

// What runs on |device|.
pestle_executable_t* pestle_pjrt_program_on(
    const pestle_pjrt_program_t* program, const PJRT_Device* device);

// Keeps a copy of what |program| was made of.
PJRT_Error* pestle_pjrt_program_keep_text(pestle_pjrt_program_t* program,
                                          const char* text, size_t size);

// Keeps a copy of the module as it came, for merging.
PJRT_Error* pestle_pjrt_program_keep_code(pestle_pjrt_program_t* program,
                                          const char* code, size_t size);
// Keeps a copy of the options as the framework gave them.
PJRT_Error* pestle_pjrt_program_keep_options(pestle_pjrt_program_t* program,
                                             const char* bytes, size_t size);

// A handle on |program|, which is taken over, also on failure.
PJRT_Error* pestle_pjrt_load(pestle_pjrt_program_t* program,
                             PJRT_LoadedExecutable** out_executable);

#endif  // PESTLE_PJRT_PROGRAM_H_

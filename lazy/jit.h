// SPDX-License-Identifier: Apache-2.0
// What a function is: jit.c makes it and its executables, jit_call.c calls it.
#ifndef PESTLE_LAZY_JIT_H_
#define PESTLE_LAZY_JIT_H_

#include "lazy/lazy.h"

// A function of so many sets of types forgets the oldest.
enum {
  PESTLE_JIT_ENTRIES = 64,
  PESTLE_JIT_MISSES = 64,  // that are remembered
  PESTLE_JIT_MISS_SIZE = 160,
};

typedef struct pestle_jit_entry_t {
  pestle_executable_t* executable;
  struct pestle_jit_entry_t* next;  // of the forgotten ones
  pestle_type_t types[];            // of the arguments, hidden ones too
} pestle_jit_entry_t;

struct pestle_jit_s {
  pestle_refcount_t refcount;
  pestle_lazy_t* lazy;
  pestle_device_t* device;
  pestle_module_t* module;
  pestle_compile_options_t options;
  size_t argument_count;  // hidden ones too
  pestle_array_t** hidden;
  size_t hidden_count;
  uint32_t* donated;  // arguments that each call gives away
  size_t donated_count;
  pestle_mutex_t mutex;  // of what follows
  atomic_uint forks;     // of the context, when the mutex was made
  pestle_jit_entry_t* entries[PESTLE_JIT_ENTRIES];
  size_t entry_count;
  // -- without the mutex: the entry of the latest call, and calls that look at it or
  // run it. Entries that are forgotten meanwhile wait for the last of those. --
  _Atomic(pestle_jit_entry_t*) latest;
  atomic_uint readers;
  _Atomic(pestle_jit_entry_t*) forgotten;
  // -- under the mutex --
  char (*misses)[PESTLE_JIT_MISS_SIZE];  // a ring; made at the first
  uint64_t miss_count;
};

static inline pestle_array_t* pestle_jit_argument(
    const pestle_jit_t* jit, pestle_array_t* const* arguments, size_t i) {
  size_t given = jit->argument_count - jit->hidden_count;
  return i < given ? arguments[i] : jit->hidden[i - given];
}

// The executable of the arguments' types, if the latest call had it, until
// pestle_jit_leave(); or NULL, and there is nothing to be left.
pestle_executable_t* pestle_jit_enter(pestle_jit_t* jit,
                                      pestle_array_t* const* arguments);
void pestle_jit_leave(pestle_jit_t* jit);
// The executable of the arguments' types, with a reference, or NULL.
pestle_executable_t* pestle_jit_find(pestle_jit_t* jit,
                                     pestle_array_t* const* arguments);
// The same, compiled.
PESTLE_NODISCARD pestle_status_t
pestle_jit_make(pestle_jit_t* jit, pestle_array_t* const* arguments,
                pestle_executable_t** out_executable);

#endif  // PESTLE_LAZY_JIT_H_

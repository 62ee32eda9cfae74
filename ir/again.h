// SPDX-License-Identifier: Apache-2.0
// Symbolic modules that are read again (ADR 023): those with ops whose results have
// extents by constants, by shapes or by values that are computed. Whoever reads text
// or bytecode gives a function that reads a source once; what it is read with, and
// how often, is here.
#ifndef PESTLE_IR_AGAIN_H_
#define PESTLE_IR_AGAIN_H_

#include "base/map.h"
#include "ir/graph.h"

// The most ops that are made of a source by reading or copying what it names more than once:
// calls in place, bodies of composites. A text of few lines can name bodies in bodies that
// have 2^lines.
enum { PESTLE_MOST_COPIED_OPS = 1 << 20 };

// What a source is read again with. An entry for each argument of the entry function.
typedef struct pestle_again_t {
  const char* entry;
  const pestle_type_t* types;
  const pestle_elements_t* values;  // or NULL
  const bool* fixed;  // those whose value counts, and is there; or NULL
  size_t count;
} pestle_again_t;

// What is read. |read| makes a module of it: as |again| says, or without bodies when
// that is NULL. On failure it sets |marks| of the arguments whose values an op could
// not be made without.
typedef struct pestle_again_source_t pestle_again_source_t;
struct pestle_again_source_t {
  pestle_context_t* context;
  const char* name;  // of the file
  pestle_str_t bytes;
  pestle_status_t (*read)(const pestle_again_source_t* source,
                          const pestle_again_t* again, bool* marks,
                          pestle_module_t** out_module);
};

// The module of |source|, whose first reading ended with |failure|, which it takes
// over: read again when constants are all that it wants, else one that keeps a copy
// of the source and is read again when it is specialised. |failure| is the result
// where the source has no entry function.
PESTLE_NODISCARD pestle_status_t
pestle_again_read(const pestle_again_source_t* source, pestle_status_t failure,
                  pestle_module_t** out_module);
// Adds the names that the calls in |entry| have to |called|: those of regions, whose
// functions are read beside the entry.
PESTLE_NODISCARD pestle_status_t
pestle_again_callees(const pestle_function_t* entry, pestle_map_t* called);
// Marks the arguments of the function around |value| that it is computed from, for
// want of which a reading ended with |failure|; gives that back, or OUT_OF_MEMORY.
PESTLE_NODISCARD pestle_status_t pestle_again_mark(pestle_status_t failure,
                                                   pestle_allocator_t allocator,
                                                   const pestle_value_t* value,
                                                   bool* marks);

#endif  // PESTLE_IR_AGAIN_H_

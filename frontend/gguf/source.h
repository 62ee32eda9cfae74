// SPDX-License-Identifier: Apache-2.0
// The GGUF front end: a file of weights becomes the graph of its architecture, in the form
// that builders of decoders write: ids, a mask of positions and caches in, logits and caches
// with new rows out. What words the ids are is not looked at.
//
// A source is the file that modules are made of, counted by references: each keeps it, since
// constants point into it, and what is made at first has no body and makes itself for each
// set of extents. Immutable once made, so that threads may share it.
#ifndef PESTLE_FRONTEND_GGUF_SOURCE_H_
#define PESTLE_FRONTEND_GGUF_SOURCE_H_

#include "frontend/gguf/model.h"
#include "frontend/gguf/parts.h"
#include "frontend/info.h"
#include "ir/graph.h"

typedef struct pestle_gguf_source_t {
  uint32_t refs;  // atomic
  pestle_context_t* context;
  pestle_arena_t arena;
  pestle_gguf_parts_t parts;  // none: the bytes are in |arena|
  const char* name;           // of the file
  pestle_gguf_file_t file;
  pestle_gguf_model_t model;
} pestle_gguf_source_t;

// The file at |path|, or, where |data| is given, a copy of its |size| bytes, called |path|.
PESTLE_NODISCARD pestle_status_t pestle_gguf_import(
    pestle_context_t* context, const char* path, const void* data, size_t size,
    const pestle_import_options_t* options, pestle_module_t** out_module);

// The arguments of every module: ids, the mask, and of each layer two caches.
enum {
  PESTLE_GGUF_IDS,
  PESTLE_GGUF_MASK,
  PESTLE_GGUF_CACHES,
};
// Fills the body of |function|, whose arguments have the extents (graph.c).
PESTLE_NODISCARD pestle_status_t pestle_gguf_build(
    const pestle_gguf_source_t* source, pestle_function_t* function);

// Adds what the model at |path| says to |info|, which has what its module says (info.c).
PESTLE_NODISCARD pestle_status_t pestle_gguf_take_info(const char* path,
                                                       pestle_info_t* info);

#endif  // PESTLE_FRONTEND_GGUF_SOURCE_H_

// SPDX-License-Identifier: Apache-2.0
// A description of a model while it is made: what it says in the end, with the
// memory of it all.
#ifndef PESTLE_FRONTEND_INFO_H_
#define PESTLE_FRONTEND_INFO_H_

#include "base/arena.h"
#include "base/file.h"
#include "base/map.h"
#include "ir/graph.h"
#include "pestle/model_info.h"

#define PESTLE_FORMAT_ONNX "ONNX"
#define PESTLE_FORMAT_GGUF "GGUF"

// What pestle_model_info_t calls the format of a file, by its first bytes: what is
// nothing else is PESTLE_FORMAT_ONNX (import.c).
const char* pestle_import_format(const pestle_mapping_t* mapping);

typedef struct pestle_info_t {
  pestle_model_info_t info;  // first: what callers hold
  pestle_arena_t arena;
  pestle_map_t ops;  // name -> count
} pestle_info_t;

// Counts |count| more of the op called |name|.
PESTLE_NODISCARD pestle_status_t pestle_info_add_op(pestle_info_t* info,
                                                    pestle_str_t name,
                                                    uint64_t count);
// Adds a constant of |count| elements of |dtype|; one element is no weight.
void pestle_info_add_weight(pestle_info_t* info, pestle_dtype_t dtype,
                            uint64_t count);
// A copy of |text| in the arena; "" of none; NULL: out of memory.
const char* pestle_info_text(pestle_info_t* info, pestle_str_t text);

// Describes the ONNX model of |size| bytes at |data|; |module| is what was
// imported of it, or NULL.
PESTLE_NODISCARD pestle_status_t pestle_onnx_take_info(const void* data,
                                                       size_t size,
                                                       pestle_module_t* module,
                                                       pestle_info_t* info);

#endif  // PESTLE_FRONTEND_INFO_H_

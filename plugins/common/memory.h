// SPDX-License-Identifier: Apache-2.0
// A plugin's memory, all of it from the host: an arena for one call's scratch
// and a text that grows.
#ifndef PESTLE_PLUGINS_COMMON_MEMORY_H_
#define PESTLE_PLUGINS_COMMON_MEMORY_H_

#include "pestle/plugin.h"

typedef struct pestle_plugin_block_t pestle_plugin_block_t;

// Zero-initialise but for |host|; everything goes at once in deinit.
typedef struct pestle_plugin_arena_t {
  const pestle_host_t* host;
  pestle_plugin_block_t* head;
} pestle_plugin_arena_t;

// |count| zeroed elements, aligned to 16 bytes. NULL: out of memory.
void* pestle_plugin_arena_alloc(pestle_plugin_arena_t* arena, size_t count,
                                size_t element_size);
void pestle_plugin_arena_deinit(pestle_plugin_arena_t* arena);

// Zero-initialise but for |host|. A failed allocation is sticky.
typedef struct pestle_plugin_text_t {
  const pestle_host_t* host;
  char* data;
  size_t size, capacity;
  bool failed;
} pestle_plugin_text_t;

void pestle_plugin_text_append(pestle_plugin_text_t* text, const char* data,
                               size_t size);
void pestle_plugin_text_put(pestle_plugin_text_t* text, const char* string);
PESTLE_PRINTF(2, 3)
void pestle_plugin_text_format(pestle_plugin_text_t* text, const char* format,
                               ...);
// Appends |data| as comment lines that begin with |prefix|.
void pestle_plugin_text_comment(pestle_plugin_text_t* text, const char* prefix,
                                const char* data);
void pestle_plugin_text_deinit(pestle_plugin_text_t* text);
// Moves the text into a blob of exactly its size; OUT_OF_MEMORY when anything
// failed on the way. |text| is empty afterwards in either case.
PESTLE_NODISCARD pestle_status_t
pestle_plugin_text_take(pestle_plugin_text_t* text, pestle_blob_t* out_blob);

#endif  // PESTLE_PLUGINS_COMMON_MEMORY_H_

// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "plugins/common/error.h"

struct pestle_plugin_block_t {
  pestle_plugin_block_t* next;
  size_t size, used;  // both with this header
};

enum { HEADER = 64, BLOCK = 64 * 1024 };

void* pestle_plugin_arena_alloc(pestle_plugin_arena_t* arena, size_t count,
                                size_t element_size) {
  if (element_size && count > (SIZE_MAX / 4) / element_size) return NULL;
  size_t size = (count * element_size + 15) & ~(size_t)15;
  pestle_plugin_block_t* block = arena->head;
  if (!block || block->size - block->used < size) {
    size_t total = size + HEADER > BLOCK ? size + HEADER : BLOCK;
    block = arena->host->alloc(arena->host->self, total);
    if (!block) return NULL;
    *block = (pestle_plugin_block_t){arena->head, total, HEADER};
    arena->head = block;
  }
  void* result = (char*)block + block->used;
  block->used += size;
  return memset(result, 0, size);
}

void pestle_plugin_arena_deinit(pestle_plugin_arena_t* arena) {
  while (arena->head) {
    pestle_plugin_block_t* block = arena->head;
    arena->head = block->next;
    arena->host->free(arena->host->self, block, block->size);
  }
}

static bool grow(pestle_plugin_text_t* text, size_t size) {
  if (text->failed) return false;
  if (text->capacity - text->size >= size) return true;
  const pestle_host_t* host = text->host;
  size_t capacity = (text->size + size) * 2 + 256;
  char* data = host->alloc(host->self, capacity);
  if (!data) {
    text->failed = true;
    return false;
  }
  if (text->size) memcpy(data, text->data, text->size);
  if (text->data) host->free(host->self, text->data, text->capacity);
  text->data = data;
  text->capacity = capacity;
  return true;
}

void pestle_plugin_text_append(pestle_plugin_text_t* text, const char* data,
                               size_t size) {
  if (!size || !grow(text, size)) return;
  memcpy(text->data + text->size, data, size);
  text->size += size;
}

void pestle_plugin_text_put(pestle_plugin_text_t* text, const char* string) {
  pestle_plugin_text_append(text, string, strlen(string));
}

void pestle_plugin_text_format(pestle_plugin_text_t* text, const char* format,
                               ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int size = vsnprintf(NULL, 0, format, args);
  va_end(args);
  // vsnprintf() writes a 0 too, which the next piece overwrites.
  if (size < 0) {
    text->failed = true;
  } else if (size && grow(text, (size_t)size + 1)) {
    vsnprintf(text->data + text->size, (size_t)size + 1, format, again);
    text->size += (size_t)size;
  }
  va_end(again);
}

void pestle_plugin_text_comment(pestle_plugin_text_t* text, const char* prefix,
                                const char* data) {
  while (*data) {
    size_t size = strcspn(data, "\n");
    pestle_plugin_text_put(text, prefix);
    pestle_plugin_text_append(text, data, size);
    pestle_plugin_text_append(text, "\n", 1);
    data += size;
    if (*data == '\n') ++data;
  }
}

void pestle_plugin_text_deinit(pestle_plugin_text_t* text) {
  if (text->data) {
    text->host->free(text->host->self, text->data, text->capacity);
  }
  *text = (pestle_plugin_text_t){.host = text->host};
}

pestle_status_t pestle_plugin_text_take(pestle_plugin_text_t* text,
                                        pestle_blob_t* out_blob) {
  const pestle_host_t* host = text->host;
  *out_blob = (pestle_blob_t){0};
  size_t size = text->size;
  bool failed = text->failed;
  // The host frees a blob by its size, which is what was allocated; an empty
  // one has no memory, for which a host may have no answer but NULL.
  char* data = failed || !size ? NULL : host->alloc(host->self, size);
  if (data) memcpy(data, text->data, size);
  pestle_plugin_text_deinit(text);
  if (failed || (size && !data)) {
    return PESTLE_PLUGIN_ERROR(host, OUT_OF_MEMORY,
                               "no memory for a text of %zu bytes", size);
  }
  *out_blob = (pestle_blob_t){data, size};
  return NULL;
}

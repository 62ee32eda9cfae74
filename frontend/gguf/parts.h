// SPDX-License-Identifier: Apache-2.0
// The files of a model, mapped.
#ifndef PESTLE_FRONTEND_GGUF_PARTS_H_
#define PESTLE_FRONTEND_GGUF_PARTS_H_

#include "base/file.h"
#include "frontend/gguf/file.h"

typedef struct pestle_gguf_part_t {
  pestle_mapping_t mapping;
  const char* path;
  pestle_file_info_t info;  // when it was mapped
  struct pestle_gguf_part_t* next;
} pestle_gguf_part_t;

typedef struct pestle_gguf_parts_t {
  pestle_gguf_part_t* first;
} pestle_gguf_parts_t;

// Maps and reads the model at |path|, which may be the first of several files; |*out_parts| must
// be zeros. Fails as pestle_file_map() and pestle_gguf_read() do; NOT_FOUND: a part is missing;
// UNSUPPORTED: |path| is another part; MALFORMED: parts do not belong together. Both are to be
// freed also on failure.
PESTLE_NODISCARD pestle_status_t
pestle_gguf_open(const char* path, pestle_arena_t* arena,
                 pestle_gguf_parts_t* out_parts, pestle_gguf_file_t* out_file);
// UNSUPPORTED: |file| is one of several.
PESTLE_NODISCARD pestle_status_t
pestle_gguf_check_alone(const pestle_gguf_file_t* file);
// MALFORMED: a file has lost its end since it was mapped, where a read would end the process.
// One that was replaced by another is mapped as it was.
PESTLE_NODISCARD pestle_status_t
pestle_gguf_check_whole(const pestle_gguf_parts_t* parts);
void pestle_gguf_close(pestle_gguf_parts_t* parts);
// Gives pages of |data|, or all for NULL, back to the system.
void pestle_gguf_forget(const pestle_gguf_parts_t* parts, const void* data,
                        size_t size);

#endif  // PESTLE_FRONTEND_GGUF_PARTS_H_

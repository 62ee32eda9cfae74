// SPDX-License-Identifier: Apache-2.0
// A GGUF file as it lies: its metadata and the table of its tensors, views into its bytes.
// Nothing of what a file says is believed before it was compared with the file's size.
#ifndef PESTLE_FRONTEND_GGUF_FILE_H_
#define PESTLE_FRONTEND_GGUF_FILE_H_

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"

enum { PESTLE_GGUF_MAX_AXES = 4 };

// The kinds of metadata values, by the number that a file gives them.
typedef enum pestle_gguf_kind_e {
  PESTLE_GGUF_U8,
  PESTLE_GGUF_I8,
  PESTLE_GGUF_U16,
  PESTLE_GGUF_I16,
  PESTLE_GGUF_U32,
  PESTLE_GGUF_I32,
  PESTLE_GGUF_F32,
  PESTLE_GGUF_BOOL,
  PESTLE_GGUF_STRING,
  PESTLE_GGUF_ARRAY,
  PESTLE_GGUF_U64,
  PESTLE_GGUF_I64,
  PESTLE_GGUF_F64,
  PESTLE_GGUF_KINDS,
} pestle_gguf_kind_t;

typedef struct pestle_gguf_value_t {
  pestle_str_t key;
  pestle_gguf_kind_t kind;
  pestle_gguf_kind_t of;  // of an array's elements
  uint64_t count;         // of an array's elements; else 1
  const uint8_t* data;    // elements as they lie
  size_t size;            // their bytes
} pestle_gguf_value_t;

// A row of gguf_types.def.
typedef struct pestle_gguf_type_t {
  const char* name;
  uint32_t number;
  uint16_t elements, bytes;  // of a block
  uint8_t bits, group;
  bool has_least, is_half;
} pestle_gguf_type_t;

typedef struct pestle_gguf_tensor_t {
  pestle_str_t name;
  const pestle_gguf_type_t* type;
  uint32_t axes;
  // The first is the innermost: a matrix of |dims[1]| rows of |dims[0]|. Behind the last
  // axis they are 1.
  int64_t dims[PESTLE_GGUF_MAX_AXES];
  const uint8_t* data;
  size_t size;
  size_t offset;  // of |data| in the file
} pestle_gguf_tensor_t;

typedef struct pestle_gguf_file_t {
  uint32_t version;
  size_t value_count, tensor_count;
  pestle_gguf_value_t* values;
  pestle_gguf_tensor_t* tensors;
  pestle_map_t value_by_key, tensor_by_name;
} pestle_gguf_file_t;

// Whether |data| begins as a GGUF file does.
bool pestle_gguf_is(const void* data, size_t size);
// Reads the file of |size| bytes at |data|, which must stay. MALFORMED: it is cut off or
// says what cannot be; UNSUPPORTED: another version or order of bytes, or a tensor of a type
// that is not known. |out_file| is to be freed also on failure.
PESTLE_NODISCARD pestle_status_t pestle_gguf_read(const void* data, size_t size,
                                                  pestle_arena_t* arena,
                                                  pestle_gguf_file_t* out_file);
void pestle_gguf_file_deinit(pestle_gguf_file_t* file);

// NULL: there is no such key or tensor.
const pestle_gguf_value_t* pestle_gguf_find_value(
    const pestle_gguf_file_t* file, pestle_str_t key);
const pestle_gguf_tensor_t* pestle_gguf_find_tensor(
    const pestle_gguf_file_t* file, pestle_str_t name);

// Element |index| of |value| as a number; false: it is none, or none that fits.
bool pestle_gguf_as_i64(const pestle_gguf_value_t* value, uint64_t index,
                        int64_t* out);
bool pestle_gguf_as_f64(const pestle_gguf_value_t* value, uint64_t index,
                        double* out);
// |value| as text; false: it is no string.
bool pestle_gguf_as_text(const pestle_gguf_value_t* value, pestle_str_t* out);
// "u32", "string", ..
const char* pestle_gguf_kind_name(pestle_gguf_kind_t kind);

#endif  // PESTLE_FRONTEND_GGUF_FILE_H_

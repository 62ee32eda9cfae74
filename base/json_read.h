// SPDX-License-Identifier: Apache-2.0
// Reads JSON (RFC 8259) of files that others write into a tree.
#ifndef PESTLE_BASE_JSON_READ_H_
#define PESTLE_BASE_JSON_READ_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"

typedef enum pestle_json_kind_e {
  PESTLE_JSON_NULL,
  PESTLE_JSON_BOOL,
  PESTLE_JSON_NUMBER,
  PESTLE_JSON_STRING,
  PESTLE_JSON_ARRAY,
  PESTLE_JSON_OBJECT,
} pestle_json_kind_t;

typedef struct pestle_json_value_t {
  pestle_json_kind_t kind;
  bool truth;         // of BOOL
  const char* key;    // within an object
  pestle_str_t text;  // of STRING, ended by 0; of NUMBER, as it is written
  size_t count;       // of ARRAY and OBJECT
  const struct pestle_json_value_t *first, *next;
} pestle_json_value_t;

// All of |*out_value| lies in |arena|. MALFORMED, with line and column: it is no JSON, a
// string is not UTF-8 or has the character 0, or values lie deeper than 64 within others.
PESTLE_NODISCARD pestle_status_t
pestle_json_read(pestle_str_t text, pestle_arena_t* arena,
                 const pestle_json_value_t** out_value);
// What |value| has at |path|, keys with dots between them ("model.decoder.filename"); NULL:
// there is none, |value| is NULL, or what is on the way is no object. Of two alike keys the
// last one.
const pestle_json_value_t* pestle_json_find(const pestle_json_value_t* value,
                                            const char* path);

#endif  // PESTLE_BASE_JSON_READ_H_

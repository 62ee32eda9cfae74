// SPDX-License-Identifier: Apache-2.0
// Writes JSON into a string builder; commas and indentation are its business.
//
//   pestle_json_t json;
//   pestle_json_init(&buffer, 0, &json);
//   pestle_json_begin_object(&json);
//   pestle_json_key(&json, "run_ms");
//   pestle_json_f64(&json, 1.5);
//   pestle_json_end_object(&json);
//   PESTLE_TRY(pestle_strbuf_status(&buffer));
#ifndef PESTLE_BASE_JSON_H_
#define PESTLE_BASE_JSON_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

typedef struct pestle_json_t {
  pestle_strbuf_t* buffer;
  unsigned indent;  // spaces a level; 0 writes one line
  unsigned depth;
  bool after_key;
  bool has_items;  // the innermost open object or array is not empty
} pestle_json_t;

// |buffer| is borrowed. With |indent| 0 everything is on one line.
void pestle_json_init(pestle_strbuf_t* buffer, unsigned indent,
                      pestle_json_t* out_json);
void pestle_json_begin_object(pestle_json_t* json);
void pestle_json_end_object(pestle_json_t* json);
void pestle_json_begin_array(pestle_json_t* json);
void pestle_json_end_array(pestle_json_t* json);
void pestle_json_key(pestle_json_t* json, const char* key);
// Bytes that are not UTF-8 are written as U+FFFD.
void pestle_json_str(pestle_json_t* json, pestle_str_t value);
void pestle_json_cstr(pestle_json_t* json, const char* value);
void pestle_json_i64(pestle_json_t* json, int64_t value);
void pestle_json_u64(pestle_json_t* json, uint64_t value);
// JSON has no inf and nan: they are written as null.
void pestle_json_f64(pestle_json_t* json, double value);
void pestle_json_bool(pestle_json_t* json, bool value);
void pestle_json_null(pestle_json_t* json);

#endif  // PESTLE_BASE_JSON_H_

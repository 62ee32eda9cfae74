// SPDX-License-Identifier: Apache-2.0
// Members of an object that is being written: a key and its value.
#ifndef PESTLE_TOOLS_PESTLE_JSON_H_
#define PESTLE_TOOLS_PESTLE_JSON_H_

#include "base/json.h"

static inline void cli_key_f64(pestle_json_t* json, const char* key,
                               double value) {
  pestle_json_key(json, key);
  pestle_json_f64(json, value);
}

static inline void cli_key_i64(pestle_json_t* json, const char* key,
                               int64_t value) {
  pestle_json_key(json, key);
  pestle_json_i64(json, value);
}

static inline void cli_key_u64(pestle_json_t* json, const char* key,
                               uint64_t value) {
  pestle_json_key(json, key);
  pestle_json_u64(json, value);
}

static inline void cli_key_bool(pestle_json_t* json, const char* key,
                                bool value) {
  pestle_json_key(json, key);
  pestle_json_bool(json, value);
}

static inline void cli_key_cstr(pestle_json_t* json, const char* key,
                                const char* value) {
  pestle_json_key(json, key);
  pestle_json_cstr(json, value);
}

#endif  // PESTLE_TOOLS_PESTLE_JSON_H_

// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <math.h>

#include "base/utf8.h"

void pestle_json_init(pestle_strbuf_t* buffer, unsigned indent,
                      pestle_json_t* out_json) {
  *out_json = (pestle_json_t){.buffer = buffer, .indent = indent};
}

static void new_line(pestle_json_t* json) {
  if (!json->indent) return;
  pestle_strbuf_append_char(json->buffer, '\n');
  pestle_strbuf_append_fill(json->buffer, ' ',
                            (size_t)json->indent * json->depth);
}

// What stands between the item that comes now and the one before.
static void separate(pestle_json_t* json) {
  if (json->after_key) {
    json->after_key = false;
    return;
  }
  if (json->has_items) {
    pestle_strbuf_append_c(json->buffer, json->indent ? "," : ", ");
  }
  if (json->depth) new_line(json);
  json->has_items = true;
}

static void begin(pestle_json_t* json, char bracket) {
  separate(json);
  pestle_strbuf_append_char(json->buffer, bracket);
  ++json->depth;
  json->has_items = false;
}

static void end(pestle_json_t* json, char bracket) {
  --json->depth;
  if (json->has_items) new_line(json);
  pestle_strbuf_append_char(json->buffer, bracket);
  // What was closed is an item of what is around it.
  json->has_items = true;
}

void pestle_json_begin_object(pestle_json_t* json) {
  begin(json, '{');
}
void pestle_json_end_object(pestle_json_t* json) {
  end(json, '}');
}
void pestle_json_begin_array(pestle_json_t* json) {
  begin(json, '[');
}
void pestle_json_end_array(pestle_json_t* json) {
  end(json, ']');
}

static void append_escaped(pestle_strbuf_t* buffer, pestle_str_t text) {
  pestle_strbuf_append_char(buffer, '"');
  while (text.size) {
    size_t length = pestle_utf8_length(text);
    char c = text.data[0];
    if (!length) {
      pestle_strbuf_append_c(buffer, "\xef\xbf\xbd");  // U+FFFD
      length = 1;
    } else if (c == '"' || c == '\\') {
      pestle_strbuf_append_char(buffer, '\\');
      pestle_strbuf_append_char(buffer, c);
    } else if (c == '\n') {
      pestle_strbuf_append_c(buffer, "\\n");
    } else if (length == 1 && c < 0x20) {
      pestle_strbuf_appendf(buffer, "\\u%04x", (unsigned)c);
    } else {
      pestle_strbuf_append_bytes(buffer, text.data, length);
    }
    text = pestle_str_slice(text, length, text.size);
  }
  pestle_strbuf_append_char(buffer, '"');
}

void pestle_json_key(pestle_json_t* json, const char* key) {
  separate(json);
  append_escaped(json->buffer, pestle_str(key));
  pestle_strbuf_append_c(json->buffer, ": ");
  json->after_key = true;
}

void pestle_json_str(pestle_json_t* json, pestle_str_t value) {
  separate(json);
  append_escaped(json->buffer, value);
}

void pestle_json_cstr(pestle_json_t* json, const char* value) {
  pestle_json_str(json, pestle_str(value));
}

void pestle_json_i64(pestle_json_t* json, int64_t value) {
  separate(json);
  pestle_strbuf_append_i64(json->buffer, value);
}

void pestle_json_u64(pestle_json_t* json, uint64_t value) {
  separate(json);
  pestle_strbuf_append_u64(json->buffer, value);
}

void pestle_json_f64(pestle_json_t* json, double value) {
  if (!isfinite(value)) {
    pestle_json_null(json);
    return;
  }
  separate(json);
  pestle_strbuf_append_f64(json->buffer, value);
}

void pestle_json_bool(pestle_json_t* json, bool value) {
  separate(json);
  pestle_strbuf_append_c(json->buffer, value ? "true" : "false");
}

void pestle_json_null(pestle_json_t* json) {
  separate(json);
  pestle_strbuf_append_c(json->buffer, "null");
}

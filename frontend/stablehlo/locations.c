// SPDX-License-Identifier: Apache-2.0
// Locations are trees; what is kept is the outermost name and the first place in
// a file: of a call site the callee's, of a fusion that of the first part.
#include "frontend/stablehlo/decode.h"

typedef pestle_bytecode_decoder_t decoder_t;

// Codes of the dialect builtin.
enum {
  STRING = 2,
  CALL_SITE = 10,
  FILE_LINE_COLUMN = 11,
  FUSED = 12,
  FUSED_METADATA = 13,
  NAME = 14,
  FILE_RANGE = 22,
};

// Steps through a tree at most: what is further in is left out, since tracebacks
// may be long and files may be damaged.
enum { MAX_STEPS = 256 };

typedef struct walk_t {
  decoder_t* d;
  int steps;
  pestle_loc_t* loc;
} walk_t;

static pestle_status_t visit(walk_t* w, uint32_t index);

static pestle_status_t open(const decoder_t* d, uint32_t index,
                            pestle_reader_t* out, uint64_t* out_code) {
  const pestle_bytecode_entry_t* entry = &d->file->attributes[index];
  pestle_str_t dialect = d->file->dialects[entry->dialect].name;
  *out = pestle_reader_sub(&d->file->file, entry->bytes);
  *out_code = UINT64_MAX;
  if (entry->is_text || !pestle_str_equal_c(dialect, "builtin")) return NULL;
  return pestle_reader_varint(out, out_code);
}

static pestle_status_t read_index(const decoder_t* d, pestle_reader_t* r,
                                  uint32_t* out) {
  return pestle_reader_index(r, d->file->attribute_count, "attribute", out);
}

// The text of the string attribute whose index is at |r|; NULL for another.
static pestle_status_t read_text(const decoder_t* d, pestle_reader_t* r,
                                 const char** out) {
  uint32_t index;
  uint64_t code;
  pestle_reader_t string;
  pestle_str_t text;
  *out = NULL;
  PESTLE_TRY(read_index(d, r, &index));
  PESTLE_TRY(open(d, index, &string, &code));
  if (code != STRING) return NULL;
  PESTLE_TRY(pestle_bytecode_string(d->file, &string, &text));
  if (text.size) *out = text.data;  // ends in 0
  return NULL;
}

static uint32_t position(uint64_t value) {
  return value > UINT32_MAX ? 0 : (uint32_t)value;
}

static pestle_status_t read_file(walk_t* w, pestle_reader_t* r, bool is_range) {
  const char* file;
  uint64_t count = 2, at[2] = {0, 0};
  PESTLE_TRY(read_text(w->d, r, &file));
  if (is_range) PESTLE_TRY(pestle_reader_varint(r, &count));
  for (uint64_t i = 0; i < count && i < 2; ++i)
    PESTLE_TRY(pestle_reader_varint(r, &at[i]));
  if (!file) return NULL;
  // Where a file is known, nothing more is visited.
  w->loc->file = file;
  w->loc->line = position(at[0]);
  w->loc->column = position(at[1]);
  return NULL;
}

static pestle_status_t read_name(walk_t* w, pestle_reader_t* r) {
  const char* name;
  uint32_t child;
  PESTLE_TRY(read_text(w->d, r, &name));
  PESTLE_TRY(read_index(w->d, r, &child));
  if (!w->loc->name) w->loc->name = name;
  return visit(w, child);
}

static pestle_status_t read_call_site(walk_t* w, pestle_reader_t* r) {
  uint32_t callee, caller;
  PESTLE_TRY(read_index(w->d, r, &callee));
  PESTLE_TRY(read_index(w->d, r, &caller));
  PESTLE_TRY(visit(w, callee));
  return w->loc->file || w->loc->name ? NULL : visit(w, caller);
}

static pestle_status_t read_fused(walk_t* w, pestle_reader_t* r) {
  size_t count;
  PESTLE_TRY(pestle_reader_count(r, &count));
  for (size_t i = 0; i < count && !w->loc->file; ++i) {
    uint32_t part;
    PESTLE_TRY(read_index(w->d, r, &part));
    PESTLE_TRY(visit(w, part));
  }
  return NULL;
}

static pestle_status_t visit(walk_t* w, uint32_t index) {
  pestle_reader_t r;
  uint64_t code;
  if (++w->steps > MAX_STEPS) return NULL;
  PESTLE_TRY(open(w->d, index, &r, &code));
  switch (code) {
    case CALL_SITE:
      return read_call_site(w, &r);
    case FILE_LINE_COLUMN:
      return read_file(w, &r, false);
    case FILE_RANGE:
      return read_file(w, &r, true);
    case FUSED:
    case FUSED_METADATA:
      return read_fused(w, &r);
    case NAME:
      return read_name(w, &r);
    default:
      return NULL;
  }
}

pestle_status_t pestle_bytecode_location(decoder_t* d, uint32_t index,
                                         pestle_loc_t* out_loc) {
  *out_loc = (pestle_loc_t){.name = NULL};
  walk_t walk = {.d = d, .loc = out_loc};
  return visit(&walk, index);
}

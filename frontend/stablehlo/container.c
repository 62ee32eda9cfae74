// SPDX-License-Identifier: Apache-2.0
#include "frontend/stablehlo/container.h"

#include <string.h>

#include "base/mem.h"
#include "base/vec.h"

enum {
  SECTION_STRING = 0,
  SECTION_DIALECT = 1,
  SECTION_ATTR_TYPE = 2,
  SECTION_ATTR_TYPE_OFFSET = 3,
  SECTION_IR = 4,
  SECTION_RESOURCE = 5,
  SECTION_RESOURCE_OFFSET = 6,
  SECTION_DIALECT_VERSIONS = 7,
  SECTION_PROPERTIES = 8,
  SECTION_COUNT = 9,
};
// What versions of the format brought.
enum {
  FORMAT_DIALECT_VERSIONS = 1,
  FORMAT_OP_COUNT = 4,
  FORMAT_PROPERTIES = 5,
};
enum { ALIGNED = 0x80, PADDING = 0xcb };

static const char magic[4] = {'M', 'L', '\xef', 'R'};

bool pestle_bytecode_is(const void* data, size_t size) {
  return size >= sizeof(magic) && !memcmp(data, magic, sizeof(magic));
}

static pestle_status_t skip_padding(pestle_reader_t* r) {
  uint64_t alignment;
  PESTLE_TRY(pestle_reader_varint(r, &alignment));
  if (!alignment || (alignment & (alignment - 1))) {
    return pestle_reader_damaged(r, "an alignment that is no power of two");
  }
  while ((uint64_t)(r->next - r->base) & (alignment - 1)) {
    uint8_t byte;
    PESTLE_TRY(pestle_reader_byte(r, &byte));
    if (byte != PADDING) {
      return pestle_reader_damaged(r, "padding that is none");
    }
  }
  return NULL;
}

pestle_status_t pestle_bytecode_section(pestle_reader_t* r, uint8_t* out_id,
                                        pestle_reader_t* out_section) {
  uint8_t id;
  uint64_t size;
  pestle_str_t bytes;
  PESTLE_TRY(pestle_reader_byte(r, &id));
  PESTLE_TRY(pestle_reader_varint(r, &size));
  if (id & ALIGNED) PESTLE_TRY(skip_padding(r));
  PESTLE_TRY(pestle_reader_bytes(r, size, &bytes));
  *out_id = id & (ALIGNED - 1);
  *out_section = pestle_reader_sub(r, bytes);
  return NULL;
}

pestle_status_t pestle_bytecode_string(const pestle_bytecode_t* file,
                                       pestle_reader_t* r, pestle_str_t* out) {
  uint32_t index;
  PESTLE_TRY(pestle_reader_index(r, file->string_count, "string", &index));
  *out = file->strings[index];
  return NULL;
}

// --- Tables ---

// Lengths come from the last string to the first, each with a terminator.
static pestle_status_t read_strings(pestle_bytecode_t* file,
                                    pestle_arena_t* arena, pestle_reader_t* r) {
  size_t count;
  PESTLE_TRY(pestle_reader_count(r, &count));
  pestle_str_t* strings = PESTLE_ARENA_ARRAY(arena, pestle_str_t, count + 1);
  if (!strings) return PESTLE_OOM();
  for (size_t i = count; i-- > 0;) {
    uint64_t size;
    PESTLE_TRY(pestle_reader_varint(r, &size));
    if (!size || size > pestle_reader_left(r)) {
      return pestle_reader_damaged(r, "a string of an impossible length");
    }
    strings[i].size = (size_t)size;
  }
  for (size_t i = 0; i < count; ++i) {
    PESTLE_TRY(pestle_reader_bytes(r, strings[i].size, &strings[i]));
    if (strings[i].data[--strings[i].size]) {
      return pestle_reader_damaged(r, "a string without its terminator");
    }
  }
  if (pestle_reader_more(r)) {
    return pestle_reader_damaged(r, "bytes behind the last string");
  }
  file->strings = strings;
  file->string_count = count;
  return NULL;
}

static pestle_status_t read_dialect(const pestle_bytecode_t* file,
                                    pestle_reader_t* r,
                                    pestle_bytecode_dialect_t* out) {
  out->version = pestle_str_make(NULL, 0);
  if (file->format < FORMAT_DIALECT_VERSIONS) {
    return pestle_bytecode_string(file, r, &out->name);
  }
  uint32_t index;
  bool versioned;
  PESTLE_TRY(pestle_reader_flagged_index(r, file->string_count, "string",
                                         &index, &versioned));
  out->name = file->strings[index];
  if (!versioned) return NULL;
  uint8_t id;
  pestle_reader_t section;
  PESTLE_TRY(pestle_bytecode_section(r, &id, &section));
  if (id != SECTION_DIALECT_VERSIONS) {
    return pestle_reader_damaged(r, "another section than a dialect's version");
  }
  out->version =
      pestle_str_make((const char*)section.next, pestle_reader_left(&section));
  return NULL;
}

typedef PESTLE_VEC(pestle_bytecode_op_name_t) op_names_t;

// A dialect and the names of those of its ops that occur.
static pestle_status_t read_op_group(const pestle_bytecode_t* file,
                                     pestle_reader_t* r, op_names_t* names) {
  uint32_t dialect;
  size_t count;
  PESTLE_TRY(pestle_reader_index(r, file->dialect_count, "dialect", &dialect));
  PESTLE_TRY(pestle_reader_count(r, &count));
  for (size_t i = 0; i < count; ++i) {
    uint32_t index;
    bool registered;
    if (file->format < FORMAT_PROPERTIES) {
      PESTLE_TRY(pestle_reader_index(r, file->string_count, "string", &index));
    } else {
      PESTLE_TRY(pestle_reader_flagged_index(r, file->string_count, "string",
                                             &index, &registered));
    }
    if (!pestle_vec_push(names, (pestle_bytecode_op_name_t){
                                    dialect, file->strings[index]})) {
      return PESTLE_OOM();
    }
  }
  return NULL;
}

static pestle_status_t read_op_names(pestle_bytecode_t* file,
                                     pestle_arena_t* arena,
                                     pestle_reader_t* r) {
  uint64_t total;
  if (file->format >= FORMAT_OP_COUNT) {
    PESTLE_TRY(pestle_reader_varint(r, &total));
  }
  op_names_t names;
  pestle_vec_init(&names, arena->allocator);
  pestle_status_t status = NULL;
  while (!status && pestle_reader_more(r)) {
    status = read_op_group(file, r, &names);
  }
  if (!status && names.size) {
    file->ops =
        pestle_arena_copy(arena, names.data, names.size * sizeof(*names.data),
                          _Alignof(pestle_bytecode_op_name_t));
    if (!file->ops) status = PESTLE_OOM();
  }
  file->op_count = names.size;
  pestle_vec_deinit(&names);
  return status;
}

static pestle_status_t read_dialects(pestle_bytecode_t* file,
                                     pestle_arena_t* arena,
                                     pestle_reader_t* r) {
  size_t count;
  PESTLE_TRY(pestle_reader_count(r, &count));
  pestle_bytecode_dialect_t* dialects =
      PESTLE_ARENA_ARRAY(arena, pestle_bytecode_dialect_t, count + 1);
  if (!dialects) return PESTLE_OOM();
  file->dialects = dialects;
  for (; file->dialect_count < count; ++file->dialect_count) {
    PESTLE_TRY(read_dialect(file, r, &dialects[file->dialect_count]));
  }
  return read_op_names(file, arena, r);
}

// The entries of one dialect, which lie one behind the other in |data|.
static pestle_status_t read_entry_group(const pestle_bytecode_t* file,
                                        pestle_reader_t* r,
                                        pestle_reader_t* data,
                                        pestle_bytecode_entry_t* entries,
                                        size_t total, size_t* at) {
  uint32_t dialect;
  size_t count;
  PESTLE_TRY(pestle_reader_index(r, file->dialect_count, "dialect", &dialect));
  PESTLE_TRY(pestle_reader_count(r, &count));
  if (count > total - *at) {
    return pestle_reader_damaged(r, "more attributes and types than are said");
  }
  for (size_t i = 0; i < count; ++i) {
    pestle_bytecode_entry_t* entry = &entries[(*at)++];
    uint64_t size;
    bool custom;
    PESTLE_TRY(pestle_reader_flagged(r, &size, &custom));
    PESTLE_TRY(pestle_reader_bytes(data, size, &entry->bytes));
    entry->dialect = dialect;
    entry->is_text = !custom;
    if (custom) continue;
    if (!size || entry->bytes.data[--entry->bytes.size]) {
      return pestle_reader_damaged(data, "a text without its terminator");
    }
  }
  return NULL;
}

static pestle_status_t read_entries(pestle_bytecode_t* file,
                                    pestle_arena_t* arena, pestle_reader_t* r,
                                    pestle_reader_t* data) {
  size_t attributes, types, at = 0;
  PESTLE_TRY(pestle_reader_count(r, &attributes));
  PESTLE_TRY(pestle_reader_count(r, &types));
  size_t total = attributes + types;
  pestle_bytecode_entry_t* entries =
      PESTLE_ARENA_ARRAY(arena, pestle_bytecode_entry_t, total + 1);
  if (!entries) return PESTLE_OOM();
  while (pestle_reader_more(r)) {
    PESTLE_TRY(read_entry_group(file, r, data, entries, total, &at));
  }
  if (at != total) {
    return pestle_reader_damaged(r, "fewer attributes and types than are said");
  }
  file->attributes = entries;
  file->attribute_count = attributes;
  file->types = entries + attributes;
  file->type_count = types;
  return NULL;
}

static pestle_status_t read_properties(pestle_bytecode_t* file,
                                       pestle_arena_t* arena,
                                       pestle_reader_t* r) {
  size_t count;
  PESTLE_TRY(pestle_reader_count(r, &count));
  pestle_str_t* properties = PESTLE_ARENA_ARRAY(arena, pestle_str_t, count + 1);
  if (!properties) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    PESTLE_TRY(pestle_reader_blob(r, &properties[i]));
  }
  file->properties = properties;
  file->property_count = count;
  return NULL;
}

// --- Resources ---

typedef PESTLE_VEC(pestle_bytecode_resource_t) resources_t;
// What the bytes of a resource are.
enum { RESOURCE_BLOB = 0, RESOURCE_BOOL = 1, RESOURCE_STRING = 2 };

// A blob is aligned in the file as its own header says.
static pestle_status_t read_blob(pestle_reader_t* entry, pestle_str_t* out) {
  uint64_t size;
  PESTLE_TRY(skip_padding(entry));
  PESTLE_TRY(pestle_reader_varint(entry, &size));
  return pestle_reader_bytes(entry, size, out);
}

static pestle_status_t read_resource_group(const pestle_bytecode_t* file,
                                           pestle_reader_t* r,
                                           pestle_reader_t* data,
                                           resources_t* out) {
  size_t count;
  uint32_t owner;  // a dialect, or a string that names another kind of owner
  PESTLE_TRY(pestle_reader_index(r, SIZE_MAX, "owner", &owner));
  PESTLE_TRY(pestle_reader_count(r, &count));
  for (size_t i = 0; i < count; ++i) {
    pestle_bytecode_resource_t resource = {.bytes = {NULL, 0}};
    uint64_t size;
    uint8_t kind;
    pestle_str_t bytes;
    PESTLE_TRY(pestle_bytecode_string(file, r, &resource.key));
    PESTLE_TRY(pestle_reader_varint(r, &size));
    PESTLE_TRY(pestle_reader_byte(r, &kind));
    PESTLE_TRY(pestle_reader_bytes(data, size, &bytes));
    if (kind == RESOURCE_BLOB && size) {
      pestle_reader_t entry = pestle_reader_sub(data, bytes);
      PESTLE_TRY(read_blob(&entry, &resource.bytes));
    }
    if (!pestle_vec_push(out, resource)) return PESTLE_OOM();
  }
  return NULL;
}

static pestle_status_t read_resources(pestle_bytecode_t* file,
                                      pestle_arena_t* arena, pestle_reader_t* r,
                                      pestle_reader_t* data) {
  uint64_t groups;  // of owners that are no dialects
  PESTLE_TRY(pestle_reader_varint(r, &groups));
  resources_t found;
  pestle_vec_init(&found, arena->allocator);
  pestle_status_t status = NULL;
  while (!status && pestle_reader_more(r)) {
    status = read_resource_group(file, r, data, &found);
  }
  if (!status && found.size) {
    file->resources =
        pestle_arena_copy(arena, found.data, found.size * sizeof(*found.data),
                          _Alignof(pestle_bytecode_resource_t));
    if (!file->resources) status = PESTLE_OOM();
  }
  file->resource_count = found.size;
  pestle_vec_deinit(&found);
  return status;
}

// --- The file ---

typedef struct sections_t {
  pestle_reader_t of[SECTION_COUNT];
  bool has[SECTION_COUNT];
} sections_t;

static pestle_status_t find_sections(pestle_reader_t* r, sections_t* out) {
  while (pestle_reader_more(r)) {
    uint8_t id;
    pestle_reader_t section, at = *r;
    PESTLE_TRY(pestle_bytecode_section(r, &id, &section));
    if (id >= SECTION_COUNT) {
      return pestle_reader_damaged(&at, "a section of an unknown kind");
    }
    if (out->has[id]) {
      return pestle_reader_damaged(&at, "a second section of one kind");
    }
    out->of[id] = section;
    out->has[id] = true;
  }
  static const uint8_t needed[] = {SECTION_STRING, SECTION_DIALECT,
                                   SECTION_ATTR_TYPE, SECTION_ATTR_TYPE_OFFSET,
                                   SECTION_IR};
  for (size_t i = 0; i < sizeof(needed); ++i) {
    if (!out->has[needed[i]]) {
      return pestle_reader_damaged(r, "a section is missing");
    }
  }
  return NULL;
}

static pestle_status_t read_tables(pestle_bytecode_t* file,
                                   pestle_arena_t* arena, sections_t* s) {
  PESTLE_TRY(read_strings(file, arena, &s->of[SECTION_STRING]));
  PESTLE_TRY(read_dialects(file, arena, &s->of[SECTION_DIALECT]));
  PESTLE_TRY(read_entries(file, arena, &s->of[SECTION_ATTR_TYPE_OFFSET],
                          &s->of[SECTION_ATTR_TYPE]));
  if (s->has[SECTION_PROPERTIES]) {
    PESTLE_TRY(read_properties(file, arena, &s->of[SECTION_PROPERTIES]));
  }
  if (s->has[SECTION_RESOURCE] && s->has[SECTION_RESOURCE_OFFSET]) {
    PESTLE_TRY(read_resources(file, arena, &s->of[SECTION_RESOURCE_OFFSET],
                              &s->of[SECTION_RESOURCE]));
  }
  file->ir = s->of[SECTION_IR];
  return NULL;
}

pestle_status_t pestle_bytecode_open(const void* data, size_t size,
                                     pestle_arena_t* arena,
                                     pestle_bytecode_t* out_file) {
  *out_file = (pestle_bytecode_t){.file = pestle_reader_make(data, size)};
  pestle_reader_t r = out_file->file;
  if (!pestle_bytecode_is(data, size)) {
    return pestle_reader_damaged(&r, "another magic number");
  }
  r.next += sizeof(magic);
  PESTLE_TRY(pestle_reader_varint(&r, &out_file->format));
  PESTLE_TRY(pestle_reader_terminated(&r, &out_file->producer));
  if (out_file->format > PESTLE_BYTECODE_MAX_FORMAT) {
    return PESTLE_ERROR(
        UNSUPPORTED,
        "the file is MLIR bytecode of format %llu, by '%.*s'; Pestle reads 0 "
        "to %d: write it for an older StableHLO version",
        (unsigned long long)out_file->format,
        PESTLE_STR_ARG(out_file->producer), PESTLE_BYTECODE_MAX_FORMAT);
  }
  sections_t sections = {.has = {false}};
  PESTLE_TRY(find_sections(&r, &sections));
  return read_tables(out_file, arena, &sections);
}

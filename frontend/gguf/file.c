// SPDX-License-Identifier: Apache-2.0
// Reads GGUF, versions 2 and 3 in the order of bytes that all such files have: a head of
// magic, version and two counts, the metadata, the tensors' names and places, and behind the
// next multiple of the alignment the tensors.
#include "frontend/gguf/file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/fault.h"
#include "base/mem.h"

enum {
  USUAL_ALIGNMENT = 32,
  MAX_ALIGNMENT = 1 << 20,
  MAX_DEPTH = 4,
  MAX_NAME = 1024,
};

// --- Bytes ---

typedef struct reader_t {
  const uint8_t* data;
  size_t size, at;
} reader_t;

static uint64_t number_at(const uint8_t* data, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = bytes; i-- > 0;)
    value = value << 8 | data[i];
  return value;
}

static pestle_status_t cut_off(const reader_t* r, const char* what) {
  return PESTLE_ERROR(MALFORMED,
                      "the file ends in %s, at byte %zu of %zu: it was cut off "
                      "or damaged; fetch it again",
                      what, r->at, r->size);
}

static pestle_status_t take(reader_t* r, uint64_t bytes, const char* what,
                            const uint8_t** out) {
  if (bytes > r->size - r->at && !PESTLE_FAULT(trust_gguf_length))
    return cut_off(r, what);
  *out = r->data + r->at;
  r->at += (size_t)bytes;
  return NULL;
}

static pestle_status_t take_number(reader_t* r, size_t bytes, const char* what,
                                   uint64_t* out) {
  const uint8_t* data;
  PESTLE_TRY(take(r, bytes, what, &data));
  *out = number_at(data, bytes);
  return NULL;
}

static pestle_status_t take_text(reader_t* r, const char* what,
                                 pestle_str_t* out) {
  uint64_t size;
  const uint8_t* data;
  PESTLE_TRY(take_number(r, 8, what, &size));
  PESTLE_TRY(take(r, size, what, &data));
  *out = pestle_str_make((const char*)data, (size_t)size);
  return NULL;
}

// Errors print names: they are not to be as long as a file.
static pestle_status_t take_name(reader_t* r, const char* what,
                                 pestle_str_t* out) {
  size_t at = r->at;
  PESTLE_TRY(take_text(r, what, out));
  if (out->size <= MAX_NAME) return NULL;
  return PESTLE_ERROR(MALFORMED,
                      "%s at byte %zu has %zu bytes; there may be %d at most",
                      what, at, out->size, MAX_NAME);
}

// --- Metadata ---

static const struct {
  const char* name;
  uint8_t bytes;  // of one; 0: it says so itself
} kinds[PESTLE_GGUF_KINDS] = {
    [PESTLE_GGUF_U8] = {"u8", 1},         [PESTLE_GGUF_I8] = {"i8", 1},
    [PESTLE_GGUF_U16] = {"u16", 2},       [PESTLE_GGUF_I16] = {"i16", 2},
    [PESTLE_GGUF_U32] = {"u32", 4},       [PESTLE_GGUF_I32] = {"i32", 4},
    [PESTLE_GGUF_F32] = {"f32", 4},       [PESTLE_GGUF_BOOL] = {"bool", 1},
    [PESTLE_GGUF_STRING] = {"string", 0}, [PESTLE_GGUF_ARRAY] = {"array", 0},
    [PESTLE_GGUF_U64] = {"u64", 8},       [PESTLE_GGUF_I64] = {"i64", 8},
    [PESTLE_GGUF_F64] = {"f64", 8},
};

const char* pestle_gguf_kind_name(pestle_gguf_kind_t kind) {
  return kinds[kind].name;
}

static pestle_status_t take_kind(reader_t* r, pestle_gguf_kind_t* out) {
  uint64_t kind;
  size_t at = r->at;
  PESTLE_TRY(take_number(r, 4, "the kind of a value", &kind));
  if (kind >= PESTLE_GGUF_KINDS) {
    return PESTLE_ERROR(MALFORMED,
                        "a value is of kind %" PRIu64
                        " at byte %zu; there are kinds 0 to %d",
                        kind, at, PESTLE_GGUF_KINDS - 1);
  }
  *out = (pestle_gguf_kind_t)kind;
  return NULL;
}

// Goes behind |count| values of |kind|.
static pestle_status_t skip(reader_t* r, pestle_gguf_kind_t kind,
                            uint64_t count, int depth) {
  static const char what[] = "the elements of a value";
  const uint8_t* data;
  size_t bytes = kinds[kind].bytes, size;
  // Each takes a byte at least.
  if (count > r->size - r->at) return cut_off(r, what);
  if (bytes) {
    if (!pestle_checked_mul((size_t)count, bytes, &size))
      return cut_off(r, what);
    return take(r, size, what, &data);
  }
  if (depth == MAX_DEPTH) {
    return PESTLE_ERROR(MALFORMED,
                        "arrays lie in each other deeper than %d at byte %zu",
                        MAX_DEPTH, r->at);
  }
  for (uint64_t i = 0; i < count; ++i) {
    pestle_str_t text;
    if (kind == PESTLE_GGUF_STRING) {
      PESTLE_TRY(take_text(r, what, &text));
      continue;
    }
    pestle_gguf_kind_t of;
    uint64_t inner;
    PESTLE_TRY(take_kind(r, &of));
    PESTLE_TRY(take_number(r, 8, "the length of an array", &inner));
    PESTLE_TRY(skip(r, of, inner, depth + 1));
  }
  return NULL;
}

static pestle_status_t read_elements(reader_t* r, pestle_gguf_value_t* v) {
  PESTLE_TRY(take_kind(r, &v->kind));
  v->count = 1;
  v->of = v->kind;
  if (v->kind == PESTLE_GGUF_ARRAY) {
    PESTLE_TRY(take_kind(r, &v->of));
    PESTLE_TRY(take_number(r, 8, "the length of an array", &v->count));
  }
  v->data = r->data + r->at;
  PESTLE_TRY(skip(r, v->of, v->count, 0));
  v->size = (size_t)(r->data + r->at - v->data);
  return NULL;
}

static pestle_status_t read_value(reader_t* r, pestle_gguf_value_t* v) {
  PESTLE_TRY(take_name(r, "a key", &v->key));
  return pestle_status_annotate(read_elements(r, v), "in the value of '%.*s'",
                                PESTLE_STR_ARG(v->key));
}

static pestle_status_t read_values(reader_t* r, pestle_gguf_file_t* file) {
  for (size_t i = 0; i < file->value_count; ++i) {
    pestle_gguf_value_t* v = &file->values[i];
    bool added;
    PESTLE_TRY(pestle_status_annotate(read_value(r, v), "in value %zu of %zu",
                                      i + 1, file->value_count));
    pestle_map_value_t* slot =
        pestle_map_put(&file->value_by_key, v->key.data, v->key.size, &added);
    if (!slot) return PESTLE_OOM();
    if (!added) {
      return PESTLE_ERROR(MALFORMED, "the key '%.*s' is there twice",
                          PESTLE_STR_ARG(v->key));
    }
    slot->ptr = v;
  }
  return NULL;
}

const pestle_gguf_value_t* pestle_gguf_find_value(
    const pestle_gguf_file_t* file, pestle_str_t key) {
  const pestle_map_value_t* slot =
      pestle_map_find_str(&file->value_by_key, key);
  return slot ? slot->ptr : NULL;
}

bool pestle_gguf_as_i64(const pestle_gguf_value_t* value, uint64_t index,
                        int64_t* out) {
  size_t bytes = kinds[value->of].bytes;
  if (index >= value->count || !bytes) return false;
  uint64_t bits = number_at(value->data + index * bytes, bytes);
  switch (value->of) {
    case PESTLE_GGUF_I8:
      *out = (int8_t)bits;
      return true;
    case PESTLE_GGUF_I16:
      *out = (int16_t)bits;
      return true;
    case PESTLE_GGUF_I32:
      *out = (int32_t)bits;
      return true;
    case PESTLE_GGUF_I64:
    case PESTLE_GGUF_U8:
    case PESTLE_GGUF_U16:
    case PESTLE_GGUF_U32:
      *out = (int64_t)bits;
      return true;
    case PESTLE_GGUF_U64:
      *out = (int64_t)bits;
      return bits <= INT64_MAX;
    case PESTLE_GGUF_F32:
    case PESTLE_GGUF_F64:
    case PESTLE_GGUF_BOOL:
    case PESTLE_GGUF_STRING:
    case PESTLE_GGUF_ARRAY:
    case PESTLE_GGUF_KINDS:
      break;
  }
  return false;
}

bool pestle_gguf_as_f64(const pestle_gguf_value_t* value, uint64_t index,
                        double* out) {
  int64_t number;
  float narrow;
  if (pestle_gguf_as_i64(value, index, &number)) {
    *out = (double)number;
    return true;
  }
  if (index >= value->count) return false;
  if (value->of == PESTLE_GGUF_F32) {
    memcpy(&narrow, value->data + index * sizeof(narrow), sizeof(narrow));
    *out = (double)narrow;
    return true;
  }
  if (value->of != PESTLE_GGUF_F64) return false;
  memcpy(out, value->data + index * sizeof(*out), sizeof(*out));
  return true;
}

bool pestle_gguf_as_text(const pestle_gguf_value_t* value, pestle_str_t* out) {
  if (value->kind != PESTLE_GGUF_STRING) return false;
  *out = pestle_str_make((const char*)value->data + 8, value->size - 8);
  return true;
}

// --- Tensors ---

static const pestle_gguf_type_t types[] = {
#define PESTLE_GGUF_TYPE(number, NAME, elements, bytes, bits, group, \
                         has_least, is_half)                         \
  {#NAME, number, elements, bytes, bits, group, has_least, is_half},
#define PESTLE_GGUF_OTHER(number, NAME) \
  {#NAME, number, 0, 0, 0, 0, false, false},
#include "frontend/gguf/gguf_types.def"
};
static const char known_types[] =
#define PESTLE_GGUF_TYPE(number, NAME, ...) #NAME " "
#include "frontend/gguf/gguf_types.def"
    ;

static pestle_status_t read_type(reader_t* r, const pestle_gguf_type_t** out) {
  uint64_t number;
  const char* name = "not known by name";
  PESTLE_TRY(take_number(r, 4, "the type of a tensor", &number));
  for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); ++i) {
    if (types[i].number != number) continue;
    *out = &types[i];
    if (types[i].elements) return NULL;
    name = types[i].name;
  }
  return PESTLE_ERROR(UNSUPPORTED,
                      "it is of type %" PRIu64
                      " (%s); known are %s- quantise the model to one of them",
                      number, name, known_types);
}

// Its bytes; false: more than there can be.
static bool size_of(const pestle_gguf_tensor_t* t, size_t* out) {
  int64_t count;
  return pestle_checked_count(t->dims, PESTLE_GGUF_MAX_AXES, &count) &&
         pestle_checked_size(count / t->type->elements, out) &&
         pestle_checked_mul(*out, t->type->bytes, out);
}

static pestle_status_t read_place(reader_t* r, pestle_gguf_tensor_t* t,
                                  size_t alignment) {
  uint64_t axes, extent;
  PESTLE_TRY(take_number(r, 4, "the axes of a tensor", &axes));
  if (axes > PESTLE_GGUF_MAX_AXES) {
    return PESTLE_ERROR(MALFORMED,
                        "it has %" PRIu64 " axes; there may be %d at most",
                        axes, PESTLE_GGUF_MAX_AXES);
  }
  t->axes = (uint32_t)axes;
  for (uint32_t i = 0; i < PESTLE_GGUF_MAX_AXES; ++i) {
    t->dims[i] = 1;
    if (i >= axes) continue;
    PESTLE_TRY(take_number(r, 8, "the extents of a tensor", &extent));
    if (extent < 1 || extent > INT64_MAX) {
      return PESTLE_ERROR(MALFORMED, "its extent %u is %" PRIu64, i, extent);
    }
    t->dims[i] = (int64_t)extent;
  }
  PESTLE_TRY(read_type(r, &t->type));
  PESTLE_TRY(take_number(r, 8, "the place of a tensor", &extent));
  if (t->dims[0] % t->type->elements || !size_of(t, &t->size)) {
    return PESTLE_ERROR(
        MALFORMED,
        "its %" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64
        " elements are more than there can be, or rows of them are no whole "
        "blocks of %u, as type %s has them",
        t->dims[0], t->dims[1], t->dims[2], t->dims[3], t->type->elements,
        t->type->name);
  }
  if (extent % alignment) {
    return PESTLE_ERROR(MALFORMED,
                        "it lies at byte %" PRIu64
                        " of the data, which is no multiple of the file's "
                        "alignment, %zu",
                        extent, alignment);
  }
  t->offset = (size_t)extent;
  return NULL;
}

static pestle_status_t read_tensor(reader_t* r, pestle_gguf_file_t* file,
                                   pestle_gguf_tensor_t* t, size_t alignment) {
  bool added;
  PESTLE_TRY(take_name(r, "the name of a tensor", &t->name));
  PESTLE_TRY(pestle_status_annotate(read_place(r, t, alignment),
                                    "in the tensor '%.*s'",
                                    PESTLE_STR_ARG(t->name)));
  pestle_map_value_t* slot =
      pestle_map_put(&file->tensor_by_name, t->name.data, t->name.size, &added);
  if (!slot) return PESTLE_OOM();
  if (!added) {
    return PESTLE_ERROR(MALFORMED, "the tensor '%.*s' is there twice",
                        PESTLE_STR_ARG(t->name));
  }
  slot->ptr = t;
  return NULL;
}

const pestle_gguf_tensor_t* pestle_gguf_find_tensor(
    const pestle_gguf_file_t* file, pestle_str_t name) {
  const pestle_map_value_t* slot =
      pestle_map_find_str(&file->tensor_by_name, name);
  return slot ? slot->ptr : NULL;
}

static int compare_places(const void* a, const void* b) {
  const pestle_gguf_tensor_t *x = *(const pestle_gguf_tensor_t* const*)a,
                             *y = *(const pestle_gguf_tensor_t* const*)b;
  return (x->offset > y->offset) - (x->offset < y->offset);
}

// Finds where tensors lie, behind byte |begin|: within the file, and no two at one place.
static pestle_status_t place_tensors(const reader_t* r,
                                     pestle_gguf_file_t* file,
                                     pestle_arena_t* arena, size_t begin) {
  size_t room = begin < r->size ? r->size - begin : 0;
  const pestle_gguf_tensor_t** sorted = PESTLE_ARENA_ARRAY(
      arena, const pestle_gguf_tensor_t*, file->tensor_count + 1);
  if (!sorted) return PESTLE_OOM();
  for (size_t i = 0; i < file->tensor_count; ++i) {
    pestle_gguf_tensor_t* t = &file->tensors[i];
    if (t->offset > room || t->size > room - t->offset) {
      return PESTLE_ERROR(
          MALFORMED,
          "the tensor '%.*s' has %zu bytes at byte %zu of the data, which is "
          "%zu bytes: the file was cut off; fetch it again",
          PESTLE_STR_ARG(t->name), t->size, t->offset, room);
    }
    t->offset += begin;
    t->data = r->data + t->offset;
    sorted[i] = t;
  }
  qsort(sorted, file->tensor_count, sizeof(sorted[0]), compare_places);
  for (size_t i = 1; i < file->tensor_count; ++i) {
    const pestle_gguf_tensor_t *a = sorted[i - 1], *b = sorted[i];
    if (b->offset - a->offset >= a->size) continue;
    return PESTLE_ERROR(
        MALFORMED, "the tensors '%.*s' and '%.*s' overlap at byte %zu",
        PESTLE_STR_ARG(a->name), PESTLE_STR_ARG(b->name), b->offset);
  }
  return NULL;
}

// --- The file ---

bool pestle_gguf_is(const void* data, size_t size) {
  return size >= 4 && memcmp(data, "GGUF", 4) == 0;
}

static pestle_status_t read_head(reader_t* r, pestle_gguf_file_t* file) {
  enum { LEAST_VALUE = 13, LEAST_TENSOR = 24 };
  uint64_t version, tensors, values;
  const uint8_t* magic;
  PESTLE_TRY(take(r, 4, "the magic", &magic));
  PESTLE_TRY(take_number(r, 4, "the version", &version));
  if (version && !(version & 0xffff)) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "its numbers lie with their high bytes first; convert "
                        "it (gguf_convert_endian.py of llama.cpp)");
  }
  if (version < 2 || version > 3) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "it is of version %" PRIu64
                        " of GGUF, known are 2 and 3; convert the model again",
                        version);
  }
  file->version = (uint32_t)version;
  PESTLE_TRY(take_number(r, 8, "the number of tensors", &tensors));
  PESTLE_TRY(take_number(r, 8, "the number of values", &values));
  size_t rest = r->size - r->at;
  if (tensors > rest / LEAST_TENSOR || values > rest / LEAST_VALUE) {
    return PESTLE_ERROR(MALFORMED,
                        "it is to have %" PRIu64 " tensors and %" PRIu64
                        " values, more than %zu bytes can say: it was cut off "
                        "or damaged; fetch it again",
                        tensors, values, rest);
  }
  file->tensor_count = (size_t)tensors;
  file->value_count = (size_t)values;
  return NULL;
}

static pestle_status_t read_alignment(const pestle_gguf_file_t* file,
                                      size_t* out) {
  const pestle_gguf_value_t* v =
      pestle_gguf_find_value(file, PESTLE_STR("general.alignment"));
  int64_t number = USUAL_ALIGNMENT;
  bool is_good =
      !v || (v->kind != PESTLE_GGUF_ARRAY && pestle_gguf_as_i64(v, 0, &number));
  if (!is_good || number < 8 || number > MAX_ALIGNMENT ||
      (number & (number - 1)) != 0) {
    return PESTLE_ERROR(MALFORMED,
                        "'general.alignment' is not a power of two from 8 to "
                        "%d",
                        MAX_ALIGNMENT);
  }
  *out = (size_t)number;
  return NULL;
}

pestle_status_t pestle_gguf_read(const void* data, size_t size,
                                 pestle_arena_t* arena,
                                 pestle_gguf_file_t* out_file) {
  pestle_gguf_file_t* file = out_file;
  reader_t r = {.data = data, .size = size};
  size_t alignment, begin;
  *file = (pestle_gguf_file_t){.version = 0};
  pestle_map_init(arena->allocator, &file->value_by_key);
  pestle_map_init(arena->allocator, &file->tensor_by_name);
  PESTLE_TRY(read_head(&r, file));
  file->values = pestle_arena_alloc_zero(
      arena, (file->value_count + 1) * sizeof(*file->values),
      _Alignof(pestle_gguf_value_t));
  file->tensors = pestle_arena_alloc_zero(
      arena, (file->tensor_count + 1) * sizeof(*file->tensors),
      _Alignof(pestle_gguf_tensor_t));
  if (!file->values || !file->tensors) return PESTLE_OOM();
  PESTLE_TRY(read_values(&r, file));
  PESTLE_TRY(read_alignment(file, &alignment));
  for (size_t i = 0; i < file->tensor_count; ++i)
    PESTLE_TRY(read_tensor(&r, file, &file->tensors[i], alignment));
  if (!pestle_checked_align_up(r.at, alignment, &begin)) begin = r.size;
  return place_tensors(&r, file, arena, begin);
}

void pestle_gguf_file_deinit(pestle_gguf_file_t* file) {
  pestle_map_deinit(&file->tensor_by_name);
  pestle_map_deinit(&file->value_by_key);
}

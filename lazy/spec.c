// SPDX-License-Identifier: Apache-2.0
// What a node is beside its op and operands, as 32-bit words: attributes, the type
// that its maker stated, bodies. A key has the words as they are, and build.c reads
// the op from them again.
#include "lazy/lazy.h"

static bool put(pestle_words_t* words, uint32_t word) {
  return pestle_vec_push(words, word);
}

static bool put_bytes(pestle_words_t* words, const void* data, size_t size) {
  size_t at = words->size, count = (size + 3) / 4;
  if (!pestle_vec_resize(words, at + count)) return false;
  if (size) memcpy(words->data + at, data, size);
  return true;
}

static bool put_u64(pestle_words_t* words, uint64_t value) {
  return put(words, (uint32_t)value) && put(words, (uint32_t)(value >> 32));
}

static uint64_t get_u64(const uint32_t* words) {
  return words[0] | (uint64_t)words[1] << 32;
}

bool pestle_words_put_type(pestle_words_t* words, const pestle_type_t* type) {
  uint32_t rank = (uint32_t)type->rank;
  return put(words, (uint32_t)type->dtype | rank << 16) &&
         put_bytes(words, type->dims, rank * sizeof(int64_t));
}

const uint32_t* pestle_words_get_type(const uint32_t* words,
                                      pestle_type_t* out_type) {
  *out_type = (pestle_type_t){.dtype = (pestle_dtype_t)(words[0] & 0xffff),
                              .rank = (int32_t)(words[0] >> 16)};
  size_t size = (size_t)out_type->rank * sizeof(int64_t);
  memcpy(out_type->dims, words + 1, size);
  return words + 1 + size / 4;
}

// --- Writing ---

static bool write_elements(pestle_words_t* words, const pestle_elements_t* e) {
  return pestle_words_put_type(words, &e->type) && put(words, e->splat) &&
         put_u64(words, e->size) && put_bytes(words, e->data, e->size);
}

static bool write_value(pestle_words_t* words, const pestle_attr_t* attr) {
  uint64_t bits;
  switch ((pestle_attr_kind_t)attr->kind) {
    case PESTLE_ATTR_KIND_BOOL:
      return put(words, attr->as.b);
    case PESTLE_ATTR_KIND_I64:
      return put_u64(words, (uint64_t)attr->as.i64);
    case PESTLE_ATTR_KIND_F64:
      memcpy(&bits, &attr->as.f64, sizeof(bits));
      return put_u64(words, bits);
    case PESTLE_ATTR_KIND_STR: {
      const char* text = attr->as.str ? attr->as.str : "";
      size_t size = strlen(text) + 1;
      return put_u64(words, size) && put_bytes(words, text, size);
    }
    case PESTLE_ATTR_KIND_I64S:
      return put_u64(words, attr->as.i64s.count) &&
             put_bytes(words, attr->as.i64s.data,
                       attr->as.i64s.count * sizeof(int64_t));
    case PESTLE_ATTR_KIND_TYPE:
      return pestle_words_put_type(words, attr->as.type);
    case PESTLE_ATTR_KIND_ELEMENTS:
      return write_elements(words, attr->as.elements);
  }
  return false;
}

bool pestle_spec_write(pestle_words_t* words,
                       const pestle_node_parts_t* parts) {
  if (!put(words, (uint32_t)(parts->attr_count | parts->body_count << 8 |
                             (size_t)(parts->type != NULL) << 16))) {
    return false;
  }
  for (size_t i = 0; i < parts->attr_count; ++i) {
    const pestle_attr_t* attr = &parts->attrs[i];
    if (!put(words, attr->name | (uint32_t)attr->kind << 16) ||
        !write_value(words, attr)) {
      return false;
    }
  }
  return put_bytes(words, parts->bodies,
                   parts->body_count * sizeof(*parts->bodies)) &&
         (!parts->type || pestle_words_put_type(words, parts->type));
}

// --- Reading ---

static const uint32_t* read_elements(pestle_arena_t* arena,
                                     const uint32_t* words,
                                     const pestle_elements_t** out) {
  pestle_elements_t* e = PESTLE_ARENA_NEW(arena, pestle_elements_t);
  if (!e) return NULL;
  words = pestle_words_get_type(words, &e->type);
  e->splat = *words++ != 0;
  e->size = (size_t)get_u64(words);
  e->data = words + 2;
  *out = e;
  return words + 2 + (e->size + 3) / 4;
}

static const uint32_t* read_type(pestle_arena_t* arena, const uint32_t* words,
                                 const pestle_type_t** out) {
  pestle_type_t* type = PESTLE_ARENA_NEW(arena, pestle_type_t);
  if (!type) return NULL;
  *out = type;
  return pestle_words_get_type(words, type);
}

static const uint32_t* read_i64s(pestle_arena_t* arena, const uint32_t* words,
                                 pestle_i64s_t* out) {
  out->count = (size_t)get_u64(words);
  // Words lie at multiples of 4, numbers must at those of 8.
  out->data = pestle_arena_copy(arena, words + 2, out->count * sizeof(int64_t),
                                _Alignof(int64_t));
  return out->data ? words + 2 + 2 * out->count : NULL;
}

static const uint32_t* read_value(pestle_arena_t* arena, const uint32_t* words,
                                  pestle_attr_t* attr) {
  uint64_t bits;
  switch ((pestle_attr_kind_t)attr->kind) {
    case PESTLE_ATTR_KIND_BOOL:
      attr->as.b = *words != 0;
      return words + 1;
    case PESTLE_ATTR_KIND_I64:
      attr->as.i64 = (int64_t)get_u64(words);
      return words + 2;
    case PESTLE_ATTR_KIND_F64:
      bits = get_u64(words);
      memcpy(&attr->as.f64, &bits, sizeof(bits));
      return words + 2;
    case PESTLE_ATTR_KIND_STR:
      attr->as.str = (const char*)(words + 2);
      return words + 2 + (get_u64(words) + 3) / 4;
    case PESTLE_ATTR_KIND_I64S:
      return read_i64s(arena, words, &attr->as.i64s);
    case PESTLE_ATTR_KIND_TYPE:
      return read_type(arena, words, &attr->as.type);
    case PESTLE_ATTR_KIND_ELEMENTS:
      return read_elements(arena, words, &attr->as.elements);
  }
  return NULL;
}

pestle_status_t pestle_spec_read(pestle_arena_t* arena, const uint32_t* words,
                                 pestle_node_parts_t* out_parts) {
  uint32_t head = *words++;
  *out_parts = (pestle_node_parts_t){.attr_count = head & 0xff,
                                     .body_count = head >> 8 & 0xff};
  pestle_attr_t* attrs =
      PESTLE_ARENA_ARRAY(arena, pestle_attr_t, out_parts->attr_count);
  if (!attrs) return PESTLE_OOM();
  for (size_t i = 0; i < out_parts->attr_count; ++i) {
    attrs[i].name = (uint16_t)(*words & 0xffff);
    attrs[i].kind = (uint16_t)(*words >> 16);
    words = read_value(arena, words + 1, &attrs[i]);
    if (!words) return PESTLE_OOM();
  }
  out_parts->attrs = attrs;
  out_parts->bodies = words;
  if (head >> 16 & 1 &&
      !read_type(arena, words + out_parts->body_count, &out_parts->type)) {
    return PESTLE_OOM();
  }
  return NULL;
}

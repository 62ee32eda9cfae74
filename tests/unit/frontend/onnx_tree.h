// SPDX-License-Identifier: Apache-2.0
// An ONNX model as a tree of its fields, to change one and write all out again.
#ifndef PESTLE_TESTS_UNIT_FRONTEND_ONNX_TREE_H_
#define PESTLE_TESTS_UNIT_FRONTEND_ONNX_TREE_H_

#include "onnx_test.h"

typedef enum tree_kind_e {
  TREE_LEAF,
  TREE_MODEL,
  TREE_GRAPH,
  TREE_NODE,
  TREE_ATTR,
  TREE_TENSOR,
  TREE_VALUE,
  TREE_TYPE,
  TREE_TENSOR_TYPE,
  TREE_SHAPE,
  TREE_DIM,
  TREE_OPSET,
} tree_kind_t;

typedef struct tree_t {
  tree_kind_t kind;
  unsigned field, wire;
  uint64_t number;      // of wire type 0
  const uint8_t* data;  // of the others; a message with |kids| has none
  size_t size;
  bool gone;
  struct tree_t** kids;  // with room for one more
  size_t count;
} tree_t;

static inline tree_kind_t tree_kind(tree_kind_t in, unsigned field) {
  static const struct {
    tree_kind_t in;
    unsigned field;
    tree_kind_t kind;
  } rows[] = {
      {TREE_MODEL, 7, TREE_GRAPH},      {TREE_MODEL, 8, TREE_OPSET},
      {TREE_GRAPH, 1, TREE_NODE},       {TREE_GRAPH, 5, TREE_TENSOR},
      {TREE_GRAPH, 11, TREE_VALUE},     {TREE_GRAPH, 12, TREE_VALUE},
      {TREE_NODE, 5, TREE_ATTR},        {TREE_ATTR, 5, TREE_TENSOR},
      {TREE_ATTR, 6, TREE_GRAPH},       {TREE_VALUE, 2, TREE_TYPE},
      {TREE_TYPE, 1, TREE_TENSOR_TYPE}, {TREE_TENSOR_TYPE, 2, TREE_SHAPE},
      {TREE_SHAPE, 1, TREE_DIM},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    if (rows[i].in == in && rows[i].field == field) return rows[i].kind;
  }
  return TREE_LEAF;
}

static inline uint64_t tree_varint(const uint8_t** at) {
  uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    uint8_t byte = *(*at)++;
    value |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) return value;
  }
}

static inline void tree_free(tree_t* t) {
  for (size_t i = 0; i < t->count; ++i)
    tree_free(t->kids[i]);
  free(t->kids);
  free(t);
}

// |data| is a whole message and stays where it is.
static inline tree_t* tree_parse(tree_kind_t kind, unsigned field,
                                 const uint8_t* data, size_t size) {
  tree_t* t = calloc(1, sizeof(*t));
  *t = (tree_t){
      .kind = kind, .field = field, .wire = 2, .data = data, .size = size};
  if (kind == TREE_LEAF) return t;
  const uint8_t *at = data, *end = data + size;
  t->kids = calloc(size + 1, sizeof(*t->kids));
  while (at < end) {
    uint64_t tag = tree_varint(&at);
    unsigned wire = tag & 7, number = (unsigned)(tag >> 3);
    tree_t* kid;
    if (wire == 2) {
      uint64_t length = tree_varint(&at);
      kid = tree_parse(tree_kind(kind, number), number, at, length);
      at += length;
    } else {
      kid = calloc(1, sizeof(*kid));
      *kid = (tree_t){.field = number, .wire = wire, .data = at};
      kid->size = wire == 5 ? 4 : 8;
      if (wire == 0) {
        kid->number = tree_varint(&at);
      } else {
        at += kid->size;
      }
    }
    t->kids[t->count++] = kid;
  }
  return t;
}

// Writes |t| so that it ends at |end|; gives where it begins.
static inline uint8_t* tree_write_(const tree_t* t, uint8_t* end,
                                   bool is_root) {
  uint8_t *at = end, number[10];
  size_t width;
  if (t->gone) return end;
  if (t->kids) {
    for (size_t i = t->count; i-- > 0;)
      at = tree_write_(t->kids[i], at, false);
  } else if (t->wire) {
    at -= t->size;
    if (t->size) memcpy(at, t->data, t->size);
  }
  if (is_root) return at;
  uint64_t before[] = {t->wire ? (uint64_t)(end - at) : t->number,
                       (uint64_t)t->field << 3 | t->wire};
  for (int i = 0; i < 2; ++i) {
    if (i == 0 && (t->wire == 1 || t->wire == 5)) continue;
    width = 0;
    for (uint64_t v = before[i]; width == 0 || v; v >>= 7)
      number[width++] = (uint8_t)((v & 127) | (v > 127 ? 128 : 0));
    at -= width;
    memcpy(at, number, width);
  }
  return at;
}

// The whole model's bytes, which the next call writes over.
static inline pb_t tree_bytes(const tree_t* model) {
  enum { ROOM = 1 << 20, CHANGES = 1 << 14 };
  static uint8_t room[ROOM];
  assert_true(model->size < ROOM - CHANGES);
  uint8_t* begin = tree_write_(model, room + ROOM, true);
  return (pb_t){begin, (size_t)(room + ROOM - begin)};
}

static inline tree_t* tree_find(const tree_t* t, unsigned field) {
  for (size_t i = 0; i < t->count; ++i) {
    if (t->kids[i]->field == field && !t->kids[i]->gone) return t->kids[i];
  }
  return NULL;
}

static inline bool tree_is(const tree_t* t, const char* text) {
  return t && t->size == strlen(text) && !memcmp(t->data, text, t->size);
}

#endif  // PESTLE_TESTS_UNIT_FRONTEND_ONNX_TREE_H_

// SPDX-License-Identifier: Apache-2.0
// Models of tests/unit/frontend/nodes/, a row each:
//
//   Gather 13 axis=1 | f32[2,3] !i64[2]=1,0 | o
//   NonZero 13 | f32[4] | o ; Shape 13 | $0 | o
//
// A node has its op (ms:Op is com.microsoft's, ml:Op ai.onnx.ml's), its opset and its
// attributes, then its inputs, then an "o" for each output; "-" is one that is left out.
// Of several nodes, $0 is the first output of the row, and the model's outputs are the last
// node's.
//
//   a=3 an int, a=0.5 a float (it has a point, an e or an n), a=[1,2] ints or, with points,
//   floats, a:text a string, a:[A,B] strings, a=!f32[2]=1,2 a tensor,
//   a={x:f32[2] y:i64[] | Op:x,i0>z Op:z>w | w} a graph: inputs, nodes, outputs
//
// Inputs are dtype[dims], seq:dtype[dims], opt:dtype[dims] or map:dtype:dtype; one with
// "!" is an initializer, whose elements follow "=" or are 1, 0, 2, 1, 0, 2... A dim "?"
// is not stated, another word is its name. In strings %20 is a blank, and % alone is empty.
//
//   Pad 13 mode:edge | $0 !i64[2]=1,0 | o ! whose extents only a run tells
//
// What stands behind " ! " is part of the sentence by which the model is refused; one
// without is imported.
#ifndef PESTLE_TESTS_UNIT_FRONTEND_ONNX_ROWS_H_
#define PESTLE_TESTS_UNIT_FRONTEND_ONNX_ROWS_H_

#include "base/file.h"
#include "base/mem.h"
#include "frontend/onnx/tensor.h"
#include "onnx_test.h"

enum { ROW_MOST = 24, ROW_TEXT = 1200 };

// --- Words ---

// The next word of |*text|, ended by one of |ends| or the end, in |word|; braces and what
// they hold are of one word.
static inline bool row_word(const char** text, const char* ends, char* word) {
  const char* at = *text + strspn(*text, " ");
  size_t size = 0;
  for (int depth = 0; at[size]; ++size) {
    depth += (at[size] == '{') - (at[size] == '}');
    if (!depth && strchr(ends, at[size])) break;
  }
  assert_true(size < ROW_TEXT);
  memcpy(word, at, size);
  word[size] = 0;
  *text = at + size;
  return size != 0;
}

// |text| without its escapes, in place.
static inline char* row_string(char* text) {
  char* to = text;
  for (const char* at = text; *at; ++at) {
    unsigned code;
    if (*at != '%') {
      *to++ = *at;
    } else if (sscanf(at + 1, "%2x", &code) == 1) {
      *to++ = (char)code;
      at += 2;
    }
  }
  *to = 0;
  return text;
}

// --- Tensors ---

typedef struct row_tensor_t {
  int type;       // TensorProto.DataType
  char dims[96];  // as onnx_value() takes them
  int64_t rank, extents[17], count;
  const char* elements;  // or NULL
} row_tensor_t;

static inline row_tensor_t row_tensor(const char* word) {
  row_tensor_t t = {.count = 1};
  size_t name = strcspn(word, "[");
  t.type = onnx_dtype_named(word, name);
  const char *at = word + name + 1, *end = strchr(at, ']');
  assert_true(end && (size_t)(end - at) < sizeof(t.dims));
  memcpy(t.dims, at, (size_t)(end - at));
  while (at < end) {
    t.extents[t.rank] = strtoll(at, NULL, 10);
    t.count *= t.extents[t.rank++];
    at += strcspn(at, ",]") + 1;
  }
  if (end[1] == '=') t.elements = end + 2;
  return t;
}

// The bytes of element |value| of |type| behind those of |raw|.
static inline void row_put(pb_t* raw, int type, double value, bool* half) {
  pestle_dtype_t dtype = pestle_onnx_dtype(type);
  if (type >= 21) {  // two a byte
    uint8_t nibble = (uint8_t)((int)value & 15);
    if (*half) {
      raw->data[raw->size - 1] |= (uint8_t)(nibble << 4);
    } else {
      pb_raw(raw, &nibble, 1);
    }
    *half = !*half;
    return;
  }
  char bytes[16] = {0};  // complex numbers are 0
  if (!pestle_dtype_is(dtype, PESTLE_KIND_COMPLEX))
    pestle_onnx_store_f64(dtype, value, bytes);
  pb_raw(raw, bytes, pestle_dtype_size(dtype));
}

// The TensorProto that |word| says, called |name|.
static inline pb_t row_initializer(const char* name, const char* word) {
  static char text[ROW_TEXT];
  row_tensor_t t = row_tensor(word);
  pb_t raw = {0}, strings = {0};
  bool half = false;
  const char* at = t.elements;
  for (int64_t i = 0; i < t.count; ++i) {
    double value = (double)((i + 1) % 3);
    if (at && t.type != 8) value = strtod(at, NULL);
    if (at && t.type == 8) {
      row_word(&at, ",", text);
      pb_text(&strings, 6, row_string(text));
    } else if (t.type == 8) {
      pb_text(&strings, 6, "s");
    } else {
      row_put(&raw, t.type, value, &half);
    }
    if (at && t.type != 8) at += strcspn(at, ",");
    if (at && *at == ',') ++at;
  }
  pb_t tensor = onnx_tensor(name, t.type, (size_t)t.rank, t.extents,
                            t.type == 8 ? NULL : (void*)raw.data, raw.size);
  pb_raw(&tensor, strings.data, strings.size);
  pb_free(&raw);
  pb_free(&strings);
  return tensor;
}

// The ValueInfoProto.
static inline pb_t row_value(const char* name, const char* word) {
  if (!strncmp(word, "map:", 4)) {
    const char* value = strchr(word + 4, ':') + 1;
    pb_t map = {0}, type = {0}, info = {0}, tensor = {0}, of = {0};
    pb_int(&tensor, 1, onnx_dtype_named(value, strlen(value)));
    pb_message(&of, 1, tensor);
    pb_int(&map, 1, onnx_dtype_named(word + 4, (size_t)(value - word - 5)));
    pb_message(&map, 2, of);
    pb_message(&type, 5, map);
    pb_text(&info, 1, name);
    pb_message(&info, 2, type);
    return info;
  }
  bool is_list = !strncmp(word, "seq:", 4),
       is_optional = !strncmp(word, "opt:", 4);
  row_tensor_t t = row_tensor(is_list || is_optional ? word + 4 : word);
  pb_t plain = onnx_value(name, t.type, t.dims);
  if (!is_list && !is_optional) return plain;
  // Field 2 of |plain|, behind the name, is the type of the tensor.
  size_t head = 2 + strlen(name);
  pb_t of = {0}, type = {0}, info = {0};
  pb_raw(&of, plain.data + head, plain.size - head);
  of.data[0] = 1 << 3 | 2;  // Sequence.elem_type, Optional.elem_type
  pb_message(&type, is_list ? 4 : 9, of);
  pb_text(&info, 1, name);
  pb_message(&info, 2, type);
  pb_free(&plain);
  return info;
}

// --- Attributes ---

// inputs | nodes | outputs
static inline pb_t row_body(const char* text) {
  static char word[ROW_TEXT];
  pb_t graph = {0};
  while (row_word(&text, " |", word)) {
    char* type = strchr(word, ':');
    *type++ = 0;
    if (*type == '!') {
      pb_message(&graph, 5, row_initializer(word, type + 1));
    } else {
      pb_message(&graph, 11, row_value(word, type));
    }
  }
  text += *text == '|';
  while (row_word(&text, " |", word)) {
    char *inputs = strchr(word, ':'), *outputs = strchr(word, '>');
    *inputs++ = *outputs++ = 0;
    onnx_node(&graph, word, word, inputs, outputs, NULL);
  }
  text += *text == '|';
  while (row_word(&text, " ", word))
    onnx_output(&graph, word);
  return graph;
}

// A list in brackets: of strings, floats or ints.
static inline void row_list(pb_t* attr, char* value, bool strings) {
  static char word[ROW_TEXT];
  bool floats = !strings && strpbrk(value, ".en") != NULL;
  const char* at = value + 1;
  while (*at && *at != ']') {
    row_word(&at, ",]", word);
    if (strings) {
      pb_text(attr, 9, row_string(word));
    } else if (floats) {
      pb_f32(attr, 7, strtof(word, NULL));
    } else {
      pb_int(attr, 8, strtoll(word, NULL, 10));
    }
    at += *at == ',';
  }
  pb_int(attr, 20, strings ? 8 : floats ? 6 : 7);
}

static inline pb_t row_attr(char* word) {
  char* value = word + strcspn(word, "=:");
  bool is_text = *value == ':';
  *value++ = 0;
  pb_t attr = {0};
  pb_text(&attr, 1, word);
  if (*value == '[') {
    row_list(&attr, value, is_text);
  } else if (is_text) {
    pb_text(&attr, 4, row_string(value));
    pb_int(&attr, 20, 3);
  } else if (*value == '!') {
    pb_message(&attr, 5, row_initializer("t", value + 1));
    pb_int(&attr, 20, 4);
  } else if (*value == '{') {
    value[strlen(value) - 1] = 0;
    pb_message(&attr, 6, row_body(value + 1));
    pb_int(&attr, 20, 5);
  } else if (strpbrk(value, ".en")) {
    pb_f32(&attr, 2, strtof(value, NULL));
    pb_int(&attr, 20, 1);
  } else {
    pb_int(&attr, 3, strtoll(value, NULL, 10));
    pb_int(&attr, 20, 2);
  }
  return attr;
}

// --- Models ---

typedef struct row_t {
  char op[64];         // of the last node
  const char* domain;  // the same
  int64_t opset;
  size_t inputs, outputs;  // so far
} row_t;

static inline void row_put_input(row_t* row, pb_t* graph, const char* word,
                                 char* name) {
  if (!strcmp(word, "-")) {
    *name = 0;
  } else if (*word == '$') {
    snprintf(name, 32, "o%.8s", word + 1);
  } else {
    snprintf(name, 32, "i%zu", row->inputs++);
    if (*word == '!') {
      pb_message(graph, 5, row_initializer(name, word + 1));
    } else {
      pb_message(graph, 11, row_value(name, word));
    }
  }
}

// The node that |*text| begins with; |is_last|: its outputs are the graph's.
static inline void row_node(row_t* row, pb_t* graph, const char** text) {
  static char word[ROW_TEXT];
  char name[32];
  pb_t node = {0};
  row_word(text, " ", word);
  row->domain = !strncmp(word, "ms:", 3)   ? "com.microsoft"
                : !strncmp(word, "ml:", 3) ? "ai.onnx.ml"
                                           : "";
  snprintf(row->op, sizeof(row->op), "%.60s", word + (*row->domain ? 3 : 0));
  row_word(text, " ", word);
  row->opset = strtoll(word, NULL, 10);
  while (row_word(text, " |", word))
    pb_message(&node, 5, row_attr(word));
  *text += **text == '|';
  while (row_word(text, " |", word)) {
    row_put_input(row, graph, word, name);
    pb_text(&node, 1, name);
  }
  *text += **text == '|';
  size_t first = row->outputs;
  while (row_word(text, " ;", word)) {
    snprintf(name, sizeof(name), "o%zu", row->outputs++);
    pb_text(&node, 2, *word == 'o' ? name : "");
  }
  *text += strspn(*text, " ");
  if (!**text) {
    for (size_t i = first; i < row->outputs; ++i) {
      snprintf(name, sizeof(name), "o%zu", i);
      // An output that is left out has no name.
      pb_t probe = {0};
      pb_text(&probe, 2, name);
      if (memmem(node.data, node.size, probe.data, probe.size))
        onnx_output(graph, name);
      pb_free(&probe);
    }
  }
  pb_text(&node, 3, "n");
  pb_text(&node, 4, row->op);
  if (*row->domain) pb_text(&node, 7, row->domain);
  pb_message(graph, 1, node);
}

static inline pb_t row_model(const char* text, row_t* row) {
  *row = (row_t){0};
  pb_t graph = {0}, model = {0};
  for (;;) {
    row_node(row, &graph, &text);
    if (*text != ';') break;
    ++text;
  }
  pb_int(&model, 1, 10);
  onnx_opset(&model, "", *row->domain ? 21 : row->opset);
  if (*row->domain) onnx_opset(&model, row->domain, row->opset);
  pb_message(&model, 7, graph);
  return model;
}

// --- Files ---

// By what the row that is visited is refused; NULL: it is imported.
static const char* rows_refusal;

// Calls |visit| with each row of nodes/|file|.
static inline void rows_visit(const char* file,
                              void (*visit)(void* self, const char* text),
                              void* self) {
  const char* root = getenv("PESTLE_SOURCE_DIR");
  if (!root) skip();
  char path[1024];
  snprintf(path, sizeof(path), "%s/tests/unit/frontend/nodes/%s", root, file);
  char* data;
  size_t size;
  pestle_allocator_t allocator = pestle_allocator_system();
  assert_ok(pestle_file_read(path, SIZE_MAX / 2, allocator, &data, &size));
  char* rest = data;
  while (rest && *rest) {
    char* line = rest;
    rest = strchr(rest, '\n');
    if (rest) *rest++ = 0;
    if (!*line || *line == '#') continue;
    char* end = strstr(line, " ! ");
    rows_refusal = end ? end + 3 : NULL;
    if (end) *end = 0;
    visit(self, line);
  }
  pestle_dealloc(allocator, data, size + 1);
}

#endif  // PESTLE_TESTS_UNIT_FRONTEND_ONNX_ROWS_H_

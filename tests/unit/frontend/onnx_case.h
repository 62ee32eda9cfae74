// SPDX-License-Identifier: Apache-2.0
// One node as text, with what it must give:
//
//   onnx_case("Gather", 13, "axis=1", "f32[1,3]=1,2,3 i64[2]=2,0",
//             "f32[1,2]=3,1");
//
// Attributes: name=3 an int, name=0.5 a float (it has a point), name=[1,2]
// ints or, with points, floats, name:text a string, name:[A,B] strings, apart by
// blanks. Inputs and outputs: dtype[dims]=
// elements, "-" for one that is left out; an input that starts with "!" is an
// initializer. Elements are compared with a tolerance of 1e-5, relative above 1.
#ifndef PESTLE_TESTS_UNIT_FRONTEND_ONNX_CASE_H_
#define PESTLE_TESTS_UNIT_FRONTEND_ONNX_CASE_H_

#include <math.h>

#include "frontend/onnx/tensor.h"
#include "onnx_test.h"

#define ONNX_CASE_MOST 16

typedef struct onnx_case_tensor_t {
  bool omitted, constant;
  int type;  // TensorProto.DataType
  pestle_elements_t elements;
  char data[4096];
} onnx_case_tensor_t;

// The next word of |*text|, which ends at a blank; false at the end.
static inline bool onnx_case_word(const char** text, char* word, size_t size) {
  *text += strspn(*text, " ");
  size_t length = strcspn(*text, " ");
  assert_true(length < size);
  memcpy(word, *text, length);
  word[length] = 0;
  *text += length;
  return length != 0;
}

static inline void onnx_case_tensor(const char* word, onnx_case_tensor_t* out) {
  memset(out, 0, sizeof(*out));
  out->omitted = strcmp(word, "-") == 0;
  out->constant = *word == '!';
  if (out->omitted) return;
  if (out->constant) ++word;
  char name[16];
  size_t length = strcspn(word, "[");
  assert_true(length < sizeof(name) && word[length] == '[');
  memcpy(name, word, length);
  name[length] = 0;
  out->type = onnx_dtype_named(name, strlen(name));
  pestle_type_t* type = &out->elements.type;
  type->dtype = pestle_onnx_dtype(out->type);
  const char* at = word + length + 1;
  while (*at != ']') {
    char* end;
    type->dims[type->rank++] = strtoll(at, &end, 10);
    at = *end == ',' ? end + 1 : end;
  }
  at += 1 + (at[1] == '=');
  size_t size = pestle_dtype_size(type->dtype);
  int64_t count = pestle_type_count(type);
  assert_true((size_t)count * size <= sizeof(out->data));
  for (int64_t i = 0; i < count; ++i) {
    char* end;
    double value = strtod(at, &end);
    assert_true(end != at);
    pestle_dtype_t part = type->dtype == PESTLE_C64    ? PESTLE_F32
                          : type->dtype == PESTLE_C128 ? PESTLE_F64
                                                       : type->dtype;
    pestle_onnx_store_f64(part, value, out->data + (size_t)i * size);
    at = *end == ',' ? end + 1 : end;
  }
  assert_int_equal(*at, 0);
  out->elements.data = out->data;
  out->elements.size = (size_t)count * size;
}

static inline size_t onnx_case_tensors(const char* text,
                                       onnx_case_tensor_t* out) {
  static char word[8192];
  size_t count = 0;
  while (onnx_case_word(&text, word, sizeof(word))) {
    assert_true(count < ONNX_CASE_MOST);
    onnx_case_tensor(word, &out[count++]);
  }
  return count;
}

static inline void onnx_case_attr(char* word, pb_t* attrs) {
  char* value = word + strcspn(word, "=:");
  char kind = *value;
  *value++ = 0;
  if (kind == ':' && *value == '[') {
    pb_t attr = {0};
    pb_text(&attr, 1, word);
    for (char* at = strtok(value, "[,]"); at; at = strtok(NULL, "[,]"))
      pb_text(&attr, 9, at);
    pb_int(&attr, 20, 8);
    pb_message(attrs, 5, attr);
  } else if (kind == ':') {
    onnx_attr_text(attrs, word, value);
  } else if (*value == '[' && strchr(value, '.')) {
    pb_t attr = {0};
    pb_text(&attr, 1, word);
    for (char* at = value + 1; *at != ']';) {
      pb_f32(&attr, 7, strtof(at, &at));
      if (*at == ',') ++at;
    }
    pb_int(&attr, 20, 6);
    pb_message(attrs, 5, attr);
  } else if (*value == '[') {
    int64_t list[32];
    size_t count = 0;
    for (char* at = value + 1; *at != ']';) {
      list[count++] = strtoll(at, &at, 10);
      if (*at == ',') ++at;
    }
    onnx_attr_ints(attrs, word, count, list);
  } else if (strpbrk(value, ".en")) {
    pb_t attr = {0};
    pb_text(&attr, 1, word);
    pb_f32(&attr, 2, strtof(value, NULL));
    pb_int(&attr, 20, 1);
    pb_message(attrs, 5, attr);
  } else {
    onnx_attr_int(attrs, word, strtoll(value, NULL, 10));
  }
}

static inline void onnx_case_put_input(pb_t* graph, const char* name,
                                       const onnx_case_tensor_t* in) {
  const pestle_type_t* type = &in->elements.type;
  if (in->constant) {
    pb_message(graph, 5,
               onnx_tensor(name, in->type, (size_t)type->rank, type->dims,
                           in->data, in->elements.size));
    return;
  }
  char dims[400] = "";
  size_t at = 0;
  for (int32_t i = 0; i < type->rank; ++i) {
    at += (size_t)snprintf(dims + at, sizeof(dims) - at, i ? ",%lld" : "%lld",
                           (long long)type->dims[i]);
  }
  onnx_input(graph, name, in->type, dims);
}

// A model of one node |op|.
static inline pb_t onnx_case_model(const char* op, int64_t opset,
                                   const char* attributes,
                                   const onnx_case_tensor_t* in,
                                   size_t in_count,
                                   const onnx_case_tensor_t* out,
                                   size_t out_count) {
  pb_t graph = {0}, attrs = {0};
  char inputs[400] = "", outputs[400] = "", name[32], word[400];
  for (size_t i = 0; i < in_count; ++i) {
    size_t at = strlen(inputs);
    snprintf(name, sizeof(name), "i%zu", i);
    snprintf(inputs + at, sizeof(inputs) - at, "%s%s", i ? "," : "",
             in[i].omitted ? "" : name);
    if (!in[i].omitted) onnx_case_put_input(&graph, name, &in[i]);
  }
  for (size_t i = 0; i < out_count; ++i) {
    size_t at = strlen(outputs);
    snprintf(name, sizeof(name), "o%zu", i);
    snprintf(outputs + at, sizeof(outputs) - at, "%s%s", i ? "," : "",
             out[i].omitted ? "" : name);
    if (!out[i].omitted) onnx_output(&graph, name);
  }
  while (onnx_case_word(&attributes, word, sizeof(word))) {
    onnx_case_attr(word, &attrs);
  }
  onnx_node(&graph, op, "n", inputs, outputs, &attrs);
  return onnx_model(opset, &graph);
}

static inline void onnx_case_compare(const char* op, size_t index,
                                     const pestle_elements_t* found,
                                     const pestle_elements_t* wanted) {
  bool same = pestle_type_equal(&found->type, &wanted->type);
  if (!same) print_error("%s: output %zu has another type\n", op, index);
  assert_true(same);
  bool narrow = pestle_dtype_is(found->type.dtype, PESTLE_KIND_FLOAT) &&
                pestle_dtype_size(found->type.dtype) < 4;
  double tolerance = narrow ? 1e-2 : 1e-5;
  for (int64_t i = 0; i < pestle_type_count(&found->type); ++i) {
    double a = pestle_onnx_element_f64(found, (size_t)i);
    double b = pestle_onnx_element_f64(wanted, (size_t)i);
    if (a == b || (isnan(a) && isnan(b))) continue;
    double scale = fabs(b) > 1 ? fabs(b) : 1;
    if (isfinite(b) && fabs(a - b) <= tolerance * scale) continue;
    print_error("%s: element %lld of output %zu is %.9g, not %.9g\n", op,
                (long long)i, index, a, b);
    fail();
  }
}

static inline void onnx_case(const char* op, int64_t opset,
                             const char* attributes, const char* inputs,
                             const char* outputs) {
  static onnx_case_tensor_t in[ONNX_CASE_MOST], out[ONNX_CASE_MOST];
  static char found[ONNX_CASE_MOST][sizeof(in[0].data)];
  const void* arguments[ONNX_CASE_MOST];
  void* results[ONNX_CASE_MOST];
  size_t in_count = onnx_case_tensors(inputs, in), argument_count = 0;
  size_t out_count = onnx_case_tensors(outputs, out), result_count = 0;
  pb_t model =
      onnx_case_model(op, opset, attributes, in, in_count, out, out_count);
  for (size_t i = 0; i < in_count; ++i) {
    if (in[i].omitted || in[i].constant) continue;
    arguments[argument_count++] = in[i].data;
  }
  for (size_t i = 0; i < out_count; ++i) {
    if (!out[i].omitted) results[result_count++] = found[i];
  }
  onnx_test_t t;
  onnx_begin(&t);
  assert_ok(onnx_import(&t, &model));
  assert_ok(pestle_module_verify(t.module));
  pestle_function_t* entry = pestle_module_entry(t.module);
  pestle_node_t* end = entry->body->block->last;
  assert_int_equal(end->operand_count, result_count);
  size_t at = 0;
  for (size_t i = 0; i < out_count; ++i) {
    if (out[i].omitted) continue;
    const pestle_type_t* type = pestle_node_operand(end, at++)->type;
    assert_true(pestle_type_bytes(type) <= sizeof(found[i]));
  }
  assert_ok(pestle_ref_evaluate_function(pestle_test_allocator(&t.memory),
                                         entry, arguments, results));
  at = 0;
  for (size_t i = 0; i < out_count; ++i) {
    if (out[i].omitted) continue;
    const pestle_type_t* type = pestle_node_operand(end, at++)->type;
    onnx_case_compare(op, i,
                      &(pestle_elements_t){.type = *type, .data = found[i]},
                      &out[i].elements);
  }
  onnx_end(&t);
  pb_free(&model);
}

// The node must be refused.
#define onnx_case_fails(op, opset, attributes, inputs, code, text)    \
  do {                                                                \
    static onnx_case_tensor_t in_[ONNX_CASE_MOST], out_[1];           \
    size_t count_ = onnx_case_tensors(inputs, in_);                   \
    memset(out_, 0, sizeof(out_));                                    \
    pb_t model_ =                                                     \
        onnx_case_model(op, opset, attributes, in_, count_, out_, 1); \
    onnx_fails(model_, code, text);                                   \
  } while (0)

#endif  // PESTLE_TESTS_UNIT_FRONTEND_ONNX_CASE_H_

// SPDX-License-Identifier: Apache-2.0
// Fixture of the tests of the ONNX front end: a writer of ONNX protobufs, and
// an import on a counting allocator.
//
//   pb_t graph = {0};
//   onnx_input(&graph, "x", 1, "2,n");
//   onnx_node(&graph, "Relu", "r", "x", "y", NULL);
//   onnx_output(&graph, "y");
//   pb_t model = onnx_model(13, &graph);
//
// A message that is put into another one is freed by that.
#ifndef PESTLE_TESTS_UNIT_FRONTEND_ONNX_TEST_H_
#define PESTLE_TESTS_UNIT_FRONTEND_ONNX_TEST_H_

#include <stdlib.h>

#include "ir/graph.h"
#include "ir/ref/ref.h"
#include "pestle/import.h"
#include "test.h"

// --- Protobuf ---

typedef struct pb_t {
  uint8_t* data;
  size_t size;
} pb_t;

static inline void pb_raw(pb_t* m, const void* data, size_t size) {
  m->data = realloc(m->data, m->size + size + 1);
  if (size) memcpy(m->data + m->size, data, size);
  m->size += size;
}

static inline void pb_varint(pb_t* m, uint64_t value) {
  do {
    uint8_t byte = value & 0x7f;
    value >>= 7;
    if (value) byte |= 0x80;
    pb_raw(m, &byte, 1);
  } while (value);
}

static inline void pb_int(pb_t* m, unsigned field, int64_t value) {
  pb_varint(m, field << 3);
  pb_varint(m, (uint64_t)value);
}

static inline void pb_bytes(pb_t* m, unsigned field, const void* data,
                            size_t size) {
  pb_varint(m, field << 3 | 2);
  pb_varint(m, size);
  pb_raw(m, data, size);
}

static inline void pb_text(pb_t* m, unsigned field, const char* text) {
  pb_bytes(m, field, text, strlen(text));
}

static inline void pb_f32(pb_t* m, unsigned field, float value) {
  pb_varint(m, field << 3 | 5);
  pb_raw(m, &value, 4);
}

static inline void pb_free(pb_t* m) {
  free(m->data);
  *m = (pb_t){0};
}

static inline void pb_message(pb_t* m, unsigned field, pb_t inner) {
  pb_bytes(m, field, inner.data, inner.size);
  pb_free(&inner);
}

// Calls |put| for each comma-separated part of |list| ("a,,b" has three).
static inline void pb_list(pb_t* m, unsigned field, const char* list) {
  while (list && *list) {
    size_t size = strcspn(list, ",");
    pb_bytes(m, field, list, size);
    list += size + (list[size] == ',');
  }
}

// --- ONNX ---

enum { ONNX_FLOAT = 1, ONNX_INT32 = 6, ONNX_INT64 = 7, ONNX_BOOL = 9 };

// |dims|: "2,n,?,-1" (a name, nothing, a number).
static inline pb_t onnx_value(const char* name, int type, const char* dims) {
  pb_t shape = {0}, tensor = {0}, holder = {0}, info = {0};
  while (*dims) {
    pb_t dim = {0};
    size_t size = strcspn(dims, ",");
    char* end;
    long long extent = strtoll(dims, &end, 10);
    if (end == dims + size) {
      pb_int(&dim, 1, extent);
    } else if (*dims != '?') {
      pb_bytes(&dim, 2, dims, size);
    }
    pb_message(&shape, 1, dim);
    dims += size + (dims[size] == ',');
  }
  pb_int(&tensor, 1, type);
  pb_message(&tensor, 2, shape);
  pb_message(&holder, 1, tensor);
  pb_text(&info, 1, name);
  pb_message(&info, 2, holder);
  return info;
}

static inline void onnx_input(pb_t* graph, const char* name, int type,
                              const char* dims) {
  pb_message(graph, 11, onnx_value(name, type, dims));
}

static inline void onnx_output(pb_t* graph, const char* name) {
  pb_t info = {0};
  pb_text(&info, 1, name);
  pb_message(graph, 12, info);
}

// |attrs| (may be NULL) holds attribute fields made by onnx_attr_*; it is
// freed.
static inline void onnx_node(pb_t* graph, const char* op, const char* name,
                             const char* inputs, const char* outputs,
                             pb_t* attrs) {
  pb_t node = {0};
  pb_list(&node, 1, inputs);
  pb_list(&node, 2, outputs);
  pb_text(&node, 3, name);
  pb_text(&node, 4, op);
  if (attrs) {
    pb_raw(&node, attrs->data, attrs->size);
    pb_free(attrs);
  }
  pb_message(graph, 1, node);
}

static inline void onnx_attr_int(pb_t* attrs, const char* name, int64_t value) {
  pb_t attr = {0};
  pb_text(&attr, 1, name);
  pb_int(&attr, 3, value);
  pb_int(&attr, 20, 2);
  pb_message(attrs, 5, attr);
}

static inline void onnx_attr_text(pb_t* attrs, const char* name,
                                  const char* value) {
  pb_t attr = {0};
  pb_text(&attr, 1, name);
  pb_text(&attr, 4, value);
  pb_int(&attr, 20, 3);
  pb_message(attrs, 5, attr);
}

static inline void onnx_attr_ints(pb_t* attrs, const char* name, size_t count,
                                  const int64_t* values) {
  pb_t attr = {0};
  pb_text(&attr, 1, name);
  for (size_t i = 0; i < count; ++i)
    pb_int(&attr, 8, values[i]);
  pb_int(&attr, 20, 7);
  pb_message(attrs, 5, attr);
}

static inline void onnx_attr_message(pb_t* attrs, const char* name, int type,
                                     unsigned field, pb_t value) {
  pb_t attr = {0};
  pb_text(&attr, 1, name);
  pb_message(&attr, field, value);
  pb_int(&attr, 20, type);
  pb_message(attrs, 5, attr);
}

static inline pb_t onnx_tensor(const char* name, int type, size_t rank,
                               const int64_t* dims, const void* raw,
                               size_t size) {
  pb_t tensor = {0};
  for (size_t i = 0; i < rank; ++i)
    pb_int(&tensor, 1, dims[i]);
  pb_int(&tensor, 2, type);
  pb_text(&tensor, 8, name);
  if (raw) pb_bytes(&tensor, 9, raw, size);
  return tensor;
}

static inline void onnx_floats(pb_t* graph, const char* name, size_t rank,
                               const int64_t* dims, const float* values) {
  size_t count = 1;
  for (size_t i = 0; i < rank; ++i)
    count *= (size_t)dims[i];
  pb_message(graph, 5,
             onnx_tensor(name, ONNX_FLOAT, rank, dims, values, count * 4));
}

static inline void onnx_int_list(pb_t* graph, const char* name, size_t count,
                                 const int64_t* values) {
  int64_t dims[1] = {(int64_t)count};
  pb_message(graph, 5,
             onnx_tensor(name, ONNX_INT64, 1, dims, values, count * 8));
}

static inline void onnx_opset(pb_t* model, const char* domain, int64_t opset) {
  pb_t import = {0};
  pb_text(&import, 1, domain);
  pb_int(&import, 2, opset);
  pb_message(model, 8, import);
}

// Takes |graph|.
static inline pb_t onnx_model(int64_t opset, pb_t* graph) {
  pb_t model = {0};
  pb_int(&model, 1, 8);
  onnx_opset(&model, "", opset);
  pb_message(&model, 7, *graph);
  *graph = (pb_t){0};
  return model;
}

// --- Imports ---

typedef struct onnx_test_t {
  pestle_test_allocator_t memory;
  pestle_context_t* context;
  pestle_module_t* module;
  pestle_import_options_t options;
} onnx_test_t;

static inline void onnx_begin(onnx_test_t* t) {
  memset(t, 0, sizeof(*t));
  pestle_test_allocator_init(&t->memory, 0);
  pestle_context_options_t options = {
      .struct_size = sizeof(options),
      .allocator = pestle_test_allocator(&t->memory)};
  assert_ok(pestle_context_create(&options, &t->context));
  t->options.struct_size = sizeof(t->options);
}

static inline void onnx_end(onnx_test_t* t) {
  if (t->module) pestle_module_release(t->module);
  pestle_context_release(t->context);
  pestle_test_allocator_check(&t->memory);
}

static inline pestle_status_t onnx_import(onnx_test_t* t, const pb_t* model) {
  return pestle_import_onnx(t->context, model->data, model->size, true, NULL,
                            &t->options, &t->module);
}

// Imports |model|, which must fail with |code| and a message with |text|, and
// frees it.
#define onnx_fails(model, code, text)                     \
  do {                                                    \
    onnx_test_t t_;                                       \
    onnx_begin(&t_);                                      \
    assert_error(onnx_import(&t_, &(model)), code, text); \
    onnx_end(&t_);                                        \
    pb_free(&(model));                                    \
  } while (0)

// Imports |model|, whose shapes must follow from the value of argument |index|,
// and frees it.
static inline void onnx_wants_value(pb_t* model, size_t index) {
  onnx_test_t t;
  onnx_begin(&t);
  assert_ok(onnx_import(&t, model));
  assert_int_equal(pestle_module_value_argument_count(t.module), 1);
  assert_int_equal(pestle_module_value_argument(t.module, 0), index);
  onnx_end(&t);
  pb_free(model);
}

// Imports |model|, runs it on |arguments| and frees it.
static inline void onnx_run(pb_t* model, const void* const* arguments,
                            void* const* results) {
  onnx_test_t t;
  onnx_begin(&t);
  assert_ok(onnx_import(&t, model));
  assert_ok(pestle_module_verify(t.module));
  assert_ok(pestle_ref_evaluate_function(pestle_test_allocator(&t.memory),
                                         pestle_module_entry(t.module),
                                         arguments, results));
  onnx_end(&t);
  pb_free(model);
}

// TensorProto.DataType of a dtype by the name that rows have for it.
static inline int onnx_dtype_named(const char* name, size_t size) {
  static const struct {
    const char* name;
    int type;
  } types[] = {
      {"f32", 1},       {"u8", 2},          {"i8", 3},      {"u16", 4},
      {"i16", 5},       {"i32", 6},         {"i64", 7},     {"str", 8},
      {"i1", 9},        {"f16", 10},        {"f64", 11},    {"u32", 12},
      {"u64", 13},      {"c64", 14},        {"c128", 15},   {"bf16", 16},
      {"f8e4m3fn", 17}, {"f8e4m3fnuz", 18}, {"f8e5m2", 19}, {"f8e5m2fnuz", 20},
      {"u4", 21},       {"i4", 22},         {"f4e2m1", 23}};
  for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); ++i) {
    if (strlen(types[i].name) == size && !memcmp(types[i].name, name, size))
      return types[i].type;
  }
  fail_msg("no dtype '%.*s'", (int)size, name);
  return 0;
}

// Each request for memory of an import of |model| with |options| fails once: it ends so, or
// as it ends without.
static inline void onnx_fail_each(const pb_t* model,
                                  const pestle_import_options_t* options) {
  bool failed = true;
  pestle_status_code_t whole = PESTLE_STATUS_OK;
  for (size_t k = 0; failed || k == 1; ++k) {
    onnx_test_t t;
    onnx_begin(&t);
    t.options = *options;
    t.options.struct_size = sizeof(t.options);
    size_t before = atomic_load(&t.memory.request_count);
    if (k) atomic_store(&t.memory.fail_at, before + k);
    pestle_status_t status = onnx_import(&t, model);
    pestle_status_code_t code = pestle_status_code(status);
    failed = pestle_test_allocator_failed(&t.memory);
    if (!k) whole = code;
    if (!failed || code != PESTLE_STATUS_OUT_OF_MEMORY)
      assert_int_equal(code, whole);
    pestle_status_release(status);
    onnx_end(&t);
  }
}

// How often |op| occurs in the entry function, regions included.
static inline int onnx_count(pestle_module_t* module, pestle_op_t op) {
  int count = 0;
  pestle_region_t* body = pestle_module_entry(module)->body;
  for (pestle_node_t* n = pestle_region_next(body, NULL); n;
       n = pestle_region_next(body, n)) {
    count += n->op == op;
  }
  return count;
}

#endif  // PESTLE_TESTS_UNIT_FRONTEND_ONNX_TEST_H_

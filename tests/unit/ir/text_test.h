// SPDX-License-Identifier: Apache-2.0
// Fixture of the tests of the text, binary and canonical forms: a module from
// text in one line, its text again, and the inputs of tests/golden/ir.
#ifndef PESTLE_TESTS_UNIT_IR_TEXT_TEST_H_
#define PESTLE_TESTS_UNIT_IR_TEXT_TEST_H_

#include <stdlib.h>

#include "ir/graph.h"
#include "test.h"

static inline pestle_context_t* text_context(void) {
  pestle_context_t* context = NULL;
  assert_ok(pestle_context_create(NULL, &context));
  return context;
}

static inline pestle_module_t* text_parse(pestle_context_t* context,
                                          const char* text) {
  pestle_module_t* module = NULL;
  assert_ok(
      pestle_module_parse(context, text, strlen(text), "t.mlir", &module));
  return module;
}

// The text of |module| on the C heap.
static inline char* text_print(const pestle_module_t* module, unsigned flags) {
  char* text;
  size_t size;
  assert_ok(pestle_module_print(module, flags, &text, &size));
  assert_int_equal(strlen(text), size);
  char* copy = malloc(size + 1);
  memcpy(copy, text, size + 1);
  pestle_context_free(module->context, text, size + 1);
  return copy;
}

// Parses |text|, prints it, and compares with |expected|.
static inline void assert_prints(const char* text, const char* expected,
                                 unsigned flags) {
  pestle_context_t* context = text_context();
  pestle_module_t* module = text_parse(context, text);
  char* printed = text_print(module, flags);
  assert_string_equal(printed, expected);
  free(printed);
  pestle_module_release(module);
  pestle_context_release(context);
}

#define assert_refuses(text, code, part)                                    \
  do {                                                                      \
    pestle_context_t* refuse_context_ = text_context();                     \
    pestle_module_t* refuse_module_ = NULL;                                 \
    assert_error(pestle_module_parse(refuse_context_, (text), strlen(text), \
                                     "t.mlir", &refuse_module_),            \
                 code, part);                                               \
    assert_null(refuse_module_);                                            \
    pestle_context_release(refuse_context_);                                \
  } while (0)

// A file of tests/golden/ir/Inputs on the C heap, or NULL when it is not there;
// the test is skipped when the tree is not there.
static inline char* text_golden(const char* name, size_t* out_size) {
  const char* root = getenv("PESTLE_SOURCE_DIR");
  if (!root) {
    skip();
    __builtin_unreachable();
  }
  char path[4096];
  snprintf(path, sizeof(path), "%s/tests/golden/ir/Inputs/%s", root, name);
  FILE* file = fopen(path, "rb");
  if (!file) return NULL;
  fseek(file, 0, SEEK_END);
  *out_size = (size_t)ftell(file);
  rewind(file);
  char* text = malloc(*out_size + 1);
  assert_int_equal(fread(text, 1, *out_size, file), *out_size);
  text[*out_size] = 0;
  fclose(file);
  return text;
}

// Programs as jax.jit(f).lower(x).as_text() printed them (jax 0.10), all their
// generic forms, and one with every op of ours.
static const char* const text_golden_names[] = {
    "attn.mlir",         "control.mlir",  "control_generic.mlir", "conv.mlir",
    "conv_generic.mlir", "convgrad.mlir", "every_op.mlir",        "i8dot.mlir",
    "misc.mlir",         "mlp.mlir",      "mlp_debug.mlir",       "multi.mlir"};
enum { TEXT_GOLDENS = sizeof(text_golden_names) / sizeof(*text_golden_names) };

#endif  // PESTLE_TESTS_UNIT_IR_TEXT_TEST_H_

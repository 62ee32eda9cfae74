// SPDX-License-Identifier: Apache-2.0
// Which graphs may serve fewer rows. Each case is a function for N rows, written with
// $1 for N, $2 for 2 N and so on. What is said to be shown is held against the
// reference evaluator: with anything behind the rows that count, those results that
// have rows begin as the results of the graph for few rows.
#include "session/rows.h"

#include <stdlib.h>

#include "ir/ref/ref.h"
#include "test.h"

enum { MANY = 5, FEW = 3, MOST = 8 };

typedef struct case_t {
  const char* name;
  bool is_shown;
  const char* text;
} case_t;

#define F(arguments, results, body) \
  "func.func @main(" arguments ") -> (" results ") {\n" body "\n}\n"
#define ADD_BODY                                \
  "({^bb0(%p: tensor<f32>, %q: tensor<f32>):\n" \
  "  %r = stablehlo.add %p, %q : tensor<f32>\n" \
  "  stablehlo.return %r : tensor<f32>\n})"

static const case_t cases[] = {
    {"a product with weights, a bias and a softmax", true,
     F("%x: tensor<$1x3xf32>, %w: tensor<3x4xf32>", "tensor<$1x4xf32>",
       "%d = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : "
       "(tensor<$1x3xf32>, tensor<3x4xf32>) -> tensor<$1x4xf32>\n"
       "%b = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>\n"
       "%c = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<4xf32>) -> "
       "tensor<$1x4xf32>\n"
       "%s = stablehlo.add %d, %c : tensor<$1x4xf32>\n"
       "%y = \"pestle.softmax\"(%s) <{dimensions = array<i64: 1>}> : "
       "(tensor<$1x4xf32>) -> tensor<$1x4xf32>\n"
       "return %y : tensor<$1x4xf32>")},
    {"a softmax over the rows", false,
     F("%x: tensor<$1x3xf32>", "tensor<$1x3xf32>",
       "%y = \"pestle.softmax\"(%x) <{dimensions = array<i64: 0>}> : "
       "(tensor<$1x3xf32>) -> tensor<$1x3xf32>\n"
       "return %y : tensor<$1x3xf32>")},
    {"a sum of each row", true,
     F("%x: tensor<$1x3xf32>", "tensor<$1xf32>",
       "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
       "%y = \"stablehlo.reduce\"(%x, %z) " ADD_BODY
       " {dimensions = array<i64: 1>} : (tensor<$1x3xf32>, tensor<f32>) -> "
       "tensor<$1xf32>\nreturn %y : tensor<$1xf32>")},
    {"a sum over the rows", false,
     F("%x: tensor<$1x3xf32>", "tensor<3xf32>",
       "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
       "%y = \"stablehlo.reduce\"(%x, %z) " ADD_BODY
       " {dimensions = array<i64: 0>} : (tensor<$1x3xf32>, tensor<f32>) -> "
       "tensor<3xf32>\nreturn %y : tensor<3xf32>")},
    {"how many rows there are, as a number", false,
     F("%x: tensor<$1x3xf32>", "tensor<$1x3xf32>",
       "%n = stablehlo.constant dense<$1.0> : tensor<$1x3xf32>\n"
       "%y = stablehlo.multiply %x, %n : tensor<$1x3xf32>\n"
       "return %y : tensor<$1x3xf32>")},
    {"the number of each row", true,
     F("%x: tensor<$1x3xf32>", "tensor<$1x3xf32>",
       "%i = stablehlo.iota dim = 0 : tensor<$1x3xf32>\n"
       "%y = stablehlo.add %x, %i : tensor<$1x3xf32>\n"
       "return %y : tensor<$1x3xf32>")},
    {"rows from the end", false,
     F("%x: tensor<$1x3xf32>", "tensor<$1x3xf32>",
       "%y = stablehlo.reverse %x, dims = [0] : tensor<$1x3xf32>\n"
       "return %y : tensor<$1x3xf32>")},
    {"places within rows from the end", true,
     F("%x: tensor<$1x3xf32>", "tensor<$1x3xf32>",
       "%y = stablehlo.reverse %x, dims = [1] : tensor<$1x3xf32>\n"
       "return %y : tensor<$1x3xf32>")},
    {"heads that go in and out of the rows", true,
     F("%x: tensor<$1x2x6xf32>", "tensor<$1x2x6xf32>",
       "%a = stablehlo.reshape %x : (tensor<$1x2x6xf32>) -> "
       "tensor<$2x6xf32>\n"
       "%b = stablehlo.tanh %a : tensor<$2x6xf32>\n"
       "%c = stablehlo.reshape %b : (tensor<$2x6xf32>) -> "
       "tensor<$1x2x6xf32>\n"
       "return %c : tensor<$1x2x6xf32>")},
    {"rows behind heads", true,
     F("%x: tensor<$1x2x3xf32>", "tensor<2x$3xf32>",
       "%a = stablehlo.transpose %x, dims = [1, 0, 2] : (tensor<$1x2x3xf32>) "
       "-> tensor<2x$1x3xf32>\n"
       "%b = stablehlo.reshape %a : (tensor<2x$1x3xf32>) -> tensor<2x$3xf32>\n"
       "return %b : tensor<2x$3xf32>")},
    {"rows that a reshape puts behind others", false,
     F("%x: tensor<$1x2x3xf32>", "tensor<2x$1x3xf32>",
       "%a = stablehlo.reshape %x : (tensor<$1x2x3xf32>) -> "
       "tensor<2x$1x3xf32>\nreturn %a : tensor<2x$1x3xf32>")},
    {"rows as the last axis of a reshape", false,
     F("%x: tensor<$1x4xf32>", "tensor<4x$1xf32>",
       "%a = stablehlo.reshape %x : (tensor<$1x4xf32>) -> tensor<4x$1xf32>\n"
       "return %a : tensor<4x$1xf32>")},
    {"the first row", true,
     F("%x: tensor<$1x4xf32>", "tensor<1x4xf32>",
       "%a = stablehlo.slice %x [0:1, 0:4] : (tensor<$1x4xf32>) -> "
       "tensor<1x4xf32>\nreturn %a : tensor<1x4xf32>")},
    {"the last row", false,
     F("%x: tensor<$1x4xf32>", "tensor<1x4xf32>",
       "%i = stablehlo.constant dense<100> : tensor<i32>\n"
       "%z = stablehlo.constant dense<0> : tensor<i32>\n"
       "%a = stablehlo.dynamic_slice %x, %i, %z, sizes = [1, 4] : "
       "(tensor<$1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>\n"
       "return %a : tensor<1x4xf32>")},
    {"a part of each row", true,
     F("%x: tensor<$1x4xf32>", "tensor<$1x2xf32>",
       "%a = stablehlo.slice %x [0:$1, 1:3] : (tensor<$1x4xf32>) -> "
       "tensor<$1x2xf32>\nreturn %a : tensor<$1x2xf32>")},
    {"rows behind rows", false,
     F("%x: tensor<$1x4xf32>", "tensor<$2x4xf32>",
       "%a = stablehlo.concatenate %x, %x, dim = 0 : (tensor<$1x4xf32>, "
       "tensor<$1x4xf32>) -> tensor<$2x4xf32>\nreturn %a : tensor<$2x4xf32>")},
    {"rows beside rows", true,
     F("%x: tensor<$1x4xf32>", "tensor<$1x8xf32>",
       "%a = stablehlo.concatenate %x, %x, dim = 1 : (tensor<$1x4xf32>, "
       "tensor<$1x4xf32>) -> tensor<$1x8xf32>\nreturn %a : tensor<$1x8xf32>")},
    {"each row with each other", false,
     F("%x: tensor<$1x4xf32>", "tensor<$1x4xf32>",
       "%a = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1] : "
       "(tensor<$1x4xf32>, tensor<$1x4xf32>) -> tensor<$1x$1xf32>\n"
       "%b = stablehlo.dot_general %a, %x, contracting_dims = [1] x [0] : "
       "(tensor<$1x$1xf32>, tensor<$1x4xf32>) -> tensor<$1x4xf32>\n"
       "return %b : tensor<$1x4xf32>")},
    {"a batch of products", true,
     F("%x: tensor<$1x2x3xf32>, %y: tensor<$1x3x2xf32>", "tensor<$1x2x2xf32>",
       "%a = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], "
       "contracting_dims = [2] x [1] : (tensor<$1x2x3xf32>, "
       "tensor<$1x3x2xf32>) -> tensor<$1x2x2xf32>\n"
       "return %a : tensor<$1x2x2xf32>")},
    {"weights from the left", true,
     F("%x: tensor<$1x3xf32>, %w: tensor<4x3xf32>", "tensor<4x$1xf32>",
       "%a = stablehlo.dot_general %w, %x, contracting_dims = [1] x [1] : "
       "(tensor<4x3xf32>, tensor<$1x3xf32>) -> tensor<4x$1xf32>\n"
       "return %a : tensor<4x$1xf32>")},
    {"a table looked up by each row", true,
     F("%x: tensor<$1x2xi32>, %t: tensor<7x3xf32>", "tensor<$1x2x3xf32>",
       "%a = \"stablehlo.gather\"(%t, %x) <{dimension_numbers = "
       "#stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], "
       "start_index_map = [0], index_vector_dim = 2>, slice_sizes = "
       "array<i64: 1, 3>}> : (tensor<7x3xf32>, tensor<$1x2xi32>) -> "
       "tensor<$1x2x3xf32>\nreturn %a : tensor<$1x2x3xf32>")},
    {"rows looked up by fixed numbers", false,
     F("%x: tensor<$1x3xf32>", "tensor<2x3xf32>",
       "%i = stablehlo.constant dense<[0, 9]> : tensor<2xi32>\n"
       "%a = \"stablehlo.gather\"(%x, %i) <{dimension_numbers = "
       "#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], "
       "start_index_map = [0], index_vector_dim = 1>, slice_sizes = "
       "array<i64: 1, 3>}> : (tensor<$1x3xf32>, tensor<2xi32>) -> "
       "tensor<2x3xf32>\nreturn %a : tensor<2x3xf32>")},
    {"places of rows looked up by fixed numbers", true,
     F("%x: tensor<$1x3xf32>", "tensor<2x$1xf32>",
       "%i = stablehlo.constant dense<[0, 2]> : tensor<2xi32>\n"
       "%a = \"stablehlo.gather\"(%x, %i) <{dimension_numbers = "
       "#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [1], "
       "start_index_map = [1], index_vector_dim = 1>, slice_sizes = "
       "array<i64: $1, 1>}> : (tensor<$1x3xf32>, tensor<2xi32>) -> "
       "tensor<2x$1xf32>\nreturn %a : tensor<2x$1xf32>")},
    {"each row sorted", true,
     F("%x: tensor<$1x4xf32>", "tensor<$1x4xf32>",
       "%a = \"stablehlo.sort\"(%x) ({^bb0(%p: tensor<f32>, %q: "
       "tensor<f32>):\n%r = stablehlo.compare LT, %p, %q : (tensor<f32>, "
       "tensor<f32>) -> tensor<i1>\nstablehlo.return %r : tensor<i1>\n}) "
       "{dimension = 1 : i64} : (tensor<$1x4xf32>) -> tensor<$1x4xf32>\n"
       "return %a : tensor<$1x4xf32>")},
    {"rows sorted", false,
     F("%x: tensor<$1x4xf32>", "tensor<$1x4xf32>",
       "%a = \"stablehlo.sort\"(%x) ({^bb0(%p: tensor<f32>, %q: "
       "tensor<f32>):\n%r = stablehlo.compare LT, %p, %q : (tensor<f32>, "
       "tensor<f32>) -> tensor<i1>\nstablehlo.return %r : tensor<i1>\n}) "
       "{dimension = 0 : i64} : (tensor<$1x4xf32>) -> tensor<$1x4xf32>\n"
       "return %a : tensor<$1x4xf32>")},
    {"a loop that carries rows", true,
     F("%x: tensor<$1x4xf32>", "tensor<$1x4xf32>",
       "%i = stablehlo.constant dense<0> : tensor<i32>\n"
       "%a:2 = \"stablehlo.while\"(%i, %x) ({\n"
       "^bb0(%j: tensor<i32>, %v: tensor<$1x4xf32>):\n"
       "%n = stablehlo.constant dense<3> : tensor<i32>\n"
       "%c = stablehlo.compare LT, %j, %n : (tensor<i32>, tensor<i32>) -> "
       "tensor<i1>\nstablehlo.return %c : tensor<i1>\n}, {\n"
       "^bb0(%j: tensor<i32>, %v: tensor<$1x4xf32>):\n"
       "%o = stablehlo.constant dense<1> : tensor<i32>\n"
       "%k = stablehlo.add %j, %o : tensor<i32>\n"
       "%w = stablehlo.tanh %v : tensor<$1x4xf32>\n"
       "stablehlo.return %k, %w : tensor<i32>, tensor<$1x4xf32>\n}) : "
       "(tensor<i32>, tensor<$1x4xf32>) -> (tensor<i32>, "
       "tensor<$1x4xf32>)\nreturn %a#1 : tensor<$1x4xf32>")},
    {"a loop that ends by what rows hold", false,
     F("%x: tensor<$1xf32>", "tensor<$1xf32>",
       "%a = \"stablehlo.while\"(%x) ({\n^bb0(%v: tensor<$1xf32>):\n"
       "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
       "%s = \"stablehlo.reduce\"(%v, %z) " ADD_BODY
       " {dimensions = array<i64: 0>} : (tensor<$1xf32>, tensor<f32>) -> "
       "tensor<f32>\n"
       "%c = stablehlo.compare LT, %s, %z : (tensor<f32>, tensor<f32>) -> "
       "tensor<i1>\nstablehlo.return %c : tensor<i1>\n}, {\n"
       "^bb0(%v: tensor<$1xf32>):\n"
       "%w = stablehlo.negate %v : tensor<$1xf32>\n"
       "stablehlo.return %w : tensor<$1xf32>\n}) : (tensor<$1xf32>) -> "
       "tensor<$1xf32>\nreturn %a : tensor<$1xf32>")},
    {"the same of what has no rows", true,
     F("%x: tensor<$1x2xf32>, %w: tensor<2xf32>",
       "tensor<2xf32>, "
       "tensor<$1x2xf32>",
       "%a = stablehlo.exponential %w : tensor<2xf32>\n"
       "return %a, %x : tensor<2xf32>, tensor<$1x2xf32>")},
    {"a mean by how many rows there are", false,
     F("%x: tensor<$1x2xf32>", "tensor<2xf32>",
       "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
       "%s = \"stablehlo.reduce\"(%x, %z) " ADD_BODY
       " {dimensions = array<i64: 0>} : (tensor<$1x2xf32>, tensor<f32>) -> "
       "tensor<2xf32>\n%n = stablehlo.constant dense<$1.0> : tensor<2xf32>\n"
       "%m = stablehlo.divide %s, %n : tensor<2xf32>\n"
       "return %m : tensor<2xf32>")},
    {"a running sum over the rows", false,
     F("%x: tensor<$1x2xf32>", "tensor<$1x2xf32>",
       "%y = \"pestle.cumulative\"(%x) <{combiner = \"ADD\", dimension = 0 : "
       "i64}> : (tensor<$1x2xf32>) -> tensor<$1x2xf32>\n"
       "return %y : tensor<$1x2xf32>")},
};

static char* fill(const char* text, int rows) {
  pestle_strbuf_t out;
  pestle_strbuf_init(pestle_allocator_system(), &out);
  for (; *text; ++text) {
    if (*text == '$') {
      pestle_strbuf_append_i64(&out, rows * (*++text - '0'));
    } else {
      pestle_strbuf_append_char(&out, *text);
    }
  }
  char* copy = strdup(pestle_strbuf_cstr(&out));
  pestle_strbuf_deinit(&out);
  return copy;
}

static pestle_module_t* parse(pestle_context_t* context, const case_t* c,
                              int rows) {
  pestle_module_t* module;
  char* text = fill(c->text, rows);
  pestle_status_t status =
      pestle_module_parse(context, text, strlen(text), c->name, &module);
  if (status) print_error("%s: %s\n", c->name, pestle_status_message(status));
  assert_ok(status);
  free(text);
  return module;
}

static const pestle_type_t* argument_type(pestle_module_t* module, size_t i) {
  return module->first->body->block->arguments[i]->type;
}

// Element |i| of rank-|rank| extents |dims| as coordinates.
static void split(int64_t i, const pestle_type_t* t, int64_t* out) {
  for (int32_t d = t->rank; d-- > 0;) {
    out[d] = i % t->dims[d];
    i /= t->dims[d];
  }
}

static int64_t join(const int64_t* at, const pestle_type_t* t) {
  int64_t i = 0;
  for (int32_t d = 0; d < t->rank; ++d)
    i = i * t->dims[d] + at[d];
  return i;
}

// All dtypes here have four bytes.
static uint32_t* make(const pestle_type_t* t) {
  return calloc((size_t)pestle_type_count(t) + 1, 4);
}

static uint32_t element(const pestle_type_t* t, unsigned seed) {
  int32_t i = (int32_t)((seed * 2654435761u) >> 20) % 7;
  float f = (float)i * 0.37f - 1;
  uint32_t bits;
  if (t->dtype == PESTLE_F32) {
    memcpy(&bits, &f, 4);
  } else {
    memcpy(&bits, &i, 4);
  }
  return bits;
}

// Copies what |few| has of |many| to it; or compares.
static bool matches(const pestle_type_t* tm, const pestle_type_t* tf,
                    const uint32_t* many, uint32_t* few, bool copies) {
  for (int64_t i = 0; i < pestle_type_count(tf); ++i) {
    int64_t at[PESTLE_MAX_RANK];
    split(i, tf, at);
    uint32_t bits = many[join(at, tm)];
    if (copies) few[i] = bits;
    if (few[i] != bits) return false;
  }
  return true;
}

static void hold_against_reference(const case_t* c, pestle_module_t* many,
                                   pestle_module_t* few) {
  pestle_function_t *a = many->first, *b = few->first;
  uint32_t *am[MOST], *af[MOST], *rm[MOST], *rf[MOST];
  size_t arguments = pestle_function_argument_count(a), results = 0;
  assert_true(pestle_function_result_count(a, &results));
  for (size_t i = 0; i < arguments; ++i) {
    const pestle_type_t* t = argument_type(many, i);
    am[i] = make(t);
    af[i] = make(argument_type(few, i));
    for (int64_t k = 0; k < pestle_type_count(t); ++k)
      am[i][k] = element(t, (unsigned)(k + 1) * 31 + (unsigned)i);
    assert_true(matches(t, argument_type(few, i), am[i], af[i], true));
  }
  for (size_t i = 0; i < results; ++i) {
    rm[i] = make(pestle_function_result_type(a, i));
    rf[i] = make(pestle_function_result_type(b, i));
  }
  pestle_allocator_t system = pestle_allocator_system();
  assert_ok(pestle_ref_evaluate_function(system, a, (const void* const*)am,
                                         (void* const*)rm));
  assert_ok(pestle_ref_evaluate_function(system, b, (const void* const*)af,
                                         (void* const*)rf));
  for (size_t i = 0; i < results; ++i) {
    if (!matches(pestle_function_result_type(a, i),
                 pestle_function_result_type(b, i), rm[i], rf[i], false)) {
      fail_msg("%s: result %zu differs", c->name, i);
    }
    free(rm[i]);
    free(rf[i]);
  }
  for (size_t i = 0; i < arguments; ++i) {
    free(am[i]);
    free(af[i]);
  }
}

static void test_cases(void** state) {
  (void)state;
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .cache_dir = "",
                                      .backend_path = "/nonexistent"};
  pestle_context_t* context;
  assert_ok(pestle_context_create(&options, &context));
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    const case_t* c = &cases[i];
    pestle_module_t* many = parse(context, c, MANY);
    pestle_module_t* few = parse(context, c, FEW);
    pestle_row_relation_t inputs[MOST], results[MOST];
    size_t count = pestle_function_argument_count(many->first);
    for (size_t k = 0; k < count; ++k) {
      inputs[k] = (pestle_row_relation_t){.axis = -1};
      if (argument_type(many, k)->dims[0] != argument_type(few, k)->dims[0])
        inputs[k] = (pestle_row_relation_t){0, 1};
    }
    bool is_shown;
    pestle_strbuf_t why;
    pestle_strbuf_init(pestle_allocator_system(), &why);
    assert_ok(pestle_rows_compare(many, few, MANY, FEW, inputs, results,
                                  &is_shown, &why));
    if (is_shown != c->is_shown) {
      fail_msg("%s: %s (%s)", c->name, is_shown ? "shown" : "not shown",
               pestle_strbuf_cstr(&why));
    }
    assert_int_equal(is_shown, !why.size);
    if (is_shown) hold_against_reference(c, many, few);
    pestle_strbuf_deinit(&why);
    pestle_module_release(many);
    pestle_module_release(few);
  }
  pestle_context_release(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cases),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

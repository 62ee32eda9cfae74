// SPDX-License-Identifier: Apache-2.0
// StableHLO as JAX prints it against tests/golden/ir (BLESS=1 rewrites what is
// expected), forms, locations, and text that must be refused.
#include "text_test.h"

#define MAIN(args, body)                                  \
  "module {\n  func.func public @main(" args ") {\n" body \
  "    return\n  "                                        \
  "}\n}\n"

static void compare_golden(pestle_context_t* context, const char* name) {
  size_t size, expected_size;
  char path[256];
  char* text = text_golden(name, &size);
  assert_non_null(text);
  pestle_module_t* module = NULL;
  assert_ok(pestle_module_parse(context, text, size, name, &module));
  char* printed = text_print(module, 0);
  snprintf(path, sizeof(path), "%s.expected", name);
  char* expected = text_golden(path, &expected_size);
  if (getenv("BLESS")) {
    char full[4096];
    snprintf(full, sizeof(full), "%s/tests/golden/ir/Inputs/%s",
             getenv("PESTLE_SOURCE_DIR"), path);
    FILE* file = fopen(full, "wb");
    assert_non_null(file);
    fputs(printed, file);
    fclose(file);
  } else {
    assert_non_null(expected);
    assert_string_equal(printed, expected);
  }
  free(expected);
  free(printed);
  free(text);
  pestle_module_release(module);
}

static void goldens(void** state) {
  (void)state;
  pestle_context_t* context = text_context();
  for (size_t i = 0; i < TEXT_GOLDENS; ++i) {
    compare_golden(context, text_golden_names[i]);
  }
  pestle_context_release(context);
}

static void all_unsupported_at_once(void** state) {
  (void)state;
  size_t size;
  pestle_context_t* context = text_context();
  char* text = text_golden("unsup.mlir", &size);
  pestle_module_t* module = NULL;
  assert_error(pestle_module_parse(context, text, size, "unsup.mlir", &module),
               UNSUPPORTED,
               "'stablehlo.cross_replica_sum' (32:10), "
               "'stablehlo.async_call' (41:12)");
  free(text);
  pestle_context_release(context);
}

// Every prefix of every golden is refused with a status, and none crashes.
static void truncations(void** state) {
  (void)state;
  pestle_context_t* context = text_context();
  for (size_t i = 0; i < TEXT_GOLDENS; ++i) {
    size_t size;
    char* text = text_golden(text_golden_names[i], &size);
    for (size_t cut = 0; cut < size; cut += 1 + cut / 60) {
      // Its own block, so that a sanitizer sees a read past the end.
      char* part = malloc(cut ? cut : 1);
      memcpy(part, text, cut);
      pestle_module_t* module = NULL;
      pestle_status_t status =
          pestle_module_parse(context, part, cut, "t", &module);
      assert_true(status != NULL || module != NULL);
      pestle_status_release(status);
      pestle_module_release(module);
      free(part);
    }
    free(text);
  }
  pestle_context_release(context);
}

static void mutations(void** state) {
  (void)state;
  pestle_context_t* context = text_context();
  uint64_t random = 88172645463325252u;
  for (size_t i = 0; i < TEXT_GOLDENS; ++i) {
    size_t size;
    char* text = text_golden(text_golden_names[i], &size);
    for (int round = 0; round < 60; ++round) {
      char* damaged = malloc(size);
      memcpy(damaged, text, size);
      for (int k = 0; k < 3; ++k) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        damaged[random % size] = (char)(random >> 40);
      }
      pestle_module_t* module = NULL;
      pestle_status_t status =
          pestle_module_parse(context, damaged, size, "t", &module);
      pestle_status_code_t code = pestle_status_code(status);
      assert_true(code == PESTLE_STATUS_OK || code == PESTLE_STATUS_MALFORMED ||
                  code == PESTLE_STATUS_UNSUPPORTED);
      pestle_status_release(status);
      pestle_module_release(module);
      free(damaged);
    }
    free(text);
  }
  pestle_context_release(context);
}

static void refusals(void** state) {
  (void)state;
  const struct {
    const char* text;
    pestle_status_code_t code;
    const char* part;
  } cases[] = {
      {"", PESTLE_STATUS_MALFORMED, "t.mlir:1:1: expected a module"},
      {"module {", PESTLE_STATUS_MALFORMED, "found the end of the text"},
      {"module { oops }", PESTLE_STATUS_MALFORMED, "1:10: expected a function"},
      {"module { some.op @m }", PESTLE_STATUS_UNSUPPORTED, "'some.op'"},
      {MAIN("%a: f32", ""), PESTLE_STATUS_MALFORMED, "expected a tensor type"},
      {MAIN("%a: tensor<4x>", ""), PESTLE_STATUS_MALFORMED, "element type"},
      {MAIN("%a: tensor<4xi7>", ""), PESTLE_STATUS_UNSUPPORTED, "'i7'"},
      {MAIN("%a: tensor<4xindex>", ""), PESTLE_STATUS_MALFORMED, "index"},
      {MAIN("%a: tensor<*xf32>", ""), PESTLE_STATUS_UNSUPPORTED, "rank"},
      {MAIN("%a: tensor<99999999999999999999xf32>", ""),
       PESTLE_STATUS_MALFORMED, "63 bits"},
      {MAIN("%a: tensor<4294967296x4294967296xf32>", ""),
       PESTLE_STATUS_MALFORMED, "2^63"},
      {MAIN("%a: tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xf32>", ""),
       PESTLE_STATUS_UNSUPPORTED, "16 dimensions"},
      {MAIN("%a: tensor<4xf32>, %a: tensor<4xf32>", ""),
       PESTLE_STATUS_MALFORMED, "%a is defined twice"},
      {MAIN("%a: tensor<4xf32>", "%0 = stablehlo.add %a, %b : tensor<4xf32>\n"),
       PESTLE_STATUS_MALFORMED, "3:24: %b is not defined before its use"},
      {MAIN("%a: tensor<4xf32>", "%0 = stablehlo.add %a, %a : tensor<5xf32>\n"),
       PESTLE_STATUS_MALFORMED,
       "is written as tensor<5xf32> and is tensor<4xf32>"},
      {MAIN("%a: tensor<4xf32>",
            "%0:2 = stablehlo.add %a, %a : tensor<4xf32>\n"),
       PESTLE_STATUS_MALFORMED, "has 1 results"},
      {MAIN("%a: tensor<4xf32>", "%0 = stablehlo.and %a, %a : tensor<4xf32>\n"),
       PESTLE_STATUS_MALFORMED, "stablehlo.and"},
      {MAIN("%a: tensor<4xf32>",
            "%0 = \"stablehlo.transpose\"(%a) <{permutation = \"x\"}> : "
            "(tensor<4xf32>) -> tensor<4xf32>\n"),
       PESTLE_STATUS_MALFORMED, "3:48: expected a list of integers"},
      {MAIN("%a: tensor<4xf32>",
            "%0 = \"stablehlo.transpose\"(%a) <{nonsense = 1 : i64}> : "
            "(tensor<4xf32>) -> tensor<4xf32>\n"),
       PESTLE_STATUS_UNSUPPORTED, "no attribute 'nonsense'"},
      {MAIN("%a: tensor<4xf32>",
            "%0 = stablehlo.compare LT, %a, %a, ORDER : (tensor<4xf32>, "
            "tensor<4xf32>) -> tensor<4xi1>\n"),
       PESTLE_STATUS_MALFORMED, "expected FLOAT, TOTALORDER"},
#define PRECISE(words)                                                   \
  MAIN("%a: tensor<4xf32>",                                              \
       "%0 = stablehlo.dot_general %a, %a, contracting_dims = [0] x [0]" \
       ", precision = [" words                                           \
       "] : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>\n")
      {PRECISE("DEFAULT, FOO"), PESTLE_STATUS_MALFORMED,
       "3:78: expected up to two of DEFAULT, HIGH and HIGHEST"},
      {PRECISE("HIGH, HIGH, HIGH"), PESTLE_STATUS_MALFORMED,
       "expected up to two of DEFAULT, HIGH and HIGHEST"},
      {MAIN("%a: tensor<4xf32>",
            "%0 = \"stablehlo.dot\"(%a, %a) <{precision_config = "
            "[#stablehlo<precision LOW>]}> : (tensor<4xf32>, tensor<4xf32>) "
            "-> tensor<f32>\n"),
       PESTLE_STATUS_MALFORMED, "expected up to two of DEFAULT"},
      {MAIN("%a: tensor<4xi32>",
            "%0 = stablehlo.compare LT, %a, %a, TOTALORDER : (tensor<4xi32>, "
            "tensor<4xi32>) -> tensor<4xi1>\n"),
       PESTLE_STATUS_MALFORMED, "TOTALORDER compares floats"},
      // A digit before, behind and between good ones.
      {MAIN("%a: tensor<4xi32>",
            "%0 = stablehlo.constant dense<\"0xZZ00000001000000\"> : "
            "tensor<2xi32>\n"),
       PESTLE_STATUS_MALFORMED, "hexadecimal"},
      {MAIN("%a: tensor<4xi32>",
            "%0 = stablehlo.constant dense<\"0x000000000100000-\"> : "
            "tensor<2xi32>\n"),
       PESTLE_STATUS_MALFORMED, "hexadecimal"},
      {MAIN("%a: tensor<4xi32>",
            "%0 = stablehlo.constant dense<\"0x00G0000001000000\"> : "
            "tensor<2xi32>\n"),
       PESTLE_STATUS_MALFORMED, "hexadecimal"},
      {"func.func @main()\x01 {}", PESTLE_STATUS_MALFORMED,
       "found the byte 0x01"},
      {MAIN("%a: tensor<4xf32>",
            "%0 = \"stablehlo.compare\"(%a, %a) : (tensor<4xf32>, "
            "tensor<4xf32>) -> tensor<4xi1>\n"),
       PESTLE_STATUS_MALFORMED, "comparison_direction"},
      {MAIN("", "%0 = stablehlo.constant dense<[1, 2]> : tensor<3xi32>\n"),
       PESTLE_STATUS_MALFORMED, "expected ','"},
      {MAIN("", "%0 = stablehlo.constant dense<[1, 2, 3]> : tensor<2xi32>\n"),
       PESTLE_STATUS_MALFORMED, "expected ']'"},
      {MAIN("", "%0 = stablehlo.constant dense<300> : tensor<i8>\n"),
       PESTLE_STATUS_MALFORMED, "300 is no value of type i8"},
      {MAIN("", "%0 = stablehlo.constant dense<-1> : tensor<ui8>\n"),
       PESTLE_STATUS_MALFORMED, "-1 is no value of type ui8"},
      {MAIN("", "%0 = stablehlo.constant dense<\"0x00\"> : tensor<2xi32>\n"),
       PESTLE_STATUS_MALFORMED, "16 hexadecimal digits"},
      {MAIN("",
            "%0 = stablehlo.constant dense<[1]> : tensor<1000000000000xi8>\n"),
       PESTLE_STATUS_MALFORMED, "expected 1000000000000 elements"},
      {MAIN("", "%0 = stablehlo.constant dense<1> : tensor<?xi32>\n"),
       PESTLE_STATUS_MALFORMED, "known extents"},
      {MAIN("", "%0 = stablehlo.constant dense_resource<a> : tensor<i32>\n"),
       PESTLE_STATUS_UNSUPPORTED, "dense_resource"},
      {MAIN("", "%0 = stablehlo.constant dense<\"0x00 : tensor<i32>\n"),
       PESTLE_STATUS_MALFORMED, "3:31: a string does not end on its line"},
      {MAIN("", "call @nobody() : () -> ()\n"), PESTLE_STATUS_MALFORMED,
       "nobody"},
      {"func.func @f() { return }\nfunc.func @f() { return }",
       PESTLE_STATUS_MALFORMED, "'f' is defined twice"},
      {"func.func @f() { }", PESTLE_STATUS_MALFORMED, "expected a return"},
      {"func.func @f() { return\n return }", PESTLE_STATUS_MALFORMED,
       "after the return"},
      {"func.func private @f(%a: tensor<f32>) -> tensor<f32>",
       PESTLE_STATUS_MALFORMED, "the function's body"},
      {"func.func @f(%a: tensor<f32>) -> tensor<i32> "
       "{ return %a : tensor<f32> }",
       PESTLE_STATUS_MALFORMED, "tensor<i32>"},
      {"func.func @f() { call @f() : () -> ()\n return }",
       PESTLE_STATUS_MALFORMED, "f"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); ++i) {
    pestle_context_t* context = text_context();
    pestle_module_t* module = NULL;
    pestle_status_t status = pestle_module_parse(
        context, cases[i].text, strlen(cases[i].text), "t.mlir", &module);
    pestle_test_assert_code_(status, cases[i].code, cases[i].part, __FILE__,
                             (int)i);
    pestle_context_release(context);
  }
}

// What a module asks of its products is what is done: in that precision or a better.
static void algorithms(void** state) {
  (void)state;
#define DOT(type, lhs, sum, count)                                         \
  "func.func @f(%a: tensor<4x" type                                        \
  ">) -> tensor<f32> {\n"                                                  \
  "  %0 = stablehlo.dot_general %a, %a, contracting_dims = [0] x [0], "    \
  "precision = [DEFAULT, DEFAULT], algorithm = <lhs_precision_type = " lhs \
  ", rhs_precision_type = " lhs ", accumulation_type = " sum               \
  ", lhs_component_count = 1, rhs_component_count = 1, "                   \
  "num_primitive_operations = " count                                      \
  ", allow_imprecise_accumulation = false> : (tensor<4x" type              \
  ">, tensor<4x" type ">) -> tensor<f32>\n  return %0 : tensor<f32>\n}\n"
  static const char* const good[] = {
      DOT("bf16", "bf16", "f32", "1"),  DOT("f16", "f16", "f32", "1"),
      DOT("f32", "f32", "f32", "1"),    DOT("f64", "f64", "f64", "1"),
      DOT("f32", "bf16", "f32", "1"),   DOT("f32", "tf32", "f32", "1"),
      DOT("f32", "bf16", "f32", "3"),   DOT("bf16", "bf16", "f32", "3"),
      DOT("bf16", "bf16", "bf16", "1"), DOT("f64", "f64", "f32", "1")};
  pestle_context_t* context = text_context();
  for (size_t i = 0; i < sizeof(good) / sizeof(*good); ++i) {
    pestle_module_t* module = NULL;
    assert_ok(pestle_module_parse(context, good[i], strlen(good[i]), "t.mlir",
                                  &module));
    pestle_module_release(module);
  }
  pestle_context_release(context);
  assert_refuses(
      "func.func @f(%a: tensor<4xf32>) -> tensor<f32> {\n"
      "  %0 = stablehlo.dot_general %a, %a, contracting_dims = [0] x [0], "
      "algorithm = <lhs_precision_type = f32> : (tensor<4xf32>, "
      "tensor<4xf32>) -> tensor<f32>\n  return %0 : tensor<f32>\n}",
      MALFORMED, "'algorithm' needs");
  assert_refuses(
      "func.func @f(%a: tensor<4xf32>) -> tensor<f32> {\n"
      "  %0 = stablehlo.dot_general %a, %a, algorithm = <lhs_precision_type }",
      MALFORMED, "expected ','");
  assert_refuses(
      "func.func @f(%a: tensor<4xf32>) -> tensor<f32> {\n"
      "  %0 = stablehlo.dot_general %a, %a, algorithm = <[1]> }",
      MALFORMED, "an attribute's name");
  static const char* const bad[][2] = {
      {DOT("f32", "tf64", "f32", "1"), "'tf64', which is no type of floats"},
      {DOT("i8", "i8", "i32", "1"), "'i8', which is no type of floats"},
      {DOT("f32", "tf32", "tf32", "1"), "1 products of tf32 and tf32"},
      {DOT("f32", "tf32", "f32", "6"), "known are one product"},
      {DOT("f32", "bf16", "f32", "4"), "3, 6 or 9 of bf16"}};
  for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); ++i)
    assert_refuses(bad[i][0], UNSUPPORTED, bad[i][1]);
#undef DOT
  // The generic form takes any value.
#define DOT(value)                                                      \
  "func.func @f(%a: tensor<4xf32>) -> tensor<f32> {\n"                  \
  "  %0 = \"stablehlo.dot_general\"(%a, %a) <{dot_dimension_numbers = " \
  "#stablehlo.dot<lhs_contracting_dimensions = [0], "                   \
  "rhs_contracting_dimensions = [0]>, algorithm = " value               \
  "}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>\n  return %0 : "  \
  "tensor<f32>\n}"
#define TYPES                                                             \
  "#stablehlo.dot_algorithm<lhs_precision_type = f32, rhs_precision_type" \
  " = f32, accumulation_type = f32"
#define COUNTS(lhs, rhs)                                          \
  ", lhs_component_count = " #lhs ", rhs_component_count = " #rhs \
  ", num_primitive_operations = 1"
  static const char* const wrong[][2] = {
      {DOT("\"bf16\""), "must be #stablehlo.dot_algorithm<..>"},
      {DOT("3 : i64"), "must be #stablehlo.dot_algorithm<..>"},
      {DOT("[1, 2]"), "must be #stablehlo.dot_algorithm<..>"},
      {DOT("fast"), "must be #stablehlo.dot_algorithm<..>"},
      {DOT(TYPES ", digits = 7>"), "'algorithm' has no part 'digits'"},
      {DOT(TYPES ", lhs_component_count = true>"),
       "'lhs_component_count' of 'algorithm' must be a number"},
      {DOT(TYPES ", lhs_component_count = 1, lhs_component_count = 1>"),
       "'algorithm' has 'lhs_component_count' twice"},
      {DOT(TYPES COUNTS(1, 1) ">"),
       "'algorithm' needs 'allow_imprecise_accumulation'"},
      {DOT(TYPES ", lhs_component_count = 1, num_primitive_operations = 1, "
                 "allow_imprecise_accumulation = false>"),
       "'algorithm' needs 'rhs_component_count'"},
      {DOT(TYPES COUNTS(1, 1) ", allow_imprecise_accumulation = 1>"),
       "'allow_imprecise_accumulation' of 'algorithm' must be a boolean"},
      {DOT("#stablehlo.dot_algorithm<lhs_precision_type = \"f32\">"),
       "'lhs_precision_type' of 'algorithm' must be a type"}};
  for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); ++i)
    assert_refuses(wrong[i][0], MALFORMED, wrong[i][1]);
#define ALL(l, r) TYPES COUNTS(l, r) ", allow_imprecise_accumulation = false>"
  assert_refuses(DOT(ALL(2, 2)), UNSUPPORTED, "in 2 and 2 parts");
  assert_refuses(DOT(ALL(1, 3)), UNSUPPORTED, "in 1 and 3 parts");
#undef ALL
#undef COUNTS
#undef TYPES
#undef DOT
}

static void nesting_is_bounded(void** state) {
  (void)state;
  enum { DEPTH = 100000 };
  char* text = malloc(DEPTH + 64);
  strcpy(text, "#a = ");
  memset(text + 5, '[', DEPTH);
  text[5 + DEPTH] = 0;
  assert_refuses(text, MALFORMED, "nested more than 100 deep");
  strcpy(text, "#loc = loc(");
  for (size_t i = 11; i + 16 < DEPTH; i += 9)
    memcpy(text + i, "callsite(", 10);
  assert_refuses(text, MALFORMED, "nested more than 100 deep");
  free(text);
}

static void locations(void** state) {
  (void)state;
  assert_prints(
      "#loc = loc(unknown)\n"
      "module @m {\n"
      "  func.func @main(%arg0: tensor<f32> loc(\"x\")) -> tensor<f32> {\n"
      "    %0 = stablehlo.negate %arg0 : tensor<f32> loc(#loc3)\n"
      "    %1 = stablehlo.negate %0 : tensor<f32> loc(\"f.py\":3:4 to :9)\n"
      "    %2 = stablehlo.negate %1 : tensor<f32> loc(fused<{a = 1}>[\"n\", "
      "\"g.py\":1:2])\n"
      "    %3 = stablehlo.negate %2 : tensor<f32> loc(#loc)\n"
      "    %4 = stablehlo.negate %3 : tensor<f32>\n"
      "    %5 = stablehlo.negate %4 : tensor<f32> loc(#cycle)\n"
      "    %6 = stablehlo.negate %5 : tensor<f32> loc(callsite(\"n\" at "
      "#loc2))\n"
      "    %7 = stablehlo.negate %6 : tensor<f32> loc(callsite(unknown at "
      "#loc2))\n"
      "    return %7 : tensor<f32> loc(callsite(#loc1 at #loc2))\n"
      "  } loc(#loc)\n"
      "} loc(#loc)\n"
      "#loc1 = loc(\"a.py\":1:2)\n"
      "#loc2 = loc(\"b.py\":3:4)\n"
      "#loc3 = loc(\"jit(f)/\\22neg\\22\"(#loc4))\n"
      "#loc4 = loc(callsite(#loc1 at #loc2))\n"
      "#cycle = loc(#cycle2)\n"
      "#cycle2 = loc(#cycle)\n",
      "module @m {\n"
      "  func.func public @main(%arg0: tensor<f32>) -> tensor<f32> {\n"
      "    %0 = stablehlo.negate %arg0 : tensor<f32> "
      "loc(\"jit(f)/\\\"neg\\\"\"(\"a.py\":1:2))\n"
      "    %1 = stablehlo.negate %0 : tensor<f32> loc(\"f.py\":3:4)\n"
      "    %2 = stablehlo.negate %1 : tensor<f32> loc(\"n\"(\"g.py\":1:2))\n"
      "    %3 = stablehlo.negate %2 : tensor<f32> loc(unknown)\n"
      "    %4 = stablehlo.negate %3 : tensor<f32> loc(\"t.mlir\":8:10)\n"
      "    %5 = stablehlo.negate %4 : tensor<f32> loc(unknown)\n"
      "    %6 = stablehlo.negate %5 : tensor<f32> loc(\"n\")\n"
      "    %7 = stablehlo.negate %6 : tensor<f32> loc(\"b.py\":3:4)\n"
      "    return %7 : tensor<f32> loc(\"a.py\":1:2)\n"
      "  }\n"
      "}\n",
      PESTLE_PRINT_LOCATIONS);
}

// Constants in every way that MLIR writes them, and what we print for them.
static void constants(void** state) {
  (void)state;
  const char* cases[][2] = {
      {"dense<1> : tensor<2x2xi32>", "dense<1> : tensor<2x2xi32>"},
      {"dense<[[1, -2], [0x10, 4]]> : tensor<2x2xsi32>",
       "dense<[[1, -2], [16, 4]]> : tensor<2x2xi32>"},
      {"dense<> : tensor<0x3xf32>", "dense<> : tensor<0x3xf32>"},
      {"dense<[]> : tensor<0xf32>", "dense<> : tensor<0xf32>"},
      {"dense<\"0x0000803F00000040\"> : tensor<2xf32>",
       "dense<[1.0, 2.0]> : tensor<2xf32>"},
      {"dense<\"0x0000803F\"> : tensor<2xf32>", "dense<1.0> : tensor<2xf32>"},
      {"dense<\"0x05\"> : tensor<3xi1>",
       "dense<[true, false, true]> : tensor<3xi1>"},
      {"dense<[true, false]> : tensor<2xi1>",
       "dense<[true, false]> : tensor<2xi1>"},
      {"dense<0x7FC00001> : tensor<f32>", "dense<0x7FC00001> : tensor<f32>"},
      {"dense<[0x7C00, 0x3C00, -0.0]> : tensor<3xf16>",
       "dense<[0x7C00, 1.0, -0.0]> : tensor<3xf16>"},
      {"dense<1.000000e-45> : tensor<f32>", "dense<1.0e-45> : tensor<f32>"},
      {"dense<3.40282347E+38> : tensor<f32>",
       "dense<3.4028235e+38> : tensor<f32>"},
      {"dense<(1.0, -2.5)> : tensor<complex<f32>>",
       "dense<(1.0,-2.5)> : tensor<complex<f32>>"},
      {"dense<18446744073709551615> : tensor<ui64>",
       "dense<18446744073709551615> : tensor<ui64>"},
      {"dense<-9223372036854775808> : tensor<i64>",
       "dense<-9223372036854775808> : tensor<i64>"},
      {"dense<[-8, 7]> : tensor<2xi4>", "dense<[-8, 7]> : tensor<2xi4>"},
      {"dense<[240.0, 0.001953125]> : tensor<2xf8E4M3FN>",
       "dense<[240.0, 0.001953125]> : tensor<2xf8E4M3FN>"},
      {"dense<0.1> : tensor<f64>", "dense<0.1> : tensor<f64>"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); ++i) {
    char text[512], expected[512];
    snprintf(text, sizeof(text),
             "func.func @f() { %%c = stablehlo.constant %s "
             "\n return }",
             cases[i][0]);
    snprintf(expected, sizeof(expected),
             "module {\n  func.func public @f() {\n    %%c = "
             "stablehlo.constant %s\n    return\n  }\n}\n",
             cases[i][1]);
    assert_prints(text, expected, 0);
  }
}

static void names_and_visibility(void** state) {
  (void)state;
  pestle_context_t* context = text_context();
  pestle_module_t* module = text_parse(
      context,
      "func.func private @g(%a: tensor<f32>) -> tensor<f32> {"
      " return %a : tensor<f32> }\n"
      "func.func public @f(%a: tensor<f32> {pestle.name = \"in 0\"}, %b: "
      "tensor<f32>) -> (tensor<f32>, tensor<f32> {pestle.name = \"out\"}) {"
      " %0 = call @g(%a) : (tensor<f32>) -> tensor<f32>\n"
      " return %0, %b : tensor<f32>, tensor<f32> }");
  pestle_function_t* f = pestle_module_entry(module);
  assert_string_equal(f->name, "f");
  assert_string_equal(f->argument_names[0], "in 0");
  assert_null(f->argument_names[1]);
  assert_null(f->result_names[0]);
  assert_string_equal(f->result_names[1], "out");
  assert_true(pestle_module_find_function(module, "g")->is_private);
  pestle_module_release(module);
  pestle_context_release(context);
}

static const char bounded[] =
    "module {\n  func.func public @f(%a: tensor<2x3xf32>, %n: tensor<2xi64>) "
    "-> "
    "(tensor<2x3xf32> {pestle.name = \"out\"}, tensor<2xi64> "
    "{pestle.shape_of = 0 : i64}) {\n"
    "    return %a, %n : tensor<2x3xf32>, tensor<2xi64>\n  }\n}\n";

// How much of a result is real survives text, bytes and copies, and is part of
// what the module means.
static void shapes_of_results(void** state) {
  (void)state;
  pestle_context_t* context = text_context();
  pestle_module_t* module = text_parse(context, bounded);
  pestle_module_t *copy, *loaded, *plain;
  char *text, *other;
  void* data;
  size_t size, other_size, data_size;
  uint64_t a[2], b[2];
  assert_int_equal(pestle_function_shape_of(pestle_module_entry(module), 0),
                   -1);
  assert_int_equal(pestle_function_shape_of(pestle_module_entry(module), 1), 0);
  assert_ok(pestle_module_verify(module));
  assert_ok(pestle_module_print(module, 0, &text, &size));
  assert_string_equal(text, bounded);
  assert_ok(pestle_module_clone(module, &copy));
  assert_ok(pestle_module_serialize(copy, &data, &data_size));
  assert_ok(pestle_module_deserialize(context, data, data_size, &loaded));
  assert_ok(pestle_module_print(loaded, 0, &other, &other_size));
  assert_string_equal(other, text);
  plain = text_parse(context,
                     "func.func @f(%a: tensor<2x3xf32>, %n: tensor<2xi64>) -> "
                     "(tensor<2x3xf32>, tensor<2xi64>) {"
                     " return %a, %n : tensor<2x3xf32>, tensor<2xi64> }");
  assert_ok(pestle_module_signature(loaded, a));
  assert_ok(pestle_module_signature(plain, b));
  assert_memory_not_equal(a, b, sizeof(a));
  pestle_context_free(context, other, other_size + 1);
  pestle_context_free(context, data, data_size);
  pestle_context_free(context, text, size + 1);
  pestle_module_release(plain);
  pestle_module_release(loaded);
  pestle_module_release(copy);
  pestle_module_release(module);
  pestle_context_release(context);
}

static void refuses_shapes_of_nothing(void** state) {
  (void)state;
  static const char* const results[] = {
      "(tensor<2x3xf32>, tensor<3xi64> {pestle.shape_of = 0 : i64})",
      "(tensor<2x3xf32>, tensor<2xi32> {pestle.shape_of = 0 : i64})",
  };
  static const char* const types[] = {"tensor<3xi64>", "tensor<2xi32>"};
  pestle_context_t* context = text_context();
  for (int i = 0; i < 2; ++i) {
    char text[512];
    pestle_module_t* module;
    snprintf(text, sizeof(text),
             "func.func @f(%%a: tensor<2x3xf32>, %%n: %s) -> %s {"
             " return %%a, %%n : tensor<2x3xf32>, %s }",
             types[i], results[i], types[i]);
    assert_error(
        pestle_module_parse(context, text, strlen(text), NULL, &module),
        MALFORMED, "no list of the extents");
  }
  pestle_context_release(context);
}

static pestle_status_t parse_all(pestle_allocator_t allocator,
                                 const char* text) {
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .allocator = allocator};
  pestle_context_t* context = NULL;
  pestle_module_t* module = NULL;
  PESTLE_TRY(pestle_context_create(&options, &context));
  pestle_status_t status =
      pestle_module_parse(context, text, strlen(text), "t.mlir", &module);
  char* printed = NULL;
  size_t size = 0;
  if (!status) status = pestle_module_print(module, 1, &printed, &size);
  if (!status) pestle_context_free(context, printed, size + 1);
  pestle_module_release(module);
  pestle_context_release(context);
  return status;
}

static void every_allocation_may_fail(void** state) {
  (void)state;
  static const char text[] =
      "#l = loc(\"n\"(\"f\":1:2))\nmodule @m { func.func @main(%x: "
      "tensor<2x3xf32> {pestle.name = \"x\"}) -> (tensor<2xf32> {pestle.name = "
      "\"y\"}) {\n %c = stablehlo.constant dense<0.0> : tensor<f32>\n"
      " %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across "
      "dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32> "
      "loc(#l)\n return %0 : tensor<2xf32> } }";
  for (size_t k = 1;; ++k) {
    pestle_test_allocator_t memory;
    pestle_test_allocator_init(&memory, k);
    pestle_status_t status = parse_all(pestle_test_allocator(&memory), text);
    bool failed = pestle_test_allocator_failed(&memory);
    if (failed) {
      assert_code(status, OUT_OF_MEMORY);
    } else {
      assert_ok(status);
    }
    pestle_test_allocator_check(&memory);
    if (!failed) break;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(goldens),
      cmocka_unit_test(all_unsupported_at_once),
      cmocka_unit_test(truncations),
      cmocka_unit_test(mutations),
      cmocka_unit_test(refusals),
      cmocka_unit_test(algorithms),
      cmocka_unit_test(nesting_is_bounded),
      cmocka_unit_test(locations),
      cmocka_unit_test(constants),
      cmocka_unit_test(names_and_visibility),
      cmocka_unit_test(shapes_of_results),
      cmocka_unit_test(refuses_shapes_of_nothing),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// The signature: what it must not see, and that it sees everything else.
#include "ir/signature.h"

#include "ir_test.h"
#include "text_test.h"

typedef struct hash_t {
  uint64_t word[2];
} hash_t;

static hash_t signature_of(const char* text) {
  pestle_context_t* context = text_context();
  pestle_module_t* module = text_parse(context, text);
  hash_t hash;
  assert_ok(pestle_module_signature(module, hash.word));
  pestle_module_release(module);
  pestle_context_release(context);
  return hash;
}

#define assert_same(a, b)                                        \
  do {                                                           \
    hash_t same_a_ = signature_of(a), same_b_ = signature_of(b); \
    assert_memory_equal(&same_a_, &same_b_, sizeof(same_a_));    \
  } while (0)
#define assert_differ(a, b)                                       \
  do {                                                            \
    hash_t same_a_ = signature_of(a), same_b_ = signature_of(b);  \
    assert_memory_not_equal(&same_a_, &same_b_, sizeof(same_a_)); \
  } while (0)

#define F(args, results, body) \
  "func.func public @f(" args ") -> " results " {\n" body "}\n"
#define X "%x: tensor<4xf32>"
#define XY "%x: tensor<4xf32>, %y: tensor<4xf32>"
#define ONE "tensor<4xf32>"

static const char base[] = F(XY, ONE,
                             "%0 = stablehlo.exponential %x : tensor<4xf32>\n"
                             "%1 = stablehlo.negate %y : tensor<4xf32>\n"
                             "%2 = stablehlo.subtract %0, %1 : tensor<4xf32>\n"
                             "return %2 : tensor<4xf32>\n");

static void blind_to_names_order_and_locations(void** state) {
  (void)state;
  assert_same(
      base,
      "module @named {\nfunc.func public @g(%p: tensor<4xf32> {pestle.name = "
      "\"in\"}, %q: tensor<4xf32>) -> (tensor<4xf32> {pestle.name = \"out\"}) "
      "{\n"
      "%dead = stablehlo.sine %p : tensor<4xf32>\n"
      "%b = stablehlo.negate %q : tensor<4xf32> loc(\"b\")\n"
      "%a = stablehlo.exponential %p : tensor<4xf32> loc(\"x.py\":1:2)\n"
      "%c = stablehlo.subtract %a, %b : tensor<4xf32>\n"
      "return %c : tensor<4xf32>\n} }\n");
}

static void sees_everything_else(void** state) {
  (void)state;
  static const char* const others[] = {
      // another op
      F(XY, ONE,
        "%0 = stablehlo.exponential %x : tensor<4xf32>\n"
        "%1 = stablehlo.abs %y : tensor<4xf32>\n"
        "%2 = stablehlo.subtract %0, %1 : tensor<4xf32>\n"
        "return %2 : tensor<4xf32>\n"),
      // operands the other way round
      F(XY, ONE,
        "%0 = stablehlo.exponential %x : tensor<4xf32>\n"
        "%1 = stablehlo.negate %y : tensor<4xf32>\n"
        "%2 = stablehlo.subtract %1, %0 : tensor<4xf32>\n"
        "return %2 : tensor<4xf32>\n"),
      // the other argument
      F(XY, ONE,
        "%0 = stablehlo.exponential %y : tensor<4xf32>\n"
        "%1 = stablehlo.negate %y : tensor<4xf32>\n"
        "%2 = stablehlo.subtract %0, %1 : tensor<4xf32>\n"
        "return %2 : tensor<4xf32>\n"),
      // another shape, another type
      F("%x: tensor<5xf32>, %y: tensor<5xf32>", "tensor<5xf32>",
        "%0 = stablehlo.exponential %x : tensor<5xf32>\n"
        "%1 = stablehlo.negate %y : tensor<5xf32>\n"
        "%2 = stablehlo.subtract %0, %1 : tensor<5xf32>\n"
        "return %2 : tensor<5xf32>\n"),
      F("%x: tensor<4xf64>, %y: tensor<4xf64>", "tensor<4xf64>",
        "%0 = stablehlo.exponential %x : tensor<4xf64>\n"
        "%1 = stablehlo.negate %y : tensor<4xf64>\n"
        "%2 = stablehlo.subtract %0, %1 : tensor<4xf64>\n"
        "return %2 : tensor<4xf64>\n"),
      // one more result, another order of arguments
      F(XY, "(tensor<4xf32>, tensor<4xf32>)",
        "%0 = stablehlo.exponential %x : tensor<4xf32>\n"
        "%1 = stablehlo.negate %y : tensor<4xf32>\n"
        "%2 = stablehlo.subtract %0, %1 : tensor<4xf32>\n"
        "return %2, %2 : tensor<4xf32>, tensor<4xf32>\n"),
      F("%y: tensor<4xf32>, %x: tensor<4xf32>", ONE,
        "%0 = stablehlo.exponential %x : tensor<4xf32>\n"
        "%1 = stablehlo.negate %y : tensor<4xf32>\n"
        "%2 = stablehlo.subtract %0, %1 : tensor<4xf32>\n"
        "return %2 : tensor<4xf32>\n"),
      // an argument more, which nobody reads
      F(XY ", %z: tensor<4xf32>", ONE,
        "%0 = stablehlo.exponential %x : tensor<4xf32>\n"
        "%1 = stablehlo.negate %y : tensor<4xf32>\n"
        "%2 = stablehlo.subtract %0, %1 : tensor<4xf32>\n"
        "return %2 : tensor<4xf32>\n"),
  };
  for (size_t i = 0; i < sizeof(others) / sizeof(*others); ++i) {
    assert_differ(base, others[i]);
  }
  assert_differ(F(XY, "(tensor<4xf32>, tensor<4xf32>)",
                  "return %x, %y : tensor<4xf32>, tensor<4xf32>\n"),
                F(XY, "(tensor<4xf32>, tensor<4xf32>)",
                  "return %y, %x : tensor<4xf32>, tensor<4xf32>\n"));
  assert_differ(F(X, "tensor<4xi1>",
                  "%0 = stablehlo.compare LT, %x, %x : (tensor<4xf32>, "
                  "tensor<4xf32>) -> tensor<4xi1>\nreturn %0 : tensor<4xi1>\n"),
                F(X, "tensor<4xi1>",
                  "%0 = stablehlo.compare LE, %x, %x : (tensor<4xf32>, "
                  "tensor<4xf32>) -> tensor<4xi1>\nreturn %0 : "
                  "tensor<4xi1>\n"));
}

#define CONSTANT(value, type)                                                \
  F("", type,                                                                \
    "%0 = stablehlo.constant dense<" value "> : " type "\nreturn %0 : " type \
    "\n")

static void constants(void** state) {
  (void)state;
  assert_differ(CONSTANT("[1, 2]", "tensor<2xi32>"),
                CONSTANT("[1, 3]", "tensor<2xi32>"));
  assert_differ(CONSTANT("[1, 2]", "tensor<2xi32>"),
                CONSTANT("[1, 2]", "tensor<2xui32>"));
  assert_differ(CONSTANT("[1, 2]", "tensor<2xi32>"),
                CONSTANT("[[1, 2]]", "tensor<1x2xi32>"));
  assert_differ(CONSTANT("0.0", "tensor<f32>"),
                CONSTANT("-0.0", "tensor<f32>"));
  assert_differ(CONSTANT("1", "tensor<3xi32>"), CONSTANT("1", "tensor<4xi32>"));
  // One content, however it is stored.
  assert_same(CONSTANT("[7, 7, 7]", "tensor<3xi32>"),
              CONSTANT("7", "tensor<3xi32>"));
  assert_same(CONSTANT("\"0x0100000002000000\"", "tensor<2xi32>"),
              CONSTANT("[1, 2]", "tensor<2xi32>"));
}

// Ops inside a region, what they capture, and calls.
static void regions_and_calls(void** state) {
  (void)state;
#define IF(first, second, a, b)                                       \
  F("%p: tensor<i1>, " XY, ONE,                                       \
    "%0 = stablehlo." first                                           \
    " : tensor<4xf32>\n"                                              \
    "%1 = stablehlo." second                                          \
    " : tensor<4xf32>\n"                                              \
    "%2 = \"stablehlo.if\"(%p) ({\n %3 = stablehlo.add " a ", " b     \
    " : tensor<4xf32>\n stablehlo.return %3 : tensor<4xf32>\n}, {\n " \
    "stablehlo.return %x : tensor<4xf32>\n}) : (tensor<i1>) -> "      \
    "tensor<4xf32>\nreturn %2 : tensor<4xf32>\n")
  assert_same(IF("negate %x", "abs %y", "%0", "%1"),
              IF("abs %y", "negate %x", "%1", "%0"));
  assert_differ(IF("negate %x", "abs %y", "%0", "%1"),
                IF("negate %x", "abs %y", "%1", "%0"));
#define CALL(callee, helpers)                 \
  "func.func public @f(" X                    \
  ") -> tensor<4xf32> {\n"                    \
  "%0 = call @" callee                        \
  "(%x) : (tensor<4xf32>) -> tensor<4xf32>\n" \
  "return %0 : tensor<4xf32> }\n" helpers
#define HELPER(name, op)           \
  "func.func private @" name "(" X \
  ") -> tensor<4xf32> {\n"         \
  "%0 = stablehlo." op             \
  " %x : tensor<4xf32>\n"          \
  "return %0 : tensor<4xf32> }\n"
  assert_same(CALL("g", HELPER("g", "sine")),
              CALL("h", HELPER("unused", "abs") HELPER("h", "sine")));
  assert_differ(CALL("g", HELPER("g", "sine")),
                CALL("g", HELPER("g", "cosine")));
}

static void effects_keep_order(void** state) {
  (void)state;
#define BARRIERS(first, second)           \
  F(XY, "(tensor<4xf32>, tensor<4xf32>)", \
    first second "return %0, %1 : tensor<4xf32>, tensor<4xf32>\n")
#define BARRIER(name, of) \
  name " = stablehlo.optimization_barrier " of " : tensor<4xf32>\n"
  assert_differ(BARRIERS(BARRIER("%0", "%x"), BARRIER("%1", "%y")),
                BARRIERS(BARRIER("%1", "%y"), BARRIER("%0", "%x")));
}

static void forms_agree(void** state) {
  (void)state;
  size_t size;
  static const char* const pairs[][2] = {
      {"conv.mlir", "conv_generic.mlir"},
      {"control.mlir", "control_generic.mlir"},
      {"mlp.mlir", "mlp_debug.mlir"}};
  for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); ++i) {
    char* a = text_golden(pairs[i][0], &size);
    char* b = text_golden(pairs[i][1], &size);
    assert_same(a, b);
    free(b);
    free(a);
  }
}

// A chain that a recursive walk would not survive, and time that is linear.
static void long_chains(void** state) {
  (void)state;
  BEGIN(t, T0(F32));
  pestle_value_t* x = t.a[0];
  for (int i = 0; i < 50000; ++i) {
    assert_ok(pestle_op_add(&t.b, x, x, &x));
  }
  assert_ok(pestle_op_return(&t.b, &x, 1, NULL));
  hash_t hash;
  assert_ok(pestle_module_signature(t.module, hash.word));
  ir_test_end(&t);
}

static pestle_status_t sign(ir_test_t* t) {
  pestle_value_t* y;
  PESTLE_TRY(pestle_op_add(&t->b, t->a[0], t->a[0], &y));
  PESTLE_TRY(pestle_op_return(&t->b, &y, 1, NULL));
  uint64_t hash[2];
  return pestle_module_signature(t->module, hash);
}

static void every_allocation_may_fail(void** state) {
  (void)state;
  pestle_type_t type = T(F32, 2);
  ir_test_every_failure(&type, 1, sign);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blind_to_names_order_and_locations),
      cmocka_unit_test(sees_everything_else),
      cmocka_unit_test(constants),
      cmocka_unit_test(regions_and_calls),
      cmocka_unit_test(effects_keep_order),
      cmocka_unit_test(forms_agree),
      cmocka_unit_test(long_chains),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

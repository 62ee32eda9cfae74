// SPDX-License-Identifier: Apache-2.0
// Modules over all devices, as each of them runs them: what lies in parts, what is
// gathered, and what is sliced. The numbers are those of one device.
#include "passes_test.h"

#define WORLD_PREPARE(module) \
  test_run(module, "canonicalise,recognise,partition,canonicalise")
#include "ir/sharding.h"
#include "unit/ir/world_run.h"

#define MESH(text, body) WORLD(1, 4, "sdy.mesh @m = <" text ">\n" body)
#define IN(type, sharding) \
  "%a: tensor<" type "> {sdy.sharding = #sdy.sharding<@m, " sharding ">}"
#define MAIN(arguments, out, sharding, body)                     \
  "func.func public @main(" arguments ") -> (tensor<" out        \
  "> {sdy.sharding = #sdy.sharding<@m, " sharding ">}) {\n" body \
  "return "                                                      \
  "%r : tensor<" out ">\n}"

// Process i has element 2 i and 2 i + 1 of eight.
static const int32_t parts[] = {0, 1, 2, 3, 4, 5, 6, 7};

// An op that mixes parts gets all of the value, and its result is cut again.
static void gathers(void** state) {
  (void)state;
  assert_i32(
      MESH("[\"x\"=4]",
           MAIN(IN("8xi32", "[{\"x\"}]"), "8xi32", "[{\"x\"}]",
                "%r = stablehlo.reverse %a, dims = [0] : tensor<8xi32>\n")),
      4, 2, 2, parts, 7, 6, 5, 4, 3, 2, 1, 0);
  // The whole of it, wanted by every process.
  assert_i32(
      MESH("[\"x\"=4]", MAIN(IN("8xi32", "[{\"x\"}]"), "8xi32", "[{}]",
                             "%r = stablehlo.add %a, %a : tensor<8xi32>\n")),
      4, 2, 8, parts, 0, 2, 4, 6, 8, 10, 12, 14, 0, 2, 4, 6, 8, 10, 12, 14, 0,
      2, 4, 6, 8, 10, 12, 14, 0, 2, 4, 6, 8, 10, 12, 14);
}

static int count_ops(const char* text, pestle_op_t op) {
  pestle_context_t* context = text_context();
  pestle_module_t* module = text_parse(context, text);
  WORLD_PREPARE(module);
  const pestle_region_t* body = pestle_module_entry(module)->body;
  int count = 0;
  for (const pestle_node_t* n = NULL; (n = pestle_region_next(body, n));)
    count += n->op == op;
  pestle_module_release(module);
  pestle_context_release(context);
  return count;
}

// Elementwise ops stay with the parts, whose parts their result is; numbers that are
// not everywhere the same are cut.
static void stays(void** state) {
  (void)state;
  static const char text[] =
      MESH("[\"x\"=4]",
           "func.func public @main(" IN("8xi32", "[{\"x\"}]")
           ") -> tensor<8xi32> {\n"
           "%n = stablehlo.constant dense<[0, 1, 0, 1, 0, 1, 0, 9]> : "
           "tensor<8xi32>\n"
           "%two = stablehlo.constant dense<2> : tensor<8xi32>\n"
           "%s = stablehlo.constant dense<3> : tensor<i32>\n"
           "%b = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<i32>) -> "
           "tensor<8xi32>\n"
           "%m = stablehlo.multiply %a, %two : tensor<8xi32>\n"
           "%p = stablehlo.add %m, %n : tensor<8xi32>\n"
           "%c = stablehlo.compare GT, %p, %b : (tensor<8xi32>, "
           "tensor<8xi32>) -> tensor<8xi1>\n"
           "%r = stablehlo.select %c, %p, %b : tensor<8xi1>, tensor<8xi32>\n"
           "return %r : tensor<8xi32>\n}");
  assert_i32(text, 4, 2, 2, parts, 3, 3, 4, 7, 8, 11, 12, 23);
  assert_int_equal(count_ops(text, PESTLE_OP_ALL_GATHER), 0);
  // Of two that lie in different parts one is sent, and their sum gathered.
  static const char two[] = MESH(
      "[\"x\"=2, \"y\"=2]",
      MAIN(IN("4x2xi32", "[{\"x\"}, {}]") ", %b: tensor<4x2xi32> "
                                          "{sdy.sharding = #sdy.sharding<@m, "
                                          "[{\"y\"}, {}]>}",
           "4x2xi32", "[{}, {}]",
           "%r = stablehlo.add %a, %b : tensor<4x2xi32>\n"));
  assert_int_equal(count_ops(two, PESTLE_OP_ALL_GATHER), 1);
  assert_int_equal(count_ops(two, PESTLE_OP_COLLECTIVE_PERMUTE), 1);
}

// Rows along x, columns along y: to columns along x, rows along y.
static void reshards(void** state) {
  (void)state;
  // [[0, 1], [2, 3], [4, 5], [6, 7]] as 2 x 1 blocks: x is rows.
  static const int32_t blocks[] = {0, 2, 1, 3, 4, 6, 5, 7};
  assert_i32(MESH("[\"x\"=2, \"y\"=2]",
                  MAIN(IN("4x2xi32", "[{\"x\"}, {\"y\"}]"), "4x2xi32",
                       "[{\"y\"}, {\"x\"}]",
                       "%r = stablehlo.negate %a : tensor<4x2xi32>\n")),
             4, 2, 2, blocks, 0, -2, -4, -6, -1, -3, -5, -7);
  // A result as it came, wanted in other parts, without any op.
  assert_i32(MESH("[\"x\"=2, \"y\"=2]",
                  "func.func public @main(" IN(
                      "4x2xi32",
                      "[{\"x\"}, {\"y\"}]") ") -> (tensor<4x2xi32> "
                                            "{sdy.sharding = #sdy.sharding<@m, "
                                            "[{\"y\"}, {\"x\"}]>}) {\nreturn "
                                            "%a : tensor<4x2xi32>\n}"),
             4, 2, 2, blocks, 0, 2, 4, 6, 1, 3, 5, 7);
  // Devices in another order than their numbers.
  assert_i32(MESH("[\"x\"=4], device_ids=[3, 2, 1, 0]",
                  MAIN(IN("8xi32", "[{\"x\"}]"), "8xi32", "[{}]",
                       "%r = stablehlo.add %a, %a : tensor<8xi32>\n")),
             4, 2, 8, parts, 12, 14, 8, 10, 4, 6, 0, 2, 12, 14, 8, 10, 4, 6, 0,
             2, 12, 14, 8, 10, 4, 6, 0, 2, 12, 14, 8, 10, 4, 6, 0, 2);
}

// An argument and a result on meshes that number the devices in different orders.
static void orders(void** state) {
  (void)state;
  static const char text[] = WORLD(
      1, 4,
      "sdy.mesh @m = <[\"x\"=4]>\nsdy.mesh @n = <[\"x\"=4], device_ids=[3, 2, "
      "1, 0]>\nfunc.func public @main(" IN("8xi32", "[{\"x\"}]") ") -> "
      "(tensor<8xi32> {sdy.sharding = #sdy.sharding<@n, [{\"x\"}]>}) {\n"
      "%r = stablehlo.negate %a : tensor<8xi32>\nreturn %r : "
      "tensor<8xi32>\n}");
  assert_i32(text, 4, 2, 2, parts, -6, -7, -4, -5, -2, -3, 0, -1);
}

// Each process has a summand.
static void sums(void** state) {
  (void)state;
  static const int32_t in[] = {1, 2, 10, 20, 100, 200, 1000, 2000};
  assert_i32(MESH("[\"x\"=2, \"y\"=2]",
                  MAIN(IN("2xi32", "[{}], unreduced={\"y\"}"), "2xi32", "[{}]",
                       "%r = stablehlo.negate %a : tensor<2xi32>\n")),
             4, 2, 2, in, -11, -22, -11, -22, -1100, -2200, -1100, -2200);
  // Into summands: the first has the value.
  assert_i32(MESH("[\"x\"=2, \"y\"=2]",
                  MAIN(IN("4xi32", "[{\"x\"}]"), "4xi32",
                       "[{\"x\"}], unreduced={\"y\"}",
                       "%r = stablehlo.negate %a : tensor<4xi32>\n")),
             4, 2, 2, ((const int32_t[]){1, 2, 1, 2, 3, 4, 3, 4}), -1, -2, 0, 0,
             -3, -4, 0, 0);
}

// A computation for each process along x; along y its values are whole.
static void some_axes(void** state) {
  (void)state;
  assert_i32(
      MESH("[\"x\"=2, \"y\"=2]",
           MAIN(IN("8xi32", "[{\"x\", \"y\"}]"), "8xi32", "[{\"x\", \"y\"}]",
                "%r = sdy.manual_computation(%a) in_shardings=[<@m, "
                "[{\"x\", \"y\"}]>] out_shardings=[<@m, [{\"x\", \"y\"}]>] "
                "manual_axes={\"x\"} (%b: tensor<4xi32>) {\n"
                "%c = stablehlo.reverse %b, dims = [0] : tensor<4xi32>\n"
                "sdy.return %c : tensor<4xi32>\n"
                "} : (tensor<8xi32>) -> tensor<8xi32>\n")),
      4, 2, 2, parts, 3, 2, 1, 0, 7, 6, 5, 4);
}

// One within another: parts along y of what is a part along x.
static void nested(void** state) {
  (void)state;
  assert_i32(
      MESH("[\"x\"=2, \"y\"=2]",
           MAIN(IN("8xi32", "[{\"x\", \"y\"}]"), "8xi32", "[{\"x\", \"y\"}]",
                "%o = sdy.manual_computation(%a) in_shardings=[<@m, "
                "[{\"x\"}]>] out_shardings=[<@m, [{\"x\"}]>] "
                "manual_axes={\"x\"} (%b: tensor<4xi32>) {\n"
                "%p = sdy.manual_computation(%b) in_shardings=[<@m, "
                "[{\"y\"}]>] out_shardings=[<@m, [{\"y\"}]>] "
                "manual_axes={\"y\"} (%c: tensor<2xi32>) {\n"
                "%d = stablehlo.reverse %c, dims = [0] : tensor<2xi32>\n"
                "sdy.return %d : tensor<2xi32>\n"
                "} : (tensor<4xi32>) -> tensor<4xi32>\n"
                "sdy.return %p : tensor<4xi32>\n"
                "} : (tensor<8xi32>) -> tensor<8xi32>\n"
                "%r = stablehlo.reverse %o, dims = [0] : tensor<8xi32>\n")),
      4, 2, 2, parts, 6, 7, 4, 5, 2, 3, 0, 1);
}

// A value in parts that a loop reads, and one that it makes.
static void loops(void** state) {
  (void)state;
  assert_i32(
      MESH("[\"x\"=4]",
           MAIN(IN("8xi32", "[{\"x\"}]"), "8xi32", "[{\"x\"}]",
                "%n = stablehlo.constant dense<0> : tensor<i32>\n"
                "%one = stablehlo.constant dense<1> : tensor<i32>\n"
                "%three = stablehlo.constant dense<3> : tensor<i32>\n"
                "%i, %r = stablehlo.while(%k = %n, %v = %a) : tensor<i32>, "
                "tensor<8xi32>\ncond {\n"
                "%c = stablehlo.compare LT, %k, %three : (tensor<i32>, "
                "tensor<i32>) -> tensor<i1>\n"
                "stablehlo.return %c : tensor<i1>\n} do {\n"
                "%m = sdy.manual_computation(%v) in_shardings=[<@m, "
                "[{\"x\"}]>] out_shardings=[<@m, [{\"x\"}]>] "
                "manual_axes={\"x\"} (%b: tensor<2xi32>) {\n"
                "%q = stablehlo.reverse %b, dims = [0] : tensor<2xi32>\n"
                "sdy.return %q : tensor<2xi32>\n"
                "} : (tensor<8xi32>) -> tensor<8xi32>\n"
                "%w = stablehlo.add %m, %a : tensor<8xi32>\n"
                "%j = stablehlo.add %k, %one : tensor<i32>\n"
                "stablehlo.return %j, %w : tensor<i32>, tensor<8xi32>\n}\n")),
      4, 2, 2, parts, 2, 2, 10, 10, 18, 18, 26, 26);
}

// A part becomes a summand where it lies, and nothing is sent.
static void places(void** state) {
  (void)state;
  static const char text[] =
      MESH("[\"x\"=2, \"y\"=2]",
           MAIN(IN("4xi32", "[{\"y\"}]"), "4xi32", "[{}], unreduced={\"y\"}",
                "%r = stablehlo.negate %a : tensor<4xi32>\n"));
  static const int32_t in[] = {1, 2, 3, 4, 1, 2, 3, 4};
  assert_i32(text, 4, 2, 4, in, -1, -2, 0, 0, 0, 0, -3, -4, -1, -2, 0, 0, 0, 0,
             -3, -4);
  assert_int_equal(count_ops(text, PESTLE_OP_ALL_GATHER), 0);
  // Of two axes of a dim the last one goes first: the other is gathered.
  assert_i32(MESH("[\"x\"=2, \"y\"=2]",
                  MAIN(IN("4xi32", "[{\"x\", \"y\"}]"), "4xi32",
                       "[{}], unreduced={\"y\"}",
                       "%r = stablehlo.negate %a : tensor<4xi32>\n")),
             4, 1, 4, parts, 0, 0, -2, 0, 0, -1, 0, -3, 0, 0, -2, 0, 0, -1, 0,
             -3);
}

// A wish for parts that would differ is none: what the dim cannot be divided by is left
// out. An empty mesh wishes for nothing where it is open.
static void wishes(void** state) {
  (void)state;
  assert_i32(
      MESH("[\"x\"=2, \"y\"=2]",
           MAIN(IN("8xi32", "[{\"x\", \"y\"}]"), "6xi32", "[{\"x\"}]",
                "%s = stablehlo.slice %a [0:6] : (tensor<8xi32>) -> "
                "tensor<6xi32>\n%r = sdy.sharding_constraint %s <@m, [{\"x\", "
                "\"y\"}]> : tensor<6xi32>\n")),
      4, 2, 3, parts, 0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5);
  static const char open[] =
      MESH("[\"x\"=4]",
           "sdy.mesh @empty = <[]>\n"
           "func.func public @main(" IN("8xi32", "[{\"x\"}]")
           ") -> (tensor<8xi32> {sdy.sharding = #sdy.sharding<@m, "
           "[{\"x\"}]>}) {\n%w = sdy.sharding_constraint %a <@empty, [{?}]> : "
           "tensor<8xi32>\n%r = stablehlo.negate %w : tensor<8xi32>\n"
           "return %r : tensor<8xi32>\n}");
  assert_i32(open, 4, 2, 2, parts, 0, -1, -2, -3, -4, -5, -6, -7);
  assert_int_equal(count_ops(open, PESTLE_OP_ALL_GATHER), 0);
}

#define WISHED(type, body)                                                \
  body "%r = sdy.sharding_constraint %q <@m, [{}], unreduced={\"y\"}> : " \
       "tensor<" type ">\n"

// What is made for a wish for summands alone is summands from the start, where it can be;
// else the first process has it.
static void makes_summands(void** state) {
  (void)state;
  static const char sum[] = MESH(
      "[\"x\"=2, \"y\"=2]",
      MAIN(IN("4x2xi32", "[{\"y\"}, {}]"), "2xi32", "[{}], unreduced={\"y\"}",
           WISHED("2xi32",
                  "%z = stablehlo.constant dense<0> : tensor<i32>\n"
                  "%q = stablehlo.reduce(%a init: %z) applies "
                  "stablehlo.add across dimensions = [0] : (tensor<4x2xi32>"
                  ", tensor<i32>) -> tensor<2xi32>\n")));
  static const int32_t in[] = {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8};
  assert_i32(sum, 4, 4, 2, in, 4, 6, 12, 14, 4, 6, 12, 14);
  assert_int_equal(count_ops(sum, PESTLE_OP_ALL_REDUCE), 0);
  assert_int_equal(count_ops(sum, PESTLE_OP_ALL_GATHER), 0);
  assert_i32(
      MESH("[\"x\"=2, \"y\"=2]",
           MAIN(IN("2xi32", "[{}]"), "2xi32", "[{}], unreduced={\"y\"}",
                WISHED("2xi32",
                       "%q = stablehlo.multiply %a, %a : tensor<2xi32>\n"))),
      4, 2, 2, ((const int32_t[]){3, 4, 3, 4, 3, 4, 3, 4}), 9, 16, 0, 0, 9, 16,
      0, 0);
  assert_i32(
      MESH(
          "[\"x\"=2, \"y\"=2]",
          MAIN(IN("4xi32", "[{\"y\"}]"), "4xi32", "[{}], unreduced={\"y\"}",
               WISHED(
                   "4xi32",
                   "%q = stablehlo.reverse %a, dims = [0] : tensor<4xi32>\n"))),
      4, 2, 4, ((const int32_t[]){1, 2, 3, 4, 1, 2, 3, 4}), 4, 3, 2, 1, 0, 0, 0,
      0, 4, 3, 2, 1, 0, 0, 0, 0);
}

// A loop carries summands where the module wishes for them: they are summed up once.
static void carries(void** state) {
  (void)state;
  static const char text[] =
      MESH("[\"x\"=2, \"y\"=2]",
           MAIN(IN("2xi32", "[{}], unreduced={\"y\"}"), "2xi32", "[{}]",
                "%i = stablehlo.constant dense<0> : tensor<i32>\n"
                "%three = stablehlo.constant dense<3> : tensor<i32>\n"
                "%one = stablehlo.constant dense<1> : tensor<i32>\n"
                "%z = stablehlo.constant dense<0> : tensor<2xi32>\n"
                "%zero = sdy.sharding_constraint %z <@m, [{}], "
                "unreduced={\"y\"}> : tensor<2xi32>\n"
                "%w:2 = stablehlo.while(%k = %i, %c = %zero) : tensor<i32>, "
                "tensor<2xi32>\ncond {\n"
                "%p = stablehlo.compare LT, %k, %three : (tensor<i32>, "
                "tensor<i32>) -> tensor<i1>\n"
                "stablehlo.return %p : tensor<i1>\n} do {\n"
                "%s = stablehlo.add %c, %a : tensor<2xi32>\n"
                "%t = sdy.sharding_constraint %s <@m, [{}], "
                "unreduced={\"y\"}> : tensor<2xi32>\n"
                "%j = stablehlo.add %k, %one : tensor<i32>\n"
                "stablehlo.return %j, %t : tensor<i32>, tensor<2xi32>\n}\n"
                "%r = stablehlo.negate %w#1 : tensor<2xi32>\n"));
  static const int32_t in[] = {1, 2, 10, 20, 100, 200, 1000, 2000};
  assert_i32(text, 4, 2, 2, in, -33, -66, -33, -66, -3300, -6600, -3300, -6600);
  assert_int_equal(count_ops(text, PESTLE_OP_ALL_REDUCE), 1);
  assert_int_equal(count_ops(text, PESTLE_OP_SELECT), 0);
}

static void refuses(void** state) {
  (void)state;
  static const struct {
    const char *text, *why;
  } rows[] = {
      {MESH("[\"x\"=4], device_ids=[0, 1, 2, 2]",
            MAIN(IN("8xi32", "[{\"x\"}]"), "8xi32", "[{}]",
                 "%r = stablehlo.add %a, %a : tensor<8xi32>\n")),
       "not each of 4 numbers once"},
      {MESH("[\"x\"=4]",
            MAIN(IN("8xi32", "[{\"x\"}], unreduced={\"x\"}"), "8xi32", "[{}]",
                 "%r = stablehlo.add %a, %a : tensor<8xi32>\n")),
       "none of axes of a mesh"},
      {MESH("[\"x\"=4]", MAIN(IN("6xi32", "[{\"x\"}]"), "6xi32", "[{}]",
                              "%r = stablehlo.add %a, %a : tensor<6xi32>\n")),
       "which would differ"},
      {MESH("[\"x\"=2, \"y\"=2]",
            MAIN(IN("8xi32", "[{\"x\"}]"), "8xi32", "[{\"x\"}]",
                 "%r = sdy.manual_computation(%a) in_shardings=[<@m, "
                 "[{\"x\"}]>] out_shardings=[<@m, [{\"x\"}]>] "
                 "manual_axes={\"y\"} (%b: tensor<4xi32>) {\n"
                 "sdy.return %b : tensor<4xi32>\n"
                 "} : (tensor<8xi32>) -> tensor<8xi32>\n")),
       "another type than its sharding"},
  };
  pestle_context_t* context = text_context();
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
    pestle_module_t* module = NULL;
    pestle_status_t status = pestle_module_parse(
        context, rows[i].text, strlen(rows[i].text), "m.mlir", &module);
    assert_ok(status);
    pestle_compile_options_t options = test_options("partition");
    pestle_target_caps_t caps = {.struct_size = sizeof(caps)};
    status = pestle_passes_run(context, &caps, &options, module, NULL);
    pestle_module_release(module);
    assert_non_null(status);
    if (!strstr(pestle_status_message(status), rows[i].why))
      fail_msg("%s", pestle_status_message(status));
    pestle_status_release(status);
  }
  pestle_context_release(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gathers),        cmocka_unit_test(stays),
      cmocka_unit_test(reshards),       cmocka_unit_test(sums),
      cmocka_unit_test(orders),         cmocka_unit_test(some_axes),
      cmocka_unit_test(loops),          cmocka_unit_test(nested),
      cmocka_unit_test(places),         cmocka_unit_test(wishes),
      cmocka_unit_test(makes_summands), cmocka_unit_test(carries),
      cmocka_unit_test(refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

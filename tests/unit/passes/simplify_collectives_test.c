// SPDX-License-Identifier: Apache-2.0
// The pass simplify_collectives: programs of four processes give the same with it and
// without, and have as many collectives as are said; what looks alike and is not stays.
#include "passes_test.h"

static bool prepared;
#define WORLD_PREPARE(module)                               \
  do {                                                      \
    if (prepared) test_run(module, "simplify_collectives"); \
  } while (0)
#include "unit/ir/world_run.h"

enum { RANKS = 4, IN = 8 };

#define CHANNEL \
  "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
#define ALL "dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>"
#define ROWS "dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"
#define COLUMNS "dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>"
#define TURNED "dense<[[2, 0], [3, 1]]> : tensor<2x2xi64>"
#define REGION(op)                                                  \
  "({\n^bb0(%p: tensor<i32>, %q: tensor<i32>):\n%o = stablehlo." op \
  " %p, %q : tensor<i32>\nstablehlo.return %o : tensor<i32>\n})"
#define REDUCE(to, of, n, op, groups)                      \
  "%" to " = \"stablehlo.all_reduce\"(%" of ") <{" CHANNEL \
  ", replica_groups = " groups                             \
  ", use_global_device_ids}> " REGION(op) " : (tensor<" n  \
                                          "xi32>) -> tensor<" n "xi32>\n"
#define SCATTER(to, of, in, out, op, groups)                   \
  "%" to " = \"stablehlo.reduce_scatter\"(%" of ") <{" CHANNEL \
  ", scatter_dimension = 0 : i64, replica_groups = " groups    \
  ", use_global_device_ids}> " REGION(op) " : (tensor<" in     \
                                          "xi32>) -> tensor<" out "xi32>\n"
#define GATHER(to, of, in, out, groups)                    \
  "%" to " = \"stablehlo.all_gather\"(%" of ") <{" CHANNEL \
  ", all_gather_dim = 0 : i64, replica_groups = " groups   \
  ", use_global_device_ids}> : (tensor<" in "xi32>) -> tensor<" out "xi32>\n"
#define EXCHANGE(to, of, in, out, split, concat)                             \
  "%" to " = \"stablehlo.all_to_all\"(%" of ") <{" CHANNEL                   \
  ", split_dimension = " split " : i64, concat_dimension = " concat          \
  " : i64, split_count = 2 : i64, replica_groups = " ROWS "}> : (tensor<" in \
  "xi32>) -> tensor<" out "xi32>\n"
#define ID "%id = \"stablehlo.partition_id\"() : () -> tensor<ui32>\n"
// %at: the place of a process in its row, in its column, or in all, times |by|.
#define TABLE(numbers)                                              \
  ID "%table = stablehlo.constant dense<" numbers                   \
     "> : tensor<4xi32>\n"                                          \
     "%entry = stablehlo.dynamic_slice %table, %id, sizes = [1] : " \
     "(tensor<4xi32>, tensor<ui32>) -> tensor<1xi32>\n"             \
     "%at = stablehlo.reshape %entry : (tensor<1xi32>) -> tensor<i32>\n"
#define SLICE(to, of, in, out)                                    \
  "%" to " = stablehlo.dynamic_slice %" of ", %at, sizes = [" out \
  "] : "                                                          \
  "(tensor<" in "xi32>, tensor<i32>) -> tensor<" out "xi32>\n"
#define MAIN(out, body)                                            \
  WORLD(1, 4,                                                      \
        "func.func public @main(%a: tensor<8xi32>) -> tensor<" out \
        "xi32> {\n" body "return %r : tensor<" out "xi32>\n}")

static int collectives(const char* text) {
  pestle_context_t* context = text_context();
  pestle_module_t* module = text_parse(context, text);
  WORLD_PREPARE(module);
  test_run(module, "dce");
  int count = 0;
  const pestle_region_t* body = pestle_module_entry(module)->body;
  for (const pestle_node_t* n = NULL; (n = pestle_region_next(body, n));) {
    count +=
        pestle_op_info((pestle_op_t)n->op)->fuse == PESTLE_FUSE_COLLECTIVE &&
        n->operand_count > 0;
  }
  pestle_module_release(module);
  pestle_context_release(context);
  return count;
}

// Same numbers, and |wanted| collectives.
static void check(const char* text, size_t out, int wanted) {
  int32_t in[RANKS * IN], want[RANKS * 64], got[RANKS * 64];
  for (int i = 0; i < RANKS * IN; ++i)
    in[i] = i * i * 7 % 101 - 30;
  prepared = false;
  run_i32(text, RANKS, in, IN, want, out);
  prepared = true;
  run_i32(text, RANKS, in, IN, got, out);
  assert_memory_equal(want, got, RANKS * out * sizeof(*got));
  int found = collectives(text);
  if (found != wanted)
    fail_msg("%d collectives, not %d, of\n%s", found, wanted, text);
}

static void own_parts(void** state) {
  (void)state;
  // By all, by rows, by columns; the numbers by a table and by arithmetic.
  check(MAIN("2", TABLE("[0, 2, 4, 6]") REDUCE("s", "a", "8", "add", ALL)
                      SLICE("r", "s", "8", "2")),
        2, 1);
  check(MAIN("4", TABLE("[0, 4, 0, 4]") REDUCE("s", "a", "8", "minimum", ROWS)
                      SLICE("r", "s", "8", "4")),
        4, 1);
  check(MAIN("4", ID "%c = stablehlo.constant dense<2> : tensor<ui32>\n"
                     "%row = stablehlo.divide %id, %c : tensor<ui32>\n"
                     "%at0 = stablehlo.multiply %row, %c : tensor<ui32>\n"
                     "%at1 = stablehlo.multiply %at0, %c : tensor<ui32>\n"
                     "%at = stablehlo.convert %at1 : (tensor<ui32>) -> "
                     "tensor<i32>\n" REDUCE("s", "a", "8", "add", COLUMNS)
                         SLICE("r", "s", "8", "4")),
        4, 1);
  check(MAIN("8", TABLE("[0, 8, 16, 24]") GATHER("g", "a", "8", "32", ALL)
                      SLICE("r", "g", "32", "8")),
        8, 0);
  // In another order, along other groups, of a sum that others read too: they stay.
  check(MAIN("2", TABLE("[6, 4, 2, 0]") REDUCE("s", "a", "8", "add", ALL)
                      SLICE("r", "s", "8", "2")),
        2, 1);
  check(MAIN("8", TABLE("[0, 8, 0, 8]") GATHER("g", "a", "8", "16", COLUMNS)
                      SLICE("r", "g", "16", "8")),
        8, 1);
  check(MAIN("8", TABLE("[0, 0, 8, 8]") GATHER("g", "a", "8", "16", TURNED)
                      SLICE("r", "g", "16", "8")),
        8, 1);
}

static void other_reads(void** state) {
  (void)state;
  static const char text[] = MAIN(
      "2", TABLE("[0, 2, 4, 6]") REDUCE("s", "a", "8", "add", ALL)
               SLICE("t", "s", "8", "2")
                   SLICE("u", "a", "8", "2") "%first = stablehlo.slice %s "
                                             "[0:2] : (tensor<8xi32>) -> "
                                             "tensor<2xi32>\n%v = "
                                             "stablehlo.add %t, %first : "
                                             "tensor<2xi32>\n%r = "
                                             "stablehlo.add %u, %v : "
                                             "tensor<2xi32>\n");
  check(text, 2, 1);
}

static void back_together(void** state) {
  (void)state;
  check(MAIN("8", SCATTER("p", "a", "8", "4", "add", COLUMNS)
                      GATHER("r", "p", "4", "8", COLUMNS)),
        8, 1);
  check(MAIN("8", SCATTER("p", "a", "8", "4", "add", COLUMNS)
                      GATHER("r", "p", "4", "8", TURNED)),
        8, 2);
  // Parts of what all have; an argument may differ.
  check(
      MAIN(
          "8",
          TABLE("[0, 2, 4, 6]") REDUCE(
              "s", "a", "8", "add",
              ALL) "%m = stablehlo.multiply %s, %s : tensor<8xi32>\n" SLICE("p",
                                                                            "m",
                                                                            "8",
                                                                            "2")
              GATHER("r", "p", "2", "8", ALL)),
      8, 1);
  check(MAIN("8", TABLE("[0, 2, 4, 6]") SLICE("p", "a", "8", "2")
                      GATHER("r", "p", "2", "8", ALL)),
        8, 1);
  // What is alike in columns is not alike in rows.
  check(
      MAIN("8", TABLE("[0, 4, 0, 4]") REDUCE("s", "a", "8", "add", COLUMNS)
                    SLICE("p", "s", "8", "4") GATHER("r", "p", "4", "8", ROWS)),
      8, 2);
}

static void exchanges(void** state) {
  (void)state;
#define AS(to, of, in, out)                                                   \
  "%" to " = stablehlo.reshape %" of " : (tensor<" in "xi32>) -> tensor<" out \
  "xi32>\n"
  check(MAIN("8",
             AS("b", "a", "8", "2x4") EXCHANGE("c", "b", "2x4", "1x8", "0", "1")
                 EXCHANGE("d", "c", "1x8", "2x4", "1", "0")
                     AS("r", "d", "2x4", "8")),
        8, 0);
  check(MAIN("8",
             AS("b", "a", "8", "2x4") EXCHANGE("c", "b", "2x4", "2x4", "1", "1")
                 EXCHANGE("d", "c", "2x4", "1x8", "0", "1")
                     AS("r", "d", "1x8", "8")),
        8, 2);
#undef AS
  check(MAIN("8", "%r = \"stablehlo.collective_permute\"(%a) <{" CHANNEL
                  ", source_target_pairs = dense<[[0, 0], [1, 1], [2, 2], [3, "
                  "3]]> : tensor<4x2xi64>}> : (tensor<8xi32>) -> "
                  "tensor<8xi32>\n"),
        8, 0);
  // Process 3 gets zeros.
  check(MAIN("8", "%r = \"stablehlo.collective_permute\"(%a) <{" CHANNEL
                  ", source_target_pairs = dense<[[0, 0], [1, 1], [2, 2]]> : "
                  "tensor<3x2xi64>}> : (tensor<8xi32>) -> tensor<8xi32>\n"),
        8, 1);
}

static void sums(void** state) {
  (void)state;
#define TWICE "%b = stablehlo.negate %a : tensor<8xi32>\n"
#define JOIN(op) "%r = stablehlo." op " %s, %t : tensor<8xi32>\n"
  check(MAIN("8", TWICE REDUCE("s", "a", "8", "add", ALL)
                      REDUCE("t", "b", "8", "add", ALL) JOIN("add")),
        8, 1);
  check(MAIN("8", TWICE REDUCE("s", "a", "8", "maximum", ROWS)
                      REDUCE("t", "b", "8", "maximum", ROWS) JOIN("maximum")),
        8, 1);
  check(MAIN("8", TWICE REDUCE("s", "a", "8", "add", ALL)
                      REDUCE("t", "b", "8", "add", ALL) JOIN("multiply")),
        8, 2);
  check(MAIN("8", TWICE REDUCE("s", "a", "8", "add", ROWS)
                      REDUCE("t", "b", "8", "add", COLUMNS) JOIN("add")),
        8, 2);
#undef TWICE
#undef JOIN
  // Numbers that all have: as many times, or themselves.
  check(MAIN("8", "%c = stablehlo.iota dim = 0 : tensor<8xi32>\n" REDUCE(
                      "s", "c", "8", "add", ALL) "%r = stablehlo.add %s, %a : "
                                                 "tensor<8xi32>\n"),
        8, 0);
  check(MAIN("8", REDUCE("s", "a", "8", "add", ALL)
                      REDUCE("r", "s", "8", "maximum", ROWS)),
        8, 1);
  check(MAIN("8", REDUCE("s", "a", "8", "add", ROWS)
                      REDUCE("r", "s", "8", "add", COLUMNS)),
        8, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(own_parts),     cmocka_unit_test(other_reads),
      cmocka_unit_test(back_together), cmocka_unit_test(exchanges),
      cmocka_unit_test(sums),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

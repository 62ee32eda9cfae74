// SPDX-License-Identifier: Apache-2.0
// Collectives: their text, what is refused, who is in a group, and the evaluator of
// all processes.
#include "ir/collective.h"

#include "ir/serialize.h"
#include "world_run.h"

#define CHANNEL \
  "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, "
#define REGION(op, type)                            \
  "({\n^bb0(%x: tensor<" type ">, %y: tensor<" type \
  ">):\n"                                           \
  "%s = stablehlo." op " %x, %y : tensor<" type     \
  ">\n"                                             \
  "stablehlo.return %s : tensor<" type ">\n})"

// --- Evaluation ---

#define ONE(in_type, out_type, op, attrs, region)                             \
  "func.func @main(%a: tensor<" in_type ">) -> tensor<" out_type              \
  "> {\n"                                                                     \
  "%r = \"stablehlo." op "\"(%a) <{" attrs "}> " region " : (tensor<" in_type \
  ">) -> tensor<" out_type ">\nreturn %r : tensor<" out_type ">\n}"

static const int32_t two_each[] = {1, 2, 10, 20, 100, 200, 1000, 2000};

static void reduces(void** state) {
  (void)state;
  assert_i32(WORLD(1, 4,
                   ONE("2xi32", "2xi32", "all_reduce",
                       CHANNEL "replica_groups = dense<[[0, 1, 2, 3]]> : "
                               "tensor<1x4xi64>, use_global_device_ids",
                       REGION("add", "i32"))),
             4, 2, 2, two_each, 1111, 2222, 1111, 2222, 1111, 2222, 1111, 2222);
  // Two groups, and a body that is no row of the table's: a - b.
  assert_i32(WORLD(1, 4,
                   ONE("2xi32", "2xi32", "all_reduce",
                       CHANNEL "replica_groups = dense<[[0, 2], [3, 1]]> : "
                               "tensor<2x2xi64>, use_global_device_ids",
                       REGION("subtract", "i32"))),
             4, 2, 2, two_each, -99, -198, 990, 1980, -99, -198, 990, 1980);
  // Part i for the i-th member.
  assert_i32(WORLD(1, 4,
                   ONE("2xi32", "1xi32", "reduce_scatter",
                       CHANNEL "replica_groups = dense<[[0, 2], [3, 1]]> : "
                               "tensor<2x2xi64>, scatter_dimension = 0 : i64, "
                               "use_global_device_ids",
                       REGION("maximum", "i32"))),
             4, 2, 1, two_each, 100, 2000, 200, 1000);
}

// The four ways to read rows, by who is together: 2 replicas of 2 partitions.
static void reads_groups(void** state) {
  (void)state;
  static const int32_t in[] = {1, 10, 100, 1000};
#define SUM(channel, groups, global)                         \
  WORLD(2, 2,                                                \
        ONE("1xi32", "1xi32", "all_reduce",                  \
            channel "replica_groups = dense<" groups global, \
            REGION("add", "i32")))
  // Replicas of each partition.
  assert_i32(SUM("", "[[0, 1]]> : tensor<1x2xi64>", ""), 4, 1, 1, in, 101, 1010,
             101, 1010);
  // All partitions of both.
  assert_i32(SUM(CHANNEL, "[[0, 1]]> : tensor<1x2xi64>", ""), 4, 1, 1, in, 1111,
             1111, 1111, 1111);
  assert_i32(SUM(CHANNEL, "[[0], [1]]> : tensor<2x1xi64>", ""), 4, 1, 1, in, 11,
             11, 1100, 1100);
  // Processes.
  assert_i32(SUM(CHANNEL, "[[0, 3], [1, 2]]> : tensor<2x2xi64>",
                 ", use_global_device_ids"),
             4, 1, 1, in, 1001, 110, 110, 1001);
  // None written: all.
  assert_i32(SUM(CHANNEL, "> : tensor<0x0xi64>", ", use_global_device_ids"), 4,
             1, 1, in, 1111, 1111, 1111, 1111);
#undef SUM
#define SWAP(channel)                                                          \
  WORLD(2, 2,                                                                  \
        ONE("1xi32", "1xi32", "collective_permute",                            \
            channel "source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>", \
            ""))
  assert_i32(SWAP(""), 4, 1, 1, in, 0, 0, 1, 10);        // replicas
  assert_i32(SWAP(CHANNEL), 4, 1, 1, in, 0, 1, 0, 100);  // partitions
#undef SWAP
  static const int32_t zero[4];
  assert_i32(WORLD(2, 2,
                   "func.func @main(%a: tensor<1xi32>) -> tensor<ui32> {\n"
                   "%p = stablehlo.partition_id : tensor<ui32>\n"
                   "%q = stablehlo.replica_id : tensor<ui32>\n"
                   "%c = stablehlo.constant dense<10> : tensor<ui32>\n"
                   "%m = stablehlo.multiply %q, %c : tensor<ui32>\n"
                   "%r = stablehlo.add %m, %p : tensor<ui32>\n"
                   "return %r : tensor<ui32>\n}"),
             4, 1, 1, zero, 0, 1, 10, 11);
}

static void moves(void** state) {
  (void)state;
  static const int32_t in[] = {0, 1, 2, 3, 10, 11, 12, 13};
#define GROUPS "replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>"
  assert_i32(WORLD(1, 2,
                   ONE("2x2xi32", "2x4xi32", "all_gather",
                       "all_gather_dim = 1 : i64, " CHANNEL GROUPS
                       ", use_global_device_ids",
                       "")),
             2, 4, 8, in, 10, 11, 0, 1, 12, 13, 2, 3, 10, 11, 0, 1, 12, 13, 2,
             3);
  assert_i32(WORLD(1, 2,
                   ONE("2x2xi32", "4x1xi32", "all_to_all",
                       CHANNEL "concat_dimension = 0 : i64, " GROUPS
                               ", split_count = 2 : i64, split_dimension = 1 "
                               ": i64",
                       "")),
             2, 4, 4, in, 11, 13, 1, 3, 10, 12, 0, 2);
  assert_i32(WORLD(1, 2,
                   ONE("2x2xi32", "2x2xi32", "collective_broadcast",
                       CHANNEL GROUPS, "")),
             2, 4, 4, in, 10, 11, 12, 13, 10, 11, 12, 13);
#undef GROUPS
}

// Narrow floats are combined in f32 and rounded once: 1 + 2^-8 + 2^-8 is 1 + 2^-7 in
// bf16, of which 1 + 2^-8 alone would be 1.
static void rounds_once(void** state) {
  (void)state;
  run_t* run = calloc(1, sizeof(*run));
  static const uint16_t in[] = {0x3F80, 0x3B80, 0x3B80};
  run->ranks = 3;
  for (int i = 0; i < 3; ++i)
    memcpy(run->in[i], &in[i], 2);
  run_world(WORLD(1, 3,
                  ONE("1xbf16", "1xbf16", "all_reduce",
                      CHANNEL "replica_groups = dense<[[0, 1, 2]]> : "
                              "tensor<1x3xi64>, use_global_device_ids",
                      REGION("add", "bf16"))),
            run);
  for (int i = 0; i < 3; ++i) {
    uint16_t out;
    memcpy(&out, run->out[i], 2);
    assert_int_equal(out, 0x3F81);
  }
  free(run);
}

// One that ends, or fails, while others wait for it.
static void ends_together(void** state) {
  (void)state;
  pestle_context_t* context = text_context();
  pestle_module_t* module = text_parse(
      context,
      WORLD(1, 2,
            "func.func @main(%a: tensor<i1>) -> tensor<1xi32> {\n"
            "%z = stablehlo.constant dense<1> : tensor<1xi32>\n"
            "%r = \"stablehlo.if\"(%a) ({\n"
            "%g = \"stablehlo.all_reduce\"(%z) <{" CHANNEL
            "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, "
            "use_global_device_ids}> " REGION(
                "add", "i32") " : "
                              "(tensor<1xi32>) -> tensor<1xi32>\n"
                              "stablehlo.return %g : tensor<1xi32>\n}, {\n"
                              "stablehlo.return %z : tensor<1xi32>\n}) : "
                              "(tensor<i1>) -> "
                              "tensor<1xi32>\nreturn %r : tensor<1xi32>\n}"));
  unsigned char yes = 1, no = 0;
  int32_t out[2];
  const void* a[] = {&yes};
  const void* b[] = {&no};
  void* r[] = {&out[0]};
  void* s[] = {&out[1]};
  const void* const* arguments[] = {a, b};
  void* const* results[] = {r, s};
  assert_error(pestle_ref_evaluate_world(pestle_allocator_system(),
                                         pestle_module_entry(module), arguments,
                                         results),
               UNAVAILABLE, "process 1, which it waits for, has ended");
  pestle_module_release(module);
  pestle_context_release(context);
}

// --- Forms ---

static const char many[] = WORLD(
    1, 4,
    "  func.func public @main(%arg0: tensor<4x8xf32>) -> tensor<4x8xf32> {\n"
    "    %0 = \"stablehlo.all_reduce\"(%arg0) <{replica_groups = dense<[[0, "
    "1], "
    "[2, 3]]> : tensor<2x2xi64>, channel_handle = "
    "#stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids"
    "}> ({\n"
    "    ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
    "      %9 = stablehlo.add %a, %b : tensor<f32>\n"
    "      stablehlo.return %9 : tensor<f32>\n"
    "    }) : (tensor<4x8xf32>) -> tensor<4x8xf32>\n"
    "    %1 = \"stablehlo.all_gather\"(%0) <{all_gather_dim = 1 : i64, "
    "replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, "
    "channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, "
    "use_global_device_ids}> : (tensor<4x8xf32>) -> tensor<4x16xf32>\n"
    "    %2 = \"stablehlo.all_to_all\"(%1) <{split_dimension = 1 : i64, "
    "concat_dimension = 0 : i64, split_count = 4 : i64, replica_groups = "
    "dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, channel_handle = "
    "#stablehlo.channel_handle<handle = 3, type = 1>}> : (tensor<4x16xf32>) -> "
    "tensor<16x4xf32>\n"
    "    %3 = \"stablehlo.collective_permute\"(%2) <{source_target_pairs = "
    "dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>, channel_handle = "
    "#stablehlo.channel_handle<handle = 4, type = 1>}> : (tensor<16x4xf32>) -> "
    "tensor<16x4xf32>\n"
    "    %4 = \"stablehlo.collective_broadcast\"(%3) <{replica_groups = "
    "dense<[[2, 1]]> : tensor<1x2xi64>, channel_handle = "
    "#stablehlo.channel_handle<handle = 5, type = 1>}> : (tensor<16x4xf32>) -> "
    "tensor<16x4xf32>\n"
    "    %5 = \"stablehlo.reduce_scatter\"(%4) <{scatter_dimension = 0 : i64, "
    "replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, channel_handle "
    "= #stablehlo.channel_handle<handle = 6, type = 1>, use_global_device_ids "
    "= true}> ({\n"
    "    ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
    "      %9 = stablehlo.maximum %a, %b : tensor<f32>\n"
    "      stablehlo.return %9 : tensor<f32>\n"
    "    }) : (tensor<16x4xf32>) -> tensor<4x4xf32>\n"
    "    %6 = stablehlo.concatenate %5, %5, dim = 1 : (tensor<4x4xf32>, "
    "tensor<4x4xf32>) -> tensor<4x8xf32>\n"
    "    return %6 : tensor<4x8xf32>\n"
    "  }");

static void survives(pestle_context_t* context, pestle_module_t* module,
                     unsigned flags) {
  char* text = text_print(module, flags);
  pestle_module_t* again = text_parse(context, text);
  char* second = text_print(again, flags);
  assert_string_equal(text, second);
  uint64_t a[2], b[2];
  assert_ok(pestle_module_signature(module, a));
  assert_ok(pestle_module_signature(again, b));
  assert_memory_equal(a, b, sizeof(a));
  pestle_module_release(again);
  free(second);
  free(text);
}

static void has_forms(void** state) {
  (void)state;
  pestle_context_t* context = text_context();
  pestle_module_t *module = text_parse(context, many), *loaded;
  survives(context, module, 0);
  survives(context, module, PESTLE_PRINT_GENERIC);
  void* data;
  size_t size;
  assert_ok(pestle_module_serialize(module, &data, &size));
  assert_ok(pestle_module_deserialize(context, data, size, &loaded));
  char* text = text_print(module, 0);
  char* other = text_print(loaded, 0);
  assert_string_equal(text, other);
  assert_non_null(strstr(text, "use_global_device_ids"));
  assert_non_null(
      strstr(text, "#stablehlo.channel_handle<handle = 6, type = 1>"));
  free(other);
  free(text);
  pestle_context_free(context, data, size);
  pestle_module_release(loaded);
  pestle_module_release(module);
  pestle_context_release(context);
}

// The name of a result is read back, in any op that has its form here.
static void keeps_names(void** state) {
  (void)state;
  pestle_context_t* context = text_context();
  pestle_module_t* module = text_parse(
      context,
      "module attributes {mhlo.num_partitions = 2 : i32} {\n"
      "func.func @main(%a: tensor<2xi32>, %b: tensor<2xf32>) -> "
      "(tensor<2xi32>, tensor<2xi32>, tensor<2xf32>, tensor<4xi32>) {\n"
      "%moved = \"stablehlo.collective_permute\"(%a) <{" CHANNEL
      "source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : "
      "(tensor<2xi32>) -> tensor<2xi32>\n"
      "%sums:2 = \"stablehlo.all_reduce\"(%a, %a) <{" CHANNEL
      "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, "
      "use_global_device_ids}> " REGION(
          "add",
          "i32") " : (tensor<2xi32>, tensor<2xi32>) -> (tensor<2xi32>, "
                 "tensor<2xi32>)\n"
                 "%tangent = chlo.tan %b : tensor<2xf32> -> tensor<2xf32>\n"
                 "%all = \"stablehlo.all_gather\"(%moved) <{all_gather_dim = 0 "
                 ": i64, " CHANNEL
                 "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, "
                 "use_global_device_ids}> : (tensor<2xi32>) -> tensor<4xi32>\n"
                 "return %sums#0, %sums#1, %tangent, %all : tensor<2xi32>, "
                 "tensor<2xi32>, tensor<2xf32>, tensor<4xi32>\n}\n}");
  char* text = text_print(module, 0);
  const char* names[] = {"%moved = ", "%sums:2 = ", "%tangent = ", "%all = "};
  for (size_t i = 0; i < sizeof(names) / sizeof(*names); ++i) {
    if (!strstr(text, names[i])) fail_msg("no %s in\n%s", names[i], text);
  }
  free(text);
  pestle_module_release(module);
  pestle_context_release(context);
}

// Two replicas are not two partitions.
static void signs_worlds(void** state) {
  (void)state;
#define EMPTY                                                           \
  "func.func @main(%a: tensor<1xi32>) -> tensor<1xi32> {\nreturn %a : " \
  "tensor<1xi32>\n}"
  static const char* const texts[] = {WORLD(1, 2, EMPTY), WORLD(2, 1, EMPTY),
                                      WORLD(1, 1, EMPTY), EMPTY};
  uint64_t all[4][2];
  pestle_context_t* context = text_context();
  for (int i = 0; i < 4; ++i) {
    pestle_module_t* module = text_parse(context, texts[i]);
    assert_ok(pestle_module_signature(module, all[i]));
    pestle_module_release(module);
  }
  assert_memory_not_equal(all[0], all[1], 16);
  assert_memory_not_equal(all[0], all[2], 16);
  assert_memory_not_equal(all[1], all[2], 16);
  assert_memory_equal(all[2], all[3], 16);
  pestle_context_release(context);
#undef EMPTY
}

static void refuses(void** state) {
  (void)state;
#define GATHER(world, groups, out)                                      \
  WORLD(1, world,                                                       \
        ONE("2xi32", out, "all_gather",                                 \
            "all_gather_dim = 0 : i64, " CHANNEL                        \
            "replica_groups = dense<" groups ", use_global_device_ids", \
            ""))
  assert_refuses(GATHER(2, "[[0, 2]]> : tensor<1x2xi64>", "4xi32"), UNSUPPORTED,
                 "its groups name device 2, and the module runs on 2 of them");
  assert_refuses(GATHER(3, "[[0, 1]]> : tensor<1x2xi64>", "4xi32"), MALFORMED,
                 "process 2 of 3 is in none of its groups");
  assert_refuses(GATHER(2, "[[0, 0]]> : tensor<1x2xi64>", "4xi32"), MALFORMED,
                 "process 0 is in two places of its groups");
  assert_refuses(GATHER(2, "[[0, 1]]> : tensor<1x2xi64>", "6xi32"), MALFORMED,
                 "group 0 has 2 members, and the op's types are for 3");
  assert_refuses(GATHER(2, "[[0, 1]]> : tensor<1x2xi64>", "5xi32"), MALFORMED,
                 "is no number of parts");
  assert_refuses(
      WORLD(1, 2,
            ONE("1xi32", "1xi32", "collective_permute",
                CHANNEL "source_target_pairs = dense<[[0, 1], [1, 1]]> : "
                        "tensor<2x2xi64>",
                "")),
      MALFORMED, "process 1 sends or receives twice");
  assert_refuses(WORLD(1, 1,
                       ONE("2xi32", "4xi32", "all_gather",
                           "all_gather_dim = 0 : i64, replica_groups = "
                           "dense<[[0, 1]]> : tensor<1x2xi64>",
                           "")),
                 UNSUPPORTED, "export it for one device");
  // Groups as the axes of a mesh; what they are is in tests/stablehlo/data/mesh_axes.mlir.
#define AXES(mesh, axes)                                                       \
  WORLD(1, 4,                                                                  \
        "sdy.mesh @m = <[\"x\"=2, \"y\"=2]>\n" ONE(                            \
            "2xi32", "4xi32", "all_gather",                                    \
            "all_gather_dim = 0 : i64, " CHANNEL                               \
            "replica_groups = #stablehlo.replica_group_mesh_axes<mesh = " mesh \
            ", axes = [" axes "]>, use_global_device_ids",                     \
            ""))
#define AXIS(rest) "#stablehlo.axis_ref<" rest ">"
  assert_refuses(AXES("@n", AXIS("name = \"x\"")), MALFORMED,
                 "the module has no mesh 'n'");
  assert_refuses(AXES("@m", AXIS("name = \"z\"")), MALFORMED,
                 "name the axis 'z', which their mesh has not");
  assert_refuses(AXES("@m", AXIS("name = \"x\"") ", " AXIS("name = \"x\"")),
                 MALFORMED, "axes that overlap");
  assert_refuses(AXES("@m", AXIS("name = \"x\", sub_axis_info = (3)2")),
                 MALFORMED, "a part of an axis that does not divide it");
  assert_refuses(AXES("@m", AXIS("size = 2")), MALFORMED,
                 "an axis without a name");
  assert_refuses(AXES("#stablehlo.mesh<axes=[<name = \"x\", size = 0>]>",
                      AXIS("name = \"x\"")),
                 MALFORMED, "an axis of a mesh that is no name and size");
  assert_refuses(
      AXES("#stablehlo.mesh<axes=[<name = \"x\", size = 2000>, <name "
           "= \"y\", size = 2000>]>",
           AXIS("name = \"x\"")),
      MALFORMED, "a mesh of more than 1,048,576 devices");
  assert_refuses(AXES("#stablehlo.mesh<axes=[<name = \"x\", size = 2>, <name = "
                      "\"y\", size = 2>], device_ids=dense<[0, 1, 1, 3]> : "
                      "tensor<4xi64>>",
                      AXIS("name = \"x\"")),
                 MALFORMED, "device_ids that are not each of its devices once");
  assert_refuses(AXES("#stablehlo.mesh<axes=[<name = \"x\", size = 2>]>",
                      AXIS("name = \"x\"")),
                 MALFORMED, "process 2 of 4 is in none of its groups");
#undef AXES
#undef AXIS
#define BY(handle)                                                      \
  WORLD(1, 4,                                                           \
        ONE("1xi32", "1xi32", "all_reduce", "channel_handle = " handle, \
            REGION("add", "i32")))
  static const char* const channels[] = {BY("\"one\""), BY("[1]"),
                                         BY("1.0 : f32")};
  for (size_t i = 0; i < 3; ++i) {
    assert_refuses(channels[i], MALFORMED,
                   "'channel_handle' must be a handle of a channel");
  }
#undef BY
  // Alone nobody is there to meet.
  pestle_context_t* context = text_context();
  pestle_module_t* module =
      text_parse(context, GATHER(2, "[[0, 1]]> : tensor<1x2xi64>", "4xi32"));
  int32_t in[2] = {0}, out[4];
  const void* arguments[] = {in};
  void* results[] = {out};
  assert_error(pestle_ref_evaluate_function(pestle_allocator_system(),
                                            pestle_module_entry(module),
                                            arguments, results),
               UNSUPPORTED, "it is of several processes");
  pestle_module_release(module);
  pestle_context_release(context);
#undef GATHER
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reduces),       cmocka_unit_test(reads_groups),
      cmocka_unit_test(moves),         cmocka_unit_test(rounds_once),
      cmocka_unit_test(ends_together), cmocka_unit_test(has_forms),
      cmocka_unit_test(signs_worlds),  cmocka_unit_test(refuses),
      cmocka_unit_test(keeps_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

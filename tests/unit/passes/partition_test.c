// SPDX-License-Identifier: Apache-2.0
// Divided modules, run by an evaluator for each process, give what the whole gives on
// one; what is wanted by few bytes is made with few.
#include "partition_test.h"

#define HEAD(n, mesh)                               \
  "module @m attributes {mhlo.num_partitions = " #n \
  " : i32} {\n"                                     \
  "sdy.mesh @m = <" mesh ">\n"
#define IN(name, type, s) \
  "%" name ": tensor<" type "> {sdy.sharding = #sdy.sharding<@m, " s ">}"
#define OUT(type, s) \
  "(tensor<" type "> {sdy.sharding = #sdy.sharding<@m, " s ">})"
#define MESH22 HEAD(4, "[\"d\"=2, \"t\"=2]")

// Rows of x by d, columns of w by t: nothing has to move.
static void dot_in_parts(void** state) {
  (void)state;
  counts_t c = check(MESH22
      "func.func @main(" IN("x", "8x4xf32", "[{\"d\"}, {}]") ", "
      IN("w", "4x6xf32", "[{}, {\"t\"}]") ") -> " OUT("8x6xf32", "[{\"d\"}, {\"t\"}]")
      " {\n%r = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : "
      "(tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>\n"
      "return %r : tensor<8x6xf32>\n}\n}\n", 0);
  assert_int_equal(c.all, 0);
}

// Megatron's MLP: one all_reduce, of the second product.
static void mlp(void** state) {
  (void)state;
  counts_t c = check(MESH22
      "func.func @main(" IN("x", "8x4xf32", "[{\"d\"}, {}]") ", "
      IN("u", "4x16xf32", "[{}, {\"t\"}]") ", " IN("v", "16x4xf32", "[{\"t\"}, {}]")
      ") -> " OUT("8x4xf32", "[{\"d\"}, {}]") " {\n"
      "%h = stablehlo.dot_general %x, %u, contracting_dims = [1] x [0] : "
      "(tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>\n"
      "%z = stablehlo.constant dense<0.0> : tensor<8x16xf32>\n"
      "%a = stablehlo.maximum %h, %z : tensor<8x16xf32>\n"
      "%r = stablehlo.dot_general %a, %v, contracting_dims = [1] x [0] : "
      "(tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>\n"
      "return %r : tensor<8x4xf32>\n}\n}\n", 0);
  assert_int_equal(c.of[PESTLE_OP_ALL_REDUCE], 1);
  assert_int_equal(c.all, 1);
}

// A constraint in the middle is where the value lies, and is seen by what follows.
static void constraints(void** state) {
  (void)state;
  static const char* const forms[] = {
      "%h = sdy.sharding_constraint %s <@m, [{\"t\"}, {}]> : tensor<8x4xf32>\n",
      "%h = \"sdy.sharding_constraint\"(%s) <{sharding = #sdy.sharding<@m, "
      "[{\"t\"}, {}]>}> : (tensor<8x4xf32>) -> tensor<8x4xf32>\n"};
  for (int i = 0; i < 2; ++i) {
    char text[2048];
    snprintf(text, sizeof(text),
             MESH22
             "func.func @main(%%x: tensor<8x4xf32>) -> "
             "tensor<8x4xf32> {\n"
             "%%s = stablehlo.negate %%x : tensor<8x4xf32>\n"
             "%s"
             "%%r = stablehlo.exponential %%h : tensor<8x4xf32>\n"
             "return %%r : tensor<8x4xf32>\n}\n}\n",
             forms[i]);
    counts_t c = check(text, 0);
    assert_int_equal(c.all, 0);
    assert_int_equal(c.of[PESTLE_OP_CUSTOM], 0);
  }
}

// One within a reduction's body is of no tensor.
static void inner_constraints(void** state) {
  (void)state;
  (void)check(
      MESH22
      "func.func @main(" IN("x", "8x4xi32", "[{\"d\"}, {}]") ") -> "
      "tensor<4xi32> {\n%z = stablehlo.constant dense<0> : tensor<i32>\n"
      "%r = stablehlo.reduce(%x init: %z) across dimensions = [0] : "
      "(tensor<8x4xi32>, tensor<i32>) -> tensor<4xi32>\n"
      "reducer(%a: tensor<i32>, %b: tensor<i32>) {\n"
      "%c = stablehlo.add %a, %b : tensor<i32>\n"
      "%e = sdy.sharding_constraint %c <@m, []> : tensor<i32>\n"
      "stablehlo.return %e : tensor<i32>\n}\n"
      "return %r : tensor<4xi32>\n}\n}\n",
      0);
}

// What XLA's older partitioner writes.
static void tiles(void** state) {
  (void)state;
  static const struct {
    const char *in, *out;
    int collectives;
  } rows[] = {
      {"{devices=[4,1]<=[4]}", "{devices=[4,1]<=[4]}", 0},
      {"{devices=[2,1,2]<=[4] last_tile_dim_replicate}",
       "{devices=[2,2]<=[2,2]T(1,0)}", -1},
      {"{devices=[2,2]<=[2,2]T(1,0)}", "{replicated}", -1},
      {"{devices=[1,4]<=[2,2]T(1,0)}", "{maximal device=0}", -1},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
    char text[1024];
    snprintf(text, sizeof(text),
             "module @m attributes {mhlo.num_partitions = 4 : i32} {\n"
             "func.func @main(%%x: tensor<8x4xf32> {mhlo.sharding = \"%s\"}) "
             "-> (tensor<8x4xf32> {mhlo.sharding = \"%s\"}) {\n"
             "%%r = stablehlo.negate %%x : tensor<8x4xf32>\n"
             "return %%r : tensor<8x4xf32>\n}\n}\n",
             rows[i].in, rows[i].out);
    counts_t c = check(text, 0);
    if (rows[i].collectives >= 0) assert_int_equal(c.all, rows[i].collectives);
  }
  pestle_context_t* context = test_context();
  pestle_module_t* module = NULL;
  static const char bad[] =
      "module @m attributes {mhlo.num_partitions = 4 : i32} {\n"
      "func.func @main(%x: tensor<8xf32> {mhlo.sharding = "
      "\"{devices=[4]3,1,0,2}\"}) -> tensor<8xf32> {\n"
      "return %x : tensor<8xf32>\n}\n}\n";
  pestle_status_t status =
      pestle_module_parse(context, bad, strlen(bad), "test", &module);
  assert_int_equal(pestle_status_code(status), PESTLE_STATUS_UNSUPPORTED);
  assert_non_null(strstr(pestle_status_message(status), "devices=[4]3,1,0,2"));
  pestle_status_release(status);
  pestle_context_release(context);
}

// A mesh or a sharding that does not fit is the module's fault, not one of a pass.
static void misfits(void** state) {
  (void)state;
  static const struct {
    const char *mesh, *sharding, *says;
  } rows[] = {
      {"@m = <[\"x\"=4]>", "<@m, [{\"x\"}, {}]>", NULL},
      {"@\"a>, b\" = <[\"x\"=4]>", "<@\"a>, b\", [{\"x\"}, {}]>", NULL},
      {"@m = <[\"x\"=4]>", "<@n, [{\"x\"}, {}]>",
       "the module has no mesh 'n': sdy.mesh declares one"},
      {"@m = <[\"x\"=4]>", "<@m, [{\"x\"}]>",
       "a sharding of 1 dimensions of a tensor that has 2"},
      {"@m = <[\"x\"=8]>", "<@m, [{\"x\"}, {}]>",
       "a mesh of 8 devices in a module of 4 partitions"},
      {"@m = <[\"x\"=4], device_ids=[0, 1, 2, 2]>", "<@m, [{\"x\"}, {}]>",
       "the devices of a mesh, [0, 1, 2, 2], are not each of 4 numbers once"},
      {"@m = <[\"x\"=2, \"x\"=2]>", "<@m, [{\"x\"}, {}]>",
       "is none of axes of a mesh"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
    char text[1024];
    snprintf(text, sizeof(text),
             "module @m attributes {mhlo.num_partitions = 4 : i32} {\n"
             "sdy.mesh %s\n"
             "func.func @main(%%x: tensor<8x4xf32> {sdy.sharding = "
             "#sdy.sharding%s}) -> tensor<8x4xf32> {\n"
             "%%r = stablehlo.negate %%x : tensor<8x4xf32>\n"
             "return %%r : tensor<8x4xf32>\n}\n}\n",
             rows[i].mesh, rows[i].sharding);
    if (!rows[i].says) {
      (void)check(text, 0);
      continue;
    }
    pestle_context_t* context = test_context();
    pestle_module_t* module = test_parse(context, text);
    pestle_compile_options_t options = test_options("partition");
    pestle_target_caps_t caps = {.struct_size = sizeof(caps)};
    pestle_status_t status =
        pestle_passes_run(context, &caps, &options, module, NULL);
    bool unsupported = i + 1 == sizeof(rows) / sizeof(*rows);
    assert_int_equal(pestle_status_code(status), unsupported
                                                     ? PESTLE_STATUS_UNSUPPORTED
                                                     : PESTLE_STATUS_MALFORMED);
    assert_non_null(strstr(pestle_status_message(status), rows[i].says));
    pestle_status_release(status);
    pestle_module_release(module);
    pestle_context_release(context);
  }
}

// Ops that are divided along some of their dims: results equal, and nothing moves.
static void composites(void** state) {
  (void)state;
  static const struct {
    const char *arguments, *type, *sharding, *op;
  } rows[] = {
      {IN("x", "4x6x8xf32", "[{\"d\"}, {\"t\"}, {}]"), "4x6x8xf32",
       "[{\"d\"}, {\"t\"}, {}]",
       "\"pestle.softmax\"(%x) <{dimensions = array<i64: 2>}> : "
       "(tensor<4x6x8xf32>) -> tensor<4x6x8xf32>"},
      {IN("x", "4x6xf32", "[{\"d\", \"t\"}, {}]") ", %s: tensor<6xf32>",
       "4x6xf32", "[{\"d\", \"t\"}, {}]",
       "\"pestle.layer_norm\"(%x, %s, %s) <{dimensions = array<i64: 1>, "
       "epsilon = 1.0e-05 : f64}> : (tensor<4x6xf32>, tensor<6xf32>, "
       "tensor<6xf32>) -> tensor<4x6xf32>"},
      // Batches by d, heads by t, with a mask that all heads share.
      {IN("q", "2x4x5x8xf32", "[{\"d\"}, {\"t\"}, {}, {}]") ", " IN(
           "k", "2x4x7x8xf32",
           "[{\"d\"}, {\"t\"}, {}, {}]") ", " IN("v", "2x4x7x6xf32",
                                                 "[{\"d\"}, {\"t\"}, {}, "
                                                 "{}]") ", " IN("m",
                                                                "2x1x5x7xi1",
                                                                "[{\"d\"}, "
                                                                "{}, {}, "
                                                                "{}]"),
       "2x4x5x6xf32", "[{\"d\"}, {\"t\"}, {}, {}]",
       "\"pestle.attention\"(%q, %k, %v, %m) <{scale = 0.5 : f64, masked = "
       "-1.0e9 : f64}> : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>, "
       "tensor<2x4x7x6xf32>, tensor<2x1x5x7xi1>) -> tensor<2x4x5x6xf32>"},
      // Images by d, filters by t.
      {IN("x", "2x5x5x4xf32", "[{\"d\"}, {}, {}, {}]") ", " IN(
           "w", "3x3x4x6xf32", "[{}, {}, {}, {\"t\"}]"),
       "2x5x5x6xf32", "[{\"d\"}, {}, {}, {\"t\"}]",
       "stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, "
       "o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} "
       "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
       "(tensor<2x5x5x4xf32>, tensor<3x3x4x6xf32>) -> tensor<2x5x5x6xf32>"},
      // A filter for each channel, channels by t.
      {IN("x", "2x5x5x4xf32", "[{}, {}, {}, {\"t\"}]") ", " IN(
           "w", "3x3x1x8xf32", "[{}, {}, {}, {\"t\"}]"),
       "2x5x5x8xf32", "[{}, {}, {}, {\"t\"}]",
       "stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, "
       "o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} "
       "{batch_group_count = 1 : i64, feature_group_count = 4 : i64} : "
       "(tensor<2x5x5x4xf32>, tensor<3x3x1x8xf32>) -> tensor<2x5x5x8xf32>"},
      // Pools of images by d, channels by t, and the gradient of one.
      {IN("x", "2x4x4x4xf32", "[{\"d\"}, {}, {}, {\"t\"}]") ", " IN(
           "g", "2x2x2x4xf32", "[{\"d\"}, {}, {}, {\"t\"}]"),
       "2x4x4x4xf32", "[{\"d\"}, {}, {}, {\"t\"}]",
       "\"stablehlo.select_and_scatter\"(%x, %g, %z) <{window_dimensions = "
       "array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({\n"
       "^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
       "%c = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> "
       "tensor<i1>\nstablehlo.return %c : tensor<i1>\n}, {\n"
       "^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
       "%c = stablehlo.add %a, %b : tensor<f32>\n"
       "stablehlo.return %c : tensor<f32>\n}) : (tensor<2x4x4x4xf32>, "
       "tensor<2x2x2x4xf32>, tensor<f32>) -> tensor<2x4x4x4xf32>"},
      {IN("x", "4x6xf64", "[{\"d\"}, {}]"), "4x6xf64", "[{\"d\"}, {}]",
       "\"pestle.cumulative\"(%x) <{dimension = 1 : i64, combiner = \"ADD\"}> "
       ": (tensor<4x6xf64>) -> tensor<4x6xf64>"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
    char text[4096];
    snprintf(text, sizeof(text),
             MESH22
             "func.func @main(%s) -> (tensor<%s> {sdy.sharding = "
             "#sdy.sharding<@m, %s>}) {\n"
             "%%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
             "%%r = %s\nreturn %%r : "
             "tensor<%s>\n}\n}\n",
             rows[i].arguments, rows[i].type, rows[i].sharding, rows[i].op,
             rows[i].type);
    counts_t c = check(text, 0);
    if (c.all) fail_msg("row %zu has %d collectives", i, c.all);
  }
}

// Sums of one group are one meeting; under strict none is made of summands.
static void gradients(void** state) {
  (void)state;
  static const char text[] = MESH22
      "func.func @main(" IN("x", "8x4xf32", "[{\"d\"}, {}]") ", "
      IN("g", "8x6xf32", "[{\"d\"}, {}]") ", "
      IN("w", "4x6xf32", "[{}, {}]") ", " IN("b", "6xf32", "[{}]")
      ") -> (tensor<4x6xf32>, tensor<6xf32>) {\n"
      "%p = stablehlo.dot_general %x, %g, contracting_dims = [0] x [0] : "
      "(tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>\n"
      "%u = stablehlo.subtract %w, %p : tensor<4x6xf32>\n"
      "%z = stablehlo.constant dense<0.5> : tensor<f32>\n"
      "%q = stablehlo.reduce(%g init: %z) applies stablehlo.add across "
      "dimensions = [0] : (tensor<8x6xf32>, tensor<f32>) -> tensor<6xf32>\n"
      "%v = stablehlo.subtract %b, %q : tensor<6xf32>\n"
      "return %u, %v : tensor<4x6xf32>, tensor<6xf32>\n}\n}\n";
  counts_t c = check(text, 0);
  assert_int_equal(c.of[PESTLE_OP_ALL_REDUCE], 1);
  assert_int_equal(c.all, 1);
  pestle_context_t* context = test_context();
  pestle_module_t* module = test_parse(context, text);
  pestle_compile_options_t options = test_options("canonicalise,partition");
  options.numerics = PESTLE_NUMERICS_STRICT;
  test_run_with(module, &options);
  c = count_collectives(module);
  assert_int_equal(c.of[PESTLE_OP_ALL_REDUCE], 0);
  assert_int_equal(c.of[PESTLE_OP_REDUCE_SCATTER], 0);
  assert_true(c.of[PESTLE_OP_ALL_GATHER] > 0);
  pestle_module_release(module);
  pestle_context_release(context);
}

// A result that lies otherwise than the argument whose memory it was to take.
static void aliases(void** state) {
  (void)state;
  counts_t c = check(
      MESH22
      "func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, "
      "[{\"d\"}, {}]>, tf.aliasing_output = 0 : i32}) -> " OUT(
          "8x4xf32", "[{}, {\"t\"}]") " {\n"
      "%r = stablehlo.negate %x : tensor<8x4xf32>\n"
      "return %r : tensor<8x4xf32>\n}\n}\n",
      0);
  assert_true(c.all > 0);
}

// Rows of a norm's gradient: those of x stay, those of the scale are summed up once.
// Blocks of rows that end with a process' rows need no sum.
static void norm_gradients(void** state) {
  (void)state;
  static const struct {
    int blocks, collectives;
    const char* spec;
  } rows[] = {{1, 1, "[{}]"}, {2, 0, "[{?}, {}]"}, {4, 0, "[{?}, {}]"}};
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
    char text[2048], sums[32];
    int blocks = rows[i].blocks;
    snprintf(sums, sizeof(sums), "%dx6xf32", blocks);
    snprintf(
        text, sizeof(text),
        MESH22
        "func.func @main(" IN("%x", "4x3x6xf32", "[{\"d\"}, {}, {}]") ", "
        "%%s: tensor<6xf32>, " IN("%c", "4x3x6xf32", "[{\"d\"}, {}, {}]") ") -> "
        "(tensor<4x3x6xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}, "
        "{}]>}, tensor<%s> {sdy.sharding = #sdy.sharding<@m, [{%s}, {}]>}) {\n"
        "%%r:2 = \"pestle.norm_grad\"(%%x, %%s, %%c) {dimension = 2 : i64, "
        "epsilon = 1.0 : f64, blocks = %d : i64} : (tensor<4x3x6xf32>, "
        "tensor<6xf32>, tensor<4x3x6xf32>) -> (tensor<4x3x6xf32>, tensor<%s>)\n"
        "return %%r#0, %%r#1 : tensor<4x3x6xf32>, tensor<%s>\n}\n}\n",
        sums, blocks == 1 ? "" : "?", blocks, sums, sums);
    counts_t c = check(text, 0);
    assert_int_equal(c.of[PESTLE_OP_ALL_REDUCE], rows[i].collectives);
    assert_int_equal(c.all, rows[i].collectives);
  }
}

// Products with weights in blocks: columns stay apart, blocks are summed up.
static void block_dots(void** state) {
  (void)state;
  static const struct {
    const char *w, *s;
    int collectives;
  } rows[] = {{"[{\"t\"}, {}]", "[{\"t\"}, {}]", 0},
              {"[{}, {\"t\"}]", "[{}, {\"t\"}]", 1}};
  for (size_t i = 0; i < 2; ++i) {
    char text[2048];
    snprintf(text, sizeof(text),
             MESH22
             "func.func @main(" IN("%x", "8x64xf32", "[{\"d\"}, {}]") ", "
             "%%b: tensor<6x32xui8> {sdy.sharding = #sdy.sharding<@m, %s>}, %%s: "
             "tensor<6x4xf32> {sdy.sharding = #sdy.sharding<@m, %s>}) -> "
             "(tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, "
             "{%s}]>}) {\n%%r = \"pestle.block_dot\"(%%x, %%b, %%s) {bits = 4 : "
             "i64, block = 16 : i64} : (tensor<8x64xf32>, tensor<6x32xui8>, "
             "tensor<6x4xf32>) -> tensor<8x6xf32>\n"
             "return %%r : tensor<8x6xf32>\n}\n}\n",
             rows[i].w, rows[i].s, i ? "" : "\"t\"");
    counts_t c = check(text, 0);
    assert_int_equal(c.of[PESTLE_OP_ALL_REDUCE], rows[i].collectives);
    assert_int_equal(c.all, rows[i].collectives);
  }
}

// A recurrence over batches: its steps are on all processes, each of its own rows.
static void scans(void** state) {
  (void)state;
  counts_t c = check(MESH22
      "func.func @main(" IN("h", "8x4xf32", "[{\"d\"}, {}]") ", "
      IN("x", "5x8x4xf32", "[{}, {\"d\"}, {}]") ", %w: tensor<4x4xf32>) -> "
      OUT("5x8x4xf32", "[{}, {\"d\"}, {}]") " {\n"
      "%r:2 = \"pestle.scan\"(%h, %x, %w) <{length = 5 : i64, carry_count = 1 : "
      "i64, xs_count = 1 : i64, reverse = false}> ({\n^bb0(%c: tensor<8x4xf32>, "
      "%e: tensor<8x4xf32>, %v: tensor<4x4xf32>):\n"
      "%p = stablehlo.dot_general %c, %v, contracting_dims = [1] x [0] : "
      "(tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>\n"
      "%s = stablehlo.add %p, %e : tensor<8x4xf32>\n"
      "%t = stablehlo.tanh %s : tensor<8x4xf32>\n"
      "stablehlo.return %t, %t : tensor<8x4xf32>, tensor<8x4xf32>\n}) : "
      "(tensor<8x4xf32>, tensor<5x8x4xf32>, tensor<4x4xf32>) -> "
      "(tensor<8x4xf32>, tensor<5x8x4xf32>)\n"
      "return %r#1 : tensor<5x8x4xf32>\n}\n}\n", 0);
  assert_int_equal(c.all, 0);
}

// Two want a sum otherwise: what was said with the smaller number, or none, counts.
static void priorities(void** state) {
  (void)state;
  static const char* const rows[][3] = {
      {"", "p1", "{devices=[2,1,2]0,1,2,3 last_tile_dim_replicate}"},
      {"p1", "", "{devices=[2,1,2]0,2,1,3 last_tile_dim_replicate}"},
      {"p3", "p2", "{devices=[2,1,2]0,2,1,3 last_tile_dim_replicate}"}};
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
    char text[1024];
    snprintf(text, sizeof(text),
             MESH22
             "func.func @main(%%a: tensor<8x4xf32> {sdy.sharding = "
             "#sdy.sharding<@m, [{\"d\"}%s, {}]>}, %%b: tensor<8x4xf32> "
             "{sdy.sharding = #sdy.sharding<@m, [{\"t\"}%s, {}]>}) -> "
             "tensor<8x4xf32> {\n"
             "%%r = stablehlo.add %%a, %%b : tensor<8x4xf32>\n"
             "return %%r : tensor<8x4xf32>\n}\n}\n",
             rows[i][0], rows[i][1]);
    (void)check(text, 0);
    pestle_context_t* context = test_context();
    pestle_module_t* module = test_parse(context, text);
    test_run(module, "partition");
    const char* found = pestle_dialect_attrs_find(
        pestle_function_result_attrs(pestle_module_entry(module), 0),
        PESTLE_SHARDING_KEY);
    assert_non_null(found);
    if (!strstr(found, rows[i][2]))
      fail_msg("row %zu: the result lies as %s", i, found);
    pestle_module_release(module);
    pestle_context_release(context);
  }
}

// Groups of images, as the gradient of a convolution in groups has them.
static void image_groups(void** state) {
  (void)state;
  counts_t c = check(MESH22
      "func.func @main(" IN("x", "8x3x5xf32", "[{\"d\"}, {}, {}]") ", "
      IN("w", "6x3x2xf32", "[{\"d\"}, {}, {}]") ") -> "
      OUT("4x6x4xf32", "[{}, {\"d\"}, {}]") " {\n"
      "%r = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, "
      "0]->[b, f, 0], window = {stride = [1]} {batch_group_count = 2 : i64, "
      "feature_group_count = 1 : i64} : (tensor<8x3x5xf32>, tensor<6x3x2xf32>) "
      "-> tensor<4x6x4xf32>\n"
      "return %r : tensor<4x6x4xf32>\n}\n}\n", 0);
  assert_int_equal(c.all, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dot_in_parts), cmocka_unit_test(mlp),
      cmocka_unit_test(constraints),  cmocka_unit_test(tiles),
      cmocka_unit_test(misfits),      cmocka_unit_test(inner_constraints),
      cmocka_unit_test(composites),   cmocka_unit_test(aliases),
      cmocka_unit_test(gradients),    cmocka_unit_test(norm_gradients),
      cmocka_unit_test(block_dots),   cmocka_unit_test(scans),
      cmocka_unit_test(image_groups), cmocka_unit_test(priorities),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

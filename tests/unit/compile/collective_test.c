// SPDX-License-Identifier: Apache-2.0
// Plans with collectives, run by threads, against the evaluator of all processes: the
// same bits.
#include <stdlib.h>

#include "base/thread.h"
#include "ir/collective.h"
#include "ir/graph.h"
#include "ir/ref/ref.h"
#include "pestle/compile.h"
#include "pestle/plan_format.h"
#include "pestle/runtime.h"
#include "pestle/world.h"
#include "test.h"

#define WORLD(replicas, partitions, body)                    \
  "module @m attributes {mhlo.num_partitions = " #partitions \
  " : i32, mhlo.num_replicas = " #replicas " : i32} {\n" body "\n}\n"
#define CHANNEL \
  "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, "
#define GLOBAL ", use_global_device_ids"
#define ALL4 "replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>"
#define PAIRS4 "replica_groups = dense<[[0, 2], [3, 1]]> : tensor<2x2xi64>"
#define REGION(op, type)                            \
  "({\n^bb0(%x: tensor<" type ">, %y: tensor<" type \
  ">):\n"                                           \
  "%s = stablehlo." op " %x, %y : tensor<" type     \
  ">\n"                                             \
  "stablehlo.return %s : tensor<" type ">\n})"
#define ONE(in, out, op, attrs, region)                                  \
  "func.func @main(%a: tensor<" in ">) -> tensor<" out                   \
  "> {\n"                                                                \
  "%r = \"stablehlo." op "\"(%a) <{" attrs "}> " region " : (tensor<" in \
  ">) -> tensor<" out ">\nreturn %r : tensor<" out ">\n}"

enum { MOST_RANKS = 8, MOST_IO = 4 };

typedef struct rank_t {
  pestle_executable_t* executable;
  pestle_world_t* world;
  pestle_stream_t* stream;
  pestle_thread_t thread;
  pestle_status_t status;
  pestle_tensor_t inputs[MOST_IO], outputs[MOST_IO];
  size_t input_count, output_count;
  void *in[MOST_IO], *out[MOST_IO], *want[MOST_IO];
} rank_t;

static void run_rank(void* self) {
  rank_t* r = self;
  pestle_run_options_t options = {.struct_size = sizeof(options),
                                  .world = r->world};
  r->status =
      pestle_executable_run(r->executable, r->stream, r->inputs, r->input_count,
                            r->outputs, r->output_count, &options);
  if (!r->status && r->stream) r->status = pestle_stream_synchronize(r->stream);
}

static uint64_t random_state = 7;
static uint32_t random_bits(void) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(random_state >> 33);
}

static void fill(pestle_dtype_t dtype, void* to, size_t bytes) {
  if (dtype == PESTLE_F32 || dtype == PESTLE_C64) {
    for (size_t i = 0; i < bytes / 4; ++i)
      ((float*)to)[i] = (float)random_bits() * 1e-9f - 1;
  } else if (dtype == PESTLE_I1) {
    for (size_t i = 0; i < bytes; ++i)
      ((uint8_t*)to)[i] = random_bits() & 1;
  } else if (dtype == PESTLE_BF16) {
    for (size_t i = 0; i < bytes / 2; ++i)
      ((uint16_t*)to)[i] = (uint16_t)(0x3F80 + random_bits() % 128);
  } else {
    for (size_t i = 0; i < bytes; ++i)
      ((uint8_t*)to)[i] = (uint8_t)random_bits();
  }
}

static void make_views(rank_t* r, pestle_executable_t* e, const rank_t* like) {
  r->executable = e;
  r->input_count = pestle_executable_input_count(e);
  r->output_count = pestle_executable_output_count(e);
  for (size_t i = 0; i < r->input_count + r->output_count; ++i) {
    bool in = i < r->input_count;
    size_t k = in ? i : i - r->input_count;
    pestle_io_info_t info =
        in ? pestle_executable_input(e, k) : pestle_executable_output(e, k);
    size_t bytes = pestle_dtype_size(info.dtype);
    for (int32_t d = 0; d < info.rank; ++d)
      bytes *= (size_t)info.dims[d];
    void* data = calloc(1, bytes + 64);
    if (in) {
      r->in[k] = data;
      if (like) {
        memcpy(data, like->in[k], bytes);
      } else {
        fill(info.dtype, data, bytes);
      }
    } else {
      r->out[k] = data;
      r->want[k] = calloc(1, bytes + 64);
      memset(data, 0xAB, bytes);
    }
    *(in ? &r->inputs[k] : &r->outputs[k]) =
        (pestle_tensor_t){.data = data,
                          .device = {PESTLE_DEVICE_CPU, 0},
                          .ndim = info.rank,
                          .dtype = pestle_dtype_to_dlpack(info.dtype),
                          .shape = (int64_t*)(uintptr_t)info.dims};
  }
}

static void drop_views(rank_t* r) {
  for (int i = 0; i < MOST_IO; ++i) {
    free(r->in[i]);
    free(r->out[i]);
    free(r->want[i]);
  }
}

static void evaluate(pestle_module_t* module, rank_t* ranks, int size) {
  const void* const* arguments[MOST_RANKS];
  void* const* results[MOST_RANKS];
  for (int i = 0; i < size; ++i) {
    arguments[i] = (const void* const*)ranks[i].in;
    results[i] = ranks[i].want;
  }
  assert_ok(pestle_ref_evaluate_world(pestle_allocator_system(),
                                      pestle_module_entry(module), arguments,
                                      results));
}

static void check(const char* name, const rank_t* ranks, int size) {
  for (int i = 0; i < size; ++i) {
    assert_ok(ranks[i].status);
    for (size_t k = 0; k < ranks[i].output_count; ++k) {
      pestle_io_info_t info = pestle_executable_output(ranks[i].executable, k);
      size_t bytes = pestle_dtype_size(info.dtype);
      for (int32_t d = 0; d < info.rank; ++d)
        bytes *= (size_t)info.dims[d];
      if (memcmp(ranks[i].out[k], ranks[i].want[k], bytes))
        fail_msg("%s: result %zu of process %d is not the evaluator's", name, k,
                 i);
    }
  }
}

static void run_plan(pestle_context_t* context, const char* device_name,
                     const char* name, const char* text, bool streams) {
  pestle_module_t* module;
  pestle_device_t* device;
  pestle_plan_t* plan;
  pestle_executable_t* e;
  pestle_world_t* worlds[MOST_RANKS];
  rank_t ranks[MOST_RANKS] = {0};
  assert_ok(pestle_context_device(context, device_name, &device));
  assert_ok(
      pestle_module_parse(context, text, strlen(text), "t.mlir", &module));
  int size = (int)pestle_module_device_count(module);
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .numerics = PESTLE_NUMERICS_STRICT};
  assert_ok(pestle_compile(context, module, device, &options, &plan));
  assert_ok(pestle_executable_create(context, plan, device, &e));
  assert_ok(pestle_world_create_local(context, size, NULL, worlds));
  for (int i = 0; i < size; ++i) {
    make_views(&ranks[i], e, NULL);
    ranks[i].world = worlds[i];
    if (streams) assert_ok(pestle_stream_create(device, &ranks[i].stream));
  }
  evaluate(module, ranks, size);
  // Twice in one world: nothing is left behind by the first.
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < size; ++i)
      assert_ok(
          pestle_thread_start(run_rank, &ranks[i], "rank", &ranks[i].thread));
    for (int i = 0; i < size; ++i)
      pestle_thread_join(&ranks[i].thread);
    check(name, ranks, size);
  }
  for (int i = 0; i < size; ++i) {
    pestle_stream_release(ranks[i].stream);
    pestle_world_release(worlds[i]);
    drop_views(&ranks[i]);
  }
  pestle_executable_release(e);
  pestle_plan_release(plan);
  pestle_module_release(module);
}

typedef struct program_t {
  const char *name, *text;
} program_t;

static const program_t programs[] = {
    {"all_reduce", WORLD(1, 4,
                         ONE("3x5xf32", "3x5xf32", "all_reduce",
                             CHANNEL ALL4 GLOBAL, REGION("add", "f32")))},
    {"all_reduce of groups",
     WORLD(1, 4,
           ONE("700x9xi32", "700x9xi32", "all_reduce", CHANNEL PAIRS4 GLOBAL,
               REGION("maximum", "i32")))},
    {"all_reduce of replicas",
     WORLD(2, 2,
           ONE("7xi32", "7xi32", "all_reduce",
               "replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>",
               REGION("multiply", "i32")))},
    {"all_reduce in bf16",
     WORLD(1, 4,
           ONE("33xbf16", "33xbf16", "all_reduce", CHANNEL ALL4 GLOBAL,
               REGION("add", "bf16")))},
    {"all_reduce of flags",
     WORLD(1, 4,
           ONE("33xi1", "33xi1", "all_reduce", CHANNEL ALL4 GLOBAL,
               REGION("or", "i1")))},
    {"all_reduce by subtract",
     WORLD(1, 4,
           ONE("3x5xi32", "3x5xi32", "all_reduce", CHANNEL ALL4 GLOBAL,
               REGION("subtract", "i32")))},
    {"all_reduce of complex numbers",
     WORLD(1, 2,
           ONE("5xcomplex<f32>", "5xcomplex<f32>", "all_reduce",
               CHANNEL
               "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>" GLOBAL,
               REGION("add", "complex<f32>")))},
    {"all_reduce of two",
     WORLD(1, 2,
           "func.func @main(%a: tensor<4xf32>, %b: tensor<2x3xf32>) -> "
           "(tensor<4xf32>, tensor<2x3xf32>) {\n"
           "%r:2 = \"stablehlo.all_reduce\"(%a, %b) <{" CHANNEL
           "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>" GLOBAL
           "}> " REGION(
               "add",
               "f32") " : (tensor<4xf32>, tensor<2x3xf32>) -> "
                      "(tensor<4xf32>, tensor<2x3xf32>)\n"
                      "return %r#0, %r#1 : tensor<4xf32>, tensor<2x3xf32>\n}")},
    {"all_gather along 1",
     WORLD(1, 4,
           ONE("3x5x2xf32", "3x20x2xf32", "all_gather",
               "all_gather_dim = 1 : i64, " CHANNEL ALL4 GLOBAL, ""))},
    {"all_gather along 0",
     WORLD(1, 4,
           ONE("3x5xi32", "6x5xi32", "all_gather",
               "all_gather_dim = 0 : i64, " CHANNEL PAIRS4 GLOBAL, ""))},
    {"all_gather of complex numbers",
     WORLD(1, 4,
           ONE("3xcomplex<f32>", "6xcomplex<f32>", "all_gather",
               "all_gather_dim = 0 : i64, " CHANNEL PAIRS4 GLOBAL, ""))},
    {"reduce_scatter along 1",
     WORLD(1, 4,
           ONE("3x8xf32", "3x2xf32", "reduce_scatter",
               "scatter_dimension = 1 : i64, " CHANNEL ALL4 GLOBAL,
               REGION("add", "f32")))},
    {"reduce_scatter of groups",
     WORLD(1, 4,
           ONE("4x3xi32", "2x3xi32", "reduce_scatter",
               "scatter_dimension = 0 : i64, " CHANNEL PAIRS4 GLOBAL,
               REGION("minimum", "i32")))},
    {"all_to_all",
     WORLD(1, 4,
           ONE("8x3xf32", "2x12xf32", "all_to_all",
               CHANNEL "concat_dimension = 1 : i64, " ALL4
                       ", split_count = 4 : i64, split_dimension = 0 : i64",
               ""))},
    {"all_to_all of one axis",
     WORLD(1, 4,
           ONE("5x4xi32", "5x4xi32", "all_to_all",
               CHANNEL "concat_dimension = 1 : i64, " PAIRS4
                       ", split_count = 2 : i64, split_dimension = 1 : i64",
               ""))},
    {"collective_permute",
     WORLD(1, 4,
           ONE("5x4xf32", "5x4xf32", "collective_permute",
               CHANNEL "source_target_pairs = dense<[[0, 1], [1, 2], [3, 3]]> "
                       ": tensor<3x2xi64>",
               ""))},
    {"collective_permute of complex numbers",
     WORLD(
         1, 2,
         ONE("5xcomplex<f32>", "5xcomplex<f32>", "collective_permute",
             CHANNEL "source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>",
             ""))},
    {"collective_broadcast",
     WORLD(1, 4,
           ONE("5xf32", "5xf32", "collective_broadcast",
               CHANNEL "replica_groups = dense<[[2, 0, 1]]> : "
                       "tensor<1x3xi64>",
               ""))},
    {"groups of one",
     WORLD(1, 4,
           ONE("5xf32", "5xf32", "all_reduce",
               CHANNEL "replica_groups = dense<[[0], [1], [2], [3]]> : "
                       "tensor<4x1xi64>" GLOBAL,
               REGION("add", "f32")))},
    {"numbers",
     WORLD(2, 3,
           "func.func @main(%a: tensor<4xui32>) -> tensor<4xui32> {\n"
           "%p = stablehlo.partition_id : tensor<ui32>\n"
           "%q = stablehlo.replica_id : tensor<ui32>\n"
           "%c = stablehlo.constant dense<100> : tensor<ui32>\n"
           "%m = stablehlo.multiply %q, %c : tensor<ui32>\n"
           "%n = stablehlo.add %m, %p : tensor<ui32>\n"
           "%b = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<ui32>) -> "
           "tensor<4xui32>\n"
           "%r = stablehlo.add %b, %a : tensor<4xui32>\n"
           "return %r : tensor<4xui32>\n}")},
    // What a kernel makes is sent, and what comes is used by one.
    {"between kernels, in a loop",
     WORLD(
         1, 4,
         "func.func @main(%a: tensor<64xi32>) -> tensor<64xi32> {\n"
         "%z = stablehlo.constant dense<0> : tensor<i32>\n"
         "%o = stablehlo.constant dense<1> : tensor<i32>\n"
         "%n = stablehlo.constant dense<5> : tensor<i32>\n"
         "%k = stablehlo.constant dense<3> : tensor<64xi32>\n"
         "%r:2 = stablehlo.while(%i = %z, %v = %a) : tensor<i32>, "
         "tensor<64xi32>\n"
         "cond {\n%c = stablehlo.compare LT, %i, %n : (tensor<i32>, "
         "tensor<i32>) -> tensor<i1>\nstablehlo.return %c : tensor<i1>\n"
         "} do {\n"
         "%t = stablehlo.multiply %v, %k : tensor<64xi32>\n"
         "%g = \"stablehlo.all_reduce\"(%t) <{" CHANNEL ALL4 GLOBAL
         "}> " REGION(
             "add",
             "i32") " : (tensor<64xi32>) -> "
                    "tensor<64xi32>\n"
                    "%p = \"stablehlo.collective_permute\"(%t) <{" CHANNEL
                    "source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, "
                    "0]]> : "
                    "tensor<4x2xi64>}> : (tensor<64xi32>) -> tensor<64xi32>\n"
                    "%u = stablehlo.subtract %g, %p : tensor<64xi32>\n"
                    "%j = stablehlo.add %i, %o : tensor<i32>\n"
                    "stablehlo.return %j, %u : tensor<i32>, tensor<64xi32>\n}\n"
                    "return %r#1 : tensor<64xi32>\n}")},
    {"nothing", WORLD(1, 2,
                      ONE("0x4xf32", "0x8xf32", "all_gather",
                          "all_gather_dim = 1 : i64, " CHANNEL
                          "replica_groups = dense<[[0, 1]]> : "
                          "tensor<1x2xi64>" GLOBAL,
                          ""))},
};

static pestle_context_t* make_context(void) {
  pestle_context_t* context;
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .cache_dir = "",
                                      .threads = 2,
                                      .use_environment = true};
  assert_ok(pestle_context_create(&options, &context));
  return context;
}

static void runs_plans(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); ++i) {
    run_plan(context, "ref", programs[i].name, programs[i].text, i % 2);
    run_plan(context, "cpu", programs[i].name, programs[i].text, !(i % 2));
  }
  pestle_context_release(context);
}

// --- What is refused ---

static void compile_first(pestle_context_t* context, pestle_plan_t** plan,
                          pestle_executable_t** e) {
  pestle_module_t* module;
  pestle_device_t* device;
  const char* text = programs[0].text;
  assert_ok(pestle_context_device(context, "ref", &device));
  assert_ok(pestle_module_parse(context, text, strlen(text), "t", &module));
  assert_ok(pestle_compile(context, module, device, NULL, plan));
  assert_ok(pestle_executable_create(context, *plan, device, e));
  pestle_module_release(module);
}

static void needs_its_world(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  pestle_plan_t* plan;
  pestle_executable_t* e;
  pestle_world_t* worlds[2];
  rank_t rank = {0};
  compile_first(context, &plan, &e);
  make_views(&rank, e, NULL);
  run_rank(&rank);
  assert_error(rank.status, INVALID_ARGUMENT, "is for 4 processes");
  assert_ok(pestle_world_create_local(context, 2, NULL, worlds));
  rank.world = worlds[0];
  run_rank(&rank);
  assert_error(rank.status, INVALID_ARGUMENT,
               "the world that it is run in has 2 ranks");
  pestle_step_info_t info = {.struct_size = sizeof(info)};
  bool found = false;
  for (size_t i = 0; i < pestle_executable_step_count(e); ++i) {
    assert_ok(pestle_executable_step(e, i, &info));
    if (info.kind != PESTLE_STEP_COLLECTIVE) continue;
    found = true;
    assert_string_equal(info.name, "all_reduce");
    assert_int_equal(info.bytes, 2 * 15 * 4);
  }
  assert_true(found);
  for (int i = 0; i < 2; ++i)
    pestle_world_release(worlds[i]);
  drop_views(&rank);
  pestle_executable_release(e);
  pestle_plan_release(plan);
  pestle_context_release(context);
}

// A rank whose arguments are wrong ends the world: the others do not wait for it.
static void fails_together(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  pestle_plan_t* plan;
  pestle_executable_t* e;
  compile_first(context, &plan, &e);
  for (int round = 0; round < 20; ++round) {
    pestle_world_t* worlds[4];
    rank_t ranks[4] = {0};
    pestle_world_options_t options = {.struct_size = sizeof(options),
                                      .deadline_ms = 600000};
    assert_ok(pestle_world_create_local(context, 4, &options, worlds));
    for (int i = 0; i < 4; ++i) {
      make_views(&ranks[i], e, NULL);
      ranks[i].world = worlds[i];
    }
    ranks[2].input_count = 0;
    for (int i = 0; i < 4; ++i)
      assert_ok(
          pestle_thread_start(run_rank, &ranks[i], "rank", &ranks[i].thread));
    for (int i = 0; i < 4; ++i)
      pestle_thread_join(&ranks[i].thread);
    for (int i = 0; i < 4; ++i) {
      if (i == 2) {
        assert_code(ranks[i].status, INVALID_ARGUMENT);
      } else {
        assert_error(ranks[i].status, UNAVAILABLE,
                     "rank 2 has ended its world");
      }
      pestle_world_release(worlds[i]);
      drop_views(&ranks[i]);
    }
  }
  pestle_executable_release(e);
  pestle_plan_release(plan);
  pestle_context_release(context);
}

// --- Bytes of plans ---

static void checks_bytes(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  pestle_plan_t *plan, *bad;
  pestle_executable_t* e;
  size_t size;
  compile_first(context, &plan, &e);
  const void* data = pestle_plan_data(plan, &size);
  const pestle_plan_header_t* h = data;
  assert_int_equal(h->replicas, 1);
  assert_int_equal(h->partitions, 4);
  assert_int_equal(h->collectives.count, 1);
  assert_int_equal(h->groups.count, 4);
  // What each damage is, at an offset: the checksum is made anew by nobody, so that
  // a plan which was changed is refused before it is looked at.
  char* copy = aligned_alloc(64, (size + 63) / 64 * 64);
  memcpy(copy, data, size);
  ((pestle_plan_collective_t*)(void*)(copy + h->collectives.offset))->kind = 99;
  assert_error(pestle_plan_create(context, copy, size, NULL, NULL, &bad),
               MALFORMED, "checksum");
  free(copy);
  pestle_executable_release(e);
  pestle_plan_release(plan);
  pestle_context_release(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(runs_plans),
      cmocka_unit_test(needs_its_world),
      cmocka_unit_test(fails_together),
      cmocka_unit_test(checks_bytes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

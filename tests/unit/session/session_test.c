// SPDX-License-Identifier: Apache-2.0
// Sessions, with kernels that are interpreted: shapes, padding, threads, errors.
#include "pestle/session.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/thread.h"
#include "pestle/compile.h"
#include "pestle/plan_set.h"
#include "test.h"
#include "view.h"

// y = x + x, s: the sum of each row.
static const char rows_text[] =
    "func.func public @main(%x: tensor<?x3xf32> {pestle.name = \"x\"}) -> "
    "(tensor<?x3xf32> {pestle.name = \"y\"}, tensor<?xf32> {pestle.name = "
    "\"s\"}) {\n"
    "  %t = stablehlo.add %x, %x : tensor<?x3xf32>\n"
    "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across "
    "dimensions = [1] : (tensor<?x3xf32>, tensor<f32>) -> tensor<?xf32>\n"
    "  return %t, %s : tensor<?x3xf32>, tensor<?xf32>\n}\n";

// y: the sum of all rows, of which none is apart.
static const char mixed_text[] =
    "func.func public @main(%x: tensor<?x3xf32> {pestle.name = \"x\"}) -> "
    "(tensor<3xf32> {pestle.name = \"y\"}) {\n"
    "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across "
    "dimensions = [0] : (tensor<?x3xf32>, tensor<f32>) -> tensor<3xf32>\n"
    "  return %s : tensor<3xf32>\n}\n";

// Rows are the last axis.
static const char columns_text[] =
    "func.func public @main(%x: tensor<2x?xf32> {pestle.name = \"x\"}) -> "
    "(tensor<2x?xf32> {pestle.name = \"y\"}) {\n"
    "  %t = stablehlo.add %x, %x : tensor<2x?xf32>\n"
    "  return %t : tensor<2x?xf32>\n}\n";

static char folder[64];

static const char* file(const char* name, const char* text) {
  static char path[128];
  (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
  if (!text) return path;
  FILE* out = fopen(path, "w");
  assert_non_null(out);
  assert_true(fputs(text, out) >= 0);
  assert_int_equal(fclose(out), 0);
  return path;
}

static pestle_context_t* make_context(void) {
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .cache_dir = "",
                                      .backend_path = "/nonexistent",
                                      .threads = 2};
  pestle_context_t* context;
  assert_ok(pestle_context_create(&options, &context));
  return context;
}

static pestle_session_t* open_text(pestle_context_t* context, const char* text,
                                   const pestle_session_options_t* options) {
  pestle_session_t* session;
  assert_ok(pestle_session_create(context, file("model.mlir", text), options,
                                  &session));
  return session;
}

static pestle_session_stats_t stats_of(pestle_session_t* session) {
  pestle_session_stats_t stats = {.struct_size = sizeof(stats)};
  assert_ok(pestle_session_stats(session, &stats));
  return stats;
}

// Runs |rows| rows of what begins at |seed| and checks what comes back.
static void run_rows(pestle_session_t* session, int64_t rows, int seed) {
  float x[64 * 3];
  int64_t dims[] = {rows, 3};
  for (int64_t i = 0; i < rows * 3; ++i)
    x[i] = (float)(seed + i);
  pestle_named_tensor_t in = {"x", test_view(x, PESTLE_F32, 2, dims, NULL)};
  pestle_named_tensor_t out[] = {{.name = "s"}, {.name = "y"}};
  assert_ok(pestle_session_run(session, &in, 1, out, 2, NULL));
  const float *s = out[0].tensor.data, *y = out[1].tensor.data;
  assert_int_equal(out[0].tensor.ndim, 1);
  assert_true(out[0].tensor.shape[0] == rows);
  assert_true(out[1].tensor.shape[0] == rows && out[1].tensor.shape[1] == 3);
  assert_true(out[1].tensor.strides[0] == 3);
  for (int64_t i = 0; i < rows; ++i) {
    assert_true(y[i * 3] == 2 * x[i * 3]);
    assert_true(s[i] == x[i * 3] + x[i * 3 + 1] + x[i * 3 + 2]);
  }
  pestle_session_tensor_release(session, &out[0].tensor);
  pestle_session_tensor_release(session, &out[1].tensor);
  assert_null(out[0].tensor.data);
}

static void test_first_come(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  pestle_session_t* session = open_text(context, rows_text, NULL);
  assert_int_equal(pestle_session_input_count(session), 1);
  assert_int_equal(pestle_session_output_count(session), 2);
  assert_string_equal(pestle_session_input(session, 0).name, "x");
  assert_true(pestle_session_input(session, 0).dims[0] == PESTLE_DIM_DYNAMIC);
  assert_string_equal(pestle_session_output_name(session, 1), "s");
  run_rows(session, 8, 1);
  // The executable for 8 rows serves, and one of its own comes.
  run_rows(session, 3, 2);
  assert_int_equal(stats_of(session).padded_runs, 1);
  assert_int_equal(stats_of(session).rows, 3);
  assert_int_equal(stats_of(session).padding, 5);
  assert_ok(pestle_session_wait(session, NULL));
  assert_int_equal(stats_of(session).executables, 2);
  run_rows(session, 3, 3);
  run_rows(session, 8, 3);
  pestle_session_stats_t stats = stats_of(session);
  assert_int_equal(stats.runs, 4);
  assert_int_equal(stats.padded_runs, 1);
  assert_int_equal(stats.compiles, 2);
  assert_int_equal(stats.failed_runs, 0);
  pestle_session_release(session);
  pestle_context_release(context);
}

static void test_declared(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  pestle_session_options_t options = {.struct_size = sizeof(options),
                                      .shapes = "x.0=1,2,4..16"};
  pestle_session_t* session = open_text(context, rows_text, &options);
  // Before anything is ready too.
  run_rows(session, 5, 7);
  assert_ok(pestle_session_wait(session, NULL));
  assert_int_equal(stats_of(session).executables, 5);
  for (int64_t rows = 1; rows <= 16; ++rows)
    run_rows(session, rows, (int)rows);
  // Other extents are served by these, and not compiled.
  assert_int_equal(stats_of(session).compiles, 5);
  assert_int_equal(stats_of(session).padded_runs, 12);
  // More rows than are declared.
  run_rows(session, 20, 1);
  assert_int_equal(stats_of(session).compiles, 6);
  pestle_session_release(session);
  pestle_context_release(context);
}

static void test_own_memory(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  pestle_session_options_t options = {
      .struct_size = sizeof(options), .shapes = "x.1=8", .waiting = true};
  pestle_session_t* session = open_text(context, columns_text, &options);
  // A column of a larger array, in steps; and an output with gaps.
  float x[40], y[40];
  int64_t dims[] = {2, 3}, in_strides[] = {20, 2}, out_strides[] = {10, 3};
  for (int i = 0; i < 40; ++i) {
    x[i] = (float)i;
    y[i] = -1;
  }
  pestle_named_tensor_t in = {NULL,
                              test_view(x, PESTLE_F32, 2, dims, in_strides)};
  pestle_named_tensor_t out = {NULL,
                               test_view(y, PESTLE_F32, 2, dims, out_strides)};
  assert_ok(pestle_session_run(session, &in, 1, &out, 1, NULL));
  for (int r = 0; r < 2; ++r) {
    for (int c = 0; c < 3; ++c)
      assert_true(y[r * 10 + c * 3] == 2 * x[r * 20 + c * 2]);
  }
  assert_true(y[1] == -1 && y[9] == -1 && y[39] == -1);
  // Rows are no outermost axis: what is made is cut.
  pestle_named_tensor_t made = {.name = "y"};
  assert_ok(pestle_session_run(session, &in, 1, &made, 1, NULL));
  assert_true(made.tensor.strides[0] == 3);
  assert_true(((float*)made.tensor.data)[4] == 2 * x[22]);
  pestle_session_tensor_release(session, &made.tensor);
  assert_int_equal(stats_of(session).padded_runs, 2);
  pestle_session_release(session);
  pestle_context_release(context);
}

typedef struct shown_t {
  int count, failed;
  char note[512];
} shown_t;

static void look(void* user, const pestle_session_shape_t* shape) {
  shown_t* shown = user;
  ++shown->count;
  shown->failed += shape->state == PESTLE_SESSION_FAILED;
  if (shape->note[0])
    (void)snprintf(shown->note, sizeof(shown->note), "%s: %s", shape->text,
                   shape->note);
}

// Rows that are not apart get an executable of their own, and the reason is told.
static void test_not_apart(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  pestle_session_options_t options = {
      .struct_size = sizeof(options), .shapes = "x.0=8", .waiting = true};
  pestle_session_t* session = open_text(context, mixed_text, &options);
  float x[6] = {1, 2, 3, 4, 5, 6};
  int64_t dims[] = {2, 3};
  pestle_named_tensor_t in = {"x", test_view(x, PESTLE_F32, 2, dims, NULL)};
  pestle_named_tensor_t out = {.name = "y"};
  assert_ok(pestle_session_run(session, &in, 1, &out, 1, NULL));
  assert_true(((float*)out.tensor.data)[0] == 5);
  pestle_session_tensor_release(session, &out.tensor);
  assert_int_equal(stats_of(session).padded_runs, 0);
  assert_int_equal(stats_of(session).compiles, 2);
  shown_t shown = {0};
  assert_ok(pestle_session_visit(session, look, &shown));
  assert_int_equal(shown.count, 2);
  assert_non_null(strstr(shown.note, "x [2, 3]: "));
  assert_non_null(strstr(shown.note, "reduce"));
  pestle_session_release(session);
  pestle_context_release(context);
}

static void test_bounded(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  pestle_session_options_t options = {.struct_size = sizeof(options),
                                      .most_executables = 3,
                                      .exact = true,
                                      .waiting = true};
  pestle_session_t* session = open_text(context, rows_text, &options);
  for (int64_t rows = 1; rows <= 6; ++rows)
    run_rows(session, rows, 1);
  pestle_session_stats_t stats = stats_of(session);
  assert_int_equal(stats.executables, 3);
  assert_int_equal(stats.evictions, 3);
  assert_int_equal(stats.padded_runs, 0);
  run_rows(session, 6, 1);
  assert_int_equal(stats_of(session).compiles, 6);
  run_rows(session, 1, 1);
  assert_int_equal(stats_of(session).compiles, 7);
  pestle_session_release(session);
  pestle_context_release(context);
}

// --- Threads ---

typedef struct caller_t {
  pestle_session_t* session;
  pestle_thread_t thread;
  unsigned seed;
} caller_t;

static void call(void* argument) {
  caller_t* caller = argument;
  for (int i = 0; i < 60; ++i) {
    caller->seed = caller->seed * 1664525u + 1013904223u;
    run_rows(caller->session, 1 + (int64_t)(caller->seed >> 16) % 24,
             (int)(caller->seed % 100));
  }
}

static void run_threads(const pestle_session_options_t* options) {
  enum { CALLERS = 4 };
  pestle_context_t* context = make_context();
  pestle_session_t* session = open_text(context, rows_text, options);
  caller_t callers[CALLERS];
  for (unsigned i = 0; i < CALLERS; ++i) {
    callers[i] = (caller_t){.session = session, .seed = i * 77u + 5u};
    assert_ok(
        pestle_thread_start(call, &callers[i], "caller", &callers[i].thread));
  }
  for (int i = 0; i < CALLERS; ++i)
    pestle_thread_join(&callers[i].thread);
  assert_int_equal(stats_of(session).runs, 60 * CALLERS);
  assert_int_equal(stats_of(session).failed_runs, 0);
  pestle_session_release(session);
  pestle_context_release(context);
}

static void test_threads(void** state) {
  (void)state;
  pestle_session_options_t options = {.struct_size = sizeof(options)};
  run_threads(&options);
  options.most_executables = 2;  // shapes come and go
  run_threads(&options);
  options.shapes = "x.0=4..24";
  run_threads(&options);
  // While full executables take the place of quick ones.
  options.quick = true;
  run_threads(&options);
  options.shapes = NULL;
  run_threads(&options);
}

// --- Plans ---

static pestle_plan_t* plan_for(pestle_context_t* context, int64_t rows) {
  pestle_module_t *symbolic, *module;
  pestle_plan_t* plan;
  assert_ok(pestle_import_file(context, file("model.mlir", rows_text), NULL,
                               &symbolic));
  pestle_type_t type = {PESTLE_F32, 2, {rows, 3}};
  assert_ok(pestle_module_specialize(symbolic, &type, 1, &module));
  assert_ok(pestle_compile(context, module, NULL, NULL, &plan));
  pestle_module_release(module);
  pestle_module_release(symbolic);
  return plan;
}

static void test_plans(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  pestle_plan_t* plans[] = {plan_for(context, 2), plan_for(context, 5)};
  assert_ok(pestle_plan_set_save(plans, 2, file("two.plan", NULL)));
  assert_ok(pestle_plan_save(plans[0], file("one.plan", NULL)));
  for (int i = 0; i < 2; ++i)
    pestle_plan_release(plans[i]);
  pestle_session_t* session;
  assert_ok(
      pestle_session_create(context, file("two.plan", NULL), NULL, &session));
  assert_true(pestle_session_input(session, 0).dims[0] == PESTLE_DIM_DYNAMIC);
  assert_true(pestle_session_input(session, 0).dims[1] == 3);
  run_rows(session, 5, 1);
  run_rows(session, 2, 1);
  float x[9] = {0};
  int64_t dims[] = {3, 3};
  pestle_named_tensor_t in = {"x", test_view(x, PESTLE_F32, 2, dims, NULL)};
  pestle_status_t status = pestle_session_run(session, &in, 1, NULL, 0, NULL);
  assert_int_equal(pestle_status_code(status), PESTLE_STATUS_NOT_FOUND);
  assert_non_null(strstr(pestle_status_message(status),
                         "not compiled for x [3, 3]; it has x [2, 3]; x [5, "
                         "3]"));
  pestle_status_release(status);
  pestle_session_release(session);
  assert_ok(
      pestle_session_create(context, file("one.plan", NULL), NULL, &session));
  run_rows(session, 2, 1);
  pestle_session_release(session);
  pestle_session_options_t options = {.struct_size = sizeof(options),
                                      .shapes = "x.0=1"};
  assert_code(pestle_session_create(context, file("one.plan", NULL), &options,
                                    &session),
              INVALID_ARGUMENT);
  pestle_context_release(context);
}

// --- What is wrong ---

// What the session says of its only shape.
static void see_state(void* user, const pestle_session_shape_t* shape) {
  *(int32_t*)user = shape->state;
}

// The quick executable serves, the full one takes its place, and also in shapes that it
// serves.
static void test_quick(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  pestle_session_options_t options = {.struct_size = sizeof(options),
                                      .quick = true};
  pestle_session_t* session = open_text(context, rows_text, &options);
  run_rows(session, 8, 1);
  assert_int_equal(stats_of(session).quick_compiles, 1);
  assert_ok(pestle_session_wait(session, NULL));
  run_rows(session, 8, 2);
  pestle_session_stats_t stats = stats_of(session);
  assert_int_equal(stats.compiles, 2);
  assert_int_equal(stats.quick_compiles, 1);
  assert_int_equal(stats.replaced, 1);
  assert_int_equal(stats.executables, 1);
  assert_int_equal(stats.quick, 0);
  int32_t at = -1;
  assert_ok(pestle_session_visit(session, see_state, &at));
  assert_int_equal(at, PESTLE_SESSION_READY);
  // What a larger one serves needs no quick executable of its own.
  run_rows(session, 3, 3);
  assert_ok(pestle_session_wait(session, NULL));
  run_rows(session, 3, 4);
  stats = stats_of(session);
  assert_int_equal(stats.quick_compiles, 1);
  assert_int_equal(stats.compiles, 3);
  assert_int_equal(stats.failed_runs, 0);
  pestle_session_release(session);
  pestle_context_release(context);
}

// Declared shapes all have a quick executable before the first full one is made.
static void test_quick_declared(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  pestle_session_options_t options = {
      .struct_size = sizeof(options), .quick = true, .shapes = "x.0=2,4,8"};
  pestle_session_t* session = open_text(context, rows_text, &options);
  for (int i = 0; i < 20; ++i)
    run_rows(session, 1 + i % 8, i);
  assert_ok(pestle_session_wait(session, NULL));
  for (int i = 0; i < 8; ++i)
    run_rows(session, 1 + i, i);
  pestle_session_stats_t stats = stats_of(session);
  assert_int_equal(stats.quick_compiles, 3);
  assert_int_equal(stats.compiles, 6);
  assert_int_equal(stats.replaced, 3);
  assert_int_equal(stats.quick, 0);
  assert_int_equal(stats.executables, 3);
  assert_int_equal(stats.failed_runs, 0);
  pestle_session_release(session);
  pestle_context_release(context);
}

// Both tiers have entries of their own in the cache, and a full plan that is there
// is taken at once.
static void test_quick_cache(void** state) {
  (void)state;
  char cache[128];
  (void)snprintf(cache, sizeof(cache), "%s/tiers", folder);
  pestle_context_options_t of_context = {.struct_size = sizeof(of_context),
                                         .cache_dir = cache,
                                         .backend_path = "/nonexistent",
                                         .threads = 2};
  pestle_session_options_t options = {.struct_size = sizeof(options),
                                      .quick = true};
  for (int round = 0; round < 2; ++round) {
    pestle_context_t* context;
    assert_ok(pestle_context_create(&of_context, &context));
    pestle_session_t* session = open_text(context, rows_text, &options);
    run_rows(session, 8, 1);
    assert_ok(pestle_session_wait(session, NULL));
    run_rows(session, 8, 2);
    pestle_cache_stats_t stats = {.struct_size = sizeof(stats)};
    assert_ok(pestle_cache_stats(context, &stats));
    assert_int_equal(stats.misses, round ? 0 : 2);
    assert_int_equal(stats.disk_hits, round ? 2 : 0);
    assert_int_equal(stats.disk_entries, 2);
    pestle_session_release(session);
    pestle_context_release(context);
  }
}

static void fails(pestle_status_t status, pestle_status_code_t code,
                  const char* part) {
  assert_int_equal(pestle_status_code(status), code);
  if (!strstr(pestle_status_message(status), part))
    fail_msg("'%s' is not in '%s'", part, pestle_status_message(status));
  pestle_status_release(status);
}

static void test_wrong_runs(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  pestle_session_t* session = open_text(context, rows_text, NULL);
  float x[12] = {0}, y[12];
  int64_t dims[] = {3, 3}, wide[] = {3, 4}, flat[] = {3};
  pestle_named_tensor_t in = {"x", test_view(x, PESTLE_F32, 2, dims, NULL)};
  pestle_named_tensor_t out[2] = {{.name = "y"}, {.name = "y"}};
  fails(pestle_session_run(session, NULL, 0, NULL, 0, NULL),
        PESTLE_STATUS_INVALID_ARGUMENT, "lacks inputs: 'x'");
  in.name = "X";
  fails(pestle_session_run(session, &in, 1, NULL, 0, NULL),
        PESTLE_STATUS_NOT_FOUND, "no input 'X'; it has 'x'; did you mean 'x'?");
  in.name = "x";
  fails(pestle_session_run(session, &in, 1, out, 2, NULL),
        PESTLE_STATUS_INVALID_ARGUMENT, "output 'y' is given twice");
  in.tensor.shape = wide;
  fails(pestle_session_run(session, &in, 1, out, 1, NULL),
        PESTLE_STATUS_INVALID_ARGUMENT,
        "input 'x' is f32[x.0, 3], the run gives f32[3, 4]");
  in.tensor = test_view(x, PESTLE_F32, 1, flat, NULL);
  fails(pestle_session_run(session, &in, 1, out, 1, NULL),
        PESTLE_STATUS_INVALID_ARGUMENT, "the run gives f32[3]");
  in.tensor = test_view(x, PESTLE_I32, 2, dims, NULL);
  fails(pestle_session_run(session, &in, 1, out, 1, NULL),
        PESTLE_STATUS_INVALID_ARGUMENT, "the run gives i32[3, 3]");
  run_rows(session, 8, 1);
  in.tensor = test_view(x, PESTLE_F32, 2, dims, NULL);
  out[0].tensor = test_view(y, PESTLE_F32, 2, wide, NULL);
  fails(pestle_session_run(session, &in, 1, out, 1, NULL),
        PESTLE_STATUS_INVALID_ARGUMENT, "output 'y'");
  in.tensor.data = NULL;
  out[0].tensor = (pestle_tensor_t){0};
  fails(pestle_session_run(session, &in, 1, out, 1, NULL),
        PESTLE_STATUS_INVALID_ARGUMENT, "'x'");
  assert_null(out[0].tensor.data);
  assert_true(stats_of(session).failed_runs >= 7);
  assert_ok(pestle_session_wait(session, NULL));
  run_rows(session, 3, 1);
  pestle_session_release(session);
  pestle_context_release(context);
}

static void test_wrong_shapes(void** state) {
  (void)state;
  static const struct {
    const char *shapes, *part;
    pestle_status_code_t code;
  } wrong[] = {
      {"y.0=1", "no input has a dim named 'y.0'; they have 'x.0'",
       PESTLE_STATUS_NOT_FOUND},
      {"x.0", "declares no shapes", PESTLE_STATUS_INVALID_ARGUMENT},
      {"x.0=", "declares no shapes", PESTLE_STATUS_INVALID_ARGUMENT},
      {"x.0=0", "'0' of dim 'x.0'", PESTLE_STATUS_INVALID_ARGUMENT},
      {"x.0=1,two", "'two' of dim 'x.0'", PESTLE_STATUS_INVALID_ARGUMENT},
      {"x.0=4..2", "'4..2' of dim 'x.0'", PESTLE_STATUS_INVALID_ARGUMENT},
      {"x.0=1;x.0=2", "declared twice", PESTLE_STATUS_INVALID_ARGUMENT},
      {"", "nothing says how large dim 0 ('x.0')",
       PESTLE_STATUS_INVALID_ARGUMENT},
  };
  pestle_context_t* context = make_context();
  const char* path = file("model.mlir", rows_text);
  pestle_session_t* session;
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
    pestle_session_options_t options = {.struct_size = sizeof(options),
                                        .shapes = wrong[i].shapes};
    fails(pestle_session_create(context, path, &options, &session),
          wrong[i].code, wrong[i].part);
    assert_null(session);
  }
  pestle_session_options_t lost = {
      .struct_size = sizeof(lost), .quick = true, .waiting = true};
  fails(pestle_session_create(context, path, &lost, &session),
        PESTLE_STATUS_INVALID_ARGUMENT, "quick and waiting");
  assert_null(session);
  fails(pestle_session_create(context, "/nonexistent.onnx", NULL, &session),
        PESTLE_STATUS_NOT_FOUND, "/nonexistent.onnx");
  pestle_context_release(context);
}

// A session that goes while its thread compiles stops that.
static void test_release_at_work(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  pestle_session_options_t options = {.struct_size = sizeof(options),
                                      .shapes = "x.0=1..64"};
  for (int i = 0; i < 5; ++i)
    pestle_session_release(open_text(context, rows_text, &options));
  options.quick = true;
  for (int i = 0; i < 5; ++i)
    pestle_session_release(open_text(context, rows_text, &options));
  pestle_session_t* session = open_text(context, rows_text, &options);
  int32_t cancel = 1;
  pestle_control_t control = {.struct_size = sizeof(control),
                              .cancel = &cancel};
  pestle_status_t status = pestle_session_wait(session, &control);
  // It may have been ready.
  assert_true(!status || pestle_status_code(status) == PESTLE_STATUS_CANCELLED);
  pestle_status_release(status);
  pestle_session_retain(session);
  pestle_session_release(session);
  pestle_session_release(session);
  pestle_context_release(context);
}

int main(void) {
  (void)snprintf(folder, sizeof(folder), "/tmp/pestle-session-XXXXXX");
  if (!mkdtemp(folder)) return 1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_first_come),
      cmocka_unit_test(test_declared),
      cmocka_unit_test(test_own_memory),
      cmocka_unit_test(test_not_apart),
      cmocka_unit_test(test_bounded),
      cmocka_unit_test(test_threads),
      cmocka_unit_test(test_plans),
      cmocka_unit_test(test_quick),
      cmocka_unit_test(test_quick_declared),
      cmocka_unit_test(test_quick_cache),
      cmocka_unit_test(test_wrong_runs),
      cmocka_unit_test(test_wrong_shapes),
      cmocka_unit_test(test_release_at_work),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  static const char* const names[] = {"model.mlir", "two.plan", "one.plan"};
  for (size_t i = 0; i < 3; ++i)
    (void)remove(file(names[i], NULL));
  (void)rmdir(folder);
  return failed;
}

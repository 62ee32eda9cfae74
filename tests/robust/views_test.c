// SPDX-License-Identifier: Apache-2.0
// Views of every kind on a compiled plan: strides, offsets, alignment, outputs
// given and allocated, donation, overlaps, and what is refused by name.
#include "robust/robust.h"

enum { M = 5, N = 12, ROOM = 4096 };

// y is an elementwise result of both inputs, z a reduction, t reads x again
// after y, so that y may not be written over x too early.
static const char text[] =
    "func.func @main(%x: tensor<5x12xf32> {pestle.name = \"x\"},\n"
    "    %u: tensor<5x12xf32> {pestle.name = \"u\"}) ->\n"
    "    (tensor<5x12xf32> {pestle.name = \"y\"},\n"
    "     tensor<5xf32> {pestle.name = \"z\"},\n"
    "     tensor<12x12xf32> {pestle.name = \"t\"}) {\n"
    "  %0 = stablehlo.multiply %x, %u : tensor<5x12xf32>\n"
    "  %y = stablehlo.add %0, %x : tensor<5x12xf32>\n"
    "  %c = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %z = stablehlo.reduce(%y init: %c) applies stablehlo.add across "
    "dimensions = [1] : (tensor<5x12xf32>, tensor<f32>) -> tensor<5xf32>\n"
    "  %t = stablehlo.dot_general %x, %u, contracting_dims = [0] x [0] : "
    "(tensor<5x12xf32>, tensor<5x12xf32>) -> tensor<12x12xf32>\n"
    "  return %y, %z, %t : tensor<5x12xf32>, tensor<5xf32>, "
    "tensor<12x12xf32>\n"
    "}\n";

static int64_t mn[] = {M, N}, z_dims[] = {M}, t_dims[] = {N, N};

typedef struct fixture_t {
  pestle_context_t* context;
  pestle_executable_t* e;
  _Alignas(64) char x[ROOM], u[ROOM], y[ROOM], z[ROOM], t[ROOM];
  pestle_tensor_t in[2], out[3];
} fixture_t;

static fixture_t f;

static int set_up(void** state) {
  (void)state;
  if (!robust_has("llvm")) return 0;
  f.context = robust_context(NULL);
  f.e = robust_executable(f.context, text, "llvm");
  return 0;
}

static int tear_down(void** state) {
  (void)state;
  pestle_executable_release(f.e);
  pestle_context_release(f.context);
  return 0;
}

// Small integers: every sum is exact, whatever its order.
static float x_at(int i, int j) {
  return (float)(i * 7 + j % 5 - 9);
}
static float u_at(int i, int j) {
  return (float)(j * 3 - i * 2 - 4);
}
static float y_at(int i, int j) {
  return x_at(i, j) * u_at(i, j) + x_at(i, j);
}

static void reset(void) {
  if (!f.e) {
    skip();
    __builtin_unreachable();
  }
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      ((float*)f.x)[i * N + j] = x_at(i, j);
      ((float*)f.u)[i * N + j] = u_at(i, j);
    }
  }
  memset(f.y, 0x5a, ROOM);
  memset(f.z, 0x5a, ROOM);
  memset(f.t, 0x5a, ROOM);
  f.in[0] = test_view(f.x, PESTLE_F32, 2, mn, NULL);
  f.in[1] = test_view(f.u, PESTLE_F32, 2, mn, NULL);
  f.out[0] = test_view(f.y, PESTLE_F32, 2, mn, NULL);
  f.out[1] = test_view(f.z, PESTLE_F32, 1, z_dims, NULL);
  f.out[2] = test_view(f.t, PESTLE_F32, 2, t_dims, NULL);
}

static pestle_status_t run(const pestle_run_options_t* options) {
  return pestle_executable_run(f.e, NULL, f.in, 2, f.out, 3, options);
}

// Element (i, j) of |view|; j of a vector is its only index.
static float element(const pestle_tensor_t* view, int i, int j) {
  int64_t rows = view->ndim == 2 && view->strides ? view->strides[0]
                 : view->ndim == 2                ? view->shape[1]
                                                  : 0;
  int64_t columns = view->strides ? view->strides[view->ndim - 1] : 1;
  float value;
  memcpy(&value,
         (char*)view->data + view->byte_offset + (i * rows + j * columns) * 4,
         4);
  return value;
}

// What |x| and |u| say, in those views' own terms.
typedef float (*input_fn_t)(int i, int j);

static void check(input_fn_t x, input_fn_t u) {
  for (int i = 0; i < M; ++i) {
    float sum = 0;
    for (int j = 0; j < N; ++j) {
      float y = x(i, j) * u(i, j) + x(i, j);
      assert_true(element(&f.out[0], i, j) == y);
      sum += y;
    }
    assert_true(element(&f.out[1], 0, i) == sum);
  }
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j < N; ++j) {
      float sum = 0;
      for (int k = 0; k < M; ++k)
        sum += x(k, i) * u(k, j);
      assert_true(element(&f.out[2], i, j) == sum);
    }
  }
}

// --- Inputs ---

typedef struct layout_t {
  int64_t strides[2];
  int64_t base;  // the element where (0, 0) lies
} layout_t;

static const layout_t layouts[] = {
    {{N, 1}, 0},                            // contiguous
    {{N, 1}, 3},                            // at an offset
    {{-N, 1}, N*(M - 1)},                   // rows backwards
    {{N, -1}, N - 1},                       // columns backwards
    {{-N, -1}, N* M - 1},                   // both
    {{1, M}, 0},                            // transposed
    {{-1, M}, M - 1},                       // and backwards
    {{2 * N + 1, 2}, 1},                    // gaps
    {{-(2 * N + 1), -2}, (2 * N + 1) * M},  // and backwards
    {{N + 1, 1}, 5},                        // padded rows
};
enum { LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };

// Lays |value| out at |memory| + |skew| bytes as |layout| has it.
static void lay_out(char* memory, const layout_t* layout, size_t skew,
                    input_fn_t value, int64_t* strides, pestle_tensor_t* view) {
  memset(memory, 0x77, ROOM);
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      int64_t at =
          layout->base + i * layout->strides[0] + j * layout->strides[1];
      float v = value(i, j);
      memcpy(memory + skew + at * 4, &v, 4);
    }
  }
  memcpy(strides, layout->strides, 2 * sizeof(int64_t));
  *view = test_view(memory + skew, PESTLE_F32, 2, mn, strides);
  view->byte_offset = (uint64_t)layout->base * 4;
}

static void test_inputs(void** state) {
  (void)state;
  // In place, at an element, and where no float lies.
  static const size_t skews[] = {0, 4, 64, 1};
  for (int a = 0; a < LAYOUTS; ++a) {
    for (int b = 0; b < LAYOUTS; ++b) {
      for (int s = 0; s < 4; ++s) {
        int64_t xs[2], us[2];
        reset();
        lay_out(f.x, &layouts[a], skews[s], x_at, xs, &f.in[0]);
        lay_out(f.u, &layouts[b], skews[(s + b) % 4], u_at, us, &f.in[1]);
        char before[ROOM];
        memcpy(before, f.x, ROOM);
        assert_ok(run(NULL));
        check(x_at, u_at);
        assert_memory_equal(before, f.x, ROOM);
      }
    }
  }
}

static float x_row(int i, int j) {
  return (void)i, x_at(0, j);
}
static float x_column(int i, int j) {
  return (void)j, x_at(i, 0);
}
static float x_one(int i, int j) {
  return (void)i, (void)j, x_at(0, 0);
}

static void test_broadcast(void** state) {
  (void)state;
  static const struct {
    int64_t strides[2];
    input_fn_t value;
  } rows[] = {{{0, 1}, x_row}, {{N, 0}, x_column}, {{0, 0}, x_one}};
  for (int r = 0; r < 3; ++r) {
    reset();
    int64_t strides[] = {rows[r].strides[0], rows[r].strides[1]};
    f.in[0].strides = strides;
    assert_ok(run(NULL));
    check(rows[r].value, u_at);
  }
  // One memory may be both inputs.
  reset();
  f.in[1] = f.in[0];
  assert_ok(run(NULL));
  check(x_at, x_at);
}

// --- Outputs ---

static void test_outputs(void** state) {
  (void)state;
  static const size_t skews[] = {0, 4, 64, 1};
  for (int a = 0; a < LAYOUTS; ++a) {
    for (int s = 0; s < 4; ++s) {
      reset();
      int64_t strides[] = {layouts[a].strides[0], layouts[a].strides[1]};
      f.out[0].data = f.y + skews[s];
      f.out[0].strides = strides;
      f.out[0].byte_offset = (uint64_t)layouts[a].base * 4;
      assert_ok(run(NULL));
      check(x_at, u_at);
      // And nothing else was written.
      char expected[ROOM];
      memset(expected, 0x5a, ROOM);
      for (int i = 0; i < M; ++i) {
        for (int j = 0; j < N; ++j) {
          float v = y_at(i, j);
          int64_t at = layouts[a].base + i * strides[0] + j * strides[1];
          memcpy(expected + skews[s] + at * 4, &v, 4);
        }
      }
      assert_memory_equal(f.y, expected, ROOM);
    }
  }
}

static void test_allocated(void** state) {
  (void)state;
  for (int given = 0; given < 8; ++given) {
    reset();
    for (int o = 0; o < 3; ++o) {
      if (!(given >> o & 1)) f.out[o] = (pestle_tensor_t){0};
    }
    assert_ok(run(NULL));
    check(x_at, u_at);
    static const int ranks[] = {2, 1, 2};
    for (int o = 0; o < 3; ++o) {
      assert_int_equal(f.out[o].ndim, ranks[o]);
      assert_int_equal(pestle_dtype_from_dlpack(f.out[o].dtype), PESTLE_F32);
      if (given >> o & 1) continue;
      assert_int_equal((uintptr_t)f.out[o].data % 64, 0);
      pestle_tensor_release(f.e, &f.out[o]);
    }
  }
}

// --- Donation and overlaps ---

static void test_donation(void** state) {
  (void)state;
  const char* both[] = {"x", "u"};
  pestle_run_options_t options = {
      .struct_size = sizeof(options), .donated = both, .donated_count = 2};
  // Nothing overlaps: donation changes nothing in the results.
  reset();
  assert_ok(run(&options));
  check(x_at, u_at);
  // y over x, then over u, though t still reads both.
  for (int over = 0; over < 2; ++over) {
    for (int shift = 0; shift < 2; ++shift) {
      reset();
      f.out[0].data = (over ? f.u : f.x) + shift * 64;
      pestle_status_t status = run(&options);
      if (!status) check(x_at, u_at);
      assert_ok(status);
    }
  }
  // t over both where they lie side by side.
  reset();
  memcpy(f.t, f.x, M * N * 4);
  memcpy(f.t + 256, f.u, M * N * 4);
  f.in[0].data = f.t;
  f.in[1].data = f.t + 256;
  assert_ok(run(&options));
  check(x_at, u_at);
  // One that is not donated, and one that does not exist.
  reset();
  options.donated_count = 1;
  f.out[0].data = f.u;
  assert_error(run(&options), INVALID_ARGUMENT,
               "output 'y' overlaps input 'u'");
  reset();
  both[0] = "v";
  assert_error(run(&options), INVALID_ARGUMENT, "'v'");
}

static void test_overlaps(void** state) {
  (void)state;
  reset();
  f.out[0].data = f.x;
  assert_error(run(NULL), INVALID_ARGUMENT, "output 'y' overlaps input 'x'");
  reset();
  f.out[2].data = f.u + M * N * 4 - 4;
  assert_error(run(NULL), INVALID_ARGUMENT, "output 't' overlaps input 'u'");
  reset();
  f.out[2].data = f.y + 4;
  assert_error(run(NULL), INVALID_ARGUMENT, "output 't' overlaps output 'y'");
  // By a stride backwards.
  reset();
  int64_t strides[] = {-N, 1};
  f.out[0].data = f.x + (M * N + N * (M - 1) - 1) * 4;
  f.out[0].strides = strides;
  assert_error(run(NULL), INVALID_ARGUMENT, "output 'y' overlaps input 'x'");
  // Side by side is no overlap.
  reset();
  f.out[0].data = f.x + M * N * 4;
  assert_ok(run(NULL));
  check(x_at, u_at);
  // An output names each element once.
  reset();
  int64_t zero[] = {0, 1};
  f.out[0].strides = zero;
  assert_error(run(NULL), INVALID_ARGUMENT, "output 'y'");
}

// --- Mismatches ---

static void spoil(pestle_tensor_t* view, int how) {
  static int64_t wrong_dims[2], overflow[] = {INT64_MAX / 2, 1};
  switch (how) {
    case 0:
      view->dtype = pestle_dtype_to_dlpack(PESTLE_F64);
      break;
    case 1:
      view->dtype.lanes = 4;
      break;
    case 2:
      view->ndim += 1;
      break;
    case 3:
      view->ndim -= 1;
      break;
    case 4:
      wrong_dims[0] = view->shape[0];
      wrong_dims[1] = view->ndim > 1 ? view->shape[1] + 1 : 0;
      if (view->ndim == 1) wrong_dims[0] += 1;
      view->shape = wrong_dims;
      break;
    case 5:
      view->device.device_type = PESTLE_DEVICE_CUDA;
      break;
    case 6:
      view->strides = overflow;
      break;
    default:
      view->shape = NULL;
      break;
  }
}

static void test_mismatches(void** state) {
  (void)state;
  static const char* const names[] = {"input 'x'", "input 'u'", "output 'y'",
                                      "output 'z'", "output 't'"};
  static const char* const parts[] = {"dtype", "dtype",  "rank",    "rank",
                                      "shape", "device", "address", "rank"};
  for (int v = 0; v < 5; ++v) {
    for (int how = 0; how < 8; ++how) {
      reset();
      spoil(v < 2 ? &f.in[v] : &f.out[v - 2], how);
      pestle_status_t status = run(NULL);
      char message[1024];
      pestle_status_format(status, message, sizeof(message));
      if (!strstr(message, names[v]) || !strstr(message, parts[how])) {
        print_error("%s spoilt by %d: %s\n", names[v], how, message);
        fail();
      }
      assert_code(status, INVALID_ARGUMENT);
    }
  }
  reset();
  f.in[0].data = NULL;
  assert_error(run(NULL), INVALID_ARGUMENT, "input 'x' has no data");
  reset();
  assert_code(pestle_executable_run(f.e, NULL, f.in, 1, f.out, 3, NULL),
              INVALID_ARGUMENT);
  assert_code(pestle_executable_run(f.e, NULL, f.in, 2, f.out, 2, NULL),
              INVALID_ARGUMENT);
  // After all of that it still runs.
  assert_ok(run(NULL));
  check(x_at, u_at);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_inputs),     cmocka_unit_test(test_broadcast),
      cmocka_unit_test(test_outputs),    cmocka_unit_test(test_allocated),
      cmocka_unit_test(test_donation),   cmocka_unit_test(test_overlaps),
      cmocka_unit_test(test_mismatches),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}

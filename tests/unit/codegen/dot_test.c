// SPDX-License-Identifier: Apache-2.0
// Sums of products of bytes and of bf16, compiled whole: exact for bytes, on
// every device and for CPUs with and without short dot products, over shapes
// with tails, signs, extremes, layouts and padding; what legalisation makes of
// the ops themselves.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "ir/ref/ref.h"
#include "pestle/pestle.h"
#include "unit/codegen/kir_test.h"

static pestle_context_t* context;

// --- Running ---

typedef struct case_t {
  const char* text;
  const void* inputs[3];
  uint32_t input_count;
  const char* what;
} case_t;

// The bytes of the only result, to be freed; NULL: no such device.
static void* run_on(const case_t* c, const char* spec, const char* cpu,
                    size_t size) {
  pestle_module_t* module;
  pestle_device_t* device;
  pestle_plan_t* plan;
  pestle_executable_t* exe;
  pestle_status_t status = pestle_context_device(context, spec, &device);
  if (status) {
    assert_string_not_equal(spec, "ref");  // is part of the library
    pestle_status_release(status);
    return NULL;
  }
  assert_ok(
      pestle_module_parse(context, c->text, strlen(c->text), c->what, &module));
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .no_cache = true,
                                      .verify = true,
                                      .target_cpu = cpu};
  assert_ok(pestle_compile(context, module, device, &options, &plan));
  assert_ok(pestle_executable_create(context, plan, device, &exe));
  pestle_tensor_t in[3] = {{0}}, out = {0};
  for (uint32_t i = 0; i < c->input_count; ++i) {
    pestle_io_info_t io = pestle_executable_input(exe, i);
    in[i] = (pestle_tensor_t){.data = (void*)(uintptr_t)c->inputs[i],
                              .device = {PESTLE_DEVICE_CPU, 0},
                              .ndim = io.rank,
                              .dtype = pestle_dtype_to_dlpack(io.dtype),
                              .shape = (int64_t*)(uintptr_t)io.dims};
  }
  assert_ok(
      pestle_executable_run(exe, NULL, in, c->input_count, &out, 1, NULL));
  void* result = malloc(size);
  memcpy(result, out.data, size);
  pestle_tensor_release(exe, &out);
  pestle_executable_release(exe);
  pestle_plan_release(plan);
  pestle_module_release(module);
  return result;
}

static void check_exact(const case_t* c, const int32_t* want, size_t count) {
  static const char* const cpus[][2] = {
      {"llvm", NULL}, {"llvm", "x86-64-v3"}, {"ref", NULL}};
  for (int d = 0; d < 3; ++d) {
    int32_t* got = run_on(c, cpus[d][0], cpus[d][1], count * sizeof(*got));
    for (size_t i = 0; got && i < count; ++i) {
      if (got[i] == want[i]) continue;
      fail_msg("%s on %s, %s: element %zu is %d, should be %d", c->what,
               cpus[d][0], cpus[d][1] ? cpus[d][1] : "native", i, got[i],
               want[i]);
    }
    free(got);
  }
}

// --- Bytes ---

static uint32_t random_state = 1;
static uint32_t next_random(void) {
  random_state = random_state * 1664525u + 1013904223u;
  return random_state >> 8;
}

// Of |extreme|: the least and the largest alone.
static uint8_t* make_bytes(int64_t count, bool has_sign, bool extreme) {
  uint8_t* data = malloc((size_t)count);
  for (int64_t i = 0; i < count; ++i) {
    uint32_t r = next_random();
    data[i] = (uint8_t)r;
    if (extreme) data[i] = has_sign ? (r & 1 ? 127 : 128) : (r & 1 ? 255 : 0);
  }
  return data;
}

static int32_t value_of(uint8_t bits, bool has_sign) {
  return has_sign ? (int8_t)bits : bits;
}

typedef struct product_t {
  int64_t m, k, n;
  bool a_sign, b_sign, constant, turned, extreme;
} product_t;

static void append_constant(pestle_strbuf_t* out, const product_t* p,
                            const uint8_t* b, int64_t rows, int64_t columns) {
  pestle_strbuf_append_c(out, "  %b = stablehlo.constant dense<[");
  for (int64_t i = 0; i < rows; ++i) {
    pestle_strbuf_append_c(out, i ? ", [" : "[");
    for (int64_t j = 0; j < columns; ++j) {
      pestle_strbuf_appendf(out, "%s%d", j ? ", " : "",
                            value_of(b[i * columns + j], p->b_sign));
    }
    pestle_strbuf_append_c(out, "]");
  }
  pestle_strbuf_append_c(out, "]>");
}

static void write_product(const product_t* p, const uint8_t* b,
                          pestle_strbuf_t* out) {
  int64_t rows = p->turned ? p->n : p->k, columns = p->turned ? p->k : p->n;
  char bt[64], at[64];
  snprintf(at, sizeof(at), "tensor<%dx%dx%s>", (int)p->m, (int)p->k,
           p->a_sign ? "i8" : "ui8");
  snprintf(bt, sizeof(bt), "tensor<%dx%dx%s>", (int)rows, (int)columns,
           p->b_sign ? "i8" : "ui8");
  pestle_strbuf_appendf(out, "func.func @main(%%a: %s", at);
  if (!p->constant) pestle_strbuf_appendf(out, ", %%b: %s", bt);
  pestle_strbuf_appendf(out, ") -> tensor<%dx%dxi32> {\n", (int)p->m,
                        (int)p->n);
  if (p->constant) {
    append_constant(out, p, b, rows, columns);
    pestle_strbuf_appendf(out, " : %s\n", bt);
  }
  pestle_strbuf_appendf(
      out,
      "  %%y = stablehlo.dot_general %%a, %%b, contracting_dims = [1] x [%d] : "
      "(%s, %s) -> tensor<%dx%dxi32>\n  return %%y : tensor<%dx%dxi32>\n}\n",
      p->turned, at, bt, (int)p->m, (int)p->n, (int)p->m, (int)p->n);
}

// Sums wrap: computed without a sign.
static int32_t sum_of(const product_t* p, const uint8_t* a, const uint8_t* b,
                      int64_t i, int64_t j) {
  uint32_t sum = 0;
  for (int64_t k = 0; k < p->k; ++k) {
    uint8_t y = p->turned ? b[j * p->k + k] : b[k * p->n + j];
    sum += (uint32_t)(value_of(a[i * p->k + k], p->a_sign) *
                      value_of(y, p->b_sign));
  }
  return (int32_t)sum;
}

static void check_product(const product_t* p) {
  char what[128];
  snprintf(what, sizeof(what), "%dx%dx%d of %s and %s%s%s%s", (int)p->m,
           (int)p->k, (int)p->n, p->a_sign ? "i8" : "ui8",
           p->b_sign ? "i8" : "ui8", p->constant ? ", constant" : "",
           p->turned ? ", turned" : "", p->extreme ? ", extreme" : "");
  uint8_t* a = make_bytes(p->m * p->k, p->a_sign, p->extreme);
  uint8_t* b = make_bytes(p->k * p->n, p->b_sign, p->extreme);
  int32_t* want = malloc((size_t)(p->m * p->n) * sizeof(*want));
  for (int64_t i = 0; i < p->m * p->n; ++i) {
    want[i] = sum_of(p, a, b, i / p->n, i % p->n);
  }
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  write_product(p, b, &text);
  case_t c = {pestle_strbuf_cstr(&text), {a, b}, p->constant ? 1 : 2, what};
  check_exact(&c, want, (size_t)(p->m * p->n));
  pestle_strbuf_deinit(&text);
  free(a);
  free(b);
  free(want);
}

// Each number of taps with each pair of kinds; the rest goes round.
static void test_products(void** state) {
  (void)state;
  static const int64_t taps[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 130};
  static const int64_t rows[] = {1, 2, 3, 7, 13};
  static const int64_t columns[] = {1, 5, 16, 17, 33, 65};
  unsigned run = 0;
  for (size_t t = 0; t < sizeof(taps) / sizeof(taps[0]); ++t) {
    for (unsigned kinds = 0; kinds < 4; ++kinds, ++run) {
      product_t p = {.m = rows[run % 5],
                     .k = taps[t],
                     .n = columns[run % 6],
                     .a_sign = kinds & 1,
                     .b_sign = kinds & 2,
                     .constant = run % 7 < 3,
                     .turned = run % 3 == 1,
                     .extreme = run % 2};
      check_product(&p);
    }
  }
}

// 16 bits would saturate at the first word, 32 bits after 65793 taps: neither
// happens.
static void test_wraps(void** state) {
  (void)state;
  for (unsigned kinds = 0; kinds < 4; ++kinds) {
    product_t p = {
        .m = 2, .k = 140000, .n = 17, .a_sign = kinds & 1, .b_sign = kinds & 2};
    uint8_t* a = malloc((size_t)(p.m * p.k));
    uint8_t* b = malloc((size_t)(p.k * p.n));
    int32_t want[34];
    memset(a, p.a_sign ? 0x80 : 0xff, (size_t)(p.m * p.k));
    memset(b, p.b_sign ? 0x80 : 0xff, (size_t)(p.k * p.n));
    for (int i = 0; i < 34; ++i)
      want[i] = sum_of(&p, a, b, i / 17, i % 17);
    pestle_strbuf_t text;
    pestle_strbuf_init(pestle_allocator_system(), &text);
    write_product(&p, b, &text);
    case_t c = {pestle_strbuf_cstr(&text), {a, b}, 2, "sums that wrap"};
    check_exact(&c, want, 34);
    pestle_strbuf_deinit(&text);
    free(a);
    free(b);
  }
}

// --- Convolutions ---

typedef struct conv_t {
  int size, features, outputs, window, stride, padding, dilation;
  const char *x, *w;
  int zero;
} conv_t;

// x has its features last, but for |zero|, which is taken off it before.
static void write_convolution(const conv_t* c, int out, pestle_strbuf_t* text) {
  char x[64], wide[64], w[64], y[64];
  snprintf(x, sizeof(x), "tensor<1x%dx%dx%dx%s>", c->size, c->size, c->features,
           c->x);
  snprintf(wide, sizeof(wide), "tensor<1x%dx%dx%dxi32>", c->size, c->size,
           c->features);
  snprintf(w, sizeof(w), "tensor<%dx%dx%dx%dx", c->window, c->window,
           c->features, c->outputs);
  snprintf(y, sizeof(y), "tensor<1x%dx%dx%dxi32>", out, out, c->outputs);
  pestle_strbuf_appendf(text,
                        "func.func @main(%%x: %s, %%w: %s%s>) -> %s {\n"
                        "  %%0 = stablehlo.convert %%x : (%s) -> %s\n"
                        "  %%1 = stablehlo.constant dense<%d> : %s\n"
                        "  %%2 = stablehlo.subtract %%0, %%1 : %s\n"
                        "  %%3 = stablehlo.convert %%w : (%s%s>) -> %si32>\n",
                        x, w, c->w, y, x, wide, c->zero, wide, wide, w, c->w,
                        w);
  pestle_strbuf_appendf(
      text,
      "  %%4 = stablehlo.convolution(%%2, %%3) dim_numbers = [b, 0, 1, "
      "f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [%d, %d], pad = "
      "[[%d, %d], [%d, %d]], lhs_dilate = [1, 1], rhs_dilate = [%d, %d], "
      "reverse = [false, false]} {batch_group_count = 1 : i64, "
      "feature_group_count = 1 : i64} : (%s, %si32>) -> %s\n"
      "  return %%4 : %s\n}\n",
      c->stride, c->stride, c->padding, c->padding, c->padding, c->padding,
      c->dilation, c->dilation, wide, w, y, y);
}

static void check_convolution(const conv_t* c) {
  int reach = (c->window - 1) * c->dilation + 1;
  int out = (c->size + 2 * c->padding - reach) / c->stride + 1;
  size_t count = (size_t)(out * out * c->outputs);
  uint8_t* x =
      make_bytes((int64_t)c->size * c->size * c->features, false, c->zero == 0);
  uint8_t* w = make_bytes(
      (int64_t)c->window * c->window * c->features * c->outputs, false, false);
  int32_t* want = malloc(count * sizeof(*want));
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  write_convolution(c, out, &text);
  pestle_module_t* module;
  assert_ok(
      pestle_module_parse(context, text.data, text.size, "conv", &module));
  const void* inputs[2] = {x, w};
  void* results[1] = {want};
  assert_ok(pestle_ref_evaluate_function(
      pestle_allocator_system(), pestle_module_entry(module), inputs, results));
  pestle_module_release(module);
  char what[128];
  snprintf(what, sizeof(what),
           "%d^2 x %d, window %d, stride %d, padding %d, "
           "%s and %s less %d",
           c->size, c->features, c->window, c->stride, c->padding, c->x, c->w,
           c->zero);
  case_t run = {pestle_strbuf_cstr(&text), {x, w}, 2, what};
  check_exact(&run, want, count);
  pestle_strbuf_deinit(&text);
  free(x);
  free(w);
  free(want);
}

static void test_convolutions(void** state) {
  (void)state;
  static const conv_t list[] = {
      {7, 8, 16, 3, 1, 1, 1, "ui8", "i8", 0},
      {7, 8, 16, 3, 1, 1, 1, "ui8", "i8", 5},
      {9, 4, 17, 3, 2, 2, 2, "i8", "i8", 0},
      {9, 4, 17, 3, 2, 2, 2, "i8", "i8", -9},
      {6, 3, 33, 3, 1, 1, 1, "ui8", "ui8", 0},
      {6, 3, 33, 3, 1, 1, 1, "ui8", "ui8", 255},
      {5, 20, 8, 1, 1, 0, 1, "i8", "ui8", 0},
      {8, 12, 3, 5, 1, 2, 1, "ui8", "i8", 128},
  };
  for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); ++i)
    check_convolution(&list[i]);
}

// --- bf16 ---

// The first row's last word reaches into the second, which begins with NaN:
// only that row has one in its sums.
static void test_bf16(void** state) {
  (void)state;
  enum { M = 7, N = 35 };
  for (int k = 1; k <= 33; k += k < 9 ? 1 : 8) {
    char text[512];
    snprintf(
        text, sizeof(text),
        "func.func @main(%%a: tensor<%dx%dxbf16>, %%b: tensor<%dx%dxbf16>) "
        "-> tensor<%dx%dxf32> {\n  %%y = stablehlo.dot_general %%a, %%b, "
        "contracting_dims = [1] x [0] : (tensor<%dx%dxbf16>, "
        "tensor<%dx%dxbf16>) -> tensor<%dx%dxf32>\n"
        "  return %%y : tensor<%dx%dxf32>\n}\n",
        M, k, k, N, M, N, M, k, k, N, M, N, M, N);
    uint16_t a[M * 33], b[33 * N];
    for (int i = 0; i < M * k; ++i) {
      a[i] = (uint16_t)pestle_float_encode(
          PESTLE_BF16, (double)(int)(next_random() % 2001) / 500 - 2);
    }
    for (int i = 0; i < k * N; ++i) {
      b[i] = (uint16_t)pestle_float_encode(
          PESTLE_BF16, (double)(int)(next_random() % 2001) / 500 - 2);
    }
    a[k] = 0x7fc0;
    case_t c = {text, {a, b}, 2, "bf16"};
    for (int d = 0; d < 3; ++d) {
      float* got = run_on(&c, d == 2 ? "ref" : "llvm",
                          d == 1 ? "x86-64-v3" : NULL, M * N * sizeof(*got));
      for (int e = 0; got && e < M * N; ++e) {
        double want = 0, size = 0;
        for (int t = 0; t < k; ++t) {
          double x = pestle_float_decode(PESTLE_BF16, a[e / N * k + t]) *
                     pestle_float_decode(PESTLE_BF16, b[t * N + e % N]);
          want += x;
          size += fabs(x);
        }
        if (e / N == 1) {
          assert_true(isnan(got[e]));
        } else {
          // Each of the sums is rounded once, its products perhaps.
          assert_true(fabs(got[e] - want) <= size * 0x1p-24 * (k + 2));
        }
      }
      free(got);
    }
  }
}

// --- Legalisation ---

// What `ref` has, which is everything.
static pestle_target_caps_t full_caps(void) {
  pestle_allocator_t memory = pestle_allocator_system();
  pestle_host_t host = kir_test_host(&memory);
  pestle_status_t status = NULL;
  const pestle_backend_t* ref = pestle_ref_backend_init(&host, &status);
  assert_ok(status);
  pestle_target_caps_t caps = {.struct_size = sizeof caps};
  assert_ok(ref->target->describe(ref->self, NULL, &caps));
  ref->deinit(ref->self);
  return caps;
}

static void make_dot(pestle_kir_builder_t* k, pestle_dtype_t dtype,
                     unsigned kinds) {
  pestle_kir_init(pestle_allocator_system(), "dot", "", k);
  uint32_t x = pestle_kir_add_buffer(k, "x", PESTLE_KIR_GLOBAL, PESTLE_U8, 1,
                                     64, PESTLE_KIR_READONLY);
  uint32_t y = pestle_kir_add_buffer(k, "y", PESTLE_KIR_GLOBAL, PESTLE_U16, 1,
                                     32, PESTLE_KIR_READONLY);
  uint32_t z =
      pestle_kir_add_buffer(k, "z", PESTLE_KIR_GLOBAL, dtype, 1, 16, 0);
  pestle_kir_id_t zero = pestle_kir_index(k, 0);
  pestle_kir_for(k, "g", zero, pestle_kir_index(k, 1), 1, PESTLE_KIR_GROUP_X);
  pestle_kir_id_t sum = pestle_kir_load(k, z, 16, zero, PESTLE_KIR_NONE, 0);
  sum = pestle_kir_dot(k, pestle_kir_load_words(k, x, 16, zero),
                       pestle_kir_load_words(k, y, 16, zero), sum, kinds);
  pestle_kir_store(k, z, zero, sum, PESTLE_KIR_NONE, 0);
  pestle_kir_end(k);
}

// Without the ops a target multiplies and adds: to the bit what `ref` has.
static void test_legalised(void** state) {
  (void)state;
  for (unsigned run = 0; run < 5; ++run) {
    pestle_dtype_t dtype = run == 4 ? PESTLE_F32 : PESTLE_I32;
    pestle_kir_builder_t k, legal;
    make_dot(&k, dtype, run % 4);
    pestle_target_caps_t caps = full_caps();
    caps.op_dtypes[PESTLE_KIR_DOT2] = caps.op_dtypes[PESTLE_KIR_DOT4] = 0;
    uint8_t* x = make_bytes(64, false, false);
    uint8_t* y = make_bytes(64, false, false);
    uint32_t sums[2][16] = {{0}};
    for (int i = 0; run == 4 && i < 32; ++i) {  // no NaN
      x[2 * i + 1] &= 0x3f;
      y[2 * i + 1] &= 0x3f;
    }
    void* buffers[2][3] = {{x, y, sums[0]}, {x, y, sums[1]}};
    kir_test_run_ok(&k, buffers[0]);
    assert_ok(
        pestle_kir_legalise(&k.view, &caps, PESTLE_NUMERICS_DEFAULT, &legal));
    for (uint32_t i = 0; i < legal.view.inst_count; ++i) {
      unsigned op = pestle_kir_inst(&legal.view, i)->op;
      assert_true(op != PESTLE_KIR_DOT2 && op != PESTLE_KIR_DOT4);
    }
    kir_test_run_ok(&legal, buffers[1]);
    assert_memory_equal(sums[0], sums[1], sizeof(sums[0]));
    pestle_kir_deinit(&legal);
    pestle_kir_deinit(&k);
    free(x);
    free(y);
  }
}

static int setup(void** state) {
  (void)state;
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .use_environment = true,
                                      .no_cache = true,
                                      .threads = 2};
  assert_ok(pestle_context_create(&options, &context));
  return 0;
}

static int teardown(void** state) {
  (void)state;
  pestle_context_release(context);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_products),     cmocka_unit_test(test_wraps),
      cmocka_unit_test(test_convolutions), cmocka_unit_test(test_bf16),
      cmocka_unit_test(test_legalised),
  };
  return cmocka_run_group_tests_name("short dot products", tests, setup,
                                     teardown);
}

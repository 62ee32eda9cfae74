// SPDX-License-Identifier: Apache-2.0
// The register-tiled matrix product that the design measures itself by: right
// against the interpreter, without spills, and its share of the FMA peak,
// measured in the same process. PESTLE_BENCH=1 prints more shapes.
#include <time.h>

#include "llvm_kernel.h"

#define NONE PESTLE_KIR_NONE

typedef struct shape_t {
  int64_t m, n, k;  // c[m][n] = a[m][k] * b, b packed as [k/kc][n/nr][kc][nr]
  int64_t mr, nv;   // the tile: mr rows of nv vectors
  unsigned lanes;
  int64_t kc, mc;
} shape_t;

static pestle_kir_id_t affine(pestle_kir_builder_t* b, pestle_kir_id_t a,
                              int64_t by, pestle_kir_id_t c) {
  return pestle_kir_madi(b, a, by, c);
}
static pestle_kir_id_t loop(pestle_kir_builder_t* b, const char* name,
                            int64_t count, int32_t step,
                            pestle_kir_axis_t axis) {
  return pestle_kir_for(b, name, pestle_kir_index(b, 0),
                        pestle_kir_index(b, count), step, axis);
}

typedef struct gemm_t {
  pestle_kir_builder_t* b;
  const shape_t* s;
  uint32_t a, p, c, acc, row;
  pestle_kir_id_t ko, jr;
} gemm_t;

static pestle_kir_id_t slot(const gemm_t* g, pestle_kir_id_t i,
                            pestle_kir_id_t j) {
  return affine(g->b, i, g->s->nv, j);
}

// acc = 0 in the first block of k, what c holds in the others.
static void begin_tile(const gemm_t* g, pestle_kir_id_t c0) {
  pestle_kir_builder_t* b = g->b;
  const shape_t* s = g->s;
  pestle_kir_alloc(b, g->acc);
  pestle_kir_if(b, pestle_kir_scalar(b, PESTLE_OP_EQ, g->ko,
                                     pestle_kir_index(b, 0), NONE));
  for (int side = 0; side < 2; ++side) {
    if (side) pestle_kir_else(b);
    pestle_kir_id_t i = loop(b, "i", s->mr, 1, PESTLE_KIR_UNROLL);
    pestle_kir_id_t j = loop(b, "j", s->nv, 1, PESTLE_KIR_UNROLL);
    pestle_kir_id_t at = affine(b, i, s->n, affine(b, j, s->lanes, c0));
    pestle_kir_id_t v = side ? pestle_kir_load(b, g->c, s->lanes, at, NONE, 4)
                             : pestle_kir_float(b, PESTLE_F32, s->lanes, 0);
    pestle_kir_store(b, g->acc, slot(g, i, j), v, NONE, 0);
    pestle_kir_end(b);
    pestle_kir_end(b);
  }
  pestle_kir_end(b);
}

static void multiply_tile(const gemm_t* g, pestle_kir_id_t a0) {
  enum { UNROLL = 4 };
  pestle_kir_builder_t* b = g->b;
  const shape_t* s = g->s;
  int64_t nr = s->nv * s->lanes;
  pestle_kir_id_t b0 =
      affine(b, g->ko, s->kc * s->n, affine(b, g->jr, s->kc * nr, NONE));
  pestle_kir_id_t k = loop(b, "k", s->kc, UNROLL, PESTLE_KIR_SERIAL);
  pestle_kir_id_t u = loop(b, "u", UNROLL, 1, PESTLE_KIR_UNROLL);
  pestle_kir_id_t ku = affine(b, u, 1, k);
  pestle_kir_alloc(b, g->row);
  pestle_kir_id_t j = loop(b, "j", s->nv, 1, PESTLE_KIR_UNROLL);
  pestle_kir_id_t at = affine(b, ku, nr, affine(b, j, s->lanes, b0));
  pestle_kir_store(b, g->row, j,
                   pestle_kir_load(b, g->p, s->lanes, at, NONE, 64), NONE, 0);
  pestle_kir_end(b);
  pestle_kir_id_t i = loop(b, "i", s->mr, 1, PESTLE_KIR_UNROLL);
  at = affine(b, i, s->k, affine(b, ku, 1, affine(b, g->ko, s->kc, a0)));
  pestle_kir_id_t x =
      pestle_kir_splat(b, pestle_kir_load(b, g->a, 1, at, NONE, 4), s->lanes);
  j = loop(b, "j", s->nv, 1, PESTLE_KIR_UNROLL);
  pestle_kir_id_t old =
      pestle_kir_load(b, g->acc, s->lanes, slot(g, i, j), NONE, 0);
  pestle_kir_id_t y = pestle_kir_load(b, g->row, s->lanes, j, NONE, 0);
  pestle_kir_store(b, g->acc, slot(g, i, j),
                   pestle_kir_scalar(b, PESTLE_OP_FMA, x, y, old), NONE, 0);
  for (int end = 0; end < 4; ++end)
    pestle_kir_end(b);
}

static void end_tile(const gemm_t* g, pestle_kir_id_t c0) {
  pestle_kir_builder_t* b = g->b;
  const shape_t* s = g->s;
  pestle_kir_id_t i = loop(b, "i", s->mr, 1, PESTLE_KIR_UNROLL);
  pestle_kir_id_t j = loop(b, "j", s->nv, 1, PESTLE_KIR_UNROLL);
  pestle_kir_store(b, g->c, affine(b, i, s->n, affine(b, j, s->lanes, c0)),
                   pestle_kir_load(b, g->acc, s->lanes, slot(g, i, j), NONE, 0),
                   NONE, 4);
  pestle_kir_end(b);
  pestle_kir_end(b);
}

static void make_gemm(const shape_t* s, pestle_kir_builder_t* out) {
  *out = kernel("gemm");
  pestle_kir_builder_t* b = out;
  gemm_t g = {.b = b, .s = s};
  g.a = global(b, "a", PESTLE_F32, s->m * s->k, PESTLE_KIR_READONLY);
  g.p = global(b, "b", PESTLE_F32, s->k * s->n, PESTLE_KIR_READONLY);
  g.c = global(b, "c", PESTLE_F32, s->m * s->n, 0);
  g.acc = pestle_kir_add_buffer(b, "acc", PESTLE_KIR_PRIVATE, PESTLE_F32,
                                s->lanes, s->mr * s->nv, 0);
  g.row = pestle_kir_add_buffer(b, "row", PESTLE_KIR_PRIVATE, PESTLE_F32,
                                s->lanes, s->nv, 0);
  pestle_kir_id_t ic = group(b, s->m / s->mc);
  g.ko = loop(b, "ko", s->k / s->kc, 1, PESTLE_KIR_SERIAL);
  g.jr = loop(b, "jr", s->n / (s->nv * s->lanes), 1, PESTLE_KIR_SERIAL);
  pestle_kir_id_t it = loop(b, "it", s->mc / s->mr, 1, PESTLE_KIR_SERIAL);
  pestle_kir_id_t row = affine(b, ic, s->mc / s->mr, it);
  pestle_kir_id_t a0 = affine(b, row, s->mr * s->k, NONE);
  pestle_kir_id_t c0 =
      affine(b, row, s->mr * s->n, affine(b, g.jr, s->nv * s->lanes, NONE));
  begin_tile(&g, c0);
  multiply_tile(&g, a0);
  end_tile(&g, c0);
  for (int end = 0; end < 4; ++end)
    pestle_kir_end(b);
}

static void right(void** state) {
  static const shape_t wide = {24, 128, 32, 6, 4, 16, 16, 12};
  static const shape_t narrow = {24, 32, 32, 6, 2, 8, 16, 12};
  pestle_kir_builder_t b;
  (void)state;
  make_gemm(&wide, &b);
  check_kernel(&b, fill_any, NULL);
  make_gemm(&narrow, &b);
  check_kernel(&b, fill_any, NULL);
}

// --- Spills ---

static unsigned spills(const shape_t* s, const char* cpu, const char* reg) {
  pestle_kir_builder_t b;
  pestle_blob_t text;
  make_gemm(s, &b);
  assert_ok(pestle_kir_finish(&b));
  pestle_kernel_options_t options = {.struct_size = sizeof options, .cpu = cpu};
  assert_ok(llvm_backend->target->print(llvm_backend->self, &b.view, &options,
                                        PESTLE_TEXT_ASM, &text));
  char* copy = calloc(1, text.size + 1);
  memcpy(copy, text.data, text.size);
  unsigned count = 0, fmas = 0;
  for (char* line = strtok(copy, "\n"); line; line = strtok(NULL, "\n")) {
    if (strstr(line, reg) && strstr(line, "[rsp")) ++count;
    if (strstr(line, reg) && strstr(line, "vfmadd")) ++fmas;
  }
  // Unrolled four times, nothing folded away and nothing twice.
  assert_int_equal(fmas, 4 * s->mr * s->nv);
  free(copy);
  host_free(NULL, text.data, text.size);
  pestle_kir_deinit(&b);
  return count;
}

static void no_spills(void** state) {
  static const shape_t zmm = {1020, 1024, 1024, 6, 4, 16, 512, 204};
  static const shape_t tall = {1022, 1024, 1024, 14, 2, 16, 512, 14 * 73};
  static const shape_t ymm = {1020, 1024, 1024, 6, 2, 8, 512, 204};
  (void)state;
  assert_int_equal(spills(&zmm, "znver4", "zmm"), 0);
  assert_int_equal(spills(&zmm, "skylake-avx512", "zmm"), 0);
  // 31 registers are live: one of them may move once.
  assert_in_range(spills(&tall, "znver4", "zmm"), 0, 2);
  assert_int_equal(spills(&ymm, "haswell", "ymm"), 0);
}

// --- Speed ---

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double best_of(const code_t* code, arena_t* a, int64_t groups,
                      int runs) {
  double best = 1e9;
  for (int r = 0; r < runs; ++r) {
    double begin = now();
    code->entry(code->self, a->slot, NULL, 0, groups, a->scratch);
    double time = now() - begin;
    if (time < best) best = time;
  }
  return best;
}

static void fill_small(const char* name, pestle_dtype_t dtype, void* data,
                       size_t count) {
  (void)name;
  (void)dtype;
  for (size_t i = 0; i < count; ++i)
    ((float*)data)[i] = (float)(i % 7) * 0.01f;
}

// Independent chains of fma in registers: what the core can do at most.
static double fma_peak(unsigned lanes) {
  enum { CHAINS = 12, STEPS = 1 << 16 };
  pestle_kir_builder_t b = kernel("peak");
  uint32_t out = global(&b, "out", PESTLE_F32, CHAINS * lanes, 0);
  uint32_t acc = pestle_kir_add_buffer(&b, "acc", PESTLE_KIR_PRIVATE,
                                       PESTLE_F32, lanes, CHAINS, 0);
  group(&b, 1);
  pestle_kir_id_t i = loop(&b, "i", CHAINS, 1, PESTLE_KIR_UNROLL);
  pestle_kir_id_t at = affine(&b, i, lanes, NONE);
  pestle_kir_store(&b, acc, i, pestle_kir_load(&b, out, lanes, at, NONE, 4),
                   NONE, 0);
  pestle_kir_end(&b);
  pestle_kir_id_t x = pestle_kir_float(&b, PESTLE_F32, lanes, 0.999);
  loop(&b, "s", STEPS, 1, PESTLE_KIR_SERIAL);
  i = loop(&b, "i", CHAINS, 1, PESTLE_KIR_UNROLL);
  pestle_kir_id_t v = pestle_kir_load(&b, acc, lanes, i, NONE, 0);
  pestle_kir_store(&b, acc, i, pestle_kir_scalar(&b, PESTLE_OP_FMA, v, x, x),
                   NONE, 0);
  pestle_kir_end(&b);
  pestle_kir_end(&b);
  i = loop(&b, "i", CHAINS, 1, PESTLE_KIR_UNROLL);
  pestle_kir_store(&b, out, affine(&b, i, lanes, NONE),
                   pestle_kir_load(&b, acc, lanes, i, NONE, 0), NONE, 4);
  pestle_kir_end(&b);
  pestle_kir_end(&b);
  assert_ok(pestle_kir_finish(&b));
  arena_t a;
  arena_init(&a, &b.view, fill_small);
  code_t code = code_make(llvm_backend, &b.view, NULL);
  double time = best_of(&code, &a, 1, 20);
  code_free(&code);
  arena_deinit(&a);
  pestle_kir_deinit(&b);
  return 2e-9 * (double)(CHAINS * STEPS * lanes) / time;
}

static double gemm_speed(const shape_t* s, int runs, double* out_compile_ms) {
  pestle_kir_builder_t b;
  make_gemm(s, &b);
  assert_ok(pestle_kir_finish(&b));
  arena_t a;
  arena_init(&a, &b.view, fill_small);
  double begin = now();
  code_t code = code_make(llvm_backend, &b.view, NULL);
  *out_compile_ms = 1e3 * (now() - begin);
  double time = best_of(&code, &a, s->m / s->mc, runs);
  code_free(&code);
  arena_deinit(&a);
  pestle_kir_deinit(&b);
  return 2e-9 * (double)(s->m * s->n * s->k) / time;
}

static void speed(void** state) {
  static const shape_t zmm[] = {
      {510, 512, 512, 6, 4, 16, 512, 102},
      {252, 256, 256, 6, 4, 16, 256, 126},
      {1020, 1024, 1024, 6, 4, 16, 512, 204},
      {1022, 1024, 1024, 14, 2, 16, 512, 14 * 73},
  };
  static const shape_t ymm[] = {{510, 512, 512, 6, 2, 8, 512, 102}};
  (void)state;
  pestle_target_caps_t caps = {.struct_size = sizeof caps};
  assert_ok(llvm_backend->target->describe(llvm_backend->self, NULL, &caps));
  bool wide = caps.vector_bytes == 64, bench = getenv("PESTLE_BENCH") != NULL;
  size_t count = wide && bench ? sizeof zmm / sizeof *zmm : 1;
  for (size_t i = 0; i < count; ++i) {
    const shape_t* s = wide ? &zmm[i] : &ymm[i];
    double ms, peak = fma_peak(s->lanes);
    double speed = gemm_speed(s, bench ? 40 : 10, &ms);
    print_message(
        "gemm %lldx%lldx%lld: %.1f GFLOP/s, %.0f %% of the FMA peak "
        "of %.1f; compiled in %.1f ms\n",
        (long long)s->m, (long long)s->n, (long long)s->k, speed,
        100 * speed / peak, peak, ms);
    // Far below what is expected, far above what a spilled tile would give;
    // sanitizers do not slow generated code down.
    assert_true(speed > 0.5 * peak);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(right),
      cmocka_unit_test(no_spills),
      cmocka_unit_test(speed),
  };
  int failed = llvm_setup(NULL);
  if (failed) return failed;
  return cmocka_run_group_tests(tests, NULL, llvm_teardown);
}

// SPDX-License-Identifier: Apache-2.0
// Loops, memory and lanes on a device: kernels in text. Those without lanes are
// held against the interpreter; of those with lanes the expected results are
// computed here.
#ifndef PESTLE_TESTS_UNIT_PLUGINS_GPU_FLOW_H_
#define PESTLE_TESTS_UNIT_PLUGINS_GPU_FLOW_H_

#include "gpu_kernel.h"

static inline pestle_kir_builder_t parsed(const char* text) {
  pestle_kir_builder_t b;
  assert_ok(pestle_kir_parse(pestle_allocator_system(), text, strlen(text),
                             "test", &b));
  return b;
}

static inline void check_text(const char* text, const int64_t* params) {
  pestle_kir_builder_t b = parsed(text);
  check_view(&b.view, fill_any, params);
  pestle_kir_deinit(&b);
}

// Masked runs of 4, aligned and not, at the edges and in the middle.
static void runs(void** state) {
  (void)state;
  check_text(
      "kernel @runs(\n"
      "    @x : global f32[102] readonly,\n"
      "    @h : global ui16[102] readonly,\n"
      "    @y : global f32[102],\n"
      "    @z : global ui16[102],\n"
      "    @w : global f32[100]) {\n"
      "  %0 = const 0 : index\n"
      "  %1 = const 26 : index\n"
      "  %2 = const 102 : index\n"
      "  %3 = const 25 : index\n"
      "  %4 = for %0 to %1 step 1 group.x : index name g {\n"
      "    %5 = madi %4, 4, %0 : index\n"
      "    %6 = mask %5, %2 : i1x4\n"
      "    %7 = load @x[%5], mask %6 : f32x4 align 16\n"
      "    %8 = add %7, %7 : f32x4\n"
      "    store @y[%5], %8, mask %6 align 16\n"
      "    %9 = load @h[%5], mask %6 : ui16x4 align 8\n"
      "    %10 = add %9, %9 : ui16x4\n"
      "    store @z[%5], %10, mask %6 align 8\n"
      "    %11 = lt %4, %3 : i1\n"
      "    if %11 {\n"
      "      %12 = const 1 : index\n"
      "      %13 = madi %4, 4, %12 : index\n"
      "      %14 = load @x[%13] : f32x4 align 4\n"
      "      store @w[%5], %14 align 16\n"
      "    }\n"
      "  }\n"
      "}\n",
      NULL);
}

static void loops(void** state) {
  const int64_t params[] = {5, -3};
  (void)state;
  check_text(
      "kernel @loops(\n"
      "    @x : global i32[600] readonly,\n"
      "    @y : global i32[150],\n"
      "    @acc : private i32[3],\n"
      "    @tile : shared i32[4]) {\n"
      "  %0 = const 0 : index\n"
      "  %1 = const 150 : index\n"
      "  %2 = const 4 : index\n"
      "  %3 = const 3 : index\n"
      "  %4 = for %0 to %1 step 1 group.x : index name g {\n"
      "    alloc @acc\n"
      "    %5 = for %0 to %3 step 1 unroll : index name u {\n"
      "      %6 = cast %5 : i32\n"
      "      store @acc[%5], %6 align 4\n"
      "    }\n"
      "    %7 = for %0 to %2 step 1 serial : index name k {\n"
      "      %8 = madi %4, 4, %7 : index\n"
      "      %9 = load @x[%8] : i32 align 4\n"
      "      store @tile[%7], %9 align 4\n"
      "      %10 = for %0 to %3 step 1 unroll : index name u {\n"
      "        %11 = load @acc[%10] : i32 align 4\n"
      "        %12 = add %11, %9 : i32\n"
      "        store @acc[%10], %12 align 4\n"
      "      }\n"
      "    }\n"
      "    %13 = const 2 : index\n"
      "    %14 = load @acc[%13] : i32 align 4\n"
      "    %15 = load @tile[%3] : i32 align 4\n"
      "    %16 = param 0 : i32\n"
      "    %17 = param 1 : i32\n"
      "    %18 = lt %14, %15 : i1\n"
      "    if %18 {\n"
      "      %19 = add %14, %16 : i32\n"
      "      store @y[%4], %19 align 4\n"
      "    } else {\n"
      "      %20 = multiply %15, %17 : i32\n"
      "      store @y[%4], %20 align 4\n"
      "    }\n"
      "  }\n"
      "}\n",
      params);
}

static inline void fill_index(const char* name, pestle_dtype_t dtype,
                              void* data, size_t count) {
  fill_any(name, dtype, data, count);
  if (dtype != PESTLE_I32 && dtype != PESTLE_I64 && dtype != PESTLE_U8) return;
  // A permutation of 0 .. 63 for scatters too.
  for (size_t i = 0; i < count; ++i) {
    size_t at = (i * 29 + 7) % 64;
    if (dtype == PESTLE_U8) ((uint8_t*)data)[i] = (uint8_t)at;
    if (dtype == PESTLE_I32) ((int32_t*)data)[i] = (int32_t)at;
    if (dtype == PESTLE_I64) ((int64_t*)data)[i] = (int64_t)at;
  }
}

static inline void check_gather(pestle_dtype_t index, unsigned lanes) {
  pestle_kir_builder_t b = kernel("gathers");
  uint32_t at = global(&b, "at", index, 64, PESTLE_KIR_READONLY);
  uint32_t x = global(&b, "x", PESTLE_BF16, 64, PESTLE_KIR_READONLY);
  uint32_t y = global(&b, "y", PESTLE_BF16, 64, 0);
  uint32_t z = global(&b, "z", PESTLE_BF16, 64, 0);
  pestle_kir_id_t g = group(&b, (64 + lanes - 1) / lanes);
  pestle_kir_id_t i = pestle_kir_madi(&b, g, lanes, PESTLE_KIR_NONE);
  pestle_kir_id_t on = pestle_kir_mask(&b, i, pestle_kir_index(&b, 61), lanes);
  pestle_kir_id_t indices =
      pestle_kir_load(&b, at, lanes, i, on, pestle_dtype_size(index));
  // What is loaded is not bounded; a clamp says that it is.
  pestle_kir_id_t zero = pestle_kir_int(&b, index, lanes, 0);
  pestle_kir_id_t top = pestle_kir_int(&b, index, lanes, 63);
  indices = pestle_kir_scalar(&b, PESTLE_OP_CLAMP, zero, indices, top);
  pestle_kir_id_t v = pestle_kir_gather(&b, x, indices, on);
  pestle_kir_store(&b, y, i, v, on, 0);
  pestle_kir_inst_t scatter = {.op = PESTLE_KIR_SCATTER,
                               .lanes = (uint8_t)lanes,
                               .align_log2 = 1,
                               .arg = {z, indices, v, on}};
  pestle_kir_put(&b, scatter);
  pestle_kir_end(&b);
  check_kernel(&b, fill_index, NULL);
}

static void gathers(void** state) {
  (void)state;
  check_gather(PESTLE_I32, 1);
  check_gather(PESTLE_I32, 4);
  check_gather(PESTLE_U8, 3);
  if (caps.storage_dtypes >> PESTLE_I64 & 1) check_gather(PESTLE_I64, 2);
}

static void lane_moves(void** state) {
  (void)state;
  check_text(
      "kernel @lanes(\n"
      "    @x : global f32[64] readonly,\n"
      "    @y : global f32[128],\n"
      "    @s : global f32[16]) {\n"
      "  %0 = const 0 : index\n"
      "  %1 = const 16 : index\n"
      "  %2 = for %0 to %1 step 1 group.x : index name g {\n"
      "    %3 = madi %2, 4, %0 : index\n"
      "    %4 = load @x[%3] : f32x4 align 16\n"
      "    %5 = extract %4, 2 : f32\n"
      "    %6 = splat %5 : f32x4\n"
      "    %7 = insert %4, %5, 0 : f32x4\n"
      "    %8 = reduce %7, add : f32\n"
      "    store @s[%2], %8 align 4\n"
      "    %9 = shuffle %7, %6, [7, 0, 5, 2] : f32x4\n"
      "    %10 = iota : i32x4\n"
      "    %11 = cast %10 : f32x4\n"
      "    %12 = add %9, %11 : f32x4\n"
      "    %13 = madi %2, 8, %0 : index\n"
      "    store @y[%13], %12 align 16\n"
      "    %14 = const 4 : index\n"
      "    %15 = madi %2, 8, %14 : index\n"
      "    store @y[%15], %6 align 16\n"
      "  }\n"
      "}\n",
      NULL);
}

// More arguments than any language passes by themselves.
static void many_arguments(void** state) {
  enum { N = 40 };
  (void)state;
  pestle_kir_builder_t b = kernel("many");
  uint32_t buffer[N];
  for (unsigned i = 0; i < N; ++i) {
    char name[16];
    snprintf(name, sizeof name, "a%u", i);
    buffer[i] = global(&b, name, PESTLE_I32, 33, i < N / 2 ? 1 : 0);
  }
  pestle_kir_id_t g = group(&b, 33);
  for (unsigned i = 0; i < N / 2; ++i) {
    pestle_kir_id_t x =
        pestle_kir_load(&b, buffer[i], 1, g, PESTLE_KIR_NONE, 0);
    pestle_kir_store(&b, buffer[i + N / 2], g, x, PESTLE_KIR_NONE, 0);
  }
  pestle_kir_end(&b);
  check_kernel(&b, fill_any, NULL);
}

// --- Lanes ---

static inline void lanes_run(const char* text, const int64_t* params,
                             buffers_t* out) {
  pestle_kir_builder_t b = parsed(text);
  buffers_init(out, &b.view, fill_any);
  for (uint32_t i = 0; i < out->count; ++i) {
    float* x = out->slot[i];
    if (out->buffer[i]->dtype != PESTLE_F32) continue;
    for (size_t e = 0; e < out->buffer[i]->count; ++e) {
      x[e] = (float)((e * 37 + i * 11) % 101) - 50.0f;
    }
  }
  run_on_gpu(&b.view, out, params);
  pestle_kir_deinit(&b);
}

// Rows of 200 summed by 64 lanes: each sums its part, then a tree in shared
// memory; the extents of the lane loops differ.
static const char k_sum[] =
    "kernel @sum(\n"
    "    @x : global f32[1400] readonly,\n"
    "    @y : global f32[7],\n"
    "    @acc : private f32[1],\n"
    "    @part : shared f32[64]) {\n"
    "  %0 = const 0 : index\n"
    "  %1 = const 7 : index\n"
    "  %2 = const 64 : index\n"
    "  %3 = const 200 : index\n"
    "  %4 = const 1 : index\n"
    "  %5 = for %0 to %1 step 1 group.x : index name row {\n"
    "    alloc @acc\n"
    "    %6 = const 0.0 : f32\n"
    "    store @acc[%0], %6 align 4\n"
    "    %7 = for %0 to %2 step 1 lane.x : index name lane {\n"
    "      %8 = for %7 to %3 step 64 serial : index name k {\n"
    "        %9 = madi %5, 200, %8 : index\n"
    "        %10 = load @x[%9] : f32 align 4\n"
    "        %11 = load @acc[%0] : f32 align 4\n"
    "        %12 = add %11, %10 : f32\n"
    "        store @acc[%0], %12 align 4\n"
    "      }\n"
    "      %13 = load @acc[%0] : f32 align 4\n"
    "      store @part[%7], %13 align 4\n"
    "    }\n"
    "    barrier\n"
    "    %14 = const 8 : index\n"
    "    %15 = for %0 to %14 step 1 lane.x : index name lane {\n"
    "      store @acc[%0], %6 align 4\n"
    "      %16 = for %0 to %14 step 1 serial : index name k {\n"
    "        %17 = madi %15, 8, %16 : index\n"
    "        %18 = load @part[%17] : f32 align 4\n"
    "        %19 = load @acc[%0] : f32 align 4\n"
    "        %20 = add %19, %18 : f32\n"
    "        store @acc[%0], %20 align 4\n"
    "      }\n"
    "    }\n"
    "    barrier\n"
    "    %21 = for %0 to %14 step 1 lane.x : index name lane {\n"
    "      %22 = load @acc[%0] : f32 align 4\n"
    "      store @part[%21], %22 align 4\n"
    "    }\n"
    "    barrier\n"
    "    %23 = for %0 to %4 step 1 lane.x : index name lane {\n"
    "      store @acc[%0], %6 align 4\n"
    "      %24 = for %0 to %14 step 1 serial : index name k {\n"
    "        %25 = load @part[%24] : f32 align 4\n"
    "        %26 = load @acc[%0] : f32 align 4\n"
    "        %27 = add %26, %25 : f32\n"
    "        store @acc[%0], %27 align 4\n"
    "      }\n"
    "      %28 = load @acc[%0] : f32 align 4\n"
    "      store @y[%5], %28 align 4\n"
    "    }\n"
    "  }\n"
    "}\n";

static void lanes_share(void** state) {
  buffers_t a;
  (void)state;
  lanes_run(k_sum, NULL, &a);
  const float *x = a.slot[0], *y = a.slot[1];
  for (int r = 0; r < 7; ++r) {
    // Small whole numbers: any order gives the same.
    float want = 0;
    for (int k = 0; k < 200; ++k)
      want += x[r * 200 + k];
    assert_float_equal(y[r], want, 0);
  }
  buffers_deinit(&a);
}

// Lanes in two axes, groups in two; a transpose through shared memory.
static void lanes_in_axes(void** state) {
  buffers_t a;
  (void)state;
  lanes_run(
      "kernel @turn(\n"
      "    @x : global f32[384] readonly,\n"
      "    @y : global f32[384],\n"
      "    @tile : shared f32[64]) {\n"
      "  %0 = const 0 : index\n"
      "  %1 = const 3 : index\n"
      "  %2 = const 2 : index\n"
      "  %3 = const 8 : index\n"
      "  %4 = for %0 to %2 step 1 group.y : index name gy {\n"
      "    %5 = for %0 to %1 step 1 group.x : index name gx {\n"
      "      %6 = for %0 to %3 step 1 lane.y : index name ly {\n"
      "        %7 = for %0 to %3 step 1 lane.x : index name lx {\n"
      "          %8 = madi %5, 8, %7 : index\n"
      "          %9 = madi %4, 8, %6 : index\n"
      "          %10 = madi %9, 24, %8 : index\n"
      "          %11 = load @x[%10] : f32 align 4\n"
      "          %12 = madi %6, 8, %7 : index\n"
      "          store @tile[%12], %11 align 4\n"
      "        }\n"
      "      }\n"
      "      barrier\n"
      "      %13 = for %0 to %3 step 1 lane.y : index name ly {\n"
      "        %14 = for %0 to %3 step 1 lane.x : index name lx {\n"
      "          %15 = madi %14, 8, %13 : index\n"
      "          %16 = load @tile[%15] : f32 align 4\n"
      "          %17 = madi %5, 8, %13 : index\n"
      "          %18 = madi %4, 8, %14 : index\n"
      "          %19 = madi %17, 16, %18 : index\n"
      "          store @y[%19], %16 align 4\n"
      "        }\n"
      "      }\n"
      "    }\n"
      "  }\n"
      "}\n",
      NULL, &a);
  const float *x = a.slot[0], *y = a.slot[1];
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 24; ++j)
      assert_float_equal(y[j * 16 + i], x[i * 24 + j], 0);
  }
  buffers_deinit(&a);
}

static inline pestle_kir_id_t lane_loop(pestle_kir_builder_t* b,
                                        int64_t lanes) {
  return pestle_kir_for(b, "lane", pestle_kir_index(b, 0),
                        pestle_kir_index(b, lanes), 1, PESTLE_KIR_LANE_X);
}

static inline void sg_reduce(pestle_kir_builder_t* b, uint32_t buffer,
                             pestle_op_t op, unsigned lanes) {
  pestle_kir_inst_t inst = {
      .op = PESTLE_KIR_SG_REDUCE,
      .arg = {buffer, pestle_kir_index(b, 0), (uint32_t)op, lanes}};
  pestle_kir_put(b, inst);
}

// The maximum over aligned 8 lanes of 32, a sum over 4.
static void lanes_reduce(void** state) {
  buffers_t a;
  (void)state;
  pestle_kir_builder_t b = kernel("folds");
  uint32_t in = global(&b, "x", PESTLE_F32, 96, PESTLE_KIR_READONLY);
  uint32_t most = global(&b, "y", PESTLE_F32, 96, 0);
  uint32_t sum = global(&b, "z", PESTLE_I32, 96, 0);
  uint32_t m =
      pestle_kir_add_buffer(&b, "m", PESTLE_KIR_PRIVATE, PESTLE_F32, 1, 1, 0);
  uint32_t n =
      pestle_kir_add_buffer(&b, "n", PESTLE_KIR_PRIVATE, PESTLE_I32, 1, 1, 0);
  pestle_kir_id_t none = PESTLE_KIR_NONE, zero = pestle_kir_index(&b, 0);
  pestle_kir_id_t g = group(&b, 3);
  pestle_kir_alloc(&b, m);
  pestle_kir_alloc(&b, n);
  pestle_kir_id_t lane = lane_loop(&b, 32);
  pestle_kir_id_t at = pestle_kir_madi(&b, g, 32, lane);
  pestle_kir_store(&b, m, zero, pestle_kir_load(&b, in, 1, at, none, 0), none,
                   4);
  pestle_kir_store(&b, n, zero, pestle_kir_cast(&b, lane, PESTLE_I32), none, 4);
  pestle_kir_end(&b);
  sg_reduce(&b, m, PESTLE_OP_MAXIMUM, 8);
  sg_reduce(&b, n, PESTLE_OP_ADD, 4);
  lane = lane_loop(&b, 32);
  at = pestle_kir_madi(&b, g, 32, lane);
  pestle_kir_store(&b, most, at, pestle_kir_load(&b, m, 1, zero, none, 4), none,
                   0);
  pestle_kir_store(&b, sum, at, pestle_kir_load(&b, n, 1, zero, none, 4), none,
                   0);
  pestle_kir_end(&b);
  pestle_kir_end(&b);
  assert_ok(pestle_kir_finish(&b));
  buffers_init(&a, &b.view, fill_any);
  for (int i = 0; i < 96; ++i)
    ((float*)a.slot[0])[i] = (float)(i * 37 % 101) - 50.0f;
  run_on_gpu(&b.view, &a, NULL);
  pestle_kir_deinit(&b);
  const float *x = a.slot[0], *y = a.slot[1];
  const int32_t* z = a.slot[2];
  for (int i = 0; i < 96; ++i) {
    float most = x[i & ~7];
    for (int l = 1; l < 8; ++l)
      most = fmaxf(most, x[(i & ~7) + l]);
    assert_float_equal(y[i], most, 0);
    int first = (i % 32) & ~3;
    assert_int_equal(z[i], 4 * first + 6);
  }
  buffers_deinit(&a);
}

#define GPU_FLOW_TESTS                                                        \
  cmocka_unit_test(runs), cmocka_unit_test(loops), cmocka_unit_test(gathers), \
      cmocka_unit_test(lane_moves), cmocka_unit_test(many_arguments),         \
      cmocka_unit_test(lanes_share), cmocka_unit_test(lanes_in_axes),         \
      cmocka_unit_test(lanes_reduce)

#endif  // PESTLE_TESTS_UNIT_PLUGINS_GPU_FLOW_H_

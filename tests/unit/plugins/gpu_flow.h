// SPDX-License-Identifier: Apache-2.0
// Loops, memory and lanes on a device, against the interpreter.
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
  const unsigned N = gpu_most_arguments < 40 ? gpu_most_arguments - 1 : 40;
  (void)state;
  pestle_kir_builder_t b = kernel("many");
  uint32_t buffer[40];
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

static inline pestle_kir_id_t lane_loop(pestle_kir_builder_t* b, int64_t lanes,
                                        pestle_kir_axis_t axis) {
  return pestle_kir_for(b, "lane", pestle_kir_index(b, 0),
                        pestle_kir_index(b, lanes), 1, axis);
}

static inline pestle_kir_id_t serial_loop(pestle_kir_builder_t* b,
                                          pestle_kir_id_t lo, int64_t hi,
                                          int32_t step) {
  return pestle_kir_for(b, "k", lo, pestle_kir_index(b, hi), step,
                        PESTLE_KIR_SERIAL);
}

// Rows of 200 summed by 64 lanes: each sums its part, then trees in shared
// memory, where fewer lanes have work each time.
static void lanes_share(void** state) {
  enum { ROWS = 7, COLUMNS = 200, LANES = 64 };
  (void)state;
  pestle_kir_builder_t b = kernel("sum");
  pestle_kir_id_t none = PESTLE_KIR_NONE, zero = pestle_kir_index(&b, 0);
  uint32_t x = global(&b, "x", PESTLE_F32, ROWS * COLUMNS, PESTLE_KIR_READONLY);
  uint32_t y = global(&b, "y", PESTLE_F32, ROWS, 0);
  uint32_t acc =
      pestle_kir_add_buffer(&b, "acc", PESTLE_KIR_PRIVATE, PESTLE_F32, 1, 1, 0);
  uint32_t part = pestle_kir_add_buffer(&b, "part", PESTLE_KIR_SHARED,
                                        PESTLE_F32, 1, LANES, 0);
  pestle_kir_id_t row = group(&b, ROWS);
  pestle_kir_id_t lane = lane_loop(&b, LANES, PESTLE_KIR_LANE_X);
  pestle_kir_alloc(&b, acc);
  pestle_kir_store(&b, acc, zero, pestle_kir_float(&b, PESTLE_F32, 1, 0), none,
                   4);
  pestle_kir_id_t k = serial_loop(&b, lane, COLUMNS, LANES);
  pestle_kir_id_t at = pestle_kir_madi(&b, row, COLUMNS, k);
  pestle_kir_id_t v = pestle_kir_load(&b, x, 1, at, none, 0);
  pestle_kir_id_t sum = pestle_kir_load(&b, acc, 1, zero, none, 4);
  sum = pestle_kir_scalar(&b, PESTLE_OP_ADD, sum, v, none);
  pestle_kir_store(&b, acc, zero, sum, none, 4);
  pestle_kir_end(&b);
  sum = pestle_kir_load(&b, acc, 1, zero, none, 4);
  pestle_kir_store(&b, part, lane, sum, none, 0);
  pestle_kir_barrier(&b);
  for (int half = LANES / 2; half; half /= 2) {
    pestle_kir_id_t works = pestle_kir_scalar(&b, PESTLE_OP_LT, lane,
                                              pestle_kir_index(&b, half), none);
    pestle_kir_if(&b, works);
    pestle_kir_id_t far =
        pestle_kir_madi(&b, lane, 1, pestle_kir_index(&b, half));
    v = pestle_kir_load(&b, part, 1, lane, none, 0);
    pestle_kir_id_t w = pestle_kir_load(&b, part, 1, far, none, 0);
    v = pestle_kir_scalar(&b, PESTLE_OP_ADD, v, w, none);
    pestle_kir_store(&b, part, lane, v, none, 0);
    pestle_kir_end(&b);
    pestle_kir_barrier(&b);
  }
  pestle_kir_id_t first = pestle_kir_scalar(&b, PESTLE_OP_EQ, lane, zero, none);
  pestle_kir_if(&b, first);
  pestle_kir_store(&b, y, row, pestle_kir_load(&b, part, 1, zero, none, 0),
                   none, 0);
  pestle_kir_end(&b);
  pestle_kir_end(&b);
  pestle_kir_end(&b);
  check_kernel(&b, fill_any, NULL);
}

// Lanes in two axes, groups in two; a transpose through shared memory.
static void lanes_in_axes(void** state) {
  (void)state;
  pestle_kir_builder_t b = kernel("turn");
  pestle_kir_id_t none = PESTLE_KIR_NONE;
  uint32_t x = global(&b, "x", PESTLE_BF16, 384, PESTLE_KIR_READONLY);
  uint32_t y = global(&b, "y", PESTLE_BF16, 384, 0);
  uint32_t tile = pestle_kir_add_buffer(&b, "tile", PESTLE_KIR_SHARED,
                                        PESTLE_BF16, 1, 64, 0);
  pestle_kir_id_t gy = lane_loop(&b, 2, PESTLE_KIR_GROUP_Y);
  pestle_kir_id_t gx = lane_loop(&b, 3, PESTLE_KIR_GROUP_X);
  pestle_kir_id_t ly = lane_loop(&b, 8, PESTLE_KIR_LANE_Y);
  pestle_kir_id_t lx = lane_loop(&b, 8, PESTLE_KIR_LANE_X);
  pestle_kir_id_t at = pestle_kir_madi(&b, gy, 8, ly);
  at = pestle_kir_madi(&b, at, 24, pestle_kir_madi(&b, gx, 8, lx));
  pestle_kir_store(&b, tile, pestle_kir_madi(&b, ly, 8, lx),
                   pestle_kir_load(&b, x, 1, at, none, 0), none, 0);
  pestle_kir_barrier(&b);
  at = pestle_kir_madi(&b, gx, 8, ly);
  at = pestle_kir_madi(&b, at, 16, pestle_kir_madi(&b, gy, 8, lx));
  pestle_kir_id_t v =
      pestle_kir_load(&b, tile, 1, pestle_kir_madi(&b, lx, 8, ly), none, 0);
  pestle_kir_store(&b, y, at, v, none, 0);
  // The interpreter runs the groups along y one after the other in one tile.
  pestle_kir_barrier(&b);
  for (int i = 0; i < 4; ++i)
    pestle_kir_end(&b);
  check_kernel(&b, fill_any, NULL);
}

// Sums and maxima over aligned lanes of 32, within a subgroup of the device.
static inline void check_reductions(pestle_dtype_t dtype, pestle_op_t op) {
  enum { LANES = 32, GROUPS = 3 };
  pestle_kir_builder_t b = kernel("reductions");
  pestle_kir_id_t none = PESTLE_KIR_NONE;
  uint32_t x = global(&b, "x", dtype, LANES * GROUPS, PESTLE_KIR_READONLY);
  uint32_t y = global(&b, "y", dtype, LANES * GROUPS * 2, 0);
  pestle_kir_id_t g = group(&b, GROUPS);
  pestle_kir_id_t lane = lane_loop(&b, LANES, PESTLE_KIR_LANE_X);
  pestle_kir_id_t at = pestle_kir_madi(&b, g, LANES, lane);
  pestle_kir_id_t v = pestle_kir_load(&b, x, 1, at, none, 0);
  unsigned most = caps.subgroup < 8 ? caps.subgroup : 8;
  for (unsigned i = 0; i < 2; ++i) {
    pestle_kir_id_t r = pestle_kir_sg_reduce(&b, v, op, most >> i);
    pestle_kir_id_t to =
        pestle_kir_madi(&b, at, 2, pestle_kir_index(&b, (int64_t)i));
    pestle_kir_store(&b, y, to, r, none, 0);
  }
  pestle_kir_end(&b);
  pestle_kir_end(&b);
  check_kernel(&b, fill_any, NULL);
}

static void lanes_reduce(void** state) {
  (void)state;
  for (unsigned d = 1; d < PESTLE_DTYPE_COUNT; ++d) {
    if (!(caps.op_dtypes[PESTLE_KIR_SG_REDUCE] &
          pestle_dtype_bit((pestle_dtype_t)d)))
      continue;
    if (!(caps.storage_dtypes & pestle_dtype_bit((pestle_dtype_t)d))) continue;
    check_reductions((pestle_dtype_t)d, PESTLE_OP_MAXIMUM);
    check_reductions((pestle_dtype_t)d, PESTLE_OP_ADD);
  }
}

#define GPU_FLOW_TESTS                                                        \
  cmocka_unit_test(runs), cmocka_unit_test(loops), cmocka_unit_test(gathers), \
      cmocka_unit_test(lane_moves), cmocka_unit_test(many_arguments),         \
      cmocka_unit_test(lanes_share), cmocka_unit_test(lanes_in_axes),         \
      cmocka_unit_test(lanes_reduce)

#endif  // PESTLE_TESTS_UNIT_PLUGINS_GPU_FLOW_H_

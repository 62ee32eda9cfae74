// SPDX-License-Identifier: Apache-2.0
// Control flow, register tiles, lane moves and memory of plugins/llvm against
// the interpreter.
#include "llvm_kernel.h"

#define NONE PESTLE_KIR_NONE

static pestle_kir_id_t row(pestle_kir_builder_t* b, pestle_op_t op,
                           pestle_kir_id_t x, pestle_kir_id_t y) {
  return pestle_kir_scalar(b, op, x, y, NONE);
}

static pestle_kir_id_t serial(pestle_kir_builder_t* b, const char* name,
                              int64_t lo, int64_t hi, int32_t step,
                              pestle_kir_axis_t axis) {
  return pestle_kir_for(b, name, pestle_kir_index(b, lo),
                        pestle_kir_index(b, hi), step, axis);
}

// --- Tiles in loops ---

enum { M = 6, N = 32, K = 13 };

// A 6 x 32 tile of c = a * b + c in registers.
static void tile(void** state) {
  (void)state;
  pestle_kir_builder_t b = kernel("tile");
  uint32_t a = global(&b, "a", PESTLE_F32, 4 * M * K, PESTLE_KIR_READONLY);
  uint32_t p = global(&b, "b", PESTLE_F32, K * N, PESTLE_KIR_READONLY);
  uint32_t c = global(&b, "c", PESTLE_F32, 4 * M * N, 0);
  uint32_t acc = pestle_kir_add_buffer(&b, "acc", PESTLE_KIR_PRIVATE,
                                       PESTLE_F32, 16, M * N / 16, 0);
  pestle_kir_id_t g = group(&b, 4);
  pestle_kir_alloc(&b, acc);
  pestle_kir_id_t i = serial(&b, "i", 0, M, 1, PESTLE_KIR_UNROLL);
  pestle_kir_id_t j = serial(&b, "j", 0, N / 16, 1, PESTLE_KIR_UNROLL);
  pestle_kir_id_t at = pestle_kir_madi(&b, i, N / 16, j);
  pestle_kir_id_t out = pestle_kir_madi(
      &b, g, M * N,
      pestle_kir_madi(&b, i, N, pestle_kir_madi(&b, j, 16, NONE)));
  pestle_kir_store(&b, acc, at, pestle_kir_load(&b, c, 16, out, NONE, 4), NONE,
                   0);
  pestle_kir_end(&b);
  pestle_kir_end(&b);
  pestle_kir_id_t k = serial(&b, "k", 0, K, 1, PESTLE_KIR_SERIAL);
  i = serial(&b, "i", 0, M, 1, PESTLE_KIR_UNROLL);
  pestle_kir_id_t from =
      pestle_kir_madi(&b, g, M * K, pestle_kir_madi(&b, i, K, k));
  pestle_kir_id_t x =
      pestle_kir_splat(&b, pestle_kir_load(&b, a, 1, from, NONE, 4), 16);
  j = serial(&b, "j", 0, N / 16, 1, PESTLE_KIR_UNROLL);
  at = pestle_kir_madi(&b, i, N / 16, j);
  pestle_kir_id_t y = pestle_kir_load(
      &b, p, 16, pestle_kir_madi(&b, k, N, pestle_kir_madi(&b, j, 16, NONE)),
      NONE, 4);
  pestle_kir_id_t old = pestle_kir_load(&b, acc, 16, at, NONE, 0);
  pestle_kir_store(&b, acc, at, pestle_kir_scalar(&b, PESTLE_OP_FMA, x, y, old),
                   NONE, 0);
  pestle_kir_end(&b);
  pestle_kir_end(&b);
  pestle_kir_end(&b);
  i = serial(&b, "i", 0, M, 1, PESTLE_KIR_UNROLL);
  j = serial(&b, "j", 0, N / 16, 1, PESTLE_KIR_UNROLL);
  at = pestle_kir_madi(&b, i, N / 16, j);
  out = pestle_kir_madi(
      &b, g, M * N,
      pestle_kir_madi(&b, i, N, pestle_kir_madi(&b, j, 16, NONE)));
  pestle_kir_store(&b, c, out, pestle_kir_load(&b, acc, 16, at, NONE, 0), NONE,
                   4);
  pestle_kir_end(&b);
  pestle_kir_end(&b);
  pestle_kir_end(&b);
  check_kernel(&b, fill_any, NULL);
}

// A slot that ifs change in a loop of a trip count that is not known, 0 too.
static void ifs_in_loops(void** state) {
  (void)state;
  pestle_kir_builder_t b = kernel("ifs");
  uint32_t in = global(&b, "in", PESTLE_I32, 64, PESTLE_KIR_READONLY);
  uint32_t out = global(&b, "out", PESTLE_I32, 2 * 16, 0);
  uint32_t acc =
      pestle_kir_add_buffer(&b, "acc", PESTLE_KIR_PRIVATE, PESTLE_I32, 1, 2, 0);
  pestle_kir_id_t g = group(&b, 16), zero = pestle_kir_index(&b, 0);
  pestle_kir_id_t one = pestle_kir_index(&b, 1);
  pestle_kir_alloc(&b, acc);
  pestle_kir_id_t seven = pestle_kir_int(&b, PESTLE_I32, 1, 7);
  pestle_kir_store(&b, acc, zero, seven, NONE, 0);
  pestle_kir_store(&b, acc, one, seven, NONE, 0);
  pestle_kir_id_t i = pestle_kir_for(&b, "i", zero, g, 1, PESTLE_KIR_SERIAL);
  pestle_kir_id_t x = pestle_kir_load(&b, in, 1, i, NONE, 4);
  pestle_kir_if(
      &b, row(&b, PESTLE_OP_LT, x, pestle_kir_int(&b, PESTLE_I32, 1, 20)));
  pestle_kir_id_t s = pestle_kir_load(&b, acc, 1, zero, NONE, 0);
  pestle_kir_store(&b, acc, zero, row(&b, PESTLE_OP_ADD, s, x), NONE, 0);
  pestle_kir_else(&b);
  pestle_kir_if(&b, row(&b, PESTLE_OP_EQ, i, pestle_kir_index(&b, 3)));
  pestle_kir_store(&b, acc, one, x, NONE, 0);
  pestle_kir_end(&b);
  pestle_kir_end(&b);
  pestle_kir_end(&b);
  for (int at = 0; at < 2; ++at) {
    pestle_kir_id_t slot = at ? one : zero;
    pestle_kir_store(&b, out, pestle_kir_madi(&b, g, 2, slot),
                     pestle_kir_load(&b, acc, 1, slot, NONE, 0), NONE, 4);
  }
  pestle_kir_end(&b);
  check_kernel(&b, fill_any, NULL);
}

// Tiles that are stored twice, begin anew in each iteration one of i1.
static void masked_tile(void** state) {
  (void)state;
  pestle_kir_builder_t b = kernel("masked");
  uint32_t in = global(&b, "in", PESTLE_F32, 16 * 8, PESTLE_KIR_READONLY);
  uint32_t out = global(&b, "out", PESTLE_F32, 16 * 8, 0);
  uint32_t acc =
      pestle_kir_add_buffer(&b, "acc", PESTLE_KIR_PRIVATE, PESTLE_F32, 8, 1, 0);
  uint32_t bits =
      pestle_kir_add_buffer(&b, "bits", PESTLE_KIR_PRIVATE, PESTLE_I1, 8, 1, 0);
  pestle_kir_id_t g = group(&b, 4), zero = pestle_kir_index(&b, 0);
  pestle_kir_id_t i = serial(&b, "i", 0, 4, 1, PESTLE_KIR_SERIAL);
  pestle_kir_alloc(&b, acc);
  pestle_kir_alloc(&b, bits);
  pestle_kir_id_t at =
      pestle_kir_madi(&b, g, 32, pestle_kir_madi(&b, i, 8, NONE));
  pestle_kir_id_t mask = pestle_kir_mask(&b, i, pestle_kir_index(&b, 6), 8);
  pestle_kir_id_t x = pestle_kir_load(&b, in, 8, at, NONE, 4);
  pestle_kir_store(&b, acc, zero, x, NONE, 0);
  pestle_kir_store(&b, bits, zero, mask, NONE, 0);
  pestle_kir_id_t chosen = pestle_kir_scalar(
      &b, PESTLE_OP_SELECT, pestle_kir_load(&b, bits, 8, zero, NONE, 0),
      row(&b, PESTLE_OP_NEGATE, x, NONE), x);
  pestle_kir_store(&b, acc, zero, chosen, NONE, 0);
  pestle_kir_store(&b, out, at, pestle_kir_load(&b, acc, 8, zero, NONE, 0),
                   NONE, 4);
  pestle_kir_end(&b);
  pestle_kir_end(&b);
  check_kernel(&b, fill_any, NULL);
}

// --- Lanes ---

static void check_reduce(pestle_op_t op, pestle_dtype_t dtype, unsigned lanes) {
  pestle_kir_builder_t b = kernel("reduce");
  uint32_t in = global(&b, "in", dtype, 10 * lanes, PESTLE_KIR_READONLY);
  uint32_t out = global(&b, "out", dtype, 10, 0);
  pestle_kir_id_t g = group(&b, 10);
  pestle_kir_id_t x = pestle_kir_load(
      &b, in, lanes, pestle_kir_madi(&b, g, lanes, NONE), NONE, 0);
  pestle_kir_store(&b, out, g, pestle_kir_reduce(&b, x, op), NONE, 0);
  pestle_kir_end(&b);
  check_kernel(&b, fill_any, NULL);
}

static void reductions(void** state) {
  static const pestle_op_t ops[] = {PESTLE_OP_ADD,     PESTLE_OP_MULTIPLY,
                                    PESTLE_OP_MAXIMUM, PESTLE_OP_MINIMUM,
                                    PESTLE_OP_AND,     PESTLE_OP_XOR};
  static const pestle_dtype_t dtypes[] = {PESTLE_F32, PESTLE_F64, PESTLE_I1,
                                          PESTLE_I32, PESTLE_U8};
  (void)state;
  for (size_t o = 0; o < sizeof ops / sizeof *ops; ++o) {
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; ++d) {
      bool bits = ops[o] == PESTLE_OP_AND || ops[o] == PESTLE_OP_XOR;
      if (bits && pestle_dtype_is(dtypes[d], PESTLE_KIND_FLOAT)) continue;
      check_reduce(ops[o], dtypes[d], 2);
      check_reduce(ops[o], dtypes[d], 16);
    }
    check_reduce(ops[o], PESTLE_I32, 128);
  }
}

static void lane_moves(void** state) {
  (void)state;
  pestle_kir_builder_t b = kernel("lanes");
  uint32_t in = global(&b, "in", PESTLE_F32, 96, PESTLE_KIR_READONLY);
  uint32_t out = global(&b, "out", PESTLE_I32, 4 * 96, 0);
  static const uint32_t lane[8] = {0, 9, 2, 11, 7, 7, 15, 8};
  static const uint32_t uneven[8] = {5, 8, 1, 9, 7, 0, 9, 8};
  pestle_kir_table_t tables[] = {{0, 8}, {8, 8}};
  for (int i = 0; i < 8; ++i)
    assert_true(pestle_vec_push(&b.word, lane[i]));
  for (int i = 0; i < 8; ++i)
    assert_true(pestle_vec_push(&b.word, uneven[i]));
  for (int i = 0; i < 2; ++i)
    assert_true(pestle_vec_push(&b.table, tables[i]));
  pestle_kir_id_t g = group(&b, 12);
  pestle_kir_id_t at = pestle_kir_madi(&b, g, 8, NONE);
  pestle_kir_id_t x = pestle_kir_load(&b, in, 8, at, NONE, 4);
  pestle_kir_id_t pair = pestle_kir_load(&b, in, 2, at, NONE, 4);
  pestle_kir_id_t bits = pestle_kir_bitcast(&b, x, PESTLE_I32);
  pestle_kir_id_t iota = pestle_kir_iota(&b, PESTLE_I32, 8);
  pestle_kir_inst_t n = {.op = PESTLE_KIR_SHUFFLE,
                         .type = PESTLE_F32,
                         .lanes = 8,
                         .arg = {x, x, 0, 0}};
  pestle_kir_id_t mixed = pestle_kir_put(&b, n);
  n.arg[1] = pair;
  n.arg[2] = 1;
  pestle_kir_id_t uneven_mix = pestle_kir_put(&b, n);
  n = (pestle_kir_inst_t){.op = PESTLE_KIR_EXTRACT,
                          .type = PESTLE_F32,
                          .lanes = 1,
                          .arg = {x, 3, 0, 0}};
  pestle_kir_id_t third = pestle_kir_put(&b, n);
  n = (pestle_kir_inst_t){.op = PESTLE_KIR_INSERT,
                          .type = PESTLE_F32,
                          .lanes = 8,
                          .arg = {mixed, third, 6, 0}};
  pestle_kir_id_t inserted = pestle_kir_put(&b, n);
  pestle_kir_id_t r[4] = {
      row(&b, PESTLE_OP_ADD, bits, iota),
      pestle_kir_bitcast(&b, inserted, PESTLE_I32),
      pestle_kir_bitcast(&b, pestle_kir_splat(&b, third, 8), PESTLE_I32),
      pestle_kir_bitcast(&b, uneven_mix, PESTLE_I32)};
  for (int i = 0; i < 4; ++i) {
    pestle_kir_id_t to =
        pestle_kir_madi(&b, g, 32, pestle_kir_index(&b, 8 * i));
    pestle_kir_store(&b, out, to, r[i], NONE, 4);
  }
  pestle_kir_end(&b);
  check_kernel(&b, fill_any, NULL);
}

// --- Memory ---

static void fill_indices(const char* name, pestle_dtype_t dtype, void* data,
                         size_t count) {
  if (strcmp(name, "index") && strcmp(name, "where")) {
    fill_any(name, dtype, data, count);
    return;
  }
  bool permute = !strcmp(name, "where");
  uint32_t seed = 7;
  size_t size = pestle_dtype_size(dtype);
  for (size_t i = 0; i < count; ++i) {
    uint64_t at = permute ? i * 37 % count : test_random(&seed) % 200;
    memcpy((char*)data + i * size, &at, size);
  }
}

static void check_gather(pestle_dtype_t dtype, pestle_dtype_t index_type,
                         unsigned lanes) {
  pestle_kir_builder_t b = kernel("gather");
  uint32_t in = global(&b, "in", dtype, 200, PESTLE_KIR_READONLY);
  uint32_t index = global(&b, "index", index_type, 99, PESTLE_KIR_READONLY);
  uint32_t out = global(&b, "out", dtype, 99, 0);
  pestle_kir_id_t g = group(&b, (99 + lanes - 1) / lanes);
  pestle_kir_id_t at = pestle_kir_madi(&b, g, lanes, NONE);
  pestle_kir_id_t mask =
      pestle_kir_mask(&b, at, pestle_kir_index(&b, 99), lanes);
  pestle_kir_id_t i = pestle_kir_load(&b, index, lanes, at, mask, 0);
  // Bounded for the verifier.
  i = row(&b, PESTLE_OP_MINIMUM, i, pestle_kir_int(&b, index_type, lanes, 199));
  i = row(&b, PESTLE_OP_MAXIMUM, i, pestle_kir_int(&b, index_type, lanes, 0));
  pestle_kir_id_t x = pestle_kir_gather(&b, in, i, mask);
  pestle_kir_store(&b, out, at, x, mask, 0);
  pestle_kir_end(&b);
  check_kernel(&b, fill_indices, NULL);
}

static void gathers(void** state) {
  static const pestle_dtype_t dtypes[] = {PESTLE_F32, PESTLE_I64, PESTLE_U8,
                                          PESTLE_BF16, PESTLE_I1};
  (void)state;
  for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; ++d) {
    check_gather(dtypes[d], PESTLE_I32, 1);
    check_gather(dtypes[d], PESTLE_I32, 16);
    check_gather(dtypes[d], PESTLE_I64, 8);
    check_gather(dtypes[d], PESTLE_U32, 16);
    check_gather(dtypes[d], PESTLE_I32, 3);
    check_gather(dtypes[d], PESTLE_I32, 64);
  }
}

static void scatters(void** state) {
  static const pestle_dtype_t dtypes[] = {PESTLE_F32, PESTLE_U8, PESTLE_I1};
  (void)state;
  for (unsigned run = 0; run < 9; ++run) {
    pestle_dtype_t dtype = dtypes[run / 3];
    static const unsigned lane_counts[] = {1, 16, 3};
    unsigned lanes = lane_counts[run % 3];
    pestle_kir_builder_t b = kernel("scatter");
    uint32_t in = global(&b, "in", dtype, 99, PESTLE_KIR_READONLY);
    uint32_t index = global(&b, "where", PESTLE_I64, 99, PESTLE_KIR_READONLY);
    uint32_t out = global(&b, "out", dtype, 99, 0);
    pestle_kir_id_t g = group(&b, (99 + lanes - 1) / lanes);
    pestle_kir_id_t at = pestle_kir_madi(&b, g, lanes, NONE);
    pestle_kir_id_t mask =
        pestle_kir_mask(&b, at, pestle_kir_index(&b, 99), lanes);
    pestle_kir_id_t i = pestle_kir_load(&b, index, lanes, at, mask, 0);
    i = row(&b, PESTLE_OP_MINIMUM, i,
            pestle_kir_int(&b, PESTLE_I64, lanes, 98));
    i = row(&b, PESTLE_OP_MAXIMUM, i, pestle_kir_int(&b, PESTLE_I64, lanes, 0));
    pestle_kir_inst_t n = {.op = PESTLE_KIR_SCATTER, .lanes = (uint8_t)lanes};
    n.arg[0] = out;
    n.arg[1] = i;
    n.arg[2] = pestle_kir_load(&b, in, lanes, at, mask, 0);
    n.arg[3] = mask;
    pestle_kir_put(&b, n);
    pestle_kir_end(&b);
    check_kernel(&b, fill_indices, NULL);
  }
}

// Parameters, scratch, streaming stores, division of indices.
static void memory_kinds(void** state) {
  (void)state;
  pestle_kir_builder_t b = kernel("kinds");
  uint32_t in = global(&b, "in", PESTLE_F32, 12 * 32, PESTLE_KIR_READONLY);
  uint32_t out = global(&b, "out", PESTLE_F32, 12 * 32, PESTLE_KIR_NONTEMPORAL);
  uint32_t small =
      pestle_kir_add_buffer(&b, "small", PESTLE_KIR_SHARED, PESTLE_I8, 1, 3, 0);
  uint32_t shared = pestle_kir_add_buffer(&b, "shared", PESTLE_KIR_SHARED,
                                          PESTLE_F32, 1, 32, 0);
  pestle_kir_id_t g = group(&b, 12);
  pestle_kir_inst_t n = {
      .op = PESTLE_KIR_PARAM, .type = PESTLE_I32, .lanes = 1, .arg = {1}};
  pestle_kir_id_t scale =
      pestle_kir_cast(&b, pestle_kir_put(&b, n), PESTLE_F32);
  // Rows in another order: (g % 3) * 4 + g / 3.
  pestle_kir_id_t three = pestle_kir_index(&b, 3);
  pestle_kir_id_t high = row(&b, PESTLE_OP_DIVIDE, g, three);
  pestle_kir_id_t low = row(&b, PESTLE_OP_REMAINDER, g, three);
  pestle_kir_id_t r = pestle_kir_madi(&b, low, 4, high);
  pestle_kir_id_t from = pestle_kir_madi(&b, r, 32, NONE);
  pestle_kir_id_t i = serial(&b, "i", 0, 32, 16, PESTLE_KIR_SERIAL);
  pestle_kir_id_t x =
      pestle_kir_load(&b, in, 16, pestle_kir_madi(&b, i, 1, from), NONE, 4);
  pestle_kir_store(&b, shared, i, row(&b, PESTLE_OP_MULTIPLY, x, scale), NONE,
                   64);
  pestle_kir_end(&b);
  pestle_kir_store(&b, small, pestle_kir_index(&b, 2),
                   pestle_kir_int(&b, PESTLE_I8, 1, -3), NONE, 1);
  i = serial(&b, "i", 0, 32, 16, PESTLE_KIR_SERIAL);
  pestle_kir_id_t minus = pestle_kir_cast(
      &b, pestle_kir_load(&b, small, 1, pestle_kir_index(&b, 2), NONE, 1),
      PESTLE_F32);
  x = pestle_kir_load(&b, shared, 16, i, NONE, 64);
  pestle_kir_store(&b, out, pestle_kir_madi(&b, g, 32, i),
                   row(&b, PESTLE_OP_ADD, x, minus), NONE, 64);
  pestle_kir_end(&b);
  pestle_kir_end(&b);
  static const int64_t params[] = {99, -5};
  check_kernel(&b, fill_any, params);
}

// Two buffers of one alias set are one array: each iteration reads what the
// one before wrote.
static void aliases(void** state) {
  (void)state;
  pestle_kir_builder_t b = kernel("alias");
  uint32_t in = global(&b, "in", PESTLE_I32, 40, PESTLE_KIR_READONLY);
  uint32_t out = global(&b, "out", PESTLE_I32, 40, 0);
  b.buffer.data[in].alias_set = b.buffer.data[out].alias_set = 5;
  group(&b, 1);
  pestle_kir_id_t i = serial(&b, "i", 0, 39, 1, PESTLE_KIR_SERIAL);
  pestle_kir_id_t x = pestle_kir_load(&b, in, 1, i, NONE, 4);
  pestle_kir_id_t next = pestle_kir_madi(&b, i, 1, pestle_kir_index(&b, 1));
  pestle_kir_store(
      &b, out, next,
      row(&b, PESTLE_OP_ADD, x, pestle_kir_int(&b, PESTLE_I32, 1, 3)), NONE, 4);
  pestle_kir_end(&b);
  pestle_kir_end(&b);
  assert_ok(pestle_kir_finish(&b));
  code_t code = code_make(llvm_backend, &b.view, NULL);
  int32_t data[40] = {1};
  void* slots[] = {data, data};
  assert_int_equal(code.entry(code.self, slots, NULL, 0, 1, NULL), 0);
  for (int e = 0; e < 40; ++e)
    assert_int_equal(data[e], 1 + 3 * e);
  code_free(&code);
  pestle_kir_deinit(&b);
}

static void traps(void** state) {
  (void)state;
  pestle_kir_builder_t b = kernel("traps");
  uint32_t out = global(&b, "out", PESTLE_I64, 8, 0);
  pestle_kir_id_t g = group(&b, 8);
  pestle_kir_inst_t n = {.op = PESTLE_KIR_TRAP_IF, .lanes = 1};
  n.arg[0] = row(&b, PESTLE_OP_EQ, g, pestle_kir_index(&b, 5));
  n.arg[1] = 77;
  pestle_kir_put(&b, n);
  pestle_kir_store(&b, out, g, pestle_kir_cast(&b, g, PESTLE_I64), NONE, 8);
  pestle_kir_end(&b);
  assert_ok(pestle_kir_finish(&b));
  code_t code = code_make(llvm_backend, &b.view, NULL);
  int64_t data[8] = {9, 9, 9, 9, 9, 9, 9, 9};
  void* slots[] = {data};
  assert_int_equal(code.entry(code.self, slots, NULL, 0, 5, NULL), 0);
  assert_int_equal(code.entry(code.self, slots, NULL, 0, 8, NULL), 77);
  assert_int_equal(data[4], 4);
  assert_int_equal(data[5], 9);
  code_free(&code);
  pestle_kir_deinit(&b);
}

// --- Contraction ---

// Form 0: x * y + z, 1: x * y - z, 2: z - x * y.
static void contraction_kernel(int form, bool fused, unsigned facts,
                               pestle_kir_builder_t* out) {
  *out = kernel("contract");
  pestle_kir_builder_t* b = out;
  uint32_t in[3] = {global(b, "x", PESTLE_F32, 64, PESTLE_KIR_READONLY),
                    global(b, "y", PESTLE_F32, 64, PESTLE_KIR_READONLY),
                    global(b, "z", PESTLE_F32, 64, PESTLE_KIR_READONLY)};
  uint32_t to = global(b, "out", PESTLE_F32, 64, 0);
  b->facts = (uint8_t)facts;
  pestle_kir_id_t g = group(b, 4), v[3], r;
  pestle_kir_id_t at = pestle_kir_madi(b, g, 16, NONE);
  for (int i = 0; i < 3; ++i)
    v[i] = pestle_kir_load(b, in[i], 16, at, NONE, 0);
  if (fused) {
    if (form == 1) v[2] = row(b, PESTLE_OP_NEGATE, v[2], NONE);
    if (form == 2) v[0] = row(b, PESTLE_OP_NEGATE, v[0], NONE);
    r = pestle_kir_scalar(b, PESTLE_OP_FMA, v[0], v[1], v[2]);
  } else {
    pestle_kir_id_t p = row(b, PESTLE_OP_MULTIPLY, v[0], v[1]);
    r = form == 0   ? row(b, PESTLE_OP_ADD, p, v[2])
        : form == 1 ? row(b, PESTLE_OP_SUBTRACT, p, v[2])
                    : row(b, PESTLE_OP_SUBTRACT, v[2], p);
  }
  pestle_kir_store(b, to, at, r, NONE, 0);
  pestle_kir_end(b);
  assert_ok(pestle_kir_finish(b));
}

static char* source_of(const pestle_kir_t* k) {
  pestle_blob_t text;
  assert_ok(llvm_backend->target->print(llvm_backend->self, k, NULL,
                                        PESTLE_TEXT_SOURCE, &text));
  char* copy = calloc(1, text.size + 1);
  memcpy(copy, text.data, text.size);
  host_free(NULL, text.data, text.size);
  return copy;
}

static int differences(const pestle_kir_t* a, const pestle_kir_t* b) {
  arena_t left, right;
  arena_init(&left, a, fill_any);
  arena_init(&right, b, fill_any);
  code_t p = code_make(llvm_backend, a, NULL);
  code_t q = code_make(llvm_backend, b, NULL);
  assert_int_equal(p.entry(p.self, left.slot, NULL, 0, 4, NULL), 0);
  assert_int_equal(q.entry(q.self, right.slot, NULL, 0, 4, NULL), 0);
  int count = 0;
  for (int i = 0; i < 64; ++i) {
    count += !same_element(PESTLE_F32, (const float*)left.slot[3] + i,
                           (const float*)right.slot[3] + i);
  }
  code_free(&p);
  code_free(&q);
  arena_deinit(&left);
  arena_deinit(&right);
  return count;
}

static void contraction(void** state) {
  (void)state;
  for (int form = 0; form < 3; ++form) {
    pestle_kir_builder_t plain, free_to, fused;
    contraction_kernel(form, false, 0, &plain);
    contraction_kernel(form, false, PESTLE_KIR_CONTRACT, &free_to);
    contraction_kernel(form, true, 0, &fused);
    char* text = source_of(&plain.view);
    assert_null(strstr(text, "llvm.fma"));
    assert_non_null(strstr(text, "fmul"));
    free(text);
    assert_int_equal(differences(&free_to.view, &fused.view), 0);
    assert_int_not_equal(differences(&plain.view, &fused.view), 0);
    pestle_kir_deinit(&plain);
    pestle_kir_deinit(&free_to);
    pestle_kir_deinit(&fused);
  }
}

static bool this_cpu_has(pestle_kir_op_t op) {
  pestle_target_caps_t caps = {.struct_size = sizeof caps};
  assert_ok(llvm_backend->target->describe(llvm_backend->self, NULL, &caps));
  return caps.op_dtypes[op] != 0;
}

// --- Short dot products ---

// DOT4 of every pair of kinds over words of random bytes, which LOAD_WORDS reads
// at any byte. DOT2 rounds its own way: tests/unit/codegen/dot_test.c.
static void dots(void** state) {
  (void)state;
  static const unsigned lane_counts[] = {1, 2, 4, 7, 8, 16, 32};
  for (unsigned run = 0; run < 7 * 4; ++run) {
    unsigned lanes = lane_counts[run / 4];
    pestle_kir_builder_t b = kernel("dots");
    uint32_t x = global(&b, "x", PESTLE_U8, 600, PESTLE_KIR_READONLY);
    uint32_t y = global(&b, "y", PESTLE_I16, 300, PESTLE_KIR_READONLY);
    uint32_t z = global(&b, "z", PESTLE_I32, 4 * 32, 0);
    pestle_kir_id_t g = group(&b, 4);
    pestle_kir_id_t p = pestle_kir_load_words(
        &b, x, lanes, pestle_kir_madi(&b, g, 4 * 32 + 1, NONE));
    pestle_kir_id_t q = pestle_kir_load_words(
        &b, y, lanes, pestle_kir_madi(&b, g, 2 * 32 + 3, NONE));
    pestle_kir_id_t at = pestle_kir_madi(&b, g, 32, NONE);
    pestle_kir_id_t sum = pestle_kir_load(&b, z, lanes, at, NONE, 0);
    sum = pestle_kir_dot(&b, p, q, sum, run % 4);
    pestle_kir_store(&b, z, at, sum, NONE, 0);
    pestle_kir_end(&b);
    check_kernel(&b, fill_any, NULL);
  }
}

// --- Powers of two ---

// SCALE of |lanes| numbers of |dtype| by bytes times |step|, or all by |step| times
// their sizes.
static void check_powers(unsigned lanes, pestle_dtype_t dtype, bool sizes,
                         double step) {
  pestle_kir_builder_t b = kernel("powers");
  uint32_t x = global(&b, "x", dtype, 8 * 32, PESTLE_KIR_READONLY);
  uint32_t y = global(&b, "y", PESTLE_I8, 8 * 32, PESTLE_KIR_READONLY);
  uint32_t z = global(&b, "z", PESTLE_F32, 8 * 32, 0);
  pestle_kir_id_t g = group(&b, 8);
  pestle_kir_id_t at = pestle_kir_madi(&b, g, 32, NONE);
  pestle_kir_id_t p = pestle_kir_load(&b, x, lanes, at, NONE, 0);
  pestle_kir_id_t q = pestle_kir_load(&b, y, lanes, at, NONE, 0);
  p = pestle_kir_cast(&b, p, PESTLE_F32);
  q = pestle_kir_cast(&b, q, PESTLE_F32);
  if (sizes) q = pestle_kir_scalar(&b, PESTLE_OP_ABS, q, NONE, NONE);
  pestle_kir_id_t by = pestle_kir_float(&b, PESTLE_F32, lanes, step);
  q = pestle_kir_scalar(&b, PESTLE_OP_MULTIPLY, q, by, NONE);
  pestle_kir_store(&b, z, at, pestle_kir_scale(&b, p, q), NONE, 0);
  pestle_kir_end(&b);
  llvm_cpu_count = 1;  // others may lack it
  check_kernel(&b, fill_any, NULL);
  llvm_cpu_count = 2;
}

// Every power up to the bound, of random bits: denormals, infinities and NaN among
// them.
static void powers_of_two(void** state) {
  (void)state;
  if (!this_cpu_has(PESTLE_KIR_SCALE)) skip();
  static const unsigned lane_counts[] = {1, 2, 4, 7, 8, 16, 32};
  for (unsigned run = 0; run < 2 * 7; ++run)
    check_powers(lane_counts[run / 2], PESTLE_F32, false, run % 2 ? 8.0 : 1.0);
}

// Powers so low that nothing is left, -inf among them.
static void powers_that_vanish(void** state) {
  (void)state;
  if (!this_cpu_has(PESTLE_KIR_SCALE)) skip();
  check_powers(16, PESTLE_I8, true, -0x1p+20);
  check_powers(16, PESTLE_I8, true, -0x1p+127);
}

// --- Matrix registers ---

static void mreg(pestle_kir_builder_t* b, pestle_kir_op_t op, uint32_t buffer,
                 pestle_kir_id_t at, uint32_t stride, uint32_t number) {
  pestle_kir_act(b, op, buffer, at, stride, number);
}

// Bytes of every pair of kinds: 2 x 1 registers of sums, rows that lie apart, and
// sums that were there before. bf16 rounds its own way: tests/cli/amx_test.py.
static void matrix_registers(void** state) {
  (void)state;
  if (!this_cpu_has(PESTLE_KIR_MREG_MMA)) {
    print_message("the CPU has no matrix registers\n");
    skip();
  }
  enum { ROW = 72, GROUPS = 3, SUMS = 32 * 16 };
  for (uint32_t kinds = 0; kinds < 4; ++kinds) {
    pestle_kir_builder_t b = kernel("matrix");
    uint32_t x =
        global(&b, "x", PESTLE_U8, GROUPS * 32 * ROW, PESTLE_KIR_READONLY);
    uint32_t y = global(&b, "y", PESTLE_I8, GROUPS * 1024, PESTLE_KIR_READONLY);
    uint32_t z = global(&b, "z", PESTLE_I32, GROUPS * SUMS, 0);
    pestle_kir_id_t g = group(&b, GROUPS);
    pestle_kir_id_t to = pestle_kir_madi(&b, g, SUMS, NONE);
    pestle_kir_id_t half =
        pestle_kir_madi(&b, g, SUMS, pestle_kir_index(&b, SUMS / 2));
    pestle_kir_id_t a = pestle_kir_madi(&b, g, 32 * ROW, NONE);
    pestle_kir_id_t a2 =
        pestle_kir_madi(&b, g, 32 * ROW, pestle_kir_index(&b, 16 * ROW));
    mreg(&b, PESTLE_KIR_MREG_LOAD, z, to, 16, 0);
    pestle_kir_act(&b, PESTLE_KIR_MREG_ZERO, 1, 0, 0, 0);
    mreg(&b, PESTLE_KIR_MREG_LOAD, x, a, ROW, 4);
    mreg(&b, PESTLE_KIR_MREG_LOAD, x, a2, ROW, 5);
    mreg(&b, PESTLE_KIR_MREG_STREAM, y, pestle_kir_madi(&b, g, 1024, NONE), 64,
         7);
    uint32_t kind = PESTLE_KIR_MREG_BYTES + kinds;
    pestle_kir_act(&b, PESTLE_KIR_MREG_MMA, 0, 4, 7, kind);
    pestle_kir_act(&b, PESTLE_KIR_MREG_MMA, 1, 5, 7, kind);
    mreg(&b, PESTLE_KIR_MREG_STORE, z, to, 16, 0);
    mreg(&b, PESTLE_KIR_MREG_STORE, z, half, 16, 1);
    pestle_kir_end(&b);
    llvm_cpu_count = 1;  // others may lack it
    check_kernel(&b, fill_any, NULL);
    llvm_cpu_count = 2;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tile),
      cmocka_unit_test(ifs_in_loops),
      cmocka_unit_test(masked_tile),
      cmocka_unit_test(reductions),
      cmocka_unit_test(lane_moves),
      cmocka_unit_test(gathers),
      cmocka_unit_test(scatters),
      cmocka_unit_test(memory_kinds),
      cmocka_unit_test(aliases),
      cmocka_unit_test(traps),
      cmocka_unit_test(contraction),
      cmocka_unit_test(dots),
      cmocka_unit_test(powers_of_two),
      cmocka_unit_test(powers_that_vanish),
      cmocka_unit_test(matrix_registers),
  };
  int failed = llvm_setup(NULL);
  if (failed) return failed;
  return cmocka_run_group_tests(tests, NULL, llvm_teardown);
}

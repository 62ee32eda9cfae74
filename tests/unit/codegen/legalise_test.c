// SPDX-License-Identifier: Apache-2.0
// Legalisation keeps the meaning: a kernel and what is made of it for a lesser
// target give the same bits in the interpreter, which can run both. Lesser
// means without a row, without a dtype, or with shorter vectors.
#include <math.h>

#include "base/half.h"
#include "codegen/kir/kir_internal.h"
#include "unit/codegen/kir_test.h"
#include "unit/codegen/legalise_oom.h"

enum { LANES = 8, GROUPS = 256, COUNT = LANES * GROUPS };

static pestle_target_caps_t full_caps(void) {
  pestle_allocator_t memory = pestle_allocator_system();
  pestle_host_t host = kir_test_host(&memory);
  pestle_status_t status = NULL;
  const pestle_backend_t* ref = pestle_ref_backend_init(&host, &status);
  pestle_target_caps_t caps = {.struct_size = sizeof caps};
  assert_ok(ref->target->describe(ref->self, NULL, &caps));
  ref->deinit(ref->self);
  return caps;
}

static uint64_t next_random(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

// Elements of |dtype|: half of them arbitrary bits, half small numbers.
static void fill(pestle_dtype_t dtype, void* data, uint64_t seed) {
  unsigned size = pestle_dtype_size(dtype);
  unsigned width = pestle_dtype_info(dtype)->bits;
  for (size_t i = 0; i < COUNT; ++i) {
    uint64_t bits = next_random(&seed);
    int64_t small = (int64_t)(bits >> 32 & 15) - 8;
    if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) {
      double value = (double)small / 2;
      if (bits & 1) bits = pestle_float_encode(dtype, value);
    } else {
      if (bits & 2) bits = (uint64_t)small;
      if (width < 8) bits &= (UINT64_C(1) << width) - 1;
      if (pestle_dtype_is_sub_byte(dtype)) {
        bits = (uint64_t)(int8_t)pestle_dtype_extend(dtype, (uint8_t)bits);
      }
    }
    memcpy((char*)data + i * size, &bits, size);
  }
}

// z[i] = op(a[i], b[i], c[i]), |chain| times over.
static void build(pestle_kir_builder_t* k, pestle_op_t op,
                  pestle_dtype_t dtype) {
  uint32_t buffers[4];
  const pestle_op_info_t* info = pestle_op_info(op);
  bool selects = info->rule == PESTLE_RULE_SELECT;
  bool predicate =
      info->rule == PESTLE_RULE_COMPARE || info->rule == PESTLE_RULE_TEST;
  pestle_kir_init(pestle_allocator_system(), "k", NULL, k);
  for (int i = 0; i < 4; ++i) {
    pestle_dtype_t type = dtype;
    if ((i == 0 && selects) || (i == 3 && predicate)) type = PESTLE_I1;
    buffers[i] = pestle_kir_add_buffer(k, "b", PESTLE_KIR_GLOBAL, type, 1,
                                       COUNT, i < 3 ? PESTLE_KIR_READONLY : 0);
  }
  uint32_t tile = pestle_kir_add_buffer(
      k, "t", PESTLE_KIR_PRIVATE, predicate ? PESTLE_I1 : dtype, LANES, 1, 0);
  pestle_kir_id_t lo = pestle_kir_index(k, 0);
  pestle_kir_id_t hi = pestle_kir_index(k, GROUPS);
  pestle_kir_id_t g = pestle_kir_for(k, "g", lo, hi, 1, PESTLE_KIR_GROUP_X);
  pestle_kir_id_t at = pestle_kir_madi(k, g, LANES, PESTLE_KIR_NONE);
  pestle_kir_id_t v[3] = {PESTLE_KIR_NONE, PESTLE_KIR_NONE, PESTLE_KIR_NONE};
  for (int i = 0; i < info->operands; ++i) {
    v[i] = pestle_kir_load(k, buffers[i], LANES, at, PESTLE_KIR_NONE, 0);
  }
  pestle_kir_alloc(k, tile);
  pestle_kir_id_t r = pestle_kir_scalar(k, op, v[0], v[1], v[2]);
  pestle_kir_store(k, tile, lo, r, PESTLE_KIR_NONE, 0);
  r = pestle_kir_load(k, tile, LANES, lo, PESTLE_KIR_NONE, 0);
  pestle_kir_store(k, buffers[3], at, r, PESTLE_KIR_NONE, 0);
  pestle_kir_end(k);
  assert_ok(pestle_kir_finish(k));
  assert_ok(pestle_kir_verify(&k->view));
}

// The elements as numbers, so that one NaN is like another.
static void expect_same(const char* what, pestle_dtype_t dtype, const void* a,
                        const void* b, size_t count) {
  unsigned size = pestle_dtype_size(dtype);
  for (size_t i = 0; i < count; ++i) {
    uint64_t x = 0, y = 0;
    memcpy(&x, (const char*)a + i * size, size);
    memcpy(&y, (const char*)b + i * size, size);
    if (x == y) continue;
    if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT) &&
        isnan(pestle_float_decode(dtype, x)) &&
        isnan(pestle_float_decode(dtype, y))) {
      continue;
    }
    fail_msg("%s on %s, element %zu: %llx, not %llx", what,
             pestle_dtype_info(dtype)->name, i, (unsigned long long)y,
             (unsigned long long)x);
  }
}

static uint64_t a_data[COUNT], b_data[COUNT], c_data[COUNT];
static uint64_t want[COUNT], got[COUNT];

// Runs the row natively and as legalised for |caps|.
static void compare(pestle_op_t op, pestle_dtype_t dtype,
                    const pestle_target_caps_t* caps) {
  pestle_kir_builder_t k, legal;
  const pestle_op_info_t* info = pestle_op_info(op);
  bool predicate =
      info->rule == PESTLE_RULE_COMPARE || info->rule == PESTLE_RULE_TEST;
  fill(info->rule == PESTLE_RULE_SELECT ? PESTLE_I1 : dtype, a_data,
       1 + (uint64_t)op);
  fill(dtype, b_data, 1000 + (uint64_t)op);
  fill(dtype, c_data, 2000 + (uint64_t)op);
  build(&k, op, dtype);
  assert_ok(
      pestle_kir_legalise(&k.view, caps, PESTLE_NUMERICS_DEFAULT, &legal));
  assert_ok(pestle_kir_verify(&legal.view));
  int32_t trap;
  void* native[] = {a_data, b_data, c_data, want};
  void* lesser[] = {a_data, b_data, c_data, got};
  assert_ok(kir_test_run(&k.view, native, NULL, 0, GROUPS, &trap));
  assert_int_equal(trap, 0);
  assert_ok(kir_test_run(&legal.view, lesser, NULL, 0, GROUPS, &trap));
  assert_int_equal(trap, 0);
  expect_same(info->name, predicate ? PESTLE_I1 : dtype, want, got, COUNT);
  pestle_kir_deinit(&legal);
  pestle_kir_deinit(&k);
}

static bool takes(pestle_op_t op, pestle_dtype_t dtype) {
  return pestle_dtype_is(dtype, pestle_op_info(op)->kinds);
}

// --- Rows ---

static void test_rows(void** state) {
  (void)state;
  const pestle_op_t rows[] = {
      PESTLE_OP_SIGN,      PESTLE_OP_MAXIMUM, PESTLE_OP_MINIMUM,
      PESTLE_OP_CLAMP,     PESTLE_OP_IS_NAN,  PESTLE_OP_IS_FINITE,
      PESTLE_OP_ROUND_AFZ, PESTLE_OP_TRUNC,   PESTLE_OP_POPCNT,
      PESTLE_OP_CLZ,       PESTLE_OP_POWER,   PESTLE_OP_REMAINDER};
  const pestle_dtype_t dtypes[] = {PESTLE_F32, PESTLE_F64, PESTLE_I8,
                                   PESTLE_I32, PESTLE_I64, PESTLE_U8,
                                   PESTLE_U16, PESTLE_U64};
  for (size_t r = 0; r < sizeof rows / sizeof *rows; ++r) {
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; ++d) {
      bool is_float = pestle_dtype_is(dtypes[d], PESTLE_KIND_FLOAT);
      if (!takes(rows[r], dtypes[d])) continue;
      // Power of floats is not exact; remainder is of f32 alone.
      if (rows[r] == PESTLE_OP_POWER && is_float) continue;
      if (rows[r] == PESTLE_OP_REMAINDER && dtypes[d] != PESTLE_F32) continue;
      pestle_target_caps_t caps = full_caps();
      caps.op_dtypes[PESTLE_KIR_SCALAR_BASE + rows[r]] &=
          ~pestle_dtype_bit(dtypes[d]);
      // What an expansion uses may be missing too.
      if (rows[r] == PESTLE_OP_CLZ) {
        caps.op_dtypes[PESTLE_KIR_POPCNT] &= ~pestle_dtype_bit(dtypes[d]);
      }
      if (rows[r] == PESTLE_OP_ROUND_AFZ) {
        caps.op_dtypes[PESTLE_KIR_TRUNC] &= ~pestle_dtype_bit(dtypes[d]);
      }
      if (rows[r] == PESTLE_OP_CLAMP) {
        caps.op_dtypes[PESTLE_KIR_MAXIMUM] &= ~pestle_dtype_bit(dtypes[d]);
      }
      compare(rows[r], dtypes[d], &caps);
    }
  }
}

// What expand.def says of an op on floats, and on integers.
typedef enum said_t { SAID_NOTHING, MADE, MUST_HAVE, NOT_DEFINED } said_t;

#define MATH(...) MADE
#define MATH2(...) MADE
#define WIDE(...) MADE
#define WIDE2(...) MADE
#define ROW(...) MADE
#define EACH(...) MUST_HAVE
#define NONE NOT_DEFINED
#define PESTLE_EXPAND(NAME, FLOATS, INTEGERS) \
  {PESTLE_OP_##NAME, {FLOATS, INTEGERS}},
static const struct {
  pestle_op_t op;
  said_t said[2];
} expansions[] = {
#include "codegen/legalise/expand.def"
};

// Each op has its row in expand.def, in the order of scalar.def, and the row is
// true: a target without the op gets a kernel that has none of it, or is told that
// it must have it. No transcendental is asked of any target.
static void test_every_op(void** state) {
  (void)state;
  const pestle_dtype_t dtypes[] = {PESTLE_F32, PESTLE_F64, PESTLE_I8,
                                   PESTLE_I32, PESTLE_I64, PESTLE_U8,
                                   PESTLE_U32, PESTLE_U64};
  assert_int_equal(sizeof expansions / sizeof *expansions, PESTLE_SCALAR_COUNT);
  for (size_t i = 0; i < PESTLE_SCALAR_COUNT; ++i) {
    pestle_op_t op = (pestle_op_t)i;
    const pestle_op_info_t* info = pestle_op_info(op);
    assert_int_equal(expansions[i].op, op);
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; ++d) {
      bool is_float = pestle_dtype_is(dtypes[d], PESTLE_KIND_FLOAT);
      said_t said = expansions[i].said[!is_float];
      assert_int_equal(said == NOT_DEFINED, !takes(op, dtypes[d]));
      if (is_float && info->flags & PESTLE_OP_FLAG_TRANS) {
        assert_int_equal(said, MADE);
      }
      if (said == NOT_DEFINED) continue;
      pestle_target_caps_t caps = full_caps();
      caps.op_dtypes[pestle_kir_code(op)] &= ~pestle_dtype_bit(dtypes[d]);
      pestle_kir_builder_t k, legal;
      build(&k, op, dtypes[d]);
      pestle_status_t status =
          pestle_kir_legalise(&k.view, &caps, PESTLE_NUMERICS_DEFAULT, &legal);
      if (said == MUST_HAVE) {
        assert_error(status, UNSUPPORTED,
                     "and nothing that it could be made of");
      } else {
        assert_ok(status);
        for (uint32_t n = 0; n < legal.view.inst_count; ++n) {
          const pestle_kir_inst_t* inst = pestle_kir_inst(&legal.view, n);
          assert_false(inst->op == pestle_kir_code(op) &&
                       inst->type == dtypes[d]);
        }
        pestle_kir_deinit(&legal);
      }
      pestle_kir_deinit(&k);
    }
  }
}

static void test_unsupported(void** state) {
  (void)state;
  pestle_kir_builder_t k, legal;
  pestle_target_caps_t caps = full_caps();
  caps.op_dtypes[PESTLE_KIR_SQRT] = 0;
  build(&k, PESTLE_OP_SQRT, PESTLE_F32);
  assert_error(
      pestle_kir_legalise(&k.view, &caps, PESTLE_NUMERICS_DEFAULT, &legal),
      UNSUPPORTED, "target ref has no sqrt on f32");
  pestle_kir_deinit(&k);
  caps = full_caps();
  // The expansion of exp on f64 is of nothing without fma.
  caps.op_dtypes[PESTLE_KIR_EXP] = 0;
  caps.op_dtypes[PESTLE_KIR_FMA] &= ~(1u << PESTLE_F64);
  build(&k, PESTLE_OP_EXP, PESTLE_F64);
  assert_error(
      pestle_kir_legalise(&k.view, &caps, PESTLE_NUMERICS_DEFAULT, &legal),
      UNSUPPORTED, "exponential on f64");
  pestle_kir_deinit(&k);
}

// --- Narrow dtypes ---

// The target without arithmetic, then without casts, then without memory.
static void drop(pestle_target_caps_t* caps, pestle_dtype_t dtype, int level) {
  uint32_t keep = ~pestle_dtype_bit(dtype);
  for (unsigned op = 0; op < PESTLE_KIR_OP_LIMIT; ++op) {
    bool memory = op == PESTLE_KIR_LOAD || op == PESTLE_KIR_STORE ||
                  op == PESTLE_KIR_GATHER || op == PESTLE_KIR_SCATTER;
    bool bits = op == PESTLE_KIR_CONST || op == PESTLE_KIR_BITCAST;
    if (memory && level < 2) continue;
    if (op == PESTLE_KIR_CAST && level < 1) continue;
    if (bits && level < 2) continue;
    caps->op_dtypes[op] &= keep;
  }
}

static void test_narrow(void** state) {
  (void)state;
  const pestle_dtype_t dtypes[] = {PESTLE_F16,
                                   PESTLE_BF16,
                                   PESTLE_F8E4M3FN,
                                   PESTLE_F8E5M2,
                                   PESTLE_F8E4M3FNUZ,
                                   PESTLE_F8E5M2FNUZ,
                                   PESTLE_I4,
                                   PESTLE_U4,
                                   PESTLE_I2,
                                   PESTLE_U2,
                                   PESTLE_F8E3M4,
                                   PESTLE_F8E4M3,
                                   PESTLE_F8E4M3B11FNUZ,
                                   PESTLE_F8E8M0FNU};
  for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; ++d) {
    for (int level = 0; level < 3; ++level) {
      pestle_target_caps_t caps = full_caps();
      drop(&caps, dtypes[d], level);
      for (unsigned op = 0; op < PESTLE_SCALAR_COUNT; ++op) {
        bool bitwise = op == PESTLE_OP_POPCNT || op == PESTLE_OP_CLZ ||
                       op == PESTLE_OP_SHIFT_LEFT ||
                       op == PESTLE_OP_SHIFT_RIGHT_ARITHMETIC ||
                       op == PESTLE_OP_SHIFT_RIGHT_LOGICAL;
        bool nibble = pestle_dtype_is_sub_byte(dtypes[d]);
        if (!takes((pestle_op_t)op, dtypes[d]) || (nibble && bitwise)) continue;
        compare((pestle_op_t)op, dtypes[d], &caps);
      }
    }
  }
}

// Casts between all, a bool in memory, and reductions.
static const char mixed_format[] =
    "kernel @mixed(@x : global %s[8] readonly, @y : global %s[8],\n"
    "    @m : global i1[8], @r : global %s[4], @b : global %s[8]) {\n"
    "  %%0 = const 0 : index\n"
    "  %%1 = const 1 : index\n"
    "  %%2 = for %%0 to %%1 step 1 group.x : index {\n"
    "    %%3 = load @x[%%0] : %sx8 align 1\n"
    "    %%4 = cast %%3 : %sx8\n"
    "    store @y[%%0], %%4 align 1\n"
    "    %%5 = ne %%3, %%3 : i1x8\n"
    "    store @m[%%0], %%5 align 1\n"
    "    %%6 = load @m[%%0] : i1x8 align 1\n"
    "    %%7 = const 1 : %sx8\n"
    "    %%8 = select %%6, %%7, %%4 : %sx8\n"
    "    %%9 = reduce %%8, add : %s\n"
    "    store @r[%%0], %%9 align 1\n"
    "    %%10 = reduce %%8, maximum : %s\n"
    "    store @r[%%1], %%10 align 1\n"
    "    %%11 = shuffle %%8, %%7, [7, 9, 3, 1, 0, 2, 8, 5] : %sx8\n"
    "    %%12 = bitcast %%11 : %sx8\n"
    "    store @b[%%0], %%12 align 1\n"
    "  }\n"
    "}\n";

static void compare_mixed(pestle_dtype_t from, pestle_dtype_t to) {
  static char text[4096];
  const char* f = pestle_dtype_info(from)->name;
  const char* t = pestle_dtype_info(to)->name;
  const char* b = pestle_dtype_size(to) == 1 ? "ui8" : "ui16";
  if (to == PESTLE_I4 || to == PESTLE_U4) b = to == PESTLE_I4 ? "ui4" : "i4";
  if (to == PESTLE_I2 || to == PESTLE_U2) b = to == PESTLE_I2 ? "ui2" : "i2";
  if (pestle_dtype_size(to) > 2) b = pestle_dtype_size(to) == 4 ? "i32" : "i64";
  snprintf(text, sizeof text, mixed_format, f, t, t, b, f, t, t, t, t, t, t, b);
  pestle_kir_builder_t k, legal;
  assert_ok(pestle_kir_parse(pestle_allocator_system(), text, strlen(text),
                             "mixed", &k));
  assert_ok(pestle_kir_verify(&k.view));
  for (int level = 0; level < 3; ++level) {
    pestle_target_caps_t caps = full_caps();
    const pestle_dtype_t lacks[] = {
        PESTLE_F16, PESTLE_BF16,     PESTLE_F8E5M2,        PESTLE_F8E4M3FN,
        PESTLE_I4,  PESTLE_U4,       PESTLE_F8E4M3B11FNUZ, PESTLE_I2,
        PESTLE_U2,  PESTLE_F8E8M0FNU};
    for (size_t i = 0; i < sizeof lacks / sizeof *lacks; ++i)
      drop(&caps, lacks[i], level);
    if (level == 2) caps.op_dtypes[PESTLE_KIR_STORE] &= ~(1u << PESTLE_I1);
    assert_ok(
        pestle_kir_legalise(&k.view, &caps, PESTLE_NUMERICS_DEFAULT, &legal));
    assert_ok(pestle_kir_verify(&legal.view));
    for (uint64_t seed = 1; seed < 40; ++seed) {
      uint64_t y[2][8] = {{0}}, m[2][8] = {{0}}, r[2][8] = {{0}};
      uint64_t bits[2][8] = {{0}};
      int32_t trap;
      fill(from, a_data, seed * 77);
      void* native[] = {a_data, y[0], m[0], r[0], bits[0]};
      void* lesser[] = {a_data, y[1], m[1], r[1], bits[1]};
      assert_ok(kir_test_run(&k.view, native, NULL, 0, 1, &trap));
      assert_ok(kir_test_run(&legal.view, lesser, NULL, 0, 1, &trap));
      assert_int_equal(trap, 0);
      char what[64];
      snprintf(what, sizeof what, "from %s, level %d:", f, level);
      expect_same(what, to, y[0], y[1], 8);
      expect_same(what, PESTLE_I1, m[0], m[1], 8);
      expect_same(what, to, r[0], r[1], 2);
      // The same bits, but for a NaN's.
      expect_same(what, to, bits[0], bits[1], 8);
    }
    pestle_kir_deinit(&legal);
  }
  pestle_kir_deinit(&k);
}

static void test_mixed(void** state) {
  (void)state;
  const pestle_dtype_t dtypes[] = {
      PESTLE_F16, PESTLE_BF16, PESTLE_F8E4M3FN,      PESTLE_F8E5M2,   PESTLE_I4,
      PESTLE_U4,  PESTLE_F32,  PESTLE_F64,           PESTLE_I32,      PESTLE_I8,
      PESTLE_I2,  PESTLE_U2,   PESTLE_F8E4M3B11FNUZ, PESTLE_F8E8M0FNU};
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; ++i) {
    for (size_t j = 0; j < sizeof dtypes / sizeof *dtypes; ++j) {
      if (dtypes[j] == PESTLE_I8) continue;
      compare_mixed(dtypes[i], dtypes[j]);
    }
  }
}

// With fast numerics nothing rounds but the store.
static void test_fast(void** state) {
  (void)state;
  const char* text =
      "kernel @fast(@x : global f16[1] readonly, @y : global f16[1]) {\n"
      "  %0 = const 0 : index\n"
      "  %1 = const 1 : index\n"
      "  %2 = for %0 to %1 step 1 group.x : index {\n"
      "    %3 = load @x[%0] : f16 align 2\n"
      "    %4 = const 2048.0 : f16\n"
      "    %5 = add %3, %4 : f16\n"
      "    %6 = subtract %5, %4 : f16\n"
      "    store @y[%0], %6 align 2\n"
      "  }\n"
      "}\n";
  pestle_kir_builder_t k, legal;
  pestle_target_caps_t caps = full_caps();
  uint16_t x = pestle_f16_from_f32(0.5f), y;
  int32_t trap;
  assert_ok(pestle_kir_parse(pestle_allocator_system(), text, strlen(text),
                             "fast", &k));
  assert_ok(kir_test_run(&k.view, (void*[]){&x, &y}, NULL, 0, 1, &trap));
  assert_float_equal(pestle_f16_to_f32(y), 0, 0);
  assert_ok(pestle_kir_legalise(&k.view, &caps, PESTLE_NUMERICS_FAST, &legal));
  assert_ok(kir_test_run(&legal.view, (void*[]){&x, &y}, NULL, 0, 1, &trap));
  assert_float_equal(pestle_f16_to_f32(y), 0.5, 0);
  pestle_kir_deinit(&legal);
  pestle_kir_deinit(&k);
}

// Makes the CPU take denormal numbers for 0, or no longer; false: it cannot.
static bool set_no_denormals(bool on) {
#ifdef __SSE2__
  unsigned word = __builtin_ia32_stmxcsr();
  const unsigned bits = 0x8040;
  __builtin_ia32_ldmxcsr(on ? word | bits : word & ~bits);
  return true;
#else
  (void)on;
  return false;
#endif
}

// Every pattern becomes its number also where a denormal f32 is 0: no step has
// one. (The least of scales is one.)
static void test_without_denormals(void** state) {
  (void)state;
  static const char format[] =
      "kernel @wide(@x : global %s[256] readonly, @y : global f32[256]) {\n"
      "  %%0 = const 0 : index\n"
      "  %%1 = const 256 : index\n"
      "  %%2 = for %%0 to %%1 step 1 group.x : index {\n"
      "    %%3 = load @x[%%2] : %s align 1\n"
      "    %%4 = cast %%3 : f32\n"
      "    store @y[%%2], %%4 align 4\n"
      "  }\n"
      "}\n";
#define DTYPE(NAME, ...) PESTLE_##NAME,
  static const pestle_dtype_t dtypes[] = {PESTLE_FLOAT_FORMATS_SMALL(DTYPE)
                                              PESTLE_FLOAT_FORMATS_8(DTYPE)};
#undef DTYPE
  uint8_t x[256];
  for (int i = 0; i < 256; ++i)
    x[i] = (uint8_t)i;
  for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; ++d) {
    if (dtypes[d] == PESTLE_F8E8M0FNU) continue;
    char text[1024];
    float y[256];
    int32_t trap;
    const char* name = pestle_dtype_info(dtypes[d])->name;
    snprintf(text, sizeof text, format, name, name);
    pestle_kir_builder_t k, legal;
    pestle_target_caps_t caps = full_caps();
    drop(&caps, dtypes[d], 2);
    assert_ok(pestle_kir_parse(pestle_allocator_system(), text, strlen(text),
                               "wide", &k));
    assert_ok(
        pestle_kir_legalise(&k.view, &caps, PESTLE_NUMERICS_DEFAULT, &legal));
    if (!set_no_denormals(true)) skip();
    pestle_status_t status =
        kir_test_run(&legal.view, (void*[]){x, y}, NULL, 0, 256, &trap);
    set_no_denormals(false);
    assert_ok(status);
    for (uint64_t i = 0; i < 256; ++i) {
      double number = pestle_float_decode(dtypes[d], i);
      if (isnan(number) ? !isnan(y[i]) : (double)y[i] != number)
        fail_msg("%s: %llu is %g, not %g", name, (unsigned long long)i,
                 (double)y[i], number);
    }
    pestle_kir_deinit(&legal);
    pestle_kir_deinit(&k);
  }
}

// --- Lanes ---

static const char long_text[] =
    "kernel @long(@x : global f32[70] readonly, @y : global f32[70],\n"
    "    @t : private f32x16[2], @s : global f32[1]) {\n"
    "  %0 = const 0 : index\n"
    "  %1 = const 1 : index\n"
    "  %5 = const 5 : index\n"
    "  %6 = const 70 : index\n"
    "  %7 = for %0 to %5 step 1 group.x : index {\n"
    "    alloc @t\n"
    "    %8 = madi %7, 16, %0 : index\n"
    "    %9 = mask %8, %6 : i1x16\n"
    "    %10 = load @x[%8], mask %9 : f32x16 align 64\n"
    "    store @t[%1], %10 align 4\n"
    "    %11 = load @t[%1] : f32x16 align 4\n"
    "    %12 = iota : i32x16\n"
    "    %13 = cast %12 : f32x16\n"
    "    %14 = add %11, %13 : f32x16\n"
    "    %15 = const 20 : i32x16\n"
    "    %16 = subtract %15, %12 : i32x16\n"
    "    %17 = gather @x[%16] : f32x16 align 4\n"
    "    %18 = multiply %14, %17 : f32x16\n"
    "    %19 = reduce %18, add : f32\n"
    "    %20 = extract %18, 13 : f32\n"
    "    %21 = insert %18, %19, 6 : f32x16\n"
    "    %22 = splat %20 : f32x16\n"
    "    %23 = lt %21, %22 : i1x16\n"
    "    %24 = select %23, %21, %22 : f32x16\n"
    "    store @y[%8], %24, mask %9 align 64\n"
    "    store @s[%0], %19 align 4\n"
    "  }\n"
    "}\n";

static void test_lanes(void** state) {
  (void)state;
  pestle_kir_builder_t k, legal;
  float x[70], y[2][71], s[2];
  for (int i = 0; i < 70; ++i)
    x[i] = (float)(i * i % 37) / 7;
  assert_ok(pestle_kir_parse(pestle_allocator_system(), long_text,
                             strlen(long_text), "long", &k));
  assert_ok(pestle_kir_verify(&k.view));
  int32_t trap;
  y[0][70] = y[1][70] = -1;
  assert_ok(
      kir_test_run(&k.view, (void*[]){x, y[0], &s[0]}, NULL, 0, 5, &trap));
  for (unsigned lanes = 1; lanes <= 16; lanes *= 2) {
    pestle_target_caps_t caps = full_caps();
    caps.max_lanes = lanes;
    assert_ok(
        pestle_kir_legalise(&k.view, &caps, PESTLE_NUMERICS_DEFAULT, &legal));
    assert_ok(pestle_kir_verify(&legal.view));
    memset(y[1], 0, 70 * sizeof(float));
    assert_ok(kir_test_run(&legal.view, (void*[]){x, y[1], &s[1]}, NULL, 0, 5,
                           &trap));
    assert_int_equal(trap, 0);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    assert_memory_equal(&s[0], &s[1], sizeof s[0]);
    pestle_kir_deinit(&legal);
  }
  pestle_kir_deinit(&k);
}

// mreg_stream is a hint: without it, mreg_load.
static void test_stream(void** state) {
  (void)state;
  static const char text[] =
      "kernel @k(\n    @g : global bf16[512] readonly,\n"
      "    @o : global f32[256]) {\n  %0 = const 0 : index\n"
      "  %1 = const 1 : index\n"
      "  %2 = for %0 to %1 step 1 group.x : index {\n"
      "    mreg_stream @g, %0, 32, 3\n    mreg_store @o, %0, 16, 3\n  }\n}\n";
  pestle_kir_builder_t k, legal;
  pestle_target_caps_t caps = full_caps();
  assert_ok(pestle_kir_parse(pestle_allocator_system(), text, strlen(text),
                             "stream", &k));
  assert_ok(pestle_kir_verify(&k.view));
  const unsigned ops[] = {PESTLE_KIR_MREG_STREAM, PESTLE_KIR_MREG_LOAD};
  for (unsigned op = PESTLE_KIR_MREG_ZERO; op <= PESTLE_KIR_MREG_STREAM; ++op)
    caps.op_dtypes[op] = UINT32_MAX;
  for (int i = 0; i < 2; ++i) {
    assert_ok(
        pestle_kir_legalise(&k.view, &caps, PESTLE_NUMERICS_DEFAULT, &legal));
    assert_ok(pestle_kir_verify(&legal.view));
    unsigned seen[2] = {0};
    for (uint32_t at = 0; at < legal.view.inst_count; ++at) {
      for (int j = 0; j < 2; ++j)
        seen[j] += pestle_kir_inst(&legal.view, at)->op == ops[j];
    }
    assert_int_equal(seen[i], 1);
    assert_int_equal(seen[1 - i], 0);
    pestle_kir_deinit(&legal);
    caps.op_dtypes[PESTLE_KIR_MREG_STREAM] = 0;
  }
  pestle_kir_deinit(&k);
}

static void test_out_of_memory(void** state) {
  (void)state;
  pestle_kir_builder_t k;
  pestle_target_caps_t caps = full_caps();
  caps.op_dtypes[PESTLE_KIR_TANH] = 0;
  drop(&caps, PESTLE_BF16, 2);
  build(&k, PESTLE_OP_TANH, PESTLE_BF16);
  legalise_out_of_memory(&k, &caps);
  pestle_kir_deinit(&k);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rows),
      cmocka_unit_test(test_every_op),
      cmocka_unit_test(test_unsupported),
      cmocka_unit_test(test_narrow),
      cmocka_unit_test(test_mixed),
      cmocka_unit_test(test_without_denormals),
      cmocka_unit_test(test_fast),
      cmocka_unit_test(test_lanes),
      cmocka_unit_test(test_stream),
      cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

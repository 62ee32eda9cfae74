// SPDX-License-Identifier: Apache-2.0
// Small floats, checked arithmetic, bits and the dtype table.
#include <math.h>

#include "base/bits.h"
#include "base/checked.h"
#include "base/half.h"
#include "pestle/tensor.h"
#include "pestle/types.h"
#include "test.h"

// A format as its standard describes it, apart from half.c.
typedef struct spec_t {
  pestle_dtype_t dtype;
  int bits, exponent_bits, mantissa_bits, bias;
  enum { IEEE, FINITE, UNSIGNED_ZERO, NUMBERS } kind;
  double max;
} spec_t;

static const spec_t specs[] = {
    {PESTLE_F16, 16, 5, 10, 15, IEEE, 65504},
    {PESTLE_BF16, 16, 8, 7, 127, IEEE, 0x1.fep127},
    {PESTLE_F8E4M3FN, 8, 4, 3, 7, FINITE, 448},
    {PESTLE_F8E5M2, 8, 5, 2, 15, IEEE, 57344},
    {PESTLE_F8E4M3FNUZ, 8, 4, 3, 8, UNSIGNED_ZERO, 240},
    {PESTLE_F8E5M2FNUZ, 8, 5, 2, 16, UNSIGNED_ZERO, 57344},
    {PESTLE_F8E3M4, 8, 3, 4, 3, IEEE, 15.5},
    {PESTLE_F8E4M3, 8, 4, 3, 7, IEEE, 240},
    {PESTLE_F8E4M3B11FNUZ, 8, 4, 3, 11, UNSIGNED_ZERO, 30},
    {PESTLE_F4E2M1FN, 4, 2, 1, 1, NUMBERS, 6},
    {PESTLE_F6E2M3FN, 6, 2, 3, 1, NUMBERS, 7.5},
    {PESTLE_F6E3M2FN, 6, 3, 2, 3, NUMBERS, 28},
};
enum { SPEC_COUNT = sizeof(specs) / sizeof(specs[0]) };

// The value of a code by the standard's formula.
static double spec_value(const spec_t* spec, uint32_t code) {
  uint32_t sign = code >> (spec->bits - 1);
  uint32_t field = code >> spec->mantissa_bits;
  field &= (1u << spec->exponent_bits) - 1;
  uint32_t mantissa = code & ((1u << spec->mantissa_bits) - 1);
  uint32_t top = (1u << spec->exponent_bits) - 1;
  double fraction = ldexp((double)mantissa, -spec->mantissa_bits);
  double value;
  if (spec->kind == UNSIGNED_ZERO && sign && !field && !mantissa) {
    return (double)NAN;
  }
  if (spec->kind == IEEE && field == top) {
    value = mantissa ? (double)NAN : (double)INFINITY;
  } else if (spec->kind == FINITE && field == top &&
             mantissa == (1u << spec->mantissa_bits) - 1) {
    value = (double)NAN;
  } else if (field == 0) {
    value = ldexp(fraction, 1 - spec->bias);
  } else {
    value = ldexp(1 + fraction, (int)field - spec->bias);
  }
  return sign ? -value : value;
}

static uint32_t sign_bit(const spec_t* spec) {
  return 1u << (spec->bits - 1);
}

static void test_decode_every_code(void** state) {
  (void)state;
  for (int s = 0; s < SPEC_COUNT; ++s) {
    const spec_t* spec = &specs[s];
    for (uint32_t code = 0; code < 1u << spec->bits; ++code) {
      double expected = spec_value(spec, code);
      double value = pestle_float_decode(spec->dtype, code);
      if (isnan(expected)) {
        assert_true(isnan(value));
        // A NaN stays one, with its sign if the format has signed NaNs.
        uint64_t again = pestle_float_encode(spec->dtype, value);
        assert_true(isnan(spec_value(spec, (uint32_t)again)));
        assert_int_equal(again >> (spec->bits - 1), code >> (spec->bits - 1));
        continue;
      }
      assert_memory_equal(&value, &expected, sizeof(value));
      assert_int_equal(pestle_float_encode(spec->dtype, value), code);
    }
  }
}

// Between two neighbours everything is decided at the middle, so trying the
// middle and the doubles beside it, for every pair, tries every case.
static void test_round_at_every_boundary(void** state) {
  (void)state;
  for (int s = 0; s < SPEC_COUNT; ++s) {
    const spec_t* spec = &specs[s];
    uint32_t max_code = 0;
    while (spec_value(spec, max_code) < spec->max)
      ++max_code;
    assert_true(spec_value(spec, max_code) == spec->max);
    for (uint32_t code = 0; code < max_code; ++code) {
      double low = spec_value(spec, code);
      double high = spec_value(spec, code + 1);
      assert_true(low < high);
      double middle = low + (high - low) / 2;
      uint32_t even = code & 1 ? code + 1 : code;
      for (uint32_t negative = 0; negative < 2; ++negative) {
        double sign = negative ? -1 : 1;
        uint32_t bit = negative ? sign_bit(spec) : 0;
        uint32_t below = code, tie = even;
        // Without a -0 it is 0 that a small negative number rounds to.
        uint32_t zero = spec->kind == UNSIGNED_ZERO ? 0 : bit;
        below = below ? below | bit : zero;
        tie = tie ? tie | bit : zero;
        assert_int_equal(
            pestle_float_encode(spec->dtype, sign * nextafter(middle, 0)),
            below);
        assert_int_equal(pestle_float_encode(spec->dtype, sign * middle), tie);
        assert_int_equal(
            pestle_float_encode(spec->dtype, sign * nextafter(middle, high)),
            (code + 1) | bit);
      }
    }
  }
}

// Powers of two from 2^-127 on, and what is no such number.
static void test_scale(void** state) {
  (void)state;
  const pestle_dtype_t scale = PESTLE_F8E8M0FNU;
  for (uint32_t code = 0; code < 255; ++code) {
    double value = ldexp(1, (int)code - 127);
    assert_true(pestle_float_decode(scale, code) == value);
    assert_int_equal(pestle_float_encode(scale, value), code);
    assert_int_equal(pestle_float_encode(scale, nextafter(1.5 * value, 0)),
                     code);
    // Halves go up, beyond the largest to NaN.
    assert_int_equal(pestle_float_encode(scale, 1.5 * value), code + 1);
    assert_int_equal(pestle_float_encode(scale, -value), 255);
  }
  assert_true(isnan(pestle_float_decode(scale, 255)));
  const double none[] = {0.0, -0.0, (double)NAN, (double)INFINITY, 0x1p128};
  for (int i = 0; i < 5; ++i)
    assert_int_equal(pestle_float_encode(scale, none[i]), 255);
  const double less[] = {0x1p-128, 0x1.8p-128, 1e-300, 5e-324};
  for (int i = 0; i < 4; ++i)
    assert_int_equal(pestle_float_encode(scale, less[i]), 0);
  assert_true(pestle_float_max(scale) == 0x1p127);
  assert_true(pestle_float_max(PESTLE_F8E4M3B11FNUZ) == 30);
}

static void test_overflow(void** state) {
  (void)state;
  for (int s = 0; s < SPEC_COUNT; ++s) {
    const spec_t* spec = &specs[s];
    uint32_t max_code = 0;
    while (spec_value(spec, max_code) < spec->max)
      ++max_code;
    // Half a step above the largest number is where overflow begins; a tie goes
    // to the even code, which is the next one unless the largest is even.
    double step = spec->max - spec_value(spec, max_code - 1);
    double limit = spec->max + step / 2;
    assert_int_equal(pestle_float_encode(spec->dtype, nextafter(limit, 0)),
                     max_code);
    double tie = pestle_float_round(spec->dtype, limit);
    if (max_code & 1 && spec->kind != NUMBERS) {
      assert_true(isinf(tie) || isnan(tie));
    } else {
      assert_true(tie == spec->max);
    }
    const double beyond[] = {nextafter(limit, (double)INFINITY), 1e300,
                             (double)INFINITY};
    for (int i = 0; i < 3; ++i) {
      double plus = pestle_float_round(spec->dtype, beyond[i]);
      double minus = pestle_float_round(spec->dtype, -beyond[i]);
      if (spec->kind == IEEE) {
        assert_true(isinf(plus) && plus > 0);
        assert_true(isinf(minus) && minus < 0);
      } else if (spec->kind == NUMBERS) {
        assert_true(plus == spec->max && minus == -spec->max);
      } else {
        assert_true(isnan(plus) && isnan(minus));
      }
    }
  }
  assert_int_equal(pestle_f8e4m3fn_from_f32(464), 0x7e);
  assert_int_equal(pestle_f8e4m3fn_from_f32(465), 0x7f);
  assert_int_equal(pestle_f8e4m3fnuz_from_f32(-1e30f), 0x80);
}

// All patterns are numbers. NaN is -0 whatever its sign; bits above the sign are
// not looked at.
static void test_numbers(void** state) {
  (void)state;
  for (int s = 0; s < SPEC_COUNT; ++s) {
    const spec_t* spec = &specs[s];
    if (spec->kind != NUMBERS) continue;
    uint64_t zero = sign_bit(spec);
    assert_int_equal(pestle_float_encode(spec->dtype, (double)NAN), zero);
    assert_int_equal(pestle_float_encode(spec->dtype, -(double)NAN), zero);
    assert_int_equal(pestle_float_encode(spec->dtype, -0.0), zero);
    assert_true(pestle_float_max(spec->dtype) == spec->max);
    for (uint32_t byte = 0; byte < 256; ++byte) {
      uint32_t code = byte & ((1u << spec->bits) - 1);
      double value = pestle_float_decode(spec->dtype, byte);
      assert_int_equal(pestle_float_encode(spec->dtype, value), code);
      assert_int_equal(pestle_dtype_extend(spec->dtype, (uint8_t)byte), code);
    }
    // What no target sees has no bit.
    assert_int_equal(pestle_dtype_bit(spec->dtype), 0);
  }
  assert_int_equal(pestle_dtype_bit(PESTLE_F8E8M0FNU), 1u << 30);
}

static void test_known_values(void** state) {
  (void)state;
  assert_int_equal(pestle_f16_from_f32(1.0f), 0x3c00);
  assert_int_equal(pestle_f16_from_f32(65520.0f), 0x7c00);
  assert_int_equal(pestle_f16_from_f32(65519.0f), 0x7bff);
  assert_int_equal(pestle_f16_from_f32(0x1p-25f), 0);
  assert_int_equal(pestle_f16_from_f32(0x1.000002p-25f), 1);
  assert_int_equal(pestle_bf16_from_f32(1.00390625f), 0x3f80);
  assert_int_equal(pestle_bf16_from_f32(3.4e38f), 0x7f80);
  assert_int_equal(pestle_f8e5m2_from_f32(-1.0f), 0xbc);
  assert_int_equal(pestle_f8e5m2fnuz_from_f32(-0.0f), 0);
  assert_true(pestle_f16_to_f32(0x0001) == 0x1p-24f);
  assert_true(pestle_bf16_to_f32(0x0001) == 0x1p-133f);
  assert_true(pestle_f8e4m3fn_to_f32(0x01) == 0x1p-9f);
  assert_true(pestle_f8e5m2_to_f32(0xfc) == -INFINITY);
  assert_true(pestle_f8e4m3fnuz_to_f32(0x7f) == 240.0f);
  assert_true(pestle_f8e5m2fnuz_to_f32(0x01) == 0x1p-17f);
  // From f64 there is one rounding: by way of f32 this would be a tie.
  assert_int_equal(pestle_float_encode(PESTLE_F16, 1 + 0x1p-11 + 0x1p-40),
                   0x3c01);
  assert_int_equal(pestle_float_encode(PESTLE_F32, 1.0), 0x3f800000);
  assert_true(pestle_float_encode(PESTLE_F64, -2.0) ==
              UINT64_C(0xc000000000000000));
  assert_true(pestle_float_decode(PESTLE_F32, 0xbf800000) == -1.0);
  assert_int_equal(pestle_float_encode(PESTLE_I32, 1.0), 0);
  assert_true(pestle_float_decode(PESTLE_I32, 1) == 0);
  assert_true(pestle_float_round(PESTLE_F64, 5e-324) == 5e-324);
  assert_int_equal(pestle_float_encode(PESTLE_BF16, 5e-324), 0);
}

static void test_checked(void** state) {
  (void)state;
  size_t size;
  assert_true(pestle_checked_add(SIZE_MAX - 1, 1, &size));
  assert_false(pestle_checked_add(SIZE_MAX, 1, &size));
  assert_false(pestle_checked_sub(1, 2, &size));
  assert_false(pestle_checked_mul(SIZE_MAX / 2, 3, &size));
  assert_true(pestle_checked_align_up(65, 64, &size));
  assert_int_equal(size, 128);
  assert_false(pestle_checked_align_up(SIZE_MAX - 5, 64, &size));
  assert_true(pestle_checked_size(7, &size));
  assert_int_equal(size, 7);
  assert_false(pestle_checked_size(-1, &size));
  int64_t extent;
  assert_false(pestle_checked_add_i64(INT64_MAX, 1, &extent));
  assert_false(pestle_checked_sub_i64(INT64_MIN, 1, &extent));
  assert_false(pestle_checked_mul_i64(INT64_MIN, -1, &extent));

  const int64_t dims[] = {2, 3, 4};
  assert_true(pestle_checked_count(dims, 3, &extent));
  assert_int_equal(extent, 24);
  assert_true(pestle_checked_count(NULL, 0, &extent));
  assert_int_equal(extent, 1);
  const int64_t empty[] = {2, 0, 4};
  assert_true(pestle_checked_count(empty, 3, &extent));
  assert_int_equal(extent, 0);
  const int64_t hidden[] = {0, INT64_MAX, 2};
  assert_false(pestle_checked_count(hidden, 3, &extent));
  const int64_t large[] = {INT64_C(1) << 32, INT64_C(1) << 31};
  assert_false(pestle_checked_count(large, 2, &extent));
  const int64_t dynamic[] = {2, PESTLE_DIM_DYNAMIC};
  assert_false(pestle_checked_count(dynamic, 2, &extent));
}

static void test_dense_strides(void** state) {
  (void)state;
  const int64_t dims[] = {5, 0, 3, 1, 2};
  int64_t strides[5] = {0};
  pestle_dense_strides(dims, 5, 4, strides);
  const int64_t want[] = {24, 24, 8, 8, 4};
  assert_memory_equal(strides, want, sizeof want);
  pestle_dense_strides(NULL, 0, 4, NULL);
}

static void test_bits(void** state) {
  (void)state;
  assert_int_equal(pestle_popcount(UINT64_MAX), 64);
  assert_int_equal(pestle_clz(0), 64);
  assert_int_equal(pestle_clz(1), 63);
  assert_int_equal(pestle_ctz(0), 64);
  assert_int_equal(pestle_ctz(8), 3);
  assert_true(pestle_is_pow2(1) && pestle_is_pow2(UINT64_C(1) << 63));
  assert_false(pestle_is_pow2(0) || pestle_is_pow2(3));
  assert_int_equal(pestle_next_pow2(0), 1);
  assert_int_equal(pestle_next_pow2(5), 8);
  assert_int_equal(pestle_next_pow2(8), 8);
  assert_true(pestle_next_pow2((UINT64_C(1) << 63) + 1) == 0);
  assert_int_equal(pestle_log2_floor(1), 0);
  assert_int_equal(pestle_log2_floor(1023), 9);
  assert_int_equal(pestle_align_up(1, 64), 64);
  assert_int_equal(pestle_align_down(127, 64), 64);
  assert_int_equal(pestle_ceil_div(0, 8), 0);
  assert_int_equal(pestle_ceil_div(9, 8), 2);
  assert_true(pestle_ceil_div(INT64_MAX, 2) == (INT64_C(1) << 62));
}

static void test_dtypes(void** state) {
  (void)state;
  for (int i = PESTLE_NONE + 1; i < PESTLE_DTYPE_COUNT; ++i) {
    pestle_dtype_t dtype = (pestle_dtype_t)i;
    const pestle_dtype_info_t* info = pestle_dtype_info(dtype);
    assert_int_equal(pestle_dtype_from_name(info->name), dtype);
    pestle_dtype_t back =
        pestle_dtype_from_dlpack(pestle_dtype_to_dlpack(dtype));
    bool has_tensor =
        dtype != PESTLE_INDEX && dtype != PESTLE_ADDR && dtype != PESTLE_MBAR;
    assert_int_equal(back, has_tensor ? dtype : PESTLE_NONE);
  }
  assert_int_equal(pestle_dtype_from_name("si32"), PESTLE_I32);
  assert_int_equal(pestle_dtype_from_name("sindex"), PESTLE_NONE);
  assert_int_equal(pestle_dtype_from_name("sui8"), PESTLE_NONE);
  assert_int_equal(pestle_dtype_from_name("si1"), PESTLE_NONE);
  assert_int_equal(pestle_dtype_from_name("none"), PESTLE_NONE);
  assert_int_equal(pestle_dtype_from_name(""), PESTLE_NONE);
  assert_int_equal(pestle_dtype_from_name("f31"), PESTLE_NONE);
  assert_int_equal(pestle_dtype_from_dlpack((pestle_dl_dtype_t){2, 32, 4}),
                   PESTLE_NONE);
  assert_int_equal(pestle_dtype_from_dlpack((pestle_dl_dtype_t){2, 24, 1}),
                   PESTLE_NONE);
  assert_string_equal(pestle_dtype_info((pestle_dtype_t)99)->name, "none");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_decode_every_code),
      cmocka_unit_test(test_round_at_every_boundary),
      cmocka_unit_test(test_overflow),
      cmocka_unit_test(test_numbers),
      cmocka_unit_test(test_scale),
      cmocka_unit_test(test_known_values),
      cmocka_unit_test(test_checked),
      cmocka_unit_test(test_dense_strides),
      cmocka_unit_test(test_bits),
      cmocka_unit_test(test_dtypes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// What two dtypes both become, and what a number becomes beside an array.
#include "base/require.h"
#include "ir/infer.h"
#include "lazy/lazy.h"
#include "pestle/numeric.h"

static unsigned bits_of(pestle_dtype_t dtype) {
  return pestle_dtype_info(dtype)->bits;
}

static bool is_one_of(pestle_dtype_t a, pestle_dtype_t b, unsigned kinds) {
  return pestle_dtype_is(a, kinds) && pestle_dtype_is(b, kinds);
}

static pestle_dtype_t wider(pestle_dtype_t a, pestle_dtype_t b) {
  return bits_of(a) >= bits_of(b) ? a : b;
}

// The signed integer that holds |u|'s numbers and |s|'s; NONE: there is none.
static pestle_dtype_t join_signs(pestle_dtype_t s, pestle_dtype_t u) {
  if (bits_of(s) > bits_of(u)) return s;
  switch (bits_of(u)) {
    case 2:
    case 4:
      return PESTLE_I8;
    case 8:
      return PESTLE_I16;
    case 16:
      return PESTLE_I32;
    case 32:
      return PESTLE_I64;
    default:
      return PESTLE_NONE;
  }
}

static bool is_narrow_float(pestle_dtype_t dtype) {
  return pestle_dtype_is(dtype, PESTLE_KIND_FLOAT) && bits_of(dtype) <= 8;
}

static pestle_dtype_t join_floats(pestle_dtype_t a, pestle_dtype_t b) {
  if (is_narrow_float(a) || is_narrow_float(b)) return PESTLE_NONE;
  // f16 and bf16: neither holds the other's numbers.
  return bits_of(a) == bits_of(b) ? PESTLE_F32 : wider(a, b);
}

static pestle_dtype_t to_complex(pestle_dtype_t real) {
  return real == PESTLE_F64 ? PESTLE_C128 : PESTLE_C64;
}

// The common dtype of |a| and |b|, which differ; NONE: there is none.
static pestle_dtype_t join(pestle_dtype_t a, pestle_dtype_t b) {
  if (is_narrow_float(a) || is_narrow_float(b)) return PESTLE_NONE;
  if (pestle_dtype_is(a, PESTLE_KIND_BOOL)) return b;
  if (pestle_dtype_is(b, PESTLE_KIND_BOOL)) return a;
  if (is_one_of(a, b, PESTLE_KIND_INT)) {
    bool first = pestle_dtype_is(a, PESTLE_KIND_SIGNED);
    bool second = pestle_dtype_is(b, PESTLE_KIND_SIGNED);
    if (first == second) return wider(a, b);
    return first ? join_signs(a, b) : join_signs(b, a);
  }
  if (pestle_dtype_is(a, PESTLE_KIND_INT)) return b;
  if (pestle_dtype_is(b, PESTLE_KIND_INT)) return a;
  if (is_one_of(a, b, PESTLE_KIND_FLOAT)) return join_floats(a, b);
  return to_complex(wider(pestle_dtype_part(a), pestle_dtype_part(b)));
}

pestle_status_t pestle_dtype_promote(pestle_dtype_t a, pestle_dtype_t b,
                                     pestle_dtype_t* out_dtype) {
  PESTLE_REQUIRE(out_dtype, "a place for the dtype");
  *out_dtype = PESTLE_NONE;
  bool are_numbers = pestle_dtype_is_stored(a) && pestle_dtype_is_stored(b);
  if (are_numbers) *out_dtype = a == b ? a : join(a, b);
  if (*out_dtype != PESTLE_NONE) return NULL;
  return PESTLE_ERROR(WRONG_TYPE,
                      "%s and %s have no common dtype: convert one of them",
                      pestle_dtype_info(a)->name, pestle_dtype_info(b)->name);
}

pestle_status_t pestle_dtype_of_number(pestle_dtype_t dtype,
                                       pestle_dtype_kind_t kind,
                                       pestle_dtype_t* out_dtype) {
  PESTLE_REQUIRE(out_dtype, "a place for the dtype");
  *out_dtype = PESTLE_NONE;
  if (!pestle_dtype_is_stored(dtype)) {
    return PESTLE_ERROR(WRONG_TYPE, "%s is no dtype of numbers",
                        pestle_dtype_info(dtype)->name);
  }
  *out_dtype = dtype;
  bool is_bool = pestle_dtype_is(dtype, PESTLE_KIND_BOOL);
  if (kind == PESTLE_KIND_SIGNED && is_bool) *out_dtype = PESTLE_I64;
  if (kind == PESTLE_KIND_FLOAT &&
      pestle_dtype_is(dtype, PESTLE_KIND_BOOL | PESTLE_KIND_INT)) {
    *out_dtype = PESTLE_F32;
  }
  if (kind == PESTLE_KIND_COMPLEX &&
      !pestle_dtype_is(dtype, PESTLE_KIND_COMPLEX)) {
    *out_dtype = to_complex(dtype);
  }
  return NULL;
}

static pestle_status_t convert(pestle_array_t* array, pestle_dtype_t dtype,
                               pestle_array_t** out_array) {
  pestle_type_t type = array->type;
  type.dtype = dtype;
  return pestle_array_convert(array, NULL, type, out_array);
}

// |a| != 0, of a complex number whether one of its parts is.
static pestle_status_t to_truth(pestle_array_t* a, pestle_array_t** out_array) {
  static const unsigned char zero[16];
  // It has no 0: bits that are clear are its least number.
  if (a->type.dtype == PESTLE_F8E8M0FNU) {
    pestle_array_t* wide;
    PESTLE_TRY(convert(a, PESTLE_F32, &wide));
    pestle_status_t status = to_truth(wide, out_array);
    pestle_array_release(wide);
    return status;
  }
  pestle_type_t type = {.dtype = a->type.dtype};
  pestle_array_t* zeros;
  PESTLE_TRY(pestle_array_full(a->device, &type, zero, &zeros));
  pestle_status_t status = pestle_array_ne(a, zeros, out_array);
  pestle_array_release(zeros);
  return status;
}

pestle_status_t pestle_numeric_cast(pestle_array_t* array, pestle_dtype_t dtype,
                                    pestle_array_t** out_array) {
  PESTLE_REQUIRE(array && out_array, "an array and a place for the array");
  *out_array = NULL;
  pestle_dtype_t own = array->type.dtype;
  if (own == dtype) {
    pestle_array_retain(array);
    *out_array = array;
    return NULL;
  }
  if (dtype == PESTLE_I1) return to_truth(array, out_array);
  if (pestle_dtype_is(own, PESTLE_KIND_COMPLEX) &&
      !pestle_dtype_is(dtype, PESTLE_KIND_COMPLEX)) {
    return PESTLE_ERROR(WRONG_TYPE,
                        "an array of %s has no values of %s: take its real or "
                        "its imaginary part",
                        pestle_dtype_info(own)->name,
                        pestle_dtype_info(dtype)->name);
  }
  return convert(array, dtype, out_array);
}

// SPDX-License-Identifier: Apache-2.0
// Functions of arrays as the array API standard has them: array.h's ops with dtypes
// that are promoted, and axes that may count from the end.
//
//   pestle_numeric_apply(PESTLE_NUMERIC_ADD, (pestle_array_t*[]){i32s, f32s}, 2, &y);
//   pestle_numeric_reduce(PESTLE_REDUCE_MEAN, y, &options, &mean);
//
// Everything records, as array.h does, and holds what array.h says of threads and
// references. Beside array.h's errors: WRONG_TYPE, a dtype that the function does not
// take, or two that have no common one; OUT_OF_RANGE, an axis that the array has not.
#ifndef PESTLE_NUMERIC_H_
#define PESTLE_NUMERIC_H_

#include "pestle/array.h"

PESTLE_EXTERN_C_BEGIN

// --- Dtypes ---

// The dtype that |a| and |b| both become: the standard's table; of an integer and a
// float the float; of f16 and bf16 f32. WRONG_TYPE: one is no number, or a float of
// 8 bits or fewer meets another dtype, which is never converted unasked.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_dtype_promote(
    pestle_dtype_t a, pestle_dtype_t b, pestle_dtype_t* out_dtype);
// What a number of the language that calls becomes beside |dtype|: |kind| is BOOL,
// SIGNED, FLOAT or COMPLEX. A number never widens a dtype of its own kind or a later
// one: 2 and 2.0 beside f16 are f16, 2.0 beside i8 is f32.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_dtype_of_number(
    pestle_dtype_t dtype, pestle_dtype_kind_t kind, pestle_dtype_t* out_dtype);
// |array| as |dtype|: a new reference to it where it is of that. As i1: whether each
// element is other than 0. WRONG_TYPE: complex numbers as real ones, which have no
// place for the imaginary part.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_numeric_cast(
    pestle_array_t* array, pestle_dtype_t dtype, pestle_array_t** out_array);

// --- Elementwise ---

typedef enum pestle_numeric_e {
#define PESTLE_NUMERIC(NAME, ...) PESTLE_NUMERIC_##NAME,
#include "pestle/numeric.def"
  PESTLE_NUMERIC_COUNT
} pestle_numeric_t;

// Row |fn| of numeric.def of |count| operands, which are promoted and broadcast.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_numeric_apply(pestle_numeric_t fn, pestle_array_t* const* operands,
                     size_t count, pestle_array_t** out_array);
// |a| where |condition|, of i1, is set, else |b|; the latter two are promoted, all
// three broadcast.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_numeric_where(pestle_array_t* condition, pestle_array_t* a,
                     pestle_array_t* b, pestle_array_t** out_array);

PESTLE_EXTERN_C_END

#endif  // PESTLE_NUMERIC_H_

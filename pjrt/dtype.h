// SPDX-License-Identifier: Apache-2.0
// Element types: the framework's and Pestle's.
#ifndef PESTLE_PJRT_DTYPE_H_
#define PESTLE_PJRT_DTYPE_H_

#include "pestle/types.h"
#include "pjrt/abi.h"

// X(framework's, Pestle's). Elements of 2 and 4 bits travel in a byte each, as
// Pestle's tensors have them. A token is an empty tensor of booleans.
#define PESTLE_PJRT_DTYPES(X)     \
  X(PRED, I1)                     \
  X(S2, I2)                       \
  X(S4, I4)                       \
  X(S8, I8)                       \
  X(S16, I16)                     \
  X(S32, I32)                     \
  X(S64, I64)                     \
  X(U2, U2)                       \
  X(U4, U4)                       \
  X(U8, U8)                       \
  X(U16, U16)                     \
  X(U32, U32)                     \
  X(U64, U64)                     \
  X(F16, F16)                     \
  X(F32, F32)                     \
  X(F64, F64)                     \
  X(BF16, BF16)                   \
  X(C64, C64)                     \
  X(C128, C128)                   \
  X(F8E5M2, F8E5M2)               \
  X(F8E4M3FN, F8E4M3FN)           \
  X(F8E4M3B11FNUZ, F8E4M3B11FNUZ) \
  X(F8E5M2FNUZ, F8E5M2FNUZ)       \
  X(F8E4M3FNUZ, F8E4M3FNUZ)       \
  X(F8E4M3, F8E4M3)               \
  X(F8E3M4, F8E3M4)               \
  X(F8E8M0FNU, F8E8M0FNU)         \
  X(F4E2M1FN, F4E2M1FN)

// NONE: Pestle has no such elements.
static inline pestle_dtype_t pestle_pjrt_dtype_of(PJRT_Buffer_Type type) {
  switch ((int)type) {
#define PESTLE_PJRT_CASE_(FROM, TO) \
  case PJRT_Buffer_Type_##FROM:     \
    return PESTLE_##TO;
    PESTLE_PJRT_DTYPES(PESTLE_PJRT_CASE_)
#undef PESTLE_PJRT_CASE_
    case PJRT_Buffer_Type_TOKEN:
      return PESTLE_I1;
    default:
      return PESTLE_NONE;
  }
}

// INVALID: the framework has no such elements.
static inline PJRT_Buffer_Type pestle_pjrt_type_of(pestle_dtype_t dtype) {
  switch ((int)dtype) {
#define PESTLE_PJRT_CASE_(FROM, TO) \
  case PESTLE_##TO:                 \
    return PJRT_Buffer_Type_##FROM;
    PESTLE_PJRT_DTYPES(PESTLE_PJRT_CASE_)
#undef PESTLE_PJRT_CASE_
    default:
      return PJRT_Buffer_Type_INVALID;
  }
}

#endif  // PESTLE_PJRT_DTYPE_H_

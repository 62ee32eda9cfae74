// SPDX-License-Identifier: Apache-2.0
// Element types. One row declares one; enum, names, sizes and DLPack codes are
// expanded from it. Shared by the graph IR, the kernel IR and the runtime.
//
// Contents:
// - Kinds
// - Element types
// - Float formats
// - Devices
#ifndef PESTLE_TYPES_H_
#define PESTLE_TYPES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pestle/export.h"

PESTLE_EXTERN_C_BEGIN

// The most axes that a tensor may have.
#define PESTLE_MAX_RANK 16

// An extent that is not known until the module is specialised; prints as '?'.
#define PESTLE_DIM_DYNAMIC INT64_MIN

// --- Kinds ---

// Bit sets of pestle_dtype_info_t.kind.
typedef enum pestle_dtype_kind_e {
  PESTLE_KIND_BOOL = 1,
  PESTLE_KIND_SIGNED = 2,
  PESTLE_KIND_UNSIGNED = 4,
  PESTLE_KIND_FLOAT = 8,
  PESTLE_KIND_COMPLEX = 16,
  PESTLE_KIND_OPAQUE = 32,  // kernel IR only: addresses and barriers
  PESTLE_KIND_INT = PESTLE_KIND_SIGNED | PESTLE_KIND_UNSIGNED,
  PESTLE_KIND_REAL = PESTLE_KIND_INT | PESTLE_KIND_FLOAT,
} pestle_dtype_kind_t;

// --- Element types ---

// X(NAME, mlir name, value bits, bytes that an element takes in a tensor, kind,
// DLPack code, DLPack bits). i1 takes a byte (0 or 1); integers of 2 and 4 bits
// take a byte each in unpacked tensors (sign- or zero-extended), and so do floats
// of 4 and 6 bits (the high bits are 0; who reads one looks at the others alone).
// Values are stable: new rows come at the end. Plugins meet the first
// PESTLE_PLUGIN_DTYPES alone.
// INDEX, ADDR and MBAR exist in the kernel IR only. DLPack codes are those of
// dlpack.h 1.x: 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool, 7 e3m4...
#define PESTLE_DTYPES(X)                               \
  X(NONE, "none", 0, 0, OPAQUE, 3, 0)                  \
  X(I1, "i1", 1, 1, BOOL, 6, 8)                        \
  X(I4, "i4", 4, 1, SIGNED, 0, 4)                      \
  X(I8, "i8", 8, 1, SIGNED, 0, 8)                      \
  X(I16, "i16", 16, 2, SIGNED, 0, 16)                  \
  X(I32, "i32", 32, 4, SIGNED, 0, 32)                  \
  X(I64, "i64", 64, 8, SIGNED, 0, 64)                  \
  X(U4, "ui4", 4, 1, UNSIGNED, 1, 4)                   \
  X(U8, "ui8", 8, 1, UNSIGNED, 1, 8)                   \
  X(U16, "ui16", 16, 2, UNSIGNED, 1, 16)               \
  X(U32, "ui32", 32, 4, UNSIGNED, 1, 32)               \
  X(U64, "ui64", 64, 8, UNSIGNED, 1, 64)               \
  X(F8E4M3FN, "f8E4M3FN", 8, 1, FLOAT, 10, 8)          \
  X(F8E5M2, "f8E5M2", 8, 1, FLOAT, 12, 8)              \
  X(F8E4M3FNUZ, "f8E4M3FNUZ", 8, 1, FLOAT, 11, 8)      \
  X(F8E5M2FNUZ, "f8E5M2FNUZ", 8, 1, FLOAT, 13, 8)      \
  X(BF16, "bf16", 16, 2, FLOAT, 4, 16)                 \
  X(F16, "f16", 16, 2, FLOAT, 2, 16)                   \
  X(F32, "f32", 32, 4, FLOAT, 2, 32)                   \
  X(F64, "f64", 64, 8, FLOAT, 2, 64)                   \
  X(C64, "complex<f32>", 64, 8, COMPLEX, 5, 64)        \
  X(C128, "complex<f64>", 128, 16, COMPLEX, 5, 128)    \
  X(INDEX, "index", 64, 8, SIGNED, 3, 64)              \
  X(ADDR, "addr", 64, 8, OPAQUE, 3, 64)                \
  X(MBAR, "mbar", 64, 8, OPAQUE, 3, 64)                \
  X(I2, "i2", 2, 1, SIGNED, 0, 2)                      \
  X(U2, "ui2", 2, 1, UNSIGNED, 1, 2)                   \
  X(F8E3M4, "f8E3M4", 8, 1, FLOAT, 7, 8)               \
  X(F8E4M3, "f8E4M3", 8, 1, FLOAT, 8, 8)               \
  X(F8E4M3B11FNUZ, "f8E4M3B11FNUZ", 8, 1, FLOAT, 9, 8) \
  X(F8E8M0FNU, "f8E8M0FNU", 8, 1, FLOAT, 14, 8)        \
  X(F4E2M1FN, "f4E2M1FN", 4, 1, FLOAT, 17, 4)          \
  X(F6E2M3FN, "f6E2M3FN", 6, 1, FLOAT, 15, 6)          \
  X(F6E3M2FN, "f6E3M2FN", 6, 1, FLOAT, 16, 6)

typedef enum pestle_dtype_e {
#define PESTLE_DTYPE_ENUM_(NAME, ...) PESTLE_##NAME,
  PESTLE_DTYPES(PESTLE_DTYPE_ENUM_)
#undef PESTLE_DTYPE_ENUM_
      PESTLE_DTYPE_COUNT
} pestle_dtype_t;

// How many dtypes, from NONE on, have a bit in sets of dtypes
// (pestle_target_caps_t). Targets and libraries of plugins never see the others:
// kernels have their bytes, as ui8, and compute with them in f32.
#define PESTLE_PLUGIN_DTYPES 31u

// Frozen.
typedef struct pestle_dtype_info_t {
  const char* name;     // as MLIR spells it
  uint8_t bits;         // of the value
  uint8_t size;         // bytes of an element in a tensor
  uint8_t kind;         // pestle_dtype_kind_t
  uint8_t dlpack_code;  // DLDataTypeCode
  uint8_t dlpack_bits;
} pestle_dtype_info_t;

// The row of |dtype|; of NONE when |dtype| is out of range. Header-only, so
// that a plugin, which links against nothing of the host, can use it too.
static inline const pestle_dtype_info_t* pestle_dtype_info(
    pestle_dtype_t dtype) {
  static const pestle_dtype_info_t rows[] = {
#define PESTLE_DTYPE_ROW_(NAME, name, bits, size, kind, code, dl_bits) \
  {name, bits, size, PESTLE_KIND_##kind, code, dl_bits},
      PESTLE_DTYPES(PESTLE_DTYPE_ROW_)
#undef PESTLE_DTYPE_ROW_
  };
  return &rows[(unsigned)dtype < PESTLE_DTYPE_COUNT ? dtype : PESTLE_NONE];
}

// Bytes that an element takes in a tensor; 0 for NONE and out of range.
static inline unsigned pestle_dtype_size(pestle_dtype_t dtype) {
  return pestle_dtype_info(dtype)->size;
}

// The dtype that MLIR spells |name| (also "si32" for i32), or NONE, also for
// NULL.
PESTLE_API pestle_dtype_t pestle_dtype_from_name(const char* name);

// Whether |dtype| is of one of |kinds| (pestle_dtype_kind_t bits).
static inline bool pestle_dtype_is(pestle_dtype_t dtype, unsigned kinds) {
  return (pestle_dtype_info(dtype)->kind & kinds) != 0;
}

// Whether tensors may be of |dtype|, which kernels alone have others of.
static inline bool pestle_dtype_is_stored(pestle_dtype_t dtype) {
  return pestle_dtype_size(dtype) != 0 &&
         !pestle_dtype_is(dtype, PESTLE_KIND_OPAQUE) && dtype != PESTLE_INDEX;
}

// The bit of |dtype| in sets of dtypes; 0 of those that plugins do not see.
static inline uint32_t pestle_dtype_bit(pestle_dtype_t dtype) {
  return (unsigned)dtype < PESTLE_PLUGIN_DTYPES ? UINT32_C(1) << dtype : 0;
}

// Whether |dtype| is an integer or a float of fewer bits than the byte that it
// takes.
static inline bool pestle_dtype_is_sub_byte(pestle_dtype_t dtype) {
  return pestle_dtype_is(dtype, PESTLE_KIND_INT | PESTLE_KIND_FLOAT) &&
         pestle_dtype_info(dtype)->bits < 8;
}

// The unsigned integer of |bits|; NONE where there is none.
static inline pestle_dtype_t pestle_dtype_unsigned(unsigned bits) {
  return bits == 2    ? PESTLE_U2
         : bits == 4  ? PESTLE_U4
         : bits == 8  ? PESTLE_U8
         : bits == 16 ? PESTLE_U16
         : bits == 32 ? PESTLE_U32
         : bits == 64 ? PESTLE_U64
                      : PESTLE_NONE;
}

// The element of |dtype|, one of fewer than 8 bits, that the low bits of |byte|
// are, extended to a byte as tensors hold it. Other dtypes: |byte|.
static inline uint8_t pestle_dtype_extend(pestle_dtype_t dtype, uint8_t byte) {
  unsigned bits = pestle_dtype_info(dtype)->bits, sign, value;
  if (!pestle_dtype_is_sub_byte(dtype)) return byte;
  value = byte & ((1u << bits) - 1);
  sign = pestle_dtype_is(dtype, PESTLE_KIND_SIGNED) ? 1u << (bits - 1) : 0;
  return (uint8_t)((value ^ sign) - sign);
}

// --- Float formats ---

// What a format has besides numbers.
typedef enum pestle_float_specials_e {
  PESTLE_FLOAT_IEEE = 0,      // infinities, NaNs above them, -0
  PESTLE_FLOAT_FINITE = 1,    // -0, and NaN where all bits but the sign are set
  PESTLE_FLOAT_UNSIGNED = 2,  // no -0: its bits are the one NaN
  PESTLE_FLOAT_SCALE = 3,  // powers of two: neither sign nor zero, a last NaN
  // -0, but all are finite numbers: what is too large becomes the largest, and
  // NaN -0.
  PESTLE_FLOAT_NUMBERS = 4,
} pestle_float_specials_t;

// X(NAME, exponent bits, mantissa bits, exponent bias, specials). The rest of a
// format follows from them; whoever converts by bits reads this table.
#define PESTLE_FLOAT_FORMATS_SMALL(X) \
  X(F4E2M1FN, 2, 1, 1, NUMBERS)       \
  X(F6E2M3FN, 2, 3, 1, NUMBERS)       \
  X(F6E3M2FN, 3, 2, 3, NUMBERS)
#define PESTLE_FLOAT_FORMATS_8(X)      \
  X(F8E4M3FN, 4, 3, 7, FINITE)         \
  X(F8E5M2, 5, 2, 15, IEEE)            \
  X(F8E4M3FNUZ, 4, 3, 8, UNSIGNED)     \
  X(F8E5M2FNUZ, 5, 2, 16, UNSIGNED)    \
  X(F8E3M4, 3, 4, 3, IEEE)             \
  X(F8E4M3, 4, 3, 7, IEEE)             \
  X(F8E4M3B11FNUZ, 4, 3, 11, UNSIGNED) \
  X(F8E8M0FNU, 8, 0, 127, SCALE)
#define PESTLE_FLOAT_FORMATS_16(X) \
  X(BF16, 8, 7, 127, IEEE)         \
  X(F16, 5, 10, 15, IEEE)
#define PESTLE_FLOAT_FORMATS(X) \
  PESTLE_FLOAT_FORMATS_SMALL(X) \
  PESTLE_FLOAT_FORMATS_8(X)     \
  PESTLE_FLOAT_FORMATS_16(X)    \
  X(F32, 8, 23, 127, IEEE)      \
  X(F64, 11, 52, 1023, IEEE)

// Magnitudes (the bits but the sign) are ordered like the values that they
// stand for. Frozen.
typedef struct pestle_float_format_t {
  int exponent_bits, mantissa_bits, bias;
  pestle_float_specials_t specials;
  uint64_t sign;   // the sign's bit; 0 where there is none
  uint64_t limit;  // the first magnitude that is no finite number
  uint64_t nan;    // a quiet one, without a sign; of NUMBERS -0
} pestle_float_format_t;

// The format of |dtype|; NULL when it is no float.
static inline const pestle_float_format_t* pestle_float_format(
    pestle_dtype_t dtype) {
#define PESTLE_FLOAT_ONE_(at) (UINT64_C(1) << (at))
#define PESTLE_FLOAT_LIMIT_(E, M, kind)                                \
  ((kind) == PESTLE_FLOAT_IEEE ? (PESTLE_FLOAT_ONE_(E) - 1) << (M)     \
   : (kind) == PESTLE_FLOAT_UNSIGNED || (kind) == PESTLE_FLOAT_NUMBERS \
       ? PESTLE_FLOAT_ONE_((E) + (M))                                  \
       : PESTLE_FLOAT_ONE_((E) + (M)) - 1)
#define PESTLE_FLOAT_QUIET_(M, kind) \
  ((kind) == PESTLE_FLOAT_IEEE ? PESTLE_FLOAT_ONE_(M) >> 1 : 0)
#define PESTLE_FLOAT_CASE_(NAME, E, M, bias, KIND)                            \
  case PESTLE_##NAME: {                                                       \
    static const pestle_float_format_t row = {                                \
        E,                                                                    \
        M,                                                                    \
        bias,                                                                 \
        PESTLE_FLOAT_##KIND,                                                  \
        PESTLE_FLOAT_##KIND == PESTLE_FLOAT_SCALE ? 0                         \
                                                  : PESTLE_FLOAT_ONE_(E + M), \
        PESTLE_FLOAT_LIMIT_(E, M, PESTLE_FLOAT_##KIND),                       \
        PESTLE_FLOAT_LIMIT_(E, M, PESTLE_FLOAT_##KIND) |                      \
            PESTLE_FLOAT_QUIET_(M, PESTLE_FLOAT_##KIND)};                     \
    return &row;                                                              \
  }
  switch ((int)dtype) {
    PESTLE_FLOAT_FORMATS(PESTLE_FLOAT_CASE_)
    default:
      return NULL;
  }
#undef PESTLE_FLOAT_CASE_
#undef PESTLE_FLOAT_QUIET_
#undef PESTLE_FLOAT_LIMIT_
#undef PESTLE_FLOAT_ONE_
}

// --- Devices ---

// What a device is, with DLPack's numbers.
typedef enum pestle_device_type_e {
  PESTLE_DEVICE_CPU = 1,
  PESTLE_DEVICE_CUDA = 2,
  PESTLE_DEVICE_OPENCL = 4,
  PESTLE_DEVICE_VULKAN = 7,
  PESTLE_DEVICE_METAL = 8,
  PESTLE_DEVICE_EXT = 12,
} pestle_device_type_t;

PESTLE_EXTERN_C_END

#endif  // PESTLE_TYPES_H_

// SPDX-License-Identifier: Apache-2.0
// Functions that the text may call, for what no language says as scalar.def
// does. One text serves all: $int $uint $long $ulong $float $double are types
// and, before a parenthesis, casts; $u $l $ul $d suffixes of literals; $bits32
// $real32 $bits64 $real64 the casts of bits; $words and $double_of those of an
// f64 and a $pair of two words, which $make makes; $exact stands before floats
// whose sums and products must not be contracted.
#include "plugins/common/c_printer_internal.h"

// Texts are the dialect's.
#define HALF(first, pair, row, type) \
  [first + pair] = {"pestle_" row "_" type, "", NONE}
#define HALVES(first, type)                     \
  HALF(first, CTEXT_HALF_ADD, "add", type),     \
      HALF(first, CTEXT_HALF_SUB, "sub", type), \
      HALF(first, CTEXT_HALF_MUL, "mul", type), \
      HALF(first, CTEXT_HALF_MAX, "max", type), \
      HALF(first, CTEXT_HALF_MIN, "min", type), \
      HALF(first, CTEXT_HALF_PACK, "pack", type)
#define NONE {HELPER_COUNT, HELPER_COUNT, HELPER_COUNT}
#define ONE(a) {a, HELPER_COUNT, HELPER_COUNT}

// By 0: all ones; by -1: wraps.
#define DIV_S(T, U, u)                         \
  "$fn$" T " $name($" T " a, $" T              \
  " b) {\n"                                    \
  "  if (b == 0) return $" T                   \
  "(-1);\n"                                    \
  "  if (b == -1) return $" T "(0$" u " - $" U \
  "(a));\n"                                    \
  "  return a / b;\n}\n"
#define REM_S(T)                  \
  "$fn$" T " $name($" T " a, $" T \
  " b) {\n"                       \
  "  if (b == 0) return a;\n"     \
  "  if (b == -1) return $" T     \
  "(0);\n"                        \
  "  return a - a / b * b;\n}\n"
#define DIV_U(T, u)               \
  "$fn$" T " $name($" T " a, $" T \
  " b) {\n"                       \
  "  return b == 0$" u " ? ~0$" u " : a / b;\n}\n"
#define REM_U(T, u)               \
  "$fn$" T " $name($" T " a, $" T \
  " b) {\n"                       \
  "  return b == 0$" u " ? a : a % b;\n}\n"
#define SHIFT(T, op, u)                     \
  "$fn$" T " $name($" T " a, $" T " b, $" T \
  " width) {\n"                             \
  "  return b < width ? a " op " $int(b) : 0$" u ";\n}\n"
#define SAR(T, U, u)                        \
  "$fn$" T " $name($" T " a, $" U " b, $" U \
  " width) {\n"                             \
  "  return a >> $int(b < width ? b : width - 1$" u ");\n}\n"
// NaN wins; of zeros the sign decides.
#define EXTREME(F, gt, lt, op, bits, real)                 \
  "$fn$" F " $name($" F " a, $" F                          \
  " b) {\n"                                                \
  "  if (a " gt                                            \
  " b) return a;\n"                                        \
  "  if (a " lt                                            \
  " b) return b;\n"                                        \
  "  if (a == b) return " real "(" bits "(a) " op " " bits \
  "(b));\n"                                                \
  "  return a + b;\n}\n"
// NaN compares with nothing.
#define TO_INT(F, T, from, least, to, most) \
  "$fn$" T " $name($" F                     \
  " a) {\n"                                 \
  "  if (a >= " to ") return " most         \
  ";\n"                                     \
  "  if (a > " from ") return $" T          \
  "(a);\n"                                  \
  "  return a <= " from " ? " least " : $" T "(0);\n}\n"
#define ODD_U(T, ul)                                                    \
  "// An f32 whose last bit stands for all that it lost.\n"             \
  "$fn$float $name($" T                                                 \
  " a) {\n"                                                             \
  "  $float scale = 1.0f;\n"                                            \
  "  while (a >= 16777216$" ul                                          \
  ") {\n"                                                               \
  "    a = (a >> 8) | ((a & 255$" ul ") != 0$" ul " ? 1$" ul " : 0$" ul \
  ");\n"                                                                \
  "    scale *= 256.0f;\n  }\n"                                         \
  "  return $float(a) * scale;\n}\n"
#define ODD_S(T, U, u, odd) \
  "$fn$float $name($" T     \
  " a) {\n"                 \
  "  return a < 0 ? -" odd "(0$" u " - $" U "(a)) : " odd "($" U "(a));\n}\n"
// What is no quotient of two numbers above 0: |x| and |y| are magnitudes.
#define SPECIAL_QUOTIENT(x, y, inf, nan, huge, zero)                        \
  "  if (" x " > " inf " || " y " > " inf " || (" x " == " y " && (" x      \
  " == 0$u || " x " == " inf "))) {\n    return " nan ";\n  }\n  if (" x    \
  " == " inf " || " y " == 0$u) return " huge ";\n  if (" x " == 0$u || " y \
  " == " inf ") return " zero ";\n"
#define SPECIAL_F32                                                   \
  SPECIAL_QUOTIENT("x", "y", "0x7f800000$u", "$real32(0x7fc00000$u)", \
                   "$real32(sign | 0x7f800000$u)", "$real32(sign)")
#define SPECIAL_F64                                               \
  SPECIAL_QUOTIENT("m", "n", "0x7ff00000$u",                      \
                   "$double_of($make(0$u, 0x7ff80000$u))",        \
                   "$double_of($make(0$u, sign | 0x7ff00000$u))", \
                   "$double_of($make(0$u, sign))")
// The words |x| of a magnitude become its mantissa of 53 bits.
#define MANTISSA64(x, e)                                 \
  "  if (" e " != 0) " x ".y = (" x                      \
  ".y & 0xfffff$u) | 0x100000$u;\n"                      \
  "  else " e                                            \
  " = 1;\n"                                              \
  "  for (; " x ".y < 0x100000$u; --" e                  \
  ") {\n"                                                \
  "    " x " = $make(" x ".x << 1, (" x ".y << 1) | (" x \
  ".x >> 31));\n"                                        \
  "  }\n"
#define X_F64 MANTISSA64("x", "e")
#define Y_F64 MANTISSA64("y", "f")
#define NARROW(mantissa, bias, sign, nan, limit, minus)              \
  "$fn$uint $name($float a) {\n"                                     \
  "  return pestle_narrow($bits32(a), " mantissa ", " bias ", " sign \
  "$u, " nan "$u, " limit "$u, " minus "$u);\n}\n"
#define WIDEN(mantissa, bias, sign, first, minus)                       \
  "$fn$float $name($uint a) {\n"                                        \
  "  return pestle_widen(a, " mantissa ", " bias ", " sign "$u, " first \
  "$u, " minus "$u);\n}\n"

static const c_printer_helper_text_t helpers[HELPER_COUNT] = {
    [HELPER_DIV_I32] = {"pestle_div_i32", DIV_S("int", "uint", "u"), NONE},
    [HELPER_DIV_U32] = {"pestle_div_u32", DIV_U("uint", "u"), NONE},
    [HELPER_DIV_I64] = {"pestle_div_i64", DIV_S("long", "ulong", "ul"), NONE},
    [HELPER_DIV_U64] = {"pestle_div_u64", DIV_U("ulong", "ul"), NONE},
    [HELPER_REM_I32] = {"pestle_rem_i32", REM_S("int"), NONE},
    [HELPER_REM_U32] = {"pestle_rem_u32", REM_U("uint", "u"), NONE},
    [HELPER_REM_I64] = {"pestle_rem_i64", REM_S("long"), NONE},
    [HELPER_REM_U64] = {"pestle_rem_u64", REM_U("ulong", "ul"), NONE},
    [HELPER_SHL_U32] = {"pestle_shl_u32", SHIFT("uint", "<<", "u"), NONE},
    [HELPER_SHL_U64] = {"pestle_shl_u64", SHIFT("ulong", "<<", "ul"), NONE},
    [HELPER_SAR_I32] = {"pestle_sar_i32", SAR("int", "uint", "u"), NONE},
    [HELPER_SAR_I64] = {"pestle_sar_i64", SAR("long", "ulong", "ul"), NONE},
    [HELPER_SHR_U32] = {"pestle_shr_u32", SHIFT("uint", ">>", "u"), NONE},
    [HELPER_SHR_U64] = {"pestle_shr_u64", SHIFT("ulong", ">>", "ul"), NONE},
    [HELPER_MAX_F32] = {"pestle_max_f32",
                        EXTREME("float", ">", "<", "&", "$bits32", "$real32"),
                        NONE},
    [HELPER_MAX_F64] = {"pestle_max_f64",
                        EXTREME("double", ">", "<", "&", "$bits64", "$real64"),
                        NONE},
    [HELPER_MIN_F32] = {"pestle_min_f32",
                        EXTREME("float", "<", ">", "|", "$bits32", "$real32"),
                        NONE},
    [HELPER_MIN_F64] = {"pestle_min_f64",
                        EXTREME("double", "<", ">", "|", "$bits64", "$real64"),
                        NONE},
    [HELPER_APPROX_EXP2] = {"pestle_approx_exp2", "", NONE},
    [HELPER_APPROX_TANH] = {"pestle_approx_tanh", "", NONE},
    [HELPER_APPROX_DIV] = {"pestle_approx_div", "", NONE},
    [HELPER_FLUSH_EXP2] = {"pestle_flush_exp2", "", NONE},
    [HELPER_REM_F32] =
        {"pestle_rem_f32",
         "// The exact remainder, by long division of the mantissas.\n"
         "$fn$float $name($float a, $float b) {\n"
         "  $uint x = $bits32(a) & 0x7fffffff$u;\n"
         "  $uint y = $bits32(b) & 0x7fffffff$u;\n"
         "  $uint sign = $bits32(a) & 0x80000000$u;\n"
         "  if (x >= 0x7f800000$u || y > 0x7f800000$u || y == 0$u) {\n"
         "    return $real32(0x7fc00000$u);\n  }\n"
         "  if (x < y) return a;\n"
         "  $int e = $int(x >> 23), f = $int(y >> 23);\n"
         "  x = e == 0 ? x << 1 : (x & 0x7fffff$u) | 0x800000$u;\n"
         "  y = f == 0 ? y << 1 : (y & 0x7fffff$u) | 0x800000$u;\n"
         "  for (; x < 0x800000$u; --e) x <<= 1;\n"
         "  for (; y < 0x800000$u; --f) y <<= 1;\n"
         "  for (; e > f; --e) {\n"
         "    if (x >= y) x -= y;\n"
         "    x <<= 1;\n  }\n"
         "  if (x >= y) x -= y;\n"
         "  if (x == 0$u) return $real32(sign);\n"
         "  for (; x < 0x800000$u && e > 0; --e) x <<= 1;\n"
         "  if (e > 0) {\n"
         "    x = (x & 0x7fffff$u) | ($uint(e) << 23);\n"
         "  } else {\n"
         "    x >>= 1 - e;\n  }\n"
         "  return $real32(sign | x);\n}\n",
         NONE},
    [HELPER_DIV_F32] =
        {"pestle_div_f32",
         "// Rounded once, whatever / is: it guesses 25 bits of the quotient "
         "of\n"
         "// the mantissas, whose rest, exact in 32 bits, puts them right.\n"
         "$fn$float $name($float a, $float b) {\n"
         "  $uint x = $bits32(a), y = $bits32(b);\n"
         "  $uint sign = (x ^ y) & 0x80000000$u;\n"
         "  x &= 0x7fffffff$u;\n"
         "  y &= 0x7fffffff$u;\n" SPECIAL_F32
         "  $int e = $int(x >> 23), f = $int(y >> 23);\n"
         "  x = e == 0 ? x << 1 : (x & 0x7fffff$u) | 0x800000$u;\n"
         "  y = f == 0 ? y << 1 : (y & 0x7fffff$u) | 0x800000$u;\n"
         "  for (; x < 0x800000$u; --e) x <<= 1;\n"
         "  for (; y < 0x800000$u; --f) y <<= 1;\n"
         "  e += 127 - f;\n"
         "  if (x < y) {\n"
         "    x <<= 1;\n"
         "    --e;\n  }\n"
         "  if (e > 254) return $real32(sign | 0x7f800000$u);\n"
         "  $uint q = $uint($float(x) / $float(y) * 16777216.0f);\n"
         "  $int rest = $int((x << 24) - q * y), by = $int(y);\n"
         "  for (; rest < 0; rest += by) q -= 1$u;\n"
         "  for (; rest >= by; rest -= by) q += 1$u;\n"
         "  q = (q << 1) | (rest != 0 ? 1$u : 0$u);\n"
         "  if (e < 1) {\n"
         "    $int far = e < -26 ? 27 : 1 - e;\n"
         "    $uint low = q & ((1$u << far) - 1$u);\n"
         "    q = (q >> far) | (low != 0$u ? 1$u : 0$u);\n"
         "    e = 1;\n  }\n"
         "  $uint up = (q & 2$u) != 0$u && (q & 5$u) != 0$u ? 1$u : 0$u;\n"
         "  return $real32(sign | (($uint(e - 1) << 23) + (q >> 2) + up));\n"
         "}\n",
         NONE},
    [HELPER_DIV_F64] =
        {"pestle_div_f64",
         "// Rounded once, by long division of the mantissas in two words: no\n"
         "// digit of f64's / is promised.\n"
         "$fn$double $name($double a, $double b) {\n"
         "  $pair x = $words(a), y = $words(b);\n"
         "  $uint sign = (x.y ^ y.y) & 0x80000000$u;\n"
         "  x.y &= 0x7fffffff$u;\n"
         "  y.y &= 0x7fffffff$u;\n"
         "  $uint m = x.y | (x.x != 0$u ? 1$u : 0$u);\n"
         "  $uint n = y.y | (y.x != 0$u ? 1$u : 0$u);\n" SPECIAL_F64
         "  $int e = $int(x.y >> 20), f = $int(y.y >> 20);\n" X_F64 Y_F64
         "  e += 1023 - f;\n"
         "  if (x.y < y.y || (x.y == y.y && x.x < y.x)) {\n"
         "    x = $make(x.x << 1, (x.y << 1) | (x.x >> 31));\n"
         "    --e;\n  }\n"
         "  if (e > 2046) return $double_of($make(0$u, sign | 0x7ff00000$u));\n"
         "  $pair q = $make(0$u, 0$u);\n"
         "  for ($int i = 0; i < 54; ++i) {\n"
         "    q = $make(q.x << 1, (q.y << 1) | (q.x >> 31));\n"
         "    if (x.y > y.y || (x.y == y.y && x.x >= y.x)) {\n"
         "      x = $make(x.x - y.x, x.y - y.y - (x.x < y.x ? 1$u : 0$u));\n"
         "      q.x |= 1$u;\n    }\n"
         "    x = $make(x.x << 1, (x.y << 1) | (x.x >> 31));\n  }\n"
         "  $uint rest = (x.x | x.y) != 0$u ? 1$u : 0$u;\n"
         "  q = $make((q.x << 1) | rest, (q.y << 1) | (q.x >> 31));\n"
         "  if (e < -55) e = -55;\n"
         "  for (; e < 1; ++e) {\n"
         "    q = $make((q.x >> 1) | (q.x & 1$u) | (q.y << 31), q.y >> 1);\n"
         "  }\n"
         "  $uint up = (q.x & 2$u) != 0$u && (q.x & 5$u) != 0$u ? 1$u : 0$u;\n"
         "  q = $make((q.x >> 2) | (q.y << 30), q.y >> 2);\n"
         "  q.x += up;\n"
         "  if (q.x < up) q.y += 1$u;\n"
         "  return $double_of($make(q.x, sign | (q.y + ($uint(e - 1) << "
         "20))));\n"
         "}\n",
         NONE},
    [HELPER_SQRT_F32] =
        {"pestle_sqrt_f32",
         "// Rounded once, whatever sqrt() is: it guesses 25 bits of the\n"
         "// mantissa's root, whose rest, exact in 32 bits, puts them right. "
         "No\n"
         "// root lies half-way.\n"
         "$fn$float $name($float a) {\n"
         "  $uint x = $bits32(a);\n"
         "  if (x > 0x80000000$u) return $real32(0x7fc00000$u);\n"
         "  if (x == 0$u || x >= 0x7f800000$u) return a;\n"
         "  $int e = $int(x >> 23);\n"
         "  x = e == 0 ? x << 1 : (x & 0x7fffff$u) | 0x800000$u;\n"
         "  for (; x < 0x800000$u; --e) x <<= 1;\n"
         "  if ((e & 1) == 0) {\n"
         "    x <<= 1;\n"
         "    --e;\n  }\n"
         "  $uint s = $uint(sqrt($float(x << 1)) * 4096.0f);\n"
         "  $int rest = $int((x << 25) - s * s);\n"
         "  for (; rest < 0; rest += $int(2$u * s + 1$u)) s -= 1$u;\n"
         "  for (; rest > $int(2$u * s); s += 1$u) rest -= $int(2$u * s + "
         "1$u);\n"
         "  $uint m = (s >> 1) + (s & 1$u);\n"
         "  return $real32(($uint((e + 127) / 2 - 1) << 23) + m);\n}\n",
         NONE},
    [HELPER_ROUND_F64] =
        {"pestle_round_f64",
         "// To the nearest, halves to the even one: above 2^52 there are no "
         "fractions.\n"
         "$fn$double $name($double a) {\n"
         "  $pair x = $words(a);\n"
         "  $uint sign = x.y & 0x80000000$u;\n"
         "  x.y ^= sign;\n"
         "  if (x.y >= 0x43300000$u) return a;\n"
         "  $exact$double above = $double_of(x) + "
         "$double(4503599627370496.0f);\n"
         "  $exact$double whole = above - $double(4503599627370496.0f);\n"
         "  x = $words(whole);\n"
         "  return $double_of($make(x.x, x.y | sign));\n}\n",
         NONE},
    [HELPER_TRUNC_F64] =
        {"pestle_trunc_f64",
         "$fn$double $name($double a) {\n"
         "  $pair x = $words(a);\n"
         "  $int e = $int((x.y >> 20) & 0x7ff$u) - 1023;\n"
         "  if (e >= 52) return a;\n"
         "  if (e < 0) return $double_of($make(0$u, x.y & 0x80000000$u));\n"
         "  if (e < 20) return $double_of($make(0$u, x.y & ~(0xfffff$u >> "
         "e)));\n"
         "  return $double_of($make(x.x & ~(0xffffffff$u >> (e - 20)), x.y));\n"
         "}\n",
         NONE},
    [HELPER_SQRT_F64] =
        {"pestle_sqrt_f64",
         "// Rounded once, two bits of the mantissa at a time: no digit of "
         "f64's\n"
         "// sqrt() is promised.\n"
         "$fn$double $name($double a) {\n"
         "  $pair x = $words(a);\n"
         "  $uint n = x.y | (x.x != 0$u ? 1$u : 0$u);\n"
         "  if (n > 0x80000000$u) return $double_of($make(0$u, "
         "0x7ff80000$u));\n"
         "  if (n == 0$u || n >= 0x7ff00000$u) return a;\n"
         "  $int e = $int(x.y >> 20);\n" X_F64 "  $int by = 10;\n"
         "  if ((e & 1) == 0) {\n"
         "    by = 11;\n"
         "    --e;\n  }\n"
         "  x = $make(x.x << by, (x.y << by) | (x.x >> (32 - by)));\n"
         "  $pair r = $make(0$u, 0$u), s = $make(0$u, 0$u);\n"
         "  for ($int i = 0; i < 54; ++i) {\n"
         "    r = $make((r.x << 2) | (x.y >> 30), (r.y << 2) | (r.x >> 30));\n"
         "    x = $make(x.x << 2, (x.y << 2) | (x.x >> 30));\n"
         "    $pair t = $make((s.x << 2) | 1$u, (s.y << 2) | (s.x >> 30));\n"
         "    s = $make(s.x << 1, (s.y << 1) | (s.x >> 31));\n"
         "    if (r.y > t.y || (r.y == t.y && r.x >= t.x)) {\n"
         "      r = $make(r.x - t.x, r.y - t.y - (r.x < t.x ? 1$u : 0$u));\n"
         "      s.x |= 1$u;\n    }\n  }\n"
         "  $uint up = s.x & 1$u;\n"
         "  s = $make((s.x >> 1) | (s.y << 31), s.y >> 1);\n"
         "  s.x += up;\n"
         "  if (s.x < up) s.y += 1$u;\n"
         "  return $double_of($make(s.x, s.y + ($uint((e + 1023) / 2 - 1) << "
         "20)));\n}\n",
         NONE},
    [HELPER_ODD_SUM] =
        {"pestle_odd_sum",
         "// A sum whose last bit is 1 where |rest| says that it is not "
         "exact.\n"
         "$fn$double $name($double s, $double rest) {\n"
         "  $ulong bits = $bits64(s);\n"
         "  if (rest != 0.0$d && (bits & 1$ul) == 0$ul) {\n"
         "    bits += (rest > 0.0$d) == (s > 0.0$d) ? 1$ul : ~0$ul;\n  }\n"
         "  return $real64(bits);\n}\n",
         NONE},
    [HELPER_FMA_F32] =
        {"pestle_fma_f32",
         "// a * b + c rounded once: the product is exact in f64, the sum is\n"
         "// made odd where it is not, so that the last rounding is right.\n"
         "$fn$float $name($float a, $float b, $float c) {\n"
         "  $exact$double p = $double(a) * $double(b);\n"
         "  $exact$double x = $double(c);\n"
         "  $exact$double s = p + x;\n"
         "  $exact$double t = s - p;\n"
         "  $exact$double rest = (p - (s - t)) + (x - t);\n"
         "  $exact$double none = s - s;\n"
         "  return $float(none == 0.0$d ? pestle_odd_sum(s, rest) : s);\n}\n",
         ONE(HELPER_ODD_SUM)},
    [HELPER_FMA_F64] =
        {"pestle_fma_f64",
         "// The product and the sum as pairs without error, by halves of 26\n"
         "// bits; the rest is made odd, so that the last sum rounds once.\n"
         "// Exact but where the result or the product is denormal.\n"
         "$fn$double $name($double a, $double b, $double c) {\n"
         "  $exact$double plain = a * b + c;\n"
         "  $exact$double none = plain - plain;\n"
         "  if (none != 0.0$d || a == 0.0$d || b == 0.0$d) return plain;\n"
         "  const $double up = 1.6069380442589903e60$d;\n"
         "  const $double down = 6.223015277861142e-61$d;\n"
         "  const $double far = 8.452712498170644e270$d;\n"
         "  if (a > far || a < -far) { a *= down; b *= up; }\n"
         "  if (b > far || b < -far) { b *= down; a *= up; }\n"
         "  $exact$double split = 134217729.0$d;\n"
         "  $exact$double ta = split * a, tb = split * b;\n"
         "  $exact$double ah = ta - (ta - a), al = a - ah;\n"
         "  $exact$double bh = tb - (tb - b), bl = b - bh;\n"
         "  $exact$double p = a * b;\n"
         "  $exact$double e = al * bl - (((p - ah * bh) - al * bh) - ah * "
         "bl);\n"
         "  $exact$double s = p + c, t = s - p;\n"
         "  $exact$double f = (p - (s - t)) + (c - t);\n"
         "  $exact$double r = e + f, q = r - e;\n"
         "  $exact$double rest = (e - (r - q)) + (f - q);\n"
         "  return s + pestle_odd_sum(r, rest);\n}\n",
         ONE(HELPER_ODD_SUM)},
    [HELPER_F32_TO_I32] = {"pestle_f32_to_i32",
                           TO_INT("float", "int", "-2147483648.0f",
                                  "(-2147483647 - 1)", "2147483648.0f",
                                  "2147483647"),
                           NONE},
    [HELPER_F32_TO_U32] = {"pestle_f32_to_u32",
                           TO_INT("float", "uint", "0.0f", "0$u",
                                  "4294967296.0f", "4294967295$u"),
                           NONE},
    [HELPER_F32_TO_I64] = {"pestle_f32_to_i64",
                           TO_INT("float", "long", "-9223372036854775808.0f",
                                  "(-9223372036854775807$l - 1$l)",
                                  "9223372036854775808.0f",
                                  "9223372036854775807$l"),
                           NONE},
    [HELPER_F32_TO_U64] = {"pestle_f32_to_u64",
                           TO_INT("float", "ulong", "0.0f", "0$ul",
                                  "18446744073709551616.0f",
                                  "18446744073709551615$ul"),
                           NONE},
    [HELPER_F64_TO_I32] = {"pestle_f64_to_i32",
                           TO_INT("double", "int", "-2147483648.0$d",
                                  "(-2147483647 - 1)", "2147483648.0$d",
                                  "2147483647"),
                           NONE},
    [HELPER_F64_TO_U32] = {"pestle_f64_to_u32",
                           TO_INT("double", "uint", "0.0$d", "0$u",
                                  "4294967296.0$d", "4294967295$u"),
                           NONE},
    [HELPER_F64_TO_I64] = {"pestle_f64_to_i64",
                           TO_INT("double", "long", "-9223372036854775808.0$d",
                                  "(-9223372036854775807$l - 1$l)",
                                  "9223372036854775808.0$d",
                                  "9223372036854775807$l"),
                           NONE},
    [HELPER_F64_TO_U64] = {"pestle_f64_to_u64",
                           TO_INT("double", "ulong", "0.0$d", "0$ul",
                                  "18446744073709551616.0$d",
                                  "18446744073709551615$ul"),
                           NONE},
    [HELPER_ODD_F64] =
        {"pestle_odd_f64",
         "// An f32 whose last bit stands for all that it lost.\n"
         "$fn$float $name($double a) {\n"
         "  $float f = $float(a);\n"
         "  $uint bits = $bits32(f);\n"
         "  $double back = $double(f);\n"
         "  if (back != a && a == a && (bits & 1$u) == 0$u) {\n"
         "    $double x = a < 0.0$d ? -a : a, y = back < 0.0$d ? -back : "
         "back;\n"
         "    bits += y < x ? 1$u : ~0$u;\n  }\n"
         "  return $real32(bits);\n}\n",
         NONE},
    [HELPER_ODD_U32] = {"pestle_odd_u32", ODD_U("uint", "u"), NONE},
    [HELPER_ODD_U64] = {"pestle_odd_u64", ODD_U("ulong", "ul"), NONE},
    [HELPER_ODD_I32] = {"pestle_odd_i32",
                        ODD_S("int", "uint", "u", "pestle_odd_u32"),
                        ONE(HELPER_ODD_U32)},
    [HELPER_ODD_I64] = {"pestle_odd_i64",
                        ODD_S("long", "ulong", "ul", "pestle_odd_u64"),
                        ONE(HELPER_ODD_U64)},
    [HELPER_NARROW] =
        {"pestle_narrow",
         "// The bits of an f32 as those of a float of |mantissa| bits, to\n"
         "// nearest even. |limit|: the first pattern that is too large.\n"
         "// |minus| 0: the format has neither -0 nor infinity.\n"
         "$fn$uint $name($uint bits, $int mantissa, $int bias, $uint sign,\n"
         "    $uint nan, $uint limit, $uint minus) {\n"
         "  $uint s = (bits >> 31) != 0$u ? sign : 0$u;\n"
         "  $uint m = bits & 0x7fffff$u, result = 0$u;\n"
         "  $uint bad = minus == 0$u ? nan : (s | nan);\n"
         "  $int e = $int((bits >> 23) & 255$u);\n"
         "  if (e == 255) {\n"
         "    return m == 0$u && limit != nan && minus != 0$u ? (s | limit) : "
         "bad;\n  }\n"
         "  if (e != 0) m |= 0x800000$u;\n"
         "  $int scale = (e != 0 ? e : 1) - 127 + bias;\n"
         "  if (scale >= -mantissa - 1) {\n"
         "    $int shift = 23 - mantissa + (scale < 1 ? 1 - scale : 0);\n"
         "    $uint kept = m >> shift, rest = m - (kept << shift);\n"
         "    $uint half_way = 1$u << (shift - 1);\n"
         "    if (rest > half_way || (rest == half_way && (kept & 1$u) != "
         "0$u)) kept += 1$u;\n"
         "    result = kept;\n"
         "    if (scale > 1) result += $uint(scale - 1) << mantissa;\n  }\n"
         "  if (result >= limit) {\n"
         "    return limit == nan || minus == 0$u ? bad : (s | limit);\n  }\n"
         "  return result != 0$u || minus != 0$u ? (s | result) : 0$u;\n}\n",
         NONE},
    [HELPER_WIDEN] =
        {"pestle_widen",
         "// The value of a float's bits, |first| the first magnitude that is\n"
         "// none: infinity where there is one. |minus| 0: -0 is NaN.\n"
         "$fn$float $name($uint bits, $int mantissa, $int bias, $uint sign,\n"
         "    $uint first, $uint minus) {\n"
         "  $uint size = bits & (sign - 1$u);\n"
         "  $uint s = (bits & sign) != 0$u ? 0x80000000$u : 0$u;\n"
         "  if (minus == 0$u && size == 0$u && s != 0$u) {\n"
         "    return $real32(0x7fc00000$u);\n  }\n"
         "  if (minus != 0$u && size >= first) {\n"
         "    return $real32(size == first && minus == 2$u ? (s | "
         "0x7f800000$u)\n"
         "        : 0x7fc00000$u);\n  }\n"
         "  $int e = $int(size >> mantissa);\n"
         "  $uint m = size & ((1$u << mantissa) - 1$u);\n"
         "  if (e == 0) {\n"
         "    if (m == 0$u) return $real32(s);\n"
         "    for (e = 1; (m >> mantissa) == 0$u; --e) m <<= 1;\n"
         "    m &= (1$u << mantissa) - 1$u;\n  }\n"
         "  return $real32(s | ($uint(e - bias + 127) << 23) | (m << (23 - "
         "mantissa)));\n}\n",
         NONE},
    [HELPER_BF16_FROM] =
        {"pestle_f32_to_bf16",
         "$fn$uint $name($float a) {\n"
         "  $uint bits = $bits32(a);\n"
         "  if ((bits & 0x7fffffff$u) > 0x7f800000$u) {\n"
         "    return ((bits >> 16) & 0x8000$u) | 0x7fc0$u;\n  }\n"
         "  return (bits + 0x7fff$u + ((bits >> 16) & 1$u)) >> 16;\n}\n",
         NONE},
    [HELPER_BF16_TO] = {"pestle_bf16_to_f32",
                        "$fn$float $name($uint a) {\n"
                        "  return $real32(a << 16);\n}\n",
                        NONE},
    [HELPER_F16_FROM] = {"pestle_f32_to_f16",
                         NARROW("10", "15", "0x8000", "0x7e00", "0x7c00", "1"),
                         ONE(HELPER_NARROW)},
    [HELPER_F16_TO] = {"pestle_f16_to_f32",
                       WIDEN("10", "15", "0x8000", "0x7c00", "2"),
                       ONE(HELPER_WIDEN)},
    [HELPER_E4M3FN_FROM] = {"pestle_f32_to_e4m3fn",
                            NARROW("3", "7", "0x80", "0x7f", "0x7f", "1"),
                            ONE(HELPER_NARROW)},
    [HELPER_E4M3FN_TO] = {"pestle_e4m3fn_to_f32",
                          WIDEN("3", "7", "0x80", "0x7f", "1"),
                          ONE(HELPER_WIDEN)},
    [HELPER_E5M2_FROM] = {"pestle_f32_to_e5m2",
                          NARROW("2", "15", "0x80", "0x7e", "0x7c", "1"),
                          ONE(HELPER_NARROW)},
    [HELPER_E5M2_TO] = {"pestle_e5m2_to_f32",
                        WIDEN("2", "15", "0x80", "0x7c", "2"),
                        ONE(HELPER_WIDEN)},
    [HELPER_E4M3FNUZ_FROM] = {"pestle_f32_to_e4m3fnuz",
                              NARROW("3", "8", "0x80", "0x80", "0x80", "0"),
                              ONE(HELPER_NARROW)},
    [HELPER_E4M3FNUZ_TO] = {"pestle_e4m3fnuz_to_f32",
                            WIDEN("3", "8", "0x80", "0x80", "0"),
                            ONE(HELPER_WIDEN)},
    [HELPER_E5M2FNUZ_FROM] = {"pestle_f32_to_e5m2fnuz",
                              NARROW("2", "16", "0x80", "0x80", "0x80", "0"),
                              ONE(HELPER_NARROW)},
    [HELPER_E5M2FNUZ_TO] = {"pestle_e5m2fnuz_to_f32",
                            WIDEN("2", "16", "0x80", "0x80", "0"),
                            ONE(HELPER_WIDEN)},
    HALVES(HELPER_BF16X2_ADD, "bf16x2"),
    HALVES(HELPER_F16X2_ADD, "f16x2"),
};

static const c_printer_helper_text_t* helper_of(const c_printer_t* p,
                                                c_printer_helper_t helper) {
  const c_printer_helper_text_t* own =
      p->pairs ? pestle_c_printer_pair_helper(helper) : NULL;
  return own ? own : &helpers[helper];
}

const char* pestle_c_printer_call(c_printer_t* p, c_printer_helper_t helper) {
  const c_printer_helper_text_t* h = helper_of(p, helper);
  p->helper[helper] = true;
  for (int i = 0; i < 3 && h->needs[i] != HELPER_COUNT; ++i) {
    pestle_c_printer_call(p, h->needs[i]);
  }
  return h->name;
}

// --- Expansion ---

typedef struct token_t {
  const char* name;
  int type;  // a class, or -1
  const char* text;
} token_t;

static const token_t* find(const token_t* tokens, size_t count,
                           const char* at) {
  const token_t* best = NULL;
  for (size_t i = 0; i < count; ++i) {
    size_t size = strlen(tokens[i].name);
    if (strncmp(tokens[i].name, at, size)) continue;
    if (!best || size > strlen(best->name)) best = &tokens[i];
  }
  return best;
}

static void put_token(c_printer_t* p, pestle_plugin_text_t* out,
                      const token_t* token, char next) {
  const char* text = token->text;
  if (token->type >= 0) {
    text = pestle_c_printer_type(p, (pestle_c_printer_class_t)token->type);
    if (next == '(' && !p->d->constructors) {
      text = pestle_c_printer_format(p, "(%s)", text);
    }
  }
  pestle_plugin_text_put(out, text);
}

static void put_helper(c_printer_t* p, const c_printer_helper_text_t* h,
                       pestle_plugin_text_t* out) {
  const pestle_c_printer_dialect_t* d = p->d;
  bool f16 = strstr(h->name, "_f16") != NULL;
  const token_t tokens[] = {
      {"fn", -1, d->function},
      {"name", -1, h->name},
      {"bool", PESTLE_C_PRINTER_BOOL, NULL},
      {"pair", -1, d->pair},
      {"make", -1, d->pair_make},
      {"int", PESTLE_C_PRINTER_I32, NULL},
      {"uint", PESTLE_C_PRINTER_U32, NULL},
      {"long", PESTLE_C_PRINTER_I64, NULL},
      {"ulong", PESTLE_C_PRINTER_U64, NULL},
      {"float", PESTLE_C_PRINTER_F32, NULL},
      {"double", PESTLE_C_PRINTER_F64, NULL},
      {"u", -1, d->suffix[PESTLE_C_PRINTER_U32]},
      {"l", -1, d->suffix[PESTLE_C_PRINTER_I64]},
      {"ul", -1, d->suffix[PESTLE_C_PRINTER_U64]},
      {"d", -1, d->suffix[PESTLE_C_PRINTER_F64]},
      {"bits32", -1, d->bits[0]},
      {"bits64", -1, p->pairs ? d->pair_bits : d->bits[1]},
      {"real32", -1, d->real[0]},
      {"real64", -1, p->pairs ? d->pair_real : d->real[1]},
      {"words", -1, d->pair_bits},
      {"double_of", -1, d->pair_real},
      {"exact", -1, d->exact},
      {"type", -1, f16 ? "f16" : "bf16"},
      {"one", -1, f16 ? "0x3c003c00" : "0x3f803f80"},
      {"minus", -1, f16 ? "0xbc00bc00" : "0xbf80bf80"},
  };
  const char* at = h->text;
  while (*at) {
    size_t plain = strcspn(at, "$");
    pestle_plugin_text_append(out, at, plain);
    at += plain;
    if (!*at) break;
    const token_t* token = find(tokens, sizeof tokens / sizeof *tokens, at + 1);
    at += 1 + (token ? strlen(token->name) : 0);
    if (token) put_token(p, out, token, *at);
  }
  pestle_plugin_text_append(out, "\n", 1);
}

static bool is_half(c_printer_helper_t helper) {
  return helper >= HELPER_BF16X2_ADD && helper <= HELPER_F16X2_PACK;
}

static const char* own_text(const c_printer_t* p, c_printer_helper_t helper) {
  if (is_half(helper)) {
    bool f16 = helper >= HELPER_F16X2_ADD;
    return p->d->half[helper - (f16 ? HELPER_F16X2_ADD : HELPER_BF16X2_ADD)];
  }
  if (helper == HELPER_F16_TO) return p->d->decode_f16;
  if (helper == HELPER_BF16_FROM) return p->d->encode_bf16;
  if (helper == HELPER_MAX_F32) return p->d->max_f32;
  if (helper == HELPER_MIN_F32) return p->d->min_f32;
  if (helper == HELPER_APPROX_EXP2) return p->d->approx_exp2;
  if (helper == HELPER_APPROX_TANH) return p->d->approx_tanh;
  if (helper == HELPER_APPROX_DIV) return p->d->approx_div;
  if (helper == HELPER_FLUSH_EXP2) return p->d->flush_exp2;
  return helper == HELPER_F16_FROM ? p->d->encode_f16 : NULL;
}

void pestle_c_printer_helpers(c_printer_t* p, pestle_plugin_text_t* out) {
  for (unsigned i = 0; i < HELPER_COUNT; ++i) {
    if (!p->helper[i]) continue;
    c_printer_helper_text_t h = *helper_of(p, (c_printer_helper_t)i);
    const char* own = own_text(p, (c_printer_helper_t)i);
    if (own) h.text = own;
    put_helper(p, &h, out);
  }
}

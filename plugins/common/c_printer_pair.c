// SPDX-License-Identifier: Apache-2.0
// 64-bit integers where the device has none: pairs of 32-bit words, .x the low
// one, as the dialect's vectors of two. Arithmetic operators become function
// calls; and, or, xor, not and select work on both words as they are. Indices
// that may leave 32 bits are such pairs too, until they select an element: no
// buffer of such a device has more than 32 bits count.
#include "plugins/common/c_printer_internal.h"

typedef pestle_c_printer_class_t class_t;

static bool is_wide(class_t c) {
  return c == PESTLE_C_PRINTER_I64 || c == PESTLE_C_PRINTER_U64;
}

// --- Functions ---

#define NONE {HELPER_COUNT, HELPER_COUNT, HELPER_COUNT}
#define ONE(a) {a, HELPER_COUNT, HELPER_COUNT}
#define TWO(a, b) {a, b, HELPER_COUNT}

// A shift by |b|, which may be too far; |within| by 1 to 31 words' bits, |far|
// by 32 and more.
#define SHIFT(too_far, within, far)                 \
  "$fn$pair $name($pair a, $pair b) {\n"            \
  "  if (b.y != 0$u || b.x > 63$u) return " too_far \
  ";\n"                                             \
  "  $int n = $int(b.x & 31$u);\n"                  \
  "  if (b.x > 31$u) return " far                   \
  ";\n"                                             \
  "  if (n == 0) return a;\n"                       \
  "  return " within ";\n}\n"
// NaN compares with nothing.
#define FROM_FLOAT(F, least, low, most, high, body)      \
  "$fn$pair $name($" F                                   \
  " a) {\n"                                              \
  "  if (a >= " most ") return " high                    \
  ";\n"                                                  \
  "  if (!(a > " least ")) return a <= " least " ? " low \
  " : $make(0$u, 0$u);\n" body "}\n"
// Words of a float's magnitude, exact since it has fewer bits than they.
#define WORDS(F, s)                                          \
  "  $" F " size = a < 0.0" s                                \
  " ? -a : a;\n"                                             \
  "  $uint high = $uint(size * 2.3283064365386963e-10" s     \
  ");\n"                                                     \
  "  $uint low = $uint(size - $" F "(high) * 4294967296.0" s \
  ");\n"                                                     \
  "  $pair words = $make(low, high);\n"
#define UNSIGNED_WORDS(F, s)                                            \
  FROM_FLOAT(F, "0.0" s, "$make(0$u, 0$u)", "18446744073709551616.0" s, \
             "$make(0xffffffff$u, 0xffffffff$u)",                       \
             WORDS(F, s) "  return words;\n")
#define SIGNED_WORDS(F, s)                                            \
  FROM_FLOAT(                                                         \
      F, "-9223372036854775808.0" s, "$make(0$u, 0x80000000$u)",      \
      "9223372036854775808.0" s, "$make(0xffffffff$u, 0x7fffffff$u)", \
      WORDS(F, s) "  return a < 0.0" s                                \
                  " ? pestle_sub_pair($make(0$u, 0$u), words) : words;\n")
// The same of a signed one by that of its magnitude.
#define BY_SIGN(F, of)                   \
  "$fn$" F                               \
  " $name($pair a) {\n"                  \
  "  if ((a.y >> 31) == 0$u) return " of \
  "(a);\n"                               \
  "  return -" of "(pestle_sub_pair($make(0$u, 0$u), a));\n}\n"

static const c_printer_helper_text_t helpers[HELPER_COUNT] = {
    [HELPER_PAIR_ADD] =
        {"pestle_add_pair",
         "$fn$pair $name($pair a, $pair b) {\n"
         "  $uint low = a.x + b.x;\n"
         "  return $make(low, a.y + b.y + (low < a.x ? 1$u : 0$u));\n}\n",
         NONE},
    [HELPER_PAIR_SUB] =
        {"pestle_sub_pair",
         "$fn$pair $name($pair a, $pair b) {\n"
         "  return $make(a.x - b.x, a.y - b.y - (a.x < b.x ? 1$u : 0$u));\n"
         "}\n",
         NONE},
    [HELPER_PAIR_MUL] =
        {"pestle_mul_pair",
         "$fn$pair $name($pair a, $pair b) {\n"
         "  $uint al = a.x & 0xffff$u, ah = a.x >> 16;\n"
         "  $uint bl = b.x & 0xffff$u, bh = b.x >> 16;\n"
         "  $uint first = ah * bl + ((al * bl) >> 16);\n"
         "  $uint second = al * bh + (first & 0xffff$u);\n"
         "  $uint high = ah * bh + (first >> 16) + (second >> 16);\n"
         "  return $make(a.x * b.x, high + a.x * b.y + a.y * b.x);\n}\n",
         NONE},
    [HELPER_PAIR_EQ] = {"pestle_eq_pair",
                        "$fn$bool $name($pair a, $pair b) {\n"
                        "  return a.x == b.x && a.y == b.y;\n}\n",
                        NONE},
    [HELPER_PAIR_LT_U] =
        {"pestle_lt_upair",
         "$fn$bool $name($pair a, $pair b) {\n"
         "  return a.y < b.y || (a.y == b.y && a.x < b.x);\n}\n",
         NONE},
    [HELPER_PAIR_LT_S] =
        {"pestle_lt_ipair",
         "$fn$bool $name($pair a, $pair b) {\n"
         "  $uint x = a.y ^ 0x80000000$u, y = b.y ^ 0x80000000$u;\n"
         "  return x < y || (x == y && a.x < b.x);\n}\n",
         NONE},
    [HELPER_PAIR_FROM_I32] = {"pestle_i32_to_pair",
                              "$fn$pair $name($int a) {\n"
                              "  return $make($uint(a), a < 0 ? 0xffffffff$u : "
                              "0$u);\n}\n",
                              NONE},
    [HELPER_PAIR_U_TO_F32] =
        {"pestle_upair_to_f32",
         "// 32 bits, the last of which stands for all that are lost.\n"
         "$fn$float $name($pair a) {\n"
         "  $float scale = 1.0f;\n"
         "  $uint lost = 0$u;\n"
         "  while (a.y != 0$u) {\n"
         "    lost |= a.x & 1$u;\n"
         "    a = $make((a.x >> 1) | (a.y << 31), a.y >> 1);\n"
         "    scale *= 2.0f;\n  }\n"
         "  return $float(a.x | lost) * scale;\n}\n",
         NONE},
    [HELPER_PAIR_S_TO_F32] = {"pestle_ipair_to_f32",
                              BY_SIGN("float", "pestle_upair_to_f32"),
                              TWO(HELPER_PAIR_SUB, HELPER_PAIR_U_TO_F32)},
    [HELPER_PAIR_U_TO_F64] = {"pestle_upair_to_f64",
                              "$fn$double $name($pair a) {\n"
                              "  $exact$double high = $double(a.y) * "
                              "4294967296.0$d;\n"
                              "  return high + $double(a.x);\n}\n",
                              NONE},
    [HELPER_PAIR_S_TO_F64] = {"pestle_ipair_to_f64",
                              BY_SIGN("double", "pestle_upair_to_f64"),
                              TWO(HELPER_PAIR_SUB, HELPER_PAIR_U_TO_F64)},
    // By 0: all ones. Bit by bit from the highest, but for small numbers.
    [HELPER_DIV_U64] =
        {"pestle_div_u64",
         "$fn$pair $name($pair a, $pair b) {\n"
         "  if (b.x == 0$u && b.y == 0$u) {\n"
         "    return $make(0xffffffff$u, 0xffffffff$u);\n  }\n"
         "  if (a.y == 0$u && b.y == 0$u) return $make(a.x / b.x, 0$u);\n"
         "  $pair q = $make(0$u, 0$u), r = $make(0$u, 0$u);\n"
         "  for ($int i = 0; i < 64; ++i) {\n"
         "    $uint carry = r.y >> 31;\n"
         "    r = $make((r.x << 1) | (a.y >> 31), (r.y << 1) | (r.x >> 31));\n"
         "    a = $make(a.x << 1, (a.y << 1) | (a.x >> 31));\n"
         "    q = $make(q.x << 1, (q.y << 1) | (q.x >> 31));\n"
         "    if (carry != 0$u || !pestle_lt_upair(r, b)) {\n"
         "      r = pestle_sub_pair(r, b);\n"
         "      q = $make(q.x | 1$u, q.y);\n    }\n  }\n"
         "  return q;\n}\n",
         TWO(HELPER_PAIR_SUB, HELPER_PAIR_LT_U)},
    [HELPER_DIV_I64] =
        {"pestle_div_i64",
         "$fn$pair $name($pair a, $pair b) {\n"
         "  $pair zero = $make(0$u, 0$u);\n"
         "  if (b.x == 0$u && b.y == 0$u) {\n"
         "    return $make(0xffffffff$u, 0xffffffff$u);\n  }\n"
         "  $uint minus = (a.y ^ b.y) >> 31;\n"
         "  if ((a.y >> 31) != 0$u) a = pestle_sub_pair(zero, a);\n"
         "  if ((b.y >> 31) != 0$u) b = pestle_sub_pair(zero, b);\n"
         "  $pair q = pestle_div_u64(a, b);\n"
         "  return minus != 0$u ? pestle_sub_pair(zero, q) : q;\n}\n",
         ONE(HELPER_DIV_U64)},
    [HELPER_REM_U64] =
        {"pestle_rem_u64",
         "$fn$pair $name($pair a, $pair b) {\n"
         "  if (b.x == 0$u && b.y == 0$u) return a;\n"
         "  return pestle_sub_pair(a, pestle_mul_pair(pestle_div_u64(a, b), "
         "b));\n}\n",
         TWO(HELPER_DIV_U64, HELPER_PAIR_MUL)},
    [HELPER_REM_I64] =
        {"pestle_rem_i64",
         "$fn$pair $name($pair a, $pair b) {\n"
         "  if (b.x == 0$u && b.y == 0$u) return a;\n"
         "  return pestle_sub_pair(a, pestle_mul_pair(pestle_div_i64(a, b), "
         "b));\n}\n",
         TWO(HELPER_DIV_I64, HELPER_PAIR_MUL)},
    [HELPER_SHL_U64] = {"pestle_shl_u64",
                        SHIFT("$make(0$u, 0$u)",
                              "$make(a.x << n, (a.y << n) | (a.x >> (32 - n)))",
                              "$make(0$u, a.x << n)"),
                        NONE},
    [HELPER_SHR_U64] = {"pestle_shr_u64",
                        SHIFT("$make(0$u, 0$u)",
                              "$make((a.x >> n) | (a.y << (32 - n)), a.y >> n)",
                              "$make(a.y >> n, 0$u)"),
                        NONE},
    [HELPER_SAR_I64] =
        {"pestle_sar_i64",
         "$fn$pair $name($pair a, $pair b) {\n"
         "  $uint sign = (a.y >> 31) != 0$u ? 0xffffffff$u : 0$u;\n"
         "  if (b.y != 0$u || b.x > 63$u) return $make(sign, sign);\n"
         "  $pair flip = $make(sign, sign);\n"
         "  return pestle_shr_u64(a ^ flip, b) ^ flip;\n}\n",
         ONE(HELPER_SHR_U64)},
    [HELPER_ODD_SUM] =
        {"pestle_odd_sum",
         "// A sum whose last bit is 1 where |rest| says that it is not "
         "exact.\n"
         "$fn$double $name($double s, $double rest) {\n"
         "  $pair bits = $bits64(s);\n"
         "  if (rest != 0.0$d && (bits.x & 1$u) == 0$u) {\n"
         "    bits = pestle_add_pair(bits, (rest > 0.0$d) == (s > 0.0$d)\n"
         "        ? $make(1$u, 0$u) : $make(0xffffffff$u, 0xffffffff$u));\n"
         "  }\n"
         "  return $real64(bits);\n}\n",
         ONE(HELPER_PAIR_ADD)},
    [HELPER_F32_TO_I64] = {"pestle_f32_to_i64", SIGNED_WORDS("float", "f"),
                           ONE(HELPER_PAIR_SUB)},
    [HELPER_F32_TO_U64] = {"pestle_f32_to_u64", UNSIGNED_WORDS("float", "f"),
                           NONE},
    [HELPER_F64_TO_I64] = {"pestle_f64_to_i64", SIGNED_WORDS("double", "$d"),
                           ONE(HELPER_PAIR_SUB)},
    [HELPER_F64_TO_U64] = {"pestle_f64_to_u64", UNSIGNED_WORDS("double", "$d"),
                           NONE},
    [HELPER_ODD_U64] =
        {"pestle_odd_u64",
         "// An f32 whose last bit stands for all that it lost.\n"
         "$fn$float $name($pair a) {\n"
         "  $float scale = 1.0f;\n"
         "  while (a.y != 0$u || a.x >= 16777216$u) {\n"
         "    $uint lost = (a.x & 255$u) != 0$u ? 1$u : 0$u;\n"
         "    a = $make((a.x >> 8) | (a.y << 24) | lost, a.y >> 8);\n"
         "    scale *= 256.0f;\n  }\n"
         "  return $float(a.x) * scale;\n}\n",
         NONE},
    [HELPER_ODD_I64] = {"pestle_odd_i64", BY_SIGN("float", "pestle_odd_u64"),
                        TWO(HELPER_PAIR_SUB, HELPER_ODD_U64)},
};

const c_printer_helper_text_t* pestle_c_printer_pair_helper(
    c_printer_helper_t helper) {
  return helpers[helper].name ? &helpers[helper] : NULL;
}

static const char* call(c_printer_t* p, c_printer_helper_t helper,
                        const char* a, const char* b) {
  const char* name = pestle_c_printer_call(p, helper);
  a = pestle_c_printer_bare(p, a);
  if (!b) return pestle_c_printer_format(p, "%s(%s)", name, a);
  return pestle_c_printer_format(p, "%s(%s, %s)", name, a,
                                 pestle_c_printer_bare(p, b));
}

// --- Expressions ---

const char* pestle_c_printer_pair(c_printer_t* p, uint64_t value) {
  const char* u = p->d->suffix[PESTLE_C_PRINTER_U32];
  return pestle_c_printer_format(p, "(%s(%u%s, %u%s))", p->d->pair_make,
                                 (unsigned)value, u, (unsigned)(value >> 32),
                                 u);
}

const char* pestle_c_printer_pair_cast(c_printer_t* p, class_t from, class_t to,
                                       const char* x) {
  bool sign = from == PESTLE_C_PRINTER_I64;
  if (is_wide(from) && is_wide(to)) return x;
  if (to == PESTLE_C_PRINTER_F32) {
    return call(p, sign ? HELPER_PAIR_S_TO_F32 : HELPER_PAIR_U_TO_F32, x, NULL);
  }
  if (to == PESTLE_C_PRINTER_F64) {
    return call(p, sign ? HELPER_PAIR_S_TO_F64 : HELPER_PAIR_U_TO_F64, x, NULL);
  }
  if (is_wide(from)) {
    x = pestle_c_printer_format(p, "%s.x", x);
    return to == PESTLE_C_PRINTER_U32 ? x : pestle_c_printer_cast(p, to, x);
  }
  if (from == PESTLE_C_PRINTER_I32)
    return call(p, HELPER_PAIR_FROM_I32, x, NULL);
  return pestle_c_printer_format(p, "%s(%s, 0%s)", p->d->pair_make,
                                 pestle_c_printer_bare(p, x),
                                 p->d->suffix[PESTLE_C_PRINTER_U32]);
}

static const char* compared(c_printer_t* p, unsigned op, bool sign,
                            const char* a, const char* b) {
  c_printer_helper_t less = sign ? HELPER_PAIR_LT_S : HELPER_PAIR_LT_U;
  bool swap = op == PESTLE_OP_GT || op == PESTLE_OP_LE;
  bool not = op == PESTLE_OP_NE || op == PESTLE_OP_LE || op == PESTLE_OP_GE;
  bool equal = op == PESTLE_OP_EQ || op == PESTLE_OP_NE;
  const char* text =
      call(p, equal ? HELPER_PAIR_EQ : less, swap ? b : a, swap ? a : b);
  return not ? pestle_c_printer_format(p, "!%s", text) : text;
}

static const char* extreme(c_printer_t* p, class_t c, const char* a,
                           const char* b, bool most) {
  bool sign = c == PESTLE_C_PRINTER_I64;
  a = pestle_c_printer_atom(p, c, a);
  b = pestle_c_printer_atom(p, c, b);
  return pestle_c_printer_format(p, "(%s ? %s : %s)",
                                 compared(p, PESTLE_OP_LT, sign, a, b),
                                 most ? b : a, most ? a : b);
}

const char* pestle_c_printer_pair_row(c_printer_t* p, unsigned op, class_t c,
                                      const char* const* x) {
  const char *a = x[0], *b = x[1];
  bool sign = c == PESTLE_C_PRINTER_I64;
  if (op >= PESTLE_OP_EQ && op <= PESTLE_OP_GE) {
    return compared(p, op, sign, a, b);
  }
  switch (op) {
    case PESTLE_OP_ADD:
      return call(p, HELPER_PAIR_ADD, a, b);
    case PESTLE_OP_SUBTRACT:
      return call(p, HELPER_PAIR_SUB, a, b);
    case PESTLE_OP_MULTIPLY:
      return call(p, HELPER_PAIR_MUL, a, b);
    case PESTLE_OP_NEGATE:
      return call(p, HELPER_PAIR_SUB, pestle_c_printer_pair(p, 0), a);
    case PESTLE_OP_ABS:
      if (!sign) return a;
      a = pestle_c_printer_atom(p, c, a);
      b = call(p, HELPER_PAIR_SUB, pestle_c_printer_pair(p, 0), a);
      return pestle_c_printer_format(p, "((%s.y >> 31) != 0%s ? %s : %s)", a,
                                     p->d->suffix[PESTLE_C_PRINTER_U32], b, a);
    case PESTLE_OP_DIVIDE:
      return call(p, sign ? HELPER_DIV_I64 : HELPER_DIV_U64, a, b);
    case PESTLE_OP_REMAINDER:
      return call(p, sign ? HELPER_REM_I64 : HELPER_REM_U64, a, b);
    case PESTLE_OP_MAXIMUM:
    case PESTLE_OP_MINIMUM:
      return extreme(p, c, a, b, op == PESTLE_OP_MAXIMUM);
    case PESTLE_OP_CLAMP:
      return extreme(p, c, extreme(p, c, b, a, true), x[2], false);
    case PESTLE_OP_AND:
      return pestle_c_printer_format(p, "(%s & %s)", a, b);
    case PESTLE_OP_OR:
      return pestle_c_printer_format(p, "(%s | %s)", a, b);
    case PESTLE_OP_XOR:
      return pestle_c_printer_format(p, "(%s ^ %s)", a, b);
    case PESTLE_OP_NOT:
      return pestle_c_printer_format(p, "(~%s)", a);
    case PESTLE_OP_SHIFT_LEFT:
      return call(p, HELPER_SHL_U64, a, b);
    case PESTLE_OP_SHIFT_RIGHT_ARITHMETIC:
      return call(p, HELPER_SAR_I64, a, b);
    case PESTLE_OP_SHIFT_RIGHT_LOGICAL:
      return call(p, HELPER_SHR_U64, a, b);
    default:
      return pestle_c_printer_fail(p, PESTLE_STATUS_UNSUPPORTED,
                                   "the row is not one of pairs of words");
  }
}

// --- Indices ---

const char* pestle_c_printer_sum(c_printer_t* p, class_t c, const char* a,
                                 const char* b) {
  if (p->pairs && is_wide(c)) return call(p, HELPER_PAIR_ADD, a, b);
  return pestle_c_printer_format(p, "(%s + %s)", a, b);
}

const char* pestle_c_printer_product(c_printer_t* p, class_t c, const char* a,
                                     const char* b) {
  if (p->pairs && is_wide(c)) return call(p, HELPER_PAIR_MUL, a, b);
  return pestle_c_printer_format(p, "%s * %s", a, b);
}

const char* pestle_c_printer_less(c_printer_t* p, class_t c, const char* a,
                                  const char* b) {
  if (p->pairs && is_wide(c)) return call(p, HELPER_PAIR_LT_S, a, b);
  return pestle_c_printer_format(p, "%s < %s", a, b);
}

const char* pestle_c_printer_id(c_printer_t* p, class_t c, const char* id) {
  if (!p->pairs || !is_wide(c)) return pestle_c_printer_cast(p, c, id);
  return pestle_c_printer_pair_cast(
      p, PESTLE_C_PRINTER_U32, c,
      pestle_c_printer_cast(p, PESTLE_C_PRINTER_U32, id));
}

const char* pestle_c_printer_narrow(c_printer_t* p, unsigned dtype,
                                    const char* at) {
  class_t c = pestle_c_printer_class(p, dtype);
  if (!p->pairs || !is_wide(c)) return at;
  return pestle_c_printer_pair_cast(p, c, PESTLE_C_PRINTER_I32, at);
}

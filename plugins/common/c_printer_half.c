// SPDX-License-Identifier: Apache-2.0
// Floats of 16 bits computed with as they are, two of them in a word, where the
// dialect has functions for that. A value of an even number of lanes is then
// words; its lanes are halves of them, for what asks for lanes. Not the fused
// multiply-add: its definition rounds to f32 first, an instruction does not.
#include "plugins/common/c_printer_internal.h"

static c_printer_helper_t helper_of(unsigned dtype, c_printer_half_t pair) {
  c_printer_helper_t first =
      dtype == PESTLE_BF16 ? HELPER_BF16X2_ADD : HELPER_F16X2_ADD;
  return (c_printer_helper_t)(first + (unsigned)pair);
}

bool pestle_c_printer_has_halves(const c_printer_t* p, unsigned dtype) {
  return (p->target->features & PESTLE_C_PRINTER_HAS_HALVES) &&
         (dtype == PESTLE_BF16 || dtype == PESTLE_F16);
}

bool pestle_c_printer_half_op(unsigned op) {
  switch (op) {
    case PESTLE_OP_ADD:
    case PESTLE_OP_SUBTRACT:
    case PESTLE_OP_MULTIPLY:
    case PESTLE_OP_MAXIMUM:
    case PESTLE_OP_MINIMUM:
    case PESTLE_OP_NEGATE:
    case PESTLE_OP_ABS:
      return true;
    default:
      return false;
  }
}

static c_printer_half_t half_of_op(unsigned op) {
  return op == PESTLE_OP_ADD        ? CTEXT_HALF_ADD
         : op == PESTLE_OP_SUBTRACT ? CTEXT_HALF_SUB
         : op == PESTLE_OP_MULTIPLY ? CTEXT_HALF_MUL
         : op == PESTLE_OP_MAXIMUM  ? CTEXT_HALF_MAX
                                    : CTEXT_HALF_MIN;
}

// Row |op| of words.
static const char* row_of(c_printer_t* p, unsigned op, unsigned dtype,
                          const char* const* x) {
  const char* u = p->d->suffix[PESTLE_C_PRINTER_U32];
  if (op == PESTLE_OP_ABS) {
    return pestle_c_printer_format(p, "(%s & 0x7fff7fff%s)", x[0], u);
  }
  if (op == PESTLE_OP_NEGATE) {
    return pestle_c_printer_format(p, "(%s ^ 0x80008000%s)", x[0], u);
  }
  c_printer_half_t pair = half_of_op(op);
  const char* name = pestle_c_printer_call(p, helper_of(dtype, pair));
  const char* a = pestle_c_printer_bare(p, x[0]);
  const char* b = pestle_c_printer_bare(p, x[1]);
  return pestle_c_printer_format(p, "%s(%s, %s)", name, a, b);
}

static bool is_bits(const char* text, unsigned long* out) {
  char* end;
  if (strncmp(text, "0x", 2) != 0) return false;
  *out = strtoul(text, &end, 16);
  return end != text && strspn(end, "uU") == strlen(end);
}

// Both halves of a word are |text|.
static const char* twice(c_printer_t* p, const char* text) {
  unsigned long bits;
  const char* u = p->d->suffix[PESTLE_C_PRINTER_U32];
  if (is_bits(text, &bits)) {
    return pestle_c_printer_format(p, "0x%lx%s", bits << 16 | bits, u);
  }
  return pestle_c_printer_atom(
      p, PESTLE_C_PRINTER_U32,
      pestle_c_printer_format(p, "(%s * 0x10001%s)", text, u));
}

const char* pestle_c_printer_word(c_printer_t* p, uint32_t id, unsigned word) {
  c_printer_value_t* value = &p->value[id];
  if (value->word) return value->word[value->uniform ? 0 : word];
  if (value->uniform) {
    const char** one = pestle_c_printer_lanes(p, 1);
    one[0] = twice(p, pestle_c_printer_get(p, id, 0));
    // The name lives where it was made; a constant's text everywhere.
    if (c_printer_inst(p, id)->op == PESTLE_KIR_CONST) value->word = one;
    return one[0];
  }
  return pestle_c_printer_format(p, "(%s | %s << 16)",
                                 pestle_c_printer_get(p, id, 2 * word),
                                 pestle_c_printer_get(p, id, 2 * word + 1));
}

void pestle_c_printer_alias_words(c_printer_t* p, uint32_t id,
                                  const char** words, unsigned lanes) {
  const char** lane = pestle_c_printer_lanes(p, lanes);
  const char* u = p->d->suffix[PESTLE_C_PRINTER_U32];
  for (unsigned l = 0; l < lanes; ++l) {
    lane[l] =
        l % 2 ? pestle_c_printer_format(p, "(%s >> 16)", words[l / 2])
              : pestle_c_printer_format(p, "(%s & 0xffff%s)", words[l / 2], u);
  }
  p->value[id] = (c_printer_value_t){lane, words, false};
}

static void define(c_printer_t* p, uint32_t id, const char** words,
                   unsigned lanes) {
  for (unsigned w = 0; w < lanes / 2; ++w)
    words[w] = pestle_c_printer_atom(p, PESTLE_C_PRINTER_U32, words[w]);
  pestle_c_printer_alias_words(p, id, words, lanes);
}

// Two f32 rounded at once.
static bool pack(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  const pestle_kir_inst_t* from = c_printer_inst(p, n->arg[0]);
  if (from->type != PESTLE_F32 || p->value[n->arg[0]].uniform) return false;
  const char* name =
      pestle_c_printer_call(p, helper_of(n->type, CTEXT_HALF_PACK));
  const char** words = pestle_c_printer_lanes(p, n->lanes / 2u);
  for (unsigned w = 0; w < n->lanes / 2u; ++w) {
    const char* low = pestle_c_printer_get(p, n->arg[0], 2 * w);
    const char* high = pestle_c_printer_get(p, n->arg[0], 2 * w + 1);
    words[w] = pestle_c_printer_format(p, "%s(%s, %s)", name,
                                       pestle_c_printer_bare(p, low),
                                       pestle_c_printer_bare(p, high));
  }
  define(p, id, words, n->lanes);
  return true;
}

// The same in all lanes: computed in the lower half.
static void one_row(c_printer_t* p, uint32_t id, unsigned op) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  const char* letters = pestle_kir_op_info(n->op).operands;
  const char* x[3] = {"0", "0", "0"};
  const char** lane = pestle_c_printer_lanes(p, 1);
  for (int a = 0; letters[a] && a < 3; ++a)
    x[a] = pestle_c_printer_get(p, n->arg[a], 0);
  lane[0] =
      pestle_c_printer_format(p, "(%s & 0xffff%s)", row_of(p, op, n->type, x),
                              p->d->suffix[PESTLE_C_PRINTER_U32]);
  pestle_c_printer_define(p, id, lane, 1);
}

bool pestle_c_printer_by_halves(c_printer_t* p, uint32_t id, bool uniform) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  const char* letters = pestle_kir_op_info(n->op).operands;
  if (!pestle_c_printer_has_halves(p, n->type)) return false;
  bool even = n->lanes % 2 == 0 && !uniform;
  if (n->op == PESTLE_KIR_CAST) return even && pack(p, id);
  if (n->op < PESTLE_KIR_SCALAR_BASE) return false;
  unsigned op = n->op - PESTLE_KIR_SCALAR_BASE;
  if (!pestle_c_printer_half_op(op)) return false;
  if (uniform) {
    one_row(p, id, op);
    return true;
  }
  if (!even) return false;
  const char** words = pestle_c_printer_lanes(p, n->lanes / 2u);
  for (unsigned w = 0; w < n->lanes / 2u; ++w) {
    const char* x[3] = {"0", "0", "0"};
    for (int a = 0; letters[a] && a < 3; ++a)
      x[a] = pestle_c_printer_word(p, n->arg[a], w);
    words[w] = row_of(p, op, n->type, x);
  }
  define(p, id, words, n->lanes);
  return true;
}

// A lane by itself, of an odd number of them or of a reduction.
const char* pestle_c_printer_half_row(c_printer_t* p, unsigned op,
                                      unsigned dtype, const char* const* x) {
  return pestle_c_printer_format(p, "(%s & 0xffff%s)", row_of(p, op, dtype, x),
                                 p->d->suffix[PESTLE_C_PRINTER_U32]);
}

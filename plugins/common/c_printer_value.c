// SPDX-License-Identifier: Apache-2.0
// Values and their texts. A value that is used once, in the region where it is
// made, is printed where it is used unless that would grow too long; others get
// a name, the kernel's own with the instruction's number.
#include <math.h>

#include "plugins/common/c_printer_internal.h"

pestle_c_printer_class_t pestle_c_printer_class(const c_printer_t* p,
                                                unsigned dtype) {
  const pestle_dtype_info_t* info = pestle_dtype_info((pestle_dtype_t)dtype);
  if (dtype == PESTLE_I1) return PESTLE_C_PRINTER_BOOL;
  if (dtype == PESTLE_F32) return PESTLE_C_PRINTER_F32;
  if (dtype == PESTLE_F64) return PESTLE_C_PRINTER_F64;
  if (dtype == PESTLE_INDEX) {
    return p->wide_index ? PESTLE_C_PRINTER_I64 : PESTLE_C_PRINTER_I32;
  }
  if (info->kind & PESTLE_KIND_FLOAT) return PESTLE_C_PRINTER_U32;
  if (info->kind & PESTLE_KIND_SIGNED) {
    return info->bits > 32 ? PESTLE_C_PRINTER_I64 : PESTLE_C_PRINTER_I32;
  }
  return info->bits > 32 ? PESTLE_C_PRINTER_U64 : PESTLE_C_PRINTER_U32;
}

pestle_c_printer_memory_t pestle_c_printer_memory(const c_printer_t* p,
                                                  unsigned dtype) {
  const pestle_dtype_info_t* info = pestle_dtype_info((pestle_dtype_t)dtype);
  (void)p;
  bool sign = info->kind & PESTLE_KIND_SIGNED;
  if (dtype == PESTLE_F32) return PESTLE_C_PRINTER_M_F32;
  if (dtype == PESTLE_F64) return PESTLE_C_PRINTER_M_F64;
  switch (info->size) {
    case 1:
      return sign ? PESTLE_C_PRINTER_M_I8 : PESTLE_C_PRINTER_M_U8;
    case 2:
      return sign ? PESTLE_C_PRINTER_M_I16 : PESTLE_C_PRINTER_M_U16;
    case 4:
      return sign ? PESTLE_C_PRINTER_M_I32 : PESTLE_C_PRINTER_M_U32;
    default:
      return sign ? PESTLE_C_PRINTER_M_I64 : PESTLE_C_PRINTER_M_U64;
  }
}

const char* pestle_c_printer_memory_type(const c_printer_t* p,
                                         pestle_c_printer_memory_t memory) {
  bool wide =
      memory == PESTLE_C_PRINTER_M_I64 || memory == PESTLE_C_PRINTER_M_U64;
  return p->pairs && wide ? p->d->pair : p->d->memory[memory];
}

const char* pestle_c_printer_type(c_printer_t* p, pestle_c_printer_class_t c) {
  bool wide = c == PESTLE_C_PRINTER_I64 || c == PESTLE_C_PRINTER_U64;
  if (wide && p->pairs) return p->d->pair;
  if (wide) p->uses_i64 = true;
  if (c == PESTLE_C_PRINTER_F64) p->uses_f64 = true;
  return p->d->value[c];
}

// Whether the parenthesis at 0 closes at the end.
static bool is_wrapped(const char* text, size_t size) {
  int depth = 0;
  if (size < 2 || text[0] != '(' || text[size - 1] != ')') return false;
  for (size_t i = 0; i + 1 < size; ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) return false;
  }
  return true;
}

const char* pestle_c_printer_bare(c_printer_t* p, const char* text) {
  size_t size = strlen(text);
  // A cast of C stands in front of what it casts, so it never is the whole.
  if (!is_wrapped(text, size)) return text;
  return pestle_c_printer_format(p, "%.*s", (int)(size - 2), text + 1);
}

// What |text| casts, when that is all it is: a cast of an |outer| one that was
// cast from |c| just before. NULL else.
static const char* cast_back(c_printer_t* p, pestle_c_printer_class_t c,
                             pestle_c_printer_class_t outer, const char* text) {
  const char* form = p->d->constructors ? "%s(%s(" : "((%s)((%s)(";
  const char* begin =
      pestle_c_printer_format(p, form, p->d->value[outer], p->d->value[c]);
  size_t size = strlen(text);
  size_t from = p->d->constructors ? strlen(p->d->value[outer])
                                   : strlen(p->d->value[outer]) + 3;
  if (strncmp(text, begin, strlen(begin)) != 0) return NULL;
  const char* rest = text + from;
  size_t left = size - from - (p->d->constructors ? 0 : 1);
  if (!is_wrapped(rest, left)) return NULL;
  const char* inner =
      pestle_c_printer_format(p, "%.*s", (int)left - 2, rest + 1);
  // The inner cast must be the whole of it.
  size_t name = p->d->constructors ? strlen(p->d->value[c]) : 0;
  if (p->d->constructors) {
    return is_wrapped(inner + name, strlen(inner) - name) ? inner : NULL;
  }
  return pestle_c_printer_format(p, "(%s)", inner);
}

static bool is_number(const char* text) {
  return *text && text[strspn(text, "0123456789")] == 0;
}

const char* pestle_c_printer_cast(c_printer_t* p, pestle_c_printer_class_t c,
                                  const char* text) {
  const char* type = pestle_c_printer_type(p, c);
  bool is_u32 = c == PESTLE_C_PRINTER_U32;
  if (is_u32 || c == PESTLE_C_PRINTER_I32) {
    const char* back = cast_back(
        p, c, is_u32 ? PESTLE_C_PRINTER_I32 : PESTLE_C_PRINTER_U32, text);
    if (back) return back;
  }
  if (is_u32 && is_number(text)) {
    return pestle_c_printer_format(p, "%s%s", text, p->d->suffix[c]);
  }
  if (p->d->constructors) {
    return pestle_c_printer_format(p, "%s(%s)", type,
                                   pestle_c_printer_bare(p, text));
  }
  return pestle_c_printer_format(p, "((%s)(%s))", type,
                                 pestle_c_printer_bare(p, text));
}

const char* pestle_c_printer_bits(c_printer_t* p, pestle_c_printer_class_t c,
                                  const char* text) {
  bool f64 = c == PESTLE_C_PRINTER_F64;
  const char* name = f64 && p->pairs ? p->d->pair_bits : p->d->bits[f64];
  return pestle_c_printer_format(p, "%s(%s)", name,
                                 pestle_c_printer_bare(p, text));
}

const char* pestle_c_printer_real(c_printer_t* p, pestle_c_printer_class_t c,
                                  const char* text) {
  bool f64 = c == PESTLE_C_PRINTER_F64;
  const char* name = f64 && p->pairs ? p->d->pair_real : p->d->real[f64];
  return pestle_c_printer_format(p, "%s(%s)", name,
                                 pestle_c_printer_bare(p, text));
}

// --- Constants ---

const char* pestle_c_printer_int(c_printer_t* p, pestle_c_printer_class_t c,
                                 int64_t value) {
  const char* suffix = p->d->suffix[c];
  pestle_c_printer_type(p, c);
  if (p->pairs && (c == PESTLE_C_PRINTER_I64 || c == PESTLE_C_PRINTER_U64)) {
    return pestle_c_printer_pair(p, (uint64_t)value);
  }
  switch (c) {
    case PESTLE_C_PRINTER_BOOL:
      return value ? "true" : "false";
    case PESTLE_C_PRINTER_U32:
      return pestle_c_printer_format(p, "%u%s", (unsigned)value, suffix);
    case PESTLE_C_PRINTER_U64:
      return pestle_c_printer_format(p, "%llu%s", (unsigned long long)value,
                                     suffix);
    case PESTLE_C_PRINTER_I32:
    case PESTLE_C_PRINTER_I64:
    case PESTLE_C_PRINTER_F32:
    case PESTLE_C_PRINTER_F64:
    case PESTLE_C_PRINTER_CLASSES:
      break;
  }
  // The least value has no literal of its own.
  if (c == PESTLE_C_PRINTER_I32 && value == INT32_MIN)
    return "(-2147483647 - 1)";
  if (value == INT64_MIN) {
    return pestle_c_printer_format(p, "(-9223372036854775807%s - 1%s)", suffix,
                                   suffix);
  }
  return pestle_c_printer_format(p, value < 0 ? "(%lld%s)" : "%lld%s",
                                 (long long)value, suffix);
}

// Shortest decimal that reads back the same, in f64 too where that may be what reads
// it: glslang makes of double(0.1f) the f64 nearest to 0.1.
static const char* decimal(c_printer_t* p, double value, bool is_double) {
  char text[40] = "";
  bool exact = is_double || p->d->wide_literals;
  for (int digits = 6; digits <= 17; ++digits) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    double back = strtod(text, NULL);
    if (exact ? back == value : (float)back == (float)value) break;
  }
  bool plain = !strpbrk(text, ".e");
  const char* suffix =
      p->d->suffix[is_double ? PESTLE_C_PRINTER_F64 : PESTLE_C_PRINTER_F32];
  return pestle_c_printer_format(p, value < 0 ? "(%s%s%s)" : "%s%s%s", text,
                                 plain ? ".0" : "", suffix);
}

static const char* real(c_printer_t* p, unsigned dtype, double value) {
  uint64_t bits;
  float f = (float)value;
  uint32_t short_bits;
  memcpy(&bits, &value, sizeof bits);
  memcpy(&short_bits, &f, sizeof f);
  bool is_double = dtype == PESTLE_F64;
  bool plain = is_double ? isnormal(value) : isnormal(f);
  bool zero = is_double ? bits == 0 : short_bits == 0;
  pestle_c_printer_class_t c =
      is_double ? PESTLE_C_PRINTER_F64 : PESTLE_C_PRINTER_F32;
  pestle_c_printer_type(p, c);
  if ((is_double ? value : (double)f) == 0 && pestle_c_printer_hides_zeros(p)) {
    return pestle_c_printer_format(p, signbit(value) ? "(-%s)" : "%s",
                                   pestle_c_printer_zero(p, c));
  }
  if (plain || zero)
    return decimal(p, is_double ? value : (double)f, is_double);
  if (is_double) {
    return pestle_c_printer_real(
        p, PESTLE_C_PRINTER_F64,
        pestle_c_printer_int(p, PESTLE_C_PRINTER_U64, (int64_t)bits));
  }
  return pestle_c_printer_real(
      p, PESTLE_C_PRINTER_F32,
      pestle_c_printer_format(p, "0x%08x%s", (unsigned)short_bits,
                              p->d->suffix[PESTLE_C_PRINTER_U32]));
}

const char* pestle_c_printer_const(c_printer_t* p,
                                   const pestle_kir_inst_t* inst) {
  unsigned dtype = inst->type;
  if (c_printer_is_float(dtype)) {
    return real(p, dtype, pestle_kir_const_float(inst));
  }
  if (c_printer_is_narrow_float(dtype)) {
    double value = pestle_kir_const_float(inst);
    uint64_t bits = pestle_plugin_float_bits((pestle_dtype_t)dtype, value);
    const char* text = pestle_c_printer_format(
        p, "0x%x%s", (unsigned)bits, p->d->suffix[PESTLE_C_PRINTER_U32]);
    if (value != 0 || !pestle_c_printer_hides_zeros(p)) return text;
    return pestle_c_printer_format(
        p, "(%s | %s)", text, pestle_c_printer_zero(p, PESTLE_C_PRINTER_U32));
  }
  int64_t value = pestle_kir_const_int(inst);
  unsigned width = pestle_dtype_info((pestle_dtype_t)dtype)->bits;
  if (!pestle_dtype_is((pestle_dtype_t)dtype, PESTLE_KIND_SIGNED) &&
      width < 64) {
    value &= (INT64_C(1) << width) - 1;
  }
  return pestle_c_printer_int(p, pestle_c_printer_class(p, dtype), value);
}

bool pestle_c_printer_known(const c_printer_t* p, uint32_t id,
                            int64_t* out_value) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  if (n->op == PESTLE_KIR_SPLAT)
    return pestle_c_printer_known(p, n->arg[0], out_value);
  if (n->op != PESTLE_KIR_CONST ||
      pestle_dtype_is((pestle_dtype_t)n->type, PESTLE_KIND_FLOAT)) {
    return false;
  }
  *out_value = pestle_kir_const_int(n);
  return true;
}

// --- Texts of values ---

const char** pestle_c_printer_lanes(c_printer_t* p, unsigned count) {
  const char** lanes =
      pestle_plugin_arena_alloc(&p->arena, count, sizeof *lanes);
  static const char* none[PESTLE_KIR_MAX_LANES];
  if (lanes) return lanes;
  pestle_c_printer_fail(p, PESTLE_STATUS_OUT_OF_MEMORY, "no memory to print");
  return none;
}

const char* pestle_c_printer_get(c_printer_t* p, uint32_t id, unsigned lane) {
  const c_printer_value_t* value = &p->value[id];
  const char* text =
      value->lane ? value->lane[value->uniform ? 0 : lane] : NULL;
  return text ? text : "0";
}

void pestle_c_printer_alias(c_printer_t* p, uint32_t id, const char** lanes,
                            unsigned count) {
  p->value[id] = (c_printer_value_t){lanes, NULL, count == 1};
}

static const char* name_of(c_printer_t* p, uint32_t id) {
  const char* given = pestle_kir_string(p->k, c_printer_inst(p, id)->name);
  char name[40];
  size_t size = 0;
  // Underscores in a row belong to GLSL.
  for (; *given && size + 1 < sizeof name; ++given) {
    bool letter = (*given >= 'a' && *given <= 'z') ||
                  (*given >= 'A' && *given <= 'Z') ||
                  (size && *given >= '0' && *given <= '9');
    if (letter) name[size++] = *given;
    if (!letter && size && name[size - 1] != '_') name[size++] = '_';
  }
  while (size && name[size - 1] == '_')
    --size;
  name[size] = 0;
  return pestle_c_printer_format(p, size ? "%s_%u" : "%sv%u", name, id);
}

static void declare(c_printer_t* p, pestle_c_printer_class_t c,
                    const char* name, const char* text) {
  bool real = c == PESTLE_C_PRINTER_F32 || c == PESTLE_C_PRINTER_F64;
  pestle_c_printer_line(p, "%s%s %s = %s;", real ? p->d->exact : "",
                        pestle_c_printer_type(p, c), name,
                        pestle_c_printer_bare(p, text));
}

static void define_by_name(c_printer_t* p, uint32_t id, const char** lanes,
                           unsigned count) {
  pestle_c_printer_class_t c =
      pestle_c_printer_class(p, c_printer_inst(p, id)->type);
  const char* name = name_of(p, id);
  const char** names = pestle_c_printer_lanes(p, count);
  for (unsigned l = 0; l < count; ++l) {
    names[l] = count == 1 ? name : pestle_c_printer_format(p, "%s_%u", name, l);
    declare(p, c, names[l], lanes[l]);
  }
  pestle_c_printer_alias(p, id, names, count);
}

static bool is_atom(const char* text) {
  for (const char* c = text; *c; ++c) {
    bool plain = (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') ||
                 (*c >= 'A' && *c <= 'Z') || *c == '_' || *c == '.';
    if (!plain) return false;
  }
  return true;
}

// Sums and quotients are not printed in place where the language contracts what is
// not said to be exact, or takes a quotient by a constant for a product: it says so
// of variables. (Not more than these: glslang follows each such variable.)
static bool must_be_named(const c_printer_t* p, const pestle_kir_inst_t* n) {
  if (!*p->d->exact || !c_printer_is_float(n->type)) return false;
  return n->op == PESTLE_KIR_ADD || n->op == PESTLE_KIR_SUBTRACT ||
         n->op == PESTLE_KIR_DIVIDE;
}

void pestle_c_printer_define(c_printer_t* p, uint32_t id, const char** lanes,
                             unsigned count) {
  bool in_place = p->uses[id] <= 1 && !must_be_named(p, c_printer_inst(p, id));
  bool atoms = true;
  for (unsigned l = 0; l < count; ++l) {
    if (strlen(lanes[l]) > CTEXT_INLINE) in_place = false;
    if (!is_atom(lanes[l])) atoms = false;
  }
  if (in_place || atoms) {
    pestle_c_printer_alias(p, id, lanes, count);
  } else {
    define_by_name(p, id, lanes, count);
  }
}

void pestle_c_printer_define_named(c_printer_t* p, uint32_t id,
                                   const char** lanes, unsigned count) {
  define_by_name(p, id, lanes, count);
}

const char* pestle_c_printer_atom(c_printer_t* p, pestle_c_printer_class_t c,
                                  const char* text) {
  if (is_atom(text)) return text;
  const char* name = pestle_c_printer_format(p, "t%u", p->temporaries++);
  declare(p, c, name, text);
  return name;
}

// --- Instructions that make or move lanes ---

static void madi(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  const char* a = pestle_c_printer_get(p, n->arg[0], 0);
  pestle_c_printer_class_t c = pestle_c_printer_class(p, PESTLE_INDEX);
  const char** lane = pestle_c_printer_lanes(p, 1);
  int32_t by = (int32_t)n->arg[1];
  int64_t rest = 0, first = 0;
  bool known = pestle_c_printer_known(p, n->arg[2], &rest);
  if (pestle_c_printer_known(p, n->arg[0], &first) && first == 0) by = 0;
  const char* scaled = a;
  if (by == 0) scaled = NULL;
  if (by != 0 && by != 1) {
    scaled = pestle_c_printer_product(p, c, a, pestle_c_printer_int(p, c, by));
  }
  const char* add = pestle_c_printer_get(p, n->arg[2], 0);
  if (!scaled) {
    lane[0] = add;
  } else if (known && rest == 0) {
    lane[0] = by == 1 ? scaled : pestle_c_printer_format(p, "(%s)", scaled);
  } else if (known && rest < 0 && rest > INT32_MIN && !p->pairs) {
    lane[0] = pestle_c_printer_format(p, "(%s - %s)", scaled,
                                      pestle_c_printer_int(p, c, -rest));
  } else {
    lane[0] = pestle_c_printer_sum(p, c, scaled, add);
  }
  pestle_c_printer_define(p, id, lane, 1);
}

static void mask(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  pestle_c_printer_class_t c = pestle_c_printer_class(p, PESTLE_INDEX);
  const char* index = pestle_c_printer_get(p, n->arg[0], 0);
  const char* limit = pestle_c_printer_get(p, n->arg[1], 0);
  const char** lane = pestle_c_printer_lanes(p, n->lanes);
  if (n->lanes > 1) index = pestle_c_printer_atom(p, c, index);
  for (unsigned l = 0; l < n->lanes; ++l) {
    const char* at = l ? pestle_c_printer_bare(
                             p, pestle_c_printer_sum(
                                    p, c, index, pestle_c_printer_int(p, c, l)))
                       : index;
    lane[l] = pestle_c_printer_format(p, "(%s)",
                                      pestle_c_printer_less(p, c, at, limit));
  }
  pestle_c_printer_define(p, id, lane, n->lanes);
}

static void reduce(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  unsigned lanes = c_printer_inst(p, n->arg[0])->lanes;
  const char** x = pestle_c_printer_lanes(p, lanes);
  pestle_c_printer_class_t c = pestle_c_printer_class(p, n->type);
  for (unsigned l = 0; l < lanes; ++l)
    x[l] = pestle_c_printer_get(p, n->arg[0], l);
  for (unsigned half = lanes / 2; half; half /= 2) {
    for (unsigned l = 0; l < half; ++l) {
      const char* pair[3] = {x[l], x[l + half], "0"};
      x[l] = pestle_c_printer_row(p, n->arg[1], n->type, pair, NULL);
      if (half > 1) x[l] = pestle_c_printer_atom(p, c, x[l]);
    }
  }
  pestle_c_printer_define(p, id, x, 1);
}

static void shuffle(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  const char** lane = pestle_c_printer_lanes(p, n->lanes);
  unsigned first = c_printer_inst(p, n->arg[0])->lanes;
  const pestle_kir_table_t* table = &p->k->table[n->arg[2]];
  for (unsigned l = 0; l < n->lanes; ++l) {
    unsigned at = p->k->table_word[table->first + l];
    lane[l] = at < first ? pestle_c_printer_get(p, n->arg[0], at)
                         : pestle_c_printer_get(p, n->arg[1], at - first);
  }
  pestle_c_printer_alias(p, id, lane, n->lanes);
}

static void move_lanes(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  bool insert = n->op == PESTLE_KIR_INSERT, splat = n->op == PESTLE_KIR_SPLAT;
  unsigned lanes = splat ? 1 : n->lanes;
  const char** lane = pestle_c_printer_lanes(p, lanes);
  for (unsigned l = 0; l < lanes; ++l) {
    lane[l] = pestle_c_printer_get(p, n->arg[0],
                                   insert  ? l
                                   : splat ? 0
                                           : n->arg[1]);
  }
  if (insert) lane[n->arg[2]] = pestle_c_printer_get(p, n->arg[1], 0);
  p->value[id] = (c_printer_value_t){lane, NULL, lanes == 1};
}

static void iota(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  const char** lane = pestle_c_printer_lanes(p, n->lanes);
  for (unsigned l = 0; l < n->lanes; ++l) {
    lane[l] = pestle_c_printer_int(p, pestle_c_printer_class(p, n->type), l);
  }
  pestle_c_printer_alias(p, id, lane, n->lanes);
}

static const char* parameter(c_printer_t* p, const pestle_kir_inst_t* n) {
  const char* name = pestle_c_printer_format(p, "p%u", n->arg[0]);
  const char* pairs[] = {"name", name, NULL};
  const char* use = pestle_c_printer_expand(p, p->d->parameter_use, pairs);
  pestle_c_printer_type(p, PESTLE_C_PRINTER_I64);
  return pestle_c_printer_convert(p, PESTLE_I64, n->type, use);
}

// --- Elementwise ---

// A multiply that the add |id| swallows, its operands and what is added.
static const char* fused_lane(c_printer_t* p, uint32_t id, unsigned lane) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  const pestle_kir_inst_t* mul = c_printer_inst(p, p->fused[id]);
  bool left = n->arg[0] == p->fused[id];
  const char* a = pestle_c_printer_get(p, mul->arg[0], lane);
  const char* b = pestle_c_printer_get(p, mul->arg[1], lane);
  const char* c = pestle_c_printer_get(p, n->arg[left ? 1 : 0], lane);
  if (n->op == PESTLE_KIR_SUBTRACT && left) {
    c = pestle_c_printer_format(p, "-%s", c);
  } else if (n->op == PESTLE_KIR_SUBTRACT) {
    a = pestle_c_printer_format(p, "-%s", a);
  }
  return pestle_c_printer_fma(p, pestle_c_printer_class(p, n->type), a, b, c);
}

static const char* plain_lane(c_printer_t* p, uint32_t id, unsigned lane) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  const char* x[3] = {"0", "0", "0"};
  const char* letters = pestle_kir_op_info(n->op).operands;
  unsigned from = c_printer_inst(p, n->arg[0])->type;
  for (int a = 0; letters[a] && a < 3; ++a) {
    x[a] = pestle_c_printer_get(p, n->arg[a], lane);
  }
  if (n->op == PESTLE_KIR_CAST) {
    return pestle_c_printer_convert(p, from, n->type, x[0]);
  }
  if (n->op == PESTLE_KIR_BITCAST) {
    return pestle_c_printer_bitcast(p, from, n->type, x[0]);
  }
  if (p->fused[id] != PESTLE_KIR_NONE) return fused_lane(p, id, lane);
  int64_t known;
  bool is_known = letters[1] && pestle_c_printer_known(p, n->arg[1], &known);
  if (n->op == PESTLE_KIR_SELECT) from = n->type;
  if (pestle_c_printer_is_approx(p, n)) {
    return pestle_c_printer_approx(p, n, x);
  }
  return pestle_c_printer_row(p, n->op - PESTLE_KIR_SCALAR_BASE, from, x,
                              is_known ? &known : NULL);
}

static void elementwise(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  if (p->swallowed[id] || pestle_c_printer_warpgroup(p, id)) return;
  // What is the same in all lanes is computed once.
  bool uniform = true;
  const char* letters = pestle_kir_op_info(n->op).operands;
  for (int a = 0; letters[a]; ++a) {
    const c_printer_value_t* x = &p->value[n->arg[a]];
    if (letters[a] == 'v' && !x->uniform) uniform = false;
  }
  if (p->fused[id] != PESTLE_KIR_NONE) uniform = n->lanes == 1;
  if (pestle_c_printer_by_halves(p, id, uniform)) return;
  unsigned lanes = uniform ? 1 : n->lanes;
  const char** lane = pestle_c_printer_lanes(p, lanes);
  for (unsigned l = 0; l < lanes; ++l)
    lane[l] = plain_lane(p, id, l);
  pestle_c_printer_define(p, id, lane, lanes);
}

void pestle_c_printer_value(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  const char** lane;
  switch (n->op) {
    case PESTLE_KIR_CONST:
      lane = pestle_c_printer_lanes(p, 1);
      lane[0] = pestle_c_printer_const(p, n);
      pestle_c_printer_alias(p, id, lane, 1);
      return;
    case PESTLE_KIR_PARAM:
      lane = pestle_c_printer_lanes(p, 1);
      lane[0] = parameter(p, n);
      pestle_c_printer_define(p, id, lane, 1);
      return;
    case PESTLE_KIR_MADI:
      madi(p, id);
      return;
    case PESTLE_KIR_MASK:
      mask(p, id);
      return;
    case PESTLE_KIR_IOTA:
      iota(p, id);
      return;
    case PESTLE_KIR_SPLAT:
    case PESTLE_KIR_EXTRACT:
    case PESTLE_KIR_INSERT:
      move_lanes(p, id);
      return;
    case PESTLE_KIR_REDUCE:
      reduce(p, id);
      return;
    case PESTLE_KIR_SHUFFLE:
      shuffle(p, id);
      return;
    default:
      elementwise(p, id);
      return;
  }
}

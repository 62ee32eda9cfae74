// SPDX-License-Identifier: Apache-2.0
// Zeros that a device's compiler must not know. Mesa's gallivm takes shortcuts
// where an operand is the constant 0, whatever `precise` says: x + 0 is x,
// though -0 + 0 is 0; x * 0 and 0 / x are 0, though they may be -0 or NaN; x / 0
// is anything. The number of groups has no highest bit: that bit is the zero
// which all others are made of.
#include "plugins/common/c_printer_internal.h"

static const char* const names[PESTLE_C_PRINTER_CLASSES] = {
    [PESTLE_C_PRINTER_U32] = "pestle_zero",
    [PESTLE_C_PRINTER_F32] = "pestle_zero_f32",
    [PESTLE_C_PRINTER_F64] = "pestle_zero_f64"};

bool pestle_c_printer_hides_zeros(const c_printer_t* p) {
  return (p->target->features & PESTLE_C_PRINTER_FOLDS_ZEROS) &&
         p->d->group_count[0];
}

static const char* name_zero(c_printer_t* p, pestle_c_printer_class_t c) {
  p->zeros |= 1u << c | 1u << PESTLE_C_PRINTER_U32;
  pestle_c_printer_type(p, c);
  return names[c];
}

const char* pestle_c_printer_zero(c_printer_t* p, pestle_c_printer_class_t c) {
  if (pestle_c_printer_hides_zeros(p)) return name_zero(p, c);
  if (c == PESTLE_C_PRINTER_F32) return "0.0f";
  if (c == PESTLE_C_PRINTER_F64) return pestle_c_printer_cast(p, c, "0.0f");
  return pestle_c_printer_int(p, c, 0);
}

void pestle_c_printer_put_zeros(c_printer_t* p, pestle_plugin_text_t* out) {
  if (!p->zeros) return;
  const char* word = names[PESTLE_C_PRINTER_U32];
  pestle_plugin_text_format(out, "  %s %s = %s >> 31;\n",
                            pestle_c_printer_type(p, PESTLE_C_PRINTER_U32),
                            word, p->d->group_count[0]);
  static const pestle_c_printer_class_t floats[] = {PESTLE_C_PRINTER_F32,
                                                    PESTLE_C_PRINTER_F64};
  for (int i = 0; i < 2; ++i) {
    pestle_c_printer_class_t c = floats[i];
    if (!(p->zeros >> c & 1)) continue;
    pestle_plugin_text_format(out, "  %s %s = %s;\n",
                              pestle_c_printer_type(p, c), names[c],
                              pestle_c_printer_cast(p, c, word));
  }
}

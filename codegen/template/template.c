// SPDX-License-Identifier: Apache-2.0
#include "codegen/template/template.h"

#include <string.h>

static const pestle_template_t rows[] = {
#define PESTLE_TEMPLATE(name, form, offer, apply, pack, work) \
  {#name,                                                     \
   form,                                                      \
   PESTLE_OFFER_##offer,                                      \
   pestle_##name##_match,                                     \
   apply,                                                     \
   pestle_##name##_sketch,                                    \
   pestle_##name##_emit,                                      \
   pack,                                                      \
   work},
#include "codegen/template/template.def"
};

const pestle_template_t* pestle_template_at(uint32_t i) {
  return i < sizeof(rows) / sizeof(rows[0]) ? &rows[i] : NULL;
}

const pestle_template_t* pestle_template_find(const char* name) {
  for (uint32_t i = 0; pestle_template_at(i); ++i) {
    if (!strcmp(rows[i].name, name)) return &rows[i];
  }
  return NULL;
}

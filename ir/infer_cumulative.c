// SPDX-License-Identifier: Apache-2.0
// Type rule of running reductions, and what they combine by.
#include "ir/cumulative.h"

#include <string.h>

#include "ir/infer.h"

static const struct {
  const char* name;
  pestle_op_t op;
} combiners[] = {
    {"ADD", PESTLE_OP_ADD},         {"MULTIPLY", PESTLE_OP_MULTIPLY},
    {"MAXIMUM", PESTLE_OP_MAXIMUM}, {"MINIMUM", PESTLE_OP_MINIMUM},
    {"AND", PESTLE_OP_AND},         {"OR", PESTLE_OP_OR},
    {"XOR", PESTLE_OP_XOR},         {"LOGSUMEXP", PESTLE_OP_LOGSUMEXP},
};
enum { COMBINERS = sizeof(combiners) / sizeof(combiners[0]) };

pestle_op_t pestle_cumulative_op(const char* name) {
  for (size_t i = 0; name && i < COMBINERS; ++i) {
    if (!strcmp(combiners[i].name, name)) return combiners[i].op;
  }
  return PESTLE_OP_COUNT;
}

const char* pestle_cumulative_name(pestle_op_t op) {
  for (size_t i = 0; i < COMBINERS; ++i) {
    if (combiners[i].op == op) return combiners[i].name;
  }
  return NULL;
}

pestle_status_t pestle_infer_cumulative(pestle_infer_t* in) {
  const char* name = pestle_in_attr(in, PESTLE_ATTR_combiner)->as.str;
  pestle_op_t op = pestle_cumulative_op(name);
  if (op == PESTLE_OP_COUNT) {
    return PESTLE_BAD("'combiner' is '%s': it must be " PESTLE_CUMULATIVE_NAMES,
                      name);
  }
  unsigned kinds = op == PESTLE_OP_LOGSUMEXP ? (unsigned)PESTLE_KIND_FLOAT
                                             : pestle_op_info(op)->kinds;
  PESTLE_TRY(pestle_need_kind(in, 0, kinds));
  PESTLE_TRY(pestle_need_between(in, PESTLE_ATTR_dimension, 0,
                                 pestle_in_type(in, 0)->rank));
  return pestle_emit(in, pestle_in_type(in, 0));
}

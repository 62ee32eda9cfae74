// SPDX-License-Identifier: Apache-2.0
// Ops of CHLO, which stand beside those of vhlo in an artifact, on builtin's types.
#include <string.h>

#include "base/mem.h"
#include "frontend/stablehlo/build.h"

void pestle_bytecode_chlo_name(const pestle_bytecode_form_t* form,
                               pestle_str_t op, pestle_bytecode_name_t* name) {
  if (form && (!strcmp(form->name, "chlo.top_k") ||
               !strcmp(form->name, "chlo.ragged_dot"))) {
    name->role = PESTLE_BYTECODE_CHLO;
    return;
  }
  for (size_t i = 0; pestle_generic_chlo_name(i); ++i) {
    const char* known = pestle_generic_chlo_name(i);
    if (!pestle_str_equal_c(op, known + sizeof("chlo.") - 1)) continue;
    name->role = PESTLE_BYTECODE_ROW;
    name->op = pestle_generic_chlo_base(i);
    name->chlo = known;
  }
}

static pestle_status_t build_top_k(const pestle_generic_site_t* site,
                                   const pestle_generic_value_t* dict,
                                   pestle_node_t** out) {
  const pestle_generic_value_t* k = pestle_generic_find(dict, "k");
  if (k && k->kind == PESTLE_GENERIC_INT) {
    return pestle_generic_top_k(site, k->i64, out);
  }
  return PESTLE_ERROR(MALFORMED, "expected attribute 'k', an integer");
}

pestle_status_t pestle_bytecode_build_chlo(pestle_bytecode_builder_t* b,
                                           const pestle_bytecode_op_t* op,
                                           pestle_bytecode_place_t* place,
                                           pestle_node_t** out_node) {
  const pestle_bytecode_form_t* form = b->names[op->name].form;
  pestle_generic_value_t dict;
  pestle_value_t** operands;
  pestle_type_t* types;
  pestle_generic_site_t site = {.arena = &b->scratch,
                                .builder = place->builder,
                                .name = pestle_str(form->name)};
  PESTLE_TRY(pestle_bytecode_op_attributes(
      &b->decoder, &b->scratch, form, op->properties, op->attributes, &dict));
  PESTLE_TRY(pestle_bytecode_operands(b, op, &operands, &site.operand_count));
  PESTLE_TRY(pestle_bytecode_result_types(b, op, &types, &site.type_count));
  PESTLE_TRY(
      pestle_bytecode_location(&b->decoder, op->location, &site.builder.loc));
  site.operands = operands;
  site.types = types;
  if (!strcmp(form->name, "chlo.top_k")) {
    return build_top_k(&site, &dict, out_node);
  }
  return pestle_generic_ragged_dot(&site, &dict, out_node);
}

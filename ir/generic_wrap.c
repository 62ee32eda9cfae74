// SPDX-License-Identifier: Apache-2.0
// Ops without a row that are kept by name: a CUSTOM whose body says what it means.
#include "base/mem.h"
#include "ir/generic.h"

pestle_status_t pestle_generic_wrap_begin(const pestle_generic_site_t* site,
                                          pestle_generic_wrap_t* out_wrap) {
  size_t count = site->operand_count;
  pestle_type_t* types =
      PESTLE_ARENA_ARRAY(site->arena, pestle_type_t, count + 1);
  if (!types) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i)
    types[i] = *site->operands[i]->type;
  *out_wrap =
      (pestle_generic_wrap_t){.inside = {.module = site->builder.module}};
  PESTLE_TRY(pestle_region_create(site->builder.module, types, count,
                                  &out_wrap->region, &out_wrap->inside.block));
  out_wrap->arguments = out_wrap->inside.block->arguments;
  return NULL;
}

pestle_status_t pestle_generic_wrap_end(const pestle_generic_site_t* site,
                                        pestle_generic_wrap_t* wrap,
                                        pestle_str_t attributes,
                                        pestle_value_t* const* results,
                                        size_t count,
                                        pestle_node_t** out_node) {
  char* name = pestle_arena_strndup(site->arena, site->name);
  char* text = pestle_arena_strndup(site->arena, attributes);
  pestle_type_t* types =
      PESTLE_ARENA_ARRAY(site->arena, pestle_type_t, count + 1);
  if (!name || !text || !types) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i)
    types[i] = *results[i]->type;
  PESTLE_TRY(pestle_op_return(&wrap->inside, results, count, NULL));
  pestle_attr_t attrs[] = {
      {PESTLE_ATTR_name, PESTLE_ATTR_KIND_STR, .as.str = name},
      {PESTLE_ATTR_version, PESTLE_ATTR_KIND_I64, .as.i64 = 1},
      {PESTLE_ATTR_attributes, PESTLE_ATTR_KIND_STR, .as.str = text}};
  pestle_node_spec_t spec = {.op = PESTLE_OP_CUSTOM,
                             .operands = site->operands,
                             .operand_count = site->operand_count,
                             .attrs = attrs,
                             .attr_count = 3,
                             .regions = &wrap->region,
                             .region_count = 1,
                             .types = types,
                             .type_count = count};
  pestle_builder_t b = site->builder;
  return pestle_node_create(&b, &spec, out_node);
}

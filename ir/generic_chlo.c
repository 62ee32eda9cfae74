// SPDX-License-Identifier: Apache-2.0
// Ops of CHLO that jax emits and that no row stands for: each is read as a CUSTOM
// of its name, whose body is its formula.
#include "ir/chlo.h"
#include "ir/generic.h"

const char* pestle_generic_chlo_name(size_t index) {
  size_t count;
  const pestle_chlo_row_t* rows = pestle_chlo_table(&count);
  return index < count ? rows[index].name : NULL;
}

pestle_op_t pestle_generic_chlo_base(size_t index) {
  size_t count;
  return pestle_chlo_table(&count)[index].base;
}

pestle_status_t pestle_generic_chlo(const pestle_generic_site_t* site,
                                    pestle_node_t** node) {
  const pestle_chlo_row_t* row = pestle_chlo_find(site->name);
  if (!row) return NULL;
  const pestle_type_t* type = pestle_node_operand(*node, 0)->type;
  if (!pestle_type_is_static(type)) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "'%s' of a tensor with unknown extents is not "
                        "supported",
                        row->name);
  }
  pestle_generic_site_t own = *site;
  own.builder = pestle_builder_before(*node);
  pestle_generic_wrap_t wrap;
  PESTLE_TRY(pestle_generic_wrap_begin(&own, &wrap));
  pestle_builder_t b = wrap.inside;
  b.loc = (*node)->loc;  // for what the formula may object to
  pestle_node_t* made;
  pestle_value_t* y;
  PESTLE_TRY(
      pestle_chlo_build(&b, row, wrap.arguments, site->operand_count, &y));
  PESTLE_TRY(
      pestle_generic_wrap_end(&own, &wrap, PESTLE_STR(""), &y, 1, &made));
  pestle_node_erase(*node);
  *node = made;
  return NULL;
}

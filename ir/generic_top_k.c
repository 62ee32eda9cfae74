// SPDX-License-Identifier: Apache-2.0
// chlo.top_k: of each row along the last axis the k largest, in order, and where
// they were, i32. The body of its CUSTOM is chlo_top_k.c's formula.
//
//   %v, %i = chlo.top_k(%x, k = 2) : tensor<3x4xf32> -> (tensor<3x2xf32>, ...)
#include "base/mem.h"
#include "ir/chlo.h"
#include "ir/generic.h"
#include "ir/infer.h"
#include "ir/internal.h"

static pestle_status_t check(const pestle_generic_site_t* site, int64_t k) {
  if (site->operand_count != 1 || site->type_count != 2) {
    return PESTLE_ERROR(MALFORMED,
                        "'chlo.top_k' has one operand and two results");
  }
  const pestle_type_t* x = site->operands[0]->type;
  pestle_type_t types[2];
  if (pestle_chlo_top_k_types(x, k, types) &&
      pestle_type_equal(&site->types[0], &types[0]) &&
      pestle_type_equal(&site->types[1], &types[1])) {
    return NULL;
  }
  return PESTLE_ERROR(MALFORMED,
                      "'chlo.top_k' of %s with k = %lld and these types "
                      "makes no sense",
                      pestle_type_text(x).text, (long long)k);
}

pestle_status_t pestle_generic_top_k(const pestle_generic_site_t* site,
                                     int64_t k, pestle_node_t** out_node) {
  pestle_value_t* results[2];
  pestle_generic_wrap_t wrap;
  PESTLE_TRY(check(site, k));
  PESTLE_TRY(pestle_generic_wrap_begin(site, &wrap));
  pestle_formula_t f = pestle_formula_make(wrap.inside);
  pestle_chlo_top_k(&f, wrap.arguments[0], k, results);
  PESTLE_TRY(f.status);
  pestle_strbuf_t text;
  pestle_strbuf_init(site->arena->allocator, &text);
  pestle_strbuf_appendf(&text, "{k = %lld : i64}", (long long)k);
  pestle_status_t status = pestle_strbuf_status(&text);
  if (!status) {
    status = pestle_generic_wrap_end(site, &wrap, pestle_strbuf_view(&text),
                                     results, 2, out_node);
  }
  pestle_strbuf_deinit(&text);
  return status;
}

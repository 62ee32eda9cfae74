// SPDX-License-Identifier: Apache-2.0
// chlo.top_k as a formula: a stable sort with the places beside, and its beginning.
#include "ir/chlo.h"
#include "ir/infer.h"

bool pestle_chlo_top_k_types(const pestle_type_t* x, int64_t k,
                             pestle_type_t out_types[2]) {
  int64_t last = x->rank ? x->dims[x->rank - 1] : 0;
  if (!pestle_type_is_static(x) || !x->rank || k < 0 || k > last ||
      last > INT32_MAX || pestle_type_is_complex(x)) {
    return false;
  }
  out_types[0] = out_types[1] = *x;
  out_types[0].dims[x->rank - 1] = out_types[1].dims[x->rank - 1] = k;
  out_types[1].dtype = PESTLE_I32;
  return true;
}

// What |x| is compared by: itself, or its key in the total order.
static pv_t* key_of(pestle_formula_t* f, pv_t* x) {
  if (pestle_dtype_is(x->type->dtype, PESTLE_KIND_FLOAT) && !f->status) {
    f->status = pestle_total_order_key(&f->builder, x, &x);
  }
  return f->status ? NULL : x;
}

// (x, y, at, at) -> x > y
static pestle_status_t comparator(const pestle_builder_t* around,
                                  pestle_dtype_t dtype,
                                  pestle_region_t** out_region) {
  pestle_type_t x = pestle_type_make(dtype, 0, NULL);
  pestle_type_t at = pestle_type_make(PESTLE_I32, 0, NULL);
  pestle_builder_t b = {.module = around->module, .loc = around->loc};
  PESTLE_TRY(pestle_region_create(b.module, (pestle_type_t[]){x, x, at, at}, 4,
                                  out_region, &b.block));
  pestle_formula_t f = pestle_formula_make(b);
  pv_t* one = key_of(&f, pestle_block_argument(b.block, 0));
  pv_t* other = key_of(&f, pestle_block_argument(b.block, 1));
  pv_t* first = pestle_f_gt(&f, one, other);
  return f.status ? f.status : pestle_op_return(&f.builder, &first, 1, NULL);
}

void pestle_chlo_top_k(pestle_formula_t* f, pv_t* x, int64_t k, pv_t* out[2]) {
  pestle_type_t places = *x->type;
  int32_t last = places.rank - 1;
  places.dtype = PESTLE_I32;
  pv_t* operands[2] = {x, pestle_f_iota(f, &places, last)};
  pestle_region_t* region = NULL;
  if (!f->status) f->status = comparator(&f->builder, x->type->dtype, &region);
  pestle_attr_t attrs[] = {PESTLE_SET_I64(dimension, last),
                           PESTLE_SET_BOOL(is_stable, true)};
  pestle_node_t* sort =
      pestle_f_node(f, &(pestle_node_spec_t){.op = PESTLE_OP_SORT,
                                             .operands = operands,
                                             .operand_count = 2,
                                             .attrs = attrs,
                                             .attr_count = 2,
                                             .regions = &region,
                                             .region_count = 1});
  for (uint32_t i = 0; i < 2; ++i) {
    out[i] =
        sort ? pestle_f_slice_axis(f, pestle_node_result(sort, i), last, 0, k)
             : NULL;
  }
}

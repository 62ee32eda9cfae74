// SPDX-License-Identifier: Apache-2.0
// chlo.top_k: of each row along the last axis the k largest, in order, and where
// they were, i32. The body of its CUSTOM is a stable sort with the places beside, and
// its beginning. NaN is the largest number; of equals the first comes first.
//
//   %v, %i = chlo.top_k(%x, k = 2) : tensor<3x4xf32> -> (tensor<3x2xf32>, ...)
#include "base/mem.h"
#include "ir/generic.h"
#include "ir/infer.h"
#include "ir/internal.h"

static pestle_status_t check(const pestle_generic_site_t* site, int64_t k) {
  if (site->operand_count != 1 || site->type_count != 2) {
    return PESTLE_ERROR(MALFORMED,
                        "'chlo.top_k' has one operand and two results");
  }
  const pestle_type_t* x = site->operands[0]->type;
  int64_t last = x->rank ? x->dims[x->rank - 1] : 0;
  pestle_type_t values = *x, places = *x;
  if (x->rank) values.dims[x->rank - 1] = places.dims[x->rank - 1] = k;
  places.dtype = PESTLE_I32;
  bool fits = pestle_type_equal(&site->types[0], &values) &&
              pestle_type_equal(&site->types[1], &places);
  if (pestle_type_is_static(x) && x->rank && k >= 0 && k <= last && fits &&
      last <= INT32_MAX && !pestle_type_is_complex(x)) {
    return NULL;
  }
  return PESTLE_ERROR(MALFORMED,
                      "'chlo.top_k' of %s with k = %lld and these types "
                      "makes no sense",
                      pestle_type_text(x).text, (long long)k);
}

// --- The formula ---

typedef struct top_t {
  pestle_builder_t* b;
  pestle_status_t status;
} top_t;

// What |x| is compared by: itself, or its key in the total order.
static pestle_value_t* key_of(top_t* t, pestle_builder_t* b,
                              pestle_value_t* x) {
  if (!t->status && pestle_dtype_is(x->type->dtype, PESTLE_KIND_FLOAT)) {
    t->status = pestle_total_order_key(b, x, &x);
  }
  return t->status ? NULL : x;
}

// (x, y, at, at) -> x > y
static pestle_region_t* comparator(top_t* t, pestle_dtype_t dtype) {
  pestle_type_t x = pestle_type_make(dtype, 0, NULL);
  pestle_type_t at = pestle_type_make(PESTLE_I32, 0, NULL);
  pestle_builder_t b = {.module = t->b->module, .loc = t->b->loc};
  pestle_region_t* region;
  t->status = pestle_region_create(b.module, (pestle_type_t[]){x, x, at, at}, 4,
                                   &region, &b.block);
  if (t->status) return NULL;
  pestle_value_t* one = key_of(t, &b, pestle_block_argument(b.block, 0));
  pestle_value_t* other = key_of(t, &b, pestle_block_argument(b.block, 1));
  pestle_value_t* first = NULL;
  if (!t->status) t->status = pestle_op_gt(&b, one, other, &first);
  if (!t->status) t->status = pestle_op_return(&b, &first, 1, NULL);
  return t->status ? NULL : region;
}

static pestle_value_t* beginning(top_t* t, pestle_value_t* x, int64_t k) {
  int64_t start[PESTLE_MAX_RANK] = {0}, limit[PESTLE_MAX_RANK];
  int64_t stride[PESTLE_MAX_RANK];
  pestle_value_t* y = NULL;
  size_t rank = (size_t)x->type->rank;
  for (size_t i = 0; i < rank; ++i) {
    limit[i] = i + 1 == rank ? k : x->type->dims[i];
    stride[i] = 1;
  }
  pestle_slice_attrs_t attrs = {
      sizeof(attrs), {start, rank}, {limit, rank}, {stride, rank}};
  if (!t->status) t->status = pestle_op_slice(t->b, x, &attrs, &y);
  return y;
}

// Sorts |x| with the places beside and takes the beginnings.
static pestle_status_t build(pestle_builder_t* b, pestle_value_t* x, int64_t k,
                             pestle_value_t* out[2]) {
  top_t t = {.b = b};
  pestle_value_t* operands[2] = {x, NULL};
  pestle_type_t places = *x->type;
  places.dtype = PESTLE_I32;
  pestle_iota_attrs_t iota = {sizeof(iota), places.rank - 1};
  PESTLE_TRY(pestle_op_iota(b, &iota, places, &operands[1]));
  pestle_region_t* region = comparator(&t, x->type->dtype);
  PESTLE_TRY(t.status);
  pestle_sort_attrs_t sort = {sizeof(sort), places.rank - 1, true};
  pestle_value_t* sorted[2];
  PESTLE_TRY(pestle_op_sort(b, operands, 2, &sort, region, sorted, 2));
  out[0] = beginning(&t, sorted[0], k);
  out[1] = beginning(&t, sorted[1], k);
  return t.status;
}

pestle_status_t pestle_generic_top_k(const pestle_generic_site_t* site,
                                     int64_t k, pestle_node_t** out_node) {
  pestle_value_t* results[2];
  pestle_generic_wrap_t wrap;
  PESTLE_TRY(check(site, k));
  PESTLE_TRY(pestle_generic_wrap_begin(site, &wrap));
  PESTLE_TRY(build(&wrap.inside, wrap.arguments[0], k, results));
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

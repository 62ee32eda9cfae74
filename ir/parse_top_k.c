// SPDX-License-Identifier: Apache-2.0
// chlo.top_k: of each row along the last axis the k largest, in order, and where
// they were, i32. The body of its CUSTOM is a stable sort with the places beside, and
// its beginning. NaN is the largest number; of equals the first comes first.
//
//   %v, %i = chlo.top_k(%x, k = 2) : tensor<3x4xf32> -> (tensor<3x2xf32>, ...)
#include <string.h>

#include "ir/infer.h"
#include "ir/internal.h"
#include "ir/parse_internal.h"

// "(%x, k = 2) : A -> (B, C)"
static pestle_status_t read_pretty(pestle_parser_t* p, pestle_parse_op_t* o,
                                   int64_t* out_k) {
  pestle_type_t type;
  PESTLE_TRY(pestle_parse_expect(p, '('));
  PESTLE_TRY(pestle_parse_push_operand(p, o));
  PESTLE_TRY(pestle_parse_expect(p, ','));
  PESTLE_TRY(pestle_parse_expect_word(p, "k"));
  PESTLE_TRY(pestle_parse_expect(p, '='));
  PESTLE_TRY(pestle_parse_integer(p, out_k));
  PESTLE_TRY(pestle_parse_expect(p, ')'));
  PESTLE_TRY(pestle_parse_expect(p, ':'));
  PESTLE_TRY(pestle_parse_type(p, &type));
  PESTLE_TRY(pestle_parse_push_type(p, &o->operand_types, &type));
  PESTLE_TRY(pestle_parse_expect_arrow(p));
  PESTLE_TRY(pestle_parse_expect(p, '('));
  PESTLE_TRY(pestle_parse_type_list(p, &o->result_types));
  return pestle_parse_expect(p, ')');
}

// "(%x) <{k = 2 : i64}> : (A) -> (B, C)"
static pestle_status_t read_generic(pestle_parser_t* p, pestle_parse_op_t* o,
                                    int64_t* out_k) {
  pestle_generic_value_t dict;
  PESTLE_TRY(pestle_parse_expect(p, '('));
  PESTLE_TRY(pestle_parse_push_operand(p, o));
  PESTLE_TRY(pestle_parse_expect(p, ')'));
  bool properties = pestle_parse_take(p, '<');
  if (!pestle_parse_at(p, '{')) return pestle_parse_expected(p, "'{'");
  PESTLE_TRY(pestle_parse_dict(p, '}', &dict));
  if (properties) PESTLE_TRY(pestle_parse_expect(p, '>'));
  const pestle_generic_value_t* k = pestle_generic_find(&dict, "k");
  if (!k || k->kind != PESTLE_GENERIC_INT)
    return pestle_parse_expected(p, "attribute 'k' before");
  *out_k = k->i64;
  PESTLE_TRY(pestle_parse_expect(p, ':'));
  return pestle_parse_function_type(p, &o->operand_types, &o->result_types);
}

static pestle_status_t check(pestle_parser_t* p, const pestle_parse_op_t* o,
                             int64_t k) {
  const pestle_type_t* x = o->operands[0]->type;
  int64_t last = x->rank ? x->dims[x->rank - 1] : 0;
  pestle_type_t values = *x, places = *x;
  if (x->rank) values.dims[x->rank - 1] = places.dims[x->rank - 1] = k;
  places.dtype = PESTLE_I32;
  bool fits = o->operand_types.count == 1 && o->result_types.count == 2 &&
              pestle_type_equal(&o->operand_types.data[0], x) &&
              pestle_type_equal(&o->result_types.data[0], &values) &&
              pestle_type_equal(&o->result_types.data[1], &places);
  if (pestle_type_is_static(x) && x->rank && k >= 0 && k <= last && fits &&
      last <= INT32_MAX && !pestle_type_is_complex(x)) {
    return NULL;
  }
  return pestle_parse_error(p, &o->at, PESTLE_STATUS_MALFORMED,
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

pestle_status_t pestle_parse_top_k(pestle_parser_t* p, pestle_parse_op_t* o,
                                   bool generic, pestle_node_t** out) {
  int64_t k;
  pestle_value_t* results[2];
  pestle_parse_wrap_t wrap;
  PESTLE_TRY(generic ? read_generic(p, o, &k) : read_pretty(p, o, &k));
  PESTLE_TRY(check(p, o, k));
  PESTLE_TRY(pestle_parse_wrap_begin(p, o, &wrap));
  PESTLE_TRY(build(&wrap.inside, wrap.arguments[0], k, results));
  pestle_strbuf_t text;
  pestle_strbuf_init(p->allocator, &text);
  pestle_strbuf_appendf(&text, "{k = %lld : i64}", (long long)k);
  pestle_status_t status = pestle_strbuf_status(&text);
  if (!status) {
    status = pestle_parse_wrap_end(p, o, &wrap, pestle_strbuf_view(&text),
                                   results, 2, out);
  }
  pestle_strbuf_deinit(&text);
  return status;
}

// SPDX-License-Identifier: Apache-2.0
// Random graphs of every fusing class: chains, views (those that run backwards,
// repeat or leave gaps too), reductions, contractions, conversions, branches. Shared by the tests of passes and of the whole compiler.
#ifndef PESTLE_TESTS_UNIT_PASSES_RANDOM_GRAPH_H_
#define PESTLE_TESTS_UNIT_PASSES_RANDOM_GRAPH_H_

#include "passes_test.h"

typedef struct random_t {
  pestle_builder_t b;
  uint64_t seed;
  pestle_value_t* values[512];
  size_t count;
  pestle_value_t* bytes;  // of i8; all others are of f32
} random_t;

static uint32_t pick(random_t* r, uint32_t count) {
  return test_pick(&r->seed, count);
}

static void keep(random_t* r, pestle_value_t* value) {
  if (pestle_type_count(value->type) <= 600 && r->count < 500) {
    r->values[r->count++] = value;
  }
}

static pestle_value_t* any(random_t* r) {
  // Later values oftener: chains grow long.
  uint32_t back = pick(r, 3) ? pick(r, 6) : pick(r, (uint32_t)r->count);
  return r->values[back < r->count ? r->count - 1 - back : 0];
}

// Another value of |type|'s shape: one that is there, or a broadcast, or a
// constant.
static pestle_value_t* partner(random_t* r, const pestle_type_t* type) {
  for (int tries = 0; tries < 6; ++tries) {
    pestle_value_t* v = any(r);
    if (pestle_type_equal(v->type, type)) return v;
  }
  pestle_value_t* out;
  if (type->rank && pick(r, 2)) {
    int64_t dim = pick(r, (uint32_t)type->rank);
    pestle_type_t row = pestle_type_make(PESTLE_F32, 1, &type->dims[dim]);
    float data[32];
    for (int i = 0; i < 32; ++i)
      data[i] = (float)pick(r, 100) / 50.0f - 1.0f;
    if (row.dims[0] <= 32) {
      pestle_elements_t e = {row, data, (size_t)row.dims[0] * 4, false};
      pestle_value_t* constant;
      pestle_constant_attrs_t c = {sizeof(c), e};
      assert_ok(pestle_op_constant(&r->b, &c, &constant));
      pestle_broadcast_in_dim_attrs_t a = {
          sizeof(a), .broadcast_dimensions = PESTLE_I64S(dim)};
      assert_ok(pestle_op_broadcast_in_dim(&r->b, constant, &a, *type, &out));
      return out;
    }
  }
  static const float splats[] = {0, 1, 2, 0.5f, -1, 3};
  float splat = splats[pick(r, 6)];
  pestle_constant_attrs_t c = {sizeof(c), {*type, &splat, 4, true}};
  assert_ok(pestle_op_constant(&r->b, &c, &out));
  return out;
}

static void add_unary(random_t* r) {
  pestle_value_t *x = any(r), *out = NULL;
  switch (pick(r, 6)) {
    case 0:
      assert_ok(pestle_op_tanh(&r->b, x, &out));
      break;
    case 1:
      assert_ok(pestle_op_negate(&r->b, x, &out));
      break;
    case 2:
      assert_ok(pestle_op_logistic(&r->b, x, &out));
      break;
    case 3:
      assert_ok(pestle_op_abs(&r->b, x, &out));
      break;
    case 4:
      assert_ok(pestle_op_silu(&r->b, x, NULL, &out));
      break;
    case 5:
      assert_ok(pestle_op_gelu(&r->b, x, NULL, &out));
      break;
  }
  keep(r, out);
}

static void add_binary(random_t* r) {
  pestle_value_t *x = any(r), *y = partner(r, x->type), *out = NULL;
  switch (pick(r, 5)) {
    case 0:
      assert_ok(pestle_op_add(&r->b, x, y, &out));
      break;
    case 1:
      assert_ok(pestle_op_multiply(&r->b, x, y, &out));
      break;
    case 2:
      assert_ok(pestle_op_subtract(&r->b, x, y, &out));
      break;
    case 3:
      assert_ok(pestle_op_maximum(&r->b, x, y, &out));
      break;
    case 4:
      assert_ok(pestle_op_minimum(&r->b, x, y, &out));
      break;
  }
  keep(r, out);
}

static void add_select(random_t* r) {
  pestle_value_t *x = any(r), *y = partner(r, x->type), *p, *out;
  assert_ok(pestle_op_lt(&r->b, x, y, &p));
  assert_ok(pestle_op_select(&r->b, p, y, x, &out));
  keep(r, out);
}

static void add_transpose(random_t* r) {
  pestle_value_t *x = any(r), *out;
  int64_t perm[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < x->type->rank; ++i) {
    perm[i] = i;
    int32_t j = (int32_t)pick(r, (uint32_t)i + 1);
    perm[i] = perm[j];
    perm[j] = i;
  }
  pestle_transpose_attrs_t a = {sizeof(a), {perm, (size_t)x->type->rank}};
  assert_ok(pestle_op_transpose(&r->b, x, &a, &out));
  keep(r, out);
}

static void add_reshape(random_t* r) {
  pestle_value_t *x = any(r), *out;
  pestle_type_t to = pestle_type_make(PESTLE_F32, 0, NULL);
  int64_t left = pestle_type_count(x->type);
  static const int64_t factors[] = {2, 3, 4, 5};
  while (to.rank < 3 && left > 1) {
    int64_t f = factors[pick(r, 4)];
    if (left % f) {
      to.dims[to.rank++] = left;
      left = 1;
    } else {
      to.dims[to.rank++] = f;
      left /= f;
    }
  }
  if (left > 1 || pick(r, 3) == 0) to.dims[to.rank++] = left;
  assert_ok(pestle_op_reshape(&r->b, x, NULL, to, &out));
  keep(r, out);
}

static void add_broadcast(random_t* r) {
  pestle_value_t *x = any(r), *out;
  if (x->type->rank > 3) return;
  int32_t at = (int32_t)pick(r, (uint32_t)x->type->rank + 1);
  pestle_type_t to = pestle_type_make(PESTLE_F32, 0, NULL);
  int64_t dims[PESTLE_MAX_RANK];
  for (int32_t i = 0; i <= x->type->rank; ++i) {
    if (i == at) to.dims[to.rank++] = 1 + pick(r, 3);
    if (i == x->type->rank) break;
    dims[i] = to.rank;
    to.dims[to.rank++] = x->type->dims[i];
  }
  pestle_broadcast_in_dim_attrs_t a = {sizeof(a),
                                       {dims, (size_t)x->type->rank}};
  assert_ok(pestle_op_broadcast_in_dim(&r->b, x, &a, to, &out));
  keep(r, out);
}

static void add_reverse(random_t* r) {
  pestle_value_t *x = any(r), *out;
  int64_t dims[PESTLE_MAX_RANK];
  size_t count = 0;
  for (int32_t i = 0; i < x->type->rank; ++i) {
    if (pick(r, 2)) dims[count++] = i;
  }
  pestle_reverse_attrs_t a = {sizeof(a), {dims, count}};
  assert_ok(pestle_op_reverse(&r->b, x, &a, &out));
  keep(r, out);
}

// A dim |n| times: as ONNX's Tile and Resize become. Before the dim the whole
// of it is repeated, behind it each element.
static void add_tile(random_t* r) {
  pestle_value_t *x = any(r), *wide, *out;
  int32_t rank = x->type->rank;
  if (!rank || rank > 3) return;
  int32_t dim = (int32_t)pick(r, (uint32_t)rank);
  bool behind = pick(r, 2);
  int64_t n = 2 + pick(r, 2), dims[PESTLE_MAX_RANK];
  pestle_type_t to = pestle_type_make(PESTLE_F32, 0, NULL);
  pestle_type_t merged = *x->type;
  merged.dims[dim] *= n;
  for (int32_t i = 0; i < rank; ++i) {
    if (i == dim && !behind) to.dims[to.rank++] = n;
    dims[i] = to.rank;
    to.dims[to.rank++] = x->type->dims[i];
    if (i == dim && behind) to.dims[to.rank++] = n;
  }
  if (pestle_type_count(&to) > 600) return;
  pestle_broadcast_in_dim_attrs_t a = {sizeof(a), {dims, (size_t)rank}};
  assert_ok(pestle_op_broadcast_in_dim(&r->b, x, &a, to, &wide));
  assert_ok(pestle_op_reshape(&r->b, wide, NULL, merged, &out));
  keep(r, out);
}

// One element as a scalar.
static void add_scalar(random_t* r) {
  pestle_value_t *x = any(r), *one, *out;
  int64_t start[PESTLE_MAX_RANK], limit[PESTLE_MAX_RANK];
  int64_t stride[PESTLE_MAX_RANK];
  size_t n = (size_t)x->type->rank;
  for (size_t i = 0; i < n; ++i) {
    start[i] = pick(r, (uint32_t)x->type->dims[i]);
    limit[i] = start[i] + 1;
    stride[i] = 1;
  }
  pestle_slice_attrs_t a = {sizeof(a), {start, n}, {limit, n}, {stride, n}};
  assert_ok(pestle_op_slice(&r->b, x, &a, &one));
  assert_ok(pestle_op_reshape(&r->b, one, NULL,
                              pestle_type_make(PESTLE_F32, 0, NULL), &out));
  keep(r, out);
}

static pestle_value_t* convert(random_t* r, pestle_value_t* x,
                               pestle_dtype_t dtype) {
  pestle_value_t* out;
  pestle_type_t to = *x->type;
  to.dtype = dtype;
  assert_ok(pestle_op_convert(&r->b, x, NULL, to, &out));
  return out;
}

// Only to types that hold what is converted: a rounding to fewer bits would
// make a step of each difference of one ulp.
static void add_convert(random_t* r) {
  pestle_value_t *x = any(r), *wide, *out, *small;
  if (pick(r, 2)) {
    assert_ok(pestle_op_abs(&r->b, convert(r, x, PESTLE_F64), &wide));
    keep(r, convert(r, wide, PESTLE_F32));
    return;
  }
  static const pestle_dtype_t through[] = {PESTLE_I16, PESTLE_I32, PESTLE_I64,
                                           PESTLE_F16};
  wide = convert(r, r->bytes, through[pick(r, 4)]);
  if (pick(r, 2)) assert_ok(pestle_op_negate(&r->b, wide, &wide));
  wide = convert(r, wide, PESTLE_F32);
  float scale = 1.0f / 64;
  pestle_constant_attrs_t c = {sizeof(c), {*wide->type, &scale, 4, true}};
  assert_ok(pestle_op_constant(&r->b, &c, &small));
  assert_ok(pestle_op_multiply(&r->b, wide, small, &out));
  keep(r, out);
}

static void add_slice(random_t* r) {
  pestle_value_t *x = any(r), *out;
  int64_t start[PESTLE_MAX_RANK], limit[PESTLE_MAX_RANK];
  int64_t stride[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < x->type->rank; ++i) {
    int64_t extent = x->type->dims[i];
    start[i] = pick(r, 3) ? 0 : pick(r, (uint32_t)extent);
    limit[i] = start[i] + 1 + pick(r, (uint32_t)(extent - start[i]));
    stride[i] = 1 + (pick(r, 4) == 0);
  }
  size_t n = (size_t)x->type->rank;
  pestle_slice_attrs_t a = {sizeof(a), {start, n}, {limit, n}, {stride, n}};
  assert_ok(pestle_op_slice(&r->b, x, &a, &out));
  keep(r, out);
}

static void add_concatenate(random_t* r) {
  pestle_value_t *x = any(r), *out;
  if (!x->type->rank) return;
  pestle_value_t* parts[3] = {x, partner(r, x->type), partner(r, x->type)};
  pestle_concatenate_attrs_t a = {sizeof(a), pick(r, (uint32_t)x->type->rank)};
  assert_ok(pestle_op_concatenate(&r->b, parts, 2 + pick(r, 2), &a, &out));
  keep(r, out);
}

static void add_pad(random_t* r) {
  pestle_value_t *x = any(r), *v, *out;
  float zero = 0;
  int64_t low[PESTLE_MAX_RANK], high[PESTLE_MAX_RANK];
  int64_t inner[PESTLE_MAX_RANK] = {0};
  for (int32_t i = 0; i < x->type->rank; ++i) {
    bool cuts = x->type->dims[i] > 1 && pick(r, 6) == 0;
    low[i] = cuts ? -1 : (int64_t)pick(r, 2);
    high[i] = pick(r, 2);
    inner[i] = pick(r, 4) ? 0 : 1 + pick(r, 2);
  }
  size_t n = (size_t)x->type->rank;
  pestle_constant_attrs_t c = {
      sizeof(c), {pestle_type_make(PESTLE_F32, 0, NULL), &zero, 4, true}};
  assert_ok(pestle_op_constant(&r->b, &c, &v));
  pestle_pad_attrs_t a = {sizeof(a), {low, n}, {high, n}, {inner, n}};
  assert_ok(pestle_op_pad(&r->b, x, v, &a, &out));
  keep(r, out);
}

static pestle_value_t* reduce(random_t* r, pestle_value_t* x, bool maximum,
                              const int64_t* dims, size_t count) {
  pestle_type_t scalar = pestle_type_make(PESTLE_F32, 0, NULL);
  pestle_type_t types[2] = {scalar, scalar};
  pestle_region_t* region;
  pestle_block_t* block;
  assert_ok(pestle_region_create(r->b.module, types, 2, &region, &block));
  pestle_builder_t inside = {.module = r->b.module, .block = block};
  pestle_value_t *a = pestle_block_argument(block, 0), *reduced, *init, *out;
  pestle_value_t* b = pestle_block_argument(block, 1);
  if (maximum)
    assert_ok(pestle_op_maximum(&inside, a, b, &reduced));
  else
    assert_ok(pestle_op_add(&inside, a, b, &reduced));
  assert_ok(pestle_op_return(&inside, &reduced, 1, NULL));
  float start = maximum ? -INFINITY : 0;
  pestle_constant_attrs_t c = {sizeof(c), {scalar, &start, 4, true}};
  assert_ok(pestle_op_constant(&r->b, &c, &init));
  pestle_value_t* operands[2] = {x, init};
  pestle_reduce_attrs_t attrs = {sizeof(attrs), {dims, count}};
  assert_ok(pestle_op_reduce(&r->b, operands, 2, &attrs, region, &out, 1));
  return out;
}

static void add_reduce(random_t* r) {
  pestle_value_t* x = any(r);
  if (!x->type->rank) return;
  int64_t dims[PESTLE_MAX_RANK];
  size_t count = 0;
  for (int32_t i = 0; i < x->type->rank; ++i) {
    if (pick(r, 2)) dims[count++] = i;
  }
  if (!count) dims[count++] = x->type->rank - 1;
  pestle_value_t* row = reduce(r, x, pick(r, 2), dims, count);
  keep(r, row);
  // Often spread over the row again, as norms do.
  if (pick(r, 2)) return;
  int64_t kept[PESTLE_MAX_RANK];
  size_t at = 0;
  for (int32_t i = 0; i < x->type->rank; ++i) {
    bool reduced = false;
    for (size_t k = 0; k < count; ++k)
      reduced |= dims[k] == i;
    if (!reduced) kept[at++] = i;
  }
  pestle_value_t *wide, *out;
  pestle_broadcast_in_dim_attrs_t a = {sizeof(a), {kept, at}};
  assert_ok(pestle_op_broadcast_in_dim(&r->b, row, &a, *x->type, &wide));
  assert_ok(pestle_op_subtract(&r->b, x, wide, &out));
  keep(r, out);
}

static void add_rows(random_t* r) {
  pestle_value_t *x = any(r), *out;
  if (!x->type->rank) return;
  pestle_softmax_attrs_t a = {sizeof(a), PESTLE_I64S(x->type->rank - 1)};
  assert_ok(pestle_op_softmax(&r->b, x, &a, &out));
  keep(r, out);
}

static void add_dot(random_t* r) {
  pestle_value_t *x = any(r), *y = any(r), *out;
  if (!x->type->rank || !y->type->rank) return;
  int64_t l = pick(r, (uint32_t)x->type->rank);
  int64_t k = pick(r, (uint32_t)y->type->rank);
  if (x->type->dims[l] != y->type->dims[k]) {
    y = x;
    k = l;
  }
  if (x->type->rank + y->type->rank > 6) return;
  pestle_type_t type = pestle_type_make(PESTLE_F32, 0, NULL);
  for (int32_t i = 0; i < x->type->rank; ++i) {
    if (i != l) type.dims[type.rank++] = x->type->dims[i];
  }
  for (int32_t i = 0; i < y->type->rank; ++i) {
    if (i != k) type.dims[type.rank++] = y->type->dims[i];
  }
  if (pestle_type_count(&type) > 600) return;
  pestle_dot_general_attrs_t a = {sizeof(a),
                                  .lhs_contracting_dimensions = PESTLE_I64S(l),
                                  .rhs_contracting_dimensions = PESTLE_I64S(k)};
  assert_ok(pestle_op_dot_general(&r->b, x, y, &a, type, &out));
  keep(r, out);
}

// A 1x1 or 2x2 convolution of a value of rank 4 read as [b, f, 0, 1].
static void add_convolution(random_t* r) {
  pestle_value_t *x = NULL, *w, *out;
  for (int tries = 0; tries < 16 && !x; ++tries) {
    pestle_value_t* v = any(r);
    if (v->type->rank == 4 && v->type->dims[2] > 1 && v->type->dims[3] > 1) {
      x = v;
    }
  }
  if (!x) return;
  int64_t k = 1 + pick(r, 2);
  const int64_t* d = x->type->dims;
  pestle_type_t wt =
      pestle_type_make(PESTLE_F32, 4, (int64_t[]){3, d[1], k, k});
  if (pestle_type_count(&wt) > 400) return;
  float data[400];
  for (int i = 0; i < 400; ++i)
    data[i] = (float)pick(r, 100) / 100.0f - 0.5f;
  pestle_constant_attrs_t c = {
      sizeof(c), {wt, data, (size_t)pestle_type_count(&wt) * 4, false}};
  assert_ok(pestle_op_constant(&r->b, &c, &w));
  pestle_convolution_attrs_t a = {
      sizeof(a),
      .input_feature_dimension = 1,
      .input_spatial_dimensions = PESTLE_I64S(2, 3),
      .kernel_input_feature_dimension = 1,
      .kernel_spatial_dimensions = PESTLE_I64S(2, 3),
      .output_feature_dimension = 1,
      .output_spatial_dimensions = PESTLE_I64S(2, 3),
      .feature_group_count = 1,
      .batch_group_count = 1};
  pestle_type_t type = pestle_type_make(
      PESTLE_F32, 4, (int64_t[]){d[0], 3, d[2] - k + 1, d[3] - k + 1});
  assert_ok(pestle_op_convolution(&r->b, x, w, &a, type, &out));
  keep(r, out);
}

static void add_if(random_t* r, int depth);

static void add_ops(random_t* r, uint32_t count, int depth) {
  for (uint32_t i = 0; i < count; ++i) {
    switch (pick(r, 25)) {
      case 0:
      case 1:
      case 2:
        add_unary(r);
        break;
      case 3:
      case 4:
      case 5:
      case 6:
        add_binary(r);
        break;
      case 7:
        add_select(r);
        break;
      case 8:
        add_transpose(r);
        break;
      case 9:
        add_reshape(r);
        break;
      case 10:
        add_broadcast(r);
        break;
      case 11:
        add_slice(r);
        break;
      case 12:
        add_concatenate(r);
        break;
      case 13:
        add_pad(r);
        break;
      case 14:
      case 15:
        add_reduce(r);
        break;
      case 16:
        add_rows(r);
        break;
      case 17:
        add_dot(r);
        break;
      case 18:
        add_convolution(r);
        break;
      case 19:
        if (depth < 2) add_if(r, depth);
        break;
      case 20:
      case 21:
        add_reverse(r);
        break;
      case 22:
        add_tile(r);
        break;
      case 23:
        add_scalar(r);
        break;
      case 24:
        add_convert(r);
        break;
    }
  }
}

static pestle_region_t* random_body(random_t* r, const pestle_type_t* type,
                                    int depth) {
  pestle_region_t* region;
  random_t inside = *r;
  assert_ok(
      pestle_region_create(r->b.module, NULL, 0, &region, &inside.b.block));
  inside.b.before = NULL;
  add_ops(&inside, 6, depth + 1);
  pestle_value_t* result = partner(&inside, type);
  assert_ok(pestle_op_return(&inside.b, &result, 1, NULL));
  r->seed = inside.seed;
  return region;
}

static void add_if(random_t* r, int depth) {
  pestle_value_t *x = any(r), *sum, *zero, *p, *out;
  int64_t dims[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < x->type->rank; ++i)
    dims[i] = i;
  sum = reduce(r, x, false, dims, (size_t)x->type->rank);
  float nought = 0;
  pestle_constant_attrs_t c = {sizeof(c), {*sum->type, &nought, 4, true}};
  assert_ok(pestle_op_constant(&r->b, &c, &zero));
  assert_ok(pestle_op_lt(&r->b, sum, zero, &p));
  pestle_region_t* a = random_body(r, x->type, depth);
  pestle_region_t* b = random_body(r, x->type, depth);
  assert_ok(pestle_op_if(&r->b, p, NULL, a, b, &out, 1));
  keep(r, out);
}

static pestle_module_t* random_module(pestle_context_t* context,
                                      uint64_t seed) {
  pestle_module_t* module;
  assert_ok(pestle_module_create(context, "random", &module));
  pestle_type_t types[4] = {
      pestle_type_make(PESTLE_F32, 2, (int64_t[]){4, 6}),
      pestle_type_make(PESTLE_F32, 4, (int64_t[]){1, 4, 3, 5}),
      pestle_type_make(PESTLE_F32, 1, (int64_t[]){6}),
      pestle_type_make(PESTLE_I8, 2, (int64_t[]){4, 6})};
  pestle_function_t* f;
  assert_ok(pestle_module_add_function(module, "main", types, NULL, 4, &f));
  random_t r = {.b = pestle_builder_make(f),
                .seed = seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
  for (size_t i = 0; i < 3; ++i)
    keep(&r, pestle_function_argument(f, i));
  r.bytes = pestle_function_argument(f, 3);
  add_ops(&r, 10 + pick(&r, 40), 0);
  pestle_value_t* results[4];
  size_t count = 1 + pick(&r, 4);
  for (size_t i = 0; i < count; ++i)
    results[i] = any(&r);
  assert_ok(pestle_op_return(&r.b, results, count, NULL));
  assert_ok(pestle_module_verify(module));
  return module;
}

#endif  // PESTLE_TESTS_UNIT_PASSES_RANDOM_GRAPH_H_

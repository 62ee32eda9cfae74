// SPDX-License-Identifier: Apache-2.0
// The type rules of scalar ops, sources, views, gathers and contractions.
// Reductions, control and composites are in infer_region_test.c.
#include "ir_test.h"

// The arguments of the module are |...|; |call| builds |y|.
#define GOOD(call, ...)          \
  do {                           \
    assert_ok(call);             \
    assert_type(y, __VA_ARGS__); \
  } while (0)
#define BAD(call, text) assert_error(call, INVALID_ARGUMENT, text)

// --- Scalar ops ---

static pestle_status_t scalar(ir_test_t* t, pestle_op_t op, size_t count,
                              pestle_value_t** out) {
  pestle_node_t* node;
  *out = NULL;
  PESTLE_TRY(pestle_node_create(
      &t->b,
      &(pestle_node_spec_t){.op = op, .operands = t->a, .operand_count = count},
      &node));
  *out = pestle_node_result(node, 0);
  return NULL;
}

// Every scalar row, with every dtype: what its kinds say, and nothing else.
static void scalar_rows(void** state) {
  (void)state;
  for (int d = PESTLE_I1; d < PESTLE_DTYPE_COUNT; ++d) {
    pestle_dtype_t dtype = (pestle_dtype_t)d;
    if (!pestle_dtype_is_stored(dtype)) continue;
    pestle_type_t type = pestle_type_make(dtype, 2, (int64_t[]){2, 3});
    BEGIN(t, type, type, type);
    BEGIN(u, T(I1, 2, 3), type, type);
    for (int op = 0; op < PESTLE_SCALAR_COUNT; ++op) {
      const pestle_op_info_t* info = pestle_op_info((pestle_op_t)op);
      bool selects = info->rule == PESTLE_RULE_SELECT;
      pestle_value_t* y;
      pestle_status_t status =
          scalar(selects ? &u : &t, (pestle_op_t)op, info->operands, &y);
      bool is_complex = pestle_dtype_is(dtype, PESTLE_KIND_COMPLEX);
      if (is_complex && (info->kinds & PESTLE_KIND_FLOAT) &&
          !(info->kinds & PESTLE_KIND_COMPLEX)) {
        assert_error(status, UNSUPPORTED, "the op is not supported on complex");
        continue;
      }
      if (!(pestle_dtype_info(dtype)->kind & info->kinds)) {
        assert_error(status, INVALID_ARGUMENT, "must be of kind");
        continue;
      }
      assert_ok(status);
      bool flag =
          info->rule == PESTLE_RULE_COMPARE || info->rule == PESTLE_RULE_TEST;
      pestle_type_t expected = type;
      if (flag) expected.dtype = PESTLE_I1;
      if (op == PESTLE_OP_ABS) expected.dtype = pestle_dtype_part(dtype);
      assert_type(y, expected);
    }
    ir_test_end(&t);
    ir_test_end(&u);
  }
}

static void scalar_shapes(void** state) {
  (void)state;
  pestle_value_t* y;
  BEGIN(t, T(F32, 2, 3), T(F32, DYN, 3), T(F64, 2, 3), T(F32, 2), T0(F32),
        T(F32, DYN, DYN));
  GOOD(pestle_op_add(&t.b, t.a[0], t.a[1], &y), T(F32, 2, 3));
  GOOD(pestle_op_add(&t.b, t.a[1], t.a[0], &y), T(F32, 2, 3));
  GOOD(pestle_op_add(&t.b, t.a[1], t.a[5], &y), T(F32, DYN, 3));
  GOOD(pestle_op_lt(&t.b, t.a[1], t.a[5], &y), T(I1, DYN, 3));
  GOOD(pestle_op_is_nan(&t.b, t.a[1], &y), T(I1, DYN, 3));
  BAD(pestle_op_add(&t.b, t.a[0], t.a[2], &y),
      "operand 0 is tensor<2x3xf32>, operand 1 is tensor<2x3xf64>: element "
      "types must be equal");
  BAD(pestle_op_add(&t.b, t.a[0], t.a[3], &y), "shapes must be equal");
  BAD(pestle_op_add(&t.b, t.a[0], t.a[4], &y), "shapes must be equal");
  BAD(pestle_op_and(&t.b, t.a[0], t.a[0], &y),
      "operand 0 is tensor<2x3xf32>: its element type must be of kind i1, "
      "signed, unsigned");
  ir_test_end(&t);
}

static void select_and_clamp(void** state) {
  (void)state;
  pestle_value_t* y;
  BEGIN(t, T0(I1), T(I1, 2), T(I1, 3), T(F32, 2), T0(F32), T(F16, 2),
        T(I1, DYN), T(F32, DYN));
  pestle_value_t** a = t.a;
  GOOD(pestle_op_select(&t.b, a[0], a[3], a[3], &y), T(F32, 2));
  GOOD(pestle_op_select(&t.b, a[1], a[3], a[3], &y), T(F32, 2));
  GOOD(pestle_op_select(&t.b, a[1], a[7], a[7], &y), T(F32, 2));
  GOOD(pestle_op_select(&t.b, a[6], a[7], a[7], &y), T(F32, DYN));
  GOOD(pestle_op_select(&t.b, a[0], a[4], a[4], &y), T0(F32));
  BAD(pestle_op_select(&t.b, a[2], a[3], a[3], &y),
      "operand 0 is tensor<3xi1>: its rank must be 0 or its shape that of "
      "tensor<2xf32>");
  BAD(pestle_op_select(&t.b, a[1], a[4], a[4], &y), "its rank must be 0");
  BAD(pestle_op_select(&t.b, a[3], a[3], a[3], &y),
      "the predicate's element type must be i1");
  BAD(pestle_op_select(&t.b, a[0], a[3], a[5], &y), "element types");
  BAD(pestle_op_select(&t.b, a[0], a[3], a[4], &y), "shapes must be equal");
  GOOD(pestle_op_clamp(&t.b, a[4], a[3], a[4], &y), T(F32, 2));
  GOOD(pestle_op_clamp(&t.b, a[3], a[7], a[4], &y), T(F32, 2));
  BAD(pestle_op_clamp(&t.b, a[4], a[5], a[4], &y), "element types");
  BAD(pestle_op_clamp(&t.b, a[3], a[4], a[3], &y), "its rank must be 0");
  ir_test_end(&t);
}

// --- Sources and elementwise ---

static pestle_status_t constant(ir_test_t* t, pestle_type_t type,
                                const void* data, size_t size, bool splat,
                                pestle_value_t** out) {
  return pestle_op_constant(
      &t->b, ATTRS(constant, .value = {type, data, size, splat}), out);
}

static void constants(void** state) {
  (void)state;
  pestle_value_t* y;
  float f[4] = {0};
  BEGIN(t, T0(F32));
  GOOD(constant(&t, T(F32, 2, 2), f, 16, false, &y), T(F32, 2, 2));
  GOOD(constant(&t, T(F32, 2, 2), f, 4, true, &y), T(F32, 2, 2));
  GOOD(constant(&t, T(F32, 0), NULL, 0, false, &y), T(F32, 0));
  GOOD(constant(&t, T(I4, 2), "\xf8\x07", 2, false, &y), T(I4, 2));
  BAD(constant(&t, T(F32, 2, 2), f, 12, false, &y),
      "12 bytes of data for tensor<2x2xf32>, which takes 16");
  BAD(constant(&t, T(F32, 2, 2), NULL, 16, false, &y), "0 bytes of data");
  BAD(constant(&t, T(F32, DYN), f, 16, false, &y), "not static");
  BAD(constant(&t, T(F32, -2), f, 16, false, &y), "negative");
  BAD(constant(&t, T(F32, INT64_MAX, 2), f, 4, true, &y), "2^63");
  BAD(constant(&t, T(I1, 2), "\x01\x02", 2, false, &y),
      "element 1 of the value is 2, which is no i1");
  BAD(constant(&t, T(I4, 1), "\x08", 1, false, &y), "which is no i4");
  BAD(constant(&t, T(U4, 1), "\x10", 1, false, &y), "which is no ui4");
  BAD(constant(&t, T0(ADDR), f, 8, false, &y), "element type addr");
  ir_test_end(&t);
}

static void iotas(void** state) {
  (void)state;
  pestle_value_t* y;
  BEGIN(t, T0(F32));
  const pestle_iota_attrs_t* one = ATTRS(iota, .iota_dimension = 1);
  GOOD(pestle_op_iota(&t.b, one, T(I32, 2, 3), &y), T(I32, 2, 3));
  BAD(pestle_op_iota(&t.b, one, T(I32, 2), &y),
      "'iota_dimension' is 1: it must be at least 0 and below 1");
  BAD(pestle_op_iota(&t.b, one, T0(I32), &y), "'iota_dimension' is 1");
  BAD(pestle_op_iota(&t.b, one, T(I1, 2, 3), &y), "must be a number, not i1");
  BAD(pestle_op_iota(&t.b, one, T(I32, 2, DYN), &y), "must be static");
  ir_test_end(&t);
}

static void converts(void** state) {
  (void)state;
  pestle_value_t* y;
  BEGIN(t, T(F32, 2, 4), T(F32, DYN, 4), T(I8, 3, 4), T0(I8), T(C64, 2),
        T(I1, 8));
  pestle_value_t** a = t.a;
  GOOD(pestle_op_convert(&t.b, a[0], NULL, T(I8, 2, 4), &y), T(I8, 2, 4));
  GOOD(pestle_op_convert(&t.b, a[0], NULL, T(I8, DYN, 4), &y), T(I8, 2, 4));
  GOOD(pestle_op_convert(&t.b, a[1], NULL, T(I8, DYN, 4), &y), T(I8, DYN, 4));
  BAD(pestle_op_convert(&t.b, a[0], NULL, T(I8, 2, 5), &y),
      "the result tensor<2x5xi8> has another shape than the operand "
      "tensor<2x4xf32>");
  GOOD(pestle_op_bitcast_convert(&t.b, a[0], NULL, T(I32, 2, 4), &y),
       T(I32, 2, 4));
  GOOD(pestle_op_bitcast_convert(&t.b, a[0], NULL, T(I8, 2, 4, 4), &y),
       T(I8, 2, 4, 4));
  GOOD(pestle_op_bitcast_convert(&t.b, a[2], NULL, T(F32, 3), &y), T(F32, 3));
  GOOD(pestle_op_bitcast_convert(&t.b, a[1], NULL, T(U16, DYN, 4, 2), &y),
       T(U16, DYN, 4, 2));
  BAD(pestle_op_bitcast_convert(&t.b, a[2], NULL, T(F16, 3), &y),
      "the last extent of operand tensor<3x4xi8> must be 2");
  BAD(pestle_op_bitcast_convert(&t.b, a[3], NULL, T0(F32), &y),
      "the last extent");
  BAD(pestle_op_bitcast_convert(&t.b, a[0], NULL, T(C64, 2, 2), &y),
      "the last extent of operand tensor<2x4xf32> must be 2");
  BAD(pestle_op_bitcast_convert(&t.b, a[0], NULL, T(C128, 2), &y),
      "the bits of f32 cannot be read as complex<f64>");
  BAD(pestle_op_bitcast_convert(&t.b, a[0], NULL, T(I32, 2, 5), &y),
      "must be tensor<2x4xi32>");
  ir_test_end(&t);
}

// --- Views ---

#define BROADCAST(...) \
  ATTRS(broadcast_in_dim, .broadcast_dimensions = __VA_ARGS__)

static void broadcasts(void** state) {
  (void)state;
  pestle_value_t* y;
  BEGIN(t, T(F32, 3), T(F32, 1, 3), T0(F32), T(F32, DYN));
  pestle_value_t** a = t.a;
  pestle_builder_t* b = &t.b;
  GOOD(
      pestle_op_broadcast_in_dim(b, a[0], BROADCAST(I64S(1)), T(F32, 2, 3), &y),
      T(F32, 2, 3));
  GOOD(pestle_op_broadcast_in_dim(b, a[1], BROADCAST(I64S(2, 0)),
                                  T(F32, 3, 5, 7), &y),
       T(F32, 3, 5, 7));
  GOOD(pestle_op_broadcast_in_dim(b, a[2], BROADCAST({0}), T(F32, 2), &y),
       T(F32, 2));
  GOOD(pestle_op_broadcast_in_dim(b, a[0], BROADCAST(I64S(1)), T(F32, 2, DYN),
                                  &y),
       T(F32, 2, 3));
  GOOD(pestle_op_broadcast_in_dim(b, a[3], BROADCAST(I64S(0)), T(F32, DYN, 2),
                                  &y),
       T(F32, DYN, 2));
  BAD(pestle_op_broadcast_in_dim(b, a[0], BROADCAST(I64S(1)), T(F32, 2, 4), &y),
      "extent 3 of axis 0 of the operand is neither 1 nor the extent 4 of axis "
      "1 of the result");
  BAD(pestle_op_broadcast_in_dim(b, a[0], BROADCAST(I64S(2)), T(F32, 2, 3), &y),
      "names axis 2 of a tensor of rank 2");
  BAD(pestle_op_broadcast_in_dim(b, a[1], BROADCAST(I64S(1, 1)), T(F32, 2, 3),
                                 &y),
      "names axis 1 twice");
  BAD(pestle_op_broadcast_in_dim(b, a[1], BROADCAST(I64S(1)), T(F32, 2, 3), &y),
      "'broadcast_dimensions' has 1 elements, not 2");
  BAD(pestle_op_broadcast_in_dim(b, a[0], BROADCAST(I64S(1)), T(F16, 2, 3), &y),
      "another element type");
  ir_test_end(&t);
}

static void reshapes(void** state) {
  (void)state;
  pestle_value_t* y;
  BEGIN(t, T(F32, 2, 6), T(F32, DYN, 6), T(F32, 0, 3), T0(F32),
        T(I8, INT64_C(1) << 40, 8));
  pestle_value_t** a = t.a;
  GOOD(pestle_op_reshape(&t.b, a[0], NULL, T(F32, 3, 4), &y), T(F32, 3, 4));
  GOOD(pestle_op_reshape(&t.b, a[0], NULL, T(F32, 3, DYN), &y), T(F32, 3, 4));
  GOOD(pestle_op_reshape(&t.b, a[1], NULL, T(F32, DYN), &y), T(F32, DYN));
  GOOD(pestle_op_reshape(&t.b, a[2], NULL, T(F32, 7, 0), &y), T(F32, 7, 0));
  GOOD(pestle_op_reshape(&t.b, a[3], NULL, T(F32, 1, 1), &y), T(F32, 1, 1));
  GOOD(pestle_op_reshape(&t.b, a[4], NULL, T(I8, INT64_C(1) << 43), &y),
       T(I8, INT64_C(1) << 43));
  BAD(pestle_op_reshape(&t.b, a[0], NULL, T(F32, 3, 5), &y),
      "operand tensor<2x6xf32> has 12 elements, the result tensor<3x5xf32> has "
      "15");
  BAD(pestle_op_reshape(&t.b, a[0], NULL, T(F32, 5, DYN), &y),
      "does not reshape");
  BAD(pestle_op_reshape(&t.b, a[0], NULL, T(F32, 0, DYN), &y),
      "does not reshape");
  BAD(pestle_op_reshape(&t.b, a[0], NULL, T(I32, 12), &y),
      "another element type");
  ir_test_end(&t);
}

static void transposes(void** state) {
  (void)state;
  pestle_value_t* y;
  BEGIN(t, T(F32, 2, 3, DYN), T0(F32));
  GOOD(pestle_op_transpose(&t.b, t.a[0],
                           ATTRS(transpose, .permutation = I64S(2, 0, 1)), &y),
       T(F32, DYN, 2, 3));
  GOOD(pestle_op_transpose(&t.b, t.a[1], ATTRS(transpose, .permutation = {0}),
                           &y),
       T0(F32));
  BAD(pestle_op_transpose(&t.b, t.a[0],
                          ATTRS(transpose, .permutation = I64S(2, 0)), &y),
      "'permutation' has 2 elements, not 3");
  BAD(pestle_op_transpose(&t.b, t.a[0],
                          ATTRS(transpose, .permutation = I64S(2, 0, 0)), &y),
      "names axis 0 twice");
  BAD(pestle_op_transpose(&t.b, t.a[0],
                          ATTRS(transpose, .permutation = I64S(2, 0, 3)), &y),
      "names axis 3");
  BAD(pestle_op_transpose(&t.b, t.a[0],
                          ATTRS(transpose, .permutation = I64S(2, 0, -1)), &y),
      "names axis -1");
  ir_test_end(&t);
}

#define SLICE(start, limit, step)                                          \
  ATTRS(slice, .start_indices = I64S(start), .limit_indices = I64S(limit), \
        .strides = I64S(step))

static void slices(void** state) {
  (void)state;
  pestle_value_t* y;
  BEGIN(t, T(F32, 10), T(F32, DYN));
  pestle_value_t* x = t.a[0];
  GOOD(pestle_op_slice(&t.b, x, SLICE(0, 10, 1), &y), T(F32, 10));
  GOOD(pestle_op_slice(&t.b, x, SLICE(1, 10, 4), &y), T(F32, 3));
  GOOD(pestle_op_slice(&t.b, x, SLICE(4, 4, 1), &y), T(F32, 0));
  GOOD(pestle_op_slice(&t.b, x, SLICE(0, 10, INT64_MAX), &y), T(F32, 1));
  GOOD(pestle_op_slice(&t.b, t.a[1], SLICE(2, 20, 3), &y), T(F32, 6));
  BAD(pestle_op_slice(&t.b, x, SLICE(0, 11, 1), &y),
      "start 0 and limit 11 of axis 0 do not lie in operand tensor<10xf32>");
  BAD(pestle_op_slice(&t.b, x, SLICE(5, 4, 1), &y), "do not lie in");
  BAD(pestle_op_slice(&t.b, x, SLICE(-1, 4, 1), &y), "at least 0");
  BAD(pestle_op_slice(&t.b, x, SLICE(0, 4, 0), &y), "at least 1");
  ir_test_end(&t);
}

static void reverses(void** state) {
  (void)state;
  pestle_value_t* y;
  BEGIN(t, T(F32, 2, DYN));
  GOOD(pestle_op_reverse(&t.b, t.a[0], ATTRS(reverse, .dimensions = I64S(1, 0)),
                         &y),
       T(F32, 2, DYN));
  BAD(pestle_op_reverse(&t.b, t.a[0], ATTRS(reverse, .dimensions = I64S(2)),
                        &y),
      "names axis 2");
  BAD(pestle_op_reverse(&t.b, t.a[0], ATTRS(reverse, .dimensions = I64S(1, 1)),
                        &y),
      "twice");
  ir_test_end(&t);
}

#define PAD(low, high, interior)                                             \
  ATTRS(pad, .edge_padding_low = I64S(low), .edge_padding_high = I64S(high), \
        .interior_padding = I64S(interior))

static void pads(void** state) {
  (void)state;
  pestle_value_t* y;
  BEGIN(t, T(F32, 4), T0(F32), T(F32, 0), T0(F16), T(F32, DYN));
  pestle_value_t** a = t.a;
  GOOD(pestle_op_pad(&t.b, a[0], a[1], PAD(1, 2, 0), &y), T(F32, 7));
  GOOD(pestle_op_pad(&t.b, a[0], a[1], PAD(0, 0, 2), &y), T(F32, 10));
  GOOD(pestle_op_pad(&t.b, a[0], a[1], PAD(-1, -3, 0), &y), T(F32, 0));
  GOOD(pestle_op_pad(&t.b, a[0], a[1], PAD(-1, 1, 1), &y), T(F32, 7));
  GOOD(pestle_op_pad(&t.b, a[2], a[1], PAD(1, 1, 3), &y), T(F32, 2));
  GOOD(pestle_op_pad(&t.b, a[4], a[1], PAD(1, 1, 3), &y), T(F32, DYN));
  BAD(pestle_op_pad(&t.b, a[0], a[1], PAD(-1, -4, 0), &y),
      "its extent would be -1");
  BAD(pestle_op_pad(&t.b, a[0], a[1], PAD(0, 0, -1), &y), "at least 0");
  BAD(pestle_op_pad(&t.b, a[0], a[1], PAD(0, INT64_MAX, 0), &y), "2^63");
  BAD(pestle_op_pad(&t.b, a[0], a[1], PAD(0, 0, INT64_MAX), &y), "2^63");
  BAD(pestle_op_pad(&t.b, a[0], a[0], PAD(0, 0, 0), &y), "rank must be 0");
  BAD(pestle_op_pad(&t.b, a[0], a[3], PAD(0, 0, 0), &y), "element types");
  BAD(pestle_op_pad(&t.b, a[1], a[1], PAD(0, 0, 0), &y), "1 elements, not 0");
  ir_test_end(&t);
}

static void concatenates(void** state) {
  (void)state;
  pestle_value_t* y;
  BEGIN(t, T(F32, 2, 3), T(F32, 4, 3), T(F32, DYN, 3), T(F32, 2, 4),
        T(F16, 2, 3), T(I8, INT64_C(1) << 62), T(F32, 2, DYN), T(F32, 3));
  pestle_value_t** a = t.a;
  const pestle_concatenate_attrs_t* zero = ATTRS(concatenate, .dimension = 0);
  const pestle_concatenate_attrs_t* one = ATTRS(concatenate, .dimension = 1);
#define CONCAT(attrs, ...)                                                   \
  pestle_op_concatenate(&t.b, (pestle_value_t*[]){__VA_ARGS__},              \
                        sizeof((pestle_value_t*[]){__VA_ARGS__}) / 8, attrs, \
                        &y)
  GOOD(CONCAT(zero, a[0]), T(F32, 2, 3));
  GOOD(CONCAT(zero, a[0], a[1], a[0]), T(F32, 8, 3));
  GOOD(CONCAT(zero, a[0], a[2]), T(F32, DYN, 3));
  GOOD(CONCAT(one, a[0], a[3]), T(F32, 2, 7));
  GOOD(CONCAT(one, a[2], a[3]), T(F32, 2, 7));
  GOOD(CONCAT(one, a[6], a[3]), T(F32, 2, DYN));
  BAD(CONCAT(zero, a[0], a[3]),
      "operand 1 is tensor<2x4xf32>: but for axis 0 its shape must be that of "
      "operand 0, tensor<2x3xf32>");
  BAD(CONCAT(zero, a[0], a[4]), "element types");
  BAD(CONCAT(zero, a[0], a[7]), "rank must be 2");
  BAD(CONCAT(zero, a[5], a[5]), "2^63");
  BAD(CONCAT(ATTRS(concatenate, .dimension = 2), a[0]), "below 2");
  BAD(pestle_op_concatenate(&t.b, a, 0, zero, &y), "at least one operand");
  ir_test_end(&t);
}

// --- Computed indices ---

static void dynamic_slices(void** state) {
  (void)state;
  pestle_value_t* y;
  BEGIN(t, T(F32, 4, 5), T0(I32), T0(I64), T0(F32), T(I32, 1), T(F32, 2, 5),
        T(F32, 2, 6), T(F16, 2, 5));
  pestle_value_t** a = t.a;
#define DS(sizes, ...)                                                  \
  pestle_op_dynamic_slice(&t.b, (pestle_value_t*[]){__VA_ARGS__},       \
                          sizeof((pestle_value_t*[]){__VA_ARGS__}) / 8, \
                          ATTRS(dynamic_slice, .slice_sizes = sizes), &y)
#define DUS(...)                                                               \
  pestle_op_dynamic_update_slice(&t.b, (pestle_value_t*[]){__VA_ARGS__},       \
                                 sizeof((pestle_value_t*[]){__VA_ARGS__}) / 8, \
                                 NULL, &y)
  GOOD(DS(I64S(2, 5), a[0], a[1], a[1]), T(F32, 2, 5));
  BAD(DS(I64S(2, 6), a[0], a[1], a[1]),
      "slice size 6 of axis 1 passes operand 0, tensor<4x5xf32>");
  BAD(DS(I64S(2, -1), a[0], a[1], a[1]), "at least 0");
  BAD(DS(I64S(2), a[0], a[1], a[1]), "1 elements, not 2");
  BAD(DS(I64S(2, 5), a[0], a[1]), "1 start indices for operand 0 of rank 2");
  BAD(DS(I64S(2, 5), a[0], a[1], a[2]), "element types");
  BAD(DS(I64S(2, 5), a[0], a[3], a[3]), "of kind signed, unsigned");
  BAD(DS(I64S(2, 5), a[0], a[4], a[4]), "rank must be 0");
  BAD(pestle_op_dynamic_slice(&t.b, a, 0,
                              ATTRS(dynamic_slice, .slice_sizes = {0}), &y),
      "at least 1");
  GOOD(DUS(a[0], a[5], a[1], a[1]), T(F32, 4, 5));
  BAD(DUS(a[0], a[6], a[1], a[1]),
      "the update tensor<2x6xf32> passes axis 1 of operand 0");
  BAD(DUS(a[0], a[7], a[1], a[1]), "element types");
  BAD(DUS(a[0], a[3], a[1], a[1]), "rank must be 2");
  BAD(DUS(a[0], a[5], a[1]), "1 start indices");
  BAD(DUS(a[0]), "at least 2");
  ir_test_end(&t);
}

// The example of the StableHLO specification, and what may be wrong with it.
static void gathers(void** state) {
  (void)state;
  pestle_value_t* y;
  BEGIN(t, T(I32, 2, 3, 4, 2), T(I64, 2, 2, 3, 2), T(F32, 2), T(F32, 5, 7),
        T(I32, 3));
#define SPEC(...)                 \
  pestle_gather_attrs_t g = spec; \
  (void)(g __VA_ARGS__)
#define BUILD_SPEC pestle_op_gather(&t.b, t.a[0], t.a[1], &g, &y)
#define SPEC_GOOD(type, ...) \
  do {                       \
    SPEC(__VA_ARGS__);       \
    GOOD(BUILD_SPEC, type);  \
  } while (0)
#define SPEC_BAD(text, ...) \
  do {                      \
    SPEC(__VA_ARGS__);      \
    BAD(BUILD_SPEC, text);  \
  } while (0)
  const pestle_gather_attrs_t spec = *ATTRS(
      gather, .offset_dims = I64S(3, 4), .collapsed_slice_dims = I64S(1),
      .operand_batching_dims = I64S(0), .start_indices_batching_dims = I64S(1),
      .start_index_map = I64S(2, 1), .index_vector_dim = 3,
      .slice_sizes = I64S(1, 1, 2, 2));
  SPEC_GOOD(T(I32, 2, 2, 3, 2, 2), );
  SPEC_GOOD(T(I32, 2, 2, 2, 2, 3), .offset_dims = I64S(0, 2));
  SPEC_BAD("have 3 elements together", .offset_dims = I64S(3));
  SPEC_BAD("'offset_dims' must ascend", .offset_dims = I64S(4, 3));
  SPEC_BAD("names axis 5 of a tensor of rank 5", .offset_dims = I64S(3, 5));
  SPEC_BAD("'index_vector_dim' is 5", .index_vector_dim = 5);
  SPEC_BAD("an index has 3 elements", .index_vector_dim = 2);
  SPEC_BAD("an index has 2 elements, 'start_index_map' has 1",
           .start_index_map = I64S(2));
  SPEC_BAD("names axis 0 twice", .start_index_map = I64S(2, 0));
  SPEC_BAD("names axis 4", .start_index_map = I64S(2, 4));
  SPEC_BAD("twice", .collapsed_slice_dims = I64S(0));
  SPEC_BAD("slice size 2 of axis 3", .operand_batching_dims = I64S(3));
  SPEC_BAD("names 'index_vector_dim'", .start_indices_batching_dims = I64S(3));
  SPEC_BAD("batching axis 0 of operand 0 has extent 2, axis 2 of the indices 3",
           .start_indices_batching_dims = I64S(2));
  SPEC_BAD("0 elements, not 1",
           .start_indices_batching_dims = (pestle_i64s_t){0});
  SPEC_BAD("slice size 2 of axis 1 must be 0 or 1",
           .slice_sizes = I64S(1, 2, 2, 2));
  SPEC_BAD("slice size 0 of axis 1, which is collapsed: the elements",
           .slice_sizes = I64S(1, 0, 2, 2));
  // Nothing comes from nothing.
  SPEC_GOOD(T(I32, 2, 2, 3, 0, 2), .slice_sizes = I64S(1, 0, 0, 2));
  SPEC_BAD("slice size 5 of axis 2 passes", .slice_sizes = I64S(1, 1, 5, 2));
  SPEC_BAD("3 elements, not 4", .slice_sizes = I64S(1, 1, 2));
  // Whole rows: the index has rank 0 in the last axis that is not there.
  assert_ok(pestle_op_gather(
      &t.b, t.a[3], t.a[4],
      ATTRS(gather, .offset_dims = I64S(1), .collapsed_slice_dims = I64S(0),
            .start_index_map = I64S(0), .index_vector_dim = 1,
            .slice_sizes = I64S(1, 7)),
      &y));
  assert_type(y, T(F32, 3, 7));
  BAD(pestle_op_gather(&t.b, t.a[0], t.a[2],
                       ATTRS(gather, .slice_sizes = I64S(1, 1, 2, 2)), &y),
      "together");
  ir_test_end(&t);
}

// --- Contractions ---

#define DOT(lhs, rhs, type, ...)                                               \
  pestle_op_dot_general(&t.b, lhs, rhs, ATTRS(dot_general, __VA_ARGS__), type, \
                        &y)
#define MATMUL \
  .lhs_contracting_dimensions = I64S(1), .rhs_contracting_dimensions = I64S(0)

static void dots(void** state) {
  (void)state;
  pestle_value_t* y;
  BEGIN(t, T(F32, 2, 3), T(F32, 3, 4), T(F32, 5, 2, 3), T(F32, 5, 3, 4),
        T(U8, 2, 3), T(I8, 3, 4), T(F32, DYN, 3), T(F16, 3, 4));
  pestle_value_t** a = t.a;
  GOOD(DOT(a[0], a[1], T(F32, 2, 4), MATMUL), T(F32, 2, 4));
  GOOD(DOT(a[0], a[1], T(F64, 2, 4), MATMUL), T(F64, 2, 4));
  GOOD(DOT(a[0], a[1], T(F32, DYN, DYN), MATMUL), T(F32, 2, 4));
  GOOD(DOT(a[6], a[1], T(F32, DYN, 4), MATMUL), T(F32, DYN, 4));
  GOOD(DOT(a[4], a[5], T(I32, 2, 4), MATMUL), T(I32, 2, 4));
  GOOD(DOT(a[2], a[3], T(F32, 5, 2, 4), .lhs_batching_dimensions = I64S(0),
           .rhs_batching_dimensions = I64S(0),
           .lhs_contracting_dimensions = I64S(2),
           .rhs_contracting_dimensions = I64S(1)),
       T(F32, 5, 2, 4));
  GOOD(DOT(a[0], a[1], T(F32, 2, 3, 3, 4), .lhs_batching_dimensions = {0}),
       T(F32, 2, 3, 3, 4));
  BAD(DOT(a[0], a[1], T(F32, 2, 5), MATMUL),
      "the result is stated as tensor<2x5xf32>, the operands give "
      "tensor<2x4xf32>");
  BAD(DOT(a[0], a[1], T(F32, 3, 3), .lhs_contracting_dimensions = I64S(0),
          .rhs_contracting_dimensions = I64S(1)),
      "axis 0 of operand 0, tensor<2x3xf32>, and axis 1 of operand 1, "
      "tensor<3x4xf32>, must have one extent");
  BAD(DOT(a[0], a[1], T(F32, 2), .lhs_contracting_dimensions = I64S(1)),
      "'rhs_contracting_dimensions' has 0 elements, not 1");
  BAD(DOT(a[0], a[1], T(F32, 2), .lhs_batching_dimensions = I64S(1),
          .rhs_batching_dimensions = I64S(0), MATMUL),
      "names axis 1 twice, or another attribute");
  BAD(DOT(a[0], a[1], T(F32, 2), .lhs_contracting_dimensions = I64S(2),
          .rhs_contracting_dimensions = I64S(0)),
      "names axis 2");
  BAD(DOT(a[0], a[7], T(F32, 2, 4), MATMUL), "element types must be equal");
  BAD(DOT(a[0], a[1], T(I32, 2, 4), MATMUL),
      "the result's element type i32 does not go with operands of f32");
  BAD(DOT(a[4], a[5], T(F32, 2, 4), MATMUL), "does not go with");
  ir_test_end(&t);
}

// NHWC, HWIO.
static const int64_t ints_01[] = {0, 1}, ints_12[] = {1, 2};
static const pestle_convolution_attrs_t conv_attrs = {
    .struct_size = sizeof(pestle_convolution_attrs_t),
    .input_batch_dimension = 0,
    .input_feature_dimension = 3,
    .input_spatial_dimensions = {ints_12, 2},
    .kernel_input_feature_dimension = 2,
    .kernel_output_feature_dimension = 3,
    .kernel_spatial_dimensions = {ints_01, 2},
    .output_batch_dimension = 0,
    .output_feature_dimension = 3,
    .output_spatial_dimensions = {ints_12, 2},
    .feature_group_count = 1,
    .batch_group_count = 1};

// The last argument changes the attributes |c|: ".padding = ...".
#define CONV_GOOD(x, k, stated, expected, ...)                         \
  do {                                                                 \
    pestle_convolution_attrs_t c = conv_attrs;                         \
    (void)(c __VA_ARGS__);                                             \
    GOOD(pestle_op_convolution(&t.b, x, k, &c, stated, &y), expected); \
  } while (0)
#define CONV_BAD(x, k, stated, text, ...)                         \
  do {                                                            \
    pestle_convolution_attrs_t c = conv_attrs;                    \
    (void)(c __VA_ARGS__);                                        \
    BAD(pestle_op_convolution(&t.b, x, k, &c, stated, &y), text); \
  } while (0)

static void convolutions(void** state) {
  (void)state;
  pestle_value_t* y;
  BEGIN(t, T(F32, 4, 9, 8, 6), T(F32, 3, 3, 6, 4), T(F32, 3, 3, 2, 6),
        T(F32, DYN, DYN, 8, 6), T(F32, 4), T(F16, 3, 3, 6, 4),
        T(F32, 3, 3, 5, 4));
  pestle_value_t *x = t.a[0], *k = t.a[1];
  pestle_type_t any = T(F32, DYN, DYN, DYN, DYN);
  CONV_GOOD(x, k, any, T(F32, 4, 7, 6, 4), );
  CONV_GOOD(x, k, T(F32, 4, 7, 6, 4), T(F32, 4, 7, 6, 4), );
  CONV_GOOD(x, k, any, T(F32, 4, 9, 8, 4), .padding = I64S(1, 1, 0, 2));
  CONV_GOOD(x, k, any, T(F32, 4, 4, 2, 4), .window_strides = I64S(2, 3));
  CONV_GOOD(x, k, any, T(F32, 4, 1, 6, 4), .rhs_dilation = I64S(4, 1));
  CONV_GOOD(x, k, any, T(F32, 4, 0, 6, 4), .rhs_dilation = I64S(5, 1));
  CONV_GOOD(x, k, any, T(F32, 4, 15, 6, 4), .lhs_dilation = I64S(2, 1));
  CONV_GOOD(x, k, any, T(F32, 4, 7, 6, 4), .window_reversal = I64S(1, 0));
  CONV_GOOD(x, k, any, T(F32, 4, 0, 6, 4), .padding = I64S(-9, -1, 0, 0));
  CONV_GOOD(x, t.a[2], any, T(F32, 4, 7, 6, 6), .feature_group_count = 3);
  CONV_GOOD(x, k, any, T(F32, 2, 7, 6, 4), .batch_group_count = 2);
  CONV_GOOD(t.a[3], k, any, T(F32, DYN, DYN, 6, 4), );
  CONV_GOOD(x, k, any, T(F32, 4, 7, 6, 4), .output_batch_dimension = 3,
            c.output_feature_dimension = 0);
  CONV_BAD(x, k, T(F32, 4, 7, 7, 4), "the operands give tensor<4x7x6x4xf32>", );
  CONV_BAD(x, t.a[5], any, "element types", );
  CONV_BAD(x, t.a[4], any, "rank must be 4", );
  CONV_BAD(t.a[4], k, any, "rank must be at least 2", );
  CONV_BAD(x, t.a[6], any,
           "the kernel has 5 input features, 6 features in 1 groups need 6", );
  CONV_BAD(x, k, any, "must divide the input", .feature_group_count = 4);
  CONV_BAD(x, k, any, "must be positive", .feature_group_count = 0);
  CONV_BAD(x, k, any, "one of them 1", .feature_group_count = 2,
           c.batch_group_count = 2);
  CONV_BAD(x, k, any, "must divide the batch 4", .batch_group_count = 3);
  CONV_BAD(x, k, any, "at least 1", .window_strides = I64S(0, 1));
  CONV_BAD(x, k, any, "1 elements, not 2", .window_strides = I64S(1));
  CONV_BAD(x, k, any, "2 elements, not 4", .padding = I64S(1, 1));
  CONV_BAD(x, k, any, "2^63", .padding = I64S(INT64_MAX, 0, 0, 0));
  CONV_BAD(x, k, any, "2^63", .lhs_dilation = I64S(INT64_MAX, 1));
  CONV_BAD(x, k, any, "must hold 0 or 1", .window_reversal = I64S(2, 0));
  CONV_BAD(x, k, any, "must name each axis once", .input_batch_dimension = 3);
  CONV_BAD(x, k, any, "must name each axis once",
           .input_spatial_dimensions = I64S(0, 2));
  CONV_BAD(x, k, any, "below 4", .output_feature_dimension = 4);
  CONV_BAD(x, k, any, "1 elements, not 2",
           .kernel_spatial_dimensions = I64S(0));
  ir_test_end(&t);
}

// What is asked of a result is checked even when nobody asked for its type.
static void results_must_fit(void** state) {
  (void)state;
  pestle_value_t* y;
  BEGIN(t, T(I8, INT64_C(1) << 40), T(I8, INT64_C(1) << 40));
  BAD(DOT(t.a[0], t.a[1], T(I32, DYN, DYN), .lhs_batching_dimensions = {0}),
      "in result 0, tensor<1099511627776x1099511627776xi32>");
  pestle_value_t* out[1];
  size_t count;
  pestle_type_t type;
  pestle_node_spec_t spec = {.op = PESTLE_OP_OPTIMIZATION_BARRIER,
                             .operands = t.a,
                             .operand_count = 2};
  assert_ok(pestle_infer_types(&spec, &type, 1, &count));
  assert_int_equal(count, 2);
  BAD(pestle_op_optimization_barrier(&t.b, t.a, 2, NULL, out, 1),
      "2 results, there is room for 1");
  assert_int_equal(ir_test_node_count(&t), 0);
  ir_test_end(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(scalar_rows),
      cmocka_unit_test(scalar_shapes),
      cmocka_unit_test(select_and_clamp),
      cmocka_unit_test(constants),
      cmocka_unit_test(iotas),
      cmocka_unit_test(converts),
      cmocka_unit_test(broadcasts),
      cmocka_unit_test(reshapes),
      cmocka_unit_test(transposes),
      cmocka_unit_test(slices),
      cmocka_unit_test(reverses),
      cmocka_unit_test(pads),
      cmocka_unit_test(concatenates),
      cmocka_unit_test(dynamic_slices),
      cmocka_unit_test(gathers),
      cmocka_unit_test(dots),
      cmocka_unit_test(convolutions),
      cmocka_unit_test(results_must_fit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

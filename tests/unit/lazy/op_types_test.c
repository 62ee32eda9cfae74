// SPDX-License-Identifier: Apache-2.0
// Every elementwise row, and the op types of docs/arrays.md that are rows of
// ops.def, as arrays on each CPU backend, and on a device whose memory the host cannot
// touch (tests/mock): `ref` says what is right.
#include <math.h>
#include <stdlib.h>

#include "pestle/pestle.h"
#include "test.h"

enum { ROWS = 4, COLUMNS = 6, COUNT = ROWS * COLUMNS, MOST_BYTES = 4096 };

static pestle_context_t* context;

static int setup(void** state) {
  (void)state;
  pestle_context_options_t options = {
      .struct_size = sizeof(options), .use_environment = true, .threads = 2};
  assert_ok(pestle_context_create(&options, &context));
  const char* build = getenv("PESTLE_BUILD_DIR");
  char path[4096];
  snprintf(path, sizeof(path), "%s/tests/mock/backends/libpestle-mock.so",
           build ? build : ".");
  assert_ok(pestle_context_load_backend(context, path));
  return 0;
}

static int teardown(void** state) {
  (void)state;
  pestle_context_release(context);
  return 0;
}

// What is held against `ref`. llvm may not be built.
static const char* const names[] = {"llvm", "mock"};
enum { NAMES = 2 };

// A device, or NULL: there is none.
static pestle_device_t* device_of(const char* name) {
  pestle_device_t* device;
  pestle_status_release(pestle_context_device(context, name, &device));
  return device;
}

static pestle_dtype_t dtype_for(const pestle_op_info_t* info) {
  if (info->kinds & PESTLE_KIND_FLOAT) return PESTLE_F32;
  return info->kinds & PESTLE_KIND_SIGNED ? PESTLE_I32 : PESTLE_I1;
}

// Operand |index|: numbers between 0 and 1, which every function takes.
static pestle_array_t* operand(pestle_device_t* device, pestle_dtype_t dtype,
                               int index) {
  float f[COUNT];
  int32_t i32[COUNT];
  unsigned char i1[COUNT];
  for (int i = 0; i < COUNT; ++i) {
    f[i] = (float)((i * 7 + index * 5) % 23 + 1) / 25.0f;
    i32[i] = (i * 7 + index * 5) % 23 + 1;
    i1[i] = (i * 7 + index * 5) % 3 == 0;
  }
  const void* data = dtype == PESTLE_F32   ? (const void*)f
                     : dtype == PESTLE_I32 ? (const void*)i32
                                           : (const void*)i1;
  pestle_type_t type = {dtype, 2, {ROWS, COLUMNS}};
  pestle_array_t* array;
  assert_ok(pestle_array_from_data(device, &type, data, &array));
  return array;
}

typedef struct result_t {
  pestle_type_t type;
  size_t size;
  unsigned char bytes[MOST_BYTES];
} result_t;

static void take(pestle_array_t* array, result_t* out) {
  out->type = pestle_array_type(array);
  out->size = pestle_dtype_size(out->type.dtype);
  for (int32_t i = 0; i < out->type.rank; ++i)
    out->size *= (size_t)out->type.dims[i];
  assert_true(out->size <= MOST_BYTES);
  assert_ok(pestle_array_read(array, out->bytes, out->size));
  pestle_array_release(array);
}

static void compare(const char* op, const result_t* a, const result_t* b) {
  assert_int_equal(a->type.dtype, b->type.dtype);
  assert_int_equal(a->size, b->size);
  if (a->type.dtype != PESTLE_F32) {
    if (memcmp(a->bytes, b->bytes, a->size) != 0) fail_msg("%s differs", op);
    return;
  }
  for (size_t i = 0; i < a->size / sizeof(float); ++i) {
    float x, y;
    memcpy(&x, a->bytes + i * sizeof(x), sizeof(x));
    memcpy(&y, b->bytes + i * sizeof(y), sizeof(y));
    if (fabsf(x - y) <= 1e-6f + 4e-6f * fabsf(y)) continue;
    fail_msg("%s: element %zu is %g, ref has %g", op, i, x, y);
  }
}

static void run_scalar(pestle_device_t* device, pestle_op_t op, result_t* out) {
  const pestle_op_info_t* info = pestle_op_info(op);
  pestle_array_t *operands[3] = {NULL}, *y;
  for (int i = 0; i < info->operands; ++i) {
    bool predicate = op == PESTLE_OP_SELECT && i == 0;
    operands[i] = operand(device, predicate ? PESTLE_I1 : dtype_for(info), i);
  }
  pestle_array_op_t call = {.struct_size = sizeof(call),
                            .op = op,
                            .operands = operands,
                            .operand_count = info->operands};
  assert_ok(pestle_array_apply(&call, &y, 1));
  take(y, out);
  for (int i = 0; i < info->operands; ++i)
    pestle_array_release(operands[i]);
}

static void test_every_elementwise_op(void** state) {
  (void)state;
  pestle_device_t* ref = device_of("ref");
  for (int op = 0; op < PESTLE_SCALAR_COUNT; ++op) {
    result_t a, b;
    run_scalar(ref, (pestle_op_t)op, &b);
    for (int i = 0; i < NAMES; ++i) {
      pestle_device_t* device = device_of(names[i]);
      if (!device) continue;
      run_scalar(device, (pestle_op_t)op, &a);
      compare(pestle_op_info((pestle_op_t)op)->name, &a, &b);
    }
  }
}

// --- Rows of ops.def: |x| is f32, |y| what it is called with beside ---

typedef struct inputs_t {
  pestle_array_t *x, *y, *row, *i;
} inputs_t;
typedef pestle_status_t (*make_fn_t)(const inputs_t* in, pestle_array_t** out);

#define ATTRS(op, ...)                         \
  &(pestle_##op##_attrs_t) {                   \
    sizeof(pestle_##op##_attrs_t), __VA_ARGS__ \
  }
#define F32(...)            \
  (pestle_type_t) {         \
    PESTLE_F32, __VA_ARGS__ \
  }

static pestle_status_t softmax(const inputs_t* in, pestle_array_t** out) {
  return pestle_array_softmax(
      in->x, ATTRS(softmax, .dimensions = PESTLE_I64S(1)), out);
}
static pestle_status_t log_softmax(const inputs_t* in, pestle_array_t** out) {
  return pestle_array_log_softmax(
      in->x, ATTRS(log_softmax, .dimensions = PESTLE_I64S(1)), out);
}
static pestle_status_t gelu(const inputs_t* in, pestle_array_t** out) {
  return pestle_array_gelu(in->x, NULL, out);
}
static pestle_status_t silu(const inputs_t* in, pestle_array_t** out) {
  return pestle_array_silu(in->x, NULL, out);
}
static pestle_status_t hard_sigmoid(const inputs_t* in, pestle_array_t** out) {
  return pestle_array_hard_sigmoid(
      in->x, ATTRS(hard_sigmoid, .alpha = 0.2, .beta = 0.5), out);
}
static pestle_status_t layer_norm(const inputs_t* in, pestle_array_t** out) {
  return pestle_array_layer_norm(
      in->x, in->row, in->row,
      ATTRS(layer_norm, .dimensions = PESTLE_I64S(1), .epsilon = 1e-5), out);
}
static pestle_status_t rms_norm(const inputs_t* in, pestle_array_t** out) {
  return pestle_array_rms_norm(
      in->x, in->row,
      ATTRS(rms_norm, .dimensions = PESTLE_I64S(1), .epsilon = 1e-5), out);
}
static pestle_status_t logsumexp(const inputs_t* in, pestle_array_t** out) {
  return pestle_array_logsumexp(
      in->x, ATTRS(logsumexp, .dimensions = PESTLE_I64S(0)), out);
}
static pestle_status_t cumulative(const inputs_t* in, pestle_array_t** out) {
  return pestle_array_cumulative(
      in->x, ATTRS(cumulative, .dimension = 1, .combiner = "ADD"), out);
}
static pestle_status_t cumulative_log(const inputs_t* in,
                                      pestle_array_t** out) {
  return pestle_array_cumulative(
      in->x,
      ATTRS(cumulative, .dimension = 0, .combiner = "LOGSUMEXP",
            .reverse = true),
      out);
}
static pestle_status_t matmul(const inputs_t* in, pestle_array_t** out) {
  return pestle_array_dot_general(
      in->x, in->y,
      ATTRS(dot_general, .lhs_contracting_dimensions = PESTLE_I64S(1),
            .rhs_contracting_dimensions = PESTLE_I64S(1)),
      F32(2, {ROWS, ROWS}), out);
}
static pestle_status_t gather(const inputs_t* in, pestle_array_t** out) {
  return pestle_array_gather(
      in->x, in->i,
      ATTRS(gather, .offset_dims = PESTLE_I64S(2),
            .collapsed_slice_dims = PESTLE_I64S(0),
            .start_index_map = PESTLE_I64S(0), .index_vector_dim = 2,
            .slice_sizes = PESTLE_I64S(1, COLUMNS)),
      out);
}
static pestle_status_t sum(const inputs_t* in, pestle_array_t** out) {
  return pestle_array_fold(PESTLE_OP_ADD, in->x, PESTLE_I64S(0), out);
}
static pestle_status_t prod(const inputs_t* in, pestle_array_t** out) {
  return pestle_array_fold(PESTLE_OP_MULTIPLY, in->x, PESTLE_I64S(1), out);
}
static pestle_status_t max(const inputs_t* in, pestle_array_t** out) {
  return pestle_array_fold(PESTLE_OP_MAXIMUM, in->x, PESTLE_I64S(0, 1), out);
}
static pestle_status_t min(const inputs_t* in, pestle_array_t** out) {
  return pestle_array_fold(PESTLE_OP_MINIMUM, in->x, PESTLE_I64S(1), out);
}
static pestle_status_t fold_less(pestle_op_t op, const inputs_t* in,
                                 pestle_array_t** out) {
  pestle_array_t* less;
  assert_ok(pestle_array_lt(in->x, in->y, &less));
  pestle_status_t status = pestle_array_fold(op, less, PESTLE_I64S(1), out);
  pestle_array_release(less);
  return status;
}
static pestle_status_t any(const inputs_t* in, pestle_array_t** out) {
  return fold_less(PESTLE_OP_OR, in, out);
}
static pestle_status_t all(const inputs_t* in, pestle_array_t** out) {
  return fold_less(PESTLE_OP_AND, in, out);
}
static pestle_status_t adaptive_average(const inputs_t* in,
                                        pestle_array_t** out) {
  return pestle_array_adaptive_average_pool(
      in->x,
      ATTRS(adaptive_average_pool, .dimensions = PESTLE_I64S(0, 1),
            .output_sizes = PESTLE_I64S(3, 4)),
      out);
}
static pestle_status_t adaptive_max(const inputs_t* in, pestle_array_t** out) {
  return pestle_array_adaptive_max_pool(
      in->x,
      ATTRS(adaptive_max_pool, .dimensions = PESTLE_I64S(1),
            .output_sizes = PESTLE_I64S(4)),
      out);
}
static pestle_status_t concatenate(const inputs_t* in, pestle_array_t** out) {
  return pestle_array_concatenate((pestle_array_t*[]){in->x, in->y}, 2,
                                  ATTRS(concatenate, .dimension = 1), out);
}
static pestle_status_t convert(const inputs_t* in, pestle_array_t** out) {
  return pestle_array_convert(
      in->i, NULL, (pestle_type_t){PESTLE_F32, 2, {ROWS, COLUMNS}}, out);
}
// A transpose of data that is read by an op: no copy of it is made.
static pestle_status_t transposed(const inputs_t* in, pestle_array_t** out) {
  pestle_array_t* t;
  assert_ok(pestle_array_transpose(
      in->x, ATTRS(transpose, .permutation = PESTLE_I64S(1, 0)), &t));
  assert_true(pestle_array_is_view(t));
  pestle_status_t status = pestle_array_add(t, t, out);
  pestle_array_release(t);
  return status;
}

static const struct {
  const char* name;
  make_fn_t make;
} op_types[] = {
    {"softmax", softmax},
    {"log_softmax", log_softmax},
    {"gelu", gelu},
    {"silu", silu},
    {"hard_sigmoid", hard_sigmoid},
    {"layer_norm", layer_norm},
    {"rms_norm", rms_norm},
    {"logsumexp", logsumexp},
    {"cumulative", cumulative},
    {"cumulative of exponentials", cumulative_log},
    {"matmul", matmul},
    {"gather", gather},
    {"sum", sum},
    {"prod", prod},
    {"max", max},
    {"min", min},
    {"any", any},
    {"all", all},
    {"adaptive_average_pool", adaptive_average},
    {"adaptive_max_pool", adaptive_max},
    {"concatenate", concatenate},
    {"convert", convert},
    {"transpose", transposed},
};

static void run_type(pestle_device_t* device, make_fn_t make, result_t* out) {
  pestle_type_t type = F32(1, {COLUMNS});
  pestle_array_t* y;
  float row[COLUMNS] = {1, 2, 3, 0.5f, -1, 0.25f};
  inputs_t in = {operand(device, PESTLE_F32, 0), operand(device, PESTLE_F32, 1),
                 NULL, operand(device, PESTLE_I32, 2)};
  assert_ok(pestle_array_from_data(device, &type, row, &in.row));
  assert_ok(make(&in, &y));
  take(y, out);
  pestle_array_release(in.x);
  pestle_array_release(in.y);
  pestle_array_release(in.row);
  pestle_array_release(in.i);
}

static void test_op_types(void** state) {
  (void)state;
  pestle_device_t* ref = device_of("ref");
  assert_non_null(device_of("mock"));
  for (size_t i = 0; i < sizeof(op_types) / sizeof(op_types[0]); ++i) {
    result_t a, b;
    run_type(ref, op_types[i].make, &b);
    for (int k = 0; k < NAMES; ++k) {
      pestle_device_t* device = device_of(names[k]);
      if (!device) continue;
      run_type(device, op_types[i].make, &a);
      compare(op_types[i].name, &a, &b);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_elementwise_op),
      cmocka_unit_test(test_op_types),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}

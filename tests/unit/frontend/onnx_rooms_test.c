// SPDX-License-Identifier: Apache-2.0
// Caches whose rows end at a number that a run is given (pestle_length_binding_t). Of room for
// 6 rows 4 are real: the results are those of a cache of 4 rows, or, where the model has the
// number as an input of its own, those of that number as a constant.
#include <math.h>

#include "onnx_real.h"
#include "onnx_rows.h"

enum { ROOM = 6, LENGTH = 4, MOST = 8 };

typedef struct room_row_t {
  const char* row;  // whose caches have an axis n
  const char*
      axes;  // "03": input i0 has it as its axis 0, input i1 as its axis 3
  const char* own;   // the input that says how many rows there are, or NULL
  const char* says;  // or NULL: what it is refused with
} room_row_t;

// Shapes follow from the number of rows, which is asked for.
static const char ASKS[] = "asks";

typedef struct side_t {
  onnx_test_t t;
  pestle_type_t types[MOST];
  void* results[MOST];
  size_t count;
} side_t;

// --- Runs ---

static void fill(const pestle_type_t* type, uint8_t* data) {
  size_t size = pestle_dtype_size(type->dtype);
  for (int64_t i = 0; i < pestle_type_count(type); ++i) {
    double value = pestle_dtype_is(type->dtype, PESTLE_KIND_FLOAT)
                       ? 0.25 * (double)((i * 7 + 3) % 11)
                       : (double)(i % 2);
    pestle_onnx_store_f64(type->dtype, value, data + (size_t)i * size);
  }
}

// The elements of argument |name| of |type|. Without rows beyond the real ones they are
// those in front of a whole cache.
static void* argument_of(const room_row_t* row, const char* name,
                         pestle_type_t type, bool is_cut) {
  size_t index = (size_t)(name[1] - '0');
  int axis = index < strlen(row->axes) ? row->axes[index] - '0' : -1;
  pestle_type_t whole = type;
  if (axis >= 0 && axis < type.rank && is_cut) whole.dims[axis] = ROOM;
  uint8_t* data = calloc((size_t)pestle_type_count(&whole) + 1, 8);
  fill(&whole, data);
  bool is_length = !strcmp(name, row->own ? row->own : "length");
  if (is_length) pestle_onnx_store_f64(type.dtype, LENGTH, data);
  if (is_cut) real_cut(&whole, type.dims, data);
  return data;
}

static void run(const room_row_t* row, side_t* s, bool is_cut) {
  pestle_function_t* entry = pestle_module_entry(s->t.module);
  const pestle_node_t* last = entry->body->block->last;
  size_t count = pestle_function_argument_count(entry);
  void* arguments[ROW_MOST];
  s->count = last->operand_count;
  assert_true(count <= ROW_MOST && s->count <= MOST);
  for (size_t i = 0; i < count; ++i) {
    arguments[i] = argument_of(
        row, pestle_function_argument_name(entry, i),
        pestle_value_type(pestle_function_argument(entry, i)), is_cut);
  }
  for (size_t i = 0; i < s->count; ++i) {
    s->types[i] = *pestle_node_operand(last, i)->type;
    s->results[i] = calloc(pestle_type_bytes(&s->types[i]) + 8, 1);
  }
  assert_ok(pestle_ref_evaluate_function(pestle_test_allocator(&s->t.memory),
                                         entry, (const void* const*)arguments,
                                         s->results));
  size_t own = real_results(entry, s->types, s->results, s->count);
  for (size_t i = 0; i < count; ++i)
    free(arguments[i]);
  for (size_t i = own; i < s->count; ++i)
    free(s->results[i]);
  s->count = own;
}

static void compare(const room_row_t* row, const side_t* a, const side_t* b) {
  assert_true(a->count > 0);
  assert_int_equal(a->count, b->count);
  for (size_t i = 0; i < a->count; ++i) {
    pestle_elements_t x = {.type = a->types[i], .data = a->results[i]};
    pestle_elements_t y = {.type = b->types[i], .data = b->results[i]};
    if (!pestle_type_equal(&x.type, &y.type)) print_error("%s\n", row->row);
    assert_true(pestle_type_equal(&x.type, &y.type));
    for (int64_t k = 0; k < pestle_type_count(&x.type); ++k) {
      double u = pestle_onnx_element_f64(&x, (size_t)k);
      double v = pestle_onnx_element_f64(&y, (size_t)k);
      if (!(fabs(u - v) <= 1e-5)) print_error("%s\n", row->row);
      assert_true(fabs(u - v) <= 1e-5);
    }
  }
}

// --- Imports ---

// How many of |out| bind axis n of |row|.
static size_t bind_lengths(const room_row_t* row,
                           pestle_length_binding_t out[ROW_MOST]) {
  static const char* const names[] = {"i0", "i1", "i2", "i3",
                                      "i4", "i5", "i6", "i7"};
  size_t count = 0;
  for (size_t i = 0; row->axes[i]; ++i) {
    if (row->axes[i] == '-') continue;
    out[count++] = (pestle_length_binding_t){names[i], row->axes[i] - '0',
                                             row->own ? row->own : "length"};
  }
  return count;
}

static pestle_status_t import_room(const room_row_t* row, const pb_t* model,
                                   onnx_test_t* t, bool fails) {
  const pestle_dim_binding_t dim = {"n", ROOM};
  pestle_length_binding_t lengths[ROW_MOST];
  t->options.dims = &dim;
  t->options.dim_count = 1;
  t->options.lengths = lengths;
  t->options.length_count = bind_lengths(row, lengths);
  if (fails) onnx_fail_each(model, &t->options);
  return onnx_import(t, model);
}

static void import_plain(const room_row_t* row, const pb_t* model,
                         onnx_test_t* t) {
  const pestle_dim_binding_t dim = {"n", row->own ? ROOM : LENGTH};
  int64_t length = LENGTH, one = 1;
  pestle_tensor_t view = {.data = &length,
                          .device = {PESTLE_DEVICE_CPU, 0},
                          .dtype = pestle_dtype_to_dlpack(PESTLE_I64),
                          .shape = &one};
  pestle_const_binding_t binding = {row->own, &view};
  t->options.dims = &dim;
  t->options.dim_count = 1;
  t->options.consts = &binding;
  t->options.const_count = row->own ? 1 : 0;
  assert_ok(onnx_import(t, model));
}

static void try_row(const room_row_t* row) {
  side_t room, plain;
  row_t parts;
  pb_t model = row_model(row->row, &parts);
  onnx_begin(&room.t);
  pestle_status_t status = import_room(row, &model, &room.t, true);
  if (row->says == ASKS) {
    assert_ok(status);
    if (pestle_module_value_argument_count(room.t.module) != 1)
      print_error("%s: asks for nothing\n", row->row);
    assert_int_equal(pestle_module_value_argument_count(room.t.module), 1);
  } else if (row->says) {
    if (!status || !strstr(pestle_status_message(status), row->says)) {
      print_error("%s: %s\n", row->row,
                  status ? pestle_status_message(status) : "is imported");
    }
    assert_non_null(status);
    assert_non_null(strstr(pestle_status_message(status), row->says));
    pestle_status_release(status);
  } else {
    if (status)
      print_error("%s: %s\n", row->row, pestle_status_message(status));
    assert_ok(status);
    assert_false(room.t.module->specialize != NULL);
    assert_ok(pestle_module_verify(room.t.module));
    onnx_begin(&plain.t);
    import_plain(row, &model, &plain.t);
    run(row, &room, false);
    run(row, &plain, !row->own);
    compare(row, &room, &plain);
    for (size_t i = 0; i < room.count; ++i) {
      free(room.results[i]);
      free(plain.results[i]);
    }
    onnx_end(&plain.t);
  }
  onnx_end(&room.t);
  pb_free(&model);
}

// --- Rows ---

static void joins_rows_to_caches(void** state) {
  (void)state;
  static const room_row_t rows[] = {
      {"Concat 18 axis=0 | f32[n,3] f32[2,3] | o", "0", NULL, NULL},
      {"Concat 18 axis=1 | f32[2,n] f32[2,1] | o ; Softmax 18 axis=1 | $0 | o",
       "1", NULL, NULL},
      {"Concat 18 axis=1 | f32[2,n] f32[2,1] | o ; Softmax 11 axis=1 | $0 | o",
       "1", NULL, NULL},
      {"Concat 18 axis=1 | f32[2,n] f32[2,1] | o ; Softmax 18 axis=1 | $0 | o "
       "; "
       "Concat 18 axis=0 | f32[n,3] f32[1,3] | o ; MatMul 18 | $1 $2 | o",
       "1-0", NULL, NULL},
      {"Concat 18 axis=1 | f32[2,n] f32[2,1] | o ; "
       "Concat 18 axis=0 | f32[n,3] f32[1,3] | o ; MatMul 18 | $0 $1 | o",
       "1-0", NULL, NULL},
      {"MatMul 18 | f32[2,n] f32[n,3] | o", "10", NULL, NULL},
      {"Concat 18 axis=0 | f32[n,3] f32[1,3] | o ; Concat 18 axis=0 | $0 "
       "f32[1,3] | o",
       "0", NULL, NULL},
      {"Concat 18 axis=0 | f32[n,3] f32[9,3] | o", "0", NULL,
       "9 rows are appended to a cache that has room for 6"},
      {"ms:MultiHeadAttention 1 num_heads=2 unidirectional=1 | f32[1,2,8] "
       "f32[1,2,8] f32[1,2,8] - - - f32[1,2,n,4] f32[1,2,n,4] | o o o",
       "---22", NULL, NULL},
      {"ms:MultiHeadAttention 1 num_heads=2 | f32[1,2,8] "
       "f32[1,2,8] f32[1,2,8] - - - f32[1,2,n,4] f32[1,2,n,4] | o o o",
       "---22", NULL, NULL},
      {"ms:MultiHeadAttention 1 num_heads=2 unidirectional=1 | f32[1,1,8] "
       "f32[1,1,8] f32[1,1,8] - - - f32[1,2,n,4] f32[1,2,n,4] | o o o",
       "---22", NULL, NULL},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i)
    try_row(&rows[i]);
}

static void counts_from_the_length(void** state) {
  (void)state;
#define HOW_MANY                                                       \
  "Shape 18 | f32[n,3] | o ; Slice 18 | $0 !i64[1]=0 !i64[1]=1 | o ; " \
  "Squeeze 18 | $1 | o ; Add 18 | $2 !i64[]=2 | o ; "
#define BEHIND HOW_MANY "Unsqueeze 18 | $3 !i64[1]=0 | o ; "
  static const room_row_t rows[] = {
      {HOW_MANY "Range 18 | $2 $3 !i64[]=1 | o", "0", NULL, NULL},
      {HOW_MANY "Range 18 | $2 $3 !i64[]=2 | o", "0", NULL, ASKS},
      {HOW_MANY "Range 18 | !i64[]=0 $2 !i64[]=1 | o", "0", NULL, NULL},
      {HOW_MANY "Range 18 | $3 $2 !i64[]=1 | o", "0", NULL, ASKS},
      {HOW_MANY "Range 18 | $2 !i64[]=9 !i64[]=1 | o", "0", NULL, ASKS},
      {BEHIND "Slice 18 | f32[9,3] $1 $4 !i64[1]=0 | o", "0", NULL, NULL},
      {BEHIND "Slice 18 | f32[9,3] $1 $4 !i64[1]=0 !i64[1]=1 | o", "0", NULL,
       NULL},
      {BEHIND "Slice 18 | f32[9,3] $1 $4 !i64[1]=0 !i64[1]=2 | o", "0", NULL,
       NULL},
      {BEHIND "Slice 18 | f32[9,3] $1 !i64[1]=7 !i64[1]=0 | o", "0", NULL,
       NULL},
      {BEHIND "Slice 18 | f32[9,3] !i64[1]=2 $4 !i64[1]=0 | o", "0", NULL,
       NULL},
      {BEHIND "Slice 18 | f32[5,3] $1 $4 !i64[1]=0 | o", "0", NULL,
       "a row for 5 positions, and the cache has room for 6"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i)
    try_row(&rows[i]);
}

static void takes_a_length_of_the_model(void** state) {
  (void)state;
#define OWN(type)                                \
  "Neg 18 | f32[n,3] | o ; Cast 18 to=7 | " type \
  " | o ; Squeeze 18 | $1 | o "                  \
  "; Add 18 | $2 !i64[]=2 | o ; "
  static const room_row_t rows[] = {
      {OWN("i64[]") "Range 18 | $2 $3 !i64[]=1 | o", "0", "i1", NULL},
      {OWN("i64[1]") "Range 18 | $2 $3 !i64[]=1 | o", "0", "i1", NULL},
      {OWN("i32[]") "Range 18 | $2 $3 !i64[]=1 | o", "0", "i1", NULL},
      {OWN("i32[1]") "Range 18 | $2 $3 !i64[]=1 | o", "0", "i1", NULL},
      {OWN("i32[1]") "Unsqueeze 18 | $2 !i64[1]=0 | o ; Unsqueeze 18 | $3 "
                     "!i64[1]=0 | o ; Slice 18 | f32[9,3] $4 $5 !i64[1]=0 | o",
       "0", "i1", NULL},
      {OWN("f32[]") "Range 18 | $2 $3 !i64[]=1 | o", "0", "i1",
       "which is not one i32 or i64"},
      {OWN("i64[2]") "Relu 18 | $0 | o", "0", "i1",
       "which is not one i32 or i64"},
      {OWN("i64[1,1]") "Relu 18 | $0 | o", "0", "i1",
       "which is not one i32 or i64"},
      {OWN("i32[3]") "Relu 18 | $0 | o", "0", "i1",
       "which is not one i32 or i64"},
      {"Neg 18 | f32[6,3] | o", "0", NULL,
       "which the model has not, or whose extent it fixes"},
      {"Neg 18 | f32[n,3] | o", "1", NULL,
       "which the model has not, or whose extent it fixes"},
      {"Neg 18 | f32[n,3] | o", "2", NULL,
       "which the model has not, or whose extent it fixes"},
      {"Neg 18 | f32[n,3] | o", "/", NULL,
       "which the model has not, or whose extent it fixes"},
      {"Neg 18 | f32[n,3] | o", "-0", NULL, "no such input"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i)
    try_row(&rows[i]);
}

static void refuses_lengths_without_names(void** state) {
  (void)state;
  static const pestle_length_binding_t wrong[] = {{NULL, 0, "length"},
                                                  {"i0", 0, NULL}};
  row_t row;
  pb_t model = row_model("Neg 18 | f32[n,3] | o", &row);
  for (size_t i = 0; i < 2; ++i) {
    onnx_test_t t;
    onnx_begin(&t);
    t.options.lengths = &wrong[i];
    t.options.length_count = 1;
    assert_error(onnx_import(&t, &model), INVALID_ARGUMENT,
                 "a length is given without its name or its input's");
    onnx_end(&t);
  }
  pb_free(&model);
}

// The length, or the cache, is a constant of the caller's.
static void takes_constants_for_either(void** state) {
  (void)state;
  static const char* const names[] = {"i0", "i1"};
  for (size_t i = 0; i < 4; ++i) {
    row_t row;
    int64_t number = LENGTH, dims[] = {ROOM, 3};
    float cache[ROOM * 3] = {1};
    pb_t model = row_model(
        "Neg 18 | f32[n,3] | o ; Unsqueeze 18 | i64[] !i64[1]=0 | o ; "
        "Slice 18 | $0 !i64[1]=0 $1 !i64[1]=0 | o",
        &row);
    side_t side;
    onnx_begin(&side.t);
    const pestle_tensor_t views[] = {
        {.data = cache,
         .device = {PESTLE_DEVICE_CPU, 0},
         .ndim = 2,
         .dtype = pestle_dtype_to_dlpack(PESTLE_F32),
         .shape = dims},
        {.data = &number,
         .device = {PESTLE_DEVICE_CPU, 0},
         .dtype = pestle_dtype_to_dlpack(PESTLE_I64)}};
    const pestle_const_binding_t binding = {names[i % 2], &views[i % 2]};
    const pestle_length_binding_t length = {"i0", 0, i < 2 ? "i1" : "length"};
    const pestle_dim_binding_t dim = {"n", ROOM};
    side.t.options.consts = &binding;
    side.t.options.const_count = 1;
    side.t.options.lengths = &length;
    side.t.options.length_count = 1;
    side.t.options.dims = &dim;
    side.t.options.dim_count = 1;
    assert_ok(onnx_import(&side.t, &model));
    // A cache that is no argument has no room: how much is taken of it is asked for.
    if (i % 2 == 0) {
      assert_int_equal(pestle_module_value_argument_count(side.t.module), 1);
      onnx_end(&side.t);
      pb_free(&model);
      continue;
    }
    const room_row_t own = {.axes = ""};
    run(&own, &side, false);
    assert_int_equal(side.types[0].dims[0], LENGTH);
    assert_float_equal(*(float*)side.results[0], -0.75f, 0);
    for (size_t k = 0; k < side.count; ++k)
      free(side.results[k]);
    onnx_end(&side.t);
    pb_free(&model);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(joins_rows_to_caches),
      cmocka_unit_test(counts_from_the_length),
      cmocka_unit_test(takes_a_length_of_the_model),
      cmocka_unit_test(refuses_lengths_without_names),
      cmocka_unit_test(takes_constants_for_either),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

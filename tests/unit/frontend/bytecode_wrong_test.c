// SPDX-License-Identifier: Apache-2.0
// Each attribute, type, location and section of StableHLO's bytecode, right and wrong in
// each of many ways: the text that it becomes, or the sentence. Then each byte of a file
// that has them all is another one, the file is cut at each, and each request for memory
// fails.
#include "bytecode_test.h"

#include "frontend/stablehlo/import.h"
#include "ir/graph.h"
#include "ir/sharding.h"

static pestle_context_t* context;

// A copy of its exact size, so that a sanitizer sees a read behind it.
static pestle_status_t import_in(pestle_context_t* in, const void* data,
                                 size_t size, pestle_module_t** out) {
  char* copy = malloc(size ? size : 1);
  if (size) memcpy(copy, data, size);
  pestle_status_t status = pestle_import_stablehlo(in, copy, size, "x.bc", out);
  free(copy);
  return status;
}

// Frees |file|.
static void expect(const char* name, buf_t* file, pestle_status_code_t code,
                   const char* text) {
  pestle_module_t* module;
  pestle_status_t status = import_in(context, file->data, file->size, &module);
  const char* message = pestle_status_message(status);
  bool is_right = pestle_status_code(status) == code &&
                  (!code || (strstr(message, text) && !module));
  if (!is_right)
    print_error("%s: %s '%s', expected '%s'\n", name,
                pestle_status_code_name(pestle_status_code(status)), message,
                text ? text : "");
  assert_true(is_right);
  pestle_status_release(status);
  pestle_module_release(module);
  free(file->data);
  *file = (buf_t){0};
}

// --- What all files here begin with ---

// Numbers in zigzag.
#define Z(value) ((uint64_t)(value) << 1)
#define MINUS(value) (((uint64_t)(value) << 1) - 1)

// Indices of what begin() makes.
enum { S_X, S_FILE, S_SIGNS, S_NINE, S_EMPTY, S_KEY, S_BARE, S_BRACE };
enum {
  T_F32,
  T_I64,
  T_I1,
  T_INDEX,
  T_TENSOR,
  T_FUNCTION,
  T_F80,
  T_F64,
  T_I32,
  T_EMPTY,
  T_MASK,
  T_DYNAMIC,
  T_I4,
  T_I4S,
  T_TF32,
  T_TF32S,
  T_NEXT
};
enum {
  A_X,
  A_SIGNS,
  A_FIVE,
  A_SYMBOL,
  A_NONE,
  A_UNIT,
  A_NINE,
  A_MINUS,
  A_SUB,
  A_BARE,
  A_BRACE,
  A_FLOAT,
  A_ODD_SYMBOL
};

static void begin(bc_t* b) {
  *b = (bc_t){.format = 6};
  static const char* const strings[] = {"x", "my file",  "a\"\\\n$",  "9",
                                        "",  "my.thing", "azAZ09_$.", "a{:"};
  for (size_t i = 0; i < sizeof(strings) / sizeof(*strings); ++i)
    bc_string(b, strings[i]);
  bc_element(b, BC_F32);
  bc_element(b, BC_I64);
  bc_element(b, BC_I1);
  bc_element(b, BC_INDEX);
  bc_tensor(b, T_F32, 1, (int64_t[]){2});
  bc_function(b, T_TENSOR, T_TENSOR);
  BC_TYPE(b, BC_BUILTIN, 7);
  bc_element(b, 5);
  bc_element(b, BC_I32);
  bc_tensor(b, T_F32, 1, (int64_t[]){0});
  bc_tensor(b, T_I1, 1, (int64_t[]){9});
  bc_tensor(b, T_F32, 1, (int64_t[]){INT64_MIN});
  bc_tensor(b, bc_element(b, 10), 1, (int64_t[]){2});
  bc_tensor(b, bc_element(b, 34), 1, (int64_t[]){2});
  BC_ATTRIBUTE(b, BC_BUILTIN, 2, S_X);
  BC_ATTRIBUTE(b, BC_VHLO, 14, S_SIGNS);
  BC_ATTRIBUTE(b, BC_VHLO, 9, T_I64, Z(5));
  BC_ATTRIBUTE(b, BC_BUILTIN, 4, A_X);
  BC_ATTRIBUTE(b, BC_VHLO, 1, 0);
  BC_ATTRIBUTE(b, BC_BUILTIN, 7);
  BC_ATTRIBUTE(b, BC_BUILTIN, 2, S_NINE);
  BC_ATTRIBUTE(b, BC_BUILTIN, 8, T_I32, MINUS(3));
  BC_ATTRIBUTE(b, BC_SDY, 3, Z(2), Z(4));
  BC_ATTRIBUTE(b, BC_BUILTIN, 2, S_BARE);
  BC_ATTRIBUTE(b, BC_BUILTIN, 2, S_BRACE);
  BC_ATTRIBUTE(b, BC_VHLO, 8, T_F32, Z(0x3FC00000));
  BC_ATTRIBUTE(b, BC_BUILTIN, 4, A_SIGNS);
}

// A module without functions and with |attributes|, a dictionary's index.
static buf_t module_with(bc_t* b, uint32_t attributes) {
  buf_t top = {0}, none = {0};
  bc_op_t module = {.name = bc_name(b, BC_BUILTIN, "module"),
                    .attributes = attributes + 1,
                    .region_count = 1,
                    .isolated = true};
  module.regions[0] = bc_region(0, NULL, 0, 0, &none);
  buf_varint(&top, 1 << 1);
  bc_put_op(b, &top, &module);
  return bc_file_of(b, &top);
}

// --- Attributes ---

#define MOST 24
typedef struct attribute_t {
  uint32_t dialect;
  size_t count;
  uint64_t numbers[MOST];
  const char* raw;  // behind them
  size_t raw_size;
  pestle_status_code_t code;
  const char* text;  // of the attribute, or of the refusal
} attribute_t;

#define NUMBERS(...)                                      \
  sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), { \
    __VA_ARGS__                                           \
  }
#define GOOD(dialect, text, ...) \
  {BC_##dialect, NUMBERS(__VA_ARGS__), NULL, 0, PESTLE_STATUS_OK, text}
#define BAD(dialect, code, text, ...) \
  {BC_##dialect, NUMBERS(__VA_ARGS__), NULL, 0, PESTLE_STATUS_##code, text}
#define RAW(dialect, code, text, raw, ...)     \
  {BC_##dialect,    NUMBERS(__VA_ARGS__), raw, \
   sizeof(raw) - 1, PESTLE_STATUS_##code, text}

static const attribute_t attributes[] = {
    GOOD(VHLO, "true", 2, 1),
    GOOD(VHLO, "false", 2, 0),
    GOOD(VHLO, "5 : i64", 9, T_I64, Z(5)),
    GOOD(VHLO, "-3 : i32", 9, T_I32, MINUS(3)),
    GOOD(VHLO, "4294967295 : i64", 9, T_I64, Z(UINT32_MAX)),
    GOOD(VHLO, "1.500000e+00 : f32", 8, T_F32, Z(0x3FC00000)),
    GOOD(VHLO, "1.000000e-01 : f64", 8, T_F64, Z(0x3FB999999999999A)),
    GOOD(VHLO, "3.333333333333333e-01 : f64", 8, T_F64, Z(0x3FD5555555555555)),
    GOOD(VHLO, "0x7FF0000000000000 : f64", 8, T_F64, Z(0x7FF0000000000000)),
    GOOD(VHLO, "\"a\\22\\\\\\0A$\"", 14, S_SIGNS),
    GOOD(VHLO, "[5, \"x\", -3 : i32, unit, @x]", 1, 5, A_FIVE, A_X, A_MINUS,
         A_UNIT, A_SYMBOL),
    GOOD(VHLO, "[]", 1, 0),
    GOOD(VHLO, "[1.500000e+00 : f32, 5]", 1, 2, A_FLOAT, A_FIVE),
    GOOD(VHLO, "{\"a{:\" = 5 : i64}", 6, 1, A_BRACE, A_FIVE),
    GOOD(VHLO, "tf32", 17, T_TF32S),
    GOOD(VHLO, "{x = 5 : i64, \"9\" = -3 : i32}", 6, 2, A_X, A_FIVE, A_NINE,
         A_MINUS),
    GOOD(VHLO, "{\"a\\22\\\\\\0A$\" = [], x}", 6, 2, A_SIGNS, A_NONE, A_X,
         A_UNIT),
    GOOD(VHLO, "2147483647 : i32", 5, UINT64_C(99999999999)),
    GOOD(VHLO, "7 : i32", 5, 7),
    GOOD(VHLO, "EQ", 3, 0),
    GOOD(VHLO, "ADJOINT", 16, 3),
    GOOD(VHLO,
         "{output_tuple_indices = [1, 2], operand_index = 3, "
         "operand_tuple_indices = []}",
         10, 2, Z(1), Z(2), Z(3), 0),
    GOOD(VHLO, "{pre_size = 1, size = 2}", 21, Z(1), Z(2)),
    GOOD(VHLO, "{name = \"x\"}", 22, A_X, 0),
    GOOD(VHLO, "{name = \"x\", sub_axis_info = 5 : i64}", 22, A_X, 1, A_FIVE),
    GOOD(VHLO, "{mesh = @x, axes = []}", 23, A_SYMBOL, A_NONE),
    GOOD(VHLO, "{name = \"x\", size = 2}", 24, A_X, Z(2)),
    GOOD(VHLO, "{axes = []}", 25, A_NONE, 0),
    GOOD(VHLO, "{axes = [], device_ids = 5 : i64}", 25, A_NONE,
         A_FIVE << 1 | 1),
    GOOD(VHLO, "f32", 17, T_F32),
    GOOD(VHLO, "tensor<2xf32>", 17, T_TENSOR),
    GOOD(VHLO, NULL, 0),
    GOOD(BUILTIN, "\"x\"", 2, S_X),
    GOOD(BUILTIN, "\"x\"", 3, S_X, T_F32),
    GOOD(BUILTIN, "@x", 4, A_X),
    GOOD(BUILTIN, "@\"9\"", 4, A_NINE),
    GOOD(BUILTIN, "@\"a\\22\\\\\\0A$\"", 4, A_SIGNS),
    GOOD(BUILTIN, "@azAZ09_$.", 4, A_BARE),
    GOOD(BUILTIN, "@\"a{:\"", 4, A_BRACE),
    GOOD(VHLO, "{azAZ09_$. = \"azAZ09_$.\"}", 6, 1, A_BARE, A_BARE),
    GOOD(BUILTIN, NULL, 5, A_X, 0),
    GOOD(BUILTIN, "tensor<?xf32>", 6, T_DYNAMIC),
    GOOD(BUILTIN, "", 7),
    GOOD(BUILTIN, "1.500000e+00 : f32", 9, T_F32, Z(0x3FC00000)),
    GOOD(BUILTIN, "array<i64>", 17, T_I64, 0, 0),
    RAW(BUILTIN, OK, "array<i32: 1, -1>", "\1\0\0\0\xff\xff\xff\xff", 17, T_I32,
        2, 8),
    RAW(BUILTIN, OK, "array<i1: true, false>", "\1\0", 17, T_I1, 2, 2),
    RAW(BUILTIN, OK, NULL, "\0\0\0\0", 17, T_F32, 1, 4),
    RAW(BUILTIN, OK, "dense<[1.0, 2.0]> : tensor<2xf32>",
        "\0\0\x80\x3f\0\0\0\x40", 18, T_TENSOR, 8),
    RAW(BUILTIN, OK, "dense<1.0> : tensor<2xf32>", "\0\0\x80\x3f", 18, T_TENSOR,
        4),
    RAW(BUILTIN, OK, "dense<> : tensor<0xf32>", "\0\0\x80\x3f", 18, T_EMPTY, 4),
    RAW(BUILTIN, OK,
        "dense<[true, true, false, false, false, false, false, false, true]> : "
        "tensor<9xi1>",
        "\3\1", 18, T_MASK, 2),
    RAW(BUILTIN, OK,
        "dense<[true, true, false, false, false, false, false, false, true]> : "
        "tensor<9xi1>",
        "\3\1\0\0\0\0\0\0\xff", 18, T_MASK, 9),
    RAW(BUILTIN, OK, "dense<true> : tensor<9xi1>", "\xff", 18, T_MASK, 1),
    RAW(BUILTIN, OK, "dense<[1, -1]> : tensor<2xi4>", "\1\x0f", 18, T_I4S, 2),
    GOOD(STABLEHLO, "EQ", 2, 0),
    GOOD(STABLEHLO, "HIGHEST", 16, 1),
    GOOD(STABLEHLO, "{handle = 1, type = 2}", 1, Z(1), Z(2)),
    GOOD(STABLEHLO, NULL, 4, Z(0), Z(1), 1, Z(2), Z(0), Z(1), 1, Z(2), Z(0),
         Z(1), 1, Z(2)),
    GOOD(STABLEHLO,
         "{lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], "
         "lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]}",
         5, 1, Z(0), 1, Z(0), 1, Z(2), 1, Z(1)),
    GOOD(STABLEHLO,
         "{offset_dims = [], collapsed_slice_dims = [0], "
         "operand_batching_dims = [], start_indices_batching_dims = [], "
         "start_index_map = [1], index_vector_dim = 1}",
         7, 0, 1, Z(0), 0, 0, 1, Z(1), Z(1)),
    GOOD(STABLEHLO,
         "{update_window_dims = [], inserted_window_dims = [0], "
         "input_batching_dims = [], scatter_indices_batching_dims = [], "
         "scatter_dims_to_operand_dims = [1], index_vector_dim = 1}",
         11, 0, 1, Z(0), 0, 0, 1, Z(1), Z(1)),
    GOOD(STABLEHLO,
         "{output_tuple_indices = [], operand_index = 0, "
         "operand_tuple_indices = [1]}",
         14, 0, Z(0), 1, Z(1)),
    RAW(STABLEHLO, OK,
        "{lhs_precision_type = f32, rhs_precision_type = f32, "
        "accumulation_type = f32, lhs_component_count = 1, "
        "rhs_component_count = 1, num_primitive_operations = 3, "
        "allow_imprecise_accumulation = true}",
        "\1", 15, T_F32, T_F32, T_F32, Z(1), Z(1), Z(3)),
    GOOD(STABLEHLO, "{mesh = @x, axes = [\"x\"]}", 18, A_SYMBOL, 1, A_X),
    GOOD(STABLEHLO, "{pre_size = 2, size = 4}", 19, Z(2), Z(4)),
    RAW(STABLEHLO, OK, "{name = \"x\"}", "\0", 20, S_X),
    RAW(STABLEHLO, OK, "{name = \"x\", sub_axis_info = \"x\"}", "\1\1", 20,
        S_X),
    GOOD(STABLEHLO, "{name = \"x\", size = 2}", 21, S_X, Z(2)),
    RAW(STABLEHLO, OK, "{axes = []}", "\0", 22, A_NONE),
    RAW(STABLEHLO, OK, "{axes = [], device_ids = \"x\"}", "\1\1", 22, A_NONE),
    GOOD(STABLEHLO, NULL, 99, 1, 2, 3),
    GOOD(CHLO, "NE", 0, 1),
    GOOD(CHLO, "TOTALORDER", 1, 2),
    GOOD(CHLO, NULL, 9, 9),
    GOOD(SDY, "#sdy<manual_axes{\"x\", \"9\"}>", 0, 2, A_X, A_NINE),
    GOOD(SDY, "\"x\"=4", 1, S_X, Z(4)),
    GOOD(SDY, "#sdy.mesh<[\"x\"]>", 2, 1, A_X, 0),
    GOOD(SDY, "#sdy.mesh<[], device_ids=[1, 0]>", 2, 0, 2, Z(1), Z(0)),
    GOOD(SDY, ":(2)4", 3, Z(2), Z(4)),
    GOOD(SDY, "\"x\"", 4, S_X, 0),
    GOOD(SDY, "\"x\"", 4, S_X, A_UNIT << 1 | 1),
    GOOD(SDY, "\"x\":(2)4", 4, S_X, A_SUB << 1 | 1),
    RAW(SDY, OK, "{\"x\", ?}p3", "\0\x0f", 5, 1, A_X),
    RAW(SDY, OK, "{?}", "\0\1", 5, 0),
    RAW(SDY, OK, "{}", "\1\1", 5, 0),
    GOOD(SDY, "#sdy.sharding<@\"x\", []>", 6, A_SYMBOL, 0, 0),
    GOOD(SDY, "#sdy.sharding<@\"x\", [\"x\"], replicated={\"9\"}>", 6, A_SYMBOL,
         1, A_X, 1, A_NINE),
    GOOD(SDY, "#sdy.sharding<@\"a\\\"\\\\\\n$\", []>", 6, A_ODD_SYMBOL, 0, 0),
    GOOD(SDY, "#sdy.sharding<, []>", 6, A_UNIT, 0, 0),
    GOOD(SDY, "#sdy.sharding_per_value<[]>", 7, 0),
    GOOD(SDY, "#sdy.sharding_per_value<[, ]>", 7, 2, A_UNIT, A_NONE),
    GOOD(SDY, "#sdy.sharding<@\"x\", [], unreduced={\"x\"}>", 15, A_SYMBOL, 0,
         0, 1, A_X),
    GOOD(SDY, "#sdy.sharding_per_value<[]>", 16, 0),
    GOOD(SDY, "#sdy.sharding<@\"x\", [], unreduced={\"x\"}>", 17, A_SYMBOL, 0,
         0, 1, A_X, Z(0)),
    GOOD(SDY, "#sdy.sharding<@\"x\", [], unreduced={\"x\"}, reduction=2>", 17,
         A_SYMBOL, 0, 0, 1, A_X, Z(2)),
    GOOD(SDY, NULL, 99, 1),
    GOOD(OTHER, NULL, 1, 2, 3),
    // Wrong.
    BAD(VHLO, UNSUPPORTED, "attribute 26 of vhlo is newer than", 26),
    BAD(VHLO, MALFORMED, "a case that an enumeration has not", 3, 6),
    BAD(VHLO, MALFORMED, "a case that an enumeration has not", 13, 0),
    BAD(VHLO, MALFORMED, "a case that an enumeration has not", 19, 3),
    BAD(VHLO, UNSUPPORTED, "a number of type 'i64' is not supported", 8, T_I64,
        Z(5)),
    BAD(VHLO, UNSUPPORTED, "numbers of type 'f80' are not supported", 8, T_F80,
        Z(5)),
    BAD(VHLO, UNSUPPORTED, "a number of type 'tf32' is not supported", 8,
        T_TF32, Z(5)),
    BAD(VHLO, MALFORMED, "a number of no number's type", 9, T_TENSOR, Z(5)),
    BAD(VHLO, MALFORMED, "a number of no number's type", 8, T_FUNCTION, Z(5)),
    BAD(VHLO, MALFORMED, "a key that is no string", 6, 1, A_FIVE, A_FIVE),
    BAD(VHLO, MALFORMED, "attribute 999 of", 1, 1, 999),
    BAD(VHLO, MALFORMED, "a count of more than the file holds", 1, 100),
    BAD(VHLO, MALFORMED, "string 999 of", 14, 999),
    BAD(VHLO, MALFORMED, "type 999 of", 17, 999),
    BAD(VHLO, MALFORMED, "bytes behind an attribute", 2, 1, 1),
    BAD(VHLO, MALFORMED, "it is cut off", 2),
    BAD(VHLO, MALFORMED, "it is cut off", 22, A_X),
    BAD(VHLO, MALFORMED, "it is cut off", 25, A_NONE),
    BAD(VHLO, MALFORMED, "attribute 4999 of", 25, A_NONE, 9999),
    BAD(VHLO, MALFORMED, "it is cut off", 10, 1, Z(1)),
    BAD(BUILTIN, MALFORMED, "a symbol that is no string", 4, A_FIVE),
    BAD(BUILTIN, MALFORMED, "string 999 of", 3, 999, 1),
    BAD(BUILTIN, MALFORMED, "resource 0 of 0", 16, T_TENSOR, 0),
    BAD(BUILTIN, MALFORMED, "an array of another size than it says", 17, T_I4,
        0, 0),
    RAW(BUILTIN, MALFORMED, "an array of another size than it says", "\1\0\0\0",
        17, T_I32, 2, 4),
    RAW(BUILTIN, MALFORMED, "an array of another size than it says",
        "\1\0\0\0\0", 17, T_I32, 1, 5),
    RAW(BUILTIN, MALFORMED, "an array of another size than it says", "\1", 17,
        T_TENSOR, 1, 1),
    RAW(BUILTIN, MALFORMED, "an array of another size than it says",
        "0123456789", 17, T_F80, 1, 10),
    RAW(BUILTIN, MALFORMED, "constant data of another size", "\1\2\3", 18,
        T_TENSOR, 3),
    RAW(BUILTIN, UNSUPPORTED, "type 'f32' is not supported", "\1\2\3\4", 18,
        T_F32, 4),
    RAW(BUILTIN, MALFORMED, "constant data of no tensor's type", "\1\2\3\4", 18,
        T_DYNAMIC, 4),
    BAD(STABLEHLO, MALFORMED, "a case that an enumeration has not", 9, 5),
    BAD(STABLEHLO, MALFORMED, "too many dimensions", 4, Z(0), Z(1), 17, 1, 1, 1,
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1),
    BAD(STABLEHLO, MALFORMED, "it is cut off", 15, T_F32, T_F32, T_F32, Z(1),
        Z(1), Z(3)),
    BAD(STABLEHLO, MALFORMED, "it is cut off", 15, T_F32, T_F32, T_F32, Z(1)),
    BAD(STABLEHLO, MALFORMED, "it is cut off", 15, T_F32, T_F32, T_F32),
    BAD(STABLEHLO, MALFORMED, "type 999 of", 15, 999, T_F32, T_F32),
    BAD(STABLEHLO, MALFORMED, "it is cut off", 20, S_X),
    BAD(STABLEHLO, MALFORMED, "it is cut off", 22, A_NONE),
    BAD(CHLO, MALFORMED, "a case that an enumeration has not", 1, 5),
    BAD(SDY, MALFORMED, "it is cut off", 5, 1, A_X),
    RAW(SDY, MALFORMED, "a number is cut off", "\2", 2, 0, 1),
    BAD(SDY, MALFORMED, "it is cut off", 3, Z(2)),
    BAD(SDY, MALFORMED, "it is cut off", 17, A_SYMBOL, 0, 0, 1, A_X),
    BAD(SDY, MALFORMED, "attribute 999 of", 15, A_SYMBOL, 0, 0, 1, 999),
};
enum { ATTRIBUTES = sizeof(attributes) / sizeof(*attributes) };

static uint32_t put_attribute(bc_t* b, const attribute_t* a) {
  uint32_t index = bc_attribute(b, a->dialect, a->numbers, a->count);
  buf_raw(&b->attributes[index].bytes, a->raw ? a->raw : "", a->raw_size);
  return index;
}

static uint32_t put_key(bc_t* b, const char* key) {
  return BC_ATTRIBUTE(b, BC_BUILTIN, 2, bc_string(b, key));
}

static void test_attributes(void** state) {
  (void)state;
  for (size_t i = 0; i < ATTRIBUTES; ++i) {
    const attribute_t* a = &attributes[i];
    char name[64];
    snprintf(name, sizeof(name), "attribute %zu", i);
    bc_t b;
    begin(&b);
    uint32_t value = put_attribute(&b, a), key = put_key(&b, "my.thing");
    buf_t file =
        module_with(&b, BC_ATTRIBUTE(&b, BC_BUILTIN, 1, 1, key, value));
    if (a->code) {
      expect(name, &file, a->code, a->text);
      continue;
    }
    pestle_module_t* module;
    pestle_status_t status = import_in(context, file.data, file.size, &module);
    if (status) print_error("%s\n", name);
    assert_ok(status);
    const char* text = pestle_module_attribute(module, "my.thing");
    if (a->text && (!text || strcmp(text, a->text) != 0))
      print_error("%s: '%s', expected '%s'\n", name, text ? text : "(none)",
                  a->text);
    assert_non_null(text);
    if (a->text) assert_string_equal(text, a->text);
    pestle_module_release(module);
    free(file.data);
  }
}

// Attributes that are written as text, with and without an end.
static void test_texts(void** state) {
  (void)state;
  static const struct {
    const char* text;
    size_t size;
    pestle_status_code_t code;
    const char* expected;
  } rows[] = {
      {"[1, 2]", 7, PESTLE_STATUS_OK, NULL},
      {"#my.attr<3>", 12, PESTLE_STATUS_OK, NULL},
      {"[1, 2", 6, PESTLE_STATUS_MALFORMED, "expected ']'"},
      {"1 2", 4, PESTLE_STATUS_MALFORMED, "expected the end of the attribute"},
      {"[1, 2]", 6, PESTLE_STATUS_MALFORMED, "a text without its terminator"},
      {"", 0, PESTLE_STATUS_MALFORMED, "a text without its terminator"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
    bc_t b;
    begin(&b);
    uint32_t key = put_key(&b, "my.thing");
    uint32_t value = (uint32_t)b.attribute_count++;
    b.attributes[value].dialect = BC_OTHER;
    b.attributes[value].is_text = true;
    buf_raw(&b.attributes[value].bytes, rows[i].text, rows[i].size);
    buf_t file =
        module_with(&b, BC_ATTRIBUTE(&b, BC_BUILTIN, 1, 1, key, value));
    expect(rows[i].text, &file, rows[i].code, rows[i].expected);
  }
}

static void test_no_dictionary(void** state) {
  (void)state;
  bc_t b;
  begin(&b);
  buf_t file = module_with(&b, A_FIVE);
  expect("no dictionary", &file, PESTLE_STATUS_MALFORMED,
         "its attributes are no dictionary");
  begin(&b);
  uint32_t self = BC_ATTRIBUTE(&b, BC_VHLO, 1, 1, b.attribute_count);
  file = module_with(
      &b, BC_ATTRIBUTE(&b, BC_BUILTIN, 1, 1, put_key(&b, "my.x"), self));
  expect("a list in itself", &file, PESTLE_STATUS_MALFORMED,
         "nested more than");
}

// Texts of parts of parts, which few bytes can name, and many that are long.
static void test_long_texts(void** state) {
  (void)state;
  enum { PARTS = 16, DEPTH = 6 };
  for (int sdy = 0; sdy < 2; ++sdy) {
    bc_t b;
    begin(&b);
    uint32_t value = A_FIVE, key = put_key(&b, "my.thing");
    for (int depth = 0; depth < DEPTH; ++depth) {
      uint64_t numbers[2 + 2 * PARTS] = {sdy ? 0 : 6, PARTS};
      for (int i = 0; i < PARTS; ++i) {
        numbers[2 + (sdy ? i : 2 * i)] = sdy ? (depth ? value : A_BARE) : A_X;
        if (!sdy) numbers[3 + 2 * i] = value;
      }
      value = bc_attribute(&b, sdy ? BC_SDY : BC_VHLO, numbers,
                           2 + (sdy ? PARTS : 2 * PARTS));
    }
    buf_t file =
        module_with(&b, BC_ATTRIBUTE(&b, BC_BUILTIN, 1, 1, key, value));
    expect("deep", &file, PESTLE_STATUS_RESOURCE_EXHAUSTED,
           sdy ? "the text of a sharding is longer than a mebibyte"
               : "the text of an attribute is longer than a mebibyte");
  }
  // 64 MiB in all, each a little less than one.
  enum { SIZE = (1 << 20) - 64, COUNT = 65 };
  static char keys[COUNT][16];
  char* text = malloc(SIZE + 1);
  memset(text, 'a', SIZE);
  text[SIZE] = 0;
  for (int less = 0; less < 2; ++less) {
    bc_t b;
    begin(&b);
    uint32_t value = BC_ATTRIBUTE(&b, BC_BUILTIN, 2, bc_string(&b, text));
    size_t count = less ? 2 : COUNT;
    uint64_t numbers[2 + 2 * COUNT] = {1, count};
    for (size_t i = 0; i < count; ++i) {
      snprintf(keys[i], sizeof(keys[i]), "my.%zu", i);
      numbers[2 + 2 * i] = put_key(&b, keys[i]);
      numbers[3 + 2 * i] = value;
    }
    buf_t file =
        module_with(&b, bc_attribute(&b, BC_BUILTIN, numbers, 2 + 2 * count));
    expect("long texts", &file,
           less ? PESTLE_STATUS_OK : PESTLE_STATUS_RESOURCE_EXHAUSTED,
           "or all are longer than 64");
  }
  free(text);
}

// --- Types ---

static buf_t function_of(bc_t* b, uint32_t type) {
  buf_t ops = {0};
  bc_op_t end = {.name = bc_name(b, BC_VHLO, "return_v1"),
                 .operands = {0},
                 .operand_count = 1};
  bc_put_op(b, &ops, &end);
  buf_t ir = bc_main(b, type, 1, 1, &ops);
  return bc_file_of(b, &ir);
}

static const attribute_t types[] = {
    GOOD(VHLO, NULL, 20, 2, Z(3), Z(4), T_F32),
    GOOD(VHLO, NULL, 21, A_X, 1, Z(3), T_F32),
    GOOD(VHLO, NULL, 23, 2, T_TENSOR, T_TENSOR),
    GOOD(BUILTIN, NULL, 13, 1, Z(3), T_F32),
    GOOD(BUILTIN, NULL, 14, A_X, 1, Z(3), T_F32),
    GOOD(BUILTIN, NULL, 15, 1, T_TENSOR),
    GOOD(VHLO, NULL, 22),
    GOOD(STABLEHLO, NULL, 0),
    BAD(VHLO, UNSUPPORTED, "type '!shape.witness' is not supported", 26),
    BAD(VHLO, UNSUPPORTED, "type 'none' is not supported", 33),
    BAD(VHLO, UNSUPPORTED, "type 'memref' is not supported", 41, 1),
    BAD(VHLO, UNSUPPORTED, "type '!stablehlo.future' is not supported", 42, 0),
    BAD(VHLO, UNSUPPORTED, "type 43 of vhlo is newer than StableHLO", 43),
    BAD(VHLO, UNSUPPORTED, "type 'f32' is not supported", 4),
    BAD(VHLO, UNSUPPORTED, "values that are functions", 8, 0, 0),
    BAD(VHLO, UNSUPPORTED, "values that are functions", 23, 1, T_FUNCTION),
    BAD(VHLO, UNSUPPORTED, "a tensor has 17 dimensions; at most 16", 20, 17, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, T_F32),
    BAD(VHLO, MALFORMED, "a negative extent", 20, 1, MINUS(3), T_F32),
    BAD(VHLO, MALFORMED, "a tensor of no elements' type", 20, 0, T_TENSOR),
    BAD(VHLO, MALFORMED, "2^63", 20, 2, Z(UINT64_C(1) << 40),
        Z(UINT64_C(1) << 40), T_F32),
    BAD(VHLO, MALFORMED, "attribute 999 of", 21, 999, 0, T_F32),
    BAD(VHLO, UNSUPPORTED, "element type 'f80' is not supported", 20, 0, T_F80),
    BAD(VHLO, UNSUPPORTED, "complex numbers of 'i64' are not supported", 1,
        T_I64),
    BAD(VHLO, UNSUPPORTED, "complex numbers of 'f32' are not supported", 1,
        T_TENSOR),
    BAD(VHLO, MALFORMED, "bytes behind a type", 22, 1),
    BAD(VHLO, MALFORMED, "type 999 of", 23, 1, 999),
    BAD(VHLO, MALFORMED, "a count of more than the file holds", 8, 0, 99),
    BAD(VHLO, MALFORMED, "a count of more than the file holds", 8, 99, 0),
    BAD(BUILTIN, UNSUPPORTED, "type 'none' is not supported", 12),
    BAD(BUILTIN, UNSUPPORTED, "type 'a type that StableHLO has not'", 99, 1),
    BAD(BUILTIN, UNSUPPORTED, "type 'i7' is not supported", 0, 7 << 2),
    BAD(BUILTIN, UNSUPPORTED, "type 'si8' is not supported", 0, 8 << 2 | 1),
    BAD(BUILTIN, UNSUPPORTED, "type 'ui100000'", 0, 100000 << 2 | 2),
    BAD(BUILTIN, MALFORMED, "of an impossible width", 0, 8 << 2 | 3),
    BAD(BUILTIN, MALFORMED, "of an impossible width", 0, UINT64_C(1) << 40),
    BAD(QUANT, UNSUPPORTED, "type 'a quantised type that is not uniform'", 9,
        1),
    BAD(OTHER, UNSUPPORTED, "type 'my' is not supported", 1, 2),
};

static void test_types(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof(types) / sizeof(*types); ++i) {
    bc_t b;
    char name[64];
    snprintf(name, sizeof(name), "type %zu", i);
    begin(&b);
    uint32_t type =
        bc_type(&b, types[i].dialect, types[i].numbers, types[i].count);
    buf_t file = function_of(&b, type);
    expect(name, &file, types[i].code, types[i].text);
  }
  // As text: an element of its dialect, and something else.
  static const char* const texts[] = {"f32", "!my.type"};
  for (size_t i = 0; i < 2; ++i) {
    bc_t b;
    begin(&b);
    uint32_t element = (uint32_t)b.type_count++;
    b.types[element].dialect = BC_BUILTIN;
    b.types[element].is_text = true;
    buf_raw(&b.types[element].bytes, texts[i], strlen(texts[i]) + 1);
    uint32_t type = i ? element : bc_tensor(&b, element, 0, NULL);
    buf_t file = function_of(&b, type);
    expect(texts[i], &file, i ? PESTLE_STATUS_UNSUPPORTED : PESTLE_STATUS_OK,
           "type '!my.type' is not supported");
  }
}

// f32 that are i8, alone or along an axis.
#define SCALE Z(0x3FE0000000000000)

static const attribute_t quantised_along =
    GOOD(QUANT, NULL, 5, 1, T_NEXT, T_F32, 0, MINUS(128), Z(127), 2, SCALE,
         SCALE, 2, Z(0), Z(1));

static buf_t quantised_file(const attribute_t* row) {
  bc_t b;
  begin(&b);
  assert_int_equal(bc_element(&b, 11), T_NEXT);  // i8
  uint32_t element = bc_type(&b, row->dialect, row->numbers, row->count);
  uint32_t type = bc_tensor(&b, element, 1, (int64_t[]){2});
  return function_of(&b, type);
}

static void test_quantised(void** state) {
  (void)state;
  static const attribute_t rows[] = {
      GOOD(QUANT, NULL, 4, 1, T_NEXT, T_F32, SCALE, Z(3), MINUS(128), Z(127)),
      GOOD(VHLO, NULL, 24, 0, T_NEXT, T_F32, SCALE, Z(3), Z(0), Z(255)),
      BAD(VHLO, MALFORMED, "a range that its storage has not", 24, 1, T_NEXT,
          T_F32, SCALE, Z(3), MINUS(129), Z(127)),
      BAD(VHLO, MALFORMED, "a range that its storage has not", 24, 1, T_NEXT,
          T_F32, SCALE, Z(3), MINUS(128), Z(128)),
      BAD(VHLO, MALFORMED, "a range that its storage has not", 24, 1, T_NEXT,
          T_F32, SCALE, Z(3), Z(5), Z(4)),
      BAD(VHLO, MALFORMED, "a scale that is no positive number", 24, 1, T_NEXT,
          T_F32, Z(0x7FF0000000000000), Z(3), MINUS(128), Z(127)),
      BAD(VHLO, UNSUPPORTED, "'i64' that stand for 'f32'", 24, 1, T_I64, T_F32),
      BAD(VHLO, UNSUPPORTED, "'f32' that stand for 'f32'", 24, 1, T_F32, T_F32),
      BAD(VHLO, UNSUPPORTED, "'i8' that stand for 'i64'", 24, 1, T_NEXT, T_I64),
      BAD(VHLO, UNSUPPORTED, "'i8' that stand for 'f32'", 24, 1, T_NEXT,
          T_TENSOR),
      BAD(VHLO, UNSUPPORTED, "'f32' that stand for 'f32'", 24, 1, T_TENSOR,
          T_F32),
      BAD(VHLO, MALFORMED, "axis 16 of 16", 30, 1, T_NEXT, T_F32, 16),
      BAD(VHLO, MALFORMED, "not as many zeros as scales", 30, 1, T_NEXT, T_F32,
          0, MINUS(128), Z(127), 0, 0),
      BAD(VHLO, MALFORMED, "not as many zeros as scales", 30, 1, T_NEXT, T_F32,
          0, MINUS(128), Z(127), 1, SCALE, 2, Z(0), Z(0)),
      BAD(VHLO, MALFORMED, "a scale that is no positive number", 30, 1, T_NEXT,
          T_F32, 0, MINUS(128), Z(127), 1, MINUS(1), 1, Z(0)),
      BAD(VHLO, MALFORMED, "a count of more than the file holds", 30, 1, T_NEXT,
          T_F32, 0, MINUS(128), Z(127), 90),
      BAD(VHLO, MALFORMED, "it is cut off", 24),
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
    char name[64];
    snprintf(name, sizeof(name), "quantised type %zu", i);
    buf_t file = quantised_file(&rows[i]);
    expect(name, &file, rows[i].code, rows[i].text);
  }
  buf_t file = quantised_file(&quantised_along);
  expect("along an axis", &file, PESTLE_STATUS_OK, NULL);
}

// --- Locations ---

static void test_locations(void** state) {
  (void)state;
  enum { FILE_AT = 100 };
  static const struct {
    uint32_t dialect;
    size_t count;
    uint64_t numbers[8];
    const char *name, *file;
    uint32_t line, column;
  } rows[] = {
      {BC_BUILTIN, NUMBERS(11, A_X, 3, 4), NULL, "x", 3, 4},
      {BC_BUILTIN, NUMBERS(11, A_X, UINT64_C(1) << 40, 4), NULL, "x", 0, 4},
      {BC_BUILTIN, NUMBERS(11, A_FIVE, 3, 4), NULL, NULL, 0, 0},
      {BC_BUILTIN, NUMBERS(22, A_X, 4, 3, 4, 5, 6), NULL, "x", 3, 4},
      {BC_BUILTIN, NUMBERS(22, A_X, 1, 3), NULL, "x", 3, 0},
      {BC_BUILTIN, NUMBERS(14, A_NINE, FILE_AT), "9", "my file", 7, 8},
      {BC_BUILTIN, NUMBERS(14, A_FIVE, FILE_AT), NULL, "my file", 7, 8},
      {BC_BUILTIN, NUMBERS(10, FILE_AT, A_X), NULL, "my file", 7, 8},
      {BC_BUILTIN, NUMBERS(10, A_FIVE, FILE_AT), NULL, "my file", 7, 8},
      {BC_BUILTIN, NUMBERS(12, 2, A_FIVE, FILE_AT), NULL, "my file", 7, 8},
      {BC_BUILTIN, NUMBERS(13, 2, FILE_AT, A_FIVE, A_X), NULL, "my file", 7, 8},
      {BC_BUILTIN, NUMBERS(12, 0), NULL, NULL, 0, 0},
      {BC_BUILTIN, NUMBERS(15), NULL, NULL, 0, 0},
      {BC_VHLO, NUMBERS(11, A_X, 3, 4), NULL, NULL, 0, 0},
      // In itself: what is further in is left out.
      {BC_BUILTIN, NUMBERS(14, A_NINE, FILE_AT + 1), "9", NULL, 0, 0},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
    bc_t b;
    begin(&b);
    uint32_t name = BC_ATTRIBUTE(&b, BC_BUILTIN, 2, S_FILE);
    while (b.attribute_count < FILE_AT)
      BC_ATTRIBUTE(&b, BC_BUILTIN, 7);
    BC_ATTRIBUTE(&b, BC_BUILTIN, 11, name, 7, 8);
    uint32_t location =
        bc_attribute(&b, rows[i].dialect, rows[i].numbers, rows[i].count);
    buf_t ops = {0};
    bc_op_t negate = {.name = bc_name(&b, BC_VHLO, "negate_v1"),
                      .location = location + 1,
                      .operands = {0},
                      .operand_count = 1,
                      .types = {T_TENSOR},
                      .type_count = 1};
    bc_op_t end = {.name = bc_name(&b, BC_VHLO, "return_v1"),
                   .operands = {1},
                   .operand_count = 1};
    bc_put_op(&b, &ops, &negate);
    bc_put_op(&b, &ops, &end);
    buf_t ir = bc_main(&b, T_TENSOR, 2, 2, &ops);
    buf_t file = bc_file_of(&b, &ir);
    pestle_module_t* module;
    assert_ok(import_in(context, file.data, file.size, &module));
    const pestle_loc_t* loc =
        &pestle_module_entry(module)->body->block->first->loc;
    assert_int_equal(loc->line, rows[i].line);
    assert_int_equal(loc->column, rows[i].column);
    // The file itself where nothing is said.
    const char* file_name = rows[i].file || loc->name ? rows[i].file : "x.bc";
    if (!file_name != !loc->file) print_error("location %zu\n", i);
    assert_int_equal(!file_name, !loc->file);
    if (file_name) assert_string_equal(loc->file, file_name);
    assert_int_equal(!loc->name, !rows[i].name);
    if (loc->name) assert_string_equal(loc->name, rows[i].name);
    pestle_module_release(module);
    free(file.data);
  }
}

// A location that is written as text is not read.
static void test_text_location(void** state) {
  (void)state;
  bc_t b;
  buf_t ops = {0};
  begin(&b);
  uint32_t location = (uint32_t)b.attribute_count++;
  b.attributes[location].dialect = BC_BUILTIN;
  b.attributes[location].is_text = true;
  buf_raw(&b.attributes[location].bytes, "\x15\x03\x07", 4);  // as a name's
  bc_op_t negate = {.name = bc_name(&b, BC_VHLO, "negate_v1"),
                    .location = location + 1,
                    .operands = {0},
                    .operand_count = 1,
                    .types = {T_TENSOR},
                    .type_count = 1};
  bc_op_t end = {.name = bc_name(&b, BC_VHLO, "return_v1"),
                 .operands = {1},
                 .operand_count = 1};
  bc_put_op(&b, &ops, &negate);
  bc_put_op(&b, &ops, &end);
  buf_t ir = bc_main(&b, T_TENSOR, 2, 2, &ops);
  buf_t file = bc_file_of(&b, &ir);
  pestle_module_t* module;
  assert_ok(import_in(context, file.data, file.size, &module));
  const pestle_loc_t* loc =
      &pestle_module_entry(module)->body->block->first->loc;
  assert_string_equal(loc->file, "x.bc");
  assert_null(loc->name);
  assert_int_equal(loc->line, 0);
  pestle_module_release(module);
  free(file.data);
}

// --- Sections ---

// A good file whose attribute my.data lies in a resource.
static buf_t resource_file(bool has_resource) {
  bc_t b;
  begin(&b);
  uint32_t key = put_key(&b, "my.data");
  uint32_t value =
      has_resource ? BC_ATTRIBUTE(&b, BC_BUILTIN, 16, T_TENSOR, 0) : A_FIVE;
  return module_with(&b, BC_ATTRIBUTE(&b, BC_BUILTIN, 1, 1, key, value));
}

// The sections of resources with one owner of one blob of 8 bytes; |padding| bytes
// before it, as |alignment| says from the file's beginning on.
static void put_resources(buf_t* file, uint64_t alignment, unsigned padding,
                          unsigned kind) {
  buf_t offsets = {0}, data = {0};
  buf_varint(&offsets, 0);
  buf_varint(&offsets, 0);  // its owner
  buf_varint(&offsets, 2);
  for (unsigned i = 0; i < 2; ++i) {
    buf_varint(&offsets, S_KEY);
    // The header is a number of alignment and one of the size.
    buf_varint(&offsets, i ? 0 : 1 + padding + 1 + 8);
    buf_byte(&offsets, kind);
  }
  buf_varint(&data, alignment);
  for (unsigned i = 0; i < padding; ++i)
    buf_byte(&data, 0xcb);
  buf_varint(&data, 8);
  buf_raw(&data, "\0\0\x80\x3f\0\0\0\x40", 8);
  buf_section(file, 6, &offsets);
  buf_section(file, 5, &data);
}

static void test_resources(void** state) {
  (void)state;
  buf_t file = resource_file(true);
  put_resources(&file, 1, 0, 0);
  pestle_module_t* module;
  assert_ok(import_in(context, file.data, file.size, &module));
  assert_string_equal(pestle_module_attribute(module, "my.data"),
                      "dense<[1.0, 2.0]> : tensor<2xf32>");
  pestle_module_release(module);
  // Aligned: as many bytes of padding as it takes, and no others.
  size_t good = 0;
  for (unsigned padding = 0; padding < 8; ++padding) {
    buf_t other = resource_file(true);
    put_resources(&other, 8, padding, 0);
    pestle_status_t status =
        import_in(context, other.data, other.size, &module);
    if (!status) {
      ++good;
    } else {
      assert_code(status, MALFORMED);
    }
    pestle_module_release(module);
    free(other.data);
  }
  assert_int_equal(good, 1);
  static const uint64_t alignments[] = {0, 3, 12, UINT64_MAX};
  for (size_t i = 0; i < 4; ++i) {
    buf_t other = resource_file(true);
    put_resources(&other, alignments[i], 0, 0);
    expect("alignment", &other, PESTLE_STATUS_MALFORMED, "no power of two");
  }
  // Of another kind it has no bytes; without a table there is none.
  buf_t other = resource_file(true);
  put_resources(&other, 1, 0, 1);
  expect("a truth value", &other, PESTLE_STATUS_MALFORMED,
         "constant data of another size");
  other = resource_file(true);
  expect("no table", &other, PESTLE_STATUS_MALFORMED, "resource 0 of 0");
  free(file.data);
}

static void test_sections(void** state) {
  (void)state;
  buf_t part = {0};
  buf_t file = resource_file(false);
  buf_section(&file, 9, &part);
  expect("kind 9", &file, PESTLE_STATUS_MALFORMED,
         "a section of an unknown kind");
  file = resource_file(false);
  buf_section(&file, 8, &part);
  expect("twice", &file, PESTLE_STATUS_MALFORMED,
         "a second section of one kind");
  static const struct {
    const char* bytes;
    size_t size;
    const char* text;
  } rows[] = {
      {"\x85\x01\x07", 3, "no power of two"},
      {"\x85\x01", 2, "it is cut off"},
      {"\x85", 1, "it is cut off"},
      {"\x05\x21", 2, "a part is longer than what it lies in"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
    file = resource_file(false);
    buf_raw(&file, rows[i].bytes, rows[i].size);
    expect("aligned", &file, PESTLE_STATUS_MALFORMED, rows[i].text);
  }
  for (unsigned padding = 0; padding < 9; ++padding) {
    file = resource_file(false);
    buf_byte(&file, 0x85);
    buf_varint(&file, 1);
    buf_varint(&file, 8);
    bool fits = (file.size + padding) % 8 == 0;
    for (unsigned i = 0; i < padding; ++i)
      buf_byte(&file, 0xcb);
    buf_byte(&file, 0x77);
    expect("padding", &file,
           fits && padding < 8 ? PESTLE_STATUS_OK : PESTLE_STATUS_MALFORMED,
           "");
  }
  // Each section that must be there is missing.
  for (unsigned missing = 0; missing < 5; ++missing) {
    buf_t short_file = {0}, empty = {0};
    buf_raw(&short_file, "ML\xefR\x0dX", 7);
    for (unsigned id = 0; id < 5; ++id)
      if (id != missing) buf_section(&short_file, id, &empty);
    expect("missing", &short_file, PESTLE_STATUS_MALFORMED,
           "a section is missing");
  }
}

// The section of strings alone is wrong.
static void test_strings(void** state) {
  (void)state;
  static const struct {
    const char* bytes;
    size_t size;
    const char* text;
  } rows[] = {
      {"\x03\x01", 2, "a string of an impossible length"},
      {"\x03\x09z", 3, "a string of an impossible length"},
      {"\x03\x05zz", 4, "a string without its terminator"},
      {"\x03\x03\0z", 4, "bytes behind the last string"},
      {"\x03", 1, "a count of more than the file holds"},
      {"\x09", 1, "a count of more than the file holds"},
      {"", 0, "it is cut off"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
    buf_t file = {0}, strings = {0}, empty = {0};
    buf_raw(&file, "ML\xefR\x0dX", 7);
    buf_raw(&strings, rows[i].bytes, rows[i].size);
    buf_section(&file, 0, &strings);
    for (unsigned id = 1; id < 5; ++id)
      buf_section(&file, id, &empty);
    expect("strings", &file, PESTLE_STATUS_MALFORMED, rows[i].text);
  }
}

// --- Ops ---

typedef struct op_case_t {
  const char* name;
  uint32_t dialect;
  const char* op;
  size_t property_count;
  uint32_t properties[8];
  size_t operand_count;
  uint32_t operand, type;
  size_t result_count, region_count;
  pestle_status_code_t code;
  const char* text;
} op_case_t;

static const op_case_t op_cases[] = {
    {"tuple",
     BC_VHLO,
     "tuple_v1",
     0,
     {0},
     2,
     0,
     T_NEXT,
     1,
     0,
     PESTLE_STATUS_OK,
     NULL},
    {"tuple of three",
     BC_VHLO,
     "tuple_v1",
     0,
     {0},
     3,
     0,
     T_NEXT,
     1,
     0,
     PESTLE_STATUS_MALFORMED,
     "'vhlo.tuple_v1'"},
    {"tuple of no result",
     BC_VHLO,
     "tuple_v1",
     0,
     {0},
     2,
     0,
     T_NEXT,
     0,
     0,
     PESTLE_STATUS_MALFORMED,
     "'vhlo.tuple_v1'"},
    {"element of a tensor",
     BC_VHLO,
     "get_tuple_element_v1",
     1,
     {A_FIVE},
     1,
     0,
     T_TENSOR,
     1,
     0,
     PESTLE_STATUS_MALFORMED,
     "'vhlo.get_tuple_element_v1'"},
    {"element by a text",
     BC_VHLO,
     "get_tuple_element_v1",
     1,
     {A_X},
     1,
     0,
     T_TENSOR,
     1,
     0,
     PESTLE_STATUS_MALFORMED,
     "expected attribute 'index', an integer"},
    {"element of nothing",
     BC_VHLO,
     "get_tuple_element_v1",
     1,
     {A_FIVE},
     0,
     0,
     T_TENSOR,
     1,
     0,
     PESTLE_STATUS_MALFORMED,
     "'vhlo.get_tuple_element_v1'"},
    {"element without result",
     BC_VHLO,
     "get_tuple_element_v1",
     1,
     {A_FIVE},
     1,
     0,
     T_TENSOR,
     0,
     0,
     PESTLE_STATUS_MALFORMED,
     "'vhlo.get_tuple_element_v1'"},
    {"properties",
     BC_VHLO,
     "negate_v1",
     2,
     {A_X, A_X},
     1,
     0,
     T_TENSOR,
     1,
     0,
     PESTLE_STATUS_UNSUPPORTED,
     "has 2 properties; Pestle knows it with 0"},
    {"property out of range",
     BC_VHLO,
     "concatenate_v1",
     1,
     {9999},
     1,
     0,
     T_TENSOR,
     1,
     0,
     PESTLE_STATUS_MALFORMED,
     "attribute 9999 of"},
    {"two results",
     BC_VHLO,
     "negate_v1",
     0,
     {0},
     1,
     0,
     T_TENSOR,
     2,
     0,
     PESTLE_STATUS_MALFORMED,
     "'vhlo.negate_v1'"},
    {"a region",
     BC_VHLO,
     "while_v1",
     0,
     {0},
     1,
     0,
     T_TENSOR,
     1,
     1,
     PESTLE_STATUS_MALFORMED,
     "'vhlo.while_v1'"},
    {"manual computation",
     BC_SDY,
     "manual_computation",
     0,
     {0},
     2,
     0,
     T_TENSOR,
     1,
     1,
     PESTLE_STATUS_MALFORMED,
     "its region does not take what the op takes"},
    {"manual computation without one",
     BC_SDY,
     "manual_computation",
     0,
     {0},
     1,
     0,
     T_TENSOR,
     1,
     0,
     PESTLE_STATUS_MALFORMED,
     "its region does not take what the op takes"},
    {"constraint",
     BC_SDY,
     "sharding_constraint",
     0,
     {0},
     1,
     0,
     T_TENSOR,
     1,
     0,
     PESTLE_STATUS_OK,
     NULL},
    {"unknown",
     BC_OTHER,
     "thing",
     0,
     {0},
     1,
     0,
     T_TENSOR,
     1,
     0,
     PESTLE_STATUS_UNSUPPORTED,
     "'my.thing'"},
    {"barrier",
     BC_VHLO,
     "optimization_barrier_v1",
     0,
     {0},
     2,
     0,
     T_TENSOR,
     2,
     0,
     PESTLE_STATUS_OK,
     NULL},
    {"custom call",
     BC_VHLO,
     "dynamic_conv_v2",
     1,
     {A_X},
     1,
     0,
     T_TENSOR,
     1,
     0,
     PESTLE_STATUS_UNSUPPORTED,
     "properties; Pestle knows it with"},
    {"no result",
     BC_VHLO,
     "negate_v1",
     0,
     {0},
     1,
     0,
     T_TENSOR,
     0,
     0,
     PESTLE_STATUS_MALFORMED,
     "it has 1 results and not the types of as many"},
    {"element by nothing",
     BC_VHLO,
     "get_tuple_element_v1",
     0,
     {0},
     1,
     0,
     T_TENSOR,
     1,
     0,
     PESTLE_STATUS_MALFORMED,
     "expected attribute 'index', an integer"},
    {"named computation",
     BC_SDY,
     "named_computation",
     0,
     {0},
     0,
     0,
     T_TENSOR,
     0,
     1,
     PESTLE_STATUS_OK,
     NULL},
    {"the last form",
     BC_CHLO,
     "zeta",
     1,
     {A_X},
     2,
     0,
     T_TENSOR,
     1,
     0,
     PESTLE_STATUS_UNSUPPORTED,
     "'chlo.zeta' has 1 properties; Pestle knows it with 0"},
    // Two numbers of which those that are not 0 are told, a number's place in 9 bits.
    {"wide places",
     BC_CHLO,
     "scan",
     7,
     {A_FIVE, 0, 0, 0, 1 << 1 | 1, 9, 1 << 9},
     1,
     0,
     T_TENSOR,
     1,
     0,
     PESTLE_STATUS_MALFORMED,
     "a list of too many numbers"},
    {"a place behind the list",
     BC_CHLO,
     "scan",
     7,
     {A_FIVE, 0, 0, 0, 1 << 1 | 1, 8, 1 << 8 | 8},
     1,
     0,
     T_TENSOR,
     1,
     0,
     PESTLE_STATUS_MALFORMED,
     "a number out of its list"},
    {"a large number",
     BC_CHLO,
     "scan",
     7,
     {A_FIVE, 0, 0, 0, 2 << 1, 1, 0x80000000},
     1,
     0,
     T_TENSOR,
     1,
     0,
     PESTLE_STATUS_MALFORMED,
     "a number out of its list"},
};

static void test_ops(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof(op_cases) / sizeof(*op_cases); ++i) {
    const op_case_t* c = &op_cases[i];
    bc_t b;
    buf_t ops = {0};
    begin(&b);
    assert_int_equal(BC_TYPE(&b, BC_VHLO, 23, 2, T_TENSOR, T_TENSOR), T_NEXT);
    bc_op_t op = {.name = bc_name(&b, c->dialect, c->op),
                  .operand_count = c->operand_count,
                  .type_count = c->result_count,
                  .region_count = c->region_count};
    for (size_t k = 0; k < 4; ++k)
      op.types[k] = c->type, op.operands[k] = c->operand;
    if (c->property_count)
      op.properties = bc_properties(&b, c->properties, c->property_count) + 1;
    for (size_t k = 0; k < c->region_count; ++k) {
      buf_t inner = {0};
      bc_op_t inner_end = {.name = bc_name(&b, BC_VHLO, "return_v1")};
      bc_put_op(&b, &inner, &inner_end);
      op.regions[k] = bc_region(0, NULL, 0, 1, &inner);
    }
    bc_op_t end = {.name = bc_name(&b, BC_VHLO, "return_v1"),
                   .operands = {0},
                   .operand_count = 1};
    bc_put_op(&b, &ops, &op);
    bc_put_op(&b, &ops, &end);
    buf_t ir = bc_main(&b, T_TENSOR, 1 + c->result_count, 2, &ops);
    buf_t file = bc_file_of(&b, &ir);
    expect(c->name, &file, c->code, c->text);
  }
}

// An op without properties, whose attributes are a dictionary: what older versions of
// it had is left out or joined.
static void test_dictionaries(void** state) {
  (void)state;
  enum { A_ZERO = 100, A_ONE, A_EMPTY, A_FIVES, D_MOST = 12 };
  static const struct {
    const char* op;
    size_t count;
    struct {
      const char* key;
      uint32_t value;
    } entries[D_MOST];
    pestle_status_code_t code;
    const char* text;
  } rows[] = {
      {"negate", 1, {{"source_target_pairs", A_EMPTY}}, PESTLE_STATUS_OK, NULL},
      {"negate",
       1,
       {{"source_target_pairs", A_X}},
       PESTLE_STATUS_UNSUPPORTED,
       "'stablehlo.negate' has no attribute 'source_target_pairs' here"},
      {"negate", 1, {{"channel_id", A_ZERO}}, PESTLE_STATUS_OK, NULL},
      {"negate",
       1,
       {{"channel_id", A_X}},
       PESTLE_STATUS_UNSUPPORTED,
       "'stablehlo.negate' has no attribute 'channel_handle' here"},
      {"negate",
       2,
       {{"channel_id", A_ZERO}, {"channel_type", A_ONE}},
       PESTLE_STATUS_UNSUPPORTED,
       "'stablehlo.negate' has no attribute 'channel_handle' here"},
      {"custom_call",
       3,
       {{"call_target_name", A_X},
        {"operand_layouts", A_NONE},
        {"result_layouts", A_NONE}},
       PESTLE_STATUS_OK,
       NULL},
      {"custom_call",
       3,
       {{"call_target_name", A_X},
        {"operand_layouts", A_NONE},
        {"result_layouts", A_FIVES}},
       PESTLE_STATUS_MALFORMED,
       "'operand_layouts' must be a list of a layout each for 1"},
      {"dynamic_conv",
       1,
       {{"input_batch_dimension", A_ZERO}},
       PESTLE_STATUS_MALFORMED,
       "expected attribute 'input_feature_dimension', an integer"},
      {"dynamic_conv",
       7,
       {{"input_batch_dimension", A_ZERO},
        {"input_feature_dimension", A_ONE},
        {"input_spatial_dimensions", A_NONE},
        {"kernel_input_feature_dimension", A_ZERO},
        {"kernel_output_feature_dimension", A_ONE},
        {"output_batch_dimension", A_ZERO},
        {"output_feature_dimension", A_ONE}},
       PESTLE_STATUS_MALFORMED,
       "'stablehlo.dynamic_conv' is given 1 operands and 1 results"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
    bc_t b;
    buf_t ops = {0};
    begin(&b);
    while (b.attribute_count < A_ZERO)
      BC_ATTRIBUTE(&b, BC_BUILTIN, 7);
    BC_ATTRIBUTE(&b, BC_VHLO, 9, T_I64, Z(0));
    BC_ATTRIBUTE(&b, BC_VHLO, 9, T_I64, Z(1));
    BC_ATTRIBUTE(&b, BC_BUILTIN, 2, S_EMPTY);
    BC_ATTRIBUTE(&b, BC_VHLO, 1, 1, A_FIVE);
    uint64_t numbers[2 + 2 * D_MOST] = {1, rows[i].count};
    for (size_t k = 0; k < rows[i].count; ++k) {
      numbers[2 + 2 * k] = put_key(&b, rows[i].entries[k].key);
      numbers[3 + 2 * k] = rows[i].entries[k].value;
    }
    bc_op_t op = {
        .name = bc_name(&b, BC_STABLEHLO, rows[i].op),
        .attributes =
            bc_attribute(&b, BC_BUILTIN, numbers, 2 + 2 * rows[i].count) + 1,
        .operands = {0},
        .operand_count = 1,
        .types = {T_TENSOR},
        .type_count = 1};
    bc_op_t end = {.name = bc_name(&b, BC_VHLO, "return_v1"),
                   .operands = {1},
                   .operand_count = 1};
    bc_put_op(&b, &ops, &op);
    bc_put_op(&b, &ops, &end);
    buf_t ir = bc_main(&b, T_TENSOR, 2, 2, &ops);
    buf_t file = bc_file_of(&b, &ir);
    char name[64];
    snprintf(name, sizeof(name), "dictionary %zu", i);
    expect(name, &file, rows[i].code, rows[i].text);
  }
}

// Shardy's ops in a program of two devices: how a value is to lie is noted of tensors
// alone.
static void test_spread(void** state) {
  (void)state;
  static const struct {
    const char *what, *op;
    bool tuple, at;  // it is of a tuple; it says where the value is to lie
    size_t operands, regions, marks;
    pestle_status_code_t code;
    const char* text;
  } rows[] = {
      {"a wish", "sharding_constraint", .at = true, .operands = 1, .marks = 1},
      {"a wish of nothing", "sharding_constraint", .operands = 1},
      {"a wish of a tuple", "sharding_constraint", .tuple = true, .at = true,
       .operands = 1},
      {"a wish of two", "reshard", .at = true, .operands = 2,
       .code = PESTLE_STATUS_MALFORMED,
       .text = "it has 2 results and not the types of as many"},
      {"a computation of a tuple", "manual_computation", .tuple = true,
       .at = true, .operands = 1, .regions = 1},
      {"a computation", "manual_computation", .at = true, .operands = 1,
       .regions = 1, .marks = 2},
      {"a named one", "named_computation", .operands = 1, .regions = 1},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
    bc_t b;
    begin(&b);
    uint32_t type = rows[i].tuple
                        ? BC_TYPE(&b, BC_VHLO, 23, 2, T_TENSOR, T_TENSOR)
                        : T_TENSOR;
    uint32_t mesh = BC_ATTRIBUTE(&b, BC_SDY, 2, 0, 0);
    uint32_t open = BC_ATTRIBUTE(&b, BC_SDY, 5, 0, 0, 0);
    b.attributes[open].bytes.size -= 1;
    buf_byte(&b.attributes[open].bytes, 1);
    uint32_t at = BC_ATTRIBUTE(&b, BC_SDY, 6, A_SYMBOL, 1, open, 0);
    uint32_t each = BC_ATTRIBUTE(&b, BC_SDY, 7, 1, at);
    uint32_t axes = BC_ATTRIBUTE(&b, BC_SDY, 0, 0);
    uint32_t two = BC_ATTRIBUTE(&b, BC_VHLO, 9, T_I32, Z(2));
    uint32_t world = BC_ATTRIBUTE(&b, BC_BUILTIN, 1, 1,
                                  put_key(&b, "mhlo.num_partitions"), two);
    buf_t ops = {0}, functions = {0}, inner = {0}, top = {0};
    uint32_t mesh_said[2] = {mesh, A_X}, computation[3] = {each, axes, each};
    bc_op_t sdy_mesh = {.name = bc_name(&b, BC_SDY, "mesh"),
                        .properties = bc_properties(&b, mesh_said, 2) + 1};
    bc_put_op(&b, &functions, &sdy_mesh);
    bc_op_t op = {.name = bc_name(&b, BC_SDY, rows[i].op),
                  .operands = {0, 0},
                  .operand_count = rows[i].operands,
                  .types = {type},
                  .type_count = 1,
                  .region_count = rows[i].regions};
    if (rows[i].at)
      op.properties = rows[i].regions ? bc_properties(&b, computation, 3) + 1
                                      : bc_properties(&b, &at, 1) + 1;
    if (rows[i].regions) {
      bc_op_t back = {.name = bc_name(&b, BC_SDY, "return"),
                      .operands = {2},
                      .operand_count = 1};
      bc_put_op(&b, &inner, &back);
      op.regions[0] = bc_region(1, &type, 1, 1, &inner);
    }
    bc_op_t end = {.name = bc_name(&b, BC_VHLO, "return_v1"),
                   .operands = {1},
                   .operand_count = 1};
    bc_put_op(&b, &ops, &op);
    bc_put_op(&b, &ops, &end);
    bc_put_function(&b, &functions, "main", type, 2, 2, &ops);
    bc_op_t module = {.name = bc_name(&b, BC_BUILTIN, "module"),
                      .attributes = world + 1,
                      .region_count = 1,
                      .isolated = true};
    module.regions[0] = bc_region(0, NULL, 0, 2, &functions);
    buf_varint(&top, 1 << 1);
    bc_put_op(&b, &top, &module);
    buf_t file = bc_file_of(&b, &top);
    pestle_module_t* made;
    if (!rows[i].code) {
      pestle_status_t status = import_in(context, file.data, file.size, &made);
      if (status) print_error("%s\n", rows[i].what);
      assert_ok(status);
      size_t marks = 0;
      const pestle_block_t* body = pestle_module_entry(made)->body->block;
      for (const pestle_node_t* n = body->first; n; n = n->next)
        marks += pestle_is_mark(n);
      assert_int_equal(marks, rows[i].marks);
      pestle_module_release(made);
    }
    expect(rows[i].what, &file, rows[i].code, rows[i].text);
  }
}

// --- Modules and functions ---

// What a module holds: a function of a tuple of two tensors, or of one tensor.
typedef struct module_case_t {
  const char* what;
  bool tuple;
  uint32_t name;            // attribute
  size_t said;              // dictionaries of arguments
  size_t regions, modules;  // of the function; modules in the file
  bool element;             // the function takes element 5 of its tuple
  bool empty;               // its region has no block
  size_t module_regions;
  bool sdy_return;
  const char* mesh;  // properties that a mesh has
  pestle_status_code_t code;
  const char* text;
} module_case_t;

static void test_modules(void** state) {
  (void)state;
  static const module_case_t rows[] = {
      {"as it is", .name = A_X, .regions = 1, .modules = 1,
       .module_regions = 1},
      {"of a tuple", .tuple = true, .name = A_X, .said = 1, .regions = 1,
       .modules = 1, .module_regions = 1},
      {"an element that the tuple has not", .tuple = true, .name = A_X,
       .regions = 1, .modules = 1, .element = true, .module_regions = 1,
       .code = PESTLE_STATUS_MALFORMED, .text = "the tuple has no element 5"},
      {"what is said of no argument", .name = A_X, .said = 3, .regions = 1,
       .modules = 1, .module_regions = 1},
      {"no name", .name = A_SYMBOL + 1000, .regions = 1, .modules = 1,
       .module_regions = 1, .code = PESTLE_STATUS_MALFORMED,
       .text = "expected attributes 'sym_name' and 'function_type'"},
      {"no region", .name = A_X, .regions = 0, .modules = 1,
       .module_regions = 1, .code = PESTLE_STATUS_UNSUPPORTED,
       .text = "function 'x' has no body"},
      {"no block", .name = A_X, .regions = 1, .empty = true, .modules = 1,
       .module_regions = 1, .code = PESTLE_STATUS_UNSUPPORTED,
       .text = "function 'x' has no body"},
      {"no module", .name = A_X, .regions = 1, .modules = 0,
       .module_regions = 1, .code = PESTLE_STATUS_MALFORMED,
       .text = "x.bc: expected one module"},
      {"two modules", .name = A_X, .regions = 1, .modules = 2,
       .module_regions = 1, .code = PESTLE_STATUS_MALFORMED,
       .text = "x.bc: expected one module"},
      {"a module of two regions", .name = A_X, .regions = 1, .modules = 1,
       .module_regions = 2, .code = PESTLE_STATUS_MALFORMED,
       .text = "x.bc: expected one module"},
      // A return of Shardy's has no form that its properties could be read by.
      {"properties without a form", .name = A_X, .regions = 1, .modules = 1,
       .module_regions = 1, .sdy_return = true},
      {"a mesh of nothing", .name = A_X, .regions = 1, .modules = 1,
       .module_regions = 1, .mesh = ""},
      {"a mesh of a name", .name = A_X, .regions = 1, .modules = 1,
       .module_regions = 1, .mesh = "sym_name"},
      {"a mesh without a name", .name = A_X, .regions = 1, .modules = 1,
       .module_regions = 1, .mesh = "mesh"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
    const module_case_t* c = &rows[i];
    bc_t b;
    begin(&b);
    uint32_t none = BC_ATTRIBUTE(&b, BC_VHLO, 1, 0);
    uint32_t empty = BC_ATTRIBUTE(&b, BC_BUILTIN, 2, S_EMPTY);
    uint32_t type =
        c->tuple ? BC_TYPE(&b, BC_VHLO, 23, 2, T_TENSOR, T_TENSOR) : T_TENSOR;
    uint32_t dictionary =
        BC_ATTRIBUTE(&b, BC_BUILTIN, 1, 1, put_key(&b, "my.key"), A_FIVE);
    uint64_t said[5] = {1, c->said, dictionary, dictionary, dictionary};
    uint32_t properties[5] = {
        bc_attribute(&b, BC_VHLO, said, 2 + c->said),
        BC_ATTRIBUTE(&b, BC_VHLO, 17, bc_function(&b, type, type)), none,
        c->name < 1000 ? c->name : empty, bc_text(&b, "public")};
    buf_t top = {0}, functions = {0}, ops = {0}, nothing = {0};
    bc_op_t end = {.name = c->sdy_return ? bc_name(&b, BC_SDY, "return")
                                         : bc_name(&b, BC_VHLO, "return_v1"),
                   .operands = {0},
                   .operand_count = 1};
    uint32_t a_five = A_FIVE;
    if (c->sdy_return) end.properties = bc_properties(&b, &a_five, 1) + 1;
    bc_op_t element = {.name = bc_name(&b, BC_VHLO, "get_tuple_element_v1"),
                       .properties = bc_properties(&b, &a_five, 1) + 1,
                       .operands = {0},
                       .operand_count = 1,
                       .types = {T_TENSOR},
                       .type_count = 1};
    if (c->element) bc_put_op(&b, &ops, &element);
    bc_put_op(&b, &ops, &end);
    if (c->mesh) {
      bc_op_t mesh = {.name = bc_name(&b, BC_SDY, "mesh")};
      if (*c->mesh)
        mesh.attributes =
            BC_ATTRIBUTE(&b, BC_BUILTIN, 1, 1, put_key(&b, c->mesh), A_X) + 1;
      bc_put_op(&b, &functions, &mesh);
    }
    bc_op_t func = {.name = bc_name(&b, BC_VHLO, "func_v1"),
                    .properties = bc_properties(&b, properties, 5) + 1,
                    .region_count = c->regions,
                    .isolated = true};
    if (c->empty)
      buf_varint(&func.regions[0], 0);
    else
      func.regions[0] =
          bc_region(c->element ? 2 : 1, &type, 1, c->element ? 2 : 1, &ops);
    if (!c->regions) free(func.regions[0].data);
    if (c->empty) free(ops.data);
    bc_put_op(&b, &functions, &func);
    bc_op_t module = {.name = bc_name(&b, BC_BUILTIN, "module"),
                      .region_count = c->module_regions,
                      .isolated = true};
    module.regions[0] = bc_region(0, NULL, 0, c->mesh ? 2 : 1, &functions);
    if (c->module_regions == 2)
      module.regions[1] = bc_region(0, NULL, 0, 0, &nothing);
    buf_varint(&top, c->modules << 1);
    if (c->modules)
      bc_put_op(&b, &top, &module);
    else
      free(module.regions[0].data);
    if (c->modules == 2) {
      bc_op_t second = {.name = module.name, .region_count = 1};
      buf_t inner = {0};
      second.isolated = true;
      second.regions[0] = bc_region(0, NULL, 0, 0, &inner);
      bc_put_op(&b, &top, &second);
    }
    buf_t file = bc_file_of(&b, &top);
    pestle_module_t* made;
    if (!c->code) {
      assert_ok(import_in(context, file.data, file.size, &made));
      const pestle_function_t* f = pestle_module_entry(made);
      // What is said of a tuple is said of no tensor.
      const char* text = pestle_function_argument_attribute(f, 0, "my.key");
      if (c->said && !c->tuple)
        assert_string_equal(text, "5 : i64");
      else
        assert_null(text);
      pestle_module_release(made);
    }
    expect(c->what, &file, c->code, c->text);
  }
}

// --- Extents that a call, a value or a given shape tells ---

// main(%x: tensor<?xf32>, %k: tensor<2xi64>): dynamic_iota of %k, and a call of f, which
// does the same; as a composite of that body, or of what is not said.
enum { CALLED, COMPOSED, NAMELESS };
static buf_t symbolic_file(int how) {
  bc_t b;
  buf_t ops = {0}, inner = {0}, functions = {0};
  begin(&b);
  uint32_t shape = bc_tensor(&b, T_I64, 1, (int64_t[]){2});
  uint32_t open = bc_tensor(&b, T_F32, 2, (int64_t[]){INT64_MIN, INT64_MIN});
  uint32_t none = BC_ATTRIBUTE(&b, BC_VHLO, 1, 0);
  uint32_t zero = BC_ATTRIBUTE(&b, BC_VHLO, 9, T_I64, Z(0));
  const char* const names[] = {"main", "f"};
  bc_op_t func[2];
  for (int i = 0; i < 2; ++i) {
    uint32_t type =
        i ? BC_TYPE(&b, BC_VHLO, 8, 1, shape, 1, open)
          : BC_TYPE(&b, BC_VHLO, 8, 2, T_DYNAMIC, shape, 2, open, open);
    uint32_t properties[5] = {none, BC_ATTRIBUTE(&b, BC_VHLO, 17, type), none,
                              bc_text(&b, names[i]),
                              bc_text(&b, i ? "private" : "public")};
    func[i] = (bc_op_t){.name = bc_name(&b, BC_VHLO, "func_v1"),
                        .properties = bc_properties(&b, properties, 5) + 1,
                        .region_count = 1,
                        .isolated = true};
  }
  uint32_t iota = bc_name(&b, BC_VHLO, "dynamic_iota_v1");
  uint32_t back = bc_name(&b, BC_VHLO, "return_v1");
  uint32_t callee = bc_text(&b, "f");
  bc_op_t a = {.name = iota,
               .properties = bc_properties(&b, &zero, 1) + 1,
               .operands = {1},
               .operand_count = 1,
               .types = {open},
               .type_count = 1};
  bc_op_t call = {.name = bc_name(&b, BC_VHLO, "call_v1"),
                  .properties = bc_properties(&b, &callee, 1) + 1,
                  .operands = {1},
                  .operand_count = 1,
                  .types = {open},
                  .type_count = 1};
  if (how == NAMELESS) call.properties = 0;
  if (how == COMPOSED) {
    uint32_t said[4] = {BC_ATTRIBUTE(&b, BC_VHLO, 6, 0), callee,
                        bc_text(&b, "my.f"), zero};
    call.name = bc_name(&b, BC_VHLO, "composite_v1");
    call.properties = bc_properties(&b, said, 4) + 1;
  }
  bc_op_t end = {.name = back, .operands = {2, 3}, .operand_count = 2};
  bc_op_t in = a,
          inner_end = {.name = back, .operands = {1}, .operand_count = 1};
  in.operands[0] = 0;
  bc_put_op(&b, &ops, &a);
  bc_put_op(&b, &ops, &call);
  bc_put_op(&b, &ops, &end);
  bc_put_op(&b, &inner, &in);
  bc_put_op(&b, &inner, &inner_end);
  func[0].regions[0] = bc_region(4, (uint32_t[]){T_DYNAMIC, shape}, 2, 3, &ops);
  func[1].regions[0] = bc_region(2, &shape, 1, 2, &inner);
  bc_put_op(&b, &functions, &func[0]);
  bc_put_op(&b, &functions, &func[1]);
  buf_t ir = bc_module(&b, 2, &functions);
  return bc_file_of(&b, &ir);
}

static pestle_status_t specialize(pestle_module_t* module, int64_t rows,
                                  pestle_module_t** out) {
  int64_t x_shape = 4, k_shape = 2, k[2] = {rows, 5};
  pestle_tensor_t inputs[2] = {{.device = {PESTLE_DEVICE_CPU, 0},
                                .ndim = 1,
                                .dtype = pestle_dtype_to_dlpack(PESTLE_F32),
                                .shape = &x_shape},
                               {.data = k,
                                .device = {PESTLE_DEVICE_CPU, 0},
                                .ndim = 1,
                                .dtype = pestle_dtype_to_dlpack(PESTLE_I64),
                                .shape = &k_shape}};
  return pestle_module_specialize_values(module, inputs, 2, out);
}

static void test_symbolic(void** state) {
  (void)state;
  for (int how = CALLED; how <= NAMELESS; ++how) {
    buf_t file = symbolic_file(how);
    pestle_module_t *module, *made;
    assert_ok(import_in(context, file.data, file.size, &module));
    free(file.data);
    if (how == NAMELESS) {
      assert_error(specialize(module, 3, &made), MALFORMED, "'callee'");
      pestle_module_release(module);
      continue;
    }
    assert_ok(specialize(module, 3, &made));
    pestle_function_t* main = pestle_module_entry(made);
    const pestle_type_t* type = pestle_function_result_type(main, 1);
    assert_int_equal(type->rank, 2);
    assert_int_equal(type->dims[0], 3);
    assert_int_equal(type->dims[1], 5);
    // The value is a constant now; it stays an argument that nothing uses.
    assert_int_equal(pestle_function_argument_count(main), 2);
    const pestle_value_t* k = main->body->block->arguments[1];
    assert_int_equal(k->use_count, 0);
    pestle_module_release(made);
    assert_code(specialize(module, -3, &made), MALFORMED);
    assert_null(made);
    pestle_module_release(module);
  }
}

// Extents that follow from a constant alone: no argument has to be given.
static void test_constant_extents(void** state) {
  (void)state;
  bc_t b;
  buf_t ops = {0};
  begin(&b);
  uint32_t shape = bc_tensor(&b, T_I64, 1, (int64_t[]){1});
  attribute_t three = RAW(BUILTIN, OK, NULL, "\3\0\0\0\0\0\0\0", 18, shape, 8);
  uint32_t value = put_attribute(&b, &three);
  uint32_t zero = BC_ATTRIBUTE(&b, BC_VHLO, 9, T_I64, Z(0));
  bc_op_t constant = {.name = bc_name(&b, BC_VHLO, "constant_v1"),
                      .properties = bc_properties(&b, &value, 1) + 1,
                      .types = {shape},
                      .type_count = 1};
  bc_op_t iota = {.name = bc_name(&b, BC_VHLO, "dynamic_iota_v1"),
                  .properties = bc_properties(&b, &zero, 1) + 1,
                  .operands = {1},
                  .operand_count = 1,
                  .types = {T_DYNAMIC},
                  .type_count = 1};
  bc_op_t add = {.name = bc_name(&b, BC_VHLO, "add_v1"),
                 .operands = {2, 2},
                 .operand_count = 2,
                 .types = {T_DYNAMIC},
                 .type_count = 1};
  bc_op_t end = {.name = bc_name(&b, BC_VHLO, "return_v1"),
                 .operands = {0},
                 .operand_count = 1};
  bc_put_op(&b, &ops, &constant);
  bc_put_op(&b, &ops, &iota);
  bc_put_op(&b, &ops, &add);
  bc_put_op(&b, &ops, &end);
  buf_t ir = bc_main(&b, T_TENSOR, 4, 4, &ops);
  buf_t file = bc_file_of(&b, &ir);
  pestle_module_t* module;
  assert_ok(import_in(context, file.data, file.size, &module));
  const pestle_block_t* body = pestle_module_entry(module)->body->block;
  assert_int_equal(body->argument_count, 1);
  for (const pestle_node_t* n = body->first; n; n = n->next)
    for (uint32_t i = 0; i < n->result_count; ++i)
      assert_true(pestle_type_is_static(n->results[i].type));
  pestle_module_release(module);
  free(file.data);
}

// A convolution whose padding is an operand, here a constant: numbers of axes that
// vhlo has one by one.
static buf_t conv_file(int wrong) {
  bc_t b;
  buf_t ops = {0};
  begin(&b);
  uint32_t type = bc_tensor(&b, T_F32, 3, (int64_t[]){1, 1, 1});
  uint32_t pads = bc_tensor(&b, T_I64, 2, (int64_t[]){1, 2});
  uint32_t number[3], no = BC_ATTRIBUTE(&b, BC_VHLO, 2, 0);
  for (unsigned i = 0; i < 3; ++i)
    number[i] = BC_ATTRIBUTE(&b, BC_VHLO, 9, T_I64, Z(i));
  uint32_t list[2] = {BC_ATTRIBUTE(&b, BC_VHLO, 1, 1, number[0]),
                      BC_ATTRIBUTE(&b, BC_VHLO, 1, 1, number[1])};
  uint32_t flags = BC_ATTRIBUTE(&b, BC_VHLO, 1, 1, no);
  attribute_t zeros = RAW(BUILTIN, OK, NULL, "\0\0\0\0\0\0\0\0", 18, pads, 8);
  uint32_t value = put_attribute(&b, &zeros);
  uint32_t properties[16] = {number[1], number[1], number[0], number[2],
                             list[1],   number[1], number[2], list[0],
                             list[1],   number[0], number[2], list[1],
                             A_NONE,    list[1],   flags,     list[1]};
  if (wrong == 1) properties[2] = A_X;
  if (wrong == 2)
    properties[4] =
        BC_ATTRIBUTE(&b, BC_VHLO, 1, 17, number[0], number[0], number[0],
                     number[0], number[0], number[0], number[0], number[0],
                     number[0], number[0], number[0], number[0], number[0],
                     number[0], number[0], number[0], number[0]);
  bc_op_t constant = {.name = bc_name(&b, BC_VHLO, "constant_v1"),
                      .properties = bc_properties(&b, &value, 1) + 1,
                      .types = {pads},
                      .type_count = 1};
  bc_op_t conv = {.name = bc_name(&b, BC_VHLO, "dynamic_conv_v2"),
                  .properties = bc_properties(&b, properties, 16) + 1,
                  .operands = {0, 0, 1},
                  .operand_count = 3,
                  .types = {type},
                  .type_count = 1};
  bc_op_t end = {.name = bc_name(&b, BC_VHLO, "return_v1"),
                 .operands = {2},
                 .operand_count = 1};
  bc_put_op(&b, &ops, &constant);
  bc_put_op(&b, &ops, &conv);
  bc_put_op(&b, &ops, &end);
  buf_t ir = bc_main(&b, type, 3, 3, &ops);
  return bc_file_of(&b, &ir);
}

static void test_dynamic_conv(void** state) {
  (void)state;
  for (int wrong = 0; wrong < 3; ++wrong) {
    buf_t file = conv_file(wrong);
    if (wrong) {
      expect("dynamic_conv", &file, PESTLE_STATUS_MALFORMED,
             wrong == 1
                 ? "expected attribute 'input_batch_dimension', an integer"
                 : "attribute 'input_spatial_dimensions' has too many axes");
      continue;
    }
    pestle_module_t* module;
    assert_ok(import_in(context, file.data, file.size, &module));
    const pestle_block_t* body = pestle_module_entry(module)->body->block;
    const pestle_node_t* node = body->last->operands[0].value->node;
    assert_int_equal(node->op, PESTLE_OP_CONVOLUTION);
    pestle_module_release(module);
    free(file.data);
  }
}

// --- Everywhere ---

// Every attribute that is right, in one file, and a resource.
static buf_t whole_file(void) {
  bc_t b;
  static char keys[ATTRIBUTES][16];
  begin(&b);
  buf_t numbers = {0};
  size_t count = 0;
  for (size_t i = 0; i < ATTRIBUTES; ++i)
    count += !attributes[i].code && i % 2 == 0;
  buf_varint(&numbers, 1);
  buf_varint(&numbers, count);
  for (size_t i = 0; i < ATTRIBUTES; ++i) {
    if (attributes[i].code || i % 2) continue;
    snprintf(keys[i], sizeof(keys[i]), "my.a%zu", i);
    uint32_t key = put_key(&b, keys[i]);
    buf_varint(&numbers, key);
    buf_varint(&numbers, put_attribute(&b, &attributes[i]));
  }
  uint32_t dictionary = (uint32_t)b.attribute_count++;
  b.attributes[dictionary].dialect = BC_BUILTIN;
  b.attributes[dictionary].bytes = numbers;
  buf_t file = module_with(&b, dictionary);
  put_resources(&file, 1, 0, 0);
  return file;
}

static pestle_status_code_t import_starved(const buf_t* file, size_t k,
                                           bool* out_failed) {
  pestle_test_allocator_t memory;
  pestle_test_allocator_init(&memory, 0);
  pestle_context_options_t options = {
      .struct_size = sizeof(options),
      .allocator = pestle_test_allocator(&memory),
      .cache_dir = "",
      .backend_path = "/nonexistent",
      .threads = 1};
  pestle_context_t* own;
  assert_ok(pestle_context_create(&options, &own));
  atomic_store(&memory.fail_at, k ? atomic_load(&memory.request_count) + k : 0);
  pestle_module_t *module = NULL, *made = NULL;
  pestle_status_t status = import_in(own, file->data, file->size, &module);
  uint64_t hash[2];
  if (!status) status = pestle_module_signature(module, hash);
  if (!status && pestle_module_entry(module))
    status = specialize(module, 3, &made);
  pestle_status_code_t code = pestle_status_code(status);
  *out_failed = pestle_test_allocator_failed(&memory);
  pestle_status_release(status);
  pestle_module_release(made);
  pestle_module_release(module);
  pestle_context_release(own);
  pestle_test_allocator_check(&memory);
  return code;
}

static void try_everywhere(buf_t file) {
  enum { STEP = TEST_SANITIZED ? 7 : 1 };
  bool failed;
  pestle_status_code_t whole = import_starved(&file, 0, &failed);
  for (size_t k = 1; k == 1 || failed; ++k) {
    pestle_status_code_t code = import_starved(&file, k, &failed);
    if (failed)
      assert_int_equal(code, PESTLE_STATUS_OUT_OF_MEMORY);
    else
      assert_int_equal(code, whole);
  }
  for (size_t at = 0; at < file.size; at += STEP) {
    uint8_t old = file.data[at];
    const uint8_t bytes[] = {(uint8_t)(old ^ 1), (uint8_t)(old + 2), 0, 0xff,
                             (uint8_t)(old ^ 0x40)};
    for (size_t i = 0; i <= sizeof(bytes); ++i) {
      pestle_module_t* module;
      file.data[at] = i < sizeof(bytes) ? bytes[i] : old;
      pestle_status_t status = import_in(
          context, file.data, i < sizeof(bytes) ? file.size : at, &module);
      assert_true(!status == (module != NULL));
      assert_int_not_equal(pestle_status_code(status), PESTLE_STATUS_INTERNAL);
      assert_int_not_equal(pestle_status_code(status),
                           PESTLE_STATUS_OUT_OF_MEMORY);
      if (module) assert_ok(pestle_module_verify(module));
      pestle_status_release(status);
      pestle_module_release(module);
    }
  }
  free(file.data);
}

static void test_everywhere(void** state) {
  (void)state;
  try_everywhere(whole_file());
  try_everywhere(symbolic_file(CALLED));
  try_everywhere(symbolic_file(COMPOSED));
  try_everywhere(resource_file(false));
  try_everywhere(conv_file(0));
  try_everywhere(quantised_file(&quantised_along));
}

static int begin_context(void** state) {
  (void)state;
  pestle_status_t status = pestle_context_create(NULL, &context);
  pestle_status_release(status);
  return status ? -1 : 0;
}

static int end_context(void** state) {
  (void)state;
  pestle_context_release(context);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_attributes),
      cmocka_unit_test(test_texts),
      cmocka_unit_test(test_no_dictionary),
      cmocka_unit_test(test_types),
      cmocka_unit_test(test_quantised),
      cmocka_unit_test(test_locations),
      cmocka_unit_test(test_text_location),
      cmocka_unit_test(test_long_texts),
      cmocka_unit_test(test_spread),
      cmocka_unit_test(test_constant_extents),
      cmocka_unit_test(test_resources),
      cmocka_unit_test(test_sections),
      cmocka_unit_test(test_strings),
      cmocka_unit_test(test_ops),
      cmocka_unit_test(test_dictionaries),
      cmocka_unit_test(test_modules),
      cmocka_unit_test(test_symbolic),
      cmocka_unit_test(test_dynamic_conv),
      cmocka_unit_test(test_everywhere),
  };
  return cmocka_run_group_tests(tests, begin_context, end_context);
}

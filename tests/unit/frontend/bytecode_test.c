// SPDX-License-Identifier: Apache-2.0
// StableHLO bytecode from bytes that the tests write: what no tool writes any more,
// or not yet, or never.
#include "bytecode_test.h"

#include "frontend/stablehlo/import.h"
#include "frontend/stablehlo/reader.h"
#include "ir/graph.h"

static pestle_context_t* context;

static pestle_status_t import(bc_t* b, buf_t* ir, pestle_module_t** out) {
  buf_t file = bc_file_of(b, ir);
  pestle_status_t status =
      pestle_import_stablehlo(context, file.data, file.size, "x.bc", out);
  free(file.data);
  return status;
}

// The import of what |ir| is must fail.
#define assert_refused(b, ir, code, text)                    \
  do {                                                       \
    pestle_module_t* refused;                                \
    assert_error(import((b), (ir), &refused), code, (text)); \
    assert_null(refused);                                    \
  } while (0)

static bc_op_t return_of(bc_t* b, uint32_t value) {
  return (bc_op_t){.name = bc_name(b, BC_VHLO, "return_v1"),
                   .operands = {value},
                   .operand_count = 1};
}

static uint32_t f32x4(bc_t* b) {
  return bc_tensor(b, bc_element(b, BC_F32), 1, (int64_t[]){4});
}

// --- Numbers ---

static void test_numbers(void** state) {
  (void)state;
  static const uint64_t values[] = {0,
                                    1,
                                    127,
                                    128,
                                    16383,
                                    16384,
                                    1 << 21,
                                    1 << 28,
                                    UINT64_C(1) << 35,
                                    UINT32_MAX,
                                    UINT64_MAX,
                                    UINT64_C(1) << 56,
                                    UINT64_C(1) << 63,
                                    (UINT64_C(1) << 56) - 1};
  for (size_t i = 0; i < sizeof(values) / sizeof(*values); ++i) {
    buf_t b = {0};
    uint64_t value;
    int64_t number;
    buf_varint(&b, values[i]);
    buf_signed(&b, (int64_t)values[i]);
    pestle_reader_t r = pestle_reader_make(b.data, b.size);
    assert_ok(pestle_reader_varint(&r, &value));
    assert_true(value == values[i]);
    assert_ok(pestle_reader_signed(&r, &number));
    assert_true(number == (int64_t)values[i]);
    assert_false(pestle_reader_more(&r));
    for (size_t size = 0; size < b.size; ++size) {
      r = pestle_reader_make(b.data, size);
      pestle_status_t status = pestle_reader_varint(&r, &value);
      if (!status) status = pestle_reader_signed(&r, &number);
      assert_code(status, MALFORMED);
    }
    free(b.data);
  }
}

// --- Programs ---

static void test_smallest_program(void** state) {
  (void)state;
  bc_t b = {.format = 6};
  buf_t ops = {0};
  uint32_t type = f32x4(&b);
  bc_op_t add = {.name = bc_name(&b, BC_VHLO, "add_v1"),
                 .location = bc_file(&b, "model.py", 3, 4) + 1,
                 .operands = {0, 0},
                 .operand_count = 2,
                 .types = {type},
                 .type_count = 1};
  bc_op_t end = return_of(&b, 1);
  bc_put_op(&b, &ops, &add);
  bc_put_op(&b, &ops, &end);
  buf_t ir = bc_main(&b, type, 2, 2, &ops);
  pestle_module_t* module;
  assert_ok(import(&b, &ir, &module));
  const pestle_node_t* node = pestle_module_entry(module)->body->block->first;
  assert_int_equal(node->op, PESTLE_OP_ADD);
  assert_string_equal(node->loc.file, "model.py");
  assert_int_equal(node->loc.line, 3);
  assert_int_equal(node->loc.column, 4);
  pestle_module_release(module);
}

static void test_unknown_ops_are_listed(void** state) {
  (void)state;
  bc_t b = {.format = 6};
  buf_t ops = {0};
  uint32_t type = f32x4(&b);
  static const char* const names[] = {"magic_v3", "add_v2", "magic_v3"};
  for (unsigned i = 0; i < 3; ++i) {
    bc_op_t op = {.name = bc_name(&b, BC_VHLO, names[i]),
                  .location = bc_file(&b, "model.py", 10 + i, 1) + 1,
                  .types = {type},
                  .type_count = 1};
    if (i == 2) op.name = 0;
    bc_put_op(&b, &ops, &op);
  }
  bc_op_t end = return_of(&b, 0);
  bc_put_op(&b, &ops, &end);
  buf_t ir = bc_main(&b, type, 4, 4, &ops);
  assert_refused(&b, &ir, UNSUPPORTED,
                 "not supported in x.bc, which 'StableHLO_v1.20.0' wrote: "
                 "'vhlo.magic_v3' (model.py:10:1), "
                 "'vhlo.add_v2' (model.py:11:1)");
}

// What each function has is said, not what the first one has alone.
static void test_all_functions_are_heard(void** state) {
  (void)state;
  bc_t b = {.format = 6};
  buf_t functions = {0};
  uint32_t type = f32x4(&b), unranked = BC_TYPE(&b, BC_VHLO, 25, 0);
  static const char* const names[] = {"main", "other"};
  for (unsigned i = 0; i < 2; ++i) {
    buf_t ops = {0};
    bc_op_t add = {.name = bc_name(&b, BC_VHLO, i ? "multiply_v1" : "add_v1"),
                   .operands = {0, 0},
                   .operand_count = 2,
                   .types = {unranked},
                   .type_count = 1};
    bc_op_t end = return_of(&b, 0);
    bc_put_op(&b, &ops, &add);
    bc_put_op(&b, &ops, &end);
    bc_put_function(&b, &functions, names[i], type, 2, 2, &ops);
  }
  buf_t ir = bc_module(&b, 2, &functions);
  pestle_module_t* module;
  pestle_status_t status = import(&b, &ir, &module);
  char text[1024];
  pestle_status_format(status, text, sizeof(text));
  assert_non_null(strstr(text, "'vhlo.add_v1': type 'tensor of unknown rank'"));
  assert_non_null(strstr(text, "'vhlo.multiply_v1': type"));
  pestle_status_release(status);
}

static void test_newest_custom_call(void** state) {
  (void)state;
  bc_t b = {.format = 6};
  buf_t ops = {0};
  uint32_t type = f32x4(&b);
  uint32_t none = BC_ATTRIBUTE(&b, BC_VHLO, 1, 0);
  uint32_t attributes[] = {BC_ATTRIBUTE(&b, BC_VHLO, 5, 1),
                           bc_text(&b, ""),
                           bc_text(&b, "f"),
                           none,
                           BC_ATTRIBUTE(&b, BC_VHLO, 2, 0),
                           none,
                           none,
                           none,
                           none};
  bc_op_t call = {.name = bc_name(&b, BC_VHLO, "custom_call_v2"),
                  .properties = bc_properties(&b, attributes, 9) + 1,
                  .operands = {0},
                  .operand_count = 1,
                  .types = {type},
                  .type_count = 1};
  bc_op_t end = return_of(&b, 1);
  bc_put_op(&b, &ops, &call);
  bc_put_op(&b, &ops, &end);
  buf_t ir = bc_main(&b, type, 2, 2, &ops);
  pestle_module_t* module;
  assert_ok(import(&b, &ir, &module));
  const pestle_node_t* node = pestle_module_entry(module)->body->block->first;
  assert_int_equal(node->op, PESTLE_OP_CUSTOM_CALL);
  assert_string_equal(PESTLE_NODE_STR(node, call_target_name), "f");
  pestle_module_release(module);
}

// --- Damage ---

static void test_newer_format(void** state) {
  (void)state;
  bc_t b = {.format = 7};
  buf_t ops = {0};
  bc_op_t end = return_of(&b, 0);
  bc_put_op(&b, &ops, &end);
  buf_t ir = bc_main(&b, f32x4(&b), 1, 1, &ops);
  assert_refused(&b, &ir, UNSUPPORTED, "format 7");
}

static void test_use_before_definition(void** state) {
  (void)state;
  bc_t b = {.format = 6};
  buf_t ops = {0};
  uint32_t type = f32x4(&b);
  bc_op_t add = {.name = bc_name(&b, BC_VHLO, "add_v1"),
                 .operands = {0, 2},
                 .operand_count = 2,
                 .types = {type},
                 .type_count = 1};
  bc_op_t again = add, end = return_of(&b, 1);
  bc_put_op(&b, &ops, &add);
  bc_put_op(&b, &ops, &again);
  bc_put_op(&b, &ops, &end);
  buf_t ir = bc_main(&b, type, 3, 3, &ops);
  assert_refused(&b, &ir, MALFORMED,
                 "'vhlo.add_v1': operand 1 is used before it is made");
}

static void test_values_that_are_not(void** state) {
  (void)state;
  for (int values = 0; values < 4; ++values) {
    bc_t b = {.format = 6};
    buf_t ops = {0};
    bc_op_t end = return_of(&b, 7);
    bc_put_op(&b, &ops, &end);
    buf_t ir = bc_main(&b, f32x4(&b), (size_t)values, 1, &ops);
    assert_refused(&b, &ir, MALFORMED, "not whole");
  }
}

static void test_wrong_result_type(void** state) {
  (void)state;
  bc_t b = {.format = 6};
  buf_t ops = {0};
  uint32_t type = f32x4(&b);
  bc_op_t add = {
      .name = bc_name(&b, BC_VHLO, "add_v1"),
      .operands = {0, 0},
      .operand_count = 2,
      .types = {bc_tensor(&b, bc_element(&b, BC_F32), 1, (int64_t[]){5})},
      .type_count = 1};
  bc_op_t end = return_of(&b, 0);
  bc_put_op(&b, &ops, &add);
  bc_put_op(&b, &ops, &end);
  buf_t ir = bc_main(&b, type, 2, 2, &ops);
  assert_refused(&b, &ir, MALFORMED, "tensor<5xf32>");
}

// A type that is part of itself, and one whose parts double 60 times.
static void test_types_without_end(void** state) {
  (void)state;
  for (int doubles = 0; doubles < 2; ++doubles) {
    bc_t b = {.format = 6};
    buf_t ops = {0};
    uint32_t type =
        doubles ? BC_TYPE(&b, BC_VHLO, 23, 0) : BC_TYPE(&b, BC_VHLO, 23, 1, 0);
    for (int i = 0; doubles && i < 60; ++i)
      type = BC_TYPE(&b, BC_VHLO, 23, 2, type, type);
    bc_op_t end = return_of(&b, 0);
    bc_put_op(&b, &ops, &end);
    buf_t ir = bc_main(&b, type, 1, 1, &ops);
    assert_refused(&b, &ir, MALFORMED, doubles ? "a million" : "nested");
  }
}

// What a dialect says is kept as text, which may not grow without bounds.
static void test_long_texts(void** state) {
  (void)state;
  bc_t b = {.format = 6};
  buf_t ops = {0}, top = {0};
  uint32_t value = bc_text(&b, "x");
  for (int i = 0; i < 40; ++i)
    value = BC_ATTRIBUTE(&b, BC_VHLO, 1, 2, value, value);
  uint32_t key = BC_ATTRIBUTE(&b, BC_BUILTIN, 2, bc_string(&b, "my.thing"));
  uint32_t dict = BC_ATTRIBUTE(&b, BC_BUILTIN, 1, 1, key, value);
  bc_op_t module = {.name = bc_name(&b, BC_BUILTIN, "module"),
                    .attributes = dict + 1,
                    .region_count = 1,
                    .isolated = true};
  module.regions[0] = bc_region(0, NULL, 0, 0, &ops);
  buf_varint(&top, 1 << 1);
  bc_put_op(&b, &top, &module);
  assert_refused(&b, &top, RESOURCE_EXHAUSTED, "mebibyte");
}

// A tuple of 2^17 tensors, which a few ops would take and give.
static void test_large_tuples(void** state) {
  (void)state;
  bc_t b = {.format = 6};
  buf_t ops = {0};
  uint32_t type = f32x4(&b);
  for (int i = 0; i < 17; ++i)
    type = BC_TYPE(&b, BC_VHLO, 23, 2, type, type);
  bc_op_t barrier = {
      .name = bc_name(&b, BC_BUILTIN, "unrealized_conversion_cast"),
      .operands = {0},
      .operand_count = 1,
      .types = {type},
      .type_count = 1};
  for (int i = 0; i < 20; ++i) {
    bc_op_t op = barrier;
    bc_put_op(&b, &ops, &op);
  }
  bc_op_t end = return_of(&b, 0);
  bc_put_op(&b, &ops, &end);
  buf_t ir = bc_main(&b, type, 21, 21, &ops);
  assert_refused(&b, &ir, RESOURCE_EXHAUSTED, "a million");
}

static void test_deep_regions(void** state) {
  (void)state;
  bc_t b = {.format = 6};
  buf_t ops = {0};
  uint32_t type = f32x4(&b), wrap = bc_name(&b, BC_VHLO, "if_v1");
  for (int i = 0; i < 200; ++i) {
    bc_op_t op = {.name = wrap, .region_count = 1};
    op.regions[0] = bc_region(0, NULL, 0, i ? 1 : 0, &ops);
    bc_put_op(&b, &ops, &op);
  }
  buf_t ir = bc_main(&b, type, 1, 1, &ops);
  assert_refused(&b, &ir, MALFORMED, "100 deep");
}

static void test_two_modules(void** state) {
  (void)state;
  bc_t b = {.format = 6};
  buf_t top = {0};
  buf_varint(&top, 0);
  assert_refused(&b, &top, MALFORMED, "expected one module");
}

static void test_nothing(void** state) {
  (void)state;
  pestle_module_t* module;
  assert_code(pestle_import_stablehlo(context, NULL, 0, NULL, &module),
              MALFORMED);
  assert_code(pestle_import_stablehlo(context, "ML\xefR", 4, NULL, &module),
              MALFORMED);
  assert_null(module);
}

// --- Quantised types ---

// f32 as APFloat of 64 bits: a signed number.
static void put_scale(buf_t* b, double scale) {
  int64_t bits;
  memcpy(&bits, &scale, sizeof(bits));
  buf_signed(b, bits);
}

// !quant.uniform<i8:f32, 0.5:3>
static uint32_t one_scale(bc_t* b, uint32_t i8, uint32_t f32) {
  bc_entry_t* e = &b->types[b->type_count];
  e->dialect = BC_VHLO;
  buf_varint(&e->bytes, 24);
  buf_varint(&e->bytes, 1);
  buf_varint(&e->bytes, i8);
  buf_varint(&e->bytes, f32);
  put_scale(&e->bytes, 0.5);
  buf_signed(&e->bytes, 3);
  buf_signed(&e->bytes, -128);
  buf_signed(&e->bytes, 127);
  return (uint32_t)b->type_count++;
}

// !quant.uniform<u8<1:200>:f32:0, {0.5:3,0.25,1.5:2,2.0}>
static uint32_t four_scales(bc_t* b, uint32_t i8, uint32_t f32) {
  bc_entry_t* e = &b->types[b->type_count];
  e->dialect = BC_VHLO;
  buf_varint(&e->bytes, 30);
  buf_varint(&e->bytes, 0);
  buf_varint(&e->bytes, i8);
  buf_varint(&e->bytes, f32);
  buf_varint(&e->bytes, 0);
  buf_signed(&e->bytes, 1);
  buf_signed(&e->bytes, 200);
  buf_varint(&e->bytes, 4);
  static const double scales[] = {0.5, 0.25, 1.5, 2.0};
  for (int i = 0; i < 4; ++i)
    put_scale(&e->bytes, scales[i]);
  buf_varint(&e->bytes, 4);
  static const int64_t zeros[] = {3, 0, 2, 0};
  for (int i = 0; i < 4; ++i)
    buf_signed(&e->bytes, zeros[i]);
  return (uint32_t)b->type_count++;
}

static void test_quantised_types(void** state) {
  (void)state;
#define ONE "tensor<4x!quant.uniform<i8:f32, 0.5:3>>"
#define FOUR "tensor<4x!quant.uniform<u8<1:200>:f32:0, {0.5:3,0.25,1.5:2,2.0}>>"
  static const char text[] =
      "func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
      "  %0 = stablehlo.uniform_quantize %a : (tensor<4xf32>) -> " ONE
      "\n"
      "  %1 = stablehlo.uniform_quantize %a : (tensor<4xf32>) -> " FOUR
      "\n"
      "  %2 = stablehlo.reshape %1 : (" FOUR ") -> " FOUR
      "\n"
      "  %3 = stablehlo.add %0, %2 : (" ONE ", " FOUR ") -> " ONE
      "\n"
      "  %4 = stablehlo.uniform_dequantize %3 : (" ONE
      ") -> tensor<4xf32>\n"
      "  return %4 : tensor<4xf32>\n"
      "}\n";
#undef ONE
#undef FOUR
  bc_t b = {.format = 6};
  buf_t ops = {0};
  const int64_t dims[] = {4};
  uint32_t f32 = bc_element(&b, BC_F32), i8 = bc_element(&b, 11);
  uint32_t plain = bc_tensor(&b, f32, 1, dims);
  uint32_t one = bc_tensor(&b, one_scale(&b, i8, f32), 1, dims);
  uint32_t four = bc_tensor(&b, four_scales(&b, i8, f32), 1, dims);
  bc_op_t quantize = {.name = bc_name(&b, BC_VHLO, "uniform_quantize_v1"),
                      .operands = {0},
                      .operand_count = 1,
                      .types = {one},
                      .type_count = 1};
  bc_op_t other = quantize;
  other.types[0] = four;
  bc_op_t reshape = {.name = bc_name(&b, BC_VHLO, "reshape_v1"),
                     .operands = {2},
                     .operand_count = 1,
                     .types = {four},
                     .type_count = 1};
  bc_op_t add = {.name = bc_name(&b, BC_VHLO, "add_v1"),
                 .operands = {1, 3},
                 .operand_count = 2,
                 .types = {one},
                 .type_count = 1};
  bc_op_t dequantize = {.name = bc_name(&b, BC_VHLO, "uniform_dequantize_v1"),
                        .operands = {4},
                        .operand_count = 1,
                        .types = {plain},
                        .type_count = 1};
  bc_op_t end = return_of(&b, 5);
  bc_put_op(&b, &ops, &quantize);
  bc_put_op(&b, &ops, &other);
  bc_put_op(&b, &ops, &reshape);
  bc_put_op(&b, &ops, &add);
  bc_put_op(&b, &ops, &dequantize);
  bc_put_op(&b, &ops, &end);
  buf_t ir = bc_main(&b, plain, 6, 6, &ops);
  pestle_module_t *module, *same;
  uint64_t hash[2], expected[2];
  assert_ok(import(&b, &ir, &module));
  assert_ok(pestle_module_parse(context, text, sizeof(text) - 1, NULL, &same));
  assert_ok(pestle_module_signature(module, hash));
  assert_ok(pestle_module_signature(same, expected));
  assert_memory_equal(hash, expected, sizeof(hash));
  pestle_module_release(module);
  pestle_module_release(same);
}

static void test_quantised_to_nothing(void** state) {
  (void)state;
  for (int zero = 0; zero < 2; ++zero) {
    bc_t b = {.format = 6};
    buf_t ops = {0};
    uint32_t f32 = bc_element(&b, BC_F32), i8 = bc_element(&b, 11);
    uint32_t type = (uint32_t)b.type_count;
    bc_entry_t* e = &b.types[b.type_count++];
    e->dialect = BC_VHLO;
    buf_varint(&e->bytes, 24);
    buf_varint(&e->bytes, 1);
    buf_varint(&e->bytes, zero ? f32 : i8);
    buf_varint(&e->bytes, f32);
    put_scale(&e->bytes, 0);
    buf_signed(&e->bytes, 3);
    buf_signed(&e->bytes, -128);
    buf_signed(&e->bytes, 127);
    type = bc_tensor(&b, type, 0, NULL);
    bc_op_t end = return_of(&b, 0);
    bc_put_op(&b, &ops, &end);
    buf_t ir = bc_main(&b, type, 1, 1, &ops);
    if (zero)
      assert_refused(&b, &ir, UNSUPPORTED, "not supported");
    else
      assert_refused(&b, &ir, MALFORMED, "no positive number");
  }
}

// --- Shardy ---

static void test_shardings_are_nothing(void** state) {
  (void)state;
  bc_t b = {.format = 6};
  buf_t ops = {0}, inner = {0};
  uint32_t type = f32x4(&b);
  bc_op_t constraint = {.name = bc_name(&b, BC_SDY, "sharding_constraint"),
                        .operands = {0},
                        .operand_count = 1,
                        .types = {type},
                        .type_count = 1};
  bc_op_t negate = {.name = bc_name(&b, BC_VHLO, "negate_v1"),
                    .operands = {0},
                    .operand_count = 1,
                    .types = {type},
                    .type_count = 1};
  bc_op_t inner_end = {.name = bc_name(&b, BC_SDY, "return"),
                       .operands = {1},
                       .operand_count = 1};
  bc_put_op(&b, &inner, &negate);
  bc_put_op(&b, &inner, &inner_end);
  // <@m, [{"d"}]> in and out: of one device the part is the whole.
  uint32_t name = BC_ATTRIBUTE(&b, BC_BUILTIN, 2, bc_string(&b, "d"));
  uint32_t axis = BC_ATTRIBUTE(&b, BC_SDY, 4, bc_string(&b, "d"), 0);
  uint32_t dimension = BC_ATTRIBUTE(&b, BC_SDY, 5, 1, axis, 0, 0);
  uint32_t mesh = BC_ATTRIBUTE(&b, BC_BUILTIN, 4, name);
  uint32_t lies = BC_ATTRIBUTE(&b, BC_SDY, 6, mesh, 1, dimension, 0);
  uint32_t all = BC_ATTRIBUTE(&b, BC_SDY, 7, 1, lies);
  uint32_t properties[] = {all, BC_ATTRIBUTE(&b, BC_SDY, 0, 1, name), all};
  bc_op_t manual = {.name = bc_name(&b, BC_SDY, "manual_computation"),
                    .properties = bc_properties(&b, properties, 3) + 1,
                    .operands = {1},
                    .operand_count = 1,
                    .types = {type},
                    .type_count = 1,
                    .region_count = 1,
                    .isolated = true};
  manual.regions[0] = bc_region(2, &type, 1, 2, &inner);
  bc_op_t end = return_of(&b, 2);
  bc_put_op(&b, &ops, &constraint);
  bc_put_op(&b, &ops, &manual);
  bc_put_op(&b, &ops, &end);
  buf_t ir = bc_main(&b, type, 3, 3, &ops);
  pestle_module_t* module;
  assert_ok(import(&b, &ir, &module));
  const pestle_block_t* body = pestle_module_entry(module)->body->block;
  assert_int_equal(body->first->op, PESTLE_OP_NEGATE);
  assert_ptr_equal(body->first->operands[0].value, body->arguments[0]);
  assert_ptr_equal(body->first->next, body->last);
  pestle_module_release(module);
}

static int begin(void** state) {
  (void)state;
  pestle_status_t status = pestle_context_create(NULL, &context);
  pestle_status_release(status);
  return status ? -1 : 0;
}

static int end(void** state) {
  (void)state;
  pestle_context_release(context);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_numbers),
      cmocka_unit_test(test_smallest_program),
      cmocka_unit_test(test_unknown_ops_are_listed),
      cmocka_unit_test(test_all_functions_are_heard),
      cmocka_unit_test(test_newest_custom_call),
      cmocka_unit_test(test_newer_format),
      cmocka_unit_test(test_use_before_definition),
      cmocka_unit_test(test_values_that_are_not),
      cmocka_unit_test(test_wrong_result_type),
      cmocka_unit_test(test_types_without_end),
      cmocka_unit_test(test_long_texts),
      cmocka_unit_test(test_large_tuples),
      cmocka_unit_test(test_deep_regions),
      cmocka_unit_test(test_two_modules),
      cmocka_unit_test(test_nothing),
      cmocka_unit_test(test_quantised_types),
      cmocka_unit_test(test_quantised_to_nothing),
      cmocka_unit_test(test_shardings_are_nothing),
  };
  return cmocka_run_group_tests(tests, begin, end);
}

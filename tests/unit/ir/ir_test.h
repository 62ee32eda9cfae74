// SPDX-License-Identifier: Apache-2.0
// Fixture of the tests of ir/: a module on a counting allocator, types and
// constants in one line, and a run of something under every failing allocation.
#ifndef PESTLE_TESTS_UNIT_IR_IR_TEST_H_
#define PESTLE_TESTS_UNIT_IR_IR_TEST_H_

#include "ir/graph.h"
#include "test.h"

#define DYN PESTLE_DIM_DYNAMIC

// T(F32, 2, 3): a type. T0(F32): rank 0.
#define T(dtype, ...)                                                    \
  pestle_type_make(PESTLE_##dtype, sizeof((int64_t[]){__VA_ARGS__}) / 8, \
                   (const int64_t[]){__VA_ARGS__})
#define T0(dtype) pestle_type_make(PESTLE_##dtype, 0, NULL)

#define ATTRS(op, ...)                                                    \
  (&(pestle_##op##_attrs_t){.struct_size = sizeof(pestle_##op##_attrs_t), \
                            __VA_ARGS__})
#define I64S PESTLE_I64S

typedef struct ir_test_t {
  pestle_test_allocator_t memory;
  pestle_context_t* context;
  pestle_module_t* module;
  pestle_function_t* function;  // "main", whose arguments are what is tested
  pestle_builder_t b;
  pestle_value_t* a[10];  // its arguments
} ir_test_t;

static inline pestle_status_t ir_test_begin(ir_test_t* t, size_t fail_at,
                                            const pestle_type_t* types,
                                            size_t count) {
  memset(t, 0, sizeof(*t));
  pestle_test_allocator_init(&t->memory, fail_at);
  pestle_context_options_t options = {
      .struct_size = sizeof(options),
      .allocator = pestle_test_allocator(&t->memory)};
  PESTLE_TRY(pestle_context_create(&options, &t->context));
  PESTLE_TRY(pestle_module_create(t->context, "test", &t->module));
  PESTLE_TRY(pestle_module_add_function(t->module, "main", types, NULL, count,
                                        &t->function));
  t->b = pestle_builder_make(t->function);
  for (size_t i = 0; i < count && i < 10; ++i) {
    t->a[i] = pestle_function_argument(t->function, i);
  }
  return NULL;
}

static inline void ir_test_end(ir_test_t* t) {
  pestle_module_release(t->module);
  pestle_context_release(t->context);
  pestle_test_allocator_check(&t->memory);
}

#define BEGIN(t, ...)                                                       \
  ir_test_t t;                                                              \
  do {                                                                      \
    const pestle_type_t begin_types_[] = {__VA_ARGS__};                     \
    assert_ok(ir_test_begin(&(t), 0, begin_types_,                          \
                            sizeof(begin_types_) / sizeof(*begin_types_))); \
  } while (0)

static inline size_t ir_test_node_count(const ir_test_t* t) {
  size_t count = 0;
  const pestle_node_t* node = NULL;
  while ((node = pestle_region_next(t->function->body, node)))
    ++count;
  return count;
}

// Runs |work| with the first, second, ... allocation failing until none fails:
// each failure is OUT_OF_MEMORY, leaves a module that verifies but for its
// missing end, and leaks nothing.
static inline void ir_test_every_failure(
    const pestle_type_t* types, size_t count,
    pestle_status_t (*work)(ir_test_t* t)) {
  for (size_t k = 1;; ++k) {
    ir_test_t t;
    pestle_status_t status = ir_test_begin(&t, k, types, count);
    if (!status) status = work(&t);
    bool failed = pestle_test_allocator_failed(&t.memory);
    if (failed) {
      assert_code(status, OUT_OF_MEMORY);
    } else {
      assert_ok(status);
    }
    atomic_store(&t.memory.fail_at, 0);
    if (t.function) {
      // Usable afterwards.
      pestle_value_t* out = NULL;
      pestle_value_t* x = t.a[0];
      if (!t.function->body->block->last ||
          t.function->body->block->last->op != PESTLE_OP_RETURN) {
        assert_ok(pestle_op_add(&t.b, x, x, &out));
        assert_ok(pestle_op_return(&t.b, &out, 1, NULL));
      }
      assert_ok(pestle_module_verify(t.module));
    }
    ir_test_end(&t);
    if (!failed) break;
  }
}

static inline pestle_status_t ir_test_constant(pestle_builder_t* b,
                                               pestle_type_t type,
                                               const void* data,
                                               pestle_value_t** out) {
  return pestle_op_constant(
      b,
      ATTRS(constant, .value = {type, data, pestle_type_bytes(&type), false}),
      out);
}

static inline void assert_type_(const pestle_value_t* value,
                                pestle_type_t expected, const char* file,
                                int line) {
  if (value && pestle_type_equal(value->type, &expected)) return;
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  if (value) pestle_type_print(value->type, &text);
  pestle_strbuf_append_c(&text, " is not ");
  pestle_type_print(&expected, &text);
  print_error("%s\n", pestle_strbuf_cstr(&text));
  pestle_strbuf_deinit(&text);
  _fail(file, line);
}
#define assert_type(value, ...) \
  assert_type_((value), (__VA_ARGS__), __FILE__, __LINE__)

// A region with |count| arguments of |type| that returns op(argument 0, 1).
static inline pestle_region_t* ir_test_reducer(ir_test_t* t, pestle_op_t op,
                                               pestle_type_t type) {
  pestle_region_t* region;
  pestle_builder_t b = {.module = t->module};
  pestle_type_t types[2] = {type, type};
  assert_ok(pestle_region_create(t->module, types, 2, &region, &b.block));
  pestle_value_t* operands[2] = {pestle_block_argument(b.block, 0),
                                 pestle_block_argument(b.block, 1)};
  pestle_node_t* node;
  assert_ok(pestle_node_create(
      &b,
      &(pestle_node_spec_t){.op = op, .operands = operands, .operand_count = 2},
      &node));
  pestle_value_t* result = pestle_node_result(node, 0);
  assert_ok(pestle_op_return(&b, &result, 1, NULL));
  return region;
}

#endif  // PESTLE_TESTS_UNIT_IR_IR_TEST_H_

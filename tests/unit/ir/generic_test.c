// SPDX-License-Identifier: Apache-2.0
// Ops from names and values, as a reader of bytecode has them.
#include "ir/generic.h"

#include "ir_test.h"

typedef pestle_generic_value_t value_t;
typedef pestle_generic_entry_t entry_t;

// --- Values ---

#define INT(n) ((value_t){.kind = PESTLE_GENERIC_INT, .i64 = (n)})
#define WORD(t) ((value_t){.kind = PESTLE_GENERIC_WORD, .text = PESTLE_STR(t)})
#define STRING(t) \
  ((value_t){.kind = PESTLE_GENERIC_STRING, .text = PESTLE_STR(t)})

// A list of at most 8 integers.
typedef struct list_t {
  entry_t entries[8];
} list_t;

static value_t make_list(list_t* l, const int64_t* data, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    l->entries[i] = (entry_t){.value = INT(data[i])};
    if (i) l->entries[i - 1].next = &l->entries[i];
  }
  return (value_t){.kind = PESTLE_GENERIC_LIST,
                   .entries = count ? l->entries : NULL,
                   .entry_count = count};
}

// A dictionary of at most 8 entries.
typedef struct dict_t {
  entry_t entries[8];
  size_t count;
} dict_t;

static void put(dict_t* d, const char* key, value_t value) {
  d->entries[d->count] = (entry_t){.key = pestle_str(key), .value = value};
  if (d->count) d->entries[d->count - 1].next = &d->entries[d->count];
  ++d->count;
}

static value_t make_dict(dict_t* d) {
  return (value_t){.kind = PESTLE_GENERIC_DICT,
                   .text = PESTLE_STR("{}"),
                   .entries = d->entries,
                   .entry_count = d->count};
}

static pestle_op_t op_of(const char* name) {
  pestle_op_t op = PESTLE_OP_COUNT;
  assert_true(pestle_generic_find_op(pestle_str(name), &op));
  return op;
}

// An op of |name| with |dict| on the first |count| arguments.
static pestle_status_t build(ir_test_t* t, pestle_generic_t* g,
                             pestle_arena_t* arena, const char* name,
                             const value_t* dict, size_t count,
                             const pestle_type_t* types, size_t type_count,
                             pestle_node_t** out) {
  pestle_generic_begin(arena, op_of(name), g);
  PESTLE_TRY(pestle_generic_apply(g, dict));
  PESTLE_TRY(pestle_generic_create(g, &t->b, t->a, count, NULL, 0, types,
                                   type_count, out));
  return pestle_generic_layouts(g, out);
}

#define BEGIN_GENERIC(...)                              \
  BEGIN(t, __VA_ARGS__);                                \
  pestle_arena_t arena;                                 \
  pestle_arena_init(t.module->arena.allocator, &arena); \
  pestle_generic_t g;                                   \
  pestle_node_t* node = NULL;                           \
  dict_t d = {.count = 0}

#define END_GENERIC()          \
  pestle_arena_deinit(&arena); \
  ir_test_end(&t)

// --- Tests ---

static void names_are_rows(void** state) {
  (void)state;
  pestle_op_t op;
  assert_int_equal(op_of("stablehlo.add"), PESTLE_OP_ADD);
  assert_int_equal(op_of("stablehlo.compare"), PESTLE_OP_EQ);
  assert_int_equal(op_of("func.return"), PESTLE_OP_RETURN);
  assert_int_equal(op_of("stablehlo.return"), PESTLE_OP_RETURN);
  assert_int_equal(op_of("func.call"), PESTLE_OP_CALL);
  assert_int_equal(op_of("stablehlo.composite"), PESTLE_OP_CUSTOM);
  assert_false(pestle_generic_find_op(PESTLE_STR("stablehlo.nothing"), &op));
}

static void dimension_numbers_are_attributes(void** state) {
  (void)state;
  BEGIN_GENERIC(T(F32, 2, 3, 4), T(F32, 2, 4, 5));
  list_t lists[4];
  dict_t numbers = {.count = 0};
  put(&numbers, "lhs_batching_dimensions",
      make_list(&lists[0], (int64_t[]){0}, 1));
  put(&numbers, "rhs_batching_dimensions",
      make_list(&lists[1], (int64_t[]){0}, 1));
  put(&numbers, "lhs_contracting_dimensions",
      make_list(&lists[2], (int64_t[]){2}, 1));
  put(&numbers, "rhs_contracting_dimensions",
      make_list(&lists[3], (int64_t[]){1}, 1));
  put(&d, "dot_dimension_numbers", make_dict(&numbers));
  pestle_generic_entry_t word = {.value = WORD("DEFAULT")};
  value_t words = {
      .kind = PESTLE_GENERIC_LIST, .entries = &word, .entry_count = 1};
  put(&d, "precision_config", words);     // asks for nothing
  put(&d, "mhlo.frontend", STRING("x"));  // nor does a dialect's
  value_t dict = make_dict(&d);
  pestle_type_t type = T(F32, 2, 3, 5);
  assert_ok(build(&t, &g, &arena, "stablehlo.dot_general", &dict, 2, &type, 1,
                  &node));
  assert_int_equal(node->op, PESTLE_OP_DOT_GENERAL);
  assert_int_equal(PESTLE_NODE_I64S(node, lhs_contracting_dimensions).data[0],
                   2);
  END_GENERIC();
}

static void comparisons_get_their_row(void** state) {
  (void)state;
  BEGIN_GENERIC(T(F32, 4), T(F32, 4));
  pestle_type_t type = T(I1, 4);
  put(&d, "comparison_direction", WORD("GE"));
  put(&d, "compare_type", WORD("FLOAT"));
  value_t dict = make_dict(&d);
  assert_ok(
      build(&t, &g, &arena, "stablehlo.compare", &dict, 2, &type, 1, &node));
  assert_int_equal(node->op, PESTLE_OP_GE);
  // In total order keys are compared, not the operands.
  d.entries[1].value = WORD("TOTALORDER");
  assert_ok(
      build(&t, &g, &arena, "stablehlo.compare", &dict, 2, &type, 1, &node));
  assert_int_equal(node->op, PESTLE_OP_GE);
  assert_ptr_not_equal(pestle_node_operand(node, 0), t.a[0]);
  assert_int_equal(pestle_node_operand(node, 0)->type->dtype, PESTLE_I32);
  END_GENERIC();
}

static void layouts_are_transposes(void** state) {
  (void)state;
  BEGIN_GENERIC(T(F32, 2, 3));
  list_t layout;
  entry_t of = {.value = make_list(&layout, (int64_t[]){0, 1}, 2)};
  put(&d, "call_target_name", STRING("f"));
  put(&d, "operand_layouts",
      (value_t){.kind = PESTLE_GENERIC_LIST, .entries = &of, .entry_count = 1});
  value_t dict = make_dict(&d);
  pestle_type_t type = T(F32, 7);
  assert_ok(build(&t, &g, &arena, "stablehlo.custom_call", &dict, 1, &type, 1,
                  &node));
  assert_int_equal(node->op, PESTLE_OP_CUSTOM_CALL);
  const pestle_node_t* x = pestle_node_operand(node, 0)->node;
  assert_int_equal(x->op, PESTLE_OP_TRANSPOSE);
  // A layout that names no axes is told with the value that does so.
  of.value = make_list(&layout, (int64_t[]){0, 2}, 2);
  assert_error(
      build(&t, &g, &arena, "stablehlo.custom_call", &dict, 1, &type, 1, &node),
      MALFORMED, "layout 0 must name each axis");
  assert_ptr_equal(g.at, &of.value);
  END_GENERIC();
}

static void composites_get_bodies(void** state) {
  (void)state;
  BEGIN_GENERIC(T(F32, 4));
  pestle_type_t type = T(F32, 4);
  pestle_function_t* f;
  pestle_value_t* y;
  assert_ok(pestle_module_add_function(t.module, "f.impl", &type, NULL, 1, &f));
  f->is_private = true;
  pestle_builder_t b = pestle_builder_make(f);
  assert_ok(pestle_op_negate(&b, pestle_function_argument(f, 0), &y));
  assert_ok(pestle_op_return(&b, &y, 1, NULL));
  put(&d, "name", STRING("user.f"));
  put(&d, "decomposition",
      (value_t){.kind = PESTLE_GENERIC_SYMBOL, .text = PESTLE_STR("f.impl")});
  value_t dict = make_dict(&d);
  assert_ok(
      build(&t, &g, &arena, "stablehlo.composite", &dict, 1, &type, 1, &node));
  y = pestle_node_result(node, 0);
  assert_ok(pestle_op_return(&t.b, &y, 1, NULL));
  pestle_generic_composite_t composite = {.node = node,
                                          .decomposition = g.decomposition};
  const pestle_generic_composite_t* at;
  assert_ok(pestle_generic_attach_bodies(t.module, &composite, 1, &at));
  assert_null(at);
  assert_null(t.module->first->next);
  node = t.b.block->first;
  assert_int_equal(node->op, PESTLE_OP_CUSTOM);
  assert_int_equal(node->region_count, 1);
  assert_ok(pestle_module_verify(t.module));
  END_GENERIC();
}

static void failures_say_which_value(void** state) {
  (void)state;
  BEGIN_GENERIC(T(F32, 4, 5));
  pestle_type_t type = T(F32, 5, 4);
  d.count = 0;
  put(&d, "permutation", STRING("x"));
  value_t dict = make_dict(&d);
#define BUILD(name, code, part)                                              \
  assert_error(build(&t, &g, &arena, name, &dict, 1, &type, 1, &node), code, \
               part)
  BUILD("stablehlo.transpose", MALFORMED, "expected a list of integers");
  assert_ptr_equal(g.at, &d.entries[0].value);
  d.count = 0;
  put(&d, "more", INT(1));
  d.entries[0].value.line = 3;
  dict = make_dict(&d);
  BUILD("stablehlo.transpose", UNSUPPORTED, "has no attribute 'more'");
  assert_ptr_equal(g.at, &d.entries[0].value);
  d.count = 0;
  put(&d, "comparison_direction", WORD("NEAR"));
  dict = make_dict(&d);
  BUILD("stablehlo.compare", MALFORMED, "expected EQ, NE");
  d.count = 0;
  put(&d, "precision_config", WORD("DEFAULT"));
  dict = make_dict(&d);
  BUILD("stablehlo.dot_general", MALFORMED, "expected up to two of DEFAULT");
  assert_ptr_equal(g.at, &d.entries[0].value);
  d.count = 0;
  put(&d, "name", STRING("user.f"));
  dict = make_dict(&d);
  BUILD("stablehlo.composite", MALFORMED, "'decomposition'");
  assert_null(g.at);
  d.count = 0;
  put(&d, "call_target_name", STRING("f"));
  put(&d, "has_side_effect", (value_t){.kind = PESTLE_GENERIC_BOOL, .b = true});
  put(&d, "pestle.version", INT(1));
  dict = make_dict(&d);
  BUILD("stablehlo.custom_call", UNSUPPORTED, "'has_side_effect'");
  // A dictionary may be in two parts, an attribute in one of them.
  d.count = 0;
  put(&d, "dimension", INT(0));
  dict = make_dict(&d);
  pestle_generic_begin(&arena, PESTLE_OP_CONCATENATE, &g);
  assert_ok(pestle_generic_apply(&g, &dict));
  assert_error(pestle_generic_apply(&g, &dict), MALFORMED, "is given twice");
  END_GENERIC();
}

static pestle_status_t work_generic(ir_test_t* t) {
  pestle_arena_t arena;
  pestle_generic_t g;
  pestle_node_t* node;
  list_t list;
  dict_t d = {.count = 0};
  put(&d, "permutation", make_list(&list, (int64_t[]){1, 0}, 2));
  value_t dict = make_dict(&d);
  pestle_type_t type = T(F32, 5, 4);
  pestle_arena_init(t->module->arena.allocator, &arena);
  pestle_status_t status =
      build(t, &g, &arena, "stablehlo.transpose", &dict, 1, &type, 1, &node);
  pestle_arena_deinit(&arena);
  return status;
}

static void every_allocation_may_fail(void** state) {
  (void)state;
  pestle_type_t types[] = {T(F32, 4, 5)};
  ir_test_every_failure(types, 1, work_generic);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_are_rows),
      cmocka_unit_test(dimension_numbers_are_attributes),
      cmocka_unit_test(comparisons_get_their_row),
      cmocka_unit_test(layouts_are_transposes),
      cmocka_unit_test(composites_get_bodies),
      cmocka_unit_test(failures_say_which_value),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

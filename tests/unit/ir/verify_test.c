// SPDX-License-Identifier: Apache-2.0
// The verifier: builders make nothing wrong, so each test breaks a sound module
// by hand, or by the order in which it edits.
#include "ir_test.h"

#define MALFORMED(t, text) \
  assert_error(pestle_module_verify((t).module), MALFORMED, text)

// main(x) = -x + x
static void build_sum(ir_test_t* t, pestle_value_t** n, pestle_value_t** s) {
  t->b.loc.name = "n1";
  assert_ok(pestle_op_negate(&t->b, t->a[0], n));
  t->b.loc.name = "s1";
  assert_ok(pestle_op_add(&t->b, *n, t->a[0], s));
  assert_ok(pestle_op_return(&t->b, s, 1, NULL));
  assert_ok(pestle_module_verify(t->module));
}

static void order(void** state) {
  (void)state;
  pestle_value_t *n, *s;
  BEGIN(t, T(F32, 2));
  build_sum(&t, &n, &s);
  pestle_node_move(n->node, s->node->next);
  MALFORMED(t,
            "the module has 1 error; in function 'main': stablehlo.add at "
            "node 's1': operand 0 is used before or outside of where it is "
            "defined");
  pestle_node_move(n->node, s->node);
  assert_ok(pestle_module_verify(t.module));
  pestle_node_move(t.b.block->last, n->node);
  MALFORMED(t, "the op ends its block, but others follow");
  MALFORMED(t, "the block does not end with a return");
  MALFORMED(t, "the module has 3 errors");
  ir_test_end(&t);
}

static void unfinished_functions(void** state) {
  (void)state;
  pestle_value_t* n;
  BEGIN(t, T(F32, 2));
  MALFORMED(t, "in function 'main': the body is empty");
  assert_ok(pestle_op_negate(&t.b, t.a[0], &n));
  MALFORMED(t, "stablehlo.negate: the block does not end with a return");
  ir_test_end(&t);
}

static void types(void** state) {
  (void)state;
  pestle_value_t *n, *s;
  BEGIN(t, T(F32, 2), T(F32, 3));
  build_sum(&t, &n, &s);
  const pestle_type_t* type = n->type;
  n->type = t.a[1]->type;
  MALFORMED(t,
            "stablehlo.negate at node 'n1': result 0 is tensor<3xf32>, its "
            "rule gives tensor<2xf32>");
  MALFORMED(t, "shapes must be equal");
  pestle_type_t own = *type;
  n->type = &own;
  MALFORMED(t, "the type of value 0 is not interned");
  n->type = type;
  n->node->op = PESTLE_OP_NOT;
  MALFORMED(t,
            "stablehlo.not at node 'n1': operand 0 is tensor<2xf32>: its "
            "element type must be of kind");
  n->node->op = PESTLE_OP_COUNT;
  MALFORMED(t, "which no row has");
  n->node->op = PESTLE_OP_NEGATE;
  assert_ok(pestle_module_verify(t.module));
  ir_test_end(&t);
}

static void links(void** state) {
  (void)state;
  pestle_value_t *n, *s;
  BEGIN(t, T(F32, 2));
  build_sum(&t, &n, &s);
  ++n->use_count;
  MALFORMED(t, "value 0 counts 2 uses and has others");
  --n->use_count;
  pestle_use_t* uses = n->uses;
  n->uses = NULL;
  MALFORMED(t, "operand 0 is not on the use list of its value");
  n->uses = uses;
  uses->user = n->node;
  MALFORMED(t, "the use list of value 0 is broken");
  uses->user = s->node;
  n->index = 1;
  MALFORMED(t, "result 0 does not know its op");
  n->index = 0;
  n->node->next->prev = NULL;
  MALFORMED(t, "neighbours do not link to it");
  n->node->next->prev = n->node;
  t.a[0]->index = 4;
  MALFORMED(t, "argument 0 does not know its block");
  t.a[0]->index = 0;
  assert_ok(pestle_module_verify(t.module));
  ir_test_end(&t);
}

static void attributes(void** state) {
  (void)state;
  pestle_value_t *y, *z;
  BEGIN(t, T(F32, 2, 6), T0(F32));
  assert_ok(pestle_op_pad(
      &t.b, t.a[0], t.a[1],
      ATTRS(pad, .edge_padding_low = I64S(0, 0),
            .edge_padding_high = I64S(0, 0), .interior_padding = I64S(0, 0)),
      &y));
  assert_ok(pestle_op_transpose(
      &t.b, y, ATTRS(transpose, .permutation = I64S(1, 0)), &z));
  assert_ok(pestle_op_return(&t.b, &z, 1, NULL));
  pestle_attr_t first = y->node->attrs[0];
  y->node->attrs[0] = y->node->attrs[1];
  y->node->attrs[1] = first;
  MALFORMED(t, "the attributes are not sorted");
  y->node->attrs[1] = y->node->attrs[0];
  y->node->attrs[0] = first;
  z->node->attr_count = 0;
  MALFORMED(t, "attribute 'permutation' is missing");
  MALFORMED(t, "the op has 0 attributes, its row has 1");
  z->node->attr_count = 1;
  assert_ok(pestle_module_verify(t.module));
  ir_test_end(&t);
}

// Values of a region are not seen outside; fusions do not capture.
static void visibility(void** state) {
  (void)state;
  pestle_value_t *y, *inside;
  pestle_region_t* region;
  BEGIN(t, T(F32, 2));
  pestle_type_t type = T(F32, 2);
  pestle_builder_t b = {.module = t.module};
  assert_ok(pestle_region_create(t.module, &type, 1, &region, &b.block));
  assert_ok(pestle_op_add(&b, pestle_block_argument(b.block, 0),
                          pestle_block_argument(b.block, 0), &inside));
  assert_ok(pestle_op_return(&b, &inside, 1, NULL));
  assert_ok(pestle_op_fusion(&t.b, t.a, 1, NULL, region, &y, 1));
  assert_ok(pestle_op_return(&t.b, &y, 1, NULL));
  assert_ok(pestle_module_verify(t.module));
  pestle_node_set_operand(t.b.block->last, 0, inside);
  MALFORMED(t, "operand 0 is used before or outside of where it is defined");
  pestle_node_set_operand(t.b.block->last, 0, y);
  pestle_node_set_operand(inside->node, 1, t.a[0]);
  MALFORMED(t, "operand 1 is defined outside of the fusion around the op");
  pestle_node_set_operand(inside->node, 1, y);
  MALFORMED(t, "operand 1 is used before");
  ir_test_end(&t);
}

static void ops_by_name_do_not_capture(void** state) {
  (void)state;
  pestle_value_t *y, *inside;
  pestle_region_t* region;
  BEGIN(t, T(F32, 2));
  pestle_type_t type = T(F32, 2);
  pestle_builder_t b = {.module = t.module};
  assert_ok(pestle_region_create(t.module, &type, 1, &region, &b.block));
  assert_ok(pestle_op_negate(&b, pestle_block_argument(b.block, 0), &inside));
  assert_ok(pestle_op_return(&b, &inside, 1, NULL));
  assert_ok(pestle_op_composite(&t.b, t.a, 1,
                                ATTRS(composite, .name = "user.op"), &region, 1,
                                NULL, 0, &y, 1));
  assert_ok(pestle_op_return(&t.b, &y, 1, NULL));
  assert_ok(pestle_module_verify(t.module));
  pestle_node_set_operand(inside->node, 0, t.a[0]);
  MALFORMED(t, "operand 0 is defined outside of the composite around the op");
  ir_test_end(&t);
}

static void function_bodies_do_not_capture(void** state) {
  (void)state;
  pestle_function_t* f;
  BEGIN(t, T(F32, 2));
  assert_ok(pestle_op_return(&t.b, t.a, 1, NULL));
  assert_ok(pestle_module_add_function(t.module, "f", NULL, NULL, 0, &f));
  pestle_builder_t b = pestle_builder_make(f);
  assert_ok(pestle_op_return(&b, t.a, 1, NULL));
  MALFORMED(t,
            "in function 'f': stablehlo.return: operand 0 is used before or "
            "outside");
  ir_test_end(&t);
}

static void calls(void** state) {
  (void)state;
  pestle_function_t* f;
  pestle_value_t* y;
  BEGIN(t, T(F32, 2));
  pestle_type_t type = T(F32, 2), other = T(F32, 3);
  assert_ok(pestle_module_add_function(t.module, "f", &type, NULL, 1, &f));
  assert_ok(pestle_function_declare_results(f, &type, 1));
  assert_ok(pestle_op_call(&t.b, t.a, 1, ATTRS(call, .callee = "f"), &y, 1));
  assert_ok(pestle_op_return(&t.b, &y, 1, NULL));
  pestle_builder_t b = pestle_builder_make(f);
  y = pestle_function_argument(f, 0);
  assert_ok(pestle_op_call(&b, &y, 1, ATTRS(call, .callee = "main"), &y, 1));
  assert_ok(pestle_op_return(&b, &y, 1, NULL));
  MALFORMED(t, "func.call: 'main' is called while it runs");
  pestle_module_t* m;
  type.dims[0] = 2;
  pestle_node_set_operand(f->body->block->last, 0,
                          pestle_function_argument(f, 0));
  pestle_node_erase(f->body->block->first);
  assert_ok(pestle_module_verify(t.module));
  assert_ok(pestle_module_specialize(t.module, &type, 1, &m));
  pestle_module_release(m);
  assert_ok(pestle_function_declare_results(f, &other, 1));
  MALFORMED(t, "in function 'f': the return differs from the declared results");
  f->results_declared = false;
  f->name = pestle_module_intern_string(t.module, "main");
  MALFORMED(t, "two functions are named 'main'");
  MALFORMED(t, "there is no function 'f'");
  ir_test_end(&t);
}

// Specialising a module whose functions call in a circle ends.
static void recursion_does_not_specialise(void** state) {
  (void)state;
  BEGIN(t, T(F32, DYN));
  pestle_type_t type = T(F32, DYN);
  pestle_value_t* y;
  assert_ok(pestle_function_declare_results(t.function, &type, 1));
  assert_ok(pestle_op_call(&t.b, t.a, 1, ATTRS(call, .callee = "main"), &y, 1));
  assert_ok(pestle_op_return(&t.b, &y, 1, NULL));
  MALFORMED(t, "'main' is called while it runs");
  pestle_module_t* m;
  type.dims[0] = 2;
  assert_error(pestle_module_specialize(t.module, &type, 1, &m),
               INVALID_ARGUMENT, "'func.call': 'main' calls itself");
  ir_test_end(&t);
}

static void many_findings(void** state) {
  (void)state;
  BEGIN(t, T(F32, 2));
  pestle_value_t* values[150];
  for (size_t i = 0; i < 150; ++i) {
    assert_ok(pestle_op_negate(&t.b, t.a[0], &values[i]));
  }
  assert_ok(pestle_op_return(&t.b, values, 1, NULL));
  for (size_t i = 0; i < 150; ++i)
    values[i]->node->op = PESTLE_OP_NOT;
  pestle_status_t status = pestle_module_verify(t.module);
  assert_string_equal(pestle_status_message(status),
                      "the module has 150 errors");
  assert_string_equal(pestle_status_note(status, 100), "and 50 more");
  assert_null(pestle_status_note(status, 101));
  pestle_status_release(status);
  ir_test_end(&t);
}

static pestle_status_t work_verify(ir_test_t* t) {
  pestle_value_t* y;
  PESTLE_TRY(pestle_op_negate(&t->b, t->a[0], &y));
  PESTLE_TRY(pestle_op_return(&t->b, &y, 1, NULL));
  return pestle_module_verify(t->module);
}

static void survives_failures(void** state) {
  (void)state;
  pestle_type_t type = T(F32, 2);
  ir_test_every_failure(&type, 1, work_verify);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(order),
      cmocka_unit_test(unfinished_functions),
      cmocka_unit_test(types),
      cmocka_unit_test(links),
      cmocka_unit_test(attributes),
      cmocka_unit_test(visibility),
      cmocka_unit_test(ops_by_name_do_not_capture),
      cmocka_unit_test(function_bodies_do_not_capture),
      cmocka_unit_test(calls),
      cmocka_unit_test(recursion_does_not_specialise),
      cmocka_unit_test(many_findings),
      cmocka_unit_test(survives_failures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

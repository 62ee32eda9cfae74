// SPDX-License-Identifier: Apache-2.0
// Modules, editing, walking, cloning, specialising.
#include "ir/copy.h"
#include "ir_test.h"

static void types_are_interned(void** state) {
  (void)state;
  BEGIN(t, T(F32, 2, 3));
  pestle_type_t a = T(F32, 2, 3), b = T(F32, 2, 4), c = T(F16, 2, 3);
  assert_ptr_equal(pestle_module_intern_type(t.module, &a), t.a[0]->type);
  assert_ptr_not_equal(pestle_module_intern_type(t.module, &b), t.a[0]->type);
  assert_ptr_not_equal(pestle_module_intern_type(t.module, &c), t.a[0]->type);
  const char* text = pestle_module_intern_string(t.module, "x");
  assert_ptr_equal(pestle_module_intern_string(t.module, "x"), text);
  ir_test_end(&t);
}

static void types_print_and_check(void** state) {
  (void)state;
  const struct {
    pestle_type_t type;
    const char* text;
    const char* error;
  } cases[] = {
      {T(F32, 2, 3), "tensor<2x3xf32>", NULL},
      {T0(BF16), "tensor<bf16>", NULL},
      {T(I1, DYN, 0), "tensor<?x0xi1>", NULL},
      {T(C64, 1), "tensor<1xcomplex<f32>>", NULL},
      {T(F32, -1), "tensor<-1xf32>", "negative"},
      {T0(INDEX), "tensor<index>", "element type index"},
      {T0(NONE), "tensor<none>", "element type none"},
      {T(F32, INT64_MAX), "tensor<9223372036854775807xf32>", "2^63"},
      {T(I8, INT64_C(1) << 32, INT64_C(1) << 32, 0),
       "tensor<4294967296x4294967296x0xi8>", "2^63"},
      {T(I8, INT64_MAX), "tensor<9223372036854775807xi8>", NULL},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); ++i) {
    pestle_strbuf_t text;
    pestle_strbuf_init(pestle_allocator_system(), &text);
    pestle_type_print(&cases[i].type, &text);
    assert_string_equal(pestle_strbuf_cstr(&text), cases[i].text);
    pestle_strbuf_deinit(&text);
    pestle_status_t status = pestle_type_check(&cases[i].type);
    if (cases[i].error) {
      assert_error(status, INVALID_ARGUMENT, cases[i].error);
    } else {
      assert_ok(status);
    }
  }
  pestle_type_t high = pestle_type_make(PESTLE_F32, 17, (int64_t[17]){0});
  assert_error(pestle_type_check(&high), INVALID_ARGUMENT, "rank 17");
}

static void functions(void** state) {
  (void)state;
  BEGIN(t, T0(F32));
  pestle_function_t* f;
  const char* names[] = {"x", NULL};
  pestle_type_t types[] = {T0(F32), T(I32, 3)};
  assert_error(pestle_module_add_function(t.module, "main", NULL, NULL, 0, &f),
               INVALID_ARGUMENT, "'main' already");
  assert_null(f);
  assert_ok(pestle_module_add_function(t.module, "f", types, names, 2, &f));
  assert_int_equal(pestle_function_argument_count(f), 2);
  assert_string_equal(f->argument_names[0], "x");
  assert_null(f->argument_names[1]);
  assert_ptr_equal(pestle_module_find_function(t.module, "f"), f);
  assert_null(pestle_module_find_function(t.module, "g"));
  assert_ptr_equal(pestle_module_entry(t.module), t.function);
  assert_ok(pestle_function_set_result_name(f, 2, "z"));
  assert_ok(pestle_function_set_result_name(f, 0, "a"));
  assert_int_equal(f->result_name_count, 3);
  assert_string_equal(f->result_names[0], "a");
  assert_null(f->result_names[1]);
  assert_string_equal(f->result_names[2], "z");
  types[1].dims[0] = -3;
  assert_error(pestle_module_add_function(t.module, "g", types, NULL, 2, &f),
               INVALID_ARGUMENT, "in argument 1");
  assert_null(pestle_function_argument(t.function, 1));
  ir_test_end(&t);
}

static uint32_t uses_of(const pestle_value_t* value) {
  uint32_t count = 0;
  for (const pestle_use_t* u = value->uses; u; u = u->next)
    ++count;
  assert_int_equal(count, value->use_count);
  return count;
}

static void uses_follow_edits(void** state) {
  (void)state;
  BEGIN(t, T(F32, 4), T(F32, 4));
  pestle_value_t *x, *y, *z;
  assert_ok(pestle_op_add(&t.b, t.a[0], t.a[0], &x));
  assert_ok(pestle_op_multiply(&t.b, x, t.a[0], &y));
  assert_ok(pestle_op_return(&t.b, &y, 1, NULL));
  assert_int_equal(uses_of(t.a[0]), 3);
  assert_int_equal(uses_of(x), 1);
  pestle_value_replace_all_uses(t.a[0], t.a[1]);
  assert_int_equal(uses_of(t.a[0]), 0);
  assert_int_equal(uses_of(t.a[1]), 3);
  assert_ptr_equal(pestle_node_operand(x->node, 1), t.a[1]);
  pestle_node_set_operand(x->node, 1, t.a[0]);
  assert_int_equal(uses_of(t.a[0]), 1);
  assert_int_equal(uses_of(t.a[1]), 2);
  pestle_value_replace_all_uses(t.a[0], t.a[0]);
  assert_int_equal(uses_of(t.a[0]), 1);

  pestle_builder_t before = pestle_builder_before(y->node);
  assert_ok(pestle_op_negate(&before, x, &z));
  assert_ptr_equal(z->node->next, y->node);
  pestle_value_replace_all_uses(y, z);
  pestle_node_erase(y->node);
  assert_null(y->node->block);
  assert_int_equal(uses_of(x), 1);
  assert_ok(pestle_module_verify(t.module));
  pestle_value_t* w;
  assert_error(pestle_op_negate(&before, y, &w), INVALID_ARGUMENT,
               "not in its block");
  before = pestle_builder_before(z->node);
  assert_error(pestle_op_negate(&before, y, &w), INVALID_ARGUMENT, "erased");
  ir_test_end(&t);
}

static void nodes_move(void** state) {
  (void)state;
  BEGIN(t, T(F32, 4));
  pestle_value_t *x, *y;
  assert_ok(pestle_op_negate(&t.b, t.a[0], &x));
  assert_ok(pestle_op_abs(&t.b, t.a[0], &y));
  pestle_node_move(y->node, x->node);
  assert_ptr_equal(t.b.block->first, y->node);
  assert_ptr_equal(t.b.block->last, x->node);
  pestle_node_move(y->node, NULL);
  assert_ptr_equal(t.b.block->last, y->node);
  pestle_node_move(y->node, y->node);
  assert_ptr_equal(x->node->next, y->node);
  assert_ptr_equal(y->node->prev, x->node);
  ir_test_end(&t);
}

// if (p) { return x + x } else { return x }
static pestle_status_t build_if(ir_test_t* t, pestle_value_t* p,
                                pestle_value_t* x, pestle_value_t** out) {
  pestle_region_t* regions[2];
  for (int i = 0; i < 2; ++i) {
    pestle_builder_t b = {.module = t->module};
    PESTLE_TRY(pestle_region_create(t->module, NULL, 0, &regions[i], &b.block));
    pestle_value_t* y = x;
    pestle_status_t status = i == 0 ? pestle_op_add(&b, x, x, &y) : NULL;
    if (!status) status = pestle_op_return(&b, &y, 1, NULL);
    if (status) {
      for (int r = 0; r <= i; ++r)
        pestle_region_discard(regions[r]);
      return status;
    }
  }
  pestle_status_t status =
      pestle_op_if(&t->b, p, NULL, regions[0], regions[1], out, 1);
  if (status) {
    for (int r = 0; r < 2; ++r)
      pestle_region_discard(regions[r]);
  }
  return status;
}

static void walk_enters_regions(void** state) {
  (void)state;
  BEGIN(t, T0(I1), T(F32, 4));
  pestle_value_t* x;
  assert_ok(build_if(&t, t.a[0], t.a[1], &x));
  assert_ok(pestle_op_return(&t.b, &x, 1, NULL));
  static const pestle_op_t expected[] = {PESTLE_OP_IF, PESTLE_OP_ADD,
                                         PESTLE_OP_RETURN, PESTLE_OP_RETURN,
                                         PESTLE_OP_RETURN};
  const pestle_node_t* node = NULL;
  for (size_t i = 0; i < 5; ++i) {
    node = pestle_region_next(t.function->body, node);
    assert_int_equal(node->op, expected[i]);
  }
  assert_null(pestle_region_next(t.function->body, node));
  assert_ok(pestle_module_verify(t.module));
  // Erasing an op lets go of what its regions captured.
  assert_int_equal(uses_of(t.a[1]), 3);
  pestle_value_replace_all_uses(x, t.a[1]);
  pestle_node_erase(x->node);
  assert_int_equal(uses_of(t.a[1]), 1);
  assert_ok(pestle_module_verify(t.module));
  ir_test_end(&t);
}

// A copy of |node|, an if, with |condition| for its operand.
static pestle_status_t copy_with(ir_test_t* t, const pestle_node_t* node,
                                 pestle_value_t* condition,
                                 pestle_node_t** out_copy) {
  pestle_copier_t copier;
  pestle_copier_init(t->module->arena.allocator, t->b, &copier);
  pestle_status_t status =
      pestle_copier_set(&copier, pestle_node_operand(node, 0), condition);
  if (!status) status = pestle_copier_node(&copier, node, out_copy);
  if (!status) {
    assert_ptr_equal(pestle_copier_get(&copier, pestle_node_result(node, 0)),
                     pestle_node_result(*out_copy, 0));
  }
  pestle_copier_deinit(&copier);
  return status;
}

static void copied_nodes_have_regions_of_their_own(void** state) {
  (void)state;
  BEGIN(t, T0(I1), T(F32, 4), T0(I1));
  pestle_value_t* x;
  assert_ok(build_if(&t, t.a[0], t.a[1], &x));
  pestle_node_t* copy;
  assert_ok(copy_with(&t, x->node, t.a[2], &copy));
  assert_ptr_equal(pestle_node_operand(copy, 0), t.a[2]);
  assert_int_equal(uses_of(t.a[1]), 6);
  assert_ptr_not_equal(copy->regions[0], x->node->regions[0]);
  x = pestle_node_result(copy, 0);
  assert_ok(pestle_op_return(&t.b, &x, 1, NULL));
  assert_ok(pestle_module_verify(t.module));
  ir_test_end(&t);
}

// Copies the whole body of t's function into a region, and gives that up again.
static pestle_status_t copy_body(ir_test_t* t) {
  pestle_copier_t copier;
  pestle_copier_init(t->module->arena.allocator, t->b, &copier);
  pestle_region_t* region;
  pestle_status_t status =
      pestle_copier_region(&copier, t->function->body, &region);
  if (!status) {
    assert_int_equal(region->block->argument_count, 2);
    assert_int_equal(region->block->last->op, PESTLE_OP_RETURN);
    pestle_region_discard(region);
  }
  pestle_copier_deinit(&copier);
  return status;
}

static pestle_status_t work_copy(ir_test_t* t) {
  pestle_value_t* x;
  PESTLE_TRY(build_if(t, t->a[1], t->a[0], &x));
  pestle_node_t* copy;
  PESTLE_TRY(copy_with(t, x->node, t->a[1], &copy));
  x = pestle_node_result(copy, 0);
  PESTLE_TRY(pestle_op_return(&t->b, &x, 1, NULL));
  return copy_body(t);
}

static void copies_survive_failures(void** state) {
  (void)state;
  pestle_type_t types[] = {T(F32, 4), T0(I1)};
  ir_test_every_failure(types, 2, work_copy);
}

static bool same_regions(const pestle_region_t* a, const pestle_region_t* b) {
  const pestle_node_t *x = NULL, *y = NULL;
  for (;;) {
    x = pestle_region_next(a, x);
    y = pestle_region_next(b, y);
    if (!x || !y) return !x && !y;
    if (x->op != y->op || x->operand_count != y->operand_count ||
        x->region_count != y->region_count || x->attr_count != y->attr_count) {
      return false;
    }
    for (uint32_t i = 0; i < x->result_count; ++i) {
      if (!pestle_type_equal(x->results[i].type, y->results[i].type)) {
        return false;
      }
    }
  }
}

static void module_clone(void** state) {
  (void)state;
  BEGIN(t, T0(I1), T(F32, 4));
  float data[4] = {1, 2, 3, 4};
  pestle_value_t *x, *c;
  t.b.loc.name = "conv1";
  assert_ok(ir_test_constant(&t.b, T(F32, 4), data, &c));
  assert_ok(build_if(&t, t.a[0], c, &x));
  assert_ok(pestle_op_return(&t.b, &x, 1, NULL));
  assert_ok(pestle_function_set_result_name(t.function, 0, "out"));
  x->name = pestle_module_intern_string(t.module, "x");
  pestle_module_t* copy;
  assert_ok(pestle_module_clone(t.module, &copy));
  pestle_module_release(t.module);
  t.module = copy;
  pestle_function_t* f = pestle_module_entry(copy);
  assert_ok(pestle_module_verify(copy));
  assert_true(same_regions(f->body, t.function->body));
  assert_string_equal(f->result_names[0], "out");
  const pestle_node_t* first = f->body->block->first;
  assert_string_equal(first->loc.name, "conv1");
  assert_string_equal(first->next->results[0].name, "x");
  // Data is shared: the copy keeps the original alive.
  const pestle_elements_t* value = pestle_value_constant(&first->results[0]);
  assert_memory_equal(value->data, data, sizeof(data));
  ir_test_end(&t);
}

static pestle_status_t work_module_clone(ir_test_t* t) {
  pestle_value_t* x;
  PESTLE_TRY(build_if(t, t->a[1], t->a[0], &x));
  PESTLE_TRY(pestle_op_return(&t->b, &x, 1, NULL));
  pestle_module_t* copy;
  PESTLE_TRY(pestle_module_clone(t->module, &copy));
  pestle_status_t status = pestle_module_verify(copy);
  pestle_module_release(copy);
  return status;
}

static void module_clone_survives_failures(void** state) {
  (void)state;
  pestle_type_t types[] = {T(F32, 4), T0(I1)};
  ir_test_every_failure(types, 2, work_module_clone);
}

// --- Specialisation ---

// main(x: ?x3) = call f(x) + call f(x); f(x) = exp(x), then a product x . x^T
static pestle_status_t build_symbolic(ir_test_t* t) {
  pestle_function_t* f;
  pestle_type_t type = T(F32, DYN, 3);
  pestle_value_t *x, *y, *z;
  PESTLE_TRY(pestle_module_add_function(t->module, "f", &type, NULL, 1, &f));
  f->is_private = true;
  pestle_builder_t b = pestle_builder_make(f);
  x = pestle_function_argument(f, 0);
  PESTLE_TRY(pestle_op_exponential(&b, x, &y));
  PESTLE_TRY(pestle_op_dot_general(
      &b, y, x,
      ATTRS(dot_general, .lhs_contracting_dimensions = I64S(1),
            .rhs_contracting_dimensions = I64S(1)),
      T(F32, DYN, DYN), &z));
  PESTLE_TRY(pestle_op_return(&b, &z, 1, NULL));
  PESTLE_TRY(
      pestle_op_call(&t->b, &t->a[0], 1, ATTRS(call, .callee = "f"), &x, 1));
  PESTLE_TRY(
      pestle_op_call(&t->b, &t->a[0], 1, ATTRS(call, .callee = "f"), &y, 1));
  PESTLE_TRY(pestle_op_add(&t->b, x, y, &z));
  return pestle_op_return(&t->b, &z, 1, NULL);
}

static void specialises(void** state) {
  (void)state;
  BEGIN(t, T(F32, DYN, 3));
  assert_ok(build_symbolic(&t));
  assert_ok(pestle_module_verify(t.module));
  pestle_module_t* m;
  pestle_type_t type = T(F32, 5, 3);
  assert_ok(pestle_module_specialize(t.module, &type, 1, &m));
  assert_ok(pestle_module_verify(m));
  pestle_function_t* entry = pestle_module_entry(m);
  assert_string_equal(entry->name, "main");
  const pestle_node_t* last = entry->body->block->last;
  assert_type(pestle_node_operand(last, 0), T(F32, 5, 5));
  assert_ptr_equal(entry->next, pestle_module_find_function(m, "f"));
  assert_null(entry->next->next);
  assert_true(entry->next->is_private);
  // Static already: the same module.
  pestle_module_t* same;
  assert_ok(pestle_module_specialize(m, &type, 1, &same));
  assert_ptr_equal(m, same);
  pestle_module_release(same);
  pestle_module_release(m);
  type.dims[1] = 4;
  assert_error(pestle_module_specialize(t.module, &type, 1, &m),
               INVALID_ARGUMENT,
               "argument 0: tensor<5x4xf32> does not fit tensor<?x3xf32>");
  assert_null(m);
  type = T(F32, DYN, 3);
  assert_error(pestle_module_specialize(t.module, &type, 1, &m),
               INVALID_ARGUMENT, "does not fit");
  assert_error(pestle_module_specialize(t.module, &type, 0, &m),
               INVALID_ARGUMENT, "0 argument types are given, 'main' takes 1");
  ir_test_end(&t);
}

static pestle_status_t work_specialize(ir_test_t* t) {
  PESTLE_TRY(build_symbolic(t));
  pestle_module_t* m;
  pestle_type_t type = T(F32, 5, 3);
  PESTLE_TRY(pestle_module_specialize(t->module, &type, 1, &m));
  pestle_module_release(m);
  return NULL;
}

static void specialize_survives_failures(void** state) {
  (void)state;
  for (size_t k = 1;; ++k) {
    ir_test_t t;
    pestle_type_t type = T(F32, DYN, 3);
    pestle_status_t status = ir_test_begin(&t, k, &type, 1);
    if (!status) status = work_specialize(&t);
    bool failed = pestle_test_allocator_failed(&t.memory);
    if (failed) {
      assert_code(status, OUT_OF_MEMORY);
    } else {
      assert_ok(status);
    }
    ir_test_end(&t);
    if (!failed) break;
  }
}

// One function called with two shapes becomes two.
static void specialises_each_call(void** state) {
  (void)state;
  BEGIN(t, T(F32, DYN), T(F32, DYN));
  pestle_function_t* f;
  pestle_type_t type = T(F32, DYN);
  assert_ok(pestle_module_add_function(t.module, "f", &type, NULL, 1, &f));
  pestle_builder_t b = pestle_builder_make(f);
  pestle_value_t *x, *out[2];
  assert_ok(pestle_op_negate(&b, pestle_function_argument(f, 0), &x));
  assert_ok(pestle_op_return(&b, &x, 1, NULL));
  for (int i = 0; i < 2; ++i) {
    assert_ok(pestle_op_call(&t.b, &t.a[i], 1, ATTRS(call, .callee = "f"),
                             &out[i], 1));
  }
  assert_ok(pestle_op_return(&t.b, out, 2, NULL));
  pestle_module_t* m;
  pestle_type_t types[2] = {T(F32, 2), T(F32, 3)};
  assert_ok(pestle_module_specialize(t.module, types, 2, &m));
  assert_ok(pestle_module_verify(m));
  assert_non_null(pestle_module_find_function(m, "f"));
  assert_non_null(pestle_module_find_function(m, "f_1"));
  const pestle_node_t* last = pestle_module_entry(m)->body->block->last;
  assert_type(pestle_node_operand(last, 1), T(F32, 3));
  pestle_module_release(m);
  ir_test_end(&t);
}

static void says_what_does_not_follow(void** state) {
  (void)state;
  BEGIN(t, T(F32, DYN));
  pestle_value_t *x, *y;
  float one = 1;
  t.b.loc.name = "grow";
  assert_ok(ir_test_constant(&t.b, T0(F32), &one, &x));
  assert_ok(pestle_op_broadcast_in_dim(
      &t.b, x, ATTRS(broadcast_in_dim, .broadcast_dimensions = {NULL, 0}),
      T(F32, DYN), &y));
  assert_ok(pestle_op_return(&t.b, &y, 1, NULL));
  pestle_module_t* m;
  pestle_type_t type = T(F32, 2);
  assert_error(pestle_module_specialize(t.module, &type, 1, &m), UNSUPPORTED,
               "'stablehlo.broadcast_in_dim' (node 'grow'): the shape of "
               "result 0 does not follow");
  ir_test_end(&t);
}

// A chain of regions far deeper than the C stack would take.
static void depth_costs_no_stack(void** state) {
  (void)state;
  BEGIN(t, T0(I1), T(F32, 4));
  enum { DEPTH = 100000 };
  pestle_region_t* inner = NULL;
  for (int i = 0; i < DEPTH; ++i) {
    pestle_region_t *region, *other;
    pestle_builder_t b = {.module = t.module};
    pestle_value_t* x = t.a[1];
    assert_ok(pestle_region_create(t.module, NULL, 0, &other, &b.block));
    assert_ok(pestle_op_return(&b, &x, 1, NULL));
    assert_ok(pestle_region_create(t.module, NULL, 0, &region, &b.block));
    if (inner) {
      pestle_region_t* leaf;
      pestle_builder_t l = {.module = t.module};
      assert_ok(pestle_region_create(t.module, NULL, 0, &leaf, &l.block));
      assert_ok(pestle_op_return(&l, &x, 1, NULL));
      assert_ok(pestle_op_if(&b, t.a[0], NULL, inner, leaf, &x, 1));
    }
    assert_ok(pestle_op_return(&b, &x, 1, NULL));
    inner = region;
  }
  pestle_region_t* leaf;
  pestle_builder_t l = {.module = t.module};
  pestle_value_t* x = t.a[1];
  assert_ok(pestle_region_create(t.module, NULL, 0, &leaf, &l.block));
  assert_ok(pestle_op_return(&l, &x, 1, NULL));
  assert_ok(pestle_op_if(&t.b, t.a[0], NULL, inner, leaf, &x, 1));
  assert_ok(pestle_op_return(&t.b, &x, 1, NULL));
  assert_ok(pestle_module_verify(t.module));
  pestle_module_t* copy;
  assert_ok(pestle_module_clone(t.module, &copy));
  assert_ok(pestle_module_verify(copy));
  pestle_module_release(copy);
  ir_test_end(&t);
}

static void count_release(void* self) {
  ++*(int*)self;
}

static void count_relax(void* self, const void* data, size_t size) {
  (void)data, (void)size;
  ++*(int*)self;
}

static void keeps_alive(void** state) {
  (void)state;
  BEGIN(t, T0(F32));
  int released = 0;
  int relaxed = 0;
  assert_ok(pestle_module_keep_alive(t.module, count_release, &released));
  assert_ok(pestle_module_keep_relaxed(t.module, count_release, count_relax,
                                       &relaxed));
  pestle_module_relax(t.module);
  pestle_module_relax(t.module);
  assert_int_equal(released, 0);
  assert_int_equal(relaxed, 2);
  // Through a module that keeps this one.
  pestle_module_t* other;
  assert_ok(pestle_module_create(t.context, NULL, &other));
  assert_ok(pestle_module_keep_module(other, t.module));
  pestle_module_relax(other);
  assert_int_equal(relaxed, 3);
  pestle_module_release(other);
  assert_int_equal(relaxed, 3);
  pestle_module_retain(t.module);
  pestle_module_release(t.module);
  assert_int_equal(released, 0);
  ir_test_end(&t);
  assert_int_equal(released, 1);
  assert_int_equal(relaxed, 4);
  pestle_module_release(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(types_are_interned),
      cmocka_unit_test(types_print_and_check),
      cmocka_unit_test(functions),
      cmocka_unit_test(uses_follow_edits),
      cmocka_unit_test(nodes_move),
      cmocka_unit_test(walk_enters_regions),
      cmocka_unit_test(copied_nodes_have_regions_of_their_own),
      cmocka_unit_test(copies_survive_failures),
      cmocka_unit_test(module_clone),
      cmocka_unit_test(module_clone_survives_failures),
      cmocka_unit_test(specialises),
      cmocka_unit_test(specialize_survives_failures),
      cmocka_unit_test(specialises_each_call),
      cmocka_unit_test(says_what_does_not_follow),
      cmocka_unit_test(depth_costs_no_stack),
      cmocka_unit_test(keeps_alive),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

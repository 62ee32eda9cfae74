// SPDX-License-Identifier: Apache-2.0
// The memory plan: loops, branches, views, in place, results.
#include "memory_plan_checker.h"

static pestle_module_t* planned(pestle_context_t* context, const char* text) {
  pestle_module_t* module = test_parse(context, text);
  test_run(module, NULL);
  check_plan(module);
  return module;
}

typedef struct fixture_t {
  pestle_arena_t arena;
  pestle_memory_plan_t plan;
} fixture_t;

static void plan(pestle_module_t* module, fixture_t* f) {
  pestle_arena_init(pestle_context_allocator(module->context), &f->arena);
  assert_ok(pestle_memory_plan_make(module, NULL, &f->arena, &f->plan));
}

static const pestle_placement_t* place(const fixture_t* f,
                                       const pestle_value_t* value) {
  return &f->plan.placements[value->scratch];
}

static pestle_value_t* result(pestle_module_t* module, size_t index) {
  return pestle_node_operand(pestle_module_entry(module)->body->block->last,
                             index);
}

static void test_results(void** state) {
  (void)state;
  pestle_context_t* context = test_context();
  pestle_module_t* module = planned(
      context,
      "func.func @main(%x: tensor<64xf32>) -> (tensor<64xf32>, "
      "tensor<64xf32>, tensor<8x8xf32>, tensor<64xf32>) {\n"
      "%c = stablehlo.constant dense<2.0> : tensor<64xf32>\n"
      "%0 = stablehlo.tanh %x : tensor<64xf32>\n"
      "%1 = stablehlo.reshape %0 : (tensor<64xf32>) -> tensor<8x8xf32>\n"
      "return %x, %0, %1, %c : tensor<64xf32>, tensor<64xf32>, "
      "tensor<8x8xf32>, tensor<64xf32>\n}\n");
  fixture_t f;
  plan(module, &f);
  // An argument and a constant stay where they are: the runtime copies.
  assert_int_equal(place(&f, result(module, 0))->storage, PESTLE_STORAGE_INPUT);
  assert_int_equal(place(&f, result(module, 3))->storage,
                   PESTLE_STORAGE_CONSTANT);
  // The value goes to its first result; the same again is a copy.
  assert_int_equal(place(&f, result(module, 1))->storage,
                   PESTLE_STORAGE_OUTPUT);
  assert_int_equal(place(&f, result(module, 1))->index, 1);
  assert_int_equal(place(&f, result(module, 2))->index, 1);
  assert_int_equal(f.plan.arena_size, 0);
  pestle_arena_deinit(&f.arena);
  pestle_module_release(module);
  pestle_context_release(context);
}

// Without fusion a chain of elementwise ops runs in one buffer.
static void test_in_place(void** state) {
  (void)state;
  pestle_context_t* context = test_context();
  pestle_module_t* module = test_parse(
      context,
      "func.func @main(%x: tensor<64x64xf32>) -> tensor<64xf32> {\n"
      "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "%0 = stablehlo.tanh %x : tensor<64x64xf32>\n"
      "%1 = stablehlo.exponential %0 : tensor<64x64xf32>\n"
      "%2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<64x64xf32>) -> "
      "tensor<64x64xf32>\n"
      "%3 = stablehlo.reduce(%2 init: %z) applies stablehlo.add across "
      "dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> "
      "tensor<64xf32>\n"
      "return %3 : tensor<64xf32>\n}\n");
  pestle_compile_options_t options = test_options(NULL);
  options.no_fuse = true;
  test_run_with(module, &options);
  check_plan(module);
  fixture_t f;
  plan(module, &f);
  // tanh and exp share, the transpose may not.
  assert_int_equal(f.plan.arena_size, 2 * 64 * 64 * 4);
  assert_int_equal(f.plan.lower_bound, 2 * 64 * 64 * 4);
  pestle_arena_deinit(&f.arena);
  pestle_module_release(module);
  pestle_context_release(context);
}

static const char* const control[] = {
    // A loop that captures, swaps its state and is nested.
    "func.func @main(%x: tensor<32xf32>, %y: tensor<32xf32>) -> "
    "(tensor<32xf32>, tensor<32xf32>) {\n"
    "%zero = stablehlo.constant dense<0> : tensor<i32>\n"
    "%one = stablehlo.constant dense<1> : tensor<i32>\n"
    "%n = stablehlo.constant dense<3> : tensor<i32>\n"
    "%a = stablehlo.tanh %x : tensor<32xf32>\n"
    "%b = stablehlo.exponential %y : tensor<32xf32>\n"
    "%r:3 = stablehlo.while(%i = %zero, %p = %a, %q = %y) : tensor<i32>, "
    "tensor<32xf32>, tensor<32xf32>\n"
    " cond {\n"
    "  %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, "
    "tensor<i32>) -> tensor<i1>\n"
    "  stablehlo.return %c : tensor<i1>\n"
    "} do {\n"
    "  %j = stablehlo.add %i, %one : tensor<i32>\n"
    "  %s:2 = stablehlo.while(%k = %zero, %v = %p) : tensor<i32>, "
    "tensor<32xf32>\n"
    "   cond {\n"
    "    %d = stablehlo.compare LT, %k, %i, SIGNED : (tensor<i32>, "
    "tensor<i32>) -> tensor<i1>\n"
    "    stablehlo.return %d : tensor<i1>\n"
    "  } do {\n"
    "    %l = stablehlo.add %k, %one : tensor<i32>\n"
    "    %w = stablehlo.multiply %v, %b : tensor<32xf32>\n"
    "    %u = stablehlo.cosine %w : tensor<32xf32>\n"
    "    stablehlo.return %l, %u : tensor<i32>, tensor<32xf32>\n"
    "  }\n"
    "  %t = stablehlo.add %s#1, %q : tensor<32xf32>\n"
    "  stablehlo.return %j, %q, %t : tensor<i32>, tensor<32xf32>, "
    "tensor<32xf32>\n"
    "}\n"
    "%e = stablehlo.add %r#1, %b : tensor<32xf32>\n"
    "return %e, %r#2 : tensor<32xf32>, tensor<32xf32>\n}\n",
    // Branches: one returns what it captures, one makes it; both read %a.
    "func.func @main(%x: tensor<32xf32>, %p: tensor<i1>) -> "
    "(tensor<32xf32>, tensor<32xf32>) {\n"
    "%a = stablehlo.tanh %x : tensor<32xf32>\n"
    "%r:2 = \"stablehlo.if\"(%p) ({\n"
    "  %b = stablehlo.cosine %a : tensor<32xf32>\n"
    "  %c = stablehlo.sine %b : tensor<32xf32>\n"
    "  stablehlo.return %a, %c : tensor<32xf32>, tensor<32xf32>\n"
    "}, {\n"
    "  %d = stablehlo.exponential %a : tensor<32xf32>\n"
    "  stablehlo.return %d, %d : tensor<32xf32>, tensor<32xf32>\n"
    "}) : (tensor<i1>) -> (tensor<32xf32>, tensor<32xf32>)\n"
    "%e = stablehlo.add %r#0, %a : tensor<32xf32>\n"
    "return %e, %r#1 : tensor<32xf32>, tensor<32xf32>\n}\n",
};

static void test_control_flow(void** state) {
  (void)state;
  pestle_context_t* context = test_context();
  for (size_t i = 0; i < sizeof(control) / sizeof(control[0]); ++i) {
    pestle_module_t* module = test_parse(context, control[i]);
    pestle_compile_options_t options = test_options(NULL);
    test_keeps_meaning(module, &options, 1e-6);
    check_plan(module);
    pestle_module_release(module);
  }
  pestle_context_release(context);
}

// The state of a loop starts where its initial value was made.
static void test_loop_in_place(void** state) {
  (void)state;
  pestle_context_t* context = test_context();
  pestle_module_t* module = test_parse(context, control[0]);
  test_run(module, NULL);
  fixture_t f;
  plan(module, &f);
  const pestle_node_t* loop = NULL;
  const pestle_block_t* block = pestle_module_entry(module)->body->block;
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    if (n->op == PESTLE_OP_WHILE) loop = n;
  }
  assert_non_null(loop);
  const pestle_placement_t* init = place(&f, pestle_node_operand(loop, 1));
  const pestle_placement_t* slot = place(&f, &loop->results[1]);
  assert_int_equal(init->storage, slot->storage);
  assert_int_equal(init->offset, slot->offset);
  pestle_arena_deinit(&f.arena);
  pestle_module_release(module);
  pestle_context_release(context);
}

// Rows of the state are set, in one branch only, and then added to: it is never
// copied. |also| is a second state, made of what is read of the first.
#define CHAIN(ALSO)                                                      \
  "func.func @main(%x: tensor<4xf32>) -> (tensor<9x4xf32>, "             \
  "tensor<4xf32>) {\n"                                                   \
  "%zero = stablehlo.constant dense<0> : tensor<i32>\n"                  \
  "%one = stablehlo.constant dense<1> : tensor<i32>\n"                   \
  "%n = stablehlo.constant dense<9> : tensor<i32>\n"                     \
  "%row = stablehlo.reshape %x : (tensor<4xf32>) -> tensor<1x4xf32>\n"   \
  "%z = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<4xf32>) -> " \
  "tensor<9x4xf32>\n"                                                    \
  "%r:3 = stablehlo.while(%i = %zero, %s = %z, %t = %x) : tensor<i32>, " \
  "tensor<9x4xf32>, tensor<4xf32>\n"                                     \
  " cond {\n"                                                            \
  "  %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, "         \
  "tensor<i32>) -> tensor<i1>\n"                                         \
  "  stablehlo.return %c : tensor<i1>\n"                                 \
  "} do {\n"                                                             \
  "  %j = stablehlo.add %i, %one : tensor<i32>\n"                        \
  "  %odd = stablehlo.and %i, %one : tensor<i32>\n"                      \
  "  %a = \"stablehlo.case\"(%odd) ({\n"                                 \
  "    %u = stablehlo.dynamic_update_slice %s, %row, %i, %zero : "       \
  "(tensor<9x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> "     \
  "tensor<9x4xf32>\n"                                                    \
  "    stablehlo.return %u : tensor<9x4xf32>\n"                          \
  "  }, {\n    stablehlo.return %s : tensor<9x4xf32>\n  }) : "           \
  "(tensor<i32>) -> tensor<9x4xf32>\n"                                   \
  "  %b = stablehlo.dynamic_slice %s, %j, %zero, sizes = [1, 4] : "      \
  "(tensor<9x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>\n"     \
  "  %d = stablehlo.dynamic_slice %a, %j, %zero, sizes = [1, 4] : "      \
  "(tensor<9x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>\n"     \
  "  %e = stablehlo.dynamic_update_slice %a, %d, %zero, %zero : "        \
  "(tensor<9x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> "     \
  "tensor<9x4xf32>\n"                                                    \
  "  %f = stablehlo.reshape " ALSO                                       \
  " : (tensor<1x4xf32>) -> tensor<4xf32>\n"                              \
  "  stablehlo.return %j, %e, %f : tensor<i32>, tensor<9x4xf32>, "       \
  "tensor<4xf32>\n}\n"                                                   \
  "return %r#1, %r#2 : tensor<9x4xf32>, tensor<4xf32>\n}\n"

static const pestle_node_t* find(const pestle_block_t* block, pestle_op_t op) {
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    if (n->op == op) return n;
  }
  fail_msg("no op %s", pestle_op_info(op)->name);
  return NULL;
}

static void check_chain(pestle_context_t* context, const char* text,
                        bool in_place) {
  pestle_compile_options_t options = test_options(NULL);
  pestle_module_t* module = test_parse(context, text);
  test_keeps_meaning(module, &options, 1e-6);
  check_plan(module);
  fixture_t f;
  plan(module, &f);
  const pestle_block_t* block = pestle_module_entry(module)->body->block;
  const pestle_node_t* loop = find(block, PESTLE_OP_WHILE);
  const pestle_node_t* branches =
      find(pestle_node_body(loop, 1), PESTLE_OP_CASE);
  const pestle_value_t* slot = NULL;
  for (uint32_t i = 0; i < loop->result_count; ++i) {
    if (loop->results[i].type->rank == 2) slot = &loop->results[i];
  }
  assert_non_null(slot);
  assert_int_equal(place(&f, slot)->root == place(&f, branches->results)->root,
                   in_place);
  pestle_arena_deinit(&f.arena);
  pestle_module_release(module);
}

static void test_chain_in_place(void** state) {
  (void)state;
  pestle_context_t* context = test_context();
  // %d reads what the branches made; the old state, %b, is read behind them, so
  // that they must leave it as it was.
  check_chain(context, CHAIN("%d"), true);
  check_chain(context, CHAIN("%b"), false);
  pestle_context_release(context);
}

// What each branch makes lies where the result does, unless it lies where a value from
// around does that the other branch reads: %w dies in the second branch, and is read in the
// first one when its result is made already.
static pestle_module_t* branches_of(pestle_context_t* context,
                                    const char* other) {
  static const char head[] =
      "func.func @main(%x: tensor<64xf32>, %c: tensor<i1>) -> "
      "(tensor<64xf32>, tensor<64xf32>) {\n"
      "%w = stablehlo.tanh %x : tensor<64xf32>\n"
      "%r:2 = \"stablehlo.if\"(%c) ({\n"
      "  %a = stablehlo.exponential %x : tensor<64xf32>\n"
      "  %b = stablehlo.sine %w : tensor<64xf32>\n"
      "  %d = stablehlo.reverse %b, dims = [0] : tensor<64xf32>\n"
      "  stablehlo.return %a, %d : tensor<64xf32>, tensor<64xf32>\n"
      "}, {\n";
  static const char tail[] =
      "}) : (tensor<i1>) -> (tensor<64xf32>, tensor<64xf32>)\n"
      "return %r#0, %r#1 : tensor<64xf32>, tensor<64xf32>\n}\n";
  char text[2048];
  snprintf(text, sizeof(text), "%s%s%s", head, other, tail);
  pestle_compile_options_t options = test_options(NULL);
  pestle_module_t* module = test_parse(context, text);
  test_keeps_meaning(module, &options, 1e-6);
  check_plan(module);
  return module;
}

// Of the |index|-th result, in how many branches it was made in its place.
static int made_in_place(pestle_module_t* module, const fixture_t* f,
                         uint32_t index) {
  const pestle_node_t* node =
      find(pestle_module_entry(module)->body->block, PESTLE_OP_IF);
  int count = 0;
  for (uint32_t r = 0; r < node->region_count; ++r) {
    const pestle_value_t* value =
        pestle_node_operand(pestle_node_body(node, r)->last, index);
    const pestle_placement_t *a = place(f, value),
                             *b = place(f, &node->results[index]);
    count += a->storage == b->storage && a->index == b->index &&
             a->offset == b->offset;
  }
  return count;
}

static void test_branches_make_results(void** state) {
  (void)state;
  pestle_context_t* context = test_context();
  fixture_t f;
  // Both are made anew.
  pestle_module_t* module = branches_of(
      context,
      "  %a = stablehlo.cosine %x : tensor<64xf32>\n"
      "  %b = stablehlo.exponential %x : tensor<64xf32>\n"
      "  %d = stablehlo.reverse %b, dims = [0] : tensor<64xf32>\n"
      "  stablehlo.return %a, %d : tensor<64xf32>, tensor<64xf32>\n");
  plan(module, &f);
  assert_int_equal(made_in_place(module, &f, 0), 2);
  assert_int_equal(made_in_place(module, &f, 1), 2);
  pestle_arena_deinit(&f.arena);
  pestle_module_release(module);
  // The second branch may write over %w, which the first reads behind %a.
  module = branches_of(
      context,
      "  %a = stablehlo.cosine %w : tensor<64xf32>\n"
      "  %d = stablehlo.reverse %x, dims = [0] : tensor<64xf32>\n"
      "  stablehlo.return %a, %d : tensor<64xf32>, tensor<64xf32>\n");
  plan(module, &f);
  assert_true(made_in_place(module, &f, 0) <= 1);
  pestle_arena_deinit(&f.arena);
  pestle_module_release(module);
  // One value is both results, or one from around is one.
  module = branches_of(
      context,
      "  %a = stablehlo.cosine %x : tensor<64xf32>\n"
      "  stablehlo.return %a, %a : tensor<64xf32>, tensor<64xf32>\n");
  pestle_module_release(module);
  module = branches_of(
      context, "  stablehlo.return %w, %x : tensor<64xf32>, tensor<64xf32>\n");
  pestle_module_release(module);
  pestle_context_release(context);
}

// A branch reads a value from around it by a view that was made there too: what it makes of
// that lies elsewhere while the value is still to be handed on.
static void test_views_around_branches(void** state) {
  (void)state;
#define U "tensor<4xui32>"
  static const char hands_on[] = "  stablehlo.return %o, %one : " U ", " U "\n";
  static const char changes[] = "  %s = stablehlo.sign %b : " U
                                "\n  stablehlo.return %s, %b : " U ", " U "\n";
  static const char form[] =
      "func.func @main(%%c: tensor<i1>, %%x: " U ") -> (" U ", " U
      ") {\n"
      "%%one = stablehlo.constant dense<1> : " U
      "\n%%o = stablehlo.or %%x, %%one : " U
      "\n%%b = stablehlo.optimization_barrier %%o : " U
      "\n%%r:2 = \"stablehlo.if\"(%%c) ({\n%s}, {\n%s}) : (tensor<i1>) -> "
      "(" U ", " U ")\n%%y = stablehlo.not %%r#0 : " U
      "\nreturn %%y, %%r#1 : " U ", " U "\n}\n";
#undef U
  pestle_context_t* context = test_context();
  pestle_compile_options_t options = test_options(NULL);
  // Whichever the condition chooses.
  for (int turn = 0; turn < 2; ++turn) {
    char text[2048];
    snprintf(text, sizeof(text), form, turn ? hands_on : changes,
             turn ? changes : hands_on);
    pestle_module_t* module = test_parse(context, text);
    test_keeps_meaning(module, &options, 0);
    check_plan(module);
    pestle_module_release(module);
  }
  pestle_context_release(context);
}

static void test_report(void** state) {
  (void)state;
  pestle_context_t* context = test_context();
  pestle_module_t* module = planned(
      context,
      "func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {\n"
      "%0 = stablehlo.tanh %x : tensor<8x8xf32>\n"
      "%1 = stablehlo.dot_general %0, %0, contracting_dims = [1] x [0] : "
      "(tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>\n"
      "return %1 : tensor<8x8xf32>\n}\n");
  fixture_t f;
  plan(module, &f);
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_context_allocator(context), &text);
  assert_ok(pestle_memory_plan_print(module, &f.plan, &text));
  assert_non_null(strstr(pestle_strbuf_cstr(&text),
                         "planned peak 256 bytes, lower bound 256 bytes"));
  // A line for each value: the argument, and what ops make.
  assert_non_null(strstr(pestle_strbuf_cstr(&text), "input 0 +0 size 256"));
  assert_non_null(strstr(pestle_strbuf_cstr(&text), "output 0 +0 size 256"));
  pestle_strbuf_deinit(&text);
  pestle_arena_deinit(&f.arena);
  pestle_module_release(module);
  pestle_context_release(context);
}

// Placed as they begin, %c finds only the hole of the smaller %a; placed by size, the
// largest live set is enough.
static const char fragments[] =
    "func.func @main(%x: tensor<4x4xf32>, %k: tensor<4x8xf32>, "
    "%m: tensor<8x8xf32>) -> tensor<4x8xf32> {\n"
    "%a = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : "
    "(tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>\n"
    "%b = stablehlo.dot_general %a, %k, contracting_dims = [1] x [0] : "
    "(tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>\n"
    "%c = stablehlo.dot_general %b, %m, contracting_dims = [1] x [0] : "
    "(tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>\n"
    "%d = stablehlo.dot_general %c, %m, contracting_dims = [1] x [0] : "
    "(tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>\n"
    "return %d : tensor<4x8xf32>\n}\n";

static void test_order_by_size(void** state) {
  (void)state;
  pestle_context_t* context = test_context();
  pestle_module_t* module = planned(context, fragments);
  fixture_t f;
  plan(module, &f);
  assert_int_equal(f.plan.lower_bound, 256);
  assert_int_equal(f.plan.arena_size, 256);
  pestle_arena_deinit(&f.arena);
  pestle_module_release(module);
  pestle_context_release(context);
}

// In an arena of which |used| bytes are.
static pestle_status_t plan_once(pestle_module_t* module, size_t used,
                                 pestle_memory_plan_t* out_plan) {
  pestle_arena_t arena;
  pestle_arena_init(pestle_context_allocator(module->context), &arena);
  pestle_status_t status =
      used && !pestle_arena_alloc(&arena, used, 1) ? PESTLE_OOM() : NULL;
  if (!status) status = pestle_memory_plan_make(module, NULL, &arena, out_plan);
  pestle_arena_deinit(&arena);
  return status;
}

// The planner's own allocations, each of which fails once.
static void test_every_allocation(void** state) {
  (void)state;
  pestle_test_allocator_t memory;
  pestle_test_allocator_init(&memory, 0);
  pestle_context_options_t settings = {
      .struct_size = sizeof(settings),
      .allocator = pestle_test_allocator(&memory)};
  pestle_context_t* context;
  assert_ok(pestle_context_create(&settings, &context));
  pestle_module_t* module = test_parse(context, control[0]);
  test_run(module, NULL);
  pestle_module_t* other = test_parse(context, fragments);
  test_run(other, NULL);
  size_t failures = 0;
  for (bool failed = true; failed; ++failures) {
    pestle_memory_plan_t none;
    atomic_store(&memory.failed, false);
    atomic_store(&memory.fail_at,
                 atomic_load(&memory.request_count) + failures + 1);
    pestle_status_t status = plan_once(module, 0, &none);
    failed = pestle_test_allocator_failed(&memory);
    atomic_store(&memory.fail_at, 0);
    if (failed) {
      assert_code(status, OUT_OF_MEMORY);
    } else {
      assert_ok(status);
    }
  }
  assert_true(failures > 3);
  // Each piece of the arena is some time the one that needs another block.
  size_t second = 0;
  for (size_t i = 0; i < 16 * 255; ++i) {
    pestle_memory_plan_t none;
    size_t used = 16 + i / 16 * 16, k = 2 + i % 8;
    atomic_store(&memory.failed, false);
    atomic_store(&memory.fail_at, atomic_load(&memory.request_count) + k);
    pestle_status_t status = plan_once(i & 8 ? module : other, used, &none);
    second += pestle_test_allocator_failed(&memory);
    atomic_store(&memory.fail_at, 0);
    if (status) assert_code(status, OUT_OF_MEMORY);
  }
  assert_true(second > 100);
  for (size_t k = 1; k < 100; ++k) {  // where each piece is a block of its own
    pestle_memory_plan_t none;
    atomic_store(&memory.fail_at, atomic_load(&memory.request_count) + k);
    pestle_status_t status = plan_once(other, 0, &none);
    atomic_store(&memory.fail_at, 0);
    if (status) assert_code(status, OUT_OF_MEMORY);
  }
  pestle_module_release(other);
  pestle_module_release(module);
  pestle_context_release(context);
  pestle_test_allocator_check(&memory);
}

// Seconds of CPU for the memory plan of a chain of |count| values, each of which
// reads the first one again.
static double seconds(pestle_context_t* context, int count) {
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_context_allocator(context), &text);
  pestle_strbuf_appendf(&text,
                        "func.func @main(%%x: tensor<8xf32>) -> tensor<8xf32> "
                        "{\n%%v0 = stablehlo.tanh %%x : tensor<8xf32>\n");
  for (int i = 1; i < count; ++i) {
    pestle_strbuf_appendf(&text,
                          "%%v%d = stablehlo.%s %%v%d, %%v0 : tensor<8xf32>\n",
                          i, i % 2 ? "add" : "multiply", i - 1);
  }
  pestle_strbuf_appendf(&text, "return %%v%d : tensor<8xf32>\n}\n", count - 1);
  pestle_module_t* module = test_parse(context, pestle_strbuf_cstr(&text));
  pestle_strbuf_deinit(&text);
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .no_fuse = true};
  test_run_with(module, &options);
  double least = 1e9;
  for (int i = 0; i < 3; ++i) {
    pestle_memory_plan_t none;
    double start = test_process_seconds();
    assert_ok(plan_once(module, 0, &none));
    double spent = test_process_seconds() - start;
    if (spent < least) least = spent;
  }
  pestle_module_release(module);
  return least;
}

// An empty operand lies wherever its cell ended up, also within a result's: it
// shares no byte with it.
static void test_empty_overlaps_nothing(void** state) {
  (void)state;
  pestle_context_t* context = test_context();
  pestle_module_t* module = test_parse(
      context,
      "func.func @main(%x: tensor<0x4xf32>, %i: tensor<f32>) -> tensor<4xf32> "
      "{\n%0 = \"stablehlo.reduce\"(%x, %i) <{dimensions = array<i64: 0>}> ({\n"
      "^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
      "%s = stablehlo.add %a, %b : tensor<f32>\n"
      "stablehlo.return %s : tensor<f32>\n"
      "}) : (tensor<0x4xf32>, tensor<f32>) -> tensor<4xf32>\n"
      "return %0 : tensor<4xf32>\n}\n");
  pestle_value_t* out = result(module, 0);
  pestle_node_t* reduce = out->node;
  pestle_value_t *x = pestle_node_operand(reduce, 0),
                 *init = pestle_node_operand(reduce, 1);
  x->scratch = 0;
  init->scratch = 1;
  out->scratch = 2;
  pestle_placement_t placements[] = {
      {.storage = PESTLE_STORAGE_ARENA, .offset = 8, .size = 0, .root = x},
      {.storage = PESTLE_STORAGE_INPUT, .index = 1, .size = 4, .root = init},
      {.storage = PESTLE_STORAGE_ARENA, .offset = 0, .size = 16, .root = out}};
  pestle_memory_plan_t empty = {.placements = placements, .count = 3};
  int32_t alias = 0;
  bool any = true;
  assert_ok(pestle_memory_plan_aliases(&empty, reduce, &alias, &any));
  assert_int_equal(alias, -1);
  assert_false(any);
  // One byte in it is a fault of the planner, and so are fewer at its beginning.
  placements[0].size = 1;
  assert_code(pestle_memory_plan_aliases(&empty, reduce, &alias, &any),
              INTERNAL);
  placements[0].offset = 0;
  placements[0].size = 8;
  assert_code(pestle_memory_plan_aliases(&empty, reduce, &alias, &any),
              INTERNAL);
  // An empty result shares none either.
  placements[2].size = 0;
  assert_ok(pestle_memory_plan_aliases(&empty, reduce, &alias, &any));
  assert_int_equal(alias, -1);
  placements[2].size = 8;
  assert_ok(pestle_memory_plan_aliases(&empty, reduce, &alias, &any));
  assert_int_equal(alias, 0);
  assert_true(any);
  pestle_module_release(module);
  pestle_context_release(context);
}

static void test_large_modules(void** state) {
  (void)state;
  pestle_context_t* context = test_context();
  double small = seconds(context, 10000), large = seconds(context, 40000);
  print_message("10000 values %.4f s, 40000 values %.4f s\n", small, large);
  // A look from each value at all others would take 16 times as long, a second.
  assert_true(large < 10 * small + 0.1);
  pestle_context_release(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_results),
      cmocka_unit_test(test_in_place),
      cmocka_unit_test(test_control_flow),
      cmocka_unit_test(test_loop_in_place),
      cmocka_unit_test(test_chain_in_place),
      cmocka_unit_test(test_branches_make_results),
      cmocka_unit_test(test_views_around_branches),
      cmocka_unit_test(test_report),
      cmocka_unit_test(test_order_by_size),
      cmocka_unit_test(test_every_allocation),
      cmocka_unit_test(test_empty_overlaps_nothing),
      cmocka_unit_test(test_large_modules),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

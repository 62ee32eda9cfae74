// SPDX-License-Identifier: Apache-2.0
// What lies in one place, a module a row: chains of loops and branches, states that take
// turns, donated arguments, collectives under way, and cells that a test makes.
#include "memory_plan_checker.h"

// Fused and ordered alone: what a row says is what is planned.
static pestle_module_t* make(pestle_context_t* context, const char* text,
                             bool fuse) {
  pestle_module_t* module = test_parse(context, text);
  pestle_compile_options_t options = test_options("fuse,order");
  options.no_fuse = !fuse;
  test_keeps_meaning(module, &options, 1e-6);
  check_plan(module);
  return module;
}

typedef struct fixture_t {
  pestle_arena_t arena;
  pestle_memory_plan_t plan;
} fixture_t;

static void plan(pestle_module_t* module, const pestle_memory_wishes_t* wishes,
                 fixture_t* f) {
  pestle_arena_init(pestle_context_allocator(module->context), &f->arena);
  assert_ok(pestle_memory_plan_make(module, wishes, &f->arena, &f->plan));
}

static const pestle_placement_t* place(const fixture_t* f,
                                       const pestle_value_t* value) {
  return pestle_memory_plan_at(&f->plan, value);
}

static const pestle_node_t* find(const pestle_block_t* block, pestle_op_t op) {
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    if (n->op == op) return n;
  }
  fail_msg("no op %s", pestle_op_info(op)->name);
  return NULL;
}

static const pestle_block_t* entry_of(const pestle_module_t* module) {
  return pestle_module_entry((pestle_module_t*)(uintptr_t)module)->body->block;
}

// --- Chains ---

#define T "tensor<64xf32>"
#define I "tensor<i32>"
#define HEAD                                                                  \
  "func.func @main(%x: " T ", %y: tensor<8xf32>, %n: " I                      \
  ", %p: tensor<i1>, "                                                        \
  "%m: tensor<16x16xf32>) -> " T                                              \
  " {\n"                                                                      \
  "%zero = stablehlo.constant dense<0> : " I                                  \
  "\n%one = stablehlo.constant dense<1> : " I                                 \
  "\n%few = stablehlo.constant dense<3> : " I "\n%w = stablehlo.tanh %x : " T \
  "\n%r:2 = stablehlo.while(%i = %zero, %s = %w) : " I ", " T                 \
  "\n cond {\n  %c = stablehlo.compare LT, %i, %few, SIGNED : (" I ", " I     \
  ") -> tensor<i1>\n  stablehlo.return %c : tensor<i1>\n} do {\n"             \
  "  %j = stablehlo.add %i, %one : " I "\n"
#define TAIL \
  "  stablehlo.return %j, %e : " I ", " T "\n}\nreturn %r#1 : " T "\n}\n"
#define UPDATE(to, from)                                             \
  "  " to " = stablehlo.dynamic_update_slice " from ", %y, %i : (" T \
  ", tensor<8xf32>, " I ") -> " T "\n"
// A loop over |from| of which a trip reads |read|.
#define INNER(to, from, read)                                                 \
  "  " to ":2 = stablehlo.while(%k = %zero, %v = " from ") : " I ", " T       \
  "\n   cond {\n    %d = stablehlo.compare LT, %k, %few, SIGNED : (" I ", " I \
  ") -> tensor<i1>\n    stablehlo.return %d : tensor<i1>\n  } do {\n"         \
  "    %l = stablehlo.add %k, %one : " I                                      \
  "\n    %g = stablehlo.dynamic_slice " read ", %one, sizes = [8] : (" T      \
  ", " I                                                                      \
  ") -> tensor<8xf32>\n"                                                      \
  "    %h = stablehlo.dynamic_update_slice %v, %g, %k : (" T                  \
  ", tensor<8xf32>, " I ") -> " T "\n    stablehlo.return %l, %h : " I ", " T \
  "\n  }\n"
#define BRANCHES(to, first, second)                            \
  "  " to " = \"stablehlo.if\"(%p) ({\n" first "}, {\n" second \
  "}) : (tensor<i1>) -> " T "\n"
#define RETURN(value) "  stablehlo.return " value " : " T "\n"

static const struct {
  const char *what, *text;
  bool in_place;
} chains[] = {
    {"an update", HEAD UPDATE("%e", "%s") TAIL, true},
    {"a loop", HEAD INNER("%q", "%s", "%v") UPDATE("%e", "%q#1") TAIL, true},
    {"a loop that reads what it began as",
     HEAD INNER("%q", "%s", "%s") UPDATE("%e", "%q#1") TAIL, false},
    {"branches that hand on and update",
     HEAD BRANCHES("%e", UPDATE("%a", "%s") RETURN("%a"), RETURN("%s")) TAIL,
     true},
    {"branches with a loop each",
     HEAD BRANCHES("%e", INNER("%q", "%s", "%v") RETURN("%q#1"),
                   INNER("%q", "%s", "%v") RETURN("%q#1")) TAIL,
     true},
    {"one branch makes its own",
     HEAD BRANCHES("%e", UPDATE("%a", "%s") RETURN("%a"),
                   "  %b = stablehlo.reverse %s, dims = [0] : " T
                   "\n" RETURN("%b")) TAIL,
     false},
    {"branches over what is not the state",
     HEAD "  %t = stablehlo.reverse %s, dims = [0] : " T "\n" BRANCHES(
         "%e", UPDATE("%a", "%t") RETURN("%a"), RETURN("%t")) TAIL,
     false},
};

// Whether what the body of the loop makes lies where its state does.
static bool is_in_place(const pestle_module_t* module, const fixture_t* f) {
  const pestle_node_t* loop = find(entry_of(module), PESTLE_OP_WHILE);
  const pestle_block_t* body = pestle_node_body(loop, 1);
  return place(f, pestle_node_operand(body->last, 1))->root ==
         place(f, body->arguments[1])->root;
}

static void check_chain(pestle_context_t* context, const char* what,
                        const char* text, bool in_place) {
  fixture_t f;
  pestle_module_t* module = make(context, text, true);
  plan(module, NULL, &f);
  if (is_in_place(module, &f) != in_place) print_error("%s\n", what);
  assert_int_equal(is_in_place(module, &f), in_place);
  pestle_arena_deinit(&f.arena);
  pestle_module_release(module);
}

static void test_chains(void** state) {
  (void)state;
  pestle_context_t* context = test_context();
  for (size_t i = 0; i < sizeof(chains) / sizeof(chains[0]); ++i)
    check_chain(context, chains[i].what, chains[i].text, chains[i].in_place);
  pestle_context_release(context);
}

// A search ends: of two hundred updates all are in place, of three hundred none.
static void test_long_chains(void** state) {
  (void)state;
  pestle_context_t* context = test_context();
  for (int count = 200; count <= 300; count += 100) {
    pestle_strbuf_t text;
    pestle_strbuf_init(pestle_context_allocator(context), &text);
    pestle_strbuf_append_c(&text, HEAD);
    for (int i = 0; i < count; ++i) {
      char from[16], to[16];
      snprintf(from, sizeof(from), i ? "%%u%d" : "%%s", i);
      snprintf(to, sizeof(to), i + 1 < count ? "%%u%d" : "%%e", i + 1);
      pestle_strbuf_appendf(&text,
                            "  %s = stablehlo.dynamic_update_slice %s, %%y, "
                            "%%i : (" T ", tensor<8xf32>, " I ") -> " T "\n",
                            to, from);
    }
    pestle_strbuf_append_c(&text, TAIL);
    check_chain(context, "updates", pestle_strbuf_cstr(&text), count == 200);
    pestle_strbuf_deinit(&text);
  }
  pestle_context_release(context);
}

// --- What branches make ---

#define IF(types, then, other)                                                \
  "func.func @main(%p: tensor<1xi1>, %x: " T                                  \
  ", %m: tensor<16x16xf32>) "                                                 \
  "-> " types " {\n%zero = stablehlo.constant dense<0> : " I                  \
  "\n%one = stablehlo.constant dense<1> : " I                                 \
  "\n%few = stablehlo.constant dense<3> : " I "\n%w = stablehlo.tanh %x : " T \
  "\n%i = stablehlo.add %one, %few : " I                                      \
  "\n%y = stablehlo.constant dense<2.0> : tensor<8xf32>\n"                    \
  "%c = stablehlo.reshape %p : (tensor<1xi1>) -> tensor<i1>\n"                \
  "%r = \"stablehlo.if\"(%c) ({\n" then "}, {\n" other                        \
  "}) : (tensor<i1>) -> " types "\nreturn %r : " types "\n}\n"
#define M "tensor<16x16xf32>"
#define HALF "tensor<8x16xf32>"
#define MADE                                                       \
  "  %a = stablehlo.dot_general %m, %m, contracting_dims = [1] x " \
  "[0] : (" M ", " M ") -> " M "\n"

static const struct {
  const char* text;
  int made;      // branches that make the result in its place
  bool changed;  // the result lies where %w does
} branches[] = {
    {IF(M, MADE "  stablehlo.return %a : " M "\n",
        MADE "  stablehlo.return %a : " M "\n"),
     2, false},
    // The place of a loop's state is its own.
    {IF(T, INNER("%q", "%x", "%v") RETURN("%q#1"),
        "  %a = stablehlo.reverse %w, dims = [0] : " T "\n" RETURN("%a")),
     1, false},
    // A part of what is made there.
    {IF(HALF,
        MADE "  %b = stablehlo.slice %a [0:8, 0:16] : (" M ") -> " HALF
             "\n  stablehlo.return %b : " HALF "\n",
        MADE "  %b = stablehlo.slice %a [8:16, 0:16] : (" M ") -> " HALF
             "\n  stablehlo.return %b : " HALF "\n"),
     0, false},
    // A constant is nowhere but where it is.
    {IF(T, "  %a = stablehlo.constant dense<1.0> : " T "\n" RETURN("%a"),
        "  %a = stablehlo.reverse %x, dims = [0] : " T "\n" RETURN("%a")),
     1, false},
    // Each changes or hands on what nobody reads behind them.
    {IF(T, UPDATE("%a", "%w") RETURN("%a"), RETURN("%w")), 2, true},
    {IF(T, UPDATE("%a", "%w") UPDATE("%b", "%a") RETURN("%b"),
        UPDATE("%a", "%w") RETURN("%a")),
     2, true},
    // An argument stays as it is.
    {IF(T, UPDATE("%a", "%x") RETURN("%a"), RETURN("%x")), 1, false},
};

static bool is_one_place(const pestle_placement_t* a,
                         const pestle_placement_t* b) {
  return a->storage == b->storage && a->index == b->index &&
         a->offset == b->offset;
}

static void test_branches(void** state) {
  (void)state;
  pestle_context_t* context = test_context();
  for (size_t i = 0; i < sizeof(branches) / sizeof(branches[0]); ++i) {
    pestle_module_t* module = make(context, branches[i].text, true);
    fixture_t f;
    int made = 0;
    plan(module, NULL, &f);
    const pestle_node_t* node = find(entry_of(module), PESTLE_OP_IF);
    const pestle_placement_t* result = place(&f, &node->results[0]);
    for (uint32_t r = 0; r < 2; ++r) {
      const pestle_block_t* body = pestle_node_body(node, r);
      made +=
          is_one_place(place(&f, pestle_node_operand(body->last, 0)), result);
    }
    if (made != branches[i].made) print_error("row %zu\n", i);
    assert_int_equal(made, branches[i].made);
    // %w is nothing where nobody reads it.
    const pestle_node_t* w = find(entry_of(module), PESTLE_OP_FUSION);
    bool changed =
        w->result_count && is_one_place(place(&f, &w->results[0]), result);
    assert_int_equal(changed, branches[i].changed);
    pestle_arena_deinit(&f.arena);
    pestle_module_release(module);
  }
  pestle_context_release(context);
}

// --- States that take turns ---

#define LOOP(states, types, inits, body)                                      \
  "func.func @main(%x: " T ", %m: tensor<16x16xf32>) -> (" types              \
  ") {\n"                                                                     \
  "%zero = stablehlo.constant dense<0> : " I                                  \
  "\n%one = stablehlo.constant dense<1> : " I                                 \
  "\n%few = stablehlo.constant dense<3> : " I "\n%w = stablehlo.tanh %x : " T \
  "\n%u = stablehlo.exponential %x : " T "\n" states                          \
  " = stablehlo.while(" inits ") : " types                                    \
  "\n cond {\n  %c = stablehlo.compare LT, %i, %few, SIGNED : (" I ", " I     \
  ") -> tensor<i1>\n  stablehlo.return %c : tensor<i1>\n} do {\n"             \
  "  %j = stablehlo.add %i, %one : " I "\n" body "}\n"
#define ONE(body)                                         \
  LOOP("%r:2", I ", " T, "%i = %zero, %s = %w",           \
       body "  stablehlo.return %j, %e : " I ", " T "\n") \
  "return %r#0, %r#1 : " I ", " T "\n}\n"
#define TWO(body, first, second)                                              \
  LOOP("%r:3", I ", " T ", " T, "%i = %zero, %s = %w, %t = %u",               \
       body "  stablehlo.return %j, " first ", " second " : " I ", " T ", " T \
            "\n")                                                             \
  "return %r#0, %r#1, %r#2 : " I ", " T ", " T "\n}\n"
#define TURN "  %e = stablehlo.reverse %s, dims = [0] : " T "\n"

static const struct {
  const char* text;
  uint32_t turns[2];  // of what the body returns behind %j
} turns[] = {
    {ONE(TURN), {2}},
    // In place there is nothing to take turns with.
    {ONE("  %e = stablehlo.cosine %s : " T "\n"), {0}},
    // Only one of them can.
    {TWO(TURN, "%e", "%e"), {2, 2}},
    {TWO(TURN, "%t", "%e"), {0, 3}},
    // What was made before the loop, by it, or is a constant.
    {TWO(TURN, "%w", "%e"), {0, 3}},
    {TWO("", "%t", "%s"), {0, 0}},
    {ONE("  %e = stablehlo.constant dense<1.0> : " T "\n"), {0}},
    // A part of what is made.
    {LOOP("%r:3", I ", " T ", " M, "%i = %zero, %s = %w, %t = %m",
          "  %a = stablehlo.dot_general %t, %t, contracting_dims = [1] x "
          "[0] : (" M ", " M ") -> " M
          "\n  %b = stablehlo.slice %a [4:8, 0:16] : (" M
          ") -> tensor<4x16xf32>\n"
          "  %e = stablehlo.reshape %b : (tensor<4x16xf32>) -> " T
          "\n  stablehlo.return %j, %e, %a : " I ", " T ", " M
          "\n") "return %r#0, %r#1, %r#2 : " I ", " T ", " M "\n}\n",
     {3, 3}},
    // A loop within.
    {ONE(INNER("%q", "%s",
               "%v") "  %e = stablehlo.reverse %q#1, dims = [0] : " T "\n"),
     {0}},
};

static void test_turns(void** state) {
  (void)state;
  pestle_context_t* context = test_context();
  pestle_memory_wishes_t wishes = {.copies_wait = true};
  for (size_t i = 0; i < sizeof(turns) / sizeof(turns[0]); ++i) {
    pestle_module_t* module = make(context, turns[i].text, true);
    fixture_t f;
    // Of so few bytes a copy is made, unless it takes what a kernel takes.
    for (int waits = 0; waits < 2; ++waits) {
      plan(module, waits ? &wishes : NULL, &f);
      const pestle_node_t* loop = find(entry_of(module), PESTLE_OP_WHILE);
      const pestle_node_t* last = pestle_node_body(loop, 1)->last;
      for (uint32_t k = 1; k < last->operand_count; ++k) {
        uint32_t found = place(&f, pestle_node_operand(last, k))->alternates;
        uint32_t wanted = waits ? turns[i].turns[k - 1] : 0;
        if (found != wanted) print_error("row %zu, state %u\n", i, k);
        assert_int_equal(found, wanted);
      }
      pestle_arena_deinit(&f.arena);
    }
    pestle_module_release(module);
  }
  pestle_context_release(context);
}

// --- Arguments that are given ---

#define DOT_OF_COSINE                                                       \
  "func.func @main(%x: " T ", %y: " T ") -> (" T                            \
  ", tensor<f32>) {\n"                                                      \
  "%a = stablehlo.cosine %x : " T                                           \
  "\n%b = stablehlo.dot_general %a, %y, contracting_dims = [0] x [0] : (" T \
  ", " T ") -> tensor<f32>\nreturn %a, %b : " T ", tensor<f32>\n}\n"
#define LOOP_OF_TWO                                                  \
  "func.func @main(%x: " T ", %y: " T ") -> (" T ", " T              \
  ") {\n"                                                            \
  "%r:2 = stablehlo.while(%s = %x, %t = %y) : " T ", " T             \
  "\n cond {\n  %c = stablehlo.constant dense<false> : tensor<i1>\n" \
  "  stablehlo.return %c : tensor<i1>\n} do {\n"                     \
  "  stablehlo.return %s, %t : " T ", " T                            \
  "\n}\n"                                                            \
  "return %r#0, %r#1 : " T ", " T "\n}\n"

static const struct {
  const char* text;
  bool fuse;
  pestle_alias_t aliases[2];
  uint32_t count;
  size_t placed;
} given[] = {
    // The result itself.
    {"func.func @main(%x: " T ") -> " T " {\nreturn %x : " T "\n}\n",
     true,
     {{0, 0}},
     1,
     1},
    // Of two the one that is it: the other one's bytes would be lost.
    {"func.func @main(%x: " T ", %y: " T ") -> " T " {\nreturn %x : " T "\n}\n",
     true,
     {{0, 0}, {1, 0}},
     2,
     1},
    // What is made of a part is not made over the whole.
    {"func.func @main(%x: " T ") -> " T " {\n"
     "%a = stablehlo.slice %x [0:32] : (" T ") -> tensor<32xf32>\n"
     "%b = stablehlo.concatenate %a, %a, dim = 0 : (tensor<32xf32>, "
     "tensor<32xf32>) -> " T "\nreturn %b : " T "\n}\n",
     false,
     {{0, 0}},
     1,
     0},
    {"func.func @main(%x: " T ") -> " T " {\n"
     "%a = stablehlo.cosine %x : " T "\nreturn %a : " T "\n}\n",
     true,
     {{0, 0}},
     1,
     1},
    // Whatever goes anywhere does not take what another one asks for by name.
    {"func.func @main(%x: " T ", %y: " T ") -> (" T ", " T ") {\n"
     "%a = stablehlo.cosine %x : " T "\n%b = stablehlo.sine %y : " T
     "\nreturn %b, %a : " T ", " T "\n}\n",
     true,
     {{0, PESTLE_ALIAS_ANY}, {1, 0}},
     2,
     2},
    // Not even when that one cannot have it.
    {DOT_OF_COSINE, true, {{0, PESTLE_ALIAS_ANY}, {1, 0}}, 2, 0},
    {DOT_OF_COSINE, true, {{0, PESTLE_ALIAS_ANY}}, 1, 1},
    // How much of a result there is only a run tells.
    {"func.func @main(%a: " T ", %n: tensor<1xi64>) -> (" T
     " {pestle.name = \"out\"}, tensor<1xi64> {pestle.shape_of = 0 : i64}) "
     "{\nreturn %a, %n : " T ", tensor<1xi64>\n}\n",
     true,
     {{0, PESTLE_ALIAS_ANY}, {1, PESTLE_ALIAS_ANY}},
     2,
     0},
    // A loop's state begins as the argument of its own number.
    {LOOP_OF_TWO, true, {{0, 0}, {1, 1}}, 2, 2},
    {LOOP_OF_TWO, true, {{0, 1}, {1, 0}}, 2, 0},
};

static void test_given(void** state) {
  (void)state;
  pestle_context_t* context = test_context();
  for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); ++i) {
    pestle_module_t* module = make(context, given[i].text, given[i].fuse);
    pestle_memory_wishes_t wishes = {.aliases = given[i].aliases,
                                     .count = given[i].count};
    size_t placed = check_plan_with(module, &wishes);
    if (placed != given[i].placed) print_error("row %zu\n", i);
    assert_int_equal(placed, given[i].placed);
    pestle_module_release(module);
  }
  pestle_context_release(context);
}

// --- Collectives under way ---

#define SUM                                                            \
  "\"stablehlo.all_reduce\"(%a) <{replica_groups = dense<[[0, 1]]> : " \
  "tensor<1x2xi64>}> ({\n^bb0(%l: tensor<f32>, %h: tensor<f32>):\n"    \
  "%d = stablehlo.add %l, %h : tensor<f32>\n"                          \
  "stablehlo.return %d : tensor<f32>\n}) : (" T ") -> " T "\n"
#define TWO_REPLICAS                                                        \
  "module @m attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas " \
  "= 2 : i32} {\n"
#define WORLD(body)                                                            \
  TWO_REPLICAS "func.func @main(%x: " T ", %p: tensor<i1>) -> " T              \
               " {\n"                                                          \
               "%a = stablehlo.reverse %x, dims = [0] : " T "\n%r = " SUM body \
               "return %z : " T "\n}\n}\n"

static const struct {
  const char* text;
  int64_t alone, beside;  // bytes of the arena
} worlds[] = {
    // Read at once: what was sent is free for what comes behind.
    {WORLD("%b = stablehlo.reverse %r, dims = [0] : " T
           "\n%e = stablehlo.reverse %b, dims = [0] : " T
           "\n%z = stablehlo.add %e, %b : " T "\n"),
     512, 512},
    // By a view, which reads nothing yet.
    {WORLD("%v = stablehlo.optimization_barrier %r : " T
           "\n%b = stablehlo.reverse %v, dims = [0] : " T
           "\n%e = stablehlo.reverse %b, dims = [0] : " T
           "\n%z = stablehlo.add %e, %b : " T "\n"),
     512, 512},
    // Behind others, which have places of their own meanwhile.
    {WORLD("%b = stablehlo.reverse %x, dims = [0] : " T
           "\n%e = stablehlo.reverse %b, dims = [0] : " T
           "\n%z = stablehlo.add %e, %r : " T "\n"),
     768, 1024},
    // Branches wait for it before they begin.
    {WORLD("%b = \"stablehlo.if\"(%p) ({\n"
           "  %v = stablehlo.reverse %x, dims = [0] : " T
           "\n  stablehlo.return %v : " T "\n}, {\n  stablehlo.return %x : " T
           "\n}) : (tensor<i1>) -> " T
           "\n%e = stablehlo.reverse %b, dims = [0] : " T
           "\n%z = stablehlo.add %e, %r : " T "\n"),
     768, 768},
};

static void test_collectives(void** state) {
  (void)state;
  pestle_context_t* context = test_context();
  for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); ++i) {
    pestle_module_t* module = test_parse(context, worlds[i].text);
    for (int beside = 0; beside < 2; ++beside) {
      pestle_memory_wishes_t wishes = {.overlaps = beside};
      int64_t wanted = beside ? worlds[i].beside : worlds[i].alone;
      fixture_t f;
      plan(module, &wishes, &f);
      if (f.plan.arena_size != wanted) print_error("row %zu, %d\n", i, beside);
      assert_int_equal(f.plan.arena_size, wanted);
      pestle_arena_deinit(&f.arena);
    }
    pestle_module_release(module);
  }
  pestle_context_release(context);
}

// An op without operands makes what it makes anew.
static void test_numbers(void** state) {
  (void)state;
  pestle_context_t* context = test_context();
  pestle_module_t* module =
      test_parse(context, TWO_REPLICAS
                 "func.func @main(%i: tensor<ui32>, %p: tensor<i1>) -> "
                 "tensor<ui32> {\n"
                 "%n = stablehlo.add %i, %i : tensor<ui32>\n"
                 "%r = stablehlo.while(%s = %n) : tensor<ui32>\n cond {\n"
                 "  stablehlo.return %p : tensor<i1>\n} do {\n"
                 "  %e = stablehlo.replica_id : tensor<ui32>\n"
                 "  stablehlo.return %e : tensor<ui32>\n}\n"
                 "return %r : tensor<ui32>\n}\n}\n");
  fixture_t f;
  plan(module, NULL, &f);
  const pestle_node_t* loop = find(entry_of(module), PESTLE_OP_WHILE);
  const pestle_node_t* last = pestle_node_body(loop, 1)->last;
  const pestle_placement_t* state_place = place(&f, &loop->results[0]);
  assert_true(place(&f, pestle_node_operand(last, 0))->root !=
              state_place->root);
  assert_true(place(&f, pestle_node_operand(loop, 0))->root ==
              state_place->root);
  pestle_arena_deinit(&f.arena);
  pestle_module_release(module);
  pestle_context_release(context);
}

// --- Fusions over operands ---

// One of |count| tanh behind |first|, which makes %v0 of the argument %a; "": that is %v0.
static pestle_module_t* make_fusion(pestle_context_t* context, const char* from,
                                    const char* to, const char* first,
                                    int count) {
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_context_allocator(context), &text);
  pestle_strbuf_appendf(&text,
                        "func.func @main(%%x: %s) -> %s {\n"
                        "%%r = \"pestle.fusion\"(%%x) <{label = \"f\"}> ({\n"
                        "^bb0(%s: %s):\n%s",
                        from, to, *first ? "%a" : "%v0", from, first);
  for (int i = 0; i < count; ++i)
    pestle_strbuf_appendf(&text, "%%v%d = stablehlo.tanh %%v%d : %s\n", i + 1,
                          i, to);
  pestle_strbuf_appendf(&text,
                        "stablehlo.return %%v%d : %s\n}) : (%s) -> %s\n"
                        "return %%r : %s\n}\n",
                        count, to, from, to, to);
  pestle_module_t* module = test_parse(context, pestle_strbuf_cstr(&text));
  pestle_strbuf_deinit(&text);
  return module;
}

static void test_overwrites(void** state) {
  (void)state;
  static const struct {
    const char *from, *to, *first;
    int count;
    bool may;
  } rows[] = {
      {T, T, "", 1, true},
      {T, T, "", 64, true},
      // Longer ones are not followed.
      {T, T, "", 66, false},
      // What was written would not be there to be read.
      {"tensor<8x8xf32>", "tensor<8x8xf32>",
       "%v0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<8x8xf32>) -> "
       "tensor<8x8xf32>\n",
       1, false},
      {"tensor<4x16xf32>", "tensor<16x4xf32>",
       "%v0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x16xf32>) -> "
       "tensor<16x4xf32>\n",
       1, false},
      {"tensor<8x8xf32>", "tensor<1x8xf32>",
       "%v0 = stablehlo.slice %a [0:1, 0:8] : (tensor<8x8xf32>) -> "
       "tensor<1x8xf32>\n",
       0, false},
      // It hands on its argument.
      {T, T, "", 0, false},
  };
  pestle_context_t* context = test_context();
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    pestle_module_t* module = make_fusion(context, rows[i].from, rows[i].to,
                                          rows[i].first, rows[i].count);
    const pestle_node_t* fusion = find(entry_of(module), PESTLE_OP_FUSION);
    bool may = pestle_planner_may_overwrite(fusion, 0);
    if (may != rows[i].may) print_error("row %zu\n", i);
    assert_int_equal(may, rows[i].may);
    pestle_module_release(module);
  }
  pestle_context_release(context);
}

// --- Cells that a test makes ---

enum { UNIT = 1 << 20 };

// The arena of four cells, the third of which finds a hole that is too small for it when
// cells are placed as they begin, behind |more| small ones that live at the same time.
static int64_t place_cells(pestle_context_t* context, size_t more,
                           int64_t* out_least) {
  static const int64_t lives[][3] = {{UNIT, 11, 12},
                                     {2 * UNIT, 12, 13},
                                     {2 * UNIT, 13, 14},
                                     {2 * UNIT, 14, 15}};
  pestle_planner_t p = {.allocator = pestle_context_allocator(context)};
  pestle_arena_t arena;
  pestle_arena_init(p.allocator, &arena);
  p.arena = &arena;
  pestle_vec_init(&p.cells, p.allocator);
  for (size_t i = 0; i < more + 4; ++i) {
    pestle_cell_t cell = {.storage = PESTLE_STORAGE_ARENA,
                          .size = 64,
                          .begin = 1,
                          .end = 2,
                          .merged_into = PESTLE_CELL_NONE};
    if (i >= more) {
      cell.size = lives[i - more][0];
      cell.begin = lives[i - more][1];
      cell.end = lives[i - more][2];
    }
    assert_true(pestle_vec_push(&p.cells, cell));
  }
  int64_t size;
  assert_ok(pestle_planner_offsets(&p, &size, out_least));
  for (size_t i = more; i < more + 4; ++i) {
    for (size_t k = i + 1; k < more + 4; ++k) {
      const pestle_cell_t *a = &p.cells.data[i], *b = &p.cells.data[k];
      assert_true(a->end < b->begin || a->offset + a->size <= b->offset ||
                  b->offset + b->size <= a->offset);
    }
  }
  pestle_vec_deinit(&p.cells);
  pestle_arena_deinit(&arena);
  return size;
}

// The order by size is tried where few live at the same time, so that it ends in time.
static void test_many_cells(void** state) {
  (void)state;
  pestle_context_t* context = test_context();
  int64_t least;
  assert_int_equal(place_cells(context, 0, &least), 4 * UNIT);
  assert_int_equal(least, 4 * UNIT);
  assert_int_equal(place_cells(context, 5000, &least), 4 * UNIT);
  assert_int_equal(place_cells(context, 6000, &least), 5 * UNIT);
  assert_int_equal(least, 4 * UNIT);
  pestle_context_release(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_chains),     cmocka_unit_test(test_long_chains),
      cmocka_unit_test(test_branches),   cmocka_unit_test(test_turns),
      cmocka_unit_test(test_given),      cmocka_unit_test(test_collectives),
      cmocka_unit_test(test_numbers),    cmocka_unit_test(test_overwrites),
      cmocka_unit_test(test_many_cells),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// The memory plan of random graphs never lays two live values over each other,
// with and without fusion.
#include "../passes/random_graph.h"
#include "memory_plan_checker.h"

enum { SEEDS = 400, MOST_INPUTS = 64 };

// Every argument in place of every result of its type, alone; then all where they
// can. How many lay so.
static size_t check_donations(pestle_module_t* module) {
  const pestle_function_t* f = pestle_module_entry(module);
  const pestle_block_t* block = f->body->block;
  pestle_alias_t aliases[MOST_INPUTS];
  pestle_memory_wishes_t wishes = {aliases, 1, NULL, false, false};
  size_t placed = 0;
  uint32_t count = block->argument_count;
  if (count > MOST_INPUTS) count = MOST_INPUTS;
  for (uint32_t i = 0; i < count; ++i) {
    for (uint32_t o = 0; o < block->last->operand_count; ++o) {
      if (!pestle_type_equal(block->arguments[i]->type,
                             pestle_node_operand(block->last, o)->type)) {
        continue;
      }
      aliases[0] = (pestle_alias_t){i, (int32_t)o};
      placed += check_plan_with(module, &wishes);
    }
  }
  for (uint32_t i = 0; i < count; ++i)
    aliases[i] = (pestle_alias_t){i, PESTLE_ALIAS_ANY};
  wishes.count = count;
  return placed + check_plan_with(module, &wishes);
}

static void run_all(pestle_compile_options_t options) {
  pestle_context_t* context = test_context();
  const char* first = getenv("SEED");
  size_t placed = 0;
  uint64_t from = first ? strtoull(first, NULL, 10) : 1;
  for (uint64_t seed = from; seed < from + (first ? 1 : SEEDS); ++seed) {
    pestle_module_t* module = random_module(context, seed);
    if (first) print_message("seed %llu\n", (unsigned long long)seed);
    options.round_trip = false;
    test_run_with(module, &options);
    check_plan(module);
    placed += check_donations(module);
    pestle_module_release(module);
  }
  if (!first) assert_true(placed > SEEDS / 4);
  pestle_context_release(context);
}

static void test_default(void** state) {
  (void)state;
  run_all(test_options(NULL));
}

static void test_strict(void** state) {
  (void)state;
  pestle_compile_options_t options = test_options(NULL);
  options.numerics = PESTLE_NUMERICS_STRICT;
  run_all(options);
}

static void test_no_fuse(void** state) {
  (void)state;
  pestle_compile_options_t options = test_options(NULL);
  options.no_fuse = true;
  run_all(options);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_default),
      cmocka_unit_test(test_strict),
      cmocka_unit_test(test_no_fuse),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

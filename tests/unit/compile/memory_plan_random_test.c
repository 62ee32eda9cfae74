// SPDX-License-Identifier: Apache-2.0
// The memory plan of random graphs never lays two live values over each other,
// with and without fusion.
#include "../passes/random_graph.h"
#include "memory_plan_checker.h"

enum { SEEDS = 400 };

static void run_all(pestle_compile_options_t options) {
  pestle_context_t* context = test_context();
  const char* first = getenv("SEED");
  uint64_t from = first ? strtoull(first, NULL, 10) : 1;
  for (uint64_t seed = from; seed < from + (first ? 1 : SEEDS); ++seed) {
    pestle_module_t* module = random_module(context, seed);
    if (first) print_message("seed %llu\n", (unsigned long long)seed);
    options.round_trip = false;
    test_run_with(module, &options);
    check_plan(module);
    pestle_module_release(module);
  }
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

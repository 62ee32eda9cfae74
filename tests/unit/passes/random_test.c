// SPDX-License-Identifier: Apache-2.0
// Random graphs through the pipeline: the meaning stays, at every numerics and
// without fusion.
#include "passes_test.h"
#include "random_graph.h"

enum { SEEDS = 400 };

static void run_all(pestle_compile_options_t options, const char* first_passes,
                    double tolerance) {
  pestle_context_t* context = test_context();
  const char* first = getenv("SEED");
  uint64_t from = first ? strtoull(first, NULL, 10) : 1;
  for (uint64_t seed = from; seed < from + (first ? 1 : SEEDS); ++seed) {
    pestle_module_t* module = random_module(context, seed);
    if (first) {
      char* text = test_print(module);
      print_message("%s", text);
      free(text);
    }
    if (first_passes) test_run(module, first_passes);
    options.round_trip = seed % 8 == 0;
    if (first) print_message("seed %llu\n", (unsigned long long)seed);
    test_keeps_meaning(module, &options, tolerance);
    pestle_module_release(module);
  }
  pestle_context_release(context);
}

static void test_default(void** state) {
  (void)state;
  run_all(test_options(NULL), NULL, 1e-4);
}

static void test_strict(void** state) {
  (void)state;
  pestle_compile_options_t options = test_options(NULL);
  options.numerics = PESTLE_NUMERICS_STRICT;
  // Composites are evaluated with more precision than what they stand for.
  run_all(options, "decompose", 0);
}

static void test_no_fuse(void** state) {
  (void)state;
  pestle_compile_options_t options = test_options(NULL);
  options.no_fuse = true;
  run_all(options, NULL, 1e-4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_default),
      cmocka_unit_test(test_strict),
      cmocka_unit_test(test_no_fuse),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

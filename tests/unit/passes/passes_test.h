// SPDX-License-Identifier: Apache-2.0
// Fixture of the tests of passes: modules from text, passes by name, random
// inputs, evaluation by ir/ref before and after, comparison.
#ifndef PESTLE_TESTS_UNIT_PASSES_PASSES_TEST_H_
#define PESTLE_TESTS_UNIT_PASSES_PASSES_TEST_H_

#include "test.h"

#include <math.h>
#include <stdlib.h>

#include "base/half.h"
#include "ir/collective.h"
#include "ir/ref/ref.h"
#include "passes/pass.h"

enum { TEST_MAX_ARRAYS = 64 };

static inline pestle_context_t* test_context(void) {
  pestle_context_t* context;
  assert_ok(pestle_context_create(NULL, &context));
  return context;
}

static inline pestle_module_t* test_parse(pestle_context_t* context,
                                          const char* text) {
  pestle_module_t* module = NULL;
  pestle_status_t status =
      pestle_module_parse(context, text, strlen(text), "test", &module);
  if (status) fprintf(stderr, "%s\n", text);
  assert_ok(status);
  return module;
}

static inline char* test_print(const pestle_module_t* module) {
  char* text;
  size_t size;
  assert_ok(pestle_module_print(module, 0, &text, &size));
  char* copy = malloc(size + 1);
  memcpy(copy, text, size + 1);
  pestle_context_free(module->context, text, size + 1);
  return copy;
}

static inline pestle_compile_options_t test_options(const char* passes) {
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .verify = true,
                                      .round_trip = true,
                                      .passes = passes};
  return options;
}

static inline void test_run_with(pestle_module_t* module,
                                 const pestle_compile_options_t* options) {
  pestle_target_caps_t caps = {.struct_size = sizeof(caps)};
  caps.op_dtypes[PESTLE_KIR_DOT4] = 1u << PESTLE_I32;
  caps.vector_bytes = 32;
  caps.scratch_bytes = 1 << 20;
  pestle_status_t status =
      pestle_passes_run(module->context, &caps, options, module, NULL);
  if (status) {
    char* text = test_print(module);
    fprintf(stderr, "%s\n", text);
    free(text);
  }
  assert_ok(status);
}

// Runs |passes| (NULL: the pipeline), verifying and going through text and
// binary after each.
static inline void test_run(pestle_module_t* module, const char* passes) {
  pestle_compile_options_t options = test_options(passes);
  test_run_with(module, &options);
}

// --- Random data ---

static inline uint64_t test_random(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

// Below |count|.
static inline uint32_t test_pick(uint64_t* state, uint32_t count) {
  return (uint32_t)((test_random(state) >> 16) % count);
}

static inline void* test_array(const pestle_type_t* type, uint64_t* seed) {
  size_t count = (size_t)pestle_type_count(type);
  size_t size = pestle_dtype_size(type->dtype);
  char* data = calloc(count + 1, size);
  for (size_t i = 0; i < count && seed; ++i) {
    uint64_t r = test_random(seed), bits = r >> 20;
    double unit = (double)(r >> 11) / 9007199254740992.0;
    if (pestle_dtype_is(type->dtype, PESTLE_KIND_FLOAT)) {
      bits = pestle_float_encode(type->dtype, unit * 4 - 2);
    } else if (type->dtype == PESTLE_I1) {
      bits &= 1;
    }
    memcpy(data + i * size, &bits, size);
  }
  return data;
}

// --- Evaluation ---

typedef struct test_results_t {
  void* data[TEST_MAX_ARRAYS];
  pestle_type_t types[TEST_MAX_ARRAYS];
  size_t count;
} test_results_t;

static inline void test_free_results(test_results_t* r) {
  for (size_t i = 0; i < r->count; ++i)
    free(r->data[i]);
}

// Evaluates the entry on inputs made from |seed|; in a world of several processes all
// of them, each on inputs of its own, whose results follow each other.
static inline test_results_t test_evaluate(pestle_module_t* module,
                                           uint64_t seed) {
  pestle_world_shape_t world = pestle_module_world(module);
  size_t ranks = (size_t)(world.replicas * world.partitions);
  pestle_function_t* f = pestle_module_entry(module);
  const pestle_node_t* end = f->body->block->last;
  void* inputs[TEST_MAX_ARRAYS];
  const void* const* arguments[TEST_MAX_ARRAYS];
  void* const* outputs[TEST_MAX_ARRAYS];
  size_t count = pestle_function_argument_count(f);
  size_t result_count = end->operand_count;
  assert_true(ranks * count <= TEST_MAX_ARRAYS && ranks <= TEST_MAX_ARRAYS);
  assert_true(ranks * result_count <= TEST_MAX_ARRAYS);
  test_results_t results = {.count = ranks * result_count};
  for (size_t r = 0; r < ranks; ++r) {
    arguments[r] = (const void* const*)inputs + r * count;
    outputs[r] = results.data + r * result_count;
    for (size_t i = 0; i < count; ++i) {
      inputs[r * count + i] =
          test_array(pestle_function_argument(f, i)->type, &seed);
    }
    for (size_t i = 0; i < result_count; ++i) {
      size_t at = r * result_count + i;
      results.types[at] = *pestle_node_operand(end, i)->type;
      results.data[at] = test_array(&results.types[at], NULL);
    }
  }
  pestle_allocator_t allocator = pestle_context_allocator(module->context);
  assert_ok(ranks > 1
                ? pestle_ref_evaluate_world(allocator, f, arguments, outputs)
                : pestle_ref_evaluate_function(allocator, f, arguments[0],
                                               results.data));
  for (size_t i = 0; i < ranks * count; ++i)
    free(inputs[i]);
  return results;
}

// The largest difference relative to the largest magnitude; 0 means equal bits
// (NaNs are equal), infinity that integers differ.
static inline double test_difference(const test_results_t* a,
                                     const test_results_t* b) {
  assert_int_equal(a->count, b->count);
  double worst = 0;
  for (size_t i = 0; i < a->count; ++i) {
    const pestle_type_t* type = &a->types[i];
    assert_true(pestle_type_equal(type, &b->types[i]));
    size_t size = pestle_dtype_size(type->dtype);
    double largest = 1e-30, difference = 0;
    for (int64_t k = 0; k < pestle_type_count(type); ++k) {
      uint64_t x = 0, y = 0;
      memcpy(&x, (const char*)a->data[i] + (size_t)k * size, size);
      memcpy(&y, (const char*)b->data[i] + (size_t)k * size, size);
      if (x == y) continue;
      if (!pestle_dtype_is(type->dtype, PESTLE_KIND_FLOAT)) return INFINITY;
      double f = pestle_float_decode(type->dtype, x);
      double g = pestle_float_decode(type->dtype, y);
      if (isnan(f) && isnan(g)) continue;
      if (fabs(f) > largest) largest = fabs(f);
      double d = fabs(f - g);
      if (!(d <= difference)) difference = isnan(d) ? INFINITY : d;
      if (f == g) difference = difference > 0 ? difference : 1e-300;
    }
    if (difference / largest > worst) worst = difference / largest;
  }
  return worst;
}

// Evaluates, runs |options|, evaluates again: the results may differ by
// |tolerance|.
static inline void test_keeps_meaning(pestle_module_t* module,
                                      const pestle_compile_options_t* options,
                                      double tolerance) {
  enum { SEEDS = 2 };
  test_results_t before[SEEDS];
  for (uint64_t s = 0; s < SEEDS; ++s) {
    before[s] = test_evaluate(module, 77777 + s * 1313);
  }
  char* text = test_print(module);
  test_run_with(module, options);
  for (uint64_t s = 0; s < SEEDS; ++s) {
    test_results_t after = test_evaluate(module, 77777 + s * 1313);
    double difference = test_difference(&before[s], &after);
    if (difference > tolerance) {
      char* now = test_print(module);
      fprintf(stderr, "differs by %g:\n%s\n---- became\n%s\n", difference, text,
              now);
      free(now);
    }
    assert_true(difference <= tolerance);
    test_free_results(&after);
    test_free_results(&before[s]);
  }
  free(text);
}

static inline size_t test_count_block(const pestle_block_t* block,
                                      pestle_op_t op) {
  size_t count = 0;
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    count += op == PESTLE_OP_COUNT || n->op == op;
    for (uint32_t r = 0; r < n->region_count; ++r) {
      count += test_count_block(pestle_node_body(n, r), op);
    }
  }
  return count;
}

// Ops of one kind in the entry, bodies included.
static inline size_t test_count(pestle_module_t* module, pestle_op_t op) {
  return test_count_block(pestle_module_entry(module)->body->block, op);
}

#endif  // PESTLE_TESTS_UNIT_PASSES_PASSES_TEST_H_

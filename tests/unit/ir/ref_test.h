// SPDX-License-Identifier: Apache-2.0
// Programs of constants whose results are compared bit by bit.
#ifndef PESTLE_TESTS_UNIT_IR_REF_TEST_H_
#define PESTLE_TESTS_UNIT_IR_REF_TEST_H_

#include "ir/ref/ref.h"
#include "text_test.h"

// Evaluates the entry function of |text|. All arguments and results that a test
// names are arrays in the function's order.
static inline void evaluate(const char* text, const void* const* arguments,
                            void* const* results) {
  pestle_context_t* context = text_context();
  pestle_module_t* module = text_parse(context, text);
  pestle_test_allocator_t memory;
  pestle_test_allocator_init(&memory, 0);
  assert_ok(pestle_ref_evaluate_function(pestle_test_allocator(&memory),
                                         pestle_module_entry(module), arguments,
                                         results));
  pestle_test_allocator_check(&memory);
  pestle_module_release(module);
  pestle_context_release(context);
}

// A program of one result whose only inputs are constants.
#define RESULT(type, body) \
  "func.func @f() -> " type " {\n" body "\nreturn %r : " type "\n}"
#define CONSTANT(name, type, value) \
  "%" name " = stablehlo.constant dense<" value "> : " type "\n"

#define assert_result(T, text, ...)                                        \
  do {                                                                     \
    const T want_[] = {__VA_ARGS__};                                       \
    T got_[sizeof(want_) / sizeof(T)];                                     \
    memset(got_, 0xAB, sizeof(got_));                                      \
    void* results_[] = {got_};                                             \
    evaluate((text), NULL, results_);                                      \
    for (size_t i_ = 0; i_ < sizeof(want_) / sizeof(T); ++i_) {            \
      if (!memcmp(&want_[i_], &got_[i_], sizeof(T))) continue;             \
      print_error("element %zu of %s\n is %.17g, not %.17g\n", i_, (text), \
                  (double)got_[i_], (double)want_[i_]);                    \
      fail();                                                              \
    }                                                                      \
  } while (0)

#endif  // PESTLE_TESTS_UNIT_IR_REF_TEST_H_

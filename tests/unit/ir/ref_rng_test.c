// SPDX-License-Identifier: Apache-2.0
// rng_bit_generator against the known answers that come with the published
// algorithms (Random123's kat_vectors: counter and key of zeros, of ones, of pi),
// laid out as XLA lays words out.
#include "ir/graph.h"
#include "ir/ref/ref.h"
#include "pestle/pestle.h"
#include "test.h"

typedef struct answer_t {
  const char* algorithm;
  int64_t words;
  uint64_t state[3];
  uint32_t wanted[4];
} answer_t;

static const answer_t answers[] = {
    {"THREE_FRY", 2, {0, 0}, {0x6b200159, 0x99ba4efe}},
    {"THREE_FRY", 2, {UINT64_MAX, UINT64_MAX}, {0x1cb996fc, 0xbb002be7}},
    {"THREE_FRY",
     2,
     {0x0370734413198a2e, 0x85a308d3243f6a88},
     {0xc4923a9c, 0x483df7a0}},
    {"PHILOX", 4, {0, 0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {"PHILOX",
     4,
     {UINT64_MAX, UINT64_MAX, UINT64_MAX},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {"PHILOX",
     4,
     {0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

static void known_answers(void** state) {
  pestle_context_t* context = *state;
  for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); ++i) {
    const answer_t* a = &answers[i];
    pestle_module_t* module;
    pestle_function_t* f;
    bool philox = a->algorithm[0] == 'P';
    pestle_type_t type =
        pestle_type_make(PESTLE_U64, 1, (int64_t[]){philox ? 3 : 2});
    pestle_type_t bits = pestle_type_make(PESTLE_U32, 1, &a->words);
    assert_ok(pestle_module_create(context, "m", &module));
    assert_ok(pestle_module_add_function(module, "main", &type, NULL, 1, &f));
    pestle_builder_t b = pestle_builder_make(f);
    pestle_value_t* y[2];
    pestle_rng_bit_generator_attrs_t attrs = {sizeof(attrs), a->algorithm,
                                              bits};
    assert_ok(pestle_op_rng_bit_generator(&b, pestle_function_argument(f, 0),
                                          &attrs, y, 2));
    assert_ok(pestle_op_return(&b, y, 2, NULL));
    const void* inputs[1] = {a->state};
    uint64_t next[3];
    uint32_t words[4];
    void* results[2] = {next, words};
    assert_ok(pestle_ref_evaluate_function(pestle_allocator_system(), f, inputs,
                                           results));
    for (int64_t k = 0; k < a->words; ++k)
      assert_int_equal(words[k], a->wanted[k]);
    // One counter is used up, with a carry.
    assert_true(next[0] == a->state[0] && next[1] == a->state[1] + 1);
    if (philox) assert_true(next[2] == a->state[2] + (a->state[1] + 1 == 0));
    pestle_module_release(module);
  }
}

static int setup(void** state) {
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .no_cache = true};
  pestle_context_t* context;
  assert_ok(pestle_context_create(&options, &context));
  *state = context;
  return 0;
}

static int teardown(void** state) {
  pestle_context_release(*state);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(known_answers)};
  return cmocka_run_group_tests(tests, setup, teardown);
}

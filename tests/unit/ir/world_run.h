// SPDX-License-Identifier: Apache-2.0
// Programs of several processes, by the evaluator of all of them.
#ifndef PESTLE_TESTS_UNIT_IR_WORLD_RUN_H_
#define PESTLE_TESTS_UNIT_IR_WORLD_RUN_H_

#include "ir/ref/ref.h"
#include "text_test.h"

#define WORLD(replicas, partitions, body)                    \
  "module @m attributes {mhlo.num_partitions = " #partitions \
  " : i32, mhlo.num_replicas = " #replicas " : i32} {\n" body "\n}\n"
// What is done to a module before it runs: nothing.
#ifndef WORLD_PREPARE
#define WORLD_PREPARE(module) ((void)(module))
#endif
enum { MOST = 8, LARGEST = 4096 };

typedef struct run_t {
  int ranks;
  size_t in_size, out_size;  // bytes of each process
  unsigned char in[MOST][LARGEST], out[MOST][LARGEST];
} run_t;

// One argument and one result.
static void run_world(const char* text, run_t* run) {
  pestle_context_t* context = text_context();
  pestle_module_t* module = text_parse(context, text);
  WORLD_PREPARE(module);
  const void* arguments[MOST][1];
  void* results[MOST][1];
  const void* const* all_arguments[MOST];
  void* const* all_results[MOST];
  pestle_test_allocator_t memory;
  pestle_test_allocator_init(&memory, 0);
  for (int i = 0; i < run->ranks; ++i) {
    arguments[i][0] = run->in[i];
    results[i][0] = run->out[i];
    memset(run->out[i], 0xAB, sizeof(run->out[i]));
    all_arguments[i] = arguments[i];
    all_results[i] = results[i];
  }
  // The counting allocator is for one thread.
  assert_ok(pestle_ref_evaluate_world(pestle_allocator_system(),
                                      pestle_module_entry(module),
                                      all_arguments, all_results));
  pestle_module_release(module);
  pestle_context_release(context);
}

static void run_i32(const char* text, int ranks, const int32_t* in,
                    size_t count, int32_t* out, size_t out_count) {
  run_t* run = calloc(1, sizeof(*run));
  run->ranks = ranks;
  for (int i = 0; i < ranks; ++i)
    memcpy(run->in[i], in + (size_t)i * count, count * 4);
  run_world(text, run);
  for (int i = 0; i < ranks; ++i)
    memcpy(out + (size_t)i * out_count, run->out[i], out_count * 4);
  free(run);
}

#define assert_i32(text, ranks, count, out_count, in, ...) \
  do {                                                     \
    const int32_t want_[] = {__VA_ARGS__};                 \
    int32_t got_[(ranks) * (out_count)];                   \
    assert_int_equal(sizeof(want_), sizeof(got_));         \
    run_i32(text, ranks, in, count, got_, out_count);      \
    for (size_t i_ = 0; i_ < (ranks) * (out_count); ++i_)  \
      assert_int_equal(got_[i_], want_[i_]);               \
  } while (0)

#endif  // PESTLE_TESTS_UNIT_IR_WORLD_RUN_H_

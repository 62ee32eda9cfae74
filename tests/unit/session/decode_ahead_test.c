// SPDX-License-Identifier: Apache-2.0
// What a decoder's thread compiles for the next room, with kernels that are interpreted: which
// token waits for it, its end, its errors, and memory that is short meanwhile.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "pestle/decode.h"
#include "test.h"

enum { MOST = 64, ROOM = 8, WORDS = 4 };

static pestle_context_t* make_context(void) {
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .cache_dir = "",
                                      .backend_path = "/nonexistent",
                                      .threads = 2};
  pestle_context_t* context;
  assert_ok(pestle_context_create(&options, &context));
  return context;
}

static pestle_decoder_t* open_model(pestle_context_t* context, size_t slots,
                                    bool no_ahead) {
  char path[1024];
  const char* source = getenv("PESTLE_SOURCE_DIR");
  (void)snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/gguf/llama.Q4_0",
                 source ? source : ".");
  const pestle_decoder_options_t options = {.struct_size = sizeof(options),
                                            .most = MOST,
                                            .room = ROOM,
                                            .slots = slots,
                                            .no_ahead = no_ahead};
  pestle_decoder_t* decoder;
  assert_ok(pestle_decoder_create(context, path, &options, &decoder));
  return decoder;
}

static pestle_decoder_info_t info_of(const pestle_decoder_t* decoder) {
  pestle_decoder_info_t info = {.struct_size = sizeof(info)};
  assert_ok(pestle_decoder_info(decoder, &info));
  return info;
}

static pestle_status_t feed(pestle_decoder_t* decoder, size_t count) {
  int64_t ids[MOST];
  for (size_t i = 0; i < count; ++i)
    ids[i] = (int64_t)i % WORDS;
  return pestle_decoder_feed(decoder, 0, ids, count);
}

static void wait_for(const pestle_decoder_t* decoder, uint64_t compiles) {
  while (info_of(decoder).compiles_ahead < compiles)
    pestle_thread_yield();
}

// Logits of each token by rooms that were compiled before are those of one room.
static void test_no_token_compiles(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  pestle_decoder_t* d = open_model(context, 1, false);
  pestle_decoder_t* other = open_model(context, 1, true);
  for (int i = 0; i < MOST; ++i) {
    assert_ok(feed(d, 1));
    assert_ok(feed(other, 1));
    const float *a = pestle_decoder_logits(d, 0),
                *b = pestle_decoder_logits(other, 0);
    for (int w = 0; w < WORDS; ++w)
      assert_float_equal(a[w], b[w], 0);
    pestle_decoder_info_t info = info_of(d);
    assert_int_equal(info.compiles - info.compiles_ahead, 1);
    if (info.room < MOST && 2 * (i + 1) >= info.room)
      wait_for(d, info.room == 8 ? 1 : info.room == 16 ? 2 : 3);
  }
  pestle_decoder_info_t info = info_of(d);
  assert_int_equal(info.waits, 0);
  assert_int_equal(info.compiles_ahead, 3);
  assert_true(info.compile_ns > 0);
  assert_int_equal(info_of(other).compiles, 4);
  assert_int_equal(info_of(other).compiles_ahead, 0);
  pestle_decoder_release(other);
  pestle_decoder_release(d);
  pestle_context_release(context);
}

// A run of all slots needs a plan of its own, which is known when the first was.
static void test_slots(void** state) {
  (void)state;
  static const size_t slots[2] = {0, 1};
  static const int64_t ids[2] = {1, 2};
  pestle_context_t* context = make_context();
  pestle_decoder_t* d = open_model(context, 2, false);
  for (int i = 0; i < ROOM / 2; ++i)
    assert_ok(feed(d, 1));
  wait_for(d, 1);
  assert_ok(pestle_decoder_feed_each(d, slots, ids, 2));
  wait_for(d, 2);
  for (int i = 0; i < ROOM; ++i) {
    assert_ok(pestle_decoder_feed_each(d, slots, ids, 2));
    pestle_decoder_info_t info = info_of(d);
    assert_int_equal(info.compiles - info.compiles_ahead, 2);
  }
  assert_int_equal(info_of(d).room, 2 * ROOM);
  assert_int_equal(info_of(d).batches, ROOM + 1);
  pestle_decoder_release(d);
  pestle_context_release(context);
}

// Let go at whatever the thread does; tokens that do not wait for it, and one that does.
static void test_ends(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  for (int i = 0; i < 40; ++i) {
    pestle_decoder_t* d = open_model(context, 1, false);
    assert_ok(feed(d, (size_t)(1 + i % (2 * ROOM))));
    if (i % 4 == 3) assert_ok(feed(d, 3 * ROOM));
    if (i % 4 == 2) assert_ok(pestle_decoder_cut(d, 0, 0));
    if (i % 4 == 2) assert_ok(feed(d, 1));
    pestle_decoder_release(d);
  }
  pestle_context_release(context);
}

typedef struct runner_t {
  pestle_context_t* context;
  pestle_thread_t thread;
} runner_t;

static void run_decoder(void* argument) {
  runner_t* r = argument;
  pestle_decoder_t* d = open_model(r->context, 1, false);
  for (int i = 0; i < MOST; ++i)
    assert_ok(feed(d, 1));
  pestle_decoder_info_t info = info_of(d);
  assert_int_equal(info.compiles - info.compiles_ahead, 1);
  assert_true(info.waits <= 3);
  pestle_decoder_release(d);
}

// Decoders of one model on threads of their own, whose threads compile the same plans.
static void test_threads(void** state) {
  (void)state;
  runner_t runners[3];
  pestle_context_t* context = make_context();
  for (int i = 0; i < 3; ++i) {
    runners[i].context = context;
    assert_ok(pestle_thread_start(run_decoder, &runners[i], "decoder",
                                  &runners[i].thread));
  }
  for (int i = 0; i < 3; ++i)
    pestle_thread_join(&runners[i].thread);
  pestle_context_release(context);
}

static pestle_device_t* device_of(pestle_context_t* context) {
  pestle_device_t* device;
  assert_ok(pestle_context_device(context, NULL, &device));
  return device;
}

static uint64_t held_by(pestle_context_t* context) {
  uint64_t held;
  assert_ok(pestle_device_memory_get(device_of(context), PESTLE_MEMORY_ACTIVE,
                                     &held));
  return held;
}

// 0: no limit.
static void limit(pestle_context_t* context, uint64_t bytes) {
  assert_ok(pestle_device_memory_set(device_of(context), PESTLE_MEMORY_LIMIT,
                                     bytes, NULL));
}

static void expect_short(pestle_decoder_t* d) {
  pestle_status_t status = feed(d, 1);
  assert_int_equal(pestle_status_code(status),
                   PESTLE_STATUS_RESOURCE_EXHAUSTED);
  assert_non_null(strstr(pestle_status_message(status), "memory limit"));
  pestle_status_release(status);
  assert_int_equal(pestle_decoder_length(d, 0), ROOM);
  assert_int_equal(info_of(d).room, ROOM);
}

// What a thread made ahead goes before a token fails; without memory for the next room the
// token that needs it fails, until there is some.
static void test_memory(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  pestle_decoder_t* d = open_model(context, 1, false);
  for (int i = 0; i < ROOM / 2; ++i)
    assert_ok(feed(d, 1));
  wait_for(d, 1);
  uint64_t held = held_by(context);
  limit(context, held);
  assert_ok(feed(d, 1));
  assert_true(held_by(context) < held);
  limit(context, 0);
  for (int i = ROOM / 2 + 1; i < ROOM; ++i)
    assert_ok(feed(d, 1));
  limit(context, held_by(context));
  expect_short(d);
  expect_short(d);
  limit(context, 0);
  assert_ok(feed(d, 1));
  assert_int_equal(info_of(d).room, 2 * ROOM);
  assert_int_equal(info_of(d).waits, 0);
  pestle_decoder_release(d);
  pestle_context_release(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_no_token_compiles), cmocka_unit_test(test_slots),
      cmocka_unit_test(test_ends), cmocka_unit_test(test_threads),
      cmocka_unit_test(test_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

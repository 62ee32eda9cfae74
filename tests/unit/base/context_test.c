// SPDX-License-Identifier: Apache-2.0
// The core of a context on its own: what the folders above base/ ask of one is
// there without the runtime.
#include "base/context.h"

#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "pestle/runtime.h"
#include "test.h"

typedef struct heard_t {
  int count;
  pestle_log_level_t level;
  char text[256];
} heard_t;

static void hear(void* user, pestle_log_level_t level, const char* message) {
  heard_t* heard = user;
  ++heard->count;
  heard->level = level;
  snprintf(heard->text, sizeof(heard->text), "%s", message);
}

static pestle_context_core_t make_core(heard_t* heard) {
  pestle_context_core_t core;
  pestle_context_core_init(pestle_allocator_system(), &core);
  core.log = heard ? hear : NULL;
  core.log_user = heard;
  core.log_level = PESTLE_LOG_WARN;
  return core;
}

static void test_log(void** state) {
  (void)state;
  heard_t heard = {0};
  pestle_context_core_t core = make_core(&heard);
  pestle_context_t* context = pestle_context_of(&core);
  pestle_context_log(context, PESTLE_LOG_INFO, "not heard");
  assert_int_equal(heard.count, 0);
  pestle_context_log(context, PESTLE_LOG_WARN, "%d of %s", 3, "them");
  assert_int_equal(heard.count, 1);
  assert_int_equal(heard.level, PESTLE_LOG_WARN);
  assert_string_equal(heard.text, "3 of them");
  pestle_context_log_status(context, PESTLE_LOG_ERROR, "reading",
                            PESTLE_ERROR(MALFORMED, "a bad byte"));
  assert_int_equal(heard.count, 2);
  assert_non_null(strstr(heard.text, "reading: "));
  assert_non_null(strstr(heard.text, "a bad byte"));
  // Released, though nobody hears of it.
  pestle_context_log_status(context, PESTLE_LOG_DEBUG, "reading",
                            PESTLE_ERROR(MALFORMED, "a bad byte"));
  pestle_context_log_status(context, PESTLE_LOG_ERROR, "reading", NULL);
  assert_int_equal(heard.count, 2);
  core.log = NULL;
  pestle_context_log(context, PESTLE_LOG_ERROR, "nobody listens");
  pestle_context_log(NULL, PESTLE_LOG_ERROR, "no context");
}

static int destroyed;
static void count_destroyed(pestle_context_t* context) {
  (void)context;
  ++destroyed;
}

static void test_references(void** state) {
  (void)state;
  pestle_context_core_t core = make_core(NULL);
  pestle_context_t* context = pestle_context_of(&core);
  core.destroy = count_destroyed;
  destroyed = 0;
  pestle_context_retain(context);
  pestle_context_release(context);
  assert_int_equal(destroyed, 0);
  pestle_context_release(context);
  assert_int_equal(destroyed, 1);
  pestle_context_retain(NULL);
  pestle_context_release(NULL);
}

static void add_index(void* arg, int64_t index) {
  *(int64_t*)arg += index;
}

static void twice(pestle_context_t* context, int64_t count,
                  void (*task)(void* arg, int64_t index), void* arg) {
  (void)context;
  for (int64_t i = 0; i < 2 * count; ++i)
    task(arg, i / 2);
}

static void test_parallel(void** state) {
  (void)state;
  pestle_context_core_t core = make_core(NULL);
  pestle_context_t* context = pestle_context_of(&core);
  int64_t sum = 0;
  pestle_context_parallel_for(context, 5, add_index, &sum);
  assert_int_equal(sum, 10);
  core.parallel_for = twice;
  pestle_context_parallel_for(context, 5, add_index, &sum);
  assert_int_equal(sum, 30);
  pestle_context_parallel_for(NULL, 5, add_index, &sum);
  assert_int_equal(sum, 30);
  assert_int_equal(pestle_context_threads(context), 1);
  assert_int_equal(pestle_context_threads(NULL), 0);
}

static void test_memory(void** state) {
  (void)state;
  pestle_test_allocator_t memory;
  pestle_test_allocator_init(&memory, 0);
  pestle_context_core_t core;
  pestle_context_core_init(pestle_test_allocator(&memory), &core);
  pestle_context_t* context = pestle_context_of(&core);
  pestle_allocator_t allocator = pestle_context_allocator(context);
  void* data = allocator.resize(allocator.self, NULL, 0, 40, 16);
  assert_int_equal(atomic_load(&memory.live_bytes), 40);
  pestle_context_free(context, data, 40);
  pestle_context_free(context, NULL, 40);
  pestle_test_allocator_check(&memory);
}

static void test_trace(void** state) {
  (void)state;
  heard_t heard = {0};
  pestle_context_core_t core = make_core(&heard);
  pestle_context_t* context = pestle_context_of(&core);
  assert_int_equal(pestle_context_trace_begin(context), 0);
  char path[64];
  snprintf(path, sizeof(path), "context_test.%d.json", (int)getpid());
  assert_ok(pestle_context_open_trace(context, path));
  int64_t begin = pestle_context_trace_begin(context);
  assert_true(begin > 0);
  pestle_context_trace_end(context, begin, "app", "tokenise", "42 words");
  pestle_context_close_trace(context);
  assert_int_equal(pestle_context_trace_begin(context), 0);
  pestle_mapping_t mapping;
  assert_ok(pestle_file_map(path, &mapping));
  pestle_str_t text = {mapping.data, mapping.size};
  assert_true(pestle_str_find(text, PESTLE_STR("tokenise")) < text.size);
  pestle_file_unmap(&mapping);
  (void)remove(path);
  // No file, no trace: a warning.
  assert_ok(pestle_context_open_trace(context, "/nowhere/at/all/t.json"));
  assert_int_equal(heard.count, 1);
  assert_int_equal(pestle_context_trace_begin(context), 0);
  pestle_context_close_trace(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_log),      cmocka_unit_test(test_references),
      cmocka_unit_test(test_parallel), cmocka_unit_test(test_memory),
      cmocka_unit_test(test_trace),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

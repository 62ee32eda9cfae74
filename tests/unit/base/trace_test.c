// SPDX-License-Identifier: Apache-2.0
// The recorder of spans: threads at once, the limit, texts, no memory.
#include "base/trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "test.h"

enum { THREADS = 8, ROUNDS = 700 };

static char* print(pestle_trace_t* trace) {
  pestle_strbuf_t text;
  char* data;
  size_t size;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  assert_ok(pestle_trace_print(trace, &text));
  assert_ok(pestle_strbuf_take(&text, &data, &size));
  assert_int_equal(strlen(data), size);
  return data;
}

static void drop(char* text) {
  pestle_dealloc(pestle_allocator_system(), text, strlen(text) + 1);
}

static size_t count(const char* text, const char* part) {
  size_t n = 0;
  while ((text = strstr(text, part))) {
    ++n;
    text += strlen(part);
  }
  return n;
}

static void add(pestle_trace_t* trace, const char* name, int64_t begin,
                int64_t end) {
  pestle_trace_span_t span = {
      .category = "test", .name = name, .begin_ns = begin, .end_ns = end};
  pestle_trace_add(trace, &span);
}

// --- Threads ---

static void record(void* argument) {
  pestle_trace_t* trace = argument;
  pestle_trace_name_thread(trace, "recorder");
  for (int i = 0; i < ROUNDS; ++i) {
    char name[16];
    (void)snprintf(name, sizeof(name), "name %d", i);
    pestle_trace_span_t span = {.category = "test",
                                .name = pestle_trace_intern(trace, name),
                                .begin_ns = pestle_clock_ns(),
                                .keys = {"i"},
                                .values = {i}};
    pestle_trace_add(trace, &span);
  }
}

static char* record_on_threads(size_t capacity) {
  pestle_trace_t* trace =
      pestle_trace_create(pestle_allocator_system(), capacity);
  assert_non_null(trace);
  pestle_thread_t threads[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    assert_ok(pestle_thread_start(record, trace, "test", &threads[i]));
  }
  // While they record: what is whole is printed.
  drop(print(trace));
  for (int i = 0; i < THREADS; ++i)
    pestle_thread_join(&threads[i]);
  char* text = print(trace);
  pestle_trace_destroy(trace);
  return text;
}

static void test_threads(void** state) {
  (void)state;
  char* text = record_on_threads(THREADS * ROUNDS);
  assert_int_equal(count(text, "\"ph\":\"X\""), THREADS * ROUNDS);
  for (int i = 0; i < ROUNDS; ++i) {
    char name[40];
    (void)snprintf(name, sizeof(name), "\"name\":\"name %d\"", i);
    assert_int_equal(count(text, name), THREADS);
    (void)snprintf(name, sizeof(name), "\"args\":{\"i\":%d}", i);
    assert_int_equal(count(text, name), THREADS);
  }
  // A thread may have got the number of one that ended.
  size_t names = count(text, "\"args\":{\"name\":\"recorder\"}");
  assert_in_range(names, 1, THREADS);
  assert_int_equal(count(text, "thread_name"), names);
  assert_non_null(strstr(text, "\"dropped\":0}"));
  assert_null(strstr(text, "the trace is full"));
  drop(text);
}

static void test_limit(void** state) {
  (void)state;
  char* text = record_on_threads(1500);
  assert_int_equal(count(text, "\"ph\":\"X\""), 1500);
  char dropped[64];
  (void)snprintf(dropped, sizeof(dropped), "\"spans\":1500,\"dropped\":%d}",
                 THREADS * ROUNDS - 1500);
  assert_non_null(strstr(text, dropped));
  (void)snprintf(dropped, sizeof(dropped), "full: %d later spans",
                 THREADS * ROUNDS - 1500);
  assert_int_equal(count(text, dropped), 1);
  drop(text);
}

// --- What is printed ---

static void test_text(void** state) {
  (void)state;
  pestle_trace_t* trace = pestle_trace_create(pestle_allocator_system(), 16);
  assert_non_null(trace);
  int64_t now = pestle_clock_ns() + 1000000;
  // Inside first, as they end; one that began too early; no end.
  add(trace, "inside", now + 10, now + 20);
  add(trace, "around", now + 10, now + 5001);
  add(trace, "early", -5, 1);
  add(trace, "a \"quoted\"\\\n\x01\xff name", now + 6000, now + 6000);
  char* text = print(trace);
  const char* around = strstr(text, "\"around\"");
  const char* inside = strstr(text, "\"inside\"");
  assert_true(around && inside && around < inside);
  assert_non_null(strstr(around, ",\"dur\":4.991,"));
  assert_non_null(strstr(inside, ",\"dur\":0.010,"));
  assert_non_null(strstr(text, "\"early\",\"ts\":0.000,\"dur\":0.000,"));
  assert_non_null(
      strstr(text, "\"a \\\"quoted\\\"\\\\\\n\\u0001\xef\xbf\xbd name\""));
  assert_non_null(strstr(text, "\"args\":{\"name\":\"caller\"}"));
  drop(text);
  pestle_trace_destroy(trace);
}

static void end_arrow(void* argument) {
  pestle_trace_span_t span = {.category = "test",
                              .name = "caused",
                              .begin_ns = pestle_clock_ns(),
                              .flow_in = 1};
  pestle_trace_add(argument, &span);
}

// An arrow to each span of another thread, none to the own one; counters are no spans.
static void test_arrows_and_counters(void** state) {
  (void)state;
  pestle_trace_t* trace = pestle_trace_create(pestle_allocator_system(), 16);
  assert_non_null(trace);
  pestle_trace_span_t cause = {.category = "test",
                               .name = "cause",
                               .begin_ns = pestle_clock_ns(),
                               .flow_out = pestle_trace_flow(trace)};
  assert_int_equal(cause.flow_out, 1);
  assert_int_equal(pestle_trace_flow(trace), 2);
  end_arrow(trace);  // on this thread
  for (int i = 0; i < 2; ++i) {
    pestle_thread_t thread;
    assert_ok(pestle_thread_start(end_arrow, trace, "test", &thread));
    pestle_thread_join(&thread);
  }
  pestle_trace_add(trace, &cause);
  pestle_trace_memory(trace, "cpu:0", 7, 9);
  char* text = print(trace);
  assert_int_equal(count(text, "\"ph\":\"X\""), 4);
  assert_int_equal(count(text, "\"ph\":\"s\""), 2);
  assert_int_equal(count(text, "\"ph\":\"f\",\"bp\":\"e\""), 2);
  for (int id = 1; id <= 2; ++id) {
    char part[16];
    (void)snprintf(part, sizeof(part), "\"id\":%d,", id);
    assert_int_equal(count(text, part), 2);
  }
  assert_non_null(
      strstr(text, "{\"ph\":\"C\",\"name\":\"memory of cpu:0\",\"ts\":"));
  assert_non_null(strstr(text, "\"args\":{\"in use\":7,\"kept\":9}}"));
  assert_non_null(strstr(text, "\"spans\":4,\"dropped\":0}"));
  drop(text);
  pestle_trace_destroy(trace);
}

static void test_empty(void** state) {
  (void)state;
  pestle_trace_t* trace = pestle_trace_create(pestle_allocator_system(), 0);
  assert_non_null(trace);
  char* text = print(trace);
  assert_non_null(strstr(text, "\"spans\":0,\"dropped\":0}"));
  drop(text);
  add(trace, "one", 0, 0);
  text = print(trace);
  assert_non_null(strstr(text, "\"spans\":0,\"dropped\":1}"));
  drop(text);
  pestle_trace_destroy(trace);
  pestle_trace_destroy(NULL);
}

static void test_intern(void** state) {
  (void)state;
  pestle_trace_t* trace = pestle_trace_create(pestle_allocator_system(), 16);
  assert_non_null(trace);
  char text[] = "kernel_1";
  const char* first = pestle_trace_intern(trace, text);
  text[7] = '2';
  const char* second = pestle_trace_intern(trace, text);
  assert_string_equal(first, "kernel_1");
  assert_string_equal(second, "kernel_2");
  assert_ptr_equal(pestle_trace_intern(trace, "kernel_1"), first);
  assert_null(pestle_trace_intern(trace, NULL));
  pestle_trace_destroy(trace);
}

// --- No memory ---

static pestle_status_t record_and_print(pestle_allocator_t allocator,
                                        bool* out_lost) {
  pestle_trace_t* trace = pestle_trace_create(allocator, 16);
  if (!trace) return PESTLE_OOM();
  add(trace, pestle_trace_intern(trace, "a name"), pestle_clock_ns(), 0);
  pestle_strbuf_t text;
  pestle_strbuf_init(allocator, &text);
  pestle_status_t status = pestle_trace_print(trace, &text);
  *out_lost = !status && strstr(text.data, "\"spans\":0,\"dropped\":1}");
  if (!status && !*out_lost) {
    assert_non_null(strstr(text.data, "\"spans\":1,\"dropped\":0}"));
  }
  pestle_strbuf_deinit(&text);
  pestle_trace_destroy(trace);
  return status;
}

static void test_no_memory(void** state) {
  (void)state;
  int lost_events = 0;
  for (size_t k = 1;; ++k) {
    pestle_test_allocator_t memory;
    bool is_lost = false;
    pestle_test_allocator_init(&memory, k);
    pestle_status_t status =
        record_and_print(pestle_test_allocator(&memory), &is_lost);
    // A span or a name that there is no memory for does no harm.
    if (status) assert_code(status, OUT_OF_MEMORY);
    lost_events += is_lost;
    pestle_test_allocator_check(&memory);
    if (!pestle_test_allocator_failed(&memory)) break;
  }
  assert_int_equal(lost_events, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_threads),
      cmocka_unit_test(test_limit),
      cmocka_unit_test(test_text),
      cmocka_unit_test(test_arrows_and_counters),
      cmocka_unit_test(test_empty),
      cmocka_unit_test(test_intern),
      cmocka_unit_test(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

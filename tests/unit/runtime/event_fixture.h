// SPDX-License-Identifier: Apache-2.0
// Functions that events call, and what they saw.
#ifndef PESTLE_TESTS_UNIT_RUNTIME_EVENT_FIXTURE_H_
#define PESTLE_TESTS_UNIT_RUNTIME_EVENT_FIXTURE_H_

#include "base/thread.h"
#include "unit/runtime/gpu_fixture.h"

typedef struct told_t {
  atomic_int count;
  atomic_int code;  // of the latest
  char message[256];
  int64_t thread;  // that made the call
  atomic_int* clock;
  int time;  // of the call, by |clock|
} told_t;

static inline void note_told(void* self, pestle_status_t status) {
  told_t* told = self;
  snprintf(told->message, sizeof(told->message), "%s",
           pestle_status_message(status));
  told->thread = pestle_thread_id();
  if (told->clock) told->time = atomic_fetch_add(told->clock, 1);
  atomic_store(&told->code, (int)pestle_status_code(status));
  atomic_fetch_add(&told->count, 1);
}

// Until |counter| is at least |value|; fails after half a minute.
static inline void wait_until(atomic_int* counter, int value) {
  for (int i = 0; atomic_load(counter) < value; ++i) {
    if (i == 30000)
      fail_msg("%d of %d after 30 s", atomic_load(counter), value);
    pestle_thread_sleep_ns(1000000);
  }
}

// It was called once, by no thread of this test's, with |code_name|.
#define assert_told(told, code_name)                                         \
  do {                                                                       \
    wait_until(&(told)->count, 1);                                           \
    assert_int_equal(atomic_load(&(told)->code), PESTLE_STATUS_##code_name); \
    assert_true((told)->thread != pestle_thread_id());                       \
  } while (0)

#endif  // PESTLE_TESTS_UNIT_RUNTIME_EVENT_FIXTURE_H_

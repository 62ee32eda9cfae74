// SPDX-License-Identifier: Apache-2.0
// The start of every cmocka test of Pestle: the includes that cmocka needs,
// assertions on statuses, and an allocator that counts and fails on purpose.
#ifndef PESTLE_TESTS_TEST_H_
#define PESTLE_TESTS_TEST_H_

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
// clang-format on

#include <stdatomic.h>
#include <time.h>

#include "pestle/allocator.h"
#include "pestle/status.h"

// Which sanitizers the test was built with: GCC has macros, Clang features.
#if defined(__has_feature)
#define PESTLE_TEST_FEATURE(name) __has_feature(name)
#else
#define PESTLE_TEST_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || PESTLE_TEST_FEATURE(address_sanitizer)
#define TEST_ASAN 1
#else
#define TEST_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__) || PESTLE_TEST_FEATURE(thread_sanitizer)
#define TEST_TSAN 1
#else
#define TEST_TSAN 0
#endif
#define TEST_SANITIZED (TEST_ASAN || TEST_TSAN)

// The status of |expr| must be OK; its text is printed if not.
#define assert_ok(expr) pestle_test_assert_ok_((expr), __FILE__, __LINE__)

// The status of |expr| must have |code| (INVALID_ARGUMENT, ...). It is
// released.
#define assert_code(expr, code)                                          \
  pestle_test_assert_code_((expr), PESTLE_STATUS_##code, NULL, __FILE__, \
                           __LINE__)

// The same, and its text with notes must contain |text|.
#define assert_error(expr, code, text)                                     \
  pestle_test_assert_code_((expr), PESTLE_STATUS_##code, (text), __FILE__, \
                           __LINE__)

// Whether the |item|-th piece of the work is this process's: PESTLE_TEST_PART=I/N has
// it do every N-th, from the I-th of 1 to N; without it, all is.
static inline bool pestle_test_in_part(uint64_t item) {
  const char* text = getenv("PESTLE_TEST_PART");
  unsigned part = 1, parts = 1;
  if (text &&
      (sscanf(text, "%u/%u", &part, &parts) != 2 || !part || part > parts)) {
    fail_msg("PESTLE_TEST_PART=%s is not I/N", text);
  }
  return item % parts == part - 1;
}

// Seconds of CPU that this process has had: what tests compare
// instead of time, since others may have the machine.
static inline double pestle_test_cpu_seconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
#define test_process_seconds() pestle_test_cpu_seconds(CLOCK_PROCESS_CPUTIME_ID)

static inline void pestle_test_assert_ok_(pestle_status_t status,
                                          const char* file, int line) {
  if (!status) return;
  char text[1024];
  pestle_status_format(status, text, sizeof(text));
  print_error("expected OK, got %s (%s:%d)\n", text, pestle_status_file(status),
              pestle_status_line(status));
  pestle_status_release(status);
  _fail(file, line);
  __builtin_unreachable();  // cmocka does not declare that _fail() jumps
}

static inline void pestle_test_assert_code_(pestle_status_t status,
                                            pestle_status_code_t code,
                                            const char* part, const char* file,
                                            int line) {
  char text[2048];
  pestle_status_format(status, text, sizeof(text));
  bool same = pestle_status_code(status) == code &&
              (!part || strstr(text, part) != NULL);
  pestle_status_release(status);
  if (same) return;
  print_error("expected %s%s%s, got %s\n", pestle_status_code_name(code),
              part ? " with " : "", part ? part : "", text);
  _fail(file, line);
  __builtin_unreachable();  // cmocka does not declare that _fail() jumps
}

// Counts what is live and fails the |fail_at|-th request for memory (counted
// from 1; 0 never fails). Thread-safe. Checks nothing about alignment beyond
// handing it on. A typical loop over every failure:
//
//   for (size_t k = 1;; ++k) {
//     pestle_test_allocator_t memory;
//     pestle_test_allocator_init(&memory, k);
//     pestle_status_t status = work(pestle_test_allocator(&memory));
//     bool failed = pestle_test_allocator_failed(&memory);
//     if (failed) assert_code(status, OUT_OF_MEMORY); else assert_ok(status);
//     pestle_test_allocator_check(&memory);  // nothing is live
//     if (!failed) break;
//   }
typedef struct pestle_test_allocator_t {
  pestle_allocator_t parent;
  atomic_size_t live_bytes;
  atomic_size_t live_blocks;
  atomic_size_t peak_bytes;
  atomic_size_t request_count;
  atomic_size_t fail_at;
  atomic_bool failed;
} pestle_test_allocator_t;

static inline void* pestle_test_allocator_resize_(void* self, void* ptr,
                                                  size_t old_size,
                                                  size_t new_size,
                                                  size_t alignment) {
  pestle_test_allocator_t* memory = self;
  if (new_size > old_size) {
    size_t request = atomic_fetch_add(&memory->request_count, 1) + 1;
    if (request == atomic_load(&memory->fail_at)) {
      atomic_store(&memory->failed, true);
      return NULL;
    }
  }
  void* result = memory->parent.resize(memory->parent.self, ptr, old_size,
                                       new_size, alignment);
  if (!result && new_size) return NULL;
  if (!ptr && new_size) atomic_fetch_add(&memory->live_blocks, 1);
  if (ptr && !new_size) atomic_fetch_sub(&memory->live_blocks, 1);
  size_t live = atomic_fetch_add(&memory->live_bytes, new_size - old_size) +
                new_size - old_size;
  size_t peak = atomic_load(&memory->peak_bytes);
  while (live > peak &&
         !atomic_compare_exchange_weak(&memory->peak_bytes, &peak, live)) {
  }
  return result;
}

static inline void pestle_test_allocator_init(
    pestle_test_allocator_t* out_memory, size_t fail_at) {
  out_memory->parent = pestle_allocator_system();
  atomic_init(&out_memory->live_bytes, 0);
  atomic_init(&out_memory->live_blocks, 0);
  atomic_init(&out_memory->peak_bytes, 0);
  atomic_init(&out_memory->request_count, 0);
  atomic_init(&out_memory->fail_at, fail_at);
  atomic_init(&out_memory->failed, false);
}

static inline pestle_allocator_t pestle_test_allocator(
    pestle_test_allocator_t* memory) {
  return (pestle_allocator_t){.self = memory,
                              .resize = pestle_test_allocator_resize_};
}

static inline bool pestle_test_allocator_failed(
    pestle_test_allocator_t* memory) {
  return atomic_load(&memory->failed);
}

// Everything that was allocated must have been freed, with its right size.
#define pestle_test_allocator_check(memory)                   \
  do {                                                        \
    assert_int_equal(atomic_load(&(memory)->live_blocks), 0); \
    assert_int_equal(atomic_load(&(memory)->live_bytes), 0);  \
  } while (0)

#endif  // PESTLE_TESTS_TEST_H_

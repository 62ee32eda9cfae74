// SPDX-License-Identifier: Apache-2.0
// What all fuzz targets share: one context for all inputs, and what an input may
// not do: leave memory behind, or take more than a second of CPU time. Either ends
// the process by abort(), which libFuzzer reports with the input.
#ifndef PESTLE_TESTS_FUZZ_TARGET_H_
#define PESTLE_TESTS_FUZZ_TARGET_H_

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "blocks.h"
#include "pestle/context.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                               unsigned seed);

// AddressSanitizer and the coverage counters take three to five times the time:
// a second here is a third of one in a release build.
#define PESTLE_FUZZ_SECOND 1000000000

typedef struct pestle_fuzz_t {
  pestle_fuzz_blocks_t blocks;
  pestle_context_t* context;
} pestle_fuzz_t;

// CPU time of this thread: other work on the machine is none of the input's.
static inline int64_t pestle_fuzz_clock(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline void pestle_fuzz_fail(const char* what) {
  fprintf(stderr, "fuzz: %s\n", what);
  abort();
}

// The context, made at the first call. |add| gives it what it keeps.
static inline void pestle_fuzz_open(
    pestle_fuzz_t* f, pestle_status_t (*add)(pestle_context_t* context)) {
  pestle_context_options_t options = {
      .struct_size = sizeof(options),
      .allocator = {&f->blocks, pestle_fuzz_resize},
      .cache_dir = "",
      .no_cache = true,
      .backend_path = "/nonexistent",
      .threads = 1};
  pestle_status_t status = pestle_context_create(&options, &f->context);
  if (!status && add) status = add(f->context);
  if (status) pestle_fuzz_fail("no context");
}

// Feeds |data| to |input|. |add| (may be NULL) is what the context keeps. A context
// may also keep memory for what comes next: an input leaks if each time that it comes
// again there is more.
static inline int pestle_fuzz_run(
    pestle_fuzz_t* f, pestle_status_t (*add)(pestle_context_t* context),
    void (*input)(pestle_fuzz_t* f, const uint8_t* data, size_t size),
    const uint8_t* data, size_t size) {
  if (!f->context) pestle_fuzz_open(f, add);
  size_t in_use = f->blocks.in_use;
  int64_t begin_ns = pestle_fuzz_clock();
  input(f, data, size);
  if (pestle_fuzz_clock() - begin_ns > PESTLE_FUZZ_SECOND) {
    pestle_fuzz_fail("the input took more than a second of CPU time");
  }
  for (int again = 0; f->blocks.in_use > in_use; ++again) {
    if (again == 12) pestle_fuzz_fail("the input leaked memory");
    in_use = f->blocks.in_use;
    input(f, data, size);
  }
  return 0;
}

#endif  // PESTLE_TESTS_FUZZ_TARGET_H_

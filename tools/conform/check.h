// SPDX-License-Identifier: Apache-2.0
// The assertions of tests/test.h for a program without cmocka: what they check
// holds on every machine, so the program ends when it does not.
#ifndef PESTLE_TOOLS_CONFORM_CHECK_H_
#define PESTLE_TOOLS_CONFORM_CHECK_H_

#ifndef assert_ok
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pestle/status.h"

#define assert_true(condition)                                                 \
  do {                                                                         \
    if (condition) break;                                                      \
    fprintf(stderr, "pestle-conform: %s:%d: not so: %s\n", __FILE__, __LINE__, \
            #condition);                                                       \
    exit(6);                                                                   \
  } while (0)
#define assert_int_equal(a, b) assert_true((a) == (b))
#define assert_null(pointer) assert_true(!(pointer))
#define assert_ok(expr) conform_check((expr), __FILE__, __LINE__)

static inline void conform_check(pestle_status_t status, const char* file,
                                 int line) {
  if (!status) return;
  char text[1024];
  pestle_status_format(status, text, sizeof(text));
  fprintf(stderr, "pestle-conform: %s:%d: %s\n", file, line, text);
  exit(6);
}
#endif

#endif  // PESTLE_TOOLS_CONFORM_CHECK_H_

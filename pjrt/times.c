// SPDX-License-Identifier: Apache-2.0
#include "pjrt/times.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/thread.h"
#include "base/vec.h"

typedef struct row_t {
  char name[64];
  uint64_t compiled, ran;
  int64_t compile_ns, run_ns;
} row_t;

struct pestle_pjrt_times_t {
  pestle_mutex_t mutex;
  PESTLE_VEC(row_t) rows;
};

pestle_pjrt_times_t* pestle_pjrt_times_create(void) {
  pestle_pjrt_times_t* times =
      pestle_alloc_zero(pestle_allocator_system(), sizeof(*times));
  if (!times) return NULL;
  pestle_mutex_init(&times->mutex);
  pestle_vec_init(&times->rows, pestle_allocator_system());
  return times;
}

void pestle_pjrt_times_release(pestle_pjrt_times_t* times) {
  if (!times) return;
  pestle_vec_deinit(&times->rows);
  pestle_mutex_deinit(&times->mutex);
  pestle_dealloc(pestle_allocator_system(), times, sizeof(*times));
}

// The row of |program|, made if there is none; NULL when out of memory.
static row_t* find(pestle_pjrt_times_t* times, const char* program) {
  row_t row = {.name = ""};
  snprintf(row.name, sizeof(row.name), "%s", program);
  for (size_t i = 0; i < times->rows.size; ++i) {
    if (!strcmp(times->rows.data[i].name, row.name))
      return &times->rows.data[i];
  }
  if (!pestle_vec_push(&times->rows, row)) return NULL;
  return &pestle_vec_last(&times->rows);
}

void pestle_pjrt_times_compiled(pestle_pjrt_times_t* times, const char* program,
                                int64_t ns) {
  if (!times) return;
  pestle_mutex_lock(&times->mutex);
  row_t* row = find(times, program);
  if (row) {
    ++row->compiled;
    row->compile_ns += ns;
  }
  pestle_mutex_unlock(&times->mutex);
}

void pestle_pjrt_times_ran(pestle_pjrt_times_t* times, const char* program,
                           int64_t ns) {
  if (!times) return;
  pestle_mutex_lock(&times->mutex);
  row_t* row = find(times, program);
  if (row) {
    ++row->ran;
    row->run_ns += ns;
  }
  pestle_mutex_unlock(&times->mutex);
}

static int by_time(const void* a, const void* b) {
  const row_t *x = a, *y = b;
  int64_t s = x->compile_ns + x->run_ns, t = y->compile_ns + y->run_ns;
  return (s < t) - (s > t);
}

void pestle_pjrt_times_print(pestle_pjrt_times_t* times) {
  if (!times) return;
  pestle_mutex_lock(&times->mutex);
  if (times->rows.size > 1) {
    qsort(times->rows.data, times->rows.size, sizeof(row_t), by_time);
  }
  fprintf(stderr, "%-48s %8s %12s %9s %12s\n", "program", "compiled", "ms",
          "runs", "ms");
  for (size_t i = 0; i < times->rows.size; ++i) {
    const row_t* row = &times->rows.data[i];
    fprintf(stderr, "%-48s %8llu %12.1f %9llu %12.1f\n", row->name,
            (unsigned long long)row->compiled, (double)row->compile_ns * 1e-6,
            (unsigned long long)row->ran, (double)row->run_ns * 1e-6);
  }
  pestle_mutex_unlock(&times->mutex);
}

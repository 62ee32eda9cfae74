// SPDX-License-Identifier: Apache-2.0
// What the runtime asks of the operating system and base/ does not offer:
// guarded environment variables, a mark that fork() clears, advice on memory,
// ownership of files.
#ifndef PESTLE_RUNTIME_PLATFORM_H_
#define PESTLE_RUNTIME_PLATFORM_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The variable, or NULL when it is unset, empty, or the process runs with more
// rights than its user has (set-uid, file capabilities).
const char* pestle_platform_env(const char* name);

// Tells a process from its forked child at the price of one load: |state| lies
// in a page that the system clears in a child.
typedef struct pestle_fork_mark_t {
  atomic_uint* state;
  atomic_uint local;  // used when the system cannot clear a page
  int64_t process;    // the same: compared at each look
  size_t page_size;   // 0: |local| is used
} pestle_fork_mark_t;

enum {
  PESTLE_FORK_CLEARED = 0,  // a child that nobody has looked after
  PESTLE_FORK_RESETTING = 1,
  PESTLE_FORK_READY = 2,
};

void pestle_fork_mark_init(pestle_fork_mark_t* out_mark);
void pestle_fork_mark_deinit(pestle_fork_mark_t* mark);
// Where the system cannot clear a page: compares the process id.
void pestle_fork_mark_poll(pestle_fork_mark_t* mark);

static inline bool pestle_fork_mark_is_ready(pestle_fork_mark_t* mark) {
  if (!mark->page_size) pestle_fork_mark_poll(mark);
  return atomic_load_explicit(mark->state, memory_order_acquire) ==
         PESTLE_FORK_READY;
}

#define PESTLE_PAGE ((size_t)4096)
// Makes whole pages read-only, or writable again. A guard against stray writes:
// where the system refuses, they stay as they are.
void pestle_platform_seal(void* data, size_t size, bool sealed);

// Whether |path| is a regular file (links are not followed), or a folder, that
// belongs to this user and that nobody else may write. NULL, or a static
// sentence that says why not: "the entry on disk ...", "the cache folder ...".
const char* pestle_platform_distrust(const char* path, bool folder);

#endif  // PESTLE_RUNTIME_PLATFORM_H_

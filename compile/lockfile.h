// SPDX-License-Identifier: Apache-2.0
// pestle.lock: schedules that were measured, as text that one can commit.
//
//   pestle.lock 2
//   # comments and empty lines are skipped, and lost when it is written anew
//   KEY TARGET CPU THREADS VERSION MEASURED KIND=NAME KIND=NAME ...
//
// One line a kernel, sorted. KEY is 32 hex digits: the nest before it is
// scheduled, without names (pestle_nest_key()); VERSION who measured; MEASURED
// "KIND:NAME=MICROSECONDS,..." or "-"; the rest are the choices (choice.h).
#ifndef PESTLE_COMPILE_LOCKFILE_H_
#define PESTLE_COMPILE_LOCKFILE_H_

#include "base/arena.h"
#include "base/vec.h"
#include "codegen/nest/nest.h"

enum { PESTLE_LOCKFILE_KEY = 33 };  // with its terminator

// Texts are the lock's, and have no blanks but for |chosen|.
typedef struct pestle_lockfile_line_t {
  const char *key, *target, *cpu;
  int64_t threads;
  const char *version, *measured, *chosen;
} pestle_lockfile_line_t;

typedef struct pestle_lockfile_t {
  pestle_arena_t arena;
  PESTLE_VEC(pestle_lockfile_line_t) lines;
  bool changed;  // since it was read
} pestle_lockfile_t;

void pestle_lockfile_init(pestle_allocator_t allocator,
                          pestle_lockfile_t* out_lock);
void pestle_lockfile_deinit(pestle_lockfile_t* lock);
// Reads the file |path| into an empty lock. NOT_FOUND: there is none; MALFORMED:
// the line that is damaged, what is wrong and what to do.
PESTLE_NODISCARD pestle_status_t pestle_lockfile_read(const char* path,
                                                      pestle_lockfile_t* lock);
// The same from text; |name| is for errors.
PESTLE_NODISCARD pestle_status_t pestle_lockfile_parse(const char* name,
                                                       pestle_str_t text,
                                                       pestle_lockfile_t* lock);
// Reads |path| into an empty lock. With |create| a file that is not there is one
// without lines, which pestle_lockfile_save() writes.
PESTLE_NODISCARD pestle_status_t pestle_lockfile_load(const char* path,
                                                      bool create,
                                                      pestle_lockfile_t* lock);
// Writes |path| if |lock| has changed since it was read.
PESTLE_NODISCARD pestle_status_t
pestle_lockfile_save(const pestle_lockfile_t* lock, const char* path);
// Replaces |path|, so that a reader sees all or nothing of it.
PESTLE_NODISCARD pestle_status_t
pestle_lockfile_write(const pestle_lockfile_t* lock, const char* path);
void pestle_lockfile_print(const pestle_lockfile_t* lock, pestle_strbuf_t* out);

// The line with these first four fields, or NULL.
const pestle_lockfile_line_t* pestle_lockfile_find(
    const pestle_lockfile_t* lock, const char* key, const char* target,
    const char* cpu, int64_t threads);
// Adds |line|, whose texts are copied, or puts it in the place of its like.
PESTLE_NODISCARD pestle_status_t pestle_lockfile_put(
    pestle_lockfile_t* lock, const pestle_lockfile_line_t* line);
// Appends what of the lock a plan for such a machine may depend on.
void pestle_lockfile_append_key(const pestle_lockfile_t* lock,
                                const char* target, const char* cpu,
                                int64_t threads, pestle_strbuf_t* key);
// |text| as a field: without blanks, and not empty.
void pestle_lockfile_field(const char* text, char* out, size_t capacity);

// The key of a nest that was lowered and not yet scheduled: what it computes,
// over which shapes and dtypes, and |numerics|; of constants that they are some.
// Independent of names, of the order in which kernels are made, and of the
// process.
PESTLE_NODISCARD pestle_status_t pestle_nest_key(
    pestle_nest_t* nest, int numerics, char out_key[PESTLE_LOCKFILE_KEY]);

#endif  // PESTLE_COMPILE_LOCKFILE_H_

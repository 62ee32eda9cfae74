// SPDX-License-Identifier: Apache-2.0
// Shared libraries opened at run time.
#ifndef PESTLE_BASE_DYNLIB_H_
#define PESTLE_BASE_DYNLIB_H_

#include "base/arena.h"
#include "pestle/status.h"

typedef struct pestle_dynlib_s* pestle_dynlib_t;  // the system's own handle

// Any function; cast it to its real type before the call.
typedef void (*pestle_dynlib_fn_t)(void);

// Opens |path| with all symbols resolved and none of them visible to other
// libraries. It stays open until the process ends. UNAVAILABLE, with the loader's
// own sentence, when that fails.
PESTLE_NODISCARD pestle_status_t
pestle_dynlib_open(const char* path, pestle_dynlib_t* out_library);

// What the program itself has, and the libraries that it was started with.
pestle_dynlib_t pestle_dynlib_process(void);

// NULL when the library has no such symbol.
pestle_dynlib_fn_t pestle_dynlib_function(pestle_dynlib_t library,
                                          const char* name);
void* pestle_dynlib_data(pestle_dynlib_t library, const char* name);

// The path of the file that holds |function|, resolved to an absolute one
// without symbolic links. NOT_FOUND when it lies in no file.
PESTLE_NODISCARD pestle_status_t pestle_dynlib_path_of(
    pestle_dynlib_fn_t function, pestle_arena_t* arena, const char** out_path);

#endif  // PESTLE_BASE_DYNLIB_H_

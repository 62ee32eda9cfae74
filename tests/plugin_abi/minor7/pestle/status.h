// SPDX-License-Identifier: Apache-2.0
// The one way in which Pestle reports a failure: a status value that carries a
// code (whose fault), a sentence, the source line that made it, and notes added
// on the way up. NULL is success. Nothing here prints and nothing aborts.
#ifndef PESTLE_STATUS_H_
#define PESTLE_STATUS_H_

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "pestle/export.h"

PESTLE_EXTERN_C_BEGIN

// X(NAME, value, meaning). Values are stable: they are only ever appended.
#define PESTLE_STATUS_CODES(X)                                               \
  X(OK, 0, "ok")                                                             \
  X(INVALID_ARGUMENT, 1, "the caller's argument is wrong")                   \
  X(MALFORMED, 2,                                                            \
    "an input (model, IR text, plan, file) is damaged or illegal")           \
  X(UNSUPPORTED, 3, "valid, but nothing here implements it")                 \
  X(NOT_FOUND, 4, "a named thing does not exist")                            \
  X(OUT_OF_MEMORY, 5, "an allocation failed")                                \
  X(RESOURCE_EXHAUSTED, 6, "a disk, limit or quota is full")                 \
  X(IO, 7, "the operating system refused a read or a write")                 \
  X(INCOMPATIBLE, 8, "made for another build, device or interface version")  \
  X(UNAVAILABLE, 9, "a device or toolchain is not present")                  \
  X(CANCELLED, 10, "the caller's cancel flag was set")                       \
  X(DEADLINE_EXCEEDED, 11, "the caller's deadline passed")                   \
  X(INTERNAL, 12, "an invariant of Pestle itself is broken")                 \
  X(WRONG_TYPE, 13, "the caller's argument is of a dtype that is not taken") \
  X(OUT_OF_RANGE, 14, "an axis or an index of the caller's does not exist")

typedef enum pestle_status_code_e {
#define PESTLE_STATUS_ENUM_(name, value, text) PESTLE_STATUS_##name = value,
  PESTLE_STATUS_CODES(PESTLE_STATUS_ENUM_)
#undef PESTLE_STATUS_ENUM_
      PESTLE_STATUS_CODE_COUNT
} pestle_status_code_t;

// A failing status is owned by whoever holds it and ends in
// pestle_status_release(). Statuses live outside any context's allocator, since
// they outlive it. If making one runs out of memory, the result is a shared
// constant without text; every function below accepts it.
typedef struct pestle_status_s* pestle_status_t;

// Makes a status with the formatted sentence |format|. |code| must not be OK.
// |file| must be a string constant or NULL. Never returns NULL; the caller
// releases what it returns.
PESTLE_API PESTLE_NODISCARD PESTLE_PRINTF(4, 5) pestle_status_t
    pestle_status_make(pestle_status_code_t code, const char* file, int line,
                       const char* format, ...);
// The same with the arguments of |format| in |args|, which is used up.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_status_make_v(pestle_status_code_t code, const char* file, int line,
                     const char* format, va_list args);

// Appends a note ("while importing node 'conv1'") and returns |status|, which
// it takes over and which may be NULL (then NULL is returned and nothing
// happens). Out of memory loses the note, not the status.
PESTLE_API PESTLE_NODISCARD PESTLE_PRINTF(2, 3) pestle_status_t
    pestle_status_annotate(pestle_status_t status, const char* format, ...);

// Keeps |primary| and attaches |secondary| as a note, so that a failure during
// clean-up is not lost. Takes both over, returns the one that remains; either
// may be NULL.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_status_join(pestle_status_t primary, pestle_status_t secondary);

// Releases |status|; NULL is allowed.
PESTLE_API void pestle_status_release(pestle_status_t status);

// The getters borrow |status|, and NULL stands for OK. Its code.
PESTLE_API pestle_status_code_t pestle_status_code(pestle_status_t status);
// Its sentence without a newline; "ok" for NULL. Borrowed from the status.
PESTLE_API const char* pestle_status_message(pestle_status_t status);
// The source file that made it; "" for NULL. Static.
PESTLE_API const char* pestle_status_file(pestle_status_t status);
// The line there; 0 for NULL.
PESTLE_API int pestle_status_line(pestle_status_t status);
// The |index|-th note in the order added, or NULL past the last. Borrowed.
PESTLE_API const char* pestle_status_note(pestle_status_t status, size_t index);

// "INVALID_ARGUMENT"; "INTERNAL" for a number that is no code. Static.
PESTLE_API const char* pestle_status_code_name(pestle_status_code_t code);
// Its meaning in the table above. Static.
PESTLE_API const char* pestle_status_code_text(pestle_status_code_t code);

// Writes "CODE: message; note; note" into |buffer| (always terminated when
// |capacity| > 0) and returns the length that the whole text has, without the
// 0. |buffer| may be NULL, to measure.
PESTLE_API size_t pestle_status_format(pestle_status_t status, char* buffer,
                                       size_t capacity);

#define PESTLE_ERROR(code, ...) \
  pestle_status_make(PESTLE_STATUS_##code, __FILE__, __LINE__, __VA_ARGS__)

// Returns the failing status of |expr| from the enclosing function.
#define PESTLE_TRY(expr)                               \
  do {                                                 \
    pestle_status_t pestle_try_status_ = (expr);       \
    if (pestle_try_status_) return pestle_try_status_; \
  } while (0)

PESTLE_EXTERN_C_END

#endif  // PESTLE_STATUS_H_

// SPDX-License-Identifier: Apache-2.0
// Strings that a model takes and gives. A graph computes with numbers alone: an
// input or output that the model declares to be of strings is of their numbers, i32
// (docs/adr/035). These functions turn strings into numbers before a run and back
// after it:
//
//   pestle_strings_create(executable, &strings);
//   pestle_strings_encode(strings, words, count, ids);     // then run, with ids
//   pestle_strings_decode(strings, ids, count, words);
//
// Strings of the model have the same numbers in every run. One that the model does not
// know gets a number of its own, by which it comes out again where a model moves it; in
// a look-up it is found nowhere. Functions of one pestle_strings_t are to be called by
// one thread at a time.
#ifndef PESTLE_STRINGS_H_
#define PESTLE_STRINGS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pestle/runtime.h"

PESTLE_EXTERN_C_BEGIN

// Bytes in UTF-8, not terminated, 0 among them too. Frozen.
typedef struct pestle_string_t {
  const char* data;  // may be NULL where |size| is 0
  size_t size;
} pestle_string_t;

typedef struct pestle_strings_s pestle_strings_t;
typedef struct pestle_module_s pestle_module_t;

// Whether the elements of input |index| are the numbers of strings; false past the
// last.
PESTLE_API bool pestle_executable_input_is_strings(
    const pestle_executable_t* executable, size_t index);
// Whether the elements of output |index| are; false past the last.
PESTLE_API bool pestle_executable_output_is_strings(
    const pestle_executable_t* executable, size_t index);

// Whether a run has to be given its strings (pestle_run_options_t.strings): the model
// takes or gives some, and makes new ones or reads their letters.
PESTLE_API bool pestle_executable_needs_strings(
    const pestle_executable_t* executable);
// Makes the numbers of the strings of |executable|'s model, which it does not keep. Of
// a model without any it holds none, and is of use all the same.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_strings_create(
    const pestle_executable_t* executable, pestle_strings_t** out_strings);
// Whether input |index| of |module| is strings; false past the last.
PESTLE_API bool pestle_module_input_is_strings(const pestle_module_t* module,
                                               size_t index);
// Whether output |index| of |module| is strings; false past the last.
PESTLE_API bool pestle_module_output_is_strings(const pestle_module_t* module,
                                                size_t index);
// The same of a module, for the strings of its model. The numbers are those of every
// executable that it becomes.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_module_strings_create(
    const pestle_module_t* module, pestle_strings_t** out_strings);
// Frees |strings|, which may be NULL.
PESTLE_API void pestle_strings_release(pestle_strings_t* strings);
// How many there are, those of the model first.
PESTLE_API size_t pestle_strings_count(const pestle_strings_t* strings);
// Writes the number of each of |count| |words|. Those that are new are copied.
// INVALID_ARGUMENT: one is no UTF-8; its place is told.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_strings_encode(pestle_strings_t* strings, const pestle_string_t* words,
                      size_t count, int32_t* out_ids);
// Writes the string of each of |count| numbers: borrowed from |strings|, until
// pestle_strings_forget() or its end. INVALID_ARGUMENT: a number of none.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_strings_decode(const pestle_strings_t* strings, const int32_t* ids,
                      size_t count, pestle_string_t* out_words);
// Forgets all that are not the model's.
PESTLE_API void pestle_strings_forget(pestle_strings_t* strings);

PESTLE_EXTERN_C_END

#endif  // PESTLE_STRINGS_H_

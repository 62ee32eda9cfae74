// SPDX-License-Identifier: Apache-2.0
// Letters of UTF-8: reading and writing one, and its other case (Unicode 14; a letter
// becomes one letter, so that "ß" has no capital).
#ifndef PESTLE_BASE_LETTERS_H_
#define PESTLE_BASE_LETTERS_H_

#include <stdint.h>

#include "base/str.h"

// The letter that |text|, at least one byte of UTF-8, begins with; |*out_size|: its bytes.
// A byte that begins none counts as a letter of its own.
uint32_t pestle_letter_at(pestle_str_t text, size_t* out_size);
// Writes |letter| to |out|, and returns how many bytes it is.
size_t pestle_letter_write(uint32_t letter, char out[4]);
uint32_t pestle_letter_lower(uint32_t letter);
uint32_t pestle_letter_upper(uint32_t letter);

#endif  // PESTLE_BASE_LETTERS_H_

// SPDX-License-Identifier: Apache-2.0
// What UTF-8 is: no surrogates, no number past U+10FFFF, none longer than it need be.
#ifndef PESTLE_BASE_UTF8_H_
#define PESTLE_BASE_UTF8_H_

#include "base/str.h"

// The length of the sequence that |text|, of at least one byte, begins with; 0 if it
// is not one.
size_t pestle_utf8_length(pestle_str_t text);
// Whether all of |text| is UTF-8.
bool pestle_utf8_is_valid(pestle_str_t text);

#endif  // PESTLE_BASE_UTF8_H_

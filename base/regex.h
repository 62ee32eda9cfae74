// SPDX-License-Identifier: Apache-2.0
// Regular expressions as RE2 writes them, over the letters of UTF-8: alternatives,
// groups (named, with flags i, m, s, U), * + ? {m,n} also lazy, classes, Perl's and
// POSIX's classes, ^ $ \A \z \b \B, \Q..\E. What it finds takes time by the length of
// the text times that of the expression, whatever they are. Not taken: \p{..}, \C.
#ifndef PESTLE_BASE_REGEX_H_
#define PESTLE_BASE_REGEX_H_

#include <stdbool.h>

#include "base/str.h"
#include "pestle/allocator.h"
#include "pestle/status.h"

// One thread at a time.
typedef struct pestle_regex_s pestle_regex_t;

// MALFORMED: no expression; UNSUPPORTED: one that is not taken, or too large. Both say at
// which byte.
PESTLE_NODISCARD pestle_status_t pestle_regex_create(
    pestle_allocator_t allocator, pestle_str_t pattern, pestle_regex_t** out);
void pestle_regex_release(pestle_regex_t* regex);
// Whether all of |text| is one match.
bool pestle_regex_is(pestle_regex_t* regex, pestle_str_t text);
// The first match in |text| that begins at byte |from| or later; of those that begin there
// the one that comes first by the order of alternatives.
bool pestle_regex_find(pestle_regex_t* regex, pestle_str_t text, size_t from,
                       size_t* out_begin, size_t* out_end);

#endif  // PESTLE_BASE_REGEX_H_

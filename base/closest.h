// SPDX-License-Identifier: Apache-2.0
// Which of the names that there are somebody meant who typed another: for errors
// that end in "did you mean 'batch'?".
#ifndef PESTLE_BASE_CLOSEST_H_
#define PESTLE_BASE_CLOSEST_H_

#include "base/str.h"

// A search for the name that is closest to |name|; both are borrowed.
typedef struct pestle_closest_t {
  pestle_str_t name;
  pestle_str_t best;  // empty: none is close
  size_t distance;    // of |best|
} pestle_closest_t;

static inline pestle_closest_t pestle_closest_to(pestle_str_t name) {
  return (pestle_closest_t){.name = name};
}
// Looks at one more name. One is close if few letters are inserted, left out,
// replaced or swapped, whatever their case, or if one begins with the other.
void pestle_closest_offer(pestle_closest_t* closest, pestle_str_t candidate);

enum { PESTLE_HINT = 96 };
// "; did you mean 'batch'?" in |out_text|, or "" when no name is close.
const char* pestle_closest_hint(const pestle_closest_t* closest,
                                char out_text[PESTLE_HINT]);

#endif  // PESTLE_BASE_CLOSEST_H_

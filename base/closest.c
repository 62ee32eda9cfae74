// SPDX-License-Identifier: Apache-2.0
#include "base/closest.h"

#include <stdio.h>

// Longer names are not compared letter by letter.
enum { MOST = 48 };

static char lower(char c) {
  return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

// Insertions, deletions, replacements and swaps of neighbours: rows of the usual
// table, of which three are needed at a time.
static size_t distance(pestle_str_t a, pestle_str_t b) {
  unsigned char rows[3][MOST + 1];
  for (size_t j = 0; j <= b.size; ++j)
    rows[0][j] = (unsigned char)j;
  for (size_t i = 1; i <= a.size; ++i) {
    unsigned char *row = rows[i % 3], *last = rows[(i + 2) % 3];
    const unsigned char* before = rows[(i + 1) % 3];
    row[0] = (unsigned char)i;
    for (size_t j = 1; j <= b.size; ++j) {
      char x = lower(a.data[i - 1]), y = lower(b.data[j - 1]);
      size_t best = least(last[j], row[j - 1]) + 1u;
      best = least(best, last[j - 1] + (x != y ? 1u : 0u));
      if (i > 1 && j > 1 && x == lower(b.data[j - 2]) &&
          lower(a.data[i - 2]) == y) {
        best = least(best, before[j - 2] + 1u);
      }
      row[j] = (unsigned char)best;
    }
  }
  return rows[a.size % 3][b.size];
}

static bool begins(pestle_str_t text, pestle_str_t with) {
  return with.size >= 2 && pestle_str_starts_with(text, with);
}

void pestle_closest_offer(pestle_closest_t* closest, pestle_str_t candidate) {
  pestle_str_t name = closest->name;
  if (!name.size || !candidate.size) return;
  if (name.size > MOST || candidate.size > MOST) return;
  size_t longer = name.size > candidate.size ? name.size : candidate.size;
  size_t found = distance(name, candidate);
  bool is_near = 3 * found <= longer;
  // "batch" of "batch_size": behind all that differ by letters.
  if (!is_near && (begins(candidate, name) || begins(name, candidate))) {
    found += MOST;
    is_near = true;
  }
  if (!is_near || (closest->best.size && closest->distance <= found)) return;
  closest->best = candidate;
  closest->distance = found;
}

const char* pestle_closest_hint(const pestle_closest_t* closest,
                                char out_text[PESTLE_HINT]) {
  out_text[0] = 0;
  if (closest->best.size) {
    (void)snprintf(out_text, PESTLE_HINT, "; did you mean '%.*s'?",
                   PESTLE_STR_ARG(closest->best));
  }
  return out_text;
}

// SPDX-License-Identifier: Apache-2.0
#include "base/letters.h"

#include <stdbool.h>

#include "base/utf8.h"

uint32_t pestle_letter_at(pestle_str_t text, size_t* out_size) {
  size_t size = pestle_utf8_length(text);
  uint32_t letter = (unsigned char)text.data[0];
  *out_size = size ? size : 1;
  if (size < 2) return letter;
  letter &= 0x7fu >> size;
  for (size_t i = 1; i < size; ++i)
    letter = letter << 6 | ((unsigned char)text.data[i] & 0x3fu);
  return letter;
}

size_t pestle_letter_write(uint32_t letter, char out[4]) {
  if (letter < 0x80) {
    out[0] = (char)letter;
    return 1;
  }
  size_t size = letter < 0x800 ? 2 : letter < 0x10000 ? 3 : 4;
  for (size_t i = size; i-- > 1; letter >>= 6)
    out[i] = (char)(0x80 | (letter & 0x3f));
  out[0] = (char)((0xf00u >> size & 0xff) | letter);
  return size;
}

typedef enum way_e { BOTH_WAYS, TO_UPPER, TO_LOWER } way_t;

typedef struct letters_t {
  uint32_t first;
  uint8_t count, step, way;
  int32_t distance;
} letters_t;

static const letters_t table[] = {
#define PAIRS(first, count, step, distance) \
  {first, count, step, BOTH_WAYS, distance},
#define UPPER(first, count, step, distance) \
  {first, count, step, TO_UPPER, distance},
#define LOWER(first, count, step, distance) \
  {first, count, step, TO_LOWER, distance},
#include "base/letters.def"
#undef PAIRS
#undef UPPER
#undef LOWER
};

static bool is_of(const letters_t* row, uint32_t letter) {
  return letter >= row->first && (letter - row->first) % row->step == 0 &&
         (letter - row->first) / row->step < row->count;
}

static uint32_t other(uint32_t letter, way_t way) {
  for (size_t i = 0; i < sizeof(table) / sizeof(*table); ++i) {
    const letters_t* row = &table[i];
    uint32_t far = (uint32_t)row->distance;
    if (row->way == BOTH_WAYS && way == TO_LOWER) {
      if (is_of(row, letter - far)) return letter - far;
    } else if (row->way == BOTH_WAYS || row->way == way) {
      if (is_of(row, letter)) return letter + far;
    }
  }
  return letter;
}

uint32_t pestle_letter_lower(uint32_t letter) {
  if (letter >= 0x80) return other(letter, TO_LOWER);
  return letter >= 'A' && letter <= 'Z' ? letter + 32 : letter;
}

uint32_t pestle_letter_upper(uint32_t letter) {
  if (letter >= 0x80) return other(letter, TO_UPPER);
  return letter >= 'a' && letter <= 'z' ? letter - 32 : letter;
}

// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <stdint.h>

size_t pestle_utf8_length(pestle_str_t text) {
  unsigned char lead = (unsigned char)text.data[0];
  if (lead < 0x80) return 1;
  size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || length > text.size) return 0;
  uint32_t code = lead & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    unsigned char c = (unsigned char)text.data[i];
    if ((c & 0xc0) != 0x80) return 0;
    code = code << 6 | (c & 0x3fu);
  }
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < least[length] || code > 0x10ffff) return 0;
  return code >= 0xd800 && code < 0xe000 ? 0 : length;
}

bool pestle_utf8_is_valid(pestle_str_t text) {
  while (text.size) {
    size_t length = pestle_utf8_length(text);
    if (!length) return false;
    text = pestle_str_slice(text, length, text.size);
  }
  return true;
}

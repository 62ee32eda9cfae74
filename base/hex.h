// SPDX-License-Identifier: Apache-2.0
// Hexadecimal digits.
#ifndef PESTLE_BASE_HEX_H_
#define PESTLE_BASE_HEX_H_

// The value of |c|, a digit of either case; -1 of any other character.
static inline int pestle_hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

#endif  // PESTLE_BASE_HEX_H_

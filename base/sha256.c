// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <string.h>

// The fractional parts of the cube roots of the first 64 primes.
static const uint32_t round_words[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t word, int by) {
  return word >> by | word << (32 - by);
}

static uint32_t read_word(const unsigned char* at) {
  return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 |
         at[3];
}

static void write_word(uint32_t word, unsigned char* to) {
  for (int i = 0; i < 4; ++i)
    to[i] = (unsigned char)(word >> (24 - 8 * i));
}

static void take_block(uint32_t state[8], const unsigned char block[64]) {
  uint32_t w[64], s[8];
  for (int i = 0; i < 16; ++i)
    w[i] = read_word(block + 4 * i);
  for (int i = 16; i < 64; ++i) {
    uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
           (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
  }
  memcpy(s, state, sizeof(s));
  for (int i = 0; i < 64; ++i) {
    uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
    uint32_t most = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
    uint32_t one = s[7] +
                   (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) +
                   choice + round_words[i] + w[i];
    uint32_t two =
        (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) + most;
    memmove(s + 1, s, 7 * sizeof(*s));
    s[4] += one;
    s[0] = one + two;
  }
  for (int i = 0; i < 8; ++i)
    state[i] += s[i];
}

void pestle_sha256_init(pestle_sha256_t* hash) {
  static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                    0xa54ff53a, 0x510e527f, 0x9b05688c,
                                    0x1f83d9ab, 0x5be0cd19};
  memcpy(hash->state, first, sizeof(first));
  hash->size = 0;
}

void pestle_sha256_update(pestle_sha256_t* hash, const void* data,
                          size_t size) {
  const unsigned char* from = data;
  while (size) {
    size_t at = hash->size % 64, n = size < 64 - at ? size : 64 - at;
    memcpy(hash->block + at, from, n);
    hash->size += n;
    from += n;
    size -= n;
    if (at + n == 64) take_block(hash->state, hash->block);
  }
}

void pestle_sha256_finish(pestle_sha256_t* hash,
                          unsigned char out[PESTLE_SHA256_SIZE]) {
  static const unsigned char padding[64] = {0x80};
  unsigned char bits[8];
  uint64_t size = hash->size;
  write_word((uint32_t)(size >> 29), bits);
  write_word((uint32_t)(size << 3), bits + 4);
  pestle_sha256_update(hash, padding, 1 + (119 - size % 64) % 64);
  pestle_sha256_update(hash, bits, sizeof(bits));
  for (int i = 0; i < 8; ++i)
    write_word(hash->state[i], out + 4 * i);
}

void pestle_hmac_init(const void* key, size_t key_size, pestle_hmac_t* hmac) {
  unsigned char block[64] = {0};
  if (key_size > sizeof(block)) {
    pestle_sha256_init(&hmac->inner);
    pestle_sha256_update(&hmac->inner, key, key_size);
    pestle_sha256_finish(&hmac->inner, block);
  } else {
    memcpy(block, key, key_size);
  }
  for (size_t i = 0; i < sizeof(block); ++i)
    block[i] ^= 0x36;
  pestle_sha256_init(&hmac->inner);
  pestle_sha256_update(&hmac->inner, block, sizeof(block));
  for (size_t i = 0; i < sizeof(block); ++i)
    block[i] ^= 0x36 ^ 0x5c;
  pestle_sha256_init(&hmac->outer);
  pestle_sha256_update(&hmac->outer, block, sizeof(block));
}

void pestle_hmac_update(pestle_hmac_t* hmac, const void* data, size_t size) {
  pestle_sha256_update(&hmac->inner, data, size);
}

void pestle_hmac_finish(pestle_hmac_t* hmac,
                        unsigned char out[PESTLE_SHA256_SIZE]) {
  unsigned char digest[PESTLE_SHA256_SIZE];
  pestle_sha256_finish(&hmac->inner, digest);
  pestle_sha256_update(&hmac->outer, digest, sizeof(digest));
  pestle_sha256_finish(&hmac->outer, out);
}

bool pestle_digest_equal(const unsigned char a[PESTLE_SHA256_SIZE],
                         const unsigned char b[PESTLE_SHA256_SIZE]) {
  unsigned difference = 0;
  for (int i = 0; i < PESTLE_SHA256_SIZE; ++i)
    difference |= (unsigned)(a[i] ^ b[i]);
  return !difference;
}

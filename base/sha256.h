// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4) and HMAC over it (RFC 2104): by them processes of one job know
// each other. Where nobody has to be kept out base/hash.h is much faster.
#ifndef PESTLE_BASE_SHA256_H_
#define PESTLE_BASE_SHA256_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PESTLE_SHA256_SIZE 32

typedef struct pestle_sha256_t {
  uint32_t state[8];
  uint64_t size;  // bytes so far
  unsigned char block[64];
} pestle_sha256_t;

void pestle_sha256_init(pestle_sha256_t* out_hash);
void pestle_sha256_update(pestle_sha256_t* hash, const void* data, size_t size);
// Ends |hash|, which takes no more.
void pestle_sha256_finish(pestle_sha256_t* hash,
                          unsigned char out_digest[PESTLE_SHA256_SIZE]);

typedef struct pestle_hmac_t {
  pestle_sha256_t inner, outer;
} pestle_hmac_t;

void pestle_hmac_init(const void* key, size_t key_size,
                      pestle_hmac_t* out_hmac);
void pestle_hmac_update(pestle_hmac_t* hmac, const void* data, size_t size);
void pestle_hmac_finish(pestle_hmac_t* hmac,
                        unsigned char out_digest[PESTLE_SHA256_SIZE]);

// Takes as long whether or not they are equal, and wherever they differ.
bool pestle_digest_equal(const unsigned char a[PESTLE_SHA256_SIZE],
                         const unsigned char b[PESTLE_SHA256_SIZE]);

#endif  // PESTLE_BASE_SHA256_H_

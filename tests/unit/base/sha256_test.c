// SPDX-License-Identifier: Apache-2.0
// SHA-256 and HMAC against the vectors of FIPS 180-4 and RFC 4231.
#include "base/sha256.h"

#include <stdlib.h>

#include "test.h"

static void assert_digest(const unsigned char* digest, const char* want) {
  char text[65];
  for (int i = 0; i < PESTLE_SHA256_SIZE; ++i)
    (void)snprintf(text + 2 * i, 3, "%02x", digest[i]);
  assert_string_equal(text, want);
}

static void hash(const char* data, size_t size, size_t piece,
                 unsigned char* out) {
  pestle_sha256_t state;
  pestle_sha256_init(&state);
  for (size_t at = 0; at < size; at += piece) {
    pestle_sha256_update(&state, data + at,
                         size - at < piece ? size - at : piece);
  }
  pestle_sha256_finish(&state, out);
}

static void hashes(void** state) {
  (void)state;
  static const struct {
    const char *text, *want;
  } rows[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc",
       "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
  };
  unsigned char digest[PESTLE_SHA256_SIZE];
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    hash(rows[i].text, strlen(rows[i].text), 7, digest);
    assert_digest(digest, rows[i].want);
  }
  char* many = malloc(1000000);
  memset(many, 'a', 1000000);
  hash(many, 1000000, 977, digest);
  free(many);
  assert_digest(
      digest,
      "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// However a text is cut into pieces, and whatever its length.
static void takes_pieces(void** state) {
  (void)state;
  char data[200];
  for (int i = 0; i < 200; ++i)
    data[i] = (char)(i * 7);
  for (size_t size = 0; size <= sizeof(data); ++size) {
    unsigned char whole[PESTLE_SHA256_SIZE], parts[PESTLE_SHA256_SIZE];
    hash(data, size, 200, whole);
    hash(data, size, 1 + size % 67, parts);
    assert_true(pestle_digest_equal(whole, parts));
    parts[size % 32] ^= 1;
    assert_false(pestle_digest_equal(whole, parts));
  }
}

static void mac(const void* key, size_t key_size, const char* data, size_t size,
                const char* want) {
  unsigned char digest[PESTLE_SHA256_SIZE];
  pestle_hmac_t hmac;
  pestle_hmac_init(key, key_size, &hmac);
  pestle_hmac_update(&hmac, data, size / 2);
  pestle_hmac_update(&hmac, data + size / 2, size - size / 2);
  pestle_hmac_finish(&hmac, digest);
  assert_digest(digest, want);
}

static void authenticates(void** state) {
  (void)state;
  unsigned char key[131];
  static const char text[] = "what do ya want for nothing?";
  static const char long_text[] =
      "Test Using Larger Than Block-Size Key - Hash Key First";
  memset(key, 0x0b, 20);
  mac(key, 20, "Hi There", 8,
      "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  mac("Jefe", 4, text, strlen(text),
      "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  memset(key, 0xaa, sizeof(key));
  mac(key, sizeof(key), long_text, strlen(long_text),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(hashes),
      cmocka_unit_test(takes_pieces),
      cmocka_unit_test(authenticates),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

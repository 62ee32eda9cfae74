// SPDX-License-Identifier: Apache-2.0
// What goes between a store and its clients. Integers are as the machine has them:
// the magic number tells when the other end's are not.
//
// A connection begins with three greetings, by which both ends show that they know
// the job's secret without telling it; then there are frames in both directions. A
// frame is a head, a key and a value.
#ifndef PESTLE_RUNTIME_STORE_WIRE_H_
#define PESTLE_RUNTIME_STORE_WIRE_H_

#include <stdint.h>

#include "base/sha256.h"

#define PESTLE_STORE_MAGIC 0x31545350u  // "PST1"

// Of the client first: who it is and a number of its own.
typedef struct pestle_store_hello_t {
  uint32_t magic;
  int32_t rank, size;
  uint32_t zero;
  unsigned char nonce[32];
} pestle_store_hello_t;

// The server's answer: its own number, and the proof over both.
typedef struct pestle_store_proof_t {
  unsigned char nonce[32];
  unsigned char mac[PESTLE_SHA256_SIZE];
} pestle_store_proof_t;
// Then the client's proof, which is a mac alone.

typedef enum pestle_store_frame_kind_e {
  // Of clients.
  PESTLE_STORE_PUT = 1,   // key, value: answered by what the key has now
  PESTLE_STORE_GET = 2,   // key: answered once it has a value
  PESTLE_STORE_MEET = 3,  // key, value: answered once all ranks have come
  PESTLE_STORE_ASK = 4,   // answered by what all ranks say of themselves
  PESTLE_STORE_AT = 5,    // a pestle_store_at_t; no answer
  PESTLE_STORE_FAIL = 6,  // code, text: answered by FAILED, to all
  PESTLE_STORE_BYE = 7,   // the client goes; no answer
  // Of the server.
  PESTLE_STORE_REPLY = 16,   // |code| 0: the value; else a status and its text
  PESTLE_STORE_WHERE = 17,   // asks for AT
  PESTLE_STORE_FAILED = 18,  // the world has ended: a status and its text
  PESTLE_STORE_CLOSED = 19,  // the server goes, and nothing is wrong
} pestle_store_frame_kind_t;

typedef struct pestle_store_head_t {
  uint32_t magic;
  uint32_t kind;
  uint32_t tag;  // of a request and its answer
  int32_t code;  // pestle_status_code_t
  uint32_t key_size, value_size;
} pestle_store_head_t;

// Where a rank is: numbers of collectives that it has come to and has done.
typedef struct pestle_store_at_t {
  uint64_t arrived, done;
} pestle_store_at_t;

// The same, with its age: an ASK is answered by one for each rank.
typedef struct pestle_store_seen_t {
  pestle_store_at_t at;
  int64_t since_ns;  // since |arrived| became what it is
  int64_t heard_ns;  // since the rank has said anything; below 0: it never has
  int32_t state;     // pestle_store_state_t
  int32_t zero;
} pestle_store_seen_t;

typedef enum pestle_store_state_e {
  PESTLE_STORE_ABSENT = 0,  // has not come yet
  PESTLE_STORE_HERE = 1,
  PESTLE_STORE_GONE = 2,  // has said that it goes
  PESTLE_STORE_DEAD = 3,  // has gone without a word
} pestle_store_state_t;

enum {
  PESTLE_STORE_KEY_SIZE = 256,
  PESTLE_STORE_VALUE_SIZE = 65536,
  PESTLE_STORE_KEYS = 1 << 20,  // in all
};

// The proof of |who| ('S' or 'C') over both numbers and the client's greeting.
static inline void pestle_store_prove(const unsigned char secret[32], char who,
                                      const pestle_store_hello_t* hello,
                                      const unsigned char server_nonce[32],
                                      unsigned char out[PESTLE_SHA256_SIZE]) {
  pestle_hmac_t mac;
  pestle_hmac_init(secret, 32, &mac);
  pestle_hmac_update(&mac, &who, 1);
  pestle_hmac_update(&mac, hello, sizeof(*hello));
  pestle_hmac_update(&mac, server_nonce, 32);
  pestle_hmac_finish(&mac, out);
}

#endif  // PESTLE_RUNTIME_STORE_WIRE_H_
